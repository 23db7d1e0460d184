"""Sorted arrays, and the largest elements of arrays."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from purax.core import dtypes
from purax.core.array import Array
from purax.core.dimensions import as_size
from purax.core.source import located
from purax.lax.operands import array, axis_in, listed
from purax.primitives.elementwise.elementwise import neg
from purax.primitives.sorting import sort_p, top_k_p
from purax.typing import ArrayLike


def sort(
    operand: ArrayLike | Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Any:
    """Sorts along an axis.

    Args:
        operand: an array, or several of one shape, which are reordered together.
        dimension: the axis.
        is_stable: whether equal elements keep their order. (They always do on the CPU.)
        num_keys: how many of the arrays are compared, the first one first.

    Returns:
        The sorted array, or a tuple of the reordered arrays. NaN comes last; 0 and −0 are equal.

    >>> from purax import lax, numpy as jnp
    >>> lax.sort((jnp.array([3, 1, 2]), jnp.array([10, 20, 30])))
    (Array([1, 2, 3], dtype=int32), Array([20, 30, 10], dtype=int32))
    """
    several = isinstance(operand, (tuple, list))
    arrays = [
        array("sort", x, i)
        for i, x in enumerate(operand if isinstance(operand, (tuple, list)) else (operand,))
    ]
    if not arrays:
        raise located(TypeError, "Sort requires at least one operand: lax.sort needs at least one array")
    avals = [x.aval for x in arrays]
    if any(aval.shape != avals[0].shape for aval in avals):
        shapes = " ".join(str(aval.shape) for aval in avals)
        raise located(
            TypeError, f"Arguments to sort must have equal shapes, got: {shapes}: lax.sort of {listed(avals)}"
        )
    results = sort_p.bind(
        *arrays,
        dimension=axis_in("sort", dimension, avals[0].ndim),
        is_stable=bool(is_stable),
        num_keys=operator.index(num_keys),
    )
    return tuple(results) if several else results[0]


def sort_key_val(
    keys: Array, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sorts keys along an axis, and moves values with them.

    >>> from purax import lax, numpy as jnp
    >>> lax.sort_key_val(jnp.array([3, 1, 2]), jnp.array([10, 20, 30]))
    (Array([1, 2, 3], dtype=int32), Array([20, 30, 10], dtype=int32))
    """
    return sort((keys, values), dimension, is_stable, 1)


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> list[Array]:
    """The k largest elements along an axis, largest first, and their indices.

    >>> from purax import lax, numpy as jnp
    >>> lax.top_k(jnp.array([3, 1, 4, 1, 5]), 2)
    [Array([5, 4], dtype=int32), Array([4, 2], dtype=int32)]
    """
    x = array("top_k", operand)
    return top_k_p.bind(x, k=as_size(k), axis=axis_in("top_k", axis, x.aval.ndim))


def approx_max_k(
    operand: Array,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """At least a share of the k largest elements along an axis, and their indices. (All of them, in fact.)

    Args:
        operand: a floating point array.
        k: how many.
        reduction_dimension: the axis.
        recall_target: the share of the k largest that must be among the results, in (0, 1].
        reduction_input_size_override: the size of the axis that the array is a part of, at least its own; −1 if it is
            no part.
        aggregate_to_topk: whether there are k results; else there may be more, here all elements of the axis.

    >>> from purax import lax, numpy as jnp
    >>> lax.approx_max_k(jnp.array([3.0, 1.0, 4.0]), 2)
    [Array([4., 3.], dtype=float32), Array([2, 0], dtype=int32)]
    """
    given = (recall_target, reduction_input_size_override, aggregate_to_topk)
    x, k = _approximate("approx_max_k", operand, k, reduction_dimension, *given)
    return top_k(x, k, axis=reduction_dimension)


def approx_min_k(
    operand: Array,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """At least a share of the k smallest elements along an axis, and their indices; see `approx_max_k`.

    >>> from purax import lax, numpy as jnp
    >>> lax.approx_min_k(jnp.array([3.0, 1.0, 4.0]), 2)
    [Array([1., 3.], dtype=float32), Array([1, 0], dtype=int32)]
    """
    given = (recall_target, reduction_input_size_override, aggregate_to_topk)
    x, k = _approximate("approx_min_k", operand, k, reduction_dimension, *given)
    values, indices = top_k(neg(x), k, axis=reduction_dimension)
    return [neg(values), indices]


def _approximate(
    name: str, x: Any, k: int, axis: int, recall_target: float, whole_size: int, to_top_k: bool
) -> tuple[Any, int]:
    """The checked array, and how many results there are."""
    x = array(name, x)
    if not dtypes.is_floating(x.aval.dtype):
        raise located(
            ValueError, f"lax.{name} takes a floating point array, got {x.aval.str_short()}; see lax.top_k"
        )
    if not 0 < recall_target <= 1:
        raise located(ValueError, f"lax.{name}: recall_target must be in (0, 1], got {recall_target}")
    size = x.aval.shape[axis_in(name, axis, x.aval.ndim)]
    if 0 <= whole_size < size:
        raise located(
            ValueError,
            f"lax.{name}: reduction_input_size_override must be -1 or at least the size of the axis, {size}, got "
            f"{whole_size}",
        )
    if k > size:
        raise located(ValueError, f"lax.{name}: k = {k} is more than the size of the axis, {size}")
    return x, k if to_top_k else size
