"""Native kernels that move and reduce arrays: the FFT, rows of tables, reductions of what lies in memory.

Programs that call them have the results of programs that do not, for odd sizes, special values and all dtypes served.
"""

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import lax
from purax.config import config
from purax.primitives import fft as fft_file
from purax.primitives.random import threefry
from purax.primitives.reductions import stored_reductions
from purax.primitives.shape import table_rows
from purax.xla import native

pytestmark = pytest.mark.skipif(native.build() is None, reason="the native kernels were not built")
GENERATOR = np.random.default_rng(11)
NUMBERS = ("float32", "float64", "int32", "int64", "uint32", "uint64")


@pytest.fixture(autouse=True)
def small_work_too(monkeypatch):
    """Kernels are called for arrays of any size, so that tests can be small."""
    monkeypatch.setattr(fft_file, "KERNEL_SIZE", 0)
    monkeypatch.setattr(table_rows, "LARGE", 0)
    for name in ("LARGE", "LONG", "WIDE"):
        monkeypatch.setattr(stored_reductions, name, 0)
    for name in ("LONG", "MANY"):
        monkeypatch.setattr(threefry, name, 0)


def array(dtype, *shape):
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return GENERATOR.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    x = GENERATOR.normal(size=shape)
    return (x + 1j * GENERATOR.normal(size=shape) if dtype.kind == "c" else x).astype(dtype)


def whole(dtype, *shape):
    """Numbers whose sums are exact in any order: small whole ones, or any integers."""
    return array(dtype, *shape) if np.dtype(dtype).kind in "iu" else np.rint(4 * array(dtype, *shape))


def with_and_without(function, arguments, kernel):
    """The results of one program with native kernels, which it must call, and without."""
    arguments = px.tree.map(lambda x: jnp.asarray(x, dtype=x.dtype), arguments)
    results = []
    for setting in (True, False):
        with config.override(native_kernels=setting):
            compiled = px.jit(function)
            assert (f"purax_{kernel}_" in compiled.lower(*arguments).as_text()) == setting
            results.append([np.asarray(y) for y in px.tree.leaves(compiled(*arguments))])
    return zip(*results, strict=True)


# --- the FFT

SHAPES = [  # the array, the axes that are transformed
    ((8192,), 1), ((3, 2310), 1), ((1, 16384), 1), ((2, 18, 286), 1), ((17, 100), 1), ((33, 2), 1), ((2, 3, 4), 1),
    ((6, 50, 34), 2), ((19, 26), 2), ((2, 7, 11, 30), 3), ((5, 1, 2), 3), ((0, 8), 1), ((11, 4), 2),
]  # fmt: skip


def transforms(kind, x, count):
    axes = tuple(range(-count, 0))
    sizes = x.shape[-count:]
    return {
        "fft": lambda x: jnp.fft.fftn(x, axes=axes),
        "ifft": lambda x: jnp.fft.ifftn(x, axes=axes),
        "rfft": lambda x: jnp.fft.rfftn(x, axes=axes),
        "irfft": lambda x: jnp.fft.irfftn(x, s=(*sizes[:-1], 2 * sizes[-1] - 2), axes=axes),
    }[kind](x)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["fft", "ifft", "rfft", "irfft"])
def test_fft(kind, precision):
    dtype = precision if kind == "rfft" else {"float32": "complex64", "float64": "complex128"}[precision]
    shapes = [((*s[:-1], s[-1] // 2 + 1) if kind == "irfft" else s, n) for s, n in SHAPES if s[-1] % 2 == 0]
    arguments = [array(dtype, *shape) for shape, _ in shapes]

    def run(*xs):
        return [transforms(kind, x, n) for x, (_, n) in zip(xs, shapes, strict=True)]

    for found, expected in with_and_without(run, arguments, "fft"):
        assert found.dtype == expected.dtype and found.shape == expected.shape
        error = np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1e-30)
        assert error < 6 * np.finfo(precision).eps


def test_fft_is_as_accurate_as_the_engine():
    x = array("complex64", 1 << 16)
    exact = np.fft.fft(x.astype(np.complex128))
    ((found, expected),) = with_and_without(lambda x: jnp.fft.fft(x), [x], "fft")
    errors = [np.linalg.norm(y - exact) for y in (found, expected)]
    assert errors[0] < 1.1 * errors[1]


def test_fft_under_transformations():
    x = array("float32", 5, 16, 30)
    weights = array("float32", 5, 16, 16)

    def loss(x):
        return (jnp.abs(px.vmap(jnp.fft.rfft2)(x)) ** 2 * weights).sum()

    for found, expected in with_and_without(lambda x: (loss(x), px.grad(loss)(x)), [x], "fft"):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3 * np.abs(expected).max())


def test_fft_leaves_large_primes_to_the_engine():
    for n in (17, 4 * 8191, 34):
        assert "purax_fft" not in px.jit(jnp.fft.fft).lower(np.zeros(n, np.complex64)).as_text()


# --- rows of tables


def rows(*shape, low, high, dtype="int32"):
    return GENERATOR.integers(low, high, shape).astype(dtype)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "bfloat16", "int8", "uint32", "int64", "bool", "complex64", "complex128"]
)
def test_gather_rows(dtype):
    dtype = jnp.dtype(dtype)
    sizes = [(37, 5), (40, 64), (9,), (3, 2, 7), (1, 4)]
    tables = [(array("float64", *size) * 4).astype(dtype) for size in sizes]
    indices = [rows(*shape, low=-4, high=45) for shape in ((50,), (3, 11), (1000,), (0,), (5, 2))]

    def run(tables, indices):
        pairs = list(zip(tables, indices, strict=True))
        clipped = [jnp.take(t, i, 0, mode="clip") for t, i in pairs]
        filled = [t.at[i].get(mode="fill", fill_value=1) for t, i in pairs]
        return clipped, [t[i.astype("uint8")] for t, i in pairs], [t[i] for t, i in pairs], filled

    for found, expected in with_and_without(run, [tables, indices], "gather_rows"):
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes() or np.array_equal(found, expected, equal_nan=True)


