"""Functions of ragged arrays that go over the rows of each example: softmax, attention."""

from __future__ import annotations

from typing import Any

import numpy as np

import purax.numpy as jnp
from purax.core.source import located
from purax.lax.ordering import stop_gradient
from purax.nn.normalization import softmax as softmax_of_arrays
from purax.ragged.arrays import RaggedArray


def logsumexp(x: RaggedArray) -> Any:
    """log Σ exp over the rows of each example; -inf of an empty one.

    >>> import purax as px
    >>> px.ragged.logsumexp(px.ragged.from_list([[0.0, 0.0], [3.0]])).round(3).tolist()
    [0.6930000185966492, 3.0]
    """
    top = stop_gradient(x.max())
    top = jnp.where(jnp.isfinite(top), top, 0)
    return jnp.log((x - x.of_examples(top)).map(jnp.exp).sum()) + top


def softmax(x: RaggedArray) -> RaggedArray:
    """The softmax over the rows of each example.

    >>> import purax as px
    >>> [y.tolist() for y in px.ragged.softmax(px.ragged.from_list([[0.0, 0.0], [3.0]])).to_list()]
    [[0.5, 0.5], [1.0]]
    """
    top = stop_gradient(x.max())
    raised = (x - x.of_examples(jnp.where(jnp.isfinite(top), top, 0))).map(jnp.exp)
    inside = (jnp.arange(x.rows) < x.splits[-1]).reshape(-1, *[1] * (raised.values.ndim - 1))  # type: ignore
    total = raised.of_examples(raised.sum()).values
    return RaggedArray(jnp.where(inside, raised.values / jnp.where(inside, total, 1), 0), x.splits)


def attention(
    query: RaggedArray, key: RaggedArray, value: RaggedArray, *, is_causal: bool = False, scale: float | None = None
) -> RaggedArray:
    """Attention in which the rows of an example see those of the same example alone.

    Args:
        query, key, value: rows of shape (heads, features) each, with the same splits.
        is_causal: whether a row sees only rows up to its own.
        scale: of the products, 1/√features by default.

    Returns:
        Rows of shape (heads, features of `value`).

    >>> import purax as px, purax.numpy as jnp
    >>> x = px.ragged.from_list([jnp.ones((3, 2, 4)), jnp.ones((5, 2, 4))])
    >>> px.ragged.attention(x, x, x).values.shape
    (8, 2, 4)
    """
    keys, values = query._rows_of(key, "attention"), query._rows_of(value, "attention")
    queries: Any = query.values
    if queries.ndim != 3 or keys.shape != queries.shape or values.shape[:2] != queries.shape[:2]:
        raise located(
            ValueError,
            "ragged.attention needs rows of shape (heads, features), got values of shapes "
            f"{queries.shape}, {keys.shape} and {values.shape}",
        )
    factor = 1 / np.sqrt(queries.shape[-1]) if scale is None else scale
    segments = query.segments
    sees = segments[:, None] == segments[None, :]
    if is_causal:
        place = jnp.arange(query.rows)
        sees = sees & (place[:, None] >= place[None, :])
    weights = jnp.einsum("qhd,khd->hqk", queries, keys) * factor
    weights = softmax_of_arrays(jnp.where(sees, weights, -jnp.inf), axis=-1)
    out = jnp.einsum("hqk,khd->qhd", weights, values)
    inside = (jnp.arange(query.rows) < query.splits[-1])[:, None, None]  # type: ignore[index]
    return RaggedArray(jnp.where(inside, out, jnp.zeros((), out.dtype)), query.splits)
