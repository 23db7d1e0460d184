"""Runs a program of symbolic shapes on padded arrays: each dimension has room for more than there is.

A value of type `f32[b,4]` is an array of shape (8, 4), say, whose first `b` rows are the value. What lies behind them
is arbitrary, NaN included: the `padded` rules of primitives take and give such arrays, and replace what must not be
seen before it is used. `Padding` holds the room for each variable, a number, and its true size, a value of the
program; it is the `at` that rules work with. Where both are the same numbers, the rules give the plain program.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from purax.core.avals import ShapedArray, aval_of
from purax.core.dimensions import Atom, DimSize, SymbolicDimension, is_symbolic_shape, substitute
from purax.core.jaxpr import ClosedJaxpr, Literal, Var
from purax.core.source import located, names, with_location
from purax.core.trace import current
from purax.interpreters.staging import stage
from purax.primitives.elementwise.arithmetic import div, max_, min_, rem, sub
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.elementwise.logic import and_, lt, select
from purax.primitives.reductions.reduction import reduce_and
from purax.primitives.shape.broadcasting import broadcast_in_dim, full
from purax.primitives.shape.dynamic_slicing import dynamic_slice, dynamic_update_slice
from purax.primitives.shape.gather_scatter import take
from purax.primitives.shape.reshaping import concatenate, iota, reshape
from purax.primitives.shape.slicing import pad, slice

_INT32 = np.dtype(np.int32)


class Padding:
    """The room and the true size of each dimension variable, and what `padded` rules do with them.

    Args:
        rooms: for each variable the size of arrays.
        sizes: for each variable its true size: a scalar of int32, or for all of them the numbers of `rooms`.
    """

    def __init__(self, rooms: Mapping[str, int], sizes: Mapping[str, Any]):
        self.is_exact = all(type(n) is int for n in sizes.values())
        self._rooms, self._sizes = dict(rooms), dict(sizes)
        self._true: dict[SymbolicDimension, Any] = {}
        self._bounds: dict[SymbolicDimension, tuple[int, int]] = {}

    # -- sizes

    def is_padded(self, n: DimSize) -> bool:
        """Whether arrays have more room than there is along such a dimension."""
        return isinstance(n, SymbolicDimension) and not self.is_exact

    def padded_axes(self, aval: ShapedArray) -> list[int]:
        """The axes along which arrays of a type have padding."""
        return [axis for axis, n in enumerate(aval.shape) if self.is_padded(n)]

    def room(self, n: DimSize) -> int:
        """The size of arrays along a dimension: a number that it never exceeds."""
        if not isinstance(n, SymbolicDimension):
            return n
        return substitute(n, self._sizes) if self.is_exact else max(self._range(n)[1], 0)

    def rooms(self, value: Any) -> Any:
        """Parameters with the room of each dimension in its place."""
        if isinstance(value, dict):
            return {key: self.rooms(x) for key, x in value.items()}
        if isinstance(value, tuple):
            made = [self.rooms(x) for x in value]
            return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
        return self.room(value) if isinstance(value, SymbolicDimension) else value

    def shape(self, aval: ShapedArray) -> tuple[int, ...]:
        """The shape of arrays of a type."""
        return tuple(map(self.room, aval.shape))

    def _range(self, n: DimSize) -> tuple[int, int]:
        if not isinstance(n, SymbolicDimension):
            return n, n
        if n not in self._bounds:
            low = high = 0
            for monomial, coefficient in n.terms:
                least = most = 1
                for atom, power in monomial:
                    for _ in range(power):
                        corners = [x * y for x in (least, most) for y in self._range_of(atom)]
                        least, most = min(corners), max(corners)
                ends = sorted((coefficient * least, coefficient * most))
                low, high = low + ends[0], high + ends[1]
            self._bounds[n] = low, high
        return self._bounds[n]

    def _range_of(self, atom: Atom) -> tuple[int, int]:
        if not atom.operands:
            return 1, self._rooms[atom.name]
        (low, high), (least, most) = map(self._range, atom.operands)
        if atom.name == "max":
            return max(low, least), max(high, most)
        if atom.name == "min":
            return min(low, least), min(high, most)
        if least <= 0:
            raise located(NotImplementedError, f"nothing bounds the dimension '{atom}', whose divisor may be 0 or less")
        if atom.name == "floordiv":
            corners = [x // y for x in (low, high) for y in (least, most)]
            return min(corners), max(corners)
        return 0, min(high, most - 1) if low >= 0 else most - 1

    def true(self, n: DimSize) -> Any:
        """The true size of a dimension: a number, or a scalar of int32."""
        if not isinstance(n, SymbolicDimension):
            return n
        if self.is_exact:
            return substitute(n, self._sizes)
        total: Any = None
        for monomial, coefficient in n.terms:
            product: Any = None
            for atom, power in monomial:
                for _ in range(power):
                    factor = self._true_atom(atom)
                    product = factor if product is None else mul(product, factor)
            if product is None:
                product = np.int32(coefficient)
            elif coefficient != 1:
                product = mul(product, np.int32(coefficient))
            total = product if total is None else add(total, product)
        return total

    def scalar(self, n: Any) -> Any:
        """A dimension, a number or a scalar as a scalar of int32."""
        value = self.true(n)
        return np.asarray(value, _INT32) if isinstance(value, int) else convert_element_type(value, _INT32)

    def _true_atom(self, atom: Atom) -> Any:
        if not atom.operands:
            return self._sizes[atom.name]
        x, y = map(self.scalar, atom.operands)
        if atom.name in ("max", "min"):
            return max_(x, y) if atom.name == "max" else min_(x, y)
        rest = rem(add(rem(x, y), y), y)
        return rest if atom.name == "mod" else div(sub(x, rest), y)

    # -- arrays

    def inside(self, aval: ShapedArray, axes: Sequence[int]) -> Any:
        """Where the elements of an array of a type are no padding along some axes; None if it has none there."""
        shape = self.shape(aval)
        mask = None
        for axis in axes:
            if self.is_padded(aval.shape[axis]):
                count = iota(_INT32, (shape[axis],))
                own = broadcast_in_dim(lt(count, self._spread(aval.shape[axis], (shape[axis],))), shape, (axis,))
                mask = own if mask is None else and_(mask, own)
        return mask

    def number(self, n: DimSize, aval: ShapedArray) -> Any:
        """A dimension as a scalar of a type."""
        return convert_element_type(self.scalar(n), aval.dtype, aval.weak_type)

    def bounds(self, n: DimSize) -> tuple[int, int]:
        """Between which numbers a dimension is."""
        return (self.room(n),) * 2 if self.is_exact and is_symbolic_shape([n]) else self._range(n)

    def difference(self, n: DimSize, other: DimSize) -> Any:
        """n − other: a number, or a scalar of int32."""
        first, second = self.true(n), self.true(other)
        if isinstance(first, int) and isinstance(second, int):
            return first - second
        return sub(self.scalar(n), self.scalar(other))

    def joined(self, operands: Sequence[Any], avals: Sequence[ShapedArray], axis: int) -> Any:
        """Arrays one after the other along an axis, without the padding between them."""
        total: Any = sum(aval.shape[axis] for aval in avals)
        shape = list(aval_of(operands[0]).shape)
        widest = max(aval_of(x).shape[axis] for x in operands)
        shape[axis] = self.room(total) + widest
        out, start = full(tuple(shape), 0, aval_of(operands[0]).dtype), 0
        for x, aval in zip(operands, avals, strict=True):  # the next one covers the padding of one
            starts = [self.scalar(start if a == axis else 0) for a in range(len(shape))]
            out, start = dynamic_update_slice(out, x, starts), start + aval.shape[axis]
        shape[axis] = self.room(total)
        return slice(out, [0] * len(shape), shape)

    def repeated_index(self, n: DimSize, total: DimSize) -> Any:
        """0, 1, …, n − 1, 0, 1, …: as many as there is room for `total`."""
        shape = (self.room(total),)
        return rem(iota(_INT32, shape), self._spread(n, shape))

    def taken(self, x: Any, index: Any, axis: int) -> Any:
        """The elements of an array at indices along an axis."""
        return take(x, index, axis)

    def clamped(self, indices: Any, least: Any, most: Sequence[Any]) -> Any:
        """Index vectors, along the last axis, of int32 between a number and a number or scalar for each component."""
        shape = aval_of(indices).shape
        row = concatenate([reshape(self.scalar(n), (1,)) for n in most], 0) if len(most) > 1 else None
        high = broadcast_in_dim(row, shape, (len(shape) - 1,)) if row is not None else self._spread(most[0], shape)
        return max_(min_(indices, high), full(shape, least, _INT32))

    def every(self, mask: Any) -> Any:
        """Whether all components of index vectors, along the last axis, are true."""
        return reduce_and(mask, (aval_of(mask).ndim - 1,))

    def _spread(self, n: Any, shape: tuple[int, ...]) -> Any:
        return broadcast_in_dim(self.scalar(n), shape, ())

    def filled(self, x: Any, aval: ShapedArray, axes: Sequence[int], value: Any) -> Any:
        """An array of a type with its padding along some axes replaced by a number or a scalar."""
        mask = self.inside(aval, axes)
        if mask is None:
            return x
        shape = aval_of(x).shape
        is_array = hasattr(value, "aval")
        other = broadcast_in_dim(value, shape, ()) if is_array else full(shape, value, aval_of(x).dtype)
        return select(mask, x, other)

    def fit(self, x: Any, shape: Sequence[DimSize]) -> Any:
        """An array with padding for a shape: cut, or made longer by zeros, at the ends."""
        rooms = [self.room(n) for n in shape]
        given = aval_of(x).shape
        if list(given) == rooms:
            return x
        x = slice(x, [0] * len(given), [min(n, m) for n, m in zip(given, rooms, strict=True)])
        more = [max(m - n, 0) for n, m in zip(given, rooms, strict=True)]
        return pad(x, np.zeros((), aval_of(x).dtype), [(0, n, 0) for n in more])

    def window(self, x: Any, starts: Sequence[Any], sizes: Sequence[DimSize]) -> Any:
        """The window of an array, that is inside of it but for its padding, at starts of any kind."""
        rooms, shape = [self.room(n) for n in sizes], aval_of(x).shape
        starts = [self.true(i) for i in starts]
        if all(isinstance(i, int) and i + m <= n for i, n, m in zip(starts, shape, rooms, strict=True)):
            return slice(x, list(starts), [i + m for i, m in zip(starts, rooms, strict=True)])
        more = [0 if type(i) is int and i + m <= n else m for i, n, m in zip(starts, shape, rooms, strict=True)]
        wide = pad(x, np.zeros((), aval_of(x).dtype), [(0, m, 0) for m in more])
        return dynamic_slice(wide, [self.scalar(i) for i in starts], rooms)

    def flat_index(self, shape: Sequence[DimSize]) -> Any:
        """For each place of an array of a shape, the number of the element there in the order of the true shape."""
        rooms = tuple([self.room(n) for n in shape])
        total = full(rooms, 0, _INT32)
        stride: Any = 1
        for axis in reversed(range(len(rooms))):
            place = broadcast_in_dim(iota(_INT32, (rooms[axis],)), rooms, (axis,))
            total = add(total, mul(place, self._spread(stride, rooms)))
            stride = stride * shape[axis]
        return total

    def reshaped(self, x: Any, old: Sequence[DimSize], new: Sequence[DimSize]) -> Any:
        """An array of one shape in another one, of as many elements."""
        rooms = [self.room(n) for n in new]
        if self.is_exact or _keeps_ends(self, old, new):
            return reshape(x, rooms)
        index = self.flat_index(new)
        place = full(tuple(rooms), 0, _INT32)
        stride = 1
        for axis in reversed(range(len(old))):
            n, room = self._spread(max_(self.scalar(old[axis]), np.int32(1)), tuple(rooms)), self.room(old[axis])
            own = min_(rem(index, n), full(tuple(rooms), max(room - 1, 0), _INT32))
            place = add(place, mul(own, full(tuple(rooms), stride, _INT32)))
            index, stride = div(index, n), stride * room
        flat = reshape(x, (aval_of(x).size,))
        return reshape(take(flat, reshape(place, (math.prod(rooms),)), 0), rooms)

    # -- programs

    def refuse(self, name: str, avals: Sequence[ShapedArray], why: str = "") -> NoReturn:
        """Raises for an operation that cannot be computed on padded arrays."""
        types = ", ".join(aval.str_short() for aval in avals)
        raise located(
            NotImplementedError,
            f"`{name}` of {types} cannot be computed on padded arrays{': ' + why if why else ''}. Leave the axis out "
            "of `dynamic`, or compute this outside of the function.",
        )

    def evaluate(self, closed: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
        """The results of a program on arrays with padding."""
        jaxpr = closed.jaxpr
        values: dict[Var, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
        values.update(zip(jaxpr.invars, operands, strict=True))
        outer = names.location, names.scope

        def read(atom: Any) -> Any:
            return atom.array if type(atom) is Literal else values[atom]

        try:
            for eqn in jaxpr.eqns:
                names.location, names.scope = eqn.source, eqn.scope or outer[1]
                given = tuple([read(v) for v in eqn.invars])
                outs = [v.aval for v in eqn.outvars]
                avals = [v.aval for v in eqn.invars]
                if not mentions(eqn.params) and not any(is_symbolic_shape(a.shape) for a in (*avals, *outs)):
                    result = current.trace.process(eqn.primitive, given, eqn.params)
                else:
                    try:
                        result = eqn.primitive.padded(self, avals, given, **eqn.params)
                    except NotImplementedError as error:
                        raise with_location(error, eqn.source) from None
                results = result if eqn.primitive.multiple_results else [result]
                for y, aval in zip(results, outs, strict=True):
                    if aval_of(y).shape != self.shape(aval):
                        raise AssertionError(
                            f"the padded form of `{eqn.primitive.name}` gave {aval_of(y).str_short()} for "
                            f"{aval.str_short()}"
                        )
                values.update(zip(eqn.outvars, results, strict=True))
        finally:
            names.location, names.scope = outer
        return [read(v) for v in jaxpr.outvars]

    def program(self, closed: ClosedJaxpr, name: str) -> ClosedJaxpr:
        """A program that is a parameter, on arrays with padding; true sizes are among its constants."""
        types = [self.type_of(aval) for aval in closed.in_avals]
        return stage(lambda *xs: self.evaluate(closed, xs), types, name)

    def type_of(self, aval: ShapedArray) -> ShapedArray:
        """The type of arrays with padding."""
        return aval.with_shape(self.shape(aval)) if is_symbolic_shape(aval.shape) else aval


def _keeps_ends(at: Padding, old: Sequence[DimSize], new: Sequence[DimSize]) -> bool:
    """Whether padding at the ends of axes is at the ends of axes after a reshape.

    Axes fall into groups of equal products; in a group only the first axis of either shape may have padding.
    """
    start = other = 0
    for end in range(1, len(old) + 1):
        whole = math.prod(old[:end])
        places = [n for n in range(other, len(new) + 1) if math.prod(new[:n]) == whole]
        if not places:
            continue
        last = places[-1] if end == len(old) else places[0]
        left, right = old[start:end], new[other:last]
        if any(at.is_padded(n) for n in (*left[1:], *right[1:])):
            return False
        if math.prod(map(at.room, left)) != math.prod(map(at.room, right)):
            return False
        start, other = end, last
    return start == len(old) and other == len(new)


def mentions(value: Any) -> bool:
    """Whether parameters, or the programs in them, have symbolic dimensions."""
    if isinstance(value, dict):
        return any(map(mentions, value.values()))
    if isinstance(value, tuple):
        return any(map(mentions, value))
    if isinstance(value, ClosedJaxpr):
        known = value.derived.get("mentions symbolic dimensions")
        if known is None:
            variables = itertools.chain(value.jaxpr.invars, *(eqn.outvars for eqn in value.eqns))
            known = any(is_symbolic_shape(v.aval.shape) for v in variables) or any(
                mentions(eqn.params) for eqn in value.eqns
            )
            value.derived["mentions symbolic dimensions"] = known
        return known
    return isinstance(value, SymbolicDimension)
