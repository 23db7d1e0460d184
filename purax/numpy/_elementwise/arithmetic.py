"""Arithmetic on elements: sums, products, quotients, remainders, powers, roots and signs.

Integers wrap around and are divided as XLA does it; dividing an integer by zero gives −1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.control_flow.custom_jvp import custom_jvp
from purax.control_flow.while_loop import while_loop
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.core.trace import Tracer
from purax.numpy._elementwise.families import alias, alias_of_two, promoted, unary
from purax.numpy._elementwise.narrow_floats import in_float32
from purax.numpy._promotion import (
    BOOL,
    PYTHON_NUMBERS,
    align_operands,
    as_array,
    as_operand,
    binary,
    binary_inexact,
    broadcast_operands,
    convert,
    dtype_of,
    fused,
    inexact,
    promote_inexact,
    promote_numeric,
    refuse_out,
    shape_of,
    strong,
    strong_unless_scalar,
)
from purax.primitives.elementwise.arithmetic import (
    abs_,
    abs_p,
    cbrt_p,
    div,
    div_p,
    integer_pow_p,
    max_,
    rem,
    rem_p,
    round_,
    sign_p,
    sqrt_p,
    square_p,
    sub,
    sub_p,
)
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add as add_same
from purax.primitives.elementwise.elementwise import add_p, mul, mul_p, neg_p
from purax.primitives.elementwise.logic import (
    and_,
    and_p,
    eq,
    gt,
    lt,
    ne,
    or_,
    or_p,
    select,
    shift_right_logical,
)
from purax.primitives.elementwise.transcendental import pow_p
from purax.primitives.reductions.reduction import reduce_or
from purax.primitives.shape.broadcasting import full
from purax.primitives.stop_gradient import stop_gradient
from purax.typing import ArrayLike

# --- sums and products


def add(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """x + y on each element; for booleans x or y.

    Args:
        x, y: arrays or numbers, broadcast against each other.
        out, where: not supported.

    Returns:
        The sums.

    >>> import purax.numpy as jnp
    >>> jnp.add(jnp.array([1, 2]), 0.5)
    Array([1.5, 2.5], dtype=float32, weak_type=True)
    """
    if out is not None or where is not None:
        refuse_out("add", out, where)
    dtype, x, y = binary("add", x, y)
    return (or_p if dtype is BOOL else add_p).bind(x, y)


# fmt: off
subtract = promoted("subtract", sub_p, "x − y on each element.",
    "jnp.subtract(3, jnp.arange(3))", "Array([3, 2, 1], dtype=int32)")
# fmt: on


def multiply(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """x · y on each element; for booleans x and y.

    Args:
        x: an array or a number.
        y: another, broadcast against it.
        out: not supported: arrays are immutable.
        where: not supported; use `jnp.where`.

    >>> import purax.numpy as jnp
    >>> jnp.multiply(jnp.arange(3), jnp.array([[1], [10]]))
    Array([[ 0,  1,  2],
           [ 0, 10, 20]], dtype=int32)
    """
    if out is not None or where is not None:
        refuse_out("multiply", out, where)
    dtype, x, y = binary("multiply", x, y)
    return (and_p if dtype is BOOL else mul_p).bind(x, y)


def negative(x: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """−x on each element.

    Args:
        x: an array or a number.
        out: not supported: arrays are immutable.
        where: not supported; use `jnp.where`.

    >>> import purax.numpy as jnp
    >>> jnp.negative(jnp.array([1.0, -2.0]))
    Array([-1.,  2.], dtype=float32)
    """
    if out is not None or where is not None:
        refuse_out("negative", out, where)
    return neg_p.bind(as_operand(x, "negative"))


def positive(x: ArrayLike, /) -> Array:
    """x itself.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.positive(jnp.array([1, -2]))
    Array([ 1, -2], dtype=int32)
    """
    return as_array(x, "positive")


def square(x: ArrayLike, /) -> Array:
    """x² on each element.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.square(jnp.array([1.0, -2.0]))
    Array([1., 4.], dtype=float32)
    """
    return square_p.bind(*promote_numeric("square", x))


# --- quotients


def divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 / x2 on each element, a floating point number.

    Args:
        x1: an array or a number.
        x2: another, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.divide(jnp.array([1, 2]), 4)
    Array([0.25, 0.5 ], dtype=float32)
    """
    x, y = binary_inexact("divide", x1, x2)
    return div_p.bind(x, y)


# fmt: off
true_divide = alias_of_two("true_divide", divide, "x1 / x2 on each element; another name of `divide`.",
    "jnp.true_divide(3, 2)", "Array(1.5, dtype=float32, weak_type=True)")
# fmt: on


