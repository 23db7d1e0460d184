"""BCOO: batches of arrays of which some elements are stored, with their coordinates.

An array has `n_batch` leading axes over which it is a batch, then `n_sparse` axes that indices name, then `n_dense`
axes that are stored in full. `indices` has the shape (*batch, nse, n_sparse), `data` has (*batch, nse, *dense). An
index that is not inside of the array stands for an entry that is not there; an index that comes twice for a sum.
Everything is written for one array and mapped over the batch axes.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from purax import errors
from purax import numpy as jnp
from purax.api.vmap import vmap
from purax.core import dtypes
from purax.core.array import Array
from purax.core.limits import finite
from purax.core.source import located
from purax.errors import SparseEfficiencyError, SparseEfficiencyWarning
from purax.experimental.sparse.base import JAXSparse, takes
from purax.numpy._programs import concrete_value
from purax.numpy._reductions.segments import segment_sum
from purax.tree_util import register_pytree_node_class


class SparseInfo(NamedTuple):
    """What is known of a sparse array without its elements."""

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False


@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array of elements with their coordinates.

    Args:
        args: the elements and their indices; see the module.
        shape: of the array.
        indices_sorted: promises that indices are in order in each batch.
        unique_indices: promises that no index comes twice in a batch.

    >>> import purax.numpy as jnp
    >>> from purax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> m
    BCOO(float32[2, 2], nse=2)
    >>> m @ jnp.ones(2)
    Array([2., 3.], dtype=float32)
    """

    data: Any
    indices: Any

    def __init__(
        self,
        args: tuple[Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        data, indices = args
        self.data, self.indices = jnp.asarray(data), jnp.asarray(indices)
        self.shape = tuple(operator.index(n) for n in finite(shape))
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices
        self._check()

    def _check(self) -> None:
        data, indices, shape = self.data.shape, self.indices.shape, self.shape
        n_batch, n_sparse = len(indices) - 2, indices[-1] if indices else 0
        n_dense = len(shape) - n_batch - n_sparse
        fits = (
            n_batch >= 0
            and n_dense >= 0
            and len(data) == n_batch + 1 + n_dense
            and data[n_batch] == indices[n_batch]
            and data[n_batch + 1 :] == shape[len(shape) - n_dense :]
            and all(n in (1, m) for n, m in zip(data[:n_batch], shape, strict=False))
            and all(n in (1, m) for n, m in zip(indices[:n_batch], shape, strict=False))
        )
        if not fits:
            raise located(
                ValueError,
                f"BCOO of shape {shape}: data must have the shape (*batch, nse, *dense) and indices (*batch, nse, "
                f"n_sparse), got {data} and {indices}",
            )
        if not dtypes.is_integer(self.indices.dtype):
            raise located(TypeError, f"BCOO: indices must be integers, got {self.indices.aval.str_short()}")

    n_batch = property(lambda self: self.indices.ndim - 2)
    n_sparse = property(lambda self: self.indices.shape[-1])
    n_dense = property(lambda self: self.data.ndim - 1 - self.n_batch)
    nse = property(lambda self: self.indices.shape[-2])
    _info = property(lambda self: SparseInfo(self.shape, self.indices_sorted, self.unique_indices))
    _bufs = property(lambda self: (self.data, self.indices))

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.shape[: self.n_batch]

    @property
    def sparse_shape(self) -> tuple[int, ...]:
        return self.shape[self.n_batch : self.n_batch + self.n_sparse]

    @property
    def dense_shape(self) -> tuple[int, ...]:
        return self.shape[self.n_batch + self.n_sparse :]

    def tree_flatten(self) -> tuple[tuple, tuple]:
        return (self.data, self.indices), (self.shape, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, info: tuple, parts: Sequence[Any]) -> BCOO:
        new = object.__new__(cls)
        new.data, new.indices = parts
        new.shape, new.indices_sorted, new.unique_indices = info
        return new

    @classmethod
    def fromdense(
        cls,
        mat: Any,
        *,
        nse: int | None = None,
        index_dtype: Any = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:
        """A sparse array of the elements of an array that are not 0; see `bcoo_fromdense`."""
        return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """From a sparse matrix of SciPy."""
        if n_dense or n_batch:
            raise located(NotImplementedError, "BCOO.from_scipy_sparse: n_dense and n_batch must be 0")
        coordinates = mat.tocoo()
        indices = np.stack([coordinates.row, coordinates.col], axis=1).astype(index_dtype or np.int32)
        return cls((coordinates.data, indices), shape=coordinates.shape)

    @classmethod
    def _empty(
        cls,
        shape: Sequence[int],
        *,
        dtype: Any = None,
        index_dtype: Any = "int32",
        n_dense: int = 0,
        n_batch: int = 0,
        nse: int = 0,
    ) -> BCOO:
        shape = tuple(operator.index(n) for n in finite(shape))
        n_sparse = len(shape) - n_batch - n_dense
        batch, dense = shape[:n_batch], shape[len(shape) - n_dense :]
        beyond = np.asarray(shape[n_batch : n_batch + n_sparse], index_dtype)
        return cls(
            (
                jnp.zeros((*batch, nse, *dense), dtype),
                jnp.broadcast_to(jnp.asarray(beyond), (*batch, nse, n_sparse)),
            ),
            shape=shape,
            indices_sorted=True,
            unique_indices=True,
        )

    @classmethod
    def _eye(
        cls,
        N: int,  # noqa: N803
        M: int,  # noqa: N803
        k: int,
        *,
        dtype: Any = None,
        index_dtype: Any = "int32",
        n_batch: int = 0,
        n_dense: int = 0,
    ) -> BCOO:
        first = max(-k, 0)
        count = max(min(N - first, M - max(k, 0)), 0)
        rows = np.arange(first, first + count, dtype=index_dtype)
        indices = np.stack([rows, rows + k], axis=1)
        plain = cls((jnp.ones(count, dtype), indices), shape=(N, M), indices_sorted=True, unique_indices=True)
        if not n_batch and not n_dense:
            return plain
        return bcoo_update_layout(plain, n_batch=n_batch, n_dense=n_dense, on_inefficient=None)

    def todense(self) -> Array:
        return bcoo_todense(self)

    def sort_indices(self) -> BCOO:
        """With its indices in order."""
        return bcoo_sort_indices(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """With each index once; see `bcoo_sum_duplicates`."""
        if remove_zeros:
            return bcoo_eliminate_zeros(bcoo_sum_duplicates(self, nse=self.nse if nse is None else nse), nse)
        return bcoo_sum_duplicates(self, nse=nse)

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
    ) -> BCOO:
        """The same array with other numbers of batch and dense axes; see `bcoo_update_layout`."""
        return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)


# --- parts of all functions


def over_batches(function: Callable, count: int) -> Callable:
    """A function of one array, mapped over all batch axes."""
    for _ in range(count):
        function = vmap(function)
    return function


def full_parts(mat: BCOO) -> tuple[Any, Any]:
    """Data and indices with all of their batch axes in full size."""
    n = mat.n_batch
    data, indices = mat.data, mat.indices
    if data.shape[:n] != mat.batch_shape:
        data = jnp.broadcast_to(data, (*mat.batch_shape, *data.shape[n:]))
    if indices.shape[:n] != mat.batch_shape:
        indices = jnp.broadcast_to(indices, (*mat.batch_shape, *indices.shape[n:]))
    return data, indices


def columns(indices: Any) -> tuple[Any, ...]:
    return tuple(indices[:, i] for i in range(indices.shape[1]))


def is_inside(indices: Any, shape: Sequence[int]) -> Any:
    """Which rows of indices are inside of a shape."""
    limits = np.asarray(shape, indices.dtype)
    return jnp.all((indices >= 0) & (indices < limits), axis=-1)


def like(mask: Any, data: Any) -> Any:
    """A mask of entries with the axes of the data."""
    return mask.reshape(*mask.shape, *(1,) * (data.ndim - mask.ndim))


def known_count(name: str, count: Any, what: str) -> int:
    known = concrete_value(count)
    if known is None:
        raise located(
            errors.ConcretizationTypeError,
            f"{name}: {what} is not known while the function is traced, and results need a size; give it as nse",
        )
    return int(known)


# --- conversion


def bcoo_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = np.int32
) -> BCOO:
    """A sparse array of the elements of an array that are not 0.

    Args:
        mat: the array.
        nse: how many elements to store in each batch; what is missing is filled with entries that are not there. By
            default as many as there are; under `jit` that is not known and must be given.
        n_batch, n_dense: the numbers of leading batch axes and trailing dense axes.
        index_dtype: of the indices.

    Returns:
        A `BCOO`.

    >>> import purax.numpy as jnp
    >>> from purax.experimental import sparse
    >>> sparse.bcoo_fromdense(jnp.eye(3), nse=5).indices[-1]
    Array([3, 3], dtype=int32)
    """
    mat = jnp.asarray(mat)
    n_sparse = mat.ndim - n_batch - n_dense
    if n_batch < 0 or n_dense < 0 or n_sparse < 0:
        raise located(
            ValueError,
            f"bcoo_fromdense: an array of shape {mat.shape} cannot have n_batch={n_batch} and n_dense={n_dense}",
        )
    mask = mat != 0
    if n_dense:
        mask = jnp.any(mask, axis=tuple(range(mat.ndim - n_dense, mat.ndim)))
    if nse is None:
        counts = jnp.sum(mask, axis=tuple(range(n_batch, n_batch + n_sparse)))
        nse = known_count(
            "bcoo_fromdense", jnp.max(counts, initial=0), "the number of elements that are not 0"
        )
    sparse_shape = mat.shape[n_batch : n_batch + n_sparse]

    def convert(mat: Any, mask: Any) -> tuple[Any, Any]:
        if not n_sparse:
            places = jnp.zeros((nse, 0), index_dtype)
            first = jnp.arange(nse).reshape(-1, *(1,) * n_dense) == 0
            return jnp.where(first, mat[None], 0), places
        flat = jnp.nonzero(mask.reshape(-1), size=nse, fill_value=mask.size)[0]
        data = mat.reshape(-1, *mat.shape[n_sparse:]).at[flat].get(mode="fill", fill_value=0)
        found = jnp.stack(jnp.unravel_index(jnp.minimum(flat, max(mask.size - 1, 0)), sparse_shape), axis=1)
        beyond = np.asarray(sparse_shape, index_dtype)
        return data, jnp.where((flat < mask.size)[:, None], found.astype(index_dtype), beyond)

    data, indices = over_batches(convert, n_batch)(mat, mask)
    is_unique = n_sparse > 0 or nse < 2  # an index without components is always there
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=is_unique)


