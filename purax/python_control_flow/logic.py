"""Truth, `not`, `and`, `or` and comparisons, of known values as Python has them and of traced ones recorded."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from purax.control_flow.branches import is_costly
from purax.core import dtypes
from purax.core.array import Array
from purax.core.jaxpr import eval_jaxpr
from purax.core.source import located
from purax.interpreters.arguments import to_array
from purax.primitives.elementwise.logic import and_, or_
from purax.python_control_flow import paths
from purax.python_control_flow.branches import choose
from purax.python_control_flow.branches import recorded as recorded_block
from purax.python_control_flow.heap import Heap
from purax.python_control_flow.merging import Leaf, Recorded
from purax.python_control_flow.truth import load, negate, truth
from purax.python_control_flow.values import Inner, is_traced


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
    decided, number = paths.decide(first)
    if decided is not None:
        return truth(operand()) if decided else False
    recorded = _tried(lambda: truth(operand()), number, True)
    if recorded is None:
        return choose(first, lambda: truth(operand()), lambda: False, "", number=number)
    value = value_in(recorded)
    if not isinstance(value, (Array, Inner)):
        return first if value else False
    return and_(first, _result(recorded))


def _tried(operand: Callable[[], Any], number: int | None, side: bool) -> Recorded | None:
    """An operand that may be computed in any case; None if that has effects, costs much, or is no simple value.

    It is needed if the operand before is `side`.
    """
    with paths.opened(number), paths.on_side(side):
        recorded = recorded_block(operand, Heap(paths.roots()), number)
    closed = recorded.closed
    if recorded.lost is not None:
        what = f"`{recorded.lost.label}` (a {type(recorded.lost.object).__name__})"
        message = (
            f"{what} is consumed only where an operand of `and` or `or` is needed, and it cannot be put back"
        )
        paths.fail(located(TypeError, message), number)
    is_simple = type(recorded.value) is Leaf and not recorded.changes
    return None if not is_simple or closed.effects or is_costly(closed) else recorded


def value_in(recorded: Recorded) -> Any:
    """The simple value that a block returned."""
    assert isinstance(recorded.value, Leaf)
    return recorded.value.value


def _result(recorded: Recorded) -> Any:
    """The value of an operand, computed here."""
    value = value_in(recorded)
    if not isinstance(value, Inner):
        return to_array(value)
    return eval_jaxpr(recorded.closed.jaxpr, recorded.closed.consts)[value.position]


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
    decided, number = paths.decide(known)
    if decided is not None:
        return _value_of(operands[1:], goes_on) if decided is goes_on else value
    if dtypes.is_boolean(value.aval.dtype) and value.aval.shape == ():
        recorded = _tried(lambda: _value_of(operands[1:], goes_on), number, goes_on)
        if recorded is not None and _is_flag(value_in(recorded)):
            return (and_ if goes_on else or_)(known, _result(recorded))
    rest = lambda: _value_of(operands[1:], goes_on)  # noqa: E731
    branches = (rest, lambda: value) if goes_on else (lambda: value, rest)
    return choose(known, *branches, "", "the value of `and`" if goes_on else "the value of `or`", number)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool) or isinstance(value, (Array, Inner)) and value.aval.str_short() == "bool[]"


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": lambda x, y: is_one(load(x), load(y)),
    "IsNot": lambda x, y: negate(is_one(load(x), load(y))),
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


def is_one(x: Any, y: Any) -> Any:
    """x is y, where a traced boolean is `True` or `False` as the comparison of two numbers would be."""
    for a, b in ((x, y), (y, x)):
        if isinstance(a, bool) and isinstance(b, Array) and _is_flag(b):  # one that is known, under `grad`, too
            return (b if a else negate(b)) if is_traced(b) else bool(b) is a
    return x is y


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