def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The largest integer ≤ x1 / x2, on each element.

    Args:
        x1: an array or a number.
        x2: another, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.floor_divide(jnp.array([7, -7]), 2)
    Array([ 3, -4], dtype=int32)
    """
    x, y = promote_numeric("floor_divide", x1, x2)
    dtype = dtype_of(x)
    if dtypes.is_complex(dtype):
        raise located(TypeError, f"floor_divide does not take complex numbers, got {dtype}")
    if dtypes.is_unsigned(dtype):
        return div_p.bind(x, y)
    return (_floor_divide_integers if dtypes.is_integer(dtype) else _floor_divide_floats)(x, y)


def _floor_divide_on_host(x, y):
    quotient = np.floor_divide(x, y)
    return quotient if y.all() else np.where(y == 0, -1 - (x != 0), quotient).astype(x.dtype)


@fused(_floor_divide_on_host)
def _floor_divide_integers(x, y):
    quotient = div(x, y)
    is_below = and_(ne(sign_p.bind(x), sign_p.bind(y)), ne(rem(x, y), 0))
    return select(is_below, sub(quotient, 1), quotient)


@fused(lambda x, y: _floor_divide_floats_on_host(x, y))
@in_float32
def _floor_divide_floats(x, y):
    return _float_divmod(x, y)[0]


def _floor_divide_floats_on_host(x, y):
    if x.dtype.itemsize >= 4:
        return _float_divmod_on_host(x, y)[0]
    return _float_divmod_on_host(x.astype(np.float32), y.astype(np.float32))[0].astype(x.dtype)


def _float_divmod(x, y):
    """The floored quotient and the remainder with the sign of y, as Python divides floats."""
    remainder = rem(x, y)
    quotient = div(select(eq(y, 0), x, sub(x, remainder)), y)
    other_side = and_(ne(remainder, 0), ne(sign_p.bind(y), sign_p.bind(remainder)))
    remainder = select(other_side, add_same(remainder, y), remainder)
    quotient = round_(select(other_side, sub(quotient, 1), quotient))
    zero = stop_gradient(mul(div(x, y), 0))  # with the sign of x / y
    return select(eq(quotient, 0), zero, quotient), _zeros_with_sign_of(y, remainder)


def _float_divmod_on_host(x, y):
    remainder = np.fmod(x, y)
    quotient = np.divide(np.where(y == 0, x, x - remainder), y)
    other_side = (remainder != 0) & (np.sign(y) != np.sign(remainder))
    if other_side.any():
        quotient = np.where(other_side, quotient - quotient.dtype.type(1), quotient)
        remainder = np.where(other_side, remainder + y, remainder)
    remainder = np.where(remainder == 0, np.copysign(remainder, y), remainder)
    size = np.floor(np.abs(quotient) + quotient.dtype.type(0.5))
    return np.copysign(size, np.where(size == 0, x / y, quotient)), remainder


def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of x1 / x2 with the sign of x2, on each element.

    Args:
        x1: an array or a number.
        x2: another, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.remainder(jnp.array([7, -7]), 3)
    Array([1, 2], dtype=int32)
    """
    x, y = promote_numeric("remainder", x1, x2)
    if dtypes.is_integer(dtype_of(x)):
        return _remainder_integers(x, y)
    return _remainder_floats(x, y)


@fused(np.remainder)
def _remainder_integers(x, y):
    divisor = select(eq(y, 0), 1, y)
    remainder = rem(x, divisor)
    other_side = and_(ne(lt(remainder, 0), lt(divisor, 0)), ne(remainder, 0))
    return select(other_side, add_same(remainder, divisor), remainder)


def _float_remainder_on_host(x, y):
    remainder = np.fmod(x, y)
    other_side = ((remainder < 0) != (y < 0)) & (remainder != 0)
    remainder = np.where(other_side, remainder + y, remainder)
    return np.where(remainder == 0, np.copysign(remainder, y), remainder)


@fused(_float_remainder_on_host)
def _remainder_floats(x, y):
    remainder = rem(x, y)
    other_side = and_(ne(lt(remainder, 0), lt(y, 0)), ne(remainder, 0))
    return _zeros_with_sign_of(y, select(other_side, add_same(remainder, y), remainder))


def _zeros_with_sign_of(y, remainder):
    """The remainder of a division by y, where a zero has the sign of y."""
    # An array, also where y is a NumPy number, whose dtype would not survive the call.
    return _or_zero(mul(sign_p.bind(y), 0), remainder)


@custom_jvp
def _or_zero(zero, remainder):
    return select(eq(remainder, 0), zero, remainder)


@_or_zero.defjvp
def _or_zero_jvp(primals, tangents):
    return _or_zero(*primals), tangents[1]


