"""Compiled programs on disk, so that a program is compiled once per machine and not once per process.

One file per program: a header (magic, key, length, signature) and the serialized executable. Entries are machine code,
so they are signed with a key that only the user can read (`private_files`): an entry that is damaged, cut short, or
written by somebody else is a miss, and nothing here ever raises into a run. Files appear whole (written aside, then
renamed), so any number of processes can share a folder. When the folder outgrows its limit, the files not used for
longest go; since it may hold many thousands, only now and then does somebody who writes look through it, so that it is
a few percent larger than its limit for a while.
"""

import contextlib
import functools
import hashlib
import hmac
import logging
import os
import platform
import re
import stat
import struct
import time
import zlib
from collections.abc import Sequence
from typing import Any

from purax.config import config
from purax.xla import jaxlib_api, private_files

logger = logging.getLogger("purax")

MAGIC = b"PURAXEX2"
SUFFIX = ".purax"
LOOKS = 20  # how often the folder is looked through, on average, while as much is written as it may hold
# Magic, key, uncompressed length; then the signature of these and the payload.
_HEADER = struct.Struct("<8s32sQ")
_SIGNATURE = 32
_NAME = re.compile(r"[0-9a-f]{64}\.purax")
# What a file can be the cause of; a path with odd characters is a ValueError.
_FAULTS = (OSError, ValueError, MemoryError)
_warned: dict[str, object] = {}


def folder() -> str | None:
    """The folder of the cache, or None if it is switched off."""
    if not config.enable_compilation_cache:
        return None
    chosen = config.compilation_cache_dir
    if chosen:
        return os.path.expanduser(chosen)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the specification says to ignore it
        base = os.path.join(os.path.expanduser("~"), ".cache")
    if not os.path.isabs(base):  # no HOME, and a user without an entry, as in some containers
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
def engine_build() -> str:
    """Which build of XLA this is."""
    try:
        status = os.stat(jaxlib_api.library_path)
    except OSError:
        return f"{jaxlib_api.version} of unknown size"
    return f"{jaxlib_api.version} {status.st_size} {int(status.st_mtime)}"


def make_key(text: str, devices: Sequence[Any], options: Any) -> bytes:
    """The name of a compiled program: everything that its machine code depends on, hashed.

    Arguments:
        text: the program.
        devices: the devices it is compiled for. One device is as good as another of its kind.
        options: XLA's compile options, which also hold what `XLA_FLAGS` says.

    Returns:
        32 bytes.
    """
    client = devices[0].client
    digest = hashlib.sha256(text.encode())
    parts = (
        engine_build(),
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
    try:
        return _read_from(directory, key)
    except FileNotFoundError:
        return None
    except _FAULTS as error:
        _warn_once("read", directory, error)
        return None


def _read_from(directory: str, key: bytes) -> bytes | None:
    path = _path(directory, key)
    private_files.check_folder(directory)
    content, _ = private_files.read_file(path)
    secret = private_files.read_key(directory)
    payload = None if secret is None else _unpack(content, key, secret)
    if payload is None:
        logger.debug("removing the damaged cache entry %s", path)
        private_files.remove_file(path)
        return None
    with contextlib.suppress(*_FAULTS):
        os.utime(path)  # last use, for the eviction
    return payload


def _sign(secret: bytes, header: bytes, packed: bytes | memoryview) -> bytes:
    made = hmac.new(secret, header, "sha256")
    made.update(packed)
    return made.digest()


def _unpack(content: bytes, key: bytes, secret: bytes) -> bytes | None:
    start = _HEADER.size + _SIGNATURE
    if len(content) < start:
        return None
    magic, stored_key, length = _HEADER.unpack_from(content)
    if magic != MAGIC or stored_key != key:
        return None
    packed = memoryview(content)[start:]
    signature = _sign(secret, content[: _HEADER.size], packed)
    if not hmac.compare_digest(signature, content[_HEADER.size : start]):
        return None
    try:
        payload = zlib.decompress(packed, bufsize=max(length, 1))
    except (zlib.error, OverflowError):
        return None
    return payload if len(payload) == length else None


def write(key: bytes, payload: bytes) -> bool:
    """Store a serialized executable; return whether it is on disk now."""
    directory = folder()
    if directory is None:
        return False
    limit = config.compilation_cache_max_size
    try:
        packed = zlib.compress(payload, 1)
        size = len(packed) + _HEADER.size + _SIGNATURE
        if 0 <= limit < size:
            return False
        os.makedirs(directory, mode=0o700, exist_ok=True)
        if not private_files.is_own(private_files.check_folder(directory)):
            return False  # root's, shared to be read
        secret = private_files.make_key(directory)
        header = _HEADER.pack(MAGIC, key, len(payload))
        signature = _sign(secret, header, packed)
        private_files.replace_file(_path(directory, key), header, signature, packed)
    except _FAULTS as error:
        _warn_once("write", directory, error)
        return False
    if _is_time_to_look(key, size, limit):
        with contextlib.suppress(*_FAULTS):
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
        private_files.remove_file(_path(directory, key))


def evict(directory: str, limit: int) -> None:
    """Remove the entries not used for longest until at most `limit` bytes are left (negative: no limit).

    Files that are not the user's entries stay, and so do those that a living process is writing.
    """
    entries = []
    now = time.time()
    with os.scandir(directory) as scan:
        for entry in scan:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # another process removed it
            if not stat.S_ISREG(status.st_mode) or not private_files.is_own(status):
                continue
            if _NAME.fullmatch(entry.name):
                entries.append((status.st_mtime, status.st_size, entry.path))
            elif private_files.is_left_over(entry.name, now - status.st_mtime):
                private_files.remove_file(entry.path)
    if limit < 0:
        return
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit:
            break
        private_files.remove_file(path)
        total -= size


def _warn_once(action: str, directory: str, error: Exception) -> None:
    """One warning per folder and process: what is wrong with it at first is what there is to repair."""
    mine = object()
    if _warned.setdefault(directory, mine) is not mine:
        return
    logger.warning(
        "the folder of compiled programs %s cannot be %s, so programs are compiled in every process: %s. "
        "Set PURAX_COMPILATION_CACHE_DIR to another folder, or PURAX_ENABLE_COMPILATION_CACHE=0",
        directory,
        "read" if action == "read" else "written",
        str(error) or type(error).__name__,
    )
