"""Memory of large arrays on the host, kept by the process when they are freed.

glibc gives large blocks back to the system as soon as they are free, and gets fresh pages for the next, which takes
several times as long as filling them (`exp` of 16M elements: 60 ms, of which 52 are the pages). So it is told, before
the engine allocates anything, to take blocks of up to a gigabyte from one heap and to keep up to a gigabyte of it.
Another allocator, and settings that the user made in the environment, are left alone.
"""

from __future__ import annotations

import ctypes
import os

GIGABYTE = 1 << 30
# What mallopt calls its settings (malloc.h).
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_OF_THE_USER = ("MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_pages() -> bool:
    """Makes glibc keep what is freed for later arrays; whether it does.

    >>> keep_freed_pages() in (True, False)
    True
    """
    if any(name in os.environ for name in _OF_THE_USER):
        return False
    try:
        library = ctypes.CDLL(None)
        set_option = library.mallopt
        library.gnu_get_libc_version  # noqa: B018 (another C library has none, and other numbers)
    except (OSError, AttributeError, TypeError):
        return False
    # Only the heap of the first arena can hold blocks of any size, so all threads are to use it.
    return all(
        set_option(name, value)
        for name, value in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, GIGABYTE), (_TRIM_THRESHOLD, GIGABYTE))
    )
