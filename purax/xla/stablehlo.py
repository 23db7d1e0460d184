"""Writes StableHLO, XLA's input language, as text.

A `Module` is a set of functions; a `Builder` writes the body of one of them, operation by operation, in the generic
form `%2 = "stablehlo.add"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`. The `lower` rules of primitives
get a builder and `Value`s and return `Value`s.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray
from purax.core.dimensions import DimSize, SymbolicDimension, exceeds, is_symbolic_shape
from purax.core.memo import Memo
from purax.core.source import located
from purax.xla import jaxlib_api
from purax.xla.dynamic_shapes import dimension_value, dynamic_form, dynamic_window, shape_value

# Reductions that are written out: over up to FEW of at least MANY elements, and of rows of WIDE elements.
FEW, MANY, WIDE = 8, 4096, 20_000

ANY_PLATFORM = "any"

_ELEMENT_TYPES = {
    "bool": "i1",
    "bfloat16": "bf16",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2": "f8E5M2",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e3m4": "f8E3M4",
    "float8_e4m3": "f8E4M3",
    "float8_e8m0fnu": "f8E8M0FNU",
    "float4_e2m1fn": "f4E2M1FN",
}


_NOT_COMPILED = {
    "int1": "int8",
    "uint1": "uint8",
    "float6_e2m3fn": "float32",
    "float6_e3m2fn": "float32",
}


def element_type(dtype: np.dtype) -> str:
    """The StableHLO name of an element type: `f32`, `ui8`, `complex<f32>`, …"""
    name = dtype.name
    if name in _ELEMENT_TYPES:
        return _ELEMENT_TYPES[name]
    if name in _NOT_COMPILED:
        raise TypeError(
            f"the compiler does not know the dtype {name}: convert the array first, x.astype('{_NOT_COMPILED[name]}')"
        )
    return name.replace("uint", "ui").replace("int", "i").replace("float", "f")


_tensor_types: Memo[ShapedArray, str] = Memo()


def tensor_type(aval: ShapedArray) -> str:
    """The StableHLO type of an array: `tensor<2x3xf32>`, or `tensor<?x3xf32>` of a symbolic shape."""
    try:
        return _tensor_types[aval]
    except KeyError:
        sizes = ["?x" if isinstance(n, SymbolicDimension) else f"{n}x" for n in aval.shape]
        text = f"tensor<{''.join(sizes)}{element_type(aval.dtype)}>"
        _tensor_types[aval] = text
        return text


def scalar_text(value: Any, dtype: np.dtype) -> str:
    """An element of a `dense<…>` constant, exact to the bit."""
    if dtype.kind == "c":
        part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
        value = np.asarray(value, dtype)
        return f"({scalar_text(value.real, part)}, {scalar_text(value.imag, part)})"
    if dtype == np.bool_:
        return "true" if value else "false"
    if dtypes.is_inexact(dtype):
        return f"0x{np.asarray(value, dtype).tobytes()[::-1].hex().upper()}"
    return str(int(value))


def integers(values: Sequence[int]) -> str:
    """An attribute that holds a list of integers."""
    if is_symbolic_shape(values):
        raise located(
            NotImplementedError,
            f"an operation cannot be exported for sizes {tuple(values)} that are not known: StableHLO takes "
            "numbers there",
        )
    return f"array<i64: {', '.join(map(str, values))}>" if len(values) else "array<i64>"


def booleans(values: Sequence[bool]) -> str:
    """An attribute that holds a list of booleans."""
    text = ", ".join("true" if value else "false" for value in values)
    return f"array<i1: {text}>" if text else "array<i1>"


def integer_pairs(pairs: Sequence[tuple[int, int]]) -> str:
    """An attribute that holds an n×2 matrix of integers, such as padding."""
    rows = ", ".join(f"[{low}, {high}]" for low, high in pairs)
    return f"dense<{f'[{rows}]' if rows else ''}> : tensor<{len(pairs)}x2xi64>"


def output_aliases(pairs: Sequence[tuple[int, int]], count: int) -> str:
    """What says of a custom call with `count` results which of them take which operand's memory."""
    texts = [
        f"#stablehlo.output_operand_alias<output_tuple_indices = [{result if count > 1 else ''}], "
        f"operand_index = {operand}, operand_tuple_indices = []>"
        for result, operand in pairs
    ]
    return f"output_operand_aliases = [{', '.join(texts)}]"


