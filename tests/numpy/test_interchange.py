"""Arrays of other libraries, and ours in them: DLPack for every dtype, strides and memory; columns of tables."""

from __future__ import annotations

import gc
import sys

import ml_dtypes
import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.xla import jaxlib_api

EXTENDED = (
    "bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e4m3b11fnuz float8_e8m0fnu "
    "float8_e3m4 float8_e4m3"
).split()
PLAIN = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"


class Foreign:
    """An array of a library that knows DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Unreadable(Foreign):
    """One that NumPy cannot read, although it has NumPy's protocol: as tensors of torch in bfloat16."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Got unsupported ScalarType BFloat16")


@pytest.mark.parametrize("dtype", PLAIN.split() + EXTENDED)
def test_there_and_back(dtype):
    values = jnp.array([[1, 2], [0.5, 4]]).astype(dtype)
    back = jnp.from_dlpack(Foreign(values))
    assert back.dtype == values.dtype and back.tolist() == values.tolist()
    compiled = px.jit(lambda x: x)(values)  # whose value is a buffer of XLA's
    assert jnp.from_dlpack(Foreign(compiled), copy=True).tolist() == values.tolist()


@pytest.mark.parametrize("dtype", EXTENDED)
def test_extended_dtypes_of_others(dtype):
    values = np.array([1, 2, 0.5]).astype(getattr(ml_dtypes, dtype))
    values.flags.writeable = False
    assert jnp.from_dlpack(values).tolist() == values.tolist()
    assert jnp.asarray(Unreadable(jnp.asarray(values))).dtype == values.dtype
    assert jnp.sum(jnp.from_dlpack(Foreign(jnp.asarray(values)))) == jnp.sum(jnp.asarray(values))


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "float4_e2m1fn"])
def test_numbers_of_less_than_a_byte_say_what_to_send(dtype):
    with pytest.raises(BufferError, match="astype"):
        jnp.array([1, 0]).astype(dtype).__dlpack__()


VIEWS = {
    "whole": lambda x: x,
    "scalar": lambda x: x[1, 2, 1],
    "transposed": lambda x: x.T,
    "steps": lambda x: x[:, ::2],
    "backwards": lambda x: x[::-1, :, ::-1],
    "one row": lambda x: x[1, 1:2],
    "repeated": lambda x: np.broadcast_to(x[:, :1], x.shape),
    "nothing": lambda x: x[:0],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex128"])
def test_a_capsule_is_read_as_its_strides_say(view, dtype):
    """NumPy's own reading of the same memory is the reference."""
    array = VIEWS[view](np.arange(24).reshape(2, 4, 3).astype(dtype))
    if not array.flags.writeable:
        array = jaxlib_api.as_writable_view(np.ascontiguousarray(array))
    found = jaxlib_api.array_of_capsule(array.__dlpack__())
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype and not found.flags.writeable


def test_the_memory_lives_as_long_as_the_view():
    found = jaxlib_api.array_of_capsule(np.full(100_000, 7.0).__dlpack__())
    gc.collect()
    assert (found == 7.0).all()


def test_memory_is_shared_where_it_can_be():
    outside = np.arange(8, dtype="float32")
    assert np.shares_memory(np.asarray(jnp.from_dlpack(outside)), outside)
    assert not np.shares_memory(np.asarray(jnp.from_dlpack(outside, copy=True)), outside)


def test_what_cannot_be_read_is_an_error_with_a_reason():
    class Packed(Foreign):
        def __dlpack__(self, **options):
            capsule = np.zeros(4, "int8").__dlpack__()
            jaxlib_api._tensor_of(capsule).bits = 4
            return capsule

    with pytest.raises(ValueError, match="several in a byte"):
        jnp.from_dlpack(Packed(jnp.zeros(4)))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes of Python cannot offer buffers")
def test_memoryview():
    view = memoryview(jnp.arange(3.0))
    assert view.tolist() == [0.0, 1.0, 2.0] and view.readonly


def test_a_gpu_alone_has_the_interface_of_cuda():
    assert not hasattr(jnp.ones(3), "__cuda_array_interface__") or px.default_backend() == "gpu"


def test_columns_have_one_axis():
    with pytest.raises(ValueError, match="one axis"):
        jnp.ones((2, 2)).__arrow_c_array__()


def test_columns_of_arrow():
    pyarrow = pytest.importorskip("pyarrow")
    column = pyarrow.array(jnp.arange(3))
    assert column.type == "int32" and column.to_pylist() == [0, 1, 2]
    assert pyarrow.array(jnp.arange(3), type=pyarrow.float64()).type == "double"
    assert pyarrow.table({"x": jnp.arange(3.0)}).num_rows == 3
