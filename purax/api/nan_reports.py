"""`debug_nans` and `debug_infs`: find the operation that first made a NaN or an infinity.

While one of the flags is on, `CheckedTrace` takes the place of the eager trace. It looks at the results of every
operation. Where those of a compiled program are bad, the program runs again equation by equation, which ends at the
equation to blame. Operations that only move elements around are never blamed, nor an infinity that came from another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.config import config
from purax.core import dtypes, effects, source
from purax.core.array import Array
from purax.core.avals import aval_of
from purax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from purax.core.trace import current, interpreting, set_eager_trace
from purax.execution.eager import EagerTrace, eager
from purax.xla.array import DeviceArray


class CheckedTrace(EagerTrace):
    """The eager trace, with a look at every result."""

    __slots__ = ()

    def process(self, primitive, operands, params):
        if not (config.debug_nans or config.debug_infs):
            _switch()
            return super().process(primitive, operands, params)
        if current.interprets and not self._has_results(primitive, operands, params):
            return []  # effects have happened already
        results = super().process(primitive, operands, params)
        outs = results if primitive.multiple_results else (results,)
        for position, y in enumerate(outs):
            kind = bad_kind(y)
            if kind is not None and primitive.can_make(kind):
                self.blame(primitive, operands, params, kind, position, y)
        return results

    def _has_results(self, primitive, operands, params) -> bool:
        if not primitive.runs_itself or not primitive.effects(**params):
            return True
        return bool(primitive.infer(*[aval_of(x) for x in operands], **params))

    def blame(self, primitive, operands, params, kind: str, position: int, result: Any) -> None:
        """Raises an error that names the operation, or the equation inside of it, that made a bad value."""
        inside = getattr(primitive, "values_inside", None)
        if inside is not None and not effects.any_unrepeatable(primitive.effects(**params)):
            for eqn, values, results in inside(*operands, **params):
                for y in results:
                    own = None if y is None else bad_kind(y)
                    if own is not None and eqn.primitive.can_make(own):
                        given = [x for x in values if x is not None]
                        extra = "\n  The first index is that of the device."
                        raise _error(eqn.primitive, given, own, y, extra, eqn.source)
            return  # no equation made it: it was passed to the program
        if not primitive.calls_python and _has_program(params):
            if not current.interprets and not effects.any_unrepeatable(primitive.effects(**params)):
                with interpreting(self):
                    again = primitive.run(*operands, **params)
                if bad_kind(again[position]) is not None:
                    return  # no equation made it: it is written into the program, or was passed to it
                extra = (
                    "\n  Only the compiled program does: its equations, run one by one, give other values."
                )
                raise _error(primitive, operands, kind, result, extra)
            if current.interprets:
                return  # the equations inside have been looked at
        if kind == "inf" and any(bad_kind(x) is not None for x in operands):
            return
        raise _error(primitive, operands, kind, result)


def _has_program(params: dict[str, Any]) -> bool:
    return any(
        hasattr(x, "eqns") or callable(x)
        for value in params.values()
        for x in (value if type(value) is tuple else (value,))
    )


def bad_kind(x: Any) -> str | None:
    """ "nan" or "inf" if the value has one that is looked for."""
    dtype = aval_of(x).dtype
    if dtypes.is_extended(dtype) or not dtypes.is_inexact(dtype):
        return None
    value = _value(x)
    if config.debug_nans and np.any(np.isnan(value)):
        return "nan"
    if config.debug_infs and np.any(np.isinf(value)):
        return "inf"
    return None


def _value(x: Any) -> np.ndarray:
    return x.host_value() if isinstance(x, DeviceArray) else np.asarray(x)


def _error(
    primitive,
    operands: Sequence[Any],
    kind: str,
    result: Any,
    extra: str = "",
    location: source.Location | None = None,
) -> FloatingPointError:
    value = _value(result)
    is_bad = np.isnan(value) if kind == "nan" else np.isinf(value)
    index = tuple(int(i) for i in np.argwhere(is_bad)[0])
    name = primitive.name
    types = ", ".join(aval_of(x).str_short() for x in operands)
    where = f" at index {index if len(index) != 1 else index[0]}" if index else ""
    message = (
        f"invalid value ({kind}) encountered in {name}: the result {aval_of(result).str_short()} of "
        f"{name}({types}) has "
        f"{int(is_bad.sum())} of {value.size} elements {kind}"
    )
    shown = [_element(x, index, value.shape) for x in operands]
    if shown and all(text is not None for text in shown):
        message += f"\n {where or ' there'}: {name}({', '.join(map(str, shown))}) = {value[index]}"
    elif where:
        message += f", the first{where}"
    if kind == "nan" and any(
        bad_kind(x) == "nan" for x in operands if isinstance(x, (Array, np.ndarray, np.generic))
    ):
        message += "\n  An operand was NaN already: it was passed in so."
    message += extra
    location = location or source.names.location
    frame = source.user_frame()
    caller = (
        f"{frame.f_code.co_filename}:{frame.f_lineno} ({frame.f_code.co_name})" if frame is not None else "?"
    )
    if location is not None and location.backward:
        message += f"\n  This is the backward pass of the line below, differentiated at {caller}"
    elif location is not None:
        message += f"\n  The program was called at {caller}"
    return source.located(FloatingPointError, message, at=location)


def _element(x: Any, index: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """The element of an operand that a bad element of a result was computed from, if it is clear which."""
    value = _value(x)
    if value.ndim == 0:
        return value[()]
    return value[index] if value.shape == shape else None


checked = CheckedTrace(None)


def look_at_results(name: str, program: ClosedJaxpr, operands: Sequence[Any], results: Sequence[Any]) -> None:
    """What `CheckedTrace` does, for a program that was compiled ahead of time, which no trace sees."""
    if not (config.debug_nans or config.debug_infs):
        return
    for y in results:
        kind = bad_kind(y)
        if kind is None:
            continue
        is_there = not any(isinstance(x, DeviceArray) and x.is_deleted() for x in operands)
        if is_there and not effects.any_unrepeatable(program.effects):
            with interpreting(checked):
                eval_jaxpr(program.jaxpr, program.consts, *operands)
            return  # no equation made it: it was passed to the program
        raise source.located(
            FloatingPointError,
            f"invalid value ({kind}) encountered in the compiled `{name}`: the result {aval_of(y).str_short()} has "
            "some. Its arguments are given away or it has effects: to find the operation, call the function "
            "without these.",
        )


def _switch(_: Any = None) -> None:
    """Puts the trace that the flags ask for in place: for this thread, and for new ones unless it overrides them.

    Where coroutines have flags of their own, the checking trace serves all of them: it asks at each operation.
    """
    is_wanted = config.debug_nans or config.debug_infs or config.is_shared_by_coroutines
    wanted = checked if is_wanted else eager
    if current.trace is (eager if wanted is checked else checked):
        current.trace = wanted
    if not {"debug_nans", "debug_infs"} & set(config.overrides):
        set_eager_trace(wanted)


config.on_change("debug_nans", _switch)
config.on_change("debug_infs", _switch)
if config.debug_nans or config.debug_infs:
    _switch()
