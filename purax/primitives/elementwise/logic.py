"""Comparisons, operations on bits, and choosing between values.

Comparisons give bool and have no derivative. `select_n` and `clamp` pass derivatives on to the value that is chosen.
"""

from __future__ import annotations

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.primitive import Primitive, is_linear, native
from purax.primitives import layouts
from purax.primitives.elementwise import extrema_on_host
from purax.primitives.elementwise.elementwise import (
    STREAMED,
    Elementwise,
    alike,
    batch_elementwise,
    binary,
    same_shape,
)
from purax.primitives.shape.broadcasting import (
    batch_size,
    batch_to_front,
    broadcast_in_dim,
    materialize,
    sum_to_shape,
)
from purax.xla.aligned_memory import SMALL, aligned_empty

BOOL = np.dtype(np.bool_)
ANY = ("bool", "integer", "float", "complex")
ANYTHING = (*ANY, "extended")
ORDERED = ("bool", "integer", "float")
BITS = ("bool", "integer")


# --- comparisons


class Comparison(Elementwise):
    """Gives a boolean for each element; `direction` is the comparison of StableHLO."""

    is_cheap_to_repeat = True
    accepts = ORDERED
    streams = 1
    direction: str

    def result_dtype(self, dtype):
        return BOOL

    def emit(self, builder, x, y):
        return builder.compare(self.direction, x, y)


class Eq(Comparison):
    """x = y"""

    name = row_operation = "eq"
    direction = "EQ"
    host = np.equal
    accepts = ANYTHING
    tests_equality = True


class Ne(Comparison):
    """x ≠ y"""

    name = row_operation = "ne"
    direction = "NE"
    host = np.not_equal
    accepts = ANYTHING
    tests_equality = True


class Lt(Comparison):
    """x < y"""

    name = row_operation = "lt"
    direction = "LT"
    host = np.less


class Le(Comparison):
    """x ≤ y"""

    name = row_operation = "le"
    direction = "LE"
    host = np.less_equal


class Gt(Comparison):
    """x > y"""

    name = row_operation = "gt"
    direction = "GT"
    host = np.greater


class Ge(Comparison):
    """x ≥ y"""

    name = row_operation = "ge"
    direction = "GE"
    host = np.greater_equal


class TotalOrderComparison(Comparison):
    """A comparison in the total order of floating point numbers: −NaN < −∞ < … < −0 < 0 < … < ∞ < NaN."""

    streams = 0
    compare: np.ufunc

    def host(self, x, y):
        return self.compare(total_order_key(x), total_order_key(y))

    def emit(self, builder, x, y):
        return builder.compare(self.direction, x, y, total_order_kind(x))


class EqTo(TotalOrderComparison):
    """x = y in the total order of floating point numbers."""

    name = "eq_to"
    direction = "EQ"
    compare = np.equal


class LtTo(TotalOrderComparison):
    """x < y in the total order of floating point numbers."""

    name = "lt_to"
    direction = "LT"
    compare = np.less


class LeTo(TotalOrderComparison):
    """x ≤ y in the total order of floating point numbers."""

    name = "le_to"
    direction = "LE"
    compare = np.less_equal


class IsFinite(Elementwise):
    """Whether x is neither infinite nor NaN."""

    name = "is_finite"
    is_cheap_to_repeat = True
    accepts = ("float",)
    host = np.isfinite

    def result_dtype(self, dtype):
        return BOOL


def total_order_key(x: np.ndarray) -> np.ndarray:
    """Integers in the total order of the floating point numbers `x`: for negative ones all bits but the sign flip."""
    if not dtypes.is_inexact(x.dtype):
        return x
    bits = x.view(np.dtype(f"int{8 * x.dtype.itemsize}"))
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def total_order_kind(x) -> str | None:
    return "TOTALORDER" if dtypes.is_inexact(x.dtype) else None


# --- bits


class And(Elementwise):
    """x ∧ y, on each bit for integers."""

    name = "and"
    is_cheap_to_repeat = True
    row_operation = "and"
    accepts = BITS
    host = np.bitwise_and
    streams = 1


class Or(Elementwise):
    """x ∨ y, on each bit for integers."""

    name = "or"
    is_cheap_to_repeat = True
    row_operation = "or"
    accepts = BITS
    host = np.bitwise_or
    streams = 1


class Xor(Elementwise):
    """x ⊕ y, on each bit for integers."""

    name = "xor"
    is_cheap_to_repeat = True
    accepts = BITS
    host = np.bitwise_xor
    streams = 1


class Not(Elementwise):
    """¬x, on each bit for integers."""

    name = "not"
    is_cheap_to_repeat = True
    row_operation = "not"
    accepts = BITS
    host = np.invert
    streams = 1


class ShiftLeft(Elementwise):
    """x · 2ʸ; 0 where y is negative or not less than the number of bits."""

    name = "shift_left"
    accepts = ("integer",)
    host = np.left_shift


