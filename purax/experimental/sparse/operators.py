"""The operators and methods of sparse arrays that are written with functions of other modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.core.array import Array
from purax.core.source import located
from purax.experimental.sparse.base import JAXSparse, refuse
from purax.experimental.sparse.bcoo import BCOO, bcoo_todense
from purax.experimental.sparse.products import (
    bcoo_dot_general,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
    bcoo_reduce_sum,
)
from purax.experimental.sparse.shaping import (
    bcoo_broadcast_in_dim,
    bcoo_dynamic_slice,
    bcoo_layout_like,
    bcoo_reshape,
    bcoo_rev,
    bcoo_slice,
    bcoo_squeeze,
    bcoo_transpose,
)


def with_data(mat: Any, data: Any) -> Any:
    """The same sparse array with other elements."""
    parts, info = mat.tree_flatten()
    return type(mat).tree_unflatten(info, (data, *parts[1:]))


def add(x: Any, y: Any) -> Any:
    """The sum of two arrays; sparse if both are."""
    if not isinstance(x, BCOO):
        x, y = y, x
    if isinstance(y, BCOO):
        if x.shape != y.shape:
            shape = jnp.broadcast_shapes(x.shape, y.shape)
            x, y = (_broadcast(a, shape) for a in (x, y))
        if (x.n_batch, x.n_dense) != (y.n_batch, y.n_dense):
            n_batch, n_dense = min(x.n_batch, y.n_batch), min(x.n_dense, y.n_dense)
            x, y = (a.update_layout(n_batch=n_batch, n_dense=n_dense) for a in (x, y))
        dtype = jnp.result_type(x.data, y.data)
        from_both = [
            jnp.concatenate([_full(x, part), _full(y, part)], axis=x.n_batch) for part in ("data", "indices")
        ]
        return BCOO((from_both[0].astype(dtype), from_both[1]), shape=x.shape)
    y = jnp.asarray(y)
    if jnp.broadcast_shapes(x.shape, y.shape) != y.shape:
        raise located(
            NotImplementedError,
            f"the sum of {x!r} and a dense array of shape {y.shape} is dense and larger than that; use "
            "`sparse.todense` if you want it",
        )
    return bcoo_todense(x) + y


def _full(mat: BCOO, part: str) -> Any:
    array = getattr(mat, part)
    return jnp.broadcast_to(array, (*mat.batch_shape, *array.shape[mat.n_batch :]))


def _broadcast(mat: BCOO, shape: tuple[int, ...]) -> BCOO:
    if mat.shape == shape:
        return mat
    return bcoo_broadcast_in_dim(
        mat, shape=shape, broadcast_dimensions=range(len(shape) - mat.ndim, len(shape))
    )


def multiply(x: Any, y: Any) -> Any:
    """The elementwise product of a sparse array with anything, which is sparse."""
    if not isinstance(x, BCOO):
        x, y = y, x
    if isinstance(y, BCOO):
        return bcoo_multiply_sparse(x, bcoo_layout_like(y, x) if y.ndim == x.ndim else _broadcast(y, x.shape))
    shape = jnp.broadcast_shapes(x.shape, jnp.shape(y))
    if shape != x.shape:
        x = _broadcast(x, shape)
    if not jnp.ndim(y):
        return with_data(x, x.data * y)
    return BCOO(
        (bcoo_multiply_dense(x, y), _full(x, "indices")),
        shape=x.shape,
        indices_sorted=x.indices_sorted,
        unique_indices=x.unique_indices,
    )


def matmul(x: Any, y: Any) -> Any:
    """The matrix product, of vectors and matrices, and of batches of matrices with a dense second factor."""
    dense = [a if isinstance(a, BCOO) else jnp.asarray(a) for a in (x, y)]
    x, y = dense
    if not x.ndim or not y.ndim:
        raise located(TypeError, f"the matrix product needs at least one axis, got {x.shape} and {y.shape}")
    contracted = ([x.ndim - 1], [max(y.ndim - 2, 0)])
    if x.ndim > 2 and y.ndim > 2:
        batch = list(range(x.ndim - 2))
        if x.ndim != y.ndim or x.shape[:-2] != y.shape[:-2]:
            raise located(
                ValueError,
                f"the matrix product of {x.shape} and {y.shape}: batch axes must be equal where an array is sparse",
            )
        return bcoo_dot_general(x, y, dimension_numbers=(contracted, (batch, batch)))
    product = bcoo_dot_general(x, y, dimension_numbers=(contracted, ([], [])))
    if y.ndim > 2 and x.ndim == 2:  # (rows of x, batch of y, columns of y)
        if isinstance(product, BCOO):
            order = (*range(1, product.ndim - 1), 0, product.ndim - 1)
            return bcoo_transpose(product.update_layout(n_batch=0), permutation=order)
        return jnp.moveaxis(product, 0, -2)
    return product


def sum_of(mat: BCOO, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """The sum over axes: an array if no axis is left, else sparse. `out` must be None."""
    refuse("sum", out=out)
    axes = range(mat.ndim) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    axes = sorted(a % mat.ndim for a in axes) if mat.ndim else []
    total = bcoo_reduce_sum(mat if dtype is None else with_data(mat, mat.data.astype(dtype)), axes=axes)
    if not total.shape:
        value = bcoo_todense(total)
        return value.reshape((1,) * mat.ndim) if keepdims else value
    if keepdims:
        shape = [1 if a in axes else n for a, n in enumerate(mat.shape)]
        kept = [a for a in range(mat.ndim) if a not in axes]
        return bcoo_broadcast_in_dim(total, shape=shape, broadcast_dimensions=kept)
    return total


def item(mat: BCOO, index: Any) -> BCOO:
    """The part of a sparse array at integers, slices, None and `...`, or at one array of integers on the first axis."""
    index = index if isinstance(index, tuple) else (index,)
    named = sum(i is not None and i is not Ellipsis for i in index)
    if named > mat.ndim:
        raise located(IndexError, f"too many indices for an array of shape {mat.shape}: {index}")
    missing = (slice(None),) * (mat.ndim - named)
    if Ellipsis in [i if i is Ellipsis else None for i in index]:
        place = [i is Ellipsis for i in index].index(True)
        index = (*index[:place], *missing, *index[place + 1 :])
    else:
        index = (*index, *missing)
    places = [i for i in index if i is not None]
    if any(not isinstance(i, slice) and jnp.ndim(i) for i in places):
        return _taken(mat, index)
    bounds: list[tuple[int, int, int]] = []
    backwards: list[int] = []
    dynamic: list[tuple[int, Any]] = []
    for axis, (i, n) in enumerate(zip(places, mat.shape, strict=True)):
        if isinstance(i, slice):
            start, stop, step = i.indices(n)
            if step < 0:
                count = len(range(start, stop, step))
                start, stop, step = start + (count - 1) * step, start + 1, -step
                if not count:
                    start = stop = 0
                backwards.append(axis)
            bounds.append((start, max(stop, start), step))
        elif isinstance(i, (int, np.integer)):
            if not -n <= i < n:
                raise located(IndexError, f"index {i} is out of bounds for axis {axis} with size {n}")
            bounds.append((int(i % n), int(i % n) + 1, 1))
        else:
            dynamic.append((axis, i))
            bounds.append((0, n, 1))
    if dynamic:
        where: list[Any] = [0] * mat.ndim
        sizes = list(mat.shape)
        for axis, i in dynamic:
            where[axis], sizes[axis], bounds[axis] = i, 1, (0, 1, 1)
        mat = bcoo_dynamic_slice(mat, where, sizes)
    starts, limits, steps = ([bound[i] for bound in bounds] for i in range(3))
    part = bcoo_slice(mat, start_indices=starts, limit_indices=limits, strides=steps)
    if backwards:
        part = bcoo_rev(part, backwards)
    gone = [axis for axis, i in enumerate(places) if not isinstance(i, slice)]
    part = bcoo_squeeze(part, dimensions=gone) if gone else part
    if any(i is None for i in index):
        kept = [i for i in index if i is None or isinstance(i, slice)]
        old = iter(part.shape)
        shape = [1 if i is None else next(old) for i in kept]
        axes = [position for position, i in enumerate(kept) if i is not None]
        part = bcoo_broadcast_in_dim(part, shape=shape, broadcast_dimensions=axes)
    return part


def _taken(mat: BCOO, index: tuple) -> BCOO:
    arrays = [i for i in index if i is not None and not isinstance(i, slice)]
    if len(arrays) != 1 or index[0] is not arrays[0] or any(i != slice(None) for i in index[1:]):
        raise located(
            NotImplementedError,
            f"a sparse array takes one array of integers, on its first axis, got the index {index}",
        )
    rows = jnp.asarray(arrays[0])
    flat = [item(mat, (rows.reshape(-1)[i],)) for i in range(rows.size)]
    width = max([part.nse for part in flat], default=0)
    if not flat or any(part.nse != width for part in flat):
        raise located(NotImplementedError, "a sparse array cannot be indexed by an empty array")
    data = jnp.stack([part.data for part in flat]).reshape(*rows.shape, *flat[0].data.shape)
    indices = jnp.stack([part.indices for part in flat]).reshape(*rows.shape, *flat[0].indices.shape)
    return BCOO((data, indices), shape=(*rows.shape, *mat.shape[1:]))


def _iterate(mat: BCOO) -> Any:
    if not mat.shape:
        raise located(TypeError, "a sparse array without axes cannot be iterated over")
    return (item(mat, i) for i in range(mat.shape[0]))


def _reshaped(mat: BCOO, *sizes: Any) -> BCOO:
    shape: Sequence[int] = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    return bcoo_reshape(mat, new_sizes=tuple(shape))


def _transposed(mat: BCOO, axes: Sequence[int] | None = None) -> BCOO:
    return bcoo_transpose(mat, permutation=range(mat.ndim)[::-1] if axes is None else axes)


def unique(mat: BCOO) -> BCOO:
    """With each index once, so that a function can be applied to the elements."""
    return mat if mat.unique_indices else mat.sum_duplicates(nse=mat.nse, remove_zeros=False)


def power(mat: BCOO, exponent: Any) -> BCOO:
    if not isinstance(exponent, (int, float)) or exponent <= 0:
        raise located(
            NotImplementedError, f"a sparse array to the power of {exponent} is dense; use `sparse.todense`"
        )
    whole = unique(mat)
    return with_data(whole, whole.data**exponent)


def _divided(mat: BCOO, divisor: Any) -> BCOO:
    if isinstance(divisor, JAXSparse):
        return NotImplemented
    return (
        multiply(mat, 1 / jnp.asarray(divisor)) if jnp.ndim(divisor) else with_data(mat, mat.data / divisor)
    )


def _refused(what: str) -> Any:
    def method(self: BCOO, other: Any) -> Any:
        raise located(
            NotImplementedError,
            f"{what} a sparse array gives a dense one; use `sparse.todense` if you want it",
        )

    return method


def _subtracted(x: Any, y: Any) -> Any:
    other: Any = y if isinstance(y, JAXSparse) else jnp.asarray(y)
    return add(x, -other)


def _magnitude(mat: BCOO) -> BCOO:
    whole = unique(mat)
    return with_data(whole, abs(whole.data))


def dense_array(x: Any) -> Array:
    return x.todense() if isinstance(x, JAXSparse) else jnp.asarray(x)


METHODS: dict[str, Any] = {
    "__add__": add,
    "__radd__": add,
    "__sub__": _subtracted,
    "__rsub__": lambda self, other: add(-self, other),
    "__mul__": multiply,
    "__rmul__": multiply,
    "__truediv__": _divided,
    "__rtruediv__": _refused("division by"),
    "__matmul__": matmul,
    "__rmatmul__": lambda self, other: matmul(other, self),
    "__neg__": lambda self: with_data(self, -self.data),
    "__pos__": lambda self: self,
    "__abs__": _magnitude,
    "__pow__": power,
    "__rpow__": _refused("a power of"),
    "__getitem__": item,
    "__iter__": _iterate,
    "__eq__": _refused("comparison with"),
    "__ne__": _refused("comparison with"),
    "__lt__": _refused("comparison with"),
    "__le__": _refused("comparison with"),
    "__gt__": _refused("comparison with"),
    "__ge__": _refused("comparison with"),
    "sum": sum_of,
    "reshape": _reshaped,
    "transpose": _transposed,
    "astype": lambda self, dtype: with_data(self, self.data.astype(dtype)),
}


def install() -> None:
    """Gives `BCOO` its operators."""
    for name, function in METHODS.items():
        setattr(BCOO, name, function)
