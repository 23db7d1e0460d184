"""How values are sharded over a mesh inside of programs: `sharding_constraint` says it, and `free_sharding` takes it
from a type, so that XLA decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purax.core.avals import ShapedArray, aval_of
from purax.core.batch_rule import batch_rule
from purax.core.specs import AxisType, PartitionSpec, layout_of
from purax.primitives.shape.broadcasting import Linear
from purax.sharding.shardings import NamedSharding, named_sharding, with_devices
from purax.xla.array import PlacedArray, as_operand
from purax.xla.stablehlo import sharding_text


class ShardingConstraint(Linear):
    """`x`, which lies over the mesh of `sharding` as that says. An `AbstractSharding` is one over the mesh of `x`."""

    name = "sharding_constraint"
    keeps_ends = True
    runs_itself = True
    put: Callable[[Any, Any], Any]  # moves a concrete array to a sharding; `execution.device_put` installs it

    def physical(self, x, **params):
        """Of arrays that stand for keys, the last axis is not cut."""
        return self.bind(x, **params)

    def infer(self, x, *, sharding):
        if isinstance(sharding, NamedSharding):
            sharding.check_shape(x.shape)
        return x

    def infer_checked(self, avals, params):
        (x,), sharding = avals, params["sharding"]
        out = super().infer_checked((x.with_layout(None),), params)
        return out.with_layout(sharding.as_type(x.ndim) or x.layout)

    def host(self, x, *, sharding):
        return x

    def specs_wanted(self, *, sharding):
        return [None if PartitionSpec.UNCONSTRAINED in tuple(sharding.spec) else sharding.spec]

    def run(self, x, *, sharding):
        x = as_operand(x)
        if not isinstance(sharding, NamedSharding):
            mesh = getattr(x._placement, "mesh", None) or with_devices(sharding.mesh)
            if mesh is None:  # on one device, where nothing can be cut
                return x
            sharding = named_sharding(mesh, sharding.spec)
        return self.put(x, sharding)

    def lower(self, builder, x, *, sharding):
        if builder.module.mesh is None:  # one device, where nothing can be cut
            return x
        return builder.constrain(x, sharding_text(sharding.spec, x.ndim))

    def transpose(self, cotangent, x, *, sharding):
        return (self.bind(cotangent, sharding=x.aval.layout or sharding),)

    def batch(self, operands, batch_axes, *, sharding):
        (x,), (axis,) = operands, batch_axes
        entries = [*sharding.spec, *(None,) * (x.ndim - 1 - len(sharding.spec))]
        aval = aval_of(x)
        spread = batch_rule.spread
        if spread is not None:
            entries.insert(axis, spread)
        else:
            entries.insert(axis, PartitionSpec.UNCONSTRAINED if aval.layout is None else aval.spec[axis])
        return self.bind(x, sharding=sharding.update(spec=PartitionSpec(*entries))), axis


class FreeSharding(Linear):
    """`x`, of whose place along `axes` its type says nothing any more: the compiler decides."""

    name = "free_sharding"
    keeps_ends = True
    runs_itself = True

    def infer(self, x, *, axes):
        return x

    def infer_checked(self, avals, params):
        return _freed(avals[0], params["axes"])

    def host(self, x, *, axes):
        return x

    def run(self, x, *, axes):
        x = as_operand(x)
        aval = _freed(x.aval, axes)
        if aval is x.aval:
            return x
        return PlacedArray(aval, x._live_buffer(), x._placement, x.committed)

    def lower(self, builder, x, *, axes):
        return x

    def transpose(self, cotangent, x, *, axes):
        return (cotangent,)

    def batch(self, operands, batch_axes, *, axes):
        return self.bind(operands[0], axes=axes), batch_axes[0]


def _freed(aval: ShapedArray, axes: tuple[Any, ...] | None) -> ShapedArray:
    if aval.layout is None:
        return aval
    if axes is None:
        return aval.with_layout(None)
    mesh = aval.layout.mesh.update_axis_types({name: AxisType.Auto for name in axes})
    return aval.with_layout(layout_of(mesh, aval.layout.spec, aval.ndim))


sharding_constraint_p = ShardingConstraint()
free_sharding_p = FreeSharding()


def free(x: Any, axes: tuple[Any, ...] | None = None) -> Any:
    """`x`, of whose place along `axes` (all unless given) the compiler decides."""
    layout = getattr(getattr(x, "aval", None), "layout", None)
    return x if layout is None else free_sharding_p.bind(x, axes=axes)


def laid_out_as(aval: ShapedArray, x: Any) -> Any:
    """`x`, which lies as the type of another array of its shape says."""
    if aval.layout is None or aval_of(x).layout is aval.layout:
        return x
    return sharding_constraint_p.bind(as_operand(x), sharding=aval.layout)
