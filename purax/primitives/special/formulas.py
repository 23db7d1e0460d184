"""The mathematics of the special functions: series, continued fractions and asymptotic expansions as formulas.

Each is a function of formulas (see `purax.primitives.elementwise.formula`), so it runs in programs, on the host, and
with derivatives
with respect to any argument. All are meant for float64, whatever the dtype of the result; `precision` is the relative
accuracy at which series are cut off. Arguments are in the domain of the function; the primitives take care of the rest.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction

from purax.primitives.elementwise.formula import (
    Dual,
    Formula,
    HostFormula,
    depth,
    leaves,
    polynomial,
    raised,
    repeat_while,
    where,
)
from purax.primitives.elementwise.short_formulas import FewFormula, ShortFormula, sine_and_cosine

MAX_ITERATIONS = 5000
TINY = 1e-300  # keeps continued fractions from dividing by zero


@functools.cache
def bernoulli_numbers(count: int) -> tuple[Fraction, ...]:
    """B₀, B₁, …"""
    numbers = [Fraction(1)]
    for n in range(1, count):
        numbers.append(-sum(math.comb(n + 1, k) * numbers[k] for k in range(n)) / Fraction(n + 1))
    return tuple(numbers)


# --- the gamma function and related functions

SHIFT = 10  # from where on the asymptotic series are accurate
_TERMS, _SHORT_TERMS = 10, 6  # of these series: the rest is below 10⁻¹⁷, and below 10⁻¹³


def _terms(coefficients: Sequence[float], x) -> Sequence[float]:
    """The coefficients, highest power first, of those terms that count in the kind of `x`."""
    return coefficients[_TERMS - _SHORT_TERMS :] if isinstance(x.innermost(), ShortFormula) else coefficients


def weighted_sum(formula: Callable, weights: Sequence[float], arguments: Sequence):
    """Σ wᵢ f(xᵢ); of few numbers by one copy of the formula in the program, which runs once for each argument."""
    levels = max(map(depth, arguments))
    arguments = [raised(x, levels) for x in arguments]
    if not isinstance(arguments[0].innermost(), FewFormula):
        return sum(
            (formula(x) * weight for x, weight in zip(arguments[1:], weights[1:], strict=True)),
            formula(arguments[0]) * weights[0],
        )

    def step(count, total, *rest):
        weight = count * 0 + weights[-1]
        for i, other in enumerate(weights[:-1]):
            weight = where(count.equals(i), other, weight)
        return count + 1, total + formula(rest[0]) * weight, *rest[1:], rest[0]

    zero = arguments[0] * 0
    state = (zero.innermost(), zero, *arguments)
    return repeat_while(lambda count, *_: count < len(weights), step, state)[1]


def rising_product(x):
    """x (x + 1) ⋯ (x + SHIFT − 1)"""
    product = x
    for k in range(1, SHIFT):
        product = product * (x + k)
    return product


def stirling_series(x):
    """Σ B₂ₖ / (2k (2k − 1) x²ᵏ⁻¹) for x ≥ SHIFT: log Γ(x) without its leading terms."""
    inverse = 1 / x
    bernoulli = bernoulli_numbers(21)
    coefficients = [float(bernoulli[2 * k] / (2 * k * (2 * k - 1))) for k in range(_TERMS, 0, -1)]
    return polynomial(inverse * inverse, _terms(coefficients, x)) * inverse


def stirling_remainder(x):
    """log Γ(x) − ((x − ½) log x − x + ½ log 2π) for x > 0."""
    is_small = x < SHIFT
    small = where(is_small, x, 1)
    far = where(is_small, small + SHIFT, x)
    log_gamma_far = (far - 0.5) * far.log() - far + stirling_series(far)
    near = log_gamma_far - rising_product(small).log() - ((small - 0.5) * small.log() - small)
    return where(is_small, near, stirling_series(far))


@functools.cache
def digamma_coefficients() -> tuple[float, ...]:
    """B₂ₖ/2k, highest first: ψ(x) = log x − 1/2x − Σ B₂ₖ/(2k x²ᵏ) for large x."""
    bernoulli = bernoulli_numbers(21)
    return tuple(float(bernoulli[2 * k] / (2 * k)) for k in range(_TERMS, 0, -1))


def digamma_of_positive(x):
    """ψ(x) = Γ'(x)/Γ(x) for x > 0."""
    is_small = x < SHIFT
    small = where(is_small, x, 1)
    far = where(is_small, small + SHIFT, x)
    inverse = 1 / far
    square = inverse * inverse
    series = polynomial(square, _terms(digamma_coefficients(), x)) * square
    numerator, denominator = small.number(1), small  # Σ 1/(x + k) as one quotient
    for k in range(1, SHIFT):
        factor = small + k
        numerator, denominator = numerator * factor + denominator, denominator * factor
    return far.log() - inverse * 0.5 - series - where(is_small, numerator / denominator, 0)


