"""Special functions: the error function, the gamma and beta functions and their incomplete kin, Bessel functions.

They take floats. The gamma and beta functions and their kin are computed in float64, whatever the dtype of the
operands, by the formulas of `purax.primitives.special.formulas`, with the digits of `ShortFormula` for narrower
floats on the CPU; the others in programs by XLA's own expansions.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from purax import errors
from purax.primitives.elementwise import fast_formulas
from purax.primitives.elementwise.arithmetic import div, number, sign, square, sub
from purax.primitives.elementwise.elementwise import Elementwise, add, alike, binary, mul, neg, widely
from purax.primitives.elementwise.even_loops import evenly
from purax.primitives.elementwise.formula import (
    Formula,
    HostFormula,
    elementwise_on_host,
    log_gamma_on_host,
    raised,
    where,
)
from purax.primitives.elementwise.logic import eq, select
from purax.primitives.elementwise.short_formulas import ShortFormula, widened
from purax.primitives.elementwise.transcendental import exp, log, log1p
from purax.primitives.special.formulas import (
    SHIFT,
    derivative,
    digamma_coefficients,
    digamma_formula,
    gamma_density_factor,
    hurwitz_zeta,
    incomplete_beta,
    incomplete_gamma,
    moved,
    polygamma_formula,
    scaled_gamma_derivative,
    short_log_gamma,
    signed_hurwitz_zeta,
)

FLOAT64 = np.dtype(np.float64)
INFINITY = math.inf


def on_host(function, *operands, dtype):
    """A function of formulas on NumPy arrays, computed in float64."""
    shape = np.broadcast_shapes(*[x.shape for x in operands])
    formulas = [HostFormula(None, np.broadcast_to(x, shape).astype(FLOAT64)) for x in operands]
    return function(*formulas).value.astype(dtype)


def in_program(function, builder, *operands):
    """A function of formulas on values of a program, computed in float64."""
    formulas = [widened(builder, x, FLOAT64) for x in operands]
    return function(*formulas).convert(operands[0].dtype).value


def precision_of(dtype) -> float:
    """The relative accuracy to which series are summed for results of `dtype`."""
    return 2.3e-16 if dtype == FLOAT64 else 1e-9


# --- the error function


class Erf(Elementwise):
    """2/√π ∫₀ˣ e^(−t²) dt"""

    name = "erf"
    preserves_zero = True
    opcode = "chlo.erf"
    accepts = ("float",)
    cost = 20

    def host(self, x):
        return elementwise_on_host(math.erf, x)

    def derivative(self, out, x):
        return mul(exp(neg(square(x))), 2 / math.sqrt(math.pi))


class Erfc(Elementwise):
    """1 − erf(x), accurate for large x."""

    name = "erfc"
    opcode = "chlo.erfc"
    accepts = ("float",)
    cost = 20

    def host(self, x):
        return elementwise_on_host(math.erfc, x)

    def derivative(self, out, x):
        return mul(exp(neg(square(x))), -2 / math.sqrt(math.pi))


class ErfInv(Elementwise):
    """The number y with erf(y) = x."""

    name = "erf_inv"
    opcode = "chlo.erf_inv"
    accepts = ("float",)
    cost = 20

    def host(self, x):
        return widely(_erf_inv_by_giles if x.dtype != FLOAT64 else _erf_inv_by_iteration, x)

    def emit(self, builder, x):
        return evenly(builder, self.name, x, super().emit)

    def derivative(self, out, x):
        return mul(exp(square(out)), math.sqrt(math.pi) / 2)


# M. Giles, Approximating the erfinv function: polynomials in −log(1 − x²), near and far from x = 0. XLA uses them too,
# so small and large arrays of random normal numbers agree.
_GILES = np.array(
    [
        [-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047,
         1.00167406, 2.83297682],
        [2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164,
         0.246640727, 1.50140941],
    ],
    np.float32,
).T  # fmt: skip


def _erf_inv_by_giles(x: np.ndarray) -> np.ndarray:
    w = -np.log1p(-x * x)
    is_near = w < 5
    w = np.where(is_near, w - np.float32(2.5), np.sqrt(w) - np.float32(3))
    coefficients = _GILES[:, is_near.astype(np.intp)]
    result = coefficients[0]
    for coefficient in coefficients[1:]:
        result = result * w + coefficient
    return np.where(np.abs(x) == 1, x * np.float32(np.inf), result * x)


def _erf_inv_by_iteration(x: np.ndarray) -> np.ndarray:
    """Winitzki's approximation (relative error 2e−3), then two of Halley's steps, which cube the error."""
    size = np.abs(x)
    log_term = np.log1p(-size * size)
    half = 2 / (math.pi * 0.147) + log_term / 2
    y = np.sqrt(np.sqrt(half * half - log_term / 0.147) - half)
    is_central = size < 0.5  # else 1 − x is exact, and the difference of erfc's has more digits
    for _ in range(2):
        excess = np.where(
            is_central,
            elementwise_on_host(math.erf, y) - size,
            (1 - size) - elementwise_on_host(math.erfc, y),
        )
        step = excess / (2 / math.sqrt(math.pi) * np.exp(-y * y))
        y = y - step / (1 + y * step)
    return np.copysign(np.where(size == 1, np.inf, np.where(size == 0, 0, y)), x)


# --- the gamma function


class Lgamma(Elementwise):
    """log |Γ(x)|"""

    name = "lgamma"
    opcode = "chlo.lgamma"
    accepts = ("float",)
    cost = 20

    def host(self, x):
        return elementwise_on_host(log_gamma_on_host, x)

    def emit(self, builder, x):
        formula = Formula(builder, x)
        if fast_formulas.is_narrow(formula) and not fast_formulas.is_many(formula, fast_formulas.SOME):
            return fast_formulas.widened(self.opcode, formula).value
        if isinstance(widened(builder, x, FLOAT64), ShortFormula):
            return in_program(short_log_gamma, builder, x)
        return super().emit(builder, x)

    def derivative(self, out, x):
        return digamma(x)


class Digamma(Elementwise):
    """ψ(x) = Γ'(x)/Γ(x); NaN at the poles but 0, where the sign of x tells that of infinity."""

    name = "digamma"
    accepts = ("float",)
    cost = 20

    def host(self, x):
        return elementwise_on_host(_digamma, x)

    def emit(self, builder, x):
        formula = Formula(builder, x)
        infinity = where(formula.has_sign(), formula.number(INFINITY), -INFINITY)
        if fast_formulas.is_narrow(formula) and not fast_formulas.is_many(formula, fast_formulas.SOME):
            result = fast_formulas.widened("chlo.digamma", formula)
        elif isinstance(widened(builder, x, FLOAT64), ShortFormula):
            return in_program(_digamma_formula, builder, x)
        else:
            result = formula.apply("chlo.digamma")
        return where(formula.equals(0), infinity, result).value

    def derivative(self, out, x):
        return polygamma(number(1, x), x)


