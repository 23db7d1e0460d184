"""Activation functions, with derivatives that are finite wherever the function is."""

from __future__ import annotations

import math
from typing import Any

from purax import numpy as jnp
from purax.control_flow.custom_jvp import custom_jvp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.numpy._promotion import strong
from purax.numpy._shape.axes import canonical_axis
from purax.primitives.elementwise import transcendental
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.special.special import erf
from purax.tree_util import tree_map


def _inexact(x: Any, name: str, mixed: bool = False) -> Array:
    """An argument as a floating point array; `mixed` for functions in which integers meet Python floats."""
    x = jnp.asarray(x)
    if dtypes.is_inexact(x.dtype):
        return x
    return convert_element_type(x, dtypes.to_inexact_dtype(x.dtype), mixed or x.weak_type)


@custom_jvp
def relu(x: Any) -> Array:
    """max(x, 0); its derivative at 0 is 0.

    >>> import purax as px, purax.numpy as jnp
    >>> px.nn.relu(jnp.array([-2.0, 0.0, 3.0]))
    Array([0., 0., 3.], dtype=float32)
    """
    return jnp.maximum(x, 0)


@relu.defjvp
def _relu_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return relu(x), jnp.where(x > 0, dx, jnp.zeros_like(dx))


@custom_jvp
def relu6(x: Any) -> Array:
    """min(max(x, 0), 6); its derivative at 0 and at 6 is 0."""
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


@relu6.defjvp
def _relu6_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return relu6(x), jnp.where((x > 0) & (x < 6), dx, jnp.zeros_like(dx))


def squareplus(x: Any, b: Any = 4) -> Array:
    """(x + √(x² + b)) / 2"""
    x = _inexact(x, "squareplus")
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


def softplus(x: Any) -> Array:
    """log(1 + eˣ)"""
    return jnp.logaddexp(x, 0)


@custom_jvp
def sparse_plus(x: Any) -> Array:
    """0 for x ≤ −1, (x + 1)²/4 between, x for x ≥ 1."""
    x = _inexact(x, "sparse_plus", mixed=True)
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


@sparse_plus.defjvp
def _sparse_plus_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return sparse_plus(x), sparse_sigmoid(x) * dx


def sparse_sigmoid(x: Any) -> Array:
    """0 for x ≤ −1, (x + 1)/2 between, 1 for x ≥ 1."""
    return 0.5 * jnp.clip(jnp.asarray(x) + 1.0, 0.0, 2.0)


def soft_sign(x: Any) -> Array:
    """x / (|x| + 1)"""
    x = jnp.asarray(x)
    x = _inexact(x, "soft_sign", mixed=dtypes.is_boolean(x.dtype))
    return x / (jnp.abs(x) + 1)


def sigmoid(x: Any) -> Array:
    """1 / (1 + e⁻ˣ)"""
    return transcendental.logistic(_inexact(x, "sigmoid"))


def silu(x: Any) -> Array:
    """x · sigmoid(x)"""
    x = _inexact(x, "silu")
    return x * sigmoid(x)


swish = silu


def mish(x: Any) -> Array:
    """x · tanh(softplus(x))"""
    x = jnp.asarray(x)
    x = _inexact(x, "mish", mixed=dtypes.is_boolean(x.dtype))
    return x * jnp.tanh(softplus(x))


def log_sigmoid(x: Any) -> Array:
    """log(sigmoid(x)) = −softplus(−x)"""
    return -softplus(-_inexact(x, "log_sigmoid"))


def elu(x: Any, alpha: Any = 1.0) -> Array:
    """x for x > 0, else alpha · (eˣ − 1)"""
    x = _inexact(x, "elu", mixed=True)
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Array:
    """x for x ≥ 0, else negative_slope · x"""
    x = jnp.asarray(x)
    return jnp.where(x >= 0, x, negative_slope * x)


def hard_tanh(x: Any) -> Array:
    """−1 for x < −1, x between, 1 for x > 1."""
    x = jnp.asarray(x)
    at_most_one = jnp.where(x > 1, 1, x)
    return at_most_one if dtypes.is_unsigned(x.dtype) else jnp.where(x < -1, -1, at_most_one)


def celu(x: Any, alpha: Any = 1.0) -> Array:
    """max(x, 0) + alpha · (e^(min(x, 0)/alpha) − 1)"""
    x = _inexact(x, "celu", mixed=True)
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


def selu(x: Any) -> Array:
    """1.0507 · elu(x, 1.6733), which keeps mean 0 and variance 1."""
    return 1.0507009873554805 * elu(x, 1.6732632423543772)


def gelu(x: Any, approximate: bool = True) -> Array:
    """x · Φ(x), with Φ the distribution function of the normal distribution.

    Args:
        x: the argument.
        approximate: whether to use Φ(x) ≈ (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2.
    """
    x = strong(_inexact(x, "gelu"))
    if approximate:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return x * (0.5 * (1.0 + jnp.tanh(inner)))
    return x * (0.5 * (1 + erf(x / math.sqrt(2)))).astype(x.dtype)


def glu(x: Any, axis: int = -1) -> Array:
    """The first half of x along `axis`, times the sigmoid of the second half."""
    x = _inexact(x, "glu")
    axis = canonical_axis("nn.glu", axis, x.ndim)
    if x.shape[axis] % 2:
        raise located(ValueError, f"glu needs an even size along axis {axis}, got shape {x.shape}")
    first, second = jnp.split(x, 2, axis)
    return first * sigmoid(second)


def hard_sigmoid(x: Any) -> Array:
    """relu6(x + 3) / 6"""
    return relu6(_inexact(x, "hard_sigmoid", mixed=True) + 3.0) / 6.0


def hard_silu(x: Any) -> Array:
    """x · hard_sigmoid(x)"""
    x = _inexact(x, "hard_silu", mixed=True)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def log1mexp(x: Any) -> Array:
    """log(1 − e⁻ˣ) for x > 0, accurate for small and large x."""
    x = _inexact(x, "log1mexp")
    small = x < math.log(2.0)
    near = jnp.log(-jnp.expm1(-jnp.where(small, x, 1.0)))
    far = jnp.log1p(-jnp.exp(-jnp.where(small, 1.0, x)))
    return jnp.where(small, near, far)


def identity(x: Any) -> Array:
    """x"""
    return tree_map(jnp.asarray, x)


def tanh(x: Any, /) -> Array:
    """The hyperbolic tangent."""
    return jnp.tanh(x)
