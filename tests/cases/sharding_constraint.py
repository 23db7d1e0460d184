"""Cases of `purax.primitives.sharding_constraint` on one device; meshes have tests of their own (`tests/sharding`)."""

import numpy as np

from purax.core.specs import AbstractMesh, AbstractSharding, AxisType, PartitionSpec
from purax.primitives.sharding_constraint import free_sharding_p, sharding_constraint_p
from purax.testing.case import case, numbers

MESH = AbstractMesh((1,), ("x",), axis_types=(AxisType.Auto,))
ROWS = AbstractSharding(MESH, PartitionSpec("x"))
EVERYWHERE = AbstractSharding(MESH, PartitionSpec())

CASES = [
    case(sharding_constraint_p, numbers((2, 3)), sharding=ROWS, linear=(0,)),
    case(sharding_constraint_p, numbers((0, 3)), sharding=ROWS, linear=(0,)),
    case(sharding_constraint_p, numbers((), np.complex64), sharding=EVERYWHERE, linear=(0,)),
    case(sharding_constraint_p, numbers((3,), np.int8), sharding=EVERYWHERE),
    case(free_sharding_p, numbers((2, 3)), axes=None, linear=(0,)),
    case(free_sharding_p, numbers((3,), np.bool_), axes=None),
]
