"""`Primitive`: the contract of an operation. Each operation is a class that holds all of its rules.

Arrays are positional, parameters are keywords and hashable. Rules are written with other operations (`mul(x, y)`),
so they work under every transformation. A primitive with several results sets `multiple_results` and its rules take
and give sequences for outputs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from purax import errors
from purax.core import source
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.exact import exact_items
from purax.core.extension import native
from purax.core.memo import Memo
from purax.core.memories import MemorySpace
from purax.core.specs import AbstractMesh, AbstractSharding, PartitionSpec
from purax.core.trace import current

_no_effects: frozenset = frozenset()
_OWN_MEMORY = MemorySpace.Device


class PythonBinder:
    """What can be applied to operands: the base of `Primitive`. `_bind.c` has the same, with a fast path."""

    def bind(self, *operands: Any, **params: Any) -> Any:
        """Applies the operation: hands it to the current trace."""
        return current.trace.process(self, operands, params)


class PythonOperators:
    """The base of concrete arrays, which have their operators from `Array`. `_operators.h` has fast paths for some."""

    __slots__ = ()


Binder: Any = PythonBinder
Operators: Any = PythonOperators
if native is not None:
    native.set_current(current)
    Binder, Operators = native.Binder, native.Operators


class Primitive(Binder):
    """An operation and its rules: `infer`, `host`, `lower`, `jvp`, `transpose`, `batch`.

    Attributes:
        name: as printed in programs.
        multiple_results: whether the results are a list.
        host_is_cheap: whether `host` only makes a view, so that it runs on arrays of any size.
        runs_itself: whether the eager trace calls `run` (programs inside programs) instead of `host`.
        opens_on_tape: whether a linear program records the operations inside of it, by `run`, instead of the call.
        transposes_zeros: whether its `transpose` runs wherever a result is used, even if no cotangent arrives.
        not_lowered: parameters that do not change the compiled program.
        may_be_opened: whether it may be a program where programs are lowered (see `opened`).
        gain_of_effort: nanoseconds per element that a CPU saves if the compiler tries hard (`lowering.effort`).

    Traits, the facts that analyses and passes ask for, so that none of them knows an operation by its name:
        moves_elements: results consist of elements of the operands, which it does not look at.
        may_make: which of "nan" and "inf" it may make of numbers that are neither (see `can_make`).
        is_linear: it is linear in all operands together, such as a sum.
        is_bilinear: it is linear in each of its two operands, such as a product.
        preserves_zero: f(0) = 0, for functions of one element.
        is_matrix_product, is_convolution: it is one.
        is_heavy: an element of the results takes a lot of work, so that a test of whether it is needed pays.
        lowers_to_loops: its lowering has a loop for an element, which XLA does not compile inside of a reduction.
        is_cheap_to_repeat: it costs no more than to read its result from memory.
        tests_equality: its result turns on the last bit of its operands, which must not be computed a second time by
            other code: an element that was its row's maximum would then equal it no longer.
        is_fused: XLA for CPUs fuses it with its neighbours; what has kernels of its own, or needs none, is not.
        reads_transposes: compiled, it reads an operand that is a transpose as the array lies that it is one of.
        keeps_ends: padding at the ends of the operands' axes reaches nothing but the ends of the results' axes, since
            an element depends on elements at its own place alone; so it runs on padded arrays as it is (`padded`).
        row_operation: its name among the operations of row programs (`lowering.cpu.row_program`).
        calls_python: its results are what a function of Python returns while the program runs.
        is_call: it calls the program that is its parameter `jaxpr`, as it is.
        mixes_memories: its operands may be in several memories of a device; `infer` says where its results are.
    """

    name: str
    multiple_results = False
    host_is_cheap = False
    runs_itself = False
    opens_on_tape = False
    transposes_zeros = False
    may_be_opened = False
    gain_of_effort = 0.0
    not_lowered: tuple[str, ...] = ()

    moves_elements = False
    may_make: tuple[str, ...] = ("nan", "inf")
    is_linear = False
    is_bilinear = False
    preserves_zero = False
    is_matrix_product = False
    is_convolution = False
    is_heavy = False
    lowers_to_loops = False
    is_cheap_to_repeat = False
    tests_equality = False
    is_fused = True
    calls_python = False
    is_call = False
    mixes_memories = False
    keeps_ends = False
    reads_transposes = False
    row_operation: str | None = None

    def can_make(self, kind: str) -> bool:
        """Whether it may make a NaN ("nan") or an infinity ("inf") of numbers that are neither."""
        return not self.moves_elements and kind in self.may_make

    def infer(self, *avals: ShapedArray, **params) -> ShapedArray | Sequence[ShapedArray]:
        """The types of the results. Raises the error that the user should read when the operands do not fit."""
        self.is_missing("infer", "infers result types of")

    def host(self, *operands: np.ndarray, **params) -> np.ndarray | Sequence[np.ndarray]:
        """The results, computed by NumPy: the meaning of the operation, and how small eager arrays are computed."""
        self.is_missing("host", "runs small arrays through")

    def host_function(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Callable[..., Any]:
        """`host` for operands of certain types: what depends on types and parameters alone is decided here, once."""
        return functools.partial(self.host, **params) if params else self.host

    def lower(self, builder, *operands, **params):
        """Emits StableHLO through `builder` (see `purax.xla.stablehlo`) and returns the result values."""
        self.is_missing("lower", "compiles")

    def jvp(self, primals: Sequence, tangents: Sequence, **params) -> tuple[Any, Any]:
        """The result and its tangent: (f(x), f'(x) dx). A tangent may be a symbolic `Zero`, on both sides."""
        self.is_missing("jvp", "differentiates")

    def linearize(self, primals: Sequence, tangents: Sequence, **params) -> tuple[Any, Any]:
        """`jvp` with its linear part apart from the primal part; primitives with programs inside have their own."""
        return self.jvp(primals, tangents, **params)

    def transpose(self, cotangent, *operands, **params) -> Sequence:
        """For f linear in the operands that are `LinearOperand`: their cotangents fᵀ(cotangent), None for others."""
        self.is_missing("transpose", "transposes")

    def batch(self, operands: Sequence, batch_axes: Sequence[int | None], **params) -> tuple[Any, Any]:
        """The result over a whole batch and the position of its batch axis (None if it has none).

        `batch_axes[i]` is the position of the batch axis in `operands[i]`, None where that operand is not batched.
        """
        self.is_missing("batch", "vectorizes")

    def padded(self, at: Any, avals: Sequence[ShapedArray], operands: Sequence, **params) -> Any:
        """The results on arrays with padding behind the true ends of axes (`interpreters.padding`).

        `avals` are the operands' types with symbolic dimensions, `at` a `Padding`, which knows rooms and true sizes.
        Padding of operands is arbitrary, and so may that of results be.
        """
        if self.keeps_ends:
            return self.bind(*operands, **at.rooms(params))
        program = self.opened(tuple(avals), params)
        if program is None:
            at.refuse(self.name, avals)
        return at.evaluate(program, operands)

    def names_axis(self, axis_name: Any, **params) -> bool:
        """Whether the operation communicates over the named axis; only collective operations do."""
        return False

    def batch_collective(
        self, size: int, axis_name: Any, operands: Sequence, batch_axes: Sequence[int | None], **params
    ):
        """`batch` for a collective operation whose named axis is the batch axis itself."""
        self.is_missing("batch_collective", f"vectorizes over the named axis {axis_name!r}")

    def repeats(self, **params) -> int | None:
        """How often the programs inside of it run; None if that is not known before they do."""
        return 1

    def depends(self, flags: Sequence[bool], **params) -> list[bool] | None:
        """Which results depend on the operands with a flag; None for all. Primitives with programs look inside."""
        return None

    def apart(self, operands: Sequence, tangents: Sequence[bool], **params) -> list[Any] | None:
        """The results where only some depend on tangents: what does not is computed apart from what is linear in them.
        None for primitives that cannot be taken apart, which are then computed as a whole."""
        return None

    def specs_wanted(self, **params) -> Sequence[PartitionSpec | None]:
        """How it asks for its operands to be sharded over a mesh; None for those that it does not mind."""
        return ()

    def stage(self, operands: tuple, params: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """What staging records: primitives with Python functions among their parameters turn them into programs."""
        return operands, params

    def opened(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
        """The program that an operation is wherever programs are lowered; None if there is only its `lower` rule."""
        return None

    def run(self, *operands, **params):
        """Runs the operation on concrete arrays, for primitives that set `runs_itself`."""
        self.is_missing("run", "runs")

    def effects(self, **params) -> frozenset:
        """What it does besides computing its results (`core.effects`); such equations are never removed or merged."""
        return _no_effects

    def thread(self, threader: Any, state: Sequence, operands: Sequence, **params) -> tuple[list, Any]:
        """Applies an operation with programs inside, with values threaded through them (`lowering.threaded_effects`).

        Returns the values after it and the results.
        """
        self.is_missing("thread", "threads values through")

    def guarded(self, condition: Any, operands: Sequence, **params) -> Any:
        """Applies an operation whose effects happen only if a boolean scalar is true; if not, results are arbitrary."""
        self.is_missing("guarded", "leaves out the effects of")

    def in_order(self, order: Any, operands: Sequence, **params) -> tuple[Any, Any]:
        """Applies an operation with ordered effects after those that gave `order`; the next number, results."""
        self.is_missing("in_order", "orders the effects of")

    def host_work(self, *avals: ShapedArray, **params) -> int:
        """About how many element operations `host` costs; decides between the host and the device."""
        return max((aval.size for aval in avals), default=0)

    def streaming_cost(self, *avals: ShapedArray, **params) -> float:
        """For a `host` that works at about the speed of memory, so that XLA's threads gain little on large
        arrays: the cost of an element in units of an addition; 0 for all others.
        """
        return 0

    def is_missing(self, rule: str, action: str) -> NoReturn:
        raise source.located(
            errors.MissingRuleError,
            f"nothing {action} the primitive `{self.name}`: {type(self).__name__} has no `{rule}` rule",
        )

    def infer_checked(self, avals: tuple[ShapedArray, ...], params: dict[str, Any]):
        """`infer`, remembered per operand types and parameters; its errors name the user's line."""
        key: Any = (self, avals, *exact_items(params)) if params else (self, avals)
        try:
            return inferred[key]
        except KeyError:
            pass
        except TypeError:  # an unhashable parameter
            key = None
        try:
            result = self.infer(*avals, **params)
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            source.with_location(error)
            raise
        for aval in avals:
            if aval.vma:
                result = self.infer_varying(avals, params, result)
                break
        for aval in avals:
            if aval.layout is not None:
                result = self.infer_laid_out(avals, params, result)
                break
        for aval in avals:
            if aval.memory_space is not _OWN_MEMORY:
                result = self.infer_in_memory(avals, params, result)
                break
        if key is not None and not self.multiple_results:
            inferred[key] = result
        return result

    def infer_in_memory(self, avals: tuple[ShapedArray, ...], params: dict[str, Any], result: Any) -> Any:
        """`result` of `infer` in the memory that the operands are in, all of them but scalars."""
        if self.mixes_memories or has_programs(params):
            return result
        spaces = {aval.memory_space for aval in avals if aval.shape}
        if len(spaces) > 1:
            raise source.located(
                ValueError,
                f"memory_space of all inputs passed to `{self.name}` must be the same, got "
                f"{' and '.join(a.str_short() for a in avals)}. Move one of them first: "
                "`purax.device_put(x, purax.memory.Space.Device)`, or `.Host`.",
            )
        space = spaces.pop() if spaces else avals[0].memory_space
        return [a.with_memory(space) for a in result] if self.multiple_results else result.with_memory(space)

    def infer_varying(self, avals: tuple[ShapedArray, ...], params: dict[str, Any], result: Any) -> Any:
        """`result` of `infer` with the axes of a mesh along which it varies: those of all operands.

        Programs in the parameters know more: the types of their results say it already.
        """
        if has_programs(params):
            return result
        vma = frozenset().union(*[aval.vma for aval in avals])
        return [aval.with_vma(vma) for aval in result] if self.multiple_results else result.with_vma(vma)

    def lay_out(self, out: Any, *avals: ShapedArray, **params) -> Sequence[Any]:
        """How the result, of type `out`, is sharded over the operands' mesh with axes of type `Explicit`.

        Returns an entry of a `PartitionSpec` for each axis of the result; for several results (`out` is then a list) a
        list of such. `aval.spec` has those of the operands.
        """
        raise errors.ShardingTypeError(
            f"nothing says how the result of `{self.name}` is sharded over a mesh for operands "
            f"{', '.join(a.str_short() for a in avals)}"
        )

    def infer_laid_out(self, avals: tuple[ShapedArray, ...], params: dict[str, Any], result: Any) -> Any:
        """`result` of `infer` with how it is sharded over a mesh; the types of programs' results say it already."""
        if has_programs(params):
            return result
        try:
            layouts = {aval.layout.mesh for aval in avals if aval.layout is not None}
            if len(layouts) > 1:
                raise errors.ShardingTypeError(
                    f"{self.name} got arrays over different meshes: {', '.join(map(repr, layouts))}"
                )
            (mesh,) = layouts
            outs = list(result) if self.multiple_results else [result]
            if any(entry is not None for aval in avals for entry in aval.spec):
                given = self.lay_out(outs if self.multiple_results else result, *avals, **params)
                entries = list(given) if self.multiple_results else [given]
            else:
                entries = [(None,) * aval.ndim for aval in outs]
            typed = [_laid_out(self.name, avals, mesh, o, e) for o, e in zip(outs, entries, strict=True)]
        except errors.ShardingTypeError as error:
            error.args = (
                f"{error.args[0]}\n  Say how the result shall lie (`out_sharding=`, where the function has it, or "
                "`purax.sharding.auto_axes(function, out_sharding=...)`), or move an operand first: "
                "`purax.sharding.reshard(x, PartitionSpec(...))`.",
            )
            raise source.with_location(error) from None
        return typed if self.multiple_results else typed[0]

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self):
        return _find_primitive, (type(self),)


def has_programs(params: dict[str, Any]) -> bool:
    """Whether some parameter of an operation is a program, or several."""
    return any(
        hasattr(one, "out_avals")
        for value in params.values()
        for one in (value if isinstance(value, tuple) else (value,))
    )


def _laid_out(
    name: str, avals: tuple[ShapedArray, ...], mesh: AbstractMesh, out: ShapedArray, entries: Sequence[Any]
) -> ShapedArray:
    """The type of a result that is sharded over a mesh in a certain way, which must be one that arrays can lie in."""
    spec = PartitionSpec(*entries)
    typed = out.with_layout(AbstractSharding(mesh, spec))
    used = spec.all_names
    if len(set(used)) != len(used):
        raise errors.ShardingTypeError(
            f"{name} of {', '.join(a.str_short() for a in avals)} would lie twice along one axis of the mesh: "
            f"{typed.str_short()}"
        )
    for axis, (n, names) in enumerate(zip(out.shape, spec.names, strict=True)):
        parts = math.prod(mesh.shape[name] for name in names)
        if n % parts:
            raise errors.ShardingTypeError(
                f"axis {axis} of {name} of {', '.join(a.str_short() for a in avals)} has size {n}, which does not "
                f"divide into {parts} equal parts along {' and '.join(map(repr, names))}"
            )
    return typed


inferred: Memo[tuple, Any] = Memo(50_000)  # also read in C


def _find_primitive(kind: type[Primitive]) -> Primitive:
    """The instance of a primitive class, for unpickling: `<name>_p` in the module of the class."""
    import sys

    for value in vars(sys.modules[kind.__module__]).values():
        if type(value) is kind:
            return value
    raise LookupError(f"no instance of primitive {kind.__qualname__} in {kind.__module__}")


class LinearOperand:
    """Stands, in a `transpose` rule, for an operand that the operation is linear in: only its type is known."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)

    def __array__(self, dtype=None, copy=None):
        raise self.misused()

    def misused(self) -> BaseException:
        """The error for a rule that needs the value: the operation is not linear in all operands it should be."""
        return source.located(
            TypeError,
            "this function cannot be transposed, since it is not linear in its arguments: it multiplies, or "
            f"divides by, values that depend on them ({self.aval.str_short()})",
        )


def is_linear(operand) -> bool:
    """Whether a `transpose` rule's operand is one that a cotangent is asked for."""
    return type(operand) is LinearOperand


__all__ = ["LinearOperand", "Primitive", "ShapedArray", "Zero", "aval_of", "is_linear"]
