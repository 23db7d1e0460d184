"""Bessel functions: modified ones of orders 0 and 1, and those of the first kind of all orders up to a given one."""

from __future__ import annotations

import functools
import math
import operator

import numpy as np

from purax import numpy as jnp
from purax.control_flow.custom_jvp import custom_jvp
from purax.control_flow.scan import scan
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.numpy._programs import as_one_program, strong_array
from purax.numpy._promotion import fused, inexact
from purax.primitives.special.function import scipy_function
from purax.primitives.special.special import bessel_i0e_p, bessel_i1e_p
from purax.typing import ArrayLike


def i0e(x: ArrayLike) -> Array:
    """e^(−|x|) I₀(x), the scaled modified Bessel function of order 0.

    >>> from purax.scipy.special import i0e
    >>> round(float(i0e(1.0)), 4)
    0.4658
    """
    return bessel_i0e_p.bind(inexact("i0e", x))


def i1e(x: ArrayLike) -> Array:
    """e^(−|x|) I₁(x), the scaled modified Bessel function of order 1.

    >>> from purax.scipy.special import i1e
    >>> round(float(i1e(1.0)), 4)
    0.2079
    """
    return bessel_i1e_p.bind(inexact("i1e", x))


def i0(x: ArrayLike) -> Array:
    """I₀(x), the modified Bessel function of order 0.

    >>> from purax.scipy.special import i0
    >>> round(float(i0(1.0)), 4)
    1.2661
    """
    return _i0(inexact("i0", x))


def i1(x: ArrayLike) -> Array:
    """I₁(x), the modified Bessel function of order 1.

    >>> from purax.scipy.special import i1
    >>> round(float(i1(1.0)), 4)
    0.5652
    """
    return _i1(inexact("i1", x))


def _on_host(name: str):
    def host(x):
        return np.asarray(scipy_function(name)(x.astype(np.float64))).astype(x.dtype)

    return host


@custom_jvp
def _i0_by_steps(x):
    return _grown(x, bessel_i0e_p.bind(x))


