"""Platforms, clients and devices.

A client, XLA's connection to the devices of one platform, is made when its devices are first asked
for. Plugins (CUDA, TPU, and others under the name `jax_plugins`) are found without importing them. The
clients are purax's own: a process that also runs jax has two sets of devices side by side.
"""

import logging
import threading
from typing import Any

from purax.config import config
from purax.core import source
from purax.core.limits import shallow
from purax.errors import ProcessLostError, shown
from purax.xla import host_memory, jaxlib_api, plugins
from purax.xla.processes import group

logger = logging.getLogger("purax")

_PRIORITY = ("tpu", "cuda", "rocm")
_lock = threading.RLock()
_clients: dict[str, Any] = {}
_failures: dict[str, Exception] = {}
_default_platform: str | None = None
_distributed: dict[str, Any] = {}
_first_use: source.Location | None = None


def _requested() -> list[str] | None:
    """The platforms that the configuration names, in order; None if it leaves the choice to us."""
    names = config.platforms
    if not names:
        return None
    return [name.strip().lower() for name in names.split(",") if name.strip()]


def _candidates(name: str) -> list[str]:
    """The platforms a name stands for: "gpu" is whichever maker's plugin is there."""
    if name != "gpu":
        return [name]
    found = plugins.find_plugins()
    return [platform for platform in ("cuda", "rocm") if platform in found] or ["cuda"]


def _make_client(platform: str) -> Any:
    global _first_use
    if _first_use is None:
        _first_use = source.user_location()
    if config.keep_freed_memory:
        host_memory.keep_freed_pages()
    if platform == "cpu":
        count = config.num_cpu_devices
        options = {name: value for name, value in _distributed.items() if name != "visible_devices"}
        settings = (count if count > 0 else None, config.cpu_threads, config.cpu_enable_async_dispatch)
        return group.wait_for(lambda: jaxlib_api.make_cpu_client(*settings, **options))
    found = plugins.find_plugins()
    if platform not in found:
        known = ", ".join(sorted({"cpu", *found}))
        hint = plugins.missing_plugin_hint(platform)
        raise RuntimeError(
            f"there is no plugin for platform {shown(platform)}; platforms here: {known}.{hint}"
        )
    return plugins.make_client(found[platform], _distributed)


def client(platform: str) -> Any:
    """The client of a platform, made on first use.

    Arguments:
        platform: "cpu", "cuda", "tpu", "gpu" (CUDA or ROCm), or the name of another plugin.

    Returns:
        XLA's client.
    """
    existing = _clients.get(shallow(platform))
    if existing is not None:
        return existing
    requested = _requested()
    with _lock:
        failure: Exception | None = None
        for name in _candidates(platform):
            if name in _clients:
                return _clients[name]
            if requested is not None and not any(name in _candidates(one) for one in requested):
                failure = RuntimeError(
                    f"Unknown backend: platform {shown(platform)} is not among those of "
                    f"config.platforms={config.platforms!r}"
                )
                continue
            if name in _failures:
                failure = _failures[name]
                continue
            try:
                _clients[name] = _make_client(name)
                return _clients[name]
            except (ProcessLostError, TimeoutError):
                raise
            # What plugins fail with; anything else is from the handler of a signal, and the next call starts anew.
            except (RuntimeError, OSError, ValueError, TypeError, AttributeError, ImportError) as error:
                _failures[name] = failure = RuntimeError(
                    f"Unknown backend: platform {shown(name)} could not be started: {error}"
                )
        assert failure is not None
        raise failure


def platform_of(device: Any) -> str:
    """What programs for a device are lowered for: "cpu", "gpu" for NVIDIA's, "rocm", "tpu", …

    XLA calls the devices of both makers of GPUs "gpu"; the names of their libraries differ.

    >>> platform_of(devices("cpu")[0])
    'cpu'
    """
    platform = device.platform
    if platform == "gpu" and "rocm" in device.client.platform_version.lower():
        return "rocm"
    return platform


def default_backend() -> str:
    """The platform that arrays live on unless they are placed elsewhere.

    Returns:
        The first platform of `config.platforms` that works, or of tpu, cuda, other plugins, cpu.

    >>> default_backend() in ("cpu", "gpu", "tpu") or default_backend()
    True
    """
    return devices()[0].platform


def _default_client() -> Any:
    global _default_platform
    if _default_platform is not None:
        return _clients[_default_platform]
    with _lock:
        if _default_platform is None:
            _default_platform = _choose_default()
        return _clients[_default_platform]


def _choose_default() -> str:
    requested = _requested()
    if requested is not None:
        for name in requested:
            try:
                client(name)
            except RuntimeError as error:
                if name == requested[-1]:
                    raise
                logger.warning("%s; trying the next of config.platforms=%r", error, config.platforms)
            else:
                return next(one for one in _candidates(name) if one in _clients)
    found = plugins.find_plugins()
    order = [name for name in _PRIORITY if name in found] + [name for name in found if name not in _PRIORITY]
    for name in order:
        if not plugins.has_device(name):
            continue
        try:
            client(name)
        except RuntimeError as error:
            logger.warning("%s; using the CPU (PURAX_PLATFORMS=cpu silences this)", error)
        else:
            return name
    plugins.hint_at_unused_gpu()
    client("cpu")
    return "cpu"


