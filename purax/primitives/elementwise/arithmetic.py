"""Arithmetic on numbers of one dtype: what addition, multiplication, division and roots are made of.

Integers wrap around as XLA's do: dividing by zero gives −1 (all bits set) and the remainder x. A derivative at a
kink is JAX's: ½ for both operands of `max` and `min` at a tie, 1 for `abs` at 0.
"""

from __future__ import annotations

import numpy as np

from purax.core import dtypes
from purax.core.avals import Zero, aval_of
from purax.core.primitive import is_linear
from purax.errors import shown
from purax.primitives.elementwise import extrema_on_host, precise_formulas
from purax.primitives.elementwise.conversion import complex_, conj, convert_element_type, imag, real
from purax.primitives.elementwise.elementwise import Elementwise, add, alike, binary, mul, neg, widely
from purax.primitives.elementwise.fast_formulas import cube_root, fast
from purax.primitives.elementwise.formula import Formula
from purax.primitives.elementwise.logic import ANY, ANYTHING, eq, ge, gt, lt, select
from purax.primitives.shape.broadcasting import sum_to_shape

REAL = ("integer", "float")
INEXACT = ("float", "complex")


# --- sums and products


class Sub(Elementwise):
    """x − y"""

    name = "sub"
    is_linear = True
    is_cheap_to_repeat = True
    row_operation = "sub"
    opcode = "subtract"
    host = np.subtract
    streams = 1
    meets_unevenly = True

    def tangent(self, position, dx, out, x, y):
        return dx if position == 0 else neg(dx)

    def transpose(self, cotangent, x, y):
        return (
            sum_to_shape(cotangent, x.shape) if is_linear(x) else None,
            sum_to_shape(neg(cotangent), y.shape) if is_linear(y) else None,
        )


class Div(Elementwise):
    """x / y; for integers the quotient without its fraction."""

    name = "div"
    is_cheap_to_repeat = True
    row_operation = "div"
    opcode = "divide"
    meets_unevenly = True

    def host(self, x, y):
        if x.dtype.kind in "fc" or dtypes.is_inexact(x.dtype):
            return np.divide(x, y)
        return truncated_quotient(x, y)

    def host_function(self, avals, params):
        return np.divide if dtypes.is_inexact(avals[0].dtype) else self.host

    def streaming_cost(self, x, y):
        return 1 if x.dtype in (np.float32, np.float64) else 0

    def emit(self, builder, x, y):
        return emit_guarded(
            builder, x, y, super().emit, lambda: builder.constant(np.array(-1).astype(x.dtype), x.aval)
        )

    def tangent(self, position, dx, out, x, y):
        # One division serves both positions: the cotangent of y is −out·(cotangent of x).
        return div(dx if position == 0 else mul(neg(dx), out), y)

    def transpose(self, cotangent, x, y):
        return sum_to_shape(div(cotangent, y), x.shape), None


class Rem(Elementwise):
    """x − y·trunc(x/y): the remainder, with the sign of x."""

    name = "rem"
    opcode = "remainder"
    accepts = REAL

    def host(self, x, y):
        if dtypes.is_integer(x.dtype) and not y.all():
            return np.where(y == 0, x, np.fmod(x, without_zeros(y)))
        return np.fmod(x, y)

    def emit(self, builder, x, y):
        return emit_guarded(builder, x, y, super().emit, lambda: x)

    def tangent(self, position, dx, out, x, y):
        if position == 0:
            return dx
        quotient = div(x, y)
        return mul(neg(dx), mul(sign(quotient), floor(abs_(quotient))))