def test_gather_rows_under_vmap_and_grad():
    tables, table = array("float32", 4, 30, 8), array("float32", 30, 8)
    indices = rows(4, 25, low=-3, high=34)

    def run(tables, table, indices):
        both = px.vmap(lambda t, i: t[i])(tables, indices)
        one = px.vmap(lambda i: table[i])(indices)
        slopes = px.grad(lambda t: (t[indices] ** 2).sum())(table)
        batched = px.vmap(px.grad(lambda t, i: (t[i] ** 2).sum()))(tables, indices)
        return both, one, slopes, batched

    arguments = [tables, table, indices]
    text = px.jit(run).lower(*arguments).as_text()
    assert text.count("purax_gather_rows") >= 3
    for found, expected in with_and_without(run, arguments, "gather_rows"):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_segment_sums(dtype):
    shapes = [((37,), (300,)), ((8,), (2, 50)), ((11,), (3000,)), ((1,), (17,)), ((600,), (70_001,))]
    tables = [whole(dtype, *table) for table, _ in shapes]
    indices = [
        rows(*count, low=-4, high=700, dtype=("int32", "int64")[k % 2]) for k, (_, count) in enumerate(shapes)
    ]
    updates = [whole(dtype, *count, *table[1:]) for table, count in shapes]

    def run(tables, indices, updates):
        outs = []
        for t, i, u in zip(tables, indices, updates, strict=True):
            for mode in ("drop", "clip"):
                outs.append(t.at[i].add(u, mode=mode))
                outs.append(t.at[i].subtract(u, mode=mode))
        return outs

    for found, expected in with_and_without(run, [tables, indices, updates], "sum_segments"):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_segment_sums_keep_special_values_and_repeat():
    values = array("float32", 100_000)
    values[::997] = np.nan
    values[5::1009] = np.inf
    segments = rows(100_000, low=-2, high=999)
    run = lambda v, s: px.ops.segment_sum(v, s, num_segments=500)  # noqa: E731
    ((found, expected),) = with_and_without(run, [values, segments], "sum_segments")
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    again = np.asarray(px.jit(run)(values, segments))
    assert again.tobytes() == np.asarray(px.jit(run)(values, segments)).tobytes()


def test_a_sum_leaves_its_operand_alone_and_works_in_place():
    table, indices, updates = jnp.zeros(20), jnp.arange(160) % 9, jnp.ones(160)
    out = px.jit(lambda t: (t, t.at[indices].add(updates)))(table)
    np.testing.assert_array_equal(out[0], np.zeros(20))
    assert float(out[1].sum()) == 160 and float(table.sum()) == 0

    def step(table, shift):
        return table.at[indices + shift].add(updates), None

    final = px.jit(lambda t: lax.scan(step, t, jnp.arange(5))[0])(table)
    assert float(final.sum()) == 800


# --- reductions

