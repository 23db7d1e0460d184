"""What rewritten branches call: Python's own behaviour for known conditions, recorded branches for traced ones.

A statement comes with its blocks as functions that share the variables of the function around them. A block that a
traced value decides about is recorded from the same state as its alternative; what either changed, in whatever way, is
then merged (`merging`), or the function goes both ways (`paths`).
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax import errors
from purax.callbacks.error_if import error_if
from purax.core import source
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.logic import not_
from purax.purity.ownership import is_user_code
from purax.python_control_flow import buffers, choices, paths, subscripts
from purax.python_control_flow.heap import Entry, Heap
from purax.python_control_flow.jumps import FLAG, RESULT, RETURNED
from purax.python_control_flow.merging import (
    RESULT_LABEL,
    BecomesBuffer,
    Conflict,
    Leaf,
    Merge,
    Recorded,
    Unlike,
    olds,
)
from purax.python_control_flow.objects import VARIABLE
from purax.python_control_flow.truth import load, negate, truth
from purax.python_control_flow.values import is_traced

_int32 = np.dtype(np.int32)


class State:
    """The variables of a function, for one of its statements.

    Attributes:
        variables: by name, those that the function has itself.
        place: the file and line of the statement.
        live: how messages call the variables that are read outside of the statement.
    """

    def __init__(self, scope: types.FunctionType, free: Sequence[str], place: str, live: Sequence[str]):
        cells = zip(scope.__code__.co_freevars, scope.__closure__ or (), strict=True)
        self.variables = {name: cell for name, cell in cells if name not in free}
        self.place = place
        self.live = {f"`{name}`" for name in live}
        self.owned = {id(cell): name for name, cell in self.variables.items()}

    def unread(self, side: Recorded, heap: Heap) -> Callable[[Entry, str, bool], bool]:
        """Tells what is not read after a block, of which the function may have jumped away.

        After `return`, no variable is, nor an object that only this function knows. After `break` and `continue`, those
        are which have a value; one that has none has none after the loop either. What a function returns is read only
        if it did.
        """
        jumped = [name for name in self.variables if name.startswith(FLAG) and self._is_set(name, side)]
        returned = RETURNED in jumped
        known_outside: set[int] | None = None

        def is_unread(entry: Entry, label: str, is_undefined: bool) -> bool:
            nonlocal known_outside
            if entry.kind is VARIABLE:
                name = self.owned.get(id(entry.object))
                if name is None:
                    return False
                if returned:
                    return name != RESULT
                return is_undefined and (bool(jumped) or name == RESULT)
            if not returned:
                return False
            if known_outside is None:
                known_outside = self._known_outside(side)
            return id(entry.object) not in known_outside

        return is_unread

    def _is_set(self, name: str, side: Recorded) -> bool:
        cell = self.variables[name]
        if id(cell) in side.changes:
            [node] = side.changes[id(cell)][2]
            return isinstance(node, Leaf) and node.value is True
        return VARIABLE.read(cell).children[0] is True

    def _known_outside(self, side: Recorded) -> set[int]:
        """Ids of objects that are known to others than this function, before a block or after it."""
        roots = [(label, x) for label, x in paths.roots() if id(x) not in self.owned]
        known = set(Heap(roots).entries)
        for key, (_, _, nodes) in side.changes.items():
            if key not in self.owned or self.owned[key] == RESULT:
                found = [x for node in nodes for x in olds(node)]
                known |= set(Heap([("", x) for x in found]).entries)
        return known


def alternatives(
    flag: Any,
    blocks: Sequence[Callable[[], Any]],
    condition: str,
    number: int | None,
    state: State | None = None,
    heap: Heap | None = None,
    label: str = "",
) -> Any:
    """Records two blocks, of which the first runs where `flag` holds; returns what they return."""
    if heap is None:
        heap = Heap(paths.roots())
    try:
        return _merged(flag, blocks, condition, number, state, heap, label)
    except BecomesBuffer as needed:
        became = buffers.become_buffer(needed.array, heap)
        assert became is not None
    return alternatives(flag, blocks, condition, number, state, None, label)


def _merged(
    flag: Any,
    blocks: Sequence[Callable[[], Any]],
    condition: str,
    number: int | None,
    state: State | None,
    heap: Heap,
    label: str,
) -> Any:
    origin = paths.origin(number)
    with paths.opened(number):
        sides = []
        for block, is_first in zip(blocks, (True, False), strict=True):
            with paths.on_side(is_first):
                side = recorded(block, heap, number)
            if side.lost is not None:
                what = f"`{side.lost.label}` (a {type(side.lost.object).__name__})"
                message = f"{what} is consumed or changed only if {condition}, and it cannot be put back"
                paths.fail(source.located(TypeError, message), number)
            sides.append(side)
    try:
        unread = [state.unread(side, heap) if state is not None else _all_is_read for side in sides]
        merge = Merge(sides, condition, unread, state.live if state is not None else (), origin, heap)
        value = merge.value(label or RESULT_LABEL)
    except Conflict as conflict:
        paths.fail(located(conflict, sides, blocks, heap), number)
    [result] = merge.run(convert_element_type(flag, _int32), value)
    paths.fix(merge.chosen, merge.origin)
    return result


def recorded(block: Callable[[], Any], heap: Heap, number: int | None) -> Recorded:
    """Records a block; an error that the function may catch is one of its ways."""
    try:
        return Recorded(block, [], "if", heap)
    except Exception as error:
        if not isinstance(error, errors.ConcretizationTypeError) and paths.may_be_caught():
            message = (
                f"{type(error).__name__} ({error}) is raised only where a traced condition holds, and may be caught: "
                "there are too many ways to go through. Use `purax.numpy.where` or a flag instead of the error"
            )
            paths.fail(source.located(TypeError, message), number)
        raise


def _all_is_read(entry: Entry, label: str, is_undefined: bool) -> bool:
    return False


def located(
    conflict: Conflict, sides: Sequence[Recorded], blocks: Sequence[Callable], heap: Heap
) -> Exception:
    """The error that tells of an object which is built differently on the two sides, with the line that changes it."""
    error = UnboundLocalError(str(conflict))
    for side, block in zip(sides, blocks, strict=True):
        if id(conflict.entry.object) in side.changes:
            return source.with_location(error, line_of_change(block, conflict.entry, heap))
    return source.with_location(error)


def line_of_change(block: Callable, entry: Entry, heap: Heap) -> source.Location | None:
    """The line of the user's at which a block, recorded once more, changes an object."""
    found: list[source.Location] = []
    last: list[source.Location] = []

    def notice() -> None:
        if last and not found and not entry.kind.same(entry.object, entry.before):
            found.extend(last)

    def watch(frame, event, argument):
        if not is_user_code(frame.f_code):
            return None
        if event == "line":
            notice()
            last[:] = [source.Location(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)]
        return watch

    def watched() -> None:
        outer = sys.gettrace()
        sys.settrace(watch)
        try:
            block()
        finally:
            sys.settrace(outer)
            notice()

    with contextlib.suppress(Exception, paths.Fork):
        Recorded(watched, [], "if", heap)
    return found[0] if found else None


