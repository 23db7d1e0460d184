# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Random numbers from explicit keys, as in `jax.random`: the same key gives the same numbers, everywhere."""

from purax.random.choices import categorical as categorical
from purax.random.choices import choice as choice
from purax.random.choices import permutation as permutation
from purax.random.continuous import cauchy as cauchy
from purax.random.continuous import exponential as exponential
from purax.random.continuous import gumbel as gumbel
from purax.random.continuous import laplace as laplace
from purax.random.continuous import logistic as logistic
from purax.random.continuous import pareto as pareto
from purax.random.continuous import rayleigh as rayleigh
from purax.random.continuous import triangular as triangular
from purax.random.continuous import weibull_min as weibull_min
from purax.random.counts import binomial as binomial
from purax.random.counts import geometric as geometric
from purax.random.counts import multinomial as multinomial
from purax.random.counts import poisson as poisson
from purax.random.from_bits import bernoulli as bernoulli
from purax.random.from_bits import bits as bits
from purax.random.from_bits import rademacher as rademacher
from purax.random.from_bits import randint as randint
from purax.random.from_bits import uniform as uniform
from purax.random.gammas import ball as ball
from purax.random.gammas import beta as beta
from purax.random.gammas import chisquare as chisquare
from purax.random.gammas import dirichlet as dirichlet
from purax.random.gammas import f as f
from purax.random.gammas import gamma as gamma
from purax.random.gammas import generalized_normal as generalized_normal
from purax.random.gammas import loggamma as loggamma
from purax.random.gammas import t as t
from purax.random.keys import KeyReuseError as KeyReuseError
from purax.random.keys import PRNGKey as PRNGKey
from purax.random.keys import clone as clone
from purax.random.keys import fold_in as fold_in
from purax.random.keys import key as key
from purax.random.keys import key_data as key_data
from purax.random.keys import key_dtype as key_dtype
from purax.random.keys import key_impl as key_impl
from purax.random.keys import split as split
from purax.random.keys import wrap_key_data as wrap_key_data
from purax.random.normals import double_sided_maxwell as double_sided_maxwell
from purax.random.normals import lognormal as lognormal
from purax.random.normals import maxwell as maxwell
from purax.random.normals import normal as normal
from purax.random.normals import truncated_normal as truncated_normal
from purax.random.normals import wald as wald
from purax.random.vectors import multivariate_normal as multivariate_normal
from purax.random.vectors import orthogonal as orthogonal

__all__ = ['KeyReuseError', 'PRNGKey', 'ball', 'bernoulli', 'beta', 'binomial', 'bits', 'categorical', 'cauchy', 'chisquare', 'choice', 'clone', 'dirichlet', 'double_sided_maxwell', 'exponential', 'f', 'fold_in', 'gamma', 'generalized_normal', 'geometric', 'gumbel', 'key', 'key_data', 'key_dtype', 'key_impl', 'laplace', 'loggamma', 'logistic', 'lognormal', 'maxwell', 'multinomial', 'multivariate_normal', 'normal', 'orthogonal', 'pareto', 'permutation', 'poisson', 'rademacher', 'randint', 'rayleigh', 'split', 't', 'triangular', 'truncated_normal', 'uniform', 'wald', 'weibull_min', 'wrap_key_data']
