"""Convolutions by the native kernel give what the convolution is defined to give, in all layouts and forms.

The definition is the `host` rule, which adds up slices of a padded array; XLA (the kernel switched off) and jax are
asked too. Many convolutions are compiled as one program, which costs little, since each is one call.
"""

import itertools
import math

import numpy as np
import pytest

import purax as px
from purax.config import config
from purax.primitives.products.convolution import ConvDimensionNumbers, conv_general_dilated_p
from purax.xla import native
from tests.against_jax import FORMS, Program, check

pytestmark = pytest.mark.skipif(native.build() is None, reason="the native kernels were not built")
GENERATOR = np.random.default_rng(23)
LAYOUTS = ("first", "last", "any")
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}


def dimension_numbers(layout: str, spatial: int) -> ConvDimensionNumbers:
    """Features first or last in all arrays, or each array in its own order."""
    axes = tuple(range(spatial + 2))
    last = (0, spatial + 1, *range(1, spatial + 1))
    if layout == "first":
        return ConvDimensionNumbers(axes, axes, axes)
    if layout == "last":
        return ConvDimensionNumbers(last, (spatial + 1, spatial, *range(spatial)), last)
    return ConvDimensionNumbers(*(tuple(map(int, GENERATOR.permutation(spatial + 2))) for _ in range(3)))


def case(
    layout, lhs, rhs, *, strides=None, padding=None, lhs_dilation=None, rhs_dilation=None, groups=1, batch_groups=1,
    dtype="float64",
):  # fmt: skip
    """Arrays of shapes given as (batch, features, spatial …) and (outputs, inputs, spatial …), and parameters."""
    spatial = len(lhs) - 2
    numbers = dimension_numbers(layout, spatial)
    arrays = [
        np.ascontiguousarray(np.transpose(GENERATOR.normal(size=shape), np.argsort(spec))).astype(dtype)
        for shape, spec in ((lhs, numbers.lhs_spec), (rhs, numbers.rhs_spec))
    ]
    params = {
        "window_strides": strides or (1,) * spatial,
        "padding": padding or ((0, 0),) * spatial,
        "lhs_dilation": lhs_dilation or (1,) * spatial,
        "rhs_dilation": rhs_dilation or (1,) * spatial,
        "dimension_numbers": numbers, "feature_group_count": groups, "batch_group_count": batch_groups,
        "precision": None, "preferred_element_type": None,
    }  # fmt: skip
    return arrays, params


def drawn(layout: str, spatial: int, kind: str, dtype: str):
    """A random convolution: with a small kernel, or with one larger than the result, and groups of either sort."""
    some = lambda low, high: tuple(int(n) for n in GENERATOR.integers(low, high, spatial))  # noqa: E731
    pick = lambda *values: int(GENERATOR.choice(values))  # noqa: E731
    padding = tuple((int(a), int(b)) for a, b in GENERATOR.integers(-1, 4, (spatial, 2)))
    groups = pick(1, 1, 1, 2, 3)
    features, outputs = pick(1, 3, 8, 19), pick(1, 4, 13, 16, 37, 70)
    window = some(1, 5)
    sizes = some(7, 15 if spatial < 3 else 9)
    if kind == "wide":
        window = some(5, 10)
    settings = {
        "strides": some(1, 4), "padding": padding, "lhs_dilation": some(1, pick(2, 4)),
        "rhs_dilation": some(1, 3), "dtype": dtype,
    }  # fmt: skip
    by_batch = groups > 1 and pick(0, 1)
    if by_batch:
        lhs, rhs = (groups * pick(1, 2, 14), features, *sizes), (groups * outputs, features, *window)
        return case(layout, lhs, rhs, batch_groups=groups, **settings)
    lhs, rhs = (pick(1, 2, 14), groups * features, *sizes), (groups * outputs, features, *window)
    return case(layout, lhs, rhs, groups=groups, **settings)


def run(cases, setting=True):
    """The results of all convolutions, by one program."""

    def program(operands):
        return [
            conv_general_dilated_p.bind(*xs, **params)
            for xs, (_, params) in zip(operands, cases, strict=True)
        ]

    with px.enable_x64(True), config.override(native_kernels=setting):
        return [np.asarray(y) for y in px.jit(program)([tuple(xs) for xs, _ in cases])]


def text(function, *arguments) -> str:
    return px.jit(function).lower(*arguments).as_text()


