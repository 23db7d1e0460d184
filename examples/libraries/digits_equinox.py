"""An Equinox network with Optax on scikit-learn's handwritten digits; a run-time check guards the loss.

Run it on jax with `python digits_equinox.py` and on purax with `purax run digits_equinox.py`: the losses are the same.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from sklearn.datasets import load_digits

jax.config.update("jax_threefry_partitionable", True)  # the random numbers of current versions of JAX


def loss_of(network: eqx.nn.MLP, images: jax.Array, labels: jax.Array) -> jax.Array:
    logits = jax.vmap(network)(images)
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
    return eqx.error_if(loss, jnp.isnan(loss), "the loss is not a number")


def main() -> None:
    digits = load_digits()
    images, labels = jnp.asarray(digits.data / 16.0, jnp.float32), jnp.asarray(digits.target)
    network = eqx.nn.MLP(64, 10, width_size=32, depth=2, key=jax.random.key(0))
    optimizer = optax.adam(3e-3)
    state = optimizer.init(eqx.filter(network, eqx.is_inexact_array))

    @eqx.filter_jit
    def train_step(network, state, images, labels):
        loss, gradient = eqx.filter_value_and_grad(loss_of)(network, images, labels)
        updates, state = optimizer.update(gradient, state)
        return eqx.apply_updates(network, updates), state, loss

    for epoch in range(4):
        for start in range(0, 1536, 128):
            batch = images[start : start + 128], labels[start : start + 128]
            network, state, loss = train_step(network, state, *batch)
        print(f"epoch {epoch}: loss {float(loss):.4f}")
    predicted = jnp.argmax(jax.vmap(network)(images[1536:]), 1)
    print(f"accuracy on unseen digits: {float(jnp.mean(predicted == labels[1536:])):.3f}")


if __name__ == "__main__":
    main()
