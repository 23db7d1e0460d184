"""`dim_as_value`: a dimension of a shape as an integer, so that it can be computed with as arrays are."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray
from purax.core.dimensions import DimSize, SymbolicDimension, set_as_value
from purax.core.primitive import Primitive
from purax.core.source import located
from purax.primitives.elementwise.conversion import convert_element_type


class DimensionAsValue(Primitive):
    """The number that the dimension `dim` is, a weak integer as Python's are."""

    name = "dim_as_value"
    is_cheap_to_repeat = True

    def infer(self, *, dim):
        return ShapedArray((), dtypes.python_scalar_dtype(int), True)

    def host(self, *, dim):
        if isinstance(dim, SymbolicDimension):
            raise located(
                TypeError,
                f"the dimension '{dim}' has no value here: it is a number only inside of a function that is traced "
                "with arguments of symbolic shapes, as `export` and `eval_shape` do",
            )
        return np.asarray(dim, dtypes.python_scalar_dtype(int))

    def padded(self, at, avals, operands, *, dim):
        return at.number(dim, self.infer(dim=dim))

    def lower(self, builder, *, dim):
        aval = self.infer(dim=dim)
        return builder.convert(builder.dimension(dim), aval.dtype)


dim_as_value_p = DimensionAsValue()


def dimension_as_value(dim: DimSize) -> Any:
    """A dimension as an array; an integer as it is.

    >>> from purax.primitives.shape.dimension_value import dimension_as_value
    >>> dimension_as_value(3)
    3
    """
    return dim_as_value_p.bind(dim=dim) if isinstance(dim, SymbolicDimension) else dim


def number_as(dim: DimSize, dtype: Any) -> Any:
    """A dimension, or an integer, as a scalar of a dtype.

    >>> from purax.primitives.shape.dimension_value import number_as
    >>> number_as(3, "float32")
    array(3., dtype=float32)
    """
    if isinstance(dim, SymbolicDimension):
        return convert_element_type(dim_as_value_p.bind(dim=dim), np.dtype(dtype))
    return np.array(dim, dtype)


set_as_value(dimension_as_value)
