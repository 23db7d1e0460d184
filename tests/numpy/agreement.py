"""Differential testing of `purax.numpy`: results have the types of jax's and the values of NumPy's.

jax is only asked for the shapes, dtypes and weak types (which needs no compilation); NumPy computes the values, in
double precision where the inputs are floating point numbers. Where NumPy has another meaning than jax, jax computes.
"""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jax_numpy
import ml_dtypes
import numpy as np

import purax
import purax.numpy as jnp
from purax.xla.array import from_numpy

TOLERANCES = {
    "float16": 2e-3,
    "bfloat16": 2e-2,
    "float32": 3e-6,
    "complex64": 3e-6,
    "float64": 1e-12,
    "complex128": 1e-12,
}


def is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray)


def canonical(x: np.ndarray) -> np.ndarray:
    """With the dtype that both libraries give it."""
    narrow = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
    return x.astype(narrow.get(x.dtype.name, x.dtype))


def tree_map(function, x: Any) -> Any:
    if isinstance(x, (list, tuple)):
        parts = [tree_map(function, y) for y in x]
        return tuple(parts) if isinstance(x, tuple) else parts
    return function(x)


def ours(x: Any) -> Any:
    return from_numpy(np.array(x)) if is_array(x) else x


def wide(x: Any) -> Any:
    """In double precision, for NumPy."""
    if not is_array(x):
        return x
    if x.dtype.name in ("float32", "float16", "bfloat16") or x.dtype.name.startswith("float8"):
        return x.astype(np.float64)
    return x.astype(np.complex128) if x.dtype == np.complex64 else x


def flat(x: Any) -> list:
    if isinstance(x, (list, tuple)):
        return [leaf for y in x for leaf in flat(y)]
    return [x]


def call_numpy(name: str, args: Any, kwargs: dict) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = np
        for part in name.split("."):
            function = getattr(function, part)
        return function(*args, **kwargs)


def call_jax(name: str, args: Any, kwargs: dict) -> Any:
    function = jax_numpy
    for part in name.split("."):
        function = getattr(function, part)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*tree_map(lambda x: jax_numpy.asarray(x) if is_array(x) else x, args), **kwargs)


def find(name: str) -> Any:
    function = jnp
    for part in name.split("."):
        function = getattr(function, part)
    return function


def jax_types(name: str, args: Any, kwargs: dict) -> list[tuple]:
    """Shapes, dtypes and weak types of jax's results, from tracing alone."""
    positions = [i for i, x in enumerate(args) if any(map(is_array, flat(x)))]

    def function(arrays, keywords):
        full = list(args)
        for i, x in zip(positions, arrays, strict=True):
            full[i] = x
        return call_jax_traced(name, full, {**kwargs, **keywords})

    keywords = {k: v for k, v in kwargs.items() if any(map(is_array, flat(v)))}
    result = jax.eval_shape(function, [args[i] for i in positions], keywords)
    return [(leaf.shape, np.dtype(leaf.dtype), leaf.weak_type) for leaf in flat(result)]


def call_jax_traced(name: str, args: Any, kwargs: dict) -> Any:
    function = jax_numpy
    for part in name.split("."):
        function = getattr(function, part)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


def assert_close(
    got: Any, expected: Any, what: str, rtol: float | None = None, atol: float | None = None
) -> None:
    got = np.asarray(got)
    tolerance = TOLERANCES.get(got.dtype.name, 0) if rtol is None else rtol
    if got.dtype.name in ("bfloat16", "float16") or got.dtype.name.startswith("float8"):
        limit = float(ml_dtypes.finfo(got.dtype).max)
        expected = np.asarray(expected, np.float64)
        expected = np.where(np.abs(expected) > limit, np.copysign(np.inf, expected), expected)
        got = got.astype(np.float64)
    expected = np.asarray(expected)
    if got.dtype.kind in "iu" and expected.dtype.kind in "iu":
        expected = expected.astype(got.dtype)  # wraps around as our result does
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    if tolerance == 0:
        np.testing.assert_array_equal(got, expected, err_msg=what)
        return
    finite = np.abs(expected[np.isfinite(expected)])
    scale = float(finite.max()) if finite.size else 0.0
    atol = tolerance * scale if atol is None else atol
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=atol, err_msg=what)


