"""Slices, padding, windows at computed places, and the reshaping operations, against NumPy and jax."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import purax
from purax.primitives.shape import dynamic_slicing, reshaping, slicing

SEEDS = range(20)


def random_array(choose: np.random.Generator, shape) -> np.ndarray:
    return choose.normal(size=tuple(shape)).astype(np.float32)


def equal(actual, expected):
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_slice_is_numpys_and_pad_puts_it_back(seed):
    choose = np.random.default_rng(seed)
    x = random_array(choose, choose.integers(0, 6, choose.integers(0, 4)))
    bounds = [sorted(int(i) for i in choose.integers(0, n, 2, endpoint=True)) for n in x.shape]
    starts, limits = [low for low, _ in bounds], [high for _, high in bounds]
    strides = [int(n) for n in choose.integers(1, 4, x.ndim)]
    places = tuple(map(slice, starts, limits, strides))
    taken = slicing.slice(x, starts, limits, strides)
    equal(taken, x[places])
    kept = np.zeros_like(x)
    kept[places] = x[places]
    _, pull_back = purax.vjp(lambda x: slicing.slice(x, starts, limits, strides), x)
    equal(pull_back(taken)[0], kept)


@pytest.mark.parametrize("seed", SEEDS)
def test_pad_and_its_derivative_are_those_of_jax(seed):
    choose = np.random.default_rng(seed)
    x = random_array(choose, choose.integers(0, 4, choose.integers(1, 4)))
    config = []
    for n in x.shape:
        interior = int(choose.integers(0, 3))
        full = n + max(n - 1, 0) * interior
        low = int(choose.integers(-full, 4))
        config.append((low, int(choose.integers(max(-full - low, -full), 4)), interior))
    value = np.float32(choose.normal())
    out_shape = jax.eval_shape(lambda x: jax.lax.pad(x, value, config), x).shape
    y = random_array(choose, out_shape)

    def both(vjp, pad):
        def run(x, value, y):
            out, pull_back = vjp(lambda x, value: pad(x, value, config), x, value)
            return out, *pull_back(y)

        return run

    expected = jax.jit(both(jax.vjp, jax.lax.pad))(x, value, y)
    ours = both(purax.vjp, slicing.pad)
    for run in (ours, purax.jit(ours)):
        for actual, wanted in zip(run(x, value, y), expected, strict=True):
            np.testing.assert_allclose(np.asarray(actual), np.asarray(wanted), rtol=1e-5, atol=1e-5)


def test_padding_with_a_batch_of_values_keeps_infinities_apart():
    x = np.array([1.0, 2.0], np.float32)
    values = np.array([np.inf, 0.0, np.nan], np.float32)
    out = purax.vmap(lambda value: slicing.pad(x, value, [(1, 0, 1)]))(values)
    equal(out, np.array([[v, 1, v, 2] for v in values], np.float32))


@pytest.mark.parametrize("seed", SEEDS)
def test_dynamic_windows_are_clamped_as_by_jax(seed):
    choose = np.random.default_rng(seed)
    x = random_array(choose, choose.integers(1, 6, choose.integers(1, 4)))
    sizes = tuple(int(choose.integers(0, n, endpoint=True)) for n in x.shape)
    dtype = choose.choice(["int8", "int32", "uint8", "uint32", "int64", "uint64"])
    starts = [
        np.array(choose.integers(0, 9) if dtype[0] == "u" else choose.integers(-4, 9), dtype) for _ in sizes
    ]
    update = random_array(choose, sizes)
    first = [min(max(int(start), 0), n - size) for start, n, size in zip(starts, x.shape, sizes, strict=True)]
    window = tuple(slice(start, start + size) for start, size in zip(first, sizes, strict=True))

    def both(x, update, *starts):
        return (
            dynamic_slicing.dynamic_slice(x, starts, sizes),
            dynamic_slicing.dynamic_update_slice(x, update, starts),
        )

    updated = x.copy()
    updated[window] = update
    for run in (both, purax.jit(both)):
        taken, written = run(x, update, *starts)
        equal(taken, x[window])
        equal(written, updated)


@pytest.mark.parametrize("axes", [(0, None, None), (None, 1, None), (None, None, 0), (0, 1, 0)])
def test_batches_of_places(axes):
    choose = np.random.default_rng(0)
    x, update = random_array(choose, (4, 5, 6)), random_array(choose, (2, 4))
    starts = np.array([-3, 1, 2, 9], np.int32)
    arguments = (
        x if axes[0] is not None else x[0],
        update if axes[1] is not None else update[:, 0],
        starts if axes[2] is not None else starts[1],
    )

    def ours(x, update, start):
        starts = (start, np.int32(1))
        out = dynamic_slicing.dynamic_slice(x, starts, (2, 3))
        wide = reshaping.reshape(update, (2, 1))
        return out, dynamic_slicing.dynamic_update_slice(x, wide, starts)

    def one(x, update, start):
        first = min(max(int(start), 0), 3)
        written = x.copy()
        written[first : first + 2, 1:2] = update[:, None]
        return x[first : first + 2, 1:4], written

    def entry(i):
        return [v if axis is None else np.take(v, i, axis) for v, axis in zip(arguments, axes, strict=True)]

    expected = [np.stack(results) for results in zip(*(one(*entry(i)) for i in range(4)), strict=True)]
    taken, written = purax.vmap(ours, axes, out_axes=0)(*arguments)
    equal(written, expected[1])
    equal(taken, expected[0])


def test_reshaping_is_numpys():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    equal(reshaping.reshape(x, (4, 6), (2, 0, 1)), x.transpose(2, 0, 1).reshape(4, 6))
    equal(reshaping.expand_dims(x, (0, 3)), x[None, :, :, None])
    equal(reshaping.rev(x, (0, 2)), x[::-1, :, ::-1])
    equal(reshaping.tile(x, (1, 2, 3)), np.tile(x, (1, 2, 3)))
    equal(reshaping.stack([x, x + 1], 2), np.stack([x, x + 1], 2))
    for part, expected in zip(reshaping.split(x, (1, 2), 1), np.split(x, [1], 1), strict=True):
        equal(part, expected)
    equal(reshaping.iota(np.int8, (2, 300), 1), np.tile(np.arange(300).astype(np.int8), (2, 1)))


def test_programs_read_as_jaxs():
    x = np.ones((3, 4), np.float32)

    def lines(make_jaxpr, function):
        equations = str(make_jaxpr(function)(x)).replace(" sharding=None", "").split("let")[1].split()
        return " ".join(equations)

    for ours, theirs in (
        (lambda x: slicing.slice(x, (0, 1), (2, 4)), lambda x: jax.lax.slice(x, (0, 1), (2, 4))),
        (lambda x: reshaping.reshape(x, (12,)), lambda x: jax.lax.reshape(x, (12,))),
        (
            lambda x: reshaping.squeeze(slicing.slice(x, (0, 0), (1, 4)), (0,)),
            lambda x: jax.lax.squeeze(jax.lax.slice(x, (0, 0), (1, 4)), (0,)),
        ),
        (lambda x: reshaping.rev(x, (1,)), lambda x: jax.lax.rev(x, (1,))),
        (lambda x: reshaping.concatenate([x, x], 1), lambda x: jax.lax.concatenate([x, x], 1)),
        (lambda x: reshaping.iota(np.int32, (2, 3), 1), lambda x: jax.lax.broadcasted_iota(np.int32, (2, 3), 1)),
    ):  # fmt: skip
        assert lines(purax.make_jaxpr, ours) == lines(jax.make_jaxpr, theirs)


MATRIX = np.ones((3, 4), np.float32)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: slicing.slice(MATRIX, (0,), (2,)), r"slice needs a start.* shape \(3, 4\)"),
        (lambda: slicing.slice(MATRIX, (0, 2), (2, 5)), r"0 <= start <= limit <= size.*limit_indices \(2, 5\)"),
        (lambda: slicing.pad(MATRIX, np.int32(0), [(1, 0, 0)] * 2), r"scalar of dtype float32; got i32\[\]"),
        (lambda: slicing.pad(MATRIX, np.float32(0), [(-4, 0, 0)] * 2), r"result shape \(-1, 0\), .* cuts more"),
        (lambda: slicing.pad(MATRIX, np.float32(0), [(0, 0, -1)] * 2), r"must be nonnegative"),
        (lambda: dynamic_slicing.dynamic_slice(MATRIX, (0, 0), (1, 5)), r"window of shape \(1, 5\) does not fit"),
        (lambda: dynamic_slicing.dynamic_slice(MATRIX, (0,), (1, 1)), r"a start and a window size for each axis"),
        (lambda: dynamic_slicing.dynamic_slice(MATRIX, (0.0, 0), (1, 1)), r"integer scalars of one dtype, got f32"),
        (lambda: reshaping.reshape(MATRIX, (5, 2)), r"12 elements, which do not fit the shape \(5, 2\)"),
        (lambda: reshaping.squeeze(MATRIX, (0,)), r"size not equal to one"),
        (lambda: reshaping.concatenate([MATRIX, MATRIX.T], 0), r"along dimension 0 for shapes \(3, 4\), \(4, 3\)"),
        (lambda: reshaping.concatenate([MATRIX, MATRIX > 0], 0), r"one dtype, got f32\[3,4\], bool\[3,4\]"),
        (lambda: reshaping.concatenate([np.float32(1)], 0), r"scalars need an axis first"),
        (lambda: reshaping.split(MATRIX, (1, 1), 0), r"sizes \(1, 1\) do not add up to 3"),
        (lambda: reshaping.stack([MATRIX, MATRIX[0]], 0), r"arrays of one shape, got \(3, 4\), \(4,\)"),
        (lambda: reshaping.iota(bool, (3,)), r"got dtype bool"),
        (lambda: reshaping.tile(MATRIX, (2,)), r"a number, not negative, for each axis"),
    ],
)  # fmt: skip
def test_errors_say_what_does_not_fit(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
