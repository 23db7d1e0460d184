"""Images of another size: `resize` and `scale_and_translate`.

Both are linear maps along each axis, products with a matrix of weights: what each new sample takes from each old one.
Samples stand at the centres of their pixels. The weights of `resize` depend on sizes only and are computed by NumPy in
double precision; those of `scale_and_translate` can be traced and differentiated.
"""

from __future__ import annotations

import enum
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.dimensions import as_size
from purax.core.limits import finite, shallow
from purax.core.source import located
from purax.errors import shown
from purax.numpy._promotion import as_array, promotes_freely
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.products.contraction import Precision
from purax.primitives.shape.gather_scatter import take
from purax.typing import ArrayLike

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """How samples between those of the image are computed; see `resize`."""

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(name: str) -> ResizeMethod:
        """The method of a name such as "linear" or "bicubic".

        >>> import purax as px
        >>> px.image.ResizeMethod.from_string("bilinear")
        <ResizeMethod.LINEAR: 1>
        """
        if shallow(name) not in _NAMES:
            raise located(
                ValueError,
                f"unknown resize method {shown(name)}; the methods are {', '.join(map(repr, sorted(_NAMES)))}",
            )
        return _NAMES[name]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}


def resize(
    image: ArrayLike,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = Precision.HIGHEST,
) -> Array:
    """An image in another size.

    Args:
        image: an array; all of its axes are alike, so that an axis of channels is one whose size does not change.
        shape: the sizes of all axes of the result.
        method: "nearest"; "linear" (or "bilinear", …); "cubic" (or "bicubic", …), with the kernel of Keys;
            "cubic-pytorch", which without antialiasing is what PyTorch has; "lanczos3" and "lanczos5"; "area", the mean
            over the area of a pixel. Or a `ResizeMethod`.
        antialias: whether kernels become wider where the image becomes smaller.
        precision: of the products; see `lax.Precision`.

    Returns:
        An array of the given shape, with the dtype of the image for "nearest", else with a floating point dtype.

    >>> import purax as px, purax.numpy as jnp
    >>> px.image.resize(jnp.array([0.0, 4.0]), (4,), "linear")
    Array([0., 1., 3., 4.], dtype=float32)
    """
    method = _method(method)
    x, shape = as_array(image, "resize"), _shape("resize", image, shape)
    changed = [axis for axis in range(x.ndim) if x.shape[axis] != shape[axis]]
    if any(x.shape[axis] == 0 for axis in changed):
        raise located(
            ValueError, f"resize: an image of shape {x.shape} has no samples to make one of shape {shape} of"
        )
    if method is ResizeMethod.NEAREST:
        for axis in changed:
            size = x.shape[axis]
            # ⌊(i + ½) · size / new⌋ in integers, where rounding cannot move it
            places = (2 * np.arange(shape[axis], dtype=np.int64) + 1) * size // (2 * max(shape[axis], 1))
            x = take(x, places.astype(np.int32), axis)
        return x
    x = _inexact(x)
    for axis in changed:
        weights = _resize_weights(x.shape[axis], shape[axis], method, antialias)
        x = _along(x, weights, axis, precision)
    return x


def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = Precision.HIGHEST,
) -> Array:
    """An image scaled and moved: what is at x comes to x · scale + translation.

    Args:
        image: an array.
        shape: the shape of the result; axes that are not in `spatial_dims` keep their size.
        spatial_dims: the axes to scale and move along.
        scale, translation: a factor and a distance for each of these axes. They can be traced and differentiated.
        method: as that of `resize`, but not "nearest".
        antialias: whether kernels become wider where the image becomes smaller.
        precision: of the products; see `lax.Precision`.

    Returns:
        An array of the given shape; what comes from outside of the image is 0. Negative scales turn the image round.

    >>> import purax as px, purax.numpy as jnp
    >>> px.image.scale_and_translate(jnp.array([1.0, 3.0]), (4,), (0,), jnp.ones(1), jnp.ones(1), "linear")
    Array([0., 1., 3., 0.], dtype=float32)
    """
    method = _method(method)
    x, shape = as_array(image, "scale_and_translate"), _shape("scale_and_translate", image, shape)
    if method is ResizeMethod.NEAREST:
        raise located(
            ValueError, "scale_and_translate cannot take the nearest sample; use `resize`, or method='area'"
        )
    axes = [operator.index(axis) for axis in finite(spatial_dims)]
    for axis in axes:
        if not -x.ndim <= axis < x.ndim:
            raise located(
                ValueError, f"scale_and_translate: spatial_dims has {axis}, but the image has shape {x.shape}"
            )
    factors, distances = jnp.asarray(scale), jnp.asarray(translation)
    if factors.shape != (len(axes),) or distances.shape != (len(axes),):
        raise located(
            ValueError,
            f"scale_and_translate: scale and translation must have one number for each of spatial_dims "
            f"{tuple(spatial_dims)}, got shapes {factors.shape} and {distances.shape}",
        )
    axes = [axis % x.ndim for axis in axes]
    for axis in range(x.ndim):
        if axis not in axes and x.shape[axis] != shape[axis]:
            shape = (*shape[:axis], x.shape[axis], *shape[axis + 1 :])
    x = _inexact(x)
    working = dtypes.promote_types(dtypes.to_real_dtype(x.dtype), np.float32)
    factors, distances = (convert_element_type(a, working) for a in (factors, distances))
    for i, axis in enumerate(axes):
        weights = _weights(
            jnp, x.shape[axis], shape[axis], factors[i], distances[i], method, antialias, working
        )
        x = _along(x, weights, axis, precision)
    return x


