"""A small transformer trained in three ways with the same losses: on one device, and over eight in parallel.

    python examples/train_transformer_parallel.py --steps 20

The program is written once, for one device. What changes is where its arrays lie:

- data-parallel: every device has all parameters and an eighth of each batch;
- tensor-parallel: attention heads and hidden units are cut over devices, all of which see the whole batch;
- both: a mesh of 4 by 2.

From there the compiler finds out what devices must tell each other, and the table at the end says how much that is.
Set XLA_FLAGS=--xla_force_host_platform_device_count=8, or let the program ask for eight devices of the CPU itself.
"""

import argparse
import os
from typing import Any

import numpy as np

import purax as px
import purax.numpy as jnp
from purax.sharding import Mesh, NamedSharding
from purax.sharding import PartitionSpec as P

WIDTH, HEADS, LAYERS, LETTERS, LENGTH, BATCH = 32, 8, 2, 16, 16, 16

Parameters = dict[str, Any]  # a tree of arrays, or of what says something of each


def initial_parameters() -> Parameters:
    random = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return np.asarray(random.normal(size=shape) / np.sqrt(shape[0]), np.float32)

    def block() -> Parameters:
        return {
            "query_key_value": normal(WIDTH, 3, HEADS, WIDTH // HEADS),
            "out": normal(HEADS, WIDTH // HEADS, WIDTH),
            "up": normal(WIDTH, 4 * WIDTH),
            "down": normal(4 * WIDTH, WIDTH),
        }

    return {"embedding": normal(LETTERS, WIDTH), "blocks": [block() for _ in range(LAYERS)]}


# How the parameters of a block are cut along the axis "model": each device has some heads and some hidden units.
BLOCK = {
    "query_key_value": P(None, None, "model"),
    "out": P("model"),
    "up": P(None, "model"),
    "down": P("model"),
}


def layouts(mesh: Mesh, layers: int = LAYERS) -> Parameters:
    """How the parameters are sharded over a mesh with the axes "data" and "model"."""
    block = {name: NamedSharding(mesh, spec) for name, spec in BLOCK.items()}
    return {"embedding": NamedSharding(mesh, P()), "blocks": [block] * layers}


def batch_of(step: int) -> np.ndarray:
    """Texts to learn: each letter is the sum of the two before it."""
    text = np.random.default_rng(step).integers(0, LETTERS, size=(BATCH, LENGTH + 1))
    for i in range(2, LENGTH + 1):
        text[:, i] = (text[:, i - 1] + text[:, i - 2]) % LETTERS
    return text.astype(np.int32)


def normalized(x: px.Array) -> px.Array:
    return x * px.lax.rsqrt(jnp.mean(x**2, axis=-1, keepdims=True) + 1e-6)


def logits_of(parameters: Parameters, letters: px.Array) -> px.Array:
    x: px.Array = parameters["embedding"][letters]
    _, length, width = x.shape
    x = x + jnp.sin(jnp.arange(length)[:, None] / 10.0 ** (4 * jnp.arange(width) / width))
    visible = jnp.tril(jnp.ones((length, length), bool))
    for block in parameters["blocks"]:
        q, k, v = jnp.moveaxis(jnp.einsum("btw,wchd->btchd", normalized(x), block["query_key_value"]), 2, 0)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
        weights = px.nn.softmax(jnp.where(visible, scores, -1e9))
        x = x + jnp.einsum("bhqk,bkhd,hdw->bqw", weights, v, block["out"])
        x = x + px.nn.gelu(normalized(x) @ block["up"]) @ block["down"]
    logits: px.Array = normalized(x) @ parameters["embedding"].T
    return logits


def loss_of(parameters: Parameters, text: px.Array) -> px.Array:
    scores = px.nn.log_softmax(logits_of(parameters, text[:, :-1]))
    return -jnp.mean(jnp.take_along_axis(scores, text[:, 1:, None], axis=-1))


def train_step(parameters: Parameters, text: px.Array) -> tuple[Parameters, px.Array]:
    loss, gradient = px.value_and_grad(loss_of)(parameters, text)
    return px.tree.map(lambda p, g: p - 0.3 * g, parameters, gradient), loss


def train(steps: int, mesh: Mesh | None = None) -> tuple[list[float], list[Any]]:
    """The losses of a run, on one device or over a mesh with axes "data" and "model", and what a step communicates."""
    parameters, text = initial_parameters(), batch_of(0)
    step = px.jit(train_step)
    if mesh is not None:
        cut = layouts(mesh)
        parameters = px.device_put(parameters, cut)
        step = px.jit(train_step, out_shardings=(cut, None), donate_argnums=0)

    def placed(text: np.ndarray) -> px.Array:
        return jnp.asarray(text) if mesh is None else px.device_put(text, NamedSharding(mesh, P("data")))

    collectives = step.lower(parameters, placed(text)).compile().collectives()
    losses = []
    for i in range(steps):
        parameters, loss = step(parameters, placed(batch_of(i)))
        losses.append(float(loss))
    return losses, collectives


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=20)
    steps = parser.parse_args().steps
    if "device_count" not in os.environ.get("XLA_FLAGS", ""):
        px.config.update("num_cpu_devices", 8)  # before the first operation
    expected, _ = train(steps)
    print(f"one device: loss {expected[0]:.4f} -> {expected[-1]:.4f}")
    for name, shape in {"data-parallel": (8, 1), "tensor-parallel": (1, 8), "both": (4, 2)}.items():
        losses, collectives = train(steps, px.make_mesh(shape, ("data", "model")))
        difference = max(abs(a - b) for a, b in zip(losses, expected, strict=True))
        sent = sum(c.sent for c in collectives)
        count = sum(c.times for c in collectives)
        print(
            f"{name:>16}: loss {losses[0]:.4f} -> {losses[-1]:.4f}, differs by {difference:.1e}; "
            f"a step has {count} collectives, a device sends {sent / 1024:.0f} KiB"
        )
        assert difference < 1e-5, f"{name} gives other losses than one device"


if __name__ == "__main__":
    main()
