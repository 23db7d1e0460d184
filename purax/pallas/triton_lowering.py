"""Kernels for GPUs as modules of Triton's dialect, which XLA compiles when it meets a call of them.

A program that was recorded with `PointerRef`s is written operation by operation; `triton_rules` has a rule for each
primitive that GPUs know. Invariant: equations keep their order, so that a memory and all that it becomes are one
pointer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from purax.core import dtypes
from purax.core.jaxpr import Jaxpr, JaxprEqn, Literal
from purax.core.source import located

_TYPES = {
    "bool": "i1",
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2": "f8E5M2",
}


class Value(NamedTuple):
    """A value of the module: its name, its shape and its dtype; of no dimensions it is a scalar."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def type(self) -> str:
        return type_text(self.shape, self.dtype)

    @property
    def is_float(self) -> bool:
        return dtypes.is_floating(self.dtype)

    @property
    def is_signed(self) -> bool:
        return not dtypes.is_unsigned(self.dtype) and not dtypes.is_boolean(self.dtype)


class Pointer(NamedTuple):
    """A memory: the argument of the function that points to it, and whether the kernel may write there."""

    name: str
    dtype: np.dtype
    is_output: bool


def element_text(dtype: Any) -> str:
    """A dtype as MLIR writes it."""
    name = np.dtype(dtype).name
    return _TYPES.get(name) or f"i{np.dtype(dtype).itemsize * 8}"


def memory_dtype(dtype: np.dtype) -> np.dtype:
    """What an array of a dtype has in memory: bools are bytes."""
    return np.dtype(np.uint8) if dtypes.is_boolean(dtype) else dtype


def pointer_text(dtype: np.dtype) -> str:
    """The type of a pointer to elements of a dtype."""
    return f"!tt.ptr<{element_text(memory_dtype(dtype))}>"


def type_text(shape: Sequence[int], dtype: Any) -> str:
    """A type as MLIR writes it."""
    return tensor_text(shape, element_text(dtype))


def tensor_text(shape: Sequence[int], element: str) -> str:
    """A tensor of something, or that itself without dimensions."""
    return f"tensor<{'x'.join(map(str, shape))}x{element}>" if shape else element


class Emitter:
    """Writes operations, line by line.

    Attributes:
        lines: what was written.
        description: how messages call the kernel.
    """

    def __init__(self, description: str, counter: list[int] | None = None):
        self.lines: list[str] = []
        self.description = description
        self._counter = counter if counter is not None else [0]

    def inner(self) -> Emitter:
        """For the operations of a region."""
        return Emitter(self.description, self._counter)

    def name(self) -> str:
        self._counter[0] += 1
        return f"%v{self._counter[0]}"

    def op(
        self,
        name: str,
        operands: Sequence[tuple[str, str]],
        results: Sequence[str],
        properties: str = "",
        regions: Sequence[str] = (),
    ) -> list[str]:
        """Writes an operation on pairs of a name and a type; returns the names of its results."""
        names = [self.name() for _ in results]
        left = f"{', '.join(names)} = " if names else ""
        inside = f" <{{{properties}}}>" if properties else ""
        body = f" ({', '.join(regions)})" if regions else ""
        types = ", ".join(t for _, t in operands)
        out = results[0] if len(results) == 1 else f"({', '.join(results)})"
        arguments = ", ".join(n for n, _ in operands)
        self.lines.append(f'{left}"{name}"({arguments}){inside}{body} : ({types}) -> {out}')
        return names

    def value(self, name: str, operands: Sequence[Value], like: Any, properties: str = "") -> Value:
        """Writes an operation with one result of a shape and dtype."""
        shape, dtype = tuple(like.shape), np.dtype(like.dtype)
        (made,) = self.op(name, [(x.name, x.type) for x in operands], [type_text(shape, dtype)], properties)
        return Value(made, shape, dtype)

    def constant(self, number: Any, dtype: Any, shape: Sequence[int] = ()) -> Value:
        """A number, everywhere in a shape."""
        dtype = np.dtype(dtype)
        (name,) = self.op(
            "arith.constant", [], [type_text((), dtype)], f"value = {_number_text(number, dtype)}"
        )
        return self.splat(Value(name, (), dtype), shape)

    def splat(self, x: Value, shape: Sequence[int]) -> Value:
        """A scalar everywhere in a shape."""
        shape = tuple(shape)
        if x.shape == shape:
            return x
        self.check(shape)
        if x.shape == ():
            (name,) = self.op("tt.splat", [(x.name, x.type)], [type_text(shape, x.dtype)])
            return Value(name, shape, x.dtype)
        raise AssertionError((x.shape, shape))

    def check(self, shape: Sequence[int]) -> None:
        """Raises unless all sizes are powers of two."""
        if any(n & (n - 1) or n == 0 for n in shape):
            raise self.fail(
                f"an array of shape {tuple(shape)} is needed, and Triton's have sizes that are powers of two; take a "
                "larger block with a mask, as `pl.next_power_of_2` and `triton.load(..., mask=...)` give"
            )

    def fail(self, text: str) -> BaseException:
        return located(
            NotImplementedError,
            f"pallas_call of {self.description} for a GPU: {text}. With `interpret=True` the kernel runs as an XLA "
            "program",
        )


