"""Bits, and what is one step away from them: uniform numbers, random integers, coin flips."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import aval_of
from purax.core.dimensions import SymbolicDimension
from purax.core.source import located
from purax.errors import shown
from purax.primitives.elementwise.arithmetic import max_, rem, sub
from purax.primitives.elementwise.conversion import bitcast_convert_type, convert_element_type
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.elementwise.logic import and_, clamp, gt, le, lt, or_, select, shift_right_logical
from purax.primitives.shape.reshaping import reshape
from purax.primitives.shape.slicing import slice_axis
from purax.random.arguments import (
    as_operand,
    as_shape,
    broadcast_to,
    float_dtype,
    integer_dtype,
    placed,
    result_shape,
)
from purax.random.keys import single_key
from purax.random.sampling import sampler
from purax.typing import ArrayLike, DTypeLike, Shape
from purax.xla.array import from_numpy

__all__ = ["bernoulli", "bits", "rademacher", "randint", "uniform"]

_INT32 = np.dtype(np.int32)


def bits(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Random bits: all unsigned integers are equally likely.

    Args:
        key: A key.
        shape: The shape of the result.
        dtype: An unsigned integer dtype, uint32 by default (uint64 with `config.enable_x64`).
        out_sharding: How the result is sharded over devices.

    Returns:
        An array of `shape` and `dtype`.

    >>> from purax import random
    >>> random.bits(random.PRNGKey(0), (2,), "uint8")
    Array([89,  1], dtype=uint8)
    """
    found = single_key(key, "bits")
    chosen = dtypes.default_uint() if dtype is None else dtypes.as_dtype(dtype)
    if not dtypes.is_unsigned(chosen):
        raise located(
            ValueError,
            f"dtype argument to `bits` must be an unsigned int dtype, got {dtypes.dtype_name(chosen)}",
        )
    width = max(dtypes.itemsize_bits(chosen), 8)
    shape = as_shape(shape, "bits")
    drawn = found.implementation.bits(found.words, width, shape, inline=True)
    return placed(drawn if drawn.dtype == chosen else convert_element_type(drawn, chosen), out_sharding)


# --- uniform


class _Layout:
    """How a float dtype is filled with random bits.

    Random mantissa bits behind the exponent of 1 give a number in [1, 2).
    """

    def __init__(self, dtype: Any):
        info = dtypes.finfo(dtype)
        self.bits = info.bits
        self.drawn_bits = max(8, info.bits) if info.nmant >= 8 else 8
        self.integer = np.dtype(f"uint{info.bits}")
        self.shift = np.array(self.drawn_bits - info.nmant, self.integer)
        self.exponent = np.array(1, dtype).view(self.integer)
        self.one = np.array(1, dtype)


_layouts: dict[Any, _Layout] = {}


def _layout(dtype: Any) -> _Layout:
    layout = _layouts.get(dtype)
    if layout is None:
        if dtypes.itemsize_bits(dtype) < 8:
            raise located(
                ValueError,
                f"random numbers need a dtype of at least 8 bits, got {dtypes.dtype_name(dtype)}; convert them",
            )
        layout = _layouts[dtype] = _Layout(dtype)
    return layout


def unit_uniform(words, implementation, shape, dtype, inline=False):
    """Numbers in [0, 1), all multiples of the distance of 1 to the next number of the dtype."""
    layout = _layout(dtype)
    drawn = implementation.bits(words, layout.drawn_bits, shape, inline)
    if layout.drawn_bits != layout.bits:
        drawn = convert_element_type(drawn, layout.integer)
    mantissa = shift_right_logical(drawn, layout.shift)
    return sub(bitcast_convert_type(or_(mantissa, layout.exponent), dtype), layout.one)


def scaled_uniform(words, low, high, implementation, shape, dtype, inline=False):
    """Numbers in [low, high); the bounds are scalars, or of a shape that broadcasts to `shape`."""
    low, span = broadcast_to(low, shape), broadcast_to(sub(high, low), shape)
    return max_(low, add(mul(unit_uniform(words, implementation, shape, dtype, inline), span), low))


