"""Calling LAPACK: from the host through SciPy, from compiled programs through the kernels that XLA knows.

Both end in the same library, so an eager result equals a compiled one to the last bit, but for programs on many small
matrices, which a native kernel works on side by side (`native_batch`). Matrices stand in the last two
axes; all axes in front of them are a batch. LAPACK wants columns one after the other, which the layouts of a kernel's
operands say; where a factorization fails the results are NaN.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core.avals import ShapedArray
from purax.core.dtypes import dtype_name
from purax.xla import native
from purax.xla.callbacks import EngineCallback
from purax.xla.stablehlo import Builder, Value

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
COMPLEX64, COMPLEX128 = np.dtype(np.complex64), np.dtype(np.complex128)
INT32 = np.dtype(np.int32)
LETTERS = {FLOAT32: "s", FLOAT64: "d", COMPLEX64: "c", COMPLEX128: "z"}
_COMPLEX_NAMES = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "sytrd": "hetrd"}
GPU_PREFIXES = {"gpu": "cu", "cuda": "cu", "rocm": "hip"}

_REAL: dict[np.dtype, np.dtype] = {COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}
_COMPLEX: dict[np.dtype, np.dtype] = {FLOAT32: COMPLEX64, FLOAT64: COMPLEX128}

# A call through Python costs about as much as this many operations on elements.
CALL_COST = 200


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the real part."""
    return _REAL.get(dtype, dtype)


def complex_dtype(dtype: np.dtype) -> np.dtype:
    """The complex dtype with parts of `dtype`."""
    return _COMPLEX.get(dtype, dtype)


def is_complex(dtype: np.dtype) -> bool:
    return dtype is COMPLEX64 or dtype is COMPLEX128 or dtype.kind == "c"


# --- types


def check_matrix(name: str, x: ShapedArray, argument: str = "the argument", square: bool = False) -> None:
    """Raises the error that the user should read unless `x` holds matrices that LAPACK can work on."""
    if x.ndim < 2:
        raise TypeError(
            f"{name}: {argument} must have rank at least 2, a matrix in its last two axes, but has shape={x.shape}"
        )
    if square and x.shape[-1] != x.shape[-2]:
        raise ValueError(
            f"{name}: {argument} must have shape [..., n, n], a square matrix in its last two axes, but has shape "
            f"{x.shape}"
        )
    check_dtype(name, x, argument)


def check_dtype(name: str, x: ShapedArray, argument: str = "the argument") -> None:
    if x.dtype not in LETTERS:
        raise TypeError(
            f"{name} takes float32, float64, complex64 or complex128, but {argument} has dtype {dtype_name(x.dtype)}; "
            "convert it first: x.astype('float32')"
        )


def check_same(name: str, **operands: ShapedArray) -> None:
    """Raises unless the operands have one dtype."""
    if len({x.dtype for x in operands.values()}) > 1:
        types = ", ".join(f"{argument} {x.str_short()}" for argument, x in operands.items())
        raise TypeError(f"{name} needs operands of one dtype, got {types}; convert them with `.astype`")


def batch_work(x: ShapedArray, core: int = 2) -> int:
    """What a call for each matrix of a batch costs on the host."""
    return x.size + CALL_COST * math.prod(x.shape[:-core])


# --- on the host


@functools.cache
def _libraries() -> tuple[Any, Any]:
    from scipy.linalg import blas, lapack  # slow to import, and needed by those only who factorize something

    return lapack, blas


_routines: dict[tuple[str, np.dtype], Callable] = {}


def routine(name: str, dtype: np.dtype) -> Callable:
    """The routine of LAPACK or BLAS for a dtype: `routine("getrf", float32)` is sgetrf."""
    try:
        return _routines[name, dtype]
    except KeyError:
        pass
    full = LETTERS[dtype] + (_COMPLEX_NAMES.get(name, name) if is_complex(dtype) else name)
    lapack, blas = _libraries()
    found = getattr(lapack, full, None) or getattr(blas, full)
    _routines[name, dtype] = found
    return found


def over_batch(
    one: Callable[..., tuple], operands: Sequence[np.ndarray], cores: Sequence[int], infer: Callable
):
    """`one` on every matrix of a batch.

    Args:
        one: takes operands without batch axes and returns a tuple of arrays.
        operands: arrays whose first axes are the batch.
        cores: for each operand, the number of axes after those of the batch.
        infer: gives the types of the results, in case that these are empty.
    """
    first = operands[0]
    batch = first.shape[: first.ndim - cores[0]]
    if not batch:
        return one(*operands)
    count = math.prod(batch)
    if not all([x.size for x in operands]):  # such a batch can have any length
        avals = infer()
        if not any(aval.size for aval in avals):
            return tuple([np.empty(aval.shape, aval.dtype) for aval in avals])
    rows = [x.reshape(count, *x.shape[len(batch) :]) for x in operands]
    results = [one(*row) for row in zip(*rows, strict=True)]
    return tuple(
        [np.stack(parts).reshape(*batch, *parts[0].shape) for parts in map(list, zip(*results, strict=True))]
    )


