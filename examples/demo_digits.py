"""A first real program: a small network learns to read handwritten digits.

The network is a function of its parameters, a plain list of dicts; `grad` differentiates it, `vmap` lifts it
from one image to a batch, `jit` compiles the whole training step. The 1,797 images of 8x8 pixels ship with
scikit-learn. Run it with `make demo`; it prints the accuracy on images it has not seen and writes demo.png.
"""

from __future__ import annotations

import argparse
import importlib
import math
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import purax as px
import purax.numpy as jnp

Parameters = list[dict[str, Any]]


# --- the model: pure functions of parameters and one image --------------------------------------------------


def initialize(key: Any, widths: list[int]) -> Parameters:
    """Random weights and zero biases for a fully connected network with layers of the given widths."""
    keys = px.random.split(key, len(widths) - 1)
    return [
        {
            "weights": px.random.normal(layer_key, (inputs, outputs)) * math.sqrt(2.0 / inputs),
            "biases": jnp.zeros(outputs),
        }
        for layer_key, inputs, outputs in zip(keys, widths[:-1], widths[1:], strict=True)
    ]


def logits_of_one(parameters: Parameters, image: Any) -> Any:
    """Ten unnormalized log probabilities for one image of 64 pixels."""
    *hidden, last = parameters
    activations = image
    for layer in hidden:
        activations = jnp.maximum(activations @ layer["weights"] + layer["biases"], 0.0)
    return activations @ last["weights"] + last["biases"]


def loss_of_one(parameters: Parameters, image: Any, label: Any) -> Any:
    """Cross entropy: -log of the probability given to the right digit."""
    logits = logits_of_one(parameters, image)
    peak = jnp.max(logits)
    return jnp.log(jnp.sum(jnp.exp(logits - peak))) + peak - logits[label]


def mean_loss(parameters: Parameters, images: Any, labels: Any) -> Any:
    return jnp.mean(px.vmap(loss_of_one, in_axes=(None, 0, 0))(parameters, images, labels))


# --- the optimizer: Adam, written on trees ------------------------------------------------------------------


class Adam(NamedTuple):
    """The state of the optimizer: running means of the gradients and of their squares."""

    step: Any
    mean: Parameters
    square: Parameters


def start_adam(parameters: Parameters) -> Adam:
    zeros = px.tree.map(jnp.zeros_like, parameters)
    return Adam(jnp.zeros((), jnp.int32), zeros, zeros)


def adam_update(
    parameters: Parameters,
    state: Adam,
    gradients: Parameters,
    rate: Any,
    decay: float = 0.9,
    decay_square: float = 0.999,
) -> tuple[Parameters, Adam]:
    step = state.step + 1
    mean = px.tree.map(lambda m, g: decay * m + (1 - decay) * g, state.mean, gradients)
    square = px.tree.map(lambda s, g: decay_square * s + (1 - decay_square) * g * g, state.square, gradients)
    rate = rate * jnp.sqrt(1 - decay_square**step) / (1 - decay**step)
    parameters = px.tree.map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), parameters, mean, square)
    return parameters, Adam(step, mean, square)


@px.jit
def train_step(
    parameters: Parameters, state: Adam, images: Any, labels: Any, rate: Any
) -> tuple[Parameters, Adam, Any]:
    loss, gradients = px.value_and_grad(mean_loss)(parameters, images, labels)
    parameters, state = adam_update(parameters, state, gradients, rate)
    return parameters, state, loss


@px.jit
def evaluate(parameters: Parameters, images: Any, labels: Any) -> tuple[Any, Any]:
    """The loss of every image, and the digit that the network reads in it."""
    losses = px.vmap(loss_of_one, in_axes=(None, 0, 0))(parameters, images, labels)
    logits = px.vmap(logits_of_one, in_axes=(None, 0))(parameters, images)
    return losses, jnp.argmax(logits, axis=1)


# --- the data -----------------------------------------------------------------------------------------------


class Digits(NamedTuple):
    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load_digits(test_count: int = 360, seed: int = 0) -> Digits:
    datasets: Any = importlib.import_module("sklearn.datasets")  # which has no types
    data = datasets.load_digits()
    order = np.random.default_rng(seed).permutation(len(data.target))
    images = (data.data[order] / 16.0).astype(np.float32)
    labels = data.target[order].astype(np.int32)
    return Digits(images[test_count:], labels[test_count:], images[:test_count], labels[:test_count])


# --- training -----------------------------------------------------------------------------------------------


class History(NamedTuple):
    train_loss: list[float]
    test_loss: list[float]
    test_accuracy: list[float]


