"""`custom_vjp`: functions whose reverse derivative the user gives, as a forward and a backward function.

When the function is linearized, the forward function runs instead, and a linear operation that only knows how to
be transposed, `custom_pullback`, is put on the tape: its transpose is the backward function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

from purax.api.pickling import PickledByName
from purax.control_flow.custom_jvp import SymbolicZero
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
from purax.core.avals import Zero, aval_of, tangent_aval
from purax.core.batch_rule import batch_rule
from purax.core.jaxpr import eval_jaxpr
from purax.core.primitive import Primitive
from purax.core.rewriting_hook import call_or_rewrite
from purax.core.trace import Tracer
from purax.errors import shown
from purax.interpreters import plain_numbers
from purax.interpreters.arguments import (
    aval_of_argument,
    name_of,
    require_function,
    to_array,
    wraps,
)
from purax.interpreters.staging import stage
from purax.interpreters.vmap import batch_flat, to_axis
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.shape.broadcasting import batch_size, materialize, reduce_sum
from purax.tree.nodes import register_static
from purax.tree.prefix import broadcast_prefix
from purax.tree.registry import keystr, tree_flatten, tree_flatten_with_path, tree_leaves, tree_unflatten

P = ParamSpec("P")
R = TypeVar("R")


class CustomVJPCall(CustomCall):
    """Calls a function that has a forward and a backward rule.

    Params:
        rules: an object with the methods
            forward(operands, which of them are perturbed) -> (results, residuals), on flat lists;
            backward(residuals, cotangents of the results, perturbed) -> cotangents of the operands, on flat lists.
        call, num_consts: see `CustomCall`.
    """

    name = "custom_vjp_call"
    not_lowered = ("num_consts", "rules")

    def jvp(self, primals, tangents, *, call, rules, num_consts):
        self.refuse_captured(tangents[:num_consts], rules.name)
        perturbed = tuple(type(t) is not Zero for t in tangents[num_consts:])
        out, residuals = rules.forward(primals[num_consts:], perturbed)
        check_results(f"the forward rule of `{rules.name}`", out, call)
        out_avals = tuple(tangent_aval(aval_of(y)) for y in out)
        out_tangents = custom_pullback_p.bind(
            *residuals,
            *(t for t in tangents[num_consts:] if type(t) is not Zero),
            rules=rules,
            perturbed=perturbed,
            num_residuals=len(residuals),
            out_avals=out_avals,
        )
        return out, [
            Zero(a) if a.dtype == dtypes.float0 else t for t, a in zip(out_tangents, out_avals, strict=True)
        ]

    def batch_over(self, size, axis_name, operands, batch_axes, *, call, rules, num_consts):
        results = self.bind(
            *operands,
            call=BatchedCall(call, batch_axes, size, axis_name),
            rules=BatchedRules(rules, list(batch_axes)[num_consts:], size, axis_name),
            num_consts=num_consts,
        )
        return results, [0] * len(results)


class CustomPullback(Primitive):
    """The derivative of a `custom_vjp` function: linear, known only by its transpose.

    The operands are residuals and the tangents of the perturbed arguments. A rule may push tangents through it that
    stand for variables of a linear program; running it on values is forward differentiation, which raises.
    """

    name = "custom_pullback"
    multiple_results = True
    runs_itself = True
    transposes_zeros = True  # a rule may return what is no derivative, such as statistics

    def infer(self, *avals, out_avals, **params):
        return out_avals

    def transpose(self, cotangents, *operands, rules, perturbed, num_residuals, out_avals):
        results = rules.backward(operands[:num_residuals], cotangents, perturbed)
        return [None] * num_residuals + [c for c, moves in zip(results, perturbed, strict=True) if moves]

    def run(self, *operands, rules, **params):
        raise is_reverse_only(rules.name)

    def lower(self, builder, *operands, rules, **params):
        raise is_reverse_only(rules.name)

    def jvp(self, primals, tangents, *, rules, num_residuals, **params):
        if any(type(t) is not Zero for t in tangents[:num_residuals]):
            raise is_reverse_only(rules.name)
        push = functools.partial(self.bind, rules=rules, num_residuals=num_residuals, **params)
        moved = map(materialize, tangents[num_residuals:])
        return push(*primals), push(*primals[:num_residuals], *moved)

    def names_axis(self, axis_name, **params):
        return True  # it may: its rules are Python

    def batch(self, operands, batch_axes, **params):
        return self.batch_collective(batch_size(operands, batch_axes), None, operands, batch_axes, **params)

    def batch_collective(
        self, size, axis_name, operands, batch_axes, *, rules, perturbed, num_residuals, out_avals
    ):
        tangent_axes = iter(batch_axes[num_residuals:])
        axes = [next(tangent_axes) if moves else None for moves in perturbed]
        batched = BatchedRules(rules, axes, size, axis_name)
        batched.residual_axes[perturbed] = list(batch_axes[:num_residuals])
        results = self.bind(
            *operands,
            rules=batched,
            perturbed=perturbed,
            num_residuals=num_residuals,
            out_avals=tuple(aval.with_axis(0, size) for aval in out_avals),
        )
        return results, [0] * len(results)


custom_vjp_call_p = CustomVJPCall()
custom_pullback_p = CustomPullback()


def is_reverse_only(name: str) -> BaseException:
    return source.located(
        TypeError,
        f"forward differentiation (jvp, jacfwd, hessian) cannot go through `{name}`, which has a custom_vjp rule "
        "for reverse differentiation only. Use grad, vjp or jacrev, or give it a rule with custom_jvp.",
    )


class BatchedRules:
    """Forward and backward rules over a batch."""

    def __init__(self, rules: Any, axes: list[int | None], size: int, axis_name: Any):
        self.rules, self.axes, self.size, self.axis_name = rules, axes, size, axis_name
        self.spread = batch_rule.spread
        self.name = rules.name
        self.residual_axes: dict[tuple[bool, ...], list[int | None]] = {}

    def forward(self, operands, perturbed):
        count = 0

        def run(*xs):
            nonlocal count
            out, residuals = self.rules.forward(xs, perturbed)
            count = len(out)
            return [*out, *residuals]

        results, axes = batch_flat(run, operands, self.axes, self.size, self.axis_name, self.spread)
        out = [to_axis(y, a, 0, self.size) for y, a in zip(results[:count], axes[:count], strict=True)]
        self.residual_axes[perturbed] = axes[count:]
        return out, results[count:]

    def backward(self, residuals, cotangents, perturbed):
        moving = [type(c) is not Zero for c in cotangents]
        given = [c for c in cotangents if type(c) is not Zero]
        flows: list[bool] = []

        def run(*xs):
            rest = iter(xs[len(residuals) :])
            one = [next(rest) if m else _of_one(c) for c, m in zip(cotangents, moving, strict=True)]
            results = self.rules.backward(xs[: len(residuals)], one, perturbed)
            flows.extend(type(c) is not Zero for c in results)
            return [c for c in results if type(c) is not Zero]

        axes = [*self.residual_axes[perturbed], *[0] * len(given)]
        results, out_axes = batch_flat(
            run, [*residuals, *given], axes, self.size, self.axis_name, self.spread
        )
        pairs = iter(zip(results, out_axes, strict=True))
        out = []
        for flow, wanted in zip(flows, self.axes, strict=True):
            if not flow:
                out.append(None)
                continue
            c, axis = next(pairs)
            if wanted is not None:
                out.append(to_axis(c, axis, wanted, self.size))
            else:  # an operand that is the same for the whole batch collects what every example sends back
                out.append(reduce_sum(to_axis(c, axis, 0, self.size), (0,)))
        return out


def _of_one(zero: Zero) -> Zero:
    """A zero cotangent of a batch, whose axis is in front, for one of its elements."""
    return Zero(zero.aval.with_shape(zero.aval.shape[1:]))


class CustomVJPPrimal:
    """What a forward rule with symbolic_zeros=True sees of an argument leaf; itself a leaf of the tree of arguments.

    Attributes:
        value: of the argument.
        perturbed: whether it is being differentiated.
    """

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool):
        self.value, self.perturbed = value, perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The values of a tree of arguments as a forward rule with symbolic_zeros=True sees it.

    >>> import purax as px
    >>> leaf = px.custom_derivatives.CustomVJPPrimal(2.0, perturbed=True)
    >>> px.custom_derivatives.custom_vjp_primal_tree_values({"a": leaf})
    {'a': 2.0}
    """
    leaves, structure = tree_flatten(tree, is_leaf=lambda x: isinstance(x, CustomVJPPrimal))
    for leaf in leaves:
        if not isinstance(leaf, CustomVJPPrimal):
            raise TypeError(
                f"custom_vjp_primal_tree_values takes trees of CustomVJPPrimal, got {shown(leaf)}"
            )
    return tree_unflatten(structure, [leaf.value for leaf in leaves])