def devices(backend: str | None = None) -> list[Any]:
    """All devices of a platform, those of other processes included.

    Arguments:
        backend: "cpu", "gpu", "cuda", "tpu", ...; None is the default platform.

    Returns:
        A list of devices, with `id`, `platform`, `device_kind`, `process_index`.

    >>> devices("cpu")[0]
    CpuDevice(id=0)
    """
    return (_default_client() if backend is None else client(backend)).devices()


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Any]:
    """The devices of one process, by default of this one; `host_id` is an older name of `process_index`."""
    if host_id is not None:
        process_index = host_id
    chosen = _default_client() if backend is None else client(backend)
    if process_index is None:
        return chosen.local_devices()
    return [device for device in chosen.devices() if device.process_index == process_index]


def device_count(backend: str | None = None) -> int:
    """The number of devices of a platform over all processes."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of a platform in this process."""
    return len(local_devices(backend=backend))


def process_index(backend: str | None = None) -> int:
    """The number of this process among those that work together; 0 if it is alone."""
    return (_default_client() if backend is None else client(backend)).process_index()


def process_count(backend: str | None = None) -> int:
    """How many processes work together."""
    return max(device.process_index for device in devices(backend)) + 1


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes that work together.

    >>> process_indices()
    [0]
    """
    return sorted({device.process_index for device in devices(backend)})


_first_device: Any = None


def default_device() -> Any:
    """The device of arrays that are not placed elsewhere: `config.default_device`, or the first local one."""
    chosen = config.default_device
    if chosen is None:
        return home_device()
    if isinstance(chosen, jaxlib_api.Device):
        return chosen
    return parse_device(chosen)


def home_device() -> Any:
    """The first local device, where arrays are at home that nobody placed."""
    global _first_device
    if _first_device is None:
        _first_device = _default_client().local_devices()[0]
    return _first_device


def parse_device(name: Any) -> Any:
    """The device that a platform's name ("cpu") or a name with a number ("cuda:1") stands for."""
    if not isinstance(name, str):
        raise TypeError(
            f"a device is one of devices() or a name such as 'cpu' or 'cuda:1', not {shown(name)}"
        )
    platform, _, number = name.partition(":")
    local = local_devices(backend=platform)
    if not number:
        return local[0]
    for device in local:
        if number.isdecimal() and device.id == int(number):
            return device
    raise ValueError(f"there is no local device {shown(name)}; there are {', '.join(map(str, local))}")


def device_of(platform: str, number: int) -> Any:
    """The device of a platform with this id, as a pickle names it."""
    known = devices(platform)
    for device in known:
        if device.id == number:
            return device
    raise ValueError(
        f"what was pickled lies on {platform}:{number}, and this process has {', '.join(map(str, known))}. "
        f"Give it as many devices (PURAX_NUM_CPU_DEVICES={number + 1} on the CPU), or pickle host values: "
        "purax.device_get(x)."
    )


def clients() -> dict[str, Any]:
    """The clients made so far, by platform."""
    return dict(_clients)


def join_distributed(**arguments: Any) -> None:
    """Give the clients made from now on these `distributed_client`, `node_id`, `num_nodes`, `collectives`.

    `visible_devices` are the numbers of the accelerators that this process uses. No arguments: back to a process alone.
    """
    with _lock:
        require_no_clients("purax.distributed.initialize")
        _distributed.clear()
        _distributed.update(arguments)


_abandoned: list[Any] = []  # never destroyed: threads of theirs may wait for the dead


def abandon_clients() -> None:
    """Forgets all clients, so that the next use of a device makes new ones; devices of the old ones are of no use."""
    global _default_platform, _first_device, _first_use
    with _lock:
        _abandoned.extend([*_clients.values(), dict(_distributed)])
        _clients.clear()
        _failures.clear()
        _distributed.clear()
        _default_platform = _first_device = _first_use = None


def check_not_abandoned(device: Any) -> None:
    """Raises for a device of a client that is abandoned."""
    if _abandoned and device.client not in _clients.values():
        raise source.located(
            ProcessLostError,
            f"{device} belonged to a group of processes that lost a member and was formed again: its devices, and "
            "meshes and arrays over them, are gone. Make a mesh of purax.devices() anew, and load arrays from the last "
            "checkpoint",
        )


def require_no_clients(what: str) -> None:
    """Raises if a device has been used already, and says where."""
    if _clients:
        place = "" if _first_use is None else f" (first at {_first_use}: {_first_use.text})"
        raise RuntimeError(
            f"{what}() comes too late: this process already uses the devices of platform "
            f"{', '.join(map(repr, _clients))}{place}, as a process alone. Call it at the start of the program, before "
            "the first computation and before devices()"
        )


def _platforms_changed(value: Any) -> None:
    global _default_platform, _first_device
    with _lock:
        _default_platform = None
        _first_device = None
        _failures.clear()


def _num_cpu_devices_changed(value: int) -> None:
    if "cpu" in _clients and value != _clients["cpu"].local_device_count():
        raise RuntimeError(
            f"num_cpu_devices cannot become {value}: the CPU client already runs with "
            f"{_clients['cpu'].local_device_count()} devices. Set it, or PURAX_NUM_CPU_DEVICES, before the "
            "first array or call to devices()"
        )


def _fix_at_first_use(flag: str) -> None:
    def changed(value: Any) -> None:
        if "cpu" in _clients:
            raise RuntimeError(
                f"{flag} cannot become {value}: the CPU client already runs. Set it, or PURAX_{flag.upper()}, "
                "before the first array or call to devices()"
            )

    config.on_change(flag, changed)


config.on_change("platforms", _platforms_changed)
config.on_change("num_cpu_devices", _num_cpu_devices_changed)
_fix_at_first_use("cpu_threads")
_fix_at_first_use("cpu_enable_async_dispatch")
