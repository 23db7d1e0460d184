"""User functions as programs: what branches and loops share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from purax.core import purity_hook, source
from purax.core.avals import ShapedArray, aval_of
from purax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from purax.core.rewriting_hook import record_or_rewrite
from purax.errors import shown
from purax.interpreters.arguments import name_of, to_array
from purax.interpreters.staging import checked_results, stage
from purax.primitives.collective.collectives import pvary_p
from purax.primitives.elementwise.conversion import convert_element_type
from purax.tree.registry import keystr, tree_flatten, tree_flatten_with_path, tree_unflatten


def stage_tree(
    function: Callable, tree: Any, avals: Sequence[ShapedArray], what: str, step: Callable | None = None
) -> tuple[ClosedJaxpr, Any]:
    """A user's function of the arguments with structure `tree`, as a program, and the structure of its results.

    With `step`, the program is `step(function, *arguments)`.
    """
    if not callable(function):
        raise source.located(
            TypeError, f"{what} must be a function, got {shown(function)} of type {type(function).__name__}"
        )
    out_tree = None

    def record(function):
        def flat(*leaves):
            nonlocal out_tree
            args = tree_unflatten(tree, leaves)
            if step is None:
                results = purity_hook.call(function, args, {})
            else:
                results = step(lambda *args: purity_hook.call(function, args, {}), *args)
            out, out_tree = tree_flatten(results)
            return checked_results(out, results, name_of(function))

        return stage(flat, avals, name_of(function))

    return record_or_rewrite(record, function), out_tree


def with_result_types(closed: ClosedJaxpr, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The program with its results converted to `avals`, as by `as_type`."""
    if all(given is wanted for given, wanted in zip(closed.out_avals, avals, strict=True)):
        return closed

    def converted(*args):
        results = eval_jaxpr(closed.jaxpr, closed.consts, *args)
        return [as_type(y, aval) for y, aval in zip(results, avals, strict=True)]

    return stage(converted, closed.in_avals, closed.jaxpr.name)


def as_type(x: Any, aval: ShapedArray) -> Any:
    """An array converted to a type that differs in dtype, in weakness, or in saying that it varies over a mesh."""
    own = aval_of(x)
    if own.dtype != aval.dtype or own.weak_type != aval.weak_type:
        x = convert_element_type(x, aval.dtype, aval.weak_type)
    new = aval.vma - own.vma
    return pvary_p.bind(x, axis_name=tuple(sorted(new, key=str))) if new else x


def arrays_in(leaves: Sequence[Any], tree: Any, what: str) -> list[Any]:
    """The leaves of an argument as arrays; the error for one that is none calls it by its path."""
    try:
        return [to_array(x) for x in leaves]
    except (TypeError, OverflowError):
        for x, path in zip(leaves, leaf_paths(tree), strict=True):
            try:
                to_array(x)
            except (TypeError, OverflowError) as error:
                raise source.located(type(error), f"{what}{path}: {error}") from None
        raise


def leaf_paths(tree: Any) -> list[str]:
    """How messages call the leaves of a structure: `['w'][0]`."""
    placeholders = tree_unflatten(tree, range(tree.num_leaves))
    return [keystr(path) for path, _ in tree_flatten_with_path(placeholders)[0]]
