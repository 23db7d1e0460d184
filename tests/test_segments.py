"""Segment reductions, `ravel_pytree` and `purax.dtypes`, against jax."""

from __future__ import annotations

import math

import jax
import jax.flatten_util
import jax.numpy as jax_numpy
import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax.flatten_util import ravel_pytree

NAMES = ("segment_sum", "segment_prod", "segment_min", "segment_max")
IDS = np.array([0, 2, 0, -1, 2, 7, 1, 2], np.int32)
DTYPES = ("bool", "int8", "uint8", "int32", "float32", "bfloat16", "complex64")
generator = np.random.default_rng(0)


def data(dtype, shape=(8, 2)):
    x = generator.integers(0, 2 if dtype == "bool" else 5, shape)
    return (x + 1j * generator.integers(0, 5, shape) if dtype == "complex64" else x).astype(dtype)


def test_against_jax():
    arrays = {dtype: data(dtype) for dtype in DTYPES}
    cases = [
        (name, dtype, options)
        for name in NAMES
        for dtype in DTYPES
        if dtype != "bool" or name in ("segment_min", "segment_max")
        for options in ({}, {"bucket_size": 3}, {"mode": "clip"})
        if not options or dtype in ("float32", "int32")
    ]
    wanted = jax.jit(
        lambda arrays: [
            getattr(jax.ops, name)(arrays[dtype], IDS, 4, **options) for name, dtype, options in cases
        ]
    )(arrays)
    compiled = purax.jit(
        lambda arrays: [
            getattr(purax.ops, name)(arrays[dtype], IDS, 4, **options) for name, dtype, options in cases
        ]
    )(arrays)
    for (name, dtype, options), expected, inside in zip(cases, wanted, compiled, strict=True):
        for given in (getattr(purax.ops, name)(arrays[dtype], IDS, 4, **options), inside):
            assert (given.dtype, given.shape) == (expected.dtype, expected.shape), (name, dtype, options)
            np.testing.assert_array_equal(
                np.asarray(given).astype(complex),
                np.asarray(expected).astype(complex),
                f"{name} {dtype} {options}",
            )


def test_number_of_segments():
    x = jnp.arange(8.0)
    for name in NAMES:
        assert getattr(purax.ops, name)(x, IDS).shape == (8,)
    assert purax.ops.segment_sum(x, np.full(8, -1)).shape == (0,)
    assert purax.ops.segment_sum(x[:0], IDS[:0], 3, bucket_size=2).shape == (3,)
    with pytest.raises(purax.errors.ConcretizationTypeError, match="give it as num_segments"):
        purax.jit(purax.ops.segment_sum)(x, IDS)


@pytest.mark.parametrize(
    "shapes", [((2,), (3, 2)), ((), (3, 2)), ((2, 4), (3, 2)), ((1, 3, 2), (3, 2)), ((1, 2), (3,)), ((), ())]
)
def test_entries_are_broadcast_to_the_numbers(shapes):
    """Numbers of several axes take entries of the shape of the data without its first axis, as in jax."""
    shape, ids_shape = shapes
    x = np.arange(1.0, 1 + math.prod(shape), dtype=np.float32).reshape(shape)
    ids = np.arange(math.prod(ids_shape)).reshape(ids_shape) % 2
    for name in NAMES:
        wanted = getattr(jax.ops, name)(x, ids, 2)
        np.testing.assert_array_equal(getattr(purax.ops, name)(x, ids, 2), wanted)


