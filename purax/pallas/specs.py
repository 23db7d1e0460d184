"""What a kernel is given: how arrays are cut into blocks, which grid it runs over, and what scratch memory it has.

These are plain descriptions; `purax.pallas.blocks` makes use of them.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray
from purax.core.source import located
from purax.errors import shown


@dataclasses.dataclass(frozen=True)
class Blocked:
    """A dimension cut into blocks of one size; the index map returns the number of the block.

    >>> from purax import pallas as pl
    >>> pl.BlockSpec((pl.Blocked(8), 4), lambda i: (i, 0)).block_shape
    (Blocked(block_size=8), 4)
    """

    block_size: int


@dataclasses.dataclass(frozen=True)
class Element:
    """A dimension of which blocks may begin anywhere; the index map returns the first element.

    Attributes:
        block_size: how many elements a block has.
        padding: how many elements are put before and after the dimension; what they hold is not defined.

    >>> from purax import pallas as pl
    >>> pl.Element(6, padding=(1, 1)).block_size
    6
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """A dimension of which a block has one element, and which the kernel does not see; None means the same.

    >>> from purax import pallas as pl
    >>> pl.squeezed
    Squeezed()
    """


squeezed = Squeezed()


@dataclasses.dataclass(frozen=True)
class BoundedSlice:
    """A dimension of which the index map returns a slice, `pl.ds(start, size)`, with at most `block_size` elements.

    >>> from purax import pallas as pl
    >>> pl.BoundedSlice(4)
    BoundedSlice(block_size=4)
    """

    block_size: int


@dataclasses.dataclass(frozen=True)
class Indirect:
    """A dimension of which the index map returns the positions, an array.

    >>> from purax import pallas as pl
    >>> pl.Indirect(4)
    Indirect(block_size=4)
    """

    block_size: int


BlockDim = Element | Squeezed | Blocked | BoundedSlice | Indirect


class RevisitMode(enum.Enum):
    """Whether a block of an output may be visited again at any step, or at the following one only.

    >>> from purax import pallas as pl
    >>> pl.RevisitMode.ANY.value
    'any'
    """

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclasses.dataclass(frozen=True)
class Buffered:
    """How many blocks are in flight where blocks are copied ahead; on the CPU it makes no difference.

    >>> from purax import pallas as pl
    >>> pl.Buffered(2).buffer_count
    2
    """

    buffer_count: int
    use_lookahead: bool = False
    revisit: RevisitMode | None = None


class MemorySpace(enum.Enum):
    """Kinds of memory that every platform has. Calling one gives a type for scratch memory.

    >>> import purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> pl.MemorySpace.ANY((8, 128), jnp.float32).shape
    (8, 128)
    """

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"

    def __str__(self) -> str:
        return self.value

    def __call__(self, shape: Sequence[int], dtype: Any) -> MemoryRef:
        return memory_ref(shape, dtype, self)


class MemoryRef:
    """A type of scratch memory: a shape, a dtype, and where it is.

    Args:
        inner_aval: something with a shape and a dtype.
        memory_space: the kind of memory.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> pl.MemoryRef(px.ShapeDtypeStruct((2,), jnp.float32), pl.ANY)
    MemoryRef(f32[2], any)
    """

    def __init__(self, inner_aval: Any, memory_space: Any):
        self.inner_aval = ShapedArray(tuple(inner_aval.shape), dtypes.as_dtype(inner_aval.dtype))
        self.memory_space = memory_space

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)
    ndim = property(lambda self: self.inner_aval.ndim)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryRef) and (other.inner_aval, other.memory_space) == (
            self.inner_aval,
            self.memory_space,
        )

    def __hash__(self) -> int:
        return hash((self.inner_aval, self.memory_space))

    def __repr__(self) -> str:
        return f"MemoryRef({self.inner_aval.str_short()}, {self.memory_space})"


def memory_ref(shape: Sequence[int], dtype: Any, memory_space: Any) -> MemoryRef:
    """A type of scratch memory in some kind of memory."""
    return MemoryRef(ShapedArray(tuple(shape), dtypes.as_dtype(dtype)), memory_space)


class _NoBlockSpec:
    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec = _NoBlockSpec()


