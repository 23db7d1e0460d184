"""Calls of what an expression may stand for.

Functions of the user's are followed; a library is handed its arguments, and may call the functions among them.
"""

from __future__ import annotations

import contextvars
import functools
import os
import types
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from purax.core.array import Array
from purax.purity import impure_names
from purax.purity.captured_attributes import (
    NAMES_OF_ELEMENTS,
    all_elements,
    attribute,
    elements_of,
    guard_class,
    item_of,
)
from purax.purity.captured_values import (
    ARGUMENT,
    FROM_LIBRARY,
    LIBRARY,
    NOT_KNOWN,
    SCALARS,
    UNKNOWN,
    Bound,
    Fresh,
    Inner,
    Instance,
    Known,
    Method,
    Partial,
    Row,
    class_attribute,
    distinct,
    held,
    is_mutable,
    is_quiet,
    number_of,
    passes_arguments_on,
)
from purax.purity.ownership import is_own_function, is_user_class, is_user_function
from purax.purity.paths import root, step

if TYPE_CHECKING:
    from purax.purity.captures import Captures

_CALLBACKS = ("purax.callbacks", "purax.debug", "jax.debug", "jax.experimental", "purax.xla.callbacks")
_TRANSPARENT = frozenset(
    (map, filter, zip, enumerate, reversed, sorted, list, tuple, set, dict, iter, next, min, max, sum)
)
# Libraries that change nothing that they are given, but for what `impure_names.changed_arguments` knows of.
_HARMLESS = tuple(
    "purax. numpy builtins math cmath operator _operator functools itertools collections copy json re string typing "
    "dataclasses types enum inspect abc numbers fractions decimal statistics textwrap warnings logging contextlib "
    "pprint opt_einsum ml_dtypes".split()
)


def call_value(
    captures: Captures, callee: Any, args: Sequence[tuple], kwargs: dict[str, tuple], spread: Sequence[tuple]
) -> tuple:
    """Follows a call of one value."""
    kind = type(callee)
    if kind is Known:
        return call_known(captures, callee, args, kwargs, spread)
    if kind is Inner:
        return captures.visit(callee, args, kwargs, spread)
    if kind is Bound:
        if is_user_function(callee.function):
            return captures.visit(callee.function, [callee.own, *args], kwargs, spread)
        return call_known(captures, Known(callee.function, None), [callee.own, *args], kwargs, spread)
    if kind is Partial:
        results: list = []
        for function in callee.function:
            results.extend(
                call_value(captures, function, [*callee.args, *args], {**callee.kwargs, **kwargs}, spread)
            )
        return tuple(results)
    if kind is Method:
        return call_method(captures, callee, args, kwargs, spread)
    if kind is Instance:
        own = class_attribute(callee.kind, "__call__")
        if is_user_function(own):
            return captures.visit(own, [(callee,), *args], kwargs, spread)
    if callee is UNKNOWN:
        captures.suspicious = True
    if callee is ARGUMENT:  # a method of an array, or of a container that was passed
        captures.suspicious = True
    suspect_out(captures, kwargs)
    escape(captures, args, kwargs, spread, shares=callee is LIBRARY)
    return callee.elements or FROM_LIBRARY if kind is Fresh else FROM_LIBRARY


def escape(
    captures: Captures,
    args: Sequence[tuple],
    kwargs: dict[str, tuple],
    spread: Sequence[tuple],
    visit: bool = True,
    shares: bool = False,
) -> None:
    """Values are handed to code that is not followed: it may read all of them, and call the functions.

    `shares` says that it may change them, as far as is known.
    """
    for values in (*args, *kwargs.values(), *spread):
        captures.guard(values)
        if shares:
            captures.share(values)
        if not visit:
            continue
        for value in values:
            call_back(captures, value)


