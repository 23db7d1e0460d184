"""Exponentials, logarithms, circular and hyperbolic functions, on each element. Integers become floats."""

from __future__ import annotations

import math

import numpy as np

from purax.control_flow.custom_jvp import custom_jvp
from purax.core import dtypes
from purax.core.array import Array
from purax.numpy._elementwise.families import alias, alias_of_two, unary
from purax.numpy._elementwise.narrow_floats import in_float32
from purax.numpy._promotion import (
    binary_inexact,
    broadcast_operands,
    dtype_of,
    fused,
    inexact,
    refuse_out,
    strong,
    strong_unless_scalar,
)
from purax.primitives.elementwise import transcendental
from purax.primitives.elementwise.arithmetic import abs_, div, floor, max_, round_, sub
from purax.primitives.elementwise.conversion import complex_, imag, real
from purax.primitives.elementwise.elementwise import add, mul, neg
from purax.primitives.elementwise.logic import eq, lt, ne, select
from purax.typing import ArrayLike

# --- exponentials and logarithms


# fmt: off
exp = unary("exp", transcendental.exp_p, "eˣ",
    "jnp.round(jnp.exp(jnp.array([0.0, 1.0])), 3)", "Array([1.   , 2.718], dtype=float32)")
exp2 = unary("exp2", transcendental.exp2_p, "2ˣ",
    "jnp.exp2(jnp.array([0, 3]))", "Array([1., 8.], dtype=float32)")
expm1 = unary("expm1", transcendental.expm1_p, "eˣ − 1, accurate near 0.",
    "jnp.expm1(jnp.array([0.0, 1e-8]))", "Array([0.e+00, 1.e-08], dtype=float32)")
log = unary("log", transcendental.log_p, "The natural logarithm of x.",
    "jnp.log(jnp.array([1.0, 2.0]))", "Array([0.       , 0.6931472], dtype=float32)")
# fmt: on


def log2(x: ArrayLike, /) -> Array:
    """The logarithm of x to the base 2.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.log2(jnp.array([1, 8]))
    Array([0., 3.], dtype=float32)
    """
    return _log2(strong(inexact("log2", x)))


def _rounded_once(function):
    """A function of NumPy, with floats narrower than 64 bits computed in these and rounded at the end."""

    def host(x):
        if x.dtype.itemsize >= 8:
            return function(x)
        return function(x.astype(np.float64)).astype(x.dtype)

    return host


@fused(_rounded_once(np.log2))
@in_float32
def _log2(x):
    if dtypes.is_complex(dtype_of(x)):
        return _scaled_parts(transcendental.log_p.bind(x), 1 / math.log(2))
    return div(transcendental.log_p.bind(x), math.log(2))


def _scaled_parts(z, factor: float):
    """z · factor, without the 0 · ∞ of a product of complex numbers."""
    return complex_(mul(real(z), factor), mul(imag(z), factor))


def log10(x: ArrayLike, /) -> Array:
    """The logarithm of x to the base 10.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.log10(jnp.array([1, 100]))
    Array([0., 2.], dtype=float32)
    """
    return _log10(strong(inexact("log10", x)))


_PER_LOG10 = (
    0.4342944819032518,
    1.098319650216765e-17,
)  # 1/log 10, and the digits that a float64 does not hold


@fused(_rounded_once(np.log10))
@in_float32
def _log10(x):
    if dtypes.is_complex(dtype_of(x)):
        return _scaled_parts(transcendental.log_p.bind(x), 1 / math.log(10))
    logarithm = transcendental.log_p.bind(x)
    return add(mul(logarithm, _PER_LOG10[0]), mul(logarithm, _PER_LOG10[1]))


# fmt: off
log1p = unary("log1p", transcendental.log1p_p, "log(1 + x), accurate near 0.",
    "jnp.log1p(jnp.array([0.0, 1e-8]))", "Array([0.e+00, 1.e-08], dtype=float32)")
# fmt: on


