"""Side effects, found while a function is traced.

Only functions that may have some (`captures` says so) are watched. Python then announces every instruction of the
user's code before it runs; those that assign, change or call something are looked up in the summary of the code, their
operands are read from the frame, and what touches an object from outside is a finding. In strict mode the error is
raised before the instruction runs, so that the effect does not happen.
"""

from __future__ import annotations

import dis
import os
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax import errors
from purax.purity import findings as tell
from purax.purity import impure_names
from purax.purity.bytecode import Call, Expression, Use, Write, same_expression, summarize
from purax.purity.captures import Captures
from purax.purity.findings import Finding, finding
from purax.purity.outside import Outside, attributes, holds_tracer, new_parts, only_new_entries
from purax.purity.ownership import is_user_code, is_user_function

Site = Write | Call | Use
_UNRESOLVED = object()
_EXTENDED = dis.opmap["EXTENDED_ARG"]
_sites: dict[int, tuple[types.CodeType, dict[int, list[Site]]]] = {}  # by the id of the code
_NAMED = ("global", "free", "attr")


def sites_of(code: types.CodeType) -> dict[int, list[Site]]:
    """The instructions of a function that may have an effect, by offset."""
    known = _sites.get(id(code))
    if known is not None:
        return known[1]
    summary = summarize(code)
    found: dict[int, list[Site]] = {}
    uses = [u for u in summary.uses if u.how or u.value[0] in _NAMED]
    for site in (*summary.writes, *summary.calls, *uses):
        offset = site.offset
        found.setdefault(offset, []).append(site)
        while offset >= 2 and code.co_code[offset - 2] == _EXTENDED:
            offset -= 2
            found.setdefault(offset, []).append(site)
    _sites[id(code)] = (code, found)
    return found


