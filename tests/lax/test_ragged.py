"""Products with rows in groups: against a loop over the groups, and against jax where it has them."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax import lax
from tests.against_jax import numbers

SIZES = ([1, 0, 3], [2, 2, 2], [0, 0, 0], [10, 5, 3], [0, 19, 1], [20, 0, 0], [7, 7, 9])


def by_rows(lhs, rhs, sizes):
    out, start = np.zeros((len(lhs), rhs.shape[-1]), np.float32), 0
    for matrix, size in zip(rhs, sizes, strict=True):
        out[start : start + size] = lhs[start : start + size] @ matrix
        start += size
    return out


def by_columns(lhs, rhs, sizes):
    out, start = [], 0
    for size in sizes:
        out.append(lhs[:, start : start + size] @ rhs[start : start + size])
        start += size
    return np.stack(out)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_groups_of_rows_and_columns(sizes):
    lhs, rhs, wide = numbers((20, 4)), numbers((3, 4, 5), seed=1), numbers((20, 5), seed=2)
    group_sizes = jnp.array(sizes)
    np.testing.assert_allclose(
        lax.ragged_dot(lhs, rhs, group_sizes), by_rows(lhs, rhs, sizes), rtol=1e-5, atol=1e-5
    )
    columns = lax.RaggedDotDimensionNumbers((((1,), (0,)), ((), ())), [1], [])
    found = purax.jit(lambda a, b: lax.ragged_dot_general(a, b, group_sizes, columns))(lhs.T, wide)
    np.testing.assert_allclose(found, by_columns(lhs.T, wide, sizes), rtol=1e-5, atol=1e-5)


def test_derivatives_agree_with_a_loop():
    lhs, rhs, sizes = numbers((11, 4)), numbers((3, 4, 5), seed=1), jnp.array([2, 5, 3])
    groups = np.repeat([0, 1, 2, 0], [2, 5, 3, 1])
    mask = np.arange(11)[:, None] < 10

    def looped(a, b):
        return jnp.where(mask, jnp.einsum("mk,mkn->mn", a, b[groups]), 0.0)

    for argnum in (0, 1):
        ours = purax.grad(lambda a, b: jnp.sin(lax.ragged_dot(a, b, sizes)).sum(), argnum)(lhs, rhs)
        theirs = purax.grad(lambda a, b: jnp.sin(looped(a, b)).sum(), argnum)(lhs, rhs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


MANY = np.arange(18).reshape(2, 3, 3) % 5
CASES = {
    "batch axes": ((2, 20, 4), (3, 2, 4, 5), [1, 4, 7], (((2,), (2,)), ((0,), (1,))), [1], [0]),
    "sizes for each batch": ((2, 20, 4), (3, 2, 4, 5), [[1, 4, 7], [0, 3, 3]], (((2,), (2,)), ((0,), (1,))), [1], [0]),
    "axes around": ((2, 3, 20, 2, 4), (3, 2, 4, 5), MANY, (((4,), (2,)), ((0,), (1,))), [2], [0]),
    "contracted": ((2, 4, 20), (2, 20, 5), [[1, 4, 7], [0, 3, 3]], (((2,), (1,)), ((0,), (0,))), [2], []),
    "contracted, axes around": (
        (2, 4, 3, 20, 2), (2, 3, 20, 2, 5), MANY, (((2, 3, 4), (1, 2, 3)), ((0,), (0,))), [3], []
    ),
    "batch": ((4, 2, 3), (4, 3, 5), [1, 1, 2], (((2,), (1,)), ((0,), (0,))), [0], []),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_any_axes_as_jax(case):
    left, right, sizes, numbers_, ragged, groups = case
    lhs, rhs, sizes = numbers(left), numbers(right, seed=1), np.array(sizes, np.int32)
    ours = lax.ragged_dot_general(lhs, rhs, sizes, lax.RaggedDotDimensionNumbers(numbers_, ragged, groups))
    theirs = jax.lax.ragged_dot_general(
        lhs, rhs, jax.numpy.asarray(sizes), jax.lax.RaggedDotDimensionNumbers(numbers_, ragged, groups)
    )
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_part_of_the_groups():
    lhs, rhs = numbers((6, 2)), numbers((4, 2, 3), seed=1)
    sizes = jnp.array([1, 2, 2, 1])
    whole = by_rows(lhs, rhs, [1, 2, 2, 1])
    part = lax.ragged_dot(lhs, rhs[1:3], sizes, group_offset=jnp.array([1]))
    np.testing.assert_allclose(part, np.where((np.arange(6) % 5 != 0)[:, None], whole, 0), rtol=1e-5)


def test_vmap_over_sizes():
    lhs, rhs = numbers((2, 6, 2)), numbers((3, 2, 3), seed=1)
    sizes = np.array([[1, 2, 3], [4, 0, 1]])
    found = purax.vmap(lambda a, s: lax.ragged_dot(a, rhs, s))(lhs, sizes)
    np.testing.assert_allclose(
        found, [by_rows(a, rhs, s) for a, s in zip(lhs, sizes, strict=True)], rtol=1e-5
    )


def test_bad_arguments():
    lhs, rhs = jnp.ones((6, 2)), jnp.ones((3, 2, 3))
    with pytest.raises(TypeError, match="group_sizes.dtype is subtype of np.integer"):
        lax.ragged_dot(lhs, rhs, jnp.ones(3))
    with pytest.raises(TypeError, match="exactly one rhs group dimension"):
        lax.ragged_dot_general(
            lhs, rhs, jnp.ones(3, int), lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [])
        )
    with pytest.raises(TypeError, match=r"float32\[6,2\]"):
        lax.ragged_dot(lhs, jnp.ones((3, 4, 3)), jnp.ones(3, int))
