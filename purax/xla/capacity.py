"""Whether arrays can lie in the memory of a device, said before anything is compiled for it.

Only what surely lies there counts: the results of a program, and what its operations cannot fuse. Types may be as
large as they like: nothing is refused where a program is traced, lowered, or compiled ahead of time.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray
from purax.core.source import located
from purax.errors import OutOfMemoryError
from purax.xla import living_arrays

SURELY_THERE = 1 << 30  # bytes, of which nobody asks


def bytes_of(aval: ShapedArray) -> int:
    """How many bytes an array takes."""
    bits = dtypes.itemsize_bits(aval.dtype) if isinstance(aval.dtype, np.dtype) else 8
    return aval.size * bits // 8


def refuse_what_does_not_fit(
    name: str, results: Iterable[ShapedArray], stored: Iterable[ShapedArray], devices: Sequence[Any]
) -> None:
    """Raises if the results of a program together, or one array that it stores, are more than all of the memory.

    Args:
        name: of the program.
        results: the types of its results.
        stored: types of arrays that lie in memory while it runs.
        devices: what it runs on; each holds its part.
    """
    results = [aval for aval in results if aval.size > 1]
    total = sum(map(bytes_of, results))
    largest = max((*results, *stored), key=bytes_of, default=None)
    if largest is None:
        return
    needed = max(total, bytes_of(largest)) // len(devices)
    if needed <= SURELY_THERE:
        return
    there = memory_of(devices[0])
    if there is not None and needed > there:
        on_each = f" on each of {len(devices)} devices" if len(devices) > 1 else ""
        raise located(
            OutOfMemoryError,
            f"RESOURCE_EXHAUSTED: Out of memory: {name.lstrip('_')} needs {needed} bytes ({needed / 2**30:.1f} GiB)"
            f"{on_each}, among them an array of shape {largest.shape} and dtype "
            f"{dtypes.dtype_name(largest.dtype)}, but {devices[0]} has {there} ({there / 2**30:.1f} GiB). "
            "Compute it in parts, or under jit with "
            f"out_shardings over more devices.{living_arrays.description(devices[0])}",
        )


def refuse_to_read(value: Any) -> Any:
    """`value`, an array; raises if it is a view of few elements that stands for more than the memory could hold."""
    if value.size > SURELY_THERE and value.size > (_host_memory() or value.size):
        raise located(
            OutOfMemoryError,
            f"RESOURCE_EXHAUSTED: Out of memory: reading all elements of an array of shape {value.shape}, which is "
            "larger than the memory of this machine",
        )
    return value


def memory_of(device: Any) -> int | None:
    """The bytes of memory that a device has; None if it does not say."""
    if device.platform == "cpu":
        return _host_memory()
    try:
        limit = (device.memory_stats() or {}).get("bytes_limit")
    except Exception:  # a platform that keeps no books
        return None
    return int(limit) if limit else None


@functools.cache
def _host_memory() -> int | None:
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        return memory + int(lines["SwapTotal"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return memory
