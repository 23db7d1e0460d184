"""`io_callback`: a Python function with side effects as an operation, called exactly as often as the program says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purax.callbacks.arguments import check_callable, check_sharding, promised, split_arguments
from purax.callbacks.callback import CallbackPrimitive
from purax.core import effects
from purax.core.source import located
from purax.tree.registry import tree_unflatten

_UNORDERED = frozenset((effects.io,))
_ORDERED = frozenset((effects.ordered_io,))


class IoCallback(CallbackPrimitive):
    """Calls a function for its effects; `ordered` callbacks are called in the order of the program."""

    name = "io_callback"

    def effects(self, *, ordered, **params):
        return _ORDERED if ordered else _UNORDERED

    def jvp(self, primals, tangents, *, callback, **params):
        raise located(
            ValueError,
            f"io_callback has no derivative, but the {callback.name} is called with a value that is being "
            "differentiated. Pass `purax.lax.stop_gradient(x)`, or use `purax.debug.callback`, which "
            "returns nothing.",
        )

    def batch(self, operands, batch_axes, *, callback, ordered, **params):
        if ordered:
            raise located(
                ValueError,
                f"io_callback with ordered=True cannot be vectorized by vmap: the {callback.name} would be "
                "called for all "
                "examples at once. Use ordered=False, or `purax.lax.map` instead of vmap.",
            )
        return self.mapped(operands, batch_axes, callback=callback, ordered=ordered, **params)


io_callback_p = IoCallback()


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Calls a Python function with side effects from a program.

    Args:
        callback: the function. It is called with NumPy arrays (read-only) in place of the arrays in `args` and
            `kwargs`; numbers become arrays too, and everything else is passed as it is. It is called even if
            nothing needs its result.
        result_shape_dtypes: what it returns: a tree of objects with a shape and a dtype; None for a function that
            returns nothing.
        *args: its arguments, trees of arrays.
        sharding: None, or a `SingleDeviceSharding` of this process, where the function runs in any case.
        ordered: whether it is called after the ordered callbacks that come before it, in this program and in
            earlier ones.
        **kwargs: its keyword arguments.

    Returns:
        What the function returned, as arrays of the promised types.

    >>> import purax as px
    >>> from purax.experimental import io_callback
    >>> log = []
    >>> @px.jit
    ... def f(x):
    ...     io_callback(lambda value: log.append(float(value)), None, x, ordered=True)
    ...     return x + 1
    >>> f(1.0), px.effects_barrier(), log
    (Array(2., dtype=float32, weak_type=True), None, [1.0])
    """
    check_callable(callback, "io_callback")
    check_sharding(sharding, "io_callback")
    avals, tree = promised(result_shape_dtypes, "io_callback")
    function, arrays = split_arguments(callback, args, kwargs, "io_callback")
    results = io_callback_p.bind(*arrays, callback=function, result_avals=avals, ordered=bool(ordered))
    return tree_unflatten(tree, results)
