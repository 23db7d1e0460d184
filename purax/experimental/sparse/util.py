"""What the files of sparse arrays share with libraries: descriptions of arrays, and `vmap` over several axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from purax import numpy as jnp
from purax.api.vmap import vmap
from purax.errors import CuSparseEfficiencyWarning, SparseEfficiencyError, SparseEfficiencyWarning
from purax.tree.registry import tree_flatten, tree_unflatten

__all__ = [
    "BCOOProperties",
    "BCSRProperties",
    "COOInfo",
    "CuSparseEfficiencyWarning",
    "Shape",
    "SparseEfficiencyError",
    "SparseEfficiencyWarning",
    "SparseInfo",
    "broadcasting_vmap",
    "nfold_vmap",
]

Shape = tuple[int, ...]


class SparseInfo(NamedTuple):
    """The shape of a sparse array, and what is promised of its indices."""

    shape: Shape
    indices_sorted: bool = False
    unique_indices: bool = False


class COOInfo(NamedTuple):
    """The shape of a COO matrix, and what is promised of its indices."""

    shape: Shape
    rows_sorted: bool = False
    cols_sorted: bool = False


class BCOOProperties(NamedTuple):
    """How the axes of a BCOO array divide, and how many elements it stores."""

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int


class BCSRProperties(NamedTuple):
    """How the axes of a BCSR array divide, and how many elements it stores."""

    n_batch: int
    n_dense: int
    nse: int


def broadcasting_vmap(fun: Callable, in_axes: Any = 0, out_axes: Any = 0) -> Callable:
    """`vmap` in which a batch axis of size 1 fits all sizes.

    Args:
        fun: the function.
        in_axes: as in `purax.vmap`: an integer, or one for each argument.
        out_axes: likewise.

    >>> import purax.numpy as jnp
    >>> from purax.experimental.sparse.util import broadcasting_vmap
    >>> broadcasting_vmap(lambda x, y: x * y)(jnp.ones((1, 3)), jnp.ones((2, 3))).shape
    (2, 3)
    """

    def broadcasted(*args: Any) -> Any:
        axes = in_axes if isinstance(in_axes, tuple | list) else (in_axes,) * len(args)
        sizes = {
            leaf.shape[a] for x, a in zip(args, axes, strict=True) if a is not None for leaf in _leaves(x)
        }
        if len(sizes) < 2:
            return vmap(fun, tuple(axes), out_axes)(*args)
        kept, given = [], []
        for x, a in zip(args, axes, strict=True):
            leaves, tree = tree_flatten(x)
            alone = a is not None and all(leaf.shape[a] == 1 for leaf in leaves)
            kept.append(None if alone else a)
            given.append(tree_unflatten(tree, [jnp.squeeze(leaf, a) for leaf in leaves]) if alone else x)
        return vmap(fun, tuple(kept), out_axes)(*given)

    return broadcasted


def _leaves(x: Any) -> list[Any]:
    return [jnp.asarray(leaf) for leaf in tree_flatten(x)[0]]


def nfold_vmap(fun: Callable, N: int, *, broadcasted: bool = True, in_axes: Any = 0) -> Callable:  # noqa: N803
    """`fun` over `N` batch axes.

    Args:
        fun: the function.
        N: how many.
        broadcasted: whether axes of size 1 fit all sizes.
        in_axes: as in `purax.vmap`.
    """
    for _ in range(N):
        fun = broadcasting_vmap(fun, in_axes) if broadcasted else vmap(fun, in_axes)
    return fun
