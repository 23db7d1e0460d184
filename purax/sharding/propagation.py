"""Where the compiler puts values inside of a program over a mesh: its propagation of layouts, run on its text.

A value to look at is marked in the text by an operation of its own. The marks are read after propagation, and what is
compiled has none of them.
"""

from __future__ import annotations

import re
from typing import Any

from purax.sharding.mesh import PartitionSpec
from purax.sharding.shardings import NamedSharding, SingleDeviceSharding
from purax.xla import jaxlib_api
from purax.xla.stablehlo import Builder, Module, Value, symbol

MARK = "purax.inspected"
_FOUND = re.compile(rf"{re.escape(MARK)} = (\d+) : i64(.*)")
_LAYOUT = re.compile(r"sdy\.sharding = #sdy\.sharding_per_value<\[<@mesh, \[(.*?)\]")
_AXES = re.compile(r"\{([^}]*)\}")


def mark(builder: Builder, x: Value, callback: Any) -> None:
    """Asks for the sharding of a value, with which `callback` is called when the program is compiled."""
    module = builder.module
    number = len(module.inspections)
    module.inspections.append((callback, x.ndim))
    if module.mesh is not None:
        same, type_ = builder.fresh(), builder.type_of(x)
        builder.lines.append(
            f"{same} = stablehlo.optimization_barrier {{{MARK} = {number} : i64}} {x.name} : {type_}"
        )
        keep = f'call_target_name = "{MARK}", has_side_effect = true'
        builder.lines.append(f'"stablehlo.custom_call"({same}) <{{{keep}}}> : ({type_}) -> ()')


def report(module: Module, devices: Any) -> None:
    """Calls the functions that asked for shardings, for a program that is about to be compiled for `devices`."""
    if module.mesh is None:
        for callback, _ in module.inspections:
            callback(SingleDeviceSharding(devices[0]))
    elif module.inspections:
        text = jaxlib_api.propagate_shardings(module.text(with_marks=True))
        for number, rest in _FOUND.findall(text):
            callback, ndim = module.inspections[int(number)]
            layout = _LAYOUT.search(rest)
            callback(NamedSharding(module.mesh, _spec(layout.group(1) if layout else "", module.mesh, ndim)))


def _spec(text: str, mesh: Any, ndim: int) -> PartitionSpec:
    names = {symbol(str(name)): name for name in mesh.axis_names}
    entries: list[Any] = []
    for axis in _AXES.findall(text):
        parts = [part.strip() for part in axis.split(",") if part.strip() not in ("", "?")]
        whole = [part.strip('"') for part in parts]
        # The compiler may cut along a part of an axis of the mesh, for which specs have no word.
        known = all(part in names for part in whole)
        entries.append(tuple(names[part] for part in whole) if known else PartitionSpec.UNCONSTRAINED)
    while len(entries) < ndim:
        entries.append(None)
    return PartitionSpec(*entries)
