"""StableHLO text to executables; a program is compiled once, whoever asks for it.

Three steps: the executables of this process by the hash of (text, devices, options), then the folder of
`disk_cache`, then the compiler. Threads that ask for the same program wait for the first of them.
"""

import functools
import hashlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from purax.config import config
from purax.xla import disk_cache, door
from purax.xla.execute import Executable
from purax.xla.sharding import SingleDeviceSharding

logger = logging.getLogger("purax")

MEMORY_LIMIT_PROGRAMS = 4096
MEMORY_LIMIT_BYTES = 1 << 30  # of program text, the one measure of size that is free to take


@dataclass
class Statistics:
    """What the compiler did so far: how often, and the seconds spent in each phase."""

    compiles: int = 0
    memory_hits: int = 0
    disk_hits: int = 0
    disk_writes: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_PHASES, 0.0))

    def reset(self) -> None:
        """Start counting at zero."""
        self.__init__()


_PHASES = ("compile", "serialize", "write", "read", "deserialize")
stats = Statistics()


@dataclass
class _Entry:
    loaded: Any
    size: int
    executables: dict[Any, Executable] = field(default_factory=dict)


_lock = threading.Lock()
_entries: OrderedDict[bytes, _Entry] = OrderedDict()
_entries_bytes = 0
_in_flight: dict[bytes, threading.Lock] = {}

# Options that are fields of the engine's compile options; everything else is an `xla_...` flag.
_PARTITION_OPTIONS = ("num_replicas", "num_partitions")


def compile_program(
    text: str,
    out_avals: Sequence[Any],
    devices: Sequence[Any],
    *,
    donated: Sequence[int] = (),
    options: Sequence[tuple[str, Any]] = (),
    callbacks: Sequence[Callable[..., Any]] = (),
    out_shardings: Sequence[Any] | None = None,
) -> Executable:
    """Compile a program, or find it compiled.

    Arguments:
        text: a StableHLO module, whose `@main` takes and returns the arrays. An argument whose memory the program
            may take over carries `{tf.aliasing_output = i : i32}` (it becomes result i, which must have its shape
            and dtype) or `{jax.buffer_donor = true}` (the compiler finds a use for it).
        out_avals: per result an object with `shape`, `dtype`, `weak_type`.
        devices: the devices to run on; more than one means one SPMD program over all of them.
        donated: the positions of the arguments marked as above; their buffers are deleted by a call.
        options: pairs of an `xla_...` flag and its value; also `num_replicas` and `num_partitions`.
        callbacks: Python functions that the text calls by index (`xla_ffi_python_cpu_callback`); a program with
            callbacks is neither shared nor kept on disk.
        out_shardings: per result its sharding; only for several devices.

    Returns:
        The executable; the same one for the same arguments.

    >>> from purax.xla import client
    >>> from purax.xla.execute import BufferType
    >>> text = "func.func public @main() -> tensor<i32> { %x = stablehlo.constant dense<7> : tensor<i32> return %x : tensor<i32> }"
    >>> seven = compile_program(text, [BufferType((), np.dtype("int32"))], client.devices("cpu")[:1])
    >>> int(seven([])[0]._single_device_array_to_np_array_did_copy()[0])
    7
    """
    devices = tuple(devices)
    options = tuple(options)
    if out_shardings is None:
        out_shardings = (SingleDeviceSharding(devices[0]),) * len(out_avals)
    if callbacks:
        loaded = _compile(text, devices, options, callbacks)
        return Executable(loaded, out_avals, out_shardings, devices, donated)
    key = _program_key(text, devices, options)
    signature = (
        tuple((aval.shape, aval.dtype, aval.weak_type) for aval in out_avals),
        tuple(out_shardings),
        tuple(donated),
    )
    entry = _find(key) or _build_once(key, text, devices, options)
    executable = entry.executables.get(signature)
    if executable is None:
        made = Executable(entry.loaded, out_avals, out_shardings, devices, donated)
        executable = entry.executables.setdefault(signature, made)
    return executable


def _program_key(text: str, devices: tuple[Any, ...], options: tuple[tuple[str, Any], ...]) -> bytes:
    digest = hashlib.sha256(text.encode())
    digest.update(repr((sorted(options), [(id(device.client), device.id) for device in devices])).encode())
    return digest.digest()


def _find(key: bytes) -> _Entry | None:
    with _lock:
        entry = _entries.get(key)
        if entry is not None:
            _entries.move_to_end(key)
            stats.memory_hits += 1
        return entry


def _build_once(key: bytes, text: str, devices: tuple[Any, ...], options: tuple[tuple[str, Any], ...]) -> _Entry:
    with _lock:
        turn = _in_flight.setdefault(key, threading.Lock())
    with turn:
        entry = _find(key)
        if entry is not None:
            return entry
        try:
            entry = _Entry(_load_or_compile(text, devices, options), len(text))
            _keep(key, entry)
        finally:
            with _lock:
                _in_flight.pop(key, None)
        return entry