class ProgressBar:
    """A line that is redrawn on a terminal; ten plain lines where the output is a file or a pipe."""

    def __init__(self, total: int, width: int = 32) -> None:
        self.total, self.width = total, width
        self.terminal = sys.stdout.isatty()

    def show(self, done: int, text: str) -> None:
        filled = self.width * done // self.total
        line = f"[{'#' * filled}{'.' * (self.width - filled)}] {100 * done // self.total:3d}%  {text}"
        if self.terminal:
            print("\r\x1b[K" + line, end="\n" if done == self.total else "", flush=True)
        elif done == self.total or done % max(1, self.total // 10) == 0:
            print(line, flush=True)


def train(
    digits: Digits, epochs: int, batch: int, rate: float, seed: int
) -> tuple[Parameters, History, float]:
    """Trains for `epochs` passes over the data; returns parameters, curves and seconds per step."""
    key, start_key = px.random.split(px.random.PRNGKey(seed))
    parameters = initialize(start_key, [64, 128, 64, 10])
    state = start_adam(parameters)
    history = History([], [], [])
    steps = len(digits.train_labels) // batch
    step_times = []
    bar = ProgressBar(epochs)
    for epoch in range(epochs):
        key, shuffle_key = px.random.split(key)
        order = np.asarray(px.random.permutation(shuffle_key, len(digits.train_labels)))
        epoch_rate = rate * 0.5 * (1 + math.cos(math.pi * epoch / epochs))
        losses = []
        for rows in order[: steps * batch].reshape(steps, batch):
            started = time.perf_counter()
            parameters, state, loss = train_step(
                parameters, state, digits.train_images[rows], digits.train_labels[rows], epoch_rate
            )
            losses.append(float(loss))
            step_times.append(time.perf_counter() - started)
        test_losses, predicted = evaluate(parameters, digits.test_images, digits.test_labels)
        history.train_loss.append(float(np.mean(losses)))
        history.test_loss.append(float(np.mean(test_losses)))
        history.test_accuracy.append(float(np.mean(np.asarray(predicted) == digits.test_labels)))
        bar.show(epoch + 1, f"loss {history.train_loss[-1]:.4f}  accuracy {history.test_accuracy[-1]:.1%}")
    return parameters, history, float(np.median(step_times))


# --- the picture --------------------------------------------------------------------------------------------


def draw(path: Path, history: History, digits: Digits, losses: np.ndarray, predicted: np.ndarray) -> None:
    """Loss and accuracy per epoch, and the twelve test images with the largest loss."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    epochs = range(1, len(history.train_loss) + 1)
    figure = plt.figure(figsize=(11, 3.6), layout="constrained")
    parts: Any = figure.subfigures(1, 2, width_ratios=[1.9, 1])
    curves, pictures = parts
    loss_axes, accuracy_axes = curves.subplots(1, 2)
    loss_axes.semilogy(epochs, history.train_loss, label="training")
    loss_axes.semilogy(epochs, history.test_loss, label="test")
    loss_axes.set(title="loss", xlabel="epoch")
    loss_axes.legend(frameon=False)
    accuracy_axes.plot(epochs, [100 * accuracy for accuracy in history.test_accuracy], color="C1")
    accuracy_axes.set(title=f"test accuracy: {history.test_accuracy[-1]:.1%}", xlabel="epoch", ylabel="%")
    accuracy_axes.set_ylim(80, 100.5)
    for axes in (loss_axes, accuracy_axes):
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    wrong = int(np.sum(predicted != digits.test_labels))
    pictures.suptitle(f"the hardest images; {wrong} of {len(predicted)} read wrongly")
    hardest = np.argsort(-losses)[:12]
    for axes, row in zip(pictures.subplots(3, 4).ravel(), hardest, strict=True):
        label, read = digits.test_labels[row], predicted[row]
        axes.imshow(digits.test_images[row].reshape(8, 8), cmap="gray_r")
        axes.set_title(f"{label} read as {read}", fontsize=8, color="black" if read == label else "C3")
        axes.axis("off")
    figure.savefig(path, dpi=120)


def main(arguments: list[str] | None = None) -> float:
    """Trains, reports and draws; returns the test accuracy."""
    parser = argparse.ArgumentParser(description="Train a small network on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=2e-3, help="learning rate of Adam")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", type=Path, default=Path("demo.png"))
    options = parser.parse_args(arguments)

    started = time.perf_counter()
    digits = load_digits(seed=options.seed)
    counts = f"{len(digits.train_labels)} images to learn from, {len(digits.test_labels)} to test on"
    print(f"purax on {px.devices()[0]}: {counts}")
    parameters, history, seconds_per_step = train(
        digits, options.epochs, options.batch, options.rate, options.seed
    )
    losses, predicted = evaluate(parameters, digits.test_images, digits.test_labels)
    draw(options.plot, history, digits, np.asarray(losses), np.asarray(predicted))
    accuracy = history.test_accuracy[-1]
    print(f"test accuracy     {accuracy:.2%}")
    step = f"{seconds_per_step * 1e6:.0f} µs"
    print(f"time per step     {step} (batch of {options.batch}: forward, backward and update)")
    print(f"total time        {time.perf_counter() - started:.1f} s")
    print(f"plot              {options.plot}")
    return accuracy


if __name__ == "__main__":
    main()
