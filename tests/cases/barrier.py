"""Cases of `purax.primitives.barrier`."""

from __future__ import annotations

import numpy as np

from purax.primitives.barrier import dce_sink_p, optimization_barrier_p
from purax.testing.case import case, numbers

CASES = [
    case(optimization_barrier_p, numbers([2, 3]), linear=(0,)),
    case(optimization_barrier_p, numbers([2, 3]), numbers([], np.float64), numbers([0]), linear=(0, 1, 2)),
    case(optimization_barrier_p, numbers([3], np.int8), numbers([3], np.complex64), numbers([2], bool)),
    case(dce_sink_p, numbers([2, 3]), numbers([], np.int32), differentiable=False),
]
