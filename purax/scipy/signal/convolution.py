"""Convolution and correlation of arrays of any number of axes.

A correlation is a convolution with the conjugate of the second array, turned round. All results are parts of the full
one: "same" its middle, of the size of the first array, "valid" what needs no elements beyond the arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from purax import numpy as jnp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.limits import finite
from purax.core.source import located
from purax.errors import shown
from purax.lax.convolution import conv_general_dilated
from purax.numpy._programs import strong_array
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.products.contraction import canonical_precision
from purax.primitives.shape.slicing import slice as cut
from purax.typing import ArrayLike

_MODES = ("full", "same", "valid")
_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def convolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: Any = None
) -> Array:
    """The convolution of two arrays: element n is the sum of in1[k] in2[n - k] over all k.

    Args:
        in1, in2: arrays with the same number of axes.
        mode: "full" for all sums, "same" for the middle part with the shape of `in1`, "valid" for the sums in which one
            array lies inside of the other.
        method: "direct" for sums, "fft" for a product of Fourier transforms, which is faster for large arrays and has
            rounding errors relative to the largest elements; "auto" is "direct".
        precision: of the sums; see `lax.Precision`.

    Returns:
        An array of floating point or complex numbers.

    >>> import purax as px, purax.numpy as jnp
    >>> px.scipy.signal.convolve(jnp.array([1, 2, 3, 2, 1]), jnp.array([1, 1, 1]), mode="same")
    Array([3., 6., 7., 6., 3.], dtype=float32)
    """
    _check_method("convolve", method)
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    x, y = _arrays("convolve", in1, in2, mode)
    return _direct("convolve", x, y, mode, precision)


def correlate(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: Any = None
) -> Array:
    """The correlation of two arrays: element n is the sum of in1[n + k] and the conjugate of in2[k] over all k.

    The arguments are those of `convolve`.

    >>> import purax as px, purax.numpy as jnp
    >>> px.scipy.signal.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([0.0, 1.0, 0.5]), mode="valid")
    Array([3.5], dtype=float32)
    """
    _check_method("correlate", method)
    x, y = _arrays("correlate", in1, in2, mode)
    y = jnp.flip(y).conj()
    if method == "fft":
        return fftconvolve(x, y, mode)
    return _direct("correlate", x, y, mode, precision)


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: Any = 0,
    precision: Any = None,
) -> Array:
    """The convolution of two matrices.

    Args:
        in1, in2: the matrices.
        mode: as that of `convolve`.
        boundary: what lies beyond the edges of `in1`: "fill" for `fillvalue`, "wrap" for the other side, "symm" for the
            mirror image.
        fillvalue: a number.
        precision: see `lax.Precision`.

    Returns:
        A matrix of floating point or complex numbers.

    >>> import purax as px, purax.numpy as jnp
    >>> px.scipy.signal.convolve2d(jnp.array([[1, 2], [3, 4]]), jnp.ones((1, 2)), mode="valid")
    Array([[3.],
           [7.]], dtype=float32)
    """
    x, y = _arrays("convolve2d", in1, in2, mode)
    return _planes("convolve2d", x, y, mode, boundary, fillvalue, precision)


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: Any = 0,
    precision: Any = None,
) -> Array:
    """The correlation of two matrices. The arguments are those of `convolve2d`.

    >>> import purax as px, purax.numpy as jnp
    >>> px.scipy.signal.correlate2d(jnp.array([[1, 2], [3, 4]]), jnp.array([[1, 0], [0, 1]]), mode="valid")
    Array([[5.]], dtype=float32)
    """
    x, y = _arrays("correlate2d", in1, in2, mode)
    if mode == "same":
        # SciPy centres this one on the other side: it turns the smaller full result round.
        turned = _planes("correlate2d", jnp.flip(x), y.conj(), mode, boundary, fillvalue, precision)
        return jnp.flip(turned)
    return _planes("correlate2d", x, jnp.flip(y).conj(), mode, boundary, fillvalue, precision)


def fftconvolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: int | Sequence[int] | None = None
) -> Array:
    """The convolution of two arrays as a product of their Fourier transforms.

    Args:
        in1, in2: arrays with the same number of axes.
        mode: as that of `convolve`.
        axes: the axes to convolve along, all if None; along the others the arrays are broadcast.

    Returns:
        An array of floating point or complex numbers.

    >>> import purax as px, purax.numpy as jnp
    >>> px.scipy.signal.fftconvolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 1.0])).round(3)
    Array([1., 3., 5., 3.], dtype=float32)
    """
    x, y = _arrays("fftconvolve", in1, in2, mode)
    if not x.ndim:
        return x * y
    if axes is None:
        axes = tuple(range(x.ndim))
    axes = (axes,) if isinstance(axes, int) else tuple(finite(axes))
    axes = tuple(axis % x.ndim if -x.ndim <= axis < x.ndim else axis for axis in axes)
    if any(not 0 <= axis < x.ndim for axis in axes) or len(set(axes)) != len(axes):
        raise located(
            ValueError, f"fftconvolve: axes must be different axes of arrays of shape {x.shape}, got {axes}"
        )
    others = [axis for axis in range(x.ndim) if axis not in axes]
    if any(x.shape[a] != y.shape[a] and 1 not in (x.shape[a], y.shape[a]) for a in others):
        raise located(
            ValueError,
            f"fftconvolve: shapes {x.shape} and {y.shape} do not broadcast along the axes that are not in {axes}",
        )
    first = x.shape
    if mode == "valid":
        x, y = _larger_first("fftconvolve", x, y, axes)
        first = x.shape
    if not axes:
        return x * y
    sizes = [x.shape[a] + y.shape[a] - 1 for a in axes]
    if 0 in (*x.shape, *y.shape):
        wide = tuple(
            sizes[axes.index(a)] if a in axes else max(x.shape[a], y.shape[a]) for a in range(x.ndim)
        )
        return _part(jnp.zeros(tuple(max(n, 0) for n in wide), x.dtype), first, y.shape, mode, axes)
    padded = [_good_size(size) for size in sizes]
    narrow = x.dtype
    if dtypes.is_floating(narrow) and dtypes.itemsize_bits(narrow) < 32:
        x, y = (convert_element_type(a, jnp.float32) for a in (x, y))
    if dtypes.is_complex(x.dtype):
        full = jnp.fft.ifftn(jnp.fft.fftn(x, padded, axes) * jnp.fft.fftn(y, padded, axes), padded, axes)
    else:
        full = jnp.fft.irfftn(jnp.fft.rfftn(x, padded, axes) * jnp.fft.rfftn(y, padded, axes), padded, axes)
    limits = [sizes[axes.index(a)] if a in axes else n for a, n in enumerate(full.shape)]
    full = cut(full, (0,) * full.ndim, limits)
    return convert_element_type(_part(full, first, y.shape, mode, axes), narrow)


def _check_method(name: str, method: str) -> None:
    if method not in ("auto", "direct", "fft"):
        raise located(ValueError, f"{name}: method must be 'auto', 'direct' or 'fft', got {shown(method)}")


def _arrays(name: str, in1: Any, in2: Any, mode: str) -> tuple[Array, Array]:
    """Both arguments in the floating point or complex dtype of the result."""
    if mode not in _MODES:
        raise located(ValueError, f"{name}: mode must be one of 'full', 'same', 'valid', got {shown(mode)}")
    x, y = strong_array(in1, name, 0), strong_array(in2, name, 1)
    needed = 2 if name.endswith("2d") else x.ndim
    if x.ndim != needed or y.ndim != needed:
        wanted = "matrices" if name.endswith("2d") else "arrays with the same number of axes"
        raise located(ValueError, f"{name} takes two {wanted}, got arrays of shapes {x.shape} and {y.shape}")
    dtype = dtypes.to_inexact_dtype(dtypes.result_type(in1, in2))
    return convert_element_type(x, dtype), convert_element_type(y, dtype)


def _larger_first(name: str, x: Array, y: Array, axes: Sequence[int]) -> tuple[Array, Array]:
    if all(x.shape[a] >= y.shape[a] for a in axes):
        return x, y
    if all(x.shape[a] <= y.shape[a] for a in axes):
        return y, x
    raise located(
        ValueError,
        f"{name}: with mode='valid' one array must be at least as large as the other along every axis, got shapes "
        f"{x.shape} and {y.shape}",
    )


def _direct(name: str, x: Array, y: Array, mode: str, precision: Any) -> Array:
    axes = range(x.ndim)
    if not x.ndim:
        return x * y
    if 0 in (*x.shape, *y.shape):
        raise located(ValueError, f"{name}: the arrays must not be empty, got shapes {x.shape} and {y.shape}")
    if mode == "valid":
        x, y = _larger_first(name, x, y, axes)
        return _sums(x, y, [(0, 0)] * x.ndim, precision)
    if mode == "same":
        # Of the full result, n₁ elements from (n₂ - 1) // 2 on.
        return _sums(x, y, [(n - 1 - (n - 1) // 2, (n - 1) // 2) for n in y.shape], precision)
    if y.size > x.size:
        x, y = y, x
    return _sums(x, y, [(n - 1, n - 1) for n in y.shape], precision)


def _planes(name: str, x: Array, y: Array, mode: str, boundary: str, fillvalue: Any, precision: Any) -> Array:
    if boundary not in _BOUNDARIES:
        raise located(
            ValueError, f"{name}: boundary must be one of 'fill', 'wrap', 'symm', got {shown(boundary)}"
        )
    is_plain = boundary == "fill" and isinstance(fillvalue, (int, float)) and fillvalue == 0
    if is_plain or mode == "valid" or 0 in (*x.shape, *y.shape):
        return _direct(name, x, y, mode, precision)
    options = {"constant_values": fillvalue} if boundary == "fill" else {}
    beyond = [(n - 1, n - 1) for n in y.shape]
    wide = jnp.pad(x, beyond, _BOUNDARIES[boundary], **options)
    full = _sums(wide, y, [(0, 0), (0, 0)], precision)
    return _part(full, x.shape, y.shape, mode, (0, 1))


def _sums(x: Array, y: Array, padding: list[tuple[int, int]], precision: Any) -> Array:
    result = conv_general_dilated(
        x.reshape(1, 1, *x.shape),
        jnp.flip(y).reshape(1, 1, *y.shape),
        (1,) * x.ndim,
        padding,
        precision=canonical_precision(precision),
    )
    return result.reshape(result.shape[2:])


def _part(
    full: Array, first: tuple[int, ...], second: tuple[int, ...], mode: str, axes: Sequence[int]
) -> Array:
    """The part of a full convolution that a mode names."""
    if mode == "full":
        return full
    starts, limits = [0] * full.ndim, list(full.shape)
    for a in axes:
        size = first[a] if mode == "same" else first[a] - second[a] + 1
        starts[a] = (full.shape[a] - size) // 2
        limits[a] = starts[a] + size
    return cut(full, starts, limits)


def _good_size(size: int) -> int:
    """The least size that is no less and has no prime factors but 2, 3 and 5, for which the transform is fast."""
    best = 1
    while best < size:
        best *= 2
    five = 1
    while five < best:
        three = five
        while three < best:
            candidate = three
            while candidate < size:
                candidate *= 2
            best = min(best, candidate)
            three *= 3
        five *= 5
    return best
