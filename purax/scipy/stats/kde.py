"""`gaussian_kde`: the density that a sample suggests, a sum of normal densities around its points."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from purax import numpy as jnp
from purax import random
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.lax import linalg
from purax.nn.normalization import logsumexp
from purax.primitives.special.errors import ndtr_p
from purax.scipy.stats.multivariate_normal import logpdf as normal_logpdf
from purax.tree_util import register_pytree_node_class
from purax.typing import ArrayLike


@register_pytree_node_class
class gaussian_kde:
    """A kernel density estimate, which is a pytree: it can be passed to transformed functions.

    Args:
        dataset: the points, of shape [n] or, for points of d numbers, [d, n].
        bw_method: the width of the kernels: "scott" (the default), "silverman", a number, or a function of the estimate
            that gives a number.
        weights: of the points; equal if not given.

    Attributes:
        dataset: the points, of shape [d, n].
        weights: of the points, of sum 1.
        neff: the effective number of points.
        covariance, inv_cov: of the kernels.

    >>> import purax.numpy as jnp
    >>> from purax.scipy.stats import gaussian_kde
    >>> jnp.round(gaussian_kde(jnp.array([1.0, 2.0, 4.0]))(jnp.array([1.0, 2.0])), 4)
    Array([0.1917, 0.2149], dtype=float32)
    """

    __slots__ = ("covariance", "dataset", "inv_cov", "neff", "weights")

    def __init__(
        self,
        dataset: ArrayLike,
        bw_method: str | float | Callable[[Any], Any] | None = None,
        weights: ArrayLike | None = None,
    ):
        points = jnp.atleast_2d(jnp.asarray(dataset))
        if dtypes.is_complex(points.dtype):
            raise located(NotImplementedError, "gaussian_kde: complex points are not supported")
        if points.size <= 1:
            raise located(ValueError, "gaussian_kde: the `dataset` input should have multiple elements.")
        points = points.astype(dtypes.to_inexact_dtype(points.dtype))
        count = points.shape[1]
        self.dataset = points
        if weights is None:
            self.weights = jnp.full(count, 1 / count, dtype=points.dtype)
        else:
            given = jnp.asarray(weights).astype(points.dtype)
            if given.shape != (count,):
                raise located(
                    ValueError, f"gaussian_kde: weights must have shape ({count},), got {given.shape}"
                )
            self.weights = given / jnp.sum(given)
        self.neff = 1 / jnp.sum(jnp.square(self.weights))
        factor: Any
        if bw_method is None or bw_method == "scott":
            factor = self.neff ** (-1 / (self.d + 4))
        elif bw_method == "silverman":
            factor = (self.neff * (self.d + 2) / 4) ** (-1 / (self.d + 4))
        elif callable(bw_method):
            factor = bw_method(self)
        elif isinstance(bw_method, str):
            raise located(
                ValueError,
                "gaussian_kde: bw_method must be 'scott', 'silverman', a number or a function, got "
                f"{shown(bw_method)}",
            )
        else:
            factor = bw_method
        spread = jnp.atleast_2d(jnp.cov(points, rowvar=True, bias=False, aweights=self.weights))
        squared = jnp.square(jnp.asarray(factor, points.dtype))
        self.covariance = spread * squared
        self.inv_cov = jnp.linalg.inv(spread) / squared

    @property
    def d(self) -> int:
        """How many numbers a point has."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """How many points there are."""
        return self.dataset.shape[1]

    def tree_flatten(self) -> tuple[tuple, None]:
        """The arrays."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Any) -> gaussian_kde:
        """The estimate made of its arrays."""
        kde = cls.__new__(cls)
        kde.neff, kde.dataset, kde.weights, kde.covariance, kde.inv_cov = children
        return kde

    def _points(self, name: str, points: ArrayLike) -> Array:
        """Points as columns."""
        x = jnp.atleast_2d(jnp.asarray(points)).astype(self.dataset.dtype)
        if x.shape[0] != self.d:
            if x.shape[0] == 1 and x.shape[1] == self.d:
                return jnp.reshape(x, (self.d, 1))
            raise located(
                ValueError, f"gaussian_kde.{name}: points must have shape [{self.d}, m], got {x.shape}"
            )
        return x

    def _log_terms(self, points: Array) -> Array:
        """The logarithm of the part of each point of the sample in the density at each of `points`, as [n, m]."""
        factor = linalg.cholesky(self.covariance)
        whitened, targets = (
            linalg.triangular_solve(factor, x, left_side=True, lower=True) for x in (self.dataset, points)
        )
        distance = jnp.sum(jnp.square(whitened[:, :, None] - targets[:, None, :]), axis=0)
        half_log_det = jnp.sum(jnp.log(jnp.diag(factor)))
        constant = half_log_det + 0.5 * self.d * math.log(2 * math.pi)
        return jnp.log(self.weights)[:, None] - 0.5 * distance - constant

    def evaluate(self, points: ArrayLike) -> Array:
        """The density at points of shape [m] or [d, m]."""
        return jnp.exp(self.logpdf(points))

    __call__ = evaluate

    def pdf(self, x: ArrayLike) -> Array:
        """The density; another name of `evaluate`."""
        return self.evaluate(x)

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the density."""
        return logsumexp(self._log_terms(self._points("logpdf", x)), axis=0)

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """The integral of the density times that of a normal distribution."""
        center = jnp.atleast_1d(jnp.squeeze(jnp.asarray(mean, self.dataset.dtype)))
        spread = jnp.atleast_2d(jnp.asarray(cov, self.dataset.dtype))
        if center.shape != (self.d,) or spread.shape != (self.d, self.d):
            raise located(
                ValueError,
                f"gaussian_kde.integrate_gaussian: mean and cov must have shapes ({self.d},) and ({self.d}, "
                f"{self.d}), got {center.shape} and {spread.shape}",
            )
        logarithms = normal_logpdf(self.dataset.T, center, self.covariance + spread)
        return jnp.sum(jnp.exp(logarithms) * self.weights)

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """The probability of numbers between two bounds, for samples of numbers."""
        if self.d != 1:
            raise located(
                ValueError, f"gaussian_kde.integrate_box_1d is for points of 1 number, these have {self.d}"
            )
        if jnp.ndim(low) or jnp.ndim(high):
            raise located(
                ValueError, "gaussian_kde.integrate_box_1d: the bounds low and high must be numbers"
            )
        deviation = jnp.sqrt(self.covariance[0, 0])
        low, high = ((jnp.asarray(x, self.dataset.dtype) - self.dataset[0]) / deviation for x in (low, high))
        return jnp.sum(self.weights * (ndtr_p.bind(high) - ndtr_p.bind(low)))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product of two densities."""
        if other.d != self.d:
            raise located(
                ValueError, f"gaussian_kde.integrate_kde: points have {self.d} and {other.d} numbers"
            )
        spread = self.covariance + other.covariance
        pairs = normal_logpdf(self.dataset.T[:, None, :], other.dataset.T[None, :, :], spread)
        return jnp.sum(jnp.exp(pairs) * self.weights[:, None] * other.weights[None, :])

    def resample(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Draws from the density.

        Args:
            key: a random key.
            shape: of the sample.

        Returns:
            An array of shape [d, *shape].
        """
        index_key, noise_key = random.split(key)
        chosen = random.choice(index_key, self.n, shape=shape, p=self.weights)
        center = jnp.zeros(self.d, self.covariance.dtype)
        noise = random.multivariate_normal(
            noise_key, center, self.covariance, shape=shape, dtype=self.dataset.dtype
        )
        return self.dataset[:, chosen] + jnp.moveaxis(noise, -1, 0)

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Not supported: make another estimate."""
        del bw_method
        raise located(
            NotImplementedError,
            "gaussian_kde.set_bandwidth: estimates do not change; write gaussian_kde(dataset, bw_method=...)",
        )

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> None:
        """Not supported beyond one dimension; use `integrate_box_1d`."""
        del low_bounds, high_bounds, maxpts
        raise located(NotImplementedError, "gaussian_kde.integrate_box: only `integrate_box_1d` is supported")