def _digamma(x: float) -> float:
    """Up to SHIFT by ψ(x) = ψ(x + 1) − 1/x, from there by Stirling's series; for x ≤ 0 by reflection."""
    if not math.isfinite(x):
        return x if x > 0 else math.nan
    if x == 0:
        return math.copysign(math.inf, -x)
    if x < 0:
        fraction = x - math.floor(x + 0.5)
        return math.nan if fraction == 0 else _digamma(1 - x) - math.pi / math.tan(math.pi * fraction)
    total = 0.0
    while x < SHIFT:
        total -= 1 / x
        x += 1
    square = 1 / (x * x)
    series = 0.0
    for coefficient in digamma_coefficients():
        series = series * square + coefficient
    return total + math.log(x) - 0.5 / x - series * square


def _digamma_formula(x: Formula) -> Formula:
    is_finite = abs(x) < INFINITY
    edge = where(x.equals(INFINITY), x, math.nan)
    result = where(is_finite, digamma_formula(where(is_finite, x, 1)), edge)
    return where(x.equals(0), where(x.has_sign(), x.number(INFINITY), -INFINITY), result)


class Polygamma(Elementwise):
    """The derivative of order m of ψ at x, for whole m ≥ 0."""

    name = "polygamma"
    lowers_to_loops = True
    accepts = ("float",)
    cost = 20

    def host(self, m, x):
        return on_host(_polygamma, m, x, dtype=x.dtype)

    def emit(self, builder, m, x):
        return in_program(_polygamma, builder, m, x)

    def tangent(self, position, dx, out, m, x):
        if position == 0:
            _refuse_derivative(self, "its first operand, the order m")
        return mul(dx, polygamma(add(m, 1), x))


