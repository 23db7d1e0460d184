"""A program is compiled once per process, whoever asks and from whichever thread; flags and errors get through."""

from __future__ import annotations

import logging
import threading

import numpy as np
import pytest

from purax.config import config
from purax.errors import JaxRuntimeError
from purax.xla import compiler, execute
from purax.xla.execute import BufferType


@pytest.fixture(autouse=True)
def fresh_statistics():
    with config.override(enable_compilation_cache=False):
        compiler.clear_memory()
        compiler.stats.reset()
        yield


def test_the_same_program_is_the_same_executable(increment_text, vector_type, device):
    first = compiler.compile_program(increment_text(3), [vector_type(3)], (device,))
    second = compiler.compile_program(increment_text(3), [vector_type(3)], [device])
    assert first is second
    assert (compiler.stats.compiles, compiler.stats.memory_hits) == (1, 1)
    assert compiler.stats.seconds["compile"] > 0


def test_avals_tell_executables_apart_but_do_not_compile(increment_text, vector_type, device):
    strong = compiler.compile_program(increment_text(3), [vector_type(3)], (device,))
    weak_type = BufferType((3,), np.dtype(np.float32), weak_type=True)
    weak = compiler.compile_program(increment_text(3), [weak_type], (device,))
    assert strong is not weak
    assert compiler.stats.compiles == 1
    x = execute.device_put(np.zeros(3, np.float32), device)
    assert (strong([x])[0].aval.weak_type, weak([x])[0].aval.weak_type) == (False, True)


def test_text_and_options_tell_programs_apart(increment_text, vector_type, device):
    for amount in (1.0, 2.0):
        for options in ((), (("xla_cpu_enable_fast_math", True),)):
            program = compiler.compile_program(
                increment_text(3, amount), [vector_type(3)], (device,), options=options
            )
            x = execute.device_put(np.zeros(3, np.float32), device)
            np.testing.assert_array_equal(execute.to_numpy(program([x])[0]), np.full(3, amount))
    assert compiler.stats.compiles == 4


def test_an_option_reaches_the_compiler(vector_type, device):
    text = """func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = stablehlo.tanh %x : tensor<4xf32>
      %z = stablehlo.exponential %y : tensor<4xf32>
      return %z : tensor<4xf32> }"""
    plain = compiler.compile_program(text, [vector_type(4)], (device,))
    options = (("xla_disable_hlo_passes", "fusion"),)
    unfused = compiler.compile_program(text, [vector_type(4)], (device,), options=options)
    assert [program.hlo_text().count("fusion(") for program in (plain, unfused)] == [1, 2]


@pytest.mark.parametrize(
    "text, options, message",
    [
        ("garbage", (), "garbage"),
        ("func.func public @main() { return }", (("xla_no_such_flag", 1),), "xla_no_such_flag"),
        (
            'func.func public @main() { "stablehlo.custom_call"() {call_target_name = "no_such_kernel",'
            " api_version = 4 : i32, has_side_effect = true} : () -> () return }",
            (),
            "no_such_kernel",
        ),
    ],
)
def test_failures_are_raised_every_time(text, options, message, device):
    for _ in range(2):
        with pytest.raises(JaxRuntimeError, match=message):
            compiler.compile_program(text, [], (device,), options=options)
    assert compiler.stats.compiles == 0


