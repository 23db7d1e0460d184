"""Numbers that a branch chose from known ones, as `n` after `n = 2 if x > 0 else 4`.

Where Python needs the value of such a number (an index, a length, a key of a dict), or of one that is computed from
some, the function goes both ways at the branch that chose it, and the number is known on either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax import errors
from purax.core.jaxpr import Literal
from purax.core.source import located
from purax.core.trace import Tracer, current
from purax.python_control_flow import paths
from purax.python_control_flow.paths import Origin
from purax.python_control_flow.values import Inner
from purax.tree.registry import tree_leaves

_KNOWN = (bool, int, float, complex, np.generic)
_MOST_STEPS = 200  # of a computation that is followed


def note(result: Any, slot: Sequence[Any], sides: Sequence[Any], origin: Origin | None) -> None:
    """A branch gave one of two values; remembers that, if both were known or chosen in the same way further in."""
    if origin is None or not isinstance(result, Tracer):
        return
    for x, side in zip(slot, sides, strict=True):
        if isinstance(x, Inner):
            made = side.closed.jaxpr.outvars[x.position]
            if not isinstance(made, Literal) and id(made) not in origin.walk.choices:
                return
        elif not isinstance(x, _KNOWN):
            return
    _, kept = _recorded(result)
    origin.walk.choices[id(kept)] = (kept, origin)


def _recorded(x: Any) -> tuple[Any, Any]:
    """The trace that records a value, and the variable there; the value itself if nobody records it."""
    while isinstance(x, Tracer) and not hasattr(x, "variable"):
        x = getattr(x, "value", None) if hasattr(x, "value") else getattr(x, "primal", None)
    return (x.owner, x.variable) if isinstance(x, Tracer) else (None, x)  # type: ignore[attr-defined]


def origins(tracer: Any) -> list[Origin]:
    """The branches that chose what a value is computed from; none if it depends on something else too."""
    found: list[Origin] = []
    waiting: list[tuple[Any, Any]] = [_recorded(tracer)]
    for _ in range(_MOST_STEPS):
        if not waiting:
            return found
        trace, atom = waiting.pop()
        if isinstance(atom, Literal):
            continue
        chosen = next((w.choices[id(atom)] for w in paths.walks.open if id(atom) in w.choices), None)
        if chosen is not None:
            found.append(chosen[1])
            continue
        if not hasattr(trace, "makers"):
            return []
        made_by = trace.makers().get(atom)
        if made_by is not None:
            waiting += [(trace, operand) for operand in made_by.invars]
            continue
        outer = next((x for var, x in trace.constants.values() if var is atom), None)
        if outer is None:
            return []
        if isinstance(outer, Tracer):
            waiting.append(_recorded(outer))
    return []


def resolve(tracer: Any, error: Exception) -> None:
    """Goes both ways if the value that Python needs was chosen from known ones."""
    if isinstance(error, errors.TracerBoolConversionError):
        return  # `if` and the like record both sides, where they can
    resolve_truth(tracer, error)


def resolve_truth(tracer: Any, error: Exception) -> None:
    """The same for a condition that Python itself must decide."""
    found = origins(tracer)
    for origin in sorted(found, key=lambda origin: origin.number):
        origin.fork(error)


def note_array(result: Any, origin: Origin | None) -> None:
    """A branch gave one of two NumPy arrays: what is in it is known, but not which of them it is."""
    if origin is not None:
        _, kept = _recorded(result)
        origin.walk.arrays[id(kept)] = (kept, origin)


def note_same(result: Any, x: Any) -> None:
    """A result is a value that was noted, checked."""
    for one, other in zip(tree_leaves(result), tree_leaves(x), strict=True):
        old, new = _recorded(other)[1], _recorded(one)[1]
        for walk in paths.walks.open:
            if id(old) in walk.arrays:
                walk.arrays[id(new)] = (new, walk.arrays[id(old)][1])


def resolve_array(x: Any) -> None:
    """An array is about to be changed in place: goes both ways if it is one of two that a branch chose from."""
    if not isinstance(x, Tracer) or not paths.walks.open:
        return
    _, kept = _recorded(x)
    for walk in paths.walks.open:
        if id(kept) in walk.arrays:
            message = (
                "this changes a NumPy array in place, and a traced condition tells which array it is: make it an array "
                "of `purax.numpy`, and write `x = x.at[i].set(value)`"
            )
            walk.arrays[id(kept)][1].fail(located(TypeError, message))


def is_choice(x: Any) -> bool:
    """Whether a traced value would be known if the function went both ways."""
    return isinstance(x, Tracer) and current.resolve is not None and bool(origins(x))


paths.set_resolver(resolve, resolve_truth)
