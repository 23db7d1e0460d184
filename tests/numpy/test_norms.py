"""Norms, powers and chains of matrices agree with NumPy in value and with jax in type."""

from __future__ import annotations

import jax
import jax.numpy as jax_numpy
import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax.numpy._linalg.norms import matrix_norm, norm, vector_norm
from purax.numpy.linalg import matrix_power, multi_dot
from purax.xla.array import from_numpy
from tests.numpy.agreement import assert_close, values, wide


def check(ours, theirs, reference, x, **options):
    """Our result has jax's type and NumPy's value."""
    got = ours(from_numpy(x), **options)
    with np.errstate(all="ignore"):
        kind = jax.eval_shape(lambda y: theirs(y, **options), x)
    assert (got.shape, got.dtype, got.weak_type) == (kind.shape, kind.dtype, kind.weak_type), (x, options)
    assert_close(
        got, reference(wide(x), **options), f"{x}, {options}", rtol=2e-2 if x.dtype.itemsize == 2 else 5e-6
    )


@pytest.mark.parametrize("dtype", ("int32", "float32", "float16", "complex64"))
@pytest.mark.parametrize("ord", (None, 0, 1, -1, 2, 3, 0.5, -2, np.inf, -np.inf))
def test_vector_norms(dtype, ord):
    for shape, axis in (((4,), None), ((4,), 0), ((3, 4), 1), ((2, 3, 4), -2)):
        x = values(shape, dtype)
        x[x == 0] = 1
        check(norm, jax_numpy.linalg.norm, np.linalg.norm, x, ord=ord, axis=axis, keepdims=axis == 1)
    if ord is not None and dtype != "int32":  # of which jax gives an integer norm
        x = values((2, 3, 4), dtype)
        x[x == 0] = 1
        for axis in (None, (0, 2), 1):
            check(vector_norm, jax_numpy.linalg.vector_norm, np.linalg.vector_norm, x, ord=ord, axis=axis)


@pytest.mark.parametrize("dtype", ("int32", "float32", "complex64"))
@pytest.mark.parametrize("ord", ("fro", 1, -1, np.inf, -np.inf))
def test_matrix_norms(dtype, ord):
    x = values((2, 3, 4), dtype)
    for axis in ((0, 1), (2, 0), (-2, -1)):
        check(norm, jax_numpy.linalg.norm, np.linalg.norm, x, ord=ord, axis=axis, keepdims=axis == (2, 0))
    check(matrix_norm, jax_numpy.linalg.matrix_norm, np.linalg.matrix_norm, x, ord=ord)
    check(norm, jax_numpy.linalg.norm, np.linalg.norm, x[0], ord=ord)


@pytest.mark.parametrize("ord", (2, -2, "nuc"))
def test_norms_by_singular_values(ord):
    for dtype in ("float32", "complex64"):
        x = values((2, 3, 4), dtype)
        for axis in ((1, 2), (0, -1)):
            check(norm, jax_numpy.linalg.norm, np.linalg.norm, x, ord=ord, axis=axis, keepdims=axis == (1, 2))
        check(matrix_norm, jax_numpy.linalg.matrix_norm, np.linalg.matrix_norm, x, ord=ord)


def test_norms_of_little_and_errors():
    assert float(norm(3.0)) == 3 and float(norm(from_numpy(np.ones(0, np.float32)))) == 0
    assert float(norm(from_numpy(np.arange(8, dtype=np.float32).reshape(2, 2, 2)))) == pytest.approx(140**0.5)
    x = from_numpy(np.ones((2, 3, 4), np.float32))
    with pytest.raises(ValueError, match="two for norms of matrices"):
        norm(x, 2)
    with pytest.raises(ValueError, match="order of a norm of vectors .* got .x."):
        norm(x, "x", 0)
    with pytest.raises(ValueError, match="order of a norm of matrices .* got 3"):
        norm(x, 3, (0, 1))


