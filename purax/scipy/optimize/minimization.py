"""`minimize`: the methods of Broyden, Fletcher, Goldfarb and Shanno, with a full matrix and with limited memory.

Both keep an estimate of the inverse of the Hessian, made of the changes of the gradient, and search along the direction
it gives. All state is in one loop, so that minimization can be compiled and vectorized.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from purax import numpy as jnp
from purax.api import autodiff
from purax.control_flow.while_loop import fori_loop, while_loop
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.numpy._programs import strong_array
from purax.primitives.elementwise.conversion import convert_element_type
from purax.scipy.optimize.line_search import line_search

LIMITED_MEMORY = "l-bfgs-experimental-do-not-rely-on-this"


class OptimizeResults(NamedTuple):
    """The result of `minimize`.

    Attributes:
        x: the minimum.
        success: whether the gradient is as small there as was asked for.
        status: 0 if so, 1 if there were too many iterations, 3 if no lower value was found along the direction, 5 if
            the search along it took too many evaluations, 6 if the value or the gradient is not finite.
        fun: the value there.
        jac: the gradient there.
        hess_inv: the estimate of the inverse of the Hessian, None with limited memory.
        nfev: how often the function was evaluated.
        njev: how often its gradient was.
        nit: the number of iterations.
    """

    x: Array
    success: bool | Array
    status: int | Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: int | Array
    njev: int | Array
    nit: int | Array


def minimize(
    fun: Callable,
    x0: Array,
    args: tuple = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """A minimum of a function of a vector, near a first guess.

    Args:
        fun: a function of a vector, and of `args`, whose result is a number. It is differentiated automatically.
        x0: the first guess, a vector.
        args: further arguments of `fun`.
        method: "BFGS", or "l-bfgs-experimental-do-not-rely-on-this" for limited memory ("L-BFGS" is the same), which is
            for many variables.
        tol: short for the option `gtol`.
        options: `maxiter` (iterations, 200 per variable); `gtol` (how small the gradient is to be, 1e-5); `norm` (by
            which norm, the maximum); for "BFGS" `line_search_maxiter` (evaluations per iteration, 20); for limited
            memory `maxcor` (how many changes are kept, 10), `ftol` (which relative change of the value ends it, 0),
            `maxfun`, `maxgrad` (evaluations in all) and `maxls` (in one iteration, 20).

    Returns:
        An `OptimizeResults`.

    >>> import purax as px, purax.numpy as jnp
    >>> result = px.scipy.optimize.minimize(lambda x: jnp.sum((x - 1) ** 4 + x**2), jnp.zeros(2), method="BFGS")
    >>> result.x.round(3), bool(result.success)
    (Array([0.41, 0.41], dtype=float32), True)
    """
    if not isinstance(args, tuple):
        raise located(
            TypeError, f"minimize: args must be a tuple, got {shown(args)}; write args=({shown(args)},)"
        )
    x = strong_array(x0, "minimize", 1)
    x = convert_element_type(x, dtypes.to_inexact_dtype(x.dtype))
    if x.ndim != 1 or not dtypes.is_floating(x.dtype):
        raise located(
            ValueError,
            f"minimize: x0 must be a vector of real numbers, got {x.aval.str_short()}; "
            "`flatten_util.ravel_pytree` makes a vector of other arrays",
        )
    methods: dict[str, Callable] = {"bfgs": _bfgs, LIMITED_MEMORY: _limited, "l-bfgs": _limited}
    solve = methods.get(str(method).lower())
    if solve is None:
        raise located(
            ValueError, f"minimize: method must be 'BFGS' or {shown(LIMITED_MEMORY)}, got {shown(method)}"
        )
    given = dict(options or {})
    if tol is not None:
        given.setdefault("gtol", tol)
    known = [p.name for p in inspect.signature(solve).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for option in given:
        if option not in known:
            raise located(
                TypeError,
                f"minimize: {shown(method)} has no option {shown(option)}; it has {', '.join(known)}",
            )

    def objective(x: Array) -> Any:
        return fun(x, *args)

    return solve(autodiff.value_and_grad(objective), x, **given)


class _State(NamedTuple):
    """Attributes: iteration, evaluations; x, value and gradient there; memory of the method; whether it has converged;
    the status of the last line search."""

    iteration: Any
    evaluations: Any
    x: Any
    value: Any
    gradient: Any
    memory: Any
    converged: Any
    status: Any


def _bfgs(
    value_and_grad: Callable,
    x: Array,
    *,
    maxiter: int | None = None,
    norm: Any = jnp.inf,
    gtol: Any = 1e-5,
    line_search_maxiter: int = 20,
) -> OptimizeResults:
    identity = jnp.eye(x.shape[0], dtype=x.dtype)

    def direction(memory: Any, gradient: Any) -> Any:
        return -jnp.matmul(memory, gradient, precision="highest")

    def update(memory: Any, iteration: Any, s: Any, y: Any) -> Any:
        """H ← (1 - ρ s yᵀ) H (1 - ρ y sᵀ) + ρ s sᵀ with ρ = 1 / sᵀy, where the curvature is positive."""
        product = jnp.dot(s, y)
        is_convex = product > 0
        rho = 1 / jnp.where(is_convex, product, 1)
        # The first change tells how large the Hessian is.
        scale = product / jnp.where(is_convex, jnp.dot(y, y), 1)
        memory = jnp.where((iteration == 0) & is_convex, scale * identity, memory)
        left = identity - rho * jnp.outer(s, y)
        new = jnp.matmul(jnp.matmul(left, memory, precision="highest"), left.T, precision="highest")
        return jnp.where(is_convex, new + rho * jnp.outer(s, s), memory)

    return _run(
        value_and_grad, x, identity, direction, update,
        maxiter=maxiter, norm=norm, gtol=gtol, searches=line_search_maxiter,
    )  # fmt: skip


def _limited(
    value_and_grad: Callable,
    x: Array,
    *,
    maxiter: int | None = None,
    norm: Any = jnp.inf,
    maxcor: int = 10,
    ftol: Any = 0.0,
    gtol: Any = 1e-5,
    maxfun: int | None = None,
    maxgrad: int | None = None,
    maxls: int = 20,
) -> OptimizeResults:
    blank = jnp.zeros((maxcor, x.shape[0]), x.dtype)
    start = (blank, blank, jnp.zeros(maxcor, x.dtype), jnp.ones((), x.dtype))

    def direction(memory: Any, gradient: Any) -> Any:
        """The two loops over the changes that are kept, oldest first; unused ones have ρ = 0 and change nothing."""
        steps, changes, rho, scale = memory

        def back(i: Any, state: Any) -> Any:
            q, alphas = state
            i = maxcor - 1 - i
            alpha = rho[i] * jnp.dot(steps[i], q)
            return q - alpha * changes[i], alphas.at[i].set(alpha)

        q, alphas = fori_loop(0, maxcor, back, (-gradient, jnp.zeros(maxcor, gradient.dtype)))

        def forth(i: Any, r: Any) -> Any:
            return r + (alphas[i] - rho[i] * jnp.dot(changes[i], r)) * steps[i]

        return fori_loop(0, maxcor, forth, scale * q)

    def update(memory: Any, iteration: Any, s: Any, y: Any) -> Any:
        steps, changes, rho, scale = memory
        product = jnp.dot(s, y)
        is_convex = product > 0
        safe = jnp.where(is_convex, product, 1)
        new = (
            jnp.roll(steps, -1, 0).at[-1].set(s),
            jnp.roll(changes, -1, 0).at[-1].set(y),
            jnp.roll(rho, -1).at[-1].set(1 / safe),
            safe / jnp.where(is_convex, jnp.dot(y, y), 1),
        )
        return tuple(jnp.where(is_convex, a, b) for a, b in zip(new, memory, strict=True))

    limits = [n for n in (maxfun, maxgrad) if n is not None]
    result = _run(
        value_and_grad, x, start, direction, update,
        maxiter=maxiter, norm=norm, gtol=gtol, searches=maxls, ftol=ftol, most=min(limits) if limits else None,
    )  # fmt: skip
    return result._replace(hess_inv=None)


def _run(
    value_and_grad: Callable,
    x: Array,
    memory: Any,
    direction: Callable,
    update: Callable,
    *,
    maxiter: int | None,
    norm: Any,
    gtol: Any,
    searches: int,
    ftol: Any = None,
    most: int | None = None,
) -> OptimizeResults:
    """The loop that both methods share. `direction` and `update` are of the method's memory."""
    maxiter = 200 * x.shape[0] if maxiter is None else maxiter

    def is_small(gradient: Any) -> Any:
        return jnp.linalg.norm(gradient, ord=norm) < gtol

    def goes_on(state: _State) -> Any:
        result = ~state.converged & (state.status == 0) & (state.iteration < maxiter)
        return result if most is None else result & (state.evaluations < most)

    def advance(state: _State) -> _State:
        towards = direction(state.memory, state.gradient)
        # Rounding errors can spoil the estimate; the gradient itself always leads downwards.
        is_descent = jnp.dot(towards, state.gradient) < 0
        towards = jnp.where(is_descent, towards, -state.gradient)
        # Nothing is known yet about how far to go: the first step to try is no longer than 1.
        length = jnp.where(state.iteration == 0, jnp.linalg.norm(towards), 1)
        towards = towards / jnp.maximum(length, 1)
        found = line_search(value_and_grad, state.x, towards, state.value, state.gradient, searches)
        s = found.step * towards
        kept = update(state.memory, state.iteration, s, found.gradient - state.gradient)
        converged = is_small(found.gradient)
        if ftol is not None:
            change = abs(state.value - found.value)
            size = jnp.maximum(jnp.maximum(abs(state.value), abs(found.value)), 1)
            converged |= (found.status == 0) & (change <= ftol * size) & (jnp.asarray(ftol) > 0)
        status = jnp.where(converged, 0, found.status).astype(jnp.int32)
        return _State(
            state.iteration + 1,
            state.evaluations + found.evaluations,
            state.x + s,
            found.value,
            found.gradient,
            kept,
            converged,
            status,
        )

    value, gradient = value_and_grad(x)
    value = convert_element_type(value, x.dtype)
    zero = jnp.zeros((), jnp.int32)
    is_finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
    first = _State(
        zero, zero + 1, x, value, gradient, memory, is_small(gradient), jnp.where(is_finite, zero, 6)
    )
    last = while_loop(goes_on, advance, first)
    status = jnp.where(last.converged, 0, jnp.where(last.status != 0, last.status, 1)).astype(jnp.int32)
    return OptimizeResults(
        x=last.x,
        success=last.converged,
        status=status,
        fun=last.value,
        jac=last.gradient,
        hess_inv=last.memory,
        nfev=last.evaluations,
        njev=last.evaluations,
        nit=last.iteration,
    )
