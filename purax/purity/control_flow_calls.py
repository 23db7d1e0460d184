"""Calls out of rewritten functions: functions of the user are rewritten too, and Python's functions on numbers and
sequences learn of traced values.

Only functions with source of the user's own are rewritten. Libraries are called as they are, with the functions they
are given rewritten where the library is purax or one of Python's that calls them at once.
"""

from __future__ import annotations

import functools
import os
import sysconfig
import types
from collections.abc import Callable
from typing import Any

from purax import errors
from purax.control_flow.branches import cond
from purax.core import dtypes, source
from purax.core.array import Array
from purax.core.avals import aval_of
from purax.ops.conversion import convert_element_type
from purax.ops.logic import and_, ne, or_
from purax.purity.control_flow_values import is_traced
from purax.transforms.arguments import to_array

_rewriters: list[Callable[[types.FunctionType], types.FunctionType]] = []
_FOREIGN = tuple(
    {sysconfig.get_paths()[key] + os.sep for key in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_GIVEN_FUNCTIONS = ("purax", "functools", "builtins", "itertools")


def set_rewriter(rewrite: Callable[[types.FunctionType], types.FunctionType]) -> None:
    """Sets what makes the rewritten form of a function."""
    _rewriters[:] = [rewrite]


def is_users(function: Any) -> bool:
    """Whether a function is the user's own, not a library's."""
    if not isinstance(function, types.FunctionType):
        return False
    file = function.__code__.co_filename
    return not source.code_is_internal(function.__code__) and not file.startswith(_FOREIGN)


def call(function: Any) -> Any:
    """What is called in the place of a function."""
    replacement = _REPLACEMENTS.get(function) if type(function) in _PLAIN else None
    if replacement is not None:
        return replacement
    new = converted(function)
    if new is not function:
        return new
    module = getattr(function, "__module__", None) or ""
    if (not isinstance(function, type) or function in (map, filter)) and module.partition(".")[
        0
    ] in _GIVEN_FUNCTIONS:
        return functools.partial(_with_converted_arguments, function)
    return function


def _with_converted_arguments(function: Any, *args: Any, **kwargs: Any) -> Any:
    return function(*map(converted, args), **{key: converted(value) for key, value in kwargs.items()})


def converted(function: Any) -> Any:
    """A function of the user, or a method, a partial application or a transformation of one, rewritten.

    Anything else is returned as it is.
    """
    if isinstance(function, types.FunctionType):
        if is_users(function):
            return _rewriters[0](function)
        return with_converted_cells(function)
    if isinstance(function, types.MethodType):
        new = converted(function.__func__)
        return function if new is function.__func__ else types.MethodType(new, function.__self__)
    if type(function) is functools.partial:
        new = converted(function.func)
        given = [converted(value) for value in function.args]
        named = {key: converted(value) for key, value in function.keywords.items()}
        parts = [
            (new, function.func),
            *zip(given, function.args, strict=True),
            *((named[k], v) for k, v in function.keywords.items()),
        ]
        return function if all(a is b for a, b in parts) else functools.partial(new, *given, **named)
    own_call: Any = getattr(type(function), "__call__", None)  # noqa: B004  (it is looked at, not asked for)
    if is_users(own_call) and not isinstance(function, type):
        return types.MethodType(_rewriters[0](own_call), function)
    return function


def with_converted_cells(function: types.FunctionType) -> types.FunctionType:
    """A function that purax made of one of the user's, as `vmap` and `grad` do, made of the rewritten one."""
    if not source.code_is_internal(function.__code__) or function in _open:
        return function
    _open.append(function)
    try:
        cells = [_converted_cell(cell) for cell in function.__closure__ or ()]
    finally:
        _open.pop()
    if all(new is old for new, old in zip(cells, function.__closure__ or (), strict=True)):
        return function
    code, names = function.__code__, function.__globals__
    made = types.FunctionType(code, names, function.__name__, function.__defaults__, tuple(cells))
    made.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(made, function)
    return made


_open: list[types.FunctionType] = []


def _converted_cell(cell: Any) -> Any:
    try:
        held = cell.cell_contents
    except ValueError:  # it is empty
        return cell
    new = converted(held) if isinstance(held, _FUNCTIONS) else held
    return cell if new is held else types.CellType(new)


_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)


# -- Python's own functions


class TracedRange:
    """`range` with traced bounds: a loop over it is recorded."""

    def __init__(self, *bounds: Any):
        for bound in bounds:
            if not dtypes.is_integer(aval_of(bound).dtype) or aval_of(bound).shape:
                raise source.with_location(
                    TypeError(f"range() needs integers, got {aval_of(bound).str_short()}")
                )
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        self.start, self.stop, self.step = (
            _weak_integer(x) if isinstance(x, Array) else x for x in (start, stop, step)
        )

    @property
    def length(self) -> Any:
        return maximum(0, -((self.start - self.stop) // self.step))

    def __getitem__(self, number: Any) -> Any:
        return self.start + number * self.step

    def __reversed__(self):
        first = self.start + (self.length - 1) * self.step
        return TracedRange(first, self.start - self.step, -self.step)

    def __iter__(self):
        raise source.with_location(
            errors.TracerIntegerConversionError(
                "the length of this `range` is not known while its function is being transformed. A `for` statement "
                "over it is recorded as a loop, but here a sequence is made of it.\n"
                "  Use `jnp.arange` of a length that is known, and a mask, or make the bound static: "
                "`jit(f, static_argnames=...)`."
            )
        )

    __len__ = __iter__


class Numbered:
    """`enumerate` of a traced range."""

    def __init__(self, items: TracedRange, start: Any = 0):
        self.items, self.start, self.length = items, start, items.length

    def __getitem__(self, number: Any) -> Any:
        return self.start + number, self.items[number]

    __iter__ = __len__ = TracedRange.__iter__


def _weak_integer(x: Any) -> Any:
    """An integer as Python would have it: it takes the dtype of what it meets."""
    return convert_element_type(x, aval_of(1).dtype, True)


def range_of(*bounds: Any) -> Any:
    return TracedRange(*bounds) if any(map(is_traced, bounds)) else range(*bounds)


def integer(x: Any = 0, *base: Any) -> Any:
    """int(x)"""
    return _weak_integer(x) if is_traced(x) and x.aval.size == 1 and not base else int(x, *base)


def truth_of(x: Any = False) -> Any:
    """bool(x)"""
    if not is_traced(x) or x.aval.size != 1 or x.aval.shape:
        return bool(x)
    return x if dtypes.is_boolean(x.aval.dtype) else ne(x, 0)


def enumerated(items: Any, start: Any = 0) -> Any:
    return Numbered(items, start) if isinstance(items, TracedRange) else enumerate(items, start)


def maximum(*values: Any, **options: Any) -> Any:
    return _extreme(max, lambda best, x: x > best, values, options)


def minimum(*values: Any, **options: Any) -> Any:
    return _extreme(min, lambda best, x: x < best, values, options)


def _extreme(function: Callable, is_better: Callable, values: tuple, options: dict[str, Any]) -> Any:
    """max and min, also of traced numbers."""
    given = list(values[0]) if len(values) == 1 else list(values)
    key = converted(options.get("key")) or (lambda x: x)
    if not given or not any(is_traced(key(x)) for x in given):
        return function(given, **options)
    best = given[0]
    for x in given[1:]:
        test = is_better(key(best), key(x))
        best = (
            cond(test, lambda a, b: b, lambda a, b: a, *_alike(best, x))
            if is_traced(test)
            else x
            if test
            else best
        )
    return best


def _alike(*values: Any) -> list[Any]:
    arrays = [to_array(x) for x in values]
    (dtype, weak), *others = [(x.aval.dtype, x.aval.weak_type) for x in arrays]
    for other in others:
        dtype, weak = dtypes.promote_pair(dtype, weak, *other)
    return [convert_element_type(x, dtype, weak) for x in arrays]


def every(items: Any) -> Any:
    """all(items)"""
    result: Any = True
    for x in items:
        known = truth_of(x)
        if is_traced(known):
            result = known if result is True else and_(result, known)
        elif not known:
            return False
    return result


def some(items: Any) -> Any:
    """any(items)"""
    result: Any = False
    for x in items:
        known = truth_of(x)
        if is_traced(known):
            result = known if result is False else or_(result, known)
        elif known:
            return True
    return result


_PLAIN = (type, types.BuiltinFunctionType)
_REPLACEMENTS = {
    range: range_of,
    int: integer,
    bool: truth_of,
    enumerate: enumerated,
    max: maximum,
    min: minimum,
    all: every,
    any: some,
}