def choose(
    test: Any, then: Callable, otherwise: Callable, place: str, label: str = "", number: int | None = None
) -> Any:
    """then() if test else otherwise(); `number` is that of the decision, if it is known to be open."""
    known = truth(test)
    if not is_traced(known):
        return then() if known else otherwise()
    if number is None:
        decided, number = paths.decide(known)
        if decided is not None:
            return then() if decided else otherwise()
    label = label or f"the conditional expression at {place}"
    return load(alternatives(known, (then, otherwise), "its condition holds", number, label=label))


def branch(
    test: Any, then: Callable, otherwise: Callable, state: State, raising: Sequence[bool] = (False, False)
) -> None:
    """if test: then() else: otherwise(); `raising` says which of them end in `raise`."""
    known = truth(test)
    if not is_traced(known):
        (then if known else otherwise)()
        return
    decided, number = paths.decide(known)
    if decided is not None:
        (then if decided else otherwise)()
        return
    if any(raising) and not paths.may_be_caught():
        if raising[0] and _raises_if(known, then, number):
            otherwise()
            return
        if raising[1] and _raises_if(negate(known), otherwise, number):
            then()
            return
    condition = f"the condition at {state.place} holds"
    alternatives(known, (then, otherwise), condition, number, state)


def _raises_if(test: Any, block: Callable, number: int | None) -> bool:
    """Makes a check of a block that ends in `raise`: the error comes when the program runs."""
    message = None

    def attempt():
        nonlocal message
        try:
            block()
        except errors.ConcretizationTypeError:
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {error}"

    with paths.opened(number):
        Recorded(attempt, [], "raise", Heap(paths.roots()))
    if message is None:
        return False
    error_if((), test, message)
    return True