LAYOUTS = [
    ((40_000,), (0,)), ((70, 300), (1,)), ((70, 300), (0,)), ((3, 50, 33), (1,)), ((3, 50, 33), (0, 1)),
    ((3, 50, 33), (1, 2)), ((9, 3000), (0,)), ((17,), (0,)), ((2, 40_001), (1,)), ((300, 2, 1), (0,)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", NUMBERS)
def test_reductions(dtype):
    arguments = [whole(dtype, *shape) for shape, _ in LAYOUTS]

    def run(*xs):
        pairs = [(x, axes) for x, (_, axes) in zip(xs, LAYOUTS, strict=True)]
        return [(x.max(axes), x.min(axes), x.sum(axes)) for x, axes in pairs]

    text = px.jit(run).lower(*arguments).as_text()
    assert text.count("purax_reduce_") == 3 * len(LAYOUTS)
    with config.override(native_kernels=True):
        found = px.jit(run)(*[jnp.asarray(x, dtype=x.dtype) for x in arguments])
    for x, (_, axes), results in zip(arguments, LAYOUTS, found, strict=True):
        for out, function in zip(results, (np.max, np.min, lambda x, axes: x.sum(axes, dtype)), strict=True):
            assert out.dtype == dtype
            np.testing.assert_array_equal(out, function(x, axes))


def test_reductions_of_special_values():
    x = array("float32", 6, 5000)
    x[0, 77], x[1, 4999], x[2, 3], x[3, 3:5] = np.nan, np.inf, -np.inf, (np.inf, -np.inf)
    x[4], x[5] = -np.inf, np.inf
    arguments = [(x, 1), (np.ascontiguousarray(x.T), 0), (x.ravel(), 0), (x[4:].ravel(), 0)]

    def run(*xs):
        return [(v.max(axis), v.min(axis), v.sum(axis)) for v, (_, axis) in zip(xs, arguments, strict=True)]

    with np.errstate(invalid="ignore"):
        for results, (v, axis) in zip(px.jit(run)(*[v for v, _ in arguments]), arguments, strict=True):
            np.testing.assert_array_equal(results[0], v.max(axis))
            np.testing.assert_array_equal(results[1], v.min(axis))
            np.testing.assert_allclose(results[2], v.sum(axis), rtol=1e-3)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_where_extrema_are(dtype):
    many = array(dtype, 3, 270_000)
    ties = (np.arange(4 * 5000) % 7).reshape(4, 5000).astype(dtype)
    arguments = [many, ties, ties[:, :1], array(dtype, 50, 1025)]
    if np.issubdtype(dtype, np.floating):
        special = array(dtype, 5, 300_000)
        special[0, [7, 200_000]] = special[1, 299_999] = special[2, 0] = np.nan
        special[3], special[4] = -np.inf, np.inf
        arguments.append(special)

    def run(*xs):
        return [f(x, axis=1) for x in xs for f in (jnp.argmax, jnp.argmin)]

    with config.override(native_kernels=True):
        found = px.jit(run)(*[jnp.asarray(x, dtype=x.dtype) for x in arguments])
    text = px.jit(run).lower(*arguments).as_text()
    assert "purax_find_extremum" in text
    for x, (largest, smallest) in zip(arguments, zip(found[::2], found[1::2], strict=True), strict=True):
        np.testing.assert_array_equal(largest, x.argmax(1))
        np.testing.assert_array_equal(smallest, x.argmin(1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_product_of_vectors(dtype):
    arguments = [array(dtype, n) for n in (100_003, 100_003, 1, 1, 65, 65)]

    def run(*xs):
        return [jnp.dot(x, y) for x, y in zip(xs[::2], xs[1::2], strict=True)]

    for found, expected in with_and_without(run, arguments, "vector_dot"):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e4 * np.finfo(dtype).eps)


def test_only_what_lies_in_memory_is_reduced_by_a_kernel():
    x = np.zeros((300, 300), np.float32)
    lowered = lambda f: px.jit(f).lower(x).as_text()  # noqa: E731
    assert "purax_reduce" in lowered(lambda x: x.sum())
    assert "purax_reduce" in lowered(lambda x: jnp.sort(x).sum(0))
    assert "purax_reduce" not in lowered(lambda x: (x @ x).sum(0))  # which XLA may merge
    assert "purax_reduce" not in lowered(lambda x: jnp.exp(x).sum())
    assert "purax_find_extremum" not in lowered(lambda x: jnp.argmax(x * 2, 1))


# --- random words


@pytest.mark.parametrize("partitionable", [False, True])
def test_random_words(partitionable):
    shapes = [(1,), (2,), (63,), (64,), (129,), (5, 77), (20_001,)]
    keys = px.random.split(px.random.PRNGKey(3), 5)

    def draws(keys):
        one, many = (
            keys[0],
            px.vmap(lambda key: (px.random.bits(key, (131,)), px.random.split(key, 67)))(keys),
        )
        widths = [px.random.bits(one, (1001,), dtype) for dtype in ("uint8", "uint16", "uint32")]
        return [px.random.bits(one, shape) for shape in shapes], many, widths, px.random.split(one, 9001)

    with px.threefry_partitionable(partitionable):
        for served, plain in with_and_without(draws, [keys], "threefry"):
            np.testing.assert_array_equal(served, plain)
        for served, eager in zip(
            px.tree.leaves(px.jit(draws)(keys)), px.tree.leaves(draws(keys)), strict=True
        ):
            np.testing.assert_array_equal(served, eager)
