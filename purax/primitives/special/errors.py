"""Relatives of the error function: erfcx, Dawson's and Faddeeva's functions, Fresnel's integrals, Owen's T, ndtri.

Faddeeva's function w and its relatives are sums of a modified trapezoidal rule: M. Al Azah and S. N. Chandler-Wilde,
"Computation of the complex error function using modified trapezoidal rules", 2021. Twelve terms give full accuracy.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from purax.primitives.elementwise.arithmetic import div, square
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.elementwise.formula import Dual, chained, depth, polynomial, where
from purax.primitives.elementwise.short_formulas import ShortFormula
from purax.primitives.elementwise.transcendental import exp
from purax.primitives.special.function import SpecialFunction, scipy_function
from purax.primitives.special.special import erf

INFINITY = math.inf
COUNT = 12
STEP = math.sqrt(math.pi / COUNT)
MIDPOINTS = tuple((k + 0.5) * STEP for k in range(COUNT))
GRID_POINTS = tuple(k * STEP for k in range(1, COUNT))
FAR = 1e8  # from here on the first term of asymptotic expansions is exact


def _weighted_sum(points, term):
    return functools.reduce(lambda total, t: total + term(t * t) * math.exp(-t * t), points[1:],
                            term(points[0] ** 2) * math.exp(-points[0] ** 2))  # fmt: skip


def _is_near_midpoint(x):
    """Whether |x| is nearer to a point midway between points of the grid than to the grid."""
    fraction = abs(x) / STEP - (abs(x) / STEP).floor()
    return (fraction >= 0.25) & (fraction <= 0.75)


class Erfcx(SpecialFunction):
    """e^(x²) erfc(x)"""

    name = "erfcx"
    scipy_name = "erfcx"

    def inside(self, x):
        return abs(x) < INFINITY

    def formula(self, precision, x):
        is_negative = x.innermost() < 0
        y = where(is_negative, -x, x)
        is_far = y.innermost() > FAR
        middle = where(is_far, 1, y)
        squared = middle * middle
        total = middle * _weighted_sum(MIDPOINTS, lambda t: 1 / (squared + t)) * (2 * STEP / math.pi)
        is_near = y.innermost() < math.pi / STEP
        near = where(is_near, y, 1)
        correction = 2 * (near * near).exp() / ((near * (2 * math.pi / STEP)).exp() + 1)
        positive = total + where(is_near, correction, 0)
        positive = where(is_far, 1 / math.sqrt(math.pi) / where(is_far, y, 1), positive)
        negative = where(is_negative, y, 0)
        return where(is_negative, 2 * (negative * negative).exp() - positive, positive)

    def edge(self, x):
        return where(x.is_nan(), x, where(x > 0, x.number(0), INFINITY))

    def edge_derivative(self, x):
        return where(x.is_nan(), x, where(x > 0, x.number(0), -INFINITY))


class NormalCdf(SpecialFunction):
    """The probability that a standard normal number is less than x: erfc(−x/√2)/2."""

    name = "ndtr"
    scipy_name = "ndtr"

    def inside(self, x):
        return abs(x) < INFINITY

    def formula(self, precision, x):
        return (x * -math.sqrt(0.5)).erfc() * 0.5

    def edge(self, x):
        return where(x.is_nan(), x, where(x > 0, x.number(1), 0))

    def edge_derivative(self, x):
        return where(x.is_nan(), x, 0)


class LogNormalCdf(SpecialFunction):
    """The logarithm of the probability that a standard normal number is less than x."""

    name = "log_ndtr"
    scipy_name = "log_ndtr"

    def inside(self, x):
        return abs(x) < INFINITY

    def formula(self, precision, x):
        is_low = x.innermost() < -1
        low = where(is_low, x, -1)
        argument = low * -math.sqrt(0.5)
        # In the second derivative, the digits of a short formula cancel.
        is_short = depth(argument) < 2 and isinstance(argument.innermost(), ShortFormula)
        scaled = argument.scaled_erfc() if is_short else Erfcx.formula(self, precision, argument)
        tail = (scaled * 0.5).log() - low * low * 0.5
        return where(is_low, tail, ((where(is_low, 0, x) * math.sqrt(0.5)).erfc() * -0.5).log1p())

    def edge(self, x):
        return where(x.is_nan(), x, where(x > 0, x.number(0), -INFINITY))

    def edge_derivative(self, x):
        return where(x.is_nan(), x, where(x > 0, x.number(0), INFINITY))


class Dawson(SpecialFunction):
    """e^(−x²) ∫₀ˣ e^(t²) dt"""

    name = "dawson"
    scipy_name = "dawsn"

    def inside(self, x):
        return abs(x) < INFINITY

    def formula(self, precision, x):
        size = abs(x.innermost())
        is_far = size > FAR
        near = where(is_far, 1, x)
        squared = near * near
        by_midpoints = ~_is_near_midpoint(near.innermost())
        angle = (near / STEP - ((near / STEP).innermost() + 0.5).floor()) * math.pi
        decay = (-squared).exp()
        # The points that are not used are moved to where their terms have no poles.
        first = where(by_midpoints, squared, -1)
        second = where(by_midpoints, -1, squared)
        middle = near * _weighted_sum(MIDPOINTS, lambda t: 1 / (first - t)) * (2 * STEP / math.pi)
        safe = where(by_midpoints, angle, 0.5)
        middle = middle + decay * (safe.sin() / safe.cos())
        grid = near * _weighted_sum(GRID_POINTS, lambda t: 1 / (second - t)) * (2 * STEP / math.pi)
        safe = where(by_midpoints, 0.5, angle)
        grid = grid - decay * (safe.cos() / safe.sin()) + (STEP / math.pi) / where(by_midpoints, 1, near)
        result = where(by_midpoints, middle, grid) * (math.sqrt(math.pi) / 2)
        return where(is_far, 0.5 / where(is_far, x, 1), result)

    def edge(self, x):
        return where(x.is_nan(), x, where(x > 0, x.number(0.0), -0.0))

    def edge_derivative(self, x):
        return where(x.is_nan(), x, x.number(0))


def faddeeva(z):
    """w(z) = e^(−z²) erfc(−iz); below the real axis 2 e^(−z²) − w(−z)."""
    _, height = z.innermost().parts()
    is_low = height < 0
    upper = where(is_low, -z, z)
    x, y = upper.innermost().parts()
    x = abs(x)
    is_far = (x > 1e6) | (y > 1e6)
    near = where(is_far, 1j, upper)
    by_plain_sum = (y >= math.pi / STEP) & (y >= x)
    by_grid = (y < x) & _is_near_midpoint(x)
    squared = near * near
    factor = near * (2j * STEP / math.pi)
    first, second = where(by_grid, -1, squared), where(by_grid, squared, -1)
    middle = factor * _weighted_sum(MIDPOINTS, lambda t: 1 / (first - t))
    grid = factor * _weighted_sum(GRID_POINTS, lambda t: 1 / (second - t))
    grid = grid + (1j * STEP / math.pi) / where(by_grid, near, 1j)
    safe = where(by_plain_sum, 1j, near)
    turn = (safe * (2j * math.pi / STEP)).exp()  # at most 1 in size
    decay = (-(safe * safe)).exp() * 2 * turn
    correction = where(by_grid, decay / (turn - 1), decay / (turn + 1))
    result = where(by_grid, grid, middle) + where(by_plain_sum, 0, correction)
    inverse = 1 / where(is_far, upper, 1j)
    far = inverse * (inverse * inverse * 0.5 + 1) * (1j / math.sqrt(math.pi))
    result = where(is_far, far, result)
    low = where(is_low, z, 1j)
    return where(is_low, (-(low * low)).exp() * 2 - result, result)


class Faddeeva(SpecialFunction):
    """w(z) = e^(−z²) erfc(−iz)"""

    name = "faddeeva"
    accepts = ("complex",)
    scipy_name = "wofz"
    harmless = (1j,)

    def inside(self, z):
        x, y = z.parts()
        return (abs(x) < INFINITY) & (abs(y) < INFINITY)

    def formula(self, precision, z):
        return faddeeva(z)

    def edge(self, z):
        x, y = z.parts()
        vanishes = ~x.is_nan() & ~y.is_nan() & ((y > -INFINITY) & (abs(x).equals(INFINITY) | (y > 0)))
        return where(vanishes, z.number(0), complex(math.nan, math.nan))

    def edge_derivative(self, z):
        return self.edge(z)


# --- Fresnel's integrals

FRESNEL_SERIES = 1.5  # up to here by power series


def _phase(x):
    """πx²/2 without whole turns; a dual is a polynomial of the second degree around its value."""
    if isinstance(x, Dual):
        return chained(x, _phase, lambda x: x * math.pi)
    squared = x * x
    # The digits that x² has beyond float64: x = high + low, each with half of the digits.
    scaled = x * 134217729.0
    high = scaled - (scaled - x)
    low = x - high
    rest = ((high * high - squared) + high * low * 2) + low * low
    turns = (squared * 0.25).floor()
    return ((squared - turns * 4) + where(x.innermost() < 1e7, rest, 0)) * (math.pi / 2)


def _fresnel(x):
    """S(x) and C(x)."""
    size = abs(x)
    is_small = size < FRESNEL_SERIES
    small = where(is_small, size, 0)
    fourth = small * small * small * small * (math.pi**2 / 4)
    sine = [(-1) ** n / (math.factorial(2 * n + 1) * (4 * n + 3)) for n in range(15, -1, -1)]
    cosine = [(-1) ** n / (math.factorial(2 * n) * (4 * n + 1)) for n in range(15, -1, -1)]
    near = (
        polynomial(fourth, sine) * small * small * small * (math.pi / 2),
        polynomial(fourth, cosine) * small,
    )
    large = where(is_small, 2, size)
    diagonal = large * (math.sqrt(math.pi) / 2)
    a, b = faddeeva(diagonal.with_imaginary(diagonal)).parts()
    angle = _phase(large)
    p, q = angle.cos(), angle.sin()
    real, imaginary = 1 - (p * a - q * b), -(p * b + q * a)  # 1 − e^(iπx²/2) w
    far = (real + imaginary) * 0.5, (real - imaginary) * 0.5
    s, c = where(is_small, near[0], far[0]), where(is_small, near[1], far[1])
    return where(x < 0, -s, s), where(x < 0, -c, c)


class FresnelS(SpecialFunction):
    """∫₀ˣ sin(πt²/2) dt"""

    name = "fresnel_s"
    position = 0

    def on_host(self, x):
        return scipy_function("fresnel")(x)[self.position]

    def inside(self, x):
        return abs(x) < 1e16

    def formula(self, precision, x):
        slope = (lambda x: _phase(x).sin()) if self.position == 0 else (lambda x: _phase(x).cos())
        return chained(x, lambda x: _fresnel(x)[self.position], slope)

    def edge(self, x):
        return where(x.is_nan(), x, where(x > 0, x.number(0.5), -0.5))


class FresnelC(FresnelS):
    """∫₀ˣ cos(πt²/2) dt"""

    name = "fresnel_c"
    position = 1


# --- Owen's T function


@functools.cache
def _gauss_legendre(count: int) -> list[tuple[float, float]]:
    """Points in [0, 1] and weights."""
    points, weights = np.polynomial.legendre.leggauss(count)
    return [(float((t + 1) / 2), float(w / 2)) for t, w in zip(points, weights, strict=True)]


def _owens_integral(h, a):
    """T(h, a) for h ≥ 0 and 0 ≤ a ≤ 1, by Gauss's rule up to where the integrand vanishes."""
    end = where(h * a > 9, 9 / where(h * a > 9, h, 1), a)
    scale = h * h * -0.5
    total = h * 0
    for t, weight in _gauss_legendre(36):
        growth = end * t * (end * t) + 1
        total = total + (scale * growth).exp() / growth * weight
    return total * end * (0.5 / math.pi)


