"""`pallas_call`: a kernel over a grid as a function of arrays."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from purax.config import config
from purax.core import dtypes, source
from purax.core.array import Array
from purax.core.avals import ShapedArray, aval_of
from purax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from purax.core.jaxpr_hash import fingerprint
from purax.core.source import located
from purax.core.trace import Tracer
from purax.errors import shown
from purax.execution import compiled_program
from purax.interpreters.arguments import to_array
from purax.interpreters.program_rules import ProgramCall
from purax.interpreters.simplify import hoist_constants
from purax.interpreters.staging import stage
from purax.interpreters.vmap import batch_jaxpr
from purax.lowering import jaxpr_to_stablehlo
from purax.pallas import checking, settings, triton_call
from purax.pallas.blocks import INT32, Operand, location_of
from purax.pallas.context import Frame, step_of
from purax.pallas.grid_program import Kernel, over_grid
from purax.pallas.specs import BlockSpec, GridSpec, MemoryRef, no_block_spec
from purax.primitives.shape.broadcasting import move_axis
from purax.tree.registry import keystr, tree_flatten, tree_flatten_with_path, tree_unflatten


class Plan:
    """What the lowering to a platform knows of a kernel besides its program over the grid.

    Attributes:
        description: how messages call the kernel.
        for_gpu: what `triton_call` needs of the kernel; None for what was derived from a kernel.
        params: what the compiler is told.
        interpret: whether the program over the grid is run on every platform.
        batches: for each `vmap`, from the inside out, its size and which operands have it.
        fingerprint: the same text for the same kernel.
    """

    def __init__(
        self,
        description: str,
        kernel: Any,
        params: Any,
        interpret: bool,
        for_gpu: Any = None,
        batches: Any = (),
    ):
        self.batches = batches
        self.description, self.params, self.interpret, self.for_gpu = description, params, interpret, for_gpu
        what = "" if kernel is None else fingerprint(kernel.program)
        self.fingerprint = f"{what} {params!r} {interpret} {batches}"

    def batched(self, size: int, flags: Sequence[bool]) -> Plan:
        """The plan of the kernel over a batch, which some of its operands have; all results have it."""
        if self.for_gpu is None:
            return self
        request, _, (_, prefetched, inputs, *_) = self.for_gpu
        flags = tuple(flags[len(flags) - len(inputs) :])
        if any(not flags[i - len(prefetched)] for i in request.aliases):
            return self.derived()
        batches = (*self.batches, (size, flags))
        plan = Plan(self.description, None, self.params, self.interpret, self.for_gpu, batches)
        plan.fingerprint = f"{self.fingerprint} {plan.fingerprint}"
        return plan

    def derived(self) -> Plan:
        """The plan of what is not a kernel any more, such as a derivative."""
        return Plan(self.description, None, self.params, self.interpret)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and other.fingerprint == self.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return self.description


class PallasCall(ProgramCall):
    """A kernel over a grid: `jaxpr` is the program over the grid, `plan` what platforms with kernels make of it.

    Its derivatives and its batched form are those of the program over the grid.
    """

    name = "pallas_call"

    def run(self, *operands, jaxpr, plan):
        key = ("pallas_call", plan)
        if key not in jaxpr.derived:
            call = stage(lambda *xs: self.bind(*xs, jaxpr=jaxpr, plan=plan), jaxpr.in_avals, jaxpr.jaxpr.name)
            jaxpr.derived[key] = call
        return compiled_program.run(jaxpr.derived[key], operands)

    def lower(self, builder, *operands, jaxpr, plan):
        if builder.platform == "tpu" and not plan.interpret:
            raise located(
                NotImplementedError,
                f"pallas_call of {plan.description}: kernels are not lowered for TPUs (there is no Mosaic "
                "compiler here); give `interpret=True`, which runs the kernel as an XLA program over its grid",
            )
        if builder.platform in ("gpu", "cuda") and plan.for_gpu is not None and not plan.interpret:
            return triton_call.lower(builder, operands, *plan.for_gpu, plan.batches)
        return jaxpr_to_stablehlo.lower_body(builder, jaxpr.jaxpr, operands)

    def params_for(self, role, params):
        return {**params, "plan": params["plan"].derived()}

    def call(self, closed, operands, params, role=""):
        return eval_jaxpr(closed.jaxpr, closed.consts, *operands)

    def batch_collective(self, size, axis_name, operands, batch_axes, *, jaxpr, plan):
        batched = [axis is not None for axis in batch_axes]
        moved = [
            x if axis is None else move_axis(x, axis, 0) for x, axis in zip(operands, batch_axes, strict=True)
        ]
        vectorized, out_batched = batch_jaxpr(jaxpr, batched, size, axis_name)
        plan = plan.batched(size, batched) if all(out_batched) else plan.derived()
        results = self.bind(*vectorized.consts, *moved, jaxpr=hoist_constants(vectorized), plan=plan)
        return results, [0 if flag else None for flag in out_batched]


pallas_call_p = PallasCall()


def pallas_call(
    kernel: Callable[..., None],
    out_shape: Any,
    *,
    grid_spec: GridSpec | None = None,
    grid: Any = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] = {},  # noqa: B006
    debug: bool = False,
    interpret: Any = False,
    name: str | None = None,
    compiler_params: Any = None,
    cost_estimate: Any = None,
    metadata: dict[str, str] | None = None,
) -> Callable[..., Any]:
    """A function of arrays from a kernel, which works on blocks of them, once for each step of a grid.

    Args:
        kernel: a function of references: one for each input, one for each output, and one for each scratch memory. It
            returns nothing.
        out_shape: the types of the results: a tree of objects with a shape and a dtype.
        grid_spec: the grid, the specs and the scratch shapes in one object.
        grid: the sizes of the grid: integers, or integer arrays where they are known at run time only.
        in_specs: a `BlockSpec` for each input, in the structure of the arguments; by default the whole arrays.
        out_specs: a `BlockSpec` for each result, in the structure of `out_shape`.
        scratch_shapes: types of scratch memory, such as `pl.ANY((8, 128), jnp.float32)`.
        input_output_aliases: for some inputs, the number of the result that begins as that input.
        debug: whether the program of the kernel is printed.
        interpret: whether the kernel runs as an XLA program over the grid on every platform; on the CPU it always does.
        name: of the kernel, for messages.
        compiler_params: what the compiler for a platform is told.
        cost_estimate: what the kernel costs, for schedulers.
        metadata: of no meaning here.

    Returns:
        The function.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> def add(x_ref, y_ref, o_ref):
    ...     o_ref[...] = x_ref[...] + y_ref[...]
    >>> block = pl.BlockSpec((2,), lambda i: i)
    >>> add_vectors = pl.pallas_call(
    ...     add, px.ShapeDtypeStruct((4,), jnp.float32), grid=(2,), in_specs=[block, block], out_specs=block
    ... )
    >>> add_vectors(jnp.arange(4.0), jnp.ones(4))
    Array([1., 2., 3., 4.], dtype=float32)
    """
    if not callable(kernel):
        raise located(TypeError, f"pallas_call needs a kernel, a function, got {shown(kernel)}")
    description = describe(kernel, name)
    if grid_spec is None:
        grid_spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    else:
        for argument, value, default in (
            ("grid", grid, ()),
            ("in_specs", in_specs, no_block_spec),
            ("out_specs", out_specs, no_block_spec),
            ("scratch_shapes", scratch_shapes, ()),
        ):
            if value is not default and not (isinstance(value, tuple) and value == ()):
                raise located(
                    ValueError,
                    f"pallas_call of {description}: {argument} is given twice, in grid_spec and on its own; leave "
                    "out the latter",
                )
    if out_shape is None:
        raise located(
            TypeError,
            f"pallas_call of {description}: out_shape is None; write the types of the results, such as "
            "`purax.ShapeDtypeStruct(shape, dtype)`",
        )
    request = _Request(
        kernel,
        description,
        out_shape,
        grid_spec,
        dict(input_output_aliases),
        compiler_params,
        interpret,
        debug,
    )

    def call(*args: Any) -> Any:
        return request.call(args)

    call.__name__ = getattr(kernel, "__name__", "kernel")
    call.__doc__ = getattr(kernel, "__doc__", None)
    return call


def describe(kernel: Callable, name: str | None) -> str:
    """How messages call a kernel: its name and where it is defined."""
    inner = kernel
    while hasattr(inner, "func") and not hasattr(inner, "__name__"):
        inner = inner.func
    own = getattr(inner, "__name__", type(inner).__name__)
    where = location_of(kernel)
    at = f" at {where.file}:{where.line}" if where is not None else ""
    return f"{name} for kernel function {own}{at}" if name else f"{own}{at}"


class _Request:
    """A `pallas_call` before its arguments are known."""

    def __init__(self, kernel, description, out_shape, spec, aliases, params, interpret, debug):
        self.kernel, self.description, self.spec, self.aliases = kernel, description, spec, aliases
        self.params, self.interpret, self.debug = params, interpret, debug
        leaves, self.out_tree = tree_flatten(out_shape)
        self.out_paths = [f"out_shape{keystr(path)}" for path, _ in tree_flatten_with_path(out_shape)[0]]
        self.outs = [self._out_type(x, path) for x, path in zip(leaves, self.out_paths, strict=True)]
        self.where = source.user_location()
        self._known: dict[Any, Any] = {}

    def fail(self, kind: type, text: str) -> BaseException:
        """An error that names the kernel's line."""
        return located(kind, f"pallas_call of {self.description}: {text}")

    def _out_type(self, x: Any, path: str) -> ShapedArray:
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise self.fail(
                TypeError,
                f"{path} must have a shape and a dtype, as `purax.ShapeDtypeStruct((8,), jnp.float32)` has; got "
                f"{shown(x)}",
            )
        return ShapedArray(tuple(x.shape), dtypes.canonicalize_dtype(x.dtype))

    def call(self, args: Sequence[Any]) -> Any:
        leaves, tree = tree_flatten(args)
        values = []
        for x, (path, _) in zip(leaves, tree_flatten_with_path(args)[0], strict=True):
            try:
                values.append(to_array(x))
            except TypeError:
                raise self.fail(TypeError, f"args{keystr(path)} must be an array, got {shown(x)}") from None
        if checking.is_on(self.interpret):
            return tree_unflatten(self.out_tree, self._checked(args, tree, values))
        unknown = [x for x in self.spec.grid if not _is_known(x)]
        key = (
            tree,
            tuple(x.aval for x in values),
            config.enable_x64,
            bool(settings.enable_debug_checks),
            tuple(_is_known(n) for n in self.spec.grid),
        )
        entry = self._known.get(key)
        if entry is None:
            kernel, closed, parts = self.record(args, tree, [x.aval for x in values])
            plan = Plan(self.description, kernel, self.params, bool(self.interpret), (self, tree, parts))
            entry = (plan, closed)
            if not any(isinstance(x, Tracer) for x in closed.consts):
                self._known[key] = entry
        plan, closed = entry
        results = pallas_call_p.bind(
            *closed.consts,
            *(self._size(x) for x in unknown),
            *values,
            jaxpr=hoist_constants(closed),
            plan=plan,
        )
        return tree_unflatten(self.out_tree, results)

    def _size(self, x: Any) -> Any:
        from_array = to_array(x)
        if from_array.shape != () or not dtypes.issubdtype(from_array.dtype, np.integer):
            raise self.fail(TypeError, f"the sizes of the grid are integers, got {shown(x)}")
        return from_array.astype(np.int32)

    def grid(self) -> list[int | None]:
        """The sizes of the grid; None for those that are known at run time."""
        sizes: list[int | None] = []
        for x in self.spec.grid:
            if not _is_known(x):
                sizes.append(None)
                continue
            size = operator.index(x[1] if isinstance(x, tuple) else x)
            if size < 0:
                raise self.fail(
                    ValueError, f"the sizes of the grid must not be negative, got {self.spec.grid}"
                )
            sizes.append(size)
        return sizes

    def operands(self, args: Sequence[Any], tree: Any, avals: Sequence[ShapedArray]) -> tuple[Any, ...]:
        """The grid, the types of prefetched inputs, the inputs and the outputs, the scratch types; all checked."""
        grid = self.grid()
        count = self.spec.num_scalar_prefetch
        if count > len(args):
            raise self.fail(
                ValueError, f"num_scalar_prefetch is {count}, but it is called with {len(args)} arguments"
            )
        num_prefetched = len(tree_flatten(tuple(args[:count]))[0])
        prefetched = list(avals[:num_prefetched])
        paths = [f"args{keystr(path)}" for path, _ in tree_flatten_with_path(tuple(args))[0]]
        in_specs = self._specs(self.spec.in_specs, tuple(args[count:]), "in_specs", "the arguments")
        out_like = tree_unflatten(self.out_tree, self.outs)
        out_specs = self._specs(self.spec.out_specs, out_like, "out_specs", "out_shape")
        inputs = [
            Operand(aval, spec, grid, prefetched, path, self.description)
            for aval, spec, path in zip(avals[num_prefetched:], in_specs, paths[num_prefetched:], strict=True)
        ]
        outputs = [
            Operand(aval, spec, grid, prefetched, path, self.description)
            for aval, spec, path in zip(self.outs, out_specs, self.out_paths, strict=True)
        ]
        self._check_aliases(num_prefetched, inputs, outputs)
        return grid, prefetched, inputs, outputs

    def _specs(self, specs: Any, values: Any, what: str, of: str) -> list[Any]:
        """The spec of each leaf of a tree of arrays."""
        leaves, tree = tree_flatten(values)
        if specs is no_block_spec:
            return [no_block_spec] * len(leaves)
        if isinstance(values, tuple) and isinstance(specs, list):
            specs = tuple(specs)
        if isinstance(values, list) and isinstance(specs, tuple):
            specs = list(specs)

        def is_leaf(x: Any) -> bool:
            return isinstance(x, BlockSpec) or x is no_block_spec

        given, spec_tree = tree_flatten(specs, is_leaf=is_leaf)
        if spec_tree != tree:
            try:
                found: list[Any] = []
                self._spread(specs, values, is_leaf, found)
                return found
            except (ValueError, TypeError):
                raise self.fail(
                    ValueError,
                    f"{what} must have the structure of {of}: one BlockSpec for each array. {of} has the structure "
                    f"{tree}, {what} has {spec_tree}",
                ) from None
        return given

    def _spread(self, specs: Any, values: Any, is_leaf: Callable[[Any], bool], found: list[Any]) -> None:
        """Specs for a tree in which one may stand for no array, None."""
        if values is None:
            return
        if is_leaf(specs):
            leaves, _ = tree_flatten(values)
            if len(leaves) != 1 or isinstance(values, (tuple, list, dict)):
                raise ValueError
            found.append(specs)
        elif isinstance(values, (tuple, list)) and isinstance(specs, (tuple, list)):
            if len(values) != len(specs):
                raise ValueError
            for spec, value in zip(specs, values, strict=True):
                self._spread(spec, value, is_leaf, found)
        elif isinstance(values, dict) and isinstance(specs, dict) and set(values) == set(specs):
            for key in sorted(values):
                self._spread(specs[key], values[key], is_leaf, found)
        elif specs is None:
            found.extend([no_block_spec] * len(tree_flatten(values)[0]))
        else:
            raise ValueError

    def _check_aliases(self, first: int, inputs: Sequence[Operand], outputs: Sequence[Operand]) -> None:
        taken: set[int] = set()
        for i, o in self.aliases.items():
            if not 0 <= i < first + len(inputs) or not 0 <= o < len(outputs):
                raise self.fail(
                    ValueError,
                    f"input_output_aliases has the entry {i}: {o}, but there are {first + len(inputs)} inputs and "
                    f"{len(outputs)} outputs",
                )
            if i < first:
                raise self.fail(
                    NotImplementedError, f"input_output_aliases: input {i} is prefetched; alias another one"
                )
            if o in taken:
                raise self.fail(ValueError, f"input_output_aliases gives output {o} to several inputs")
            taken.add(o)
            x, y = inputs[i - first].aval, outputs[o].aval
            if (x.shape, x.dtype) != (y.shape, y.dtype):
                raise self.fail(
                    ValueError,
                    f"input_output_aliases has the entry {i}: {o}, but the input is {x.str_short()} and the output "
                    f"{y.str_short()}; only arrays of one type share memory",
                )

    def scratch(self) -> tuple[list[Any], Any]:
        """The types of scratch memory, and their structure."""
        leaves, tree = tree_flatten(self.spec.scratch_shapes, is_leaf=lambda x: isinstance(x, MemoryRef))
        types = []
        for i, x in enumerate(leaves):
            what = x() if isinstance(x, type) or (callable(x) and not hasattr(x, "shape")) else x
            what = what.scratch_type() if hasattr(what, "scratch_type") else what
            if not hasattr(what, "shape") or not hasattr(what, "dtype"):
                raise self.fail(
                    TypeError,
                    f"scratch_shapes: entry {i} must be memory of a shape and a dtype, such as "
                    f"`pl.ANY((8, 128), jnp.float32)`; got {shown(x)}",
                )
            types.append(what)
        return types, tree

    def references(
        self, make: Callable[..., Any], tree: Any, values: Sequence[Any], parts: Any
    ) -> tuple[Any, ...]:
        """The references that the kernel is called with: positional arguments, and keywords for named scratch."""
        grid, prefetched, inputs, outputs, scratch_types, scratch_tree = parts
        names = self.names(len(prefetched) + len(inputs) + len(outputs))
        refs = []
        operands = [None] * len(prefetched) + [*inputs, *outputs]
        for i, (operand, value) in enumerate(zip(operands, values, strict=False)):
            space = operand.memory_space if operand is not None else "smem"
            refs.append(make(value, names[i], space, i < len(prefetched) + len(inputs)))
        scratch = [
            make(
                value,
                f"scratch memory {i}",
                getattr(what, "memory_space", None),
                getattr(what, "is_zero", False),
            )
            for i, (what, value) in enumerate(zip(scratch_types, values[len(operands) :], strict=True))
        ]
        count = len(prefetched) + len(inputs)
        args = tree_unflatten(tree, refs[:count])
        outs = tree_unflatten(self.out_tree, refs[count:])
        outs = tuple(outs) if isinstance(outs, (tuple, list)) else (outs,)
        rest = tree_unflatten(scratch_tree, scratch)
        named = rest if isinstance(rest, dict) else {}
        rest = () if isinstance(rest, dict) else tuple(rest) if isinstance(rest, (tuple, list)) else (rest,)
        return (*args, *outs, *rest), named, [*refs, *scratch]

    def names(self, count: int) -> list[str]:
        """How messages call the references: the parameters of the kernel, where they are one each."""
        code = getattr(self.kernel, "__code__", None)
        given = list(code.co_varnames[: code.co_argcount]) if code is not None else []
        return [given[i] if i < len(given) else f"reference {i}" for i in range(count)]

    def record(
        self, args: Sequence[Any], tree: Any, avals: Sequence[ShapedArray]
    ) -> tuple[Kernel, ClosedJaxpr, Any]:
        """The kernel, the program over the grid, and what the kernel was made of."""
        grid, prefetched, inputs, outputs = self.operands(args, tree, avals)
        scratch_types, scratch_tree = self.scratch()
        scratch = [ShapedArray(tuple(x.shape), x.dtype) for x in scratch_types]
        unknown = [i for i, n in enumerate(grid) if n is None]
        parts = (grid, prefetched, inputs, outputs, scratch_types, scratch_tree)
        scalars = [ShapedArray((), INT32)] * (len(grid) + len(unknown))
        blocks = [x.block_aval for x in [*inputs, *outputs]]
        memory = [ShapedArray(x.shape, x.dtype) for x in prefetched] + blocks + scratch

        def flat(*values):
            ids, values = values[: len(grid)], values[len(grid) :]
            sizes, values = values[: len(unknown)], values[len(unknown) :]
            rest = iter(sizes)
            frame = Frame(ids, [next(rest) if n is None else n for n in grid], self.description)
            positional, named, refs = self.references(settings.make_ref, tree, values, parts)
            with step_of(frame):
                self.run(positional, named)
            return [ref._load() for ref in refs]

        closed = stage(flat, [*scalars, *memory], getattr(self.kernel, "__name__", "kernel"))
        self._refuse_captured(closed)
        aliases = {i - len(prefetched): o for i, o in self.aliases.items()}
        zeroed = [bool(getattr(x, "is_zero", False)) for x in scratch_types]
        kernel = Kernel(closed, grid, prefetched, inputs, outputs, scratch, aliases, zeroed)
        if self.debug:
            print(f"The kernel of pallas_call of {self.description}:\n{closed}")
        sizes = [ShapedArray((), INT32)] * len(unknown)
        types = [*sizes, *memory[: len(prefetched)], *(x.aval for x in inputs)]
        whole = stage(over_grid(kernel), types, getattr(self.kernel, "__name__", "kernel"))
        return kernel, whole, parts

    def run(self, positional: Sequence[Any], named: Mapping[str, Any]) -> None:
        """Calls the kernel."""
        try:
            result = self.kernel(*positional, **named)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                raise self.fail(
                    TypeError,
                    f"the kernel is called with {len(positional)} references, one for each input, output and scratch "
                    f"memory, but: {error}",
                ) from None
            raise
        if result is not None:
            raise source.located(
                ValueError,
                f"pallas_call of {self.description}: the kernel returns {shown(result)}, but kernels return "
                "nothing; write results to the references of the outputs, `o_ref[...] = value`",
                at=location_of(self.kernel),
            )

    def _refuse_captured(self, closed: ClosedJaxpr) -> None:
        """Raises if the kernel uses arrays that it was not given."""
        held = _reachable(self.kernel)
        captured = [x for x in closed.consts if isinstance(x, Tracer) or id(x) in held]
        if captured:
            types = ", ".join(aval_of(x).str_short() for x in captured)
            raise source.located(
                ValueError,
                f"pallas_call of {self.description}: the kernel uses arrays that it was not given: {types}. Pass "
                "them as arguments, and read them from references",
                at=location_of(self.kernel),
            )

    def _checked(self, args: Sequence[Any], tree: Any, values: Sequence[Any]) -> list[Any]:
        grid, prefetched, inputs, outputs = self.operands(args, tree, [x.aval for x in values])
        scratch_types, scratch_tree = self.scratch()
        parts = (grid, prefetched, inputs, outputs, scratch_types, scratch_tree)
        return checking.run(self, parts, tree, values)


def _is_known(x: Any) -> bool:
    if isinstance(x, tuple) and len(x) == 2:
        x = x[1]  # an axis with a name
    return isinstance(x, (int, np.integer)) or (isinstance(x, np.ndarray) and x.ndim == 0)


def _reachable(function: Any, depth: int = 3) -> set[int]:
    """The ids of arrays that a function holds: its closure, its defaults, the globals that it names."""
    found: set[int] = set()
    if depth == 0:
        return found
    if isinstance(function, functools.partial):
        parts = [function.func, *function.args, *function.keywords.values()]
    elif hasattr(function, "__code__"):
        parts = list(function.__defaults__ or ())
        for cell in function.__closure__ or ():
            try:
                parts.append(cell.cell_contents)
            except ValueError:
                continue
        names = function.__code__.co_names
        parts.extend(function.__globals__[name] for name in names if name in function.__globals__)
    else:
        return found
    for part in parts:
        if isinstance(part, Array):
            found.add(id(part))
        elif isinstance(part, functools.partial) or hasattr(part, "__code__"):
            found |= _reachable(part, depth - 1)
    return found
