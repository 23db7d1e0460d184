"""The rows by group. A new group is a module here and a line in `GROUPS`."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

from bench.row import Group
from bench.rows import (
    compile,
    devices,
    eager,
    first_call,
    gpu,
    jit,
    kernels,
    kernels_models,
    memory,
    purity,
    startup,
    transforms,
    varying,
)

GROUPS: dict[str, Group] = {
    group.name: group
    for group in (
        startup.group,
        eager.small,
        eager.large,
        transforms.group,
        jit.group,
        devices.group,
        kernels.group,
        compile.group,
        first_call.group,
        first_call.random_group,
        purity.group,
        memory.group,
        gpu.group,
        varying.group,
    )
}
for module in (kernels_models, memory, gpu):
    module.register()


def select(groups: list[str] | None = None, pattern: str = "*") -> list[tuple[Group, list[Any]]]:
    """The groups by name, each with its rows whose name matches the glob or equals it."""
    chosen = []
    for name in groups or GROUPS:
        if name not in GROUPS:
            raise ValueError(f"no group {name!r}; the groups are {', '.join(GROUPS)}")
        rows = [row for row in GROUPS[name].rows if row.name == pattern or fnmatch(row.name, pattern)]
        if rows:
            chosen.append((GROUPS[name], rows))
    return chosen
