"""Devices, the choice of the platform, and plugins that are found without being imported."""

from __future__ import annotations

import logging
import sys

import pytest

from purax.config import config
from purax.xla import client, plugins


def test_devices_and_their_counts():
    devices = client.devices("cpu")
    assert devices and all(device.platform == "cpu" for device in devices)
    assert client.device_count("cpu") == len(devices) == client.local_device_count("cpu")
    assert client.local_devices(backend="cpu") == devices == client.local_devices(0, "cpu")
    assert client.local_devices(1, "cpu") == []
    assert (client.process_index("cpu"), client.process_count("cpu")) == (0, 1)
    assert client.devices("cpu")[0] is devices[0]
    assert client.clients()["cpu"] is devices[0].client


def test_the_default_device_follows_the_settings(device):
    with config.override(platforms="cpu"):
        assert client.default_backend() == "cpu"
        assert client.default_device() is device
        for choice in ("cpu", "cpu:0", device):
            with config.override(default_device=choice):
                assert client.default_device() is device


@pytest.mark.parametrize(
    "choice, error, message",
    [
        ("cpu:99", ValueError, "no local device 'cpu:99'; there are cpu:0"),
        ("cpu:x", ValueError, "no local device 'cpu:x'"),
        (7, TypeError, "not 7"),
        ("abacus", RuntimeError, "'abacus'"),
    ],
)
def test_a_default_device_that_is_not_there(choice, error, message):
    with config.override(default_device=choice), pytest.raises(error, match=message):
        client.default_device()


def test_an_unknown_platform_lists_the_known_ones():
    with config.override(platforms=None), pytest.raises(RuntimeError, match="'abacus'; platforms here: cpu"):
        client.devices("abacus")


def test_platforms_restrict():
    with config.override(platforms="cpu"):
        assert client.devices()[0].platform == "cpu"
        with pytest.raises(RuntimeError, match=r"'cuda' is not among those of config.platforms='cpu'"):
            client.devices("cuda")
        with pytest.raises(RuntimeError, match="'gpu' is not among"):
            client.devices("gpu")


def test_platforms_are_tried_in_order(caplog):
    with caplog.at_level(logging.WARNING, "purax"), config.override(platforms="abacus, cpu"):
        assert client.default_backend() == "cpu"
    assert "abacus" in caplog.text and "trying the next" in caplog.text
    with (
        config.override(platforms="abacus"),
        pytest.raises(RuntimeError, match="'abacus' could not be started"),
    ):
        client.devices()


def test_what_a_handler_of_a_signal_raises_is_no_failure_of_the_platform(monkeypatch):
    class Alarm(Exception):
        pass

    def interrupted(platform):
        raise Alarm

    monkeypatch.setattr(client, "_clients", {})
    monkeypatch.setattr(client, "_failures", {})
    with monkeypatch.context() as patch:
        patch.setattr(client, "_make_client", interrupted)
        with pytest.raises(Alarm):
            client.client("cpu")
    monkeypatch.setattr(client, "_make_client", lambda platform: platform)
    assert client.client("cpu") == "cpu"


def test_the_number_of_cpu_devices_is_fixed_by_the_first_use():
    count = client.local_device_count("cpu")
    with pytest.raises(
        RuntimeError, match=f"cannot become {count + 3}: the CPU client already runs with {count}"
    ):
        config.update("num_cpu_devices", count + 3)
    assert config.num_cpu_devices != count + 3
    with pytest.raises(RuntimeError, match="PURAX_CPU_THREADS"):
        config.update("cpu_threads", 3)
    with pytest.raises(RuntimeError, match="PURAX_CPU_ENABLE_ASYNC_DISPATCH"):
        config.update("cpu_enable_async_dispatch", False)


@pytest.mark.parametrize("is_asynchronous", [True, False])
def test_calls_can_wait_for_their_results(is_asynchronous, run_python):
    output = run_python(
        f"""
        import time
        import purax as px, purax.numpy as jnp
        px.config.update("cpu_enable_async_dispatch", {is_asynchronous})
        product = px.jit(lambda x: jnp.linalg.matrix_power(x, 16))
        x = jnp.eye(1024)
        product(x).block_until_ready()
        early = []
        for _ in range(9):  # most of them: the machine may be busy with other work
            before = time.perf_counter()
            y = product(x)
            returned = time.perf_counter()
            y.block_until_ready()
            early.append(returned - before < time.perf_counter() - returned)
        print(sum(early) >= 5, float(y.sum()))
        """
    )
    assert output.split() == [str(is_asynchronous), "1024.0"]


@pytest.mark.parametrize(
    "environment",
    [{"PURAX_NUM_CPU_DEVICES": "5"}, {"XLA_FLAGS": "--xla_force_host_platform_device_count=5"}],
    ids=["purax", "xla"],
)
def test_virtual_devices(environment, run_python):
    output = run_python(
        """
        import numpy as np
        from purax.xla import client, compiler, execute
        from purax.sharding.shardings import SingleDeviceSharding
        devices = client.devices()
        text = "func.func public @main(%x: tensor<i32>) -> tensor<i32> { return %x : tensor<i32> }"
        for device in devices:
            program = compiler.compile_program(text, [execute.BufferType((), np.dtype("int32"))], (device,))
            (result,) = program([execute.device_put(np.array(device.id, "int32"), device)])
            assert result._sharding is SingleDeviceSharding(device)
            assert int(execute.to_numpy(result)) == device.id
        print(len(devices), client.default_device())
        """,
        **{"XLA_FLAGS": None, "PURAX_NUM_CPU_DEVICES": None, **environment},
    )
    assert output == "5 cpu:0"


