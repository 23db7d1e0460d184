"""Exponential, sine and cosine integrals, the dilogarithm, and (eˣ − 1)/x.

Near 0 they are power series. Farther out: the exponential integrals are continued fractions and asymptotic series, the
trigonometric ones have smooth auxiliary functions, of which Chebyshev coefficients are computed when first needed.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from purax import errors
from purax.primitives.elementwise.formula import chained, polynomial, repeat_while, where
from purax.primitives.special.formulas import bernoulli_numbers, digamma_of_positive, gamma_fraction
from purax.primitives.special.function import SpecialFunction, scipy_function
from purax.primitives.special.special import chebyshev_sum

INFINITY = math.inf
EULER = 0.57721566490153286061


# --- exponential integrals


def _exponential_series(precision: float, x):
    """Σ xᵏ / (k k!) over k ≥ 1, for x > 0."""

    def goes_on(count, term, total, x):
        return (term > total * precision) & (count < 500)

    def step(count, term, total, x):
        count = count + 1
        term = term * x / count
        return count, term, total + term / count, x

    return repeat_while(goes_on, step, (x * 0 + 1, x, x, x))[2]


def _ei_of_positive(precision: float, x):
    is_far = x >= 40
    near = where(is_far, 1, x)
    far = where(is_far, x, 50)
    inverse = 1 / far
    series = far * 0 + 1
    for k in range(37, 0, -1):  # 1 + 1!/x + 2!/x² + …, up to its smallest term
        series = series * inverse * k + 1
    half = (far * 0.5).exp()
    return where(
        is_far, half * inverse * series * half, _exponential_series(precision, near) + near.log() + EULER
    )


def _e1(precision: float, x):
    is_near = x < 1.5
    near, far = where(is_near, x, 1), where(is_near, 2, x)
    coefficients = [-((-1) ** k) / (k * math.factorial(k)) for k in range(22, 0, -1)] + [0]
    series = polynomial(near, coefficients) - near.log() - EULER
    return where(is_near, series, (-far).exp() * gamma_fraction(precision, far * 0, far))


class ExponentialIntegral(SpecialFunction):
    """Ei(x): Cauchy's principal value of ∫ eᵗ/t dt from −∞ to x."""

    name = "expi"
    scipy_name = "expi"

    def inside(self, x):
        return (abs(x) < INFINITY) & x.differs(0)

    def formula(self, precision, x):
        def value(x):
            is_positive = x > 0
            positive = _ei_of_positive(precision, where(is_positive, x, 1))
            return where(is_positive, positive, -_e1(precision, where(is_positive, 1, -x)))

        return chained(x, value, lambda x: x.exp() / x)

    def edge(self, x):
        at_infinity = where(x > 0, x, -0.0)
        return where(x.equals(0), x.number(-INFINITY), where(x.is_nan(), x, at_infinity))

    def edge_derivative(self, x):
        at_zero = where(x.has_sign(), x.number(-INFINITY), INFINITY)
        return where(x.equals(0), at_zero, where(x.is_nan(), x, where(x > 0, x, 0)))


class ExponentialIntegralOne(SpecialFunction):
    """E₁(x) = ∫ e⁻ᵗ/t dt from x to ∞, for x ≥ 0."""

    name = "exp1"
    scipy_name = "exp1"

    def inside(self, x):
        return (x > 0) & (x < INFINITY)

    def formula(self, precision, x):
        return chained(x, functools.partial(_e1, precision), lambda x: -(-x).exp() / x)

    def edge(self, x):
        return where(x.equals(0), x.number(INFINITY), where(x.equals(INFINITY), x.number(0), math.nan))

    def edge_derivative(self, x):
        return -self.edge(x)


LOWEST_ORDER = -3  # of Eₙ, which derivatives of E₀ and E₁ lead to


def _en(precision: float, n, x):
    """Eₙ(x) for whole n ≥ LOWEST_ORDER and x > 0, as a formula of x and its derivatives."""

    def value(x):
        decay = (-x).exp()
        low = decay / x  # E₀, and then by Eₙ = (e⁻ˣ − n Eₙ₊₁)/x
        result = where(n < 1, low, 0)
        for order in range(-1, LOWEST_ORDER - 1, -1):
            low = (decay - low * order) / x
            result = where(n.equals(order), low, result)
        is_high = n > 0
        order = where(is_high, n, 1)
        is_near = x <= 1
        near, far = where(is_near, x, 1), where(is_near, 2, x)
        fraction = (-far).exp() * gamma_fraction(precision, 1 - order, far)
        # (−x)ⁿ⁻¹/(n − 1)! (ψ(n) − log x) − Σ (−x)ᵐ/((m − n + 1) m!) over m ≠ n − 1
        logarithm = near.log()
        power = ((order - 1) * logarithm - order.apply("chlo.lgamma")).exp()
        is_even = (order * 0.5).floor().equals(order * 0.5)
        total = power * (digamma_of_positive(order) - logarithm) * where(is_even, order.number(-1), 1)
        term = near * 0 + 1
        for m in range(22):
            divisor = m + 1 - order
            skipped = divisor.equals(0)
            total = total - where(skipped, 0, term / where(skipped, 1, divisor))
            term = term * near * (-1 / (m + 1))
        return where(is_high, where(is_near, total, fraction), result)

    return chained(x, value, lambda x: -_en(precision, n - 1, x))


