"""`purax check`: side effects, shapes and recompilations of a script, found without running what is heavy.

Functions under `jit` are traced, so that everything about their types is known, but neither compiled nor run: their
results are zeros. All else of the script runs.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from purax.api import cache_misses
from purax.api.jit import JitFunction
from purax.commands import scripts
from purax.config import config
from purax.core import source
from purax.core.trace import current
from purax.errors import ImpureFunctionWarning
from purax.execution.eager import eager
from purax.tree.registry import tree_unflatten
from purax.xla.array import DeviceArray

USAGE = """usage: purax check SCRIPT.py [ARGUMENT ...]

Runs the script with functions under `jit` traced, but neither compiled nor run: their results are zeros. Prints for
each the types that it was traced for, why it was traced again, and its side effects. A loop that waits for a value to
change may not end this way: Ctrl-C ends it, and what was found is printed.
The exit status is 1 if there are side effects, a function that was traced again and again, or an error."""

_MANY = 5  # traces of one function, past which it says that something is wrong


@dataclass
class Checked:
    """A function under `jit`, as it was called."""

    function: JitFunction
    calls: int = 0
    keys: list[tuple] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)


@contextlib.contextmanager
def _not_run(found: dict[Any, Checked]) -> Iterator[None]:
    """Lets calls of functions under `jit` stop after tracing; `found` has them by their code."""
    before = JitFunction._call

    def call(self: JitFunction, args: tuple, kwargs: dict[str, Any]) -> Any:
        if current.trace is not eager or config.disable_jit:
            return before(self, args, kwargs)
        specialization, _, _, _ = self._specialize(args, kwargs)
        code = getattr(self._function, "__code__", self._function)
        checked = found.setdefault(code, Checked(self))
        checked.calls += 1
        for key, known in self._cache.items():
            if known is specialization and key not in checked.keys:
                checked.keys.append(key)
                checked.names = self._names_of(args, kwargs)
                checked.results.append(", ".join(a.str_short() for a in specialization.closed.out_avals))
                checked.places.append(str(source.user_location()))
        if specialization.cells is not None or any(
            not isinstance(aval.dtype, np.dtype) for aval in specialization.closed.out_avals
        ):
            return before(self, args, kwargs)  # references change, and keys are no zeros
        zeros = [DeviceArray(a, np.zeros(a.shape, a.dtype)) for a in specialization.closed.out_avals]
        return tree_unflatten(specialization.out_tree, zeros)

    JitFunction._call = call  # type: ignore[method-assign]
    try:
        yield
    finally:
        JitFunction._call = before  # type: ignore[method-assign]


@scripts.with_usage(USAGE)
def check(words: Sequence[str]) -> int:
    """The command `purax check`; returns the exit status.

    Args:
        words: what follows `check` on the command line.
    """
    if not words or words[0].startswith("-"):
        raise scripts.UsageError("which script?" if not words else f"{words[0]} is no option")
    scripts.existing(words[0])
    found: dict[Any, Checked] = {}
    scripts.prepare(words[0])
    ended = None
    with warnings.catch_warnings(record=True) as told, config.override(purity="warn"), _not_run(found):
        warnings.simplefilter("always", ImpureFunctionWarning)
        try:
            scripts.run(words[0], words[1:])
        except SystemExit as error:
            ended = None if error.code in (None, 0) else f"it ended with status {error.code}"
        except (Exception, KeyboardInterrupt) as error:
            ended = "".join(traceback.format_exception_only(error)).strip()
    effects = list(dict.fromkeys(str(each.message) for each in told if each.category is ImpureFunctionWarning))
    for each in told:
        if each.category is not ImpureFunctionWarning:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    print(report(list(found.values()), effects))
    if ended is not None:
        print(f"The script ended early: {ended}", file=sys.stderr)
    return 1 if effects or ended is not None or any(len(each.keys) > _MANY for each in found.values()) else 0


def report(found: Sequence[Checked], effects: Sequence[str]) -> str:
    """What was found, as text.

    Args:
        found: the functions under `jit`.
        effects: their side effects.
    """
    lines = [] if found else ["No function under `jit` was called."]
    for each in found:
        code = getattr(each.function._function, "__code__", None)
        place = f" ({source.shown_file(code.co_filename)}:{code.co_firstlineno})" if code is not None else ""
        count = f"{each.calls} call{'s' * (each.calls != 1)}, {len(each.keys)} trace{'s' * (len(each.keys) != 1)}"
        lines.append(f"{each.function._name}{place}: {count}")
        reasons = cache_misses.history(each.keys, each.names, each.function._argument_name)
        for key, results, where, why in zip(each.keys, each.results, each.places, reasons, strict=True):
            types = ", ".join(aval.str_short() for aval in key[1])
            lines.append(f"  ({_short(types)}) -> {_short(results)}   at {where}")
            lines += [f"    traced again: {reason}" for reason in why]
        if len(each.keys) > _MANY:
            lines.append(
                f"  It was compiled {len(each.keys)} times: pad to a few shapes, pass numbers that change as arrays, "
                "and call `jit` on one function object."
            )
    lines.append(f"{len(effects)} side effect{'s' * (len(effects) != 1)}{':' if effects else ' found'}")
    lines += [f"  {effect}" for effect in effects]
    return "\n".join(lines)


def _short(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}…"
