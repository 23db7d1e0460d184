"""Patches of images, convolutions with a kernel of its own at every place, and the shapes that convolutions give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from purax.core import dtypes
from purax.core.array import Array
from purax.core.limits import finite
from purax.core.source import located
from purax.errors import shown
from purax.lax.contraction import PrecisionLike, dot_general
from purax.lax.convolution import (
    ConvGeneralDilatedDimensionNumbers,
    conv_dimension_numbers,
    conv_transpose_padding,
    padtype_to_pads,
)
from purax.lax.operands import array, pairs_of, sizes_of
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.products.convolution import ConvDimensionNumbers, dilated
from purax.primitives.reductions.window_reduction import Window
from purax.primitives.shape.broadcasting import transpose
from purax.primitives.shape.reshaping import reshape, stack
from purax.typing import ArrayLike


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
) -> Array:
    """The patches of an image that a convolution would see, in the place of features.

    Args:
        lhs: the image, with axes for the batch, features and space.
        filter_shape: the size of a patch along each spatial axis, in the order of the kernel's axes.
        window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers: as in `conv_general_dilated`.
        precision: has no meaning here, since nothing is multiplied.
        preferred_element_type: the dtype of the result.

    Returns:
        An array with features · prod(filter_shape) features: for each of the old ones the elements of a patch.

    >>> from purax import lax, numpy as jnp
    >>> lax.conv_general_dilated_patches(jnp.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID")
    Array([[[0., 1., 2.],
            [1., 2., 3.]]], dtype=float32)
    """
    x = array("conv_general_dilated_patches", lhs)
    numbers = conv_dimension_numbers(x.aval.shape, x.aval.shape, dimension_numbers)
    ndim = x.aval.ndim
    # Along axes (batch, features, space in the order of the kernel).
    x = transpose(x, numbers.lhs_spec)
    batch, features, *space = x.aval.shape
    sizes, strides = sizes_of(filter_shape, "filter_shape"), sizes_of(window_strides, "window_strides")
    ones = (1,) * (ndim - 2)
    spread = ones if lhs_dilation is None else sizes_of(lhs_dilation, "lhs_dilation")
    gaps = ones if rhs_dilation is None else sizes_of(rhs_dilation, "rhs_dilation")
    for name, given in (("filter_shape", sizes), ("window_strides", strides)):
        if len(given) != ndim - 2:
            raise located(
                ValueError,
                f"conv_general_dilated_patches: {name} must have a number for each of the {ndim - 2} spatial "
                f"axes, got {given}",
            )
    if isinstance(padding, str):
        extents = [dilated(n, d) for n, d in zip(sizes, gaps, strict=True)]
        framed = [dilated(n, d) for n, d in zip(space, spread, strict=True)]
        padding = padtype_to_pads(framed, extents, strides, padding.upper())
    pads = pairs_of(padding, "conv_general_dilated_patches: padding")
    window = Window((1, 1, *sizes), (1, 1, *strides), ((0, 0), (0, 0), *pads), (1, 1, *spread), (1, 1, *gaps))
    window.check("conv_general_dilated_patches", x.aval)
    zero = convert_element_type(0, x.aval.dtype)
    elements = stack(window.elements(window.frame(x, zero)), 2)
    places = elements.aval.shape[3:]
    patches = reshape(elements, (batch, features * math.prod(sizes), *places))
    if preferred_element_type is not None:
        patches = convert_element_type(patches, dtypes.as_dtype(preferred_element_type))
    return transpose(patches, _inverse(numbers.out_spec))


def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
) -> Array:
    """A convolution with a kernel of its own at every place.

    Args:
        lhs: the image, with axes for the batch, features and space.
        rhs: the kernels: its spatial axes go through the places of the result, its input features through the elements
            of a patch, as `conv_general_dilated_patches` has them.
        filter_shape: the size of a patch along each spatial axis.
        window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision: as in `conv_general_dilated`.

    >>> from purax import lax, numpy as jnp
    >>> kernels = jnp.array([[[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]])  # outputs, elements of a patch, places
    >>> lax.conv_general_dilated_local(jnp.arange(4.0).reshape(1, 1, 4), kernels, (1,), "VALID", (2,))
    Array([[[1., 2., 2.]]], dtype=float32)
    """
    x, kernels = array("conv_general_dilated_local", lhs), array("conv_general_dilated_local", rhs, 1)
    numbers = conv_dimension_numbers(x.aval.shape, kernels.aval.shape, dimension_numbers)
    plain = ConvDimensionNumbers(numbers.lhs_spec, numbers.rhs_spec, tuple(range(x.aval.ndim)))
    patches = conv_general_dilated_patches(
        x, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, plain
    )
    space = tuple(range(2, x.aval.ndim))
    result = dot_general(
        patches, kernels, (((1,), (numbers.rhs_spec[1],)), (space, numbers.rhs_spec[2:])), precision
    )  # (space, batch, outputs)
    count = len(space)
    return transpose(transpose(result, (count, count + 1, *range(count))), _inverse(numbers.out_spec))


def conv_general_permutations(dimension_numbers: tuple[str, str, str]) -> tuple[tuple[int, ...], ...]:
    """Which axes are what in a convolution, from letters; see `conv_dimension_numbers`.

    >>> from purax import lax
    >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    if not isinstance(dimension_numbers, (tuple, list)) or not all(
        isinstance(x, str) for x in finite(dimension_numbers)
    ):
        raise located(
            TypeError,
            "dimension_numbers must be three strings such as ('NCHW', 'OIHW', 'NCHW'), got "
            f"{shown(dimension_numbers)}",
        )
    ranks = (0,) * len(dimension_numbers[0])
    return tuple(conv_dimension_numbers(ranks, ranks, dimension_numbers))


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: str | Sequence[tuple[int, int]],
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """The shape of a convolution of an image (batch, features, space) with a kernel (outputs, inputs, space).

    >>> from purax import lax
    >>> lax.conv_shape_tuple((1, 2, 5, 5), (3, 2, 2, 2), (1, 1), [(0, 0), (1, 1)])
    (1, 3, 4, 6)
    """
    lhs_shape, rhs_shape = sizes_of(lhs_shape, "lhs_shape"), sizes_of(rhs_shape, "rhs_shape")
    space, window, strides = lhs_shape[2:], rhs_shape[2:], sizes_of(strides, "strides")
    if not len(space) == len(window) == len(strides):
        raise located(
            ValueError,
            f"a convolution of shapes {lhs_shape} and {rhs_shape} needs as many spatial axes in both, and as many "
            f"strides, got {strides}",
        )
    pads = (
        padtype_to_pads(space, window, strides, pads.upper())
        if isinstance(pads, str)
        else pairs_of(pads, "pads")
    )
    if lhs_shape[0] % batch_group_count:
        raise ValueError(f"a batch of {lhs_shape[0]} cannot be divided into {batch_group_count} groups")
    sizes = (
        max((n + low + high - k) // step + 1, 0)
        for n, k, step, (low, high) in zip(space, window, strides, pads, strict=True)
    )
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *sizes)


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: tuple[str, str, str],
) -> tuple[int, ...]:
    """The shape of a convolution with axes given by letters.

    >>> from purax import lax
    >>> lax.conv_general_shape_tuple((1, 5, 5, 2), (2, 2, 2, 3), (1, 1), "SAME", ("NHWC", "HWIO", "NHWC"))
    (1, 5, 5, 3)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    shape = conv_shape_tuple(
        [lhs_shape[a] for a in lhs], [rhs_shape[a] for a in rhs], window_strides, padding
    )
    return tuple(shape[a] for a in _inverse(out))


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: tuple[str, str, str],
) -> tuple[int, ...]:
    """The shape of a transposed convolution with axes given by letters.

    >>> from purax import lax
    >>> lax.conv_transpose_shape_tuple((1, 5, 5, 2), (2, 2, 2, 3), (2, 2), "SAME", ("NHWC", "HWIO", "NHWC"))
    (1, 10, 10, 3)
    """
    lhs, rhs, out = conv_general_permutations(dimension_numbers)
    image, kernel = [lhs_shape[a] for a in lhs], [rhs_shape[a] for a in rhs]
    if isinstance(padding, str):
        padding = [
            conv_transpose_padding(k, step, padding)
            for k, step in zip(kernel[2:], window_strides, strict=True)
        ]
    spread = [dilated(n, step) for n, step in zip(image[2:], window_strides, strict=True)]
    shape = conv_shape_tuple([*image[:2], *spread], kernel, [1] * len(spread), padding)
    return tuple(shape[a] for a in _inverse(out))


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes `order`."""
    return tuple(sorted(range(len(order)), key=lambda i: order[i]))
