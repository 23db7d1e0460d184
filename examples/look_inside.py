"""Opens the program explorer on a small transformer: `python examples/look_inside.py [page.html]`."""

from __future__ import annotations

import sys

import purax as px
import purax.numpy as jnp

Block = dict[str, px.Array]


def normalize(x: px.Array) -> px.Array:
    centered = x - jnp.mean(x, axis=-1, keepdims=True)
    return centered / jnp.sqrt(jnp.mean(centered**2, axis=-1, keepdims=True) + 1e-5)


def attention(block: Block, x: px.Array) -> px.Array:
    queries, keys, values = x @ block["queries"], x @ block["keys"], x @ block["values"]
    scores = px.nn.softmax(queries @ keys.T / jnp.sqrt(1.0 * queries.shape[-1]))
    return scores @ values


def perceptron(block: Block, x: px.Array) -> px.Array:
    return px.nn.gelu(x @ block["up"]) @ block["down"]


def loss(blocks: list[Block], x: px.Array, y: px.Array) -> px.Array:
    for block in blocks:
        with px.named_scope("attention"):
            x = x + attention(block, normalize(x))
        with px.named_scope("perceptron"):
            x = x + perceptron(block, normalize(x))
    return jnp.mean((x - y) ** 2)


def make_block(key: px.Array, width: int = 128) -> Block:
    shapes = {
        "queries": (width, width),
        "keys": (width, width),
        "values": (width, width),
        "up": (width, 4 * width),
        "down": (4 * width, width),
    }
    keys = px.random.split(key, len(shapes))
    return {name: 0.05 * px.random.normal(k, shape) for k, (name, shape) in zip(keys, shapes.items(), strict=True)}


def main() -> None:
    key = px.random.key(0)
    blocks = [make_block(k) for k in px.random.split(key, 4)]
    x = px.random.normal(key, (256, 128))
    explanation = px.explain(px.value_and_grad(loss), measure=True)(blocks, x, jnp.zeros_like(x))
    print(explanation)
    if len(sys.argv) > 1:
        explanation.save(sys.argv[1])
    else:
        explanation.show()


if __name__ == "__main__":
    main()
