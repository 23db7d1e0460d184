"""Hypergeometric functions ₁F₁ and ₂F₁ of real numbers: power series, continued where these do not converge.

Derivatives, with respect to parameters too, are those of the formulas.
"""

from __future__ import annotations

import math

from purax.primitives.elementwise.formula import leaves, repeat_while, where
from purax.primitives.special.formulas import still_matters
from purax.primitives.special.function import SpecialFunction
from purax.primitives.special.gamma import is_pole, log_abs_gamma, sign_of_gamma

INFINITY = math.inf
MAX_TERMS = 5000


# --- ₁F₁


def _kummer_series(precision: float, a, b, x, first):
    """first · Σ (a)ₖ xᵏ / ((b)ₖ k!)"""

    def goes_on(count, term, total, a, b, x):
        unfinished = still_matters(term, total, precision) | ((count + b.innermost() < 1) & any_nonzero(term))
        return unfinished & (count < MAX_TERMS)

    def step(count, term, total, a, b, x):
        is_open = still_matters(term, total, precision) | (count + b.innermost() < 1)
        term = where(is_open, term * (a + count) / (b + count) * x / (count + 1), term * 0)
        return count + 1, term, total + term, a, b, x

    start = a * 0 + b * 0 + x * 0 + first
    return repeat_while(goes_on, step, (x.innermost() * 0, start, start, a, b, x))[2]


def any_nonzero(x):
    """Whether a value or any of its derivatives is not zero."""
    parts = [part.differs(0) for part in leaves(x)]
    found = parts[0]
    for part in parts[1:]:
        found = found | part
    return found


def _kummer_tail(a, b, x):
    """₁F₁(a, b, x) e^(−x) for large x > 0: Γ(b)/Γ(a) x^(a − b) Σ (b − a)ₖ (1 − a)ₖ / (k! xᵏ), up to 30 terms."""
    total = term = a * 0 + b * 0 + x * 0 + 1
    for k in range(30):
        following = term * (b - a + k) * (1 - a + k) / x / (k + 1)
        shrinks = abs(following.innermost()) < abs(term.innermost())
        term = where(shrinks, following, term * 0)
        total = total + term
    p, q = a.innermost(), b.innermost()
    regular = where(is_pole(p), 0.5, a)
    exponent = log_abs_gamma(b) - log_abs_gamma(regular) + (a - b) * x.log()
    result = exponent.exp() * total * (sign_of_gamma(p) * sign_of_gamma(q))
    return where(is_pole(p), result * 0, result)


class Hyp1f1(SpecialFunction):
    """Kummer's function Σ (a)ₖ xᵏ / ((b)ₖ k!)."""

    name = "hyp1f1"
    scipy_name = "hyp1f1"
    harmless = (1.0, 1.0, 1.0)

    def inside(self, a, b, x):
        is_finite = (abs(a) < INFINITY) & (abs(b) < INFINITY) & (abs(x) < INFINITY)
        return is_finite & ~is_pole(b)

    def formula(self, precision, a, b, x):
        is_negative = x.innermost() < 0  # there Kummer's transformation: eˣ ₁F₁(b − a, b, −x), of like signs
        top = where(is_negative, b - a, a)
        size = where(is_negative, -x, x)
        p, q, far = top.innermost(), b.innermost(), size.innermost()
        is_far = (far > 50) & (far > (abs(p) + 1) * (abs(p - q) + 1) * 4) & ~is_pole(p)
        scale = where(is_negative, x, 0).exp()
        near = _kummer_series(
            precision,
            where(is_far, 1, top),
            where(is_far, 1, b),
            where(is_far, 1, size),
            where(is_far, 1, scale),
        )
        tail = _kummer_tail(where(is_far, top, 1), where(is_far, b, 1.5), where(is_far, size, 60))
        growth = where(is_far & ~is_negative, x, 0).exp()
        return where(is_far, tail * growth, near)

    def edge(self, a, b, x):
        is_valid = ~(a.is_nan() | b.is_nan() | x.is_nan()) & (abs(a) < INFINITY) & (abs(x) < INFINITY)
        is_one = is_valid & (a.equals(0) | x.equals(0))  # the constant series
        return where(is_one, a.number(1), where(is_valid & is_pole(b), a.number(INFINITY), math.nan))


# --- ₂F₁


def _gauss_series(precision: float, a, b, c, x):
    """F = Σ (a)ₖ (b)ₖ xᵏ / ((c)ₖ k!) and x F'."""

    def unfinished(count, term, total, c):
        return still_matters(term, total, precision) | ((count + c.innermost() < 1) & any_nonzero(term))

    def goes_on(count, term, total, slope, a, b, c, x):
        return unfinished(count, term, total, c) & (count < MAX_TERMS)

    def step(count, term, total, slope, a, b, c, x):
        following = term * (a + count) * (b + count) / (c + count) * x / (count + 1)
        term = where(unfinished(count, term, total, c), following, term * 0)
        count = count + 1
        return count, term, total + term, slope + term * count, a, b, c, x

    start = a * 0 + b * 0 + c * 0 + x * 0 + 1
    state = (x.innermost() * 0, start, start, start * 0, a, b, c, x)
    return repeat_while(goes_on, step, state)[2:4]


