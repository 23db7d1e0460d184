"""Gather and scatter with random dimension numbers against jax, compiled and eager; and the laws that join them."""

from __future__ import annotations

from typing import NamedTuple

import jax
import ml_dtypes
import numpy as np
import pytest

import purax
from purax.primitives.shape import gather_scatter as ops
from purax.primitives.shape.gather_scatter import (
    CLIP,
    FILL_OR_DROP,
    ONE_HOT,
    PROMISE_IN_BOUNDS,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)

SCATTERS = ["scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_min", "scatter_max"]
SEEDS = range(18)


class Windows(NamedTuple):
    """Operands of a gather or a scatter: small integers, so that ties and repeated indices are frequent."""

    operand: np.ndarray
    indices: np.ndarray
    updates: np.ndarray
    numbers: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]


def random_windows(seed: int, excess: int = 2) -> Windows:
    """Windows with random shapes and dimension numbers; indices exceed the bounds by up to `excess`."""
    choose = np.random.default_rng(seed)
    shape = tuple(int(n) for n in choose.integers(1, 5, choose.integers(1, 5)))
    batch = [int(n) for n in choose.integers(1, 4, choose.integers(0, 3))]
    free = list(range(len(batch)))
    dropped, index_map, batching, indices_batching, sizes = [], [], [], [], []
    for axis, n in enumerate(shape):
        if free and choose.random() < 0.25 and axis < len(shape) - 1:
            pair = free.pop(int(choose.integers(len(free))))
            batch[pair] = n
            batching.append(axis)
            indices_batching.append(pair)
            sizes.append(1)
            continue
        if (
            choose.random() < 0.7 or axis == len(shape) - 1 and not index_map
        ):  # jax ignores indices of no components
            index_map.append(axis)
        if choose.random() < 0.5:
            dropped.append(axis)
            sizes.append(1)
        else:
            sizes.append(int(choose.integers(0 if choose.random() < 0.1 else 1, n + 1)))
    index_map = [int(axis) for axis in choose.permutation(index_map)]
    window = [n for axis, n in enumerate(sizes) if axis not in dropped and axis not in batching]
    ndim = len(window) + len(batch)
    offsets = sorted(int(axis) for axis in choose.choice(ndim, len(window), replace=False)) if ndim else []
    result, window, rest = [], iter(window), iter(batch)
    for axis in range(ndim):
        result.append(next(window) if axis in offsets else next(rest))
    last = np.array([shape[axis] - sizes[axis] for axis in index_map], np.int64)
    indices = choose.integers(-excess, last + excess, (*batch, len(index_map)), endpoint=True)
    return Windows(
        choose.integers(-2, 3, shape).astype(np.float32),
        indices.astype(np.int32),
        choose.integers(-2, 3, result).astype(np.float32),
        tuple(map(tuple, (offsets, dropped, index_map, batching, indices_batching))),
        tuple(sizes),
    )


def both_gathers(windows: Windows, mode: GatherScatterMode, fill_value=None):
    ours = GatherDimensionNumbers(*windows.numbers)
    theirs = jax.lax.GatherDimensionNumbers(*windows.numbers)
    their_mode = jax.lax.GatherScatterMode[mode.name]
    return (
        lambda x: ops.gather(x, windows.indices, ours, windows.sizes, mode=mode, fill_value=fill_value),
        lambda x: jax.lax.gather(
            x, windows.indices, theirs, windows.sizes, mode=their_mode, fill_value=fill_value
        ),
    )


def both_scatters(name: str, windows: Windows, mode: GatherScatterMode):
    ours = ScatterDimensionNumbers(*windows.numbers)
    theirs = jax.lax.ScatterDimensionNumbers(*windows.numbers)
    their_mode = jax.lax.GatherScatterMode[mode.name]
    return (
        lambda x, y: getattr(ops, name)(x, windows.indices, y, ours, mode=mode),
        lambda x, y: getattr(jax.lax, name)(x, windows.indices, y, theirs, mode=their_mode),
    )


def same(actual, expected):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_gather_and_its_derivative_are_those_of_jax(seed):
    windows = random_windows(seed)
    mode = (CLIP, FILL_OR_DROP, FILL_OR_DROP)[seed % 3]
    ours, theirs = both_gathers(windows, mode, (None, None, 7)[seed % 3])

    def derivative(vjp, gather):
        def run(x, y):
            out, pull_back = vjp(gather, x)
            return out, *pull_back(y)

        return run

    expected = jax.jit(derivative(jax.vjp, theirs))(windows.operand, windows.updates)
    run = derivative(purax.vjp, ours)
    for actual in (run, purax.jit(run)):
        for a, e in zip(actual(purax.device_put(windows.operand), windows.updates), expected, strict=True):
            same(a, e)


