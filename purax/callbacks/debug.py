"""`debug_callback`: calls Python to look at values. It has no results, so it changes nothing that is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purax.callbacks.arguments import check_callable, split_arguments
from purax.callbacks.callback import CallbackPrimitive
from purax.core import effects

_UNORDERED = frozenset((effects.debug,))
_ORDERED = frozenset((effects.ordered_debug,))


class DebugCallback(CallbackPrimitive):
    """Shows values to a function; differentiation shows no tangents, and vmap shows one example at a time."""

    name = "debug_callback"

    def effects(self, *, ordered, **params):
        return _ORDERED if ordered else _UNORDERED

    def jvp(self, primals, tangents, **params):
        return self.bind(*primals, **params), []

    def batch(self, operands, batch_axes, **params):
        return self.mapped(operands, batch_axes, **params)

    def lower(self, builder, *operands, partitioned=False, **params):
        if partitioned and builder.module.mesh is not None and not builder.manual:
            raise NotImplementedError(
                f"{params['callback'].name}: partitioned=True is not supported in a program over a mesh, where XLA "
                "cuts up values; call it in a `purax.shard_map`, which shows the part on each device"
            )
        return super().lower(builder, *operands, **params)


debug_callback_p = DebugCallback()


def show(
    callback: Callable[..., Any],
    args: tuple,
    kwargs: dict[str, Any],
    ordered: bool,
    what: str,
    partitioned: bool = False,
) -> None:
    """Calls a function with the values of its arguments when they are known, and drops its result."""
    check_callable(callback, what)
    function, arrays = split_arguments(callback, args, kwargs, what)
    options = {"ordered": bool(ordered)} | ({"partitioned": True} if partitioned else {})
    debug_callback_p.bind(*arrays, callback=function, result_avals=(), **options)
