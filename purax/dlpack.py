"""`purax.dlpack`: arrays of other libraries without a copy, and theirs from ours by their own `from_dlpack`."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core import dtypes
from purax.numpy import from_dlpack

__all__ = ["from_dlpack", "is_supported_dtype"]


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype can be exchanged: numbers of whole bytes that other libraries know.

    >>> from purax import dlpack
    >>> dlpack.is_supported_dtype("bfloat16"), dlpack.is_supported_dtype("int4")
    (True, False)
    """
    kind = np.dtype(dtypes.as_exact_dtype(dtype))
    return kind.kind in "biufc" or kind.name == "bfloat16"
