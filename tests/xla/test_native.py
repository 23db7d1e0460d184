"""Native kernels: programs that call them have the results of programs that do not, for all dtypes and special values.

Where the library was not built, or is of another version, programs are lowered without it, and that is tested instead.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import lax
from purax.config import config
from purax.core import dtypes
from purax.primitives import sorting
from purax.primitives.linalg.lu import lu_p
from purax.primitives.linalg.triangular import cholesky_p, triangular_solve_p
from purax.primitives.reductions.cumulative import cummax_p, cummin_p, cumprod_p, cumsum_p
from purax.primitives.sorting import sort_p, top_k_p
from purax.xla import native

BUILT = native.build() is not None
needs_library = pytest.mark.skipif(not BUILT, reason="the native kernels were not built")
GENERATOR = np.random.default_rng(7)

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def values(dtype, shape):
    """Numbers with many ties, and all special values that the dtype has."""
    dtype = dtypes.as_dtype(dtype)
    if dtype == np.bool_:
        return GENERATOR.integers(0, 2, shape).astype(bool)
    if not dtypes.is_inexact(dtype):
        if dtypes.itemsize_bits(dtype) < 8:
            return GENERATOR.integers(0, 7, shape).astype(dtype)
        limits = np.iinfo(dtype)
        x = GENERATOR.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        few = GENERATOR.integers(0, 5, shape).astype(dtype)
        return np.where(GENERATOR.random(shape) < 0.5, x, few)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0, -1.0])
    x = np.where(
        GENERATOR.random(shape) < 0.6, GENERATOR.normal(size=shape), GENERATOR.choice(special, shape)
    )
    if dtypes.is_complex(dtype):
        other = GENERATOR.choice(special, shape)
        x = np.stack([x, other], -1).view(np.complex128)[..., 0]
    return x.astype(dtype)


def lowered(function, *arguments):
    return px.jit(function).lower(*arguments).as_text()


def with_and_without(function, *arguments):
    """The results of one program, lowered with native kernels and without."""
    results = []
    for setting in (True, False):
        with config.override(native_kernels=setting):
            results.append([np.asarray(y) for y in px.tree.leaves(px.jit(function)(*arguments))])
    return results


def strong(x):
    return jnp.asarray(x, dtype=x.dtype)


def wide(x):
    """Narrow floats as float32, which NumPy can compare."""
    return x.astype(np.float32) if dtypes.is_floating(x.dtype) and x.dtype.itemsize < 4 else x


def total_order(x):
    """Integers in the order of `x`, where NaN is the largest."""
    x = np.where(x == 0, np.zeros_like(x), x)  # 0 and -0 are equal, and keep their order
    return sorting._total_order(sorting._comparable(x))


def assert_equal(found, expected, same_dtype=True):
    """Equal elements, and equal signs of zeros."""
    found, expected = wide(np.asarray(found)), wide(np.asarray(expected))
    assert found.dtype == expected.dtype or not same_dtype
    np.testing.assert_array_equal(found, expected)
    if dtypes.is_floating(found.dtype):
        is_zero = found == 0
        np.testing.assert_array_equal(np.signbit(found)[is_zero], np.signbit(expected)[is_zero])


@needs_library
def test_programs_call_the_kernels_under_the_name_of_their_build():
    x = np.zeros((4, 4), np.float32)
    text = lowered(lambda x: (jnp.sort(x), jnp.cumsum(x, 1), lax.top_k(x, 2)), x)
    for kernel in ("sort", "cumulative", "top_k"):
        assert f"purax_{kernel}_{native.build()}" in text


def test_the_setting_switches_them_off():
    x = np.zeros((4, 4), np.float32)
    with config.override(native_kernels=False):
        assert not native.is_available()
        assert "purax_" not in lowered(lambda x: (jnp.sort(x), jnp.cumsum(x, 1), lax.top_k(x, 2)), x)


@needs_library
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool", "float8_e4m3fn", "int4", "uint4"])
def test_sort_one_array(dtype):
    shapes = ((300,), (1,), (41, 3), (2, 100, 5), (3, 70), (2, 0, 3))
    cases = [(values(dtype, shape), axis) for shape in shapes for axis in range(len(shape))]
    outs = px.jit(lambda xs: [lax.sort(x, dimension=axis) for x, (_, axis) in zip(xs, cases, strict=True)])(
        [strong(x) for x, _ in cases]
    )
    for (x, axis), out in zip(cases, outs, strict=True):
        order = np.argsort(total_order(x), axis=axis, kind="stable")
        assert_equal(out, np.take_along_axis(x, order, axis))


@needs_library
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool", "complex64", "complex128"])
def test_sort_several_arrays_stably(dtype):
    cases = []
    for shape in ((300,), (20, 70), (3, 41, 20), (4, 0)):
        key, small, wide, wider, word = (
            values(each, shape) for each in (dtype, "int8", "float64", "complex128", "float32")
        )
        for axis in range(len(shape)):
            position = np.broadcast_to(
                np.arange(shape[axis]).reshape([-1] + [1] * (len(shape) - 1 - axis)), shape
            )
            position = position.astype(np.int32)
            cases += [
                ([key, position], axis, 1),
                ([key, word], axis, 1),
                ([key, small, wide, wider, position], axis, 1),
                ([small, key, wider], axis, 2),
            ]
    outs = px.jit(
        lambda groups: [
            lax.sort(xs, dimension=axis, num_keys=keys)
            for xs, (_, axis, keys) in zip(groups, cases, strict=True)
        ]
    )([tuple(map(strong, xs)) for xs, _, _ in cases])
    for (xs, axis, keys), found in zip(cases, outs, strict=True):
        expected = sort_p.host(*xs, dimension=axis, is_stable=True, num_keys=keys)
        for x, y in zip(found, expected, strict=True):
            assert_equal(x, y)


@needs_library
def test_long_rows_are_shared_among_threads():
    size = 200_000
    x = values("float32", size)
    keys = GENERATOR.integers(0, 2**32, size, np.uint32)

    def everything(x, keys):
        position = lax.iota(jnp.int32, size)
        return [
            jnp.sort(x),
            *lax.sort((x, position)),
            *lax.sort((x > 0, keys, position), num_keys=2),
            jnp.argsort(keys),
            jnp.argsort(keys.astype(jnp.float64)),
            *lax.top_k(keys, 70),
            *lax.top_k(keys, size),
        ]

    found = px.jit(everything)(strong(x), strong(keys))
    order = np.argsort(x, kind="stable")
    both = np.lexsort((keys, x > 0))
    by_key = np.argsort(keys, kind="stable")
    backwards = np.argsort(~keys, kind="stable")
    expected = [
        x[np.argsort(total_order(x), kind="stable")], x[order], order, x[both] > 0, keys[both], both, by_key, by_key,
        keys[backwards[:70]], backwards[:70], keys[backwards], backwards,
    ]  # fmt: skip
    for own, right in zip(found, expected, strict=True):
        assert_equal(own, right, same_dtype=False)


@needs_library
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool"])
def test_top_k(dtype):
    cases = []
    for shape in ((3000,), (5, 40), (2, 3, 9), (4, 1)):
        x = values(dtype, shape)
        cases += [(x, k, len(shape) - 1) for k in (0, 1, shape[-1] // 12, shape[-1])]
    cases.append((values(dtype, (50, 7)), 3, 0))
    outs = px.jit(lambda xs: [lax.top_k(x, k, axis=axis) for x, (_, k, axis) in zip(xs, cases, strict=True)])(
        [strong(x) for x, _, _ in cases]
    )
    for (x, k, axis), (found, indices) in zip(cases, outs, strict=True):
        expected, where = top_k_p.host(x, k=k, axis=axis)
        assert_equal(found, expected)
        assert_equal(indices, where)


def test_permutations_are_those_of_jax():
    key = px.random.PRNGKey(3)
    drawn = px.jit(lambda key: px.random.permutation(key, 1000))(key)
    with config.override(native_kernels=False):
        other = px.jit(lambda key: px.random.permutation(key, 1000))(key)
    np.testing.assert_array_equal(drawn, other)
    jax = pytest.importorskip("jax")
    with jax.threefry_partitionable(False):
        np.testing.assert_array_equal(drawn, jax.random.permutation(jax.random.PRNGKey(3), 1000))


CUMULATIVE = {"cumsum": cumsum_p, "cumprod": cumprod_p, "cummax": cummax_p, "cummin": cummin_p}


@needs_library
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_cumulative(dtype):
    is_float = dtypes.is_inexact(dtypes.as_dtype(dtype))
    cases = []
    for shape in ((5000,), (1,), (3, 70), (4, 2100), (2, 30, 400), (3, 0, 2)):
        for axis in range(len(shape)):
            for name in CUMULATIVE:
                rounds = is_float and name in ("cumsum", "cumprod")
                x = (
                    GENERATOR.uniform(0.9, 1.1, shape).astype(dtypes.as_dtype(dtype))
                    if rounds
                    else values(dtype, shape)
                )
                cases.append((name, x, axis, bool(GENERATOR.integers(2))))
    outs = px.jit(
        lambda xs: [
            getattr(lax, name)(x, axis, reverse)
            for x, (name, _, axis, reverse) in zip(xs, cases, strict=True)
        ]
    )([strong(x) for _, x, _, _ in cases])
    rtol = {"float32": 3e-4, "float64": 1e-11}.get(dtype, 1e-2)
    for (name, x, axis, reverse), out in zip(cases, outs, strict=True):
        expected = CUMULATIVE[name].host(x, axis=axis, reverse=reverse)
        if is_float and name in ("cumsum", "cumprod"):
            np.testing.assert_allclose(wide(np.asarray(out)), wide(expected), rtol=rtol)
        else:
            np.testing.assert_array_equal(wide(np.asarray(out)), wide(expected))


@needs_library
def test_cumulative_special_values():
    zeros = np.array([-0.0, -0.0, 0.0, -0.0], np.float32)
    x = np.array([1.0, np.inf, 2.0, -np.inf, 3.0, np.nan], np.float32)
    up, down, total, product = px.jit(
        lambda z, x: (lax.cummax(z, 0), lax.cummin(z, 0, True), lax.cumsum(x, 0), lax.cumprod(x[:3], 0))
    )(zeros, x)
    assert np.signbit(up).tolist() == [True, True, False, False]
    assert np.signbit(down).tolist() == [True, True, True, True]
    np.testing.assert_array_equal(total, [1.0, np.inf, np.inf, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(product, [1.0, np.inf, np.inf])


@needs_library
def test_long_cumulative_rows():
    x = GENERATOR.integers(-9, 9, 300_001).astype(np.int32)
    y = GENERATOR.normal(size=(2, 150_001))
    forward, backward, doubles = px.jit(
        lambda x, y: (lax.cumsum(x, 0), lax.cummax(x, 0, True), lax.cumsum(y, 1, True))
    )(strong(x), strong(y))
    np.testing.assert_array_equal(forward, np.cumsum(x))
    np.testing.assert_array_equal(backward, np.maximum.accumulate(x[::-1])[::-1])
    np.testing.assert_allclose(doubles, np.cumsum(y[:, ::-1], 1)[:, ::-1], atol=1e-9)


@needs_library
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_small_matrices(dtype):
    systems = []
    for batch, n, k in (((8,), 1, 1), ((3, 7), 5, 3), ((40,), 16, 1), ((9,), 32, 20)):
        x = GENERATOR.normal(size=(*batch, n, n))
        definite = x @ np.swapaxes(x, -1, -2) + n * np.eye(n)
        definite[(0,) * len(batch)] *= -1  # not definite: NaN
        x[(1,) * len(batch)] = 0  # singular
        b, rows = GENERATOR.normal(size=(*batch, n, k)), GENERATOR.normal(size=(*batch, k, n))
        systems.append([each.astype(dtype) for each in (x, definite, b, rows)])
    flags = [
        {"left_side": left, "lower": lower, "transpose_a": transpose, "conjugate_a": False, "unit_diagonal": unit}
        for left in (False, True) for lower in (False, True) for transpose in (False, True) for unit in (False, True)
    ]  # fmt: skip

    def everything(systems):
        outs = []
        for x, definite, b, rows in systems:
            outs += [cholesky_p.bind(definite), *lu_p.bind(x)]
            outs += [
                triangular_solve_p.bind(definite, b if each["left_side"] else rows, **each) for each in flags
            ]
        return outs

    arguments = [[strong(each) for each in system] for system in systems]
    assert "lapack" not in lowered(everything, arguments)
    found = iter(px.jit(everything)(arguments))
    rtol = {"float32": 1e-3, "float64": 1e-10}[dtype]
    for x, definite, b, rows in systems:
        np.testing.assert_allclose(next(found), cholesky_p.host(definite), rtol=rtol, atol=rtol)
        for expected in lu_p.host(x):
            np.testing.assert_allclose(next(found), expected, rtol=10 * rtol, atol=rtol)
        for each in flags:
            expected = triangular_solve_p.host(definite, b if each["left_side"] else rows, **each)
            scale = np.abs(expected).max()
            np.testing.assert_allclose(next(found) / scale, expected / scale, atol=rtol)


def test_derivatives_and_batching_do_not_know_of_them():
    x = jnp.asarray(GENERATOR.normal(size=(4, 33)), jnp.float32)

    def loss(row):
        return (
            jnp.sum(jnp.sort(row) * jnp.arange(33.0))
            + jnp.sum(jnp.cumsum(row) ** 2)
            + lax.top_k(row, 3)[0].sum()
        )

    own, other = with_and_without(lambda x: (px.vmap(px.grad(loss))(x), px.vmap(px.hessian(loss))(x[:2])), x)
    for a, b in zip(own, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3)


def test_programs_for_several_devices_do_without(monkeypatch):
    from purax.xla.stablehlo import Builder, Module

    monkeypatch.setattr(native, "is_available", lambda: True)
    assert native.serves(Builder(Module("cpu")))
    assert not native.serves(Builder(Module("cuda")))
    assert not native.serves(Builder(Module("cpu", mesh=object())))


@pytest.mark.parametrize("state", ["missing", "other version"])
def test_a_library_that_does_not_fit_is_not_used(state, monkeypatch, caplog):
    class Other:
        @staticmethod
        def purax_interface():
            return native.INTERFACE + 1

    monkeypatch.setattr(native, "_load", lambda: Other() if state == "other version" else None)
    native.build.cache_clear()
    try:
        assert native.build() is None
        assert not native.is_available()
        assert ("make native" in caplog.text) == (state == "other version")
        assert "purax_sort" not in lowered(lambda x: jnp.sort(x + 1), np.zeros(9, np.float32))
    finally:
        native.build.cache_clear()


def test_a_folder_without_a_library(monkeypatch, tmp_path):
    monkeypatch.setattr(native, "FOLDER", tmp_path)
    assert native._load() is None


@needs_library
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool"])
def test_arrays_of_the_host(dtype):
    for shape in ((3000,), (50, 60), (7, 300, 2), (5, 0)):
        x = values(dtype, shape)
        for axis in range(len(shape)):
            order = np.argsort(total_order(x), axis=axis, kind="stable")
            assert_equal(native.sorted_array(x, axis), np.take_along_axis(x, order, axis))
            order = np.argsort(sorting._comparable(x), axis=axis, kind="stable")
            np.testing.assert_array_equal(native.stable_order(x, axis), order)
    assert native.sorted_array(np.zeros(3, np.complex64), 0) is None


def test_a_process_without_them_finds_no_program_of_one_with_them(tmp_path):
    """The folder of compiled programs is shared, and what is found in it never needs a kernel that is not there."""
    program = (
        "import purax as px, numpy as np; from purax.xla import compiler\n"
        "y = px.jit(lambda x: px.numpy.cumsum(px.numpy.sort(x)))(np.arange(50, dtype=np.float32)[::-1].copy())\n"
        "print(float(y[-1]), compiler.stats.disk_hits)"
    )
    found = []
    for setting in ("1", "0", "1", "0"):
        environment = os.environ | {
            "PURAX_NATIVE_KERNELS": setting,
            "PURAX_COMPILATION_CACHE_DIR": str(tmp_path),
            "PURAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        total, hits = done.stdout.split()
        assert float(total) == sum(range(50))
        found.append(int(hits))
    assert found == ([0, 0, 1, 1] if BUILT else [0, 1, 1, 1])
