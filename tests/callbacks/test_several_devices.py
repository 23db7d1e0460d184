"""Callbacks of programs on several devices are called once, with whole arrays; inside of `shard_map` on every part."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

PROGRAM = """
    import numpy as np
    import purax, purax.numpy as jnp
    from purax.experimental import io_callback
    from purax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(purax.devices()), ("i",))
    x = purax.device_put(jnp.arange(8.0), NamedSharding(mesh, PartitionSpec("i")))
    log = []

    @purax.jit
    def f(x):
        purax.debug.callback(lambda v: log.append(v.shape), x * 2)
        io_callback(lambda v: log.append(v.shape), None, x, ordered=True)
        return purax.pure_callback(lambda v: v * 2, purax.ShapeDtypeStruct((8,), np.float32), x + 1)

    np.testing.assert_array_equal(f(x), (np.arange(8) + 1) * 2)
    purax.effects_barrier()
    assert log == [(8,), (8,)], log

    def fail(v):
        raise LookupError("mine")

    try:
        purax.jit(lambda x: purax.pure_callback(fail, purax.ShapeDtypeStruct((), np.float32), x))(x).block_until_ready()
    except LookupError:
        print("done")
"""


def test_callbacks_over_a_mesh():
    environment = {
        **os.environ,
        "PURAX_PLATFORMS": "cpu",
        "PURAX_NUM_CPU_DEVICES": "2",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        env=environment,
        timeout=120,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.strip() == "done", ran.stdout + ran.stderr[-2000:]
