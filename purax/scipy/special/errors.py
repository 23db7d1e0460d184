"""The error function, the normal distribution, and related functions."""

from __future__ import annotations

import operator

from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.numpy._promotion import (
    align_operands,
    convert,
    dtype_of,
    inexact,
    promote_strongly,
    strong_inexact,
)
from purax.primitives.elementwise.elementwise import mul
from purax.primitives.special.errors import (
    dawson_p,
    erfcx_p,
    faddeeva_p,
    fresnel_c_p,
    fresnel_s_p,
    log_ndtr_p,
    ndtr_p,
    normal_quantile_p,
    owens_t_p,
)
from purax.primitives.special.special import erf_inv_p, erf_p, erfc_p
from purax.typing import ArrayLike


def erf(x: ArrayLike) -> Array:
    """The error function 2/√π ∫₀ˣ e^(−t²) dt.

    >>> from purax.scipy.special import erf
    >>> round(float(erf(1.0)), 4)
    0.8427
    """
    return erf_p.bind(inexact("erf", x))


def erfc(x: ArrayLike) -> Array:
    """1 − erf(x), accurate for large x.

    >>> from purax.scipy.special import erfc
    >>> round(float(erfc(1.0)), 4)
    0.1573
    """
    return erfc_p.bind(inexact("erfc", x))


def erfinv(x: ArrayLike) -> Array:
    """The inverse of `erf`.

    >>> from purax.scipy.special import erfinv
    >>> round(float(erfinv(0.8427)), 3)
    1.0
    """
    return erf_inv_p.bind(inexact("erfinv", x))


def erfcx(x: ArrayLike) -> Array:
    """The scaled function e^(x²) erfc(x), which does not underflow for large x.

    >>> from purax.scipy.special import erfcx
    >>> round(float(erfcx(100.0)), 6)
    0.005642
    """
    x = strong_inexact("erfcx", x)
    if dtypes.is_complex(dtype_of(x)):
        return faddeeva_p.bind(mul(x, 1j))
    return erfcx_p.bind(x)


def wofz(z: ArrayLike) -> Array:
    """Faddeeva's function e^(−z²) erfc(−iz).

    Args:
        z: real or complex numbers.

    Returns:
        Complex numbers.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.special import wofz
    >>> jnp.round(wofz(1.0), 4)
    Array(0.3679+0.6072j, dtype=complex64)
    """
    z = strong_inexact("wofz", z)
    dtype = dtype_of(z)
    return faddeeva_p.bind(z if dtypes.is_complex(dtype) else convert(z, dtypes.to_complex_dtype(dtype)))


def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral e^(−x²) ∫₀ˣ e^(t²) dt.

    >>> from purax.scipy.special import dawsn
    >>> round(float(dawsn(1.0)), 4)
    0.5381
    """
    return dawson_p.bind(strong_inexact("dawsn", x))


def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Fresnel's integrals ∫₀ˣ sin(πt²/2) dt and ∫₀ˣ cos(πt²/2) dt.

    Args:
        x: real numbers.

    Returns:
        A pair of arrays of the shape of `x`.

    >>> from purax.scipy.special import fresnel
    >>> [round(float(y), 4) for y in fresnel(1.0)]
    [0.4383, 0.7799]
    """
    x = strong_inexact("fresnel", x)
    return fresnel_s_p.bind(x), fresnel_c_p.bind(x)


def ndtr(x: ArrayLike) -> Array:
    """The probability that a standard normal number is less than x.

    >>> from purax.scipy.special import ndtr
    >>> float(ndtr(0.0))
    0.5
    """
    return ndtr_p.bind(strong_inexact("ndtr", x))


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """log(ndtr(x)), accurate in both tails.

    Args:
        x: real numbers.
        series_order: accepted and not needed; the result is accurate to the last digits everywhere.

    >>> from purax.scipy.special import log_ndtr
    >>> round(float(log_ndtr(-50.0)), 2)
    -1254.83
    """
    order = operator.index(series_order)
    if not 0 <= order <= 30:
        raise located(ValueError, f"log_ndtr: series_order must be from 0 to 30, got {order}")
    return log_ndtr_p.bind(strong_inexact("log_ndtr", x))


def ndtri(p: ArrayLike) -> Array:
    """The number that a standard normal number is less than with probability p: the inverse of `ndtr`.

    >>> from purax.scipy.special import ndtri
    >>> round(float(ndtri(0.975)), 4)
    1.96
    """
    return normal_quantile_p.bind(strong_inexact("ndtri", p))


def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's function 1/2π ∫₀ᵃ e^(−h² (1 + x²)/2)/(1 + x²) dx.

    >>> from purax.scipy.special import owens_t
    >>> round(float(owens_t(1.0, 2.0)), 4)
    0.0785
    """
    return owens_t_p.bind(*promote_strongly("owens_t", h, a, fit=align_operands))
