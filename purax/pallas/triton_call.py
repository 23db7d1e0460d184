"""A `pallas_call` on a GPU: XLA's call of a module in Triton's dialect."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from purax import lax
from purax.core.avals import ShapedArray
from purax.core.jaxpr import ClosedJaxpr
from purax.core.source import located
from purax.interpreters.staging import stage
from purax.pallas import triton
from purax.pallas.blocks import INT32
from purax.pallas.context import Frame, step_of
from purax.pallas.pointers import PointerRef, starts_of
from purax.pallas.triton_rules import module_text
from purax.xla import jaxlib_api
from purax.xla.stablehlo import output_aliases


def record(request: Any, tree: Any, parts: Any, batches: Any = ()) -> tuple[ClosedJaxpr, list[int]]:
    """The program of a step, (positions, memories) -> memories, and the sizes of the grid.

    Args:
        request: the `pallas_call`.
        tree: the structure of its arguments.
        parts: the grid, the prefetched inputs, the inputs, the outputs, the scratch memory and its structure.
        batches: for each `vmap`, from the inside out, its size and which inputs have it. The first axis of the grid
            is as many times as long.
    """
    grid, prefetched, inputs, outputs, scratch_types, _ = parts
    for what, given in (("scalar prefetch", prefetched), ("scratch memory", scratch_types)):
        if given:
            raise _unsupported(request, f"{what} is not there on GPUs")
    if None in grid:
        raise _unsupported(request, "the grid must be known when the kernel is compiled")
    operands = [*inputs, *outputs]
    count = math.prod(size for size, _ in batches)
    axes = [(grid[0] if grid else 1) * count, *grid[1:]] if batches else list(grid)

    def make(value: Any, name: str, space: Any, is_initialized: bool) -> PointerRef:
        memory, operand, starts, base = value
        return PointerRef(memory, operand, starts, base, name)

    def flat(*values: Any) -> list[Any]:
        ids, memories = list(values[: len(axes)]), values[len(axes) :]
        if batches:
            first = np.int32(axes[0] // count)
            batch, ids[0] = lax.div(ids[0], first), lax.rem(ids[0], first)
        ids = ids[: len(grid)]
        given = []
        for i, (memory, operand) in enumerate(zip(memories, operands, strict=True)):
            has = [flags[i] if i < len(inputs) else True for _, flags in batches]
            base = _base(operand, batch, batches, has) if any(has) else None
            given.append((memory, operand, starts_of(operand, ids), base))
        positional, named, refs = request.references(make, tree, given, parts)
        with step_of(Frame(ids, grid, request.description)):
            request.run(positional, named)
        return [ref._read() for ref in refs]

    types = [ShapedArray((), INT32)] * len(axes) + [operand.aval for operand in operands]
    return stage(flat, types, name_of(request)), axes


def text_of(request: Any, tree: Any, parts: Any, batches: Any = ()) -> tuple[str, tuple[int, int, int]]:
    """The module of a kernel, and the grid; the arguments are those of `record`."""
    closed, axes = record(request, tree, parts, batches)
    _, _, inputs, outputs, _, _ = parts
    operands = [*inputs, *outputs]
    pointers = [np.dtype(operand.aval.dtype) for operand in operands]
    text = module_text(
        name_of(request), closed.jaxpr, closed.consts, axes, pointers, len(inputs), request.description
    )
    x, y, z = (*axes, 1, 1, 1)[:3]
    return text, (x, y, z)


def _base(operand: Any, batch: Any, batches: Any, has: Any) -> Any:
    """Where the array of an element of the batch begins in the memory of an operand."""
    base: Any = None
    stride, rest = operand.aval.size, batch
    for (size, _), flag in zip(batches, has, strict=True):
        position, rest = lax.rem(rest, np.int32(size)), lax.div(rest, np.int32(size))
        if flag:
            step = position * np.int32(stride)
            base = step if base is None else base + step
            stride *= size
    return base


def name_of(request: Any) -> str:
    """The name of the function of a kernel."""
    own = getattr(request.kernel, "__name__", "kernel")
    return "".join(c if c.isalnum() or c == "_" else "_" for c in own) or "kernel"


def _unsupported(request: Any, text: str) -> BaseException:
    return located(
        NotImplementedError,
        f"pallas_call of {request.description} for a GPU: {text}. With `interpret=True` the kernel runs as an XLA "
        "program",
    )


def lower(builder: Any, operands: Any, request: Any, tree: Any, parts: Any, batches: Any = ()) -> Any:
    """Writes the call."""
    params = request.params
    if params is not None and not isinstance(params, (triton.CompilerParams, dict)):
        raise _unsupported(
            request,
            f"compiler_params are {type(params).__name__} of {type(params).__module__}, whose compiler is not here; "
            "give `triton.CompilerParams`",
        )
    text, (x, y, z) = text_of(request, tree, parts, batches)
    jaxlib_api.verify_triton(text)
    num_warps = getattr(params, "num_warps", None) or 4
    num_stages = getattr(params, "num_stages", None) or 3
    _, _, inputs, outputs, _, _ = parts
    operands = operands[len(operands) - len(inputs) :]  # the first are constants of the program over the grid
    sizes = [size for size, _ in reversed(batches)]
    results = [ShapedArray((*sizes, *o.aval.shape), o.aval.dtype) for o in outputs]
    layouts = [_rows(x.aval.ndim) for x in operands], [_rows(aval.ndim) for aval in results]
    attributes = (
        'call_target_name = "__gpu$xla.gpu.triton", backend_config = "", has_side_effect = false, '
        f"operand_layouts = [{', '.join(layouts[0])}], result_layouts = [{', '.join(layouts[1])}]"
    )
    if request.aliases:
        pairs = [(out, i) for i, out in request.aliases.items()]
        attributes += f", {output_aliases(pairs, len(outputs))}"
    config = (
        f"mhlo.backend_config = {{debug = false, grid_x = {x} : i32, grid_y = {y} : i32, grid_z = {z} : i32, "
        f'ir = "{_escaped(text)}", name = "{name_of(request)}", num_stages = {num_stages} : i32, '
        f"num_warps = {num_warps} : i32}}"
    )
    return builder.op("custom_call", operands, results, attributes, discardable=config)


def _rows(ndim: int) -> str:
    if ndim == 0:
        return "dense<> : tensor<0xindex>"
    return f"dense<[{', '.join(map(str, reversed(range(ndim))))}]> : tensor<{ndim}xindex>"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\0A")
