"""Spherical harmonics, by the recurrence of normalized associated Legendre functions, which does not overflow."""

from __future__ import annotations

import math
import operator
from typing import Any

from purax import numpy as jnp
from purax.config import config
from purax.control_flow.scan import scan
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.numpy._programs import concrete_value
from purax.numpy._promotion import promotes_freely
from purax.primitives.elementwise.conversion import complex_
from purax.typing import ArrayLike


@promotes_freely
def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """The spherical harmonic of degree n and order m: N P(cos θ) e^(imφ) with Legendre's function P of n and m.

    Args:
        n: degrees, integers ≥ 0.
        m: orders, integers with |m| ≤ n.
        theta: polar angles, from 0 to π.
        phi: azimuthal angles, from 0 to 2π.
        diff_n: not supported; differentiate with `px.grad`.
        n_max: the highest degree, an integer, needed where `n` is traced; degrees beyond are taken as this one.

    Returns:
        Complex numbers, of the shape that the arguments are broadcast to.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.special import sph_harm_y
    >>> jnp.round(sph_harm_y(jnp.array([1]), jnp.array([0]), jnp.array([0.0]), jnp.array([0.5])), 4)
    Array([0.4886+0.j], dtype=complex64)
    """
    if diff_n is not None:
        raise located(
            NotImplementedError, "sph_harm_y: diff_n is not supported; differentiate with px.grad or px.jvp"
        )
    highest = _highest_degree(n, n_max)
    degree, order = jnp.asarray(n), jnp.asarray(m)
    for name, x in (("n", degree), ("m", order)):
        if not dtypes.is_integer(x.dtype):
            raise located(TypeError, f"sph_harm_y: {name} must be integers, got dtype {x.dtype}")
    dtype = dtypes.to_inexact_dtype(jnp.promote_types(jnp.asarray(theta).dtype, jnp.asarray(phi).dtype))
    theta, phi = jnp.asarray(theta, dtype), jnp.asarray(phi, dtype)
    degree, order, theta, phi = jnp.broadcast_arrays(jnp.clip(degree, None, highest), order, theta, phi)
    size = jnp.abs(order)
    with config.override(explicit_x64_dtypes="allow"):
        values = _normalized_legendre(degree, size, theta.astype(jnp.float64), highest).astype(dtype)
        angle = order.astype(jnp.float64) * phi.astype(jnp.float64)
    # Y of order −m is (−1)ᵐ times the conjugate of that of order m; the factor (−1)ᵐ of Condon and Shortley is in P.
    flipped = jnp.where((order < 0) & (size % 2 == 1), -values, values)
    return flipped * complex_(jnp.cos(angle).astype(dtype), jnp.sin(angle).astype(dtype))


def _highest_degree(n: Any, n_max: Any) -> int:
    known = concrete_value(n_max if n_max is not None else n)
    if known is None:
        raise located(
            TypeError, "sph_harm_y: the degrees n are traced; give their highest value as n_max, an integer"
        )
    return operator.index(int(known.max(initial=0)))


def _normalized_legendre(degree, order, theta, highest: int):
    """N P with ∫ |Y|² = 1: from that of degree m upwards, in one loop of which each element keeps its own degree."""
    x, sine = jnp.cos(theta), jnp.sin(theta)
    dtype = x.dtype
    m = order.astype(dtype)

    def start(value, k):
        # P̄ₖᵏ = −√((2k + 1)/2k) sin θ P̄ₖ₋₁ᵏ⁻¹
        return jnp.where(k <= m, -jnp.sqrt((2 * k + 1) / (2 * k)) * sine * value, value), None

    first, _ = scan(
        start, jnp.full_like(x, 0.5 / math.sqrt(math.pi)), jnp.arange(1, highest + 1, dtype=dtype)
    )

    def step(state, level):
        lower, current, found = state
        # P̄ₗ = √((4l² − 1)/(l² − m²)) (x P̄ₗ₋₁ − √(((l − 1)² − m²)/(4(l − 1)² − 1)) P̄ₗ₋₂)
        is_above = level > m
        safe = jnp.where(is_above, level, m + 1)
        scale = jnp.sqrt((4 * safe * safe - 1) / (safe * safe - m * m))
        before = safe - 1
        ratio = jnp.where(before > m, (before * before - m * m) / (4 * before * before - 1), 0)
        following = scale * (
            x * current - jnp.sqrt(jnp.where(ratio > 0, ratio, 1)) * jnp.where(ratio > 0, lower, 0)
        )
        lower, current = jnp.where(is_above, current, lower), jnp.where(is_above, following, current)
        return (lower, current, jnp.where(level == degree, current, found)), None

    found = jnp.where(degree == order, first, jnp.zeros_like(first))
    state = (jnp.zeros_like(first), first, found)
    (_, _, found), _ = scan(step, state, jnp.arange(1, highest + 1, dtype=dtype))
    return jnp.where(degree == order, first, found)
