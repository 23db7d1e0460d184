"""What the code object of a function tells about it: the names it reads, its constants, the lines that may write.

Only what every Python has is needed: `co_names`, `co_consts` and `co_freevars`. The names of instructions (`dis`) make
it precise, which names are those of global variables and which lines write; without them, any may be. On Pythons whose
arguments of instructions are known, most code is read from its bytes, which takes a tenth of the time of `dis`.
"""

from __future__ import annotations

import dis
import itertools
import re
import sys
import types
from functools import cached_property
from typing import Any

_GLOBAL = frozenset(
    ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS", "STORE_GLOBAL", "DELETE_GLOBAL")
)
_LOADS = frozenset(
    "LOAD_GLOBAL LOAD_NAME LOAD_ATTR LOAD_METHOD LOAD_SUPER_ATTR LOAD_DEREF LOAD_CLASSDEREF".split()
)
_STORES = frozenset(("STORE_ATTR", "DELETE_ATTR", "STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE"))
_OUTER = frozenset(("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF"))
_KNOWN = {"LOAD_GLOBAL", "STORE_GLOBAL", "STORE_ATTR", "STORE_SUBSCR", "STORE_DEREF"} <= set(dis.opmap)

# What reads attributes whose names are not written in the code: always, and if the name is not a constant.
_DYNAMIC = frozenset(
    "vars dir __dict__ __getattribute__ __slots__ eval exec locals __getstate__ __reduce_ex__".split()
)
_ACCESS = frozenset("getattr hasattr setattr delattr".split())
_GETTERS = frozenset(("attrgetter", "methodcaller"))
_EVALUATING = frozenset(("eval", "exec"))
_BETWEEN = frozenset(("CACHE", "PRECALL", "PUSH_NULL", "EXTENDED_ARG"))
FORMATS = frozenset("str repr format print ascii hash".split())
_COMPARING = frozenset("index count remove eq ne contains countOf indexOf".split())  # without an operator

# What is read from bytes: a kind for each instruction that tells something, 0 for all others.
(
    _LOAD_GLOBAL,
    _NAMED_GLOBAL,
    _STORE_GLOBAL,
    _STORE_ATTR,
    _STORE,
    _STORE_DEREF,
    _BINARY,
    _IMPORT,
    _COMPARE,
    _FORMAT,
    _MATCH,
) = range(1, 12)
_KINDS = {
    "LOAD_GLOBAL": _LOAD_GLOBAL, "LOAD_NAME": _NAMED_GLOBAL, "LOAD_FROM_DICT_OR_GLOBALS": _NAMED_GLOBAL,
    "STORE_GLOBAL": _STORE_GLOBAL, "DELETE_GLOBAL": _STORE_GLOBAL, "STORE_ATTR": _STORE_ATTR,
    "DELETE_ATTR": _STORE_ATTR, "STORE_SUBSCR": _STORE, "DELETE_SUBSCR": _STORE, "STORE_SLICE": _STORE,
    "STORE_DEREF": _STORE_DEREF, "DELETE_DEREF": _STORE_DEREF, "BINARY_OP": _BINARY, "IMPORT_NAME": _IMPORT,
    "COMPARE_OP": _COMPARE, "CONTAINS_OP": _FORMAT, "MATCH_CLASS": _MATCH,
}  # fmt: skip
_KINDS |= {name: _FORMAT for name in dis.opmap if name.startswith("FORMAT")}
_TABLE = bytes(_KINDS.get(name, 0) if len(name) else 0 for name in dis.opname[:256])
_EXTENDED = dis.opmap.get("EXTENDED_ARG")
_COMPARE_SHIFT = {(3, 11): 0, (3, 12): 4}.get(sys.version_info[:2], 5)
_IN_PLACE = frozenset(i for i, op in enumerate(getattr(dis, "_nb_ops", ())) if op[1].endswith("="))
_ASSIGNING = frozenset(("STORE_SUBSCR", "STORE_ATTR", "STORE_DEREF", "STORE_GLOBAL"))
_ADDING = frozenset("append appendleft extend extendleft insert add update".split())
_METHODS = frozenset(("LOAD_METHOD", "LOAD_ATTR"))
_NAMING = frozenset((*_METHODS, "LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"))
_COUNTING = 4  # instructions, at most, between a sum and the place where it is stored
# Calls of these are looked at with their arguments.
_CALLED = _ACCESS | _GETTERS | _EVALUATING


