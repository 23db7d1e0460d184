"""`jax.api_util`: functions of nested arguments as functions of flat ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from purax.compat.modules.linear_util import Store, WrappedFun, transformation2, transformation_with_aux2
from purax.compat.modules.util import safe_map
from purax.core.avals import ShapedArray
from purax.core.jaxpr import DebugInfo
from purax.interpreters.arguments import aval_of_argument
from purax.tree.prefix import broadcast_prefix
from purax.tree.registry import tree_flatten, tree_unflatten

__all__ = [
    "argnums_partial",
    "debug_info",
    "donation_vector",
    "flatten_axes",
    "flatten_fun",
    "flatten_fun_nokwargs",
    "infer_argnums_and_argnames",
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


def flatten_fun(
    fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False, unk_names: bool = False
) -> tuple[WrappedFun, Store]:
    """The function of the leaves of `(args, kwargs)`, and a store for the structure of its result."""
    return transformation_with_aux2(_call_flat, fun, *gen_static_args)


def flatten_fun_nokwargs(
    fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False, unk_names: bool = False
) -> tuple[WrappedFun, Store]:
    """The function of the leaves of `args`, and a store for the structure of its result."""
    return transformation_with_aux2(_call_flat_without_keywords, fun, *gen_static_args)


def argnums_partial(
    f: WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Sequence[Any],
    require_static_args_hashable: bool = True,
) -> tuple[WrappedFun, tuple[Any, ...]]:
    """The function of the arguments at `dyn_argnums` alone, the others being fixed, and those arguments."""
    chosen = [n % len(args) for n in ((dyn_argnums,) if isinstance(dyn_argnums, int) else dyn_argnums)]

    def call(function: Callable, *moving: Any, **kwargs: Any) -> Any:
        full = list(args)
        for n, value in zip(chosen, moving, strict=True):
            full[n] = value
        return function(*full, **kwargs)

    return transformation2(call, f), tuple(args[n] for n in chosen)


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


def infer_argnums_and_argnames(
    sig: inspect.Signature, argnums: int | Iterable[int] | None, argnames: str | Iterable[str] | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The numbers and the names of chosen arguments; what is not given follows from the other and the signature."""
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    names = (argnames,) if isinstance(argnames, str) else argnames
    positional = [
        name
        for name, parameter in sig.parameters.items()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    by_name = [
        name for name in positional if sig.parameters[name].kind is not inspect.Parameter.POSITIONAL_ONLY
    ]
    if numbers is None:
        numbers = () if names is None else tuple(n for n, name in enumerate(positional) if name in names)
    elif names is None:
        inside = (n for n in numbers if -len(positional) <= n < len(positional))
        names = tuple(name for n in inside if (name := positional[n]) in by_name)
    return tuple(numbers), () if names is None else tuple(names)


def shaped_abstractify(x: Any) -> ShapedArray:
    """The type of an argument."""
    return aval_of_argument(x)


def debug_info(
    traced_for: str,
    fun: Callable,
    args: Any,
    kwargs: Any,
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    result_paths_thunk: Any = None,
    sourceinfo: str | None = None,
    signature: Any = None,
) -> DebugInfo:
    """Where a function that is transformed comes from.

    Args:
        traced_for: the transformation.
        fun: the function.
        args: its arguments.
        kwargs: its keyword arguments.
        static_argnums: the numbers of arguments that are not arrays.
        static_argnames: their names.
        result_paths_thunk: gives paths of the results.
        sourceinfo: the name of the function with its place.
        signature: the signature of the function.
    """
    names = tuple(f"args[{i}]" for i in range(len(args)) if i not in static_argnums)
    names += tuple(f"kwargs[{name!r}]" for name in kwargs if name not in static_argnames)
    paths = result_paths_thunk() if callable(result_paths_thunk) else None
    name = sourceinfo or str(getattr(fun, "__name__", fun))
    return DebugInfo(traced_for, name, names, paths)


def donation_vector(
    donate_argnums: Sequence[int], donate_argnames: Sequence[str], in_tree: Any, kws: bool = True
) -> tuple[bool, ...]:
    """For each leaf of the arguments whether it is donated.

    Args:
        donate_argnums: the numbers of donated arguments.
        donate_argnames: the names of donated keyword arguments.
        in_tree: the structure of `(args, kwargs)`, or of `args`.
        kws: whether it has keyword arguments.
    """
    leaves = tree_unflatten(in_tree, [object()] * in_tree.num_leaves)
    args, kwargs = leaves if kws else (leaves, {})
    found: list[bool] = []
    for i, x in enumerate(args):
        found += [i in donate_argnums] * len(tree_flatten(x)[0])
    for name, x in kwargs.items():
        found += [name in donate_argnames] * len(tree_flatten(x)[0])
    return tuple(found)
