"""The one module that imports jaxlib: every name of XLA that purax uses, under one spelling for all its versions.

Nothing of purax is imported here, so that `purax.tree`, at the bottom of the layers, can stand on the
engine's C++ pytrees too. Only `jaxlib._jax` is loaded at import; the MLIR bindings and the LAPACK kernels are
loaded by the functions that need them. Some methods of XLA's buffers (`unsafe_buffer_pointer`,
`_arrays`, `_single_device_array_to_np_array_did_copy`) import the jax package if it is installed: nothing
here uses them unguarded, and nobody else should.
"""

import contextlib
import gc
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np


@contextlib.contextmanager
def _quiet_loading() -> Iterator[None]:
    """Libraries of XLA read their log level once, while they are loaded; users need no informational lines."""
    is_ours = "TF_CPP_MIN_LOG_LEVEL" not in os.environ
    if is_ours:
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"
    try:
        yield
    finally:
        if is_ours:
            del os.environ["TF_CPP_MIN_LOG_LEVEL"]


with _quiet_loading():
    from jaxlib import _hlo, _jax  # type: ignore[attr-defined]  # parts in C++
    from jaxlib import version as _version

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
EngineTiledSharding = _jax.GSPMDSharding  # its NamedSharding would import the jax package
HloSharding = _hlo.HloSharding
OpSharding = _hlo.OpSharding
OpSharding = _hlo.OpSharding
LoadedExecutable = _jax.LoadedExecutable
MemoryStats = _jax.CompiledMemoryStats

_put = _jax.batched_device_put
_make_handler = _jax.array_result_handler
_copy_many = _jax.batched_copy_array_to_devices_with_sharding
_REUSE = _jax.ArrayCopySemantics.REUSE_INPUT
_ALWAYS_COPY = _jax.ArrayCopySemantics.ALWAYS_COPY
_handler_takes_skip_checks = version_info < (0, 11)

block_until_ready_many: Callable[[Sequence[Any]], None] = _jax.batched_block_until_ready
get_stream: Callable[[], int] = _jax.get_execution_stream_id
set_stream: Callable[[int], None] = _jax.set_execution_stream_id


_started = False
_forked = False


def _start() -> None:
    """To be called before every use of XLA that needs its threads."""
    global _started
    if _forked:
        raise RuntimeError(
            "this process was forked after purax had started its engine, whose threads a fork does not copy; "
            "start child processes with multiprocessing.get_context('spawn'), or fork before the first array"
        )
    if not _started:
        gc.callbacks.append(_release_host_memory)
    _started = True


def _release_host_memory(phase: str, info: dict[str, int]) -> None:
    """Lets go of the NumPy arrays that XLA has copied: its threads cannot do so themselves."""
    if phase == "stop" and not _forked:
        _jax.collect_garbage()


def _note_fork() -> None:
    global _forked
    _forked = _started


os.register_at_fork(after_in_child=_note_fork)


def make_cpu_client(
    num_devices: int | None = None, threads: int | None = None, asynchronous: bool = True, **distributed: Any
) -> Any:
    """A client of the CPU.

    Arguments:
        num_devices: the number of devices; None is what `XLA_FLAGS` says, or one.
        threads: the number of threads that compute; None is one per core.
        asynchronous: whether programs that are not very short run in another thread than the caller's.
        distributed: `distributed_client`, `node_id`, `num_nodes`, `collectives`.
    """
    _start()
    _stop_recording_tracebacks()
    with _environment("PJRT_NPROC", None if threads is None else str(threads)):
        return _jax.get_tfrt_cpu_client(asynchronous=asynchronous, num_devices=num_devices, **distributed)


def start_coordination_service(address: str, num_nodes: int, heartbeat: int, initialization: int) -> Any:
    """XLA's service through which processes find each other; a process that dies is not an error to it."""
    with _quiet_loading():
        return _jax.get_distributed_runtime_service(
            address,
            num_nodes,
            heartbeat_timeout=heartbeat,
            cluster_register_timeout=initialization,
            recoverable=True,
        )


def connect_to_service(address: str, node_id: int, heartbeat: int, initialization: int) -> Any:
    """This process's connection to XLA's coordination service."""
    _start()
    made = _jax.get_distributed_runtime_client(
        address,
        node_id,
        init_timeout=initialization,
        heartbeat_timeout=heartbeat,
        shutdown_timeout=5,
        shutdown_on_destruction=False,
        use_compression=True,
    )
    made.connect()
    return made


