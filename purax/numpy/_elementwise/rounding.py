"""Rounding, the parts of floating point numbers, neighbours, and keeping numbers within bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.core.trace import current
from purax.execution.eager import eager
from purax.numpy._promotion import (
    BOOL,
    align_operands,
    as_array,
    as_operand,
    broadcast_operands,
    convert,
    dtype_of,
    fused,
    inexact,
    promote,
    promote_inexact,
    refuse_out,
)
from purax.numpy._shape.axes import integer
from purax.primitives.elementwise import extrema_on_host
from purax.primitives.elementwise.arithmetic import (
    abs_,
    ceil_p,
    div,
    floor_p,
    max_,
    min_,
    nextafter_p,
    round_,
    round_p,
    sub,
)
from purax.primitives.elementwise.conversion import (
    bitcast_convert_type,
    complex_,
    convert_element_type,
    imag,
    real,
)
from purax.primitives.elementwise.elementwise import add, mul, neg
from purax.primitives.elementwise.logic import (
    and_,
    clamp_p,
    eq,
    ge,
    is_finite,
    lt,
    ne,
    or_,
    select,
    shift_right_arithmetic,
    shift_right_logical,
    signed_dtype,
)
from purax.typing import ArrayLike
from purax.xla.array import DeviceArray


def _whole_already(x: Any) -> bool:
    dtype = dtype_of(x)
    return dtypes.is_integer(dtype) or dtype is BOOL


def floor(x: ArrayLike, /) -> Array:
    """The largest integer ≤ x, on each element; integers stay as they are.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.floor(jnp.array([1.7, -1.2]))
    Array([ 1., -2.], dtype=float32)
    """
    x = as_operand(x, "floor")
    return as_array(x, "floor") if _whole_already(x) else floor_p.bind(x)


def ceil(x: ArrayLike, /) -> Array:
    """The smallest integer ≥ x, on each element; integers stay as they are.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.ceil(jnp.array([1.2, -1.7]))
    Array([ 2., -1.], dtype=float32)
    """
    x = as_operand(x, "ceil")
    return as_array(x, "ceil") if _whole_already(x) else ceil_p.bind(x)


def trunc(x: ArrayLike) -> Array:
    """x without its fraction, on each element; integers stay as they are.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.trunc(jnp.array([1.7, -1.7]))
    Array([ 1., -1.], dtype=float32)
    """
    x = as_operand(x, "trunc")
    return as_array(x, "trunc") if _whole_already(x) else _trunc(x)


@fused(np.trunc)
def _trunc(x):
    return select(lt(x, 0), ceil_p.bind(x), floor_p.bind(x))


def rint(x: ArrayLike, /) -> Array:
    """The integer nearest to x, on each element, as a floating point number; halves go to the even one.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.rint(jnp.array([0.5, 1.5, -2.7]))
    Array([ 0.,  2., -3.], dtype=float32)
    """
    return _rint(inexact("rint", x))


def _rint(x):
    if dtypes.is_complex(dtype_of(x)):
        return complex_(round_(real(x), 1), round_(imag(x), 1))
    return round_p.bind(x, rounding_method=1)


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """`a` rounded to a number of decimals; halves go to the even neighbour.

    Args:
        a: an array or a number.
        decimals: how many digits after the point stay; negative for digits before it.
        out: not supported.

    Returns:
        An array of the same dtype.

    >>> import purax.numpy as jnp
    >>> jnp.round(jnp.array([1.237, 2.5]), 2), jnp.round(jnp.array([0.5, 1.5]))
    (Array([1.24, 2.5 ], dtype=float32), Array([0., 2.], dtype=float32))
    """
    refuse_out("round", out)
    decimals = integer("round", "decimals", decimals)
    x = as_operand(a, "round")
    dtype = dtype_of(x)
    if dtypes.is_integer(dtype) or dtype is BOOL:
        if decimals < 0:
            raise located(
                NotImplementedError,
                "round of integers to decimals < 0 is not supported; convert to floats first",
            )
        return as_array(x, "round")
    if decimals == 0:
        return _rint(x)
    if dtypes.is_complex(dtype):
        return complex_(_round_to(real(x), decimals), _round_to(imag(x), decimals))
    return _round_to(x, decimals)


def _round_to(x, decimals: int):
    dtype = dtype_of(x)
    if dtype.itemsize < 4:  # 10ⁿ overflows soon in narrow floats
        wide = convert_element_type(x, np.float32)
        return convert_element_type(_round_to(wide, decimals), dtype)
    most = dtypes.finfo(dtype).maxexp * math.log10(2)  # decimals for which 10ⁿ is finite
    if abs(decimals) > most:  # nothing is cut off, or all
        return as_array(x, "round") if decimals > 0 else _only_infinite(x)
    # XLA multiplies by 1/10ⁿ, which is 0 for large n: two factors are not so small.
    half = abs(decimals) // 2 if abs(decimals) > 20 else 0
    weak = dtypes.is_weakly_typed(x)
    factor, other = (convert(10.0**n, dtype, weak) for n in (abs(decimals) - half, half))
    if decimals < 0:
        return _round_down_from(x, factor, other)
    return _round_up_from(x, factor, other, convert(2.0 ** dtypes.finfo(dtype).nmant, dtype, weak))


def _only_infinite(x):
    x = as_array(x, "round")
    return select(is_finite(x), mul(x, convert(0.0, x.dtype, x.weak_type)), x)


def _round_up_on_host(x, factor, other, limit):
    scaled = x * factor * other
    return np.where(np.abs(scaled) < limit, np.rint(scaled) / factor / other, x)


@fused(_round_up_on_host)
def _round_up_from(x, factor, other, limit):
    scaled = mul(mul(x, factor), other)  # from `limit` on, x has no digits that would be cut off
    return select(lt(abs_(scaled), limit), div(div(round_(scaled, 1), factor), other), x)


@fused(lambda x, factor, other: np.rint(x / factor / other) * factor * other)
def _round_down_from(x, factor, other):
    some = select(is_finite(x), div(x, factor), x)  # XLA makes one factor of two in a row, which may be 0
    return mul(mul(round_(div(some, other), 1), factor), other)


def around(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """`a` rounded to a number of decimals; another name of `round`.

    >>> import purax.numpy as jnp
    >>> jnp.around(123.456, 1)
    Array(123.5, dtype=float32, weak_type=True)
    """
    return round(a, decimals, out)


# --- parts of numbers


def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """The fraction and the whole part of x, both with its sign, on each element.

    Args:
        x: an array or a number.
        out: not supported: arrays are immutable.

    >>> import purax.numpy as jnp
    >>> jnp.modf(jnp.array([1.5, -0.25]))
    (Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -0.], dtype=float32))
    """
    refuse_out("modf", out)
    return _modf(inexact("modf", x))


@fused()
def _modf(x):
    whole = select(ge(x, 0), floor_p.bind(x), ceil_p.bind(x))
    return sub(x, whole), whole


def _real_floats(name: str, x: Any) -> Any:
    x = inexact(name, x)
    if dtypes.is_complex(dtype_of(x)):
        raise located(TypeError, f"{name} takes real numbers, got dtype {dtype_of(x)}")
    return x


def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """m and the integer e with x = m·2ᵉ and ½ ≤ |m| < 1, on each element.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.frexp(jnp.array([8.0, -0.3]))
    (Array([ 0.5, -0.6], dtype=float32), Array([ 4, -1], dtype=int32))
    """
    x = _real_floats("frexp", x)
    return _frexp(convert_element_type(x, dtype_of(x)))


def _frexp_on_host(x):
    mantissa, exponent = np.frexp(x)
    return mantissa.astype(x.dtype), np.where(np.isfinite(x), exponent, 0).astype(np.int32)


@fused(_frexp_on_host)
def _frexp(x):
    dtype = dtype_of(x)
    if dtype.itemsize == 1 or dtypes.finfo(dtype).nmant == 0:
        mantissa, exponent = _frexp(convert_element_type(x, np.float32))
        return convert_element_type(mantissa, dtype), exponent
    limits = dtypes.finfo(dtype)
    bits_dtype = signed_dtype(dtype)
    tiny = lt(abs_(x), convert(float(limits.smallest_normal), dtype))
    shift = limits.nmant
    normal = select(tiny, mul(x, convert(2.0**shift, dtype)), x)
    bits = bitcast_convert_type(normal, bits_dtype)
    mask = (1 << limits.nexp) - 1
    bias = (1 << (limits.nexp - 1)) - 1
    field = and_(shift_right_logical(bits, limits.nmant), mask)
    exponent = sub(convert_element_type(field, np.int32), bias - 1)
    exponent = sub(exponent, select(tiny, convert(shift, np.dtype(np.int32)), 0))
    # The mantissa is x·2⁻ᵉ, in two steps that stay in range: exact, and x's derivative passes through them.
    own = sub(convert_element_type(field, np.int32), bias - 1)
    half = shift_right_arithmetic(own, 1)
    mantissa = normal
    for part in (half, sub(own, half)):
        mantissa = mul(mantissa, _power_of_two(neg(part), dtype))
    special = or_(ne(x, x), or_(eq(abs_(x), np.inf), eq(x, 0)))
    return select(special, x, mantissa), select(special, 0, exponent)


def _power_of_two(exponent, dtype):
    """2ᵉ for int32 e within the range of normal numbers."""
    limits = dtypes.finfo(dtype)
    bias = (1 << (limits.nexp - 1)) - 1
    whole = signed_dtype(dtype)
    bits = mul(convert_element_type(add(exponent, bias), whole), convert(1 << limits.nmant, whole))
    return bitcast_convert_type(bits, dtype)


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1·2ˣ² for integers x2, on each element.

    Args:
        x1: an array or a number.
        x2: integer exponents, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.ldexp(jnp.array([0.5, 3.0]), jnp.array([4, -1]))
    Array([8. , 1.5], dtype=float32)
    """
    x, exponent = as_operand(x1, "ldexp", 0), as_operand(x2, "ldexp", 1)
    dtype = dtype_of(x)
    if dtypes.is_complex(dtype) or not (dtypes.is_integer(dtype_of(exponent)) or dtype_of(exponent) is BOOL):
        raise located(
            ValueError,
            f"ldexp takes real numbers and integer exponents, got dtypes {dtypes.dtype_name(dtype)} and "
            f"{dtypes.dtype_name(dtype_of(exponent))}",
        )
    x = inexact("ldexp", x)
    exponent = convert(exponent, np.dtype(np.int32))
    x, exponent = broadcast_operands("ldexp", [x, exponent])
    return _ldexp(x, exponent)


