"""Arrays on the device that the tests run on: to it and back, donated, shared with other libraries, counted."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import purax as px
import purax.numpy as jnp

DEVICE = px.devices()[0]
DTYPES = [
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.float16, ml_dtypes.bfloat16, np.float32,
    np.complex64, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4, ml_dtypes.uint4,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4)], ids=str)
def test_numbers_come_back_as_they_were(shape, dtype):
    values = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    array = px.device_put(values, DEVICE)
    assert array.devices() == {DEVICE} and array.dtype == values.dtype
    np.testing.assert_array_equal(np.asarray(array), values)
    moved = px.jit(lambda x: jnp.flip(x) if x.ndim else x)(array)
    np.testing.assert_array_equal(np.asarray(moved), np.flip(values) if values.ndim else values)


def test_wide_numbers_come_back_as_they_were():
    with px.enable_x64(True):
        for dtype in (np.float64, np.int64, np.uint64, np.complex128):
            values = np.array([1, 2**40 + 1, 3]).astype(dtype)
            np.testing.assert_array_equal(px.jit(lambda x: x + 0)(px.device_put(values, DEVICE)), values)


def test_arrays_move_between_the_device_and_the_host():
    there = px.device_put(np.arange(5.0, dtype=np.float32), DEVICE)
    here = px.device_put(there, px.devices("cpu")[0])
    assert here.devices() == {px.devices("cpu")[0]}
    back = px.device_put(here, DEVICE)
    np.testing.assert_array_equal(px.jit(jnp.sin)(back), px.jit(jnp.sin)(there))


def test_a_donated_argument_is_gone_and_its_memory_taken_over():
    x = px.device_put(np.zeros((512, 512), np.float32), DEVICE)
    step = px.jit(lambda x: x + 1, donate_argnums=0)
    compiled = step.lower(x).compile()
    assert compiled.memory_analysis().alias_size_in_bytes >= x.nbytes
    y = step(x)
    assert x.is_deleted() and not y.is_deleted()
    with pytest.raises(RuntimeError, match="deleted|donated"):
        np.asarray(x)
    for _ in range(3):
        y = step(y)
    np.testing.assert_array_equal(y, np.full((512, 512), 4, np.float32))


@pytest.mark.skipif(DEVICE.platform == "cpu", reason="the CPU does not count its memory")
def test_memory_is_given_back():
    px.block_until_ready(px.jit(lambda x: x * 2)(px.device_put(np.ones(1 << 20, np.float32), DEVICE)))
    before = DEVICE.memory_stats()["bytes_in_use"]
    for _ in range(5):
        kept = px.device_put(np.ones(1 << 24, np.float32), DEVICE) + 1
        kept.block_until_ready()
    assert DEVICE.memory_stats()["bytes_in_use"] >= before + (1 << 26)
    del kept
    assert DEVICE.memory_stats()["bytes_in_use"] < before + (1 << 26)


def test_dlpack_shares_arrays_with_torch():
    torch = pytest.importorskip("torch")
    if DEVICE.platform != "cpu" and not torch.cuda.is_available():
        pytest.skip("this build of torch has no GPU")
    x = px.device_put(np.arange(6, dtype=np.float32).reshape(2, 3), DEVICE)
    tensor = torch.from_dlpack(x)
    assert tensor.device.type == ("cpu" if DEVICE.platform == "cpu" else "cuda")
    np.testing.assert_array_equal(tensor.cpu().numpy(), np.asarray(x))
    back = jnp.from_dlpack(tensor * 2)
    assert back.devices() == {DEVICE}
    np.testing.assert_array_equal(px.jit(lambda x: x + 1)(back), 2 * np.asarray(x) + 1)


def test_a_result_that_does_not_fit_is_an_error_and_nothing_else():
    shape = (1 << 22, 1 << 20)  # four million million numbers
    with pytest.raises((RuntimeError, MemoryError, ValueError), match="(?i)memory|bytes|RESOURCE"):
        px.block_until_ready(px.jit(lambda x: jnp.broadcast_to(x, shape) * x)(jnp.float32(2)))
    assert float(px.jit(lambda x: x + 1)(jnp.float32(1))) == 2
