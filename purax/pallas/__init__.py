"""Kernels: functions of references to blocks of arrays, run for each step of a grid.

`pallas_call` makes a function of arrays from a kernel. On the CPU, and where `interpret=True` is given, a kernel
becomes one XLA program over its grid. The names are those of `jax.experimental.pallas`.
"""

from __future__ import annotations

from purax.errors import CheckedAccess, GridRace, UninitializedRead
from purax.pallas.call import pallas_call, pallas_call_p
from purax.pallas.checking import checking
from purax.pallas.context import num_programs, program_id
from purax.pallas.cost import estimate_cost
from purax.pallas.language import (
    align_to,
    broadcast_to,
    cdiv,
    debug_check,
    debug_print,
    delay,
    dot,
    empty,
    empty_like,
    empty_ref_like,
    load,
    loop,
    multiple_of,
    next_power_of_2,
    reciprocal,
    run_scoped,
    run_state,
    select_ref,
    semaphore_read,
    semaphore_signal,
    semaphore_wait,
    store,
    strides_from_shape,
    when,
    with_scoped,
)
from purax.pallas.mesh_kernel import core_map, kernel
from purax.pallas.platforms import DeviceIdType, get_global, lower_as_mlir, pallas_export_experimental
from purax.pallas.settings import enable_debug_checks, enable_poison_buffers
from purax.pallas.slices import Slice, ds, dslice
from purax.pallas.specs import (
    BlockDim,
    Blocked,
    BlockSpec,
    BoundedSlice,
    Buffered,
    CompilerParams,
    CostEstimate,
    Element,
    GridSpec,
    Indirect,
    MemoryRef,
    MemorySpace,
    RevisitMode,
    Squeezed,
    no_block_spec,
    squeezed,
)
from purax.pallas.tuning import autotune

ANY = MemorySpace.ANY
HOST = MemorySpace.HOST

__all__ = [
    "pallas_export_experimental",
    "lower_as_mlir",
    "get_global",
    "DeviceIdType",
    "ANY",
    "BlockDim",
    "BlockSpec",
    "Blocked",
    "BoundedSlice",
    "Buffered",
    "CheckedAccess",
    "CompilerParams",
    "CostEstimate",
    "Element",
    "GridRace",
    "GridSpec",
    "HOST",
    "Indirect",
    "MemoryRef",
    "MemorySpace",
    "RevisitMode",
    "Slice",
    "Squeezed",
    "UninitializedRead",
    "align_to",
    "autotune",
    "broadcast_to",
    "cdiv",
    "checking",
    "core_map",
    "debug_check",
    "debug_print",
    "delay",
    "dot",
    "ds",
    "dslice",
    "empty",
    "empty_like",
    "empty_ref_like",
    "enable_debug_checks",
    "enable_poison_buffers",
    "estimate_cost",
    "kernel",
    "load",
    "loop",
    "multiple_of",
    "next_power_of_2",
    "no_block_spec",
    "num_programs",
    "pallas_call",
    "pallas_call_p",
    "program_id",
    "reciprocal",
    "run_scoped",
    "run_state",
    "select_ref",
    "semaphore_read",
    "semaphore_signal",
    "semaphore_wait",
    "squeezed",
    "store",
    "strides_from_shape",
    "when",
    "with_scoped",
]