def _polygamma(m: Formula, x: Formula) -> Formula:
    is_order = (m >= 1) & m.equals(m.floor())
    is_finite = abs(x) < INFINITY
    inside = polygamma_formula(where(is_order, m, 1), where(is_finite, x, 1))
    is_pole = (x <= 0) & x.equals(x.floor()) & is_finite
    m_is_even = (m * 0.5).floor().equals(m * 0.5)
    inside = where(is_pole, where(m_is_even, m.number(math.nan), INFINITY), inside)
    result = where(is_finite, inside, where(x.equals(INFINITY), m * 0, math.nan))
    return where(is_order, result, where(m.equals(0), _digamma_formula(x), math.nan))


class Zeta(Elementwise):
    """Hurwitz's zeta function Σ (q + k)⁻ˢ over k ≥ 0, with operands s and q."""

    name = "zeta"
    lowers_to_loops = True
    accepts = ("float",)
    cost = 20

    def host(self, s, q):
        return on_host(_zeta, s, q, dtype=s.dtype)

    def emit(self, builder, s, q):
        return in_program(_zeta, builder, s, q)

    def tangent(self, position, dx, out, s, q):
        if position == 0:
            return mul(dx, zeta_derivative_p.bind(s, q, orders=(1, 0)))
        return mul(dx, mul(neg(s), zeta(add(s, 1), q)))


class ZetaDerivative(Elementwise):
    """A derivative of Hurwitz's zeta function, for s > 1 and q > 0; `orders` says how often with respect to s and q."""

    name = "zeta_derivative"
    lowers_to_loops = True
    accepts = ("float",)
    cost = 20

    def infer(self, s, q, *, orders):
        if len(orders) != 2 or min(orders) < 0:
            raise ValueError(f"{self.name}: orders must be two integers ≥ 0, got {orders}")
        return super().infer(s, q)

    def host(self, s, q, *, orders):
        return on_host(functools.partial(_zeta_derivative, orders), s, q, dtype=s.dtype)

    def emit(self, builder, s, q, *, orders):
        return in_program(functools.partial(_zeta_derivative, orders), builder, s, q)

    def tangent(self, position, dx, out, s, q, *, orders):
        orders = tuple(n + (i == position) for i, n in enumerate(orders))
        return mul(dx, self.bind(s, q, orders=orders))


def _zeta_derivative(orders, s: Formula, q: Formula) -> Formula:
    is_inside = (s > 1) & (s < INFINITY) & (q > 0) & (q < INFINITY)
    result = _differentiated(hurwitz_zeta, orders, (where(is_inside, s, 2), where(is_inside, q, 1)))
    return where(is_inside, result, math.nan)


def _differentiated(function, orders, variables) -> Formula:
    """A derivative of a function of formulas; `orders` says how often with respect to each variable."""
    variables = list(variables)
    level = 0
    for position, order in enumerate(orders):  # each direction is a level of duals of its own
        for _ in range(order):
            variables[position] = moved(raised(variables[position], level), 1)
            level += 1
    return derivative(function(*variables), level)


def _zeta(s: Formula, q: Formula) -> Formula:
    is_inside = (s > 1) & (s < INFINITY) & (abs(q) < INFINITY)
    result = signed_hurwitz_zeta(where(is_inside, s, 2), where(is_inside, q, 1))
    is_pole = (q <= 0) & q.equals(q.floor())
    s_is_even = (s * 0.5).floor().equals(s * 0.5)
    result = where(is_pole, where(s_is_even, s.number(INFINITY), math.nan), result)
    outside = where(s.equals(1), s.number(INFINITY), where((s > 1) & q.equals(INFINITY), s * 0, math.nan))
    return where(is_inside, result, outside)


# --- incomplete gamma functions


