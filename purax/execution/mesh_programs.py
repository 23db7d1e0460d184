"""Programs over a mesh of devices: one program for all of them, which the compiler cuts up as the layouts of its
arguments and the constraints inside of it say.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import source
from purax.core.jaxpr import ClosedJaxpr, Literal, Var, inner_jaxprs
from purax.execution.device_put import device_put_p
from purax.execution.placement import MeshPlace, buffer_over, compile_over, place, spec_of_type
from purax.interpreters.extended_dtypes import as_logical, as_physical
from purax.primitives.sharding_constraint import sharding_constraint_p
from purax.sharding.mesh import Mesh, PartitionSpec
from purax.sharding.shardings import NamedSharding, SingleDeviceSharding, in_memory, named_sharding
from purax.xla import jaxlib_api
from purax.xla.array import DeviceArray, PlacedArray

_WHOLE = PartitionSpec()
_COMMITTED = itertools.repeat(True)


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
            if found is not None and found.frame != mesh.frame:
                raise source.located(
                    ValueError,
                    f"one program cannot use two meshes, {found} and {mesh}; use one with the axes of both",
                    at=eqn.source,
                )
            if found is None or not found.explicit_axes:
                found = mesh
    return found


def specs_wanted(closed: ClosedJaxpr) -> list[PartitionSpec | None]:
    """How a program asks for its arguments to lie: those that go straight to a constraint or a `shard_map`."""
    if "specs" not in closed.derived:
        wanted: dict[Any, PartitionSpec] = {}
        for eqn in closed.eqns:
            if eqn.primitive.is_call:
                specs = specs_wanted(eqn.params["jaxpr"])
            else:
                specs = eqn.primitive.specs_wanted(**eqn.params)
            for v, spec in zip(eqn.invars, specs, strict=False):
                if isinstance(v, Var) and spec is not None:
                    wanted.setdefault(v, spec)
        closed.derived["specs"] = [wanted.get(v) for v in closed.jaxpr.invars]
    return closed.derived["specs"]


def place_program(closed: ClosedJaxpr, operands: Sequence[Any], what: str) -> tuple[Any, Any, bool]:
    """Where a program runs; see `places.place`. Nothing in it can be moved to another device."""
    mesh = mesh_of(closed)
    found = place(operands, what, mesh, () if mesh is None else specs_wanted(closed))
    for device, location in devices_of(closed).items():
        where, _, committed = found
        own = where.mesh.flat if type(where) is MeshPlace else (where,)
        if tuple(own) == (device,):
            continue
        if len(devices_of(closed)) > 1 or committed:
            raise source.located(
                ValueError,
                f"{what} runs on {', '.join(map(str, own))}, where its arguments are, and a value in it cannot be "
                f"put on {device}: move it with `purax.device_put` before the call, or the result after it",
                at=location,
            )
        found = device, SingleDeviceSharding(device), True
    return found


def devices_of(closed: ClosedJaxpr) -> dict[Any, Any]:
    """The devices on which `device_put` in a program puts values, and the lines that say so."""
    if "devices" not in closed.derived:
        found: dict[Any, Any] = {}
        for eqn in closed.eqns:
            if eqn.primitive is device_put_p:
                target = eqn.params["device"]
                devices = target.device_set if isinstance(target, jaxlib_api.EngineSharding) else [target]
                found.update((device, eqn.source) for device in devices if device is not None)
            for inner in inner_jaxprs(eqn.params):
                found = devices_of(inner) | found
        closed.derived["devices"] = found
    return closed.derived["devices"]


def lower_over(prepared: Any, where: MeshPlace, out_specs: Sequence[Any], debug_info: bool = True) -> Any:
    """A program lowered for a mesh, on which its results lie as `out_specs` say."""
    in_specs = [where.specs[i] for i in prepared.kept]
    return prepared.lower(where.platform, where.mesh, in_specs, out_specs, debug_info)


class MeshRunner:
    """A program compiled for a mesh and certain layouts of its arguments; called like `program.Runner`."""

    def __init__(self, prepared: Any, where: MeshPlace, name: str, options: tuple, effects: str, ahead: bool):
        closed = prepared.closed
        mesh = self.mesh = where.mesh
        self._prepared = prepared
        self._kept = prepared.kept
        self._in = [
            in_memory(named_sharding(mesh, where.specs[i]), aval.memory_space)
            for i, aval in zip(prepared.kept, closed.in_avals, strict=True)
        ]
        self._whole = named_sharding(mesh, _WHOLE)
        self._has_mesh = mesh_of(closed) is not None
        # Arrays that may go anywhere come to where the program wants them, or to all devices.
        wanted = specs_wanted(closed) if self._has_mesh else (None,) * len(self._in)
        free = [s.spec == (spec or _WHOLE) for s, spec in zip(self._in, wanted, strict=True)]
        # Of each: its position, how it shall lie, whether it may come from elsewhere, and what sharding fitted last.
        self._arguments = [list(each) for each in zip(prepared.kept, self._in, free, self._in, strict=True)]
        self._fitting: set[Any] = set()
        self._moved: dict[int, Any] = {}

        def lower(out_specs):
            module = lower_over(prepared, where, out_specs)
            return module, module.unique_name(name)

        self.executable = compile_over(
            mesh,
            closed.out_avals,
            wanted_specs(closed, mesh),
            lower,
            donated=prepared.donated,
            options=options,
            effects=effects,
            ahead=ahead,
        )
        self.avals, self._out = closed.out_avals, self.executable.out_shardings
        self._execute, self._handlers = self.executable.execute, self.executable.handlers
        self.donated = [prepared.kept[n] for n in prepared.donated]
        self.in_shardings = [named_sharding(mesh, spec) for spec in where.specs]
        self._is_simple = prepared.outputs == list(range(len(self.avals))) and prepared.extended is None

    def run_at_home(self, operands: Sequence[Any]) -> list[DeviceArray] | None:
        """Runs the program on arrays that lie as it wants them, or may go anywhere; None if one does not fit."""
        buffers: list[Any] = []
        loose = []
        for argument in self._arguments:
            i, sharding, is_free, known = argument
            x = operands[i]
            if type(x) is not PlacedArray:
                x = as_physical(x)
            if type(x) is PlacedArray:
                if x._placement is not known:
                    if not self._fits(x, sharding):
                        return None
                    argument[3] = x._placement
                buffer = x._buffer
                buffers.append(x._live_buffer() if buffer is None else buffer)
            elif is_free and type(x) is DeviceArray:
                loose.append((len(buffers), x, sharding))
                buffers.append(None)
            else:
                return None
        if loose:
            if not self._has_mesh and len(loose) == len(buffers):
                return None
            for n, x, sharding in loose:
                buffers[n] = self._move(n, x, sharding)
        return self._run(buffers, operands)

    def _fits(self, x: PlacedArray, sharding: NamedSharding) -> bool:
        """Whether an array lies as `sharding` says, under another name perhaps."""
        placement = x._placement
        key = (placement, sharding, x.aval.ndim)
        if key in self._fitting:
            return True
        if type(placement) is not NamedSharding or not (self._has_mesh or placement.mesh == self.mesh):
            return False
        if not placement.is_equivalent_to(sharding, x.aval.ndim):
            return False
        self._fitting.add(key)
        return True

    def _move(self, n: int, x: DeviceArray, sharding: NamedSharding) -> Any:
        """An array that lies on one device as argument number `n`; kept, for the next call with it, while it lives."""
        known = self._moved.get(n)
        if known is not None and known[0]() is x:
            return known[1]
        buffer = buffer_over(x, sharding)
        if not self.donated:
            moved = self._moved
            self._moved[n] = weakref.ref(x, lambda _: moved.pop(n, None)), buffer
        return buffer

    def __call__(self, operands: Sequence[Any], placement: Any = None, committed: bool = True) -> list[Any]:
        """Runs the program on arrays of the right types, wherever they are."""
        return self._run(
            [buffer_over(operands[i], s) for i, s in zip(self._kept, self._in, strict=True)], operands
        )

    def _run(self, buffers: list[Any], operands: Sequence[Any]) -> list[Any]:
        try:  # what `Executable.__call__` does, without the cost of another call
            results = self._execute(buffers).consume_with_handlers(self._handlers)
        except Exception as error:
            raise self.executable.explain(error, buffers) from None
        for i in self.donated:
            as_physical(operands[i]).delete()
        arrays = list(map(PlacedArray, self.avals, results, self._out, _COMMITTED))
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

    @property
    def out_shardings(self) -> list[Any]:
        """How the results lie: computed ones, literals, arguments passed through."""
        return [
            self._whole
            if type(out) is Literal
            else self._out[out]
            if out >= 0
            else self.in_shardings[-1 - out]
            for out in self._prepared.outputs
        ]

    def _over_mesh(self, x: DeviceArray) -> DeviceArray:
        """An array that the program does not compute: as it is, or on every device if it lies elsewhere."""
        own = as_physical(x)
        if type(own) is PlacedArray and type(own._placement) is NamedSharding:
            return x
        return as_logical(PlacedArray(own.aval, buffer_over(own, self._whole), self._whole, True), x.aval)


def wanted_specs(closed: ClosedJaxpr, mesh: Mesh) -> list[PartitionSpec | None]:
    """The layouts that a program itself gives to its results, by a constraint at the end."""
    made_by = {v: eqn for eqn in closed.eqns for v in eqn.outvars}
    specs: list[PartitionSpec | None] = []
    for v in closed.jaxpr.outvars:
        eqn = made_by.get(v) if isinstance(v, Var) else None
        if eqn is not None and eqn.primitive is sharding_constraint_p:
            specs += eqn.primitive.specs_wanted(**eqn.params)
        else:
            specs.append(spec_of_type(v.aval, mesh))
    return specs