def call_back(captures: Captures, value: Any) -> None:
    """Code that is not followed may call `value`, with arguments of its own."""
    kind = type(value)
    if kind is Known:
        x = value.value
        if isinstance(x, (*SCALARS, Array, np.ndarray, types.ModuleType)):
            return
        if isinstance(x, (list, tuple, dict)) and id(x) not in captures.escaped:
            captures.escaped.add(id(x))
            for element in x.values() if isinstance(x, dict) else x:
                if callable(element):
                    call_back(captures, Known(element, None))
        elif callable(x) and not isinstance(x, type):
            call_value(captures, value, [], {}, [(ARGUMENT,)])
        elif not isinstance(x, type) and is_user_class(type(x)) and id(x) not in captures.escaped:
            captures.escaped.add(id(x))
            for name, method in list(vars(type(x)).items()):
                if is_user_function(method) and name not in ("__init__", "__post_init__", "__repr__"):
                    captures.visit(method, [(value,)], {}, [(ARGUMENT,)])
    elif kind in (Inner, Bound, Partial):
        call_value(captures, value, [], {}, [(ARGUMENT,)])
    elif kind is Fresh and (kind, number_of(value)) not in captures.escaped:
        captures.escaped.add((kind, number_of(value)))
        for element in value.elements:
            call_back(captures, element)


def call_known(
    captures: Captures,
    callee: Known,
    args: Sequence[tuple],
    kwargs: dict[str, tuple],
    spread: Sequence[tuple],
) -> tuple:
    function = callee.value
    if callee.path is not None:
        captures.leaf(callee)
    if isinstance(function, types.FunctionType):
        if is_user_function(function):
            return captures.visit(function, args, kwargs, spread)
        if function.__closure__ is None and is_own_function(function):
            if not function.__module__.startswith(_CALLBACKS):
                escape(captures, args, kwargs, spread)
            return FROM_LIBRARY
    count = len(args) + len(kwargs) + len(spread)
    if impure_names.impurity_of_call(function, count) is not None:
        captures.suspicious = True
    if isinstance(function, types.MethodType):
        own = Known(function.__self__, root("object", function.__self__, "self"))
        return call_known(captures, Known(function.__func__, None), [(own,), *args], kwargs, spread)
    if isinstance(function, functools.partial):
        given = [(held(x, "partial"),) for x in function.args]
        keywords = root("object", function.keywords, "partial")
        named = {n: (Known(x, step("item", keywords, n)),) for n, x in function.keywords.items()}
        return call_known(captures, Known(function.func, None), [*given, *args], {**named, **kwargs}, spread)
    if isinstance(function, weakref.ref) and callee.path is not None:
        return (Known(function(), step("call", callee.path, "()")),)
    if isinstance(function, type):
        return call_class(captures, function, args, kwargs, spread)
    if isinstance(function, types.BuiltinFunctionType):
        owner = getattr(function, "__self__", None)
        if owner is not None and not isinstance(owner, (types.ModuleType, type, np.ufunc)):  # a bound method
            own = Known(owner, root("object", owner, type(owner).__name__))
            return call_method(captures, Method(own, function.__name__), args, kwargs, spread)
        return call_builtin(captures, function, args, kwargs, spread)
    module = str(getattr(function, "__module__", None) or "")
    if module.startswith(_CALLBACKS):
        return FROM_LIBRARY
    suspect_changed(captures, function, args, kwargs)
    found = inside_library(captures, function)
    if found:
        results: list = []
        for x in found:
            results.extend(call_known(captures, x, args, kwargs, spread) if is_user_function(x.value) else
                           call_value(captures, x, args, kwargs, spread))  # fmt: skip
        if not passes_arguments_on(function):
            escape(captures, args, kwargs, spread)
        return FROM_LIBRARY
    own = class_attribute(type(function), "__call__")
    if is_user_function(own):
        if callee.path is not None:
            guard_class(captures, type(function), "__call__")
        return captures.visit(own, [(callee,), *args], kwargs, spread)
    escape(captures, args, kwargs, spread, shares=not module.startswith(_HARMLESS))
    if module.startswith("numpy") and getattr(function, "__name__", "") in impure_names.VIEWING_NAMES:
        return tuple(args[0]) if args else FROM_LIBRARY
    if not module.startswith(("purax.", "numpy")) and any(_may_share(v) for values in args for v in values):
        return NOT_KNOWN  # a shallow copy, say, holds the same lists
    return FROM_LIBRARY


