"""FFTs with the names and arguments of `jax.numpy.fft`.

`norm` says which direction divides by the number n of points: "backward" (the default) the inverse transforms,
"forward" the others, "ortho" both, by √n.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.api.transfer import device_put
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.numpy._promotion import as_array, convert
from purax.numpy._shape.axes import canonical_axes, canonical_axis, integer, items
from purax.numpy._shape.rearranging import roll
from purax.numpy._shape.shaping import moveaxis
from purax.primitives.elementwise.arithmetic import div
from purax.primitives.elementwise.conversion import conj, convert_element_type
from purax.primitives.elementwise.elementwise import mul
from purax.primitives.fft import MAX_AXES, FftType
from purax.primitives.fft import fft as transform
from purax.primitives.linalg.lapack import complex_dtype
from purax.primitives.shape.slicing import pad, slice_axis
from purax.typing import ArrayLike, DTypeLike

_NORMS = (None, "backward", "ortho", "forward")
_INVERSE = (FftType.IFFT, FftType.IRFFT)
_WIDE = {np.dtype(np.float16): np.dtype(np.float32)}


def _operand(name: str, a: Any, kind: FftType) -> Array:
    """An argument as an array that a transform takes: complex, or real for RFFT; half precision becomes single."""
    x = as_array(a, f"fft.{name}")
    dtype = x.aval.dtype
    if kind is FftType.RFFT and dtypes.is_complex(dtype):
        raise located(
            ValueError,
            f"fft.{name} takes real arrays, got dtype {dtype}; use fft.fft for complex arrays, or .real of this one",
        )
    wanted = dtypes.to_inexact_dtype(dtype)
    if dtypes.is_floating(wanted) and wanted.itemsize < 4:
        wanted = np.dtype(np.float32)
    if kind is not FftType.RFFT:
        wanted = complex_dtype(wanted)
    if x.aval.weak_type or wanted != dtype:
        x = convert_element_type(x, wanted)
    return x


def _check_norm(name: str, norm: str | None) -> None:
    if norm not in _NORMS:
        raise located(
            ValueError, f"fft.{name}: norm must be 'backward', 'ortho' or 'forward', got {shown(norm)}"
        )


def _resized(x: Array, axis: int, size: int) -> Array:
    """`x` cut off, or filled up with zeros, along an axis."""
    own = x.shape[axis]
    if own == size:
        return x
    if own.__class__ is int and own > size:  # a symbolic one is cut off by padding of less than nothing
        return slice_axis(x, 0, size, axis)
    config = [(0, size - own if i == axis else 0, 0) for i in range(x.ndim)]
    return pad(x, np.zeros((), x.dtype), config)


def _transformed(
    name: str,
    kind: FftType,
    a: Any,
    sizes: Sequence[int] | None,
    axes: Sequence[int] | None,
    norm: str | None,
) -> Array:
    """The transform over axes, after bringing each to its size."""
    _check_norm(name, norm)
    x = _operand(name, a, kind)
    if axes is None:
        axes = range(x.ndim) if sizes is None else range(x.ndim - len(sizes), x.ndim)
    given = items(f"fft.{name}", "axes", axes)
    axes = [canonical_axis(f"fft.{name}", axis, x.ndim, "axes") for axis in given]
    if len(set(axes)) != len(axes):
        raise located(ValueError, f"fft.{name} does not support repeated axes, got {tuple(axes)}")
    lengths = _lengths(name, kind, x, sizes, axes)
    if not axes:
        return x
    if kind is FftType.RFFT and not lengths[-1]:
        raise located(
            ValueError,
            f"fft.{name}: the number of points must be positive, axis {axes[-1]} of {x.shape} has none",
        )
    for axis, length in zip(axes, lengths, strict=True):
        halved = kind is FftType.IRFFT and axis == axes[-1]
        x = _resized(x, axis, length // 2 + 1 if halved else length)
    places = list(range(x.ndim - len(axes), x.ndim))
    moved = moveaxis(x, axes, places) if axes != places else x
    result = _over_last_axes(moved, kind, lengths)
    result = _scaled(result, kind, math.prod(lengths), norm)
    return moveaxis(result, places, axes) if axes != places else result


def _lengths(name: str, kind: FftType, x: Array, sizes: Any, axes: list[int]) -> list[int]:
    if sizes is not None:
        given = items(f"fft.{name}", "s", sizes)
        lengths = [integer(f"fft.{name}", "the number of points", size) for size in given]
        if len(lengths) != len(axes):
            raise located(
                ValueError,
                f"fft.{name}: there must be as many sizes as axes, got {tuple(sizes)} and {tuple(axes)}",
            )
        if any(length < 1 for length in lengths):
            raise located(
                ValueError, f"fft.{name}: the number of points must be positive, got {tuple(lengths)}"
            )
        return lengths
    lengths = [x.shape[axis] for axis in axes]
    if kind is FftType.IRFFT and axes:
        lengths[-1] = max(2 * (lengths[-1] - 1), 0)
    return lengths


def _over_last_axes(x: Array, kind: FftType, lengths: list[int]) -> Array:
    """The transform over the last axes, a few at a time; the last axis is the one that real transforms halve."""
    count = len(lengths)
    if count <= MAX_AXES:
        return transform(x, kind, lengths)
    rest = FftType.IFFT if kind in _INVERSE else FftType.FFT
    last, others = lengths[-MAX_AXES:], lengths[:-MAX_AXES]
    if kind is not FftType.IRFFT:
        x = transform(x, kind, last)
    source_axes = list(range(x.ndim - count, x.ndim - MAX_AXES))
    places = list(range(x.ndim - len(others), x.ndim))
    x = moveaxis(_over_last_axes(moveaxis(x, source_axes, places), rest, others), places, source_axes)
    return transform(x, kind, last) if kind is FftType.IRFFT else x


def _scaled(x: Array, kind: FftType, count: int, norm: str | None) -> Array:
    """Moves the factor 1/n to where `norm` wants it; XLA puts it into the inverse transforms."""
    inverse = kind in _INVERSE
    if norm in (None, "backward") or not count:
        return x
    power = (1.0 if inverse else -1.0) * (0.5 if norm == "ortho" else 1.0)
    return mul(x, np.array(float(count) ** power, x.dtype))


def _one_axis(name: str, axis: Any) -> tuple[Any]:
    if isinstance(axis, (tuple, list)):
        raise located(
            ValueError,
            f"fft.{name} transforms one axis, got axis={shown(axis)}; use the function with n in its name, fft.fftn",
        )
    return (axis,)


def _two_axes(name: str, axes: Any) -> Any:
    if len(items(f"fft.{name}", "axes", axes)) != 2:
        raise located(ValueError, f"fft.{name} transforms two axes, got axes={shown(axes)}")
    return axes


# --- one axis


def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The FFT along an axis: yₖ = Σⱼ aⱼ exp(−2πi jk/n).

    Args:
        a: the array.
        n: the number of points; the axis is cut off, or filled up with zeros. By default its size.
        axis: which axis.
        norm: which direction divides by n; see the module.

    Returns:
        A complex array.

    >>> import purax.numpy as jnp
    >>> jnp.fft.fft(jnp.array([1.0, 0.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _transformed("fft", FftType.FFT, a, None if n is None else (n,), _one_axis("fft", axis), norm)


def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `fft`.

    Args:
        a: an array.
        n: the length; the array is cut or filled with zeros.
        axis: the axis.
        norm: "backward" (the default), "ortho" or "forward": where the transform is divided by the length,
            or its root.

    >>> import purax.numpy as jnp
    >>> jnp.fft.ifft(jnp.array([4.0, 0.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _transformed("ifft", FftType.IFFT, a, None if n is None else (n,), _one_axis("ifft", axis), norm)


def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The FFT of a real array: the first n // 2 + 1 elements of `fft`, of which the others are conjugates.

    Args:
        a: an array.
        n: the length; the array is cut or filled with zeros.
        axis: the axis.
        norm: "backward" (the default), "ortho" or "forward": where the transform is divided by the length,
            or its root.

    >>> import purax.numpy as jnp
    >>> jnp.fft.rfft(jnp.array([1.0, 0.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _transformed("rfft", FftType.RFFT, a, None if n is None else (n,), _one_axis("rfft", axis), norm)


def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `rfft`.

    Args:
        a: the array, of which the first n // 2 + 1 elements along the axis count.
        n: the size of the result along the axis, by default 2 (m − 1) for m elements.
        axis: which axis.
        norm: which direction divides by n; see the module.

    Returns:
        A real array.

    >>> import purax.numpy as jnp
    >>> jnp.fft.irfft(jnp.array([1.0, 1.0, 1.0]))
    Array([1., 0., 0., 0.], dtype=float32)
    """
    return _transformed(
        "irfft", FftType.IRFFT, a, None if n is None else (n,), _one_axis("irfft", axis), norm
    )


