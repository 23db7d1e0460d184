"""What the functions of `purax.numpy.linalg` do with their arguments: matrices of one floating point dtype."""

from __future__ import annotations

from typing import Any

from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import ShapeError
from purax.numpy._promotion import FLOAT32, as_array, broadcast_shapes, common_dtype, convert
from purax.primitives.elementwise.conversion import convert_element_type_p
from purax.primitives.linalg.lapack import LETTERS
from purax.primitives.shape.broadcasting import broadcast_in_dim
from purax.xla.array import DeviceArray


def inexact_arrays(name: str, *args: Any, narrow: bool = False) -> list[Array]:
    """Arguments as arrays of one floating point dtype that is not weak.

    Args:
        name: of the function, for the error message.
        args: the arguments.
        narrow: whether dtypes that LAPACK does not know are accepted.
    """
    arrays = [as_array(x, f"linalg.{name}", i) for i, x in enumerate(args)]
    dtype = dtypes.to_inexact_dtype(common_dtype(arrays)[0])
    if dtype not in LETTERS and not narrow:
        raise located(
            TypeError,
            f"linalg.{name} computes in float32, float64, complex64 or complex128; the argument has dtype "
            f"{dtypes.dtype_name(dtype)}. Convert it: x.astype('float32').",
        )
    return [_strong(convert(x, dtype), dtype) for x in arrays]


def _strong(x: Array, dtype: Any) -> Array:
    if x.aval.weak_type:
        return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=False)
    return x


def matrices(name: str, a: Any, square: bool = False, narrow: bool = False) -> Array:
    """An argument as an array with matrices in its last two axes."""
    if a.__class__ is DeviceArray and a.aval.dtype is FLOAT32 and not a.aval.weak_type:
        x: Array = a
    else:
        x = inexact_arrays(name, a, narrow=narrow)[0]
    shape = x.aval.shape
    if len(shape) < 2:
        raise located(
            ValueError,
            f"linalg.{name}: the argument must have at least 2 axes, a matrix in the last two, got shape {shape}",
        )
    if square and shape[-1] != shape[-2]:
        raise located(
            ShapeError,
            f"linalg.{name}: the argument must have shape [..., n, n], square matrices in the last two axes, got "
            f"{shape}",
        )
    return x


def same_batch(name: str, a: Array, b: Array) -> tuple[Array, Array]:
    """Two arrays of matrices, with the axes in front of the last two broadcast against each other."""
    first, second = a.shape[:-2], b.shape[:-2]
    if first == second:
        return a, b
    try:
        batch = broadcast_shapes(first, second)
    except ValueError:
        raise located(
            ValueError,
            f"linalg.{name}: the axes before the last two, {first} and {second} of arrays of shapes {a.shape} and "
            f"{b.shape}, do not broadcast",
        ) from None
    return repeated(a, batch), repeated(b, batch)


def repeated(x: Array, batch: tuple[int, ...]) -> Array:
    """Matrices repeated over a batch."""
    shape = (*batch, *x.shape[-2:])
    return broadcast_in_dim(x, shape, range(len(shape) - x.ndim, len(shape)))
