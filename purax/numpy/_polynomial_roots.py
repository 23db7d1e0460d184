"""Polynomials from their roots, roots of polynomials, and polynomials fitted to points: what needs factorizations."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax import errors
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.core.trace import Tracer
from purax.numpy._creation.grids import vander
from purax.numpy._elementwise.arithmetic import abs, sqrt
from purax.numpy._indexing.selection import where
from purax.numpy._linalg.matrices import diag, eye
from purax.numpy._linalg.products import matmul, outer
from purax.numpy._programs import as_one_program, concrete_value, strong_array
from purax.numpy._promotion import as_array, common_dtype, convert
from purax.numpy._reductions.reductions import argmax
from purax.numpy._reductions.reductions import sum as summed
from purax.numpy._shape.axes import integer
from purax.numpy._shape.joining import concatenate
from purax.numpy._shape.rearranging import roll
from purax.numpy._sorting.sorting import argsort
from purax.primitives.elementwise.conversion import conj, convert_element_type
from purax.primitives.linalg.eigen import eig
from purax.primitives.linalg.lu import solve
from purax.primitives.linalg.singular_values import svd
from purax.primitives.shape.broadcasting import full
from purax.primitives.shape.gather_scatter import take
from purax.primitives.shape.reshaping import iota
from purax.typing import ArrayLike


def poly(seq_of_zeros: ArrayLike) -> Array:
    """The coefficients of the polynomial with given roots, or of the characteristic polynomial of a matrix.

    Args:
        seq_of_zeros: a vector of roots, or a square matrix.

    Returns:
        The coefficients, that of the highest power, 1, first.

    >>> import purax.numpy as jnp
    >>> jnp.poly(jnp.array([1.0, 2.0]))
    Array([ 1., -3.,  2.], dtype=float32)
    """
    x = strong_array(seq_of_zeros, "poly")
    x = convert(x, dtypes.to_inexact_dtype(x.dtype))
    if x.ndim == 2 and x.shape[0] == x.shape[1] and x.size:
        (x,) = eig(x, False, False)
    elif x.ndim == 0:
        x = x.reshape(1)
    elif x.ndim != 1:
        raise located(ValueError, f"poly: input must be 1d or non-empty square 2d array, got shape {x.shape}")
    if not x.size:
        return full((), 1, x.dtype)
    return _product_of_factors(x)


@as_one_program()
def _product_of_factors(roots):
    result = full((1,), 1, roots.dtype)
    zero = full((1,), 0, roots.dtype)
    for i in range(roots.shape[0]):
        result = concatenate([result, zero]) - concatenate([zero, result]) * roots[i]
    return result


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial, as the eigenvalues of its companion matrix.

    Args:
        p: the coefficients, that of the highest power first.
        strip_zeros: whether leading and trailing zeros are left out first, which needs known coefficients. Under `jit`
            say `strip_zeros=False`: then roots that do not exist, because leading coefficients are 0, are NaN.

    Returns:
        Complex numbers.

    >>> import purax.numpy as jnp
    >>> jnp.sort(jnp.roots(jnp.array([1.0, -3.0, 2.0])))
    Array([1.+0.j, 2.+0.j], dtype=complex64)
    """
    x = strong_array(p, "roots")
    if x.ndim > 1:
        raise located(ValueError, f"roots: input must be a rank-1 array, got shape {x.shape}")
    x = convert(x.reshape(x.size), dtypes.to_inexact_dtype(x.dtype))
    dtype = dtypes.to_complex_dtype(x.dtype)
    if x.size < 2:
        return full((0,), 0, dtype)
    if not strip_zeros:
        return _roots_of_unknown(x)
    known = concrete_value(x)
    if known is None:
        assert isinstance(x, Tracer)
        x.refuse(
            errors.ConcretizationTypeError,
            "roots with strip_zeros=True",
            "The number of roots depends on the coefficients: pass strip_zeros=False; then some of them may be NaN.",
        )
    places = np.flatnonzero(known)
    if not places.size:
        return full((0,), 0, dtype)
    first, last = int(places[0]), int(places[-1])
    zeros = full((x.size - 1 - last,), 0, dtype)
    return concatenate([_companion_roots(x[first : last + 1]), zeros]) if first < last else zeros


@as_one_program()
def _companion_roots(x):
    size = x.shape[0]
    companion = diag(full((size - 2,), 1, x.dtype), -1) if size > 2 else full((1, 1), 0, x.dtype)
    row = (-x[1:] / x[0]).reshape(1, size - 1)
    is_first = iota(np.int32, companion.shape, 0) == 0
    values = eig(where(is_first, row, companion), False, False)[0]
    return convert_element_type(values, dtypes.to_complex_dtype(x.dtype))


