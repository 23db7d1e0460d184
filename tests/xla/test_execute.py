"""Buffers keep values exactly, share memory only where it was allowed, and say clearly when they are gone."""

from __future__ import annotations

import gc

import ml_dtypes
import numpy as np
import pytest

from purax.errors import JaxRuntimeError
from purax.sharding.shardings import SingleDeviceSharding
from purax.xla import compiler, execute

DTYPES = [
    *(np.dtype(code) for code in "?bBhHiIlLqQefdFD"),
    *(
        np.dtype(getattr(ml_dtypes, name))
        for name in (
            *("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2"),
            *("float8_e5m2fnuz", "float8_e3m4", "float8_e4m3", "float8_e8m0fnu", "float4_e2m1fn"),
            *("int4", "uint4", "int2", "uint2"),
        )
    ),
]
SHAPES = [(), (0,), (3, 0, 2), (1,), (5,), (2, 3), (7, 1, 9)]


def values(dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    count = int(np.prod(shape))
    return (np.arange(count) % 2).astype(np.int8).astype(dtype).reshape(shape)


def aligned(size: int) -> np.ndarray:
    """A writable f32 vector that starts on a multiple of 64 bytes, which XLA can use as it is."""
    memory = np.zeros(size * 4 + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size * 4].view(np.float32)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: f"{dtype.name}-{dtype.char}")
@pytest.mark.parametrize("copy", [True, False])
def test_every_dtype_and_shape_comes_back_as_it_went(dtype, copy, device):
    for shape in SHAPES:
        array = values(dtype, shape)
        back = execute.to_numpy(execute.device_put(array, device, copy=copy))
        assert back.dtype == dtype and back.shape == shape
        assert back.tobytes() == array.tobytes()
        assert not back.flags.writeable


@pytest.mark.parametrize(
    "dtype", ["float32", "int64", "complex64", "bfloat16", "float8_e5m2", "int4", "bool"]
)
def test_every_dtype_comes_out_of_a_program_as_it_went_in(dtype, device):
    names = {
        **{"float32": "f32", "int64": "i64", "complex64": "complex<f32>", "bfloat16": "bf16"},
        **{"float8_e5m2": "f8E5M2", "int4": "i4", "bool": "i1"},
    }
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    kind = f"tensor<2x3x{names[dtype.name]}>"
    turned = f"tensor<3x2x{names[dtype.name]}>"
    text = f"""func.func public @main(%x: {kind}) -> {turned} {{
      %y = stablehlo.transpose %x, dims = [1, 0] : ({kind}) -> {turned}
      return %y : {turned} }}"""
    array = values(dtype, (2, 3))
    transpose = compiler.compile_program(text, [execute.BufferType((3, 2), dtype)], (device,))
    result = execute.to_numpy(transpose([execute.device_put(array, device)])[0])
    assert result.dtype == dtype
    assert result.tobytes() == array.T.tobytes()


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.T,
        lambda x: x[::-1],
        lambda x: x[:, ::2],
        lambda x: np.broadcast_to(x[:1], (4, 6)),
        lambda x: x.astype(">f4"),
        lambda x: np.asfortranarray(x),
        lambda x: x[1:],
    ],
    ids=["transposed", "reversed", "strided", "broadcast", "big-endian", "fortran", "unaligned"],
)
def test_strides_and_byte_order_do_not_matter(view, copy, device):
    array = view(np.arange(24, dtype=np.float32).reshape(4, 6))
    back = execute.to_numpy(execute.device_put(array, device, copy=copy))
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize("size", [4, 1000, 300_000])
def test_a_copy_never_shares_memory(size, device):
    array = aligned(size)
    buffer = execute.device_put(array, device, copy=True)
    array[:] = 7
    assert not execute.to_numpy(buffer).any()


def test_without_copy_an_aligned_array_is_the_buffer(device):
    array = aligned(1000)
    back = execute.to_numpy(execute.device_put(array, device, copy=False))
    assert np.shares_memory(back, array)