class ShiftRightArithmetic(Elementwise):
    """x / 2ʸ rounded down, which repeats the sign bit; as if y were all bits where it is out of range."""

    name = "shift_right_arithmetic"
    accepts = ("integer",)

    def host(self, x, y):
        if dtypes.is_unsigned(x.dtype):  # the highest bit is a sign here
            signed = signed_dtype(x.dtype)
            return np.right_shift(x.view(signed), y.view(signed)).view(x.dtype)
        return np.right_shift(x, y)


class ShiftRightLogical(Elementwise):
    """x / 2ʸ rounded down for the bits of x as an unsigned number; 0 where y is out of range."""

    name = "shift_right_logical"
    accepts = ("integer",)

    def host(self, x, y):
        unsigned = unsigned_dtype(x.dtype)
        return np.right_shift(x.view(unsigned), y.view(unsigned)).view(x.dtype)


class PopulationCount(Elementwise):
    """The number of bits of x that are set."""

    name = "population_count"
    opcode = "popcnt"
    accepts = ("integer",)

    def host(self, x):
        return np.bitwise_count(x.view(unsigned_dtype(x.dtype))).astype(x.dtype)


class Clz(Elementwise):
    """The number of leading zero bits of x."""

    name = "clz"
    opcode = "count_leading_zeros"
    accepts = ("integer",)

    def host(self, x):
        bits = x.view(unsigned_dtype(x.dtype))
        for distance in (1, 2, 4, 8, 16, 32)[: (8 * x.dtype.itemsize).bit_length() - 1]:
            bits = bits | (bits >> distance)  # every bit below the highest set one becomes set
        return (8 * x.dtype.itemsize - np.bitwise_count(bits)).astype(x.dtype)


def unsigned_dtype(dtype) -> np.dtype:
    """The unsigned integer dtype with the bits of `dtype`."""
    return dtypes.as_exact_dtype(f"uint{dtypes.itemsize_bits(dtype)}")


def signed_dtype(dtype) -> np.dtype:
    """The signed integer dtype with the bits of `dtype`."""
    return dtypes.as_exact_dtype(f"int{dtypes.itemsize_bits(dtype)}")


# --- choosing


class SelectN(Primitive):
    """The element of `cases[which]` at each place; `which` is bool (0, 1) or int32, and clamped to the cases there are.

    All operands have one shape, or are scalars that meet every element.
    """

    name = "select_n"
    keeps_ends = True
    moves_elements = True
    is_cheap_to_repeat = True
    row_operation = "select"

    def infer(self, which, *cases):
        if not cases:
            raise ValueError("select_n needs at least one case")
        if which.dtype != BOOL and which.dtype != np.int32:
            raise TypeError(
                f"select_n: select `which` must be boolean or integer type, bool or int32, got {which.dtype.name}; "
                "convert it with `.astype`"
            )
        if which.dtype == BOOL and len(cases) > 2:
            raise TypeError(
                f"select with boolean `which` cannot have > 2 cases, got {len(cases)}; make it int32"
            )
        shape = which.shape
        for case in cases:
            if case.dtype != cases[0].dtype:
                raise TypeError(
                    f"select_n: cases must have one dtype, got {', '.join(c.str_short() for c in cases)}; "
                    "convert them with `.astype`"
                )
            if case.shape != shape and case.shape:
                if shape:
                    raise TypeError(
                        f"select_n: cases and `which` must have one shape, or be scalar; got `which` of shape "
                        f"{which.shape} and cases of shapes {', '.join(str(c.shape) for c in cases)}"
                    )
                shape = case.shape
        return ShapedArray(shape, cases[0].dtype, all(case.weak_type for case in cases))

    def lay_out(self, out, *avals):
        return layouts.merged(self.name, avals, out.shape)

    def host(self, which, *cases):
        if len(cases) == 2 and which.dtype == BOOL:
            return choose(which, cases[1], cases[0])
        result = cases[-1]
        for position in range(len(cases) - 2, -1, -1):
            result = np.where(which <= position, cases[position], result)
        return np.array(np.broadcast_to(result, np.broadcast_shapes(which.shape, result.shape)))

    def streaming_cost(self, which, *cases):
        alike = which.dtype == BOOL and len({which.shape, *[case.shape for case in cases]}) == 1
        if not alike or len(cases) != 2 or cases[0].dtype not in STREAMED or _bits(cases[0].dtype) is None:
            return 0
        return 32 if native is None else 1

    def lower(self, builder, which, *cases):
        which, *cases = same_shape(builder, (which, *cases))
        if len(cases) == 2 and which.dtype == BOOL:
            return builder.select(which, cases[1], cases[0])
        result = cases[-1]
        for position in range(len(cases) - 2, -1, -1):
            is_below = builder.compare("LE", which, builder.constant(position, which.aval))
            result = builder.select(is_below, cases[position], result)
        return result

    def jvp(self, primals, tangents):
        which, *cases = primals
        out = self.bind(*primals)
        if all(type(t) is Zero for t in tangents[1:]):
            return out, Zero.like(out)
        tangent = self.bind(which, *map(materialize, tangents[1:]))
        return out, broadcast_in_dim(tangent, aval_of(out).shape, ())

    def transpose(self, cotangent, which, *cases):
        zero = np.zeros((), aval_of(cotangent).dtype)
        results = [None]
        for position, case in enumerate(cases):
            if is_linear(case):
                parts = [cotangent if i == position else zero for i in range(len(cases))]
                results.append(sum_to_shape(self.bind(which, *parts), case.shape))
            else:
                results.append(None)
        return results

    def batch(self, operands, batch_axes):
        return batch_elementwise(self, operands, batch_axes, {})


def _bits(dtype: np.dtype) -> np.dtype | None:
    """The integers with as many bits."""
    return _INTEGERS.get(dtype.itemsize)


_INTEGERS: dict[int, np.dtype] = {n: np.dtype(f"int{8 * n}") for n in (1, 2, 4, 8)}
_CHUNK = 1 << 14  # elements, so that what is in between stays in the cache


def choose(condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`np.where`. Of many elements the bits are combined, y ⊕ ((x ⊕ y) ∧ mask), since processors mispredict a jump for
    each.
    """
    bits = _bits(x.dtype)
    if condition.size < 2048 or not condition.shape == x.shape == y.shape or bits is None:
        return np.where(condition, x, y)
    out = np.empty(x.shape, x.dtype) if x.nbytes <= SMALL else aligned_empty(x.shape, x.dtype)
    chosen, first, second = condition.ravel().view(np.int8), x.ravel().view(bits), y.ravel().view(bits)
    result = out.reshape(-1).view(bits)
    if native is not None:
        native.choose(chosen, first, second, result)  # the same, in one pass
        return out
    for start in range(0, result.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        mask = np.negative(chosen[part]).astype(bits)
        mask &= first[part] ^ second[part]
        np.bitwise_xor(mask, second[part], out=result[part])
    return out


class Clamp(Elementwise):
    """The number nearest to x between `low` and `high`: min(max(x, low), high). They are scalars, or shaped like x."""

    name = "clamp"
    is_cheap_to_repeat = True
    accepts = ORDERED
    streams = 1

    def infer(self, low, x, high):
        super().infer(low, x, high)
        if any(bound.shape not in ((), x.shape) for bound in (low, high)):
            raise TypeError(
                f"clamp: bounds must be scalars or have the shape {x.shape} of the array, got shapes {low.shape} and "
                f"{high.shape}"
            )
        return ShapedArray(x.shape, x.dtype, x.weak_type)

    def host(self, low, x, high):
        out = aligned_empty(x.shape, x.dtype) if x.nbytes > SMALL else None
        if x.size < 512 or x.dtype not in STREAMED or not (low.all() and high.all()):
            return extrema_on_host.minimum(extrema_on_host.maximum(x, low), high, out)
        return x.clip(low, high, out=out)  # in one pass; it takes longer to begin

    def tangent(self, position, dx, out, low, x, high):
        if position == 0:
            passes = and_(gt(low, x), lt(low, high))
        elif position == 1:
            passes = and_(gt(x, low), lt(x, high))
        else:
            passes = lt(high, x)
        return select(passes, dx, 0)

    def batch(self, operands, batch_axes):
        low, x, high = operands
        if (
            batch_axes[1] is None
        ):  # the array carries the shape of the result, so it carries the batch axis too
            size = batch_size(operands, batch_axes)
            x = batch_to_front(x, None, size)
        return batch_elementwise(self, (low, x, high), (batch_axes[0], batch_axes[1] or 0, batch_axes[2]), {})


eq_p = Eq()
ne_p = Ne()
lt_p = Lt()
le_p = Le()
gt_p = Gt()
ge_p = Ge()
eq_to_p = EqTo()
lt_to_p = LtTo()
le_to_p = LeTo()
is_finite_p = IsFinite()
and_p = And()
or_p = Or()
xor_p = Xor()
not_p = Not()
shift_left_p = ShiftLeft()
shift_right_arithmetic_p = ShiftRightArithmetic()
shift_right_logical_p = ShiftRightLogical()
population_count_p = PopulationCount()
clz_p = Clz()
select_n_p = SelectN()
clamp_p = Clamp()


eq = binary(eq_p)
ne = binary(ne_p)
lt = binary(lt_p)
le = binary(le_p)
gt = binary(gt_p)
ge = binary(ge_p)
eq_to = binary(eq_to_p)
lt_to = binary(lt_to_p)
le_to = binary(le_to_p)
is_finite = is_finite_p.bind
and_ = binary(and_p)
or_ = binary(or_p)
xor = binary(xor_p)
not_ = not_p.bind
shift_left = binary(shift_left_p)
shift_right_arithmetic = binary(shift_right_arithmetic_p)
shift_right_logical = binary(shift_right_logical_p)
population_count = population_count_p.bind
clz = clz_p.bind
select_n = select_n_p.bind


def select(predicate, if_true, if_false):
    """`if_true` where `predicate` holds, else `if_false`; one of the two may be a Python number."""
    if_true, if_false = alike(if_true, if_false)
    return select_n_p.bind(predicate, if_false, if_true)


def clamp(low, x, high):
    """The number nearest to x between `low` and `high`, which may be Python numbers."""
    return clamp_p.bind(alike(low, x)[0], x, alike(x, high)[1])
