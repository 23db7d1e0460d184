"""What the processes of a group do together outside of programs: meet, compare, and hand values to each other.

All processes must call these functions, in the same order. Values travel as bytes, so that they arrive exactly,
whatever their dtype. A process that is alone gets what a group of one would.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from purax.api.transfer import device_put
from purax.core.array import Array
from purax.core.limits import finite, numpy_value
from purax.core.source import located
from purax.core.trace import Tracer
from purax.errors import ProcessFailureError, shown
from purax.interpreters.arguments import to_array
from purax.sharding.global_arrays import (
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from purax.sharding.mesh import Mesh, PartitionSpec
from purax.sharding.shardings import NamedSharding
from purax.tree.prefix import broadcast_prefix
from purax.tree.registry import tree_flatten, tree_unflatten
from purax.tree_util import tree_flatten_with_path
from purax.xla import client, execute, jaxlib_api
from purax.xla.processes import group

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
]


def sync_global_devices(name: str) -> None:
    """Waits until all processes have come to this call, and their programs over several devices are done.

    Args:
        name: what the point is called; if the processes are at points of different names, all of them raise.

    >>> sync_global_devices("after loading")
    """
    execute.wait_for_programs()
    if group.current is None:
        return
    told = group.current.differing("sync", name, f"to reach sync_global_devices({name[:80]!r})")
    if told is not None:
        raise ValueError(
            f"sync_global_devices: the processes are at different points: {_each(_excerpts(told))}"
        )


def _each(values: list[Any]) -> str:
    """Who says what."""
    by_value: dict[Any, list[int]] = {}
    for process, value in enumerate(values):
        by_value.setdefault(value, []).append(process)
    return "; ".join(f"{group.names(ids)}: {value!r}" for value, ids in by_value.items())


def _check_types(what: str, leaves: list[np.ndarray], tree: Any) -> None:
    """Raises on every process if their arrays do not have the same structure, shapes and dtypes."""
    if group.current is None:
        return
    types = ", ".join(f"{x.dtype}{list(x.shape)}" for x in leaves)
    told = group.current.differing("types", f"{tree} of {types}", f"to call {what}")
    if told is not None:
        raise ValueError(f"{what}: the processes have different values: {_each(_excerpts(told))}")


def _excerpts(texts: list[str], length: int = 400) -> list[str]:
    """Texts, cut to where they differ if they are long.

    >>> _excerpts(["a" * 99 + "b" * 9, "a" * 99 + "c"], 9)
    ['...aabbbbbbb...', '...aac']
    """
    if max(map(len, texts)) <= length:
        return texts
    start = max(len(os.path.commonprefix(texts)) - length // 4, 0)
    cut = [(text[start : start + length], len(text) > start + length) for text in texts]
    return ["..." * (start > 0) + part + "..." * more for part, more in cut]


def _process_mesh() -> Mesh:
    """One device of every process."""
    first: dict[int, Any] = {}
    for device in client.devices():
        first.setdefault(device.process_index, device)
    return Mesh([first[i] for i in sorted(first)], ("processes",))


def _as_words(value: np.ndarray) -> np.ndarray:
    data = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
    return np.pad(data, (0, -len(data) % 4)).view(np.uint32)


def _from_words(words: np.ndarray, like: np.ndarray) -> np.ndarray:
    data = np.ascontiguousarray(words).view(np.uint8)[: like.nbytes]
    return data.view(like.dtype).reshape(like.shape)


def _gather_words(words: np.ndarray) -> np.ndarray:
    """The words of all processes, one row for each."""
    mesh = _process_mesh()
    parts = make_array_from_process_local_data(NamedSharding(mesh, PartitionSpec("processes")), words[None])
    return np.asarray(device_put(parts, NamedSharding(mesh, PartitionSpec())))


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The values of one process, on all of them.

    Args:
        in_tree: a tree of arrays or numbers, of the same structure, shapes and dtypes on all processes.
        is_source: whether this process is the one; process 0 is, unless given.

    Returns:
        The tree of the source, with NumPy arrays.

    >>> broadcast_one_to_all({"x": np.arange(3)})
    {'x': array([0, 1, 2])}
    """
    leaves, tree = tree_flatten(in_tree)
    values = [_local_value("broadcast_one_to_all", leaf) for leaf in leaves]
    if group.current is None or group.current.count == 1:
        return tree_unflatten(tree, values)
    _check_types("broadcast_one_to_all", values, tree)
    source = client.process_index() == 0 if is_source is None else bool(is_source)
    sources = [i for i, says_so in enumerate(group.current.gather("source", source)) if says_so]
    if len(sources) != 1:
        found = group.names(sources) if sources else "none"
        raise ValueError(
            f"broadcast_one_to_all: is_source must be True on exactly one process; it is on {found}"
        )
    rows = _gather_words(np.concatenate([_as_words(v) for v in values] or [np.zeros(0, np.uint32)]))
    return tree_unflatten(tree, _cut(rows[sources[0]], values))