def logaddexp(x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """log(eˣ¹ + eˣ²), without overflow on the way.

    Args:
        x1: an array or a number.
        x2: another, broadcast against it.
        out: not supported: arrays are immutable.
        where: not supported; use `jnp.where`.

    >>> import purax.numpy as jnp
    >>> jnp.logaddexp(jnp.array([1000.0, -1000.0]), jnp.array([1000.0, 0.0]))
    Array([1000.6932,    0.    ], dtype=float32)
    """
    refuse_out("logaddexp", out, where)
    x, y = broadcast_operands("logaddexp", binary_inexact("logaddexp", x1, x2))
    if dtypes.is_complex(dtype_of(x)):
        return _on_principal_branch(_logaddexp_by_steps(x, y))
    return _logaddexp(x, y)


def _on_principal_branch(z):
    """`z` with whole turns taken off its imaginary part: between −π and π."""
    turns = round_(div(imag(z), 2 * math.pi), 1)
    return complex_(real(z), sub(imag(z), mul(turns, 2 * math.pi)))


@custom_jvp
def _logaddexp_by_steps(x, y):
    """max(x, y) + log(1 + e^(−|x − y|)); x + y where both are the same infinity or one is NaN."""
    difference = sub(x, y)
    if dtypes.is_complex(dtype_of(x)):
        larger = select(lt(real(difference), 0), y, x)
        difference = select(lt(real(difference), 0), difference, neg(difference))
    else:
        larger, difference = max_(x, y), neg(abs_(difference))
    return select(
        ne(difference, difference),
        add(x, y),
        add(larger, transcendental.log1p_p.bind(transcendental.exp_p.bind(difference))),
    )


@_logaddexp_by_steps.defjvp
def _logaddexp_jvp(primals, tangents):
    x, y = primals
    dx, dy = tangents
    out = _logaddexp_by_steps(x, y)
    return out, add(
        mul(dx, _share(x, out, transcendental.exp_p.bind)), mul(dy, _share(y, out, transcendental.exp_p.bind))
    )


def _share(x, out, exponential):
    """eˣ / e^out; 1 where both are the same infinity."""
    return exponential(select(eq(x, out), 0, sub(x, out)))


@fused(np.logaddexp)
@in_float32
def _logaddexp(x, y):
    return _logaddexp_by_steps(x, y)


def logaddexp2(x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """log₂(2ˣ¹ + 2ˣ²), without overflow on the way.

    Args:
        x1: an array or a number.
        x2: another, broadcast against it.
        out: not supported: arrays are immutable.
        where: not supported; use `jnp.where`.

    >>> import purax.numpy as jnp
    >>> jnp.logaddexp2(jnp.array([1000.0, -1000.0]), jnp.array([1000.0, 0.0]))
    Array([1001.,    0.], dtype=float32)
    """
    refuse_out("logaddexp2", out, where)
    x, y = broadcast_operands("logaddexp2", binary_inexact("logaddexp2", x1, x2))
    if dtypes.is_complex(dtype_of(x)):
        return _scaled_parts(logaddexp(mul(x, math.log(2)), mul(y, math.log(2))), 1 / math.log(2))
    return strong_unless_scalar(_logaddexp2(x, y))


@custom_jvp
def _logaddexp2_by_steps(x, y):
    """max(x, y) + log₂(1 + 2^(−|x − y|)); x + y where both are the same infinity or one is NaN."""
    difference = neg(abs_(sub(x, y)))
    correction = mul(transcendental.log1p_p.bind(transcendental.exp2_p.bind(difference)), 1 / math.log(2))
    return select(ne(difference, difference), add(x, y), add(max_(x, y), correction))


@_logaddexp2_by_steps.defjvp
def _logaddexp2_jvp(primals, tangents):
    x, y = primals
    dx, dy = tangents
    out = _logaddexp2_by_steps(x, y)
    return out, add(
        mul(dx, _share(x, out, transcendental.exp2_p.bind)),
        mul(dy, _share(y, out, transcendental.exp2_p.bind)),
    )


@fused(np.logaddexp2)
@in_float32
def _logaddexp2(x, y):
    return _logaddexp2_by_steps(x, y)


# --- trigonometric functions


# fmt: off
sin = unary("sin", transcendental.sin_p, "sin x, for x in radians.",
    "jnp.sin(jnp.array([0.0, jnp.pi / 2]))", "Array([0., 1.], dtype=float32)")
cos = unary("cos", transcendental.cos_p, "cos x, for x in radians.",
    "jnp.cos(jnp.array([0.0, jnp.pi]))", "Array([ 1., -1.], dtype=float32)")
tan = unary("tan", transcendental.tan_p, "tan x, for x in radians.",
    "jnp.round(jnp.tan(jnp.array([0.0, 0.5])), 3)", "Array([0.   , 0.546], dtype=float32)")
arcsin = unary("arcsin", transcendental.asin_p, "The angle in [−π/2, π/2] whose sine is x.",
    "jnp.arcsin(jnp.array([0.0, 1.0]))", "Array([0.       , 1.5707964], dtype=float32)")
asin = alias("asin", arcsin, "The angle in [−π/2, π/2] whose sine is x; another name of `arcsin`.",
    "jnp.round(jnp.asin(jnp.array([0.0, 0.5])), 3)", "Array([0.   , 0.524], dtype=float32)")
arccos = unary("arccos", transcendental.acos_p, "The angle in [0, π] whose cosine is x.",
    "jnp.arccos(jnp.array([1.0, -1.0]))", "Array([0.       , 3.1415927], dtype=float32)")
acos = alias("acos", arccos, "The angle in [0, π] whose cosine is x; another name of `arccos`.",
    "jnp.acos(jnp.array([1.0, 0.0]))", "Array([0.       , 1.5707964], dtype=float32)")
arctan = unary("arctan", transcendental.atan_p, "The angle in [−π/2, π/2] whose tangent is x.",
    "jnp.round(jnp.arctan(jnp.array([0.0, 1.0])), 3)", "Array([0.   , 0.785], dtype=float32)")
atan = alias("atan", arctan, "The angle in [−π/2, π/2] whose tangent is x; another name of `arctan`.",
    "jnp.atan(jnp.array([0.0, jnp.inf]))", "Array([0.       , 1.5707964], dtype=float32)")
# fmt: on


def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle in [−π, π] of the point with ordinate x1 and abscissa x2.

    Args:
        x1: the ordinates.
        x2: the abscissas, broadcast against them.

    >>> import purax.numpy as jnp
    >>> jnp.round(jnp.arctan2(jnp.array([1.0, 0.0]), jnp.array([1.0, -1.0])), 3)
    Array([0.785, 3.142], dtype=float32)
    """
    x, y = binary_inexact("arctan2", x1, x2)
    return transcendental.atan2_p.bind(x, y)


# fmt: off
atan2 = alias_of_two(
    "atan2", arctan2, "The angle in [−π, π] of the point with ordinate x1 and abscissa x2; another name of `arctan2`.",
    "jnp.atan2(1.0, jnp.array([0.0]))", "Array([1.5707964], dtype=float32)")
# fmt: on


def deg2rad(x: ArrayLike, /) -> Array:
    """Degrees as radians: x·π/180.

    Args:
        x: angles in degrees.

    >>> import purax.numpy as jnp
    >>> jnp.deg2rad(jnp.array([0.0, 180.0]))
    Array([0.       , 3.1415927], dtype=float32)
    """
    x = inexact("deg2rad", x)
    return mul(x, math.pi / 180)


# fmt: off
radians = alias("radians", deg2rad, "Degrees as radians; another name of `deg2rad`.",
    "jnp.radians(jnp.array([0.0, 90.0]))", "Array([0.       , 1.5707964], dtype=float32)")
# fmt: on


def rad2deg(x: ArrayLike, /) -> Array:
    """Radians as degrees: x·180/π.

    Args:
        x: angles in radians.

    >>> import purax.numpy as jnp
    >>> jnp.rad2deg(jnp.array([0.0, jnp.pi]))
    Array([  0., 180.], dtype=float32)
    """
    x = inexact("rad2deg", x)
    return mul(x, 180 / math.pi)


# fmt: off
degrees = alias("degrees", rad2deg, "Radians as degrees; another name of `rad2deg`.",
    "jnp.degrees(jnp.array([0.0, jnp.pi / 2]))", "Array([ 0., 90.], dtype=float32)")
# fmt: on


def sinc(x: ArrayLike, /) -> Array:
    """sin(πx)/(πx), and 1 at x = 0.

    Whole numbers and infinities give 0, exactly; NumPy rounds πx first, and has 3.9e-17 and NaN there.

    Args:
        x: the argument.

    Returns:
        An array of the shape of `x`.

    >>> import purax.numpy as jnp
    >>> jnp.round(jnp.sinc(jnp.array([0.0, 0.5, 2.0, jnp.inf])), 3)
    Array([1.   , 0.637, 0.   , 0.   ], dtype=float32)
    """
    return strong_unless_scalar(_sinc(inexact("sinc", x)))


_SINC = [(-1) ** k / math.factorial(2 * k + 1) for k in range(8)]


@fused()
@in_float32
def _sinc(x):
    """±sin(πr)/(πx), where r is what is left of x after taking off integers; no digits are lost in πr.

    Near 0 it is the series Σ (−z²)ᵏ/(2k + 1)!, whose derivatives are right at 0, too.
    """
    if dtypes.is_complex(dtype_of(x)):
        near = lt(abs_(x), 0.16)
        whole = complex_(round_(real(x), 1), 0)
    else:
        x = select(eq(abs_(x), math.inf), 2.0, x)  # integers are zeros of sinc, and so is the limit
        near = lt(abs_(x), 0.16)
        whole = round_(x, 1)
    z = mul(select(near, x, 0.0), math.pi)
    squared = mul(z, z)
    series = add(mul(squared, _SINC[-1]), _SINC[-2])
    for coefficient in _SINC[-3::-1]:
        series = add(mul(squared, series), coefficient)
    size = abs_(real(whole)) if dtypes.is_complex(dtype_of(x)) else abs_(whole)
    is_odd = ne(size, mul(floor(mul(size, 0.5)), 2))
    sine = transcendental.sin_p.bind(mul(sub(x, whole), math.pi))
    far = div(sine, mul(select(near, 1.0, x), math.pi))
    return select(near, series, select(is_odd, neg(far), far))


# --- hyperbolic functions


# fmt: off
sinh = unary("sinh", transcendental.sinh_p, "(eˣ − e⁻ˣ)/2",
    "jnp.round(jnp.sinh(jnp.array([0.0, 1.0])), 3)", "Array([0.   , 1.175], dtype=float32)")
cosh = unary("cosh", transcendental.cosh_p, "(eˣ + e⁻ˣ)/2",
    "jnp.round(jnp.cosh(jnp.array([0.0, 1.0])), 3)", "Array([1.   , 1.543], dtype=float32)")
tanh = unary("tanh", transcendental.tanh_p, "sinh x / cosh x",
    "jnp.tanh(jnp.array([0.0, 100.0]))", "Array([0., 1.], dtype=float32)")
arcsinh = unary("arcsinh", transcendental.asinh_p, "The number whose hyperbolic sine is x.",
    "jnp.round(jnp.arcsinh(jnp.array([0.0, 1.0])), 3)", "Array([0.   , 0.881], dtype=float32)")
asinh = alias("asinh", arcsinh, "The number whose hyperbolic sine is x; another name of `arcsinh`.",
    "jnp.asinh(0.0)", "Array(0., dtype=float32, weak_type=True)")
# fmt: on


def arccosh(x: ArrayLike, /) -> Array:
    """The number ≥ 0 whose hyperbolic cosine is x.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.round(jnp.arccosh(jnp.array([1.0, 2.0])), 3)
    Array([0.   , 1.317], dtype=float32)
    """
    x = inexact("arccosh", x)
    result = transcendental.acosh_p.bind(x)
    if dtypes.is_complex(dtype_of(x)):  # the branch with a real part ≥ 0, as NumPy's
        return select(lt(real(result), 0), neg(result), result)
    return result


# fmt: off
acosh = alias("acosh", arccosh, "The number ≥ 0 whose hyperbolic cosine is x; another name of `arccosh`.",
    "jnp.acosh(1.0)", "Array(0., dtype=float32, weak_type=True)")
arctanh = unary("arctanh", transcendental.atanh_p, "The number whose hyperbolic tangent is x.",
    "jnp.round(jnp.arctanh(jnp.array([0.0, 0.5])), 3)", "Array([0.   , 0.549], dtype=float32)")
atanh = alias("atanh", arctanh, "The number whose hyperbolic tangent is x; another name of `arctanh`.",
    "jnp.atanh(0.0)", "Array(0., dtype=float32, weak_type=True)")
# fmt: on
