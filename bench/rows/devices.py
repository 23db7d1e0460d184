"""Programs over eight devices of one machine: the cost of starting them, and a data-parallel training step.

The devices are virtual ones of the CPU, which a process must ask for before anything else. So the rows are measured in
one process of their own, in which the peers take turns as usual.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.data import normal
from bench.measure import Options, time_in_child, time_rows
from bench.models import labelled, mlp_loss, mlp_parameters, training_step
from bench.row import Builder, Group, Outcome, Row, bar, like_jax

COUNT = 8
FLAG = f"--xla_force_host_platform_device_count={COUNT}"


def time_over_devices(group: Group, rows: list[Row], options: Options) -> Iterator[Outcome]:
    """Times rows in a process with eight devices: this one, if it has them."""
    flags = os.environ.get("XLA_FLAGS", "")
    if FLAG in flags:
        return time_rows(group, rows, options)
    return time_in_child(group, rows, options, dict(os.environ, XLA_FLAGS=f"{flags} {FLAG}".strip()))


group = Group("devices", f"programs over {COUNT} devices", time_over_devices, bars=(bar(1.1, "jax"),))


def over_devices(
    name: str, force: str = "last", limit: float = 1.1, **fields: Any
) -> Callable[[Builder], Builder]:
    def register(build: Builder) -> Builder:
        group.add(name, like_jax(build), force=force, bars=(bar(limit, "jax"),), **fields)
        return build

    return register


def layouts(space: Any) -> tuple[Any, Any, Any]:
    """A mesh of all devices, a sharding that cuts the first axis of an array, and one that repeats the array."""
    sharding, mesh = space.px.sharding, space.px.make_mesh((COUNT,), ("data",))
    cut, whole = (sharding.NamedSharding(mesh, sharding.PartitionSpec(*names)) for names in (("data",), ()))
    return mesh, cut, whole


@over_devices("jit, sharded array")
def sharded(space: Any, size: int) -> Callable[[], Any]:
    _, rows, _ = layouts(space)
    x = space.px.device_put(normal(COUNT, 4), rows)
    f = space.px.jit(lambda x: x * 2.0 + 1.0)
    return lambda: f(x)


@over_devices("jit, in_shardings and out_shardings")
def with_shardings(space: Any, size: int) -> Callable[[], Any]:
    _, rows, _ = layouts(space)
    x = space.px.device_put(normal(COUNT, 4), rows)
    f = space.px.jit(lambda x: x * 2.0 + 1.0, in_shardings=rows, out_shardings=rows)
    return lambda: f(x)


@over_devices("jit, tree of 30 sharded arrays")
def tree_of_arrays(space: Any, size: int) -> Callable[[], Any]:
    _, rows, _ = layouts(space)
    tree = {f"weight_{i}": space.px.device_put(normal(COUNT, 4, seed=i), rows) for i in range(30)}
    f = space.px.jit(lambda tree: {name: value + 1.0 for name, value in tree.items()})
    return lambda: f(tree)


@over_devices("jit, sharded array and a free one")
def free_argument(space: Any, size: int) -> Callable[[], Any]:
    _, rows, _ = layouts(space)
    x, y = space.px.device_put(normal(COUNT, 4), rows), space.array(normal(4))
    f = space.px.jit(lambda x, y: x * y)
    return lambda: f(x, y)


@over_devices("jit of shard_map")
def mapped(space: Any, size: int) -> Callable[[], Any]:
    mesh, rows, _ = layouts(space)
    cut = rows.spec
    x = space.px.device_put(normal(COUNT, 4), rows)
    f = space.px.jit(space.px.shard_map(lambda x: x * 2.0 + 1.0, mesh=mesh, in_specs=cut, out_specs=cut))
    return lambda: f(x)


@over_devices("pmap, sharded array")
def parallel(space: Any, size: int) -> Callable[[], Any]:
    f = space.px.pmap(lambda x: x * 2.0 + 1.0)
    x = f(space.array(normal(COUNT, 4)))
    return lambda: f(x)


@over_devices("pmap, array on one device")
def parallel_free(space: Any, size: int) -> Callable[[], Any]:
    f = space.px.pmap(lambda x: x * 2.0 + 1.0)
    x = space.array(normal(COUNT, 4))
    return lambda: f(x)


@over_devices("pmap of a sum over devices", "each")
def parallel_sum(space: Any, size: int) -> Callable[[], Any]:
    f = space.px.pmap(lambda x: space.lax.psum(x, "i"), axis_name="i")
    x = space.px.pmap(lambda x: x * 2.0, axis_name="i")(space.array(normal(COUNT, 4)))
    return lambda: f(x)


@over_devices("device_put of a NumPy array, cut up")
def cut_up(space: Any, size: int) -> Callable[[], Any]:
    _, rows, _ = layouts(space)
    value = np.asarray(normal(COUNT, 4))
    return lambda: space.px.device_put(value, rows)


@over_devices("gather an array on the host", "each")
def gather(space: Any, size: int) -> Callable[[], Any]:
    _, rows, _ = layouts(space)
    f = space.px.jit(lambda x: x + 1.0)
    x = space.px.device_put(normal(COUNT, 4), rows)
    return lambda: np.asarray(f(x))


def perceptron(space: Any, size: int) -> tuple[Any, Any, Any]:
    """A training step, its parameters and its data."""
    step = training_step(space, mlp_loss(space))
    return step, mlp_parameters((64, size, size, 10)), labelled(8 * COUNT, 64, 10)


@over_devices("data-parallel step of a perceptron, jit", "each", 1.0, size=256, smoke_size=16, rtol=1e-4)
def data_parallel(space: Any, size: int) -> Callable[[], Any]:
    _, rows, whole = layouts(space)
    step, parameters, data = perceptron(space, size)
    parameters, data = space.px.device_put(parameters, whole), space.px.device_put(data, rows)
    step = space.px.jit(step, out_shardings=whole)
    return lambda: step(parameters, *data)


@over_devices("data-parallel step of a perceptron, pmap", "each", 1.0, size=256, smoke_size=16, rtol=1e-4)
def data_parallel_pmap(space: Any, size: int) -> Callable[[], Any]:
    _, parameters, (x, labels) = perceptron(space, size)
    loss, px = mlp_loss(space), space.px

    def step(parameters: Any, x: Any, labels: Any) -> Any:
        value, gradient = space.lax.pmean(px.value_and_grad(loss)(parameters, x, labels), "data")
        return px.tree.map(lambda p, g: p - 0.01 * g, parameters, gradient), value

    step = px.pmap(step, axis_name="data")
    copies = px.tree.map(lambda p: space.array(np.stack([p] * COUNT)), parameters)
    each = lambda values: space.array(values.reshape(COUNT, -1, *values.shape[1:]))  # noqa: E731
    parameters, _ = step(copies, each(x), each(labels))
    keep = px.pmap(lambda x: x, axis_name="data")
    data = keep(each(x)), keep(each(labels))
    return lambda: step(parameters, *data)
