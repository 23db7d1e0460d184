"""Distributions and statistics against SciPy, computed in double precision from the same numbers."""

from __future__ import annotations

import inspect
import warnings

import jax
import numpy as np
import pytest
import scipy.stats
from jax.scipy import stats as jax_stats

import purax as px
import purax.numpy as jnp
from purax.scipy import stats
from purax.testing.check_grads import check_grads
from tests.scipy.scipy_names import DISTRIBUTIONS, KDE, STATS
from tests.scipy.stats_table import ARGUMENTS, OF_QUANTILES, QUANTILE_ARGUMENTS

OF_NUMBERS = [(name, method) for name in ARGUMENTS for method in DISTRIBUTIONS[name]]
# SciPy's answers that are not used: −1 for the quantile at probability 0, and entropies that it sums inexactly.
ELSEWHERE = {("bernoulli", "ppf"), ("poisson", "entropy")}


def arguments(name: str, method: str) -> list[np.ndarray]:
    columns = QUANTILE_ARGUMENTS[name] if method in OF_QUANTILES else ARGUMENTS[name]
    if method == "entropy":
        return [np.array([0.1, 1.0, 10.0, 60.0])]
    count = len(inspect.signature(getattr(getattr(stats, name), method)).parameters)
    return columns[:count]


def reference(name: str, method: str, columns) -> np.ndarray:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(
            getattr(getattr(scipy.stats, name), method)(*(x.astype(np.float64) for x in columns))
        )


def deviation(name: str, method: str, got, wanted, epsilon: float) -> str | None:
    """What is wrong, if a value deviates by more than a few roundings of it or of its logarithm."""
    got = np.asarray(got).astype(np.float64)
    tiny = 1e-36 if epsilon > 1e-10 else 1e-290
    with np.errstate(all="ignore"):
        scale = np.abs(wanted) + epsilon if method.startswith("log") else np.abs(wanted)
        conditioning = 4 if method.startswith("log") else 4 + 2 * np.abs(np.log(np.abs(wanted) + tiny))
        allowed = epsilon * conditioning * np.maximum(scale, 1 if method.startswith("log") else 0) + tiny
        is_close = np.isfinite(wanted) & (np.abs(got - wanted) <= allowed)
        bad = ~(is_close | (got == wanted) | (np.isnan(got) & np.isnan(wanted)))
    if not bad.any():
        return None
    place = np.flatnonzero(bad)[:3]
    return f"{name}.{method} at {place}: {got[place]}, SciPy has {wanted[place]}"


@pytest.mark.parametrize(("dtype", "epsilon"), [("float32", 2e-7), ("float64", 2e-14)])
def test_values_are_those_of_scipy(dtype, epsilon):
    found = []
    for name, method in OF_NUMBERS:
        if (name, method) in ELSEWHERE:
            continue
        columns = [x.astype(dtype) for x in arguments(name, method)]
        got = getattr(getattr(stats, name), method)(*(jnp.asarray(x, dtype=dtype) for x in columns))
        assert got.dtype == dtype, f"{name}.{method} gives {got.dtype}"
        found.append(deviation(name, method, got, reference(name, method, columns), epsilon))
    assert [message for message in found if message] == []


def test_compiled_programs_agree():
    chosen = [
        (n, m)
        for n, m in OF_NUMBERS
        if (n, m) not in ELSEWHERE and m in ("logpdf", "logpmf", "logcdf", "ppf")
    ]
    given = {f"{n}.{m}": [jnp.asarray(x[::3], dtype="float32") for x in arguments(n, m)] for n, m in chosen}

    @px.jit
    def program(given):
        results = {}
        for key, columns in given.items():
            name, method = key.split(".")
            results[key] = getattr(getattr(stats, name), method)(*columns)
        return results

    found = []
    for key, got in program(given).items():
        name, method = key.split(".")
        found.append(
            deviation(name, method, got, reference(name, method, [np.asarray(x) for x in given[key]]), 6e-7)
        )
    assert [message for message in found if message] == []


