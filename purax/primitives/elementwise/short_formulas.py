"""`ShortFormula`: float64 of which nine digits count, for special functions of float32 and narrower floats on the CPU.

Formulas of special functions are written for float64, and XLA's elementary functions of it are calls of scalar
functions, or long. Those here are short polynomials on bits, which the compiler vectorizes: relative errors are below
4·10⁻⁹, of logarithms 10⁻¹⁵, since these cancel. The coefficients are made by `tools/fit_polynomials.py`.
"""

from __future__ import annotations

import math

import numpy as np

from purax.primitives.elementwise.formula import Formula, polynomial, where

FLOAT64, INT64 = np.dtype(np.float64), np.dtype(np.int64)
LOG2 = math.log(2)
LOG2_HIGH, LOG2_LOW = (
    6.93147180369123816490e-01,
    1.90821492927058770002e-10,
)  # multiples of the first are exact
TO_BITS = 1.5 * 2.0**52  # adding it leaves a small integer in the lowest bits
CENTRE = 3.5
FEW = 1 << 12  # numbers whose formulas do not pay for the time that polynomials take to compile

_EXPONENTIAL = (0.0001989108046314215, 0.0013933730716035732, 0.0083333108446534982, 0.041666464197404447,
                0.16666666681704204, 0.50000000135387312)  # (eʳ − 1 − r)/r²  # fmt: skip
_ARTANH = [2 / (2 * k + 1) for k in range(9, 0, -1)]  # 2 (artanh(√z)/√z − 1)/z for z < 0.03
_SINE = (-2.4079237027640584e-08, 2.7536422356975691e-06, -0.00019841086016235079, 0.0083333327665084719,
         -0.16666666663867363)  # (sin √z/√z − 1)/z  # fmt: skip
_COSINE = (2.0180193148070853e-09, -2.7542345823345558e-07, 2.4801455538450964e-05, -0.001388888848253351,
           0.041666666664659784)  # (cos √z − 1 + z/2)/z²  # fmt: skip
_SCALED_ERROR = (-3.5576476247276451e-05, -6.2394571286242189e-05, 0.0005555374814490803, -0.00036902833704987502,
                 -0.0042097594210487128, 0.019137486190325376, -0.048824852434201343, 0.08797231337945427,
                 -0.11508940785691824, 0.097520431326480361, -0.010555603121267094, -0.14000922759040896,
                 1.2423492448711548)  # fmt: skip
"""(1 + 2y) e^(y²) erfc(y) in (y − CENTRE)/(y + CENTRE)"""


