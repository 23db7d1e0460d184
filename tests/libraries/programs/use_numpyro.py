"""NumPyro: a regression by NUTS and by variational inference, predictions, and discrete variables summed over."""

import importlib.util

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, init_to_value, log_likelihood
from numpyro.infer.autoguide import AutoNormal

x = np.linspace(-1, 1, 40)
y = 1.5 * x + 0.3 + 0.1 * np.sin(17 * x)


def model(x, y=None):
    offset = numpyro.sample("offset", dist.Normal(0, 1))
    slope = numpyro.sample("slope", dist.Normal(0, 1))
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    with numpyro.plate("points", len(x)):
        numpyro.sample("y", dist.Normal(offset + slope * x, noise), obs=y)


slope, offset = np.polyfit(x, y, 1)
sampler = MCMC(
    NUTS(model), num_warmup=200, num_samples=200, num_chains=2, chain_method="vectorized", progress_bar=False
)
sampler.run(jax.random.PRNGKey(0), x, y)
samples = sampler.get_samples()
np.testing.assert_allclose(samples["slope"].mean(), slope, atol=0.03)
np.testing.assert_allclose(samples["offset"].mean(), offset, atol=0.03)
summary = numpyro.diagnostics.summary(sampler.get_samples(group_by_chain=True))
assert summary["slope"]["r_hat"] < 1.1 and sampler.get_extra_fields()["diverging"].sum() == 0
predicted = Predictive(model, samples)(jax.random.PRNGKey(1), x)["y"]
assert predicted.shape == (400, 40)
np.testing.assert_allclose(predicted.mean(0), slope * x + offset, atol=0.1)
assert log_likelihood(model, samples, x, y)["y"].shape == (400, 40)

guide = AutoNormal(model)
inference = SVI(model, guide, numpyro.optim.Adam(0.02), Trace_ELBO(num_particles=4))
result = inference.run(jax.random.PRNGKey(2), 600, x, y, progress_bar=False)
assert result.losses[-50:].mean() < result.losses[:50].mean()
np.testing.assert_allclose(guide.median(result.params)["slope"], slope, atol=0.1)

if importlib.util.find_spec("funsor"):  # which sums over discrete variables
    data = np.concatenate([np.linspace(-2.5, -1.5, 20), np.linspace(1.5, 2.5, 10)])

    def mixture(data):
        weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(2)))
        with numpyro.plate("components", 2):
            centers = numpyro.sample("centers", dist.Normal(0, 3))
        with numpyro.plate("data", len(data)):
            which = numpyro.sample("which", dist.Categorical(weights), infer={"enumerate": "parallel"})
            numpyro.sample("value", dist.Normal(centers[which], 0.5), obs=data)

    kernel = NUTS(mixture, init_strategy=init_to_value(values={"centers": jnp.array([-1.0, 1.0])}))
    sampler = MCMC(kernel, num_warmup=100, num_samples=100, progress_bar=False)
    sampler.run(jax.random.PRNGKey(3), data)
    np.testing.assert_allclose(sampler.get_samples()["centers"].mean(0), [-2, 2], atol=0.2)
    np.testing.assert_allclose(sampler.get_samples()["weights"].mean(0), [2 / 3, 1 / 3], atol=0.1)
print("done")
