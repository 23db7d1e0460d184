"""`jnp.fft` and `lax.fft` against NumPy and jax: values, types, derivatives, batches; and laws of the transforms."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import purax
import purax.numpy as jnp
from purax import lax
from tests.against_jax import ALL, Program, check, numbers
from tests.numpy.agreement import agree, ours

pytestmark = pytest.mark.sampled(2)

fft = jnp.fft
ONE_AXIS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL_AXES = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
REAL = ("rfft", "ihfft", "rfftn", "rfft2")
NORMS = (None, "backward", "ortho", "forward")


def operand(name, shape, seed=0):
    return numbers(shape, dtype=np.float32 if name in REAL else np.complex64, seed=seed)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ONE_AXIS)
def test_one_axis_agrees_with_numpy(name, norm):
    for shape, n, axis in (
        ((5,), None, -1),
        ((4, 3), None, 0),
        ((2, 6, 3), 4, 1),
        ((2, 4), 7, -1),
        ((3,), 1, 0),
    ):
        agree(f"fft.{name}", operand(name, shape), n=n, axis=axis, norm=norm, jit=norm == "ortho")


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", SEVERAL_AXES)
def test_several_axes_agree_with_numpy(name, norm):
    choices = [
        ((4, 5), None, (0, 1)),
        ((2, 3, 4), None, (2, 0)),
        ((3, 4), (5, 2), (0, 1)),
        ((2, 5, 3), (3, 4), (-1, 0)),
    ]
    if name.endswith("n"):
        choices += [((2, 3, 4), None, (0, 1, 2)), ((3, 4), None, (1,))]
    for shape, s, axes in choices:
        agree(f"fft.{name}", operand(name, shape), s=s, axes=axes, norm=norm, jit=norm is None)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_more_axes_than_the_engine_takes(name):
    agree(f"fft.{name}", operand(name, (2, 3, 2, 4, 3)), jit=True, numpy_kwargs={"axes": range(5)})
    agree(f"fft.{name}", operand(name, (2, 3, 2, 4)), axes=(3, 1, 0, 2), jit=True)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "float32", "complex64"])
def test_dtypes(dtype):
    x = numbers((6,), 0, 4).astype(dtype)
    agree("fft.fft", x, jit=True)
    if dtype != "complex64":
        agree("fft.rfft", x, jit=True, types=dtype != "float16")  # which jax takes for fft only
    wide = ours(numbers((6,), dtype=np.float64))
    assert fft.rfft(wide).dtype == np.complex128 and fft.irfft(fft.rfft(wide)).dtype == np.float64


def program(name, function, *args):
    return pytest.param(Program(name, function, args, ALL), id=name)


@pytest.mark.parametrize(
    "case",
    [
        *[
            program(
                name,
                lambda m, x, name=name: getattr(m.numpy.fft, name)(x, norm="ortho"),
                operand(name, (2, 5)),
            )
            for name in ONE_AXIS
        ],
        *[
            program(
                name, lambda m, x, name=name: getattr(m.numpy.fft, name)(x, (3, 4)), operand(name, (2, 3, 5))
            )
            for name in SEVERAL_AXES
        ],
        program("irfft, odd", lambda m, x: m.numpy.fft.irfft(x, 5), operand("irfft", (2, 3))),
        program("lax.fft", lambda m, x: m.lax.fft(x, "fft", (4,)), operand("fft", (2, 4))),
        program(
            "lax.rfft", lambda m, x: m.lax.fft(x, m.lax.FftType.RFFT, (3, 4)), operand("rfft", (2, 3, 4))
        ),
        program("lax.irfft", lambda m, x: m.lax.fft(x, "irfft", (3, 4)), operand("irfft", (2, 3, 3))),
        program("fftshift", lambda m, x: m.numpy.fft.fftshift(x, 1), operand("rfft", (3, 5))),
    ],
)
def test_agrees_with_jax_under_transformations(case):
    check(case)


# --- laws


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.sampled_from(NORMS), st.booleans())
def test_inverses_undo_the_transforms(shape, norm, compiled):
    x = ours(numbers(tuple(shape), dtype=np.complex64))
    there_and_back = lambda x: fft.ifftn(fft.fftn(x, norm=norm), norm=norm)  # noqa: E731
    real_there_and_back = lambda x: fft.irfftn(fft.rfftn(x, norm=norm), x.shape, norm=norm)  # noqa: E731
    if compiled:
        there_and_back, real_there_and_back = purax.jit(there_and_back), purax.jit(real_there_and_back)
    np.testing.assert_allclose(there_and_back(x), x, atol=1e-5)
    np.testing.assert_allclose(real_there_and_back(x.real), x.real, atol=1e-5)


@given(st.integers(1, 40))
def test_the_orthogonal_transform_keeps_lengths(n):
    x = ours(numbers((n,), dtype=np.complex64))
    np.testing.assert_allclose(jnp.linalg.norm(fft.fft(x, norm="ortho")), jnp.linalg.norm(x), rtol=1e-5)


@given(st.integers(1, 16))
def test_a_product_of_transforms_is_a_cyclic_convolution(n):
    x, y = (numbers((n,), seed=seed) for seed in (0, 1))
    product = fft.irfft(fft.rfft(ours(x)) * fft.rfft(ours(y)), n)
    cyclic = [sum(x[j] * y[(k - j) % n] for j in range(n)) for k in range(n)]
    np.testing.assert_allclose(product, cyclic, atol=1e-4)


@pytest.mark.parametrize("n", [0, 1, 2, 5, 8])
def test_frequencies_and_shifts(n):
    for name in ("fftfreq", "rfftfreq"):
        if n:
            np.testing.assert_allclose(getattr(fft, name)(n, 0.25), getattr(np.fft, name)(n, 0.25), rtol=1e-6)
            assert getattr(fft, name)(n, dtype="float64").dtype == np.float64
        assert getattr(fft, name)(n).shape == getattr(jax.numpy.fft, name)(n).shape
    x = numbers((n, 3))
    for name in ("fftshift", "ifftshift"):
        for axes in (None, 0, (1,), (0, 1)):
            agree(f"fft.{name}", x, axes=axes, jit=True)
    np.testing.assert_array_equal(fft.ifftshift(fft.fftshift(ours(x))), x)


def test_frequencies_can_be_differentiated_in_the_spacing():
    np.testing.assert_allclose(
        purax.jacobian(lambda d: fft.fftfreq(4, d))(2.0), -np.fft.fftfreq(4) / 4, rtol=1e-6
    )


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_empty_arrays(shape):
    x = jnp.zeros(shape)
    assert fft.fft(x).shape == shape and fft.fft(x).dtype == np.complex64
    assert fft.fft(purax.jit(fft.fft)(x)).shape == shape


# --- errors and names

ERRORS = [
    (lambda: fft.rfft(jnp.ones(3, complex)), ValueError, "real arrays.*complex64"),
    (lambda: fft.fft(jnp.ones(3), norm="unit"), ValueError, "'unit'"),
    (lambda: fft.fft(jnp.ones(3), n=0), ValueError, "positive"),
    (lambda: fft.fft(jnp.ones((2, 2)), axis=(0, 1)), ValueError, "fftn"),
    (lambda: fft.fft(jnp.ones((2, 2)), axis=5), ValueError, "5"),
    (lambda: fft.fft2(jnp.ones((2, 2, 2)), axes=(0, 1, 2)), ValueError, "two axes"),
    (lambda: fft.fft2(jnp.ones((2, 2)), axes=(0, 0)), ValueError, "repeated"),
    (lambda: fft.fftn(jnp.ones((2, 2)), s=(2, 2), axes=(0,)), ValueError, "as many sizes"),
    (lambda: fft.fft([1.0]), TypeError, "fft.fft.*list"),
    (lambda: fft.fftfreq([5]), ValueError, r"\[5\]"),
    (lambda: fft.fftfreq(-1), ValueError, "-1"),
    (lambda: lax.fft(jnp.ones(3), "fft", (3,)), TypeError, "FFT takes complex64.*float32"),
    (lambda: lax.fft(jnp.ones(3), "RFFT", (4,)), ValueError, r"\(4,\).*\(3,\)"),
    (lambda: lax.fft(jnp.ones(3), "DCT", (3,)), ValueError, "'DCT'"),
    (lambda: lax.fft(jnp.ones((2, 2, 2, 2)), "RFFT", (2, 2, 2, 2)), ValueError, "one to 3"),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS, ids=range(len(ERRORS)))
def test_errors_name_what_is_wrong(call, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        call()


def test_every_public_name_of_jax_is_there():
    missing = [name for name in dir(jax.numpy.fft) if not name.startswith("_") and not hasattr(fft, name)]
    assert not missing
    assert lax.FftType.IRFFT == jax.lax.FftType.IRFFT == 3


@pytest.mark.parametrize(
    "function",
    [
        lambda m, x: m.linalg.svd(m.fft.fft(x))[1],
        lambda m, x: m.linalg.inv(m.fft.irfftn(m.fft.rfftn(x, axes=(0, 1)), s=(3, 3), axes=(0, 1))),
        lambda m, x: m.fft.fft(m.linalg.inv(m.fft.fft(x).real + 9 * m.eye(3))).real,
    ],
    ids=["svd", "inv", "between"],
)
def test_together_with_matrix_functions(function):
    """Whose order of memory, column by column, XLA's FFT does not take."""
    x = np.eye(3, dtype=np.float32) + np.float32(1.5)
    compiled = purax.jit(purax.vmap(lambda x: function(jnp, x)))(jnp.stack([x, 2 * x]))
    np.testing.assert_allclose(compiled, [function(np, x), function(np, 2 * x)], rtol=1e-4, atol=1e-4)
