"""Products with logarithms, as entropies have them, and other elementary functions that need care at their edges.

0 · log 0 is 0. Derivatives are those of the function, also where a step of the formula has none.
"""

from __future__ import annotations

import numpy as np

from purax import numpy as jnp
from purax.control_flow.custom_jvp import custom_jvp
from purax.core import dtypes
from purax.core.array import Array
from purax.numpy._promotion import dtype_of, fused, inexact, promote_inexact
from purax.primitives.elementwise.conversion import convert_element_type_p
from purax.primitives.elementwise.transcendental import logistic_p
from purax.primitives.special.integrals import exprel_p
from purax.typing import ArrayLike


def _in_float64(function):
    """A function of NumPy arrays, computed in float64 and rounded once."""

    def host(*operands):
        dtype = operands[0].dtype
        if dtypes.is_complex(dtype):
            return np.asarray(function(*operands)).astype(dtype)
        return np.asarray(function(*(x.astype(np.float64) for x in operands))).astype(dtype)

    return host


def _arrays(*operands):
    """Operands, with NumPy numbers as arrays: functions with rules would give them the dtypes in use."""
    return [
        convert_element_type_p.bind(x, new_dtype=x.dtype, weak_type=False) if x.__class__ is np.ndarray else x
        for x in operands
    ]


# --- x log y


@_in_float64
def _xlogy_on_host(x, y):
    return np.where((x == 0) & ~np.isnan(y), np.zeros_like(x), x * np.log(y))


def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """x log y, and 0 for x = 0 unless y is NaN.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.special import xlogy
    >>> xlogy(jnp.array([0.0, 2.0]), jnp.array([0.0, 1.0]))
    Array([0., 0.], dtype=float32)
    """
    return _xlogy(*promote_inexact("xlogy", x, y))


@custom_jvp
def _xlogy_by_steps(x, y):
    is_zero = (x == 0) & (y == y)
    return jnp.where(is_zero, 0, x * jnp.log(jnp.where(is_zero, 1, y)))


