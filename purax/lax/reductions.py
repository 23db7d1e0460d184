"""Reductions over axes with operations that have primitives; for any other see `purax.lax.general_reductions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from purax.config import config
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.lax import families
from purax.lax.operands import array, integer, sizes_of
from purax.primitives.reductions import reduction
from purax.primitives.shape.broadcasting import reduce_sum_p
from purax.sharding.constraints import freely
from purax.typing import ArrayLike

# fmt: off
reduce_prod = families.reduction("reduce_prod", reduction.reduce_prod_p, "The product over `axes`.",
    "lax.reduce_prod(jnp.arange(1, 5), (0,))", "Array(24, dtype=int32)")
reduce_max = families.reduction("reduce_max", reduction.reduce_max_p, "The largest element over `axes`.",
    "lax.reduce_max(jnp.arange(4), (0,))", "Array(3, dtype=int32)")
reduce_min = families.reduction("reduce_min", reduction.reduce_min_p, "The smallest element over `axes`.",
    "lax.reduce_min(jnp.arange(4), (0,))", "Array(0, dtype=int32)")
reduce_and = families.reduction("reduce_and", reduction.reduce_and_p,
    "Whether all elements are true, bit by bit for integers, over `axes`.",
    "lax.reduce_and(jnp.array([True, False]), (0,))", "Array(False, dtype=bool)")
reduce_or = families.reduction("reduce_or", reduction.reduce_or_p,
    "Whether any element is true, bit by bit for integers, over `axes`.",
    "lax.reduce_or(jnp.array([True, False]), (0,))", "Array(True, dtype=bool)")
reduce_xor = families.reduction("reduce_xor", reduction.reduce_xor_p,
    "Whether an odd number of elements are true, bit by bit for integers, over `axes`.",
    "lax.reduce_xor(jnp.array([True, False]), (0,))", "Array(True, dtype=bool)")
# fmt: on


def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The sum over `axes`.

    >>> from purax import lax, numpy as jnp
    >>> lax.reduce_sum(jnp.arange(4), (0,))
    Array(6, dtype=int32)
    """
    if out_sharding is not None:
        return freely(lambda x: reduce_sum(x, axes), out_sharding, operand)
    x = array("reduce_sum", operand)
    if not config.allow_f16_reductions and x.dtype.itemsize == 2 and dtypes.is_inexact(x.dtype):
        raise located(
            TypeError,
            f"reduce_sum of {x.aval.str_short()} adds in 16 bits, and allow_f16_reductions is off; convert it to "
            "float32 first, as jnp.sum does by itself",
        )
    return reduce_sum_p.bind(x, axes=sizes_of(axes, "axes"))


def argmax(operand: ArrayLike, axis: int, index_dtype: Any) -> Array:
    """The index of the first largest element along an axis, of the first NaN if there is one.

    Args:
        operand: an array.
        axis: where to look; it is not counted from the end.
        index_dtype: the dtype of the result.

    >>> from purax import lax, numpy as jnp
    >>> lax.argmax(jnp.array([3, 1, 4]), 0, int)
    Array(2, dtype=int32)
    """
    return reduction.argmax_p.bind(
        array("argmax", operand),
        axes=(integer("argmax", "axis", axis),),
        index_dtype=dtypes.as_dtype(index_dtype, "index_dtype"),
    )


def argmin(operand: ArrayLike, axis: int, index_dtype: Any) -> Array:
    """The index of the first smallest element along an axis, of the first NaN if there is one.

    Args:
        operand: an array.
        axis: where to look; it is not counted from the end.
        index_dtype: the dtype of the result.

    >>> from purax import lax, numpy as jnp
    >>> lax.argmin(jnp.array([3, 1, 4]), 0, int)
    Array(1, dtype=int32)
    """
    return reduction.argmin_p.bind(
        array("argmin", operand),
        axes=(integer("argmin", "axis", axis),),
        index_dtype=dtypes.as_dtype(index_dtype, "index_dtype"),
    )
