"""Kernels of our own for the CPU, where XLA's are slow: found, loaded, and called from programs.

They are a library in C++ (`purax/native`, built by `setup.py`) that may be missing: then `call` is never reached, since
`serves` says no, and programs are lowered to XLA's own operations, with equal results. The names under which XLA
knows the kernels carry the build of the library, and a compiled program on disk is found by its text, so that it never
meets another build. A program that is to run elsewhere calls none of them; one for several devices calls those that can
be partitioned along batch axes, and all where each device runs code of its own.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from purax.config import config
from purax.core.avals import ShapedArray
from purax.errors import JaxRuntimeError
from purax.xla import targets
from purax.xla.stablehlo import Builder, Value, integers, output_aliases

logger = logging.getLogger("purax")

FOLDER = Path(__file__).parent.parent / "native"
INTERFACE = 2  # what the lowering rules expect of the kernels; `purax_interface` in library.cc
KERNELS = (
    "sort", "top_k", "cumulative", "cholesky", "lu", "triangular_solve", "qr", "eigh", "svd", "concatenate",
    "convolution", "fft", "gather_rows", "sum_segments", "reduce", "vector_dot", "find_extremum", "product", "threefry",
    "row_program",
)  # fmt: skip


# Along an axis: positions are numbers of 32 bits in kernels that sort, and signed in results. Others are not served.
MOST_POSITIONS = (1 << 31) - 1

_library: ctypes.CDLL | None = None
# XLA's numbers of the dtypes that have an order.
_NUMBERS = {
    "bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7, "uint32": 8, "uint64": 9,
    "float16": 10, "float32": 11, "float64": 12, "bfloat16": 16,
}  # fmt: skip


@functools.cache
def build() -> str | None:
    """The name of the build in use, whose kernels XLA knows now; None if there is none for this machine."""
    library = _load()
    if library is None:
        return None
    if library.purax_interface() != INTERFACE:
        logger.warning(
            "the native kernels in %s are of another version of purax and are not used; build them again: make native",
            FOLDER,
        )
        return None
    library.purax_build.restype = ctypes.c_char_p
    name = library.purax_build().decode()
    global _library
    try:
        for kernel in KERNELS:
            targets.register(_target(kernel, name), targets.pycapsule(getattr(library, f"purax_{kernel}")))
    except (JaxRuntimeError, AttributeError) as error:
        logger.warning("the native kernels in %s are not used: %s", FOLDER, error)
        return None
    _library = library
    return name


def _load() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(str(FOLDER / "kernels.so"))
    except OSError as error:
        logger.debug("there are no native kernels: %s", error)
        return None


def registered(text: str) -> dict[str, str]:
    """The kernels by the names that a program calls them by, with their names in the library; none if it calls none."""
    if '"purax_' not in text and "@purax_" not in text:
        return {}
    name = build()
    return {} if name is None else {_target(kernel, name): f"purax_{kernel}" for kernel in KERNELS}


def is_available() -> bool:
    """Whether programs for one CPU device call native kernels.

    >>> is_available() in (True, False)
    True
    """
    return config.native_kernels and build() is not None


@functools.cache
def vector_bytes() -> int:
    """The length of the vectors that kernels for many small matrices work with; 0 if there are none."""
    if build() is None:
        return 0
    assert _library is not None
    return _library.purax_vector_bytes()


def instruction_set() -> str:
    """Which instructions the kernels use here, of those that they have forms for; only where there is a build."""
    return {64: "AVX-512", 32: "AVX2"}.get(vector_bytes(), "any processor of this kind")


def serves(builder: Builder, batch_axes: int = 0) -> bool:
    """Whether the program that is being lowered may call native kernels here.

    In a program over several devices it may where each device runs code of its own (a `shard_map` over all axes of the
    mesh), and calls that can be partitioned along `batch_axes` leading axes.
    """
    whole = builder.module.mesh is None or builder.is_local or batch_axes > 0
    return whole and builder.platform == "cpu" and is_available()


def leading_count(builder: Builder, count: int) -> int:
    """How a call that may be partitioned says how many arrays it is about: -1 where the kernel has to look."""
    return count if builder.module.mesh is None or builder.is_local else -1


@functools.cache
def multiplies_bfloats() -> bool:
    """Whether the processor multiplies bfloat16 itself; only where there is a build."""
    assert _library is not None
    return bool(_library.purax_multiplies_bfloats())


@functools.cache
def multiplies_tiles() -> bool:
    """Whether the processor multiplies tiles of bfloat16, as XLA does then; only where there is a build."""
    assert _library is not None
    return bool(_library.purax_multiplies_tiles())


def call(
    builder: Builder,
    kernel: str,
    operands: Sequence[Value],
    results: Sequence[ShapedArray],
    aliases: Sequence[tuple[int, int]] = (),
    batch_axes: int = 0,
    **attributes: int | bool | Sequence[int],
) -> list[Value]:
    """Calls a native kernel on arrays in row-major order; only where `serves`.

    Args:
        kernel: one of `KERNELS`.
        operands: the arrays that it reads.
        results: the types of the arrays that it writes.
        aliases: pairs of a result and the operand in whose place it is written; XLA copies that first if need
            be.
        batch_axes: how many leading axes a program over several devices may be partitioned along (`leading_count`).
        attributes: what else it is told: integers, booleans and lists of integers.
    """
    if not any([aval.size for aval in results]):  # kernels would go through axes, which can be of any length
        return [builder.constant(0, aval) for aval in results]
    name = build()
    assert name is not None
    config_text = ", ".join(f"{key} = {_attribute(value)}" for key, value in attributes.items())
    layouts = [", ".join(_row_major(x.ndim) for x in values) for values in (operands, results)]
    return builder.custom_call(
        _target(kernel, name),
        operands,
        results,
        backend_config=config_text,
        attributes=f"operand_layouts = [{layouts[0]}], result_layouts = [{layouts[1]}]"
        + (f", {output_aliases(aliases, len(results))}" if aliases else ""),
        batch_axes=0 if builder.is_local else batch_axes,
    )


def _attribute(value: int | bool | Sequence[int]) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value} : i64" if isinstance(value, int) else integers(value)


def _target(kernel: str, name: str) -> str:
    return f"purax_{kernel}_{name}"


def _row_major(ndim: int) -> str:
    order = ", ".join(map(str, reversed(range(ndim))))
    return f"dense<[{order}]> : tensor<{ndim}xindex>" if ndim else "dense<> : tensor<0xindex>"


# --- on the host


def sorted_array(x: np.ndarray, axis: int) -> np.ndarray | None:
    """`numpy.sort(x, axis)` where -0 comes before 0; None if the library does not serve it."""
    number = _NUMBERS.get(x.dtype.name)
    if number is None or x.shape[axis] > MOST_POSITIONS or not is_available():
        return None
    assert _library is not None
    x = np.ascontiguousarray(x)
    out = np.empty_like(x)
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    is_done = _library.purax_host_sort(
        number, _address(x), _address(out), *map(ctypes.c_int64, (outer, x.shape[axis], inner))
    )
    return out if _is_done(is_done) else None


def stable_order(x: np.ndarray, axis: int) -> np.ndarray | None:
    """`numpy.argsort(x, axis, kind="stable")` where -0 equals 0, or None as above."""
    number = _NUMBERS.get(x.dtype.name)
    if number is None or x.shape[axis] > MOST_POSITIONS or not is_available():
        return None
    assert _library is not None
    rows = np.ascontiguousarray(np.moveaxis(x, axis, -1))
    order = np.empty(rows.shape, np.uint32)
    sizes = map(ctypes.c_int64, (math.prod(rows.shape[:-1]), rows.shape[-1]))
    if not _is_done(_library.purax_host_argsort(number, _address(rows), _address(order), *sizes)):
        return None
    return np.moveaxis(order, -1, axis).astype(np.int64)


def _is_done(answer: int) -> bool:
    """Whether a function for arrays of NumPy did its work (`Answer` in sort.cc); False: it does not serve them."""
    if answer < 0:
        raise MemoryError("a native kernel got no memory")
    return answer > 0


def _address(x: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)
