"""`custom_vmap`: functions whose vectorization the user gives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from purax.api.pickling import PickledByName
from purax.control_flow.flat_call import CustomCall, FlatCall, Structure, positional, run_flat, signature_of
from purax.control_flow.scan import scan
from purax.core import purity_hook, source
from purax.core.avals import Zero
from purax.errors import shown
from purax.interpreters.arguments import name_of, operands_of, to_array
from purax.interpreters.jvp import jvp_flat
from purax.interpreters.linearize import linearize_flat
from purax.primitives.shape.broadcasting import batch_to_front, materialize, move_axis
from purax.tree.registry import tree_flatten, tree_unflatten

P = ParamSpec("P")
R = TypeVar("R")


class CustomVmapCall(CustomCall):
    """Calls a function that has a vectorization rule.

    Params:
        rule: (batch size, which operands are batched, operands with the batch in front) -> (results, which of them are
            batched), on flat lists.
        call, num_consts: see `CustomCall`.
    """

    name = "custom_vmap_call"
    not_lowered = ("num_consts", "rule")

    def jvp(self, primals, tangents, *, call, rule, num_consts):
        moving = [type(t) is not Zero for t in tangents]
        count = len(primals)
        given = [t for t, moves in zip(tangents, moving, strict=True) if moves]

        def derivative(*values):
            xs, rest = values[:count], iter(values[count:])
            ts = [next(rest) if moves else Zero.like(x) for x, moves in zip(xs, moving, strict=True)]
            out, out_tangents = jvp_flat(lambda *vs: run_flat(call, vs), xs, ts)
            return [*out, *map(materialize, out_tangents)]

        rule_moving = moving[num_consts:]
        if any(moving[:num_consts]):
            raise source.located(
                NotImplementedError,
                "custom_vmap: a value that the function captured is being differentiated; pass it as an argument",
            )
        results = self.bind(
            *primals,
            *given,
            call=derivative,
            rule=DifferentiatedRule(rule, rule_moving),
            num_consts=num_consts,
        )
        half = len(results) // 2
        return results[:half], results[half:]

    def linearize(self, primals, tangents, *, call, rule, num_consts):
        out = self.bind(*primals, call=call, rule=rule, num_consts=num_consts)
        moving = [type(t) is not Zero for t in tangents]
        _, tape = linearize_flat(lambda *xs: run_flat(call, xs), primals, moving)
        return out, tape(tangents)

    def batch_over(self, size, axis_name, operands, batch_axes, *, call, rule, num_consts):
        if any(axis is not None for axis in batch_axes[:num_consts]):
            raise source.located(
                NotImplementedError,
                "custom_vmap: a value that the function captured is batched; pass it as an argument",
            )
        values = [
            x if a is None else move_axis(x, a, 0)
            for x, a in zip(operands[num_consts:], batch_axes[num_consts:], strict=True)
        ]
        results, batched = rule(size, [a is not None for a in batch_axes[num_consts:]], values)
        return results, [0 if b else None for b in batched]


custom_vmap_call_p = CustomVmapCall()


class DifferentiatedRule:
    """The rule of the derivative: the derivative of the rule."""

    def __init__(self, rule: Callable, moving: list[bool]):
        self.rule, self.moving = rule, moving

    def __call__(self, size, batched, values):
        count = len(self.moving)
        primals, flags = values[:count], batched[:count]
        rest = iter(zip(values[count:], batched[count:], strict=True))
        tangents: list[Any] = []
        for i, moves in enumerate(self.moving):
            if not moves:
                tangents.append(Zero.like(primals[i]))
                continue
            tangent, has_axis = next(rest)
            if has_axis != flags[i]:  # the rule takes a value and its tangent for one argument
                tangent = tangent if has_axis else batch_to_front(tangent, None, size)
                primals[i] = primals[i] if flags[i] else batch_to_front(primals[i], None, size)
                flags[i] = True
            tangents.append(tangent)
        out_batched: list[bool] = []

        def vectorized(*xs):
            out, out_batched[:] = self.rule(size, flags, list(xs))
            return out

        out, out_tangents = jvp_flat(vectorized, primals, tangents)
        return [*out, *map(materialize, out_tangents)], [*out_batched, *out_batched]


class FlatRule:
    """A user's vectorization rule as one on flat lists, with its results checked."""

    def __init__(self, name: str, rule: Callable, tree: Any, structure: Structure):
        self.name, self.rule, self.tree, self.structure = name, rule, tree, structure
        self.origins = purity_hook.origins(rule)

    def __call__(self, size, batched, values):
        flags, given = list(tree_unflatten(self.tree, batched)), tree_unflatten(self.tree, values)
        result = purity_hook.run_rule(self.origins, lambda: self.rule(size, flags, *given))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise source.located(
                TypeError,
                f"the vmap rule of `{self.name}` must return a pair (result, which are batched), got "
                f"{shown(result)}",
            )
        out, tree = tree_flatten(result[0])
        self.structure.agree(tree, f"the vmap rule of `{self.name}`")
        flags, flags_tree = tree_flatten(result[1])
        if flags_tree != self.structure.tree:
            raise source.located(
                ValueError,
                f"the vmap rule of `{self.name}` must say for each result whether it is batched: the results have "
                f"structure {self.structure.tree}, the flags {flags_tree}",
            )
        out = [to_array(y) for y in out]
        for y, is_batched in zip(out, flags, strict=True):
            if is_batched and (y.aval.ndim == 0 or y.aval.shape[0] != size):
                raise source.located(
                    ValueError,
                    f"the vmap rule of `{self.name}` returned a batched result of shape {y.aval.shape}; its "
                    f"first axis must have the size {size} of the batch",
                )
        return out, flags


