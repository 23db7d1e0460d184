"""The mutable state that a piece of code can reach: a picture of it, what changed since, and putting it back.

State is found from the variables of the functions that are running, what they close over, the globals that their code
names, and everything these lead to. How a change is made does not matter: by a statement, a method, a helper or a
library, it is seen by comparing the contents of each object with the picture.
"""

from __future__ import annotations

import functools
import gc
import random
import sys
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from purax.core.source import located
from purax.purity.ownership import is_user_code, is_user_module
from purax.python_control_flow.library_state import SETTINGS, SILENT, module_stores, watched
from purax.python_control_flow.objects import (
    VARIABLE,
    Contents,
    Kind,
    Namespace,
    NotRestorable,
    is_large,
    kind_of,
    values,
)

SCOPE = "_purax_scope"  # the variable of a rewritten function that holds a function over all of its variables
_MOST = 1_000_000
_BOUND = (types.BuiltinFunctionType, types.MethodWrapperType)
_VIEWS: tuple[type, ...] = (
    type({}.keys()),
    type({}.values()),
    type({}.items()),
    types.MappingProxyType,
    memoryview,
)


class Entry:
    """An object of the heap, with what it held and its class then; `parent` and `place` lead to it."""

    __slots__ = ("before", "kind", "object", "parent", "place", "references", "type")

    def __init__(self, x: Any, kind: Kind, before: Contents, parent: Entry | str, place: int):
        self.object, self.kind, self.before = x, kind, before
        self.parent, self.place = parent, place
        self.references = 1
        self.type = type(x)

    @property
    def is_reclassed(self) -> bool:
        """Whether the object is of another class now, by `x.__class__ = Other`."""
        return type(self.object) is not self.type

    @property
    def label(self) -> str:
        """How messages call the object: `self.counts[0]`."""
        if isinstance(self.parent, str):
            return self.parent
        parent = self.parent
        if self.place < 0:
            return parent.label
        return parent.kind.label(parent.label, parent.before.shape, self.place)


