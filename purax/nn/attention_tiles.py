"""An attention and its derivatives, tile by tile: of the T × S logits only those of a tile exist at a time.

A loop goes over the pairs of a tile of rows (positions of the query) and one of columns (positions of the key) of
which any logit counts by the options alone. The last tile of an axis ends where the axis does, so that it may overlap
with the one before; what was done there already counts as nothing. Rows in which no logit counts have equal weights
everywhere, also in the pairs that are left out, which are made up for at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax import lax
from purax import numpy as jnp
from purax.nn.attention_form import Form, Operands, hidden_logit, scale_in, wide

_LOGITS = 1 << 20  # of a tile, for all heads
_LARGEST, _SMALLEST = 512, 128  # rows and columns of a tile


def tile_sizes(length: int, key_length: int, heads: int) -> tuple[int, int]:
    """Rows and columns of a tile.

    Args:
        length: of the query.
        key_length: of the key.
        heads: in the whole batch.
    """
    size = _LARGEST
    while size > _SMALLEST and heads * size * size > _LOGITS:
        size //= 2
    return min(length, size), min(key_length, size)


class Tiles:
    """The operands of an attention in tiles, with axes (B, K, G, T, H): G heads of the query for each of the key."""

    def __init__(self, form: Form, operands: Operands):
        self.form, self.operands = form, operands
        self.batch, self.length, self.key_length, heads, self.key_heads, self.width = operands.sizes
        self.group = heads // self.key_heads
        self.dtype = wide(operands.query.dtype)
        self.rows, self.columns = tile_sizes(self.length, self.key_length, self.batch * heads)
        self.row_tiles = -(-self.length // self.rows)
        self.column_tiles = -(-self.key_length // self.columns)
        self.query = self.by_row(operands.query)
        self.key, self.value = self.by_column(operands.key), self.by_column(operands.value)
        self.bias, self.mask = self.beside_logits(operands.bias), self.beside_logits(operands.mask)
        self.counts = self._counting_pairs()

    # -- how operands lie

    def by_row(self, x: Any) -> Any:
        """(B, T, N, …) as (B, K, G, T, …)."""
        x = x.reshape(self.batch, self.length, self.key_heads, self.group, *x.shape[3:])
        return jnp.moveaxis(x, 1, 3)

    def by_column(self, x: Any) -> Any:
        """(B, S, K, H) as (B, K, S, H)."""
        return jnp.transpose(x, (0, 2, 1, 3))

    def from_rows(self, x: Any, dtype: Any) -> Any:
        """The inverse of `by_row`."""
        x = jnp.moveaxis(x.astype(dtype), 3, 1)
        return x.reshape(self.batch, self.length, self.key_heads * self.group, *x.shape[4:])

    def sums_by_row(self, x: Any) -> Any:
        """(B, N, T) as (B, K, G, T)."""
        return x.reshape(self.batch, self.key_heads, self.group, self.length)

    def beside_logits(self, x: Any) -> Any:
        """(B, N, T, S), some of them 1, as (B, K, G, T, S)."""
        if x is None:
            return None
        heads = (self.key_heads, self.group) if x.shape[1] != 1 else (1, 1)
        return x.reshape(x.shape[0], *heads, *x.shape[2:])

    # -- tiles

    def starts(self, i: Any, j: Any) -> tuple[Any, Any]:
        """The first row and column of a tile."""
        row = jnp.minimum(i * np.int32(self.rows), np.int32(self.length - self.rows))
        column = jnp.minimum(j * np.int32(self.columns), np.int32(self.key_length - self.columns))
        return row, column

    def row_tile(self, x: Any, row: Any) -> Any:
        return lax.dynamic_slice_in_dim(x, row, self.rows, 3)

    def column_tile(self, x: Any, column: Any) -> Any:
        return lax.dynamic_slice_in_dim(x, column, self.columns, 2)

    def logit_tile(self, x: Any, row: Any, column: Any) -> Any:
        """A tile of what lies beside the logits; axes of size 1 stay as they are."""
        zero = np.int32(0)
        starts = (zero, zero, zero, row if x.shape[3] != 1 else zero, column if x.shape[4] != 1 else zero)
        sizes = (*x.shape[:3], self.rows if x.shape[3] != 1 else 1, self.columns if x.shape[4] != 1 else 1)
        return lax.dynamic_slice(x, starts, sizes)

    def with_row_tile(self, x: Any, tile: Any, row: Any) -> Any:
        return lax.dynamic_update_slice_in_dim(x, tile, row, 3)

    def with_column_tile(self, x: Any, tile: Any, column: Any) -> Any:
        return lax.dynamic_update_slice_in_dim(x, tile, column, 2)

    # -- which logits count

    def _counting_pairs(self) -> np.ndarray:
        """For each tile of rows and of columns whether a logit of theirs may count."""
        counts = np.ones((self.row_tiles, self.column_tiles), bool)
        if self.form.sees(np.zeros(1, np.int32), np.zeros(1, np.int32)) is None:
            return counts
        for i in range(self.row_tiles):
            first = min(i * self.rows, self.length - self.rows)
            rows = np.arange(first, first + self.rows, dtype=np.int32)[:, None]
            columns = np.arange(self.key_length, dtype=np.int32)
            seen = np.any(self.form.sees(rows, columns), axis=0)
            for j in range(self.column_tiles):
                start = min(j * self.columns, self.key_length - self.columns)
                counts[i, j] = np.any(seen[start : start + self.columns])
        return counts

    @property
    def pairs(self) -> np.ndarray:
        """The pairs of tiles in which a logit may count, row by row."""
        return np.argwhere(self.counts).astype(np.int32)

    @property
    def has_left_out(self) -> bool:
        """Whether a row in which no logit counts may have weights in pairs that are left out."""
        if self.counts.all():
            return False
        form = self.form
        if form.has_bias or form.has_mask or form.has_key_lengths:
            return True
        rows, columns = np.arange(self.length, dtype=np.int32), np.arange(self.key_length, dtype=np.int32)
        return any(
            not np.any(form.sees(part[:, None], columns), axis=1).all()
            for part in np.array_split(rows, self.row_tiles)
        )

    def positions(self, row: Any, column: Any) -> tuple[Any, Any]:
        """The rows and columns of the logits of a tile, of shape (rows, 1) and (1, columns)."""
        rows = row + lax.broadcasted_iota(np.int32, (self.rows, 1), 0)
        return rows, column + lax.broadcasted_iota(np.int32, (1, self.columns), 1)

    def fresh(self, i: Any, j: Any, row: Any, column: Any) -> Any:
        """Which logits of a tile no tile before had; None for all."""
        rows, columns = self.positions(row, column)
        is_fresh = None
        if self.length % self.rows:
            is_fresh = rows >= i * np.int32(self.rows)
        if self.key_length % self.columns:
            right = columns >= j * np.int32(self.columns)
            is_fresh = right if is_fresh is None else is_fresh & right
        return is_fresh

    def seen(self, row: Any, column: Any) -> Any:
        """Which logits of a tile count; None for all."""
        rows, columns = self.positions(row, column)
        seen = self.form.sees(rows, columns)
        if self.mask is not None:
            mask = self.logit_tile(self.mask, row, column)
            seen = mask if seen is None else mask & seen
        if self.operands.key_lengths is not None:
            counts = columns < self.operands.key_lengths[:, None, None, None, None]
            seen = counts if seen is None else seen & counts
        return seen

    def product(self, x: Any, y: Any, of_rows: bool = False) -> Any:
        """A tile of rows with one of columns: (B, K, G, rows, H), (B, K, columns, H) -> (B, K, G, rows, columns)."""
        flat = x.reshape(self.batch, self.key_heads, -1, x.shape[-1])
        numbers = (((3,), (3,)), ((0, 1), (0, 1)))
        out = lax.dot_general(flat, y, numbers, preferred_element_type=self.dtype)
        return out.reshape(*x.shape[:4], self.columns)

    def times(self, weights: Any, y: Any) -> Any:
        """Σ over columns: (B, K, G, rows, columns), (B, K, columns, H) -> (B, K, G, rows, H)."""
        flat = weights.reshape(self.batch, self.key_heads, -1, self.columns)
        numbers = (((3,), (2,)), ((0, 1), (0, 1)))
        out = lax.dot_general(flat, y, numbers, preferred_element_type=self.dtype)
        return out.reshape(*weights.shape[:4], y.shape[-1])

    def times_rows(self, weights: Any, x: Any) -> Any:
        """Σ over rows: (B, K, G, rows, columns), (B, K, G, rows, H) -> (B, K, columns, H)."""
        flat = weights.reshape(self.batch, self.key_heads, -1, self.columns)
        rows = x.reshape(self.batch, self.key_heads, -1, x.shape[-1])
        numbers = (((2,), (2,)), ((0, 1), (0, 1)))
        return lax.dot_general(flat, rows, numbers, preferred_element_type=self.dtype)

    def logits(self, i: Any, j: Any, row: Any, column: Any, seen: Any, query: Any, key: Any) -> Any:
        """The logits of a tile; −∞ where a tile before had them."""
        s = self.product(query, key) * scale_in(self.form, self.dtype)
        if self.bias is not None:
            s = (s + self.logit_tile(self.bias, row, column)).astype(self.dtype)
        if seen is not None:
            s = jnp.where(seen, s, hidden_logit(self.dtype))
        is_fresh = self.fresh(i, j, row, column)
        return s if is_fresh is None else jnp.where(is_fresh, s, self.dtype.type(-np.inf))

    def loop(self, step: Callable, initial: Sequence[Any]) -> Any:
        """step(i, j, row, column, state) for each pair of tiles that counts."""
        pairs = self.pairs

        def body(n: Any, state: Any) -> Any:
            i, j = (
                lax.dynamic_index_in_dim(jnp.asarray(pairs[:, axis]), n, keepdims=False) for axis in (0, 1)
            )
            return step(i, j, *self.starts(i, j), state)

        return lax.fori_loop(0, len(pairs), body, tuple(initial))

    def zeros(self, *shape: int) -> Any:
        return jnp.zeros(shape, self.dtype)

    # -- rows in which no logit counts, in pairs that are left out

    def in_left_out(self, value: Any) -> tuple[Any, Any]:
        """For each row how many columns are left out, (T,), and the sums of `value` over them, (B, K, 1, T, H)."""
        starts = np.minimum(np.arange(self.column_tiles) * self.columns, self.key_length)
        widths = np.diff([*starts, self.key_length])
        sums = jnp.stack(
            [
                jnp.sum(value[:, :, start : start + width].astype(self.dtype), axis=2)
                for start, width in zip(starts, widths, strict=True)
            ],
            axis=2,
        )
        left_out = ~self.counts
        by_tile = jnp.einsum("ij,bkjh->bkih", left_out.astype(self.dtype), sums)
        counted = jnp.asarray((left_out @ widths).astype(self.dtype))
        return self._spread(counted, 0, self.rows, self.length), self._spread(
            by_tile, 2, self.rows, self.length
        )[:, :, None]

    def from_left_out(self, rows: Any) -> Any:
        """For each column the sum of `rows`, (B, K, G, T, H), over the rows to which it is left out: (B, K, S, H)."""
        sums = jnp.stack(
            [
                jnp.sum(rows[:, :, :, i * self.rows : (i + 1) * self.rows], axis=(2, 3))
                for i in range(self.row_tiles)
            ],
            axis=2,
        )
        by_tile = jnp.einsum("ij,bkih->bkjh", (~self.counts).astype(self.dtype), sums)
        return self._spread(by_tile, 2, self.columns, self.key_length)

    def _spread(self, x: Any, axis: int, tile: int, length: int) -> Any:
        """A value for each tile along an axis as one for each position."""
        return lax.slice_in_dim(jnp.repeat(x, tile, axis=axis), 0, length, axis=axis)

    def equal_weights(self, m: Any, l: Any) -> Any:  # noqa: E741
        """The weight of each logit of a row that does not count: 0 but for rows without one that does."""
        hidden = hidden_logit(self.dtype)
        return jnp.where(m <= hidden, jnp.exp(hidden - m) / l, 0)


def attention(form: Form, operands: Operands, with_sums: bool) -> list[Any]:
    """As `attention_form.attention`."""
    tiles = Tiles(form, operands)
    sums = (tiles.batch, tiles.key_heads, tiles.group, tiles.length)
    width = operands.value.shape[3]

    def step(i: Any, j: Any, row: Any, column: Any, state: Any) -> Any:
        m, l, o = state  # noqa: E741
        query, key = tiles.row_tile(tiles.query, row), tiles.column_tile(tiles.key, column)
        s = tiles.logits(i, j, row, column, tiles.seen(row, column), query, key)
        before = tiles.row_tile(m, row)
        largest = jnp.maximum(before, jnp.max(s, axis=-1))
        shift = jnp.where(largest == -np.inf, 0, largest)  # of no logits yet but −∞
        powers = jnp.exp(s - shift[..., None])
        shrunk = jnp.exp(before - shift)
        total = tiles.row_tile(l, row) * shrunk + jnp.sum(powers, axis=-1)
        value = tiles.column_tile(tiles.value, column)
        out = tiles.row_tile(o, row) * shrunk[..., None] + tiles.times(powers.astype(value.dtype), value)
        return (
            tiles.with_row_tile(m, largest, row),
            tiles.with_row_tile(l, total, row),
            tiles.with_row_tile(o, out, row),
        )

    initial = (jnp.full(sums, -np.inf, tiles.dtype), tiles.zeros(*sums), tiles.zeros(*sums, width))
    m, l, o = tiles.loop(step, initial)  # noqa: E741
    if tiles.has_left_out:
        hidden = hidden_logit(tiles.dtype)
        count, total = tiles.in_left_out(tiles.value)
        weight = jnp.where(m <= hidden, count, 0)
        largest = jnp.where(weight > 0, hidden, m)
        shrunk = jnp.where(weight > 0, jnp.exp(m - hidden), 1)
        m, l = largest, l * shrunk + weight  # noqa: E741
        o = o * shrunk[..., None] + jnp.where(weight[..., None] > 0, total, 0)
    out = tiles.from_rows(o / l[..., None], operands.value.dtype)
    if not with_sums:
        return [out]
    flat = (tiles.batch, tiles.key_heads * tiles.group, tiles.length)
    return [out, m.reshape(flat), l.reshape(flat)]


def tangent(form: Form, operands: Operands, results: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """As `attention_form.tangent`."""
    tiles = Tiles(form, operands)
    out, m, l = results  # noqa: E741
    dq, dk, dv, dbias = tangents
    m, l = tiles.sums_by_row(m), tiles.sums_by_row(l)  # noqa: E741
    dq = None if dq is None else tiles.by_row(dq)
    dk, dv = (None if x is None else tiles.by_column(x) for x in (dk, dv))
    dbias = tiles.beside_logits(dbias)
    scale = scale_in(form, tiles.dtype)

    def step(i: Any, j: Any, row: Any, column: Any, state: Any) -> Any:
        o, sums = state
        query, key = tiles.row_tile(tiles.query, row), tiles.column_tile(tiles.key, column)
        seen = tiles.seen(row, column)
        s = tiles.logits(i, j, row, column, seen, query, key)
        weights = jnp.exp(s - tiles.row_tile(m, row)[..., None]) / tiles.row_tile(l, row)[..., None]
        ds = jnp.zeros_like(weights)
        if dq is not None:
            ds = ds + tiles.product(tiles.row_tile(dq, row), key) * scale
        if dk is not None:
            ds = ds + tiles.product(query, tiles.column_tile(dk, column)) * scale
        if dbias is not None:
            ds = (ds + tiles.logit_tile(dbias, row, column)).astype(tiles.dtype)
        moved = weights * (ds if seen is None else jnp.where(seen, ds, 0))
        value = tiles.column_tile(tiles.value, column).astype(tiles.dtype)
        more = tiles.times(moved, value)
        if dv is not None:
            more = more + tiles.times(weights, tiles.column_tile(dv, column).astype(tiles.dtype))
        total = tiles.row_tile(sums, row) + jnp.sum(moved, axis=-1)
        return tiles.with_row_tile(o, tiles.row_tile(o, row) + more, row), tiles.with_row_tile(
            sums, total, row
        )

    o, sums = tiles.loop(step, (tiles.zeros(*m.shape, operands.value.shape[3]), tiles.zeros(*m.shape)))
    if dv is not None and tiles.has_left_out:
        weight = tiles.equal_weights(m, l)[..., None]
        o = o + jnp.where(weight > 0, weight * tiles.in_left_out(dv)[1], 0)
    dout = o - sums[..., None] * tiles.by_row(out).astype(tiles.dtype)
    return [tiles.from_rows(dout, out.dtype), (l * sums).reshape(results[2].shape)]


def cotangent(
    form: Form, operands: Operands, results: Sequence[Any], cotangents: Sequence[Any], moving: Sequence[bool]
) -> list[Any]:
    """As `attention_form.cotangent`."""
    tiles = Tiles(form, operands)
    dtype = tiles.dtype
    m, l = tiles.sums_by_row(results[1]), tiles.sums_by_row(results[2])  # noqa: E741
    by_out = tiles.by_row(cotangents[0]).astype(dtype)
    common = tiles.sums_by_row(cotangents[1]) * l - jnp.sum(
        by_out * tiles.by_row(results[0]).astype(dtype), axis=-1
    )
    scale = scale_in(form, dtype)
    of_query, of_key, of_value, of_bias = (*moving, *[False] * (4 - len(moving)))
    has_by_s = of_query or of_key or of_bias

    def step(i: Any, j: Any, row: Any, column: Any, state: Any) -> Any:
        by_query, by_key, by_value, by_bias = state
        query, key = tiles.row_tile(tiles.query, row), tiles.column_tile(tiles.key, column)
        seen = tiles.seen(row, column)
        s = tiles.logits(i, j, row, column, seen, query, key)
        weights = jnp.exp(s - tiles.row_tile(m, row)[..., None]) / tiles.row_tile(l, row)[..., None]
        by_rows = tiles.row_tile(by_out, row)
        if of_value:
            more = tiles.column_tile(by_value, column) + tiles.times_rows(weights, by_rows)
            by_value = tiles.with_column_tile(by_value, more, column)
        if has_by_s:
            value = tiles.column_tile(tiles.value, column).astype(dtype)
            by_s = weights * (tiles.product(by_rows, value) + tiles.row_tile(common, row)[..., None])
            by_s = by_s if seen is None else jnp.where(seen, by_s, 0)
        if of_query:
            more = tiles.row_tile(by_query, row) + tiles.times(by_s, key.astype(dtype)) * scale
            by_query = tiles.with_row_tile(by_query, more, row)
        if of_key:
            more = tiles.column_tile(by_key, column) + tiles.times_rows(by_s, query.astype(dtype)) * scale
            by_key = tiles.with_column_tile(by_key, more, column)
        if of_bias:
            axes = tuple(axis for axis in range(5) if by_bias.shape[axis] == 1)
            more = jnp.sum(by_s, axis=axes, keepdims=True)
            old = tiles.logit_tile(by_bias, row, column)
            place = (0, 0, 0, row if by_bias.shape[3] != 1 else 0, column if by_bias.shape[4] != 1 else 0)
            by_bias = lax.dynamic_update_slice(by_bias, old + more, [jnp.asarray(n, np.int32) for n in place])
        return by_query, by_key, by_value, by_bias

    nothing = tiles.zeros(0)
    key_shape = (tiles.batch, tiles.key_heads, tiles.key_length)
    by_query, by_key, by_value, by_bias = tiles.loop(
        step,
        (
            tiles.zeros(*m.shape, tiles.width) if of_query else nothing,
            tiles.zeros(*key_shape, tiles.width) if of_key else nothing,
            tiles.zeros(*key_shape, operands.value.shape[3]) if of_value else nothing,
            tiles.zeros(*tiles.bias.shape) if of_bias else nothing,
        ),
    )
    if of_value and tiles.has_left_out:
        by_value = by_value + tiles.from_left_out(tiles.equal_weights(m, l)[..., None] * by_out)
    found = []
    if of_query:
        found.append(tiles.from_rows(by_query, operands.query.dtype))
    if of_key:
        found.append(tiles.by_column(by_key).astype(operands.key.dtype))
    if of_value:
        found.append(tiles.by_column(by_value).astype(operands.value.dtype))
    if of_bias:
        found.append(by_bias.reshape(operands.bias.shape).astype(operands.bias.dtype))
    return found