_OPPOSITE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The FFT of an array that is its own conjugate mirror image, of which the first half is given.

    Args:
        a: an array.
        n: the length of the result.
        axis: the axis.
        norm: "backward" (the default), "ortho" or "forward": where the transform is divided by the length,
            or its root.

    >>> import purax.numpy as jnp
    >>> jnp.fft.hfft(jnp.array([1.0, 1.0, 1.0]))
    Array([4., 0., 0., 0.], dtype=float32)
    """
    _check_norm("hfft", norm)
    x = conj(_operand("hfft", a, FftType.IRFFT))
    return _transformed(
        "hfft", FftType.IRFFT, x, None if n is None else (n,), _one_axis("hfft", axis), _OPPOSITE[norm]
    )


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft`.

    Args:
        a: an array.
        n: the length; the array is cut or filled with zeros.
        axis: the axis.
        norm: "backward" (the default), "ortho" or "forward": where the transform is divided by the length,
            or its root.

    >>> import purax.numpy as jnp
    >>> jnp.fft.ihfft(jnp.array([4.0, 0.0, 0.0, 0.0]))
    Array([1.-0.j, 1.-0.j, 1.-0.j], dtype=complex64)
    """
    _check_norm("ihfft", norm)
    sizes = None if n is None else (n,)
    return conj(_transformed("ihfft", FftType.RFFT, a, sizes, _one_axis("ihfft", axis), _OPPOSITE[norm]))


