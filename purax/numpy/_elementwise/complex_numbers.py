"""The parts of complex numbers."""

from __future__ import annotations

import math

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.numpy._creation.filled_arrays import zeros_like
from purax.numpy._elementwise.families import alias
from purax.numpy._promotion import as_array, as_operand, dtype_of, fused, inexact
from purax.primitives.elementwise.conversion import conj_p, convert_element_type, imag_p, real_p
from purax.primitives.elementwise.elementwise import mul
from purax.primitives.elementwise.transcendental import atan2_p
from purax.typing import ArrayLike


def real(val: ArrayLike, /) -> Array:
    """The real part of each element.

    Args:
        val: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.real(jnp.array([1 + 2j])), jnp.real(jnp.array([3]))
    (Array([1.], dtype=float32), Array([3], dtype=int32))
    """
    val = as_operand(val, "real")
    return real_p.bind(val) if dtypes.is_complex(dtype_of(val)) else as_array(val, "real")


def imag(val: ArrayLike, /) -> Array:
    """The imaginary part of each element; zeros for real numbers.

    Args:
        val: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.imag(jnp.array([1 + 2j])), jnp.imag(jnp.array([3]))
    (Array([2.], dtype=float32), Array([0], dtype=int32))
    """
    val = as_operand(val, "imag")
    dtype = dtype_of(val)
    if dtypes.is_complex(dtype):
        return imag_p.bind(val)
    return zeros_like(val)


def conjugate(x: ArrayLike, /) -> Array:
    """The conjugate of each element.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.conjugate(jnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    x = as_operand(x, "conjugate")
    dtype = dtype_of(x)
    return conj_p.bind(x, input_dtype=dtype) if dtypes.is_complex(dtype) else as_array(x, "conjugate")


# fmt: off
conj = alias("conj", conjugate, "The conjugate of each element; another name of `conjugate`.",
    "jnp.conj(2j)", "Array(0.-2.j, dtype=complex64, weak_type=True)")
# fmt: on


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of each element in the complex plane, from −π to π.

    Args:
        z: an array or a number.
        deg: whether in degrees instead of radians.

    Returns:
        Real numbers.

    >>> import purax.numpy as jnp
    >>> jnp.angle(jnp.array([1j, -1.0, 1.0]), deg=True)
    Array([ 90., 180.,   0.], dtype=float32)
    """
    z = inexact("angle", z)
    return (_angle_in_degrees if deg else _angle)(convert_element_type(z, dtype_of(z)))


@fused(np.angle)
def _angle(z):
    if dtypes.is_complex(dtype_of(z)):
        return atan2_p.bind(imag_p.bind(z), real_p.bind(z))
    return atan2_p.bind(np.zeros((), dtype_of(z)), z)


@fused()
def _angle_in_degrees(z):
    return mul(_angle(z), 180 / math.pi)
