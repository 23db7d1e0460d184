"""`vmap` is a stacked loop, whatever the axes, trees and names; and it says which argument does not fit."""

from __future__ import annotations

import re

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp

HERE = re.escape(__file__)


def numbers(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def stacked_loop(f, in_axes, out_axes, *args):
    size = next(x.shape[a] for x, a in zip(args, in_axes, strict=True) if a is not None)
    one = lambda x, a, i: jnp.asarray(x if a is None else np.take(x, i, a))  # noqa: E731
    rows = [f(*(one(x, a, i) for x, a in zip(args, in_axes, strict=True))) for i in range(size)]
    return np.stack([np.asarray(row) for row in rows], out_axes)


FUNCTIONS = {
    "elementwise": lambda x, y: jnp.sin(x) * y,
    "matmul": lambda x, y: x @ y.T,
    "reduction": lambda x, y: (x + y).sum(0) - y.max(1, keepdims=True)[:1, 0],
    "shapes": lambda x, y: jnp.concatenate([x.reshape(4, 3), y.T.reshape(4, 3)[::-1]]),
    "indexing": lambda x, y: x[1:, ::2] + y.at[0, 0].set(5.0)[:2, 1:3],
    "where": lambda x, y: jnp.where(x > y, x, 0.0),
    "sort": lambda x, y: jnp.sort(x, axis=0) + jnp.argsort(y, axis=1),
    "jit": lambda x, y: px.jit(lambda a, b: a * b.sum())(x, y),
    "cond": lambda x, y: px.lax.cond(x[0, 0] > 0, lambda a, b: a + b, lambda a, b: a * b, x, y),
    "scan": lambda x, y: px.lax.scan(lambda c, r: (c + r, c * r), y[0], x)[1],
    "while": lambda x, y: px.lax.while_loop(lambda c: c.sum() < 9.0, lambda c: c + jnp.abs(y) + 1, x),
    "grad": lambda x, y: px.grad(lambda a: (a**2 * y).sum())(x),
    "nothing batched in the result": lambda x, y: jnp.ones(3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (1, 2), (-1, -2), (2, None), (None, -1)])
def test_vmap_is_a_stacked_loop(name, axes):
    f = FUNCTIONS[name]
    args = [
        np.moveaxis(numbers(2, 3, 4, seed=i), 0, axes[i] % 3) if axes[i] is not None else numbers(3, 4)
        for i in (0, 1)
    ]
    expected = stacked_loop(f, axes, 0, *args)
    np.testing.assert_allclose(px.vmap(f, in_axes=axes)(*args), expected, rtol=2e-5, atol=2e-5)
    moved = px.vmap(f, in_axes=axes, out_axes=-1)(*args)
    np.testing.assert_allclose(moved, np.moveaxis(expected, 0, -1), rtol=2e-5, atol=2e-5)


def test_nested():
    x, y = numbers(2, 3), numbers(4, 3, seed=1)
    products = px.vmap(px.vmap(jnp.dot, in_axes=(None, 0)), in_axes=(0, None))(x, y)
    np.testing.assert_allclose(products, x @ y.T, rtol=1e-5)
    f = px.vmap(px.vmap(lambda a, b: a * b, in_axes=(1, None), out_axes=1), in_axes=(None, 0), out_axes=2)
    a, b = numbers(2, 4), numbers(3)
    np.testing.assert_allclose(f(a, b), a[:, :, None] * b, rtol=1e-6)


def test_trees_prefixes_and_none():
    f = lambda p, x, n: {"y": p["w"] * x + p["b"], "rest": (n, None)}  # noqa: E731
    p = {"w": numbers(5, 3), "b": numbers(3)}
    result = px.vmap(f, in_axes=({"w": 0, "b": None}, None, None), out_axes={"y": 1, "rest": None})(p, 2.0, 7)
    assert result["y"].shape == (3, 5) and int(result["rest"][0]) == 7 and result["rest"][1] is None
    np.testing.assert_allclose(result["y"], (p["w"] * 2 + p["b"]).T, rtol=1e-6)
    both = px.vmap(lambda p: p["w"] + p["b"], in_axes=0)({"w": numbers(5, 3), "b": numbers(5, 3)})
    assert both.shape == (5, 3)
    listed = px.vmap(lambda a, b: a + b, in_axes=[0, None])(numbers(3), 1.0)
    assert listed.shape == (3,)
    with_none = px.vmap(lambda a, b: a if b is None else b, in_axes=(0, None))(numbers(3), None)
    assert with_none.shape == (3,)


def test_keyword_arguments_are_batched_over_axis_0():
    np.testing.assert_allclose(
        px.vmap(lambda x, y: x * y, in_axes=(None,))(2.0, y=numbers(3)), 2 * numbers(3)
    )


def test_axis_size():
    assert px.vmap(lambda: jnp.ones(2), axis_size=3)().shape == (3, 2)
    assert px.vmap(lambda x: x, in_axes=None, axis_size=4)(1.0).shape == (4,)
    assert px.vmap(lambda x: x.sum(), axis_size=2)(numbers(2, 3)).shape == (2,)


def test_empty_batches():
    assert px.vmap(lambda x: jnp.sin(x).sum())(numbers(0, 3)).shape == (0,)
    assert px.vmap(px.grad(lambda x: (x**2).sum()))(numbers(0, 3)).shape == (0, 3)


def test_integers_booleans_and_numbers():
    assert px.vmap(lambda i: i % 2 == 0)(jnp.arange(4)).tolist() == [True, False, True, False]
    assert px.vmap(lambda x, k: x[k])(numbers(3, 4), jnp.array([0, 3, 1])).shape == (3,)


def test_weak_types_are_kept():
    assert px.vmap(lambda x: 2.0, axis_size=3, in_axes=None)(1.0).weak_type
    assert not px.vmap(lambda x: x * 2.0)(numbers(3)).weak_type


def test_a_function_of_tracers_of_two_batches():
    outer = px.vmap(lambda x: px.vmap(lambda y: x * y)(jnp.arange(3.0)))(jnp.arange(2.0))
    np.testing.assert_array_equal(outer, np.outer(np.arange(2), np.arange(3)))


def test_python_control_flow_on_what_is_not_batched():
    f = lambda x, n: x * 2 if n > 1 else x  # noqa: E731
    assert px.vmap(f, in_axes=(0, None))(jnp.ones(2), jnp.float32(3.0)).tolist() == [2.0, 2.0]


BAD = {
    "different sizes": (
        lambda: px.vmap(lambda p, x: x, in_axes=(0, 1))({"w": jnp.ones((3, 2))}, jnp.ones((2, 4))),
        ValueError,
        r"inconsistent sizes .*:\n  \* one axis had size 3: axis 0 of argument p\['w'\] of type float32\[3,2\];"
        r"\n  \* one axis had size 4: axis 1 of argument x",
    ),
    "axis_size": (lambda: px.vmap(lambda x: x, axis_size=4)(jnp.ones(3)), ValueError, "`axis_size` argument was 4"),
    "axis out of range": (
        lambda: px.vmap(lambda x: x, in_axes=2)(jnp.ones((3, 2))),
        ValueError,
        r"along axis 2, .* \(its shape is \(3, 2\)\): argument x of",
    ),
    "scalar": (
        lambda: px.vmap(lambda x, y: x)(jnp.ones(3), 2.0),
        ValueError,
        r"\(its shape is \(\)\): argument y of",
    ),
    "nothing batched": (lambda: px.vmap(lambda x: x, in_axes=None)(1.0), ValueError, "axis_size"),
    "too few in_axes": (
        lambda: px.vmap(lambda x, y: x, in_axes=(0,))(jnp.ones(3), 2.0),
        ValueError,
        "1 entries.*2 positional",
    ),
    "in_axes of another structure": (
        lambda: px.vmap(lambda p: p["a"], in_axes=({"b": 0},))({"a": jnp.ones(3)}),
        ValueError,
        "in_axes",
    ),
    "in_axes is text": (
        lambda: px.vmap(lambda x: x, in_axes="0")(jnp.ones(3)),
        TypeError,
        "in_axes must be an int",
    ),
    "in_axes holds text": (
        lambda: px.vmap(lambda x: x, in_axes=("0",))(jnp.ones(3)),
        TypeError,
        "ints and None",
    ),
    "out_axes is None": (
        lambda: px.vmap(lambda x: {"y": x}, out_axes=None)(jnp.ones(3)),
        ValueError,
        r"result \['y'\].*got axis spec None but output was batched on axis 0",
    ),
    "out_axes out of range": (
        lambda: px.vmap(lambda x: x, out_axes=1)(jnp.ones(3)),
        ValueError,
        "out_axes=1 does not fit",
    ),
    "out_axes of another structure": (
        lambda: px.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(jnp.ones(3)),
        ValueError,
        "out_axes",
    ),
    "not an array": (
        lambda: px.vmap(lambda x, n: x)(jnp.ones(3), "abc"),
        TypeError,
        "argument n of `<lambda>` is 'abc'",
    ),
    "not a function": (lambda: px.vmap(3), TypeError, "vmap needs a function"),
    "returns text": (lambda: px.vmap(lambda x: "text")(jnp.ones(3)), TypeError, "must return arrays"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_named(name):
    run, kind, message = BAD[name]
    with pytest.raises(kind, match=message) as error:
        run()
    if name not in ("not a function", "in_axes is text"):
        assert re.search(rf"at {HERE}:\d+", str(error.value)), str(error.value)