@pytest.mark.parametrize("name", SCATTERS)
@pytest.mark.parametrize("seed", SEEDS[:6])
def test_scatters_and_their_derivatives_are_those_of_jax(name, seed):
    mode = (CLIP, FILL_OR_DROP)[seed % 2]
    # jax differentiates the extrema of clipped windows as if they had been dropped.
    is_exact = mode is not CLIP or name not in ("scatter_min", "scatter_max")
    windows = random_windows(seed + 100 * SCATTERS.index(name), 2 if is_exact else 0)
    ours, theirs = both_scatters(name, windows, mode)
    x, y = purax.device_put(windows.operand), purax.device_put(windows.updates)
    cotangent = np.random.default_rng(seed).normal(size=windows.operand.shape).astype(np.float32)

    def derivative(vjp, scatter):
        def run(x, y):
            if name == "scatter_mul":  # jax differentiates it with respect to updates only if they are unique
                out, pull_back = vjp(lambda x: scatter(x, y), x)
            else:
                out, pull_back = vjp(scatter, x, y)
            return out, *pull_back(cotangent)

        return run

    expected = jax.jit(derivative(jax.vjp, theirs))(windows.operand, windows.updates)
    run = derivative(purax.vjp, ours)
    same(ours(x, y), expected[0])
    for actual in (run, purax.jit(run)):
        for a, e in zip(actual(x, y), expected, strict=True):
            same(a, e)


@pytest.mark.parametrize("name", SCATTERS)
def test_scatters_under_vmap_are_those_of_jax(name):
    windows = random_windows(SCATTERS.index(name))
    x, y = (
        np.stack([v, v + 1, v[..., ::-1] if v.ndim else v], -1) for v in (windows.operand, windows.updates)
    )
    indices = np.stack([windows.indices, windows.indices - 1, windows.indices + 1], 0)
    for axes in ((-1, None, None), (None, 0, None), (None, None, -1), (-1, 0, -1)):
        singles = windows.operand, windows.indices, windows.updates
        batches = x, indices, y
        arguments = [s if axis is None else b for axis, s, b in zip(axes, singles, batches, strict=True)]

        def ours(x, i, y):
            return getattr(ops, name)(x, i, y, ScatterDimensionNumbers(*windows.numbers))

        def theirs(x, i, y):
            return getattr(jax.lax, name)(x, i, y, jax.lax.ScatterDimensionNumbers(*windows.numbers))

        same(purax.vmap(ours, axes)(*arguments), jax.jit(jax.vmap(theirs, axes))(*arguments))


@pytest.mark.parametrize("seed", SEEDS)
def test_gather_reads_what_scatter_writes(seed):
    windows = random_windows(seed, excess=0)
    scattered = ops.scatter(
        windows.operand, windows.indices, windows.updates, ScatterDimensionNumbers(*windows.numbers)
    )
    back = ops.gather(scattered, windows.indices, GatherDimensionNumbers(*windows.numbers), windows.sizes)
    again = ops.scatter(scattered, windows.indices, back, ScatterDimensionNumbers(*windows.numbers))
    np.testing.assert_array_equal(np.asarray(again), np.asarray(scattered))


@pytest.mark.parametrize("seed", SEEDS)
def test_adding_and_subtracting_cancel(seed):
    windows = random_windows(seed)
    numbers = ScatterDimensionNumbers(*windows.numbers)
    there = ops.scatter_add(windows.operand, windows.indices, windows.updates, numbers)
    back = ops.scatter_sub(there, windows.indices, windows.updates, numbers)
    np.testing.assert_array_equal(np.asarray(back), windows.operand)


ROWS = GatherDimensionNumbers((1,), (0,), (0,))
WRITE_ROWS = ScatterDimensionNumbers(*ROWS)
TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "uint32", "uint64"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_take_is_numpys(axis, dtype):
    x = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    indices = np.array([[0, 2, 1], [2, 2, 0]], dtype)
    np.testing.assert_array_equal(np.asarray(ops.take(x, indices, axis)), np.take(x, indices, axis))
    along = np.argsort(x, axis)
    taken = ops.take_along_axis(x, along.astype(dtype), axis)
    np.testing.assert_array_equal(np.asarray(taken), np.sort(x, axis))


@pytest.mark.parametrize(
    "dtype, fill",
    [
        ("float32", np.nan),
        ("bfloat16", np.nan),
        ("complex64", np.nan),
        ("int8", -128),
        ("uint16", 65535),
        ("bool", True),
    ],
)
def test_what_is_out_of_bounds_is_filled(dtype, fill):
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = np.zeros((4, 3), dtype)
    indices = np.array([[-1], [0], [4]])
    filled = np.asarray(ops.gather(x, indices, ROWS, (1, 3), mode=FILL_OR_DROP))
    expected = np.array([[fill] * 3, [0] * 3, [fill] * 3]).astype(dtype)
    np.testing.assert_array_equal(filled.astype(np.complex64), expected.astype(np.complex64))
    assert filled.dtype == dtype
    given = np.asarray(ops.gather(x, indices, ROWS, (1, 3), mode=FILL_OR_DROP, fill_value=1))
    np.testing.assert_array_equal(given[:, 0].astype(np.complex64), [1, 0, 1])


