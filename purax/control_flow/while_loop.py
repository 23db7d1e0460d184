"""`while_loop` and `fori_loop`: loops whose number of steps may depend on what they compute.

`fori_loop` with concrete bounds is a `scan`; otherwise both are the primitive `while`, which has forward derivatives
and batches, and is differentiated in reverse by computing its steps again (`backward_steps`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from purax.config import config
from purax.control_flow.backward_steps import backward_program
from purax.control_flow.bodies import arrays_in, stage_tree
from purax.control_flow.bounded_loop import bounded_loop_p
from purax.control_flow.scan import as_array, as_program, fixed_point, regroup, reorder, scan_p, stage_body
from purax.core import dtypes, effects, source
from purax.core.array import Array
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.dimensions import as_size
from purax.core.jaxpr import ClosedJaxpr, dependent_results, eval_jaxpr
from purax.core.primitive import LinearOperand, Primitive
from purax.core.trace import Tracer, current
from purax.errors import shown
from purax.execution import compiled_program
from purax.execution.host_program import host_program, host_values, quiet
from purax.execution.known_programs import known
from purax.interpreters.arguments import name_of, to_array
from purax.interpreters.jvp import jvp_jaxpr
from purax.interpreters.program_rules import uses_axis, with_tangents
from purax.interpreters.simplify import hoist_constants, without_effects
from purax.interpreters.staging import stage
from purax.interpreters.vmap import batch_jaxpr
from purax.lowering import jaxpr_to_stablehlo
from purax.lowering.guarded_effects import guarded
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add
from purax.primitives.elementwise.logic import and_, lt, select_n
from purax.primitives.reductions.reduction import reduce_or
from purax.primitives.shape.broadcasting import batch_to_front, broadcast_in_dim, materialize, move_axis
from purax.references import cells
from purax.references.loop_carries import call_threaded, threaded
from purax.tree.registry import tree_flatten, tree_unflatten

Value = TypeVar("Value")

_INTERPRETED_EQUATIONS = 400  # run one by one before an eager loop is compiled and continued


class While(Primitive):
    """Runs `body_jaxpr` as long as `cond_jaxpr` is true.

    Params:
        cond_jaxpr: (its constants, carry) -> a boolean scalar.
        body_jaxpr: (its constants, carry) -> carry.
        cond_nconsts, body_nconsts: the operands are the constants of both, in this order, and the initial carry.
    """

    name = "while"
    multiple_results = True
    runs_itself = True

    def repeats(self, **params):
        return None

    def infer(self, *avals, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
        return body_jaxpr.out_avals

    def run(self, *operands, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
        cond_consts, body_consts, carry = divide(operands, cond_nconsts, body_nconsts)
        avals = body_jaxpr.out_avals
        small = max((aval.size for aval in body_jaxpr.in_avals), default=0) <= config.host_size_limit
        if small or current.interprets:
            cost = len(cond_jaxpr.eqns) + len(body_jaxpr.eqns) + 1
            steps = itertools.count() if current.interprets else range(_INTERPRETED_EQUATIONS // cost)
            values = host_values(operands)
            condition, body = host_program(cond_jaxpr), host_program(body_jaxpr)
            if values is not None and condition is not None and body is not None:
                known = divide(values, cond_nconsts, body_nconsts)
                carry, is_done = quiet.run(_run_on_host, condition, body, known, steps)
            else:
                is_done = False
                for _ in steps:
                    (going_on,) = eval_jaxpr(cond_jaxpr.jaxpr, (), *cond_consts, *carry)
                    if not going_on:
                        is_done = True
                        break
                    carry = eval_jaxpr(body_jaxpr.jaxpr, (), *body_consts, *carry)
            if is_done:
                return [as_array(x, aval) for x, aval in zip(carry, avals, strict=True)]
        params = dict(
            cond_jaxpr=cond_jaxpr, body_jaxpr=body_jaxpr, cond_nconsts=cond_nconsts, body_nconsts=body_nconsts
        )
        values = [*cond_consts, *body_consts, *(as_array(x, a) for x, a in zip(carry, avals, strict=True))]
        return compiled_program.run(as_program(self, [aval_of(x) for x in values], params), values)

    def padded(self, at, avals, operands, *, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
        cond_consts, body_consts, carry = divide(operands, cond_nconsts, body_nconsts)
        condition, body = (at.program(closed, self.name) for closed in (cond_jaxpr, body_jaxpr))
        return self.bind(
            *condition.consts, *cond_consts, *body.consts, *body_consts, *carry,
            cond_jaxpr=hoist_constants(condition), body_jaxpr=hoist_constants(body),
            cond_nconsts=len(condition.consts) + cond_nconsts, body_nconsts=len(body.consts) + body_nconsts,
        )  # fmt: skip

    def lower(self, builder, *operands, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
        cond_consts, body_consts, carry = divide(operands, cond_nconsts, body_nconsts)
        types = [x.aval for x in carry]
        condition = builder.region(
            types,
            lambda inner, *xs: jaxpr_to_stablehlo.lower_body(inner, cond_jaxpr.jaxpr, [*cond_consts, *xs]),
        )
        body = builder.region(
            types,
            lambda inner, *xs: jaxpr_to_stablehlo.lower_body(inner, body_jaxpr.jaxpr, [*body_consts, *xs]),
        )
        return builder.op("while", carry, types, regions=[condition, body])

    def jvp(self, primals, tangents, *, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
        _, body_t, carry_t = divide(tangents, cond_nconsts, body_nconsts)
        cond_consts, body_consts, carry = divide(primals, cond_nconsts, body_nconsts)
        body_moving = [type(t) is not Zero for t in body_t]
        moving, _ = fixed_point(
            [type(t) is not Zero for t in carry_t], lambda c: jvp_jaxpr(body_jaxpr, [*body_moving, *c], c)[1]
        )
        derivative, _ = jvp_jaxpr(body_jaxpr, [*body_moving, *moving], moving)
        # (b, k, ḃ, k̇) -> (k, k̇) becomes (b, ḃ, k, k̇) -> (k, k̇)
        order = regroup([len(body_consts), len(carry), sum(body_moving), sum(moving)], [0, 2, 1, 3])
        body = reorder(derivative, order, None)
        given_body = [t for t in body_t if type(t) is not Zero]
        given_carry = [materialize(t) for t, m in zip(carry_t, moving, strict=True) if m]
        results = bind_while(
            ignoring(cond_jaxpr, [x.aval for x in given_carry]),
            body,
            cond_consts,
            [*body_consts, *given_body],
            [*carry, *given_carry],
        )
        return with_tangents(results[: len(carry)], results[len(carry) :], moving)

    def linearize(self, primals, tangents, **params):
        # The loop runs once for its values; on the tape it is repeated, and only the tangents are taken from it.
        programs = ("cond_jaxpr", "body_jaxpr")
        if effects.any_unrepeatable(self.effects(**params)):
            raise source.located(
                NotImplementedError,
                "linearizing a while_loop runs it twice, but its body or condition has an io_callback; use `scan`, "
                "or `fori_loop` with concrete bounds",
            )
        out = self.bind(*primals, **params)
        silent = {**params, **{name: without_effects(params[name]) for name in programs}}
        _, out_tangents = self.jvp(primals, tangents, **silent)
        return out, out_tangents

    def transpose(self, cotangents, *operands, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
        cond_consts, body_consts, carry = divide(operands, cond_nconsts, body_nconsts)
        linear_consts = [type(x) is LinearOperand for x in body_consts]
        # A carry that starts from explicit zeros is linear too: it collects what the steps add to it.
        linear, _ = fixed_point(
            [type(x) is LinearOperand for x in carry],
            lambda c: dependent_results(body_jaxpr.jaxpr, [*linear_consts, *c]),
        )
        (stops,) = dependent_results(cond_jaxpr.jaxpr, [*[False] * cond_nconsts, *linear])
        if stops:
            raise source.located(
                ValueError, "a while_loop whose condition depends on what is transposed is not linear"
            )
        flags = tuple(linear_consts), tuple(linear)
        known = body_jaxpr.derived.get(("backward", flags))
        if known is None or known[0] is not cond_jaxpr:
            known = cond_jaxpr, backward_program(cond_jaxpr, body_jaxpr, *flags, _staged)
            body_jaxpr.derived["backward", flags] = known
        inner = (*body_consts, *carry)
        fixed = [x for x, flag in zip(inner, (*linear_consts, *linear), strict=True) if not flag]
        given = [materialize(c) for c, flag in zip(cotangents, linear, strict=True) if flag]
        found = iter(eval_jaxpr(known[1].jaxpr, known[1].consts, *cond_consts, *fixed, *given))
        results = [next(found) if flag else None for flag in (*linear_consts, *linear)]
        return [
            *[None] * cond_nconsts,
            *(c if type(x) is LinearOperand else None for x, c in zip(inner, results, strict=True)),
        ]

    def batch(self, operands, batch_axes, **params):
        return self._batch(operands, batch_axes, None, None, **params)

    def names_axis(self, axis_name, *, cond_jaxpr, body_jaxpr, **params):
        return uses_axis(cond_jaxpr, axis_name) or uses_axis(body_jaxpr, axis_name)

    def batch_collective(self, size, axis_name, operands, batch_axes, **params):
        return self._batch(operands, batch_axes, size, axis_name, **params)

    def _batch(
        self, operands, batch_axes, size, axis_name, *, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts
    ):
        if size is None:
            size = next(
                aval_of(x).shape[a] for x, a in zip(operands, batch_axes, strict=True) if a is not None
            )
        cond_axes, body_axes, carry_axes = divide(batch_axes, cond_nconsts, body_nconsts)
        cond_consts, body_consts, carry = divide(operands, cond_nconsts, body_nconsts)
        cond_batched = [a is not None for a in cond_axes]
        body_batched = [a is not None for a in body_axes]

        def grow(c):
            out = batch_jaxpr(body_jaxpr, [*body_batched, *c], size, axis_name, c)[1]
            # If the condition differs between elements, so does when they stop, and everything is batched.
            (differs,) = batch_jaxpr(cond_jaxpr, [*cond_batched, *c], size, axis_name)[1]
            return [True] * len(out) if differs else out

        batched, _ = fixed_point([a is not None for a in carry_axes], grow)
        body, _ = batch_jaxpr(body_jaxpr, [*body_batched, *batched], size, axis_name, batched)
        condition, (differs,) = batch_jaxpr(cond_jaxpr, [*cond_batched, *batched], size, axis_name)
        cond_consts = [
            x if a is None else move_axis(x, a, 0) for x, a in zip(cond_consts, cond_axes, strict=True)
        ]
        body_consts = [
            x if a is None else move_axis(x, a, 0) for x, a in zip(body_consts, body_axes, strict=True)
        ]
        carry = [
            batch_to_front(x, a, size) if b else x for x, a, b in zip(carry, carry_axes, batched, strict=True)
        ]
        if differs:
            if effects.any_unrepeatable(cond_jaxpr.effects):
                raise source.located(
                    NotImplementedError,
                    "while_loop under vmap tries its condition until the last example is done; but the "
                    "condition has an io_callback, which must not happen for examples that are. Call it in "
                    "the body, or use `purax.lax.map` instead of vmap.",
                )
            if body_jaxpr.effects:
                flags = [True, *body_batched, *batched]
                body, _ = batch_jaxpr(guarded(body_jaxpr), flags, size, axis_name, batched)
            condition, body, body_consts = stop_one_by_one(
                condition, body, cond_consts, body_consts, carry, bool(body_jaxpr.effects)
            )
        results = bind_while(condition, body, cond_consts, body_consts, carry)
        return results, [0 if b else None for b in batched]

    def depends(self, flags, *, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
        condition, body, carry = divide(flags, cond_nconsts, body_nconsts)

        def grow(c):
            (stops,) = dependent_results(cond_jaxpr.jaxpr, [*condition, *c])
            return [True] * len(c) if stops else dependent_results(body_jaxpr.jaxpr, [*body, *c])

        return fixed_point(carry, grow)[0]

    def effects(self, *, cond_jaxpr, body_jaxpr, **params):
        return cond_jaxpr.effects | body_jaxpr.effects

    def thread(self, threader, state, operands, *, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
        cond_consts, body_consts, carry = divide(operands, cond_nconsts, body_nconsts)
        count = len(state)
        if not threader.concerns(cond_jaxpr):
            # (values, constants, carry) becomes (constants, values, carry)
            body = reorder(
                threader.program(body_jaxpr), regroup([count, body_nconsts, len(carry)], [1, 0, 2]), None
            )
            condition = reorder(
                ignoring(cond_jaxpr, threader.avals),
                regroup([cond_nconsts, len(carry), count], [0, 2, 1]),
                None,
            )
            results = bind_while(condition, body, cond_consts, body_consts, [*state, *carry])
            return results[:count], results[count:]

        # Such a condition is tried before the loop and at the end of each turn; the loop carries what it said.
        def step(*args):
            consts, inner, (_, *rest) = divide(args, cond_nconsts, body_nconsts)
            values, now = threader.run(body_jaxpr, rest[:count], [*inner, *rest[count:]])
            values, going_on = threader.run(cond_jaxpr, values, [*consts, *now])
            return [*going_on, *values, *now]

        state, going_on = threader.run(cond_jaxpr, state, [*cond_consts, *carry])
        carry = [*going_on, *state, *carry]
        condition = stage(lambda going_on, *rest: [going_on], [aval_of(x) for x in carry], "goes_on")
        body = stage(step, [aval_of(x) for x in (*cond_consts, *body_consts, *carry)], body_jaxpr.jaxpr.name)
        _, *results = bind_while(condition, body, [], [*cond_consts, *body_consts], carry)
        return results[:count], results[count:]


while_p = While()


def _run_on_host(condition, body, operands, steps) -> tuple[list[np.ndarray], bool]:
    """Takes steps of a loop with NumPy; the carry after them, and whether the loop has ended."""
    cond_consts, body_consts, carry = operands
    for _ in steps:
        (going_on,) = condition(*cond_consts, *carry)
        if not going_on:
            return carry, True
        carry = body(*body_consts, *carry)
    return carry, False


def divide(values: Sequence[Any], cond_nconsts: int, body_nconsts: int) -> tuple[list, list, list]:
    """Operands of a while loop: constants of the condition, constants of the body, carry."""
    start = cond_nconsts + body_nconsts
    return list(values[:cond_nconsts]), list(values[cond_nconsts:start]), list(values[start:])


def bind_while(condition: ClosedJaxpr, body: ClosedJaxpr, cond_consts, body_consts, carry) -> list[Any]:
    """Binds `while` on programs that may have captured constants."""
    return while_p.bind(
        *condition.consts,
        *cond_consts,
        *body.consts,
        *body_consts,
        *carry,
        cond_jaxpr=hoist_constants(condition),
        body_jaxpr=hoist_constants(body),
        cond_nconsts=len(condition.consts) + len(cond_consts),
        body_nconsts=len(body.consts) + len(body_consts),
    )


def ignoring(condition: ClosedJaxpr, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """A condition that takes further carried values and does not look at them."""
    if not avals:
        return condition
    key = ("ignoring", tuple(avals))
    if key not in condition.derived:
        count = len(condition.in_avals)
        condition.derived[key] = stage(
            lambda *xs: eval_jaxpr(condition.jaxpr, condition.consts, *xs[:count]),
            [*condition.in_avals, *avals],
            condition.jaxpr.name,
        )
    return condition.derived[key]


def stop_one_by_one(
    condition: ClosedJaxpr, body: ClosedJaxpr, cond_consts, body_consts, carry, is_guarded: bool
):
    """A loop over a batch: goes on while any element does; elements whose condition is false keep their values.

    The body takes first which elements go on if it `is_guarded`.
    """
    n_cond, n_body = len(cond_consts), len(body_consts)
    silent = without_effects(condition)

    def any_goes_on(*args):
        (going_on,) = eval_jaxpr(condition.jaxpr, condition.consts, *args)
        return [reduce_or(going_on, (0,))]

    def step(*args):
        consts, inner, state = args[:n_cond], args[n_cond : n_cond + n_body], args[n_cond + n_body :]
        (going_on,) = eval_jaxpr(silent.jaxpr, silent.consts, *consts, *state)
        given = [going_on, *inner, *state] if is_guarded else [*inner, *state]
        new = eval_jaxpr(body.jaxpr, body.consts, *given)
        return [
            select_n(broadcast_in_dim(going_on, aval_of(y).shape, (0,)), x, y)
            for x, y in zip(state, new, strict=True)
        ]

    types = [aval_of(x) for x in carry]
    cond_types = [aval_of(x) for x in cond_consts]
    body_types = [aval_of(x) for x in body_consts]
    new_condition = stage(any_goes_on, [*cond_types, *types], condition.jaxpr.name)
    new_body = stage(step, [*cond_types, *body_types, *types], body.jaxpr.name)
    return new_condition, new_body, [*cond_consts, *body_consts]


def while_loop(
    cond_fun: Callable[[Value], Any],
    body_fun: Callable[[Value], Value],
    init_val: Value,
    *,
    max_steps: int | None = None,
) -> Value:
    """Repeats a function as long as a condition holds.

    Args:
        cond_fun: value -> a boolean scalar.
        body_fun: value -> value, of the same types.
        init_val: the initial value, an array or a tree of arrays.
        max_steps: after how many steps the loop ends in any case. With such a bound the loop is differentiated in
            reverse (`grad`) in memory that grows with its root, and each step is computed twice
            (`purax.control_flow.bounded_loop`); without one in memory that does not depend on the number of steps,
            and each is computed three or four times, more often past some ten thousand steps
            (`purax.control_flow.backward_steps`).

    Returns:
        The first value for which the condition is false.

    >>> import purax as px
    >>> px.lax.while_loop(lambda x: x < 100, lambda x: x * 2, 1)
    Array(128, dtype=int32, weak_type=True)
    >>> px.grad(lambda x: px.lax.while_loop(lambda y: y < 100, lambda y: y * 2, x))(1.0)
    Array(128., dtype=float32, weak_type=True)
    """
    if max_steps is not None:
        return _bounded(cond_fun, body_fun, init_val, max_steps)
    for f, name in ((cond_fun, "cond_fun"), (body_fun, "body_fun")):
        if not callable(f):
            raise TypeError(
                "lax.while_loop: body_fun and cond_fun arguments should be callable: "
                f"{name} is {shown(f)} of type {type(f).__name__}"
            )
    if config.disable_jit:
        value = init_val
        while _is_decided(going_on := cond_fun(value)):
            if not going_on:
                return value
            value = body_fun(value)
    return _staged(cond_fun, body_fun, init_val)


def _is_decided(x: Any) -> bool:
    """Whether Python can decide by a value: not where a transformation around this has it traced."""
    return not isinstance(x, Tracer) or x.concrete_or_none() is not None


def _staged(
    cond_fun: Callable, body_fun: Callable, init_val: Any, what: str = "while_loop", counters: int = 0
) -> Any:
    """`while_loop`, for the function `what`; `counters` as in `stage_body`."""
    leaves, value_tree = tree_flatten(init_val)
    _, tree = tree_flatten((init_val,))
    carry = arrays_in(leaves, value_tree, "while_loop: init_val")
    captured: list[Any] = []
    try:
        step = lambda body, value: (body(value), ())  # noqa: E731
        body, carry, _ = stage_body(body_fun, tree, value_tree, carry, [], what, step, counters)
    except cells.CapturedCells as used:
        captured.extend(used.cells)
    try:
        condition, _ = stage_tree(cond_fun, tree, [x.aval for x in carry], "while_loop: cond_fun")
    except cells.CapturedCells as used:
        captured.extend(x for x in used.cells if not any(x is cell for cell in captured))
    if captured:
        return _while_with_cells(cond_fun, body_fun, init_val, captured)
    out = condition.out_avals
    if len(out) != 1 or out[0].shape != () or not dtypes.is_boolean(out[0].dtype):
        got = ", ".join(a.str_short() for a in out)
        raise source.located(
            TypeError,
            f"while_loop: cond_fun must return a boolean scalar, but `{name_of(cond_fun)}` returned {got}",
        )
    programs = known(hoist_constants(condition)), known(hoist_constants(body))
    return tree_unflatten(value_tree, bind_while(*programs, condition.consts, body.consts, carry))


def _while_with_cells(cond_fun, body_fun, init_val, captured) -> Any:
    """`while_loop` whose functions use cells from outside: they are carried."""
    goes_on, step = threaded(cond_fun, captured), threaded(body_fun, captured)
    return call_threaded(
        lambda contents: while_loop(
            lambda state: goes_on(*state)[1], lambda state: step(*state), (contents, init_val)
        ),
        captured,
    )


def _bounded(cond_fun: Callable, body_fun: Callable, init_val: Any, max_steps: Any) -> Any:
    """`while_loop` with a count of the steps, as one call that knows their bound."""
    try:
        bound = as_size(max_steps)
    except TypeError:
        raise source.located(
            TypeError, f"while_loop: max_steps must be a concrete integer, got {shown(max_steps)}"
        ) from None
    if not 0 <= bound < 2**31:
        raise source.located(ValueError, f"while_loop: max_steps must be in 0 … 2³¹ − 1, got {bound}")

    def goes_on(state):
        count, value = state
        return and_(lt(count, np.array(bound, np.int32)), cond_fun(value))

    def step(state):
        count, value = state
        return add(count, np.array(1, np.int32)), body_fun(value)

    goes_on.__name__, step.__name__ = name_of(cond_fun), name_of(body_fun)
    state = (np.int32(0), init_val)
    if config.disable_jit:
        return while_loop(goes_on, step, state)[1]
    leaves, tree = tree_flatten((state,))
    values = arrays_in(leaves, tree, "while_loop: init_val")
    closed, out_tree = stage_tree(
        lambda given: _staged(goes_on, step, given, counters=1)[1],
        tree,
        [x.aval for x in values],
        "while_loop",
    )
    results = bounded_loop_p.bind(*closed.consts, *values, jaxpr=hoist_constants(closed), max_steps=bound)
    return tree_unflatten(out_tree, results)


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Value], Value],
    init_val: Value,
    *,
    unroll: int | bool | None = None,
    max_steps: int | None = None,
) -> Value:
    """Repeats a function for i = lower, …, upper − 1.

    Args:
        lower: the first index.
        upper: one past the last. With concrete bounds the loop is a `scan`, whose reverse derivative is the fastest.
        body_fun: (i, value) -> value, of the same types.
        init_val: the initial value, an array or a tree of arrays.
        unroll: how many steps an iteration of the compiled loop does; needs concrete bounds.
        max_steps: a bound on the number of steps, with which any loop is differentiated in reverse in memory that grows
            with its root; see `while_loop`.

    Returns:
        The value after the last step.

    >>> import purax as px
    >>> px.lax.fori_loop(0, 5, lambda i, total: total + i, 0)
    Array(10, dtype=int32, weak_type=True)
    """
    if not callable(body_fun):
        raise TypeError(
            "lax.fori_loop: body_fun argument should be callable, got "
            f"{shown(body_fun)} of type {type(body_fun).__name__}"
        )
    bounds = [to_array(lower), to_array(upper)]
    for value, name in zip(bounds, ("lower", "upper"), strict=True):
        if value.aval.shape != () or not dtypes.is_integer(value.aval.dtype):
            raise source.located(
                TypeError, f"fori_loop: {name} must be an integer scalar, got {value.aval.str_short()}"
            )
    first, last = bounds[0].aval, bounds[1].aval
    if first.dtype != last.dtype and not (first.weak_type or last.weak_type):
        raise source.located(
            TypeError,
            f"fori_loop: lower is {first.str_short()} and upper {last.str_short()}; give both one dtype",
        )
    concrete = [_concrete(x) for x in bounds]
    start, stop = concrete
    if start is not None and stop is not None and max_steps is None:
        if config.disable_jit:
            carried = init_val
            for i in range(start, stop):
                carried = body_fun(to_array(i), carried)
            return carried
        return _counted_loop(start, max(stop - start, 0), body_fun, init_val, unroll)
    if unroll is not None and unroll not in (1, False):
        raise source.located(ValueError, "fori_loop: unroll needs concrete bounds, but they are traced")
    dtype, weak = dtypes.promote_pair(first.dtype, first.weak_type, last.dtype, last.weak_type)
    start, end = (convert_element_type(x, dtype, weak) for x in bounds)
    state = (start, end, init_val)

    def step(state):
        i, end, value = state
        return add(i, 1), end, body_fun(i, value)

    step.__name__ = name_of(body_fun)
    goes_on = lambda state: lt(state[0], state[1])  # noqa: E731
    if max_steps is None and not config.disable_jit:
        return _staged(goes_on, step, state, "fori_loop", counters=2)[2]
    return while_loop(goes_on, step, state, max_steps=max_steps)[2]


def _concrete(x: Any) -> int | None:
    value = x.concrete_or_none() if isinstance(x, Tracer) else x
    return None if value is None or (isinstance(value, Array) and isinstance(value, Tracer)) else int(value)


def _counted_loop(start: int, length: int, body_fun: Callable, init_val: Any, unroll: Any) -> Any:
    """A loop with a known number of steps, as a scan without inputs."""
    leaves, value_tree = tree_flatten(init_val)
    state_tree = tree_flatten((0, init_val))[1]
    _, tree = tree_flatten(((0, init_val), None))

    def step(body, state, _):
        i, value = state
        return (add(i, 1), body(i, value)), None

    carry = [to_array(start), *arrays_in(leaves, value_tree, "fori_loop: init_val")]
    try:
        body, carry, _ = stage_body(body_fun, tree, state_tree, carry, [], "fori_loop", step, counters=1)
    except cells.CapturedCells as used:
        run = threaded(body_fun, used.cells)
        return call_threaded(
            lambda contents: _counted_loop(
                start, length, lambda i, state: run(state[0], i, state[1]), (contents, init_val), unroll
            ),
            used.cells,
        )
    turns = max(length, 1) if unroll is True else max(int(unroll or 1), 1)
    results = scan_p.bind(
        *body.consts,
        *carry,
        jaxpr=known(hoist_constants(body)),
        num_consts=len(body.consts),
        num_carry=len(carry),
        length=length,
        reverse=False,
        unroll=turns,
    )
    return tree_unflatten(value_tree, results[1:])
