"""Formulas that run in programs, on the host, and with derivatives: values with Python's operators.

A formula is written once, as a function of `Formula`s. On `Formula`s it emits StableHLO, on `HostFormula`s it computes
with NumPy, on `Dual`s it also computes the derivative. In programs, all operands of an operation have one shape; Python
numbers become constants of the dtype of the other operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import aval_of
from purax.xla.stablehlo import Builder, Value

Number = bool | int | float | complex


class Operators:
    """Python's operators in terms of `add`, `multiply`, … which the kinds of formulas define.

    Of two operands, the one with more derivatives decides what the other is lifted to.
    """

    __slots__ = ()

    def raise_to(self, other):
        """This value, lifted to the kind of `other` if that has more derivatives."""
        return other.lift(self) if depth(other) > depth(self) else self

    def __add__(self, other):
        return self.raise_to(other).add(other)

    def __radd__(self, other):
        return self.lift(other).add(self)

    def __sub__(self, other):
        return self.raise_to(other).subtract(other)

    def __rsub__(self, other):
        return self.lift(other).subtract(self)

    def __mul__(self, other):
        return self.raise_to(other).multiply(other)

    def __rmul__(self, other):
        return self.lift(other).multiply(self)

    def __truediv__(self, other):
        return self.raise_to(other).divide(other)

    def __rtruediv__(self, other):
        return self.lift(other).divide(self)

    def __neg__(self):
        return self.negate()

    def __abs__(self):
        return self.absolute()

    def __lt__(self, other):
        return self.compare("LT", other)

    def __le__(self, other):
        return self.compare("LE", other)

    def __gt__(self, other):
        return self.compare("GT", other)

    def __ge__(self, other):
        return self.compare("GE", other)

    def equals(self, other):
        return self.compare("EQ", other)

    def differs(self, other):
        return self.compare("NE", other)

    def is_nan(self):
        return self.compare("NE", self)


class Formula(Operators):
    """A value that is being computed by a program."""

    __slots__ = ("builder", "value")

    builder: Builder
    value: Any

    def __init__(self, builder: Any, value: Any):
        self.builder = builder
        self.value = value

    aval = property(lambda self: self.value.aval)
    dtype = property(lambda self: self.value.dtype)

    def like(self, value: Any) -> Formula:
        """A formula of this kind."""
        return type(self)(self.builder, value)

    def number(self, number: Number, dtype: Any = None) -> Formula:
        """A constant of this value's shape and, unless another is given, of its dtype."""
        aval = self.aval if dtype is None else self.aval.with_dtype(np.dtype(dtype))
        return self.like(self.builder.constant(number, aval))

    def lift(self, other: Formula | Number) -> Formula:
        """`other` as a formula."""
        return other if isinstance(other, Formula) else self.number(other)

    def apply(self, opcode: str, *others: Formula | Number, dtype: Any = None) -> Formula:
        """The operation `opcode` on this value and others; `dtype` is that of the result if it is another one."""
        operands = [self.value, *(self.lift(other).value for other in others)]
        aval = self.aval if dtype is None else self.aval.with_dtype(dtype)
        return self.like(self.builder.op(opcode, operands, aval))

    def add(self, other):
        return self.apply("add", other)

    def subtract(self, other):
        return self.apply("subtract", other)

    def multiply(self, other):
        return self.apply("multiply", other)

    def divide(self, other):
        return self.apply("divide", other)

    def negate(self):
        return self.apply("negate")

    def absolute(self):
        return self.apply("abs")

    def __and__(self, other):
        return self.apply("and", other)

    def __or__(self, other):
        return self.apply("or", other)

    def __xor__(self, other):
        return self.apply("xor", other)

    def __invert__(self):
        return self.apply("not")

    def exp(self):
        return self.apply("exponential")

    def expm1(self):
        return self.apply("exponential_minus_one")

    def log(self):
        return self.apply("log")

    def log1p(self):
        if self.dtype != np.float64:
            return self.apply("log_plus_one")
        # XLA's is wrong in the 14th digit around −0.4. With t = x/(2 + x): log(1 + x) = 2 (t + t³/3 + t⁵/5 + …)
        is_small = abs(self) < 0.5
        small = where(is_small, self, 0)
        t = small / (small + 2)
        series = polynomial(t * t, [2 / (2 * k + 1) for k in range(17, -1, -1)]) * t
        return where(is_small, series, (self + 1).log())

    def sqrt(self):
        return self.apply("sqrt")

    def sin(self):
        return self.apply("sine")

    def cos(self):
        return self.apply("cosine")

    def floor(self):
        return self.apply("floor")

    def erfc(self):
        return self.apply("chlo.erfc")

    def power(self, exponent):
        return self.apply("power", exponent)

    def minimum(self, other):
        return self.apply("minimum", other)

    def maximum(self, other):
        return self.apply("maximum", other)

    def compare(self, direction: str, other: Formula | Number, kind: str | None = None) -> Formula:
        if isinstance(other, Dual):
            other = other.innermost()
        return self.like(self.builder.compare(direction, self.value, self.lift(other).value, kind))

    def has_sign(self) -> Formula:
        """Whether the sign bit is set, also that of −0."""
        return self.compare("LT", 0.0, "TOTALORDER")

    def choose(self, if_true: Formula, if_false: Formula) -> Formula:
        return if_true.like(self.builder.select(self.value, if_true.value, if_false.value))

    def convert(self, dtype: Any) -> Formula:
        return self.like(self.builder.convert(self.value, np.dtype(dtype)))

    def bitcast(self, dtype: Any) -> Formula:
        return self.apply("bitcast_convert", dtype=np.dtype(dtype))

    def parts(self) -> tuple[Formula, Formula]:
        """The real and the imaginary part of a complex value."""
        part = dtypes.to_real_dtype(self.dtype)
        return self.apply("real", dtype=part), self.apply("imag", dtype=part)

    def with_imaginary(self, imaginary: Formula) -> Formula:
        """The complex number of which this is the real part."""
        return self.apply("complex", imaginary, dtype=dtypes.to_complex_dtype(self.dtype))

    def innermost(self) -> Formula:
        return self

    def loop(self, condition: Callable, body: Callable, state: list[Formula]) -> list[Formula]:
        """`repeat_while` on formulas of this kind."""
        builder = self.builder
        avals = [formula.aval for formula in state]

        def wrapped(inner: Builder, values: Sequence[Value]) -> list[Formula]:
            return [type(self)(inner, value) for value in values]

        def holds(inner: Builder, *values: Value) -> list[Value]:
            found = condition(wrapped(inner, values)).value
            return [inner.reduce(found, False, "or", range(found.ndim)) if found.ndim else found]

        regions = (
            builder.region(avals, holds),
            builder.region(avals, lambda inner, *values: [f.value for f in body(wrapped(inner, values))]),
        )
        return wrapped(builder, builder.op("while", [f.value for f in state], avals, regions=regions))


