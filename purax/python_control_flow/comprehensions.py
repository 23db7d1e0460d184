"""Comprehensions with traced conditions that are consumed at once: `sum(x for x in xs if x > 0)`.

Every item comes with its condition, as a `Chosen`, and the consumer takes it into account: what would not be in the
sequence is not computed, and has no derivative. Sequences whose length would depend on values are never made.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterator
from typing import Any

from purax.callbacks.error_if import error_if
from purax.python_control_flow.branches import choose, plain
from purax.python_control_flow.calls import call, taken
from purax.python_control_flow.logic import all_of, any_of
from purax.python_control_flow.truth import load, negate
from purax.python_control_flow.values import is_traced

_NOTHING = object()


class Chosen:
    """An item that is there if a traced condition holds; `value` computes it."""

    __slots__ = ("flag", "value")

    def __init__(self, flag: Any, value: Callable[[], Any]):
        self.flag, self.value = flag, value


def may_hold(flag: Any) -> bool:
    """Whether the condition of an item may hold: only one that is known to fail does not."""
    return flag is not False


def chosen(value: Callable[[], Any], flag: Any) -> Any:
    """An item under its condition: the value itself if that holds for certain."""
    return Chosen(flag, value) if is_traced(flag) else value()


def consume(function: Callable, items: Iterator[Any], *args: Any, **options: Any) -> Any:
    """function(items, …), where items may be `Chosen`."""
    rule = _RULES.get(function) if getattr(function, "__module__", None) == "builtins" else None
    if rule is None:
        return call(function)(_certain(items), *args, **options)
    known: list[Any] = []
    for item in items:
        if type(item) is Chosen:
            return rule(known, item, items, *args, **options)
        known.append(item)
        if function is next or function is any and _is_true(item) or function is all and _is_false(item):
            break
    if function is len:
        return len(known)
    return call(function)(iter(known), *args, **options)


def _is_true(item: Any) -> bool:
    return not is_traced(item) and bool(item)


def _is_false(item: Any) -> bool:
    return not is_traced(item) and not item


def _certain(items: Iterator[Any]) -> Iterator[Any]:
    for item in items:
        if type(item) is Chosen:
            plain(item.flag, "the length of what this makes would depend on the values")
        yield item


def _rest(
    item: Chosen, items: Iterator[Any], stopped: Callable[[], Any] = lambda: False
) -> Iterator[tuple[Any, Callable[[], Any]]]:
    """The condition and the value of an item and of all that follow, until `stopped()` holds."""
    yield item.flag, item.value
    for other in taken(items, stopped):
        yield (other.flag, other.value) if type(other) is Chosen else (True, functools.partial(_given, other))


def _given(value: Any) -> Any:
    return value


def _sum(known: list, item: Chosen, items: Iterator[Any], start: Any = 0) -> Any:
    total = builtins.sum(known, start)
    for flag, value in _rest(item, items):
        total = choose(flag, lambda: total + value(), lambda: total, "", "the sum")  # noqa: B023
    return total


def _len(known: list, item: Chosen, items: Iterator[Any]) -> Any:
    return _sum([1] * len(known), Chosen(item.flag, lambda: 1), _ones(items))


def _ones(items: Iterator[Any]) -> Iterator[Any]:
    for item in items:
        yield Chosen(item.flag, lambda: 1) if type(item) is Chosen else 1


def _any(known: list, item: Chosen, items: Iterator[Any]) -> Any:
    result = any_of(*map(_truth, known))
    for flag, value in _rest(item, items, lambda: result):  # noqa: B023
        result = any_of(result, all_of(lambda: flag, value))  # noqa: B023
    return result


def _all(known: list, item: Chosen, items: Iterator[Any]) -> Any:
    fails = any_of(*(negate(x) for x in known))
    for flag, value in _rest(item, items, lambda: fails):  # noqa: B023
        fails = any_of(fails, all_of(lambda: flag, lambda: negate(value())))  # noqa: B023
    return negate(fails)


def _truth(value: Any) -> Any:
    return all_of(lambda: value)


def _next(known: list, item: Chosen, items: Iterator[Any], default: Any = _NOTHING) -> Any:
    message = "StopIteration: no item fulfils the condition"
    return _first(item, items, default, message, lambda best, x: False, "next")


def _max(known: list, item: Chosen, items: Iterator[Any], *, default: Any = _NOTHING, key: Any = None) -> Any:
    return _best(known, item, items, default, key, lambda best, x: x > best, "max")


def _min(known: list, item: Chosen, items: Iterator[Any], *, default: Any = _NOTHING, key: Any = None) -> Any:
    return _best(known, item, items, default, key, lambda best, x: x < best, "min")


def _best(known, item, items, default, key, is_better, name) -> Any:
    measure = call(key) if key is not None else lambda x: x
    better = lambda best, x: is_better(measure(best), measure(x))  # noqa: E731
    start = _NOTHING
    for x in known:
        start = x if start is _NOTHING else choose(better(start, x), lambda: x, lambda: start, "")  # noqa: B023
    message = f"ValueError: {name}() of a sequence without items"
    return _first(item, items, default, message, better, name, start)


def _first(item, items, default, message: str, replaces: Callable, name: str, start: Any = _NOTHING) -> Any:
    """The first item, replaced by later ones where `replaces(best, x)`; `start` is one that is there for certain."""
    found: Any = start is not _NOTHING
    best = start if found else default
    is_search = name == "next"
    for flag, value in _rest(item, items, lambda: found if is_search else False):  # noqa: B023
        if best is _NOTHING:
            best = value()  # a value of the right type, until one is there
            found = flag
            continue

        def taken(value=value, best=best, found=found):
            new = value()
            replace = any_of(negate(found), all_of(lambda: replaces(best, new)))
            return choose(replace, lambda: new, lambda: best, "")

        best = choose(flag, taken, lambda best=best: best, "", "the item")
        found = any_of(found, flag)
        if found is True and replaces(best, best) is False:
            break
    if default is not _NOTHING or found is True:
        return load(best)
    return error_if(best, negate(found), message)


_RULES = {sum: _sum, len: _len, any: _any, all: _all, next: _next, max: _max, min: _min}