def digamma_formula(x: Formula) -> Formula:
    """ψ(x), for x < 0 by reflection: ψ(1 − x) − π cot πx; NaN at the poles."""
    is_reflected = x <= 0
    result = digamma_of_positive(where(is_reflected, 1 - x, x))
    angle = (x - (x + 0.5).floor()) * math.pi  # in [−π/2, π/2]: the cotangent has period π
    sine, cosine = sine_and_cosine(angle)
    cotangent = cosine / sine * math.pi
    return where(is_reflected, where(x.equals(x.floor()), math.nan, result - cotangent), result)


def short_log_gamma(x):
    """log |Γ(x)|, for x < ½ by reflection; at the poles it is infinite."""
    is_reflected = x < 0.5
    y = where(is_reflected, 1 - x, x)
    is_small = y < SHIFT
    small = where(is_small, y, 1)
    far = where(is_small, small + SHIFT, y)
    value = (far - 0.5) * far.log() - far + stirling_series(far) + 0.5 * math.log(2 * math.pi)
    # π/|sin πx| with the distance of x from the next integer; the product of small numbers in the same logarithm
    angle = (x - (x + 0.5).floor()) * math.pi
    sine = abs(sine_and_cosine(angle)[0])
    product = where(is_small, rising_product(small), 1)
    factor = where(is_reflected, product * math.pi / sine, 1 / product)
    rest = factor.log()
    result = where(is_reflected, rest - value, rest + value)
    return where(abs(x) < math.inf, result, where(x.is_nan(), x, math.inf))


def hurwitz_zeta(s, q):
    """Σ (q + k)⁻ˢ over k ≥ 0, for s > 1 and q > 0, by the formula of Euler and Maclaurin."""
    is_short = isinstance(q.innermost(), ShortFormula)
    shift, terms = (5, 6) if is_short else (SHIFT, 12)
    total = _power(q, -s)
    for k in range(1, shift):
        total = total + _power(q + k, -s)
    far = q + shift
    last = _power(far, -s)
    total = total + last * (far / (s - 1) + 0.5)
    bernoulli = bernoulli_numbers(25)
    factor = last * s / far  # s (s + 1) ⋯ (s + 2k − 2) far^(1 − s − 2k)
    inverse = 1 / far
    for k in range(1, terms + 1):
        total = total + factor * float(bernoulli[2 * k] / math.factorial(2 * k))
        factor = factor * ((s + (2 * k - 1)) * inverse) * ((s + 2 * k) * inverse)
    return total


