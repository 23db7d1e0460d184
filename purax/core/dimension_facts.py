"""What is known of symbolic dimensions: a scope holds constraints, and proves what follows from them.

Every variable is at least 1. A polynomial is shown to be non-negative by writing it in terms of quantities that are not
negative, and by adding known facts until no term with a negative sign is left. What cannot be shown is not known: an
answer is never a guess.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from purax.core import source
from purax.core.dimension_text import parse_constraint
from purax.core.dimensions import (
    Atom,
    DimSize,
    Monomial,
    Polynomial,
    SymbolicDimension,
    add_scaled,
    made,
    polynomial,
    quotient_of,
    substitute,
    times,
    variable,
    variables_of,
)
from purax.errors import shown

_DEPTH = 4  # facts that one proof adds up
_CASES = 4  # maxima and minima that are told apart
_ATOMS = 12
INFINITY = math.inf
_scope_numbers = itertools.count(1)


class Constraint:
    """A constraint as written, and as a polynomial: `difference >= 0`, or `== 0` with `is_equality`."""

    __slots__ = ("difference", "is_equality", "text")

    def __init__(self, text: str, difference: Polynomial, is_equality: bool):
        self.text = text
        self.difference = difference
        self.is_equality = is_equality

    def __repr__(self) -> str:
        return f"Constraint({self.text})"


class Assumption:
    """Two dimensions that the user's code took for different, because they need not be equal."""

    __slots__ = ("difference", "location", "text")

    def __init__(self, difference: SymbolicDimension, text: str, location: source.Location | None):
        self.difference = difference
        self.text = text
        self.location = location