@takes(BCOO)
def bcoo_todense(mat: BCOO) -> Array:
    """The array with all its elements.

    >>> import purax.numpy as jnp
    >>> from purax.experimental import sparse
    >>> sparse.bcoo_todense(sparse.BCOO.fromdense(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    sparse_shape, dense_shape = mat.sparse_shape, mat.dense_shape

    def convert(data: Any, indices: Any) -> Any:
        if not sparse_shape:
            return jnp.sum(data, axis=0, dtype=data.dtype)
        wide = jnp.zeros((*sparse_shape, *dense_shape), data.dtype)
        return wide.at[columns(indices)].add(data, mode="drop", wrap_negative_indices=False)

    data = mat.data if mat.dtype != np.bool_ else mat.data.astype(jnp.int8)
    whole = BCOO.tree_unflatten(mat.tree_flatten()[1], (data, mat.indices))
    return over_batches(convert, mat.n_batch)(*full_parts(whole)).astype(mat.dtype)


@takes(BCOO)
def bcoo_extract(sparr: BCOO, arr: Any, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of a dense array at the indices of a sparse one.

    Args:
        sparr: the sparse array, of which only the indices count.
        arr: a dense array of its shape.
        assume_unique: whether to take no notice of indices that come twice; else all but the first get 0. By default
            what `sparr` promises.
    """
    arr = jnp.asarray(arr)
    if arr.shape != sparr.shape:
        raise located(
            ValueError,
            f"bcoo_extract: both arrays must have the same shape, got {sparr.shape} and {arr.shape}",
        )
    is_unique = sparr.unique_indices if assume_unique is None else assume_unique

    def take(arr: Any, indices: Any) -> Any:
        values = arr.at[columns(indices)].get(mode="fill", fill_value=0) if indices.shape[1] else arr[None]
        if not indices.shape[1] and indices.shape[0] != 1:
            values = jnp.broadcast_to(values, (indices.shape[0], *arr.shape))
        if is_unique:
            return values
        order, group = grouped(indices, sparr.sparse_shape)
        is_first = jnp.concatenate([jnp.ones(1, bool), group[1:] != group[:-1]])
        is_first = jnp.zeros_like(is_first).at[order].set(is_first)
        return jnp.where(like(is_first, values), values, 0)

    _, indices = full_parts(sparr)
    if not sparr.nse:
        return sparr
    data = over_batches(take, sparr.n_batch)(arr, indices)
    return BCOO.tree_unflatten(sparr.tree_flatten()[1], (data, sparr.indices))