class MulHi(Elementwise):
    """The upper half of the bits of the product of two integers."""

    name = "mulhi"
    accepts = ("integer",)

    def host(self, x, y):
        bits = dtypes.itemsize_bits(x.dtype)
        if bits < 64:
            wide = np.uint64 if dtypes.is_unsigned(x.dtype) else np.int64
            return (np.multiply(x, y, dtype=wide) >> bits).astype(x.dtype)
        return upper_product(x, y)

    def emit(self, builder, x, y):
        # XLA has an operation for this, which its loops on the CPU do not know.
        bits, unsigned = dtypes.itemsize_bits(x.dtype), dtypes.is_unsigned(x.dtype)
        shift = "shift_right_logical" if unsigned else "shift_right_arithmetic"
        if bits < 64:
            wide = x.aval.with_dtype(np.dtype(np.uint64 if unsigned else np.int64))
            factors = builder.convert(x, wide.dtype), builder.convert(y, wide.dtype)
            product = builder.op("multiply", factors, wide)
            return builder.convert(builder.op(shift, (product, builder.constant(bits, wide)), wide), x.dtype)
        a, b = (Formula(builder, v) for v in (x, y))
        half, mask = a.number(32), a.number(0xFFFFFFFF)
        low_a, low_b = a.apply("and", mask), b.apply("and", mask)
        high_a, high_b = a.apply(shift, half), b.apply(shift, half)
        # a·b = high·2⁶⁴ + (cross + other)·2³² + low, each product of halves fits into 64 bits
        carry = (low_a * low_b).apply("shift_right_logical", half)
        cross = high_a * low_b + carry
        other = low_a * high_b + cross.apply("and", mask)
        return (high_a * high_b + cross.apply(shift, half) + other.apply(shift, half)).value


class Square(Elementwise):
    """x²"""

    name = "square"
    preserves_zero = True
    is_cheap_to_repeat = True
    host = np.square
    streams = 1

    def emit(self, builder, x):
        return builder.op("multiply", (x, x), x.aval)

    def derivative(self, out, x):
        return mul(x, 2)


class IntegerPow(Elementwise):
    """xⁿ for a Python integer n = `y`."""

    name = "integer_pow"
    is_cheap_to_repeat = True

    def infer(self, x, *, y):
        if dtypes.is_integer(x.dtype) and y < 0:
            raise TypeError(
                f"integer_pow: integers cannot be raised to the negative power {y}, got {x.str_short()}; convert it "
                "to a float first"
            )
        return super().infer(x)

    def host(self, x, *, y):
        if y == 1:
            return np.array(x)
        result = repeated_square(x, abs(y), np.multiply, lambda: np.ones_like(x))
        return np.divide(np.ones((), x.dtype), result) if y < 0 else result

    def emit(self, builder, x, *, y):
        one = builder.constant(1, x.aval)
        result = repeated_square(x, abs(y), lambda a, b: builder.op("multiply", (a, b), x.aval), lambda: one)
        return builder.op("divide", (one, result), x.aval) if y < 0 else result

    def tangent(self, position, dx, out, x, *, y):
        if y == 0:
            return Zero(aval_of(dx))
        if y == 1:
            return dx
        return mul(dx, mul(integer_pow(x, y - 1), y))


# --- sign and order


class Sign(Elementwise):
    """−1, 0 or 1; x/|x| for complex numbers."""

    name = "sign"
    preserves_zero = True
    is_cheap_to_repeat = True

    def host(self, x):
        result = np.sign(x)
        return np.where(x == 0, x, result) if dtypes.is_floating(x.dtype) else result  # keeps −0

    def emit(self, builder, x):
        if dtypes.is_unsigned(x.dtype):
            return builder.op("minimum", (x, builder.constant(1, x.aval)), x.aval)
        return super().emit(builder, x)

    def tangent(self, position, dx, out, x):
        if not dtypes.is_complex(aval_of(x).dtype):
            return Zero(aval_of(dx))
        # Of dx, only the part across x turns x/|x|: i s Im(s̄ dx)/|x| with s the sign.
        size = abs_(x)
        across = div(imag(mul(dx, conj(out))), select(eq(size, 0), 1, size))
        return mul(out, complex_(0, across))


