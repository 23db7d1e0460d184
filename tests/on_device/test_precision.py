"""How exact products and convolutions are on the device that the tests run on.

A GPU multiplies float32 numbers at the precision `default` in TF32, which keeps 11 bits, as jax does; `highest` is
float32. Accuracy is asked for by `precision=` or `default_matmul_precision`, and these tests say which they ask for.
"""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
from purax import lax

generator = np.random.default_rng(0)
a, b = generator.uniform(-1, 1, (2, 256, 256)).astype(np.float32)
image = generator.uniform(-1, 1, (4, 16, 12, 12)).astype(np.float32)
kernel = generator.uniform(-1, 1, (8, 16, 3, 3)).astype(np.float32)
# The largest relative error of a factor: half a unit in the last of 24, 11 or 8 bits.
ROUNDING = {"highest": 2.0**-24, "high": 2.0**-11, "default": 2.0**-8}


def product(precision, dtype=np.float32):
    found = px.jit(lambda a, b: lax.dot(a, b, precision=precision))(a.astype(dtype), b.astype(dtype))
    return np.asarray(found, np.float64), a.astype(np.float64) @ b.astype(np.float64), np.abs(a) @ np.abs(b)


def convolution(precision):
    def convolve(x, k):
        return lax.conv_general_dilated(x, k, (1, 1), "SAME", precision=precision)

    with px.default_device(px.devices("cpu")[0]), px.enable_x64(True):
        wide = [x.astype(np.float64) for x in (image, kernel)]
        exact = np.asarray(px.jit(convolve)(*wide))
        sizes = np.asarray(px.jit(convolve)(*map(np.abs, wide)))
    return np.asarray(px.jit(convolve)(image, kernel), np.float64), exact, sizes


@pytest.mark.parametrize("precision", ["highest", "high", "default"])
@pytest.mark.parametrize("operation", [product, convolution])
def test_errors_are_those_of_the_precision_asked_for(operation, precision):
    found, exact, sizes = operation(precision)
    # Both factors are rounded, and the sum of k terms in float32 adds at most k roundings more.
    terms = 256 if operation is product else 144
    assert (np.abs(found - exact) <= sizes * (2.1 * ROUNDING[precision] + terms * 2.0**-24)).all()


def test_exact_is_really_asked_for():
    """An error of TF32 would be a thousand times what is allowed here."""
    found, exact, sizes = product("highest")
    assert np.abs(found - exact).max() <= 3e-6 * sizes.max()
    with px.default_matmul_precision("highest"):
        found, exact, sizes = product(None)
    assert np.abs(found - exact).max() <= 3e-6 * sizes.max()


@pytest.mark.skipif(px.devices()[0].platform != "gpu", reason="only a GPU has TF32")
def test_default_is_fast_as_in_jax():
    with px.default_matmul_precision("default"):
        found, exact, sizes = product(None)
    assert np.abs(found - exact).max() > 1e-5 * sizes.max(), (
        "products at the default precision are not done in TF32"
    )


def test_float64_is_exact():
    with px.enable_x64(True):
        found, exact, sizes = product(None, np.float64)
    assert np.abs(found - exact).max() <= 256 * 2.0**-52 * sizes.max()
