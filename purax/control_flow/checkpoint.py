"""`checkpoint` (`remat`): saves memory in reverse differentiation by computing intermediate values again.

Linearizing a checkpointed call runs its program as it is and keeps only its operands, and what the policy says may be
saved. The linear part that goes on the tape begins by computing the other residuals again.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

from purax.api.jit import jit_p
from purax.control_flow.memory_budget import Budget, needed_residuals
from purax.core import effects, purity_hook, source
from purax.core.avals import Zero
from purax.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, eval_jaxpr
from purax.core.memories import MemorySpace, space_of_kind
from purax.core.trace import Trace, current, using
from purax.errors import shown
from purax.interpreters.arguments import (
    aval_of_argument,
    exact_array,
    from_front,
    name_of,
    numbers_and_names,
    require_function,
    to_array,
    wraps,
)
from purax.interpreters.linearize import linearize_jaxpr
from purax.interpreters.program_rules import ProgramCall, with_tangents
from purax.interpreters.simplify import hoist_constants, remove_dead_code, used_inputs
from purax.interpreters.staging import checked_results, stage
from purax.lowering import jaxpr_to_stablehlo
from purax.primitives.memory import to_memory_p
from purax.primitives.shape.broadcasting import Linear
from purax.references import cells
from purax.references.loop_carries import call_threaded, threaded, without_cells
from purax.tree.registry import tree_flatten, tree_unflatten

P = ParamSpec("P")
R = TypeVar("R")


class Name(Linear):
    """`x`, with a name that checkpoint policies can refer to."""

    name = "name"
    keeps_ends = True
    moves_elements = True
    host_is_cheap = True

    def infer(self, x, *, name):
        return x

    def host(self, x, *, name):
        return x

    def lower(self, builder, x, *, name):
        return x

    def transpose(self, cotangent, x, *, name):
        return (cotangent,)

    def batch(self, operands, batch_axes, *, name):
        return self.bind(operands[0], name=name), batch_axes[0]


class Checkpoint(ProgramCall):
    """Calls a program whose intermediate values are not kept for reverse differentiation.

    Params:
        jaxpr: the program, without constants.
        policy: which values may be kept all the same, a function of (primitive, *avals, **params), or None.
        prevent_cse: whether the compiler is kept from merging the second computation with the first.
        differentiated: whether this call is itself part of a derivative, so that a barrier stands before it.
    """

    name = "checkpoint"
    not_lowered = ("policy",)

    def run(self, *operands, jaxpr, **params):
        results = eval_jaxpr(jaxpr.jaxpr, (), *operands)
        return [exact_array(y, aval) for y, aval in zip(results, jaxpr.out_avals, strict=True)]

    def lower(self, builder, *operands, jaxpr, prevent_cse, differentiated, **params):
        if prevent_cse and differentiated and operands:
            if builder.module.keep_calls:
                # A call that is kept is merged with nothing, and its memory is free when it returns; a barrier would
                # not keep XLA on CPU from computing everything again early on.
                name = jaxpr.jaxpr.name or "checkpoint"
                return jaxpr_to_stablehlo.lower_call(builder, jaxpr, operands, name, alone=True)
            operands = builder.op("optimization_barrier", operands, [x.aval for x in operands])
        return jaxpr_to_stablehlo.lower_body(builder, jaxpr.jaxpr, operands)

    def linearize(self, primals, tangents, *, jaxpr, policy, prevent_cse, differentiated):
        moving = tuple(type(t) is not Zero for t in tangents)
        forward, backward, out_moving, saved = split_by_policy(jaxpr, moving, policy)
        results = eval_jaxpr(forward.jaxpr, forward.consts, *primals)
        out, kept = results[: len(out_moving)], results[len(out_moving) :]
        operands = [x for x, used in zip([*primals, *kept], saved, strict=True) if used]
        given = [t for t in tangents if type(t) is not Zero]
        params = {"policy": policy, "prevent_cse": prevent_cse, "differentiated": True}
        out_tangents = self.call(backward, [*operands, *given], params) if any(out_moving) else ()
        return with_tangents(out, out_tangents, out_moving)


name_p = Name()
checkpoint_p = Checkpoint()


def split_by_policy(
    closed: ClosedJaxpr, moving: tuple[bool, ...], policy: Callable | None
) -> tuple[ClosedJaxpr, ClosedJaxpr, list[bool], list[bool]]:
    """Splits the derivative of a program at what may be saved.

    Returns:
        The forward program: arguments -> (results, saved values); the backward program: (some arguments, some saved
        values, tangents) -> tangents, which computes all other residuals again; which results have a tangent; which of
        the arguments and saved values the backward program takes.
    """
    key = ("checkpoint", moving, policy)
    if key in closed.derived:
        return closed.derived[key]
    primal, linear, out_moving, count = linearize_jaxpr(closed if policy is None else opened(closed), moving)
    jaxpr = primal.jaxpr
    results = len(out_moving)
    saved = _chosen(jaxpr, policy, needed_residuals(primal, linear, results))
    spaces = {v: space for v, space in saved.items() if space is not None}
    kept_as = {v: Var(v.aval.with_memory(space)) for v, space in spaces.items()}
    away = [to_memory_eqn(v, kept_as[v], space) for v, space in spaces.items()]
    handed = [kept_as.get(v, v) for v in saved]
    forward = ClosedJaxpr(
        remove_dead_code(
            jaxpr.replace(eqns=[*jaxpr.eqns, *away], outvars=[*jaxpr.outvars[:results], *handed])
        ),
        primal.consts,
    )
    # The backward program: residuals from arguments and saved values, then the linear part on them.
    back = [to_memory_eqn(kept, v, v.aval.memory_space) for v, kept in kept_as.items()]
    again = [*back, *(eqn for eqn in jaxpr.eqns if not all(v in saved for v in eqn.outvars))]
    renaming = dict(zip(linear.jaxpr.invars[:count], jaxpr.outvars[results:], strict=True))

    def rename(atom: Atom) -> Atom:
        return atom if type(atom) is Literal else renaming.get(atom, atom)

    linear_eqns = [eqn.replace(invars=[rename(v) for v in eqn.invars]) for eqn in linear.jaxpr.eqns]
    tangents = linear.jaxpr.invars[count:]
    whole = Jaxpr(
        jaxpr.constvars,
        [*jaxpr.invars, *handed, *tangents],
        [rename(v) for v in linear.jaxpr.outvars],
        [*again, *linear_eqns],
        name=f"remat_{closed.jaxpr.name}",
    )
    whole = remove_dead_code(whole)
    used = used_inputs(whole)
    candidates = len(jaxpr.invars) + len(saved)
    kept = [v for v, is_used in zip(whole.invars[:candidates], used[:candidates], strict=True) if is_used]
    backward = ClosedJaxpr(whole.replace(invars=[*kept, *tangents]), primal.consts)
    closed.derived[key] = forward, backward, out_moving, used[:candidates]
    return closed.derived[key]


class OpenTrace(Trace):
    """Does what called functions do, instead of the calls."""

    __slots__ = ()
    name = "open"

    def process(self, primitive, operands, params):
        if primitive is jit_p:
            return eval_jaxpr(params["jaxpr"].jaxpr, (), *operands)
        return self.parent.process(primitive, operands, params)


def opened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with the functions that it calls written out, so that a policy sees what they compute."""
    if not any(eqn.primitive is jit_p for eqn in closed.eqns):
        return closed
    if "opened" not in closed.derived:

        def run(*args):
            with using(OpenTrace(current.trace)):
                return eval_jaxpr(closed.jaxpr, closed.consts, *args)

        closed.derived["opened"] = stage(run, closed.in_avals, closed.jaxpr.name)
    return closed.derived["opened"]


