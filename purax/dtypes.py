"""Public names for dtypes: special ones, their categories, and how they are promoted."""

from __future__ import annotations

from typing import Any

import ml_dtypes

from purax.core import dtypes
from purax.core.dtypes import (
    TypePromotionError,
    canonicalize_dtype,
    extended,
    finfo,
    float0,
    iinfo,
    itemsize_bits,
    prng_key,
    result_type,
    scalar_type_of,
)

bfloat16 = ml_dtypes.bfloat16

__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "result_type",
    "scalar_type_of",
]


def issubdtype(a: Any, b: Any) -> bool:
    """Whether a dtype, or category, belongs to another one; as `purax.numpy.issubdtype`.

    Args:
        a: a dtype or a category.
        b: a dtype or a category: `np.floating`, `extended`, `prng_key`, ….

    Returns:
        A bool.

    >>> import numpy as np
    >>> from purax import dtypes
    >>> dtypes.issubdtype(a="bfloat16", b=np.floating)
    True
    """
    return dtypes.issubdtype(a, b)
