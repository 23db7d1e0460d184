"""Comparisons, operations on bits, and choosing between values, as `jax.lax` has them."""

from __future__ import annotations

from purax.core.array import Array
from purax.core.avals import aval_of
from purax.core.source import located
from purax.lax.families import binary, unary
from purax.lax.operands import array, listed, operand, same_dtypes
from purax.primitives.elementwise import logic
from purax.typing import ArrayLike

# fmt: off
eq = binary("eq", logic.eq_p, "Whether x = y.",
    "lax.eq(jnp.arange(3), 1)", "Array([False,  True, False], dtype=bool)")
ne = binary("ne", logic.ne_p, "Whether x ≠ y.",
    "lax.ne(jnp.arange(3), 1)", "Array([ True, False,  True], dtype=bool)")
lt = binary("lt", logic.lt_p, "Whether x < y.",
    "lax.lt(jnp.arange(3), 1)", "Array([ True, False, False], dtype=bool)")
le = binary("le", logic.le_p, "Whether x ≤ y.",
    "lax.le(jnp.arange(3), 1)", "Array([ True,  True, False], dtype=bool)")
gt = binary("gt", logic.gt_p, "Whether x > y.",
    "lax.gt(jnp.arange(3), 1)", "Array([False, False,  True], dtype=bool)")
ge = binary("ge", logic.ge_p, "Whether x ≥ y.",
    "lax.ge(jnp.arange(3), 1)", "Array([False,  True,  True], dtype=bool)")
is_finite = unary("is_finite", logic.is_finite_p, "Whether x is neither infinite nor NaN.",
    "lax.is_finite(jnp.array([1.0, jnp.inf, jnp.nan]))", "Array([ True, False, False], dtype=bool)")
bitwise_and = binary("bitwise_and", logic.and_p, "The bits that are set in both x and y.",
    "lax.bitwise_and(6, 3)", "Array(2, dtype=int32, weak_type=True)")
bitwise_or = binary("bitwise_or", logic.or_p, "The bits that are set in x or in y.",
    "lax.bitwise_or(6, 3)", "Array(7, dtype=int32, weak_type=True)")
bitwise_xor = binary("bitwise_xor", logic.xor_p, "The bits that are set in one of x and y.",
    "lax.bitwise_xor(6, 3)", "Array(5, dtype=int32, weak_type=True)")
bitwise_not = unary("bitwise_not", logic.not_p, "The bits that are not set in x.",
    "lax.bitwise_not(jnp.array([True, False]))", "Array([False,  True], dtype=bool)")
shift_left = binary("shift_left", logic.shift_left_p, "The bits of x moved up by y places.",
    "lax.shift_left(jnp.arange(3), 2)", "Array([0, 4, 8], dtype=int32)")
shift_right_arithmetic = binary(
    "shift_right_arithmetic", logic.shift_right_arithmetic_p, "The bits of x moved down by y places, the sign "
    "repeated.",
    "lax.shift_right_arithmetic(-8, 1)", "Array(-4, dtype=int32, weak_type=True)")
shift_right_logical = binary(
    "shift_right_logical", logic.shift_right_logical_p, "The bits of x moved down by y places, zeros coming in.",
    "lax.shift_right_logical(jnp.uint8(128), jnp.uint8(7))", "Array(1, dtype=uint8)")
population_count = unary("population_count", logic.population_count_p, "The number of bits that are set in x.",
    "lax.population_count(jnp.array([0, 7, -1]))", "Array([ 0,  3, 32], dtype=int32)")
clz = unary("clz", logic.clz_p, "The number of leading bits of x that are not set.",
    "lax.clz(jnp.array([0, 1, -1]))", "Array([32, 31,  0], dtype=int32)")
# fmt: on


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
    return logic.clamp_p.bind(low, x, high)


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
    return logic.select_n_p.bind(which, *operands)
