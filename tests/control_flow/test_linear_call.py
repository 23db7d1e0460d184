"""`linear_call`: the function forwards, the given transpose backwards, and each the transpose of the other."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.custom_derivatives import linear_call


def call(r, x):
    """x / r, with a transpose that is ten times as large as it should be, to see that it is used."""
    return linear_call(lambda r, x: x / r, lambda r, c: 10 * c / r, r, x)


def test_the_given_transpose_is_used():
    for wrap in (lambda f: f, px.jit):
        assert float(wrap(call)(2.0, 3.0)) == 1.5
        assert [
            float(y) for y in wrap(lambda x, dx: px.jvp(lambda x: call(2.0, x), (x,), (dx,)))(3.0, 1.0)
        ] == [1.5, 0.5]
        assert float(wrap(px.grad(lambda x: call(2.0, x)))(3.0)) == 5.0
        assert float(wrap(px.grad(lambda x: call(2.0, x) ** 2))(3.0)) == 2 * 1.5 * 5.0


def test_transposing_twice_gives_the_function_back():
    def transposed(function):
        return lambda y: px.linear_transpose(function, 1.0)(y)[0]

    function = lambda x: call(2.0, x)  # noqa: E731
    for times, slope in enumerate((0.5, 5.0, 0.5, 5.0)):
        found = function
        for _ in range(times):
            found = transposed(found)
        assert float(found(1.0)) == slope


def test_residuals_are_differentiated_as_the_function_is():
    assert float(px.grad(call)(2.0, 3.0)) == -0.75
    _, tangent = px.jvp(call, (2.0, 3.0), (1.0, 1.0))
    assert float(tangent) == 0.5 - 0.75


def test_vmap_over_residuals_and_arguments():
    r, x = np.array([1.0, 2.0, 4.0], np.float32), np.array([3.0, 5.0, 7.0], np.float32)
    for axes in ((0, 0), (0, None), (None, 0)):
        args = [v if axis == 0 else v[0] for v, axis in zip((r, x), axes, strict=True)]
        wanted = np.broadcast_to(10 / args[0], 3)
        np.testing.assert_allclose(px.vmap(call, axes)(*args), args[1] / args[0] * np.ones(3))
        np.testing.assert_allclose(px.vmap(px.grad(call, 1), axes)(*args), wanted)
    total = px.grad(lambda x: px.vmap(lambda r: call(r, x))(r).sum())(2.0)  # one argument of all examples
    assert float(total) == pytest.approx(10 * (1 / r).sum())


def test_trees_captured_values_and_scans():
    weights = jnp.arange(6.0).reshape(2, 3)

    def f(scale, x):
        def forward(r, d):
            return {"y": weights @ d["a"] * r[0], "z": d["b"] * scale}

        def backward(r, c):
            return {"a": c["y"] @ weights * r[0], "b": c["z"] * scale}

        return linear_call(forward, backward, (2.0,), x)

    x = {"a": jnp.ones(3), "b": jnp.float32(4.0)}
    got = px.jit(f)(3.0, x)
    np.testing.assert_allclose(got["y"], 2 * np.asarray(weights).sum(1))
    assert float(got["z"]) == 12.0
    slope = px.grad(lambda x: f(3.0, x)["y"].sum() + f(3.0, x)["z"])(x)
    np.testing.assert_allclose(slope["a"], 2 * np.asarray(weights).sum(0))
    assert float(slope["b"]) == 3.0
    assert float(px.grad(lambda s: f(s, x)["z"])(3.0)) == 4.0
    loop = px.grad(lambda x: px.lax.scan(lambda y, r: (call(r, y), None), x, jnp.array([1.0, 2.0]))[0])
    assert float(loop(1.0)) == 50.0


def test_wrong_transposes_are_refused():
    with pytest.raises(
        TypeError, match=r"must return cotangents of the linear arguments, of structure PyTreeDef\(\*\)"
    ):
        linear_call(lambda r, x: x, lambda r, c: (c, c), (), 1.0)
    with pytest.raises(
        ValueError, match=r"returned f32\[3\] as the cotangent of a linear argument of type f32\[\]"
    ):
        linear_call(lambda r, x: x, lambda r, c: jnp.ones(3) * c, (), 1.0)
    with pytest.raises(TypeError, match="linear_call: fun_transpose must be a function, got 3"):
        linear_call(lambda r, x: x, 3, (), 1.0)