def test_types_are_those_of_jax():
    for name, method in OF_NUMBERS:
        columns = [np.float32([0.5, 0.7])] * len(arguments(name, method))
        theirs = jax.eval_shape(getattr(getattr(jax_stats, name), method), *columns)
        ours = getattr(getattr(stats, name), method)(*map(jnp.asarray, columns))
        assert (theirs.shape, theirs.dtype) == (ours.shape, ours.dtype), f"{name}.{method}"


def test_names_and_arguments():
    for name, methods in DISTRIBUTIONS.items():
        for method in methods:
            ours, theirs = (
                list(inspect.signature(getattr(getattr(m, name), method)).parameters.values())
                for m in (stats, jax_stats)
            )
            assert [(p.name, p.default, p.kind) for p in ours] == [
                (p.name, p.default, p.kind) for p in theirs
            ], name
    assert [name for name in STATS if not hasattr(stats, name)] == []
    assert [name for name in KDE if not hasattr(stats.gaussian_kde, name)] == []


SMOOTH = {
    "beta": (0.3, 1.5, 2.5, 0.1, 2.0),
    "cauchy": (0.3, 0.1, 2.0),
    "chi2": (1.3, 2.5, 0.1, 2.0),
    "expon": (1.3, 0.1, 2.0),
    "gamma": (1.3, 2.5, 0.1, 2.0),
    "gennorm": (0.7, 1.4),
    "gumbel_l": (0.3, 0.1, 2.0),
    "gumbel_r": (0.3, 0.1, 2.0),
    "laplace": (0.3, 0.1, 2.0),
    "logistic": (0.3, 0.1, 2.0),
    "norm": (0.3, 0.1, 2.0),
    "pareto": (5.3, 1.5, 0.1, 2.0),
    "t": (0.7, 2.5, 0.1, 2.0),
    "truncnorm": (0.7, -1.5, 2.5, 0.1, 2.0),
    "vonmises": (0.7, 1.4),
    "wrapcauchy": (0.7, 0.4),
}


@pytest.mark.parametrize("name", list(SMOOTH))
def test_derivatives(name):
    for method in DISTRIBUTIONS[name]:
        if method in OF_QUANTILES:
            continue
        values = [jnp.asarray(x, dtype="float64") for x in SMOOTH[name]]
        check_grads(getattr(getattr(stats, name), method), values, 1)


def test_derivatives_of_quantiles_are_those_of_the_inverse():
    for name in ("cauchy", "expon", "gumbel_l", "gumbel_r", "logistic", "norm", "uniform"):
        module = getattr(stats, name)
        q = jnp.asarray(0.3, dtype="float64")
        slope = px.grad(module.ppf)(q) * module.pdf(module.ppf(q))
        assert float(slope) == pytest.approx(1.0, rel=1e-12), name


def test_derivatives_outside_of_the_support_are_zero_and_not_nan():
    cases = {
        "expon": (-1.0,),
        "gamma": (-1.0, 2.0),
        "beta": (1.5, 2.0, 2.0),
        "pareto": (0.5, 2.0),
        "uniform": (2.0,),
    }
    for name, values in cases.items():
        gradient = px.grad(getattr(stats, name).pdf)(*values)
        assert float(gradient) == 0.0, name


def test_batches_and_keywords():
    x = jnp.linspace(-1, 1, 5)
    rows = px.vmap(lambda loc: stats.norm.logpdf(x, loc=loc, scale=2.0))(jnp.arange(3.0))
    wanted = scipy.stats.norm.logpdf(np.linspace(-1, 1, 5), np.arange(3.0)[:, None], 2.0)
    np.testing.assert_allclose(np.asarray(rows), wanted, rtol=1e-6)
    with pytest.raises(TypeError, match="missing"):
        stats.beta.pdf(0.5)
    with pytest.raises(TypeError):
        stats.norm.pdf(0.5, 0, 1, 2)