class CodeFacts:
    """Facts about one code object, without the functions written inside of it.

    Attributes:
        names: of global variables, attributes and imported modules.
        globals: names of global variables only, read or assigned.
        strings: constants that could be names of attributes, variables or keys.
        stored: names of attributes that are assigned.
        loaded: names of attributes and variables that are read.
        imports: names of modules that the code imports itself.
        is_dynamic: whether it may read attributes whose names are not among `names` and `strings`.
        compares: whether it may call `__eq__`, `__repr__`, `__hash__` or the like.
        uses: names of variables of functions around it that it reads or assigns itself.
        inner: the code of the functions written inside of it, and of strings that it evaluates.
        evaluates: whether it evaluates code that is not a constant.
        matches: whether it has a pattern of a class, which reads the attributes in `__match_args__`.
        writes: whether it may change an object or a variable that it did not make, by an assignment.
    """

    __slots__ = (
        "code",
        "compares",
        "evaluates",
        "globals",
        "imports",
        "inner",
        "is_dynamic",
        "matches",
        "names",
        "stored",
        "strings",
        "writes",
        "__dict__",
    )

    def __init__(self, code: types.CodeType):
        self.code = code
        self.names = set(code.co_names)
        self.globals: set[str] = set()
        self.strings: set[str] = set()
        self.stored: set[str] = set()
        self.imports: set[str] = set()
        self.inner: list[types.CodeType] = []
        self.compares = self.writes = self.is_dynamic = self.evaluates = self.matches = False
        try:
            if not _KNOWN:
                raise NotImplementedError("instructions of an unknown Python")
            if _HAS_BYTES and _CALLED.isdisjoint(self.names):
                self._read_bytes(code)
            else:
                self._read_instructions(code)
        except Exception:
            self.globals = set(code.co_names)
            self.stored = self.imports = set(code.co_names)
            self.compares = self.writes = self.matches = True
            self.is_dynamic = not _ACCESS.isdisjoint(self.names)
            self.evaluates = not _EVALUATING.isdisjoint(self.names)
        for constant in code.co_consts:
            self._add_constant(constant)
        self.is_dynamic = self.is_dynamic or not _DYNAMIC.isdisjoint(self.names)
        self.compares = (
            self.compares or not FORMATS.isdisjoint(self.globals) or not _COMPARING.isdisjoint(self.names)
        )

    @cached_property
    def loaded(self) -> set[str]:
        """Names of attributes and variables that are read."""
        if not _KNOWN:
            return {*self.code.co_names, *self.code.co_freevars}
        return {x.argval for x in dis.get_instructions(self.code) if x.opname in _LOADS}

    @cached_property
    def notes(self) -> tuple[set[Any], set[Any]]:
        """Keys and attributes that it only assigns, and what it counts, as `d["n"] += 1` does; None is any of these."""
        if not _KNOWN:
            return set(), {None}
        stored: set[Any] = set()
        asked: set[Any] = set()
        counted: set[Any] = set()
        since = 100  # instructions since something was computed
        before: Any = None
        for x in dis.get_instructions(self.code):
            if x.opname in _BETWEEN:
                continue
            since += 1
            if x.opname == "BINARY_OP":
                since = 0
            elif x.opname in _ASSIGNING:
                is_constant = before is not None and before.opname == "LOAD_CONST"
                key = x.argval if x.opname != "STORE_SUBSCR" else before.argval if is_constant else None
                if key is None or type(key) is str:
                    stored.add(key)
                    if since <= _COUNTING:
                        counted.add(key)
                before = None
                continue
            if before is not None and before.opname == "LOAD_CONST" and type(before.argval) is str:
                asked.add(before.argval)
            before = x
        return stored - asked - {None}, counted

    @cached_property
    def logs(self) -> tuple[set[str], set[str]]:
        """Names of containers that it adds to, as `seen.append(x)` does, and of all that it reads in other ways."""
        if not _KNOWN:
            return set(), set()
        added: set[str] = set()
        read: set[str] = set()
        found = [x for x in dis.get_instructions(self.code) if x.opname not in _BETWEEN]
        for x, following in itertools.pairwise(found):
            if x.opname in _NAMING or x.opname.startswith("LOAD_FAST"):
                *others, name = x.argval if isinstance(x.argval, tuple) else (x.argval,)
                is_added_to = following.opname in _METHODS and following.argval in _ADDING
                (added if is_added_to else read).add(name)
                read.update(others)
        return added, read

    @cached_property
    def uses(self) -> set[str]:
        """Names of variables of functions around it that it reads or assigns itself."""
        if not _KNOWN:
            return set(self.code.co_freevars)
        return {x.argval for x in dis.get_instructions(self.code) if x.opname.endswith("DEREF")}

    def _read_bytes(self, code: types.CodeType) -> None:
        """What `_read_instructions` finds in code that calls none of `_CALLED`."""
        data = code.co_code
        names = code.co_names
        first_free = None
        kinds = data[::2].translate(_TABLE)
        for i in itertools.compress(range(len(kinds)), kinds):
            kind = kinds[i]
            argument = data[2 * i + 1]
            if i and data[2 * i - 2] == _EXTENDED:
                argument = _extended(data, i)
            if kind == _LOAD_GLOBAL:
                self.globals.add(names[argument >> 1])
            elif kind == _BINARY:
                self.writes = self.writes or argument in _IN_PLACE
            elif kind == _STORE_ATTR:
                self.writes = True
                self.stored.add(names[argument])
            elif kind == _STORE:
                self.writes = True
            elif kind == _COMPARE:
                self.compares = self.compares or "=" in dis.cmp_op[argument >> _COMPARE_SHIFT]  # type: ignore[operator]
            elif kind == _FORMAT:
                self.compares = True
            elif kind == _STORE_DEREF:
                if first_free is None:
                    first_free = len({*code.co_varnames, *code.co_cellvars})
                self.writes = self.writes or argument >= first_free
            elif kind == _IMPORT:
                self.imports.add(names[argument])
            elif kind == _MATCH:
                self.matches = True
            else:
                self.globals.add(names[argument])
                self.writes = self.writes or kind == _STORE_GLOBAL

    def _read_instructions(self, code: types.CodeType) -> None:
        free = set(code.co_freevars)
        instructions = list(dis.get_instructions(code))
        for i, instruction in enumerate(instructions):
            name = instruction.opname
            if name in _LOADS and instruction.argval in _GETTERS:
                if not _is_given_text(instructions[i + 1 : i + 8]):
                    self.is_dynamic = True
            if name in _GLOBAL:
                self.globals.add(instruction.argval)
                self.writes = self.writes or instruction.argval in ("setattr", "delattr")
                if instruction.argval in _ACCESS and not _names_a_constant(instructions[i:]):
                    self.is_dynamic = True
                elif instruction.argval in _EVALUATING:
                    self._add_evaluated(instruction.argval, instructions[i + 1 : i + 8])
                self.writes = self.writes or name in _OUTER
            elif name in _STORES:
                self.writes = True
                if name.endswith("ATTR"):
                    self.stored.add(instruction.argval)
            elif name.endswith("DEREF"):
                self.writes = self.writes or (name in _OUTER and instruction.argval in free)
            elif name == "BINARY_OP":
                self.writes = self.writes or instruction.argrepr.endswith("=")
            elif name == "IMPORT_NAME":
                self.imports.add(instruction.argval)
            elif name == "COMPARE_OP":
                self.compares = self.compares or "=" in str(instruction.argval)
            elif name == "CONTAINS_OP" or name.startswith("FORMAT"):
                self.compares = True
            elif name == "MATCH_CLASS":
                self.matches = True

    def _add_evaluated(self, name: str, following: list[dis.Instruction]) -> None:
        """A call of `eval` or `exec`: its code is known if it is a constant, and the only argument."""
        given = [x for x in following if x.opname not in _BETWEEN][:2]
        if len(given) == 2 and given[0].opname == "LOAD_CONST" and given[1].opname.startswith("CALL"):
            text = given[0].argval
            if given[1].arg == 1 and isinstance(text, str):
                try:
                    self.inner.append(compile(text.strip(), "<evaluated>", name))
                except (SyntaxError, ValueError):  # so it is when it runs
                    pass
                return
        self.evaluates = True

    def _add_constant(self, constant: Any) -> None:
        if isinstance(constant, str):
            if len(constant) < 100:
                self.strings.update(constant.split("."))
            self.compares = self.compares or "%" in constant
            if "{" in constant:
                self.strings |= names_in(constant)
        elif isinstance(constant, (tuple, frozenset)):
            for part in constant:
                self._add_constant(part)
        elif isinstance(constant, types.CodeType):
            self.inner.append(constant)


