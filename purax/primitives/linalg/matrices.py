"""What rules of linear algebra are made of: products, triangles, diagonals and permutations of matrices in the last two
axes, whatever stands in front of them. Products are computed in full precision on every platform.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray, aval_of
from purax.core.primitive import Primitive
from purax.primitives import layouts
from purax.primitives.elementwise.conversion import conj, convert_element_type, real
from purax.primitives.elementwise.elementwise import mul
from purax.primitives.elementwise.logic import eq, ge, gt, select
from purax.primitives.products.contraction import Precision, dot_general_p
from purax.primitives.shape.broadcasting import (
    batch_size,
    batch_to_front,
    broadcast_in_dim,
    reduce_sum,
    transpose,
)
from purax.primitives.shape.gather_scatter import gather
from purax.primitives.shape.reshaping import iota, reshape
from purax.primitives.shape.slicing import slice_axis
from purax.primitives.shape.windows import GatherDimensionNumbers, GatherScatterMode

_HIGHEST = (Precision.HIGHEST, Precision.HIGHEST)
_INT32 = np.dtype(np.int32)


class Batched(Primitive):
    """An operation on matrices in the last axes that takes a batch in front of them by itself."""

    def lay_out(self, out, *avals, **params):
        outs = out if self.multiple_results else [out]
        entries = layouts.in_front(self.name, avals[0].ndim - 2, avals, outs)
        return entries if self.multiple_results else entries[0]

    own_axes = 2  # of the first operand, behind those of the batch

    def padded(self, at, avals, operands, **params):
        batch = avals[0].ndim - self.own_axes
        if any(axis >= batch for aval in avals for axis in at.padded_axes(aval)):
            at.refuse(self.name, avals, "its matrices are padded")
        # Integers are places, such as pivots, which must be inside of their matrices.
        given = [
            at.filled(x, aval, range(batch), 0) if dtypes.is_integer(aval.dtype) else x
            for x, aval in zip(operands, avals, strict=True)
        ]
        return self.bind(*given, **at.rooms(params))

    def batch(self, operands, batch_axes, **params):
        size = batch_size(operands, batch_axes)
        moved = [batch_to_front(x, axis, size) for x, axis in zip(operands, batch_axes, strict=True)]
        out = self.bind(*moved, **params)
        return (out, [0] * len(out)) if self.multiple_results else (out, 0)


def matmul(a, b):
    """The products of two batches of matrices of equal batch shapes."""
    ndim = aval_of(a).ndim
    batch = tuple(range(ndim - 2))
    numbers = (((ndim - 1,), (ndim - 2,)), (batch, batch))
    return dot_general_p.bind(
        a, b, dimension_numbers=numbers, precision=_HIGHEST, preferred_element_type=None
    )


def transposed(a):
    """aᵀ"""
    ndim = aval_of(a).ndim
    return transpose(a, (*range(ndim - 2), ndim - 1, ndim - 2))


def conjugate(a):
    """The complex conjugate; a real array as it is."""
    return conj(a) if dtypes.is_complex(aval_of(a).dtype) else a


def adjoint(a):
    """aᴴ"""
    return conjugate(transposed(a))


def real_part(a):
    return real(a) if dtypes.is_complex(aval_of(a).dtype) else a


def like(a, other):
    """`a` in the dtype of `other`."""
    return convert_element_type(a, aval_of(other).dtype)


def rows_of(a, start: int, limit: int):
    return slice_axis(a, start, limit, aval_of(a).ndim - 2)


def columns_of(a, start: int, limit: int):
    return slice_axis(a, start, limit, aval_of(a).ndim - 1)


def _mask(compare, shape: tuple[int, ...]):
    """Where `compare(row, column)` holds."""
    size = shape[-2:]
    mask = compare(iota(_INT32, size, 0), iota(_INT32, size, 1))
    return broadcast_in_dim(mask, shape, (len(shape) - 2, len(shape) - 1))


def _zero(a) -> np.ndarray:
    return np.zeros((), aval_of(a).dtype)


def lower_triangle(a, strict: bool = False):
    """`a` with zeros above the diagonal; if `strict`, on it too."""
    return select(_mask(gt if strict else ge, aval_of(a).shape), a, _zero(a))


def upper_triangle(a, strict: bool = False):
    """`a` with zeros below the diagonal; if `strict`, on it too."""
    return select(_mask(ge if strict else gt, aval_of(a).shape), _zero(a), a)


def identity_like(a: Any):
    """Identity matrices of the type of `a`, which are square."""
    aval: ShapedArray = aval_of(a)
    return convert_element_type(_mask(eq, aval.shape), aval.dtype)


def diagonal_of(a):
    """The diagonals of square matrices, as vectors."""
    aval = aval_of(a)
    *batch, n, _ = aval.shape
    line = reshape(a, (*batch, n * n))
    return slice_axis(line, 0, n * n, len(batch), n + 1) if n else reshape(a, (*batch, 0))


def only_diagonal(a):
    """`a` with zeros off the diagonal."""
    return select(_mask(eq, aval_of(a).shape), a, _zero(a))


def without_diagonal(a):
    """`a` with zeros on the diagonal."""
    return select(_mask(eq, aval_of(a).shape), _zero(a), a)


def row_vector(v, shape: tuple[int, ...]):
    """A vector for each matrix, repeated down the rows of `shape`: element j stands in column j."""
    return broadcast_in_dim(v, shape, (*range(len(shape) - 2), len(shape) - 1))


def column_vector(v, shape: tuple[int, ...]):
    """A vector for each matrix, repeated along the columns of `shape`: element i stands in row i."""
    return broadcast_in_dim(v, shape, range(len(shape) - 1))


def scale_columns(a, v):
    """a · diag(v)"""
    return mul(a, row_vector(v, aval_of(a).shape))


def scale_rows(v, a):
    """diag(v) · a"""
    return mul(column_vector(v, aval_of(a).shape), a)


def column_sums(a):
    return reduce_sum(a, (aval_of(a).ndim - 2,))


def permute_rows(a, permutation):
    """Row i of the result is row `permutation[i]` of `a`."""
    shape = aval_of(a).shape
    batch = tuple(range(len(shape) - 2))
    rows = len(shape) - 2
    numbers = GatherDimensionNumbers((rows + 1,), (rows,), (rows,), batch, batch)
    sizes = (*[1] * len(batch), 1, shape[-1])
    indices = reshape(permutation, (*aval_of(permutation).shape, 1))
    return gather(a, indices, numbers, sizes, mode=GatherScatterMode.PROMISE_IN_BOUNDS, unique_indices=True)


def permute_columns(a, permutation):
    """Column j of the result is column `permutation[j]` of `a`."""
    return transposed(permute_rows(transposed(a), permutation))
