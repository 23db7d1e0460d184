"""`cond` and `switch`: run one of several programs, chosen by a value.

All branches take the same operands and give results of the same types. With a concrete index only the chosen branch
runs; a batched index runs the branches that some element takes, and selects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from types import MethodType
from typing import Any

import numpy as np

from purax.config import config
from purax.control_flow.bodies import arrays_in, leaf_paths, stage_tree, with_result_types
from purax.core import dtypes, source
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.jaxpr import ClosedJaxpr, Var, dependent_results, eval_jaxpr
from purax.core.limits import finite
from purax.core.primitive import LinearOperand, Primitive, has_programs
from purax.errors import shown
from purax.interpreters.arguments import exact_array, name_of, to_array
from purax.interpreters.jvp import jvp_jaxpr
from purax.interpreters.linearize import linearize_jaxpr
from purax.interpreters.program_rules import by_operand, uses_axis, with_tangents
from purax.interpreters.staging import stage
from purax.interpreters.transpose import transpose_jaxpr
from purax.interpreters.vmap import batch_jaxpr
from purax.lowering import jaxpr_to_stablehlo
from purax.lowering.guarded_effects import guarded
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.logic import clamp, eq, ne, select_n
from purax.primitives.reductions.reduction import argmax, reduce_or
from purax.primitives.shape.broadcasting import broadcast_in_dim, full, move_axis, zeros
from purax.primitives.shape.dynamic_slicing import dynamic_slice
from purax.primitives.stop_gradient import stop_gradient
from purax.references import cells
from purax.references.loop_carries import call_threaded, threaded, without_cells
from purax.tree.registry import tree_flatten, tree_unflatten

_int32 = np.dtype(np.int32)
_MANY = 64  # operations for each element of the results, from which on a branch is costly


class Cond(Primitive):
    """Runs `branches[index]` on the operands after the index, an int32 scalar within range."""

    name = "cond"
    multiple_results = True
    runs_itself = True

    def infer(self, index, *avals, branches):
        if index.shape != () or index.dtype != _int32:
            raise TypeError(f"cond needs an int32 scalar as index, got {index.str_short()}")
        return branches[0].out_avals

    def infer_varying(self, avals, params, result):
        outs = zip(*(branch.out_avals for branch in params["branches"]), strict=True)
        return [
            aval.with_vma(avals[0].vma.union(*(out.vma for out in each)))
            for aval, each in zip(result, outs, strict=True)
        ]

    def run(self, index, *operands, branches):
        chosen = branches[int(index)]
        results = eval_jaxpr(chosen.jaxpr, chosen.consts, *operands)
        arrays = [exact_array(y, aval) for y, aval in zip(results, chosen.out_avals, strict=True)]
        return [
            y if chosen is branches[0] else _as_weak(y, aval)
            for y, aval in zip(arrays, branches[0].out_avals, strict=True)
        ]

    def padded(self, at, avals, operands, *, branches):
        index, *given = operands
        staged = [at.program(branch, f"{self.name}_branch") for branch in branches]
        return bind_branches(index, staged, given)

    def lower(self, builder, index, *operands, branches):
        known = getattr(
            index, "known", None
        )  # by the platform, which only the chosen branch need be written for
        if known is not None:
            return jaxpr_to_stablehlo.lower_body(builder, branches[known].jaxpr, operands)
        regions = [
            builder.region(
                (), lambda inner, b=branch: jaxpr_to_stablehlo.lower_body(inner, b.jaxpr, operands)
            )
            for branch in branches
        ]
        return builder.op("case", (index,), branches[0].out_avals, regions=regions)

    def jvp(self, primals, tangents, *, branches):
        index, *operands = primals
        moving = [type(t) is not Zero for t in tangents[1:]]
        out_moving = union([jvp_jaxpr(branch, moving)[1] for branch in branches])
        derivatives = [jvp_jaxpr(branch, moving, out_moving)[0] for branch in branches]
        results = bind_branches(
            index, derivatives, [*operands, *(t for t in tangents[1:] if type(t) is not Zero)]
        )
        return with_tangents(results[: len(out_moving)], results[len(out_moving) :], out_moving)

    def linearize(self, primals, tangents, *, branches):
        index, *operands = primals
        moving = [type(t) is not Zero for t in tangents[1:]]
        out_moving = union([linearize_jaxpr(branch, moving)[2] for branch in branches])
        if not any(out_moving):
            out = self.bind(*primals, branches=branches)
            return out, [Zero.like(y) for y in out]
        parts = [linearize_jaxpr(branch, moving, out_moving) for branch in branches]
        primal_branches, linear_branches = share_residuals(parts, len(out_moving))
        results = bind_branches(index, primal_branches, operands)
        out, residuals = results[: len(out_moving)], results[len(out_moving) :]
        given = [t for t in tangents[1:] if type(t) is not Zero]
        return with_tangents(out, bind_branches(index, linear_branches, [*residuals, *given]), out_moving)

    def transpose(self, cotangents, index, *operands, branches):
        linear = [type(x) is LinearOperand for x in operands]
        given = [type(c) is not Zero for c in cotangents]
        flowing = union([transpose_jaxpr(branch, linear, given)[1] for branch in branches])
        transposed = [transpose_jaxpr(branch, linear, given, flowing)[0] for branch in branches]
        fixed = [x for x in operands if type(x) is not LinearOperand]
        cotangents = [c for c in cotangents if type(c) is not Zero]
        return [None, *by_operand(operands, flowing, bind_branches(index, transposed, [*fixed, *cotangents]))]

    def batch(self, operands, batch_axes, *, branches):
        return self._batch(operands, batch_axes, branches, None, None)

    def names_axis(self, axis_name, *, branches):
        return any(uses_axis(branch, axis_name) for branch in branches)

    def batch_collective(self, size, axis_name, operands, batch_axes, *, branches):
        return self._batch(operands, batch_axes, branches, size, axis_name)

    def _batch(self, operands, batch_axes, branches, size, axis_name):
        index, *rest = operands
        index_axis, *axes = batch_axes
        moved = [x if axis is None else move_axis(x, axis, 0) for x, axis in zip(rest, axes, strict=True)]
        batched = [axis is not None for axis in axes]
        if size is None:
            size = next(
                aval_of(x).shape[a] for x, a in zip(operands, batch_axes, strict=True) if a is not None
            )
        if index_axis is None:
            out_batched = union([batch_jaxpr(branch, batched, size, axis_name)[1] for branch in branches])
            vectorized = [
                batch_jaxpr(branch, batched, size, axis_name, out_batched)[0] for branch in branches
            ]
            return bind_branches(index, vectorized, moved), [0 if b else None for b in out_batched]
        everything = [True] * len(branches[0].out_avals)
        per_branch = []
        for i, branch in enumerate(branches):
            is_taken = eq(index, np.array(i, np.int32))
            mixes = axis_name is not None and uses_axis(
                branch, axis_name
            )  # all elements take part in its results
            given, flags = moved if mixes else apart_from_others(branch, is_taken, moved, batched), batched
            if branch.effects:
                branch = guarded(branch)
                given, flags = [is_taken, *given], [True, *batched]
            vectorized, _ = batch_jaxpr(branch, flags, size, axis_name, everything)
            per_branch.append(run_if_taken(i, index, vectorized, given))
        which = convert_element_type(index, np.dtype(np.bool_)) if len(branches) == 2 else index
        results: list[Any] = []
        result_axes: list[int | None] = []
        for cases, passed in zip(zip(*per_branch, strict=True), passed_operands(branches), strict=True):
            if passed is not None:
                results.append(moved[passed])
                result_axes.append(0 if batched[passed] else None)
            else:
                shape = aval_of(cases[0]).shape
                results.append(select_n(broadcast_in_dim(which, shape, (0,)), *cases))
                result_axes.append(0)
        return results, result_axes

    def depends(self, flags, *, branches):
        return (
            None if flags[0] else union([dependent_results(branch.jaxpr, flags[1:]) for branch in branches])
        )

    def effects(self, *, branches):
        return frozenset().union(*(branch.effects for branch in branches))

    def thread(self, threader, state, operands, *, branches):
        index, *rest = operands
        results = bind_branches(index, [threader.program(branch) for branch in branches], [*state, *rest])
        return results[: len(state)], results[len(state) :]


def _as_weak(x: Any, aval: Any) -> Any:
    """An array as weak as a type says."""
    return x if x.weak_type == aval.weak_type else convert_element_type(x, aval.dtype, aval.weak_type)


cond_p = Cond()


def run_if_taken(i: int, index: Any, branch: ClosedJaxpr, operands: Sequence[Any]) -> list[Any]:
    """The results of a vectorized branch; not computed when it is costly and no element of the batch takes it."""
    if branch.effects or not is_costly(branch):
        return eval_jaxpr(branch.jaxpr, branch.consts, *operands)
    taken = reduce_or(eq(index, np.array(i, np.int32)), (0,))
    skipped = stage(lambda *xs: [blank(aval) for aval in branch.out_avals], branch.in_avals, "skip")
    return bind_branches(convert_element_type(taken, _int32), [skipped, branch], operands)


def apart_from_others(
    branch: ClosedJaxpr, is_taken: Any, operands: Sequence[Any], batched: Sequence[bool]
) -> list[Any]:
    """The operands of a vectorized branch, cut off from derivatives where another one is taken.

    The derivative there may be infinite or NaN, also times zero. An operand without a batch axis collects it from all
    elements: with such an operand, the branch runs on those of an element that takes it instead.
    """
    flags = [dtypes.is_inexact(aval.dtype) for aval in branch.in_avals]
    if not any([dtypes.is_inexact(aval.dtype) for aval in branch.out_avals]) or not aval_of(is_taken).size:
        return list(operands)
    shares = any([flag and not has_axis for flag, has_axis in zip(flags, batched, strict=True)])
    first = argmax(is_taken, 0, _int32) if shares else None
    out = []
    for x, is_inexact, has_axis in zip(operands, flags, batched, strict=True):
        aval = aval_of(x)
        if not has_axis and is_inexact:
            taken = broadcast_in_dim(reduce_or(is_taken, (0,)), aval.shape, ())
            x = select_n(taken, stop_gradient(x), x)
        elif is_inexact or (shares and has_axis and not dtypes.is_extended(aval.dtype)):
            other = of_element(x, first) if shares else x
            taken = broadcast_in_dim(is_taken, aval.shape, (0,))
            x = select_n(taken, stop_gradient(other) if is_inexact else other, x)
        out.append(x)
    return out


def of_element(x: Any, position: Any) -> Any:
    """A batch that has the element at a position everywhere."""
    aval = aval_of(x)
    starts = (position, *[np.array(0, _int32)] * (aval.ndim - 1))
    one = dynamic_slice(x, starts, (1, *aval.shape[1:]))
    return broadcast_in_dim(one, aval.shape, tuple(range(aval.ndim)))


def passed_operands(branches: Sequence[ClosedJaxpr]) -> list[int | None]:
    """For each result the operand that it is whichever branch is taken, or None."""
    each = []
    for branch in branches:
        positions = {var: i for i, var in enumerate(branch.jaxpr.invars)}
        each.append([positions.get(x) if isinstance(x, Var) else None for x in branch.jaxpr.outvars])
    return [column[0] if len(set(column)) == 1 else None for column in zip(*each, strict=True)]


def blank(aval: ShapedArray) -> Any:
    """A value of a type that does not matter: zeros, also as keys."""
    dtype = aval.dtype
    if not dtypes.is_extended(dtype):
        return zeros(aval)
    return dtype.wrap(full((*aval.shape, *dtype.element_shape), 0, dtype.physical_dtype))


def is_costly(branch: ClosedJaxpr) -> bool:
    """Whether a program is worth a test of whether it is needed: it has heavy operations, or many for each result."""
    results = sum(aval.size for aval in branch.out_avals)
    work = sum(v.aval.size for eqn in branch.eqns for v in eqn.outvars)
    if work > _MANY * max(results, 1):
        return True
    return any(eqn.primitive.is_heavy or has_programs(eqn.params) for eqn in branch.eqns)


def union(flags: Sequence[Sequence[bool]]) -> list[bool]:
    return [any(column) for column in zip(*flags, strict=True)]


def bind_branches(index: Any, branches: Sequence[ClosedJaxpr], operands: Sequence[Any]) -> list[Any]:
    """Binds `cond` on programs that may have captured different constants: each takes all of them."""
    constants = [x for branch in branches for x in branch.consts]
    if constants:
        counts = [len(branch.consts) for branch in branches]
        branches = [take_constants(branch, counts, i, constants) for i, branch in enumerate(branches)]
    return cond_p.bind(index, *constants, *operands, branches=tuple(branches))


def take_constants(
    branch: ClosedJaxpr, counts: Sequence[int], position: int, constants: Sequence[Any]
) -> ClosedJaxpr:
    """A branch that takes the constants of all branches as its first arguments."""
    avals = tuple(aval_of(x) for x in constants)
    key = ("with constants", tuple(counts), position, avals)
    if key not in branch.derived:
        before = sum(counts[:position])
        unused = [Var(aval) for aval in avals]
        unused[before : before + counts[position]] = branch.jaxpr.constvars
        jaxpr = branch.jaxpr
        branch.derived[key] = ClosedJaxpr(jaxpr.replace(constvars=[], invars=[*unused, *jaxpr.invars]))
    return branch.derived[key]


def share_residuals(parts, out_count: int) -> tuple[list[ClosedJaxpr], list[ClosedJaxpr]]:
    """Gives the linearized branches one list of residuals: slots by type, as many as the neediest branch needs."""
    needs: list[dict[ShapedArray, int]] = []
    for primal, _, _, count in parts:
        need: dict[ShapedArray, int] = defaultdict(int)
        for aval in primal.out_avals[out_count : out_count + count]:
            need[aval.strip_weak_type()] += 1
        needs.append(need)
    slots: list[ShapedArray] = []
    for aval in dict.fromkeys(aval for need in needs for aval in need):
        slots.extend([aval] * max(need.get(aval, 0) for need in needs))
    primals, linears = [], []
    for primal, linear, _, count in parts:
        free = list(range(len(slots)))
        place = []
        for aval in primal.out_avals[out_count : out_count + count]:
            slot = next(i for i in free if slots[i] is aval.strip_weak_type())
            free.remove(slot)
            place.append(slot)
        primals.append(_fill_slots(primal, out_count, place, slots))
        linears.append(_read_slots(linear, place, slots, count))
    return primals, linears


def _fill_slots(
    primal: ClosedJaxpr, out_count: int, place: list[int], slots: list[ShapedArray]
) -> ClosedJaxpr:
    def run(*args):
        results = eval_jaxpr(primal.jaxpr, primal.consts, *args)
        values = dict(zip(place, results[out_count:], strict=True))
        return [*results[:out_count], *(values[i] if i in values else blank(a) for i, a in enumerate(slots))]

    return stage(run, primal.in_avals, primal.jaxpr.name)


def _read_slots(linear: ClosedJaxpr, place: list[int], slots: list[ShapedArray], count: int) -> ClosedJaxpr:
    invars = [Var(aval) for aval in slots]
    for v, slot in zip(linear.jaxpr.invars[:count], place, strict=True):
        invars[slot] = v
    return ClosedJaxpr(linear.jaxpr.replace(invars=[*invars, *linear.jaxpr.invars[count:]]), linear.consts)


_ABSENT = object()


def switch(index: Any, branches: Sequence[Callable], *operands: Any, operand: Any = _ABSENT) -> Any:
    """Runs one of several functions.

    Args:
        index: which, an integer scalar; values out of range mean the first or the last.
        branches: functions that take the same arguments and return results of the same types.
        *operands: the arguments.

    Returns:
        `branches[index](*operands)`.

    >>> import purax as px
    >>> px.lax.switch(1, [lambda x: x, lambda x: x * 10], 2.0)
    Array(20., dtype=float32, weak_type=True)
    """
    if not isinstance(branches, Iterable):
        raise source.located(
            TypeError, f"switch: branches must be a list of functions, got {shown(branches)}"
        )
    branches = tuple(finite(branches))
    if not branches:
        raise source.located(ValueError, "switch needs at least one branch: Empty branch sequence")
    if operand is not _ABSENT:
        operands = (operand,)
    index = to_array(index)
    if index.aval.shape != () or not dtypes.is_integer(index.aval.dtype):
        fault = (
            "Branch index must be scalar, given"
            if index.aval.ndim
            else "Index type must be an integer, given"
        )
        raise source.located(
            TypeError,
            f"switch needs an integer scalar as index: {fault} as {index.aval.dtype}, {index.aval.str_short()} of "
            f"shape {index.aval.shape}",
        )
    if config.disable_jit:
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    index = convert_element_type(index, _int32)
    index = clamp(np.array(0, np.int32), index, np.array(len(branches) - 1, np.int32))
    return _choose(index, branches, operands, [f"branch {i}" for i in range(len(branches))], "switch")


def cond(
    pred: Any,
    true_fun: Any,
    false_fun: Any = None,
    *operands: Any,
    operand: Any = _ABSENT,
) -> Any:
    """Runs one of two functions.

    Args:
        pred: which, a boolean scalar (a number means whether it is not zero).
        true_fun: called if `pred` is true.
        false_fun: called if it is not; takes the same arguments and returns results of the same types.
        *operands: the arguments.

    Returns:
        `true_fun(*operands)` or `false_fun(*operands)`. The older form
        `cond(pred, true_operand, true_fun, false_operand, false_fun)` works too.

    >>> import purax as px
    >>> px.lax.cond(True, lambda x: x + 1, lambda x: x - 1, 3.0)
    Array(4., dtype=float32, weak_type=True)
    """
    if operand is not _ABSENT:
        operands = (operand,)
    if len(operands) == 2 and callable(false_fun) and callable(operands[1]) and not callable(true_fun):
        true_operand, on_true, (false_operand, on_false) = true_fun, false_fun, operands
        operands = (true_operand, false_operand)
        true_fun = lambda a, b: on_true(a)  # noqa: E731
        false_fun = lambda a, b: on_false(b)  # noqa: E731
    if not callable(true_fun) or not callable(false_fun):
        raise source.located(
            TypeError,
            "lax.cond: true_fun and false_fun arguments should be callable. cond needs two functions after the "
            f"predicate, got {shown(true_fun)} and {shown(false_fun)}",
        )
    try:
        predicate = to_array(pred)
    except TypeError as error:
        raise source.located(
            TypeError, f"cond: Pred must be a scalar, got {shown(pred)} of type {type(pred)}: {error}"
        ) from None
    if predicate.aval.shape != ():
        raise source.located(
            TypeError,
            f"cond: Pred must be a scalar, got {predicate.aval.str_short()} of shape {predicate.aval.shape}; "
            "reduce it with `.any()` or `.all()`, or use `jnp.where` to choose "
            "element by element",
        )
    if config.disable_jit:
        return true_fun(*operands) if predicate else false_fun(*operands)
    if not dtypes.is_boolean(predicate.aval.dtype):
        predicate = ne(predicate, 0)
    index = convert_element_type(predicate, _int32)
    return _choose(index, (false_fun, true_fun), operands, ["false_fun", "true_fun"], "cond")


def _choose(
    index: Any, functions: Sequence[Callable], operands: tuple, names: Sequence[str], what: str
) -> Any:
    leaves, tree = tree_flatten(operands)
    if cells.has_cells(leaves):
        plain = [without_cells(f, operands) for f in functions]
        return _choose(index, [f for f, _ in plain], plain[0][1], names, what)
    values = arrays_in(leaves, tree, f"{what}: operands")
    avals = [x.aval for x in values]
    staged: list[Any] = []
    captured: list[Any] = []
    for i, (f, name) in enumerate(zip(functions, names, strict=True)):
        try:
            same = _first_same(functions, i)  # a function given several times is traced once
            staged.append(
                staged[same] if same < len(staged) else stage_tree(f, tree, avals, f"{what}: {name}")
            )
        except cells.CapturedCells as used:
            captured.extend(x for x in used.cells if not any(x is cell for cell in captured))
    if captured:
        runs = [threaded(f, captured) for f in functions]
        return call_threaded(
            lambda contents: _choose(index, runs, (contents, *operands), names, what), captured
        )
    programs, out_tree = same_results(staged, functions, names, what)
    return tree_unflatten(out_tree, bind_branches(index, programs, values))


def _first_same(functions: Sequence[Callable], i: int) -> int:
    """The first place of function `i`: methods are made anew when they are asked for, all else is told by identity."""
    f = functions[i]
    for k, g in enumerate(functions[:i]):
        if g is f or (
            type(g) is type(f) is MethodType and g.__func__ is f.__func__ and g.__self__ is f.__self__
        ):
            return k
    return i


def same_results(staged, functions, names, what: str) -> tuple[list[ClosedJaxpr], Any]:
    """Branches with equal result types: Python numbers take the dtype of the others; other differences raise.

    Where only weakness differs, the result is as weak as that of the first branch, and each branch stays as it is: a
    batched index selects between their results, which are as weak as all of them. Both are as in jax.
    """
    programs = [closed for closed, _ in staged]
    out_tree = staged[0][1]
    for (_, tree), name in zip(staged[1:], names[1:], strict=True):
        if tree != out_tree:
            raise source.located(
                TypeError,
                f"{what} branch outputs must have the same pytree structure, but they differ: {names[0]} "
                f"`{name_of(functions[0])}` returns {out_tree}, {name} returns {tree}",
            )
    wanted = []
    for i, path in enumerate(leaf_paths(out_tree)):
        avals = [program.out_avals[i] for program in programs]
        dtype, weak = avals[0].dtype, avals[0].weak_type
        for aval, name in zip(avals[1:], names[1:], strict=True):
            same = aval.shape == avals[0].shape
            if same and aval.dtype != dtype and (aval.weak_type or weak):
                dtype, weak = dtypes.promote_pair(dtype, weak, aval.dtype, aval.weak_type)
            elif not same or aval.dtype != dtype:
                raise source.located(
                    TypeError,
                    f"{what} branches must have equal output types but they differ: result{path} is "
                    f"{avals[0].str_short()} in {names[0]} `{name_of(functions[0])}` and {aval.str_short()} "
                    f"in {name}; convert one of them with `.astype` or `jnp.broadcast_to`",
                )
        wanted.append(ShapedArray(avals[0].shape, dtype, weak))
    first, *others = programs
    kept = [
        [
            own if own.dtype == aval.dtype else aval
            for own, aval in zip(program.out_avals, wanted, strict=True)
        ]
        for program in others
    ]
    others = [with_result_types(program, avals) for program, avals in zip(others, kept, strict=True)]
    return [with_result_types(first, wanted), *others], out_tree
