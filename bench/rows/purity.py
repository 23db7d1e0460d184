"""What checking for purity costs: tracing with it beside tracing without, and calls that compare what they captured.

The other columns are purax too: `purax.unwatched` traces without following code, `purax.plain` calls a function that
captures nothing, `purax.frozen` one that captures a read-only array.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from bench import models
from bench.data import normal
from bench.measure import time_rows
from bench.row import Builder, Group, bar

group = Group("purity", "purax with its checks for purity beside purax without", time_rows)
CAPTURED = 100_000


def unwatched(call: Callable[[], Any]) -> Callable[[], Any]:
    """A call during which no code is followed."""
    from purax.core import purity_hook

    def run() -> Any:
        watcher = purity_hook.installed.watcher
        purity_hook.set_watcher(purity_hook.Watcher())
        try:
            return call()
        finally:
            purity_hook.set_watcher(watcher)

    return run


def renewed() -> Any:
    """The functions of `bench.models` with code that has never been seen."""
    namespace = dict(vars(models))

    def new(code: types.CodeType) -> types.CodeType:
        return code.replace(
            co_consts=tuple([new(c) if isinstance(c, types.CodeType) else c for c in code.co_consts])
        )

    for name, value in vars(models).items():
        if isinstance(value, types.FunctionType) and value.__module__ == models.__name__:
            namespace[name] = types.FunctionType(
                new(value.__code__), namespace, name, value.__defaults__, value.__closure__
            )
    return types.SimpleNamespace(**namespace)


def network(space: Any, size: int, of: Any) -> tuple[Callable[..., Any], tuple]:
    data = models.labelled(32, 64, 10)
    return of.training_step(space, of.mlp_loss(space)), (models.mlp_parameters((64,) * size + (10,)), *data)


def transformer(space: Any, size: int, of: Any) -> tuple[Callable[..., Any], tuple]:
    return of.forward(space), (models.transformer_parameters(size, 64), normal(2, 16, 64))


def tracing(model: Callable, is_new: bool) -> Builder:
    """Traces a model, as a function that was never traced before."""

    def build(space: Any, size: int) -> Callable[[], Any]:
        _, arguments = model(space, size, models)

        def run() -> int:
            function, _ = model(space, size, renewed() if is_new else models)
            space.px.jit(lambda *args: function(*args)).trace(*arguments)
            return 0

        return run

    return build


def add_tracing(name: str, model: Callable, size: int, is_new: bool) -> None:
    build = tracing(model, is_new)
    without: Builder = lambda space, size: unwatched(build(space, size))  # noqa: E731
    group.add(
        name,
        {"purax": build, "purax.unwatched": without},
        size=size,
        smoke_size=2,
        bars=(bar(1.1, "purax.unwatched"),),
    )


add_tracing("trace 12-layer network, training", network, 12, False)
add_tracing("trace 12-layer network, training, new code", network, 12, True)
add_tracing("trace 24-layer transformer", transformer, 24, False)
add_tracing("trace 24-layer transformer, new code", transformer, 24, True)


def five_captured(space: Any, size: int) -> Callable[[], Any]:
    a, b, c, d, e = 1.0, 2.0, 3.0, 4.0, 5.0
    x = space.array(normal(4))
    f = space.px.jit(lambda x: x * a + b - c * d + e)
    return lambda: f(x)


def five_written(space: Any, size: int) -> Callable[[], Any]:
    x = space.array(normal(4))
    f = space.px.jit(lambda x: x * 1.0 + 2.0 - 3.0 * 4.0 + 5.0)
    return lambda: f(x)


def helper(x: Any, factor: float = 2.0) -> Any:
    return x * factor


def five_helpers(space: Any, size: int) -> Callable[[], Any]:
    x = space.array(normal(4))
    names = {
        f"h{i}": types.FunctionType(helper.__code__.replace(co_name=f"h{i}"), globals(), f"h{i}", (float(i),))
        for i in range(1, 6)
    }
    f = space.px.jit(eval("lambda x: h1(x) + h2(x) + h3(x) + h4(x) + h5(x)", names))
    return lambda: f(x)


def five_products(space: Any, size: int) -> Callable[[], Any]:
    x = space.array(normal(4))
    f = space.px.jit(lambda x: x * 1.0 + x * 2.0 + x * 3.0 + x * 4.0 + x * 5.0)
    return lambda: f(x)


def captured_array(space: Any, size: int, is_frozen: bool) -> Callable[[], Any]:
    table = np.ones(size, np.float32)
    table.flags.writeable = not is_frozen
    x = space.array(normal(4))
    f = space.px.jit(lambda x: x + table[:4])
    return lambda: f(x)


group.add(
    "call with 5 captured numbers",
    {"purax": five_captured, "purax.plain": five_written},
    force="last",
    bars=(bar(1.15, "purax.plain"),),
)
group.add(
    "call with 5 captured functions", {"purax": five_helpers, "purax.plain": five_products}, force="last"
)
group.add(
    "call with a captured NumPy array of 400 kB",
    {
        "purax": lambda space, size: captured_array(space, size, False),
        "purax.frozen": lambda space, size: captured_array(space, size, True),
    },
    size=CAPTURED,
    smoke_size=8,
    force="last",
)
