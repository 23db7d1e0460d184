"""What a function about to be traced reads from outside, and whether anything it can reach may have side effects.

The summaries of its code and of the user's functions it can reach (through names, closures, attributes, arguments of
other functions) are evaluated on the values that the names have now. A value found outside remembers the *path* that
leads to it, which can be followed again on later calls. All ways through the code count, taken or not; this finds what
to compare and whether to watch, it reports nothing.
"""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from purax.purity import impure_names
from purax.purity.bytecode import Write, summarize
from purax.purity.captured_calls import call_value
from purax.purity.captured_expressions import Environment, evaluate, evaluate_call
from purax.purity.captured_values import (
    ARGUMENT,
    FROM_LIBRARY,
    NOT_KNOWN,
    SCALARS,
    UNKNOWN,
    Inner,
    Known,
    Method,
    argument_value,
    bind,
    distinct,
    forget_numbers,
    held,
    is_import,
    is_mutable,
    signature,
)
from purax.purity.ownership import is_user_class, is_user_function
from purax.purity.paths import Path, path_text, root, step

_BUILT_IN = frozenset(
    (*SCALARS, bool, list, dict, tuple, set, types.FunctionType, types.ModuleType, type, np.ndarray)
)
_NOT_NOTED = (*SCALARS, types.ModuleType, type)
_NO_OPERATORS = frozenset(
    ("__init__", "__new__", "__post_init__", "__repr__", "__del__", "__init_subclass__")
)
_DEPTH = 40
_VISITS = 600


class Leaf(NamedTuple):
    """A value to compare: `how` is "value", "type" (of the object) or "identity"; `code` and `line` read it."""

    path: Path
    how: str
    code: types.CodeType | None
    line: int


