"""Collective operations in which elements of a named axis send different amounts, or send now and receive later.

They are made of the operations that all platforms have, so they run, are differentiated and vectorized everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.interpreters.arguments import to_array
from purax.lax.collectives import all_gather, all_to_all, as_pairs, axis_size, ppermute
from purax.primitives.elementwise.arithmetic import sub
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add
from purax.primitives.elementwise.logic import and_, ge, lt, select
from purax.primitives.reductions.reduction import reduce_max
from purax.primitives.shape.broadcasting import broadcast_in_dim
from purax.primitives.shape.gather_scatter import take
from purax.primitives.shape.reshaping import iota, reshape
from purax.tree.registry import tree_flatten, tree_unflatten
from purax.tree_util import register_pytree_node_class

_INT32 = np.dtype(np.int32)


@register_pytree_node_class
class SentToken:
    """What `psend` sent, on its way to `precv`."""

    def __init__(self, values: Sequence[Any], axis_name: Any, perm: tuple[tuple[int, int], ...]):
        self.values, self.axis_name, self.perm = list(values), axis_name, perm

    def tree_flatten(self) -> tuple[tuple, Any]:
        return tuple(self.values), (self.axis_name, self.perm)

    @classmethod
    def tree_unflatten(cls, auxiliary: Any, values: Sequence[Any]) -> SentToken:
        return cls(values, *auxiliary)

    def __repr__(self) -> str:
        return f"SentToken({len(self.values)} arrays along {self.axis_name!r}, perm={list(self.perm)})"


def psend(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> SentToken:
    """Sends values along a named axis; `precv` receives them.

    Args:
        x: an array, or a tree of arrays.
        axis_name: the name.
        perm: pairs (source, destination) of positions; each position is at most once a source and once a destination.

    Returns:
        A token for `precv`, which may go through `optimization_barrier` to order other work between the two.

    >>> import purax as px, purax.numpy as jnp
    >>> def shifted(x):
    ...     token = px.lax.psend(x, "i", [(0, 1), (1, 2)])
    ...     return px.lax.precv(token, px.ShapeDtypeStruct(x.shape, x.dtype), "i", [(0, 1), (1, 2)])
    >>> px.vmap(shifted, axis_name="i")(jnp.array([1.0, 2.0, 3.0]))
    Array([0., 1., 2.], dtype=float32)
    """
    pairs = as_pairs(perm, "psend")
    leaves, _ = tree_flatten(x)
    return SentToken(ppermute(leaves, axis_name, pairs), axis_name, pairs)


def precv(token: Any, out_shape: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Receives what was sent along a named axis; positions that nothing is sent to get zeros.

    Args:
        token: what the `psend` gave that sends the values.
        out_shape: a `ShapeDtypeStruct` for each array, in the structure that the result shall have.
        axis_name, perm: as those of the `psend`.

    Returns:
        Arrays in the structure of `out_shape`.
    """
    pairs = as_pairs(perm, "precv")
    if not isinstance(token, SentToken):
        raise located(
            TypeError,
            f"precv needs the token of the psend whose values it receives, got {shown(token)}. To receive before a "
            "value is sent, do both at once: purax.lax.ppermute(x, axis_name, perm).",
        )
    if (token.axis_name, token.perm) != (axis_name, pairs):
        raise located(
            ValueError,
            f"precv along {shown(axis_name)} with perm={list(pairs)} does not fit its psend, along "
            f"{shown(token.axis_name)} with perm={list(token.perm)}",
        )
    wanted, tree = tree_flatten(out_shape)
    found = [to_array(x).aval for x in token.values]
    if [(tuple(s.shape), dtypes.as_exact_dtype(s.dtype)) for s in wanted] != [
        (a.shape, a.dtype) for a in found
    ]:
        raise located(
            ValueError,
            f"precv: out_shape is {out_shape}, but what was sent is {', '.join(a.str_short() for a in found)}",
        )
    return tree_unflatten(tree, token.values)


