"""Masks of attention as objects that are not made in full until they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core.source import located


def make_causal_mask(shape: tuple[int, int], offset: int = 0) -> np.ndarray:
    """Which keys are not later than a query, which is `offset` further on."""
    rows, columns = (np.arange(n) for n in shape)
    return rows[:, None] + offset >= columns[None, :]


def make_local_attention_mask(
    shape: tuple[int, int], window_size: tuple[int | None, int | None], *, offset: int = 0
) -> np.ndarray:
    """Which keys are at most so far before and behind a query."""
    rows, columns = (np.arange(n) for n in shape)
    before, behind = window_size
    distance = columns[None, :] - (rows[:, None] + offset)
    mask = np.ones(shape, bool)
    if before is not None:
        mask &= distance >= -before
    if behind is not None:
        mask &= distance <= behind
    return mask


def make_chunk_attention_mask(shape: tuple[int, int], chunk_size: int) -> np.ndarray:
    """Which keys are in the chunk of a query, and not later."""
    rows, columns = (np.arange(n) for n in shape)
    same = rows[:, None] // chunk_size == columns[None, :] // chunk_size
    return same & make_causal_mask(shape)


def make_random_mask(shape: tuple[int, int], sparsity: float, seed: int) -> np.ndarray:
    """A random mask of which about `sparsity` is false."""
    return np.random.default_rng(seed).random(shape) >= sparsity


class Mask:
    """The base of masks: `mask[...]` gives a part as an array of bools."""

    shape: tuple[int, ...]

    def array(self) -> np.ndarray:
        """All of it."""
        raise NotImplementedError

    def __getitem__(self, index: Any) -> np.ndarray:
        return self.array()[index]

    def __or__(self, other: Mask) -> Mask:
        return LogicalOr(self, other)

    def __and__(self, other: Mask) -> Mask:
        return LogicalAnd(self, other)

    def __bool__(self) -> bool:
        raise located(TypeError, "a mask is no bool; combine masks with `&` and `|`")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Mask)
            and self.shape == other.shape
            and np.array_equal(self.array(), other.array())
        )

    def __hash__(self) -> int:
        return hash((type(self), self.shape))


class NumpyMask(Mask):
    """A mask that is given in full."""

    def __init__(self, array: np.ndarray):
        if array.ndim != 2 or array.dtype != np.bool_:
            raise located(
                ValueError, f"NumpyMask needs a matrix of bools, got {array.dtype} of shape {array.shape}"
            )
        self._array, self.shape = array, array.shape

    def array(self) -> np.ndarray:
        return self._array


class FullMask(Mask):
    """Every query may look at every key."""

    def __init__(self, _shape: tuple[int, int]):
        self.shape = tuple(_shape)

    def array(self) -> np.ndarray:
        return np.ones(self.shape, bool)


class CausalMask(Mask):
    """Queries may look at keys that are not later."""

    def __init__(self, shape: tuple[int, int], offset: int = 0, shard_count: int = 1):
        self.shape, self.offset = tuple(shape), offset

    def array(self) -> np.ndarray:
        return make_causal_mask(self.shape, self.offset)  # type: ignore[arg-type]


class LocalMask(Mask):
    """Queries may look at keys nearby."""

    def __init__(
        self,
        shape: tuple[int, int],
        window_size: tuple[int | None, int | None],
        offset: int = 0,
        shard_count: int = 1,
    ):
        self.shape, self.window_size, self.offset = tuple(shape), window_size, offset

    def array(self) -> np.ndarray:
        return make_local_attention_mask(self.shape, self.window_size, offset=self.offset)  # type: ignore[arg-type]


class ChunkedCausalMask(Mask):
    """Queries may look at keys of their chunk that are not later."""

    def __init__(self, shape: tuple[int, int], chunk_size: int, shard_count: int = 1):
        self.shape, self.chunk_size = tuple(shape), chunk_size

    def array(self) -> np.ndarray:
        return make_chunk_attention_mask(self.shape, self.chunk_size)  # type: ignore[arg-type]


class LogicalOr(Mask):
    """What either of two masks allows."""

    def __init__(self, left: Mask, right: Mask):
        self.left, self.right, self.shape = left, right, _one_shape(left, right)

    def array(self) -> np.ndarray:
        return self.left.array() | self.right.array()


class LogicalAnd(Mask):
    """What both of two masks allow."""

    def __init__(self, left: Mask, right: Mask):
        self.left, self.right, self.shape = left, right, _one_shape(left, right)

    def array(self) -> np.ndarray:
        return self.left.array() & self.right.array()


class MultiHeadMask(Mask):
    """A mask for each head."""

    def __init__(self, masks: Sequence[Mask]):
        self.masks = list(masks)
        if not self.masks:
            raise located(ValueError, "MultiHeadMask needs a mask at least")
        for each in self.masks:
            _one_shape(self.masks[0], each)
        self.shape = (len(self.masks), *self.masks[0].shape)

    def array(self) -> np.ndarray:
        return np.stack([each.array() for each in self.masks])


def _one_shape(left: Mask, right: Mask) -> tuple[int, ...]:
    if left.shape != right.shape:
        raise located(
            ValueError, f"masks that are combined must have one shape, got {left.shape} and {right.shape}"
        )
    return left.shape
