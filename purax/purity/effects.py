"""Side effects, found while a function is traced.

Only functions that may have some (`captures` says so) are watched. Python then announces every instruction of the
user's code before it runs; those that assign, change or call something are looked up in the summary of the code, their
operands are read from the frame, and what touches an object from outside is a finding. In strict mode the error is
raised before the instruction runs, so that the effect does not happen.
"""

from __future__ import annotations

import dis
import functools
import os
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax import errors
from purax.core import cells
from purax.purity import findings as tell
from purax.purity import impure_names
from purax.purity.bytecode import Call, Expression, Use, Write, summarize
from purax.purity.captures import Captures
from purax.purity.findings import Finding, finding
from purax.purity.frame_values import UNRESOLVED, attribute_of, receiver_of, root_of, text_of, value_of
from purax.purity.memos import changes_result, is_memo
from purax.purity.outside import Outside, holds_tracer, new_parts, only_new_entries
from purax.purity.ownership import is_user_code

Site = Write | Call | Use
_EXTENDED = dis.opmap["EXTENDED_ARG"]
_sites: dict[int, tuple[types.CodeType, dict[int, list[Site]]]] = {}  # by the id of the code
_CALLING = (map, filter, functools.reduce)  # they call their first argument


def sites_of(code: types.CodeType) -> dict[int, list[Site]]:
    """The instructions of a function that may have an effect, by offset."""
    known = _sites.get(id(code))
    if known is not None:
        return known[1]
    summary = summarize(code)
    found: dict[int, list[Site]] = {}
    sites: tuple[Site, ...] = (*summary.writes, *summary.calls, *summary.uses)
    for site in sites:
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
        self._shared = captures.shared
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
        for value, name, _, _ in captures.shared.values():
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
            self._assign_global(site, frame, name)
        elif site.kind == "nonlocal":
            if self._is_inside(code, name):
                return
            before = frame.f_locals.get(name)
            cell = self._cells.get((code, name))
            self._nonlocals.setdefault((code, name), (cell, before))
            what = f"`{code.co_name}` assigns the variable `{name}` of a function around it"
            found = finding(tell.NONLOCAL, code, site.line, name, what)
            memo = site if before is None and cell is not None and is_memo(code, site) else None
            self._add_later(found, "nonlocal", cell, name, memo, frame)
        else:
            base = value_of(site.base, frame)
            if base is UNRESOLVED:
                self._unresolved.append((site, code, frame.f_globals))
            elif site.kind == "in-place":
                if isinstance(base, (list, dict, set, bytearray, np.ndarray)) or hasattr(
                    type(base), "__iadd__"
                ):
                    self._change(base, site.base, site, frame, f"`{name}`")
            else:
                how = f"the attribute `{name}`" if site.kind == "attribute" else f"the entry [{name}]"
                self._change(base, site.base, site, frame, f"assigning {how}")

    def _assign_global(self, site: Write, frame: types.FrameType, name: str) -> None:
        code, namespace = frame.f_code, frame.f_globals
        now = (namespace, namespace.get(name, UNRESOLVED))
        _, before = self._globals.setdefault((id(namespace), name), now)
        what = f"`{code.co_name}` assigns the global variable `{name}` of {_module(frame)}"
        found = finding(tell.GLOBAL, code, site.line, name, what)
        memo = site if (before is None or before is UNRESOLVED) and is_memo(code, site) else None
        self._add_later(found, "global", namespace, name, memo, frame)

    def _change(
        self, base: Any, expression: Expression, site: Site, frame: types.FrameType, how: str
    ) -> None:
        """An object is about to be changed."""
        if not self._is_outside(base, expression, frame):
            return
        if base is os.environ:
            what = f"`{frame.f_code.co_name}` sets a variable in `os.environ`"
            self._add(finding(impure_names.ENVIRONMENT, frame.f_code, site.line, "os.environ", what), frame)
            return
        if base is frame.f_globals and type(site) is Write:
            self._assign_global(site, frame, site.name.strip("'"))
            return
        base = self.outside.owner(base)
        if not self.outside.has(base):
            self.outside.add(base, text_of(expression) or type(base).__name__)
        _, name, is_argument = self.outside.found[id(base)]
        kind = _kind_of(base)
        where = "its argument" if is_argument else f"the {kind}"
        origin = "" if is_argument else f" of {_module(frame)}" if root_of(expression) == "global" else ""
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
            and is_memo(frame.f_code, site)
        ):
            memo = site
        elif (
            type(site) is Call
            and how == "`setdefault`"
            and not is_argument
            and not changes_result(frame.f_code, site)
        ):
            memo = site  # type: ignore[assignment]
        self._add_later(found, "argument" if is_argument else "object", base, name, memo, frame)

    def _check_call(self, site: Call, frame: types.FrameType) -> None:
        callee = site.callee
        while callee[0] == "local":
            value = frame.f_locals.get(callee[1], UNRESOLVED)
            if value is not UNRESOLVED:
                self._check_called(value, site, frame)
                return
            callee = callee[2]
        if callee[0] == "attr":
            base = value_of(callee[1], frame)
            name = callee[2]
            if base is not UNRESOLVED:
                if impure_names.changes_its_object(type(base), name):
                    self._change(base, callee[1], site, frame, f"`{name}`")
                    return
                function = attribute_of(base, name)
                if function is not UNRESOLVED:
                    self._check_called(function, site, frame, base, callee[1])
            elif name in impure_names.MUTATING_NAMES:
                self._unresolved.append((site, frame.f_code, frame.f_globals))
            elif callee[1][0] == "call":
                maker = value_of(callee[1][1].callee, frame)
                if isinstance(maker, type) and impure_names.method_is_impure(maker, name):
                    what = f"`{frame.f_code.co_name}` calls `{maker.__name__}.{name}`"
                    self._add(
                        finding(impure_names.FILE, frame.f_code, site.line, f"{maker.__name__}.{name}", what),
                        frame,
                    )
            return
        value = value_of(callee, frame)
        if value is not UNRESOLVED:
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
        while isinstance(function, functools.partial):
            function = function.func
        own = getattr(function, "__self__", None)
        if own is not None and impure_names.changes_its_object(type(own), getattr(function, "__name__", "")):
            self._change(own, expression or receiver_of(site.callee), site, frame, f"`{function.__name__}`")
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
            if not inside and not (function is print and self._prints_inside(site, frame)):
                what = f"`{code.co_name}` calls `{name}`"
                self._add(finding(impurity, code, site.line, name, what), frame)
                return
        if function is next or isinstance(function, (type, types.BuiltinFunctionType)):
            for argument in (*site.args, *site.spread):
                self._consume(argument, site, frame)
            if function in _CALLING and site.args:
                called = value_of(site.args[0], frame)
                if isinstance(called, (types.BuiltinFunctionType, functools.partial)):
                    self._check_called(called, Call(site.offset, site.line, site.args[0]), frame)
        for i in impure_names.changed_arguments(function, len(site.args)):
            changed = value_of(site.args[i], frame)
            if changed is not UNRESOLVED:
                self._change(changed, site.args[i], site, frame, f"`{function.__name__}`")
            else:
                self._unresolved.append((site, code, frame.f_globals))
        for name, argument in site.kwargs:
            if name == "out":
                value = value_of(argument, frame)
                if isinstance(value, np.ndarray):
                    self._change(value, argument, site, frame, "`out=`")
                elif value is UNRESOLVED:
                    self._unresolved.append((site, code, frame.f_globals))

    def _prints_inside(self, site: Call, frame: types.FrameType) -> bool:
        """Whether `print` writes to a file that the function made itself."""
        given = [expression for name, expression in site.kwargs if name == "file"]
        file = value_of(given[0], frame) if given else UNRESOLVED
        known = file is not UNRESOLVED and file not in (None, sys.stdout, sys.stderr)
        return known and not self._is_outside(file, given[0], frame)

    def _check_use(self, site: Use, frame: types.FrameType) -> None:
        value = value_of(site.value, frame)
        if value is os.environ:
            what = f"`{frame.f_code.co_name}` reads `os.environ`"
            self._add(finding(impure_names.ENVIRONMENT, frame.f_code, site.line, "os.environ", what), frame)
        elif site.how == "iterate":
            self._consume(site.value, site, frame, value)

    def _consume(
        self, expression: Expression, site: Site, frame: types.FrameType, value: Any = UNRESOLVED
    ) -> None:
        if value is UNRESOLVED:
            value = value_of(expression, frame)
        if value is UNRESOLVED or not impure_names.is_iterator(value):
            return
        if self._is_outside(value, expression, frame):
            name = (
                self.outside.name(value) if self.outside.has(value) else text_of(expression) or "an iterator"
            )
            what = f"`{frame.f_code.co_name}` takes items from the iterator `{name}`"
            self._add(finding(impure_names.ITERATOR, frame.f_code, site.line, name, what), frame)

    # -- values in frames

    def _is_outside(self, value: Any, expression: Expression, frame: types.FrameType) -> bool:
        """Whether an object existed before the function was called; references do not count, since programs know of
        them."""
        if cells.kind_of(value) is not None:
            return False
        if self.outside.has(self.outside.owner(value)) or value is frame.f_globals:
            return True
        if isinstance(value, type):
            return not self._is_made_inside(value)
        if isinstance(value, types.ModuleType):
            return True
        while expression[0] in ("attr", "item", "local"):
            if (
                expression[0] == "local"
            ):  # a name for something outside, unless it was set to something else since
                if value_of(expression[2], frame) is not value_of(expression, frame):
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

    def _is_made_inside(self, kind: type) -> bool:
        """Whether a class was defined by a function that was called during the watch."""
        maker, _, _ = kind.__qualname__.rpartition(".<locals>.")
        return bool(maker) and any(code.co_qualname == maker for code in self.entered)

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
        """Objects that changed at a place that could not be resolved, or in a library that was given them."""
        told = {id(holder) for _, kind, holder, *_ in self._later if kind in ("object", "argument")}
        for value, name, is_argument in list(self.outside.found.values()):
            if id(value) in told or not self.outside.changed(value):
                continue
            before = self.outside.before[id(value)]
            places: list[tuple[types.CodeType | None, int]] = [
                (c, site.line) for site, c, _ in self._unresolved if _may_change(site, value)
            ]
            if not places and id(value) in self._shared and not is_cached_property(value, before):
                places = [self._shared[id(value)][2:]]
            if not places:
                continue
            code, line = places[0]
            if code is None:
                continue
            self._add(changed(value, name, is_argument, before, code, line), None)

    def undo(self) -> None:
        """Puts outside state back as it was before the call."""
        self.outside.restore()
        for (_, name), (namespace, before) in self._globals.items():
            if before is UNRESOLVED:
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


