"""Special functions of float32 in compiled programs, computed by short float64 formulas: within 1 ulp of SciPy's."""

from __future__ import annotations

import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax.scipy import special

scipy_special = pytest.importorskip("scipy.special")
generator = np.random.default_rng(0)


def spread(*ranges: tuple[float, float], count: int = 3000) -> np.ndarray:
    return np.concatenate([generator.uniform(*each, count) for each in ranges]).astype(np.float32)


def powers(low: float, high: float) -> np.ndarray:
    return 10 ** generator.uniform(low, high, 3000)


CASES = {
    "ndtr": (spread((-13, 8)),),
    "log_ndtr": (spread((-300, -1), (-2, 8)),),
    "ndtri": (np.concatenate([spread((0, 1)), powers(-37, -1)]),),
    "erfcx": (spread((-5, 30)),),
    "gammaln": (np.concatenate([spread((-20, 40), (0.9, 1.1), (1.9, 2.1)), powers(-30, 30)]),),
    "gamma": (spread((-20, 35), (0.001, 1)),),
    "digamma": (np.concatenate([spread((0.01, 40)), powers(-30, 30)]),),
    "zeta": (spread((1.001, 30)), powers(-2, 3)),
    "beta": (powers(-2, 1.5), powers(-2, 1.5)),
    "gammainc": (powers(-2, 2.5), powers(-2, 2.5)),
}


@pytest.fixture(scope="module")
def results() -> dict[str, np.ndarray]:
    """All functions in one program."""
    operands = {name: [np.asarray(x, np.float32) for x in each] for name, each in CASES.items()}
    run = purax.jit(lambda all: {name: getattr(special, name)(*each) for name, each in all.items()})
    return {name: np.asarray(value) for name, value in run(operands).items()}


@pytest.mark.parametrize("name", CASES)
def test_is_within_an_ulp_of_scipy(name, results):
    operands = [np.asarray(x, np.float32).astype(np.float64) for x in CASES[name]]
    exact = getattr(scipy_special, name)(*operands)
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        distance = np.abs(results[name] - exact) / np.spacing(np.abs(rounded))
    is_normal = np.isfinite(rounded) & (np.abs(exact) > np.finfo(np.float32).tiny)
    worst = np.argmax(np.where(is_normal, np.nan_to_num(distance, nan=np.inf), 0))
    assert distance[worst] <= 1, ([x[worst] for x in operands], results[name][worst], exact[worst])


def test_special_values():
    values = jnp.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, -2.5])
    lgamma, digamma, gamma, ndtr, log_ndtr = purax.jit(
        lambda x: [getattr(special, name)(x) for name in ("gammaln", "digamma", "gamma", "ndtr", "log_ndtr")]
    )(values)
    inf, nan = np.inf, np.nan
    np.testing.assert_allclose(lgamma, [inf, inf, inf, inf, nan, inf, scipy_special.gammaln(-2.5)], rtol=1e-6)
    np.testing.assert_allclose(
        digamma, [-inf, inf, inf, nan, nan, nan, scipy_special.digamma(-2.5)], rtol=1e-6
    )
    np.testing.assert_allclose(gamma, [inf, -inf, inf, nan, nan, nan, scipy_special.gamma(-2.5)], rtol=1e-6)
    np.testing.assert_allclose(ndtr, scipy_special.ndtr(np.asarray(values, np.float64)), rtol=1e-6)
    np.testing.assert_allclose(log_ndtr, scipy_special.log_ndtr(np.asarray(values, np.float64)), rtol=1e-6)