def test_the_buffer_keeps_the_memory_it_shares(device):
    buffer = execute.device_put(aligned(50_000), device, copy=False)
    gc.collect()
    others = [np.full(50_000, 9, np.float32) for _ in range(20)]
    assert not execute.to_numpy(buffer).any() and others[0].all()


@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16", "float8_e5m2", "int4"])
def test_a_view_outlives_its_buffer(dtype, device):
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    buffer = execute.device_put(np.ones(100_000, dtype), device)
    view = execute.to_numpy(buffer)
    part = view[10:]
    execute.delete(buffer)
    del buffer, view
    gc.collect()
    others = [execute.device_put(np.zeros(100_000, dtype), device) for _ in range(20)]
    assert (part == dtype.type(1)).all() and len(others) == 20


@pytest.mark.parametrize("attribute", ["tf.aliasing_output = 0 : i32", "jax.buffer_donor = true"])
@pytest.mark.parametrize("viewed", [False, True])
@pytest.mark.parametrize("copy", [False, True])
def test_donation_deletes_the_buffer_and_nothing_else(
    attribute, viewed, copy, increment_text, vector_type, device
):
    text = increment_text(1000, attribute=attribute)
    program = compiler.compile_program(text, [vector_type(1000)], (device,), donated=(0,))
    array = aligned(1000)
    buffer = execute.device_put(array, device, copy=copy)
    view = execute.to_numpy(buffer) if viewed else np.zeros(1)
    result = execute.to_numpy(program([buffer])[0])
    assert buffer.is_deleted()
    assert (result == 1).all() and not array.any() and not view.any()


def test_donated_memory_is_used_again(increment_text, vector_type, device):
    text = increment_text(100_000, attribute="tf.aliasing_output = 0 : i32")
    program = compiler.compile_program(text, [vector_type(100_000)], (device,), donated=(0,))
    buffer = execute.device_put(np.zeros(100_000, np.float32), device)
    addresses = set()
    for _ in range(5):
        (buffer,) = program([buffer])
        addresses.add(execute.to_numpy(buffer).ctypes.data)
    assert len(addresses) == 1
    assert program.memory_analysis().alias_size_in_bytes == 400_000


def test_a_deleted_argument_is_named(increment_text, vector_type, device):
    program = compiler.compile_program(increment_text(4), [vector_type(4)], (device,))
    buffer = execute.device_put(np.zeros(4, np.float32), device)
    execute.delete(buffer)
    execute.delete(buffer)
    with pytest.raises(JaxRuntimeError, match=r"argument 0 \(float32\[4\]\) was deleted, or donated"):
        program([buffer])
    for use in (execute.to_numpy, execute.block_until_ready):
        with pytest.raises(JaxRuntimeError, match=r"the array \(float32\[4\]\) was deleted"):
            use(buffer)
    with pytest.raises(JaxRuntimeError, match="was deleted"):
        execute.block_until_ready([execute.device_put(np.zeros(3), device), buffer])


def test_wrong_arguments_are_refused(increment_text, vector_type, device):
    program = compiler.compile_program(increment_text(4), [vector_type(4)], (device,))
    with pytest.raises(JaxRuntimeError, match="expected 1"):
        program([])
    with pytest.raises(JaxRuntimeError, match=r"f32\[4\]"):
        program([execute.device_put(np.zeros(5, np.float32), device)])


@pytest.mark.parametrize("dtype", ["U3", "O", "M8[s]", "longdouble", "i4,i4"])
def test_dtypes_without_a_counterpart_are_refused(dtype, device):
    with pytest.raises(TypeError, match="cannot go to a device"):
        execute.device_put(np.zeros(2, dtype), device)


def test_results_carry_the_aval_and_the_sharding(increment_text, vector_type, device):
    aval = vector_type(4)
    program = compiler.compile_program(increment_text(4, 2.5), [aval], (device,))
    argument = execute.device_put(np.zeros(4, np.float32), device, aval=aval)
    (result,) = program([argument])
    assert argument.aval is aval
    assert (result.aval.shape, result.aval.dtype) == ((4,), np.float32)
    assert result._sharding is SingleDeviceSharding(device)
    assert result._sharding.device_set == {device}


