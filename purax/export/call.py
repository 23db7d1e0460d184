"""`call_exported`: the primitive that calls an exported function, of which only its StableHLO is known."""

from __future__ import annotations

from collections.abc import Sequence

from purax.control_flow.maps import map as map_in_turn
from purax.core.primitive import Primitive
from purax.execution.compiled_program import run
from purax.execution.eager import as_array
from purax.interpreters.staging import stage
from purax.primitives.shape.broadcasting import move_axis
from purax.xla.dynamic_shapes import with_type
from purax.xla.stablehlo import tensor_type


class CallExported(Primitive):
    """Calls `modules`, which take `in_avals` and give `results`; `name` is that of the function.

    It has no derivative of its own: `Exported.call` gives it the exported one.
    """

    name = "call_exported"
    multiple_results = True
    runs_itself = True
    not_lowered = ("name",)

    def infer(self, *avals, modules, results, name):
        return list(results)

    def run(self, *operands, modules, results, name):
        params = {"modules": modules, "results": results, "name": name}
        arrays = [as_array(x, x.aval) for x in operands]
        return run(stage(lambda *xs: self.bind(*xs, **params), [x.aval for x in arrays], name), arrays)

    def lower(self, builder, *operands, modules, results, name):
        module = modules.for_platform(builder.module.platform, name)
        if not module.is_dynamic:
            return builder.call(module.put_into(builder.module, name), operands, results)
        takes, gives = module.main_types
        given = [with_type(builder, x, text, x.aval) for x, text in zip(operands, takes, strict=True)]
        computed = builder.call(module.put_into(builder.module, name), given, results, types=(takes, gives))
        return [
            with_type(builder, x, tensor_type(aval), aval, from_)
            for x, aval, from_ in zip(computed, results, gives, strict=True)
        ]

    def batch(self, operands: Sequence, batch_axes: Sequence[int | None], **params):
        """One call after the other: a function of which nothing but its code is known cannot be vectorized."""
        batched = [axis is not None for axis in batch_axes]
        moved = [
            move_axis(x, axis, 0) for x, axis in zip(operands, batch_axes, strict=True) if axis is not None
        ]
        fixed = [x for x, axis in zip(operands, batch_axes, strict=True) if axis is None]

        def one(parts):
            given, shared = iter(parts), iter(fixed)
            return self.bind(*(next(given if is_batched else shared) for is_batched in batched), **params)

        return map_in_turn(one, moved), [0] * len(params["results"])


call_exported_p = CallExported()