# --- order


def grouped(indices: Any, shape: Sequence[int]) -> tuple[Any, Any]:
    """The order that sorts indices, those outside of the shape last, and the number of the distinct index of each."""
    outside = ~is_inside(indices, shape)
    keys = [indices[:, i] for i in reversed(range(indices.shape[1]))]
    order = jnp.lexsort([*keys, outside])
    ordered, beyond = indices[order], outside[order]
    is_new = jnp.any(ordered[1:] != ordered[:-1], axis=1) & ~(beyond[1:] & beyond[:-1])
    is_new |= beyond[1:] != beyond[:-1]
    return order, jnp.concatenate([jnp.zeros(1, jnp.int32), jnp.cumsum(is_new.astype(jnp.int32))])


@takes(BCOO)
def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """A sparse array with its indices in order."""
    if mat.indices_sorted or not mat.n_sparse or not mat.nse:
        return mat

    def sort(data: Any, indices: Any) -> tuple[Any, Any]:
        order = jnp.lexsort([indices[:, i] for i in reversed(range(indices.shape[1]))])
        return data[order], indices[order]

    parts = over_batches(sort, mat.n_batch)(*full_parts(mat))
    return BCOO(parts, shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices)


@takes(BCOO)
def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """A sparse array in which each index comes once, with the sum of its elements, and in order.

    Args:
        mat: the array.
        nse: how many elements to store; by default as many as there are distinct indices, which under `jit` are not
            known.

    >>> import purax.numpy as jnp
    >>> from purax.experimental import sparse
    >>> twice = sparse.BCOO((jnp.array([1.0, 2.0]), jnp.array([[1], [1]])), shape=(3,))
    >>> sparse.bcoo_sum_duplicates(twice).data
    Array([3.], dtype=float32)
    """
    return _compressed("bcoo_sum_duplicates", mat, nse, lambda data, inside: inside)