def test_many_and_no_arguments_and_results(device):
    scalar = "tensor<i32>"
    count = 20
    names = ", ".join(f"%x{i}" for i in range(count))
    typed = ", ".join(f"%x{i}: {scalar}" for i in range(count))
    kinds = ", ".join([scalar] * count)
    text = f"func.func public @main({typed}) -> ({kinds}) {{ return {names} : {kinds} }}"
    avals = [execute.BufferType((), np.dtype(np.int32))] * count
    identity = compiler.compile_program(text, avals, (device,))
    results = identity(
        [execute.device_put(np.int32(i) + np.zeros((), np.int32), device) for i in range(count)]
    )
    assert [int(execute.to_numpy(result)) for result in results] == list(range(count))
    nothing = compiler.compile_program("func.func public @main() { return }", [], (device,))
    assert nothing([]) == []


def test_reading_waits_for_the_value(device):
    kind = "tensor<600x600xf32>"
    text = f"""func.func public @main(%x: {kind}) -> {kind} {{
      %y = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : ({kind}, {kind}) -> {kind}
      return %y : {kind} }}"""
    square = compiler.compile_program(text, [execute.BufferType((600, 600), np.dtype(np.float32))], (device,))
    matrix = np.eye(600, dtype=np.float32)[::-1].copy()
    buffer = execute.device_put(matrix, device)
    for _ in range(7):
        (buffer,) = square([buffer])
    np.testing.assert_array_equal(execute.to_numpy(buffer), np.eye(600))
    assert execute.is_ready(buffer)
    assert execute.block_until_ready(buffer) is buffer
    assert execute.block_until_ready([buffer, buffer]) == [buffer, buffer]


def test_copies_on_the_same_device(device):
    buffer = execute.device_put(np.arange(5), device)
    same = execute.copy_to_device(buffer, device)
    other = execute.copy_to_device(buffer, device, copy=True)
    assert np.shares_memory(execute.to_numpy(same), execute.to_numpy(buffer))
    assert not np.shares_memory(execute.to_numpy(other), execute.to_numpy(buffer))
    execute.delete(buffer)
    np.testing.assert_array_equal(execute.to_numpy(other), np.arange(5))


def test_copies_between_devices(run_python):
    output = run_python(
        """
        import numpy as np
        from purax.xla import client, execute
        first, second = client.devices("cpu")
        buffer = execute.device_put(np.arange(5), first)
        moved = execute.copy_to_device(buffer, second)
        assert moved._sharding.device_set == {second}
        assert not np.shares_memory(execute.to_numpy(moved), execute.to_numpy(buffer))
        execute.delete(buffer)
        print(execute.to_numpy(moved))
        """,
        PURAX_NUM_CPU_DEVICES="2",
    )
    assert output == "[0 1 2 3 4]"


def test_analyses(increment_text, vector_type, device):
    program = compiler.compile_program(increment_text(64), [vector_type(64)], (device,))
    assert program.cost_analysis()["flops"] == 64
    memory = program.memory_analysis()
    assert (memory.argument_size_in_bytes, memory.output_size_in_bytes) == (256, 256)
    assert program.hlo_text().startswith("HloModule increment")
    assert program.devices == (device,)
    assert len(program.serialize()) > 100
    assert repr(program) == "<Executable with 1 results on cpu:0>"


def test_one_sharding_per_device(device):
    sharding = SingleDeviceSharding(device)
    assert sharding is SingleDeviceSharding(device)
    assert sharding == SingleDeviceSharding(device, device.default_memory().kind)
    assert hash(sharding) == hash(SingleDeviceSharding(device, device.default_memory().kind))
    assert sharding.is_fully_replicated and sharding.is_fully_addressable
    assert sharding.shard_shape((2, 3)) == (2, 3)
    assert sharding.devices_indices_map((2, 3)) == {device: (slice(None), slice(None))}
    assert repr(sharding) == "SingleDeviceSharding(device=cpu:0)"
    with pytest.raises(TypeError, match="needs a device"):
        SingleDeviceSharding("cpu")
