"""Products of matrices by native kernels: as those of XLA, for all dtypes, orders of axes and special values."""

import ml_dtypes
import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import lax
from purax.config import config
from purax.primitives.products import native_products
from purax.primitives.products.native_products import Axis, merged_axes
from purax.xla import native

needs_library = pytest.mark.skipif(native.build() is None, reason="the native kernels were not built")
GENERATOR = np.random.default_rng(3)

# Shapes and dimension numbers.
CASES = {
    "matrices": ((13, 40), (40, 33), (([1], [0]), ([], []))),
    "left transposed": ((7, 13), (7, 70), (([0], [0]), ([], []))),
    "right transposed": ((25, 6), (37, 6), (([1], [1]), ([], []))),
    "both transposed": ((5, 26), (18, 5), (([0], [1]), ([], []))),
    "whole vectors": ((24, 16), (16, 64), (([1], [0]), ([], []))),
    "deep": ((3, 900), (900, 17), (([1], [0]), ([], []))),
    "large": ((150, 70), (70, 140), (([1], [0]), ([], []))),
    "shared": ((260, 200), (200, 70), (([1], [0]), ([], []))),
    "one row": ((1, 50), (50, 21), (([1], [0]), ([], []))),
    "one column": ((51, 9), (9, 1), (([1], [0]), ([], []))),
    "matrix and vector": ((19, 70), (70,), (([1], [0]), ([], []))),
    "transposed matrix and vector": ((70, 1100), (70,), (([0], [0]), ([], []))),
    "vectors": ((100,), (100,), (([0], [0]), ([], []))),
    "outer": ((9, 1), (1, 8), (([1], [0]), ([], []))),
    "no depth": ((4, 0), (0, 5), (([1], [0]), ([], []))),
    "no rows": ((0, 4), (4, 5), (([1], [0]), ([], []))),
    "two depths": ((6, 3, 5), (3, 5, 7), (([1, 2], [0, 1]), ([], []))),
    "two depths in another order": ((6, 3, 5), (3, 5, 7), (([2, 1], [1, 0]), ([], []))),
    "free axes": ((2, 3, 4), (4, 5, 6), (([2], [0]), ([], []))),
    "batch": ((11, 5, 6), (11, 6, 4), (([2], [1]), ([0], [0]))),
    "batch of vectors": ((11, 5, 6), (11, 6), (([2], [1]), ([0], [0]))),
    "batch in the middle": ((3, 8, 2, 5), (3, 9, 2, 5), (([3], [3]), ([0, 2], [0, 2]))),
    "batch last": ((5, 6, 3), (6, 4, 3), (([1], [0]), ([2], [2]))),
    "large batch": ((3, 64, 160), (3, 160, 130), (([2], [1]), ([0], [0]))),
}
NARROW = ("int8", "uint8", "int16", "uint16")
DTYPES = [
    *[(t, t) for t in ("float32", "float64", "complex64", "complex128", "bfloat16")],
    *[(t, t) for t in (*NARROW, "int32", "uint32", "int64", "uint64")],
    *[(t, "int32") for t in NARROW],
    ("bfloat16", "float32"),
]
TOLERANCES = {"float32": 3e-5, "complex64": 3e-5, "float64": 1e-13, "complex128": 1e-13, "bfloat16": 1e-2}


def numbers(dtype, shape):
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return GENERATOR.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    x = GENERATOR.normal(size=shape)
    return (x + 1j * GENERATOR.normal(size=shape) if dtype.kind == "c" else x).astype(dtype)


def strong(x):
    return jnp.asarray(x, dtype=x.dtype)


@pytest.fixture
def always(monkeypatch):
    """Native kernels for every product that they know, not only where they are faster."""
    monkeypatch.setattr(native_products, "_is_faster", lambda *_: True)


def with_and_without(function, *arguments):
    """The results of a program with native kernels and without, and how often it calls them."""
    results = []
    for setting in (True, False):
        with config.override(native_kernels=setting):
            lowered = px.jit(function).lower(*arguments)
            results.append([np.asarray(y) for y in px.tree.leaves(lowered.compile()(*arguments))])
            if setting:
                calls = lowered.as_text().count("purax_product_")
    return *results, calls


def assert_close(found, expected, dtype, depth_scale=1.0):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if found.dtype.kind in "iu":
        np.testing.assert_array_equal(found, expected)
    else:
        wide = np.complex128 if found.dtype.kind == "c" else np.float64
        tolerance = TOLERANCES["float32" if found.dtype == np.float32 else dtype] * depth_scale
        np.testing.assert_allclose(found.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance)


