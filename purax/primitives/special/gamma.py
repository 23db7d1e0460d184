"""The gamma function and what is made of it: log Γ of complex numbers, beta function, binomials, Pochhammer's symbol.

Quotients of gamma functions are differences of Stirling's series, so that large arguments do not cancel.
"""

from __future__ import annotations

import math

import numpy as np

from purax.primitives.elementwise.formula import (
    Dual,
    HostFormula,
    chained,
    depth,
    raised,
    repeat_while,
    where,
)
from purax.primitives.elementwise.short_formulas import ShortFormula, sine_and_cosine
from purax.primitives.special.formulas import (
    SHIFT,
    digamma_of_positive,
    rising_product,
    short_log_gamma,
    stirling_remainder,
    stirling_series,
    weighted_sum,
)
from purax.primitives.special.function import SpecialFunction

INFINITY = math.inf
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


# --- on formulas


def nearest(x):
    """The integer next to `x`, without derivatives."""
    return (x.innermost() + 0.5).floor()


def is_whole(x):
    return x.equals(x.floor())


def is_pole(x):
    """Whether Γ has a pole at the formula `x`."""
    return (x <= 0) & is_whole(x)


def is_odd(x):
    """Whether an integer is odd."""
    return (x * 0.5).differs((x * 0.5).floor())


def psi(x):
    """ψ(x), for x < ½ by reflection."""
    is_reflected = x.innermost() < 0.5
    result = digamma_of_positive(where(is_reflected, 1 - x, x))
    angle = where(is_reflected, (x - nearest(x)) * math.pi, 1)
    sine, cosine = sine_and_cosine(angle)
    return result - where(is_reflected, cosine / sine * math.pi, 0)


def log_abs_gamma(x):
    """log |Γ(x)|"""
    return chained(x, _log_abs_gamma, psi)


def _log_abs_gamma(x):
    if not isinstance(x, ShortFormula):
        return x.apply("chlo.lgamma")
    return short_log_gamma(x)


def sign_of_gamma(x):
    """The sign of Γ at the formula `x`, which is no pole."""
    return where((x < 0) & is_odd(x.floor()), x.number(-1), 1)


def gamma_formula(x):
    """Γ(x) where it is no pole: √2π x^(x − ½) e^(−x) e^(Stirling's series) for x ≥ SHIFT, below by recurrence."""
    is_reflected = x < 0.5
    y = where(is_reflected, 1 - x, x)
    is_small = y < SHIFT
    small = where(is_small, y, 1)
    far = where(is_small, small + SHIFT, y).minimum(200)  # infinite from 172 on
    half = far.power((far - 0.5) * 0.5)
    large = half * (stirling_series(far) - far).exp() * half * math.sqrt(2 * math.pi)
    result = where(is_small, large / rising_product(small), large)
    angle = where(is_reflected, x - nearest(x), 0.5) * math.pi
    sine = sine_and_cosine(angle)[0] * where(is_odd(nearest(x)), x.number(-1), 1)
    return where(is_reflected, math.pi / (sine * result), result)


class Gamma(SpecialFunction):
    """Γ(x)"""

    name = "gamma"
    scipy_name = "gamma"

    def inside(self, x):
        return (abs(x) < INFINITY) & ~is_pole(x)

    def formula(self, precision, x):
        return chained(x, gamma_formula, lambda x: self.formula(precision, x) * psi(x))

    def edge(self, x):
        at_zero = where(x.has_sign(), x.number(-INFINITY), INFINITY)
        return where(x.equals(0), at_zero, where(x.equals(INFINITY), x, math.nan))


class ComplexLogGamma(SpecialFunction):
    """The logarithm of Γ(z) that is continuous but at the negative real axis; real on the positive one."""

    name = "complex_lgamma"
    accepts = ("complex",)
    scipy_name = "loggamma"
    harmless = (1.5,)

    def inside(self, z):
        x, y = z.parts()
        return (abs(x) < INFINITY) & (abs(y) < INFINITY) & ~(is_pole(x) & y.equals(0))

    def formula(self, precision, z):
        x, y = z.innermost().parts()
        is_reflected = x < 0
        right = _log_gamma_right(where(is_reflected, 1 - z, z))
        # log sin πz above the real axis: −iπ (z − ½) − log 2 + log(1 − e^(2πiz)); below it the conjugate.
        turn = where(y.has_sign(), z.innermost().number(-1j), 1j)
        phase = where(is_reflected, (z - (x + 0.5).floor().convert(z.dtype)) * turn * (2 * math.pi), 1j)
        far = where(is_reflected, z, 0.5)
        log_sine = (far - 0.5) * turn * -math.pi - math.log(2) + (-phase.expm1()).log()
        return where(is_reflected, math.log(math.pi) - log_sine - right, right)

    def edge(self, z):
        x, y = z.parts()
        return where(
            x.is_nan() | y.is_nan() | is_pole(x), z.number(complex(math.nan, math.nan)), z.number(INFINITY)
        )

    def edge_derivative(self, z):
        return z.number(complex(math.nan, math.nan))


