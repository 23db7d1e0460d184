"""Cosine transforms of types 1 to 4, as `jax.scipy.fft`, by FFTs.

With N points, type 2 is 2 Σ xₙ cos(πk (2n + 1)/2N), type 3 its inverse but for a factor; types 1 and 4 are their own.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.limits import finite
from purax.core.source import located
from purax.errors import shown
from purax.numpy._promotion import promotes_freely
from purax.numpy._shape.axes import canonical_axis
from purax.typing import ArrayLike

_INVERSE_TYPES = {1: 1, 2: 3, 3: 2, 4: 4}
_INVERSE_NORMS = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _checked(name: str, type: int, norm: str | None) -> tuple[int, str]:
    if type not in _INVERSE_TYPES:
        raise located(ValueError, f"fft.{name}: type must be 1, 2, 3 or 4, got {shown(type)}")
    norm = "backward" if norm is None else norm
    if norm not in _INVERSE_NORMS:
        raise located(
            ValueError, f"fft.{name}: norm must be 'backward', 'ortho' or 'forward', got {shown(norm)}"
        )
    return type, norm


def _operand(x: ArrayLike) -> Array:
    x = jnp.asarray(x)
    dtype = dtypes.to_inexact_dtype(x.dtype)
    return x.astype(np.float32 if dtypes.is_floating(dtype) and dtype.itemsize < 4 else dtype)


def _resized(name: str, x: Array, axis: int, n: Any) -> Array:
    """`x` cut off, or filled up with zeros, along an axis."""
    size = x.shape[axis] if n is None else operator.index(n)
    if size < 1:
        raise located(ValueError, f"fft.{name}: the number of points must be positive, got {size}")
    if size <= x.shape[axis]:
        return x[tuple(slice(0, size) if i == axis else slice(None) for i in range(x.ndim))]
    return jnp.pad(x, [(0, size - x.shape[axis] if i == axis else 0) for i in range(x.ndim)])


def _scaled_ends(x: Array, factor: float, both: bool) -> Array:
    """The first and, if `both`, the last element along the last axis times a factor."""
    weights = np.ones(x.shape[-1])
    weights[0] *= factor
    if both:
        weights[-1] *= factor
    return x * jnp.asarray(weights, x.dtype)


def _transform(x: Array, type: int, norm: str) -> Array:
    """The cosine transform of a real array along its last axis."""
    size = x.shape[-1]
    period = 2 * (size - 1) if type == 1 else 2 * size
    if period == 0:
        raise located(ValueError, "fft: a transform of type 1 needs at least 2 points")
    if norm == "ortho" and type in (1, 3):
        x = _scaled_ends(x, math.sqrt(2), both=type == 1)
    result = (_type_1, _type_2, _type_3, _type_4)[type - 1](x)
    if norm == "ortho" and type in (1, 2):
        result = _scaled_ends(result, math.sqrt(0.5), both=type == 1)
    scale = {"backward": 1.0, "forward": 1 / period, "ortho": 1 / math.sqrt(period)}[norm]
    return result if scale == 1 else result * scale


def _phases(angles: np.ndarray, dtype: Any) -> Array:
    """e^(−i angle), computed in double precision."""
    return jnp.asarray(np.exp(-1j * angles), dtypes.to_complex_dtype(dtype))


def _type_1(x: Array) -> Array:
    return jnp.fft.rfft(jnp.concatenate([x, x[..., -2:0:-1]], axis=-1)).real


def _type_2(x: Array) -> Array:
    # The even points, then the odd ones backwards: the real part of their Fourier transform, turned.
    size = x.shape[-1]
    ordered = jnp.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], axis=-1)
    return (2 * jnp.fft.fft(ordered) * _phases(np.pi * np.arange(size) / (2 * size), x.dtype)).real


def _type_3(x: Array) -> Array:
    # The steps of type 2 backwards: x₀ + 2 Σ xₖ cos(πk (2n + 1)/2N).
    size = x.shape[-1]
    mirrored = jnp.concatenate([jnp.zeros_like(x[..., :1]), x[..., :0:-1]], axis=-1)
    turned = (x - 1j * mirrored) * jnp.conj(_phases(np.pi * np.arange(size) / (2 * size), x.dtype))
    ordered = (jnp.fft.ifft(turned) * size).real
    half = (size + 1) // 2
    places = np.empty(size, np.int32)
    places[::2] = np.arange(half)
    places[1::2] = np.arange(size - 1, half - 1, -1)
    return ordered[..., places]


def _type_4(x: Array) -> Array:
    size = x.shape[-1]
    turned = x * _phases(np.pi * np.arange(size) / (2 * size), x.dtype)
    spectrum = jnp.fft.fft(turned, n=2 * size)[..., :size]
    return (2 * spectrum * _phases(np.pi * (2 * np.arange(size) + 1) / (4 * size), x.dtype)).real


@promotes_freely
def _along(x: Array, axis: int, type: int, norm: str) -> Array:
    moved = jnp.moveaxis(x, axis, -1)
    if dtypes.is_complex(x.dtype):
        result = _transform(moved.real, type, norm) + 1j * _transform(moved.imag, type, norm)
    else:
        result = _transform(moved, type, norm)
    return jnp.moveaxis(result, -1, axis)


def dct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The cosine transform along an axis.

    Args:
        x: an array, real or complex.
        type: 1, 2, 3 or 4.
        n: how many points to take; zeros are added if there are fewer.
        axis: the axis.
        norm: which direction is scaled: "backward" (the default) the inverse, "forward" this one, or "ortho" both, so
            that the transform is orthogonal.

    Returns:
        An array of the shape of `x`, but for `n`.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.fft import dct
    >>> jnp.round(dct(jnp.array([1.0, 2.0])), 4)
    Array([ 6.    , -1.4142], dtype=float32)
    """
    type, norm = _checked("dct", type, norm)
    x = _operand(x)
    axis = canonical_axis("fft.dct", axis, x.ndim, "axis")
    return _along(_resized("dct", x, axis, n), axis, type, norm)