@takes(BCOO)
def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """A sparse array without elements that are 0, which has distinct indices."""

    def is_wanted(data: Any, inside: Any) -> Any:
        flat = data.reshape(data.shape[0], -1)
        return inside & jnp.any(flat != 0, axis=1)

    return _compressed("bcoo_eliminate_zeros", mat, nse, is_wanted)


def _compressed(name: str, mat: BCOO, nse: int | None, is_wanted: Callable) -> BCOO:
    """Distinct indices with the sums of their elements, of those entries that are wanted."""
    data, indices = full_parts(mat)
    sparse_shape = mat.sparse_shape
    beyond = np.asarray(sparse_shape, indices.dtype)
    if not mat.nse:
        return mat if not nse else _padded(mat, nse)

    def group(data: Any, indices: Any) -> tuple[Any, Any, Any]:
        wanted = is_wanted(data, is_inside(indices, sparse_shape))
        indices = jnp.where(wanted[:, None], indices, beyond) if indices.shape[1] else indices
        order, number = grouped(indices, sparse_shape)
        kept = wanted[order]
        count = jnp.max(jnp.where(kept, number + 1, 0))
        return order, jnp.where(kept, number, data.shape[0]), count

    orders, numbers, counts = over_batches(group, mat.n_batch)(data, indices)
    if nse is None:
        nse = known_count(name, jnp.max(counts, initial=0), "the number of distinct indices")

    def compress(data: Any, indices: Any, order: Any, number: Any) -> tuple[Any, Any]:
        total = segment_sum(data[order], number, nse, indices_are_sorted=True)
        places = jnp.broadcast_to(jnp.asarray(beyond), (nse, indices.shape[1]))
        return total, places.at[number].set(indices[order], mode="drop")

    parts = over_batches(compress, mat.n_batch)(data, indices, orders, numbers)
    return BCOO(parts, shape=mat.shape, indices_sorted=True, unique_indices=True)


