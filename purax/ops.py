"""The vocabulary: every operation as a primitive, one family per file, with all its rules together.

The functions here are strict: operands have one dtype, shapes are equal (or scalars), nothing is promoted. What users
call is in `purax.lax` and `purax.numpy`. Users find the reductions over segments here, where JAX has them; they are
written on top of `purax.numpy` and imported at their first use.
"""

import importlib as _importlib
from typing import Any as _Any

from purax.errors import shown

_SEGMENTS = ("segment_max", "segment_min", "segment_prod", "segment_sum")


def __getattr__(name: str) -> _Any:
    if name in _SEGMENTS:
        return getattr(_importlib.import_module("purax.numpy._reductions.segments"), name)
    raise AttributeError(f"module 'purax.ops' has no attribute {shown(name)}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_SEGMENTS])