@needs_library
@pytest.mark.parametrize(("dtype", "out"), DTYPES)
def test_products_are_those_of_the_engine(always, dtype, out):
    operands = [(strong(numbers(dtype, a)), strong(numbers(dtype, b))) for a, b, _ in CASES.values()]

    def products(operands):
        return [
            lax.dot_general(*pair, axes, preferred_element_type=np.dtype(out) if out != "bfloat16" else None)
            for pair, (_, _, axes) in zip(operands, CASES.values(), strict=True)
        ]

    native_ones, others, calls = with_and_without(products, operands)
    wanted = sum(y.size > 0 for y in others)  # results without elements are constants
    assert calls == (0 if dtype == "bfloat16" and not native.multiplies_bfloats() else wanted)
    for name, found, expected in zip(CASES, native_ones, others, strict=True):
        depth = CASES[name][0][CASES[name][2][0][0][0]]
        assert_close(found, expected, dtype, max(depth, 1) ** 0.5)


@needs_library
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64"])
def test_special_values(always, dtype):
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-40, 1e18])
    shapes = ((20, 3), (3, 37)), ((40, 1), (1, 21)), ((50, 40), (40,))
    operands = [
        tuple(strong(GENERATOR.choice(special, shape).astype(numbers(dtype, ()).dtype)) for shape in pair)
        for pair in shapes
    ]
    native_ones, others, _ = with_and_without(lambda pairs: [x @ y for x, y in pairs], operands)
    for found, expected in zip(native_ones, others, strict=True):
        if dtype == "bfloat16":
            found, expected = found.astype(np.float32), expected.astype(np.float32)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        np.testing.assert_allclose(found, expected, rtol=1e-2 if dtype == "bfloat16" else 1e-5)


