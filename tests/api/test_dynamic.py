"""`jit(f, dynamic=...)`: what the plain function gives, with a program for each bucket."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import lax
from purax.xla import compiler
from tests.export.test_symbolic import PROGRAMS

F32 = np.float32


def numbers(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(F32)


def same(got, expected, rtol=2e-5, atol=1e-5):
    left, right = px.tree.leaves(got), px.tree.leaves(expected)
    assert len(left) == len(right)
    for a, b in zip(left, right, strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


@pytest.fixture
def compiled(monkeypatch):
    """The programs that are compiled, or read from disk."""
    made: list[str] = []
    original = compiler.compile_program

    def counting(text, *args, **kwargs):
        made.append(text)
        return original(text, *args, **kwargs)

    monkeypatch.setattr(compiler, "compile_program", counting)
    return made


def axes_of(text):
    """The axes of a shape in text that are variables, with their names."""
    return {i: name for i, n in enumerate(text.split(",")) if (name := n.strip()).isidentifier()}


# Factorizations mix all rows, so that rows of padding cannot be left out of the results.
NOT_PADDED = ("solutions", "solutions of a batch")


@pytest.mark.parametrize("name", NOT_PADDED)
def test_what_cannot_be_padded_names_the_operation(name):
    function, text, shape = PROGRAMS[name]
    with pytest.raises(NotImplementedError, match="cannot be computed on padded arrays: its matrices are padded"):
        px.jit(function, dynamic=(axes_of(text),))(numbers(*shape))


@pytest.mark.parametrize(
    "name", [name for name, (_, text, _) in PROGRAMS.items() if axes_of(text) and name not in NOT_PADDED]
)
def test_padded_programs_give_what_plain_ones_give(name):
    function, text, shape = PROGRAMS[name]
    padded = px.jit(function, dynamic=(axes_of(text),))
    for more in (0, 2):
        x = numbers(*[n + more if axis in axes_of(text) else n for axis, n in enumerate(shape)])
        same(padded(x), px.jit(function)(x))
    assert "padded to" in padded.explain_dynamic()
    assert "without" not in padded.explain_dynamic()


def test_a_bucket_is_compiled_once(compiled):
    @px.jit(dynamic={"x": 0})
    def f(x, w):
        return jnp.tanh(x @ w).sum(axis=0), jnp.cumsum(x, axis=0)

    w = numbers(4, 3)
    f(numbers(8, 4), w)
    count = len(compiled)
    for n in (5, 6, 7, 8, 5):
        same(f(numbers(n, 4), w), f.exact.__wrapped__(numbers(n, 4), w))
    assert len(compiled) == count
    f(numbers(9, 4), w)
    assert len(compiled) == count + 1
    assert "n0 <= 8; n0 <= 16" in f.explain_dynamic()


def test_derivatives_compile_once_for_a_bucket(compiled):
    def loss(w, x):
        return jnp.mean(jnp.tanh(x @ w) ** 2) + jnp.max(x @ w)

    padded = px.jit(loss, dynamic={"x": 0})
    step = px.jit(px.value_and_grad(loss), dynamic=(None, 0))
    w = numbers(4, 3)
    for f in (px.value_and_grad(padded), step):
        same(f(w, numbers(8, 4)), px.value_and_grad(loss)(w, numbers(8, 4)))
    count = len(compiled)
    for n in (5, 7, 6):
        x = numbers(n, 4)
        expected = px.value_and_grad(loss)(w, x)
        del compiled[count:]
        for f in (px.value_and_grad(padded), step):
            same(f(w, x), expected)
        assert len(compiled) == count


def test_transformations_of_dynamic_functions():
    def f(x):
        return jnp.sin(x) * x.shape[0] + jnp.cumsum(x)

    padded, x = px.jit(f, dynamic=(0,)), numbers(6)
    same(px.jit(lambda x: padded(x) + 1)(x), f(x) + 1)
    same(px.vmap(padded)(np.stack([x, x + 1])), px.vmap(f)(np.stack([x, x + 1])))
    same(px.jvp(padded, (x,), (x,)), px.jvp(f, (x,), (x,)))
    same(px.jit(px.grad(lambda x: padded(x).sum()))(x), px.grad(lambda x: f(x).sum())(x))
    same(px.grad(lambda x: px.grad(lambda y: (padded(y) ** 2).sum())(x).sum())(x),
         px.grad(lambda x: px.grad(lambda y: (f(y) ** 2).sum())(x).sum())(x), rtol=1e-4)  # fmt: skip


def test_auto_takes_the_axes_that_vary(compiled):
    @px.jit(dynamic="auto")
    def f(x, w):
        return (x @ w).sum(axis=0)

    w = numbers(4, 3)
    for n in (7, 5, 6, 8):
        same(f(numbers(n, 4), w), (numbers(n, 4) @ w).sum(0))
    assert "n0 <= 8" in f.explain_dynamic()
    count = len(compiled)
    f(numbers(5, 4), w)
    assert len(compiled) == count


def test_auto_runs_what_cannot_be_padded_as_it_is():
    f = px.jit(jnp.linalg.eigvalsh, dynamic="auto")
    for n in (3, 4, 5):
        x = np.eye(n, dtype=F32) * 2
        same(f(x), np.full(n, 2, F32))
    assert "cannot vary" in f.explain_dynamic()


def test_what_cannot_be_padded_names_the_operation_and_the_line():
    f = px.jit(jnp.fft.fft, dynamic=(0,))
    with pytest.raises(NotImplementedError, match=r"`fft` of .*\[n0\].*padded arrays: the axis that is transformed"):
        f(numbers(5))
    g = px.jit(lambda x: jnp.fft.fft(x), dynamic=(0,))
    with pytest.raises(NotImplementedError, match="test_dynamic.py"):
        g(numbers(5))


def test_random_numbers_are_those_of_the_plain_program():
    def f(key, x):
        one, other = px.random.split(key)
        return (
            x + px.random.uniform(one, x.shape),
            px.random.bits(other, (x.shape[0], 3)),
            px.random.normal(one, (3, x.shape[0])),
            px.random.key_data(px.random.split(other, x.shape[0])),
        )

    padded = px.jit(f, dynamic={"x": 0})
    for partitionable in (False, True):
        with px.config.override(threefry_partitionable=partitionable):
            for n in (5, 6, 11):
                key, x = px.random.key(n), numbers(n)
                for a, b in zip(padded(key, x), px.jit(f)(key, x), strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-6, atol=0)


def test_masks_hold_back_what_is_not_finite():
    """Values behind the end are those of zeros that were made room with, and become NaN and infinities here."""

    def f(x):
        y = 1 / x
        return jnp.sum(y), jnp.max(jnp.log(x)), jnp.argmin(y), jnp.sum(y, where=y > 1), jnp.mean(x / x), y @ y

    padded, x = px.jit(f, dynamic=(0,)), np.abs(numbers(5)) + 0.1
    same(padded(x), f(x))
    same(px.grad(lambda x: padded(x)[0])(x), px.grad(lambda x: f(x)[0])(x))


def test_ties_infinities_and_nan():
    def f(x):
        return jnp.argmax(x), jnp.argmin(x), jnp.sort(x), jnp.argsort(x), lax.top_k(x, 2), jnp.max(x), jnp.median(x)

    padded = px.jit(f, dynamic=(0,))
    for x in ([-np.inf] * 5, [np.nan, 1, np.nan, 2, 0], [np.inf, np.inf, -np.inf, 0, 0], [0.0, -0.0, 0.0, 1, 1]):
        same(padded(np.array(x, F32)), px.jit(f)(np.array(x, F32)))


def test_several_dimensions_keywords_trees_and_static_arguments():
    @px.jit(dynamic={"batch": {0: "b", 1: "s"}, "mask": {0: "b", 1: "s"}}, static_argnames="scale", buckets=[4, 6, 100])
    def f(batch, mask, *, scale):
        weights = px.nn.softmax(jnp.where(mask, batch["x"], -jnp.inf), axis=1)
        return (weights * batch["y"]).sum(axis=1) * scale

    def make(b, s):
        return {"x": numbers(b, s), "y": numbers(b, s, seed=1)}, np.arange(s) < np.arange(1, b + 1)[:, None]

    for b, s in ((3, 5), (5, 3), (4, 4), (6, 2)):
        batch, mask = make(b, s)
        same(f(batch, mask=mask, scale=3.0), f.exact(batch, mask=mask, scale=3.0))
    assert "b <= 4, s <= 6" in f.explain_dynamic()


def test_sizes_at_which_the_program_is_another_one_run_exactly():
    @px.jit(dynamic=(0,))
    def f(x):
        return x * 2 if x.shape[0] == 4 else x * 3

    same(f(numbers(5)), numbers(5) * 3)
    same(f(numbers(4)), numbers(4) * 2)
    same(f(numbers(1)), numbers(1) * 3)
    same(f(numbers(0)), numbers(0))
    assert "takes n0 != 4" in f.explain_dynamic()


def test_captured_arrays_and_changed_globals():
    scale = jnp.arange(3.0)
    f = px.jit(lambda x: x @ scale, dynamic=(0,))
    same(f(numbers(5, 3)), numbers(5, 3) @ np.arange(3, dtype=F32))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dynamic": 3}, "dynamic must be"),
        ({"dynamic": "all"}, "dynamic must be"),
        ({"dynamic": (0,), "buckets": [0]}, "buckets must be"),
        ({"dynamic": (0,), "donate_argnums": 0}, "cannot be combined"),
        ({"buckets": [8]}, "`buckets` are for"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        px.jit(lambda x: x, **options)


def test_bad_axes():
    with pytest.raises(ValueError, match="names axis 2 of x, which has shape"):
        px.jit(lambda x: x, dynamic=(2,))(numbers(3, 3))
    with pytest.raises(ValueError, match=r"dimension 'b' of `<lambda>` has the sizes \[3, 4\] at once"):
        px.jit(lambda x, y: x, dynamic=({0: "b"}, {0: "b"}))(numbers(3), numbers(4))
    with pytest.raises(ValueError, match="names a dimension '2b'"):
        px.jit(lambda x: x, dynamic=({0: "2b"},))(numbers(3))
