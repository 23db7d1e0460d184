"""Iterative solutions of A x = b on vectors, where A is a function.

All methods take the product with A, b, the vector to start from, an approximate inverse of A as a function, the norm
that the residual is to have at most, and the largest number of iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purax import numpy as jnp
from purax.control_flow.scan import scan
from purax.control_flow.while_loop import while_loop
from purax.lax.linalg import triangular_solve


def _dot(x: Any, y: Any) -> Any:
    return jnp.vdot(x, y, precision="highest")


def _norm(x: Any) -> Any:
    """Without the care of `linalg.norm` for derivatives at 0, which these loops do not need."""
    return jnp.sqrt(_dot(x, x).real)


def _divide(x: Any, y: Any) -> Any:
    """x / y, and 0 where y is 0: a direction that has nothing to give."""
    return jnp.where(y == 0, 0, x / jnp.where(y == 0, 1, y))


def conjugate_gradients(
    product: Callable, b: Any, x: Any, precondition: Callable, limit: Any, maxiter: int
) -> Any:
    """Hestenes and Stiefel's method: residuals r, preconditioned z, directions p that are conjugate to each other."""

    def goes_on(state: Any) -> Any:
        _, r, _, _, count = state
        return (_norm(r) > limit) & (count < maxiter)

    def advance(state: Any) -> Any:
        x, r, p, gamma, count = state
        image = product(p)
        alpha = (gamma / _dot(p, image).real).astype(x.dtype)
        x, r = x + alpha * p, r - alpha * image
        z = precondition(r)
        new = _dot(r, z).real
        return x, r, z + (new / gamma).astype(x.dtype) * p, new, count + 1

    r = b - product(x)
    p = precondition(r)
    return while_loop(goes_on, advance, (x, r, p, _dot(r, p).real, 0))[0]


def stabilized_biconjugate_gradients(
    product: Callable, b: Any, x: Any, precondition: Callable, limit: Any, maxiter: int
) -> Any:
    """Van der Vorst's method. A breakdown, where a product that is divided by vanishes, ends it."""

    def goes_on(state: Any) -> Any:
        _, r, _, _, _, _, _, is_broken, count = state
        return (_norm(r) > limit) & ~is_broken & (count < maxiter)

    r = b - product(x)
    shadow = r
    one = jnp.ones((), b.dtype)

    def advance(state: Any) -> Any:
        x, r, p, v, rho, alpha, omega, _, count = state
        new_rho = _dot(shadow, r)
        beta = _divide(new_rho, rho) * _divide(alpha, omega)
        p = r + beta * (p - omega * v)
        better = precondition(p)
        v = product(better)
        alpha = _divide(new_rho, _dot(shadow, v))
        s = r - alpha * v
        better_s = precondition(s)
        t = product(better_s)
        is_done = _norm(s) <= limit  # then t may vanish
        omega = jnp.where(is_done, 0, _divide(_dot(t, s), _dot(t, t)))
        x = x + alpha * better + omega * better_s
        r = s - omega * t
        is_broken = (new_rho == 0) | (alpha == 0) | ((omega == 0) & ~is_done)
        return x, r, p, v, new_rho, alpha, omega, is_broken, count + 1

    zero = jnp.zeros_like(b)
    first = (x, r, zero, zero, one, one, one, jnp.zeros((), bool), 0)
    return while_loop(goes_on, advance, first)[0]


def _arnoldi(product: Callable, precondition: Callable, basis: Any, k: Any) -> tuple[Any, Any]:
    """The basis with the next vector, in row k + 1, and its coefficients: A M basis[k] = Σ h[i] basis[i].

    Orthogonalized twice, so that rounding errors do not build up. A product inside of the space gives a zero row.
    """
    image = product(precondition(basis[k]))
    size = _norm(image)
    coefficients = jnp.zeros(basis.shape[0], basis.dtype)
    for _ in range(2):
        parts = jnp.matmul(basis.conj(), image, precision="highest")
        image = image - jnp.matmul(parts, basis, precision="highest")
        coefficients = coefficients + parts
    rest = _norm(image)
    is_new = rest > jnp.finfo(basis.dtype).eps * size
    rest = jnp.where(is_new, rest, 0)
    image = jnp.where(is_new, image / jnp.where(is_new, rest, 1), 0)
    coefficients = coefficients.at[k + 1].set(rest.astype(basis.dtype))
    return basis.at[k + 1].set(image), coefficients


