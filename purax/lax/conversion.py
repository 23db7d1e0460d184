"""Other dtypes for the same numbers or bits."""

from __future__ import annotations

from typing import Any

from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.lax.operands import array, integer
from purax.primitives.elementwise.conversion import bitcast_convert_type_p, reduce_precision_p
from purax.primitives.elementwise.conversion import convert_element_type as convert_same
from purax.typing import ArrayLike


def convert_element_type(operand: ArrayLike, new_dtype: Any) -> Array:
    """Numbers as another dtype: fractions are cut off, integers wrap around, complex numbers lose their imaginary part.

    >>> from purax import lax, numpy as jnp
    >>> lax.convert_element_type(jnp.array([1.5, -1.5]), int)
    Array([ 1, -1], dtype=int32)
    """
    if new_dtype is None:
        raise located(ValueError, "lax.convert_element_type needs a dtype, got None")
    return convert_same(array("convert_element_type", operand), dtypes.as_dtype(new_dtype, "new_dtype"))


def bitcast_convert_type(operand: ArrayLike, new_dtype: Any) -> Array:
    """The bits of an array read as another dtype.

    Args:
        operand: an array.
        new_dtype: a narrower dtype adds a last axis; a wider one takes it away, which must have the fitting size.

    >>> from purax import lax, numpy as jnp
    >>> lax.bitcast_convert_type(jnp.float32(1), jnp.int32)
    Array(1065353216, dtype=int32)
    """
    return bitcast_convert_type_p.bind(
        array("bitcast_convert_type", operand), new_dtype=dtypes.as_dtype(new_dtype, "new_dtype")
    )


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Floating point numbers rounded to a narrower format, in their own dtype.

    Args:
        operand: an array.
        exponent_bits: of the format, at least 1.
        mantissa_bits: of the format, without the leading one.

    >>> from purax import lax
    >>> lax.reduce_precision(1.1, 8, 3)
    Array(1.125, dtype=float32, weak_type=True)
    """
    return reduce_precision_p.bind(
        array("reduce_precision", operand),
        exponent_bits=integer("reduce_precision", "exponent_bits", exponent_bits),
        mantissa_bits=integer("reduce_precision", "mantissa_bits", mantissa_bits),
    )
