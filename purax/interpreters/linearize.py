"""Linearization: runs a function and records its derivative at that point as a linear program.

    linearize(f)(x) = f(x), (dx -> f'(x) dx)

`LinearizeTrace` applies each primitive's `jvp` rule with concrete primals and recorded tangents: in the rule, what
does not involve a tangent is computed, and what does is put on the tape, where all else appears as constants. So the
tape holds only linear operations, ready to be transposed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from purax.config import config
from purax.core import source
from purax.core.avals import Zero, aval_of, tangent_aval
from purax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, eval_jaxpr
from purax.core.leaks import check_leaks
from purax.core.trace import Trace, Tracer, current
from purax.interpreters.plain_numbers import settled_all
from purax.interpreters.staging import StagingTrace
from purax.primitives.shape.broadcasting import broadcast_in_dim_p, zeros
from purax.xla.array import DeviceArray, as_operand, is_constant


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
    records_tangents = True

    def __init__(self, parent: Trace):
        super().__init__(parent)
        self.equations: list[JaxprEqn | HostStep] = []
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
        if not primitive.runs_itself:
            return self.record(primitive, operands, params)
        if primitive.opens_on_tape:
            return primitive.run(*operands, **params)
        tangents = [type(x) is LinearTracer and x.owner is self for x in operands]
        depends = primitive.depends(tangents, **params)
        if depends is not None and not all(depends):
            apart = primitive.apart(operands, tangents, **params)
            return self.compute_some(primitive, operands, params, depends) if apart is None else apart
        return self.record(primitive, operands, params)

    def compute_some(self, primitive, operands, params, depends: Sequence[bool]) -> list[Any]:
        """Records an operation with results that no tangent has a part in, and computes these."""
        anything = tuple(
            [zeros(x.aval) if type(x) is LinearTracer and x.owner is self else x for x in operands]
        )
        current.trace = self.parent
        try:
            known = self.parent.process(primitive, anything, params)  # type: ignore[union-attr]
        finally:
            current.trace = self
        recorded = self.record(primitive, operands, params)
        return [tangent if moves else y for tangent, y, moves in zip(recorded, known, depends, strict=True)]

    def forget(self, count: int) -> None:
        """Takes all operations but the first `count` off the tape."""
        del self.equations[count:]

    def record(self, primitive, operands, params):
        """Puts an operation on the tape."""
        atoms: list[Var | Literal] = []
        avals = []
        for x in operands:
            if type(x) is LinearTracer and x.owner is self:
                atoms.append(x.variable)
                avals.append(x.aval)
            else:
                aval = x.aval if type(x) is DeviceArray else aval_of(x)
                atoms.append(Literal(x, aval))
                avals.append(aval)
        inferred = primitive.infer_checked(tuple(avals), params)
        location = source.user_location() if self.keeps_source or primitive.runs_itself else None
        if primitive.multiple_results:
            outvars = [Var(aval) for aval in inferred]
            self.equations.append(JaxprEqn(atoms, outvars, primitive, params, location))
            return [LinearTracer(self, var) for var in outvars]
        var = Var(inferred)
        self.equations.append(JaxprEqn(atoms, [var], primitive, params, location))
        return LinearTracer(self, var)


class LinearizeTracer(Tracer):
    """A value and its tangent on the tape; a value whose tangent is zero needs no tracer."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace: LinearizeTrace, primal: Any, tangent: Any):
        self.owner = trace
        self.primal = primal
        self.tangent = tangent
        self.aval = aval_of(primal)

    def concrete_or_none(self):
        primal = self.primal
        return primal.concrete_or_none() if isinstance(primal, Tracer) else primal

    def settled(self, settle):
        primal, tangent = settle(self.primal), settle(self.tangent)
        if primal is self.primal and tangent is self.tangent:
            return self
        return LinearizeTracer(self.owner, primal, tangent)


class LinearizeTrace(Trace):
    """Applies `linearize` rules, which are the `jvp` rules unless a primitive has a program inside."""

    __slots__ = ("tape",)
    name = "grad"
    passes_on = True

    def __init__(self, parent: Trace):
        super().__init__(parent)
        self.tape = TapeTrace(parent)
        self.on_host = self.host_rules if self.ends_eager else None

    def process(self, primitive, operands, params):
        if self.on_host is not None:
            result = self.on_host(self, primitive, operands, params)
            if result is not None:
                return result
        for x in operands:
            if type(x) is LinearizeTracer and x.owner is self:
                break
        else:
            current.trace = self.parent
            try:
                return self.parent.process(primitive, operands, params)
            finally:
                current.trace = self
        primals, tangents = [], []
        for x in operands:
            if type(x) is LinearizeTracer and x.owner is self:
                primals.append(x.primal)
                tangents.append(x.tangent)
            else:
                primals.append(x if type(x) is DeviceArray else as_operand(x))
                tangents.append(Zero.like(x))
        current.trace = tape = self.tape
        try:
            out, tangent = primitive.linearize(primals, tangents, **params)
        finally:
            current.trace = self
        if not (primitive.opens_on_tape or primitive.may_be_opened):
            out = settled_all(out)
        # A tangent that does not depend on tangents can only be zero.
        if primitive.multiple_results:
            return [
                LinearizeTracer(self, y, dy) if type(dy) is LinearTracer and dy.owner is tape else y
                for y, dy in zip(out, tangent, strict=True)
            ]
        if type(tangent) is LinearTracer and tangent.owner is tape:
            return LinearizeTracer(self, out, tangent)
        return out


