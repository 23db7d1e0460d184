"""Two arrays that the partitioner lays over the devices in the same way, whichever that is."""

from __future__ import annotations

from typing import Any

from purax.control_flow.annotated_call import shard_alike_p
from purax.core.source import located
from purax.interpreters.arguments import to_array
from purax.tree.registry import tree_flatten, tree_unflatten

__all__ = ["shard_alike"]


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """`x` and `y`, to be sharded alike.

    Args:
        x: an array, or a tree of them.
        y: the same tree, with arrays of the same shapes.

    >>> from purax.experimental.shard_alike import shard_alike
    >>> import purax.numpy as jnp
    >>> shard_alike(jnp.arange(2), jnp.ones(2))
    (Array([0, 1], dtype=int32), Array([1., 1.], dtype=float32))
    """
    x_leaves, x_tree = tree_flatten(x)
    y_leaves, y_tree = tree_flatten(y)
    if x_tree != y_tree:
        raise located(ValueError, f"shard_alike: Trees should match. `x` is {x_tree}, and `y` is {y_tree}.")
    pairs = []
    for a, b in zip(map(to_array, x_leaves), map(to_array, y_leaves), strict=True):
        if a.shape != b.shape:
            raise located(
                ValueError,
                "shard_alike: The leaves shapes of `x` and `y` should match. Got `x` leaf shape: "
                f"{a.shape} and `y` leaf shape: {b.shape}.",
            )
        pairs.append(shard_alike_p.bind(a, b))
    return tree_unflatten(x_tree, [a for a, _ in pairs]), tree_unflatten(y_tree, [b for _, b in pairs])