def _owens_t(h, a):
    size, slope = abs(h), abs(a)
    is_steep = slope > 1
    steep = where(is_steep, slope, 1)
    product = size * steep
    inner = _owens_integral(where(is_steep, product, size), where(is_steep, 1 / steep, slope))
    root = math.sqrt(0.5)
    p, q = (size * root).erfc(), (product * root).erfc()  # twice the tails of the normal distribution
    outer = where(size < 0.7, 0.25 - (1 - p) * (1 - q) * 0.25, (p + q - p * q) * 0.25)
    result = where(is_steep, outer - inner, inner)
    return where(a < 0, -result, result)


class OwensT(SpecialFunction):
    """1/2π ∫₀ᵃ e^(−h² (1 + x²)/2) / (1 + x²) dx"""

    name = "owens_t"
    scipy_name = "owens_t"
    harmless = (1.0, 1.0)

    def inside(self, h, a):
        return (abs(h) < 1e100) & (abs(a) < 1e100)

    def formula(self, precision, h, a):
        return _owens_t(h, a)

    def tangent(self, position, dx, out, h, a, orders=()):
        if position == 0:
            slope = mul(exp(mul(square(h), -0.5)), erf(mul(mul(a, h), math.sqrt(0.5))))
            return mul(dx, mul(slope, -0.5 / math.sqrt(2 * math.pi)))
        growth = add(square(a), 1)
        return mul(dx, div(exp(mul(mul(square(h), growth), -0.5)), mul(growth, 2 * math.pi)))

    def edge(self, h, a):
        is_limit = ~h.is_nan() & (abs(a) >= 1e100) & (abs(h) < 1e100)
        tail = (where(is_limit, abs(h), 0) * math.sqrt(0.5)).erfc() * 0.25
        limit = where(a < 0, -tail, tail)
        rest = where((abs(h) >= 1e100) & ~a.is_nan(), h.number(0), math.nan)
        return where(is_limit, limit, rest)


