"""`pure_callback`: a Python function of arrays as an operation, such as one of NumPy, SciPy or scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purax.callbacks.arguments import check_callable, check_sharding, promised, split_arguments
from purax.callbacks.callback import CallbackPrimitive, batch_in_front, with_axis, with_batch
from purax.core.source import located
from purax.errors import shown
from purax.primitives.shape.broadcasting import batch_size
from purax.tree.registry import tree_unflatten

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


class PureCallback(CallbackPrimitive):
    """Calls a function without effects; it may be called any number of times, or not at all."""

    name = "pure_callback"
    not_lowered = ("vmap_method",)

    def jvp(self, primals, tangents, *, callback, **params):
        raise located(
            ValueError,
            f"pure_callback has no derivative: what the {callback.name} computes is not known. Give the "
            "function that "
            "calls it a derivative with `purax.custom_jvp` or `purax.custom_vjp`.",
        )

    def batch(self, operands, batch_axes, *, callback, result_avals, vmap_method):
        params = dict(callback=callback, result_avals=result_avals, vmap_method=vmap_method)
        if vmap_method is None:
            raise located(
                NotImplementedError,
                f"pure_callback of the {callback.name} under vmap needs to know how the function takes a "
                "batch: give "
                f"vmap_method one of {', '.join(map(repr, VMAP_METHODS))}. 'sequential' calls it once per example, "
                "'broadcast_all' calls it once with all arrays batched in front.",
            )
        if vmap_method.startswith("sequential"):
            return self.mapped(operands, batch_axes, **params)
        size = batch_size(operands, batch_axes)
        moved = batch_in_front(operands, batch_axes)
        if vmap_method != "legacy_vectorized":
            new_size = 1 if vmap_method == "expand_dims" else size
            moved = [
                with_axis(x, new_size) if axis is None else x
                for x, axis in zip(moved, batch_axes, strict=True)
            ]
        params["result_avals"] = with_batch(result_avals, size)
        results = self.bind(*moved, **params)
        return results, [0] * len(results)


pure_callback_p = PureCallback()


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Calls a Python function from a program: what NumPy, SciPy or scikit-learn compute, inside of `jit`.

    Args:
        callback: a function without side effects. It is called with NumPy arrays (read-only) in place of the arrays in
            `args` and `kwargs`; numbers become arrays too, and everything else is passed as it is. It may be
            called more than once, or not at all if nothing needs its result. What it does with purax itself is
            computed on the host.
        result_shape_dtypes: what it returns: a tree of objects with a shape and a dtype, such as `ShapeDtypeStruct`.
        *args: its arguments, trees of arrays.
        sharding: None, or a `SingleDeviceSharding` of this process, where the function runs in any case.
        vmap_method: what `vmap` makes of it. "sequential" calls it for one example after the other; "expand_dims" and
            "broadcast_all" call it once with a batch axis in front of every argument, which for arguments without
            a batch has size 1, or the size of the batch; "legacy_vectorized" leaves arguments without a batch as
            they are; None refuses.
        **kwargs: its keyword arguments.

    Returns:
        What the function returned, as arrays of the promised types.

    >>> import numpy as np, purax as px, purax.numpy as jnp
    >>> @px.jit
    ... def f(x):
    ...     return 2 * px.pure_callback(np.sort, px.ShapeDtypeStruct(x.shape, x.dtype), x)
    >>> f(jnp.array([3.0, 1.0, 2.0]))
    Array([2., 4., 6.], dtype=float32)
    """
    check_callable(callback, "pure_callback")
    check_sharding(sharding, "pure_callback")
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise located(
            ValueError,
            f"pure_callback: vmap_method must be one of {', '.join(map(repr, VMAP_METHODS))} or None, got "
            f"{shown(vmap_method)}",
        )
    avals, tree = promised(result_shape_dtypes, "pure_callback")
    function, arrays = split_arguments(callback, args, kwargs, "pure_callback")
    results = pure_callback_p.bind(*arrays, callback=function, result_avals=avals, vmap_method=vmap_method)
    return tree_unflatten(tree, results)
