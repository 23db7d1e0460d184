"""Statistics of samples: the most frequent value, ranks, the standard error of the mean."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from purax import numpy as jnp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.numpy._promotion import promotes_freely
from purax.numpy._shape.axes import canonical_axis
from purax.primitives.reductions.cumulative import cummax
from purax.typing import ArrayLike

_POLICIES = ("propagate", "omit", "raise")


def _check_policy(name: str, policy: str, supported: tuple[str, ...]) -> None:
    if policy not in _POLICIES:
        raise located(
            ValueError, f"{name}: nan_policy must be one of {', '.join(_POLICIES)}, got {shown(policy)}"
        )
    if policy not in supported:
        raise located(
            NotImplementedError,
            f"{name}: nan_policy {shown(policy)} is not supported; use {' or '.join(supported)}",
        )


class ModeResult(NamedTuple):
    """The most frequent values, and how often they occur."""

    mode: Array
    count: Array  # type: ignore[assignment]  # hides the method of tuples, as in SciPy


def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """The most frequent value along an axis, the smallest of several; NaNs count as one value.

    Args:
        a: an array.
        axis: the axis; None for all elements.
        nan_policy: only "propagate".
        keepdims: whether the axis stays, with size 1.

    Returns:
        A pair `(mode, count)`.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.stats import mode
    >>> mode(jnp.array([3, 1, 3, 2]))
    ModeResult(mode=Array(3, dtype=int32), count=Array(2, dtype=int32))
    """
    _check_policy("mode", nan_policy, ("propagate",))
    x = jnp.asarray(a)
    if dtypes.is_complex(x.dtype):
        raise located(TypeError, f"mode: values must be real, got dtype {x.dtype}")
    if axis is None or not x.ndim:
        if axis is not None:
            canonical_axis("mode", axis, 1, "axis")  # a number counts as a vector with one element
        rows, kept = jnp.ravel(x), (1,) * (x.ndim if axis is None else 1)
    else:
        axis = canonical_axis("mode", axis, x.ndim, "axis")
        rows, kept = jnp.moveaxis(x, axis, -1), tuple(1 if i == axis else n for i, n in enumerate(x.shape))
    if rows.shape[-1] == 0:
        values = jnp.full(rows.shape[:-1], jnp.nan, dtypes.default_float())
        counts = jnp.zeros(rows.shape[:-1], values.dtype)
    else:
        rows, lengths = _runs(jnp.sort(rows, axis=-1))
        best = jnp.argmax(lengths, axis=-1, keepdims=True)
        values = jnp.take_along_axis(rows, best, axis=-1)[..., 0]
        counts = jnp.take_along_axis(lengths, best, axis=-1)[..., 0].astype(dtypes.default_int())
    if keepdims:
        values, counts = jnp.reshape(values, kept), jnp.reshape(counts, kept)
    return ModeResult(values, counts)


def _begins(rows: Array) -> Array:
    """Where a new value begins in sorted rows; NaNs count as one value."""
    after, before = rows[..., 1:], rows[..., :-1]
    same = (after == before) | ((after != after) & (before != before))
    return jnp.concatenate([jnp.ones((*rows.shape[:-1], 1), bool), ~same], axis=-1)


def _first_places(begins: Array) -> Array:
    """For each place in a row the place at which its run begins."""
    places = jnp.broadcast_to(jnp.arange(begins.shape[-1], dtype=jnp.int32), begins.shape)
    return cummax(jnp.where(begins, places, 0), begins.ndim - 1)


@promotes_freely
def _runs(rows: Array) -> tuple[Array, Array]:
    """Sorted rows, and the length of the run of equal values up to each place."""
    places = jnp.arange(rows.shape[-1], dtype=jnp.int32)
    return rows, places - _first_places(_begins(rows)) + 1


def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """Ranks, from 1 on, in ascending order.

    Args:
        a: an array.
        method: which rank equal values get: "average", "min" or "max" of their places, "dense" (ranks without gaps),
            or "ordinal" (each its own, in order of appearance).
        axis: the axis; None for all elements.
        nan_policy: only "propagate": the ranks of a row with a NaN are NaN.

    Returns:
        Floating point numbers, of the shape of `a`, or flat if there is no axis.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.stats import rankdata
    >>> rankdata(jnp.array([0, 2, 3, 2]))
    Array([1. , 2.5, 4. , 2.5], dtype=float32)
    """
    _check_policy("rankdata", nan_policy, ("propagate",))
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise located(
            ValueError,
            "rankdata: method must be 'average', 'min', 'max', 'dense' or 'ordinal', got unknown method "
            f"{shown(method)}",
        )
    x = jnp.asarray(a)
    if axis is None:
        x, axis = jnp.ravel(x), 0
    axis = canonical_axis("rankdata", axis, x.ndim, "axis")
    rows = jnp.moveaxis(x, axis, -1)
    ranks = _ranks(rows, method) if rows.size else jnp.zeros(rows.shape)
    dtype = dtypes.to_inexact_dtype(x.dtype)
    ranks = ranks.astype(dtype if dtype.itemsize > 2 else np.float32)  # which 16 bits do not hold
    if dtypes.is_inexact(x.dtype):
        ranks = jnp.where(jnp.any(jnp.isnan(rows), axis=-1, keepdims=True), jnp.nan, ranks)
    return jnp.moveaxis(ranks, -1, axis)


def _ranks(rows: Array, method: str) -> Array:
    order = jnp.argsort(rows, axis=-1, stable=True)
    back = jnp.argsort(order, axis=-1, stable=True)
    if method == "ordinal":
        return back + 1
    begins = _begins(jnp.take_along_axis(rows, order, axis=-1))
    if method == "dense":
        places = jnp.cumsum(begins, axis=-1)
    else:
        size = rows.shape[-1]
        first = _first_places(begins) + 1
        ends = jnp.concatenate([begins[..., 1:], jnp.ones((*begins.shape[:-1], 1), bool)], axis=-1)
        last = size - jnp.flip(_first_places(jnp.flip(ends, axis=-1)), axis=-1)
        places = {"min": first, "max": last, "average": (first + last) / 2}[method]
    return jnp.take_along_axis(places, back, axis=-1)


def sem(
    a: ArrayLike,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """The standard error of the mean: the standard deviation divided by the root of the number of values.

    Args:
        a: an array.
        axis: the axis; None for all elements.
        ddof: the deviations are divided by n − ddof.
        nan_policy: "propagate", or "omit" to leave NaNs out.
        keepdims: whether the axis stays, with size 1.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.stats import sem
    >>> round(float(sem(jnp.array([1.0, 2.0, 4.0]))), 4)
    0.8819
    """
    _check_policy("sem", nan_policy, ("propagate", "omit"))
    x = jnp.asarray(a)
    x = x.astype(dtypes.to_inexact_dtype(x.dtype))
    if nan_policy == "omit":
        count = jnp.sum(~jnp.isnan(x), axis=axis, keepdims=keepdims)
        deviation = jnp.nanstd(x, axis=axis, ddof=ddof, keepdims=keepdims)
        return deviation / jnp.sqrt(count.astype(x.dtype))
    size = x.size if axis is None else x.shape[canonical_axis("sem", axis, x.ndim, "axis")]
    return jnp.std(x, axis=axis, ddof=ddof, keepdims=keepdims) / math.sqrt(size)
