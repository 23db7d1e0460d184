"""`scan`: a loop with a known number of steps that carries a state and collects a result per step.

    scan(f, init, xs):  carry, ys[i] = f(carry, xs[i])  for i = 0 … length−1

Its body is one program, compiled once whatever the length; derivatives and batches of a scan are scans again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from purax.config import config
from purax.control_flow.bodies import arrays_in, as_type, leaf_paths, stage_tree, with_result_types
from purax.control_flow.branches import bind_branches
from purax.core import dtypes, source
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.dimensions import SymbolicDimension, as_size, exceeds
from purax.core.exact import exact_items
from purax.core.jaxpr import ClosedJaxpr, Literal, dependent_results, eval_jaxpr, inner_jaxprs
from purax.core.primitive import LinearOperand, Primitive
from purax.core.trace import current
from purax.errors import shown
from purax.execution import compiled_program
from purax.execution.host_program import host_program, host_values, quiet
from purax.execution.known_programs import known
from purax.interpreters.arguments import exact_array, name_of, require_function, to_array
from purax.interpreters.extended_dtypes import has_extended, run_physically
from purax.interpreters.jvp import jvp_jaxpr
from purax.interpreters.linearize import linearize_flat, linearize_jaxpr
from purax.interpreters.program_rules import uses_axis
from purax.interpreters.simplify import hoist_constants
from purax.interpreters.staging import stage
from purax.interpreters.transpose import transpose_flat, transpose_tape
from purax.interpreters.vmap import batch_jaxpr
from purax.lowering import jaxpr_to_stablehlo
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add
from purax.primitives.shape.broadcasting import batch_to_front, materialize, move_axis, zeros
from purax.primitives.shape.reshaping import reshape, stack
from purax.primitives.shape.slicing import slice_axis
from purax.references import cells
from purax.references.loop_carries import contents_of, put_contents, threaded
from purax.tree.registry import tree_flatten, tree_unflatten
from purax.xla.array import DeviceArray, PlacedArray

Carry = TypeVar("Carry")
Result = TypeVar("Result")

_int32, _int64 = np.dtype(np.int32), np.dtype(np.int64)
# An unrolled iteration has at most so many operations, which take XLA some seconds to compile.
_MOST_UNROLLED = 20_000
_COST_OF_ROWS = 20  # operations that take as long to compile as one row that is cut out or put in place
_INTERPRETED_STEPS = 400  # equations that an eager loop may run one by one before it is worth compiling


class Scan(Primitive):
    """Runs `jaxpr` `length` times. Its operands are constants, the initial carry, and arrays to step through.

    Params:
        jaxpr: (constants, carry, slices) -> (carry, results of a step), without captured constants.
        num_consts, num_carry: how the operands divide.
        length: the number of steps.
        reverse: whether to step from the end to the beginning.
        unroll: how many steps the compiled loop does per turn.
    """

    name = "scan"
    multiple_results = True
    runs_itself = True

    def repeats(self, *, length, **params):
        return length

    def infer(self, *avals, jaxpr, num_consts, num_carry, length, reverse, unroll):
        out = jaxpr.out_avals
        return [*out[:num_carry], *(a.with_axis(0, length) for a in out[num_carry:])]

    def run(self, *operands, jaxpr, num_consts, num_carry, length, reverse, unroll):
        params = dict(
            jaxpr=jaxpr,
            num_consts=num_consts,
            num_carry=num_carry,
            length=length,
            reverse=reverse,
            unroll=unroll,
        )
        largest = max((aval.size for aval in (*jaxpr.in_avals, *jaxpr.out_avals)), default=0)
        at_home = not any(type(x) is PlacedArray for x in operands)
        small = at_home and largest <= config.host_size_limit
        if current.interprets or (small and length * (len(jaxpr.eqns) + 2) <= _INTERPRETED_STEPS):
            if has_extended([*jaxpr.in_avals, *jaxpr.out_avals]):
                return run_physically(self, operands, params, self.infer(*map(aval_of, operands), **params))
            return interpret(operands, **params)
        return compiled_program.run(as_program(self, [aval_of(x) for x in operands], params), operands)

    def padded(self, at, avals, operands, *, jaxpr, num_consts, num_carry, length, reverse, unroll):
        consts, carry, slices = divide(operands, num_consts, num_carry)
        options = {"length": at.room(length), "reverse": reverse, "unroll": unroll}
        step = at.program(jaxpr, self.name)
        if not at.is_padded(length):
            return bind_scan(step, consts, carry, slices, **options)
        # Steps for which there is padding only change nothing: the program of a step sees no padding.
        out = [at.type_of(aval) for aval in jaxpr.out_avals]

        types, place = list(map(at.type_of, jaxpr.in_avals)), num_consts + num_carry

        def keep(*given):
            return [*given[num_consts:place], *(zeros(aval) for aval in out[num_carry:])]

        def masked(*given):
            operands = [*given[:place], *given[place + 1 :]]
            return bind_branches(
                convert_element_type(given[place], _int32), [stage(keep, types, self.name), step], operands
            )

        flags = at.inside(ShapedArray((length,), _int32), (0,))
        flag = ShapedArray((), aval_of(flags).dtype)
        body = stage(masked, [*types[:place], flag, *types[place:]], self.name)
        return bind_scan(body, consts, carry, [flags, *slices], **options)

    def lower(self, builder, *operands, jaxpr, num_consts, num_carry, length, reverse, unroll):
        return lower_scan(builder, operands, jaxpr, num_consts, num_carry, length, reverse, unroll)

    def jvp(self, primals, tangents, *, jaxpr, num_consts, num_carry, length, reverse, unroll):
        moving = [type(t) is not Zero for t in tangents]
        const, carry, slices = divide(moving, num_consts, num_carry)
        carry, out_moving = fixed_point(
            carry,
            lambda c: jvp_jaxpr(jaxpr, [*const, *c, *slices], [*c, *[False] * _results(jaxpr, num_carry)])[1],
        )
        step_moving = out_moving[num_carry:]
        derivative, _ = jvp_jaxpr(jaxpr, [*const, *carry, *slices], [*carry, *step_moving])
        # The derivative takes (c, k, x, ċ, k̇, ẋ) and gives (k, y, k̇, ẏ); a scan wants carry and its tangent together.
        n_consts, n_carry, n_slices = len(const), len(carry), len(slices)
        moved_c, moved_k, moved_x = sum(const), sum(carry), sum(slices)
        in_order = regroup([n_consts, n_carry, n_slices, moved_c, moved_k, moved_x], [0, 3, 1, 4, 2, 5])
        out_order = regroup([n_carry, len(step_moving), moved_k, sum(step_moving)], [0, 2, 1, 3])
        body = reorder(derivative, in_order, out_order)
        given = [
            materialize(t) if m else None for t, m in zip(tangents, [*const, *carry, *slices], strict=True)
        ]
        ct, kt, xt = divide(given, num_consts, num_carry)
        c, k, x = divide(primals, num_consts, num_carry)
        present = lambda ts: [t for t in ts if t is not None]  # noqa: E731
        results = bind_scan(
            body,
            [*c, *present(ct)],
            [*k, *present(kt)],
            [*x, *present(xt)],
            length=length,
            reverse=reverse,
            unroll=unroll,
        )
        k_out, kt_out, y, yt = split_list(results, [n_carry, moved_k, len(step_moving)])
        kt_out, yt = iter(kt_out), iter(yt)
        out = [*k_out, *y]
        flags = [*carry, *step_moving]
        rest = [next(kt_out) if m else None for m in carry] + [next(yt) if m else None for m in step_moving]
        return out, [t if m else Zero.like(v) for t, m, v in zip(rest, flags, out, strict=True)]

    def linearize(self, primals, tangents, *, jaxpr, num_consts, num_carry, length, reverse, unroll):
        moving = [type(t) is not Zero for t in tangents]
        const, carry, slices = divide(moving, num_consts, num_carry)
        step_results = _results(jaxpr, num_carry)
        carry, out_moving = fixed_point(
            carry, lambda c: linearize_jaxpr(jaxpr, [*const, *c, *slices], [*c, *[False] * step_results])[2]
        )
        step_moving = out_moving[num_carry:]
        flags = [*const, *carry, *slices]
        primal, linear, _, count = linearize_jaxpr(jaxpr, flags, [*carry, *step_moving])
        params = dict(length=length, reverse=reverse, unroll=unroll)
        c, k, x = divide(primals, num_consts, num_carry)
        # Residuals that are constants of the loop need not be collected step by step.
        constant_at = constant_residuals(primal, num_consts, num_carry + step_results, count)
        stacked = [i for i in range(count) if i not in constant_at]
        kept = list(range(num_carry + step_results)) + [num_carry + step_results + i for i in stacked]
        results = bind_scan(reorder(primal, None, kept), c, k, x, **params)
        out, residuals = results[: num_carry + step_results], results[num_carry + step_results :]
        # The linear scan: constants (fixed residuals, ċ), carry k̇, slices (stacked residuals, ẋ).
        moved_c, moved_k, moved_x = sum(const), sum(carry), sum(slices)
        fixed = sorted(constant_at)
        first = count
        order = [
            *fixed,
            *range(first, first + moved_c),
            *range(first + moved_c, first + moved_c + moved_k),
            *stacked,
            *range(first + moved_c + moved_k, first + moved_c + moved_k + moved_x),
        ]
        body = reorder(linear, order, None)
        body.derived["linear in its carry"] = True
        given = [materialize(t) if m else None for t, m in zip(tangents, flags, strict=True)]
        ct, kt, xt = divide(given, num_consts, num_carry)
        present = lambda ts: [t for t in ts if t is not None]  # noqa: E731
        fixed_values = [c[constant_at[i]] if type(constant_at[i]) is int else constant_at[i] for i in fixed]
        results = bind_scan(
            body, [*fixed_values, *present(ct)], present(kt), [*residuals, *present(xt)], **params
        )
        kt_out, yt = iter(results[:moved_k]), iter(results[moved_k:])
        rest = [next(kt_out) if m else None for m in carry] + [next(yt) if m else None for m in step_moving]
        return out, [
            t if m else Zero.like(v) for t, m, v in zip(rest, [*carry, *step_moving], out, strict=True)
        ]

    def transpose(self, cotangents, *operands, jaxpr, num_consts, num_carry, **params):
        carry = operands[num_consts : num_consts + num_carry]
        params = dict(jaxpr=jaxpr, num_consts=num_consts, num_carry=num_carry, **params)
        if "linear in its carry" in jaxpr.derived or all(type(x) is LinearOperand for x in carry):
            return transpose_scan(cotangents, operands, **params)
        # A carry that is not linear, such as a counter, must be computed forwards: f(x) = f'(0) x for the linear rest.
        fixed = [x for x in operands if type(x) is not LinearOperand]
        zero = [zeros(x.aval) for x in operands if type(x) is LinearOperand]

        def run(*xs):
            rest, given = iter(fixed), iter(xs)
            return self.bind(
                *(next(given) if type(x) is LinearOperand else next(rest) for x in operands), **params
            )

        _, tape = linearize_flat(run, zero)
        results = iter(transpose_tape(tape, cotangents))
        return [next(results) if type(x) is LinearOperand else None for x in operands]

    def batch(self, operands, batch_axes, **params):
        return self._batch(operands, batch_axes, None, None, **params)

    def names_axis(self, axis_name, *, jaxpr, **params):
        return uses_axis(jaxpr, axis_name)

    def batch_collective(self, size, axis_name, operands, batch_axes, **params):
        return self._batch(operands, batch_axes, size, axis_name, **params)

    def _batch(self, operands, batch_axes, size, axis_name, *, jaxpr, num_consts, num_carry, **params):
        if size is None:
            size = next(
                aval_of(x).shape[a] for x, a in zip(operands, batch_axes, strict=True) if a is not None
            )
        const, carry, slices = divide([axis is not None for axis in batch_axes], num_consts, num_carry)
        step_results = [False] * _results(jaxpr, num_carry)
        carry, out_batched = fixed_point(
            carry,
            lambda c: batch_jaxpr(jaxpr, [*const, *c, *slices], size, axis_name, [*c, *step_results])[1],
        )
        vectorized, _ = batch_jaxpr(jaxpr, [*const, *carry, *slices], size, axis_name, out_batched)
        c, k, x = divide(operands, num_consts, num_carry)
        c_axes, k_axes, x_axes = divide(batch_axes, num_consts, num_carry)
        c = [v if a is None else move_axis(v, a, 0) for v, a in zip(c, c_axes, strict=True)]
        k = [batch_to_front(v, a, size) if b else v for v, a, b in zip(k, k_axes, carry, strict=True)]
        # Axis 0 of what is stepped through is the step; the batch comes behind it.
        x = [v if a is None else move_axis(v, a, 1) for v, a in zip(x, x_axes, strict=True)]
        results = bind_scan(vectorized, c, k, x, **params)
        axes = [0 if b else None for b in out_batched[:num_carry]] + [
            1 if b else None for b in out_batched[num_carry:]
        ]
        return results, axes

    def depends(self, flags, *, jaxpr, num_consts, num_carry, **params):
        const, carry, slices = divide(flags, num_consts, num_carry)
        carry, out = fixed_point(carry, lambda c: dependent_results(jaxpr.jaxpr, [*const, *c, *slices]))
        return [*carry, *out[num_carry:]]

    def effects(self, *, jaxpr, **params):
        return jaxpr.effects

    def thread(self, threader, state, operands, *, jaxpr, num_consts, num_carry, **params):
        # (values, constants, carry, slices) becomes (constants, values, carry, slices): the values are carried.
        consts, carry, slices = divide(operands, num_consts, num_carry)
        count = len(state)
        places = regroup([count, len(consts), len(carry) + len(slices)], [1, 0, 2])
        body = reorder(threader.program(jaxpr), places, None)
        results = bind_scan(body, consts, [*state, *carry], slices, **params)
        return results[:count], results[count:]


scan_p = Scan()


def bind_scan(body: ClosedJaxpr, consts, carry, slices, *, length, reverse, unroll) -> list[Any]:
    """Binds `scan` on a body that may have captured constants: they become constants of the loop."""
    return scan_p.bind(
        *body.consts,
        *consts,
        *carry,
        *slices,
        jaxpr=hoist_constants(body),
        num_consts=len(body.consts) + len(consts),
        num_carry=len(carry),
        length=length,
        reverse=reverse,
        unroll=unroll,
    )


def _results(jaxpr: ClosedJaxpr, num_carry: int) -> int:
    return len(jaxpr.out_avals) - num_carry


def divide(values: Sequence[Any], num_consts: int, num_carry: int) -> tuple[list, list, list]:
    """Operands of a scan: constants, carry, slices."""
    start = num_consts + num_carry
    return list(values[:num_consts]), list(values[num_consts:start]), list(values[start:])


def split_list(values: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """`values` cut into pieces of the given sizes, and the rest."""
    pieces, start = [], 0
    for n in sizes:
        pieces.append(list(values[start : start + n]))
        start += n
    return [*pieces, list(values[start:])]


def regroup(sizes: Sequence[int], order: Sequence[int]) -> list[int]:
    """Positions of elements after consecutive groups of `sizes` are put in a new order."""
    starts = np.cumsum([0, *sizes])
    return [int(i) for group in order for i in range(starts[group], starts[group + 1])]


def reorder(
    closed: ClosedJaxpr, in_order: Sequence[int] | None, out_order: Sequence[int] | None
) -> ClosedJaxpr:
    """The program with its arguments, and some or all of its results, in another order."""
    key = ("reorder", *(None if order is None else tuple(order) for order in (in_order, out_order)))
    if key not in closed.derived:
        jaxpr = closed.jaxpr
        invars = jaxpr.invars if in_order is None else [jaxpr.invars[i] for i in in_order]
        outvars = jaxpr.outvars if out_order is None else [jaxpr.outvars[i] for i in out_order]
        closed.derived[key] = ClosedJaxpr(jaxpr.replace(invars=invars, outvars=outvars), closed.consts)
    return closed.derived[key]


def fixed_point(
    carry: list[bool], results_of: Callable[[list[bool]], list[bool]]
) -> tuple[list[bool], list[bool]]:
    """The least set of carried values that contains `carry` and is kept by a step; and the flags of all results."""
    while True:
        out = results_of(carry)
        grown = [a or b for a, b in zip(carry, out[: len(carry)], strict=True)]
        if grown == carry:
            return carry, out
        carry = grown


def constant_residuals(primal: ClosedJaxpr, num_consts: int, first: int, count: int) -> dict[int, Any]:
    """Residuals that are the same in every step: for each its position among the constants, or its literal value."""
    position = {v: i for i, v in enumerate(primal.jaxpr.invars[:num_consts])}
    position.update(zip(primal.jaxpr.constvars, primal.consts, strict=True))
    found: dict[int, Any] = {}
    for i in range(count):
        v = primal.jaxpr.outvars[first + i]
        if type(v) is Literal:
            found[i] = v.val if hasattr(v.val, "dtype") else np.asarray(v.val, v.aval.dtype)
        elif v in position:
            found[i] = position[v]
    return found


def interpret(operands, *, jaxpr, num_consts, num_carry, length, reverse, unroll) -> list[Any]:
    """Runs a short loop step by step."""
    consts, carry, slices = divide(operands, num_consts, num_carry)
    avals = jaxpr.out_avals
    stacked = [np.empty((length, *aval.shape), aval.dtype) for aval in avals[num_carry:]]
    steps = reversed(range(length)) if reverse else range(length)
    values, run = host_values(operands), host_program(jaxpr)
    if values is not None and run is not None:
        carry = quiet.run(_interpret_on_host, run, divide(values, num_consts, num_carry), steps, stacked)
    else:
        hosts = [np.asarray(x) for x in slices]
        for step in steps:
            results = eval_jaxpr(jaxpr.jaxpr, (), *consts, *carry, *[h[step, ...] for h in hosts])
            carry = results[:num_carry]
            for out, y in zip(stacked, results[num_carry:], strict=True):
                out[step] = np.asarray(y)
    return [
        *(as_array(c, a) for c, a in zip(carry, avals, strict=False)),
        *(DeviceArray(a.with_shape(y.shape), y) for y, a in zip(stacked, avals[num_carry:], strict=True)),
    ]


def _interpret_on_host(run, operands, steps, stacked) -> list[np.ndarray]:
    """Runs the steps of a loop with NumPy; fills in the stacked results and returns the last carry."""
    consts, carry, slices = operands
    count = len(carry)
    for step in steps:
        results = run(*consts, *carry, *[x[step, ...] for x in slices])
        carry = results[:count]
        for out, y in zip(stacked, results[count:], strict=True):
            out[step] = y
    return carry


def as_array(x: Any, aval: ShapedArray) -> Any:
    x = exact_array(x, aval)
    return x if x.aval is aval else convert_element_type(x, aval.dtype, aval.weak_type)


def as_program(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> ClosedJaxpr:
    """The program that applies one primitive; remembered with the body in its parameters."""
    body = params.get("jaxpr") or params["body_jaxpr"]
    key = (
        "as program",
        tuple(avals),
        tuple(exact_items({k: v for k, v in params.items() if not isinstance(v, ClosedJaxpr)})),
    )
    if key not in body.derived:
        body.derived[key] = stage(lambda *xs: primitive.bind(*xs, **params), avals, primitive.name)
    return body.derived[key]


def steps_per_turn(body: ClosedJaxpr, length: int, unroll: int) -> int:
    """How many steps one iteration of the compiled loop does: as many as asked for, if that is a program to compile."""
    if unroll <= 1 or isinstance(length, SymbolicDimension) or length <= 1:
        return 1
    ends = len(body.in_avals) + len(body.out_avals)
    return min(unroll, length, max(_MOST_UNROLLED // (_operations(body) + _COST_OF_ROWS * ends), 1))


def _operations(closed: ClosedJaxpr) -> int:
    """The number of operations that a program is lowered to."""
    key = "operations"
    if key not in closed.derived:
        count = 0
        for equation in closed.jaxpr.eqns:
            params = equation.params
            inside = sum(map(_operations, inner_jaxprs(params)))
            if equation.primitive is scan_p:
                inside *= steps_per_turn(params["jaxpr"], params["length"], params["unroll"])
            count += 1 + inside
        closed.derived[key] = count
    return closed.derived[key]


def lower_scan(builder, operands, jaxpr, num_consts, num_carry, length, reverse, unroll):
    """A scan as a StableHLO loop over (turn, carry, results); the steps that fill no turn come after it."""
    consts, carry, slices = divide(operands, num_consts, num_carry)
    out_avals = jaxpr.out_avals
    counter = ShapedArray((), _int64 if exceeds(length, np.iinfo(_int32).max) else _int32)
    stacked = [a.with_shape((length, *a.shape)) for a in out_avals[num_carry:]]
    if length == 0:
        return [*carry, *(builder.constant(0, aval) for aval in stacked)]
    start = [builder.constant(0, counter), *carry, *(builder.constant(0, aval) for aval in stacked)]
    types = [x.aval for x in start]
    per_turn = steps_per_turn(jaxpr, length, unroll)
    turns, rest = divmod(length, per_turn)

    def condition(inner, turn, *state):
        return [inner.compare("LT", turn, inner.constant(turns, counter))]

    def advance(inner, first, count, state):
        """The carry and the results after `count` steps, the first of which is number `first`."""
        if reverse:
            first = inner.op("subtract", (inner.constant(length - count, counter), first), counter)
        blocks = [_take(inner, x, first, count) for x in slices]
        carried, collected = state[:num_carry], []
        for offset in reversed(range(count)) if reverse else range(count):
            step_slices = [_row(inner, block, offset) for block in blocks]
            results = jaxpr_to_stablehlo.lower_body(inner, jaxpr.jaxpr, [*consts, *carried, *step_slices])
            carried = [
                inner.convert(y, t.dtype) for y, t in zip(results[:num_carry], types[1:], strict=False)
            ]
            collected.append(results[num_carry:])
        rows = zip(*(reversed(collected) if reverse else collected), strict=True)
        return [*carried, *(_put(inner, x, ys, first) for x, ys in zip(state[num_carry:], rows, strict=True))]

    def body(inner, turn, *state):
        first = turn
        if per_turn > 1:
            first = inner.op("multiply", (turn, inner.constant(per_turn, counter)), counter)
        state = advance(inner, first, per_turn, state)
        return [inner.op("add", (turn, inner.constant(1, counter)), counter), *state]

    regions = [builder.region(types, condition), builder.region(types, body)]
    _, *state = builder.op("while", start, types, regions=regions)
    return advance(builder, builder.constant(length - rest, counter), rest, state) if rest else state


def _take(builder, x, start, count):
    """x[start : start + count]"""
    zero = builder.constant(0, start.aval)
    return builder.window(x, (start, *[zero] * (x.ndim - 1)), (count, *x.shape[1:]))


def _row(builder, block, i):
    """block[i]"""
    if block.shape[0] > 1:
        shape = block.shape
        block = builder.cut(block, (i, *[0] * (len(shape) - 1)), (i + 1, *shape[1:]), [1] * len(shape))
    return builder.reshape(block, block.shape[1:])


def _put(builder, x, values, start):
    """x with x[start + i] = values[i]"""
    zero = builder.constant(0, start.aval)
    rows = [builder.reshape(value, (1, *value.shape)) for value in values]
    block = rows[0]
    if len(rows) > 1:
        aval = x.aval.with_shape((len(rows), *x.shape[1:]))
        block = builder.op("concatenate", rows, aval, "dimension = 0 : i64")
    return builder.op("dynamic_update_slice", (x, block, start, *[zero] * (x.ndim - 1)), x.aval)


def transpose_scan(cotangents, operands, jaxpr, num_consts, num_carry, length, reverse, unroll):
    """Steps backwards: a carry of cotangents (of the linear constants and the carry), slices in reverse order.

    The linear scan has constants (fixed, ċ), carry k̇ and slices (residuals, ẋ), in this order; its transpose carries
    (c̄, k̄), takes (residuals, ȳ) and collects x̄.
    """
    consts, carry, slices = divide(operands, num_consts, num_carry)
    is_linear = lambda x: type(x) is LinearOperand  # noqa: E731
    fixed = [x for x in consts if not is_linear(x)]
    linear_consts = [x for x in consts if is_linear(x)]
    residuals = [x for x in slices if not is_linear(x)]
    out_avals = jaxpr.out_avals
    carry_cotangents = [zeros(c.aval) if type(c) is Zero else c for c in cotangents[:num_carry]]
    given = [type(c) is not Zero for c in cotangents[num_carry:]]
    step_cotangents = [c for c in cotangents[num_carry:] if type(c) is not Zero]
    # A carry that starts from explicit zeros is linear too: it collects what the steps add to it.
    linear_flags = [*map(is_linear, consts), *[True] * num_carry, *map(is_linear, slices)]
    in_avals = jaxpr.in_avals
    n_fixed, n_linear_consts, n_residuals = len(fixed), len(linear_consts), len(residuals)

    def step(*args):
        fixed_in, sums, carried, rest, ys = split_list(
            args, [n_fixed, n_linear_consts, num_carry, n_residuals]
        )
        known = iter([*fixed_in, *rest])
        inner = [
            LinearOperand(aval) if flag else next(known)
            for aval, flag in zip(in_avals, linear_flags, strict=True)
        ]
        y = iter(ys)
        outs = [
            *carried,
            *(next(y) if g else Zero(a) for g, a in zip(given, out_avals[num_carry:], strict=True)),
        ]
        results = [c for c in transpose_flat(jaxpr, inner, outs) if c is not None]
        c_bar, k_bar, x_bar = split_list(results, [n_linear_consts, num_carry])
        totals = [s if type(c) is Zero else add(s, c) for s, c in zip(sums, c_bar, strict=True)]
        return [*totals, *map(materialize, k_bar), *map(materialize, x_bar)]

    step_avals = [
        *(aval_of(x) for x in fixed),
        *(x.aval for x in linear_consts),
        *(aval_of(x) for x in carry),
        *(a.without_axis(0) for a in map(aval_of, residuals)),
        *(a for a, g in zip(out_avals[num_carry:], given, strict=True) if g),
    ]
    key = ("transpose scan", tuple(linear_flags), num_consts, num_carry, tuple(given))
    if key not in jaxpr.derived:
        jaxpr.derived[key] = stage(step, step_avals, f"transpose_{jaxpr.jaxpr.name}")
    body = jaxpr.derived[key]
    results = bind_scan(
        body,
        fixed,
        [*(zeros(x.aval) for x in linear_consts), *carry_cotangents],
        [*residuals, *step_cotangents],
        length=length,
        reverse=not reverse,
        unroll=unroll,
    )
    c_bar, k_bar, x_bar = split_list(results, [n_linear_consts, num_carry])
    c_bar, k_bar, x_bar = iter(c_bar), iter(k_bar), iter(x_bar)
    return [
        *(next(c_bar) if is_linear(x) else None for x in consts),
        *(k if is_linear(x) else None for x, k in zip(carry, k_bar, strict=True)),
        *(next(x_bar) if is_linear(x) else None for x in slices),
    ]


def scan(
    f: Callable[[Carry, Any], tuple[Carry, Result]],
    init: Carry,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    _split_transpose: bool = False,
) -> tuple[Carry, Result]:
    """A loop that carries a state and collects a result per step.

    Args:
        f: (carry, x) -> (carry, y); the new carry has the type of the old one.
        init: the initial carry.
        xs: arrays, or a tree of them, whose first axis is stepped through; None for steps without input.
        length: the number of steps, needed if `xs` is None.
        reverse: whether to step from the end to the beginning; ys[i] belongs to xs[i] either way.
        unroll: how many steps an iteration of the compiled loop does, at most; True for all, if these can be compiled.

    Returns:
        The final carry, and the results of all steps, stacked.

    >>> import purax as px, purax.numpy as jnp
    >>> px.lax.scan(lambda total, x: (total + x, total), 0, jnp.arange(4))
    (Array(6, dtype=int32), Array([0, 0, 1, 3], dtype=int32, weak_type=True))
    """
    require_function(f, "scan")
    xs_leaves, xs_tree = tree_flatten(xs)
    if cells.has_cells(xs_leaves):
        return _scan_over_cells(f, init, xs_leaves, xs_tree, length, reverse, unroll)
    slices = arrays_in(xs_leaves, xs_tree, "scan: xs")
    length = _length(slices, xs_tree, length)
    if not isinstance(unroll, (int, np.integer)) or int(unroll) < 0:
        raise ValueError(f"scan: `unroll` must be a `bool` or a non-negative `int`, got {shown(unroll)}")
    turns = max(length, 1) if unroll is True else max(int(unroll), 1)
    if config.disable_jit:
        return _python_scan(f, init, slices, xs_tree, length, reverse)
    init_leaves, init_tree = tree_flatten(init)
    carry = arrays_in(init_leaves, init_tree, "scan: init")
    slice_avals = [x.aval.without_axis(0) for x in slices]
    _, tree = tree_flatten((init, xs))
    try:
        body, carry, y_tree = stage_body(f, tree, init_tree, carry, slice_avals, "scan")
    except cells.CapturedCells as captured:
        return _scan_with_cells(f, init, xs, captured.cells, length, reverse, unroll)
    program = known(hoist_constants(body))
    results = bind_scan(
        program, body.consts, carry, slices, length=length, reverse=bool(reverse), unroll=turns
    )
    return tree_unflatten(init_tree, results[: len(carry)]), tree_unflatten(y_tree, results[len(carry) :])


def _scan_with_cells(f, init, xs, captured, length, reverse, unroll) -> tuple[Any, Any]:
    """`scan` of a function that uses cells from outside: they are carried."""
    run = threaded(f, captured)

    def step(carry, x):
        contents, (new, y) = run(carry[0], carry[1], x)
        return (contents, new), y

    step.__name__ = name_of(f)
    (contents, carry), ys = scan(step, (contents_of(captured), init), xs, length, reverse, unroll)
    put_contents(captured, contents)
    return carry, ys


def _scan_over_cells(f, init, xs_leaves, xs_tree, length, reverse, unroll) -> tuple[Any, Any]:
    """`scan` over the contents of cells among `xs`: each step works on its part of them."""
    opened = cells.Opened(xs_leaves, name_of(f))

    def step(carry, arrays):
        leaves, own = cells.close(opened.layout, arrays)
        new, y = f(carry, tree_unflatten(xs_tree, leaves))
        return new, (y, contents_of(own))

    step.__name__ = name_of(f)
    carry, (ys, contents) = scan(step, init, opened.arrays, length, reverse, unroll)
    put_contents(opened.cells, contents)
    return carry, ys


def _length(slices: Sequence[Any], tree: Any, length: Any) -> int:
    """The number of steps, which all arrays and the `length` argument must agree on."""
    if length is None and len({x.aval.shape[:1] for x in slices}) == 1 and slices[0].aval.shape:
        return slices[0].aval.shape[0]
    paths = leaf_paths(tree)
    if length is not None:
        try:
            length = as_size(length)
        except TypeError:
            raise source.located(
                TypeError, f"scan: length must be a concrete integer, got {shown(length)}"
            ) from None
        if length < 0:
            raise source.located(ValueError, f"scan: length must not be negative, got {length}")
    for x, path in zip(slices, paths, strict=True):
        if x.aval.ndim == 0:
            raise source.located(
                ValueError,
                f"scan got value with no leading axis to scan over: xs{path} is a scalar, {x.aval.str_short()}",
            )
    sizes = {x.aval.shape[0] for x in slices} | ({length} if length is not None else set())
    if len(sizes) > 1:
        lines = "".join(f"\n  xs{p} has shape {x.aval.shape}" for x, p in zip(slices, paths, strict=True))
        given = f"\n  length is {length}" if length is not None else ""
        leading = [x.aval.shape[0] for x in slices]
        fault = f"got values with different leading axis sizes: {', '.join(map(str, leading))}"
        if len(set(leading)) == 1:
            fault = f"got `length` argument of {length} which disagrees with leading axis sizes {leading}"
        raise source.located(ValueError, f"scan {fault}:{lines}{given}")
    if not sizes:
        raise source.located(ValueError, "scan got no values to scan over and `length` not provided.")
    return sizes.pop()


def stage_body(
    f: Callable,
    tree: Any,
    carry_tree: Any,
    carry: list[Any],
    slice_avals: Sequence[ShapedArray],
    what: str,
    step: Callable | None = None,
    counters: int = 0,
) -> tuple[ClosedJaxpr, list[Any], Any]:
    """The body of a loop as a program, the initial carry in the types that a step keeps, and the structure of a step's
    results.

    The body is `f`, or `step(f, carry, x)`. A carry that starts as a Python number takes the dtype that the first step
    gives it, and one that is the same on all devices of a mesh may begin to differ. If the carry is a tuple of some
    `counters` and what the user carries, messages tell of the latter.
    """
    seen = lambda tree: tree.children()[counters] if counters else tree  # noqa: E731
    while True:
        carry_avals = [x.aval for x in carry]
        closed, out_tree = stage_tree(f, tree, [*carry_avals, *slice_avals], f"{what}: f", step)
        new_carry_tree, y_tree = _divide_results(f, out_tree, what)
        if new_carry_tree != carry_tree:
            raise source.located(
                TypeError,
                f"{what} body function carry input and carry output must have the same pytree structure, but they "
                f"differ: the carry that `{name_of(f)}` returns has not that of the initial carry.\n"
                f"  initial: {seen(carry_tree)}\n  returned: {seen(new_carry_tree)}",
            )
        new_avals = closed.out_avals[: len(carry)]
        widened = [_carry_type(old, new) for old, new in zip(carry_avals, new_avals, strict=True)]
        pairs = zip(widened, carry_avals, strict=True)
        if all([w is x or (w.dtype == x.dtype and w.vma == x.vma) for w, x in pairs]):
            break
        carry = [as_type(x, w) for x, w in zip(carry, widened, strict=True)]
    if not all([_keeps_type(old, new) for old, new in zip(carry_avals, new_avals, strict=True)]):
        paths = [""] * counters + leaf_paths(seen(carry_tree))
        problems = [
            f"\n  carry{path} is {old.str_short()} at the beginning of a step and {new.str_short()} at its end"
            for path, old, new in zip(paths, carry_avals, new_avals, strict=True)
            if not _keeps_type(old, new)
        ]
        raise source.located(
            TypeError,
            f"{what} body function carry input and carry output must have equal types, but they differ in "
            f"`{name_of(f)}`:{''.join(problems)}\n"
            "  Convert with `.astype`, or start with a value of the final type.",
        )
    # A result is as weak as the last step makes it.
    results = [
        new if w.dtype == new.dtype and w.vma == new.vma else w
        for w, new in zip(widened, new_avals, strict=True)
    ]
    return with_result_types(closed, [*results, *closed.out_avals[len(carry) :]]), carry, y_tree


def _divide_results(f, out_tree, what: str):
    children = out_tree.children()
    if out_tree.node_data() is None or out_tree.node_data()[0] is not tuple or len(children) != 2:
        raise source.located(
            TypeError,
            f"{what} body output must be a pair (carry, y), but `{name_of(f)}` returned a structure {out_tree}",
        )
    return children


def _carry_type(old: ShapedArray, new: ShapedArray) -> ShapedArray:
    """The type a carried value should start with, given what a step makes of it."""
    if old is not new and old.weak_type and old.shape == new.shape:
        dtype, _ = dtypes.promote_pair(old.dtype, True, new.dtype, new.weak_type)
        return old if dtype == old.dtype else ShapedArray(old.shape, dtype)
    return old


def _keeps_type(old: ShapedArray, new: ShapedArray) -> bool:
    """Whether what a step returns is of the type that it was given, or a Python number that this type can hold."""
    if old is new:
        return True
    if old.shape != new.shape:
        return False
    if old.dtype == new.dtype:
        return True
    return new.weak_type and dtypes.promote_pair(old.dtype, old.weak_type, new.dtype, True)[0] == old.dtype


def _python_scan(f, init, slices, tree, length, reverse):
    """`scan` as a Python loop, for `disable_jit`."""
    carry, ys = init, []
    y_tree = None
    for i in reversed(range(length)) if reverse else range(length):
        x = tree_unflatten(tree, [reshape(slice_axis(s, i, i + 1, 0), s.aval.shape[1:]) for s in slices])
        carry, y = f(carry, x)
        leaves, y_tree = tree_flatten(y)
        ys.append([to_array(leaf) for leaf in leaves])
    if not ys:
        raise ValueError(
            "a scan of length 0 does not work with disable_jit: the type of its results is unknown"
        )
    if reverse:
        ys.reverse()
    return carry, tree_unflatten(y_tree, [stack(list(column), 0) for column in zip(*ys, strict=True)])
