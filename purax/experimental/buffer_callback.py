"""Python functions that write their results into buffers, called from programs: `buffer_callback`.

On the CPU, buffers are memory of the host and the function sees arrays of NumPy; other platforms call it on the host,
too, with copies.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from purax.callbacks.io import io_callback
from purax.callbacks.pure import pure_callback
from purax.core.source import located
from purax.tree.registry import tree_flatten, tree_unflatten

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]


class ExecutionStage(enum.Enum):
    """What a program is doing when it calls."""

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


class ExecutionContext:
    """What a callback may ask about the call."""

    @property
    def stage(self) -> ExecutionStage:
        """What the program is doing: it runs."""
        return ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        """The stream of a GPU, of which the host has none."""
        raise RuntimeError("the callback runs on the host, where there is no stream")


class Buffer:
    """Memory that a callback reads, or writes if it is `writeable`: `np.asarray(buffer)` is an array on it."""

    def __init__(self, array: np.ndarray, writeable: bool):
        self._array = array
        self.writeable = writeable

    dtype = property(lambda self: self._array.dtype)
    ndim = property(lambda self: self._array.ndim)
    shape = property(lambda self: self._array.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if dtype is not None and np.dtype(dtype) != self._array.dtype:
            return self._array.astype(dtype)
        return self._array.copy() if copy else self._array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: dict[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """A function of arrays that calls Python, which writes the results in place.

    Args:
        callback: called as `callback(context, out, *args)`, where `out` has the structure of the results and all
            arrays are `Buffer`s; it returns nothing.
        result_shape_dtypes: the types of the results: a tree of objects with a shape and a dtype.
        has_side_effect: whether it is called even if nothing needs its results.
        vmap_method: what `vmap` makes of it, as in `pure_callback`.
        input_output_aliases: from the number of an operand to that of a result of its type, whose buffer begins with
            the values of the operand.
        command_buffer_compatible: on GPUs; the host has no command buffers.

    >>> import numpy as np, purax as px, purax.numpy as jnp
    >>> from purax.experimental.buffer_callback import buffer_callback
    >>> def add_one(context, out, x):
    ...     np.asarray(out)[...] = np.asarray(x) + 1
    >>> x = jnp.array(41, dtype=jnp.int32)
    >>> px.jit(buffer_callback(add_one, px.ShapeDtypeStruct.like(x)))(x)
    Array(42, dtype=int32)
    """
    results, out_tree = tree_flatten(result_shape_dtypes)
    aliases = dict(input_output_aliases or {})

    def called(*args: Any) -> Any:
        operands, in_tree = tree_flatten(args)
        for source, target in aliases.items():
            given, wanted = operands[source], results[target]
            if tuple(given.shape) != tuple(wanted.shape) or given.dtype != wanted.dtype:
                raise located(
                    ValueError,
                    f"buffer_callback: input_output_aliases={aliases} joins {given.shape} {given.dtype} and "
                    f"{wanted.shape} {wanted.dtype}, which differ",
                )

        def on_host(*arrays: Any) -> Any:
            given = [np.asarray(x) for x in arrays]
            leading = _leading(given, operands)
            made = [np.zeros((*leading, *r.shape), np.dtype(r.dtype)) for r in results]
            for source, target in aliases.items():
                made[target][...] = given[source]
            outs = tree_unflatten(out_tree, [Buffer(x, True) for x in made])
            callback(ExecutionContext(), outs, *tree_unflatten(in_tree, [Buffer(x, False) for x in given]))
            return tuple(made)

        types = tuple(results)
        if has_side_effect:
            return tree_unflatten(out_tree, io_callback(on_host, types, *operands))
        return tree_unflatten(out_tree, pure_callback(on_host, types, *operands, vmap_method=vmap_method))

    return called


def _leading(given: list[np.ndarray], operands: list[Any]) -> tuple[int, ...]:
    """The batch axes that `vmap` put in front of the arguments."""
    shapes = [x.shape[: x.ndim - np.ndim(own)] for x, own in zip(given, operands, strict=True)]
    return np.broadcast_shapes(*shapes) if shapes else ()