class Igamma(Elementwise):
    """The regularized lower incomplete gamma function P(a, x) = 1/Γ(a) ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt."""

    name = "igamma"
    lowers_to_loops = True
    accepts = ("float",)
    cost = 20

    def host(self, a, x):
        return on_host(functools.partial(_lower_gamma, precision_of(a.dtype)), a, x, dtype=a.dtype)

    def emit(self, builder, a, x):
        return in_program(functools.partial(_lower_gamma, precision_of(a.dtype)), builder, a, x)

    def tangent(self, position, dx, out, a, x):
        return mul(dx, igamma_grad_a(a, x) if position == 0 else gamma_density(a, x))


class Igammac(Elementwise):
    """The regularized upper incomplete gamma function Q(a, x) = 1 − P(a, x)."""

    name = "igammac"
    lowers_to_loops = True
    accepts = ("float",)
    cost = 20

    def host(self, a, x):
        return on_host(functools.partial(_upper_gamma, precision_of(a.dtype)), a, x, dtype=a.dtype)

    def emit(self, builder, a, x):
        return in_program(functools.partial(_upper_gamma, precision_of(a.dtype)), builder, a, x)

    def tangent(self, position, dx, out, a, x):
        return neg(mul(dx, igamma_grad_a(a, x) if position == 0 else gamma_density(a, x)))


class IgammaGradA(Elementwise):
    """The derivative of P(a, x) with respect to a; `order` 2 and more are further derivatives."""

    name = "igamma_grad_a"
    lowers_to_loops = True
    accepts = ("float",)
    cost = 20

    def infer(self, a, x, *, order=1):
        return super().infer(a, x)

    def host(self, a, x, *, order=1):
        return on_host(
            functools.partial(_gamma_derivative, precision_of(a.dtype), order), a, x, dtype=a.dtype
        )

    def emit(self, builder, a, x, *, order=1):
        return in_program(functools.partial(_gamma_derivative, precision_of(a.dtype), order), builder, a, x)

    def tangent(self, position, dx, out, a, x, *, order=1):
        if position == 0:
            return mul(dx, igamma_grad_a(a, x, order + 1))
        # ∂ⁿp/∂aⁿ of the density p by Leibniz' rule on ∂p/∂a = p L with L = log x − ψ(a).
        slopes = [sub(log(x), digamma(a))] + [neg(polygamma(number(k, a), a)) for k in range(1, order)]
        derivatives = [gamma_density(a, x)]
        for n in range(order):
            terms = [mul(mul(derivatives[n - k], slopes[k]), math.comb(n, k)) for k in range(n + 1)]
            derivatives.append(functools.reduce(add, terms))
        return mul(dx, derivatives[order])


class RandomGammaGrad(Elementwise):
    """dx/da along P(a, x) = constant: how a sample x of the gamma distribution moves with its parameter a."""

    name = "random_gamma_grad"
    lowers_to_loops = True
    accepts = ("float",)
    cost = 20

    def host(self, a, x):
        return on_host(functools.partial(_sample_derivative, precision_of(a.dtype)), a, x, dtype=a.dtype)

    def emit(self, builder, a, x):
        return in_program(functools.partial(_sample_derivative, precision_of(a.dtype)), builder, a, x)

    def tangent(self, position, dx, out, a, x):
        # out = −(∂P/∂a)/p with ∂²P/∂a∂x = ∂p/∂a = p L and L = log x − ψ(a)
        slope = sub(log(x), digamma(a))
        if position == 0:
            second = div(igamma_grad_a(a, x, 2), gamma_density(a, x))
            return mul(dx, neg(add(second, mul(out, slope))))
        return mul(dx, neg(add(slope, mul(out, sub(div(sub(a, 1), x), 1)))))


def _inside(a: Formula, x: Formula):
    """Where the incomplete gamma functions are neither trivial nor undefined, and harmless operands elsewhere."""
    is_inside = (a > 0) & (a < INFINITY) & (x > 0) & (x < INFINITY)
    return is_inside, where(is_inside, a, 1), where(is_inside, x, 1)


def _lower_gamma(precision: float, a: Formula, x: Formula) -> Formula:
    is_inside, safe_a, safe_x = _inside(a, x)
    p, _ = incomplete_gamma(precision, safe_a, safe_x)
    is_zero = (x.equals(0) & (a > 0)) | (a.equals(INFINITY) & (x >= 0) & (x < INFINITY))
    is_one = (a.equals(0) & (x > 0)) | (x.equals(INFINITY) & (a >= 0) & (a < INFINITY))
    return where(is_inside, p, where(is_zero, a.number(0), where(is_one, a.number(1), math.nan)))


