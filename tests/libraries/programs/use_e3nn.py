"""e3nn-jax: tensor products and spherical harmonics rotate as their representations do."""

import e3nn_jax as e3nn
import jax
import numpy as np

rotation = e3nn.rand_matrix(jax.random.PRNGKey(0), ())
x = e3nn.normal("2x0e + 1o + 2e", jax.random.PRNGKey(1), (4,))
y = e3nn.normal("1o + 1e", jax.random.PRNGKey(2), (4,))
np.testing.assert_allclose(
    e3nn.tensor_product(x, y).transform_by_matrix(rotation).array,
    e3nn.tensor_product(x.transform_by_matrix(rotation), y.transform_by_matrix(rotation)).array,
    atol=1e-4,
)
v = e3nn.normal("1o", jax.random.PRNGKey(3), (5,))
harmonics = jax.jit(lambda v: e3nn.spherical_harmonics([0, 1, 2], v, normalize=True))
np.testing.assert_allclose(
    harmonics(v).transform_by_matrix(rotation).array,
    harmonics(v.transform_by_matrix(rotation)).array,
    atol=1e-4,
)
print("done")
