"""`error_if`: a check at run time, out of compiled programs too."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax import errors
from purax.callbacks.debug import show
from purax.control_flow.branches import cond
from purax.core import source
from purax.core.trace import Tracer
from purax.errors import shown
from purax.interpreters.arguments import to_array
from purax.primitives.barrier import optimization_barrier_p
from purax.primitives.elementwise.logic import ne
from purax.primitives.reductions.reduction import reduce_or
from purax.tree.registry import tree_flatten, tree_unflatten


class Raiser:
    """Raises an error if a condition holds; equal ones are the same callback."""

    __name__ = "error_if"

    def __init__(self, message: str):
        self.key = ("error_if", message)

    def __call__(self, condition: Any) -> None:
        if np.any(condition):
            raise errors.CheckFailedError(self.key[1])


def error_if(x: Any, pred: Any, message: str) -> Any:
    """Raises an error when the program runs, if a condition holds; works in compiled programs and out of them.

    Args:
        x: what is returned: an array, or a tree of them.
        pred: the condition under which it is an error, a boolean or an array of booleans, any of which counts.
        message: what the error says.

    Returns:
        `x`.

    Raises:
        purax.errors.CheckFailedError: the condition held. From a compiled program it comes at the call, or where
            its result is first waited for, or from `purax.effects_barrier()`.

    >>> import purax as px, purax.numpy as jnp
    >>> @px.jit
    ... def log(x):
    ...     x = px.error_if(x, x <= 0, "log needs positive numbers")
    ...     return jnp.log(x)
    >>> log(jnp.array([1.0, -1.0])).block_until_ready()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    purax.errors.CheckFailedError: log needs positive numbers
      at ...
    """
    if not isinstance(message, str):
        raise TypeError(
            f"error_if: the message must be a string, got {shown(message)} of type {type(message).__name__}"
        )
    condition = to_array(pred)
    if condition.aval.dtype != np.bool_:
        condition = ne(condition, 0)
    known = condition.concrete_or_none() if isinstance(condition, Tracer) else condition
    if known is not None:
        if np.any(np.asarray(known)):
            raise source.located(errors.CheckFailedError, message)
        return x
    located = source.located(errors.CheckFailedError, message).args[0]
    anywhere = reduce_or(condition, tuple(range(condition.aval.ndim)))
    # The program leaves for Python only where something is wrong.
    cond(anywhere, lambda: show(Raiser(located), (condition,), {}, False, "error_if"), lambda: None)
    # An argument that is returned as it is would not be part of the program, and not fail with it.
    leaves, tree = tree_flatten(x)
    return tree_unflatten(tree, optimization_barrier_p.bind(*map(to_array, leaves)))
