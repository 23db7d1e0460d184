"""Cases of `purax.primitives.reductions.reduction`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from purax.primitives.reductions.reduction import (
    argmax_p,
    argmin_p,
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_shift_p,
    reduce_xor_p,
)
from purax.testing.case import case, numbers

nan, inf = np.nan, np.inf
int32, float32 = np.dtype(np.int32), np.float32
special = np.array([[1, nan, -inf, 0], [inf, 2, nan, -0.0], [3, 3, -inf, -0.0]], float32)
distinct = np.random.default_rng(0).permutation(15).reshape(5, 3) - 7.0  # in the narrowest dtypes too
NARROW = (ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e4m3fn)
NUMBERS = (np.int8, np.uint8, np.int32, np.uint32, np.int64, np.float64)

CASES = [
    *(
        case(primitive, numbers(shape, dtype, -3, 3), axes=axes)
        for primitive in (reduce_max_p, reduce_shift_p, reduce_min_p, reduce_prod_p)
        for shape, dtype, axes in (
            ([4], float32, (0,)),
            ([3, 4], float32, (1,)),
            ([2, 3, 5], float32, (0, 2)),
            ([2, 3], float32, ()),
            ([1, 1], float32, (0, 1)),
            ([3, 2], np.complex64, (0,)),
            ([2, 0], float32, (1,)),
            ([0, 3], float32, (1,)),
        )
    ),
    *(case(p, distinct.astype(d), axes=(0,)) for p in (reduce_max_p, reduce_min_p) for d in NARROW),
    *(case(reduce_prod_p, numbers([3, 7], d, 0.5, 1.5), axes=(1,)) for d in NARROW[:2]),
    *(
        case(p, numbers([2, 5], d, 0 if np.dtype(d).kind == "u" else -90, 90), axes=(1,))
        for p in (reduce_max_p, reduce_min_p, reduce_prod_p, reduce_and_p, reduce_or_p, reduce_xor_p)
        for d in NUMBERS[:5]
    ),
    *(
        case(p, numbers([0, 2], d), axes=(0,))
        for p in (reduce_max_p, reduce_min_p)
        for d in (*NUMBERS, *NARROW, bool)
    ),
    *(case(p, numbers([0, 2], np.complex64), axes=(0,)) for p in (reduce_max_p, reduce_min_p, reduce_prod_p)),
    *(
        case(p, numbers(shape, d), axes=(0,))
        for p in (reduce_and_p, reduce_or_p, reduce_xor_p)
        for d in (bool, np.int16, np.uint16)
        for shape in ([5, 2], [0, 2])
    ),
    *(case(p, numbers([5, 2], bool), axes=(1,)) for p in (reduce_max_p, reduce_min_p)),
    *(
        case(p, special, axes=(axis,), differentiable=False)
        for p in (reduce_max_p, reduce_min_p, reduce_prod_p)
        for axis in (0, 1)
    ),
    # a product with zeros has derivatives all the same
    case(reduce_prod_p, np.array([[0, 2, 3], [0, 0, 5], [1, 4, 2]], float32), axes=(1,)),
    case(reduce_prod_p, np.array([0, 2, 3, 0, 7], float32), axes=(0,)),
    *(
        case(p, x, axes=(axis,), index_dtype=int32)
        for p in (argmax_p, argmin_p)
        for x, axis in (
            (numbers([5]), 0),
            (numbers([3, 4]), 1),
            (numbers([3, 4]), 0),
            (numbers([2, 3, 4]), 1),
            (special, 0),
            (special, 1),
            (special.astype(ml_dtypes.bfloat16), 1),
            (numbers([3, 9], np.int8), 1),
            (numbers([9], bool), 0),
            (numbers([3, 9], np.uint32, 0, 5), 1),
            (numbers([3, 9], np.float16, 0, 5), 0),
            (numbers([3, 0]), 0),
            (numbers([2, 96]), 1),  # enough to be searched block by block
            (numbers([96, 2], np.int32, 0, 3), 0),
            (numbers([2, 100, 3], np.int8, 0, 3), 1),
            (np.where(np.arange(96) % 40 == 39, nan, numbers([96])), 0),
            (numbers([0, 96]), 1),
            (numbers([97]), 0),
        )
    ),
    case(argmax_p, numbers([3, 4]), axes=(1,), index_dtype=np.dtype(np.int64)),
    case(argmax_p, numbers([4, 200]), axes=(1,), index_dtype=np.dtype(np.uint8)),
    case(argmin_p, numbers([3, 4], np.float64), axes=(1,), index_dtype=np.dtype(np.uint8)),
]
