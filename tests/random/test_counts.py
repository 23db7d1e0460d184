"""Distributions over counts in dtypes that hold few of the integers."""

from __future__ import annotations

import numpy as np
import pytest

import purax.numpy as jnp
from purax import random


@pytest.mark.parametrize("dtype", [jnp.float8_e4m3fn, jnp.bfloat16])
@pytest.mark.parametrize("n", [13.8, 200.0])
def test_counts_in_narrow_dtypes_are_drawn_in_float32(dtype, n):
    """Sums of waiting times stand still in a narrow dtype before they reach n, and the loop would not end."""
    key = random.key(1)
    wide = np.asarray(random.binomial(key, n, 0.4, (50,), np.float32))
    narrow = random.binomial(key, n, 0.4, (50,), dtype)
    assert narrow.dtype == dtype
    np.testing.assert_array_equal(np.asarray(narrow), wide.astype(dtype))
    outcomes = random.multinomial(key, n, jnp.array([0.25, 0.75]), dtype=dtype)
    assert outcomes.dtype == dtype and np.asarray(outcomes, np.float32).sum() == pytest.approx(n, rel=0.1)
