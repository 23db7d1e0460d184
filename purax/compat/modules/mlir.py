"""`jax.interpreters.mlir`: how primitives are compiled, and the types and constants that lowerings write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.callbacks.callback import row_major
from purax.compat.extension import LoweredFunction, lower_fun, register_lowering
from purax.core.avals import ShapedArray, aval_of
from purax.transforms.host_trace import on_host
from purax.xla import door
from purax.xla.callbacks import EngineCallback
from purax.xla.foreign_mlir import LoweringRuleContext, ModuleContext
from purax.xla.stablehlo import element_type, tensor_type

__all__ = [
    "LoweredFunction",
    "LoweringRuleContext",
    "ModuleContext",
    "aval_to_ir_type",
    "aval_to_ir_types",
    "dense_int_array",
    "dense_int_elements",
    "dtype_to_ir_type",
    "emit_python_callback",
    "flatten_ir_values",
    "hlo",  # noqa: F822
    "i32_attr",
    "i64_attr",
    "ir",  # noqa: F822
    "ir_constant",
    "lower_fun",
    "make_ir_context",
    "register_lowering",
]


def __getattr__(name: str) -> Any:
    if name == "ir":  # MLIR's bindings are loaded only where a lowering is written with them
        return door.mlir()
    if name == "hlo":
        return door.stablehlo_dialect()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def make_ir_context() -> Any:
    """A new MLIR context that knows StableHLO."""
    return door.mlir_context()


def dtype_to_ir_type(dtype: Any) -> Any:
    """The MLIR type of an element."""
    return door.mlir().Type.parse(element_type(np.dtype(dtype)))


def aval_to_ir_type(aval: ShapedArray) -> Any:
    """The MLIR type of an array."""
    return door.mlir().Type.parse(tensor_type(aval))


def aval_to_ir_types(aval: ShapedArray) -> list[Any]:
    """`aval_to_ir_type`, in a list."""
    return [aval_to_ir_type(aval)]


def ir_constant(value: Any) -> Any:
    """A constant of the program that is being written."""
    array = np.asarray(value)
    aval = aval_of(array)
    ir, hlo = door.mlir(), door.stablehlo_dialect()
    kind = ir.Type.parse(element_type(aval.dtype))
    data = np.packbits(array, bitorder="little") if array.dtype == np.bool_ else np.ascontiguousarray(array)
    return hlo.constant(ir.DenseElementsAttr.get(data, type=kind, shape=array.shape))


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable,
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[ShapedArray],
    result_avals: Sequence[ShapedArray],
    *,
    has_side_effect: bool = False,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: Any = None,
) -> tuple[list[Any], Any, Any]:
    """A call of a Python function in the program that is being written.

    Args:
        ctx: what the lowering got.
        callback: takes NumPy arrays and returns a sequence of arrays.
        token: returned as it is.
        operands: of the call.
        operand_avals: their types.
        result_avals: the types of the results.
        has_side_effect: whether the call stays even if nobody needs its results.
        returns_token: accepted, without effect.
        partitioned: accepted, without effect.
        sharding: accepted, without effect.

    Returns:
        The results, the token, and what would have to be kept alive in jax.
    """
    avals = list(result_avals)

    def function(*arrays: np.ndarray) -> list[np.ndarray]:
        return [np.asarray(y, aval.dtype) for y, aval in zip(callback(*arrays), avals, strict=True)]

    builder = ctx.module_context.builder
    goes_on = builder.module.mesh is not None
    index = builder.module.add_callback(EngineCallback(function, avals, on_host, goes_on))
    platform = "cpu" if builder.platform == "cpu" else "gpu"
    text = (
        f'{{call_target_name = "xla_ffi_python_{platform}_callback", api_version = 4 : i32, '
        f"backend_config = {{index = {index} : ui64}}, has_side_effect = {str(has_side_effect).lower()}, "
        f"operand_layouts = [{', '.join(map(row_major, operand_avals))}], "
        f"result_layouts = [{', '.join(map(row_major, avals))}]}}"
    )
    ir = door.mlir()
    attributes = ir.DictAttr.parse(text)
    operation = ir.Operation.create(
        "stablehlo.custom_call",
        results=[aval_to_ir_type(aval) for aval in avals],
        operands=flatten_ir_values(operands),
        attributes={named.name: named.attr for named in attributes},
    )
    return list(operation.results), token, None


def i32_attr(value: int) -> Any:
    """An attribute that holds an integer of 32 bits."""
    ir = door.mlir()
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), value)


def i64_attr(value: int) -> Any:
    """An attribute that holds an integer of 64 bits."""
    ir = door.mlir()
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def dense_int_elements(values: Any) -> Any:
    """An attribute that holds integers as a tensor."""
    return door.mlir().DenseIntElementsAttr.get(np.asarray(values, np.int64))


def dense_int_array(values: Any) -> Any:
    """An attribute that holds a list of integers."""
    return door.mlir().DenseI64ArrayAttr.get(np.asarray(values, np.int64))


def flatten_ir_values(values: Any) -> list[Any]:
    """MLIR values out of nested sequences."""
    return [
        v for item in values for v in (flatten_ir_values(item) if isinstance(item, list | tuple) else [item])
    ]
