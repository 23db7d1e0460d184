"""Random numbers from explicit keys, as in `jax.random`: the same key gives the same numbers, everywhere.

>>> from purax import random
>>> key = random.PRNGKey(0)
>>> key, subkey = random.split(key)
>>> random.normal(subkey, (2,)).shape
(2,)
"""

from purax.random.choices import categorical, choice, permutation
from purax.random.continuous import (
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    pareto,
    rayleigh,
    triangular,
    weibull_min,
)
from purax.random.keys import (
    KeyReuseError,
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)
from purax.random.uniform import bernoulli, bits, rademacher, randint, uniform