class SymbolicScope:
    """Where dimension variables with their constraints belong. Only dimensions of one scope can be computed with.

    Args:
        constraints_str: texts such as "b >= 8", "2*b <= s", "mod(s, 8) == 0".

    >>> import purax as px
    >>> scope = px.export.SymbolicScope(["s >= 3"])
    >>> (s,) = px.export.symbolic_shape("s", scope=scope)
    >>> s >= 2
    True
    """

    def __init__(self, constraints_str: Sequence[str] = ()):
        self.rules: list[tuple[Monomial, int, Polynomial]] = []
        self.quotients: dict[tuple[DimSize, DimSize], tuple[DimSize, DimSize]] = {}
        self.constraints: list[Constraint] = []
        self.assumptions: dict[SymbolicDimension, Assumption] = {}
        self._facts: list[Polynomial] = []
        self._bounds: dict[SymbolicDimension, tuple[float, float]] = {}
        self._number = next(_scope_numbers)
        self._location = source.user_location()
        if isinstance(constraints_str, str) or not all(isinstance(one, str) for one in constraints_str):
            raise source.located(
                ValueError, f"constraints are a sequence of texts, got {shown(constraints_str)}"
            )
        for text in constraints_str:
            self._add(text)

    def __str__(self) -> str:
        return f"scope {self._number} created at {self._location}"

    def __repr__(self) -> str:
        texts = ", ".join(repr(one.text) for one in self.constraints)
        return f"SymbolicScope([{texts}])" if texts else "SymbolicScope()"

    # -- constraints

    def _add(self, text: str) -> None:
        left, relation, right = parse_constraint(text, self)
        difference = add_scaled(polynomial(left), polynomial(right), -1)
        if relation == "<=":
            difference = {m: -c for m, c in difference.items()}
        constraint = Constraint(text, difference, relation == "==")
        if not [m for m in difference if m]:
            holds = not difference if constraint.is_equality else difference.get((), 0) >= 0
            if not holds:
                raise source.located(ValueError, f"Unsatisfiable constraint: {text}")
            return
        exact = SymbolicDimension(self, difference)
        if self.upper_bound(exact) < 0 or (constraint.is_equality and self.lower_bound(exact) > 0):
            raise source.located(ValueError, f"Unsatisfiable constraint: {text}")
        self.constraints.append(constraint)
        self._facts.append(difference)
        if constraint.is_equality:
            self._facts.append({m: -c for m, c in difference.items()})
            self._add_rule(left, difference)
        self._bounds.clear()
        self.quotients.clear()

    def _add_rule(self, left: DimSize, difference: Polynomial) -> None:
        """Lets an equality replace one of its terms: the term on the left if it can, or a variable."""
        candidates = list(SymbolicDimension(self, difference).terms)
        preferred = [m for m in polynomial(left) if m] if isinstance(left, SymbolicDimension) else []

        def rank(term: tuple[Monomial, int]) -> Any:
            monomial, coefficient = term
            is_variable = len(monomial) == 1 and monomial[0][1] == 1 and not monomial[0][0].operands
            return (abs(coefficient) != 1, monomial not in preferred, not is_variable)

        for monomial, coefficient in sorted(candidates, key=rank):
            if not monomial or abs(coefficient) != 1:
                continue
            rest = {m: c * -coefficient for m, c in difference.items() if m != monomial}
            atoms = {atom for atom, _ in monomial}
            mentioned = {atom for m in rest for factor, _ in m for atom in _inside(factor)}
            if not atoms & mentioned:
                self._replace(monomial, 1, rest)
                break
        for monomial, coefficient in candidates:  # mod(s, 8) == 0: 8*floordiv(s, 8) is s
            if len(difference) == 1 and len(monomial) == 1 and monomial[0][1] == 1 and abs(coefficient) == 1:
                atom = monomial[0][0]
                if atom.name == "mod" and isinstance(atom.operands[1], int):
                    quotient = Atom.of("floordiv", atom.operands)
                    exact = polynomial(atom.operands[0])
                    low = self.lower_bound(atom.operands[0])
                    if low > -INFINITY:
                        self._facts.append({((quotient, 1),): 1, (): -math.ceil(low / atom.operands[1])})
                    self._replace(((quotient, 1),), atom.operands[1], exact)
                    total = add_scaled(exact, {((quotient, 1),): 1}, -atom.operands[1])
                    self._facts += [total, {m: -c for m, c in total.items()}]

    def _replace(self, monomial: Monomial, count: int, by: Polynomial) -> None:
        self.rules.append((monomial, count, by))
        names = {atom.name: variable(self, atom.name) for atom in _all_variables(self._facts, self.rules)}
        for i, (own, times_, rest) in enumerate(self.rules):
            self.rules[i] = (own, times_, polynomial(_renewed(self, rest, names)))

    def rewritten(self, terms: Polynomial) -> Polynomial:
        """Coefficients in which what an equality replaces does not occur."""
        for _ in range(100):
            for monomial, coefficient in terms.items():
                for own, count, by in self.rules:
                    if coefficient % count:
                        continue
                    left = quotient_of(monomial, own)
                    if left is not None:
                        rest = {m: c for m, c in terms.items() if m != monomial}
                        terms = add_scaled(rest, by, coefficient // count, tuple(left))
                        break
                else:
                    continue
                break
            else:
                return terms
        raise source.located(ValueError, f"the equalities of {self!r} replace each other without an end")

    def assume_different(
        self, difference: SymbolicDimension, x: Any, y: Any, location: source.Location | None
    ) -> None:
        """Remembers that code of the user's compared two dimensions that may be equal, and went on as if they were
        not."""
        self.assumptions.setdefault(difference, Assumption(difference, f"{x} != {y}", location))

    # -- answers

    def lower_bound(self, x: DimSize) -> float:
        """What a dimension is never below; -inf if that is not known."""
        return self._range(x)[0]

    def upper_bound(self, x: DimSize) -> float:
        """What a dimension is never above; inf if that is not known."""
        return self._range(x)[1]

    def _range(self, x: DimSize) -> tuple[float, float]:
        if not isinstance(x, SymbolicDimension):
            return x, x
        known = self._bounds.get(x)
        if known is None:
            self._bounds[x] = (-INFINITY, INFINITY)  # while it is looked for: proofs may meet it again
            low = self._least(dict(x.terms), self._facts, _CASES)
            high = -self._least({m: -c for m, c in x.terms}, self._facts, _CASES)
            known = self._bounds[x] = (low, high)
        return known

    def is_nonnegative(self, x: SymbolicDimension) -> bool | None:
        """Whether a dimension is at least 0 for all sizes; None if it is for some, or that is not known."""
        if self.lower_bound(x) >= 0:
            return True
        return False if self.upper_bound(x) < 0 else None

    def is_zero(self, x: SymbolicDimension) -> bool | None:
        """Whether a dimension is 0 for all sizes, or for none; None if for some, or that is not known."""
        low, high = self._range(x)
        if low > 0 or high < 0:
            return False
        return True if low == high == 0 else None

    # -- proofs

    def _least(self, terms: Polynomial, facts: list[Polynomial], cases: int) -> float:
        """A number that a polynomial is never below."""
        if cases:
            extremum = next(
                (
                    atom
                    for monomial in terms
                    for atom, _ in monomial
                    if atom.name in ("max", "min") and atom.operands
                ),
                None,
            )
            if extremum is not None:
                x, y = map(polynomial, extremum.operands)
                first = add_scaled(x, y, -1) if extremum.name == "max" else add_scaled(y, x, -1)
                second = {m: -c for m, c in first.items()}
                return min(
                    self._least(_with(terms, extremum, x), [*facts, first], cases - 1),
                    self._least(_with(terms, extremum, y), [*facts, second], cases - 1),
                )
        remainder = next(
            (atom for monomial in terms for atom, _ in monomial if atom.name == "mod" and atom.operands), None
        )
        if remainder is not None and len(terms) > 1:
            dividend, divisor = remainder.operands
            quotient: Polynomial = {((Atom.of("floordiv", (dividend, divisor)), 1),): 1}
            exact = polynomial(dividend)
            for monomial, coefficient in polynomial(divisor).items():
                exact = add_scaled(exact, quotient, -coefficient, monomial)
            return max(
                self._least(_with(terms, remainder, exact), facts, cases), self._by_facts(terms, facts)
            )
        return self._by_facts(terms, facts)

    def _by_facts(self, terms: Polynomial, facts: list[Polynomial]) -> float:
        known = list(facts)
        atoms: dict[Atom, None] = {}
        waiting = [atom for monomial in terms for atom, _ in monomial]
        while waiting and len(atoms) < _ATOMS:
            atom = waiting.pop(0)
            if atom in atoms:
                continue
            atoms[atom] = None
            for fact in facts:
                if any(other is atom for monomial in fact for other, _ in monomial):
                    waiting += [other for monomial in fact for other, _ in monomial]
            for fact in self._facts_of(atom):
                known.append(fact)
                waiting += [other for monomial in fact for other, _ in monomial]
        related = [
            fact for fact in known if all(atom in atoms for monomial in fact for atom, _ in monomial)
        ]
        ranges = {atom: self._range_of(atom, related) for atom in atoms}
        shifts: dict[Atom, Polynomial] = {}
        free = set()
        for atom, (low, high) in ranges.items():
            itself: Polynomial = {((atom, 1),): 1}
            if low > -INFINITY:
                shifts[atom] = add_scaled(itself, {(): 1}, int(low))
            elif high < INFINITY:
                shifts[atom] = add_scaled({((atom, 1),): -1}, {(): 1}, int(high))
            else:
                free.add(atom)
        widths = {atom: high - low for atom, (low, high) in ranges.items()}
        shifted = [s for fact in related if (s := _shifted(fact, shifts))]
        best = _lowest(_shifted(terms, shifts), shifted, free, widths, _DEPTH, {})
        return -INFINITY if best == -INFINITY else math.ceil(best)

    def _range_of(self, atom: Atom, facts: Sequence[Polynomial]) -> tuple[float, float]:
        """Between which numbers a factor is, from facts about it alone and from what it is computed of."""
        low, high = (-INFINITY, INFINITY) if atom.operands else (1, INFINITY)
        own = ((atom, 1),)
        for fact in facts:
            if own in fact and len(fact) - (() in fact) == 1:
                bound = Fraction(-fact.get((), 0), fact[own])
                if fact[own] > 0:
                    low = max(low, math.ceil(bound))
                else:
                    high = min(high, math.floor(bound))
        if atom.operands:
            x, y = map(self._range, atom.operands)
            found = _RANGES[atom.name](x, y)
            low, high = max(low, found[0]), min(high, found[1])
        return low, high

    def _facts_of(self, atom: Atom) -> list[Polynomial]:
        """What is not negative because of the meaning of an operation."""
        if not atom.operands:
            return []
        x, y = map(polynomial, atom.operands)
        itself: Polynomial = {((atom, 1),): 1}
        if atom.name == "max":
            return [add_scaled(itself, x, -1), add_scaled(itself, y, -1)]
        if atom.name == "min":
            return [add_scaled(x, itself, -1), add_scaled(y, itself, -1)]
        if self.lower_bound(atom.operands[1]) < 1:
            return []
        if atom.name == "mod":
            return [itself, add_scaled(add_scaled(y, itself, -1), {(): 1}, -1)]
        rest = x
        for monomial, coefficient in y.items():
            rest = add_scaled(rest, itself, -coefficient, monomial)
        return [rest, add_scaled(add_scaled(y, rest, -1), {(): 1}, -1)]


def _inside(atom: Atom) -> set[Atom]:
    found = {atom}
    for operand in atom.operands:
        if isinstance(operand, SymbolicDimension):
            for monomial, _ in operand.terms:
                for factor, _power in monomial:
                    found |= _inside(factor)
    return found


def _all_variables(facts: Sequence[Polynomial], rules: Sequence[tuple[Monomial, int, Polynomial]]) -> set[Atom]:
    polynomials = [*facts, *(by for _, _, by in rules), *({own: 1} for own, _, _ in rules)]
    return {
        inner
        for terms in polynomials
        for monomial in terms
        for atom, _ in monomial
        for inner in _inside(atom)
        if not inner.operands
    }


def _renewed(scope: SymbolicScope, terms: Polynomial, names: Mapping[str, DimSize]) -> DimSize:
    """A polynomial computed again, now that variables have other values."""
    exact = made(scope, dict(terms))
    return substitute(exact, names)


def _with(terms: Polynomial, atom: Atom, value: Polynomial) -> Polynomial:
    """A polynomial with a polynomial in the place of a factor."""
    total: Polynomial = {}
    for monomial, coefficient in terms.items():
        rest = tuple((other, power) for other, power in monomial if other is not atom)
        product: Polynomial = {rest: coefficient}
        for _ in range(next((power for other, power in monomial if other is atom), 0)):
            grown: Polynomial = {}
            for by, count in value.items():
                grown = add_scaled(grown, product, count, by)
            product = grown
        total = add_scaled(total, product, 1)
    return total


def _shifted(terms: Polynomial, shifts: Mapping[Atom, Polynomial]) -> Polynomial:
    for atom in {atom for monomial in terms for atom, _ in monomial}:
        if atom in shifts:
            terms = _with(terms, atom, shifts[atom])
    return terms


def _lowest(
    terms: dict[Monomial, Any],
    facts: Sequence[Polynomial],
    free: set[Atom],
    widths: Mapping[Atom, float],
    depth: int,
    seen: dict[Any, Any],
) -> Any:
    """A lower bound of a polynomial whose factors are not negative, but those in `free`."""
    key = (frozenset(terms.items()), depth)
    if key in seen:
        return seen[key]
    seen[key] = -INFINITY
    total: Any = terms.get((), 0)
    open_terms = []
    for monomial, coefficient in terms.items():
        if not monomial:
            continue
        is_free = any(atom in free for atom, _ in monomial)
        if coefficient > 0 and not is_free:
            continue
        open_terms.append(monomial)
        if total > -INFINITY:
            factors = [INFINITY if is_free else widths[atom] ** power for atom, power in monomial]
            width = 0 if 0 in factors else math.prod(factors)
            total = -INFINITY if width == INFINITY else total + coefficient * int(width)
    best = total
    # The largest open one first; another would be met again after the first is gone.
    first = sorted(open_terms, key=lambda m: (sum(power for _, power in m), str(m)))[-1:]
    for monomial in (first or [m for m in terms if m]) if depth and facts else ():
        coefficient = terms[monomial]
        for fact in facts:
            for own, count in fact.items():
                if not own or (count > 0) != (coefficient > 0):
                    continue
                by = quotient_of(monomial, own)
                if by is None or any(atom in free for atom, _ in by):
                    continue
                left = add_scaled(terms, fact, -Fraction(coefficient, 1) / count, by)
                best = max(best, _lowest(left, facts, free, widths, depth - 1, seen))
    seen[key] = best
    return best


def _floordiv_range(x: tuple[float, float], y: tuple[float, float]) -> tuple[float, float]:
    if y[0] < 1:
        return -INFINITY, INFINITY
    low = x[0] // (y[1] if x[0] >= 0 else y[0]) if abs(x[0]) < INFINITY else -INFINITY
    high = x[1] // (y[0] if x[1] >= 0 else y[1]) if abs(x[1]) < INFINITY else INFINITY
    if math.isnan(low) or (x[0] >= 0 and low < 0):
        low = 0
    return low, -1 if x[1] < 0 and (math.isnan(high) or high == 0) else high


def _mod_range(x: tuple[float, float], y: tuple[float, float]) -> tuple[float, float]:
    if y[0] < 1:
        return -INFINITY, INFINITY
    return 0, min(y[1] - 1, x[1]) if x[0] >= 0 else y[1] - 1


_RANGES: dict[str, Callable[[tuple[float, float], tuple[float, float]], tuple[float, float]]] = {
    "max": lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    "min": lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    "floordiv": _floordiv_range,
    "mod": _mod_range,
}

__all__ = ["Assumption", "Constraint", "SymbolicScope", "times", "variables_of"]
