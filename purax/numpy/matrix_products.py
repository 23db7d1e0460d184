"""Products of several matrices: powers, and chains in the order that costs least."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from purax.core import dtypes, source
from purax.core.array import Array
from purax.numpy.linear_algebra import matmul
from purax.numpy.matrices import eye
from purax.numpy.promotion import as_array, convert
from purax.numpy.shaping import broadcast_to, reshape
from purax.ops.lu import solve
from purax.typing import ArrayLike


def matrix_power(a: ArrayLike, n: int) -> Array:
    """The n-th power of the square matrices in the last two axes, by repeated squaring.

    Args:
        a: the matrices.
        n: the exponent; for a negative one the matrices are inverted.

    Returns:
        The powers.

    >>> import purax.numpy as jnp
    >>> matrix_power(jnp.array([[1, 1], [0, 1]]), 3)
    Array([[1, 3],
           [0, 1]], dtype=int32)
    """
    x = as_array(a, "matrix_power")
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise source.with_location(
            TypeError(f"matrix_power: the last 2 dimensions of the array must be square, got shape {x.shape}")
        )
    try:
        exponent = operator.index(n)
    except TypeError:
        raise source.with_location(
            TypeError(f"matrix_power: exponent must be an integer, got {n!r}")
        ) from None
    if exponent == 0:
        return broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape)
    if exponent < 0:
        x = convert(x, dtypes.to_inexact_dtype(x.dtype), x.weak_type)
        unit = broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape)
        x, exponent = solve(x, unit), -exponent
    while exponent % 2 == 0:
        x, exponent = matmul(x, x), exponent // 2
    result = x
    while exponent > 1:
        x, exponent = matmul(x, x), exponent // 2
        if exponent % 2:
            result = matmul(result, x)
    return result


def multi_dot(arrays: Sequence[ArrayLike], *, precision: Any = None) -> Array:
    """The product of several matrices, multiplied in the order that takes the fewest operations.

    Args:
        arrays: two or more matrices; the first and the last may be vectors.
        precision: see `lax.Precision`.

    Returns:
        The product.

    >>> import purax.numpy as jnp
    >>> multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4)])
    Array([12., 12.], dtype=float32)
    """
    matrices = [as_array(x, "multi_dot", i) for i, x in enumerate(arrays)]
    count = len(matrices)
    if count < 2:
        raise source.with_location(ValueError(f"multi_dot requires at least two arrays; got {count}"))
    shapes = [x.shape for x in matrices]
    if any(len(s) != 2 for s in shapes[1:-1]) or any(len(s) not in (1, 2) for s in (shapes[0], shapes[-1])):
        raise source.with_location(
            ValueError(
                "multi_dot: input arrays must all be two-dimensional, except for the first and last array which may be "
                f"1 or 2 dimensional. Got array shapes {shapes}"
            )
        )
    is_row, is_column = len(shapes[0]) == 1, len(shapes[-1]) == 1
    if is_row:
        matrices[0] = reshape(matrices[0], (1, -1))
    if is_column:
        matrices[-1] = reshape(matrices[-1], (-1, 1))
    for left, right in zip(matrices, matrices[1:], strict=False):
        if left.shape[1] != right.shape[0]:
            raise source.with_location(
                ValueError(
                    f"multi_dot: shapes {left.shape} and {right.shape} of neighbours do not fit; got {shapes}"
                )
            )
    product = _multiply(matrices, _best_splits([x.shape for x in matrices]), 0, count - 1, precision)
    shape = product.shape[1:] if is_row else product.shape
    return reshape(product, shape[:-1] if is_column else shape)


def _best_splits(shapes: list[tuple[int, ...]]) -> dict[tuple[int, int], int]:
    """For each run of matrices, after which one to cut it: the least number of products of elements."""
    count = len(shapes)
    sizes = [shapes[0][0], *[s[1] for s in shapes]]
    cost: dict[tuple[int, int], int] = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(2, count + 1):
        for first in range(count - length + 1):
            last = first + length - 1
            cost[first, last], split[first, last] = min(
                (cost[first, k] + cost[k + 1, last] + sizes[first] * sizes[k + 1] * sizes[last + 1], k)
                for k in range(first, last)
            )
    return split


def _multiply(matrices: list[Array], split: dict, first: int, last: int, precision: Any) -> Array:
    if first == last:
        return matrices[first]
    middle = split[first, last]
    left = _multiply(matrices, split, first, middle, precision)
    right = _multiply(matrices, split, middle + 1, last, precision)
    return matmul(left, right, precision=precision)
