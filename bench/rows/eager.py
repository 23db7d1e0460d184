"""Operations run one by one, outside jit: the cost of a call at 4 elements, the cost of the work at 10⁴ and 10⁶.

A row is a function of `(ops, x, y)`, where `ops` is the peer's module of array operations; NumPy, torch and autograd
share the text wherever they share the spelling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.data import integers, normal
from bench.measure import time_rows
from bench.row import LIKE_JAX, Bar, Builder, Group, bar

small = Group(
    "eager",
    "operations on 4 elements",
    time_rows,
    bars=(
        bar(1 / 3, "jax", "base"),
        bar(1 / 8, "jax", "base", mean=True),
        bar(0.1, "jax", mean=True),
        bar(1.0, "torch", mean=True),
    ),
)
large = Group(
    "eager-large",
    "operations on 10⁴ and 10⁶ elements",
    time_rows,
    bars=(bar(1.05, "jax"), bar(1.0, "numpy torch", mean=True)),
)

Text = Callable[..., Callable[[], Any]]
ALL = ("purax", "jax", "torch", "numpy")


def add(
    name: str,
    builders: dict[str, Builder],
    *,
    sizes: tuple[int, ...],
    bars: tuple[Bar, ...] = (),
    **fields: Any,
):
    """A row at 4 elements, and one for each larger size."""
    small.add(name, builders, size=4, smoke_size=4, force="last", bars=small.row_bars() + bars, **fields)
    for size in sizes:
        large.add(f"{name} {size:.0e}".replace("e+0", "e"), builders, size=size, smoke_size=4, **fields)


def operation(
    name: str,
    text: Text,
    *,
    shared: tuple[str, ...] = ALL,
    torch: Text | None = None,
    numpy: Text | None = None,
    square: bool = False,
    sizes: tuple[int, ...] = (10_000, 1_000_000),
    **fields: Any,
) -> None:
    """A row `text(ops, x, y)`, with other spellings for torch and numpy where needed.

    `x` and `y` are vectors, or square matrices of as many elements with `square`.
    """

    def builder(own_text: Text) -> Builder:
        def build(space: Any, size: int) -> Callable[[], Any]:
            side = round(size**0.5)
            shape = (side, side) if square else (size,)
            x, y = space.array(normal(*shape, seed=1)), space.array(normal(*shape, seed=2))
            return own_text(space.ops, x, y)

        return build

    texts = dict.fromkeys(shared, text) | dict.fromkeys(LIKE_JAX, text)
    texts |= {label: own for label, own in (("torch", torch), ("numpy", numpy)) if own is not None}
    add(name, {label: builder(own) for label, own in texts.items()}, sizes=sizes, **fields)


def clone_and_set(ops: Any, x: Any, y: Any) -> Callable[[], Any]:
    def run() -> Any:
        z = x.clone()
        z[0] = 1.0
        return z

    return run


def copy_and_set(ops: Any, x: Any, y: Any) -> Callable[[], Any]:
    def run() -> Any:
        z = x.copy()
        z[0] = 1.0
        return z

    return run


operation("x + y", lambda ops, x, y: lambda: x + y, bars=(bar(1.5, "torch", "base"),))
operation("x - y", lambda ops, x, y: lambda: x - y)
operation("x * y", lambda ops, x, y: lambda: x * y)
operation("x / y", lambda ops, x, y: lambda: x / y)
operation("x * 2", lambda ops, x, y: lambda: x * 2, sizes=())
operation("-x", lambda ops, x, y: lambda: -x, sizes=())
operation("sin(x)", lambda ops, x, y: lambda: ops.sin(x))
operation("where(x > 0, x, y)", lambda ops, x, y: lambda: ops.where(x > 0, x, y))
operation("x > y", lambda ops, x, y: lambda: x > y)
operation("x[0]", lambda ops, x, y: lambda: x[0])
operation("x[1:3]", lambda ops, x, y: lambda: x[1:3])
operation(
    "x.at[0].set(1.)",
    lambda ops, x, y: lambda: x.at[0].set(1.0),
    shared=(),
    torch=clone_and_set,
    numpy=copy_and_set,
)
operation("sum(x)", lambda ops, x, y: lambda: ops.sum(x), rtol=1e-4, atol=1e-2)
operation("max(x)", lambda ops, x, y: lambda: ops.max(x))
operation("argmax(x)", lambda ops, x, y: lambda: ops.argmax(x))
operation("mean(x)", lambda ops, x, y: lambda: ops.mean(x), rtol=1e-4)
operation("x.reshape(2, -1)", lambda ops, x, y: lambda: x.reshape(2, -1))
operation("x.T", lambda ops, x, y: lambda: x.T, square=True)
operation("concatenate([x, y])", lambda ops, x, y: lambda: ops.concatenate([x, y]))
operation("stack([x, y])", lambda ops, x, y: lambda: ops.stack([x, y]))
operation("dot(x, y)", lambda ops, x, y: lambda: ops.dot(x, y), rtol=1e-3, atol=1e-2)
operation("einsum('i,i->')", lambda ops, x, y: lambda: ops.einsum("i,i->", x, y), rtol=1e-3, atol=1e-2)
operation(
    "x @ y matrices", lambda ops, x, y: lambda: x @ y, square=True, sizes=(10_000,), rtol=1e-3, atol=1e-4
)
operation(
    "astype(int32)",
    lambda ops, x, y: lambda: x.astype("int32"),
    shared=("numpy",),
    torch=lambda ops, x, y: lambda: x.to(ops.int32),
)
operation("clip(x, -1, 1)", lambda ops, x, y: lambda: ops.clip(x, -1.0, 1.0))
operation("float(x[0])", lambda ops, x, y: lambda: float(x[0]), sizes=())


def taken(space: Any, size: int) -> Callable[[], Any]:
    x, indices = space.array(normal(size, seed=1)), space.array(integers(size, size))
    return lambda: x[indices]


def from_list(space: Any, size: int) -> Callable[[], Any]:
    values = normal(size).astype(float).tolist()
    if space.peer in LIKE_JAX:
        array = space.jnp.array
        return lambda: array(values)
    if space.peer == "torch":
        tensor = space.torch.tensor
        return lambda: tensor(values)
    return lambda: np.array(values, dtype=np.float32)


def count(space: Any, size: int) -> Callable[[], Any]:
    arange = space.ops.arange
    return lambda: arange(size)


def line(space: Any, size: int) -> Callable[[], Any]:
    linspace = space.ops.linspace
    return lambda: linspace(0.0, 1.0, size)


def blank(space: Any, size: int) -> Callable[[], Any]:
    zeros = space.ops.zeros
    return lambda: zeros(size)


def split(space: Any, size: int) -> Callable[[], Any]:
    random = space.random
    key = random.PRNGKey(0)
    return lambda: random.split(key, size // 2)


def draw(space: Any, size: int) -> Callable[[], Any]:
    if space.peer in LIKE_JAX:
        random = space.random
        key, shape = random.PRNGKey(0), (size,)
        return lambda: random.normal(key, shape)
    if space.peer == "torch":
        randn = space.torch.randn
        return lambda: randn(size)
    generator = np.random.default_rng(0)
    return lambda: generator.standard_normal(size, dtype=np.float32)


def shape_only(results: list[np.ndarray]) -> list[np.ndarray]:
    """Random streams differ between the peers; the shape does not, and all values are numbers."""
    return [np.isfinite(each.astype(np.float64)) for each in results]


add("x[indices]", dict.fromkeys(ALL, taken), sizes=(10_000, 1_000_000))
add("array(list)", dict.fromkeys(ALL, from_list), sizes=(10_000,))
add("arange(n)", dict.fromkeys(ALL, count), sizes=(10_000, 1_000_000))
add("linspace(0, 1, n)", dict.fromkeys(ALL, line), sizes=(10_000, 1_000_000), rtol=1e-4)
add("zeros(n)", dict.fromkeys(ALL, blank), sizes=(10_000, 1_000_000))
add("random.split", dict.fromkeys(LIKE_JAX, split), sizes=(), view=shape_only)
add("random.normal", dict.fromkeys(ALL, draw), sizes=(10_000, 1_000_000), view=shape_only)