def names_in(text: str) -> set[str]:
    """The names in a text that may be a format, as in `"{0.name}"`."""
    return set(re.findall(r"[^\W\d]\w*", text))


def _extended(data: bytes, i: int) -> int:
    """The argument of an instruction that others before it extend."""
    argument = data[2 * i + 1]
    shift, before = 8, i - 1
    while before >= 0 and data[2 * before] == _EXTENDED:
        argument |= data[2 * before + 1] << shift
        shift, before = shift + 8, before - 1
    return argument


_SAMPLE = """
def outer(c):
    def sample(x, y):
        nonlocal c
        global g
        import os
        g = a.b + x < y
        c = [a == b, a > b, a in b, a != b, a <= x]
        x.e = y.f; x[0] = y; x[1:2] = h(f"{x:>3}", x is y, k.l.m(n, o), p(*q), not r)
        del x.e, x[0], g
        match x:;;case int(k): pass
        x += s * t - u
        return x
"""


def _reads_bytes_rightly() -> bool:
    """Whether this Python's instructions are laid out as `_read_bytes` takes them to be, tried on each statement."""

    def facts(code: types.CodeType, read: Any) -> Any:
        found = CodeFacts.__new__(CodeFacts)
        found.globals, found.stored, found.imports = set(), set(), set()
        found.writes = found.compares = found.is_dynamic = found.matches = False
        read(found, code)
        return found.globals, found.stored, found.imports, found.writes, found.compares, found.matches

    try:
        lines = _SAMPLE.strip().split("\n")
        for statement in lines[5:-1]:
            text = "\n".join([*lines[:4], statement.replace(";;", "\n            ")])
            code = compile(text, "<sample>", "exec").co_consts[0].co_consts
            inner = next(x for x in code if isinstance(x, types.CodeType))
            if facts(inner, CodeFacts._read_bytes) != facts(inner, CodeFacts._read_instructions):
                return False
    except Exception:
        return False
    return True


