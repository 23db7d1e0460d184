"""Errors name the function, the argument and the way out."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax import random

KEY = random.PRNGKey(0)
WRONG = {
    # keys
    "key shape": (lambda: random.split(np.zeros(3, np.uint32)), TypeError, r"split: key must be .*u32\[3\]"),
    "key dtype": (
        lambda: random.normal(np.zeros(2, np.int32)),
        TypeError,
        r"normal: key must be .*i32\[2\].*random.key",
    ),
    "key number": (lambda: random.uniform(0), TypeError, r"uniform: key must be .*0 of type int"),
    "key none": (lambda: random.gamma(None, 1.0), TypeError, "gamma: key must be .*NoneType"),
    "keys": (lambda: random.bits(random.split(KEY)), ValueError, r"bits takes a single key.*\(2, 2\).*vmap"),
    "typed keys": (
        lambda: random.split(random.split(random.key(0))),
        ValueError,
        r"split takes a single key.*\(2,\)",
    ),
    "seed": (
        lambda: random.PRNGKey(1.5),
        TypeError,
        "PRNGKey: seed must be an integer, got 1.5 of type float",
    ),
    "seed array": (
        lambda: random.key(np.arange(3)),
        TypeError,
        r"key: seed must be a scalar, .*i\d\d\[3\].*vmap",
    ),
    "seed key": (lambda: random.key(random.key(0)), TypeError, "key: seed must be an integer, got a key"),
    "seed size": (lambda: random.PRNGKey(2**64), OverflowError, "PRNGKey: seed must fit into 64 bits"),
    "impl": (
        lambda: random.key(0, impl="foo"),
        ValueError,
        "impl must be one of 'threefry2x32', 'rbg', 'unsafe_rbg'; got 'foo'",
    ),
    "impl type": (
        lambda: random.key(0, impl=3),
        TypeError,
        "impl must be the name of a generator.*3 of type int",
    ),
    "key dtype argument": (
        lambda: random.key(0, dtype=np.uint32),
        TypeError,
        "dtype must be a dtype of keys",
    ),
    "two generators": (
        lambda: random.key(0, impl="rbg", dtype=random.key_dtype()),
        ValueError,
        "impl or dtype, not both",
    ),
    "num": (lambda: random.split(KEY, 2.0), TypeError, "split: num must be an integer or a tuple"),
    "negative num": (lambda: random.split(KEY, -1), ValueError, "split: num must not be negative, got -1"),
    "data": (lambda: random.fold_in(KEY, 1.5), TypeError, r"fold_in: data must be an integer, got f32\[\]"),
    "data array": (
        lambda: random.fold_in(KEY, np.arange(3)),
        TypeError,
        r"fold_in: data must be a scalar.*\(3,\).*vmap",
    ),
    "negative data": (
        lambda: random.fold_in(KEY, -1),
        OverflowError,
        "fold_in: data must fit into uint32, got -1",
    ),
    "key words": (
        lambda: random.wrap_key_data(np.zeros(3, np.uint32)),
        TypeError,
        r"wrap_key_data: .*\(\.\.\., 2\).*u32\[3\]",
    ),
    "rbg words": (
        lambda: random.wrap_key_data(KEY, impl="rbg"),
        TypeError,
        r"\(\.\.\., 4\) for rbg; got u32\[2\]",
    ),
    # shapes
    "shape": (lambda: random.normal(KEY, (2.0,)), TypeError, r"normal: shape must be .*\(2.0,\)"),
    "shape none": (lambda: random.uniform(KEY, None), TypeError, "uniform: shape must be .*None"),
    "negative shape": (
        lambda: random.uniform(KEY, (2, -1)),
        ValueError,
        r"uniform: shape must not be negative, got \(2, -1\)",
    ),
    "bounds shape": (
        lambda: random.uniform(KEY, (2,), minval=np.zeros(3)),
        ValueError,
        r"uniform: minval of shape \(3,\).*shape=\(2,\)",
    ),
    "parameters": (
        lambda: random.beta(KEY, np.ones(2), np.ones(3)),
        ValueError,
        r"beta: a of shape \(2,\), b of shape \(3,\) cannot be broadcast to each other",
    ),
    "p shape": (
        lambda: random.bernoulli(KEY, np.ones(3, np.float32), (2,)),
        ValueError,
        r"bernoulli: p of shape \(3,\)",
    ),
    # dtypes
    "bits dtype": (
        lambda: random.bits(KEY, (), np.int32),
        ValueError,
        "dtype argument to `bits` must be an unsigned int dtype, got int32",
    ),
    "uniform dtype": (
        lambda: random.uniform(KEY, (), np.int32),
        ValueError,
        "dtype argument to `uniform` must be a float dtype, got int32",
    ),
    "complex uniform": (
        lambda: random.uniform(KEY, (), complex),
        ValueError,
        "must be a float dtype, got complex64",
    ),
    "normal dtype": (
        lambda: random.normal(KEY, (), bool),
        ValueError,
        "dtype argument to `normal` must be a float or complex dtype, got bool",
    ),
    "randint dtype": (
        lambda: random.randint(KEY, (), 0, 3, float),
        TypeError,
        "dtype argument to `randint` must be an integer dtype, got float32",
    ),
    "poisson dtype": (
        lambda: random.poisson(KEY, 1.0, (), float),
        TypeError,
        "dtype argument to `poisson` must be an integer dtype",
    ),
    "small float": (
        lambda: random.uniform(KEY, (), "float4_e2m1fn"),
        ValueError,
        "at least 8 bits, got float4_e2m1fn",
    ),
    # parameters
    "complex parameter": (
        lambda: random.gamma(KEY, 1j),
        TypeError,
        "gamma: a must be .*got 1j of type complex",
    ),
    "complex array": (
        lambda: random.gamma(KEY, jnp.ones(2, complex)),
        TypeError,
        r"gamma: a must be real, got c64\[2\]",
    ),
    "text": (
        lambda: random.uniform(KEY, (), minval="a"),
        TypeError,
        "uniform: minval must be an array or a number, got 'a'",
    ),
    "bernoulli p": (
        lambda: random.bernoulli(KEY, 1),
        TypeError,
        "bernoulli probability `p` must have a floating dtype, got int32",
    ),
    "bernoulli mode": (
        lambda: random.bernoulli(KEY, 0.5, mode="x"),
        ValueError,
        "bernoulli: mode must be 'low' or 'high', got 'x'",
    ),
    "gumbel mode": (
        lambda: random.gumbel(KEY, mode="x"),
        ValueError,
        "gumbel: mode must be None, 'low' or 'high'",
    ),
    "maxval": (
        lambda: random.randint(KEY, (), 0, "a"),
        TypeError,
        "randint: maxval must be an integer or an array, got 'a'",
    ),
    "bool maxval": (
        lambda: random.randint(KEY, (), 0, jnp.ones(2, bool)),
        TypeError,
        r"randint: maxval must hold integers, got bool\[2\]",
    ),
    "permutation": (
        lambda: random.permutation(KEY, 5.0),
        TypeError,
        "permutation: x must be an integer or an array with an axis, got 5.0",
    ),
    "negative permutation": (
        lambda: random.permutation(KEY, -1),
        ValueError,
        "permutation: x must not be negative, got -1",
    ),
    "permutation axis": (
        lambda: random.permutation(KEY, np.ones((2, 3)), axis=2),
        ValueError,
        "permutation: axis 2 is out of bounds",
    ),
    "choice of none": (lambda: random.choice(KEY, 0), ValueError, "choice: a must be greater than 0"),
    "choice of too many": (
        lambda: random.choice(KEY, 3, (4,), replace=False),
        ValueError,
        r"choice: cannot take a larger sample \(4\) than there are things \(3\)",
    ),
    "choice p": (
        lambda: random.choice(KEY, 3, p=np.ones(4)),
        ValueError,
        r"choice: p must be .* each of 3 things, got shape \(4,\)",
    ),
    "categorical scalar": (
        lambda: random.categorical(KEY, 1.0),
        ValueError,
        "categorical: logits must have an axis",
    ),
    "categorical axis": (
        lambda: random.categorical(KEY, np.zeros((2, 3)), axis=2),
        ValueError,
        "categorical: axis 2 is out of bounds",
    ),
    "categorical shape": (
        lambda: random.categorical(KEY, np.zeros((2, 3)), shape=(4,)),
        ValueError,
        r"categorical: shape \(4,\) must end .*\(2,\)",
    ),
    "categorical count": (
        lambda: random.categorical(KEY, np.zeros(3), shape=(4,), replace=False),
        ValueError,
        "categorical: cannot draw 4 different ones of 3",
    ),
    "dirichlet": (lambda: random.dirichlet(KEY, 1.0), ValueError, "dirichlet: alpha must have an axis"),
    "multinomial": (lambda: random.multinomial(KEY, 3, 1.0), ValueError, "multinomial: p must have an axis"),
    "ball": (lambda: random.ball(KEY, 2.5), TypeError, "ball: d must be an integer, got 2.5"),
    "generalized_normal": (
        lambda: random.generalized_normal(KEY, np.ones(2)),
        ValueError,
        r"generalized_normal: p must be a scalar, got shape \(2,\)",
    ),
    "covariance": (
        lambda: random.multivariate_normal(KEY, np.zeros(3), np.eye(2)),
        ValueError,
        r"cov shape \(\.\.\., n, n\); got \(3,\) and \(2, 2\)",
    ),
    "method": (
        lambda: random.multivariate_normal(KEY, np.zeros(2), np.eye(2), method="x"),
        ValueError,
        "method must be 'cholesky', 'eigh' or 'svd', got 'x'",
    ),
    "orthogonal": (
        lambda: random.orthogonal(KEY, 2.5),
        TypeError,
        "orthogonal: n and m must be integers, got 2.5",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name):
    call, kind, message = WRONG[name]
    with pytest.raises(kind, match=message) as caught:
        call()
    assert "test_errors.py" in str(caught.value)  # the user's line


HUGE = {
    "bits": lambda key, shape: random.bits(key, shape),
    "uniform": lambda key, shape: random.uniform(key, shape),
    "normal": lambda key, shape: random.normal(key, shape),
    "gamma": lambda key, shape: random.gamma(key, 2.0, shape),
    "bernoulli": lambda key, shape: random.bernoulli(key, 0.3, shape),
    "randint": lambda key, shape: random.randint(key, shape, 0, 5),
    "permutation": lambda key, shape: random.permutation(key, math.prod(shape)),
    "split": lambda key, shape: random.split(key, shape),
}


@pytest.mark.parametrize("name", HUGE)
def test_draws_larger_than_memory_fail_at_once(name):
    started = time.perf_counter()
    with pytest.raises(
        MemoryError, match=rf"Out of memory: \w*{name} needs \d+ bytes .*shape \(.*parts"
    ) as caught:
        HUGE[name](random.PRNGKey(0), (2**25, 2**25))
    assert "test_errors.py" in str(caught.value)
    assert time.perf_counter() - started < 20  # nothing of this size is begun


def test_traced_sizes_are_refused():
    with pytest.raises(TypeError, match="static"):
        purax.jit(lambda n: random.permutation(KEY, n))(3)


def test_keys_of_words_can_be_refused():
    with purax.config.override(legacy_prng_key="error"):
        random.normal(random.key(0))
        with pytest.raises(ValueError, match="normal got a key of words.*purax.random.key"):
            random.normal(KEY)
    with (
        purax.config.override(legacy_prng_key="warn"),
        pytest.warns(UserWarning, match="split got a key of words"),
    ):
        random.split(KEY)


def test_names():
    """All public names of jax.random, of version 0.10.2, but the primitive `random_gamma_p`."""
    import jax.random

    if jax.__version__ != "0.10.2":
        pytest.skip(f"the names are those of jax 0.10.2, this is {jax.__version__}")
    assert {name for name in dir(jax.random) if not name.startswith("_")} - {"random_gamma_p"} <= set(
        dir(random)
    )