class Heap:
    """A picture of the mutable objects that can be reached from some roots.

    Attributes:
        entries: by id, the objects, which are kept alive.
        touched: the ids of those that tell nothing, and whether a method of theirs was called.
    """

    def __init__(self, roots: Iterable[tuple[str, Any]], most: int | None = None):
        """`most` is how many objects are looked at, at most; None: it is an error if there are too many."""
        self._most = most
        self.entries: dict[int, Entry] = {}
        self.touched: dict[int, bool] = {}
        self._kept: list[Any] = []
        self._others: set[int] = set()
        self._namespaces: dict[int, tuple[dict, dict[str, None]]] = {}
        self._named: set[tuple[int, str]] = set()
        self._waiting: list[tuple[Any, Entry | str, int]] = []
        self._direct: set[int] = set()
        self._memory: set[int] | None = None
        free: list[Free] = []
        for label, x in roots:
            if type(x) is Free:
                free.append(x)
                x = x.value
            else:
                self._direct.add(id(x))
            self._waiting.append((x, label, -1))
        self._walk()
        held = {(e.label, id(e.before.children[0])) for e in self.entries.values() if e.kind is VARIABLE}
        self._direct.update(id(x.value) for x in free if (x.name, id(x.value)) not in held)

    # -- finding

    def _walk(self) -> None:
        while True:
            while self._waiting:
                self._visit(*self._waiting.pop())
            if not self._namespaces:
                return
            namespaces, self._namespaces = self._namespaces, {}
            for variables, names in namespaces.values():
                new = [name for name in names if (id(variables), name) not in self._named]
                if not new:
                    continue
                self._named.update((id(variables), name) for name in new)
                space = Namespace(variables, new)
                self._kept.append(space)
                self._waiting.append((space, "", -1))

    def _visit(self, x: Any, parent: Entry | str, place: int) -> None:
        if type(x) in values:
            return
        if type(x) is Globals:
            self._add_names(x.code, x.variables)
            return
        known = self.entries.get(id(x))
        if known is not None:
            known.references += 1
            return
        kind = kind_of(x)
        if kind is None:
            if id(x) not in self._others:
                self._visit_other(x, parent, place)
            return
        contents = kind.read(x)
        entry = Entry(x, kind, contents, parent, place)
        if len(self.entries) == self._most:
            self._waiting.clear()
            return
        if len(self.entries) >= _MOST:
            raise located(
                ValueError,
                f"more than {_MOST} objects can be reached from here, too many to find out which of them a traced "
                "condition changes. Pass the function what it needs as arguments, or use `purax.lax.cond`.",
            )
        self.entries[id(x)] = entry
        if kind is SILENT:
            self.touched[id(x)] = False
        children = contents.children
        if isinstance(x, np.ndarray) and not x.dtype.hasobject:
            if type(x) is not np.ndarray:
                self._waiting += [(held, entry, -1) for held in getattr(x, "__dict__", {}).values()]
            return
        if not values.issuperset(set(map(type, children))):
            self._waiting += [(child, entry, i) for i, child in enumerate(children)]
        if isinstance(x, types.FunctionType):
            self._add_function(x, entry)
        elif isinstance(x, type):
            self._waiting += [(method, entry, -1) for method in list(vars(x).values()) if callable(method)]
        elif not kind.is_restorable:
            self._waiting += [(y, entry, -1) for y in gc.get_referents(x)]
        elif type(x).__module__ != "builtins":
            self._waiting.append((type(x), entry, -1))

    def _visit_other(self, x: Any, parent: Entry | str, place: int) -> None:
        """An object that cannot change but may lead to some that can."""
        self._others.add(id(x))
        if isinstance(x, types.MethodType):
            found: list[Any] = [x.__self__, x.__func__]
        elif isinstance(x, functools.partial):
            found = [x.func, x.args, x.keywords]
        elif isinstance(x, (staticmethod, classmethod)):
            found = [x.__func__]
        elif isinstance(x, property):
            found = [x.fget, x.fset]
        elif isinstance(
            x, types.FunctionType
        ):  # of a library: it may have been given functions of the user's
            found = list(x.__closure__ or ())
        elif hasattr(x, "__wrapped__") and not isinstance(x, types.ModuleType):
            found = [x.__wrapped__]
        elif isinstance(x, _BOUND) and not isinstance(x.__self__, types.ModuleType):
            found = [x.__self__]
        elif isinstance(x, weakref.ReferenceType):
            found = [x()]
        elif isinstance(x, _VIEWS):
            found = gc.get_referents(x)
        else:
            return
        self._kept.append(x)
        self._waiting += [(y, parent, place) for y in found if y is not None]

    def _add_function(self, function: types.FunctionType, entry: Entry) -> None:
        self._waiting += [
            (cell, name, -1)
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        ]
        given = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        self._waiting += [(x, entry, -1) for x in given]
        self._add_names(function.__code__, function.__globals__)

    def _add_names(self, code: types.CodeType, variables: dict[str, Any]) -> None:
        """The global variables that code names, and of modules of the user's those that it may mean."""
        names = names_in(code)
        known = self._namespaces.setdefault(id(variables), (variables, {}))[1]
        for name, attribute in module_stores(code):
            module = variables.get(name)
            if isinstance(module, types.ModuleType) and not is_user_module(module):
                self._namespaces.setdefault(id(vars(module)), (vars(module), {}))[1][attribute] = None
        for name in names:
            if name in SETTINGS:
                self._waiting.append((SETTINGS[name], SETTINGS[name].label, -1))
            if name in variables:
                value = variables[name]
                if isinstance(value, types.ModuleType):
                    if is_user_module(value) and id(value) not in self._others:
                        self._others.add(id(value))
                        inner = self._namespaces.setdefault(id(vars(value)), (vars(value), {}))[1]
                        inner.update({n: None for n in names if n in vars(value)})
                    elif value is random:
                        self._waiting.append((random._inst, "random", -1))  # type: ignore[attr-defined]
                    elif value is np and "random" in names:
                        self._waiting.append((np.random.mtrand._rand, "numpy.random", -1))
                else:
                    known[name] = None
            elif name not in _builtins:
                known[name] = None

    # -- comparing

    def has(self, x: Any) -> bool:
        return id(x) in self.entries

    def has_memory_of(self, x: np.ndarray) -> bool:
        """Whether the elements of a NumPy array lie where those of an array in the heap do."""
        if self._memory is None:
            arrays = (e.object for e in self.entries.values() if isinstance(e.object, np.ndarray))
            self._memory = {memory_of(each) for each in arrays}
        return memory_of(x) in self._memory

    def is_direct(self, x: Any) -> bool:
        """Whether an object is a root itself, so that nothing in the heap can be made to mean another one."""
        return id(x) in self._direct

    def changed(self) -> list[Entry]:
        """The objects that hold something else than they did."""
        return [
            e
            for key, e in self.entries.items()
            if e.kind.is_mutable and (e.is_reclassed or not e.kind.same(e.object, e.before))
            or self.touched.get(key)
        ]

    def watching(self) -> AbstractContextManager[None]:
        """`with heap.watching():` notices calls of objects that do not tell whether they changed."""
        return watched(self.touched)

    def restore(self, changed: Iterable[Entry] | None = None) -> None:
        """Gives objects back what they held; raises `NotRestorable` if one of them cannot be."""
        lost = None
        for entry in self.changed() if changed is None else changed:
            if not entry.kind.is_restorable or is_large(entry.object):
                lost = entry
                continue
            try:
                if entry.is_reclassed:
                    object.__setattr__(entry.object, "__class__", entry.type)
                entry.kind.write(entry.object, entry.before)
            except NotRestorable:
                lost = entry
        if lost is not None:
            raise NotRestorable(lost)


