"""What each primitive is in Triton's dialect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.api.jit import jit_p
from purax.control_flow.branches import cond_p
from purax.control_flow.custom_jvp import custom_jvp_call_p
from purax.control_flow.custom_vjp import custom_vjp_call_p
from purax.control_flow.scan import scan_p
from purax.control_flow.while_loop import while_p
from purax.core import dtypes
from purax.core.avals import ShapedArray
from purax.core.jaxpr import ClosedJaxpr, Literal
from purax.pallas.pointers import atomic_p, load_p, store_p
from purax.pallas.triton_lowering import (
    RULES,
    Emitter,
    Pointer,
    Value,
    emit,
    memory_dtype,
    module_text,
    pointer_text,
    tensor_text,
    type_text,
)
from purax.primitives.elementwise import arithmetic, conversion, elementwise, logic, transcendental
from purax.primitives.products.contraction import dot_general_p
from purax.primitives.reductions import reduction
from purax.primitives.shape import broadcasting, reshaping
from purax.primitives.special import special
from purax.primitives.stop_gradient import stop_gradient_p

__all__ = ["RULES", "module_text"]

_FAST = "fastmath = #arith.fastmath<none>"
_WRAP = "overflowFlags = #arith.overflow<none>"


def rule(*primitives: Any) -> Callable[[Callable], Callable]:
    def register(function: Callable) -> Callable:
        for primitive in primitives:
            RULES[primitive] = function
        return function

    return register


def _same_shape(emitter: Emitter, values: Sequence[Value]) -> list[Value]:
    """Operands of an elementwise operation: scalars are put everywhere, and axes of size one are repeated."""
    shape = np.broadcast_shapes(*(x.shape for x in values))
    return [broadcast(emitter, x, shape) for x in values]


def _binary(floats: str, signed: str, unsigned: str | None = None) -> Callable:
    def lower(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
        x, y = _same_shape(emitter, operands)
        if x.is_float:
            return [emitter.value(floats, (x, y), x, _FAST)]
        name = signed if x.is_signed or unsigned is None else unsigned
        wraps = name in ("arith.addi", "arith.subi", "arith.muli", "arith.shli")
        return [emitter.value(name, (x, y), x, _WRAP if wraps else "")]

    return lower


for _primitive, _names in {
    elementwise.add_p: ("arith.addf", "arith.addi"),
    elementwise.mul_p: ("arith.mulf", "arith.muli"),
    arithmetic.sub_p: ("arith.subf", "arith.subi"),
    arithmetic.div_p: ("arith.divf", "arith.divsi", "arith.divui"),
    arithmetic.rem_p: ("arith.remf", "arith.remsi", "arith.remui"),
    arithmetic.max_p: ("arith.maximumf", "arith.maxsi", "arith.maxui"),
    arithmetic.min_p: ("arith.minimumf", "arith.minsi", "arith.minui"),
    logic.and_p: ("arith.andi", "arith.andi"),
    logic.or_p: ("arith.ori", "arith.ori"),
    logic.xor_p: ("arith.xori", "arith.xori"),
    logic.shift_left_p: ("arith.shli", "arith.shli"),
    logic.shift_right_logical_p: ("arith.shrui", "arith.shrui"),
    logic.shift_right_arithmetic_p: ("arith.shrsi", "arith.shrsi"),
}.items():
    RULES[_primitive] = _binary(*_names)

# The numbers of the predicates of `arith.cmpf` (ordered, but for "not equal") and `arith.cmpi` (signed, unsigned).
for _primitive, _numbers in {
    logic.eq_p: (1, 0, 0),
    logic.ne_p: (13, 1, 1),
    logic.gt_p: (2, 4, 8),
    logic.ge_p: (3, 5, 9),
    logic.lt_p: (4, 2, 6),
    logic.le_p: (5, 3, 7),
}.items():

    def _compare(emitter: Emitter, eqn: Any, operands: list[Any], numbers: Any = _numbers) -> list[Value]:
        x, y = _same_shape(emitter, operands)
        result = ShapedArray(x.shape, np.dtype(bool))
        if x.is_float:
            return [emitter.value("arith.cmpf", (x, y), result, f"{_FAST}, predicate = {numbers[0]} : i64")]
        number = numbers[1] if x.is_signed else numbers[2]
        return [emitter.value("arith.cmpi", (x, y), result, f"predicate = {number} : i64")]

    RULES[_primitive] = _compare


def _in_float32(emitter: Emitter, x: Value, compute: Callable[[Value], Value]) -> Value:
    """A function of a number of 16 bits, computed in 32."""
    if x.dtype.itemsize >= 4:
        return compute(x)
    return convert(emitter, compute(convert(emitter, x, np.dtype(np.float32))), x.dtype)


def _function(name: str) -> Callable:
    """A function of NVIDIA's library."""

    def lower(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
        operands = _same_shape(emitter, operands)
        wide = np.dtype(np.float32) if operands[0].dtype.itemsize < 4 else operands[0].dtype
        given = [convert(emitter, x, wide) for x in operands]
        symbol = f"__nv_{name}{'f' if wide.itemsize == 4 else ''}"
        text = f'libname = "", libpath = "", pure = true, symbol = "{symbol}"'
        result = emitter.value("tt.extern_elementwise", given, ShapedArray(given[0].shape, wide), text)
        return [convert(emitter, result, operands[0].dtype)]

    return lower


for _primitive, _name in {
    transcendental.tanh_p: "tanh",
    transcendental.expm1_p: "expm1",
    transcendental.log1p_p: "log1p",
    transcendental.pow_p: "pow",
    transcendental.tan_p: "tan",
    transcendental.asin_p: "asin",
    transcendental.acos_p: "acos",
    transcendental.atan_p: "atan",
    transcendental.atan2_p: "atan2",
    transcendental.sinh_p: "sinh",
    transcendental.cosh_p: "cosh",
    transcendental.asinh_p: "asinh",
    transcendental.acosh_p: "acosh",
    transcendental.atanh_p: "atanh",
    arithmetic.cbrt_p: "cbrt",
    special.erf_p: "erf",
    special.erfc_p: "erfc",
    arithmetic.nextafter_p: "nextafter",
}.items():
    RULES[_primitive] = _function(_name)


def _math(name: str) -> Callable:
    def lower(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
        (x,) = operands
        return [_in_float32(emitter, x, lambda y: emitter.value(name, (y,), y, _FAST))]

    return lower


for _primitive, _name in {
    transcendental.exp_p: "math.exp",
    transcendental.exp2_p: "math.exp2",
    transcendental.log_p: "math.log",
    transcendental.sin_p: "math.sin",
    transcendental.cos_p: "math.cos",
    arithmetic.sqrt_p: "math.sqrt",
    arithmetic.rsqrt_p: "math.rsqrt",
    arithmetic.floor_p: "math.floor",
    arithmetic.ceil_p: "math.ceil",
}.items():
    RULES[_primitive] = _math(_name)


@rule(elementwise.neg_p)
def _neg(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
    (x,) = operands
    zero = emitter.constant(-0.0 if x.is_float else 0, x.dtype, x.shape)
    name, properties = ("arith.subf", _FAST) if x.is_float else ("arith.subi", _WRAP)
    return [emitter.value(name, (zero, x), x, properties)]


@rule(arithmetic.abs_p)
def _abs(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
    (x,) = operands
    if x.is_float:
        return [emitter.value("math.absf", (x,), x, _FAST)]
    return [emitter.value("math.absi", (x,), x)] if x.is_signed else [x]


@rule(arithmetic.sign_p)
def _sign(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
    (x,) = operands
    zero = emitter.constant(0, x.dtype, x.shape)
    is_more = compare(emitter, logic.gt_p, x, zero)
    is_less = compare(emitter, logic.lt_p, x, zero)
    one = emitter.constant(1, x.dtype, x.shape)
    less = select(emitter, is_less, emitter.constant(-1, x.dtype, x.shape), x if x.is_float else zero)
    if not x.is_signed:
        less = zero
    return [select(emitter, is_more, one, less)]


@rule(arithmetic.square_p)
def _square(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
    return [multiply(emitter, operands[0], operands[0])]


@rule(arithmetic.integer_pow_p)
def _integer_pow(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
    (x,) = operands
    y = eqn.params["y"]
    result: Value | None = None
    power, rest = x, abs(y)
    while rest:
        if rest & 1:
            result = power if result is None else multiply(emitter, result, power)
        rest >>= 1
        if rest:
            power = multiply(emitter, power, power)
    if result is None:
        return [emitter.constant(1, x.dtype, x.shape)]
    if y < 0:
        one = emitter.constant(1, x.dtype, x.shape)
        return [emitter.value("arith.divf", (one, result), x, _FAST)]
    return [result]


def multiply(emitter: Emitter, x: Value, y: Value) -> Value:
    """x * y."""
    return (
        emitter.value("arith.mulf", (x, y), x, _FAST)
        if x.is_float
        else emitter.value("arith.muli", (x, y), x, _WRAP)
    )


@rule(transcendental.logistic_p)
def _logistic(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
    def compute(x: Value) -> Value:
        one = emitter.constant(1, x.dtype, x.shape)
        (minus,) = _neg(emitter, eqn, [x])
        power = emitter.value("math.exp", (minus,), x, _FAST)
        return emitter.value(
            "arith.divf", (one, emitter.value("arith.addf", (one, power), x, _FAST)), x, _FAST
        )

    return [_in_float32(emitter, operands[0], compute)]


@rule(logic.not_p)
def _not(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
    (x,) = operands
    ones = emitter.constant(True if dtypes.is_boolean(x.dtype) else -1, x.dtype, x.shape)
    return [emitter.value("arith.xori", (x, ones), x)]


@rule(logic.is_finite_p)
def _is_finite(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
    (x,) = operands
    size = emitter.value("math.absf", (x,), x, _FAST)
    return [compare(emitter, logic.lt_p, size, emitter.constant(np.inf, x.dtype, x.shape))]


def compare(emitter: Emitter, primitive: Any, x: Value, y: Value) -> Value:
    """A comparison of two values."""
    return RULES[primitive](emitter, None, [x, y])[0]  # type: ignore[arg-type]


def select(emitter: Emitter, which: Value, x: Value, y: Value) -> Value:
    """x where a condition holds, y elsewhere."""
    operands = _same_shape(emitter, (which, x, y))
    return emitter.value("arith.select", operands, operands[1])


@rule(logic.select_n_p)
def _select_n(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
    which, *cases = operands
    if dtypes.is_boolean(which.dtype):
        return [select(emitter, which, cases[1], cases[0])]
    result = cases[0]
    for i, each in enumerate(cases[1:], 1):
        here = compare(emitter, logic.eq_p, which, emitter.constant(i, which.dtype, which.shape))
        result = select(emitter, here, each, result)
    return [result]


@rule(logic.clamp_p)
def _clamp(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
    low, x, high = operands
    (above,) = RULES[arithmetic.max_p](emitter, eqn, [x, low])
    return list(RULES[arithmetic.min_p](emitter, eqn, [above, high]))


@rule(conversion.convert_element_type_p)
def _convert(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
    return [convert(emitter, operands[0], np.dtype(eqn.params["new_dtype"]))]


def convert(emitter: Emitter, x: Value, dtype: np.dtype) -> Value:
    """x as another dtype."""
    if x.dtype == dtype:
        return x
    result = ShapedArray(x.shape, dtype)
    if dtypes.is_boolean(dtype):
        return compare(emitter, logic.ne_p, x, emitter.constant(0, x.dtype, x.shape))
    from_float, to_float = x.is_float, dtypes.is_floating(dtype)
    if from_float and to_float:
        if x.dtype.itemsize == dtype.itemsize:
            return convert(emitter, convert(emitter, x, np.dtype(np.float32)), dtype)
        if x.dtype.itemsize < dtype.itemsize:
            return emitter.value("arith.extf", (x,), result)
        return emitter.value("arith.truncf", (x,), result)
    if from_float:
        return emitter.value("arith.fptoui" if dtypes.is_unsigned(dtype) else "arith.fptosi", (x,), result)
    if to_float:
        return emitter.value("arith.sitofp" if x.is_signed else "arith.uitofp", (x,), result)
    if element_bits(x.dtype) == element_bits(dtype):
        return Value(x.name, x.shape, dtype)
    if element_bits(x.dtype) > element_bits(dtype):
        return emitter.value("arith.trunci", (x,), result, _WRAP)
    return emitter.value("arith.extsi" if x.is_signed else "arith.extui", (x,), result)


def element_bits(dtype: np.dtype) -> int:
    """The bits of an element."""
    return 1 if dtypes.is_boolean(dtype) else dtype.itemsize * 8


@rule(conversion.bitcast_convert_type_p)
def _bitcast(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
    (x,) = operands
    out = eqn.outvars[0].aval
    if x.dtype.itemsize != out.dtype.itemsize:
        raise emitter.fail("a bitcast between dtypes of different sizes is not lowered")
    if not x.is_float and not dtypes.is_floating(out.dtype):
        return [Value(x.name, x.shape, out.dtype)]
    return [emitter.value("tt.bitcast", (x,), out)]


@rule(stop_gradient_p, arithmetic.copy_p)
def _same(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Any]:
    return [operands[0]]


def expand(emitter: Emitter, x: Value, axis: int) -> Value:
    """x with one more axis, of size one."""
    shape = (*x.shape[:axis], 1, *x.shape[axis:])
    if not x.shape:
        return emitter.splat(x, shape)
    return emitter.value("tt.expand_dims", (x,), ShapedArray(shape, x.dtype), f"axis = {axis} : i32")


def broadcast(emitter: Emitter, x: Value, shape: Sequence[int]) -> Value:
    """x, whose axes of size one are repeated."""
    if x.shape == tuple(shape):
        return x
    if not x.shape:
        return emitter.splat(x, shape)
    emitter.check(shape)
    return emitter.value("tt.broadcast", (x,), ShapedArray(tuple(shape), x.dtype))


@rule(broadcasting.broadcast_in_dim_p)
def _broadcast_in_dim(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
    (x,) = operands
    shape, dims = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    if not x.shape:
        return [emitter.splat(x, shape)]
    for axis in range(len(shape)):
        if axis not in dims:
            x = expand(emitter, x, axis)
    return [broadcast(emitter, x, shape)]


@rule(reshaping.reshape_p, reshaping.squeeze_p)
def _reshape(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
    return [reshape(emitter, operands[0], eqn.outvars[0].aval.shape)]


def reshape(emitter: Emitter, x: Value, shape: Sequence[int]) -> Value:
    """x in another shape."""
    shape = tuple(shape)
    if x.shape == shape:
        return x
    if not x.shape:
        return emitter.splat(x, shape)
    if not shape:
        while x.shape:
            x = reduce(emitter, x, 0, elementwise.add_p)
        return x
    emitter.check(shape)
    without = [n for n in x.shape if n != 1]
    if without == [n for n in shape if n != 1] and len(shape) == len(x.shape) + 1:
        for axis, n in enumerate(shape):
            if n == 1 and (*shape[:axis], *shape[axis + 1 :]) == x.shape:
                return expand(emitter, x, axis)
    return emitter.value("tt.reshape", (x,), ShapedArray(shape, x.dtype))


@rule(broadcasting.transpose_p)
def _transpose(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
    return [transpose(emitter, operands[0], eqn.params["permutation"])]


def transpose(emitter: Emitter, x: Value, order: Sequence[int]) -> Value:
    """x with its axes in another order."""
    shape = tuple(x.shape[i] for i in order)
    text = f"order = array<i32: {', '.join(map(str, order))}>"
    return emitter.value("tt.trans", (x,), ShapedArray(shape, x.dtype), text)


@rule(reshaping.iota_p)
def _iota(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
    shape, axis = eqn.params["shape"], eqn.params["dimension"]
    size = shape[axis]
    emitter.check(shape)
    int32 = np.dtype(np.int32)
    if size == 1:
        steps = emitter.constant(0, int32, (1,))
    else:
        text = f"end = {size} : i32, start = 0 : i32"
        steps = emitter.value("tt.make_range", (), ShapedArray((size,), int32), text)
    for each in range(len(shape)):
        if each != axis:
            steps = expand(emitter, steps, each)
    return [convert(emitter, broadcast(emitter, steps, shape), np.dtype(eqn.params["dtype"]))]


def reduce(emitter: Emitter, x: Value, axis: int, combine: Any) -> Value:
    """x combined along an axis by a primitive of two operands."""
    if x.shape[axis] == 1 and len(x.shape) > 1:
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        return emitter.value("tt.reshape", (x,), ShapedArray(shape, x.dtype))
    inner = emitter.inner()
    a, b = Value(inner.name(), (), x.dtype), Value(inner.name(), (), x.dtype)
    (result,) = RULES[combine](inner, None, [a, b])  # type: ignore[arg-type]
    inner.op("tt.reduce.return", [(result.name, result.type)], [])
    body = "\n".join(inner.lines)
    region = f"{{\n^bb0({a.name}: {a.type}, {b.name}: {b.type}):\n{body}\n}}"
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    (name,) = emitter.op(
        "tt.reduce", [(x.name, x.type)], [type_text(shape, x.dtype)], f"axis = {axis} : i32", [region]
    )
    return Value(name, shape, x.dtype)


for _primitive, _combine in {
    broadcasting.reduce_sum_p: elementwise.add_p,
    reduction.reduce_max_p: arithmetic.max_p,
    reduction.reduce_min_p: arithmetic.min_p,
    reduction.reduce_prod_p: elementwise.mul_p,
    reduction.reduce_and_p: logic.and_p,
    reduction.reduce_or_p: logic.or_p,
    reduction.reduce_xor_p: logic.xor_p,
}.items():

    def _reduce(emitter: Emitter, eqn: Any, operands: list[Any], combine: Any = _combine) -> list[Value]:
        (x,) = operands
        narrow = x.dtype if x.is_float and x.dtype.itemsize < 4 and combine is elementwise.add_p else None
        if narrow is not None:
            x = convert(emitter, x, np.dtype(np.float32))
        for axis in sorted(eqn.params["axes"], reverse=True):
            x = reduce(emitter, x, axis, combine)
        return [x if narrow is None else convert(emitter, x, narrow)]

    RULES[_primitive] = _reduce


@rule(dot_general_p)
def _dot(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
    x, y = operands
    ((left, right), batch) = eqn.params["dimension_numbers"]
    if batch != ((), ()) or len(x.shape) != 2 or len(y.shape) != 2 or len(left) != 1:
        raise emitter.fail(
            f"a product of shapes {x.shape} and {y.shape} over {left} and {right} is not lowered; kernels for GPUs "
            "multiply two matrices"
        )
    if left[0] == 0:
        x = transpose(emitter, x, (1, 0))
    if right[0] == 1:
        y = transpose(emitter, y, (1, 0))
    if min(x.shape + y.shape) < 16:
        raise emitter.fail(
            f"a product of shapes {x.shape} and {y.shape}: Triton's are of 16 rows and columns at least"
        )
    out = eqn.outvars[0].aval
    wide = np.dtype(np.float32) if x.is_float and out.dtype.itemsize < 4 else out.dtype
    zero = emitter.constant(0, wide, (x.shape[0], y.shape[1]))
    exact = "highest" in str(eqn.params.get("precision")).lower()
    text = f"inputPrecision = {2 if exact else 0} : i32, maxNumImpreciseAcc = 0 : i32"
    result = emitter.value("tt.dot", (x, y, zero), ShapedArray(zero.shape, wide), text)
    return [convert(emitter, result, out.dtype)]


# --- memory


def _addresses(emitter: Emitter, memory: Pointer, offsets: Value) -> tuple[str, str]:
    element = pointer_text(memory.dtype)
    base, pointers = memory.name, tensor_text(offsets.shape, element)
    if offsets.shape:
        emitter.check(offsets.shape)
        (base,) = emitter.op("tt.splat", [(memory.name, element)], [pointers])
    (name,) = emitter.op("tt.addptr", [(base, pointers), (offsets.name, offsets.type)], [pointers])
    return name, pointers


_CACHE = {None: 1, ".ca": 2, ".cg": 3}
_EVICTION = {None: 1, "evict_first": 2, "evict_last": 3}


def _hint(emitter: Emitter, table: dict[Any, int], given: Any, what: str) -> int:
    if given not in table:
        raise emitter.fail(f"{what} must be one of {', '.join(map(repr, table))}, got {given!r}")
    return table[given]


@rule(load_p)
def _load(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Value]:
    memory, offsets, *rest = operands
    address = _addresses(emitter, memory, offsets)
    stored = memory_dtype(memory.dtype)
    params = eqn.params
    text = (
        f"cache = {_hint(emitter, _CACHE, params['cache'], 'cache_modifier')} : i32, "
        f"evict = {_hint(emitter, _EVICTION, params['eviction'], 'eviction_policy')} : i32, "
        f"isVolatile = {'true' if params['volatile'] else 'false'}, "
        f"operandSegmentSizes = array<i32: 1, {len(rest[:1])}, {len(rest[1:])}>"
    )
    result = type_text(offsets.shape, stored)
    rest = [emitter.splat(x, offsets.shape) for x in rest]
    rest[1:] = [convert(emitter, x, stored) for x in rest[1:]]
    (name,) = emitter.op("tt.load", [address, *((x.name, x.type) for x in rest)], [result], text)
    return [convert(emitter, Value(name, offsets.shape, stored), memory.dtype)]


def _require_output(emitter: Emitter, memory: Pointer) -> None:
    if not memory.is_output:
        raise emitter.fail("the kernel writes an input; alias it to an output with `input_output_aliases`")


@rule(store_p)
def _store(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Any]:
    memory, offsets, value, *mask = operands
    _require_output(emitter, memory)
    address = _addresses(emitter, memory, offsets)
    value = convert(emitter, emitter.splat(value, offsets.shape), memory_dtype(memory.dtype))
    evict = _hint(emitter, _EVICTION, eqn.params["eviction"], "eviction_policy")
    given = [address, (value.name, value.type), *((x.name, x.type) for x in mask)]
    emitter.op("tt.store", given, [], f"cache = 1 : i32, evict = {evict} : i32")
    return [memory]


# The numbers of Triton's atomic operations: for integers (signed), unsigned ones and floats.
_ATOMICS = {
    "atomic_and": (1, 1, None),
    "atomic_or": (2, 2, None),
    "atomic_xor": (3, 3, None),
    "atomic_add": (4, 4, 5),
    "atomic_max": (6, 8, None),
    "atomic_min": (7, 9, None),
    "atomic_xchg": (10, 10, 10),
}


@rule(atomic_p)
def _atomic(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Any]:
    memory, offsets, value, *mask = operands
    _require_output(emitter, memory)
    signed, unsigned, floats = _ATOMICS[eqn.params["operation"]]
    number = floats if value.is_float else signed if value.is_signed else unsigned
    if number is None:
        raise emitter.fail(f"{eqn.params['operation']} of {value.dtype} is not lowered")
    address = _addresses(emitter, memory, offsets)
    value = emitter.splat(value, offsets.shape)
    given = [address, (value.name, value.type), *((x.name, x.type) for x in mask)]
    text = f"atomic_rmw_op = {number} : i32, scope = 1 : i32, sem = 4 : i32"
    (name,) = emitter.op("tt.atomic_rmw", given, [type_text(offsets.shape, memory.dtype)], text)
    return [memory, Value(name, offsets.shape, memory.dtype)]


# --- programs inside


@rule(jit_p)
def _jit(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Any]:
    closed = eqn.params["jaxpr"]
    return emit(emitter, closed.jaxpr, closed.consts, operands)


@rule(custom_jvp_call_p, custom_vjp_call_p)
def _call(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Any]:
    closed = eqn.params["call"]
    return emit(emitter, closed.jaxpr, closed.consts, operands)


def _region(
    emitter: Emitter, closed: ClosedJaxpr, args: list[Any], header: Sequence[Value], last: str, front: int = 0
) -> tuple[str, list[Any]]:
    """A program as a region with the arguments `header`; its results that are values are handed to `last`."""
    inner = emitter.inner()
    results = emit(inner, closed.jaxpr, closed.consts, args)[front:]
    kept = [x for x in results if isinstance(x, Value)]
    inner.op(last, [(x.name, x.type) for x in kept], [])
    arguments = ", ".join(f"{x.name}: {x.type}" for x in header)
    label = f"^bb0({arguments}):\n" if header else ""
    return f"{{\n{label}" + "\n".join(inner.lines) + "\n}", results


def _settled(emitter: Emitter, values: Sequence[Any], avals: Sequence[Any]) -> list[Any]:
    """What a loop begins with, in the types of its carry."""
    return [
        x if isinstance(x, Pointer) else emitter.splat(x, aval.shape)
        for x, aval in zip(values, avals, strict=True)
    ]


def _arguments(emitter: Emitter, carry: Sequence[Any]) -> tuple[list[Any], list[Value]]:
    """Names for what a loop carries, and those that are values."""
    named = [x if isinstance(x, Pointer) else Value(emitter.name(), x.shape, x.dtype) for x in carry]
    return named, [x for x in named if isinstance(x, Value)]


def _merged(carry: Sequence[Any], made: Sequence[str]) -> list[Any]:
    """The results of a loop: pointers stay what they are."""
    names = iter(made)
    return [x if isinstance(x, Pointer) else Value(next(names), x.shape, x.dtype) for x in carry]


def _for(emitter: Emitter, lower: Value, upper: Value, carry: list[Any], body: Callable) -> list[Any]:
    """A counted loop; `body(inner, i, carry)` writes an iteration and returns the new carry."""
    step = emitter.constant(1, np.dtype(np.int32))
    inner = emitter.inner()
    turn = Value(inner.name(), (), np.dtype(np.int32))
    named, values = _arguments(inner, carry)
    results = body(inner, turn, named)
    results = [
        x if isinstance(x, Pointer) else inner.splat(x, y.shape) for x, y in zip(results, carry, strict=True)
    ]
    kept = [x for x in results if isinstance(x, Value)]
    inner.op("scf.yield", [(x.name, x.type) for x in kept], [])
    header = ", ".join(f"{x.name}: {x.type}" for x in (turn, *values))
    region = f"{{\n^bb0({header}):\n" + "\n".join(inner.lines) + "\n}"
    begin = [x for x in carry if isinstance(x, Value)]
    operands = [(x.name, x.type) for x in (lower, upper, step, *begin)]
    made = emitter.op("scf.for", operands, [x.type for x in begin], "", [region])
    return _merged(carry, made)


@rule(scan_p)
def _scan(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Any]:
    params = eqn.params
    closed, consts, count = params["jaxpr"], params["num_consts"], params["num_carry"]
    if len(operands) != consts + count or len(eqn.outvars) != count:
        raise emitter.fail("a scan over the rows of arrays is not lowered; index references in a `fori_loop`")
    fixed, avals = operands[:consts], [v.aval for v in closed.jaxpr.invars[consts:]]
    carry = _settled(emitter, operands[consts:], avals)
    int32 = np.dtype(np.int32)

    def body(inner: Emitter, turn: Value, named: list[Any]) -> list[Any]:
        return emit(inner, closed.jaxpr, closed.consts, [*fixed, *named])

    lower, upper = emitter.constant(0, int32), emitter.constant(params["length"], int32)
    return _for(emitter, lower, upper, carry, body)


def _counted(
    closed: ClosedJaxpr, body: ClosedJaxpr, cond_nconsts: int, body_nconsts: int
) -> tuple[int, int] | None:
    """For a loop of `while carry[i] < carry[n]`, which adds one to the former and keeps the latter: i and n."""
    jaxpr = closed.jaxpr
    if len(jaxpr.eqns) != 1 or cond_nconsts or jaxpr.eqns[0].primitive is not logic.lt_p:
        return None
    (test,) = jaxpr.eqns
    if jaxpr.outvars[0] is not test.outvars[0] or any(type(v) is Literal for v in test.invars):
        return None
    arguments: list[Any] = list(jaxpr.invars)
    i, n = (arguments.index(v) for v in test.invars)
    inner = body.jaxpr
    carried = inner.invars[body_nconsts:]
    if inner.outvars[n] is not carried[n]:
        return None
    for eqn in inner.eqns:
        if eqn.outvars[0] is inner.outvars[i] and eqn.primitive is elementwise.add_p:
            x, y = eqn.invars
            if x is carried[i] and type(y) is Literal and np.all(np.asarray(y.val) == 1):
                return i, n
    return None


@rule(while_p)
def _while(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Any]:
    params = eqn.params
    condition, body = params["cond_jaxpr"], params["body_jaxpr"]
    nc, nb = params["cond_nconsts"], params["body_nconsts"]
    cond_consts, body_consts = operands[:nc], operands[nc : nc + nb]
    avals = [v.aval for v in body.jaxpr.invars[nb:]]
    carry = _settled(emitter, operands[nc + nb :], avals)
    counted = _counted(condition, body, nc, nb)
    if counted is not None and avals[counted[0]].dtype == np.int32:
        i, n = counted

        def iteration(inner: Emitter, turn: Value, named: list[Any]) -> list[Any]:
            now = list(named)
            now[i] = turn
            return emit(inner, body.jaxpr, body.consts, [*body_consts, *now])

        return _for(emitter, carry[i], carry[n], carry, iteration)
    before = emitter.inner()
    named, values = _arguments(before, carry)
    (holds,) = emit(before, condition.jaxpr, condition.consts, [*cond_consts, *named])
    before.op("scf.condition", [(x.name, x.type) for x in (holds, *values)], [])
    header = ", ".join(f"{x.name}: {x.type}" for x in values)
    first = f"{{\n^bb0({header}):\n" + "\n".join(before.lines) + "\n}"
    named, values = _arguments(emitter, carry)
    second, _ = _region(emitter, body, [*body_consts, *named], values, "scf.yield")
    begin = [(x.name, x.type) for x in carry if isinstance(x, Value)]
    made = emitter.op("scf.while", begin, [t for _, t in begin], "", [first, second])
    return _merged(carry, made)


@rule(cond_p)
def _cond(emitter: Emitter, eqn: Any, operands: list[Any]) -> list[Any]:
    index, *rest = operands
    branches = eqn.params["branches"]
    return _branch(emitter, index, list(branches), rest, 0)


def _branch(emitter: Emitter, index: Value, branches: list[Any], rest: list[Any], number: int) -> list[Any]:
    """The branches from a number on."""
    if len(branches) == 1:
        closed = branches[0]
        results = emit(emitter, closed.jaxpr, closed.consts, rest)
        return _settled(emitter, results, closed.out_avals)
    is_this = compare(emitter, logic.eq_p, index, emitter.constant(number, index.dtype))
    texts, results = [], []
    for some in (branches[:1], branches[1:]):
        inner = emitter.inner()
        results = _branch(inner, index, some, rest, number + 1)
        kept = [x for x in results if isinstance(x, Value)]
        inner.op("scf.yield", [(x.name, x.type) for x in kept], [])
        texts.append("{\n" + "\n".join(inner.lines) + "\n}")
    types = [x.type for x in results if isinstance(x, Value)]
    made = emitter.op("scf.if", [(is_this.name, is_this.type)], types, "", texts)
    return _merged(results, made)