def _log_gamma_right(z):
    """log Γ(z) for Re z ≥ 0. Numbers there have arguments up to π/2, so products of two keep theirs."""
    x, y = z.innermost().parts()
    is_small = (x < SHIFT) & (abs(y) < SHIFT)
    small = where(is_small, z, 1)
    far = where(is_small, small + SHIFT, z)
    large = (far - 0.5) * far.log() - far + stirling_series(far) + HALF_LOG_2PI
    shifts = sum(
        (((small + k) * (small + (k + 1))).log() for k in range(2, SHIFT, 2)), (small * (small + 1)).log()
    )
    return where(is_small, large - shifts, large)


def log_beta(a, b):
    """log |B(a, b)| where Γ has no pole at a, b and a + b.

    Where an argument is negative, by Γ(x) Γ(1 − x) = π / sin πx it is that of positive ones and sines, so that no large
    values of log Γ cancel. With t = a + b and b ≤ a it is
        B(a, 1 − t) sin πt / sin πb              for b < 0 < a, t < 0,
        π / (sin πb · a B(t, 1 − b))             for b < 0 < a, t > 0,
        π sin πt / (sin πa sin πb (1 − t) B(1 − a, 1 − b))     for a < 0, b < 0.
    """
    is_ordered = a.innermost() < b.innermost()
    low, high = where(is_ordered, a, b), where(is_ordered, b, a)
    total = a + b
    is_positive, is_negative = low.innermost() > 0, high.innermost() < 0
    is_inverse = is_negative | (~is_positive & (total.innermost() > 0))
    first = where(is_positive, low, where(is_negative, 1 - low, where(is_inverse, total, 1 - total)))
    second = where(is_positive, high, where(is_negative, 1 - high, where(is_inverse, 1 - low, high)))
    near = _log_beta_of_positive(first, second)
    above = where(is_negative, sine_of_pi(total) * math.pi, where(is_inverse, math.pi, sine_of_pi(total)))
    below = where(is_negative, sine_of_pi(high) * (1 - total), where(is_inverse, high, 1)) * sine_of_pi(low)
    ratio = where(is_positive, 1, above / where(is_positive, 1, below))
    return where(is_inverse, -near, near) + where(ratio.innermost() < 0, -ratio, ratio).log()


def sine_of_pi(x):
    """sin πx"""
    return chained(x, lambda x: _turned(x)[0], lambda x: cosine_of_pi(x) * math.pi)


def cosine_of_pi(x):
    """cos πx"""
    return chained(x, lambda x: _turned(x)[1], lambda x: sine_of_pi(x) * -math.pi)


def _turned(x):
    sine, cosine = sine_and_cosine((x - nearest(x)) * math.pi)
    sign = where(is_odd(nearest(x)), x.number(-1), 1)
    return sine * sign, cosine * sign


def _log_beta_of_positive(x, y):
    is_ordered = x.innermost() < y.innermost()
    x, y = where(is_ordered, x, y), where(is_ordered, y, x)
    total = x + y
    stirling = weighted_sum(stirling_remainder, (1, 1, -1), (x, y, total)) + HALF_LOG_2PI
    return stirling + x * (x / total).log() - x.log() * 0.5 - (y - 0.5) * (x / y).log1p()


def _once_if_any(predicate, step, value, a, b):
    """`step(is_open, value, a, b)`, which gives the new value second, if the predicate holds for any element.

    The step must return a and b in exchange: what does not change in a loop is moved out of it and always computed.
    """
    is_open = where(predicate, predicate.number(1, np.float64), 0)
    levels = max(map(depth, (value, a, b)))
    state = (is_open, *(raised(x, levels) for x in (value, a, b)))
    return repeat_while(lambda is_open, *_: is_open > 0, step, state)[1]


def _reflects(a, b):
    """Whether Γ has poles at a and a + b whose quotient is finite, since b is a positive integer."""
    return is_pole(a) & is_pole(a + b) & (b > 0) & is_whole(b)


def _beta_edge(a, b):
    """B(a, b) where the formula does not hold. At poles of Γ(a) and Γ(a + b), it is (−1)ᵇ B(1 − a − b, b)."""
    is_pair = _reflects(a, b) | _reflects(b, a)
    flipped = _reflects(b, a)
    pole, other = where(is_pair, where(flipped, b, a), -1), where(is_pair, where(flipped, a, b), 1)

    def step(is_open, value, pole, other):
        finite = log_beta(1 - pole - other, other).exp() * where(is_odd(other), other.number(-1), 1)
        return is_open * 0, where(is_open > 0, finite, value), other, pole

    finite = _once_if_any(is_pair, step, a * 0, pole, other)
    has_poles = is_pole(a) | is_pole(b)
    is_zero = (is_pole(a + b) | (a.equals(INFINITY) & (b > 0)) | (b.equals(INFINITY) & (a > 0))) & ~has_poles
    rest = where(has_poles, a.number(INFINITY), where(is_zero, a.number(0), math.nan))
    return where(a.is_nan() | b.is_nan(), math.nan, where(is_pair, finite, rest))


