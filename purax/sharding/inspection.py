"""`inspect_array_sharding`: tells a function where an array lies, or where the compiler puts a value of a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purax.core import effects
from purax.core.primitive import Primitive
from purax.errors import shown
from purax.interpreters.arguments import to_array
from purax.sharding import propagation
from purax.tree.registry import tree_leaves

_EFFECTS = frozenset((effects.inspection,))


class InspectSharding(Primitive):
    """Calls `callback` with the sharding of `x`; no results."""

    name = "inspect_sharding"
    multiple_results = True
    runs_itself = True

    def infer(self, x, *, callback):
        return []

    def effects(self, *, callback):
        return _EFFECTS

    def host(self, x, *, callback):
        return []

    def run(self, x, *, callback):
        callback(x.sharding)
        return []

    def lower(self, builder, x, *, callback):
        propagation.mark(builder, x, callback)
        return []

    def guarded(self, condition, operands, **params):
        return self.bind(*operands, **params)

    def jvp(self, primals, tangents, **params):
        return self.bind(*primals, **params), []

    def batch(self, operands, batch_axes, **params):
        return self.bind(*operands, **params), []


inspect_sharding_p = InspectSharding()


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], None]) -> None:
    """Calls a function with the sharding of each array in a tree.

    Args:
        value: arrays. Inside of `jit` the function is called when the program is compiled, with the sharding that the
            compiler chooses for the value at this point.
        callback: takes a sharding.

    >>> import purax as px
    >>> px.debug.inspect_array_sharding(px.numpy.ones(3), callback=lambda s: print(type(s).__name__))
    SingleDeviceSharding
    """
    if not callable(callback):
        raise TypeError(
            f"inspect_array_sharding: callback must be a function of a sharding, got {shown(callback)}"
        )
    for x in tree_leaves(value):
        inspect_sharding_p.bind(to_array(x), callback=callback)
