"""What an expression of a function may stand for, before the function is called: values that exist outside, with the
paths to them, and what the function would make itself.
"""

from __future__ import annotations

import itertools
import types
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from purax.core import source
from purax.core.array import Array
from purax.purity.ownership import is_user_class, is_user_function, is_user_module
from purax.purity.paths import Path, root, step

SCALARS = (int, float, complex, str, bytes, type(None), np.generic, np.dtype)
MOST_ELEMENTS = 64


class Known(NamedTuple):
    """A value that exists outside; `path` leads to it, None if it needs no guard."""

    value: Any
    path: Path | None


@dataclass(slots=True, eq=False)
class Composite:
    """What holds other values, often the same ones: `number` is made once, so that nothing is walked over again."""

    number: int | None = field(default=None, init=False)


@dataclass(slots=True, eq=False)
class Bound(Composite):
    """A method of the user's, and what it is bound to."""

    function: Any
    own: tuple


class Method(NamedTuple):
    """A method that a library wrote, of an object from outside."""

    own: Known
    name: str


@dataclass(slots=True, eq=False)
class Inner(Composite):
    """A function made by the function itself."""

    code: types.CodeType
    free: dict[str, tuple]
    defaults: tuple
    namespace: dict[str, Any]
    inside: frozenset[str]


class Instance(NamedTuple):
    """An object that the function makes, of a class of the user's."""

    kind: type


class Super(NamedTuple):
    kind: type
    own: tuple


class Partial(NamedTuple):
    function: tuple
    args: tuple
    kwargs: dict[str, tuple]


@dataclass(slots=True, eq=False)
class Fresh(Composite):
    """A container that the function makes."""

    elements: tuple


@dataclass(slots=True, eq=False)
class Row(Composite):
    """A tuple made by `zip`, `enumerate` or `dict.items`: what each of its places may hold."""

    columns: tuple[tuple, ...]


class Mark:
    def __init__(self, name: str):
        self.name = name

    def __repr__(self):
        return self.name


ARGUMENT = Mark("ARGUMENT")  # part of an argument of a traced function
LIBRARY = Mark("LIBRARY")  # made by a library: no code of the user's in it
UNKNOWN = Mark("UNKNOWN")
NOT_KNOWN = (UNKNOWN,)
FROM_LIBRARY = (LIBRARY,)


def held(x: Any, name: str) -> Known:
    """A value that a function or a partial application holds, and nothing can replace."""
    return Known(x, root("object", x, name) if is_mutable(x) else None)


def argument_value(x: Any, is_static: bool) -> tuple:
    if is_static:
        return (Known(x, root("object", x, "static argument") if is_mutable(x) else None),)
    if not isinstance(x, (Array, np.ndarray, *SCALARS, list, tuple, dict)) and is_user_class(type(x)):
        return (Known(x, None),)
    return (ARGUMENT,)


def bind(code, args, kwargs, spread, defaults, named_defaults) -> dict[str, tuple]:
    """The parameters of a function and the values that a call gives them."""
    names = code.co_varnames
    count = code.co_argcount
    params: dict[str, tuple] = {}
    others: tuple = ()
    for values in spread:
        for value in values:
            if type(value) is Fresh:
                others += value.elements
            elif type(value) is Known and isinstance(value.value, (tuple, list, dict)):
                held = value.value.items() if isinstance(value.value, dict) else enumerate(value.value)
                others += tuple(
                    [Known(x, step("item", value.path, k)) for k, x in list(held)[:MOST_ELEMENTS]]
                )
            else:
                others += (value,)
    others = tuple(distinct(list(others)))
    first_default = count - len(defaults)
    for i, name in enumerate(names[:count]):
        if i < len(args):
            params[name] = args[i]
        elif name in kwargs:
            params[name] = kwargs[name]
        elif i >= first_default:
            params[name] = defaults[i - first_default] + (others if spread else ())
        else:
            params[name] = others or (ARGUMENT,)
    for name in names[count : count + code.co_kwonlyargcount]:
        params[name] = kwargs.get(name) or (named_defaults.get(name, ()) + others) or (ARGUMENT,)
    rest = count + code.co_kwonlyargcount
    if code.co_flags & 0x04:
        extra = [v for values in args[count:] for v in values]
        params[names[rest]] = (Fresh(tuple(distinct([*extra, *others]))),)
        rest += 1
    if code.co_flags & 0x08:
        known = set(names[:rest])
        extra = [v for name, values in kwargs.items() if name not in known for v in values]
        params[names[rest]] = (Fresh(tuple(distinct([*extra, *others]))),)
    return params


def distinct(values: list) -> list:
    if len(values) < 2:
        return values
    found: dict[Any, Any] = {}
    for value in values:
        found.setdefault(signature((value,)), value)
    return list(found.values())


def signature(values: tuple) -> tuple:
    """Something that tells values apart."""
    return tuple(
        [
            (id(v.value), None if v.path is None else v.path[3])
            if type(v) is Known
            else number_of(v)
            if isinstance(v, Composite)
            else v.kind
            if type(v) is Instance
            else (type(v), id(v))
            if type(v) in (Partial, Method, Super)
            else v
            for v in values
        ]
    )


_numbers: dict[tuple, int] = {}
_next_number = itertools.count()


def number_of(value: Composite) -> int:
    """A number that equal values share while one function is examined."""
    if value.number is None:
        kind = type(value)
        own: Any = value
        if kind is Inner:
            parts: tuple = (id(own.code), *map(signature, own.free.values()))
        elif kind is Fresh:
            parts = signature(own.elements)
        elif kind is Row:
            parts = tuple(map(signature, own.columns))
        else:
            parts = (id(own.function), signature(own.own))
        value.number = _numbers.setdefault((kind, parts), next(_next_number))
    return value.number


def forget_numbers() -> None:
    """Ends an examination: the objects whose ids were compared may now go."""
    _numbers.clear()


def class_attribute(kind: type, name: str) -> Any:
    for parent in kind.__mro__:
        if name in parent.__dict__:
            return parent.__dict__[name]
    return None


def is_mutable(x: Any) -> bool:
    """Whether a value can be changed in place."""
    if isinstance(
        x, (*SCALARS, Array, types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType)
    ):
        return False
    if isinstance(x, (tuple, frozenset)):
        return any(is_mutable(e) for e in x)
    return True


def passes_arguments_on(function: Any) -> bool:
    """Whether a callable that wraps a function of the user's looks at the arguments itself only as arrays."""
    if isinstance(function, types.FunctionType):
        return source.code_is_internal(function.__code__)
    return type(function).__module__.startswith(("purax.", "functools"))


def is_quiet(x: Any) -> bool:
    """Whether an object of a library keeps state of its own that no result depends on, as loggers and locks do."""
    module = type(x).__module__
    return module.partition(".")[0] in (
        "logging",
        "threading",
        "_thread",
        "warnings",
        "absl",
        "loguru",
        "structlog",
    )


def is_import(value: Any, path: Path) -> bool:
    """Whether a name stands for what an import statement binds: a library's module, function or class."""
    if isinstance(value, types.ModuleType):
        return not is_user_module(value)
    if path[0] != "global" or not callable(value):
        return False
    if getattr(value, "__name__", None) != path[2] and getattr(value, "__qualname__", None) != path[2]:
        return False
    if isinstance(value, types.FunctionType):
        return not is_user_function(value)
    if isinstance(value, type):
        return not is_user_class(value)
    return isinstance(value, types.BuiltinFunctionType)