def make_cpu_collectives(distributed_client: Any, host: str | None) -> Any:
    """What CPU devices of several processes communicate by: Gloo over TCP, at the address `host` of this machine."""
    return _jax.make_gloo_tcp_collectives(distributed_client, host)


def watch_for_preemption(distributed_client: Any) -> Any:
    """What tells the processes of a group that one of them was asked to end (SIGTERM), and when to save."""
    manager = _jax.create_preemption_sync_manager()
    manager.initialize(distributed_client)
    return manager


@contextlib.contextmanager
def _environment(name: str, value: str | None) -> Iterator[None]:
    """Set a variable that XLA reads only where it is configured in no other way."""
    if value is None:
        yield
        return
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _stop_recording_tracebacks() -> None:
    """Keep XLA from walking the Python stack for every buffer: 0.4 µs, or 2.5 µs under 60 frames.

    The switch is the process's, and the jax package wants it on, so a process that has loaded jax keeps it.
    """
    if "jax" not in sys.modules:
        _jax.set_tracebacks_enabled(False)


def _plugin_name(platform: str) -> str:
    """What a plugin is registered as: a name of our own, since jax in the same process insists on loading it itself."""
    return f"purax_{platform}"


def load_plugin(platform: str, library: str) -> Any:
    """Load and initialise the PJRT plugin `library` for `platform`, once per process."""
    _start()
    _stop_recording_tracebacks()
    handle = None
    name = _plugin_name(platform)
    with _quiet_loading():
        if not _jax.pjrt_plugin_loaded(name):
            handle = _jax.load_pjrt_plugin(name, library)
            with contextlib.suppress(Exception):  # without it, profiles show the host only
                profiler().register_plugin_profiler(handle)
        if not _jax.pjrt_plugin_initialized(name):
            _jax.initialize_pjrt_plugin(name)
    return handle


def make_plugin_client(platform: str, options: Mapping[str, Any], distributed_client: Any = None) -> Any:
    """A client of a loaded plugin."""
    with _quiet_loading():
        return _jax.get_c_api_client(_plugin_name(platform), dict(options), distributed_client)


def compiler_without_device(
    platform: str, library: str, target: str, tools: str | None
) -> Callable[[str], Any]:
    """A function that compiles StableHLO text for a device that this machine need not have.

    Arguments:
        platform: "cuda".
        library: the plugin's.
        target: the description of the device, as text of XLA's `GpuTargetConfigProto`.
        tools: the folder of NVIDIA's own tools, if they are installed as packages.
    """
    handle = load_plugin(platform, library)
    topology = _jax.get_c_api_topology(handle, "", {"target_config": target, "topology": "1x1x1"})
    device = topology._make_compile_only_devices()[0]

    def compile_text(text: str) -> Any:
        options = CompileOptions()
        options.num_replicas = options.num_partitions = 1
        options.device_assignment = make_device_assignment(np.zeros((1, 1), np.int32))
        options.env_option_overrides = [("xla_gpu_autotune_level", 0)]  # which would measure
        if tools is not None:
            options.executable_build_options.debug_options.xla_gpu_cuda_data_dir = tools
        return device.client.compile(parse_module(text), DeviceList((device,)), options)

    return compile_text


def make_result_handler(aval: Any, sharding: Any) -> Any:
    """What turns one raw result of an execution into a buffer that carries `aval` and `sharding`."""
    if _handler_takes_skip_checks:
        return _make_handler(aval, sharding, True, True)
    return _make_handler(aval, sharding, True)


def put(aval: Any, sharding: Any, array: np.ndarray, device: Any, copy: bool) -> Any:
    """Move `array` to `device`.

    Arguments:
        aval: an object with `shape`, `dtype`, `weak_type`, kept as `buffer.aval`.
        sharding: a subclass of XLA's sharding on `device`.
        array: a NumPy array in native byte order (XLA does not look at the byte order).
        device: where to.
        copy: False lets the buffer be the array's own memory, where the device and the alignment allow it.

    Returns:
        A buffer.
    """
    # Unless told, XLA reads `enable_x64` from a switch of the process that belongs to the jax package.
    return _put(aval, sharding, [array], [device], True, copy, enable_x64=True)


