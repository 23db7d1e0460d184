"""Draws follow their distributions: Kolmogorov–Smirnov and χ² tests, moments, symmetries, derivatives.

The seeds are fixed, so a test passes always or never; a p-value below 1e-4 would be seen once in ten thousand seeds.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import purax
import purax.numpy as jnp
from purax import random

pytestmark = pytest.mark.sampled(3)

SIZE = 4000
SIGNIFICANCE = 1e-4

CONTINUOUS = {
    "uniform": (lambda key: random.uniform(key, (SIZE,)), stats.uniform()),
    "uniform bounds": (lambda key: random.uniform(key, (SIZE,), minval=-2.0, maxval=3.0), stats.uniform(-2, 5)),
    "uniform float64": (lambda key: random.uniform(key, (SIZE,), "float64"), stats.uniform()),
    "normal": (lambda key: random.normal(key, (SIZE,)), stats.norm()),
    "normal float64": (lambda key: random.normal(key, (SIZE,), "float64"), stats.norm()),
    "normal complex": (lambda key: random.normal(key, (SIZE,), "complex64").real, stats.norm(scale=0.5**0.5)),
    "truncated_normal": (lambda key: random.truncated_normal(key, -1.0, 2.0, (SIZE,)), stats.truncnorm(-1, 2)),
    "lognormal": (lambda key: random.lognormal(key, 0.5, (SIZE,)), stats.lognorm(0.5)),
    "maxwell": (lambda key: random.maxwell(key, (SIZE,)), stats.maxwell()),
    "wald": (lambda key: random.wald(key, 2.0, (SIZE,)), stats.invgauss(2.0)),
    "exponential": (lambda key: random.exponential(key, (SIZE,)), stats.expon()),
    "laplace": (lambda key: random.laplace(key, (SIZE,)), stats.laplace()),
    "logistic": (lambda key: random.logistic(key, (SIZE,)), stats.logistic()),
    "cauchy": (lambda key: random.cauchy(key, (SIZE,)), stats.cauchy()),
    "gumbel": (lambda key: random.gumbel(key, (SIZE,)), stats.gumbel_r()),
    "gumbel high": (lambda key: random.gumbel(key, (SIZE,), mode="high"), stats.gumbel_r()),
    "pareto": (lambda key: random.pareto(key, 2.5, (SIZE,)), stats.pareto(2.5)),
    "rayleigh": (lambda key: random.rayleigh(key, 2.0, (SIZE,)), stats.rayleigh(scale=2)),
    "weibull_min": (lambda key: random.weibull_min(key, 2.0, 1.5, (SIZE,)), stats.weibull_min(1.5, scale=2)),
    "triangular": (lambda key: random.triangular(key, 0.0, 1.0, 3.0, (SIZE,)), stats.triang(1 / 3, 0, 3)),
    "gamma": (lambda key: random.gamma(key, 2.5, (SIZE,)), stats.gamma(2.5)),
    "gamma small": (lambda key: random.gamma(key, 0.3, (SIZE,)), stats.gamma(0.3)),
    "loggamma": (lambda key: random.loggamma(key, 0.3, (SIZE,)), stats.loggamma(0.3)),
    "beta": (lambda key: random.beta(key, 2.0, 0.7, (SIZE,)), stats.beta(2, 0.7)),
    "chisquare": (lambda key: random.chisquare(key, 3.0, (SIZE,)), stats.chi2(3)),
    "t": (lambda key: random.t(key, 3.0, (SIZE,)), stats.t(3)),
    "f": (lambda key: random.f(key, 3.0, 8.0, (SIZE,)), stats.f(3, 8)),
    "generalized_normal": (lambda key: random.generalized_normal(key, 1.5, (SIZE,)), stats.gennorm(1.5)),
    "double_sided_maxwell": (
        lambda key: jnp.abs(random.double_sided_maxwell(key, 1.0, 2.0, (SIZE,)) - 1) / 2,
        stats.maxwell(),
    ),
    "ball": (lambda key: jnp.sqrt((random.ball(key, 3, shape=(SIZE,)) ** 2).sum(axis=1)) ** 3, stats.uniform()),
}  # fmt: skip
DISCRETE = {
    "randint": (lambda key: random.randint(key, (SIZE,), -3, 7), stats.randint(-3, 7)),
    "randint uint8": (lambda key: random.randint(key, (SIZE,), 0, 256, "uint8") // 16, stats.randint(0, 16)),
    "bernoulli": (lambda key: random.bernoulli(key, 0.3, (SIZE,)), stats.bernoulli(0.3)),
    "bernoulli high": (lambda key: random.bernoulli(key, 0.3, (SIZE,), mode="high"), stats.bernoulli(0.3)),
    "rademacher": (lambda key: (random.rademacher(key, (SIZE,)) + 1) // 2, stats.bernoulli(0.5)),
    "geometric": (lambda key: random.geometric(key, 0.4, (SIZE,)), stats.geom(0.4)),
    "poisson": (lambda key: random.poisson(key, 3.0, (SIZE,)), stats.poisson(3)),
    "poisson large": (lambda key: random.poisson(key, 40.0, (SIZE,)), stats.poisson(40)),
    "binomial": (lambda key: random.binomial(key, 7, 0.4, (SIZE,)), stats.binom(7, 0.4)),
    "binomial large": (lambda key: random.binomial(key, 60, 0.6, (SIZE,)), stats.binom(60, 0.6)),
    "choice": (lambda key: random.choice(key, 5, (SIZE,)), stats.randint(0, 5)),
    "choice weighted": (
        lambda key: random.choice(key, 3, (SIZE,), p=np.float32([0.36, 0.48, 0.16])),
        stats.binom(2, 0.4),
    ),
    "categorical": (
        lambda key: random.categorical(key, np.log(np.float32([0.36, 0.48, 0.16])), shape=(SIZE,)),
        stats.binom(2, 0.4),
    ),
    "multinomial": (
        lambda key: random.multinomial(key, 6.0, np.float32([0.2, 0.5, 0.3]), shape=(SIZE, 3))[:, 1],
        stats.binom(6, 0.5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name):
    draw, distribution = CONTINUOUS[name]
    drawn = np.asarray(draw(random.key(0)), np.float64)
    assert stats.kstest(drawn, distribution.cdf).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name):
    draw, distribution = DISCRETE[name]
    drawn = np.asarray(draw(random.key(0))).astype(int)
    assert distribution.support()[0] <= drawn.min() and drawn.max() <= distribution.support()[1]
    values = np.arange(drawn.min(), drawn.max() + 1)
    expected = SIZE * distribution.pmf(values)
    counts = np.array([(drawn == value).sum() for value in values])
    frequent = expected >= 5
    rest = SIZE - expected[frequent].sum()
    observed = [*counts[frequent], SIZE - counts[frequent].sum()]
    wanted = [*expected[frequent], rest]
    if rest < 1:
        observed, wanted = observed[:-1], [x * sum(observed[:-1]) / sum(wanted[:-1]) for x in wanted[:-1]]
    assert stats.chisquare(observed, wanted).pvalue > SIGNIFICANCE


def test_different_keys_are_independent():
    drawn = np.asarray(purax.vmap(lambda key: random.normal(key, (SIZE,)))(random.split(random.key(1), 6)))
    correlations = np.corrcoef(drawn)[np.triu_indices(6, 1)]
    assert np.abs(correlations).max() < 4 / SIZE**0.5
    folded = np.stack(
        [np.asarray(random.normal(random.fold_in(random.key(1), i), (SIZE,))) for i in range(4)]
    )
    assert np.abs(np.corrcoef(folded)[np.triu_indices(4, 1)]).max() < 4 / SIZE**0.5


def test_every_bit_is_random():
    for dtype in ("uint8", "uint16", "uint32", "uint64"):
        bits = np.asarray(random.bits(random.key(2), (SIZE,), dtype))
        ones = np.unpackbits(bits.view(np.uint8).reshape(SIZE, -1), axis=1).mean(axis=0)
        assert np.abs(ones - 0.5).max() < 4.5 * 0.5 / SIZE**0.5


def test_dirichlet():
    alpha = np.array([0.5, 1.0, 3.0], np.float32)
    drawn = np.asarray(random.dirichlet(random.key(0), alpha, (SIZE,)), np.float64)
    np.testing.assert_allclose(drawn.sum(axis=1), 1, rtol=1e-6)
    for i in range(3):
        assert (
            stats.kstest(drawn[:, i], stats.beta(alpha[i], alpha.sum() - alpha[i]).cdf).pvalue > SIGNIFICANCE
        )


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_multivariate_normal(method):
    mean, covariance = np.array([1.0, -2.0, 0.0]), np.array([[2.0, 0.5, 0], [0.5, 1, -0.3], [0, -0.3, 0.5]])
    drawn = np.asarray(
        random.multivariate_normal(random.key(0), mean, covariance, (SIZE,), method=method), float
    )
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), (drawn - mean).T)
    for row in whitened:
        assert stats.kstest(row, stats.norm().cdf).pvalue > SIGNIFICANCE
    np.testing.assert_allclose(np.cov(whitened), np.eye(3), atol=5 / SIZE**0.5)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64"])
@pytest.mark.parametrize(("n", "m"), [(4, 4), (2, 5), (5, 2)])
def test_orthogonal(dtype, n, m):
    q = np.asarray(random.orthogonal(random.key(0), n, (300,), dtype, m))
    inner = q @ q.conj().swapaxes(-1, -2) if n <= m else q.conj().swapaxes(-1, -2) @ q
    np.testing.assert_allclose(inner, np.broadcast_to(np.eye(min(n, m)), inner.shape), atol=2e-6)
    assert np.abs(q.mean(axis=0)).max() < 5 / 300**0.5


@pytest.mark.parametrize("p", [1.0, 2.0, 4.0])
def test_balls_are_filled_evenly(p):
    x = np.asarray(random.ball(random.key(0), 4, p, (SIZE,)), np.float64)
    radius = (np.abs(x) ** p).sum(axis=1) ** (1 / p)
    assert radius.max() <= 1 + 1e-6
    assert stats.kstest(radius**4, stats.uniform().cdf).pvalue > SIGNIFICANCE
    assert abs(x.mean()) < 0.05


@pytest.mark.parametrize("independent", [False, True])
def test_permutations_permute(independent):
    x = np.arange(60).reshape(20, 3)
    for axis in (0, 1):
        y = np.asarray(random.permutation(random.key(0), x, axis=axis, independent=independent))
        np.testing.assert_array_equal(np.sort(y, axis=axis), x)
        lines = y - y.take([0], axis=1 - axis)
        together = (lines == lines.take([0], axis=axis)).all()
        assert together != independent


def test_all_orders_are_equally_likely():
    orders = np.asarray(
        purax.vmap(lambda key: random.permutation(key, 4))(random.split(random.PRNGKey(0), SIZE))
    )
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > SIGNIFICANCE


def test_samples_without_replacement_are_different():
    weights = np.float32([0.05, 0.1, 0.15, 0.2, 0.5])
    drawn = np.asarray(
        purax.vmap(lambda key: random.choice(key, 5, (3,), replace=False, p=weights))(
            random.split(random.PRNGKey(0), SIZE)
        )
    )
    assert all(len(set(row)) == 3 for row in drawn)
    assert (
        stats.chisquare(np.bincount(drawn[:, 0]), SIZE * weights / weights.sum(dtype=float)).pvalue
        > SIGNIFICANCE
    )
    logits = np.log(weights)
    drawn = np.asarray(random.categorical(random.key(0), np.stack([logits] * 4), shape=(5, 4), replace=False))
    assert (np.sort(drawn, axis=0) == np.arange(5)[:, None]).all()


def test_parameters_out_of_range_end():
    """Loops end whatever the parameters are."""
    odd = np.float32([0, -1, np.nan, np.inf, -np.inf, 1e30])
    key = random.PRNGKey(0)
    trials, probability = (x.ravel() for x in np.meshgrid(odd, np.float32([0, 0.5, 1, -1, 2, np.nan])))
    counts = np.asarray(random.binomial(key, trials, probability))
    bad = ~(trials >= 0) | ~((probability >= 0) & (probability <= 1))
    np.testing.assert_array_equal(np.isnan(counts), bad)
    assert np.isinf(counts[~bad & np.isinf(trials)]).all()
    assert random.gamma(key, odd).shape == random.poisson(key, odd).shape == (6,)
    np.testing.assert_array_equal(random.poisson(key, odd)[:3], [0, -1, -1])


# --- derivatives with respect to parameters


def slope(function, x, step=1e-4):
    """A difference quotient in float64."""
    return (function(x + step) - function(x - step)) / (2 * step)


@pytest.mark.parametrize(
    ("name", "draw", "quantile"),
    [
        (
            "gamma",
            lambda a: random.gamma(random.key(0), a, (200,), "float64"),
            lambda q, a: stats.gamma(a).ppf(q),
        ),
        (
            "loggamma",
            lambda a: random.loggamma(random.key(0), a, (200,), "float64"),
            lambda q, a: stats.loggamma(a).ppf(q),
        ),
    ],
)
@pytest.mark.parametrize("a", [0.02, 0.4, 1.5, 20.0])
def test_gamma_samples_move_along_quantiles(name, draw, quantile, a):
    x = jnp.asarray(a, "float64")
    drawn, tangent = purax.jvp(draw, (x,), (jnp.ones_like(x),))
    drawn = np.asarray(drawn)
    own = stats.gamma(a) if name == "gamma" else stats.loggamma(a)
    q = own.cdf(drawn)
    middle = (q > 1e-3) & (q < 1 - 1e-3) & (drawn != 0)
    want = slope(lambda a: quantile(q[middle], a), a, 1e-5 * a)
    np.testing.assert_allclose(np.asarray(tangent)[middle], want, rtol=2e-4, atol=1e-8)


def test_gradients_of_small_log_gammas_are_finite():
    gradient = purax.grad(lambda a: random.loggamma(random.key(0), a, (50,)).sum())(np.float32(1e-3))
    assert np.isfinite(gradient)
    assert gradient > 0


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: random.uniform(random.key(0), (20,), "float64", x, 2 * x),
        lambda x: random.truncated_normal(random.key(0), -x, 2 * x, (20,), "float64"),
        lambda x: random.lognormal(random.key(0), x, (20,), "float64"),
        lambda x: random.pareto(random.key(0), x, (20,), "float64"),
        lambda x: random.weibull_min(random.key(0), x, 2 * x, (20,), "float64"),
        lambda x: random.rayleigh(random.key(0), x, (20,), "float64"),
        lambda x: random.triangular(random.key(0), x, 2 * x, 3 * x, (20,), "float64"),
        lambda x: random.double_sided_maxwell(random.key(0), x, 2 * x, (20,), "float64"),
        lambda x: random.multivariate_normal(random.key(0), x * np.ones(2), x * np.eye(2), (20,), "float64"),
    ],
)
def test_draws_are_differentiable(draw):
    x = jnp.asarray(0.7, "float64")
    drawn, tangent = purax.jvp(draw, (x,), (jnp.ones_like(x),))
    assert drawn.dtype == np.float64
    np.testing.assert_allclose(
        tangent, slope(lambda x: np.asarray(draw(jnp.asarray(x, "float64"))), 0.7, 1e-6), rtol=1e-4, atol=1e-6
    )
    gradient = purax.grad(lambda x: draw(x).sum())(x)
    np.testing.assert_allclose(gradient, np.asarray(tangent).sum(), rtol=1e-9)


def test_choice_among_numbers_gives_the_default_integers():
    key = random.PRNGKey(0)
    with purax.enable_x64(True):
        for arguments in ({}, {"p": np.full(5, 0.2)}, {"p": np.full(5, 0.2), "replace": False}):
            assert random.choice(key, 5, (3,), **arguments).dtype == np.int64
            assert random.choice(key, np.arange(5, dtype=np.int8), (3,), **arguments).dtype == np.int8
