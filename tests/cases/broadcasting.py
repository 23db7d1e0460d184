"""Cases for `purax.primitives.shape.broadcasting`."""

import ml_dtypes
import numpy as np

from purax.primitives.shape.broadcasting import broadcast_in_dim_p, reduce_sum_p, transpose_p
from purax.testing.case import case, numbers

CASES = [
    case(broadcast_in_dim_p, numbers(()), shape=(), broadcast_dimensions=(), linear=(0,)),
    case(broadcast_in_dim_p, numbers(()), shape=(2, 3), broadcast_dimensions=(), linear=(0,)),
    case(broadcast_in_dim_p, numbers((3,)), shape=(2, 3), broadcast_dimensions=(1,), linear=(0,)),
    case(broadcast_in_dim_p, numbers((2, 1)), shape=(2, 4, 3), broadcast_dimensions=(0, 2), linear=(0,)),
    case(broadcast_in_dim_p, numbers((1, 1)), shape=(2, 1), broadcast_dimensions=(0, 1), linear=(0,)),
    case(broadcast_in_dim_p, numbers((2,)), shape=(1, 2, 1), broadcast_dimensions=(1,), linear=(0,)),
    case(broadcast_in_dim_p, numbers((1,)), shape=(0, 2), broadcast_dimensions=(0,), linear=(0,)),
    case(broadcast_in_dim_p, numbers((0,)), shape=(2, 0), broadcast_dimensions=(1,), linear=(0,)),
    case(
        broadcast_in_dim_p, numbers((2,), np.complex64), shape=(3, 2), broadcast_dimensions=(1,), linear=(0,)
    ),
    case(broadcast_in_dim_p, numbers((2,), np.bool_), shape=(3, 2), broadcast_dimensions=(1,)),
    case(broadcast_in_dim_p, numbers((2,), np.int8), shape=(2, 2), broadcast_dimensions=(0,)),
    case(
        broadcast_in_dim_p,
        numbers((2,), ml_dtypes.bfloat16),
        shape=(2, 2),
        broadcast_dimensions=(0,),
        linear=(0,),
    ),
    case(reduce_sum_p, numbers((3, 4)), axes=(0,), linear=(0,)),
    case(reduce_sum_p, numbers((3, 4)), axes=(0, 1), linear=(0,)),
    case(reduce_sum_p, numbers((3, 4, 2)), axes=(2, 0), linear=(0,)),
    case(reduce_sum_p, numbers((3,)), axes=(), linear=(0,)),
    case(reduce_sum_p, numbers((0, 2)), axes=(0,), linear=(0,)),
    case(reduce_sum_p, numbers((2, 0)), axes=(0,), linear=(0,)),
    case(reduce_sum_p, numbers((3, 4), np.float64), axes=(1,), linear=(0,)),
    case(reduce_sum_p, numbers((3, 4), np.complex64), axes=(1,), linear=(0,)),
    case(reduce_sum_p, numbers((3, 40), np.float16), axes=(1,), linear=(0,)),
    case(reduce_sum_p, numbers((3, 40), ml_dtypes.bfloat16), axes=(1,), linear=(0,)),
    case(reduce_sum_p, np.full((200,), 100, np.int8), axes=(0,)),
    case(reduce_sum_p, np.full((3,), 2**31, np.uint32), axes=(0,)),
    case(reduce_sum_p, numbers((3, 4), np.int64), axes=(1,)),
    case(transpose_p, numbers((3, 4)), permutation=(1, 0), linear=(0,)),
    case(transpose_p, numbers((2, 3, 4)), permutation=(2, 0, 1), linear=(0,)),
    case(transpose_p, numbers((2, 3, 4), np.complex64), permutation=(1, 2, 0), linear=(0,)),
    case(transpose_p, numbers((0, 2)), permutation=(1, 0), linear=(0,)),
    case(transpose_p, numbers((2, 3), np.bool_), permutation=(1, 0)),
    case(transpose_p, numbers((2, 3), np.uint8), permutation=(1, 0)),
]
