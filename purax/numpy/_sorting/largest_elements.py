"""The largest or smallest elements along an axis, with their places."""

from __future__ import annotations

import operator
from typing import Any

from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.lax.sorting import top_k as largest
from purax.numpy._indexing.taking import take_along_axis
from purax.numpy._promotion import as_array
from purax.numpy._shape.axes import canonical_axis
from purax.numpy._sorting.sorting import argsort
from purax.primitives.shape.slicing import slice_axis
from purax.typing import ArrayLike


def top_k(
    a: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True
) -> tuple[Array, Array]:
    """The `k` largest or smallest elements along an axis, and their indices.

    Args:
        a: an array.
        k: how many.
        axis: the axis.
        mode: "largest" or "smallest". NaN counts as larger than all numbers.
        sorted: whether they stand in order, which they do in any case.

    >>> import purax.numpy as jnp
    >>> jnp.top_k(jnp.array([3, 1, 4, 1, 5]), 2)
    (Array([5, 4], dtype=int32), Array([4, 2], dtype=int32))
    >>> jnp.top_k(jnp.array([3, 1, 4, 1, 5]), 2, mode="smallest")[0].tolist()
    [1, 1]
    """
    x: Any = as_array(a, "top_k")
    place = canonical_axis("top_k", axis, x.ndim)
    count = operator.index(k)
    if mode not in ("largest", "smallest"):
        raise located(ValueError, f"top_k: mode must be 'largest' or 'smallest', got {shown(mode)}")
    if count < 0:
        raise located(ValueError, f"k argument to top_k must be nonnegative, got {count}")
    if count > x.shape[place]:
        raise located(
            ValueError,
            f"k argument to top_k must be no larger than size along axis; got k={count} with shape={x.shape} and "
            f"axis={place}",
        )
    if mode == "largest":
        values, indices = largest(x, count, axis=place)
        return values, indices
    indices = slice_axis(argsort(x, place), 0, count, place)
    return take_along_axis(x, indices, place), indices
