"""`rng_bit_generator`: XLA's own generator of random bits. It is faster than Threefry on accelerators, but its
bits depend on the platform.

On the CPU it is Philox-4x32-10 by default (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
2011). The state is a key of 64 bits and a counter of 64 bits; it comes back with the counter moved on.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.dimensions import is_symbolic_shape
from purax.core.primitive import Primitive
from purax.primitives.random.threefry import UINT32, encrypt
from purax.primitives.shape.broadcasting import move_axis
from purax.primitives.shape.reshaping import concatenate, reshape
from purax.primitives.shape.slicing import slice_axis
from purax.xla.stablehlo import Builder, Value, integers

UINT64 = np.dtype(np.uint64)


class RandomAlgorithm(enum.IntEnum):
    """The generators of XLA."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


_NAMES = {
    RandomAlgorithm.RNG_DEFAULT: "DEFAULT",
    RandomAlgorithm.RNG_THREE_FRY: "THREE_FRY",
    RandomAlgorithm.RNG_PHILOX: "PHILOX",
}


class Batches:
    """What `vmap` makes of a draw.

    Attributes:
        from_first_key: whether all examples are one draw from the first key, as programs written for JAX get their
            numbers; if not, each example is a draw from its own key.
    """

    from_first_key = False


batches = Batches()


class RngBitGenerator(Primitive):
    """The state after a draw, and the bits drawn; for an array of states (…, 4) or (…, 2), a draw from each."""

    name = "rng_bit_generator"
    multiple_results = True

    def infer(self, key, *, shape, dtype, algorithm):
        if (key.shape[-1:], key.dtype) not in (((4,), UINT32), ((2,), UINT64)):
            raise TypeError(f"rng_bit_generator takes a key uint32[4] or uint64[2], got {key.str_short()}")
        if not dtypes.is_unsigned(dtype) or dtypes.itemsize_bits(dtype) < 8:
            raise TypeError(
                "rng_bit_generator gives uint8, uint16, uint32 or uint64, not "
                f"{dtypes.dtype_name(dtype)}; convert the result"
            )
        return [key.strip_weak_type(), ShapedArray((*key.shape[:-1], *shape), dtype)]

    def host(self, key, *, shape, dtype, algorithm):
        draw = _threefry if algorithm == RandomAlgorithm.RNG_THREE_FRY else _philox
        states = np.array(key, order="C").view(UINT64)
        bits = np.empty((*key.shape[:-1], *shape), dtype)
        for place in np.ndindex(key.shape[:-1]):
            first, counter = states[place]
            bits[place], blocks = draw(first, counter, shape, dtype.itemsize == 8)
            states[place][1] = counter + np.uint64(blocks)
        return [states.view(key.dtype), bits]

    def lower(self, builder, key, *, shape, dtype, algorithm):
        given = key.aval
        leading = given.shape[:-1]
        if given.dtype == UINT32:
            pairs = builder.reshape(key, (*leading, 2, 2))
            key = builder.op("bitcast_convert", (pairs,), ShapedArray((*leading, 2), UINT64))
        out = ShapedArray(shape, dtype)
        if leading:
            count = math.prod(leading)
            flat = builder.reshape(key, (count, 2))
            after, bits = _emit_each(builder, flat, out, algorithm)
            after, bits = builder.reshape(after, key.shape), builder.reshape(bits, (*leading, *shape))
        else:
            after, bits = _emit(builder, key, out, algorithm)
        if given.dtype == UINT32:
            pairs = builder.op("bitcast_convert", (after,), ShapedArray((*leading, 2, 2), UINT32))
            after = builder.reshape(pairs, given.shape)
        return [after, bits]

    def jvp(self, primals, tangents, **params):
        outs = self.bind(*primals, **params)
        return outs, [Zero.like(y) for y in outs]

    def batch(self, operands, batch_axes, **params):
        keys = move_axis(operands[0], batch_axes[0], 0)
        if batches.from_first_key and aval_of(keys).shape[0]:
            return self._from_first(keys, **params), [0, 0]
        return self.bind(keys, **params), [0, 0]

    def _from_first(self, keys, *, shape, **params):
        """The bits of all examples as one draw from the first key, which alone moves on."""
        count = aval_of(keys).shape[0]
        first = reshape(slice_axis(keys, 0, 1, 0), aval_of(keys).shape[1:])
        after, bits = self.bind(first, shape=(count, *shape), **params)
        others = slice_axis(keys, 1, count, 0)
        return [concatenate((reshape(after, (1, *aval_of(after).shape)), others), 0), bits]

    def host_work(self, key, *, shape, dtype, algorithm):
        return 8 * key.size * (10 + math.prod(shape))


def _emit(builder: Builder, state: Value, out: ShapedArray, algorithm: RandomAlgorithm) -> list[Value]:
    if not out.size:
        return [state, builder.constant(0, out)]
    if is_symbolic_shape(out.shape):
        raise NotImplementedError(
            f"the bits of {_NAMES[algorithm]} depend on the shape, so that they cannot be exported for "
            f"{out.str_short()}. Use keys of Threefry: purax.random.key(seed, impl='threefry2x32')"
        )
    attribute = f"rng_algorithm = #stablehlo<rng_algorithm {_NAMES[algorithm]}>"
    return builder.op("rng_bit_generator", (state,), [state.aval, out], attribute)


