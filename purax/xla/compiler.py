"""StableHLO text to executables; a program is compiled once, whoever asks for it.

Three steps: the executables of this process by the hash of (text, devices, options), then the folder of
`disk_cache`, then the compiler. Threads that ask for the same program at once wait for the first of them. Where a
program is already known before it is lowered (`program_records`), the first two steps do without its text.
"""

import hashlib
import itertools
import logging
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from purax.config import config
from purax.core.memories import MemorySpace
from purax.core.phases import measured
from purax.sharding.shardings import in_memory, single_device_sharding
from purax.xla import (
    disk_cache,
    interruptible_calls,
    isolated,
    jaxlib_api,
    long_programs,
    native,
    plugins,
    program_records,
)
from purax.xla.execute import EffectfulExecutable, Executable, engine_failure
from purax.xla.processes import group

logger = logging.getLogger("purax")

# What the programs may take that are kept for functions which are made anew and give the same program. A function that
# lives keeps its own. XLA does not say how much a program takes on the CPU; the memory of a process was measured
# to grow by this for a program, and for each byte of its text, from programs of 3 operations to such of 300.
MEMORY_LIMIT_BYTES = 128 << 20
_MEMORY_OF_PROGRAM, _MEMORY_PER_BYTE_OF_TEXT = 1 << 18, 22

Options = Sequence[tuple[str, Any]]
_KEPT_CALL = 'inlineable = "false"'  # how a text says that a call must stay one
_LINE = re.compile(r'\("(?:[^"\\]|\\.)*":\d+:0\)\)$', re.MULTILINE)  # of the user's code, at the end of an operation
_PHASES = ("parse", "compile", "serialize", "write", "read", "deserialize")


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
        self.__init__()  # type: ignore[misc]  # a subclass would have the same fields


stats = Statistics()


@dataclass
class _Entry:
    """A loaded program, and its executables by the avals and shardings that they give their results.

    `disk_key` is where it is kept on disk, if it is.
    """

    loaded: Any
    size: int
    pace: str
    disk_key: bytes | None
    executables: dict[Any, Executable] = field(default_factory=dict)


_lock = threading.Lock()
# The digest of a program, and its devices, which the key keeps alive.
_Key = tuple[bytes, tuple[Any, ...]]
_entries: OrderedDict[_Key, _Entry] = OrderedDict()
_entries_size = 0
_in_flight: dict[_Key, threading.Lock] = {}


