"""scikit-learn with array API dispatch: estimators that compute on arrays of JAX, against NumPy."""

import os

os.environ["SCIPY_ARRAY_API"] = "1"

import jax
import jax.numpy as jnp
import numpy as np
import sklearn
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, mean_squared_error, r2_score

points, labels = make_classification(n_samples=60, n_features=6, random_state=0)
jax.config.update("jax_enable_x64", True)
target = points @ np.arange(6.0)
arrays = jnp.asarray(points)


def close(ours, theirs, tolerance=1e-3):
    assert isinstance(ours, jax.Array), type(ours)
    np.testing.assert_allclose(np.asarray(ours), theirs, atol=tolerance, rtol=tolerance)


with sklearn.config_context(array_api_dispatch=True):
    assert np.isclose(float(accuracy_score(jnp.asarray(labels), jnp.asarray(labels))), 1.0)
    predictions = target + 1
    assert np.isclose(float(mean_squared_error(jnp.asarray(target), jnp.asarray(predictions))), 1.0, atol=1e-4)
    assert np.isclose(
        float(r2_score(jnp.asarray(target), jnp.asarray(predictions))), r2_score(target, predictions), atol=1e-4
    )
    ridge = Ridge(solver="svd", alpha=0.1)
    close(ridge.fit(arrays, jnp.asarray(target)).coef_, Ridge(solver="svd", alpha=0.1).fit(points, target).coef_)
    close(ridge.predict(arrays), target, 0.1)
    pca = PCA(2, svd_solver="full")
    close(jnp.abs(pca.fit_transform(arrays)), np.abs(PCA(2, svd_solver="full").fit_transform(points)), 1e-2)
    close(pca.explained_variance_ratio_, PCA(2, svd_solver="full").fit(points).explained_variance_ratio_)
print("done")
