"""`Format` and `Layout`: descriptions of how arrays lie in memory and over devices."""

from __future__ import annotations

from typing import Any

from purax.control_flow.annotated_call import layout_constraint_p
from purax.core.source import located
from purax.errors import shown
from purax.interpreters.arguments import to_array
from purax.tree.prefix import broadcast_prefix
from purax.tree.registry import tree_flatten, tree_unflatten
from purax.xla.layout import Format, Layout

__all__ = ["Format", "Layout", "with_layout_constraint"]


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """`x`, which a compiled program holds in memory in the order of axes that `layouts` says; values stay the same.

    Args:
        x: an array, or a tree of them.
        layouts: a `Layout`, or a tree of them that is a prefix of `x`.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.experimental.layout import Layout, with_layout_constraint
    >>> px.jit(lambda x: with_layout_constraint(x, Layout((1, 0))) + 1)(jnp.zeros((1, 2)))
    Array([[1., 1.]], dtype=float32)
    """
    leaves, tree = tree_flatten(x)
    given = broadcast_prefix(layouts, x, is_leaf=lambda entry: isinstance(entry, Layout))
    placed = []
    for leaf, layout in zip(map(to_array, leaves), given, strict=True):
        if not isinstance(layout, Layout):
            raise located(
                TypeError,
                f"with_layout_constraint: layouts must be a Layout, or a tree of them, got {shown(layout)}",
            )
        if sorted(layout.major_to_minor) != list(range(leaf.ndim)):
            raise located(
                ValueError,
                f"with_layout_constraint: {layout} orders {len(layout.major_to_minor)} axes, the array has "
                f"{leaf.ndim}: {leaf.aval.str_short()}",
            )
        placed.append(layout_constraint_p.bind(leaf, order=tuple(layout.major_to_minor))[0])
    return tree_unflatten(tree, placed)
