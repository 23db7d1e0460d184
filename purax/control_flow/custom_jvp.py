"""`custom_jvp`: functions whose forward derivative the user gives.

The call is a primitive with the function and its rule as parameters. Concrete values run the function as it is
written, so Python control flow works in it; staging turns it into a program and keeps the rule beside it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

from purax.api.pickling import PickledByName
from purax.control_flow.flat_call import (
    BatchedCall,
    CustomCall,
    FlatCall,
    Structure,
    as_user_tangent,
    check_results,
    join_arguments,
    nondiff_positions,
    positional,
    signature_of,
    split_arguments,
)
from purax.core import dtypes, purity_hook, source
from purax.core.avals import ShapedArray, Zero, aval_of, tangent_aval
from purax.core.batch_rule import batch_rule
from purax.core.rewriting_hook import call_or_rewrite
from purax.core.trace import Tracer
from purax.errors import shown
from purax.interpreters import plain_numbers
from purax.interpreters.arguments import (
    aval_of_argument,
    name_of,
    require_function,
    wraps,
)
from purax.interpreters.staging import StagedTracer
from purax.interpreters.vmap import batch_flat, to_axis
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.shape.broadcasting import materialize
from purax.tree.registry import keystr, tree_flatten, tree_flatten_with_path, tree_unflatten

P = ParamSpec("P")
R = TypeVar("R")


class SymbolicZero:
    """A tangent or cotangent that is known to be zero, as rules with `symbolic_zeros=True` see it."""

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)

    def __repr__(self) -> str:
        return f"SymbolicZero({self.aval.str_short()})"


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangents of the arrays in `val`, as arrays or, with `symbolic_zeros`, as `SymbolicZero`s.

    >>> import purax as px
    >>> px.custom_derivatives.zero_from_primal({"a": 2.0}, symbolic_zeros=True)
    {'a': SymbolicZero(f32[])}
    """
    leaves, tree = tree_flatten(val)
    zeros = [Zero(tangent_aval(aval_of_argument(leaf))) for leaf in leaves]
    return tree_unflatten(
        tree, [SymbolicZero(zero.aval) if symbolic_zeros else as_user_tangent(zero) for zero in zeros]
    )


class CustomJVPCall(CustomCall):
    """Calls a function that has a derivative rule.

    Params:
        rule: (primals, tangents) -> (results, tangents), on flat lists.
        call, num_consts: see `CustomCall`.
    """

    name = "custom_jvp_call"
    not_lowered = ("num_consts", "rule")

    def jvp(self, primals, tangents, *, call, rule, num_consts):
        self.refuse_captured(tangents[:num_consts], rule.name)
        out, out_tangents = rule(primals[num_consts:], tangents[num_consts:])
        check_results(f"the jvp rule of `{rule.name}`", out, call)
        return out, out_tangents

    def batch_over(self, size, axis_name, operands, batch_axes, *, call, rule, num_consts):
        results = self.bind(
            *operands,
            call=BatchedCall(call, batch_axes, size, axis_name),
            rule=BatchedRule(rule, list(batch_axes)[num_consts:], size, axis_name),
            num_consts=num_consts,
        )
        return results, [0] * len(results)


custom_jvp_call_p = CustomJVPCall()


class BatchedRule:
    """A derivative rule over a batch."""

    def __init__(self, rule: Any, axes: list[int | None], size: int, axis_name: Any):
        self.rule, self.axes, self.size, self.axis_name = rule, axes, size, axis_name
        self.spread = batch_rule.spread
        self.name = rule.name

    def __call__(self, primals, tangents):
        moving = [type(t) is not Zero for t in tangents]
        given = [t for t, moves in zip(tangents, moving, strict=True) if moves]
        given_axes = [axis for axis, moves in zip(self.axes, moving, strict=True) if moves]
        out_moving: list[bool] = []

        def derivative(*values):
            xs = values[: len(primals)]
            rest = iter(values[len(primals) :])
            ts = [next(rest) if moves else Zero.like(x) for x, moves in zip(xs, moving, strict=True)]
            out, out_tangents = self.rule(xs, ts)
            out_moving.extend(type(t) is not Zero for t in out_tangents)
            return [*out, *(t for t in out_tangents if type(t) is not Zero)]

        values, axes = [*primals, *given], [*self.axes, *given_axes]
        out, out_axes = batch_flat(derivative, values, axes, self.size, self.axis_name, self.spread)
        placed = [to_axis(y, a, 0, self.size) for y, a in zip(out, out_axes, strict=True)]
        results, rest = placed[: len(out_moving)], iter(placed[len(out_moving) :])
        return results, [
            next(rest) if moves else Zero.like(y) for y, moves in zip(results, out_moving, strict=True)
        ]