def memory_of(x: np.ndarray) -> int:
    """What tells whose memory the elements of an array lie in."""
    while isinstance(x.base, np.ndarray):
        x = x.base
    return id(x if x.base is None else x.base)


_builtins = frozenset(dir(__import__("builtins")))


@functools.lru_cache(4096)
def names_in(code: types.CodeType) -> tuple[str, ...]:
    """The names of globals and attributes in code, and in the functions that it makes."""
    found = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found.update(dict.fromkeys(names_in(constant)))
        elif isinstance(constant, str) and constant.isidentifier():  # rewritten code names attributes so
            found[constant] = None
    return tuple(found)


def running(boundary: types.CodeType, count: int) -> Iterator[tuple[str, Any]]:
    """The roots of what is running, up to the frame number `count` of the code `boundary`: variables, and globals."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code is boundary:
            count -= 1
            if not count:
                return
        if is_user_code(code):
            variables = frame.f_locals
            scope = variables.get(SCOPE)
            if scope is not None:
                yield from zip(scope.__code__.co_freevars, scope.__closure__ or (), strict=True)
            else:
                for name, value in list(variables.items()):
                    yield name, Free(name, value) if name in code.co_freevars else value
            yield "", Globals(code, frame.f_globals)
        frame = frame.f_back


class Free:
    """The value of a variable of a function further out, as a root."""

    def __init__(self, name: str, value: Any):
        self.name, self.value = name, value


class Globals:
    """The global variables that code names, as a root."""

    def __init__(self, code: types.CodeType, variables: dict[str, Any]):
        self.code, self.variables = code, variables


def picture(function: Callable[..., Any]) -> Heap | None:
    """The state that a function can change, to be put back; None if that would not be possible."""
    heap = Heap([("", function)], _MOST_OBJECTS)
    return heap if all(entry.kind.is_restorable for entry in heap.entries.values()) else None


_MOST_OBJECTS = 20_000  # that are looked at before a function is traced the first time
