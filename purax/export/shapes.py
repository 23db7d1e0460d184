"""Shapes written as text. purax has no symbolic dimensions: what is written must be numbers, or be filled in from the
shape of an array; a dimension variable raises an error that says what to do instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NoReturn

from purax.api.stages import ShapeDtypeStruct
from purax.core.source import located
from purax.errors import shown
from purax.interpreters.arguments import aval_of_argument
from purax.tree.prefix import broadcast_prefix
from purax.tree.registry import tree_flatten, tree_unflatten

_DIMENSION = re.compile(r"\s*-?\s*\d+(\s*[-+*]\s*\d+)*\s*")
_TOKEN = re.compile(r"\d+|[-+*]")


def is_symbolic_dim(p: Any) -> bool:
    """Whether a dimension of a shape is a symbolic expression. In purax none is.

    >>> import purax as px
    >>> px.export.is_symbolic_dim(3)
    False
    """
    return False


class SymbolicScope:
    """Where dimension variables with their constraints belong. purax has no dimension variables, so that making a
    scope raises NotImplementedError.
    """

    def __init__(self, constraints_str: Sequence[str] = ()):
        _refuse("SymbolicScope")


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[int, ...]:
    """The shape that a text stands for.

    Args:
        shape_spec: dimensions with commas between them: integers and their sums, differences and products, `_` for the
            dimension that `like` has there, and `...` at the end for all further ones of `like`. None is all of `like`.
        constraints: on dimension variables; there are none.
        scope: of dimension variables; there are none.
        like: a shape from which `_` and `...` are filled in.

    Returns:
        The shape.

    Raises:
        NotImplementedError: if the text has dimension variables. Export once for each shape instead.

    >>> import purax as px
    >>> px.export.symbolic_shape("2, _, ...", like=(7, 3, 4))
    (2, 3, 4)
    """
    if constraints:
        _refuse(f"the constraints {list(constraints)}")
    if scope is not None:
        _refuse(f"the scope {shown(scope)}")
    if not isinstance(shape_spec, (str, type(None))):
        raise located(TypeError, f"symbolic_shape: the shape must be a text, got {shown(shape_spec)}")
    parts = ["..."] if shape_spec is None else _parts(shape_spec)
    shape: list[int] = []
    for i, part in enumerate(parts):
        if part == "...":
            if i != len(parts) - 1:
                raise located(ValueError, f"`...` must be last in the shape {shown(shape_spec)}")
            shape += [_filled(shape_spec, like, k) for k in range(i, len(_given(shape_spec, like)))]
        elif part == "_":
            shape.append(_filled(shape_spec, like, i))
        elif _DIMENSION.fullmatch(part):
            shape.append(_value(part))
        elif re.search(r"[^\W\d]", part):
            _refuse(f"the shape {shown(shape_spec)}")
        else:
            raise located(
                ValueError, f"syntax error in the shape {shown(shape_spec)}: {part!r} is not a dimension"
            )
    if like is not None and len(like) != len(shape):
        raise located(
            ValueError,
            f"the shape {shown(shape_spec)} has {len(shape)} dimensions, `like` {tuple(like)} has {len(like)}",
        )
    return tuple(shape)


def _parts(text: str) -> list[str]:
    inside = text.strip()
    if inside.startswith("(") and inside.endswith(")"):
        inside = inside[1:-1].strip()
    parts = [part.strip() for part in inside.split(",")] if inside else []
    return parts[:-1] if len(parts) > 1 and not parts[-1] else parts


def _given(text: str | None, like: Sequence[int | None] | None) -> Sequence[int | None]:
    if like is None:
        raise located(
            ValueError, f"the shape {text!r} has places to fill in; give `like`, the shape to take them from"
        )
    return like


def _filled(text: str | None, like: Sequence[int | None] | None, i: int) -> int:
    known = _given(text, like)
    if i >= len(known) or known[i] is None:
        raise located(
            ValueError, f"dimension {i} of the shape {text!r} is not known from `like` {tuple(known)}"
        )
    return known[i]  # type: ignore[return-value]


def _value(text: str) -> int:
    """Sums and differences of products of integers."""
    total, product, sign = 0, None, 1
    for token in _TOKEN.findall(text):
        if token in "+-":
            if product is not None:
                total += sign * product
            product, sign = None, 1 if token == "+" else -1
        elif token != "*":
            product = int(token) * (1 if product is None else product)
    return total + sign * (0 if product is None else product)


def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """Types for `export`, with shapes written as text.

    Args:
        args: arrays, or what has their shapes and dtypes, in any tree.
        shapes_specs: a text for `symbolic_shape` or None for each of them, or a tree that is a prefix of `args`.
        constraints: on dimension variables; there are none.
        scope: of dimension variables; there are none.

    Returns:
        `args` with a `ShapeDtypeStruct` for each array.

    >>> import purax as px, purax.numpy as jnp
    >>> px.export.symbolic_args_specs((jnp.ones((2, 3)),), "4, ...")
    (ShapeDtypeStruct(shape=(4, 3), dtype=float32),)
    """
    leaves, tree = tree_flatten(args)
    is_text = lambda x: x is None or isinstance(x, str)  # noqa: E731
    texts = broadcast_prefix(shapes_specs, args, is_leaf=is_text)
    made = []
    for leaf, text in zip(leaves, texts, strict=True):
        aval = aval_of_argument(leaf)
        shape = symbolic_shape(text, constraints=constraints, scope=scope, like=aval.shape)
        made.append(ShapeDtypeStruct(shape, aval.dtype))
    return tree_unflatten(tree, made)


def _refuse(what: str) -> NoReturn:
    raise located(
        NotImplementedError,
        f"{what} asks for symbolic dimensions, which purax does not have. Export the function once for each shape "
        "that will be needed (`{n: export(f)(ShapeDtypeStruct((n, 8), dtype)) for n in sizes}`), or for one large "
        "size, with smaller inputs padded to it and a mask or a length as one more argument.",
    )
