"""Reverse differentiation of loops whose number of steps is unknown, in memory that does not depend on it.

Such a loop carries values, k, and what is linear in the tangents, k̇ ← A(k) k̇. Its transpose takes the steps
backwards, k̄ ← Aᵀ(k) k̄, and needs what each began with, the last first. The values alone are computed again: once to
count the steps, once to keep the state at the beginning of each of some tens of segments of equal length. In each
segment the same is done, two or three levels deep; a segment of the innermost level is done again for each of its
steps. So up to some thousands of steps are computed three or four times, and any number is right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from purax.core.primitive import LinearOperand
from purax.interpreters.simplify import without_effects
from purax.interpreters.staging import stage
from purax.interpreters.transpose import transpose_flat
from purax.primitives.elementwise.arithmetic import div, min_, sub
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.elementwise.logic import ge, lt
from purax.primitives.shape.broadcasting import broadcast_in_dim, materialize, zeros
from purax.primitives.shape.dynamic_slicing import dynamic_slice, dynamic_update_slice
from purax.primitives.shape.reshaping import reshape

_MOST_SEGMENTS = 128
_MOST_BYTES = 1 << 26  # of the states that are kept on one level
_FEW = 64  # segments, with which there is one more level

Repeat = Callable[[Callable, Callable, Any], Any]  # a condition, a body, and what is carried


def _number(x: int) -> np.ndarray:
    return np.array(x, np.int32)


def backward_program(
    condition: ClosedJaxpr,
    body: ClosedJaxpr,
    linear_consts: Sequence[bool],
    linear: Sequence[bool],
    repeat: Repeat,
) -> ClosedJaxpr:
    """The transpose of a loop.

    Args:
        condition: (its constants, carry) -> a boolean, which depends on nothing linear.
        body: (its constants, carry) -> carry.
        linear_consts: which constants of the body are linear.
        linear: which of what is carried is.
        repeat: records a loop.

    Returns:
        (constants of the condition, constants of the body and carry that are not linear, cotangents of the linear
        carry) -> cotangents of the linear constants and of the linear carry at the beginning.
    """
    condition, body = without_effects(condition), without_effects(body)
    n_carry = len(linear)
    cond_avals = condition.in_avals[: len(condition.in_avals) - n_carry]
    flags = [*linear_consts, *linear]
    fixed_avals = [a for a, is_linear in zip(body.in_avals, flags, strict=True) if not is_linear]
    n_fixed = len(linear_consts) - sum(linear_consts)
    linear_avals = [a for a, is_linear in zip(body.in_avals, flags, strict=True) if is_linear]
    carry_avals = linear_avals[sum(linear_consts) :]
    segments = _segments(fixed_avals[n_fixed:])

    def run(*args):
        cond_consts, rest = args[: len(cond_avals)], args[len(cond_avals) :]
        fixed, start = rest[:n_fixed], list(rest[n_fixed : len(fixed_avals)])
        cotangents = list(rest[len(fixed_avals) :])

        def all_of(values, blank):
            known = iter((*fixed, *values))
            return [
                blank(aval) if flag else next(known) for aval, flag in zip(body.in_avals, flags, strict=True)
            ]

        def goes_on(state):
            values = all_of(state[1], zeros)[len(linear_consts) :]
            return eval_jaxpr(condition.jaxpr, condition.consts, *cond_consts, *values)[0]

        def advance(values):
            results = eval_jaxpr(body.jaxpr, body.consts, *all_of(values, zeros))
            return [y for y, is_linear in zip(results, linear, strict=True) if not is_linear]

        def advance_by(values, count):
            step = lambda state: (add(state[0], _number(1)), advance(state[1]))  # noqa: E731
            return repeat(lambda state: lt(state[0], count), step, (_number(0), values))[1]

        def step_back(values, sums, outs):
            given = iter(outs)
            results = transpose_flat(
                body,
                all_of(values, LinearOperand),
                [next(given) if flag else Zero(a) for a, flag in zip(body.out_avals, linear, strict=True)],
            )
            found = [c for c in results if c is not None]
            totals = [s if type(c) is Zero else add(s, c) for s, c in zip(sums, found, strict=False)]
            return totals, [materialize(c) for c in found[len(sums) :]]

        def back(values, count, totals, level):
            """Goes back through `count` steps, of which the first begins with `values`."""
            if not level:

                def innermost(state):
                    i, found = state
                    return sub(i, _number(1)), step_back(advance_by(values, i), *found)

                return _downwards(repeat, innermost, count, totals)
            stride = div(add(count, _number(segments - 1)), _number(segments))

            def keep(state):
                i, now, kept = state
                now = advance_by(now, stride)
                return add(i, _number(1)), now, [_replaced(a, x, i) for a, x in zip(kept, now, strict=True)]

            kept = [_repeated(x, segments) for x in values]
            is_inside = lambda state: lt(mul(state[0], stride), count)  # noqa: E731
            used, _, kept = repeat(is_inside, keep, (_number(1), values, kept))

            def segment(state):
                i, found = state
                length = min_(stride, sub(count, mul(i, stride)))
                inside = [_taken(a, i) for a in kept]
                return sub(i, _number(1)), back(inside, length, found, level - 1)

            return _downwards(repeat, segment, used, totals)

        count = repeat(
            goes_on, lambda state: (add(state[0], _number(1)), advance(state[1])), (_number(0), start)
        )[0]
        sums = [zeros(aval) for aval in linear_avals[: sum(linear_consts)]]
        totals, outs = back(start, count, (sums, cotangents), 3 if segments < _FEW else 2)
        return [*totals, *outs]

    return stage(run, [*cond_avals, *fixed_avals, *carry_avals], f"backward_{body.jaxpr.name}")


def _segments(avals: Sequence[ShapedArray]) -> int:
    """How many states are kept at a time."""
    size = sum(math.prod(aval.shape) * max(getattr(aval.dtype, "itemsize", 8), 1) for aval in avals)
    return max(8, min(_MOST_SEGMENTS, _MOST_BYTES // max(size, 1)))


def _downwards(repeat: Repeat, step: Callable, count: Any, totals: Any) -> Any:
    """Repeats a step for `count` - 1, …, 0."""
    start = (sub(count, _number(1)), totals)
    return repeat(lambda state: ge(state[0], _number(0)), step, start)[1]


def _repeated(x: Any, count: int) -> Any:
    shape = aval_of(x).shape
    return broadcast_in_dim(x, (count, *shape), range(1, len(shape) + 1))


def _replaced(kept: Any, x: Any, i: Any) -> Any:
    shape = aval_of(x).shape
    return dynamic_update_slice(kept, reshape(x, (1, *shape)), [i, *[_number(0)] * len(shape)])


def _taken(kept: Any, i: Any) -> Any:
    shape = aval_of(kept).shape[1:]
    return reshape(dynamic_slice(kept, [i, *[_number(0)] * len(shape)], (1, *shape)), shape)