def ragged_all_to_all(
    operand: Any,
    output: Any,
    input_offsets: Any,
    send_sizes: Any,
    output_offsets: Any,
    recv_sizes: Any,
    *,
    axis_name: Any,
    axis_index_groups: Any = None,
) -> Array:
    """Exchanges slices of different sizes, along the first axis, between the elements of a named axis.

    With k slices for each of n elements, slice i goes to element i // k.

    Args:
        operand: (N, ...), of which slices are sent.
        output: (M, ...), into which slices are received.
        input_offsets: (n·k,), where the slices that are sent begin in `operand`.
        send_sizes: (n·k,), their sizes.
        output_offsets: (n·k,), where they begin in the `output` of the element that receives them.
        recv_sizes: (n·k,), the sizes of the slices that are received: `all_to_all` of `send_sizes`.
        axis_name: the name.
        axis_index_groups: lists of positions that exchange slices among each other, instead of all; of equal length.

    Returns:
        `output` with the slices that were received; of slices that overlap, the last.

    >>> import purax as px, purax.numpy as jnp
    >>> sizes = jnp.array([[1, 2], [1, 1]])
    >>> exchange = lambda *args: px.lax.ragged_all_to_all(*args, axis_name="i")
    >>> px.vmap(exchange, axis_name="i")(
    ...     jnp.array([[1, 2, 2], [3, 4, 0]]), jnp.zeros((2, 4), int), jnp.array([[0, 1], [0, 1]]), sizes,
    ...     jnp.array([[0, 0], [1, 2]]), sizes.T)
    Array([[1, 3, 0, 0],
           [2, 2, 4, 0]], dtype=int32)
    """
    x, out = to_array(operand), to_array(output)
    numbers = [to_array(v) for v in (input_offsets, send_sizes, output_offsets, recv_sizes)]
    size = axis_size(axis_name) if axis_index_groups is None else len(axis_index_groups[0])
    _check(x, out, numbers, size)
    starts, _, ends, sizes = (convert_element_type(v, _INT32) for v in numbers)
    count, rows = starts.aval.shape[0], x.aval.shape[0]
    if not (count and rows and out.aval.size):
        return out
    # Of each slice that arrives: where it begins among the rows of all senders, where here, and how long it is.
    begins, places = (
        all_to_all(v, axis_name, 0, 0, tiled=True, axis_index_groups=axis_index_groups) for v in (starts, ends)
    )
    senders = np.repeat(np.arange(size, dtype=np.int32), count // size) * np.int32(rows)
    begins = add(begins, senders)
    frame = (out.aval.shape[0], count)
    row = iota(_INT32, frame, 0)
    along = lambda v: broadcast_in_dim(v, frame, (1,))  # noqa: E731
    inside = and_(ge(row, along(places)), lt(row, add(along(places), along(sizes))))
    nothing = np.int32(-1)
    # The last slice that covers a row, and the row that comes from.
    last = reduce_max(select(inside, iota(_INT32, frame, 1), broadcast_in_dim(nothing, frame, ())), (1,))
    which = select(ge(last, 0), last, broadcast_in_dim(np.int32(0), last.shape, ()))
    origin = add(sub(iota(_INT32, frame[:1], 0), take(places, which, 0)), take(begins, which, 0))
    everything = all_gather(x, axis_name, axis_index_groups=axis_index_groups)
    everything = reshape(everything, (size * rows, *x.aval.shape[1:]))
    found = take(everything, origin, 0)
    arrives = broadcast_in_dim(ge(last, 0), out.aval.shape, (0,))
    return select(arrives, found, out)


def _check(x: Any, out: Any, numbers: Sequence[Any], size: int) -> None:
    names = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")
    for name, v in zip(names, numbers, strict=True):
        if v.aval.ndim != 1 or not dtypes.is_integer(v.aval.dtype):
            raise located(
                ValueError,
                f"ragged_all_to_all: {name} must be integers with one axis, got {v.aval.str_short()}",
            )
    lengths = [v.aval.shape[0] for v in numbers]
    if len(set(lengths)) > 1 or lengths[0] % size:
        raise located(
            ValueError,
            f"ragged_all_to_all: {', '.join(names)} must have one length, a multiple of the axis size {size}; got "
            f"{lengths}",
        )
    if x.aval.dtype != out.aval.dtype or not x.ndim or x.shape[1:] != out.shape[1:] or x.ndim != out.ndim:
        raise located(
            ValueError,
            "ragged_all_to_all: operand and output must have one dtype, and shapes that differ in the first axis "
            f"only; got {x.aval.str_short()} and {out.aval.str_short()}",
        )
