"""Keys of caches: values that Python calls equal, though programs tell them apart, are different keys.

1, 1.0 and True are equal, and so are 0.0 and −0.0, inside of tuples, too; what was made for one of them must not be
used for another. No key here, nor any that is made of one, holds the `id` of an object: the key holds the object.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from purax.core.extension import native

_THEMSELVES = frozenset((int, str, bytes, type(None)))
_TRUE, _FALSE = (bool, "True"), (bool, "False")


def exact_in_python(value: Any) -> Any:
    """A key that only the same value has, as far as its parts are numbers, tuples, frozensets or dataclasses.

    >>> exact(1) == exact(True), exact((2, 0.0)) == exact((2, -0.0)), exact((2, "a")) == exact((2, "a"))
    (False, False, True)
    """
    kind: Any = type(value)
    if kind in _THEMSELVES or kind.__eq__ is object.__eq__ or isinstance(value, np.dtype):
        return value
    if kind is bool:
        return _TRUE if value else _FALSE
    if kind is float:  # 0.0 and −0.0 would be equal, and NaN would never be found again, but for their bytes
        return (float, value) if value and value == value else (float, np.float64(value).tobytes())
    if isinstance(value, tuple):
        parts = tuple([exact(part) for part in value])
        if kind is not tuple:
            return (kind, *parts)
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else (tuple, *parts)
    if isinstance(value, (float, complex, np.generic)):
        return (kind, np.asarray(value).tobytes())
    if isinstance(value, frozenset):
        return (kind, frozenset([exact(part) for part in value]))
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and _compares_fields(kind):
        parts = tuple([exact(getattr(value, f.name)) for f in dataclasses.fields(value) if f.compare])
        try:
            hash(parts)
        except TypeError:  # its own hash knows better
            return (kind, value)
        return (kind, *parts)
    return (kind, value)


exact: Callable[[Any], Any] = exact_in_python
if native is not None:
    native.set_exact(exact_in_python, np.dtype)
    exact = native.exact


def exact_items(params: dict[str, Any]) -> Any:
    """The parameters of an operation as parts of a key."""
    return [(name, exact(value)) for name, value in params.items()] if params else ()


def _compares_fields(kind: Any) -> bool:
    return kind.__dataclass_params__.eq
