"""A kernel and its grid as one program on whole arrays.

Steps of the grid that write different blocks run at once, vectorized; the others run in a loop, in the order of the
grid. Needs what the kernel is as a program: (positions, sizes, prefetched, inputs, outputs, scratch) -> the last four.
Invariant: results are those of running the steps one after the other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax import lax
from purax import numpy as jnp
from purax.api.vmap import vmap
from purax.control_flow.branches import cond_p
from purax.core.avals import ShapedArray
from purax.core.jaxpr import ClosedJaxpr, Literal, dependent_results, eval_jaxpr, inner_jaxprs
from purax.core.trace import Tracer, eager_trace, using
from purax.interpreters.staging import stage
from purax.pallas.blocks import INT32, Operand
from purax.pallas.refs import uninitialized

WORKING_SET = 1 << 23  # bytes of the largest value that vectorized steps may make


class Kernel:
    """What is known of a kernel.

    Attributes:
        program: positions, sizes that are not known, prefetched, inputs, outputs, scratch -> the last four.
        grid: the sizes; None for those that are known at run time.
        prefetched: types of the prefetched inputs.
        inputs, outputs: the operands.
        scratch: types of scratch memory.
        aliases: for some inputs the output that begins as that input.
        zeroed: which scratch memory begins as zeros.
    """

    def __init__(
        self,
        program: ClosedJaxpr,
        grid: Sequence[int | None],
        prefetched: Sequence[ShapedArray],
        inputs: Sequence[Operand],
        outputs: Sequence[Operand],
        scratch: Sequence[ShapedArray],
        aliases: dict[int, int],
        zeroed: Sequence[bool] = (),
    ):
        self.program, self.grid, self.prefetched = program, list(grid), list(prefetched)
        self.inputs, self.outputs, self.scratch, self.aliases = inputs, outputs, list(scratch), aliases
        self.zeroed = list(zeroed) or [False] * len(self.scratch)
        self.unknown = [i for i, n in enumerate(self.grid) if n is None]
        self.operands = [*inputs, *outputs]
        self.first = len(self.grid) + len(self.unknown)  # of the arguments that are memory
        jaxpr = program.jaxpr
        self.changed = [
            i
            for i in range(len(prefetched) + len(inputs))
            if jaxpr.outvars[i] is not jaxpr.invars[self.first + i]
        ]

    def run(self, ids, sizes, memory) -> list[Any]:
        """One step: what the memory holds afterwards."""
        return eval_jaxpr(self.program.jaxpr, self.program.consts, *ids, *sizes, *memory)


def parallel_axes(kernel: Kernel) -> dict[int, list[int]]:
    """The axes of the grid along which steps are independent, and for each output the dimension that tells them apart.

    Along such an axis every output has a dimension whose block is another one for each position.
    """
    found: dict[int, list[int]] = {}
    if kernel.program.effects or kernel.changed or kernel.unknown or not kernel.outputs:
        return found
    for axis, size in enumerate(kernel.grid):
        dims = [_telling(operand, axis, kernel.grid) for operand in kernel.outputs]
        if size is not None and size > 1 and None not in dims:
            found[axis] = dims  # type: ignore[assignment]
    for i, o in kernel.aliases.items():
        if kernel.inputs[i].index_map.jaxpr.outvars and not _same_blocks(
            kernel.inputs[i], kernel.outputs[o], kernel
        ):
            return {}
    sequential = [a for a, n in enumerate(kernel.grid) if n != 1 and a not in found]
    if kernel.scratch and not _scratch_is_fresh(kernel, []):
        first = min(sequential, default=len(kernel.grid))
        found = {axis: dims for axis, dims in found.items() if axis < first}
        inner = [a for a in range(len(kernel.grid)) if a not in found]
        if not _scratch_is_fresh(kernel, inner):
            return {}
    return found


def _telling(operand: Operand, axis: int, grid: Sequence[int | None]) -> int | None:
    """A dimension whose blocks are apart for different positions along an axis."""
    for position, dim in enumerate(operand.dims):
        component = operand.component(position, grid)
        if not isinstance(component, tuple) or component[0] != axis:
            continue
        starts = component[1] * (1 if dim.by_element else dim.block)
        if len(starts) and (starts.min() < 0 or starts.max() + dim.block > dim.padded):
            continue
        if np.all(np.diff(np.sort(starts)) >= dim.block):
            return position
    return None


def _same_blocks(x: Operand, y: Operand, kernel: Kernel) -> bool:
    if [d.block for d in x.dims] != [d.block for d in y.dims] or x.aval.shape != y.aval.shape:
        return False
    for position in range(len(x.dims)):
        a, b = x.component(position, kernel.grid), y.component(position, kernel.grid)
        if type(a) is not type(b) or a is None:
            return False
        if isinstance(a, tuple) and isinstance(b, tuple):
            if a[0] != b[0] or not np.array_equal(a[1], b[1]):
                return False
        elif a != b:
            return False
    return True


def _scratch_is_fresh(kernel: Kernel, first: Sequence[int]) -> bool:
    """Whether nothing depends on what scratch memory holds before a step at which the axes `first` are at zero."""
    count = len(kernel.scratch)
    zero = [i for i in range(len(kernel.grid)) if i in first or kernel.grid[i] == 1]
    program = with_zeros(kernel.program, zero) if zero else kernel.program
    flags = [False] * (len(program.jaxpr.invars) - count) + [True] * count
    return not any(dependent_results(program.jaxpr, flags))


def with_zeros(program: ClosedJaxpr, positions: Sequence[int]) -> ClosedJaxpr:
    """A program for the case that some of its arguments are zero: what follows from that is computed, and branches that
    are then known are chosen.
    """

    def run(*args):
        values = [np.int32(0) if i in positions else x for i, x in enumerate(args)]
        return _evaluate(program.jaxpr, program.consts, values)

    return stage(run, program.in_avals, "kernel")


def _evaluate(jaxpr, consts, args) -> list[Any]:
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))

    def value(atom):
        return atom.array if type(atom) is Literal else values[atom]

    for eqn in jaxpr.eqns:
        operands = [value(v) for v in eqn.invars]
        known = not any(isinstance(x, Tracer) for x in operands)
        small = sum(v.aval.size for v in eqn.outvars) <= 64
        if eqn.primitive is cond_p and not isinstance(operands[0], Tracer):
            branch = eqn.params["branches"][int(operands[0])]
            results = _evaluate(branch.jaxpr, branch.consts, operands[1:])
        elif known and small and not eqn.effects:
            with using(eager_trace()):
                results = eqn.primitive.bind(*operands, **eqn.params)
        else:
            results = eqn.primitive.bind(*operands, **eqn.params)
        if not isinstance(results, (list, tuple)):
            results = [results]
        values.update(zip(eqn.outvars, results, strict=True))
    return [value(v) for v in jaxpr.outvars]


def within_memory(kernel: Kernel, found: dict[int, list[int]], limit: int) -> dict[int, list[int]]:
    """As many of the parallel axes, from the last one on, as keep the values of vectorized steps within a limit."""
    order = sorted(found, reverse=True)
    chosen: list[int] = []
    per_value = _sizes_by_axes(kernel, order)
    for axis in order:
        trial = [*chosen, axis]
        largest = max(
            (
                size * math.prod(kernel.grid[a] for a in trial if a in axes)  # type: ignore[misc]
                for axes, size in per_value
            ),
            default=0,
        )
        if largest > limit:
            break
        chosen = trial
    return {axis: found[axis] for axis in sorted(chosen)}


def _sizes_by_axes(kernel: Kernel, axes: Sequence[int]) -> list[tuple[frozenset[int], int]]:
    """For each value of the kernel the axes that it depends on, and its bytes."""
    jaxpr = kernel.program.jaxpr
    depends: dict[Any, frozenset[int]] = {}
    for i, var in enumerate(jaxpr.invars):
        if i < len(kernel.grid):
            depends[var] = frozenset((i,)) & frozenset(axes)
            continue
        which = i - kernel.first - len(kernel.prefetched)
        if 0 <= which < len(kernel.operands):
            depends[var] = frozenset(a for a in axes if kernel.operands[which].depends(a))
        else:
            depends[var] = frozenset(axes) if which >= len(kernel.operands) else frozenset()
    sizes = []
    for eqn in jaxpr.eqns:
        inputs = [depends.get(v, frozenset()) for v in eqn.invars if type(v) is not Literal]
        of = frozenset().union(*inputs)
        for v in eqn.outvars:
            depends[v] = of
        own = max((v.aval.size * v.aval.dtype.itemsize for v in eqn.outvars), default=0)
        sizes.append((of, max(own, _largest(eqn.params))))
    return sizes


def _largest(params: dict[str, Any]) -> int:
    """Bytes of the largest value of the programs inside of an equation."""
    largest = 0
    for closed in inner_jaxprs(params):
        for eqn in closed.eqns:
            own = max((v.aval.size * v.aval.dtype.itemsize for v in eqn.outvars), default=0)
            largest = max(largest, own, _largest(eqn.params))
    return largest


class _Cut:
    """How an array is cut along the parallel axes: each takes one dimension apart.

    Attributes:
        axes: the parallel axes that the array is cut along, in their order.
        at: for each of these the dimension.
    """

    def __init__(
        self, operand: Operand, grid: Sequence[int | None], parallel: Sequence[int], dims: dict[int, int]
    ):
        self.operand = operand
        self.values: dict[int, np.ndarray] = {}
        self.at: dict[int, int] = {}
        for axis in parallel:
            wanted = [dims[axis]] if axis in dims else range(len(operand.dims))
            for position in wanted:
                component = operand.component(position, grid)
                if position in self.at.values() or not isinstance(component, tuple) or component[0] != axis:
                    continue
                dim, values = operand.dims[position], component[1]
                starts = values * (1 if dim.by_element else dim.block)
                if len(starts) and (starts.min() < 0 or starts.max() + dim.block > dim.padded):
                    continue
                self.at[axis], self.values[axis] = position, values
                break
        self.axes = sorted(self.at)

    def tiles(self, axis: int) -> bool:
        """Whether the positions along an axis are the blocks of its dimension, one after the other."""
        position, values = self.at[axis], self.values[axis]
        dim = self.operand.dims[position]
        starts = values * (1 if dim.by_element else dim.block)
        return np.array_equal(starts, np.arange(len(values)) * dim.block) and dim.padded % dim.block == 0

    def apart(self, x: Any) -> tuple[Any, list[Any]]:
        """The padded array with its dimensions cut, and what each dimension is: ("axis", a) or ("dim", d)."""
        labels: list[Any] = [("dim", d) for d in range(len(self.operand.dims))]
        for axis in self.axes:
            position = self.at[axis]
            where = labels.index(("dim", position))
            dim, values = self.operand.dims[position], self.values[axis]
            if self.tiles(axis):
                length = len(values) * dim.block
                if x.shape[where] != length:
                    x = lax.slice_in_dim(x, 0, length, axis=where)
                shape = (*x.shape[:where], len(values), dim.block, *x.shape[where + 1 :])
                x = lax.reshape(x, shape)
            else:
                starts = values * (1 if dim.by_element else dim.block)
                rows = starts[:, None] + np.arange(dim.block)
                x = jnp.take(x, jnp.asarray(rows.astype(np.int32)), axis=where, mode="clip")
            labels.insert(where, ("axis", axis))
        return x, labels

    def together(self, whole: Any, parts: Any) -> Any:
        """The padded array, after its parts, cut with the parallel axes in front, have been written to it."""
        axes = self.axes
        rank = len(self.operand.dims)
        if not axes:
            return parts
        order: list[int] = []
        shape: list[int] = []
        complete = True
        for d in range(rank):
            axis = next((a for a in axes if self.at[a] == d), None)
            if axis is not None:
                order.append(axes.index(axis))
                complete = complete and self.tiles(axis)
            order.append(len(axes) + d)
        moved = lax.transpose(parts, order)
        for d in range(rank):
            axis = next((a for a in axes if self.at[a] == d), None)
            size = self.operand.dims[d].block if axis is not None else self.operand.dims[d].padded
            shape.append(size * (len(self.values[axis]) if axis is not None else 1))
        merged = lax.reshape(moved, shape)
        if merged.shape == whole.shape and complete:
            return merged
        if complete:
            return lax.dynamic_update_slice(whole, merged, [np.int32(0)] * rank)
        index = []
        for d in range(rank):
            axis = next((a for a in axes if self.at[a] == d), None)
            dim = self.operand.dims[d]
            if axis is None:
                rows = np.arange(dim.padded)
            else:
                starts = self.values[axis] * (1 if dim.by_element else dim.block)
                rows = (starts[:, None] + np.arange(dim.block)).reshape(-1)
            index.append(
                jnp.asarray(rows.astype(np.int32).reshape([-1 if i == d else 1 for i in range(rank)]))
            )
        return whole.at[tuple(index)].set(merged)


def _starts(operand: Operand, cut: _Cut, indices: Sequence[Any]) -> tuple[list[Any], list[int], bool]:
    """Where the block is in an array that was cut, its sizes, and whether it is all of it."""
    fixed = set(cut.at.values())
    starts, sizes, whole = [], [], True
    for d, dim in enumerate(operand.dims):
        if d in fixed or dim.block == dim.padded:
            starts.append(np.int32(0))
        else:
            whole = False
            starts.append(dim.start(indices[d]))
        sizes.append(dim.block if not operand.is_whole else dim.padded)
    return starts, sizes, whole


def _take(operand: Operand, cut: _Cut, x: Any, indices: Sequence[Any]) -> Any:
    starts, sizes, whole = _starts(operand, cut, indices)
    block = x if whole else lax.dynamic_slice(x, starts, sizes, allow_negative_indices=False)
    return lax.reshape(block, operand.block_aval.shape) if block.shape != operand.block_aval.shape else block


def _put(operand: Operand, cut: _Cut, x: Any, block: Any, indices: Sequence[Any]) -> Any:
    starts, sizes, whole = _starts(operand, cut, indices)
    block = lax.reshape(block, sizes) if block.shape != tuple(sizes) else block
    return block if whole else lax.dynamic_update_slice(x, block, starts, allow_negative_indices=False)


def over_grid(kernel: Kernel, limit: int = WORKING_SET, vectorize: bool = True) -> Callable[..., list[Any]]:
    """The function (sizes, prefetched, inputs) -> outputs.

    Args:
        kernel: what is run.
        limit: bytes of the largest value that vectorized steps may make.
        vectorize: whether steps may run at once.
    """
    dims = within_memory(kernel, parallel_axes(kernel), limit) if vectorize else {}
    parallel = sorted(dims)
    inner = [a for a in range(len(kernel.grid)) if a not in dims]
    num_prefetched, num_inputs = len(kernel.prefetched), len(kernel.inputs)
    cuts = [_Cut(x, kernel.grid, parallel, {}) for x in kernel.inputs]
    cuts += [
        _Cut(y, kernel.grid, parallel, {a: dims[a][o] for a in parallel})
        for o, y in enumerate(kernel.outputs)
    ]

    def function(*values):
        unknown = values[: len(kernel.unknown)]
        prefetched = list(values[len(kernel.unknown) :][:num_prefetched])
        inputs = list(values[len(kernel.unknown) + num_prefetched :])
        sizes = _sizes(kernel.grid, unknown)
        padded = [operand.pad(x) for operand, x in zip(kernel.inputs, inputs, strict=True)]
        begun = []
        for o, operand in enumerate(kernel.outputs):
            source = next((i for i, out in kernel.aliases.items() if out == o), None)
            if source is not None:
                begun.append(operand.pad(inputs[source]))
            else:
                begun.append(uninitialized(ShapedArray(operand.padded_shape, operand.aval.dtype)))
        if any(n == 0 for n in kernel.grid):
            return [operand.unpad(y) for operand, y in zip(kernel.outputs, begun, strict=True)]
        apart = [cut.apart(x) for cut, x in zip(cuts, [*padded, *begun], strict=True)]
        fixed, state = apart[:num_inputs], apart[num_inputs:]
        scratch = [
            jnp.zeros(aval.shape, aval.dtype) if is_zero else uninitialized(aval)
            for aval, is_zero in zip(kernel.scratch, kernel.zeroed, strict=True)
        ]
        labels = {
            "inputs": [lab for _, lab in fixed],
            "outputs": [lab for _, lab in state],
            "scratch": [[("axis", a) for a in parallel]] * len(scratch),
        }
        for a in reversed(parallel):
            count = kernel.grid[a]
            scratch = [jnp.broadcast_to(x, (count, *x.shape)) for x in scratch]
        outs = [_in_front(x, lab) for x, lab in state]
        changed = [i - num_prefetched for i in kernel.changed if i >= num_prefetched]
        inputs_now = [x for x, _ in fixed]

        def step(turn, carry):
            outs, scratch, prefetched_now, moving = carry
            ids: list[Any] = [np.int32(0)] * len(kernel.grid)
            for axis, position in zip(inner, _positions(turn, [sizes[a] for a in inner]), strict=True):
                ids[axis] = position
            given = list(inputs_now)
            for i, x in zip(changed, moving, strict=True):
                given[i] = x
            new = _vectorized(
                kernel, parallel, cuts, labels, ids, unknown, prefetched_now, given, outs, scratch
            )
            new_prefetched, new_inputs, new_outs, new_scratch = new
            return new_outs, new_scratch, new_prefetched, [new_inputs[i] for i in changed]

        carry = (outs, scratch, prefetched, [inputs_now[i] for i in changed])
        turns = [sizes[a] for a in inner]
        if all(isinstance(n, int) for n in turns):
            total: Any = math.prod(turns)
            carry = step(np.int32(0), carry) if total == 1 else lax.fori_loop(0, total, step, carry)
        else:
            total = jnp.asarray(np.int32(1))
            for n in turns:
                total = total * n
            carry = lax.fori_loop(np.int32(0), total, step, carry)
        results = []
        for operand, cut, whole, parts in zip(
            kernel.outputs, cuts[num_inputs:], begun, carry[0], strict=True
        ):
            results.append(operand.unpad(cut.together(whole, parts)))
        return results

    return function


def _sizes(grid: Sequence[int | None], unknown: Sequence[Any]) -> list[Any]:
    given = iter(unknown)
    return [next(given) if n is None else n for n in grid]


def _positions(turn: Any, sizes: Sequence[Any]) -> list[Any]:
    """The position in a grid of the step with a number."""
    positions: list[Any] = []
    rest = turn
    many = [i for i, n in enumerate(sizes) if not (isinstance(n, int) and n == 1)]
    for i in reversed(range(len(sizes))):
        n = sizes[i]
        if i not in many:
            positions.append(np.int32(0))
        elif i == many[0]:
            positions.append(rest)
        else:
            n = np.int32(n) if isinstance(n, int) else n
            positions.append(lax.rem(rest, n))
            rest = lax.div(rest, n)
    return positions[::-1]


def _in_front(x: Any, labels: Sequence[Any]) -> Any:
    """An array that was cut, with the parallel axes in front."""
    axes = sorted(label[1] for label in labels if label[0] == "axis")
    order = [
        *(labels.index(("axis", a)) for a in axes),
        *(i for i, (kind, _) in enumerate(labels) if kind == "dim"),
    ]
    return x if order == list(range(len(order))) else lax.transpose(x, order)


def _vectorized(kernel, parallel, cuts, labels, ids, unknown, prefetched, inputs, outs, scratch):
    """One step of the loop: all positions along the parallel axes."""
    num_prefetched, num_inputs, num_outputs = len(kernel.prefetched), len(inputs), len(outs)

    def one(ids, inputs, outs, scratch):
        indices = [operand.indices(ids, prefetched) for operand in kernel.operands]
        blocks = [
            _take(operand, cut, x, index)
            for operand, cut, x, index in zip(kernel.operands, cuts, [*inputs, *outs], indices, strict=True)
        ]
        after = kernel.run(ids, unknown, [*prefetched, *blocks, *scratch])
        new_prefetched = after[:num_prefetched]
        rest = after[num_prefetched:]
        arrays = [
            _put(operand, cut, x, block, index)
            if which >= num_inputs or num_prefetched + which in kernel.changed
            else x
            for which, (operand, cut, x, block, index) in enumerate(
                zip(kernel.operands, cuts, [*inputs, *outs], rest, indices, strict=False)
            )
        ]
        return new_prefetched, arrays[:num_inputs], arrays[num_inputs:], rest[num_inputs + num_outputs :]

    if not parallel:
        return one(ids, inputs, outs, scratch)

    def nested(level, ids, inputs, input_labels, outs, scratch):
        if level == len(parallel):
            _, _, new_outs, new_scratch = one(ids, inputs, outs, scratch)
            return new_outs, new_scratch
        axis = parallel[level]
        label = ("axis", axis)
        in_axes = [lab.index(label) if label in lab else None for lab in input_labels]
        left = [[each for each in lab if each != label] for lab in input_labels]

        def along(position, inputs, outs, scratch):
            here = list(ids)
            here[axis] = position
            return nested(level + 1, here, inputs, left, outs, scratch)

        steps = lax.iota(INT32, kernel.grid[axis])
        return vmap(along, (0, in_axes, 0, 0), 0, axis_size=kernel.grid[axis])(steps, inputs, outs, scratch)

    new_outs, new_scratch = nested(0, ids, inputs, labels["inputs"], outs, scratch)
    return list(prefetched), list(inputs), list(new_outs), list(new_scratch)


def steps_of(grid: Sequence[int]) -> Any:
    """The positions of a grid in their order."""
    return itertools.product(*map(range, grid))
