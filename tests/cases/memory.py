"""Cases of `purax.primitives.memory`."""

import numpy as np

from purax.core.memories import MemorySpace
from purax.primitives.memory import to_memory_p
from purax.testing.case import case, numbers

CASES = [
    case(to_memory_p, numbers((2, 3)), space=MemorySpace.Device, linear=(0,)),
    case(to_memory_p, numbers((0, 2)), space=MemorySpace.Device, linear=(0,)),
    case(to_memory_p, numbers((), np.complex64), space=MemorySpace.Device, linear=(0,)),
    case(to_memory_p, numbers((3,), np.int8), space=MemorySpace.Device),
    case(to_memory_p, numbers((3,)), space=MemorySpace.Host, linear=(0,)),
]
