"""A loader with an uneven last batch, and a network on graphs of different sizes, train without compiling again.

    python examples/uneven_batches.py

The training step is compiled with a dynamic batch: the last batch of an epoch has 5 examples instead of 32, and the
mean over it is one over 5. The graphs of a batch are one ragged array: means over nodes and messages over edges go by
segments.
"""

import time
from typing import Any

import numpy as np

import purax as px
import purax.numpy as jnp

Weights = dict[str, Any]
RATE = 0.2


def matrix(key: px.Array, rows: int, columns: int) -> Any:
    """A random matrix."""
    return px.random.normal(key, (rows, columns)) * rows**-0.5


def classify() -> None:
    """Trains on 101 points in batches of 32."""
    keys = px.random.split(px.random.key(0), 3)
    weights = {"hidden": matrix(keys[0], 2, 32), "out": matrix(keys[1], 32, 1)[:, 0]}
    points = np.asarray(px.random.normal(keys[2], (101, 2)))
    labels = (points[:, 0] * points[:, 1] > 0).astype(np.float32)

    def loss(weights: Weights, x: Any, y: Any) -> px.Array:
        logits = jnp.tanh(x @ weights["hidden"]) @ weights["out"]
        return jnp.mean(jnp.logaddexp(0, logits) - y * logits)

    def step(weights: Weights, x: Any, y: Any) -> tuple[Weights, px.Array]:
        value, gradient = px.value_and_grad(loss)(weights, x, y)
        return px.tree.map(lambda w, g: w - RATE * g, weights, gradient), value

    dynamic_step = px.jit(step, dynamic={"x": {0: "batch"}, "y": {0: "batch"}})
    start = time.perf_counter()
    for _ in range(60):
        total = 0.0
        for first in range(0, len(points), 32):
            x, y = points[first : first + 32], labels[first : first + 32]
            weights, value = dynamic_step(weights, x, y)
            total += float(value) * len(x)
    print(f"uneven last batch: loss {total / len(points):.3f} after {time.perf_counter() - start:.1f} s")
    print(dynamic_step.explain_dynamic())


def graphs() -> None:
    """Trains a graph network to count triangles, on batches of eight rings with random chords."""
    generator = np.random.default_rng(0)
    keys = px.random.split(px.random.key(1), 3)
    weights = {"first": matrix(keys[0], 2, 16), "message": matrix(keys[1], 16, 16), "out": matrix(keys[2], 16, 1)[:, 0]}

    def make(nodes: int) -> tuple[np.ndarray, np.ndarray, float]:
        ring = np.stack([np.arange(nodes), (np.arange(nodes) + 1) % nodes], 1)
        chords = generator.integers(0, nodes, (nodes // 2, 2))
        edges = np.unique(np.sort(np.concatenate([ring, chords[chords[:, 0] != chords[:, 1]]]), 1), axis=0)
        near = np.zeros((nodes, nodes))
        near[edges[:, 0], edges[:, 1]] = near[edges[:, 1], edges[:, 0]] = 1
        degrees = near.sum(1)
        features = np.stack([degrees / 4, np.ones(nodes)], 1).astype(np.float32)
        return features, np.concatenate([edges, edges[:, ::-1]]), float(np.trace(near @ near @ near)) / 6 / nodes

    def loss(weights: Weights, nodes: px.ragged.RaggedArray, edges: px.Array, targets: px.Array) -> px.Array:
        hidden = (nodes @ weights["first"]).map(jnp.tanh)
        for _ in range(2):
            values = jnp.asarray(hidden.values)
            messages = px.ops.segment_sum(values[edges[:, 0]], edges[:, 1], nodes.rows)
            hidden = px.ragged.RaggedArray(jnp.tanh(values + messages @ weights["message"] / 4), nodes.splits)
        return jnp.mean((hidden.mean() @ weights["out"] - targets) ** 2)

    @px.jit
    def step(weights: Weights, *batch: Any) -> tuple[Weights, px.Array]:
        value, gradient = px.value_and_grad(loss)(weights, *batch)
        return px.tree.map(lambda w, g: w - 0.05 * g, weights, gradient), value

    rows, room, values = 256, 1024, []
    for _ in range(150):
        made = [make(int(n)) for n in generator.integers(5, 30, 8)]
        nodes = px.ragged.from_list([features for features, _, _ in made], rows=rows)
        starts = np.asarray(nodes.splits)[:-1]
        edges = np.concatenate([pairs + first for (_, pairs, _), first in zip(made, starts, strict=True)])
        padded = np.full((room, 2), rows, np.int32)  # of a node that there is not: it is dropped
        padded[: len(edges)] = edges
        weights, value = step(weights, nodes, padded, np.array([target for *_, target in made], np.float32))
        values.append(float(value))
    print(f"graphs of 5 to 29 nodes: loss {np.mean(values[:10]):.3f} at first, {np.mean(values[-10:]):.3f} in the end")
    print(f"compilations of the step: {step._cache_size()}")


if __name__ == "__main__":
    classify()
    graphs()
