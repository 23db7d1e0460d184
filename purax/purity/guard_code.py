"""The function that compares the guards of a program on every call: source made for them, with fast paths for the
common kinds of objects.
"""

from __future__ import annotations

import builtins
import operator
import types
from typing import Any

import numpy as np

from purax.core.memo import Memo
from purax.purity.ambient import read_methods
from purax.purity.contents import (
    FUNCTION_NAMES,
    read_array,
    read_attributes,
    read_callables,
    read_class,
    read_function,
    read_library_function,
    read_namespace,
    reader_of,
    same_value,
)
from purax.purity.guard import ABSENT, Guard, Root, is_remembered, read_root, replaces

_IMMUTABLE = (tuple, frozenset, types.MethodType, types.BuiltinFunctionType)
_COMPARED_BY_IDENTITY = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, np.ufunc)
_compiled: Memo[str, types.CodeType] = Memo(1000)


class _Writer:
    """Writes the source of a comparing function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.values: dict[str, Any] = {}
        self.names: dict[int, str] = {}

    def name(self, value: Any) -> str:
        name = self.names.get(id(value))
        if name is None:
            name = self.names[id(value)] = f"v{len(self.values)}"
            self.values[name] = value
        return name

    def compare(self, expression: str, guard: Guard, i: int) -> None:
        """Compares one part of an object."""
        before = guard.values[i]
        if type(before) is Root:
            self.lines.append(f"        if {expression} is not {self.name(before.function)}(): return slow()")
            return
        name = self.name(before)
        if i in guard.slots:
            self.lines.append(f"        t = {expression}")
            test = f"t is not {name} and not replaces(t, {name}, {self.name(guard.slots[i])}, operands)"
        elif _is_number(before):
            self.lines.append(f"        t = {expression}")
            test = f"t is not {name} and not same_value(t, {name})"
        else:
            test = f"{expression} is not {name}"
        self.lines.append(f"        if {test}: return slow()")

    def guard(self, guard: Guard) -> None:
        node = guard.node
        value = node.value
        if isinstance(value, _IMMUTABLE) and type(value).__dictoffset__ == 0:
            return
        kind = type(value)
        if node.reader is read_namespace:
            self._namespace(guard)
        elif node.reader is read_methods:
            own = self.name(value)
            number = self.name(value.number)
            self.lines.append(f"        if {number}.value != {own}.seen and not {own}.holds(): return slow()")
        elif kind is types.CellType and guard.values:
            self.compare(f"{self.name(value)}.cell_contents", guard, 0)
        elif (
            node.reader in (read_function, read_library_function, read_root)
            and not guard.ignored
            and not _is_replaced(guard)
        ):
            self._function(guard)
        elif node.reader is read_callables and not guard.ignored:
            self._callables(guard)
        elif (
            kind is list
            and all([i not in guard.slots for i in range(len(guard.values))])
            and not guard.ignored
        ):
            own, held = self.name(value), self.name(guard.values)
            self.lines.append(
                f"        if (len({own}) != {len(guard.values)} or not all(map(is_, {own}, {held}))) "
                f"and not {self.name(guard)}.holds(operands): return slow()"
            )
        elif kind is dict and not guard.ignored:
            own, keys, held = self.name(value), self.name(guard.keys), self.name(guard.values)
            self.lines.append(
                f"        if (len({own}) != {len(guard.keys)} or not all(map(is_, {own}, {keys})) or "
                f"not all(map(is_, {own}.values(), {held}))) and not {self.name(guard)}.holds(operands): return slow()"
            )
        elif kind is np.ndarray and node.reader is read_array and _is_plain_dtype(value.dtype):
            self._array(guard)
        elif node.reader is read_attributes and _is_plain(kind) and not guard.ignored:
            self._object(guard)
        elif node.reader is read_class and not guard.ignored and guard.tag == value.__bases__:
            self._class(guard)
        else:
            self.lines.append(f"        if not {self.name(guard)}.holds(operands): return slow()")

    def _namespace(self, guard: Guard) -> None:
        own = self.name(guard.node.value)
        fixed = [i for i, x in enumerate(guard.values) if type(x) in _COMPARED_BY_IDENTITY]
        if len(fixed) < 3:
            fixed = []
        else:  # a tuple compares what are the same objects without asking them
            get = self.name(operator.itemgetter(*[guard.keys[i] for i in fixed]))
            functions = self.name(tuple([guard.values[i] for i in fixed]))
            self.lines.append(f"        if {get}({own}) != {functions}: return slow()")
        for i, key in enumerate(guard.keys):
            if i not in fixed:
                self.compare(f"{own}[{key!r}]", guard, i)
        self.values["built_in"] = vars(builtins)
        known = [name for name, x in guard.built_in.items() if x is not ABSENT]
        for name in guard.missing:
            if name not in known:
                test = f" or {name!r} in built_in" if guard.built_in else ""
                self.lines.append(f"        if {name!r} in {own}{test}: return slow()")
        if known:
            names = self.name(frozenset(known))
            asked = [*known, known[0]]  # one name gives no tuple
            held = tuple(guard.built_in[name] for name in asked)
            self.lines.append(
                f"        if {self.name(operator.itemgetter(*asked))}(built_in) != {self.name(held)} or "
                f"not {own}.keys().isdisjoint({names}): return slow()"
            )

    def _function(self, guard: Guard) -> None:
        """Compares what can be assigned to a function; its cells are objects of their own."""
        own = guard.node.value
        function: Any = own.function() if type(own) is Root else own
        self.lines.append(
            f"        f = {self.name(own.function) + '()' if type(own) is Root else self.name(own)}"
        )
        tests = [f"f.__defaults__ is not {self.name(function.__defaults__)}"]
        if guard.node.reader is not read_library_function:
            tests.append(f"f.__code__ is not {self.name(function.__code__)}")
        if function.__kwdefaults__ is None:
            tests.append("f.__kwdefaults__ is not None")
        else:
            held = self.name([*function.__kwdefaults__.values()])
            tests.append(f"not all(map(is_, f.__kwdefaults__.values(), {held}))")
            tests.append(f"len(f.__kwdefaults__) != {len(function.__kwdefaults__)}")
        tests.append(f"len(f.__dict__) != {len(function.__dict__)}")
        for key in guard.keys:
            if key in function.__dict__:
                tests.append(f"f.__dict__[{key!r}] is not {self.name(function.__dict__[key])}")
            elif key in FUNCTION_NAMES:
                tests.append(f"f.{key} is not {self.name(getattr(function, key))}")
        self._unless(tests, guard)

    def _callables(self, guard: Guard) -> None:
        """Compares what one of purax's own objects holds of the user's, which it got when it was made."""
        own = self.name(guard.node.value)
        tests = [
            f"{own}.{key} is not {self.name(value)}"
            for key, value in zip(guard.keys, guard.values, strict=True)
        ]
        if tests:
            self._unless(tests, guard)

    def _unless(self, tests: list[str], guard: Guard) -> None:
        """What is the same object needs no further look."""
        self.lines.append(
            f"        if ({' or '.join(tests)}) and not {self.name(guard)}.holds(operands): return slow()"
        )

    def _array(self, guard: Guard) -> None:
        array = guard.node.value
        if is_frozen(array):
            return
        shape, dtype, _, contents, _ = guard.tag
        own = self.name(array)
        plain = (
            array.dtype.kind in "biufc" and array.dtype.isnative and array.size and array.flags.c_contiguous
        )
        # A bytearray compares itself with the memory of an array in place, as fast as memory is read.
        memory = own if plain else f"{own}.tobytes()"
        self.lines.append(
            f"        if {own}.shape != {self.name(shape)} or {own}.dtype != {self.name(dtype)} or "
            f"{self.name(bytearray(contents))} != {memory}: return slow()"
        )

    def _object(self, guard: Guard) -> None:
        value = guard.node.value
        own = self.name(value)
        self.lines.append(f"        if type({own}) is not {self.name(type(value))}: return slow()")
        self.lines.append(f"        d = {own}.__dict__")
        self._attributes(guard, [*value.__dict__])

    def _attributes(self, guard: Guard, names: list[str]) -> None:
        """Compares the parts of an object in its namespace `d`, if that still has the same names."""
        self.lines.append(f"        if [*d] != {self.name(names)}:")
        self.lines.append(f"            if not {self.name(guard)}.holds(operands): return slow()")
        if guard.keys:
            self.lines.append("        else:")
            start = len(self.lines)
            for i, key in enumerate(guard.keys):
                self.compare(f"d[{key!r}]", guard, i)
            self.lines[start:] = ["    " + line for line in self.lines[start:]]

    def _class(self, guard: Guard) -> None:
        value: Any = guard.node.value
        own = self.name(value)
        self.lines.append(f"        d = {own}.__dict__")
        self.lines.append(
            f"        if {own}.__bases__ is not {self.name(guard.tag)} and {own}.__bases__ != {self.name(guard.tag)}: "
            "return slow()"
        )
        self._attributes(guard, [*vars(value)])


def _is_replaced(guard: Guard) -> bool:
    """Whether a function has other arrays than when it was traced, which become operands on each call."""
    now = guard.read(guard.node.value)[2] if guard.slots else []
    return any([now[i] is not guard.values[i] for i in guard.slots])


def _is_number(value: Any) -> bool:
    return (
        same_value(value, value)
        and reader_of(value) is None
        and type(value).__module__ in ("builtins", "numpy")
    )


def _is_plain(kind: type) -> bool:
    """Whether the attributes of instances are in `__dict__`, and that is read without code of the user's."""
    return (
        kind.__dictoffset__ != 0
        and getattr(kind, "__getattribute__", None) is object.__getattribute__
        and not any("__slots__" in vars(parent) and vars(parent)["__slots__"] for parent in kind.__mro__)
        and not any(
            "__dict__" in vars(parent) and isinstance(vars(parent)["__dict__"], property)
            for parent in kind.__mro__
        )
    )


