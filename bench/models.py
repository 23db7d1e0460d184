"""Small models, written once for purax and jax and once for torch: parameters are NumPy trees, losses are functions.

Each pair (`mlp_loss`, `mlp_loss_torch`) computes the same number from the same parameters and data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.data import integers, normal

Tree = Any


def weight(*shape: int, seed: int) -> np.ndarray:
    """Normal values scaled to keep activations near one."""
    return normal(*shape, seed=seed, scale=1 / math.sqrt(shape[0]))


# --- multilayer perceptron and logistic regression


def mlp_parameters(sizes: tuple[int, ...]) -> Tree:
    return [
        {"w": weight(fan_in, fan_out, seed=place), "b": np.zeros(fan_out, np.float32)}
        for place, (fan_in, fan_out) in enumerate(zip(sizes[:-1], sizes[1:], strict=True))
    ]


def labelled(count: int, width: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and integer labels."""
    return normal(count, width, seed=50), integers(classes, count, seed=51)


def mlp_loss(space: Any) -> Callable[..., Any]:
    jnp, nn = space.jnp, space.nn

    def loss(layers: Tree, x: Any, labels: Any) -> Any:
        for layer in layers[:-1]:
            x = jnp.tanh(x @ layer["w"] + layer["b"])
        logits = nn.log_softmax(x @ layers[-1]["w"] + layers[-1]["b"])
        return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], axis=1))

    return loss


def mlp_loss_torch(space: Any) -> Callable[..., Any]:
    torch, functional = space.torch, space.functional

    def loss(layers: Tree, x: Any, labels: Any) -> Any:
        for layer in layers[:-1]:
            x = torch.tanh(x @ layer["w"] + layer["b"])
        return functional.cross_entropy(x @ layers[-1]["w"] + layers[-1]["b"], labels.long())

    return loss


def mlp_loss_autograd(space: Any) -> Callable[..., Any]:
    ops = space.ops

    def loss(layers: Tree, x: Any, labels: Any) -> Any:
        for layer in layers[:-1]:
            x = ops.tanh(ops.dot(x, layer["w"]) + layer["b"])
        logits = ops.dot(x, layers[-1]["w"]) + layers[-1]["b"]
        top = ops.max(logits, axis=1, keepdims=True)
        logits = logits - top - ops.log(ops.sum(ops.exp(logits - top), axis=1, keepdims=True))
        return -ops.mean(logits[np.arange(len(labels)), labels])

    return loss


def logistic_loss(space: Any) -> Callable[..., Any]:
    jnp = space.jnp

    def loss(parameters: Tree, x: Any, targets: Any) -> Any:
        logits = x @ parameters["w"] + parameters["b"]
        return jnp.mean(jnp.logaddexp(0.0, logits) - targets * logits)

    return loss


def logistic_loss_torch(space: Any) -> Callable[..., Any]:
    def loss(parameters: Tree, x: Any, targets: Any) -> Any:
        logits = x @ parameters["w"] + parameters["b"]
        return space.functional.binary_cross_entropy_with_logits(logits, targets)

    return loss


# --- transformer


def block_parameters(width: int, seed: int) -> Tree:
    return {
        "first_norm": {"scale": np.ones(width, np.float32), "shift": np.zeros(width, np.float32)},
        "second_norm": {"scale": np.ones(width, np.float32), "shift": np.zeros(width, np.float32)},
        "qkv": weight(width, 3 * width, seed=seed),
        "out": weight(width, width, seed=seed + 1),
        "up": weight(width, 4 * width, seed=seed + 2),
        "down": weight(4 * width, width, seed=seed + 3),
    }


def transformer_parameters(layers: int, width: int) -> Tree:
    return [block_parameters(width, seed=100 + 4 * layer) for layer in range(layers)]


def layer_norm(jnp: Any, x: Any, norm: Tree) -> Any:
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centred**2, axis=-1, keepdims=True)
    return centred / jnp.sqrt(variance + 1e-5) * norm["scale"] + norm["shift"]


