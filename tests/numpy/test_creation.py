"""Making arrays: values, dtypes, weak types and errors as jax's, and what is done better."""

from __future__ import annotations

import pickle

import ml_dtypes
import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax.xla import execute, jaxlib_api
from tests.numpy.both import differences

FROM_VALUES = [
    "jnp.array(1.0)", "jnp.asarray(1)", "jnp.array(True)", "jnp.array(1j)", "jnp.array([1, 2.5])",
    "jnp.array([1, True])", "jnp.array([1, 1j])", "jnp.array([])", "jnp.array([[], []])", "jnp.array(())",
    "jnp.array(None)", "jnp.array([None])", "jnp.array('a')", "jnp.array(['a'])", "jnp.array([1, 'a'])",
    "jnp.array([[1, 2], [3]])", "jnp.array([x, x])", "jnp.array([x, 1])", "jnp.array([x[0], 1])",
    "jnp.array([i[0], 1.5])", "jnp.array([np.float64(1), 2])", "jnp.array([np.float16(1), 2.5])",
    "jnp.array([np.int8(1), np.int16(2)])", "jnp.array([np.uint32(1), np.int32(2)])", "jnp.array(HasArray())",
    "jnp.array(HasJaxArray())", "jnp.array(object())", "jnp.array({1: 2})", "jnp.array({1, 2})",
    "jnp.array(range(3))", "jnp.array(iter([1]))", "jnp.array(b'ab')", "jnp.array(bytearray(b'ab'))",
    "jnp.array(memoryview(b'ab'))", "jnp.array(np.array(['a']))", "jnp.array(np.array([None]))",
    "jnp.array(np.datetime64('2020'))", "jnp.array([1, 2], dtype='int8')", "jnp.array([1, 300], dtype='int8')",
    "jnp.array(300, dtype='int8')", "jnp.array(-1, dtype='uint8')", "jnp.array(1.5, dtype=int)",
    "jnp.array([1.5], dtype=int)", "jnp.array(np.nan, dtype=int)", "jnp.array([np.nan], dtype=int)",
    "jnp.array(1j, dtype=float)", "jnp.array([1j], dtype=float)", "jnp.array(x, dtype='int32')", "jnp.array(2**31)",
    "jnp.array(2**31, dtype='uint32')", "jnp.array(2**31, dtype='float32')", "jnp.array([2**31])",
    "jnp.array([2**31], dtype='uint32')", "jnp.array([2**31, 1.5])", "jnp.array(2**70)", "jnp.array([2**70])",
    "jnp.array([2**70, 1.0])", "jnp.array([1, 2], ndmin=3)", "jnp.array(x, ndmin=2)", "jnp.array(x, order='F')",
    "jnp.array(jnp.asarray(1.0))", "jnp.array([jnp.asarray(1.0), 2.0])", "jnp.array([[x, x], [x, x]])",
    "jnp.array([x, [1, 2, 3]])", "jnp.array([x, [1, 2]])", "jnp.array([np.ones(2), np.ones(3)])",
    "jnp.array(x, bool)", "jnp.array([True, False])", "jnp.array(np.float32(1))", "jnp.array(np.ones(2))",
    "jnp.array(np.arange(2))", "jnp.array([1e300])", "jnp.array([[1.0, 2.0], [3.0, 4.0]])",
    "jnp.array([(1, 2), (3, 4)])", "jnp.asarray(x, copy=True)", "jnp.copy(x)", "jnp.astype(x, 'int32')",
    "x.astype(bool)", "x.astype(complex)", "jnp.float32(1)", "jnp.int32(2.7)", "jnp.bool_(3)",
    "jnp.float32([1, 2])", "jnp.float32('1.5')", "jnp.bfloat16(1.5)", "jnp.int8(300)", "jnp.uint8(-1)",
    "jnp.frombuffer(b'abcd', dtype='uint8')", "jnp.frombuffer(b'abcd', dtype='uint8', count=2, offset=1)",
    "jnp.frombuffer([1])", "jnp.fromiter([1, 2], dtype=int)", "jnp.fromfile('x')", "jnp.fromstring('1 2', sep=' ')",
    "jnp.fromfunction(lambda i, j: i + j, (2, 2), dtype=int)", "jnp.fromfunction(lambda i, j: i * j, (2, 3))",
]  # fmt: skip

