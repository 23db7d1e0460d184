"""The first and the last repetition of a stretch, which often lack a part of the others: nobody asks for the derivative
with respect to the data, so that the first layer does less in both directions.

Such an end is made one more call of the shared function, and results that it would not have had go unused. That saves
the kernels of a whole layer, and costs what XLA does for nothing, which must be little.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from purax.core.jaxpr import Atom, JaxprEqn, Literal, Var
from purax.primitives.shape.slicing import slice_p

_FEWEST_MATCHED = 0.4  # of the equations of a piece
_MOST_EXTRA = 0.05  # of the products of matrices, which cost most of the time, of all pieces


class Piece(NamedTuple):
    """The equations from `first` up to `stop`, what they take from outside, and their results that are used outside."""

    first: int
    stop: int
    operands: list[Var]
    results: list[Var]


class Ends:
    """Finds the ends of stretches; knows the pieces of earlier stretches, which operands come from.

    Args:
        eqns: the equations of the program.
        numbers: of the equations, the same for those that compute the same function of the same types.
        last_use: the position of the last equation that uses a variable.
    """

    def __init__(self, eqns: Sequence[JaxprEqn], numbers: Sequence[int], last_use: dict[Var, int]):
        self.eqns = eqns
        self.numbers = numbers
        self.last_use = last_use
        self.origin: dict[Var, tuple[Piece, int]] = {}

    def remember(self, pieces: Iterable[Piece]) -> None:
        """Takes note of what the pieces of a stretch give."""
        for piece in pieces:
            self.origin.update((v, (piece, n)) for n, v in enumerate(piece.results))

    def before(self, pieces: Sequence[Piece], start: int) -> Piece | None:
        """The piece that ends where the first of `pieces` starts, itself not earlier than at `start`."""
        model = pieces[0]
        number = self.numbers[model.first]
        for first in range(max(start, model.first - (model.stop - model.first)), model.first):
            if self.numbers[first] == number:
                found = self._match(pieces, first, model.first)
                if found is not None and found.stop == model.first:
                    return found
        return None

    def after(self, pieces: Sequence[Piece], stop: int) -> Piece | None:
        """The piece that starts where the last of `pieces` ends, itself not later than at `stop`."""
        last = pieces[-1]
        return self._match(pieces, last.stop, min(stop, last.stop + last.stop - last.first))

    def _match(self, pieces: Sequence[Piece], first: int, stop: int) -> Piece | None:
        """The piece that starts at `first` and does in the same order some of what `pieces` do."""
        model = pieces[0]
        bound: dict[Var, Any] = {}
        inside: set[Var] = set()
        place, matched, extra = first, 0, 0
        for i in range(model.first, model.stop):
            eqn = self.eqns[i]
            inside.update(eqn.outvars)
            if place < stop and self._is_same(i, place, bound, inside):
                bound.update(zip(eqn.outvars, self.eqns[place].outvars, strict=True))
                matched += 1
                place += 1
            else:
                extra += eqn.primitive.is_matrix_product
        heavies = sum(eqn.primitive.is_matrix_product for eqn in self.eqns[model.first : model.stop])
        if (
            matched < _FEWEST_MATCHED * (model.stop - model.first)
            or extra > _MOST_EXTRA * heavies * (len(pieces) + 1)
            or not self._gives_all(model, bound, first, place)
        ):
            return None
        operands = self._complete(pieces, bound)
        if operands is None:
            return None
        return Piece(first, place, operands, [bound.get(v) or Var(v.aval) for v in model.results])

    def _is_same(self, i: int, place: int, bound: dict[Var, Atom], inside: set[Var]) -> bool:
        """Whether the equation at `place` does what the one at `i` does to the values `bound` to its operands."""
        if self.numbers[i] != self.numbers[place]:
            return False
        eqn, other = self.eqns[i], self.eqns[place]
        if eqn.primitive is slice_p and eqn.params["start_indices"] != other.params["start_indices"]:
            return False
        new: dict[Var, Any] = {}
        for v, atom in zip(eqn.invars, other.invars, strict=True):
            if type(v) is Literal:
                continue
            known = bound.get(v, new.get(v))
            if known is None and v in inside:
                return False  # the other would have it from somewhere else
            if known is not None and known is not atom:
                return False
            new[v] = atom
        bound.update(new)
        return True

    def _gives_all(self, model: Piece, bound: dict[Var, Atom], first: int, stop: int) -> bool:
        """Whether all that is used of the equations from `first` up to `stop` are results of the piece."""
        given = {bound[v] for v in model.results if v in bound}
        return all(
            v in given or self.last_use.get(v, -1) < stop
            for eqn in self.eqns[first:stop]
            for v in eqn.outvars
        )

    def _complete(self, pieces: Sequence[Piece], bound: dict[Var, Atom]) -> list[Var] | None:
        """The operands of an end; those that no equation of it uses come from where the others' come from."""
        model = pieces[0]
        # A piece that gave a known operand of the end stands to it as the one that gave the model's to the model.
        makers: dict[int, tuple[Piece, Piece]] = {}
        for v in model.operands:
            theirs, ours = self.origin.get(v), self.origin.get(bound.get(v))  # type: ignore[arg-type]
            if theirs is not None and ours is not None and theirs[1] == ours[1]:
                makers.setdefault(theirs[0].first, (theirs[0], ours[0]))
        alike: dict[Var, Var] = {}
        for their_piece, our_piece in makers.values():
            alike.update(
                zip(
                    (*their_piece.operands, *their_piece.results),
                    (*our_piece.operands, *our_piece.results),
                    strict=True,
                )
            )
        operands: list[Any] = []
        for n, v in enumerate(model.operands):
            known = bound.get(v) or alike.get(v)
            if known is None and all(piece.operands[n] is v for piece in pieces):
                known = v
            if known is None:
                return None
            operands.append(known)
        return operands