def signed_hurwitz_zeta(s, q):
    """`hurwitz_zeta` for q < 0 too, where s must be whole: left of 0 is a finite sum, a difference of two zetas.

    With q = f − n and 0 < f < 1: ζ(s, q) = ζ(s, f) + (−1)ˢ (ζ(s, 1 − f) − ζ(s, 1 − q)). At the poles it is NaN.
    """
    is_positive = q > 0
    fraction = where(is_positive, 0.5, q - q.floor())
    is_pole = fraction.equals(0)
    fraction = where(is_pole, 0.5, fraction)
    is_even = (s * 0.5).floor().equals(s * 0.5)
    parity = where(is_positive, s * 0, where(is_even, s * 0 + 1, -1))

    # One copy of the formula in the program, run three times, or once if all q are positive.
    def goes_on(count, weight, total, parity, s, first, second, third):
        return (count < 3) & weight.differs(0)

    def step(count, weight, total, parity, s, first, second, third):
        total = total + weight * hurwitz_zeta(s, first)
        weight = where(count < 1, parity, -parity)
        return count + 1, weight, total, parity, s, second, third, first

    arguments = where(is_positive, q, fraction), 1 - fraction, where(is_positive, 1, 1 - q)
    state = (s * 0, s * 0 + 1, s * 0, parity, s, *arguments)
    total = repeat_while(goes_on, step, state)[2]
    is_whole = s.equals(s.floor())
    return where(is_positive | (is_whole & ~is_pole), total, math.nan)


def log_gamma_of_positive(x):
    """log Γ(x) for x > 0."""
    return stirling_remainder(x) + (x - 0.5) * x.log() - x + 0.5 * math.log(2 * math.pi)


def polygamma_formula(m, x):
    """The derivative of order m ≥ 1 of ψ at x: (−1)^(m + 1) m! ζ(m + 1, x)."""
    size = log_gamma_of_positive(m + 1).exp() * signed_hurwitz_zeta(m + 1, x)
    is_even = (m * 0.5).floor().equals(m * 0.5)
    return where(is_even, -size, size)


def _power(base, exponent):
    """base^exponent for base > 0."""
    return (base.log() * exponent).exp()


def log1p_minus_over_square(u):
    """(log(1 + u) − u)/u² for |u| < ½: with t = u/(2 + u), log(1 + u) = 2 (t + t³/3 + t⁵/5 + …)."""
    inverse = 1 / (u + 2)
    t = u * inverse
    series = polynomial(t * t, [2 / (2 * k + 1) for k in range(18, 0, -1)])
    return inverse * (t * series * inverse - 1)


def log_ratio_minus(ratio, u):
    """log(ratio) − u for ratio = 1 + u, without cancellation: both are given, exact where they are near 0."""
    is_small = abs(u) < 0.5
    small = where(is_small, u, 0.25)
    near = log1p_minus_over_square(small) * small * small
    return where(is_small, near, where(is_small, 1, ratio).log() - u)


def still_matters(term, total, precision: float) -> Formula:
    """Whether a term, or one of its derivatives, is not negligible beside the total."""
    size = abs(total.innermost())
    parts = zip(leaves(term), leaves(total), strict=True)
    return functools.reduce(
        operator.or_, (abs(part) > (abs(whole) + size) * precision for part, whole in parts)
    )


# --- incomplete gamma functions

TEMME_FROM = 200  # for larger a, near x = a: Temme's expansion; else a few hundred iterations suffice


def gamma_density_factor(a, x):
    """xᵃ e⁻ˣ / Γ(a + 1), without the cancellation of its factors for large a and x."""
    exponent = a * log_ratio_minus(x / a, (x - a) / a) - stirling_remainder(a)
    return exponent.exp() / (a * (2 * math.pi)).sqrt()


def incomplete_gamma(precision: float, a, x):
    """The regularized incomplete gamma functions P(a, x) and Q(a, x) = 1 − P(a, x), for a > 0 and 0 < x < ∞."""
    in_temme, in_fraction, by_temme, by_fraction, by_series = _gamma_regions(a, x)
    factor = gamma_density_factor(a, x)
    p_series = factor * _gamma_series(precision, *by_series)
    q_fraction = factor * a * gamma_fraction(precision, *by_fraction)
    p_temme, q_temme = _gamma_temme(precision, *by_temme)
    p = where(in_temme, p_temme, where(in_fraction, 1 - q_fraction, p_series))
    is_tiny = (a < 0.5) & ~in_fraction
    q_series = where(is_tiny, _upper_gamma_of_tiny(*(where(is_tiny, v, 0.25) for v in (a, x))), 1 - p_series)
    q = where(in_temme, q_temme, where(in_fraction, q_fraction, q_series))
    return p, q