def test_gradient_of_the_norm():
    x = np.array([3.0, 4.0], np.float32)
    np.testing.assert_allclose(purax.grad(norm)(from_numpy(x)), x / 5, rtol=1e-6)


@pytest.mark.parametrize("n", (0, 1, 2, 3, 7, -2))
def test_matrix_power(n):
    x = values((2, 3, 3), "float32")
    got = matrix_power(from_numpy(x), n)
    assert_close(got, np.linalg.matrix_power(x.astype(np.float64), n), str(n), rtol=1e-4)
    if n >= 0:
        whole = np.arange(4).reshape(2, 2)
        np.testing.assert_array_equal(matrix_power(whole, n), np.linalg.matrix_power(whole, n))


def test_multi_dot():
    for shapes in (
        ((3, 2), (2, 4)),
        ((3,), (3, 2), (2, 4)),
        ((2, 9), (9, 3), (3, 8), (8,)),
        ((9,), (9, 3), (3,)),
    ):
        arrays = [values(s, "float32", i) for i, s in enumerate(shapes)]
        assert_close(
            multi_dot(list(map(from_numpy, arrays))), np.linalg.multi_dot(arrays), str(shapes), rtol=1e-5
        )
    with pytest.raises(ValueError, match="at least two"):
        multi_dot([np.ones((2, 2))])
    with pytest.raises(ValueError, match="must have 2 axes"):
        multi_dot([np.ones((2, 2)), np.ones(2), np.ones((2, 2))])
    with pytest.raises(ValueError, match="as many columns as the next"):
        multi_dot([np.ones((2, 3)), np.ones((2, 2))])
    with pytest.raises(ValueError, match="square"):
        matrix_power(np.ones((2, 3)), 2)
    with pytest.raises(TypeError, match="exponent n must be an integer"):
        matrix_power(np.ones((2, 2)), 1.5)


def test_chains_are_multiplied_in_the_cheapest_order():
    text = str(
        purax.make_jaxpr(lambda *a: multi_dot(a))(np.ones((2, 100)), np.ones((100, 3)), np.ones((3, 50)))
    )
    assert "f32[2,3]" in text and "f32[100,50]" not in text


@pytest.mark.parametrize("ord", (None, 3, "fro"))
def test_norms_stay_small_when_comparisons_with_zero_disagree(ord):
    """A compiler that computes a sum for each use may round it to 0 for one and not for the other."""
    tiny = np.full((1, 1) if ord == "fro" else (1,), 1e-8, "float32")
    program = purax.make_jaxpr(lambda x: norm(x, ord))(tiny).jaxpr
    for answers in ((True, False), (False, True)):
        answer = iter(answers)
        values = dict(zip(program.invars, [tiny], strict=True))
        for equation in program.eqns:
            operands = [values[v] if v in values else v.val for v in equation.invars]
            if equation.primitive.name == "select_n":
                operands[0] = np.array(next(answer))
            values[equation.outvars[0]] = equation.primitive.bind(*operands, **equation.params)
        assert next(answer, None) is None
        assert float(values[program.outvars[0]]) < 1e-6


def test_products_of_several_dtypes_are_those_of_their_common_one():
    random = np.random.default_rng(0)
    for kinds in (("int8", "int8", "int32"), ("float16", "float16", "float32"), ("bfloat16", "float16", "float16")):
        for first in range(3):  # a narrow product in between would overflow or be rounded
            a, b, c = (
                jnp.asarray(random.uniform(50, 90, (3, 3)).astype("int32")).astype(k)
                for k in np.roll(kinds, first).tolist()
            )
            wanted = np.linalg.multi_dot([np.asarray(x, np.float64) for x in (a, b, c)])
            for found in (multi_dot([a, b, c]), jnp.einsum("ij,jk,kl->il", a, b, c, optimize="greedy")):
                np.testing.assert_allclose(np.asarray(found, np.float64), wanted, 1e-5)