def test_values_that_scipy_has_wrong():
    """The entropy is ½ log 2πeμ for large μ; SciPy's sum is cut off. Quantiles at 0 are the least value."""
    got = stats.poisson.entropy(jnp.asarray([0.0, 0.1, 10.0, 99.0, 101.0, 1e4, -1.0], dtype="float64"))
    wanted = [0.0, 0.3336772, 2.5614079, 3.7156, 3.7256, 6.0240975, np.nan]
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=2e-5)
    counts = np.arange(400)
    for mu in (30.0, 150.0):
        p = scipy.stats.poisson.pmf(counts, mu)
        exact = -np.sum(p[p > 0] * np.log(p[p > 0]))
        assert float(stats.poisson.entropy(jnp.asarray(mu, dtype="float64"))) == pytest.approx(
            exact, rel=1e-10
        )
    quantiles = stats.bernoulli.ppf(jnp.array([0.0, 0.8, 0.81, 1.0, -0.1]), 0.2)
    np.testing.assert_array_equal(np.asarray(quantiles), [0.0, 1.0, 1.0, 1.0, np.nan])
    assert float(stats.gumbel_r.ppf(0.0)) == -np.inf


# --- several numbers at once


def test_multinomial_and_dirichlet():
    p = np.array([0.2, 0.3, 0.5])
    for x in ([1, 2, 3], [6, 0, 0], [1, 2, 2]):
        wanted = scipy.stats.multinomial.pmf(x, 6, p)
        assert float(stats.multinomial.pmf(jnp.array(x), 6, jnp.asarray(p))) == pytest.approx(
            wanted, rel=1e-5
        )
    alpha = np.array([1.5, 2.0, 3.0])
    for x in (p, p[:2], np.stack([p, p[::-1]], 1)):
        wanted = scipy.stats.dirichlet.logpdf(x, alpha)
        got = stats.dirichlet.logpdf(jnp.asarray(x), jnp.asarray(alpha))
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-5)
    assert float(stats.dirichlet.pdf(jnp.array([0.5, 0.6, 0.2]), jnp.asarray(alpha))) == 0.0
    with pytest.raises(ValueError, match="first axis"):
        stats.dirichlet.logpdf(jnp.ones(5), jnp.asarray(alpha))
    check_grads(
        lambda a: stats.dirichlet.logpdf(jnp.asarray(p, dtype="float64"), a),
        (jnp.asarray(alpha, dtype="float64"),),
        2,
    )


def test_multivariate_normal():
    generator = np.random.default_rng(0)
    a = generator.normal(size=(3, 3))
    cov, mean, x = a @ a.T + np.eye(3), generator.normal(size=3), generator.normal(size=(4, 2, 3))
    wanted = scipy.stats.multivariate_normal.logpdf(x, mean, cov)
    wide = [jnp.asarray(v, dtype="float64") for v in (x, mean, cov)]
    for function in (stats.multivariate_normal.logpdf, px.jit(stats.multivariate_normal.logpdf)):
        np.testing.assert_allclose(np.asarray(function(*wide)), wanted, rtol=1e-12)
    many = stats.multivariate_normal.logpdf(wide[0], wide[1], jnp.broadcast_to(wide[2], (4, 2, 3, 3)))
    np.testing.assert_allclose(np.asarray(many), wanted, rtol=1e-12)
    isotropic = stats.multivariate_normal.logpdf(wide[0], wide[1], 2.0)
    np.testing.assert_allclose(
        np.asarray(isotropic), scipy.stats.multivariate_normal.logpdf(x, mean, 2.0), rtol=1e-12
    )
    single = stats.multivariate_normal.logpdf(jnp.float32(1.0), 0.0, 2.0)
    assert float(single) == pytest.approx(scipy.stats.norm.logpdf(1.0, 0, np.sqrt(2)), rel=1e-6)
    check_grads(lambda m, c: stats.multivariate_normal.pdf(wide[0], m, c @ c.T), (wide[1], wide[2]), 1)
    with pytest.raises(ValueError, match="cov must have shape"):
        stats.multivariate_normal.logpdf(jnp.ones(3), jnp.ones(3), jnp.ones((2, 2)))