FILLED = [
    "jnp.zeros(3)", "jnp.zeros((2, 0))", "jnp.zeros(-1)", "jnp.zeros((2, -1))", "jnp.zeros(2.0)",
    "jnp.zeros((2.0,))", "jnp.zeros('a')", "jnp.zeros(i)", "jnp.zeros(np.int64(3))", "jnp.zeros(jnp.int32(2))",
    "jnp.zeros([2, 3])", "jnp.zeros(3, dtype='S1')", "jnp.zeros(3, dtype=object)", "jnp.ones(())",
    "jnp.ones(2, dtype=bool)", "jnp.empty(2)", "jnp.full(3, 2)", "jnp.full(3, 2.5)",
    "jnp.full((2, 2), jnp.array([1, 2]))", "jnp.full((2,), jnp.array([1, 2, 3]))", "jnp.full(2, 1.5, dtype=int)",
    "jnp.full(2, 1, dtype=float)", "jnp.full(2, [1, 2])", "jnp.full(2, True)", "jnp.zeros_like(x)",
    "jnp.zeros_like(1)", "jnp.zeros_like(1.0)", "jnp.zeros_like([1])", "jnp.zeros_like(x, shape=(2,))",
    "jnp.ones_like(i, dtype=float)", "jnp.full_like(i, 2.7)", "jnp.full_like(x, 2, shape=(2, 2))",
    "jnp.full_like(1, 2)", "jnp.empty_like(i)", "jnp.zeros_like(jax.ShapeDtypeStruct((2,), np.int32))",
    "jnp.full_like(m, jnp.array([1, 2, 3]))",
]  # fmt: skip

RANGES = [
    "jnp.arange(3)", "jnp.arange(3.0)", "jnp.arange(2.5)", "jnp.arange(1, 4)", "jnp.arange(1, 4.0)",
    "jnp.arange(0, 1, 0.1)", "jnp.arange(5, 0, -1)", "jnp.arange(5, 0, -1.5)", "jnp.arange(-3)",
    "jnp.arange(3, dtype='float32')", "jnp.arange(3, dtype='uint8')", "jnp.arange(0, 1, 0.1, dtype=int)",
    "jnp.arange(3, dtype=bool)", "jnp.arange(3, dtype=complex)", "jnp.arange(1j)", "jnp.arange()",
    "jnp.arange(None)", "jnp.arange(3, None)", "jnp.arange(3, None, 2)", "jnp.arange(None, 3)",
    "jnp.arange(0, 3, 0)", "jnp.arange(jnp.int32(3))", "jnp.arange(np.float64(3))", "jnp.arange(np.int8(3))",
    "jnp.arange(np.float16(3))", "jnp.arange(i)", "jnp.arange('a')", "jnp.arange(0, 10, 3)",
    "jnp.arange(start=1, stop=3)", "jnp.arange(3, step=2)", "jnp.arange(jnp.nan)",
    "jax.jit(lambda: jnp.arange(5))()", "jax.jit(lambda: jnp.arange(1, 9, 3))()",
    "jax.jit(lambda: jnp.arange(0, 1, 0.1))()", "jax.jit(lambda n: jnp.arange(n))(3)", "jnp.linspace(0, 1, 5)",
    "jnp.linspace(0, 1, 5, endpoint=False)", "jnp.linspace(0, 1, 1)", "jnp.linspace(0, 1, 0)",
    "jnp.linspace(0, 1, -1)", "jnp.linspace(0, 10, 5, dtype=int)", "jnp.linspace(0, 1, 5, retstep=True)",
    "jnp.linspace(i[:2], i[2:], 3)", "jnp.linspace(i[:2], i[2:], 3, axis=1)", "jnp.linspace(0, 1j, 3)",
    "jnp.linspace(0, 1, 2.0)", "jnp.linspace([0], [1], 2)", "jnp.linspace(x, 2, 4, endpoint=False)",
    "jax.jit(lambda a: jnp.linspace(a, 3.0, 7))(1.0)", "jnp.logspace(0, 2, 3)", "jnp.logspace(0, 3, 4, base=2)",
    "jnp.logspace(x, 2, 3)", "jnp.geomspace(1, 100, 3)", "jnp.geomspace(-1, -100, 3)", "jnp.geomspace(1, -100, 3)",
    "jnp.geomspace(1j, 100j, 3)", "jnp.geomspace(jnp.array([1.0, 2.0]), jnp.array([8.0, 16.0]), 4)",
    "jnp.geomspace(1, 256, 9, dtype=int)",
]  # fmt: skip

