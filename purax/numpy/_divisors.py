"""Common divisors and multiples of integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.control_flow.while_loop import while_loop
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.numpy._elementwise.arithmetic import any_is_not_zero
from purax.numpy._promotion import as_operand, broadcast_operands, common_dtype, dtype_of, fused, promote
from purax.primitives.elementwise.arithmetic import abs_, div, rem
from purax.primitives.elementwise.conversion import convert_element_type, convert_element_type_p
from purax.primitives.elementwise.elementwise import mul
from purax.primitives.elementwise.logic import eq, select, unsigned_dtype
from purax.typing import ArrayLike


def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor of x1 and x2, on each element.

    Args:
        x1: an array of integers.
        x2: another, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.gcd(jnp.array([12, 18]), 8)
    Array([4, 2], dtype=int32)
    """
    x, y = _whole("gcd", x1, x2)
    return _as_weak_as(_gcd(x, y), x1, x2)


def _whole(name: str, x1, x2):
    x, y = promote(name, x1, x2)
    if not dtypes.is_integer(dtype_of(x)):
        raise located(ValueError, f"{name} takes integers, got dtype {dtypes.dtype_name(dtype_of(x))}")
    return x, y


def _as_weak_as(result: Array, x1: Any, x2: Any) -> Array:
    """The result, weak if it has no axes and the operands are; it came through unsigned integers."""
    is_weak = not result.aval.shape and common_dtype([as_operand(x1, "gcd"), as_operand(x2, "gcd", 1)])[1]
    if result.aval.weak_type == is_weak:
        return result
    return convert_element_type_p.bind(result, new_dtype=result.aval.dtype, weak_type=is_weak)


def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple of x1 and x2, on each element.

    Args:
        x1: an array of integers.
        x2: another, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.lcm(jnp.array([4, 6]), 10)
    Array([20, 30], dtype=int32)
    """
    x, y = _whole("lcm", x1, x2)
    return _as_weak_as(_lcm(x, y), x1, x2)


def _magnitude(x):
    """|x| as an unsigned integer, which holds that of the lowest integer, too."""
    dtype = dtype_of(x)
    return x if dtypes.is_unsigned(dtype) else convert_element_type(abs_(x), unsigned_dtype(dtype))


@fused(lambda x, y: np.gcd(x, y).astype(x.dtype))  # NumPy has no integers of four bits
def _gcd(x, y):
    """Euclid's algorithm, on all elements at once, until the slowest is done."""
    dtype = dtype_of(x)
    x, y = broadcast_operands("gcd", [_magnitude(x), _magnitude(y)], scalars=True)

    def step(state):
        x, y = state
        done = eq(y, 0)
        return select(done, x, y), select(done, y, rem(x, select(done, 1, y)))

    return convert_element_type(while_loop(lambda state: any_is_not_zero(state[1]), step, (x, y))[0], dtype)


@fused(lambda x, y: np.lcm(x, y).astype(x.dtype))
def _lcm(x, y):
    first, second = _magnitude(x), _magnitude(y)
    divisor = _gcd(first, second)
    multiple = mul(first, div(second, select(eq(divisor, 0), 1, divisor)))
    return convert_element_type(multiple, dtype_of(x))