def _method(method: Any) -> ResizeMethod:
    return method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)


def _shape(name: str, image: Any, shape: Sequence[int]) -> tuple[int, ...]:
    sizes = tuple(as_size(size) for size in finite(shape))
    if len(sizes) != np.ndim(image):
        raise located(
            ValueError,
            f"{name}: shape must have a size for each axis of the image, got {sizes} for an image of shape "
            f"{np.shape(image)}",
        )
    return sizes


def _inexact(x: Array) -> Array:
    return convert_element_type(x, dtypes.to_inexact_dtype(x.dtype))


def _along(x: Array, weights: Any, axis: int, precision: Any) -> Array:
    """Σ_i x[…, i, …] · weights[i, o]"""
    weights = convert_element_type(weights, x.dtype)
    product = jnp.tensordot(x, weights, axes=((axis,), (0,)), precision=precision)
    return jnp.moveaxis(product, -1, axis)


@functools.lru_cache(64)
def _resize_weights(size: int, new_size: int, method: ResizeMethod, antialias: bool) -> np.ndarray:
    scale = np.float64(new_size) / size
    weights = _weights(np, size, new_size, scale, np.float64(0), method, antialias, np.dtype(np.float64))
    weights = (
        weights.astype(np.float32) if weights.size > 1 << 20 else weights
    )  # double only while it is cheap
    weights.setflags(write=False)
    return weights


@promotes_freely
def _weights(
    numpy: Any,
    size: int,
    new_size: int,
    scale: Any,
    translation: Any,
    method: ResizeMethod,
    antialias: bool,
    dtype: Any,
) -> Any:
    """The matrix of what new sample o (a column) takes from old sample i (a row). Each column sums to 1, or is 0 where
    the new sample lies outside of the image. `numpy` is NumPy or `purax.numpy`.
    """
    if not new_size or not size:
        return numpy.zeros((size, new_size), dtype)
    step = 1 / scale
    centres = (numpy.arange(new_size, dtype=dtype) + 0.5 - translation) * step
    old = numpy.arange(size, dtype=dtype)[:, None]
    if method is ResizeMethod.AREA:
        half = 0.5 * abs(step)
        weights = numpy.maximum(
            numpy.minimum(centres + half, old + 1) - numpy.maximum(centres - half, old), 0
        )
    else:
        width = numpy.maximum(abs(step), 1) if antialias else numpy.ones((), dtype)
        if method is ResizeMethod.CUBIC_PYTORCH and not antialias:
            # Samples beyond the edges are those at the edges: the kernel reaches two of them.
            weights = _cubic(numpy, abs(centres - 0.5 - old), -0.75)
            for distance in (1, 2):
                beyond = numpy.where(old == 0, -distance, size - 1 + distance)
                extra = _cubic(numpy, abs(centres - 0.5 - beyond), -0.75)
                if size == 1:
                    extra = extra + _cubic(numpy, abs(centres - 0.5 + distance), -0.75)
                weights = weights + numpy.where((old == 0) | (old == size - 1), extra, 0)
        else:
            weights = _KERNELS[method](numpy, abs(centres - 0.5 - old) / width)
    total = numpy.sum(weights, axis=0, keepdims=True)
    is_empty = abs(total) <= 1000 * np.finfo(np.float32).eps
    weights = numpy.where(is_empty, 0, weights / numpy.where(is_empty, 1, total))
    if method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        return weights  # the edges go on
    return numpy.where((centres >= 0) & (centres <= size), weights, 0)


def _triangle(numpy: Any, x: Any) -> Any:
    return numpy.maximum(0, 1 - x)


def _lanczos(radius: int) -> Callable:
    def kernel(numpy: Any, x: Any) -> Any:
        inside = x < radius
        x = numpy.where(inside, x, 0)
        return numpy.where(inside, numpy.sinc(x) * numpy.sinc(x / radius), 0)

    return kernel


def _cubic(numpy: Any, x: Any, a: float = -0.5) -> Any:
    """The cubic convolution kernel of Keys."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = a * (((x - 5) * x + 8) * x - 4)
    return numpy.where(x < 1, near, numpy.where(x < 2, far, 0))


_KERNELS: dict[ResizeMethod, Callable] = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: _lanczos(3),
    ResizeMethod.LANCZOS5: _lanczos(5),
    ResizeMethod.CUBIC: _cubic,
    ResizeMethod.CUBIC_PYTORCH: _cubic,
}