def _ldexp_on_host(x, exponent):
    return np.ldexp(x, exponent).astype(x.dtype)


@fused(_ldexp_on_host)
def _ldexp(x, exponent):
    dtype = dtype_of(x)
    if dtype.itemsize < 4:
        return convert_element_type(_ldexp(convert_element_type(x, np.float32), exponent), dtype)
    limits = dtypes.finfo(dtype)
    bias = (1 << (limits.nexp - 1)) - 1
    # Three factors: from the smallest subnormal to the largest number and beyond.
    reach = 3 * bias
    rest = min_(max_(exponent, -reach), reach)
    for _ in range(3):
        part = min_(max_(rest, 1 - bias), bias)
        x = mul(x, _power_of_two(part, dtype))
        rest = sub(rest, part)
    return x


def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The floating point number next to x in the direction of y, on each element.

    Args:
        x: an array or a number.
        y: where to go, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.nextafter(1.0, jnp.array([2.0, 0.0])) == 1.0
    Array([False, False], dtype=bool)
    """
    return nextafter_p.bind(*promote_inexact("nextafter", x, y, fit=align_operands))


def spacing(x: ArrayLike, /) -> Array:
    """The distance from x to the next floating point number away from zero, on each element.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.spacing(jnp.array([1.0, 1024.0]))
    Array([1.1920929e-07, 1.2207031e-04], dtype=float32)
    """
    x = _real_floats("spacing", x)
    return _spacing(convert_element_type(x, dtype_of(x)))


@fused(lambda x: np.nextafter(x, np.where(x < 0, x.dtype.type(-np.inf), x.dtype.type(np.inf))) - x)
def _spacing(x):
    dtype = dtype_of(x)
    away = select(lt(x, 0), convert(-np.inf, dtype), convert(np.inf, dtype))
    return sub(nextafter_p.bind(x, away), x)


def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """|x1| with the sign of x2, also of −0.0, on each element.

    Args:
        x1: an array or a number.
        x2: whose signs to take, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.copysign(3.0, jnp.array([-0.0, 2.0]))
    Array([-3.,  3.], dtype=float32)
    """
    x, y = promote_inexact("copysign", x1, x2)
    if dtypes.is_complex(dtype_of(x)):
        raise located(TypeError, f"copysign takes real numbers, got dtype {dtype_of(x)}")
    return _copysign(x, y)


@fused(np.copysign)
def _copysign(x, y):
    is_negative = lt(bitcast_convert_type(y, signed_dtype(dtype_of(y))), 0)
    size = abs_(x)
    return select(is_negative, neg(size), size)


# --- bounds


def clip(
    arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None
) -> Array:
    """The number nearest to each element that lies between `min` and `max`; `max` where they cross.

    Args:
        arr: an array or a number.
        min: the lower bound, broadcast against `arr`; None for none.
        max: the upper bound.

    Returns:
        An array.

    >>> import purax.numpy as jnp
    >>> jnp.clip(jnp.arange(5), 1, 3)
    Array([1, 1, 2, 3, 3], dtype=int32)
    """
    if arr is None:
        raise located(ValueError, "clip needs an array: jnp.clip(arr, min, max)")
    if min is None or max is None:
        operands = promote("clip", *[x for x in (arr, min, max) if x is not None])
    else:
        operands = promote("clip", arr, min, max)
        x, low, high = operands
        if (  # the commonest call is one operation
            x.__class__ is low.__class__ is high.__class__ is DeviceArray
            and not (low.aval.shape or high.aval.shape or x.aval.weak_type or x.aval.dtype.kind == "c")
            and current.trace is eager
        ):
            return clamp_p.bind(low, x, high)
    if dtypes.is_complex(dtype_of(operands[0])):
        raise located(
            ValueError, "clip: complex numbers have no order; clip the real and imaginary parts instead"
        )
    if len(operands) == 1:
        return as_array(operands[0], "clip")
    if min is None:
        return min_(*operands)
    if max is None:
        return max_(*operands)
    return _clip(*operands)


def _clip_on_host(x, low, high):
    return extrema_on_host.minimum(extrema_on_host.maximum(x, low), high).astype(x.dtype, copy=False)


@fused(_clip_on_host)
def _clip(x, low, high):
    return min_(max_(x, low), high)


def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """`x` with numbers in place of NaN and infinities.

    Args:
        x: an array or a number.
        copy: has no effect.
        nan: the number in place of NaN.
        posinf: the number in place of +∞, by default the largest of the dtype.
        neginf: the number in place of −∞, by default the smallest.

    Returns:
        An array of the same dtype.

    >>> import purax.numpy as jnp
    >>> jnp.nan_to_num(jnp.array([jnp.nan, 1.0, jnp.inf]), posinf=9.0)
    Array([0., 1., 9.], dtype=float32)
    """
    x = as_operand(x, "nan_to_num")
    dtype = dtype_of(x)
    if not dtypes.is_inexact(dtype):
        return as_array(x, "nan_to_num")
    if dtypes.is_complex(dtype):
        return complex_(
            nan_to_num(real(x), copy, nan, posinf, neginf), nan_to_num(imag(x), copy, nan, posinf, neginf)
        )
    limits = dtypes.finfo(dtype)
    values = [nan, limits.max if posinf is None else posinf, limits.min if neginf is None else neginf]
    numbers = [convert(as_operand(v, "nan_to_num", i + 2), dtype) for i, v in enumerate(values)]
    return _nan_to_num(*broadcast_operands("nan_to_num", [x, *numbers]))


@fused()
def _nan_to_num(x, nan, highest, lowest):
    x = select(ne(x, x), nan, x)
    return select(eq(x, np.inf), highest, select(eq(x, -np.inf), lowest, x))


__all__ = [
    "around", "ceil", "clip", "copysign", "floor", "frexp", "ldexp", "modf", "nan_to_num", "nextafter", "rint",
    "round", "spacing", "trunc",
]  # fmt: skip
