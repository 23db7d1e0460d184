"""Ragged arrays against the same computation on each example."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import nn, ragged

LENGTHS = [3, 1, 5, 2]


def examples(*features, lengths=LENGTHS, seed=0):
    generator = np.random.default_rng(seed)
    return [generator.standard_normal((n, *features)).astype(np.float32) for n in lengths]


def each(got, expected):
    listed = got.to_list() if isinstance(got, ragged.RaggedArray) else list(got)
    assert len(listed) == len(expected)
    for a, b in zip(listed, expected, strict=True):
        assert a.shape == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


@pytest.fixture(params=[None, 16])
def pair(request):
    """Examples, with and without room for more rows."""
    listed = examples(4)
    return listed, ragged.from_list(listed, rows=request.param)


def test_conversions(pair):
    listed, x = pair
    each(x, listed)
    assert x.lengths.tolist() == LENGTHS
    padded = x.to_padded(7.0)
    assert padded.shape == (4, 5, 4)
    for row, example in zip(padded, listed, strict=True):
        np.testing.assert_array_equal(row[: len(example)], example)
        assert (row[len(example) :] == 7).all()
    each(ragged.from_padded(padded, x.lengths), listed)
    each(px.jit(lambda x: ragged.from_padded(x.to_padded(length=6), x.lengths, rows=12))(x), listed)


def test_operators_and_products(pair):
    listed, x = pair
    w = examples(3, lengths=[4])[0]
    each((x * 2 - x / 3 + 1) @ w, [(e * 2 - e / 3 + 1) @ w for e in listed])
    each(2 - abs(-x), [2 - abs(e) for e in listed])
    each(x.map(lambda r, m: jnp.where(m, r, 0), x > 0), [np.where(e > 0, e, 0) for e in listed])
    each(x - x.of_examples(x.mean()), [e - e.mean(0) for e in listed])


def test_reductions(pair):
    listed, x = pair
    for name in ("sum", "mean", "max", "min", "prod"):
        each(getattr(x, name)(), [getattr(e, name)(0) for e in listed])
        each(px.jit(lambda x, name=name: getattr(x, name)())(x), [getattr(e, name)(0) for e in listed])
    each(ragged.softmax(x), [nn.softmax(e, axis=0) for e in listed])
    each(ragged.logsumexp(x), [nn.logsumexp(e, axis=0) for e in listed])


def test_empty_examples():
    x = ragged.from_list([np.ones((2, 3), np.float32), np.zeros((0, 3), np.float32)], rows=4)
    np.testing.assert_array_equal(x.sum(), [[2, 2, 2], [0, 0, 0]])
    assert np.isneginf(ragged.logsumexp(x)[1]).all()
    assert np.isnan(x.mean()[1]).all()
    each(ragged.softmax(x), [np.full((2, 3), 0.5), np.zeros((0, 3))])


def plain_attention(x, is_causal):
    q = np.moveaxis(x, 1, 0)
    weights = q @ np.swapaxes(q, 1, 2) / np.sqrt(q.shape[-1])
    if is_causal:
        weights = np.where(np.tril(np.ones(weights.shape[1:], bool)), weights, -np.inf)
    return np.moveaxis(np.asarray(nn.softmax(weights)) @ q, 0, 1)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("rows", [None, 16])
def test_attention(is_causal, rows):
    listed = examples(2, 4)
    x = ragged.from_list(listed, rows=rows)
    each(ragged.attention(x, x, x, is_causal=is_causal), [plain_attention(e, is_causal) for e in listed])

    def loss(x):
        return (ragged.attention(x, x, x, is_causal=is_causal) * 2).sum().sum()

    assert np.isfinite(px.grad(lambda v: loss(ragged.RaggedArray(v, x.splits)))(x.values)).all()


def model(row, w):
    """Of one example: it sees its length, and divides by what is zero in the padding."""
    hidden = jnp.log(jnp.abs(row @ w) / jnp.abs(row).sum(axis=1, keepdims=True))
    weights = nn.softmax(hidden[:, 0])
    ordered = jnp.sort(hidden, axis=0)
    return ordered, weights @ hidden / row.shape[0], jnp.cumsum(hidden[::-1], axis=0)


def test_vmap_gives_what_the_function_gives_of_each_example(pair):
    listed, x = pair
    w = examples(3, lengths=[4], seed=1)[0]
    expected = [model(jnp.asarray(e), w) for e in listed]
    for call in (ragged.vmap(model), px.jit(ragged.vmap(model)), px.jit(ragged.vmap(model, length=6))):
        ordered, pooled, sums = call(x, w)
        each(ordered, [e[0] for e in expected])
        each(pooled, [e[1] for e in expected])
        each(sums, [e[2] for e in expected])


def test_gradients_of_vmap_see_no_padding(pair):
    listed, x = pair
    w = examples(3, lengths=[4], seed=1)[0]

    def loss(values, w):
        ordered, pooled, sums = ragged.vmap(model, length=8)(ragged.RaggedArray(values, x.splits), w)
        return ordered.sum().sum() + pooled.sum() + (sums * 0.5).sum().sum()

    def plain(listed, w):
        parts = [model(e, w) for e in listed]
        return sum(a.sum() + b.sum() + 0.5 * c.sum() for a, b, c in parts)

    expected = px.grad(plain, argnums=(0, 1))([jnp.asarray(e) for e in listed], w)
    for gradient in (px.grad(loss, argnums=(0, 1)), px.jit(px.grad(loss, argnums=(0, 1))),
                     px.grad(px.jit(loss), argnums=(0, 1))):  # fmt: skip
        of_values, of_w = gradient(x.values, w)
        each(ragged.RaggedArray(of_values, x.splits), expected[0])
        np.testing.assert_allclose(of_w, expected[1], rtol=2e-4, atol=1e-4)
        assert not np.asarray(of_values)[sum(LENGTHS) :].any()
    tangent = px.jvp(lambda w: loss(x.values, w), (w,), (w,))[1]
    np.testing.assert_allclose(tangent, (expected[1] * w).sum(), rtol=2e-4, atol=1e-3)


def test_under_vmap():
    listed = examples(4)
    x = ragged.from_list(listed)
    values = jnp.stack([x.values, x.values * 2])
    got = px.vmap(lambda v: ragged.vmap(lambda row: row.sum() / row.shape[0])(ragged.RaggedArray(v, x.splits)))(values)
    expected = np.array([e.sum() / len(e) for e in listed])
    np.testing.assert_allclose(got, [expected, 2 * expected], rtol=1e-5)
    got = px.vmap(lambda v: ragged.RaggedArray(v, x.splits).max())(values)
    np.testing.assert_allclose(got[1], [2 * e.max(0) for e in listed], rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x, y: x + y, ValueError, r"other lengths: \[3, 1, 5, 2\] and \[2, 2, 5, 2\]"),
        (lambda x, y: x + np.ones((11, 4)), ValueError, "axis for the rows"),
        (lambda x, y: px.jit(lambda x, y: x + y)(x, x), ValueError, "with_splits_of"),
        (lambda x, y: px.jit(lambda x: x.to_padded())(x), ValueError, "needs `length`"),
        (lambda x, y: px.jit(lambda x: x.to_list())(x), ValueError, "inside of `jit`"),
        (lambda x, y: x.to_padded(length=2), ValueError, "less than that of an example, 5"),
        (lambda x, y: x.of_examples(np.ones(3)), ValueError, "4 examples"),
        (lambda x, y: x.map(jnp.sum), ValueError, "11 rows became"),
        (lambda x, y: ragged.vmap(lambda r: r)(np.ones(3)), TypeError, "none of the arguments"),
        (lambda x, y: ragged.vmap(lambda r: r[1:])(x), ValueError, "as long as the example"),
        (lambda x, y: ragged.vmap(lambda r: r if r.shape[0] == 3 else -r)(x), ValueError, "depends on the length"),
        (lambda x, y: ragged.vmap(lambda r: jnp.fft.fft(r, axis=0))(x), NotImplementedError, "`fft`.*padded"),
        (lambda x, y: ragged.from_list([]), ValueError, "needs an example"),
        (lambda x, y: ragged.from_list([np.ones((2, 3)), np.ones((2, 4))]), ValueError, "first axis alone"),
        (lambda x, y: ragged.from_list([np.ones(3)], rows=2), ValueError, "3 rows, and rows is 2"),
    ],
)
def test_errors(call, error, message):
    x, y = ragged.from_list(examples(4)), ragged.from_list(examples(4, lengths=[2, 2, 5, 2]))
    with pytest.raises(error, match=message):
        call(x, y)


def test_trees():
    x = ragged.from_list(examples(4))
    doubled = px.tree.map(lambda leaf: leaf * 2 if leaf.ndim > 1 else leaf, x)
    each(doubled, [2 * e for e in examples(4)])
    assert "f32[11,4], 4 examples" in repr(x)