class FlatRule:
    """A user's `jvp` rule as one on flat lists, with its results checked."""

    def __init__(self, name: str, rule: Callable, tree: Any, structure: Structure, symbolic_zeros: bool):
        self.name = name
        self.rule = rule
        self.tree = tree
        self.structure = structure
        self.symbolic_zeros = symbolic_zeros
        self.origins = purity_hook.origins(rule.func if isinstance(rule, functools.partial) else rule)

    def __call__(self, primals, tangents):
        if self.symbolic_zeros:
            given = [SymbolicZero(t.aval) if type(t) is Zero else t for t in tangents]
        else:
            given = [as_user_tangent(t) for t in tangents]
        given = plain_numbers.all_plain(given)
        arguments = (
            tree_unflatten(self.tree, plain_numbers.all_plain(primals)),
            tree_unflatten(self.tree, given),
        )
        result = purity_hook.run_rule(self.origins, lambda: call_or_rewrite(self.rule, *arguments))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise source.located(
                TypeError,
                f"the jvp rule of `{self.name}` must return a pair (result, tangent), got {shown(result)}",
            )
        out, tree = tree_flatten(result[0])
        self.structure.agree(tree, f"the jvp rule of `{self.name}`")
        out_tangents, tangent_tree = tree_flatten(result[1], is_leaf=lambda t: isinstance(t, SymbolicZero))
        if tangent_tree != self.structure.tree:
            raise source.located(
                TypeError,
                f"the jvp rule of `{self.name}` must return a result and a tangent of the same structure, got "
                f"{self.structure.tree} and {tangent_tree}",
            )
        paths = [path for path, _ in tree_flatten_with_path(result[0])[0]]
        out = [plain_numbers.array_from(y) for y in out]
        return out, [
            checked_tangent(self.name, t, y, path)
            for t, y, path in zip(out_tangents, out, paths, strict=True)
        ]


def checked_tangent(name: str, tangent: Any, result: Any, path: Sequence[Any]) -> Any:
    """A tangent that a rule returned, which must have the type of the result's tangent."""
    wanted = tangent_aval(aval_of(result))
    if isinstance(tangent, SymbolicZero) or tangent is None:
        return Zero(wanted)
    if getattr(tangent, "dtype", None) == dtypes.float0:
        return Zero(wanted)
    tangent = plain_numbers.array_from(tangent)
    given = tangent.aval
    if given.shape != wanted.shape or (given.dtype != wanted.dtype and not given.weak_type):
        raise source.located(
            TypeError,
            f"the jvp rule of `{name}` returned, for result{keystr(tuple(path))} of type "
            f"{aval_of(result).str_short()}, a tangent of type {given.str_short()}; it must be {wanted.str_short()}",
        )
    return tangent if given.dtype == wanted.dtype else convert_element_type(tangent, wanted.dtype)


