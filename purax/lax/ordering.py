"""Values as they are, for the eyes of differentiation, staging and the compiler."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import aval_of
from purax.lax.operands import NUMBERS, array
from purax.primitives.barrier import dce_sink_p, optimization_barrier_p
from purax.primitives.elementwise.arithmetic import copy_p
from purax.primitives.shape.broadcasting import full
from purax.primitives.stop_gradient import stop_gradient_p
from purax.tree.registry import tree_flatten, tree_unflatten
from purax.tree_util import tree_map
from purax.typing import ArrayLike


def stop_gradient(x: Any) -> Any:
    """The values of `x`, an array or a tree of arrays, as constants for differentiation.

    >>> import purax as px
    >>> px.grad(lambda x: x * px.lax.stop_gradient(x))(3.0)
    Array(3., dtype=float32, weak_type=True)
    """

    def stopped(leaf: Any) -> Any:
        if type(leaf) in NUMBERS or not dtypes.is_inexact(aval_of(leaf).dtype):
            return leaf
        return stop_gradient_p.bind(array("stop_gradient", leaf))

    return tree_map(stopped, x)


def optimization_barrier(operand: Any, /) -> Any:
    """The arrays of a tree; the compiler computes all of them before anything that uses one of the results.

    It moves nothing across, nor merges what is on different sides. Derivatives and batches go through.

    >>> import purax as px
    >>> px.jit(lambda x: px.lax.optimization_barrier(x + 1) * 2)(3.0)
    Array(8., dtype=float32, weak_type=True)
    """
    leaves, tree = tree_flatten(operand)
    arrays = [array("optimization_barrier", x, i) for i, x in enumerate(leaves)]
    return tree_unflatten(tree, optimization_barrier_p.bind(*arrays) if arrays else [])


def create_token(_: Any = None) -> Array:
    """A value without content, to be passed along what should happen in order; see `after_all`.

    >>> from purax import lax
    >>> lax.create_token().size
    0
    """
    return full((0,), False, np.bool_)


def after_all(*operands: Any) -> Array:
    """A token that is there once all the given tokens are.

    >>> from purax import lax
    >>> lax.after_all(lax.create_token(), lax.create_token()).size
    0
    """
    return optimization_barrier((create_token(), *operands))[0]


def stage(x: ArrayLike, /) -> Array:
    """A number or a NumPy array as a value of the program that is being traced, or as an array where none is.

    >>> from purax import lax
    >>> lax.stage(1)
    Array(1, dtype=int32, weak_type=True)
    """
    return copy_p.bind(array("stage", x))


def dce_sink(val: Any, *, prevent_mlir_dce: bool = False) -> None:
    """Keeps the values of a tree, and what computes them, in the program, though nothing uses them.

    Args:
        val: an array, or a tree of arrays.
        prevent_mlir_dce: whether they stay in the StableHLO text, too. (They always do.)

    >>> import purax as px, purax.numpy as jnp
    >>> def f(x):
    ...     px.lax.dce_sink(jnp.sin(x))
    ...     return x
    >>> "sin" in str(px.make_jaxpr(f)(1.0))
    True
    """
    arrays = [array("dce_sink", x, i) for i, x in enumerate(tree_flatten(val)[0])]
    dce_sink_p.bind(*arrays)
