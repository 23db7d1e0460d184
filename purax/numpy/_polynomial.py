"""Polynomials, given as vectors of coefficients, that of the highest power first."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from purax.control_flow.scan import scan
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.numpy._convolution import convolve
from purax.numpy._elementwise.arithmetic import add, subtract
from purax.numpy._programs import as_one_program, strong_array
from purax.numpy._promotion import as_array, broadcast_shapes, common_dtype
from purax.numpy._shape.joining import concatenate
from purax.numpy._shape.rearranging import trim_zeros
from purax.numpy._shape.shaping import broadcast_to, ravel, reshape
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.shape.broadcasting import full
from purax.primitives.shape.slicing import pad
from purax.typing import ArrayLike

_UNROLLED = 16  # as many steps of Horner's rule are written out; more of them become a loop


def _coefficients(name: str, p: Any, position: int = 0, several: bool = False) -> Array:
    x = strong_array(p, name, position)
    x = x if x.ndim else reshape(x, (1,))
    if x.ndim != 1 and not several:
        raise located(ValueError, f"{name}: a polynomial is a vector of coefficients, got shape {x.shape}")
    return x


def _of_one_dtype(*arrays: Array, inexact: bool = False) -> list[Array]:
    dtype = common_dtype(arrays)[0] if len(arrays) > 1 else arrays[0].dtype
    if inexact:
        dtype = dtypes.to_inexact_dtype(dtype)
    return [convert_element_type(x, dtype) for x in arrays]


def _padded(x: Array, size: int) -> Array:
    """With zeros for the powers above."""
    return pad(x, np.zeros((), x.dtype), [(size - x.shape[0], 0, 0)])


def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    Args:
        a1: the coefficients of a polynomial, highest power first.
        a2: those of another.

    >>> import purax.numpy as jnp
    >>> jnp.polyadd(jnp.array([1, 2]), jnp.array([3, 4, 5]))
    Array([3, 5, 7], dtype=int32)
    """
    x, y = _of_one_dtype(_coefficients("polyadd", a1), _coefficients("polyadd", a2, 1))
    size = max(x.shape[0], y.shape[0])
    return add(_padded(x, size), _padded(y, size))


def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials.

    Args:
        a1: the coefficients of a polynomial, highest power first.
        a2: those of another.

    >>> import purax.numpy as jnp
    >>> jnp.polysub(jnp.array([1, 2]), jnp.array([3, 4, 5]))
    Array([-3, -3, -3], dtype=int32)
    """
    x, y = _of_one_dtype(_coefficients("polysub", a1), _coefficients("polysub", a2, 1))
    size = max(x.shape[0], y.shape[0])
    return subtract(_padded(x, size), _padded(y, size))


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials.

    Args:
        a1, a2: the polynomials.
        trim_leading_zeros: whether to leave out leading zeros first, as NumPy does; only for known coefficients.

    Returns:
        The coefficients of the product, floating point or complex numbers.

    >>> import purax.numpy as jnp
    >>> jnp.polymul(jnp.array([1, 2]), jnp.array([1, -2]))
    Array([ 1.,  0., -4.], dtype=float32)
    """
    x, y = _coefficients("polymul", a1), _coefficients("polymul", a2, 1)
    x, y = _of_one_dtype(x, y, inexact=True)
    if trim_leading_zeros:
        x, y = (trim_zeros(one, "f") for one in (x, y))
    x, y = (one if one.size else full((1,), 0, one.dtype) for one in (x, y))
    return convolve(x, y)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """The quotient and the remainder of two polynomials.

    Args:
        u: the polynomial that is divided.
        v: the polynomial that it is divided by.
        trim_leading_zeros: whether to leave out the leading zeros of the remainder, as NumPy does; only for known
            coefficients.

    Returns:
        The coefficients of the quotient and of the remainder.

    >>> import purax.numpy as jnp
    >>> jnp.polydiv(jnp.array([1.0, -3.0, 2.0]), jnp.array([1.0, -1.0]))
    (Array([ 1., -2.], dtype=float32), Array([0., 0., 0.], dtype=float32))
    """
    x, y = _of_one_dtype(_coefficients("polydiv", u), _coefficients("polydiv", v, 1), inexact=True)
    steps = x.shape[0] - y.shape[0] + 1
    if steps <= 0 or not y.size:
        return full((1,), 0, x.dtype), x
    quotient, rest = _divide(x, y)
    return quotient, trim_zeros(rest, "f") if trim_leading_zeros else rest


