"""Random keys and the bits drawn from them: `random_split`, `random_fold_in`, `random_bits` on Threefry keys.

Keys are uint32 arrays (…, 2); every key of an array has its own stream, so a batch of keys gives what each of them
gives alone. `partitionable` tells which of the two streams in `purax.primitives.random.threefry` is meant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.dimensions import exceeds
from purax.core.primitive import Primitive
from purax.primitives.elementwise.arithmetic import sub
from purax.primitives.elementwise.conversion import bitcast_convert_type, convert_element_type
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.elementwise.formula import Formula
from purax.primitives.elementwise.logic import lt, or_, select, shift_left, xor
from purax.primitives.outlined import outlined
from purax.primitives.random import threefry
from purax.primitives.random.threefry import UINT32
from purax.primitives.shape.broadcasting import batch_size, batch_to_front, broadcast_in_dim, full, move_axis
from purax.primitives.shape.reshaping import concatenate, reshape, stack
from purax.primitives.shape.slicing import slice_axis

_UINTS = {8: np.dtype(np.uint8), 16: np.dtype(np.uint16), 32: UINT32, 64: np.dtype(np.uint64)}
_MAX_WORDS = (1 << 32) - 1
_MANY = 1 << 14  # words that are better written to memory than computed along with functions such as log


class KeyPrimitive(Primitive):
    """An operation on keys: it has no derivative, and a batch of keys is just more keys."""

    def jvp(self, primals, tangents, **params):
        out = self.bind(*primals, **params)
        return out, Zero.like(out)

    def batch(self, operands, batch_axes, **params):
        return self.bind(move_axis(operands[0], batch_axes[0], 0), **params), 0


class RandomSplit(KeyPrimitive):
    """New keys of the given shape from each key."""

    name = "random_split"

    def infer(self, keys, *, shape, partitionable):
        check_keys(self.name, keys)
        return ShapedArray((*keys.shape[:-1], *shape, 2), UINT32)

    def host(self, keys, *, shape, partitionable):
        count = math.prod(shape)
        data = threefry.pairs(keys, count) if partitionable else threefry.words(keys, 2 * count)
        return data.reshape(*keys.shape[:-1], *shape, 2)

    def padded(self, at, avals, operands, *, shape, partitionable):
        (keys,), leading = operands, aval_of(operands[0]).shape[:-1]
        if not any(map(at.is_padded, shape)):
            return self.bind(keys, shape=at.rooms(shape), partitionable=partitionable)
        k0, k1, place = _together(keys, leading, at.flat_index(shape))
        if partitionable:
            place = convert_element_type(place, UINT32)
            words = threefry.threefry2x32(k0, k1, full(aval_of(place).shape, 0, UINT32), place)
        else:
            twice = mul(place, full(aval_of(place).shape, 2, np.int32))
            one = full(aval_of(place).shape, 1, np.int32)
            words = [_classic_word(at, k0, k1, n, 2 * math.prod(shape)) for n in (twice, add(twice, one))]
        return stack(words, aval_of(place).ndim)

    def lower(self, builder, keys, *, shape, partitionable):
        count = math.prod(shape)

        def emit(builder, keys):
            if partitionable:
                data = threefry.emit_packed_pairs(builder, keys, count)
            else:
                data = threefry.emit_words(builder, keys, 2 * count)
            return builder.reshape(data.value, (*keys.shape[:-1], *shape, 2))

        out = self.infer(keys.aval, shape=shape, partitionable=partitionable)
        return outlined(builder, self.name, (keys,), out, (shape, partitionable), emit)

    def host_work(self, keys, *, shape, partitionable):
        return 8 * keys.size * math.prod(shape)


class RandomFoldIn(KeyPrimitive):
    """A new key from each key and a word of data."""

    name = "random_fold_in"
    keeps_ends = True

    def infer(self, keys, data):
        check_keys(self.name, keys)
        if data.dtype != UINT32 or data.shape != keys.shape[:-1]:
            raise TypeError(
                f"random_fold_in takes one uint32 number per key, got {data.str_short()} for keys {keys.str_short()}"
            )
        return keys

    def host(self, keys, data):
        return threefry.encrypt_data(keys, data)

    def lower(self, builder, keys, data):
        def emit(builder, keys, data):
            k0, k1 = threefry.emit_key(builder, keys, data.shape)
            word = Formula(builder, data)
            return threefry.emit_packed(*threefry.emit_encrypt(k0, k1, word.number(0), word)).value

        return outlined(builder, self.name, (keys, data), keys.aval, (), emit)

    def batch(self, operands, batch_axes):
        size = batch_size(operands, batch_axes)
        return self.bind(
            *(batch_to_front(x, axis, size) for x, axis in zip(operands, batch_axes, strict=True))
        ), 0


class RandomBits(KeyPrimitive):
    """Arrays of random bits: unsigned integers of `bit_width` bits, an array of the given shape for each key.

    With `inline`, XLA may compute them where they are used. That saves memory, but it is slower if functions
    such as log are computed there too.
    """

    name = "random_bits"

    def infer(self, keys, *, bit_width, shape, partitionable, inline):
        check_keys(self.name, keys)
        return ShapedArray((*keys.shape[:-1], *shape), _UINTS[bit_width])

    def host(self, keys, *, bit_width, shape, partitionable, inline=False):
        count, leading = math.prod(shape), keys.shape[:-1]
        if partitionable:
            pairs = threefry.pairs(keys, count)
            if bit_width == 64:
                bits = pairs[..., ::-1].copy().view(_UINTS[64])[..., 0]  # the first word is the upper half
            else:
                bits = (pairs[..., 0] ^ pairs[..., 1]).astype(_UINTS[bit_width])
        elif bit_width == 32:
            bits = threefry.words(keys, count)
        elif bit_width == 64:
            words = threefry.words(keys, 2 * count)
            bits = words[..., :count].astype(np.uint64) << np.uint64(32) | words[..., count:]
        else:
            words = threefry.words(keys, -(-count * bit_width // 32))
            bits = np.ascontiguousarray(words).view(_UINTS[bit_width])[..., :count]
        return bits.reshape(leading + shape)

    def padded(self, at, avals, operands, *, bit_width, shape, partitionable, inline):
        (keys,), leading = operands, aval_of(operands[0]).shape[:-1]
        params = {"bit_width": bit_width, "partitionable": partitionable, "inline": inline}
        if not any(map(at.is_padded, shape)):
            return self.bind(keys, shape=at.rooms(shape), **params)
        if not partitionable and bit_width != 32:
            at.refuse(self.name, avals, f"its bits depend on the size; of {bit_width} bits, not of 32")
        place = at.flat_index(shape)
        k0, k1, place = _together(keys, leading, place)
        count = math.prod(shape)
        if not partitionable:
            return _classic_word(at, k0, k1, place, count)
        place = convert_element_type(place, UINT32)
        first, second = threefry.threefry2x32(k0, k1, full(aval_of(place).shape, 0, UINT32), place)
        if bit_width < 64:
            return convert_element_type(xor(first, second), _UINTS[bit_width])
        high, low = (convert_element_type(word, np.uint64) for word in (first, second))
        return or_(shift_left(high, full(aval_of(high).shape, 32, np.uint64)), low)

    def lower(self, builder, keys, *, bit_width, shape, partitionable, inline):
        def emit(builder, keys):
            return self.emit(builder, keys, bit_width, shape, partitionable)

        if inline and keys.ndim == 1:
            return emit(builder, keys)
        static = (bit_width, shape, partitionable)
        out = ShapedArray((*keys.shape[:-1], *shape), _UINTS[bit_width])
        return outlined(builder, self.name, (keys,), out, static, emit, alone=exceeds(out.size, _MANY - 1))

    def emit(self, builder, keys, bit_width, shape, partitionable):
        count, leading = math.prod(shape), keys.shape[:-1]
        dtype = _UINTS[bit_width]
        if partitionable and bit_width == 64:
            bits = _joined(*threefry.emit_pairs(builder, keys, count))
        elif partitionable:
            bits = threefry.emit_joined_pairs(builder, keys, count).convert(dtype)
        elif bit_width == 32:
            bits = threefry.emit_words(builder, keys, count)
        elif bit_width == 64:
            words = threefry.emit_words(builder, keys, 2 * count)
            pairs = builder.reshape(words.value, (*leading, 2, count))
            bits = _joined(*(_row(Formula(builder, pairs), i) for i in range(2)))
        else:
            words = threefry.emit_words(builder, keys, -(-count * bit_width // 32))
            bits = threefry.emit_first(_pieces(words, bit_width), count)
        return builder.reshape(bits.value, (*leading, *shape))

    def host_work(self, keys, *, bit_width, shape, partitionable, inline):
        return 4 * keys.size * math.prod(shape) * max(bit_width // 32, 1)


def _together(keys: Any, leading: tuple[int, ...], place: Any) -> list[Any]:
    """The words of keys (…, 2) and places, repeated over the shape of both, that of the keys first."""
    inner = aval_of(place).shape
    shape = (*leading, *inner)
    words = [reshape(slice_axis(keys, i, i + 1, len(leading)), leading) for i in range(2)]
    wide = [broadcast_in_dim(word, shape, range(len(leading))) for word in words]
    return [*wide, broadcast_in_dim(place, shape, range(len(leading), len(shape)))]


def _classic_word(at: Any, k0: Any, k1: Any, place: Any, count: Any) -> Any:
    """The words at some places of the classic streams of `count` words, a number that only the program knows."""
    shape = aval_of(place).shape
    half, end = (broadcast_in_dim(at.scalar(n), shape, ()) for n in ((count + 1) // 2, count))
    is_first = lt(place, half)
    counter = select(is_first, place, sub(place, half))
    second = add(counter, half)
    second = select(lt(second, end), second, full(shape, 0, np.int32))
    words = threefry.threefry2x32(k0, k1, *(convert_element_type(x, UINT32) for x in (counter, second)))
    return select(is_first, *words)


def _joined(high: Formula, low: Formula) -> Formula:
    return high.convert(np.uint64).apply("shift_left", 32) | low.convert(np.uint64)


def _row(x: Formula, row: int) -> Formula:
    """Row `row` of the last but one axis."""
    shape = x.aval.shape
    starts = [0] * (len(shape) - 2) + [row, 0]
    limits = [*shape[:-2], row + 1, shape[-1]]
    part = x.builder.cut(x.value, starts, limits, [1] * len(shape))
    return Formula(x.builder, x.builder.reshape(part, (*shape[:-2], shape[-1])))


def _pieces(words: Formula, bit_width: int) -> Formula:
    """Cuts words into pieces of `bit_width` bits, lowest first."""
    builder, shape = words.builder, words.aval.shape
    wide = (*shape, 32 // bit_width)
    repeated = Formula(builder, builder.broadcast(words.value, wide, range(len(shape))))
    place = Formula(builder, builder.iota(ShapedArray(wide, UINT32), len(shape))) * bit_width
    pieces = repeated.apply("shift_right_logical", place).convert(_UINTS[bit_width])
    return Formula(builder, builder.reshape(pieces.value, (*shape[:-1], shape[-1] * wide[-1])))


random_split_p = RandomSplit()
random_fold_in_p = RandomFoldIn()
random_bits_p = RandomBits()


def check_keys(name: str, keys: ShapedArray) -> None:
    if keys.dtype != UINT32 or not keys.ndim or keys.shape[-1] != 2:
        raise TypeError(f"{name} takes keys: uint32 arrays of shape (…, 2); got {keys.str_short()}")


def random_split(keys, shape: Sequence[int], partitionable: bool):
    """New keys (…, *shape, 2) from keys (…, 2)."""
    return random_split_p.bind(keys, shape=tuple(shape), partitionable=partitionable)


random_fold_in = random_fold_in_p.bind


def random_bits(keys, bit_width: int, shape: Sequence[int], partitionable: bool, inline: bool = False):
    """Random unsigned integers (…, *shape) of `bit_width` bits from keys (…, 2)."""
    shape = tuple(shape)
    count = math.prod(shape)
    words = -(-count * bit_width // 32)
    if partitionable or not exceeds(words, _MAX_WORDS):
        return random_bits_p.bind(
            keys, bit_width=bit_width, shape=shape, partitionable=partitionable, inline=inline
        )
    return _many_bits(keys, bit_width, shape, words)


def _many_bits(keys, bit_width: int, shape: tuple[int, ...], words: int):
    """`random_bits` for more words than 32-bit counters tell apart: blocks of them, each with a key of its own."""
    leading = aval_of(keys).shape[:-1]
    axis = len(leading)
    blocks, rest = divmod(words, _MAX_WORDS)
    new_keys = random_split(keys, (blocks + 1,), False)
    whole = random_bits(slice_axis(new_keys, 0, blocks, axis), 32, (_MAX_WORDS,), False)
    last = reshape(slice_axis(new_keys, blocks, blocks + 1, axis), (*leading, 2))
    stream = concatenate(
        [reshape(whole, (*leading, blocks * _MAX_WORDS)), random_bits(last, 32, (rest,), False)], axis
    )
    count = math.prod(shape)
    if bit_width == 64:
        high, low = (slice_axis(stream, start, start + count, axis) for start in (0, count))
        wide = [convert_element_type(half, np.uint64) for half in (high, low)]
        stream = or_(shift_left(wide[0], np.uint64(32)), wide[1])
    elif bit_width < 32:
        pieces = bitcast_convert_type(stream, _UINTS[bit_width])
        stream = slice_axis(reshape(pieces, (*leading, words * (32 // bit_width))), 0, count, axis)
    return reshape(stream, (*leading, *shape))
