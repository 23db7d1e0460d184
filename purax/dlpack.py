"""`purax.dlpack`: arrays of other libraries without a copy, and theirs from ours by their own `from_dlpack`."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.numpy._indexing.buffers import from_dlpack as _from_dlpack

__all__ = ["from_dlpack", "is_supported_dtype"]


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """The array of another library, taken over through DLPack; as `purax.numpy.from_dlpack`.

    Args:
        external_array: an object with `__dlpack__` and `__dlpack_device__`.
        device: where to put it.
        copy: True for memory of its own, None where needed, False to forbid it.

    Returns:
        An array.

    >>> import numpy as np
    >>> from purax import dlpack
    >>> dlpack.from_dlpack(external_array=np.arange(3, dtype="int32"))
    Array([0, 1, 2], dtype=int32)
    """
    return _from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype can be exchanged: numbers of whole bytes that other libraries know.

    >>> from purax import dlpack
    >>> dlpack.is_supported_dtype("bfloat16"), dlpack.is_supported_dtype("int4")
    (True, False)
    """
    kind = np.dtype(dtypes.as_exact_dtype(dtype))
    return kind.kind in "biufc" or kind.name == "bfloat16"
