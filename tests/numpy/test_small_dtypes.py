"""Integers of 2 and 4 bits and floats of 4 and 8: types as jax's, and compiled programs agree with NumPy's values.

jax 0.10.2 refuses many functions of these, and aborts the process for some; purax computes them all.
"""

from __future__ import annotations

import jax
import jax.numpy as jax_numpy
import ml_dtypes
import numpy as np
import pytest

import purax
import purax.numpy as jnp

pytestmark = pytest.mark.sampled(2)

INTEGERS = ["int2", "int4", "uint2", "uint4"]
FLOATS = ["float4_e2m1fn", "float8_e4m3fn", "float8_e5m2"]
MORE_FLOATS = ["float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz"]

MOVING = {  # these change no element
    "concatenate": lambda x: jnp.concatenate([x, x[:5], x]),
    "stack": lambda x: jnp.stack([x, x], 1),
    "pad": lambda x: jnp.pad(x, (2, 3), constant_values=1),
    "roll": lambda x: jnp.roll(x, 7),
    "take": lambda x: x[jnp.array([[36, 0], [-1, 5]])],
    "slice": lambda x: x[30:2:-3],
    "set": lambda x: x.at[3:11].set(1),
    "tile": lambda x: jnp.tile(x, (3, 1)),
    "where": lambda x: jnp.where(x > 0, x, jnp.flip(x)),
    "repeat": lambda x: jnp.repeat(x, 3),
    "sort": jnp.sort,
    "argsort": jnp.argsort,
    "transpose": lambda x: x[:36].reshape(4, 9).T,
    "max": jnp.max,
    "min": lambda x: jnp.min(x[:36].reshape(9, 4), axis=0),
    "argmax": jnp.argmax,
    "clip": lambda x: jnp.clip(x, 0, 1),
    "maximum": lambda x: jnp.maximum(x, x[::-1]),
    "equal": lambda x: x == x[::-1],
    "less": lambda x: x < x[::-1],
    "isfinite": jnp.isfinite,
    "to float32": lambda x: x.astype("float32"),
    "to int8": lambda x: x.astype("int8"),
    "any": jnp.any,
}
COMPUTING = {
    "negative": lambda x: -x,
    "add": lambda x: x + x[::-1],
    "multiply": lambda x: x * x[::-1],
    "square": jnp.square,
    "abs": jnp.abs,
    "sign": jnp.sign,
}
OF_INTEGERS = {
    "power": lambda x: x ** (x[::-1] & 1),
    "floor_divide": lambda x: x // jnp.where(x[::-1] == 0, jnp.ones_like(x), x[::-1]),
    "and": lambda x: x & x[::-1],
    "or": lambda x: x | x[::-1],
    "not": lambda x: ~x,
    "sum": jnp.sum,
    "prod": lambda x: jnp.prod(x[:6]),
    "cumsum": jnp.cumsum,
    "mean": jnp.mean,
    "at add": lambda x: x.at[jnp.array([1, 1, 2])].add(1),
    "bit count": jnp.bitwise_count,
}


def example(dtype: str) -> np.ndarray:
    own = np.dtype(getattr(ml_dtypes, dtype))
    if dtype in INTEGERS:
        limits = ml_dtypes.iinfo(own)
        return np.random.default_rng(0).integers(int(limits.min), int(limits.max) + 1, 37).astype(own)
    return np.random.default_rng(0).choice([-1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2], 37).astype(own)


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_compiled_programs_agree_with_numpy(dtype):
    x = jnp.asarray(example(dtype))
    functions = MOVING | COMPUTING | (OF_INTEGERS if dtype in INTEGERS else {})
    compiled = purax.jit(lambda x: {name: f(x) for name, f in functions.items()})(x)
    for name, function in functions.items():
        eager = function(x)
        assert compiled[name].dtype == eager.dtype, name
        a, b = (np.asarray(v).astype(np.float64) for v in (compiled[name], eager))
        np.testing.assert_allclose(a, b, rtol=1e-6, err_msg=name)
        if name in MOVING and name not in (
            "to float32",
            "argsort",
            "unique",
            "searchsorted",
            "nonzero",
            "pad",
        ):
            wide = jnp.asarray(example(dtype).astype(np.float32))
            np.testing.assert_array_equal(a, np.asarray(function(wide)).astype(np.float64), err_msg=name)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_around(dtype):
    """Sums and products are those of wide integers, cut to the bits that the dtype has."""
    x = example(dtype)
    y = x[::-1].copy()
    wide, other = x.astype(np.int64), y.astype(np.int64)
    for function, expected in (
        (jnp.add, wide + other),
        (jnp.multiply, wide * other),
        (jnp.subtract, wide - other),
    ):
        result = function(jnp.asarray(x), jnp.asarray(y))
        assert result.dtype == x.dtype
        np.testing.assert_array_equal(
            np.asarray(result).astype(np.int64), expected.astype(x.dtype).astype(np.int64)
        )


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS + MORE_FLOATS)
def test_types_are_jaxs(dtype):
    """Where jax computes something of one small array and a Python number, the result has its dtype."""
    ours, theirs = jnp.asarray(example(dtype)), jax_numpy.asarray(example(dtype))
    for name in ("add", "multiply", "subtract", "maximum", "equal"):
        for number in (1, 1.0, True):
            try:
                expected = jax.eval_shape(getattr(jax_numpy, name), theirs, number)
            except (TypeError, ValueError):
                continue
            result = getattr(jnp, name)(ours, number)
            assert (result.dtype, result.weak_type) == (expected.dtype, expected.weak_type), (name, number)


@pytest.mark.parametrize("dtype", ["int1", "uint1", "float6_e2m3fn", "float6_e3m2fn"])
def test_dtypes_that_the_compiler_does_not_know_are_named(dtype):
    if not hasattr(ml_dtypes, dtype):
        pytest.skip(f"this release of ml_dtypes has no {dtype}")
    x = jnp.asarray([0, 1], dtype)
    assert x.astype("float32").dtype == np.float32 and jnp.flip(x).dtype == x.dtype
    with pytest.raises(TypeError, match=rf"does not know the dtype {dtype}.*astype"):
        purax.jit(lambda x: x[::-1])(x)
