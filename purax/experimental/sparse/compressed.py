"""The other sparse forms: COO, CSR and CSC for matrices, BCSR for batches of matrices.

They store the same elements as BCOO with other indices, and compute by turning into it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.core.array import Array
from purax.core.limits import finite
from purax.core.source import located
from purax.experimental.sparse.base import JAXSparse, all_are, takes
from purax.experimental.sparse.bcoo import (
    BCOO,
    bcoo_eliminate_zeros,
    bcoo_fromdense,
    bcoo_sum_duplicates,
    full_parts,
    over_batches,
)
from purax.experimental.sparse.operators import matmul, multiply, sum_of
from purax.experimental.sparse.products import bcoo_dot_general
from purax.experimental.sparse.shaping import bcoo_broadcast_in_dim, bcoo_concatenate
from purax.tree_util import register_pytree_node_class


class _Matrix(JAXSparse):
    """A form that computes as BCOO: subclasses say how to turn into it."""

    def to_bcoo(self) -> BCOO:
        """The same matrix as a `BCOO`."""
        raise NotImplementedError

    def todense(self) -> Array:
        return self.to_bcoo().todense()

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        return sum_of(self.to_bcoo(), *args, **kwargs)

    def __matmul__(self, other: Any) -> Any:
        return matmul(self.to_bcoo(), other.to_bcoo() if isinstance(other, _Matrix) else other)

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(other, self.to_bcoo())

    def _with_data(self, data: Any) -> Any:
        parts, info = self.tree_flatten()  # type: ignore[attr-defined]
        return type(self).tree_unflatten(info, (data, *parts[1:]))  # type: ignore[attr-defined]

    def __neg__(self) -> Any:
        return self._with_data(-self.data)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, JAXSparse) or jnp.ndim(other):
            return multiply(self.to_bcoo(), other.to_bcoo() if isinstance(other, _Matrix) else other)
        return self._with_data(self.data * other)

    __rmul__ = __mul__


@register_pytree_node_class
class COO(_Matrix):
    """A sparse matrix of elements with their rows and columns.

    Args:
        args: the elements, their rows and their columns.
        shape: of the matrix.
        rows_sorted, cols_sorted: promises that they are in order.
    """

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        rows_sorted: bool = False,
        cols_sorted: bool = False,
    ):
        self.data, self.row, self.col = map(jnp.asarray, args)
        self.shape = tuple(operator.index(n) for n in finite(shape))
        self._rows_sorted, self._cols_sorted = rows_sorted, cols_sorted

    nse = property(lambda self: self.data.size)

    def tree_flatten(self) -> tuple[tuple, tuple]:
        return (self.data, self.row, self.col), (self.shape, self._rows_sorted, self._cols_sorted)

    @classmethod
    def tree_unflatten(cls, info: tuple, parts: Sequence[Any]) -> COO:
        new = object.__new__(cls)
        new.data, new.row, new.col = parts
        new.shape, new._rows_sorted, new._cols_sorted = info
        return new

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
        """The elements of a matrix that are not 0."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32") -> COO:
        none = jnp.zeros(0, index_dtype)
        return cls((jnp.zeros(0, dtype), none, none), shape=shape, rows_sorted=True, cols_sorted=True)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> COO:  # noqa: N803
        entries = BCOO._eye(N, M, k, dtype=dtype, index_dtype=index_dtype)
        rows, cols = entries.indices[:, 0], entries.indices[:, 1]
        return cls((entries.data, rows, cols), shape=(N, M), rows_sorted=True, cols_sorted=True)

    def to_bcoo(self) -> BCOO:
        return BCOO(
            (self.data, jnp.stack([self.row, self.col], axis=1)),
            shape=self.shape,
            indices_sorted=self._rows_sorted and self._cols_sorted,
        )

    def transpose(self, axes: Any = None) -> COO:
        if axes is not None and tuple(finite(axes)) != (1, 0):
            raise located(NotImplementedError, f"COO.transpose has no axes, got {axes}")
        return COO(
            (self.data, self.col, self.row),
            shape=self.shape[::-1],
            rows_sorted=self._cols_sorted,
            cols_sorted=self._rows_sorted,
        )


