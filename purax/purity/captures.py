"""What a function about to be traced reads from outside, and whether anything it can reach may have side effects.

The summaries of its code and of the user's functions it can reach (through names, closures, attributes, arguments of
other functions) are evaluated on the values that the names have now. A value found outside remembers the *path* that
leads to it, which can be followed again on later calls. All ways through the code count, taken or not; this finds what
to compare and whether to watch, it reports nothing.
"""

from __future__ import annotations

import functools
import os
import sys
import types
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from purax.core.array import Array
from purax.purity import impure_names
from purax.purity.bytecode import Call, Expression, Summary, Write, summarize
from purax.purity.captured_values import (
    ARGUMENT,
    LIBRARY,
    MOST_ELEMENTS,
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
    Super,
    argument_value,
    bind,
    class_attribute,
    distinct,
    is_import,
    is_mutable,
    is_quiet,
    passes_arguments_on,
    signature,
)
from purax.purity.ownership import is_user_class, is_user_function, is_user_module
from purax.purity.paths import Path, path_text, root, step

_DEPTH = 40
_VISITS = 600
_UNKNOWN = (UNKNOWN,)
_LIBRARY = (LIBRARY,)
_CALLBACKS = ("purax.callbacks", "purax.debug", "jax.debug", "jax.experimental", "purax.xla.callbacks")
_TRANSPARENT = {
    map,
    filter,
    zip,
    enumerate,
    reversed,
    sorted,
    list,
    tuple,
    set,
    dict,
    iter,
    next,
    min,
    max,
    sum,
}
_NAMES_OF_ELEMENTS = frozenset("items values get pop setdefault keys copy __getitem__".split())


class Leaf(NamedTuple):
    """A value to compare: `how` is "value", "type" (of the object) or "identity"; `code` and `line` read it."""

    path: Path
    how: str
    code: types.CodeType | None
    line: int


class _Environment:
    """One call of a function: what its names stand for."""

    __slots__ = ("calls", "code", "free", "inside", "memo", "namespace", "params", "summary")

    def __init__(self, summary: Summary, namespace, free, params, inside):
        self.summary = summary
        self.code = summary.code
        self.namespace = namespace
        self.free = free
        self.params = params
        self.inside = inside  # names of free variables that belong to the traced function itself
        self.memo: dict[int, tuple] = {}
        self.calls: dict[int, tuple] = {}