def _continued(precision: float, a, b, c, x, value, slope):
    """F(x) from F and F' at ½, by the Taylor series of Gauss's differential equation, half the way to 1 at each step.

    With w = w₀ + d: (k + 2)(k + 1) p fₖ₊₂ + (k + 1)(k q + c − (a + b + 1) w₀) fₖ₊₁ − (k + a)(k + b) fₖ = 0, where
    p = w₀ (1 − w₀) and q = 1 − 2 w₀. The terms fₖ dᵏ halve at least.
    """
    terms = math.ceil(-math.log2(precision)) + 8

    def goes_on(place, value, slope, a, b, c, x):
        return place.innermost() < x.innermost()

    def advance(place, value, slope, a, b, c, x):
        limit = (1 - place) * 0.5
        rest = x - place
        d = where(rest.innermost() < limit.innermost(), rest, limit)
        p, q = place * (1 - place), 1 - place * 2
        drift = c - (a + b + 1) * place

        def inner_goes_on(k, older, newer, total, weighted, *others):
            return k < terms

        def inner_step(k, older, newer, total, weighted, d, p, q, drift, a, b):
            following = (a + k) * (b + k) * d * d * older - (q * k + drift) * (k + 1) * d * newer
            following = following / (p * ((k + 1) * (k + 2)))
            return (
                k + 1,
                newer,
                following,
                total + following,
                weighted + following * (k + 2),
                d,
                p,
                q,
                drift,
                a,
                b,
            )

        first = slope * d
        zero = value * 0 + d * 0
        state = (
            x.innermost() * 0,
            value + zero,
            first + zero,
            value + first + zero,
            first + zero,
            d,
            p,
            q,
            drift,
            a,
            b,
        )
        result = repeat_while(inner_goes_on, inner_step, state)
        moves = d.innermost() > 0
        new_slope = result[4] / where(moves, d, 1)
        is_last = rest.innermost() <= limit.innermost()
        return (
            where(is_last, x + place * 0, place + d),
            where(moves, result[3], value),
            where(moves, new_slope, slope),
            a, b, c, x,
        )  # fmt: skip

    zero = a * 0 + b * 0 + c * 0 + x * 0
    start = where(x.innermost() > 0.5, zero + 0.5, x + zero)
    return repeat_while(goes_on, advance, (start, value + zero, slope + zero, a, b, c, x))[1]


class Hyp2f1(SpecialFunction):
    """Gauss's function Σ (a)ₖ (b)ₖ xᵏ / ((c)ₖ k!), for x < 1."""

    name = "hyp2f1"
    scipy_name = "hyp2f1"
    harmless = (1.0, 1.0, 2.0, 0.25)

    def inside(self, a, b, c, x):
        is_finite = (
            (abs(a) < INFINITY) & (abs(b) < INFINITY) & (abs(c) < INFINITY) & (x > -INFINITY) & (x < INFINITY)
        )
        return is_finite & ~is_pole(c) & ((x < 1) | is_pole(a) | is_pole(b))

    def formula(self, precision, a, b, c, x):
        is_negative = x.innermost() < 0  # Pfaff: (1 − x)^(−a) ₂F₁(a, c − b; c; x/(x − 1))
        is_finite_sum = (is_pole(a.innermost()) | is_pole(b.innermost())) & ~is_negative
        swaps = is_negative & is_pole(b.innermost())  # a finite sum stays one
        first, second = where(swaps, b, a), where(swaps, a, b)
        low = where(is_negative, x, -1)
        second = where(is_negative, c - second, second)
        w = where(is_negative, low / (low - 1), x)
        factor = where(is_negative, (-first * (-low).log1p()).exp(), 1)
        # Euler: (1 − w)^(c − a − b) ₂F₁(c − a, c − b; c; w), where that takes away what is singular at 1
        excess = c - first - second
        is_singular = (excess.innermost() < 0) & ~is_finite_sum & (w.innermost() < 1)
        first, second = where(is_singular, c - first, first), where(is_singular, c - second, second)
        rest = where(is_singular, where(is_negative, low, w), -1)
        logarithm = where(is_negative, -(-rest).log1p(), (-rest).log1p())
        factor = factor * where(is_singular, (excess * logarithm).exp(), 1)
        is_far = (w.innermost() > 0.5) & ~is_finite_sum
        start = where(is_far, w * 0 + 0.5, w)
        value, weighted = _gauss_series(precision, first, second, c, start)
        slope = weighted / where(is_far, start, 1)
        result = _continued(
            precision, where(is_far, first, 1), where(is_far, second, 1), where(is_far, c, 2), where(is_far, w, 0.25),
            where(is_far, value, 1), where(is_far, slope, 1),
        )  # fmt: skip
        return factor * where(is_far, result, value)

    def edge(self, a, b, c, x):
        is_valid = ~(a.is_nan() | b.is_nan() | c.is_nan() | x.is_nan())
        excess = c - a - b
        is_sum = (
            is_valid & x.equals(1) & (excess > 0) & ~is_pole(c)
        )  # Γ(c) Γ(c − a − b) / (Γ(c − a) Γ(c − b))
        p, q, r = where(is_sum, c, 1), where(is_sum, c - a, 1), where(is_sum, c - b, 1)
        exponent = p.apply("chlo.lgamma") + where(is_sum, excess, 1).apply("chlo.lgamma")
        exponent = exponent - q.apply("chlo.lgamma") - r.apply("chlo.lgamma")
        signs = sign_of_gamma(p) * sign_of_gamma(q) * sign_of_gamma(r)
        is_zero = is_pole(q) | is_pole(r)
        at_one = where(is_zero, 0, exponent.exp() * signs)
        diverges = (
            is_valid & (abs(a) < INFINITY) & (abs(b) < INFINITY) & (abs(c) < INFINITY) & (x > -INFINITY)
        )
        is_constant = is_valid & (x.equals(0) | a.equals(0) | b.equals(0))
        rest = where(diverges, a.number(INFINITY), math.nan)
        return where(is_constant, 1, where(is_sum, at_one, rest))


hyp1f1_p = Hyp1f1()
hyp2f1_p = Hyp2f1()
