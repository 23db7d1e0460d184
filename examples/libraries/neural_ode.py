"""A neural ODE: Equinox's network is the right side of an equation that Diffrax solves, fitted to a spiral by Optax.

Run it on jax with `python neural_ode.py` and on purax with `purax run neural_ode.py`: the losses are the same.
"""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optax

jax.config.update("jax_threefry_partitionable", True)  # the random numbers of current versions of JAX


class NeuralODE(eqx.Module):
    """Paths y(t) with dy/dt = network(y)."""

    network: eqx.nn.MLP

    def __call__(self, times: jax.Array, start: jax.Array) -> jax.Array:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: self.network(y)),
            diffrax.Tsit5(),
            t0=times[0],
            t1=times[-1],
            dt0=0.1,
            y0=start,
            stepsize_controller=diffrax.PIDController(rtol=1e-3, atol=1e-6),
            saveat=diffrax.SaveAt(ts=times),
        ).ys


def spiral(times: jax.Array, start: jax.Array) -> jax.Array:
    """The solution of dy/dt = [[-0.1, 2], [-2, -0.1]] y."""
    angle, decay = 2 * times, jnp.exp(-0.1 * times)
    turned = jnp.stack(
        [
            jnp.cos(angle) * start[0] + jnp.sin(angle) * start[1],
            -jnp.sin(angle) * start[0] + jnp.cos(angle) * start[1],
        ],
        1,
    )
    return decay[:, None] * turned


def main() -> None:
    key_data, key_model = jax.random.split(jax.random.key(0))
    times = jnp.linspace(0.0, 1.5, 10)
    starts = jax.random.uniform(key_data, (32, 2), minval=-1.0)
    paths = jax.vmap(spiral, (None, 0))(times, starts)
    model = NeuralODE(eqx.nn.MLP(2, 2, 32, 2, activation=jax.nn.softplus, key=key_model))
    optimizer = optax.adam(1e-2)
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def train_step(model, state):
        def loss_of(model):
            return jnp.mean((jax.vmap(model, (None, 0))(times, starts) - paths) ** 2)

        loss, gradient = eqx.filter_value_and_grad(loss_of)(model)
        updates, state = optimizer.update(gradient, state)
        return eqx.apply_updates(model, updates), state, loss

    for step in range(101):
        model, state, loss = train_step(model, state)
        if step % 25 == 0:
            print(f"step {step}: loss {float(loss):.4f}")


if __name__ == "__main__":
    main()
