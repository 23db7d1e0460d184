"""Logs a training run: to TensorBoard if `tensorboardX` (or torch's writer) is there, to Weights & Biases if asked for.

    python examples/logging_training.py
    python examples/logging_training.py --wandb project

Numbers are read back late: while step i runs, the loss of step i - 10 is written, so that the loop never waits.
"""

from __future__ import annotations

import argparse
import importlib
from collections import deque
from collections.abc import Callable
from typing import Any

import purax as px
import purax.numpy as jnp

Log = Callable[[str, float, int], None]


def open_logs(folder: str, project: str | None) -> list[Log]:
    """Functions that write a number: one for each place that there is, or else one that prints."""
    logs: list[Log] = []
    for module in ("tensorboardX", "torch.utils.tensorboard"):
        try:
            writer: Any = importlib.import_module(module).SummaryWriter(folder)
        except ImportError:
            continue
        logs.append(writer.add_scalar)
        break
    if project is not None:
        wandb: Any = importlib.import_module("wandb")
        wandb.init(project=project)
        logs.append(lambda name, value, step: wandb.log({name: value}, step=step))
    return logs or [lambda name, value, step: print(f"{step:5d} {name} {value:.5f}")]


def loss(weights: px.Array, x: px.Array, y: px.Array) -> px.Array:
    return jnp.mean((jnp.tanh(x @ weights) - y) ** 2)


@px.jit
def step(weights: px.Array, x: px.Array, y: px.Array) -> tuple[px.Array, px.Array]:
    value, gradient = px.value_and_grad(loss)(weights, x, y)
    return weights - 0.5 * gradient, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--folder", default="runs", help="where TensorBoard looks")
    parser.add_argument("--wandb", metavar="PROJECT", help="log to this project of Weights & Biases as well")
    arguments = parser.parse_args()
    logs = open_logs(arguments.folder, arguments.wandb)
    x = px.random.normal(px.random.key(0), (256, 8))
    y = jnp.tanh(x @ jnp.linspace(-1.0, 1.0, 8))
    weights = jnp.zeros(8)
    running: deque[tuple[int, px.Array]] = deque()
    for count in range(arguments.steps):
        weights, value = step(weights, x, y)
        running.append((count, value))
        if len(running) > 10 or count == arguments.steps - 1:
            for number, earlier in [running.popleft()] if count < arguments.steps - 1 else running:
                for log in logs:
                    log("loss", float(earlier), number)


if __name__ == "__main__":
    main()
