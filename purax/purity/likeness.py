"""When functions are alike: what `Captures` finds of side effects in one, it finds in the other.

They have the same code, and close over what is alike: equal numbers, the same modules and functions of libraries,
arrays of one class (what is in them decides nothing), and functions that are alike. So a closure that is made anew for
each call, as `lambda x: x @ w`, needs to be looked into only once.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Hashable
from typing import Any

import numpy as np

from purax.core.array import Array
from purax.purity.ownership import is_fixed_function, is_user_class, is_user_code

_SAME = (types.ModuleType, types.BuiltinFunctionType, np.ufunc, np.generic, np.dtype)  # told by what they are
_EQUAL = frozenset((int, float, complex, bool, str, bytes, type(None)))
_MANY = 16
_DEPTH = 6


def likeness(function: Any) -> tuple[tuple[Hashable, ...], list[Any]] | None:
    """What functions that are alike have in common, and what must be kept for it to mean the same; None if it is not
    known what this one can do.

    >>> likeness(lambda x: x)[0] == likeness(lambda x: x)[0]  # which is not the same code
    False
    """
    parts: list[Any] = []
    kept: list[Any] = []
    return (tuple(parts), kept) if _describe(function, parts, kept, 0) else None


def _describe(x: Any, parts: list[Any], kept: list[Any], depth: int) -> bool:
    """Adds what tells of a value whether it is like another one; whether that is possible."""
    kind = type(x)
    parts.append(kind)
    if kind in _EQUAL:
        parts.append(x)
    elif kind is types.FunctionType:
        code = x.__code__
        if is_fixed_function(x) or (x.__closure__ is None and not is_user_code(code)):
            parts.append(x)
            return True
        kept += (code, x.__globals__)  # as long as they live, nothing else has their ids
        parts += (id(code), id(x.__globals__))
        contents = [x.__defaults__, x.__kwdefaults__]
        for cell in x.__closure__ or ():
            try:
                contents.append(cell.cell_contents)
            except ValueError:  # it has none yet
                return False
        return _describe_all(contents, parts, kept, depth)
    elif isinstance(x, (Array, np.ndarray)):
        pass
    elif isinstance(x, _SAME) or (isinstance(x, type) and not is_user_class(x)):
        parts.append(x)
    elif kind in (tuple, list):
        return _describe_all(x, parts, kept, depth)
    elif kind is dict:
        return _describe_all([*x.keys(), *x.values()], parts, kept, depth)
    elif kind is functools.partial:
        return _describe_all([x.func, x.args, x.keywords], parts, kept, depth)
    elif kind.__module__.startswith("purax.") and not is_user_class(kind) and hasattr(x, "__dict__"):
        inside = [x.__wrapped__] if hasattr(x, "__wrapped__") else []
        return _describe_all([*inside, *filter(callable, list(vars(x).values()))], parts, kept, depth)
    else:
        return False
    return True


def _describe_all(values: Any, parts: list[Any], kept: list[Any], depth: int) -> bool:
    parts.append(len(values))
    if len(values) > _MANY or depth > _DEPTH:
        return False
    for x in values:
        if not _describe(x, parts, kept, depth + 1):
            return False
    return True
