"""Programs over a mesh of devices: one program for all of them, which the compiler cuts up as the layouts of its arguments
and the constraints inside of it say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import source
from purax.core.jaxpr import ClosedJaxpr, Literal, Var, inner_jaxprs
from purax.transforms.physical import as_logical, as_physical
from purax.transforms.places import MeshPlace, buffer_over, compile_over
from purax.xla.array import DeviceArray, PlacedArray
from purax.xla.mesh import Mesh, PartitionSpec
from purax.xla.sharding import NamedSharding


def mesh_of(closed: ClosedJaxpr) -> Mesh | None:
    """The mesh that a program asks for, by a sharding constraint or a `shard_map` in it."""
    if "mesh" not in closed.derived:
        closed.derived["mesh"] = _find_mesh(closed)
    return closed.derived["mesh"]


def _find_mesh(closed: ClosedJaxpr) -> Mesh | None:
    found: Mesh | None = None
    for eqn in closed.eqns:
        meshes = [eqn.params.get("mesh"), getattr(eqn.params.get("sharding"), "mesh", None)]
        for mesh in (*meshes, *map(mesh_of, inner_jaxprs(eqn.params))):
            if not isinstance(mesh, Mesh):
                continue
            if found is not None and found != mesh:
                raise source.with_location(
                    ValueError(
                        f"one program cannot use two meshes, {found} and {mesh}; use one with the axes of both"
                    ),
                    eqn.source,
                )
            found = mesh
    return found


class MeshRunner:
    """A program compiled for a mesh and certain layouts of its arguments; called like `program.Runner`."""

    def __init__(self, prepared: Any, where: MeshPlace, name: str, options: tuple, effects: str):
        closed = prepared.closed
        mesh = self.mesh = where.mesh
        self._prepared = prepared
        self._kept = prepared.kept
        self._in = [NamedSharding(mesh, where.specs[i]) for i in prepared.kept]
        self._whole = NamedSharding(mesh, PartitionSpec())

        def lower(out_specs):
            module = prepared.lower(where.platform, name, mesh, [s.spec for s in self._in], out_specs)
            return module, module.unique_name(name)

        self.executable = compile_over(
            mesh,
            closed.out_avals,
            wanted_specs(closed, mesh),
            lower,
            donated=prepared.donated,
            options=options,
            effects=effects,
        )
        self.avals, self._out = closed.out_avals, self.executable.out_shardings
        self.donated = [prepared.kept[n] for n in prepared.donated]
        self._is_simple = prepared.outputs == list(range(len(self.avals))) and prepared.extended is None

    def run_at_home(self, operands: Sequence[Any]) -> list[DeviceArray] | None:
        """Runs the program on arrays that lie as it wants them already; None if one does not."""
        buffers = []
        for i, sharding in zip(self._kept, self._in, strict=True):
            x = operands[i]
            if type(x) is not PlacedArray or (x._placement is not sharding and x._placement != sharding):
                return None
            buffers.append(x._live_buffer() if x._buffer is None else x._buffer)
        return self._run(buffers, operands)

    def __call__(self, operands: Sequence[Any], placement: Any = None, committed: bool = True) -> list[Any]:
        """Runs the program on arrays of the right types, wherever they are."""
        return self._run(
            [buffer_over(operands[i], s) for i, s in zip(self._kept, self._in, strict=True)], operands
        )

    def _run(self, buffers: list[Any], operands: Sequence[Any]) -> list[Any]:
        results = self.executable(buffers)
        for i in self.donated:
            as_physical(operands[i]).delete()
        arrays = [PlacedArray(a, b, s, True) for a, b, s in zip(self.avals, results, self._out, strict=True)]
        return arrays if self._is_simple else self._arrange(arrays, operands)

    def _arrange(self, arrays: list[PlacedArray], operands: Sequence[Any]) -> list[Any]:
        """The results in order: computed ones, arguments passed through, literals."""
        results = []
        for position, out in enumerate(self._prepared.outputs):
            if type(out) is Literal:
                value = DeviceArray(
                    out.aval, np.broadcast_to(np.asarray(out.val, out.aval.dtype), out.aval.shape)
                )
                results.append(self._over_mesh(value))
            elif out >= 0:
                extended = self._prepared.extended
                results.append(
                    arrays[out] if extended is None else as_logical(arrays[out], extended[position])
                )
            else:
                results.append(self._over_mesh(operands[-1 - out]))
        return results

    def _over_mesh(self, x: DeviceArray) -> DeviceArray:
        """An array that the program does not compute: as it is, or on every device if it lies elsewhere."""
        own = as_physical(x)
        if type(own) is PlacedArray and type(own._placement) is NamedSharding:
            return x
        return as_logical(PlacedArray(own.aval, buffer_over(own, self._whole), self._whole, True), x.aval)


def wanted_specs(closed: ClosedJaxpr, mesh: Mesh) -> list[PartitionSpec | None]:
    """The layouts that a program itself gives to its results, by a constraint at the end."""
    made_by = {v: eqn for eqn in closed.eqns for v in eqn.outvars}
    specs = []
    for v in closed.jaxpr.outvars:
        eqn = made_by.get(v) if isinstance(v, Var) else None
        spec = eqn.params["sharding"].spec if eqn and eqn.primitive.name == "sharding_constraint" else None
        if spec is not None and PartitionSpec.UNCONSTRAINED in tuple(spec):
            spec = None
        specs.append(spec)
    return specs
