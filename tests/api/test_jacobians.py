"""Jacobians and Hessians on arrays and trees, the same by forward and reverse differentiation and by jax."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp

jax = pytest.importorskip("jax")

x = np.array([0.5, -1.0, 2.0], np.float32)
y = np.array([[1.0, 2.0], [3.0, -1.0]], np.float32)

PROGRAMS = {
    "vector to vector": (lambda m, a: m.numpy.sin(a) * a.sum(), (x,), {}),
    "vector to scalar": (lambda m, a: m.numpy.prod(a), (x,), {}),
    "scalar to vector": (lambda m, a: a * x, (1.5,), {}),
    "matrix to vector": (lambda m, a: (a @ a).sum(0), (y,), {}),
    "one of two arguments": (lambda m, a, b: a * b.sum(), (x, y), dict(argnums=1)),
    "both arguments": (lambda m, a, b: a[:2] @ b, (x, y), dict(argnums=(0, 1))),
    "trees": (lambda m, p: {"u": p["a"] * p["b"].sum(), "v": [p["b"][0]]}, ({"a": x, "b": y},), {}),
    "trees and numbers": (lambda m, p: (p["a"] * p["s"], p["s"] ** 2), ({"a": x, "s": 2.0},), {}),
}


def compare(ours, theirs):
    ours_leaves, ours_tree = px.tree.flatten(ours)
    theirs_leaves, theirs_tree = jax.tree.flatten(theirs)
    assert str(ours_tree) == str(theirs_tree)
    for a, b in zip(ours_leaves, theirs_leaves, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("transformation", ["jacfwd", "jacrev"])
def test_as_jax(name, transformation):
    f, args, options = PROGRAMS[name]
    expected = getattr(jax, transformation)(lambda *a: f(jax, *a), **options)(*args)
    compare(getattr(px, transformation)(lambda *a: f(px, *a), **options)(*args), expected)
    compare(px.jit(getattr(px, transformation)(lambda *a: f(px, *a), **options))(*args), expected)


@pytest.mark.parametrize("name", ["vector to scalar", "trees and numbers"])
def test_hessians(name):
    f, args, _ = PROGRAMS[name]
    total = lambda m: lambda *a: sum(leaf.sum() for leaf in map(m.numpy.asarray, m.tree.leaves(f(m, *a))))  # noqa: E731
    compare(px.hessian(total(px))(*args), jax.hessian(total(jax))(*args))
    reverse_twice = px.jacrev(px.jacrev(total(px)))(*args)
    compare(reverse_twice, jax.hessian(total(jax))(*args))


def test_auxiliary_values():
    f = lambda a: (a**2, {"kept": a.sum(), "text": "t"})  # noqa: E731
    for transformation in (px.jacrev, px.jacobian):
        jacobian, aux = transformation(f, has_aux=True)(jnp.asarray(x))
        np.testing.assert_allclose(jacobian, np.diag(2 * x))
        assert float(aux["kept"]) == 1.5 and aux["text"] == "t"
    jacobian, aux = px.jacfwd(lambda a: (a**2, a.sum()), has_aux=True)(jnp.asarray(x))
    assert float(aux) == 1.5
    hessian, aux = px.hessian(lambda a: ((a**3).sum(), a[0]), has_aux=True)(jnp.asarray(x))
    np.testing.assert_allclose(hessian, np.diag(6 * x))
    assert float(aux) == 0.5


def test_holomorphic():
    z = jnp.array([1 + 1j, 0.5 - 2j])
    for transformation in (px.jacfwd, px.jacrev):
        np.testing.assert_allclose(
            transformation(lambda v: v**2 + v.sum(), holomorphic=True)(z),
            np.diag(2 * np.asarray(z)) + 1,
            rtol=1e-6,
        )


def test_empty_arguments():
    assert px.jacfwd(lambda a: a * 2)(jnp.ones(0)).shape == (0, 0)
    assert px.jacrev(lambda a: a * 2)(jnp.ones((0, 2))).shape == (0, 2, 0, 2)
    assert px.jacfwd(lambda a: jnp.ones(3) * a.sum())(jnp.ones(0)).shape == (3, 0)


def test_the_function_is_called_once():
    calls = []

    def f(a):
        calls.append(1)
        return jnp.sin(a)

    px.jacfwd(f)(jnp.ones(5))
    px.jacrev(f)(jnp.ones(5))
    assert len(calls) == 2


BAD = {
    "integers": (lambda: px.jacfwd(lambda a: a)(3), TypeError, "needs floating point arguments"),
    "integer result": (
        lambda: px.jacrev(lambda a: jnp.arange(3))(1.0),
        TypeError,
        "needs real floating point results",
    ),
    "complex argument": (
        lambda: px.jacfwd(lambda a: a)(1j),
        TypeError,
        "needs real arguments.*holomorphic=True",
    ),
    "complex result": (lambda: px.jacrev(lambda a: a * 1j)(1.0), TypeError, "holomorphic=True"),
    "real, holomorphic": (
        lambda: px.jacfwd(lambda a: a, holomorphic=True)(1.0),
        TypeError,
        "must be complex",
    ),
    "argnums": (lambda: px.jacrev(lambda a: a, argnums=1)(1.0), ValueError, "with respect to argnums=1"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_named(name):
    run, kind, message = BAD[name]
    with pytest.raises(kind, match=message) as error:
        run()
    assert f"at {__file__}:" in str(error.value)


def test_what_has_no_derivative_inside_of_a_derivative():
    """Tangents of integers, which jvp gives as float0, are results like others for a derivative around it."""
    pushed = lambda x: px.jvp(lambda x: (jnp.int32(3), x * x), (x,), (1.0,))  # noqa: E731
    (whole, square), (nothing, slope) = px.jacfwd(pushed)(2.0)
    assert whole.dtype == jnp.int32 and int(whole) == 0 and float(square) == 4.0
    assert nothing.dtype == px.dtypes.float0 and float(slope) == 2.0