# fmt: off
mod = alias_of_two("mod", remainder, "The remainder of x1 / x2 with the sign of x2; another name of `remainder`.",
    "jnp.mod(-1.5, jnp.array([1.0, -1.0]))", "Array([ 0.5, -0.5], dtype=float32)")
# fmt: on


def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of x1 / x2 with the sign of x1, on each element.

    Args:
        x1: an array or a number.
        x2: another, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.fmod(jnp.array([7, -7]), 3)
    Array([ 1, -1], dtype=int32)
    """
    x, y = promote_numeric("fmod", x1, x2)
    if dtypes.is_integer(dtype_of(x)):
        return _fmod_integers(x, y)
    return rem_p.bind(x, y)


@fused(np.fmod)
def _fmod_integers(x, y):
    return rem(x, select(eq(y, 0), 1, y))


def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """The floored quotient and the remainder of x1 / x2, on each element.

    Args:
        x1: an array or a number.
        x2: another, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.divmod(jnp.array([7, -7]), 2)
    (Array([ 3, -4], dtype=int32), Array([1, 1], dtype=int32))
    """
    x, y = promote_numeric("divmod", x1, x2)
    dtype = dtype_of(x)
    if dtypes.is_floating(dtype):
        return _divmod_floats(x, y)
    return floor_divide(x, y), remainder(x, y)


@fused(_float_divmod_on_host)
def _divmod_floats(x, y):
    return _float_divmod(x, y)


def reciprocal(x: ArrayLike, /) -> Array:
    """1/x on each element.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.reciprocal(jnp.array([2.0, 4.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    return integer_pow_p.bind(inexact("reciprocal", x), y=-1)


# --- powers and roots


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 to the power x2, on each element.

    Args:
        x1: the bases.
        x2: the exponents. A Python integer, or a concrete integer scalar, is part of the program and costs a few
            products. Integers cannot be raised to a negative one of these.

    Returns:
        The powers.

    >>> import purax.numpy as jnp
    >>> jnp.power(jnp.array([1, 2, 3]), 3), jnp.power(4.0, 0.5)
    (Array([ 1,  8, 27], dtype=int32), Array(2., dtype=float32, weak_type=True))
    """
    if x2.__class__ is int and isinstance(x1, Array) and not x1.aval.weak_type and x1.aval.dtype is not BOOL:
        return integer_pow_p.bind(x1, y=x2)
    x1, x2 = as_operand(x1, "power", 0), as_operand(x2, "power", 1)
    exponent = _static_exponent(x2)
    if exponent is not None:
        dtype, weak = dtypes.promote_pair(*dtypes.dtype_and_weak(x1), *dtypes.dtype_and_weak(x2))
        weak = weak and dtype_of(x1) != BOOL
        return integer_pow_p.bind(convert(x1, dtype, weak), y=exponent)
    if dtypes.is_inexact(dtype_of(x1)) and dtypes.is_integer(dtype_of(x2)):
        dtype, weak = dtypes.promote_pair(*dtypes.dtype_and_weak(x1), *dtypes.dtype_and_weak(x2))
        if dtype == dtype_of(x1):  # the derivative with respect to an integer exponent is not asked for
            if dtypes.is_weakly_typed(x1) and not dtypes.is_weakly_typed(x2):
                x1 = convert_element_type(as_array(x1, "power"), dtype)
            base, exponents = align_operands("power", [x1, x2])
            return pow_p.bind(base, exponents)
    x, y = promote_numeric("power", x1, x2, fit=align_operands)
    if dtypes.is_integer(dtype_of(x)):
        return strong(_integer_power(x, y))
    return pow_p.bind(x, y)


def _static_exponent(x2: Any) -> int | None:
    """The exponent as a Python integer, if it is a concrete integer scalar."""
    if x2.__class__ is int:
        return x2
    if (
        x2.__class__ in PYTHON_NUMBERS
        or isinstance(x2, Tracer)
        or shape_of(x2)
        or not dtypes.is_integer(x2.dtype)
    ):
        return None
    return int(x2)


def _integer_power_on_host(x, y):
    if not (y < 0).any():
        return np.power(x, y).astype(x.dtype, copy=False)
    inverse = np.where(x == 1, 1, np.where(x == -1, 1 - 2 * (y & 1), 0))
    return np.where(y < 0, inverse, np.power(x, np.maximum(y, 0))).astype(x.dtype)


@fused(_integer_power_on_host)
def _integer_power(x, y):
    """xʸ by squaring, over the bits of y; for y < 0 the inverse, which is 0 but for x = ±1."""
    x, y = broadcast_operands("power", [x, y], scalars=True)
    dtype = dtype_of(x)
    one = convert(1, dtype)

    def step(state):
        result, power, bits = state
        result = select(ne(and_(bits, one), 0), mul(result, power), result)
        return result, mul(power, power), shift_right_logical(bits, one)

    start = (full(shape_of(x), 1, dtype), x, y)
    result, _, _ = while_loop(lambda state: any_is_not_zero(state[2]), step, start)
    if dtypes.is_unsigned(dtype):
        return result
    minus_one = convert(-1, dtype)
    odd = select(ne(and_(y, one), 0), minus_one, one)
    inverse = select(eq(x, one), one, select(eq(x, minus_one), odd, convert(0, dtype)))
    return select(lt(y, 0), inverse, result)


def any_is_not_zero(x):
    """Whether some element is not zero."""
    return reduce_or(ne(x, 0), tuple(range(len(shape_of(x)))))


# fmt: off
pow = alias_of_two("pow", power, "x1 to the power x2; another name of `power`.",
    "jnp.pow(jnp.array([1.0, 2.0]), -1)", "Array([1. , 0.5], dtype=float32)")
# fmt: on


def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x to the power y, in floating point numbers.

    Args:
        x: an array or a number.
        y: the exponents, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.float_power(jnp.array([1, 2]), -1)
    Array([1. , 0.5], dtype=float32)
    """
    return pow_p.bind(*promote_inexact("float_power", x, y, fit=align_operands))


# fmt: off
sqrt = unary("sqrt", sqrt_p, "√x on each element.",
    "jnp.sqrt(jnp.array([4, 9]))", "Array([2., 3.], dtype=float32)")
cbrt = unary("cbrt", cbrt_p, "∛x on each element.",
    "jnp.cbrt(jnp.array([8.0, -1.0]))", "Array([ 2., -1.], dtype=float32)")
# fmt: on


def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """√(x1² + x2²) on each element, without overflow on the way.

    Args:
        x1: an array or a number.
        x2: another, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.hypot(jnp.array([3.0, 5.0]), jnp.array([4.0, 12.0]))
    Array([ 5., 13.], dtype=float32)
    """
    x, y = broadcast_operands("hypot", binary_inexact("hypot", x1, x2))
    if dtypes.is_complex(dtype_of(x)):
        raise located(ValueError, f"hypot takes real numbers, got {dtype_of(x)}; take jnp.abs(x) first")
    return strong_unless_scalar(_hypot(x, y))


@fused(np.hypot)
@in_float32
def _hypot(x, y):
    """√(x² + y²); x and y are scaled by a power of two, which is exact, so that their squares are in range."""
    x, y = abs_(x), abs_(y)
    infinite = or_(eq(x, np.inf), eq(y, np.inf))
    larger = max_(x, y)
    limits = dtypes.finfo(dtype_of(x))
    half = limits.maxexp // 2
    down, up = 2.0 ** -(half + 1), 2.0 ** (half + 36)
    is_large, is_small = gt(larger, 2.0 ** (half - 2)), lt(larger, 2.0 ** (limits.nmant // 2 + 4 - half))
    x, y = (select(is_large, mul(v, down), select(is_small, mul(v, up), v)) for v in (x, y))
    total = add_same(square_p.bind(x), square_p.bind(y))
    length = sqrt_p.bind(select(eq(total, 0), 1.0, total))
    length = select(is_large, mul(length, 1 / down), select(is_small, mul(length, 1 / up), length))
    return select(infinite, np.inf, select(eq(total, 0), larger, length))


# --- signs


def absolute(x: ArrayLike, /) -> Array:
    """|x| on each element.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.absolute(jnp.array([-2, 3])), jnp.absolute(3 - 4j)
    (Array([2, 3], dtype=int32), Array(5., dtype=float32, weak_type=True))
    """
    x = as_operand(x, "absolute")
    dtype = dtype_of(x)
    if dtype is BOOL or dtypes.is_unsigned(dtype):
        return as_array(x, "absolute")
    return abs_p.bind(x)


# fmt: off
abs = alias("abs", absolute, "|x| on each element; another name of `absolute`.",
    "jnp.abs(jnp.array([-2.5, 3.0]))", "Array([2.5, 3. ], dtype=float32)")
# fmt: on


def fabs(x: ArrayLike, /) -> Array:
    """|x| on each element, a floating point number.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.fabs(jnp.array([-2, 3]))
    Array([2., 3.], dtype=float32)
    """
    x = inexact("fabs", x)
    if dtypes.is_complex(dtype_of(x)):
        raise located(TypeError, f"fabs takes real numbers, got {dtype_of(x)}; use jnp.abs")
    return abs_p.bind(x)


def sign(x: ArrayLike, /) -> Array:
    """−1, 0 or 1 on each element; x/|x| for complex numbers.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.sign(jnp.array([-2.0, 0.0, 5.0]))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    return sign_p.bind(as_operand(x, "sign"))
