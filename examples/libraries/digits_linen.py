"""A small transformer in Flax linen with Optax, which reads the rows of scikit-learn's digits as a sequence.

Run it on jax with `python digits_linen.py` and on purax with `purax run digits_linen.py`: the losses are the same.
"""

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from flax.training import train_state
from sklearn.datasets import load_digits

jax.config.update("jax_threefry_partitionable", True)  # the random numbers of current versions of JAX


class Block(nn.Module):
    """Attention and a dense network, each after a normalization and with a fast path."""

    width: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = x + nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=self.width)(nn.LayerNorm()(x))
        return x + nn.Dense(self.width)(nn.gelu(nn.Dense(2 * self.width)(nn.LayerNorm()(x))))


class Transformer(nn.Module):
    """Rows of an image in, logits of the ten digits out."""

    width: int = 16
    depth: int = 2

    @nn.compact
    def __call__(self, rows: jax.Array) -> jax.Array:
        x = nn.Dense(self.width)(rows)
        x = x + self.param("position", nn.initializers.normal(0.02), (rows.shape[-2], self.width))
        for _ in range(self.depth):
            x = Block(self.width)(x)
        return nn.Dense(10)(nn.LayerNorm()(x).mean(-2))


@jax.jit
def train_step(state: train_state.TrainState, rows: jax.Array, labels: jax.Array):
    def loss_of(parameters):
        logits = state.apply_fn({"params": parameters}, rows)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    loss, gradient = jax.value_and_grad(loss_of)(state.params)
    return state.apply_gradients(grads=gradient), loss


def main() -> None:
    digits = load_digits()
    rows, labels = jnp.asarray(digits.images / 16.0, jnp.float32), jnp.asarray(digits.target)
    model = Transformer()
    parameters = model.init(jax.random.key(0), rows[:1])["params"]
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0), optax.adamw(optax.cosine_decay_schedule(1e-2, 60))
    )
    state = train_state.TrainState.create(apply_fn=model.apply, params=parameters, tx=optimizer)
    for epoch in range(4):
        for start in range(0, 1536, 128):
            state, loss = train_step(state, rows[start : start + 128], labels[start : start + 128])
        print(f"epoch {epoch}: loss {float(loss):.4f}")
    logits = state.apply_fn({"params": state.params}, rows[1536:])
    print(f"accuracy on unseen digits: {float(jnp.mean(jnp.argmax(logits, 1) == labels[1536:])):.3f}")


if __name__ == "__main__":
    main()
