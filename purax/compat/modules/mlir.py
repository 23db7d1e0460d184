"""`jax.interpreters.mlir`: how primitives are compiled, and the types and constants that lowerings write."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.callbacks.callback import row_major
from purax.compat.extension import LoweredFunction, lower_fun, register_lowering
from purax.core.avals import ShapedArray, aval_of
from purax.execution.host_trace import on_host
from purax.sharding.mesh import Mesh
from purax.xla import jaxlib_api
from purax.xla.callbacks import EngineCallback
from purax.xla.foreign_mlir import LoweringRuleContext, ModuleContext
from purax.xla.stablehlo import element_type, tensor_type

__all__ = [
    "DEVICE_TO_DEVICE_TYPE",
    "RECV_FROM_HOST_TYPE",
    "SEND_TO_HOST_TYPE",
    "ConstantHandler",
    "LoweredFunction",
    "LoweringResult",
    "LoweringRule",
    "LoweringRuleContext",
    "Mesh",
    "MeshAxisName",
    "ModuleContext",
    "Token",
    "TokenSet",
    "Value",
    "aval_to_ir_type",
    "aval_to_ir_types",
    "dense_int_array",
    "dense_int_elements",
    "dtype_to_ir_type",
    "emit_python_callback",
    "flatten_ir_types",
    "flatten_ir_values",
    "hlo",  # noqa: F822
    "i32_attr",
    "i64_attr",
    "ir",  # noqa: F822
    "ir_constant",
    "ir_constants",
    "lower_fun",
    "make_ir_context",
    "merge_mlir_modules",
    "module_to_bytecode",
    "module_to_string",
    "register_lowering",
    "shape_tensor",
    "token_type",
    "unflatten_ir_values_like_types",
]

# What a lowering may be asked for in jax; names for annotations.
Value = Token = LoweringResult = Any
LoweringRule = ConstantHandler = Callable
MeshAxisName = Any
DEVICE_TO_DEVICE_TYPE, SEND_TO_HOST_TYPE, RECV_FROM_HOST_TYPE = 1, 2, 3  # of channels, as XLA numbers them


def __getattr__(name: str) -> Any:
    if name == "ir":  # MLIR's bindings are loaded only where a lowering is written with them
        return jaxlib_api.mlir()
    if name == "hlo":
        return jaxlib_api.stablehlo_dialect()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def make_ir_context() -> Any:
    """A new MLIR context that knows StableHLO."""
    return jaxlib_api.mlir_context()


def dtype_to_ir_type(dtype: Any) -> Any:
    """The MLIR type of an element."""
    return jaxlib_api.mlir().Type.parse(element_type(np.dtype(dtype)))


def aval_to_ir_type(ctx: Any, aval: ShapedArray) -> Any:
    """The MLIR type of an array; the context of the lowering is not needed."""
    return jaxlib_api.mlir().Type.parse(tensor_type(aval))


def aval_to_ir_types(ctx: Any, aval: ShapedArray) -> list[Any]:
    """`aval_to_ir_type`, in a list."""
    return [aval_to_ir_type(ctx, aval)]


def ir_constant(val: Any, *, const_lowering: Any = None, aval: ShapedArray | None = None) -> Any:
    """A constant of the program that is being written.

    Args:
        val: its value.
        const_lowering: accepted, without effect: constants are written where they are used.
        aval: its type; that of the value when left out.
    """
    array = np.asarray(val) if aval is None else np.asarray(val, aval.dtype).reshape(aval.shape)
    exact = aval_of(array)
    ir, hlo = jaxlib_api.mlir(), jaxlib_api.stablehlo_dialect()
    kind = ir.Type.parse(element_type(exact.dtype))
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
    has_side_effect: bool,
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
    ir = jaxlib_api.mlir()
    attributes = ir.DictAttr.parse(text)
    operation = ir.Operation.create(
        "stablehlo.custom_call",
        results=[aval_to_ir_type(ctx, aval) for aval in avals],
        operands=flatten_ir_values(operands),
        attributes={named.name: named.attr for named in attributes},
    )
    return list(operation.results), token, None


def i32_attr(i: int) -> Any:
    """An attribute that holds an integer of 32 bits."""
    ir = jaxlib_api.mlir()
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), i)


def i64_attr(i: int) -> Any:
    """An attribute that holds an integer of 64 bits."""
    ir = jaxlib_api.mlir()
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), i)


def dense_int_elements(xs: Any) -> Any:
    """An attribute that holds integers as a tensor."""
    return jaxlib_api.mlir().DenseIntElementsAttr.get(np.asarray(xs, np.int64))


def dense_int_array(values: Any) -> Any:
    """An attribute that holds a list of integers."""
    return jaxlib_api.mlir().DenseI64ArrayAttr.get(np.asarray(values, np.int64))


def flatten_ir_values(xs: Any) -> list[Any]:
    """MLIR xs out of nested sequences."""
    return [v for item in xs for v in (flatten_ir_values(item) if isinstance(item, list | tuple) else [item])]


def flatten_ir_types(xs: Any) -> list[Any]:
    """MLIR types out of nested sequences."""
    return flatten_ir_values(xs)


def unflatten_ir_values_like_types(xs: Any, ys: Any) -> list[Any]:
    """A flat sequence of values nested as the types are.

    Args:
        xs: the values.
        ys: types, or sequences of them.
    """
    rest = iter(xs)
    return [[next(rest) for _ in y] if isinstance(y, list | tuple) else next(rest) for y in ys]


def ir_constants(val: Any, *, const_lowering: Any = None, aval: ShapedArray | None = None) -> list[Any]:
    """`ir_constant`, in a list."""
    return [ir_constant(val, const_lowering=const_lowering, aval=aval)]


def shape_tensor(ctx: Any, sizes: Any) -> Any:
    """A shape that is known, as a value of the program."""
    return ir_constant(np.asarray(sizes, np.int32))


def token_type() -> Any:
    """The type of StableHLO's tokens."""
    return jaxlib_api.mlir().Type.parse("!stablehlo.token")


