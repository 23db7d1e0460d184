"""Collective operations: communication over a named axis, such as the batch axis of a `vmap(..., axis_name="i")`.

Each is an operation of its own for elements of the axis; `batch_collective` is its meaning when the named axis is a
batch axis that the program can see as a whole. `lower` is its meaning when it is an axis of a mesh of devices, inside
of a `shard_map`: what XLA calls by the same names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.primitive import Primitive
from purax.core.source import located
from purax.core.trace import current
from purax.errors import shown
from purax.primitives.elementwise.conversion import convert_element_type_p
from purax.primitives.elementwise.elementwise import mul
from purax.primitives.reductions.reduction import reduce_max, reduce_min
from purax.primitives.shape.broadcasting import batch_to_front, broadcast_in_dim, move_axis, reduce_sum, zeros
from purax.primitives.shape.reshaping import concatenate, iota, reshape
from purax.primitives.shape.slicing import slice_axis
from purax.xla.stablehlo import integers

_int32 = np.dtype(np.int32)


class Collective(Primitive):
    """An operation over named axes; `axis_name` is a tuple of names."""

    runs_itself = True

    def names_axis(self, name, *, axis_name, **params):
        return name in axis_name

    def run(self, *operands, axis_name, **params):
        raise unbound_axis(self.name, axis_name[0], ())

    def lower(self, builder, *operands, axis_name, **params):
        mesh = builder.module.mesh
        for name in axis_name:
            if mesh is None or name not in mesh.shape:
                raise unbound_axis(self.name, name, () if mesh is None else mesh.axis_names)
        return self.emit(builder, mesh, *operands, axis_name=axis_name, **params)

    def emit(self, builder, mesh, *operands, **params):
        """The operation between the devices of a mesh."""
        self.is_missing("emit", "lowers")

    def lay_out(self, out, x, **params):
        if out.shape != x.shape:
            super().lay_out(out, x, **params)
        return x.spec

    def check_one(self, x, batch_axis: int | None, **params) -> None:
        """Raises if the operand of one element of the axis does not fit."""
        aval = aval_of(x)
        if batch_axis is not None:
            aval = aval.with_shape(aval.shape[:batch_axis] + aval.shape[batch_axis + 1 :])
        self.infer_checked((aval,), params)


def size_in_scope(axis_name: Any) -> int:
    """The size of a named axis of an enclosing transformation."""
    trace: Any = current.trace
    while getattr(trace, "axis_name", None) != axis_name:
        trace = trace.parent
    return trace.size


def merge_axes(x: Any, axis: int, count: int) -> Any:
    """`x` with `count` axes from `axis` on made one."""
    shape = aval_of(x).shape
    size = math.prod(shape[axis : axis + count])
    return reshape(x, (*shape[:axis], size, *shape[axis + count :]))


def split_axis_into(x: Any, axis: int, sizes: Sequence[int]) -> Any:
    """`x` with an axis cut into several."""
    shape = aval_of(x).shape
    return reshape(x, (*shape[:axis], *sizes, *shape[axis + 1 :]))


def unbound_axis(operation: str, axis_name: Any, known: Sequence[Any]) -> Exception:
    """The error for a name that no enclosing transformation gives to an axis."""
    names = (
        f"the named axes here are {', '.join(map(repr, known))}"
        if known
        else "no named axis is in scope here"
    )
    return located(
        NameError,
        f"{operation}: unbound axis name: {shown(axis_name)}; {names}. Name the axis where the function is mapped: "
        f"`vmap(f, axis_name={shown(axis_name)})` or `pmap(f, axis_name={shown(axis_name)})`.",
    )


def device_groups(mesh: Any, axis_name: Sequence[Any], index_groups: Any = None) -> np.ndarray:
    """The positions in the mesh of the devices that communicate with each other, one row per group."""
    names = list(mesh.axis_names)
    positions = np.arange(mesh.size).reshape(mesh.axis_sizes)
    order = [i for i, n in enumerate(names) if n not in axis_name] + [names.index(n) for n in axis_name]
    size = int(np.prod([mesh.shape[n] for n in axis_name]))
    groups = positions.transpose(order).reshape(-1, size)
    if index_groups is not None:
        groups = np.concatenate([groups[:, list(group)] for group in index_groups])
    return groups


def communication(builder: Any, groups: np.ndarray, permutes: bool = False) -> str:
    """The attributes that say which devices communicate; pairs of sender and receiver if `permutes`."""
    builder.module.channels += 1
    rows = ", ".join(f"[{', '.join(map(str, row))}]" for row in groups)
    shape = f"{groups.shape[0]}x{groups.shape[1]}"
    name = "source_target_pairs" if permutes else "replica_groups"
    return (
        f"{name} = dense<[{rows}]> : tensor<{shape}xi64>, channel_handle = "
        f"#stablehlo.channel_handle<handle = {builder.module.channels}, type = 1>"
    )


class Grouped(Collective):
    """An operation that may be done in groups of elements, `axis_index_groups`, each as if there were no others.

    The parameter is there only if there are groups; `axis_size` is then the size of one.
    """

    def batch_collective(self, size, name, operands, batch_axes, *, axis_index_groups=None, **params):
        if axis_index_groups is None:
            return self.of_all(size, name, operands, batch_axes, **params)
        if params["axis_name"] != (name,):
            raise located(
                NotImplementedError,
                f"{self.name} over the axes {params['axis_name']} with axis_index_groups, one of which is a batch "
                "axis: groups are for one axis of a `vmap`",
            )
        x = batch_to_front(operands[0], batch_axes[0], size)
        rows: dict[int, Any] = {}
        for group in axis_index_groups:
            members = concatenate([slice_axis(x, i, i + 1, 0) for i in group], 0)
            found, axis = self.of_all(len(group), name, [members], [0], **params)
            found = batch_to_front(found, axis, len(group))
            rows |= {i: slice_axis(found, k, k + 1, 0) for k, i in enumerate(group)}
        return concatenate([rows[i] for i in range(size)], 0), 0

    def of_all(self, size, name, operands, batch_axes, **params):
        """`batch_collective` without groups."""
        raise NotImplementedError


class Reduce(Collective):
    """Combines the values along the axes; every element gets the result.

    Its type is not weak, but what `vmap` makes of it stays so, as in JAX.
    """

    opcode = ""

    def infer(self, x, *, axis_name, axis_index_groups):
        return x.strip_weak_type()

    def infer_varying(self, avals, params, result):
        if params["axis_index_groups"] is not None:
            return super().infer_varying(avals, params, result)
        return result.with_vma(avals[0].vma - set(params["axis_name"]))

    def emit(self, builder, mesh, x, *, axis_name, axis_index_groups):
        groups = device_groups(mesh, axis_name, axis_index_groups)
        scalar = ShapedArray((), x.dtype)
        combine = "or" if x.dtype == np.bool_ and self.opcode != "minimum" else self.opcode
        combine = "and" if x.dtype == np.bool_ and self.opcode == "minimum" else combine
        body = builder.region((scalar, scalar), lambda inner, a, b: [inner.op(combine, (a, b), scalar)])
        attributes = f"{communication(builder, groups)}, use_global_device_ids"
        return builder.op("all_reduce", (x,), [x.aval], attributes, (body,))[0]

    def along(self, x, axis: int):
        """The reduction over an axis of an array."""
        raise NotImplementedError

    def repeated(self, x, size: int):
        """The reduction of `size` equal values."""
        return x

    def batch(self, operands, batch_axes, **params):
        return self.bind(operands[0], **params), batch_axes[0]

    def batch_collective(self, size, name, operands, batch_axes, *, axis_name, axis_index_groups):
        (x,), (axis,) = operands, batch_axes
        if axis_index_groups is not None:
            return self._by_group(batch_to_front(x, axis, size), axis_index_groups), 0
        reduced = self.repeated(x, size) if axis is None else self.along(x, axis)
        rest = tuple(n for n in axis_name if n != name)
        if rest:
            reduced = self.bind(reduced, axis_name=rest, axis_index_groups=None)
        return reduced, None

    def _by_group(self, x, groups):
        rows: dict[int, Any] = {}
        for group in groups:
            members = concatenate([slice_axis(x, i, i + 1, 0) for i in group], 0)
            total = self.along(members, 0)
            for i in group:
                rows[i] = broadcast_in_dim(
                    total, (1, *aval_of(total).shape), range(1, aval_of(total).ndim + 1)
                )
        return concatenate([rows[i] for i in range(aval_of(x).shape[0])], 0)


class PSum(Reduce):
    """The sum over the axes."""

    name = "psum"
    opcode = "add"

    def along(self, x, axis):
        return reduce_sum(x, (axis,))

    def repeated(self, x, size):
        total = mul(x, size)
        aval = aval_of(total)
        if aval.ndim == 0 or not aval.weak_type:
            return total
        return convert_element_type_p.bind(total, new_dtype=aval.dtype, weak_type=False)

    def jvp(self, primals, tangents, **params):
        return self.bind(*primals, **params), self.bind(*tangents, **params)

    def transpose(self, cotangent, x, *, axis_name, axis_index_groups):
        if x.aval.vma.issuperset(axis_name) and axis_index_groups is None:
            # The sum is one value, the same on all devices, and so is its cotangent.
            return (cotangent,)
        return (self.bind(cotangent, axis_name=axis_name, axis_index_groups=axis_index_groups),)


class PMax(Reduce):
    """The maximum over the axes."""

    name = "pmax"
    opcode = "maximum"

    def along(self, x, axis):
        return reduce_max(x, (axis,))


class PMin(Reduce):
    """The minimum over the axes."""

    name = "pmin"
    opcode = "minimum"

    def along(self, x, axis):
        return reduce_min(x, (axis,))


class AllGather(Grouped):
    """The values along the axis, all of them for every element: as a new axis at `all_gather_dimension`, or laid end to
    end along it if `tiled`."""

    name = "all_gather"
    moves_elements = True

    def infer(self, x, *, axis_name, axis_size, all_gather_dimension, tiled, axis_index_groups=None):
        shape = list(x.shape)
        if tiled:
            shape[all_gather_dimension] *= axis_size
        else:
            shape.insert(all_gather_dimension, axis_size)
        return x.with_shape(tuple(shape))

    def emit(
        self, builder, mesh, x, *, axis_name, axis_size, all_gather_dimension, tiled, axis_index_groups=None
    ):
        d = all_gather_dimension
        if not tiled:
            x = builder.reshape(x, (*x.shape[:d], 1, *x.shape[d:]))
        out = x.aval.with_shape((*x.shape[:d], x.shape[d] * axis_size, *x.shape[d + 1 :]))
        groups = communication(builder, device_groups(mesh, axis_name, axis_index_groups))
        attributes = f"all_gather_dim = {d} : i64, {groups}, use_global_device_ids"
        return builder.op("all_gather", (x,), [out], attributes)[0]

    def jvp(self, primals, tangents, **params):
        return self.bind(*primals, **params), self.bind(*tangents, **params)

    def transpose(self, cotangent, x, *, axis_name, axis_size, all_gather_dimension, tiled, **groups):
        scattered = psum_scatter_p.bind(
            cotangent,
            axis_name=axis_name,
            axis_size=axis_size,
            scatter_dimension=all_gather_dimension,
            tiled=tiled,
            **groups,
        )
        return (scattered,)

    def batch(self, operands, batch_axes, *, all_gather_dimension, tiled, **params):
        (x,), (axis,) = operands, batch_axes
        x = move_axis(x, axis, 0)
        return self.bind(x, all_gather_dimension=all_gather_dimension + 1, tiled=tiled, **params), 0

    def of_all(
        self, size, name, operands, batch_axes, *, axis_name, axis_size, all_gather_dimension, tiled
    ):
        x = batch_to_front(operands[0], batch_axes[0], size)
        d, batched = all_gather_dimension, 1
        # Over several names: over the last of them first, since its positions are next to each other in the result.
        for other in reversed(axis_name):
            if other == name:
                x, batched = move_axis(x, 0, d), 0
                if tiled:
                    x = merge_axes(x, d, 2)
            else:
                count = size_in_scope(other)
                x = self.bind(
                    x, axis_name=(other,), axis_size=count, all_gather_dimension=d + batched, tiled=tiled
                )
        return x if tiled else merge_axes(x, d, len(axis_name)), None


class PSumScatter(Grouped):
    """The sum over the axis, of which each element gets its part along `scatter_dimension`."""

    name = "reduce_scatter"

    def infer(self, x, *, axis_name, axis_size, scatter_dimension, tiled, axis_index_groups=None):
        shape = list(x.shape)
        n = shape[scatter_dimension]
        if (n % axis_size if tiled else n != axis_size) != 0:
            raise ValueError(
                f"psum_scatter: dimension {scatter_dimension} of the operand of shape {x.shape} must "
                f"{'be divisible by' if tiled else 'equal'} the axis size {axis_size}"
            )
        if tiled:
            shape[scatter_dimension] //= axis_size
        else:
            del shape[scatter_dimension]
        return x.with_shape(tuple(shape))

    def emit(
        self, builder, mesh, x, *, axis_name, axis_size, scatter_dimension, tiled, axis_index_groups=None
    ):
        d = scatter_dimension
        part = x.aval.with_shape((*x.shape[:d], x.shape[d] // axis_size, *x.shape[d + 1 :]))
        scalar = ShapedArray((), x.dtype)
        body = builder.region((scalar, scalar), lambda inner, a, b: [inner.op("add", (a, b), scalar)])
        groups = communication(builder, device_groups(mesh, axis_name, axis_index_groups))
        attributes = f"scatter_dimension = {d} : i64, {groups}, use_global_device_ids"
        out = builder.op("reduce_scatter", (x,), part, attributes, (body,))
        return out if tiled else builder.reshape(out, (*x.shape[:d], *x.shape[d + 1 :]))

    def jvp(self, primals, tangents, **params):
        return self.bind(*primals, **params), self.bind(*tangents, **params)

    def transpose(self, cotangent, x, *, axis_name, axis_size, scatter_dimension, tiled, **groups):
        gathered = all_gather_p.bind(
            cotangent,
            axis_name=axis_name,
            axis_size=axis_size,
            all_gather_dimension=scatter_dimension,
            tiled=tiled,
            **groups,
        )
        return (gathered,)

    def batch(self, operands, batch_axes, *, scatter_dimension, **params):
        (x,), (axis,) = operands, batch_axes
        return self.bind(move_axis(x, axis, 0), scatter_dimension=scatter_dimension + 1, **params), 0

    def of_all(
        self, size, name, operands, batch_axes, *, axis_name, axis_size, scatter_dimension, tiled
    ):
        (x,), (axis,) = operands, batch_axes
        self.check_one(
            x,
            axis,
            axis_name=axis_name,
            axis_size=axis_size,
            scatter_dimension=scatter_dimension,
            tiled=tiled,
        )
        d = scatter_dimension
        x = x if axis is None else move_axis(x, axis, 0)
        batched = 0 if axis is None else 1
        sizes = [size if other == name else size_in_scope(other) for other in axis_name]
        if not tiled:
            x = split_axis_into(x, d + batched, sizes)
        for other, count in zip(axis_name, sizes, strict=True):
            if other == name:
                x = reduce_sum(x, (0,)) if batched else mul(x, size)
                if tiled:
                    x = split_axis_into(x, d, (size, aval_of(x).shape[d] // size))
                x, batched = move_axis(x, d, 0), 1
            else:
                x = self.bind(
                    x, axis_name=(other,), axis_size=count, scatter_dimension=d + batched, tiled=tiled
                )
        return x, 0


class PPermute(Collective):
    """Sends values along the axis: element `destination` gets the value of `source` for each pair of `perm`, elements
    that nothing is sent to get zeros."""

    name = "ppermute"
    moves_elements = True

    def infer(self, x, *, axis_name, perm):
        return x

    def emit(self, builder, mesh, x, *, axis_name, perm):
        groups = device_groups(mesh, axis_name)
        pairs = np.array([[g[s], g[d]] for g in groups for s, d in perm], int).reshape(-1, 2)
        return builder.op("collective_permute", (x,), x.aval, communication(builder, pairs, permutes=True))

    def jvp(self, primals, tangents, **params):
        return self.bind(*primals, **params), self.bind(*tangents, **params)

    def transpose(self, cotangent, x, *, axis_name, perm):
        return (self.bind(cotangent, axis_name=axis_name, perm=tuple((d, s) for s, d in perm)),)

    def batch(self, operands, batch_axes, **params):
        return self.bind(operands[0], **params), batch_axes[0]

    def batch_collective(self, size, name, operands, batch_axes, *, axis_name, perm):
        x = batch_to_front(operands[0], batch_axes[0], size)
        sources = {destination: origin for origin, destination in perm}
        aval = aval_of(x)
        nothing = zeros(aval.with_shape((1, *aval.shape[1:])))
        rows = [
            slice_axis(x, sources[i], sources[i] + 1, 0) if i in sources else nothing for i in range(size)
        ]
        return concatenate(rows, 0), 0


class AllToAll(Grouped):
    """Element i gets piece i, along `split_axis`, of every element's value, laid along `concat_axis`."""

    name = "all_to_all"
    moves_elements = True

    def infer(self, x, *, axis_name, axis_size, split_axis, concat_axis, axis_index_groups=None):
        shape = list(x.shape)
        if shape[split_axis] != axis_size:
            raise ValueError(
                f"all_to_all: axis {split_axis} of the operand of shape {x.shape} must have the size {axis_size} "
                f"of the named axis {axis_name[0]!r}"
            )
        del shape[split_axis]
        shape.insert(concat_axis, axis_size)
        return x.with_shape(tuple(shape))

    def emit(self, builder, mesh, x, *, axis_name, axis_size, split_axis, concat_axis, axis_index_groups=None):
        groups = device_groups(mesh, axis_name, axis_index_groups)
        attributes = (
            f"split_dimension = {split_axis} : i64, concat_dimension = {split_axis} : i64, "
            f"split_count = {axis_size} : i64, {communication(builder, groups)}"
        )
        exchanged = builder.op("all_to_all", (x,), [x.aval], attributes)[0]
        order = [i for i in range(x.ndim) if i != split_axis]
        order.insert(concat_axis, split_axis)
        if order == list(range(x.ndim)):
            return exchanged
        out = x.aval.with_shape(tuple(x.shape[i] for i in order))
        return builder.op("transpose", (exchanged,), out, f"permutation = {integers(order)}")

    def jvp(self, primals, tangents, **params):
        return self.bind(*primals, **params), self.bind(*tangents, **params)

    def transpose(self, cotangent, x, *, axis_name, axis_size, split_axis, concat_axis, **groups):
        back = self.bind(
            cotangent,
            axis_name=axis_name,
            axis_size=axis_size,
            split_axis=concat_axis,
            concat_axis=split_axis,
            **groups,
        )
        return (back,)

    def batch(self, operands, batch_axes, *, split_axis, concat_axis, **params):
        x = move_axis(operands[0], batch_axes[0], 0)
        return self.bind(x, split_axis=split_axis + 1, concat_axis=concat_axis + 1, **params), 0

    def of_all(
        self, size, name, operands, batch_axes, *, axis_name, axis_size, split_axis, concat_axis
    ):
        self.check_one(
            operands[0],
            batch_axes[0],
            axis_name=axis_name,
            axis_size=axis_size,
            split_axis=split_axis,
            concat_axis=concat_axis,
        )
        x = batch_to_front(operands[0], batch_axes[0], size)
        sizes = [size if other == name else size_in_scope(other) for other in axis_name]
        # An exchange over several names is one over each of them, of that part of the position.
        x = split_axis_into(x, split_axis + 1, sizes)
        for i, other in enumerate(axis_name, split_axis + 1):
            if other == name:
                x = move_axis(
                    move_axis(x, i, 0), 1, i
                )  # the piece is the new batch axis, the sender the piece
            else:
                count = sizes[i - split_axis - 1]
                x = self.bind(x, axis_name=(other,), axis_size=count, split_axis=i, concat_axis=i)
        x = merge_axes(x, split_axis + 1, len(axis_name))
        return move_axis(x, split_axis + 1, concat_axis + 1), 0