def _contains(owner: types.CodeType, code: types.CodeType) -> bool:
    return any(
        constant is code or constant == code or _contains(constant, code)
        for constant in owner.co_consts
        if isinstance(constant, types.CodeType)
    )


def _may_change(site: Site, value: Any) -> bool:
    if type(site) is Write:
        return site.kind != "attribute" or not isinstance(value, (list, dict, set, np.ndarray))
    return (
        isinstance(value, (list, dict, set, np.ndarray)) or hasattr(value, "append") or hasattr(value, "add")
    )


def changed(
    value: Any, name: str, is_argument: bool, before: Any, code: types.CodeType, line: int
) -> Finding:
    """The finding that an object is not what it was."""
    what = f"`{code.co_name}` changes the {_kind_of(value)} `{name}`"
    found = finding(tell.ARGUMENT if is_argument else tell.MUTATION, code, line, name, what)
    leaks = not is_argument and any(map(holds_tracer, new_parts(value, before)))
    return _as_leak(found, "object", value) if leaks else found


def is_cached_property(value: Any, before: Any) -> bool:
    """Whether an object only remembers more than it did, none of it traced."""
    if isinstance(value, (list, dict, set, np.ndarray)):
        return False
    added = only_new_entries(value, before)
    return added is not None and not any(map(holds_tracer, added))


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
