"""Convolutions for users: axes by letters, padding by name."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.dimensions import as_size, non_negative
from purax.core.limits import finite
from purax.core.source import located
from purax.errors import ShapeError, UnknownPaddingError, shown
from purax.interpreters.arguments import to_array
from purax.lax.operands import sizes_of
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.products.contraction import canonical_precision
from purax.primitives.products.convolution import ConvDimensionNumbers, conv_general_dilated_p, dilated
from purax.primitives.shape.reshaping import rev
from purax.sharding.constraints import freely

ConvGeneralDilatedDimensionNumbers: TypeAlias = None | ConvDimensionNumbers | tuple[str, str, str]
"""What `dimension_numbers=` accepts."""


def conv_dimension_numbers(lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any) -> Any:
    """Which axes are what, from letters such as ("NCHW", "OIHW", "NCHW").

    Args:
        lhs_shape: of the operand.
        rhs_shape: of the kernel.
        dimension_numbers: three strings, with N for the batch, C for features, O and I for output and input features,
            and any other letters for spatial axes; or a `ConvDimensionNumbers`; or None for axes in this order.

    Returns:
        A `ConvDimensionNumbers`.

    >>> import purax as px
    >>> px.lax.conv_dimension_numbers((1, 2, 2, 3), (1, 1, 3, 3), ("NHWC", "HWIO", "NHWC"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    lhs_shape, rhs_shape = sizes_of(lhs_shape, "lhs_shape"), sizes_of(rhs_shape, "rhs_shape")
    if len(lhs_shape) != len(rhs_shape):
        raise located(
            TypeError,
            f"convolution requires lhs and rhs ndim to be equal, got {len(lhs_shape)} and {len(rhs_shape)}: both have "
            f"axes for batch, features and spatial axes; the shapes are {lhs_shape} and {rhs_shape}",
        )
    if dimension_numbers is None:
        order = tuple(range(len(lhs_shape)))
        return ConvDimensionNumbers(order, order, order)
    if not isinstance(dimension_numbers, (tuple, list)) or len(dimension_numbers) != 3:
        fault = (
            f"dimension_numbers list/tuple must be length 3, got {len(dimension_numbers)}"
            if isinstance(dimension_numbers, (tuple, list))
            else f"dimension_numbers must be tuple/list or None, got {type(dimension_numbers)}"
        )
        raise located(
            TypeError,
            f"convolution {fault}: three strings such as ('NCHW', 'OIHW', 'NCHW'), got {shown(dimension_numbers)}",
        )
    lhs, rhs, out = dimension_numbers
    parts = ((lhs, "NC", "lhs"), (rhs, "OI", "rhs"), (out, "NC", "out"))
    for i, (spec, letters, name) in enumerate(parts):
        if not isinstance(spec, str) or len(spec) != len(lhs_shape) or len(set(spec)) != len(spec):
            size = len(spec) if isinstance(spec, str) else 0
            fault = (
                f"must have len equal to the ndim of lhs and rhs, got {size} for lhs and rhs shapes {lhs_shape} and "
                f"{rhs_shape}"
                if size != len(lhs_shape)
                else f"cannot have duplicate characters, got {spec}"
            )
            raise located(
                TypeError,
                f"convolution dimension_numbers[{i}] {fault}: the {name} part, {shown(spec)}, must be {len(lhs_shape)} "
                "distinct letters",
            )
        if not set(letters) <= set(spec):
            raise located(
                TypeError,
                f"convolution: the {name} part of dimension_numbers, {shown(spec)}, must contain {letters}",
            )
    spatial = [letter for letter in rhs if letter not in "OI"]
    for spec, name in ((lhs, "lhs"), (out, "out")):
        if set(spec) - set("NC") != set(spatial):
            raise located(
                TypeError,
                f"convolution: the spatial letters of {name}, {shown(spec)}, are not those of the kernel, "
                f"{shown(rhs)}",
            )
    return ConvDimensionNumbers(
        tuple(lhs.index(letter) for letter in ("N", "C", *spatial)),
        tuple(rhs.index(letter) for letter in ("O", "I", *spatial)),
        tuple(out.index(letter) for letter in ("N", "C", *spatial)),
    )


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: str
) -> list[tuple[int, int]]:
    """Padding by name as pairs (before, after).

    Args:
        in_shape: the sizes of the axes.
        window_shape: the sizes of the window.
        window_strides: by how much it moves.
        padding: "SAME" for a result of ceil(size / stride) with the odd element of padding after, "SAME_LOWER" with it
            before, "VALID" for none.

    >>> from purax import lax
    >>> lax.padtype_to_pads((5,), (2,), (1,), "SAME")
    [(0, 1)]
    """
    if padding == "VALID":
        return [(0, 0)] * len(in_shape)
    if padding not in ("SAME", "SAME_LOWER"):
        raise located(
            UnknownPaddingError,
            "Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', or pairs of integers, got "
            f"{shown(padding)}",
        )
    if not len(in_shape) == len(window_shape) == len(window_strides):
        raise located(
            ShapeError,
            f"padding {shown(padding)} of {len(in_shape)} axes needs sizes of the window and strides for each, got "
            f"{tuple(window_shape)} and {tuple(window_strides)}",
        )
    pads = []
    for size, extent, stride in zip(in_shape, window_shape, window_strides, strict=True):
        out = (size + stride - 1) // stride
        total = non_negative((out - 1) * stride + extent - size)
        small, large = total // 2, total - total // 2
        pads.append((small, large) if padding == "SAME" else (large, small))
    return pads


def _steps(caller: str, name: str, values: Any, spatial: int) -> tuple[int, ...]:
    """Positive integers, one for each spatial axis; ones if none are given."""
    if values is None:
        return (1,) * spatial
    try:
        steps = tuple(map(operator.index, finite(values)))
    except TypeError:
        steps = ()
    if len(steps) != spatial or min(steps, default=1) < 1:
        kind = "dilations" if "dilation" in name else "strides"
        fault = (
            f"All {kind} must be positive"
            if len(steps) == spatial
            else f"window and {name} must have the same number of dimensions, but got {spatial} and {len(steps)}"
        )
        raise located(
            ShapeError,
            f"{caller} {fault}: {name} must be a positive integer for each of the {spatial} spatial axes, such as "
            f"{(1,) * spatial}, got {shown(values)}",
        )
    return steps


def _pairs(caller: str, padding: Any, spatial: int) -> tuple[tuple[int, int], ...]:
    """Padding that is given by numbers."""
    try:
        pads = tuple((as_size(low), as_size(high)) for low, high in padding)
    except (TypeError, ValueError):
        pads = ()
    if len(pads) != spatial:
        raise located(
            ShapeError,
            f"{caller}: Wrong number of explicit pads for convolution: padding must be a name such as 'SAME', or a "
            f"pair (before, after) for each of the {spatial} "
            f"spatial axes, such as {[(1, 1)] * spatial}, got {shown(padding)}",
        )
    return pads


def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """The general convolution.

    Args:
        lhs: the operand.
        rhs: the kernel.
        window_strides: the step along each spatial axis.
        padding: "SAME", "SAME_LOWER", "VALID", or (before, after) for each spatial axis.
        lhs_dilation: holes between the elements of the operand.
        rhs_dilation: holes between the elements of the kernel.
        dimension_numbers: which axes are what; see `conv_dimension_numbers`.
        feature_group_count: into how many groups features are divided, each with its own part of the kernel.
        batch_group_count: into how many groups the batch is divided.
        precision: of the products, as in `dot_general`.
        preferred_element_type: the dtype to sum in and return.
        out_sharding: how the result is sharded over devices.

    Returns:
        The convolution.

    >>> import purax as px, purax.numpy as jnp
    >>> px.lax.conv_general_dilated(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 3)), (1,), "VALID")
    Array([[[3., 3.]]], dtype=float32)
    """
    if out_sharding is not None:
        shape = (window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers)
        rest = (feature_group_count, batch_group_count, precision, preferred_element_type)
        return freely(lambda x, y: conv_general_dilated(x, y, *shape, *rest), out_sharding, lhs, rhs)
    lhs, rhs = to_array(lhs), to_array(rhs)
    if lhs.dtype != rhs.dtype:
        dtype, weak = dtypes.promote_pair(lhs.dtype, lhs.weak_type, rhs.dtype, rhs.weak_type)
        lhs, rhs = convert_element_type(lhs, dtype, weak), convert_element_type(rhs, dtype, weak)
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    spatial = len(numbers.lhs_spec) - 2
    strides = _steps("conv_general_dilated", "window_strides", window_strides, spatial)
    lhs_dilation = _steps("conv_general_dilated", "lhs_dilation", lhs_dilation, spatial)
    rhs_dilation = _steps("conv_general_dilated", "rhs_dilation", rhs_dilation, spatial)
    if isinstance(padding, str):
        window = [dilated(rhs.shape[a], d) for a, d in zip(numbers.rhs_spec[2:], rhs_dilation, strict=True)]
        sizes = [dilated(lhs.shape[a], d) for a, d in zip(numbers.lhs_spec[2:], lhs_dilation, strict=True)]
        padding = padtype_to_pads(sizes, window, strides, padding.upper())
    return conv_general_dilated_p.bind(
        lhs,
        rhs,
        window_strides=strides,
        padding=_pairs("conv_general_dilated", padding, spatial),
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=numbers,
        feature_group_count=int(feature_group_count),
        batch_group_count=int(batch_group_count),
        precision=canonical_precision(precision),
        preferred_element_type=None
        if preferred_element_type is None
        else dtypes.as_dtype(preferred_element_type),
    )


def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """The convolution of an operand (batch, features, spatial axes) with a kernel (outputs, inputs, spatial axes).

    >>> from purax import lax, numpy as jnp
    >>> lax.conv(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 3)), (1,), "SAME")
    Array([[[2., 3., 3., 2.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """`conv` with any padding and dilation."""
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Array:
    """The transposed ("fractionally strided") convolution, which makes spatial axes larger by `strides`.

    Args:
        lhs: the operand.
        rhs: the kernel.
        strides: by how much each spatial axis grows.
        padding: "SAME", "VALID", or (before, after) for each spatial axis of the dilated operand.
        rhs_dilation: holes between the elements of the kernel.
        dimension_numbers: which axes are what; ("NHC", "HIO", "NHC") and its like if not given.
        transpose_kernel: whether to reverse the kernel and exchange its inputs and outputs, which makes this the
            transpose of the convolution with that kernel.
        use_consistent_padding: whether explicit padding is that of the convolution this transposes.

    Returns:
        The transposed convolution.
    """
    lhs, rhs = to_array(lhs), to_array(rhs)
    spatial = lhs.ndim - 2
    if dimension_numbers is None:
        letters = "DHW"[3 - spatial :] if spatial <= 3 else "".join(chr(ord("a") + i) for i in range(spatial))
        dimension_numbers = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    strides = _steps("conv_transpose", "strides", strides, spatial)
    rhs_dilation = _steps("conv_transpose", "rhs_dilation", rhs_dilation, spatial)
    sizes = [dilated(rhs.shape[a], d) for a, d in zip(numbers.rhs_spec[2:], rhs_dilation, strict=True)]
    if isinstance(padding, str):
        if padding not in ("SAME", "VALID"):
            raise located(
                UnknownPaddingError,
                "conv_transpose: Unrecognized padding type: expected 'VALID' or 'SAME', or pairs of integers, got "
                f"{shown(padding)}",
            )
        pads = [conv_transpose_padding(k, s, padding) for k, s in zip(sizes, strides, strict=True)]
    else:
        pads = list(_pairs("conv_transpose", padding, spatial))
        if use_consistent_padding:
            pads = [(k - 1 - low, k - 1 - high) for k, (low, high) in zip(sizes, pads, strict=True)]
    if transpose_kernel:
        rhs = rev(rhs, numbers.rhs_spec[2:])
        outputs, inputs, *rest = numbers.rhs_spec
        numbers = numbers._replace(rhs_spec=(inputs, outputs, *rest))
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * spatial,
        pads,
        strides,
        rhs_dilation,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_transpose_padding(kernel: int, stride: int, padding: str) -> tuple[int, int]:
    """The padding (before, after) of an operand that a transposed convolution has spread by `stride`."""
    if padding == "SAME":
        total = kernel + stride - 2
        before = kernel - 1 if stride > kernel - 1 else int(np.ceil(total / 2))
    else:
        total = kernel + stride - 2 + max(kernel - stride, 0)
        before = kernel - 1
    return before, total - before
