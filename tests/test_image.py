"""Images against jax."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax import image
from tests.against_jax import QUICKLY

generator = np.random.default_rng(0)
METHODS = ("nearest", "linear", "cubic", "lanczos3", "lanczos5", "cubic-pytorch", "area")
SHAPES = [((4, 6), (7, 3)), ((5, 1), (11, 4)), ((9, 8), (2, 5)), ((3, 4), (0, 4))]
MOVES = [(2.0, 1.0), (0.5, 0.3), (0.3, -2.0), (0.9, 6.5), (0.9, -5.2)]


def test_resize():
    images = [generator.normal(size=shape).astype(np.float32) for shape, _ in SHAPES]
    cases = [(i, m, a) for i in range(len(SHAPES)) for m in METHODS for a in (True, False)]
    # In double precision, as jax computes positions in that of the image.
    cases = [case for case in cases if 0 not in SHAPES[case[0]][1]]
    with jax.enable_x64(True):
        wide = [x.astype(np.float64) for x in images]
        program = jax.jit(lambda xs: [jax.image.resize(xs[i], SHAPES[i][1], m, a) for i, m, a in cases])
        wanted = [np.asarray(x) for x in program.lower(wide).compile(QUICKLY)(wide)]
    for (i, method, antialias), expected in zip(cases, wanted, strict=True):
        given = image.resize(images[i], SHAPES[i][1], method, antialias)
        assert given.dtype == jnp.float32
        np.testing.assert_allclose(given, expected, rtol=2e-6, atol=2e-6, err_msg=f"{SHAPES[i]} {method}")
    assert image.resize(images[-1], (0, 4), "linear").shape == (0, 4)


def test_types_are_those_of_jax():
    for dtype in ("uint8", "int32", "bool", "float16", "bfloat16", "float32", "complex64"):
        x = np.ones((2, 3), dtype)
        for method in ("nearest", "linear", "cubic"):
            wanted = jax.eval_shape(lambda x: jax.image.resize(x, (4, 2), method), x)  # noqa: B023
            given = image.resize(x, (4, 2), method)
            assert (given.dtype, given.shape) == (wanted.dtype, wanted.shape), (dtype, method)


def test_scale_and_translate():
    x = generator.normal(size=(3, 7)).astype(np.float32)

    def all_cases(function, numpy):
        return [
            function(
                numpy.asarray(x),
                (3, 5),
                (1,),
                numpy.asarray([s], "float32"),
                numpy.asarray([t], "float32"),
                m,
                a,
            )
            for m in METHODS[1:]
            for a in (True, False)
            for s, t in MOVES
        ]

    wanted = jax.jit(lambda: all_cases(jax.image.scale_and_translate, jax.numpy))()
    given = all_cases(image.scale_and_translate, jnp)
    for number, (mine, theirs) in enumerate(zip(given, wanted, strict=True)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5, err_msg=str(number))


def test_negative_scales_turn_the_image_round():
    # jax has no antialiasing for these, and zeros for "area".
    x = jnp.arange(4.0)
    for method in METHODS[1:]:
        turned = image.scale_and_translate(x, (4,), (0,), jnp.array([-1.0]), jnp.array([4.0]), method)
        np.testing.assert_allclose(turned, x[::-1], atol=1e-5, err_msg=method)
    small = image.scale_and_translate(x, (2,), (0,), jnp.array([-0.5]), jnp.array([2.0]), "linear")
    np.testing.assert_allclose(small, image.resize(x, (2,), "linear")[::-1], atol=1e-6)


def test_transformations():
    x = jnp.asarray(generator.normal(size=(5, 6)), jnp.float32)
    for method in ("linear", "cubic", "lanczos3"):
        resize = lambda x: image.resize(x, (3, 8), method)  # noqa: B023, E731
        purax.test_util.check_grads(resize, (x,), order=1)
        np.testing.assert_allclose(purax.jit(resize)(x), resize(x), atol=1e-6)
        np.testing.assert_allclose(purax.vmap(resize)(x[None])[0], resize(x), atol=1e-6)

    def moved(scale, translation):
        return image.scale_and_translate(x, (5, 6), (0, 1), scale, translation, "cubic")

    purax.test_util.check_grads(
        moved, (jnp.array([0.8, 1.3]), jnp.array([0.4, -0.7])), order=1, atol=2e-2, rtol=2e-2
    )


def test_weights_keep_a_constant_image_constant():
    for method in METHODS:
        for size in (1, 2, 3, 7, 20):
            given = image.resize(jnp.full(size, 3.0), (9,), method)
            np.testing.assert_allclose(given, np.full(9, 3.0), rtol=1e-6, err_msg=f"{method} {size}")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: image.resize(x, (3,), "linear"), "a size for each axis"),
        (lambda x: image.resize(x, (3, 3), "fine"), "unknown resize method 'fine'"),
        (lambda x: image.resize(x[:0], (3, 3), "linear"), "has no samples"),
        (
            lambda x: image.scale_and_translate(x, (2, 2), (0,), jnp.ones(1), jnp.ones(1), "nearest"),
            "nearest",
        ),
        (
            lambda x: image.scale_and_translate(x, (2, 2), (0,), jnp.ones(2), jnp.ones(1), "linear"),
            "one number for",
        ),
        (
            lambda x: image.scale_and_translate(x, (2, 2), (5,), jnp.ones(1), jnp.ones(1), "linear"),
            "spatial_dims has 5",
        ),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call(jnp.ones((2, 2)))
    assert "test_image.py" in str(caught.value)


def test_names_of_methods():
    for name in (
        "linear",
        "bilinear",
        "trilinear",
        "triangle",
        "cubic",
        "bicubic",
        "tricubic",
        "lanczos3",
        "area",
    ):
        assert image.ResizeMethod.from_string(name).name == jax.image.ResizeMethod.from_string(name).name
    assert [m.value for m in image.ResizeMethod] == [m.value for m in jax.image.ResizeMethod]
