"""Running results along an axis, with the operations that have primitives of their own."""

from __future__ import annotations

from purax.core.array import Array  # noqa: F401  (in signatures of rows)
from purax.lax.families import running
from purax.primitives.reductions import cumulative
from purax.typing import ArrayLike  # noqa: F401

# fmt: off
cumsum = running("cumsum", cumulative.cumsum_p, "The running sum",
    "lax.cumsum(jnp.arange(4))", "Array([0, 1, 3, 6], dtype=int32)")
cumprod = running("cumprod", cumulative.cumprod_p, "The running product",
    "lax.cumprod(jnp.arange(1, 5))", "Array([ 1,  2,  6, 24], dtype=int32)")
cummax = running("cummax", cumulative.cummax_p, "The largest element so far",
    "lax.cummax(jnp.array([1, 3, 2]))", "Array([1, 3, 3], dtype=int32)")
cummin = running("cummin", cumulative.cummin_p, "The smallest element so far",
    "lax.cummin(jnp.array([3, 1, 2]))", "Array([3, 1, 1], dtype=int32)")
cumlogsumexp = running("cumlogsumexp", cumulative.cumlogsumexp_p,
    "The running logarithm of the sum of exponentials, without overflow,",
    "lax.cumlogsumexp(jnp.zeros(3))", "Array([0.       , 0.6931472, 1.0986123], dtype=float32)")
# fmt: on
