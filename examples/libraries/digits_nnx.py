"""A Flax nnx network with Optax on scikit-learn's handwritten digits, written for JAX.

Run it on jax with `python digits_nnx.py` and on purax with `purax run digits_nnx.py`: the losses are the same.
"""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from sklearn.datasets import load_digits

jax.config.update("jax_threefry_partitionable", True)  # the random numbers of current versions of JAX


class Network(nnx.Module):
    """A convolution and two dense layers, with batch normalization and dropout."""

    def __init__(self, rngs: nnx.Rngs):
        self.convolution = nnx.Conv(1, 8, (3, 3), use_bias=False, rngs=rngs)
        self.normalization = nnx.BatchNorm(8, rngs=rngs)
        self.hidden = nnx.Linear(128, 32, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.output = nnx.Linear(32, 10, rngs=rngs)

    def __call__(self, images: jax.Array) -> jax.Array:
        features = nnx.relu(self.normalization(self.convolution(images)))
        features = nnx.max_pool(features, (2, 2), (2, 2)).reshape(images.shape[0], -1)
        return self.output(self.dropout(nnx.relu(self.hidden(features))))


def loss_of(network: Network, images: jax.Array, labels: jax.Array) -> jax.Array:
    return optax.softmax_cross_entropy_with_integer_labels(network(images), labels).mean()


@nnx.jit
def train_step(network: Network, optimizer: nnx.Optimizer, images: jax.Array, labels: jax.Array) -> jax.Array:
    loss, gradient = nnx.value_and_grad(loss_of)(network, images, labels)
    optimizer.update(network, gradient)
    return loss


def main() -> None:
    digits = load_digits()
    images, labels = jnp.asarray(digits.images / 16.0, jnp.float32)[..., None], jnp.asarray(digits.target)
    network = Network(nnx.Rngs(0))
    optimizer = nnx.Optimizer(network, optax.adam(3e-3), wrt=nnx.Param)
    for epoch in range(3):
        for start in range(0, 1536, 128):
            loss = train_step(network, optimizer, images[start : start + 128], labels[start : start + 128])
        print(f"epoch {epoch}: loss {float(loss):.4f}")
    network.eval()
    accuracy = jnp.mean(jnp.argmax(network(images[1536:]), 1) == labels[1536:])
    print(f"accuracy on unseen digits: {float(accuracy):.3f}")


if __name__ == "__main__":
    main()
