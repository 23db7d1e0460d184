"""Abstract values: what is known of an array before it is computed.

A `ShapedArray` is interned: equal ones are the same object, so they compare and hash by identity, which is what makes
the caches on every call path cheap. `Zero` stands for a tangent or cotangent that is known to be zero.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from purax.core import dtypes

_interned: dict[tuple, ShapedArray] = {}
_MAX_SIZE = 2**63 - 1


_NONE: frozenset[Any] = frozenset()


class ShapedArray:
    """The type of an array: its shape, its dtype, and whether the dtype is weak (came from a Python scalar).

    Inside a `shard_map`, `vma` names the axes of the mesh along which the devices may hold different values.
    """

    __slots__ = ("dtype", "ndim", "shape", "size", "vma", "weak_type")
    shape: tuple[int, ...]
    dtype: Any
    weak_type: bool
    vma: frozenset[Any]
    ndim: int
    size: int

    def __new__(
        cls,
        shape: tuple[int, ...],
        dtype: Any,
        weak_type: bool = False,
        vma: frozenset[Any] = _NONE,
        *,
        sharding: Any = None,  # accepted for jax's sake: a type says nothing of the place
        memory_space: Any = None,
    ) -> ShapedArray:
        try:
            return _interned[(shape, dtype, weak_type, vma) if vma else (shape, dtype, weak_type)]
        except (KeyError, TypeError):
            shape = tuple(map(operator.index, shape))
            return _intern(shape, dtypes.as_exact_dtype(dtype), bool(weak_type), frozenset(vma))

    def __reduce__(self):
        return ShapedArray, (self.shape, self.dtype, self.weak_type, self.vma)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def with_shape(self, shape: tuple[int, ...]) -> ShapedArray:
        return ShapedArray(shape, self.dtype, self.weak_type, self.vma)

    def with_dtype(self, dtype, weak_type: bool = False) -> ShapedArray:
        return ShapedArray(self.shape, dtype, weak_type, self.vma)

    def with_vma(self, vma: frozenset[Any]) -> ShapedArray:
        return self if vma == self.vma else ShapedArray(self.shape, self.dtype, self.weak_type, vma)

    def update(self, shape=None, dtype=None, weak_type=None, vma=None) -> ShapedArray:
        return ShapedArray(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
            self.vma if vma is None else vma,
        )

    def strip_weak_type(self) -> ShapedArray:
        return ShapedArray(self.shape, self.dtype, False, self.vma)

    def to_tangent_aval(self) -> ShapedArray:
        """The type of this value's tangent: the same for inexact dtypes, `float0` for all others."""
        return tangent_aval(self)

    def str_short(self, short_dtypes: bool = True) -> str:
        name = dtypes.short_name(self.dtype) if short_dtypes else self.dtype.name
        varying = f"{{{','.join(sorted(map(str, self.vma)))}}}" if self.vma else ""
        return f"{name}[{','.join(map(str, self.shape))}]{varying}"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an unsized value: its shape is ()")
        return self.shape[0]

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short(short_dtypes=False)}{weak})"

    __str__ = __repr__


def _intern(shape: tuple[int, ...], dtype: Any, weak_type: bool, vma: frozenset[Any]) -> ShapedArray:
    key = (shape, dtype, weak_type, vma) if vma else (shape, dtype, weak_type)
    aval = _interned.get(key)
    if aval is None:
        aval = object.__new__(ShapedArray)
        aval.shape, aval.dtype, aval.weak_type, aval.vma = shape, dtype, weak_type, vma
        aval.ndim, aval.size = len(shape), math.prod(shape)
        if aval.size > _MAX_SIZE or max(shape, default=0) > _MAX_SIZE:
            raise OverflowError(
                f"an array of shape {shape} would have {aval.size} elements, more than can be addressed"
            )
        aval = _interned.setdefault(key, aval)  # another thread may have been first
    return aval


_scalar_avals: dict[tuple[type, bool], ShapedArray] = {}


def aval_of(value: Any) -> ShapedArray:
    """The abstract value of an array, a tracer, a NumPy value or a Python scalar."""
    try:
        return value.aval
    except AttributeError:
        pass
    if isinstance(value, (np.ndarray, np.generic)):
        return ShapedArray(value.shape, value.dtype)
    if isinstance(value, (bool, int, float, complex)):
        return ShapedArray((), dtypes.python_scalar_dtype(type(value)), not isinstance(value, bool))
    raise TypeError(f"{value!r} of type {type(value).__name__} is not an array or a number")


def tangent_aval(aval: ShapedArray) -> ShapedArray:
    """The type of a tangent of a value of type `aval`."""
    if dtypes.is_inexact(aval.dtype):
        return aval
    return ShapedArray(aval.shape, dtypes.float0, False, aval.vma)


class Zero:
    """A tangent or cotangent known to be zero, so that nothing is computed for it."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    @staticmethod
    def like(value: Any) -> Zero:
        """The zero tangent of `value`."""
        return Zero(tangent_aval(aval_of(value)))

    def __repr__(self) -> str:
        return f"Zero({self.aval.str_short()})"