def _number_text(number: Any, dtype: np.dtype) -> str:
    if dtypes.is_boolean(dtype):
        return "true" if number else "false"
    element = element_text(dtype)
    if dtypes.is_floating(dtype):
        value = float(np.asarray(number, dtype))
        if np.isfinite(value):
            return (
                f"{value!r} : {element}"
                if "e" not in repr(value) or "." in repr(value)
                else f"{value:.17e} : {element}"
            )
        bits = int.from_bytes(np.asarray(number, dtype).tobytes(), "little")
        return f"0x{bits:0{dtype.itemsize * 2}X} : {element}"
    return f"{int(np.asarray(number, dtype).astype(f'i{dtype.itemsize}'))} : {element}"


def emit(emitter: Emitter, jaxpr: Jaxpr, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Writes the operations of a program; returns its results, values and pointers."""
    known: dict[Any, Any] = {}

    def read(atom: Any) -> Any:
        if type(atom) is Literal:
            return emitter.constant(np.asarray(atom.val), atom.aval.dtype)
        return known[atom]

    for var, value in zip(jaxpr.constvars, consts, strict=True):
        if not isinstance(value, (Value, Pointer)):
            array = np.asarray(value)
            if array.size != 1:
                raise emitter.fail(f"the kernel uses an array of shape {array.shape}; pass it as an argument")
            value = emitter.constant(array.reshape(()), array.dtype, array.shape)
        known[var] = value
    known.update(zip(jaxpr.invars, args, strict=True))
    for eqn in jaxpr.eqns:
        rule = RULES.get(eqn.primitive)
        if rule is None:
            raise emitter.fail(
                f"`{eqn.primitive.name}`{f' at {eqn.source}' if eqn.source is not None else ''} is not lowered"
            )
        results = rule(emitter, eqn, [read(v) for v in eqn.invars])
        known.update(zip(eqn.outvars, results, strict=True))
    return [read(v) for v in jaxpr.outvars]


Rule = Callable[[Emitter, JaxprEqn, list[Any]], Sequence[Any]]
RULES: dict[Any, Rule] = {}


def module_text(
    name: str,
    jaxpr: Jaxpr,
    consts: Sequence[Any],
    grid: Sequence[int],
    pointers: Sequence[np.dtype],
    num_inputs: int,
    description: str,
) -> str:
    """The module of a kernel: a function of pointers.

    Args:
        name: of the function.
        jaxpr: the program: positions in the grid and memories -> memories.
        consts: what its constants are.
        grid: the sizes of the grid, three at most.
        pointers: for each memory its dtype.
        num_inputs: how many of them are inputs, the first.
        description: how messages call the kernel.
    """
    emitter = Emitter(description)
    if len(grid) > 3:
        raise emitter.fail(f"the grid {tuple(grid)} has {len(grid)} axes, and GPUs have three")
    arguments = [f"%arg{i}" for i in range(len(pointers))]
    types = [pointer_text(dtype) for dtype in pointers]
    ids = []
    for axis in range(len(grid)):
        (made,) = emitter.op("tt.get_program_id", [], ["i32"], f"axis = {axis} : i32")
        ids.append(Value(made, (), np.dtype(np.int32)))
    memories = [
        Pointer(arg, dtype, i >= num_inputs)
        for i, (arg, dtype) in enumerate(zip(arguments, pointers, strict=True))
    ]
    emit(emitter, jaxpr, consts, [*ids, *memories])
    emitter.op("tt.return", [], [])
    signature = ", ".join(f"{a}: {t}" for a, t in zip(arguments, types, strict=True))
    body = "\n    ".join(emitter.lines)
    aligned = ", ".join("{tt.divisibility = 16 : i32}" for _ in pointers)
    return (
        '"builtin.module"() ({\n'
        f'  "tt.func"() <{{arg_attrs = [{aligned}], function_type = ({", ".join(types)}) -> (), '
        f'sym_name = {json.dumps(name)}, sym_visibility = "public"}}> ({{\n'
        f"  ^bb0({signature}):\n    {body}\n  }}) : () -> ()\n}}) : () -> ()\n"
    )