def module_to_string(module: Any, enable_debug_info: bool | None = None) -> str:
    """A module as text.

    Args:
        module: an MLIR module.
        enable_debug_info: whether its locations are written, too.
    """
    return str(module.operation.get_asm(enable_debug_info=bool(enable_debug_info)))


def module_to_bytecode(module: Any) -> bytes:
    """A module as MLIR's bytes."""
    output = io.BytesIO()
    module.operation.write_bytecode(file=output)
    return output.getvalue()


def merge_mlir_modules(dst_module: Any, sym_name: str, src_module: Any, dst_symtab: Any = None) -> str:
    """Puts the functions of one module into another; returns the name that the public one has there.

    Args:
        dst_module: gets them.
        sym_name: the name wanted for the main function.
        src_module: has them; it must be of the same MLIR context, and is used up.
        dst_symtab: the table of the names of `dst_module`.
    """
    ir = jaxlib_api.mlir()
    table = dst_symtab or ir.SymbolTable(dst_module.operation)
    source = ir.SymbolTable(src_module.operation)
    found = ""
    renamed: dict[str, str] = {}
    functions = list(src_module.body.operations)
    for function in functions:
        own = ir.StringAttr(function.attributes["sym_name"]).value
        wanted = name = sym_name if own == "main" else own
        count = 0
        while name in table or name in renamed.values():
            name, count = f"{wanted}_{count}", count + 1
        renamed[own] = name
        found = name if own == "main" else found
    for own, name in renamed.items():
        source.set_symbol_name(source[own], f"{name}__merged")
        ir.SymbolTable.replace_all_symbol_uses(own, f"{name}__merged", src_module.operation)
    for function, name in zip(functions, renamed.values(), strict=True):
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")
        dst_module.body.append(function)
        ir.SymbolTable.replace_all_symbol_uses(f"{name}__merged", name, dst_module.operation)
        function.attributes["sym_name"] = ir.StringAttr.get(name)
    return found or next(iter(renamed.values()))


class TokenSet:
    """The tokens of ordered effects, by effect.

    Args:
        *args: pairs of an effect and a token.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        self._tokens: dict[Any, Any] = dict(*args, **kwargs)

    def __len__(self) -> int:
        return len(self._tokens)

    def get(self, effect: Any) -> Any:
        """The token of an effect."""
        return self._tokens[effect]

    def items(self) -> Any:
        """Effects and tokens."""
        return tuple(self._tokens.items())

    def effects(self) -> set[Any]:
        """The effects."""
        return set(self._tokens)

    def tokens(self) -> list[Any]:
        """The tokens."""
        return list(self._tokens.values())

    def subset(self, effects: Any) -> TokenSet:
        """The tokens of some effects."""
        return TokenSet((effect, self._tokens[effect]) for effect in effects)

    def update_tokens(self, tokens: TokenSet) -> TokenSet:
        """With other tokens for some effects."""
        return TokenSet({**self._tokens, **tokens._tokens})
