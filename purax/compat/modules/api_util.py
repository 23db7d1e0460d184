"""`jax.api_util`: functions of nested arguments as functions of flat ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from purax.compat.modules.linear_util import Store, WrappedFun, transformation2, transformation_with_aux2
from purax.compat.modules.util import safe_map
from purax.core.avals import ShapedArray
from purax.transforms.arguments import aval_of_argument
from purax.tree_prefix import broadcast_prefix
from purax.tree_registry import tree_flatten, tree_unflatten

__all__ = [
    "argnums_partial",
    "debug_info",
    "flatten_axes",
    "flatten_fun",
    "flatten_fun_nokwargs",
    "rebase_donate_argnums",
    "safe_map",
    "shaped_abstractify",
]


def _call_flat(fun: Callable, store: Store, in_tree: Any, *leaves: Any) -> list[Any]:
    args, kwargs = tree_unflatten(in_tree, leaves)
    out, out_tree = tree_flatten(fun(*args, **kwargs))
    store.store(out_tree)
    return out


def _call_flat_without_keywords(fun: Callable, store: Store, in_tree: Any, *leaves: Any) -> list[Any]:
    out, out_tree = tree_flatten(fun(*tree_unflatten(in_tree, leaves)))
    store.store(out_tree)
    return out


def flatten_fun(fun: WrappedFun, in_tree: Any) -> tuple[WrappedFun, Store]:
    """The function of the leaves of `(args, kwargs)`, and a store for the structure of its result."""
    return transformation_with_aux2(_call_flat, fun, in_tree)


def flatten_fun_nokwargs(fun: WrappedFun, in_tree: Any) -> tuple[WrappedFun, Store]:
    """The function of the leaves of `args`, and a store for the structure of its result."""
    return transformation_with_aux2(_call_flat_without_keywords, fun, in_tree)


def argnums_partial(
    fun: WrappedFun,
    argnums: int | Sequence[int],
    args: Sequence[Any],
    require_static_args_hashable: bool = True,
) -> tuple[WrappedFun, tuple[Any, ...]]:
    """The function of the arguments at `argnums` alone, the others being fixed, and those arguments."""
    chosen = [n % len(args) for n in ((argnums,) if isinstance(argnums, int) else argnums)]

    def call(function: Callable, *moving: Any, **kwargs: Any) -> Any:
        full = list(args)
        for n, value in zip(chosen, moving, strict=True):
            full[n] = value
        return function(*full, **kwargs)

    return transformation2(call, fun), tuple(args[n] for n in chosen)


def flatten_axes(
    name: str, treedef: Any, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False
) -> list[Any]:
    """One entry of `axis_tree`, a prefix of the structure `treedef`, per leaf."""
    return broadcast_prefix(
        axis_tree, tree_unflatten(treedef, [object()] * treedef.num_leaves), is_leaf=lambda x: x is None
    )


def rebase_donate_argnums(donate_argnums: Sequence[int], static_argnums: Sequence[int]) -> tuple[int, ...]:
    """The numbers of donated arguments, counted without the static ones."""
    return tuple(
        n - sum(s < n for s in static_argnums) for n in sorted(donate_argnums) if n not in static_argnums
    )


def shaped_abstractify(x: Any) -> ShapedArray:
    """The type of an argument."""
    return aval_of_argument(x)


def debug_info(traced_for: str, fun: Callable, args: Any, kwargs: Any, **options: Any) -> str:
    """How messages call a function that is transformed."""
    return f"{traced_for} of {getattr(fun, '__name__', fun)}"
