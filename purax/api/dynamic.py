"""`jit(f, dynamic=...)`: one program for all sizes of a bucket.

The function is traced once with symbolic dimensions. A call pads its arguments to the next bucket and runs the program
of that bucket on them (`interpreters.padding`), with the true sizes as numbers; results are cut to their true sizes.
Both happen on the host, so that a new size compiles nothing. `dynamic_call` is such a call inside of transformations:
its rules are those of programs, on the program of all sizes; in another compiled function it is the plain program.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from purax.api.stages import struct_of
from purax.core import dtypes
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.dimension_facts import SymbolicScope
from purax.core.dimensions import is_symbolic_shape, substitute, variable
from purax.core.jaxpr import ClosedJaxpr
from purax.core.source import located
from purax.core.trace import current
from purax.errors import InconclusiveDimensionOperation, shown
from purax.execution import compiled_program
from purax.execution.eager import as_array
from purax.interpreters.arguments import argument_name, aval_of_argument, from_front, to_array
from purax.interpreters.linearize import linearize_jaxpr
from purax.interpreters.padding import Padding
from purax.interpreters.program_rules import ProgramCall, with_tangents
from purax.interpreters.staging import stage
from purax.lowering import jaxpr_to_stablehlo
from purax.tree.registry import tree_flatten, tree_flatten_with_path, tree_unflatten
from purax.xla.array import DeviceArray

Buckets = Callable[[int], int]
_INT32 = ShapedArray((), np.dtype(np.int32))


class DynamicCall(ProgramCall):
    """A call of a program of symbolic shapes, for the `sizes` of its variables (pairs of a name and a number).

    Eagerly it runs padded to `buckets`; `name` is that of the function.
    """

    name = "dynamic_call"
    not_lowered = ("name", "buckets")

    def infer(self, *avals, jaxpr, sizes, buckets, name):
        return [_at(aval, sizes) for aval in jaxpr.out_avals]

    def run(self, *operands, jaxpr, sizes, buckets, name):
        if not sizes:
            return compiled_program.run(jaxpr, operands)
        if current.interprets:
            return compiled_program.run(exact_program(jaxpr, sizes), operands)
        rooms = tuple([(variable, buckets(n)) for variable, n in sizes])
        program = padded_program(jaxpr, rooms, name)
        numbers = [np.int32(n) for _, n in sizes]
        padded = [_padded(x, aval, dict(rooms)) for x, aval in zip(operands, jaxpr.in_avals, strict=True)]
        results = compiled_program.run(program, [*map(to_array, numbers), *padded])
        return [_cut(y, aval, sizes) for y, aval in zip(results, jaxpr.out_avals, strict=True)]

    def stage(self, operands, params):
        exact = exact_program(params["jaxpr"], params["sizes"])
        return operands, {**params, "jaxpr": exact, "sizes": ()}

    def lower(self, builder, *operands, jaxpr, sizes, buckets, name):
        return jaxpr_to_stablehlo.lower_call(builder, jaxpr, operands, name)

    def params_for(self, role, params):
        return {**params, "name": f"{role}_{params['name']}" if role else params["name"]}

    def linearize(self, primals, tangents, *, jaxpr, **params):
        moving = [type(t) is not Zero for t in tangents]
        primal, linear, out_moving, _ = linearize_jaxpr(jaxpr, moving)
        results = self.call(primal, primals, params)
        out, residuals = results[: len(out_moving)], results[len(out_moving) :]
        given = [t for t in tangents if type(t) is not Zero]
        moved = self.call(linear, [*residuals, *given], params, "linear") if any(out_moving) else ()
        return with_tangents(out, moved, out_moving)


dynamic_call_p = DynamicCall()


def _at(aval: ShapedArray, sizes: Sequence[tuple[str, int]]) -> ShapedArray:
    """A type at sizes of its variables."""
    if not is_symbolic_shape(aval.shape):
        return aval
    known = dict(sizes)
    return aval.with_shape(tuple([substitute(n, known) for n in aval.shape]))


def exact_program(closed: ClosedJaxpr, sizes: Sequence[tuple[str, int]]) -> ClosedJaxpr:
    """The program of certain sizes, without padding."""
    if not sizes:
        return closed
    key = ("exact", tuple(sizes))
    if key not in closed.derived:
        at = Padding(dict(sizes), dict(sizes))
        types = [_at(aval, sizes) for aval in closed.in_avals]
        closed.derived[key] = stage(lambda *xs: at.evaluate(closed, xs), types, closed.jaxpr.name)
    return closed.derived[key]


def padded_program(closed: ClosedJaxpr, rooms: Sequence[tuple[str, int]], name: str) -> ClosedJaxpr:
    """The program of a bucket: of true sizes, and of the arguments with that much room."""
    key = ("padded", tuple(rooms))
    if key not in closed.derived:
        names, known = [variable for variable, _ in rooms], dict(rooms)
        types = [Padding(known, dict.fromkeys(names)).type_of(aval) for aval in closed.in_avals]

        def run(*values: Any) -> list[Any]:
            at = Padding(known, dict(zip(names, values, strict=False)))
            return at.evaluate(closed, values[len(names) :])

        closed.derived[key] = stage(run, [*[_INT32] * len(names), *types], name)
    return closed.derived[key]


def _padded(x: Any, aval: ShapedArray, rooms: dict[str, int]) -> Any:
    """An argument with room, made on the host."""
    if not is_symbolic_shape(aval.shape):
        return x
    if dtypes.is_extended(aval.dtype):
        raise located(
            NotImplementedError,
            f"an array of keys, {aval.str_short()}, cannot be padded: pass its words, `purax.random.key_data(keys)`",
        )
    shape = Padding(rooms, dict.fromkeys(rooms)).shape(aval)
    given = np.asarray(as_array(x, aval_of(x)))
    if given.shape == shape:
        return x
    out = np.zeros(shape, aval.dtype)
    out[tuple(map(slice, given.shape))] = given
    return to_array(out)


def _cut(y: DeviceArray, aval: ShapedArray, sizes: Sequence[tuple[str, int]]) -> DeviceArray:
    """A result without padding, cut on the host."""
    out = _at(aval, sizes)
    if out.shape == y.shape:
        return y
    return as_array(np.ascontiguousarray(np.asarray(y)[tuple(map(slice, out.shape))]), out)


def powers_of_two(n: int) -> int:
    """The least power of two that is not below a size.

    >>> [powers_of_two(n) for n in (1, 5, 8)]
    [1, 8, 8]
    """
    return 1 << max(n - 1, 0).bit_length()


class _Listed:
    """The least of some sizes that is not below a size, or a power of two above all of them."""

    def __init__(self, sizes: Sequence[int]):
        self.sizes = tuple(sorted(sizes))

    def __call__(self, n: int) -> int:
        return next((size for size in self.sizes if size >= n), None) or powers_of_two(n)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Listed) and other.sizes == self.sizes

    def __hash__(self) -> int:
        return hash(self.sizes)


def read_buckets(buckets: Any) -> Buckets:
    """The option `buckets` of `jit` as a function of a size."""
    if buckets is None:
        return powers_of_two
    if callable(buckets):
        return buckets
    is_list = isinstance(buckets, Iterable) and not isinstance(buckets, (str, bytes))
    listed: list[Any] = list(buckets) if is_list else [None]
    if not listed or not all(isinstance(n, (int, np.integer)) and n > 0 for n in listed):
        raise located(
            ValueError,
            f"jit: buckets must be sizes such as [16, 64, 256], or a function of a size, got {shown(buckets)}",
        )
    return _Listed([int(n) for n in listed])


class Marked(NamedTuple):
    """An axis of a leaf of the arguments that may vary, and the name of its dimension if the user gave one."""

    leaf: int
    axis: int
    name: str | None


class Traced(NamedTuple):
    """Types with symbolic dimensions, and how sizes of a call become those of the variables."""

    scope: SymbolicScope
    places: dict[str, tuple[int, int]]
    avals: dict[int, ShapedArray]


class DynamicFunction:
    """A function compiled by `jit(f, dynamic=...)`.

    `explain_dynamic()` tells which axes vary, which buckets have programs, and what ran without padding and why;
    `exact` is the function compiled without padding, with `trace`, `lower` and `eval_shape`.
    """

    def __init__(self, exact: Any, dynamic: Any, buckets: Any):
        self.exact = exact
        self._dynamic = dynamic
        self._is_automatic = isinstance(dynamic, str)
        if self._is_automatic and dynamic != "auto":
            raise located(ValueError, f"jit: dynamic must be a dict, a tuple or 'auto', got {shown(dynamic)}")
        if not self._is_automatic and not isinstance(dynamic, (dict, tuple, list)):
            raise located(ValueError, f"jit: dynamic must be a dict, a tuple or 'auto', got {shown(dynamic)}")
        self._buckets = read_buckets(buckets)
        self._seen: dict[Any, tuple[tuple[tuple[int, ...], ...], set[tuple[int, int]]]] = {}
        self._traced: dict[Any, Traced] = {}
        self._reasons: dict[str, None] = {}
        self._used: dict[str, set[tuple[tuple[str, int], ...]]] = {}
        self._refused: set[Any] = set()
        self._exactly: set[Any] = set()
        functools.update_wrapper(self, exact.__wrapped__)

    def __repr__(self) -> str:
        return f"<dynamic function {self.exact._name}>"

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """Traces the function for these arguments alone."""
        return self.exact.trace(*args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """Traces and lowers the function for these arguments alone."""
        return self.exact.lower(*args, **kwargs)

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The shapes and dtypes of the results, without computing them."""
        return self.exact.eval_shape(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        dynamic_args, dynamic_kwargs, _ = self.exact._split(args, kwargs)
        leaves, tree = tree_flatten((dynamic_args, dynamic_kwargs))
        avals = [aval_of_argument(x) for x in leaves]
        shapes = tuple([aval.shape for aval in avals])
        marked = self._marked(dynamic_args, dynamic_kwargs, tree, avals)
        if not marked:
            return self._run_exactly(args, kwargs, shapes)
        if min(shapes[m.leaf][m.axis] for m in marked) < 2:
            self._note("sizes 0 and 1 run without padding: an axis of size 1 is repeated where others are not")
            return self._run_exactly(args, kwargs, shapes)
        groups = self._groups(marked, shapes)
        types = tuple([(aval.dtype, aval.weak_type) for aval in avals])
        key = (tree, types, groups, self._static_shapes(marked, shapes))
        if key in self._refused:
            return self._run_exactly(args, kwargs, shapes)
        traced = self._traced.get(key)
        if traced is None:
            traced = self._traced[key] = self._types(groups, avals)
        sizes = tuple([(name, shapes[leaf][axis]) for name, (leaf, axis) in traced.places.items()])
        try:
            return self._run(args, kwargs, tree, leaves, traced, sizes)
        except (NotImplementedError, InconclusiveDimensionOperation, TypeError) as error:
            if not self._is_automatic:
                raise
            self._refused.add(key)
            self._note(f"{self._told(groups, args, kwargs)} cannot vary, so that each size has its program: {error}")
            return self._run_exactly(args, kwargs, shapes)

    def _run_exactly(self, args: tuple, kwargs: dict[str, Any], shapes: Any) -> Any:
        self._exactly.add(shapes)
        return self.exact(*args, **kwargs)

    def _cache_size(self) -> int:
        """The number of programs: of buckets, and of shapes that ran without padding."""
        return sum(map(len, self._used.values())) + len(self._exactly)

    def _run(
        self, args: tuple, kwargs: dict[str, Any], tree: Any, leaves: Sequence[Any], traced: Traced, sizes: Any
    ) -> Any:
        types = [struct_of(traced.avals[i]) if i in traced.avals else x for i, x in enumerate(leaves)]
        new_args, new_kwargs = tree_unflatten(tree, types)
        static = from_front(self.exact._static_numbers, len(args))
        new_args = tuple([args[i] if i in static else x for i, x in enumerate(new_args)])
        new_kwargs = {**{n: x for n, x in kwargs.items() if n not in new_kwargs}, **new_kwargs}
        specialization, _, constants, opened = self.exact._specialize(new_args, new_kwargs)
        if opened is not None or specialization.cells is not None:
            raise located(
                NotImplementedError, f"`{self.exact._name}` uses references, which `dynamic` functions cannot"
            )
        known = dict(sizes)
        for assumption in traced.scope.assumptions.values():
            if substitute(assumption.difference, known) == 0:
                self._note(
                    f"{dict(sizes)} runs without padding: at {assumption.location} the function takes "
                    f"{assumption.text}"
                )
                return self._run_exactly(args, kwargs, tuple([aval_of_argument(x).shape for x in leaves]))
        program = specialization.hoisted
        operands = [*constants, *[to_array(x) for x in leaves]]
        results = dynamic_call_p.bind(
            *operands, jaxpr=program, sizes=sizes, buckets=self._buckets, name=self.exact._name
        )
        rooms = tuple([(name, self._buckets(n)) for name, n in sizes])
        told = ", ".join(aval.str_short() for aval in traced.avals.values())
        self._used.setdefault(told, set()).add(rooms)
        return tree_unflatten(specialization.out_tree, results)

    # -- which axes vary

    def _marked(self, args: tuple, kwargs: dict, tree: Any, avals: Sequence[ShapedArray]) -> list[Marked]:
        if self._is_automatic:
            return self._varied(tree, avals)
        names = self.exact._parameter_names
        found = []
        paths = [path for path, _ in tree_flatten_with_path((args, kwargs))[0]]
        for i, (path, aval) in enumerate(zip(paths, avals, strict=True)):
            wanted = self._wanted(path, names)
            for axis, name in _axes(wanted):
                place = axis + aval.ndim if axis < 0 else axis
                if not 0 <= place < aval.ndim:
                    raise located(
                        ValueError,
                        f"jit: dynamic names axis {axis} of {argument_name(path, names)}, which has shape {aval.shape}",
                    )
                found.append(Marked(i, place, name))
        return found

    def _wanted(self, path: Any, names: Sequence[str]) -> Any:
        first, second = path[0].idx, path[1]
        position = second.idx if first == 0 else None
        name = second.key if position is None else names[position] if position < len(names) else None
        if not isinstance(self._dynamic, dict):
            if position is None and name in names:
                position = names.index(name)
            return None if position is None or position >= len(self._dynamic) else self._dynamic[position]
        if position is None and name in names:
            position = names.index(name)
        return self._dynamic.get(name, self._dynamic.get(position))

    def _varied(self, tree: Any, avals: Sequence[ShapedArray]) -> list[Marked]:
        """The axes that were seen with two sizes."""
        key = tree, tuple([(aval.ndim, aval.dtype) for aval in avals])
        shapes = tuple([aval.shape for aval in avals])
        first, varied = self._seen.setdefault(key, (shapes, set()))
        varied.update(
            (i, axis) for i, shape in enumerate(shapes) for axis, n in enumerate(shape) if n != first[i][axis]
        )
        return [Marked(i, axis, None) for i, axis in sorted(varied)]

    def _groups(self, marked: Sequence[Marked], shapes: Sequence[tuple[int, ...]]) -> tuple[tuple[Marked, ...], ...]:
        """Axes that share a dimension: those of one name; without names, those of one size."""
        groups: dict[Any, list[Marked]] = {}
        for m in marked:
            groups.setdefault(m.name if m.name is not None else shapes[m.leaf][m.axis], []).append(m)
        for name, group in groups.items():
            sizes = {shapes[m.leaf][m.axis] for m in group}
            if len(sizes) > 1:
                raise located(
                    ValueError,
                    f"jit: the dimension {name!r} of `{self.exact._name}` has the sizes {sorted(sizes)} at once",
                )
        return tuple([tuple(group) for group in groups.values()])

    def _static_shapes(self, marked: Sequence[Marked], shapes: Sequence[tuple[int, ...]]) -> Any:
        varying = {(m.leaf, m.axis) for m in marked}
        return tuple(
            [
                tuple([None if (i, axis) in varying else n for axis, n in enumerate(shape)])
                for i, shape in enumerate(shapes)
            ]
        )

    def _types(self, groups: Sequence[Sequence[Marked]], avals: Sequence[ShapedArray]) -> Traced:
        places, shapes = {}, {m.leaf: list(avals[m.leaf].shape) for group in groups for m in group}
        given = {group[0].name for group in groups}
        names = []
        free = (name for number in itertools.count() if (name := f"n{number}") not in given)
        for group in groups:
            name = group[0].name or next(free)
            names.append(name)
            places[name] = group[0].leaf, group[0].axis
        scope = SymbolicScope([f"{name} >= 2" for name in names])  # 0 and 1 run without padding
        for name, group in zip(names, groups, strict=True):
            for m in group:
                shapes[m.leaf][m.axis] = variable(scope, name)
        changed = {i: ShapedArray(tuple(shape), avals[i].dtype, avals[i].weak_type) for i, shape in shapes.items()}
        return Traced(scope, places, changed)

    # -- what happened

    def _note(self, reason: str) -> None:
        self._reasons[reason] = None

    def _told(self, groups: Sequence[Sequence[Marked]], args: tuple, kwargs: dict) -> str:
        paths = [path for path, _ in tree_flatten_with_path((args, kwargs))[0]]
        names = self.exact._parameter_names
        return ", ".join(
            f"axis {m.axis} of {argument_name(paths[m.leaf], names)}" for group in groups for m in group
        )

    def explain_dynamic(self) -> str:
        """What was chosen: the types with the dimensions that vary, their buckets, and what ran without padding."""
        lines = [f"`{self.exact._name}`: {len(self._used)} programs of symbolic shapes"]
        for types, rooms in self._used.items():
            listed = "; ".join(", ".join(f"{name} <= {n}" for name, n in each) for each in sorted(rooms))
            lines.append(f"  {types}: padded to {listed}")
        lines += [f"  {reason}" for reason in self._reasons]
        return "\n".join(lines)


def _axes(wanted: Any) -> list[tuple[int, str | None]]:
    """What `dynamic` says of an argument as axes with names."""
    if wanted is None:
        return []
    if isinstance(wanted, (int, np.integer)) and not isinstance(wanted, bool):
        return [(int(wanted), None)]
    if isinstance(wanted, dict) and all(isinstance(axis, int) for axis in wanted):
        for name in wanted.values():
            if name is not None and not (isinstance(name, str) and name.isidentifier()):
                raise located(
                    ValueError, f"jit: dynamic names a dimension {shown(name)}; a name is a word such as 'batch'"
                )
        return list(wanted.items())
    if isinstance(wanted, (tuple, list)) and all(isinstance(axis, int) for axis in wanted):
        return [(axis, None) for axis in wanted]
    raise located(
        ValueError,
        f"jit: dynamic takes an axis, axes, or a dict of axes with names for an argument, got {shown(wanted)}",
    )
