"""jaxopt: solvers reach the optima that closed forms give, and their results can be differentiated."""

import jax
import jax.numpy as jnp
import jaxopt
import numpy as np

random = np.random.RandomState(0)
A, b = random.randn(20, 4).astype(np.float32), random.randn(20).astype(np.float32)


def ridge(w, strength):
    return jnp.mean((A @ w - b) ** 2) + strength * jnp.sum(w**2)


def exact(strength):
    return np.linalg.solve(A.T @ A / 20 + strength * np.eye(4), A.T @ b / 20)


for solver in (
    jaxopt.LBFGS(ridge, maxiter=100, tol=1e-6),
    jaxopt.GradientDescent(ridge, maxiter=500, tol=1e-6),
    jaxopt.NonlinearCG(ridge, maxiter=100, tol=1e-6),
):
    found = solver.run(jnp.zeros(4), strength=0.1).params
    np.testing.assert_allclose(found, exact(0.1), atol=1e-3)

solver = jaxopt.LBFGS(ridge, maxiter=100, tol=1e-6, implicit_diff=True)
slope = jax.jacobian(lambda strength: solver.run(jnp.zeros(4), strength=strength).params)(0.1)
np.testing.assert_allclose(slope, (exact(0.101) - exact(0.099)) / 0.002, atol=2e-3)

inside = jaxopt.ProjectedGradient(ridge, jaxopt.projection.projection_simplex, maxiter=500)
point = inside.run(jnp.ones(4) / 4, strength=0.1).params
np.testing.assert_allclose([jnp.sum(point), jnp.min(point) >= 0], [1, 1], atol=1e-5)
print("done")
