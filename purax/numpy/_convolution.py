"""Convolution and correlation of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.lax.convolution import conv_general_dilated
from purax.numpy._linalg.products import conjugate
from purax.numpy._programs import as_one_program, strong_array
from purax.numpy._promotion import common_dtype
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.products.contraction import canonical_precision
from purax.primitives.shape.reshaping import reshape, rev
from purax.typing import ArrayLike, DTypeLike

_MODES = ("full", "same", "valid")


def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The convolution of two vectors: element n is the sum of a[k] v[n - k] over k.

    Args:
        a, v: the vectors.
        mode: "full" for all sums, "same" for as many as the longer vector has elements, "valid" for those in which the
            shorter vector lies inside of the longer one.
        precision: see `lax.Precision`.
        preferred_element_type: the dtype of the result.

    Returns:
        A vector of floating point or complex numbers.

    >>> import purax.numpy as jnp
    >>> jnp.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 0.5]))
    Array([0. , 1. , 2.5, 4. , 1.5], dtype=float32)
    """
    x, y = _vectors("convolve", a, v, mode)
    return _convolution(x, y, mode, precision, preferred_element_type)


def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The correlation of two vectors: element n is the sum of a[k + n] and the conjugate of v[k] over k.

    Args:
        a, v: the vectors.
        mode: as that of `convolve`.
        precision: see `lax.Precision`.
        preferred_element_type: the dtype of the result.

    Returns:
        A vector of floating point or complex numbers.

    >>> import purax.numpy as jnp
    >>> jnp.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0]))
    Array([2., 3.], dtype=float32)
    """
    x, y = _vectors("correlate", a, v, mode)
    if y.size > x.size:  # so that "same" is centred as in NumPy
        swapped = _convolution(y, rev(conjugate(x), (0,)), mode, precision, preferred_element_type)
        return rev(conjugate(swapped), (0,))
    return _convolution(x, rev(conjugate(y), (0,)), mode, precision, preferred_element_type)


def _vectors(name: str, a: Any, v: Any, mode: str) -> tuple[Array, Array]:
    if mode not in _MODES:
        raise located(ValueError, f"{name}: mode must be one of 'full', 'same', 'valid', got {shown(mode)}")
    x, y = strong_array(a, name, 0), strong_array(v, name, 1)
    if x.ndim != 1 or y.ndim != 1:
        raise located(ValueError, f"{name} takes 1-dimensional arrays, got shapes {x.shape} and {y.shape}")
    if not x.size or not y.size:
        raise located(ValueError, f"{name}: inputs cannot be empty, got shapes {x.shape} and {y.shape}")
    dtype = dtypes.to_inexact_dtype(common_dtype((x, y))[0])
    return convert_element_type(x, dtype), convert_element_type(y, dtype)


def _convolution(x: Array, y: Array, mode: str, precision: Any, preferred: Any) -> Array:
    if y.size > x.size:
        x, y = y, x
    if preferred is not None:
        preferred = dtypes.as_dtype(preferred, "preferred_element_type")
    return _convolve(x, y, mode=mode, precision=canonical_precision(precision), preferred=preferred)


def _convolve_on_host(x, y, *, mode, precision, preferred):
    result = preferred or x.dtype
    if dtypes.is_floating(x.dtype) and x.dtype.itemsize < 4:
        x, y = x.astype(np.float32), y.astype(np.float32)
    return np.convolve(x, y, mode).astype(result)


@as_one_program(_convolve_on_host)
def _convolve(x, y, *, mode, precision, preferred):
    size = y.shape[0]
    padding = {"full": (size - 1, size - 1), "same": (size // 2, size - size // 2 - 1), "valid": (0, 0)}[mode]
    result = conv_general_dilated(
        reshape(x, (1, 1, x.shape[0])),
        reshape(rev(y, (0,)), (1, 1, size)),
        (1,),
        [padding],
        precision=precision,
        preferred_element_type=preferred,
    )
    return reshape(result, (result.shape[2],))
