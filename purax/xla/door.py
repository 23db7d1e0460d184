"""The one door to jaxlib: every name of the engine that purax uses, under one spelling for all supported versions.

Nothing of purax is imported here, so that `purax.tree`, at the bottom of the layers, can stand on the engine's
C++ pytrees too. Version differences end in this file. Only `jaxlib._jax` is loaded at import; the MLIR bindings
and the LAPACK kernels are loaded by the functions that need them.
"""

import importlib.util
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

# The engine reads its log level once, while it is loaded; its informational lines are not for users.
_log_level_is_ours = "TF_CPP_MIN_LOG_LEVEL" not in os.environ
if _log_level_is_ours:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"
try:
    from jaxlib import _hlo, _jax
    from jaxlib import version as _version
finally:
    if _log_level_is_ours:
        del os.environ["TF_CPP_MIN_LOG_LEVEL"]

version: str = _version.__version__
version_info: tuple[int, ...] = tuple(int(part) for part in version.split(".")[:3])
library_path: str = _jax.__file__

pytree = _jax.pytree
Buffer = _jax.ArrayImpl
Client = _jax.Client
CompileOptions = _jax.CompileOptions
Device = _jax.Device
DeviceList = _jax.DeviceList
EngineError = _jax.JaxRuntimeError
EngineSharding = _jax.Sharding
EngineSingleDeviceSharding = _jax.SingleDeviceSharding
HloSharding = _hlo.HloSharding
LoadedExecutable = _jax.LoadedExecutable
MemoryStats = _jax.CompiledMemoryStats

# Without these words of width 64 the engine would ask a process-global switch that belongs to the jax package.
_put = _jax.batched_device_put
_make_handler = _jax.array_result_handler
_copy_many = _jax.batched_copy_array_to_devices_with_sharding
_REUSE = _jax.ArrayCopySemantics.REUSE_INPUT
_ALWAYS_COPY = _jax.ArrayCopySemantics.ALWAYS_COPY
_handler_takes_skip_checks = version_info < (0, 11)

block_until_ready_many: Callable[[Sequence[Any]], None] = _jax.batched_block_until_ready


def make_cpu_client(num_devices: int | None = None, **distributed: Any) -> Any:
    """A client of the CPU with `num_devices` devices (None: what `XLA_FLAGS` says, or one)."""
    return _jax.get_tfrt_cpu_client(asynchronous=True, num_devices=num_devices, **distributed)


def load_plugin(platform: str, library: str) -> Any:
    """Load and initialise the PJRT plugin `library` under the name `platform`, once per process."""
    handle = None
    if not _jax.pjrt_plugin_loaded(platform):
        handle = _jax.load_pjrt_plugin(platform, library)
    if not _jax.pjrt_plugin_initialized(platform):
        _jax.initialize_pjrt_plugin(platform)
    return handle


def make_plugin_client(platform: str, options: Mapping[str, Any], distributed_client: Any = None) -> Any:
    """A client of a loaded plugin."""
    return _jax.get_c_api_client(platform, dict(options), distributed_client)


def make_result_handler(aval: Any, sharding: Any) -> Any:
    """What turns one raw result of an execution into a buffer that carries `aval` and `sharding`."""
    if _handler_takes_skip_checks:
        return _make_handler(aval, sharding, True, True)
    return _make_handler(aval, sharding, True)


def put(aval: Any, sharding: Any, array: np.ndarray, device: Any, copy: bool) -> Any:
    """Move `array` to `device`.

    Arguments:
        aval: an object with `shape`, `dtype`, `weak_type`, kept as `buffer.aval`.
        sharding: a subclass of the engine's sharding on `device`.
        array: a NumPy array in native byte order (the engine does not look at the byte order).
        device: where to.
        copy: False lets the buffer be the array's own memory, where the device and the alignment allow it.

    Returns:
        A buffer.
    """
    return _put(aval, sharding, [array], [device], True, copy, enable_x64=True)