def nan_like(x: np.ndarray) -> np.ndarray:
    """NaNs of the type of `x`."""
    return np.full(x.shape, complex(np.nan, np.nan) if x.dtype.kind == "c" else np.nan, x.dtype)


# --- in programs


def layout(ndim: int, batch: int) -> str:
    """The order of axes in memory, the innermost first: matrices by columns, all else by rows."""
    order = (
        [ndim - 2, ndim - 1, *range(ndim - 3, -1, -1)] if ndim - batch == 2 else [*range(ndim - 1, -1, -1)]
    )
    return (
        f"dense<[{', '.join(map(str, order))}]> : tensor<{ndim}xindex>"
        if ndim
        else "dense<> : tensor<0xindex>"
    )


def call_kernel(
    builder: Builder,
    target: str,
    operands: Sequence[Value],
    results: Sequence[ShapedArray],
    batch: int,
    config: str = "",
    aliases: Sequence[tuple[int, int]] = (),
) -> list[Value]:
    """Calls a kernel on a batch of matrices.

    Args:
        target: the name of the kernel.
        batch: the number of axes of the batch, which all operands and results begin with.
        config: what the kernel is told, as text.
        aliases: pairs of a result and the operand whose memory it takes over.
    """
    if not any([aval.size for aval in results]):  # kernels would go through the batch
        return [builder.constant(0, aval) for aval in results]
    orders = [", ".join([layout(x.ndim, batch) for x in values]) for values in (operands, results)]
    attributes = f"operand_layouts = [{orders[0]}], result_layouts = [{orders[1]}]"
    if aliases:
        single = len(results) == 1
        pairs = ", ".join(
            "#stablehlo.output_operand_alias<output_tuple_indices = "
            f"[{'' if single else result}], operand_index = {operand}, operand_tuple_indices = []>"
            for result, operand in aliases
        )
        attributes += f", output_operand_aliases = [{pairs}]"
    return builder.custom_call(
        target, operands, results, backend_config=config, attributes=attributes, batch_axes=batch
    )


_FEW_MATRICES, _SMALL = 8, 32
# What makes Jacobi's methods for many faster than LAPACK for each: matrices, bytes of a vector, bytes of a row.
_FEW_TO_ROTATE, _VECTOR_TO_ROTATE, _ROW_TO_ROTATE = 16, 32, 192


def native_batch(builder: Builder, x: Value, columns: int = 1, by_rotations: bool = False) -> int:
    """The number of matrices for native kernels, if they are many, small and real; else 0.

    Args:
        x: the matrices.
        columns: of the right side of a system.
        by_rotations: whether it is one of Jacobi's methods, which need more work than others.
    """
    if x.dtype not in (FLOAT32, FLOAT64) or not native.serves(builder, x.ndim - 2):
        return 0
    count = math.prod(x.shape[:-2])
    if by_rotations and (
        count < _FEW_TO_ROTATE
        or max(x.shape[-2:]) * x.dtype.itemsize > _ROW_TO_ROTATE
        or native.vector_bytes() < _VECTOR_TO_ROTATE
    ):
        return 0
    if (
        count < _FEW_MATRICES
        or not 0 < min(x.shape[-2:]) <= max(x.shape[-2:]) <= _SMALL
        or columns > 2 * _SMALL
    ):
        return 0
    return native.leading_count(builder, count)


def lapack_target(name: str, dtype: np.dtype) -> str:
    """The name of the CPU's kernel: `lapack_sgetrf_ffi`."""
    return f"lapack_{LETTERS[dtype]}{_COMPLEX_NAMES.get(name, name) if is_complex(dtype) else name}_ffi"


def gpu_target(builder: Builder, name: str) -> str:
    """The name of a GPU's kernel: `cusolver_getrf_ffi` for "solver_getrf_ffi"."""
    return GPU_PREFIXES[builder.platform] + name


def is_gpu(builder: Builder) -> bool:
    return builder.platform in GPU_PREFIXES


