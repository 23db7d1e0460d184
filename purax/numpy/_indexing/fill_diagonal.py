"""`fill_diagonal`: a diagonal is every n-th element of the flattened array, so filling it is an update of a slice."""

from __future__ import annotations

import numpy as np

from purax.core.array import Array
from purax.core.source import located
from purax.numpy._indexing.indexing import getitem
from purax.numpy._indexing.update import update
from purax.numpy._promotion import as_array
from purax.primitives.shape.reshaping import reshape
from purax.typing import ArrayLike


def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array:
    """A copy of an array with its main diagonal filled.

    Args:
        a: an array with at least two axes; if there are more than two, all have the same size.
        val: the value, or values that are repeated along the diagonal.
        wrap: whether the diagonal of a tall matrix starts again below the square, leaving out a row.
        inplace: must be False, since arrays are immutable; NumPy's function changes its argument.

    Returns:
        The array, of the shape and dtype of `a`.

    >>> import purax.numpy as jnp
    >>> fill_diagonal(jnp.zeros((2, 3)), 5., inplace=False)
    Array([[5., 0., 0.],
           [0., 5., 0.]], dtype=float32)
    """
    if inplace:
        raise located(
            NotImplementedError,
            "arrays are immutable: write a = jnp.fill_diagonal(a, val, inplace=False) and use the result",
        )
    x, values = as_array(a, "fill_diagonal"), as_array(val, "fill_diagonal", 1)
    shape = x.aval.shape
    if len(shape) < 2:
        raise located(ValueError, f"fill_diagonal: the array must have at least 2 axes, got shape {shape}")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise located(
            ValueError,
            f"fill_diagonal: all axes of an array with more than two must have the same size, got {shape}",
        )
    step = 1 + int(np.sum(np.cumprod(shape[:0:-1])))
    end = None if wrap or len(shape) > 2 else shape[1] * shape[1]
    part = slice(None, end, step)
    if values.aval.shape:
        count = len(range(*part.indices(x.aval.size)))
        flat = reshape(values, (values.aval.size,))
        if not values.aval.size and count:
            raise located(ValueError, "fill_diagonal: there are no values to fill the diagonal with")
        values = getitem(flat, np.arange(count) % max(values.aval.size, 1))
    return reshape(update(reshape(x, (x.aval.size,)), part, values, "set"), shape)
