"""Large results get the pages of those that were freed."""

import os
import subprocess
import sys

import pytest

from purax.xla import host_memory

PROGRAM = """
import resource, statistics
import purax as px, purax.numpy as jnp
x = jnp.ones(10_000_000, jnp.float32)
double = px.jit(lambda x: x * 2)
counts = []
for _ in range(41):
    double(x).block_until_ready()
    counts.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
print(statistics.median(after - before for before, after in zip(counts, counts[1:])))
"""


def faults(**settings: str) -> float:
    """The pages that a call of the program gets from the system, as a rule."""
    environment = {name: value for name, value in os.environ.items() if name not in host_memory._OF_THE_USER}
    printed = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**environment, **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(printed.stdout)


@pytest.mark.skipif(not host_memory.keep_freed_pages(), reason="the memory is not managed by glibc")
def test_freed_pages_are_used_again():
    assert faults() < 1000 < faults(PURAX_KEEP_FREED_MEMORY="0")


def test_what_the_user_has_set_is_left_alone(monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    assert not host_memory.keep_freed_pages()