def put_many(aval: Any, sharding: Any, arrays: Sequence[Any], devices: Sequence[Any], copy: bool) -> Any:
    """Make one buffer of one shard per device; a shard is a NumPy array or a buffer on its device already."""
    return _put(aval, sharding, arrays, devices, True, copy, enable_x64=True)


def copy_to(buffer: Any, sharding: Any, always_copy: bool = False) -> Any:
    """Copy a buffer to the devices of `sharding`, or share its memory if it is there and this is allowed.

    (The third way that XLA knows, to donate the source, crashes on CPU in 0.10 to 0.12.)
    """
    semantics = _ALWAYS_COPY if always_copy else _REUSE
    return _copy_many([buffer], [sharding._internal_device_list], [sharding], [semantics])[0]


def to_numpy(buffer: Any) -> np.ndarray:
    """A read-only array of a single-device buffer's value, without a copy where the device is the host.

    The view holds the memory: deleting or donating the buffer leaves it as it is.
    """
    # A shard that XLA cut out of another buffer may carry no aval.
    if buffer.aval is not None and buffer.aval.dtype.isbuiltin == 1:
        try:
            return np.asarray(memoryview(buffer))
        except BufferError:
            pass  # not in the host's memory
    return _to_numpy_in_any_case(buffer)


if hasattr(Buffer, "_to_np_array_did_copy"):

    def _to_numpy_in_any_case(buffer: Any) -> np.ndarray:
        return buffer._to_np_array_did_copy()[0]

else:

    def _to_numpy_in_any_case(buffer: Any) -> np.ndarray:
        return _without_jax(buffer._single_device_array_to_np_array_did_copy)[0]


def address(buffer: Any) -> int:
    """Where the memory of a buffer on one device begins."""
    return int(_without_jax(buffer.unsafe_buffer_pointer))


def to_dlpack(buffer: Any, stream: int | None = None) -> Any:
    """A DLPack capsule of a buffer's memory, which stays alive as long as the capsule or its consumer.

    It is made from a clone, since XLA ends the process when an exported buffer itself is deleted.
    """
    return _jax.buffer_to_dlpack_managed_tensor(buffer.clone(), stream)


def from_dlpack(
    capsule: Any,
    device: Any,
    sharding: Any,
    make_aval: Callable[[tuple[int, ...], np.dtype], Any],
    stream: int | None = None,
    copy: bool = False,
) -> Any:
    """A buffer on `device` of the memory of a DLPack capsule, or of a copy of it.

    Arguments:
        capsule: what `__dlpack__` of the producer returned, in the layout before DLPack 1.0.
        device: the device that holds the memory.
        sharding: the single-device sharding of `device`.
        make_aval: makes the buffer's aval of its shape and dtype.
        stream: the stream that the producer was told of.
        copy: True never shares memory; False does so where the alignment allows it.
    """
    shape, dtype = _type_of_capsule(capsule)
    raw = _without_jax(_jax.dlpack_managed_tensor_to_buffer, capsule, device, stream)
    buffer = raw._rewrap_with_aval_and_sharding(make_aval(shape, dtype), sharding)
    return copy_to(buffer, sharding, always_copy=True).block_until_ready() if copy else buffer


def from_dlpack_of(
    x: Any, device: Any, sharding: Any, make_aval: Callable[[tuple[int, ...], np.dtype], Any], copy: bool
) -> Any:
    """`from_dlpack` of an object with `__dlpack__` whose memory `device` holds; what works on it is waited for."""
    if device.platform == "cpu":
        return from_dlpack(x.__dlpack__(), device, sharding, make_aval, None, copy)
    stream = device.get_stream_for_external_ready_events()
    return from_dlpack(x.__dlpack__(stream=stream), device, sharding, make_aval, stream, copy)


def _tensor_of(capsule: Any) -> Any:
    """The description of a tensor in a capsule, as the specification of DLPack lays it out."""
    import ctypes

    class Tensor(ctypes.Structure):
        _fields_ = [
            ("data", ctypes.c_void_p),
            ("device", ctypes.c_int32 * 2),
            ("rank", ctypes.c_int32),
            ("code", ctypes.c_uint8),
            ("bits", ctypes.c_uint8),
            ("lanes", ctypes.c_uint16),
            ("shape", ctypes.POINTER(ctypes.c_int64)),
            ("strides", ctypes.POINTER(ctypes.c_int64)),
            ("byte_offset", ctypes.c_uint64),
        ]

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    return Tensor.from_address(pointer(capsule, b"dltensor"))