def check(test: Any, text: str, message: Callable[[], Any] | None = None) -> None:
    """assert test, message"""
    known = truth(test)
    if is_traced(known) and paths.may_be_caught():
        known = plain(known, "an error of this `assert` may be caught")
    if is_traced(known):
        said = f": {message()}" if message is not None else ""
        error_if((), not_(known), f"AssertionError: `assert {text}` does not hold{said}")
    elif not known:
        raise AssertionError(*([] if message is None else [message()]))


def plain(
    test: Any, reason: str, advice: str = "Use `purax.numpy.where` or `purax.lax.cond`/`while_loop`"
) -> Any:
    """A test that cannot be recorded: the function goes both ways, or it is said why not and what to write instead."""
    if not is_traced(test):
        return test
    decided, number = paths.decide(test)
    if decided is not None:
        return decided
    try:
        test.refuse(
            errors.TracerBoolConversionError,
            "This condition",
            f"It is not rewritten, because {reason}.\n  {advice}.",
        )
    except errors.TracerBoolConversionError as error:
        paths.fail(error, number)


def check_index(test: Any, kind: type[LookupError], message: str) -> None:
    """Raises if an index or a key, which is traced, is not there: when the program runs, or where it may be caught."""
    if not paths.may_be_caught():
        error_if((), test, f"{kind.__name__}: {message}")
    elif plain(truth(test if not test.aval.shape else test.any()), "an error of this index may be caught"):
        raise kind(message)


def divisor(x: Any) -> Any:
    """A number to divide by, where an error of a division by zero is caught: Python's numbers raise it."""
    if is_traced(x) and not x.aval.shape and x.aval.weak_type:
        if plain(x == 0, "a division by zero may be caught"):
            raise ZeroDivisionError("division by zero")
    return x


def join(flag: Any, way: Callable, other: Callable, heap: Heap, error: Exception) -> Any:
    """The value of a function that was done for both sides of a decision."""
    outcomes: list[Exception | None] = [None, None]

    def attempt(side: int, block: Callable) -> Any:
        try:
            return block()
        except (errors.ConcretizationTypeError, NameError):
            raise paths.failed(error) from None
        except Exception as raised:
            outcomes[side] = raised
            return None

    blocks = [lambda: attempt(0, way), lambda: attempt(1, other)]
    sides = [Recorded(block, [], "if", heap) for block in blocks]
    for side in sides:
        if side.lost is not None:
            raise paths.failed(error) from None
    raised = [outcome for outcome in outcomes if outcome is not None]
    if len(raised) == 2:
        raise raised[0]
    try:
        merge = Merge(sides, "", [_all_is_read] * 2, (), None, heap)
    except Conflict:
        raise paths.failed(error) from None
    flag = truth(flag)
    if raised:
        failed = 0 if outcomes[0] is not None else 1
        error_if((), not_(flag) if failed else flag, f"{type(raised[0]).__name__}: {raised[0]}")
        value = merge.filled(sides[1 - failed].value, 1 - failed)
    else:
        try:
            value = merge.alike(sides[0].value, sides[1].value)
        except Unlike:
            raise paths.failed(error) from None
    [result] = merge.run(convert_element_type(flag, _int32), value)
    paths.fix(merge.chosen, merge.origin)
    return result


paths.set_joiner(join)
subscripts.set_chooser(choose)
buffers.set_checker(check_index)
subscripts.set_choice_test(choices.is_choice)
subscripts.set_decider(plain)
