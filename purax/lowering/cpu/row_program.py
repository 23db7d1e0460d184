"""A list of operations on rows, which a native kernel runs: how equations become one, and the primitive that calls it.

The kernel (`purax/native/row_program.cc`) reads and writes slots: operands, results, scratch memory and constants, each
a matrix, one number per row, one row for all, or a scalar. An operation is written once for all equations that do the
same, what no result needs is left out, and scratch memory is used again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from purax.core.jaxpr import Atom, DropVar, JaxprEqn, Literal, Var
from purax.core.primitive import Primitive
from purax.primitives.elementwise.arithmetic import integer_pow_p, square_p
from purax.xla import native

# In the order of `RowOp` in purax/native/row_program.h.
OPERATIONS = (
    "load", "store_bool", "copy", "neg", "abs", "sqrt", "rsqrt", "exp", "tanh", "logistic", "log", "not",
    "add", "sub", "mul", "div", "max", "min", "eq", "ne", "lt", "le", "gt", "ge", "and", "or",
    "select", "row_sum", "row_max", "column_sum",
)  # fmt: skip
ELEMENTWISE = OPERATIONS[OPERATIONS.index("neg") : OPERATIONS.index("row_sum")]
_CODES = {name: i for i, name in enumerate(OPERATIONS)}
_OPERAND, _RESULT, _SCRATCH, _CONSTANT = range(4)
_MATRIX, _PER_ROW, _ONE_ROW, _SCALAR = range(4)
FLOAT, BOOL = np.dtype(np.float32), np.dtype(bool)


class RowProgram(Primitive):
    """Runs operations on the rows of its operands; it exists in lowering only."""

    name = "row_program"
    multiple_results = True

    def infer(self, *avals, results, aliases, rows, width, scratch, slots, code):
        return list(results)

    def lower(self, builder, *operands, results, aliases, rows, width, scratch, slots, code):
        return native.call(
            builder,
            "row_program",
            operands,
            results,
            aliases=aliases,
            rows=rows,
            width=width,
            scratch=scratch,
            slots=slots,
            code=code,
        )


row_program_p = RowProgram()


class Pattern(NamedTuple):
    """What row r of a matrix reads of an array: its row (r // divisor) % modulus, whole if `wide`, or one number."""

    wide: bool
    divisor: int
    modulus: int


class Space(NamedTuple):
    """What a cluster works on; `width` is 0 as long as there are no rows, and `rows` is then the number of elements."""

    rows: int
    width: int


def is_read_inside(source: Var, pattern: Pattern | None, space: Space) -> bool:
    """Whether a cluster in `space` can read what it computes itself by this pattern."""
    return pattern is None or (
        not pattern.wide and pattern.divisor == 1 and pattern.modulus == space.rows == source.aval.size
    )


def reduction_of(eqn: JaxprEqn) -> str | None:
    """The operation that reduces a matrix, if the equation is one."""
    operation, last = eqn.primitive.row_operation, eqn.invars[0].aval.ndim - 1 if eqn.invars else -1
    if operation not in ("row_sum", "row_max") or last < 1:
        return None
    axes = tuple(sorted(eqn.params["axes"]))
    if axes == (last,):
        return operation
    return "column_sum" if operation == "row_sum" and axes == tuple(range(last)) else None


def power_of(eqn: JaxprEqn) -> int | None:
    """The integer power that an equation takes, if it takes one."""
    if eqn.primitive is square_p:
        return 2
    return eqn.params["y"] if eqn.primitive is integer_pow_p else None


def bundle(eqns: Sequence[JaxprEqn]) -> JaxprEqn:
    """One call for several of the same program, such as the updates of the weights of a layer."""
    if len(eqns) == 1:
        return eqns[0]
    uses = Counter(atom for eqn in eqns for atom in eqn.invars)
    aliases = [
        (result + n * len(eqn.outvars), operand + n * len(eqn.invars))
        for n, eqn in enumerate(eqns)
        for result, operand in eqn.params["aliases"]
        if uses[eqn.invars[operand]] == 1
    ]
    params = {
        **eqns[0].params,
        "aliases": tuple(aliases),
        "results": tuple(aval for eqn in eqns for aval in eqn.params["results"]),
        "rows": tuple(rows for eqn in eqns for rows in eqn.params["rows"]),
    }
    return eqns[0].replace(
        invars=[atom for eqn in eqns for atom in eqn.invars],
        outvars=[v for eqn in eqns for v in eqn.outvars],
        params=params,
    )


class Writer:
    """Writes one program.

    Args:
        space: what it works on.
        resolve: for an operand of an equation the array that it is a part or a repetition of, and the pattern.
        is_given: whether a variable is a result.
        taken: for variables that may be overwritten the result that shall lie in their place.
    """

    def __init__(
        self,
        space: Space,
        resolve: Callable[[Atom], tuple[Atom, Pattern | None]],
        is_given: Callable[[Var], bool],
        taken: Mapping[Var, Any],
    ):
        self.space = space
        self.rows, self.width = space if space.width else (space.rows, 1)
        self.resolve = resolve
        self.is_given = is_given
        self.taken = taken
        self.slots: list[tuple[int, int, int]] = []
        self.code: list[list[int]] = []
        self.known: dict[Any, int] = {}  # slots by what is in them
        self.values: dict[Var, int] = {}  # slots of variables
        self.operands: list[Var] = []
        self.results: list[Var] = []

    def equation(self, eqns: Iterable[JaxprEqn]) -> JaxprEqn | None:
        """The call that stands for equations; None if nothing of it is used."""
        source = None
        for eqn in eqns:
            source = source or eqn.source
            self._write(eqn)
        if not self.results:
            return None  # dead code
        self._remove_dead_code()
        scratch = self._place_scratch()
        params = {
            "results": tuple(v.aval for v in self.results),
            "aliases": tuple(self._aliases()),
            "rows": (self.rows,),
            "width": self.width,
            "scratch": scratch,
            "slots": tuple(number for slot in self.slots for number in slot),
            "code": tuple(number for instruction in self.code for number in instruction),
        }
        return JaxprEqn(self.operands, self.results, row_program_p, params, source)

    def _aliases(self) -> list[tuple[int, int]]:
        """Pairs of a result and an argument of the program whose place it takes, and which is read no more then."""
        pairs = []
        for place, operand in enumerate(self.operands):
            out = self.taken.get(operand)
            if self.width > 1 or out not in self.results:
                continue
            result = self.results.index(out)
            read = written = -1
            for i, (code, slot, *operands) in enumerate(self.code):
                if code == _CODES["load"]:
                    read = i if operands[0] == place else read
                elif any(n >= 0 and self.slots[n][:2] == (_OPERAND, place) for n in operands):
                    read = i
                if self.slots[slot][:2] == (_RESULT, result):
                    written = i
            if read <= written:
                pairs.append((result, place))
        return pairs

    def _slot(self, source: int, index: int, extent: int) -> int:
        self.slots.append((source, index, extent))
        return len(self.slots) - 1

    def _extent(self, size: int) -> int:
        if self.width == 1:
            return _PER_ROW
        return _MATRIX if size == self.rows * self.width else _PER_ROW

    def _emit(self, name: str, out_size: int, *slots: int) -> int:
        """The slot of the result of an operation, which is done once."""
        key = (name, out_size, slots)
        if key not in self.known:
            out = self._slot(_SCRATCH, -1, self._extent(out_size))
            self.code.append([_CODES[name], out, *slots, *(-1,) * (3 - len(slots))])
            self.known[key] = out
        return self.known[key]

    def _constant(self, value: Any) -> int:
        bits = int(np.float32(value).view(np.int32))
        if ("constant", bits) not in self.known:
            self.known["constant", bits] = self._slot(_CONSTANT, bits, _SCALAR)
        return self.known["constant", bits]

    def _read(self, atom: Atom) -> int:
        source, pattern = self.resolve(atom)
        if type(source) is Literal:
            return self._constant(np.asarray(source.val))
        if source in self.values and is_read_inside(source, pattern, self.space):
            return self.values[source]
        assert type(source) is Var
        size, is_bool = source.aval.size, source.aval.dtype == BOOL
        if pattern is None:
            pattern = (
                Pattern(False, 1, 1) if size == 1 else Pattern(self._extent(size) == _MATRIX, 1, self.rows)
            )
        key = ("operand", source, pattern)
        if key in self.known:
            return self.known[key]
        if source not in self.operands:
            self.operands.append(source)
        place = self.operands.index(source)
        whole = pattern.divisor == 1 and pattern.modulus == self.rows
        if not is_bool and (whole or pattern.modulus == 1):
            extent = (
                (_MATRIX if pattern.wide else _PER_ROW) if whole else (_ONE_ROW if pattern.wide else _SCALAR)
            )
            self.known[key] = self._slot(_OPERAND, place, extent)
        else:
            out = self._slot(_SCRATCH, -1, _MATRIX if pattern.wide else _PER_ROW)
            self.code.append([_CODES["load"], out, place, pattern.divisor, pattern.modulus])
            self.known[key] = out
        return self.known[key]

    def _write(self, eqn: JaxprEqn) -> None:
        out, operation, power = eqn.outvars[0], eqn.primitive.row_operation, power_of(eqn)
        if type(out) is DropVar:
            return
        size, reduced = out.aval.size, reduction_of(eqn)
        slots = [self._read(atom) for atom in eqn.invars]
        if reduced == "column_sum":
            if self.is_given(out):
                result = self._slot(_RESULT, len(self.results), _ONE_ROW)
                self.results.append(out)
                self.code.append([_CODES[reduced], result, *slots, -1, -1])
            return
        if reduced is not None:
            slot = self._emit(reduced, size, *slots)
        elif power is not None:
            slot = self._power(power, size, slots[0])
        else:
            assert operation is not None
            if operation in ("add", "mul"):
                slots.sort()
            slot = self._emit(operation, size, *slots)
        self.values[out] = slot
        if self.is_given(out):
            self._give(out, slot)

    def _power(self, y: int, size: int, x: int) -> int:
        if y == -1:
            return self._emit("div", size, self._constant(1), x)
        squared = self._emit("mul", size, x, x)
        return squared if y == 2 else self._emit("mul", size, x if y == 3 else squared, squared)

    def _give(self, out: Var, slot: int) -> None:
        """Makes the value in a slot a result."""
        source, _, extent = self.slots[slot]
        number = len(self.results)
        self.results.append(out)
        if out.aval.dtype == BOOL:
            self.code.append([_CODES["store_bool"], self._slot(_RESULT, number, extent), slot, -1, -1])
        elif source == _SCRATCH:
            self.slots[slot] = (_RESULT, number, extent)
        else:
            result = self._slot(_RESULT, number, extent)
            self.code.append([_CODES["copy"], result, slot, -1, -1])

    def _remove_dead_code(self) -> None:
        """Removes what no result needs, and operands that only that would read."""
        needed: set[int] = set()
        kept = []
        for instruction in reversed(self.code):
            code, out, *operands = instruction
            if out in needed or self.slots[out][0] == _RESULT:
                kept.append(instruction)
                needed.update(() if code == _CODES["load"] else operands)
        self.code = kept[::-1]
        loads = [instruction for instruction in self.code if instruction[0] == _CODES["load"]]
        read = {each[2] for each in loads} | {
            self.slots[n][1] for n in needed if n >= 0 and self.slots[n][0] == _OPERAND
        }
        place = {old: new for new, old in enumerate(sorted(read))}
        self.operands = [self.operands[old] for old in sorted(read)]
        for each in loads:
            each[2] = place[each[2]]
        self.slots = [
            (source, place.get(index, 0) if source == _OPERAND else index, extent)
            for source, index, extent in self.slots
        ]

    def _place_scratch(self) -> int:
        """Gives scratch memory to the values between, which take over that of values which are read no more."""
        last: dict[int, int] = {}
        for i, (code, _, *operands) in enumerate(self.code):
            for slot in () if code == _CODES["load"] else operands:
                if slot >= 0 and self.slots[slot][0] == _SCRATCH:
                    last[slot] = i
        free: list[int] = []
        count = 0
        for i, (code, out, *operands) in enumerate(self.code):
            for slot in () if code == _CODES["load"] else set(operands):
                # Numbers per row are read again and again while a row is written.
                if slot >= 0 and last.get(slot) == i and self.slots[slot][2] == self.slots[out][2]:
                    free.append(self.slots[slot][1])
                    last[slot] = -1
            source, _, extent = self.slots[out]
            if source == _SCRATCH:
                if not free:
                    free.append(count)
                    count += 1
                self.slots[out] = (_SCRATCH, free.pop(), extent)
            for slot in () if code == _CODES["load"] else set(operands):
                if slot >= 0 and last.get(slot) == i:
                    free.append(self.slots[slot][1])
            if source == _SCRATCH and out not in last:
                free.append(self.slots[out][1])
        return count