def transformer_block(space: Any, heads: int = 4) -> Callable[[Tree, Any], Any]:
    """A pre-norm decoder block: causal self-attention and a two-layer perceptron."""
    jnp, nn = space.jnp, space.nn

    def block(parameters: Tree, x: Any) -> Any:
        batch, length, width = x.shape
        split = (batch, length, heads, width // heads)
        h = layer_norm(jnp, x, parameters["first_norm"])
        q, k, v = (part.reshape(split) for part in jnp.split(h @ parameters["qkv"], 3, axis=-1))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(width // heads)
        causal = jnp.tril(jnp.ones((length, length), dtype=bool))
        weights = nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
        x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ parameters["out"]
        h = layer_norm(jnp, x, parameters["second_norm"])
        return x + nn.gelu(h @ parameters["up"]) @ parameters["down"]

    return block


def transformer_block_torch(space: Any, heads: int = 4) -> Callable[[Tree, Any], Any]:
    functional = space.functional

    def block(parameters: Tree, x: Any) -> Any:
        batch, length, width = x.shape

        def normalize(x: Any, norm: Tree) -> Any:
            return functional.layer_norm(x, (width,), norm["scale"], norm["shift"])

        h = normalize(x, parameters["first_norm"])
        parts = (h @ parameters["qkv"]).split(width, dim=-1)
        q, k, v = (part.view(batch, length, heads, width // heads).transpose(1, 2) for part in parts)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + attended.transpose(1, 2).reshape(x.shape) @ parameters["out"]
        h = normalize(x, parameters["second_norm"])
        return x + functional.gelu(h @ parameters["up"], approximate="tanh") @ parameters["down"]

    return block


def forward(space: Any, jit_block: bool = False) -> Callable[[Tree, Any], Any]:
    """Transformer layers in a Python loop, as users write them; `jit_block` puts the block under `jit`."""
    block = transformer_block(space)
    block = space.px.jit(block) if jit_block else block

    def apply(layers: Tree, x: Any) -> Any:
        for parameters in layers:
            x = block(parameters, x)
        return x

    return apply


def training_step(space: Any, loss: Callable[..., Any], rate: float = 0.01) -> Callable[..., Any]:
    """One step of gradient descent: new parameters and the loss."""

    def step(parameters: Tree, *data: Any) -> Any:
        value, gradient = space.px.value_and_grad(loss)(parameters, *data)
        return space.px.tree.map(lambda p, g: p - rate * g, parameters, gradient), value

    return step


def transformer_loss(space: Any, jit_block: bool = False) -> Callable[..., Any]:
    jnp, apply = space.jnp, forward(space, jit_block)

    def loss(layers: Tree, x: Any, target: Any) -> Any:
        return jnp.mean((apply(layers, x) - target) ** 2)

    return loss


# --- convolutional network


def convnet_parameters(channels: int, classes: int = 10) -> Tree:
    return {
        "first": normal(channels, 3, 3, 3, seed=60, scale=0.2),
        "second": normal(channels, channels, 3, 3, seed=61, scale=1 / math.sqrt(9 * channels)),
        "dense": weight(channels, classes, seed=62),
    }


def convolve(space: Any, x: Any, kernel: Any, stride: int = 1, **settings: Any) -> Any:
    names = ("NCHW", "OIHW", "NCHW")
    return space.lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=names, **settings
    )


def convnet_loss(space: Any) -> Callable[..., Any]:
    jnp, nn = space.jnp, space.nn

    def loss(parameters: Tree, images: Any, labels: Any) -> Any:
        x = nn.relu(convolve(space, images, parameters["first"]))
        x = nn.relu(convolve(space, x, parameters["second"]))
        logits = nn.log_softmax(jnp.mean(x, axis=(2, 3)) @ parameters["dense"])
        return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], axis=1))

    return loss


def convnet_loss_torch(space: Any) -> Callable[..., Any]:
    functional = space.functional

    def loss(parameters: Tree, images: Any, labels: Any) -> Any:
        x = functional.relu(functional.conv2d(images, parameters["first"], padding=1))
        x = functional.relu(functional.conv2d(x, parameters["second"], padding=1))
        return functional.cross_entropy(x.mean((2, 3)) @ parameters["dense"], labels.long())

    return loss


# --- recurrent networks