def compare(cases) -> None:
    for found, (arrays, params) in zip(run(cases), cases, strict=True):
        expected = conv_general_dilated_p.host(*arrays, **params)
        assert found.shape == expected.shape and found.dtype == expected.dtype
        bound = TOLERANCE[found.dtype.name] * max(1.0, np.abs(expected).max(initial=0.0))
        np.testing.assert_allclose(
            found, expected, rtol=0, atol=bound, err_msg=str((arrays[0].shape, params))
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["narrow", "wide"])
def test_random_convolutions(kind, dtype):
    cases = [
        drawn(layout, spatial, kind, dtype)
        for layout, spatial in itertools.product(LAYOUTS, (1, 2, 3))
        for _ in range(8 if spatial < 3 else 4)
    ]
    filled = sum(math.prod(conv_general_dilated_p.host(*xs, **params).shape) > 0 for xs, params in cases)
    assert filled >= len(cases) // 2
    compare(cases)


def test_every_size_of_a_tile():
    """Positions, outputs and batches around the sizes of tiles and vectors, as results and as what is summed over."""
    cases = []
    for layout, n in itertools.product(
        ("first", "last"), (1, 2, 3, 5, 7, 11, 12, 13, 16, 17, 24, 31, 33, 64, 65)
    ):
        cases += [
            case(layout, (1, 5, n), (20, 5, 1)),
            case(layout, (2, 5, n + 2), (n, 5, 3), dtype="float32"),
            case(layout, (2, n, 9), (20, n, 3), padding=((1, 1),)),
            case(layout, (n, 2, 30), (17, 2, 28)),
            case(layout, (3, 2, 30), (n, 2, 28), padding=((2, 1),), dtype="float32"),
        ]
    compare(cases)


def test_kernels_by_channel():
    """Derivatives by kernels with one feature in each group, with ends that meet padding."""
    cases = []
    for layout, width in itertools.product(("first", "last"), (1, 3, 8, 15, 16, 17, 40)):
        for pads in ((0, 0), (1, 1), (2, 3)):
            lhs, rhs = (18, 2, 9, width + 4), (18, 2, 7, width)
            settings = {"padding": (pads, pads), "batch_groups": 18}
            cases.append(case(layout, lhs, rhs, **settings))
            cases.append(case(layout, lhs, rhs, dtype="float32", strides=(2, 1), **settings))
            cases.append(case(layout, lhs, rhs, strides=(1, 2), rhs_dilation=(1, 2), **settings))
            cases.append(case(layout, lhs, rhs, lhs_dilation=(2, 1), **settings))
    compare(cases)


def test_empty_arrays():
    cases = [
        case("first", (0, 3, 5, 5), (20, 3, 3, 3)),
        case("last", (2, 0, 5, 5), (20, 0, 3, 3)),
        case("last", (2, 3, 5, 5), (0, 3, 3, 3)),
        case("first", (2, 3, 0, 5), (20, 3, 3, 3), padding=((3, 3), (0, 0))),
        case("first", (2, 3, 2, 5), (20, 3, 3, 3)),
        case("last", (2, 3, 5, 5), (20, 3, 0, 3)),
    ]
    compare(cases)
    assert all(
        "stablehlo.convolution" not in text(lambda *xs, p=p: conv_general_dilated_p.bind(*xs, **p), *xs)
        for xs, p in cases
    )


def test_special_values():
    """What is not finite reaches the results that it is part of, and no others; zeros times infinities are NaN."""
    cases = []
    for layout, wide in itertools.product(LAYOUTS[:2], (False, True)):
        for groups, dtype in ((1, "float32"), (1, "float64"), (18, "float32")):
            lhs = (18 if wide and groups > 1 else 2, 18 if groups > 1 and not wide else 6, 12, 21)
            rhs = (18, 1 if groups > 1 and not wide else 6, *((10, 17) if wide else (3, 2)))
            kind = {"batch_groups": groups} if wide else {"groups": groups}
            arrays, params = case(layout, lhs, rhs, dtype=dtype, **kind)
            for x in arrays:
                places = GENERATOR.integers(0, x.size, 4)
                x.reshape(-1)[places] = (np.nan, np.inf, -np.inf, -0.0)
            cases.append((arrays, params))
    for found, (arrays, params) in zip(run(cases), cases, strict=True):
        with np.errstate(all="ignore"):
            expected = conv_general_dilated_p.host(*arrays, **params)
        assert not np.isfinite(expected).all()
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        np.testing.assert_array_equal(np.isposinf(found), np.isposinf(expected))
        finite = np.isfinite(expected)
        np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-4, atol=1e-4)


