"""`ndimage.map_coordinates`, `RegularGridInterpolator`, `cluster.vq` and `integrate.trapezoid`."""

from __future__ import annotations

import jax
import jax.numpy as jax_numpy
import numpy as np
import pytest
import scipy.cluster.vq
import scipy.interpolate
import scipy.ndimage
from jax.scipy.cluster.vq import vq as jax_vq
from jax.scipy.ndimage import map_coordinates as jax_map_coordinates

import purax
import purax.numpy as jnp
from purax.scipy.cluster.vq import vq
from purax.scipy.integrate import trapezoid
from purax.scipy.interpolate import RegularGridInterpolator
from purax.scipy.ndimage import map_coordinates

MODES = {
    "constant": "grid-constant",
    "nearest": "nearest",
    "wrap": "grid-wrap",
    "mirror": "mirror",
    "reflect": "reflect",
}
generator = np.random.default_rng(0)


def test_map_coordinates_against_scipy_and_jax():
    x = generator.normal(size=(4, 1, 5)).astype(np.float32)
    places = [generator.uniform(-9, 14, (6, 3)).astype(np.float32) for _ in range(3)]
    dtypes = ("float32", "uint8", "bool", "bfloat16")
    arrays = {d: (abs(x) * 7 if d == "uint8" else x * 7 if d != "bool" else x > 0).astype(d) for d in dtypes}
    cases = [(mode, order) for mode in MODES for order in (0, 1)]
    wanted = jax.jit(
        lambda arrays, places: {
            (mode, order): {
                d: jax_map_coordinates(a, places, order, mode, 1.7)
                for d, a in arrays.items()
                if d == "float32" or mode in ("constant", "mirror")
            }
            for mode, order in cases
        }
    )(arrays, [jax_numpy.asarray(c) for c in places])
    for mode, order in cases:
        for dtype, array in arrays.items():
            if dtype not in wanted[mode, order]:
                continue
            got, other = map_coordinates(array, places, order, mode, 1.7), wanted[mode, order][dtype]
            assert got.dtype == other.dtype
            got, other = (np.asarray(a).astype(np.complex128) for a in (got, other))
            np.testing.assert_allclose(got, other, rtol=2e-2 if dtype == "bfloat16" else 1e-5, atol=1e-5)
        if order == 1:
            exact = scipy.ndimage.map_coordinates(
                x.astype(float), np.asarray(places, float), order=1, mode=MODES[mode], cval=1.7
            )
            got = map_coordinates(x, places, 1, mode, 1.7)
            np.testing.assert_allclose(got, exact, atol=1e-5, err_msg=mode)


def test_map_coordinates_is_differentiable_and_takes_integers_and_traced_fills():
    x = jnp.asarray(generator.normal(size=(4, 5)), jnp.float32)
    places = jnp.asarray(generator.uniform(0.1, 2.9, (2, 7)), jnp.float32)
    purax.test_util.check_grads(
        lambda x, c: map_coordinates(x, [c[0], c[1]], 1), (x, places), order=1, atol=2e-2
    )
    assert (
        map_coordinates(x, [jnp.array([0, 3]), jnp.array([1, 9])], 1, cval=7.0) == jnp.array([x[0, 1], 7.0])
    ).all()
    filled = purax.jit(lambda v: map_coordinates(x, [jnp.array([-5.0]), jnp.array([0.0])], 0, cval=v))(3.0)
    assert filled[0] == 3


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x: map_coordinates(x, [x], 1), ValueError, "one array for each of the 2 axes"),
        (lambda x: map_coordinates(x, [x, x], 2), NotImplementedError, "order must be 0 or 1"),
        (lambda x: map_coordinates(x, [x, x], 1, "bounce"), NotImplementedError, "mode must be one of"),
        (lambda x: vq(x, x[0]), ValueError, "two vectors, or two matrices"),
        (lambda x: vq(x, x[:0]), ValueError, "there are no codes"),
        (
            lambda x: RegularGridInterpolator((x[0],), x[:1]),
            ValueError,
            "points\\[0\\] must be a vector with 1",
        ),
        (lambda x: RegularGridInterpolator((x[0] * 0,), x[0]), ValueError, "strictly increasing"),
        (lambda x: RegularGridInterpolator((x[0],), x[0], "spline"), ValueError, "method must be"),
        (lambda x: RegularGridInterpolator((x[0], x[0]), x.T[:, 0] * 0), ValueError, "points has 2 axes"),
        (lambda x: RegularGridInterpolator((x[0],), x[0], bounds_error=True)(99.0), ValueError, "outside of"),
    ],
)
def test_wrong_arguments(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call(jnp.arange(6.0).reshape(2, 3))
    assert "test_interpolation.py" in str(caught.value)


def test_interpolation_on_a_grid():
    lines = (np.sort(generator.normal(size=4)), np.arange(3.0)[::-1].copy())
    table = generator.normal(size=(4, 3, 2))
    places = generator.normal(size=(7, 2)) * 1.5
    for method in ("linear", "nearest"):
        for fill in (np.nan, None, 3.0):
            exact = scipy.interpolate.RegularGridInterpolator(
                lines, table, method, bounds_error=False, fill_value=fill
            )(places)
            ours = RegularGridInterpolator(
                tuple(line.astype(np.float32) for line in lines),
                table.astype(np.float32),
                method,
                fill_value=fill,
            )
            np.testing.assert_allclose(ours(places.astype(np.float32)), exact, rtol=1e-4, atol=1e-5)
            parts = tuple(places.T.astype(np.float32))
            np.testing.assert_allclose(purax.jit(ours)(parts), exact, rtol=1e-4, atol=1e-5)
    slope = purax.grad(lambda x: RegularGridInterpolator((jnp.arange(3.0),), jnp.array([0.0, 1, 4]))(x))(1.5)
    assert slope == 3
    assert jnp.isnan(RegularGridInterpolator((jnp.arange(3.0),), jnp.arange(3.0), fill_value=None)(jnp.nan))


def test_nearest_codes():
    x, codes = generator.normal(size=(9, 3)), generator.normal(size=(4, 3))
    number, distance = vq(x.astype(np.float32), codes.astype(np.float32))
    exact = scipy.cluster.vq.vq(x, codes)
    np.testing.assert_array_equal(number, exact[0])
    np.testing.assert_allclose(distance, exact[1], rtol=1e-5)
    types = jax.eval_shape(jax_vq, x, codes), jax.eval_shape(jax_vq, x.astype(int), codes.astype(int))
    given = vq(x, codes), vq(x.astype(int), codes.astype(int))
    assert [[a.dtype for a in pair] for pair in given] == [[a.dtype for a in pair] for pair in types]
    assert (vq(x[:, 0], codes[:, 0])[0] == scipy.cluster.vq.vq(x[:, :1], codes[:, :1])[0]).all()


def test_trapezoid():
    y = generator.normal(size=(3, 4))
    for options in ({}, {"dx": 0.5}, {"axis": 0}, {"x": np.array([0.0, 1.0, 3.0, 7.0])}):
        np.testing.assert_allclose(
            trapezoid(y, **options), scipy.integrate.trapezoid(y, **options), rtol=1e-5
        )