# --- the inverse of the normal distribution

# M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution", 1988; highest powers first.
_CENTRAL = (
    [2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
     1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0],
    [5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
     5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0],
)  # fmt: skip
_MIDDLE = (
    [7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
     3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0],
    [1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
     6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0],
)  # fmt: skip
_TAIL = (
    [2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
     2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0],
    [2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
     1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0],
)  # fmt: skip


def _normal_quantile(p):
    distance = p - 0.5
    is_central = abs(distance) <= 0.425
    tail = (-where(is_central, 0.05, where(distance < 0, p, 1 - p)).log()).sqrt()
    is_middle = tail <= 5
    variables = (0.180625 - distance * distance, tail - 1.6, tail - 5)
    above, below = (
        where(is_central, row[0], where(is_middle, row[1], row[2]))
        for row in zip(
            *(
                map(functools.partial(polynomial, x), rows)
                for x, rows in zip(variables, (_CENTRAL, _MIDDLE, _TAIL), strict=True)
            ),
            strict=True,
        )
    )
    quotient = above / below
    return where(is_central, distance, where(distance < 0, p.number(-1), 1)) * quotient


class NormalQuantile(SpecialFunction):
    """The number below which a standard normal number is with probability p."""

    name = "normal_quantile"
    scipy_name = "ndtri"
    harmless = (0.5,)

    def inside(self, p):
        return (p > 0) & (p < 1)

    def formula(self, precision, p):
        def slope(p):
            quantile = self.formula(precision, p)
            return (quantile * quantile * 0.5).exp() * math.sqrt(2 * math.pi)

        return chained(p, _normal_quantile, slope)

    def edge(self, p):
        return where(p.equals(0), p.number(-INFINITY), where(p.equals(1), p.number(INFINITY), math.nan))

    def edge_derivative(self, p):
        return where(p.equals(0) | p.equals(1), p.number(INFINITY), math.nan)


erfcx_p = Erfcx()
ndtr_p = NormalCdf()
log_ndtr_p = LogNormalCdf()
dawson_p = Dawson()
faddeeva_p = Faddeeva()
fresnel_s_p = FresnelS()
fresnel_c_p = FresnelC()
owens_t_p = OwensT()
normal_quantile_p = NormalQuantile()