def _is_plain_dtype(dtype: np.dtype) -> bool:
    return not dtype.hasobject and dtype.names is None


def is_frozen(value: np.ndarray) -> bool:
    """Whether nobody can write to an array, even after asking NumPy to make it writeable."""
    array: Any = value
    while isinstance(array, np.ndarray):
        if array.flags.writeable or array.flags.owndata:
            return False
        array = array.base
    try:
        with memoryview(array) as view:
            return view.readonly and not isinstance(array, memoryview)
    except TypeError:
        return False


def generate_check(each: list[Guard], constants: list[Any], memoizing: list[Any], slow: Any) -> Any:
    """A function without arguments that compares all guards."""
    writer = _Writer()
    for guard in each:
        writer.guard(guard)
    if memoizing:
        writer.lines.append(f"        if not remembered({writer.name(memoizing)}): return slow()")
    replaced = any(guard.slots for guard in each)
    writer.values |= {
        "constants": constants,
        "slow": slow,
        "is_": operator.is_,
        "replaces": replaces,
        "same_value": same_value,
        "remembered": is_remembered,
    }
    text = "\n".join(
        [
            "def check():",
            f"    operands = {'constants.copy()' if replaced else 'constants'}",
            "    try:",
            *(writer.lines or ["        pass"]),
            "    except Exception: return slow()",
            "    return operands",
        ]  # fmt: skip
    )
    code = _compiled.get(text)
    if code is None:
        code = _compiled[text] = compile(text, "<purax guards>", "exec")
    exec(code, writer.values)
    return writer.values["check"]