class Abs(Elementwise):
    """|x|, a real number for complex x."""

    name = "abs"
    preserves_zero = True
    is_cheap_to_repeat = True
    row_operation = "abs"

    def infer(self, x):
        if dtypes.is_unsigned(x.dtype):
            raise TypeError(f"abs takes signed integer, float or complex arrays, got {x.str_short()}")
        return super().infer(x)

    host = np.abs
    streams = 1

    def result_dtype(self, dtype):
        return dtypes.to_real_dtype(dtype)

    def tangent(self, position, dx, out, x):
        if not dtypes.is_complex(aval_of(x).dtype):
            return mul(dx, select(ge(x, 0), number(1, x), -1))
        size = convert_element_type(out, aval_of(x).dtype)
        return real(mul(dx, div(conj(x), select(eq(size, 0), 1, size))))


class Max(Elementwise):
    """The larger of x and y; NaN if one of them is. Complex numbers are ordered by their real parts first."""

    name = "max"
    is_cheap_to_repeat = True
    row_operation = "max"
    opcode = "maximum"
    accepts = ANY
    streams = 1

    def host(self, x, y):
        if dtypes.is_complex(x.dtype):
            return np.where(is_lexically_greater(x, y) & (y == y) | (x != x), x, y)
        return extrema_on_host.maximum(x, y)

    def host_function(self, avals, params):
        dtype = avals[0].dtype
        if dtypes.is_complex(dtype):
            return self.host
        return extrema_on_host.maximum if dtypes.is_floating(dtype) else np.maximum

    def emit(self, builder, x, y):
        if dtypes.is_complex(x.dtype):
            return emit_lexical_winner(builder, x, y, emit_is_lexically_greater(builder, x, y))
        return super().emit(builder, x, y)

    def tangent(self, position, dx, out, x, y):
        mine, other = (x, y) if position == 0 else (y, x)
        return mul(dx, share_of_winner(mine, other, out, gt))


class Min(Elementwise):
    """The smaller of x and y; NaN if one of them is. Complex numbers are ordered by their real parts first."""

    name = "min"
    is_cheap_to_repeat = True
    row_operation = "min"
    opcode = "minimum"
    accepts = ANY
    streams = 1

    def host(self, x, y):
        if dtypes.is_complex(x.dtype):
            return np.where(is_lexically_greater(y, x) & (y == y) | (x != x), x, y)
        return extrema_on_host.minimum(x, y)

    def host_function(self, avals, params):
        dtype = avals[0].dtype
        if dtypes.is_complex(dtype):
            return self.host
        return extrema_on_host.minimum if dtypes.is_floating(dtype) else np.minimum

    def emit(self, builder, x, y):
        if dtypes.is_complex(x.dtype):
            return emit_lexical_winner(builder, x, y, emit_is_lexically_greater(builder, y, x))
        return super().emit(builder, x, y)

    def tangent(self, position, dx, out, x, y):
        mine, other = (x, y) if position == 0 else (y, x)
        return mul(dx, share_of_winner(mine, other, out, lt))


# --- rounding


class Floor(Elementwise):
    """The largest integer ≤ x."""

    name = "floor"
    preserves_zero = True
    is_cheap_to_repeat = True
    accepts = ("float",)
    host = np.floor


class Ceil(Elementwise):
    """The smallest integer ≥ x."""

    name = "ceil"
    preserves_zero = True
    is_cheap_to_repeat = True
    accepts = ("float",)
    host = np.ceil


class Round(Elementwise):
    """The integer nearest to x; a half goes away from zero (`rounding_method` 0) or to the even integer (1)."""

    name = "round"
    preserves_zero = True
    is_cheap_to_repeat = True
    accepts = ("float",)

    def infer(self, x, *, rounding_method):
        if rounding_method not in (0, 1):
            raise ValueError(
                f"round: rounding_method must be 0 (halves away from zero) or 1 (halves to even), got "
                f"{shown(rounding_method)}"
            )
        return super().infer(x)

    def host(self, x, *, rounding_method):
        if rounding_method == 1:
            return np.rint(x)
        below = np.trunc(x)
        return np.where(np.abs(x - below) >= 0.5, below + np.copysign(np.ones((), x.dtype), x), below)

    def emit(self, builder, x, *, rounding_method):
        return builder.op(("round_nearest_afz", "round_nearest_even")[rounding_method], (x,), x.aval)

    def tangent(self, position, dx, out, x, *, rounding_method):
        return Zero(aval_of(dx))


