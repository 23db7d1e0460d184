"""A pytree of arrays as one vector, and back: `ravel_pytree`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.primitives.elementwise.conversion import convert_element_type
from purax.tree_util import tree_flatten, tree_unflatten


class _Unravel:
    """The way back from a vector to a pytree. Equal ones compare and hash alike, so that `jit` can have it static."""

    def __init__(self, tree: Any, avals: tuple, dtype: Any):
        self.key = (tree, avals, dtype)

    def __call__(self, vector: Array) -> Any:
        tree, avals, dtype = self.key
        vector = jnp.asarray(vector)
        size = sum(aval.size for aval in avals)
        if vector.dtype != dtype:
            raise located(
                TypeError,
                f"the function of ravel_pytree takes a vector of {dtype}, got {vector.aval.str_short()}",
            )
        if vector.shape != (size,):
            raise located(
                ValueError,
                f"the function of ravel_pytree takes a vector of shape ({size},), got {vector.shape}",
            )
        leaves, start = [], 0
        for aval in avals:
            part = vector[start : start + aval.size].reshape(aval.shape)
            leaves.append(convert_element_type(part, aval.dtype))
            start += aval.size
        return tree_unflatten(tree, leaves)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unravel) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Array], Any]]:
    """All leaves of a pytree in one vector, and the function that makes a pytree of such a vector.

    Args:
        pytree: arrays and numbers. Their dtypes are promoted to a common one.

    Returns:
        The vector, and a function that takes vectors of its size and dtype back to the pytree's structure, shapes
        and dtypes.

    >>> import purax.numpy as jnp
    >>> from purax.flatten_util import ravel_pytree
    >>> vector, unravel = ravel_pytree({"a": jnp.ones(2), "b": 3})
    >>> vector
    Array([1., 1., 3.], dtype=float32)
    >>> unravel(2 * vector)
    {'a': Array([2., 2.], dtype=float32), 'b': Array(6, dtype=int32)}
    """
    leaves, tree = tree_flatten(pytree)
    if not leaves:
        return jnp.zeros(0), _Unravel(tree, (), np.dtype(dtypes.default_float()))
    arrays = [jnp.asarray(leaf) for leaf in leaves]
    dtype = dtypes.result_type(*leaves)
    vector = jnp.concatenate([jnp.ravel(x).astype(dtype) for x in arrays])
    return vector, _Unravel(tree, tuple(x.aval for x in arrays), dtype)
