"""Comparisons, operations on bits, and choosing between values, as `jax.lax` has them."""

from __future__ import annotations

from purax.core.array import Array
from purax.core.avals import aval_of
from purax.core.source import located
from purax.lax.operands import array, listed, operand, pair, same_dtypes
from purax.primitives.elementwise.logic import (
    and_p,
    clamp_p,
    clz_p,
    eq_p,
    ge_p,
    gt_p,
    is_finite_p,
    le_p,
    lt_p,
    ne_p,
    not_p,
    or_p,
    population_count_p,
    select_n_p,
    shift_left_p,
    shift_right_arithmetic_p,
    shift_right_logical_p,
    xor_p,
)
from purax.typing import ArrayLike
from purax.xla.array import DeviceArray


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x = y.

    >>> from purax import lax, numpy as jnp
    >>> lax.eq(jnp.arange(3), 1)
    Array([False,  True, False], dtype=bool)
    """
    return eq_p.bind(*pair("eq", x, y))


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x ≠ y.

    >>> from purax import lax, numpy as jnp
    >>> lax.ne(jnp.arange(3), 1)
    Array([ True, False,  True], dtype=bool)
    """
    return ne_p.bind(*pair("ne", x, y))


def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x < y.

    >>> from purax import lax, numpy as jnp
    >>> lax.lt(jnp.arange(3), 1)
    Array([ True, False, False], dtype=bool)
    """
    return lt_p.bind(*pair("lt", x, y))


def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x ≤ y.

    >>> from purax import lax, numpy as jnp
    >>> lax.le(jnp.arange(3), 1)
    Array([ True,  True, False], dtype=bool)
    """
    return le_p.bind(*pair("le", x, y))


def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x > y.

    >>> from purax import lax, numpy as jnp
    >>> lax.gt(jnp.arange(3), 1)
    Array([False, False,  True], dtype=bool)
    """
    return gt_p.bind(*pair("gt", x, y))


def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x ≥ y.

    >>> from purax import lax, numpy as jnp
    >>> lax.ge(jnp.arange(3), 1)
    Array([False,  True,  True], dtype=bool)
    """
    return ge_p.bind(*pair("ge", x, y))


def is_finite(x: ArrayLike) -> Array:
    """Whether x is neither infinite nor NaN.

    >>> from purax import lax, numpy as jnp
    >>> lax.is_finite(jnp.array([1.0, jnp.inf, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """
    return is_finite_p.bind(x if type(x) is DeviceArray else operand("is_finite", x))


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits that are set in both x and y.

    >>> from purax import lax
    >>> lax.bitwise_and(6, 3)
    Array(2, dtype=int32, weak_type=True)
    """
    return and_p.bind(*pair("bitwise_and", x, y))


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits that are set in x or in y.

    >>> from purax import lax
    >>> lax.bitwise_or(6, 3)
    Array(7, dtype=int32, weak_type=True)
    """
    return or_p.bind(*pair("bitwise_or", x, y))


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits that are set in one of x and y.

    >>> from purax import lax
    >>> lax.bitwise_xor(6, 3)
    Array(5, dtype=int32, weak_type=True)
    """
    return xor_p.bind(*pair("bitwise_xor", x, y))


def bitwise_not(x: ArrayLike) -> Array:
    """The bits that are not set in x.

    >>> from purax import lax, numpy as jnp
    >>> lax.bitwise_not(jnp.array([True, False]))
    Array([False,  True], dtype=bool)
    """
    return not_p.bind(x if type(x) is DeviceArray else operand("bitwise_not", x))


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits of x moved up by y places.

    >>> from purax import lax, numpy as jnp
    >>> lax.shift_left(jnp.arange(3), 2)
    Array([0, 4, 8], dtype=int32)
    """
    return shift_left_p.bind(*pair("shift_left", x, y))


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits of x moved down by y places, the sign repeated.

    >>> from purax import lax
    >>> lax.shift_right_arithmetic(-8, 1)
    Array(-4, dtype=int32, weak_type=True)
    """
    return shift_right_arithmetic_p.bind(*pair("shift_right_arithmetic", x, y))


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits of x moved down by y places, zeros coming in.

    >>> from purax import lax, numpy as jnp
    >>> lax.shift_right_logical(jnp.uint8(128), jnp.uint8(7))
    Array(1, dtype=uint8)
    """
    return shift_right_logical_p.bind(*pair("shift_right_logical", x, y))


def population_count(x: ArrayLike) -> Array:
    """The number of bits that are set in x.

    >>> from purax import lax, numpy as jnp
    >>> lax.population_count(jnp.array([0, 7, -1]))
    Array([ 0,  3, 32], dtype=int32)
    """
    return population_count_p.bind(x if type(x) is DeviceArray else operand("population_count", x))


def clz(x: ArrayLike) -> Array:
    """The number of leading bits of x that are not set.

    >>> from purax import lax, numpy as jnp
    >>> lax.clz(jnp.array([0, 1, -1]))
    Array([32, 31,  0], dtype=int32)
    """
    return clz_p.bind(x if type(x) is DeviceArray else operand("clz", x))


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """The number nearest to x between `min` and `max`.

    Args:
        min, max: the bounds, scalars or of the shape of `x`, and of its dtype.
        x: an array.

    >>> from purax import lax, numpy as jnp
    >>> lax.clamp(0, jnp.array([-1, 1, 9]), 5)
    Array([0, 1, 5], dtype=int32)
    """
    x = array("clamp", x, 1)
    low, high = operand("clamp", min), operand("clamp", max, 2)
    same_dtypes("clamp", [aval_of(low), x.aval, aval_of(high)])
    return clamp_p.bind(low, x, high)


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Chooses element by element.

    Args:
        pred: booleans: one, or an array of the shape of the others.
        on_true: where `pred` is true; an array.
        on_false: where it is false; of the same shape and dtype.

    Returns:
        The chosen elements.

    >>> from purax import lax, numpy as jnp
    >>> lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([3, 4]))
    Array([1, 4], dtype=int32)
    """
    return select_n(pred, on_false, on_true)


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Chooses element by element from several arrays.

    Args:
        which: for each element the number of the case: bool for up to two, else int32. A scalar, or of the shape of
            the cases.
        *cases: arrays of one shape and dtype.

    Returns:
        The chosen elements; numbers out of range mean the first or the last case.

    >>> from purax import lax, numpy as jnp
    >>> lax.select_n(jnp.array([0, 2]), jnp.array([1, 2]), jnp.array([3, 4]), jnp.array([5, 6]))
    Array([1, 6], dtype=int32)
    """
    if not cases:
        raise located(ValueError, "select_n() must have at least one case")
    operands = [array("select_n", case, i + 1) for i, case in enumerate(cases)]
    avals = [case.aval for case in operands]
    if any(aval.shape != avals[0].shape for aval in avals):
        shapes = [aval.shape for aval in avals]
        raise located(
            TypeError, f"select cases must have the same shapes, got {shapes}: lax.select of {listed(avals)}"
        )
    same_dtypes("select", avals)
    which = array("select_n", which)
    if which.aval.shape not in ((), avals[0].shape):
        raise located(
            TypeError,
            "select `which` must be scalar or have the same shape as cases, got `which` shape "
            f"{which.aval.shape} but case shape {avals[0].shape}.",
        )
    return select_n_p.bind(which, *operands)
