"""The gamma function and related functions: factorials, binomials, the beta function, incomplete integrals, zeta."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.source import located
from purax.errors import shown
from purax.numpy._promotion import (
    align_operands,
    dtype_of,
    fused,
    inexact,
    promote_inexact,
    promote_strongly,
    strong,
    strong_inexact,
)
from purax.primitives.elementwise.transcendental import exp
from purax.primitives.special.formulas import bernoulli_numbers
from purax.primitives.special.function import scipy_function
from purax.primitives.special.gamma import (
    beta_p,
    binomial_p,
    complex_lgamma_p,
    gamma_p,
    log_beta_p,
    pochhammer_p,
)
from purax.primitives.special.special import (
    digamma_p,
    igamma_p,
    igammac_p,
    lgamma_p,
    polygamma_p,
    regularized_incomplete_beta_p,
    zeta_p,
)
from purax.typing import ArrayLike
from purax.xla import capacity, client


def gammaln(x: ArrayLike) -> Array:
    """log |Γ(x)| for real x.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.special import gammaln
    >>> jnp.round(gammaln(jnp.array([1.0, 0.5, 100.0])), 3)
    Array([  0.   ,   0.572, 359.134], dtype=float32)
    """
    return lgamma_p.bind(inexact("gammaln", x))


def loggamma(x: ArrayLike) -> Array:
    """The principal branch of log Γ(x): NaN for x < 0 unless x is complex.

    >>> from purax.scipy.special import loggamma
    >>> loggamma(-1.5)
    Array(nan, dtype=float32, weak_type=True)
    """
    x = inexact("loggamma", x)
    if dtypes.is_complex(dtype_of(x)):
        return complex_lgamma_p.bind(x)
    return _real_loggamma(x)


@fused()
def _real_loggamma(x):
    return jnp.where(x < 0, jnp.nan, lgamma_p.bind(jnp.where(x < 0, 1, x)))


def gamma(x: ArrayLike) -> Array:
    """Γ(x), for real or complex x.

    Args:
        x: numbers. Γ(±0) is ±∞; at the other poles it is NaN.

    Returns:
        An array of the shape of `x`.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.special import gamma
    >>> gamma(jnp.array([1.0, 5.0, -1.0]))
    Array([ 1., 24., nan], dtype=float32)
    """
    x = strong_inexact("gamma", x)
    return _complex_gamma(x) if dtypes.is_complex(dtype_of(x)) else gamma_p.bind(x)


def _complex_gamma_on_host(z: np.ndarray) -> np.ndarray:
    return scipy_function("gamma")(z.astype(np.complex128)).astype(z.dtype)


@fused(_complex_gamma_on_host)
def _complex_gamma(z):
    return exp(complex_lgamma_p.bind(z))


def gammasgn(x: ArrayLike) -> Array:
    """The sign of Γ(x): NaN at negative integers, that of x at 0.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.special import gammasgn
    >>> gammasgn(jnp.array([2.5, -0.5, -1.0]))
    Array([ 1., -1., nan], dtype=float32)
    """
    return _gammasgn(strong(inexact("gammasgn", x)))


def _gammasgn_on_host(x: np.ndarray) -> np.ndarray:
    return np.asarray(scipy_function("gammasgn")(x.astype(np.float64))).astype(x.dtype)


@fused(_gammasgn_on_host)
def _gammasgn(x):
    down = jnp.floor(x)
    sign = jnp.where((x < 0) & (jnp.mod(down, 2) == 1), -1, 1).astype(dtype_of(x))
    sign = jnp.where(x == 0, jnp.copysign(1, x), sign)
    return jnp.where(jnp.isnan(x) | ((x < 0) & (x == down)), jnp.nan, sign)


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """n! = Γ(n + 1), 0 for n < 0.

    Args:
        n: numbers, whole or not.
        exact: not supported; arrays have no integers of unlimited size.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.special import factorial
    >>> factorial(jnp.arange(5))
    Array([ 1.,  1.,  2.,  6., 24.], dtype=float32)
    """
    if exact:
        raise located(
            NotImplementedError, "factorial: exact=True needs unlimited integers; use math.factorial"
        )
    return _factorial(inexact("factorial", n))


@fused()
def _factorial(n):
    return jnp.where(n < 0, 0, gamma_p.bind(jnp.where(n < 0, 1, n + 1)))


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """How many ways there are to choose k of N things; 0 where k > N, k < 0 or N < 0.

    Args:
        N: how many things there are.
        k: how many are taken.
        repetition: whether a thing can be taken repeatedly.

    >>> from purax.scipy.special import comb
    >>> float(comb(5, 2)), float(comb(5, 2, repetition=True))
    (10.0, 15.0)
    """
    things, taken = promote_inexact("comb", N, k)
    return binomial_p.bind(things + taken - 1 if repetition else things, taken)


def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Pochhammer's symbol Γ(z + m)/Γ(z).

    >>> from purax.scipy.special import poch
    >>> float(poch(3.0, 2.0))
    12.0
    """
    return pochhammer_p.bind(*promote_strongly("poch", z, m, fit=align_operands))