@functools.cache
def _log_gamma_coefficients() -> tuple[float, ...]:
    """log Γ(1 + a) + log(1 + a) = (1 − γ) a + Σ (−1)ᵏ (ζ(k) − 1)/k aᵏ, highest power first, for |a| ≤ ½."""
    tails = [
        float(hurwitz_zeta(HostFormula(None, float(k)), HostFormula(None, 2.0)).value) for k in range(2, 28)
    ]
    series = [(-1) ** k * tail / k for k, tail in enumerate(tails, 2)]
    return (*series[::-1], 1 - 0.57721566490153286061, 0.0)


def _upper_gamma_of_tiny(a, x):
    """Q(a, x) for 0 < a < ½ and 0 < x < 3/2, also where it is small: with f = xᵃ/Γ(1 + a),

    Q = (1 − f) − f a Σ (−x)ⁿ/((a + n) n!) over n ≥ 1.
    """
    exponent = a * x.log() - (polynomial(a, _log_gamma_coefficients()) - a.log1p())
    total, term = a * 0, a * 0 + 1
    for n in range(1, 26):
        term = term * x * (-1 / n)
        total = total + term / (a + n)
    return -exponent.expm1() - exponent.exp() * a * total


def scaled_gamma_derivative(precision: float, a, x):
    """∂P(a, x)/∂a divided by xᵃ e⁻ˣ / Γ(a + 1), which may underflow."""
    in_temme, in_fraction, by_temme, by_fraction, by_series = _gamma_regions(a, x)
    # P = factor · series with ∂ log factor/∂a = log x − ψ(a + 1); 1 − P = factor · a · fraction.
    log_x, psi = x.log(), digamma_of_positive(a)
    series = _gamma_series(precision, _moving(by_series[0]), by_series[1])
    fraction = gamma_fraction(precision, _moving(by_fraction[0]), by_fraction[1])
    from_series = series.tangent + series.primal * (log_x - psi - 1 / a)
    from_fraction = -(fraction.tangent + fraction.primal * (log_x - psi)) * a
    from_temme = _temme_derivative(precision, *by_temme)
    return where(in_temme, from_temme, where(in_fraction, from_fraction, from_series))


def _moving(a):
    """`a` as the variable that derivatives are taken of."""
    return Dual(a, a.number(1))


def _gamma_regions(a, x):
    """Which method applies where, and for each its arguments, replaced by harmless ones where it does not."""
    in_temme = (a > TEMME_FROM) & (abs(x - a) < a * 0.5)
    in_fraction = (x > a + 1) & ~in_temme
    in_series = ~(in_fraction | in_temme)
    by_temme = where(in_temme, a, 1000), where(in_temme, x, 1010)
    by_fraction = where(in_fraction, a, 1), where(in_fraction, x, 8)
    by_series = where(in_series, a, 1), where(in_series, x, 0.5)
    return in_temme, in_fraction, by_temme, by_fraction, by_series


def _gamma_series(precision: float, a, x):
    """1 + x/(a + 1) + x²/((a + 1)(a + 2)) + …"""

    def goes_on(count, term, total, a, x):
        return still_matters(term, total, precision) & (count < MAX_ITERATIONS)

    def step(count, term, total, a, x):
        count = count + 1
        term = term * x / (a + count)
        return count, term, total + term, a, x

    one = a * 0 + 1
    return repeat_while(goes_on, step, (a.innermost() * 0, one, one, a, x))[2]