def compile_program(
    text: str,
    out_avals: Sequence[Any],
    devices: Sequence[Any],
    *,
    donated: Sequence[int] = (),
    options: Options = (),
    callbacks: Sequence[Callable[..., Any]] = (),
    effects: str = "",
    out_shardings: Sequence[Any] | Callable[[Sequence[Any]], Sequence[Any]] | None = None,
    record_as: bytes | None = None,
    stored: Sequence[Any] = (),
) -> Executable:
    """Compile a program, or find it compiled.

    Arguments:
        text: a StableHLO module, whose `@main` takes and returns the arrays. An argument whose memory the
            program may take over carries `{tf.aliasing_output = i : i32}` (it becomes result i, which must
            have its shape and dtype) or `{jax.buffer_donor = true}` (the compiler may find a use for it).
        out_avals: per result an object with `shape`, `dtype`, `weak_type`.
        devices: the devices to run on; more than one means one SPMD program over all of them.
        donated: the positions of the arguments marked as above; a call deletes their buffers.
        options: pairs of an `xla_...` flag and its value; also `num_replicas`, `num_partitions` and
            `use_shardy_partitioner` for several devices.
        callbacks: Python functions that the text calls by index (`xla_ffi_python_cpu_callback`); a program
            with callbacks is not shared. On disk it is kept without them, and loaded with those given.
        effects: "ordered" or "unordered" if the callbacks, or kernels of the user's, are there for their effects.
        out_shardings: per result its sharding; needed for several devices. A function gets what the compiler chose.
        record_as: a key of `program_records`, under which `load_recorded` finds the program from then on.
        stored: for the record: types of arrays that lie in memory while the program runs.

    Returns:
        The executable; the same one for the same arguments.

    >>> from purax.xla import client
    >>> from purax.xla.execute import BufferType, to_numpy
    >>> text = '''func.func public @main() -> tensor<i32> {
    ...   %x = stablehlo.constant dense<7> : tensor<i32>
    ...   return %x : tensor<i32> }'''
    >>> seven = compile_program(text, [BufferType((), np.dtype("int32"))], client.devices("cpu")[:1])
    >>> to_numpy(seven([])[0])
    array(7, dtype=int32)
    """
    devices = tuple(devices)
    options = (*options, *_options_of_flags())
    if config.dump_ir_to is not None and "stablehlo" in config.dump_ir_modes:
        _dump(text)
    processes = group.spans_processes(devices) if len(devices) > 1 else []
    if processes:
        places = [device.id for device in devices]
        group.current.agree(_name(text), f"{without_lines(text)}\n{places} {sorted(options)}", processes)
    if out_shardings is None:
        if len(devices) > 1:
            raise ValueError(f"a program on {len(devices)} devices needs out_shardings, one per result")
        out_shardings = places_on(devices[0], out_avals)
    if callbacks or effects:
        loaded, _ = _load_or_compile(text, devices, options, callbacks)
        if callable(out_shardings):
            out_shardings = out_shardings(loaded.get_output_shardings())
        if effects:
            return EffectfulExecutable(
                loaded, out_avals, out_shardings, devices, donated, ordered=effects == "ordered"
            )
        return Executable(loaded, out_avals, out_shardings, devices, donated, long_programs.LONG)
    key = _program_key(text, devices, options)
    entry = _find(key) or _build_once(key, lambda: _build(text, devices, options))
    assert entry is not None
    if record_as is not None and entry.disk_key is not None:
        program_records.write(
            record_as,
            program_records.Record(
                program=key[0],
                disk_key=entry.disk_key,
                options=options,
                length=len(text),
                keeps_calls=_KEPT_CALL in text,
                needs_lapack=_needs_lapack(text),
                calls_kernels=bool(native.registered(text)),
                pace=entry.pace,
                stored=program_records.largest(stored),
            ),
        )
    return _executable_of(entry, out_avals, devices, donated, out_shardings)


def places_on(device: Any, avals: Sequence[Any]) -> tuple[Any, ...]:
    """The shardings of results of certain types on a device, each in the memory that its type says."""
    own = single_device_sharding(device)
    return tuple(in_memory(own, getattr(aval, "memory_space", MemorySpace.Device)) for aval in avals)


def load_recorded(
    record: program_records.Record,
    name: str,
    out_avals: Sequence[Any],
    device: Any,
    donated: Sequence[int] = (),
) -> Executable | None:
    """The executable of a program that has a record, without its text; None if it is not there any more.

    Arguments:
        record: the record.
        name: what the program is called, for the log.
        out_avals, donated: as for `compile_program`.
        device: the device to run on.
    """
    devices = (device,)
    if record.calls_kernels and native.build() is None:
        return None  # they are there, as the key says, but could not be loaded this time
    key = record.program, devices
    entry = _find(key) or _build_once(key, lambda: _build_recorded(record, name, devices))
    if entry is None:
        return None
    return _executable_of(
        entry, out_avals, devices, donated, places_on(device, out_avals)
    )


def _executable_of(
    entry: _Entry,
    out_avals: Sequence[Any],
    devices: tuple[Any, ...],
    donated: Sequence[int],
    out_shardings: Sequence[Any] | Callable[[Sequence[Any]], Sequence[Any]],
) -> Executable:
    """A loaded program with the types that its results are to have."""
    if callable(out_shardings):
        out_shardings = out_shardings(entry.loaded.get_output_shardings())
    signature = (
        tuple((aval.shape, aval.dtype, aval.weak_type) for aval in out_avals),
        tuple(out_shardings),
        tuple(donated),
    )
    executable = entry.executables.get(signature)
    if executable is None:
        made = Executable(entry.loaded, out_avals, out_shardings, devices, donated, entry.pace)
        executable = entry.executables.setdefault(signature, made)
    return executable


