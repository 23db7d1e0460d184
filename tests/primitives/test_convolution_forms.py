"""The forms that convolutions are lowered to on the CPU give what the convolution is defined to give.

Where there are native kernels, most convolutions are left to them; here they are switched off.
"""

import numpy as np
import pytest

import purax as px
from purax.config import config
from purax.primitives.products.convolution import ConvDimensionNumbers, conv_general_dilated_p

GENERATOR = np.random.default_rng(11)


def numbers(layout: str, spatial: int) -> ConvDimensionNumbers:
    """Features first or last in all arrays, or each array in its own order."""
    axes = tuple(range(spatial + 2))
    if layout == "first":
        return ConvDimensionNumbers(axes, axes, axes)
    if layout == "last":
        last = (0, spatial + 1, *range(1, spatial + 1))
        return ConvDimensionNumbers(last, (spatial + 1, spatial, *range(spatial)), last)
    return ConvDimensionNumbers(
        *(tuple(int(i) for i in GENERATOR.permutation(spatial + 2)) for _ in range(3))
    )


def case(layout, lhs, rhs, *, strides, padding, lhs_dilation, rhs_dilation, groups=1, batch_groups=1):
    """Arrays, given as (batch, features, spatial …) and (outputs, inputs, spatial …), in the axes of the layout."""
    spatial = len(lhs) - 2
    at = numbers(layout, spatial)
    arrays = []
    for shape, spec in ((lhs, at.lhs_spec), (rhs, at.rhs_spec)):
        arrays.append(np.transpose(GENERATOR.normal(size=shape), np.argsort(spec)).copy())
    params = {
        "window_strides": strides, "padding": padding, "lhs_dilation": lhs_dilation, "rhs_dilation": rhs_dilation,
        "dimension_numbers": at, "feature_group_count": groups, "batch_group_count": batch_groups,
        "precision": None, "preferred_element_type": None,
    }  # fmt: skip
    return arrays, params


def drawn(kind: str, layout: str, spatial: int) -> tuple:
    """A random convolution that has the form `kind`."""
    some = lambda low, high: tuple(int(n) for n in GENERATOR.integers(low, high, spatial))  # noqa: E731
    ones = (1,) * spatial
    padding = tuple((int(a), int(b)) for a, b in GENERATOR.integers(-1, 4, (spatial, 2)))
    if kind == "depthwise":
        lhs, rhs = (2, 6, *some(7, 10)), (6, 1, *some(1, 4))
        return case(
            layout, lhs, rhs, strides=some(1, 3), padding=padding, lhs_dilation=some(1, 3), rhs_dilation=some(1, 3),
            groups=6,
        )  # fmt: skip
    if kind == "depthwise kernel":
        lhs, rhs = (6, 2, *some(8, 11)), (6, 2, *some(5, 7))
        return case(
            layout, lhs, rhs, strides=some(1, 3), padding=padding, lhs_dilation=ones, rhs_dilation=some(1, 3),
            batch_groups=6,
        )  # fmt: skip
    if kind == "residues":
        lhs, rhs = (2, 4, *some(3, 6)), (6, 2, *some(1, 5))
        return case(
            layout,
            lhs,
            rhs,
            strides=ones,
            padding=padding,
            lhs_dilation=some(2, 4),
            rhs_dilation=ones,
            groups=2,
        )
    lhs, rhs = (3, 2, *some(20, 24)), (4, 2, *some(17, 20))
    return case(
        layout,
        lhs,
        rhs,
        strides=some(1, 3),
        padding=padding,
        lhs_dilation=some(1, 4),
        rhs_dilation=some(1, 3),
    )


@pytest.mark.parametrize("kind", ["depthwise", "depthwise kernel", "residues", "taps"])
def test_forms(kind):
    cases = []
    for layout in ("first", "last", "any"):
        for spatial in (1, 2) if kind == "taps" else (1, 2, 3):
            cases += [drawn(kind, layout, spatial) for _ in range(1 if spatial == 3 else 2)]
    valid = []
    for arrays, params in cases:
        out = conv_general_dilated_p.host(*arrays, **params)
        if out.size:
            valid.append((arrays, params, out))
    assert len(valid) >= len(cases) // 2
    with px.enable_x64(True), config.override(native_kernels=False):
        program = px.jit(
            lambda groups: [
                conv_general_dilated_p.bind(*xs, **params)
                for xs, (_, params, _) in zip(groups, valid, strict=True)
            ]
        )
        for found, (_, _, expected) in zip(program([tuple(xs) for xs, _, _ in valid]), valid, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_the_forms_are_used():
    """None of these programs leaves XLA a convolution with groups or holes."""
    image = np.ones((2, 8, 20, 20), np.float32)
    depthwise = np.ones((8, 1, 3, 3), np.float32)
    kernel = np.ones((8, 8, 3, 3), np.float32)
    names = ("NCHW", "OIHW", "NCHW")

    def by_channel(x, k):
        return px.lax.conv_general_dilated(
            x, k, (1, 1), "SAME", feature_group_count=8, dimension_numbers=names
        )

    def upwards(x, k):
        return px.lax.conv_transpose(x, k, (2, 2), "SAME", dimension_numbers=names)

    def text(function, *arguments):
        gradient = px.grad(lambda *xs: (function(*xs) ** 2).sum(), argnums=(0, 1))
        with config.override(native_kernels=False):
            return px.jit(lambda *xs: (function(*xs), gradient(*xs))).lower(*arguments).as_text()

    assert "stablehlo.convolution" not in text(by_channel, image, depthwise)
    lines = [line for line in text(upwards, image, kernel).split("\n") if "stablehlo.convolution" in line]
    assert lines and all("lhs_dilate = [1, 1]" in line for line in lines)


def test_a_batch_of_no_examples():
    images, kernels = px.numpy.zeros((0, 1, 2, 5, 5)), px.numpy.zeros((0, 3, 2, 2, 2))
    convolve = lambda x, k: px.lax.conv(x, k, (1, 1), "VALID")  # noqa: E731
    assert px.vmap(convolve)(images, kernels).shape == (0, 1, 3, 4, 4)
    assert px.vmap(convolve, (0, None))(images, kernels.sum(0)).shape == (0, 1, 3, 4, 4)
    assert px.jit(px.vmap(convolve, (None, 0)))(images.sum(0), kernels).shape == (0, 1, 3, 4, 4)
