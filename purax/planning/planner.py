"""`plan`: how to shard a training step over devices that are not here, from types alone."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from purax.api.jit import JitFunction, jit
from purax.core.source import located
from purax.core.specs import AbstractMesh, PartitionSpec
from purax.errors import shown
from purax.planning.costs import Layout, Spec
from purax.planning.hardware import Hardware, find_hardware, read_description
from purax.planning.operations import as_spec
from purax.planning.report import Plan, Plans, make_plan
from purax.planning.search import Leaf, Roles, Search, roles_of, splits
from purax.planning.walk import Walked
from purax.sharding.mesh import Mesh
from purax.tree.prefix import broadcast_prefix
from purax.tree.registry import keystr, tree_flatten, tree_flatten_with_path

__all__ = ["plan"]


def plan(
    step: Callable,
    mesh: Any,
    *args: Any,
    device: Any = None,
    batch_argnums: int | Sequence[int] | None = None,
    specs: Any = None,
    count: int = 32,
) -> Plans:
    """Plans how to shard a step over many devices: what each way costs in memory, communication and time.

    Nothing is compiled or run, and the devices need not be here. Shardings of the arguments are followed through the
    program; memory is that of the values alive at once after fusion, time a roofline: arithmetic or traffic with
    memory, whichever takes longer, and bytes by the speed of the links they take.

    Args:
        step: a function of parameters (and other state) and a batch that returns the next state. If it is a `jit` that
            donates arguments, these are donated; of any other function all state is.
        mesh: what there is: "64 H200", or a mesh, as "8x8 H200", a `Mesh` or an `AbstractMesh`.
        *args: the arguments, as `ShapeDtypeStruct`s or arrays.
        device: the kind of the devices, where `mesh` does not say it: a name or a `Hardware`.
        batch_argnums: which arguments are the batch; those that the step does not return, unless given.
        specs: `PartitionSpec`s for the arguments, a prefix of their structure, to plan that and nothing else.
        count: how many plans are returned.

    Returns:
        The plans, best first. `plans.best.specs` are its `PartitionSpec`s, `plans.best.picture()` shows it.

    >>> import purax as px, purax.numpy as jnp
    >>> def step(weights, x):
    ...     gradient = px.grad(lambda w: jnp.sum((x @ w) ** 2))(weights)
    ...     return weights - 0.1 * gradient
    >>> weights = px.ShapeDtypeStruct((8192, 8192), jnp.float32)
    >>> x = px.ShapeDtypeStruct((65536, 8192), jnp.float32)
    >>> plans = px.plan(step, "8 H200", weights, x)
    >>> plans.best.name, plans.best.specs, plans.best.sent
    ('model 8', (PartitionSpec(None, 'model'), PartitionSpec()), 0)
    >>> (other,) = [one for one in plans if one.name == "data 8"]
    >>> [one.collective for one in other.collectives()]
    [Collective(kind='all-reduce', bytes=268435456, devices=8, times=1)]
    """
    began = time.perf_counter()
    hardware, sizes, count_devices = _where(mesh, device)
    traced = (step if isinstance(step, JitFunction) else jit(step)).trace(*args)
    closed = traced.jaxpr
    leaves, results = _leaves(args, traced, batch_argnums)
    if len(closed.in_avals) != len(leaves):
        raise located(
            NotImplementedError,
            "plan: the step has static arguments or reads references; give it arrays alone, the rest by a closure",
        )
    given = set(traced.donate_argnums)
    freed = [i in given if isinstance(step, JitFunction) else not leaf.is_batch for i, leaf in enumerate(leaves)]
    search = Search(closed, leaves, results, freed, hardware)
    made = [
        _plan(search, roles, given, args) for roles, given in _candidates(search, sizes, count_devices, specs, args)
    ]
    if not made:
        raise located(
            ValueError,
            f"plan: no batch divides over {count_devices} devices: the first axes of the batch are "
            f"{sorted({leaf.shape[0] for leaf in leaves if leaf.is_batch and leaf.shape})}",
        )
    made.sort(key=lambda one: (one.fits is False, one.memory if one.fits is False else one.time))
    return Plans(made[:count], time.perf_counter() - began, search.walks)


def _where(mesh: Any, device: Any) -> tuple[Hardware, dict[str, int] | None, int]:
    """The devices, the sizes of the axes if the mesh is given, and the number of devices."""
    if isinstance(mesh, str):
        found, sizes = read_description(mesh)
        if device is not None:
            found = find_hardware(device)
        if len(sizes) == 1:
            return found, None, sizes[0]
        names = ("data", "model") if len(sizes) == 2 else tuple(f"axis{i}" for i in range(len(sizes)))
        return found, dict(zip(names, sizes, strict=True)), math.prod(sizes)
    if isinstance(mesh, Mesh | AbstractMesh):
        sizes_by_name = {str(name): int(size) for name, size in dict(mesh.shape).items()}
        if device is None and isinstance(mesh, Mesh):
            device = mesh.devices.flat[0].device_kind
        if device is None and isinstance(mesh, AbstractMesh) and mesh.abstract_device is not None:
            device = mesh.abstract_device.device_kind
        if device is None:
            raise located(
                ValueError, f"plan: nothing says what the devices of {mesh} are; write plan(..., device='H200')"
            )
        return find_hardware(device), sizes_by_name, math.prod(sizes_by_name.values())
    raise located(
        TypeError, f"plan: the mesh must be a text such as '64 H200', a Mesh or an AbstractMesh, not {shown(mesh)}"
    )


def _leaves(args: tuple, traced: Any, batch_argnums: Any) -> tuple[list[Leaf], list[int | None]]:
    """The arguments, and for each result the argument that it replaces in the next step."""
    numbers = [i for i, x in enumerate(args) for _ in tree_flatten(x)[0]]
    paths = tree_flatten_with_path(args)[0]
    avals = traced.jaxpr.in_avals
    results = _replaced(args, traced)
    if batch_argnums is None:
        state = {numbers[n] for n in results if n is not None}
        batch = {i for i in range(len(args)) if i not in state}
    else:
        given = [batch_argnums] if isinstance(batch_argnums, int) else list(batch_argnums)
        batch = {n % len(args) for n in given if -len(args) <= n < len(args)}
        if len(batch) != len(given):
            raise located(
                ValueError, f"plan: batch_argnums {shown(batch_argnums)} must name some of {len(args)} arguments"
            )
    leaves = []
    for (path, _), number, aval in zip(paths, numbers, avals, strict=False):
        group = (tuple(aval.shape), *[str(key) for key in path[1:] if not hasattr(key, "idx")][-2:])
        leaves.append(Leaf(_path_text(path), group, tuple(aval.shape), number in batch, aval))
    return leaves, results


def _path_text(path: Any) -> str:
    return f"args[{getattr(path[0], 'idx', path[0])}]{keystr(tuple(path[1:]))}"


def _replaced(args: tuple, traced: Any) -> list[int | None]:
    """For each result the number of the argument that it is the next value of: trees of the same types, in order."""
    out_info = traced.out_info
    own = out_info if isinstance(out_info, tuple | list) else (out_info,)
    flat_args = [tree_flatten(x) for x in args]
    starts = [sum(len(flat_args[k][0]) for k in range(i)) for i in range(len(args))]
    types = [[_type_of(x) for x in leaves] for leaves, _ in flat_args]
    taken: set[int] = set()
    found: list[int | None] = []
    for part in own:
        leaves, tree = tree_flatten(part)
        kinds = [_type_of(x) for x in leaves]
        at = next(
            (
                i
                for i in range(len(args))
                if i not in taken and leaves and flat_args[i][1] == tree and types[i] == kinds
            ),
            None,
        )
        if at is None:
            found += [None] * len(leaves)
        else:
            taken.add(at)
            found += range(starts[at], starts[at] + len(leaves))
    return found


def _type_of(x: Any) -> tuple:
    return tuple(getattr(x, "shape", ())), getattr(x, "dtype", type(x))


def _candidates(
    search: Search, sizes: dict[str, int] | None, count: int, specs: Any, args: tuple
) -> list[tuple[Roles, list[Spec]]]:
    if specs is not None:
        roles = Roles(tuple((name, size, name) for name, size in (sizes or {"data": count}).items()))
        return [(roles, _given(search, roles, specs, args))]
    node = search.device.node
    all_roles = list(splits(count, node) if sizes is None else roles_of(sizes))
    patterns: dict[tuple, dict] = {}
    found = []
    for roles in all_roles:
        pattern: dict[tuple, int] = {}
        if roles.of("model"):
            # What is good for one size of the axis is so for others that cut as evenly: found out once.
            tried = _middle([one for one in all_roles if one.of("model") and one.of("data", "fsdp")] or [roles])
            key = tried.axes
            if key not in patterns:
                patterns[key] = search.pattern(tried)
            pattern = patterns[key]
        given = search.specs(roles, pattern)
        if given is not None:
            found.append((roles, given))
    return found


def _middle(choices: Sequence[Roles]) -> Roles:
    """The one whose "model" axes have about eight devices, or as many as there are."""
    return min(
        choices, key=lambda one: abs(math.log2(math.prod(n for _, n, role in one.axes if role == "model") / 8))
    )


def _given(search: Search, roles: Roles, specs: Any, args: tuple) -> list[Spec]:
    layout = Layout(roles.sizes, search.device)
    flat = broadcast_prefix(specs, args, is_leaf=lambda x: x is None or isinstance(x, PartitionSpec))
    found = []
    for leaf, spec in zip(search.leaves, flat, strict=True):
        own = as_spec(spec or (), len(leaf.shape), layout)
        named = PartitionSpec(*(spec or ())).all_names
        missing = [n for n in named if n not in layout.sizes]
        if missing or len(own) != len(leaf.shape):
            raise located(
                ValueError,
                f"plan: {spec} does not fit {leaf.path} of shape {leaf.shape} over a mesh with axes {layout.sizes}",
            )
        for n, axes in zip(leaf.shape, own, strict=True):
            if n % layout.parts(axes):
                raise located(
                    ValueError, f"plan: {leaf.path} of shape {leaf.shape} does not divide by {spec} over {layout.sizes}"
                )
        found.append(own)
    return found


def _plan(search: Search, roles: Roles, specs: list[Spec], args: tuple) -> Plan:
    layout, walked = search.walk(roles, specs)
    leaves = [(leaf.path, leaf.aval, spec) for leaf, spec in zip(search.leaves, specs, strict=True)]
    residents = [_named(one, search.leaves) for one in walked.residents]
    in_tree = tree_flatten(args)[1]
    return make_plan(
        roles.name, layout, walked.costs, walked.peak, _where_full(walked), residents, leaves, in_tree
    )


def _where_full(walked: Walked) -> Any:
    return walked.peak_at


def _named(resident: Any, leaves: Sequence[Leaf]) -> Any:
    if not resident.where.startswith("argument "):
        return resident
    number = int(resident.where.split()[1])
    return resident._replace(where=leaves[number].path) if number < len(leaves) else resident
