"""The larger and the smaller of two numbers, and the step function, on each element."""

from __future__ import annotations

import numpy as np

from purax.core.array import Array
from purax.numpy._elementwise.comparison import greater
from purax.numpy._elementwise.families import promoted
from purax.numpy._promotion import (
    binary_even,
    fused,
    promote_inexact,
    shape_of,
    strong,
)
from purax.primitives.elementwise.arithmetic import max_p, min_p
from purax.primitives.elementwise.logic import gt, lt, ne, or_, select
from purax.typing import ArrayLike

# fmt: off
maximum = promoted("maximum", max_p, "The larger of x and y on each element; NaN if one of them is.",
    "jnp.maximum(jnp.array([1, 5]), 3)", "Array([3, 5], dtype=int32)")
minimum = promoted("minimum", min_p, "The smaller of x and y on each element; NaN if one of them is.",
    "jnp.minimum(jnp.array([1, 5]), 3)", "Array([1, 3], dtype=int32)")
# fmt: on


def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of x1 and x2 on each element; a NaN gives way to a number.

    Args:
        x1: an array or a number.
        x2: another, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.fmax(jnp.array([1.0, jnp.nan]), 0.5)
    Array([1. , 0.5], dtype=float32)
    """
    _, x, y = binary_even("fmax", x1, x2)
    return _fmax(x, y)


@fused(lambda x, y: np.where((x > y) | (y != y), x, y))
def _fmax(x, y):
    return select(or_(greater(x, y), ne(y, y)), x, y)


def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of x1 and x2 on each element; a NaN gives way to a number.

    Args:
        x1: an array or a number.
        x2: another, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.fmin(jnp.array([1.0, jnp.nan]), 2.0)
    Array([1., 2.], dtype=float32)
    """
    _, x, y = binary_even("fmin", x1, x2)
    return _fmin(x, y)


@fused(lambda x, y: np.where((y > x) | (y != y), x, y))
def _fmin(x, y):
    return select(or_(greater(y, x), ne(y, y)), x, y)


def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """0 where x1 < 0, x2 where x1 = 0, 1 where x1 > 0.

    Args:
        x1: an array or a number.
        x2: the value at 0, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.heaviside(jnp.array([-1.0, 0.0, 2.0]), 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    x, y = promote_inexact("heaviside", x1, x2)
    result = _heaviside(x, y)
    return strong(result) if shape_of(x) else result


@fused(np.heaviside)
def _heaviside(x, y):
    not_positive = select(lt(x, 0), 0, select(ne(x, x), x, y))
    return select(gt(x, 0), 1, not_positive)
