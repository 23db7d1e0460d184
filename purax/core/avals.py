"""Abstract values: what is known of an array before it is computed.

A `ShapedArray` is interned: equal ones are the same object, so they compare and hash by identity, which is what makes
the caches on every call path cheap. `Zero` stands for a tangent or cotangent that is known to be zero.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, final

import numpy as np

from purax.config import config
from purax.core import dtypes
from purax.core.dimensions import SymbolicDimension, as_size
from purax.core.extension import native
from purax.core.limits import finite
from purax.core.manual_axes import ManualAxisType, varying_of
from purax.core.memo import Memo, forget_all
from purax.core.memories import MemorySpace
from purax.core.source import located
from purax.core.specs import AbstractMesh, AbstractSharding, PartitionSpec
from purax.errors import shown

interned: dict[tuple, ShapedArray] = {}
_FEW_TYPES = 20_000
_limit = [_FEW_TYPES]  # when there are so many, those that nobody holds are forgotten
_MAX_BYTES = 2**63 - 1
MAX_AXES = 512


_NONE: frozenset[Any] = frozenset()
_OWN = MemorySpace.Device


class ShapedArray:
    """The type of an array: its shape, its dtype, and whether the dtype is weak (came from a Python scalar).

    Inside a `shard_map`, `vma` names the axes of the mesh along which the devices may hold different values. Over a
    mesh with axes of type `Explicit`, `layout` says how the array lies along them; None leaves it to the compiler.
    `memory_space` says which memory of the device holds it.
    """

    __slots__ = ("dtype", "layout", "memory_space", "ndim", "shape", "size", "vma", "weak_type")
    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    vma: frozenset[Any]
    layout: AbstractSharding | None
    memory_space: MemorySpace
    ndim: int
    size: int

    def __new__(
        cls,
        shape: tuple[int, ...],
        dtype: Any,
        weak_type: bool = False,
        vma: frozenset[Any] = _NONE,
        *,
        sharding: Any = None,  # of which a type says what is along `Explicit` axes
        memory_space: Any = None,
        manual_axis_type: ManualAxisType | None = None,
    ) -> ShapedArray:
        if manual_axis_type is not None:
            vma = varying_of(manual_axis_type)
        if memory_space is not None and memory_space is not _OWN:
            return ShapedArray(shape, dtype, weak_type, vma, sharding=sharding).with_memory(memory_space)
        if sharding is not None:
            return ShapedArray(shape, dtype, weak_type, vma).with_layout(sharding.as_type(len(shape)))
        try:
            return interned[(shape, dtype, weak_type, vma) if vma else (shape, dtype, weak_type)]
        except (KeyError, TypeError):
            shape = tuple(map(as_size, finite(shape)))
            return _intern(shape, dtypes.as_exact_dtype(dtype), bool(weak_type), frozenset(vma), None)

    @property
    def manual_axis_type(self) -> ManualAxisType:
        """`vma` as `ManualAxisType` says it."""
        return ManualAxisType(varying=self.vma)

    def __reduce__(self):
        plain = (self.shape, self.dtype, self.weak_type, self.vma)
        if self.layout is None and self.memory_space is _OWN:
            return ShapedArray, plain
        return _intern, (*plain, self.layout, self.memory_space)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def with_shape(self, shape: tuple[int, ...]) -> ShapedArray:
        """The type with another shape; of the place of such arrays it says nothing."""
        return ShapedArray(shape, self.dtype, self.weak_type, self.vma)

    def with_dtype(self, dtype, weak_type: bool = False) -> ShapedArray:
        return self._placed(ShapedArray(self.shape, dtype, weak_type, self.vma))

    def with_vma(self, vma: frozenset[Any]) -> ShapedArray:
        if vma == self.vma:
            return self
        return self._placed(ShapedArray(self.shape, self.dtype, self.weak_type, vma))

    def with_layout(self, layout: AbstractSharding | None) -> ShapedArray:
        if layout is self.layout:
            return self
        return _intern(self.shape, self.dtype, self.weak_type, self.vma, layout, self.memory_space)

    def with_memory(self, memory_space: MemorySpace) -> ShapedArray:
        """The type of the same array in another memory of its device."""
        if memory_space is self.memory_space:
            return self
        return _intern(self.shape, self.dtype, self.weak_type, self.vma, self.layout, memory_space)

    def _placed(self, aval: ShapedArray) -> ShapedArray:
        """`aval`, with the layout and the memory of this type."""
        return aval.with_layout(self.layout).with_memory(self.memory_space)

    def with_axis(self, axis: int, size: int, entry: Any = None) -> ShapedArray:
        """The type with one axis more, which is sharded along the axes of a mesh in `entry`."""
        aval = self.with_shape((*self.shape[:axis], size, *self.shape[axis:]))
        layout = _laid_out(self.layout, lambda s: (*s[:axis], entry, *s[axis:]))
        return aval.with_layout(layout).with_memory(self.memory_space)

    def without_axis(self, axis: int) -> ShapedArray:
        aval = self.with_shape((*self.shape[:axis], *self.shape[axis + 1 :]))
        layout = _laid_out(self.layout, lambda s: (*s[:axis], *s[axis + 1 :]))
        return aval.with_layout(layout).with_memory(self.memory_space)

    @property
    def spec(self) -> tuple[Any, ...]:
        """For each axis the axes of a mesh that it is sharded along: entries of a `PartitionSpec`."""
        return (None,) * self.ndim if self.layout is None else tuple(self.layout.spec)

    @property
    def sharding(self) -> AbstractSharding:
        """How arrays of this type lie over the shape of a mesh; that of the context where the type says nothing."""
        if self.layout is not None:
            return self.layout
        mesh = AbstractMesh((), ()) if config.mesh is None else config.mesh.abstract_mesh
        return AbstractSharding(mesh, PartitionSpec(*(None,) * self.ndim))

    def update(
        self, shape=None, dtype=None, weak_type=None, vma=None, sharding=None, memory_space=None
    ) -> ShapedArray:
        aval = ShapedArray(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
            self.vma if vma is None else vma,
            sharding=sharding,
        )
        aval = aval.with_memory(self.memory_space if memory_space is None else memory_space)
        return aval.with_layout(self.layout) if sharding is None and shape is None else aval

    def strip_weak_type(self) -> ShapedArray:
        return self._placed(ShapedArray(self.shape, self.dtype, False, self.vma))

    def to_tangent_aval(self) -> ShapedArray:
        """The type of this value's tangent: the same for inexact dtypes, `float0` for all others."""
        return tangent_aval(self)

    def str_short(self, short_dtypes: bool = True) -> str:
        name = dtypes.short_name(self.dtype) if short_dtypes else dtypes.dtype_name(self.dtype)
        varying = f"{{{','.join(sorted(map(str, self.vma)))}}}" if self.vma else ""
        memory = "" if self.memory_space is _OWN else str(self.memory_space)
        return f"{name}{memory}[{','.join(map(_size, self.shape, self.spec))}]{varying}"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an unsized value: its shape is ()")
        return self.shape[0]

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short(short_dtypes=False)}{weak})"

    __str__ = __repr__


