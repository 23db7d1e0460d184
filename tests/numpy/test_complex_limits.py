"""Functions of complex numbers at infinities and NaN: compiled as on the host, which C99 specifies."""

from __future__ import annotations

import itertools

import numpy as np

import purax
import purax.numpy as jnp

REALS = (-np.inf, np.inf, np.nan, 0.0, 1.0, -800.0, 800.0)
IMAGINARIES = (0.0, -0.0, 1.0, 2.5, np.inf, -np.inf, np.nan)


def test_the_exponential_is_that_of_the_host():
    z = np.array([complex(*parts) for parts in itertools.product(REALS, IMAGINARIES)], np.complex64)
    with np.errstate(all="ignore"):
        wanted = np.exp(z)
    np.testing.assert_allclose(jnp.exp(jnp.asarray(z)), wanted, rtol=1e-5)
    np.testing.assert_allclose(purax.jit(jnp.exp)(jnp.asarray(z)), wanted, rtol=1e-5)
