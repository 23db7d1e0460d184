"""Diffrax: adaptive and stiff solutions against closed forms, their gradients, events, noise."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from diffrax import ODETerm, PIDController, SaveAt, diffeqsolve

start = jnp.array([1.0, 0.0])
rotation = ODETerm(lambda t, y, speed: speed * jnp.array([y[1], -y[0]]))
precise = PIDController(1e-6, 1e-6)
times = jnp.linspace(0.0, 3.0, 4)


def solve(speed, solver, adjoint):
    return diffeqsolve(
        rotation,
        solver,
        0.0,
        3.0,
        0.1,
        start,
        speed,
        saveat=SaveAt(ts=times),
        stepsize_controller=precise,
        adjoint=adjoint,
    ).ys


expected = np.stack([np.cos(2 * times), -np.sin(2 * times)], 1)
default = diffrax.RecursiveCheckpointAdjoint()
for solver in (diffrax.Tsit5(), diffrax.Kvaerno5()):
    np.testing.assert_allclose(
        solve(2.0, solver, default), expected, atol=3e-4, err_msg=type(solver).__name__
    )
# d/dspeed of cos(3 speed) − sin(3 speed)
slope = -3 * (np.sin(6) + np.cos(6))
for adjoint in (default, diffrax.BacksolveAdjoint()):
    last = lambda speed, a=adjoint: jnp.sum(solve(speed, diffrax.Tsit5(), a)[-1])  # noqa: E731
    np.testing.assert_allclose(jax.jit(jax.grad(last))(2.0), slope, rtol=1e-3, err_msg=type(adjoint).__name__)
stiff = ODETerm(lambda t, y, a: -1000.0 * (y - jnp.cos(t)))
found = diffeqsolve(
    stiff, diffrax.Kvaerno3(), 0.0, 2.0, 0.01, jnp.array(0.0), stepsize_controller=PIDController(1e-4, 1e-4)
)
np.testing.assert_allclose(found.ys[0], np.cos(2.0), atol=3e-3)
assert int(found.stats["num_steps"]) < 200

crossing = diffrax.Event(lambda t, y, args, **kwargs: y[0], optx.Newton(1e-5, 1e-5))
moment = lambda speed: diffeqsolve(  # noqa: E731
    rotation, diffrax.Tsit5(), 0.0, 10.0, 0.1, start, speed, event=crossing, stepsize_controller=precise
).ts[0]
np.testing.assert_allclose(moment(2.0), np.pi / 4, rtol=1e-4)
np.testing.assert_allclose(jax.grad(moment)(2.0), -np.pi / 8, rtol=1e-3)

path = diffrax.VirtualBrownianTree(0.0, 1.0, 1e-2, (), jax.random.key(0))
noisy = diffrax.MultiTerm(ODETerm(lambda t, y, a: -y), diffrax.ControlTerm(lambda t, y, a: a, path))
walk = lambda a: diffeqsolve(noisy, diffrax.Euler(), 0.0, 1.0, 0.05, jnp.array(1.0), a).ys[0]  # noqa: E731
np.testing.assert_allclose(walk(0.0), 0.95**20, rtol=1e-5)
np.testing.assert_allclose(
    jax.grad(walk)(0.5), walk(1.0) - walk(0.0), rtol=1e-4
)  # linear in the strength of the noise

try:
    diffeqsolve(rotation, diffrax.Tsit5(), 0.0, 3.0, 0.01, start, 2.0, max_steps=8)
except Exception as error:
    assert "maximum number of solver steps" in str(error), error
else:
    raise AssertionError("the solver should run out of steps")
print("done")
