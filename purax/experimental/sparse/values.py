"""Sparse arrays taken apart: buffers in an environment, and values that say which of them an array is made of.

Functions can so be written on flat lists of buffers; `sparsify_raw` runs one for dense arrays on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from purax import numpy as jnp
from purax.core.avals import ShapedArray, aval_of
from purax.core.jaxpr import ClosedJaxpr, Jaxpr
from purax.experimental.sparse.base import JAXSparse
from purax.experimental.sparse.bcoo import BCOO
from purax.experimental.sparse.compressed import BCSR
from purax.experimental.sparse.transform import run, sparsify
from purax.tree_util import tree_flatten, tree_map

__all__ = [
    "ArrayOrSparse",
    "SparsifyEnv",
    "SparsifyValue",
    "arrays_to_spvalues",
    "eval_sparse",
    "sparsify_raw",
    "spvalues_to_arrays",
    "spvalues_to_avals",
]

ArrayOrSparse = Any


class SparsifyValue(NamedTuple):
    """An array, as the numbers of its buffers in a `SparsifyEnv`."""

    shape: tuple[int, ...]
    data_ref: int | None
    indices_ref: int | None = None
    indptr_ref: int | None = None
    indices_sorted: bool | None = False
    unique_indices: bool | None = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def is_sparse(self) -> bool:
        """Whether it has indices."""
        return self.indices_ref is not None

    def is_dense(self) -> bool:
        """Whether it has none."""
        return self.indices_ref is None

    def is_bcoo(self) -> bool:
        """Whether it is a BCOO array."""
        return self.is_sparse() and self.indptr_ref is None

    def is_bcsr(self) -> bool:
        """Whether it is a BCSR array."""
        return self.is_sparse() and self.indptr_ref is not None


class SparsifyEnv:
    """The buffers that values are made of.

    Args:
        bufs: the first ones.
    """

    def __init__(self, bufs: Sequence[Any] = ()):
        self._buffers = list(bufs)

    def _push(self, buffer: Any) -> int:
        self._buffers.append(jnp.asarray(buffer))
        return len(self._buffers) - 1

    def data(self, spvalue: SparsifyValue) -> Any:
        """The elements of a value."""
        return self._buffers[_known(spvalue.data_ref, "data")]

    def indices(self, spvalue: SparsifyValue) -> Any:
        """The indices of a value."""
        return self._buffers[_known(spvalue.indices_ref, "indices")]

    def indptr(self, spvalue: SparsifyValue) -> Any:
        """The pointers of a BCSR value."""
        return self._buffers[_known(spvalue.indptr_ref, "indptr")]

    def dense(self, data: Any) -> SparsifyValue:
        """Adds a dense array."""
        return SparsifyValue(tuple(jnp.shape(data)), self._push(data))

    def sparse(
        self,
        shape: Sequence[int],
        data: Any = None,
        indices: Any = None,
        indptr: Any = None,
        *,
        data_ref: int | None = None,
        indices_ref: int | None = None,
        indptr_ref: int | None = None,
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> SparsifyValue:
        """Adds a sparse array, of new buffers or of some that are there."""
        data_ref = self._push(data) if data is not None else data_ref
        indices_ref = self._push(indices) if indices is not None else indices_ref
        indptr_ref = self._push(indptr) if indptr is not None else indptr_ref
        return SparsifyValue(tuple(shape), data_ref, indices_ref, indptr_ref, indices_sorted, unique_indices)


def _known(number: int | None, what: str) -> int:
    if number is None:
        raise RuntimeError(f"this value has no {what}")
    return number


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


def arrays_to_spvalues(spenv: SparsifyEnv, args: Any) -> Any:
    """A tree of arrays, of which some are sparse, as a tree of values.

    Args:
        spenv: gets their buffers.
        args: the tree.
    """

    def value(x: Any) -> SparsifyValue:
        if isinstance(x, BCOO):
            promises = {"indices_sorted": x.indices_sorted, "unique_indices": x.unique_indices}
            return spenv.sparse(x.shape, x.data, x.indices, **promises)
        if isinstance(x, BCSR):
            promises = {"indices_sorted": x.indices_sorted, "unique_indices": x.unique_indices}
            return spenv.sparse(x.shape, x.data, x.indices, x.indptr, **promises)
        return spenv.dense(x)

    return tree_map(value, args, is_leaf=_is_sparse)


def _is_value(x: Any) -> bool:
    return isinstance(x, SparsifyValue)


def spvalues_to_arrays(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """A tree of values as a tree of arrays.

    Args:
        spenv: has their buffers.
        spvalues: the tree.
    """

    def array(value: SparsifyValue) -> Any:
        promises: Any = {"indices_sorted": value.indices_sorted, "unique_indices": value.unique_indices}
        if value.is_bcsr():
            parts = (spenv.data(value), spenv.indices(value), spenv.indptr(value))
            return BCSR(parts, shape=value.shape, **promises)
        if value.is_bcoo():
            return BCOO((spenv.data(value), spenv.indices(value)), shape=value.shape, **promises)
        return spenv.data(value)

    return tree_map(array, spvalues, is_leaf=_is_value)


def spvalues_to_avals(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """A tree of values as a tree of the types of the arrays.

    Args:
        spenv: has their buffers.
        spvalues: the tree.
    """

    def type_of(value: SparsifyValue) -> ShapedArray:
        aval = aval_of(spenv.data(value))
        return ShapedArray(value.shape, aval.dtype, aval.weak_type)

    return tree_map(type_of, spvalues, is_leaf=_is_value)


def sparsify_raw(f: Callable) -> Callable:
    """`sparsify` on values: the function of an environment and values that returns values and their structure.

    Args:
        f: a function of dense arrays.
    """

    def function(spenv: SparsifyEnv, *spvalues: Any, **params: Any) -> tuple[list[SparsifyValue], Any]:
        results = sparsify(f)(*spvalues_to_arrays(spenv, spvalues), **params)
        leaves, tree = tree_flatten(results, is_leaf=_is_sparse)
        return [arrays_to_spvalues(spenv, x) for x in leaves], tree

    return function


def eval_sparse(
    jaxpr: Jaxpr, consts: Sequence[Any], spvalues: Sequence[SparsifyValue], spenv: SparsifyEnv
) -> list[SparsifyValue]:
    """Runs a program on values.

    Args:
        jaxpr: the program.
        consts: of the program.
        spvalues: the arguments.
        spenv: has their buffers, and gets those of the results.
    """
    arguments = [spvalues_to_arrays(spenv, value) for value in spvalues]
    results = run(ClosedJaxpr(jaxpr, list(consts)), arguments)
    return [arrays_to_spvalues(spenv, x) for x in results]
