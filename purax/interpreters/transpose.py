"""Transposition of linear programs: pulls cotangents of the results back to cotangents of the arguments.

⟨f x, y⟩ = ⟨x, fᵀ y⟩
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from purax.config import config
from purax.core.array import Array
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal, Var
from purax.core.primitive import LinearOperand, has_programs
from purax.core.source import names
from purax.core.trace import current
from purax.interpreters.linearize import HostStep, Tape
from purax.interpreters.staging import StagingTrace, stage
from purax.primitives.collective.collectives import psum_p
from purax.primitives.elementwise.arithmetic import div_p
from purax.primitives.elementwise.elementwise import add_p, mul_p
from purax.primitives.elementwise.logic import eq, select
from purax.primitives.shape.broadcasting import broadcast_in_dim, full, materialize
from purax.primitives.sharding_constraint import free, laid_out_as, sharding_constraint_p
from purax.xla.array import DeviceArray


def transpose_tape(tape: Tape, cotangents: Sequence[Any]) -> list[Any]:
    """The cotangents of the arguments of a tape; `Zero` where nothing flows, None for arguments without a tangent."""
    known = pull_back(tape.steps, {}, tape.outvars, cotangents)
    return [None if v is None else known[v] if v in known else Zero(v.aval) for v in tape.invars]


def pull_back(
    equations: Sequence[JaxprEqn | HostStep],
    values: dict[Var, Any],
    outvars: Sequence[Any],
    cotangents: Sequence[Any],
) -> dict[Var, Any]:
    """Runs linear equations backwards.

    Args:
        equations: linear in every variable that has no entry in `values`.
        values: of the variables that are known.
        outvars: of the program; literals and `Zero`s get no cotangent.
        cotangents: of `outvars`, symbolic zeros allowed.

    Returns:
        The cotangents of the variables that are not results of an equation.
    """
    known: dict[Var, Any] = {}
    trace = current.trace
    while trace is not None and not isinstance(trace, StagingTrace):
        trace = trace.parent
    if trace is not None:
        trace.holds_derivative = True
    for v, cotangent in zip(outvars, cotangents, strict=True):
        if isinstance(v, Var) and v not in values and type(cotangent) is not Zero:
            cotangent = laid_out_as(v.aval, as_constant_as(v.aval, cotangent))
            known[v] = add_p.bind(known[v], cotangent) if v in known else cotangent
    run_backwards(equations, values, known)
    return known


def run_backwards(
    equations: Sequence[JaxprEqn | HostStep], values: dict[Var, Any], known: dict[Var, Any]
) -> None:
    """Replaces the cotangents of results of `equations` among those that are known by what they give operands."""
    outer_location = names.location
    marks_lines = config.debug_nans or config.debug_infs or names.marks_backward
    is_safe = config.safe_gradients
    # A custom rule runs, on zeros, wherever its result is used, even if no cotangent arrives there.
    custom = any([type(eqn) is not HostStep and eqn.primitive.transposes_zeros for eqn in equations])
    used = set(known) if custom else None
    location: Any = names  # that of no equation
    try:
        left = len(equations)
        while left:
            if used is None:
                left = HostStep.run_backwards(equations, left, known)
                if not left:
                    break
            left -= 1
            eqn = equations[left]
            invars, outvars = eqn.invars, eqn.outvars
            is_used = used is not None and not used.isdisjoint(outvars)
            if is_used:
                used.update(v for v in invars if isinstance(v, Var))  # type: ignore[union-attr]
            if type(eqn) is HostStep:
                if outvars[0] in known:
                    run_step_backwards(eqn, known)
                continue
            given: Any
            primitive = eqn.primitive
            is_used = is_used and primitive.transposes_zeros
            if primitive.multiple_results:
                outs = [known.pop(v, None) for v in outvars]
                if not is_used and all(c is None for c in outs):
                    continue
                given = [Zero(v.aval) if c is None else c for v, c in zip(outvars, outs, strict=True)]
                lies_over_mesh = any(v.aval.layout is not None for v in outvars)
            else:
                given = known.pop(outvars[0], None)
                if given is None and not is_used:
                    continue
                lies_over_mesh = outvars[0].aval.layout is not None
            operands = []
            for v in invars:
                if type(v) is Literal:
                    operands.append(v.array)
                elif v in values:
                    operands.append(values[v])
                else:
                    operands.append(LinearOperand(v.aval))
                if v.aval.layout is not None:
                    lies_over_mesh = True
            if eqn.source is not location:
                location = eqn.source
                names.location = (
                    location._replace(backward=True) if marks_lines and location is not None else location
                )
            if is_safe and primitive in _NEUTRAL:
                operands = guarded(primitive, given, operands)
            if lies_over_mesh:
                given, operands = _without_layouts(eqn, given, operands)
            results = primitive.transpose(given, *operands, **eqn.params)
            for v, operand, cotangent in zip(invars, operands, results, strict=True):
                if type(operand) is LinearOperand and cotangent is not None and type(cotangent) is not Zero:
                    if type(cotangent) is not DeviceArray or cotangent.aval.vma:
                        cotangent = as_constant_as(v.aval, cotangent)
                    if lies_over_mesh and v.aval.layout is not None:
                        cotangent = laid_out_as(v.aval, cotangent)
                    known[v] = add_p.bind(known[v], cotangent) if v in known else cotangent  # type: ignore[index]
    finally:
        names.location = outer_location


def run_step_backwards(step: HostStep, known: dict[Var, Any]) -> None:
    """`run_backwards` for one step on the host, whose result has a cotangent."""
    if step.rule.back is None:
        step.rule.back = HostStep.transposed(step.rule)
    if HostStep.run_backwards([step], 1, known):
        run_backwards(step.equations({}), {}, known)


def _without_layouts(eqn: JaxprEqn, given: Any, operands: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Cotangents and operands of which types do not say how they are sharded over a mesh.

    A sum that types call for forwards may be ambiguous backwards; but how its result lies is known: as the operand.
    """
    if has_programs(eqn.params):
        return given, list(operands)  # programs have types of their own
    outs = [free(c) for c in given] if eqn.primitive.multiple_results else free(given)
    kept = eqn.primitive is sharding_constraint_p  # whose transpose needs to know
    return outs, [
        LinearOperand(x.aval if kept else x.aval.with_layout(None)) if type(x) is LinearOperand else free(x)
        for x in operands
    ]


