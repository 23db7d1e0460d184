"""What became of traced programs, on disk: a later process finds a compiled program without lowering it again.

A record is found by a key made before lowering: the program as it was traced (`portable_fingerprint`), and everything
that lowering reads besides. It says under which key `disk_cache` keeps the executable, and what there is to know of the
text from which that was compiled. Records are entries of the same folder, signed like the others. Whatever a key cannot
describe has no key, and is lowered.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from purax.config import config
from purax.core.avals import ShapedArray
from purax.xla import disk_cache, jaxlib_api

_PACKAGE = Path(__file__).parent.parent
_KINDS = ".py", ".so", ".pyd", ".dylib"  # files that decide what text a program becomes
# Flags that say where programs are kept and what is told of them, not what they are.
_IRRELEVANT = frozenset(
    ("compilation_cache_dir", "compilation_cache_max_size", "persistent_cache_min_compile_time_secs")
    + ("num_cpu_devices",)  # the devices of a program are in its key
    + ("explain_cache_misses", "log_compiles", "logging_level", "traceback_filtering", "dump_ir_modes")
)
_PLAIN = (bool, int, float, str, type(None))
_IMPORTED = time.time_ns()  # files that changed later are not those that this process runs


class Record(NamedTuple):
    """What is known of a program that was lowered and compiled once.

    Attributes:
        program: the digest of its text and options.
        disk_key: where `disk_cache` has the executable.
        options: all compile options, those of flags and those chosen for it among them.
        length: of its text.
        keeps_calls: whether calls in it are to stay calls.
        needs_lapack: whether it calls LAPACK.
        calls_kernels: whether it calls native kernels.
        pace: how long it may run, as `long_programs` says.
        stored: shape and dtype of the largest array that it stores besides its results.
    """

    program: bytes
    disk_key: bytes
    options: tuple[tuple[str, Any], ...]
    length: int
    keeps_calls: bool
    needs_lapack: bool
    calls_kernels: bool
    pace: str
    stored: tuple[tuple[int, ...], str] | None

    @property
    def stored_avals(self) -> list[ShapedArray]:
        """The type of the largest stored array, in a list; none where nothing large is stored."""
        return [] if self.stored is None else [ShapedArray(self.stored[0], np.dtype(self.stored[1]))]


def make_key(
    portable: str | None, name: str, devices: Sequence[Any], donated: Sequence[int], options: Sequence[Any]
) -> bytes | None:
    """The key of a program that is traced but not lowered.

    Args:
        portable: its portable fingerprint, if it has one.
        name: what it is called.
        devices: what it will run on.
        donated: positions of the arguments whose memory results take over.
        options: the compile options that the user asks for.

    Returns:
        32 bytes; None if it cannot be known before lowering what the text will be, or nothing is kept on disk.
    """
    if portable is None or disk_cache.folder() is None or config.dump_ir_to is not None:
        return None
    flags = _flags()
    package = _package_state()
    if flags is None or package is None or not all(_is_plain(value) for _, value in options):
        return None
    client = devices[0].client
    parts = (
        *(portable, name, repr(tuple(donated)), repr(sorted(options)), flags, package, len(devices)),
        *(client.platform, os.environ.get("XLA_FLAGS", ""), os.cpu_count()),
    )
    # What depends on XLA and on the machine is in the other key, for no text, and the options without any.
    return disk_cache.make_key("\0".join(map(str, parts)), devices, jaxlib_api.CompileOptions())


def _flags() -> str | None:
    """The values of all flags that may change a program; None if one of them is an object that only lives here."""
    values = {name: value for name, value in config.values.items() if name not in _IRRELEVANT}
    return repr(values) if all(map(_is_plain, values.values())) else None


def _is_plain(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_plain, value))
    return type(value) in _PLAIN


@functools.cache
def _package_state() -> str | None:
    """Which purax this is, by sizes and times of its files, and what else computes constants of programs.

    Times of last changes are often set: to those of an archive, or all to one, so that builds are reproducible. Those
    of inodes (`st_ctime`) are the system's own.
    """
    digest = hashlib.sha256(f"{sys.version} {np.__version__} {ml_dtypes.__version__}".encode())
    try:
        for line in _files(_PACKAGE):
            digest.update(line.encode(errors="surrogateescape"))
    except (OSError, _ChangedError):  # it is imported from elsewhere than a folder, or somebody works on it
        return None
    return digest.hexdigest()


class _ChangedError(Exception):
    """A file is newer than this process."""


def _files(folder: Path | str) -> list[str]:
    """The files of code under a folder, each with its size and the time of its last change."""
    lines, folders = [], []
    with os.scandir(folder) as scan:
        for entry in scan:
            if entry.name.endswith(_KINDS):
                status = entry.stat()
                if max(status.st_mtime_ns, status.st_ctime_ns) >= _IMPORTED:
                    raise _ChangedError
                lines.append(f"{entry.name} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}\n")
            elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                folders.append(entry)
    lines.sort()
    for each in sorted(folders, key=lambda entry: entry.name):
        lines += [f"{each.name}/\n", *_files(each.path)]
    return lines


def find(key: bytes | None) -> Record | None:
    """The record under a key, if there is one."""
    data = None if key is None else disk_cache.read(key)
    if data is None:
        return None
    try:
        *digests, options, length, keeps_calls, needs_lapack, calls_kernels, pace, stored = json.loads(data)
        program, disk_key = map(bytes.fromhex, digests)
    except (ValueError, TypeError):  # signed, and yet of another make
        return None
    return Record(
        *(program, disk_key, tuple((name, _as_tuple(value)) for name, value in options), length),
        *(keeps_calls, needs_lapack, calls_kernels, pace, _as_tuple(stored)),
    )


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


def write(key: bytes, record: Record) -> None:
    """Keeps a record under a key."""
    if all(_is_plain(value) for _, value in record.options):
        program, disk_key, *rest = record
        disk_cache.write(key, json.dumps([program.hex(), disk_key.hex(), *rest]).encode())


def largest(stored: Sequence[ShapedArray]) -> tuple[tuple[int, ...], str] | None:
    """The largest of the arrays that a program stores, as a record has it."""
    known = [aval for aval in stored if isinstance(aval.dtype, np.dtype)]
    if not known:
        return None
    aval = max(known, key=lambda aval: aval.size * aval.dtype.itemsize)
    return aval.shape, aval.dtype.name
