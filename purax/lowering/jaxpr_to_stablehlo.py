"""Jaxpr -> StableHLO. Every equation is lowered by its primitive's `lower` rule; a program that is used several times
in one module becomes a function that is emitted once and called, and so does what a program repeats where calls are
kept (`outline`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from purax.core.avals import ShapedArray
from purax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from purax.core.jaxpr_hash import fingerprint
from purax.core.memories import HOST_KIND, MemorySpace
from purax.core.metadata import MARK, annotated, split_scope
from purax.core.phases import phase
from purax.core.primitive import Primitive
from purax.core.source import with_location
from purax.errors import InconclusiveDimensionOperation
from purax.lowering.cpu.even_shapes import with_even_shapes
from purax.lowering.cpu.outline import may_be_called, outline
from purax.lowering.cpu.outline_kernels import share_kernels
from purax.lowering.cpu.residuals import trim_residuals
from purax.xla import native
from purax.xla.stablehlo import Builder, Module, Value, layout_text, sharding_text


def lower_jaxpr(
    closed: ClosedJaxpr,
    *,
    platform: str,
    donated: Sequence[bool] | None = None,
    mesh: Any = None,
    in_specs: Sequence[Any] = (),
    out_specs: Sequence[Any] = (),
    debug_info: bool = False,
) -> Module:
    """The module whose `main` takes the constants and arguments of `closed` and returns its results.

    Args:
        closed: the program.
        platform: what it will be compiled for.
        donated: for each constant and argument, whether its memory may be reused for the results.
        mesh: the devices it runs on, if they are several.
        in_specs: how each constant and argument is sharded over the mesh.
        out_specs: how each result shall be sharded over the mesh; None leaves it to the compiler.
        debug_info: whether operations carry the lines of the user's code that they come from.
    """
    jaxpr = closed.jaxpr
    module = Module(platform, mesh=mesh)
    module.debug_info = debug_info
    avals = [v.aval for v in (*jaxpr.constvars, *jaxpr.invars)]
    attributes = None
    taken: dict[Var, Any] = {}
    if donated is not None and any(donated):
        attributes = donation_attributes(avals, jaxpr.out_avals, donated)
        arguments = (*jaxpr.constvars, *jaxpr.invars)
        pairs = pair_donated(avals, jaxpr.out_avals, donated)
        taken = {arguments[i]: jaxpr.outvars[n] for i, n in pairs.items()}
    results = None
    if mesh is not None:
        attributes = _with_shardings(attributes, avals, in_specs)
        results = _with_shardings(None, jaxpr.out_avals, out_specs)
    attributes, results = _with_memories(attributes, avals), _with_memories(results, jaxpr.out_avals)
    module.function(
        "main",
        avals,
        lambda builder, *args: lower_body(builder, jaxpr, args, taken),
        True,
        argument_attributes=attributes,
        result_attributes=results,
    )
    return module


def _with_shardings(
    attributes: Sequence[str] | None, avals: Sequence[ShapedArray], specs: Sequence[Any]
) -> list[str]:
    """The attributes of arguments or results, with how they are sharded over the mesh."""
    texts = []
    for i, (aval, spec) in enumerate(zip(avals, specs, strict=True)):
        parts = [attributes[i]] if attributes is not None and attributes[i] else []
        if spec is not None:
            parts.append(f"sdy.sharding = #sdy.sharding{sharding_text(spec, aval.ndim)}")
        texts.append(", ".join(parts))
    return texts


def _with_memories(
    attributes: Sequence[str] | None, avals: Sequence[ShapedArray]
) -> Sequence[str] | None:
    """The attributes of arguments or results, with the memory of those that are not in the device's own."""
    if all(aval.memory_space is MemorySpace.Device for aval in avals):
        return attributes
    texts = []
    for given, aval in zip(attributes or [""] * len(avals), avals, strict=True):
        is_on_host = aval.memory_space is MemorySpace.Host
        parts = [*([given] if given else []), *([f'mhlo.memory_kind = "{HOST_KIND}"'] if is_on_host else [])]
        texts.append(", ".join(parts))
    return texts