@as_one_program()
def _divide(x, y):
    size, width = x.shape[0], y.shape[0]
    factors = []
    for i in range(size - width + 1):
        factor = x[i] / y[0]
        factors.append(factor.reshape(1))
        taken = pad(factor * y, np.zeros((), x.dtype), [(i, size - width - i, 0)])
        x = x - taken
    return concatenate(factors), x


def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The derivative of a polynomial.

    Args:
        p: the polynomial.
        m: how often to differentiate.

    Returns:
        The coefficients of the derivative, floating point or complex numbers.

    >>> import purax.numpy as jnp
    >>> jnp.polyder(jnp.array([1, 2, 3]))
    Array([2., 2.], dtype=float32)
    """
    order = operator.index(m)
    if order < 0:
        raise located(ValueError, f"polyder: order of derivative must not be negative, got {order}")
    (x,) = _of_one_dtype(_coefficients("polyder", p), inexact=True)
    size = x.shape[0]
    if order >= size:
        return x[:0]
    powers = np.arange(size - 1, order - 1, -1, dtype=np.float64)
    factors = np.prod([powers - i for i in range(order)], axis=0) if order else np.ones(size)
    return x[: size - order] * factors.astype(x.dtype)


def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """The integral of a polynomial.

    Args:
        p: the polynomial.
        m: how often to integrate.
        k: the constants of integration, the first one first; one number stands for all, 0 if not given.

    Returns:
        The coefficients of the integral.

    >>> import purax.numpy as jnp
    >>> jnp.polyint(jnp.array([2.0, 2.0]), k=jnp.array([5.0]))
    Array([1., 2., 5.], dtype=float32)
    """
    order = operator.index(m)
    if order < 0:
        raise located(ValueError, f"polyint: order of integral must not be negative, got {order}")
    x = _coefficients("polyint", p)
    constants = ravel(as_array(0 if k is None else k, "polyint", 2))
    if constants.shape[0] == 1:
        constants = broadcast_to(constants, (order,))
    if constants.shape[0] != order:
        raise located(
            ValueError,
            f"polyint: k must be a number or a vector of m={order} numbers, got shape {constants.shape}",
        )
    x, constants = _of_one_dtype(x, constants, inexact=True)
    if not order:
        return x
    size = x.shape[0] + order
    powers = np.arange(size - 1, -1, -1, dtype=np.float64)  # of the result
    divisors = np.prod([np.maximum(powers - i, 1) for i in range(order)], axis=0)
    return concatenate([x, constants]) / divisors.astype(x.dtype)


def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The values of a polynomial.

    Args:
        p: the polynomial, or several of them: then further axes say which.
        x: where to compute it; an array of any shape.
        unroll: how many steps of a long polynomial are written out in one pass of a loop.

    Returns:
        The values, in the shape of `x`; for several polynomials, in the shape of `p[0]` and `x` broadcast together.

    >>> import purax.numpy as jnp
    >>> jnp.polyval(jnp.array([1.0, 0.0, -1.0]), jnp.array([2.0, 3.0]))
    Array([3., 8.], dtype=float32)
    """
    polynomials = _coefficients("polyval", p, several=True)
    coefficients, points = _of_one_dtype(polynomials, as_array(x, "polyval", 1))
    return _horner(coefficients, points, unroll=operator.index(unroll))


@as_one_program(lambda coefficients, points, *, unroll: _horner_on_host(coefficients, points))
def _horner(coefficients, points, *, unroll):
    size = coefficients.shape[0]
    value = full(broadcast_shapes(points.shape, coefficients.shape[1:]), 0, points.dtype)
    if size <= _UNROLLED:
        for i in range(size):
            value = value * points + coefficients[i]
        return value
    return scan(lambda total, c: (total * points + c, None), value, coefficients, unroll=unroll)[0]


def _horner_on_host(coefficients, points):
    value = np.zeros(np.broadcast_shapes(points.shape, coefficients.shape[1:]), points.dtype)
    for c in coefficients:
        value = value * points + c
    return value
