"""OTT: optimal transport between points on a line, with its gradient, and a differentiable sort."""

import jax
import jax.numpy as jnp
import numpy as np
from ott.geometry import pointcloud
from ott.problems.linear import linear_problem
from ott.solvers.linear import sinkhorn
from ott.tools import soft_sort

x = jnp.array([[0.0], [1.0], [2.0]])
y = jnp.array([[0.5], [1.5], [2.5]])


@jax.jit
def cost(x):
    geometry = pointcloud.PointCloud(x, y, epsilon=1e-2)
    return sinkhorn.Sinkhorn()(linear_problem.LinearProblem(geometry)).reg_ot_cost


result = sinkhorn.Sinkhorn()(linear_problem.LinearProblem(pointcloud.PointCloud(x, y, epsilon=1e-2)))
assert bool(result.converged)
np.testing.assert_allclose(result.matrix, np.eye(3) / 3, atol=1e-3)
np.testing.assert_allclose(result.primal_cost, 0.25, atol=1e-3)  # each point is moved by 1/2
np.testing.assert_allclose(jax.grad(cost)(x), (2 / 3) * (x - y), atol=1e-2)
np.testing.assert_allclose(soft_sort.sort(jnp.array([3.0, 1.0, 2.0]), epsilon=1e-3), [1, 2, 3], atol=1e-2)
print("done")
