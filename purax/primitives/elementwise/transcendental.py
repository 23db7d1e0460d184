"""Exponentials, logarithms, powers, circular and hyperbolic functions and their inverses.

Floats of less than 32 bits are computed in float32 and rounded once, on the host and in compiled programs alike.
"""

from __future__ import annotations

import math

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray, aval_of
from purax.primitives.elementwise import fast_formulas, precise_formulas
from purax.primitives.elementwise.arithmetic import INEXACT, div, rsqrt, square, sub
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import Elementwise, add, binary, mul, neg, widely
from purax.primitives.elementwise.fast_exponentials import (
    exponential,
    hyperbolic_tangent,
    log_plus_one,
    logarithm,
)
from purax.primitives.elementwise.fast_formulas import (
    arccosine,
    arcsine,
    arctangent,
    arctangent2,
    cosine,
    exponential2,
    fast,
    fast_or_wide,
    is_many,
    is_narrow,
    power,
    sine,
    tangent,
    widened,
)
from purax.primitives.elementwise.formula import Formula, where
from purax.primitives.elementwise.logic import and_, eq, select
from purax.primitives.elementwise.precise_formulas import precise, shared

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


def rounded_once(function):
    """A host rule; float32 is computed in float64, since NumPy's own kernels of it err by 2 to 3 ulps."""

    def host(self, *operands):
        if operands[0].dtype == FLOAT32:
            return function(*operands, dtype=FLOAT64).astype(FLOAT32)
        return function(*operands)

    return host


# --- exponentials and logarithms


class Exp(Elementwise):
    """eˣ"""

    name = "exp"
    row_operation = "exp"
    opcode = "exponential"
    accepts = INEXACT
    host = np.exp

    def emit(self, builder, x):
        formula = Formula(builder, x)
        if dtypes.is_complex(x.dtype):  # 0 at −∞ in every direction, as in C99; XLA multiplies 0 and cos ∞
            real, imaginary = formula.parts()
            is_finite = abs(imaginary) < math.inf
            return where(real.equals(-math.inf) & ~is_finite, 0, formula.exp()).value
        return fast(exponential, self.opcode, formula, least=fast_formulas.VERY_MANY).value

    def derivative(self, out, x):
        return out


class Exp2(Elementwise):
    """2ˣ"""

    name = "exp2"
    accepts = INEXACT
    host = np.exp2

    def emit(self, builder, x):
        if dtypes.is_complex(x.dtype):
            scaled = builder.op("multiply", (x, builder.constant(math.log(2), x.aval)), x.aval)
            return builder.op("exponential", (scaled,), x.aval)
        formula = Formula(builder, x)
        if is_narrow(formula) and is_many(formula, fast_formulas.VERY_MANY):
            return exponential2(formula.convert(FLOAT32)).convert(x.dtype).value
        return formula.number(2).apply("power", formula).value  # exact for whole x

    def derivative(self, out, x):
        return mul(out, math.log(2))


class Expm1(Elementwise):
    """eˣ − 1, accurate near 0."""

    name = "expm1"
    preserves_zero = True
    opcode = "exponential_minus_one"
    accepts = INEXACT
    _by_numpy = rounded_once(np.expm1)

    def host(self, x):
        out = self._by_numpy(x)
        if dtypes.is_complex(x.dtype) and not np.isfinite(x.real).all():  # where NumPy multiplies ∞ and 0
            out = np.where(np.isfinite(x.real), out, np.exp(x) - x.dtype.type(1))
        return out

    def emit(self, builder, x):
        formula = Formula(builder, x)
        if dtypes.is_complex(x.dtype):
            return formula.expm1().value
        if is_narrow(formula) and not is_many(formula, fast_formulas.MANY):
            return widened(self.opcode, formula).value
        return precise_formulas.in_own_format(precise_formulas.expm1, formula).value

    def derivative(self, out, x):
        return add(out, 1)


class Log(Elementwise):
    """The natural logarithm of x."""

    name = "log"
    row_operation = "log"
    accepts = INEXACT
    host = rounded_once(np.log)

    def emit(self, builder, x):
        return fast(logarithm, self.name, Formula(builder, x), least=fast_formulas.VERY_MANY).value

    def tangent(self, position, dx, out, x):
        return div(dx, x)


