"""Calls out of rewritten functions: functions of the user are rewritten too, and Python's functions on numbers and
sequences learn of traced values.

Only functions with source of the user's own are rewritten. Libraries are called as they are, with the functions they
are given rewritten where the library is purax or one of Python's that calls them at once.
"""

from __future__ import annotations

import collections
import functools
import math
import operator
import os
import sysconfig
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from purax import errors
from purax.core import dtypes, source
from purax.core.array import Array
from purax.core.avals import aval_of
from purax.core.source import located
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.logic import and_, ne, or_
from purax.python_control_flow import choices, paths
from purax.python_control_flow.branches import choose, plain
from purax.python_control_flow.buffers import (
    WRITING,
    Buffer,
    check_bounds,
    holds_traced,
    holds_tracer,
    iterated,
    plain_index,
    value_of,
    with_traced,
    without_buffers,
    write_by,
)
from purax.python_control_flow.heap import Heap, names_in
from purax.python_control_flow.objects import MISSING
from purax.python_control_flow.rewriter import CHANGING_NAMES, effects_of, reachable_functions
from purax.python_control_flow.subscripts import get_item, store
from purax.python_control_flow.truth import load, negate, set_converter, truth
from purax.python_control_flow.values import is_traced
from purax.tree.registry import tree_structure, treedef_is_leaf

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
    found = _called(function)
    if paths.walks.holds_undefined and not (isinstance(found, types.FunctionType) and is_users(found)):
        return functools.partial(_with_known, found)
    return found