def donation_attributes(
    avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], donated: Sequence[bool]
) -> list[str]:
    """What tells the compiler which result takes over the memory of an argument."""
    pairs = pair_donated(avals, out_avals, donated)
    return [f"tf.aliasing_output = {pairs[i]} : i32" if i in pairs else "" for i in range(len(avals))]


def pair_donated(
    avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], donated: Sequence[bool]
) -> dict[int, int]:
    """For each donated argument that some result can take over, which: one of the same type that is still free."""
    free: dict[Any, list[int]] = defaultdict(list)
    for i, aval in reversed(list(enumerate(out_avals))):
        free[aval.shape, aval.dtype, aval.memory_space].append(i)
    pairs = {}
    for i, (aval, is_donated) in enumerate(zip(avals, donated, strict=True)):
        key = aval.shape, aval.dtype, aval.memory_space
        if is_donated and free[key]:
            pairs[i] = free[key].pop()
    return pairs


def lower_primitive(
    primitive: Primitive,
    avals: Sequence[ShapedArray],
    params: dict[str, Any],
    platform: str,
    mesh: Any = None,
    in_specs: Sequence[Any] = (),
    out_specs: Sequence[Any] = (),
) -> Module:
    """The module whose `main` applies one primitive."""
    module = Module(platform, mesh=mesh)

    out_avals: Sequence[ShapedArray] = ()

    def body(builder, *operands):
        result = primitive.lower(builder, *operands, **params)
        results = result if primitive.multiple_results else [result]
        return laid_out(builder, results, out_avals) if out_avals else results

    attributes = results = None
    has_memories = any(aval.memory_space is not MemorySpace.Device for aval in avals)
    if mesh is not None or has_memories:
        inferred = primitive.infer_checked(tuple(avals), params)
        out_avals = inferred if primitive.multiple_results else [inferred]
    if mesh is not None:
        attributes = _with_shardings(None, avals, in_specs)
        results = _with_shardings(None, out_avals, out_specs)
    if has_memories:
        attributes, results = _with_memories(attributes, avals), _with_memories(results, out_avals)
    module.function("main", avals, body, True, argument_attributes=attributes, result_attributes=results)
    return module