def _type_of_capsule(capsule: Any) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and dtype of a capsule's tensor."""
    import ml_dtypes

    tensor = _tensor_of(capsule)
    shape = tuple(tensor.shape[axis] for axis in range(tensor.rank))
    kinds = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex"}
    eight_bits = ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
    if tensor.bits < 8 or tensor.lanes != 1:
        raise TypeError(
            f"it has elements of {tensor.lanes} times {tensor.bits} bits (type code {tensor.code}), several in "
            "a byte; convert it to a type of whole bytes first"
        )
    if tensor.code == 6:
        name = "bool"
    elif tensor.code in kinds:
        name = f"{kinds[tensor.code]}{tensor.bits}"
    elif 7 <= tensor.code < 7 + len(eight_bits):
        name = "float8_" + eight_bits[tensor.code - 7]
    else:
        raise TypeError(f"DLPack's type code {tensor.code} with {tensor.bits} bits has no dtype here")
    return shape, np.dtype(getattr(ml_dtypes, name, name))


def array_of_capsule(capsule: Any) -> np.ndarray:
    """A read-only view of the host's memory that a capsule describes, of any dtype and strides; keeps the capsule."""
    import ctypes

    shape, dtype = _type_of_capsule(capsule)
    tensor = _tensor_of(capsule)
    if 0 in shape:
        return np.broadcast_to(np.zeros((), dtype), shape)
    if not tensor.strides:
        steps = np.empty(shape, np.bool_).strides
    else:
        steps = tuple(tensor.strides[axis] for axis in range(len(shape)))
    # The memory between the first and the last element: strides may be negative.
    ends = [(size - 1) * step for size, step in zip(shape, steps, strict=True)]
    first = sum(min(end, 0) for end in ends) * dtype.itemsize
    length = (sum(max(end, 0) for end in ends) + 1) * dtype.itemsize - first
    memory: Any = (ctypes.c_char * length).from_address(tensor.data + tensor.byte_offset + first)
    memory.owner = capsule
    strides = tuple(step * dtype.itemsize for step in steps)
    view = np.ndarray(shape, dtype, memory, -first, strides)
    view.flags.writeable = False
    return view


def as_writable_view(array: np.ndarray) -> np.ndarray:
    """A writable view of a contiguous read-only array, for consumers that know no other; it keeps the array."""
    import ctypes

    if array.size == 0:
        return np.empty(array.shape, array.dtype)
    memory: Any = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    memory.owner = array
    return np.ndarray(array.shape, array.dtype, memory)


class _JaxBlocker:
    """A finder that hides the jax package from one thread."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] == "jax" and threading.get_ident() == self.thread:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def _without_jax(function: Callable[..., Any], *arguments: Any) -> Any:
    """A call into XLA that is kept from importing the jax package, which it can do without."""
    if "jax" in sys.modules:
        return function(*arguments)
    blocker = _JaxBlocker()
    try:
        sys.meta_path.insert(0, blocker)
        return function(*arguments)
    finally:
        if blocker in sys.meta_path:  # else an interrupt came first
            sys.meta_path.remove(blocker)


def make_device_assignment(ids: np.ndarray) -> Any:
    """XLA's device assignment of an int array (replicas, partitions)."""
    return _jax.DeviceAssignment.create(np.asarray(ids, np.int32))


def with_backend_flag(options: Any, name: str) -> Any:
    """Compile options with a flag of the backend, of those that stand in a table of their own and not in a field.

    XLA's Python classes cannot set it, so it is added to the serialized form, in which parts that come later
    are merged with those before.
    """
    _ = options.executable_build_options.debug_options  # else what XLA_FLAGS says would be lost
    entry = b"\n" + _sized(name.encode()) + b"\x12\x00"
    flags = b"\xa2\x1f" + _sized(entry)  # DebugOptions.xla_backend_extra_options, field 500
    build = b"\x1a" + _sized(flags)  # ExecutableBuildOptionsProto.debug_options, field 3
    return CompileOptions.ParseFromString(options.SerializeAsString() + b"\x1a" + _sized(build))


def _sized(data: bytes) -> bytes:
    """`data` after its length, as protocol buffers hold it."""
    if len(data) >= 128:
        raise ValueError(f"a part of compile options has {len(data)} bytes, more than 127")
    return bytes((len(data),)) + data