class LinearRule:
    """How an operation on operands of certain types is linearized on the host, besides the row of NumPy functions from
    operands to the result and the residuals.

    Attributes:
        linear: the program from residuals and tangents to the tangent of the result.
        numbers: for each residual whether it is an operand that was a number to begin with, not an array.
        back: the transpose of `linear` on the host: `None` before it is needed (`HostStep.transposed` makes it).
        trace_key: the settings that it was made under.
    """

    __slots__ = ("back", "linear", "numbers", "trace_key")

    def __init__(self, linear: ClosedJaxpr, numbers: list[bool]):
        self.linear, self.numbers = linear, numbers
        self.back: Any = None
        self.trace_key = config.trace_key


@final
class HostStep:
    """What a `LinearRule` puts on the tape in place of its equations.

    Attributes:
        residuals: values for the linear program of the rule.
        invars, outvars: the tangents of the operands that have one, and of the result.

    Of the class, installed by `execution.host_transforms`:
        run_backwards: (steps, count, cotangents by variable) -> how many of the first `count` steps are left to run.
        transposed: a `LinearRule` -> its `back`.
    """

    __slots__ = ("invars", "outvars", "residuals", "rule")
    run_backwards: Callable[[Sequence[Any], int, dict[Var, Any]], int] = staticmethod(
        lambda steps, count, known: count
    )
    transposed: Callable[[LinearRule], Any]

    def __init__(self, rule: LinearRule, residuals: list[np.ndarray], invars: list[Var], outvars: list[Var]):
        self.rule, self.residuals, self.invars, self.outvars = rule, residuals, invars, outvars

    def equations(self, arrays: dict[tuple, DeviceArray]) -> list[JaxprEqn]:
        """The equations that it stands for; `arrays` keeps those made of residuals, one for each NumPy array."""
        jaxpr = self.rule.linear.jaxpr
        count = len(self.residuals)
        known: dict[Var, Any] = dict(zip(jaxpr.invars[count:], self.invars, strict=True))
        known[jaxpr.outvars[0]] = self.outvars[0]  # type: ignore[index]
        for v, x, is_number in zip(jaxpr.invars[:count], self.residuals, self.rule.numbers, strict=True):
            value = x if is_number else arrays.setdefault((id(x), v.aval), DeviceArray(v.aval, x))
            known[v] = Literal(value, v.aval)
        equations = []
        for eqn in jaxpr.eqns:
            outvars = [known.setdefault(v, Var(v.aval)) for v in eqn.outvars]
            invars = [v if type(v) is Literal else known[v] for v in eqn.invars]
            equations.append(JaxprEqn(invars, outvars, eqn.primitive, eqn.params))
        return equations


class Tape:
    """A linear program recorded at a point: tangents of arguments in, tangents of results out.

    Attributes:
        invars: the tangents of the arguments; None where an argument has no tangent.
        steps: linear operations; what they take besides tangents stands in `Literal`s. Some may be `HostStep`s.
        outvars: the tangents of the results, variables or `Zero`.
    """

    __slots__ = ("invars", "outvars", "steps")

    def __init__(self, invars: list[Var | None], steps: list[JaxprEqn | HostStep], outvars: list[Var | Zero]):
        self.invars = invars
        self.steps = steps
        self.outvars = outvars

    @property
    def equations(self) -> list[JaxprEqn]:
        """The linear operations, one by one."""
        if any([type(step) is HostStep for step in self.steps]):
            arrays: dict[tuple, DeviceArray] = {}
            lists = [step.equations(arrays) if type(step) is HostStep else [step] for step in self.steps]
            self.steps = [eqn for equations in lists for eqn in equations]
        return self.steps  # type: ignore[return-value]

    def __call__(self, tangents: Sequence[Any]) -> list[Any]:
        """Pushes tangents of the arguments forward."""
        values: dict[Var, Any] = {v: t for v, t in zip(self.invars, tangents, strict=True) if v is not None}
        for eqn in self.equations:
            operands = tuple([v.array if type(v) is Literal else values[v] for v in eqn.invars])
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
        equations: list[JaxprEqn | HostStep] = [
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
        jaxpr = Jaxpr([], [*(v for v, _ in residuals.values()), *tangents], outvars, eqns, name=name)
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
            outvars.append(y.tangent.variable)
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


def split_jaxpr(
    closed: ClosedJaxpr, tangents: Sequence[bool]
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], int]:
    """Splits a program that is linear in some arguments, its tangents, into what is known without them and the rest.

    Returns:
        The known program: other arguments -> (known results, residuals); the linear program: (residuals, tangents) ->
        other results; which results these are; the number of residuals.
    """
    key = ("split", tuple(tangents))
    if key not in closed.derived:
        outer = current.trace
        trace = StagingTrace(outer, closed.jaxpr.name)
        tape = TapeTrace(trace)
        arguments: list[Any] = []
        for i, (aval, is_tangent) in enumerate(zip(closed.in_avals, tangents, strict=True)):
            arguments.append(
                LinearTracer(tape, Var(aval)) if is_tangent else trace.argument(aval, f"argument {i}")
            )
        current.trace = tape
        try:
            results = eval_jaxpr(closed.jaxpr, closed.consts, *arguments)
            current.trace = trace
            linear_results = [type(y) is LinearTracer and y.owner is tape for y in results]
            outvars = [y.variable for y, flag in zip(results, linear_results, strict=True) if flag]
            invars = [x.variable for x, flag in zip(arguments, tangents, strict=True) if flag]
            linear, residuals = Tape(invars, tape.equations, outvars).to_jaxpr(f"linear_{closed.jaxpr.name}")
            known = [y for y, flag in zip(results, linear_results, strict=True) if not flag]
            given = [x for x, flag in zip(arguments, tangents, strict=True) if not flag]
            program = trace.finish(given, [*known, *residuals])
        finally:
            current.trace = outer
            trace.alive = tape.alive = False
        closed.derived[key] = program, linear, linear_results, len(residuals)
    return closed.derived[key]
