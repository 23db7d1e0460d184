"""Distributions and statistics, as `jax.scipy.stats`."""

# ruff: noqa: F401
from purax.scipy.stats import (
    bernoulli,
    beta,
    betabinom,
    binom,
    cauchy,
    chi2,
    dirichlet,
    expon,
    gamma,
    gennorm,
    geom,
    gumbel_l,
    gumbel_r,
    laplace,
    logistic,
    multinomial,
    multivariate_normal,
    nbinom,
    norm,
    pareto,
    poisson,
    t,
    truncnorm,
    uniform,
    vonmises,
    wrapcauchy,
)
from purax.scipy.stats.kde import gaussian_kde
from purax.scipy.stats.summaries import mode, rankdata, sem
