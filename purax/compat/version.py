"""The version of jax whose interface purax offers, as `jax.version`."""

from __future__ import annotations

import purax

JAX_VERSION = "0.10.2"
PURAX_VERSION = purax.__version__

__version__ = JAX_VERSION
__version_info__ = tuple(map(int, JAX_VERSION.split(".")))
