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
from purax.lax.families import binary, unary, unary_with_accuracy
from purax.lax.operands import operand, pair
from purax.primitives.elementwise import arithmetic, conversion
from purax.primitives.elementwise.elementwise import add_p, mul_p, neg_p
from purax.typing import ArrayLike


class RoundingMethod(enum.IntEnum):
    """Where `round` sends halves: away from zero, or to the nearest even integer."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


# fmt: off
add = binary("add", add_p, "x + y.",
    "lax.add(jnp.arange(3), 1)", "Array([1, 2, 3], dtype=int32)")
sub = binary("sub", arithmetic.sub_p, "x − y.",
    "lax.sub(jnp.arange(3), 1)", "Array([-1,  0,  1], dtype=int32)")
div = binary("div", arithmetic.div_p, "x / y; for integers the quotient without its fraction, −1 if y is 0.",
    "lax.div(jnp.array([7, -7]), 2)", "Array([ 3, -3], dtype=int32)")
rem = binary("rem", arithmetic.rem_p, "The remainder of x / y, which has the sign of x.",
    "lax.rem(jnp.array([7, -7]), 3)", "Array([ 1, -1], dtype=int32)")
max = binary(
    "max", arithmetic.max_p, "The larger of x and y; NaN if one is NaN. Complex numbers are ordered by real part, "
    "then imaginary part.",
    "lax.max(jnp.arange(3), 1)", "Array([1, 1, 2], dtype=int32)")
min = binary(
    "min", arithmetic.min_p, "The smaller of x and y; NaN if one is NaN. Complex numbers are ordered by real part, "
    "then imaginary part.",
    "lax.min(jnp.arange(3), 1)", "Array([0, 1, 1], dtype=int32)")
nextafter = binary("nextafter", arithmetic.nextafter_p, "The floating point number next to x1 in the direction of x2.",
    "lax.nextafter(0.0, 1.0) > 0", "Array(True, dtype=bool)", "x1 x2")
neg = unary("neg", neg_p, "−x.",
    "lax.neg(jnp.arange(3))", "Array([ 0, -1, -2], dtype=int32)")
sign = unary("sign", arithmetic.sign_p, "−1, 0 or 1 by the sign of x; x/|x| for complex numbers.",
    "lax.sign(jnp.array([-2.0, 0.0, 3.0]))", "Array([-1.,  0.,  1.], dtype=float32)")
floor = unary("floor", arithmetic.floor_p, "The largest integer that is not above x.",
    "lax.floor(jnp.array([-1.5, 1.5]))", "Array([-2.,  1.], dtype=float32)")
ceil = unary("ceil", arithmetic.ceil_p, "The smallest integer that is not below x.",
    "lax.ceil(jnp.array([-1.5, 1.5]))", "Array([-1.,  2.], dtype=float32)")
square = unary("square", arithmetic.square_p, "x².",
    "lax.square(jnp.arange(4))", "Array([0, 1, 4, 9], dtype=int32)")
sqrt = unary_with_accuracy("sqrt", arithmetic.sqrt_p, "The square root of x.",
    "lax.sqrt(jnp.array([4.0, 9.0]))", "Array([2., 3.], dtype=float32)")
rsqrt = unary_with_accuracy("rsqrt", arithmetic.rsqrt_p, "1/√x.",
    "lax.rsqrt(jnp.array([4.0, 16.0]))", "Array([0.5 , 0.25], dtype=float32)")
cbrt = unary_with_accuracy("cbrt", arithmetic.cbrt_p, "The cube root of x.",
    "lax.cbrt(jnp.array([8.0, -27.0]))", "Array([ 2.       , -2.9999998], dtype=float32)")
complex = binary("complex", conversion.complex_p, "x + i y, of float32 or float64.",
    "lax.complex(jnp.array([1.0]), jnp.array([2.0]))", "Array([1.+2.j], dtype=complex64)")
real = unary("real", conversion.real_p, "The real part of a complex x.",
    "lax.real(jnp.array([1 + 2j]))", "Array([1.], dtype=float32)")
imag = unary("imag", conversion.imag_p, "The imaginary part of a complex x.",
    "lax.imag(jnp.array([1 + 2j]))", "Array([2.], dtype=float32)")
# fmt: on


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
        x, y = (conversion.convert_element_type(v, dtypes.as_dtype(out_dtype)) for v in pair("mul", x, y))
    return mul_p.bind(*pair("mul", x, y))


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The upper half of the bits of the product of two integers.

    >>> from purax import lax, numpy as jnp
    >>> lax.mulhi(jnp.array([2**30]), 8)
    Array([2], dtype=int32)
    """
    return arithmetic.mulhi_p.bind(*pair("mulhi", x, y))


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
    return arithmetic.abs_p.bind(x)


def round(x: ArrayLike, rounding_method: RoundingMethod | int = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The integer nearest to x; `rounding_method` says where halves go.

    >>> from purax import lax, numpy as jnp
    >>> lax.round(jnp.array([0.5, 1.5, 2.5]))
    Array([1., 2., 3.], dtype=float32)
    """
    return arithmetic.round_p.bind(operand("round", x), rounding_method=int(rounding_method))


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
    return arithmetic.integer_pow_p.bind(operand("integer_pow", x), y=power)


def reciprocal(x: ArrayLike) -> Array:
    """1/x.

    >>> from purax import lax, numpy as jnp
    >>> lax.reciprocal(jnp.array([1.0, 4.0]))
    Array([1.  , 0.25], dtype=float32)
    """
    return arithmetic.integer_pow_p.bind(operand("reciprocal", x), y=-1)


def conj(x: ArrayLike) -> Array:
    """The complex conjugate of x; a real x becomes complex.

    >>> from purax import lax, numpy as jnp
    >>> lax.conj(jnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    x = operand("conj", x)
    return conversion.conj_p.bind(x, input_dtype=aval_of(x).dtype)
