"""Choosing among given things: permutations, samples with and without replacement, categories."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray, aval_of
from purax.core.dimensions import SymbolicDimension
from purax.core.source import located
from purax.core.trace import current
from purax.errors import shown
from purax.execution.eager import eager
from purax.primitives.elementwise.arithmetic import sub
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.elementwise.logic import and_, lt, not_, select, shift_right_logical
from purax.primitives.elementwise.xla_functions import log
from purax.primitives.reductions.cumulative import cumsum
from purax.primitives.reductions.reduction import argmax
from purax.primitives.shape.broadcasting import broadcast_in_dim, move_axis
from purax.primitives.shape.dimension_value import number_as
from purax.primitives.shape.gather_scatter import take
from purax.primitives.shape.reshaping import iota, reshape
from purax.primitives.shape.slicing import slice_axis
from purax.primitives.sorting import sort, stable_order, top_k
from purax.random.arguments import as_operand, as_shape, placed
from purax.random.continuous import is_high_precision, standard_gumbel
from purax.random.from_bits import _randint, unit_uniform, unstack
from purax.random.implementations import Implementation
from purax.random.keys import Key, single_key
from purax.random.sampling import sampler
from purax.random.typed_keys import KeyDtype, random_unwrap, random_wrap
from purax.typing import ArrayLike, Shape
from purax.xla import capacity, client
from purax.xla.array import from_numpy

__all__ = ["categorical", "choice", "permutation"]

_LARGE = 1 << 16  # from here on NumPy's sort makes up for what a wait costs


# --- permutation


def shuffled(words, x, implementation, axis: int):
    """`x` in random order along `axis`: sorted by random words, again and again until equal words do not matter.

    Two of n words are equal with a probability of about n²/2³²; after r rounds, n^(−3) is left.
    """
    shape = aval_of(x).shape
    for _ in range(_rounds(shape)):
        words, now = unstack(implementation.split(words, (2,)), 2)
        _, x = sort((implementation.bits(now, 32, shape), x), axis)
    return x


def _largest(size: Any) -> int:
    return 2**31 - 1 if isinstance(size, SymbolicDimension) else size


def _rounds(shape: tuple[int, ...]) -> int:
    return math.ceil(3 * math.log(max(1, _largest(math.prod(shape)))) / math.log((1 << 32) - 1))


def _host_shuffled(words, x, implementation, axis: int):
    for _ in range(_rounds(x.shape)):
        words, now = implementation.host_split(words, (2,))
        order = stable_order(implementation.host_bits(now, 32, x.shape), axis)
        x = np.take_along_axis(x, order, axis)
    return x


def _large_permutation(words: Any, implementation: Implementation, count: int, dtype: Any) -> Array:
    """The numbers 0 … count−1 in random order: bits by a compiled program, sorted by NumPy."""
    x = np.arange(count, dtype=dtype)
    for _ in range(_rounds(x.shape)):
        words, now = unstack(implementation.split(words, (2,)), 2)
        x = x[stable_order(np.asarray(implementation.bits(now, 32, x.shape)), 0)]
    return from_numpy(x)


def _host_shuffle(words, x, *, implementation, shape, axis):
    return _host_shuffled(words, x, implementation, axis)


@sampler(_host_shuffle)
def _shuffle(words, x, *, implementation, shape, axis):
    return shuffled(words, x, implementation, axis)


def _host_permutation(words, *, implementation, shape, dtype):
    return _host_shuffled(words, np.arange(*shape, dtype=dtype), implementation, 0)


@sampler(_host_permutation)
def _permutation(words, *, implementation, shape, dtype):
    return shuffled(words, iota(dtype, shape), implementation, 0)


def _host_shuffle_slices(words, x, *, implementation, shape, axis):
    return np.take(x, _host_shuffled(words, np.arange(shape[axis]), implementation, 0), axis)


@sampler(_host_shuffle_slices)
def _shuffle_slices(words, x, *, implementation, shape, axis):
    order = shuffled(words, iota(np.int32, (shape[axis],)), implementation, 0)
    return take(x, order, axis)


def permutation(
    key: ArrayLike, x: int | ArrayLike, axis: int = 0, independent: bool = False, *, out_sharding: Any = None
) -> Array:
    """Puts things in random order.

    Args:
        key: A key.
        x: An array, or an integer n, which means the numbers 0 … n−1.
        axis: The axis of the array along which it is put in order.
        independent: Whether each vector along `axis` gets an order of its own; otherwise, slices move as a whole.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array of the shape of `x`, or (n,).

    >>> from purax import random
    >>> sorted(random.permutation(random.key(0), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    found = single_key(key, "permutation")
    return placed(_permuted(found, x, axis, independent, "permutation"), out_sharding)


def _permuted(found: Key, x: Any, axis: int, independent: bool, name: str) -> Array:
    words, implementation = found.words, found.implementation
    count = as_count(x, name, "x")
    if count is not None:
        if count < 0:
            raise located(ValueError, f"{name}: x must not be negative, got {count}")
        if count >= _LARGE and current.trace is eager and client.default_device().platform == "cpu":
            whole = ShapedArray((count,), dtypes.default_int())
            capacity.refuse_what_does_not_fit(name, (whole,), (), (client.default_device(),))
            return _large_permutation(words, implementation, count, dtypes.default_int())
        return _permutation(words, implementation=implementation, shape=(count,), dtype=dtypes.default_int())
    x = as_values(x)
    axis = as_axis(axis, x.ndim, name)
    if isinstance(x.dtype, KeyDtype):
        if independent and x.ndim > 1:
            raise located(
                NotImplementedError,
                f"{name} of an array of keys moves whole slices: leave out independent=True",
            )
        return random_wrap(_permuted(found, random_unwrap(x), axis, False, name), x.dtype)
    if not x.size:  # there is nothing to take slices from
        return x
    apply = _shuffle if independent or x.ndim == 1 else _shuffle_slices
    return apply(words, x, implementation=implementation, shape=x.shape, axis=axis)


def as_count(x: Any, name: str, argument: str) -> int | None:
    """An integer scalar as a Python integer; None for arrays with axes; an error for all else."""
    if isinstance(x, (Array, np.ndarray)) and x.ndim:
        return None
    try:
        return operator.index(x)
    except TypeError as error:
        if isinstance(x, Array) and dtypes.is_integer(x.dtype):
            raise  # a traced number: the error says so
        raise located(
            TypeError,
            f"{name}: {argument} must be an integer or an array with an axis, got {shown(x):.60} of type "
            f"{type(x).__name__}",
        ) from error


def as_values(x: Any) -> Array:
    if isinstance(x, Array):
        return x
    own, _ = dtypes.dtype_and_weak(x)
    return from_numpy(np.array(x, own))


def as_axis(axis: Any, ndim: int, name: str) -> int:
    """An axis counted from the front."""
    number = operator.index(axis)
    if not -ndim <= number < ndim:
        raise located(ValueError, f"{name}: axis {number} is out of bounds for an array of {ndim} dimensions")
    return number % ndim


# --- choice


@sampler()
def _weighted_positions(words, p, *, implementation, shape):
    """Positions drawn with probabilities `p`: where the cumulative probability first reaches a uniform number."""
    total = cumsum(p, 0)
    count = aval_of(p).shape[0]
    u = unit_uniform(words, implementation, shape, aval_of(p).dtype)
    last = reshape(slice_axis(total, count - 1, count, 0), ())
    return searchsorted(total, mul(last, sub(1, u)))


@sampler()
def _weighted_order(words, p, *, implementation, shape, count, high_precision):
    """`count` positions drawn without replacement: the largest of log p + Gumbel noise."""
    noise = standard_gumbel(words, implementation, shape, aval_of(p).dtype, high_precision)
    return top_k(add(noise, log(p)), count)[1]


def choice(
    key: ArrayLike,
    a: int | ArrayLike,
    shape: Shape = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """A random sample of given things.

    Args:
        key: A key.
        a: An array, or an integer n, which means the numbers 0 … n−1.
        shape: How many, as the shape of the sample.
        replace: Whether a thing can be chosen more than once.
        p: The probability of each thing, a vector; equal ones by default.
        axis: The axis of the array that counts its things.
        mode: 'low' (the default), or 'high' for more accurate tails where `p` is given and `replace` is false.

    Returns:
        An array whose axis `axis` is replaced by `shape`.

    Raises:
        ValueError: There is nothing to choose from, or not enough without replacement.

    >>> from purax import random
    >>> random.choice(random.key(0), 10, (2, 2), replace=False).shape
    (2, 2)
    """
    found = single_key(key, "choice")
    shape = as_shape(shape, "choice")
    draws = math.prod(shape)
    if isinstance(a, float) and a == int(a):
        a = int(a)
    count = as_count(a, "choice", "a")
    values = None if count is not None else as_values(a)
    axis = 0 if values is None else as_axis(axis, values.ndim, "choice")
    size: Any = count if values is None else values.shape[axis]
    if size <= 0 and draws:
        raise located(
            ValueError, f"choice: a must be greater than 0 unless no samples are taken, got {size} things"
        )
    if not replace and draws > size:
        raise located(
            ValueError,
            f"choice: cannot take a larger sample ({draws}) than there are things ({size}) when replace=False",
        )
    if p is None and not replace:
        order = _permuted(found, size if values is None else values, axis, False, "choice")
        kept = slice_axis(order, 0, draws, axis)
        rest = order.shape
        return reshape(kept, (*rest[:axis], *shape, *rest[axis + 1 :]))
    positions = _positions(found, size, shape, draws, replace, p, mode)
    if values is None:
        return convert_element_type(positions, dtypes.default_int())
    return take(values, positions, axis)


def _positions(
    found: Key, size: int, shape: tuple[int, ...], draws: int, replace: bool, p: Any, mode: Any
) -> Array:
    integer = dtypes.default_int()
    implementation = found.implementation
    if p is None:
        bounds = [np.array(bound, integer) for bound in (0, size)]
        return _randint(found.words, *bounds, implementation=implementation, shape=shape, dtype=integer)
    try:
        own, _ = dtypes.dtype_and_weak(p if isinstance(p, (Array, np.ndarray)) else np.asarray(p, float))
    except (TypeError, ValueError):
        raise located(TypeError, f"choice: p must be None or an array, got {shown(p)}") from None
    weights = as_operand(
        p if isinstance(p, Array) else np.asarray(p), dtypes.to_inexact_dtype(own), "choice", "p"
    )
    if weights.shape != (size,):
        raise located(
            ValueError,
            f"choice: p must be None or a vector with one probability for each of {size} things, got shape "
            f"{weights.shape}",
        )
    if replace:
        return _weighted_positions(found.words, weights, implementation=implementation, shape=shape)
    precise = is_high_precision(mode, "choice")
    order = _weighted_order(
        found.words,
        weights,
        implementation=implementation,
        shape=(size,),
        count=draws,
        high_precision=precise,
    )
    return reshape(order, shape)


def searchsorted(sorted_values, x):
    """The first position whose value is at least `x`, by bisection: ⌈log₂(n + 1)⌉ comparisons for each element."""
    count = aval_of(sorted_values).shape[0]
    shape = aval_of(x).shape
    low = broadcast_in_dim(np.array(0, np.int32), shape, ())
    high = broadcast_in_dim(number_as(count, np.int32), shape, ())
    for _ in range(count.bit_length()):
        middle = shift_right_logical(add(low, high), np.int32(1))
        is_less = lt(take(sorted_values, middle, 0), x)
        searching = lt(low, high)
        low = select(and_(searching, is_less), add(middle, 1), low)
        high = select(and_(searching, not_(is_less)), middle, high)
    return low


# --- categorical


@sampler()
def _categorical(words, logits, *, implementation, shape, prefix, axis, high_precision):
    noise = standard_gumbel(words, implementation, shape, aval_of(logits).dtype, high_precision)
    expanded = broadcast_in_dim(logits, shape, range(len(prefix), len(shape)))
    return argmax(add(noise, expanded), len(prefix) + axis, dtypes.default_int())


@sampler()
def _categorical_without_replacement(words, logits, *, implementation, shape, axis, count, high_precision):
    noise = standard_gumbel(words, implementation, shape, aval_of(logits).dtype, high_precision)
    return convert_element_type(
        move_axis(top_k(add(noise, logits), count, axis)[1], axis, 0), dtypes.default_int()
    )


def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: Shape | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Categories with probabilities softmax(logits).

    Args:
        key: A key.
        logits: Logarithms of probabilities, up to a constant.
        axis: The axis of `logits` that counts the categories.
        shape: The shape of the result; it ends as the shape of `logits` without `axis` does, which is the default.
        replace: Whether the draws along the leading axes of `shape` may be equal.
        mode: 'low' (the default), or 'high' for more accurate tails with twice as many bits.
        out_sharding: How the result is sharded over devices.

    Returns:
        An integer array of `shape`.

    >>> from purax import numpy as jnp, random
    >>> random.categorical(random.key(0), jnp.log(jnp.array([0.0, 1.0, 0.0])), shape=(4,))
    Array([1, 1, 1, 1], dtype=int32)
    """
    found = single_key(key, "categorical")
    own, _ = dtypes.dtype_and_weak(logits)
    logits = as_operand(logits, dtypes.to_inexact_dtype(own), "categorical", "logits")
    if not logits.ndim:
        raise located(ValueError, "categorical: logits must have an axis of categories, got a scalar")
    axis = as_axis(axis, logits.ndim, "categorical")
    categories = logits.shape[axis]
    own_shape = (*logits.shape[:axis], *logits.shape[axis + 1 :])
    chosen = own_shape if shape is None else as_shape(shape, "categorical")
    lead = len(chosen) - len(own_shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(own_shape, chosen[lead:], strict=True)):
        raise located(
            ValueError,
            f"categorical: shape {chosen} must end as that of the logits without axis {axis} does, {own_shape}",
        )
    prefix, tail = chosen[:lead], chosen[lead:]
    precise = is_high_precision(mode, "categorical")
    static = {"implementation": found.implementation}
    if replace:
        full = (*prefix, *tail[:axis], categories, *tail[axis:])
        drawn = _categorical(
            found.words, logits, **static, shape=full, prefix=prefix, axis=axis, high_precision=precise
        )
        return placed(drawn, out_sharding)
    count = math.prod(prefix)
    if count > categories:
        raise located(
            ValueError,
            f"categorical: cannot draw {count} different ones of {categories} categories when replace=False",
        )
    drawn = _categorical_without_replacement(
        found.words, logits, **static, shape=logits.shape, axis=axis, count=count, high_precision=precise
    )
    return placed(reshape(drawn, (*prefix, *own_shape)), out_sharding)