def _keep(key: bytes, entry: _Entry) -> None:
    global _entries_bytes
    with _lock:
        _entries[key] = entry
        _entries_bytes += entry.size
        while len(_entries) > 1 and (len(_entries) > MEMORY_LIMIT_PROGRAMS or _entries_bytes > MEMORY_LIMIT_BYTES):
            _, oldest = _entries.popitem(last=False)
            _entries_bytes -= oldest.size


def clear_memory() -> None:
    """Forget all executables of this process; those that somebody holds stay alive."""
    global _entries_bytes
    with _lock:
        _entries.clear()
        _entries_bytes = 0


def _load_or_compile(text: str, devices: tuple[Any, ...], options: tuple[tuple[str, Any], ...]) -> Any:
    if disk_cache.folder() is None:
        return _compile(text, devices, options)
    engine_options = _engine_options(devices, options)
    key = disk_cache.make_key(hashlib.sha256(text.encode()).digest(), devices, engine_options)
    start = time.perf_counter()
    data = disk_cache.read(key)
    stats.seconds["read"] += time.perf_counter() - start
    if data is not None:
        _provide_kernels(text)
        start = time.perf_counter()
        try:
            loaded = door.deserialize(devices[0].client, data, door.DeviceList(devices), engine_options)
        except door.EngineError as error:
            logger.debug("a compiled program on disk could not be loaded, compiling it again: %s", error)
            disk_cache.remove(key)
        else:
            stats.seconds["deserialize"] += time.perf_counter() - start
            stats.disk_hits += 1
            return loaded
    start = time.perf_counter()
    loaded = _compile(text, devices, options)
    if time.perf_counter() - start >= config.persistent_cache_min_compile_time_secs:
        _store(key, loaded)
    return loaded


def _store(key: bytes, loaded: Any) -> None:
    start = time.perf_counter()
    try:
        data = loaded.serialize()
    except door.EngineError as error:
        logger.debug("a compiled program cannot be kept on disk: %s", error)
        return
    middle = time.perf_counter()
    stats.seconds["serialize"] += middle - start
    if disk_cache.write(key, data):
        stats.disk_writes += 1
    stats.seconds["write"] += time.perf_counter() - middle


def _compile(
    text: str,
    devices: tuple[Any, ...],
    options: tuple[tuple[str, Any], ...],
    callbacks: Sequence[Callable[..., Any]] = (),
) -> Any:
    _provide_kernels(text)
    engine_options = _engine_options(devices, options)
    program = door.parse_module(text) if callbacks else text
    start = time.perf_counter()
    loaded = door.compile_and_load(
        devices[0].client, program, door.DeviceList(devices), engine_options, callbacks
    )
    seconds = time.perf_counter() - start
    with _lock:
        stats.compiles += 1
        stats.seconds["compile"] += seconds
    if config.log_compiles:
        logger.warning("compiled %s for %s in %.3f s", _module_name(text), devices[0].platform, seconds)
    return loaded


def _module_name(text: str) -> str:
    head = text[:200].lstrip()
    if head.startswith("module @"):
        return head[len("module @") :].split(None, 1)[0]
    return "a program"


def _engine_options(devices: tuple[Any, ...], options: tuple[tuple[str, Any], ...]) -> Any:
    """The engine's compile options; flags that are not fields are passed on by name."""
    made = door.CompileOptions()
    given = dict(options)
    replicas = given.pop("num_replicas", 1)
    partitions = given.pop("num_partitions", len(devices) // replicas)
    if replicas * partitions != len(devices):
        raise ValueError(f"{replicas} replicas of {partitions} partitions need as many devices, got {len(devices)}")
    made.num_replicas = replicas
    made.num_partitions = partitions
    build = made.executable_build_options
    build.num_replicas = replicas
    build.num_partitions = partitions
    if partitions > 1:
        build.use_spmd_partitioning = True
        build.use_shardy_partitioner = bool(given.pop("use_shardy_partitioner", True))
    ids = np.array([device.id for device in devices], np.int32).reshape(replicas, partitions)
    made.device_assignment = door.make_device_assignment(ids)
    if given:
        made.env_option_overrides = list(given.items())
    return made


@functools.cache
def need(kernels: str) -> None:
    """Make a family of kernels known to the engine: "lapack"."""
    if kernels != "lapack":
        raise ValueError(f"there are no kernels called {kernels!r}; there is 'lapack'")
    door.register_lapack()


def _provide_kernels(text: str) -> None:
    if "@lapack_" in text or "@blas_" in text:
        need("lapack")
