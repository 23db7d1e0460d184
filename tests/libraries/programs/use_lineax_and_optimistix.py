"""Lineax and Optimistix: solutions and their derivatives, which follow from the equations that hold at them."""

import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
import optimistix as optx

matrix = jax.random.normal(jax.random.key(0), (4, 4)) + 4 * jnp.eye(4)
vector = jnp.arange(1.0, 5.0)
expected = np.linalg.solve(matrix, vector)
solvers = [
    lx.LU(),
    lx.QR(),
    lx.SVD(),
    lx.GMRES(1e-6, 1e-6),
    lx.Normal(lx.CG(1e-6, 1e-6)),
    lx.AutoLinearSolver(None),
]


def solve(matrix, vector, solver):
    return lx.linear_solve(lx.MatrixLinearOperator(matrix), vector, solver).value


for solver in solvers:
    name = type(solver).__name__
    np.testing.assert_allclose(solve(matrix, vector, solver), expected, rtol=1e-3, atol=1e-4, err_msg=name)
adjoint = np.linalg.solve(matrix.T, 2 * expected)
for solver in solvers[:4]:
    gradients = jax.jit(jax.grad(lambda m, v, s=solver: jnp.sum(solve(m, v, s) ** 2), argnums=(0, 1)))(
        matrix, vector
    )
    np.testing.assert_allclose(gradients[0], -np.outer(adjoint, expected), rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(gradients[1], adjoint, rtol=1e-2, atol=1e-3)
definite = lx.MatrixLinearOperator(matrix @ matrix.T, lx.positive_semidefinite_tag)
for solver in (lx.Cholesky(), lx.CG(1e-6, 1e-6)):
    found = jax.vmap(lambda v, s=solver: lx.linear_solve(definite, v, s).value)(
        jnp.stack([vector, 2 * vector])
    )
    np.testing.assert_allclose(definite.as_matrix() @ found[1], 2 * vector, rtol=1e-3, atol=1e-3)
tall = jax.random.normal(jax.random.key(1), (6, 4))
for solver in (lx.QR(), lx.SVD(), lx.LSMR(1e-6, 1e-6)):
    found = lx.linear_solve(lx.MatrixLinearOperator(tall), jnp.arange(6.0), solver).value
    np.testing.assert_allclose(found, np.linalg.lstsq(tall, np.arange(6.0))[0], rtol=1e-3, atol=1e-3)

targets = jnp.array([2.0, 3.0])
for solver in (optx.Newton(1e-6, 1e-6), optx.Chord(1e-6, 1e-6)):
    root = lambda a, s=solver: optx.root_find(lambda y, a: y**2 - a, s, jnp.array([1.5, 1.6]), a).value  # noqa: E731
    np.testing.assert_allclose(root(targets), jnp.sqrt(targets), rtol=1e-5)
    np.testing.assert_allclose(jax.jacfwd(root)(targets), jnp.diag(0.5 / jnp.sqrt(targets)), rtol=1e-4)
    gradient = jax.vmap(jax.grad(lambda a, root=root: jnp.sum(root(a))))(jnp.stack([targets, 2 * targets]))
    np.testing.assert_allclose(gradient[1], 0.5 / jnp.sqrt(2 * targets), rtol=1e-4)

x = jnp.linspace(0.0, 1.0, 20)


def residuals(p, y):
    return p["a"] * jnp.exp(-p["b"] * x) - y


start = {"a": jnp.array(1.0), "b": jnp.array(1.0)}
for solver in (optx.LevenbergMarquardt(1e-6, 1e-6), optx.GaussNewton(1e-6, 1e-6), optx.Dogleg(1e-6, 1e-6)):
    fit = lambda y, s=solver: optx.least_squares(residuals, s, start, y).value  # noqa: E731
    np.testing.assert_allclose(fit(2 * jnp.exp(-1.3 * x))["b"], 1.3, rtol=1e-4)
# Twice the data is twice the amplitude: the derivative along the data is the amplitude itself.
amplitude = jax.jvp(lambda scale: fit(scale * 2 * jnp.exp(-1.3 * x))["a"], (1.0,), (1.0,))[1]
np.testing.assert_allclose(amplitude, 2.0, rtol=1e-3)

for solver in (optx.BFGS(1e-5, 1e-5), optx.NelderMead(1e-5, 1e-5)):
    least = lambda a, s=solver: optx.minimise(lambda p, a: jnp.sum((p - a) ** 2), s, jnp.zeros(2), a).value  # noqa: E731
    np.testing.assert_allclose(least(targets), targets, atol=1e-2)
    np.testing.assert_allclose(jax.grad(lambda a, f=least: jnp.sum(f(a)))(targets), [1, 1], rtol=1e-3)


def fixed(a):
    solver = optx.FixedPointIteration(1e-6, 1e-6)
    return optx.fixed_point(lambda y, a: jnp.cos(a * y), solver, jnp.array(0.5), a).value


np.testing.assert_allclose(fixed(1.0), 0.7390851, rtol=1e-5)
y = 0.7390851
np.testing.assert_allclose(jax.grad(fixed)(1.0), -y * np.sin(y) / (1 + np.sin(y)), rtol=1e-4)
print("done")