@needs_library
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("depth", [3, 7, 16, 33, 100])
def test_an_infinite_element_counts_once(always, dtype, depth):
    # The last vector of a row overlaps the one before; ∞ · 0 there would be NaN.
    rows = np.where(np.eye(depth, dtype=bool), np.inf, 0.5).astype(dtype)
    vector = np.linspace(1, 2, depth).astype(dtype)
    for x, y in ((rows, vector), (np.where(rows == np.inf, 0.5, rows).astype(dtype), rows[depth // 2])):
        found, expected, calls = with_and_without(jnp.matmul, strong(x), strong(y))
        assert calls == 1 and np.isinf(found[0]).all()
        np.testing.assert_array_equal(found[0], expected[0])


@needs_library
def test_the_engine_multiplies_short_rows():
    def calls(*shapes):
        text = px.jit(jnp.matmul).lower(*(px.ShapeDtypeStruct(s, np.float32) for s in shapes)).as_text()
        return text.count("purax_product_")

    assert calls((100_000, 3), (3,)) == 0 and calls((10_000, 100), (100,)) == 1
    assert calls((3,), (3, 100_000)) == 1


@needs_library
def test_derivatives_batches_and_transposes(always):
    x, y, z = (strong(numbers("float32", shape)) for shape in ((12, 20), (20, 9), (5, 12, 20)))

    def loss(x, y):
        return jnp.sum(jnp.sin(x @ y) @ jnp.cos(y.T @ x.T))

    def functions(x, y, z):
        return (
            px.grad(loss, (0, 1))(x, y),
            px.jvp(loss, (x, y), (y[:12, :1] * x, y)),
            px.vmap(loss, (0, None))(z, y),
            px.vmap(px.grad(loss), (0, None))(z, y),
            jnp.einsum("bij,jk->kbi", z, y),
            jnp.einsum("bij,bkj->bik", z, z.transpose(0, 1, 2)),
        )

    native_ones, others, calls = with_and_without(functions, x, y, z)
    assert calls >= 10
    for found, expected in zip(native_ones, others, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@needs_library
def test_a_transposed_operand_is_read_as_it_lies(always):
    x, y = strong(numbers("float32", (6, 40))), strong(numbers("float32", (6, 70)))
    text = px.jit(lambda x, y: x.T @ y).lower(x, y).as_text()
    call = next(line for line in text.splitlines() if "purax_product_" in line)
    assert "%arg0" in call and "tensor<6x40xf32>" in call
    found, (x, y) = np.asarray(px.jit(lambda x, y: x.T @ y)(x, y)), (np.float64(x), np.float64(y))
    # Six roundings of the sum of absolute values, whichever order they are added in, and whether or not they are fused.
    assert (np.abs(found - x.T @ y) <= 6 * 2.0**-24 * (np.abs(x).T @ np.abs(y))).all()


@needs_library
def test_results_are_the_same_from_run_to_run(always):
    x, y = strong(numbers("float32", (300, 500))), strong(numbers("float32", (500, 260)))
    product = px.jit(lambda x, y: (x @ y, x @ y[:, 0], (x.astype("bfloat16") @ y.astype("bfloat16"))))
    first = product(x, y)
    for _ in range(5):
        for found, expected in zip(product(x, y), first, strict=True):
            np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


@needs_library
def test_kernels_are_called_where_they_are_faster():
    def calls(dtype, *shapes, out=None):
        lowered = px.jit(lambda x, y: lax.dot(x, y, preferred_element_type=out)).lower(
            *[px.ShapeDtypeStruct(shape, dtype) for shape in shapes]
        )
        return "purax_product_" in lowered.as_text()

    assert calls(np.float32, (64, 64), (64, 64)) and calls(np.int8, (500, 500), (500, 500), out=np.int32)
    assert calls(np.float32, (2000, 2000), (2000,)) and calls(np.int64, (40, 40), (40, 40))
    assert not calls(np.float32, (2, 3), (3, 4))  # merged with its neighbours
    assert not calls(np.float32, (2000, 2000), (2000, 2000)) and not calls(np.float32, (50, 50), (50,))
    assert not calls(np.float16, (64, 64), (64, 64))


def test_merged_axes():
    def of(lhs, rhs, axes):
        def laid_out(shape):
            return shape, [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]

        return merged_axes((laid_out(lhs), laid_out(rhs)), axes)

    one = Axis(1, 0, 0)
    found = of((2, 3, 4), (4, 5), (((2,), (0,)), ((), ())))
    assert found == (one, one, Axis(6, 4, 0), Axis(5, 0, 1), Axis(4, 1, 5))
    found = of((3, 8, 2, 5), (3, 9, 2, 5), (((3,), (3,)), ((0, 2), (0, 2))))
    assert found == (Axis(3, 80, 90), Axis(2, 5, 5), Axis(8, 10, 0), Axis(9, 0, 10), Axis(5, 1, 1))
    assert (
        of((2, 3, 4, 5), (3, 5), (((1, 3), (0, 1)), ((), ()))) is None
    )  # two depths, with an axis between them


@needs_library
@pytest.mark.parametrize("dtype", ["float32", "complex128", "int8"])
def test_parts_of_arrays_are_read_where_they_lie(always, dtype):
    x, w = strong(numbers(dtype, (2, 6, 24))), strong(numbers(dtype, (9, 20)))

    def products(x, w):
        q, k, v = (part.reshape(2, 6, 4, 2) for part in jnp.split(x, 3, axis=-1))
        scores = lax.dot_general(q, k, (([3], [3]), ([0, 2], [0, 2])))
        return [
            scores,
            lax.dot_general(scores, v, (([3], [1]), ([0, 1], [0, 2]))),
            x[:, 1:5, 3:11] @ w[1:, 2:19:3],
            w[::2, 5:9].T @ w[4:, :7],
            x[1, 2:, 4:13].T @ x[0, :4].reshape(4, 2, 12)[:, 1, 3:9],
            jnp.transpose(x[:, 2:6, :8], (2, 0, 1)).reshape(8, 8) @ w[:8],
        ]

    found, expected, calls = with_and_without(products, x, w)
    assert calls == 6
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, dtype, 100.0)
    compiled = px.jit(lambda x, w: products(x, w)[:2]).lower(x, w).compile().as_text()
    assert "slice" not in compiled and " copy(" not in compiled


@needs_library
def test_large_products_of_bfloat16_are_left_to_the_engine_where_it_multiplies_tiles(monkeypatch):
    monkeypatch.setattr(native, "multiplies_bfloats", lambda: True)
    for has_tiles in (False, True):
        monkeypatch.setattr(native, "multiplies_tiles", lambda has_tiles=has_tiles: has_tiles)
        for size, serves in ((64, True), (512, not has_tiles)):
            x = px.ShapeDtypeStruct((size, size), jnp.bfloat16)
            text = px.jit(lambda x: x @ x).lower(x).as_text()
            assert ("purax_product" in text) == serves, (has_tiles, size)
