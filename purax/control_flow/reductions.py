"""Reductions with any associative operation, of several arrays at once: over axes (`reduce`) and over windows.

The operation is a program on scalars. The compiler runs it in its own loops; derivatives, and operations that captured
arrays, apply it to whole arrays instead: neighbours are combined until one element is left, or the elements of a
window one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.control_flow.bodies import stage_tree
from purax.control_flow.scan import as_program
from purax.core import dtypes, source
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.jaxpr import ClosedJaxpr, eval_jaxpr, inner_jaxprs
from purax.core.primitive import Primitive
from purax.execution import compiled_program
from purax.interpreters.arguments import name_of
from purax.interpreters.jvp import jvp_jaxpr
from purax.interpreters.vmap import batch_jaxpr
from purax.lowering import jaxpr_to_stablehlo
from purax.primitives.elementwise.logic import select_n
from purax.primitives.reductions.window_reduction import Window
from purax.primitives.shape.broadcasting import (
    batch_size,
    batch_to_front,
    broadcast_in_dim,
    drop_axes,
    kept_axes,
    transpose,
    zeros,
)
from purax.primitives.shape.reshaping import concatenate, reshape
from purax.primitives.shape.slicing import slice_axis
from purax.tree.registry import tree_structure, tree_unflatten
from purax.xla.stablehlo import integers

Combine = Callable[
    [Sequence[Any], Sequence[Any]], list[Any]
]  # of the leaves of two elements, all of one shape


class Program(Primitive):
    """Common to both: operands are arrays of one shape and an initial scalar for each; `jaxpr` combines elements."""

    multiple_results = True
    runs_itself = True
    opcode: str

    def run(self, *operands, **params):
        return compiled_program.run(as_program(self, [aval_of(x) for x in operands], params), operands)

    def out_shape(self, shape: tuple[int, ...], **params) -> tuple[int, ...]:
        raise NotImplementedError

    def fold(self, combine: Combine, arrays: Sequence[Any], initial: Sequence[Any], **params) -> list[Any]:
        """The results, by combining whole arrays; the initial values have the shape of the results."""
        raise NotImplementedError

    def infer(self, *avals, jaxpr, **params):
        shape = self.out_shape(avals[0].shape, **params)
        return [aval.with_shape(shape) for aval in jaxpr.out_avals]

    def emit(self, builder, operands, jaxpr: ClosedJaxpr, attributes: str, shape: tuple[int, ...]):
        scalars = [ShapedArray((), x.dtype) for x in operands[: len(operands) // 2]]
        body = builder.region(
            [*scalars, *scalars], lambda inner, *xs: jaxpr_to_stablehlo.lower_body(inner, jaxpr.jaxpr, xs)
        )
        results = [aval.with_shape(shape) for aval in scalars]
        return builder.op(self.opcode, operands, results, attributes, (body,))

    def jvp(self, primals, tangents, *, jaxpr, **params):
        count = len(primals) // 2
        moving = [dtypes.is_inexact(aval_of(x).dtype) for x in primals[:count]]
        shape = self.out_shape(aval_of(primals[0]).shape, **params)
        given = [t for t, m in zip(tangents[:count], moving, strict=True) if m]
        starts = [t for t, m in zip(tangents[count:], moving, strict=True) if m]
        given, starts = (
            [zeros(aval_of(x)) if type(t) is Zero else t for x, t in zip(xs, ts, strict=True)]
            for xs, ts in (
                ([x for x, m in zip(primals[:count], moving, strict=True) if m], given),
                ([x for x, m in zip(primals[count:], moving, strict=True) if m], starts),
            )
        )

        def combine(a, b):
            return on_arrays(jaxpr, [*a[:count], *b[:count]], [*a[count:], *b[count:]], moving)

        initial = [broadcast_in_dim(x, shape, ()) for x in (*primals[count:], *starts)]
        rest = iter(self.fold(combine, [*primals[:count], *given], initial, **params)[count:])
        out = self.bind(*primals, jaxpr=jaxpr, **params)
        return out, [next(rest) if m else Zero.like(y) for y, m in zip(out, moving, strict=True)]

    def batch(self, operands, batch_axes, *, jaxpr, **params):
        count = len(operands) // 2
        size = batch_size(operands, batch_axes)
        arrays = [
            batch_to_front(x, a, size) for x, a in zip(operands[:count], batch_axes[:count], strict=True)
        ]
        moved = self.behind_batch(**params)
        if all(axis is None for axis in batch_axes[count:]):
            return self.bind(*arrays, *operands[count:], jaxpr=jaxpr, **moved), [0] * count
        shape = self.out_shape(aval_of(arrays[0]).shape, **moved)
        initial = [
            broadcast_in_dim(batch_to_front(x, a, size), shape, (0,))
            for x, a in zip(operands[count:], batch_axes[count:], strict=True)
        ]
        return self.fold(lambda a, b: on_arrays(jaxpr, [*a, *b]), arrays, initial, **moved), [0] * count

    def behind_batch(self, **params) -> dict[str, Any]:
        """The parameters for arrays with a new axis in front."""
        raise NotImplementedError


class Reduce(Program):
    """Combines all elements along `dimensions`."""

    name = "reduce"
    opcode = "reduce"

    def out_shape(self, shape, *, dimensions):
        return drop_axes(shape, dimensions)

    def lower(self, builder, *operands, jaxpr, dimensions):
        shape = drop_axes(operands[0].shape, dimensions)
        return self.emit(builder, operands, jaxpr, f"dimensions = {integers(dimensions)}", shape)

    def fold(self, combine, arrays, initial, *, dimensions):
        shape = aval_of(arrays[0]).shape
        kept = kept_axes(len(shape), dimensions)
        out_shape = drop_axes(shape, dimensions)
        size = math.prod(shape[axis] for axis in dimensions)
        if size == 0:
            return list(initial)
        order = (*dimensions, *kept)
        values = [reshape(transpose(x, order), (size, *out_shape)) for x in arrays]
        while size > 1:
            half = size // 2
            even = [slice_axis(x, 0, 2 * half - 1, 0, 2) for x in values]
            odd = [slice_axis(x, 1, 2 * half, 0, 2) for x in values]
            paired = combine(even, odd)
            if size % 2:
                last = [slice_axis(x, size - 1, size, 0) for x in values]
                paired = [concatenate(pair, 0) for pair in zip(paired, last, strict=True)]
            values, size = paired, size - half
        return combine(initial, [reshape(x, out_shape) for x in values])

    def behind_batch(self, *, dimensions):
        return {"dimensions": tuple(axis + 1 for axis in dimensions)}


class ReduceWindow(Program):
    """Combines the elements of windows; the frame is filled with the initial values. See
    `primitives.reductions.window_reduction`."""

    name = "reduce_window"
    is_heavy = True
    opcode = "reduce_window"

    def out_shape(self, shape, **params):
        return Window(**params).shape(shape)

    def infer(self, *avals, jaxpr, **params):
        Window(**params).check(self.name, avals[0])
        return super().infer(*avals, jaxpr=jaxpr, **params)

    def lower(self, builder, *operands, jaxpr, **params):
        window = Window(**params)
        return self.emit(builder, operands, jaxpr, window.attributes(), window.shape(operands[0].shape))

    def fold(self, combine, arrays, initial, **params):
        window = Window(**params)
        # The initial values are the same at all places, but for a batch; elements of the frame are told by a mask.
        inside = window.elements(window.frame(np.ones(aval_of(arrays[0]).shape, np.bool_), np.array(False)))
        columns = [window.elements(window.frame(x, np.zeros((), aval_of(x).dtype))) for x in arrays]
        total = list(initial)
        for mask, *element in zip(inside, *columns, strict=True):
            framed = [select_n(mask, start, x) for x, start in zip(element, initial, strict=True)]
            total = combine(total, framed)
        return total

    def behind_batch(self, **params):
        return Window(**params).with_axis(0)._asdict()


reduce_p = Reduce()
reduce_window_p = ReduceWindow()


def on_arrays(
    closed: ClosedJaxpr, arrays: Sequence[Any], tangents: Sequence[Any] = (), moving: Sequence[bool] = ()
) -> list[Any]:
    """A program on scalars, applied to each element of arrays of one shape; then its tangents if there are any."""
    shape = aval_of(arrays[0]).shape
    size = math.prod(shape)
    out = len(closed.out_avals)
    applied, _ = batch_jaxpr(closed, [True] * len(arrays), size, None, [True] * out)
    if tangents:
        applied, _ = jvp_jaxpr(applied, [*moving, *moving], moving)
    flat = [reshape(x, (size,)) for x in (*arrays, *tangents)]
    return [reshape(y, shape) for y in eval_jaxpr(applied.jaxpr, applied.consts, *flat)]


def is_straight(closed: ClosedJaxpr) -> bool:
    """Whether XLA can have a program on scalars in its reductions: one without loops, branches, arrays and effects.

    Loops and branches inside of a reduction end the process on the CPU.
    """
    if closed.effects:
        return False
    for eqn in closed.jaxpr.eqns:
        if eqn.primitive.is_call:
            if not is_straight(eqn.params["jaxpr"]):
                return False
        elif eqn.primitive.runs_itself or eqn.primitive.lowers_to_loops or any(inner_jaxprs(eqn.params)):
            return False
        elif any(v.aval.shape or not isinstance(v.aval.dtype, np.dtype) for v in (*eqn.invars, *eqn.outvars)):
            return False
    return True


def stage_computation(
    computation: Callable, avals: Sequence[ShapedArray], tree: Any, what: str
) -> ClosedJaxpr:
    """A user's operation on pairs of elements as a program; its results must have the types of an element."""
    scalars = [ShapedArray((), aval.dtype) for aval in avals]
    element = tree_unflatten(tree, range(tree.num_leaves))
    both = tree_structure((element, element))
    closed, out_tree = stage_tree(computation, both, [*scalars, *scalars], f"{what}: computation")
    found = [(aval.shape, aval.dtype) for aval in closed.out_avals]
    if out_tree != tree or found != [((), aval.dtype) for aval in scalars]:
        wanted = ", ".join(aval.str_short() for aval in scalars)
        given = ", ".join(aval.str_short() for aval in closed.out_avals)
        raise source.located(
            TypeError,
            f"{what}: `{name_of(computation)}` must return what it combines, scalars of types ({wanted}) in the "
            f"structure {tree}; it returned ({given}) in the structure {out_tree}",
        )
    return closed


def operation_of(closed: ClosedJaxpr) -> Primitive | None:
    """The primitive that a program on two scalars consists of, if it is one that does not mind their order."""
    jaxpr = closed.jaxpr
    if len(jaxpr.eqns) != 1 or len(jaxpr.invars) != 2 or len(jaxpr.outvars) != 1:
        return None
    (eqn,) = jaxpr.eqns
    is_plain = not eqn.params and jaxpr.outvars[0] is eqn.outvars[0] and set(eqn.invars) == set(jaxpr.invars)
    return eqn.primitive if is_plain and len(eqn.invars) == 2 else None