def inside_library(captures: Captures, function: Any) -> list[Known]:
    """The user's functions inside of a callable that a library made: what it wraps, holds or closes over."""
    found: list[Known] = []
    seen: set[int] = set()

    def search(x: Any, depth: int) -> None:
        if id(x) in seen or depth > 4 or isinstance(x, (*SCALARS, Array, np.ndarray, types.ModuleType, type)):
            return
        seen.add(id(x))
        if is_user_function(x) or (isinstance(x, types.MethodType) and is_user_function(x.__func__)):
            found.append(Known(x, None))
        elif isinstance(x, (tuple, list)):
            for element in x[:16]:
                search(element, depth + 1)
        elif isinstance(x, functools.partial):
            search(x.func, depth + 1)
            search(x.args, depth + 1)
        elif callable(x):
            wrapped = getattr(x, "__wrapped__", None)
            if wrapped is not None:
                search(wrapped, depth + 1)
            for cell in getattr(x, "__closure__", None) or ():
                try:
                    content = cell.cell_contents
                except ValueError:
                    continue
                if callable(content) or isinstance(content, (tuple, list)):
                    search(content, depth + 1)
            if not isinstance(x, types.FunctionType):
                if is_user_function(class_attribute(type(x), "__call__")):
                    found.append(Known(x, root("object", x, type(x).__name__)))
                    return
                for content in list(getattr(x, "__dict__", {}).values()):
                    if callable(content):
                        search(content, depth + 1)

    if isinstance(function, types.FunctionType) or not is_user_class(type(function)):
        search(function, 0)
    return found


def call_class(captures: Captures, kind: type, args, kwargs, spread) -> tuple:
    if kind is functools.partial and args:
        return tuple([Partial(args[0], tuple(args[1:]), dict(kwargs))])
    if kind in _TRANSPARENT:
        return call_builtin(captures, kind, args, kwargs, spread)
    escape(captures, args, kwargs, spread)
    if kind is memoryview and args:
        return tuple(args[0])
    own = class_attribute(type(kind), "__call__")
    if is_user_function(own):  # of a metaclass
        captures.visit(own, [(Known(kind, None),), *args], kwargs, spread)
    if not is_user_class(kind):
        return (Instance(kind),) if issubclass(kind, os.PathLike) else FROM_LIBRARY
    instance = Instance(kind)
    for name in ("__new__", "__init__", "__post_init__"):
        method = class_attribute(kind, name)
        method = getattr(method, "__func__", method)
        if is_user_function(method):
            given = ([], {}, ()) if name == "__post_init__" else (args, kwargs, spread)
            captures.visit(method, [(instance,), *given[0]], given[1], given[2])
    return (instance,)


def call_builtin(captures: Captures, function: Any, args, kwargs, spread) -> tuple:
    if function is getattr and len(args) >= 2:
        names = [v.value for v in args[1] if type(v) is Known and isinstance(v.value, str)]
        if len(names) == len(args[1]):
            found: list = []
            for base in args[0]:
                for name in names:
                    values = attribute(captures, base, name)
                    if values == NOT_KNOWN and len(args) > 2:
                        captures.guard((base,))
                        values = args[2]
                    found.extend(values)
            return tuple(distinct(found))
    if function is vars and len(args) == 1:
        return tuple(distinct([v for base in args[0] for v in attribute(captures, base, "__dict__")]))
    suspect_changed(captures, function, args, kwargs)
    if function is next or getattr(function, "__name__", "") == "__next__":
        suspect_first(captures, args, iterators=True)
    escape(captures, args, {}, spread, visit=function not in _TRANSPARENT)
    escape(captures, (), kwargs, ())
    if function in (isinstance, hasattr, callable, len, id, type, issubclass, repr, hash):
        return (Fresh(()),)
    if function not in _TRANSPARENT:
        return FROM_LIBRARY
    columns = [all_elements(captures, values) for values in (*args, *spread)]
    if function is zip and not spread:
        return (Fresh((Row(tuple(columns)),)),)
    if function is enumerate and args:
        return (Fresh((Row((FROM_LIBRARY, columns[0])),)),)
    elements = [v for column in columns for v in column]
    if function in (map, filter) and args:
        for called in args[0]:
            call_value(captures, called, [tuple(distinct(elements)) or FROM_LIBRARY], {}, ())
    if function in (next, min, max, sum):
        return tuple(distinct(elements)) or FROM_LIBRARY
    return (Fresh(tuple(distinct(elements))),)


