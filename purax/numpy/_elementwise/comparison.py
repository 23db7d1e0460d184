"""Comparisons, logic, operations on bits, and tests of what kind of number an element is.

Complex numbers are ordered by their real parts, and by their imaginary parts where those are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.limits import numpy_value
from purax.core.source import located
from purax.numpy._creation.creation import asarray
from purax.numpy._elementwise.families import BITS, alias_of_two, comparison, logical, promoted
from purax.numpy._promotion import (
    BOOL,
    as_array,
    as_operand,
    binary,
    broadcast_operands,
    broadcast_shapes,
    convert,
    dtype_of,
    fused,
    refuse_out,
    shape_of,
)
from purax.primitives.elementwise.arithmetic import abs_, sub
from purax.primitives.elementwise.conversion import bitcast_convert_type, convert_element_type, imag, real
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.elementwise.logic import (
    and_,
    and_p,
    eq,
    eq_p,
    ge_p,
    gt_p,
    is_finite,
    is_finite_p,
    le,
    le_p,
    lt,
    lt_p,
    ne,
    ne_p,
    not_,
    not_p,
    or_,
    or_p,
    population_count_p,
    select,
    shift_left_p,
    shift_right_arithmetic_p,
    shift_right_logical_p,
    signed_dtype,
    xor_p,
)
from purax.primitives.reductions.reduction import reduce_and
from purax.primitives.shape.broadcasting import full
from purax.typing import ArrayLike

# --- comparisons


def _compare_complex(primitive, x, y):
    x, y = broadcast_operands(primitive.name, [x, y], scalars=True)
    return select(eq(real(x), real(y)), primitive.bind(imag(x), imag(y)), primitive.bind(real(x), real(y)))


def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x = y on each element.

    Args:
        x, y: arrays or numbers, broadcast against each other.

    Returns:
        Truth values.

    >>> import purax.numpy as jnp
    >>> jnp.equal(jnp.array([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    dtype, x, y = binary("equal", x, y)
    if dtype is dtypes.float0:  # it has one value, of no content
        return full(broadcast_shapes(shape_of(x), shape_of(y)), True, BOOL)
    return eq_p.bind(x, y)


def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x ≠ y on each element.

    Args:
        x: an array or a number.
        y: another, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.not_equal(jnp.array([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    dtype, x, y = binary("not_equal", x, y)
    if dtype is dtypes.float0:
        return full(broadcast_shapes(shape_of(x), shape_of(y)), False, BOOL)
    return ne_p.bind(x, y)


# fmt: off
less = comparison("less", lt_p, _compare_complex, "x < y on each element.",
    "jnp.less(jnp.array([1, 2, 3]), 2)", "Array([ True, False, False], dtype=bool)")
less_equal = comparison("less_equal", le_p, _compare_complex, "x ≤ y on each element.",
    "jnp.less_equal(jnp.array([1, 2, 3]), 2)", "Array([ True,  True, False], dtype=bool)")
greater = comparison("greater", gt_p, _compare_complex, "x > y on each element.",
    "jnp.greater(jnp.array([1, 2, 3]), 2)", "Array([False, False,  True], dtype=bool)")
greater_equal = comparison("greater_equal", ge_p, _compare_complex, "x ≥ y on each element.",
    "jnp.greater_equal(jnp.array([1, 2, 3]), 2)", "Array([False,  True,  True], dtype=bool)")
# fmt: on


def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-5, atol: ArrayLike = 1e-8, equal_nan: bool = False
) -> Array:
    """Whether |a − b| ≤ atol + rtol·|b|, on each element.

    Args:
        a, b: arrays or numbers, broadcast against each other.
        rtol: the tolerance relative to b.
        atol: the absolute tolerance.
        equal_nan: whether a NaN is close to another.

    Returns:
        Truth values.

    >>> import purax.numpy as jnp
    >>> jnp.isclose(jnp.array([1.0, 1.1]), 1.000001)
    Array([ True, False], dtype=bool)
    """
    dtype, x, y = binary("isclose", a, b)
    if dtype is BOOL or dtypes.is_extended(dtype):
        return equal(x, y)
    if not dtypes.is_inexact(dtype):
        dtype = dtypes.to_inexact_dtype(dtype)
        x, y = convert(x, dtype), convert(y, dtype)
    tolerance = dtypes.to_real_dtype(dtype)
    relative = convert(as_operand(rtol, "isclose", 2), tolerance)
    absolute = convert(as_operand(atol, "isclose", 3), tolerance)
    x, y, relative, absolute = broadcast_operands("isclose", [x, y, relative, absolute])
    return (_isclose_nan if equal_nan else _isclose)(x, y, relative, absolute)


@fused()
def _isclose(x, y, rtol, atol):
    near = le(abs_(sub(x, y)), add(atol, mul(rtol, abs_(y))))
    finite = (
        is_finite(y) if not dtypes.is_complex(dtype_of(y)) else and_(is_finite(real(y)), is_finite(imag(y)))
    )
    return or_(eq(x, y), and_(finite, near))


@fused()
def _isclose_nan(x, y, rtol, atol):
    return or_(_isclose(x, y, rtol, atol), and_(ne(x, x), ne(y, y)))


def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-5, atol: ArrayLike = 1e-8, equal_nan: bool = False
) -> Array:
    """Whether all elements of a and b are close; see `isclose`.

    Args:
        a: an array.
        b: another array.
        rtol: the relative tolerance.
        atol: the absolute tolerance.
        equal_nan: whether NaN equals NaN.

    >>> import purax.numpy as jnp
    >>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.000001]))
    Array(True, dtype=bool)
    """
    return _all(isclose(a, b, rtol, atol, equal_nan))


def _all(x):
    return reduce_and(x, tuple(range(len(shape_of(x)))))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays have the same shape and equal elements.

    Args:
        a1: an array.
        a2: another array.
        equal_nan: whether NaN equals NaN.

    >>> import purax.numpy as jnp
    >>> jnp.array_equal(jnp.arange(3), jnp.array([0.0, 1.0, 2.0]))
    Array(True, dtype=bool)
    """
    a1, a2 = asarray(a1), asarray(a2)
    if a1.shape != a2.shape:
        return as_array(False, "array_equal")
    same = equal(a1, a2)
    if equal_nan:
        same = or_(same, and_(isnan(a1), isnan(a2)))
    return _all(same)


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays, broadcast against each other, have equal elements.

    Args:
        a1: an array.
        a2: another array.

    >>> import purax.numpy as jnp
    >>> jnp.array_equiv(jnp.array([1, 1]), 1)
    Array(True, dtype=bool)
    """
    a1, a2 = asarray(a1), asarray(a2)
    try:
        return _all(equal(a1, a2))
    except ValueError:  # the shapes do not fit
        return as_array(False, "array_equiv")


# --- logic


def _truth(x: Any, name: str, position: int = 0) -> Any:
    x = as_operand(x, name, position)
    dtype = dtype_of(x)
    return x if dtype is BOOL else ne(x, convert(0, dtype))


# fmt: off
logical_and = logical("logical_and", and_p, _truth, "Whether both x and y are not zero, on each element.",
    "jnp.logical_and(jnp.array([0, 1, 2]), True)", "Array([False,  True,  True], dtype=bool)")
logical_or = logical("logical_or", or_p, _truth, "Whether x or y is not zero, on each element.",
    "jnp.logical_or(jnp.array([0, 1, 2]), False)", "Array([False,  True,  True], dtype=bool)")
logical_xor = logical("logical_xor", xor_p, _truth, "Whether exactly one of x and y is not zero, on each element.",
    "jnp.logical_xor(jnp.array([0, 1, 2]), True)", "Array([ True, False, False], dtype=bool)")
# fmt: on


def logical_not(x: ArrayLike, /) -> Array:
    """Whether x is zero, on each element.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.logical_not(jnp.array([0, 1, 2]))
    Array([ True, False, False], dtype=bool)
    """
    return not_p.bind(_truth(x, "logical_not"))


# --- bits


# fmt: off
bitwise_and = promoted("bitwise_and", and_p, "The bits set in both x and y, on each element.",
    "jnp.bitwise_and(jnp.array([12, 10]), 6)", "Array([4, 2], dtype=int32)", BITS)
bitwise_or = promoted("bitwise_or", or_p, "The bits set in x or y, on each element.",
    "jnp.bitwise_or(jnp.array([12, 10]), 6)", "Array([14, 14], dtype=int32)", BITS)
bitwise_xor = promoted("bitwise_xor", xor_p, "The bits set in exactly one of x and y, on each element.",
    "jnp.bitwise_xor(jnp.array([12, 10]), 6)", "Array([10, 12], dtype=int32)", BITS)
# fmt: on


def bitwise_not(x: ArrayLike, /) -> Array:
    """All bits of x flipped, on each element.

    Args:
        x: an array of integers or booleans.

    >>> import purax.numpy as jnp
    >>> jnp.bitwise_not(jnp.array([0, 5])), jnp.bitwise_not(True)
    (Array([-1, -6], dtype=int32), Array(False, dtype=bool))
    """
    return not_p.bind(as_operand(x, "bitwise_not"))


def invert(x: ArrayLike, /) -> Array:
    """All bits of x flipped; another name of `bitwise_not`.

    >>> import purax.numpy as jnp
    >>> jnp.invert(jnp.array([True, False]))
    Array([False,  True], dtype=bool)
    """
    return not_p.bind(as_operand(x, "invert"))


def bitwise_invert(x: ArrayLike, /) -> Array:
    """All bits of x flipped; another name of `bitwise_not`.

    >>> import purax.numpy as jnp
    >>> jnp.bitwise_invert(jnp.uint8(1))
    Array(254, dtype=uint8)
    """
    return not_p.bind(as_operand(x, "bitwise_invert"))


def _shift_operands(name: str, x: Any, y: Any) -> tuple[Any, Any, Any]:
    dtype, x, y = binary(name, x, y)
    if dtype is BOOL:
        dtype = np.dtype(np.int32)
        x, y = convert(x, dtype), convert(y, dtype)
    return dtype, x, y


def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits of x moved up by y places, on each element.

    Args:
        x: an array of integers.
        y: by how many bits, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.left_shift(jnp.array([1, 3]), 2)
    Array([ 4, 12], dtype=int32)
    """
    _, x, y = _shift_operands("left_shift", x, y)
    return shift_left_p.bind(x, y)


