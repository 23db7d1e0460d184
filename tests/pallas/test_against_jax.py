"""Kernels of many kinds, against jax's interpret mode: eagerly, compiled, and step by step without vectorization."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import purax
from purax.pallas import call, grid_program
from tests.pallas.kernels import CASES, Case, jax_namespace, purax_namespace

_expected: dict[str, list[np.ndarray]] = {}


def expected(case: Case) -> list[np.ndarray]:
    if case.name not in _expected:
        args = [jax.numpy.asarray(x) for x in case.args]
        results = jax.jit(case.build(jax_namespace()))(*args)
        _expected[case.name] = [np.asarray(y) for y in jax.tree.leaves(results)]
    return _expected[case.name]


def compare(case: Case, results) -> None:
    leaves = purax.tree.leaves(results)
    assert len(leaves) == len(expected(case))
    for got, want in zip(leaves, expected(case), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        scale = max(1.0, float(np.nanmax(np.abs(want.astype(np.float64)), initial=0)))
        np.testing.assert_allclose(
            np.asarray(got).astype(np.float64), want.astype(np.float64), rtol=0, atol=case.tolerance * scale
        )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_eager_and_compiled(case):
    function = case.build(purax_namespace())
    args = [purax.numpy.asarray(x) for x in case.args]
    compare(case, function(*args))
    compare(case, purax.jit(function)(*args))


SEVERAL_AXES = [
    case for case in CASES if any(part in case.name for part in ("matmul", "attention", "two", "squeezed"))
]


@pytest.mark.parametrize(
    "case, limit",
    [*((case, 0) for case in CASES), *((case, 300) for case in SEVERAL_AXES)],
    ids=lambda x: getattr(x, "name", x),
)
def test_in_turn(case, limit, monkeypatch):
    """Results do not depend on how many steps run at once."""
    monkeypatch.setattr(call, "over_grid", lambda kernel: grid_program.over_grid(kernel, limit))
    function = case.build(purax_namespace())
    compare(case, purax.jit(function)(*[purax.numpy.asarray(x) for x in case.args]))