def test_results_do_not_depend_on_threads_or_turns():
    """Large enough for several threads, and asked for several times."""
    cases = [
        case("first", (4, 24, 30, 30), (40, 24, 3, 3), padding=((1, 1), (1, 1)), dtype="float32"),
        case("last", (24, 4, 30, 30), (40, 4, 28, 28), dtype="float32"),
        case("first", (24, 4, 30, 30), (24, 4, 28, 28), batch_groups=24, dtype="float32"),
        case("last", (4, 24, 30, 30), (40, 24, 1, 1), dtype="float32"),
    ]
    first = run(cases)
    for _ in range(5):
        for x, y in zip(run(cases), first, strict=True):
            np.testing.assert_array_equal(x, y)
    for x, y in zip(run(cases, setting=False), first, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=2e-5 * np.abs(y).max())
    # The parts of a batch are computed as the whole is.
    arrays, params = cases[0]
    np.testing.assert_array_equal(run([([arrays[0][1:2], arrays[1]], params)])[0], first[0][1:2])


def programs():
    def convolve(names, strides, padding, **settings):
        return lambda m, x, kernel: m.lax.conv_general_dilated(
            x, kernel, strides, padding, dimension_numbers=names, **settings
        )

    channels_first, channels_last = ("NCHW", "OIHW", "NCHW"), ("NHWC", "HWIO", "NHWC")
    rows = (
        ("first", convolve(channels_first, (1, 1), "SAME"), (2, 3, 6, 7), (16, 3, 3, 3)),
        ("last", convolve(channels_last, (2, 1), "SAME"), (2, 6, 7, 3), (3, 2, 3, 16)),
        ("pointwise", convolve(channels_first, (1, 1), "VALID"), (2, 12, 5, 3), (17, 12, 1, 1)),
        ("strided pointwise", convolve(channels_last, (2, 2), "VALID"), (2, 5, 6, 12), (1, 1, 12, 17)),
        ("holes", convolve(channels_last, (1, 1), [(2, 1), (0, 2)], lhs_dilation=(2, 3), rhs_dilation=(1, 2)),
         (2, 4, 5, 3), (3, 3, 3, 16)),
        ("groups", convolve(channels_first, (1, 2), "SAME", feature_group_count=2), (2, 6, 6, 7), (8, 3, 3, 3)),
        ("by channel", convolve(channels_last, (1, 1), "SAME", feature_group_count=18), (2, 6, 7, 18), (3, 3, 1, 18)),
        ("batch groups", convolve(channels_first, (1, 1), "SAME", batch_group_count=2), (4, 3, 5, 5), (8, 3, 3, 3)),
        ("line", convolve(("NWC", "WIO", "NWC"), (2,), "SAME"), (2, 11, 5), (4, 5, 13)),
        ("space", convolve(("NCDHW", "OIDHW", "NCDHW"), (1, 2, 1), "SAME"), (1, 2, 4, 5, 3), (13, 2, 2, 3, 2)),
    )  # fmt: skip
    for name, function, lhs, rhs in rows:
        yield Program(
            name,
            function,
            (
                GENERATOR.normal(size=lhs).astype(np.float32),
                (0.3 * GENERATOR.normal(size=rhs)).astype(np.float32),
            ),
            tuple(FORMS),
        )


@pytest.mark.parametrize("program", list(programs()), ids=str)
def test_derivatives_and_batches_against_jax(program):
    check(program)


def test_where_the_kernel_is_called():
    """Convolutions of float32 and float64 and their derivatives, but not those with few outputs, nor other dtypes."""
    names = ("NHWC", "HWIO", "NHWC")
    image, kernel = np.ones((2, 9, 9, 16), np.float32), np.ones((3, 3, 16, 32), np.float32)

    def convolve(x, k):
        return px.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=names)

    def gradients(x, k):
        return px.grad(lambda x, k: (convolve(x, k) ** 2).sum(), argnums=(0, 1))(x, k)

    target = f"purax_convolution_{native.build()}"
    assert text(gradients, image, kernel).count(target) == 3
    assert "stablehlo.convolution" not in text(gradients, image, kernel)
    assert target not in text(convolve, image, kernel[..., :4])
    assert target not in text(convolve, image.astype(np.float16), kernel.astype(np.float16))
    with config.override(native_kernels=False):
        assert target not in text(gradients, image, kernel)