def _host_unit_uniform(words, *, implementation, shape, dtype):
    layout = _layout(dtype)
    drawn = implementation.host_bits(words, layout.drawn_bits, shape)
    if layout.drawn_bits != layout.bits:
        drawn = drawn.astype(layout.integer)
    return (drawn >> layout.shift | layout.exponent).view(dtype) - layout.one


@sampler(_host_unit_uniform)
def _unit_uniform(words, *, implementation, shape, dtype):
    return unit_uniform(words, implementation, shape, dtype, inline=True)


@sampler()
def _uniform(words, low, high, *, implementation, shape, dtype):
    if low.shape != high.shape:
        low, high = broadcast_to(low, shape), broadcast_to(high, shape)
    return scaled_uniform(words, low, high, implementation, shape, dtype, inline=True)


def uniform(
    key: ArrayLike,
    shape: Shape = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: Any = None,
) -> Array:
    """Uniform numbers in [minval, maxval).

    Args:
        key: A key.
        shape: The shape of the result.
        dtype: A float dtype, float32 by default (float64 with `config.enable_x64`).
        minval: The lower bound; broadcasts to `shape`.
        maxval: The upper bound, which is excluded (up to rounding); broadcasts to `shape`.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array of `shape` and `dtype`.

    >>> from purax import random
    >>> random.uniform(random.PRNGKey(0), (3,))
    Array([0.9653214 , 0.31468165, 0.63302994], dtype=float32)
    """
    found = single_key(key, "uniform")
    shape = as_shape(shape, "uniform")
    chosen = float_dtype(dtype, "uniform")
    static = {"implementation": found.implementation, "shape": shape, "dtype": chosen}
    if type(minval) is float and minval == 0.0 and type(maxval) is float and maxval == 1.0:
        return placed(_unit_uniform(found.words, **static), out_sharding)
    low, high = (
        as_operand(minval, chosen, "uniform", "minval"),
        as_operand(maxval, chosen, "uniform", "maxval"),
    )
    result_shape(shape, "uniform", minval=low, maxval=high)
    return placed(_uniform(found.words, low, high, **static), out_sharding)


# --- integers