def _chosen(jaxpr: Jaxpr, policy: Callable | None, wanted: Sequence[Var]) -> dict[Var, MemorySpace | None]:
    """The values to keep, each with the memory that it is moved to meanwhile, or None."""
    chosen: dict[Var, MemorySpace | None] = {}
    for eqn in jaxpr.eqns:
        answer = may_save(eqn, policy)
        if answer:
            space = space_of_kind(answer.dst) if isinstance(answer, Offloadable) else None
            chosen.update((v, None if space is v.aval.memory_space else space) for v in eqn.outvars)
    if isinstance(policy, (Budget, _Either)):
        chosen.update((v, None) for v in policy.choose(jaxpr, wanted) if v not in chosen)
    return chosen


def to_memory_eqn(x: Var, result: Var, space: MemorySpace) -> JaxprEqn:
    """The equation that moves a value to another memory of its device."""
    return JaxprEqn([x], [result], to_memory_p, {"space": space})


class Saveable:
    """What a policy may answer: the results may be kept. True means the same."""

    def __bool__(self) -> bool:
        return True


class Recompute:
    """What a policy may answer: the results are computed again. False means the same."""

    def __bool__(self) -> bool:
        return False


class Offloadable(NamedTuple):
    """What a policy may answer: the results may be kept, in another memory of the device if it has one.

    Attributes:
        src: the memory that they are in.
        dst: the memory that they are moved to.
    """

    src: str
    dst: str


