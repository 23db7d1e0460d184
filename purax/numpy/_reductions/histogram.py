"""Histograms in one and more dimensions."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.limits import finite, numpy_value
from purax.core.source import located
from purax.errors import shown
from purax.numpy._creation.ranges import linspace
from purax.numpy._differences import diff
from purax.numpy._indexing.nonzero import refuse_unknown_size
from purax.numpy._indexing.selection import where
from purax.numpy._programs import as_one_program, concrete_value, constant_value, host_array, strong_array
from purax.numpy._promotion import as_array, common_dtype
from purax.numpy._reductions.reductions import max, min
from purax.numpy._reductions.reductions import sum as summed
from purax.numpy._shape.joining import stack
from purax.numpy._shape.shaping import ravel, reshape
from purax.numpy._sorting.searching import search
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.logic import and_, clamp
from purax.primitives.shape.broadcasting import full
from purax.primitives.shape.gather_scatter import FILL_OR_DROP, ScatterDimensionNumbers, scatter_add, take
from purax.primitives.shape.reshaping import expand_dims
from purax.typing import ArrayLike


def histogram_bin_edges(
    a: ArrayLike, bins: ArrayLike = 10, range: Any = None, weights: ArrayLike | None = None
) -> Array:
    """The edges of the bins of a histogram.

    Args:
        a: the values, flattened.
        bins: how many bins of equal width there are, or their edges, or the name of one of NumPy's rules such as "auto"
            (for known values).
        range: a pair of the lowest and the highest edge; those of the values if not given.
        weights: not used.

    Returns:
        The edges, one more than there are bins.

    >>> import purax.numpy as jnp
    >>> jnp.histogram_bin_edges(jnp.array([1.0, 2.0, 4.0]), bins=3)
    Array([1., 2., 3., 4.], dtype=float32)
    """
    return _edges("histogram_bin_edges", strong_array(a, "histogram_bin_edges"), bins, range)


def _edges(name: str, x: Array, bins: Any, range: Any) -> Array:
    dtype = dtypes.to_inexact_dtype(x.dtype)
    if isinstance(bins, str):
        known = constant_value(x)
        if known is None:
            refuse_unknown_size(name, x, f"jnp.{name}(x, bins=n)")
        bounds: Any = None if range is None else tuple(float(end) for end in finite(range, 2))
        return host_array(np.histogram_bin_edges(known.ravel(), bins, bounds).astype(dtype))
    count = as_array(bins, f"{name}(bins=...)")
    if count.ndim == 1:
        known = concrete_value(count)
        if known is not None and (np.diff(known) < 0).any():
            raise located(ValueError, f"{name}: bins must increase monotonically, got {known}")
        return convert_element_type(count, dtype)
    if count.ndim or not dtypes.is_integer(count.dtype):
        raise located(
            TypeError, f"{name}: bins must be an integer or a vector of edges, got {count.aval.str_short()}"
        )
    number = concrete_value(bins)
    if number is None or number < 0:
        raise located(
            ValueError, f"{name}: the number of bins must be a known integer that is not negative, got {bins}"
        )
    if range is None:
        if x.size:
            low, high = min(x), max(x)
        else:
            low, high = host_array(np.zeros((), dtype)), host_array(np.ones((), dtype))
    else:
        low, high = _ends(name, range)
    low, high = convert_element_type(low, dtype), convert_element_type(high, dtype)
    is_point = low == high
    low, high = where(is_point, low - 0.5, low), where(is_point, high + 0.5, high)
    return linspace(low, high, int(number) + 1, dtype=dtype)


def _ends(name: str, range: Any) -> tuple[Array, Array]:
    ends = list(finite(range))
    if len(ends) != 2:
        raise located(ValueError, f"{name}: range must be a pair (lowest, highest), got {shown(range)}")
    known = [concrete_value(end) for end in ends]
    if all(end is not None for end in known):
        if known[0] > known[1]:
            raise located(ValueError, f"{name}: range must be a pair (lowest, highest), got {shown(range)}")
        if not np.isfinite(known).all():
            raise located(ValueError, f"{name}: range must be finite, got {shown(range)}")
    low, high = (as_array(end, f"{name}(range=...)") for end in ends)
    return low, high


def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Any = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array]:
    """How many values lie in each of a number of bins.

    Args:
        a: the values, flattened.
        bins: how many bins of equal width there are, or their edges; see `histogram_bin_edges`.
        range: a pair of the lowest and the highest edge; those of the values if not given.
        weights: what each value counts, in the shape of `a`.
        density: whether to divide by the total and by the widths of the bins, so that the integral is 1.

    Returns:
        The counts, as floating point numbers, and the edges of the bins. The last bin holds its upper edge, too.

    >>> import purax.numpy as jnp
    >>> counts, edges = jnp.histogram(jnp.array([1.0, 2.0, 2.5, 4.0]), bins=3)
    >>> counts
    Array([1., 2., 1.], dtype=float32)
    """
    x = strong_array(a, "histogram")
    edges = _edges("histogram", x, bins, range)
    dtype = dtypes.to_inexact_dtype(x.dtype)
    counted = _weights("histogram", weights, x.shape)
    if counted is not None:
        dtype = dtypes.to_inexact_dtype(common_dtype((x, counted))[0])
    values = ravel(convert_element_type(x, edges.dtype))
    operands = [values, edges]
    if counted is not None:
        operands.append(convert_element_type(ravel(counted), dtype))
    is_uniform = isinstance(bins, (int, np.integer)) and edges.shape[0] > 1
    counts = _count(*operands, dtype=dtype, is_uniform=is_uniform)
    if density:
        counts = counts / diff(edges) / summed(counts)
    return counts, edges


def _weights(name: str, weights: Any, shape: tuple[int, ...]) -> Array | None:
    if weights is None:
        return None
    counted = strong_array(weights, f"{name}(weights=...)")
    if counted.shape != shape:
        raise located(
            ValueError, f"{name}: weights must have the shape {shape} of the values, got {counted.shape}"
        )
    return counted


@as_one_program()
def _count(values, edges, *weights, dtype, is_uniform):
    bins = edges.shape[0] - 1
    start = full((bins,), 0, dtype)
    if not values.size or not bins:
        return start
    weight = weights[0] if weights else full(values.shape, 1, dtype)
    places = (_uniform_bin_of if is_uniform else _bin_of)(values, edges)
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    return scatter_add(start, expand_dims(places, (1,)), weight, numbers, mode=FILL_OR_DROP)


def _uniform_bin_of(values, edges):
    """`_bin_of` for bins of equal width: computed, and then moved by one where rounding made it wrong."""
    bins = edges.shape[0] - 1
    index = dtypes.default_int()
    low, high = edges[0], edges[-1]
    share = (values - low) * (bins / (high - low))
    guess = clamp(np.array(0, index), convert_element_type(share, index), np.array(bins - 1, index))
    guess = guess - (values < take(edges, guess, 0)).astype(index)
    guess = clamp(np.array(0, index), guess, np.array(bins - 1, index))
    guess = guess + ((values >= take(edges, guess + 1, 0)) & (guess != bins - 1)).astype(index)
    return where((values >= low) & (values <= high), guess, bins)


def _bin_of(values, edges):
    """The bin of each value, from 0; out of the range of bins for values beyond the edges."""
    bins = edges.shape[0] - 1
    places = search(edges, values, side="right", method="scan") - 1
    return where(and_(values == edges[-1], places == bins), bins - 1, places)


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Any = 10,
    range: Any = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """How many points of the plane lie in each of a grid of bins.

    Args:
        x, y: the coordinates of the points, vectors.
        bins: a number of bins, or edges, for both axes or a pair of those.
        range: for each axis a pair of the lowest and the highest edge, or None.
        weights: what each point counts.
        density: whether to divide by the total and by the areas of the bins.

    Returns:
        The counts, and the edges of the bins along both axes.

    >>> import purax.numpy as jnp
    >>> jnp.histogram2d(jnp.array([0.0, 1.0, 1.0]), jnp.array([0.0, 0.0, 1.0]), bins=2)[0]
    Array([[1, 0],
           [1, 1]], dtype=int32)
    """
    first, second = strong_array(x, "histogram2d", 0), strong_array(y, "histogram2d", 1)
    if first.ndim != 1 or first.shape != second.shape:
        raise located(
            ValueError,
            f"histogram2d: x and y must be vectors of equal length, got {first.shape} and {second.shape}",
        )
    if not isinstance(bins, (list, tuple)) or len(bins) not in (1, 2):
        edges = (
            bins
            if isinstance(bins, (int, np.integer))
            else numpy_value(bins)
            if isinstance(bins, list)
            else bins
        )
        bins = [edges, edges]
    elif len(bins) == 1:
        bins = [bins[0], bins[0]]
    counts, edges = histogramdd(stack([first, second], 1), bins, range, weights, density)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: ArrayLike,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """How many points of a space lie in each of a grid of bins.

    Args:
        sample: the points, as rows of a matrix.
        bins: a number of bins for all axes, or for each axis a number or edges.
        range: for each axis a pair of the lowest and the highest edge, or None.
        weights: what each point counts.
        density: whether to divide by the total and by the volumes of the bins.

    Returns:
        The counts, with an axis for each coordinate, and a list of the edges of the bins.

    >>> import purax.numpy as jnp
    >>> counts, edges = jnp.histogramdd(jnp.array([[0.0, 0.0], [1.0, 1.0], [1.0, 0.9]]), bins=2)
    >>> counts
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    points = strong_array(sample, "histogramdd")
    if points.ndim != 2:
        raise located(
            ValueError, f"histogramdd: sample must be a matrix with points as rows, got shape {points.shape}"
        )
    count, dimensions = points.shape
    if isinstance(bins, (int, np.integer)):
        bins = [bins] * dimensions
    if len(bins) != dimensions:
        raise located(
            ValueError,
            f"histogramdd: bins must have an entry for each of {dimensions} coordinates, got {len(bins)}",
        )
    ranges = [None] * dimensions if range is None else list(finite(range))
    if len(ranges) != dimensions:
        raise located(
            ValueError,
            f"histogramdd: range must have an entry for each of {dimensions} coordinates, got {len(ranges)}",
        )
    columns = [points[:, i] for i in builtins.range(dimensions)]
    edges = [
        _edges("histogramdd", column, np.asarray(own) if isinstance(own, list) else own, pair)
        for column, own, pair in zip(columns, bins, ranges, strict=True)
    ]
    counted = _weights("histogramdd", weights, (count,))
    dtype = dtypes.default_int() if counted is None else counted.dtype
    columns = [convert_element_type(c, e.dtype) for c, e in zip(columns, edges, strict=True)]
    operands = [*columns, *edges, *([] if counted is None else [counted])]
    counts = _count_in_grid(*operands, dimensions=dimensions, dtype=dtype)
    if density:
        total = summed(counts)
        counts = counts / total
        for axis, one in enumerate(edges):
            widths = diff(one)
            counts = counts / reshape(
                widths, [widths.size if i == axis else 1 for i in builtins.range(dimensions)]
            )
    return counts, edges


@as_one_program()
def _count_in_grid(*operands, dimensions, dtype):
    columns, edges, weights = (
        operands[:dimensions],
        operands[dimensions : 2 * dimensions],
        operands[2 * dimensions :],
    )
    sizes = tuple([e.shape[0] - 1 for e in edges])
    start = full(sizes, 0, dtype)
    count = columns[0].shape[0]
    if not count or 0 in sizes:
        return start
    weight = weights[0] if weights else full((count,), 1, dtype)
    places = stack([_bin_of(c, e) for c, e in zip(columns, edges, strict=True)], 1)
    every = tuple(builtins.range(dimensions))
    return scatter_add(start, places, weight, ScatterDimensionNumbers((), every, every), mode=FILL_OR_DROP)