def compile_and_load(
    client: Any, program: Any, devices: Any, options: Any, callbacks: Sequence[Any] = ()
) -> Any:
    """Compile StableHLO text, or a module of `parse_module` where there are Python callbacks."""
    _start()
    if callbacks:
        return client.compile_and_load(program, devices, options, list(callbacks))
    return client.compile_and_load(program, devices, options)


def deserialize(client: Any, data: bytes, devices: Any, options: Any, callbacks: Sequence[Any] = ()) -> Any:
    """Load an executable that `LoadedExecutable.serialize` wrote; it calls `callbacks` by their places."""
    _start()
    if callbacks:
        return client.deserialize_executable(data, devices, options, list(callbacks))
    return client.deserialize_executable(data, devices, options)


_once = threading.Lock()
_lapack_registered = False
_host_routines: list[Callable[[], None]] = []  # of GPU plugins, whose hybrid kernels call LAPACK
_mlir_registry: Any = None


def register_lapack() -> None:
    """Make the LAPACK kernels known to the CPU client, and LAPACK to the hybrid kernels of GPU plugins.

    The first call imports them, the others do nothing.
    """
    global _lapack_registered
    with _once:
        if _lapack_registered:
            return
        from jaxlib import lapack
        from jaxlib.cpu import _lapack

        for initialize in (_lapack.initialize, *_host_routines):
            initialize()  # takes the routines from SciPy; the kernels crash without them
        for platform, targets in lapack.registrations().items():
            for name, function, api_version in targets:
                _jax.register_custom_call_target(name, function, platform, api_version)
        _lapack_registered = True


# What registers kernels with a plugin that was loaded, and what waits for one that was not, by platform.
_plugin_extensions: dict[str, tuple[Any, Any]] = {}
_waiting: dict[str, list[Callable[[Any, Any], None]]] = {}


def make_capsule(function: Any) -> Any:
    """A PyCapsule around a function of a library that `ctypes` loaded."""
    import ctypes

    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(ctypes.cast(function, ctypes.c_void_p), b"xla._CUSTOM_CALL_TARGET", None)


def register_target(name: str, function: Any, platform: str, api_version: int = 1, traits: int = 0) -> None:
    """Make a kernel known to the client of a platform, now or as soon as its plugin is loaded.

    Arguments:
        name: what programs call it by.
        function: a capsule, or capsules by the names of the stages.
        platform: "cpu", "cuda" or "rocm".
        api_version: 1 for XLA's foreign function interface, 0 for custom calls before it.
        traits: bits of the runtime.
    """
    if platform == "cpu":
        _jax.register_custom_call_target(name, function, "cpu", api_version, traits)
        return
    _with_extension(
        platform,
        lambda extension, handle: extension.register_custom_call_target(
            handle, name, function, platform.upper(), api_version, *([traits] if traits else [])
        ),
    )


def register_target_type(name: str, capsules: Any, platform: str) -> None:
    """Make a type of kernels' state known to the client of a platform."""
    if platform == "cpu":
        _jax.register_custom_type(name, capsules)
    else:
        _with_extension(
            platform, lambda extension, handle: extension.register_custom_type(handle, name, capsules)
        )


def register_batch_partitionable(name: str) -> None:
    """Let partitioners cut the calls of a kernel along leading axes, on all platforms."""
    _jax.register_custom_call_as_batch_partitionable(name)
    for platform in ("cuda", "rocm"):
        _with_extension(
            platform, lambda _, handle: _jax.register_custom_call_as_batch_partitionable(name, handle)
        )


def targets_of_cpu() -> set[str]:
    """The names of the kernels that programs for the CPU can call."""
    return set(_jax.custom_call_targets("Host"))


def headers() -> str:
    """The folder of the C++ headers of XLA's foreign function interface."""
    import jaxlib

    return os.path.join(os.path.dirname(os.path.abspath(jaxlib.__file__)), "include")


def _with_extension(platform: str, action: Callable[[Any, Any], None]) -> None:
    if platform in _plugin_extensions:
        action(*_plugin_extensions[platform])
    else:
        _waiting.setdefault(platform, []).append(action)


