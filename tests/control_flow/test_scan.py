"""`scan`: equal to jax's under every transformation; errors name the leaf of the carry."""

import jax
import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.xla import compiler
from tests.control_flow.peers import TRANSFORMED, agree, pairs

X = np.array([0.5, -1.0, 2.0, 0.1], np.float32)


def accumulate(n, **options):
    return lambda x: n.lax.scan(lambda c, v: (n.jnp.tanh(c + v), c * v), 0.3, x, **options)


def linear_recurrence(n):
    return lambda x: n.lax.scan(lambda c, v: (x[0] * c + v, c), n.jnp.float32(1.0), x)


def tree_carry(n):
    def step(carry, v):
        a, b = carry["a"], carry["b"]
        return {"a": b * v, "b": a + n.jnp.sin(b)}, {"y": a * b, "z": v}

    return lambda x: n.lax.scan(step, {"a": x[0], "b": n.jnp.float32(0.5)}, x)


def carry_matrix(n):
    return lambda x: n.lax.scan(lambda w, v: (w * v + n.jnp.outer(x, x), n.jnp.sum(w)), n.jnp.outer(x, x), x)[0]


def nested(n):
    inner = lambda c, v: (c * n.jnp.cos(v), c + v)  # noqa: E731
    return lambda x: n.lax.scan(lambda c, v: n.lax.scan(inner, c + v, x), n.jnp.float32(1.0), x)


def with_cond(n):
    def step(c, v):
        return n.lax.cond(v > 0, lambda a: a * 2, lambda a: a - 1, c), v * c

    return lambda x: n.lax.scan(step, x[1], x)


PROGRAMS = {
    "accumulate": accumulate,
    "reverse": lambda n: accumulate(n, reverse=True),
    "unroll 2": lambda n: accumulate(n, unroll=2),
    "unroll all": lambda n: accumulate(n, unroll=True),
    "linear recurrence": linear_recurrence,
    "tree carry": tree_carry,
    "matrix carry": carry_matrix,
    "nested": nested,
    "with cond": with_cond,
    "no inputs": lambda n: lambda x: n.lax.scan(lambda c, _: (c * 0.5 + 1, c), x, None, length=3),
    "integer carry beside": lambda n: lambda x: n.lax.scan(
        lambda c, v: ((c[0] + 1, c[1] * v), c[1] * c[0]), (0, x[0]), x
    )[1],
    "fori_loop": lambda n: lambda x: n.lax.fori_loop(0, 4, lambda i, v: v * 0.9 + n.jnp.sin(v) * i, x),
}


@pytest.mark.parametrize(("what", "how"), pairs(PROGRAMS, ("accumulate", "tree carry")))
def test_agrees_with_jax(what, how):
    agree(lambda n: TRANSFORMED[how](n, PROGRAMS[what](n)), X, rtol=1e-4, atol=2e-5)


def test_long_loops_run_compiled_and_agree_with_short_ones():
    step = lambda c, v: (c + v, c)  # noqa: E731
    xs = np.arange(3000, dtype=np.float32) % 7
    total, partial = px.lax.scan(step, 0.0, jnp.asarray(xs))
    assert float(total) == xs.sum()
    np.testing.assert_array_equal(partial, np.concatenate([[0], np.cumsum(xs)[:-1]]))


def test_zero_steps():
    carry, ys = px.lax.scan(lambda c, v: (c + v, v * 2), 1.0, jnp.zeros((0, 3)).sum(1))
    assert float(carry) == 1.0 and ys.shape == (0,)


def test_fresh_lambdas_compile_once_per_program():
    xs = jnp.ones(2000)
    px.lax.scan(lambda c, v: (c * 0.5 + v, v), 0.0, xs)
    before = compiler.stats.compiles
    for _ in range(3):
        px.lax.scan(lambda c, v: (c * 0.5 + v, v), 0.0, xs)
    assert compiler.stats.compiles == before


def test_reverse_differentiation_of_a_long_scan_agrees_with_jax():
    def loss(n):
        return lambda x: n.lax.scan(lambda c, v: (0.9 * c + n.jnp.sin(v), c * v), 0.0, x)[1].sum()

    x = np.linspace(-1, 1, 1000).astype(np.float32)
    given = px.grad(loss(type("n", (), {"lax": px.lax, "jnp": jnp})))(jnp.asarray(x))
    wanted = jax.grad(loss(type("n", (), {"lax": jax.lax, "jnp": jax.numpy})))(x)
    np.testing.assert_allclose(given, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: px.lax.scan(lambda c, x: (jnp.stack([c, c]), x), 0.0, X), TypeError, ["carry", "f32[]", "f32[2]"]),
        (
            lambda: px.lax.scan(lambda c, x: ({"w": c["w"].astype(int)}, x), {"w": jnp.float32(0)}, X),
            TypeError,
            ["carry['w']", "f32[]", "i32[]"],
        ),
        (lambda: px.lax.scan(lambda c, x: ((c, c), x), 0.0, X), TypeError, ["structure"]),
        (lambda: px.lax.scan(lambda c, x: c, 0.0, X), TypeError, ["pair"]),
        (lambda: px.lax.scan(lambda c, x: (c, x), 0.0), ValueError, ["length"]),
        (lambda: px.lax.scan(lambda c, x: (c, x), 0.0, X, length=3), ValueError, ["(4,)", "length is 3"]),
        (
            lambda: px.lax.scan(lambda c, x: (c, x), 0.0, {"a": X, "b": X[:2]}),
            ValueError,
            ["['a']", "(4,)", "['b']", "(2,)"],
        ),
        (lambda: px.lax.scan(lambda c, x: (c, x), 0.0, jnp.float32(1)), ValueError, ["scalar"]),
        (lambda: px.lax.scan(3, 0.0, X), TypeError, ["function"]),
    ],
)
def test_bad_input(call, kind, words):
    with pytest.raises(kind) as found:
        call()
    for word in words:
        assert word in str(found.value)