class Log1p(Elementwise):
    """log(1 + x), accurate near 0."""

    name = "log1p"
    preserves_zero = True
    opcode = "log_plus_one"
    accepts = INEXACT

    def host(self, x):
        return complex_log1p(x) if dtypes.is_complex(x.dtype) else np.log1p(x)

    def emit(self, builder, x):
        formula = Formula(builder, x)
        if x.dtype == FLOAT64:
            return shared(precise_formulas.log1p, formula).value
        return fast_or_wide(log_plus_one, self.opcode, formula, least=fast_formulas.SOME).value

    def tangent(self, position, dx, out, x):
        return div(dx, add(x, 1))


def complex_log1p(x: np.ndarray) -> np.ndarray:
    """log(1 + x): its real part, ½ log((1 + a)² + b²), cancels near 0 and near the circle |1 + x| = 1, so it is
    computed with more digits than the result has."""
    wide = x.astype(np.complex128 if x.dtype == np.complex64 else np.clongdouble)
    a, b = wide.real, wide.imag
    size = np.hypot(1 + a, b)
    near = np.log1p(a * (2 + a) + b * b) / 2
    out = np.empty(x.shape, x.dtype)
    out.real = np.where((size > 0.5) & (size < 2), near, np.log(size))
    out.imag = np.arctan2(b, 1 + a)
    return out


class Logistic(Elementwise):
    """1/(1 + e⁻ˣ)"""

    name = "logistic"
    row_operation = "logistic"
    accepts = INEXACT

    def host(self, x):
        return widely(logistic_function, x)

    def derivative(self, out, x):
        return mul(out, sub(1, out))


def logistic_function(x: np.ndarray) -> np.ndarray:
    one = np.ones((), x.dtype)
    return np.divide(one, np.add(one, np.exp(np.negative(x))))


class Pow(Elementwise):
    """xʸ for floating point x; y has its dtype or is an integer."""

    name = "pow"
    accepts = INEXACT

    def infer(self, x, y):
        if dtypes.is_integer(y.dtype):
            return super().infer(x, ShapedArray(y.shape, x.dtype, x.weak_type))
        return super().infer(x, y)

    def host(self, x, y):
        if x.dtype == np.complex64:
            return np.power(x.astype(np.complex128), y.astype(np.complex128)).astype(x.dtype)
        result = np.power(x, y if y.dtype == x.dtype else y.astype(x.dtype))
        # NumPy takes square roots, which are -0 at -0 and NaN at -∞.
        if y.size and y.item(0) == 0.5 and np.logical_or.reduce(np.signbit(x), None):
            is_half = y == 0.5
            at_zero = np.where(is_half & (x == 0), np.abs(result), result)
            return np.where(is_half & (x == -np.inf), np.abs(x), at_zero)
        return result

    def emit(self, builder, x, y):
        operands = Formula(builder, x), Formula(builder, y).convert(x.dtype)
        return fast(power, "power", *operands, least=fast_formulas.MANY).value

    def tangent(self, position, dx, out, x, y):
        if position == 1:  # xʸ log x, which is 0 at x = 0
            if not isinstance(x, Array):  # a number has no dtype of its own
                x = convert_element_type(x, aval_of(y).dtype)
            return mul(dx, mul(log(select(eq(x, 0), 1, x)), out))
        if dtypes.is_integer(
            aval_of(y).dtype
        ):  # a constant exponent; for 0 the derivative is 0 even at x = 0
            y = convert_element_type(y, aval_of(x).dtype)
            return mul(dx, select(eq(y, 0), 0, mul(y, pow_(x, sub(y, 1)))))
        base = select(and_(eq(x, 0), eq(y, 0)), 1, x)
        return mul(dx, mul(y, pow_(base, sub(y, 1))))


# --- trigonometric functions


def sin_formula(x: Formula) -> Formula:
    """sin of a real x."""
    return fast(sine, "sine", x, least=fast_formulas.MANY)


def cos_formula(x: Formula) -> Formula:
    """cos of a real x."""
    return fast(cosine, "cosine", x, least=fast_formulas.MANY)


class Sin(Elementwise):
    """sin x"""

    name = "sin"
    preserves_zero = True
    accepts = INEXACT
    host = np.sin

    def emit(self, builder, x):
        formula = Formula(builder, x)
        if not dtypes.is_complex(x.dtype):
            return sin_formula(formula).value
        a, b = formula.parts()
        return (
            zero_at_zero(a, sin_formula(a) * cosh_formula(b))
            .with_imaginary(cos_formula(a) * sinh_formula(b))
            .value
        )

    def derivative(self, out, x):
        return cos(x)


