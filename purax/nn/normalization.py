"""Functions that relate the elements along an axis: softmax and related functions, standardization, one-hot codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.dimensions import as_size
from purax.core.source import located
from purax.errors import ShapeError, shown
from purax.numpy._reductions.reductions import shift_of_exponents
from purax.numpy._shape.axes import canonical_axes
from purax.primitives.elementwise.xla_functions import (
    exp,  # XLA merges its own with sums: half the time of `jnp.exp`
)
from purax.primitives.stop_gradient import stop_gradient


def _finite_max(x: Array, axis: Any) -> Array:
    """The maximum along `axis`, 0 where it is infinite, as a constant: what exponentials are shifted by."""
    top = shift_of_exponents(stop_gradient(x), axis, initial=-jnp.inf)
    return jnp.where(jnp.isfinite(top), top, jnp.zeros_like(top))


def _as_float(x: Any) -> Array:
    x = jnp.asarray(x)
    return x if dtypes.is_inexact(x.dtype) else x.astype(dtypes.to_inexact_dtype(x.dtype))


def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """log Σ b·eᵃ, without overflow.

    Args:
        a: the exponents.
        axis: the axis, or axes, to sum over; all if None.
        b: factors, of any sign.
        keepdims: whether the summed axes stay, with size 1.
        return_sign: whether to return the sign of the sum too, and the logarithm of its absolute value.
        where: which elements count.

    Returns:
        The logarithm, or (logarithm, sign).

    >>> import purax as px, purax.numpy as jnp
    >>> round(float(px.nn.logsumexp(jnp.array([1000.0, 1000.0]))), 2)
    1000.69
    """
    a = _as_float(a)
    if b is not None:
        b = jnp.asarray(b)
        a = jnp.where(b != 0, a, -jnp.inf)
        a, b = jnp.broadcast_arrays(a, b.astype(jnp.promote_types(a.dtype, b.dtype)))
    if where is not None:
        a = jnp.where(where, a, -jnp.inf)
    axis = canonical_axes("logsumexp", axis, a.ndim)
    real = a.real if dtypes.is_complex(a.dtype) else a
    top = _finite_max(real, axis)
    terms = exp(a - top)
    if b is not None:
        terms = terms * b
    total = jnp.sum(terms, axis=axis, keepdims=keepdims)
    shift = top if keepdims else jnp.squeeze(top, axis=axis)
    if return_sign:
        sign = jnp.sign(total)
        return jnp.log(jnp.abs(total)) + shift, sign
    if b is not None and not dtypes.is_complex(a.dtype):
        total = jnp.where(total < 0, jnp.nan, total)
    # The sum of nothing but e^−∞ has the logarithm −∞, and the derivative 0 instead of 0 · ∞.
    empty = total == 0
    return jnp.where(empty, -jnp.inf, jnp.log(jnp.where(empty, 1, total))) + shift


def logmeanexp(x: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Array:
    """log of the mean of eˣ; arguments as those of `logsumexp`."""
    x = _as_float(x)
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    counted = jnp.ones(x.shape) if where is None else jnp.broadcast_to(where, x.shape)
    count = jnp.sum(counted, axis=axis, keepdims=keepdims)
    return total - jnp.log(count).astype(total.dtype)


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Array:
    """eˣ / Σ eˣ along an axis: positive, with sum 1.

    Args:
        x: the exponents.
        axis: the axis, or axes.
        where: which elements count; the others get 0.

    >>> import purax as px, purax.numpy as jnp
    >>> px.nn.softmax(jnp.array([0.0, 0.0]))
    Array([0.5, 0.5], dtype=float32)
    """
    x = _as_float(x)
    axis = canonical_axes("softmax", axis, x.ndim)
    if not x.size:
        return x
    if where is None:
        terms = exp(x - shift_of_exponents(stop_gradient(x), axis))
        return terms / jnp.sum(terms, axis=axis, keepdims=True)
    x = jnp.where(where, x, -jnp.inf)
    terms = exp(x - _finite_max(x, axis))
    total = jnp.sum(terms, axis=axis, keepdims=True)
    return jnp.where(where, terms / jnp.where(total == 0, 1, total), 0)


def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Array:
    """x − log Σ eˣ along an axis: the logarithm of `softmax`, without its underflow.

    Args:
        x: the exponents.
        axis: the axis, or axes.
        where: which elements count; the others get −∞.
    """
    x = _as_float(x)
    axis = canonical_axes("log_softmax", axis, x.ndim)
    if not x.size:
        return x
    if where is None:
        shifted = x - shift_of_exponents(stop_gradient(x), axis)
    else:
        x = jnp.where(where, x, -jnp.inf)
        shifted = x - _finite_max(x, axis)
    result = shifted - jnp.log(jnp.sum(exp(shifted), axis=axis, keepdims=True))
    return result if where is None else jnp.where(where, result, -jnp.inf)


def standardize(
    x: Any,
    axis: Any = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """(x − mean) / √(variance + epsilon) along an axis.

    Args:
        x: the values.
        axis: the axis, or axes.
        mean: the mean, computed if not given.
        variance: the variance, computed if not given.
        epsilon: keeps the root from zero.
        where: which elements count for mean and variance.
        algorithm: how the variance is computed: "fast" as E[x²] − E[x]², "stable" as E[(x − E[x])²].
    """
    x = _as_float(x)
    axis = canonical_axes("standardize", axis, x.ndim)
    if mean is None:
        mean = jnp.mean(x, axis=axis, keepdims=True, where=where)
    if variance is None:
        if algorithm == "fast":
            variance = jnp.mean(jnp.square(x), axis=axis, keepdims=True, where=where) - jnp.square(mean)
        elif algorithm == "stable":
            variance = jnp.mean(jnp.square(x - mean), axis=axis, keepdims=True, where=where)
        else:
            raise located(
                ValueError, f"standardize: algorithm must be 'fast' or 'stable', got {shown(algorithm)}"
            )
    return (x - mean) / jnp.sqrt(variance + epsilon)


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Array:
    """Vectors with a 1 at the position x and 0 elsewhere; all 0 for positions out of range.

    Args:
        x: positions.
        num_classes: the length of the vectors.
        dtype: of the result, the default float if not given.
        axis: where the new axis goes.

    >>> import purax as px, purax.numpy as jnp
    >>> px.nn.one_hot(jnp.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    try:
        num_classes = as_size(num_classes)
    except TypeError:
        raise located(
            TypeError, f"one_hot: num_classes must be a concrete integer, got {shown(num_classes)}"
        ) from None
    dtype = dtypes.default_float() if dtype is None else dtypes.as_dtype(dtype)
    x = jnp.asarray(x)
    ndim = x.ndim + 1
    if not -ndim <= axis < ndim:
        raise located(ValueError, f"one_hot: axis {axis} is out of range for a result with {ndim} axes")
    axis %= ndim
    shape = [1] * ndim
    if num_classes < 0:
        raise located(ShapeError, f"one_hot: num_classes must not be negative, got {num_classes}")
    shape[axis] = num_classes
    positions = jnp.arange(num_classes, dtype=x.dtype if dtypes.is_integer(x.dtype) else np.int32)
    return (jnp.expand_dims(x, axis) == positions.reshape(shape)).astype(dtype)
