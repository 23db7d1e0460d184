"""`purax.pallas.mosaic_gpu`: the names that kernels for Mosaic on GPUs use.

There is no Mosaic compiler here. Kernels that use only references, copies and blocks run as XLA programs; what names an
instruction of a GPU says so when it is used.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.core.source import located
from purax.pallas import specs
from purax.pallas.absent import absent_class, absent_function, own_names
from purax.pallas.copies import make_async_copy
from purax.pallas.mesh_kernel import kernel as _mesh_kernel
from purax.pallas.refs import as_memory
from purax.pallas.specs import memory_ref

_MODULE = "purax.pallas.mosaic_gpu"


class MemorySpace(enum.Enum):
    """The memories of a GPU. Calling one gives a type for scratch memory.

    >>> import purax.numpy as jnp
    >>> from purax.pallas import mosaic_gpu
    >>> mosaic_gpu.SMEM((64, 64), jnp.float16).shape
    (64, 64)
    """

    GMEM = "gmem"
    SMEM = "smem"
    TMEM = "tmem"
    REGS = "regs"

    def __str__(self) -> str:
        return self.value

    def __call__(
        self,
        shape: Sequence[int],
        dtype: Any,
        *,
        transforms: Sequence[Any] = (),
        packed: bool | None = None,
        collective: bool | None = None,
        layout: Any = None,
    ) -> specs.MemoryRef:
        return memory_ref(shape, dtype, self)


GMEM, SMEM, TMEM, REGS = MemorySpace.GMEM, MemorySpace.SMEM, MemorySpace.TMEM, MemorySpace.REGS


class _CounterMemory(specs.MemoryRef):
    is_zero = True


class SemaphoreType(enum.Enum):
    """Kinds of semaphores. Calling one gives a type for scratch memory.

    >>> from purax.pallas import mosaic_gpu
    >>> mosaic_gpu.SemaphoreType.REGULAR().shape
    ()
    """

    REGULAR = "regular"
    BARRIER = "barrier"

    def __call__(self, shape: Sequence[int] = ()) -> specs.MemoryRef:
        return _CounterMemory(memory_ref(shape, np.int32, SMEM).inner_aval, SMEM)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Barrier:
    """A barrier that copies and threads arrive at: scratch memory.

    >>> from purax.pallas import mosaic_gpu
    >>> mosaic_gpu.Barrier(num_barriers=2).scratch_type().shape
    (2,)
    """

    num_arrivals: int = 1
    num_barriers: int | Sequence[int] = 1
    orders_tensor_core: bool = False

    def scratch_type(self) -> specs.MemoryRef:
        """The memory of the barrier."""
        count = self.num_barriers
        shape = tuple(count) if isinstance(count, Sequence) else (count,)
        return _CounterMemory(memory_ref(shape, np.int32, SMEM).inner_aval, SMEM)


class BlockSpec(specs.BlockSpec):
    """A `BlockSpec` with what the copies to shared memory do on the way, which makes no difference here.

    >>> from purax.pallas import mosaic_gpu
    >>> mosaic_gpu.BlockSpec((8,), lambda i: i, delay_release=1).block_shape
    (8,)
    """

    def __init__(
        self,
        block_shape: Sequence[Any] | None = None,
        index_map: Callable[..., Any] | None = None,
        pipeline_mode: Any = None,
        transforms: Sequence[Any] = (),
        delay_release: int = 0,
        collective_axes: tuple[Any, ...] = (),
        *,
        memory_space: Any = None,
    ):
        super().__init__(block_shape, index_map, pipeline_mode, memory_space=memory_space)


class LoweringSemantics(enum.Enum):
    """What one instruction of a kernel stands for.

    >>> from purax.pallas import mosaic_gpu
    >>> mosaic_gpu.LoweringSemantics.Lane.value
    1
    """

    Lane = 1
    Warpgroup = 2


class TraceScope(enum.Enum):
    """Whose time a profile tells.

    >>> from purax.pallas import mosaic_gpu
    >>> mosaic_gpu.TraceScope.WARP.value
    'warp'
    """

    WARP = "warp"
    WARPGROUP = "warpgroup"


class OOBFillMode(enum.Enum):
    """What copies put where they reach beyond an array.

    >>> from purax.pallas import mosaic_gpu
    >>> mosaic_gpu.OOBFillMode.ZEROS.value
    2
    """

    UNDEFINED = 0
    PROMISE_IN_BOUNDS = 1
    ZEROS = 2


class PipelinePipeline(enum.Enum):
    """The parts of a pipeline.

    >>> from purax.pallas import mosaic_gpu
    >>> mosaic_gpu.PipelinePipeline.START.value
    0
    """

    START = 0
    STEADY = 1
    STOP = 2


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompilerParams(specs.CompilerParams):
    """How Mosaic compiles a kernel.

    >>> from purax.pallas import mosaic_gpu
    >>> mosaic_gpu.CompilerParams(max_concurrent_steps=2).max_concurrent_steps
    2
    """

    approx_math: bool = False
    dimension_semantics: Sequence[Any] | None = None
    max_concurrent_steps: int = 1
    unsafe_no_auto_barriers: bool = False
    reduction_scratch_bytes: int = 2048
    profile_space: int = 0
    profile_dir: str = ""
    profile_trace_scope: TraceScope = TraceScope.WARPGROUP
    lowering_semantics: LoweringSemantics = LoweringSemantics.Lane


@dataclasses.dataclass(frozen=True)
class TilingTransform:
    """How shared memory is tiled; of no meaning here.

    >>> from purax.pallas import mosaic_gpu
    >>> mosaic_gpu.TilingTransform((8, 64)).tiling
    (8, 64)
    """

    tiling: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class SwizzleTransform:
    """How shared memory is swizzled; of no meaning here.

    >>> from purax.pallas import mosaic_gpu
    >>> mosaic_gpu.SwizzleTransform(128).swizzle
    128
    """

    swizzle: int


def copy_gmem_to_smem(src: Any, dst: Any, barrier: Any = None, **hints: Any) -> None:
    """Copies; it is done at once.

    Args:
        src, dst: references, or parts of them.
        barrier: what is told when it is done.
        **hints: of no meaning here.

    >>> from purax.pallas import mosaic_gpu
    >>> mosaic_gpu.copy_gmem_to_smem.__name__
    'copy_gmem_to_smem'
    """
    make_async_copy(src, dst).start()


def copy_smem_to_gmem(src: Any, dst: Any, predicate: Any = None, **hints: Any) -> None:
    """Copies, if a condition holds; it is done at once.

    Args:
        src, dst: references, or parts of them.
        predicate: the condition.
        **hints: of no meaning here.

    >>> from purax.pallas import mosaic_gpu
    >>> mosaic_gpu.copy_smem_to_gmem.__name__
    'copy_smem_to_gmem'
    """
    if predicate is None:
        make_async_copy(src, dst).start()
        return
    source_memory, target = as_memory(src, "copy_smem_to_gmem"), as_memory(dst, "copy_smem_to_gmem")
    target[...] = jnp.where(predicate, source_memory[...], target[...])


def _nothing(name: str) -> Callable[..., None]:
    def function(*args: Any, **kwargs: Any) -> None:
        pass

    function.__name__ = function.__qualname__ = name
    function.__module__ = _MODULE
    function.__doc__ = "Does nothing: copies are done when they are started, and one thread runs a step."
    return function


for _name in (
    "async_prefetch",
    "barrier_arrive",
    "barrier_wait",
    "commit_smem",
    "commit_smem_to_gmem_group",
    "commit_tmem",
    "griddepcontrol_launch_dependents",
    "griddepcontrol_wait",
    "set_max_registers",
    "wait_smem_to_gmem",
):
    globals()[_name] = _nothing(_name)


class _Grid:
    def __init__(self, shape: dict[str, int]):
        self.shape = shape


def kernel(
    body: Any = None,
    out_shape: Any = None,
    *,
    out_type: Any = None,
    scratch_types: Any = (),
    scratch_shapes: Any = (),
    compiler_params: Any = None,
    grid: tuple[int, ...] = (),
    grid_names: tuple[str, ...] = (),
    cluster: tuple[int, ...] = (),
    cluster_names: tuple[str, ...] = (),
    num_threads: int | None = None,
    thread_name: str | None = None,
    interpret: Any = None,
    **mesh_kwargs: Any,
) -> Any:
    """A kernel on whole arrays over a grid; `pl.program_id` tells the position.

    Args:
        body: a function of references to the inputs, the outputs and the scratch memory.
        out_shape, out_type: the types of the results.
        scratch_shapes, scratch_types: types of scratch memory.
        grid, grid_names: the grid.
        cluster, cluster_names, num_threads, thread_name: must be left out: one thread runs a step.
        compiler_params, interpret: as in `pallas_call`.
        **mesh_kwargs: of no meaning here.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.pallas import mosaic_gpu
    >>> def double(x_ref, o_ref):
    ...     o_ref[...] = x_ref[...] * 2
    >>> mosaic_gpu.kernel(double, px.ShapeDtypeStruct((2,), jnp.float32))(jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """
    if cluster or num_threads:
        raise located(
            NotImplementedError,
            "mosaic_gpu.kernel: clusters and several threads need Mosaic's compiler, which is not here; write the "
            "kernel over a grid alone, or with `pallas_call`",
        )
    names = grid_names or tuple(f"axis {i}" for i in range(len(grid)))
    options: dict[str, Any] = {
        "mesh": _Grid(dict(zip(names, grid, strict=True))),
        "scratch_types": scratch_types or scratch_shapes,
        "compiler_params": compiler_params,
        "interpret": bool(interpret),
    }
    types = out_shape if out_type is None else out_type
    if body is None:
        return lambda function: _mesh_kernel(function, types, **options)
    return _mesh_kernel(body, types, **options)


_HARDWARE = (
    "is an instruction of a GPU that needs Mosaic's compiler, which is not here; write it with `jnp` and `lax`, as "
    "kernels for `pallas_call` are"
)
_FUNCTIONS = """
TryClusterCancelResult as_torch_kernel async_copy_scales_to_tmem async_copy_smem_to_tmem
async_copy_sparse_metadata_to_tmem async_load_tmem async_store_smem async_store_tmem atomic_add atomic_and atomic_max
atomic_min atomic_or atomic_xor barrier_test broadcasted_iota cluster_ref dynamic_scheduling_loop emit_pipeline
emit_pipeline_warp_specialized find_swizzle format_tcgen05_sparse_metadata inline_mgpu layout_cast load multicast_ref
multimem_load_reduce multimem_store nd_loop planar_snake print_layout query_cluster_cancel remote_ref semaphore_signal
semaphore_signal_multicast semaphore_signal_parallel semaphore_wait tcgen05_commit_arrive tcgen05_mma transform_ref
transpose_ref try_cluster_cancel wait_load_tmem warp_map wgmma wgmma_accumulator_load wgmma_wait
""".split()
_CLASSES = """
ACC ClusterBarrier CopyPartition Layout Mesh NDLoopInfo PeerMemRef RefType RefUnion Replicated SemaphoreSignal
ShapeDtypeStruct TMEMLayout Tiling Transform WGMMAAccumulatorRef WarpMesh
""".split()
for _name in _FUNCTIONS:
    globals()[_name] = absent_function(_MODULE, _name, _HARDWARE)
for _name in _CLASSES:
    globals()[_name] = absent_class(_MODULE, _name, _HARDWARE)

__all__ = ["GMEM", "REGS", "SMEM", "TMEM"]
__all__ += sorted(own_names(globals()))
