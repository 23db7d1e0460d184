# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Distributions and statistics, as `jax.scipy.stats`."""

from purax.scipy.stats import bernoulli as bernoulli
from purax.scipy.stats import beta as beta
from purax.scipy.stats import betabinom as betabinom
from purax.scipy.stats import binom as binom
from purax.scipy.stats import cauchy as cauchy
from purax.scipy.stats import chi2 as chi2
from purax.scipy.stats import dirichlet as dirichlet
from purax.scipy.stats import expon as expon
from purax.scipy.stats import gamma as gamma
from purax.scipy.stats import gennorm as gennorm
from purax.scipy.stats import geom as geom
from purax.scipy.stats import gumbel_l as gumbel_l
from purax.scipy.stats import gumbel_r as gumbel_r
from purax.scipy.stats import laplace as laplace
from purax.scipy.stats import logistic as logistic
from purax.scipy.stats import multinomial as multinomial
from purax.scipy.stats import multivariate_normal as multivariate_normal
from purax.scipy.stats import nbinom as nbinom
from purax.scipy.stats import norm as norm
from purax.scipy.stats import pareto as pareto
from purax.scipy.stats import poisson as poisson
from purax.scipy.stats import t as t
from purax.scipy.stats import truncnorm as truncnorm
from purax.scipy.stats import uniform as uniform
from purax.scipy.stats import vonmises as vonmises
from purax.scipy.stats import wrapcauchy as wrapcauchy
from purax.scipy.stats.kde import gaussian_kde as gaussian_kde
from purax.scipy.stats.summaries import mode as mode
from purax.scipy.stats.summaries import rankdata as rankdata
from purax.scipy.stats.summaries import sem as sem

