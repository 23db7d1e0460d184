"""Cases for `purax.primitives.shape.gather_scatter`."""

import ml_dtypes
import numpy as np

from purax.primitives.shape.gather_scatter import (
    CLIP,
    FILL_OR_DROP,
    PROMISE_IN_BOUNDS,
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    gather_p,
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    scatter_sub_p,
)
from purax.testing.case import case, numbers


def _gather(operand, indices, dims, sizes, mode=CLIP, fill=None, dtype=np.int32, **kwargs):
    return case(
        gather_p,
        operand,
        np.asarray(indices, dtype),
        dimension_numbers=GatherDimensionNumbers(*dims),
        slice_sizes=sizes,
        indices_are_sorted=False,
        unique_indices=False,
        mode=mode,
        fill_value=fill,
        **kwargs,
    )


def _scatter(
    primitive, operand, indices, updates, dims, mode=FILL_OR_DROP, unique=False, dtype=np.int32, **kwargs
):
    return case(
        primitive,
        operand,
        np.asarray(indices, dtype),
        updates,
        dimension_numbers=ScatterDimensionNumbers(*dims),
        indices_are_sorted=False,
        unique_indices=unique,
        mode=mode,
        **kwargs,
    )


ROWS = ((1,), (0,), (0,))  # one index per row of a matrix
COLUMNS = ((0,), (1,), (1,))
ELEMENTS = ((), (0,), (0,))  # of a vector
PAIRS = ((), (0, 1), (0, 1))  # single elements of a matrix
PATCHES = ((1, 2), (), (0, 1))  # two-dimensional windows
TURNED = ((0, 1), (), (1, 0))  # the same, in front of the axes of the indices, their components swapped
PAIRED = ((), (1,), (1,), (0,), (0,))  # one index into each row: take_along_axis

VECTOR, MATRIX = numbers((5,), seed=3), numbers((5, 3), seed=3)
COMPLEX = numbers((5,), np.complex64)
HOLES = np.array([np.nan, 1, 2], np.float32)