def _is_zero(cotangent: Any) -> bool:
    return cotangent is None or isinstance(cotangent, SymbolicZero)


def _for_each_leaf(cotangent: Any, argument: Any) -> list[Any] | None:
    """The cotangent of each leaf of an argument; None stands for zeros, also of a subtree. None if they differ."""
    try:
        given = broadcast_prefix(cotangent, argument, is_leaf=_is_zero)
    except ValueError:
        return None
    written = [c for c in tree_leaves(cotangent, is_leaf=_is_zero) if c is not None]
    return given if len(written) == sum(c is not None for c in given) else None


_NUMBERS = (bool, int, float, complex)


class FlatRules:
    """A user's forward and backward functions on flat lists, with their results checked."""

    def __init__(self, name, fwd, bwd, fixed_values, positions, tree, count, structure, symbolic_zeros):
        self.name = name
        self.fwd, self.bwd = fwd, bwd
        self.fixed_values, self.positions = fixed_values, positions
        self.tree = tree
        self.count = count  # of arguments that are differentiated
        self.structure = structure
        self.symbolic_zeros = symbolic_zeros
        self.residual_trees: dict[tuple[bool, ...], Any] = {}
        self.avals: list[Any] = []
        self.origins = purity_hook.origins(bwd)

    def forward(self, operands, perturbed):
        self.avals = [aval_of(x) for x in operands]
        leaves = operands = plain_numbers.all_plain(operands)
        if self.symbolic_zeros:
            leaves = [CustomVJPPrimal(x, moves) for x, moves in zip(operands, perturbed, strict=True)]
        args = tree_unflatten(self.tree, leaves)
        given = join_arguments(self.fixed_values, self.positions, args)
        result = purity_hook.run_rule(self.origins, lambda: call_or_rewrite(self.fwd, *given))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise source.located(
                TypeError,
                f"the forward rule `{name_of(self.fwd)}` of `{self.name}` must return a pair (result, "
                f"residuals), got {shown(result)}",
            )
        out, tree = tree_flatten(result[0])
        self.structure.agree(tree, f"the forward rule `{name_of(self.fwd)}` of `{self.name}`")
        residuals, tree = tree_flatten(result[1])
        # Python numbers stay what they are, so that the backward rule can decide by them.
        numbers = [(r,) if type(r) in _NUMBERS else None for r in residuals]
        self.residual_trees[perturbed] = tree, numbers
        arrays = [to_array(r) for r, number in zip(residuals, numbers, strict=True) if number is None]
        return [plain_numbers.array_from(y) for y in out], arrays

    def backward(self, residuals, cotangents, perturbed):
        if self.symbolic_zeros:
            given = [SymbolicZero(c.aval) if type(c) is Zero else c for c in cotangents]
        else:
            given = [as_user_tangent(c) for c in cotangents]
        tree, numbers = self.residual_trees[perturbed]
        arrays = iter(residuals)
        kept = tree_unflatten(tree, [next(arrays) if number is None else number[0] for number in numbers])
        cotangent = tree_unflatten(self.structure.tree, plain_numbers.all_plain(given))
        result = purity_hook.run_rule(
            self.origins, lambda: call_or_rewrite(self.bwd, *self.fixed_values, kept, cotangent)
        )
        if isinstance(result, list):
            result = tuple(result)
        expected = self.count
        if not isinstance(result, tuple) or len(result) != expected:
            raise source.located(
                TypeError,
                f"the backward rule `{name_of(self.bwd)}` of `{self.name}` must return a tuple with a "
                f"cotangent for each of the {expected} differentiated arguments, got {describe(result)}",
            )
        return self._by_leaf(result)

    def _by_leaf(self, result: tuple) -> list[Any]:
        """Cotangents of the argument leaves; None stands for zero, for a leaf or a whole argument."""
        out: list[Any] = []
        position = 0
        arguments = tree_unflatten(self.tree, self.avals)
        for number, (argument, cotangent) in enumerate(zip(arguments, result, strict=True)):
            leaves, tree = tree_flatten(argument)
            avals = self.avals[position : position + len(leaves)]
            position += len(leaves)
            if cotangent is None:
                out.extend(Zero(tangent_aval(a)) for a in avals)
                continue
            given = _for_each_leaf(cotangent, argument)
            if given is None:
                returned = tree_flatten(cotangent, is_leaf=_is_zero)[1]
                raise source.located(
                    TypeError,
                    f"the backward rule `{name_of(self.bwd)}` of `{self.name}` must return cotangents "
                    f"structured like the arguments; for argument {number}, which has structure {tree}, it "
                    f"returned {returned}",
                )
            paths = [path for path, _ in tree_flatten_with_path(argument)[0]]
            for c, aval, path in zip(given, avals, paths, strict=True):
                out.append(self._checked(c, aval, f"argument {number}{keystr(path)}"))
        return out

    def _checked(self, cotangent: Any, aval: Any, where: str) -> Any:
        wanted = tangent_aval(aval)
        if cotangent is None or isinstance(cotangent, SymbolicZero) or wanted.dtype == dtypes.float0:
            return Zero(wanted)
        cotangent = plain_numbers.array_from(cotangent)
        given = cotangent.aval
        is_converted = given.weak_type or _is_as_wide_a_kind(given.dtype, wanted.dtype)
        if given.shape != wanted.shape or (given.dtype != wanted.dtype and not is_converted):
            raise source.located(
                ValueError,
                f"the backward rule `{name_of(self.bwd)}` of `{self.name}` returned {given.str_short()} for "
                f"{where}, whose cotangent has type {wanted.str_short()}",
            )
        return cotangent if given.dtype == wanted.dtype else convert_element_type(cotangent, wanted.dtype)


