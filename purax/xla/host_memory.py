"""Memory of large arrays on the host, whose pages are kept when the arrays are freed.

glibc gives large blocks back to the system as soon as they are free, and gets fresh pages for the next, which takes
several times as long as filling them (`exp` of 16M elements: 105 ms, of which 97 are the pages). So XLA's library and
our own arrays take large blocks from a pool (`_host_memory.c`), which keeps up to a gigabyte of what is freed. Nothing
else in the process is touched. Without the extension in C, or on another system, memory comes from the C library.
"""

from __future__ import annotations

import os
from typing import Any

from purax.xla import jaxlib_api

try:
    from purax.xla import _host_memory as pool  # type: ignore[attr-defined]
except ImportError:  # it was not compiled when purax was installed
    pool = None

GIGABYTE = 1 << 30
_is_serving = False


def keep_freed_pages() -> bool:
    """Has arrays on the host take their memory from the pool; whether they do.

    >>> keep_freed_pages() in (True, False)
    True
    """
    global _is_serving
    if pool is not None and not _is_serving:
        _is_serving = pool.serve(os.path.dirname(jaxlib_api.library_path), GIGABYTE)
    return _is_serving


def release_freed_pages() -> None:
    """Gives what is kept back to the system."""
    if _is_serving:
        pool.keep(0)
        pool.keep(GIGABYTE)


def block(size: int) -> Any:
    """Memory of so many bytes, with the buffer protocol, that begins at a page; None where there is no pool."""
    return pool.block(size) if _is_serving else None


def sizes() -> tuple[int, int]:
    """The bytes of the pool that arrays use, and those that are kept for later ones."""
    return pool.sizes() if _is_serving else (0, 0)