class Watch:
    """Watches one call of a function.

    Attributes:
        mode: "warn", "strict" or "collect".
        findings: in the order in which they happened.
    """

    def __init__(self, mode: str, captures: Captures):
        self.mode = mode
        self.findings: list[Finding] = []
        self.outside = Outside()
        self.entered: set[types.CodeType] = set()
        self._cells = captures.cells
        self._nonlocals: dict[tuple[types.CodeType, str], tuple[Any, Any]] = {}
        self._globals: dict[tuple[int, str], tuple[dict, Any]] = {}
        self._later: list[tuple[Finding, str, Any, Any, Write | None, float]] = []
        self._order: dict[Finding, float] = {}
        self._count = 0
        self._unresolved: list[tuple[Site, types.CodeType, dict]] = []
        self._seen: set[Any] = set()
        self._previous: Any = None
        self._boundary: types.FrameType | None = None
        for value, name in captures.values.values():
            self.outside.add(value, name)

    def run(self, function: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Calls the function, and tells what was found."""
        self.add_arguments(function, args, kwargs)
        self._boundary = sys._getframe()
        self._boundary.f_trace_opcodes = True  # Python 3.12 looks for such a frame when tracing begins
        self._previous = sys.gettrace()
        sys.settrace(self._enter)
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            sys.settrace(self._previous)
            if self.mode != "warn" or isinstance(error, errors.ConcretizationTypeError):
                self.undo()  # the latter may be traced again, rewritten
            raise
        finally:
            sys.settrace(self._previous)
            self._boundary = None
        self._conclude()
        return result

    def add_arguments(self, function: Callable, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """The containers in these arguments are copies that only the function sees."""
        code = getattr(function, "__code__", None)
        names = code.co_varnames if code is not None and is_user_code(code) else ()
        for i, x in enumerate(args):
            self.outside.add(x, names[i] if i < len(names) else f"argument {i}", True)
        for name, x in kwargs.items():
            self.outside.add(x, name, True)

    # -- while the function runs

    def _enter(self, frame: types.FrameType, event: str, argument: Any) -> Any:
        other = self._previous(frame, event, argument) if self._previous is not None else None
        code = frame.f_code
        if not is_user_code(code):
            return other
        self.entered.add(code)
        sites = sites_of(code)
        if not sites:
            return other

        def step(frame, event, argument):
            nonlocal other
            if event == "opcode":
                found = sites.get(frame.f_lasti)
                if found is not None:
                    for site in found:
                        self._check(site, frame)
            elif other is not None:
                other = other(frame, event, argument)
            return step

        frame.f_trace = step  # Python 3.13 announces instructions only if this is set first
        frame.f_trace_opcodes = True
        if other is None:
            frame.f_trace_lines = False
        return step

    def _check(self, site: Site, frame: types.FrameType) -> None:
        if type(site) is Write:
            self._check_write(site, frame)
        elif type(site) is Call:
            self._check_call(site, frame)
        else:
            self._check_use(site, frame)  # type: ignore[arg-type]

    def _check_write(self, site: Write, frame: types.FrameType) -> None:
        code, name = frame.f_code, site.name
        if site.kind == "global":
            key = (id(frame.f_globals), name)
            before = self._globals.setdefault(key, (frame.f_globals, frame.f_globals.get(name, _UNRESOLVED)))[
                1
            ]
            what = f"`{code.co_name}` assigns the global variable `{name}` of {_module(frame)}"
            found = finding(tell.GLOBAL, code, site.line, name, what)
            memo = site if before in (None, _UNRESOLVED) and _is_memo(code, site) else None  # type: ignore[comparison-overlap]
            self._add_later(found, "global", frame.f_globals, name, memo, frame)
        elif site.kind == "nonlocal":
            if self._is_inside(code, name):
                return
            before = frame.f_locals.get(name)
            cell = self._cells.get((code, name))
            self._nonlocals.setdefault((code, name), (cell, before))
            what = f"`{code.co_name}` assigns the variable `{name}` of a function around it"
            found = finding(tell.NONLOCAL, code, site.line, name, what)
            memo = site if before is None and cell is not None and _is_memo(code, site) else None
            self._add_later(found, "nonlocal", cell, name, memo, frame)
        else:
            base = self._value(site.base, frame)
            if base is _UNRESOLVED:
                self._unresolved.append((site, code, frame.f_globals))
            elif site.kind == "in-place":
                if isinstance(base, (list, dict, set, bytearray, np.ndarray)) or hasattr(
                    type(base), "__iadd__"
                ):
                    self._change(base, site.base, site, frame, f"`{name}`")
            else:
                how = f"the attribute `{name}`" if site.kind == "attribute" else f"the entry [{name}]"
                self._change(base, site.base, site, frame, f"assigning {how}")

    def _change(
        self, base: Any, expression: Expression, site: Site, frame: types.FrameType, how: str
    ) -> None:
        """An object is about to be changed."""
        if not self._is_outside(base, expression, frame):
            return
        if not self.outside.has(base):
            self.outside.add(base, _text(expression) or type(base).__name__)
        _, name, is_argument = self.outside.found[id(base)]
        kind = _kind_of(base)
        where = "its argument" if is_argument else f"the {kind}"
        origin = "" if is_argument else f" of {_module(frame)}" if _root(expression) == "global" else ""
        what = f"`{frame.f_code.co_name}` changes {where} `{name}`{origin} by {how}"
        if is_argument:
            what += f" (a {kind})"
        impurity = tell.ARGUMENT if is_argument else tell.MUTATION
        found = finding(impurity, frame.f_code, site.line, name, what)
        memo = None
        if (
            not is_argument
            and type(site) is Write
            and site.kind != "in-place"
            and _is_memo(frame.f_code, site)
        ):
            memo = site
        elif type(site) is Call and how == "`setdefault`" and not is_argument:
            memo = site  # type: ignore[assignment]
        self._add_later(found, "argument" if is_argument else "object", base, name, memo, frame)

    def _check_call(self, site: Call, frame: types.FrameType) -> None:
        callee = site.callee
        while callee[0] == "local":
            value = frame.f_locals.get(callee[1], _UNRESOLVED)
            if value is not _UNRESOLVED:
                self._check_called(value, site, frame)
                return
            callee = callee[2]
        if callee[0] == "attr":
            base = self._value(callee[1], frame)
            name = callee[2]
            if base is not _UNRESOLVED:
                if impure_names.changes_its_object(type(base), name):
                    self._change(base, callee[1], site, frame, f"`{name}`")
                    return
                function = _attribute(base, name)
                if function is not _UNRESOLVED:
                    self._check_called(function, site, frame, base, callee[1])
            elif name in impure_names.MUTATING_NAMES:
                self._unresolved.append((site, frame.f_code, frame.f_globals))
            elif callee[1][0] == "call":
                maker = self._value(callee[1][1].callee, frame)
                if isinstance(maker, type) and impure_names.method_is_impure(maker, name):
                    what = f"`{frame.f_code.co_name}` calls `{maker.__name__}.{name}`"
                    self._add(
                        finding(impure_names.FILE, frame.f_code, site.line, f"{maker.__name__}.{name}", what),
                        frame,
                    )
            return
        value = self._value(callee, frame)
        if value is not _UNRESOLVED:
            self._check_called(value, site, frame)

    def _check_called(
        self,
        function: Any,
        site: Call,
        frame: types.FrameType,
        base: Any = None,
        expression: Expression | None = None,
    ) -> None:
        code = frame.f_code
        own = getattr(function, "__self__", None)
        if own is not None and impure_names.changes_its_object(type(own), getattr(function, "__name__", "")):
            self._change(own, expression or _receiver(site.callee), site, frame, f"`{function.__name__}`")
            return
        known = impure_names.impurity_of_call(function, len(site.args) + len(site.kwargs) + len(site.spread))
        if known is not None:
            impurity, name = known
            inside = (
                own is not None
                and not isinstance(own, (type, types.ModuleType))
                and name.split(".")[0] not in ("random", "numpy", "os", "Path")
                and not self._is_outside(own, expression or ("unknown",), frame)
            )
            if not inside:
                what = f"`{code.co_name}` calls `{name}`"
                self._add(finding(impurity, code, site.line, name, what), frame)
                return
        if function is next or isinstance(function, (type, types.BuiltinFunctionType)):
            for argument in (*site.args, *site.spread):
                self._consume(argument, site, frame)
        if site.args and impure_names.changes_first_argument(function):
            first = self._value(site.args[0], frame)
            if first is not _UNRESOLVED:
                self._change(first, site.args[0], site, frame, f"`{function.__name__}`")
        for name, argument in site.kwargs:
            if name == "out":
                value = self._value(argument, frame)
                if isinstance(value, np.ndarray):
                    self._change(value, argument, site, frame, "`out=`")

    def _check_use(self, site: Use, frame: types.FrameType) -> None:
        value = self._value(site.value, frame)
        if value is os.environ:
            what = f"`{frame.f_code.co_name}` reads `os.environ`"
            self._add(finding(impure_names.ENVIRONMENT, frame.f_code, site.line, "os.environ", what), frame)
        elif site.how == "iterate":
            self._consume(site.value, site, frame, value)

    def _consume(
        self, expression: Expression, site: Site, frame: types.FrameType, value: Any = _UNRESOLVED
    ) -> None:
        if value is _UNRESOLVED:
            value = self._value(expression, frame)
        if value is _UNRESOLVED or not impure_names.is_iterator(value):
            return
        if self._is_outside(value, expression, frame):
            name = self.outside.name(value) if self.outside.has(value) else _text(expression) or "an iterator"
            what = f"`{frame.f_code.co_name}` takes items from the iterator `{name}`"
            self._add(finding(impure_names.ITERATOR, frame.f_code, site.line, name, what), frame)

    # -- values in frames

    def _value(self, expression: Expression, frame: types.FrameType) -> Any:
        """What an expression stands for in a frame, without running any code of the user's."""
        kind = expression[0]
        if kind == "local":
            value = frame.f_locals.get(expression[1], _UNRESOLVED)
            return self._value(expression[2], frame) if value is _UNRESOLVED else value
        if kind in ("free", "param"):
            return frame.f_locals.get(expression[1], _UNRESOLVED)
        if kind == "const":
            return expression[1]
        if kind == "global":
            value = frame.f_globals.get(expression[1], _UNRESOLVED)
            return frame.f_builtins.get(expression[1], _UNRESOLVED) if value is _UNRESOLVED else value
        if kind == "attr":
            base = self._value(expression[1], frame)
            return _UNRESOLVED if base is _UNRESOLVED else _attribute(base, expression[2])
        if kind == "item":
            base, key = self._value(expression[1], frame), self._value(expression[2], frame)
            if isinstance(base, (list, tuple, dict)) and isinstance(key, (int, str, tuple, bytes)):
                try:
                    return base[key]
                except (KeyError, IndexError, TypeError):
                    pass
            return _UNRESOLVED
        if kind == "iterator":
            return self._value(expression[1], frame)
        if kind == "import":
            return sys.modules.get(expression[1].partition(".")[0], _UNRESOLVED)
        if kind == "call":
            called: Call = expression[1]
            function = self._value(called.callee, frame)
            if function is globals:
                return frame.f_globals
            if function is type and len(called.args) == 1:
                value = self._value(called.args[0], frame)
                return _UNRESOLVED if value is _UNRESOLVED else type(value)
            if function is getattr and len(called.args) >= 2 and called.args[1][0] == "const":
                base = self._value(called.args[0], frame)
                return _UNRESOLVED if base is _UNRESOLVED else _attribute(base, called.args[1][1])
            if function is vars and called.args:
                return getattr(self._value(called.args[0], frame), "__dict__", _UNRESOLVED)
        if kind == "any":
            values = {id(v): v for v in (self._value(e, frame) for e in expression[1])}
            if len(values) == 1:
                return next(iter(values.values()))
        return _UNRESOLVED

    def _is_outside(self, value: Any, expression: Expression, frame: types.FrameType) -> bool:
        """Whether an object existed before the function was called."""
        if self.outside.has(value) or isinstance(value, (types.ModuleType, type)) or value is frame.f_globals:
            return True
        while expression[0] in ("attr", "item", "local"):
            if (
                expression[0] == "local"
            ):  # a name for something outside, unless it was set to something else since
                if self._value(expression[2], frame) is not self._value(expression, frame):
                    return False
                expression = expression[2]
            else:
                expression = expression[1]
        if expression[0] == "global":
            return True
        return expression[0] == "free" and not self._is_inside(frame.f_code, expression[1])

    def _is_inside(self, code: types.CodeType, name: str) -> bool:
        """Whether a free variable belongs to a function that was itself called during the watch."""
        for owner in self.entered:
            if owner is not code and name in owner.co_cellvars and _contains(owner, code):
                return True
        return False

    # -- findings

    def _add(self, found: Finding, frame: types.FrameType | None, order: float | None = None) -> None:
        key = (found.kind, found.file, found.line, found.name)
        if key in self._seen or (frame is not None and self._is_excused(frame)):
            return
        self._seen.add(key)
        self._count += 1
        self._order[found] = self._count if order is None else order
        self.findings.append(found)
        if self.mode == "strict":
            raise tell.error(found)

    def _add_later(self, found, kind, holder, name, memo, frame) -> None:
        """A finding that may turn out to be a harmless cache, or a leak, once the value is there."""
        if self._is_excused(frame):
            return
        if self.mode == "strict" and memo is None:
            self._add(found, frame)
        self._later.append((found, kind, holder, name, memo, self._count + 0.5))

    def _is_excused(self, frame: types.FrameType) -> bool:
        """Whether the user's code runs on behalf of a callback, a logger or an import."""
        link: types.FrameType | None = frame
        while link is not None and link is not self._boundary:
            file = link.f_code.co_filename
            if file.startswith("<frozen importlib") or link.f_code.co_name == "<module>":
                return True
            if not is_user_code(link.f_code) and file.endswith(_EXCUSED):
                return True
            link = link.f_back
        return False

    def _conclude(self) -> None:
        """The function has returned: decides what was a cache and what a leak, and tells."""
        for found, kind, holder, name, memo, order in self._later:
            leaks = kind != "argument" and any(map(holds_tracer, self._new(kind, holder, name)))
            if memo is not None and not leaks and self._only_fills(kind, holder, name):
                continue
            if leaks:
                found = _as_leak(found, kind, holder)
            try:
                self._add(found, None, order)
            except BaseException:
                self.undo()
                raise
        self._look_for_changes()
        self.findings.sort(key=self._order.__getitem__)
        if self.mode == "strict" and self.findings:  # an error that the function itself caught
            self.undo()
            raise tell.error(self.findings[0])
        if self.mode == "collect":
            self.undo()
        elif self.mode == "warn":
            for found in self.findings:
                tell.warn(found)

    def _new(self, kind: str, holder: Any, name: str) -> list[Any]:
        """What a variable or an object holds since the call began."""
        if kind == "global":
            before = self._globals[id(holder), name][1]
            return [holder.get(name)] if holder.get(name) is not before else []
        if kind == "nonlocal":
            try:
                return [holder.cell_contents] if holder is not None else []
            except ValueError:
                return []
        return new_parts(holder, self.outside.before[id(holder)])

    def _only_fills(self, kind: str, holder: Any, name: str) -> bool:
        """Whether a change only put something where there was nothing."""
        if kind in ("global", "nonlocal"):
            return True
        return only_new_entries(holder, self.outside.before[id(holder)]) is not None

    def _look_for_changes(self) -> None:
        """Objects that changed at a place that could not be resolved."""
        if not self._unresolved:
            return
        told = {id(holder) for _, kind, holder, *_ in self._later if kind in ("object", "argument")}
        for value, name, is_argument in list(self.outside.found.values()):
            if id(value) in told or not self.outside.changed(value):
                continue
            site, code = self._unresolved[-1][:2]
            for candidate, candidate_code, _ in self._unresolved:
                if _may_change(candidate, value):
                    site, code = candidate, candidate_code
                    break
            else:
                continue
            what = f"`{code.co_name}` changes the {_kind_of(value)} `{name}`"
            found = finding(tell.ARGUMENT if is_argument else tell.MUTATION, code, site.line, name, what)
            if not is_argument and any(map(holds_tracer, new_parts(value, self.outside.before[id(value)]))):
                found = _as_leak(found, "object", value)
            self._add(found, None)

    def undo(self) -> None:
        """Puts outside state back as it was before the call."""
        self.outside.restore()
        for (_, name), (namespace, before) in self._globals.items():
            if before is _UNRESOLVED:
                namespace.pop(name, None)
            else:
                namespace[name] = before
        for (_, _), (cell, before) in self._nonlocals.items():
            if cell is not None:
                cell.cell_contents = before


_EXCUSED = tuple(
    os.path.join(*parts)
    for parts in (
        ("purax", "callbacks", "callback.py"), ("purax", "callbacks", "pure.py"), ("purax", "callbacks", "io.py"),
        ("purax", "callbacks", "debug.py"), ("purax", "xla", "callbacks.py"), ("logging", "__init__.py"),
        ("lib", "warnings.py"),
    )
)  # fmt: skip


def _attribute(base: Any, name: str) -> Any:
    """`base.name`, unless reading it would run code of the user's."""
    for parent in type(base).__mro__:
        found = parent.__dict__.get(name)
        if found is not None:
            if isinstance(found, property) and is_user_function(found.fget):
                return _UNRESOLVED
            break
    else:
        if is_user_function(getattr(type(base), "__getattr__", None)) and name not in attributes(base):
            return _UNRESOLVED
    try:
        return getattr(base, name)
    except Exception:
        return _UNRESOLVED


def _receiver(callee: Expression) -> Expression:
    """Whose method `getattr(x, "append")` or a name for `x.append` is."""
    while callee[0] == "local":
        callee = callee[2]
    if callee[0] == "attr":
        return callee[1]
    return callee[1].args[0] if callee[0] == "call" and callee[1].args else callee


def _contains(owner: types.CodeType, code: types.CodeType) -> bool:
    return any(
        constant is code or constant == code or _contains(constant, code)
        for constant in owner.co_consts
        if isinstance(constant, types.CodeType)
    )


def _is_memo(code: types.CodeType, site: Write) -> bool:
    """Whether the code looks up what it fills: `if key not in cache: cache[key] = …`, and not a count of something."""
    base = _bare(site.base)
    target = ("attr", base, site.name) if site.kind == "attribute" else base
    if _mentions(site.value, target):
        return False
    summary = summarize(code)
    for use in summary.uses:
        if same_expression(_bare(use.value), target):
            return True
    return any(
        call.callee[0] == "attr" and call.callee[2] in ("get", "__contains__")
        and same_expression(_bare(call.callee[1]), target)
        for call in summary.calls
    )  # fmt: skip


def _bare(expression: Expression) -> Expression:
    """An expression without the local names that it went through."""
    if expression[0] == "local":
        return _bare(expression[2])
    if expression[0] == "attr":
        return ("attr", _bare(expression[1]), expression[2])
    return expression


def _mentions(expression: Any, target: Expression) -> bool:
    if isinstance(expression, Call):
        parts = (expression.callee, *expression.args, *(e for _, e in expression.kwargs), *expression.spread)
        return any(_mentions(e, target) for e in parts)
    if not isinstance(expression, tuple) or not expression:
        return False
    if isinstance(expression[0], str) and same_expression(_bare(expression), target):
        return True
    if expression[0] in ("function", "const"):
        return False
    return any(_mentions(e, target) for e in expression if isinstance(e, (tuple, Call)))


def _may_change(site: Site, value: Any) -> bool:
    if type(site) is Write:
        return site.kind != "attribute" or not isinstance(value, (list, dict, set, np.ndarray))
    return (
        isinstance(value, (list, dict, set, np.ndarray)) or hasattr(value, "append") or hasattr(value, "add")
    )


def _as_leak(found: Finding, kind: str, holder: Any) -> Finding:
    what = {
        "global": f"a traced value is kept in the global variable `{found.name}`",
        "nonlocal": f"a traced value is kept in the variable `{found.name}` of an enclosing function",
    }.get(kind, f"a traced value is kept in the {_kind_of(holder)} `{found.name}`")
    text = f"{what} ({found.what})"
    return Finding(
        "leak", found.place, found.name, text, tell.LEAK.consequence, tell.LEAK.advice, found.file, found.line
    )


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


def _module(frame: types.FrameType) -> str:
    return f"module `{frame.f_globals.get('__name__', '?')}`"


def _root(expression: Expression) -> str:
    while expression[0] in ("attr", "item", "local"):
        expression = expression[2] if expression[0] == "local" else expression[1]
    return expression[0]


def _text(expression: Expression) -> str:
    """How the user wrote an expression."""
    kind = expression[0]
    if kind in ("global", "free", "param", "local"):
        return expression[1]
    if kind == "attr":
        base = _text(expression[1])
        return f"{base}.{expression[2]}" if base else ""
    if kind == "item":
        base = _text(expression[1])
        key = expression[2]
        return f"{base}[{key[1]!r}]" if base and key[0] == "const" else ""
    return ""
