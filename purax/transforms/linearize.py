"""Linearization: runs a function and records its derivative at that point as a linear program.

    linearize(f)(x) = f(x), (dx -> f'(x) dx)

`LinearizeTrace` applies each primitive's `jvp` rule with concrete primals and recorded tangents: in the rule, what
does not involve a tangent is computed, and what does is put on the tape, where all else appears as constants. So the
tape holds only linear operations, ready to be transposed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.config import config
from purax.core import source
from purax.core.avals import Zero, aval_of, tangent_aval
from purax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, eval_jaxpr
from purax.core.leaks import check_leaks
from purax.core.trace import Trace, Tracer, current
from purax.ops.broadcasting import broadcast_in_dim_p, zeros
from purax.transforms.staging import StagingTrace
from purax.xla.array import is_constant


class LinearTracer(Tracer):
    """A tangent: a variable on the tape."""

    __slots__ = ("variable",)

    def __init__(self, trace: TapeTrace, var: Var):
        self.owner = trace
        self.variable = var
        self.aval = var.aval


class TapeTrace(Trace):
    """Records the operations on tangents; all others belong to the parent."""

    __slots__ = ("equations", "keeps_source")
    name = "linearize"
    passes_on = True

    def __init__(self, parent: Trace):
        super().__init__(parent)
        self.equations: list[JaxprEqn] = []
        self.keeps_source = isinstance(parent, StagingTrace) or config.debug_nans or config.debug_infs

    def process(self, primitive, operands, params):
        for x in operands:
            if type(x) is LinearTracer and x.owner is self:
                break
        else:
            current.trace = self.parent
            try:
                return self.parent.process(primitive, operands, params)
            finally:
                current.trace = self
        if primitive.opens_on_tape:
            return primitive.run(*operands, **params)
        if primitive.runs_itself:
            depends = primitive.depends(
                [type(x) is LinearTracer and x.owner is self for x in operands], **params
            )
            if depends is not None and not all(depends):
                return self.compute_some(primitive, operands, params, depends)
        return self.record(primitive, operands, params)

    def compute_some(self, primitive, operands, params, depends: Sequence[bool]) -> list[Any]:
        """Records an operation with results that no tangent has a part in, and computes these."""
        anything = tuple(
            [zeros(x.aval) if type(x) is LinearTracer and x.owner is self else x for x in operands]
        )
        current.trace = self.parent
        try:
            known = self.parent.process(primitive, anything, params)
        finally:
            current.trace = self
        recorded = self.record(primitive, operands, params)
        return [tangent if moves else y for tangent, y, moves in zip(recorded, known, depends, strict=True)]

    def forget(self, count: int) -> None:
        """Takes all operations but the first `count` off the tape."""
        del self.equations[count:]

    def record(self, primitive, operands, params):
        """Puts an operation on the tape."""
        atoms = [
            x.variable if type(x) is LinearTracer and x.owner is self else Literal(x, aval_of(x))
            for x in operands
        ]
        inferred = primitive.infer_checked(tuple([atom.aval for atom in atoms]), params)
        location = source.user_location() if self.keeps_source or primitive.runs_itself else None
        if primitive.multiple_results:
            outvars = [Var(aval) for aval in inferred]
            self.equations.append(JaxprEqn(atoms, outvars, primitive, params, location))
            return [LinearTracer(self, var) for var in outvars]
        var = Var(inferred)
        self.equations.append(JaxprEqn(atoms, [var], primitive, params, location))
        return LinearTracer(self, var)


class LinearizeTracer(Tracer):
    """A value and its tangent on the tape."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: LinearizeTrace, primal: Any, tangent: Any):
        self.owner = trace
        self.primal = primal
        self.tangent = tangent
        self.aval = aval_of(primal)

    def concrete_or_none(self):
        primal = self.primal
        return primal.concrete_or_none() if isinstance(primal, Tracer) else primal


