"""Settings of a test run; they are made before purax is imported, and the workers of a parallel run inherit them.

Every jaxpr is checked against the specification in `purax.core.jaxpr_check`, both libraries run on the CPU unless the
environment says otherwise, and compiled programs go to a folder that is removed at the end, so that a run neither
reads nor fills the user's own cache. What a test finds does not depend on those that ran before it in its process:
generators of random numbers start anew, and programs are forgotten before there are too many.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("PURAX_CHECK_JAXPRS", "1")
os.environ.setdefault("PURAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Programs over several devices are tested on eight of the CPU's.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

_own_cache = None
if "PURAX_COMPILATION_CACHE_DIR" not in os.environ:
    _own_cache = os.environ["PURAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="purax-test-cache-")

# The same examples on every run: a failure that hypothesis finds once must be found again by whoever looks into it.
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Many tests count traces by a side effect; only those of purity care about the warning."""
    for item in items:
        if "purity" not in item.path.parts:
            item.add_marker(pytest.mark.filterwarnings("ignore::purax.errors.ImpureFunctionWarning"))


_states: dict[np.random.Generator, Any] = {}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """The generators of a test's module are as the module made them."""
    module = getattr(item, "module", None)
    for value in list(vars(module).values()) if module is not None else ():
        if isinstance(value, np.random.Generator):
            if value in _states:
                value.bit_generator.state = _states[value]
            else:
                _states[value] = value.bit_generator.state


# Linux gives a process 65,530 mappings of memory. A compiled program has ten and more, and all of them, after an hour
# of tests, fill gigabytes, in which everything is found more slowly.
MOST_MAPPINGS = 12_000


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Programs of one file are of little use to the next."""
    if nextitem is None or nextitem.path == item.path:
        return
    try:
        with open("/proc/self/maps", "rb") as file:
            mappings = file.read().count(b"\n")
    except OSError:
        return  # not on Linux
    if mappings > MOST_MAPPINGS:
        for name in ("purax", "jax"):
            if name in sys.modules:
                sys.modules[name].clear_caches()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _own_cache is not None:
        shutil.rmtree(_own_cache, ignore_errors=True)
