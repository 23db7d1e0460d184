"""Benchmarks of purax beside jax, torch, numpy, autograd and numba, run by `python -m bench`.

The thread pools of the peers live in one process here. A pool that spins while it waits slows the others down (by a
hundred times on two cores), so every pool is told to sleep instead, before any of the peers is imported.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("KMP_BLOCKTIME", "0")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
