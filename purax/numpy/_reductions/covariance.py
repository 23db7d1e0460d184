"""Covariances and correlations of variables, which are the rows of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.numpy._creation.filled_arrays import full
from purax.numpy._programs import as_one_program, strong_array
from purax.numpy._promotion import as_array
from purax.numpy._reductions.reductions import requested_dtype
from purax.numpy._reductions.statistics import divide_by_count
from purax.primitives.elementwise.arithmetic import div, max_, min_, sqrt, sub
from purax.primitives.elementwise.conversion import complex_, conj, convert_element_type, imag, real
from purax.primitives.elementwise.elementwise import mul
from purax.primitives.elementwise.logic import select
from purax.primitives.products.contraction import dot_general
from purax.primitives.shape.broadcasting import broadcast_in_dim, reduce_sum, transpose
from purax.primitives.shape.dimension_value import number_as
from purax.primitives.shape.reshaping import concatenate, reshape
from purax.typing import ArrayLike, DTypeLike


def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariance matrix of variables, which are the rows of a matrix.

    Args:
        m: a vector (one variable) or a matrix, whose rows are variables and whose columns are observations.
        y: more variables, in the same form.
        rowvar: False if the columns are the variables.
        bias: whether to divide by the number of observations N instead of N - 1.
        ddof: what is subtracted from N; overrides `bias`.
        fweights: how often each observation was made, integers.
        aweights: how important each observation is.
        dtype: of the result.

    Returns:
        The matrix of covariances; a scalar for one variable.

    >>> import purax.numpy as jnp
    >>> jnp.cov(jnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    return _covariances("cov", m, y, rowvar, bias, ddof, fweights, aweights, dtype)


def _covariances(name, m, y, rowvar, bias, ddof, fweights, aweights, dtype) -> Array:
    variables = [_variables("cov", m, "m", rowvar)]
    if y is not None:
        variables.append(_variables("cov", y, "y", rowvar))
    if ddof is not None and int(ddof) != ddof:
        raise located(ValueError, f"cov: ddof must be an integer, got {shown(ddof)}")
    if y is not None and variables[0].shape[1] != variables[1].shape[1]:
        raise located(
            ValueError,
            f"cov: m and y must have the same number of observations, got {variables[0].shape[1]} and "
            f"{variables[1].shape[1]} (variables are {'rows' if rowvar else 'columns'})",
        )
    if dtype is None:
        wanted = dtypes.to_inexact_dtype(dtypes.lattice_result_type(*variables)[0])
    else:
        wanted = requested_dtype(name, dtype)
        if not dtypes.is_inexact(wanted):
            raise located(
                ValueError,
                f"{name}: dtype must be a floating or complex dtype, got {dtypes.dtype_name(wanted)}: covariances "
                "have fractions",
            )
    x = [convert_element_type(v, wanted) for v in variables]
    x = concatenate(x, 0) if len(x) > 1 else x[0]
    if not x.shape[0]:
        return full((0, 0), 0, wanted)
    count = x.shape[1]
    weights = _observation_weights(fweights, aweights, count, dtypes.to_real_dtype(wanted))
    if ddof is None:
        ddof = 0 if bias else 1
    if not count:
        return full((x.shape[0],) * 2 if x.shape[0] > 1 else (), np.nan, wanted)
    result = _covariance(x, *weights, ddof=int(ddof), has=(fweights is not None, aweights is not None))
    return reshape(result, ()) if result.shape == (1, 1) else result


def _variables(name: str, x: Any, argument: str, rowvar: bool) -> Array:
    x = strong_array(x, name)
    if x.ndim > 2:
        raise located(ValueError, f"{name}: {argument} has more than 2 dimensions, shape {x.shape}")
    if x.ndim < 2:
        return reshape(x, (1, x.size))
    return x if rowvar else transpose(x, (1, 0))


def _observation_weights(fweights, aweights, count: int, dtype) -> list[Array]:
    found = []
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is None:
            continue
        w = as_array(weights, f"cov({name}=...)")
        if w.ndim != 1 or w.shape[0] != count:
            raise located(
                ValueError,
                f"cov: {name} must be a vector of {count} numbers, one for each observation, got {w.shape}",
            )
        if name == "fweights" and not dtypes.is_integer(w.dtype):
            raise located(
                TypeError, f"cov: fweights must be integers, got {dtypes.dtype_name(w.dtype)}; see aweights"
            )
        found.append(convert_element_type(w, dtype))
    return found


def _covariance_on_host(x, *weights, ddof, has):
    dtype = x.dtype
    x = x.astype(np.complex128 if dtype.kind == "c" else np.float64)
    weights = [w.astype(np.float64) for w in weights]
    count = x.shape[1]
    if weights:
        w = weights[0] * weights[1] if len(weights) == 2 else weights[0]
        total = w.sum()
        x = x - ((x * w).sum(1) / total)[:, None]
        freedom = total - ddof * ((w * weights[-1]).sum() / total if has[1] and ddof else 1)
        other = x * w
    else:
        other = x = x - (x.sum(1) / count)[:, None]
        freedom = np.float64(count - ddof)
    return (x.dot(other.conj().T) / freedom).astype(dtype)


@as_one_program(_covariance_on_host)
def _covariance(x, *weights, ddof, has):
    count = x.shape[1]
    if weights:
        w = mul(*weights) if len(weights) == 2 else weights[0]
        total = reduce_sum(w, (0,))
        average = div(reduce_sum(mul(x, _over_rows(w, x)), (1,)), convert_element_type(total, x.dtype))
        if has[1] and ddof:
            correction = div(reduce_sum(mul(w, weights[-1]), (0,)), total)
        else:
            correction = np.array(1, total.dtype)
        freedom = sub(total, mul(correction, np.array(ddof, total.dtype)))
    else:
        average = divide_by_count(reduce_sum(x, (1,)), count)
        freedom = number_as(count - ddof, dtypes.to_real_dtype(x.dtype))
    x = sub(x, broadcast_in_dim(average, x.shape, (0,)))
    other = mul(x, _over_rows(w, x)) if weights else x
    other = conj(other) if dtypes.is_complex(x.dtype) else other
    products = dot_general(x, other, (((1,), (1,)), ((), ())))
    return div(products, convert_element_type(freedom, x.dtype))


def _over_rows(weights, x):
    return broadcast_in_dim(convert_element_type(weights, x.dtype), x.shape, (1,))


def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """The matrix of correlation coefficients of variables, which are the rows of a matrix.

    Args:
        x: a vector (one variable) or a matrix, whose rows are variables and whose columns are observations.
        y: more variables, in the same form.
        rowvar: False if the columns are the variables.
        dtype: of the result.

    Returns:
        The matrix of coefficients, between -1 and 1; a scalar for one variable.

    >>> import purax.numpy as jnp
    >>> jnp.corrcoef(jnp.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    covariance = _covariances("corrcoef", x, y, rowvar, False, None, None, None, dtype)
    return _correlation(covariance)


def _correlation_on_host(covariance):
    if not covariance.ndim:
        return covariance / covariance
    dtype = covariance.dtype
    wide = covariance.astype(np.complex128 if dtype.kind == "c" else np.float64)
    deviations = np.sqrt(wide.diagonal().real)
    result = wide / deviations[:, None] / deviations
    np.clip(result.real, -1, 1, out=result.real)
    if dtype.kind == "c":
        np.clip(result.imag, -1, 1, out=result.imag)
    return result.astype(dtype)


@as_one_program(_correlation_on_host)
def _correlation(covariance):
    if not covariance.ndim:
        return div(covariance, covariance)
    n = covariance.shape[0]
    identity = np.eye(n, dtype=bool)
    variances = reduce_sum(select(identity, covariance, np.array(0, covariance.dtype)), (1,))
    is_complex = dtypes.is_complex(covariance.dtype)
    deviations = sqrt(real(variances) if is_complex else variances)
    deviations = convert_element_type(deviations, covariance.dtype)
    result = div(covariance, broadcast_in_dim(deviations, (n, n), (0,)))
    result = div(result, broadcast_in_dim(deviations, (n, n), (1,)))
    if is_complex:
        return complex_(_clamped(real(result)), _clamped(imag(result)))
    return _clamped(result)


def _clamped(x):
    return min_(max_(x, np.array(-1, x.dtype)), np.array(1, x.dtype))
