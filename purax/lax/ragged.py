"""Products of matrices whose rows belong to groups of different sizes, each with a matrix of its own.

An axis of size n is cut into tiles. A group covers some tiles, the first and the last perhaps in part; all groups
together make at most n/tile + groups − 1 pieces, however the rows are divided. A piece is a product of a tile, masked
to the rows of the group, so that the work is about twice that of a plain product, not the number of groups times it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from purax.api.vmap import vmap
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.lax.contraction import PrecisionLike, dot_general
from purax.lax.operands import array, axes_in, listed
from purax.primitives.elementwise.arithmetic import div, max_, min_, sub
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.elementwise.logic import and_, ge, gt, lt, select
from purax.primitives.products.contraction import DotDimensionNumbers
from purax.primitives.reductions.cumulative import cumsum
from purax.primitives.shape.broadcasting import broadcast_in_dim, full, reduce_sum, transpose
from purax.primitives.shape.dimension_value import number_as
from purax.primitives.shape.gather_scatter import ScatterDimensionNumbers, scatter_add, take
from purax.primitives.shape.reshaping import iota, reshape
from purax.primitives.shape.slicing import pad
from purax.sharding.constraints import freely

_INT32 = np.dtype(np.int32)


class RaggedDotDimensionNumbers(NamedTuple):
    """Which axes of `ragged_dot_general` are what.

    Attributes:
        dot_dimension_numbers: contracted and batch axes, as in `dot_general`.
        lhs_ragged_dimensions: the one axis of lhs that is divided into groups.
        rhs_group_dimensions: the axis of rhs that goes through the groups; none where contracted or batch axes are
            divided.
    """

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


_PLAIN = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def ragged_dot(
    lhs: Array,
    rhs: Array,
    group_sizes: Array,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    group_offset: Array | None = None,
    out_sharding: Any = None,
) -> Array:
    """The product of the rows of a matrix with the matrices of their groups.

    Args:
        lhs: (m, k).
        rhs: (g, k, n), a matrix for each group.
        group_sizes: (g,) integers: the first so many rows belong to the first group, and so on.
        precision, preferred_element_type: as in `dot_general`.
        group_offset: (1,), the group that the first matrix of `rhs` is for, if that holds only some.

    Returns:
        (m, n); zeros for rows of no group.

    >>> from purax import lax, numpy as jnp
    >>> lax.ragged_dot(jnp.ones((4, 1)), jnp.array([[[1.0]], [[10.0]]]), jnp.array([1, 2]))
    Array([[ 1.],
           [10.],
           [10.],
           [ 0.]], dtype=float32)
    """
    return ragged_dot_general(
        lhs, rhs, group_sizes, _PLAIN, precision, preferred_element_type, group_offset, out_sharding
    )


def ragged_dot_general(
    lhs: Array,
    rhs: Array,
    group_sizes: Array,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    group_offset: Array | None = None,
    out_sharding: Any = None,
) -> Array:
    """`dot_general` where an axis of lhs is divided into groups.

    Args:
        lhs: an array.
        rhs: an array; with an axis of groups if the divided axis of lhs is neither contracted nor a batch axis.
        group_sizes: integers, along the last axis the sizes of the groups: one row of them, or one for each index of
            the axes of the same role that come before the divided axis (and of the batch axes).
        ragged_dot_dimension_numbers: which axes are what.
        precision, preferred_element_type: as in `dot_general`.
        group_offset: (1,), the group that the first entry of `rhs` is for, if that holds only some.

    Returns:
        What `dot_general` gives if each part of lhs meets the rhs of its group; if the divided axis is contracted, a
        result for each group, along a new first axis.

    >>> from purax import lax, numpy as jnp
    >>> numbers = lax.RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), [1], [])
    >>> lax.ragged_dot_general(jnp.ones((1, 4)), jnp.ones((4, 1)), jnp.array([1, 3]), numbers)
    Array([[[1.]],
    <BLANKLINE>
           [[3.]]], dtype=float32)
    """
    if out_sharding is not None:
        rest = (ragged_dot_dimension_numbers, precision, preferred_element_type, group_offset)
        return freely(lambda x, y, n: ragged_dot_general(x, y, n, *rest), out_sharding, lhs, rhs, group_sizes)
    x, y, sizes = (array("ragged_dot_general", v, i) for i, v in enumerate((lhs, rhs, group_sizes)))
    numbers = ragged_dot_dimension_numbers
    if not isinstance(numbers, RaggedDotDimensionNumbers):
        raise located(
            TypeError,
            "lax.ragged_dot_general: ragged_dot_dimension_numbers is a lax.RaggedDotDimensionNumbers, got "
            f"{shown(numbers)}",
        )
    (contract, rhs_contract), (batch, rhs_batch) = (
        tuple(map(tuple, axes)) for axes in numbers.dot_dimension_numbers
    )
    if not dtypes.is_integer(sizes.aval.dtype):
        raise located(
            TypeError,
            "lax.ragged_dot_general requires that group_sizes.dtype is subtype of np.integer, got "
            f"{sizes.aval.str_short()}",
        )
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise located(
            TypeError,
            "lax.ragged_dot_general expects exactly one lhs ragged dimension, got "
            f"{tuple(numbers.lhs_ragged_dimensions)}",
        )
    (ragged,) = numbers.lhs_ragged_dimensions
    groups = tuple(numbers.rhs_group_dimensions)
    is_free = ragged not in (*contract, *batch)
    shape, rhs_shape = x.aval.shape, y.aval.shape
    for side, what, axes, ndim in (("lhs", "ragged", (ragged,), len(shape)), ("rhs", "group", groups, len(rhs_shape))):
        if any(not 0 <= axis < ndim for axis in axes):
            raise located(
                TypeError,
                f"lax.ragged_dot_general requires {side} {what} dimension numbers to be nonnegative and less than the "
                f"number of axes of the {side} value, got {axes[0]} for {side} of rank {ndim}.",
            )
    if len(groups) != int(is_free):
        kind = "contracting" if ragged in contract else "batch"
        raise located(
            TypeError,
            f"lax.ragged_dot_general requires {'exactly one' if is_free else 'zero'} rhs group dimension"
            f"{'' if is_free else 's'} when lhs ragged dimension is {'noncontracting' if is_free else kind}: axis "
            f"{ragged} of lhs is {'not ' * is_free}contracted or a batch axis; got {groups}",
        )
    if not {*groups}.isdisjoint((*rhs_contract, *rhs_batch)):
        raise located(
            TypeError,
            "lax.ragged_dot_general requires rhs group dimension numbers to be distinct from contracting and batch "
            f"dimensions, got {groups}, {rhs_contract} and {rhs_batch}",
        )
    free = [axis for axis in range(x.aval.ndim) if axis not in (*contract, *batch)]
    rhs_free = [axis for axis in range(y.aval.ndim) if axis not in (*rhs_contract, *rhs_batch, *groups)]
    axes_in("ragged_dot_general", (*contract, *batch), len(shape))
    axes_in("ragged_dot_general", (*rhs_contract, *rhs_batch, *groups), len(rhs_shape))
    if [shape[a] for a in (*contract, *batch)] != [rhs_shape[a] for a in (*rhs_contract, *rhs_batch)]:
        raise located(
            TypeError,
            "lax.ragged_dot_general: dot_general requires contracting dimensions to have the same shape, got "
            f"{tuple(shape[a] for a in contract)} and {tuple(rhs_shape[a] for a in rhs_contract)}; contracted axes "
            f"{contract}, {rhs_contract} and batch axes {batch}, {rhs_batch} of {listed((x.aval, y.aval))}",
        )
    family = free if is_free else contract if ragged in contract else batch
    place = list(family).index(ragged)
    before = [shape[a] for a in family[:place]]
    outer = () if ragged in batch else [shape[a] for a in batch]
    wanted = (*outer, *before, sizes.aval.shape[-1] if sizes.aval.shape else 0)
    if sizes.aval.ndim != 1 and sizes.aval.shape != wanted:
        raise located(
            TypeError,
            f"lax.ragged_dot_general: expected group_sizes to have shape {wanted}, got {sizes.aval.shape}.",
        )
    if is_free and group_offset is None and rhs_shape[groups[0]] != wanted[-1]:
        raise located(
            TypeError,
            f"lax.ragged_dot_general: expected rhs group dimension size to be {wanted[-1]}, got "
            f"{rhs_shape[groups[0]]}: "
            f"group_sizes is for {wanted[-1]} groups, rhs has {rhs_shape[groups[0]]} along axis {groups[0]}",
        )
    if ragged in batch:  # every index has its own pair of matrices anyway
        return dot_general(x, y, numbers.dot_dimension_numbers, precision, preferred_element_type)
    if group_offset is not None and not is_free:
        raise located(
            NotImplementedError, "lax.ragged_dot_general: group_offset is for axes that are not contracted"
        )
    sizes = convert_element_type(sizes, _INT32)
    batch_shape = tuple(shape[a] for a in batch)
    many = sizes.aval.ndim > 1
    product = _Product(precision, preferred_element_type)
    if is_free:
        first = np.zeros((), _INT32)
        if group_offset is not None:
            first = reshape(convert_element_type(array("ragged_dot_general", group_offset), _INT32), ())
        inner = free[place + 1 :]
        left = _grouped(x, (batch, free[:place], (ragged,), inner, contract))
        right = _grouped(y, (rhs_batch, groups, rhs_contract, rhs_free))
        core: Callable = lambda a, b, s: product.of_rows(a, b, s, first)  # noqa: E731
        core = vmap(core, in_axes=(0, None, 0 if many else None))
        core = vmap(core, in_axes=(0, 0, 0 if many else None))
        rows = reshape(sizes, (left.aval.shape[0], left.aval.shape[1], wanted[-1])) if many else sizes
        result = core(left, right, rows)
        return reshape(result, (*batch_shape, *(shape[a] for a in free), *(rhs_shape[a] for a in rhs_free)))
    left = _grouped(x, (batch, contract[:place], (ragged,), contract[place + 1 :], free))
    pairs = dict(zip(contract, rhs_contract, strict=True))
    paired = ([pairs[a] for a in axes] for axes in (contract[:place], (ragged,), contract[place + 1 :]))
    right = _grouped(y, (rhs_batch, *paired, rhs_free))
    core = vmap(product.of_columns, in_axes=(0, 0, 0 if many else None))
    core = vmap(core, in_axes=(0, 0, 0 if many else None))
    rows = reshape(sizes, (left.aval.shape[0], left.aval.shape[1], wanted[-1])) if many else sizes
    result = reduce_sum(core(left, right, rows), (1,))  # (batch, group, lhs, rhs)
    result = transpose(result, (1, 0, 2, 3))
    return reshape(
        result,
        (wanted[-1], *batch_shape, *(shape[a] for a in free), *(rhs_shape[a] for a in rhs_free)),
    )


def _grouped(x: Any, groups: Sequence[Sequence[int]]) -> Any:
    """`x` with each group of axes joined to one, in this order."""
    shape = x.aval.shape
    order = [axis for group in groups for axis in group]
    return reshape(transpose(x, order), [math.prod(shape[axis] for axis in group) for group in groups])


class _Product(NamedTuple):
    """Products of tiles, with the settings of `dot_general`."""

    precision: Any
    preferred: Any

    def batched(self, left: Any, right: Any) -> Any:
        """Sums of products over the axes 1 of both, for each index of the axes 0."""
        numbers = (((1,), (1,)), ((0,), (0,)))
        return dot_general(left, right, numbers, self.precision, self.preferred)

    def of_rows(self, rows: Any, matrices: Any, sizes: Any, first: Any) -> Any:
        """Rows (m, inner, k), matrices (g, k, n) -> (m, inner, n)."""
        m, inner, k = rows.aval.shape
        count, _, n = matrices.aval.shape
        pieces = Pieces(sizes, m)
        own = sub(pieces.group, first)
        inside = and_(ge(own, 0), lt(own, count))
        mask = and_(pieces.mask, broadcast_in_dim(inside, pieces.mask.aval.shape, (0,)))
        tiles = transpose(reshape(pieces.take(rows, mask), (pieces.count, pieces.size * inner, k)), (0, 2, 1))
        products = self.batched(tiles, take(matrices, own, 0))  # (pieces, size · inner, n)
        products = reshape(products, (pieces.count, pieces.size, inner, n))
        return pieces.give_back(products)

    def of_columns(self, left: Any, right: Any, sizes: Any) -> Any:
        """Columns (m, inner, k), (m, inner, n) -> (g, k, n), summed over the columns of each group."""
        m, inner, k = left.aval.shape
        n = right.aval.shape[-1]
        pieces = Pieces(sizes, m)
        tiles = reshape(pieces.take(left, pieces.mask), (pieces.count, pieces.size * inner, k))
        others = reshape(pieces.take(right, pieces.mask), (pieces.count, pieces.size * inner, n))
        products = self.batched(tiles, others)
        blank = full((sizes.aval.shape[0], k, n), 0, products.aval.dtype)
        return sum_into(blank, pieces.group, products)


class Pieces:
    """How groups cut `length` rows into parts of tiles.

    Attributes:
        size: rows of a tile.
        count: how many parts there are at most.
        group, tile: of each part.
        mask: for each part, which rows of its tile are in its group.
    """

    def __init__(self, sizes: Any, length: int):
        groups = sizes.aval.shape[0]
        self.length = length
        self.size = max(min(length, max(8, -(-length // max(groups, 1)))), 1)
        self.tiles = -(-length // self.size)
        self.count = max(self.tiles + groups - 1, 1)
        ends = min_(cumsum(max_(sizes, np.zeros((), _INT32)), 0), number_as(length, _INT32))
        starts = pad(ends, np.zeros((), _INT32), [(1, -1, 0)])  # each group begins where the one before ends
        first = div(starts, self.size)
        spans = select(gt(ends, starts), add(sub(div(sub(ends, 1), self.size), first), 1), 0)
        last = cumsum(spans, 0)
        number = iota(_INT32, (self.count, groups), 0)
        passed = ge(number, broadcast_in_dim(last, (self.count, groups), (1,)))
        found = reduce_sum(convert_element_type(passed, _INT32), (1,))
        self.group = min_(found, np.array(max(groups - 1, 0), _INT32))
        own_first, own_last, own_span = (take(v, self.group, 0) for v in (first, last, spans))
        place = sub(iota(_INT32, (self.count,), 0), sub(own_last, own_span))
        self.tile = min_(add(own_first, place), np.array(max(self.tiles - 1, 0), _INT32))
        shape = (self.count, self.size)
        row = add(broadcast_in_dim(mul(self.tile, self.size), shape, (0,)), iota(_INT32, shape, 1))
        low, high = (broadcast_in_dim(take(v, self.group, 0), shape, (0,)) for v in (starts, ends))
        exists = broadcast_in_dim(lt(found, groups), shape, (0,))
        self.mask = and_(and_(ge(row, low), lt(row, high)), exists)

    def take(self, rows: Any, mask: Any) -> Any:
        """The tile of each part, (count, size, …), zero outside of `mask`."""
        _, inner, k = rows.aval.shape
        missing = self.tiles * self.size - self.length
        framed = pad(rows, np.zeros((), rows.aval.dtype), [(0, missing, 0), (0, 0, 0), (0, 0, 0)])
        tiles = take(reshape(framed, (self.tiles, self.size, inner, k)), self.tile, 0)
        wide = broadcast_in_dim(mask, tiles.aval.shape, (0, 1))
        return select(wide, tiles, np.zeros((), tiles.aval.dtype))

    def give_back(self, parts: Any) -> Any:
        """Rows (length, …) from parts (count, size, …), which are zero where they have none."""
        shape = parts.aval.shape[1:]
        tiles = sum_into(full((self.tiles, *shape), 0, parts.aval.dtype), self.tile, parts)
        rows = reshape(tiles, (self.tiles * self.size, *shape[1:]))
        missing = self.tiles * self.size - self.length
        return pad(rows, np.zeros((), rows.aval.dtype), [(0, -missing, 0), *[(0, 0, 0)] * (len(shape) - 1)])


def sum_into(x: Any, places: Any, parts: Any) -> Any:
    """`x` with the parts added at places along the first axis."""
    ndim = x.aval.ndim
    numbers = ScatterDimensionNumbers(tuple(range(1, ndim)), (0,), (0,))
    return scatter_add(x, reshape(places, (places.aval.shape[0], 1)), parts, numbers)