def lstm_parameters(width: int, hidden: int) -> Tree:
    return {
        "w": weight(width, 4 * hidden, seed=70),
        "u": weight(hidden, 4 * hidden, seed=71),
        "b": np.zeros(4 * hidden, np.float32),
    }


def lstm_loss(space: Any) -> Callable[..., Any]:
    jnp, nn, lax = space.jnp, space.nn, space.lax

    def loss(parameters: Tree, sequence: Any) -> Any:
        def cell(carry: Any, x: Any) -> Any:
            h, c = carry
            gates = x @ parameters["w"] + h @ parameters["u"] + parameters["b"]
            i, f, g, o = jnp.split(gates, 4, axis=-1)
            c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
            h = nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        start = jnp.zeros((sequence.shape[1], parameters["u"].shape[0]))
        _, states = lax.scan(cell, (start, start), sequence)
        return jnp.mean(states**2)

    return loss


def lstm_loss_torch(space: Any) -> Callable[..., Any]:
    """torch's own fused LSTM; its gates come in the order i, f, g, o, too."""
    torch = space.torch

    def loss(parameters: Tree, sequence: Any) -> Any:
        start = torch.zeros(1, sequence.shape[1], parameters["u"].shape[0])
        weights = [parameters["w"].T, parameters["u"].T, parameters["b"], torch.zeros_like(parameters["b"])]
        states, _, _ = torch.lstm(sequence, (start, start), weights, True, 1, 0.0, True, False, False)
        return torch.mean(states**2)

    return loss


def unrolled_rnn_loss(space: Any, steps: int) -> Callable[..., Any]:
    jnp = space.jnp

    def loss(parameters: Tree, sequence: Any) -> Any:
        h = jnp.zeros((sequence.shape[1], parameters["u"].shape[1]))
        for step in range(steps):
            h = jnp.tanh(sequence[step] @ parameters["w"] + h @ parameters["u"] + parameters["b"])
        return jnp.mean(h**2)

    return loss


# --- a residual network of fifty layers


def resnet_parameters(blocks: tuple[int, ...], width: int, classes: int = 10) -> Tree:
    def kernel(out: int, into: int, side: int, seed: int) -> np.ndarray:
        return normal(out, into, side, side, seed=seed, scale=1 / math.sqrt(into * side * side))

    seed, channels, stages = 200, width, []
    for stage, count in enumerate(blocks):
        inner = width * 2**stage
        layers = []
        for _ in range(count):
            layers.append(
                {
                    "reduce": kernel(inner, channels, 1, seed),
                    "middle": kernel(inner, inner, 3, seed + 1),
                    "expand": kernel(4 * inner, inner, 1, seed + 2),
                    "shortcut": kernel(4 * inner, channels, 1, seed + 3),
                }
            )
            channels, seed = 4 * inner, seed + 4
        stages.append(layers)
    return {"stem": kernel(width, 3, 3, 199), "stages": stages, "dense": weight(channels, classes, seed=198)}


def resnet_loss(space: Any) -> Callable[..., Any]:
    jnp, nn = space.jnp, space.nn

    def normalize(x: Any) -> Any:
        mean = jnp.mean(x, axis=(0, 2, 3), keepdims=True)
        return (x - mean) / jnp.sqrt(jnp.mean((x - mean) ** 2, axis=(0, 2, 3), keepdims=True) + 1e-5)

    def bottleneck(layer: Tree, x: Any, stride: int) -> Any:
        h = nn.relu(normalize(convolve(space, x, layer["reduce"])))
        h = nn.relu(normalize(convolve(space, h, layer["middle"], stride)))
        h = normalize(convolve(space, h, layer["expand"]))
        return nn.relu(h + normalize(convolve(space, x, layer["shortcut"], stride)))

    def loss(parameters: Tree, images: Any, labels: Any) -> Any:
        x = nn.relu(normalize(convolve(space, images, parameters["stem"])))
        for stage, layers in enumerate(parameters["stages"]):
            for place, layer in enumerate(layers):
                x = bottleneck(layer, x, 2 if stage and not place else 1)
        logits = nn.log_softmax(jnp.mean(x, axis=(2, 3)) @ parameters["dense"])
        return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], axis=1))

    return loss