def _padded(mat: BCOO, nse: int) -> BCOO:
    """With room for `nse` entries in all, of which those at the end are not there."""
    data, indices = full_parts(mat)
    missing = nse - mat.nse
    if missing <= 0:
        return mat
    batch = mat.batch_shape
    beyond = jnp.asarray(np.asarray(mat.sparse_shape, indices.dtype))
    return BCOO(
        (
            jnp.concatenate([data, jnp.zeros((*batch, missing, *mat.dense_shape), data.dtype)], mat.n_batch),
            jnp.concatenate([indices, jnp.broadcast_to(beyond, (*batch, missing, mat.n_sparse))], -2),
        ),
        shape=mat.shape,
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


# --- layout


@takes(BCOO)
def bcoo_update_layout(
    mat: BCOO,
    *,
    n_batch: int | None = None,
    n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> BCOO:
    """The same array with other numbers of batch and dense axes.

    Args:
        mat: the array.
        n_batch, n_dense: the new numbers; None leaves them as they are.
        on_inefficient: "error", "warn" or None: what to do where the new form stores more, as more batch axes and more
            dense axes do.
    """
    n_batch = mat.n_batch if n_batch is None else operator.index(n_batch)
    n_dense = mat.n_dense if n_dense is None else operator.index(n_dense)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise located(
            ValueError,
            f"bcoo_update_layout: an array of shape {mat.shape} cannot have n_batch={n_batch} and n_dense={n_dense}",
        )
    for name, old, new in (("n_batch", mat.n_batch, n_batch), ("n_dense", mat.n_dense, n_dense)):
        if new > old and on_inefficient is not None:
            message = (
                f"bcoo_update_layout: raising {name} from {old} to {new} for an array of shape {mat.shape} stores more "
                "elements; on_inefficient=None allows it"
            )
            if on_inefficient == "error":
                raise located(SparseEfficiencyError, message)
            warnings.warn(message, SparseEfficiencyWarning, stacklevel=2)
    while mat.n_dense > n_dense:
        mat = _dense_to_sparse(mat)
    while mat.n_batch > n_batch:
        mat = _batch_to_sparse(mat)
    while mat.n_dense < n_dense:
        mat = _sparse_to_dense(mat)
    while mat.n_batch < n_batch:
        mat = _sparse_to_batch(mat)
    return mat


def _dense_to_sparse(mat: BCOO) -> BCOO:
    """The first dense axis becomes the last sparse one: as many entries for each that there was."""
    size = mat.dense_shape[0]

    def spread(data: Any, indices: Any) -> tuple[Any, Any]:
        nse = indices.shape[0]
        new = jnp.tile(jnp.arange(size, dtype=indices.dtype), nse)[:, None]
        return data.reshape(nse * size, *data.shape[2:]), jnp.concatenate(
            [jnp.repeat(indices, size, axis=0), new], 1
        )

    parts = over_batches(spread, mat.n_batch)(*full_parts(mat))
    return BCOO(parts, shape=mat.shape, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


def _batch_to_sparse(mat: BCOO) -> BCOO:
    """The last batch axis becomes the first sparse one."""
    size = mat.batch_shape[-1]
    sparse_shape = mat.sparse_shape

    def merge(data: Any, indices: Any) -> tuple[Any, Any]:
        _, nse, n_sparse = indices.shape
        new = jnp.repeat(jnp.arange(size, dtype=indices.dtype), nse)
        flat = indices.reshape(size * nse, n_sparse)
        new = jnp.where(is_inside(flat, sparse_shape), new, size) if n_sparse else new
        return data.reshape(size * nse, *data.shape[2:]), jnp.concatenate([new[:, None], flat], 1)

    parts = over_batches(merge, mat.n_batch - 1)(*full_parts(mat))
    return BCOO(parts, shape=mat.shape, unique_indices=mat.unique_indices)


def _sparse_to_dense(mat: BCOO) -> BCOO:
    """The last sparse axis becomes the first dense one: each entry becomes a row that is 0 elsewhere."""
    size = mat.sparse_shape[-1]

    def spread(data: Any, indices: Any) -> tuple[Any, Any]:
        is_place = indices[:, -1:] == jnp.arange(size, dtype=indices.dtype)
        return jnp.where(like(is_place, data[:, None]), data[:, None], 0), indices[:, :-1]

    parts = over_batches(spread, mat.n_batch)(*full_parts(mat))
    return BCOO(parts, shape=mat.shape)


def _sparse_to_batch(mat: BCOO) -> BCOO:
    """The first sparse axis becomes the last batch axis: each batch has room for all entries."""
    size = mat.sparse_shape[0]
    beyond = np.asarray(mat.sparse_shape[1:], mat.indices.dtype)

    def spread(data: Any, indices: Any) -> tuple[Any, Any]:
        is_own = indices[:, 0] == jnp.arange(size, dtype=indices.dtype)[:, None]  # (size, nse)
        values = jnp.where(like(is_own, data[None]), data[None], 0)
        return values, jnp.where(is_own[..., None], indices[None, :, 1:], beyond)

    parts = over_batches(spread, mat.n_batch)(*full_parts(mat))
    return BCOO(parts, shape=mat.shape, unique_indices=mat.unique_indices)
