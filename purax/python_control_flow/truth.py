"""The truth of a value, known or traced, and the value of a variable that may have none."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from purax.callbacks.error_if import error_if
from purax.core import dtypes
from purax.core.array import Array
from purax.primitives.elementwise.logic import ne, not_
from purax.primitives.shape.reshaping import reshape
from purax.purity.ownership import is_user_code
from purax.python_control_flow.buffers import value_of
from purax.python_control_flow.choices import note_same, resolve_array
from purax.python_control_flow.paths import check_inherited
from purax.python_control_flow.values import Maybe, Partly, Undefined, is_traced


def load(value: Any) -> Any:
    """A variable that is read: an error if it is not defined, or not of one type, at this point."""
    if type(value) is Partly and value.is_read_further_in():
        value = value.maybe
    if type(value) is Undefined or type(value) is Partly:
        value.fail()
    if type(value) is Maybe:
        message = f"UnboundLocalError: {value.message}"
        if not isinstance(value.value, Array):  # an object stays the same object, which may have other names
            error_if((), negate(value.flag), message)
            return value.value
        checked = error_if(value.value, negate(value.flag), message)
        note_same(checked, value.value)
        return checked
    return value


def attribute(x: Any, name: str) -> Any:
    """x.name"""
    check_inherited()
    if name in _IN_PLACE:
        resolve_array(x)
    value = getattr(x, name)
    return load(value) if name != "__dict__" else with_known_names(value)


_IN_PLACE = frozenset("sort fill put partition itemset resize".split())  # methods of NumPy's arrays


def attributes_of(x: Any) -> Any:
    """vars(x)"""
    return with_known_names(vars(x))


def with_known_names(held: Any) -> Any:
    """The attributes of an object, of which each must be known to be there."""
    for value in list(held.values()):
        if type(value) is Undefined or type(value) is Partly:
            load(value)
    return held


def truth(value: Any) -> Any:
    """The truth of a value: a bool, or a traced boolean scalar."""
    if not is_traced(value):
        return bool(value) if type(value) in _PLAIN else _asked(value)
    aval = value.aval
    if aval.size != 1:
        return bool(value)  # raises
    if aval.shape:
        value = reshape(value, ())
    return value if dtypes.is_boolean(aval.dtype) else ne(value, 0)


_PLAIN = frozenset((bool, int, float, complex, str, type(None), list, tuple, dict, set, np.bool_, np.ndarray))


def _asked(value: Any) -> Any:
    """The truth of an object, of which a method of the user's may tell by a traced value."""
    for name in ("__bool__", "__len__"):
        method = getattr(type(value), name, None)
        if method is not None:
            if isinstance(method, types.FunctionType) and is_user_code(method.__code__):
                told = converted_by[0](method)(value)
                told = value_of(told)
                if isinstance(told, Array):
                    return truth(told)
                if name == "__len__":
                    return bool(range(operator.index(told)))
                if not isinstance(told, bool):
                    raise TypeError(f"__bool__ should return bool, returned {type(told).__name__}")
                return told
            break
    return bool(value)


converted_by: list[Callable[[Any], Any]] = [lambda function: function]


def set_converter(convert: Callable[[Any], Any]) -> None:
    """Sets what makes the rewritten form of a function."""
    converted_by[:] = [convert]


def negate(value: Any) -> Any:
    """not value"""
    known = truth(value)
    return not_(known) if is_traced(known) else not known
