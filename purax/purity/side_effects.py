"""Side effects, found while a function is traced.

What the function can reach (`captures`) is compared with what it was, after each line of the user's code where the
function may have effects at all, and once at the end otherwise. Calls that reach further, such as `print`, are found
in the source of a line before it runs. In strict mode whatever was changed is put back, and the first finding raised.
"""

from __future__ import annotations

import ast
import collections
import functools
import inspect
import os
import sys
import threading
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax import errors
from purax.core.phases import measured
from purax.purity import findings as tell
from purax.purity import impure_names
from purax.purity.captures import Captures
from purax.purity.changes import changed_keys, holds_tracer, new_parts, only_fills, put_back
from purax.purity.code_facts import line_of
from purax.purity.contents import (
    Contents,
    read_callables,
    read_class,
    read_function,
    read_library_function,
    read_module,
    read_namespace,
    same_contents,
)
from purax.purity.findings import Finding, finding
from purax.purity.line_events import Lines
from purax.purity.nodes import Node
from purax.purity.ownership import is_user_class, is_user_code
from purax.purity.source_sites import UNRESOLVED, is_memo, is_skipped, resolve, sites_of, text_of

_MOST_COMPARISONS = 20_000
_LARGE = 1 << 14  # bytes of an array that is compared only once
_FIXED = (tuple, frozenset, types.MethodType, types.BuiltinFunctionType, functools.partial)
_HOLDERS = frozenset(
    (list, dict, set, bytearray, collections.deque, collections.OrderedDict, collections.defaultdict)
    + (collections.Counter, np.ndarray, type, types.CellType, types.FunctionType, types.ModuleType)
    + (threading.local, types.SimpleNamespace)
)
_CALLING = (map, filter, functools.reduce)  # they call their first argument
Place = tuple[types.CodeType, int]