class ShortFormula(Formula):
    """A float64 that is computed on the way to a narrower result."""

    __slots__ = ()

    def divide(self, other):
        if self.dtype != FLOAT64:
            return super().divide(other)
        return self * (self.lift(other).reciprocal() if isinstance(other, Formula) else 1 / other)

    def reciprocal(self) -> Formula:
        """1/x from half of the bits of the exponent by Newton's steps, which square the error of 12%.

        XLA cuts programs at divisions whose result is used twice, and keeps all results in memory there.
        """
        y = (self.bitcast(INT64) * -1 + 0x7FDE623822FC16E6).bitcast(FLOAT64)
        for _ in range(4):
            y = y + y * (1 - self * y)
        size = abs(self)
        limit = (self.bitcast(INT64) & -(1 << 63)) | where(
            size < 1, y.bitcast(INT64).number(0x7FF0000000000000), 0
        )
        return where((size > 1e-307) & (size < 1e307), y, where(self.is_nan(), self, limit.bitcast(FLOAT64)))

    def with_imaginary(self, imaginary):
        return Formula(
            self.builder, super().with_imaginary(imaginary).value
        )  # none of these formulas are complex

    def _reduced(self) -> tuple[Formula, Formula]:
        """n 2⁵² as an integer, and eʳ − 1, with x = n log 2 + r."""
        whole = (self * (1 / LOG2)).apply("round_nearest_even")
        r = (self - whole * LOG2_HIGH) - whole * LOG2_LOW
        bits = (whole + TO_BITS).bitcast(INT64).apply("shift_left", 52)
        return bits, r + r * r * polynomial(r, _EXPONENTIAL)

    def exp(self):
        bits, rest = self._reduced()
        result = ((rest + 1).bitcast(INT64) + bits).bitcast(FLOAT64)
        return where(self > 709.0, math.inf, where(self < -708.0, 0.0, result))

    def expm1(self):
        bits, rest = self._reduced()
        scale = (bits + (1023 << 52)).bitcast(FLOAT64)
        result = scale * rest + (scale - 1)
        return where(self > 709.0, math.inf, where(self < -40.0, -1.0, result))

    def log(self):
        bits = self.bitcast(INT64)
        exponent = (bits - 0x3FE6A09E667F3BCD) & ~((1 << 52) - 1)  # k 2⁵², so that √½ ≤ m < √2
        m = (bits - exponent).bitcast(FLOAT64)
        return self._finished(exponent, m - 1, self)

    def log1p(self):
        total = self + 1
        bits = total.bitcast(INT64)
        exponent = (bits - 0x3FE6A09E667F3BCD) & ~((1 << 52) - 1)
        m = (bits - exponent).bitcast(FLOAT64)
        return self._finished(exponent, where(exponent.equals(0), self, m - 1), total)

    def _finished(self, exponent: Formula, f: Formula, x: Formula) -> Formula:
        """k log 2 + log(1 + f), the logarithm of x; log(1 + f) = 2 artanh t with t = f/(2 + f)."""
        k = exponent.apply("shift_right_arithmetic", 52)
        whole = (k + 0x4338000000000000).bitcast(FLOAT64) - TO_BITS
        t = f / (f + 2)
        z = t * t
        result = whole * LOG2_HIGH + (f - t * (f - z * polynomial(z, _ARTANH)) + whole * LOG2_LOW)
        result = where(x < math.inf, result, x)
        return where(x > 0, result, where(x.equals(0), x.number(-math.inf), math.nan))

    def power(self, exponent):
        """For positive numbers."""
        return (self.log() * exponent).exp()

    def scaled_erfc(self) -> Formula:
        """e^(y²) erfc(y) for y ≥ 0."""
        near = self * 2 + 1
        inverse = 1 / (near * (self + CENTRE))
        return polynomial((self - CENTRE) * near * inverse, _SCALED_ERROR) * (self + CENTRE) * inverse

    def erfc(self):
        size = abs(self).minimum(40)
        result = (-(size * size)).exp() * size.scaled_erfc()
        return where(self < 0, 2 - result, result)

    def sine_and_cosine(self) -> tuple[Formula, Formula]:
        """For angles up to π/2."""
        z = self * self
        return self + self * z * polynomial(z, _SINE), 1 - z * 0.5 + z * z * polynomial(z, _COSINE)


class FewFormula(ShortFormula):
    """The same for few numbers, with XLA's own operations, which are compiled in a fraction of the time."""

    __slots__ = ()

    def divide(self, other):
        return Formula.divide(self, other)

    def exp(self):
        return Formula.exp(self)

    def expm1(self):
        return Formula.expm1(self)

    def log(self):
        return Formula.log(self)

    def log1p(self):
        return self.apply("log_plus_one")


def sine_and_cosine(angle):
    """Sine and cosine of an angle between −π/2 and π/2."""
    if isinstance(angle, ShortFormula):
        return angle.sine_and_cosine()
    return angle.sin(), angle.cos()


def widened(builder, x, dtype: np.dtype) -> Formula:
    """A value as the float64 (or complex128) that special functions are computed in: short where that is enough."""
    if dtype != FLOAT64 or x.dtype == FLOAT64 or builder.platform != "cpu":
        return Formula(builder, x).convert(dtype)
    return (FewFormula if math.prod(x.aval.shape) < FEW else ShortFormula)(builder, x).convert(dtype)