CASES = [
    _gather(numbers((5, 3)), [[4], [0], [4], [2]], ROWS, (1, 3), linear=(0,)),
    _gather(numbers((5, 3)), [[-1], [7], [2]], ROWS, (1, 3), linear=(0,)),
    _gather(numbers((5, 3)), [[-1], [7], [2]], ROWS, (1, 3), FILL_OR_DROP, differentiable=False),
    _gather(numbers((5, 3)), [[-1], [7], [2]], ROWS, (1, 3), FILL_OR_DROP, 0, linear=(0,)),
    _gather(numbers((5, 3)), [[1], [2]], ROWS, (1, 3), PROMISE_IN_BOUNDS, linear=(0,)),
    _gather(numbers((5, 3)), [[2], [0]], COLUMNS, (5, 1), linear=(0,)),
    _gather(numbers((5, 3)), [[2], [9]], COLUMNS, (5, 1), FILL_OR_DROP, 7.5),
    _gather(numbers((5,)), [[[2], [0]], [[-3], [4]]], ELEMENTS, (1,), linear=(0,)),
    _gather(numbers((5,)), [2], ELEMENTS, (1,), linear=(0,)),
    _gather(numbers((5,)), np.zeros((0, 1)), ELEMENTS, (1,), linear=(0,)),
    _gather(numbers((4, 5)), [[1, 2], [3, 4], [9, -9]], PAIRS, (1, 1), linear=(0,)),
    _gather(numbers((4, 5)), [[1, 2], [3, 4], [0, -1], [4, 0]], PAIRS, (1, 1), FILL_OR_DROP, -1.0),
    _gather(numbers((4, 5)), [[1, 2], [3, 4], [0, 0]], PATCHES, (2, 3), linear=(0,)),
    _gather(numbers((4, 5)), [[1, 2], [3, 4], [0, 0]], PATCHES, (2, 3), FILL_OR_DROP, 0, linear=(0,)),
    _gather(numbers((4, 5)), [[2, 1], [4, 3], [0, 0]], TURNED, (2, 3), linear=(0,)),
    _gather(numbers((4, 5)), [[0], [2]], ((1, 2), (), (1,)), (1, 2), linear=(0,)),
    _gather(numbers((4, 5)), np.zeros((3, 0)), ((1,), (0,), ()), (1, 2), linear=(0,)),
    _gather(numbers((3, 4, 5)), [[1, 2], [0, 9]], ((0,), (0, 2), (0, 2)), (1, 4, 1), linear=(0,)),
    _gather(numbers((3, 4, 5)), [[1, 2], [0, 9]], ((0, 2), (0,), (0, 2)), (1, 4, 2), linear=(0,)),
    _gather(numbers((3, 4)), [[1], [3], [-2]], PAIRED, (1, 1), linear=(0,)),
    _gather(numbers((3, 4)), [[1], [3], [-2]], PAIRED, (1, 1), FILL_OR_DROP, 0, linear=(0,)),
    _gather(
        numbers((4, 3, 2)),
        [[[1], [3]], [[0], [3]], [[2], [2]]],
        ((1,), (0,), (0,), (1,), (0,)),
        (1, 1, 2),
        linear=(0,),
    ),
    _gather(
        numbers((2, 3, 4)),
        numbers((3, 2, 5, 1), np.int32),
        ((), (2,), (2,), (0, 1), (1, 0)),
        (1, 1, 1),
        linear=(0,),
    ),
    _gather(numbers((5, 0)), [[1], [3]], ROWS, (1, 0), linear=(0,)),
    _gather(numbers((5, 3)), [[1], [3]], ((1, 2), (), (0,)), (0, 3), linear=(0,)),
    _gather(numbers((5, 3), np.complex64), [[4], [9]], ROWS, (1, 3), FILL_OR_DROP, differentiable=False),
    _gather(numbers((5, 3), np.int8), [[4], [9]], ROWS, (1, 3), FILL_OR_DROP),
    _gather(numbers((5, 3), np.uint16, low=0), [[4], [-9]], ROWS, (1, 3), FILL_OR_DROP),
    _gather(numbers((5, 3), np.bool_), [[4], [9]], ROWS, (1, 3), FILL_OR_DROP),
    _gather(
        numbers((5, 3), ml_dtypes.bfloat16), [[4], [9]], ROWS, (1, 3), FILL_OR_DROP, differentiable=False
    ),
    _gather(numbers((300, 2)), [[255], [128]], ROWS, (1, 2), FILL_OR_DROP, 0, np.uint8, linear=(0,)),
    _gather(numbers((300, 2)), [[-128], [127]], ROWS, (1, 2), CLIP, None, np.int8, linear=(0,)),
    _gather(numbers((5, 2)), [[2**64 - 1], [3]], ROWS, (1, 2), FILL_OR_DROP, 0, np.uint64, linear=(0,)),
    _gather(numbers((5, 2)), [[2**64 - 1], [3]], ROWS, (1, 2), CLIP, None, np.uint64, linear=(0,)),
    _gather(numbers((5, 2)), [[2**32 - 1], [3]], ROWS, (1, 2), CLIP, None, np.uint32, linear=(0,)),
    _gather(numbers((5, 2)), [[2**32], [-(2**40)]], ROWS, (1, 2), CLIP, None, np.int64, linear=(0,)),
    _gather(
        numbers((5, 2)), [[2**32], [-(2**40)], [3]], ROWS, (1, 2), FILL_OR_DROP, 0, np.int64, linear=(0,)
    ),
]

for primitive, linear in ((scatter_add_p, (0, 2)), (scatter_sub_p, (0, 2))):
    CASES += [
        _scatter(primitive, numbers((5, 3)), [[4], [0], [4]], numbers((3, 3), seed=1), ROWS, linear=linear),
        _scatter(
            primitive, numbers((5, 3)), [[-1], [7], [2]], numbers((3, 3), seed=1), ROWS, CLIP, linear=linear
        ),
        _scatter(primitive, numbers((5, 3)), [[-1], [7], [2]], numbers((3, 3), seed=1), ROWS, linear=linear),
        _scatter(primitive, numbers((5, 3)), [[2], [0]], numbers((5, 2), seed=1), COLUMNS, linear=linear),
        _scatter(
            primitive, numbers((5,)), [[2], [2], [2], [9]], numbers((4,), seed=1), ELEMENTS, linear=linear
        ),
        _scatter(primitive, numbers((5,)), [2], numbers((), seed=1), ELEMENTS, unique=True, linear=linear),
        _scatter(primitive, numbers((5,)), [9], numbers((), seed=1), ELEMENTS, linear=linear),
        _scatter(
            primitive, numbers((4, 5)), [[1, 2], [1, 2], [9, 0]], numbers((3,), seed=1), PAIRS, linear=linear
        ),
        _scatter(
            primitive, numbers((4, 5)), [[1, 2], [2, 2], [0, 3]], numbers((3, 2, 3)), PATCHES, linear=linear
        ),
        _scatter(
            primitive,
            numbers((4, 5)),
            [[2, 1], [2, 2], [9, 0]],
            numbers((2, 3, 3)),
            TURNED,
            CLIP,
            linear=linear,
        ),
        _scatter(primitive, numbers((3, 4)), [[1], [3], [-2]], numbers((3,), seed=1), PAIRED, linear=linear),
        _scatter(
            primitive, numbers((3, 4)), [[1], [3], [-2]], numbers((3,), seed=1), PAIRED, CLIP, linear=linear
        ),
        _scatter(primitive, numbers((5, 3)), np.zeros((0, 1)), numbers((0, 3)), ROWS, linear=linear),
        _scatter(
            primitive,
            numbers((5, 3), np.complex64),
            [[4], [4]],
            numbers((2, 3), np.complex64),
            ROWS,
            linear=linear,
        ),
        _scatter(primitive, numbers((5, 3), np.int8), [[4], [4]], np.full((2, 3), 100, np.int8), ROWS),
        _scatter(primitive, numbers((5, 3), np.uint32, 0), [[4], [4]], numbers((2, 3), np.uint32, 0), ROWS),
    ]
