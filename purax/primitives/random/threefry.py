"""Threefry-2x32-20, the cipher behind the default random numbers (Salmon, Moraes, Dror, Shaw: "Parallel random numbers:
as easy as 1, 2, 3", 2011), and the two ways in which a key's stream is counted.

A key is two words of 32 bits; encrypting the counters 0, 1, 2, … with it gives its stream. On the host, few blocks are
encrypted all at once inside of one Python integer, with 64 bits for each block, since a call of NumPy costs more than
the work itself there; many blocks by NumPy. Both give the same bits as the compiled program.
"""

from __future__ import annotations

import functools

import numpy as np

from purax.core.avals import ShapedArray, Zero
from purax.core.dimensions import SymbolicDimension, exceeds, is_symbolic_shape
from purax.core.primitive import Primitive
from purax.primitives import layouts
from purax.primitives.elementwise.elementwise import batch_elementwise, same_shape
from purax.primitives.elementwise.formula import Formula, where
from purax.xla import native
from purax.xla.stablehlo import Builder, Value, integers

UINT32 = np.dtype(np.uint32)
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_WORD = 0xFFFFFFFF
_MAX_LANES = 56  # longer integers leave Python's pool of small objects and are several times slower
# Counters of a key, and words in all, from which on the native kernel is faster.
LONG, MANY = 1 << 6, 1 << 14
_CLASSIC, _PAIRS, _JOINED = range(3)  # the streams as native/threefry.cc numbers them
_SHIFTS = [np.array(bits, np.uint32) for bits in range(33)]


class Threefry2x32(Primitive):
    """Encrypts the pairs of words (x0, x1) with the keys (k0, k1); shapes are equal, or scalar."""

    name = "threefry2x32"
    keeps_ends = True
    multiple_results = True

    def infer(self, k0, k1, x0, x1):
        shape = ()
        for aval in (k0, k1, x0, x1):
            if aval.dtype != UINT32:
                raise TypeError(f"threefry2x32 takes uint32 arrays, got {aval.str_short()}")
            if aval.shape != shape and aval.shape:
                if shape:
                    raise TypeError(
                        f"threefry2x32 got shapes {shape} and {aval.shape}; they must be equal, or scalar"
                    )
                shape = aval.shape
        return [ShapedArray(shape, UINT32)] * 2

    def lay_out(self, outs, *avals):
        return [layouts.merged(self.name, avals, out.shape) for out in outs]

    def host(self, k0, k1, x0, x1):
        return encrypt(k0, k1, x0, x1)

    def lower(self, builder, *operands):
        return [
            word.value for word in emit_encrypt(*(Formula(builder, v) for v in same_shape(builder, operands)))
        ]

    def jvp(self, primals, tangents):
        out = self.bind(*primals)
        return out, [Zero.like(y) for y in out]

    def batch(self, operands, batch_axes):
        out, axis = batch_elementwise(self, operands, batch_axes, {})
        return out, [axis, axis]

    def host_work(self, *avals):
        return 8 * max(aval.size for aval in avals)


threefry2x32_p = Threefry2x32()


def threefry2x32(k0, k1, x0, x1) -> list:
    """Encrypts (x0, x1) with the key (k0, k1); see `Threefry2x32`."""
    return threefry2x32_p.bind(k0, k1, x0, x1)


# --- the cipher


def encrypt(k0, k1, x0, x1) -> tuple[np.ndarray, np.ndarray]:
    """The cipher on arrays of words that broadcast."""
    x0, x1 = np.broadcast_arrays(np.add(x0, k0), np.add(x1, k1))
    x0, x1 = np.array(x0), np.array(x1)
    shifted = np.empty_like(x0)
    schedule = (k0, k1, np.bitwise_xor(np.bitwise_xor(k0, k1), np.uint32(_PARITY)))
    for step in range(5):
        for bits in _ROTATIONS[step % 2]:
            np.add(x0, x1, x0)
            np.left_shift(x1, _SHIFTS[bits], shifted)
            np.right_shift(x1, _SHIFTS[32 - bits], x1)
            np.bitwise_or(x1, shifted, x1)
            np.bitwise_xor(x1, x0, x1)
        np.add(x0, schedule[(step + 1) % 3], x0)
        np.add(x1, schedule[(step + 2) % 3], x1)
        np.add(x1, _SHIFTS[step + 1], x1)
    return x0, x1


