"""What a function about to be traced can read from outside: a walk over the objects that it holds and names.

A function is an object with code, cells and defaults; its code names global variables and attributes. The walk follows
all of them, taken or not, through containers, objects, classes, modules of the user's and whatever wraps functions. It
knows no order of instructions. Of an object of a user's class those attributes count whose names occur in any code that
was found. What is found, *nodes* (`purity.nodes`), is what guards compare later, and what is compared to find side
effects.
"""

from __future__ import annotations

import abc
import builtins
import contextlib
import functools
import operator
import sys
import types
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from purax.core.array import Array
from purax.core.memo import Memo
from purax.purity import ambient, impure_names
from purax.purity.class_versions import is_patchable, state_of
from purax.purity.code_facts import CodeFacts, facts_of, names_in
from purax.purity.contents import (
    EXACT,
    FUNCTION_NAMES,
    Reader,
    has_none_of,
    is_generated,
    read_array,
    read_array_and_memory,
    read_attributes,
    read_callables,
    read_cell,
    read_class,
    read_function,
    read_library_function,
    read_lock,
    read_logger,
    read_mapping,
    read_module,
    read_namespace,
    read_opaque,
    read_sequence,
    read_set,
    reader_of,
    reads_all,
    same_contents,
    weakly_held,
)
from purax.purity.library_reads import NOTHING, reads_all_attributes, reads_of
from purax.purity.nodes import Node
from purax.purity.ownership import is_user_class, is_user_code, is_user_function, is_user_module
from purax.purity.unknown import tell_internal_error
from purax.tree.registry import default_registry

MOST_NODES = 100_000
_MOST_UNKNOWN = 200  # objects that could not be followed
_DEEPEST = 4  # objects of libraries in one another that are followed
_MOST_MODULES = 32  # that are compared for code that asks for modules by computed names
_MANY = 200  # arguments in one container whose classes are looked at
_MAKING = frozenset(("__init__", "__post_init__"))
_FILTERED: tuple[Reader, ...] = (
    read_class,
    read_module,
    read_function,
    read_namespace,
    read_logger,
    read_lock,
)
_NAMESPACES = frozenset(("__globals__", "f_globals", "f_back", "f_locals"))
_UNPATCHED = frozenset(("purax", "jaxlib", "abc", "typing", "typing_extensions", "builtins"))
_SHARED = frozenset(
    ("collections", "types", "queue", "weakref", "dataclasses", "argparse")
)  # they hold what users give
_FORMATTING = frozenset(("format", "format_map", "vformat"))
_MEMORY = frozenset("flags strides data ctypes __array_interface__".split())
_HARMLESS = frozenset(
    (list, dict, tuple, set, types.CellType, types.ModuleType, np.ndarray, types.MethodType)
)
_BUILT_IN: dict[type, Reader] = {  # which nobody can change, and of which only the contents count
    list: read_sequence,
    tuple: read_sequence,
    dict: read_mapping,
    set: read_set,
    types.CellType: read_cell,
    np.ndarray: read_array,
}
_DATA = (list, dict, set, np.ndarray, bytearray)


# Functions that are called when programs run, not when they are traced: by the ids of the code that hands them over
# and of their own, both.
deferred: dict[tuple[int, int], tuple[types.CodeType, types.CodeType]] = {}


# Functions of libraries that depend on nothing but their arguments, by id, which this keeps alive.
_harmless: Memo[int, Any] = Memo()
_modules: Memo[int, tuple[Any, bool]] = Memo()
_CALLABLE = (types.FunctionType, types.BuiltinFunctionType, np.ufunc, type(np.array2string))