def _size(n: int, entry: Any) -> str:
    """How an axis is written in a type: `8`, `8@x`, `8@(x,y)`."""
    if entry is None:
        return str(n)
    return f"{n}@({','.join(map(str, entry))})" if isinstance(entry, tuple) else f"{n}@{entry}"


def _laid_out(layout: AbstractSharding | None, change: Callable[[tuple], tuple]) -> AbstractSharding | None:
    if layout is None:
        return None
    return AbstractSharding(layout.mesh, PartitionSpec(*change(tuple(layout.spec))))


def _intern(
    shape: tuple[int, ...],
    dtype: Any,
    weak_type: bool,
    vma: frozenset[Any],
    layout: AbstractSharding | None,
    memory_space: MemorySpace = _OWN,
) -> ShapedArray:
    key: tuple = (shape, dtype, weak_type, vma) if vma else (shape, dtype, weak_type)
    if layout is not None:
        key = (shape, dtype, weak_type, vma, layout)
    if memory_space is not _OWN:
        key = (shape, dtype, weak_type, vma, layout, memory_space)
    aval = interned.get(key)
    if aval is None:
        _check_size(shape, dtype)
        if len(interned) >= _limit[0]:
            let_go()
        aval = object.__new__(ShapedArray)
        aval.shape, aval.dtype, aval.weak_type, aval.vma, aval.layout = shape, dtype, weak_type, vma, layout
        aval.memory_space = memory_space
        aval.ndim, aval.size = len(shape), math.prod(shape)
        aval = interned.setdefault(key, aval)  # another thread may have been first
    return aval