class custom_jvp(PickledByName, Generic[P, R]):  # noqa: N801
    """A function with a derivative rule of its own.

    Args:
        fun: the function.
        nondiff_argnums: positions of arguments that are not differentiated, passed to the rule first; they may be any
            Python values.
        nondiff_argnames: the same, by name.

    >>> import purax as px, purax.numpy as jnp
    >>> @px.custom_jvp
    ... def log1pexp(x):
    ...     return jnp.log(1.0 + jnp.exp(x))
    >>> @log1pexp.defjvp
    ... def rule(primals, tangents):
    ...     (x,), (dx,) = primals, tangents
    ...     return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * dx
    >>> float(px.grad(log1pexp)(100.0))
    1.0
    """

    def __init__(
        self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ):
        require_function(fun, "custom_jvp")
        functools.update_wrapper(self, fun)
        self.fun = fun
        self._signature = signature_of(fun)
        self.nondiff_argnums = nondiff_positions(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable | None = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: Callable, symbolic_zeros: bool = False) -> Callable:
        """Sets the rule: `jvp(*nondiff, primals, tangents)` returns (result, tangent of the result).

        With `symbolic_zeros`, tangents known to be zero arrive as `SymbolicZero` instead of arrays.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable | None) -> None:
        """Sets a rule per argument: `jvp(tangent, result, *primals)` returns its part of the result's tangent."""
        if self.nondiff_argnums:
            raise TypeError("defjvps cannot be used together with nondiff_argnums; use defjvp")

        def jvp(primals, tangents):
            from_rule = self(*primals)
            parts = [
                rule(t, from_rule, *primals)
                for rule, t in zip(jvps, tangents, strict=True)
                if rule is not None
            ]
            out, tree = tree_flatten(from_rule)
            totals = [Zero.like(y) for y in out]
            for part in parts:
                leaves = tree_flatten(part)[0]
                totals = [
                    p if type(total) is Zero else total + p for total, p in zip(totals, leaves, strict=True)
                ]
            return from_rule, tree_unflatten(tree, [materialize(t) for t in totals])

        self.defjvp(jvp)

    def _with_traced(self, fixed: Sequence[Any], tree: Any, traced: Sequence[int]) -> Callable:
        """The function of its arguments that are traced though they are not differentiated, and of the others.

        Whoever batches the call must see them, since it depends on them.
        """
        positions, name = self.nondiff_argnums, name_of(self.fun)

        def filled(values: Sequence[Any]) -> Any:
            full = list(fixed)
            for i, value in zip(traced, values, strict=True):
                full[i] = value
            return tree_unflatten(tree, full)

        def function(values: Any, *others: Any) -> Any:
            return call_or_rewrite(self.fun, *join_arguments(filled(values), positions, others))

        function.__name__ = name

        def rule(primals: Any, tangents: Any) -> Any:
            if not all(isinstance(t, SymbolicZero) for t in tangents[0]):
                raise source.located(
                    TypeError,
                    f"`{name}` was called with a value among its nondiff_argnums that is being differentiated; "
                    "make it an argument that the rule gets a tangent of",
                )
            given = tangents[1:]
            if not self.symbolic_zeros:
                leaves, structure = tree_flatten(given, is_leaf=lambda t: isinstance(t, SymbolicZero))
                moved = [as_user_tangent(Zero(t.aval)) if isinstance(t, SymbolicZero) else t for t in leaves]
                given = tree_unflatten(structure, moved)
            assert self.jvp is not None
            return self.jvp(*filled(primals[0]), primals[1:], given)

        call = custom_jvp(function)
        call.defjvp(rule, symbolic_zeros=True)
        return call

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        name = name_of(self.fun)
        if self.jvp is None:
            raise AttributeError(
                f"`{name}` is a custom_jvp function without a rule; define it with `{name}.defjvp`"
            )
        args = positional(self.fun, self._signature, args, kwargs, "the custom_jvp function")
        fixed_values, others = split_arguments(args, self.nondiff_argnums)
        positions = self.nondiff_argnums
        fixed_leaves, fixed_tree = tree_flatten(fixed_values)
        traced = [
            i for i, x in enumerate(fixed_leaves) if isinstance(x, Tracer) and type(x) is not StagedTracer
        ]
        if traced:
            return self._with_traced(fixed_leaves, fixed_tree, traced)(
                tuple(fixed_leaves[i] for i in traced), *others
            )
        leaves, tree = tree_flatten(others)
        if plain_numbers.may_result(leaves):
            return call_or_rewrite(self.fun, *args)
        structure = Structure()
        function = wraps(self.fun)(
            lambda *dynamic: call_or_rewrite(self.fun, *join_arguments(fixed_values, positions, dynamic))
        )
        rule = functools.partial(self.jvp, *fixed_values)
        results = custom_jvp_call_p.bind(
            *plain_numbers.operands_for(function, leaves, (others, {})),
            call=FlatCall(function, tree, structure),
            rule=FlatRule(name, rule, tree, structure, self.symbolic_zeros),
            num_consts=0,
        )
        return tree_unflatten(structure.tree, results)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)
