"""DLPack in both directions, and what XLA must not do behind our backs."""

from __future__ import annotations

import gc

import ml_dtypes
import numpy as np
import pytest

from purax.sharding.shardings import SingleDeviceSharding
from purax.xla import client, compiler, execute, jaxlib_api


class Exported:
    """What consumers of DLPack want to see of a buffer on CPU."""

    def __init__(self, buffer):
        self.buffer = buffer

    def __dlpack__(self, **arguments):
        return jaxlib_api.to_dlpack(self.buffer)

    def __dlpack_device__(self):
        return 1, 0


def imported(capsule, device, **arguments):
    return jaxlib_api.from_dlpack(
        capsule, device, SingleDeviceSharding(device), execute.BufferType, **arguments
    )


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3)])
def test_dlpack_there_and_back(dtype, shape, device):
    array = (np.arange(int(np.prod(shape))) % 2).astype(dtype).reshape(shape)
    buffer = execute.device_put(array, device)
    view = np.from_dlpack(Exported(buffer))
    assert view.dtype == array.dtype and np.shares_memory(view, execute.to_numpy(buffer))
    np.testing.assert_array_equal(view, array)
    back = imported(jaxlib_api.to_dlpack(buffer), device)
    assert (back.aval.shape, back.aval.dtype) == (shape, array.dtype)
    np.testing.assert_array_equal(execute.to_numpy(back), array)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_dlpack_knows_narrow_floats(dtype, device):
    array = np.arange(6).astype(getattr(ml_dtypes, dtype)).reshape(2, 3)
    back = imported(jaxlib_api.to_dlpack(execute.device_put(array, device)), device)
    assert back.aval.dtype == array.dtype
    assert execute.to_numpy(back).tobytes() == array.tobytes()


@pytest.mark.parametrize("order", ["buffer first", "view first"])
def test_an_exported_buffer_can_be_deleted(order, device):
    buffer = execute.device_put(np.ones(50_000, np.float32), device)
    view = np.from_dlpack(Exported(buffer))
    if order == "buffer first":
        execute.delete(buffer)
        others = [execute.device_put(np.zeros(50_000, np.float32), device) for _ in range(10)]
        assert view.all() and len(others) == 10
        del view
    else:
        del view
        execute.delete(buffer)
    gc.collect()
    assert buffer.is_deleted()


def test_an_exported_buffer_can_be_donated(increment_text, vector_type, device):
    text = increment_text(1000, attribute="tf.aliasing_output = 0 : i32")
    program = compiler.compile_program(text, [vector_type(1000)], (device,), donated=(0,))
    buffer = execute.device_put(np.zeros(1000, np.float32), device)
    view = np.from_dlpack(Exported(buffer))
    (result,) = program([buffer])
    assert buffer.is_deleted() and not view.any() and execute.to_numpy(result).all()
    del view
    gc.collect()


