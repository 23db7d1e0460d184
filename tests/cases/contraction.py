"""Cases of `purax.primitives.products.contraction`."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from purax.primitives.products.contraction import DotAlgorithmPreset, Precision, dot_general_p
from purax.testing.case import case, numbers


def dot(lhs, rhs, contract, batch=((), ()), preferred=None, precision=None, **options):
    return case(
        dot_general_p,
        lhs,
        rhs,
        dimension_numbers=(contract, batch),
        precision=precision,
        preferred_element_type=None if preferred is None else np.dtype(preferred),
        **options,
    )


def both(*arguments, **options):
    """One case for each operand that the product is linear in."""
    return [dot(*arguments, linear=(position,), **options) for position in (0, 1)]


float32, bfloat16 = np.float32, ml_dtypes.bfloat16
matrix = ((1,), (0,))

CASES = [
    *both(numbers([3]), numbers([3], seed=1), ((0,), (0,))),
    *both(numbers([2, 3]), numbers([3]), ((1,), (0,))),
    *both(numbers([3]), numbers([3, 2]), ((0,), (0,))),
    *both(numbers([2, 3]), numbers([3, 4]), matrix),
    *both(numbers([2, 3]), numbers([4, 3]), ((1,), (1,))),
    *both(numbers([3, 2]), numbers([3, 4]), ((0,), (0,))),
    *both(numbers([3, 2]), numbers([4, 3]), ((0,), (1,))),
    *both(numbers([]), numbers([2, 3]), ((), ())),
    *both(numbers([2]), numbers([3]), ((), ())),
    *both(numbers([2, 3, 4]), numbers([2, 4, 5]), ((2,), (1,)), ((0,), (0,))),
    *both(numbers([3, 2, 4, 5]), numbers([5, 4, 6, 2]), ((2, 3), (1, 0)), ((1,), (3,))),
    *both(numbers([2, 3, 4]), numbers([4, 3, 2]), ((0, 2), (2, 0)), ((1,), (1,))),
    *both(numbers([2, 3]), numbers([3, 2]), ((), ()), ((0, 1), (1, 0))),
    *both(numbers([2, 3], np.complex64), numbers([3, 2], np.complex64, seed=1), matrix),
    *both(numbers([2, 3], bfloat16), numbers([3, 2], bfloat16), matrix, preferred=float32),
    *both(numbers([2, 3], bfloat16), numbers([3, 2]), matrix),
    *both(numbers([2, 3]), numbers([3, 2]), matrix, precision=(Precision.HIGHEST, Precision.HIGH)),
    dot(numbers([2, 3], np.float64), numbers([3, 4], np.float64), matrix),
    dot(numbers([2, 3]), numbers([3, 4]), matrix, preferred=np.float64),
    dot(numbers([2, 3]), numbers([3, 4]), matrix, preferred=bfloat16),
    dot(numbers([2, 3]), numbers([3, 4]), matrix, precision=DotAlgorithmPreset.BF16_BF16_F32_X3),
    dot(
        numbers([2, 3]),
        numbers([3, 4]),
        matrix,
        precision=DotAlgorithmPreset.F16_F16_F16,
        differentiable=False,
    ),
    dot(numbers([2, 3]), numbers([3, 4]), matrix, precision=DotAlgorithmPreset.F64_F64_F64),
    dot(numbers([2, 3], np.float16), numbers([3, 4], np.float16), matrix),
    dot(numbers([2, 3], bfloat16), numbers([3, 4], bfloat16), matrix),
    dot(numbers([2, 3], ml_dtypes.float8_e4m3fn), numbers([3, 4], ml_dtypes.float8_e5m2), matrix),
    dot(
        numbers([2, 3], ml_dtypes.float8_e5m2),
        numbers([3, 4], ml_dtypes.float8_e5m2),
        matrix,
        preferred=float32,
    ),
    dot(numbers([2, 3], np.int8, -100, 100), numbers([3, 4], np.int8, -100, 100), matrix),
    dot(numbers([2, 3], np.int8, -100, 100), numbers([3, 4], np.int8, -100, 100), matrix, preferred=np.int32),
    dot(numbers([2, 3], np.int8, -100, 100), numbers([3, 4], np.uint8, 0, 200), matrix, preferred=np.int32),
    dot(numbers([2, 3], np.int32, -(2**30), 2**30), numbers([3, 4], np.int32, -(2**30), 2**30), matrix),
    dot(numbers([2, 3], np.uint16, 0, 60000), numbers([3, 4], np.uint16, 0, 60000), matrix),
    dot(numbers([2, 3], np.int64, -(2**60), 2**60), numbers([3, 4], np.int64, -(2**60), 2**60), matrix),
    dot(numbers([2, 3], np.int8, -100, 100), numbers([3, 4], np.int8, -100, 100), matrix, preferred=float32),
    dot(numbers([2, 3], bool), numbers([3, 4], bool), matrix),
    dot(numbers([2, 3], bool), numbers([3, 4], bool), matrix, preferred=np.int32),
    dot(numbers([2, 0]), numbers([0, 4]), matrix),
    dot(numbers([0, 3]), numbers([3, 4]), matrix),
    dot(
        np.array([[np.inf, 1, np.nan]], float32),
        np.array([[0], [1], [2]], float32),
        matrix,
        differentiable=False,
    ),
]
