"""Exponentials, logarithms, powers, circular and hyperbolic functions, as `jax.lax` has them."""

from __future__ import annotations

from typing import Any  # noqa: F401  (in signatures of rows)

from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import aval_of
from purax.core.source import located
from purax.lax.families import binary, unary, unary_with_accuracy
from purax.lax.operands import listed, operand, pair, together
from purax.primitives.elementwise import transcendental
from purax.primitives.elementwise.conversion import convert_element_type
from purax.typing import ArrayLike

# fmt: off
exp = unary_with_accuracy("exp", transcendental.exp_p, "eˣ.",
    "lax.exp(jnp.array([0.0, 1.0]))", "Array([1.      , 2.718282], dtype=float32)")
exp2 = unary_with_accuracy("exp2", transcendental.exp2_p, "2ˣ.",
    "lax.exp2(jnp.array([0.0, 3.0]))", "Array([1., 8.], dtype=float32)")
expm1 = unary_with_accuracy("expm1", transcendental.expm1_p, "eˣ − 1, accurate near 0.",
    "lax.expm1(jnp.array([0.0, 1e-8]))", "Array([0.e+00, 1.e-08], dtype=float32)")
log = unary_with_accuracy("log", transcendental.log_p, "The natural logarithm of x.",
    "lax.log(jnp.array([0.0, 1.0]))", "Array([-inf,   0.], dtype=float32)")
log1p = unary_with_accuracy("log1p", transcendental.log1p_p, "log(1 + x), accurate near 0.",
    "lax.log1p(jnp.array([0.0, 1e-8]))", "Array([0.e+00, 1.e-08], dtype=float32)")
logistic = unary_with_accuracy("logistic", transcendental.logistic_p, "1/(1 + e⁻ˣ).",
    "lax.logistic(jnp.array([0.0, 100.0]))", "Array([0.5, 1. ], dtype=float32)")
sin = unary_with_accuracy("sin", transcendental.sin_p, "sin x.",
    "lax.sin(jnp.array([0.0, jnp.pi / 2]))", "Array([0., 1.], dtype=float32)")
cos = unary_with_accuracy("cos", transcendental.cos_p, "cos x.",
    "lax.cos(jnp.array([0.0, jnp.pi]))", "Array([ 1., -1.], dtype=float32)")
tan = unary_with_accuracy("tan", transcendental.tan_p, "tan x.",
    "lax.tan(jnp.array([0.0, 0.5]))", "Array([0.       , 0.5463025], dtype=float32)")
asin = unary("asin", transcendental.asin_p, "The angle in [−π/2, π/2] whose sine is x.",
    "lax.asin(jnp.array([0.0, 1.0]))", "Array([0.       , 1.5707964], dtype=float32)")
acos = unary("acos", transcendental.acos_p, "The angle in [0, π] whose cosine is x.",
    "lax.acos(jnp.array([1.0, 0.0]))", "Array([0.       , 1.5707964], dtype=float32)")
atan = unary("atan", transcendental.atan_p, "The angle in [−π/2, π/2] whose tangent is x.",
    "lax.atan(jnp.array([0.0, 1.0]))", "Array([0.       , 0.7853982], dtype=float32)")
atan2 = binary("atan2", transcendental.atan2_p, "The angle of the point with ordinate x and abscissa y.",
    "lax.atan2(jnp.array([0.0, 0.5]), 1.0)", "Array([0.       , 0.4636476], dtype=float32)")
sinh = unary("sinh", transcendental.sinh_p, "(eˣ − e⁻ˣ)/2.",
    "lax.sinh(jnp.array([0.0, 1.0]))", "Array([0.       , 1.1752012], dtype=float32)")
cosh = unary("cosh", transcendental.cosh_p, "(eˣ + e⁻ˣ)/2.",
    "lax.cosh(jnp.array([0.0, 1.0]))", "Array([1.       , 1.5430807], dtype=float32)")
tanh = unary_with_accuracy("tanh", transcendental.tanh_p, "sinh x / cosh x.",
    "lax.tanh(jnp.array([0.0, 20.0]))", "Array([0., 1.], dtype=float32)")
asinh = unary("asinh", transcendental.asinh_p, "The number whose hyperbolic sine is x.",
    "lax.asinh(jnp.array([0.0, 1.0]))", "Array([0.       , 0.8813736], dtype=float32)")
acosh = unary("acosh", transcendental.acosh_p, "The number ≥ 0 whose hyperbolic cosine is x.",
    "lax.acosh(jnp.array([1.0, 2.0]))", "Array([0.      , 1.316958], dtype=float32)")
atanh = unary("atanh", transcendental.atanh_p, "The number whose hyperbolic tangent is x.",
    "lax.atanh(jnp.array([0.0, 0.5]))", "Array([0.        , 0.54930615], dtype=float32)")
# fmt: on


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
        return transcendental.pow_p.bind(x, y)
    return transcendental.pow_p.bind(*pair("pow", x, y))