class Captures:
    """What a function reads.

    Attributes:
        leaves: what guards compare, by path and manner.
        suspicious: whether something reachable may have a side effect, or could not be resolved.
        values: mutable values from outside that were met, by id, and how messages call them.
        cells: the variables from outside that functions share, by code and name.
        written: where the function itself may assign what a path leads to.
        globals: the global variables that were looked up, and their values.
        portable: whether nothing else than these was looked at, so that other functions with the same code do the same.
    """

    def __init__(self, guards: bool = True):
        self.leaves: dict[Any, Leaf] = {}
        self.suspicious = False
        self.values: dict[int, tuple[Any, str]] = {}
        self.globals: list[tuple[dict, str, Any]] = []
        self.portable = True
        self._guards = guards
        self._visited: dict[Any, tuple] = {}
        self._depth = 0
        self._line = 0
        self._code: types.CodeType | None = None
        self.cells: dict[tuple[types.CodeType, str], Any] = {}
        self.written: dict[tuple, tuple[str, int]] = {}
        self._escaped: set[int] = set()
        self._root: Any = None

    def examine(
        self, function: Any, args: Sequence[Any], kwargs: dict[str, Any], static: Iterable[Any]
    ) -> Captures:
        """Follows a call of `function`; `static` are the ids of arguments that are not traced."""
        static = set(static)
        self._root = function
        is_plain = isinstance(function, types.FunctionType)
        self.portable = is_plain and not (
            function.__defaults__ or function.__kwdefaults__ or function.__closure__
        )
        positional = [argument_value(x, id(x) in static) for x in args]
        named = {name: argument_value(x, id(x) in static) for name, x in kwargs.items()}
        is_object = not isinstance(function, (types.FunctionType, types.MethodType, functools.partial))
        path = root("object", function, type(function).__name__) if is_object else None
        self.call_value(Known(function, path), positional, named, ())
        self._root = None  # captures may be kept longer than the function
        self._visited.clear()
        self._escaped.clear()
        return self

    # -- guards

    def guard(self, values: tuple, how: str = "value") -> None:
        """The function depends on all of these values."""
        for value in values:
            if type(value) is Known:
                if value.value is os.environ or impure_names.is_iterator(value.value):
                    self.suspicious = True
                if value.path is not None:
                    self._leaf(value, how)
            elif type(value) is Method:
                self.guard((value.own,))

    def _leaf(self, known: Known, how: str = "value") -> None:
        value, path = known
        self._note(known)
        if not self._guards:
            return
        if how == "value" and (is_import(value, path) or value is self._root):
            return
        key = (how, path[3])
        if key not in self.leaves:
            self.leaves[key] = Leaf(path, how, self._code, self._line)

    def _note(self, known: Known) -> None:
        value = known.value
        if not isinstance(value, (*SCALARS, types.ModuleType, type)) and known.path is not None:
            self.values.setdefault(id(value), (value, path_text(known.path)))

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
            free = {}
            for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
                self.cells[code, name] = cell
                self.portable = False
                try:
                    free[name] = (Known(cell.cell_contents, root("cell", cell, name)),)
                except ValueError:
                    free[name] = _UNKNOWN
            names = code.co_varnames[: code.co_argcount]
            given = function.__defaults__ or ()
            defaults = [
                (Known(x, root("object", x, n) if is_mutable(x) else None),)
                for x, n in zip(given, names[len(names) - len(given) :], strict=True)
            ]
            named_defaults = {
                n: (Known(x, root("object", x, n) if is_mutable(x) else None),)
                for n, x in (function.__kwdefaults__ or {}).items()
            }
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
            return _UNKNOWN
        self._visited[key] = _LIBRARY  # of a recursive call
        summary = summarize(code)
        environment = _Environment(summary, namespace, free, params, inside)
        outer = self._code, self._line
        self._depth += 1
        try:
            self._code = code
            for use in summary.uses:
                self._line = use.line
                if use.how == "subscript":
                    if any(
                        type(v) is Known and v.value is os.environ
                        for v in self.evaluate(use.value, environment)
                    ):
                        self.suspicious = True
                    continue
                self.guard(self.evaluate(use.value, environment))
            for call in summary.calls:
                self._line = call.line
                self.evaluate_call(call, environment)
            for write in summary.writes:
                self._line = write.line
                self.suspect_write(write, environment)
            results: list = []
            for value in summary.returns:
                results.extend(self.evaluate(value, environment))
        finally:
            self._depth -= 1
            self._code, self._line = outer
        self._visited[key] = found = tuple(distinct(results)) or _LIBRARY
        return found

    def suspect_write(self, write: Write, environment: _Environment) -> None:
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
        for value in self.evaluate(write.base, environment):
            if value is UNKNOWN:
                self.suspicious = self.suspicious or write.kind != "in-place"
            elif value is ARGUMENT:
                self.suspicious = self.suspicious or write.kind != "in-place"
            elif type(value) is Known and (write.kind != "in-place" or is_mutable(value.value)):
                self._note(value)
                self.suspicious = True
                if value.path is not None:
                    inner = step("attr", value.path, write.name) if write.kind == "attribute" else value.path
                    self.written[inner[3]] = place

    # -- expressions

    def evaluate(self, expression: Expression, environment: _Environment) -> tuple:
        """The values that an expression may have."""
        kind = expression[0]
        if kind == "local":
            return self.evaluate(expression[2], environment)
        if kind == "const":
            return (Known(expression[1], None),)
        if kind == "param":
            return environment.params.get(expression[1], _UNKNOWN)
        found = environment.memo.get(id(expression))
        if found is None:
            environment.memo[id(expression)] = _UNKNOWN  # of an expression that contains itself
            found = getattr(self, "_eval_" + kind)(expression, environment)
            environment.memo[id(expression)] = found
        return found

    def _eval_unknown(self, expression, environment):
        return _UNKNOWN

    _eval_null = _eval_unknown

    def _eval_global(self, expression, environment):
        name, namespace = expression[1], environment.namespace
        if name in namespace:
            value = namespace[name]
            self.globals.append((namespace, name, value))
            if is_mutable(value) and not isinstance(value, types.BuiltinFunctionType):
                self.portable = False
            return (Known(value, root("global", namespace, name)),)
        builtins = namespace.get("__builtins__")
        builtins = builtins if isinstance(builtins, dict) else getattr(builtins, "__dict__", {})
        if name in builtins:
            return (Known(builtins[name], None),)
        return _UNKNOWN

    def _eval_free(self, expression, environment):
        return environment.free.get(expression[1], _UNKNOWN)

    def _eval_any(self, expression, environment):
        return tuple(distinct([v for e in expression[1] for v in self.evaluate(e, environment)]))

    def _eval_fresh(self, expression, environment):
        return (Fresh(tuple([v for e in expression[1] for v in self.evaluate(e, environment)])),)

    def _eval_iterator(self, expression, environment):
        return self.evaluate(expression[1], environment)

    def _eval_import(self, expression, environment):
        module = sys.modules.get(expression[1].partition(".")[0])
        return (Known(module, None),) if module is not None else _LIBRARY

    def _eval_super(self, expression, environment):
        kinds = [v.value for v in self.evaluate(expression[1], environment) if type(v) is Known]
        return tuple([Super(k, self.evaluate(expression[2], environment)) for k in kinds]) or _UNKNOWN

    def _eval_function(self, expression, environment):
        _, code, closure, defaults, _ = expression
        if code is None:
            return _UNKNOWN
        free, inside = {}, set()
        for name, value in closure.items():
            if value[0] == "free":
                if name in environment.inside:
                    inside.add(name)
            else:
                inside.add(name)
                value = ("any", (environment.summary.variables.get(name, value),))
            free[name] = self.evaluate(value, environment)
        elements = defaults[1] if defaults[0] == "fresh" else ()
        values = tuple([self.evaluate(e, environment) for e in elements])
        return (Inner(code, free, values, environment.namespace, frozenset(inside)),)

    def _eval_attr(self, expression, environment):
        _, base, name = expression
        found: list = []
        for value in self.evaluate(base, environment):
            found.extend(self.attribute(value, name))
        return tuple(distinct(found))

    def _eval_item(self, expression, environment):
        _, base, key = expression
        found: list = []
        keys = self.evaluate(key, environment)
        key_value = keys[0] if len(keys) == 1 and type(keys[0]) is Known else None
        for value in self.evaluate(base, environment):
            if type(value) is Known:
                found.extend(self._item(value, key_value))
            elif type(value) is Fresh:
                found.extend(value.elements or _LIBRARY)
            elif type(value) is Row:
                place = key_value.value if key_value is not None else None
                if isinstance(place, int) and place < len(value.columns):
                    found.extend(value.columns[place])
                else:
                    found.extend(v for column in value.columns for v in column)
            else:
                found.append(ARGUMENT if value is ARGUMENT else UNKNOWN if value is UNKNOWN else LIBRARY)
        return tuple(distinct(found))

    def _item(self, base: Known, key: Known | None) -> tuple:
        value = base.value
        if value is os.environ:
            self.suspicious = True
            return _LIBRARY
        if isinstance(value, (Array, np.ndarray)):
            self.guard((base,))
            return _LIBRARY
        own = getattr(type(value), "__getitem__", None)
        if is_user_function(own):
            return self.visit(own, [(base,), (key,) if key else _LIBRARY], {})
        if (
            key is not None
            and isinstance(key.value, (*SCALARS, tuple))
            and isinstance(value, (list, tuple, dict))
        ):
            try:
                item = value[key.value]
            except Exception:
                return _UNKNOWN
            return (Known(item, step("item", base.path, key.value)),)
        return self._elements(base)

    def _eval_elements(self, expression, environment):
        found: list = []
        for value in self.evaluate(expression[1], environment):
            if type(value) is Known:
                found.extend(self._elements(value))
            elif type(value) is Fresh:
                found.extend(value.elements or _LIBRARY)
            elif type(value) is Row:
                found.extend(v for column in value.columns for v in column)
            else:
                found.append(ARGUMENT if value is ARGUMENT else UNKNOWN if value is UNKNOWN else LIBRARY)
        return tuple(distinct(found))

    def _elements(self, base: Known) -> tuple:
        """What iterating over, or subscripting, a value may give."""
        value = base.value
        self.guard((base,))
        if isinstance(value, (list, tuple)):
            return tuple([Known(x, step("item", base.path, i)) for i, x in enumerate(value[:MOST_ELEMENTS])])
        if isinstance(value, dict):
            pairs = list(value.items())[:MOST_ELEMENTS]
            return tuple([Known(x, step("item", base.path, k)) for k, x in pairs])
        if isinstance(value, (set, frozenset)):
            return tuple([Known(x, None) for x in list(value)[:MOST_ELEMENTS]])
        own = getattr(type(value), "__iter__", None)
        if is_user_function(own):
            return self.visit(own, [(base,)], {})
        return _LIBRARY

    # -- attributes

    def attribute(self, base: Any, name: str) -> tuple:
        """What `base.name` may be."""
        if type(base) is Known:
            return self._attribute_of(base, name)
        if type(base) is Instance:
            found = class_attribute(base.kind, name)
            if is_user_function(found):
                return (Bound(found, (base,)),)
            if isinstance(found, property) and is_user_function(found.fget):
                return self.visit(found.fget, [(base,)], {})
            if isinstance(found, (staticmethod, classmethod)):
                return (Known(getattr(base.kind, name), None),)
            if impure_names.method_is_impure(base.kind, name):
                self.suspicious = True
            return (Known(found, None),) if found is not None and not callable(found) else _LIBRARY
        if type(base) is Super:
            return self._attribute_of_super(base, name)
        if type(base) is Fresh:
            return (base,) if name in _NAMES_OF_ELEMENTS else _LIBRARY
        if base is ARGUMENT:
            if hasattr(Array, name):
                return _LIBRARY
            if name in impure_names.MUTATING_NAMES:
                self.suspicious = True
            return (Fresh((ARGUMENT,)),) if name in _NAMES_OF_ELEMENTS else (ARGUMENT,)
        if base is UNKNOWN:
            return _UNKNOWN
        return _LIBRARY

    def _attribute_of_super(self, base: Super, name: str) -> tuple:
        for own in base.own:
            kind = own.kind if type(own) is Instance else type(own.value) if type(own) is Known else base.kind
            order = kind.__mro__ if base.kind in kind.__mro__ else base.kind.__mro__
            for parent in order[order.index(base.kind) + 1 :]:
                found = parent.__dict__.get(name)
                if is_user_function(found):
                    return (Bound(found, base.own),)
                if found is not None:
                    return _LIBRARY
        return _LIBRARY

    def _attribute_of(self, base: Known, name: str) -> tuple:
        value, path = base
        if isinstance(value, types.ModuleType):
            found = value.__dict__.get(name, _ABSENT)
            if found is _ABSENT:
                try:
                    found = getattr(value, name)
                except Exception:
                    return _UNKNOWN
            user = is_user_module(value)
            return (
                Known(
                    found, step("attr", path or root("object", value, value.__name__), name) if user else None
                ),
            )
        if isinstance(value, (Array, np.ndarray)):
            if name in impure_names.MUTATING_NAMES and isinstance(value, np.ndarray):
                return (Method(base, name),)
            self.guard((base,))
            return _LIBRARY
        if isinstance(value, SCALARS) and not hasattr(value, "__dict__"):
            self.guard((base,))
            return _LIBRARY
        if value is os.environ:
            self.suspicious = True
            return _LIBRARY
        inner = step("attr", path, name)
        if isinstance(value, type):
            try:
                return (Known(getattr(value, name), inner),)
            except AttributeError:
                return _UNKNOWN
        kind = type(value)
        found = class_attribute(kind, name)
        own = getattr(value, "__dict__", None)
        if isinstance(found, property):
            if is_user_function(found.fget):
                return self.visit(found.fget, [(base,)], {})
        elif isinstance(own, dict) and name in own:
            return (Known(own[name], inner),)
        elif isinstance(found, functools.cached_property) and is_user_function(found.func):
            return self.visit(found.func, [(base,)], {})
        elif isinstance(found, types.FunctionType):
            if not is_user_function(found):
                return (Method(base, name),)
            if path is not None:
                self._leaf(base, "type")
                self._leaf(Known(found, step("attr", root("object", kind, kind.__name__), name)), "identity")
            return (Bound(found, (base,)),)
        elif isinstance(found, _SLOT_KINDS):
            return (Method(base, name),)
        elif hasattr(found, "__wrapped__") and callable(found) and hasattr(found, "__get__"):
            return (Bound(found, (base,)),)  # a jitted or cached method
        try:
            return (Known(getattr(value, name), inner),)
        except Exception:
            return _UNKNOWN

    # -- calls

    def evaluate_call(self, call: Call, environment: _Environment) -> tuple:
        """Follows a call; returns what it may give."""
        found = environment.calls.get(id(call))
        if found is not None:
            return found
        environment.calls[id(call)] = _LIBRARY
        args = [self.evaluate(e, environment) for e in call.args]
        kwargs = {name: self.evaluate(e, environment) for name, e in call.kwargs}
        spread = [self.evaluate(e, environment) for e in call.spread]
        results: list = []
        for callee in self._grouped(self.evaluate(call.callee, environment)):
            if type(callee) is Known and callee.value is super and not args:
                results.extend(self._super(environment))
            elif type(callee) is Known and callee.value is globals:
                results.append(Known(environment.namespace, None))
            else:
                results.extend(self.call_value(callee, args, kwargs, spread))
        environment.calls[id(call)] = found = tuple(distinct(results)) or _LIBRARY
        return found

    def _grouped(self, callees: tuple) -> list:
        """What is called, with the calls of one method on several objects as one."""
        if len(callees) < 2:
            return list(callees)
        groups: dict[int, Bound] = {}
        others: list = []
        for callee in callees:
            if type(callee) is Known and not isinstance(callee.value, (type, types.FunctionType)):
                own = class_attribute(type(callee.value), "__call__")
                if is_user_function(own):
                    if callee.path is not None:
                        self._leaf(callee, "type")
                    callee = Bound(own, (callee,))
            if type(callee) is Bound:
                found = groups.get(id(callee.function))
                own = callee.own if found is None else found.own + callee.own
                groups[id(callee.function)] = Bound(callee.function, own)
            else:
                others.append(callee)
        return [*groups.values(), *others]

    def _eval_call(self, expression, environment):
        return self.evaluate_call(expression[1], environment)

    def _super(self, environment: _Environment) -> tuple:
        kinds = environment.free.get("__class__", ())
        first = environment.code.co_varnames[:1]
        own = environment.params.get(first[0], _UNKNOWN) if first else _UNKNOWN
        return tuple([Super(k.value, own) for k in kinds if type(k) is Known]) or _UNKNOWN

    def call_value(
        self, callee: Any, args: Sequence[tuple], kwargs: dict[str, tuple], spread: Sequence[tuple]
    ) -> tuple:
        """Follows a call of one value."""
        kind = type(callee)
        if kind is Known:
            return self._call_known(callee, args, kwargs, spread)
        if kind is Inner:
            return self.visit(callee, args, kwargs, spread)
        if kind is Bound:
            if is_user_function(callee.function):
                return self.visit(callee.function, [callee.own, *args], kwargs, spread)
            return self._call_known(Known(callee.function, None), [callee.own, *args], kwargs, spread)
        if kind is Partial:
            results: list = []
            for function in callee.function:
                results.extend(
                    self.call_value(function, [*callee.args, *args], {**callee.kwargs, **kwargs}, spread)
                )
            return tuple(results)
        if kind is Method:
            return self._call_method(callee, args, kwargs, spread)
        if kind is Instance:
            own = class_attribute(callee.kind, "__call__")
            if is_user_function(own):
                return self.visit(own, [(callee,), *args], kwargs, spread)
        if callee is UNKNOWN:
            self.suspicious = True
        if callee is ARGUMENT:  # a method of an array, or of a container that was passed
            self.suspicious = True
        self.escape(args, kwargs, spread)
        return callee.elements or _LIBRARY if kind is Fresh else _LIBRARY

    def escape(
        self, args: Sequence[tuple], kwargs: dict[str, tuple], spread: Sequence[tuple], visit=True
    ) -> None:
        """Values are handed to code that is not followed: it may read all of them, and call the functions."""
        for values in (*args, *kwargs.values(), *spread):
            self.guard(values)
            if not visit:
                continue
            for value in values:
                self._call_back(value)

    def _call_back(self, value: Any) -> None:
        """Code that is not followed may call `value`, with arguments of its own."""
        kind = type(value)
        if kind is Known:
            x = value.value
            if isinstance(x, (*SCALARS, Array, np.ndarray, types.ModuleType)):
                return
            if isinstance(x, (list, tuple, dict)) and id(x) not in self._escaped:
                self._escaped.add(id(x))
                for element in x.values() if isinstance(x, dict) else x:
                    if callable(element):
                        self._call_back(Known(element, None))
            elif callable(x) and not isinstance(x, type):
                self.call_value(value, [], {}, [(ARGUMENT,)])
            elif not isinstance(x, type) and is_user_class(type(x)) and id(x) not in self._escaped:
                self._escaped.add(id(x))
                for name, method in list(vars(type(x)).items()):
                    if is_user_function(method) and name not in ("__init__", "__post_init__", "__repr__"):
                        self.visit(method, [(value,)], {}, [(ARGUMENT,)])
        elif kind in (Inner, Bound, Partial):
            self.call_value(value, [], {}, [(ARGUMENT,)])
        elif kind is Fresh:
            for element in value.elements:
                self._call_back(element)

    def _call_known(
        self, callee: Known, args: Sequence[tuple], kwargs: dict[str, tuple], spread: Sequence[tuple]
    ) -> tuple:
        function = callee.value
        if callee.path is not None:
            self._leaf(callee)
        if is_user_function(function):
            return self.visit(function, args, kwargs, spread)
        count = len(args) + len(kwargs) + len(spread)
        if impure_names.impurity_of_call(function, count) is not None:
            self.suspicious = True
        if isinstance(function, types.MethodType):
            own = Known(function.__self__, root("object", function.__self__, "self"))
            return self._call_known(Known(function.__func__, None), [(own,), *args], kwargs, spread)
        if isinstance(function, functools.partial):
            held = [
                (Known(x, root("object", x, "partial") if is_mutable(x) else None),) for x in function.args
            ]
            named = {
                n: (Known(x, root("object", x, n) if is_mutable(x) else None),)
                for n, x in function.keywords.items()
            }
            return self._call_known(Known(function.func, None), [*held, *args], {**named, **kwargs}, spread)
        if isinstance(function, type):
            return self._call_class(function, args, kwargs, spread)
        if isinstance(function, types.BuiltinFunctionType) or any(function is f for f in _TRANSPARENT):
            return self._call_builtin(function, args, kwargs, spread)
        module = str(getattr(function, "__module__", None) or "")
        if module.startswith(_CALLBACKS):
            return _LIBRARY
        if impure_names.changes_first_argument(function):
            self._suspect_first(args)
        found = self._inside_library(function)
        if found:
            results: list = []
            for x in found:
                results.extend(self._call_known(x, args, kwargs, spread) if is_user_function(x.value) else
                               self.call_value(x, args, kwargs, spread))  # fmt: skip
            if not passes_arguments_on(function):
                self.escape(args, kwargs, spread)
            return _LIBRARY
        own = class_attribute(type(function), "__call__")
        if is_user_function(own):
            return self.visit(own, [(callee,), *args], kwargs, spread)
        if "out" in kwargs:
            self._suspect_first([kwargs["out"]])
        self.escape(args, kwargs, spread)
        if not module.startswith(("purax.", "numpy")) and any(
            _may_share(v) for values in args for v in values
        ):
            return _UNKNOWN  # a shallow copy, say, holds the same lists
        return _LIBRARY

    def _inside_library(self, function: Any) -> list[Known]:
        """The user's functions inside of a callable that a library made: what it wraps, holds or closes over."""
        found: list[Known] = []
        seen: set[int] = set()

        def search(x: Any, depth: int) -> None:
            if (
                id(x) in seen
                or depth > 4
                or isinstance(x, (*SCALARS, Array, np.ndarray, types.ModuleType, type))
            ):
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

    def _call_class(self, kind: type, args, kwargs, spread) -> tuple:
        if kind is functools.partial and args:
            return tuple([Partial(args[0], tuple(args[1:]), dict(kwargs))])
        if kind in _TRANSPARENT:
            return self._call_builtin(kind, args, kwargs, spread)
        self.escape(args, kwargs, spread)
        if not is_user_class(kind):
            return (Instance(kind),) if issubclass(kind, os.PathLike) else _LIBRARY
        instance = Instance(kind)
        for name in ("__new__", "__init__", "__post_init__"):
            method = class_attribute(kind, name)
            method = getattr(method, "__func__", method)
            if is_user_function(method):
                given = ([], {}, ()) if name == "__post_init__" else (args, kwargs, spread)
                self.visit(method, [(instance,), *given[0]], given[1], given[2])
        return (instance,)

    def _call_builtin(self, function: Any, args, kwargs, spread) -> tuple:
        if function is getattr and len(args) >= 2:
            names = [v.value for v in args[1] if type(v) is Known and isinstance(v.value, str)]
            if len(names) == len(args[1]):
                found: list = []
                for base in args[0]:
                    for name in names:
                        values = self.attribute(base, name)
                        if values == _UNKNOWN and len(args) > 2:
                            self.guard((base,))
                            values = args[2]
                        found.extend(values)
                return tuple(distinct(found))
        if impure_names.changes_first_argument(function):
            self._suspect_first(args)
        if function is next or getattr(function, "__name__", "") == "__next__":
            self._suspect_first(args, iterators=True)
        self.escape(args, {}, spread, visit=function not in _TRANSPARENT)
        self.escape((), kwargs, ())
        if function in (isinstance, hasattr, callable, len, id, type, issubclass, repr, hash):
            return (Fresh(()),)
        if function not in _TRANSPARENT:
            return _LIBRARY
        columns = [self._all_elements(values) for values in (*args, *spread)]
        if function is zip and not spread:
            return (Fresh((Row(tuple(columns)),)),)
        if function is enumerate and args:
            return (Fresh((Row((_LIBRARY, columns[0])),)),)
        elements = [v for column in columns for v in column]
        if function in (map, filter) and args:
            for called in args[0]:
                self.call_value(called, [tuple(distinct(elements)) or _LIBRARY], {}, ())
        if function in (next, min, max, sum):
            return tuple(distinct(elements)) or _LIBRARY
        return (Fresh(tuple(distinct(elements))),)

    def _all_elements(self, values: tuple) -> tuple:
        found: list = []
        for value in values:
            if type(value) is Known:
                found.extend(self._elements(value))
            elif type(value) is Fresh:
                found.extend(value.elements)
            elif value in (ARGUMENT, UNKNOWN):
                found.append(value)
        return tuple(distinct(found)) or _LIBRARY

    def _suspect_first(self, args: Sequence[tuple], iterators: bool = False) -> None:
        for value in args[0] if args else ():
            if value in (ARGUMENT, UNKNOWN) or (
                type(value) is Known and (is_mutable(value.value) or iterators)
            ):
                self.suspicious = True
                if type(value) is Known:
                    self._note(value)

    def _call_method(self, callee: Method, args, kwargs, spread) -> tuple:
        """A call of a method that a library wrote."""
        own, name = callee.own, callee.name
        value = own.value
        if impure_names.changes_its_object(type(value), name):
            self._note(own)
            self.suspicious = True
        bound = getattr(value, name, None)
        if bound is not None and impure_names.impurity_of_call(bound) is not None:
            self.suspicious = True
            return _LIBRARY
        if is_quiet(value):
            self.escape(args, kwargs, spread, visit=False)
            return _LIBRARY
        if not impure_names.only_changes_its_object(type(value), name):
            self.guard((own,))
        self.escape(args, kwargs, spread)
        if isinstance(value, (dict, list, tuple)) and name in _NAMES_OF_ELEMENTS:
            if name == "get" and args and all(type(v) is Known for v in args[0]) and isinstance(value, dict):
                found = [x for v in args[0] for x in self._item(own, v)]
                return tuple(distinct([*found, *(args[1] if len(args) > 1 else ())]))
            elements = self._elements(own)
            if name == "items":
                return (Fresh((Row((_LIBRARY, elements)),)),)
            return elements if name in ("get", "pop", "setdefault") else (Fresh(elements),)
        if not isinstance(value, type) and is_user_class(type(value)):
            self._call_back(own)  # a method inherited from a library may call the user's own
        return _LIBRARY


_ABSENT = object()
_SLOT_KINDS = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)


def _may_share(value: Any) -> bool:
    """Whether what a library makes of a value may hold parts of it that can be changed."""
    if value is ARGUMENT or value is UNKNOWN:
        return value is UNKNOWN
    return type(value) is Known and not isinstance(value.value, np.ndarray) and is_mutable(value.value)