def test_threads_compile_once(increment_text, vector_type, device):
    barrier = threading.Barrier(8)
    found = []

    def work():
        barrier.wait()
        found.append(compiler.compile_program(increment_text(5), [vector_type(5)], (device,)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(map(id, found))) == 1
    assert (compiler.stats.compiles, compiler.stats.memory_hits) == (1, 7)
    assert not compiler._in_flight


def test_threads_run_one_executable(increment_text, vector_type, device):
    program = compiler.compile_program(increment_text(100), [vector_type(100)], (device,))
    wrong = []

    def work(start: int):
        buffer = execute.device_put(np.full(100, start, np.float32), device)
        for _ in range(200):
            (buffer,) = program([buffer])
        if not (execute.to_numpy(buffer) == start + 200).all():
            wrong.append(start)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_memory_is_bounded(increment_text, vector_type, device, monkeypatch):
    def get(amount):
        return compiler.compile_program(increment_text(3, amount), [vector_type(3)], (device,))

    compiler.clear_memory()
    get(1.0)
    monkeypatch.setattr(compiler, "MEMORY_LIMIT_BYTES", int(2.5 * compiler._entries_size))
    get(1.0), get(2.0), get(1.0), get(3.0)  # 2.0 was used longest ago
    assert len(compiler._entries) == 2
    get(1.0), get(3.0)
    assert compiler.stats.compiles == 3
    get(2.0)
    assert compiler.stats.compiles == 4
    monkeypatch.setattr(compiler, "MEMORY_LIMIT_BYTES", 10)
    program = get(4.0)
    assert len(compiler._entries) == 1  # the last one stays, however large it is
    assert execute.to_numpy(program([execute.device_put(np.zeros(3, np.float32), device)])[0])[0] == 4


def test_compiles_are_logged(increment_text, vector_type, device, caplog):
    with caplog.at_level(logging.WARNING, "purax"), config.override(log_compiles=True):
        compiler.compile_program(increment_text(3, name="jit_step"), [vector_type(3)], (device,))
    assert [record.message.startswith("compiled jit_step for cpu in") for record in caplog.records] == [True]


def callback_text(index: int = 0) -> str:
    return f"""func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %y = "stablehlo.custom_call"(%x) {{call_target_name = "xla_ffi_python_cpu_callback",
        api_version = 4 : i32, backend_config = {{index = {index} : ui64}}, has_side_effect = true}}
        : (tensor<4xf32>) -> tensor<4xf32>
      return %y : tensor<4xf32> }}"""


def test_callbacks_run_and_are_not_mixed_up(vector_type, device):
    programs = [
        compiler.compile_program(
            callback_text(), [vector_type(4)], (device,), callbacks=[lambda x, k=k: (np.asarray(x) * k,)]
        )
        for k in (2, 3)
    ]
    x = execute.device_put(np.arange(4, dtype=np.float32), device)
    results = [execute.to_numpy(program([x])[0]).tolist() for program in programs]
    assert results == [[0, 2, 4, 6], [0, 3, 6, 9]]


def test_a_failing_callback_fails_the_computation(vector_type, device):
    def fail(x):
        raise ValueError("the callback's own words")

    program = compiler.compile_program(callback_text(), [vector_type(4)], (device,), callbacks=[fail])
    x = execute.device_put(np.zeros(4, np.float32), device)
    for wait in (execute.to_numpy, execute.block_until_ready):
        with pytest.raises(JaxRuntimeError, match="the callback's own words"):
            wait(program([x])[0])


CHOLESKY = """func.func public @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %y:2 = "stablehlo.custom_call"(%x) {call_target_name = "lapack_spotrf_ffi", api_version = 4 : i32,
    backend_config = {uplo = 76 : ui8}, has_side_effect = false,
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]}
    : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
  return %y#0 : tensor<2x2xf32> }"""


def test_lapack_is_there_when_a_program_names_it(device):
    matrix = np.array([[4, 2], [2, 5]], np.float32)
    aval = BufferType((2, 2), np.dtype(np.float32))
    program = compiler.compile_program(CHOLESKY, [aval], (device,))
    result = np.tril(execute.to_numpy(program([execute.device_put(matrix, device)])[0]))
    np.testing.assert_allclose(result, np.linalg.cholesky(matrix), rtol=1e-6)
    with pytest.raises(ValueError, match="no kernels called 'blas'"):
        compiler.need("blas")


def test_several_devices_run_one_program(run_python):
    output = run_python(
        """
        import numpy as np
        from purax.xla import client, compiler, execute, jaxlib_api
        from purax.xla.execute import BufferType

        class Split(jaxlib_api.EngineSharding):
            # rows over all devices
            def __init__(self, devices):
                super().__init__()
                self._internal_device_list = jaxlib_api.DeviceList(tuple(devices))
                self.device_set = set(devices)
                self.memory_kind = self._memory_kind = "device"
            def _to_xla_hlo_sharding(self, rank):
                return jaxlib_api.HloSharding.iota_tile((4,))

        devices = client.devices("cpu")
        kind = 'tensor<8xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}'
        text = f'''module attributes {{mhlo.num_partitions = 4 : i32}} {{
          func.func public @main(%x: {kind}) -> ({kind}) {{
            %y = stablehlo.add %x, %x : tensor<8xf32>
            return %y : tensor<8xf32> }} }}'''
        aval = BufferType((8,), np.dtype(np.float32))
        split = Split(devices)
        options = (("use_shardy_partitioner", False),)
        for turn in range(2):
            program = compiler.compile_program(text, [aval], devices, options=options, out_shardings=[split])
            x = np.arange(8, dtype=np.float32)
            buffer = jaxlib_api.put_many(aval, split, [x[2 * i : 2 * i + 2] for i in range(4)], devices, False)
            (result,) = program([buffer])
            execute.block_until_ready(result)
            print(result._sharding is split, len(program.devices), compiler.stats.compiles, compiler.stats.disk_hits)
            compiler.clear_memory()
        try:
            compiler.compile_program(text, [aval], devices)
        except ValueError as error:
            print(error)
        """,
        PURAX_NUM_CPU_DEVICES="4",
        PURAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
    )
    assert output.splitlines() == [
        "True 4 1 0",
        "True 4 1 1",
        "a program on 4 devices needs out_shardings, one per result",
    ]