class custom_vmap(PickledByName, Generic[P, R]):  # noqa: N801
    """A function with a vectorization rule of its own.

    >>> import purax as px, purax.numpy as jnp
    >>> @px.custom_batching.custom_vmap
    ... def f(x):
    ...     return x + 1
    >>> @f.def_vmap
    ... def rule(axis_size, in_batched, x):
    ...     return x + 1, in_batched[0]
    >>> px.vmap(f)(jnp.zeros(2))
    Array([1., 1.], dtype=float32)
    """

    def __init__(self, fun: Callable[P, R]):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self._signature = signature_of(fun)
        self.vmap_rule: Callable | None = None

    def def_vmap(self, vmap_rule: Callable) -> Callable:
        """Sets the rule: `rule(axis_size, in_batched, *args)` returns (result, which parts of it are batched)."""
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        name = name_of(self.fun)
        if self.vmap_rule is None:
            raise AttributeError(
                f"`{name}` is a custom_vmap function without a rule; define it with `{name}.def_vmap`"
            )
        args = positional(self.fun, self._signature, args, kwargs, "the custom_vmap function")
        leaves, tree = tree_flatten(args)
        structure = Structure()
        results = custom_vmap_call_p.bind(
            *operands_of(self.fun, leaves, (args, {})),
            call=FlatCall(self.fun, tree, structure),
            rule=FlatRule(name, self.vmap_rule, tree, structure),
            num_consts=0,
        )
        return tree_unflatten(structure.tree, results)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)


def sequential_vmap(f: Callable[P, R]) -> custom_vmap[P, R]:
    """A function that `vmap` runs one element after the other, in a loop.

    >>> import purax as px, purax.numpy as jnp
    >>> px.vmap(px.custom_batching.sequential_vmap(lambda x: x * 2))(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)
    """
    wrapped = custom_vmap(f)

    @wrapped.def_vmap
    def rule(axis_size, in_batched, *args):
        leaves, tree = tree_flatten(args)
        flags = tree_flatten(tuple(in_batched))[0]
        steps = [x for x, b in zip(leaves, flags, strict=True) if b]

        def one(_, xs):
            given = iter(xs)
            merged = [next(given) if b else x for x, b in zip(leaves, flags, strict=True)]
            return None, f(*tree_unflatten(tree, merged))

        _, out = scan(one, None, steps, length=axis_size)
        return out, tree_unflatten(tree_flatten(out)[1], [True] * len(tree_flatten(out)[0]))

    return wrapped