class ExponentialIntegralN(SpecialFunction):
    """Eₙ(x) = ∫ e^(−xt)/tⁿ dt from 1 to ∞, for whole n ≥ 0 and x ≥ 0."""

    name = "expn"
    scipy_name = "expn"
    harmless = (1.0, 1.0)

    def inside(self, n, x):
        return (n >= 0) & (n < 1e9) & n.equals(n.floor()) & (x > 0) & (x < INFINITY)

    def on_host(self, n, x):
        return scipy_function("expn")(n.astype(np.int64), x)

    def formula(self, precision, n, x):
        return _en(precision, n, x)

    def edge(self, n, x):
        is_order = (n >= 0) & n.equals(n.floor())
        at_zero = where(n > 1, 1 / (where(n > 1, n, 2) - 1), INFINITY)
        at_infinity = where(x.equals(INFINITY) | ((x > 0) & n.equals(INFINITY)), n.number(0), math.nan)
        return where(is_order, where(x.equals(0), at_zero, at_infinity), math.nan)

    def edge_derivative(self, n, x):
        return -self.edge(where(n > 0, n - 1, n), x)

    def tangent(self, position, dx, out, n, x, orders=()):
        if position == 0:
            raise errors.MissingRuleError(
                "expn has no derivative with respect to its order n; hold it constant"
            )
        return super().tangent(position, dx, out, n, x, orders=orders)


# --- sine and cosine integrals

SERIES_END, FIT_END = 4.0, 40.0


def _auxiliary(x: np.ndarray) -> np.ndarray:
    """e^(ix) E₁(ix) for x ≥ 4 by its continued fraction, backwards."""
    z = 1j * x
    fraction = z + 801
    for k in range(400, 0, -1):
        fraction = z + (2 * k - 1) - k * k / fraction
    return 1 / fraction