def emit_encrypt(k0: Formula, k1: Formula, x0: Formula, x1: Formula) -> tuple[Formula, Formula]:
    """The cipher in a program; unrolled, so that XLA fuses it with its neighbours."""
    schedule = (k0, k1, k0 ^ k1 ^ _PARITY)
    x0, x1 = x0 + k0, x1 + k1
    for step in range(5):
        for bits in _ROTATIONS[step % 2]:
            x0 = x0 + x1
            x1 = (x1.apply("shift_left", bits) | x1.apply("shift_right_logical", 32 - bits)) ^ x0
        x0 = x0 + schedule[(step + 1) % 3]
        x1 = x1 + schedule[(step + 2) % 3] + (step + 1)
    return x0, x1


def encrypt_lanes(k0: int, k1: int, k2: int, x0: int, x1: int, ones: int) -> int:
    """The cipher on integers of 64-bit lanes, each of which holds a word; `k2` is the parity of the keys.

    Lanes never touch: what a sum or a rotation leaves above a word is masked before it can reach the next lane.

    Returns:
        Lanes that hold the first word of the result in their lower half, the second one in their upper half.
    """
    mask = ones * _WORD
    x0, x1 = (x0 + k0) & mask, (x1 + k1) & mask
    schedule = (k0, k1, k2)
    for step in range(5):
        for bits in _ROTATIONS[step % 2]:
            x0 = (x0 + x1) & mask
            x1 = ((x1 << bits | x1 >> 32 - bits) & mask) ^ x0
        x0 = (x0 + schedule[(step + 1) % 3]) & mask
        x1 = (x1 + schedule[(step + 2) % 3] + (step + 1) * ones) & mask
    return x0 | x1 << 32


def _lanes(words: np.ndarray) -> int:
    return int.from_bytes(words.astype("<u8").tobytes(), "little")


@functools.lru_cache(maxsize=1024)
def _ones(lanes: int) -> int:
    return _lanes(np.ones(lanes, np.uint32))


def _encrypt_few(keys: np.ndarray, x0: int, x1: int, blocks: int) -> np.ndarray:
    """Encrypts `blocks` lanes of counters with each of the keys (…, 2): an array of words (…, blocks, 2)."""
    count = keys.size // 2
    lanes = blocks * count
    ones = _ones(lanes)
    if keys.ndim == 1:
        k0, k1 = keys.tolist()
        packed = encrypt_lanes(k0 * ones, k1 * ones, (k0 ^ k1 ^ _PARITY) * ones, x0, x1, ones)
    else:
        k0, k1 = _lanes(keys[..., 0].ravel().repeat(blocks)), _lanes(keys[..., 1].ravel().repeat(blocks))
        copies = _lanes_apart(count, blocks)
        packed = encrypt_lanes(k0, k1, k0 ^ k1 ^ _PARITY * ones, x0 * copies, x1 * copies, ones)
    words = np.frombuffer(packed.to_bytes(8 * lanes, "little"), "<u4")
    return words.reshape(*keys.shape[:-1], blocks, 2)


@functools.lru_cache(maxsize=1024)
def _lanes_apart(count: int, distance: int) -> int:
    """A one in every `distance`-th lane: multiplying by it repeats that many lanes `count` times."""
    return sum(1 << 64 * distance * i for i in range(count))


# --- streams
#
# The classic stream of n words encrypts the counters 0 … n−1 in pairs (i, i + ⌈n/2⌉), a missing last one being 0, and
# lists all first words, then all second words. The partitionable stream encrypts the 64-bit counter i for element i,
# so that every part of an array can be computed by itself.


