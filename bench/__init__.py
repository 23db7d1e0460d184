"""Benchmarks of purax beside jax, torch, numpy, autograd and numba, run by `python -m bench`.

The thread pools of the peers live in one process here. A pool that spins while it waits slows the others down (by a
hundred times on two cores), so every pool is told to sleep instead, before any of the peers is imported. OpenBLAS
alone may spin for a while, 2²⁰ cycles: without it, waking its threads for each of LAPACK's many small products makes
qr, eigh and svd ten times slower; with its default of 2²⁶ the next peer's first milliseconds suffer.
"""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("KMP_BLOCKTIME", "0")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