def may_save(eqn: JaxprEqn, policy: Callable | None) -> Any:
    """Whether the results of an equation may be kept until the backward pass: a boolean, or an `Offloadable`.

    What must not happen twice is kept.
    """
    if effects.any_unrepeatable(eqn.effects):
        return True
    if policy is None:
        return False
    answer = policy(eqn.primitive, *[v.aval for v in eqn.invars], **eqn.params)
    return answer if isinstance(answer, Offloadable) else bool(answer)


def checkpoint(
    fun: Callable[P, R] | None = None,
    *,
    prevent_cse: bool = True,
    policy: Callable[..., bool] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: bool = False,
) -> Callable[P, R]:
    """A function whose intermediate values are computed again in the backward pass, instead of being kept.

    Args:
        fun: the function. Without it, `checkpoint(**options)` is a decorator.
        prevent_cse: whether the compiler is kept from merging the second computation with the first. False is right
            inside `scan`, where it cannot happen.
        policy: which values may be kept: one of `purax.checkpoint_policies`, or a function of (primitive, *types,
            **params). `checkpoint_policies.budget(bytes)` chooses by itself what saves the most work.
        static_argnums: positions of arguments that are Python values.
        static_argnames: the same, by name.
        concrete: must be False; `static_argnums` are the arguments with values that Python can see.

    Returns:
        The function, with the same results and derivatives.

    >>> import purax as px, purax.numpy as jnp
    >>> float(px.grad(px.checkpoint(lambda x: jnp.sin(jnp.sin(x))))(0.0))
    1.0
    """
    if concrete:
        raise source.located(
            NotImplementedError,
            "checkpoint: concrete=True is an option that jax has given up; name the arguments that Python looks "
            "into with static_argnums or static_argnames",
        )
    if fun is None:
        return functools.partial(  # type: ignore[return-value]
            checkpoint,
            prevent_cse=prevent_cse,
            policy=policy,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
        )
    require_function(fun, "checkpoint")
    if policy is not None and not callable(policy):
        raise source.located(
            TypeError,
            f"checkpoint: policy must be one of purax.checkpoint_policies or None, got {shown(policy)}",
        )
    numbers, names = numbers_and_names(fun, static_argnums or None, static_argnames or None, "static")
    name = name_of(fun)

    @wraps(fun)
    def checkpointed(*args, **kwargs):
        static = from_front(numbers, len(args))
        dynamic = tuple(None if i in static else x for i, x in enumerate(args))
        dynamic_kwargs = {key: x for key, x in kwargs.items() if key not in names}
        leaves, tree = tree_flatten((dynamic, dynamic_kwargs))
        out_tree = None
        options = {"prevent_cse": prevent_cse, "policy": policy}

        def call(new_args, new_kwargs):
            merged = [args[i] if i in static else x for i, x in enumerate(new_args)]
            static_kwargs = {key: x for key, x in kwargs.items() if key in names}
            return purity_hook.call(fun, merged, {**new_kwargs, **static_kwargs})

        if cells.has_cells(leaves):
            rest, arrays = without_cells(call, (dynamic, dynamic_kwargs))
            return checkpoint(rest, **options)(*arrays)

        def flat(*xs):
            nonlocal out_tree
            results = call(*tree_unflatten(tree, xs))
            out, out_tree = tree_flatten(results)
            return checked_results(out, results, name)

        try:
            closed = stage(flat, [aval_of_argument(x) for x in leaves], name)
        except cells.CapturedCells as captured:
            again = checkpoint(threaded(call, captured.cells), **options)
            return call_threaded(lambda contents: again(contents, dynamic, dynamic_kwargs), captured.cells)
        params = {"policy": policy, "prevent_cse": prevent_cse, "differentiated": False}
        results = checkpoint_p.call(closed, [to_array(x) for x in leaves], params)
        return tree_unflatten(out_tree, results)

    return checkpointed