def register_plugin_kernels(platform: str, package: str, handle: Any) -> None:
    """Make the kernels that a GPU plugin brings (solvers, eigenvalues, random bits) known to its client.

    Arguments:
        platform: "cuda" or "rocm".
        package: the plugin's package, as `jax_plugins.xla_cuda13`; its kernels lie in `jax_cuda13_plugin`.
        handle: what `load_plugin` returned.
    """
    kernels = "jax_" + package.rpartition(".")[2].removeprefix("xla_") + "_plugin"
    if importlib.util.find_spec(kernels) is None:
        return
    extension = importlib.import_module(f"{kernels}.{platform}_plugin_extension")
    # What Python callbacks are called by; the types first, which the handlers refer to.
    for name, identity in getattr(extension, "ffi_types", dict)().items():
        extension.register_custom_type(handle, name, identity)
    for target, function in getattr(extension, "ffi_handlers", dict)().items():
        extension.register_custom_call_target(handle, target, function, platform.upper(), 1)
    for name in ("_blas", "_hybrid", "_linalg", "_prng", "_rnn", "_solver", "_sparse", "_triton"):
        try:
            module = importlib.import_module(f"{kernels}.{name}")
        except ImportError:
            continue
        if hasattr(module, "initialize"):
            _host_routines.append(module.initialize)
        for target, function in getattr(module, "registrations", dict)().items():
            extension.register_custom_call_target(handle, target, function, platform.upper(), 1)
    _plugin_extensions[platform] = (extension, handle)
    for action in _waiting.pop(platform, []):
        action(extension, handle)


def cudnn_version() -> int | None:
    """The version of cuDNN that NVIDIA's plugin found, as 91002 for 9.10.2; None without plugin or cuDNN."""
    for kernels in ("jax_cuda13_plugin", "jax_cuda12_plugin"):
        try:
            return int(importlib.import_module(f"{kernels}._versions").cudnn_get_version())
        except (ImportError, AttributeError, RuntimeError):
            continue
    return None


def parse_module(text: str) -> Any:
    """Parse StableHLO text to an MLIR module, which programs with Python callbacks need."""
    from jaxlib.mlir import ir

    context = mlir_context()
    with context:
        return ir.Module.parse(text, context)


def pretty_module(text: str, locations: bool) -> str:
    """StableHLO text in the short form that MLIR prints for people, with the places of operations if wanted."""
    operation = parse_module(text).operation
    printed = str(operation.get_asm(enable_debug_info=True, pretty_debug_info=False)) if locations else str(operation)
    return printed if printed.endswith("\n") else printed + "\n"


def propagate_shardings(text: str) -> str:
    """A StableHLO module in which the compiler has chosen how every value is sharded over the mesh."""
    from jaxlib.mlir.passmanager import PassManager

    module = parse_module(text)
    with module.context:
        PassManager.parse("builtin.module(sdy-propagation-pipeline)").run(module.operation)
    return str(module)


# The version of StableHLO that exported programs are written in: that of the oldest engine purax runs on.
_PORTABLE_VERSION = "1.17.0"


def to_portable(text: str) -> bytes:
    """A StableHLO module in the form that later engines read too: StableHLO's versioned bytecode."""
    return _jax.mlir.serialize_portable_artifact(parse_module(text), _PORTABLE_VERSION)


def from_portable(data: bytes) -> Any:
    """The MLIR module that `to_portable` wrote; ValueError if these bytes are none."""
    try:
        return _jax.mlir.deserialize_portable_artifact(data, mlir_context())
    except Exception as error:
        raise ValueError(f"XLA cannot read the program: {error}") from None