class NextAfter(Elementwise):
    """The floating point number next to x in the direction of y."""

    name = "nextafter"
    opcode = "chlo.next_after"
    accepts = ("float",)
    host = np.nextafter

    def tangent(self, position, dx, out, x, y):
        return dx if position == 0 else Zero(aval_of(dx))


class Copy(Elementwise):
    """x, in memory of its own."""

    name = "copy"
    moves_elements = True
    is_linear = True
    preserves_zero = True
    is_cheap_to_repeat = True
    accepts = ANYTHING

    def host(self, x):
        return np.array(x)

    def emit(self, builder, x):
        return x

    def tangent(self, position, dx, out, x):
        return copy(dx)

    def transpose(self, cotangent, x):
        return (cotangent,)


# --- roots


class Sqrt(Elementwise):
    """√x"""

    name = "sqrt"
    preserves_zero = True
    is_cheap_to_repeat = True
    row_operation = "sqrt"
    accepts = INEXACT
    host = np.sqrt

    def derivative(self, out, x):
        return div(0.5, out)


class Rsqrt(Elementwise):
    """1/√x"""

    name = "rsqrt"
    is_cheap_to_repeat = True
    row_operation = "rsqrt"
    accepts = INEXACT

    def host(self, x):
        return widely(lambda x: np.divide(np.ones((), x.dtype), np.sqrt(x)), x)

    def derivative(self, out, x):
        return mul(div(out, x), -0.5)  # −½ x^(−3/2)


class Cbrt(Elementwise):
    """∛x"""

    name = "cbrt"
    preserves_zero = True
    accepts = ("float",)
    host = np.cbrt

    def emit(self, builder, x):
        formula = Formula(builder, x)
        if x.dtype == np.float64:
            return precise_formulas.cbrt(formula).value
        return fast(cube_root, "cbrt", formula, least=0).value  # XLA's takes subnormal numbers for 0

    def derivative(self, out, x):
        return mul(integer_pow(out, -2), 1 / 3)


# --- what the rules above are made of


def number(value, x):
    """A Python number as a scalar of the dtype of `x`."""
    return alike(value, x)[0]


def truncated_quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x/y towards zero, as XLA divides integers: −1 (all bits set) by zero, and no overflow trap."""
    if not y.all():
        return np.where(y == 0, np.array(-1).astype(x.dtype), truncated_quotient(x, without_zeros(y)))
    quotient = np.floor_divide(x, y)
    if not dtypes.is_unsigned(x.dtype):
        inexact = np.multiply(quotient, y) != x
        quotient = np.where(inexact & ((x < 0) != (y < 0)), quotient + np.ones((), x.dtype), quotient)
    return quotient


def without_zeros(y: np.ndarray) -> np.ndarray:
    """Divisors with ones in place of zeros, of whose division narrow integers warn."""
    return np.where(y == 0, np.ones((), y.dtype), y)


def emit_guarded(builder, x, y, emit, by_zero):
    """`emit(builder, x, y)`, a division; of integers by zero `by_zero()`.

    No integer is ever divided by zero in a program: XLA's passes compute what they know to be constant with the
    processor's instruction, which ends the process. A divisor that is a number of the text needs no guard, others get
    the one that XLA's own code has anyway, so that none of this is left in a kernel.
    """
    if dtypes.is_inexact(x.dtype) or y.number:
        return emit(builder, x, y)
    is_zero = builder.compare("EQ", y, builder.constant(0, y.aval))
    result = emit(builder, x, builder.select(is_zero, builder.constant(1, y.aval), y))
    return builder.select(is_zero, by_zero(), result)


def upper_product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The upper 64 of the 128 bits of x·y, by products of halves."""
    low = np.uint64(2**32 - 1)
    a, b = x.view(np.uint64), y.view(np.uint64)
    a0, a1, b0, b1 = a & low, a >> 32, b & low, b >> 32
    middle = a1 * b0 + (a0 * b0 >> 32)
    other = a0 * b1 + (middle & low)
    upper = a1 * b1 + (middle >> 32) + (other >> 32)
    if x.dtype == np.uint64:
        return upper
    # As unsigned numbers, negative operands are 2⁶⁴ too large.
    upper = upper - np.where(x < 0, b, 0).astype(np.uint64) - np.where(y < 0, a, 0).astype(np.uint64)
    return upper.view(np.int64)