remat = checkpoint


def checkpoint_name(x: Any, name: str) -> Any:
    """`x`, under a name that `checkpoint_policies.save_only_these_names` and its like refer to."""
    leaves, tree = tree_flatten(x)
    return tree_unflatten(tree, [name_p.bind(to_array(leaf), name=name) for leaf in leaves])


class Policies:
    """What a checkpointed function may keep: pass one of these as `policy`."""

    @staticmethod
    def everything_saveable(primitive, *avals, **params) -> bool:
        """Keeps all intermediate values, as without `checkpoint`."""
        return True

    @staticmethod
    def nothing_saveable(primitive, *avals, **params) -> bool:
        """Keeps nothing but the arguments; the default."""
        return False

    @staticmethod
    def dots_saveable(primitive, *avals, **params) -> bool:
        """Keeps the results of matrix products and convolutions."""
        return primitive.is_matrix_product or primitive.is_convolution

    checkpoint_dots = dots_saveable

    @staticmethod
    def dots_with_no_batch_dims_saveable(primitive, *avals, **params) -> bool:
        """Keeps the results of matrix products without batch axes."""
        return primitive.is_matrix_product and params["dimension_numbers"][1] == ((), ())

    checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable

    @staticmethod
    def save_only_these_names(*names: str) -> Callable[..., bool]:
        """Keeps the values named so by `checkpoint_name`."""
        return _NamePolicy(frozenset(names), False)

    @staticmethod
    def save_any_names_but_these(*names: str) -> Callable[..., bool]:
        """Keeps all values named by `checkpoint_name` but these."""
        return _NamePolicy(frozenset(names), True)

    @staticmethod
    def save_anything_except_these_names(*names: str) -> Callable[..., bool]:
        """Keeps everything but the values with these names."""
        return _AllButNames(frozenset(names))

    @staticmethod
    def save_from_both_policies(
        first: Callable[..., bool], second: Callable[..., bool]
    ) -> Callable[..., bool]:
        """Keeps what either policy keeps."""
        return _Either(first, second)

    @staticmethod
    def budget(bytes: int) -> Budget:
        """Keeps at most so many bytes, chosen such that the least work is done again; arguments do not count.

        `budget(bytes).report(f)(*args)` says what it keeps of a function, with the user's lines.

        >>> import purax as px, purax.numpy as jnp
        >>> f = px.checkpoint(lambda x: jnp.sum(jnp.sin(2 * x)), policy=px.checkpoint_policies.budget(2**20))
        >>> px.grad(f)(jnp.zeros(2))
        Array([2., 2.], dtype=float32)
        """
        return Budget(bytes)

    @staticmethod
    def save_and_offload_only_these_names(
        *,
        names_which_can_be_saved: Sequence[str],
        names_which_can_be_offloaded: Sequence[str],
        offload_src: str,
        offload_dst: str,
    ) -> Callable[..., bool]:
        """Keeps the values with these names, some of them in the memory `offload_dst`; see `_Offload`."""
        kept = _NamePolicy(frozenset(names_which_can_be_saved), False)
        moved = _NamePolicy(frozenset(names_which_can_be_offloaded), False)
        return _Either(kept, _Offload(moved, offload_src, offload_dst))

    @staticmethod
    def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Callable[..., bool]:
        """Keeps the results of matrix products without batch axes in the memory `offload_dst`; see `_Offload`."""
        return _Offload(Policies.dots_with_no_batch_dims_saveable, offload_src, offload_dst)


