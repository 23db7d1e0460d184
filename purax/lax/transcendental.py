"""Exponentials, logarithms, powers, circular and hyperbolic functions, as `jax.lax` has them."""

from __future__ import annotations

from typing import Any

from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import aval_of
from purax.core.source import located
from purax.lax.accuracy import check_accuracy
from purax.lax.operands import listed, operand, pair, together
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.transcendental import (
    acos_p,
    acosh_p,
    asin_p,
    asinh_p,
    atan2_p,
    atan_p,
    atanh_p,
    cos_p,
    cosh_p,
    exp2_p,
    exp_p,
    expm1_p,
    log1p_p,
    log_p,
    logistic_p,
    pow_p,
    sin_p,
    sinh_p,
    tan_p,
    tanh_p,
)
from purax.typing import ArrayLike
from purax.xla.array import DeviceArray


def exp(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """eˣ.

    >>> from purax import lax, numpy as jnp
    >>> lax.exp(jnp.array([0.0, 1.0]))
    Array([1.      , 2.718282], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return exp_p.bind(x if type(x) is DeviceArray else operand("exp", x))


def exp2(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """2ˣ.

    >>> from purax import lax, numpy as jnp
    >>> lax.exp2(jnp.array([0.0, 3.0]))
    Array([1., 8.], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return exp2_p.bind(x if type(x) is DeviceArray else operand("exp2", x))


def expm1(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """eˣ − 1, accurate near 0.

    >>> from purax import lax, numpy as jnp
    >>> lax.expm1(jnp.array([0.0, 1e-8]))
    Array([0.e+00, 1.e-08], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return expm1_p.bind(x if type(x) is DeviceArray else operand("expm1", x))


def log(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """The natural logarithm of x.

    >>> from purax import lax, numpy as jnp
    >>> lax.log(jnp.array([0.0, 1.0]))
    Array([-inf,   0.], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return log_p.bind(x if type(x) is DeviceArray else operand("log", x))


def log1p(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """log(1 + x), accurate near 0.

    >>> from purax import lax, numpy as jnp
    >>> lax.log1p(jnp.array([0.0, 1e-8]))
    Array([0.e+00, 1.e-08], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return log1p_p.bind(x if type(x) is DeviceArray else operand("log1p", x))


def logistic(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """1/(1 + e⁻ˣ).

    >>> from purax import lax, numpy as jnp
    >>> lax.logistic(jnp.array([0.0, 100.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return logistic_p.bind(x if type(x) is DeviceArray else operand("logistic", x))


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """xʸ.

    Args:
        x: floating point or complex.
        y: of the dtype of x, or an integer.

    >>> from purax import lax, numpy as jnp
    >>> lax.pow(jnp.array([2.0, 3.0]), 2)
    Array([4., 9.], dtype=float32)
    """
    x, y = operand("pow", x), operand("pow", y, 1)
    base, power = aval_of(x), aval_of(y)
    if not dtypes.is_inexact(base.dtype):
        raise located(
            TypeError,
            f"lax.pow takes a floating point or complex base, got {listed((base, power))}; see lax.integer_pow",
        )
    if dtypes.is_integer(power.dtype):
        if base.shape and power.shape and base.shape != power.shape:
            x, y = together("pow", x, convert_element_type(y, base.dtype))
        return pow_p.bind(x, y)
    return pow_p.bind(*pair("pow", x, y))


def sin(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """sin x.

    >>> from purax import lax, numpy as jnp
    >>> lax.sin(jnp.array([0.0, jnp.pi / 2]))
    Array([0., 1.], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return sin_p.bind(x if type(x) is DeviceArray else operand("sin", x))


def cos(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """cos x.

    >>> from purax import lax, numpy as jnp
    >>> lax.cos(jnp.array([0.0, jnp.pi]))
    Array([ 1., -1.], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return cos_p.bind(x if type(x) is DeviceArray else operand("cos", x))


def tan(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """tan x.

    >>> from purax import lax, numpy as jnp
    >>> lax.tan(jnp.array([0.0, 0.5]))
    Array([0.       , 0.5463025], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return tan_p.bind(x if type(x) is DeviceArray else operand("tan", x))


def asin(x: ArrayLike) -> Array:
    """The angle in [−π/2, π/2] whose sine is x.

    >>> from purax import lax, numpy as jnp
    >>> lax.asin(jnp.array([0.0, 1.0]))
    Array([0.       , 1.5707964], dtype=float32)
    """
    return asin_p.bind(x if type(x) is DeviceArray else operand("asin", x))


def acos(x: ArrayLike) -> Array:
    """The angle in [0, π] whose cosine is x.

    >>> from purax import lax, numpy as jnp
    >>> lax.acos(jnp.array([1.0, 0.0]))
    Array([0.       , 1.5707964], dtype=float32)
    """
    return acos_p.bind(x if type(x) is DeviceArray else operand("acos", x))


def atan(x: ArrayLike) -> Array:
    """The angle in [−π/2, π/2] whose tangent is x.

    >>> from purax import lax, numpy as jnp
    >>> lax.atan(jnp.array([0.0, 1.0]))
    Array([0.       , 0.7853982], dtype=float32)
    """
    return atan_p.bind(x if type(x) is DeviceArray else operand("atan", x))


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """The angle of the point with ordinate x and abscissa y.

    >>> from purax import lax, numpy as jnp
    >>> lax.atan2(jnp.array([0.0, 0.5]), 1.0)
    Array([0.       , 0.4636476], dtype=float32)
    """
    return atan2_p.bind(*pair("atan2", x, y))


def sinh(x: ArrayLike) -> Array:
    """(eˣ − e⁻ˣ)/2.

    >>> from purax import lax, numpy as jnp
    >>> lax.sinh(jnp.array([0.0, 1.0]))
    Array([0.       , 1.1752012], dtype=float32)
    """
    return sinh_p.bind(x if type(x) is DeviceArray else operand("sinh", x))


def cosh(x: ArrayLike) -> Array:
    """(eˣ + e⁻ˣ)/2.

    >>> from purax import lax, numpy as jnp
    >>> lax.cosh(jnp.array([0.0, 1.0]))
    Array([1.       , 1.5430807], dtype=float32)
    """
    return cosh_p.bind(x if type(x) is DeviceArray else operand("cosh", x))


def tanh(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """sinh x / cosh x.

    >>> from purax import lax, numpy as jnp
    >>> lax.tanh(jnp.array([0.0, 20.0]))
    Array([0., 1.], dtype=float32)
    """
    if accuracy is not None:
        check_accuracy(accuracy)
    return tanh_p.bind(x if type(x) is DeviceArray else operand("tanh", x))


def asinh(x: ArrayLike) -> Array:
    """The number whose hyperbolic sine is x.

    >>> from purax import lax, numpy as jnp
    >>> lax.asinh(jnp.array([0.0, 1.0]))
    Array([0.       , 0.8813736], dtype=float32)
    """
    return asinh_p.bind(x if type(x) is DeviceArray else operand("asinh", x))


def acosh(x: ArrayLike) -> Array:
    """The number ≥ 0 whose hyperbolic cosine is x.

    >>> from purax import lax, numpy as jnp
    >>> lax.acosh(jnp.array([1.0, 2.0]))
    Array([0.      , 1.316958], dtype=float32)
    """
    return acosh_p.bind(x if type(x) is DeviceArray else operand("acosh", x))


def atanh(x: ArrayLike) -> Array:
    """The number whose hyperbolic tangent is x.

    >>> from purax import lax, numpy as jnp
    >>> lax.atanh(jnp.array([0.0, 0.5]))
    Array([0.        , 0.54930615], dtype=float32)
    """
    return atanh_p.bind(x if type(x) is DeviceArray else operand("atanh", x))
