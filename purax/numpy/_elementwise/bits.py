"""Bits packed into bytes, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.dimensions import as_size
from purax.core.source import located
from purax.errors import shown
from purax.numpy._programs import as_one_program
from purax.numpy._promotion import BOOL, as_array
from purax.numpy._reductions.reductions import as_truth
from purax.numpy._shape.axes import canonical_axis
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import mul
from purax.primitives.elementwise.logic import and_, shift_right_logical
from purax.primitives.shape.broadcasting import broadcast_in_dim, move_axis, reduce_sum
from purax.primitives.shape.reshaping import reshape
from purax.primitives.shape.slicing import pad, slice_axis
from purax.typing import ArrayLike

_UINT8 = np.dtype(np.uint8)


def _shifts(name: str, bitorder: Any) -> np.ndarray:
    """By how many places each of eight bits in a row is shifted."""
    if bitorder not in ("big", "little"):
        raise located(ValueError, f"{name}: bitorder must be 'big' or 'little', got {shown(bitorder)}")
    places = np.arange(8, dtype=np.uint8)
    return places[::-1].copy() if bitorder == "big" else places


def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Truth values as the bits of bytes.

    Args:
        a: booleans, or integers, of which all but 0 are true.
        axis: the axis along which bits are packed; None to flatten the array first.
        bitorder: whether the first of eight bits is the highest, "big", or the lowest, "little".

    Returns:
        Unsigned bytes; the last one is filled up with zeros.

    >>> import purax.numpy as jnp
    >>> jnp.packbits(jnp.array([1, 0, 1]))
    Array([160], dtype=uint8)
    """
    x = as_array(a, "packbits")
    if x.dtype != BOOL and not dtypes.is_integer(x.dtype):
        raise located(TypeError, f"packbits takes integers or truth values, got {dtypes.dtype_name(x.dtype)}")
    _shifts("packbits", bitorder)
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    axis = canonical_axis("packbits", axis, x.ndim)
    return _pack(x, axis=axis, bitorder=bitorder)


@as_one_program(lambda x, *, axis, bitorder: np.packbits(x.astype(bool), axis, bitorder))
def _pack(x, *, axis, bitorder):
    last = x.ndim - 1
    bits = move_axis(convert_element_type(as_truth(x, "packbits"), _UINT8), axis, last)
    missing = -bits.shape[-1] % 8
    bits = pad(bits, np.zeros((), _UINT8), [(0, 0, 0)] * last + [(0, missing, 0)])
    bits = reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8))
    weights = np.left_shift(np.uint8(1), _shifts("packbits", bitorder))
    weighed = mul(bits, broadcast_in_dim(weights, bits.shape, (bits.ndim - 1,)))
    return move_axis(reduce_sum(weighed, (bits.ndim - 1,)), last, axis)


def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """The bits of bytes, as bytes that are 0 or 1.

    Args:
        a: unsigned bytes.
        axis: the axis along which bits are unpacked; None to flatten the array first.
        count: how many bits to return along the axis; zeros are added if there are fewer. A negative number leaves out
            as many at the end.
        bitorder: whether the first of eight bits is the highest, "big", or the lowest, "little".

    Returns:
        An array of bytes.

    >>> import purax.numpy as jnp
    >>> jnp.unpackbits(jnp.array([160], dtype="uint8"), count=4)
    Array([1, 0, 1, 0], dtype=uint8)
    """
    x = as_array(a, "unpackbits")
    if x.dtype != _UINT8:
        raise located(TypeError, f"unpackbits takes unsigned bytes, got {dtypes.dtype_name(x.dtype)}")
    _shifts("unpackbits", bitorder)
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    axis = canonical_axis("unpackbits", axis, x.ndim)
    size = 8 * x.shape[axis]
    length = size if count is None else as_size(count)
    if length < 0:
        if length < -size:
            raise located(
                ValueError, f"unpackbits: count={length} leaves out more than the {size} bits that there are"
            )
        length += size
    return _unpack(x, axis=axis, length=length, bitorder=bitorder)


def _unpack_on_host(x, *, axis, length, bitorder):
    if not x.size:  # where NumPy returns memory as it finds it
        return np.zeros((*x.shape[:axis], length, *x.shape[axis + 1 :]), np.uint8)
    return np.unpackbits(x, axis, length, bitorder)


@as_one_program(_unpack_on_host)
def _unpack(x, *, axis, length, bitorder):
    last = x.ndim - 1
    x = move_axis(x, axis, last)
    shape = (*x.shape, 8)
    places = broadcast_in_dim(_shifts("unpackbits", bitorder), shape, (x.ndim,))
    shifted = shift_right_logical(broadcast_in_dim(x, shape, range(x.ndim)), places)
    bits = reshape(and_(shifted, np.uint8(1)), (*x.shape[:-1], 8 * x.shape[-1]))
    if length <= bits.shape[-1]:
        bits = slice_axis(bits, 0, length, last)
    else:
        bits = pad(bits, np.zeros((), _UINT8), [(0, 0, 0)] * last + [(0, length - bits.shape[-1], 0)])
    return move_axis(bits, last, axis)
