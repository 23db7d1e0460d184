"""What an expression of a function's summary stands for in a running frame, without running any code of the user's."""

from __future__ import annotations

import functools
import sys
import types
from typing import Any

from purax.purity.bytecode import Call, Expression
from purax.purity.outside import attributes
from purax.purity.ownership import is_user_function

UNRESOLVED = object()
_PASSING = frozenset(("purax.purity.control_flow", "purax.purity.control_flow_calls"))


def value_of(expression: Expression, frame: types.FrameType) -> Any:
    """What an expression stands for in a frame, without running any code of the user's."""
    kind = expression[0]
    if kind == "local":
        value = frame.f_locals.get(expression[1], UNRESOLVED)
        return value_of(expression[2], frame) if value is UNRESOLVED else value
    if kind in ("free", "param"):
        return frame.f_locals.get(expression[1], UNRESOLVED)
    if kind == "const":
        return expression[1]
    if kind == "global":
        value = frame.f_globals.get(expression[1], UNRESOLVED)
        return frame.f_builtins.get(expression[1], UNRESOLVED) if value is UNRESOLVED else value
    if kind == "attr":
        base = value_of(expression[1], frame)
        return UNRESOLVED if base is UNRESOLVED else attribute_of(base, expression[2])
    if kind == "item":
        base, key = value_of(expression[1], frame), value_of(expression[2], frame)
        if isinstance(base, (list, tuple, dict)) and isinstance(key, (int, str, tuple, bytes)):
            try:
                return base[key]  # type: ignore[index]  # what does not fit is caught
            except (KeyError, IndexError, TypeError):
                pass
        return UNRESOLVED
    if kind == "iterator":
        return value_of(expression[1], frame)
    if kind == "import":
        return sys.modules.get(expression[1].partition(".")[0], UNRESOLVED)
    if kind == "call":
        called: Call = expression[1]
        function = value_of(called.callee, frame)
        if function is globals:
            return frame.f_globals
        if function is type and len(called.args) == 1:
            value = value_of(called.args[0], frame)
            return UNRESOLVED if value is UNRESOLVED else type(value)
        if function is getattr and len(called.args) >= 2 and called.args[1][0] == "const":
            base = value_of(called.args[0], frame)
            return UNRESOLVED if base is UNRESOLVED else attribute_of(base, called.args[1][1])
        if function is vars and called.args:
            return getattr(value_of(called.args[0], frame), "__dict__", UNRESOLVED)
        if called.args and getattr(function, "__module__", "") in _PASSING:
            return value_of(called.args[0], frame)  # `_purax.call(f)` in a rewritten function is f
        if function is functools.partial and called.args:
            inner = value_of(called.args[0], frame)
            return functools.partial(inner) if inner is not UNRESOLVED and callable(inner) else UNRESOLVED
    if kind == "any":
        values = {id(v): v for v in (value_of(e, frame) for e in expression[1])}
        if len(values) == 1:
            return next(iter(values.values()))
    return UNRESOLVED


def attribute_of(base: Any, name: str) -> Any:
    """`base.name`, unless reading it would run code of the user's."""
    for parent in type(base).__mro__:
        found = parent.__dict__.get(name)
        if found is not None:
            if isinstance(found, property) and is_user_function(found.fget):
                return UNRESOLVED
            break
    else:
        if is_user_function(getattr(type(base), "__getattr__", None)) and name not in attributes(base):
            return UNRESOLVED
    try:
        return getattr(base, name)
    except Exception:
        return UNRESOLVED


def receiver_of(callee: Expression) -> Expression:
    """Whose method `getattr(x, "append")` or a name for `x.append` is."""
    while callee[0] == "local":
        callee = callee[2]
    if callee[0] == "attr":
        return callee[1]
    return callee[1].args[0] if callee[0] == "call" and callee[1].args else callee


def root_of(expression: Expression) -> str:
    while expression[0] in ("attr", "item", "local"):
        expression = expression[2] if expression[0] == "local" else expression[1]
    return expression[0]


def text_of(expression: Expression) -> str:
    """How the user wrote an expression."""
    kind = expression[0]
    if kind in ("global", "free", "param", "local"):
        return expression[1]
    if kind == "attr":
        base = text_of(expression[1])
        return f"{base}.{expression[2]}" if base else ""
    if kind == "item":
        base = text_of(expression[1])
        key = expression[2]
        return f"{base}[{key[1]!r}]" if base and key[0] == "const" else ""
    return ""
