"""User functions with custom rules, as functions on flat lists: what `custom_jvp` and `custom_vjp` share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from purax.core import source
from purax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from purax.transforms.arguments import as_names, as_positions, name_of
from purax.transforms.staging import checked_results, stage
from purax.transforms.simplify import hoist_constants
from purax.tree_registry import tree_flatten, tree_unflatten


class FlatCall:
    """A function of a tree of arguments as one of leaves; remembers the structure of the results in `structure`."""

    def __init__(self, function: Callable, tree: Any, structure: Structure):
        self.function = function
        self.tree = tree
        self.structure = structure

    def __call__(self, *leaves):
        results = self.function(*tree_unflatten(self.tree, leaves))
        out, self.structure.tree = tree_flatten(results)
        return checked_results(out, results, name_of(self.function))


class Structure:
    """The structure of the results of a call, known once one of its forms has run."""

    __slots__ = ("tree",)

    def __init__(self):
        self.tree = None


def run_flat(call: Any, operands: Sequence[Any]) -> list[Any]:
    """Runs a program or a function on flat lists."""
    if isinstance(call, ClosedJaxpr):
        return eval_jaxpr(call.jaxpr, call.consts, *operands)
    return call(*operands)


def stage_call(call: Any, operands: tuple, name: str) -> tuple[ClosedJaxpr, list[Any]]:
    """A call as a program without constants, and the values it captured, which become its first operands."""
    if isinstance(call, ClosedJaxpr):
        return call, []
    from_avals = [x.aval for x in operands]
    closed = stage(call, from_avals, name)
    return hoist_constants(closed), closed.consts


def signature_of(function: Callable) -> inspect.Signature | None:
    """The signature of a function, or None where it cannot be found out."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def positional(
    function: Callable, signature: inspect.Signature | None, args: tuple, kwargs: dict[str, Any], what: str
) -> tuple:
    """The arguments of a call by position, with defaults filled in."""
    if not kwargs and (signature is None or len(args) >= len(signature.parameters)):
        return args
    if signature is None:
        raise source.with_location(
            TypeError(f"{what} `{name_of(function)}` was called with keywords, but its signature is not known")
        )
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise source.with_location(
            TypeError(
                f"{what} `{name_of(function)}` has keyword-only arguments {sorted(bound.kwargs)}; rules are written for "
                "positional ones. Make them positional."
            )
        )
    return bound.args


def nondiff_positions(function: Callable, numbers: Any, names: Any) -> tuple[int, ...]:
    """Positions of the arguments that are not differentiated, given by number or name."""
    positions = list(as_positions(numbers, "nondiff_argnums"))
    words = as_names(names, "nondiff_argnames")
    if words:
        parameters = list(inspect.signature(function).parameters)
        positions.extend(parameters.index(word) for word in words)
    return tuple(sorted(set(positions)))


def split_arguments(args: tuple, fixed: Sequence[int]) -> tuple[list[Any], tuple]:
    """Arguments that are not differentiated, and the others."""
    positions = {i % len(args) for i in fixed if -len(args) <= i < len(args)}
    return [args[i] for i in sorted(positions)], tuple(x for i, x in enumerate(args) if i not in positions)


def join_arguments(fixed_values: Sequence[Any], fixed: Sequence[int], others: Sequence[Any]) -> tuple:
    """The inverse of `split_arguments`."""
    count = len(fixed_values) + len(others)
    positions = sorted({i % count for i in fixed if -count <= i < count})
    rest = iter(others)
    given = dict(zip(positions, fixed_values, strict=True))
    return tuple(given[i] if i in given else next(rest) for i in range(count))
