"""scikit-learn with array API dispatch: what computes on arrays of JAX, which nobody can write to, against NumPy."""

import os

os.environ["SCIPY_ARRAY_API"] = "1"

import jax
import jax.numpy as jnp
import numpy as np
import sklearn
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.metrics import accuracy_score, mean_absolute_error, mean_squared_error, zero_one_loss
from sklearn.metrics.pairwise import linear_kernel
from sklearn.preprocessing import KernelCenterer

jax.config.update("jax_enable_x64", True)
points, labels = make_classification(n_samples=60, n_features=6, random_state=0)
arrays = jnp.asarray(points)


def close(ours, theirs, tolerance=1e-3):
    assert isinstance(ours, jax.Array), type(ours)
    np.testing.assert_allclose(np.asarray(ours), theirs, atol=tolerance, rtol=tolerance)


with sklearn.config_context(array_api_dispatch=True):
    classes = jnp.asarray(labels)
    assert np.isclose(float(accuracy_score(classes, classes)), 1.0)
    assert np.isclose(float(zero_one_loss(classes, 1 - classes)), 1.0)
    assert np.isclose(float(mean_squared_error(arrays[:, 0], arrays[:, 0] + 2)), 4.0)
    assert np.isclose(float(mean_absolute_error(arrays[:, 0], arrays[:, 0] + 2)), 2.0)
    close(linear_kernel(arrays), points @ points.T)
    close(KernelCenterer().fit_transform(arrays @ arrays.T), KernelCenterer().fit_transform(points @ points.T))
    pca = PCA(2, svd_solver="full")
    close(jnp.abs(pca.fit_transform(arrays)), np.abs(PCA(2, svd_solver="full").fit_transform(points)), 1e-2)
    close(pca.explained_variance_ratio_, PCA(2, svd_solver="full").fit(points).explained_variance_ratio_)
print("done")
