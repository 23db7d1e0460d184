"""Loops that a traced value ends: the variables that a step changes are carried, in types that a step keeps.

A variable without a value before the loop that is read outside of it is carried with a flag that says whether it has
one; others are not carried, and begin every step without a value. A variable whose type no step keeps becomes
`Undefined`, so that only reading it is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purax.control_flow.branches import blank
from purax.control_flow.while_loop import while_loop
from purax.core.avals import ShapedArray
from purax.core.jaxpr import eval_jaxpr
from purax.purity.control_flow_values import (
    Maybe,
    Partly,
    Recorded,
    Undefined,
    array_type,
    common_type,
    fresh,
    is_array,
    same,
    type_text,
    typed,
    way_out,
)
from purax.tree_registry import tree_flatten, tree_unflatten


class Entry:
    """A variable at the beginning of a step.

    Attributes:
        value: its value before the loop.
        types: for each of its leaves the type that is carried, or None for a leaf that stays as it is.
        is_new: whether the types were changed since a step was recorded.
    """

    def __init__(self, value: Any):
        if isinstance(value, Partly):
            value = value.maybe
        self.value = value
        self.is_new = False
        self.leaves: list[Any] = []
        self.tree: Any = None
        if not isinstance(value, Undefined):
            self.leaves, self.tree = tree_flatten(value)
        self.types: list[ShapedArray | None] = [array_type(x) if is_array(x) else None for x in self.leaves]

    def after(self, value: Any) -> Any:
        """What a step leaves of the variable: a value, where there was perhaps none, is one for certain."""
        is_certain = isinstance(self.value, Maybe) and not isinstance(value, (Maybe, Undefined))
        return Maybe(value, True, self.value.message) if is_certain else value

    def rebuilt(self, arrays: Any) -> Any:
        """The variable, with the next of the carried arrays as its leaves."""
        if self.tree is None:
            return self.value
        leaves = [
            x if aval is None else next(arrays) for x, aval in zip(self.leaves, self.types, strict=True)
        ]
        return tree_unflatten(self.tree, leaves)


class Loop:
    """A loop over the variables of a statement; `fillable` is one that is not read where it has no value."""

    def __init__(self, state: Any, fillable: str):
        self.state = state
        self.fillable = fillable

    def run(self, flag: Any, turn: Callable, counter: Any = None, max_steps: int | None = None) -> None:
        """Records the loop.

        Args:
            flag: whether the first step is done.
            turn: does a step and returns whether another follows; with a counter, it takes and returns that too.
            counter: an array that is carried besides the variables.
            max_steps: a bound on the number of steps.
        """
        state = self.state
        before = state.read()
        self.entries = [Entry(value) for value in before]
        counters = [] if counter is None else [counter]

        def step(*arguments):
            arrays = iter(arguments[len(counters) :])
            state.write([fresh(entry.rebuilt(arrays)) for entry in self.entries])
            try:
                result = turn(*arguments[: len(counters)])
                values = [entry.after(value) for entry, value in zip(self.entries, state.read(), strict=True)]
                return [*(result if counters else [result]), *values]
            finally:
                state.write(before)

        hidden = 1 + len(counters)
        while True:
            avals = [*(c.aval for c in counters), *self.carried_types()]
            recorded = Recorded(step, avals, "loop")
            if not self.adjust(recorded, hidden):
                break
        positions = [p for part in recorded.parts[:hidden] for p in part[2]]
        for entry, part in zip(self.entries, recorded.parts[hidden:], strict=True):
            positions += (
                [p for p, aval in zip(part[2], entry.types, strict=True) if aval is not None]
                if entry.tree
                else []
            )
        types = [flag.aval, *avals]

        def goes_on(carry):
            return carry[0]

        def body(carry):
            results = eval_jaxpr(recorded.closed.jaxpr, recorded.closed.consts, *carry[1:])
            return [typed(results[p], aval) for p, aval in zip(positions, types, strict=True)]

        leaves = [
            x for e in self.entries for x, aval in zip(e.leaves, e.types, strict=True) if aval is not None
        ]
        start = [flag, *(typed(x, aval) for x, aval in zip([*counters, *leaves], avals, strict=True))]
        arrays = iter(while_loop(goes_on, body, start, max_steps=max_steps)[hidden:])
        state.leave(before, [entry.rebuilt(arrays) for entry in self.entries])

    def carried_types(self) -> list[ShapedArray]:
        return [aval for entry in self.entries for aval in entry.types if aval is not None]

    def adjust(self, recorded: Recorded, hidden: int) -> bool:
        """Changes what is carried, and as what, to what a step gave; says whether it must be recorded again."""
        changed = False
        for i, entry in enumerate(self.entries):
            part, value, label = recorded.parts[hidden + i], recorded.values[hidden + i], self.state.labels[i]
            if entry.tree is None:
                if part is not None and (label == self.fillable or label in self.state.live):
                    leaves = [
                        x if p is None else blank(recorded.type_of(p))
                        for x, p in zip(part[1], part[2], strict=True)
                    ]
                    start = tree_unflatten(part[0], leaves)
                    if label != self.fillable and not isinstance(start, Maybe):
                        start = Maybe(
                            start, False, f"{label} is read, but the loop at {self.state.place} did no step"
                        )
                    self.entries[i] = Entry(start)
                    changed = True
                continue
            if part is None or part[0] != entry.tree or not self.adjust_leaves(entry, part, recorded):
                changed = True
                was, now = type_text(entry.value), type_text(value)
                self.entries[i] = Entry(
                    Undefined(
                        f"{label} is {was} before the loop at {self.state.place} and {now} after a step, but a loop "
                        f"that a traced value ends needs it to be of one type{way_out(entry.value, value)}",
                        is_plain=False,
                    )
                )
            elif entry.is_new:
                changed, entry.is_new = True, False
        return changed

    def adjust_leaves(self, entry: Entry, part: Any, recorded: Recorded) -> bool:
        """Widens the types of a variable's leaves; says whether they have types that a step keeps."""
        for i, (x, position) in enumerate(zip(part[1], part[2], strict=True)):
            aval = entry.types[i]
            if aval is None:
                if not same(x, entry.leaves[i]):
                    return False
                continue
            wider = None if position is None else common_type(aval, recorded.type_of(position))
            if wider is None:
                return False
            if wider.dtype != aval.dtype or wider.weak_type != aval.weak_type:
                entry.types[i] = wider
                entry.is_new = True
        return True
