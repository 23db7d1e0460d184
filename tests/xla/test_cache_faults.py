"""Every call to the operating system that the cache makes fails once, in every way: a run never notices."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from purax.config import config
from purax.xla import disk_cache, private_files

KEY, OTHER = bytes(range(32)), bytes(32)
PAYLOAD = bytes(range(256)) * 8


def _no_space() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _no_memory() -> None:
    raise MemoryError


def _not_permitted() -> None:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _nothing_there() -> None:
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def _less() -> None:
    """A call that does only a part of its work; of those that cannot, one that fails."""
    raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR))


FAULTS = [_no_space, _no_memory, _not_permitted, _nothing_there, _less]


class FaultySystem:
    """The module `os`, of which one call fails: the one with the number `at`."""

    path = os.path

    def __init__(self, at: int, fault: Callable[[], None]):
        self.at, self.fault, self.calls = at, fault, []

    def __getattr__(self, name: str) -> Any:
        value = getattr(os, name)
        if not callable(value) or isinstance(value, type):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append(name)
            if len(self.calls) - 1 != self.at:
                return value(*args, **kwargs)
            if name == "close":
                value(*args, **kwargs)  # it is closed, whatever it says
            if self.fault is _less and name == "read":
                return value(args[0], args[1] // 2)
            if self.fault is _less and name == "write":
                return value(args[0], args[1][: len(args[1]) // 2])
            return self.fault()

        return call


@contextlib.contextmanager
def faulty(at: int, fault: Callable[[], None]) -> Iterator[FaultySystem]:
    """Lets the cache meet a fault."""
    system = FaultySystem(at, fault)
    disk_cache.os = private_files.os = system  # type: ignore[attr-defined, assignment]
    try:
        yield system
    finally:
        disk_cache.os = private_files.os = os  # type: ignore[attr-defined]


def _path(folder: Path, key: bytes) -> Path:
    return folder / (key.hex() + disk_cache.SUFFIX)


def nothing(folder: Path) -> None:
    """The folder is not there."""


def entry(folder: Path) -> None:
    """The entry is there."""
    assert disk_cache.write(KEY, PAYLOAD)


def damaged_entry(folder: Path) -> None:
    entry(folder)
    _path(folder, KEY).write_bytes(b"damaged")


def damaged_key(folder: Path) -> None:
    entry(folder)
    (folder / private_files.KEY_NAME).write_bytes(b"")


def open_key(folder: Path) -> None:
    entry(folder)
    (folder / private_files.KEY_NAME).chmod(0o644)


def full(folder: Path) -> None:
    """There is something to evict, also what a dead process left behind."""
    assert disk_cache.write(OTHER, os.urandom(4000))
    left = Path(private_files.temporary_path(str(folder)).replace(f"-{os.getpid()}-", "-4999999-"))
    left.write_bytes(b"x")
    os.utime(left, (time.time() - 100_000,) * 2)


STATES = [nothing, entry, damaged_entry, damaged_key, open_key, full]


def attempt(state: Callable[[Path], None], folder: Path, at: int, fault: Callable[[], None]) -> int:
    """Reads and writes with one fault, then without; returns the number of calls that were made."""
    settings = config.override(
        compilation_cache_dir=str(folder), enable_compilation_cache=True, compilation_cache_max_size=5000
    )
    with settings:
        state(folder)
        with faulty(at, fault) as system:
            assert disk_cache.read(KEY) in (None, PAYLOAD)
            disk_cache.write(KEY, PAYLOAD)
            assert disk_cache.read(KEY) in (None, PAYLOAD)
        assert disk_cache.read(KEY) in (None, PAYLOAD)
        assert disk_cache.write(KEY, PAYLOAD) and disk_cache.read(KEY) == PAYLOAD
    return len(system.calls)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("state", STATES)
def test_every_call_fails_once(state, fault, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # hundreds of which would wait for the disk
    total = attempt(state, tmp_path / "sound", -1, fault)
    assert total > 10
    for at in range(total):
        caplog.clear()
        disk_cache._warned.clear()
        attempt(state, tmp_path / str(at), at, fault)
        assert len(caplog.records) <= 1
    left = [path for path in tmp_path.glob("*/*.tmp")]
    assert len(left) <= 4  # those whose removal was what failed


def test_the_calls_that_are_made_are_those_that_fail(tmp_path):
    """The law above is about these; a call that went around `os` would not be tried."""
    with (
        config.override(compilation_cache_dir=str(tmp_path), enable_compilation_cache=True),
        faulty(-1, _less) as system,
    ):
        assert disk_cache.write(KEY, PAYLOAD) and disk_cache.read(KEY) == PAYLOAD
    wanted = {
        "makedirs",
        "stat",
        "lstat",
        "fstat",
        "open",
        "read",
        "write",
        "fsync",
        "close",
        "link",
        "replace",
        "utime",
    }
    assert wanted <= set(system.calls)
    assert system.calls.index("fsync") < system.calls.index("link")
    last = len(system.calls) - 1
    assert last - system.calls[::-1].index("fsync") < last - system.calls[::-1].index("replace")


def test_too_little_memory_for_the_program_is_a_miss(cache_folder, monkeypatch):
    assert disk_cache.write(KEY, PAYLOAD)
    for name in ("decompress", "compress"):
        with monkeypatch.context() as patch:
            patch.setattr(disk_cache.zlib, name, lambda *_, **__: _no_memory())
            assert disk_cache.read(KEY) is None or name == "compress"
            assert not disk_cache.write(OTHER, PAYLOAD) or name == "decompress"
    assert disk_cache.read(KEY) == PAYLOAD