def dense(array: np.ndarray, dtype: np.dtype) -> str:
    """The text inside `dense<…>` of an array, exact to the bit; a scalar stands for all elements."""
    if array.ndim == 0:
        return scalar_text(array[()], dtype)
    array = np.ascontiguousarray(array, dtype)
    if dtype == np.bool_ or dtype.name in ("int4", "uint4", "int2", "uint2"):
        return _nested(array, dtype)
    return f'"0x{array.tobytes().hex().upper()}"' if array.size else ""


class Value:
    """A result of an operation, or an argument: a name in the text and a type.

    Attributes:
        is_stored: whether it surely lies in memory, as a whole, whatever the compiler fuses.
        turned: if it is a transpose, of what and how: a value and a permutation.
        part: if it is a part of a value that lies in memory: that value, where the part begins, and its strides.
        number: if it is a constant whose elements are all one number: that number.
    """

    __slots__ = ("aval", "is_stored", "name", "number", "part", "turned")

    def __init__(self, name: str, aval: ShapedArray, is_stored: bool = False):
        self.name = name
        self.aval = aval
        self.is_stored = is_stored
        self.turned: tuple[Value, Sequence[int]] | None = None
        self.part: tuple[Value, int, Sequence[int]] | None = None
        self.number: Any = None

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)


