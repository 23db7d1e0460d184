"""Programs that call a function which carries attributes for the compiler: metadata, a scheduling group, a place.

The attributes say how, never what: values and derivatives are those of the function. Calls derived from such a call
(its derivative, its transpose, its vectorized form) carry attributes of their own choice, by default the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from purax.control_flow.bodies import arrays_in, stage_tree
from purax.core.avals import Zero
from purax.core.jaxpr_hash import fingerprint
from purax.core.metadata import Metadata, annotated, attribute_text
from purax.core.source import located
from purax.errors import shown
from purax.execution import compiled_program
from purax.interpreters.linearize import linearize_jaxpr
from purax.interpreters.program_rules import ProgramCall, with_tangents
from purax.interpreters.simplify import hoist_constants
from purax.lowering import jaxpr_to_stablehlo
from purax.primitives.barrier import OptimizationBarrier
from purax.primitives.shape.broadcasting import batch_size, batch_to_front
from purax.tree.registry import tree_flatten, tree_unflatten
from purax.xla.stablehlo import tensor_type


class AnnotatedCall(ProgramCall):
    """Calls `jaxpr` with `metadata`; what autodiff derives carries `derived`.

    Args:
        name: as printed in programs.
    """

    def __init__(self, name: str):
        self.name = name

    def run(self, *operands, jaxpr, metadata, derived):
        return compiled_program.run(jaxpr, operands)

    def lower(self, builder, *operands, jaxpr, metadata, derived):
        module = builder.module
        if module.dimensions is not None:  # whose values only the function around has
            return jaxpr_to_stablehlo.lower_body(builder, jaxpr.jaxpr, operands)
        key = (self.name, fingerprint(jaxpr))
        function = module.names.get(key)
        if function is None:
            function = module.names[key] = module.unique_name(self.name)
            module.function(
                function,
                [v.aval for v in jaxpr.jaxpr.invars],
                lambda inner, *args: jaxpr_to_stablehlo.lower_body(inner, jaxpr.jaxpr, args),
            )
        module.call_counts[function] += 1
        text = f"callee = @{function}"
        if metadata:
            text += f", {attribute_text(metadata)}"
        return builder.op("func.call", operands, list(jaxpr.out_avals), discardable=text)

    def params_for(self, role, params):
        return {**params, "metadata": params["derived"]} if role in ("linear", "transpose") else params

    def linearize(self, primals, tangents, *, jaxpr, **params):
        moving = [type(t) is not Zero for t in tangents]
        primal, linear, out_moving, _ = linearize_jaxpr(jaxpr, moving)
        results = self.call(primal, primals, params)
        out, residuals = results[: len(out_moving)], results[len(out_moving) :]
        given = [t for t in tangents if type(t) is not Zero]
        moved = self.call(linear, [*residuals, *given], params, "linear") if any(out_moving) else ()
        return with_tangents(out, moved, out_moving)


metadata_call_p = AnnotatedCall("xla_metadata_call")
compute_on_p = AnnotatedCall("compute_on")
fused_p = AnnotatedCall("fused_call")


def annotated_call(
    primitive: AnnotatedCall, function: Callable, metadata: Metadata, derived: Metadata | None = None
) -> Callable:
    """`function` as one call with attributes.

    Args:
        primitive: the kind of call.
        function: of trees of arrays; it is traced at each call.
        metadata: the attributes.
        derived: those of what autodiff derives; the same if left out.
    """
    if not callable(function):
        raise located(TypeError, f"{primitive.name} wraps a function, got {shown(function)}")

    @functools.wraps(function)
    def wrapped(*args: Any, **keywords: Any) -> Any:
        leaves, tree = tree_flatten((args, keywords))
        values = arrays_in(leaves, tree, f"{primitive.name}: arguments")

        def of_arguments(args: Any, keywords: Any) -> Any:
            return function(*args, **keywords)

        closed, out_tree = stage_tree(of_arguments, tree, [x.aval for x in values], primitive.name)
        results = primitive.bind(
            *closed.consts,
            *values,
            jaxpr=hoist_constants(closed),
            metadata=metadata,
            derived=metadata if derived is None else derived,
        )
        return tree_unflatten(out_tree, results)

    return wrapped


class MetadataValue(OptimizationBarrier):
    """Its operands; what computes them carries `metadata`."""

    name = "xla_metadata_value"

    def infer(self, *avals, metadata):
        return list(avals)

    def lay_out(self, outs, *avals, metadata):
        return [aval.spec for aval in avals]

    def host(self, *operands, metadata):
        return list(operands)

    def lower(self, builder, *operands, metadata):
        for x in operands:
            name = x.name.partition("#")[0]
            for i in reversed(range(len(builder.lines))):
                if builder.lines[i].startswith((f"{name} = ", f"{name}:")):
                    builder.lines[i] = annotated(builder.lines[i], metadata)
                    break
        return list(operands)

    def jvp(self, primals, tangents, *, metadata):
        return self.bind(*primals, metadata=metadata), list(tangents)

    def transpose(self, cotangents, *operands, metadata):
        return list(cotangents)

    def batch(self, operands, batch_axes, *, metadata):
        return self.bind(*operands, metadata=metadata), list(batch_axes)


metadata_value_p = MetadataValue()


class ShardAlike(OptimizationBarrier):
    """Its two operands, which the partitioner is to lay over the devices in the same way."""

    name = "shard_alike"

    def lower(self, builder, *operands):
        module = builder.module
        if module.mesh is not None:
            group = module.names["shard_alike"] = module.names.get("shard_alike", -1) + 1
            for x in operands:
                builder.lines.append(
                    f"sdy.sharding_group {x.name} group_id = {group} : {tensor_type(x.aval)}"
                )
        return list(operands)

    def batch(self, operands, batch_axes):
        size = batch_size(operands, batch_axes)
        moved = [batch_to_front(x, axis, size) for x, axis in zip(operands, batch_axes, strict=True)]
        return self.bind(*moved), [0, 0]


shard_alike_p = ShardAlike()


class LayoutConstraint(OptimizationBarrier):
    """Its operand, whose axes lie in memory in the `order` given, from the slowest to the fastest."""

    name = "layout_constraint"

    def infer(self, x, *, order):
        return [x]

    def lay_out(self, outs, x, *, order):
        return [x.spec]

    def host(self, x, *, order):
        return [x]

    def lower(self, builder, x, *, order):
        axes = ", ".join(map(str, reversed(order)))
        layout = f"[dense<[{axes}]> : tensor<{len(order)}xindex>]" if order else "[dense<> : tensor<0xindex>]"
        text = f'call_target_name = "LayoutConstraint", operand_layouts = {layout}, result_layouts = {layout}'
        return builder.op("custom_call", (x,), [x.aval], text)

    def jvp(self, primals, tangents, *, order):
        return self.bind(*primals, order=order), list(tangents)

    def transpose(self, cotangents, *operands, order):
        return list(cotangents)

    def batch(self, operands, batch_axes, *, order):
        (x,), (axis,) = operands, batch_axes
        moved = batch_to_front(x, axis, batch_size(operands, batch_axes))
        return self.bind(moved, order=(0, *(n + 1 for n in order))), [0]


layout_constraint_p = LayoutConstraint()