@pytest.mark.parametrize("dimensions", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_kernel_density_estimates(dimensions, weighted):
    generator = np.random.default_rng(1)
    points, targets = generator.normal(size=(dimensions, 20)), generator.normal(size=(dimensions, 7))
    weights = generator.random(20) if weighted else None
    for method in ("scott", "silverman", 0.4):
        theirs = scipy.stats.gaussian_kde(points, method, weights)
        ours = stats.gaussian_kde(
            jnp.asarray(points, dtype="float64"),
            method,
            None if weights is None else jnp.asarray(weights, dtype="float64"),
        )
        np.testing.assert_allclose(np.asarray(ours.covariance), theirs.covariance, rtol=1e-12)
        np.testing.assert_allclose(np.asarray(ours.inv_cov), theirs.inv_cov, rtol=1e-10)
        assert float(ours.neff) == pytest.approx(theirs.neff, rel=1e-12)
        for function in (lambda kde, x: kde(x), px.jit(lambda kde, x: kde.evaluate(x))):
            got = function(ours, jnp.asarray(targets, dtype="float64"))
            np.testing.assert_allclose(np.asarray(got), theirs(targets), rtol=1e-11)
        np.testing.assert_allclose(np.asarray(ours.logpdf(targets)), theirs.logpdf(targets), rtol=1e-5)
        mean, cov = np.zeros(dimensions), np.eye(dimensions)
        assert float(ours.integrate_gaussian(mean, cov)) == pytest.approx(
            theirs.integrate_gaussian(mean, cov), rel=1e-10
        )
        assert float(ours.integrate_kde(ours)) == pytest.approx(theirs.integrate_kde(theirs), rel=1e-10)
        if dimensions == 1:
            assert float(ours.integrate_box_1d(-1.0, 2.0)) == pytest.approx(
                theirs.integrate_box_1d(-1, 2), rel=1e-10
            )
    sample = stats.gaussian_kde(jnp.asarray(points)).resample(px.random.key(0), (4000,))
    assert sample.shape == (dimensions, 4000)
    np.testing.assert_allclose(np.asarray(sample).mean(1), points.mean(1), atol=0.1)
    with pytest.raises(NotImplementedError):
        ours.set_bandwidth(1.0)
    with pytest.raises(ValueError, match="multiple elements"):
        stats.gaussian_kde(jnp.ones(1))


# --- samples


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_modes_ranks_and_errors_of_means(axis):
    x = np.random.default_rng(2).integers(0, 5, size=(9, 6)).astype(np.float32)
    for keepdims in (False, True):
        wanted = scipy.stats.mode(x, axis=axis, keepdims=keepdims)
        got = stats.mode(jnp.asarray(x), axis=axis, keepdims=keepdims)
        np.testing.assert_array_equal(np.asarray(got.mode), wanted.mode)
        np.testing.assert_array_equal(np.asarray(got.count), wanted.count)
        wanted = scipy.stats.sem(x, axis=axis, keepdims=keepdims)
        np.testing.assert_allclose(
            np.asarray(stats.sem(jnp.asarray(x), axis=axis, keepdims=keepdims)), wanted, rtol=1e-5
        )
    for method in ("average", "min", "max", "dense", "ordinal"):
        wanted = scipy.stats.rankdata(x, method, axis=axis)
        for function in (stats.rankdata, px.jit(stats.rankdata, static_argnames=("method", "axis"))):
            got = function(jnp.asarray(x), method=method, axis=axis)
            np.testing.assert_array_equal(np.asarray(got), wanted)


def test_samples_with_nan():
    x = jnp.array([1.0, jnp.nan, 3.0, jnp.nan])
    assert int(stats.mode(x).count) == 2
    assert np.isnan(np.asarray(stats.rankdata(x))).all()
    assert np.isnan(float(stats.sem(x)))
    wanted = scipy.stats.sem(np.asarray(x), nan_policy="omit")
    assert float(stats.sem(x, nan_policy="omit")) == pytest.approx(float(wanted), rel=1e-6)
    assert np.isnan(float(stats.mode(jnp.zeros(0)).mode))
    with pytest.raises(NotImplementedError, match="omit"):
        stats.mode(x, nan_policy="omit")
    with pytest.raises(ValueError, match="nan_policy"):
        stats.sem(x, nan_policy="ignore")
    with pytest.raises(ValueError, match="unknown method"):
        stats.rankdata(x, "best")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8"])
def test_ranks_that_the_dtype_of_the_elements_does_not_hold(dtype):
    x = np.random.default_rng(0).integers(-60, 60, 3001)
    for method in ("average", "ordinal", "max"):
        ranks = stats.rankdata(jnp.asarray(x, dtype), method)
        assert ranks.dtype == np.float32
        np.testing.assert_array_equal(ranks, scipy.stats.rankdata(x, method))
