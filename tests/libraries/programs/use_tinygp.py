"""tinygp: the likelihood of a Gaussian process, its derivative, and predictions, against formulas of NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
from tinygp import GaussianProcess, kernels

x = np.linspace(0.0, 4.0, 12).astype(np.float32)
y = np.sin(x)


@jax.jit
def likelihood(log_scale):
    kernel = 1.5 * kernels.Matern52(jnp.exp(log_scale)) + kernels.ExpSquared(0.7)
    return GaussianProcess(kernel, x, diag=0.05).log_probability(y)


def covariance(scale):
    r = np.sqrt(5.0) * np.abs(x[:, None] - x) / scale
    smooth = np.exp(-0.5 * ((x[:, None] - x) / 0.7) ** 2)
    return 1.5 * (1 + r + r**2 / 3) * np.exp(-r) + smooth


full = covariance(1.0).astype(np.float64) + 0.05 * np.eye(len(x))
sign, logdet = np.linalg.slogdet(full)
wanted = -0.5 * (y @ np.linalg.solve(full, y) + logdet + len(x) * np.log(2 * np.pi))
np.testing.assert_allclose(likelihood(0.0), wanted, rtol=1e-4)

step = 1e-2
slope = (likelihood(step) - likelihood(-step)) / (2 * step)
np.testing.assert_allclose(jax.grad(likelihood)(0.0), slope, rtol=2e-2)

gp = GaussianProcess(1.5 * kernels.Matern52(1.0) + kernels.ExpSquared(0.7), x, diag=0.05)
conditioned = gp.condition(y, x[:5]).gp
np.testing.assert_allclose(conditioned.loc, covariance(1.0)[:5] @ np.linalg.solve(full, y), atol=2e-3)
assert conditioned.variance.shape == (5,)
print("done")
