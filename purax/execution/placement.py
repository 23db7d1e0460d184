"""Where a program runs: one device, or a mesh of them with a layout for every argument.

Operands decide: computation follows data. Arrays that are committed to a place must all be at the same one; all
others come to it, over a mesh as copies on every device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from purax.config import config
from purax.core.avals import ShapedArray
from purax.core.memo import Memo
from purax.core.memories import MemorySpace
from purax.core.source import located
from purax.interpreters.extended_dtypes import as_physical
from purax.sharding import propagation, shards
from purax.sharding.mesh import Mesh, PartitionSpec
from purax.sharding.shardings import NamedSharding, SingleDeviceSharding, from_hlo, in_memory, named_sharding
from purax.xla import capacity, client, compiler, jaxlib_api, targets
from purax.xla.array import DeviceArray, PlacedArray
from purax.xla.execute import Executable
from purax.xla.stablehlo import Module, sharding_text

_WHOLE = PartitionSpec()
OWN = MemorySpace.Device


class MeshPlace(NamedTuple):
    """A mesh to run on, and how each operand is sharded over it."""

    mesh: Mesh
    specs: tuple[PartitionSpec, ...]

    @property
    def platform(self) -> str:
        return client.platform_of(self.mesh.flat[0])


def place(
    operands: Sequence[Any], what: str, mesh: Mesh | None = None, specs: Sequence[Any] = ()
) -> tuple[Any, Any, bool]:
    """Where operands meet: the device (or `MeshPlace`), the placement of the results, and whether they are committed.

    Args:
        operands: arrays, and values that may go anywhere.
        what: runs there, for the error message.
        mesh: the one that the program itself asks for.
        specs: how it asks for each operand to be sharded over that mesh, or None.
    """
    committed = stray = None
    for position, x in enumerate(map(as_physical, operands)):
        if type(x) is PlacedArray:
            if type(x._placement) is NamedSharding:
                return _over_mesh(operands, what, mesh, specs), None, True
            own = x._placement if x.aval.memory_space is OWN else in_memory(x._placement, OWN)
            if not x.committed:
                stray = own
            elif committed is None or committed is own:
                committed = own
            else:
                raise located(
                    ValueError,
                    f"{what} got arrays committed to different devices: {committed} and, at position {position}, "
                    f"{x._placement}. Move them to one device with `purax.device_put(x, device)`.",
                )
    if mesh is not None:
        return _over_mesh(operands, what, mesh, specs), None, True
    if committed is not None:
        return committed._device, committed, True
    home = client.default_device()
    if config.default_device is not None:
        return home, SingleDeviceSharding(home), False
    if stray is not None:
        return stray._device, stray, False
    return home, None, False


def _over_mesh(operands: Sequence[Any], what: str, mesh: Mesh | None, wanted: Sequence[Any]) -> MeshPlace:
    arrays = [as_physical(x) for x in operands]
    if mesh is None:
        mesh = next(x._placement.mesh for x in arrays if _lies_over_mesh(x))
    client.check_not_abandoned(mesh.flat[0])
    devices = frozenset(mesh.flat)
    specs = []
    for position, x in enumerate(arrays):
        spec = (wanted[position] if wanted else None) or _WHOLE
        if type(x) is PlacedArray and x.committed:
            placement = x._placement
            if placement.device_set != devices:
                raise located(
                    ValueError,
                    f"{what} runs on {mesh} with devices {_ids(mesh.flat)}, and got, at position {position}, "
                    f"an array committed to {_ids(placement.device_set)}. Move it: `purax.device_put(x, "
                    "NamedSharding(mesh, PartitionSpec(...)))`.",
                )
            one = type(placement) is not NamedSharding
            spec = _WHOLE if one else _spec_over(placement, mesh, x.aval.ndim)
        specs.append(spec)
    return MeshPlace(mesh, tuple(specs))


def spec_of_type(aval: ShapedArray, mesh: Mesh) -> PartitionSpec | None:
    """How a value is sharded over a mesh as its type says; None where the compiler decides, along all or some axes."""
    if aval.layout is None or len(aval.layout.mesh.explicit_axes) < len(mesh.axis_names):
        return None
    return aval.layout.spec


def _lies_over_mesh(x: Any) -> bool:
    return type(x) is PlacedArray and type(x._placement) is NamedSharding


def _spec_over(placement: NamedSharding, mesh: Mesh, ndim: int) -> PartitionSpec:
    """The layout of an array over `mesh`, as near to the one it has as the axes of the mesh allow."""
    if placement.mesh == mesh:
        return placement.spec
    if placement.mesh.flat == mesh.flat:
        key = (placement, mesh, ndim)
        if key not in _renamed:
            found = from_hlo(mesh, placement._to_xla_hlo_sharding(ndim), ndim)
            if len(_renamed) >= _MAX_RENAMED:
                _renamed.clear()
            _renamed[key] = _WHOLE if found is None else found.spec
        return _renamed[key]
    return _WHOLE


_renamed: dict[Any, PartitionSpec] = {}
_MAX_RENAMED = 1024


def _ids(devices: Any) -> str:
    return ", ".join(str(d) for d in sorted(devices, key=lambda d: d.id))


def buffer_over(x: DeviceArray, sharding: NamedSharding) -> Any:
    """The value of an array as a buffer that lies as `sharding` says."""
    x = as_physical(x)
    if sharding.memory_kind is not None and in_memory(sharding, OWN) is not sharding:
        if type(x) is PlacedArray and x._placement == sharding:
            return x._live_buffer()
        return jaxlib_api.copy_to(buffer_over(x, in_memory(sharding, OWN)), sharding)
    if type(x) is PlacedArray and x.aval.memory_space is not OWN:
        placement = in_memory(x._placement, OWN)
        x = PlacedArray(x.aval.with_memory(OWN), jaxlib_api.copy_to(x._live_buffer(), placement), placement, True)
    if type(x) is PlacedArray:
        placement = x._placement
        if placement is sharding or (
            type(placement) is NamedSharding and placement.is_equivalent_to(sharding, x.aval.ndim)
        ):
            buffer = x._live_buffer()
            return buffer
        if type(placement) is NamedSharding and placement.mesh.flat == sharding.mesh.flat:
            return reshard(x, sharding)
    if sharding.is_fully_replicated and sharding.is_fully_addressable and x._host is None:
        whole = x._live_buffer()
        if (
            type(x._placement) is not NamedSharding
            and whole._sharding._device.client is sharding.mesh.flat[0].client
        ):
            copies = [jaxlib_api.copy_to(whole, SingleDeviceSharding(d)) for d in sharding.mesh.flat]
            return shards.join(copies, sharding.mesh.flat, sharding, x.aval)
    return shards.put(x.host_value(), sharding, x.aval)


_resharders: Memo[Any, Executable] = Memo(256)


def reshard(x: PlacedArray, sharding: NamedSharding) -> Any:
    """Moves an array that lies over some devices to another layout over the same ones, by a program of the compiler."""
    aval = x.aval
    key = (aval.shape, aval.dtype, x._placement, sharding)
    executable = _resharders.get(key)
    if executable is None:
        source_spec = _spec_over(x._placement, sharding.mesh, aval.ndim)
        if source_spec is _WHOLE and not x._placement.is_fully_replicated:
            return shards.put(x.host_value(), sharding, aval)  # cut along axes that this mesh does not have
        module = _identity(aval, sharding.mesh, source_spec, sharding.spec)
        executable = _resharders[key] = compiler.compile_program(
            module,
            [aval],
            sharding.mesh.flat,
            out_shardings=[sharding],
            options=(("free_outputs", (False,)),),
        )
    return executable([x._live_buffer()])[0]


def _identity(aval: ShapedArray, mesh: Mesh, source_spec: PartitionSpec, spec: PartitionSpec) -> str:
    from_, to = (_sharding_attribute(s, aval.ndim) for s in (source_spec, spec))
    module = Module(client.platform_of(mesh.flat[0]), mesh=mesh)
    module.function("main", [aval], lambda builder, x: [x], True, [from_], [to])
    return module.text("reshard")


def compile_over(
    mesh: Mesh,
    out_avals: Sequence[ShapedArray],
    out_specs: Sequence[PartitionSpec | None],
    lower: Callable[[Sequence[PartitionSpec | None]], tuple[Module, str]],
    *,
    ahead: bool = False,
    **options: Any,
) -> Executable:
    """Compiles a program for the devices of a mesh.

    Args:
        mesh: the mesh.
        out_avals: the types of the results.
        out_specs: how they shall be sharded over the mesh; None leaves it to the compiler.
        lower: gives the module, and its name, for such specs.
        ahead: of any call, so that it need not fit into the memory of the devices.
        options: for `compiler.compile_program`.
    """
    specs = list(out_specs)

    def name_layouts(chosen: Sequence[Any]) -> list[NamedSharding]:
        shardings = []
        for i, (aval, spec) in enumerate(zip(out_avals, specs, strict=True)):
            sharding = (
                named_sharding(mesh, spec)
                if spec is not None
                else from_hlo(mesh, chosen[i] if chosen else None, aval.ndim)
            )
            if sharding is None:
                raise _UnnamedLayout(i)
            shardings.append(in_memory(sharding, aval.memory_space))
        return shardings

    flags, effects = tuple(options.pop("options", ())), options.pop("effects", "")
    while True:
        module, name = lower(specs)
        if not ahead:
            capacity.refuse_what_does_not_fit(name, out_avals, (), mesh.flat)
        targets.require(module)
        text = module.text(name)
        free = tuple(spec is None for spec in specs)
        try:
            executable = compiler.compile_program(
                text,
                out_avals,
                mesh.flat,
                options=(*flags, ("free_outputs", free)),
                callbacks=module.callbacks,
                # A program that calls Python leaves a token, so that all devices can be waited for.
                effects=effects or ("unordered" if module.callbacks else ""),
                out_shardings=name_layouts,
                **options,
            )
        except _UnnamedLayout as unnamed:
            specs[unnamed.args[0]] = _WHOLE
        else:
            propagation.report(module, mesh.flat)
            return executable


class _UnnamedLayout(Exception):
    """The compiler cut result number `args[0]` along parts of the mesh's axes, which a spec cannot say."""


def _sharding_attribute(spec: PartitionSpec, ndim: int) -> str:
    return f"sdy.sharding = #sdy.sharding{sharding_text(spec, ndim)}"
