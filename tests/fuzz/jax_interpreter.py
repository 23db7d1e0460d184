"""jax's programs evaluated one primitive at a time, for programs that run once.

To compile a program takes jax longer than all the rest of a comparison. Here jax traces it, which decides all types and
which primitives there are, and does the arithmetic of each primitive; calls, loops and branches are Python's, and what
only moves elements is NumPy's. Elementwise primitives see flat arrays of few lengths, reductions rows, so that each is
compiled once for all programs; `random_bits` and `iota` depend on the number of an element only. What is not known here
raises `NotInterpreted`; the program is to be compiled then.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.extend.core as jax_core
import numpy as np

MOST_STEPS = 1000  # of a loop; longer ones are compiled


class NotInterpreted(Exception):
    """An equation that is not known here."""


def evaluate(program: jax_core.ClosedJaxpr, arguments: list[Any]) -> list[Any]:
    """The results of a program."""
    values: dict[Any, Any] = dict(zip(program.jaxpr.constvars, program.consts, strict=True))
    values.update(zip(program.jaxpr.invars, arguments, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, jax_core.Literal) else values[atom]

    for equation in program.jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        name, params = equation.primitive.name, equation.params
        if name in CALLS:
            results = CALLS[name](operands, params)
        elif any(isinstance(value, _PROGRAMS) for value in params.values()) and name not in WITH_FUNCTIONS:
            raise NotInterpreted(name)
        else:
            results = _apply(equation, operands)
        values.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in program.jaxpr.outvars]


def _apply(equation: Any, operands: list[Any]) -> list[Any]:
    """The results of a primitive without a program inside."""
    name, params = equation.primitive.name, equation.params
    if name == "iota":
        return [_iota(params)]
    if name == "random_bits" and _has_numbered_bits(operands[0]):
        return [_random_bits(equation, operands[0])]
    if name == "convert_element_type" and _is_exact_for_numpy(operands[0], params["new_dtype"]):
        return [np.asarray(operands[0]).astype(params["new_dtype"])]
    if not any(_is_opaque(variable) for variable in (*equation.invars, *equation.outvars)):
        if name in MOVES:
            shape = equation.outvars[0].aval.shape
            found = MOVES[name]([np.asarray(x) for x in operands], params, shape)
            return found if equation.primitive.multiple_results else [found]
        if name in ELEMENTWISE:
            return [_elementwise(equation, operands)]
        if name in REDUCTIONS and operands[0].ndim != len(params["axes"]):
            return [_reduction(equation, operands[0])]
    found = equation.primitive.bind(*operands, **params)
    return found if equation.primitive.multiple_results else [found]


def _is_opaque(variable: Any) -> bool:
    return not isinstance(variable.aval.dtype, np.dtype)  # keys


def _iota(params: dict[str, Any]) -> np.ndarray:
    shape, axis = params["shape"], params["dimension"]
    numbers = np.arange(shape[axis]).astype(params["dtype"])
    return np.broadcast_to(numbers.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)


def _has_numbered_bits(key: Any) -> bool:
    return bool(jax.config.jax_threefry_partitionable) and key.ndim == 0 and "fry" in str(key.dtype)


def _random_bits(equation: Any, key: Any) -> np.ndarray:
    """Partitionable bits: each element follows from its number."""
    shape = equation.params["shape"]
    count = math.prod(shape)
    found = equation.primitive.bind(key, **{**equation.params, "shape": (_padded(count),)})
    return np.asarray(found)[:count].reshape(shape)


def _is_exact_for_numpy(x: Any, dtype: Any) -> bool:
    """Whether NumPy converts as XLA does: between integers, and to wider floating point numbers."""
    if not isinstance(dtype, np.dtype) or not isinstance(x.dtype, np.dtype):
        return False
    if x.dtype == dtype:
        return True
    if x.dtype.kind in "biu" and x.dtype.itemsize * 8 <= 32:
        return dtype in (np.float32, np.complex64) or dtype.kind in "iu"
    return str(x.dtype) in ("float16", "bfloat16", "float32") and dtype in (np.float32, np.complex64)


def _padded(count: int) -> int:
    """The length of the array that `count` elements are put into."""
    return next((n for n in (64, 2048) if n >= count), count)


def _elementwise(equation: Any, operands: list[Any]) -> np.ndarray:
    shape = equation.outvars[0].aval.shape
    count = math.prod(shape)
    length = _padded(count)
    flat = []
    for x in operands:
        x = np.asarray(x)
        x = x.reshape(-1) if x.shape == shape else np.broadcast_to(x, shape).reshape(-1)
        flat.append(np.resize(x, length) if x.size else np.zeros(length, x.dtype))
    return np.asarray(equation.primitive.bind(*flat, **equation.params))[:count].reshape(shape)


def _reduction(equation: Any, x: Any) -> np.ndarray:
    axes, shape = equation.params["axes"], equation.outvars[0].aval.shape
    x = np.asarray(x)
    kept = [i for i in range(x.ndim) if i not in axes]
    rows = x.transpose([*kept, *axes]).reshape(math.prod(shape), -1)
    count = -(-len(rows) // 8) * 8
    padded = np.zeros((count, rows.shape[1]), rows.dtype)
    padded[: len(rows)] = rows
    found = equation.primitive.bind(padded, **{**equation.params, "axes": (1,)})
    return np.asarray(found)[: len(rows)].reshape(shape)


_PROGRAMS = (jax_core.Jaxpr, jax_core.ClosedJaxpr)
# Reductions and scatters carry the function that combines two elements.
WITH_FUNCTIONS = (
    "scatter",
    "scatter-add",
    "scatter_add",
    "scatter_mul",
    "scatter_min",
    "scatter_max",
    "reduce",
)


def _call(name: str) -> Callable[[list[Any], dict[str, Any]], list[Any]]:
    def call(operands: list[Any], params: dict[str, Any]) -> list[Any]:
        program = params[name]
        if isinstance(program, jax_core.Jaxpr):
            program = jax_core.ClosedJaxpr(program, ())
        return evaluate(program, operands)

    return call


def _cond(operands: list[Any], params: dict[str, Any]) -> list[Any]:
    branches = params["branches"]
    index = min(max(int(operands[0]), 0), len(branches) - 1)
    return evaluate(branches[index], operands[1:])


def _while(operands: list[Any], params: dict[str, Any]) -> list[Any]:
    first, second = params["cond_nconsts"], params["body_nconsts"]
    of_condition, of_body = operands[:first], operands[first : first + second]
    carry = operands[first + second :]
    for _ in range(MOST_STEPS):
        if not bool(evaluate(params["cond_jaxpr"], [*of_condition, *carry])[0]):
            return carry
        carry = evaluate(params["body_jaxpr"], [*of_body, *carry])
    raise NotInterpreted("while")


def _scan(operands: list[Any], params: dict[str, Any]) -> list[Any]:
    program, length = params["jaxpr"], params["length"]
    first, second = params["num_consts"], params["num_consts"] + params["num_carry"]
    constants, carry, rows = operands[:first], operands[first:second], operands[second:]
    if not 0 < length <= MOST_STEPS:
        raise NotInterpreted("scan")
    outputs: list[list[Any]] = [[]] * length
    for step in reversed(range(length)) if params["reverse"] else range(length):
        results = evaluate(program, [*constants, *carry, *(_row(x, step) for x in rows)])
        carry, outputs[step] = results[: len(carry)], results[len(carry) :]
    return [*carry, *(_stack(column) for column in zip(*outputs, strict=True))]


def _row(x: Any, step: int) -> Any:
    return x[step]


def _stack(column: tuple[Any, ...]) -> Any:
    if not isinstance(column[0].dtype, np.dtype):  # keys
        return jax.numpy.stack(column)
    return np.stack([np.asarray(x) for x in column])


CALLS: dict[str, Callable[[list[Any], dict[str, Any]], list[Any]]] = {
    "jit": _call("jaxpr"),
    "pjit": _call("jaxpr"),
    "closed_call": _call("call_jaxpr"),
    "core_call": _call("call_jaxpr"),
    "custom_jvp_call": _call("call_jaxpr"),
    "custom_vjp_call": _call("call_jaxpr"),
    "custom_vmap_call": _call("call"),
    "remat2": _call("jaxpr"),
    "checkpoint": _call("jaxpr"),
    "cond": _cond,
    "while": _while,
    "scan": _scan,
}


# --- what only moves elements


def _pad(operands: list[np.ndarray], params: dict[str, Any], shape: tuple[int, ...]) -> np.ndarray:
    x, value = operands
    spread = [
        n + max(n - 1, 0) * inner for n, (_, _, inner) in zip(x.shape, params["padding_config"], strict=True)
    ]
    wide = np.full(spread, value, x.dtype)
    wide[tuple(slice(None, None, inner + 1) for _, _, inner in params["padding_config"])] = x
    grown = [(max(low, 0), max(high, 0)) for low, high, _ in params["padding_config"]]
    wide = np.pad(wide, grown, constant_values=value) if x.ndim else wide
    kept = [(max(-low, 0), max(-high, 0)) for low, high, _ in params["padding_config"]]
    return wide[tuple(slice(low, n - high) for n, (low, high) in zip(wide.shape, kept, strict=True))]


def _broadcast(operands: list[np.ndarray], params: dict[str, Any], shape: tuple[int, ...]) -> np.ndarray:
    x = operands[0]
    sizes = [1] * len(shape)
    for size, axis in zip(x.shape, params["broadcast_dimensions"], strict=True):
        sizes[axis] = size
    return np.broadcast_to(x.reshape(sizes), shape)


def _reshape(operands: list[np.ndarray], params: dict[str, Any], shape: tuple[int, ...]) -> np.ndarray:
    order = params.get("dimensions")
    return (operands[0] if order is None else operands[0].transpose(order)).reshape(shape)


def _split(operands: list[np.ndarray], params: dict[str, Any], shape: tuple[int, ...]) -> list[np.ndarray]:
    return np.split(operands[0], np.cumsum(params["sizes"])[:-1], params["axis"])


def _slice(operands: list[np.ndarray], params: dict[str, Any], shape: tuple[int, ...]) -> np.ndarray:
    strides = params["strides"] or (1,) * len(shape)
    bounds = zip(params["start_indices"], params["limit_indices"], strides, strict=True)
    return operands[0][tuple(slice(*bound) for bound in bounds)]


def _select(operands: list[np.ndarray], params: dict[str, Any], shape: tuple[int, ...]) -> np.ndarray:
    which, *cases = operands
    return np.choose(np.broadcast_to(which.astype(np.int32), shape), cases)


MOVES: dict[str, Callable[[list[np.ndarray], dict[str, Any], tuple[int, ...]], Any]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": lambda operands, params, shape: operands[0].reshape(shape),
    "transpose": lambda operands, params, shape: operands[0].transpose(params["permutation"]),
    "rev": lambda operands, params, shape: np.flip(operands[0], params["dimensions"]),
    "concatenate": lambda operands, params, shape: np.concatenate(operands, params["dimension"]),
    "stack": lambda operands, params, shape: np.stack(operands, params["axis"]),
    "pad": _pad,
    "slice": _slice,
    "split": _split,
    "select_n": _select,
    "stop_gradient": lambda operands, params, shape: operands[0],
    "copy": lambda operands, params, shape: operands[0],
}
ELEMENTWISE = frozenset(
    "abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil clamp complex conj convert_element_type cos "
    "cosh digamma div eq erf erf_inv erfc exp exp2 expm1 floor ge gt imag integer_pow is_finite le lgamma log log1p "
    "logistic lt max min mul ne neg nextafter not or pow real reduce_precision rem round rsqrt shift_left "
    "shift_right_arithmetic shift_right_logical sign sin sinh sqrt square sub tan tanh xor bitcast_convert_type".split()
)
REDUCTIONS = ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_or", "reduce_and")