def gamma_fraction(precision: float, a, x):
    """Γ(a, x)/(xᵃ e⁻ˣ) = 1/(x + 1 − a − 1 (1 − a)/(x + 3 − a − 2 (2 − a)/(x + 5 − a − …))), by Lentz's method."""

    def goes_on(count, b, c, d, product, change, a):
        return still_matters(change - 1, change, precision) & (count < MAX_ITERATIONS)

    def step(count, b, c, d, product, change, a):
        count = count + 1
        numerator = (a - count) * count
        b = b + 2
        d = 1 / _not_zero(numerator * d + b)
        c = _not_zero(b + numerator / c)
        is_open = still_matters(
            change - 1, change, precision
        )  # else further steps add but errors of rounding
        change = c * d
        return count, b, c, d, where(is_open, product * change, product), change, a

    b = x + 1 - a
    d = 1 / b
    state = (a.innermost() * 0, b, b * 0 + 1 / TINY, d, d, a * 0 + 2, a)
    return repeat_while(goes_on, step, state)[4]


def _not_zero(x):
    return where(abs(x.innermost()) < TINY, TINY, x)


@functools.cache
def _temme_coefficients(precision: float) -> tuple[tuple[float, ...], ...]:
    """The Taylor coefficients of c₀(η), …, highest power first, in Temme's expansion (DLMF 8.12.7 to 8.12.12).

    With ½η² = μ − log(1 + μ): c₀ = 1/μ − 1/η and cₖ = cₖ₋₁'/η + (−1)ᵏ gₖ/μ, where Σ gₖ z⁻ᵏ is Γ's Stirling series.
    Taylor's series converge for |η| < 2√π, which is 5.7 times the largest |η|; row k is divided by aᵏ > 200ᵏ.
    """
    digits = -math.log(precision)
    count = math.ceil(digits / math.log(TEMME_FROM)) + 1
    degrees = [
        max(2, math.ceil((digits - k * math.log(TEMME_FROM)) / math.log(5.7)) + 1) for k in range(count)
    ]
    degree = degrees[0]
    size = degree + 2 * count + 3
    mu = [Fraction(0), Fraction(1)]  # μ as a series in η, from μ μ' = η (1 + μ)
    for n in range(2, size):
        known = sum((mu[i] * (n + 1 - i) * mu[n + 1 - i] for i in range(2, n)), Fraction(0))
        mu.append((mu[n - 1] - known) / (n + 1))
    reciprocal = [Fraction(1)]  # η/μ
    for n in range(1, size - 1):
        reciprocal.append(-sum((mu[k + 1] * reciprocal[n - k] for k in range(1, n + 1)), Fraction(0)))
    bernoulli = bernoulli_numbers(2 * count + 3)
    stirling = [Fraction(0)] * (count + 2)
    for k in range(1, count // 2 + 2):
        if 2 * k - 1 < len(stirling):
            stirling[2 * k - 1] = bernoulli[2 * k] / (2 * k * (2 * k - 1))
    g = [Fraction(1)]
    for n in range(1, count + 1):
        g.append(sum((k * stirling[k] * g[n - k] for k in range(1, n + 1)), Fraction(0)) / n)
    rows = []
    row = reciprocal[1:]
    for k in range(count):
        if k:  # the terms in 1/η of both parts cancel
            slope = [n * row[n] for n in range(1, len(row))]
            row = [slope[n + 1] + (-1) ** k * g[k] * reciprocal[n + 1] for n in range(len(slope) - 1)]
        rows.append(tuple(float(c) for c in row[: degrees[k] + 1][::-1]))
    return tuple(rows)


def _temme_parts(a, x, precision: float):
    """μ, η/μ, and the rows of Taylor coefficients."""
    rows = _temme_coefficients(precision)
    mu = (x - a) / a
    return mu, (log1p_minus_over_square(mu) * -2).sqrt(), rows


def _gamma_temme(precision: float, a, x):
    """P and Q for large a and x near a: ½ erfc(∓η√(a/2)) ∓ e^(−aη²/2)/√(2πa) Σ cₖ(η) a⁻ᵏ."""
    mu, slope, rows = _temme_parts(a, x, precision)
    eta = mu * slope
    correction = polynomial(eta, rows[-1])
    for row in rows[-2::-1]:
        correction = correction / a + polynomial(eta, row)
    rest = (eta * eta * a * -0.5).exp() / (a * (2 * math.pi)).sqrt() * correction
    argument = eta * (a * 0.5).sqrt()
    return (-argument).erfc() * 0.5 - rest, argument.erfc() * 0.5 + rest


def _temme_derivative(precision: float, a, x):
    """∂P/∂a without the factor xᵃ e⁻ˣ/Γ(a + 1). At fixed x, ∂μ/∂a = −(1 + μ)/a and ∂η/∂a = −(μ/η)/a."""
    mu, slope, rows = _temme_parts(a, x, precision)
    eta = mu * slope
    total = d_eta = d_inverse = eta * 0  # T = Σ cₖ(η) a⁻ᵏ, ∂T/∂η, ∂T/∂(1/a)
    for row in rows[::-1]:
        degree = len(row) - 1
        value = polynomial(eta, row)
        derivative = polynomial(eta, [c * (degree - i) for i, c in enumerate(row[:-1])])
        d_inverse = d_inverse / a + total
        total, d_eta = total / a + value, d_eta / a + derivative
    change = -d_eta / slope / a - d_inverse / (a * a)
    bracket = eta * 0.5 - 1 / slope - change + total * (eta * eta * 0.5 - mu + 0.5 / a)
    return bracket * stirling_remainder(a).exp()


# --- the incomplete beta function


def incomplete_beta(precision: float, a, b, x):
    """The regularized incomplete beta function I(x; a, b), for a, b > 0 and 0 < x < 1."""
    y = 1 - x
    is_flipped = x > (a + 1) / (a + b + 2)
    near, far = where(is_flipped, b, a), where(is_flipped, a, b)
    w = where(is_flipped, y, x)
    result = _beta_density_factor(near, far, w) / near * _beta_fraction(near, far, w, precision)
    return where(is_flipped, 1 - result, result)


def _beta_density_factor(a, b, x):
    """xᵃ (1 − x)ᵇ / B(a, b), without the cancellation of its factors for large a and b."""
    y = 1 - x
    distance = x * b - y * a
    exponent = a * log_ratio_minus((a + b) * x / a, distance / a)
    exponent = exponent + b * log_ratio_minus((a + b) * y / b, -distance / b)
    exponent = exponent + stirling_remainder(a + b) - stirling_remainder(a) - stirling_remainder(b)
    return exponent.exp() * (a * b / ((a + b) * (2 * math.pi))).sqrt()


def _beta_fraction(a, b, x, precision: float):
    """The continued fraction 1/(1 + d₁/(1 + d₂/(1 + …))) of DLMF 8.17.22, by Lentz's method."""

    def goes_on(count, c, d, product, change, a, b, x):
        return still_matters(change - 1, change, precision) & (count < MAX_ITERATIONS)

    def step(count, c, d, product, change, a, b, x):
        count = count + 1
        is_open = still_matters(change - 1, change, precision)
        start = product
        change = None
        twice = count * 2
        for numerator in (
            (b - count) * count * x / ((a + twice - 1) * (a + twice)),
            -(a + count) * (a + b + count) * x / ((a + twice) * (a + twice + 1)),
        ):
            d = 1 / _not_zero(numerator * d + 1)
            c = _not_zero(numerator / c + 1)
            product = product * c * d
            change = c * d if change is None else change * c * d
        return count, c, d, where(is_open, product, start), change, a, b, x

    d = 1 / _not_zero(1 - (a + b) * x / (a + 1))
    one = d * 0 + 1
    state = (d.innermost() * 0, one, d, d, one * 2, a, b, x)
    return repeat_while(goes_on, step, state)[3]


# --- derivatives


def moved(x, order: int):
    """`x` as a variable of which `order` derivatives are taken."""
    for _ in range(order):
        x = _moving(x)
    return x


def derivative(x, order: int):
    """The derivative of order `order` in a result of a `moved` variable."""
    for _ in range(order):
        x = x.tangent
    return x