def _upper_gamma(precision: float, a: Formula, x: Formula) -> Formula:
    is_inside, safe_a, safe_x = _inside(a, x)
    _, q = incomplete_gamma(precision, safe_a, safe_x)
    is_one = (x.equals(0) & (a > 0)) | (a.equals(INFINITY) & (x >= 0) & (x < INFINITY))
    is_zero = (a.equals(0) & (x > 0)) | (x.equals(INFINITY) & (a >= 0) & (a < INFINITY))
    return where(is_inside, q, where(is_zero, a.number(0), where(is_one, a.number(1), math.nan)))


def _gamma_derivative(precision: float, order: int, a: Formula, x: Formula) -> Formula:
    is_inside, safe_a, safe_x = _inside(a, x)
    variable = moved(safe_a, order - 1)
    first = gamma_density_factor(variable, safe_x) * scaled_gamma_derivative(precision, variable, safe_x)
    is_zero = (a > 0) & (a < INFINITY) & (x.equals(0) | x.equals(INFINITY))
    return where(is_inside, derivative(first, order - 1), where(is_zero, a.number(0), math.nan))


def _sample_derivative(precision: float, a: Formula, x: Formula) -> Formula:
    is_inside, safe_a, safe_x = _inside(a, x)
    result = -scaled_gamma_derivative(precision, safe_a, safe_x) * safe_x / safe_a
    return where(is_inside, result, where((a > 0) & (a < INFINITY) & x.equals(0), a.number(0), math.nan))


# --- the incomplete beta function


class RegularizedIncompleteBeta(Elementwise):
    """I(x; a, b) = 1/B(a, b) ∫₀ˣ tᵃ⁻¹ (1 − t)ᵇ⁻¹ dt, with operands a, b, x."""

    name = "regularized_incomplete_beta"
    lowers_to_loops = True
    accepts = ("float",)
    cost = 20

    def host(self, a, b, x):
        return on_host(functools.partial(_beta, precision_of(a.dtype)), a, b, x, dtype=a.dtype)

    def emit(self, builder, a, b, x):
        return in_program(functools.partial(_beta, precision_of(a.dtype)), builder, a, b, x)

    def tangent(self, position, dx, out, a, b, x):
        if position == 2:
            return mul(dx, beta_density(a, b, x))
        orders = tuple(int(i == position) for i in range(3))
        return mul(dx, regularized_incomplete_beta_derivative_p.bind(a, b, x, orders=orders))


class RegularizedIncompleteBetaDerivative(Elementwise):
    """A derivative of I(x; a, b); `orders` says how often with respect to a, b and x."""

    name = "regularized_incomplete_beta_derivative"
    lowers_to_loops = True
    accepts = ("float",)
    cost = 20

    def infer(self, a, b, x, *, orders):
        if len(orders) != 3 or min(orders) < 0:
            raise ValueError(f"{self.name}: orders must be three integers ≥ 0, got {orders}")
        return super().infer(a, b, x)

    def host(self, a, b, x, *, orders):
        function = functools.partial(_beta_derivative, precision_of(a.dtype), orders)
        return on_host(function, a, b, x, dtype=a.dtype)

    def emit(self, builder, a, b, x, *, orders):
        function = functools.partial(_beta_derivative, precision_of(a.dtype), orders)
        return in_program(function, builder, a, b, x)

    def tangent(self, position, dx, out, a, b, x, *, orders):
        orders = tuple(n + (i == position) for i, n in enumerate(orders))
        return mul(dx, self.bind(a, b, x, orders=orders))


