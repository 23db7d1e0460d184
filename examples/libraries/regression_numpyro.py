"""A Bayesian regression in NumPyro, sampled by NUTS: how diabetes progresses with four measurements (scikit-learn).

Run it on jax with `python regression_numpyro.py` and on purax with `purax run regression_numpyro.py`. The means are the
same to the digits shown but the last: rounding differs, and after many steps so does the chain.
"""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS
from sklearn.datasets import load_diabetes

jax.config.update("jax_threefry_partitionable", True)  # the random numbers of current versions of JAX
CHOSEN = {"body mass": 2, "blood pressure": 3, "cholesterol": 6, "triglycerides": 8}


def model(measured: jax.Array, progress: jax.Array | None = None) -> None:
    offset = numpyro.sample("offset", dist.Normal(0, 1))
    effects = numpyro.sample("effects", dist.Normal(0, 1).expand([measured.shape[1]]).to_event(1))
    noise = numpyro.sample("noise", dist.HalfNormal(1))
    freedom = numpyro.sample("freedom", dist.Gamma(2.0, 0.1))
    with numpyro.plate("patients", measured.shape[0]):
        numpyro.sample("progress", dist.StudentT(freedom, offset + measured @ effects, noise), obs=progress)


def main() -> None:
    data = load_diabetes()
    measured = jnp.asarray(data.data[:, list(CHOSEN.values())] / data.data.std(), jnp.float32)
    progress = jnp.asarray((data.target - data.target.mean()) / data.target.std(), jnp.float32)
    sampler = MCMC(NUTS(model), num_warmup=300, num_samples=700, progress_bar=False)
    sampler.run(jax.random.PRNGKey(0), measured, progress)
    samples = sampler.get_samples()
    for name, mean in zip(CHOSEN, samples["effects"].mean(0), strict=True):
        print(f"effect of {name}: {float(mean):.2f}")
    print(f"noise: {float(samples['noise'].mean()):.2f}")
    print(f"divergent: {int(sampler.get_extra_fields()['diverging'].sum())}")


if __name__ == "__main__":
    main()
