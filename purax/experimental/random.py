"""A generator of random numbers that keeps its own state, in the manner of `numpy.random.default_rng`.

Its state is a counter in a `Ref`: draw number n uses the key `fold_in(base, n)`. So it works in transformed functions
as references do, and every draw is one that `purax.random` makes of that key.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax import random
from purax.core.array import Array
from purax.core.limits import finite
from purax.core.source import located
from purax.core.trace import current
from purax.interpreters.arguments import to_array
from purax.numpy._creation.filled_arrays import zeros
from purax.ref import Ref, new_ref
from purax.tree_util import register_pytree_node_class
from purax.typing import ArrayLike, DTypeLike

__all__ = ["StatefulPRNG", "stateful_rng"]

Size = int | Sequence[int] | None


@register_pytree_node_class
class StatefulPRNG:
    """A random generator with a state; `stateful_rng` makes it.

    Attributes:
        _base_key: the typed key of which all its keys are made.
        _counter: how many keys it has given, in a `Ref`.

    >>> from purax.experimental import random
    >>> rng = random.stateful_rng(42)
    >>> float(rng.uniform()) != float(rng.uniform())
    True
    """

    _base_key: Array
    _counter: Ref

    def __init__(self, _base_key: Array, _counter: Ref):
        self._base_key, self._counter = _base_key, _counter

    def tree_flatten(self) -> tuple[tuple[Any, Any], tuple[()]]:
        return (self._base_key, self._counter), ()

    @classmethod
    def tree_unflatten(cls, _: tuple[()], parts: Any) -> StatefulPRNG:
        return cls(*parts)

    def __repr__(self) -> str:
        return f"StatefulPRNG(_base_key={self._base_key!r}, _counter={self._counter!r})"

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """The next key, independent of all others; with a shape, an array of keys.

        Args:
            shape: the shape of the array of keys.
        """
        if self._base_key.ndim:
            raise located(
                ValueError,
                "cannot operate on split stateful generator: this one holds generators of shape "
                f"{self._base_key.shape}; map over them, `purax.vmap(lambda rng: rng.key())(rngs)`",
            )
        count = self._counter[...]
        self._counter[...] = count + 1
        found = random.fold_in(self._base_key, count)
        shape = (shape,) if isinstance(shape, int | np.integer) else tuple(finite(shape))
        return random.split(found, shape) if shape else found

    def random(self, size: Size = None, dtype: DTypeLike = float) -> Array:
        """Numbers in [0, 1).

        Args:
            size: the shape of the result.
            dtype: of the result.
        """
        return self.uniform(size=size, dtype=dtype)

    def uniform(
        self, low: ArrayLike = 0, high: ArrayLike = 1, size: Size = None, *, dtype: DTypeLike = float
    ) -> Array:
        """Uniform numbers in [low, high).

        Args:
            low: the lower bounds.
            high: the upper bounds.
            size: the shape of the result, by default that of the bounds.
            dtype: of the result.
        """
        shape = _shape(size, low, high)
        return random.uniform(self.key(), shape, dtype, minval=low, maxval=high)

    def normal(
        self, loc: ArrayLike = 0, scale: ArrayLike = 1, size: Size = None, *, dtype: DTypeLike = float
    ) -> Array:
        """Normally distributed numbers.

        Args:
            loc: the means.
            scale: the standard deviations.
            size: the shape of the result, by default that of the parameters.
            dtype: of the result.
        """
        drawn = random.normal(self.key(), _shape(size, loc, scale), dtype)
        return to_array(loc).astype(drawn.dtype) + to_array(scale).astype(drawn.dtype) * drawn

    def integers(
        self, low: ArrayLike, high: ArrayLike | None = None, size: Size = None, *, dtype: DTypeLike = int
    ) -> Array:
        """Integers in [low, high), or in [0, low) if only one bound is given.

        Args:
            low: the lower bounds.
            high: the upper bounds.
            size: the shape of the result, by default that of the bounds.
            dtype: of the result.
        """
        first, last = (0, low) if high is None else (low, high)
        return random.randint(self.key(), _shape(size, first, last), first, last, dtype=dtype)

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Independent generators as one object, which `vmap` maps over.

        Args:
            num: how many, or the shape of an array of them.
        """
        keys = self.key(num)
        return StatefulPRNG(keys, new_ref(zeros(keys.shape, int)))

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """A list of independent generators.

        Args:
            n_children: how many.
        """
        if n_children < 0:
            raise located(ValueError, f"spawn: n_children must be a non-negative integer, got {n_children}")
        keys = self.key(n_children)
        return [StatefulPRNG(keys[i], new_ref(0)) for i in range(n_children)]


def _shape(size: Size, *parameters: Any) -> tuple[int, ...]:
    if size is None:
        return np.broadcast_shapes(*(np.shape(p) if not hasattr(p, "shape") else p.shape for p in parameters))
    return (int(size),) if isinstance(size, int | np.integer) else tuple(size)


def stateful_rng(seed: ArrayLike | None = None, *, impl: Any = None) -> StatefulPRNG:
    """A random generator that updates its state by itself.

    Args:
        seed: an integer. It may be left out outside of transformed functions, where entropy of the system is taken.
        impl: the algorithm, "threefry2x32" if left out.

    >>> from purax.experimental.random import stateful_rng
    >>> rng = stateful_rng(42)
    >>> first, second = rng.uniform(), rng.uniform()
    >>> bool(first != second), bool(first == stateful_rng(42).uniform())
    (True, True)
    """
    if seed is None:
        if current.trace.parent is not None:
            raise located(
                TypeError,
                "When used within transformed code, stateful_rng() requires an explicit seed to be set: "
                "`stateful_rng(0)`",
            )
        seed = secrets.randbits(31)
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(0))