def _beta(precision: float, a: Formula, b: Formula, x: Formula) -> Formula:
    is_inside = (a > 0) & (a < INFINITY) & (b > 0) & (b < INFINITY) & (x > 0) & (x < 1)
    operands = [where(is_inside, v, n) for v, n in ((a, 1), (b, 1), (x, 0.5))]
    result = incomplete_beta(precision, *operands)
    is_defined = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1)
    is_defined = is_defined & ~(a.equals(0) & b.equals(0)) & ~(a.equals(INFINITY) & b.equals(INFINITY))
    is_zero = x.equals(0) | ((b.equals(0) | a.equals(INFINITY)) & (x < 1))
    is_one = x.equals(1) | a.equals(0) | b.equals(INFINITY)
    edge = where(is_one, a.number(1), math.nan)
    edge = where(is_zero & ~(x.equals(0) & a.equals(0)), 0, edge)
    return where(is_inside, result, where(is_defined, edge, math.nan))


def _beta_derivative(precision: float, orders, a: Formula, b: Formula, x: Formula) -> Formula:
    is_inside = (a > 0) & (a < INFINITY) & (b > 0) & (b < INFINITY) & (x > 0) & (x < 1)
    variables = [where(is_inside, v, n) for v, n in ((a, 1), (b, 1), (x, 0.5))]
    result = _differentiated(functools.partial(incomplete_beta, precision), orders, variables)
    return where(is_inside, result, math.nan)


# --- modified Bessel functions


class BesselI0e(Elementwise):
    """e^(−|x|) I₀(x)"""

    name = "bessel_i0e"
    accepts = ("float",)
    cost = 20

    def host(self, x):
        return bessel_on_host(x.astype(FLOAT64), 0).astype(x.dtype)

    def emit(self, builder, x):
        return _bessel_in_program(builder, x, 0)

    def derivative(self, out, x):
        return sub(bessel_i1e(x), mul(sign(x), out))


class BesselI1e(Elementwise):
    """e^(−|x|) I₁(x)"""

    name = "bessel_i1e"
    accepts = ("float",)
    cost = 20

    def host(self, x):
        return bessel_on_host(x.astype(FLOAT64), 1).astype(x.dtype)

    def emit(self, builder, x):
        return _bessel_in_program(builder, x, 1)

    def derivative(self, out, x):
        is_zero = eq(x, 0)
        ratio = select(is_zero, 0.5, div(out, select(is_zero, 1, x)))
        return sub(sub(bessel_i0e(x), mul(sign(x), out)), ratio)


def bessel_on_host(x: np.ndarray, n: int) -> np.ndarray:
    """e^(−|x|) Iₙ(x): the trapezoidal rule on 1/π ∫ e^(x (cos t − 1)) cos nt dt; Hankel's expansion for large x."""
    size = np.abs(x)
    pi = 4 * np.arctan(
        x.dtype.type(1)
    )  # of the dtype's own precision, which may be more than that of float64
    angles = np.arange(41, dtype=x.dtype) * (pi / 40)
    weights = np.cos(n * angles) / 40
    weights[[0, -1]] /= 2
    near = np.exp(np.multiply.outer(np.minimum(size, 30), -2 * np.sin(angles / 2) ** 2)) @ weights
    far = np.maximum(size, 30)
    term = total = np.ones_like(far)
    for k in range(1, 20):
        term = term * ((2 * k - 1) ** 2 - 4 * n * n) / (8 * k) / far
        total = total + term
    result = np.where(size < 30, near, total / np.sqrt(2 * pi * far))
    result = np.where(np.isinf(size), 0, result)
    if n % 2:  # near 0 the sum above cancels: x/2 Σ (x²/4)ᵏ/(k! (k + 1)!)
        small = np.minimum(size, 2)
        series = np.zeros_like(small)
        for k in range(15, -1, -1):
            series = series * (small * small / 4) + 1 / (math.factorial(k) * math.factorial(k + 1))
        result = np.where(size < 2, small / 2 * series * np.exp(-small), result)
        return np.copysign(result, x)
    return result


_BESSEL_SPLIT = 8.0