def _options_of_flags() -> list[tuple[str, Any]]:
    """The options that `config` asks for and a program does not have by itself."""
    found: list[tuple[str, Any]] = []
    if config.disable_most_optimizations:
        found += [("xla_backend_optimization_level", 0), ("xla_llvm_disable_expensive_passes", True)]
    for name, default in _EFFORTS.items():
        if (value := getattr(config, name)) != default:
            found.append((name, value))
    return found


_EFFORTS = {
    "optimization_level": "UNKNOWN",
    "memory_fitting_level": "O2",
    "exec_time_optimization_effort": 0.0,
    "memory_fitting_effort": 0.0,
}
_LEVELS = {"UNKNOWN": 0, "O0": 9, "O1": 19, "O2": 29, "O3": 39}  # as XLA numbers them
_dumped = itertools.count()


def _dump(text: str) -> None:
    """Writes a program to the folder that `config.dump_ir_to` names."""
    folder = config.dump_ir_to
    if folder == "sponge":
        folder = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR", ".")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, f"purax_ir{next(_dumped)}_{_name(text)}_compile.mlir"), "w") as file:
        file.write(text)


def _program_key(text: str, devices: tuple[Any, ...], options: Options) -> _Key:
    digest = hashlib.sha256(without_lines(text).encode())
    digest.update(repr(sorted(options)).encode())
    return digest.digest(), tuple(devices)


def without_lines(text: str) -> str:
    """A program without the user's lines: it is the same program when these move, and is found again.

    >>> without_lines('%1 = "stablehlo.sine"(%0) : (t) -> t loc("wave/sin"("train.py":12:0))')
    '%1 = "stablehlo.sine"(%0) : (t) -> t loc("wave/sin")'
    """
    return _LINE.sub(")", text)


def _find(key: _Key) -> _Entry | None:
    with _lock:
        entry = _entries.get(key)
        if entry is not None:
            _entries.move_to_end(key)
            stats.memory_hits += 1
        return entry


def _build_once(key: _Key, build: Callable[[], _Entry | None]) -> _Entry | None:
    """What `build` makes, kept under a key; only one thread at a time makes it."""
    with _lock:
        turn = _in_flight.setdefault(key, threading.Lock())
    with turn:
        entry = _find(key)
        if entry is not None:
            return entry
        try:
            entry = build()
            if entry is not None:
                _keep(key, entry)
        finally:
            with _lock:
                _in_flight.pop(key, None)
        return entry


def _build(text: str, devices: tuple[Any, ...], options: Options) -> _Entry:
    loaded, disk_key = _load_or_compile(text, devices, options)
    pace = long_programs.pace_of(loaded, text, devices[0].platform)
    return _Entry(loaded, _memory_of(loaded, len(text)), pace, disk_key)


def _build_recorded(record: program_records.Record, name: str, devices: tuple[Any, ...]) -> _Entry | None:
    if record.needs_lapack:
        need("lapack")
    options = _engine_options(record.keeps_calls, devices, record.options)
    loaded = _load(record.disk_key, name, devices, options)
    if loaded is None:
        return None
    return _Entry(loaded, _memory_of(loaded, record.length), record.pace, record.disk_key)


def _memory_of(loaded: Any, length: int) -> int:
    """The bytes that a compiled program with a text of some length takes, as far as one can tell."""
    try:
        code = loaded.size_of_generated_code_in_bytes()
    except jaxlib_api.EngineError:  # an engine that does not know it
        code = 0
    return max(code, _MEMORY_OF_PROGRAM + _MEMORY_PER_BYTE_OF_TEXT * length)


def _keep(key: _Key, entry: _Entry) -> None:
    global _entries_size
    with _lock:
        _entries[key] = entry
        _entries_size += entry.size
        while _entries_size > MEMORY_LIMIT_BYTES and len(_entries) > 1:
            _, oldest = _entries.popitem(last=False)
            _entries_size -= oldest.size


def clear_memory() -> None:
    """Forget all executables of this process; those that somebody holds stay alive."""
    global _entries_size
    with _lock:
        _entries.clear()
        _entries_size = 0


def _count(phase: str, seconds: float, event: str | None = None) -> None:
    with _lock:
        stats.seconds[phase] += seconds
        if event is not None:
            setattr(stats, event, getattr(stats, event) + 1)


