"""`gmm`: rows in groups, each group times its own matrix; `tgmm`: the derivative with respect to the matrices."""

from __future__ import annotations

from typing import Any

from purax import lax
from purax import numpy as jnp
from purax.core.source import located


def _group_of_rows(group_sizes: Any, rows: int) -> Any:
    """For each row the number of its group; beyond all groups their number."""
    ends = jnp.cumsum(group_sizes)
    return jnp.searchsorted(ends, jnp.arange(rows, dtype=ends.dtype), side="right")


def _refuse_offset(group_offset: Any) -> None:
    if group_offset is not None:
        raise located(
            NotImplementedError, "gmm: group_offset is not supported; slice the matrices and the group sizes"
        )


def gmm(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    preferred_element_type: Any = jnp.float32,
    tiling: Any = (128, 128, 128),
    group_offset: Any = None,
    existing_out: Any = None,
    transpose_rhs: bool = False,
    interpret: bool = False,
) -> Any:
    """lhs[i] @ rhs[group of i] for the rows i of (m, k) and matrices (groups, k, n).

    Args:
        lhs: the rows, one group after the other.
        rhs: a matrix for each group.
        group_sizes: how many rows each group has.
        preferred_element_type: the dtype of the result.
        tiling, interpret: of no meaning here.
        group_offset: not supported.
        existing_out: what rows beyond all groups have.
        transpose_rhs: whether the matrices are (groups, n, k).

    >>> import purax.numpy as jnp
    >>> from purax.pallas.ops.tpu.megablox import gmm
    >>> gmm(jnp.ones((3, 2)), jnp.stack([jnp.eye(2), 2 * jnp.eye(2)]), jnp.array([1, 2]))[:, 0]
    Array([1., 2., 2.], dtype=float32)
    """
    _refuse_offset(group_offset)
    matrices = jnp.swapaxes(rhs, 1, 2) if transpose_rhs else rhs
    out = lax.ragged_dot(lhs, matrices, group_sizes, preferred_element_type=jnp.float32)
    if existing_out is not None:
        is_beyond = _group_of_rows(group_sizes, lhs.shape[0]) >= group_sizes.shape[0]
        out = jnp.where(is_beyond[:, None], existing_out.astype(out.dtype), out)
    return out.astype(preferred_element_type)


def tgmm(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    preferred_element_type: Any = jnp.float32,
    tiling: Any = (128, 128, 128),
    group_offset: Any = None,
    num_actual_groups: int | None = None,
    existing_out: Any = None,
    interpret: bool = False,
) -> Any:
    """For each group the product of its columns of `lhs`, (k, m), and its rows of `rhs`, (m, n)."""
    _refuse_offset(group_offset)
    of = _group_of_rows(group_sizes, rhs.shape[0])
    count = group_sizes.shape[0]
    chosen = (of[None, :] == jnp.arange(count, dtype=of.dtype)[:, None]).astype(lhs.dtype)
    out = jnp.einsum("gm,km,mn->gkn", chosen, lhs, rhs, preferred_element_type=jnp.float32)
    if existing_out is not None:
        out = out + existing_out
    return out.astype(preferred_element_type)
