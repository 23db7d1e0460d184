"""`ragged.vmap`: a function of one example, which sees its own length, mapped over examples of unequal lengths.

The function is traced once, with a symbolic length. Examples are padded, and the program runs on padded arrays
(`interpreters.padding`), vectorized over the examples with their lengths. Its derivatives are taken of the program of
one example, before anything is padded, so that what lies in the padding reaches no gradient.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.dimension_facts import SymbolicScope
from purax.core.dimensions import is_symbolic_shape, variable
from purax.core.jaxpr import ClosedJaxpr, dependent_results, eval_jaxpr
from purax.core.jaxpr_hash import fingerprint
from purax.core.primitive import LinearOperand, Primitive
from purax.core.source import located
from purax.core.trace import Tracer
from purax.execution import compiled_program
from purax.interpreters.arguments import aval_of_argument, require_function, to_array
from purax.interpreters.jvp import jvp_jaxpr
from purax.interpreters.linearize import linearize_jaxpr
from purax.interpreters.padding import Padding
from purax.interpreters.program_rules import by_operand, with_tangents
from purax.interpreters.simplify import hoist_constants
from purax.interpreters.staging import stage
from purax.interpreters.transpose import transpose_jaxpr
from purax.interpreters.vmap import batch_jaxpr
from purax.lowering import jaxpr_to_stablehlo
from purax.primitives.shape.broadcasting import batch_size, batch_to_front, reduce_sum
from purax.ragged.arrays import RaggedArray, from_padded
from purax.tree.registry import tree_flatten, tree_unflatten

_INT32 = np.dtype(np.int32)
_LENGTH = "length"


class _OfAnyLength:
    """A program of one example of symbolic length, as a parameter that passes over programs do not look into."""

    def __init__(self, closed: ClosedJaxpr):
        self.closed = closed
        self.fingerprint = fingerprint(closed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _OfAnyLength) and other.fingerprint == self.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)


class RaggedCall(Primitive):
    """Calls a program of one example on each of a batch: of the lengths, and of operands with room for `room` rows.

    Params:
        program: of one example, without constants.
        room: what every example is padded to.
        mapped: for each operand whether it has an axis of examples in front; all results have one.
        name: of the function.
    """

    name = "ragged_call"
    multiple_results = True
    runs_itself = True
    not_lowered = ("name",)

    def infer(self, lengths, *avals, program, room, mapped, name):
        at = _padding(room, None)
        return [at.type_of(aval).with_axis(0, lengths.shape[0]) for aval in program.closed.out_avals]

    def plain(self, count: int, program, room, mapped, name) -> ClosedJaxpr:
        """The program of the whole batch, of plain shapes."""
        key = ("ragged", count, room, tuple(mapped))
        closed = program.closed
        if key not in closed.derived:
            at = _padding(room, None)
            types = [ShapedArray((), _INT32), *map(at.type_of, closed.in_avals)]
            one = stage(lambda n, *xs: _padding(room, n).evaluate(closed, xs), types, name)
            everywhere = [True] * len(closed.out_avals)
            derived = batch_jaxpr(hoist_constants(one), [True, *mapped], count, force=everywhere)[0]
            closed.derived[key] = hoist_constants(derived)
        return closed.derived[key]

    def run(self, lengths, *operands, **params):
        return compiled_program.run(self.plain(aval_of(lengths).shape[0], **params), [lengths, *operands])

    def lower(self, builder, lengths, *operands, **params):
        plain = self.plain(lengths.shape[0], **params)
        return jaxpr_to_stablehlo.lower_call(builder, plain, [lengths, *operands], params["name"])

    def opened(self, avals, params):
        return self.plain(avals[0].shape[0], **params)

    def depends(self, flags, *, program, **params):
        return dependent_results(program.closed.jaxpr, flags[1:])

    def call(self, closed: ClosedJaxpr, lengths: Any, operands: Sequence, mapped: Sequence[bool], params: dict) -> list:
        """Calls a program made from that of one example."""
        program = _OfAnyLength(hoist_constants(closed))
        flags = (*[False] * len(closed.consts), *mapped)
        return self.bind(lengths, *closed.consts, *operands, **{**params, "program": program, "mapped": flags})

    def jvp(self, primals, tangents, *, program, mapped, **params):
        (lengths, *given), moving = primals, [type(t) is not Zero for t in tangents[1:]]
        derivative, out_moving = jvp_jaxpr(program.closed, moving)
        moved = [t for t in tangents[1:] if type(t) is not Zero]
        flags = [*mapped, *(flag for flag, moves in zip(mapped, moving, strict=True) if moves)]
        results = self.call(derivative, lengths, [*given, *moved], flags, params)
        return with_tangents(results[: len(out_moving)], results[len(out_moving) :], out_moving)

    def linearize(self, primals, tangents, *, program, mapped, **params):
        (lengths, *given), moving = primals, [type(t) is not Zero for t in tangents[1:]]
        primal, linear, out_moving, _ = linearize_jaxpr(program.closed, moving)
        results = self.call(primal, lengths, given, mapped, params)
        out, residuals = results[: len(out_moving)], results[len(out_moving) :]
        moved = [t for t in tangents[1:] if type(t) is not Zero]
        flags = [*[True] * len(residuals), *(flag for flag, moves in zip(mapped, moving, strict=True) if moves)]
        given = self.call(linear, lengths, [*residuals, *moved], flags, params) if any(out_moving) else ()
        return with_tangents(out, given, out_moving)

    def transpose(self, cotangents, lengths, *operands, program, mapped, **params):
        linear = [type(x) is LinearOperand for x in operands]
        given = [type(c) is not Zero for c in cotangents]
        transposed, flowing = transpose_jaxpr(program.closed, linear, given)
        fixed = [x for x in operands if type(x) is not LinearOperand]
        flags = [flag for flag, is_linear in zip(mapped, linear, strict=True) if not is_linear]
        flowed = [c for c in cotangents if type(c) is not Zero]
        results = self.call(transposed, lengths, [*fixed, *flowed], [*flags, *[True] * len(flowed)], params)
        of_linear = [flag for flag, is_linear in zip(mapped, linear, strict=True) if is_linear]
        shared = [not flag for flag, flows in zip(of_linear, flowing, strict=True) if flows]
        results = [reduce_sum(y, (0,)) if one else y for y, one in zip(results, shared, strict=True)]
        return [None, *by_operand(operands, flowing, results)]

    def batch(self, operands, batch_axes, **params):
        size, lengths = batch_size(operands, batch_axes), aval_of(operands[0])
        count = (lengths if batch_axes[0] is None else lengths.without_axis(batch_axes[0])).shape[0]
        plain = self.plain(count, **params)
        moved = [x if a is None else batch_to_front(x, a, size) for x, a in zip(operands, batch_axes, strict=True)]
        closed, flags = batch_jaxpr(plain, [a is not None for a in batch_axes], size)
        return eval_jaxpr(closed.jaxpr, closed.consts, *moved), [0 if flag else None for flag in flags]


ragged_call_p = RaggedCall()


def _padding(room: int, length: Any) -> Padding:
    return Padding({_LENGTH: room}, {_LENGTH: length})


def vmap(function: Callable[..., Any], *, length: int | None = None) -> Callable[..., Any]:
    """Maps a function of one example over the examples of ragged arrays.

    Args:
        function: takes an array of shape (length, …) for each ragged argument, and every other argument as it is. The
            length is a symbolic dimension: it can be computed with, but no Python code can depend on it.
        length: of the longest example, or more. By default that of the longest, up to the next power of two; where the
            lengths are not known, as inside of `jit`, the number of all rows.

    Returns:
        A function of the same arguments. Results whose first axis is as long as the example are ragged arrays; others
        have an axis of examples in front.

    >>> import purax as px, purax.numpy as jnp
    >>> x = px.ragged.from_list([[3.0, 1.0, 2.0], [5.0, 4.0]])
    >>> ordered, mean = px.ragged.vmap(lambda row: (jnp.sort(row), row.sum() / row.shape[0]))(x)
    >>> [y.tolist() for y in ordered.to_list()], mean.tolist()
    ([[1.0, 2.0, 3.0], [4.0, 5.0]], [2.0, 4.5])
    """
    require_function(function, "ragged.vmap")

    @functools.wraps(function)
    def mapped(*args: Any) -> Any:
        leaves, tree = tree_flatten(args, is_leaf=lambda x: isinstance(x, RaggedArray))
        first = next((x for x in leaves if isinstance(x, RaggedArray)), None)
        if first is None:
            raise located(TypeError, "ragged.vmap: none of the arguments is a RaggedArray; use `purax.vmap`")
        for x in leaves:
            if isinstance(x, RaggedArray):
                first._rows_of(x, "vmap")
        room = _room(first, length)
        scope = SymbolicScope()
        n = variable(scope, _LENGTH)
        types = [_type_of_one(x, n) for x in leaves]
        out_tree: Any = None

        def flat(*values: Any) -> list[Any]:
            nonlocal out_tree
            found, out_tree = tree_flatten(function(*tree_unflatten(tree, values)))
            return [to_array(y) for y in found]

        closed = stage(flat, types, getattr(function, "__name__", "function"))
        if scope.assumptions:
            texts = ", ".join(one.text for one in scope.assumptions.values())
            raise located(ValueError, f"ragged.vmap: the function depends on the length in Python, it takes {texts}")
        operands = [x.to_padded(length=room) if isinstance(x, RaggedArray) else to_array(x) for x in leaves]
        flags = [isinstance(x, RaggedArray) for x in leaves]
        params = {"room": room, "name": closed.jaxpr.name}
        results = ragged_call_p.call(closed, first.lengths, operands, flags, params)
        made = [_result(y, aval, first, n) for y, aval in zip(results, closed.out_avals, strict=True)]
        return tree_unflatten(out_tree, made)

    return mapped


def _room(x: RaggedArray, length: int | None) -> int:
    if isinstance(x.splits, Tracer):
        return max(x.rows, 1) if length is None else length
    longest = int(np.max(np.diff(np.asarray(x.splits)), initial=1))
    if length is not None and length < longest:
        raise located(ValueError, f"ragged.vmap: length {length} is less than that of an example, {longest}")
    return 1 << max(longest - 1, 0).bit_length() if length is None else length


def _type_of_one(x: Any, n: Any) -> ShapedArray:
    if not isinstance(x, RaggedArray):
        return aval_of_argument(x)
    aval = aval_of(x.values)
    return ShapedArray((n, *aval.shape[1:]), aval.dtype)


def _result(y: Any, aval: ShapedArray, like: RaggedArray, n: Any) -> Any:
    """A result of all examples: a ragged array if its first axis is the length."""
    if not is_symbolic_shape(aval.shape):
        return y
    if aval.shape[0] != n or is_symbolic_shape(aval.shape[1:]):
        raise located(
            ValueError,
            f"ragged.vmap: a result of one example has the type {aval.str_short()}; results are as long as the example "
            "along their first axis, or of fixed shapes",
        )
    made = from_padded(y, like.lengths, rows=like.rows)
    return RaggedArray(made.values, like.splits)


