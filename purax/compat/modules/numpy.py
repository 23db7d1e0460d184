"""`jax.numpy` where it differs from `purax.numpy`: Python's True and False become values of the program.

Libraries find out by `bool(jnp.asarray(False))` whether a function is being traced for `jit`, where JAX raises; purax
itself keeps such arrays as the known values that they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from purax import numpy as jnp
from purax.core.array import Array
from purax.primitives.elementwise.arithmetic import copy_p

__all__ = ["array", "asarray"]


def _traced(make: Callable[..., Array]) -> Callable[..., Array]:
    @functools.wraps(make)
    def made(*args: Any, **options: Any) -> Array:
        result = make(*args, **options)
        given = args[0] if args else None
        return copy_p.bind(result) if given is True or given is False else result

    made.__module__ = __name__  # where pickles find it
    return made


array = _traced(jnp.array)
asarray = _traced(jnp.asarray)