def let_go() -> None:
    """Forgets the types that nobody holds, after whatever is remembered by type.

    Only C can see that nobody holds a type and drop it before another thread looks it up; without it they stay.
    """
    forget_all()
    if native is not None:
        native.drop_unused(interned)
    _limit[0] = max(_FEW_TYPES, 2 * len(interned))


def _check_size(shape: tuple[int, ...], dtype: Any) -> None:
    """Raises for a type whose arrays could not be addressed, which XLA answers by ending the process."""
    if len(shape) > MAX_AXES:
        raise located(ValueError, f"an array can have up to {MAX_AXES} axes, got a shape with {len(shape)}")
    # XLA and NumPy count bytes along all axes but empty ones.
    sizes = [n for n in shape if not isinstance(n, SymbolicDimension) and n]
    size = math.prod(sizes) * max(getattr(dtype, "itemsize", 1), 1)
    if size > _MAX_BYTES:
        raise located(
            OverflowError,
            f"an array of shape {shape} and dtype {dtypes.dtype_name(dtype)} would have {math.prod(shape)} "
            f"elements and reach over {size} bytes, more than can be addressed",
        )


_scalar_avals: dict[tuple[type, bool], ShapedArray] = {}
config.on_change("default_dtype_bits", lambda bits: _scalar_avals.clear())


def aval_of(value: Any) -> ShapedArray:
    """The abstract value of an array, a tracer, a NumPy value or a Python scalar."""
    aval = getattr(value, "aval", None)
    if aval.__class__ is ShapedArray:
        return aval
    if isinstance(value, (np.ndarray, np.generic)):
        refuse_mask(value)
        return ShapedArray(value.shape, value.dtype)
    if isinstance(value, (bool, int, float, complex)):
        kind = (type(value), config.enable_x64)
        aval = _scalar_avals.get(kind)
        if aval is None:
            aval = ShapedArray((), dtypes.python_scalar_dtype(type(value)), not isinstance(value, bool))
            _scalar_avals[kind] = aval
        return aval
    if aval is not None and hasattr(aval, "shape"):  # of a library's own kind
        return aval
    if type(value) is SymbolicDimension:
        return aval_of(0)
    raise located(TypeError, f"{shown(value)} of type {type(value).__name__} is not an array or a number")


def refuse_mask(value: Any) -> None:
    """Raises for a masked array of NumPy: arrays have no mask, and what it hides would be taken for numbers."""
    if value.__class__ is np.ndarray or isinstance(value, np.generic):
        return
    masks = sys.modules.get("numpy.ma")  # which NumPy imports when it is first used
    if masks is not None and isinstance(value, masks.MaskedArray) and masks.is_masked(value):
        raise located(
            ValueError,
            f"a masked array of NumPy, of shape {value.shape}, would lose its mask. Write x.filled(number), or use "
            "x.data and x.mask, as in jnp.sum(x.data, where=~x.mask).",
        )


def tangent_aval(aval: ShapedArray) -> ShapedArray:
    """The type of a tangent of a value of type `aval`."""
    tangent = _tangent_avals.get(aval)
    if tangent is None:
        tangent = aval if dtypes.is_inexact(aval.dtype) else aval.with_dtype(dtypes.float0)
        _tangent_avals[aval] = tangent  # types live forever, so do these
    return tangent


_tangent_avals: Memo[ShapedArray, ShapedArray] = Memo()


@final
class Zero:
    """A tangent or cotangent known to be zero, so that nothing is computed for it."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    @staticmethod
    def like(value: Any) -> Zero:
        """The zero tangent of `value`."""
        aval = aval_of(value)
        zero = _zeros.get(aval)
        if zero is None:
            zero = _zeros[aval] = Zero(tangent_aval(aval))  # types live forever, so do these
        return zero

    def __repr__(self) -> str:
        return f"Zero({self.aval.str_short()})"


_zeros: Memo[ShapedArray, Zero] = Memo()