def as_constant_as(aval: ShapedArray, cotangent: Any) -> Any:
    """The cotangent of a value that is the same on all devices of a mesh along some axes: the sum over these.

    Using such a value where values differ from device to device is a broadcast; this is its transpose.
    """
    vma = cotangent.aval.vma if isinstance(cotangent, Array) else None
    if not vma or vma <= aval.vma:
        return cotangent
    return psum_p.bind(cotangent, axis_name=tuple(sorted(vma - aval.vma, key=str)), axis_index_groups=None)


# What a factor or divisor is replaced by where the cotangent is zero, for `config.safe_gradients`.
_NEUTRAL = {mul_p: 0, div_p: 1}


def guarded(primitive: Any, cotangent: Any, operands: Sequence[Any]) -> list[Any]:
    """The operands of a product or quotient, harmless where the cotangent is zero: 0 · ∞ and 0 / 0 become 0.

    So a branch that `where` did not select sends back no NaN, whatever its derivative is there.
    """
    nothing = eq(cotangent, 0)
    shape = aval_of(cotangent).shape
    return [
        x
        if type(x) is LinearOperand
        else select(
            nothing,
            full(shape, _NEUTRAL[primitive], aval_of(x).dtype),
            broadcast_in_dim(x, shape, range(aval_of(x).ndim)),
        )
        for x in operands
    ]


def transpose_flat(closed: ClosedJaxpr, operands: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """The transpose of a program in the arguments that are `LinearOperand`, at given values of the others."""
    jaxpr = closed.jaxpr
    values: dict[Var, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    for v, x in zip(jaxpr.invars, operands, strict=True):
        if type(x) is not LinearOperand:
            values[v] = x
    linear_equations = []
    for eqn in jaxpr.eqns:
        if all(not isinstance(v, Var) or v in values for v in eqn.invars):
            inputs = tuple([values[v] if isinstance(v, Var) else v.val for v in eqn.invars])
            result = current.trace.process(eqn.primitive, inputs, eqn.params)
            values.update(
                zip(eqn.outvars, result if eqn.primitive.multiple_results else [result], strict=True)
            )
        else:
            linear_equations.append(eqn)
    known = pull_back(linear_equations, values, jaxpr.outvars, cotangents)
    return [
        (known[v] if v in known else Zero(v.aval)) if type(x) is LinearOperand else None
        for v, x in zip(jaxpr.invars, operands, strict=True)
    ]


def transpose_jaxpr(
    closed: ClosedJaxpr, linear: Sequence[bool], given: Sequence[bool], force: Sequence[bool] | None = None
) -> tuple[ClosedJaxpr, list[bool]]:
    """The program of the transpose: (non-linear arguments, given cotangents) -> non-zero cotangents.

    Args:
        closed: a program without constants, linear in some arguments.
        linear: which.
        given: which results have a cotangent that is not zero.
        force: which of the linear arguments get a cotangent even if it is zero.

    Returns:
        The program, and which of the linear arguments get a cotangent.
    """
    key = ("transpose", tuple(linear), tuple(given), None if force is None else tuple(force))
    if key not in closed.derived:
        flowing: list[bool] = []
        out_avals = [aval for aval, is_given in zip(closed.out_avals, given, strict=True) if is_given]

        def pulled(*args):
            inputs = iter(args)
            operands = [
                LinearOperand(aval) if is_linear else next(inputs)
                for aval, is_linear in zip(closed.in_avals, linear, strict=True)
            ]
            cotangents = [
                next(inputs) if is_given else Zero(aval)
                for aval, is_given in zip(closed.out_avals, given, strict=True)
            ]
            results = transpose_flat(closed, operands, cotangents)
            wanted = [c for c, is_linear in zip(results, linear, strict=True) if is_linear]
            forced = [False] * len(wanted) if force is None else force
            flowing.extend(type(c) is not Zero or f for c, f in zip(wanted, forced, strict=True))
            return [materialize(c) for c, flows in zip(wanted, flowing, strict=True) if flows]

        fixed = [aval for aval, is_linear in zip(closed.in_avals, linear, strict=True) if not is_linear]
        program = stage(pulled, [*fixed, *out_avals], f"transpose_{closed.jaxpr.name}")
        closed.derived[key] = program, flowing
    return closed.derived[key]