class Cos(Elementwise):
    """cos x"""

    name = "cos"
    accepts = INEXACT
    host = np.cos

    def emit(self, builder, x):
        formula = Formula(builder, x)
        if not dtypes.is_complex(x.dtype):
            return cos_formula(formula).value
        a, b = formula.parts()
        return (
            (cos_formula(a) * cosh_formula(b))
            .with_imaginary(-zero_at_zero(a, zero_at_zero(b, sin_formula(a) * sinh_formula(b))))
            .value
        )

    def derivative(self, out, x):
        return neg(sin(x))


class Tan(Elementwise):
    """tan x"""

    name = "tan"
    preserves_zero = True
    accepts = INEXACT
    host = rounded_once(np.tan)

    def emit(self, builder, x):
        return fast_or_wide(tangent, "tan", Formula(builder, x), least=fast_formulas.MANY).value

    def derivative(self, out, x):
        return add(square(out), 1)


class Asin(Elementwise):
    """The angle in [−π/2, π/2] whose sine is x."""

    name = "asin"
    preserves_zero = True
    accepts = INEXACT
    host = np.arcsin

    def emit(self, builder, x):
        formula = Formula(builder, x)
        if x.dtype == FLOAT64:
            return precise_formulas.asin(formula).value
        return fast_or_wide(arcsine, "chlo.asin", formula, least=fast_formulas.MANY).value

    def derivative(self, out, x):
        return rsqrt(sub(1, square(x)))


class Acos(Elementwise):
    """The angle in [0, π] whose cosine is x."""

    name = "acos"
    accepts = INEXACT
    host = np.arccos

    def emit(self, builder, x):
        return fast_or_wide(arccosine, "chlo.acos", Formula(builder, x), least=fast_formulas.MANY).value

    def derivative(self, out, x):
        return neg(rsqrt(sub(1, square(x))))


class Atan(Elementwise):
    """The angle in [−π/2, π/2] whose tangent is x."""

    name = "atan"
    preserves_zero = True
    accepts = INEXACT
    host = rounded_once(np.arctan)

    def emit(self, builder, x):
        return fast(arctangent, "chlo.atan", Formula(builder, x), least=fast_formulas.MANY).value

    def tangent(self, position, dx, out, x):
        return div(dx, add(square(x), 1))


class Atan2(Elementwise):
    """The angle of the point with ordinate x and abscissa y."""

    name = "atan2"
    accepts = INEXACT

    def host(self, x, y):
        if dtypes.is_complex(x.dtype):
            wide = np.complex128 if x.dtype == np.complex64 else np.clongdouble
            a, b = x.astype(wide), y.astype(wide)
            return (-1j * np.log((b + 1j * a) / np.sqrt(a * a + b * b))).astype(x.dtype)
        return rounded_once(np.arctan2)(self, x, y)

    def emit(self, builder, x, y):
        operands = Formula(builder, x), Formula(builder, y)
        return fast(arctangent2, "atan2", *operands, least=fast_formulas.MANY).value

    def tangent(self, position, dx, out, x, y):
        size = add(square(x), square(y))
        return mul(dx, div(y, size) if position == 0 else div(neg(x), size))


# --- hyperbolic functions


class Sinh(Elementwise):
    """(eˣ − e⁻ˣ)/2"""

    name = "sinh"
    preserves_zero = True
    accepts = INEXACT
    host = np.sinh

    def emit(self, builder, x):
        formula = Formula(builder, x)
        if is_narrow(formula) and not is_many(formula, fast_formulas.MANY):
            return widened("chlo.sinh", formula).value
        if not dtypes.is_complex(x.dtype):
            return precise_formulas.in_own_format(precise_formulas.sinh, formula).value
        a, b = formula.parts()
        return (
            (sinh_formula(a) * cos_formula(b))
            .with_imaginary(zero_at_zero(b, cosh_formula(a) * sin_formula(b)))
            .value
        )

    def derivative(self, out, x):
        return cosh(x)


class Cosh(Elementwise):
    """(eˣ + e⁻ˣ)/2"""

    name = "cosh"
    accepts = INEXACT
    host = np.cosh

    def emit(self, builder, x):
        formula = Formula(builder, x)
        if is_narrow(formula) and not is_many(formula, fast_formulas.MANY):
            return widened("chlo.cosh", formula).value
        if not dtypes.is_complex(x.dtype):
            return precise_formulas.in_own_format(precise_formulas.cosh, formula).value
        a, b = formula.parts()
        return (
            (cosh_formula(a) * cos_formula(b))
            .with_imaginary(zero_at_zero(a, zero_at_zero(b, sinh_formula(a) * sin_formula(b))))
            .value
        )

    def derivative(self, out, x):
        return sinh(x)


