"""Tables of associated Legendre functions, as SciPy and JAX once had them; the import mode offers them.

P(l, m) = (−1)ᵐ (1 − x²)^(m/2) Q(l, m), where Q is the m-th derivative of the Legendre polynomial of degree l. The
recurrence is that of normalized functions, N P with ∫ N² P² = 1/2π, so that nothing overflows on the way.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.core.array import Array
from purax.core.source import located

__all__ = ["lpmn", "lpmn_values"]


def lpmn(m: int, n: int, z: Array) -> tuple[Array, Array]:
    """Associated Legendre functions of all orders and degrees up to `m` and `n`, and their derivatives.

    Args:
        m: the highest order.
        n: the highest degree; it must be `m`.
        z: where, a vector of floats from -1 to 1.

    Returns:
        Two arrays of the shape `(m + 1, n + 1, len(z))`: values and derivatives by order and degree. They are 0 where
        the order is greater than the degree.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.special.legendre import lpmn
    >>> values, derivatives = lpmn(2, 2, jnp.array([0.5]))
    >>> jnp.round(values[0, :, 0], 3), jnp.round(derivatives[0, :, 0], 3)
    (Array([ 1.   ,  0.5  , -0.125], dtype=float32), Array([0. , 1. , 1.5], dtype=float32))
    """
    x = _checked("lpmn", m, n, z)
    polynomials, factors = _polynomials(m, x), 1 / _normalizations(m)
    order = np.arange(m + 1)[:, None, None]
    square = 1 - x * x
    signs = _signs(m).astype(x.dtype)
    scaled = polynomials[: m + 1] * factors.astype(x.dtype)
    values: Any = signs * _half_power(square, m)[:, None] * scaled
    # The (m + 1)-th derivative of the polynomial of degree l, whose factor is that of order m + 1.
    following = polynomials[1:] * (1 / _normalizations(m + 1)[1:, : m + 1]).astype(x.dtype)
    inner = jnp.stack([jnp.zeros_like(x), *(x * square ** ((k - 2) / 2) for k in range(1, m + 1))])
    slopes: Any = _half_power(square, m)[:, None] * following - order.astype(x.dtype) * jnp.where(
        scaled == 0, 0, inner[:, None] * scaled
    )
    slopes = signs * slopes
    return values, slopes


def lpmn_values(m: int, n: int, z: Array, is_normalized: bool) -> Array:
    """Associated Legendre functions of all orders and degrees up to `m` and `n`.

    Args:
        m: the highest order.
        n: the highest degree; it must be `m`.
        z: where, a vector of floats from -1 to 1.
        is_normalized: whether they are those of spherical harmonics, times √((2l + 1)/4π (l − m)!/(l + m)!).

    Returns:
        An array of the shape `(m + 1, n + 1, len(z))`, 0 where the order is greater than the degree.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.special.legendre import lpmn_values
    >>> jnp.round(lpmn_values(1, 1, jnp.array([0.6]), False)[:, :, 0], 3)
    Array([[ 1. ,  0.6],
           [ 0. , -0.8]], dtype=float32)
    """
    x = _checked("lpmn_values", m, n, z)
    values: Any = _signs(m).astype(x.dtype) * _half_power(1 - x * x, m)[:, None] * _polynomials(m, x)[: m + 1]
    if not is_normalized:
        values = values * (1 / _normalizations(m)).astype(x.dtype)
    return values


def _checked(name: str, m: Any, n: Any, z: Any) -> Any:
    x = jnp.asarray(z)
    if x.dtype not in (np.float32, np.float64):
        raise located(TypeError, f"{name}: z must have dtype float32 or float64, got {x.aval.str_short()}")
    if x.ndim != 1:
        raise located(ValueError, f"{name}: z must be a vector (a 1D array), got {x.aval.str_short()}")
    if m != n:
        raise located(
            NotImplementedError, f"{name}: the highest order m and degree n must be equal, got {m} and {n}"
        )
    if int(m) != m or m < 0:
        raise located(ValueError, f"{name}: m and n must be integers, not negative, got {m}")
    return x


def _normalizations(highest: int) -> np.ndarray:
    """√((2l + 1)/4π (l − m)!/(l + m)!) by m and l, and 1 where m > l."""
    found = np.ones((highest + 1, highest + 1, 1))
    for l in range(highest + 1):  # noqa: E741 - the name of degrees
        for m in range(l + 1):
            logarithm = math.lgamma(l - m + 1) - math.lgamma(l + m + 1)
            found[m, l] = math.sqrt((2 * l + 1) / (4 * math.pi)) * math.exp(logarithm / 2)
    return found


def _signs(m: int) -> np.ndarray:
    """(−1)ᵏ by order k and degree, and 1 where the order is greater."""
    order = np.arange(m + 1)[:, None, None]
    return np.where((order % 2 == 1) & (order <= np.arange(m + 1)[:, None]), -1.0, 1.0)


def _half_power(square: Any, m: int) -> Any:
    """(1 − x²)^(k/2) for k from 0 to m."""
    return jnp.stack([square ** (k / 2) for k in range(m + 1)])


def _polynomials(highest: int, x: Any) -> Any:
    """N Q(l, m) for m from 0 to one more than the highest degree, by m and l."""
    m = np.arange(highest + 2, dtype=np.float64)[:, None]
    diagonal = np.cumprod(np.concatenate([[math.sqrt(1 / (4 * math.pi))], np.sqrt(1 + 0.5 / m[1:, 0])]))
    before: Any = jnp.zeros((highest + 2, x.size), x.dtype)
    current = before
    rows = []
    for l in range(highest + 1):  # noqa: E741
        below = m < l
        # P̄ₗ = √((4l² − 1)/(l² − m²)) (x P̄ₗ₋₁ − √(((l − 1)² − m²)/(4(l − 1)² − 1)) P̄ₗ₋₂)
        scale = np.where(below, np.sqrt(np.maximum(4 * l * l - 1, 0) / np.where(below, l * l - m * m, 1)), 0)
        ratio = np.maximum((l - 1) ** 2 - m * m, 0) / max(4 * (l - 1) ** 2 - 1, 1)
        first = np.where(m == l, diagonal[l], 0)
        following = scale.astype(x.dtype) * (x * current - np.sqrt(ratio).astype(x.dtype) * before)
        before, current = current, following + first.astype(x.dtype)
        rows.append(current)
    return jnp.stack(rows, 1)