@functools.cache
def _auxiliary_coefficients() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Chebyshev coefficients, highest first, of real and imaginary part times x, as functions of 1/x."""
    low, high = 1 / FIT_END, 1 / SERIES_END

    def function(part, t):
        x = 1 / (low + (t + 1) * (high - low) / 2)
        return part(_auxiliary(x) * x)

    rows = []
    for part in (np.real, np.imag):
        coefficients = np.polynomial.chebyshev.chebinterpolate(functools.partial(function, part), 40)
        kept = np.nonzero(np.abs(coefficients) > 1e-17)[0].max() + 1
        rows.append(tuple(float(c) for c in coefficients[:kept][::-1]))
    return rows[0], rows[1]


def _sine_and_cosine_integral(size):
    """Si and Ci of positive numbers: E₁(ix) = −Ci(x) + i (Si(x) − π/2)."""
    is_near = size < SERIES_END
    near, far = where(is_near, size, 1), where(is_near, SERIES_END, size)
    squared = near * near
    sine = [(-1) ** k / ((2 * k + 1) * math.factorial(2 * k + 1)) for k in range(15, -1, -1)]
    cosine = [(-1) ** k / (2 * k * math.factorial(2 * k)) for k in range(15, 0, -1)] + [0]
    inverse = 1 / far
    low, high = 1 / FIT_END, 1 / SERIES_END
    t = (inverse - low) * (2 / (high - low)) - 1
    real, imaginary = (chebyshev_sum(t, row) * inverse for row in _auxiliary_coefficients())
    # Beyond the fit: Σ k! (−1)ᵏ/(ix)ᵏ⁺¹, up to its smallest term in float64.
    is_far = far > FIT_END
    square = inverse * inverse
    even = [(-1) ** k * math.factorial(2 * k) for k in range(9, -1, -1)]
    odd = [(-1) ** k * math.factorial(2 * k + 1) for k in range(9, -1, -1)]
    real = where(is_far, polynomial(square, odd) * square, real)
    imaginary = where(is_far, -polynomial(square, even) * inverse, imaginary)
    p, q = far.cos(), far.sin()
    si = where(is_near, polynomial(squared, sine) * near, (p * imaginary - q * real) + math.pi / 2)
    ci = where(is_near, polynomial(squared, cosine) + near.log() + EULER, -(p * real + q * imaginary))
    return si, ci


class SineIntegral(SpecialFunction):
    """Si(x) = ∫₀ˣ sin(t)/t dt"""

    name = "sine_integral"

    def on_host(self, x):
        return scipy_function("sici")(x)[0]

    def inside(self, x):
        return abs(x) < 1e16

    def formula(self, precision, x):
        def value(x):
            si = _sine_and_cosine_integral(abs(x))[0]
            return where(x < 0, -si, si)

        return chained(x, value, _sinc)

    def edge(self, x):
        limit = where(x > 0, x.number(math.pi / 2), -math.pi / 2)
        return where(x.is_nan(), x, limit)

    def edge_derivative(self, x):
        return where(x.is_nan(), x, 0)


def _sinc(x):
    """sin(x)/x"""
    is_small = abs(x.innermost()) < 0.5
    small, large = where(is_small, x, 0), where(is_small, 1, x)
    series = polynomial(small * small, [(-1) ** k / math.factorial(2 * k + 1) for k in range(8, -1, -1)])
    return where(is_small, series, large.sin() / large)


class CosineIntegral(SineIntegral):
    """Ci(x) = γ + log x + ∫₀ˣ (cos(t) − 1)/t dt; that of |x| for x < 0, and NaN at −∞, as in SciPy."""

    name = "cosine_integral"

    def on_host(self, x):
        return scipy_function("sici")(x)[1]

    def inside(self, x):
        return (abs(x) < 1e16) & x.differs(0)

    def formula(self, precision, x):
        return chained(x, lambda x: _sine_and_cosine_integral(abs(x))[1], lambda x: x.cos() / x)

    def edge(self, x):
        far = where(x.equals(-INFINITY), x.number(math.nan), where(x.is_nan(), x, 0))
        return where(x.equals(0), x.number(-INFINITY), far)

    def edge_derivative(self, x):
        at_zero = where(x.has_sign(), x.number(-INFINITY), INFINITY)
        return where(x.equals(0), at_zero, where(x.is_nan(), x, 0))


# --- the dilogarithm


def _dilogarithm(x):
    """Li₂(1 − x) for x > 0 by Σ Bₖ uᵏ⁺¹/(k + 1)! with u = −log(1 − w), for arguments w brought to |w| ≤ ½.

    Li₂(w) = −Li₂(w/(w − 1)) − ½ log²(1 − w), where 1 − w = x, and Li₂(w) = π²/6 − log w log(1 − w) − Li₂(1 − w).
    """
    logarithm = x.log()
    is_large, is_small = x > 2, x < 0.5
    w = where(is_small, x, where(is_large, 1 / x, 1 - x))
    u = -(-w).log1p()
    bernoulli = bernoulli_numbers(25)
    even = [float(bernoulli[2 * k] / math.factorial(2 * k + 1)) for k in range(12, 0, -1)] + [1.0]
    series = polynomial(u * u, even) * u - u * u * 0.25
    # for large x: Li₂(1 − x) = −π²/6 − ½ log²(x) … from Li₂(−y) with y = x − 1, by inversion and reflection
    small = math.pi**2 / 6 - logarithm * where(is_small, -x, -0.5).log1p() - series
    far = where(is_large, x, 4)
    large = -(math.pi**2) / 6 - logarithm * logarithm * 0.5 + logarithm * (-1 / far).log1p() * -1 + series
    return where(is_small, small, where(is_large, large, series))


def _dilogarithm_slope(x):
    """log(x)/(1 − x)"""
    distance = x - 1
    is_near = abs(distance.innermost()) < 0.1
    near, far = where(is_near, distance, 0), where(is_near, 2, x)
    series = polynomial(near, [-((-1) ** k) / (k + 1) for k in range(17, -1, -1)])
    return where(is_near, series, far.log() / (1 - far))


class Spence(SpecialFunction):
    """∫ log(t)/(1 − t) dt from 1 to x: the dilogarithm of 1 − x, for x ≥ 0."""

    name = "spence"
    scipy_name = "spence"

    def inside(self, x):
        return (x > 0) & (x < INFINITY)

    def formula(self, precision, x):
        return chained(x, _dilogarithm, _dilogarithm_slope)

    def edge(self, x):
        return where(x.equals(0), x.number(math.pi**2 / 6), where(x.equals(INFINITY), -x, math.nan))

    def edge_derivative(self, x):
        return where(x.equals(0), x.number(-INFINITY), where(x.equals(INFINITY), x.number(0), math.nan))


# --- (eˣ − 1)/x


class Exprel(SpecialFunction):
    """(eˣ − 1)/x"""

    name = "exprel"
    scipy_name = "exprel"

    def inside(self, x):
        return abs(x) < INFINITY

    def formula(self, precision, x):
        is_small = abs(x.innermost()) < 1
        small, large = where(is_small, x, 0), where(is_small, 1, x)
        series = polynomial(small, [1 / math.factorial(k + 1) for k in range(19, -1, -1)])
        return where(is_small, series, large.expm1() / large)

    def edge(self, x):
        return where(x.is_nan(), x, where(x > 0, x, 0))

    def edge_derivative(self, x):
        return self.edge(x)


expi_p = ExponentialIntegral()
exp1_p = ExponentialIntegralOne()
expn_p = ExponentialIntegralN()
sine_integral_p = SineIntegral()
cosine_integral_p = CosineIntegral()
spence_p = Spence()
exprel_p = Exprel()