class Captures:
    """What a function reads.

    Attributes:
        leaves: what guards compare, by path and manner.
        suspicious: whether something reachable may have a side effect, or could not be resolved.
        values: mutable values from outside that were met, by id, and how messages call them.
        cells: the variables from outside that functions share, by code and name.
        written: where the function itself may assign what a path leads to.
        globals: the global variables that were looked up, and their values.
        definitions: the functions that were followed, with their code and defaults.
        shared: by id, mutable values that libraries were given, how messages call them, and where.
        fixed: whether no global variable that was looked up holds what may change while the variable stays the same.
        closed: whether nothing that functions close over, or have as defaults, was looked up either.
    """

    def __init__(self, guards: bool = True):
        self.leaves: dict[Any, Leaf] = {}
        self.suspicious = False
        self.values: dict[int, tuple[Any, str]] = {}
        self.globals: list[tuple[dict, str, Any]] = []
        self.definitions: list[tuple[types.FunctionType, types.CodeType, Any, Any]] = []
        self.shared: dict[int, tuple[Any, str, types.CodeType | None, int]] = {}
        self.fixed = self.closed = True
        self._guards = guards
        self._visited: dict[Any, tuple] = {}
        self._depth = 0
        self._line = 0
        self._code: types.CodeType | None = None
        self.cells: dict[tuple[types.CodeType, str], Any] = {}
        self.written: dict[tuple, tuple[str, int]] = {}
        self.escaped: set[Any] = set()  # ids of values, and kinds and numbers of what the function makes
        self.operated: set[int] = set()
        self._root: Any = None

    def examine(
        self, function: Any, args: Sequence[Any], kwargs: dict[str, Any], static: Iterable[Any]
    ) -> Captures:
        """Follows a call of `function`; `static` are the ids of arguments that are not traced."""
        static = set(static)
        self._root = function
        is_plain = isinstance(function, types.FunctionType)
        self.closed = is_plain and not (
            function.__defaults__ or function.__kwdefaults__ or function.__closure__
        )
        positional = [argument_value(x, id(x) in static) for x in args]
        named = {name: argument_value(x, id(x) in static) for name, x in kwargs.items()}
        is_object = not isinstance(function, (types.FunctionType, types.MethodType, functools.partial))
        path = root("object", function, type(function).__name__) if is_object else None
        call_value(self, Known(function, path), positional, named, ())
        self._root = None  # captures may be kept longer than the function
        self._visited.clear()
        self.escaped.clear()
        forget_numbers()
        self.operated.clear()
        return self

    # -- guards

    def guard(self, values: tuple, how: str = "value") -> None:
        """The function depends on all of these values."""
        for value in values:
            if type(value) is Known:
                if value.value is os.environ or impure_names.is_iterator(value.value):
                    self.suspicious = True
                if value.path is not None:
                    self.leaf(value, how)
                kind = type(value.value)
                if kind not in _BUILT_IN and is_user_class(kind) and id(value.value) not in self.operated:
                    self.operated.add(id(value.value))
                    self._follow_operators(value, kind)
            elif type(value) is Method:
                self.guard((value.own,))

    def _follow_operators(self, value: Known, kind: type) -> None:
        """An object of the user's is an operand: Python may call the methods that its class has for that."""
        for parent in kind.__mro__:
            for name, method in list(vars(parent).items()) if is_user_class(parent) else ():
                if name.startswith("__") and name not in _NO_OPERATORS and is_user_function(method):
                    self.visit(method, [(value,)], {}, [(ARGUMENT,)])

    def leaf(self, known: Known, how: str = "value") -> None:
        value: Any
        path: Any
        value, path = known
        self.note(known)
        if not self._guards:
            return
        if how == "value" and (is_import(value, path) or value is self._root):
            return
        key = (how, path[3])
        if key not in self.leaves:
            self.leaves[key] = Leaf(path, how, self._code, self._line)

    def note(self, known: Known) -> None:
        value = known.value
        if known.path is None or id(value) in self.values:
            return
        if not isinstance(value, _NOT_NOTED):
            self.values[id(value)] = (value, path_text(known.path))

    # -- following functions

    def visit(
        self, function: Any, args: Sequence[tuple], kwargs: dict[str, tuple], spread: Sequence[tuple] = ()
    ) -> tuple:
        """Follows a call of a function of the user's; returns what it may return."""
        if type(function) is Inner:
            code, namespace, free, inside = function.code, function.namespace, function.free, function.inside
            defaults: Sequence[tuple] = function.defaults
            named_defaults: dict[str, tuple] = {}
        else:
            code, namespace, inside = function.__code__, function.__globals__, frozenset()
            if function is not self._root:
                self._guard_definition(function)
            free = {}
            for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
                self.cells[code, name] = cell
                self.closed = False
                try:
                    free[name] = (Known(cell.cell_contents, root("cell", cell, name)),)
                except ValueError:
                    free[name] = NOT_KNOWN
            names = code.co_varnames[: code.co_argcount]
            given = function.__defaults__ or ()
            defaults = [(held(x, n),) for x, n in zip(given, names[len(names) - len(given) :], strict=True)]
            named_defaults = {n: (held(x, n),) for n, x in (function.__kwdefaults__ or {}).items()}
        params = bind(code, args, kwargs, spread, defaults, named_defaults)
        key = (
            id(code),
            tuple([(n, signature(v)) for n, v in params.items()]),
            tuple(map(signature, free.values())),
        )
        if key in self._visited:
            return self._visited[key]
        if self._depth > _DEPTH or len(self._visited) > _VISITS:
            self.suspicious = True
            return NOT_KNOWN
        self._visited[key] = FROM_LIBRARY  # of a recursive call
        summary = summarize(code)
        environment = Environment(summary, namespace, free, params, inside)
        outer = self._code, self._line
        self._depth += 1
        try:
            self._code = code
            for line, value in summary.reads:
                self._line = line
                self.guard(evaluate(self, value, environment))
            for call in summary.calls:
                self._line = call.line
                evaluate_call(self, call, environment)
            for write in summary.writes:
                self._line = write.line
                self.suspect_write(write, environment)
            results: list = []
            for value in summary.returns:
                results.extend(evaluate(self, value, environment))
        finally:
            self._depth -= 1
            self._code, self._line = outer
        self._visited[key] = found = tuple(distinct(results)) or FROM_LIBRARY
        return found

    def _guard_definition(self, function: types.FunctionType) -> None:
        """The code and the defaults of a function can be replaced, while the function stays the same."""
        code, defaults, named = function.__code__, function.__defaults__, function.__kwdefaults__
        self.definitions.append((function, code, defaults, named and dict(named)))
        own = root("object", function, function.__name__)
        self.leaf(Known(code, step("attr", own, "__code__")), "identity")
        if defaults:
            self.leaf(Known(defaults, step("attr", own, "__defaults__")), "identity")
        if named:
            self.leaf(Known(named, step("attr", own, "__kwdefaults__")))

    def hold(self) -> bool:
        """Whether the global variables that were looked up, and the functions that were followed, are as they were."""
        return all([space.get(name) is value for space, name, value in self.globals]) and all(
            [
                f.__code__ is code and f.__defaults__ is defaults and f.__kwdefaults__ == named
                for f, code, defaults, named in self.definitions
            ]
        )

    def without_closures(self) -> Captures:
        """What is needed of this, if it is not suspicious, to know that of functions that are alike; without arrays."""
        clean = Captures(False)
        clean.globals = self.globals
        clean.definitions = [each for each in self.definitions if each[0].__closure__ is None]
        return clean

    def share(self, values: tuple) -> None:
        """A library that may change what it is given is given these."""
        for value in values:
            if type(value) is Method:  # `log.append`, to be called
                value = value.own
            if type(value) is Known and id(value.value) not in self.shared and is_mutable(value.value):
                name = path_text(value.path) if value.path is not None else type(value.value).__name__
                self.shared[id(value.value)] = (value.value, name, self._code, self._line)

    def suspect_write(self, write: Write, environment: Environment) -> None:
        if self.suspicious and not self._guards:
            return
        place = (environment.code.co_filename, write.line)
        if write.kind == "global":
            self.suspicious = True
            self.written[root("global", environment.namespace, write.name)[3]] = place
            return
        if write.kind == "nonlocal":
            if write.name not in environment.inside:
                self.suspicious = True
                for value in environment.free.get(write.name, ()):
                    if type(value) is Known and value.path is not None:
                        self.written[value.path[3]] = place
            return
        if write.kind == "attribute" and environment.code.co_name in ("__init__", "__post_init__", "__new__"):
            base = write.base[2] if write.base[0] == "local" else write.base
            if base[0] == "param" and base[1] == environment.code.co_varnames[0]:
                return
        for value in evaluate(self, write.base, environment):
            if value is UNKNOWN:
                self.suspicious = self.suspicious or write.kind != "in-place"
            elif value is ARGUMENT:
                self.suspicious = self.suspicious or write.kind != "in-place"
            elif type(value) is Known and (write.kind != "in-place" or is_mutable(value.value)):
                self.note(value)
                self.suspicious = True
                if value.path is not None:
                    inner: Any = (
                        step("attr", value.path, write.name) if write.kind == "attribute" else value.path
                    )
                    self.written[inner[3]] = place
