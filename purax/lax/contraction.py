"""Products of matrices and their generalizations: over any axes, of scaled numbers."""

from __future__ import annotations

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.limits import shallow
from purax.core.source import located
from purax.lax.operands import array, listed
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import mul
from purax.primitives.products import contraction
from purax.primitives.products.contraction import (
    DotAlgorithm,
    DotAlgorithmPreset,
    DotDimensionNumbers,
    Precision,
)
from purax.primitives.shape.broadcasting import broadcast_in_dim
from purax.primitives.shape.reshaping import reshape
from purax.sharding.constraints import freely
from purax.typing import ArrayLike

PrecisionLike: TypeAlias = (
    None | str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithm | DotAlgorithmPreset
)
"""What `precision=` accepts."""


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Sums of products over pairs of contracted axes, for each index of pairs of batch axes.

    Args:
        lhs, rhs: arrays.
        dimension_numbers: `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`, each a sequence of axes.
        precision: how exactly accelerators multiply: a `lax.Precision`, its name, a pair, or an algorithm.
        preferred_element_type: the dtype of the result.

    Returns:
        An array whose axes are the batch axes, the other axes of `lhs`, and the other axes of `rhs`.

    >>> from purax import lax, numpy as jnp
    >>> lax.dot_general(jnp.ones((2, 3)), jnp.ones((4, 3)), (((1,), (1,)), ((), ()))).shape
    (2, 4)
    """
    if out_sharding is not None:
        rest = (dimension_numbers, precision, preferred_element_type)
        return freely(lambda x, y: dot_general(x, y, *rest), out_sharding, lhs, rhs)
    x, y = array("dot_general", lhs), array("dot_general", rhs, 1)
    preferred = None if preferred_element_type is None else dtypes.as_dtype(preferred_element_type)
    if x.aval.dtype is not y.aval.dtype:
        x, y = _one_kind(x, y)
    if preferred is not None and dtypes.kind(preferred) != dtypes.kind(x.aval.dtype):
        if (
            dtypes.promote_types(x.aval.dtype, preferred) == preferred
        ):  # sums of bools count, integers do not overflow
            x, y = convert_element_type(x, preferred), convert_element_type(y, preferred)
        product = contraction.dot_general(x, y, dimension_numbers, precision)
        return convert_element_type(product, preferred)
    return contraction.dot_general(x, y, shallow(dimension_numbers), precision, preferred)


def _one_kind(x: Array, y: Array) -> tuple[Array, Array]:
    """Operands of one kind of numbers: integers beside floating point numbers become such, real numbers complex."""
    if dtypes.kind(x.aval.dtype) == dtypes.kind(y.aval.dtype):
        return x, y
    dtype = dtypes.promote_types(x.aval.dtype, y.aval.dtype)
    return convert_element_type(x, dtype), convert_element_type(y, dtype)


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """The product of vectors and matrices, or over given axes as `dot_general`.

    Args:
        lhs, rhs: vectors or matrices; any arrays if `dimension_numbers` is given.
        dimension_numbers, precision, preferred_element_type: as in `dot_general`.

    >>> from purax import lax, numpy as jnp
    >>> lax.dot(jnp.arange(3), jnp.arange(3))
    Array(5, dtype=int32)
    """
    x, y = array("dot", lhs), array("dot", rhs, 1)
    if dimension_numbers is None:
        a, b = x.aval, y.aval
        if a.ndim not in (1, 2) or b.ndim not in (1, 2) or a.shape[-1] != b.shape[0]:
            raise located(
                ValueError,
                f"lax.dot without dimension_numbers multiplies vectors and matrices, the last axis of lhs with the "
                f"first of rhs; got {listed((a, b))}",
            )
        dimension_numbers = (((a.ndim - 1,), (0,)), ((), ()))
    return dot_general(x, y, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding)


def batch_matmul(lhs: Array, rhs: Array, precision: PrecisionLike = None) -> Array:
    """Products of matrices, for each index of the axes before the last two.

    >>> from purax import lax, numpy as jnp
    >>> lax.batch_matmul(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    x, y = array("batch_matmul", lhs), array("batch_matmul", rhs, 1)
    ndim = x.aval.ndim
    if ndim < 2 or y.aval.ndim != ndim:
        raise located(
            ValueError,
            f"lax.batch_matmul needs arrays with equally many axes, at least 2, got {listed((x.aval, y.aval))}",
        )
    batch = tuple(range(ndim - 2))
    return dot_general(x, y, (((ndim - 1,), (ndim - 2,)), (batch, batch)), precision)


def scaled_dot(
    lhs: Array,
    rhs: Array,
    *,
    lhs_scale: Array | None = None,
    rhs_scale: Array | None = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: Any = None,
) -> Array:
    """The product of narrow numbers that have scales for blocks along the contracted axis.

    Args:
        lhs, rhs: matrices, or batches of matrices.
        lhs_scale, rhs_scale: scales: shaped as the operands, but shorter along the contracted axis, a divisor of it.
        dimension_numbers: as in `dot_general`; by default the product of matrices, or of batches of matrices.
        preferred_element_type: the dtype in which it is computed and returned, bfloat16 unless given.

    Returns:
        (lhs · lhs_scale) @ (rhs · rhs_scale).

    >>> from purax import lax, numpy as jnp
    >>> lax.scaled_dot(jnp.ones((1, 4)), jnp.ones((4, 1)), lhs_scale=jnp.array([[1.0, 10.0]]))
    Array([[22]], dtype=bfloat16)
    """
    x, y = array("scaled_dot", lhs), array("scaled_dot", rhs, 1)
    if dimension_numbers is None:
        if x.aval.ndim not in (2, 3) or y.aval.ndim != x.aval.ndim:
            raise located(
                TypeError,
                "lax.scaled_dot without dimension_numbers multiplies matrices, or batches of them; got "
                f"{listed((x.aval, y.aval))}",
            )
        dimension_numbers = (((1,), (0,)), ((), ())) if x.aval.ndim == 2 else (((2,), (1,)), ((0,), (0,)))
    dtype = np.dtype(ml_dtypes.bfloat16)
    if preferred_element_type is not None:
        dtype = dtypes.as_dtype(preferred_element_type)
    (lhs_contract, rhs_contract), _ = dimension_numbers
    return dot_general(
        _scaled("lhs", x, lhs_scale, lhs_contract, dtype),
        _scaled("rhs", y, rhs_scale, rhs_contract, dtype),
        dimension_numbers,
        preferred_element_type=dtype,
    )


def _scaled(side: str, x: Array, scale: Any, contracted: Any, dtype: np.dtype) -> Array:
    """`x` with each block of it along the contracted axes multiplied by its scale."""
    x = convert_element_type(x, dtype)
    if scale is None:
        return x
    scale = array("scaled_dot", scale)
    shape, scales = x.aval.shape, scale.aval.shape
    if len(scales) != len(shape) or any(
        m == 0 or (n % m if axis in contracted else n != m)
        for axis, (n, m) in enumerate(zip(shape, scales, strict=False))
    ):
        raise located(
            TypeError,
            f"lax.scaled_dot: {side}_scale of shape {scales} must have the shape {shape} of {side}, but for the "
            f"contracted axes {tuple(contracted)}, whose sizes must divide those of {side}",
        )
    blocks = [size for n, m in zip(shape, scales, strict=True) for size in (m, n // m)]
    repeated = broadcast_in_dim(convert_element_type(scale, dtype), blocks, range(0, len(blocks), 2))
    return mul(x, reshape(repeated, shape))
