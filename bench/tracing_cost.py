"""Processor time of tracing with the analysis of captures and effects beside tracing without it, measured in turn.

`python -m bench.tracing_cost` prints, for each function, the least time of a trace without, with, and their ratio. Each
trace is of a new function object; "new code" has code objects that were never seen before.
"""

from __future__ import annotations

import gc
import time
import types
from collections.abc import Callable
from typing import Any

import numpy as np

import purax as px
import purax.numpy as jnp
from bench.rows.purity import unwatched


def again(function: types.FunctionType, is_new: bool) -> types.FunctionType:
    """The same function as a new object; if wanted with code that was never seen, of all functions of this module."""
    names = function.__globals__
    if is_new:
        names = dict(names)
        for name, value in list(names.items()):
            if type(value) is types.FunctionType and value.__module__ == __name__:
                names[name] = types.FunctionType(renewed(value.__code__), names, name, value.__defaults__)
        return names[function.__name__]
    return types.FunctionType(function.__code__, names, function.__name__)


def renewed(code: types.CodeType) -> types.CodeType:
    return code.replace(
        co_consts=tuple([renewed(c) if isinstance(c, types.CodeType) else c for c in code.co_consts])
    )


RATE, BIAS = 0.5, 1.0


def line(x: Any) -> Any:
    return x * RATE + BIAS


def lines(x: Any) -> Any:
    y = jnp.sin(x) * RATE + BIAS
    return jnp.where(y > 0, y, jnp.exp(y) - 1).sum()


class Layer:
    def __init__(self, size: int):
        self.weight, self.bias, self.rate, self.name = np.ones(size), 0.5, 0.1, "layer"
        self.options: dict[str, Any] = {"kept": [1.0, 2.0], "scale": 2.0}

    def __call__(self, x: Any) -> Any:
        return x * self.bias + self.options["scale"] * self.rate


LAYERS = [Layer(4) for _ in range(50)]


def captured(x: Any) -> Any:
    for layer in LAYERS:
        x = layer(x)
    return x


def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + EPSILON) * scale + bias


def attention(weights: Any, x: Any) -> Any:
    batch, length, size = x.shape
    q, k, v = [
        (x @ weights[name]).reshape(batch, length, HEADS, size // HEADS).transpose(0, 2, 1, 3) for name in "qkv"
    ]
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(size // HEADS)
    mask = jnp.tril(jnp.ones((length, length), bool))
    scores = px.nn.softmax(jnp.where(mask, scores, -1e9))
    return (scores @ v).transpose(0, 2, 1, 3).reshape(x.shape) @ weights["out"]


def block(weights: Any, x: Any) -> Any:
    x = x + attention(weights, layer_norm(x, *weights["norm_1"]))
    hidden = px.nn.gelu(layer_norm(x, *weights["norm_2"]) @ weights["up"])
    return x + hidden @ weights["down"]


def transformer(parameters: Any, x: Any) -> Any:
    for weights in parameters:
        x = block(weights, x)
    return x


def network(parameters: Any, x: Any) -> Any:
    for weight, bias in parameters[:-1]:
        x = jnp.tanh(x @ weight + bias)
    weight, bias = parameters[-1]
    return x @ weight + bias


def loss(parameters: Any, x: Any, y: Any) -> Any:
    return -(px.nn.log_softmax(network(parameters, x)) * y).sum(-1).mean()


def step(parameters: Any, x: Any, y: Any) -> Any:
    value, gradients = px.value_and_grad(loss)(parameters, x, y)
    return value, px.tree.map(lambda p, g: p - RATE * g, parameters, gradients)


EPSILON, HEADS, SIZE = 1e-5, 4, 64


def weights_of_block() -> dict[str, Any]:
    square, norm = jnp.ones((SIZE, SIZE)), (jnp.ones(SIZE), jnp.zeros(SIZE))
    wide = jnp.ones((SIZE, 4 * SIZE))
    return dict.fromkeys(("q", "k", "v", "out"), square) | {"norm_1": norm, "norm_2": norm, "up": wide, "down": wide.T}


def traced(function: Any, *arguments: Any) -> Callable[[bool], Callable[[], Any]]:
    return lambda is_new: (lambda call: lambda: call.trace(*arguments))(px.jit(again(function, is_new)))


def least(build: Callable[[bool], Callable[[], Any]], is_new: bool, rounds: int) -> tuple[float, float]:
    """The least processor times, in microseconds, without and with the analysis."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for kept, wrap in zip(times, (unwatched, lambda call: call), strict=True):
            call = wrap(build(is_new))
            start = time.process_time_ns()
            call()
            kept.append((time.process_time_ns() - start) / 1e3)
    return min(times[0]), min(times[1])


def main() -> None:
    x = jnp.ones(4)
    sizes = [(SIZE, SIZE)] * 3 + [(SIZE, 10)]
    parameters = [(jnp.ones(size), jnp.zeros(size[1])) for size in sizes]
    data = jnp.ones((32, SIZE)), jnp.ones((32, 10))
    tokens = jnp.ones((2, 16, SIZE))
    functions = {
        "one line": (traced(line, x), 2000),
        "two lines": (traced(lines, x), 1000),
        "50 captured objects": (traced(captured, x), 300),
        "4-layer network, loss": (traced(loss, parameters, *data), 300),
        "4-layer network, training": (traced(step, parameters, *data), 200),
        "4-layer transformer": (traced(transformer, [weights_of_block()] * 4, tokens), 100),
    }
    gc.disable()
    for name, (build, rounds) in functions.items():
        for is_new in (False, True):
            without, with_it = least(build, is_new, rounds)
            kind = "new code" if is_new else "known code"
            print(f"{name:28} {kind:10} {without:9.1f} µs {with_it:9.1f} µs  {with_it / without:.2f}", flush=True)
            gc.collect()


if __name__ == "__main__":
    main()