@as_one_program()
def _roots_of_unknown(x):
    """Leading zeros are moved to the end, where each makes a root 0; as many of the smallest roots are NaN then."""
    count = argmax(x != 0)
    values = _companion_roots(roll(x, -count))
    order = argsort(-abs(values))
    last = iota(np.int32, values.shape) >= values.shape[0] - count.astype(np.int32)
    missing = full((), complex(np.nan, np.nan), values.dtype)
    return where(last, missing, take(values, order, 0))


def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """The polynomial of a degree that fits points best, by least squares.

    Args:
        x: the places of the points, a vector.
        y: the values there; a vector, or a matrix with a column for each polynomial.
        deg: the degree.
        rcond: singular values below this part of the largest count as 0; the precision of the dtype times the number of
            points if not given.
        full: whether to return the sums of squared residuals, the rank, the singular values and `rcond`, too.
        w: the weights of the points, by which residuals are multiplied.
        cov: whether to return the covariance matrix of the coefficients, too; "unscaled" if the weights are 1/σ.

    Returns:
        The coefficients, that of the highest power first; or a tuple that begins with them.

    >>> import purax.numpy as jnp
    >>> x = jnp.array([0.0, 1.0, 2.0, 3.0])
    >>> jnp.round(jnp.polyfit(x, 2 * x + 1, 1), 4)
    Array([2., 1.], dtype=float32)
    """
    places, values = strong_array(x, "polyfit", 0), strong_array(y, "polyfit", 1)
    order = integer("polyfit", "deg", deg) + 1
    if order < 1:
        raise located(ValueError, f"polyfit: expected deg >= 0, got {deg}")
    if places.ndim != 1 or not places.size:
        raise located(
            TypeError, f"polyfit: expected a 1D vector for x that is not empty, got shape {places.shape}"
        )
    if values.ndim not in (1, 2) or values.shape[0] != places.shape[0]:
        raise located(
            TypeError,
            f"polyfit: expected x and y to have same length, and y to be 1D or 2D; got shapes {places.shape} and "
            f"{values.shape}",
        )
    dtype = dtypes.to_inexact_dtype(common_dtype((places, values))[0])
    operands = [convert_element_type(places, dtype), convert_element_type(values, dtype)]
    if w is not None:
        weights = strong_array(w, "polyfit", 5)
        if weights.shape != places.shape:
            raise located(
                TypeError,
                f"polyfit: expected w to be a vector as long as y, {places.shape[0]}, got shape {weights.shape}",
            )
        operands.append(convert_element_type(weights, dtype))
    limit = places.shape[0] * float(dtypes.finfo(dtype).eps) if rcond is None else float(rcond)
    fitted, residuals, rank, singular, covariance = _fit(
        *operands, order=order, limit=limit, has_cov=bool(cov) and not full
    )
    if full:
        return fitted, residuals, rank, singular, as_array(limit, "polyfit")
    if not cov:
        return fitted
    if cov == "unscaled":
        factor: Any = 1
    else:
        if places.shape[0] <= order:
            raise located(
                ValueError,
                f"polyfit: the number of points, {places.shape[0]}, must exceed the number of coefficients, "
                f"{order}, to scale the covariance matrix; use cov='unscaled'",
            )
        factor = residuals / (places.shape[0] - order)
    if values.ndim == 1:
        return fitted, covariance * (factor if cov == "unscaled" else factor[0])
    return fitted, covariance[:, :, None] * factor


@as_one_program()
def _fit(x, y, *weights, order, limit, has_cov):
    matrix = vander(x, order)
    target = y.reshape(y.shape[0], 1) if y.ndim == 1 else y
    if weights:
        matrix, target = (part * weights[0].reshape(-1, 1) for part in (matrix, target))
    lengths = sqrt(summed(matrix * _conjugate(matrix), 0))
    lengths = where(lengths == 0, 1, lengths)
    matrix = matrix / lengths
    singular, u, vh = svd(matrix, full_matrices=False)
    counts = (singular > 0) & (singular >= limit * singular[0])
    inverse = where(counts, 1 / where(counts, singular, 1), 0)
    shares = matmul(_conjugate(u).T, target) * inverse.reshape(-1, 1).astype(target.dtype)
    solution = matmul(_conjugate(vh).T, shares)
    rest = target - matmul(matrix, solution)
    residuals = summed(abs(rest) ** 2, 0)
    fitted = solution / lengths.reshape(-1, 1)
    if y.ndim == 1:
        fitted = fitted.reshape(order)
    covariance = full((0,), 0, x.dtype)
    if has_cov:
        normal = matmul(_conjugate(matrix).T, matrix)
        covariance = solve(normal, eye(order, dtype=normal.dtype)) / outer(lengths, lengths)
    return fitted, residuals, summed(counts.astype(np.int32)), singular, covariance


def _conjugate(x: Any) -> Any:
    return conj(x) if dtypes.is_complex(x.dtype) else x
