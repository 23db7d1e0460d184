"""What a function's bytecode reads, calls and writes, as expressions of names, found once per code object.

One pass in the order of the instructions keeps a stack and the local variables, whose entries are expressions instead
of values; where ways through the code meet, an entry becomes "any of" both. Expressions are nested tuples:

    ("global", name)  ("free", name)  ("param", name)  ("const", value)  ("local", name, expression)
    ("attr", base, name)  ("item", base, key)  ("elements", base)  ("any", expressions)
    ("call", Call)  ("function", code, {free name: expression}, defaults)  ("fresh", elements)  ("unknown",)
"""

from __future__ import annotations

import dis
import sys
import types
from dataclasses import dataclass, field
from typing import Any

from purax.purity.instructions import Instruction, instructions_of

Expression = tuple
UNKNOWN: Expression = ("unknown",)
FRESH: Expression = ("fresh", ())
_MOST = 8  # alternatives of an expression
_NAMED = frozenset(("global", "free", "attr"))
_WITHOUT_VALUE = frozenset(("const", "unknown", "fresh", "null"))
_VERSION = sys.version_info[:2]
_METHOD_BIT = _VERSION >= (3, 12)  # LOAD_ATTR loads methods too
_NULL_AFTER = _VERSION >= (3, 13)  # the callable lies below the NULL or `self`
_END_FOR = 0 if _VERSION < (3, 12) else 2 if _VERSION < (3, 13) else 1  # what END_FOR pops
_SET_ATTRIBUTE = _VERSION >= (3, 13)  # SET_FUNCTION_ATTRIBUTE follows MAKE_FUNCTION


@dataclass(eq=False, repr=False, slots=True)
class Call:
    """A call: where it stands, what is called and with what; `spread` are the expressions after * and **."""

    offset: int
    line: int
    callee: Expression
    args: tuple[Expression, ...] = ()
    kwargs: tuple[tuple[str, Expression], ...] = ()
    spread: tuple[Expression, ...] = ()


@dataclass(eq=False, slots=True)
class Write:
    """An instruction that changes something: `kind` is "global", "nonlocal", "attribute", "item" or "in-place"."""

    offset: int
    line: int
    kind: str
    base: Expression
    name: str
    value: Expression = UNKNOWN


@dataclass(eq=False, slots=True)
class Use:
    """A value that an instruction reads: as a whole, or how is "iterate", or "subscript" for one of its items."""

    offset: int
    line: int
    value: Expression
    how: str = ""