class Captures:
    """What a function can reach.

    Attributes:
        nodes: what it can read, by id of the object.
        spaces: the global variables that it reads, by id of the namespace.
        names: all names and strings in the code that was found.
        stored: names of attributes that it assigns.
        codes: the user's code that was found, by id.
        suspicious: whether something reachable may have a side effect.
        has_arrays: whether there are purax arrays among what was found.
        ambient: what is compared although no object of the user's holds it: settings, modules of libraries.
        weak: ids of the objects that are found through weak references.
        is_complete: whether everything was followed.
    """

    suspicious = has_arrays = is_dynamic = compares = _abstract = _matches = False
    _is_handed = False  # whether a function of a library reads any attribute of what it is given
    is_complete = True
    _unknown = 0
    root: Any = None
    _size: Any = None
    _resolved: Any = None

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.spaces: dict[int, Node] = {}
        self.names: set[str] = set()
        self.stored: set[str] = set()
        self.codes: dict[int, CodeFacts] = {}
        self.ambient: dict[int, Node] = {}
        self.weak: set[int] = set()
        self._imports: dict[str, Any] = {}
        self._library_names: set[str] = set()  # of attributes, in the code of libraries
        self._wide: set[str] = self.names  # of attributes, of both
        self._libraries: dict[int, types.ModuleType] = {}
        self._work: list[tuple[Any, Any, Any, bool, int]] = []  # what is looked at next
        self._skipped: set[int] = set()
        self._plain: dict[type, Any] = {}  # classes of the user's that were looked at, and which names count
        self._widened: set[str] = set()  # the names that nodes were read with
        self._read: dict[
            int, tuple[int, int]
        ] = {}  # by id of a library's module, how much of it was looked at

    def examine(
        self, function: Any, args: Sequence[Any], kwargs: dict[str, Any], static: Iterable[Any]
    ) -> Captures:
        """Walks over what a call of `function` can reach; `static` are arguments that are not traced."""
        self.root = function
        self._push(function, getattr(function, "__name__", type(function).__name__), None)
        for x in static:
            self._push(x, "static argument", None)
        self._push_classes((*args, *kwargs.values()) if kwargs else args)
        self._finish()
        return self

    def is_settled(self) -> bool:
        """Whether everything that was found is as it was."""
        each = (self.spaces, self.nodes, self.ambient) if self.ambient else (self.spaces, self.nodes)
        for nodes in each:
            for node in nodes.values():
                if not same_contents(node.state, node.reader(node.value, node.names)):
                    return False
        return True

    def add_arguments(
        self, names: Sequence[str], args: Sequence[Any], kwargs: dict[str, Any], code: Any
    ) -> None:
        """The containers in these arguments are copies that only the function sees."""
        for i, x in enumerate(args):
            self._push(x, names[i] if i < len(names) else f"argument {i}", code, True)
        for name, x in kwargs.items():
            self._push(x, name, code, True)
        self._finish()

    @property
    def loaded(self) -> set[str]:
        """Names of attributes and variables that the code reads."""
        return set().union(*[facts.loaded for facts in self.codes.values()])

    @property
    def notes(self) -> tuple[set[Any], set[Any]]:
        """Keys and attributes that some code only assigns, and those that it counts."""
        each = [facts.notes for facts in self.codes.values()]
        return set().union(*[x[0] for x in each]), set().union(*[x[1] for x in each])

    @property
    def logs(self) -> set[str]:
        """Names of containers that the code only adds to."""
        each = [facts.logs for facts in self.codes.values()]
        return set().union(*[x[0] for x in each]).difference(*[x[1] for x in each])

    def keep(self, other: Captures) -> None:
        """Forgets what another walk did not find."""
        self.nodes = {key: node for key, node in self.nodes.items() if key in other.nodes}
        for key, node in self.spaces.items():
            found = other.spaces[key].names if key in other.spaces else {}
            node.names = {name: code for name, code in node.names.items() if name in found}
            _, keys, values = node.state
            kept = [i for i, name in enumerate(keys) if name in found]
            node.state = (None, [keys[i] for i in kept], [values[i] for i in kept])

    def add_values(self, values: list[Any]) -> list[Node]:
        """The nodes of what can be reached from these values, and not from what was found before."""
        known = set(self.nodes)
        for x in values:
            self._push(x, type(x).__name__, None)
        self._finish()
        return [node for key, node in self.nodes.items() if key not in known]

    def _push(self, value: Any, name: str, code: Any, is_argument: bool = False) -> None:
        if type(value) not in EXACT:
            self._work.append((value, name, code, is_argument, 0))

    def _push_classes(self, values: Iterable[Any]) -> None:
        """Methods of objects among the arguments may be called; the objects themselves are traced."""
        kinds: dict[type, Any] = {}
        depth = 0
        while values and depth < 6:
            depth += 1
            inner: list[Any] = []
            for x in values:
                kind = type(x)
                if kind is dict:
                    inner += x.values() if len(x) <= _MANY else list(x.values())[:_MANY]
                elif kind is list or kind is tuple:
                    inner += x if len(x) <= _MANY else x[:_MANY]
                else:
                    kinds[kind] = x
            values = inner
        for kind, x in kinds.items():
            if kind not in EXACT and is_user_class(kind) and not isinstance(x, Array):
                self._push(kind, kind.__name__, None)

    def _finish(self) -> None:
        """Follows everything; the more names there are, the more attributes count."""
        while True:
            while self._work:
                item = self._work.pop()
                try:
                    self._visit(*item)
                except Exception as error:  # it is watched as far as it can be, the others all the same
                    self._add_unknown(error, *item)
            size = (len(self.names), self.is_dynamic, self.compares, len(self._library_names), self._is_handed)
            if size != self._size:
                self._size = size
                self._widen()
            elif (len(self._libraries), size) != self._resolved:
                self._resolved = (len(self._libraries), size)
                for module in list(self._libraries.values()):
                    self._resolve(module, 0)
            else:
                self._add_ambient()
                if not self._work:
                    break

    def _add_unknown(
        self, error: Exception, value: Any, name: Any, code: Any, is_argument: bool, _: int
    ) -> None:
        """An object that cannot be followed: its attributes are compared, all of them."""
        self.is_complete = False
        tell_internal_error("following a captured value", error)
        self._unknown += 1
        if id(value) in self.nodes or self._unknown > _MOST_UNKNOWN or isinstance(value, types.ModuleType):
            return
        with contextlib.suppress(Exception):
            node = self.nodes[id(value)] = Node(value, read_attributes, None, name, code, is_argument)
            self._push_parts(node, name, _DEEPEST)

    def _widen(self) -> None:
        is_plain = self.names.isdisjoint(FUNCTION_NAMES) and self._library_names.isdisjoint(FUNCTION_NAMES)
        sees_memory = not _MEMORY.isdisjoint(self.names)
        if not _NAMESPACES.isdisjoint(self.names):
            for node in self.spaces.values():
                for name in self.names:
                    node.names.setdefault(name, node.code)
                self._read_again(node)
        if self._matches:
            for node in self.nodes.values():
                if node.reader is read_class:
                    self.names.update(vars(node.value).get("__match_args__", ()))
        if not _FORMATTING.isdisjoint(self.names):
            self._add_formats()
        names = self.names
        if self._library_names:
            self._widen_objects()
        reads_all = self.is_dynamic or self.compares or self._is_handed
        new = names - self._widened
        self._widened |= new
        for node in list(self.nodes.values()):
            reader = node.reader
            if reader is read_array and sees_memory:
                node.reader = read_array_and_memory
                node.state = node.read()
            if node.names is not names and node.names is not self._wide:
                continue
            if reader is read_function and is_plain and not node.value.__dict__:
                continue
            try:
                if reads_all and self._names_for(node.value, reader) is None:
                    node.names = None
                elif node.seen == len(node.names) or has_none_of(node.value, reader, new):
                    continue
                self._read_again(node)
            except Exception:
                self.is_complete = False

    def _widen_objects(self) -> None:
        """Of objects and classes also those attributes count that the code of libraries names."""
        before = self._wide
        self._wide = self.names | self._library_names
        new = self._wide - before
        for node in list(self.nodes.values()):
            if node.reader in (read_attributes, read_class, read_function) and (
                node.names is self.names or node.names is before
            ):
                node.names = self._wide
                with contextlib.suppress(Exception):
                    if not has_none_of(node.value, node.reader, new):
                        self._read_again(node)
        for kind, found in self._plain.items():
            if found is before or found is self.names:
                self._plain[kind] = self._wide

    def _add_formats(self) -> None:
        """Texts that were found may be formats that read attributes."""
        for nodes in (self.spaces, self.nodes):
            for node in nodes.values():
                for x in node.state[2]:
                    if type(x) is str and "{" in x:
                        self.names |= names_in(x)

    def _add_library_reads(self, value: Any) -> None:
        """What a function or class of a library reads of objects that it may be given."""
        reads = reads_of(value)
        if reads is not NOTHING:
            self._library_names |= reads.names
            self._is_handed = self._is_handed or reads.is_dynamic
            self.compares = self.compares or reads.compares

    def _read_again(self, node: Node) -> None:
        before = {id(x) for x in node.state[2]}
        node.seen = 0 if node.names is None else len(node.names)
        node.state = node.read()
        for key, x in zip(node.state[1], node.state[2], strict=False):
            if id(x) not in before:
                self._push(x, node.text(key), node.code, node.is_argument)

    def _names_for(self, value: Any, reader: Reader) -> Any:
        """Which attributes of an object count."""
        if reader is read_class:
            return None if self.is_dynamic or self._is_handed else self._wide
        if reader is read_function:
            return self._wide
        if reader in _FILTERED:
            return None if self.is_dynamic and reader is not read_lock else self.names
        kind = type(value)
        if self._is_handed or self.is_dynamic or not is_user_class(kind):
            return None
        if reads_all(kind) or default_registry.is_node(kind):
            return None
        if self.compares and any(is_generated(x) for x in vars(kind).values()):
            return None
        return self._wide

    def _visit(self, value: Any, name: Any, code: Any, is_argument: bool, depth: int) -> None:
        if id(value) in self.nodes or id(value) in self._skipped:
            return
        if type(value) is types.FunctionType and not deferred and is_user_code(value.__code__):
            state = (
                read_function(value, self._wide)
                if value.__closure__ or value.__defaults__ or value.__kwdefaults__ or value.__dict__
                else (0, ["__code__"], [value.__code__])
            )
            node = self.nodes[id(value)] = Node(
                value, read_function, self._wide, name, code, is_argument, state
            )
            self._add_function(value, node)
            if len(state[1]) > 1:
                self._push_parts(node, name, 0)
            return
        kind = type(value)
        built_in = _BUILT_IN.get(kind)
        if built_in is not None or kind in self._plain:
            self._add_plain(value, kind, built_in, name, code, is_argument, depth)
            return
        if deferred and code is not None and type(value) in (types.FunctionType, types.MethodType):
            if (id(code), id(value.__code__)) in deferred:
                return
        target = weakly_held(value)
        if target is not None:
            self.weak.add(id(target))
        elif isinstance(value, Array):
            self.has_arrays = True
            return
        reader = reader_of(value)
        if isinstance(value, types.ModuleType):
            self._libraries.setdefault(id(value), value)
            if reader is None:
                return
        if target is not None:
            pass
        elif isinstance(value, abc.ABCMeta):
            self._abstract = True
        elif type(value) in (operator.attrgetter, operator.methodcaller):
            self.names.update(_texts(value.__reduce__()))
        elif reads_all_attributes(value):
            self.is_dynamic = True
        elif not _is_special_method(name):
            self._add_library_reads(value)
        if (setting := ambient.setting_of(value)) is not None:
            self._add_setting(setting)
        if not self.suspicious and type(value) not in _HARMLESS and reader is not read_function:
            self.suspicious = impure_names.may_be_impure(value)
        if isinstance(value, type):
            self._add_class(value)
        if reader is None:
            return
        if reader is read_array and not _MEMORY.isdisjoint(self.names):
            reader = read_array_and_memory
        is_own = is_user_class(kind) or kind is types.FunctionType or reader in (read_class, read_module)
        if not is_own and reader in (read_attributes, read_opaque) and depth >= _DEEPEST:
            return  # what libraries keep for themselves
        if len(self.nodes) > MOST_NODES:
            self.is_complete = False
            return
        node = Node(value, reader, self._names_for(value, reader), name, code, is_argument)
        self.nodes[id(value)] = node
        if kind is types.FunctionType and is_user_code(value.__code__):
            self._add_function(value, node)
        elif reader is read_class:
            for base in value.__mro__[1:]:
                self._push(base, base.__name__, code)
            if type(value) is not type:
                self._push(type(value), type(value).__name__, code)
            if _is_foreign(
                type(value)
            ):  # its code reads them, and as protocols do, asks other objects for them
                self.names.update([x for x in vars(value) if not x.startswith("__")])
        elif is_user_class(kind):
            self._push(kind, kind.__name__, code)
            if reader is read_attributes and target is None:
                self._plain[kind] = node.names
        else:
            self._add_class(kind)
        node.is_library = depth > 0 and not is_own
        if reader in (read_library_function, read_callables):
            inside = _DEEPEST
        elif is_own or (isinstance(value, functools.partial) and is_user_function(value.func)):
            inside = 0
        else:
            inside = depth + (reader in (read_attributes, read_opaque) and kind.__module__ not in _SHARED)
        self._push_parts(node, name, inside)

    def _add_plain(
        self, value: Any, kind: type, reader: Any, name: Any, code: Any, is_argument: bool, depth: int
    ) -> None:
        """An object of which the class tells all that there is to look at, and was looked at before."""
        if len(self.nodes) > MOST_NODES:
            self.is_complete = False
            return
        names = None
        if reader is None:
            reader, depth = read_attributes, 0
            names = self._plain[kind]
            if names is not None and (self.is_dynamic or self.compares or self._is_handed):
                names = self._names_for(value, reader)
        elif reader is read_array and not _MEMORY.isdisjoint(self.names):
            reader = read_array_and_memory
        node = self.nodes[id(value)] = Node(value, reader, names, name, code, is_argument)
        node.is_library = depth > 0
        self._push_parts(node, name, depth)

    def _push_parts(self, node: Node, name: Any, inside: int) -> None:
        """What an object holds is looked at next."""
        _, keys, values = node.state
        is_argument, code, add = node.is_argument, node.code, self._work.append
        for x in keys:
            if type(x) not in EXACT:
                add((x, name, code, is_argument, inside))
        if not keys:
            for i, x in enumerate(values):
                if type(x) not in EXACT:
                    add((x, (node, [i]), code, is_argument, inside))
        elif node.reader is read_function:  # which nothing keeps alive
            for key, x in zip(keys, values, strict=False):
                if type(x) not in EXACT:
                    add((x, node.text(key), code, is_argument, inside))
        else:
            for key, x in zip(keys, values, strict=False):
                if type(x) not in EXACT:
                    add((x, (node, key), code, is_argument, inside))

    # -- code

    def _add_function(self, function: types.FunctionType, node: Node) -> None:
        code = function.__code__
        node.code = code
        if is_generated(function):
            return
        self._add_code(code, function.__globals__)
        if deferred:
            unused = set(code.co_freevars) - self._used(code)
            for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
                if name in unused:
                    self._skipped.add(id(cell))

    def _used(self, code: types.CodeType) -> set[str]:
        facts = facts_of(code)
        used = set(facts.uses)
        for inner in facts.inner:
            if (id(code), id(inner)) not in deferred:
                used |= self._used(inner)
        return used

    def _add_code(self, code: types.CodeType, namespace: dict[str, Any]) -> None:
        if id(code) in self.codes:
            return
        facts = self.codes[id(code)] = facts_of(code)
        self.names |= facts.names
        self.names |= facts.strings
        self.stored |= facts.stored
        if "setattr" in facts.globals or "delattr" in facts.globals:
            self.stored |= facts.strings
        self.is_dynamic = self.is_dynamic or facts.is_dynamic
        self.compares = self.compares or facts.compares
        self._matches = self._matches or facts.matches
        if not self.suspicious:
            self.suspicious = (facts.writes and code.co_name not in _MAKING) or not (
                impure_names.MUTATING_NAMES.isdisjoint(facts.names)
            )
        self._add_globals(namespace, facts)
        for name in facts.imports:
            self._imports.setdefault(name, code)
            module = sys.modules.get(name)
            if module is not None:
                self._push(module, name, code)
        for inner in facts.inner:
            if (id(code), id(inner)) not in deferred:
                self._add_code(inner, namespace)

    def _add_globals(self, namespace: dict[str, Any], facts: CodeFacts) -> None:
        node = self.spaces.get(id(namespace))
        if node is None:
            node = self.spaces[id(namespace)] = Node(
                namespace, read_namespace, {}, "globals", facts.code, False, (None, [], [])
            )
        wanted = facts.globals.copy()
        if facts.evaluates:
            wanted |= {x for x in namespace if not x.startswith("__")}
        elif not {"globals", "vars", "locals"}.isdisjoint(facts.globals):
            named = {x for x in facts.strings if x.isidentifier()}
            named |= {namespace[x] for x in facts.globals if type(namespace.get(x)) is str}
            wanted |= named or {x for x in namespace if not x.startswith("__")}
        built_in = vars(builtins)
        _, keys, values = node.state
        names = node.names
        for name in wanted:
            if name in names:
                continue
            names[name] = facts.code
            if name in namespace:
                value = namespace[name]
                keys.append(name)
                values.append(value)
                if type(value) not in EXACT:
                    self._work.append((value, name, facts.code, False, 0))
            elif name in built_in:
                if type(built_in[name]) is types.FunctionType:  # put there by the user
                    self._push(built_in[name], name, facts.code)
                if not self.suspicious:
                    self.suspicious = name in ("print", "input", "open", "exec", "next")

    # -- libraries

    def _add_class(self, kind: type) -> None:
        """A class of a library, whose methods can be replaced."""
        if id(kind) in self.ambient or not is_patchable(kind) or is_user_class(kind):
            return
        if kind.__module__.partition(".")[0] not in _UNPATCHED:
            self.ambient[id(kind)] = Node(
                state_of(kind), ambient.read_methods, None, kind.__name__, None, False, (True, [], [])
            )

    def _add_setting(self, setting: ambient.Setting) -> None:
        node = Node(setting, ambient.read_setting, None, setting.function.__name__, None, False)
        self.ambient.setdefault(id(setting), node)

    def _add_ambient(self) -> None:
        """What is read of Python itself: the table of modules, and what is registered with abstract classes."""
        if self._abstract and ambient.asks_for_classes(self.names):
            self.ambient[id(abc)] = Node(abc, ambient.read_registrations, None, "abc", None, False)
        if ambient.writes_text(self.names):
            self._add_setting(ambient.PRINTING)
        if ambient.reads_addresses(self.names):
            self.ambient[id(ambient)] = Node(ambient, ambient.read_memory, None, "memory", None, False)
        if ambient.imports_by_name(self.names):
            self._add_imports_by_name()
        if self._imports:
            self.ambient[id(sys.modules)] = Node(
                sys.modules, read_namespace, self._imports, "sys.modules", None, False
            )

    def _add_imports_by_name(self) -> None:
        """The modules that code may ask for by names that are not written in it: the user's.

        Of a large program these are too many to compare; its functions that do so are traced on every call.
        """
        asked = []
        for name, module in list(sys.modules.items()):
            if name not in self._imports and (name in self.names or _is_user_module(module)):
                asked.append((name, module))
                if len(asked) > _MOST_MODULES:
                    self.ambient[id(ambient)] = Node(
                        ambient, ambient.read_memory, None, "modules", None, False
                    )
                    return
        for name, module in asked:
            self._imports[name] = None
            self._push(module, name, None)

    def _resolve_own(self, module: types.ModuleType, own: dict[str, Any], depth: int) -> None:
        """What is read of a module of purax's: functions, which the user may have replaced."""
        read = own.keys() & self.names
        if read and self._is_more(module, len(read)):
            names = dict.fromkeys(sorted(read))
            self.ambient[id(own)] = Node(own, read_namespace, names, module.__name__, None, False)
            for name in names:
                value = own[name]
                if type(value) is types.ModuleType and id(value) not in self._libraries:
                    self._libraries[id(value)] = value
                    self._resolve(value, depth + 1)

    def _resolve(self, module: types.ModuleType, depth: int) -> None:
        """What a library's module holds that can change, and functions of it that reach outside."""
        if depth > 3 or reader_of(module) is not None:
            return
        own = vars(module)
        if module.__name__.partition(".")[0] == "purax":
            self._resolve_own(module, own, depth)
            return
        read = own.keys() & self.names
        if not self._is_more(module, len(read)):
            return
        kept: dict[str, Any] = {}
        for name in self.stored:
            if name not in own:
                kept[name] = None
        if read:
            self.ambient[id(own)] = Node(
                own, read_namespace, dict.fromkeys(read), module.__name__, None, False
            )
        for name in read:
            value = own[name]
            if _harmless.get(id(value)) is value and name not in self.stored:
                continue
            self.is_dynamic = self.is_dynamic or reads_all_attributes(value)
            self._add_library_reads(value)
            if isinstance(value, type):
                self._add_class(value)
            if isinstance(value, types.ModuleType):
                if id(value) not in self._libraries:
                    self._libraries[id(value)] = value
                    self._resolve(value, depth + 1)
            elif value is sys.modules:  # `_add_ambient` looks at those that are asked for
                continue
            elif name in self.stored or isinstance(value, _DATA) or is_user_class(type(value)):
                kept[name] = None
            elif isinstance(value, abc.ABCMeta):
                self._abstract = True
            elif (setting := ambient.setting_of(value)) is not None:
                self._add_setting(setting)
                self.suspicious = self.suspicious or impure_names.may_be_impure(value)
            elif (holder := ambient.holder_of(value)) is not None:
                self.suspicious = True
                self._push(holder, name, None)
            elif impure_names.may_be_impure(value):
                self.suspicious = True
            elif isinstance(value, _CALLABLE) and reads_of(value) is NOTHING and not reads_all_attributes(value):
                _harmless[id(value)] = value
        if module in ambient.MODULES:
            reader = ambient.MODULES[module]
            self.nodes[id(module)] = Node(module, reader, None, module.__name__, None, False)
        elif kept and id(module) not in self.nodes:
            node = self.nodes[id(module)] = Node(module, read_module, kept, module.__name__, None, False)
            for key, x in zip(node.state[1], node.state[2], strict=True):
                self._push(x, node.text(key), None)
        elif kept and isinstance((node := self.nodes[id(module)]).names, dict):
            node.names.update(kept)
            self._read_again(node)

    def _is_more(self, module: types.ModuleType, count: int) -> bool:
        """Whether more is read of a library's module, or may be assigned to it, than when it was looked at before."""
        seen = (count, len(self.stored))
        if self._read.get(id(module)) == seen:
            return False
        self._read[id(module)] = seen
        return True


def _is_user_module(value: Any) -> bool:
    """Whether a value is a module of the user's; found once."""
    known = _modules.get(id(value))
    if known is None or known[0] is not value:
        known = _modules[id(value)] = (value, isinstance(value, types.ModuleType) and is_user_module(value))
    return known[1]


def _is_foreign(metaclass: type) -> bool:
    """Whether code of a library decides what the attributes of a class mean, as for enums and protocols."""
    return metaclass is not type and metaclass is not abc.ABCMeta and not is_user_class(metaclass)


def _is_special_method(name: Any) -> bool:
    """Whether a class has something under a special name, as the `__replace__` of dataclasses, which no code names."""
    if type(name) is not tuple or name[0].reader is not read_class:
        return False
    return isinstance(name[1], str) and name[1].startswith("__")


def _texts(value: Any) -> list[str]:
    """The names in the constants of an object, in tuples."""
    if isinstance(value, str):
        return value.split(".")
    return [name for part in value for name in _texts(part)] if isinstance(value, tuple) else []
