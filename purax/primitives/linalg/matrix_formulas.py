"""Formulas on batches of matrices, of which factorizations are written for platforms without kernels of their own.

A `Matrices` is a `Formula` whose first axis is the batch: matrices have shape [b, m, n], vectors [b, n], numbers [b].
Steps of a loop are counted by numbers of shape []. Sums of products are multiplications and sums, never products of
matrices, so that they are as exact as the dtype on every platform.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core.avals import ShapedArray
from purax.primitives.elementwise.formula import Formula, where
from purax.primitives.linalg.lapack import INT32, is_complex, real_dtype
from purax.xla.stablehlo import Builder, Value, integers


class Matrices(Formula):
    """Matrices, vectors or numbers, one for each element of a batch, that are being computed by a program."""

    __slots__ = ()

    shape = property(lambda self: self.value.shape)
    is_complex = property(lambda self: is_complex(self.dtype))

    def like(self, value: Any) -> Matrices:
        return Matrices(self.builder, value)

    def apply(self, opcode: str, *others: Any, dtype: Any = None) -> Any:
        return super().apply(opcode, *others, dtype=dtype)

    def parts(self) -> tuple[Any, Any]:
        return super().parts()

    def with_imaginary(self, imaginary: Any) -> Any:
        return super().with_imaginary(imaginary)

    def convert(self, dtype: Any) -> Any:
        return super().convert(dtype)

    def loop(self, condition: Callable, body: Callable, state: Sequence[Any]) -> list[Any]:
        return super().loop(condition, body, list(state))

    # -- shapes

    def reshape(self, *shape: int) -> Matrices:
        return self.like(self.builder.reshape(self.value, shape))

    def repeat(self, shape: Sequence[int], axes: Sequence[int]) -> Matrices:
        """This value over `shape`; its axis i becomes axis `axes[i]`."""
        return self.like(self.builder.broadcast(self.value, shape, axes))

    def in_rows(self, columns: int) -> Matrices:
        """Vectors [b, m] as matrices [b, m, columns] with element i everywhere in row i."""
        return self.repeat((*self.shape, columns), (0, 1))

    def in_columns(self, rows: int) -> Matrices:
        """Vectors [b, n] as matrices [b, rows, n] with element j everywhere in column j."""
        return self.repeat((self.shape[0], rows, self.shape[1]), (0, 2))

    def everywhere(self, shape: Sequence[int]) -> Matrices:
        """Numbers [b], or one number [], in all elements of arrays of `shape`."""
        return self.repeat(shape, range(len(self.shape)))

    def transpose(self) -> Matrices:
        b, m, n = self.shape
        aval = self.aval.with_shape((b, n, m))
        return self.like(
            self.builder.op("transpose", (self.value,), aval, "permutation = array<i64: 0, 2, 1>")
        )

    def places(self, axis: int) -> Matrices:
        """The index along `axis` in every element, as int32."""
        return self.like(self.builder.iota(self.aval.with_dtype(INT32), axis))

    def cut(self, axis: int, start: int, stop: int) -> Matrices:
        """The elements from `start` up to `stop` along `axis`."""
        starts, limits = [0] * len(self.shape), list(self.shape)
        starts[axis], limits[axis] = start, stop
        return self.like(self.builder.cut(self.value, starts, limits, [1] * len(self.shape)))

    def pad(self, axis: int, count: int) -> Matrices:
        """With `count` zeros more at the end of `axis`."""
        if not count:
            return self
        none, high = [0] * len(self.shape), [0] * len(self.shape)
        high[axis] = count
        shape = tuple(n + more for n, more in zip(self.shape, high, strict=True))
        attributes = (
            f"edge_padding_low = {integers(none)}, edge_padding_high = {integers(high)}, "
            f"interior_padding = {integers(none)}"
        )
        zero = self.builder.constant(0, ShapedArray((), self.dtype))
        return self.like(self.builder.op("pad", (self.value, zero), self.aval.with_shape(shape), attributes))

    def reverse(self, *axes: int) -> Matrices:
        """With the elements along `axes` in the other order."""
        attributes = f"dimensions = {integers(axes)}"
        return self.like(self.builder.op("reverse", (self.value,), self.aval, attributes))

    # -- elements

    def _starts(self, axis: int, place: Matrices) -> list[Value]:
        zero = self.builder.constant(0, ShapedArray((), INT32))
        return [place.value if a == axis else zero for a in range(len(self.shape))]

    def at(self, axis: int, place: Matrices) -> Matrices:
        """What stands at a computed place along `axis`, without that axis."""
        sizes = [1 if a == axis else n for a, n in enumerate(self.shape)]
        found = self.builder.window(self.value, self._starts(axis, place), tuple(sizes))
        return self.like(found).reshape(*sizes[:axis], *sizes[axis + 1 :])

    def put(self, axis: int, place: Matrices, part: Matrices) -> Matrices:
        """With `part` at a computed place along `axis`."""
        shape = [1 if a == axis else n for a, n in enumerate(self.shape)]
        operands = (self.value, part.reshape(*shape).value, *self._starts(axis, place))
        return self.like(self.builder.op("dynamic_update_slice", operands, self.aval))

    def take(self, order: Matrices) -> Matrices:
        """Element, or row, `order[i]` of each vector, or matrix, as its element, or row, i."""
        shape, count = self.shape, order.shape[1]
        offsets = "[2]" if len(shape) == 3 else "[]"
        numbers = (
            f"dimension_numbers = #stablehlo.gather<offset_dims = {offsets}, collapsed_slice_dims = [1], "
            "operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], "
            "index_vector_dim = 2>, indices_are_sorted = false"
        )
        aval = self.aval.with_shape((shape[0], count, *shape[2:]))
        places = order.reshape(shape[0], count, 1).value
        return self.like(self.builder.gather(self.value, places, (1, 1, *shape[2:]), aval, numbers))

    # -- numbers

    def conjugate(self) -> Matrices:
        if not self.is_complex:
            return self
        real, imaginary = self.parts()
        return real.with_imaginary(-imaginary)

    def adjoint(self) -> Matrices:
        return self.transpose().conjugate()

    def real(self) -> Matrices:
        return self.parts()[0] if self.is_complex else self

    def as_dtype(self, dtype: np.dtype) -> Matrices:
        """Real numbers in another dtype, perhaps a complex one."""
        if not is_complex(dtype) or self.is_complex:
            return self.convert(dtype)
        return self.with_imaginary(self.number(0))

    def magnitude(self) -> Matrices:
        """The absolute value, which is real."""
        return self.apply("abs", dtype=real_dtype(self.dtype))

    def largest_part(self) -> Matrices:
        """The larger one of the absolute values of real and imaginary part."""
        if not self.is_complex:
            return abs(self)
        real, imaginary = self.parts()
        return abs(real).maximum(abs(imaginary))

    def sum_of_parts(self) -> Matrices:
        """The sum of the absolute values of real and imaginary part, by which LAPACK chooses pivots."""
        if not self.is_complex:
            return abs(self)
        real, imaginary = self.parts()
        return abs(real) + abs(imaginary)

    def squares(self) -> Matrices:
        """The squares of the absolute values."""
        if not self.is_complex:
            return self * self
        real, imaginary = self.parts()
        return real * real + imaginary * imaginary

    def sum(self, *axes: int) -> Matrices:
        return self.like(self.builder.reduce(self.value, 0, "add", axes))

    def largest(self, *axes: int) -> Matrices:
        """The largest element; NaN if there is one."""
        return self.like(self.builder.reduce(self.value, -np.inf, "maximum", axes))

    def every(self, *axes: int) -> Matrices:
        return self.like(self.builder.reduce(self.value, True, "and", axes))

    def some(self, *axes: int) -> Matrices:
        return self.like(self.builder.reduce(self.value, False, "or", axes))

    def first_largest(self, otherwise: Matrices) -> Matrices:
        """Where vectors [b, n] are largest first, as int32 [b]; `otherwise` for those with NaN."""
        places = self.places(1)
        is_largest = self.equals(self.largest(1).everywhere(self.shape))
        n = self.shape[1]
        found = places.number(n)
        found = self.like(self.builder.reduce(where(is_largest, places, found).value, n, "minimum", (1,)))
        return where(found.equals(n), otherwise, found)


def on_batches(builder: Builder, x: Value, core: int = 2) -> Matrices:
    """A value as matrices, or vectors if `core` is 1, with one axis in front for all elements of its batch."""
    batch = math.prod(x.shape[: x.ndim - core])
    return Matrices(builder, builder.reshape(x, (batch, *x.shape[x.ndim - core :])))


def as_results(batch: Sequence[int], *results: Matrices) -> list[Value]:
    """The values of results, with the axes `batch` in place of the one for all elements."""
    return [x.reshape(*batch, *x.shape[1:]).value for x in results]


def counted(count: int, body: Callable[..., Sequence[Matrices]], state: Sequence[Matrices]) -> list[Matrices]:
    """`state` after `count` times `state = body(step, *state)`."""
    first = state[0]
    start = first.like(first.builder.constant(0, ShapedArray((), INT32)))

    def step(values):
        return [values[0] + 1, *body(*values)]

    return first.loop(lambda values: values[0] < count, step, [start, *state])[1:]


def number_like(x: Matrices, value: float, shape: Sequence[int], dtype: np.dtype | None = None) -> Matrices:
    """A constant array of some shape, of the dtype of `x` unless another is given."""
    return x.like(x.builder.constant(value, ShapedArray(tuple(shape), dtype or x.dtype)))


def identity_like(x: Matrices, rows: int, columns: int) -> Matrices:
    """Identity matrices for the batch of `x`, in its dtype."""
    index = number_like(x, 0, (x.shape[0], rows, columns), INT32)
    return index.places(1).equals(index.places(2)).convert(x.dtype)


def concatenate(axis: int, *parts: Matrices) -> Matrices:
    kept = [x for x in parts if x.shape[axis]]
    if len(kept) == 1:
        return kept[0]
    shape = list(kept[0].shape)
    shape[axis] = sum(x.shape[axis] for x in kept)
    values = [x.value for x in kept]
    aval = kept[0].aval.with_shape(tuple(shape))
    return kept[0].like(kept[0].builder.op("concatenate", values, aval, f"dimension = {axis} : i64"))


def ascending(keys: Matrices) -> Matrices:
    """The order, as int32, in which vectors [b, n] of real numbers ascend."""
    builder = keys.builder
    places = keys.places(1)
    number, index = ShapedArray((), keys.dtype), ShapedArray((), INT32)
    body = builder.region(
        (number, number, index, index), lambda inner, a, b, c, d: [inner.compare("LT", a, b)]
    )
    avals = [keys.aval, places.aval]
    attributes = "dimension = 1 : i64, is_stable = true"
    return keys.like(builder.op("sort", (keys.value, places.value), avals, attributes, (body,))[1])


def inverse(order: Matrices) -> Matrices:
    """The inverse of permutations."""
    return ascending(order)