def test_the_number_can_be_set_before_the_first_use(run_python):
    output = run_python(
        """
        from purax.config import config
        from purax.xla import client
        config.update("num_cpu_devices", 3)
        print(client.device_count())
        config.update("num_cpu_devices", 3)
        """,
        PURAX_NUM_CPU_DEVICES=None,
        XLA_FLAGS=None,
    )
    assert output == "3"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Packages that would raise if they were imported."""

    def install(folder: str, *files: str) -> None:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "__init__.py").write_text("raise AssertionError('imported')")
        for name in files:
            (tmp_path / folder / name).write_bytes(b"\x7fELF, not really")

    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] in ("jax_plugins", "libtpu")]:
        monkeypatch.delitem(sys.modules, name)
    for variable in ("TPU_LIBRARY_PATH", "PJRT_NAMES_AND_LIBRARY_PATHS"):
        monkeypatch.delenv(variable, raising=False)
    plugins.find_plugins.cache_clear()
    yield install
    plugins.find_plugins.cache_clear()
    sys.modules.pop("jax_plugins", None)


def test_plugins_are_found_and_not_imported(installed, tmp_path, monkeypatch):
    installed("jax_plugins/xla_cuda12", "xla_cuda_plugin.so")
    installed("jax_plugins/xla_cuda13", "xla_cuda_plugin.so", "version.py")
    installed("jax_plugins/xla_rocm7", "xla_rocm_plugin.so")
    installed("jax_plugins/metal_plugin", "pjrt_plugin_metal_1.x.dylib")
    installed("jax_plugins/without_library")
    installed("libtpu", "libtpu.so")
    installed("lonely_package", "lib_lonely.so")
    information = tmp_path / "lonely-1.0.dist-info"
    information.mkdir()
    (information / "entry_points.txt").write_text(
        "[console_scripts]\nlonely = lonely:main\n\n[jax_plugins]\nlonely = lonely_package\nother = a.b\n"
    )
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "mine:/somewhere/mine.so")
    found = plugins.find_plugins()
    folder = str(tmp_path)
    assert {name: plugin.library.removeprefix(folder) for name, plugin in found.items()} == {
        "cuda": "/jax_plugins/xla_cuda13/xla_cuda_plugin.so",
        "rocm": "/jax_plugins/xla_rocm7/xla_rocm_plugin.so",
        "metal_plugin": "/jax_plugins/metal_plugin/pjrt_plugin_metal_1.x.dylib",
        "tpu": "/libtpu/libtpu.so",
        "lonely": "/lonely_package/lib_lonely.so",
        "mine": "/somewhere/mine.so",
    }
    assert found["cuda"].package == "jax_plugins.xla_cuda13"


def test_a_plugin_that_does_not_load_is_passed_over(installed, monkeypatch, caplog):
    installed("jax_plugins/xla_cuda13", "xla_cuda_plugin.so")
    monkeypatch.setattr(plugins, "has_device", lambda platform: True)
    with caplog.at_level(logging.WARNING, "purax"):
        config.update("platforms", None)
        try:
            assert client.default_backend() == "cpu"
            assert "'cuda' could not be started" in caplog.text and "using the CPU" in caplog.text
            with pytest.raises(RuntimeError, match="'cuda' could not be started"):
                client.devices("gpu")
        finally:
            config.update("platforms", "cpu")


def test_a_plugin_without_its_hardware_is_not_started(installed, monkeypatch, caplog):
    installed("jax_plugins/xla_cuda13", "xla_cuda_plugin.so")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    config.update("platforms", None)
    try:
        with caplog.at_level(logging.WARNING, "purax"):
            assert client.default_backend() == "cpu"
        assert not caplog.records
    finally:
        config.update("platforms", "cpu")


def test_a_gpu_without_a_plugin_is_pointed_out_once(monkeypatch, caplog):
    monkeypatch.setattr(plugins, "_has_nvidia_gpu", lambda: True)
    monkeypatch.setattr(plugins, "find_plugins", lambda: {})
    plugins.hint_at_unused_gpu.cache_clear()
    with caplog.at_level(logging.WARNING, "purax"):
        for _ in range(3):
            config.update("platforms", None)
            try:
                assert client.default_backend() == "cpu"
            finally:
                config.update("platforms", "cpu")
    assert len(caplog.records) == 1
    assert "pip install" in caplog.text and "\n" not in caplog.records[0].getMessage()


def test_gpu_memory_grows_on_demand_unless_told(monkeypatch):
    for name in ("PREALLOCATE", "MEM_FRACTION", "ALLOCATOR"):
        monkeypatch.delenv(f"XLA_PYTHON_CLIENT_{name}", raising=False)
    assert plugins._gpu_options("cuda") == {
        "platform_name": "cuda",
        "allocator": "default",
        "preallocate": False,
    }
    with config.override(memory_preallocate=True):
        assert plugins._gpu_options("cuda")["preallocate"] is True
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "true")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", ".5")
    options = plugins._gpu_options("cuda")
    assert (options["preallocate"], options["memory_fraction"]) == (True, 0.5)
    monkeypatch.setenv("XLA_PYTHON_CLIENT_ALLOCATOR", "malloc")
    with pytest.raises(ValueError, match="XLA_PYTHON_CLIENT_ALLOCATOR.*'malloc'"):
        plugins._gpu_options("cuda")