def _host_randint(words, low, high, *beyond, implementation, shape, dtype):
    width = dtype.itemsize * 8
    one = np.array(1, f"uint{width}")
    span = (high - low).astype(one.dtype)
    if beyond:
        span = np.where(beyond[0] & (high > low), span + one, span)
    span = np.where(high <= low, one, span)
    half = _remainder(one << np.array(width // 2, one.dtype), span)
    first, second = (
        implementation.host_bits(key, width, shape) for key in implementation.host_split(words, (2,))
    )
    factor = _remainder(half * half, span)
    number = _remainder(_remainder(first, span) * factor + _remainder(second, span), span)
    return low + number.astype(dtype)


def _remainder(x: np.ndarray, span: np.ndarray) -> np.ndarray:
    """x modulo `span`, where 0 stands for one more than the largest number of the dtype: then it is x itself."""
    return np.where(span == 0, x, x % np.where(span == 0, 1, span).astype(span.dtype))


@sampler(_host_randint)
def _randint(words, low, high, *beyond, implementation, shape, dtype):
    """Integers in [low, high), also `high` where `beyond` is true (an upper bound that the dtype cannot hold).

    With R = 2^(bits of a draw), two draws make a number in [0, R²), of which the remainder by the number of
    possibilities is taken; that is uneven by 1/R at most.
    """
    unsigned = np.dtype(f"uint{dtype.itemsize * 8}")
    low, high, *beyond = (broadcast_to(x, shape) for x in (low, high, *beyond))
    is_empty = le(high, low)
    span = convert_element_type(sub(high, low), unsigned)
    if beyond:
        span = select(and_(beyond[0], gt(high, low)), add(span, 1), span)
    span = select(is_empty, like(span, 1), span)
    half = rem(like(span, 1 << dtype.itemsize * 4), span)
    factor = rem(mul(half, half), span)  # R modulo span
    keys = unstack(implementation.split(words, (2,)), 2)
    first, second = (implementation.bits(key, dtype.itemsize * 8, shape, inline=True) for key in keys)
    number = rem(add(mul(rem(first, span), factor), rem(second, span)), span)
    return add(low, convert_element_type(number, dtype))


def like(x, number):
    """A number as a scalar of the dtype of `x`."""
    return np.array(number, x.dtype)


def unstack(keys, count: int) -> list:
    """The `count` keys of an array (count, words)."""
    words = aval_of(keys).shape[-1]
    return [reshape(slice_axis(keys, i, i + 1, 0), (words,)) for i in range(count)]


def randint(
    key: ArrayLike,
    shape: Shape,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Uniform integers in [minval, maxval).

    Args:
        key: A key.
        shape: The shape of the result.
        minval: The smallest integer; broadcasts to `shape`. Where it is not less than `maxval`, it is the result.
        maxval: One more than the largest integer; broadcasts to `shape`.
        dtype: An integer dtype, int32 by default (int64 with `config.enable_x64`). Bounds are clipped to its range.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array of `shape` and `dtype`.

    >>> from purax import random
    >>> random.randint(random.PRNGKey(0), (5,), 0, 10)
    Array([8, 1, 3, 8, 8], dtype=int32)
    """
    found = single_key(key, "randint")
    shape = as_shape(shape, "randint")
    chosen = integer_dtype(dtype, "randint")
    work = chosen if chosen.itemsize >= 4 else _INT32
    low, _ = _bound(minval, chosen, work, False, "minval")
    high, beyond = _bound(maxval, chosen, work, True, "maxval")
    result_shape(shape, "randint", minval=low, maxval=high)
    operands = (found.words, low, high) if beyond is None else (found.words, low, high, beyond)
    drawn = _randint(*operands, implementation=found.implementation, shape=shape, dtype=work)
    return placed(drawn if chosen == work else convert_element_type(drawn, chosen), out_sharding)


def _bound(x: Any, dtype: Any, work: Any, is_upper: bool, argument: str) -> tuple[Any, Any]:
    """A bound as an array of the dtype `work`, clipped to the range of `dtype`; and, for an upper one that `work`
    cannot hold, whether it lies above its largest number."""
    smallest, largest = _range(dtype)
    if is_upper and dtype != work:
        largest += 1
    if isinstance(x, (bool, int, float, np.generic)) and not np.iscomplexobj(x):
        number = int(x)
        clipped = min(max(number, smallest), largest)
        is_beyond = is_upper and dtype == work and number > largest
        return np.array(clipped, work), np.array(True) if is_beyond else None
    if isinstance(x, SymbolicDimension):
        x = x.__jax_array__()
    if not isinstance(x, (Array, np.ndarray)):
        raise located(
            TypeError,
            f"randint: {argument} must be an integer or an array, got {shown(x):.60} of type {type(x).__name__}",
        )
    own = aval_of(x).dtype
    if dtypes.is_floating(own):
        x, own = convert_element_type(x, work), work
    if not dtypes.is_integer(own):
        raise located(TypeError, f"randint: {argument} must hold integers, got {aval_of(x).str_short()}")
    least, most = _range(own)
    beyond = None
    if is_upper and dtype == work and most > largest:
        beyond = gt(x, np.array(largest, own))
    if least < smallest or most > largest:
        x = clamp(np.array(max(smallest, least), own), x, np.array(min(largest, most), own))
    x = convert_element_type(x, work) if own != work else x
    return x if isinstance(x, Array) else from_numpy(np.array(x)), beyond


@functools.cache
def _range(dtype: Any) -> tuple[int, int]:
    info = dtypes.iinfo(dtype)
    return int(info.min), int(info.max)


# --- coin flips


def _host_bernoulli(words, p, *, implementation, shape, high_precision):
    if not high_precision:
        return _host_unit_uniform(words, implementation=implementation, shape=shape, dtype=p.dtype) < p
    coarse, fine = _host_unit_uniform(words, implementation=implementation, shape=(2, *shape), dtype=p.dtype)
    return fine * like(p, dtypes.finfo(p.dtype).eps) < p - coarse


@sampler(_host_bernoulli)
def _bernoulli(words, p, *, implementation, shape, high_precision):
    dtype = aval_of(p).dtype
    p = broadcast_to(p, shape)
    if not high_precision:
        return lt(unit_uniform(words, implementation, shape, dtype, inline=True), p)
    both = unit_uniform(words, implementation, (2, *shape), dtype)
    coarse, fine = (reshape(slice_axis(both, i, i + 1, 0), shape) for i in range(2))
    return lt(mul(fine, like(p, dtypes.finfo(dtype).eps)), sub(p, coarse))


def bernoulli(
    key: ArrayLike,
    p: ArrayLike = 0.5,
    shape: Shape | None = None,
    mode: str = "low",
    *,
    out_sharding: Any = None,
) -> Array:
    """Truth values that are true with probability `p`.

    Args:
        key: A key.
        p: The probability, a float or an array of them.
        shape: The shape of the result, which `p` broadcasts to; that of `p` by default.
        mode: 'low', or 'high' to resolve small probabilities twice as finely, with twice as many bits.
        out_sharding: How the result is sharded over devices.

    Returns:
        A boolean array.

    >>> from purax import random
    >>> random.bernoulli(random.PRNGKey(0), 0.25, (4,))
    Array([False,  True, False, False], dtype=bool)
    """
    found = single_key(key, "bernoulli")
    if mode not in ("low", "high"):
        raise located(ValueError, f"bernoulli: mode must be 'low' or 'high', got {shown(mode)}")
    own, _ = dtypes.dtype_and_weak(p)
    if not dtypes.is_floating(own):
        raise located(
            TypeError, f"bernoulli probability `p` must have a floating dtype, got {dtypes.dtype_name(own)}"
        )
    probability = as_operand(p, own, "bernoulli", "p")
    shape = result_shape(shape, "bernoulli", p=probability)
    static = {"implementation": found.implementation, "shape": shape, "high_precision": mode == "high"}
    return placed(_bernoulli(found.words, probability, **static), out_sharding)


@sampler()
def _rademacher(words, *, implementation, shape, dtype):
    u = unit_uniform(words, implementation, shape, dtypes.default_float(), inline=True)
    is_one = lt(u, like_default(0.5))
    return sub(mul(convert_element_type(is_one, dtype), 2), 1)


def like_default(number: float) -> np.ndarray:
    return np.array(number, dtypes.default_float())


def rademacher(
    key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *, out_sharding: Any = None
) -> Array:
    """Numbers that are 1 or −1 with equal probability.

    Args:
        key: A key.
        shape: The shape of the result.
        dtype: A numeric dtype, int32 by default.
        out_sharding: How the result is sharded over devices.

    Returns:
        An array of `shape` and `dtype`.

    >>> from purax import random
    >>> random.rademacher(random.PRNGKey(0), (4,))
    Array([-1,  1, -1,  1], dtype=int32)
    """
    found = single_key(key, "rademacher")
    chosen = dtypes.default_int() if dtype is None else dtypes.as_dtype(dtype)
    if dtypes.kind(chosen) not in ("integer", "float", "complex"):
        raise located(ValueError, f"rademacher: dtype must be numeric, got {dtypes.dtype_name(chosen)}")
    static = {"implementation": found.implementation, "shape": as_shape(shape, "rademacher"), "dtype": chosen}
    return placed(_rademacher(found.words, **static), out_sharding)