def words(keys: np.ndarray, count: int) -> np.ndarray:
    """The first `count` words of the classic streams of keys (…, 2): an array (…, count)."""
    half = (count + 1) // 2
    if half * (keys.size // 2) <= _MAX_LANES:
        pairs = _encrypt_few(keys, *_classic_lanes(count), half)
        out = pairs.swapaxes(-1, -2).reshape(*keys.shape[:-1], 2 * half)
    else:
        counters = np.arange(2 * half, dtype=np.uint32)
        if count % 2:
            counters[-1] = 0
        out = np.concatenate(encrypt(keys[..., :1], keys[..., 1:], counters[:half], counters[half:]), axis=-1)
    return out[..., :count] if count % 2 else out


@functools.lru_cache(maxsize=1024)
def _classic_lanes(count: int) -> tuple[int, int]:
    half = (count + 1) // 2
    counters = np.arange(2 * half, dtype=np.uint32)
    if count % 2:
        counters[-1] = 0
    return _lanes(counters[:half]), _lanes(counters[half:])


def pairs(keys: np.ndarray, count: int) -> np.ndarray:
    """The words of the first `count` elements of the partitionable streams of keys (…, 2): an array (…, count, 2)."""
    if count * (keys.size // 2) <= _MAX_LANES:
        return _encrypt_few(keys, 0, _counting_lanes(count), count)
    index = np.arange(count, dtype=np.uint64)
    high, low = (index >> np.uint64(32)).astype(np.uint32), index.astype(np.uint32)
    return np.stack(encrypt(keys[..., :1], keys[..., 1:], high, low), axis=-1)


@functools.lru_cache(maxsize=1024)
def _counting_lanes(count: int) -> int:
    return _lanes(np.arange(count, dtype=np.uint32))


def encrypt_data(keys: np.ndarray, data: np.ndarray) -> np.ndarray:
    """Encrypts the word `data` with each of the keys (…, 2), shapes of data and keys being equal: an array (…, 2)."""
    if keys.ndim == 1:
        return _encrypt_few(keys, 0, int(data), 1).reshape(2)
    return np.stack(encrypt(keys[..., 0], keys[..., 1], np.uint32(0), data), axis=-1)


def emit_words(builder: Builder, keys: Value, count: int) -> Formula:
    """`words` in a program.

    For one key, every word is computed by itself, although two share the work: XLA then makes a single fused
    loop of it, which takes half as long as writing both halves does. For many keys, both words are kept in one of 64
    bits, so that no work is done twice.
    """
    if (stream := _by_kernel(builder, keys, _CLASSIC, count)) is not None:
        return stream
    half = (count + 1) // 2
    if keys.ndim > 1:
        leading = keys.shape[:-1]
        k0, k1 = emit_key(builder, keys, (*leading, half))
        counter = Formula(builder, builder.iota(k0.aval, len(leading)))
        packed = emit_packed(*emit_encrypt(k0, k1, *_pair_counters(counter, count)))
        order = (*range(len(leading)), len(leading) + 1, len(leading))
        swapped = packed.aval.with_shape((*leading, 2, half))
        halves = builder.op("transpose", (packed.value,), swapped, f"permutation = {integers(order)}")
        flat = builder.reshape(halves, (*leading, 2 * half))
        return emit_first(Formula(builder, flat), count)
    place = Formula(builder, builder.iota(ShapedArray((2 * half,), UINT32), 0))
    is_first = place < half
    k0, k1 = emit_key(builder, keys, (2 * half,))
    counters = _pair_counters(where(is_first, place, place - half), count)
    y0, y1 = emit_encrypt(k0, k1, *counters)
    return emit_first(where(is_first, y0, y1), count)


def _by_kernel(builder: Builder, keys: Value, stream: int, count: int) -> Formula | None:
    """The stream of every key by the native kernel, which takes any count alike; None if it does not serve.

    XLA shares out a loop in equal parts, and where they are not, as for an odd count and two processors, it
    computes one word at a time.
    """
    if not native.serves(builder):
        return None
    shape = (*keys.shape[:-1], count, *((2,) if stream == _PAIRS else ()))
    out = ShapedArray(shape, UINT32)
    if count < LONG or out.size < MANY:
        return None
    (words,) = native.call(builder, "threefry", (keys,), (out,), stream=stream, count=count)
    return Formula(builder, words)


def _pair_counters(counter: Formula, count: int) -> tuple[Formula, Formula]:
    """The pairs of counters of the classic stream of `count` words."""
    half = (count + 1) // 2
    second = counter + half
    if isinstance(count % 2, SymbolicDimension):
        return counter, where(second < count, second, 0)
    return counter, where(counter.equals(half - 1), 0, second) if count % 2 else second


def emit_packed(first: Formula, second: Formula) -> Formula:
    """Pairs of words (…) as one array (…, 2), computed together."""
    if is_symbolic_shape(first.aval.shape):  # which XLA does not refine through a bitcast
        builder, shape = first.builder, first.aval.shape
        columns = [builder.reshape(word.value, (*shape, 1)) for word in (first, second)]
        joined = ShapedArray((*shape, 2), UINT32)
        dimension = f"dimension = {len(shape)} : i64"
        return Formula(builder, builder.op("concatenate", columns, joined, dimension))
    wide = first.convert(np.uint64) | second.convert(np.uint64).apply("shift_left", 32)
    aval = ShapedArray((*first.aval.shape, 2), UINT32)
    return Formula(first.builder, first.builder.op("bitcast_convert", (wide.value,), aval))


def emit_pairs(builder: Builder, keys: Value, count: int) -> tuple[Formula, Formula]:
    """`pairs` in a program: the first and the second words, (…, count) each."""
    shape = (*keys.shape[:-1], count)
    k0, k1 = emit_key(builder, keys, shape)
    if exceeds(count, 1 << 32):
        index = Formula(builder, builder.iota(ShapedArray(shape, np.uint64), len(shape) - 1))
        high, low = index.apply("shift_right_logical", 32).convert(UINT32), index.convert(UINT32)
    else:
        low = Formula(builder, builder.iota(ShapedArray(shape, UINT32), len(shape) - 1))
        high = low.number(0)
    return emit_encrypt(k0, k1, high, low)


def emit_packed_pairs(builder: Builder, keys: Value, count: int) -> Formula:
    """`pairs` in a program, as one array (…, count, 2)."""
    stream = _by_kernel(builder, keys, _PAIRS, count)
    return emit_packed(*emit_pairs(builder, keys, count)) if stream is None else stream


def emit_joined_pairs(builder: Builder, keys: Value, count: int) -> Formula:
    """The exclusive or of the words of each of the `pairs`, (…, count)."""
    stream = _by_kernel(builder, keys, _JOINED, count)
    if stream is not None:
        return stream
    first, second = emit_pairs(builder, keys, count)
    return first ^ second


def emit_key(builder: Builder, keys: Value, shape: tuple[int, ...]) -> list[Formula]:
    """The two words of keys (…, 2), each repeated over `shape`, which starts as that of the keys."""
    leading = keys.shape[:-1]
    parts = []
    for i in range(2):
        part = builder.cut(keys, (0,) * len(leading) + (i,), (*leading, i + 1), (1,) * keys.ndim)
        word = builder.broadcast(builder.reshape(part, leading), shape, range(len(leading)))
        parts.append(Formula(builder, word))
    return parts


def emit_first(x: Formula, count: int) -> Formula:
    """The first `count` elements along the last axis."""
    shape = x.aval.shape
    limits = (*shape[:-1], count)
    return Formula(x.builder, x.builder.cut(x.value, (0,) * len(shape), limits, (1,) * len(shape)))
