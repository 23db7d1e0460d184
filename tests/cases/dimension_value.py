"""Cases of `purax.primitives.shape.dimension_value`; symbolic dimensions have tests of their own."""

from purax.primitives.shape.dimension_value import dim_as_value_p
from purax.testing.case import case

CASES = [case(dim_as_value_p, dim=size, differentiable=False) for size in (0, 1, 5)]
