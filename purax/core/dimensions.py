"""Dimensions that are not numbers yet: polynomials over dimension variables, as in the shape `(b, 2*s + 1)`.

A `SymbolicDimension` is a sum of products of variables and of operations (`floordiv`, `mod`, `max`, `min`) with integer
coefficients. Every operation gives the normal form, and a Python int where nothing symbolic is left: plain shapes stay
plain. What its values may be is known to its `SymbolicScope` (`dimension_facts`), which answers comparisons.
An answer holds for all sizes, or is `InconclusiveDimensionOperation`; only `==` says False where it cannot tell, since
tuples and dicts ask it, and then remembers in the user's own code that the two were taken for different.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Union

from purax.core import source
from purax.errors import InconclusiveDimensionOperation

DimSize = Union[int, "SymbolicDimension"]
Monomial = tuple[tuple["Atom", int], ...]  # factors with their powers, in the order of their keys
Polynomial = dict[Monomial, int]

_atoms: dict[Any, Atom] = {}


class Atom:
    """A factor: a variable, or `floordiv`, `mod`, `max` or `min` of two dimensions. Equal ones are one object."""

    __slots__ = ("key", "name", "operands")
    name: str
    operands: tuple[DimSize, ...]
    key: tuple[bool, str]

    @staticmethod
    def of(name: str, operands: tuple[DimSize, ...] = ()) -> Atom:
        """The variable `name`, or the operation `name` of dimensions."""
        text = f"{name}({', '.join(map(str, operands))})" if operands else name
        scope = next((x.scope for x in operands if type(x) is SymbolicDimension), None)
        known = (text, None if scope is None else id(scope))
        atom = _atoms.get(known)
        if atom is None:
            atom = object.__new__(Atom)
            atom.name, atom.operands, atom.key = name, operands, (bool(operands), text)
            atom = _atoms.setdefault(known, atom)
        return atom

    def __repr__(self) -> str:
        return self.key[1]

    def __reduce__(self) -> Any:
        return Atom.of, (self.name, self.operands)


def _order(monomial: Monomial) -> Any:
    """Operations first, then by degree, then from the last letter."""
    factors = [atom.key for atom, power in monomial for _ in range(power)]
    return (any(key[0] for key in factors), len(factors), sorted(factors, reverse=True))


def times(left: Monomial, right: Monomial) -> Monomial:
    """The product of two products."""
    if not left or not right:
        return left or right
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=_factor_key))


def _factor_key(factor: tuple[Atom, int]) -> tuple[bool, str]:
    return factor[0].key


def quotient_of(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """The product without the factors of `divisor`; None if it does not have them all."""
    powers = dict(monomial)
    for atom, power in divisor:
        left = powers.get(atom, 0) - power
        if left < 0:
            return None
        if left:
            powers[atom] = left
        else:
            del powers[atom]
    return tuple(powers.items())


def polynomial(x: DimSize) -> Polynomial:
    """A dimension as coefficients of products; the empty product is 1."""
    if isinstance(x, SymbolicDimension):
        return dict(x.terms)
    return {(): int(x)} if x else {}


def add_scaled(left: Polynomial, right: Mapping[Monomial, Any], factor: Any, by: Monomial = ()) -> Any:
    """left + factor · by · right."""
    total: dict[Monomial, Any] = dict(left)
    for monomial, coefficient in right.items():
        place = times(monomial, by)
        value = total.get(place, 0) + coefficient * factor
        if value:
            total[place] = value
        else:
            total.pop(place, None)
    return total


class SymbolicDimension:
    """A dimension that depends on variables; made by `purax.export.symbolic_shape`, and by arithmetic.

    It can stand in shapes, and in arithmetic with integers and other dimensions: `+`, `-`, `*`, `//`, `%`, `**`,
    `max` and `min`. With other numbers and with arrays it becomes an array of dtype int32.
    """

    __slots__ = ("_hash", "_text", "scope", "terms")
    scope: Any
    terms: tuple[tuple[Monomial, int], ...]

    __array_ufunc__ = None  # NumPy's scalars leave arithmetic to this class
    __array_priority__ = 1000

    def __init__(self, scope: Any, terms: Polynomial):
        self.scope = scope
        self.terms = tuple(sorted(terms.items(), key=lambda term: _order(term[0]), reverse=True))
        self._hash: int | None = None
        self._text: str | None = None

    # -- what it is

    def get_vars(self) -> set[str]:
        """The names of the variables in it."""
        return variables_of(self)

    def __str__(self) -> str:
        if self._text is None:
            parts: list[str] = []
            for monomial, coefficient in self.terms:
                product = "*".join(str(a) if n == 1 else f"{a}^{n}" for a, n in monomial)
                size = abs(coefficient)
                shown = product if size == 1 and product else f"{size}*{product}" if product else str(size)
                sign = "-" if coefficient < 0 else "+"
                parts.append(f"{sign} {shown}" if parts or sign == "-" else shown)
            self._text = " ".join(parts)
        return self._text

    __repr__ = __str__

    def __format__(self, specification: str) -> str:
        return format(str(self), specification)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.terms)
        return self._hash

    def __copy__(self) -> SymbolicDimension:
        return self

    def __deepcopy__(self, memo: Any) -> SymbolicDimension:
        return self

    # -- arithmetic

    def __neg__(self) -> DimSize:
        return _made(self.scope, {m: -c for m, c in self.terms})

    def __pos__(self) -> DimSize:
        return self

    def __add__(self, other: Any) -> Any:
        if is_dimension(other):
            return _combined(self, other, 1)
        return _with_other(operator.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return self + other if is_dimension(other) else _with_other(operator.add, other, self)

    def __sub__(self, other: Any) -> Any:
        if is_dimension(other):
            return _combined(self, other, -1)
        return _with_other(operator.sub, self, other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other if is_dimension(other) else _with_other(operator.sub, other, self)

    def __mul__(self, other: Any) -> Any:
        if not is_dimension(other):
            return _with_other(operator.mul, self, other)
        left, right = polynomial(self), polynomial(other)
        total: Polynomial = {}
        for monomial, coefficient in right.items():
            total = add_scaled(total, left, coefficient, monomial)
        return _made(_scope_of(self, other), total)

    def __rmul__(self, other: Any) -> Any:
        return self * other if is_dimension(other) else _with_other(operator.mul, other, self)

    def __pow__(self, power: Any, modulo: Any = None) -> Any:
        if isinstance(power, SymbolicDimension) or not is_dimension(power) or power < 0:
            return self.__jax_array__() ** (
                power.__jax_array__() if isinstance(power, SymbolicDimension) else power
            )
        return math.prod([self] * int(power))

    def __floordiv__(self, other: Any) -> Any:
        return _divided(self, other)[0] if is_dimension(other) else _with_other(operator.floordiv, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _divided(other, self)[0] if is_dimension(other) else _with_other(operator.floordiv, other, self)

    def __mod__(self, other: Any) -> Any:
        return _divided(self, other)[1] if is_dimension(other) else _with_other(operator.mod, self, other)

    def __rmod__(self, other: Any) -> Any:
        return _divided(other, self)[1] if is_dimension(other) else _with_other(operator.mod, other, self)

    def __divmod__(self, other: Any) -> Any:
        return _divided(self, other) if is_dimension(other) else _with_other(divmod, self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return _divided(other, self) if is_dimension(other) else _with_other(divmod, other, self)

    def __truediv__(self, other: Any) -> Any:
        if is_dimension(other):
            return self.__jax_array__() / other
        return _with_other(operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        if is_dimension(other):
            return other / self.__jax_array__()
        return _with_other(operator.truediv, other, self)

    def max(self, other: DimSize) -> DimSize:
        """The greater of two dimensions."""
        return max_dim(self, other)

    def rmax(self, other: DimSize) -> DimSize:
        """The greater of two dimensions."""
        return max_dim(other, self)

    def min(self, other: DimSize) -> DimSize:
        """The lesser of two dimensions."""
        return min_dim(self, other)

    def rmin(self, other: DimSize) -> DimSize:
        """The lesser of two dimensions."""
        return min_dim(other, self)

    # -- decisions

    def __eq__(self, other: Any) -> bool:
        if self is other:
            return True
        if not is_dimension(other) or (isinstance(other, SymbolicDimension) and other.scope is not self.scope):
            return False
        difference = _combined(self, other, -1)
        if not isinstance(difference, SymbolicDimension):
            return difference == 0
        answer = self.scope.is_zero(difference)
        if answer is None:
            self._go_on_as_different(difference, other, sys._getframe(1))
            return False
        return answer

    def _go_on_as_different(self, difference: SymbolicDimension, other: Any, frame: Any) -> None:
        """`==` says False of what may be equal. A user's code that asks is remembered; one of this package's own is
        right for equal ones, too, unless it asks for a remainder: an even size is no special case of an odd one."""
        if not source.code_is_internal(frame.f_code):
            self.scope.assume_different(difference, self, other, source.location_of(frame))
        elif is_remainder(difference):
            raise inconclusive(f"'{self}' == '{other}'", f"{self} == {other}")

    def __ne__(self, other: Any) -> bool:
        if self is other:
            return False
        if not is_dimension(other) or (isinstance(other, SymbolicDimension) and other.scope is not self.scope):
            return True
        difference = _combined(self, other, -1)
        if not isinstance(difference, SymbolicDimension):
            return difference != 0
        answer = self.scope.is_zero(difference)
        if answer is None:
            self._go_on_as_different(difference, other, sys._getframe(1))
            return True
        return not answer

    def __ge__(self, other: Any) -> Any:
        return _is_at_least(self, other, ">=") if is_dimension(other) else _with_other(operator.ge, self, other)

    def __le__(self, other: Any) -> Any:
        return _is_at_least(other, self, "<=") if is_dimension(other) else _with_other(operator.le, self, other)

    def __gt__(self, other: Any) -> Any:
        if not is_dimension(other):
            return _with_other(operator.gt, self, other)
        return not _is_at_least(other, self, ">")

    def __lt__(self, other: Any) -> Any:
        if not is_dimension(other):
            return _with_other(operator.lt, self, other)
        return not _is_at_least(self, other, "<")

    def __bool__(self) -> bool:
        answer = self.scope.is_zero(self)
        if answer is None:
            if source.code_is_internal(sys._getframe(1).f_code) and not is_remainder(self):
                return True  # operations ask this for empty arrays, as they ask `== 0`
            raise inconclusive(f"'{self}' != '0'", f"{self} >= 1")
        return not answer

    # -- as a number

    def _refuse(self) -> Any:
        raise source.located(
            InconclusiveDimensionOperation,
            f"Symbolic dimension '{self}' used in a context that requires a constant. It can stand in shapes and in "
            "integer arithmetic; `jnp.asarray(dimension)` makes an array of it.",
        )

    __int__ = __float__ = __complex__ = _refuse

    def dimension_as_value(self) -> Any:
        """The dimension as an array."""
        return self.__jax_array__()

    def __jax_array__(self) -> Any:
        if _as_value is None:
            raise RuntimeError("dimensions become arrays when purax.lax is imported")
        return _as_value(self)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._refuse()


_as_value: Callable[[SymbolicDimension], Any] | None = None


def set_as_value(function: Callable[[SymbolicDimension], Any]) -> None:
    """Says how a dimension becomes an array."""
    global _as_value
    _as_value = function


def is_dimension(x: Any) -> bool:
    """Whether `x` is an integer or symbolic, so that it can be a dimension."""
    if isinstance(x, (int, SymbolicDimension)):
        return not isinstance(x, bool)
    return hasattr(x, "__index__") and not hasattr(x, "aval")


def is_symbolic_dim(p: Any) -> bool:
    """Whether a dimension of a shape is a symbolic expression.

    >>> import purax as px
    >>> px.export.is_symbolic_dim(3), px.export.is_symbolic_dim(px.export.symbolic_shape("b")[0])
    (False, True)
    """
    return isinstance(p, SymbolicDimension)


def is_symbolic_shape(shape: Iterable[Any]) -> bool:
    """Whether some dimension of a shape is symbolic."""
    return any(type(n) is SymbolicDimension for n in shape)


def is_remainder(x: SymbolicDimension) -> bool:
    """Whether a dimension is what a division by a number leaves, up to a number."""
    atoms = [atom for monomial, _ in x.terms for atom, _ in monomial]
    return bool(atoms) and all(atom.name == "mod" and isinstance(atom.operands[1], int) for atom in atoms)


def exceeds(x: DimSize, limit: int) -> bool:
    """Whether a size is surely above a limit that only decides how something is computed.

    >>> exceeds(5, 4)
    True
    """
    if type(x) is SymbolicDimension:
        return bool(x.scope.lower_bound(x) > limit)
    return x > limit


def is_at_most(x: DimSize, limit: int) -> bool:
    """Whether a size is surely not above a limit that only decides how something is computed.

    >>> is_at_most(5, 4)
    False
    """
    if type(x) is SymbolicDimension:
        return bool(x.scope.upper_bound(x) <= limit)
    return x <= limit


def as_size(x: Any) -> Any:
    """`operator.index` that passes dimensions on."""
    return x if type(x) is SymbolicDimension else operator.index(x)


def _with_other(function: Callable, left: Any, right: Any) -> Any:
    """What arithmetic with something that is no dimension gives: that of arrays."""
    from_left = isinstance(left, SymbolicDimension)
    other = right if from_left else left
    if isinstance(other, (float, complex, bool)) or hasattr(other, "dtype"):
        return function(left.__jax_array__(), other) if from_left else function(other, right.__jax_array__())
    return NotImplemented


def _scope_of(*dimensions: DimSize) -> Any:
    scope = None
    for x in dimensions:
        if isinstance(x, SymbolicDimension):
            if scope is not None and x.scope is not scope:
                raise source.located(
                    ValueError,
                    f"Invalid mixing of symbolic scopes: '{x}' belongs to {x.scope}, and other dimensions to {scope}. "
                    "Make all shapes of a function by one call of `symbolic_shape`, or with `scope=` of the first.",
                )
            scope = x.scope
    return scope


def _made(scope: Any, terms: Polynomial) -> DimSize:
    """The dimension with these coefficients, in normal form."""
    if scope.rules:
        terms = scope.rewritten(terms)
    terms = {monomial: c for monomial, c in terms.items() if c}
    if not terms:
        return 0
    if len(terms) == 1 and () in terms:
        return terms[()]
    return SymbolicDimension(scope, terms)


made = _made


def _combined(left: DimSize, right: DimSize, factor: int) -> DimSize:
    scope = _scope_of(left, right)
    return _made(scope, add_scaled(polynomial(left), polynomial(right), factor))


def variable(scope: Any, name: str) -> DimSize:
    """The variable `name`, or what the constraints say that it equals."""
    return _made(scope, {((Atom.of(name), 1),): 1})


def _operation(scope: Any, name: str, *operands: DimSize) -> DimSize:
    return _made(scope, {((Atom.of(name, operands), 1),): 1})


# -- division


def _divided(x: DimSize, y: DimSize) -> tuple[DimSize, DimSize]:
    """x // y and x % y, as Python's."""
    if not isinstance(y, SymbolicDimension):
        y = operator.index(y)
    if not isinstance(x, SymbolicDimension):
        x = operator.index(x)
    if isinstance(x, int) and isinstance(y, int):
        return divmod(x, y)
    if isinstance(y, int) and y == 0:
        raise ZeroDivisionError(f"division of the dimension '{x}' by zero")
    scope = _scope_of(x, y)
    known = scope.quotients.get((x, y))
    if known is None:
        known = scope.quotients[x, y] = _by_number(scope, x, y) if isinstance(y, int) else _by_dimension(scope, x, y)
    return known


