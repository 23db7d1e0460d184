"""Peak resident memory of kernel rows, in a process that has done nothing else.

`python -m bench.resident LABEL SIZES NAME...` runs rows of the kernel group, at their `size` or `smoke_size`, and
prints bytes by name: how far the resident memory rises, while a warm row is called three times, above what the process
held before the row's inputs were made. So inputs, results and temporaries count, the compiler and the imports do not.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bench import data
from bench.peers import space

STATUS = Path("/proc/self/status")
RESET_PEAK = Path("/proc/self/clear_refs")


def resident(field: str) -> int:
    """Bytes of `VmRSS` (now) or `VmHWM` (the peak) of this process."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def trim() -> None:
    """Hand freed memory back to the system, so that what the compiler needed is not counted."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def peak_of(row: Any, label: str, size: int) -> int:
    """Bytes that the row needs while it runs."""
    peer = space(label)
    if hasattr(peer, "px"):  # the client, its compiler and its thread pool are no part of the row
        peer.force(peer.px.jit(lambda x: peer.jnp.sin(x) @ x)(peer.array(np.ones((300, 300), np.float32))))
    trim()
    before = resident("VmRSS")
    run = row.builders[label](peer, size)
    peer.force(run())
    data.forget()
    trim()
    RESET_PEAK.write_text("5")
    for _ in range(3):
        peer.force(run())
    return max(0, resident("VmHWM") - before)


def main(label: str, sizes: str, *names: str) -> None:
    from bench.rows import select

    found = {}
    for name in names:
        row = select(["kernels"], name)[0][1][0]
        found[name] = peak_of(row, label, row.smoke_size if sizes == "smoke" else row.size)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