def agree(
    name: str,
    *args: Any,
    oracle: str = "numpy",
    expected: Any = None,
    jit: bool = False,
    types: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    numpy_name: str | None = None,
    numpy_kwargs: dict | None = None,
    **kwargs: Any,
) -> None:
    """Checks one call.

    Args:
        name: of the function.
        args, kwargs: NumPy arrays and parameters; a list or a tuple of arrays is taken as it is.
        oracle: who computes the values: "numpy" or "jax", which is slow.
        expected: the values, if the test computes them.
        jit: whether to run it under `jit` as well.
        types: whether to compare the types with jax's.
        numpy_name, numpy_kwargs: if NumPy spells it otherwise.
    """
    args = tree_map(lambda x: canonical(x) if is_array(x) else x, list(args))
    kwargs = {k: tree_map(lambda x: canonical(x) if is_array(x) else x, v) for k, v in kwargs.items()}
    what = f"{name}({', '.join(map(repr, args))}, {kwargs})"
    function = find(name)
    our_args, our_kwargs = tree_map(ours, args), {k: tree_map(ours, v) for k, v in kwargs.items()}
    got = flat(function(*our_args, **our_kwargs))
    if types:
        expected_types = jax_types(name, args, kwargs)
        assert [(x.shape, x.dtype, x.weak_type) for x in got] == expected_types, what
    if expected is not None:
        expected = flat(expected)
    elif oracle == "numpy":
        keywords = kwargs if numpy_kwargs is None else numpy_kwargs
        keywords = {k: tree_map(wide, v) for k, v in keywords.items()}
        expected = flat(call_numpy(numpy_name or name, tree_map(wide, args), keywords))
    else:
        expected = [np.asarray(x) for x in flat(call_jax(name, args, kwargs))]
    assert len(got) == len(expected), what
    for one, other in zip(got, expected, strict=True):
        assert_close(one, other, what, rtol, atol)
    if jit:
        arrays = [i for i, x in enumerate(our_args) if any(isinstance(y, jnp_array) for y in flat(x))]
        keys = [k for k, x in our_kwargs.items() if any(isinstance(y, jnp_array) for y in flat(x))]

        def program(operands, keywords):
            full = list(our_args)
            for i, x in zip(arrays, operands, strict=True):
                full[i] = x
            return function(*full, **{**our_kwargs, **keywords})

        compiled = flat(purax.jit(program)([our_args[i] for i in arrays], {k: our_kwargs[k] for k in keys}))
        for one, eager, other in zip(compiled, got, expected, strict=True):
            assert one.aval is eager.aval, f"jit of {what}: {one.aval} and not {eager.aval}"
            assert_close(one, other, f"jit of {what}", rtol, atol)


jnp_array = purax.core.array.Array


def values(shape: tuple[int, ...], dtype: str, seed: int = 0, special: bool = False) -> np.ndarray:
    """Repeatable test values of a dtype; with `special`, some of them are nan, infinities and zeros."""
    generator = np.random.default_rng((seed, *shape))
    if dtype == "bool":
        return np.asarray(generator.integers(0, 2, shape)).astype(bool)
    if np.dtype(dtype).kind in "iu":
        low = 0 if np.dtype(dtype).kind == "u" else -50
        return np.asarray(generator.integers(low, 50, shape)).astype(dtype)
    x = np.asarray(generator.normal(size=shape) * 3)
    if dtype.startswith("complex"):
        x = x + 1j * generator.normal(size=shape)
    if special and x.size > 3:
        flat_x = x.reshape(-1)
        flat_x[::5] = np.nan
        flat_x[1::7] = np.inf
        flat_x[2::7] = -0.0
    return x.astype(dtype)
