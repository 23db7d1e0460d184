"""Cases of `purax.primitives.reductions.window_reduction`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from purax.primitives.reductions.window_reduction import (
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_sum_p,
)
from purax.testing.case import case, numbers

EXTREMA = (reduce_window_max_p, reduce_window_min_p)
ALL = (reduce_window_sum_p, *EXTREMA)
special = numbers([4, 5])
special[1, 2], special[0, 0], special[3, 3] = np.nan, np.inf, -np.inf


def window(size, strides=None, padding=None, base=None, gaps=None):
    """The parameters of a window, plain unless given."""
    ones = (1,) * len(size)
    return dict(
        window_dimensions=size,
        window_strides=strides or ones,
        padding=padding or ((0, 0),) * len(size),
        base_dilation=base or ones,
        window_dilation=gaps or ones,
    )


WINDOWS = [
    ([6], window((2,))),
    ([6], window((3,), (2,), ((1, 2),))),
    ([5], window((2,), (1,), ((-1, 1),), (2,), (3,))),
    ([4, 5], window((2, 3), (2, 1), ((0, 1), (1, 1)))),
    ([3, 4], window((2, 2), (1, 2), ((1, 0), (2, 1)), (2, 1), (1, 2))),
    ([2, 3, 4], window((1, 2, 3))),
    ([3], window((5,))),
    ([0, 3], window((1, 2))),
    ([], window(())),
]
CASES = [
    *(case(reduce_window_sum_p, numbers(shape), linear=(0,), **params) for shape, params in WINDOWS),
    *(case(p, numbers(shape), **params) for p in EXTREMA for shape, params in WINDOWS),
    *(
        case(p, numbers([6], d, 0, 9), differentiable=False, **window((3,), (1,), ((1, 1),)))
        for p in ALL
        for d in (np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint16, np.int64)
    ),
    *(case(p, numbers([6], bool), **window((3,), (1,), ((1, 1),))) for p in EXTREMA),
    case(reduce_window_sum_p, numbers([6], np.complex64), linear=(0,), **window((2,), (3,))),
    *(case(p, special, differentiable=False, **window((2, 2), padding=((0, 1), (1, 0)))) for p in ALL),
]
