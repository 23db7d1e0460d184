"""Public names for dtypes: special ones, their categories, and how they are promoted."""

from __future__ import annotations

import ml_dtypes

from purax.core.dtypes import (
    TypePromotionError,
    canonicalize_dtype,
    extended,
    finfo,
    float0,
    iinfo,
    issubdtype,
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
