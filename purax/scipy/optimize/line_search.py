"""A step along a direction that satisfies the strong Wolfe conditions.

Algorithms 3.5 and 3.6 of Nocedal and Wright, "Numerical Optimization", in one loop, so that the function is evaluated
in one place of the program: steps grow until an interval holds an acceptable one, which then shrinks. Where values
differ by rounding errors only, the slopes decide alone, as in Hager and Zhang's approximate Wolfe conditions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from purax import numpy as jnp
from purax.control_flow.while_loop import while_loop

DECREASE, CURVATURE = 1e-4, 0.9


class Point(NamedTuple):
    """A step with the value and the slope of the function there."""

    step: Any
    value: Any
    slope: Any


class Found(NamedTuple):
    """What the search found.

    Attributes:
        step, value, gradient: of the accepted step, or of the best one if none was.
        status: 0 if a step was accepted, 3 if the interval became empty, 5 if there were no evaluations left.
        evaluations: of the function and its gradient.
    """

    step: Any
    value: Any
    gradient: Any
    status: Any
    evaluations: Any


class _State(NamedTuple):
    count: Any
    status: Any  # -1 while searching
    is_zooming: Any
    low: Point  # the best step so far that satisfies the decrease condition; the last one tried while steps grow
    high: Point
    gradient: Any  # at `low`


def line_search(
    value_and_grad: Callable, x: Any, direction: Any, value: Any, gradient: Any, max_iterations: int
) -> Found:
    """A step for `x + step · direction`.

    Args:
        value_and_grad: the function and its gradient.
        x: where to start; `value` and `gradient` are those there.
        direction: of descent.
        max_iterations: how often the function may be evaluated.
    """
    dtype = x.dtype
    slope = jnp.dot(gradient, direction)
    # The value, as computed, is that of a point that differs from x by rounding errors at best.
    rounding = 4 * jnp.finfo(dtype).eps * (abs(value) + jnp.dot(abs(gradient), abs(x)))
    start = Point(jnp.zeros((), dtype), value, slope)

    def trial(state: _State) -> Any:
        low, high = state.low, state.high
        return jnp.where(
            state.is_zooming, _between(low, high), jnp.where(low.step == 0, jnp.ones((), dtype), 2 * low.step)
        )

    def search(state: _State) -> _State:
        step = trial(state)
        new_value, new_gradient = value_and_grad(x + step * direction)
        new = Point(step, new_value, jnp.dot(new_gradient, direction))
        is_flat = abs(new.value - value) <= rounding
        is_flat &= new.slope <= (2 * DECREASE - 1) * slope
        is_lower = (new.value <= value + DECREASE * step * slope) | is_flat
        is_best = (new.value < state.low.value) | (state.low.step == 0) | is_flat
        is_lower &= is_best & jnp.isfinite(new.value)
        is_accepted = is_lower & (abs(new.slope) <= -CURVATURE * slope)
        # While steps grow: too far if the function or the slope went up. Then low and high hold a minimum.
        towards_high = jnp.where(state.is_zooming, new.slope * (state.high.step - state.low.step), new.slope)
        turns = towards_high >= 0
        low = _choose(is_lower, new, state.low)
        high = _choose(~is_lower, new, _choose(turns, state.low, state.high))
        is_zooming = state.is_zooming | ~is_lower | turns
        is_empty = is_zooming & (abs(high.step - low.step) <= jnp.finfo(dtype).eps * abs(high.step))
        count = state.count + 1
        status = jnp.where(is_accepted, 0, jnp.where(is_empty, 3, jnp.where(count >= max_iterations, 5, -1)))
        new_gradient = jnp.where(is_lower, new_gradient, state.gradient)
        return _State(count, status.astype(jnp.int32), is_zooming, low, high, new_gradient)

    zero = jnp.zeros((), jnp.int32)
    first = _State(zero, zero - 1, jnp.zeros((), bool), start, start, gradient)
    last = while_loop(lambda state: state.status < 0, search, first)
    # A step that decreases the function is progress, even if its slope is steep.
    status = jnp.where((last.status != 0) & (last.low.step > 0) & (last.low.value < value), 0, last.status)
    return Found(last.low.step, last.low.value, last.gradient, status, last.count)


def _choose(condition: Any, point: Point, other: Point) -> Point:
    return Point(*(jnp.where(condition, a, b) for a, b in zip(point, other, strict=True)))


def _between(low: Point, high: Point) -> Any:
    """The minimum of the cubic through two points with their slopes; the middle if that is not well inside."""
    width = high.step - low.step
    d = low.slope + high.slope - 3 * (high.value - low.value) / jnp.where(width == 0, 1, width)
    inside = d * d - low.slope * high.slope
    root = jnp.sign(width) * jnp.sqrt(jnp.where(inside > 0, inside, 0))
    divisor = high.slope - low.slope + 2 * root
    step = high.step - width * (high.slope + root - d) / jnp.where(divisor == 0, 1, divisor)
    share = (step - low.step) / jnp.where(width == 0, 1, width)
    is_good = (inside > 0) & (divisor != 0) & (share > 0.1) & (share < 0.9)  # False if anything is NaN
    return jnp.where(is_good, step, low.step + width / 2)
