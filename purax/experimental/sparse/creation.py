"""New sparse arrays: `empty`, `eye`, `random_bcoo`; and back to dense ones: `todense`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from purax import numpy as jnp
from purax import random
from purax.core import dtypes
from purax.core.limits import finite, shallow
from purax.core.source import located
from purax.errors import shown
from purax.experimental.sparse.base import JAXSparse
from purax.experimental.sparse.bcoo import BCOO, over_batches
from purax.experimental.sparse.compressed import BCSR, COO, CSC, CSR
from purax.tree_util import tree_map

_FORMATS: dict[str, Any] = {"bcoo": BCOO, "bcsr": BCSR, "coo": COO, "csr": CSR, "csc": CSC}


def _format(name: str, sparse_format: str) -> Any:
    if shallow(sparse_format) not in _FORMATS:
        raise located(
            ValueError,
            f"{name}: sparse_format must be one of {', '.join(map(repr, _FORMATS))}, got {shown(sparse_format)}",
        )
    return _FORMATS[sparse_format]


def empty(
    shape: Sequence[int],
    dtype: Any = None,
    index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> JAXSparse:
    """A sparse array without elements.

    >>> from purax.experimental import sparse
    >>> sparse.empty((2, 3))
    BCOO(float32[2, 3], nse=0)
    """
    return _format("empty", sparse_format)._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(
    N: int,  # noqa: N803
    M: int | None = None,  # noqa: N803
    k: int = 0,
    dtype: Any = None,
    index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> JAXSparse:
    """A sparse matrix with ones on a diagonal.

    >>> from purax.experimental import sparse
    >>> sparse.eye(2, 3, k=1).todense()
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    N = operator.index(N)  # noqa: N806
    M = N if M is None else operator.index(M)  # noqa: N806
    return _format("eye", sparse_format)._eye(N, M, k, dtype=dtype, index_dtype=index_dtype, **kwds)


def todense(arr: Any) -> Any:
    """An array, or a pytree of arrays, with sparse arrays as dense ones.

    >>> import purax.numpy as jnp
    >>> from purax.experimental import sparse
    >>> sparse.todense([sparse.eye(1), 2])
    [Array([[1.]], dtype=float32), 2]
    """
    is_sparse = lambda x: isinstance(x, JAXSparse)  # noqa: E731
    return tree_map(lambda x: x.todense() if is_sparse(x) else x, arr, is_leaf=is_sparse)


def random_bcoo(
    key: Any,
    shape: Sequence[int],
    *,
    dtype: Any = float,
    indices_dtype: Any = None,
    nse: float | int = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable = random.uniform,
    **kwds: Any,
) -> BCOO:
    """A sparse array with random elements at random places.

    Args:
        key: a random key.
        shape: of the array.
        dtype: of the elements.
        indices_dtype: of the indices, int32 if None.
        nse: how many elements each batch has, or the share of all, if it is less than 1.
        n_batch, n_dense: the numbers of batch and dense axes.
        unique_indices: whether all places differ.
        sorted_indices: whether they are in order.
        generator: a function of `purax.random` with further arguments `kwds`.
    """
    shape = tuple(operator.index(n) for n in finite(shape))
    n_sparse = len(shape) - n_batch - n_dense
    if n_sparse < 0 or n_batch < 0 or n_dense < 0:
        raise located(
            ValueError,
            f"random_bcoo: an array of shape {shape} cannot have n_batch={n_batch} and n_dense={n_dense}",
        )
    batch, sparse = shape[:n_batch], shape[n_batch : n_batch + n_sparse]
    size = math.prod(sparse)
    count = math.ceil(nse * size) if 0 < nse < 1 else operator.index(cast(Any, nse))
    if not 0 <= count <= size and unique_indices:
        raise located(
            ValueError, f"random_bcoo: nse must be between 0 and {size}, the number of places, got {nse}"
        )
    data_key, index_key = random.split(key)
    keys = random.split(index_key, math.prod(batch)).reshape((*batch, *index_key.shape))

    def places(key: Any) -> Any:
        if unique_indices:
            flat = random.permutation(key, size)[:count]
        else:
            flat = random.randint(key, (count,), 0, max(size, 1))
        flat = jnp.sort(flat) if sorted_indices else flat
        found = jnp.unravel_index(flat, sparse) if sparse else ()
        dtype = indices_dtype or np.int32
        return jnp.stack(found, axis=1).astype(dtype) if found else jnp.zeros((count, 0), dtype)

    indices = over_batches(places, n_batch)(keys)
    kind = dtypes.canonicalize_dtype(dtype)
    data = generator(data_key, shape=(*batch, count, *shape[n_batch + n_sparse :]), dtype=kind, **kwds)
    return BCOO((data, indices), shape=shape, unique_indices=unique_indices, indices_sorted=sorted_indices)
