"""Arithmetic on elements, as `jax.lax` has it: operands of one dtype, integers that wrap around."""

from __future__ import annotations

import enum
import operator
from typing import Any

from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import aval_of
from purax.core.source import located
from purax.errors import shown
from purax.lax.accuracy import check_accuracy
from purax.lax.operands import operand, pair
from purax.primitives.elementwise.arithmetic import (
    abs_p,
    cbrt_p,
    ceil_p,
    div_p,
    floor_p,
    integer_pow_p,
    max_p,
    min_p,
    mulhi_p,
    nextafter_p,
    rem_p,
    round_p,
    rsqrt_p,
    sign_p,
    sqrt_p,
    square_p,
    sub_p,
)
from purax.primitives.elementwise.conversion import complex_p, conj_p, convert_element_type, imag_p, real_p
from purax.primitives.elementwise.elementwise import add_p, mul_p, neg_p
from purax.typing import ArrayLike
from purax.xla.array import DeviceArray


class RoundingMethod(enum.IntEnum):
    """Where `round` sends halves: away from zero, or to the nearest even integer."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """x + y.

    >>> from purax import lax, numpy as jnp
    >>> lax.add(jnp.arange(3), 1)
    Array([1, 2, 3], dtype=int32)
    """
    return add_p.bind(*pair("add", x, y))


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """x − y.

    >>> from purax import lax, numpy as jnp
    >>> lax.sub(jnp.arange(3), 1)
    Array([-1,  0,  1], dtype=int32)
    """
    return sub_p.bind(*pair("sub", x, y))


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: Any = None) -> Array:
    """x · y.

    Args:
        x, y: of one dtype.
        out_dtype: the dtype in which the products are computed and returned; that of the operands if it is None.

    >>> from purax import lax, numpy as jnp
    >>> lax.mul(jnp.arange(3), 2)
    Array([0, 2, 4], dtype=int32)
    """
    if out_dtype is not None:
        x, y = (convert_element_type(v, dtypes.as_dtype(out_dtype)) for v in pair("mul", x, y))
    return mul_p.bind(*pair("mul", x, y))


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """x / y; for integers the quotient without its fraction, −1 if y is 0.

    >>> from purax import lax, numpy as jnp
    >>> lax.div(jnp.array([7, -7]), 2)
    Array([ 3, -3], dtype=int32)
    """
    return div_p.bind(*pair("div", x, y))


def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """The remainder of x / y, which has the sign of x.

    >>> from purax import lax, numpy as jnp
    >>> lax.rem(jnp.array([7, -7]), 3)
    Array([ 1, -1], dtype=int32)
    """
    return rem_p.bind(*pair("rem", x, y))


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The upper half of the bits of the product of two integers.

    >>> from purax import lax, numpy as jnp
    >>> lax.mulhi(jnp.array([2**30]), 8)
    Array([2], dtype=int32)
    """
    return mulhi_p.bind(*pair("mulhi", x, y))


def max(x: ArrayLike, y: ArrayLike) -> Array:
    """The larger of x and y; NaN if one is NaN. Complex numbers are ordered by real part, then imaginary part.

    >>> from purax import lax, numpy as jnp
    >>> lax.max(jnp.arange(3), 1)
    Array([1, 1, 2], dtype=int32)
    """
    return max_p.bind(*pair("max", x, y))


def min(x: ArrayLike, y: ArrayLike) -> Array:
    """The smaller of x and y; NaN if one is NaN. Complex numbers are ordered by real part, then imaginary part.

    >>> from purax import lax, numpy as jnp
    >>> lax.min(jnp.arange(3), 1)
    Array([0, 1, 1], dtype=int32)
    """
    return min_p.bind(*pair("min", x, y))


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The floating point number next to x1 in the direction of x2.

    >>> from purax import lax
    >>> lax.nextafter(0.0, 1.0) > 0
    Array(True, dtype=bool)
    """
    return nextafter_p.bind(*pair("nextafter", x1, x2))


def neg(x: ArrayLike) -> Array:
    """−x.

    >>> from purax import lax, numpy as jnp
    >>> lax.neg(jnp.arange(3))
    Array([ 0, -1, -2], dtype=int32)
    """
    return neg_p.bind(x if type(x) is DeviceArray else operand("neg", x))


def abs(x: ArrayLike) -> Array:
    """|x|.

    >>> from purax import lax, numpy as jnp
    >>> lax.abs(jnp.array([-1.5, 2.0]))
    Array([1.5, 2. ], dtype=float32)
    """
    x = operand("abs", x)
    dtype = aval_of(x).dtype
    if dtypes.is_unsigned(dtype):
        raise located(TypeError, f"lax.abs does not take unsigned integers, got {dtype}; x is |x| already")
    return abs_p.bind(x)


def sign(x: ArrayLike) -> Array:
    """−1, 0 or 1 by the sign of x; x/|x| for complex numbers.

    >>> from purax import lax, numpy as jnp
    >>> lax.sign(jnp.array([-2.0, 0.0, 3.0]))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    return sign_p.bind(x if type(x) is DeviceArray else operand("sign", x))


