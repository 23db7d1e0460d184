"""Distrax: densities against SciPy's, samples, bijectors and their Jacobians, divergences, mixtures."""

import distrax
import jax
import jax.numpy as jnp
import numpy as np
import scipy.stats

key = jax.random.PRNGKey(0)
points = np.array([0.2, 0.5, 0.9])
for ours, theirs in (
    (distrax.Normal(0.5, 2.0), scipy.stats.norm(0.5, 2)),
    (distrax.Gamma(2.0, 3.0), scipy.stats.gamma(2, scale=1 / 3)),
    (distrax.Beta(2.0, 3.0), scipy.stats.beta(2, 3)),
    (distrax.Laplace(0.5, 2.0), scipy.stats.laplace(0.5, 2)),
    (distrax.Gumbel(0.5, 2.0), scipy.stats.gumbel_r(0.5, 2)),
    (distrax.Uniform(0.0, 2.0), scipy.stats.uniform(0, 2)),
    (distrax.VonMises(0.5, 2.0), scipy.stats.vonmises(2.0, loc=0.5)),
):
    name = type(ours).__name__
    np.testing.assert_allclose(jax.jit(ours.log_prob)(points), theirs.logpdf(points), rtol=2e-4, err_msg=name)
    samples, densities = ours.sample_and_log_prob(seed=key, sample_shape=(2000,))
    np.testing.assert_allclose(densities, ours.log_prob(samples), rtol=1e-4, atol=1e-5, err_msg=name)
    assert abs(float(jnp.mean(samples)) - theirs.mean()) < 0.15, name
    np.testing.assert_allclose(ours.entropy(), theirs.entropy(), rtol=1e-3, err_msg=name)

categorical = distrax.Categorical(logits=jnp.array([0.0, 1.0, 2.0]))
np.testing.assert_allclose(categorical.probs, np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum(), rtol=1e-6)
frequencies = jnp.bincount(categorical.sample(seed=key, sample_shape=(4000,)), length=3) / 4000
np.testing.assert_allclose(frequencies, categorical.probs, atol=0.03)
other = distrax.Categorical(probs=jnp.array([0.2, 0.3, 0.5]))
expected = float(jnp.sum(categorical.probs * jnp.log(categorical.probs / other.probs)))
np.testing.assert_allclose(categorical.kl_divergence(other), expected, rtol=1e-5)
np.testing.assert_allclose(distrax.Normal(0.0, 1.0).kl_divergence(distrax.Normal(1.0, 1.0)), 0.5, rtol=1e-6)

covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
gaussian = distrax.MultivariateNormalFullCovariance(jnp.zeros(2), jnp.asarray(covariance))
np.testing.assert_allclose(
    gaussian.log_prob(jnp.ones(2)),
    scipy.stats.multivariate_normal([0, 0], covariance).logpdf([1, 1]),
    rtol=1e-5,
)
mixture = distrax.MixtureSameFamily(categorical, distrax.Normal(jnp.array([-2.0, 0.0, 2.0]), jnp.ones(3)))
expected = np.log(np.sum(np.asarray(categorical.probs) * scipy.stats.norm([-2, 0, 2], 1).pdf(0.3)))
np.testing.assert_allclose(mixture.log_prob(0.3), expected, rtol=1e-5)

spline = distrax.RationalQuadraticSpline(jax.random.normal(key, (2, 3 * 4 + 1)), -3.0, 3.0)
coupling = distrax.MaskedCoupling(
    jnp.array([True, False]),
    lambda x: jnp.tanh(x) @ jnp.ones((2, 4)),
    lambda p: distrax.ScalarAffine(p[..., :2], p[..., 2:]),
)
flow = distrax.Chain([distrax.Block(spline, 1), coupling, distrax.Block(distrax.ScalarAffine(0.5, 2.0), 1)])
x = jnp.array([0.3, -0.7])
z, determinant = jax.jit(flow.forward_and_log_det)(x)
np.testing.assert_allclose(flow.inverse(z), x, rtol=1e-3, atol=1e-4)
jacobian = jax.jacfwd(flow.forward)(x)
np.testing.assert_allclose(determinant, jnp.linalg.slogdet(jacobian)[1], rtol=1e-3, atol=1e-4)
transformed = distrax.Transformed(distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2)), flow)
draws = jax.jit(lambda key: transformed.sample(seed=key, sample_shape=(8,)))(key)
assert draws.shape == (8, 2) and np.isfinite(jax.vmap(jax.grad(transformed.log_prob))(draws)).all()
np.testing.assert_allclose(distrax.Sigmoid().forward_log_det_jacobian(0.3), np.log(0.244458), rtol=1e-4)

hidden = distrax.HMM(
    init_dist=distrax.Categorical(probs=jnp.array([0.5, 0.5])),
    trans_dist=distrax.Categorical(probs=jnp.array([[0.9, 0.1], [0.2, 0.8]])),
    obs_dist=distrax.Normal(jnp.array([-1.0, 1.0]), jnp.ones(2)),
)
states, _ = hidden.sample(seed=key, seq_len=5)
assert states.shape == (5,)
smoothed = hidden.forward_backward(jnp.array([-1.0, -1.2, 1.5, 1.1]))[2]
assert jnp.argmax(smoothed, 1).tolist() == [0, 0, 1, 1]
print("done")
