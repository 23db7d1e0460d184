"""Large arrays on the host get the pages of those that were freed, from a pool that only they and XLA use."""

import os
import random
import subprocess
import sys
import threading

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.xla import host_memory
from purax.xla.aligned_memory import aligned_empty

pooled = pytest.mark.skipif(not host_memory.keep_freed_pages(), reason="there is no pool here")

PROGRAM = """
import resource, statistics
import purax as px, purax.numpy as jnp
x = jnp.ones(10_000_000, jnp.float32)
double = px.jit(lambda x: x * 2)
counts = []
for _ in range(41):
    {run}
    counts.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
print(statistics.median(after - before for before, after in zip(counts, counts[1:])))
"""
RUNS = {"compiled": "double(x).block_until_ready()", "eager": "(x * 2).block_until_ready()"}


def faults(run: str, **settings: str) -> float:
    """The pages that a call of the program gets from the system, as a rule."""
    command = [sys.executable, "-c", PROGRAM.format(run=RUNS[run])]
    environment = {**os.environ, **settings}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(printed.stdout)


@pooled
@pytest.mark.parametrize("run", RUNS)
def test_freed_pages_are_used_again(run):
    assert faults(run) < 1000


@pooled
def test_without_the_setting_pages_are_fresh():
    assert faults("compiled", PURAX_KEEP_FREED_MEMORY="0") > 1000


@pooled
def test_blocks_never_overlap_whatever_is_freed_when():
    rng, used = random.Random(0), host_memory.sizes()[0]
    blocks: list[np.ndarray] = []
    for step in range(600):
        if blocks and rng.random() < 0.5:
            freed = blocks.pop(rng.randrange(len(blocks)))
            assert (freed == freed[0]).all()
            del freed
        else:
            blocks.append(aligned_empty((rng.randrange(1 << 17, 1 << 20),), np.dtype("uint8")))
            blocks[-1][:] = step % 251
    ends = sorted((block.ctypes.data, block.ctypes.data + block.nbytes) for block in blocks)
    assert all(end <= start for (_, end), (start, _) in zip(ends, ends[1:], strict=False))
    assert host_memory.sizes()[0] - used >= sum(block.nbytes for block in blocks)
    blocks.clear()
    assert host_memory.sizes()[0] == used


@pooled
def test_what_is_kept_raises_no_peak_and_can_be_given_back():
    host_memory.release_freed_pages()
    large = aligned_empty((1 << 26,), np.dtype("uint8"))
    peak = sum(host_memory.sizes())
    del large
    assert host_memory.sizes()[1] >= 1 << 26
    parts = [aligned_empty((1 << 22,), np.dtype("uint8")) for _ in range(16)]
    assert sum(host_memory.sizes()) <= peak
    del parts
    px.clear_caches()
    assert host_memory.sizes()[1] == 0


@pooled
def test_threads_and_compiled_programs_share_the_pool():
    def work(number: int) -> None:
        for size in range(1 << 16, 1 << 17, 1 << 14):
            x = jnp.full(size, float(number))
            results.append(bool((px.jit(lambda x: x + 1)(x) == number + 1).all()))

    results: list[bool] = []
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 16 and all(results)


@pooled
def test_the_memory_of_others_comes_from_elsewhere():
    used = host_memory.sizes()
    arrays = [np.ones(1 << 20) for _ in range(4)]
    assert host_memory.sizes() == used and len(arrays) == 4