# fmt: off
bitwise_left_shift = alias_of_two(
    "bitwise_left_shift", left_shift, "The bits of x moved up by y places; another name of `left_shift`.",
    "jnp.bitwise_left_shift(1, jnp.arange(3))", "Array([1, 2, 4], dtype=int32)", "x y")
# fmt: on


def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits of x1 moved down by x2 places, on each element; the sign of a signed number stays.

    Args:
        x1: an array of integers.
        x2: by how many bits, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.right_shift(jnp.array([12, -12]), 2)
    Array([ 3, -3], dtype=int32)
    """
    dtype, x, y = _shift_operands("right_shift", x1, x2)
    return (shift_right_logical_p if dtypes.is_unsigned(dtype) else shift_right_arithmetic_p).bind(x, y)


# fmt: off
bitwise_right_shift = alias_of_two(
    "bitwise_right_shift", right_shift, "The bits of x1 moved down by x2 places; another name of `right_shift`.",
    "jnp.bitwise_right_shift(jnp.array([12, 5]), 1)", "Array([6, 2], dtype=int32)")
# fmt: on


def bitwise_count(x: ArrayLike, /) -> Array:
    """The number of bits set in |x|, on each element.

    Args:
        x: an array of integers.

    >>> import purax.numpy as jnp
    >>> jnp.bitwise_count(jnp.array([0, 7, -8]))
    Array([0, 3, 1], dtype=uint8)
    """
    x = as_operand(x, "bitwise_count")
    dtype = dtype_of(x)
    if not (dtypes.is_integer(dtype) or dtype is BOOL):
        raise located(TypeError, f"bitwise_count takes integers, got dtype {dtypes.dtype_name(dtype)}")
    if dtype is BOOL:
        return convert_element_type(x, np.uint8)
    return _bitwise_count(as_array(x, "bitwise_count") if x.__class__ is int else x)


@fused(np.bitwise_count)
def _bitwise_count(x):
    if dtypes.itemsize_bits(dtype_of(x)) < 8:  # whose |x| may not fit, as the 8 of four bits
        x = convert_element_type(x, np.int8)
    magnitude = x if dtypes.is_unsigned(dtype_of(x)) else abs_(x)
    return convert_element_type(population_count_p.bind(magnitude), np.uint8)


# --- kinds of numbers


def _everywhere(value: bool, x: Any) -> Array:
    return full(shape_of(x), value, BOOL)


def isfinite(x: ArrayLike, /) -> Array:
    """Whether x is neither infinite nor NaN, on each element.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.isfinite(jnp.array([1.0, jnp.inf, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """
    x = as_operand(x, "isfinite")
    dtype = dtype_of(x)
    if dtypes.is_floating(dtype):
        return is_finite_p.bind(x)
    if dtypes.is_complex(dtype):
        return and_(is_finite(real(x)), is_finite(imag(x)))
    return _everywhere(True, x)


def isinf(x: ArrayLike, /) -> Array:
    """Whether x is infinite, on each element.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.isinf(jnp.array([1.0, -jnp.inf, jnp.nan]))
    Array([False,  True, False], dtype=bool)
    """
    x = as_operand(x, "isinf")
    dtype = dtype_of(x)
    if dtypes.is_inexact(dtype):
        return _isinf(x)
    return _everywhere(False, x)


@fused(np.isinf)
def _isinf(x):
    if dtypes.is_complex(dtype_of(x)):
        return or_(_isinf(real(x)), _isinf(imag(x)))
    return eq(abs_(x), np.inf)


def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is +∞, on each element.

    Args:
        x: an array or a number.
        out: not supported: arrays are immutable.

    >>> import purax.numpy as jnp
    >>> jnp.isposinf(jnp.array([jnp.inf, -jnp.inf]))
    Array([ True, False], dtype=bool)
    """
    return _is_infinity("isposinf", x, np.inf, out)


def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether x is −∞, on each element.

    Args:
        x: an array or a number.
        out: not supported: arrays are immutable.

    >>> import purax.numpy as jnp
    >>> jnp.isneginf(jnp.array([jnp.inf, -jnp.inf]))
    Array([False,  True], dtype=bool)
    """
    return _is_infinity("isneginf", x, -np.inf, out)


def _is_infinity(name: str, x: Any, infinity: float, out: None) -> Array:
    refuse_out(name, out)
    x = as_operand(x, name)
    dtype = dtype_of(x)
    if dtypes.is_floating(dtype):
        return eq(x, infinity)
    if dtypes.is_complex(dtype):
        raise located(ValueError, f"{name} is not well defined for complex numbers, got {dtype}")
    return _everywhere(False, x)


def isnan(x: ArrayLike, /) -> Array:
    """Whether x is NaN, on each element.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.isnan(jnp.array([1.0, jnp.nan]))
    Array([False,  True], dtype=bool)
    """
    x = as_operand(x, "isnan")
    if dtypes.is_inexact(dtype_of(x)):
        return ne_p.bind(x, x)
    return _everywhere(False, x)


def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign bit of x is set: x < 0, or −0.0, on each element.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.signbit(jnp.array([-0.0, 0.0, -3.0]))
    Array([ True, False,  True], dtype=bool)
    """
    x = as_operand(x, "signbit")
    dtype = dtype_of(x)
    if dtypes.is_floating(dtype):
        return _signbit(x)
    if dtypes.is_complex(dtype):
        raise located(ValueError, f"signbit is not well defined for complex numbers, got {dtype}")
    if dtype is BOOL or dtypes.is_unsigned(dtype):
        return _everywhere(False, x)
    return lt(x, 0)


@fused(np.signbit)
def _signbit(x):
    return lt(bitcast_convert_type(x, signed_dtype(dtype_of(x))), 0)


def iscomplex(x: ArrayLike) -> Array:
    """Whether x has an imaginary part that is not zero, on each element.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.iscomplex(jnp.array([1, 2 + 1j]))
    Array([False,  True], dtype=bool)
    """
    x = as_operand(x, "iscomplex")
    return ne(imag(x), 0) if dtypes.is_complex(dtype_of(x)) else _everywhere(False, x)


def isreal(x: ArrayLike) -> Array:
    """Whether x has no imaginary part, or one that is zero, on each element.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.isreal(jnp.array([1, 2 + 1j]))
    Array([ True, False], dtype=bool)
    """
    return not_(iscomplex(x))


def iscomplexobj(x: Any) -> bool:
    """Whether x has a complex dtype, whatever its values.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.iscomplexobj(jnp.array([1.0 + 0j])), jnp.iscomplexobj(1.0)
    (True, False)
    """
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return bool(np.iscomplexobj(numpy_value(x)))
    return dtypes.is_complex(dtype)


def isrealobj(x: Any) -> bool:
    """Whether x has a dtype that is not complex.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.isrealobj(jnp.array([1.0 + 0j])), jnp.isrealobj(1.0)
    (False, True)
    """
    return not iscomplexobj(x)


def isscalar(element: Any) -> bool:
    """Whether an object is a number: a Python or NumPy scalar, or an array of shape ().

    Args:
        element: any object.

    >>> import purax.numpy as jnp
    >>> jnp.isscalar(1.0), jnp.isscalar(jnp.array(1.0)), jnp.isscalar(jnp.array([1.0]))
    (True, True, False)
    """
    if isinstance(element, (Array, np.ndarray)):
        return element.ndim == 0
    if hasattr(element, "__jax_array__") and not isinstance(element, type):
        value = element.__jax_array__()
        return isinstance(value, (Array, np.ndarray, np.generic)) and value.ndim == 0
    return bool(np.isscalar(element))