@dataclass(eq=False, repr=False)
class Summary:
    """What the code of a function does.

    Attributes:
        uses: instructions that read named values, or parts of values.
        reads: the lines and expressions of values read as a whole, each once: operands, arguments of calls, results.
        calls: in order.
        writes: in order.
        returns: the expressions that are returned.
        variables: all expressions that each variable shared with inner functions is set to.
    """

    code: types.CodeType
    uses: list[Use] = field(default_factory=list)
    reads: list[tuple[int, Expression]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    returns: list[Expression] = field(default_factory=list)
    variables: dict[str, Expression] = field(default_factory=dict)


_summaries: dict[int, Summary] = {}  # by the id of the code, which a summary keeps


def summarize(code: types.CodeType) -> Summary:
    """The summary of a code object; made once."""
    found = _summaries.get(id(code))
    if found is None:
        if len(_summaries) > 10_000:
            _summaries.clear()
        found = _summaries[id(code)] = _Reader(code).read()
    return found


def either(a: Expression, b: Expression) -> Expression:
    """The expression for "`a` or `b`"."""
    if a is b or b is UNKNOWN and a[0] == "any":
        return a
    alternatives: list[Expression] = []
    for x in (a, b):
        for y in x[1] if x[0] == "any" else (x,):
            if not any(y is z or same_expression(y, z) for z in alternatives):
                alternatives.append(y)
    if len(alternatives) == 1:
        return alternatives[0]
    return ("any", tuple(alternatives[:_MOST]))


def same_expression(a: Expression, b: Expression) -> bool:
    """Whether two expressions name the same thing; False where that is not certain."""
    if a is b:
        return True
    if len(a) != len(b) or a[0] != b[0]:
        return False
    if a[0] in ("global", "free", "param"):
        return a[1] == b[1]
    if a[0] == "attr":
        return a[2] == b[2] and same_expression(a[1], b[1])
    if a[0] == "local":
        return a[1] == b[1] and same_expression(a[2], b[2])
    if a[0] == "const":
        return a[1] is b[1]
    return False


class _Reader:
    """Walks the instructions of one code object."""

    def __init__(self, code: types.CodeType):
        self.code = code
        self.summary = Summary(code)
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
        self.locals: dict[str, Expression] = {name: ("param", name) for name in code.co_varnames[:count]}
        self.stack: list[Expression] = []
        self.saved: dict[int, tuple[list[Expression], dict[str, Expression]]] = {}
        self.free = frozenset(code.co_freevars)
        self.cells = frozenset(code.co_cellvars)
        self.summary.variables = {name: self.locals[name] for name in self.cells if name in self.locals}
        self.names: tuple[str, ...] = ()
        self.read_before: set[int] = set()
        self.expressions: dict[tuple, Expression] = {}
        self.line = code.co_firstlineno
        self.offset = 0
        self.fall = True

    def read(self) -> Summary:
        handlers, saved = _HANDLERS, self.saved
        caught = dict(_handlers_of(self.code)) if self.code.co_exceptiontable else {}
        for instruction in instructions_of(self.code):
            offset = self.offset = instruction.offset
            if instruction.line is not None:
                self.line = instruction.line
            if offset in caught:  # reached from anywhere in the code before it
                self.stack = [UNKNOWN] * caught[offset]
            elif offset in saved:
                stack, variables = saved[offset]
                if self.fall:
                    self._merge(stack, variables)
                else:
                    self.stack, self.locals = list(stack), dict(variables)
            self.fall = True
            handler = handlers.get(instruction.opname)
            if handler is not None:
                handler(self, instruction)
            else:
                self._other(instruction)
        return self.summary

    # -- the stack

    def push(self, value: Expression) -> None:
        self.stack.append(value)

    def pop(self) -> Expression:
        return self.stack.pop() if self.stack else UNKNOWN

    def pops(self, count: int) -> list[Expression]:
        missing = count - len(self.stack)
        if missing > 0:
            self.stack[:0] = [UNKNOWN] * missing
        values = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return values

    def use(self, value: Expression, how: str = "") -> None:
        kind = value[0]
        if how or kind in _NAMED:
            self.summary.uses.append(Use(self.offset, self.line, value, how))
        if (
            kind in _WITHOUT_VALUE or how == "subscript"
        ):  # what a new container holds was read when it was made
            return
        if kind == "local":
            value = value[2]
            if value[0] in _WITHOUT_VALUE:
                return
        if id(value) not in self.read_before:
            self.read_before.add(id(value))
            self.summary.reads.append((self.line, value))

    def shared(self, *expression: Any) -> Expression:
        """An expression of names; the same one whenever it is met again."""
        key = (expression[0], *[x if type(x) is str else id(x) for x in expression[1:]])
        return self.expressions.setdefault(key, expression)

    def write(self, kind: str, base: Expression, name: str, value: Expression = UNKNOWN) -> None:
        self.summary.writes.append(Write(self.offset, self.line, kind, base, name, value))

    def _merge(self, stack: list[Expression], variables: dict[str, Expression]) -> None:
        if len(stack) == len(self.stack):
            self.stack = [a if a is b else either(a, b) for a, b in zip(stack, self.stack, strict=True)]
        for name, value in variables.items():
            own = self.locals.get(name)
            if own is None:
                self.locals[name] = value
            elif own is not value:
                self.locals[name] = either(value, own)

    def _save(self, target: int, stack: list[Expression]) -> None:
        if target <= self.offset:
            return
        found = self.saved.get(target)
        if found is None:
            self.saved[target] = (list(stack), dict(self.locals))
            return
        old, variables = found
        if len(old) == len(stack):
            old[:] = [a if a is b else either(a, b) for a, b in zip(old, stack, strict=True)]
        for name, value in self.locals.items():
            own = variables.get(name)
            if own is None:
                variables[name] = value
            elif own is not value:
                variables[name] = either(own, value)

    def _other(self, instruction: Instruction) -> None:
        """An instruction that no handler knows: its operands are used, its results unknown."""
        has_argument = instruction.opcode >= dis.HAVE_ARGUMENT
        effect = dis.stack_effect(instruction.opcode, instruction.arg if has_argument else None, jump=False)
        for value in self.stack[-2:]:
            self.use(value)
        for i in range(1, min(2, len(self.stack)) + 1):
            self.stack[-i] = UNKNOWN
        if effect < 0:
            self.pops(-effect)
        else:
            self.stack.extend([UNKNOWN] * effect)
        if instruction.opcode in dis.hasjrel:
            self._save(instruction.argval, self.stack)

    # -- variables

    def load_local(self, name: str) -> Expression:
        if name in self.free or name in self.cells:  # the cell, for a function made here (since Python 3.13)
            return self.load_cell(name)
        return self.shared("local", name, self.locals.get(name, UNKNOWN))

    def load_cell(self, name: str) -> Expression:
        if name in self.free:
            return self.shared("free", name)
        return ("local", name, self.summary.variables.get(name, UNKNOWN))

    def store(self, name: str, value: Expression) -> None:
        self.locals[name] = value[2] if value[0] == "local" else value

    def store_cell(self, name: str, value: Expression) -> None:
        if name in self.free:
            self.use(value)
            self.write("nonlocal", ("free", name), name, value)
        else:
            old = self.summary.variables.get(name)
            self.summary.variables[name] = value if old is None else either(old, value)

    # -- calls

    def call(self, callee: Expression, args: list[Expression], kwargs=(), spread=()) -> None:
        self.summary.calls.append(
            made := Call(self.offset, self.line, callee, tuple(args), tuple(kwargs), tuple(spread))
        )
        self.push(("call", made))


def _handlers_of(code: types.CodeType) -> list[tuple[int, int]]:
    """Where exception handlers begin, and how high the stack is there."""
    try:
        entries = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    except Exception:
        return []
    return [(entry.target, entry.depth + 1 + bool(entry.lasti)) for entry in entries]


# -- one function per instruction

_HANDLERS: dict[str, Any] = {}


def _on(*names: str):
    def register(function):
        for name in names:
            _HANDLERS[name] = function
        return function

    return register


@_on("RESUME", "NOP", "PRECALL", "CACHE", "EXTENDED_ARG", "MAKE_CELL", "COPY_FREE_VARS", "RETURN_GENERATOR",
     "SETUP_ANNOTATIONS", "TO_BOOL", "NOT_TAKEN", "ASYNC_GEN_WRAP", "LIST_TO_TUPLE")  # fmt: skip
def _nothing(self, instruction):
    pass


@_on("LOAD_CONST", "RETURN_CONST")
def _load_const(self, instruction):
    if instruction.opname == "RETURN_CONST":
        self.summary.returns.append(("const", instruction.argval))
        self.fall = False
    else:
        self.push(("const", instruction.argval))


@_on("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_AND_CLEAR")
def _load_fast(self, instruction):
    self.stack.append(self.load_local(instruction.argval))


@_on("LOAD_FAST_LOAD_FAST")
def _load_two(self, instruction):
    for name in instruction.argval:
        self.push(self.load_local(name))


@_on("STORE_FAST")
def _store_fast(self, instruction):
    self.store(instruction.argval, self.pop())


@_on("STORE_FAST_STORE_FAST")
def _store_two(self, instruction):
    for name in instruction.argval:
        self.store(name, self.pop())


@_on("STORE_FAST_LOAD_FAST")
def _store_and_load(self, instruction):
    first, second = instruction.argval
    self.store(first, self.pop())
    self.push(self.load_local(second))


@_on("DELETE_FAST")
def _delete_fast(self, instruction):
    self.locals.pop(instruction.argval, None)


@_on("LOAD_GLOBAL")
def _load_global(self, instruction):
    if instruction.arg & 1:
        self.push(("null",))
        self.push(self.shared("global", instruction.argval))
        if _NULL_AFTER:
            self.stack[-1], self.stack[-2] = self.stack[-2], self.stack[-1]
    else:
        self.push(self.shared("global", instruction.argval))


@_on("LOAD_NAME")
def _load_name(self, instruction):
    self.push(("global", instruction.argval))


@_on("STORE_NAME")
def _store_name(self, instruction):
    self.use(self.pop())


@_on("STORE_GLOBAL", "DELETE_GLOBAL")
def _store_global(self, instruction):
    value = UNKNOWN
    if instruction.opname == "STORE_GLOBAL":
        value = self.pop()
        self.use(value)
    self.write("global", ("global", instruction.argval), instruction.argval, value)


@_on("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_CLOSURE")
def _load_deref(self, instruction):
    self.push(self.load_cell(instruction.argval))


@_on("STORE_DEREF")
def _store_deref(self, instruction):
    self.store_cell(instruction.argval, self.pop())


@_on("DELETE_DEREF")
def _delete_deref(self, instruction):
    self.store_cell(instruction.argval, UNKNOWN)


@_on("LOAD_ATTR", "LOAD_METHOD")
def _load_attr(self, instruction):
    base = self.pop()
    value = self.shared("attr", base, instruction.argval)
    method = instruction.opname == "LOAD_METHOD" or (_METHOD_BIT and instruction.arg & 1)
    if not method:
        self.push(value)
    elif _NULL_AFTER:
        self.stack += [value, ("null",)]
    else:
        self.stack += [("null",), value]


@_on("LOAD_SUPER_ATTR")
def _load_super(self, instruction):
    _, cls, own = self.pops(3)
    value = ("attr", ("super", cls, own), instruction.argval)
    if instruction.arg & 1:
        self.stack += [value, ("null",)] if _NULL_AFTER else [("null",), value]
    else:
        self.push(value)


@_on("STORE_ATTR")
def _store_attr(self, instruction):
    value, base = self.pops(2)
    self.use(value)
    self.write("attribute", base, instruction.argval, value)


@_on("DELETE_ATTR")
def _delete_attr(self, instruction):
    self.write("attribute", self.pop(), instruction.argval)


@_on("BINARY_SUBSCR", "BINARY_SLICE")
def _subscript(self, instruction):
    if instruction.opname == "BINARY_SLICE":
        base, start, stop = self.pops(3)
        self.use(base)
        self.use(start)
        self.use(stop)
        self.push(("item", base, ("fresh", (start, stop))))  # as Python 3.11 builds the slice first
        return
    base, key = self.pops(2)
    self.use(key)
    self.use(base, "subscript")
    self.push(("item", base, key))


@_on("STORE_SUBSCR")
def _store_subscript(self, instruction):
    value, base, key = self.pops(3)
    self.use(value)
    self.use(key)
    self.write("item", base, _text(key), value)


@_on("STORE_SLICE")
def _store_slice(self, instruction):
    value, base, start, stop = self.pops(4)
    for x in (value, start, stop):
        self.use(x)
    self.write("item", base, ":")


@_on("DELETE_SUBSCR")
def _delete_subscript(self, instruction):
    base, key = self.pops(2)
    self.use(key)
    self.write("item", base, _text(key))


def _text(key: Expression) -> str:
    return repr(key[1]) if key[0] == "const" else "…"


@_on("BINARY_OP")
def _binary_op(self, instruction):
    left, right = self.pops(2)
    self.use(left)
    self.use(right)
    in_place = instruction.argval.endswith("=")
    if in_place and left[0] not in ("const", "unknown"):
        self.write("in-place", left, instruction.argval)
    # The result of `a += b` is `a` where a can be changed, and a new value otherwise.
    self.push(either(left, UNKNOWN) if in_place else ("fresh", (left, right)))


@_on("COMPARE_OP", "IS_OP", "CONTAINS_OP")
def _compare(self, instruction):
    left, right = self.pops(2)
    self.use(left)
    self.use(right)
    self.push(FRESH)


@_on("UNARY_NOT", "UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT", "CONVERT_VALUE", "FORMAT_SIMPLE")
def _unary(self, instruction):
    self.use(self.pop())
    self.push(FRESH)


@_on("FORMAT_VALUE")
def _format(self, instruction):
    for x in self.pops(2 if instruction.arg & 0x04 else 1):
        self.use(x)
    self.push(FRESH)


@_on("FORMAT_WITH_SPEC")
def _format_with(self, instruction):
    for x in self.pops(2):
        self.use(x)
    self.push(FRESH)


@_on("PUSH_NULL")
def _push_null(self, instruction):
    self.push(("null",))


@_on("LOAD_LOCALS", "LOAD_BUILD_CLASS", "LOAD_ASSERTION_ERROR")
def _push_unknown(self, instruction):
    self.push(FRESH)


@_on("KW_NAMES")
def _kw_names(self, instruction):
    self.names = instruction.argval


@_on("CALL", "CALL_KW")
def _call(self, instruction):
    names = self.names
    if instruction.opname == "CALL_KW":
        names = self.pop()[1]
    self.names = ()
    values = self.pops(instruction.arg)
    first, second = self.pops(2)
    if _NULL_AFTER:
        callee, own = first, second
    elif first[0] == "null":
        callee, own = second, first
    else:
        callee, own = first, second
    if own[0] != "null":
        values.insert(0, own)
    count = len(values) - len(names)
    self.call(callee, values[:count], zip(names, values[count:], strict=True))


@_on("CALL_FUNCTION_EX")
def _call_spread(self, instruction):
    kwargs = self.pop() if instruction.arg & 1 else None
    args = self.pop()
    if _NULL_AFTER:
        callee, _ = self.pops(2)
    else:
        _, callee = self.pops(2)
    self.call(callee, [], (), (args,) if kwargs is None else (args, kwargs))


@_on("CALL_INTRINSIC_1")
def _intrinsic(self, instruction):
    value = self.pop()
    self.use(value)
    self.push(("elements", value) if instruction.arg == 6 else UNKNOWN)


@_on("GET_ITER")
def _get_iter(self, instruction):
    value = self.pop()
    self.use(value, "iterate")
    self.push(("iterator", value))


@_on("FOR_ITER")
def _for_iter(self, instruction):
    iterator = self.stack[-1] if self.stack else UNKNOWN
    kept = [*self.stack, UNKNOWN] if _END_FOR else self.stack[:-1]
    self._save(instruction.argval, kept)
    if iterator[0] != "iterator":
        self.use(iterator, "iterate")
    self.push(("elements", iterator[1] if iterator[0] == "iterator" else iterator))


@_on("END_FOR")
def _end_for(self, instruction):
    self.pops(_END_FOR)


@_on("POP_TOP", "END_SEND", "POP_ITER")
def _pop_top(self, instruction):
    value = self.pop()
    if instruction.opname == "END_SEND":
        self.pop()
        self.push(value)


@_on("COPY")
def _copy(self, instruction):
    self.push(self.stack[-instruction.arg] if instruction.arg <= len(self.stack) else UNKNOWN)


@_on("SWAP")
def _swap(self, instruction):
    n = instruction.arg
    if n <= len(self.stack):
        self.stack[-1], self.stack[-n] = self.stack[-n], self.stack[-1]


@_on("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_SLICE")
def _build(self, instruction):
    values = self.pops(instruction.arg)
    for x in values:
        self.use(x)
    self.push(("fresh", tuple(values)))


@_on("BUILD_MAP")
def _build_map(self, instruction):
    values = self.pops(2 * instruction.arg)
    for x in values:
        self.use(x)
    self.push(("fresh", tuple(values[1::2])))


@_on("BUILD_CONST_KEY_MAP")
def _build_const_map(self, instruction):
    self.pop()
    values = self.pops(instruction.arg)
    for x in values:
        self.use(x)
    self.push(("fresh", tuple(values)))


@_on("LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE")
def _extend(self, instruction):
    value = self.pop()
    self.use(value, "iterate")
    _add_element(self, instruction.arg, ("elements", value))


@_on("LIST_APPEND", "SET_ADD")
def _append(self, instruction):
    value = self.pop()
    self.use(value)
    _add_element(self, instruction.arg, value)


@_on("MAP_ADD")
def _map_add(self, instruction):
    key, value = self.pops(2)
    self.use(key)
    self.use(value)
    _add_element(self, instruction.arg, value)


def _add_element(self, depth: int, value: Expression) -> None:
    if depth <= len(self.stack):
        old = self.stack[-depth]
        elements = old[1] if old[0] == "fresh" else ()
        self.stack[-depth] = ("fresh", (*elements, value)[:_MOST])


@_on("UNPACK_SEQUENCE", "UNPACK_EX")
def _unpack(self, instruction):
    value = self.pop()
    self.use(value, "iterate")
    if instruction.opname == "UNPACK_SEQUENCE":
        if value[0] == "fresh" and len(value[1]) == instruction.arg:
            self.stack.extend(reversed(value[1]))
        else:
            self.stack.extend(("item", value, ("const", i)) for i in reversed(range(instruction.arg)))
        return
    self.stack.extend([("elements", value)] * ((instruction.arg & 0xFF) + 1 + (instruction.arg >> 8)))


@_on("MAKE_FUNCTION")
def _make_function(self, instruction):
    code = self.pop()
    closure: dict[str, Expression] = {}
    defaults: Expression = FRESH
    if not _SET_ATTRIBUTE:
        if instruction.arg & 8:
            closure = _closure_of(code, self.pop())
        if instruction.arg & 4:
            self.pop()
        if instruction.arg & 2:
            self.pop()
        if instruction.arg & 1:
            defaults = self.pop()
    self.push(("function", code[1] if code[0] == "const" else None, closure, defaults, self.summary))


@_on("SET_FUNCTION_ATTRIBUTE")
def _set_attribute(self, instruction):
    value, function = self.pops(2)
    if function[0] == "function":
        if instruction.arg == 8:
            function = (*function[:2], _closure_of(("const", function[1]), value), *function[3:])
        elif instruction.arg == 1:
            function = (*function[:3], value, *function[4:])
    self.push(function)


def _closure_of(code: Expression, cells: Expression) -> dict[str, Expression]:
    names = code[1].co_freevars if code[0] == "const" and code[1] is not None else ()
    values = cells[1] if cells[0] == "fresh" else ()
    return dict(zip(names, values, strict=False))


@_on("RETURN_VALUE")
def _return(self, instruction):
    value = self.pop()
    self.use(value)
    self.summary.returns.append(value)
    self.fall = False


@_on("YIELD_VALUE")
def _yield(self, instruction):
    value = self.pop()
    self.use(value)
    self.summary.returns.append(("fresh", (value,)))
    self.push(UNKNOWN)


@_on("RAISE_VARARGS", "RERAISE")
def _raise(self, instruction):
    for x in self.pops(min(instruction.arg or 0, len(self.stack))):
        self.use(x)
    self.fall = False


@_on("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP")
def _jump(self, instruction):
    self._save(instruction.argval, self.stack)
    self.fall = False


@_on("POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_FORWARD_IF_NONE",
     "POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_FALSE",
     "POP_JUMP_BACKWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE",
     "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE")  # fmt: skip
def _conditional_jump(self, instruction):
    self.use(self.pop())
    self._save(instruction.argval, self.stack)


@_on("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP")
def _jump_or_pop(self, instruction):
    if self.stack:
        self.use(self.stack[-1])
    self._save(instruction.argval, self.stack)
    self.pop()


@_on("BEFORE_WITH")
def _before_with(self, instruction):
    manager = self.pop()
    self.use(manager)
    self.push(UNKNOWN)
    self.call(("attr", manager, "__enter__"), [])


@_on("WITH_EXCEPT_START", "PUSH_EXC_INFO")
def _exception_on_top(self, instruction):
    self.push(UNKNOWN)


@_on("POP_EXCEPT")
def _pop_except(self, instruction):
    self.pop()


@_on("CHECK_EXC_MATCH")
def _check_match(self, instruction):
    self.pop()
    self.push(FRESH)


@_on("IMPORT_NAME")
def _import_name(self, instruction):
    self.pops(2)
    self.push(("import", instruction.argval))


@_on("IMPORT_FROM")
def _import_from(self, instruction):
    module = self.stack[-1] if self.stack else UNKNOWN
    self.push(("attr", module, instruction.argval))