def _with_known(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls a function of a library, which must not meet what has no value in a container."""
    for x in (*args, *kwargs.values()):
        if type(x) in _CONTAINERS:
            for item in x.values() if type(x) is dict else x:
                load(item)
    return function(*args, **kwargs)


_CONTAINERS = (list, tuple, dict, collections.deque)


def _called(function: Any) -> Any:
    replacement = _REPLACEMENTS.get(function) if type(function) in _PLAIN else None
    if replacement is not None:
        return replacement
    new = converted(function)
    if new is not function:
        return new
    if (
        type(function) is types.BuiltinMethodType
        and function.__name__ == "get"
        and isinstance(function.__self__, dict)
    ):
        return functools.partial(get_item, function.__self__)
    if isinstance(function, np.ufunc):
        return functools.partial(with_ufunc, function)
    if type(function) in _WRITERS and function.__name__ in _WRITING_NAMES:
        return functools.partial(with_writer, function)
    if type(function) in _FRESH_KINDS and function in _FRESH:
        return functools.partial(with_maker, function)
    if type(function) is _OF_NUMPY:
        return functools.partial(with_output, function)
    if function is operator.setitem:
        return _set_item
    if type(function) is types.MethodWrapperType and function.__name__ == "__setitem__":
        plain = type(function.__self__) in (np.ndarray, list, dict)  # of a subclass, `super()` may ask for it
        return functools.partial(_set_item, function.__self__) if plain else function
    if type(getattr(function, "__self__", None)) is np.ufunc and function.__name__ == "at":
        return functools.partial(with_ufunc_at, function.__self__.__name__, function)
    module = getattr(function, "__module__", None) or ""
    if (not isinstance(function, type) or function in (map, filter)) and module.partition(".")[
        0
    ] in _GIVEN_FUNCTIONS:
        return functools.partial(_with_converted_arguments, function)
    return function


def _with_converted_arguments(function: Any, *args: Any, **kwargs: Any) -> Any:
    module = function.__module__ or ""
    is_own = module.partition(".")[0] == "purax"
    calls_first = module.startswith(_CALLERS) or function in (map, filter)

    def given(x: Any, is_called: bool = False) -> Any:
        is_kept = not is_called and is_object(x) and (not is_own or is_tree(x))
        if not is_own:
            return x if is_kept else converted(x)
        x = without_buffers(x)
        return x if is_kept else given_to_purax(x)

    new = [given(x, position == 0 and calls_first) for position, x in enumerate(args)]
    return function(*new, **{key: given(value, key == "key") for key, value in kwargs.items()})


# Modules whose functions call what they are given first. Elsewhere objects that can be called are passed for what they
# hold, and stay themselves: `isinstance(model, Model)`, `tree.map(f, model)`.
_CALLERS: tuple[str, ...] = (
    "functools",
    "itertools",
    "purax.control_flow",
    "purax.api.autodiff",
    "purax.api.jacobians",
)
_CALLERS += (
    "purax.api.jit",
    "purax.sharding.pmap",
    "purax.sharding.shard_map",
    "purax.interpreters.vmap",
)
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, np.ufunc)


def is_object(x: Any) -> bool:
    """Whether calling is not all that a callable is for."""
    return callable(x) and not isinstance(x, (*_FUNCTIONS, functools.partial, type))


def is_tree(x: Any) -> bool:
    return not treedef_is_leaf(tree_structure(x))


def given_to_purax(x: Any) -> Any:
    """A function that purax will trace: it goes its own ways."""
    new = converted(x)
    return x if new is x else paths.exploring(new)


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
        # Of what is bound only functions are rewritten: an object is more than what calling it does.
        given = [converted(x) if isinstance(x, _FUNCTIONS) else x for x in function.args]
        named = {k: converted(x) if isinstance(x, _FUNCTIONS) else x for k, x in function.keywords.items()}
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
    new = given_to_purax(held) if isinstance(held, _HELD) else held
    return cell if new is held else types.CellType(new)


_HELD = (types.FunctionType, types.MethodType, functools.partial)


# -- Python's own functions


class TracedRange:
    """`range` with traced bounds: a loop over it is recorded."""

    def __init__(self, *bounds: Any):
        for bound in bounds:
            if not dtypes.is_integer(aval_of(bound).dtype) or aval_of(bound).shape:
                raise located(TypeError, f"range() needs integers, got {aval_of(bound).str_short()}")
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
        error = located(
            errors.TracerIntegerConversionError,
            "the length of this `range` is not known while its function is being transformed. A `for` statement "
            "over it is recorded as a loop, but here a sequence is made of it.\n"
            "  Use `jnp.arange` of a length that is known, and a mask, or make the bound static: "
            "`jit(f, static_argnames=...)`.",
        )
        for bound in (self.start, self.stop, self.step):
            if is_traced(bound):
                choices.resolve(bound, error)
        raise error

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


def number(x: Any = 0.0) -> Any:
    """float(x)"""
    is_number = is_traced(x) and x.aval.size == 1 and dtypes.kind(x.aval.dtype) != "complex"
    return convert_element_type(x.reshape(()), aval_of(1.0).dtype, True) if is_number else float(x)


def complex_number(*parts: Any, **named: Any) -> Any:
    """complex(real, imag)"""
    if not any(map(is_traced, (*parts, *named.values()))):
        return complex(*parts, **named)
    real, imaginary = dict(zip(("real", "imag"), parts, strict=False)) | named, 1j
    return real.get("real", 0.0) + imaginary * real.get("imag", 0.0)


def with_math(name: str, function: Callable, counterpart: Any, *args: Any) -> Any:
    """A function of `math`, of traced numbers that of NumPy; where Python would raise, it gives NaN or infinity."""
    if not any(map(is_traced, args)):
        return function(*args)
    if name == "log" and len(args) == 2:
        value, base = (with_math(name, function, counterpart, x) for x in args)
        return value / base
    if len(args) != counterpart.nin:
        return function(*args)
    if paths.may_be_caught():
        if name not in _DOMAINS:
            return function(*args)
        if plain(truth(_DOMAINS[name](*args)), "an error of `math` may be caught"):
            raise ValueError("math domain error")
    result = counterpart(*args)
    return _weak_integer(result) if name in ("floor", "ceil", "trunc") else result


_DOMAINS: dict[str, Callable[[Any], Any]] = {  # where Python raises ValueError
    "sqrt": lambda x: x < 0,
    **dict.fromkeys(("log", "log2", "log10"), lambda x: x <= 0),
    "log1p": lambda x: x <= -1,
    **dict.fromkeys(("asin", "acos"), lambda x: abs(x) > 1),
    "acosh": lambda x: x < 1,
    "atanh": lambda x: abs(x) >= 1,
    **dict.fromkeys(("floor", "ceil", "trunc"), lambda x: x != x),  # NaN
}


def text_of(*args: Any, **options: Any) -> str:
    """str(x); of a number that a branch chose from known ones it is the text of the one or the other."""
    if len(args) == 1 and is_traced(args[0]):
        choices.resolve(args[0], located(TypeError, "the text of a traced number is not known"))
    return str(*args, **options)


def truth_of(x: Any = False) -> Any:
    """bool(x)"""
    if not is_traced(x):
        return truth(x)
    if x.aval.size != 1 or x.aval.shape:
        return bool(x)
    return x if dtypes.is_boolean(x.aval.dtype) else ne(x, 0)


def enumerated(items: Any, start: Any = 0) -> Any:
    return Numbered(items, start) if isinstance(items, TracedRange) else enumerate(iterated(items), start)


def zipped(*items: Any, **options: Any) -> Any:
    """zip(*items)"""
    return zip(*map(iterated, items), **options)  # noqa: B905  (as the user says)


def iterator(items: Any, *sentinel: Any) -> Any:
    """iter(items)"""
    return iter(iterated(items), *sentinel)


def with_ufunc(function: np.ufunc, *args: Any, out: Any = None, **options: Any) -> Any:
    """A function of NumPy's on numbers, which may be asked to write a traced result."""
    target = out[0] if type(out) is tuple and len(out) == 1 else out
    about_to_change(target)
    if target is None or not (holds_tracer(list(args)) or isinstance(target, Buffer)):
        return function(*args, **({} if out is None else {"out": out}), **options)
    if options:
        return function(*args, out=out, **options)
    store(function(*map(value_of, args)), target, ...)
    return value_of(target)


def with_output(function: Any, *args: Any, out: Any = None, **options: Any) -> Any:
    """A function of NumPy's that may be asked to write a traced result."""
    if not holds_tracer(list(args)) and not isinstance(out, Buffer):
        return function(*args, **({} if out is None else {"out": out}), **options)
    args = tuple(_stacked(x) if _is_of_numbers(x) else x for x in args)
    if out is None:
        return function(*args, **options)
    about_to_change(out)
    store(function(*map(value_of, args), **options), out, ...)
    return out


def _is_of_numbers(x: Any) -> bool:
    """Whether NumPy is given a list of numbers, of which some are traced."""
    return type(x) in (list, tuple) and holds_tracer(x) and all(np.ndim(value_of(item)) == 0 for item in x)


def about_to_change(x: Any) -> None:
    """An array is about to be changed in place: if a traced value chose it, the function goes both ways."""
    if isinstance(x, np.ndarray):
        paths.check_free(x)
    else:
        choices.resolve_array(x)


def with_writer(function: Any, *args: Any, **options: Any) -> Any:
    """A function or method of NumPy's that writes to an array, which may be asked to write a traced value."""
    array = getattr(function, "__self__", None)
    is_method = type(array) is np.ndarray
    given = (array, *args) if is_method else args
    about_to_change(given[0] if given else None)
    if not given or type(given[0]) is not np.ndarray or not holds_tracer([*given[1:], *options.values()]):
        return function(*args, **options)
    buffer = with_traced(given[0])
    if buffer is None:
        return function(*args, **options)
    write_by(function.__name__, buffer, *given[1:], **options)
    return None


_WRITERS = (types.BuiltinMethodType, type(np.put))
_WRITING_NAMES = WRITING | {"fill"}


def _set_item(container: Any, index: Any, value: Any) -> None:
    """operator.setitem(container, index, value)"""
    store(value, container, index)


_FRESH = frozenset(
    getattr(np, name)
    for name in (
        "array asarray asanyarray ascontiguousarray full zeros_like ones_like full_like empty_like where concatenate "
        "stack hstack vstack copy sort cumsum cumprod outer tile repeat roll"
    ).split()
)
_FRESH_KINDS = frozenset(map(type, _FRESH))
_OF_NUMPY = type(np.sum)  # the class of the functions that ask their arguments for `__array_function__`


def with_maker(function: Any, *args: Any, **options: Any) -> Any:
    """A function of NumPy's that makes an array: one of traced values can be written to as well."""
    if options.get("out") is not None:
        return with_output(function, *args, **options)
    name, given = function.__name__, args
    if name in _OF_LISTS and args and type(args[0]) in (list, tuple) and holds_tracer(args[0]):
        result = _stacked(args[0])
        dtype = options.pop("dtype", args[1] if len(args) > 1 else None)
        if options:
            return function(*args, dtype=dtype, **options)
        result = result if dtype is None else result.astype(dtype)
    elif name == "full" and len(args) == 2 and holds_tracer(args[1]) and not options:
        result = np.broadcast_to(value_of(args[1]), args[0])
    else:
        given = tuple(_stacked(x) if _is_of_numbers(x) else value_of(x) for x in args)
        if name in _SAME and given and type(given[0]) is not np.ndarray and isinstance(given[0], Array):
            return args[0] if not options and len(args) == 1 else function(*given, **options)
        result = function(*given, **{key: value_of(x) for key, x in options.items()})
    is_new = isinstance(result, Array) and result.ndim > 0 and holds_tracer([result, *args])
    return Buffer(result, np.empty(result.shape, result.dtype)) if is_new else result


_OF_LISTS = frozenset(("array", "asarray", "asanyarray", "ascontiguousarray"))
_SAME = _OF_LISTS - {"array"}


def _stacked(items: Any) -> Any:
    """An array of nested lists that hold traced values."""
    if type(items) in (list, tuple):
        return np.stack([_stacked(x) for x in items])
    value = value_of(items)
    return value if isinstance(value, Array) else np.asarray(value)


def with_ufunc_at(name: str, function: Any, target: Any, index: Any, *value: Any) -> Any:
    """numpy.add.at(target, index, value)"""
    update = _UPDATES.get(name)
    about_to_change(target)
    if update is None or not value or not (holds_traced(index) or holds_tracer([target, *value])):
        return function(target, index, *value)
    if type(target) is np.ndarray:
        target = with_traced(target)
    if not isinstance(target, Buffer):
        return function(target, index, *value)
    index = plain_index(index)
    check_bounds(target.value.shape, index)
    target.write(getattr(target.value.at[index], update)(*map(value_of, value)))
    return None


_UPDATES = {"add": "add", "multiply": "multiply", "minimum": "min", "maximum": "max"}


def maximum(*values: Any, **options: Any) -> Any:
    return _extreme(max, lambda best, x: x > best, values, options)


def minimum(*values: Any, **options: Any) -> Any:
    return _extreme(min, lambda best, x: x < best, values, options)


def _extreme(function: Callable, is_better: Callable, values: tuple, options: dict[str, Any]) -> Any:
    """max and min, also of traced numbers; the key of each item is asked for once."""
    given = list(values[0]) if len(values) == 1 else list(values)
    key = converted(options.get("key"))
    keys = given if key is None else [key(x) for x in given]
    if not given or not any(map(is_traced, keys)):
        if key is None or not given:
            return function(given, **options)
        return given[function(range(len(given)), key=keys.__getitem__)]
    best = (given[0], keys[0])
    for each in zip(given[1:], keys[1:], strict=True):
        test = is_better(best[1], each[1])
        name = f"`{function.__name__}` of items that are compared by traced values"
        if key is None:
            found = choose(test, lambda each=each: each[0], lambda best=best: best[0], "", name)
            best = (found, found)
        else:
            best = choose(test, lambda each=each: each, lambda best=best: best, "", name)
    return best[0]


def every(items: Any) -> Any:
    """all(items)"""
    result: Any = True
    for x in taken(items, lambda: negate(result)):  # noqa: B023
        known = truth_of(x)
        if is_traced(known):
            result = known if result is True else and_(result, known)
        elif not known:
            return False
    return result


def some(items: Any) -> Any:
    """any(items)"""
    result: Any = False
    for x in taken(items, lambda: result):  # noqa: B023
        known = truth_of(x)
        if is_traced(known):
            result = known if result is False else or_(result, known)
        elif known:
            return True
    return result


def taken(items: Any, stopped: Callable[[], Any]) -> Iterator[Any]:
    """Items, as long as `stopped()` does not hold: where that is traced, taking one must change nothing."""
    iterator = iter(items)
    may_change = changes_when_taken(items)
    while True:
        flag = stopped()
        if not is_traced(flag):
            if flag:
                return
        elif may_change:
            decided, number = paths.decide(flag)
            if decided:
                return
            heap = Heap(paths.roots()) if decided is None else None
            item = next(iterator, MISSING)
            if heap is not None:
                _check_unchanged(heap, number)
            if item is MISSING:
                return
            yield item
            continue
        item = next(iterator, MISSING)
        if item is MISSING:
            return
        yield item


def _check_unchanged(heap: Heap, number: int | None) -> None:
    """If taking an item changed something, the function goes both ways."""
    changed = heap.changed()
    if changed:
        message = (
            f"`{changed[0].label}` is changed only if the items before do not end `any`, `all` or `next`, which is "
            "traced: write a loop, or make a list of the items first"
        )
        paths.fail(located(TypeError, message), number)


def changes_when_taken(items: Any) -> bool:
    """Whether taking an item may change something else than what is taken from."""
    if isinstance(items, types.GeneratorType):
        frame = items.gi_frame
        given = () if frame is None else (*frame.f_locals.values(), *_globals_in(frame))
        functions = [f for x in given for f in reachable_functions(x)]
        if any(_changes(code) for code in (items.gi_code, *(f.__code__ for f in functions))):
            return True
        consumed = [x for x in given if hasattr(type(x), "__next__")]
    else:
        consumed = [items] if hasattr(type(items), "__next__") else []
    if not consumed:
        return False
    heap = Heap(paths.roots())  # an iterator that nobody else knows may be used up
    return any(map(heap.has, consumed)) or any(isinstance(x, map) for x in consumed)


def _globals_in(frame: types.FrameType) -> list[Any]:
    return [frame.f_globals[name] for name in frame.f_code.co_names if name in frame.f_globals]


def _changes(code: types.CodeType) -> bool:
    return effects_of(code)[0] or not _CHANGING.isdisjoint(names_in(code))


_CHANGING = CHANGING_NAMES | {"store", "augment_item"}  # as they are called in rewritten functions


_NO_DEFAULT = object()


def get_attribute(x: Any, name: str, default: Any = _NO_DEFAULT) -> Any:
    """getattr(x, name)"""
    return load(getattr(x, name) if default is _NO_DEFAULT else getattr(x, name, default))


def has_attribute(x: Any, name: str) -> bool:
    """hasattr(x, name); whether an attribute is there that one side of a branch set is not known."""
    found = hasattr(x, name)
    if found:
        load(getattr(x, name))
    return found


_PLAIN = (type, types.BuiltinFunctionType)
_MATH = {name: name for name in "sqrt exp log log2 log10 log1p expm1 sin cos tan sinh cosh tanh hypot".split()}
_MATH |= {name: name for name in "floor ceil trunc fabs copysign fmod degrees radians isnan isinf isfinite".split()}
_MATH |= {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "pow": "power"}
_MATH |= {"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh", "exp2": "exp2", "cbrt": "cbrt"}
_REPLACEMENTS = {
    range: range_of,
    int: integer,
    float: number,
    bool: truth_of,
    str: text_of,
    enumerate: enumerated,
    zip: zipped,
    iter: iterator,
    max: maximum,
    min: minimum,
    all: every,
    any: some,
    complex: complex_number,
    hasattr: has_attribute,
    getattr: get_attribute,
}
_REPLACEMENTS |= {
    getattr(math, name): functools.partial(with_math, name, getattr(math, name), getattr(np, other))
    for name, other in _MATH.items()
}
set_converter(converted)
paths.catching.update((has_attribute.__code__, get_attribute.__code__))