class LinearizeTrace(Trace):
    """Applies `linearize` rules, which are the `jvp` rules unless a primitive has a program inside."""

    __slots__ = ("tape",)
    name = "grad"
    passes_on = True

    def __init__(self, parent: Trace):
        super().__init__(parent)
        self.tape = TapeTrace(parent)

    def process(self, primitive, operands, params):
        primals, tangents = [], []
        moves = False
        for x in operands:
            if type(x) is LinearizeTracer and x.owner is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
                moves = moves or type(x.tangent) is not Zero
            else:
                primals.append(x)
                tangents.append(Zero.like(x))
        if not moves:
            current.trace = self.parent
            try:
                return self.parent.process(primitive, tuple(primals), params)
            finally:
                current.trace = self
        current.trace = self.tape
        try:
            out, tangent = primitive.linearize(primals, tangents, **params)
        finally:
            current.trace = self
        if primitive.multiple_results:
            return [
                LinearizeTracer(self, y, self._on_tape(dy, y)) for y, dy in zip(out, tangent, strict=True)
            ]
        return LinearizeTracer(self, out, tangent)

    def _on_tape(self, tangent: Any, value: Any) -> Any:
        """A tangent that a rule returned; one that does not depend on tangents can only be zero."""
        if type(tangent) is Zero or (type(tangent) is LinearTracer and tangent.owner is self.tape):
            return tangent
        return Zero.like(value)


class Tape:
    """A linear program recorded at a point: tangents of arguments in, tangents of results out.

    Attributes:
        invars: the tangents of the arguments; None where an argument has no tangent.
        equations: linear operations; what they take besides tangents stands in `Literal`s.
        outvars: the tangents of the results, variables or `Zero`.
    """

    __slots__ = ("equations", "invars", "outvars")

    def __init__(self, invars: list[Var | None], equations: list[JaxprEqn], outvars: list[Var | Zero]):
        self.invars = invars
        self.equations = equations
        self.outvars = outvars

    def __call__(self, tangents: Sequence[Any]) -> list[Any]:
        """Pushes tangents of the arguments forward."""
        values: dict[Var, Any] = {v: t for v, t in zip(self.invars, tangents, strict=True) if v is not None}
        for eqn in self.equations:
            operands = tuple([values[v] if type(v) is Var else v.val for v in eqn.invars])
            result = current.trace.process(eqn.primitive, operands, eqn.params)
            if eqn.primitive.multiple_results:
                values.update(zip(eqn.outvars, result, strict=True))
            else:
                values[eqn.outvars[0]] = result
        return [v if type(v) is Zero else values[v] for v in self.outvars]

    @staticmethod
    def with_residuals(template: ClosedJaxpr, residuals: Sequence[Any], invars, outvars) -> Tape:
        """The tape that `to_jaxpr` made `template` of, at other values of the residuals."""
        jaxpr = template.jaxpr
        known = dict(zip(jaxpr.invars[: len(residuals)], residuals, strict=True))
        equations = [
            eqn.replace(invars=[Literal(known[v], v.aval) if v in known else v for v in eqn.invars])
            for eqn in jaxpr.eqns
        ]
        return Tape(list(invars), equations, list(outvars))

    def instantiate(self, force: Sequence[bool]) -> None:
        """Makes the zero tangents of some results explicit."""
        for i, (v, forced) in enumerate(zip(self.outvars, force, strict=True)):
            if forced and type(v) is Zero:
                var = Var(v.aval)
                params = {"shape": v.aval.shape, "broadcast_dimensions": ()}
                zero = np.zeros((), v.aval.dtype)
                self.equations.append(
                    JaxprEqn([Literal(zero, aval_of(zero))], [var], broadcast_in_dim_p, params)
                )
                self.outvars[i] = var

    def to_jaxpr(self, name: str) -> tuple[ClosedJaxpr, list[Any]]:
        """The tape as a program (residuals, tangents) -> non-zero tangents, and the values of the residuals.

        Residuals are the arrays among the constants of the tape; each appears once. Scalars stay literals.
        """
        residuals: dict[Any, tuple[Var, Any]] = {}

        def atom(v):
            if type(v) is Var:
                return v
            value = v.val
            if is_constant(value):
                return Literal(value.host_value(), v.aval)
            if (
                not isinstance(value, (Tracer, np.ndarray))
                and aval_of(value).ndim == 0
                and not hasattr(value, "aval")
            ):
                return v
            if isinstance(value, np.ndarray) and value.ndim == 0:
                return v
            key = getattr(value, "variable", None) or id(value)
            if key not in residuals:
                residuals[key] = (Var(v.aval), value)
            return residuals[key][0]

        eqns = [eqn.replace(invars=[atom(v) for v in eqn.invars]) for eqn in self.equations]
        tangents = [v for v in self.invars if v is not None]
        outvars = [v for v in self.outvars if type(v) is not Zero]
        jaxpr = Jaxpr([], [*(v for v, _ in residuals.values()), *tangents], outvars, eqns, name)
        return ClosedJaxpr(jaxpr), [value for _, value in residuals.values()]