class _Compressed(_Matrix):
    """What CSR and CSC share: `indptr` tells where each row, or column, begins in the list of elements."""

    _is_by_row: bool
    _other: type

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]):
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        self.shape = tuple(operator.index(n) for n in finite(shape))

    nse = property(lambda self: self.data.size)

    def tree_flatten(self) -> tuple[tuple, tuple]:
        return (self.data, self.indices, self.indptr), (self.shape,)

    @classmethod
    def tree_unflatten(cls, info: tuple, parts: Sequence[Any]) -> Any:
        new = object.__new__(cls)
        new.data, new.indices, new.indptr = parts
        (new.shape,) = info
        return new

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> Any:
        """The elements of a matrix that are not 0."""
        mat = jnp.asarray(mat)
        rows = csr_parts(mat if cls._is_by_row else mat.T, nse, index_dtype)
        return cls(rows, shape=mat.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32") -> Any:
        lines = shape[0 if cls._is_by_row else 1]
        return cls(
            (jnp.zeros(0, dtype), jnp.zeros(0, index_dtype), jnp.zeros(lines + 1, index_dtype)), shape=shape
        )

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> Any:  # noqa: N803
        lines = (N, M, k) if cls._is_by_row else (M, N, -k)
        entries = BCOO._eye(*lines, dtype=dtype, index_dtype=index_dtype)
        begins = pointers(entries.indices[:, 0], lines[0], index_dtype)
        return cls((entries.data, entries.indices[:, 1], begins), shape=(N, M))

    def to_bcoo(self) -> BCOO:
        lines = self.shape[0 if self._is_by_row else 1]
        line = line_numbers(self.indptr, self.indices.shape[0], lines)
        pair = [line, self.indices.astype(line.dtype)]
        indices = jnp.stack(pair if self._is_by_row else pair[::-1], axis=1)
        beyond = np.asarray(self.shape, indices.dtype)
        return BCOO((self.data, jnp.where((line < lines)[:, None], indices, beyond)), shape=self.shape)

    def transpose(self, axes: Any = None) -> Any:
        if axes is not None and tuple(finite(axes)) != (1, 0):
            raise located(NotImplementedError, f"transpose takes no axes here, got {axes}")
        return self._other((self.data, self.indices, self.indptr), shape=self.shape[::-1])


@register_pytree_node_class
class CSR(_Compressed):
    """A sparse matrix in compressed rows: elements, their columns, and where each row begins."""

    _is_by_row = True


@register_pytree_node_class
class CSC(_Compressed):
    """A sparse matrix in compressed columns: elements, their rows, and where each column begins."""

    _is_by_row = False


CSR._other, CSC._other = CSC, CSR


def pointers(lines: Any, count: int, dtype: Any) -> Any:
    """Where each line begins in a sorted list of line numbers."""
    return jnp.searchsorted(lines, jnp.arange(count + 1, dtype=lines.dtype)).astype(dtype)


def line_numbers(indptr: Any, nse: int, count: int) -> Any:
    """The line of each entry; `count` for those after the end of the last one."""
    place = jnp.arange(nse, dtype=indptr.dtype)
    line = jnp.searchsorted(indptr, place, side="right").astype(indptr.dtype) - 1
    return jnp.where(place < indptr[-1], line, count)


def csr_parts(mat: Any, nse: int | None, index_dtype: Any) -> tuple[Any, Any, Any]:
    entries = bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype)
    begins = pointers(entries.indices[:, 0], mat.shape[0], index_dtype)
    return entries.data, entries.indices[:, 1], begins


def coo_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
    """The elements of a matrix that are not 0, with their rows and columns."""
    entries = bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype)
    return COO(
        (entries.data, entries.indices[:, 0], entries.indices[:, 1]), shape=jnp.shape(mat), rows_sorted=True
    )


@takes(COO)
def coo_todense(mat: COO) -> Array:
    """The matrix with all its elements."""
    return mat.todense()


@takes(COO)
def coo_matvec(mat: COO, v: Any, transpose: bool = False) -> Array:
    """The product with a vector, of the matrix or of its transpose."""
    return (mat.T if transpose else mat) @ jnp.asarray(v)


@takes(COO)
def coo_matmat(mat: COO, B: Any, *, transpose: bool = False) -> Array:  # noqa: N803
    """The product with a matrix, of the matrix or of its transpose."""
    return (mat.T if transpose else mat) @ jnp.asarray(B)


def csr_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
    """The elements of a matrix that are not 0, in compressed rows."""
    return CSR.fromdense(mat, nse=nse, index_dtype=index_dtype)


@takes(CSR)
def csr_todense(mat: CSR) -> Array:
    """The matrix with all its elements."""
    return mat.todense()


@takes(CSR)
def csr_matvec(mat: CSR, v: Any, transpose: bool = False) -> Array:
    """The product with a vector, of the matrix or of its transpose."""
    return (mat.T if transpose else mat) @ jnp.asarray(v)


@takes(CSR)
def csr_matmat(mat: CSR, B: Any, *, transpose: bool = False) -> Array:  # noqa: N803
    """The product with a matrix, of the matrix or of its transpose."""
    return (mat.T if transpose else mat) @ jnp.asarray(B)


# --- batches of matrices


