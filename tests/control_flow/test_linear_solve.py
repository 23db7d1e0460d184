"""`custom_linear_solve` and `custom_root` against jax's, and by what they are for."""

from __future__ import annotations

import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax import lax
from tests.control_flow.peers import agree

MATRIX = np.array([[3.0, 1.0], [0.5, 2.0]], np.float32)
VECTOR = np.array([1.0, 2.0], np.float32)


def solution(n):
    def solve(a, b):
        return n.lax.custom_linear_solve(
            lambda x: a @ x,
            b,
            lambda matvec, y: n.jnp.linalg.solve(a, y),
            lambda vecmat, y: n.jnp.linalg.solve(a.T, y),
        )

    return solve


def root(n):
    def cube_root(a):
        newton = lambda f, x: n.lax.fori_loop(0, 30, lambda i, x: x - (x**3 - a) / (3 * x * x), x)  # noqa: E731
        guess = n.jnp.ones(2)
        return n.lax.custom_root(lambda x: x**3 - a, guess, newton, lambda g, y: y / g(n.jnp.ones(2)))

    return cube_root


def total(n, f):
    return lambda *args: (f(*args) ** 2).sum()


SOLVED = {
    "value": lambda n: solution(n),
    "jit": lambda n: n.px.jit(solution(n)),
    "grad": lambda n: n.px.grad(total(n, solution(n)), (0, 1)),
    "jvp": lambda n: lambda a, b: n.px.jvp(solution(n), (a, b), (a * 2 + 1, b)),
    "vmap over b": lambda n: lambda a, b: n.px.vmap(solution(n), (None, 0))(a, n.jnp.stack([b, b * 2])),
    "vmap over A": lambda n: lambda a, b: n.px.vmap(solution(n), (0, None))(n.jnp.stack([a, a.T]), b),
    "vmap of grad": lambda n: (
        lambda a, b: n.px.vmap(n.px.grad(total(n, solution(n))), (0, None))(n.jnp.stack([a, a.T]), b)
    ),
    "hessian": lambda n: n.px.jit(n.px.hessian(total(n, solution(n)), 1)),
}
ROOTS = {
    "value": lambda n: root(n),
    "jit": lambda n: n.px.jit(root(n)),
    "grad": lambda n: n.px.grad(total(n, root(n))),
    "jacfwd": lambda n: n.px.jacfwd(root(n)),
    "vmap": lambda n: lambda b: n.px.vmap(root(n))(n.jnp.stack([b, b * 2])),
    "hessian": lambda n: n.px.jit(n.px.hessian(total(n, root(n)))),
}


@pytest.mark.parametrize("program", SOLVED.values(), ids=SOLVED)
def test_solutions_agree_with_jax(program):
    agree(program, MATRIX, VECTOR)


@pytest.mark.parametrize("program", ROOTS.values(), ids=ROOTS)
def test_roots_agree_with_jax(program):
    agree(program, VECTOR)


def test_the_solver_is_not_differentiated():
    """A loop that has no reverse derivative is fine, and so is a symmetric matrix with one solver for both."""

    def f(d, b):
        def solve(matvec, y):
            return lax.while_loop(
                lambda x: jnp.abs(matvec(x) - y).max() > 1e-6, lambda x: x + 0.2 * (y - matvec(x)), y * 0
            )

        return lax.custom_linear_solve(lambda x: d * x, b, solve, symmetric=True)

    d, b = jnp.array([2.0, 3.0]), jnp.array([1.0, 5.0])
    np.testing.assert_allclose(f(d, b), b / d, rtol=1e-5)
    slopes = purax.grad(lambda d, b: f(d, b).sum(), (0, 1))(d, b)
    np.testing.assert_allclose(slopes[0], -b / d**2, rtol=1e-4)
    np.testing.assert_allclose(slopes[1], 1 / d, rtol=1e-4)


def test_trees_and_further_results():
    b = {"x": jnp.ones(2), "y": jnp.float32(3)}
    halves = lambda v: {"x": v["x"] / 2, "y": v["y"] / 2}  # noqa: E731
    solved, steps = lax.custom_linear_solve(
        lambda v: {"x": 2 * v["x"], "y": 2 * v["y"]}, b,
        lambda A, v: (halves(v), {"steps": 7}), symmetric=True, has_aux=True
    )  # fmt: skip
    assert float(solved["y"]) == 1.5 and int(steps["steps"]) == 7
    found, aux = lax.custom_root(
        lambda x: x - 2.0, 0.0, lambda f, x: (x + 2.0, jnp.int32(4)), lambda g, y: y / g(1.0), has_aux=True
    )
    assert float(found) == 2.0 and int(aux) == 4


def test_reverse_needs_a_transposed_solver():
    f = lambda b: lax.custom_linear_solve(lambda x: 2.0 * x, b, lambda A, y: y / 2)  # noqa: E731
    assert float(purax.jvp(f, (1.0,), (1.0,))[1]) == 0.5
    with pytest.raises(TypeError, match="transpose_solve"):
        purax.grad(f)(1.0)


def test_types_are_checked():
    with pytest.raises(TypeError, match=r"solve must return the types.*f16\[2\].*f32\[2\]"):
        lax.custom_linear_solve(lambda x: x, jnp.ones(2), lambda A, y: y.astype("float16"))
    with pytest.raises(TypeError, match="matvec must return the structure"):
        lax.custom_linear_solve(lambda x: (x,), jnp.ones(2), lambda A, y: y)
    with pytest.raises(TypeError, match="custom_root: f must return"):
        lax.custom_root(lambda x: x[0], jnp.ones(2), lambda f, x: x, lambda g, y: y)