def linearize_flat(
    function: Callable[..., Sequence[Any]], primals: Sequence[Any], moving: Sequence[bool] | None = None
) -> tuple[list[Any], Tape]:
    """Runs `function`, on flat lists, and records its derivative with respect to the moving arguments."""
    outer = current.trace
    trace = LinearizeTrace(outer)
    tape = trace.tape
    invars: list[Var | None] = []
    arguments = []
    for position, x in enumerate(primals):
        if moving is None or moving[position]:
            var = Var(tangent_aval(aval_of(x)))
            invars.append(var)
            arguments.append(LinearizeTracer(trace, x, LinearTracer(tape, var)))
        else:
            invars.append(None)
            arguments.append(x)
    current.trace = trace
    try:
        results = function(*arguments)
    finally:
        current.trace = outer
        trace.alive = tape.alive = False
    out: list[Any] = []
    outvars: list[Var | Zero] = []
    for y in results:
        if type(y) is LinearizeTracer and y.owner is trace:
            out.append(y.primal)
            outvars.append(y.tangent if type(y.tangent) is Zero else y.tangent.variable)
        else:
            out.append(y)
            outvars.append(Zero.like(y))
    if config.check_tracer_leaks:
        arguments.clear()
        x = y = results = None
        check_leaks([trace, tape], "a function under differentiation")
    return out, Tape(invars, tape.equations, outvars)


def linearize_jaxpr(
    closed: ClosedJaxpr, moving: Sequence[bool], force: Sequence[bool] | None = None
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], int]:
    """Splits the derivative of a program into its primal and its linear part.

    Args:
        closed: a program without constants.
        moving: which arguments have a tangent.
        force: which results get a tangent even if it is zero.

    Returns:
        The primal program: arguments -> (results, residuals); the linear program: (residuals, tangents of the moving
        arguments) -> non-zero tangents of results; which results have a tangent; the number of residuals.
    """
    key = ("linearize", tuple(moving), None if force is None else tuple(force))
    if key not in closed.derived:
        trace = StagingTrace(current.trace, closed.jaxpr.name)
        arguments = [trace.argument(aval, f"argument {i}") for i, aval in enumerate(closed.in_avals)]
        outer = current.trace
        current.trace = trace
        try:
            out, tape = linearize_flat(
                lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs), arguments, moving
            )
            if force is not None:
                tape.instantiate(force)
            linear, residuals = tape.to_jaxpr(f"linear_{closed.jaxpr.name}")
            primal = trace.finish(arguments, [*out, *residuals])
        finally:
            current.trace = outer
            trace.alive = False
        out_moving = [type(v) is not Zero for v in tape.outvars]
        closed.derived[key] = primal, linear, out_moving, len(residuals)
    return closed.derived[key]
