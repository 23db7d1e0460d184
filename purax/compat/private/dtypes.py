"""`jax._src.dtypes`."""

from __future__ import annotations

import numpy as np

from purax.core.dtypes import (
    ExtendedDtype as ExtendedDType,
)
from purax.core.dtypes import (
    TypePromotionError,
    canonicalize_dtype,
    extended,
    finfo,
    float0,
    iinfo,
    issubdtype,
    prng_key,
    result_type,
    to_complex_dtype,
    to_inexact_dtype,
)

DType = np.dtype

__all__ = [
    "DType",
    "ExtendedDType",
    "TypePromotionError",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "prng_key",
    "result_type",
    "to_complex_dtype",
    "to_inexact_dtype",
]