def idct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of the cosine transform along an axis; arguments as those of `dct`.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.fft import dct, idct
    >>> jnp.round(idct(dct(jnp.array([1.0, 2.0]))), 4)
    Array([1., 2.], dtype=float32)
    """
    type, norm = _checked("idct", type, norm)
    x = _operand(x)
    axis = canonical_axis("fft.idct", axis, x.ndim, "axis")
    return _along(_resized("idct", x, axis, n), axis, _INVERSE_TYPES[type], _INVERSE_NORMS[norm])


def _several(name: str, x: ArrayLike, s: Any, axes: Any, type: int, norm: str) -> Array:
    x = _operand(x)
    sizes = [s] if isinstance(s, (int, np.integer)) else s
    if isinstance(axes, (int, np.integer)):
        axes = [axes]
    if axes is None:
        axes = range(x.ndim) if sizes is None else range(x.ndim - len(sizes), x.ndim)
    axes = [canonical_axis(f"fft.{name}", axis, x.ndim, "axes") for axis in finite(axes)]
    if len(set(axes)) != len(axes):
        raise located(ValueError, f"fft.{name}: axes are repeated, got {tuple(axes)}")
    if sizes is not None and len(sizes) != len(axes):
        raise located(
            ValueError,
            f"fft.{name}: there must be as many sizes as axes, got {tuple(sizes)} and {tuple(axes)}",
        )
    for axis, size in zip(axes, sizes or [None] * len(axes), strict=True):
        x = _along(_resized(name, x, axis, size), axis, type, norm)
    return x


def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The cosine transform along several axes.

    Args:
        x: an array.
        type: 1, 2, 3 or 4.
        s: how many points to take along each axis.
        axes: the axes; by default the last ones, as many as `s` has numbers, or all.
        norm: as for `dct`.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.fft import dctn
    >>> float(dctn(jnp.ones((2, 3)))[0, 0])
    24.0
    """
    type, norm = _checked("dctn", type, norm)
    return _several("dctn", x, s, axes, type, norm)


def idctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of the cosine transform along several axes; arguments as those of `dctn`.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.fft import dctn, idctn
    >>> bool(jnp.allclose(idctn(dctn(jnp.ones((2, 3)))), 1, atol=1e-5))
    True
    """
    type, norm = _checked("idctn", type, norm)
    return _several("idctn", x, s, axes, _INVERSE_TYPES[type], _INVERSE_NORMS[norm])
