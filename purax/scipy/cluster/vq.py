"""Vector quantization, as `jax.scipy.cluster.vq`: the nearest code of each observation."""

from __future__ import annotations

from purax import numpy as jnp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.numpy._programs import strong_array
from purax.primitives.elementwise.conversion import convert_element_type
from purax.typing import ArrayLike


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The code that is nearest to each observation.

    Args:
        obs: the observations, one in each row, or numbers.
        code_book: the codes, one in each row, or numbers.
        check_finite: has no effect; it is there for SciPy.

    Returns:
        The number of the nearest code of each observation, and the distance to it.

    >>> import purax as px, purax.numpy as jnp
    >>> px.scipy.cluster.vq.vq(jnp.array([[1.0, 0.0], [5.0, 5.0]]), jnp.array([[0.0, 0.0], [5.0, 4.0]]))
    (Array([0, 1], dtype=int32), Array([1., 1.], dtype=float32))
    """
    x, codes = strong_array(obs, "vq", 0), strong_array(code_book, "vq", 1)
    if x.ndim != codes.ndim or x.ndim not in (1, 2) or x.shape[1:] != codes.shape[1:]:
        raise located(
            ValueError,
            "vq: observations and codes must be two vectors, or two matrices with rows of one length; got shapes "
            f"{x.shape} and {codes.shape}",
        )
    if not codes.shape[0]:
        raise located(ValueError, f"vq: there are no codes: code_book has shape {codes.shape}")
    dtype = dtypes.to_inexact_dtype(dtypes.result_type(obs, code_book))
    x, codes = convert_element_type(x, dtype), convert_element_type(codes, dtype)
    if x.ndim == 1:
        x, codes = x[:, None], codes[:, None]
    distances = jnp.linalg.norm(x[:, None] - codes[None], axis=-1)
    code = jnp.argmin(distances, axis=1)
    return code.astype(jnp.int32), jnp.take_along_axis(distances, code[:, None], 1)[:, 0]
