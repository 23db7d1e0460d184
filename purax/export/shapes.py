"""Shapes with dimension variables, written as text: `symbolic_shape("b, 4")`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from purax.api.stages import ShapeDtypeStruct
from purax.core.dimension_facts import SymbolicScope
from purax.core.dimension_text import parse_shape
from purax.core.dimensions import DimSize, is_symbolic_dim
from purax.core.source import located
from purax.errors import shown
from purax.interpreters.arguments import aval_of_argument
from purax.tree.prefix import broadcast_prefix
from purax.tree.registry import tree_flatten, tree_unflatten


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[DimSize, ...]:
    """The shape that a text stands for.

    Args:
        shape_spec: dimensions with commas between them. A dimension is a number, a variable, a sum, difference or
            product, `floordiv(x, y)`, `mod(x, y)`, `max(x, y)` or `min(x, y)`; `_` is the dimension that `like` has
            there, and `...` at the end all further ones of `like`. None is all of `like`.
        constraints: what holds of the variables besides that they are at least 1: texts with `>=`, `<=` or `==`.
        scope: the scope of other dimensions that these shall be computed with; it has its own constraints.
        like: a shape from which `_` and `...` are filled in.

    Returns:
        The shape: integers and symbolic dimensions.

    >>> import purax as px
    >>> b, s = px.export.symbolic_shape("b, s", constraints=["s >= 2*b", "mod(s, 8) == 0"])
    >>> s // 8 * 8, s > b, (2 * b + 4) // 2
    (s, True, b + 2)
    >>> px.export.symbolic_shape("b, _, ...", like=(7, 3, 4))
    (b, 3, 4)
    """
    if scope is not None:
        if not isinstance(scope, SymbolicScope):
            raise located(TypeError, f"symbolic_shape: scope must be a SymbolicScope, got {shown(scope)}")
        if constraints:
            raise located(
                ValueError,
                "Cannot add new constraints to an existing scope: give symbolic_shape either constraints or a scope",
            )
    if not isinstance(shape_spec, (str, type(None))):
        raise located(TypeError, f"symbolic_shape: the shape must be a text, got {shown(shape_spec)}")
    own = SymbolicScope(constraints) if constraints or scope is None else scope
    return parse_shape(shape_spec, lambda: own, like)


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """Types for `export`, with shapes written as text.

    Args:
        args: arrays, or what has their shapes and dtypes, in any tree.
        shapes_specs: a text for `symbolic_shape` or None for each of them, or a tree that is a prefix of `args`.
        constraints: on the variables, as `symbolic_shape` takes them.
        scope: the scope of the variables, instead of constraints.

    Returns:
        `args` with a `ShapeDtypeStruct` for each array; their dimensions have one scope.

    >>> import purax as px, purax.numpy as jnp
    >>> px.export.symbolic_args_specs((jnp.ones((2, 3)), jnp.ones(2)), ("b, ...", "b"))
    (ShapeDtypeStruct(shape=(b, 3), dtype=float32), ShapeDtypeStruct(shape=(b,), dtype=float32))
    """
    if scope is not None and constraints:
        raise located(
            ValueError,
            "Cannot use both `constraints` and `scope` in symbolic_args_specs: a scope has its own constraints",
        )
    leaves, tree = tree_flatten(args)
    is_text = lambda x: x is None or isinstance(x, str)  # noqa: E731
    texts = broadcast_prefix(shapes_specs, args, is_leaf=is_text)
    own = SymbolicScope(constraints) if scope is None else scope
    made = []
    for leaf, text in zip(leaves, texts, strict=True):
        aval = aval_of_argument(leaf)
        made.append(ShapeDtypeStruct(symbolic_shape(text, scope=own, like=aval.shape), aval.dtype))
    return tree_unflatten(tree, made)


__all__ = ["SymbolicScope", "is_symbolic_dim", "symbolic_args_specs", "symbolic_shape"]
