"""The rows that make sense on a GPU, at sizes that keep one busy: calls, array work, training steps.

They are measured in a process of their own that holds the GPU, in which the peers take turns as usual; a machine
without one has no rows. Products of float32 matrices may use TF32 in all peers, which is XLA's default there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from bench import models
from bench.data import integers, normal
from bench.measure import Options, time_in_child, time_rows
from bench.peers import ON_GPU, map_leaves
from bench.row import LIKE_JAX, Builder, Group, Outcome, Row, bar
from bench.rows import jit, kernels, kernels_models
from bench.rows.kernels import bound

M = 1_000_000
DRIVER = Path("/dev/nvidiactl")
SETTINGS = {
    ON_GPU: "1",
    "JAX_PLATFORMS": "cuda",
    "PURAX_PLATFORMS": "cuda",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # the peers share the GPU's memory
}

CALLS = (
    "1 array",
    "10 arrays",
    "tree of 100 arrays",
    "donated state of 100 arrays",
    "static argument by position",
)
# The row here, the row of the kernel group that it enlarges, and its size.
LARGER = (
    ("sort 10M", "sort 1M", 10 * M),
    ("argmax 16M", "argmax 4M", 16 * M),
    ("top_k 100 of 10M", "top_k 100 of 1M", 10 * M),
    ("sin(x) + x² 16M", "sin(x) + x² 4M", 16 * M),
    ("tanh 16M", "tanh 4M", 16 * M),
    ("selu 16M", "selu 1M", 16 * M),
    ("mean 5000² axis 0", "mean 2000² axis 0", 5000),
    ("mean 5000² axis 1", "mean 2000² axis 1", 5000),
    ("var 5000² axis 0", "var 2000² axis 0", 5000),
    ("softmax 5000²", "softmax 2000²", 5000),
    ("logsumexp 5000²", "logsumexp 2000²", 5000),
    ("layernorm 5000²", "layernorm 2000²", 5000),
    ("cumsum 10M", "cumsum 1M", 10 * M),
    ("uniform 16M", "uniform 4M", 16 * M),
    ("normal 16M", "normal 4M", 16 * M),
    ("permutation 4M", "permutation 1M", 4 * M),
    ("matmul f32 4096", "matmul f32 2000", 4096),
    ("matmul bf16 4096", "matmul bf16 2000", 4096),
    ("gather 1M rows of 64", "gather 100k rows of 64", M),
    ("scatter-add 1M rows of 64", "scatter-add 100k rows of 64", M),
    ("fft 4M", "fft 1M", 1 << 22),
    ("pairwise distances 8000×3", "pairwise distances 4000×3", 8_000),
    ("vmap(grad(f)) 16M points", "vmap(grad(f)) 10M points", 16 * M),
)


def time_on_gpu(group: Group, rows: list[Row], options: Options) -> Iterator[Outcome]:
    if ON_GPU in os.environ:
        return time_rows(group, rows, options)
    if not DRIVER.exists():
        return iter(())
    return time_in_child(group, rows, options, os.environ | SETTINGS)


FIELD = "torch torch.compile"
group = Group(
    "gpu", "array work and training on a GPU", time_on_gpu, bars=(bar(1.03, "jax"), bar(1.0, FIELD))
)


def in_bfloat16(inputs: Callable[[int], tuple[Any, ...]]) -> Callable[[int], tuple[Any, ...]]:
    def narrow(leaf: np.ndarray) -> np.ndarray:
        return leaf.astype(ml_dtypes.bfloat16) if leaf.dtype == np.float32 else leaf

    return lambda size: tuple(map_leaves(narrow, list(inputs(size))))


def training(
    name: str,
    inputs: Callable[[int], tuple[Any, ...]],
    loss: Callable[[Any], Callable[..., Any]],
    loss_torch: Callable[[Any], Callable[..., Any]],
    size: int,
) -> None:
    """A training step in float32 and in bfloat16."""

    def step(space: Any) -> Callable[..., Any]:
        return models.training_step(space, loss(space))

    def step_torch(space: Any) -> Callable[..., Any]:
        return kernels_models.torch_gradient(space, loss_torch, step=True)

    for precision, data in (("f32", inputs), ("bf16", in_bfloat16(inputs))):
        builders: dict[str, Builder] = dict.fromkeys(LIKE_JAX, bound(step, data, "jit"))
        builders["torch"] = bound(step_torch, data)
        builders["torch.compile"] = bound(step_torch, data, "torch")
        group.add(f"{precision} {name}", builders, size=size, smoke_size=2, rtol=0.05, atol=0.05)


def register() -> None:
    """Append the rows; to be called when those of the kernel group are complete."""
    for name in CALLS:
        row = next(row for row in jit.group.rows if row.name == name)
        group.rows.append(replace(row, group=group.name, name=f"jit call, {name}", bars=group.row_bars()))
    for name, smaller, size in LARGER:
        row = next(row for row in kernels.group.rows if row.name == smaller)
        builders = {label: row.builders[label] for label in row.builders if label not in ("numpy", "numba")}
        group.rows.append(
            replace(
                row, group=group.name, name=name, size=size, builders=builders, bars=group.row_bars(),
                heavy=False, rtol=max(row.rtol, 1e-2), atol=max(row.atol, 1e-2),
            )
        )  # fmt: skip
    training(
        "step of MLP 2048×4, 8192 examples",
        lambda n: (models.mlp_parameters((2048, 2048, 2048, 2048, 10)), *models.labelled(n, 2048, 10)),
        models.mlp_loss,
        models.mlp_loss_torch,
        8192,
    )
    training(
        "step of transformer block 1024, 8×1024 tokens",
        lambda n: (models.block_parameters(1024, seed=9), normal(8, n, 1024, seed=10)),
        kernels_models.squared_block,
        kernels_models.squared_block_torch,
        1024,
    )
    training(
        "step of convnet 64 channels, 256×3×64²",
        lambda n: (models.convnet_parameters(64), normal(n, 3, 64, 64, seed=11), integers(10, n)),
        models.convnet_loss,
        models.convnet_loss_torch,
        256,
    )
