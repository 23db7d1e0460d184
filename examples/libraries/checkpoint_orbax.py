"""Training that is stopped and taken up again: Orbax keeps the last two checkpoints of a linen network and its Adam.

Run it on jax with `python checkpoint_orbax.py` and on purax with `purax run checkpoint_orbax.py`: the losses are the
same, and the second half of the training is that of a run that never stopped.
"""

import tempfile

import jax
import jax.numpy as jnp
import optax
import orbax.checkpoint as ocp
from flax import linen as nn
from flax.training import train_state
from sklearn.datasets import load_digits

jax.config.update("jax_threefry_partitionable", True)  # the random numbers of current versions of JAX


def new_state() -> train_state.TrainState:
    network = nn.Sequential([nn.Dense(32), nn.relu, nn.Dense(10)])
    parameters = network.init(jax.random.key(0), jnp.zeros((1, 64)))["params"]
    return train_state.TrainState.create(apply_fn=network.apply, params=parameters, tx=optax.adam(3e-3))


@jax.jit
def train_step(state: train_state.TrainState, pixels: jax.Array, labels: jax.Array):
    def loss_of(parameters):
        logits = state.apply_fn({"params": parameters}, pixels)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    loss, gradient = jax.value_and_grad(loss_of)(state.params)
    return state.apply_gradients(grads=gradient), loss


def train(state, epochs, pixels, labels, manager=None):
    for epoch in epochs:
        for start in range(0, 1536, 128):
            state, loss = train_step(state, pixels[start : start + 128], labels[start : start + 128])
        print(f"epoch {epoch}: loss {float(loss):.4f}")
        if manager is not None:
            manager.save(epoch, args=ocp.args.StandardSave(state))
    return state


def main() -> None:
    digits = load_digits()
    data = jnp.asarray(digits.data / 16.0, jnp.float32), jnp.asarray(digits.target)
    with tempfile.TemporaryDirectory() as folder:
        options = ocp.CheckpointManagerOptions(max_to_keep=2)
        with ocp.CheckpointManager(folder, options=options) as manager:
            train(new_state(), range(3), *data, manager)
        with ocp.CheckpointManager(folder, options=options) as manager:
            print(f"kept: {manager.all_steps()}")
            state = manager.restore(manager.latest_step(), args=ocp.args.StandardRestore(new_state()))
        resumed = train(state, range(3, 5), *data)
    print("the same without a stop:")
    uninterrupted = train(new_state(), range(5), *data)
    difference = jax.tree.map(lambda a, b: jnp.max(jnp.abs(a - b)), resumed.params, uninterrupted.params)
    print(f"largest difference of parameters: {float(max(jax.tree.leaves(difference))):.4f}")


if __name__ == "__main__":
    main()