@_xlogy_by_steps.defjvp
def _xlogy_rule(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    return _xlogy_by_steps(x, y), dx * jnp.log(y) + dy * (x / y)


@fused(_xlogy_on_host)
def _xlogy(x, y):
    return _xlogy_by_steps(*_arrays(x, y))


@_in_float64
def _xlog1py_on_host(x, y):
    return np.where((x == 0) & ~np.isnan(y), np.zeros_like(x), x * np.log1p(y))


def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """x log(1 + y), and 0 for x = 0 unless y is NaN.

    >>> from purax.scipy.special import xlog1py
    >>> float(xlog1py(0.0, -1.0))
    0.0
    """
    return _xlog1py(*promote_inexact("xlog1py", x, y))


@custom_jvp
def _xlog1py_by_steps(x, y):
    is_zero = (x == 0) & (y == y)
    return jnp.where(is_zero, 0, x * jnp.log1p(jnp.where(is_zero, 0, y)))


@_xlog1py_by_steps.defjvp
def _xlog1py_rule(primals, tangents):
    (x, y), (dx, dy) = primals, tangents
    return _xlog1py_by_steps(x, y), dx * jnp.log1p(y) + dy * (x / (1 + y))


@fused(_xlog1py_on_host)
def _xlog1py(x, y):
    return _xlog1py_by_steps(*_arrays(x, y))


# --- entropies


@_in_float64
def _entr_on_host(x):
    return np.where(x > 0, 0 - x * np.log(x), np.where(x == 0, 0.0, np.where(x < 0, -np.inf, x)))


def entr(x: ArrayLike) -> Array:
    """The entropy −x log x of a probability, −∞ for x < 0.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.special import entr
    >>> entr(jnp.array([0.0, 1.0, -1.0]))
    Array([  0.,   0., -inf], dtype=float32)
    """
    return _entr(inexact("entr", x))


@custom_jvp
def _entr_by_steps(x):
    is_positive = x > 0
    inside = jnp.where(is_positive, x, 1)
    outside = jnp.where(x == 0, 0, jnp.where(x < 0, -jnp.inf, x))
    return jnp.where(is_positive, 0 - inside * jnp.log(inside), outside)


@_entr_by_steps.defjvp
def _entr_rule(primals, tangents):
    (x,), (dx,) = primals, tangents
    return _entr_by_steps(x), dx * jnp.where(x < 0, 0, -jnp.log(jnp.where(x < 0, 1, x)) - 1)


@fused(_entr_on_host)
def _entr(x):
    return _entr_by_steps(x)


@_in_float64
def _rel_entr_on_host(p, q):
    inside = np.where((p > 0) & (q > 0), p * np.log(p / q), np.inf)
    return np.where(np.isnan(p) | np.isnan(q), np.nan, np.where((p == 0) & (q >= 0), 0, inside))


def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """The relative entropy p log(p/q): 0 for p = 0 and q ≥ 0, ∞ where one of them is negative or only q is 0.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.special import rel_entr
    >>> rel_entr(jnp.array([0.0, 1.0, 1.0]), jnp.array([0.0, 1.0, 0.0]))
    Array([ 0.,  0., inf], dtype=float32)
    """
    return _rel_entr(*promote_inexact("rel_entr", p, q))


@fused(_rel_entr_on_host)
def _rel_entr(p, q):
    return _rel_entr_by_steps(*_arrays(p, q))


@custom_jvp
def _rel_entr_by_steps(p, q):
    is_inside = (p > 0) & (q > 0)
    first, second = jnp.where(is_inside, p, 1), jnp.where(is_inside, q, 1)
    outside = jnp.where((p == 0) & (q >= 0), 0, jnp.where((p != p) | (q != q), jnp.nan, jnp.inf))
    return jnp.where(is_inside, first * _log_ratio(first, second), outside.astype(first.dtype))


def _log_ratio(p, q):
    """log(p/q) for positive numbers, with all digits where they are near each other."""
    distance = p - q
    is_near = jnp.abs(distance) < 0.5 * q
    near = jnp.log1p(jnp.where(is_near, distance, 0) / q)
    return jnp.where(is_near, near, jnp.log(p) - jnp.log(q))


@_rel_entr_by_steps.defjvp
def _rel_entr_rule(primals, tangents):
    (p, q), (dp, dq) = primals, tangents
    is_inside = (p > 0) & (q > 0)
    first, second = jnp.where(is_inside, p, 1), jnp.where(is_inside, q, 1)
    at_zero = (p == 0) & (q > 0)
    slope = jnp.where(
        is_inside, _log_ratio(first, second) + 1, jnp.where(at_zero, -jnp.inf, 0).astype(first.dtype)
    )
    return _rel_entr_by_steps(p, q), dp * slope - dq * jnp.where(is_inside, first / second, 0)


@_in_float64
def _kl_div_on_host(p, q):
    inside = np.where((p > 0) & (q > 0), p * np.log(p / q) - p + q, np.inf)
    return np.where(np.isnan(p) | np.isnan(q), np.nan, np.where((p == 0) & (q >= 0), q, inside))


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """The element p log(p/q) − p + q of Kullback and Leibler's divergence; ∞ where one is negative or only q is 0.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.special import kl_div
    >>> kl_div(jnp.array([0.0, 1.0]), jnp.array([1.0, 1.0]))
    Array([1., 0.], dtype=float32)
    """
    return _kl_div(*promote_inexact("kl_div", p, q))


@fused(_kl_div_on_host)
def _kl_div(p, q):
    is_finite = (p >= 0) & (q >= 0)
    difference = jnp.where(is_finite, q, 0) - jnp.where(is_finite, p, 0)
    return _rel_entr_by_steps(*_arrays(p, q)) + difference


# --- the logistic function and its inverse


def expit(x: ArrayLike) -> Array:
    """The logistic function 1/(1 + e⁻ˣ).

    >>> from purax.scipy.special import expit
    >>> float(expit(0.0))
    0.5
    """
    return logistic_p.bind(inexact("expit", x))


def _logit_on_host(p):
    wide = p if p.dtype.itemsize >= 8 else p.astype(np.float64)
    if dtypes.is_complex(p.dtype):
        return np.log(wide / (1 - wide)).astype(p.dtype)
    near = np.abs(wide - 0.5) < 0.25
    inner = np.where(near, wide, 0.5)
    return np.where(near, np.log1p((2 * inner - 1) / (1 - inner)), np.log(wide) - np.log1p(-wide)).astype(
        p.dtype
    )


def logit(x: ArrayLike) -> Array:
    """log(x/(1 − x)), the inverse of `expit`; NaN outside of [0, 1].

    >>> import purax.numpy as jnp
    >>> from purax.scipy.special import logit
    >>> logit(jnp.array([0.0, 0.5, 1.0]))
    Array([-inf,   0.,  inf], dtype=float32)
    """
    return _logit(inexact("logit", x))


@custom_jvp
def _logit_by_steps(p):
    if dtypes.is_complex(dtype_of(p)):
        return jnp.log(p / (1 - p))
    near = jnp.abs(p - 0.5) < 0.25
    inner = jnp.where(near, p, 0.5)
    return jnp.where(near, jnp.log1p((2 * inner - 1) / (1 - inner)), jnp.log(p) - jnp.log1p(-p))


@_logit_by_steps.defjvp
def _logit_rule(primals, tangents):
    (p,), (dp,) = primals, tangents
    return _logit_by_steps(p), dp / (p * (1 - p))


@fused(_logit_on_host)
def _logit(p):
    return _logit_by_steps(p)


# --- the transformation of Box and Cox


def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Box and Cox's transformation (x^λ − 1)/λ, log x for λ = 0, accurate for small λ.

    Args:
        x: positive numbers.
        lmbda: the exponents.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.special import boxcox
    >>> boxcox(jnp.array([4.0, 1.0]), jnp.array([0.5, 0.0]))
    Array([2., 0.], dtype=float32)
    """
    x, exponent = promote_inexact("boxcox", x, lmbda)
    return _boxcox(x, exponent)


def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """Box and Cox's transformation of 1 + x, accurate for small x.

    >>> from purax.scipy.special import boxcox1p
    >>> float(boxcox1p(3.0, 0.5))
    2.0
    """
    x, exponent = promote_inexact("boxcox1p", x, lmbda)
    return _boxcox1p(x, exponent)


@_in_float64
def _boxcox_on_host(x, exponent):
    return _boxcox_of_logarithm_on_host(np.log(x), exponent)


@_in_float64
def _boxcox1p_on_host(x, exponent):
    return _boxcox_of_logarithm_on_host(np.log1p(x), exponent)


def _boxcox_of_logarithm_on_host(logarithm, exponent):
    is_infinite = np.isinf(logarithm)
    finite = np.where(is_infinite, 0, logarithm)
    inside = finite * exprel_p.host(finite * exponent)
    limit = np.where(logarithm * exponent < 0, -1 / np.where(exponent == 0, 1, exponent), logarithm)
    return np.where(is_infinite, np.where(np.isnan(exponent), np.nan, limit), inside)


@custom_jvp
def _of_logarithm(logarithm, exponent):
    """(e^(λL) − 1)/λ for L = log x."""
    is_infinite = jnp.isinf(logarithm)
    finite = jnp.where(is_infinite, 0, logarithm)
    inside = finite * exprel_p.bind(finite * exponent)
    limit = jnp.where(logarithm * exponent < 0, -1 / jnp.where(exponent == 0, 1, exponent), logarithm)
    return jnp.where(is_infinite, jnp.where(jnp.isnan(exponent), jnp.nan, limit), inside)


@_of_logarithm.defjvp
def _of_logarithm_rule(primals, tangents):
    (logarithm, exponent), (dl, de) = primals, tangents
    power = logarithm * exponent
    by_exponent = logarithm * logarithm * exprel_p.bind(power, orders=(1,))
    return _of_logarithm(logarithm, exponent), dl * jnp.exp(power) + de * by_exponent


@fused(_boxcox_on_host)
def _boxcox(x, exponent):
    return _of_logarithm(*_arrays(jnp.log(x), exponent))


@fused(_boxcox1p_on_host)
def _boxcox1p(x, exponent):
    return _of_logarithm(*_arrays(jnp.log1p(x), exponent))
