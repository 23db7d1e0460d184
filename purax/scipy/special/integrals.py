"""Exponential and trigonometric integrals, the dilogarithm, hypergeometric functions."""

from __future__ import annotations

from purax.core.array import Array
from purax.numpy._promotion import align_operands, promote_strongly, strong_inexact
from purax.primitives.special.hypergeometric import hyp1f1_p, hyp2f1_p
from purax.primitives.special.integrals import (
    cosine_integral_p,
    exp1_p,
    expi_p,
    expn_p,
    sine_integral_p,
    spence_p,
)
from purax.typing import ArrayLike


def expi(x: ArrayLike) -> Array:
    """The exponential integral Ei(x) = ∫ eᵗ/t dt from −∞ to x.

    >>> from purax.scipy.special import expi
    >>> round(float(expi(1.0)), 4)
    1.8951
    """
    return expi_p.bind(strong_inexact("expi", x))


def exp1(x: ArrayLike) -> Array:
    """The exponential integral E₁(x) = ∫ e⁻ᵗ/t dt from x to ∞; NaN for x < 0.

    >>> from purax.scipy.special import exp1
    >>> round(float(exp1(1.0)), 4)
    0.2194
    """
    return exp1_p.bind(strong_inexact("exp1", x))


def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """The exponential integral Eₙ(x) = ∫ e^(−xt)/tⁿ dt from 1 to ∞.

    Args:
        n: integers ≥ 0; for others the result is NaN.
        x: numbers ≥ 0.

    >>> from purax.scipy.special import expn
    >>> round(float(expn(2, 1.0)), 4)
    0.1485
    """
    return expn_p.bind(*promote_strongly("expn", n, x, fit=align_operands))


def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine and the cosine integral, Si(x) = ∫₀ˣ sin(t)/t dt and Ci(x) = γ + log x + ∫₀ˣ (cos(t) − 1)/t dt.

    Args:
        x: real numbers; the cosine integral is that of |x|.

    Returns:
        A pair of arrays of the shape of `x`.

    >>> from purax.scipy.special import sici
    >>> [round(float(y), 4) for y in sici(1.0)]
    [0.9461, 0.3374]
    """
    x = strong_inexact("sici", x)
    return sine_integral_p.bind(x), cosine_integral_p.bind(x)


def spence(x: ArrayLike) -> Array:
    """Spence's function ∫ log(t)/(1 − t) dt from 1 to x, the dilogarithm of 1 − x; NaN for x < 0.

    >>> from purax.scipy.special import spence
    >>> round(float(spence(0.0)), 4)
    1.6449
    """
    return spence_p.bind(strong_inexact("spence", x))


def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's hypergeometric function Σ (a)ₖ xᵏ/((b)ₖ k!).

    Args:
        a, b, x: real numbers of any sign. It can be differentiated with respect to each.

    >>> from purax.scipy.special import hyp1f1
    >>> round(float(hyp1f1(1.0, 2.0, 3.0)), 4)
    6.3618
    """
    return hyp1f1_p.bind(*promote_strongly("hyp1f1", a, b, x, fit=align_operands))


def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss's hypergeometric function Σ (a)ₖ (b)ₖ xᵏ/((c)ₖ k!).

    Args:
        a, b, c: real numbers of any sign.
        x: real numbers; beyond 1 the function is infinite unless the sum is finite. It can be differentiated with
            respect to each argument for x < 1.

    >>> from purax.scipy.special import hyp2f1
    >>> round(float(hyp2f1(1.0, 2.0, 3.0, -2.0)), 4)
    0.4507
    """
    return hyp2f1_p.bind(*promote_strongly("hyp2f1", a, b, c, x, fit=align_operands))