def put_many(aval: Any, sharding: Any, arrays: Sequence[Any], devices: Sequence[Any], copy: bool) -> Any:
    """Make one buffer of a shard per device; the shards are NumPy arrays or buffers already on their device."""
    return _put(aval, sharding, arrays, devices, True, copy, enable_x64=True)


def copy_to(buffer: Any, sharding: Any, always_copy: bool = False) -> Any:
    """Copy a buffer to the devices of `sharding`; the same memory serves when it is there already, if allowed."""
    semantics = _ALWAYS_COPY if always_copy else _REUSE
    return _copy_many([buffer], [sharding._internal_device_list], [sharding], [semantics])[0]


def to_numpy(buffer: Any) -> np.ndarray:
    """A read-only array of a single-device buffer's value, without a copy where the device is the host."""
    return buffer._single_device_array_to_np_array_did_copy()[0]


def make_device_assignment(ids: np.ndarray) -> Any:
    """The engine's device assignment of an int array (replicas, partitions)."""
    return _jax.DeviceAssignment.create(np.asarray(ids, np.int32))


def compile_and_load(client: Any, program: Any, devices: Any, options: Any, callbacks: Sequence[Any] = ()) -> Any:
    """Compile StableHLO text, or a module of `parse_module` where there are Python callbacks."""
    if callbacks:
        return client.compile_and_load(program, devices, options, list(callbacks))
    return client.compile_and_load(program, devices, options)


def deserialize(client: Any, data: bytes, devices: Any, options: Any) -> Any:
    """Load an executable that `LoadedExecutable.serialize` wrote."""
    return client.deserialize_executable(data, devices, options)


_once = threading.Lock()
_lapack_registered = False
_mlir_registry: Any = None


def register_lapack() -> None:
    """Make the LAPACK kernels known to the CPU client; the first call imports them, the others do nothing."""
    global _lapack_registered
    with _once:
        if _lapack_registered:
            return
        from jaxlib import lapack

        for platform, targets in lapack.registrations().items():
            for target in targets:
                _register_target(platform, *target)
        _lapack_registered = True


def _register_target(platform: str, name: str, function: Any, api_version: int = 1) -> None:
    _jax.register_custom_call_target(name, function, platform, api_version)


def register_kernel(name: str, function: Any, platform: str = "cpu") -> None:
    """Register a kernel of XLA's FFI (a capsule, or a dict of capsules per stage) under `name`."""
    _jax.register_custom_call_target(name, function, platform, 1)


def register_plugin_kernels(platform: str, package: str, handle: Any) -> None:
    """Make the kernels that a GPU plugin brings (solvers, triangular solves, FFT helpers) known to its client.

    Arguments:
        platform: "cuda" or "rocm".
        package: the plugin's package, as `jax_plugins.xla_cuda13`; its kernels lie in `jax_cuda13_plugin`.
        handle: what `load_plugin` returned.
    """
    kernels = "jax_" + package.rpartition(".")[2].removeprefix("xla_") + "_plugin"
    if importlib.util.find_spec(kernels) is None:
        return
    extension = importlib.import_module(f"{kernels}.{platform}_plugin_extension")
    for name in ("_blas", "_hybrid", "_linalg", "_prng", "_rnn", "_solver", "_sparse", "_triton"):
        try:
            module = importlib.import_module(f"{kernels}.{name}")
        except ImportError:
            continue
        for target, function in getattr(module, "registrations", dict)().items():
            api_version = 1 if target.endswith("_ffi") else 0
            extension.register_custom_call_target(handle, target, function, api_version)


def parse_module(text: str) -> Any:
    """Parse StableHLO text to an MLIR module, which programs with Python callbacks need."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, stablehlo

    global _mlir_registry
    with _once:
        if _mlir_registry is None:
            registry = ir.DialectRegistry()
            _jax_mlir_ext.register_dialects(registry)
            _mlir_registry = registry
    context = ir.Context()
    context.append_dialect_registry(_mlir_registry)
    context.load_all_available_dialects()
    with context:
        stablehlo.register_dialect(context)
        chlo.register_dialect(context)
        return ir.Module.parse(text, context)