MATRICES = [
    "jnp.eye(3)", "jnp.eye(2, 3, k=1)", "jnp.eye(2, 3, k=-1, dtype=int)", "jnp.eye(-1)", "jnp.eye(0)",
    "jnp.identity(2)", "jnp.tri(3)", "jnp.tri(2, 4, 1, dtype=int)", "jnp.tri(3, k=-1)", "jnp.tril(m)",
    "jnp.tril(x)", "jnp.triu(t, k=1)", "jnp.triu(m > 2)", "jnp.tril(t, -1)", "jax.jit(jnp.triu)(m)",
    "jnp.tril_indices(3)", "jnp.tril_indices(3, k=1, m=4)", "jnp.triu_indices(3, -1)", "jnp.triu_indices_from(m)",
    "jnp.tril_indices_from(m, 1)", "jnp.triu_indices_from(x)", "jnp.diag(x)", "jnp.diag(x, k=1)",
    "jnp.diag(x, k=-2)", "jnp.diag(m, k=1)", "jnp.diag(m, -1)", "jnp.diag(t)", "jnp.diag(m, 5)", "jnp.diag(x[:0])",
    "jnp.diagflat(m, k=-1)", "jnp.diagonal(t, offset=1)", "jnp.diagonal(t, -1, 1, 2)", "jnp.diagonal(t, 0, -1, 0)",
    "jnp.diagonal(x)", "jnp.diagonal(t, 9)", "jnp.diag_indices(3)", "jnp.diag_indices(3, ndim=3)",
    "jnp.diag_indices_from(m[:, :2])", "jnp.diag_indices_from(m)", "jnp.mask_indices(3, jnp.triu)",
    "jnp.mask_indices(3, jnp.tril, -1, size=5)", "jnp.vander(i)", "jnp.vander(i, 2, increasing=True)",
    "jnp.vander(i, 0)", "jnp.vander(m)", "jax.grad(lambda v: jnp.sum(jnp.diag(v) * 2 + jnp.diag(v, 0)))(x)",
    "jax.grad(lambda v: jnp.sum(jnp.diagonal(v, 1) ** 2))(f)", "jax.vmap(jnp.diag)(f)",
]  # fmt: skip

GRIDS = [
    "jnp.meshgrid(i, x)", "jnp.meshgrid()", "jnp.meshgrid(i, x, sparse=True)", "jnp.meshgrid(i, x, indexing='ij')",
    "jnp.meshgrid(i, x, indexing='a')", "jnp.meshgrid(m)", "jnp.meshgrid(i, x, m[0])", "jnp.meshgrid(i)",
    "jnp.indices((2, 3))", "jnp.indices((2, 2), sparse=True)", "jnp.indices((2,), dtype=float)",
    "jnp.mgrid[0:2, 0:3]", "jnp.mgrid[0:1:3j, 0:2]", "jnp.mgrid[1:3]", "jnp.ogrid[0:2, 0:1:3j]", "jnp.ogrid[1:4]",
    "jnp.r_[1, 2, i]", "jnp.r_['-1', i, i]", "jnp.r_[0:3, 0:1:3j]", "jnp.r_['r', i]", "jnp.r_['c', i]",
    "jnp.r_['0,2', i, i]", "jnp.r_['0,2,0', i, i]", "jnp.r_['1,2,0', i, i]", "jnp.r_['0,3', i]",
    "jnp.r_['0,3,1', i]", "jnp.r_['0,3,-1', m]", "jnp.c_[i, i]", "jnp.c_[m, m]", "jnp.c_['r', i]",
    "jnp.index_exp[1:2]", "jnp.s_[1:2, ...]", "jnp.ix_(i, x[:2].astype(int))", "jnp.ix_(m)",
]  # fmt: skip


