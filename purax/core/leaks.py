"""`check_tracer_leaks`: finds tracers that outlive their transformation, and says who holds them."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Sequence
from typing import Any

from purax import errors
from purax.core import source
from purax.core.source import located
from purax.core.trace import Trace, Tracer

_STEPS = 6
# References to a trace that no tracer has: the caller's variable, the list, the variable of a loop over it, and the
# argument of `getrefcount`. To search the whole process for tracers takes 10 ms and more.
_HELD_HERE = 4


def check_leaks(traces: Sequence[Trace], what: str) -> None:
    """Raises `LeakError` if a tracer of a transformation that has ended is still alive.

    Args:
        traces: of the transformation; the caller holds each in one variable, and none of their tracers any more.
        what: was transformed, for the message.
    """
    if all(sys.getrefcount(trace) <= _HELD_HERE for trace in traces) or not _tracers_of(traces):
        return
    gc.collect()  # which takes long in a large process; without a tracer there is nothing to tell from garbage
    leaked = _tracers_of(traces)
    if not leaked:
        return
    lines: list[str] = []
    more = f"\n  and {len(leaked) - 5} more" if len(leaked) > 5 else ""
    for _ in range(min(len(leaked), 5)):
        tracer = leaked.pop(0)
        holders = describe_holders(tracer, leaked)
        if holders or not lines:  # not one that only another leaked tracer holds
            lines.append(f"\n  {tracer.describe()}")
            lines.extend(f"\n    held by {text}" for text in holders)
    raise located(
        errors.LeakError,
        f"traced values of {what} are still alive after it was transformed:{''.join(lines)}{more}\n"
        "  Return them from the function instead of storing them.",
    )


def _tracers_of(traces: Sequence[Trace]) -> list[Tracer]:
    return [x for x in gc.get_referrers(*traces) if isinstance(x, Tracer)]


def describe_holders(value: Any, *mine: Any) -> list[str]:
    """Who refers to a value, each as a path from something with a name where one is found."""
    found = []
    ignored = {id(x) for x in mine}
    for holder in _referrers(value, ignored):
        text = _path(value, holder, ignored, _STEPS)
        if text is not None and text not in found:
            found.append(text)
    return found[:3]


def _referrers(value: Any, ignored: set[int]) -> list[Any]:
    here = [
        x
        for x in gc.get_referrers(value)
        if id(x) not in ignored and not _is_ours(x) and not isinstance(x, types.TracebackType)
    ]
    here.sort(key=_is_global, reverse=True)  # the shortest way to a name first
    ignored.add(id(here))
    return here


def _is_ours(x: Any) -> bool:
    """Frames of this search, and what purax remembers, are not what the user looks for."""
    if isinstance(x, types.FrameType):
        return source.code_is_internal(x.f_code)
    if type(x).__module__.startswith("purax.") and not isinstance(x, Tracer):
        return True
    return type(x).__name__ in ("list_iterator", "tuple_iterator", "generator")


def _path(value: Any, holder: Any, ignored: set[int], steps: int) -> str | None:
    """How a holder refers to a value: `the global variable saved of __main__`, `[0] of the list …`."""
    if isinstance(holder, types.FrameType):
        names = [n for n, x in holder.f_locals.items() if x is value]
        name = f"the variable {names[0]} of" if names else "a temporary value of"
        return f"{name} {holder.f_code.co_name}, {holder.f_code.co_filename}:{holder.f_lineno}"
    if isinstance(holder, types.CellType):
        for function in _referrers(holder, ignored):
            if isinstance(function, tuple):
                for owner in _referrers(function, ignored):
                    if _is_closure(owner, function):
                        place = owner.__code__.co_freevars[[id(c) for c in function].index(id(holder))]
                        return f"the closure variable {place} of {owner.__qualname__}, {_line_of(owner)}"
        return None
    if isinstance(holder, dict):
        keys = [k for k, x in holder.items() if x is value]
        return _of_dict(holder, keys[0] if keys else None, ignored, steps)
    if isinstance(holder, (list, tuple)):
        index = next((i for i, x in enumerate(holder) if x is value), None)
        return _up(f"element {index} of a {type(holder).__name__}", holder, ignored, steps)
    if isinstance(holder, (set, frozenset)):
        return _up(f"a {type(holder).__name__}", holder, ignored, steps)
    if isinstance(holder, Tracer):
        return None
    names = [n for n in _attributes(holder) if getattr(holder, n, None) is value]
    what = f"the attribute {names[0]} of" if names else "an attribute of"
    return f"{what} a {type(holder).__module__}.{type(holder).__qualname__}"


def _is_closure(owner: Any, cells: tuple) -> bool:
    """Whether `cells` belong to a function of the user's."""
    is_function = isinstance(owner, types.FunctionType) and owner.__closure__ is cells
    return is_function and not source.code_is_internal(owner.__code__)


def _attributes(x: Any) -> list[str]:
    slots = [n for kind in type(x).__mro__ for n in getattr(kind, "__slots__", ())]
    return [*getattr(x, "__dict__", {}), *slots]


def _is_global(x: Any) -> bool:
    """Whether `x` is the dict of a module's variables."""
    return isinstance(x, dict) and "__builtins__" in x and isinstance(x.get("__name__"), str)


def _of_dict(holder: dict, key: Any, ignored: set[int], steps: int) -> str:
    if _is_global(holder):
        return f"the global variable {key} of the module {holder['__name__']}"
    for owner in _referrers(holder, ignored):
        if getattr(owner, "__dict__", None) is holder:
            return f"the attribute {key} of a {type(owner).__module__}.{type(owner).__qualname__}"
    return _up(f"the entry {key!r} of a dict", holder, ignored, steps)


def _up(text: str, holder: Any, ignored: set[int], steps: int) -> str:
    """`text`, and who holds the holder."""
    if steps:
        for outer in _referrers(holder, ignored):
            found = _path(holder, outer, ignored, steps - 1)
            if found is not None:
                return f"{text}, which is {found}"
    return text


def _line_of(function: types.FunctionType) -> str:
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"