MODERATE = 30.0  # up to here SciPy's differences of log Γ lose no digits


class GammaQuotient(SpecialFunction):
    """A function of quotients of gamma functions: on the host by SciPy for moderate arguments, else by the formula."""

    harmless = (1.0, 1.0)

    def on_host(self, *operands):
        if all([np.abs(x).max(initial=0) < MODERATE for x in operands]):
            return super().on_host(*operands)
        return self.formula(0, *(HostFormula(None, x) for x in operands)).value


class LogBeta(GammaQuotient):
    """log |B(a, b)| with B(a, b) = Γ(a) Γ(b) / Γ(a + b)."""

    name = "log_beta"
    scipy_name = "betaln"

    def inside(self, a, b):
        is_regular = ~is_pole(a) & ~is_pole(b) & ~is_pole(a + b)
        return (abs(a) < INFINITY) & (abs(b) < INFINITY) & is_regular

    def formula(self, precision, a, b):
        return log_beta(a, b)

    def edge(self, a, b):
        return abs(_beta_edge(a, b)).log()


class Beta(LogBeta):
    """B(a, b) = Γ(a) Γ(b) / Γ(a + b)"""

    name = "beta"
    scipy_name = "beta"

    def formula(self, precision, a, b):
        p, q = a.innermost(), b.innermost()
        return log_beta(a, b).exp() * (sign_of_gamma(p) * sign_of_gamma(q) * sign_of_gamma(p + q))

    def edge(self, a, b):
        return _beta_edge(a, b)


class Binomial(GammaQuotient):
    """The binomial coefficient Γ(n + 1) / (Γ(k + 1) Γ(n − k + 1)) for 0 ≤ k ≤ n, else 0."""

    name = "binomial"
    scipy_name = "binom"

    def inside(self, n, k):
        return (k >= 0) & (k <= n) & (n < INFINITY)

    def formula(self, precision, n, k):
        result = (-log_beta(n - k + 1, k + 1)).exp() / (n + 1)
        if isinstance(result, Dual):
            return result
        is_exact = is_whole(n) & is_whole(k) & (result < 1e12)
        return where(is_exact, nearest(result), result)

    def edge(self, n, k):
        is_valid = (n < INFINITY) & ~k.is_nan()
        return where(is_valid, n.number(0), math.nan)

    def edge_derivative(self, n, k):
        return self.edge(n, k)


class Pochhammer(GammaQuotient):
    """Γ(z + m) / Γ(z)"""

    name = "pochhammer"
    scipy_name = "poch"

    def inside(self, z, m):
        return (abs(z) < INFINITY) & (abs(m) < INFINITY) & ~is_pole(z) & ~is_pole(z + m)

    def formula(self, precision, z, m):
        p, q = z.innermost(), z.innermost() + m.innermost()
        is_positive = (p > 0) & (q > 0)
        x, step = where(is_positive, z, 1), where(is_positive, m, 1)
        y = x + step
        is_growing = step.innermost() > -0.5 * x.innermost()
        ratio = where(is_growing, (where(is_growing, step, 0) / x).log1p(), (y / x).log())
        exponent = (x - 0.5) * ratio + step * y.log() - step + stirling_remainder(y) - stirling_remainder(x)
        a, b = where(is_positive, 1.5, z), where(is_positive, 1.5, z + m)
        exponent = where(is_positive, exponent, log_abs_gamma(b) - log_abs_gamma(a))
        return exponent.exp() * (sign_of_gamma(p) * sign_of_gamma(q))

    def edge(self, z, m):
        """At a pole of Γ(z) it is 0, at one of Γ(z + m) infinite, at poles of both (−1)ᵐ Γ(1 − z) / Γ(1 − z − m)."""
        is_pair = is_pole(z) & is_pole(z + m)
        a, b = where(is_pair, 1 - z, 1), where(is_pair, 1 - z - m, 1)
        finite = (log_abs_gamma(a) - log_abs_gamma(b)).exp() * where(is_odd(m), m.number(-1), 1)
        is_finite = (abs(z) < INFINITY) & (abs(m) < INFINITY)
        rest = where(is_pole(z), z.number(0), INFINITY)
        result = where(is_finite, where(is_pair, finite, rest), math.nan)
        return where((z > 0) & m.equals(INFINITY), INFINITY, result)


gamma_p = Gamma()
complex_lgamma_p = ComplexLogGamma()
log_beta_p = LogBeta()
beta_p = Beta()
binomial_p = Binomial()
pochhammer_p = Pochhammer()
