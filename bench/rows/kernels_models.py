"""More kernel rows: convolutions, loops, the documents' own examples, and the gradients of small models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench import models
from bench.data import integers, normal, uniform
from bench.peers import leaves, map_leaves
from bench.row import bar
from bench.rows.kernels import FIELD, Maker, jitted_loop, kernel

GRADIENT_BARS = (bar(1.05, "jax", "base"), bar(1.15, FIELD))


# --- convolutions and their gradients


def images(channels: int, out: int, side: int, groups: int = 1) -> Callable[[int], tuple[Any, ...]]:
    def make(size: int) -> tuple[Any, ...]:
        return normal(8, channels, size, size, seed=1), normal(
            out, channels // groups, side, side, seed=2, scale=0.1
        )

    return make


def convolution(groups: int = 1) -> Maker:
    return lambda s: lambda x, kernel: models.convolve(s, x, kernel, feature_group_count=groups)


def convolution_torch(groups: int = 1) -> Maker:
    return lambda s: lambda x, kernel: s.functional.conv2d(x, kernel, padding="same", groups=groups)


def transposed(s: Any) -> Callable[..., Any]:
    names = ("NCHW", "IOHW", "NCHW")
    return lambda x, kernel: s.lax.conv_transpose(
        x, kernel, (2, 2), [(2, 2), (2, 2)], dimension_numbers=names, transpose_kernel=False
    )


def transposed_torch(s: Any) -> Callable[..., Any]:
    """torch flips the kernel where conv_transpose does not."""
    return lambda x, kernel: s.functional.conv_transpose2d(x, kernel.flip(2, 3), stride=2)


def gradients_of(make: Maker) -> Maker:
    """Gradients of the sum of squares in both arguments."""

    def gradient(s: Any) -> Callable[..., Any]:
        function = make(s)
        return s.px.grad(lambda x, kernel: s.jnp.sum(function(x, kernel) ** 2), argnums=(0, 1))

    return gradient


def gradients_of_torch(make: Maker) -> Maker:
    def gradient(s: Any) -> Callable[..., Any]:
        function, grad = make(s), s.torch.autograd.grad

        def run(x: Any, kernel: Any) -> Any:
            x, kernel = x.detach().requires_grad_(), kernel.detach().requires_grad_()
            return grad((function(x, kernel) ** 2).sum(), (x, kernel))

        return run

    return gradient


def register_convolutions() -> None:
    cases = (
        ("conv 3×3 8×64×56²", images(64, 64, 3), convolution(), convolution_torch()),
        ("conv 1×1 8×64×56²", images(64, 64, 1), convolution(), convolution_torch()),
        ("conv depthwise 3×3 8×64×56²", images(64, 64, 3, groups=64), convolution(64), convolution_torch(64)),
        ("conv transposed 3×3 8×64×56²", images(64, 64, 3), transposed, transposed_torch),
    )
    for name, inputs, make, torch in cases:
        kernel(name, inputs, make, torch=torch, size=56, smoke=6, rtol=1e-3, atol=1e-3)
        kernel(
            f"grad {name}",
            inputs,
            gradients_of(make),
            torch=gradients_of_torch(torch),
            size=56,
            smoke=6,
            rtol=1e-3,
            atol=5e-2,
        )


# --- loops


def recurrence_loop(x):
    out = np.empty_like(x)
    carry = np.float32(0.0)
    for place in range(x.size):
        carry = np.float32(0.9) * carry + x[place]
        out[place] = carry
    return out


def recurrence(s: Any) -> Callable[[Any], Any]:
    def step(carry: Any, x: Any) -> Any:
        carry = 0.9 * carry + x
        return carry, carry

    return lambda x: s.lax.scan(step, s.jnp.float32(0.0), x)[1]


def congruence_loop(limit):
    """As many steps of a linear congruence as `limit` says."""
    state = np.int32(1)
    for _ in range(limit[0]):
        state = (state * np.int32(5) + np.int32(3)) % np.int32(65521)
    return state


def congruence(s: Any) -> Callable[[Any], Any]:
    def advance(carry: Any) -> Any:
        step, state = carry
        return step + 1, (state * 5 + 3) % 65521

    def run(limit: Any) -> Any:
        start = (s.jnp.int32(0), s.jnp.int32(1))
        return s.lax.while_loop(lambda carry: carry[0] < limit[0], advance, start)[1]

    return run


def rnn(s: Any) -> Callable[..., Any]:
    def run(w: Any, u: Any, sequence: Any) -> Any:
        def cell(h: Any, x: Any) -> Any:
            h = s.jnp.tanh(x @ w + h @ u)
            return h, h

        return s.lax.scan(cell, s.jnp.zeros((sequence.shape[1], u.shape[0])), sequence)[1]

    return run


def rnn_torch(s: Any) -> Callable[..., Any]:
    def run(w: Any, u: Any, sequence: Any) -> Any:
        start = s.torch.zeros(1, sequence.shape[1], u.shape[0])
        weights = [w.T, u.T]
        return s.torch.rnn_tanh(sequence, start, weights, False, 1, 0.0, False, False, False)[0]

    return run


def register_loops() -> None:
    kernel(
        "scan, scalar recurrence 100k",
        lambda n: (normal(n, seed=1),),
        recurrence,
        numba=jitted_loop(recurrence_loop),
        size=100_000,
    )
    kernel(
        "while_loop 1M steps",
        lambda n: (np.array([n], np.int32),),
        congruence,
        numba=jitted_loop(congruence_loop),
        size=1_000_000,
    )
    kernel(
        "scan, RNN 200 steps",
        lambda n: (models.weight(64, 64, seed=1), models.weight(64, 64, seed=2), normal(n, 16, 64, seed=3)),
        rnn,
        torch=rnn_torch,
        size=200,
        rtol=1e-3,
    )


# --- the documents' own examples


def distances(ops: Any) -> Callable[[Any], Any]:
    return lambda points: ops.abs(points[:, None, :] - points[None, :, :]).sum(-1)


def pairwise(s: Any) -> Callable[[Any], Any]:
    vmap = s.px.vmap

    def distance(x: Any, y: Any) -> Any:
        return s.jnp.sum(s.jnp.abs(x - y))

    return lambda points: vmap(vmap(distance, (0, None)), (None, 0))(points, points)


def pairwise_loop(points):
    count = points.shape[0]
    out = np.empty((count, count), points.dtype)
    for row in range(count):
        for column in range(count):
            total = np.float32(0.0)
            for axis in range(points.shape[1]):
                total += abs(points[row, axis] - points[column, axis])
            out[row, column] = total
    return out


def cubic(ops: Any) -> Callable[[Any], Any]:
    return lambda x: ops.tanh(x) * x**2


def register_examples() -> None:
    for count in (4_000, 20_000):
        kernel(
            f"pairwise distances {count}×3",
            lambda n: (normal(n, 3, seed=1),),
            pairwise,
            torch=lambda s: lambda points: s.torch.cdist(points, points, p=1.0),
            numpy=(lambda s: distances(np)) if count == 4_000 else None,
            numba=jitted_loop(pairwise_loop),
            size=count,
            heavy=count == 20_000,
        )
    kernel(
        "vmap(grad(f)) 10M points",
        lambda n: (uniform(n, low=-3.0, high=3.0),),
        lambda s: s.px.vmap(s.px.grad(cubic(s.jnp))),
        torch=lambda s: s.torch.vmap(s.torch.func.grad(cubic(s.torch))),
        size=10_000_000,
    )


# --- gradients and training steps of small models


def torch_gradient(s: Any, loss: Callable[[Any], Callable[..., Any]], step: bool) -> Callable[..., Any]:
    """The gradient of a loss by torch's autograd, or a step of gradient descent along it."""
    function, grad = loss(s), s.torch.autograd.grad

    def run(parameters: Any, *data: Any) -> Any:
        parameters = map_leaves(lambda leaf: leaf.detach().requires_grad_(), parameters)
        flat, value = leaves(parameters), function(parameters, *data)
        gradients = grad(value, flat)
        if not step:
            return gradients
        with s.torch.no_grad():
            return [p - 0.01 * g for p, g in zip(flat, gradients, strict=True)], value

    return run


