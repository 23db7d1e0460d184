"""StableHLO with symbolic dimensions: `tensor<?x4xf32>`, and operations that take shapes as operands.

A module of such a program computes its dimension variables from the shapes of its arguments (`Dimensions`). What a
`lower` rule writes for a known shape is written here for a symbolic one: `broadcast_in_dim`, `iota` and `reshape`
become `dynamic_broadcast_in_dim`, … with the shape as one more operand, an array of int32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core.avals import ShapedArray
from purax.core.dimensions import Atom, DimSize, SymbolicDimension, is_symbolic_shape

SCALAR = ShapedArray((), np.dtype(np.int32))

_WITH_SHAPE = {
    "broadcast_in_dim": "dynamic_broadcast_in_dim",
    "iota": "dynamic_iota",
    "reshape": "dynamic_reshape",
}


def dynamic_form(
    builder: Any, name: str, operands: Sequence[Any], result: ShapedArray
) -> tuple[str, Sequence[Any]]:
    """The name and the operands of an operation whose result has a symbolic shape."""
    dynamic = _WITH_SHAPE.get(name)
    if dynamic is None:
        return name, operands
    return dynamic, (*operands, shape_value(builder, result.shape))


def shape_value(builder: Any, shape: Sequence[DimSize]) -> Any:
    """A shape, or another list of dimensions, as an array of int32."""
    aval = ShapedArray((len(shape),), SCALAR.dtype)
    if not is_symbolic_shape(shape):
        return builder.constant(np.asarray(shape, np.int32).reshape(len(shape)), aval)
    one = SCALAR.with_shape((1,))
    parts = [builder.op("reshape", (dimension_value(builder, n),), one) for n in shape]
    return parts[0] if len(parts) == 1 else builder.op("concatenate", parts, aval, "dimension = 0 : i64")


def dimension_value(builder: Any, dim: DimSize) -> Any:
    """A dimension as a scalar of int32."""
    if not isinstance(dim, SymbolicDimension):
        return builder.constant(int(dim), SCALAR)
    known = builder.known("dimension", dim)
    if known is not None:
        return known
    total = None
    for monomial, coefficient in dim.terms:
        product = None
        for atom, power in monomial:
            factor = _atom_value(builder, atom, dim.scope)
            for _ in range(power):
                product = factor if product is None else builder.op("multiply", (product, factor), SCALAR)
        if product is None:
            product = builder.constant(coefficient, SCALAR)
        elif coefficient != 1:
            product = builder.op("multiply", (product, builder.constant(coefficient, SCALAR)), SCALAR)
        total = product if total is None else builder.op("add", (total, product), SCALAR)
    builder.remember("dimension", dim, total)
    return total


def _atom_value(builder: Any, atom: Atom, scope: Any) -> Any:
    if not atom.operands:
        return builder.module.dimensions[atom.name]
    x, y = (dimension_value(builder, operand) for operand in atom.operands)
    if atom.name in ("max", "min"):
        return builder.op("maximum" if atom.name == "max" else "minimum", (x, y), SCALAR)
    rest = builder.op("remainder", (x, y), SCALAR)
    if scope.lower_bound(atom.operands[0]) >= 0 and scope.lower_bound(atom.operands[1]) >= 0:
        return builder.op("divide", (x, y), SCALAR) if atom.name == "floordiv" else rest
    # Python's: of the sign of y. It takes only operations that XLA computes while it refines shapes.
    rest = builder.op("remainder", (builder.op("add", (rest, y), SCALAR), y), SCALAR)
    if atom.name == "mod":
        return rest
    return builder.op("divide", (builder.op("subtract", (x, rest), SCALAR), y), SCALAR)


def dynamic_window(builder: Any, x: Any, starts: Sequence[Any], aval: ShapedArray) -> Any:
    """A window of symbolic sizes, which `dynamic_slice` cannot say: one that is gathered at a single place."""
    ones = [builder.reshape(start, (1,)) for start in starts]
    place = ones[0].aval.with_shape((len(ones),))
    index = ones[0] if len(ones) == 1 else builder.op("concatenate", ones, place, "dimension = 0 : i64")
    axes = list(range(x.ndim))
    numbers = f"#stablehlo.gather<offset_dims = {axes}, start_index_map = {axes}>"
    sizes = shape_value(builder, aval.shape)
    return builder.op("dynamic_gather", (x, index, sizes), aval, f"dimension_numbers = {numbers}")


def dimension_size(builder: Any, x: Any, axis: int) -> Any:
    """The length of an axis of a value, as a scalar of int32."""
    return builder.op("get_dimension_size", (x,), SCALAR, f"dimension = {axis} : i64")


def with_type(builder: Any, x: Any, text: str, aval: ShapedArray, from_: str | None = None) -> Any:
    """A value of another type, in text, that the same array has: with more, or fewer, of its dimensions known."""
    from_ = builder.type_of(x) if from_ is None else from_
    if from_ == text:
        return x
    target = builder.fresh()
    builder.lines.append(f'{target} = "stablehlo.convert"({x.name}) : ({from_}) -> {text}')
    return type(x)(target, aval)