def _is_as_wide_a_kind(given: Any, wanted: Any) -> bool:
    """Whether a cotangent is converted: floating point numbers to other ones or complex ones, complex ones to such."""
    if not dtypes.is_inexact(given) or not dtypes.is_inexact(wanted):
        return False
    return dtypes.is_complex(wanted) or not dtypes.is_complex(given)


def describe(result: Any) -> str:
    return (
        f"a tuple of {len(result)}"
        if isinstance(result, tuple)
        else f"{type(result).__name__}: {shown(result)}"
    )


class custom_vjp(PickledByName, Generic[P, R]):  # noqa: N801
    """A function with a reverse derivative rule of its own.

    Args:
        fun: the function.
        nondiff_argnums: positions of arguments that are not differentiated; they may be any Python values. The forward
            rule gets them in place, the backward rule first.
        nondiff_argnames: the same, by name.

    >>> import purax as px, purax.numpy as jnp
    >>> @px.custom_vjp
    ... def clip_gradient(x):
    ...     return x
    >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -1.0, 1.0),))
    >>> float(px.grad(lambda x: 10 * clip_gradient(x))(2.0))
    1.0
    """

    def __init__(
        self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ):
        require_function(fun, "custom_vjp")
        functools.update_wrapper(self, fun)
        self.fun = fun
        self._signature = signature_of(fun)
        self.nondiff_argnums = nondiff_positions(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable | None = None
        self.bwd: Callable | None = None
        self.symbolic_zeros = False

    def defvjp(
        self, fwd: Callable, bwd: Callable, symbolic_zeros: bool = False, optimize_remat: bool = False
    ) -> None:
        """Sets the rules: `fwd(*args)` returns (result, residuals), `bwd(*nondiff, residuals, cotangent)` a tuple
        with a cotangent for each differentiated argument (None for zero).

        With `symbolic_zeros`, `fwd` sees leaves as (value, perturbed) and `bwd` known zeros as `SymbolicZero`.
        """
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        name = name_of(self.fun)
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"`{name}` is a custom_vjp function without rules; define them with `{name}.defvjp`"
            )
        args = positional(self.fun, self._signature, args, kwargs, "the custom_vjp function")
        fixed_values, others = split_arguments(args, self.nondiff_argnums)
        positions = self.nondiff_argnums
        leaves, tree = tree_flatten(others)
        if plain_numbers.may_result(leaves):
            return call_or_rewrite(self.fun, *args)
        structure = Structure()
        function = wraps(self.fun)(
            lambda *dynamic: call_or_rewrite(self.fun, *join_arguments(fixed_values, positions, dynamic))
        )
        rules = FlatRules(
            name,
            self.fwd,
            self.bwd,
            fixed_values,
            positions,
            tree,
            len(others),
            structure,
            self.symbolic_zeros,
        )
        results = custom_vjp_call_p.bind(
            *plain_numbers.operands_for(function, leaves, (others, {})),
            call=FlatCall(function, tree, structure),
            rules=rules,
            num_consts=0,
        )
        return tree_unflatten(structure.tree, results)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)