def _restarted(
    product: Callable, b: Any, x: Any, precondition: Callable, limit: Any, maxiter: int, improve: Callable
) -> Any:
    """Runs `improve`, from a residual to coefficients of basis vectors, until the residual is small."""

    def goes_on(state: Any) -> Any:
        _, _, size, previous, count = state
        # NaN and a residual that does not change any more end it too.
        return (size > limit) & (size < previous) & (count < maxiter)

    def advance(state: Any) -> Any:
        x, r, size, _, count = state
        new_x = x + precondition(improve(r, size))
        new_r = b - product(new_x)
        new_size = _norm(new_r)
        is_better = new_size < size
        x, r = jnp.where(is_better, new_x, x), jnp.where(is_better, new_r, r)
        return x, r, jnp.where(jnp.isnan(new_size), new_size, jnp.minimum(new_size, size)), size, count + 1

    r = b - product(x)
    size = _norm(r)
    return while_loop(goes_on, advance, (x, r, size, jnp.full_like(size, jnp.inf), 0))[0]


def _first_basis(r: Any, size: Any, restart: int) -> Any:
    basis = jnp.zeros((restart + 1, r.shape[0]), r.dtype)
    return basis.at[0].set(_divide(r, size.astype(r.dtype)))


def least_residuals(
    product: Callable, b: Any, x: Any, precondition: Callable, limit: Any, maxiter: int, restart: int
) -> Any:
    """GMRES of Saad and Schultz: the least residual in the space of `restart` products, when that is complete."""

    def improve(r: Any, size: Any) -> Any:
        basis, columns = scan(
            lambda basis, k: _arnoldi(product, precondition, basis, k),
            _first_basis(r, size, restart),
            jnp.arange(restart),
        )
        # min ‖size · e₁ - H y‖. Zero columns after a breakdown get coefficients 0.
        goal = jnp.zeros(restart + 1, r.dtype).at[0].set(size.astype(r.dtype))
        y = jnp.linalg.lstsq(columns.T, goal)[0]
        return jnp.matmul(y, basis[:-1], precision="highest")

    return _restarted(product, b, x, precondition, limit, maxiter, improve)


def incremental_least_residuals(
    product: Callable, b: Any, x: Any, precondition: Callable, limit: Any, maxiter: int, restart: int
) -> Any:
    """The same with Givens rotations, which tell the residual after every product."""

    def improve(r: Any, size: Any) -> Any:
        dtype = r.dtype

        def goes_on(state: Any) -> Any:
            k, _, _, _, goal = state
            return (k < restart) & (abs(goal[k]) > limit)

        def advance(state: Any) -> Any:
            k, basis, triangle, rotations, goal = state
            basis, column = _arnoldi(product, precondition, basis, k)

            def rotate(column: Any, inputs: Any) -> Any:
                i, (cosine, sine) = inputs
                upper, lower = column[i], column[i + 1]
                turned = column.at[i].set(cosine.conj() * upper + sine.conj() * lower)
                return jnp.where(i < k, turned.at[i + 1].set(cosine * lower - sine * upper), column), None

            column, _ = scan(rotate, column, (jnp.arange(restart), (rotations[:, 0], rotations[:, 1])))
            upper, lower = column[k], column[k + 1]
            length = jnp.sqrt(abs(upper) ** 2 + abs(lower) ** 2).astype(dtype)
            cosine = jnp.where(length == 0, 1, upper / jnp.where(length == 0, 1, length))
            sine = jnp.where(length == 0, 0, lower / jnp.where(length == 0, 1, length))
            column = column.at[k].set(length).at[k + 1].set(0)
            old = goal[k]
            goal = goal.at[k].set(cosine.conj() * old).at[k + 1].set(-sine * old)
            rotations = rotations.at[k].set(jnp.stack([cosine, sine]))
            return k + 1, basis, triangle.at[k].set(column[:-1]), rotations, goal

        goal = jnp.zeros(restart + 1, dtype).at[0].set(size.astype(dtype))
        blank = jnp.zeros((restart, restart), dtype)
        turns = jnp.zeros((restart, 2), dtype).at[:, 0].set(1)
        state = (0, _first_basis(r, size, restart), blank, turns, goal)
        k, basis, triangle, _, goal = while_loop(goes_on, advance, state)
        # Columns that were not made, or that are dependent on others, get 1 on the diagonal and coefficient 0.
        diagonal = jnp.diagonal(triangle)
        largest = jnp.max(abs(diagonal))
        is_used = (jnp.arange(restart) < k) & (abs(diagonal) > jnp.finfo(dtype).eps * largest)
        upper = jnp.where(is_used[:, None] & is_used[None], triangle.T, 0)
        upper = upper + jnp.diag(jnp.where(is_used, 0, 1).astype(dtype))
        y = triangular_solve(upper, jnp.where(is_used, goal[:-1], 0)[:, None], left_side=True)[:, 0]
        return jnp.matmul(y, basis[:-1], precision="highest")

    return _restarted(product, b, x, precondition, limit, maxiter, improve)