class BlockSpec:
    """How an array is cut into blocks, one of which each step of the grid works on.

    Args:
        block_shape: for each dimension the size of a block, None (one element, and the kernel does not see the
            dimension), or one of `Blocked`, `Element`, `Squeezed`, `BoundedSlice`; None for the whole array.
        index_map: a function of the position in the grid, and of prefetched scalars, that returns for each dimension
            which block; by default the first.
        pipeline_mode: how blocks are copied ahead.
        memory_space: where the block is.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> def double(x_ref, y_ref):
    ...     y_ref[...] = x_ref[...] * 2
    >>> rows = pl.BlockSpec((2, 3), lambda i: (i, 0))
    >>> shape = px.ShapeDtypeStruct((4, 3), jnp.float32)
    >>> call = pl.pallas_call(double, shape, grid=(2,), in_specs=[rows], out_specs=rows)
    >>> call(jnp.ones((4, 3))).sum()
    Array(24., dtype=float32)
    """

    __slots__ = ("block_shape", "index_map", "memory_space", "pipeline_mode")

    def __init__(
        self,
        block_shape: Sequence[Any] | None = None,
        index_map: Callable[..., Any] | None = None,
        pipeline_mode: Buffered | None = None,
        *,
        memory_space: Any = None,
    ):
        if callable(block_shape):
            raise located(
                TypeError, "BlockSpec takes the block shape first: BlockSpec(block_shape, index_map)"
            )
        if index_map is not None and not callable(index_map):
            raise located(
                TypeError,
                f"BlockSpec: index_map must be a function of the position in the grid, got {shown(index_map)}",
            )
        self.block_shape = None if block_shape is None else _block_shape(block_shape)
        self.index_map = index_map
        self.pipeline_mode = pipeline_mode
        self.memory_space = memory_space

    def replace(self, **changes: Any) -> BlockSpec:
        """The same with other fields."""
        fields = {name: getattr(self, name) for name in self.__slots__} | changes
        return BlockSpec(
            fields["block_shape"],
            fields["index_map"],
            fields["pipeline_mode"],
            memory_space=fields["memory_space"],
        )

    def _key(self) -> Any:
        return (self.block_shape, self.index_map, self.pipeline_mode, self.memory_space)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BlockSpec) and other._key() == self._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"BlockSpec(block_shape={self.block_shape}, index_map={self.index_map})"


def _block_shape(given: Any) -> tuple[Any, ...]:
    if isinstance(given, (int, np.integer)):
        given = (given,)
    sizes: list[Any] = []
    for position, size in enumerate(given):
        if size is None or isinstance(size, BlockDim):
            sizes.append(size)
        elif isinstance(size, (int, np.integer)) and not isinstance(size, bool):
            if size < 1:
                raise located(
                    ValueError, f"BlockSpec: block sizes are positive, got {size} at position {position}"
                )
            sizes.append(int(size))
        else:
            raise located(
                TypeError,
                f"BlockSpec: the block shape holds integers, None, Blocked, Element, Squeezed or BoundedSlice, "
                f"got {shown(size)} at position {position}",
            )
    return tuple(sizes)


class GridSpec:
    """The grid, the blocks and the scratch memory of a kernel in one object.

    Args:
        grid: the sizes of the grid.
        in_specs: a `BlockSpec` for each input.
        out_specs: a `BlockSpec` for each output.
        scratch_shapes: types of memory that the kernel gets after the outputs.

    >>> from purax import pallas as pl
    >>> pl.GridSpec(grid=(4,), in_specs=[pl.BlockSpec((8,), lambda i: i)]).grid
    (4,)
    """

    num_scalar_prefetch = 0

    def __init__(
        self,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ):
        self.grid = grid if isinstance(grid, tuple) else tuple(grid) if isinstance(grid, list) else (grid,)
        self.in_specs, self.out_specs, self.scratch_shapes = in_specs, out_specs, scratch_shapes

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(grid={self.grid}, in_specs={self.in_specs}, out_specs={self.out_specs})"
        )


class PrefetchScalarGridSpec(GridSpec):
    """A `GridSpec` whose first inputs, integers, are known before blocks are fetched: index maps take them, too.

    Args:
        num_scalar_prefetch: how many inputs these are.
        grid, in_specs, out_specs, scratch_shapes: as in `GridSpec`; `in_specs` leaves out the prefetched inputs.

    >>> from purax.pallas import tpu
    >>> tpu.PrefetchScalarGridSpec(1, grid=(4,)).num_scalar_prefetch
    1
    """

    def __init__(
        self,
        num_scalar_prefetch: int,
        grid: Any = (),
        in_specs: Any = no_block_spec,
        out_specs: Any = no_block_spec,
        scratch_shapes: Any = (),
    ):
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


@dataclasses.dataclass(frozen=True)
class CostEstimate:
    """What a kernel costs, for schedulers.

    >>> from purax import pallas as pl
    >>> pl.CostEstimate(flops=10, transcendentals=0, bytes_accessed=40).flops
    10
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0


class CompilerParams:
    """The base of what compilers for some platform are told."""