_ON_HOST: dict[str, Callable] = {
    **{"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide},
    **{
        "negate": np.negative,
        "abs": np.abs,
        "and": np.logical_and,
        "or": np.logical_or,
        "not": np.logical_not,
    },
    **{"exponential": np.exp, "exponential_minus_one": np.expm1, "log": np.log, "log_plus_one": np.log1p},
    **{"sqrt": np.sqrt, "sine": np.sin, "cosine": np.cos, "floor": np.floor},
    **{"minimum": np.minimum, "maximum": np.maximum, "power": np.power, "real": np.real, "imag": np.imag},
    "complex": lambda real, imaginary: real + 1j * imaginary,
    **{"LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal},
    **{"EQ": np.equal, "NE": np.not_equal},
    "chlo.erfc": lambda x: elementwise_on_host(math.erfc, x),
    "chlo.lgamma": lambda x: elementwise_on_host(log_gamma_on_host, x),
}


class HostFormula(Formula):
    """A value that is computed by NumPy at once. The operands of an operation are broadcast by NumPy."""

    __slots__ = ()

    aval = property(lambda self: aval_of(self.value))

    def __init__(self, builder: None, value: Any):
        super().__init__(None, np.asarray(value))

    def number(self, number, dtype=None):
        return self.like(np.asarray(number, self.dtype if dtype is None else dtype))

    def apply(self, opcode, *others, dtype=None):
        return self.like(_ON_HOST[opcode](self.value, *(self.lift(other).value for other in others)))

    def compare(self, direction, other, kind=None):
        return self.apply(direction, other.innermost() if isinstance(other, Dual) else other)

    def has_sign(self):
        return self.like(np.signbit(self.value))

    def log1p(self):
        return self.apply("log_plus_one")

    def choose(self, if_true, if_false):
        return self.like(np.where(self.value, if_true.value, if_false.value))

    def convert(self, dtype):
        return self.like(self.value.astype(dtype))

    def loop(self, condition, body, state):
        while condition(state).value.any():
            state = body(state)
        return state


class Dual(Operators):
    """A value and its derivative along some direction; either may be a formula or a dual itself."""

    __slots__ = ("primal", "tangent")

    def __init__(self, primal, tangent):
        self.primal = primal
        self.tangent = tangent

    dtype = property(lambda self: self.primal.dtype)

    def number(self, number, dtype=None):
        return Dual(self.primal.number(number, dtype), self.primal.number(0, dtype))

    def lift(self, other):
        """`other` as a dual of this depth; what is not one is constant."""
        if depth(other) == depth(self):
            return other
        if isinstance(other, Operators):
            return Dual(self.primal.lift(other), self.primal.number(0))
        return self.number(other)

    def add(self, other):
        other = self.lift(other)
        return Dual(self.primal + other.primal, self.tangent + other.tangent)

    def subtract(self, other):
        other = self.lift(other)
        return Dual(self.primal - other.primal, self.tangent - other.tangent)

    def multiply(self, other):
        if isinstance(other, (int, float)):
            return Dual(self.primal * other, self.tangent * other)
        other = self.lift(other)
        return Dual(self.primal * other.primal, self.tangent * other.primal + self.primal * other.tangent)

    def divide(self, other):
        if isinstance(other, (int, float)):
            return Dual(self.primal / other, self.tangent / other)
        other = self.lift(other)
        quotient = self.primal / other.primal
        return Dual(quotient, (self.tangent - quotient * other.tangent) / other.primal)

    def negate(self):
        return Dual(-self.primal, -self.tangent)

    def absolute(self):
        return where(self < 0, -self, self)

    def exp(self):
        out = self.primal.exp()
        return Dual(out, out * self.tangent)

    def expm1(self):
        return Dual(self.primal.expm1(), self.primal.exp() * self.tangent)

    def sin(self):
        return Dual(self.primal.sin(), self.primal.cos() * self.tangent)

    def cos(self):
        return Dual(self.primal.cos(), -self.primal.sin() * self.tangent)

    def power(self, exponent):
        """For constant exponents."""
        return Dual(self.primal.power(exponent), self.primal.power(exponent - 1) * exponent * self.tangent)

    def log(self):
        return Dual(self.primal.log(), self.tangent / self.primal)

    def log1p(self):
        return Dual(self.primal.log1p(), self.tangent / (self.primal + 1))

    def sqrt(self):
        out = self.primal.sqrt()
        return Dual(out, self.tangent / (out * 2))

    def erfc(self):
        slope = (-(self.primal * self.primal)).exp() * (-2 / math.sqrt(math.pi))
        return Dual(self.primal.erfc(), slope * self.tangent)

    def scaled_erfc(self):
        """For those that `ShortFormula` has it for."""
        out = self.primal.scaled_erfc()
        return Dual(out, (out * self.primal * 2 - 2 / math.sqrt(math.pi)) * self.tangent)

    def compare(self, direction, other, kind=None):
        return self.innermost().compare(direction, other, kind)

    def innermost(self) -> Formula:
        """The value without derivatives."""
        return self.primal.innermost()


def depth(x) -> int:
    """How many duals are in each other; 0 for a formula, −1 for a number."""
    if isinstance(x, Dual):
        return 1 + depth(x.primal)
    return 0 if isinstance(x, Formula) else -1


def where(predicate: Formula, if_true, if_false):
    """`if_true` where `predicate` holds, else `if_false`; one of them may be a number."""
    if depth(if_true) >= depth(if_false):
        if_false = if_true.lift(if_false)
    else:
        if_true = if_false.lift(if_true)
    if isinstance(if_true, Dual):
        return Dual(
            where(predicate, if_true.primal, if_false.primal),
            where(predicate, if_true.tangent, if_false.tangent),
        )
    return predicate.choose(if_true, if_false)


def raised(x, levels: int):
    """A formula or dual as a dual of depth `levels`, constant in the directions that are added."""
    while depth(x) < levels:
        x = Dual(x, x.number(0))
    return x


def leaves(x) -> list[Formula]:
    """The formulas that a formula or dual consists of, the value first."""
    return [*leaves(x.primal), *leaves(x.tangent)] if isinstance(x, Dual) else [x]


def polynomial(x, coefficients: Sequence[float]):
    """Σ cᵢ xⁿ⁻ⁱ by Horner's rule, highest power first."""
    result = x * coefficients[0] + coefficients[1] if len(coefficients) > 1 else x.number(coefficients[0])
    for coefficient in coefficients[2:]:
        result = result * x + coefficient
    return result


def repeat_while(condition: Callable[..., Formula], body: Callable[..., Sequence], state: Sequence) -> list:
    """Replaces `state` by `body(*state)` as long as `condition(*state)` holds for any element."""
    depths = [depth(x) for x in state]

    def rebuilt(flat: list[Formula]) -> list:
        remaining = iter(flat)

        def build(levels: int):
            return next(remaining) if levels == 0 else Dual(build(levels - 1), build(levels - 1))

        return [build(levels) for levels in depths]

    def flattened(values: Sequence) -> list[Formula]:
        return [leaf for x, levels in zip(values, depths, strict=True) for leaf in leaves(raised(x, levels))]

    start = flattened(state)
    return rebuilt(
        start[0].loop(
            lambda flat: condition(*rebuilt(flat)), lambda flat: flattened(body(*rebuilt(flat))), start
        )
    )


def chained(x, function: Callable, slope: Callable):
    """`function(x)` for a function of formulas whose derivative is `slope`, a function of formulas and duals."""
    if not isinstance(x, Dual):
        return function(x)
    return Dual(chained(x.primal, function, slope), slope(x.primal) * x.tangent)


def log_gamma_on_host(x: float) -> float:
    """log |Γ(x)|, infinite at the poles."""
    try:
        return math.lgamma(x)
    except ValueError:
        return math.inf


def elementwise_on_host(function: Callable[[float], float], x: np.ndarray) -> np.ndarray:
    """A function of Python floats on every element, with the dtype of `x`."""
    return np.asarray(np.frompyfunc(function, 1, 1)(x.astype(np.float64)), np.float64).astype(x.dtype)