_HAS_BYTES = _KNOWN and bool(_IN_PLACE) and _EXTENDED is not None and _reads_bytes_rightly()


def _is_given_text(following: list[dis.Instruction]) -> bool:
    """Whether a function that was just loaded is called with a constant string as its first argument."""
    first = next((x for x in following if x.opname not in _BETWEEN), None)
    return first is not None and first.opname == "LOAD_CONST" and isinstance(first.argval, str)


def _names_a_constant(instructions: list[dis.Instruction]) -> bool:
    """Whether a call of `getattr` or the like, whose function is loaded first, is given a constant name."""
    depth = 0
    given: list[dis.Instruction] = []
    for instruction in instructions:
        effect = dis.stack_effect(instruction.opcode, instruction.arg, jump=False)
        if "JUMP" in instruction.opname or depth + effect < 1:
            return False
        depth += effect
        if instruction.opname.startswith("CALL"):
            if depth == 1:
                count = instruction.arg or 0
                if count == 3 and given and not given[-1].opname.startswith("LOAD_"):
                    return False
                named = given[1 - count] if count in (2, 3) and len(given) >= count - 1 else None
                return named is not None and named.opname == "LOAD_CONST" and isinstance(named.argval, str)
            given.clear()
        elif instruction.opname not in _BETWEEN:
            given.append(instruction)
    return False


_known: dict[
    int, CodeFacts
] = {}  # by id, which the facts keep alive: the hash of code goes through all instructions


def facts_of(code: types.CodeType) -> CodeFacts:
    """The facts about a code object; found once."""
    facts = _known.get(id(code))
    if facts is None or facts.code is not code:
        if len(_known) > 20_000:
            _known.clear()
        facts = _known[id(code)] = CodeFacts(code)
    return facts


def line_of(code: types.CodeType, name: str) -> int:
    """The first line of a function, or of one inside of it, that mentions a name; its own if none does."""
    try:
        line = code.co_firstlineno
        for instruction in dis.get_instructions(code):
            position = instruction.positions
            line = position.lineno if position is not None and position.lineno else line
            if instruction.argval == name or (
                isinstance(instruction.argval, tuple) and name in instruction.argval
            ):
                return line
    except Exception:
        return code.co_firstlineno
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found = line_of(constant, name)
            if found != constant.co_firstlineno or name in constant.co_names:
                return found
    return code.co_firstlineno
