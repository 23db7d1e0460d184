"""Arguments that never end: an iterable is read up to a number of items that nobody means."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence, Sized
from typing import Any

from purax.core.source import located
from purax.errors import shown

MAX_ITEMS = 1 << 16


MAX_DEPTH = 1000


def shallow(value: Any) -> Any:
    """A value that is to be hashed; tuples in tuples in tuples, whose hash overflows the stack, are refused.

    >>> shallow((1, (2, 3)))
    (1, (2, 3))
    """
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
