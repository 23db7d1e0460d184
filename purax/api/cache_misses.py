"""`explain_cache_misses`: says why a function under `jit` is traced again, by comparing the call with the nearest one
that was traced before, and what tracing and compiling it took.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from purax.core import phases, source
from purax.core.avals import ShapedArray
from purax.interpreters.arguments import name_of

logger = logging.getLogger("purax")
_traced: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_STRUCTURE = "the structure of the arguments"


def explain(
    function: Callable,
    argument_name: Callable[[int], str],
    key: tuple,
    names: Sequence[str],
    cached: Iterable[tuple],
    changes: Sequence[str] = (),
) -> None:
    """Logs how a call differs from those that `function` was traced for.

    Args:
        function: the user's.
        argument_name: the name of a positional argument.
        key: of the call: (structure of the arguments, types of the leaves, flags, static arguments[, named axes]).
        names: how messages call the leaves.
        cached: the keys of earlier calls.
        changes: what else changed since an earlier call with the same key, outside of the arguments.
    """
    code = getattr(function, "__code__", None)
    lines = list(changes) or _closest(key, names, argument_name, list(cached))
    if lines is None:
        lines = ["it is traced for the first time"]
        if code is not None and code in _traced:
            lines = [
                f"it is a new function object, though {_traced[code]} with the same code were traced before: a "
                "lambda or "
                "a function defined inside of another is new each time. Define it once, and call `jit` on it once"
            ]
    if code is not None:
        _traced[code] = _traced.get(code, 0) + 1
    defined = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    location = source.user_location()
    where = f"called at {location}: {location.text}" if location is not None else "called"
    logger.warning(
        "`%s`%s is traced, %s%s", name_of(function), defined, where, "".join(f"\n  {line}" for line in lines)
    )


def tell_phases(program: str, seconds: dict[str, float]) -> None:
    """Logs what making a program took."""
    total = 1e3 * sum(seconds.values())
    logger.warning("`%s` is ready to run after %.1f ms: %s", program, total, phases.described(seconds))


def _closest(
    key: tuple, names: Sequence[str], argument_name: Callable[[int], str], cached: list[tuple]
) -> list[str] | None:
    """The differences to the call that has fewest; None if there was none."""
    found = [_differences(old, key, names, argument_name) for old in cached]
    if not found:
        return None
    best = min(found, key=lambda lines: len(lines) + 10 * any(_STRUCTURE in line for line in lines))
    return [f"the nearest of {len(found)} earlier calls differs in:", *(f"  {line}" for line in best)]


def _differences(
    old: tuple, new: tuple, names: Sequence[str], argument_name: Callable[[int], str]
) -> list[str]:
    (old_tree, old_avals, old_flags, old_static, *old_axes) = old
    (new_tree, new_avals, new_flags, new_static, *new_axes) = new
    lines = []
    if old_tree != new_tree:
        lines.append(f"{_STRUCTURE}: {old_tree} -> {new_tree}")
    else:
        for name, a, b in zip(names, old_avals, new_avals, strict=True):
            if a is not b:
                lines.append(f"argument {name}: {_described(a)} -> {_described(b)}")
    lines.extend(_static_differences(old_static, new_static, argument_name))
    if old_flags is not new_flags:
        for name, (before, after) in old_flags.difference(new_flags).items():
            lines.append(f"the flag {name}: {before!r} -> {after!r}")
    if old_axes != new_axes:
        lines.append(f"the named axes in scope: {_axes(old_axes)} -> {_axes(new_axes)}")
    return lines


def history(keys: Sequence[tuple], names: Sequence[str], argument_name: Callable[[int], str]) -> list[list[str]]:
    """How each of the calls that a function was traced for differs from the nearest before it; for the first, nothing.

    Args:
        keys: of the calls, in order.
        names: how messages call the leaves.
        argument_name: the name of a positional argument.
    """
    told: list[list[str]] = []
    for i, key in enumerate(keys):
        of_key = names if len(names) == len(key[1]) else [f"leaf {n}" for n in range(len(key[1]))]
        told.append([line.strip() for line in (_closest(key, of_key, argument_name, list(keys[:i])) or [])[1:]])
    return told


def _described(aval: ShapedArray) -> str:
    return f"{aval.str_short()}{' (weak: a Python number)' if aval.weak_type else ''}"


def _static_differences(old: Any, new: Any, argument_name: Callable[[int], str]) -> list[str]:
    before, after = dict(old or ()), dict(new or ())
    lines = []
    for place in dict.fromkeys((*before, *after)):
        name = argument_name(place) if isinstance(place, int) else place
        if place not in before or place not in after:
            given = "was not given before" if place not in before else "is not given now"
            lines.append(f"static argument {name} {given}")
        elif before[place] != after[place]:
            lines.append(f"static argument {name}: {before[place]!r} -> {after[place]!r}")
    return lines


def _axes(axes: list) -> str:
    return str(dict(axes[0])) if axes else "none"