def test_modes():
    indices = np.array([[-1], [2], [9]])

    def gathered(mode):
        return np.asarray(ops.gather(TABLE, indices, ROWS, (1, 3), mode=mode)).tolist()

    assert gathered(CLIP) == gathered(PROMISE_IN_BOUNDS) == TABLE[[0, 2, 3]].tolist()
    assert gathered(ONE_HOT) == [[0, 0, 0], TABLE[2].tolist(), [0, 0, 0]]
    updates = np.full((3, 3), -1, np.float32)
    for mode, rows in ((CLIP, [0, 2, 3]), (FILL_OR_DROP, [2]), (PROMISE_IN_BOUNDS, [2]), (ONE_HOT, [2])):
        written = np.asarray(ops.scatter(TABLE, indices, updates, WRITE_ROWS, mode=mode))
        assert [row for row in range(4) if (written[row] == -1).all()] == rows
    assert GatherScatterMode.from_any(None) is GatherScatterMode.from_any("fill") is FILL_OR_DROP
    assert GatherScatterMode.from_any("clip") is GatherScatterMode.from_any(CLIP) is CLIP
    with pytest.raises(ValueError, match="mode must be one of .*'clip'.*, got 'wrap'"):
        GatherScatterMode.from_any("wrap")


def test_of_repeated_indices_the_last_update_stays():
    indices = np.array([[1], [3], [1], [1]])
    updates = np.arange(12, dtype=np.float32).reshape(4, 3) + 100
    for scatter in (ops.scatter, purax.jit(ops.scatter, static_argnums=3)):
        out = np.asarray(scatter(TABLE, indices, updates, WRITE_ROWS))
        np.testing.assert_array_equal(out, [TABLE[0], updates[3], TABLE[2], updates[1]])


def test_products_with_repeated_indices_are_differentiable():
    indices = np.array([[0], [0], [1], [1], [1], [2], [2]])
    x = np.array([2.0, 3.0, 5.0, 7.0], np.float32)
    y = np.array([3.0, 4.0, 0.0, 2.0, 5.0, 0.0, 0.0], np.float32)
    numbers = ScatterDimensionNumbers((), (0,), (0,))

    def product(x, y):
        return ops.scatter_mul(x, indices, y, numbers)

    def factors(x, y):
        return (x[0] * y[0] * y[1], x[1] * y[2] * y[3] * y[4], x[2] * y[5] * y[6], x[3])

    expected = jax.jacrev(factors, (0, 1))(x, y)
    for position, ours in enumerate(purax.jacrev(product, (0, 1))(x, y)):
        same(ours, np.stack([row[position] for row in expected]))


def test_the_operand_is_not_changed():
    x = purax.device_put(TABLE)
    for name in SCATTERS:
        getattr(ops, name)(x, np.array([[1], [1]]), np.ones((2, 3), np.float32), WRITE_ROWS)
        getattr(ops, name)(x, np.array([[1]]), np.ones((1, 3), np.float32), WRITE_ROWS)
    np.testing.assert_array_equal(np.asarray(x), TABLE)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: ops.gather(TABLE, np.zeros((2, 1)), ROWS, (1, 3)), r"gather needs integer indices, got f\d+\[2,1\]"),
        (lambda: ops.gather(TABLE, np.zeros((2, 2), int), ROWS, (1, 3)), r"last axis of the indices of shape \(2, 2\)"),
        (lambda: ops.gather(TABLE, np.zeros((2, 1), int), ROWS, (1, 4)), r"sizes \(1, 4\) do not fit .* \(4, 3\)"),
        (lambda: ops.gather(TABLE, np.zeros((2, 1), int), ROWS, (2, 3)), r"must have window size 1"),
        (lambda: ops.gather(TABLE, np.zeros((2, 1), int), ROWS._replace(offset_dims=()), (1, 3)), r"offset_dims \(\)"),
        (lambda: ops.scatter(TABLE, np.zeros((2, 1), int), np.ones((2, 3), int), WRITE_ROWS), r"operand's dtype"),
        (
            lambda: ops.scatter(TABLE, np.zeros((2, 1), int), np.ones((5, 3), np.float32), WRITE_ROWS),
            r"name \(2,\) windows, the updates of shape \(5, 3\) are for \(5,\)",
        ),
        (
            lambda: ops.scatter(TABLE, np.zeros((2, 1), int), np.ones((2, 4), np.float32), WRITE_ROWS),
            r"sizes \(1, 4\) do not fit into the operand of shape \(4, 3\)",
        ),
        (
            lambda: ops.scatter_add(TABLE > 0, np.zeros((2, 1), int), np.ones((2, 3), bool), WRITE_ROWS),
            r"scatter-add takes integer or float or complex arrays, got bool\[4,3\]",
        ),
    ],
)  # fmt: skip
def test_errors_say_what_does_not_fit(call, message):
    with pytest.raises(TypeError, match=message):
        call()
