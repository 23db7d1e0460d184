"""`map`, `associative_scan`, `platform_dependent` and `composite`: against jax and their definitions."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax import lax
from tests.against_jax import ONCE, Program
from tests.lax.together import check_together

VECTOR = np.linspace(-1, 1, 7).astype(np.float32)


def mapped(batch_size):
    def f(m, x):
        rows = {"a": m.numpy.outer(x, x), "b": x}
        return m.lax.map(lambda r: (r["a"].sum() * r["b"], m.numpy.sin(r["a"])), rows, batch_size=batch_size)

    return f


def running(reverse):
    def f(m, x):
        pairs = (x * 0.5, m.numpy.outer(x, x[:2]))
        combine = lambda a, b: (a[0] * b[0], b[0][:, None] * a[1] + b[1])  # noqa: E731
        return m.lax.associative_scan(combine, pairs, reverse=reverse)

    return f


def test_agree_with_jax():
    """In value, both derivatives, and batches."""
    check_together(
        [
            *(Program(f"map in batches of {n}", mapped(n), (VECTOR,), ONCE) for n in (None, 0, 3, 10)),
            *(Program(f"associative_scan, reverse={r}", running(r), (VECTOR,), ONCE) for r in (False, True)),
        ]
    )


@pytest.mark.parametrize("size", range(9))
def test_associative_scan_of_all_sizes(size):
    x = jnp.arange(1, size + 1)
    np.testing.assert_array_equal(lax.associative_scan(lax.mul, x), np.cumprod(np.arange(1, size + 1)))
    matrix = jnp.arange(2 * size).reshape(2, size)
    np.testing.assert_array_equal(
        lax.associative_scan(lax.add, matrix, axis=-1, reverse=True),
        np.cumsum(np.asarray(matrix)[:, ::-1], 1)[:, ::-1],
    )


def test_a_tuple_does_for_a_named_tuple():
    """What is combined has the structure of the elements, up to their classes, as in jax."""
    pair = namedtuple("pair", "a b")
    combine = lambda x, y: (x.a * y.a, x.b * y.a + y.b)  # noqa: E731
    out = lax.associative_scan(combine, pair(jnp.full(4, 0.5), jnp.ones(4)))
    assert type(out) is pair and out.b.tolist() == [1.0, 1.5, 1.75, 1.875]


def test_associative_scan_keeps_the_order():
    matrices = np.random.default_rng(0).standard_normal((5, 2, 2)).astype(np.float32)
    running = [matrices[0]]
    for matrix in matrices[1:]:
        running.append(running[-1] @ matrix)
    np.testing.assert_allclose(
        lax.associative_scan(jnp.matmul, jnp.asarray(matrices)), running, rtol=1e-5, atol=1e-6
    )


def test_errors_name_the_leaf():
    with pytest.raises(TypeError, match=r"result\['n'\] is f32\[2\], not i32\[2\].*\n.*test_maps"):
        lax.associative_scan(lambda a, b: {"n": a["n"] * 1.5}, {"n": jnp.arange(4)})
    with pytest.raises(ValueError, match=r"sizes along axis 0 differ"):
        lax.associative_scan(lambda a, b: a, (jnp.arange(4), jnp.arange(3)))
    with pytest.raises(ValueError, match=r"elems\[0\] of shape \(\) has no axis 0"):
        lax.associative_scan(lambda a, b: a, (1.0,))
    with pytest.raises(ValueError, match="batch_size"):
        lax.map(lambda x: x, jnp.arange(4), batch_size=-1)
    with pytest.raises(ValueError, match="first axes of one size"):
        lax.map(lambda x: x, (jnp.arange(4), jnp.arange(3)), batch_size=2)


# --- platform_dependent


def chosen(x):
    return lax.platform_dependent(x, tpu=jnp.cos, cpu=jnp.sin, default=lambda v: v)


def test_the_function_of_the_platform_is_called():
    x = jnp.asarray(VECTOR)
    for f in (chosen, purax.jit(chosen)):
        np.testing.assert_allclose(f(x), np.sin(VECTOR), rtol=1e-6)
        np.testing.assert_allclose(purax.grad(lambda v, f=f: f(v).sum())(x), np.cos(VECTOR), rtol=1e-6)
        np.testing.assert_allclose(purax.vmap(f)(x), np.sin(VECTOR), rtol=1e-6)
    other = lax.platform_dependent(x, cuda=jnp.sin, default=lambda v: v * 2)
    np.testing.assert_array_equal(other, VECTOR * 2)


def test_only_the_function_of_the_platform_is_compiled():
    assert "stablehlo.cosine" not in purax.jit(chosen).lower(VECTOR).as_text()
    loop = purax.jit(lambda x: lax.fori_loop(0, 100, lambda i, v: chosen(v), x))
    assert "case" not in loop.lower(VECTOR).as_text()
    for run in (
        lambda x: lax.platform_dependent(x, tpu=jnp.sin),
        purax.jit(lambda x: lax.platform_dependent(x, tpu=jnp.sin)),
    ):
        with pytest.raises(NotImplementedError, match="no function for the platform 'cpu'.*tpu"):
            run(VECTOR)
    with pytest.raises(TypeError, match="the function for tpu.*returns|result.*the function for"):
        purax.jit(lambda x: lax.platform_dependent(x, cpu=jnp.sin, tpu=lambda v: v.sum()))(VECTOR)


# --- composite


def test_composite_is_one_operation_with_attributes():
    scale = lax.composite(lambda x, *, factor, axis=None: x * factor, "my.scale", version=3)
    run = purax.jit(lambda x: scale(x, factor=2.5, axis=None) + scale(x, factor=2.5))
    np.testing.assert_allclose(run(VECTOR), 5 * VECTOR)
    text = run.lower(VECTOR).as_text()
    assert text.count("stablehlo.composite") == 2 and text.count("func.func") == 2
    assert (
        'stablehlo.composite "my.scale"' in text
        and "version = 3 : i32" in text
        and "factor = " in text
        and "axis" not in text
    )
    np.testing.assert_allclose(scale(jnp.asarray(VECTOR), factor=2.0), 2 * VECTOR)
    np.testing.assert_allclose(
        purax.grad(lambda x: (scale(x, factor=2.0) ** 2).sum())(VECTOR), 8 * VECTOR, rtol=1e-6
    )
    np.testing.assert_allclose(purax.vmap(lambda x: scale(x, factor=2.0))(VECTOR), 2 * VECTOR)


def test_attributes_of_composites():
    def run(**attributes):
        return purax.jit(lambda x: lax.composite(lambda v, **_: v + 1, "my.op")(x, **attributes))(VECTOR)

    array = np.arange(4, dtype=np.int32)
    for attributes in (
        dict(a=1, b=True, c="text", d=(1, 2), e=[1.5, "x"]),
        dict(a=array, b=array.reshape(2, 2), c=np.float32(1), d=np.zeros(0, np.float32)),
    ):
        np.testing.assert_allclose(run(**attributes), VECTOR + 1)
    with pytest.raises(TypeError, match="attributes are numbers, strings"):
        run(a=object())


# --- barriers and tokens


def test_barriers_keep_values_in_the_program():
    twice = lambda x: lax.optimization_barrier(jnp.sin(x)) + jnp.sin(x)  # noqa: E731
    np.testing.assert_allclose(purax.jit(twice)(VECTOR), 2 * np.sin(VECTOR), rtol=1e-6)
    assert "optimization_barrier" in purax.jit(twice).lower(VECTOR).as_text()
    key, number = lax.optimization_barrier((purax.random.key(3), 1.0))
    assert float(number) == 1.0 and key == purax.random.key(3)
    token = lax.create_token()
    assert lax.after_all(token, jnp.ones(3)).shape == token.shape

    def sunk(x):
        lax.dce_sink({"y": jnp.cos(x)})
        return x

    assert "cos" in str(purax.make_jaxpr(sunk)(1.0)) and "cos" not in str(purax.make_jaxpr(lambda x: x)(1.0))
    np.testing.assert_array_equal(purax.jit(sunk)(VECTOR), VECTOR)
    assert (
        "cosine" in purax.jit(sunk).lower(VECTOR).as_text()
        or "dce" not in purax.jit(sunk).lower(VECTOR).as_text()
    )


def test_rng_uniform_is_uniform_and_never_the_same():
    for run in (
        lambda: lax.rng_uniform(1.0, 3.0, (20_000,)),
        purax.jit(lambda: lax.rng_uniform(1.0, 3.0, (20_000,))),
    ):
        first, second = np.asarray(run()), np.asarray(run())
        assert not np.array_equal(first, second)
        assert first.min() >= 1 and first.max() < 3 and abs(first.mean() - 2) < 0.02
    whole = np.asarray(
        purax.vmap(lambda n: lax.rng_uniform(jnp.int32(0), n, (1000,)))(jnp.array([3, 5], jnp.int32))
    )
    assert set(whole[0]) == {0, 1, 2} and set(whole[1]) == {0, 1, 2, 3, 4}
