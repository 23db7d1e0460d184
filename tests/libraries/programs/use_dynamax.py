"""Dynamax: the Kalman filter of a linear model against its equations in NumPy."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from dynamax.linear_gaussian_ssm import LinearGaussianSSM

model = LinearGaussianSSM(state_dim=2, emission_dim=1)
F, H = np.array([[1.0, 0.1], [0.0, 0.9]], np.float32), np.array([[1.0, 0.0]], np.float32)
Q, R = 0.01 * np.eye(2, dtype=np.float32), 0.1 * np.eye(1, dtype=np.float32)
parameters, _ = model.initialize(
    jr.PRNGKey(0),
    initial_mean=jnp.zeros(2),
    initial_covariance=jnp.eye(2),
    dynamics_weights=F,
    dynamics_covariance=Q,
    emission_weights=H,
    emission_covariance=R,
)
_, emissions = model.sample(parameters, jr.PRNGKey(1), 30)
filtered = jax.jit(model.filter)(parameters, emissions)

mean, covariance = np.zeros(2), np.eye(2)
for t, y in enumerate(np.asarray(emissions)):
    S = H @ covariance @ H.T + R
    gain = covariance @ H.T @ np.linalg.inv(S)
    mean, covariance = mean + gain @ (y - H @ mean), covariance - gain @ S @ gain.T
    np.testing.assert_allclose(filtered.filtered_means[t], mean, atol=1e-4)
    mean, covariance = F @ mean, F @ covariance @ F.T + Q
slope = jax.grad(lambda y: model.marginal_log_prob(parameters, y))(emissions)
assert bool(jnp.isfinite(slope).all())
print("done")
