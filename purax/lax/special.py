"""Special functions of real numbers: error functions, the gamma family, zeta, beta and Bessel functions."""

from __future__ import annotations

from purax.core.array import Array
from purax.lax.families import binary, unary
from purax.lax.operands import pair, together
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

# fmt: off
erf = unary("erf", erf_p, "The error function (2/√π) ∫₀ˣ exp(−t²) dt.",
    "lax.erf(jnp.array([0.0, 1.0]))", "Array([0.       , 0.8427008], dtype=float32)")
erfc = unary("erfc", erfc_p, "1 − erf x, accurate for large x.",
    "lax.erfc(jnp.array([0.0, 5.0]))", "Array([1.0000000e+00, 1.5374598e-12], dtype=float32)")
erf_inv = unary("erf_inv", erf_inv_p, "The number whose error function is x.",
    "lax.erf_inv(jnp.array([0.0, 0.5]))", "Array([0.        , 0.47693628], dtype=float32)")
lgamma = unary("lgamma", lgamma_p, "log |Γ(x)|.",
    "lax.lgamma(jnp.array([1.0, 5.0]))", "Array([0.       , 3.1780539], dtype=float32)")
digamma = unary("digamma", digamma_p, "The derivative of log Γ(x).",
    "lax.digamma(jnp.array([1.0, 5.0]))", "Array([-0.5772157,  1.5061177], dtype=float32)")
polygamma = binary(
    "polygamma", polygamma_p, "The m-th derivative of the digamma function; m is an integer of the dtype of x.",
    "lax.polygamma(1.0, jnp.array([1.0, 2.0]))", "Array([1.644934  , 0.64493406], dtype=float32)", "m x")
zeta = binary("zeta", zeta_p, "Hurwitz' zeta function Σ (k + q)⁻ˣ over k = 0, 1, 2, …",
    "lax.zeta(2.0, jnp.array([1.0, 2.0]))", "Array([1.644934  , 0.64493406], dtype=float32)", "x q")
igamma = binary("igamma", igamma_p, "The regularized lower incomplete gamma function, ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt / Γ(a).",
    "lax.igamma(1.0, jnp.array([0.0, 1.0]))", "Array([0.        , 0.63212055], dtype=float32)", "a x")
igammac = binary("igammac", igammac_p, "1 − igamma(a, x), accurate for large x.",
    "lax.igammac(1.0, jnp.array([0.0, 1.0]))", "Array([1.        , 0.36787945], dtype=float32)", "a x")
random_gamma_grad = binary(
    "random_gamma_grad", random_gamma_grad_p, "The derivative of a sample x of a gamma distribution with "
    "respect to its shape a, at a fixed quantile.",
    "lax.random_gamma_grad(1.0, jnp.array([1.0]))", "Array([1.173563], dtype=float32)", "a x")
bessel_i0e = unary("bessel_i0e", bessel_i0e_p, "The modified Bessel function of order 0, times e^−|x|.",
    "lax.bessel_i0e(jnp.array([0.0, 1.0]))", "Array([1.       , 0.4657596], dtype=float32)")
bessel_i1e = unary("bessel_i1e", bessel_i1e_p, "The modified Bessel function of order 1, times e^−|x|.",
    "lax.bessel_i1e(jnp.array([0.0, 1.0]))", "Array([0.        , 0.20791042], dtype=float32)")
# fmt: on


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of igamma(a, x) with respect to a.

    >>> from purax import lax, numpy as jnp
    >>> lax.igamma_grad_a(1.0, jnp.array([1.0]))
    Array([-0.4317297], dtype=float32)
    """
    return igamma_grad_a_same(*pair("igamma_grad_a", a, x))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function, the share of ∫₀¹ tᵃ⁻¹ (1 − t)ᵇ⁻¹ dt that lies below x.

    >>> from purax import lax, numpy as jnp
    >>> lax.betainc(2.0, 2.0, jnp.array([0.5, 1.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    return regularized_incomplete_beta_p.bind(*together("betainc", a, b, x))
