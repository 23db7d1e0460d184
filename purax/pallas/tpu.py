"""`purax.pallas.tpu`: the names that kernels for TPUs use. Such kernels run as XLA programs over their grid.

There is no Mosaic compiler here: for a TPU itself a kernel is run with `interpret=True`.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax import lax
from purax import numpy as jnp
from purax.core.source import located
from purax.pallas import language, specs
from purax.pallas.absent import absent_class, absent_function, own_names
from purax.pallas.copies import (
    AsyncCopyDescriptor,
    async_copy,
    emit_pipeline,
    make_async_copy,
    remote_copy,
    sync_copy,
)
from purax.pallas.settings import State
from purax.pallas.specs import PrefetchScalarGridSpec, memory_ref
from purax.xla import client

_MODULE = "purax.pallas.tpu"


class MemorySpace(enum.Enum):
    """The memories of a TPU. Calling one gives a type for scratch memory.

    >>> import purax.numpy as jnp
    >>> from purax.pallas import tpu
    >>> tpu.VMEM((8, 128), jnp.float32)
    MemoryRef(f32[8,128], vmem)
    """

    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    HBM = "hbm"

    def __str__(self) -> str:
        return self.value

    def __call__(self, shape: Sequence[int], dtype: Any) -> specs.MemoryRef:
        return memory_ref(shape, dtype, self)


VMEM, VMEM_SHARED, SMEM = MemorySpace.VMEM, MemorySpace.VMEM_SHARED, MemorySpace.SMEM
CMEM, SEMAPHORE, HBM = MemorySpace.CMEM, MemorySpace.SEMAPHORE, MemorySpace.HBM
ANY = specs.MemorySpace.ANY


class _SemaphoreMemory(specs.MemoryRef):
    is_zero = True


class SemaphoreType(enum.Enum):
    """Kinds of semaphores. Calling one gives a type for scratch memory.

    >>> from purax.pallas import tpu
    >>> tpu.SemaphoreType.DMA((2,)).shape
    (2,)
    """

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    def __call__(self, shape: Sequence[int] = ()) -> specs.MemoryRef:
        plain = memory_ref(shape, np.int32, MemorySpace.SEMAPHORE)
        return _SemaphoreMemory(plain.inner_aval, plain.memory_space)


class GridDimensionSemantics(enum.Enum):
    """Whether steps along an axis of the grid may run in any order.

    >>> from purax.pallas import tpu
    >>> tpu.PARALLEL.value
    'parallel'
    """

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL, ARBITRARY = GridDimensionSemantics.PARALLEL, GridDimensionSemantics.ARBITRARY
CORE_PARALLEL = GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL = GridDimensionSemantics.SUBCORE_PARALLEL


class BufferType(enum.Enum):
    """What a buffer of a pipeline is for.

    >>> from purax.pallas import tpu
    >>> tpu.BufferType.INPUT.value
    1
    """

    INPUT = 1
    OUTPUT = 2
    INPUT_OUTPUT = 3
    MANUAL = 4


class CoreType(enum.Enum):
    """Kinds of cores of a TPU.

    >>> from purax.pallas import tpu
    >>> tpu.CoreType.TC.value
    'tc'
    """

    TC = "tc"
    SC_SCALAR_SUBCORE = "sc_scalar_subcore"
    SC_VECTOR_SUBCORE = "sc_vector_subcore"


class ChipVersion(enum.Enum):
    """Kinds of TPUs.

    >>> from purax.pallas import tpu
    >>> tpu.ChipVersion.TPU_V4.value
    'v4'
    """

    TPU_V2 = "v2"
    TPU_V3 = "v3"
    TPU_V4I = "v4i"
    TPU_V4 = "v4"
    TPU_V5E = "v5e"
    TPU_V5P = "v5p"
    TPU_V6E = "v6e"
    TPU_7 = "7"
    TPU_7X = "7x"
    TPU_8I = "8i"


class SideEffectType(enum.Enum):
    """What a kernel does besides computing its results.

    >>> from purax.pallas import tpu
    >>> tpu.SideEffectType.PURE.value
    'pure'
    """

    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    SIDE_EFFECTING = "side_effecting"


class Tiling(enum.Enum):
    """How arrays are laid out in memory.

    >>> from purax.pallas import tpu
    >>> tpu.Tiling.COMPACT.value
    1
    """

    COMPACT = 1
    SPARSE_CORE = 2


@dataclasses.dataclass(frozen=True)
class CompilerParams(specs.CompilerParams):
    """How Mosaic compiles a kernel. Here `dimension_semantics` tells the checking mode which steps are parallel.

    >>> from purax.pallas import tpu
    >>> tpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")).dimension_semantics
    ('parallel', 'arbitrary')
    """

    dimension_semantics: Sequence[Any] | None = None
    allow_input_fusion: Sequence[bool] | None = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: Any = False
    flags: Any = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class InterpretParams:
    """How a kernel is interpreted; with `detect_races=True` it runs in the checking mode (`pl.checking`).

    >>> from purax.pallas import tpu
    >>> tpu.InterpretParams(detect_races=True).detect_races
    True
    """

    detect_races: bool = False
    out_of_bounds_reads: str = "raise"
    skip_floating_point_ops: bool = False
    uninitialized_memory: str = "nan"
    num_cores_or_threads: int = 1
    vector_clock_size: int | None = None
    logging_mode: Any = None
    dma_execution_mode: str = "on_wait"
    random_seed: int | None = None
    grid_point_recorder: Any = None
    allow_hbm_allocation_in_run_scoped: bool = False
    buffer_bounds: str = "logical"


_interpreting = State(None)


def force_tpu_interpret_mode(params: InterpretParams = InterpretParams()) -> Any:  # noqa: B008
    """Inside the `with` block kernels are interpreted, as they are on the CPU anyway.

    >>> from purax.pallas import tpu
    >>> with tpu.force_tpu_interpret_mode():
    ...     pass
    """
    return _interpreting(params)


def set_tpu_interpret_mode(params: InterpretParams | None = InterpretParams()) -> None:  # noqa: B008
    """Kernels are interpreted from now on, as they are on the CPU anyway.

    >>> from purax.pallas import tpu
    >>> tpu.set_tpu_interpret_mode(None)
    """
    _interpreting.set(params)


def reset_tpu_interpret_mode_state() -> None:
    """Does nothing: interpreted kernels leave nothing behind.

    >>> from purax.pallas import tpu
    >>> tpu.reset_tpu_interpret_mode_state()
    """


class TensorCoreMesh:
    """The cores of a TPU, as a grid.

    Args:
        axis_name: of the axis of cores.
        num_cores: how many there are.

    >>> from purax.pallas import tpu
    >>> tpu.TensorCoreMesh(axis_name="core", num_cores=2).shape
    {'core': 2}
    """

    def __init__(self, axis_name: str, num_cores: int = 1):
        self.axis_name, self.num_cores = axis_name, num_cores

    @property
    def shape(self) -> dict[str, int]:
        return {self.axis_name: self.num_cores}


def create_tensorcore_mesh(
    axis_name: str, devices: Any = None, num_cores: int | None = None
) -> TensorCoreMesh:
    """The cores of a TPU; one where there is none.

    >>> from purax.pallas import tpu
    >>> tpu.create_tensorcore_mesh("core").shape
    {'core': 1}
    """
    return TensorCoreMesh(axis_name, 1 if num_cores is None else num_cores)


def is_tpu_device() -> bool:
    """Whether programs run on a TPU.

    >>> from purax.pallas import tpu
    >>> tpu.is_tpu_device()
    False
    """
    return client.default_backend() == "tpu"


def roll(x: Any, shift: Any, axis: int, *, stride: int | None = None, stride_axis: int | None = None) -> Any:
    """`jnp.roll`; with a stride, each position along `stride_axis` is rolled that much further than the one before.

    >>> import purax.numpy as jnp
    >>> from purax.pallas import tpu
    >>> tpu.roll(jnp.arange(4), 1, 0)
    Array([3, 0, 1, 2], dtype=int32)
    """
    if (stride is None) != (stride_axis is None):
        raise located(ValueError, "roll: give both stride and stride_axis, or neither")
    if stride is None or stride_axis is None:
        return jnp.roll(x, shift, axis)
    size = x.shape[axis]
    steps = lax.broadcasted_iota(jnp.int32, x.shape, stride_axis) * stride + shift
    here = lax.broadcasted_iota(jnp.int32, x.shape, axis)
    return jnp.take_along_axis(x, (here - steps) % size, axis)


def bitcast(x: Any, ty: Any) -> Any:
    """The bits of an array as another dtype; of another size, the last but one dimension shrinks or grows.

    >>> import purax.numpy as jnp
    >>> from purax.pallas import tpu
    >>> tpu.bitcast(jnp.ones((8, 128), jnp.float32), jnp.bfloat16).shape
    (16, 128)
    """
    new, old = jnp.dtype(ty), jnp.dtype(x.dtype)
    if new.itemsize == old.itemsize:
        return lax.bitcast_convert_type(x, new)
    if x.ndim < 2:
        raise located(
            ValueError, f"bitcast to a dtype of another size needs two dimensions, got shape {x.shape}"
        )
    moved = jnp.moveaxis(x, -2, -1)
    if new.itemsize < old.itemsize:
        parts = lax.bitcast_convert_type(moved, new)
        joined = parts.reshape((*parts.shape[:-2], -1))
    else:
        ratio = new.itemsize // old.itemsize
        joined = lax.bitcast_convert_type(moved.reshape((*moved.shape[:-1], -1, ratio)), new)
    return jnp.moveaxis(joined, -1, -2)


def load(ref: Any, *, mask: Any = None) -> Any:
    """Reads memory, where a mask is true.

    Args:
        ref: a reference, or a part of one, `ref.at[index]`.
        mask: bools; where they are false, what is read is not defined.

    >>> from purax.pallas import tpu
    >>> tpu.load.__name__
    'load'
    """
    return language.load(ref, mask=mask)


def store(ref: Any, val: Any, *, mask: Any = None) -> None:
    """Writes memory, where a mask is true.

    Args:
        ref: a reference, or a part of one, `ref.at[index]`.
        val: what is written.
        mask: bools; where they are false, the memory stays as it is.

    >>> from purax.pallas import tpu
    >>> tpu.store.__name__
    'store'
    """
    language.store(ref, val, mask=mask)


def with_memory_space_constraint(x: Any, memory_space: Any) -> Any:
    """`x`; where it is, XLA decides.

    >>> import purax.numpy as jnp
    >>> from purax.pallas import tpu
    >>> tpu.with_memory_space_constraint(jnp.ones(1), tpu.HBM)
    Array([1.], dtype=float32)
    """
    return x


def touch(ref: Any) -> None:
    """Does nothing: what a kernel reads and writes is known here.

    >>> from purax.pallas import tpu
    >>> tpu.touch(None)
    """


def trace_value(label: str, value: Any) -> None:
    """Does nothing: there is no trace of a TPU here.

    >>> from purax.pallas import tpu
    >>> tpu.trace_value("x", 1)
    """


_HARDWARE = (
    "works on the hardware of a TPU, which kernels here do not run on; use operations of `jnp` and `lax`"
)
_RANDOM = (
    "draws from the random generator of a TPU, which kernels here do not run on; pass a key to the kernel, or draw "
    "with `purax.random` outside of it"
)
for _name in (
    "core_barrier",
    "einshape",
    "emit_pipeline_with_allocations",
    "get_barrier_semaphore",
    "get_tpu_info",
    "get_tpu_info_for_chip",
    "matmul_acc_lhs",
    "matmul_pop",
    "matmul_push_rhs",
    "pack_elementwise",
    "run_on_first_core",
    "unpack_elementwise",
):
    globals()[_name] = absent_function(_MODULE, _name, _HARDWARE)
for _name in (
    "prng_random_bits",
    "prng_seed",
    "sample_block",
    "stateful_bernoulli",
    "stateful_bits",
    "stateful_normal",
    "stateful_uniform",
    "stochastic_round",
    "to_pallas_key",
):
    globals()[_name] = absent_function(_MODULE, _name, _RANDOM)
for _name in ("BufferedRef", "BufferedRefBase", "TpuInfo", "dma_semaphore"):
    globals()[_name] = absent_class(_MODULE, _name, _HARDWARE)


class LoweringException(Exception):
    """Raised by compilers for TPUs; nothing here raises it.

    >>> from purax.pallas import tpu
    >>> issubclass(tpu.LoweringException, Exception)
    True
    """


make_async_remote_copy = async_remote_copy = remote_copy

__all__ = [
    "ANY",
    "ARBITRARY",
    "CMEM",
    "CORE_PARALLEL",
    "HBM",
    "PARALLEL",
    "SEMAPHORE",
    "SMEM",
    "SUBCORE_PARALLEL",
    "VMEM",
    "VMEM_SHARED",
    "AsyncCopyDescriptor",
    "PrefetchScalarGridSpec",
    "async_copy",
    "async_remote_copy",
    "emit_pipeline",
    "make_async_copy",
    "make_async_remote_copy",
    "sync_copy",
]
__all__ += sorted(own_names(globals()))
