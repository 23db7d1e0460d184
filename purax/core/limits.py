"""Arguments that never end: an iterable is read up to a number of items that nobody means."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Sequence, Sized
from typing import Any

import numpy as np

from purax.core.source import located
from purax.errors import shown

MAX_ITEMS = 1 << 16


MAX_DEPTH = 1000


def shallow(value: Any) -> Any:
    """A value that is to be hashed; tuples in tuples in tuples, whose hash overflows the stack, are refused.

    >>> shallow((1, (2, 3)))
    (1, (2, 3))
    """
    if not isinstance(value, (tuple, frozenset)):
        return value
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for outer in level if isinstance(outer, (tuple, frozenset)) for item in outer]
        if not level:
            return value
    raise located(ValueError, "an argument is nested too deeply: a tuple in a tuple, and so on")


def finite(values: Iterable[Any], limit: int = MAX_ITEMS) -> Sequence[Any]:
    """The items of an iterable, of which there are at most `limit`; lists and tuples are passed on as they are.

    >>> finite(i for i in (1, 2)), finite([1, 2])
    ((1, 2), [1, 2])
    """
    if (
        values.__class__ is tuple
        or values.__class__ is list
        or (isinstance(values, Sized) and len(values) > limit)
    ):
        found: Any = values
    else:
        found = tuple(itertools.islice(values, limit + 1))
    if len(found) > limit:
        raise located(
            ValueError,
            f"an argument with more than {limit} items, {shown(values):.60}, is refused: it may never end",
        )
    return found


def numpy_value(x: Any) -> np.ndarray:
    """What `np.asarray` makes of a value; a sequence that goes on beyond its length is an error, not endless.

    >>> numpy_value([1, 2])
    array([1, 2])
    """
    if x.__class__ is list or x.__class__ is tuple:
        _check_items(x)
        return np.asarray(x)
    if isinstance(x, _READ_AS_THEY_ARE) or hasattr(x, "__array__") or hasattr(x, "keys"):
        return np.asarray(x)
    if isinstance(x, Sized) and hasattr(x, "__getitem__"):
        with contextlib.suppress(TypeError):  # memory, of whatever size
            return np.asarray(memoryview(x))  # type: ignore[arg-type]
        return np.asarray(finite(x, min(len(x), _LONGEST)))  # type: ignore[arg-type]
    return np.asarray(x)


def _check_items(values: Sequence[Any]) -> None:
    """Refuses lists that contain themselves, and sequences in them that go on beyond their length."""
    level: dict[int, Any] = {id(values): values}
    for _ in range(_MAX_AXES + 1):
        inner: dict[int, Any] = {}
        for outer in level.values():
            if _PLAIN.issuperset(map(type, outer)):
                continue
            for item in outer:
                if item.__class__ is list or item.__class__ is tuple:
                    inner[id(item)] = item
                elif item.__class__ not in _PLAIN and not hasattr(item, "__array__"):
                    numpy_value(item)
        if not inner:
            return
        level = inner
    raise located(ValueError, f"an argument of lists in lists, more than {_MAX_AXES} deep, is refused: it is no array")


_LONGEST = 1 << 24
_MAX_AXES = 64  # of NumPy's arrays
_PLAIN = {bool, int, float, complex, str, bytes, np.ndarray}
_READ_AS_THEY_ARE = np.ndarray, np.generic, int, float, complex, str, bytes
