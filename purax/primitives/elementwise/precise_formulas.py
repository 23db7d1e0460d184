"""Formulas for functions whose XLA versions lose digits: exponentials, logarithms, hyperbolic functions and inverses.

Their errors are below 1.5 units in the last place, 2 for float32. Exponentials are computed in float32 or float64,
the others in float64, on the CPU for narrower floats, too; on other platforms these stay with XLA's operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from purax.primitives.elementwise import fast_formulas
from purax.primitives.elementwise.formula import Formula, polynomial, where
from purax.primitives.outlined import outlined

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
LOG2 = math.log(2)


class Format(NamedTuple):
    """What the formulas of exponentials need to know about a dtype.

    Attributes:
        bits: the integers of its size.
        digits: of the fraction.
        bias: of the exponent.
        high, low: log 2 in two parts; whole multiples of the first are exact.
        terms: how many terms of the series of eʳ count.
        least, most: where eˣ − 1 is −1, and where eˣ overflows.
    """

    bits: np.dtype
    digits: int
    bias: int
    high: float
    low: float
    terms: int
    least: float
    most: float


FORMATS = {
    FLOAT64: Format(
        np.dtype(np.int64), 52, 1023, 6.93147180369123816490e-01, 1.90821492927058770002e-10, 18, -40, 710
    ),
    FLOAT32: Format(np.dtype(np.int32), 23, 127, 0.693359375, -2.12194440054690583e-4, 9, -20, 89),
}


def precise(formula: Callable[[Formula], Formula], opcode: str, x: Formula) -> Formula:
    """`formula(x)` for real numbers, computed in float64; of narrower floats on the CPU only, and only of many."""
    if x.dtype == FLOAT64:
        return shared(formula, x)
    if not fast_formulas.is_narrow(x):
        return x.apply(opcode)
    if is_few(x):
        return fast_formulas.widened(opcode, x)
    return formula(x.convert(FLOAT64)).convert(x.dtype)


def in_own_format(formula: Callable[[Formula], Formula], x: Formula) -> Formula:
    """`formula(x)` for real numbers, computed in float32 for narrower floats."""
    return formula(x if x.dtype in FORMATS else x.convert(FLOAT32)).convert(x.dtype)


def shared(formula: Callable[[Formula], Formula], x: Formula) -> Formula:
    """`formula(x)`; on the CPU, few numbers get one function for all uses in a program.

    For formulas with a logarithm in them, of which a use takes 60 to 150 ms to compile, and more the more of them XLA
    merges into one loop.
    """
    if x.builder.platform != "cpu" or not is_few(x):
        return formula(x)
    name = formula.__name__
    body = lambda builder, y: formula(Formula(builder, y)).value  # noqa: E731
    return x.like(outlined(x.builder, name, [x.value], x.aval, name, body))


def is_few(x: Formula) -> bool:
    """Whether there are too few numbers for their formula to pay for the time it takes to compile."""
    return not fast_formulas.is_many(x, fast_formulas.MANY)


def with_sign_of(size: Formula, x: Formula) -> Formula:
    return where(x.has_sign(), -size, size)


# --- exponentials


def _power_of_two(n: Formula, dtype: np.dtype) -> Formula:
    """2ⁿ for an integer n that is an exponent of the dtype."""
    form = FORMATS[dtype]
    return (n + form.bias).apply("shift_left", form.digits).bitcast(dtype)


def _reduced(x: Formula, unreduced: float) -> tuple[Formula, Formula]:
    """n and eʳ − 1 with x = n log 2 + r; n is 0 where |x| is below a bound."""
    form = FORMATS[x.dtype]
    whole = where(abs(x) < unreduced, 0, (x * (1 / LOG2)).apply("round_nearest_even"))
    r = (x - whole * form.high) - whole * form.low
    series = [1 / math.factorial(k) for k in range(form.terms, 1, -1)]
    return whole.convert(form.bits), r + r * r * polynomial(r, series)


def expm1(x: Formula) -> Formula:
    """2ⁿ (eʳ − 1) + (2ⁿ − 1), which cancels nowhere; 2ⁿ/4 holds up to where the result overflows."""
    form = FORMATS[x.dtype]
    n, rest = _reduced(x.maximum(form.least).minimum(form.most), 0.7)
    quarter = _power_of_two(n - 2, x.dtype)
    result = where(n.equals(0), rest, (quarter * rest + (quarter - 0.25)) * 4)
    return where(x.is_nan() | x.equals(0), x, result)


def _half_exponential(size: Formula) -> Formula:
    """eˣ/2 for x ≥ 0, up to where it overflows."""
    n, rest = _reduced(size.minimum(FORMATS[size.dtype].most + 0.6), 0.3)
    return (rest + 1) * _power_of_two(n - 2, size.dtype) * 2


_SINE = [1 / math.factorial(2 * k + 1) for k in range(9, 0, -1)]  # (sinh(√z)/√z − 1)/z
_COSINE = [1 / math.factorial(2 * k) for k in range(8, 0, -1)]  # (cosh √z − 1)/z
_DIFFERENCE = [1 / math.factorial(2 * k + 1) - 1 / math.factorial(2 * k) for k in range(8, 0, -1)]


def sinh(x: Formula) -> Formula:
    size = abs(x)
    z = size * size
    half = _half_exponential(size)
    small = size + size * z * polynomial(z, _SINE if x.dtype == FLOAT64 else _SINE[-4:])
    return where(size < math.inf, with_sign_of(where(size < 1, small, half - 0.25 / half), x), x)


def cosh(x: Formula) -> Formula:
    size = abs(x)
    half = _half_exponential(size)
    return where(size < math.inf, half + 0.25 / half, size)


def tanh(x: Formula) -> Formula:
    size = abs(x)
    z = size * size
    small = size * z * (polynomial(z, _DIFFERENCE) / (z * polynomial(z, _COSINE) + 1))
    result = where(size < 0.6, size + small, 1 - 2 / (expm1(size.minimum(22) * 2) + 2))
    return where(x.is_nan(), x, with_sign_of(result, x))


# --- logarithms


def log1p(x: Formula, rest: Formula | float = 0.0) -> Formula:
    """log u with u = 1 + x, and the digits that u has lost (as `u − x`, since XLA takes x + 1 − 1 for x).

    `rest` are digits that x has lost already.
    """
    u = x + 1
    one = u - x
    lost = (((x - (u - one)) + (1 - one)) + rest) / u
    is_plain = (abs(x) > 2.0**-54) & (x < math.inf) & (u > 0)
    small = x / (x + 2)  # log(1 + x) = 2 (t + t³/3 + …) with this t
    z = small * small
    series = x - small * (x - z * polynomial(z, [2 / (2 * k + 1) for k in range(15, 0, -1)]))
    result = where(abs(x) < 0.4, series + rest, u.log() + lost)
    return where(is_plain, result, where(abs(x) < 1, x, u.log()))


def asinh(x: Formula) -> Formula:
    size = abs(x)
    z = size * size
    small = log1p(size + z / ((z + 1).sqrt() + 1))
    middle = (size * 2 + 1 / ((z + 1).sqrt() + size)).log()
    result = where(size < 2, small, where(size < 2.0**28, middle, size.log() + LOG2))
    return with_sign_of(result, x)


def acosh(x: Formula) -> Formula:
    t = x - 1
    root = (t * 2 + t * t).sqrt()
    total = root + t
    small = log1p(total, t - (total - root))
    middle = (x * 2 - 1 / (x + (x * x - 1).sqrt())).log()
    result = where(x < 2, small, where(x < 2.0**28, middle, x.log() + LOG2))
    return where(x < 1, math.nan, result)


_INVERSE_TANGENT = [1 / (2 * k + 1) for k in range(17, 0, -1)]  # (artanh(√z)/√z − 1)/z


def atanh(x: Formula) -> Formula:
    size = abs(x)
    z = size * size
    series = size + size * z * polynomial(z, _INVERSE_TANGENT)
    result = where(size < 0.33, series, log1p(size * 2 / (1 - size)) * 0.5)
    return with_sign_of(where(size.equals(1), math.inf, result), x)


# --- roots and angles


def cbrt(x: Formula) -> Formula:
    """XLA's root and a step of Newton's."""
    y = x.apply("cbrt")
    corrected = y - y * ((y * y * (y / x) - 1) * (1 / 3))
    return where((abs(x) > 2.225073858507201e-308) & (abs(x) < math.inf), corrected, y)  # a normal number


def asin(x: Formula) -> Formula:
    """XLA's halves x on the way, of which nothing may be left."""
    return where(abs(x) < 2.0**-27, x, x.apply("chlo.asin"))