def repeated_square(x, n: int, multiply, one):
    """xⁿ by squaring: about log₂ n multiplications."""
    result = None
    while n:
        if n & 1:
            result = x if result is None else multiply(result, x)
        n >>= 1
        if n:
            x = multiply(x, x)
    return one() if result is None else result


def is_lexically_greater(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x > y for complex numbers, by the real parts and for equal ones by the imaginary parts."""
    return np.where(x.real == y.real, x.imag > y.imag, x.real > y.real)


def emit_is_lexically_greater(builder, x, y):
    """`is_lexically_greater` in StableHLO."""
    part = x.aval.with_dtype(dtypes.to_real_dtype(x.dtype))
    x_real, y_real, x_imag, y_imag = (
        builder.op(name, (v,), part) for name in ("real", "imag") for v in (x, y)
    )
    is_tie = builder.compare("EQ", x_real, y_real)
    return builder.select(
        is_tie, builder.compare("GT", x_imag, y_imag), builder.compare("GT", x_real, y_real)
    )


def emit_lexical_winner(builder, x, y, x_wins):
    """x where it wins or is NaN, else y."""
    x_wins = builder.op("and", (x_wins, builder.compare("EQ", y, y)), x_wins.aval)
    return builder.select(builder.op("or", (x_wins, builder.compare("NE", x, x)), x_wins.aval), x, y)


def share_of_winner(mine, other, out, wins):
    """The derivative of max or min with respect to one operand: 1 where it wins, ½ at a tie, else 0."""
    if dtypes.is_complex(aval_of(mine).dtype):
        won = eq(mine, out)
    else:
        won = wins(mine, other)
    return select(eq(mine, other), 0.5, select(won, number(1, mine), 0))


sub_p = Sub()
div_p = Div()
rem_p = Rem()
mulhi_p = MulHi()
square_p = Square()
integer_pow_p = IntegerPow()
sign_p = Sign()
abs_p = Abs()
max_p = Max()
min_p = Min()
floor_p = Floor()
ceil_p = Ceil()
round_p = Round()
nextafter_p = NextAfter()
copy_p = Copy()
sqrt_p = Sqrt()
rsqrt_p = Rsqrt()
cbrt_p = Cbrt()


sub = binary(sub_p)
div = binary(div_p)
rem = binary(rem_p)
mulhi = binary(mulhi_p)
square = square_p.bind


def integer_pow(x, y: int):
    """xʸ for a Python integer y."""
    return integer_pow_p.bind(x, y=y)


sign = sign_p.bind
abs_ = abs_p.bind
max_ = binary(max_p)
min_ = binary(min_p)
floor = floor_p.bind
ceil = ceil_p.bind


def round_(x, rounding_method: int = 0):
    """The integer nearest to x; a half goes away from zero (`rounding_method` 0) or to the even integer (1)."""
    return round_p.bind(x, rounding_method=rounding_method)


nextafter = binary(nextafter_p)
copy = copy_p.bind
sqrt = sqrt_p.bind
rsqrt = rsqrt_p.bind
cbrt = cbrt_p.bind


__all__ = [
    "abs_", "add", "cbrt", "ceil", "copy", "div", "floor", "integer_pow", "max_", "min_", "mul", "mulhi", "neg",
    "nextafter", "rem", "round_", "rsqrt", "sign", "sqrt", "square", "sub",
]  # fmt: skip