def lower_body(
    builder: Builder, jaxpr: Jaxpr, arguments: Sequence[Value], taken: Mapping[Var, Any] = {}
) -> list[Value]:
    """Emits the equations of `jaxpr` on the values of its constants and arguments; returns its results.

    `taken` says of arguments which result takes over their memory.
    """
    with phase("passes"):
        if builder.module.dimensions is None:
            jaxpr = with_even_shapes(jaxpr)
        if builder.module.keep_calls:
            jaxpr = outline(jaxpr, _repeated_p, _repeated_loop_p)
            jaxpr = trim_residuals(jaxpr, _is_kept_call)
            if native.serves(builder):
                jaxpr = share_kernels(jaxpr, _is_kept_call, taken)
    values: dict[Var, Value] = dict(zip((*jaxpr.constvars, *jaxpr.invars), arguments, strict=True))

    def read(atom) -> Value:
        return builder.constant(atom.val, atom.aval) if type(atom) is Literal else values[atom]

    for eqn in jaxpr.eqns:
        results = lower_equation(builder, eqn, [read(atom) for atom in eqn.invars])
        if builder.module.mesh is not None:
            results = laid_out(builder, results, [v.aval for v in eqn.outvars])
        values.update(zip(eqn.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _is_kept_call(eqn: JaxprEqn) -> bool:
    return eqn.primitive.is_call and may_be_called(eqn.params["jaxpr"])


def laid_out(builder: Builder, values: Sequence[Value], avals: Sequence[ShapedArray]) -> list[Value]:
    """Values that are sharded over the mesh as their types say, where they say it."""
    return [
        value
        if aval.layout is None
        else builder.constrain(value, layout_text(aval.layout, builder.module.mesh))
        for value, aval in zip(values, avals, strict=True)
    ]


def lower_equation(builder: Builder, eqn: JaxprEqn, operands: list[Value]) -> Sequence[Value]:
    start = len(builder.lines)
    try:
        results = eqn.primitive.lower(builder, *operands, **eqn.params)
    except InconclusiveDimensionOperation as error:
        if builder.module.dimensions is None:
            raise
        types = ", ".join(x.aval.str_short() for x in operands)
        problem = NotImplementedError(
            f"`{eqn.primitive.name}` of {types} cannot be exported: how it is computed depends on the sizes. "
            f"Export the function for numbers there. ({str(error).partition(':')[0]})"
        )
        raise with_location(problem, eqn.source) from None
    except (NotImplementedError, TypeError, ValueError) as error:
        with_location(error, eqn.source)
        raise
    scope = eqn.scope
    if MARK in scope:
        scope, metadata = split_scope(scope)
        builder.lines[start:] = [annotated(line, metadata) for line in builder.lines[start:]]
    if scope or builder.module.debug_info:  # the compiler keeps it as the operation's name, for profiles
        name = f"{scope}/{eqn.primitive.name}" if scope else eqn.primitive.name
        place = ""
        if builder.module.debug_info and eqn.source is not None:
            place = f"({json.dumps(eqn.source.file, ensure_ascii=False)}:{eqn.source.line}:0)"
        location = f" loc({json.dumps(name, ensure_ascii=False)}{place})"
        builder.lines[start:] = [
            line
            if ' loc("' in line.rpartition("\n")[2]
            else line + location  # a program inside has its own scopes
            for line in builder.lines[start:]
        ]
    return results if eqn.primitive.multiple_results else (results,)


def lower_call(
    builder: Builder,
    closed: ClosedJaxpr,
    operands: Sequence[Value],
    name: str,
    alone: bool = False,
    often: bool = False,
) -> list[Value]:
    """Calls `closed` as a function of the module, which is emitted at its first use.

    With `alone` the compiler shall not merge it with its caller, though it be called only once. With `often` it is
    called several times, so that its arguments lie in memory.
    """
    module = builder.module
    if module.dimensions is not None:  # whose values only the function itself has
        return lower_body(builder, closed.jaxpr, operands)
    key = fingerprint(closed)
    function = module.names.get(key)
    if function is None:
        function = module.names[key] = module.unique_name(name)
        module.function(
            function,
            [v.aval for v in (*closed.jaxpr.constvars, *closed.jaxpr.invars)],
            lambda inner, *args: lower_body(inner, closed.jaxpr, args),
            stored=often,
        )
    return builder.call(function, operands, closed.out_avals, keep=may_be_called(closed), alone=alone)


class Repeated(Primitive):
    """A call of a program that stands for equations which another program repeats; it exists in lowering only."""

    name = "repeated"
    is_fused = False
    is_call = True
    multiple_results = True

    def infer(self, *avals, jaxpr):
        return jaxpr.out_avals

    def lower(self, builder, *operands, jaxpr):
        return lower_call(builder, jaxpr, operands, "repeated", often=True)


class RepeatedLoop(Primitive):
    """Runs a program `length` times; result `carried[i]` ≥ 0 of one turn is operand i of the next. In lowering only."""

    name = "repeated_loop"
    multiple_results = True

    def infer(self, *avals, jaxpr, length, carried):
        return jaxpr.out_avals

    def lower(self, builder, *operands, jaxpr, length, carried):
        counter = ShapedArray((), np.dtype(np.int32))
        start = {result: x for result, x in zip(carried, operands, strict=True) if result >= 0}
        state = [builder.constant(0, counter), *(start[i] for i in range(len(start)))]
        types = [x.aval for x in state]

        def condition(inner, turn, *values):
            return [inner.compare("LT", turn, inner.constant(length, counter))]

        def body(inner, turn, *values):
            taken = [x if result < 0 else values[result] for result, x in zip(carried, operands, strict=True)]
            results = lower_body(inner, jaxpr.jaxpr, taken)
            return [inner.op("add", (turn, inner.constant(1, counter)), counter), *results]

        regions = [builder.region(types, condition), builder.region(types, body)]
        return builder.op("while", state, types, regions=regions)[1:]


_repeated_p, _repeated_loop_p = Repeated(), RepeatedLoop()