def _load_or_compile(
    text: str, devices: tuple[Any, ...], options: Options, callbacks: Sequence[Callable[..., Any]] = ()
) -> tuple[Any, bytes | None]:
    """The program, and its key on disk if it is there."""
    keeps_calls = _KEPT_CALL in text
    engine_options = _engine_options(keeps_calls, devices, options)
    if disk_cache.folder() is None or (callbacks and devices[0].platform != "cpu"):
        return _compile(text, devices, engine_options, callbacks)[0], None
    # A program on one device is stored without its place, so that every device of the kind finds it.
    placeless = _engine_options(keeps_calls, devices, options, placed=len(devices) > 1)
    key = disk_cache.make_key(without_lines(text), devices, placeless)
    _provide_kernels(text)
    loaded = _load(key, _name(text), devices, engine_options, callbacks)
    if loaded is None:
        start = time.perf_counter()
        loaded, data = _compile(text, devices, engine_options, callbacks)
        took_long = time.perf_counter() - start >= config.persistent_cache_min_compile_time_secs
        if not (took_long and _store(key, loaded, data)):
            return loaded, None
    return loaded, key


def machine_code(text: str, device: Any, options: Options) -> bytes:
    """A program for one device as bytes. It is compiled anew, since one that was loaded from disk has no code to give.

    Arguments:
        text: the program, without callbacks.
        device: the device.
        options: as for `compile_program`.
    """
    loaded, data = _compile(text, (device,), _engine_options(_KEPT_CALL in text, (device,), options))
    return data or loaded.serialize()


def load_machine_code(code: bytes, text: str, device: Any, options: Options) -> Any:
    """What `machine_code` made, loaded; `text` and `options` are those that it was made of."""
    _provide_kernels(text)
    return jaxlib_api.deserialize(
        device.client,
        code,
        jaxlib_api.DeviceList((device,)),
        _engine_options(_KEPT_CALL in text, (device,), options),
    )


@measured("loading")
def _load(
    key: bytes,
    name: str,
    devices: tuple[Any, ...],
    engine_options: Any,
    callbacks: Sequence[Callable[..., Any]] = (),
) -> Any:
    """The program from disk, or None. The kernels that it calls are known to XLA."""
    start = time.perf_counter()
    data = disk_cache.read(key)
    _count("read", time.perf_counter() - start)
    if data is None:
        return None
    start = time.perf_counter()
    try:
        loaded = interruptible_calls.run_apart(
            jaxlib_api.deserialize,
            devices[0].client,
            data,
            jaxlib_api.DeviceList(devices),
            engine_options,
            callbacks,
        )
    except (jaxlib_api.EngineError, MemoryError) as error:
        logger.debug("a compiled program on disk cannot be loaded and is compiled again: %s", error)
        disk_cache.remove(key)
        return None
    seconds = time.perf_counter() - start
    _count("deserialize", seconds, "disk_hits")
    if config.log_compiles:
        logger.warning("loaded %s for %s from disk in %.3f s", name, devices[0].platform, seconds)
    return loaded


@measured("storing")
def _store(key: bytes, loaded: Any, data: bytes | None) -> bool:
    """Writes a program to disk; whether it is there now."""
    start = time.perf_counter()
    try:
        data = data or loaded.serialize()
    except (jaxlib_api.EngineError, MemoryError) as error:
        logger.debug("a compiled program cannot be kept on disk: %s", error)
        return False
    middle = time.perf_counter()
    _count("serialize", middle - start)
    if not disk_cache.write(key, data):
        return False
    _count("write", time.perf_counter() - middle, "disk_writes")
    return True


