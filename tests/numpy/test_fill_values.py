"""Indices of what is not zero, with every kind of `size` and `fill_value`, eager and compiled, against jax."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest

import purax

ARRAYS = {
    "vector": np.array([1, 0, 1, 0], np.int32),
    "matrix": np.array([[1, 0], [0, 1]], np.float32),
    "none": np.zeros(0, np.float32),
    "no columns": np.zeros((3, 0)),
    "scalar": np.float32(1),
    "zeros": np.zeros(3),
}
# Since 0.11 jax gives results the type that all fills have together, also where none is used, and never a weak one, and
# it refuses fills of other shapes; purax has the types of 0.10.
SAME_TYPES = jax.__version_info__ < (0, 11)
FILLS = (None, -9, 1.5, math.nan, 1j, np.float16(2.5), np.array([5]), (1,), (1.5, 2), [3, 4])


def outcome(m, name, x, run, size, fill):
    call = run(m)(lambda x: getattr(m.numpy, name)(x, size=size, fill_value=fill))
    try:
        leaves = m.tree.leaves(call(m.numpy.asarray(x)))
    except Exception:
        return "raises"
    if SAME_TYPES:
        return str([(str(y.dtype), y.weak_type, np.asarray(y).tolist()) for y in leaves])
    return str([np.asarray(y, np.complex64).tolist() for y in leaves])


@pytest.mark.parametrize("size", [None, 0, 3])
@pytest.mark.parametrize("name", ["nonzero", "flatnonzero", "argwhere", "where"])
def test_as_in_jax(name, size):
    for kind, x in ARRAYS.items():
        for fill in FILLS:
            is_compiled = size is not None and kind in ("vector", "none") and fill in (-9, 1.5)
            for run in (lambda m: lambda f: f, lambda m: m.jit)[: 2 if is_compiled else 1]:
                ours, theirs = (outcome(m, name, x, run, size, fill) for m in (purax, jax))
                is_refused = theirs == "raises" and not SAME_TYPES
                assert ours == theirs or is_refused, f"{name} of {kind}, size={size}, fill_value={fill!r}"
