"""`jax.util`: small tools that libraries borrow."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

__all__ = [
    "cache",
    "concatenate",
    "partition_list",
    "safe_map",
    "safe_zip",
    "split_list",
    "unzip2",
    "unzip3",
    "wrap_name",
    "wraps",
]


def safe_zip(*sequences: Iterable[Any]) -> list[tuple[Any, ...]]:
    """`zip` as a list, which refuses sequences of unlike lengths."""
    lists = [list(sequence) for sequence in sequences]
    if len({len(items) for items in lists}) > 1:
        raise ValueError(f"safe_zip: the sequences have lengths {[len(items) for items in lists]}")
    return list(zip(*lists, strict=True))


def safe_map(function: Callable, *sequences: Iterable[Any]) -> list[Any]:
    """`map` as a list, which refuses sequences of unlike lengths."""
    return [function(*items) for items in safe_zip(*sequences)]


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple, tuple]:
    """The first and the second members of pairs."""
    items = list(pairs)
    return tuple(a for a, _ in items), tuple(b for _, b in items)


def unzip3(triples: Iterable[tuple[Any, Any, Any]]) -> tuple[tuple, tuple, tuple]:
    """The first, second and third members of triples."""
    items = list(triples)
    return tuple(a for a, _, _ in items), tuple(b for _, b, _ in items), tuple(c for _, _, c in items)


def split_list(items: Sequence[Any], lengths: Sequence[int]) -> list[list[Any]]:
    """Consecutive pieces of the given lengths, and the rest."""
    pieces, rest = [], list(items)
    for length in lengths:
        pieces.append(rest[:length])
        rest = rest[length:]
    return [*pieces, rest]


def partition_list(flags: Sequence[bool], items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The items without and with a flag."""
    pairs = safe_zip(flags, items)
    return [x for flag, x in pairs if not flag], [x for flag, x in pairs if flag]


def concatenate(sequences: Iterable[Iterable[Any]]) -> list[Any]:
    """One list of all items."""
    return [item for sequence in sequences for item in sequence]


def wrap_name(name: str, transformation: str) -> str:
    """How a transformed function is called."""
    return f"{transformation}({name})"


def wraps(
    wrapped: Callable, namestr: str | None = None, docstr: str | None = None, **values: Any
) -> Callable:
    """`functools.wraps` with a name and a docstring made from templates."""

    def decorate(function: Callable) -> Callable:
        functools.update_wrapper(function, wrapped)
        if namestr is not None:
            function.__name__ = namestr.format(fun=getattr(wrapped, "__name__", ""), **values)
        if docstr is not None:
            function.__doc__ = docstr.format(
                fun=getattr(wrapped, "__name__", ""), doc=wrapped.__doc__, **values
            )
        return function

    return decorate


def cache(max_size: int = 4096, **options: Any) -> Callable:
    """A decorator that remembers results."""
    return functools.lru_cache(maxsize=max_size)