@functools.cache
def _bessel_coefficients(n: int, precision: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Chebyshev coefficients, highest first, of e⁻ˣ Iₙ(x)/xⁿ on [0, 8] and of √x e⁻ˣ Iₙ(x) as a function of 8/x."""

    def near(t):
        x = (t + 1) * (_BESSEL_SPLIT / 2)
        return bessel_on_host(x, n) / x**n

    def far(t):
        x = _BESSEL_SPLIT / ((t + 1) / 2)
        return bessel_on_host(x, n) * np.sqrt(x)

    rows = []
    order = np.arange(
        36, dtype=np.longdouble
    )  # each coefficient is right to its last digit, as their sum cancels
    angles = (order + 0.5) * (4 * np.arctan(np.longdouble(1)) / len(order))
    for function in (near, far):
        coefficients = (
            np.cos(np.multiply.outer(order, angles)) @ function(np.cos(angles)) * (2 / np.longdouble(36))
        )
        coefficients[0] /= 2
        kept = np.nonzero(np.abs(coefficients) > precision * np.abs(coefficients).max())[0].max() + 1
        rows.append(tuple(float(c) for c in coefficients[:kept][::-1]))
    return rows[0], rows[1]


def chebyshev_sum(t: Formula, coefficients) -> Formula:
    """Σ cₖ Tₖ(t) by Clenshaw's recurrence, coefficients highest first."""
    twice = t * 2
    previous, current = t * 0, t * 0
    for coefficient in coefficients[:-1]:
        previous, current = current, twice * current - previous + coefficient
    return t * current - previous + coefficients[-1]


def _bessel_in_program(builder, operand, n: int):
    x = Formula(builder, operand)
    if x.dtype.itemsize < 4:
        x = x.convert(np.float32)
    near_coefficients, far_coefficients = _bessel_coefficients(n, 1e-17 if x.dtype == FLOAT64 else 1e-9)
    size = abs(x)
    near = chebyshev_sum(size.minimum(_BESSEL_SPLIT) * (2 / _BESSEL_SPLIT) - 1, near_coefficients)
    far_size = size.maximum(_BESSEL_SPLIT)
    far = chebyshev_sum((2 * _BESSEL_SPLIT) / far_size - 1, far_coefficients) / far_size.sqrt()
    if n % 2:
        near = near * x
        far = where(x < 0, -far, far)
    result = where(size < _BESSEL_SPLIT, near, far)
    return where(x.is_nan(), x, result).convert(operand.dtype).value


# --- what users and rules call

erf_p = Erf()
erfc_p = Erfc()
erf_inv_p = ErfInv()
lgamma_p = Lgamma()
digamma_p = Digamma()
polygamma_p = Polygamma()
zeta_p = Zeta()
zeta_derivative_p = ZetaDerivative()
igamma_p = Igamma()
igammac_p = Igammac()
igamma_grad_a_p = IgammaGradA()
random_gamma_grad_p = RandomGammaGrad()
regularized_incomplete_beta_p = RegularizedIncompleteBeta()
regularized_incomplete_beta_derivative_p = RegularizedIncompleteBetaDerivative()
bessel_i0e_p = BesselI0e()
bessel_i1e_p = BesselI1e()


erf = erf_p.bind
erfc = erfc_p.bind
erf_inv = erf_inv_p.bind
lgamma = lgamma_p.bind
digamma = digamma_p.bind
polygamma = binary(polygamma_p)
zeta = binary(zeta_p)
igamma = binary(igamma_p)
igammac = binary(igammac_p)


def igamma_grad_a(a, x, order: int = 1):
    """The derivative of `igamma` with respect to a."""
    operands = alike(a, x)
    return igamma_grad_a_p.bind(*operands) if order == 1 else igamma_grad_a_p.bind(*operands, order=order)


random_gamma_grad = binary(random_gamma_grad_p)
regularized_incomplete_beta = regularized_incomplete_beta_p.bind
bessel_i0e = bessel_i0e_p.bind
bessel_i1e = bessel_i1e_p.bind


def gamma_density(a, x):
    """xᵃ⁻¹ e⁻ˣ / Γ(a)"""
    return exp(sub(sub(mul(sub(a, 1), log(x)), x), lgamma(a)))


def beta_density(a, b, x):
    """xᵃ⁻¹ (1 − x)ᵇ⁻¹ / B(a, b)"""
    log_beta = sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))
    powers = add(mul(sub(a, 1), log(x)), mul(sub(b, 1), log1p(neg(x))))
    return exp(sub(powers, log_beta))


def _refuse_derivative(primitive: Elementwise, operand: str):
    raise errors.MissingRuleError(
        f"{primitive.name} has no derivative with respect to {operand}; hold it constant"
    )
