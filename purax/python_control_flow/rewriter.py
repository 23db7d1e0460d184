"""Who is asked when a function is recorded: whether it is to be rewritten, and what to put back before it is.

This module is imported with purax, and the rest of the package when a function needs it.
"""

from __future__ import annotations

import ast
import contextlib
import dis
import functools
import importlib
import itertools
import types
from collections.abc import Iterator
from typing import Any

from purax.core.rewriting_hook import AT_ONCE, Rewriter
from purax.purity.ownership import is_user_class, is_user_code, is_user_module

_STORES = frozenset(
    (
        "STORE_GLOBAL",
        "DELETE_GLOBAL",
        "STORE_ATTR",
        "DELETE_ATTR",
        "STORE_SUBSCR",
        "DELETE_SUBSCR",
        "STORE_SLICE",
    )
)
CHANGING_NAMES = frozenset(
    "append extend insert pop remove clear update setdefault popitem sort reverse add discard appendleft popleft "
    "extendleft rotate setattr delattr vars __setattr__ __setitem__ __dict__ heappush heappop next __next__ send "
    "random seed choice shuffle integers normal uniform fill put setflags".split()
)
# What cannot be undone: functions that do it are rewritten before they run at all.
_LASTING_FUNCTIONS = frozenset(("print", "open", "input", "exec"))
_LASTING_METHODS = frozenset(("write", "writelines", "flush", "info", "warning", "critical", "exception"))
_CAUGHT = frozenset(("ZeroDivisionError", "ArithmeticError"))  # errors that arrays do not raise
_MANY = 300
_FINE, _REWRITE = "fine", "rewrite"


class PythonRewriter(Rewriter):
    """Rewrites functions of the user's."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[types.CodeType, str]] = {}  # by the id of code, which is kept

    def prepare(self, function):
        code = code_of(function)
        if code is None:
            return None
        known = self._known.get(id(code))
        if known is not None:
            return AT_ONCE if known[1] is _REWRITE else None
        changing = lasting = False
        for each in reachable_functions(function):
            changes, lasts = effects_of(each.__code__)
            changing, lasting = changing or changes, lasting or lasts or compares_identity(each.__code__)
        if lasting or not _CAUGHT.isdisjoint(code.co_names):
            return AT_ONCE
        if not changing:
            return None
        found = importlib.import_module("purax.python_control_flow.heap").picture(function)
        return AT_ONCE if found is None else found

    def succeeded(self, function):
        self._remember(function, _FINE)

    def _remember(self, function: Any, what: str) -> None:
        code = code_of(function)
        if code is not None and id(code) not in self._known:
            if len(self._known) > 10_000:
                self._known.clear()
            self._known[id(code)] = (code, what)

    def retrace(self, record, function, error, before):
        if error is not None:
            self._remember(function, _REWRITE)
        rewriting = importlib.import_module("purax.python_control_flow.rewriting")
        return rewriting.retrace(record, function, error, None if before is AT_ONCE else before)

    def is_swallowed(self, error):
        step = error.__traceback__
        if step is None:
            return False
        code = step.tb_frame.f_code  # where it was caught
        if not is_user_code(code):
            return False
        return not names_tracer_errors(code.co_filename, step.tb_lineno)


def code_of(function: Any) -> types.CodeType | None:
    """The code of a function of the user's; None if it is something else."""
    while True:
        if isinstance(function, types.FunctionType):
            return function.__code__ if is_user_code(function.__code__) else None
        if isinstance(function, types.MethodType):
            function = function.__func__
        elif isinstance(function, functools.partial):
            function = function.func
        else:
            return None


_WRAPPING = (staticmethod, classmethod, types.MethodType)


def reachable_functions(function: Any) -> Iterator[types.FunctionType]:
    """The functions of the user's that a function may call: by its names, what it closes over, and what these hold."""
    waiting: list[Any] = [function]
    seen: set[int] = set()
    while waiting and len(seen) < _MANY:
        x = waiting.pop()
        if id(x) in seen or type(x) in _DATA:
            continue
        seen.add(id(x))
        if isinstance(x, types.MethodType):
            waiting += (x.__func__, x.__self__)
        elif isinstance(x, functools.partial):
            waiting += (x.func, *x.args, *x.keywords.values())
        elif isinstance(x, type):
            if is_user_class(x):
                held = list(vars(x).values())  # asking any other than these for `__func__` would run its code
                waiting += [f.__func__ if isinstance(f, _WRAPPING) else f for f in held]
        elif isinstance(x, types.FunctionType):
            if is_user_code(x.__code__):
                yield x
                waiting += _named_by(x)
        elif type(x) in (list, tuple):
            waiting += x[:_MANY]
        elif type(x) is dict:
            waiting += itertools.islice(x.values(), _MANY)
        elif not isinstance(x, types.ModuleType) and is_user_class(type(x)):
            waiting.append(type(x))
            with contextlib.suppress(AttributeError):
                waiting.append(object.__getattribute__(x, "__dict__"))


_DATA = frozenset((int, float, complex, bool, str, bytes, type(None), types.BuiltinFunctionType))


def _named_by(function: types.FunctionType) -> list[Any]:
    """What a function closes over, and the global variables, also of modules of the user's, that it names."""
    found = []
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):
            found.append(cell.cell_contents)
    names = function.__code__.co_names
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, types.ModuleType):
            if is_user_module(value):
                found += [vars(value)[each] for each in names if each in vars(value)]
        else:
            found.append(value)
    return found


@functools.lru_cache(2048)
def effects_of(code: types.CodeType) -> tuple[bool, bool]:
    """Whether code may change something, and whether it may do what cannot be undone."""
    changing, lasting = not CHANGING_NAMES.isdisjoint(code.co_names), False
    try:
        for instruction in dis.get_instructions(code):
            name, operand = instruction.opname, instruction.argval
            if name in _STORES or name in ("STORE_DEREF", "DELETE_DEREF") and operand in code.co_freevars:
                changing = True
            elif name.startswith("LOAD_GLOBAL"):
                lasting = lasting or operand in _LASTING_FUNCTIONS
            elif name.startswith(("LOAD_ATTR", "LOAD_METHOD")):
                lasting = lasting or operand in _LASTING_METHODS
    except Exception:  # an interpreter whose instructions are not known
        changing = True
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            changes, lasts = effects_of(constant)
            changing, lasting = changing or changes, lasting or lasts
    return changing, lasting


@functools.lru_cache(2048)
def compares_identity(code: types.CodeType) -> bool:
    """Whether code tests `is True` or `is False`, also by a `match`: no traced value is either, and none would tell."""
    try:
        known = None
        for instruction in dis.get_instructions(code):
            if instruction.opname == "IS_OP" and isinstance(known, bool):
                return True
            known = instruction.argval if instruction.opname == "LOAD_CONST" else None
    except Exception:  # an interpreter whose instructions are not known
        return True
    return any(compares_identity(x) for x in code.co_consts if isinstance(x, types.CodeType))


def names_tracer_errors(file: str, line: int) -> bool:
    """Whether the `try` around a line has a handler that names the errors about traced values."""
    source = importlib.import_module("purax.python_control_flow.function_source")
    try:
        tree = source.parsed_lines(file)
    except Exception:
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and node.body[0].lineno <= line <= (node.body[-1].end_lineno or line):
            kinds = [ast.unparse(h.type) for h in node.handlers if h.type is not None]
            if any(
                "Tracer" in text or "Concretization" in text or "Error" in text and "jax" in text
                for text in kinds
            ):
                return True
    return False