def floor(x: ArrayLike) -> Array:
    """The largest integer that is not above x.

    >>> from purax import lax, numpy as jnp
    >>> lax.floor(jnp.array([-1.5, 1.5]))
    Array([-2.,  1.], dtype=float32)
    """
    return floor_p.bind(x if type(x) is DeviceArray else operand("floor", x))


def ceil(x: ArrayLike) -> Array:
    """The smallest integer that is not below x.

    >>> from purax import lax, numpy as jnp
    >>> lax.ceil(jnp.array([-1.5, 1.5]))
    Array([-1.,  2.], dtype=float32)
    """
    return ceil_p.bind(x if type(x) is DeviceArray else operand("ceil", x))


def round(x: ArrayLike, rounding_method: RoundingMethod | int = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The integer nearest to x; `rounding_method` says where halves go.

    >>> from purax import lax, numpy as jnp
    >>> lax.round(jnp.array([0.5, 1.5, 2.5]))
    Array([1., 2., 3.], dtype=float32)
    """
    return round_p.bind(operand("round", x), rounding_method=int(rounding_method))


def square(x: ArrayLike) -> Array:
    """x².

    >>> from purax import lax, numpy as jnp
    >>> lax.square(jnp.arange(4))
    Array([0, 1, 4, 9], dtype=int32)
    """
    return square_p.bind(x if type(x) is DeviceArray else operand("square", x))


def integer_pow(x: ArrayLike, y: int) -> Array:
    """xʸ for a Python integer y.

    >>> from purax import lax, numpy as jnp
    >>> lax.integer_pow(jnp.array([1.0, 2.0]), -2)
    Array([1.  , 0.25], dtype=float32)
    """
    try:
        power = operator.index(y)
    except TypeError:
        raise located(
            TypeError, f"lax.integer_pow needs a Python integer as power, got {shown(y)}; use lax.pow"
        ) from None
    return integer_pow_p.bind(operand("integer_pow", x), y=power)


def reciprocal(x: ArrayLike) -> Array:
    """1/x.

    >>> from purax import lax, numpy as jnp
    >>> lax.reciprocal(jnp.array([1.0, 4.0]))
    Array([1.  , 0.25], dtype=float32)
    """
    return integer_pow_p.bind(operand("reciprocal", x), y=-1)


def sqrt(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """The square root of x.

    >>> from purax import lax, numpy as jnp
    >>> lax.sqrt(jnp.array([4.0, 9.0]))
    Array([2., 3.], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return sqrt_p.bind(x if type(x) is DeviceArray else operand("sqrt", x))


def rsqrt(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """1/√x.

    >>> from purax import lax, numpy as jnp
    >>> lax.rsqrt(jnp.array([4.0, 16.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return rsqrt_p.bind(x if type(x) is DeviceArray else operand("rsqrt", x))


def cbrt(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """The cube root of x.

    >>> from purax import lax, numpy as jnp
    >>> lax.cbrt(jnp.array([8.0, -27.0]))
    Array([ 2.       , -2.9999998], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return cbrt_p.bind(x if type(x) is DeviceArray else operand("cbrt", x))


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """x + i y, of float32 or float64.

    >>> from purax import lax, numpy as jnp
    >>> lax.complex(jnp.array([1.0]), jnp.array([2.0]))
    Array([1.+2.j], dtype=complex64)
    """
    return complex_p.bind(*pair("complex", x, y))


def conj(x: ArrayLike) -> Array:
    """The complex conjugate of x; a real x becomes complex.

    >>> from purax import lax, numpy as jnp
    >>> lax.conj(jnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    x = operand("conj", x)
    return conj_p.bind(x, input_dtype=aval_of(x).dtype)


def real(x: ArrayLike) -> Array:
    """The real part of a complex x.

    >>> from purax import lax, numpy as jnp
    >>> lax.real(jnp.array([1 + 2j]))
    Array([1.], dtype=float32)
    """
    return real_p.bind(x if type(x) is DeviceArray else operand("real", x))


def imag(x: ArrayLike) -> Array:
    """The imaginary part of a complex x.

    >>> from purax import lax, numpy as jnp
    >>> lax.imag(jnp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    return imag_p.bind(x if type(x) is DeviceArray else operand("imag", x))
