"""User functions with custom rules, as functions on flat lists: what `custom_jvp`, `custom_vjp` and `custom_vmap`
share.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core import dtypes, source
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.batch_rule import batch_rule
from purax.core.jaxpr import ClosedJaxpr, dependent_results, eval_jaxpr
from purax.core.jaxpr_check import same_type
from purax.core.primitive import Primitive
from purax.core.rewriting_hook import call_or_rewrite
from purax.interpreters import plain_numbers
from purax.interpreters.arguments import as_names, as_positions, exact_array, name_of
from purax.interpreters.program_rules import uses_axis
from purax.interpreters.simplify import hoist_constants
from purax.interpreters.staging import checked_results, stage
from purax.interpreters.transpose import transpose_flat
from purax.interpreters.vmap import batch_flat, to_axis
from purax.lowering import jaxpr_to_stablehlo
from purax.primitives.shape.broadcasting import batch_size, materialize
from purax.tree.registry import tree_flatten, tree_unflatten


class CustomCall(Primitive):
    """Calls a function that has rules of its own; how the rules apply is in the subclasses.

    Params:
        call: the function on flat lists, or its program.
        num_consts: how many leading operands the program captured; rules do not see them.
    """

    multiple_results = True
    runs_itself = True
    opens_on_tape = True

    def infer(self, *avals, call, **rules):
        return call.out_avals

    def run(self, *operands, call, **rules):
        results = run_flat(call, operands)
        if isinstance(call, ClosedJaxpr):
            return [exact_array(y, aval) for y, aval in zip(results, call.out_avals, strict=True)]
        return [plain_numbers.array_from(y) for y in results]

    def stage(self, operands, params):
        program, captured = stage_call(params["call"], operands, self.name)
        count = params["num_consts"] + len(captured)
        return (*captured, *operands), {**params, "call": program, "num_consts": count}

    def padded(self, at, avals, operands, *, call, **rules):
        return at.evaluate(call, operands)

    def lower(self, builder, *operands, call, **rules):
        return jaxpr_to_stablehlo.lower_body(builder, call.jaxpr, operands)

    def depends(self, flags, *, call, **rules):
        return dependent_results(call.jaxpr, flags)

    def effects(self, *, call, **rules):
        return call.effects if isinstance(call, ClosedJaxpr) else frozenset()

    def thread(self, threader, state, operands, *, call, **rules):
        return threader.run(call, state, operands)

    def transpose(self, cotangents, *operands, call, **rules):
        # Linear programs hold such calls where a rule applies a function with rules of its own to tangents.
        return transpose_flat(call, operands, cotangents)

    def names_axis(self, axis_name, *, call, **rules):
        return (
            uses_axis(call, axis_name) if isinstance(call, ClosedJaxpr) else True
        )  # it may: it is plain Python yet

    def batch(self, operands, batch_axes, **params):
        return self.batch_over(batch_size(operands, batch_axes), None, operands, batch_axes, **params)

    def batch_collective(self, size, axis_name, operands, batch_axes, **params):
        if not any(axis is not None for axis in batch_axes):
            staged, params = self.stage(operands, params)
            if not uses_axis(params["call"], axis_name):
                return self.bind(*staged, **params), [None] * len(params["call"].out_avals)
            operands, batch_axes = staged, [None] * len(staged)
        return self.batch_over(size, axis_name, operands, batch_axes, **params)

    def batch_over(self, size, axis_name, operands, batch_axes, **params):
        """`batch`, or `batch_collective` if there is a name."""
        raise NotImplementedError

    def refuse_captured(self, tangents: Sequence[Any], name: str) -> None:
        """Raises if a derivative is asked for with respect to a value that the function captured."""
        if any(type(t) is not Zero for t in tangents):
            raise source.located(
                TypeError,
                f"`{name}` has a custom derivative rule and captured a value that is being differentiated; "
                "the rule knows only its arguments. Pass the value as an argument.",
            )


class BatchedCall:
    """A function on flat lists, over a batch; all results get a batch axis in front."""

    def __init__(self, call: Any, axes: Sequence[int | None], size: int, axis_name: Any):
        self.call, self.axes, self.size, self.axis_name = call, list(axes), size, axis_name
        self.spread = batch_rule.spread

    def __call__(self, *operands):
        run = lambda *xs: run_flat(self.call, xs)  # noqa: E731
        out, out_axes = batch_flat(run, operands, self.axes, self.size, self.axis_name, self.spread)
        return [to_axis(y, a, 0, self.size) for y, a in zip(out, out_axes, strict=True)]


def check_results(what: str, results: Sequence[Any], call: Any) -> None:
    """Raises unless the results of a rule have the types of the function's own, where these are known."""
    if not isinstance(call, ClosedJaxpr):
        return
    given, wanted = [aval_of(y) for y in results], call.out_avals
    if len(given) != len(wanted) or not all(map(same_type, given, wanted)):
        raise source.located(
            TypeError,
            f"{what} must return the result of the function itself, of type {_listed(wanted)}, but returned "
            f"{_listed(given)}",
        )


def _listed(avals: Sequence[ShapedArray]) -> str:
    return f"({', '.join(aval.str_short() for aval in avals)})"


def as_user_tangent(tangent: Any) -> Any:
    """A tangent or cotangent as a rule without symbolic zeros sees it: an array, float0 zeros for integers."""
    if type(tangent) is Zero and tangent.aval.dtype == dtypes.float0:
        return np.zeros(tangent.aval.shape, dtypes.float0)
    return materialize(tangent)


class FlatCall:
    """A function of a tree of arguments as one of leaves; remembers the structure of the results in `structure`."""

    def __init__(self, function: Callable, tree: Any, structure: Structure):
        self.function = function
        self.tree = tree
        self.structure = structure

    def __call__(self, *leaves):
        given = tree_unflatten(self.tree, plain_numbers.all_plain(leaves))
        results = call_or_rewrite(self.function, *given)
        out, self.structure.tree = tree_flatten(results)
        return checked_results(out, results, name_of(self.function))


class Structure:
    """The structure of the results of a call, known once one of its forms has run."""

    __slots__ = ("tree",)

    def __init__(self):
        self.tree = None

    def agree(self, tree: Any, what: str) -> None:
        """Takes note of the structure of a rule's result, which must be that of the function if it is known."""
        if self.tree is not None and tree != self.tree:
            raise source.located(
                TypeError,
                f"{what} must return a result of the structure that the function returns, {self.tree}, got {tree}",
            )
        self.tree = tree


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
    except (TypeError, ValueError, RecursionError):  # the error about what is not a function shows it
        return None


def positional(
    function: Callable, signature: inspect.Signature | None, args: tuple, kwargs: dict[str, Any], what: str
) -> tuple:
    """The arguments of a call by position, with defaults filled in."""
    if not kwargs and (signature is None or len(args) >= len(signature.parameters)):
        return args
    if signature is None:
        raise source.located(
            TypeError,
            f"{what} `{name_of(function)}` was called with keywords, but its signature is not known",
        )
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise source.located(
            TypeError,
            f"{what} `{name_of(function)}` has keyword-only arguments {sorted(bound.kwargs)}; rules are "
            "written for positional ones. Make them positional.",
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