def _by_number(scope: Any, x: Any, y: int) -> tuple[DimSize, DimSize]:
    if y < 0:
        quotient, rest = _by_number(scope, -x, -y)
        return quotient, -rest
    terms = polynomial(x)
    whole = {m: c // y for m, c in terms.items() if c % y == 0 or not m}
    rest = _made(scope, add_scaled(terms, whole, -y))
    quotient = _made(scope, whole)
    if isinstance(rest, int):  # 0 <= rest < y, since only a constant can be left of it
        return quotient, rest
    if scope.lower_bound(rest) >= 0 and scope.upper_bound(rest) < y:
        return quotient, rest
    factor = math.gcd(y, *(c for _, c in rest.terms))
    if factor > 1:
        part, left = _divided(_made(scope, {m: c // factor for m, c in rest.terms}), y // factor)
        return quotient + part, left * factor
    if len(rest.terms) == 1:
        (monomial, coefficient), *_ = rest.terms
        if coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1:
            inner = monomial[0][0]
            if inner.name == "floordiv" and isinstance(inner.operands[1], int) and inner.operands[1] > 0:
                part = _divided(inner.operands[0], inner.operands[1] * y)[0]  # a//m//y == a//(m*y)
                return quotient + part, rest - y * part
    return (
        quotient + _operation(scope, "floordiv", rest, y),
        _operation(scope, "mod", rest, y),
    )


def _by_dimension(scope: Any, x: DimSize, y: SymbolicDimension) -> tuple[DimSize, DimSize]:
    rest, divisor = polynomial(x), polynomial(y)
    leading, coefficient = y.terms[0]
    whole: Polynomial = {}
    for _ in range(20):
        step = next(
            (
                (by, c // coefficient)
                for m, c in rest.items()
                if c % coefficient == 0 and (by := quotient_of(m, leading)) is not None
            ),
            None,
        )
        if step is None:
            break
        whole = add_scaled(whole, {step[0]: step[1]}, 1)
        rest = add_scaled(rest, divisor, -step[1], step[0])
    left = _made(scope, rest)
    quotient = _made(scope, whole)
    if left == 0:
        return quotient, 0
    if scope.lower_bound(left) >= 0 and scope.lower_bound(_combined(y, left, -1)) >= 1:
        return quotient, left
    return _operation(scope, "floordiv", x, y), _operation(scope, "mod", x, y)


# -- comparison


def _is_at_least(x: DimSize, y: DimSize, symbol: str) -> bool:
    """Whether x >= y, as a part of a comparison that was written with `symbol`."""
    difference = _combined(x, y, -1)
    if not isinstance(difference, SymbolicDimension):
        return difference >= 0
    answer = difference.scope.is_nonnegative(difference)
    if answer is None:
        if symbol in (">=", "<"):
            raise inconclusive(f"'{x}' {symbol} '{y}'", f"{x} >= {y}", f"{x} <= {y - 1}")
        raise inconclusive(f"'{y}' {symbol} '{x}'", f"{y} <= {x}", f"{y} >= {x + 1}")
    return answer


def inconclusive(what: str, *constraints: str) -> InconclusiveDimensionOperation:
    """The error for a comparison whose answer depends on the sizes, and the constraints of which each settles it."""
    listed = " or ".join(f'constraints=["{one}"]' for one in constraints)
    return source.located(
        InconclusiveDimensionOperation,
        f"Symbolic dimension comparison {what} is inconclusive: its answer depends on the sizes. If it is the same for "
        f"all sizes that will occur, say so when the shape is made: symbolic_shape(..., {listed}).",
    )


def max_dim(x: DimSize, y: DimSize) -> DimSize:
    """The greater of two dimensions.

    >>> from purax.core.dimensions import max_dim
    >>> max_dim(3, 4)
    4
    """
    return _extremum("max", x, y)


def min_dim(x: DimSize, y: DimSize) -> DimSize:
    """The lesser of two dimensions."""
    return _extremum("min", x, y)


def _extremum(name: str, x: DimSize, y: DimSize) -> DimSize:
    x, y = as_size(x), as_size(y)
    if isinstance(x, int) and isinstance(y, int):
        return max(x, y) if name == "max" else min(x, y)
    difference = _combined(x, y, -1)
    scope = _scope_of(x, y)
    if isinstance(difference, int):
        answer: bool | None = difference >= 0
    else:
        answer = True if scope.lower_bound(difference) >= 0 else False if scope.upper_bound(difference) <= 0 else None
    if answer is not None:
        return x if answer is (name == "max") else y
    first, second = sorted((x, y), key=lambda n: (isinstance(n, int), str(n)))
    return _operation(scope, name, first, second)


def non_negative(x: DimSize) -> DimSize:
    """max(x, 0)."""
    return max_dim(x, 0) if isinstance(x, SymbolicDimension) else max(operator.index(x), 0)


# -- reading


def atoms_of(x: DimSize) -> Iterator[Atom]:
    """The factors in a dimension, and those in their operands."""
    if isinstance(x, SymbolicDimension):
        for monomial, _ in x.terms:
            for atom, _power in monomial:
                yield atom
                for operand in atom.operands:
                    yield from atoms_of(operand)


def variables_of(x: DimSize) -> set[str]:
    """The names of the variables in a dimension."""
    return {atom.name for atom in atoms_of(x) if not atom.operands}


_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "max": max_dim,
    "min": min_dim,
}


def substitute(x: DimSize, values: Mapping[str, Any]) -> Any:
    """The dimension for values of its variables, which may be numbers, dimensions of any scope, or what adds up.

    >>> import purax as px
    >>> from purax.core.dimensions import substitute
    >>> a, b = px.export.symbolic_shape("a, b")
    >>> substitute(a * b // 2 + 1, {"a": 3, "b": 5})
    8
    """
    if not isinstance(x, SymbolicDimension):
        return x
    total: Any = 0
    for monomial, coefficient in x.terms:
        product: Any = coefficient
        for atom, power in monomial:
            if atom.operands:
                factor = _FUNCTIONS[atom.name](*(substitute(one, values) for one in atom.operands))
            else:
                factor = values[atom.name]
            product = product * factor**power
        total = total + product
    return total