@pytest.mark.parametrize(
    "expressions",
    [FROM_VALUES, FILLED, RANGES, MATRICES, GRIDS],
    ids=["values", "filled", "ranges", "matrices", "grids"],
)
def test_agrees_with_jax(expressions):
    wrong = differences(expressions)
    assert not wrong, "\n".join(wrong)


def test_wide_dtypes_are_honoured():
    """An explicit 64-bit dtype is kept; NumPy arrays and Python numbers get 32 bits."""
    assert jnp.zeros(2, "int64").dtype == np.int64 and jnp.array([1.0], jnp.float64).dtype == np.float64
    assert jnp.float64(1).dtype == np.float64 and jnp.arange(3, dtype=np.int64).dtype == np.int64
    assert jnp.asarray(np.ones(2)).dtype == np.float32 and jnp.asarray(np.arange(2)).dtype == np.int32
    assert jnp.zeros(2, jnp.float_).dtype == np.float32 and jnp.int_(1).dtype == np.int32
    with purax.config.override(enable_x64=True):
        assert jnp.asarray(np.ones(2)).dtype == np.float64 and jnp.array([1]).dtype == np.int64
        assert jnp.zeros(2, jnp.float_).dtype == np.float64


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jnp.asarray(np.array([2**40])), "1099511627776.*int32.*dtype='int64'"),
        (lambda: jnp.array([1, -(2**40)]), "-1099511627776.*int32"),
        (lambda: jnp.arange(2**31, 2**31 + 3), "int32"),
        (lambda: jnp.arange(300, dtype="uint8"), "uint8"),
        (lambda: jnp.array(2**70), "int32"),
    ],
)
def test_integers_do_not_wrap_around(call, message):
    with pytest.raises(OverflowError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: jnp.zeros((2, -1)), ValueError, r"negative.*\(2, -1\)"),
        (lambda: jnp.zeros(2.5), TypeError, "zeros: a shape is an integer.*2.5"),
        (lambda: jnp.array([[1, 2], [3]]), ValueError, "inhomogeneous"),
        (lambda: jnp.array("text"), TypeError, "numbers.*str"),
        (lambda: jnp.array([1.0, None]), ValueError, "None"),
        (lambda: jnp.array(1 + 2j, dtype=float), TypeError, "complex number"),
        (lambda: purax.jit(lambda n: jnp.zeros(n))(3), TypeError, "static"),
        (lambda: purax.jit(lambda n: jnp.arange(n))(3), TypeError, "stop"),
    ],
)
def test_errors_say_what_is_wrong(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_arrays_do_not_share_memory_with_numpy():
    value = np.ones(3, np.float32)
    for make in (
        jnp.array,
        jnp.asarray,
        lambda v: jnp.reshape(v, (3, 1)),
        jnp.ravel,
        lambda v: jnp.full((3,), v),
    ):
        made = make(value)
        value[0] = 7
        assert float(made.ravel()[0]) == 1
        value[0] = 1


def test_in_transformations():
    x = jnp.arange(3.0)
    assert purax.jit(lambda v: jnp.array([v[0], 2.0, v[1] * 3]))(x).tolist() == [0, 2, 3]
    assert purax.grad(lambda v: jnp.array([v, [1.0, 1, 1]]).sum())(x).tolist() == [1, 1, 1]
    assert purax.vmap(lambda v: jnp.array([v, 1.0]))(x).tolist() == [[0, 1], [1, 1], [2, 1]]
    np.testing.assert_allclose(purax.grad(lambda a: jnp.linspace(a, 3.0, 5).sum())(1.0), 2.5)
    assert purax.jit(lambda: jnp.full(2, 3))().weak_type
    text = str(purax.make_jaxpr(lambda: jnp.zeros((1000, 1000)))())
    assert "broadcast_in_dim" in text and len(text) < 200


def test_scalar_types():
    for name in (
        "float32",
        "int8",
        "uint16",
        "bfloat16",
        "float16",
        "complex64",
        "bool_",
        "int4",
        "float8_e4m3fn",
    ):
        kind = getattr(jnp, name)
        dtype = np.dtype(getattr(ml_dtypes, name, None) or name.rstrip("_"))
        assert kind == dtype and dtype == kind and kind == dtype.type and hash(kind) == hash(dtype.type)
        assert np.dtype(kind) == dtype and {kind: 1}[dtype.type] == 1 and kind(1).dtype == dtype
        assert isinstance(dtype.type(1), kind) and not isinstance(kind(1), kind)
        assert jnp.zeros(1, kind).dtype == dtype and pickle.loads(pickle.dumps(kind)) is kind
    assert jnp.float32 != jnp.float64 and jnp.issubdtype(jnp.float32, jnp.floating)
    assert repr(jnp.float32) == "<class 'purax.numpy.float32'>"


def test_dlpack_and_buffers():
    value = np.arange(4, dtype=np.int32)
    assert jnp.from_dlpack(value).tolist() == [0, 1, 2, 3]
    assert np.from_dlpack(jnp.arange(3)).tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="__dlpack__"):
        jnp.from_dlpack([1])


