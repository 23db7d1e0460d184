"""Cases of `purax.primitives.elementwise.conversion`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from purax.primitives.elementwise.conversion import (
    bitcast_convert_type_p,
    complex_p,
    conj_p,
    convert_element_type_p,
    imag_p,
    real_p,
    reduce_precision_p,
)
from purax.testing.case import case, numbers

ALL = tuple(
    np.dtype(dtype)
    for dtype in (
        *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
        *(np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.complex64, np.complex128),
    )
)
INEXACT = ALL[9:]
EXTREME = np.array(
    [
        0.5,
        -0.5,
        1.5,
        -1.9,
        127.9,
        -128.9,
        255.5,
        3e4,
        7e4,
        -7e4,
        3e9,
        -3e9,
        5e9,
        1e19,
        -1e19,
        2e19,
        np.inf,
        -np.inf,
        np.nan,
    ]
)


def convert(x, dtype, **options):
    return case(convert_element_type_p, x, new_dtype=np.dtype(dtype), weak_type=False, **options)


def bitcast(x, dtype):
    return case(bitcast_convert_type_p, x, new_dtype=np.dtype(dtype), differentiable=False)


CASES = [
    *(convert(numbers([2, 3], old, 0, 5), new, differentiable=False) for old in ALL for new in ALL),
    *(
        convert(numbers([3], old), new)
        for old in INEXACT
        for new in INEXACT
        if old.itemsize > 2 and new.itemsize > 2
    ),
    *(
        convert(EXTREME.astype(old), new, differentiable=False)
        for old in (np.float32, np.float64)
        for new in ALL[:9]
    ),
    convert(numbers([]), np.float64, linear=(0,)),
    convert(numbers([0, 2]), np.float64, linear=(0,)),
    convert(numbers([2, 3]), np.complex64, linear=(0,)),
    convert(numbers([2, 3], np.complex64), np.float32, linear=(0,)),
    convert(numbers([3], np.float64), np.float32, linear=(0,)),
    *(
        convert(numbers([4], small), np.float32, differentiable=False)
        for small in (ml_dtypes.int4, ml_dtypes.float8_e4m3fn)
    ),
    *(
        convert(EXTREME.astype(np.float32), small, differentiable=False)
        for small in (ml_dtypes.int4, ml_dtypes.uint4)
    ),
    convert(numbers([4]), ml_dtypes.float8_e4m3fn, differentiable=False),
    bitcast(numbers([2, 3]), np.int32),
    bitcast(numbers([]), np.uint32),
    bitcast(numbers([2, 3]), np.uint8),
    bitcast(numbers([]), np.uint16),
    bitcast(numbers([2, 4], np.int8), np.float32),
    bitcast(numbers([3, 2], np.uint32), np.float64),
    bitcast(numbers([3], np.float64), np.uint32),
    bitcast(numbers([3], ml_dtypes.bfloat16), np.uint16),
    bitcast(numbers([0, 3]), np.int32),
    *(
        case(primitive, numbers(shape, dtype), linear=(0,))
        for primitive in (real_p, imag_p)
        for dtype in (np.complex64, np.complex128)
        for shape in ([], [2, 3], [0])
    ),
    *(
        case(complex_p, numbers(a, dtype, seed=1), numbers(b, dtype, seed=2), linear=(0, 1))
        for dtype in (np.float32, np.float64)
        for a, b in (([], []), ([2, 3], [2, 3]), ([], [4]), ([4], []), ([0], [0]))
    ),
    case(complex_p, np.zeros(3, np.float32), numbers([3]), linear=(1,)),
    *(
        case(conj_p, numbers([2, 3], dtype), input_dtype=np.dtype(dtype), linear=(0,))
        for dtype in (np.float32, np.float64, np.complex64, np.complex128)
    ),
    *(
        case(reduce_precision_p, numbers([8], dtype), exponent_bits=e, mantissa_bits=m, differentiable=False)
        for dtype in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)
        for e, m in ((5, 2), (8, 7), (5, 10), (4, 3), (2, 1), (8, 23), (11, 52))
    ),
    case(
        reduce_precision_p,
        np.array([0, -0.0, 65520, 65519, 7e4, 6.1e-5, 6e-5, 3e-8, np.inf, -np.inf, np.nan], np.float32),
        exponent_bits=5,
        mantissa_bits=10,
        differentiable=False,
    ),
    case(reduce_precision_p, numbers([2, 3], np.float64), exponent_bits=11, mantissa_bits=52, linear=(0,)),
]
