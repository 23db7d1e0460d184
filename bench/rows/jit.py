"""The cost of calling a compiled function: argument handling and dispatch, hardly any arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.data import normal
from bench.measure import time_rows
from bench.row import Bar, Builder, Group, bar, like_jax

group = Group("jit", "calls of compiled functions", time_rows, bars=(bar(1.0, "jax"),))


def calls(name: str, *bars: Bar, size: int = 1) -> Callable[[Builder], Builder]:
    def register(build: Builder) -> Builder:
        group.add(
            name,
            like_jax(build),
            size=size,
            smoke_size=min(size, 5),
            force="last",
            bars=group.row_bars() + bars,
        )
        return build

    return register


def state(space: Any, size: int) -> dict[str, Any]:
    return {f"weight_{place}": space.array(normal(4, seed=place % 7)) for place in range(size)}


@calls("1 array", bar(1.3, "jax", "base"))
def one_array(space: Any, size: int) -> Callable[[], Any]:
    x = space.array(normal(4))
    f = space.px.jit(lambda x: x + 1.0)
    return lambda: f(x)


@calls("2 arrays")
def two_arrays(space: Any, size: int) -> Callable[[], Any]:
    x, y = space.array(normal(4)), space.array(normal(4, seed=1))
    f = space.px.jit(lambda x, y: x * y)
    return lambda: f(x, y)


@calls("10 arrays", size=10)
def ten_arrays(space: Any, size: int) -> Callable[[], Any]:
    arguments = list(state(space, size).values())
    f = space.px.jit(lambda *arrays: [array + 1.0 for array in arrays])
    return lambda: f(*arguments)


@calls("tree of 100 arrays", bar(1.1, "jax", "base"), size=100)
def tree_of_arrays(space: Any, size: int) -> Callable[[], Any]:
    tree = state(space, size)
    f = space.px.jit(lambda tree: {name: value + 1.0 for name, value in tree.items()})
    return lambda: f(tree)


@calls("100 arrays to 1", size=100)
def many_to_one(space: Any, size: int) -> Callable[[], Any]:
    tree = state(space, size)
    f = space.px.jit(lambda tree: sum(tree.values()))
    return lambda: f(tree)


@calls("donated state of 100 arrays", size=100)
def donated_state(space: Any, size: int) -> Callable[[], Any]:
    current = state(space, size)
    f = space.px.jit(lambda tree: {name: value * 0.5 for name, value in tree.items()}, donate_argnums=0)

    def step() -> Any:
        nonlocal current
        current = f(current)
        return current

    return step


@calls("static argument by position")
def static_position(space: Any, size: int) -> Callable[[], Any]:
    x = space.array(normal(4))
    f = space.px.jit(lambda x, power: x**power, static_argnums=1)
    return lambda: f(x, 3)


@calls("static argument by name")
def static_name(space: Any, size: int) -> Callable[[], Any]:
    x = space.array(normal(4))
    f = space.px.jit(lambda x, mode: x + 1.0 if mode == "up" else x - 1.0, static_argnames="mode")
    return lambda: f(x, mode="up")


@calls("keyword arguments")
def keywords(space: Any, size: int) -> Callable[[], Any]:
    x, y = space.array(normal(4)), space.array(normal(4, seed=1))
    f = space.px.jit(lambda x, y: x - y)
    return lambda: f(x=x, y=y)


@calls("Python number argument")
def python_number(space: Any, size: int) -> Callable[[], Any]:
    x = space.array(normal(4))
    f = space.px.jit(lambda x, rate: x * rate)
    return lambda: f(x, 0.5)


@calls("NumPy argument")
def numpy_argument(space: Any, size: int) -> Callable[[], Any]:
    x = normal(4)
    f = space.px.jit(lambda x: x + 1.0)
    return lambda: f(x)


@calls("fresh lambda with an equal body")
def fresh_lambda(space: Any, size: int) -> Callable[[], Any]:
    x, jit = space.array(normal(4)), space.px.jit
    return lambda: jit(lambda x: x * 2.0 + 1.0)(x)


@calls("grad of a jitted function, jitted")
def compiled_gradient(space: Any, size: int) -> Callable[[], Any]:
    x, jnp = space.array(normal(4)), space.jnp
    f = space.px.jit(space.px.grad(space.px.jit(lambda x: jnp.sum(jnp.tanh(x)))))
    return lambda: f(x)
