"""Special functions of real numbers: error functions, the gamma family, zeta, beta and Bessel functions."""

from __future__ import annotations

from purax.core.array import Array
from purax.lax.operands import operand, pair, together
from purax.primitives.special.special import (
    bessel_i0e_p,
    bessel_i1e_p,
    digamma_p,
    erf_inv_p,
    erf_p,
    erfc_p,
    igamma_p,
    igammac_p,
    lgamma_p,
    polygamma_p,
    random_gamma_grad_p,
    regularized_incomplete_beta_p,
    zeta_p,
)
from purax.primitives.special.special import igamma_grad_a as igamma_grad_a_same
from purax.typing import ArrayLike
from purax.xla.array import DeviceArray


def erf(x: ArrayLike) -> Array:
    """The error function (2/√π) ∫₀ˣ exp(−t²) dt.

    >>> from purax import lax, numpy as jnp
    >>> lax.erf(jnp.array([0.0, 1.0]))
    Array([0.       , 0.8427008], dtype=float32)
    """
    return erf_p.bind(x if type(x) is DeviceArray else operand("erf", x))


def erfc(x: ArrayLike) -> Array:
    """1 − erf x, accurate for large x.

    >>> from purax import lax, numpy as jnp
    >>> lax.erfc(jnp.array([0.0, 5.0]))
    Array([1.0000000e+00, 1.5374598e-12], dtype=float32)
    """
    return erfc_p.bind(x if type(x) is DeviceArray else operand("erfc", x))


def erf_inv(x: ArrayLike) -> Array:
    """The number whose error function is x.

    >>> from purax import lax, numpy as jnp
    >>> lax.erf_inv(jnp.array([0.0, 0.5]))
    Array([0.        , 0.47693628], dtype=float32)
    """
    return erf_inv_p.bind(x if type(x) is DeviceArray else operand("erf_inv", x))


def lgamma(x: ArrayLike) -> Array:
    """log |Γ(x)|.

    >>> from purax import lax, numpy as jnp
    >>> lax.lgamma(jnp.array([1.0, 5.0]))
    Array([0.       , 3.1780539], dtype=float32)
    """
    return lgamma_p.bind(x if type(x) is DeviceArray else operand("lgamma", x))


def digamma(x: ArrayLike) -> Array:
    """The derivative of log Γ(x).

    >>> from purax import lax, numpy as jnp
    >>> lax.digamma(jnp.array([1.0, 5.0]))
    Array([-0.5772157,  1.5061177], dtype=float32)
    """
    return digamma_p.bind(x if type(x) is DeviceArray else operand("digamma", x))


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The m-th derivative of the digamma function; m is an integer of the dtype of x.

    >>> from purax import lax, numpy as jnp
    >>> lax.polygamma(1.0, jnp.array([1.0, 2.0]))
    Array([1.644934  , 0.64493406], dtype=float32)
    """
    return polygamma_p.bind(*pair("polygamma", m, x))


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Hurwitz' zeta function Σ (k + q)⁻ˣ over k = 0, 1, 2, …

    >>> from purax import lax, numpy as jnp
    >>> lax.zeta(2.0, jnp.array([1.0, 2.0]))
    Array([1.644934  , 0.64493406], dtype=float32)
    """
    return zeta_p.bind(*pair("zeta", x, q))


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function, ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt / Γ(a).

    >>> from purax import lax, numpy as jnp
    >>> lax.igamma(1.0, jnp.array([0.0, 1.0]))
    Array([0.        , 0.63212055], dtype=float32)
    """
    return igamma_p.bind(*pair("igamma", a, x))


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """1 − igamma(a, x), accurate for large x.

    >>> from purax import lax, numpy as jnp
    >>> lax.igammac(1.0, jnp.array([0.0, 1.0]))
    Array([1.        , 0.36787945], dtype=float32)
    """
    return igammac_p.bind(*pair("igammac", a, x))


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of igamma(a, x) with respect to a.

    >>> from purax import lax, numpy as jnp
    >>> lax.igamma_grad_a(1.0, jnp.array([1.0]))
    Array([-0.4317297], dtype=float32)
    """
    return igamma_grad_a_same(*pair("igamma_grad_a", a, x))


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of a sample x of a gamma distribution with respect to its shape a, at a fixed quantile.

    >>> from purax import lax, numpy as jnp
    >>> lax.random_gamma_grad(1.0, jnp.array([1.0]))
    Array([1.173563], dtype=float32)
    """
    return random_gamma_grad_p.bind(*pair("random_gamma_grad", a, x))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function, the share of ∫₀¹ tᵃ⁻¹ (1 − t)ᵇ⁻¹ dt that lies below x.

    >>> from purax import lax, numpy as jnp
    >>> lax.betainc(2.0, 2.0, jnp.array([0.5, 1.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    return regularized_incomplete_beta_p.bind(*together("betainc", a, b, x))


def bessel_i0e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0, times e^−|x|.

    >>> from purax import lax, numpy as jnp
    >>> lax.bessel_i0e(jnp.array([0.0, 1.0]))
    Array([1.       , 0.4657596], dtype=float32)
    """
    return bessel_i0e_p.bind(x if type(x) is DeviceArray else operand("bessel_i0e", x))


def bessel_i1e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 1, times e^−|x|.

    >>> from purax import lax, numpy as jnp
    >>> lax.bessel_i1e(jnp.array([0.0, 1.0]))
    Array([0.        , 0.20791042], dtype=float32)
    """
    return bessel_i1e_p.bind(x if type(x) is DeviceArray else operand("bessel_i1e", x))