def types_of_main(data: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The types of arguments and results of a portable module."""
    from jaxlib.mlir import ir

    module = from_portable(data)
    with module.context:
        main = next(op for op in module.body.operations if op.name.value == "main")
        found = ir.FunctionType(main.attributes["function_type"].value)
        return tuple(str(t) for t in found.inputs), tuple(str(t) for t in found.results)


def refined(data: bytes, in_types: Sequence[str]) -> bytes:
    """A portable module with dynamic dimensions, for arguments of fixed shapes; ValueError if it is not for them."""
    from jaxlib.mlir import ir

    module = from_portable(data)
    with module.context:
        functions = {op.name.value: op for op in module.body.operations}
        main = functions["main"]
        type_ = ir.FunctionType(main.attributes["function_type"].value)
        name = "main_of_any_size"
        while name in functions:
            name += "_"
        main.attributes["sym_name"] = ir.StringAttr.get(name)
        main.attributes["sym_visibility"] = ir.StringAttr.get("private")
        takes, gives = [str(t) for t in type_.inputs], [str(t) for t in type_.results]
        if len(takes) != len(in_types):
            raise ValueError(f"the program takes {len(takes)} arguments, and is given {len(in_types)}")
        lines = [
            f'%c{i} = "stablehlo.convert"(%a{i}) : ({given}) -> {taken}'
            for i, (given, taken) in enumerate(zip(in_types, takes, strict=True))
        ]
        passed = ", ".join(f"%c{i}" for i in range(len(takes)))
        results = ", ".join(f"%r#{i}" for i in range(len(gives))) if len(gives) > 1 else "%r"
        start = f"%r:{len(gives)} = " if len(gives) > 1 else "%r = " if gives else ""
        types = f"({', '.join(takes)}) -> ({', '.join(gives)})"
        lines += [f'{start}"func.call"({passed}) {{callee = @{name}}} : {types}']
        lines += [f'"func.return"({results if gives else ""}) : ({", ".join(gives)}) -> ()']
        header = ", ".join(f"%a{i}: {given}" for i, given in enumerate(in_types))
        body = "\n".join(lines)
        text = f"func.func public @main({header}) -> ({', '.join(gives)}) {{\n{body}\n}}"
        whole = "\n".join([text, *(str(op) for op in module.body.operations)])
        whole = str(ir.Module.parse(f"module {{\n{whole}\n}}"))
    try:
        made = _jax.mlir.refine_polymorphic_shapes(whole.encode(), True, True)
    except Exception as error:
        raise ValueError(_refinement_problem(str(error))) from None
    with module.context:
        return to_portable(str(ir.Module.parse(made)))


def _refinement_problem(text: str) -> str:
    """What a failed refinement says: the first error, without the places in a text that nobody sees."""
    found = re.search(r"error: (.*)", text)
    return found[1] if found is not None else text


def functions_of(module: Any) -> list[tuple[str, str]]:
    """The functions of an MLIR module: the name and the text of each."""
    return [(operation.name.value, str(operation)) for operation in module.body.operations]


def hlo_computation(text: str) -> Any:
    """A StableHLO module as HLO, before any optimization."""
    return _jax.mlir.mlir_module_to_xla_computation(text, use_tuple_args=False, return_tuple=False)


def cost_of(text: str, client: Any) -> dict[str, Any]:
    """What a client estimates one call of a StableHLO module to cost; nothing is compiled."""
    return _jax.hlo_module_cost_analysis(client, hlo_computation(text).get_hlo_module())


def function_text(name: str, in_types: Sequence[str], out_types: Sequence[str], body: Callable) -> str:
    """The text of a private function whose operations `body(context, arguments)` emits with MLIR's bindings."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import func

    context = mlir_context()
    with context, ir.Location.unknown(context):
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            kind = ir.FunctionType.get(
                [ir.Type.parse(t) for t in in_types], [ir.Type.parse(t) for t in out_types]
            )
            operation: Any = func.FuncOp  # jaxlib completes the class that its stubs show
            function = operation(name, kind, visibility="private")
            block = function.add_entry_block()
        with ir.InsertionPoint(block):
            func.ReturnOp(body(context, list(block.arguments)))
        module.operation.verify()
        return str(function)


def mlir() -> Any:
    """MLIR's bindings."""
    from jaxlib.mlir import ir

    return ir


def stablehlo_dialect() -> Any:
    """The bindings of StableHLO's operations."""
    from jaxlib.mlir.dialects import stablehlo

    return stablehlo


def mlir_tools() -> Any:
    """What turns modules into portable bytes and back."""
    return _jax.mlir


def mlir_registry() -> Any:
    """The dialects that every MLIR context here knows."""
    mlir_context()
    return _mlir_registry


def mlir_context() -> Any:
    """A new MLIR context that knows StableHLO."""
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, sdy, stablehlo

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
        sdy.register_dialect(context)
    return context


def verify_triton(text: str) -> None:
    """Raises unless a text is a module of Triton's dialect."""
    from jaxlib.mlir import ir
    from jaxlib.triton import dialect

    context = mlir_context()
    dialect.register_dialect(context)
    with context:
        ir.Module.parse(text).operation.verify()


def profiler() -> Any:
    """XLA's profiler, loaded when it is first asked for."""
    from jaxlib import _profiler  # type: ignore[attr-defined]

    return _profiler


def profile_data() -> Any:
    """The classes that read what the profiler wrote."""
    from jaxlib import _profile_data  # type: ignore[attr-defined]

    return _profile_data
