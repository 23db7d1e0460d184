"""Running results along an axis, with the operations that have primitives of their own."""

from __future__ import annotations

from purax.core.array import Array
from purax.lax.operands import array, integer
from purax.primitives.reductions.cumulative import cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p
from purax.typing import ArrayLike


def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The running sum along an axis; from the end if `reverse`.

    >>> from purax import lax, numpy as jnp
    >>> lax.cumsum(jnp.arange(4))
    Array([0, 1, 3, 6], dtype=int32)
    """
    return cumsum_p.bind(
        array("cumsum", operand), axis=integer("cumsum", "axis", axis), reverse=bool(reverse)
    )


def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The running product along an axis; from the end if `reverse`.

    >>> from purax import lax, numpy as jnp
    >>> lax.cumprod(jnp.arange(1, 5))
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    return cumprod_p.bind(
        array("cumprod", operand), axis=integer("cumprod", "axis", axis), reverse=bool(reverse)
    )


def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The largest element so far along an axis; from the end if `reverse`.

    >>> from purax import lax, numpy as jnp
    >>> lax.cummax(jnp.array([1, 3, 2]))
    Array([1, 3, 3], dtype=int32)
    """
    return cummax_p.bind(
        array("cummax", operand), axis=integer("cummax", "axis", axis), reverse=bool(reverse)
    )


def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The smallest element so far along an axis; from the end if `reverse`.

    >>> from purax import lax, numpy as jnp
    >>> lax.cummin(jnp.array([3, 1, 2]))
    Array([3, 1, 1], dtype=int32)
    """
    return cummin_p.bind(
        array("cummin", operand), axis=integer("cummin", "axis", axis), reverse=bool(reverse)
    )


def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The running logarithm of the sum of exponentials, without overflow, along an axis; from the end if `reverse`.

    >>> from purax import lax, numpy as jnp
    >>> lax.cumlogsumexp(jnp.zeros(3))
    Array([0.       , 0.6931472, 1.0986123], dtype=float32)
    """
    return cumlogsumexp_p.bind(
        array("cumlogsumexp", operand), axis=integer("cumlogsumexp", "axis", axis), reverse=bool(reverse)
    )
