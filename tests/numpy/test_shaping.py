"""Shapes, orders of axes, joining, splitting, rearranging and padding: as jax's, and as NumPy's where jax refuses."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import purax
import purax.numpy as jnp
from tests.numpy.both import differences

RESHAPING = [
    "jnp.reshape(m, (3, -1))", "jnp.reshape(m, 6)", "jnp.reshape(m, (4,))", "jnp.reshape(m, (-1, -1))",
    "jnp.reshape(m, (-2,))", "jnp.reshape(m, 'a')", "jnp.reshape(m, 2.0)", "m.reshape()", "m.reshape(3, -1)",
    "m.reshape((3, 2), order='F')", "jnp.reshape(t, (4, -1), order='F')", "jnp.reshape(m, (3, 2), order='A')",
    "jnp.reshape(m, (3, 2), order='X')", "jnp.reshape(m, (0, -1))", "jnp.reshape(m[:0], (-1, 3))",
    "jnp.reshape(2.0, (1, 1))", "jnp.reshape([1], (1,))", "jnp.ravel(m, 'F')", "jnp.ravel(m, 'K')", "jnp.ravel(t)",
    "m.flatten()", "jnp.squeeze(m[None, :, None])", "jnp.squeeze(m[None], 0)", "jnp.squeeze(m, 0)",
    "jnp.squeeze(m[None], (0, 0))", "jnp.squeeze(m[None], 7)", "jnp.expand_dims(m, 0)",
    "jnp.expand_dims(m, (0, -1))", "jnp.expand_dims(m, (0, 0))", "jnp.expand_dims(m, 5)", "jnp.expand_dims(m, ())",
    "jnp.transpose(m)", "jnp.transpose(t, (2, 0, 1))", "jnp.transpose(t, (-1, 0, 1))", "jnp.transpose(m, (0, 0))",
    "jnp.transpose(m, (1,))", "jnp.transpose(m, (0, 2))", "jnp.permute_dims(m, axes=(1, 0))",
    "jnp.matrix_transpose(t)", "jnp.matrix_transpose(x)", "x.T", "x.mT", "jnp.swapaxes(t, 0, -1)",
    "jnp.swapaxes(m, 0, 2)", "jnp.moveaxis(t, 0, -1)", "jnp.moveaxis(t, (0, 1), (2, 0))",
    "jnp.moveaxis(t, [0, 2], [1, 0])", "jnp.moveaxis(m, 0, (0, 1))", "jnp.rollaxis(t, 2)", "jnp.rollaxis(t, 0, 3)",
    "jnp.rollaxis(t, 1, -1)", "jnp.rollaxis(t, 2, 5)", "jnp.broadcast_to(x, (2, 3))", "jnp.broadcast_to(1, (2,))",
    "jnp.broadcast_to(x, (2, 2))", "jnp.broadcast_to(m, 3)", "jnp.broadcast_to(m[:, :1], (2, 2, 4))",
    "jnp.broadcast_arrays(x, m)", "jnp.broadcast_arrays(1, m)", "jnp.broadcast_shapes((2,), (3,))",
    "jnp.broadcast_shapes(2, (3, 1))", "jnp.broadcast_shapes()", "jnp.atleast_1d(1, x)", "jnp.atleast_2d(x, 1)",
    "jnp.atleast_1d()", "jnp.atleast_3d(m)", "jnp.atleast_3d(x)", "jnp.atleast_3d(1.0)", "jnp.shape(m)",
    "jnp.shape([1])", "jnp.ndim([[1]])", "jnp.size(m, (0, 1))", "jnp.size(m, 1)", "jnp.size([1, 2])",
]  # fmt: skip

JOINING = [
    "jnp.concatenate([[1], [2]])", "jnp.concatenate([x, i])", "jnp.concatenate(m)", "jnp.concatenate([])",
    "jnp.concatenate(x)", "jnp.concatenate([1, 2])", "jnp.concatenate([1, 2], axis=None)",
    "jnp.concatenate([x, 1.0], axis=None)", "jnp.concatenate([m, f], axis=1)", "jnp.concatenate([m, m], axis=2)",
    "jnp.concatenate([m, x])", "jnp.concatenate([m, m[:, :2]])", "jnp.concatenate([x, i], dtype=int)",
    "jnp.concatenate([x.astype('bfloat16'), i])", "jnp.concat([x, x])", "jnp.stack([x, i[:3]])",
    "jnp.stack([x, 1])", "jnp.stack([])", "jnp.stack(m)", "jnp.stack([x, x], axis=-1)", "jnp.stack([x, x], axis=2)",
    "jnp.stack([[1], [2]])", "jnp.stack([1, 2])", "jnp.hstack([1, 2])", "jnp.hstack([m, f])",
    "jnp.vstack([x, i[:3]])", "jnp.vstack([1, 2])", "jnp.dstack([x, x])", "jnp.dstack([m, m])",
    "jnp.column_stack([x, m.T])", "jnp.column_stack([x, x])", "jnp.append(x, 1)", "jnp.append(m, m, axis=0)",
    "jnp.append(m, x, axis=0)", "jnp.append([1], 2)", "jnp.block([[m, m], [m, f]])", "jnp.block([x, 1])",
    "jnp.block(x)", "jnp.block([[x], [x, x]])", "jnp.block([])", "jnp.block([[1, 2], [3, 4]])",
    "jnp.block([[x, x], [x, x]])", "jnp.split(x, 3)", "jnp.split(x, 2)", "jnp.split(i, [1, 3])",
    "jnp.split(t, 2, axis=-1)", "jnp.split(i, 0)", "jnp.array_split(jnp.arange(7), 3)",
    "jnp.array_split(m, [1], axis=1)", "jnp.split(1.0, 1)", "jnp.hsplit(m, 3)", "jnp.hsplit(x, 3)",
    "jnp.vsplit(m, 2)", "jnp.vsplit(x, 1)", "jnp.dsplit(m, 1)", "jnp.dsplit(t, 2)", "jnp.unstack(m)",
    "jnp.unstack(m, axis=1)", "jnp.unstack(1.0)", "jnp.unstack(m[:0])",
    "jax.jit(lambda a: jnp.split(a, 2, 1))(t[:, :2])",
    "jax.grad(lambda a: jnp.sum(jnp.concatenate([a, 2 * a]) ** 2))(x)",
]  # fmt: skip

REARRANGING = [
    "jnp.tile(x, 2)", "jnp.tile(x, (2, 2))", "jnp.tile(m, (2, 1, 2))", "jnp.tile(x, ())", "jnp.tile(1.0, 2)",
    "jnp.tile(x, -1)", "jnp.tile(x, 0)", "jnp.repeat(x, 2)", "jnp.repeat(m, 2)", "jnp.repeat(m, 2, axis=0)",
    "jnp.repeat(m, i[1:3], axis=0)", "jnp.repeat(m, [1, 2], axis=0)", "jnp.repeat(m, i, axis=0)",
    "jnp.repeat(m, i[1:3], axis=0, total_repeat_length=5)", "jnp.repeat(m, i[1:3], axis=0, total_repeat_length=2)",
    "jnp.repeat(x, -1)", "jnp.repeat(1.0, 3)", "jnp.repeat(x, i[2:3])", "jnp.repeat(x, 2.5)", "jnp.repeat(x, 0)",
    "jax.jit(lambda r: jnp.repeat(m, r, axis=0, total_repeat_length=5))(i[1:3])",
    "jax.jit(lambda r: jnp.repeat(m, r, axis=0))(i[1:3])", "jnp.flip(m)", "jnp.flip(m, 0)", "jnp.flip(t, (0, -1))",
    "jnp.fliplr(m)", "jnp.fliplr(x)", "jnp.flipud(x)", "jnp.flipud(1.0)", "jnp.rot90(m)", "jnp.rot90(m, 2)",
    "jnp.rot90(m, -1)", "jnp.rot90(t, 1, (1, 2))", "jnp.rot90(m, 1, (1, 0))", "jnp.rot90(x)",
    "jnp.rot90(m, axes=(0, 0))", "jnp.roll(x, 1)", "jnp.roll(m, 1)", "jnp.roll(m, (1, 2), (0, 1))",
    "jnp.roll(m, 1, (0, 1))", "jnp.roll(m, (1, 2))", "jnp.roll(m, (1, 1), 0)", "jnp.roll(m, i[1:2], 0)",
    "jnp.roll(x, -7)", "jnp.roll(x[:0], 1)", "jax.jit(lambda s: jnp.roll(m, s, 1))(-4)",
    "jax.jit(lambda s: jnp.roll(m, s))(i[1:3])", "jnp.delete(i, 1)", "jnp.delete(m, 1, axis=1)",
    "jnp.delete(m, [0, 1], axis=1)", "jnp.delete(m, i[:2], axis=1)", "jnp.delete(i, slice(0, 2))",
    "jnp.delete(i, i > 1)", "jnp.delete(i, 5)", "jnp.delete(i, -1)", "jnp.delete(i, jnp.array([0, 0]))",
    "jnp.delete(m, 0)", "jnp.delete(jnp.arange(40), jnp.arange(0, 40, 2))",
    "jax.jit(lambda o: jnp.delete(jnp.arange(10), o, assume_unique_indices=True))(jnp.array([7, 1, -1]))",
    "jnp.insert(i, 1, 9)", "jnp.insert(m, 1, 9)", "jnp.insert(m, 1, 9, axis=1)", "jnp.insert(m, 1, x, axis=0)",
    "jnp.insert(i, i[:3:2], i[2:])", "jnp.insert(i, jnp.array([3, 0, 0]), jnp.array([7, 8, 9]))",
    "jnp.insert(m, i[2::-2], jnp.array([[7, 8], [9, 10]]), axis=1)",
    "jnp.insert(m, 1, jnp.array([[7, 8], [9, 10]]), axis=1)",
    "jnp.insert(m, i[1:2], jnp.array([[7], [9]]), axis=1)", "jnp.insert(i, slice(0, 2), 9)",
    "jnp.insert(i, [1, 1], [8, 9])", "jnp.insert(i, 1, 1.5)", "jnp.insert(i, -1, 1)", "jnp.insert(i, 4, 1)",
    "jnp.insert(i, 2, jnp.array([7, 8, 9]))", "jax.jit(lambda o: jnp.insert(i, o, 9))(2)", "jnp.resize(i, (2, 3))",
    "jnp.resize(i, 7)", "jnp.resize(x[:0], (2,))", "jnp.resize(i, -1)", "jnp.trim_zeros(i)",
    "jnp.trim_zeros(jnp.array([0, 1, 0]), 'f')", "jnp.trim_zeros(jnp.zeros(3))", "jnp.trim_zeros(m, axis=1)",
    "jax.jit(jnp.trim_zeros)(i)",
]  # fmt: skip

PAD_MODES = "constant edge empty linear_ramp maximum mean median minimum reflect symmetric wrap".split()
WIDTHS = ("2", "((1, 0), (2, 3))", "((5, 7),)")
PADDING = [f"jnp.pad({a}, {width}, mode='{mode}')" for mode in PAD_MODES for a in "mf" for width in WIDTHS]
PADDING += [
    "jnp.pad(m, 2, mode='reflect', reflect_type='odd')", "jnp.pad(m, 5, mode='symmetric', reflect_type='odd')",
    "jnp.pad(m, 5, mode='reflect', reflect_type='odd')", "jnp.pad(m, 2, mode='mean', stat_length=1)",
    "jnp.pad(m, 2, mode='median', stat_length=((1, 2), (2, 1)))",
    "jnp.pad(m, ((1, 2), (3, 4)), constant_values=((1, 2), (3, 4)))", "jnp.pad(m, 1, constant_values=7)",
    "jnp.pad(m, 1, constant_values=(7, 8))", "jnp.pad(f, 1, constant_values=x[0])",
    "jnp.pad(m, 2, mode='linear_ramp', end_values=(5, -4))",
    "jnp.pad(f, 2, mode='linear_ramp', end_values=((5, -4), (1, 2)))", "jnp.pad(i, (1,), mode='edge')",
    "jnp.pad(1.0, 1)", "jnp.pad(i * 1.5, 1, mode='mean')", "jnp.pad(i, -1)", "jnp.pad(i, 1.5)",
    "jnp.pad(i, 1, mode='foo')", "jnp.pad(i, 1, foo=3)", "jnp.pad(m[:0], 1)", "jnp.pad(m[:0], 1, mode='edge')",
    "jnp.pad(i, ((1, 2), (3, 4)))", "jnp.pad(i, [2, 3])", "jnp.pad(i, np.array([[2, 3]]))", "jnp.pad([1], 1)",
    "jnp.pad(f, 1, mode=lambda v, w, a, k: v.at[:w[0]].set(a + 7))",
    "jax.jit(lambda a: jnp.pad(a, 1, mode='wrap'))(m)",
    "jax.grad(lambda a: jnp.sum(jnp.pad(a, 2, mode='reflect') ** 2))(f)",
    "jax.vmap(lambda a: jnp.pad(a, 1, mode='edge'))(f)",
]  # fmt: skip


@pytest.mark.parametrize(
    "expressions",
    [RESHAPING, JOINING, REARRANGING, PADDING],
    ids=["reshaping", "joining", "rearranging", "padding"],
)
def test_agrees_with_jax(expressions):
    wrong = differences(expressions)
    assert not wrong, "\n".join(wrong)


def test_every_permutation_and_axis():
    """transpose, moveaxis, swapaxes, flip and roll over all axes of a small array, against NumPy."""
    values = np.arange(24).reshape(2, 3, 4)
    x = jnp.asarray(values)
    for order in itertools.permutations(range(3)):
        np.testing.assert_array_equal(jnp.transpose(x, order), values.transpose(order))
    for a, b in itertools.product(range(-3, 3), repeat=2):
        np.testing.assert_array_equal(jnp.moveaxis(x, a, b), np.moveaxis(values, a, b))
        np.testing.assert_array_equal(jnp.swapaxes(x, a, b), np.swapaxes(values, a, b))
        np.testing.assert_array_equal(jnp.roll(x, b, a), np.roll(values, b, a))
        np.testing.assert_array_equal(jnp.expand_dims(x, a), np.expand_dims(values, a))
        np.testing.assert_array_equal(jnp.concatenate([x, x], a), np.concatenate([values, values], a))
        np.testing.assert_array_equal(jnp.stack([x, x], a), np.stack([values, values], a))


@pytest.mark.parametrize("places", [[2, 10], [4, 2], [-2], [0, 0], []])
def test_split_follows_numpy_where_jax_refuses(places):
    for ours, numpys in zip(jnp.split(jnp.arange(6), places), np.split(np.arange(6), places), strict=True):
        np.testing.assert_array_equal(ours, numpys)


@pytest.mark.parametrize("mode", PAD_MODES)
@pytest.mark.parametrize("shape", [(1,), (2,), (5,), (3, 1)])
def test_pad_against_numpy(mode, shape):
    values = np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(np.float32)
    for width in (0, 1, 3, (2, 7), [(4, 1)] * len(shape)):
        if mode == "empty":
            assert jnp.pad(jnp.asarray(values), width, mode).shape == np.pad(values, width, mode).shape
        else:
            expected = np.pad(values, width, mode)
            padded = jnp.pad(jnp.asarray(values), width, mode)
            np.testing.assert_allclose(padded, expected, rtol=1e-6, err_msg=str(width))


def test_under_transformations():
    """jit gives what eager gives, vmap what a loop gives, for functions that move elements."""
    x = jnp.arange(24.0).reshape(2, 3, 4)
    functions = [
    lambda a: jnp.roll(a, 1, 0), lambda a: jnp.flip(a), lambda a: jnp.tile(a, (2, 1)),
    lambda a: jnp.repeat(a, 2, 1), lambda a: jnp.pad(a, 1, mode="symmetric"), lambda a: jnp.stack([a, 2 * a], -1),
    lambda a: jnp.rot90(a), lambda a: jnp.insert(a, 1, 7.0, axis=0), lambda a: jnp.delete(a, 0, axis=1),
    lambda a: jnp.reshape(a, (-1, 2), order="F"), lambda a: jnp.concatenate([a, a], 1),
    lambda a: jnp.split(a, 2, 1)[1], lambda a: jnp.diagonal(a), lambda a: jnp.triu(a),
    ]  # fmt: skip
    for function in functions:
        loop = np.stack([np.asarray(function(row)) for row in x])
        np.testing.assert_array_equal(purax.vmap(function)(x), loop)
        np.testing.assert_array_equal(purax.jit(purax.vmap(function))(x), loop)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: jnp.reshape(jnp.ones((2, 3)), (4,)),
            ValueError,
            r"cannot reshape.*\(2, 3\).*size 6.*\(4,\)",
        ),
        (lambda: jnp.reshape(jnp.ones((2, 3)), (4,)), TypeError, "cannot reshape"),
        (lambda: jnp.concatenate([jnp.ones((2, 3)), jnp.ones(3)]), TypeError, r"\(2, 3\), \(3,\)"),
        (lambda: jnp.stack([jnp.ones(2), jnp.ones(3)]), ValueError, r"one shape.*\(2,\), \(3,\)"),
        (lambda: jnp.transpose(jnp.ones((2, 3)), (0, 0)), ValueError, "transpose"),
        (lambda: jnp.split(jnp.ones(3), 2), ValueError, "equal division"),
        (lambda: jnp.squeeze(jnp.ones((2, 3)), 0), ValueError, "size 2"),
        (lambda: jnp.broadcast_to(jnp.ones(3), (2, 2)), ValueError, r"\(3,\).*\(2, 2\)"),
        (lambda: jnp.roll(jnp.ones(3), 1.5), TypeError, "shift"),
        (lambda: jnp.insert(jnp.arange(3), 9, 1), IndexError, "out of bounds"),
        (lambda: jnp.flip(jnp.ones(3), 1), IndexError, "axis 1"),
        (lambda: purax.jit(lambda n: jnp.reshape(jnp.ones(4), n))(2), TypeError, "static"),
        (lambda: jnp.pad(jnp.ones(3), -1), ValueError, "negative"),
    ],
)
def test_errors_name_shapes_and_axes(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_none_counts_as_a_scalar_where_only_a_shape_is_asked_for():
    for function, expected in ((jnp.shape, ()), (jnp.ndim, 0), (jnp.size, 1)):
        with pytest.warns(
            DeprecationWarning, match=f"{function.__name__} requires ndarray or scalar arguments"
        ):
            assert function(None) == expected
