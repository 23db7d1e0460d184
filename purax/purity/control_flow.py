"""What rewritten control flow calls: Python's own behaviour for known values, recorded branches for traced ones.

A statement comes with its blocks as functions that share the variables of the function around them, and a `State` that
reads and writes those. A block that a traced value decides about is recorded from the same state as its alternative.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax import errors
from purax.callbacks.error_if import error_if
from purax.control_flow.branches import is_costly
from purax.core import dtypes
from purax.core.array import Array
from purax.core.jaxpr import eval_jaxpr
from purax.ops.conversion import convert_element_type
from purax.ops.logic import and_, ne, not_, or_
from purax.ops.reshaping import reshape
from purax.purity.control_flow_calls import Numbered, TracedRange
from purax.purity.control_flow_loops import Loop
from purax.purity.control_flow_values import (
    Inner,
    Maybe,
    Meeting,
    Partly,
    Recorded,
    Undefined,
    fresh,
    is_traced,
)
from purax.purity.rewriting_jumps import FLAG, RESULT, RETURNED
from purax.transforms.arguments import to_array

_int32 = np.dtype(np.int32)


class State:
    """The variables that a statement may change.

    Attributes:
        labels: how messages call them.
        place: the file and line of the statement.
        live: the labels of variables that are read outside of the statement.
    """

    def __init__(
        self,
        names: Sequence[str],
        changed: Sequence[str],
        read: Callable,
        write: Callable,
        place: str,
        live: Sequence[str],
    ):
        self.labels = [RESULT_LABEL if n == RESULT else f"`{n}`" for n in (*names, *changed)]
        self.count = len(names)
        self.live = {f"`{name}`" for name in live}
        self.flags = [i for i, name in enumerate(names) if name.startswith(FLAG)]
        self.read, self.write, self.place = read, write, place

    def unread(self, values: Sequence[Any]) -> set[str]:
        """Labels of the variables that are not read after a block with these values, for the block jumped.

        After `return`, none is. After `break` and `continue`, those are which have a value; one that has none has none
        after the loop either. What a function returns is read only if it did.
        """
        jumped = [self.labels[i] for i in self.flags if values[i] is True]
        if f"`{RETURNED}`" in jumped:
            return {label for label in self.labels if label != RESULT_LABEL}
        undefined = {
            label for label, value in zip(self.labels, values, strict=True) if isinstance(value, Undefined)
        }
        return undefined if jumped else undefined & {RESULT_LABEL}

    def leave(self, before: Sequence[Any], after: Sequence[Any]) -> None:
        """Writes what the variables are from now on; containers that were changed in place are changed so."""
        values = list(after)
        for i in range(self.count, len(values)):
            old, new = before[i], values[i]
            if type(old) is list and type(new) is list:
                old[:] = new
                values[i] = old
            elif type(old) is dict and type(new) is dict:
                old.clear()
                old.update(new)
                values[i] = old
        self.write(values)


RESULT_LABEL = "the result of the function"


# -- values


def read(variable: Callable[[], Any]) -> Any:
    """The value of a variable, `Undefined` if it has none."""
    try:
        return variable()
    except NameError as error:
        return Undefined(f"`{error.name}` is read before it is assigned")
    except AttributeError as error:
        return Undefined(f"the attribute `{error.name}` is read before it is assigned")


def load(value: Any) -> Any:
    """A variable that is read: an error if it is not defined, or not of one type, at this point."""
    if type(value) is Partly and value.is_read_further_in():
        value = value.maybe
    if isinstance(value, Undefined):
        value.fail()
    if type(value) is Maybe:
        return error_if(value.value, negate(value.flag), f"UnboundLocalError: {value.message}")
    return value


def truth(value: Any) -> Any:
    """The truth of a value: a bool, or a traced boolean scalar."""
    if not is_traced(value):
        return bool(value)
    aval = value.aval
    if aval.size != 1:
        return bool(value)  # raises
    if aval.shape:
        value = reshape(value, ())
    return value if dtypes.is_boolean(aval.dtype) else ne(value, 0)


def negate(value: Any) -> Any:
    """not value"""
    known = truth(value)
    return not_(known) if is_traced(known) else not known


def any_of(*flags: Any) -> Any:
    """Whether one of some booleans holds."""
    result: Any = False
    for flag in flags:
        if flag is True:
            return True
        if is_traced(flag):
            result = flag if result is False else or_(result, flag)
        elif flag:
            return True
    return result


def none_of(*flags: Any) -> Any:
    return negate(any_of(*flags))


def all_of(*operands: Callable[[], Any]) -> Any:
    """The truth of `a and b and …`."""
    result: Any = True
    for operand in operands:
        if is_traced(result):
            result = _and_then(result, operand)
        else:
            result = truth(operand())
        if result is False:
            return False
    return result


def one_of(*operands: Callable[[], Any]) -> Any:
    """The truth of `a or b or …`."""
    return negate(all_of(*((lambda operand=operand: negate(operand())) for operand in operands)))


def _and_then(first: Any, operand: Callable[[], Any]) -> Any:
    """first and operand(), where the first is traced: the other is computed where it is needed, if that is much."""
    recorded = Recorded(lambda: [truth(operand())], [], "and")
    [value] = recorded.values
    closed = recorded.closed
    if not (isinstance(value, (Array, Inner)) or closed.effects):
        return first if value else False
    if closed.effects or is_costly(closed):
        return choose(first, lambda: truth(operand()), lambda: False, "")
    return and_(first, eval_jaxpr(closed.jaxpr, closed.consts)[0])


def value_of_and(*operands: Callable[[], Any]) -> Any:
    """The value of `a and b and …`: the first that is false, or the last."""
    return _value_of(operands, True)


def value_of_or(*operands: Callable[[], Any]) -> Any:
    """The value of `a or b or …`: the first that is true, or the last."""
    return _value_of(operands, False)


def _value_of(operands: Sequence[Callable[[], Any]], goes_on: bool) -> Any:
    value = operands[0]()
    if len(operands) == 1:
        return value
    known = truth(value)
    if not is_traced(known):
        return _value_of(operands[1:], goes_on) if known is goes_on else value
    if dtypes.is_boolean(value.aval.dtype) and value.aval.shape == ():
        recorded = Recorded(lambda: [_value_of(operands[1:], goes_on)], [], "and" if goes_on else "or")
        [other], closed = recorded.values, recorded.closed
        is_flag = (
            isinstance(other, bool)
            or isinstance(other, (Array, Inner))
            and other.aval.str_short() == "bool[]"
        )
        if is_flag and not closed.effects and not is_costly(closed):
            [other] = eval_jaxpr(closed.jaxpr, closed.consts)
            return (and_ if goes_on else or_)(known, to_array(other))
    rest = lambda: _value_of(operands[1:], goes_on)  # noqa: E731
    branches = (rest, lambda: value) if goes_on else (lambda: value, rest)
    return choose(known, *branches, "", "the value of `and`" if goes_on else "the value of `or`")


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda x, container: contains(container, x),
    "NotIn": lambda x, container: negate(contains(container, x)),
}


def compare(left: Any, *steps: Any) -> Any:
    """left < a < b …; each operand is computed once, and none after a comparison that does not hold."""
    comparison, right, *rest = steps
    value = right()
    result = _COMPARISONS[comparison](left, value)
    if not rest:
        return result
    return value_of_and(lambda: result, lambda: compare(value, *rest))


def contains(container: Any, x: Any) -> Any:
    """x in container"""
    if isinstance(container, Array):
        return (container == x).any()
    if isinstance(container, (list, tuple, set, frozenset, dict, range)) and (
        is_traced(x) or not isinstance(container, range) and any(is_traced(y) for y in container)
    ):
        return one_of(*((lambda y=y: x == y) for y in container))
    return x in container


def is_sequence_of(value: Any, length: int) -> bool:
    """Whether a pattern of so many parts may match a value."""
    is_sequence = isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))
    return is_sequence and len(value) == length


# -- branches


def choose(test: Any, then: Callable, otherwise: Callable, place: str, label: str = "") -> Any:
    """then() if test else otherwise()"""
    known = truth(test)
    if not is_traced(known):
        return then() if known else otherwise()
    blocks = [Recorded(lambda block=block: [block()], [], "if") for block in (then, otherwise)]
    label = label or f"the conditional expression at {place}"
    [value] = Meeting(blocks, [label], "its condition holds").run(convert_element_type(known, _int32))
    return load(value)


def branch(
    test: Any, then: Callable, otherwise: Callable, state: State, raising: Sequence[bool] = (False, False)
):
    """if test: then() else: otherwise(); `raising` says which of them end in `raise`."""
    known = truth(test)
    if not is_traced(known):
        (then if known else otherwise)()
        return
    before = state.read()
    if raising[0] and _raises_if(known, then, state, before):
        otherwise()
        return
    if raising[1] and _raises_if(negate(known), otherwise, state, before):
        then()
        return

    def alternative(block):
        state.write([fresh(value) for value in before])
        try:
            block()
            return state.read()
        finally:
            state.write(before)

    blocks = [Recorded(lambda block=block: alternative(block), [], "if") for block in (then, otherwise)]
    condition = f"the condition at {state.place} holds"
    unread = [state.unread(block.values) for block in blocks]
    after = Meeting(blocks, state.labels, condition, unread, state.live).run(
        convert_element_type(known, _int32)
    )
    state.leave(before, after)


def _raises_if(test: Any, block: Callable, state: State, before: Sequence[Any]) -> bool:
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
        return []

    Recorded(attempt, [], "raise")
    state.write(before)
    if message is None:
        return False
    error_if((), test, message)
    return True


def check(test: Any, text: str, message: Callable[[], Any] | None = None) -> None:
    """assert test, message"""
    known = truth(test)
    if is_traced(known):
        said = f": {message()}" if message is not None else ""
        error_if((), not_(known), f"AssertionError: `assert {text}` does not hold{said}")
    elif not known:
        raise AssertionError(*([] if message is None else [message()]))


def plain(
    test: Any, reason: str, advice: str = "Use `purax.numpy.where` or `purax.lax.cond`/`while_loop`"
) -> Any:
    """A test that cannot be recorded, why, and what to write instead."""
    if is_traced(test):
        test.refuse(
            errors.TracerBoolConversionError,
            "This condition",
            f"It is not rewritten, because {reason}.\n  {advice}.",
        )
    return test


# -- loops


def repeat_while(condition: Callable[[], Any], step: Callable[[], None], state: State) -> None:
    """while condition(): step()"""
    while True:
        flag = truth(condition())
        if is_traced(flag):
            break
        if not flag:
            return
        step()

    def turn():
        step()
        return truth(condition())

    Loop(state, RESULT_LABEL).run(flag, turn)


def repeat_for(items: Any, step: Callable[[Any], None], stop: Callable[[], Any], state: State) -> None:
    """for item in items: step(item), until stop() holds."""
    if isinstance(items, (TracedRange, Numbered)):
        _count(items, items.length, step, stop, state, None)
        return
    is_indexed = isinstance(items, range) or isinstance(items, Array) and items.ndim > 0
    taken = 0
    iterator = iter(items)
    for item in iterator:
        step(item)
        taken += 1
        stopped = stop()
        if is_traced(stopped):
            break
        if stopped:
            return
    else:
        return
    rest = items[taken:] if is_indexed else list(iterator)
    if is_indexed and len(rest) > 1:
        before = state.read()
        try:
            found = TracedRange(rest.start, rest.stop, rest.step) if isinstance(rest, range) else rest
            _count(found, len(rest), step, stop, state, len(rest), negate(stopped))
            return
        except (errors.ConcretizationTypeError, UnboundLocalError, TypeError):
            state.write(before)  # a step that needs to know its number, or values of changing types
    for item in rest:
        branch(negate(stop()), lambda item=item: step(item), lambda: None, state)


def _count(
    items: Any, length: Any, step, stop, state: State, max_steps: int | None, flag: Any = None
) -> None:
    """A loop over items that are found by their number, which is carried."""

    def turn(number):
        step(items[number])
        number = number + 1
        return all_of(lambda: number < length, lambda: negate(stop())), number

    start = convert_element_type(to_array(0), _int32, True)
    Loop(state, RESULT_LABEL).run(truth(length > 0) if flag is None else flag, turn, start, max_steps)