class Watch:
    """Watches one call of a function.

    Attributes:
        mode: "warn", "strict" or "collect".
        findings: in the order in which they happened.
    """

    def __init__(self, mode: str, captures: Captures):
        self.mode = mode
        self.findings: list[Finding] = []
        self._captures = captures
        self._nodes: list[Node] = []
        self._first: list[Contents] = []
        self._last: list[Contents] = []
        self._spent = 0
        self._previous: tuple[types.FrameType, int] | None = None
        self._boundary: types.FrameType | None = None
        self._touched: dict[tuple[int, str, int], tuple[Node, Place, str]] = {}
        self._told: set[tuple[str, str, int, str]] = set()
        self._is_comparing = False
        self._lines: Any = None
        self._pick_nodes()

    def _pick_nodes(self) -> None:
        """The objects that can change."""
        known = {id(node) for node in self._nodes}
        captures = self._captures
        stores = bool(captures.stored) or captures.is_dynamic
        for node in (*captures.spaces.values(), *captures.nodes.values()):
            if id(node) in known or isinstance(node.value, _FIXED):
                continue
            if node.reader in (read_library_function, read_callables):
                continue
            if node.reader in (read_function, read_class, read_module) and not stores:
                continue
            self._nodes.append(node)
            self._first.append(node.state)
            self._last.append(node.state)

    def add_arguments(self, function: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """The containers in these arguments are copies that only the function sees."""
        code: Any = getattr(function, "__code__", None)
        own = code is not None and is_user_code(code)
        self._captures.add_arguments(code.co_varnames if own else (), args, kwargs, code if own else None)
        self._pick_nodes()

    def begin(self, function: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """The function is about to be called, in the caller's frame."""
        self._boundary = sys._getframe(2)
        self.add_arguments(function, args, kwargs)
        self._lines = Lines(self._step)
        self._lines.__enter__()

    def end(self, error: BaseException | None) -> None:
        """The function has returned, or raised an error."""
        if self._lines is not None:
            self._lines.__exit__(None, None, None)
            self._lines = None
        if error is not None and (self.mode != "warn" or isinstance(error, errors.ConcretizationTypeError)):
            self.undo()  # the latter may be traced again, rewritten
        if error is not None:
            self._forget_frames()

    def _forget_frames(self) -> None:
        """Frames know who listens to them: what the function could reach would live until garbage is collected."""
        self._previous = self._boundary = None

    # -- while the function runs

    @measured("analysis")
    def _step(self, frame: types.FrameType, line: int, returns: bool) -> None:
        """A line is about to run, or a function to return."""
        if self._is_comparing:
            return
        self._is_comparing = True
        try:
            if self._previous is not None:
                self._compare(*self._previous)
            self._previous = (frame, line)
            if returns:
                caller = frame.f_back
                while caller is not None and not is_user_code(caller.f_code):
                    caller = caller.f_back
                if caller is not None and caller is not self._boundary:
                    self._previous = (caller, caller.f_lineno)
            else:
                if frame.f_code.co_flags & inspect.CO_GENERATOR:
                    self._advance(frame)
                self._look(frame, line)
        except errors.ImpureFunctionError:
            raise
        except Exception:  # of this analysis: it must not end the user's function
            pass
        finally:
            self._is_comparing = False

    def _advance(self, frame: types.FrameType) -> None:
        """A generator runs: if it is from outside, whoever asked for its next item has advanced it."""
        for node in self._nodes:
            if isinstance(node.value, types.GeneratorType) and node.value.gi_frame is frame:
                caller = frame.f_back
                while caller is not None and not is_user_code(caller.f_code):
                    caller = caller.f_back
                if caller is not None:
                    what = f"`{caller.f_code.co_name}` advances the iterator `{node.name}`"
                    self._add(impure_names.ITERATOR, caller, caller.f_lineno, node.name, what)

    def _look(self, frame: types.FrameType, line: int) -> None:
        """Looks at what the source of a line calls and stores to."""
        sites = sites_of(frame.f_code)
        for call, conditions in sites.calls.get(line, ()):
            if not is_skipped(conditions, frame):
                self._check_call(call, frame)
        for name in sites.names.get(line, ()):
            if isinstance(name, ast.Attribute) and name.attr != "environ":
                continue
            if isinstance(name, ast.Name) and name.id in frame.f_locals:
                continue
            if resolve(name, frame) is os.environ:
                what = f"`{frame.f_code.co_name}` reads `os.environ`"
                self._add(impure_names.ENVIRONMENT, frame, line, "os.environ", what)
        for target, value in sites.stores.get(line, ()):
            if isinstance(target, (ast.Subscript, ast.Attribute)):
                self._touch(resolve(target.value, frame), frame, line, _how(target))
            elif isinstance(value, ast.AugAssign):
                self._touch(resolve(target, frame), frame, line, "an operator")

    def _touch(self, value: Any, frame: types.FrameType, line: int, how: str) -> None:
        """An object may be changed by a line, even if it is the same afterwards."""
        while isinstance(value, (np.ndarray, np.flatiter)) and id(value) not in self._captures.nodes:
            value = value.base
        node = self._captures.nodes.get(id(value))
        if node is not None and node.value is value and not isinstance(value, _FIXED):
            self._touched[id(node), frame.f_code.co_filename, line] = (node, (frame.f_code, line), how)

    def _check_call(self, call: ast.Call, frame: types.FrameType) -> None:
        function = resolve(call.func, frame)
        line = call.lineno
        if function is UNRESOLVED:
            if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call):
                maker = resolve(call.func.value.func, frame)
                if isinstance(maker, type) and impure_names.method_is_impure(maker, call.func.attr):
                    name = f"{maker.__name__}.{call.func.attr}"
                    self._add(
                        impure_names.FILE, frame, line, name, f"`{frame.f_code.co_name}` calls `{name}`"
                    )
            return
        self._check_called(function, call, frame)
        if function in _CALLING if _is_hashable(function) else False:
            called = resolve(call.args[0], frame) if call.args else UNRESOLVED
            if isinstance(called, (types.BuiltinFunctionType, functools.partial)):
                self._check_called(called, call, frame)

    def _check_called(self, function: Any, call: ast.Call, frame: types.FrameType) -> None:
        while isinstance(function, functools.partial):
            function = function.func
        line = call.lineno
        own = getattr(function, "__self__", None)
        name = getattr(function, "__name__", "")
        if own is not None and impure_names.changes_its_object(type(own), name):
            self._touch(own, frame, line, f"`{name}`")
            return
        known = impure_names.impurity_of_call(function, len(call.args) + len(call.keywords))
        if known is not None and known[0] is not impure_names.ITERATOR:
            impurity, name = known
            inside = (
                own is not None
                and not isinstance(own, (type, types.ModuleType))
                and name.split(".")[0] not in ("random", "numpy", "os", "Path")
                and not self._is_outside(own)
            )
            if not inside and not (function is print and self._prints_inside(call, frame)):
                self._add(impurity, frame, line, name, f"`{frame.f_code.co_name}` calls `{name}`")
        for i in impure_names.changed_arguments(function, len(call.args)):
            self._touch(resolve(call.args[i], frame), frame, line, f"`{getattr(function, '__name__', '')}`")
        for given in call.keywords:
            if given.arg == "out":
                self._touch(resolve(given.value, frame), frame, line, "`out=`")

    def _is_outside(self, value: Any) -> bool:
        return id(value) in self._captures.nodes or value in (sys.stdout, sys.stderr, sys.stdin)

    def _prints_inside(self, call: ast.Call, frame: types.FrameType) -> bool:
        """Whether `print` writes to a file that the function made itself."""
        files = [resolve(given.value, frame) for given in call.keywords if given.arg == "file"]
        return (
            bool(files)
            and files[0] is not UNRESOLVED
            and files[0] is not None
            and not self._is_outside(files[0])
        )

    # -- comparing

    def _compare(self, frame: types.FrameType | None, line: int) -> None:
        """Finds what a line changed."""
        if self._spent > _MOST_COMPARISONS:
            return
        touched, self._touched = self._touched, {}
        places = {key[0]: place for key, (_, place, _) in touched.items()}
        for i, node in enumerate(self._nodes):
            if isinstance(node.value, np.ndarray) and node.value.nbytes > _LARGE and id(node) not in places:
                continue
            self._spent += 1
            before = self._last[i]
            now = node.read()
            if not same_contents(before, now):
                self._last[i] = now
                place = (frame.f_code, line) if frame is not None else places.get(id(node))
                how = next((how for other, _, how in touched.values() if other is node), "")
                self._changed(node, before, now, self._first[i], place, how, frame)
                touched = {key: x for key, x in touched.items() if x[0] is not node}
        for node, (code, where), how in touched.values():
            if how != "an operator":
                self._tell_change(node, (code, where), how, False, node.name, frame)

    def _changed(
        self,
        node: Node,
        before: Contents,
        now: Contents,
        first: Contents,
        place: Place | None,
        how: str,
        frame: types.FrameType | None,
    ) -> None:
        """An object is not what it was."""
        value = node.value
        keys = changed_keys(before, now)
        leaks = not node.is_argument and any(map(holds_tracer, new_parts(before, now)))
        code = node.code if place is None else place[0]
        if place is None:
            if code is None:
                return
            place = (code, line_of(code, node.name.split(".")[0].split("[")[0]))
        if not leaks and not node.is_argument and only_fills(first, now):
            if node.is_library or not (type(value) in _HOLDERS or is_user_class(type(value))):
                return  # a library remembers something
            if is_memo(*place) or _is_cached_property(value, keys):
                return
        if node.reader is read_namespace or isinstance(value, types.CellType):
            for key in keys or [node.name]:
                self._tell_variable(node, key, place, leaks, frame)
        elif isinstance(value, impure_names.RANDOM_SOURCES):
            self._tell(
                impure_names.RANDOM, place, node.name, f"`{place[0].co_name}` draws from `{node.name}`", frame
            )
        elif isinstance(value, types.GeneratorType) and value.gi_code is place[0]:
            return  # it goes on itself, because its caller asked it to
        elif impure_names.is_iterator(value) and not is_user_class(type(value)):
            what = f"`{place[0].co_name}` advances the iterator `{node.name}`"
            self._tell(impure_names.ITERATOR, place, node.name, what, frame)
        elif value is getattr(os.environ, "_data", None):
            what = f"`{place[0].co_name}` sets a variable in `os.environ`"
            self._tell(impure_names.ENVIRONMENT, place, "os.environ", what, frame)
        elif type(value).__module__ != "decimal":
            self._tell_change(node, place, how, leaks, node.name, frame)

    def _tell_variable(self, node: Node, key: Any, place: Place, leaks: bool, frame: Any) -> None:
        code = place[0]
        if node.reader is read_namespace:
            module = node.value.get("__name__", "?")
            what = f"`{code.co_name}` assigns the global variable `{key}` of module `{module}`"
            impurity, where = tell.GLOBAL, f"the global variable `{key}`"
        else:
            key = node.name
            what = f"`{code.co_name}` assigns the variable `{key}` of a function around it"
            impurity, where = tell.NONLOCAL, f"the variable `{key}` of an enclosing function"
        if leaks:
            impurity, what = tell.LEAK, f"a traced value is kept in {where} ({what})"
        self._tell(impurity, place, str(key), what, frame)

    def _tell_change(self, node: Node, place: Place, how: str, leaks: bool, name: str, frame: Any) -> None:
        value, code = node.value, place[0]
        if how and how.startswith("`setdefault") and is_memo(*place) and not leaks:
            return
        kind = _kind_of(value)
        by = f" by {how}" if how else ""
        if node.is_argument:
            what = f"`{code.co_name}` changes its argument `{name}`{by} (a {kind})"
            self._tell(tell.ARGUMENT, place, name, what, frame)
            return
        origin = ""
        root = name.split(".")[0].split("[")[0]
        for space in self._captures.spaces.values():
            if root in space.names and root in space.value:
                origin = f" of module `{space.value.get('__name__', '?')}`"
        what = f"`{code.co_name}` changes the {kind} `{name}`{origin}{by}"
        if leaks:
            what = f"a traced value is kept in the {kind} `{name}` ({what})"
        self._tell(tell.LEAK if leaks else tell.MUTATION, place, name, what, frame)

    def _add(self, impurity: Any, frame: types.FrameType, line: int, name: str, what: str) -> None:
        self._tell(impurity, (frame.f_code, line), name, what, frame)

    def _tell(self, impurity: Any, place: Place, name: str, what: str, frame: types.FrameType | None) -> None:
        """Notes a finding; in strict mode, raises it."""
        if frame is not None and _is_excused(frame, self._boundary):
            return
        key = (impurity.kind, place[0].co_filename, place[1], name)
        if key in self._told:
            return
        self._told.add(key)
        self.findings.append(finding(impurity, place[0], place[1], name, what))
        if self.mode == "strict":
            raise tell.error(self.findings[-1])

    # -- afterwards

    def conclude(self) -> None:
        """The function has returned: finds what else changed, and tells."""
        try:
            if self._previous is not None:
                self._compare(*self._previous)
            self._spent = 0
            self._compare(None, 0)
        finally:
            self._forget_frames()
            if self.mode != "warn" and (self.findings or self.mode == "collect"):
                self.undo()
        if self.mode == "strict" and self.findings:
            raise tell.error(self.findings[0])
        if self.mode == "warn":
            for found in self.findings:
                tell.warn(found)

    def undo(self) -> None:
        """Puts outside state back as it was before the call."""
        for node, first in zip(self._nodes, self._first, strict=True):
            try:
                if not same_contents(node.read(), first):
                    put_back(node, first)
            except Exception:
                continue


_EXCUSED = tuple(
    os.path.join(*parts)
    for parts in (
        ("purax", "callbacks", "callback.py"), ("purax", "callbacks", "pure.py"), ("purax", "callbacks", "io.py"),
        ("purax", "callbacks", "debug.py"), ("purax", "xla", "callbacks.py"), ("logging", "__init__.py"),
        ("lib", "warnings.py"),
    )
)  # fmt: skip


def _is_excused(frame: types.FrameType, boundary: types.FrameType | None) -> bool:
    """Whether a frame runs for a callback, a message or an import."""
    link: types.FrameType | None = frame
    while link is not None and link is not boundary:
        file = link.f_code.co_filename
        if file.startswith("<frozen importlib") or link.f_code.co_name == "<module>":
            return True
        if not is_user_code(link.f_code) and file.endswith(_EXCUSED):
            return True
        link = link.f_back
    return False


def _is_hashable(value: Any) -> bool:
    return isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType))


def _is_cached_property(value: Any, keys: Sequence[Any]) -> bool:
    """Whether an object remembers the values of properties that are computed once."""
    kind = type(value)
    return bool(keys) and all(
        [isinstance(key, str) and isinstance(_in_class(kind, key), functools.cached_property) for key in keys]
    )


def _in_class(kind: type, name: str) -> Any:
    return next((vars(parent)[name] for parent in kind.__mro__ if name in vars(parent)), None)


def _how(target: ast.Subscript | ast.Attribute) -> str:
    if isinstance(target, ast.Attribute):
        return f"assigning the attribute `{target.attr}`"
    return f"assigning the entry [{text_of(target.slice)}]"


def _kind_of(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return "NumPy array"
    if isinstance(value, types.ModuleType):
        return "module"
    if isinstance(value, type):
        return "class"
    if type(value).__module__ in ("builtins", "collections"):
        return type(value).__name__
    return f"{type(value).__name__} object"
