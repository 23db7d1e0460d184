"""SciPy's array API support: SciPy's own functions on arrays of JAX, against the same functions on NumPy's."""

import os

os.environ["SCIPY_ARRAY_API"] = "1"

import jax
import jax.numpy as jnp
import numpy as np
import scipy.cluster.hierarchy
import scipy.cluster.vq
import scipy.fft
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.special
import scipy.stats

jax.config.update("jax_enable_x64", True)
numbers = np.random.default_rng(0)
x = numbers.normal(size=(6, 5))
y = numbers.normal(size=(6, 5))
z = x + 1j * y


def same(function, *args, **options):
    """The function's value on both kinds of arrays."""
    wanted = function(*args, **options)
    given = function(*[jnp.asarray(a) if isinstance(a, np.ndarray) else a for a in args], **options)
    ours = jax.tree.leaves(tuple(given) if isinstance(given, tuple) else given)
    for a, b in zip(ours, jax.tree.leaves(wanted), strict=True):
        assert isinstance(a, jax.Array), (function, type(a))
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


assert jnp.ones(1).__array_namespace__().__name__ == "jax.numpy"
same(scipy.fft.fft, z)
same(scipy.fft.rfftn, x)
same(scipy.fft.fftshift, x)
same(scipy.special.logsumexp, x, axis=1)
same(scipy.special.logsumexp, z, axis=0)
same(scipy.special.softmax, x, axis=1)
same(scipy.special.log_softmax, x)
same(scipy.special.erf, x)
same(scipy.special.gammaln, np.abs(x))
same(scipy.special.betainc, np.abs(x) + 1, np.abs(y) + 1, np.full((6, 5), 0.3))
same(scipy.stats.zscore, x)
same(scipy.stats.moment, x, order=3)
same(scipy.stats.skew, x)
same(scipy.stats.kurtosis, x)
same(scipy.stats.pearsonr, x[:, 0], y[:, 0])
same(scipy.stats.ttest_ind, x, y)
same(scipy.stats.gmean, np.abs(x) + 1)
same(scipy.stats.entropy, np.abs(x))
same(scipy.stats.variation, x + 3)
same(scipy.cluster.vq.whiten, x)
same(scipy.signal.detrend, x)
same(scipy.signal.fftconvolve, x, y)
same(scipy.optimize.rosen, x[0])
infinite = jnp.asarray([complex(-np.inf, 0), complex(-np.inf, 0)])
assert scipy.special.logsumexp(infinite) == -np.inf

bounded = scipy.stats.Normal(mu=jnp.asarray(1.0), sigma=jnp.asarray(2.0)) if hasattr(scipy.stats, "Normal") else None
if bounded is not None:
    np.testing.assert_allclose(np.asarray(bounded.cdf(1.0)), 0.5)
print("done")