CASES += [
    _scatter(
        scatter_add_p,
        numbers((3,), ml_dtypes.bfloat16),
        [[1]] * 9,
        numbers((9,), ml_dtypes.bfloat16),
        ELEMENTS,
    ),
    _scatter(scatter_add_p, numbers((3, 2), np.float16), [[1]] * 9, numbers((9, 2), np.float16), ROWS),
    _scatter(
        scatter_add_p, numbers((300, 2)), [[255], [128]], numbers((2, 2)), ROWS, dtype=np.uint8, linear=(0, 2)
    ),
    _scatter(
        scatter_add_p,
        numbers((5, 2)),
        [[2**64 - 1], [3]],
        numbers((2, 2)),
        ROWS,
        dtype=np.uint64,
        linear=(0, 2),
    ),
    _scatter(
        scatter_add_p,
        numbers((5, 2)),
        [[2**64 - 1], [3]],
        numbers((2, 2)),
        ROWS,
        CLIP,
        dtype=np.uint64,
        linear=(0, 2),
    ),
    _scatter(
        scatter_p, numbers((5, 3)), [[4], [0], [2]], numbers((3, 3), seed=1), ROWS, unique=True, linear=(0, 2)
    ),
    _scatter(scatter_p, numbers((5, 3)), [[4], [0], [4]], numbers((3, 3), seed=1), ROWS),
    _scatter(scatter_p, numbers((5, 3)), [[4], [0], [4]], np.zeros((3, 3), np.float32), ROWS, linear=(0,)),
    _scatter(scatter_p, numbers((5, 3)), [[-1], [7], [2]], numbers((3, 3), seed=1), ROWS),
    _scatter(scatter_p, numbers((5, 3)), [[-1], [7], [2]], numbers((3, 3), seed=1), ROWS, CLIP),
    _scatter(
        scatter_p, numbers((5, 3)), [[-9], [7], [2]], numbers((3, 3), seed=1), ROWS, CLIP, True, linear=(0, 2)
    ),
    _scatter(
        scatter_p, numbers((5, 3)), [[2], [0]], numbers((5, 2), seed=1), COLUMNS, unique=True, linear=(0, 2)
    ),
    _scatter(scatter_p, numbers((5,)), [2], numbers((), seed=1), ELEMENTS, unique=True, linear=(0, 2)),
    _scatter(scatter_p, numbers((5,)), [-1], numbers((), seed=1), ELEMENTS, unique=True, linear=(0, 2)),
    _scatter(scatter_p, numbers((5,)), [[2], [2], [3]], numbers((3,), seed=1), ELEMENTS),
    _scatter(
        scatter_p, numbers((5, 3)), [1], numbers((3,), seed=1), ((0,), (0,), (0,)), unique=True, linear=(0, 2)
    ),
    _scatter(scatter_p, numbers((4, 5)), [[1, 2], [2, 2], [0, 3]], numbers((3, 2, 3)), PATCHES),
    _scatter(scatter_p, numbers((4, 5)), [[1, 2], [2, 2], [0, 0]], numbers((2, 3, 3)), TURNED, CLIP),
    _scatter(
        scatter_p,
        numbers((3, 4)),
        [[1], [3], [-2]],
        numbers((3,), seed=1),
        PAIRED,
        unique=True,
        linear=(0, 2),
    ),
    _scatter(
        scatter_p, numbers((3, 4)), [[1], [3], [-2]], numbers((3,), seed=1), PAIRED, CLIP, True, linear=(0, 2)
    ),
    _scatter(
        scatter_p,
        numbers((3, 4)),
        [1, 9],
        numbers((2, 2), seed=1),
        ((0, 1), (), (0, 1)),
        CLIP,
        True,
        linear=(0, 2),
    ),
    _scatter(scatter_p, numbers((3, 0)), [[1], [2]], numbers((2, 0)), ROWS, unique=True, linear=(0, 2)),
    _scatter(
        scatter_p,
        numbers((5,), np.complex64),
        [[4], [1]],
        numbers((2,), np.complex64),
        ELEMENTS,
        unique=True,
        linear=(0, 2),
    ),
    _scatter(scatter_p, numbers((5,), np.bool_), [[4], [1]], numbers((2,), np.bool_), ELEMENTS),
    _scatter(scatter_p, numbers((5,), np.int16), [[4], [4]], numbers((2,), np.int16), ELEMENTS),
    _scatter(
        scatter_p, numbers((5,), ml_dtypes.bfloat16), [[4], [1]], numbers((2,), ml_dtypes.bfloat16), ELEMENTS
    ),
    _scatter(scatter_mul_p, MATRIX, [[4], [0], [2]], numbers((3, 3)), ROWS, unique=True, linear=(0,)),
    _scatter(scatter_mul_p, MATRIX, [[4], [0], [9]], numbers((3, 3)), ROWS, unique=True, linear=(0,)),
    _scatter(scatter_mul_p, MATRIX, [[4], [0], [9]], numbers((3, 3)), ROWS, CLIP, linear=(0,)),
    _scatter(scatter_mul_p, MATRIX, [[4], [4], [4]], numbers((3, 3)), ROWS, linear=(0,)),
    _scatter(scatter_mul_p, VECTOR, [[4], [4], [1]], np.array([0, 3, 0], np.float32), ELEMENTS, linear=(0,)),
    _scatter(scatter_mul_p, MATRIX, np.zeros((2, 0)), numbers((2,)), ((), (0, 1), ()), linear=(0,)),
    _scatter(scatter_add_p, MATRIX, np.zeros((2, 0)), numbers((2, 3)), ((1,), (0,), ()), linear=(0, 2)),
    _scatter(
        scatter_add_p,
        numbers((2, 3)),
        np.zeros((2, 4, 0)),
        numbers((2, 4)),
        ((), (1,), (), (0,), (0,)),
        CLIP,
        linear=(0, 2),
    ),
    _scatter(
        scatter_p, numbers(()), np.zeros((0,)), numbers((), seed=1), ((), (), ()), unique=True, linear=(0, 2)
    ),
    _scatter(scatter_p, numbers(()), np.zeros((2, 0)), numbers((2,), seed=1), ((), (), ())),
    _scatter(scatter_mul_p, VECTOR, [3], numbers(()), ELEMENTS, unique=True, linear=(0,)),
    _scatter(
        scatter_mul_p, numbers((3, 4)), [[1], [3], [2]], numbers((3,)), PAIRED, unique=True, linear=(0,)
    ),
    _scatter(scatter_mul_p, COMPLEX, [[4], [4]], numbers((2,), np.complex64), ELEMENTS, linear=(0,)),
    _scatter(scatter_mul_p, numbers((5,), np.int8), [[4], [4]], np.full((2,), 100, np.int8), ELEMENTS),
]
for primitive in (scatter_min_p, scatter_max_p):
    CASES += [
        _scatter(primitive, numbers((5, 3)), [[4], [0], [4]], numbers((3, 3), seed=1), ROWS),
        _scatter(primitive, numbers((5, 3)), [[-1], [7], [2]], numbers((3, 3), seed=1), ROWS, CLIP),
        _scatter(primitive, numbers((5, 3)), [[-1], [7], [2]], numbers((3, 3), seed=1), ROWS),
        _scatter(primitive, numbers((5,)), [3], numbers((), seed=1), ELEMENTS, unique=True),
        _scatter(primitive, numbers((4, 5)), [[1, 2], [2, 2], [0, 3]], numbers((3, 2, 3)), PATCHES),
        _scatter(primitive, numbers((3, 4)), [[1], [3], [-2]], numbers((3,), seed=1), PAIRED),
        _scatter(primitive, COMPLEX, [[4], [4]], numbers((2,), np.complex64), ELEMENTS, differentiable=False),
        _scatter(primitive, numbers((5,), np.bool_), [[4], [4], [1]], numbers((3,), np.bool_), ELEMENTS),
        _scatter(
            primitive, numbers((5,), np.uint8, 0, 9), [[4], [4], [1]], numbers((3,), np.uint8, 0, 9), ELEMENTS
        ),
        _scatter(primitive, HOLES, [[0], [1], [2]], HOLES[::-1], ELEMENTS, differentiable=False),
    ]