def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """The beta function Γ(a) Γ(b) / Γ(a + b).

    >>> from purax.scipy.special import beta
    >>> round(float(beta(2.0, 3.0)), 5)
    0.08333
    """
    return beta_p.bind(*promote_strongly("beta", a, b, fit=align_operands))


def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """log |B(a, b)|, also where a or b is large.

    >>> from purax.scipy.special import betaln
    >>> round(float(betaln(1e6, 1.0)), 4)
    -13.8155
    """
    return log_beta_p.bind(*promote_inexact("betaln", a, b, fit=align_operands))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function 1/B(a, b) ∫₀ˣ tᵃ⁻¹ (1 − t)ᵇ⁻¹ dt.

    >>> from purax.scipy.special import betainc
    >>> float(betainc(1.0, 2.0, 0.5))
    0.75
    """
    return regularized_incomplete_beta_p.bind(*promote_inexact("betainc", a, b, x, fit=align_operands))


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function 1/Γ(a) ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt.

    >>> from purax.scipy.special import gammainc
    >>> round(float(gammainc(1.0, 1.0)), 4)
    0.6321
    """
    return igamma_p.bind(*promote_inexact("gammainc", a, x, fit=align_operands))


def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function 1 − gammainc(a, x).

    >>> from purax.scipy.special import gammaincc
    >>> round(float(gammaincc(1.0, 1.0)), 4)
    0.3679
    """
    return igammac_p.bind(*promote_inexact("gammaincc", a, x, fit=align_operands))


def multigammaln(a: ArrayLike, d: Any) -> Array:
    """The logarithm of the multivariate gamma function π^(d(d−1)/4) Π Γ(a − i/2) over i < d.

    Args:
        a: numbers greater than (d − 1)/2.
        d: the dimension, an integer that is known when the program is traced.

    >>> from purax.scipy.special import multigammaln
    >>> round(float(multigammaln(5.0, 2)), 4)
    6.2042
    """
    try:
        dimension = operator.index(d if not hasattr(d, "item") else d.item())
    except Exception:
        raise located(
            TypeError, f"multigammaln: the dimension d must be a concrete integer, got {shown(d)}"
        ) from None
    a = jnp.asarray(inexact("multigammaln", a))
    halves = jnp.asarray(np.arange(dimension) / 2, a.dtype)
    constant = dimension * (dimension - 1) / 4 * math.log(math.pi)
    places = jnp.expand_dims(a, -1) - jnp.reshape(halves, (1,) * a.ndim + (dimension,))
    return jnp.sum(lgamma_p.bind(places), axis=-1) + constant


def digamma(x: ArrayLike) -> Array:
    """ψ(x) = Γ'(x)/Γ(x).

    >>> from purax.scipy.special import digamma
    >>> round(float(digamma(1.0)), 4)
    -0.5772
    """
    return digamma_p.bind(inexact("digamma", x))


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of order n of `digamma`.

    >>> from purax.scipy.special import polygamma
    >>> round(float(polygamma(1, 1.0)), 4)
    1.6449
    """
    return polygamma_p.bind(*promote_inexact("polygamma", n, x, fit=align_operands))


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Hurwitz's zeta function Σ (q + k)⁻ˣ over k ≥ 0, or Riemann's if there is no q.

    Args:
        x: exponents greater than 1; any number but 1 for Riemann's function.
        q: where the sum begins.

    >>> from purax.scipy.special import zeta
    >>> round(float(zeta(2.0, 1.0)), 4), round(float(zeta(-1.0)), 4)
    (1.6449, -0.0833)
    """
    if q is not None:
        return zeta_p.bind(*promote_inexact("zeta", x, q, fit=align_operands))
    return _riemann_zeta(inexact("zeta", x))


def _riemann_zeta_on_host(s: np.ndarray) -> np.ndarray:
    return np.asarray(scipy_function("zeta")(s.astype(np.float64))).astype(s.dtype)


@fused(_riemann_zeta_on_host)
def _riemann_zeta(s):
    """For s < 1 by way of η(s) = (1 − 2¹⁻ˢ) ζ(s) and reflection: ζ(s) = 2 (2π)ˢ⁻¹ sin(πs/2) Γ(1 − s) ζ(1 − s)."""
    dtype = dtype_of(s)
    plain = zeta_p.bind(jnp.where(s > 1, s, 2).astype(dtype), jnp.ones((), dtype))
    is_low = s < 0
    low = jnp.where(is_low, s, -2).astype(dtype)
    half = jnp.mod(low, 4) / 2  # sin(πs/2) has period 4
    reflected = zeta_p.bind(1 - low, jnp.ones((), dtype)) * gamma_p.bind(1 - low) * jnp.sin(jnp.pi * half)
    reflected = jnp.where(jnp.mod(low, 2) == 0, 0, 2 * (2 * jnp.pi) ** (low - 1) * reflected)
    between = jnp.where((s >= 0) & (s < 1), s, 0.5).astype(dtype)
    result = jnp.where(s > 1, plain, jnp.where(is_low, reflected, _zeta_in_strip(between)))
    return jnp.where(s == 1, jnp.inf, jnp.where(jnp.isnan(s), s, result))


def _zeta_in_strip(s):
    """ζ(s) for 0 ≤ s < 1 by the formula of Euler and Maclaurin."""
    count = 10
    total = sum((float(k) ** -s for k in range(2, count)), jnp.ones_like(s))
    last = float(count) ** -s
    total = total + last * (count / (s - 1) + 0.5)
    factor = last * s / count
    numbers = bernoulli_numbers(17)
    for k in range(1, 9):
        total = total + factor * float(numbers[2 * k] / math.factorial(2 * k))
        factor = factor * (s + (2 * k - 1)) * (s + 2 * k) / (count * count)
    return total


_TOO_LARGE = 260  # Bernoulli's numbers from this one on are larger than float64 knows, or zero


def bernoulli(n: int) -> Array:
    """Bernoulli's numbers B₀, …, Bₙ with B₁ = −½.

    Args:
        n: the index of the last.

    >>> from purax.scipy.special import bernoulli
    >>> bernoulli(2)
    Array([ 1.        , -0.5       ,  0.16666667], dtype=float32)
    """
    last = operator.index(n)
    if last < 0:
        raise located(ValueError, f"bernoulli: n must not be negative, got {last}")
    capacity.refuse_what_does_not_fit(
        "bernoulli", [ShapedArray((last + 1,), dtypes.default_float())], (), (client.default_device(),)
    )
    values = np.zeros(last + 1, dtypes.default_float())
    finite = bernoulli_numbers(min(last + 1, _TOO_LARGE))
    with np.errstate(over="ignore"):
        values[: len(finite)] = [float(number) for number in finite]
    values[_TOO_LARGE::4], values[_TOO_LARGE + 2 :: 4] = -math.inf, math.inf
    return jnp.asarray(values)
