"""The length of `x[start:stop]` where the bounds are traced but their difference is known, as in `x[i:i+n]`.

While a program is recorded, bounds are followed back through the equations that made them, as sums of variables with
integer coefficients: 2·i + 4 − 2·i = 4. What is not such a sum counts as a variable, and equations that compute the
same make the same variable, as in `x[i//2 : i//2 + n]`. Under `vmap` of concrete arrays the values give the difference.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.dimensions import as_size
from purax.core.exact import exact_items
from purax.core.jaxpr import JaxprEqn, Literal, Var
from purax.core.trace import Tracer
from purax.interpreters.jvp import JVPTracer
from purax.interpreters.linearize import LinearizeTracer
from purax.interpreters.staging import StagedTracer
from purax.interpreters.vmap import BatchTracer
from purax.primitives.elementwise.arithmetic import sub_p
from purax.primitives.elementwise.conversion import convert_element_type_p
from purax.primitives.elementwise.elementwise import add_p, mul_p, neg_p
from purax.xla.array import DeviceArray


def static_length(part: slice) -> int | None:
    """The length of a slice with traced bounds and a known step, if it is the same whatever their values are.

    Such a slice is a window that starts at `start`, counted from the end if negative, and lies inside of the array:
    the cuts that Python makes where bounds are out of range, or of unlike signs, would change the length.

    Args:
        part: the slice; at least one of its bounds is a tracer.

    Returns:
        The length, or None if it is not known.

    >>> import purax
    >>> purax.jit(lambda x, i: x[i:i+2])(purax.numpy.arange(5), 1)
    Array([1, 2], dtype=int32)
    """
    if part.start is None or part.stop is None or isinstance(part.step, Tracer):
        return None
    if any(getattr(bound, "shape", ()) != () for bound in (part.start, part.stop)):
        return None
    length = difference(part.stop, part.start)
    return None if length is None else max(0, -(-length // as_size(part.step or 1)))


def difference(x: Any, y: Any) -> int | None:
    """x − y if that is a number that does not depend on traced values."""
    traced = next((z for z in (x, y) if isinstance(z, Tracer)), None)
    if traced is None:
        return constant(np.asarray(values(x)) - np.asarray(values(y)))
    if isinstance(traced, StagedTracer):
        owner: Any = traced.owner
        known = Known(owner.makers())
        total = Sum.of(x, owner, known).plus(Sum.of(y, owner, known), -1)
        return None if any(total.terms.values()) else total.number
    if (
        isinstance(x, BatchTracer)
        and isinstance(y, BatchTracer)
        and (x.owner is not y.owner or x.axis != y.axis)
    ):
        return None
    x, y = underlying(x), underlying(y)
    return None if x is None or y is None else difference(x, y)


def underlying(x: Any) -> Any:
    """What a tracer of a transformation other than recording stands for: the primal, or the whole batch."""
    if isinstance(x, (JVPTracer, LinearizeTracer)):
        return x.primal
    if isinstance(x, BatchTracer):
        return x.value
    return None if isinstance(x, Tracer) else x


def values(x: Any) -> Any:
    return x.host_value() if x.__class__ is DeviceArray else x


def constant(x: np.ndarray) -> int | None:
    """The value that all elements have."""
    return int(x.flat[0]) if x.size and (x == x.flat[0]).all() else None


class Known:
    """What is known of the variables of a program: the equations that make them, and the sums that they are.

    Each has a number; variables that are computed in the same way have the same one.
    """

    def __init__(self, made_by: dict[Var, JaxprEqn]):
        self.made_by = made_by
        self.sums: dict[Var, Sum] = {}
        self._numbers: dict[Any, int] = {}
        self._kinds: dict[Any, int] = {}

    def number(self, atom: Any) -> int:
        if isinstance(atom, Literal):
            value = np.asarray(atom.val)
            return self._number_of(("literal", atom.aval, value.dtype, value.tobytes()))
        found = self._numbers.get(atom)
        if found is None:
            found = self._numbers[atom] = self._number_of(self._kind(atom))
        return found

    def _kind(self, atom: Var) -> Any:
        equation = self.made_by.get(atom)
        if equation is None or equation.effects:
            return atom
        params = tuple(sorted(exact_items(equation.params), key=operator.itemgetter(0)))
        try:
            hash(params)
        except TypeError:
            return atom
        inputs = tuple(map(self.number, equation.invars))
        return equation.primitive, params, inputs, equation.outvars.index(atom)

    def _number_of(self, kind: Any) -> int:
        return self._kinds.setdefault(kind, len(self._kinds))


class Sum:
    """number + Σ coefficient · variable"""

    __slots__ = ("number", "terms")

    def __init__(self, number: int, terms: dict[Any, int]):
        self.number = number
        self.terms = terms

    def plus(self, other: Sum, factor: int = 1) -> Sum:
        terms = dict(self.terms)
        for term, coefficient in other.terms.items():
            terms[term] = terms.get(term, 0) + factor * coefficient
        return Sum(self.number + factor * other.number, terms)

    def times(self, factor: int) -> Sum:
        return Sum(self.number * factor, {term: c * factor for term, c in self.terms.items()})

    @staticmethod
    def of(x: Any, trace: Any, known: Known) -> Sum:
        """x, taken apart into the variables that the program was given."""
        if isinstance(x, StagedTracer) and x.owner is trace:
            return Sum.of_atom(x.variable, known)
        if isinstance(x, Array):
            return Sum(0, {("array", id(x)): 1})
        return Sum(int(x), {})

    @staticmethod
    def of_atom(atom: Any, known: Known) -> Sum:
        """A variable or a literal of the program, taken apart; each variable once, however often it is used."""
        if isinstance(atom, Literal):
            return Sum(int(atom.val), {})
        if atom not in known.sums:
            known.sums[atom] = Sum.of_variable(atom, known)
        return known.sums[atom]

    @staticmethod
    def of_variable(atom: Var, known: Known) -> Sum:
        """A variable, by the equation that makes it."""
        equation = known.made_by.get(atom)
        if equation is not None and all(dtypes.is_integer(v.aval.dtype) for v in (atom, *equation.invars)):
            primitive = equation.primitive
            given = [v.aval for v in equation.invars]
            is_same = primitive.moves_elements and len(given) == 1 and given[0].size == 1
            if is_same or primitive is convert_element_type_p and _widens(given[0], atom.aval):
                return Sum.of_atom(equation.invars[0], known)
            if primitive in (add_p, sub_p, mul_p, neg_p):
                first, *second = [Sum.of_atom(v, known) for v in equation.invars]
                if primitive is neg_p:
                    return first.times(-1)
                if primitive is not mul_p:
                    return first.plus(second[0], 1 if primitive is add_p else -1)
                for one, other in ((first, second[0]), (second[0], first)):
                    if not any(one.terms.values()):
                        return other.times(one.number)
        return Sum(0, {known.number(atom): 1})


def _widens(given: ShapedArray, made: ShapedArray) -> bool:
    """Whether a conversion keeps all values."""
    bits, more = dtypes.itemsize_bits(given.dtype), dtypes.itemsize_bits(made.dtype)
    return bits < more or bits == more and dtypes.is_unsigned(given.dtype) == dtypes.is_unsigned(made.dtype)