@register_pytree_node_class
class BCSR(_Matrix):
    """Batches of sparse matrices in compressed rows; the axes after those of a matrix are dense.

    Args:
        args: the elements (*batch, nse, *dense), their columns (*batch, nse), and where each row begins
            (*batch, rows + 1).
        shape: of the array.
        indices_sorted: promises that columns are in order in each row.
        unique_indices: promises that no element comes twice.

    >>> import purax.numpy as jnp
    >>> from purax.experimental import sparse
    >>> sparse.BCSR.fromdense(jnp.eye(2)) @ jnp.ones(2)
    Array([1., 1.], dtype=float32)
    """

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        self.shape = tuple(operator.index(n) for n in finite(shape))
        self.indices_sorted, self.unique_indices = indices_sorted, unique_indices
        b = self.n_batch
        if len(self.shape) < b + 2 or self.indptr.shape[-1] != self.shape[b] + 1:
            raise located(
                ValueError,
                f"BCSR of shape {self.shape}: indices must have the shape (*batch, nse) and indptr (*batch, rows + "
                f"1), got {self.indices.shape} and {self.indptr.shape}",
            )

    n_batch = property(lambda self: self.indices.ndim - 1)
    n_sparse = property(lambda self: 2)
    n_dense = property(lambda self: self.data.ndim - self.indices.ndim)
    nse = property(lambda self: self.indices.shape[-1])

    def tree_flatten(self) -> tuple[tuple, tuple]:
        return (self.data, self.indices, self.indptr), (self.shape, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, info: tuple, parts: Sequence[Any]) -> BCSR:
        new = object.__new__(cls)
        new.data, new.indices, new.indptr = parts
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
    ) -> BCSR:
        """The elements of an array that are not 0."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """From a `BCOO` with two sparse axes."""
        if arr.n_sparse != 2:
            raise located(
                NotImplementedError, f"BCSR.from_bcoo needs an array with two sparse axes, got {arr!r}"
            )
        arr = arr.sort_indices()
        data, indices = full_parts(arr)
        rows = arr.sparse_shape[0]

        def begins(row: Any) -> Any:
            return pointers(row, rows, row.dtype)

        indptr = over_batches(begins, arr.n_batch)(indices[..., 0])
        return cls(
            (data, indices[..., 1], indptr),
            shape=arr.shape,
            indices_sorted=True,
            unique_indices=arr.unique_indices,
        )

    @classmethod
    def from_scipy_sparse(
        cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """From a sparse matrix of SciPy."""
        if n_dense or n_batch:
            raise located(NotImplementedError, "BCSR.from_scipy_sparse: n_dense and n_batch must be 0")
        rows = mat.tocsr()
        dtype = index_dtype or np.int32
        return cls((rows.data, rows.indices.astype(dtype), rows.indptr.astype(dtype)), shape=rows.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], **options: Any) -> BCSR:
        return cls.from_bcoo(BCOO._empty(shape, **options))

    @classmethod
    def _eye(cls, N: int, M: int, k: int, **options: Any) -> BCSR:  # noqa: N803
        return cls.from_bcoo(BCOO._eye(N, M, k, **options))

    def to_bcoo(self) -> BCOO:
        b = self.n_batch
        rows, nse = self.shape[b], self.nse
        beyond = np.asarray(self.shape[b : b + 2], self.indices.dtype)

        def expand(indices: Any, indptr: Any) -> Any:
            row = line_numbers(indptr, nse, rows).astype(indices.dtype)
            return jnp.where((row < rows)[:, None], jnp.stack([row, indices], axis=1), beyond)

        indices = over_batches(expand, b)(self.indices, self.indptr)
        return BCOO(
            (self.data, indices),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    def transpose(self, axes: Any = None) -> BCSR:
        return BCSR.from_bcoo(self.to_bcoo().transpose(axes))

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """With each element once."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))


def bcsr_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = np.int32
) -> BCSR:
    """The elements of an array that are not 0, in compressed rows. The arguments are those of `bcoo_fromdense`."""
    return BCSR.from_bcoo(
        bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    )


@takes(BCSR)
def bcsr_todense(mat: BCSR) -> Array:
    """The array with all its elements."""
    return mat.todense()


def bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Array:
    """The elements of a dense array at the indices of a `BCSR`."""
    mat, indices, indptr = jnp.asarray(mat), jnp.asarray(indices), jnp.asarray(indptr)
    rows = indptr.shape[-1] - 1

    def take(mat: Any, indices: Any, indptr: Any) -> Any:
        row = line_numbers(indptr, indices.shape[0], rows)
        return mat.at[row, indices].get(mode="fill", fill_value=0)

    return over_batches(take, indices.ndim - 1)(mat, indices, indptr)


def bcsr_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """A product with a sparse array in compressed rows, as `lax.dot_general`."""
    plain = [x.to_bcoo() if isinstance(x, BCSR) else x for x in (lhs, rhs)]
    return bcoo_dot_general(
        *plain,
        dimension_numbers=dimension_numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


@takes(BCSR)
def bcsr_eliminate_zeros(mat: BCSR, nse: int | None = None) -> BCSR:
    """The matrix without the zeros that it stores.

    Args:
        mat: the matrix.
        nse: how many elements the result stores; as many as are left if None, which must be known.
    """
    return BCSR.from_bcoo(bcoo_eliminate_zeros(mat.to_bcoo(), nse))


@takes(BCSR)
def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """With each element once."""
    return BCSR.from_bcoo(bcoo_sum_duplicates(mat.to_bcoo(), nse=nse))


@takes(BCSR)
def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCSR:
    """Repeated along new batch and dense axes; see `bcoo_broadcast_in_dim`."""
    wide = bcoo_broadcast_in_dim(
        mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding
    )
    return BCSR.from_bcoo(wide)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """One after the other along an axis."""
    parts = all_are(BCSR, "bcsr_concatenate", operands)
    return BCSR.from_bcoo(bcoo_concatenate([x.to_bcoo() for x in parts], dimension=dimension))
