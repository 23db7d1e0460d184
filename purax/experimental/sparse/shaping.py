"""BCOO arrays transposed, broadcast, reshaped, cut and joined. Batch, sparse and dense axes stay apart."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.api.vmap import vmap
from purax.core.limits import finite
from purax.core.source import located
from purax.errors import shown
from purax.experimental.sparse.base import all_are, refuse, takes
from purax.experimental.sparse.bcoo import (
    BCOO,
    bcoo_sum_duplicates,
    bcoo_update_layout,
    full_parts,
    is_inside,
    like,
)
from purax.numpy._programs import concrete_value
from purax.primitives.shape.dynamic_slicing import dynamic_slice
from purax.primitives.shape.gather_scatter import GatherScatterMode


def _axes_of(name: str, mat: BCOO, axes: Sequence[int]) -> tuple[int, ...]:
    numbers = tuple(operator.index(axis) for axis in axes)
    if any(not -mat.ndim <= axis < mat.ndim for axis in numbers):
        raise located(ValueError, f"{name}: axes {numbers} are not all axes of an array of shape {mat.shape}")
    return tuple(axis % mat.ndim for axis in numbers)


@takes(BCOO)
def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """A sparse array with its axes in another order, in which batch, sparse and dense axes stay together.

    >>> import purax.numpy as jnp
    >>> from purax.experimental import sparse
    >>> sparse.bcoo_transpose(sparse.BCOO.fromdense(jnp.ones((2, 3))), permutation=(1, 0))
    BCOO(float32[3, 2], nse=6)
    """
    order = _axes_of("bcoo_transpose", mat, permutation)
    if sorted(order) != list(range(mat.ndim)):
        raise located(
            ValueError, f"bcoo_transpose: {permutation} is not a permutation of the axes of {mat.shape}"
        )
    b, s = mat.n_batch, mat.n_sparse
    batch, sparse, dense = order[:b], order[b : b + s], order[b + s :]
    if sorted(batch) != list(range(b)) or sorted(dense) != list(range(b + s, mat.ndim)):
        raise located(
            NotImplementedError,
            f"bcoo_transpose: permutation {tuple(order)} mixes batch, sparse and dense axes of an array with "
            f"n_batch={b} and n_dense={mat.n_dense}; use `update_layout` first",
        )
    data = jnp.transpose(mat.data, (*batch, b, *[axis - s + 1 for axis in dense]))
    indices = jnp.transpose(mat.indices, (*batch, b, b + 1))
    if s:
        indices = indices[..., np.array([axis - b for axis in sparse], np.int32)]
    return BCOO(
        (data, indices),
        shape=tuple(mat.shape[axis] for axis in order),
        indices_sorted=mat.indices_sorted and list(sparse) == sorted(sparse),
        unique_indices=mat.unique_indices,
    )


@takes(BCOO)
def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCOO:
    """A sparse array repeated along new axes. New axes before the others are batch axes, after them dense axes."""
    refuse("bcoo_broadcast_in_dim", sharding=sharding)
    shape = tuple(finite(shape))
    places = tuple(operator.index(axis) for axis in finite(broadcast_dimensions))
    if len(places) != mat.ndim or list(places) != sorted(set(places)):
        raise located(
            ValueError,
            "bcoo_broadcast_in_dim: broadcast_dimensions must name, in increasing order, an axis of the result for "
            f"each axis of an array of shape {mat.shape}, got {places}",
        )
    if any(mat.shape[i] not in (1, shape[place]) for i, place in enumerate(places)):
        raise located(
            ValueError, f"bcoo_broadcast_in_dim: {mat.shape} cannot be broadcast to {shape} along {places}"
        )
    b, s = mat.n_batch, mat.n_sparse
    sparse_places = places[b : b + s]
    # New axes up to the first sparse one are batch axes, after the last one dense axes, between them sparse axes.
    first = sparse_places[0] if s else (places[b] if mat.n_dense else len(shape))
    last = sparse_places[-1] + 1 if s else first
    if any(place >= first for place in places[:b]) or any(place < last for place in places[b + s :]):
        raise located(ValueError, f"bcoo_broadcast_in_dim: broadcast_dimensions {places} mix kinds of axes")
    data, indices = full_parts(mat)
    nse = mat.nse
    batch_shape, dense_shape = shape[:first], shape[last:]
    dense_places = [place - last for place in places[b + s :]]

    def spread(x: Any, trailing: tuple[int, ...], kept: Sequence[int], wide: tuple[int, ...]) -> Any:
        """Batch axes to their places, then `trailing`, then axes `kept` among the axes of `wide`."""
        row = [1] * first
        for i, place in enumerate(places[:b]):
            row[place] = x.shape[i]
        tail = [1] * len(wide)
        for i, place in enumerate(kept):
            tail[place] = x.shape[b + len(trailing) + i]
        x = x.reshape(*row, *trailing, *tail)
        return jnp.broadcast_to(x, (*batch_shape, *trailing, *wide))

    data = spread(data, (nse,), dense_places, dense_shape)
    indices = spread(indices, (nse, s), (), ())
    is_sorted = mat.indices_sorted
    columns_, sizes = [], []
    for place in range(first, last):
        if place in sparse_places and mat.shape[b + sparse_places.index(place)] == shape[place]:
            columns_.append(indices[..., sparse_places.index(place)])
            sizes.append(shape[place])
        else:
            if place in sparse_places:
                columns_.append(indices[..., sparse_places.index(place)])
            else:
                columns_.append(jnp.zeros((*batch_shape, nse), indices.dtype))
            sizes.append(1)
    wide_indices = jnp.stack(columns_, axis=-1) if columns_ else indices
    inside: Any = is_inside(wide_indices, sizes) if columns_ else None
    for position, place in enumerate(range(first, last)):
        count = shape[place]
        if sizes[position] == count:
            continue
        # Entries come once for each new index; those that are not there stay outside.
        copies = wide_indices.shape[-2]
        wide_indices = jnp.repeat(wide_indices, count, axis=-2)
        data = jnp.repeat(data, count, axis=first)
        inside = jnp.repeat(inside, count, axis=-1)
        new = jnp.where(inside, jnp.tile(jnp.arange(count, dtype=indices.dtype), copies), count)
        wide_indices = wide_indices.at[..., position].set(new)
        is_sorted = False
    if inside is not None:
        beyond = np.asarray(shape[first:last], indices.dtype)
        wide_indices = jnp.where(inside[..., None], wide_indices, beyond)
    return BCOO(
        (data, wide_indices), shape=shape, indices_sorted=is_sorted, unique_indices=mat.unique_indices
    )


@takes(BCOO)
def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: Any = None
) -> BCOO:
    """A sparse array with the same elements in another shape, in which batch, sparse and dense axes stay apart."""
    refuse("bcoo_reshape", sharding=sharding)
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    new = tuple(operator.index(n) for n in finite(new_sizes))
    if -1 in new:
        rest = math.prod(n for n in new if n != -1)
        new = tuple(mat.size // max(rest, 1) if n == -1 else n for n in new)
    if math.prod(new) != mat.size:
        raise located(ValueError, f"bcoo_reshape: an array of shape {mat.shape} cannot have the shape {new}")
    parts = _divided(new, [math.prod(p) for p in (mat.batch_shape, mat.sparse_shape, mat.dense_shape)], mat)
    if parts is None:
        raise located(
            ValueError,
            f"bcoo_reshape: {new} mixes batch, sparse and dense axes of an array of shape {mat.shape} with "
            f"n_batch={mat.n_batch} and n_dense={mat.n_dense}",
        )
    batch, sparse, dense = parts
    data, indices = full_parts(mat)
    data = data.reshape(*batch, mat.nse, *dense)
    indices = indices.reshape(*batch, mat.nse, mat.n_sparse)
    if sparse != mat.sparse_shape:
        inside = is_inside(indices, mat.sparse_shape)
        flat = jnp.zeros(indices.shape[:-1], indices.dtype)
        for i, size in enumerate(mat.sparse_shape):
            flat = flat * size + indices[..., i]
        columns_ = []
        for size in reversed(sparse):
            columns_.append(flat % max(size, 1))
            flat = flat // max(size, 1)
        indices = (
            jnp.stack(columns_[::-1], axis=-1) if columns_ else jnp.zeros((*flat.shape, 0), indices.dtype)
        )
        indices = jnp.where(inside[..., None], indices, np.asarray(sparse, indices.dtype))
        if not sparse:
            data = jnp.where(like(inside, data), data, 0)
    return BCOO(
        (data, indices), shape=new, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices
    )


def _divided(new: tuple[int, ...], sizes: Sequence[int], mat: BCOO) -> tuple | None:
    """Sizes as those of batch, sparse and dense axes. Axes of size 1 go with the axes before them."""
    for first in _cuts(new, sizes[0], mat.n_batch):
        for last in _cuts(new[first:], sizes[1], mat.n_sparse):
            if math.prod(new[first + last :]) == sizes[2]:
                if (not mat.n_batch and first) or (not mat.n_dense and first + last < len(new)):
                    continue
                return new[:first], new[first : first + last], new[first + last :]
    return None


def _cuts(sizes: tuple[int, ...], product: int, likely: int) -> list[int]:
    """Where to cut so that the sizes before have a product; the likely place first."""
    found = [n for n in range(len(sizes) + 1) if math.prod(sizes[:n]) == product]
    return sorted(found, key=lambda n: (n != likely, -n))


@takes(BCOO)
def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """A sparse array without axes of size 1."""
    axes = set(_axes_of("bcoo_squeeze", arr, dimensions))
    if any(arr.shape[axis] != 1 for axis in axes):
        raise located(
            ValueError,
            f"bcoo_squeeze: axes {sorted(axes)} of an array of shape {arr.shape} have not all size 1",
        )
    b, s = arr.n_batch, arr.n_sparse
    data, indices = full_parts(arr)
    sparse = [axis - b for axis in axes if b <= axis < b + s]
    if sparse:
        inside = is_inside(indices, arr.sparse_shape)
        kept = [i for i in range(s) if i not in sparse]
        beyond = np.asarray([arr.sparse_shape[i] for i in kept], indices.dtype)
        if kept:
            indices = jnp.where(inside[..., None], indices[..., np.array(kept)], beyond)
        else:
            indices = indices[..., :0]
            data = jnp.where(like(inside, data), data, 0)
    batch = [axis for axis in axes if axis < b]
    data = jnp.squeeze(data, tuple([*batch, *(axis - s + 1 for axis in axes if axis >= b + s)]))
    indices = jnp.squeeze(indices, tuple(batch))
    return BCOO(
        (data, indices),
        shape=tuple(n for axis, n in enumerate(arr.shape) if axis not in axes),
        indices_sorted=arr.indices_sorted,
        unique_indices=arr.unique_indices,
    )


@takes(BCOO)
def bcoo_slice(
    mat: BCOO,
    *,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> BCOO:
    """A part of a sparse array, as `lax.slice`. No more entries are kept than the part has elements."""
    steps = (1,) * mat.ndim if strides is None else tuple(finite(strides))
    starts, limits = tuple(finite(start_indices)), tuple(finite(limit_indices))
    if not len(starts) == len(limits) == len(steps) == mat.ndim:
        raise located(
            ValueError,
            f"bcoo_slice: an array of shape {mat.shape} needs {mat.ndim} starts, limits and strides",
        )
    b, s = mat.n_batch, mat.n_sparse
    data, indices = full_parts(mat)
    cuts = [slice(*cut) for cut in zip(starts, limits, steps, strict=True)]
    data = data[(*cuts[:b], slice(None), *cuts[b + s :])]
    indices = indices[tuple(cuts[:b])]
    sizes = [-(-(limit - start) // step) for start, limit, step in zip(starts, limits, steps, strict=True)]
    if s:
        first = np.asarray(starts[b : b + s], indices.dtype)
        step = np.asarray(steps[b : b + s], indices.dtype)
        moved = indices - first
        new = moved // step
        inside = jnp.all(moved % step == 0, axis=-1) & is_inside(new, sizes[b : b + s])
        inside &= is_inside(indices, mat.sparse_shape)
        data, indices = _kept(data, new, inside, sizes[b : b + s])
    result = BCOO((data, indices), shape=sizes, unique_indices=mat.unique_indices)
    return _no_larger(result)


def _kept(data: Any, indices: Any, inside: Any, shape: Sequence[int]) -> tuple[Any, Any]:
    """Entries that are inside; the others become entries that are not there."""
    data = jnp.where(like(inside, data), data, 0)
    return data, jnp.where(inside[..., None], indices, np.asarray(shape, indices.dtype))


def _no_larger(mat: BCOO) -> BCOO:
    most = math.prod(mat.sparse_shape)
    return bcoo_sum_duplicates(mat, nse=most) if mat.nse > most else mat


@takes(BCOO)
def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """A part of a sparse array that starts at traced indices, which are moved so that it is inside."""
    sizes = tuple(operator.index(n) for n in finite(slice_sizes))
    if len(start_indices) != mat.ndim or len(sizes) != mat.ndim:
        raise located(
            ValueError, f"bcoo_dynamic_slice: an array of shape {mat.shape} needs {mat.ndim} starts and sizes"
        )
    b, s = mat.n_batch, mat.n_sparse
    data, indices = full_parts(mat)
    starts = []
    for start, n, size in zip(start_indices, mat.shape, sizes, strict=True):
        start = jnp.asarray(start)
        start = jnp.where(start < 0, start + n, start)
        starts.append(jnp.clip(start, 0, n - size).astype(indices.dtype))
    zero = jnp.zeros((), indices.dtype)
    data = dynamic_slice(data, [*starts[:b], zero, *starts[b + s :]], (*sizes[:b], mat.nse, *sizes[b + s :]))
    indices = dynamic_slice(indices, [*starts[:b], zero, zero], (*sizes[:b], mat.nse, s))
    if s:
        new = indices - jnp.stack(starts[b : b + s])
        inside = is_inside(new, sizes[b : b + s]) & is_inside(indices, mat.sparse_shape)
        data, indices = _kept(data, new, inside, sizes[b : b + s])
    return _no_larger(BCOO((data, indices), shape=sizes, unique_indices=mat.unique_indices))


@takes(BCOO)
def bcoo_gather(
    operand: BCOO,
    start_indices: Any,
    dimension_numbers: Any,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> BCOO:
    """Windows of a sparse array at indices, as `lax.gather`; the axes of the indices become batch axes.

    The array has no batch axes, and the axes of windows follow those of the indices in the result.

    Args:
        operand, start_indices, dimension_numbers, slice_sizes: as in `lax.gather`.
        unique_indices, indices_are_sorted: promises that are not needed.
        mode: of windows that are not wholly inside. None and "promise_in_bounds" count negative indices from the end
            and move windows inside; "clip" only moves them; "fill" makes them `fill_value`.
        fill_value: 0, unless it is known that all windows are inside: others would not be sparse.
    """
    mode = None if mode is None else GatherScatterMode.from_any(mode)
    starts = jnp.asarray(start_indices)
    outer = starts.ndim - 1
    limits = np.array([operand.shape[a] - slice_sizes[a] for a in dimension_numbers.start_index_map])
    fills = mode in (GatherScatterMode.FILL_OR_DROP, GatherScatterMode.ONE_HOT)
    if mode is GatherScatterMode.FILL_OR_DROP and (fill_value is None or fill_value != 0):
        known = concrete_value(starts)
        if known is None or ((known < 0) | (known > limits)).any():
            raise located(
                NotImplementedError,
                f"bcoo_gather: where windows are outside, mode='fill' with fill_value={shown(fill_value)} gives "
                "what is not sparse. Use fill_value=0, mode='clip' or mode='promise_in_bounds'.",
            )
        fills = False
    if operand.n_batch or tuple(dimension_numbers.offset_dims) != tuple(
        range(outer, outer + len(dimension_numbers.offset_dims))
    ):
        raise located(
            NotImplementedError,
            "bcoo_gather takes arrays without batch axes, and offset_dims after the axes of the indices",
        )

    def window(vector: Any) -> BCOO:
        inside = ((vector >= 0) & (vector <= limits)).all()
        if mode is GatherScatterMode.CLIP or fills:
            vector = jnp.clip(vector, 0, limits.astype(vector.dtype))
        place = [jnp.zeros((), vector.dtype)] * operand.ndim
        for i, axis in enumerate(dimension_numbers.start_index_map):
            place[axis] = vector[i]
        part = bcoo_dynamic_slice(operand, place, slice_sizes)
        if fills:
            part = BCOO((jnp.where(inside, part.data, 0), part.indices), shape=part.shape)
        return bcoo_squeeze(part, dimensions=dimension_numbers.collapsed_slice_dims)

    function = window
    for _ in range(outer):
        function = vmap(function)
    found = function(starts)
    kept = [n for axis, n in enumerate(finite(slice_sizes)) if axis not in dimension_numbers.collapsed_slice_dims]
    return BCOO((found.data, found.indices), shape=(*starts.shape[:-1], *kept))


@takes(BCOO)
def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """A sparse array with the order along some axes turned round."""
    axes = _axes_of("bcoo_rev", operand, dimensions)
    b, s = operand.n_batch, operand.n_sparse
    data, indices = full_parts(operand)
    batch = [axis for axis in axes if axis < b]
    data = jnp.flip(data, [*batch, *(axis - s + 1 for axis in axes if axis >= b + s)])
    indices = jnp.flip(indices, batch)
    sparse = [axis - b for axis in axes if b <= axis < b + s]
    for i in sparse:
        size = operand.sparse_shape[i]
        old = indices[..., i]
        indices = indices.at[..., i].set(jnp.where(old < size, size - 1 - old, old))
    return BCOO(
        (data, indices),
        shape=operand.shape,
        indices_sorted=operand.indices_sorted and not sparse,
        unique_indices=operand.unique_indices,
    )


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Sparse arrays one after the other along an axis.

    >>> import purax.numpy as jnp
    >>> from purax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.eye(2))
    >>> sparse.bcoo_concatenate([m, m], dimension=0)
    BCOO(float32[4, 2], nse=4)
    """
    operands = all_are(BCOO, "bcoo_concatenate", operands)
    if not operands:
        raise located(ValueError, "bcoo_concatenate: there is nothing to concatenate")
    first = operands[0]
    axis = _axes_of("bcoo_concatenate", first, (dimension,))[0]
    for other in operands[1:]:
        same = [n for i, n in enumerate(other.shape) if i != axis]
        if (
            other.ndim != first.ndim
            or (other.n_batch, other.n_dense) != (first.n_batch, first.n_dense)
            or same != [n for i, n in enumerate(first.shape) if i != axis]
        ):
            raise located(
                ValueError,
                f"bcoo_concatenate: arrays must have equal layouts and equal shapes but along axis {axis}, got "
                f"{[repr(x) for x in operands]}",
            )
    dtype = jnp.result_type(*[x.data for x in operands])
    b, s = first.n_batch, first.n_sparse
    shape = list(first.shape)
    shape[axis] = sum(x.shape[axis] for x in operands)
    all_data, all_indices, start = [], [], 0
    most = max(x.nse for x in operands)
    for x in operands:
        data, indices = full_parts(x)
        data = data.astype(dtype)
        size = x.shape[axis]
        if axis < b:
            missing = most - x.nse
            data = jnp.pad(data, [(0, 0)] * b + [(0, missing)] + [(0, 0)] * x.n_dense)
            beyond = jnp.asarray(np.asarray(x.sparse_shape, indices.dtype))
            filling = jnp.broadcast_to(beyond, (*indices.shape[:-2], missing, s))
            indices = jnp.concatenate([indices, filling], axis=-2)
        else:
            new_sparse = list(x.sparse_shape)
            if axis < b + s:
                inside = is_inside(indices, x.sparse_shape)
                indices = indices.at[..., axis - b].add(start)
                new_sparse[axis - b] = shape[axis]
                indices = jnp.where(inside[..., None], indices, np.asarray(new_sparse, indices.dtype))
            else:
                widths = [(0, 0)] * data.ndim
                widths[axis - s + 1] = (start, shape[axis] - start - size)
                data = jnp.pad(data, widths)
        start += size
        all_data.append(data)
        all_indices.append(indices)
    where = axis if axis < b else b
    return BCOO(
        (jnp.concatenate(all_data, where), jnp.concatenate(all_indices, where)),
        shape=shape,
        unique_indices=all(x.unique_indices for x in operands) and axis < b + s,
    )


@takes(BCOO, 2)
def bcoo_layout_like(mat: BCOO, other: BCOO) -> BCOO:
    """A sparse array with the numbers of batch and dense axes of another."""
    return bcoo_update_layout(mat, n_batch=other.n_batch, n_dense=other.n_dense, on_inefficient=None)
