"""A multilayer perceptron in Flax nnx with Optax on scikit-learn's handwritten digits.

Run it on jax with `python digits_nnx_mlp.py` and on purax with `purax run digits_nnx_mlp.py`: the losses are the same.
"""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from sklearn.datasets import load_digits

jax.config.update("jax_threefry_partitionable", True)  # the random numbers of current versions of JAX


class Network(nnx.Module):
    """Dense layers of 64 pixels to 10 digits."""

    def __init__(self, width: int, depth: int, rngs: nnx.Rngs):
        sizes = [64] + [width] * depth
        self.hidden = nnx.List(nnx.Linear(a, b, rngs=rngs) for a, b in zip(sizes, sizes[1:], strict=False))
        self.output = nnx.Linear(width, 10, rngs=rngs)

    def __call__(self, pixels: jax.Array) -> jax.Array:
        for layer in self.hidden:
            pixels = nnx.relu(layer(pixels))
        return self.output(pixels)


@nnx.jit
def train_step(network: Network, optimizer: nnx.Optimizer, pixels: jax.Array, labels: jax.Array) -> jax.Array:
    def loss_of(network: Network) -> jax.Array:
        return optax.softmax_cross_entropy_with_integer_labels(network(pixels), labels).mean()

    loss, gradient = nnx.value_and_grad(loss_of)(network)
    optimizer.update(network, gradient)
    return loss


def main() -> None:
    digits = load_digits()
    pixels, labels = jnp.asarray(digits.data / 16.0, jnp.float32), jnp.asarray(digits.target)
    network = Network(64, 2, nnx.Rngs(0))
    optimizer = nnx.Optimizer(network, optax.adamw(2e-3), wrt=nnx.Param)
    for epoch in range(4):
        for start in range(0, 1536, 128):
            loss = train_step(network, optimizer, pixels[start : start + 128], labels[start : start + 128])
        print(f"epoch {epoch}: loss {float(loss):.4f}")
    accuracy = jnp.mean(jnp.argmax(network(pixels[1536:]), 1) == labels[1536:])
    print(f"accuracy on unseen digits: {float(accuracy):.3f}")


if __name__ == "__main__":
    main()