def test_an_import_shares_or_copies_as_told(device):
    memory = np.zeros(64 * 1024 + 16, np.float32)
    array = memory[-memory.ctypes.data % 64 // 4 :][: 64 * 1024]
    copied = imported(array.__dlpack__(), device, copy=True)
    shared = imported(array.__dlpack__(), device)
    array[:] = 1
    assert not execute.to_numpy(copied).any() and execute.to_numpy(shared).all()


def test_a_writable_view_shows_the_same_memory():
    array = np.arange(6.0).reshape(2, 3)
    array.flags.writeable = False
    view = jaxlib_api.as_writable_view(array)
    assert view.flags.writeable and np.shares_memory(view, array)
    assert jaxlib_api.as_writable_view(np.zeros((0, 2))).shape == (0, 2)


def test_the_jax_package_is_never_loaded_and_the_settings_of_the_process_are_kept(run_python):
    output = run_python(
        """
        import os, sys
        before = dict(os.environ)
        import ml_dtypes, numpy as np
        from purax.xla import client, compiler, execute, jaxlib_api
        assert not any(name.partition(".")[0] in ("scipy", "jax") for name in sys.modules), "import"
        assert "jaxlib.mlir" not in sys.modules and "jaxlib.xla_client" not in sys.modules
        device = client.devices()[0]
        for dtype in (np.float32, bool, ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.float8_e5m2):
            buffer = execute.device_put(np.ones((2, 3), dtype), device)
            execute.to_numpy(execute.copy_to_device(buffer, device, copy=True))
            execute.block_until_ready(buffer)
            execute.block_until_ready([buffer])
            if dtype not in (bool, ml_dtypes.int4):
                jaxlib_api.from_dlpack(jaxlib_api.to_dlpack(buffer), device, buffer._sharding, execute.BufferType)
        text = '''func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %y = "stablehlo.custom_call"(%x) {call_target_name = "xla_ffi_python_cpu_callback",
            api_version = 4 : i32, backend_config = {index = 0 : ui64}} : (tensor<4xf32>) -> tensor<4xf32>
          return %y : tensor<4xf32> }'''
        aval = execute.BufferType((4,), np.dtype(np.float32))
        program = compiler.compile_program(text, [aval], (device,), callbacks=[lambda x: (x,)])
        execute.to_numpy(program([execute.device_put(np.ones(4, np.float32), device)])[0])
        compiler.need("lapack")
        execute.delete(buffer)
        try:
            execute.to_numpy(buffer)
        except RuntimeError:
            pass
        assert "jax" not in sys.modules
        assert dict(os.environ) == before
        print(sys.meta_path == [finder for finder in sys.meta_path if "purax" not in type(finder).__module__])
        """
    )
    assert output == "True"


def test_a_child_of_a_fork_says_that_the_engine_is_gone(run_python):
    output = run_python(
        """
        import os, warnings
        warnings.simplefilter("ignore")
        import numpy as np
        from purax.xla import client, compiler, execute
        device = client.devices("cpu")[0]
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                compiler.compile_program("func.func public @main() { return }", [], (device,))
            except RuntimeError as error:
                os.write(write, str(error).encode())
            os._exit(0)
        os.waitpid(child, 0)
        print(os.read(read, 1000).decode())
        """
    )
    assert "forked after purax had started its engine" in output and "'spawn'" in output


def test_a_fork_before_the_engine_starts_is_fine(run_python):
    output = run_python(
        """
        import os
        import numpy as np
        from purax.xla import client, execute
        child = os.fork()
        value = execute.to_numpy(execute.device_put(np.arange(3), client.devices("cpu")[0])).sum()
        if child == 0:
            os._exit(int(value))
        print(value, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert output == "3 3"


def test_the_number_of_threads_can_be_set(run_python):
    code = """
        import os
        from purax.xla import client
        before = len(os.listdir("/proc/self/task"))
        client.devices("cpu")
        print(len(os.listdir("/proc/self/task")) - before)
        """
    few, many = (int(run_python(code, PURAX_CPU_THREADS=count, XLA_FLAGS="")) for count in ("1", "9"))
    assert many - few in (16, 32)  # two pools of threads, or four


def test_versions_are_those_we_support():
    assert (0, 10, 2) <= jaxlib_api.version_info < (0, 13)
    assert client.devices("cpu")[0].platform == "cpu"


def test_a_flag_of_the_backend_is_added_to_the_options():
    options = jaxlib_api.CompileOptions()
    options.num_replicas = 3
    options.executable_build_options.debug_options.xla_cpu_enable_fast_math = True
    options.env_option_overrides = [("xla_cpu_enable_fast_min_max", True)]
    made = jaxlib_api.with_backend_flag(options, "xla_cpu_flatten_after_fusion")
    assert made.num_replicas == 3 and made.executable_build_options.debug_options.xla_cpu_enable_fast_math
    assert b"xla_cpu_flatten_after_fusion" in made.SerializeAsString()
    assert b"xla_cpu_enable_fast_min_max" in made.SerializeAsString()
    with pytest.raises(ValueError, match="more than 127"):
        jaxlib_api.with_backend_flag(options, "x" * 200)
