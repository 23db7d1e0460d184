"""`RaggedArray`: values of shape (rows, …) of which example i has the rows `splits[i]` up to `splits[i + 1]`.

Rows from `splits[-1]` on are room that no example uses. Operators work on the rows; two ragged arrays meet if they have
the same splits. Reductions go over the rows of each example, by segments, so that no padding is computed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import purax.numpy as jnp
from purax.core.array import Array
from purax.core.avals import aval_of
from purax.core.source import located
from purax.core.trace import Tracer
from purax.errors import shown
from purax.numpy._reductions.segments import segment_max, segment_min, segment_prod, segment_sum
from purax.tree.nodes import register_pytree_with_keys_class
from purax.tree.registry import GetAttrKey
from purax.typing import ArrayLike


def _operator(function: Callable[[Any, Any], Any], name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """An operator of two operands, and the one of which the ragged array is the second."""

    def forward(self: RaggedArray, other: Any) -> RaggedArray:
        return RaggedArray(function(self.values, self._rows_of(other, name)), self.splits)

    def backward(self: RaggedArray, other: Any) -> RaggedArray:
        return RaggedArray(function(self._rows_of(other, name), self.values), self.splits)

    return forward, backward


@register_pytree_with_keys_class
class RaggedArray:
    """Examples of unequal lengths. Made by `from_list` and `from_padded`.

    Args:
        values: the rows of all examples, one after the other.
        splits: where the rows of each example begin, and where those of the last end: integers, from 0.

    >>> import purax as px, purax.numpy as jnp
    >>> x = px.ragged.from_list([[1.0, 2.0, 3.0], [10.0]])
    >>> (x * 2).sum(), x.lengths
    (Array([12., 20.], dtype=float32), Array([3, 1], dtype=int32))
    """

    __array_ufunc__ = None

    def __init__(self, values: ArrayLike, splits: ArrayLike):
        self.values, self.splits = values, splits

    def tree_flatten_with_keys(self) -> Any:
        """Its parts with their names."""
        return [(GetAttrKey("values"), self.values), (GetAttrKey("splits"), self.splits)], None

    @classmethod
    def tree_unflatten(cls, _: Any, parts: Sequence[Any]) -> RaggedArray:
        """A ragged array of parts."""
        return cls(*parts)

    # -- what it is

    @property
    def count(self) -> int:
        """The number of examples."""
        return int(self.splits.shape[0]) - 1  # type: ignore[union-attr]

    @property
    def rows(self) -> int:
        """The number of rows that there is room for."""
        return int(self.values.shape[0])  # type: ignore[union-attr]

    @property
    def lengths(self) -> Array:
        """The number of rows of each example."""
        splits: Any = self.splits
        return splits[1:] - splits[:-1]

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.values.dtype  # type: ignore[union-attr]

    @property
    def segments(self) -> Array:
        """For each row the example that it belongs to; `count` for rows that no example uses."""
        splits: Any = self.splits
        places = jnp.arange(self.rows, dtype=splits.dtype)
        return jnp.searchsorted(splits[1:], places, side="right").astype(np.int32)

    def __repr__(self) -> str:
        values, splits = aval_of(self.values), aval_of(self.splits)
        return f"RaggedArray({values.str_short()}, {splits.shape[0] - 1} examples)"

    def __len__(self) -> int:
        return self.count

    # -- conversions

    def to_list(self) -> list[Array]:
        """The examples as arrays.

        >>> import purax as px
        >>> [x.tolist() for x in px.ragged.from_list([[1, 2], [3]]).to_list()]
        [[1, 2], [3]]
        """
        splits = _known(self.splits, "to_list")
        values: Any = self.values
        return [values[start:end] for start, end in zip(splits[:-1], splits[1:], strict=True)]

    def to_padded(self, fill_value: ArrayLike = 0, length: int | None = None) -> Array:
        """The examples as an array of shape (count, length, …).

        Args:
            fill_value: for what no example has.
            length: of the longest example, or more; inside of `jit` it must be given.

        >>> import purax as px
        >>> px.ragged.from_list([[1, 2], [3]]).to_padded(-1)
        Array([[ 1,  2],
               [ 3, -1]], dtype=int32)
        """
        values: Any = self.values
        splits: Any = self.splits
        if not isinstance(splits, Tracer):
            longest = int(np.max(np.diff(np.asarray(splits)), initial=0))
            if length is not None and length < longest:
                raise located(ValueError, f"to_padded: length {length} is less than that of an example, {longest}")
            length = longest if length is None else length
        if length is None:
            raise located(ValueError, "to_padded needs `length` where the lengths are not known, as inside of `jit`")
        places = splits[:-1, None] + jnp.arange(length, dtype=splits.dtype)
        inside = jnp.arange(length) < self.lengths[:, None]
        inside = inside.reshape(*inside.shape, *[1] * (values.ndim - 1))
        if not self.rows:
            return jnp.full((self.count, length, *values.shape[1:]), fill_value, values.dtype)
        taken = jnp.take(values, places, axis=0, mode="clip")
        return jnp.where(inside, taken, jnp.asarray(fill_value, values.dtype))

    # -- operators

    def map(self, function: Callable[..., Any], *others: Any) -> RaggedArray:
        """`function` of the rows: of an array of shape (rows, …) one with as many rows."""
        found = function(*[self._rows_of(x, "map") for x in (self, *others)])
        if not found.shape or found.shape[0] != self.rows:
            raise located(ValueError, f"RaggedArray.map: {self.rows} rows became an array of shape {found.shape}")
        return RaggedArray(found, self.splits)

    def with_splits_of(self, other: RaggedArray) -> RaggedArray:
        """The same values, said to belong to the examples of another array: for arrays that meet inside of `jit`."""
        if other.rows != self.rows:
            raise located(ValueError, f"with_splits_of: {self.rows} rows are not {other.rows}")
        return RaggedArray(self.values, other.splits)

    def _rows_of(self, other: Any, name: str) -> Any:
        """What meets the rows: those of an array with the same splits, a number, or what stands for every row."""
        if not isinstance(other, RaggedArray):
            ndim = getattr(other, "ndim", 0)
            if ndim >= self.values.ndim:  # type: ignore[union-attr]
                raise located(
                    ValueError,
                    f"RaggedArray: {name} with an array of shape {other.shape}, which has an axis for the rows. Use "
                    "`.of_examples(x)` for an array with an entry for each example.",
                )
            return other
        if other.splits is not self.splits:
            if isinstance(self.splits, Tracer) or isinstance(other.splits, Tracer):
                raise located(
                    ValueError,
                    f"RaggedArray: {name} of two arrays of which it is not known here that their examples have the "
                    "same lengths. Say so: `y.with_splits_of(x)`.",
                )
            if not np.array_equal(np.asarray(other.splits), np.asarray(self.splits)):
                raise located(
                    ValueError,
                    f"RaggedArray: {name} of examples of other lengths: {np.diff(np.asarray(self.splits)).tolist()} "
                    f"and {np.diff(np.asarray(other.splits)).tolist()}",
                )
        if other.rows != self.rows:
            raise located(ValueError, f"RaggedArray: {name} of {self.rows} and {other.rows} rows")
        return other.values

    def of_examples(self, x: Any) -> RaggedArray:
        """An array with an entry for each example, repeated for the rows of the example.

        >>> import purax as px, purax.numpy as jnp
        >>> x = px.ragged.from_list([[1.0, 3.0], [4.0]])
        >>> [y.tolist() for y in (x - x.of_examples(x.mean())).to_list()]
        [[-1.0, 1.0], [0.0]]
        """
        if x.shape[0] != self.count:
            raise located(ValueError, f"of_examples: {self.count} examples and an array of shape {x.shape}")
        if not self.count:
            return RaggedArray(jnp.zeros((self.rows, *x.shape[1:]), x.dtype), self.splits)
        return RaggedArray(jnp.take(x, self.segments, axis=0, mode="clip"), self.splits)

    __add__, __radd__ = _operator(operator.add, "add")
    __sub__, __rsub__ = _operator(operator.sub, "sub")
    __mul__, __rmul__ = _operator(operator.mul, "mul")
    __truediv__, __rtruediv__ = _operator(operator.truediv, "truediv")
    __floordiv__, __rfloordiv__ = _operator(operator.floordiv, "floordiv")
    __mod__, __rmod__ = _operator(operator.mod, "mod")
    __pow__, __rpow__ = _operator(operator.pow, "pow")
    __lt__, __gt__ = _operator(operator.lt, "lt")[0], _operator(operator.gt, "gt")[0]
    __le__, __ge__ = _operator(operator.le, "le")[0], _operator(operator.ge, "ge")[0]

    def __neg__(self) -> RaggedArray:
        return RaggedArray(operator.neg(self.values), self.splits)  # type: ignore[arg-type]

    def __abs__(self) -> RaggedArray:
        return RaggedArray(abs(self.values), self.splits)  # type: ignore[arg-type]

    def __matmul__(self, other: Any) -> RaggedArray:
        if isinstance(other, RaggedArray):
            raise located(TypeError, "RaggedArray: x @ y with two ragged arrays; write x.map(function, y)")
        return RaggedArray(jnp.matmul(self.values, other), self.splits)

    def astype(self, dtype: Any) -> RaggedArray:
        """The values as another dtype."""
        return RaggedArray(jnp.asarray(self.values).astype(dtype), self.splits)

    # -- reductions over the rows of each example

    def sum(self) -> Array:
        """The sums of the examples."""
        return segment_sum(self.values, self.segments, self.count)

    def prod(self) -> Array:
        """The products of the examples."""
        return segment_prod(self.values, self.segments, self.count)

    def max(self) -> Array:
        """The largest values of the examples; of an empty one the least number."""
        return segment_max(self.values, self.segments, self.count)

    def min(self) -> Array:
        """The smallest values of the examples; of an empty one the largest number."""
        return segment_min(self.values, self.segments, self.count)

    def mean(self) -> Array:
        """The means of the examples; NaN of an empty one."""
        total = self.sum()
        lengths = self.lengths.reshape(-1, *[1] * (total.ndim - 1))
        return total / lengths


def _known(splits: Any, name: str) -> list[int]:
    if isinstance(splits, Tracer):
        raise located(ValueError, f"RaggedArray.{name} needs to know the lengths, which it does not inside of `jit`")
    return np.asarray(splits).tolist()


def from_list(examples: Sequence[ArrayLike], *, rows: int | None = None) -> RaggedArray:
    """The ragged array of some examples.

    Args:
        examples: arrays of shapes (length, …), which differ in their lengths alone.
        rows: the number of rows to make room for; as many as there are by default. With equal `rows` and numbers of
            examples, a compiled function is compiled once.

    >>> import purax as px
    >>> px.ragged.from_list([[1.0, 2.0], [], [3.0]]).lengths.tolist()
    [2, 0, 1]
    """
    listed = list(examples)
    if not listed:
        raise located(ValueError, "from_list needs an example")
    arrays = [jnp.asarray(x) for x in listed]
    full = next((x for x in arrays if x.shape[:1] != (0,)), arrays[0])
    arrays = [jnp.zeros((0, *full.shape[1:]), full.dtype) if x.shape[:1] == (0,) else x for x in arrays]
    if any(not x.ndim or x.shape[1:] != full.shape[1:] for x in arrays):
        raise located(
            ValueError, f"from_list: examples may differ in their first axis alone, got {[x.shape for x in arrays]}"
        )
    lengths = [x.shape[0] for x in arrays]
    total = sum(lengths)
    if rows is not None and rows < total:
        raise located(ValueError, f"from_list: the examples have {total} rows, and rows is {rows}")
    dtype = jnp.result_type(*arrays)
    values = jnp.concatenate([x.astype(dtype) for x in arrays])
    if rows is not None and rows > total:
        values = jnp.concatenate([values, jnp.zeros((rows - total, *values.shape[1:]), dtype)])
    return RaggedArray(values, jnp.asarray(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)))


def from_padded(x: ArrayLike, lengths: ArrayLike, *, rows: int | None = None) -> RaggedArray:
    """The ragged array of the examples in an array of shape (count, length, …).

    Args:
        x: the examples, each with what does not belong to it at its end.
        lengths: how much of each does.
        rows: the number of rows to make room for; all of `x` by default.

    >>> import purax as px, purax.numpy as jnp
    >>> [x.tolist() for x in px.ragged.from_padded(jnp.arange(6).reshape(2, 3), jnp.array([1, 3])).to_list()]
    [[0], [3, 4, 5]]
    """
    padded, sizes = jnp.asarray(x), jnp.asarray(lengths)
    if padded.ndim < 2 or sizes.shape != padded.shape[:1]:
        raise located(
            ValueError,
            f"from_padded: an array of shape {padded.shape} needs a length for each row, got {shown(lengths)}",
        )
    count, length = padded.shape[:2]
    room = count * length if rows is None else rows
    splits = jnp.concatenate([jnp.zeros(1, np.int32), jnp.cumsum(jnp.clip(sizes, 0, length).astype(np.int32))])
    if not isinstance(splits, Tracer) and int(splits[-1]) > room:
        raise located(ValueError, f"from_padded: the examples have {int(splits[-1])} rows, and rows is {room}")
    made = RaggedArray(jnp.zeros((room, *padded.shape[2:]), padded.dtype), splits)
    if not count or not length or not room:
        return made
    example = jnp.clip(made.segments, 0, count - 1)
    place = jnp.clip(jnp.arange(room) - splits[example], 0, length - 1)
    inside = (jnp.arange(room) < splits[-1]).reshape(-1, *[1] * (padded.ndim - 2))
    return RaggedArray(jnp.where(inside, padded[example, place], jnp.zeros((), padded.dtype)), splits)