# --- several axes


def fftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The FFT along several axes.

    Args:
        a: the array.
        s: the number of points along each axis; by default the sizes of the axes.
        axes: which axes; by default the last ones, as many as `s` has elements, or all.
        norm: which direction divides by the number of points; see the module.

    Returns:
        A complex array.

    >>> import purax.numpy as jnp
    >>> jnp.fft.fftn(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _transformed("fftn", FftType.FFT, a, s, axes, norm)


def ifftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The inverse of `fftn`.

    Args:
        a: an array.
        s: the lengths along the axes; the array is cut or filled with zeros.
        axes: the axes, by default all of them.
        norm: "backward" (the default), "ortho" or "forward": where the transform is divided by the length,
            or its root.

    >>> import purax.numpy as jnp
    >>> jnp.fft.ifftn(jnp.ones((2, 2)))
    Array([[1.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _transformed("ifftn", FftType.IFFT, a, s, axes, norm)


def rfftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The FFT of a real array along several axes; the last of them is halved as by `rfft`.

    Args:
        a: an array.
        s: the lengths along the axes; the array is cut or filled with zeros.
        axes: the axes, by default all of them.
        norm: "backward" (the default), "ortho" or "forward": where the transform is divided by the length,
            or its root.

    >>> import purax.numpy as jnp
    >>> jnp.fft.rfftn(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _transformed("rfftn", FftType.RFFT, a, s, axes, norm)


def irfftn(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The inverse of `rfftn`.

    Args:
        a: an array.
        s: the lengths along the axes; the array is cut or filled with zeros.
        axes: the axes, by default all of them.
        norm: "backward" (the default), "ortho" or "forward": where the transform is divided by the length,
            or its root.

    >>> import purax.numpy as jnp
    >>> jnp.fft.irfftn(jnp.ones((2, 2)))
    Array([[1., 0.],
           [0., 0.]], dtype=float32)
    """
    return _transformed("irfftn", FftType.IRFFT, a, s, axes, norm)


def fft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The FFT along two axes; see `fftn`.

    Args:
        a: an array.
        s: the lengths along the axes; the array is cut or filled with zeros.
        axes: the two axes.
        norm: "backward" (the default), "ortho" or "forward": where the transform is divided by the length,
            or its root.

    >>> import purax.numpy as jnp
    >>> jnp.fft.fft2(jnp.ones((2, 2))).sum()
    Array(4.+0.j, dtype=complex64)
    """
    return _transformed("fft2", FftType.FFT, a, s, _two_axes("fft2", axes), norm)


def ifft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The inverse of `fft2`.

    Args:
        a: an array.
        s: the lengths along the axes; the array is cut or filled with zeros.
        axes: the two axes.
        norm: "backward" (the default), "ortho" or "forward": where the transform is divided by the length,
            or its root.

    >>> import purax.numpy as jnp
    >>> jnp.fft.ifft2(jnp.ones((2, 2))).sum()
    Array(1.+0.j, dtype=complex64)
    """
    return _transformed("ifft2", FftType.IFFT, a, s, _two_axes("ifft2", axes), norm)


def rfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The FFT of a real array along two axes; see `rfftn`.

    Args:
        a: an array.
        s: the lengths along the axes; the array is cut or filled with zeros.
        axes: the two axes.
        norm: "backward" (the default), "ortho" or "forward": where the transform is divided by the length,
            or its root.

    >>> import purax.numpy as jnp
    >>> jnp.fft.rfft2(jnp.ones((2, 2))).sum()
    Array(4.+0.j, dtype=complex64)
    """
    return _transformed("rfft2", FftType.RFFT, a, s, _two_axes("rfft2", axes), norm)


def irfft2(
    a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The inverse of `rfft2`.

    Args:
        a: an array.
        s: the lengths along the axes; the array is cut or filled with zeros.
        axes: the two axes.
        norm: "backward" (the default), "ortho" or "forward": where the transform is divided by the length,
            or its root.

    >>> import purax.numpy as jnp
    >>> jnp.fft.irfft2(jnp.ones((2, 2))).sum()
    Array(1., dtype=float32)
    """
    return _transformed("irfft2", FftType.IRFFT, a, s, _two_axes("irfft2", axes), norm)


# --- frequencies


def _frequencies(name: str, n: Any, d: Any, dtype: Any, device: Any, numbers: np.ndarray | None) -> Array:
    if numbers is None:
        raise located(ValueError, f"fft.{name}: n must be a non-negative int, got {shown(n)}")
    spacing = as_array(d, f"fft.{name}", 1)
    if spacing.ndim:
        raise located(ValueError, f"fft.{name}: d must be a number, got shape {spacing.shape}")
    wanted = dtypes.default_float() if dtype is None else dtypes.as_dtype(dtype)
    computed = wanted if dtypes.is_inexact(wanted) else dtypes.default_float()
    step = mul(convert(spacing, computed), np.array(max(n, 1), computed))
    result = div(convert_element_type(numbers, computed), step)
    result = convert_element_type(result, wanted)
    return result if device is None else device_put(result, device)


def _count(n: Any) -> int | None:
    try:
        count = operator.index(n)
    except TypeError:
        return None
    return count if count >= 0 else None


def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """The frequencies of the elements of `fft`, in cycles per unit of the sample spacing.

    Args:
        n: the number of points.
        d: the distance of two points.
        dtype: by default float.
        device: where to put the result.

    Returns:
        An array of shape (n,): 0, 1, …, and after the middle the negative ones, divided by d n.

    >>> import purax.numpy as jnp
    >>> jnp.fft.fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    count = _count(n)
    numbers = None if count is None else np.fft.ifftshift(np.arange(-(count // 2), (count + 1) // 2))
    return _frequencies("fftfreq", n, d, dtype, device, numbers)


def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None) -> Array:
    """The frequencies of the elements of `rfft`, in cycles per unit of the sample spacing.

    Args:
        n: the length of the signal.
        d: the distance of samples.
        dtype: of the result, by default the default float.
        device: where to put it.

    >>> import purax.numpy as jnp
    >>> jnp.fft.rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    count = _count(n)
    return _frequencies("rfftfreq", n, d, dtype, device, None if count is None else np.arange(count // 2 + 1))


def _shifted(name: str, x: ArrayLike, axes: Any, sign: int) -> Array:
    array = as_array(x, f"fft.{name}")
    chosen = canonical_axes(f"fft.{name}", axes, array.ndim, "axes")
    shifts = [sign * (array.shape[axis] // 2) for axis in chosen]
    return roll(array, tuple(shifts), tuple(chosen)) if chosen else array


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Moves the frequency zero to the middle.

    Args:
        x: an array.
        axes: the axes, by default all of them.

    >>> import purax.numpy as jnp
    >>> jnp.fft.fftshift(jnp.arange(5))
    Array([3, 4, 0, 1, 2], dtype=int32)
    """
    return _shifted("fftshift", x, axes, 1)


def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of `fftshift`.

    Args:
        x: an array.
        axes: the axes, by default all of them.

    >>> import purax.numpy as jnp
    >>> jnp.fft.ifftshift(jnp.arange(5))
    Array([2, 3, 4, 0, 1], dtype=int32)
    """
    return _shifted("ifftshift", x, axes, -1)


__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft", "irfft",
    "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip
