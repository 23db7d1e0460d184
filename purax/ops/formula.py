"""`Formula`: StableHLO values with Python's operators, for `lower` rules that are formulas.

All operands of an operation have one shape; Python numbers become constants of the dtype of the other operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray
from purax.xla.stablehlo import Builder, Value

Number = bool | int | float | complex


class Formula:
    """A value that is being computed by a program."""

    __slots__ = ("builder", "value")

    def __init__(self, builder: Builder, value: Value):
        self.builder = builder
        self.value = value

    aval = property(lambda self: self.value.aval)
    dtype = property(lambda self: self.value.aval.dtype)

    def number(self, number: Number) -> Formula:
        """A constant of this value's shape and dtype."""
        return Formula(self.builder, self.builder.constant(number, self.aval))

    def _other(self, other: Formula | Number) -> Formula:
        return other if isinstance(other, Formula) else self.number(other)

    def apply(self, opcode: str, *others: Formula | Number, dtype: Any = None) -> Formula:
        """The operation `opcode` on this value and others; `dtype` is that of the result if it is another one."""
        operands = [self.value, *(self._other(other).value for other in others)]
        aval = self.aval if dtype is None else self.aval.with_dtype(dtype)
        return Formula(self.builder, self.builder.op(opcode, operands, aval))

    def __add__(self, other):
        return self.apply("add", other)

    def __radd__(self, other):
        return self._other(other).apply("add", self)

    def __sub__(self, other):
        return self.apply("subtract", other)

    def __rsub__(self, other):
        return self._other(other).apply("subtract", self)

    def __mul__(self, other):
        return self.apply("multiply", other)

    def __rmul__(self, other):
        return self._other(other).apply("multiply", self)

    def __truediv__(self, other):
        return self.apply("divide", other)

    def __rtruediv__(self, other):
        return self._other(other).apply("divide", self)

    def __neg__(self):
        return self.apply("negate")

    def __abs__(self):
        return self.apply("abs")

    def __and__(self, other):
        return self.apply("and", other)

    def __or__(self, other):
        return self.apply("or", other)

    def __xor__(self, other):
        return self.apply("xor", other)

    def __invert__(self):
        return self.apply("not")

    def __lt__(self, other):
        return self._compare("LT", other)

    def __le__(self, other):
        return self._compare("LE", other)

    def __gt__(self, other):
        return self._compare("GT", other)

    def __ge__(self, other):
        return self._compare("GE", other)

    def equals(self, other: Formula | Number) -> Formula:
        return self._compare("EQ", other)

    def differs(self, other: Formula | Number) -> Formula:
        return self._compare("NE", other)

    def is_nan(self) -> Formula:
        return self._compare("NE", self)

    def has_sign(self) -> Formula:
        """Whether the sign bit is set, also that of −0."""
        return self._compare("LT", 0.0, "TOTALORDER")

    def _compare(self, direction: str, other: Formula | Number, kind: str | None = None) -> Formula:
        return Formula(
            self.builder, self.builder.compare(direction, self.value, self._other(other).value, kind)
        )

    def exp(self) -> Formula:
        return self.apply("exponential")

    def expm1(self) -> Formula:
        return self.apply("exponential_minus_one")

    def log(self) -> Formula:
        return self.apply("log")

    def log1p(self) -> Formula:
        return self.apply("log_plus_one")

    def sqrt(self) -> Formula:
        return self.apply("sqrt")

    def sin(self) -> Formula:
        return self.apply("sine")

    def cos(self) -> Formula:
        return self.apply("cosine")

    def floor(self) -> Formula:
        return self.apply("floor")

    def power(self, other: Formula | Number) -> Formula:
        return self.apply("power", other)

    def minimum(self, other: Formula | Number) -> Formula:
        return self.apply("minimum", other)

    def maximum(self, other: Formula | Number) -> Formula:
        return self.apply("maximum", other)

    def convert(self, dtype: Any) -> Formula:
        return Formula(self.builder, self.builder.convert(self.value, np.dtype(dtype)))

    def bitcast(self, dtype: Any) -> Formula:
        return self.apply("bitcast_convert", dtype=np.dtype(dtype))

    def parts(self) -> tuple[Formula, Formula]:
        """The real and the imaginary part of a complex value."""
        part = dtypes.to_real_dtype(self.dtype)
        return self.apply("real", dtype=part), self.apply("imag", dtype=part)

    def with_imaginary(self, imaginary: Formula) -> Formula:
        """The complex number of which this is the real part."""
        return self.apply("complex", imaginary, dtype=dtypes.to_complex_dtype(self.dtype))


def where(predicate: Formula, if_true: Formula | Number, if_false: Formula | Number) -> Formula:
    """`if_true` where `predicate` holds, else `if_false`; one of them may be a number."""
    if isinstance(if_true, Formula):
        if_false = if_true._other(if_false)
    else:
        assert isinstance(if_false, Formula)
        if_true = if_false._other(if_true)
    return Formula(
        predicate.builder, predicate.builder.select(predicate.value, if_true.value, if_false.value)
    )


def polynomial(x, coefficients: Sequence[float]):
    """Σ cᵢ xⁿ⁻ⁱ by Horner's rule, highest power first; on arrays as well as on formulas."""
    result = coefficients[0]
    for coefficient in coefficients[1:]:
        result = result * x + coefficient
    return result


def repeat_while(
    condition: Callable[..., Formula], body: Callable[..., Sequence[Formula]], state: Sequence[Formula]
) -> list[Formula]:
    """Replaces `state` by `body(*state)` as long as `condition(*state)` holds for any element."""
    builder = state[0].builder
    avals = [formula.aval for formula in state]

    def wrapped(inner: Builder, values: Sequence[Value]) -> list[Formula]:
        return [Formula(inner, value) for value in values]

    def holds(inner: Builder, *values: Value) -> list[Value]:
        found = condition(*wrapped(inner, values)).value
        return [inner.reduce(found, False, "or", range(found.ndim))] if found.ndim else [found]

    regions = (
        builder.region(avals, holds),
        builder.region(avals, lambda inner, *values: [f.value for f in body(*wrapped(inner, values))]),
    )
    return wrapped(builder, builder.op("while", [formula.value for formula in state], avals, regions=regions))


def full_like(formula: Formula, number: Number, dtype: Any) -> Formula:
    """A constant of the shape of `formula`."""
    aval = ShapedArray(formula.aval.shape, np.dtype(dtype))
    return Formula(formula.builder, formula.builder.constant(number, aval))