def suspect_changed(captures: Captures, function: Any, args, kwargs) -> None:
    """A function of a library may change some of its arguments."""
    for i in impure_names.changed_arguments(function, len(args)):
        suspect_first(captures, args[i : i + 1])
    suspect_out(captures, kwargs)


def suspect_out(captures: Captures, kwargs: dict[str, tuple]) -> None:
    if "out" in kwargs:
        suspect_first(captures, [kwargs["out"]])


def suspect_first(captures: Captures, args: Sequence[tuple], iterators: bool = False) -> None:
    for value in args[0] if args else ():
        if value in (ARGUMENT, UNKNOWN) or (type(value) is Known and (is_mutable(value.value) or iterators)):
            captures.suspicious = True
            if type(value) is Known:
                captures.note(value)


def call_method(captures: Captures, callee: Method, args, kwargs, spread) -> tuple:
    """A call of a method that a library wrote."""
    own, name = callee.own, callee.name
    value = own.value
    if impure_names.changes_its_object(type(value), name):
        captures.note(own)
        captures.suspicious = True
    bound: Any = getattr(value, name, None)
    if bound is not None and impure_names.impurity_of_call(bound) is not None:
        captures.suspicious = True
        return FROM_LIBRARY
    if is_quiet(value):
        escape(captures, args, kwargs, spread, visit=False)
        return FROM_LIBRARY
    if isinstance(value, contextvars.ContextVar) and name == "get" and not args and own.path is not None:
        return (Known(bound(), step("call", step("attr", own.path, name), "()")),)
    if isinstance(value, np.ufunc):
        suspect_changed(captures, bound, args, kwargs)
    if isinstance(value, np.ndarray):
        suspect_out(captures, kwargs)
        if name in impure_names.VIEWING_NAMES:
            captures.guard((own,))
            return (own,)
    if not impure_names.only_changes_its_object(type(value), name):
        captures.guard((own,))
    is_plain = type(value).__module__ in ("builtins", "collections", "numpy")
    escape(captures, args, kwargs, spread, shares=not is_plain)
    if isinstance(value, (dict, list, tuple)) and name in NAMES_OF_ELEMENTS:
        if name == "get" and args and all(type(v) is Known for v in args[0]) and isinstance(value, dict):
            found = [x for v in args[0] for x in item_of(captures, own, v)]
            return tuple(distinct([*found, *(args[1] if len(args) > 1 else ())]))
        elements = elements_of(captures, own)
        if name == "items":
            return (Fresh((Row((FROM_LIBRARY, elements)),)),)
        return elements if name in ("get", "pop", "setdefault") else (Fresh(elements),)
    if not isinstance(value, type) and is_user_class(type(value)):
        call_back(captures, own)  # a method inherited from a library may call the user's own
    return FROM_LIBRARY


def _may_share(value: Any) -> bool:
    """Whether what a library makes of a value may hold parts of it that can be changed."""
    if value is ARGUMENT or value is UNKNOWN:
        return value is UNKNOWN
    return type(value) is Known and not isinstance(value.value, np.ndarray) and is_mutable(value.value)
