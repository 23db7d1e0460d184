"""The peers as rows see them: one `Space` each, with the modules of the peer and how to hand arrays in and out.

A row is written once for purax and jax, as a function of a `LikeJax` space, and again for torch, numpy, autograd and
numba where there is a natural counterpart. Modules are imported when a row asks for them, so that a function or module
which purax does not have yet is a missing row and not a crash.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

PEERS = ("purax", "jax", "torch", "numpy", "autograd", "numba")
MISSING = (ImportError, AttributeError, NotImplementedError)


def leaves(tree: Any) -> list[Any]:
    """Leaves of nested tuples, lists and dictionaries, with dictionary keys in order."""
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, (tuple, list)):
        return [leaf for branch in tree for leaf in leaves(branch)]
    return [] if tree is None else [tree]


def map_leaves(function: Any, tree: Any) -> Any:
    """Apply `function` to every leaf of nested tuples, lists and dictionaries."""
    if isinstance(tree, dict):
        return {key: map_leaves(function, branch) for key, branch in tree.items()}
    if isinstance(tree, (tuple, list)):
        return type(tree)(map_leaves(function, branch) for branch in tree)
    return function(tree)


class Space:
    """NumPy and what stands on it: `ops` is the module that holds the array operations."""

    is_asynchronous = False  # whether a result may still be pending when a call returns

    def __init__(self, label: str):
        self.label = label
        self.peer = label.split(".")[0]

    @cached_property
    def ops(self) -> ModuleType:
        return importlib.import_module("autograd.numpy" if self.peer == "autograd" else "numpy")

    def array(self, value: np.ndarray) -> Any:
        """The peer's own array with the value of a NumPy array."""
        return value

    def arrays(self, tree: Any) -> Any:
        return map_leaves(self.array, tree)

    def force(self, result: Any) -> None:
        """Wait until `result` has been computed."""

    def host(self, result: Any) -> list[np.ndarray]:
        """The leaves of `result` as NumPy arrays."""
        return [np.asarray(leaf) for leaf in leaves(result)]


class LikeJax(Space):
    """purax, or jax: `px` is the package itself, `jnp` and the others its modules."""

    is_asynchronous = True

    @cached_property
    def px(self) -> ModuleType:
        return importlib.import_module(self.peer)

    @cached_property
    def jnp(self) -> ModuleType:
        return importlib.import_module(f"{self.peer}.numpy")

    @cached_property
    def lax(self) -> ModuleType:
        return importlib.import_module(f"{self.peer}.lax")

    @cached_property
    def random(self) -> ModuleType:
        return importlib.import_module(f"{self.peer}.random")

    @cached_property
    def nn(self) -> ModuleType:
        return importlib.import_module(f"{self.peer}.nn")

    @cached_property
    def special(self) -> ModuleType:
        return importlib.import_module(f"{self.peer}.scipy.special")

    @cached_property
    def ops(self) -> ModuleType:
        return self.jnp

    def array(self, value: np.ndarray) -> Any:
        return self.jnp.asarray(value)

    def force(self, result: Any) -> None:
        for leaf in leaves(result):
            wait = getattr(leaf, "block_until_ready", None)
            if wait is not None:
                wait()

    def double_precision(self) -> Any:
        """A context in which float64 arrays can be made: jax asks for a switch, purax does not."""
        return self.px.enable_x64(True) if self.peer == "jax" else contextlib.nullcontext()


ON_GPU = "BENCH_ON_GPU"  # set in the process that measures the rows of a GPU


class Torch(Space):
    """torch, on the CPU or, where the rows are those of a GPU, on the GPU."""

    is_asynchronous = ON_GPU in os.environ

    @cached_property
    def torch(self) -> ModuleType:
        torch = importlib.import_module("torch")
        if self.is_asynchronous:  # XLA's default precision on a GPU is TF32
            torch.set_float32_matmul_precision("high")
            torch.backends.cudnn.allow_tf32 = True
        return torch

    @cached_property
    def functional(self) -> ModuleType:
        return importlib.import_module("torch.nn.functional")

    @cached_property
    def ops(self) -> ModuleType:
        return self.torch

    def array(self, value: np.ndarray) -> Any:
        device = "cuda" if self.is_asynchronous else "cpu"
        if value.dtype.name == "bfloat16":
            return self.torch.from_numpy(value.astype(np.float32)).bfloat16().to(device)
        return self.torch.from_numpy(np.array(value)).to(device)

    def force(self, result: Any) -> None:
        if self.is_asynchronous:
            self.torch.cuda.synchronize()

    def host(self, result: Any) -> list[np.ndarray]:
        def to_numpy(leaf: Any) -> np.ndarray:
            if not isinstance(leaf, self.torch.Tensor):
                return np.asarray(leaf)
            leaf = leaf.detach().cpu()
            return (leaf.float() if leaf.dtype == self.torch.bfloat16 else leaf).numpy()

        return [to_numpy(leaf) for leaf in leaves(result)]


class Numba(Space):
    """numba: rows compile themselves with `njit`."""

    @cached_property
    def njit(self) -> Any:
        return importlib.import_module("numba").njit


def space(label: str) -> Space:
    """The space behind a label such as `jax`, `torch` or `torch.autograd`."""
    kinds = {"purax": LikeJax, "jax": LikeJax, "torch": Torch, "numba": Numba}
    return kinds.get(label.split(".")[0], Space)(label)


def is_installed(peer: str) -> bool:
    return importlib.util.find_spec(peer) is not None


def versions() -> dict[str, str]:
    """Version of each installed peer and of jaxlib."""
    metadata = importlib.import_module("importlib.metadata")
    found = {}
    for peer in (*PEERS, "jaxlib"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[peer] = metadata.version(peer)
    return found
