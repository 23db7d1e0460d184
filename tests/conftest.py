"""Settings of a test run; they are made before purax is imported, and the workers of a parallel run inherit them.

Every jaxpr is checked against the specification in `purax.core.jaxpr_check`, both libraries run on the CPU unless the
environment says otherwise, and compiled programs go to a folder that is removed at the end, so that a run neither
reads nor fills the user's own cache.
"""

from __future__ import annotations

import os
import shutil
import tempfile

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


def pytest_unconfigure(config: pytest.Config) -> None:
    if _own_cache is not None:
        shutil.rmtree(_own_cache, ignore_errors=True)