@_i0_by_steps.defjvp
def _i0_rule(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _i0_by_steps(x), dx * _i1_by_steps(x)


@custom_jvp
def _i1_by_steps(x):
    return _grown(x, bessel_i1e_p.bind(x))


@_i1_by_steps.defjvp
def _i1_rule(primals, tangents):
    (x,), (dx,) = primals, tangents
    out = _i1_by_steps(x)
    return out, dx * (_i0_by_steps(x) - jnp.where(x == 0, 0.5, out / jnp.where(x == 0, 1, x)))


def _grown(x, scaled):
    """e^|x| times a scaled function, which may be finite where e^|x| is not."""
    half = jnp.exp(jnp.abs(x) / 2)
    return jnp.where(jnp.isinf(x), x * jnp.where(scaled < 0, 1, jnp.sign(x)), half * scaled * half)


@fused(_on_host("i0"))
def _i0(x):
    return _i0_by_steps(x)


@fused(_on_host("i1"))
def _i1(x):
    return _i1_by_steps(x)


# --- the first kind

FAR = 30.0  # from here on Hankel's expansion of J₀ and J₁ has full accuracy


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """J₀(z), …, Jᵥ(z), the Bessel functions of the first kind.

    Args:
        z: real numbers.
        v: the highest order, an integer.
        n_iter: accepted and not needed: recurrences are as long as full accuracy takes.

    Returns:
        An array of shape [v + 1, *z.shape].

    >>> import purax.numpy as jnp
    >>> from purax.scipy.special import bessel_jn
    >>> jnp.round(bessel_jn(jnp.array([0.0, 2.0]), v=1), 4)
    Array([[1.    , 0.2239],
           [0.    , 0.5767]], dtype=float32)
    """
    try:
        order = operator.index(v)
    except TypeError:
        raise located(TypeError, f"bessel_jn: the order v must be an integer, got {shown(v)}") from None
    if order < 0:
        raise located(ValueError, f"bessel_jn: the order v must not be negative, got {order}")
    z = strong_array(inexact("bessel_jn", z), "bessel_jn")
    if dtypes.is_complex(z.dtype):
        raise located(TypeError, f"bessel_jn: z must be real, got dtype {z.dtype}")
    return _bessel_jn(z, v=order)


def _bessel_jn_on_host(z, *, v):
    orders = np.arange(v + 1.0).reshape(-1, *([1] * z.ndim))
    return np.asarray(scipy_function("jv")(orders, z.astype(np.float64))).astype(z.dtype)


@as_one_program(_bessel_jn_on_host)
def _bessel_jn(z, *, v):
    return _first_kind(z, v)


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def _first_kind(z, v):
    wide = z.astype(jnp.float64)
    sign = jnp.where(wide < 0, -1.0, 1.0)
    signs = jnp.stack([sign if n % 2 else jnp.ones_like(sign) for n in range(v + 1)])
    size = jnp.abs(wide)
    limit = max(FAR, float(v))
    is_far = size > limit
    near = _by_miller(jnp.where(is_far, 1.0, size), v, limit)
    far = _by_hankel(jnp.where(is_far & jnp.isfinite(size), size, 2 * limit), v)
    result = signs * jnp.where(is_far, far, near)
    return jnp.where(jnp.isnan(wide), jnp.nan, jnp.where(jnp.isinf(wide), 0.0, result)).astype(z.dtype)


@_first_kind.defjvp
def _first_kind_rule(v, primals, tangents):
    # Jₙ' = (Jₙ₋₁ − Jₙ₊₁)/2 with J₋₁ = −J₁
    (z,), (dz,) = primals, tangents
    values = _first_kind(z, v + 1)
    lower = jnp.concatenate([-values[1:2], values[:v]])
    return values[: v + 1], dz * ((lower - values[1:]) / 2)


def _by_miller(z, v: int, limit: float):
    """The recurrence Jₙ₋₁ = 2n/z Jₙ − Jₙ₊₁ downwards from a high order, scaled to J₀ + 2 J₂ + 2 J₄ + … = 1."""
    start = 2 * (math.ceil((limit + 15 + 6 * limit ** (1 / 3)) / 2) + 10)
    zero = jnp.zeros_like(z)
    huge = jnp.asarray(1e200, jnp.float64)
    is_zero = z < 1e-30
    safe = jnp.where(is_zero, 1.0, z)

    def step(state, n):
        higher, current, total = state
        lower = 2 * n / safe * current - higher
        total = (
            total + jnp.where(n % 2 == 1, jnp.where(n == 1, 1.0, 2.0), 0.0) * lower
        )  # lower is of order n − 1
        shrink = jnp.where(jnp.abs(lower) > huge, 1 / huge, jnp.ones_like(lower))
        return (current * shrink, lower * shrink, total * shrink), (lower, shrink)

    state = (zero, zero + 1 / huge, zero)
    (_, _, total), (values, shrinks) = scan(step, state, jnp.arange(start, 0.0, -1.0, dtype=jnp.float64))
    # What was collected before a rescaling is smaller than it seems by all later factors.
    later = jnp.cumprod(shrinks[::-1], axis=0)
    values = values[::-1][: v + 1] * later[: v + 1] / total
    orders = jnp.arange(v + 1).reshape(-1, *([1] * z.ndim))
    return jnp.where(is_zero, jnp.where(orders == 0, 1.0, jnp.where(orders == 1, z / 2, 0.0)), values)


def _by_hankel(z, v: int):
    """J₀ and J₁ by Hankel's expansion √(2/πz) (P cos χ − Q sin χ), then the recurrence upwards, stable for n < z."""
    rows = []
    sine, cosine = jnp.sin(z), jnp.cos(z)
    for n in (0, 1):
        p = q = jnp.zeros_like(z)
        term = jnp.ones_like(z)
        for k in range(24):
            sign = -1.0 if k // 2 % 2 else 1.0
            p, q = (p + sign * term, q) if k % 2 == 0 else (p, q + sign * term)
            term = term * (4 * n * n - (2 * k + 1) ** 2) / (8 * (k + 1)) / z
        # χ = z − (2n + 1)π/4, written so that z is not rounded: cos χ and sin χ are sums of sin z and cos z.
        cos_chi = (cosine + sine if n == 0 else sine - cosine) * math.sqrt(0.5)
        sin_chi = (sine - cosine if n == 0 else -sine - cosine) * math.sqrt(0.5)
        rows.append(jnp.sqrt(2 / (math.pi * z)) * (p * cos_chi - q * sin_chi))
    if v == 0:
        return rows[0][None]

    def step(state, n):
        lower, current = state
        return (current, 2 * n / z * current - lower), current

    _, rest = scan(step, tuple(rows), jnp.arange(1.0, v + 1.0, dtype=jnp.float64))
    return jnp.concatenate([rows[0][None], rest])