def zero_at_zero(x: Formula, product: Formula) -> Formula:
    """A product with a factor that is 0 at x = 0, even if the other factor is infinite there."""
    return where(x.equals(0), x, product)


def sinh_formula(x: Formula) -> Formula:
    """sinh of a real x; w² = e^|x| halves the exponent, so that nothing overflows before the result does."""
    size = abs(x)
    near = size.expm1()
    w = (size * 0.5).exp()
    result = where(size < 1, (near + near / (near + 1)) * 0.5, (w * 0.5) * w - (0.5 / w) / w)
    return where(x.has_sign(), -result, result)


def cosh_formula(x: Formula) -> Formula:
    """cosh of a real x; see `sinh_formula`."""
    w = (abs(x) * 0.5).exp()
    return (w * 0.5) * w + (0.5 / w) / w


class Tanh(Elementwise):
    """sinh x / cosh x"""

    name = "tanh"
    preserves_zero = True
    row_operation = "tanh"
    accepts = INEXACT
    host = np.tanh

    def emit(self, builder, x):
        formula = Formula(builder, x)
        if x.dtype == FLOAT64:
            return precise_formulas.tanh(formula).value
        return fast_or_wide(hyperbolic_tangent, self.name, formula, least=fast_formulas.SOME).value

    def derivative(self, out, x):
        return mul(add(1, out), sub(1, out))  # 1 − tanh², without cancellation


class Asinh(Elementwise):
    """The number whose hyperbolic sine is x."""

    name = "asinh"
    preserves_zero = True
    opcode = "chlo.asinh"
    accepts = INEXACT
    host = np.arcsinh

    def emit(self, builder, x):
        if not dtypes.is_complex(x.dtype):
            return precise(precise_formulas.asinh, self.opcode, Formula(builder, x)).value
        # Odd, also on the branch cut, where the sign of a zero real part tells the sides apart.
        formula = Formula(builder, x)
        is_left = formula.parts()[0].has_sign()
        result = where(is_left, -formula, formula).apply("chlo.asinh")
        return where(is_left, -result, result).value

    def derivative(self, out, x):
        return rsqrt(add(square(x), 1))


class Acosh(Elementwise):
    """The number ≥ 0 whose hyperbolic cosine is x."""

    name = "acosh"
    opcode = "chlo.acosh"
    accepts = INEXACT
    host = np.arccosh

    def emit(self, builder, x):
        return precise(precise_formulas.acosh, self.opcode, Formula(builder, x)).value

    def derivative(self, out, x):
        return rsqrt(mul(sub(x, 1), add(x, 1)))


class Atanh(Elementwise):
    """The number whose hyperbolic tangent is x."""

    name = "atanh"
    preserves_zero = True
    opcode = "chlo.atanh"
    accepts = INEXACT
    host = np.arctanh

    def emit(self, builder, x):
        return precise(precise_formulas.atanh, self.opcode, Formula(builder, x)).value

    def tangent(self, position, dx, out, x):
        return div(dx, mul(sub(1, x), add(x, 1)))


exp_p = Exp()
exp2_p = Exp2()
expm1_p = Expm1()
log_p = Log()
log1p_p = Log1p()
logistic_p = Logistic()
pow_p = Pow()
sin_p = Sin()
cos_p = Cos()
tan_p = Tan()
asin_p = Asin()
acos_p = Acos()
atan_p = Atan()
atan2_p = Atan2()
sinh_p = Sinh()
cosh_p = Cosh()
tanh_p = Tanh()
asinh_p = Asinh()
acosh_p = Acosh()
atanh_p = Atanh()


exp = exp_p.bind
exp2 = exp2_p.bind
expm1 = expm1_p.bind
log = log_p.bind
log1p = log1p_p.bind
logistic = logistic_p.bind
pow_ = binary(pow_p)
sin = sin_p.bind
cos = cos_p.bind
tan = tan_p.bind
asin = asin_p.bind
acos = acos_p.bind
atan = atan_p.bind
atan2 = binary(atan2_p)
sinh = sinh_p.bind
cosh = cosh_p.bind
tanh = tanh_p.bind
asinh = asinh_p.bind
acosh = acosh_p.bind
atanh = atanh_p.bind