def model(
    name: str,
    inputs: Callable[[int], tuple[Any, ...]],
    loss: Callable[[Any], Callable[..., Any]],
    loss_torch: Callable[[Any], Callable[..., Any]],
    *,
    size: int,
    smoke: int = 2,
) -> None:
    """Two rows: the gradient of the loss in its first argument, and a step of gradient descent."""

    settings = {"size": size, "smoke": smoke, "rtol": 1e-3, "atol": 1e-4, "bars": GRADIENT_BARS}
    kernel(
        f"grad of {name}",
        inputs,
        lambda s: s.px.grad(loss(s)),
        torch=lambda s: torch_gradient(s, loss_torch, step=False),
        **settings,
    )
    kernel(
        f"training step of {name}",
        inputs,
        lambda s: models.training_step(s, loss(s)),
        torch=lambda s: torch_gradient(s, loss_torch, step=True),
        **settings,
    )


def squared_block(s: Any) -> Callable[..., Any]:
    block = models.transformer_block(s)
    return lambda parameters, x: s.jnp.mean(block(parameters, x) ** 2)


def squared_block_torch(s: Any) -> Callable[..., Any]:
    block = models.transformer_block_torch(s)
    return lambda parameters, x: (block(parameters, x) ** 2).mean()


def register_models() -> None:
    model(
        "logistic regression 10k×100",
        lambda n: (
            {"w": models.weight(100, seed=1), "b": np.zeros((), np.float32)},
            normal(n, 100, seed=2),
            integers(2, n, dtype=np.float32),
        ),
        models.logistic_loss,
        models.logistic_loss_torch,
        size=10_000,
    )
    model(
        "MLP 784-256-256-10, 128 examples",
        lambda n: (models.mlp_parameters((784, 256, 256, 10)), *models.labelled(n, 784, 10)),
        models.mlp_loss,
        models.mlp_loss_torch,
        size=128,
    )
    model(
        "transformer block 256, 4×64 tokens",
        lambda n: (models.block_parameters(256, seed=9), normal(4, n, 256, seed=10)),
        squared_block,
        squared_block_torch,
        size=64,
    )
    model(
        "convnet 32 channels, 16×3×32²",
        lambda n: (models.convnet_parameters(32), normal(n, 3, 32, 32, seed=11), integers(10, n)),
        models.convnet_loss,
        models.convnet_loss_torch,
        size=16,
    )
    model(
        "LSTM by scan 64, 100 steps",
        lambda n: (models.lstm_parameters(64, 64), normal(n, 16, 64, seed=12)),
        models.lstm_loss,
        models.lstm_loss_torch,
        size=100,
    )


def register() -> None:
    """Append the rows of this module to the kernel group."""
    register_convolutions()
    register_loops()
    register_examples()
    register_models()
