"""Python -> jaxpr: records what a function does instead of doing it.

Under staging every operation is recorded, also on constants, so nothing large is computed while tracing. Arrays and
outer tracers that the function captures become constants of the jaxpr: inputs that are not arguments. Python and
NumPy scalars are written into the program as literals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.config import config
from purax.core import dtypes, source
from purax.core.array import Array
from purax.core.avals import ShapedArray, aval_of, refuse_mask
from purax.core.dimensions import SymbolicDimension
from purax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, counter
from purax.core.jaxpr_check import check_jaxpr
from purax.core.leaks import check_leaks
from purax.core.primitive import LinearOperand, inferred, native
from purax.core.trace import Trace, Tracer, check_usable, current
from purax.errors import shown
from purax.interpreters.simplify import tidy
from purax.references import cells
from purax.tree.registry import keystr, tree_flatten_with_path
from purax.xla.array import DeviceArray, constant, from_numpy, is_constant


class StagedTracer(Tracer):
    """A value of the program being recorded."""

    __slots__ = ("variable",)

    def __init__(self, trace: StagingTrace, var: Var):
        self.owner = trace
        self.variable = var
        self.aval = var.aval

    def describe(self) -> str:
        trace: Any = self.owner
        if self.variable in trace.arguments:
            name = trace.arguments[self.variable]
            return f"{self.aval.str_short()}, {name} of `{trace.function}`"
        made_by = trace.makers().get(self.variable)
        where = f" at {made_by.source}" if made_by is not None and made_by.source is not None else ""
        what = f", the result of `{made_by.primitive.name}`{where}" if made_by is not None else ""
        return f"{self.aval.str_short()}{what} (in `{trace.function}`)"


class StagingTrace(Trace):
    """Records equations."""

    __slots__ = (
        "_made",
        "_makers",
        "arguments",
        "captured",
        "constants",
        "equations",
        "function",
        "holds_derivative",
    )
    name = "jit"

    def __init__(self, parent: Trace, function: str):
        super().__init__(parent)
        self.function = function
        self.equations: list[JaxprEqn] = []
        self.constants: dict[int, tuple[Var, Any]] = {}
        self.arguments: dict[Var, str] = {}
        self.captured: list[CapturedCell] = []
        self.holds_derivative = False
        self._makers: dict[Var, JaxprEqn] = {}
        self._made = 0

    def makers(self) -> dict[Var, JaxprEqn]:
        """For each variable the equation that makes it; looks through the equations added since the last time."""
        for eqn in self.equations[self._made :]:
            for var in eqn.outvars:
                self._makers[var] = eqn
        self._made = len(self.equations)
        return self._makers

    def forget(self, count: int) -> None:
        """Forgets all equations but the first `count`."""
        del self.equations[count:]
        self._makers.clear()
        self._made = 0

    def process(self, primitive, operands, params):
        if native is not None:  # the same, for operations with one result
            result = native.record_operation(self, primitive, operands, params)
            if result is not None:
                return result
        if primitive.runs_itself:
            operands, params = primitive.stage(operands, params)
        atoms = [
            x.variable if type(x) is StagedTracer and x.owner is self else self.atom(x) for x in operands
        ]
        inferred = primitive.infer_checked(tuple([atom.aval for atom in atoms]), params)
        location = source.user_location()
        if primitive.multiple_results:
            outvars = [Var(aval) for aval in inferred]
            self.equations.append(JaxprEqn(atoms, outvars, primitive, params, location, source.names.scope))
            return [StagedTracer(self, var) for var in outvars]
        var = Var(inferred)
        self.equations.append(JaxprEqn(atoms, [var], primitive, params, location, source.names.scope))
        return StagedTracer(self, var)

    def atom(self, x: Any) -> Var | Literal:
        """What stands for `x` in the program: a variable of an own tracer or a captured array, or a literal."""
        if isinstance(x, Tracer):
            if x.owner is self:
                return x.variable  # type: ignore[attr-defined]
            check_usable(x, self)
        elif isinstance(x, DeviceArray):
            if is_constant(x):
                return Literal(x.host_value(), x.aval)
        else:
            if type(x) is LinearOperand:
                raise x.misused()
            if type(x) is SymbolicDimension:
                return self.atom(x.__jax_array__())
            if not isinstance(x, np.ndarray) or x.ndim == 0:
                return Literal(x, aval_of(x))
            x = from_numpy(x.copy())
        entry = self.constants.get(id(x))
        if entry is None:
            entry = self.constants[id(x)] = (Var(x.aval), x)
        return entry[0]

    def capture(self, cell: Any, kind: cells.Kind) -> None:
        """Lets this program work on a cell from outside: what it holds becomes further arguments and results."""
        held = [self.argument(aval_of(x), "the contents of a reference") for x in kind.contents(cell)]
        self.captured.append(CapturedCell(cell, kind, held))
        kind.update(cell, kind.structure(cell), held)
        kind.settle(cell, self)

    def argument(self, aval: ShapedArray, name: str) -> StagedTracer:
        var = Var(aval)
        self.arguments[var] = name
        return StagedTracer(self, var)

    def finish(self, arguments: Sequence[StagedTracer], results: Sequence[Any]) -> ClosedJaxpr:
        """The recorded program; the tracers of this trace cannot be used afterwards."""
        outvars = [self.atom(x) for x in results]
        constvars = [var for var, _ in self.constants.values()]
        jaxpr = Jaxpr(constvars, [x.variable for x in arguments], outvars, self.equations, name=self.function)
        if self.holds_derivative:
            jaxpr = tidy(jaxpr)
        closed = ClosedJaxpr(jaxpr, [value for _, value in self.constants.values()])
        if config.check_jaxprs:
            check_jaxpr(closed)
        return closed


if native is not None:
    native.set_staging(
        *(StagingTrace, StagedTracer, Var, JaxprEqn, source.Location, counter, inferred),
        *(source.names, source.code_is_internal),
    )
    source.on_exclude.append(native.forget_codes)
    source.user_location = native.user_location  # the same, in a tenth of the time


class CapturedCell:
    """A cell that a program took over from outside.

    Attributes:
        cell: the cell.
        before: its home, structure and contents, as they were.
        arguments: what stands for its contents in the program.
        structure: what it was in the end.
        count: how many arrays it held in the end.
    """

    def __init__(self, cell: Any, kind: cells.Kind, arguments: list[StagedTracer]):
        self.cell, self.kind, self.arguments = cell, kind, arguments
        self.before = (kind.home(cell), kind.structure(cell), kind.contents(cell))

    def finish(self) -> list[Any]:
        """Gives the cell back; returns what it held in the end."""
        results = self.kind.contents(self.cell)
        self.structure, self.count = self.kind.structure(self.cell), len(results)
        home, structure, contents = self.before
        self.kind.update(self.cell, structure, contents)
        self.kind.settle(self.cell, home)
        return results


def stage(
    function: Callable[..., Sequence[Any]],
    avals: Sequence[ShapedArray],
    name: str,
    argument_names: Sequence[str] | None = None,
    captured: list[CapturedCell] | None = None,
) -> ClosedJaxpr:
    """Records `function`, which takes and returns flat lists of arrays.

    Args:
        function: called once, with tracers of types `avals`.
        avals: the types of the arguments.
        name: of the program, for messages.
        argument_names: how messages call the arguments.
        captured: gets the cells from outside that the function used; their contents are the last arguments and the
            last results of the program. Without it such a function raises `CapturedCells`.

    Returns:
        The program. Its constants are captured arrays, or tracers of enclosing transformations.
    """
    outer = current.trace
    trace = StagingTrace(outer, name)
    names = argument_names or [f"argument {i}" for i in range(len(avals))]
    arguments = [trace.argument(aval, text) for aval, text in zip(avals, names, strict=True)]
    current.trace = trace
    try:
        results = function(*arguments)
        if trace.captured:
            arguments, results = [*arguments], [*results]
            for each in trace.captured:
                arguments.extend(each.arguments)
                results.extend(each.finish())
            if captured is None:
                raise cells.CapturedCells([each.cell for each in trace.captured], name)
            captured.extend(trace.captured)
            trace.captured = []
        closed = trace.finish(arguments, results)
    finally:
        current.trace = outer
        trace.alive = False
        for each in trace.captured:
            each.finish()
    if config.check_tracer_leaks:
        del arguments, results
        check_leaks([trace], f"`{name}`")
    return closed


def checked_results(leaves: list[Any], results: Any, name: str) -> list[Any]:
    """The leaves of what a transformed function returned, each checked to be an array or a number.

    Here NumPy's values enter a program: they become arrays of the width that arrays have.
    """
    for y in leaves:
        if not isinstance(y, Array):
            break
    else:
        return leaves
    if any(type(y) is SymbolicDimension for y in leaves):
        leaves = [y.__jax_array__() if type(y) is SymbolicDimension else y for y in leaves]
    if all([isinstance(y, _RESULTS) for y in leaves]):
        return [entered(y) if isinstance(y, (np.ndarray, np.generic)) else y for y in leaves]
    for path, y in tree_flatten_with_path(results)[0]:
        if not isinstance(y, _RESULTS):
            raise source.located(
                TypeError,
                f"`{name}` must return arrays, numbers or containers of them, but its result{keystr(path)} "
                f"is {shown(y)} of type {type(y).__name__}. Return it from outside of the transformed function.",
            )
    return leaves


def entered(x: Any) -> DeviceArray:
    """A value of NumPy as a program takes it: its own copy, of the width that arrays have; scalars are literals."""
    refuse_mask(x)
    dtype = dtypes.canonicalize_dtype(x.dtype)
    is_number = x.ndim == 0 and dtype != dtypes.float0
    return constant(x[()], dtype) if is_number else from_numpy(np.array(x, dtype))


_RESULTS = (Array, np.ndarray, np.generic, bool, int, float, complex)