def _emit_each(builder: Builder, states: Value, out: ShapedArray, algorithm: RandomAlgorithm) -> list[Value]:
    """A draw from each of the states (n, 2), one after the other."""
    count = states.shape[0]
    index = ShapedArray((), np.dtype(np.int32))
    one_state, one_out = states.aval.with_shape((1, 2)), out.with_shape((1, *out.shape))
    rows = out.with_shape((count, *out.shape))
    if not count:
        return [states, builder.constant(0, rows)]

    def condition(inner: Builder, i: Value, states: Value, bits: Value) -> list[Value]:
        return [inner.compare("LT", i, inner.constant(count, index))]

    def body(inner: Builder, i: Value, states: Value, bits: Value) -> list[Value]:
        zero = inner.constant(0, index)
        sizes = f"slice_sizes = {integers((1, 2))}"
        state = inner.reshape(inner.op("dynamic_slice", (states, i, zero), one_state, sizes), (2,))
        after, drawn = _emit(inner, state, out, algorithm)
        updated = inner.op(
            "dynamic_update_slice", (states, inner.reshape(after, (1, 2)), i, zero), states.aval
        )
        row = inner.reshape(drawn, one_out.shape)
        bits = inner.op("dynamic_update_slice", (bits, row, i, *[zero] * out.ndim), bits.aval)
        return [inner.op("add", (i, inner.constant(1, index)), index), updated, bits]

    avals = [index, states.aval, rows]
    start = (builder.constant(0, index), states, builder.constant(0, rows))
    regions = (builder.region(avals, condition), builder.region(avals, body))
    return builder.op("while", start, avals, regions=regions)[1:]


def _counters(counter: np.uint64, blocks: int) -> tuple[np.ndarray, np.ndarray]:
    """The words of the counters of `blocks` blocks, lower ones first."""
    numbers = counter + np.arange(blocks, dtype=UINT64)
    return numbers.astype(UINT32), (numbers >> np.uint64(32)).astype(UINT32)


def _halves(number: np.uint64) -> tuple[np.uint32, np.uint32]:
    return np.uint32(number & np.uint64(0xFFFFFFFF)), np.uint32(number >> np.uint64(32))


def _philox(first: np.uint64, counter: np.uint64, shape: tuple[int, ...], wide: bool):
    """Four words for each counter, in the order of the elements of the result; wide elements take two of them."""
    words = math.prod(shape) * (2 if wide else 1)
    blocks = -(-words // 4)
    k0, k1 = (np.uint64(word) for word in _halves(first))
    c0, c1 = (part.astype(UINT64) for part in _counters(counter, blocks))
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    # The key is also the upper half of the counter, which it is carried over to.
    upper = first + (counter + np.arange(blocks, dtype=UINT64) < counter).astype(UINT64)
    c2, c3 = upper & low, upper >> shift
    for _ in range(10):
        p0, p1 = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (p1 >> shift) ^ c1 ^ k0, p1 & low, (p0 >> shift) ^ c3 ^ k1, p0 & low
        k0, k1 = k0 + np.uint64(0x9E3779B9) & low, k1 + np.uint64(0xBB67AE85) & low
    stream = np.stack((c0, c1, c2, c3), axis=1).astype(UINT32).ravel()[:words]
    return (stream.view(UINT64) if wide else stream).reshape(shape), blocks


def _threefry(first: np.uint64, counter: np.uint64, shape: tuple[int, ...], wide: bool):
    """Two words for each counter: the halves of a wide element, or the neighbours along one axis of the result.

    That axis is the first of even length, or else the longest, which is then made even by an element that is dropped.
    """
    if wide:
        blocks = math.prod(shape)
        y0, y1 = encrypt(*_halves(first), *_counters(counter, blocks))
        return (y0.astype(UINT64) | y1.astype(UINT64) << np.uint64(32)).reshape(shape), blocks
    if not shape:
        bits, blocks = _threefry(first, counter, (1,), wide)
        return bits.reshape(()), blocks
    even = [axis for axis, n in enumerate(shape) if n % 2 == 0]
    axis = even[0] if even else shape.index(max(shape))
    half = (*shape[:axis], (shape[axis] + 1) // 2, *shape[axis + 1 :])
    blocks = math.prod(half)
    parts = encrypt(*_halves(first), *_counters(counter, blocks))
    pairs = np.stack([part.reshape(half) for part in parts], axis=axis + 1)
    padded = (*shape[:axis], 2 * half[axis], *shape[axis + 1 :])
    kept = (slice(None),) * axis + (slice(shape[axis]),)
    return pairs.reshape(padded)[kept], blocks


rng_bit_generator_p = RngBitGenerator()


def rng_bit_generator(
    key, shape: Sequence[int], dtype: Any = UINT32, algorithm: Any = RandomAlgorithm.RNG_DEFAULT
) -> list:
    """The state after a draw of random bits, and the bits; see `RngBitGenerator`."""
    return rng_bit_generator_p.bind(
        key, shape=tuple(shape), dtype=dtypes.as_exact_dtype(dtype), algorithm=RandomAlgorithm(algorithm)
    )