class Builder:
    """Writes the body of a function or of a region.

    Attributes:
        module: the module being written.
        platform: "cpu", "cuda", … for rules that lower differently there; "any" of a program with symbolic shapes,
            which is the same for all platforms.
    """

    __slots__ = ("_constants", "_outer", "is_local", "lines", "manual", "module")

    def __init__(
        self, module: Module, outer: Builder | None = None, manual: bool = False, is_local: bool = False
    ):
        self.module = module
        self.lines: list[str] = []
        self._constants: dict[Any, Value] = {}
        self._outer = outer
        self.manual = manual  # whether it writes what each device does with its own part
        self.is_local = is_local  # and that along all axes of the mesh, so that nothing is partitioned

    @property
    def platform(self) -> str:
        return self.module.platform if self.module.dimensions is None else ANY_PLATFORM

    def fresh(self) -> str:
        return self.module.fresh()

    def type_of(self, x: Value) -> str:
        return tensor_type(x.aval)

    # -- operations

    def op(
        self,
        name: str,
        operands: Sequence[Value],
        result: ShapedArray | Sequence[ShapedArray],
        attributes: str = "",
        regions: Sequence[str] = (),
        discardable: str = "",
    ):
        """Writes one operation.

        Args:
            name: `"add"` for `stablehlo.add`; a name with a dot is taken as it is.
            operands: the operands.
            result: the type of the result, or a list of types.
            attributes: text inside `<{…}>`.
            regions: texts made by `region`.
            discardable: attributes that are not the operation's own, text inside `{…}`.

        Returns:
            The result, or a list of results if `result` is a list.
        """
        single = type(result) is ShapedArray
        if self.module.dimensions is not None and single and is_symbolic_shape(result.shape):  # type: ignore[union-attr]
            name, operands = dynamic_form(self, name, operands, result)  # type: ignore[arg-type]
        results: Sequence[Any] = (result,) if single else result  # type: ignore[assignment]
        names = ", ".join([v.name for v in operands])
        in_types = ", ".join([tensor_type(v.aval) for v in operands])
        out_types = ", ".join([tensor_type(aval) for aval in results])
        full_name = name if "." in name else f"stablehlo.{name}"
        extra = f" <{{{attributes}}}>" if attributes else ""
        if regions:
            extra += f" ({', '.join(regions)})"
        if discardable:
            extra += f" {{{discardable}}}"
        target = self.fresh()
        if len(results) == 1:
            prefix, out = f"{target} = ", f" -> {out_types}"
        elif results:
            prefix, out = f"{target}:{len(results)} = ", f" -> ({out_types})"
        else:
            prefix, out = "", " -> ()"
        self.lines.append(f'{prefix}"{full_name}"({names}){extra} : ({in_types}){out}')
        is_stored = name in _NEVER_FUSED
        if is_stored:
            self.module.stored.extend(aval for aval in results if exceeds(aval.size, MANY))
        if single:
            return Value(target, results[0], is_stored)
        if len(results) == 1:
            return [Value(target, results[0], is_stored)]
        return [Value(f"{target}#{i}", aval, is_stored) for i, aval in enumerate(results)]

    def region(
        self,
        avals: Sequence[ShapedArray],
        body: Callable[..., Sequence[Value]],
        terminator: str = "stablehlo.return",
        is_local: bool = False,
    ) -> str:
        """The text of a region that takes arguments of types `avals`; `body(builder, *values)` returns its results."""
        isolated = terminator == "sdy.return"  # such a region sees no constants of the code around it
        inner = Builder(
            self.module, None if isolated else self, self.manual or isolated, self.is_local or is_local
        )
        arguments = [Value(self.fresh(), aval) for aval in avals]
        results = body(inner, *arguments)
        inner.terminate(terminator, results)
        header = ", ".join(f"{v.name}: {tensor_type(v.aval)}" for v in arguments)
        block = f"^bb0({header}):\n" if arguments else ""
        return "{\n" + block + "\n".join(inner.lines) + "\n}"

    def terminate(self, name: str, results: Sequence[Value]) -> None:
        names = ", ".join(v.name for v in results)
        types = ", ".join(tensor_type(v.aval) for v in results)
        self.lines.append(f'"{name}"({names}) : ({types}) -> ()')

    # -- what many rules need

    def constant(self, value: Any, aval: ShapedArray) -> Value:
        """A constant: a Python or NumPy scalar is repeated over the whole shape, an array is written out.

        A dimension is one, too, in a program with symbolic shapes.
        """
        if type(value) is SymbolicDimension:
            return self.broadcast(self.convert(self.dimension(value), aval.dtype), aval.shape)
        array = np.asarray(value)
        data = dense(array, aval.dtype)
        key = (data, aval)
        known = self._known_constant(key)
        if known is None and is_symbolic_shape(aval.shape):
            known = self._constants[key] = self.broadcast(self.constant(value, aval.with_shape(())), aval.shape)
        if known is None:
            known = self.op("constant", (), aval, f"value = dense<{data}> : {tensor_type(aval)}")
            if array.ndim == 0:
                known.number = array[()]
            self._constants[key] = known
        return known

    def _known_constant(self, key) -> Value | None:
        scope: Builder | None = self
        while scope is not None:
            if key in scope._constants:
                return scope._constants[key]
            scope = scope._outer
        return None

    def known(self, kind: str, key: Any) -> Value | None:
        """What `remember` kept here, or in the code around."""
        return self._known_constant((kind, key))

    def remember(self, kind: str, key: Any, value: Value) -> None:
        """Keeps a value that can be used again in what follows."""
        self._constants[kind, key] = value

    def dimension(self, dim: DimSize) -> Value:
        """A dimension as a scalar of int32."""
        return dimension_value(self, dim)

    def shape_value(self, shape: Sequence[DimSize]) -> Value:
        """Dimensions as an array of int32."""
        return shape_value(self, shape)

    def broadcast(self, x: Value, shape: Sequence[int], axes: Sequence[int] = ()) -> Value:
        """Repeats `x` over `shape`; its axis i becomes axis `axes[i]`."""
        if x.aval.shape == tuple(shape):
            return x
        aval = x.aval.with_shape(tuple(shape))
        out = self.op("broadcast_in_dim", (x,), aval, f"broadcast_dimensions = {integers(axes)}")
        out.number = x.number
        return out

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        if x.aval.shape == tuple(shape):
            return x
        out = self.op("reshape", (x,), x.aval.with_shape(tuple(shape)))
        out.is_stored = x.is_stored
        if x.part is not None:
            source, start, strides = x.part
            moved = reshaped_strides(x.shape, strides, out.shape)
            out.part = None if moved is None else (source, start, moved)
        return out

    def cut(self, x: Value, starts: Sequence[int], limits: Sequence[int], steps: Sequence[int]) -> Value:
        """The elements of `x` from `starts` up to `limits` in steps; `x` itself if these are all."""
        shape = [-(-(n - i) // step) for i, n, step in zip(starts, limits, steps, strict=True)]
        if tuple(shape) == x.shape:
            return x
        if is_symbolic_shape((*starts, *limits, *x.shape)):
            bounds = [shape_value(self, sizes) for sizes in (starts, limits, steps)]
            return self.op("real_dynamic_slice", (x, *bounds), x.aval.with_shape(tuple(shape)))
        names = {"start_indices": starts, "limit_indices": limits, "strides": steps}
        attributes = ", ".join(f"{name} = {integers(values)}" for name, values in names.items())
        out = self.op("slice", (x,), x.aval.with_shape(tuple(shape)), attributes)
        if x.is_stored:
            lengths = [math.prod(x.shape[axis + 1 :]) for axis in range(x.ndim)]
            start = sum(i * length for i, length in zip(starts, lengths, strict=True))
            out.part = (x, start, [step * length for step, length in zip(steps, lengths, strict=True)])
        return out

    def window(self, x: Value, starts: Sequence[Value], sizes: Sequence[int]) -> Value:
        """The window of `sizes` of `x` that starts at computed places, moved to lie inside of it."""
        aval = x.aval.with_shape(tuple(sizes))
        if is_symbolic_shape(sizes):
            return dynamic_window(self, x, starts, aval)
        return self.op("dynamic_slice", (x, *starts), aval, f"slice_sizes = {integers(sizes)}")

    def gather(self, x: Value, indices: Value, sizes: Sequence[int], aval: ShapedArray, attributes: str) -> Value:
        """The windows of `sizes` of `x` at places, as `attributes` say."""
        if is_symbolic_shape(sizes):
            return self.op("dynamic_gather", (x, indices, self.shape_value(sizes)), aval, attributes)
        return self.op("gather", (x, indices), aval, f"{attributes}, slice_sizes = {integers(sizes)}")

    def constrain(self, x: Value, layout: str) -> Value:
        """`x`, which is sharded over the module's mesh as the text of a layout says."""
        target = self.fresh()
        self.lines.append(f"{target} = sdy.sharding_constraint {x.name} {layout} : {self.type_of(x)}")
        return Value(target, x.aval)

    def convert(self, x: Value, dtype: Any) -> Value:
        return x if x.aval.dtype == dtype else self.op("convert", (x,), x.aval.with_dtype(dtype))

    def compare(self, direction: str, x: Value, y: Value, kind: str | None = None) -> Value:
        """Compares elementwise; `direction` is EQ, NE, LT, LE, GT or GE, `kind` as StableHLO's comparison types."""
        if kind is None:
            if dtypes.is_inexact(x.dtype):
                kind = "FLOAT"
            else:
                kind = "UNSIGNED" if x.dtype.kind in "bu" or x.dtype.name.startswith("uint") else "SIGNED"
        attributes = (
            f"comparison_direction = #stablehlo<comparison_direction {direction}>, "
            f"compare_type = #stablehlo<comparison_type {kind}>"
        )
        return self.op("compare", (x, y), ShapedArray(x.aval.shape, np.dtype(np.bool_)), attributes)

    def select(self, predicate: Value, if_true: Value, if_false: Value) -> Value:
        return self.op("select", (predicate, if_true, if_false), if_true.aval)

    def iota(self, aval: ShapedArray, axis: int) -> Value:
        return self.op("iota", (), aval, f"iota_dimension = {axis} : i64")

    def reduce(self, x: Value, initial: Any, combine: str, axes: Sequence[int]) -> Value:
        """Combines the elements of `x` along `axes` with the binary operation `combine`, starting from `initial`.

        Few elements are combined one by one on the CPU, wide rows by eights: XLA keeps the operand of a
        reduction in memory, of a slice only what is asked for (distances of 1500 points in 3 dimensions: 0.6 ms instead
        of 14 ms), and adds up wide rows slowly (64 rows of 100,000: 60 ms instead of 3 ms).
        """
        axes = tuple(axes)
        if len(axes) == 1 and self.platform == "cpu" and self.module.mesh is None and exceeds(x.aval.size, MANY - 1):
            length, inner = x.shape[axes[0]], math.prod(x.shape[axes[0] + 1 :])
            if not is_symbolic_shape(x.shape) and (1 <= length <= FEW or (length and inner >= WIDE)):
                return self._combined_by_parts(x, combine, axes[0])
        scalar = ShapedArray((), x.dtype)
        start = self.constant(initial, scalar)
        body = self.region((scalar, scalar), lambda inner, a, b: [inner.op(combine, (a, b), scalar)])
        kept = tuple(n for axis, n in enumerate(x.shape) if axis not in axes)
        return self.op(
            "reduce", (x, start), x.aval.with_shape(kept), f"dimensions = {integers(axes)}", (body,)
        )

    def _combined_by_parts(self, x: Value, combine: str, axis: int) -> Value:
        """The elements of `x` along an axis, combined: a few in their order, many by a tree of eights."""
        before, length, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]

        def part(start: int, stop: int, shape: tuple[int, ...]) -> Value:
            bounds = (
                integers((*(0 for _ in before), start, *(0 for _ in after))),
                integers((*before, stop, *after)),
            )
            attributes = f"start_indices = {bounds[0]}, limit_indices = {bounds[1]}, strides = {integers([1] * x.ndim)}"
            piece = self.op("slice", (x,), x.aval.with_shape((*before, stop - start, *after)), attributes)
            return piece if shape == piece.shape else self.op("reshape", (piece,), x.aval.with_shape(shape))

        def combined(values: Sequence[Value]) -> Value:
            return functools.reduce(lambda a, b: self.op(combine, (a, b), a.aval), values)

        kept = (*before, *after)
        if length <= FEW:
            return combined([part(place, place + 1, kept) for place in range(length)])
        step = length // FEW
        groups = [part(k * step, (k + 1) * step, (*before, step, *after)) for k in range(FEW)]
        rest = [part(place, place + 1, kept) for place in range(FEW * step, length)]
        return combined([self._combined_by_parts(combined(groups), combine, axis), *rest])

    def call(
        self,
        function: str,
        operands: Sequence[Value],
        results: Sequence[ShapedArray],
        keep: bool = True,
        alone: bool = False,
        types: tuple[Sequence[str], Sequence[str]] | None = None,
    ) -> list[Value]:
        """Calls another function of the module; `types` says its types if they are other than those of the values.

        On the CPU the call stays a call if `keep` (see `lowering.cpu`) and it is not the only one of its function, or
        must not be merged with anything all the same (`alone`).
        """
        names = ", ".join(v.name for v in operands)
        takes, gives = types or ([tensor_type(v.aval) for v in operands], list(map(tensor_type, results)))
        in_types, out_types = ", ".join(takes), ", ".join(gives)
        kept = keep and self.module.keep_calls
        attribute = _KEPT if kept else ""
        self.module.call_counts[function] += 2 if alone else 1
        target = self.fresh()
        prefix = f"{target}:{len(results)} = " if len(results) > 1 else f"{target} = " if results else ""
        self.lines.append(
            f'{prefix}"func.call"({names}) {{callee = @{function}{attribute}}} : ({in_types}) -> ({out_types})'
        )
        if len(results) == 1:
            return [Value(target, results[0])]
        return [Value(f"{target}#{i}", aval) for i, aval in enumerate(results)]

    def manual_computation(
        self,
        operands: Sequence[Value],
        in_layouts: str,
        out_layouts: str,
        axes: str,
        body: str,
        results: Sequence[ShapedArray],
    ) -> list[Value]:
        """Runs `body`, a region on the parts of the operands, on every device of the module's mesh (by Shardy)."""
        names = ", ".join(v.name for v in operands)
        in_types = ", ".join(tensor_type(v.aval) for v in operands)
        out_types = ", ".join(tensor_type(aval) for aval in results)
        target = self.fresh()
        prefix = f"{target}:{len(results)} = " if len(results) > 1 else f"{target} = " if results else ""
        attributes = (
            f"in_shardings = #sdy.sharding_per_value<[{in_layouts}]>, "
            f"out_shardings = #sdy.sharding_per_value<[{out_layouts}]>, manual_axes = #sdy<manual_axes{{{axes}}}>"
        )
        self.lines.append(
            f'{prefix}"sdy.manual_computation"({names}) <{{{attributes}}}> ({body}) : ({in_types}) -> ({out_types})'
        )
        if len(results) == 1:
            return [Value(target, results[0])]
        return [Value(f"{target}#{i}", aval) for i, aval in enumerate(results)]

    def custom_call(
        self,
        target: str,
        operands: Sequence[Value],
        results: Sequence[ShapedArray],
        *,
        backend_config: str = "",
        has_side_effect: bool = False,
        api_version: int = 4,
        attributes: str = "",
        on_one_device: bool = False,
        batch_axes: int = 0,
    ) -> list[Value]:
        """Calls a kernel registered with XLA under `target`.

        Args:
            backend_config: the text inside `backend_config = {…}`, for example `"uplo = 76 : ui8"`.
            attributes: further attribute text, such as operand layouts or output aliases.
            on_one_device: whether a program for several devices calls it once, with whole arrays.
            batch_axes: how many axes all operands and results begin with, along which each device of a program for
                several may call the kernel on its own part.
        """
        config = f"{{{backend_config}}}" if api_version == 4 else f'"{backend_config}"'
        text = (
            f'call_target_name = "{target}", api_version = {api_version} : i32, backend_config = {config}, '
            f"has_side_effect = {'true' if has_side_effect else 'false'}"
        )
        discardable = ""
        if on_one_device and self.module.mesh and not self.manual:
            discardable = _on_first_device(len(results))
        elif batch_axes and self.module.mesh is not None:
            partition_along_batch(target)
            rule = batch_rule_text([x.shape for x in operands], [aval.shape for aval in results], batch_axes)
            batch = f'mhlo.frontend_attributes = {{num_batch_dims = "{batch_axes}"}}'
            discardable = f"{batch}, sdy.sharding_rule = {rule}"
        return self.op(
            "custom_call",
            operands,
            list(results),
            f"{text}, {attributes}" if attributes else text,
            discardable=discardable,
        )


def reshaped_strides(
    shape: Sequence[int], strides: Sequence[int], new_shape: Sequence[int]
) -> list[int] | None:
    """The strides with which elements are seen in another shape, or None if there are none.

    >>> reshaped_strides((2, 3, 8), (90, 30, 1), (6, 2, 4))
    [30, 4, 1]
    >>> reshaped_strides((2, 8), (90, 1), (16,)) is None
    True
    """
    if 0 in shape:
        return None
    axes = [(n, stride) for n, stride in zip(shape, strides, strict=True) if n > 1]
    found: list[int] = []
    sizes = list(new_shape)
    while sizes:
        n = sizes.pop()
        if n == 1:
            found.append(0)
            continue
        # Axes that are counted through together, from the last one.
        while axes[-1][0] % n and len(axes) > 1 and axes[-2][1] == axes[-1][0] * axes[-1][1]:
            axes[-2:] = [(axes[-2][0] * axes[-1][0], axes[-1][1])]
        size, stride = axes[-1]
        if size % n:
            return None
        found.append(stride)
        if size == n:
            axes.pop()
        else:
            axes[-1] = (size // n, stride * n)
    return found[::-1]


class Module:
    """A StableHLO module: a public function `main` and the private functions that it calls.

    Attributes:
        platform: what the module is compiled for.
        keep_calls: whether calls must not be inlined by XLA.
        callbacks: Python functions that the program calls, in the order of their indices.
        mesh: the mesh that the program runs on, if it is one for several devices.
        inspections: functions that want to know where values of the program lie; see `propagation`.
        dimensions: of a program with symbolic shapes, the values of its dimension variables by name.
        targets: kernels of the user's that it calls, with the lines that call them.
        stored: types of large arrays that lie in memory as a whole while the program runs.
    """

    def __init__(
        self, platform: str = "cpu", keep_calls: bool | None = None, attributes: str = "", mesh: Any = None
    ):
        self.platform = platform
        self.mesh = mesh
        self.keep_calls = (platform == "cpu" and mesh is None) if keep_calls is None else keep_calls
        self.attributes = attributes
        self.functions: list[str] = []
        self.names: dict[Any, str] = {}
        self.callbacks: list[Callable] = []
        self.inspections: list[tuple[Callable, int]] = []
        self.call_counts: Counter[str] = Counter()
        self.stored: list[ShapedArray] = []
        self.targets: dict[str, Any] = {}
        self.dimensions: dict[str, Value] | None = None
        self.debug_info = False  # whether operations carry lines of the user's code
        self.channels = 0  # of communication between devices; each has its own number
        self._count = 0

    def fresh(self) -> str:
        self._count += 1
        return f"%{self._count}"

    def unique_name(self, name: str) -> str:
        """A function name of this module that starts like `name` and is not taken."""
        base = symbol(name)
        taken = set(self.names.values()) | {"main"}
        if base not in taken:
            return base
        number = 0
        while f"{base}_{number}" in taken:
            number += 1
        return f"{base}_{number}"

    def function(
        self,
        name: str,
        in_avals: Sequence[ShapedArray],
        body: Callable[..., Sequence[Value]],
        public: bool = False,
        argument_attributes: Sequence[str] | None = None,
        result_attributes: Sequence[str] | None = None,
        stored: bool = False,
    ) -> list[ShapedArray]:
        """Adds a function whose results are those of `body(builder, *arguments)`; returns the result types.

        With `stored` its arguments surely lie in memory, as those of a `public` one do.
        """
        builder = Builder(self)
        arguments = [Value(f"%arg{i}", aval, is_stored=public or stored) for i, aval in enumerate(in_avals)]
        results = body(builder, *arguments)
        builder.terminate("func.return", results)
        header = ", ".join(
            f"{v.name}: {tensor_type(v.aval)}{_braced(argument_attributes, i)}"
            for i, v in enumerate(arguments)
        )
        out = ", ".join(
            f"{tensor_type(v.aval)}{_braced(result_attributes, i)}" for i, v in enumerate(results)
        )
        visibility = "public" if public else "private"
        lines = "\n".join(builder.lines)
        self.functions.append(f"func.func {visibility} @{name}({header}) -> ({out}) {{\n{lines}\n}}")
        return [v.aval for v in results]

    def add_callback(self, function: Callable) -> int:
        """The index by which the program calls a Python function."""
        self.callbacks.append(function)
        return len(self.callbacks) - 1

    def text(self, name: str = "program", with_marks: bool = False) -> str:
        attributes = f" attributes {{{self.attributes}}}" if self.attributes else ""
        axes = (
            ", ".join(f'"{symbol(str(n))}"={size}' for n, size in self.mesh.shape.items())
            if self.mesh
            else ""
        )
        mesh = f"sdy.mesh @mesh = <[{axes}]>\n" if self.mesh else ""
        if self.mesh and self.callbacks:
            mesh += "sdy.mesh @first_device = <[], device_ids=[0]>\n"
        functions = "\n".join(reversed(self.functions))
        if self.inspections and not with_marks:
            functions = "\n".join(line for line in functions.split("\n") if "purax.inspected" not in line)
        if self.keep_calls:  # a function that is called once is better fused with its caller
            functions = _KEPT_CALL.sub(
                lambda found: found[0] if self.call_counts[found[1]] > 1 else f"callee = @{found[1]}",
                functions,
            )
        return f"module @{symbol(name)}{attributes} {{\n{mesh}{functions}\n}}\n"


_NEVER_FUSED = frozenset(("convolution", "custom_call", "fft", "sort"))  # with what reads their results
_KEPT = ', mhlo.frontend_attributes = {inlineable = "false"}'
_KEPT_CALL = re.compile(r"callee = @(\w+)" + re.escape(_KEPT))


def sharding_text(spec: Any, ndim: int, open_axes: bool = False) -> str:
    """How an array of `ndim` axes is sharded over the module's mesh: `<@mesh, [{"x"}, {}]>`; `open_axes`: or finer."""
    names = spec.names + ((),) * (ndim - len(spec))
    entries = []
    for axis, axis_names in enumerate(names):
        parts = [f'"{symbol(str(name))}"' for name in axis_names]
        if open_axes or (axis < len(spec) and spec[axis] is spec.UNCONSTRAINED):
            parts.append("?")
        entries.append(f"{{{', '.join(parts)}}}")
    return f"<@mesh, [{', '.join(entries)}]>"


def layout_text(layout: Any, mesh: Any) -> str:
    """How a value with a layout in its type lies: so along `Explicit` axes; along others, as the compiler wants."""
    explicit = layout.mesh.explicit_axes
    text = sharding_text(layout.spec, len(layout.spec), len(explicit) < len(mesh.axis_names))
    used = layout.spec.all_names
    if whole := ", ".join(f'"{symbol(str(name))}"' for name in explicit if name not in used):
        return f"{text[:-1]}, replicated={{{whole}}}>"
    return text


@functools.cache
def partition_along_batch(target: str) -> None:
    """Lets XLA's partitioner cut up calls of the kernel `target` along the batch axes that they name."""
    jaxlib_api.register_batch_partitionable(target)


def batch_rule_text(operands: Sequence[Sequence[int]], results: Sequence[Sequence[int]], count: int) -> str:
    """Shardy's rule of an operation on batches: the first `count` axes belong together, and no other can be sharded.

    >>> batch_rule_text([(8, 3, 4)], [(8, 3)], 1)
    '#sdy.op_sharding_rule<([i, j, k])->([i, l]) {i=8, j=3, k=4, l=3} need_replication={j, k, l}, custom>'
    """
    sizes: list[int] = list(operands[0][:count])
    sides = []
    for shapes in (operands, results):
        mappings = []
        for shape in shapes:
            own = range(len(sizes), len(sizes) + len(shape) - count)
            sizes.extend(shape[count:])
            mappings.append(f"[{', '.join(map(_factor, (*range(count), *own)))}]")
        sides.append(f"({', '.join(mappings)})")
    factors = ", ".join(f"{_factor(i)}={n}" for i, n in enumerate(sizes))
    whole = ", ".join(map(_factor, range(count, len(sizes))))
    whole = f" need_replication={{{whole}}}" if whole else ""
    return f"#sdy.op_sharding_rule<{'->'.join(sides)} {{{factors}}}{whole}, custom>"


def _factor(number: int) -> str:
    """How Shardy writes the factor of a number: i, j, …, z, z_1, z_2, …"""
    letters = "ijklmnopqrstuvwxyz"
    return letters[number] if number < len(letters) else f"z_{number - len(letters) + 1}"


def _on_first_device(count: int) -> str:
    """Says of an operation with so many results that one device alone does it."""
    return f"sdy.sharding = #sdy.sharding_per_value<[{', '.join(['<@first_device, []>'] * max(count, 1))}]>"


def symbol(name: str) -> str:
    """`name` with all but ASCII letters, digits and underscores replaced, as names in StableHLO text must be."""
    return "".join(c if c.isalnum() and c.isascii() or c == "_" else "_" for c in name) or "function"


def _braced(attributes: Sequence[str] | None, index: int) -> str:
    return f" {{{attributes[index]}}}" if attributes is not None and attributes[index] else ""


def _nested(array: np.ndarray, dtype: np.dtype) -> str:
    if array.ndim == 0:
        return scalar_text(array[()], dtype)
    return f"[{', '.join(_nested(row, dtype) for row in array)}]"
