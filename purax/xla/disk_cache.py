"""Compiled programs on disk, so that a program is compiled once per machine and not once per process.

One file per program: a header (magic, key, length, checksum) and the serialized executable. A file that is
damaged, cut short or foreign is a miss and is removed; nothing here ever raises into a run. Files appear
whole (written aside, then renamed), so any number of processes can share a folder. When the folder outgrows
its limit, the files not used for longest go; since it may hold many thousands, only now and then does somebody
who writes look through it, so that it is a few percent larger than its limit for a while.
"""

import functools
import hashlib
import logging
import os
import platform
import struct
import threading
import time
import zlib
from collections.abc import Sequence
from typing import Any

from purax.config import config
from purax.xla import door

logger = logging.getLogger("purax")

MAGIC = b"PURAXEX1"
SUFFIX = ".purax"
LOOKS = 20  # how often the folder is looked through, on average, while as much is written as it may hold
# Magic, key, uncompressed length, checksum of the payload.
_HEADER = struct.Struct("<8s32sQ32s")
_lock = threading.Lock()
_warned: set[tuple[str, str]] = set()


def folder() -> str | None:
    """The folder of the cache, or None if it is switched off."""
    if not config.enable_compilation_cache:
        return None
    chosen = config.compilation_cache_dir
    if chosen:
        return os.path.expanduser(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    if base.startswith("~"):  # no HOME, and a user without an entry, as in some containers
        return None
    return os.path.join(base, "purax")


@functools.cache
def _cpu_features() -> str:
    """What of the host's processor shapes generated code: model, instruction sets, cores in use."""
    wanted = ("vendor_id", "model name", "flags", "Features", "CPU implementer", "CPU part")
    lines = [platform.machine(), platform.system()]
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if not line.strip():
                    break
                if name.strip() in wanted:
                    lines.append(f"{name.strip()}={' '.join(sorted(value.split()))}")
    except OSError:
        lines.append(platform.processor())
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    lines.append(f"cores={cores}")
    return "\n".join(lines)


@functools.cache
def _engine_build() -> str:
    status = os.stat(door.library_path)
    return f"{door.version} {status.st_size} {int(status.st_mtime)}"


def make_key(text: str, devices: Sequence[Any], options: Any) -> bytes:
    """The name of a compiled program: everything that its machine code depends on, hashed.

    Arguments:
        text: the program.
        devices: the devices it is compiled for. One device is as good as another of its kind.
        options: the engine's compile options, which also hold what `XLA_FLAGS` says.

    Returns:
        32 bytes.
    """
    client = devices[0].client
    digest = hashlib.sha256(text.encode())
    parts = (
        _engine_build(),
        client.platform,
        client.platform_version,
        _cpu_features() if client.platform == "cpu" else "",
        ",".join(device.device_kind for device in devices),
    )
    digest.update("\0".join(parts).encode())
    digest.update(options.SerializeAsString())
    return digest.digest()


def _path(directory: str, key: bytes) -> str:
    return os.path.join(directory, key.hex() + SUFFIX)


def read(key: bytes) -> bytes | None:
    """The serialized executable stored under `key`, or None."""
    directory = folder()
    if directory is None:
        return None
    path = _path(directory, key)
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        _warn_once("read", directory, error)
        return None
    payload = _unpack(content, key)
    if payload is None:
        logger.debug("removing the damaged cache entry %s", path)
        remove(key)
        return None
    try:
        os.utime(path)  # last use, for the eviction
    except OSError:
        pass
    return payload


def _unpack(content: bytes, key: bytes) -> bytes | None:
    if len(content) < _HEADER.size:
        return None
    magic, stored_key, length, checksum = _HEADER.unpack_from(content)
    packed = content[_HEADER.size :]
    if magic != MAGIC or stored_key != key or hashlib.sha256(packed).digest() != checksum:
        return None
    try:
        payload = zlib.decompress(packed)
    except zlib.error:
        return None
    return payload if len(payload) == length else None


def write(key: bytes, payload: bytes) -> bool:
    """Store a serialized executable; return whether it is on disk now."""
    directory = folder()
    if directory is None:
        return False
    packed = zlib.compress(payload, 1)
    limit = config.compilation_cache_max_size
    if 0 <= limit < len(packed) + _HEADER.size:
        return False
    header = _HEADER.pack(MAGIC, key, len(payload), hashlib.sha256(packed).digest())
    unique = f"write-{os.getpid()}-{threading.get_ident()}-{time.time_ns()}.tmp"
    temporary = os.path.join(directory, unique)
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        with open(temporary, "xb") as file:
            file.write(header)
            file.write(packed)
        os.replace(temporary, _path(directory, key))
    except OSError as error:
        _warn_once("write", directory, error)
        _unlink(temporary)
        return False
    if _is_time_to_look(key, len(packed) + _HEADER.size, limit):
        evict(directory, limit)
    return True


def _is_time_to_look(key: bytes, size: int, limit: int) -> bool:
    """Chance decides (a key is a hash), in proportion to what is written: processes need not know of each other."""
    room = limit if limit >= 0 else 1 << 30
    return int.from_bytes(key[:8], "big") * room <= LOOKS * size << 64


def remove(key: bytes) -> None:
    """Forget an entry, if it is there."""
    directory = folder()
    if directory is not None:
        _unlink(_path(directory, key))


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def evict(directory: str, limit: int) -> None:
    """Remove the entries not used for longest until at most `limit` bytes are left (negative: no limit)."""
    entries = []
    now = time.time()
    try:
        with os.scandir(directory) as scan:
            for entry in scan:
                try:
                    status = entry.stat()
                except OSError:
                    continue  # another process removed it
                if entry.name.endswith(SUFFIX):
                    entries.append((status.st_mtime, status.st_size, entry.path))
                elif entry.name.endswith(".tmp") and now - status.st_mtime > 3600:
                    _unlink(entry.path)  # left by a process that died while writing
    except OSError:
        return
    if limit < 0:
        return
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit:
            break
        _unlink(path)
        total -= size


def _warn_once(action: str, directory: str, error: OSError) -> None:
    with _lock:
        if (action, directory) in _warned:
            return
        _warned.add((action, directory))
    logger.warning(
        "the folder of compiled programs %s cannot be %s, so programs are compiled in every process: %s. "
        "Set PURAX_COMPILATION_CACHE_DIR to another folder, or PURAX_ENABLE_COMPILATION_CACHE=0",
        directory,
        "read" if action == "read" else "written",
        error,
    )
