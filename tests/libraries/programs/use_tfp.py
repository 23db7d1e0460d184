"""TensorFlow Probability on JAX: densities against SciPy, bijectors, and a chain of Hamiltonian Monte Carlo."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats
from tensorflow_probability.substrates import jax as tfp

tfd, tfb = tfp.distributions, tfp.bijectors
x = np.array([0.3, 1.2, 2.5], np.float32)
for ours, theirs in (
    (tfd.Normal(1.0, 2.0), stats.norm(1, 2)),
    (tfd.Gamma(2.0, 1.5), stats.gamma(2, scale=1 / 1.5)),
    (tfd.StudentT(4.0, 0.0, 1.0), stats.t(4)),
    (tfd.LogNormal(0.1, 0.7), stats.lognorm(0.7, scale=np.exp(0.1))),
):
    np.testing.assert_allclose(jax.jit(ours.log_prob)(x), theirs.logpdf(x), rtol=2e-5)

flow = tfb.Chain([tfb.Softplus(), tfb.Shift(1.0), tfb.Scale(2.0)])
np.testing.assert_allclose(flow.inverse(flow.forward(x)), x, rtol=1e-4)
slope = jax.vmap(jax.grad(flow.forward))(x)
np.testing.assert_allclose(flow.forward_log_det_jacobian(x), np.log(slope), rtol=1e-4, atol=1e-5)


@jax.jit
def chain(key):
    kernel = tfp.mcmc.HamiltonianMonteCarlo(tfd.Normal(1.0, 0.5).log_prob, 0.3, 4)
    return tfp.mcmc.sample_chain(
        600, jnp.zeros(8), kernel=kernel, num_burnin_steps=100, trace_fn=None, seed=key
    )


draws = chain(jax.random.PRNGKey(0))
np.testing.assert_allclose([jnp.mean(draws), jnp.std(draws)], [1.0, 0.5], atol=0.05)
print("done")
