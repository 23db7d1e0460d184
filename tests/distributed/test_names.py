"""The names of `jax.distributed` and `jax.experimental.multihost_utils`, and what is left out, with the reason."""

from __future__ import annotations

import inspect

import pytest

from purax import distributed
from purax.experimental import multihost_utils

DISTRIBUTED = ["initialize", "is_initialized", "shutdown"]
OWN = ["live_devices", "reinitialize"]
MULTIHOST_UTILS = """
assert_equal broadcast_one_to_all global_array_to_host_local_array host_local_array_to_global_array live_devices
process_allgather reached_preemption_sync_point sync_global_devices
""".split()
OMITTED = {
    "live_devices": "a group that lost a process is formed again, by purax.distributed.reinitialize",
}


def test_names():
    assert sorted(distributed.__all__) == sorted([*DISTRIBUTED, *OWN])
    assert sorted([*multihost_utils.__all__, *OMITTED]) == MULTIHOST_UTILS


@pytest.mark.parametrize(
    ("module", "names"),
    [("jax.distributed", DISTRIBUTED), ("jax.experimental.multihost_utils", MULTIHOST_UTILS)],
)
def test_signatures_begin_as_those_of_jax(module, names):
    theirs = pytest.importorskip(module)
    ours = distributed if module == "jax.distributed" else multihost_utils
    for name in names:
        if name not in OMITTED:
            own = inspect.signature(getattr(ours, name)).parameters
            wanted = inspect.signature(getattr(theirs, name)).parameters
            pairs = [(p.name, p.default) for p in own.values() if p.kind is not p.KEYWORD_ONLY]
            # Later versions of jax have more arguments of initialize, for certificates.
            assert pairs == [(p.name, p.default) for p in wanted.values()][: len(pairs)]