@measured("XLA")
def _compile(
    text: str,
    devices: tuple[Any, ...],
    engine_options: Any,
    callbacks: Sequence[Callable[..., Any]] = (),
) -> tuple[Any, bytes | None]:
    """The program, and its serialized form if it was compiled elsewhere: one that was loaded cannot make its own."""
    _provide_kernels(text)
    start = time.perf_counter()
    device_list = jaxlib_api.DeviceList(devices)
    if isolated.compiles(text, devices):
        data = isolated.compile_program(text, engine_options, _needs_lapack(text), len(callbacks))
        try:
            loaded = interruptible_calls.run_apart(
                jaxlib_api.deserialize, devices[0].client, data, device_list, engine_options, callbacks
            )
        except jaxlib_api.EngineError as error:
            raise engine_failure(error) from None
        _count("compile", time.perf_counter() - start, "compiles")
        return loaded, data
    program = jaxlib_api.parse_module(text) if callbacks else text
    middle = time.perf_counter()
    _count("parse", middle - start)
    try:
        loaded = interruptible_calls.run_apart(
            jaxlib_api.compile_and_load, devices[0].client, program, device_list, engine_options, callbacks
        )
    except jaxlib_api.EngineError as error:
        raise engine_failure(error) from None
    seconds = time.perf_counter() - middle
    _count("compile", seconds, "compiles")
    if config.log_compiles:
        logger.warning("compiled %s for %s in %.3f s", _name(text), devices[0].platform, seconds)
    return loaded, None


def _name(text: str) -> str:
    """What a program calls itself."""
    head, _, rest = text[:400].partition("@")
    return rest.split(None, 1)[0].partition("(")[0] if head.strip() == "module" else "a program"


def _engine_options(
    keeps_calls: bool, devices: tuple[Any, ...], options: Options, placed: bool = True
) -> Any:
    """XLA's compile options; flags that are not fields of it are passed on by name."""
    made = jaxlib_api.CompileOptions()
    build = made.executable_build_options
    flags = dict(options)
    replicas = flags.pop("num_replicas", 1)
    partitions = flags.pop("num_partitions", len(devices) // replicas)
    use_shardy = bool(flags.pop("use_shardy_partitioner", True))
    if replicas * partitions != len(devices):
        raise ValueError(
            f"{replicas} replicas of {partitions} partitions need {replicas * partitions} devices, "
            f"not {len(devices)}"
        )
    made.num_replicas = build.num_replicas = replicas
    made.num_partitions = build.num_partitions = partitions
    free_outputs = flags.pop("free_outputs", None)
    for name in _EFFORTS:
        if name in flags:
            value = flags.pop(name)
            setattr(build, name, _LEVELS[value] if isinstance(value, str) else value)
    if partitions > 1 or free_outputs is not None:
        build.use_spmd_partitioning = True
        build.use_shardy_partitioner = use_shardy
        build.allow_spmd_sharding_propagation_to_output = list(free_outputs or (True,))
    if placed:
        ids = np.array([device.id for device in devices], np.int32).reshape(replicas, partitions)
        made.device_assignment = jaxlib_api.make_device_assignment(ids)
    if devices[0].platform == "gpu":
        folder = plugins.cuda_folder()
        if folder is not None:
            build.debug_options.xla_gpu_cuda_data_dir = folder
    if flags:
        made.env_option_overrides = list(flags.items())
    if devices[0].platform == "cpu" and keeps_calls:
        # XLA makes a copy of a function for each call of it; thus it does so after most of its work on it.
        made = jaxlib_api.with_backend_flag(made, "xla_cpu_flatten_after_fusion")
    return made


def need(kernels: str) -> None:
    """Make a family of kernels known to XLA before a program that calls them is compiled.

    Arguments:
        kernels: "lapack". Programs whose text names such a kernel do this by themselves.
    """
    if kernels != "lapack":
        raise ValueError(f"there are no kernels called {kernels!r}; there is 'lapack'")
    jaxlib_api.register_lapack()


def _needs_lapack(text: str) -> bool:
    """Whether kernels take routines of LAPACK: the CPU's, and those of a GPU that work on the host (`cuhybrid_eig`)."""
    return "lapack_" in text or "hybrid_" in text or "tridiagonal_solve_perturbed" in text


def _provide_kernels(text: str) -> None:
    if _needs_lapack(text):
        need("lapack")


def _renew_locks() -> None:
    """Another thread may have held the locks when the process was copied; they would never be released."""
    global _lock
    _lock = threading.Lock()
    _in_flight.clear()


os.register_at_fork(after_in_child=_renew_locks)
