"""`odeint`: ordinary differential equations, by the method of Dormand and Prince of order 5 with steps of its choice.

Values between the steps come from the continuous extension of the method (Hairer, Nørsett, Wanner, Solving Ordinary
Differential Equations I, II.6). Derivatives integrate the adjoint equation backwards, so that their memory does not
grow with the number of steps.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from purax import lax, tree_util
from purax import numpy as jnp
from purax.api.autodiff import vjp
from purax.api.vmap import vmap
from purax.control_flow.custom_vjp import closure_convert, custom_vjp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.flatten_util import ravel_pytree
from purax.interpreters.arguments import require_function

__all__ = ["odeint"]

# The nodes, the rows of the tableau, the weights of the error, and those of the continuous extension.
_NODES = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
_ROWS = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERROR = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
_DENSE = (
    -12715105075 / 11282082432, 0, 87487479700 / 32700410799, -10690763975 / 1880347072,
    701980252875 / 199316789632, -1453857185 / 822651844, 69997945 / 29380423,
)  # fmt: skip


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = np.inf,
    hmax: float = np.inf,
) -> Any:
    """Solves dy/dt = func(y, t, *args) with y(t[0]) = y0.

    Args:
        func: the right-hand side; a tree like `y0`.
        y0: the initial value, an array or a tree of arrays.
        t: the times at which the solution is wanted, increasing; the first is that of `y0`.
        *args: further arguments of `func`, trees of arrays.
        rtol: the relative error allowed in a step.
        atol: the absolute error allowed in a step.
        mxstep: the most steps from one time to the next.
        hmax: the largest step.

    Returns:
        The solution, like `y0` with a leading axis for the times, NaN from where no step is small enough or `mxstep`
        was not enough. It can be differentiated backwards with respect to `y0`, `t`, `args` and what `func` captures.

    >>> import purax.numpy as jnp
    >>> from purax.experimental.ode import odeint
    >>> y = odeint(lambda y, t: -y, 1.0, jnp.array([0.0, 1.0, 2.0]))
    >>> [round(float(x), 4) for x in y]
    [1.0, 0.3679, 0.1353]
    """
    require_function(func, "odeint")
    times = _inexact(t)
    if times.ndim != 1 or not times.size:
        raise located(ValueError, f"odeint: t must be a vector of times, got shape {times.shape}")
    y0 = tree_util.tree_map(_inexact, y0)
    start, unravel = ravel_pytree(y0)
    leaves, args_tree = tree_util.tree_flatten(args)
    leaves = [jnp.asarray(x) for x in leaves]

    def flat(y: Array, time: Array, *xs: Any) -> Array:
        slope = func(unravel(y), time, *tree_util.tree_unflatten(args_tree, xs))
        if tree_util.tree_structure(slope) != tree_util.tree_structure(y0):
            raise located(
                TypeError,
                f"odeint: func must return a tree like y0, {tree_util.tree_structure(y0)}, got "
                f"{tree_util.tree_structure(slope)}",
            )
        vector = ravel_pytree(slope)[0]
        if vector.shape != y.shape:
            raise located(ValueError, f"odeint: func must return arrays of the shapes of y0, got {slope}")
        return vector.astype(y.dtype)

    flat, captured = closure_convert(flat, start, times[0], *leaves)
    settings = (float(rtol), float(atol), float(mxstep), float(hmax))
    solution = _solution(flat, settings, start, times, *leaves, *captured)
    return vmap(unravel)(solution)


def _inexact(x: Any) -> Array:
    x = jnp.asarray(x)
    return x if dtypes.is_inexact(x.dtype) else x.astype(float)


@functools.partial(custom_vjp, nondiff_argnums=(0, 1))
def _solution(func: Callable, settings: tuple, y0: Array, t: Array, *args: Any) -> Array:
    """The solution at the times `t`, row by row."""
    rtol, atol, mxstep, hmax = settings
    function = functools.partial(_right_hand_side, func, args)
    slope = function(y0, t[0])

    def to_time(carry, target):
        def goes_on(state):
            _, _, time, step, *_, count = state
            return (time < target) & (count < mxstep) & (time + step > time)

        def advance(state):
            y, slope, time, step, *_, count = state
            new, slopes = _step(function, y, slope, time, step)
            wrong = step * _combine(slopes, _ERROR)
            allowed = atol + rtol * jnp.maximum(jnp.abs(y), jnp.abs(new))
            error = jnp.sqrt(jnp.mean((jnp.abs(wrong) / allowed) ** 2))
            error = jnp.where(jnp.isfinite(error), error, np.inf)
            factor = jnp.clip(0.9 * jnp.maximum(error, 1e-10) ** -0.2, 0.2, 10.0)
            wanted = jnp.minimum(step * factor, hmax)
            done = (new, slopes[-1], time + step, wanted, _interpolant(y, new, step, slopes), time, step)
            stays = (y, slope, time, wanted, *state[4:7])
            kept = tree_util.tree_map(functools.partial(jnp.where, error <= 1), done, stays)
            return (*kept, count + 1)

        *state, _ = lax.while_loop(goes_on, advance, (*carry, 0))
        _, _, time, _, polynomial, before, width = state
        part = (target - before) / jnp.where(width == 0, 1, width)
        value = _evaluate(polynomial, part)
        return tuple(state), jnp.where(time < target, np.nan, value)

    first = _first_step(function, y0, t[0], slope, rtol, atol)
    zero = jnp.zeros_like(t[0])
    polynomial = jnp.zeros((5, *y0.shape), y0.dtype).at[0].set(y0)
    carry = (y0, slope, t[0], jnp.minimum(first, hmax).astype(t.dtype), polynomial, t[0], zero)
    _, values = lax.scan(to_time, carry, t[1:])
    return jnp.concatenate([y0[None], values])


def _right_hand_side(func: Callable, args: Any, y: Array, time: Array) -> Array:
    return func(y, time, *args)


def _combine(slopes: list[Array], weights: Any) -> Array:
    return sum(w * k for w, k in zip(weights, slopes, strict=True) if w)


def _step(function: Callable, y: Array, slope: Array, time: Array, step: Array) -> tuple[Array, list[Array]]:
    """One step: the new value, and the slopes at the seven nodes, of which the last is the first of the next step."""
    slopes = [slope]
    for node, row in zip(_NODES, _ROWS, strict=True):
        new = y + step.astype(y.real.dtype) * _combine(slopes, row)
        slopes.append(function(new, time + step * float(node)))
    return new, slopes


def _interpolant(y: Array, new: Array, step: Array, slopes: list[Array]) -> Array:
    """The coefficients of the continuous extension over a step."""
    step = step.astype(y.real.dtype)
    difference = new - y
    bend = step * slopes[0] - difference
    return jnp.stack(
        [y, difference, bend, difference - step * slopes[-1] - bend, step * _combine(slopes, _DENSE)]
    )


def _evaluate(polynomial: Array, part: Array) -> Array:
    a, b, c, d, e = polynomial
    part = part.astype(polynomial.real.dtype)
    rest = 1 - part
    return a + part * (b + rest * (c + part * (d + rest * e)))


def _first_step(function: Callable, y0: Array, time: Array, slope: Array, rtol: float, atol: float) -> Array:
    """A first step (Hairer, Nørsett, Wanner, II.4): by how large the slope is, and how fast it changes."""
    scale = atol + rtol * jnp.abs(y0)
    norm = lambda x: jnp.sqrt(jnp.mean(jnp.abs(x / scale) ** 2))  # noqa: E731
    size, speed = norm(y0), norm(slope)
    step = jnp.where((size < 1e-5) | (speed < 1e-5), 1e-6, 0.01 * size / jnp.where(speed == 0, 1, speed))
    ahead = function(y0 + step * slope, time + step.astype(time.dtype))
    change = norm(ahead - slope) / step
    largest = jnp.maximum(speed, change)
    second = jnp.where(
        largest <= 1e-15, jnp.maximum(1e-6, step * 1e-3), (0.01 / jnp.maximum(largest, 1e-15)) ** 0.2
    )
    return jnp.minimum(100 * step, second)


def _forward(func: Callable, settings: tuple, y0: Array, t: Array, *args: Any) -> Any:
    solution = _solution(func, settings, y0, t, *args)
    return solution, (solution, t, args)


def _backward(func: Callable, settings: tuple, residuals: Any, cotangent: Array) -> Any:
    """With a = ∂L/∂y: da/dt = −a ∂f/∂y and dL/dθ = ∫ a ∂f/∂θ dt, integrated from each time to the one before."""
    solution, t, args = residuals
    moving = [dtypes.is_inexact(x.dtype) for x in args]
    thetas = [x for x, moves in zip(args, moving, strict=True) if moves]
    fixed = [x for x, moves in zip(args, moving, strict=True) if not moves]

    def function(y, time, *xs):
        varied, constant = iter(xs), iter(fixed)
        return func(y, time, *[next(varied) if moves else next(constant) for moves in moving])

    state, unravel = ravel_pytree((solution[0], cotangent[0], thetas))

    def reversed_slopes(state, minus_time, *xs):
        y, adjoint, _ = unravel(state)
        slope, pull = vjp(lambda v, *vs: function(v, -minus_time, *vs), y, *xs)
        pulled = pull(adjoint)
        return ravel_pytree((-slope, pulled[0], list(pulled[1:])))[0]

    def to_time_before(carry, row):
        adjoint, sums = carry
        y, own, time, before = row
        of_time = jnp.sum(own * function(y, time, *thetas)).real
        state = ravel_pytree((y, adjoint + own, sums))[0]
        times = jnp.stack([-time, -before])
        _, adjoint, sums = unravel(_solution(reversed_slopes, settings, state, times, *thetas)[1])
        return (adjoint, sums), of_time

    start = (jnp.zeros_like(solution[0]), [jnp.zeros_like(x) for x in thetas])
    rows = (solution[1:], cotangent[1:], t[1:], t[:-1])
    (adjoint, sums), of_times = lax.scan(to_time_before, start, rows, reverse=True)
    of_first = -jnp.sum(adjoint * function(solution[0], t[0], *thetas)).real
    found = iter(sums)
    return (
        adjoint + cotangent[0],
        jnp.concatenate([of_first[None], of_times]).astype(t.dtype),
        *[next(found) if moves else None for moves in moving],
    )


_solution.defvjp(_forward, _backward)