def _cut(words: np.ndarray, like: list[np.ndarray]) -> list[np.ndarray]:
    """The arrays whose words were joined."""
    ends = np.cumsum([-(-x.nbytes // 4) for x in like])
    starts = [0, *ends[:-1]]
    return [_from_words(words[a:b], x) for a, b, x in zip(starts, ends, like, strict=True)]


def _refuse_traced(what: str, x: Any) -> None:
    if isinstance(x, Tracer):
        raise located(
            TypeError,
            f"{what} exchanges values of the host, got {x.aval.str_short()} while a function is traced. Call it "
            "outside of transformed functions; inside of them, use the collectives of `purax.lax`",
        )


def _local_value(what: str, x: Any) -> np.ndarray:
    _refuse_traced(what, x)
    if isinstance(x, Array) and not x.is_fully_addressable and not x.is_fully_replicated:
        raise ValueError(
            f"{what}: an array of shape {x.shape} lies on devices of several processes; give it values of this "
            "process, or gather it with process_allgather"
        )
    return numpy_value(x)


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The values of all processes, on all of them.

    Args:
        in_tree: a tree of arrays or numbers. Values of this process have the same shape on all; an array that lies over
            devices of several processes is gathered as the one array that it is.
        tiled: whether the values of the processes are joined along axis 0, instead of stacked along a new one.

    Returns:
        The tree, with NumPy arrays.

    >>> process_allgather(np.arange(3))
    array([[0, 1, 2]])
    """
    leaves, tree = tree_flatten(in_tree)
    for leaf in leaves:
        _refuse_traced("process_allgather", leaf)
    is_local = [not isinstance(x, Array) or x.is_fully_addressable for x in leaves]
    own = [numpy_value(x) for x, local in zip(leaves, is_local, strict=True) if local]
    gathered: Any = iter(())
    if own:
        count = 1 if group.current is None else group.current.count
        if count > 1:
            _check_types("process_allgather", own, tree)
            rows = _gather_words(np.concatenate([_as_words(v) for v in own]))
            everyones = [_cut(row, own) for row in rows]
        else:
            everyones = [own]
        gathered = (
            np.concatenate(parts) if tiled and parts[0].ndim else np.stack(parts)
            for parts in zip(*everyones, strict=True)
        )
    return tree_unflatten(
        tree, [next(gathered) if local else _whole(x) for x, local in zip(leaves, is_local, strict=True)]
    )


def _whole(x: Any) -> np.ndarray:
    """The value of an array over several processes."""
    return np.asarray(device_put(x, NamedSharding(x.sharding.mesh, PartitionSpec())))


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether all processes should save now, because one of them was told by SIGTERM that it will be ended.

    Processes learn of it from each other, and agree on a step that none of them has passed yet.

    Args:
        step_id: the number of the step, the same on all processes, which call this in every step.

    Raises:
        RuntimeError: this process does not belong to a group.

    >>> reached_preemption_sync_point(3)
    Traceback (most recent call last):
    RuntimeError: reached_preemption_sync_point: this process is alone; purax.distributed.initialize() joins a group
    """
    if group.current is None:
        raise RuntimeError(
            "reached_preemption_sync_point: this process is alone; purax.distributed.initialize() joins a group"
        )
    if group.current not in _watchers:
        _watchers.clear()
        _watchers[group.current] = jaxlib_api.watch_for_preemption(group.current.engine)
    return _watchers[group.current].reached_sync_point(step_id)


_watchers: dict[Any, Any] = {}  # that of the group this process belongs to, once it was asked for


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raises an `AssertionError` on every process unless all have the same values.

    Args:
        in_tree: a tree of arrays or numbers.
        fail_message: stands at the beginning of the error.

    >>> assert_equal({"seed": 3}, "the seeds differ")
    """
    if group.current is None:
        return
    paths, tree = tree_flatten_with_path(in_tree)
    described = []
    for path, leaf in paths:
        value = _local_value("assert_equal", leaf)
        shown = str(value) if value.size <= 8 else hashlib.sha256(value.tobytes()).hexdigest()[:12]
        name = "".join(map(str, path))
        described.append(f"{name} = {shown} ({value.dtype}{list(value.shape)})" if name else shown)
    differing = group.current.differing("equal", json.dumps([str(tree), *described]), "to call assert_equal")
    if differing is None:
        return
    told = [json.loads(text) for text in differing]
    for position in range(max(map(len, told))):
        values = [one[position] if position < len(one) else "nothing" for one in told]
        if len(set(values)) > 1:
            message = f"{fail_message}: " if fail_message else ""
            raise AssertionError(f"{message}the processes have different values: {_each(_excerpts(values))}")


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Arrays over all processes, of which each process has its part.

    Args:
        local_inputs: a tree of arrays, the parts of this process.
        global_mesh: the mesh.
        pspecs: a `PartitionSpec` for each array, or a tree of them that is a prefix of `local_inputs`.

    Returns:
        The tree of whole arrays.

    >>> import purax as px
    >>> mesh = px.make_mesh((1,), ("data",))
    >>> host_local_array_to_global_array(np.arange(3), mesh, PartitionSpec("data"))
    Array([0, 1, 2], dtype=int32)
    """
    leaves, tree = tree_flatten(local_inputs)
    specs = _specs(pspecs, local_inputs, "local_inputs")
    made = [
        make_array_from_process_local_data(
            NamedSharding(global_mesh, s), _local_value("host_local_array_to_global_array", to_array(x))
        )
        for x, s in zip(leaves, specs, strict=True)
    ]
    return tree_unflatten(tree, made)


def _specs(pspecs: Any, full: Any, name: str) -> list[PartitionSpec]:
    is_leaf = lambda s: s is None or isinstance(s, PartitionSpec)  # noqa: E731
    specs = broadcast_prefix(pspecs, full, is_leaf=is_leaf, prefix_name="pspecs", full_name=name)
    return [PartitionSpec() if s is None else s for s in specs]


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """The parts of arrays that this process has, each as one array over its own devices.

    Args:
        global_inputs: a tree of arrays.
        global_mesh: the mesh that they are sharded over.
        pspecs: a `PartitionSpec` for each array, or a tree of them that is a prefix of `global_inputs`.

    Returns:
        The tree of parts.

    >>> import purax as px
    >>> mesh = px.make_mesh((1,), ("data",))
    >>> x = px.device_put(np.arange(3), NamedSharding(mesh, PartitionSpec("data")))
    >>> global_array_to_host_local_array(x, mesh, PartitionSpec("data"))
    Array([0, 1, 2], dtype=int32)
    """
    local_mesh = _local_mesh(global_mesh)
    leaves, tree = tree_flatten(global_inputs)
    specs = _specs(pspecs, global_inputs, "global_inputs")
    parts = []
    for x, spec in zip(leaves, specs, strict=True):
        over = device_put(x, NamedSharding(global_mesh, spec))
        shape = over.sharding.shard_shape(over.shape)
        local = NamedSharding(local_mesh, spec)
        whole = tuple(n * k for n, k in zip(shape, local.parts(len(shape)), strict=True))
        shards = [shard.data for shard in over.addressable_shards]
        parts.append(make_array_from_single_device_arrays(whole, local, shards))
    return tree_unflatten(tree, parts)


def _local_mesh(mesh: Mesh) -> Mesh:
    """The box of this process's devices in a mesh."""
    if not isinstance(mesh, Mesh):
        raise located(TypeError, f"`global_mesh` must be a Mesh, got {shown(mesh)}")
    own = client.process_index()
    is_own = np.vectorize(lambda d: d.process_index == own, otypes=[bool])(mesh.devices)
    if not is_own.any():
        raise ValueError(f"global_array_to_host_local_array: {mesh} has no device of process {own}")
    box = tuple(slice(places.min(), places.max() + 1) for places in np.nonzero(is_own))
    if not is_own[box].all():
        raise ValueError(
            f"global_array_to_host_local_array: the devices of process {own} do not lie together in {mesh}"
        )
    return Mesh(mesh.devices[box], mesh.axis_names, mesh.axis_types)


@contextlib.contextmanager
def live_devices(devices: Sequence[Any]) -> Iterator[list[Any]]:
    """Those of some devices whose processes are alive, for the code in the `with` block.

    All of the group's are: it learns of the loss of a process at once, and then every process raises. So a block runs
    with all devices, or not to its end.

    Args:
        devices: the devices.

    >>> import purax as px
    >>> from purax.experimental import multihost_utils
    >>> with multihost_utils.live_devices(px.devices()[:1]) as alive:
    ...     len(alive)
    1
    """
    try:
        yield list(finite(devices))
    except ConnectionError as error:
        raise ProcessFailureError(f"a process was lost: {error}") from error
