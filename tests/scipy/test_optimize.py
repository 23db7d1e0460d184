"""Minimization: the minima of known functions, by both methods, compiled, vectorized and differentiated forwards."""

from __future__ import annotations

import jax
import jax.numpy as jax_numpy
import jax.scipy.optimize as jax_optimize
import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax.scipy.optimize import OptimizeResults, minimize

METHODS = ("BFGS", "l-bfgs-experimental-do-not-rely-on-this")


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def himmelblau(x):
    return (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2


def zakharov(x):
    weighted = jnp.sum(0.5 * jnp.arange(x.size) * x)
    return jnp.sum(x**2) + weighted**2 + weighted**4


# Gradients of Rosenbrock's function are known up to 400 · ε · x, which in single precision is more than is asked for.
CASES = {
    "rosenbrock": (rosenbrock, jnp.full(8, -1.0, "float64"), [1.0] * 8),
    "himmelblau": (himmelblau, jnp.ones(2), [3.0, 2.0]),
    "zakharov, huge gradient": (zakharov, jnp.array([600.0, 700, 200, 100, 90, 1e4]), [0.0] * 6),
    "a wall of infinities": (lambda x: jnp.sum(x - jnp.log(x)), jnp.full(3, 4.0), [1.0] * 3),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES)
def test_minima_are_found(case, method):
    function, start, minimum = CASES[case]
    result = minimize(function, start, method=method)
    assert isinstance(result, OptimizeResults)
    assert bool(result.success) and int(result.status) == 0, result
    np.testing.assert_allclose(result.x, minimum, atol=2e-3)
    assert float(jnp.max(abs(result.jac))) < 1e-5 and result.x.dtype == start.dtype
    assert float(result.fun) == pytest.approx(float(function(result.x)), abs=1e-6)
    assert int(result.nit) < int(result.nfev) == int(result.njev) < 250


def test_results_have_the_types_of_jax():
    for method in METHODS:
        ours = minimize(himmelblau, jnp.ones(2), method=method)
        theirs = jax.eval_shape(
            lambda x: jax_optimize.minimize(himmelblau, x, method=method),  # noqa: B023
            jax_numpy.ones(2),
        )
        assert ours._fields == theirs._fields
        for name, x, y in zip(ours._fields, ours, theirs, strict=True):
            assert (x is None) == (y is None), name
            assert x is None or (x.shape, x.dtype) == (y.shape, y.dtype), name


def test_options_arguments_and_ends():
    def shifted(x, centre, scale):
        return scale * jnp.sum((x - centre) ** 2)

    result = minimize(shifted, jnp.zeros(2), (3.0, 2.0), method="bfgs", tol=1e-3)
    np.testing.assert_allclose(result.x, [3, 3], atol=1e-3)
    np.testing.assert_allclose(np.linalg.eigvalsh(result.hess_inv).min(), 0.25, rtol=1e-3)
    for method in METHODS:
        few = minimize(rosenbrock, jnp.zeros(4), method=method, options={"maxiter": 3})
        assert (bool(few.success), int(few.status), int(few.nit)) == (False, 1, 3)
        nowhere = minimize(lambda x: jnp.nan * jnp.sum(x), jnp.ones(2), method=method)
        assert (bool(nowhere.success), int(nowhere.status)) == (False, 6)
        there = minimize(rosenbrock, jnp.ones(4), method=method)
        assert bool(there.success) and int(there.nit) == 0
    limited = minimize(rosenbrock, jnp.zeros(4), method=METHODS[1], options={"maxfun": 10, "maxcor": 2})
    assert int(limited.nfev) < 30 and not limited.success
    loose = minimize(rosenbrock, jnp.zeros(4), method=METHODS[1], options={"ftol": 0.5})
    assert loose.success and float(loose.fun) > 1e-3


def test_transformations():
    starts = jnp.arange(3.0)[:, None] + jnp.zeros((3, 4), "float64")
    batch = purax.jit(purax.vmap(lambda x: minimize(rosenbrock, x, method="BFGS")))(starts)
    np.testing.assert_allclose(batch.x, np.ones((3, 4)), atol=1e-3)
    assert bool(jnp.all(batch.success)) and int(batch.nit[1]) == 0

    def minimum(centre):
        return minimize(lambda x: jnp.sum((x - centre) ** 2), jnp.zeros(2), method="BFGS").x

    value, tangent = purax.jvp(minimum, (1.5,), (1.0,))
    np.testing.assert_allclose([value, tangent], [[1.5, 1.5], [1, 1]], rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda x: minimize(rosenbrock, x, method="newton"), ValueError, "method must be"),
        (lambda x: minimize(rosenbrock, x, 1.0, method="BFGS"), TypeError, "args must be a tuple"),
        (lambda x: minimize(rosenbrock, x[None], method="BFGS"), ValueError, "must be a vector"),
        (
            lambda x: minimize(rosenbrock, x, method="BFGS", options={"steps": 1}),
            TypeError,
            "has no option 'steps'",
        ),
        (lambda x: minimize(lambda x: x, x, method="BFGS"), TypeError, "scalar"),
    ],
)
def test_wrong_arguments(call, kind, message):
    with pytest.raises(kind, match=message) as caught:
        call(jnp.zeros(3))
    assert "test_optimize.py" in str(caught.value)
