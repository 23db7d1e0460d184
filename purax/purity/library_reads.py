"""What functions of libraries read of the objects that users hand to them.

The code of a library is not followed, but it names the attributes that it reads. For a function or class of a library
that a user's code names, these are the names in its code and in the code of its package that it calls.
"""

from __future__ import annotations

import pickle
import types
from collections.abc import Iterable
from typing import Any, NamedTuple

from purax.core.memo import Memo
from purax.purity.code_facts import FORMATS, facts_of
from purax.purity.ownership import file_is_library, is_own_function, is_user_class

_MOST = 200  # code objects that are read for one function
# Packages that read nothing of users' objects but what their special methods give, or that only wrap functions.
_HARMLESS = frozenset(
    "purax jax jaxlib numpy ml_dtypes abc builtins collections contextlib enum functools itertools logging math os "
    "random re string sys threading time types typing_extensions warnings weakref".split()
)
# Functions and classes written in C that read all attributes of what they are given, by id.
_READING_ALL = {
    id(x): x
    for x in (getattr, hasattr, vars, dir, eval, exec, pickle.dumps, pickle.dump, pickle.Pickler)
}


class LibraryReads(NamedTuple):
    """What a function of a library reads of objects.

    Attributes:
        names: of attributes.
        is_dynamic: whether it may read attributes by names that are not written in its code.
        compares: whether it may ask objects for their text.
    """

    names: frozenset[str] = frozenset()
    is_dynamic: bool = False
    compares: bool = False


NOTHING = LibraryReads()
_known: Memo[int, tuple[Any, LibraryReads]] = Memo(5000)  # by id, which the entry keeps alive


def reads_all_attributes(value: Any) -> bool:
    """Whether a function of Python's own reads attributes whose names nothing tells."""
    return id(value) in _READING_ALL


def reads_of(value: Any) -> LibraryReads:
    """What a function or class reads, if it is of a library that may be handed objects."""
    if type(value) is types.FunctionType:
        key: Any = value.__code__
        if not file_is_library(key.co_filename):
            return NOTHING
    elif isinstance(value, type) and not is_user_class(value):
        key = value
    else:
        return NOTHING
    known = _known.get(id(key))
    if known is None or known[0] is not key:
        known = _known[id(key)] = key, _read(value)
    return known[1]


def _read(value: Any) -> LibraryReads:
    package = _package(value)
    if package in _HARMLESS:
        return NOTHING
    waiting = list(_functions(value))
    if not waiting:
        return NOTHING
    seen: set[int] = set()
    names: set[str] = set()
    is_dynamic = compares = False
    while waiting and len(seen) < _MOST:
        function = waiting.pop()
        codes = [function.__code__]
        while codes:
            code = codes.pop()
            if id(code) in seen:
                continue
            seen.add(id(code))
            facts = facts_of(code)
            names |= facts.names
            names |= facts.strings
            is_dynamic = is_dynamic or facts.is_dynamic
            compares = compares or not FORMATS.isdisjoint(facts.globals)
            codes += facts.inner
            for name in facts.globals:
                waiting += _called(function.__globals__.get(name), facts.names, package)
    return LibraryReads(frozenset(names), is_dynamic, compares)


def _called(value: Any, names: Iterable[str], package: str) -> list[types.FunctionType]:
    """The functions behind a global variable of a library that belong to the same package."""
    if type(value) is types.FunctionType or isinstance(value, type):
        return list(_functions(value)) if _package(value) == package else []
    if type(value) is types.ModuleType and value.__name__.partition(".")[0] == package:
        own = vars(value)
        return [x for name in names if type(x := own.get(name)) is types.FunctionType]
    return []


def _functions(value: Any) -> Iterable[types.FunctionType]:
    if type(value) is types.FunctionType:
        each = [value]
    else:
        each = [x for x in vars(value).values() if type(x) is types.FunctionType]
    return [x for x in each if file_is_library(x.__code__.co_filename) and not is_own_function(x)]


def _package(value: Any) -> str:
    name = value.__module__
    return name.partition(".")[0] if isinstance(name, str) else ""