def custom_gradient(fun: Callable[P, Any]) -> Callable[P, Any]:
    """A function that returns its result together with its backward function.

    Args:
        fun: returns (result, backward), where `backward(cotangent)` returns the cotangents of the arguments.

    Returns:
        The function that returns the result alone and is differentiated by `backward`.

    >>> import purax as px
    >>> @px.custom_gradient
    ... def f(x):
    ...     return x**2, lambda g: (g * x,)
    >>> float(px.grad(f)(3.0))
    3.0
    """

    @custom_vjp
    def wrapped(*args):
        return fun(*args)[0]

    def fwd(*args):
        result, backward = fun(*args)
        pullback, captured = closure_convert(backward, result)
        return result, (captured, static(pullback))

    def bwd(residuals, cotangent):
        captured, pullback = residuals
        cotangents = pullback.value(cotangent, *captured)
        return cotangents if isinstance(cotangents, tuple) else (cotangents,)

    wrapped.defvjp(fwd, bwd)

    @wraps(fun)
    def with_gradient(*args, **kwargs):
        return wrapped(*positional(fun, signature_of(fun), args, kwargs, "the function"))

    return with_gradient


@register_static
class static:  # noqa: N801
    """A Python value among residuals: part of their structure, not an array."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


def closure_convert(fun: Callable, *example_args: Any) -> tuple[Callable, list[Any]]:
    """A function that takes the traced values it captured as extra arguments, and those values.

    Args:
        fun: the function.
        *example_args: arguments, of which only the types are used.

    Returns:
        (converted, captured), such that `converted(*args, *captured)` is `fun(*args)`.

    >>> import purax as px
    >>> def f(x):
    ...     g, captured = px.closure_convert(lambda y: x * y, 1.0)
    ...     return g(2.0, *captured)
    >>> float(px.grad(f)(3.0))
    2.0
    """
    require_function(fun, "closure_convert")
    leaves, in_tree = tree_flatten(example_args)
    structure = Structure()
    closed = stage(FlatCall(fun, in_tree, structure), [aval_of_argument(x) for x in leaves], name_of(fun))
    is_captured = [isinstance(x, Tracer) and dtypes.is_inexact(x.aval.dtype) for x in closed.consts]
    captured = [x for x, hoisted in zip(closed.consts, is_captured, strict=True) if hoisted]

    def converted(*args):
        values, given = args[: len(example_args)], iter(args[len(example_args) :])
        flat, tree = tree_flatten(values)
        if tree != in_tree:
            raise TypeError(f"the converted function takes arguments of structure {in_tree}, got {tree}")
        consts = [
            next(given) if hoisted else x for x, hoisted in zip(closed.consts, is_captured, strict=True)
        ]
        return tree_unflatten(structure.tree, eval_jaxpr(closed.jaxpr, consts, *map(to_array, flat)))

    return converted, captured


__all__ = ["CustomVJPPrimal", "closure_convert", "custom_gradient", "custom_vjp"]