class Producer:
    """Another library's array as DLPack shows it."""

    def __init__(self, x, device=(1, 0)):
        self.x, self.device = x, device

    def __dlpack__(self, **options):
        return self.x.__dlpack__(**options) if hasattr(self.x, "__dlpack__") else self.x

    def __dlpack_device__(self):
        return self.device


@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float32"])
def test_dlpack_of_dtypes_that_numpy_lacks(dtype, copy):
    expected = np.arange(6).astype(jnp.dtype(dtype)).reshape(2, 3)
    buffer = execute.device_put(expected, purax.devices("cpu")[0])

    class Foreign(Producer):
        def __dlpack__(self, **options):
            return jaxlib_api.to_dlpack(buffer)

    result = jnp.from_dlpack(Foreign(None), copy=copy)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(purax.jit(lambda x: x * 1)(result), expected)


def test_dlpack_of_another_byte_order():
    np.testing.assert_array_equal(jnp.from_dlpack(np.arange(3, dtype=">f4")), [0, 1, 2])


@pytest.mark.parametrize(
    "x",
    [
        *(Producer(np.ones(3), device) for device in [(2, 0), (10, 3), (99, -1), 5, None, (1, 2, 3), ("a", "b")]),
        Producer(object()), Producer(None), np.array(["a"]), np.array([None]), np.ones(2, [("a", "f4")]),
        np.array(["2020"], "M8[D]"), np.ones(1, "longdouble"),
    ],
)  # fmt: skip
def test_dlpack_of_what_cannot_be_taken_over_names_the_argument(x):
    if isinstance(x, Producer) and x.device == (2, 0) and any(d.platform == "gpu" for d in purax.devices()):
        pytest.skip("there is such a device here")
    with pytest.raises((ValueError, TypeError), match="from_dlpack.*x|longdouble|float128"):
        jnp.from_dlpack(x)


def test_empty_arrays_are_printed_with_their_shape():
    assert repr(jnp.zeros(0)) == "Array([], shape=(0,), dtype=float32)"
    assert repr(jnp.zeros((2, 0), jnp.int32)) == "Array([], shape=(2, 0), dtype=int32)"
    assert str(jnp.zeros(0)) == "[]"


MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])


@pytest.mark.parametrize(
    "use",
    [
        jnp.asarray,
        jnp.array,
        jnp.sum,
        lambda x: jnp.add(1.0, x),
        lambda x: jnp.ones(3) * x,
        lambda x: jnp.ones(3).at[:].set(x),
        lambda x: jnp.arange(9)[x.astype(int)],
        lambda x: jnp.stack([jnp.ones(3), x]),
        purax.device_put,
        purax.jit(lambda x: x * 2),
        purax.vmap(lambda x: x * 2),
        purax.grad(lambda x: x.sum()),
        lambda x: purax.lax.add(x, x),
        lambda x: purax.lax.scan(lambda c, y: (c, y), 0.0, x),
        lambda x: purax.jit(lambda y: y * x)(jnp.ones(3)),
        lambda x: purax.jit(lambda: x)(),
        lambda x: purax.grad(lambda y: np.multiply(y, x).sum())(jnp.ones(3)),
    ],
)
def test_a_mask_is_not_lost(use):
    with pytest.raises(ValueError, match="would lose its mask"):
        use(MASKED)
    use(np.ma.array([1.0, 2.0, 3.0]))