class AxisIndex(Collective):
    """The position along the axis."""

    name = "axis_index"

    def infer(self, *, axis_name):
        return ShapedArray((), _int32)

    def emit(self, builder, mesh, *, axis_name):
        (name,) = axis_name
        axis = mesh.axis_names.index(name)
        word = ShapedArray((), np.dtype(np.uint32))
        here = builder.op("partition_id", (), word)
        stride = builder.constant(int(np.prod(mesh.axis_sizes[axis + 1 :])), word)
        size = builder.constant(mesh.shape[name], word)
        place = builder.op("remainder", (builder.op("divide", (here, stride), word), size), word)
        return builder.convert(place, _int32)

    def jvp(self, primals, tangents, **params):
        out = self.bind(**params)
        return out, Zero.like(out)

    def batch_collective(self, size, name, operands, batch_axes, *, axis_name):
        return iota(_int32, (size,), 0), 0


class PVary(Collective):
    """`x`, whose type says that it may differ along the axes, though it is the same on all devices."""

    name = "pvary"

    def infer(self, x, *, axis_name):
        return x.with_vma(x.vma | set(axis_name))

    def infer_varying(self, avals, params, result):
        return result

    def emit(self, builder, mesh, x, *, axis_name):
        return x

    def jvp(self, primals, tangents, **params):
        return self.bind(*primals, **params), self.bind(*tangents, **params)

    def transpose(self, cotangent, x, *, axis_name):
        return (cotangent,)  # whoever adds it to those of a value that does not vary sums it over the axes

    def batch(self, operands, batch_axes, **params):
        return self.bind(operands[0], **params), batch_axes[0]

    def batch_collective(self, size, name, operands, batch_axes, *, axis_name):
        rest = tuple(n for n in axis_name if n != name)
        return (self.bind(operands[0], axis_name=rest) if rest else operands[0]), batch_axes[0]


psum_p = PSum()
pvary_p = PVary()
pmax_p = PMax()
pmin_p = PMin()
all_gather_p = AllGather()
psum_scatter_p = PSumScatter()
ppermute_p = PPermute()
all_to_all_p = AllToAll()
axis_index_p = AxisIndex()