def test_transformations():
    x = jnp.asarray(generator.permutation(np.linspace(0.5, 2.0, 16)).reshape(8, 2), jnp.float32)  # far apart
    for name in NAMES:
        function = lambda x: getattr(purax.ops, name)(x, IDS % 3, 3)  # noqa: B023, E731
        purax.test_util.check_grads(function, (x,), order=2, atol=3e-2, rtol=3e-2)
    ids = jnp.stack([IDS % 3, IDS % 2])
    batch = purax.vmap(lambda i: purax.ops.segment_max(x, i, 3))(ids)
    np.testing.assert_array_equal(batch[1], purax.ops.segment_max(x, IDS % 2, 3))
    # A tie shares the derivative.
    tie = purax.grad(lambda x: jnp.sum(purax.ops.segment_max(x, jnp.zeros(2, int), 1)))(jnp.ones(2))
    np.testing.assert_array_equal(tie, [0.5, 0.5])


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x: purax.ops.segment_sum(x, x), TypeError, "must be integers"),
        (lambda x: purax.ops.segment_sum(x, IDS[:3]), ValueError, "one number for each entry"),
        (lambda x: purax.ops.segment_sum(x, IDS, -1), ValueError, "must not be negative"),
        (
            lambda x: purax.ops.segment_sum(x, IDS, 3, bucket_size=0),
            ValueError,
            "bucket_size must be positive",
        ),
        (lambda x: purax.ops.segment_sum(x[:0], IDS[:0]), ValueError, "give it as num_segments"),
        (lambda x: purax.ops.segment_sum(list(x), IDS), TypeError, "segment_sum"),
    ],
)
def test_wrong_arguments(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call(jnp.arange(8.0))
    assert "test_segments.py" in str(caught.value)


TREES = [
    {"a": 1, "b": [2.0, np.int8([[3]])]},
    [],
    {"a": np.arange(2), "b": np.ones(1, bool)},
    [np.ones(1, np.complex64), 1.0],
    (np.arange(3, dtype=np.uint8), np.float32(2)),
    np.ones((2, 3), "bfloat16") if hasattr(np, "bfloat16") else jnp.ones((2, 3), "bfloat16"),
]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_ravel_pytree(tree):
    tree = purax.tree.map(lambda x: np.asarray(x) if isinstance(x, purax.Array) else x, tree)
    vector, unravel = ravel_pytree(tree)
    expected, jax_unravel = jax.flatten_util.ravel_pytree(tree)
    assert (vector.dtype, vector.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(np.asarray(vector), np.asarray(expected))
    back, wanted = unravel(2 * vector), jax_unravel(2 * expected)
    for x, y in zip(purax.tree.leaves(back), jax.tree.leaves(wanted), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    assert ravel_pytree(tree)[1] == unravel and hash(ravel_pytree(tree)[1]) == hash(unravel)
    with pytest.raises(ValueError, match="takes a vector of shape"):
        unravel(jnp.concatenate([vector, vector, jnp.zeros(1, vector.dtype)]))
    with pytest.raises(TypeError, match="takes a vector of"):
        unravel(jnp.zeros(vector.shape, jnp.int16))


def test_ravel_pytree_is_differentiable():
    parameters = {"w": jnp.arange(4.0).reshape(2, 2), "b": jnp.ones(2)}
    vector, unravel = ravel_pytree(parameters)
    gradient = purax.jit(purax.grad(lambda v: jnp.sum(unravel(v)["w"] ** 2)))(vector)
    np.testing.assert_array_equal(gradient, [0, 0, 0, 2, 4, 6])


def test_dtypes_agree_with_jax():
    ours, theirs = purax.dtypes, jax.dtypes
    assert ours.bfloat16 is theirs.bfloat16 and ours.finfo("bfloat16").max == theirs.finfo("bfloat16").max
    for name in ("float32", "int8", "bool", "complex64", "bfloat16", "float8_e4m3fn", "int4"):
        assert ours.canonicalize_dtype(name) == theirs.canonicalize_dtype(name)
        assert ours.itemsize_bits(name) == theirs.itemsize_bits(name)
        for kind in (np.integer, np.floating, np.inexact, np.complexfloating, np.bool_, np.generic):
            dtype = ours.canonicalize_dtype(name)
            assert ours.issubdtype(dtype, kind) == theirs.issubdtype(dtype, kind), (name, kind)
    for pair in (("int8", "uint8"), ("int32", "float16"), ("bfloat16", "float16"), ("bool", "complex64")):
        assert ours.result_type(*map(np.dtype, pair[:0]), *pair) == theirs.result_type(*pair)
    for value in (True, 1, 1.5, 1j, np.float32(1), jax_numpy.ones(1)):
        mine = jnp.ones(1) if isinstance(value, jax.Array) else value
        assert ours.scalar_type_of(mine) is theirs.scalar_type_of(value)
    assert ours.issubdtype(ours.prng_key, ours.extended) and theirs.issubdtype(
        theirs.prng_key, theirs.extended
    )
