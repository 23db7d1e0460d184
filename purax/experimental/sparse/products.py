"""Products and sums of BCOO arrays: with dense ones by gathering, with each other by matching indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.api.vmap import vmap
from purax.core import dtypes
from purax.core.array import Array
from purax.core.limits import finite
from purax.core.source import located
from purax.experimental.sparse.base import refuse, takes
from purax.experimental.sparse.bcoo import (
    BCOO,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_update_layout,
    columns,
    full_parts,
    is_inside,
    like,
    over_batches,
)
from purax.experimental.sparse.shaping import bcoo_transpose
from purax.lax.convolution import conv_general_dilated
from purax.primitives.products.contraction import dot_general


def bcoo_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """A product of two arrays of which at least one is sparse, as `lax.dot_general`.

    Args:
        lhs, rhs: arrays or `BCOO`s.
        dimension_numbers: ((contracted axes of lhs, of rhs), (batch axes of lhs, of rhs)). Batch axes of a sparse array
            must be among its own batch axes.
        precision: of the products; see `lax.Precision`.
        preferred_element_type: the dtype of the result.
        out_sharding: must be None.

    Returns:
        A `BCOO` if both are sparse, else an array.

    >>> import purax.numpy as jnp
    >>> from purax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(2 * jnp.eye(2))
    >>> sparse.bcoo_dot_general(m, jnp.ones(2), dimension_numbers=(([1], [0]), ([], [])))
    Array([2., 2.], dtype=float32)
    """
    refuse("bcoo_dot_general", out_sharding=out_sharding)
    (lc, rc), (lb, rb) = (
        (tuple(map(int, finite(a))), tuple(map(int, finite(b)))) for a, b in finite(dimension_numbers)
    )
    sizes = [
        tuple(x.shape[axis] for axis in axes) for x, axes in ((lhs, lc), (rhs, rc), (lhs, lb), (rhs, rb))
    ]
    if sizes[0] != sizes[1] or sizes[2] != sizes[3]:
        raise located(
            TypeError,
            f"bcoo_dot_general: contracted and batch axes must have equal sizes, got shapes {lhs.shape} and "
            f"{rhs.shape} with dimension_numbers {dimension_numbers}",
        )
    dtype = preferred_element_type or dtypes.result_type(lhs.dtype, rhs.dtype)
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        return _sparse_sparse(_cast(lhs, dtype), _cast(rhs, dtype), lc, rc, lb, rb)
    if isinstance(lhs, BCOO):
        return _sparse_dense(_cast(lhs, dtype), jnp.asarray(rhs).astype(dtype), lc, rc, lb, rb, precision)
    if isinstance(rhs, BCOO):
        out = _sparse_dense(_cast(rhs, dtype), jnp.asarray(lhs).astype(dtype), rc, lc, rb, lb, precision)
        # (batch, free axes of rhs, free axes of lhs) to (batch, lhs, rhs)
        batch, right = len(rb), rhs.ndim - len(rc) - len(rb)
        order = (*range(batch), *range(batch + right, out.ndim), *range(batch, batch + right))
        return jnp.transpose(out, order)
    return dot_general(jnp.asarray(lhs), jnp.asarray(rhs), ((lc, rc), (lb, rb)), precision=precision)


def _cast(mat: BCOO, dtype: Any) -> BCOO:
    return BCOO.tree_unflatten(mat.tree_flatten()[1], (mat.data.astype(dtype), mat.indices))


def _batches_in_front(
    mat: BCOO, contracted: Sequence[int], batch: Sequence[int]
) -> tuple[BCOO, tuple[int, ...], int]:
    """The array with batch axes of the product first, and contracted batch axes as sparse ones; the new numbers of the
    contracted axes; and how many batch axes are free."""
    if any(axis >= mat.n_batch for axis in batch):
        raise located(
            NotImplementedError,
            f"bcoo_dot_general: batch axes {tuple(batch)} of {mat!r} must be among its own batch axes; use "
            "`update_layout(n_batch=...)` first",
        )
    free = [axis for axis in range(mat.n_batch) if axis not in batch and axis not in contracted]
    inner = [axis for axis in range(mat.n_batch) if axis in contracted]
    order = [*batch, *free, *inner, *range(mat.n_batch, mat.ndim)]
    mat = bcoo_transpose(mat, permutation=order)
    mat = bcoo_update_layout(mat, n_batch=len(batch) + len(free))
    return mat, tuple(order.index(axis) for axis in contracted), len(free)


def _sparse_dense(
    lhs: BCOO,
    rhs: Any,
    lc: Sequence[int],
    rc: Sequence[int],
    lb: Sequence[int],
    rb: Sequence[int],
    precision: Any,
) -> Any:
    lhs, lc, free_batches = _batches_in_front(lhs, lc, lb)
    b, s = lhs.n_batch, lhs.n_sparse
    pairs = list(zip(lc, rc, strict=True))
    sparse = [(l - b, r) for l, r in pairs if l < b + s]  # noqa: E741
    dense = [(l - b - s, r) for l, r in pairs if l >= b + s]  # noqa: E741
    rest = [axis for axis in range(rhs.ndim) if axis not in rc and axis not in rb]
    rhs = jnp.transpose(rhs, [*rb, *(r for _, r in sparse), *(r for _, r in dense), *rest])
    free = [i for i in range(s) if i not in [place for place, _ in sparse]]
    free_shape = tuple(lhs.sparse_shape[i] for i in free)
    n_dense = lhs.n_dense
    kept_dense = [i for i in range(n_dense) if i not in [place for place, _ in dense]]
    letters = [chr(ord("a") + i) for i in range(n_dense + len(rest))]
    left = "z" + "".join(letters[:n_dense])
    right = ("z" if sparse else "") + "".join(letters[i] for i, _ in dense) + "".join(letters[n_dense:])
    result = "".join(letters[i] for i in kept_dense) + "".join(letters[n_dense:])
    equation = f"{left},{right}->{'z' if free else ''}{result}"

    def multiply(data: Any, indices: Any, rhs: Any) -> Any:
        if sparse:
            places = tuple(indices[:, i] for i, _ in sparse)
            rhs = rhs.at[places].get(mode="fill", fill_value=0)
        product = jnp.einsum(equation, data, rhs, precision=precision)
        if not free:
            return product
        out = jnp.zeros((*free_shape, *product.shape[1:]), product.dtype)
        return out.at[tuple(indices[:, i] for i in free)].add(
            product, mode="drop", wrap_negative_indices=False
        )

    function = multiply
    for _ in range(free_batches):
        function = vmap(function, (0, 0, None))
    data, indices = full_parts(lhs)
    if s and not sparse and not free:
        data = jnp.where(like(is_inside(indices, lhs.sparse_shape), data), data, 0)
    return over_batches(function, len(lb))(data, indices, rhs)


def _sparse_sparse(
    lhs: BCOO, rhs: BCOO, lc: Sequence[int], rc: Sequence[int], lb: Sequence[int], rb: Sequence[int]
) -> BCOO:
    """All pairs of entries whose contracted indices agree."""
    if lhs.n_dense or rhs.n_dense:
        raise located(
            NotImplementedError,
            f"bcoo_dot_general: the product of two sparse arrays with dense axes, {lhs!r} and {rhs!r}; use "
            "`update_layout(n_dense=0)` first",
        )
    lhs, lc, left_free = _batches_in_front(lhs, lc, lb)
    rhs, rc, right_free = _batches_in_front(rhs, rc, rb)
    b = len(lb)
    # Free batch axes become sparse ones: the result has the batch axes of the product only.
    lhs = bcoo_update_layout(lhs, n_batch=b)
    rhs = bcoo_update_layout(rhs, n_batch=b)
    left_in, right_in = [axis - b for axis in lc], [axis - b for axis in rc]
    left_out = [i for i in range(lhs.n_sparse) if i not in left_in]
    right_out = [i for i in range(rhs.n_sparse) if i not in right_in]
    shape = (*(lhs.sparse_shape[i] for i in left_out), *(rhs.sparse_shape[i] for i in right_out))
    beyond = np.asarray(shape, lhs.indices.dtype)

    def multiply(x: Any, i: Any, y: Any, j: Any) -> tuple[Any, Any]:
        n, m = x.shape[0], y.shape[0]
        matches = jnp.ones((n, m), bool)
        for a, c in zip(left_in, right_in, strict=True):
            matches &= i[:, None, a] == j[None, :, c]
        matches &= is_inside(i, lhs.sparse_shape)[:, None] & is_inside(j, rhs.sparse_shape)[None]
        parts = [jnp.broadcast_to(i[:, None, a], (n, m)) for a in left_out]
        parts += [jnp.broadcast_to(j[None, :, c].astype(i.dtype), (n, m)) for c in right_out]
        data = jnp.where(matches, x[:, None] * y[None], 0).reshape(-1)
        if not parts:
            return data, jnp.zeros((n * m, 0), i.dtype)
        found = jnp.where(matches[..., None], jnp.stack(parts, axis=-1), beyond)
        return data, found.reshape(-1, len(parts))

    parts = over_batches(multiply, b)(*full_parts(lhs), *full_parts(rhs))
    product = BCOO(parts, shape=(*lhs.batch_shape, *shape))
    most = min(product.nse, math.prod(shape))
    return bcoo_sum_duplicates(product, nse=most) if shape else _one_entry(product)


def _one_entry(mat: BCOO) -> BCOO:
    data = jnp.sum(mat.data, axis=mat.n_batch, keepdims=True)
    return BCOO((data, mat.indices[..., :1, :]), shape=mat.shape, unique_indices=True, indices_sorted=True)


def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Array:  # noqa: N803
    """Elements of a product of dense arrays, of which only those at given indices are computed.

    Args:
        A, B: arrays.
        indices: as those of a `BCOO` of the product's shape: (*batch, nse, n_sparse).
        dimension_numbers: as those of `bcoo_dot_general`.

    Returns:
        The elements: (*batch, nse, *dense).
    """
    A, B = jnp.asarray(A), jnp.asarray(B)  # noqa: N806
    (ac, bc), (ab, bb) = dimension_numbers
    n_batch = indices.ndim - 2
    a_free = [axis for axis in range(A.ndim) if axis not in ac and axis not in ab]
    b_free = [axis for axis in range(B.ndim) if axis not in bc and axis not in bb]
    n_sparse = indices.shape[-1]
    if n_batch != len(ab) or n_sparse != len(a_free) + len(b_free):
        product = dot_general(A, B, ((tuple(ac), tuple(bc)), (tuple(ab), tuple(bb))))

        def take(product: Any, indices: Any) -> Any:
            return product.at[columns(indices)].get(mode="fill", fill_value=0)

        return over_batches(take, n_batch)(product, indices)
    left, right = jnp.transpose(A, [*ab, *a_free, *ac]), jnp.transpose(B, [*bb, *b_free, *bc])

    def sample(left: Any, right: Any, indices: Any) -> Any:
        places = columns(indices)
        rows = left.at[places[: len(a_free)]].get(mode="fill", fill_value=0) if a_free else left[None]
        others = right.at[places[len(a_free) :]].get(mode="fill", fill_value=0) if b_free else right[None]
        return jnp.sum(rows * others, axis=tuple(range(1, rows.ndim)))

    return over_batches(sample, n_batch)(left, right, indices)


@takes(BCOO)
def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """A sparse array summed over some axes, which may leave indices that come several times."""
    chosen = sorted({axis % mat.ndim for axis in finite(axes)})
    batch = [axis for axis in chosen if axis < mat.n_batch]
    if batch:
        kept = [axis for axis in range(mat.n_batch) if axis not in batch]
        order = [*kept, *batch, *range(mat.n_batch, mat.ndim)]
        mat = bcoo_transpose(mat, permutation=order)
        # A sum over batches has the entries of all of them.
        b, count = len(kept), len(batch)
        data, indices = full_parts(mat)
        nse = math.prod(data.shape[b : b + count + 1])
        data = data.reshape(*data.shape[:b], nse, *data.shape[b + count + 1 :])
        indices = indices.reshape(*indices.shape[:b], nse, indices.shape[-1])
        mat = BCOO((data, indices), shape=(*mat.shape[:b], *mat.shape[b + count :]))
        chosen = [axis - count for axis in chosen if axis not in batch]
    b, s = mat.n_batch, mat.n_sparse
    data, indices = mat.data, mat.indices
    sparse = [axis - b for axis in chosen if b <= axis < b + s]
    dense = [axis - s + 1 for axis in chosen if axis >= b + s]
    if dense:
        data = jnp.sum(data, axis=tuple(dense), dtype=data.dtype)
    if sparse:
        kept_columns = [i for i in range(s) if i not in sparse]
        inside = is_inside(indices, mat.sparse_shape)
        new = indices[..., np.array(kept_columns, np.int32)] if kept_columns else indices[..., :0]
        beyond = np.asarray([mat.sparse_shape[i] for i in kept_columns], indices.dtype)
        indices = jnp.where(inside[..., None], new, beyond)
        data = jnp.where(like(inside, data), data, 0)
    shape = tuple(n for axis, n in enumerate(mat.shape) if axis not in chosen)
    is_unique = mat.unique_indices and not sparse and not batch
    return BCOO((data, indices), shape=shape, unique_indices=is_unique)


@takes(BCOO)
def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Array:
    """The elements of the product of a sparse array and a dense one that is broadcast to its shape.

    Returns:
        The new `data`; the indices are those of the sparse array.
    """
    v = jnp.asarray(v)
    if v.ndim > sp_mat.ndim or jnp.broadcast_shapes(v.shape, sp_mat.shape) != sp_mat.shape:
        raise located(
            ValueError,
            f"bcoo_multiply_dense: an array of shape {v.shape} does not broadcast to {sp_mat.shape}",
        )
    v = v.reshape(*(1,) * (sp_mat.ndim - v.ndim), *v.shape)
    b, s = sp_mat.n_batch, sp_mat.n_sparse
    sizes = v.shape[b : b + s]

    def multiply(data: Any, indices: Any, v: Any) -> Any:
        # Along an axis of size 1 every index finds the same.
        places = tuple(indices[:, i] if sizes[i] != 1 else jnp.zeros_like(indices[:, i]) for i in range(s))
        values = v.at[places].get(mode="fill", fill_value=0) if s else v[None]
        return data * values

    data, indices = full_parts(sp_mat)
    v = jnp.broadcast_to(v, (*sp_mat.batch_shape, *v.shape[b:]))
    return over_batches(multiply, b)(data, indices, v)


@takes(BCOO, 2)
def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The elementwise product of two sparse arrays: all pairs of entries whose indices agree."""
    if lhs.ndim != rhs.ndim or (lhs.n_batch, lhs.n_dense) != (rhs.n_batch, rhs.n_dense):
        raise located(
            NotImplementedError,
            f"bcoo_multiply_sparse: both arrays must have the same layout, got {lhs!r} and {rhs!r}; use "
            "`update_layout` first",
        )
    shape = jnp.broadcast_shapes(lhs.shape, rhs.shape)
    b, s = lhs.n_batch, lhs.n_sparse
    beyond = np.asarray(shape[b : b + s], lhs.indices.dtype)

    def multiply(x: Any, i: Any, y: Any, j: Any) -> tuple[Any, Any]:
        n, m = i.shape[0], j.shape[0]
        matches = is_inside(i, lhs.sparse_shape)[:, None] & is_inside(j, rhs.sparse_shape)[None]
        parts = []
        for a in range(s):
            left, right = i[:, None, a], j[None, :, a].astype(i.dtype)
            if lhs.sparse_shape[a] == 1 != rhs.sparse_shape[a]:
                parts.append(jnp.broadcast_to(right, (n, m)))
            else:
                parts.append(jnp.broadcast_to(left, (n, m)))
                if rhs.sparse_shape[a] != 1 or lhs.sparse_shape[a] == 1:
                    matches &= left == right
        product = x[:, None] * y[None]
        product = jnp.where(like(matches, product), product, 0)
        if parts:
            found = jnp.where(matches[..., None], jnp.stack(parts, axis=-1), beyond)
        else:
            found = jnp.zeros((n, m, 0), i.dtype)
        return product.reshape(n * m, *product.shape[2:]), found.reshape(n * m, s)

    parts = [_broadcast_batch(part, shape[:b], b) for mat in (lhs, rhs) for part in full_parts(mat)]
    found = over_batches(multiply, b)(*parts)
    return BCOO(found, shape=shape, unique_indices=lhs.unique_indices and rhs.unique_indices)


def _broadcast_batch(part: Any, batch: tuple[int, ...], b: int) -> Any:
    return part if part.shape[:b] == batch else jnp.broadcast_to(part, (*batch, *part.shape[b:]))


def bcoo_conv_general_dilated(
    lhs: Any,
    rhs: Any,
    *,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Any = None,
    rhs_dilation: Any = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> BCOO:
    """The convolution of sparse arrays as `lax.conv_general_dilated`; it is computed on dense ones."""
    refuse("bcoo_conv_general_dilated", out_sharding=out_sharding)
    left, right = (bcoo_todense(x) if isinstance(x, BCOO) else x for x in (lhs, rhs))
    out = conv_general_dilated(
        left, right, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count,
        batch_group_count, precision, preferred_element_type,
    )  # fmt: skip
    size = math.prod(out.shape)
    pairs = [x.nse if isinstance(x, BCOO) else math.prod(x.shape) for x in (lhs, rhs)]
    return BCOO.fromdense(out, nse=min(size, math.prod(pairs)))