class _NamePolicy:
    """Policies compare by value, so that programs made with equal ones are shared."""

    def __init__(self, names: frozenset[str], excluded: bool):
        self.key: tuple[Any, ...] = (names, excluded)

    def __call__(self, primitive, *avals, **params) -> bool:
        names, excluded = self.key
        return primitive is name_p and (params["name"] in names) != excluded

    def __eq__(self, other):
        return type(other) is type(self) and self.key == other.key

    def __hash__(self):
        return hash((type(self), self.key))


class _AllButNames(_NamePolicy):
    def __init__(self, names: frozenset[str]):
        super().__init__(names, True)

    def __call__(self, primitive, *avals, **params) -> bool:
        return not (primitive is name_p and params["name"] in self.key[0])


class _Either(_NamePolicy):
    def __init__(self, first, second):
        self.key = (first, second)

    def __call__(self, primitive, *avals, **params) -> Any:
        answers = (policy(primitive, *avals, **params) for policy in self.key)
        return next(filter(None, answers), False)

    def choose(self, jaxpr: Jaxpr, wanted: Sequence[Var]) -> list[Var]:
        """What those of the policies choose that look at whole programs."""
        lookers = [policy for policy in self.key if isinstance(policy, (Budget, _Either))]
        return [v for policy in lookers for v in policy.choose(jaxpr, wanted)]


class _Offload(_NamePolicy):
    """Keeps what another policy keeps, in another memory of the device.

    A CPU's memory is the host's, so that nothing is moved there.
    """

    def __init__(self, policy: Callable[..., bool], source_memory: str, target_memory: str):
        for memory in (source_memory, target_memory):
            space_of_kind(memory)  # raises if there is none of that name
        self.key = (policy, source_memory, target_memory)

    def __call__(self, primitive, *avals, **params) -> Any:
        policy, source_memory, target_memory = self.key
        return Offloadable(source_memory, target_memory) if policy(primitive, *avals, **params) else False


checkpoint_policies = Policies()


def saved_residuals(fun: Callable, *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """The types of the values that reverse differentiation of `fun` keeps, and where each comes from."""
    leaves, tree = tree_flatten((args, kwargs))

    def flat(*xs):
        new_args, new_kwargs = tree_unflatten(tree, xs)
        return tree_flatten(fun(*new_args, **new_kwargs))[0]

    closed = hoist_constants(stage(flat, [aval_of_argument(x) for x in leaves], name_of(fun)))
    count = len(closed.jaxpr.invars) - len(leaves)
    primal, linear, _, residuals = linearize_jaxpr(closed, [False] * count + [True] * len(leaves))
    made_by = {v: eqn for eqn in primal.eqns for v in eqn.outvars}
    names = _argument_names(fun, leaves)
    found: list[tuple[Any, str]] = []
    used = used_inputs(remove_dead_code(linear.jaxpr))[:residuals]
    seen: set[Var] = set()
    for v, is_used in zip(primal.jaxpr.outvars[len(primal.jaxpr.outvars) - residuals :], used, strict=True):
        if not is_used or type(v) is Literal or v in seen:
            continue
        seen.add(v)
        if v in primal.jaxpr.invars:
            position = primal.jaxpr.invars.index(v)
            where = (
                "from a captured constant"
                if position < count
                else f"from the argument {names[position - count]}"
            )
        else:
            eqn = made_by[v]
            where = f"output of {eqn.primitive.name} from {eqn.source}"
        found.append((v.aval, where))
    return found


def _argument_names(fun: Callable, leaves: Sequence[Any]) -> list[str]:
    try:
        names = list(inspect.signature(fun).parameters)
    except (TypeError, ValueError):
        names = []
    return [names[i] if len(names) == len(leaves) else str(i) for i in range(len(leaves))]


def print_saved_residuals(f: Callable, *args: Any, **kwargs: Any) -> None:
    """Prints what reverse differentiation of `f` at these arguments keeps in memory.

    >>> import purax as px, purax.numpy as jnp
    >>> px.ad_checkpoint.print_saved_residuals(lambda x: jnp.sin(x), 1.0)  # doctest: +ELLIPSIS
    f32[] output of cos from ...
    """
    for aval, where in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short()} {where}")


__all__ = [
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
    "saved_residuals",
]
