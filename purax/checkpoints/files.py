"""Files that are there as a whole or not at all: written under another name, brought to the disk, and renamed.

All that a save does to the disk goes through the functions of this module, so that tests can let each of them fail.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable


def make_folder(path: str) -> None:
    """Makes a folder and those above it."""
    os.makedirs(path, exist_ok=True)


def write(path: str, parts: Iterable[bytes | memoryview]) -> None:
    """Writes a file and waits until it is on the disk."""
    with open(path, "wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def replace(path: str, parts: Iterable[bytes | memoryview]) -> None:
    """Writes a file in the place of one that may be there: readers see the old one, or the new one."""
    own = f"{path}.part-{os.getpid()}"
    try:
        write(own, parts)
        rename(own, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(own)
        raise
    bring_to_disk(os.path.dirname(path) or ".")


def rename(source: str, target: str) -> None:
    """Gives a file another name, in the place of one that may be there."""
    os.replace(source, target)


def bring_to_disk(folder: str) -> None:
    """Waits until the names in a folder are on the disk, on systems that can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove(folder: str) -> None:
    """Removes a folder and all in it; what cannot be removed stays."""
    shutil.rmtree(folder, ignore_errors=True)