def unavailable(name: str, platform: str, x: ShapedArray | None = None) -> NotImplementedError:
    of = "" if x is None else f" of {x.str_short()}"
    return NotImplementedError(
        f"{name}{of} is not available on {platform}: there is no kernel for it. Compute it on the CPU: "
        "purax.device_put(x, purax.devices('cpu')[0])"
    )


def call_host(
    builder: Builder, primitive: Any, operands: Sequence[Value], params: dict[str, Any]
) -> list[Value]:
    """Emits a call of a primitive's `host` rule: its operands are copied to the host, its results back.

    It serves what a GPU's libraries do not have; the program stops there until the host is done.
    """
    if builder.platform != "cpu" and not is_gpu(builder):
        raise unavailable(primitive.name, builder.platform, operands[0].aval)
    found = primitive.infer(*[x.aval for x in operands], **params)
    avals = list(found) if primitive.multiple_results else [found]

    def function(*arrays: np.ndarray) -> list[np.ndarray]:
        results = primitive.host(*map(np.asarray, arrays), **params)
        return [np.asarray(x) for x in (results if primitive.multiple_results else [results])]

    callback = EngineCallback(function, avals, contextlib.nullcontext, builder.module.mesh is not None)
    index = builder.module.add_callback(callback)
    rows = [", ".join([layout(x.ndim, x.ndim) for x in values]) for values in (operands, avals)]
    return builder.custom_call(
        f"xla_ffi_python_{'cpu' if builder.platform == 'cpu' else 'gpu'}_callback",
        operands,
        avals,
        backend_config=f"index = {index} : ui64",
        attributes=f"operand_layouts = [{rows[0]}], result_layouts = [{rows[1]}]",
        on_one_device=True,
    )


def scalars(aval: ShapedArray, batch: int, dtype: np.dtype = INT32) -> ShapedArray:
    """The type of one number for each matrix of a batch."""
    return ShapedArray(aval.shape[:batch], dtype)


def nan_unless(builder: Builder, valid: Value, *values: Value) -> list[Value]:
    """Values with NaN for those elements of the batch that are not `valid`."""
    results = []
    for value in values:
        mask = builder.broadcast(valid, value.shape, range(valid.ndim))
        nan = complex(np.nan, np.nan) if is_complex(value.dtype) else np.nan
        results.append(builder.select(mask, value, builder.constant(nan, value.aval)))
    return results


def finite_only(builder: Builder, x: Value) -> tuple[Value, Value]:
    """Zeros for the matrices that hold NaN or infinity, for which some routines never end; and which do not."""
    absolute = builder.op("abs", (x,), x.aval.with_dtype(real_dtype(x.dtype)))
    finite = builder.op("is_finite", (absolute,), ShapedArray(x.shape, np.dtype(np.bool_)))
    valid = builder.reduce(finite, True, "and", (x.ndim - 2, x.ndim - 1))
    mask = builder.broadcast(valid, x.shape, range(valid.ndim))
    return builder.select(mask, x, builder.constant(0, x.aval)), valid


def succeeded(builder: Builder, info: Value, direction: str = "EQ") -> Value:
    """Whether LAPACK's return code says that all is well."""
    return builder.compare(direction, info, builder.constant(0, info.aval))


def code(letter: str) -> str:
    """A character as a kernel's attribute."""
    return f"{ord(letter)} : ui8"


def flag(value: bool) -> str:
    return "true" if value else "false"


def emit_width(builder, x, columns: int):
    """Emits `x` with fewer columns, or with more, of zeros."""
    if columns <= x.shape[-1]:
        return emit_window(builder, x, (*x.shape[:-1], columns))
    none = ", ".join(["0"] * x.ndim)
    high = ", ".join(["0"] * (x.ndim - 1) + [str(columns - x.shape[-1])])
    return builder.op(
        "pad",
        (x, builder.constant(0, ShapedArray((), x.dtype))),
        x.aval.with_shape((*x.shape[:-1], columns)),
        f"edge_padding_low = array<i64: {none}>, edge_padding_high = array<i64: {high}>, "
        f"interior_padding = array<i64: {none}>",
    )


def emit_window(builder, x, shape: tuple[int, ...]):
    """Emits the first elements of `x` along every axis."""
    if x.shape == tuple(shape):
        return x
    zeros, ones = ", ".join(["0"] * x.ndim), ", ".join(["1"] * x.ndim)
    limits = ", ".join(map(str, shape))
    return builder.op(
        "slice",
        (x,),
        x.aval.with_shape(tuple(shape)),
        f"start_indices = array<i64: {zeros}>, limit_indices = array<i64: {limits}>, strides = array<i64: {ones}>",
    )
