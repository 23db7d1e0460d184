"""Attributes of jax's types that purax's lack, given to them in this mode: where arrays of a type lie."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np

from purax.api.jit import JitFunction
from purax.compat.equation_source import source_info
from purax.compat.modules.linear_util import WrappedFun
from purax.control_flow.flat_call import CustomCall, run_flat
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.jaxpr import JaxprEqn
from purax.core.primitive import Primitive
from purax.core.trace import Trace, Tracer
from purax.interpreters.extended_dtypes import ExtendedArray
from purax.random.implementations import IMPLEMENTATIONS
from purax.ref import AbstractRef
from purax.sharding.mesh import AbstractMesh, PartitionSpec
from purax.sharding.shardings import NamedSharding, SingleDeviceSharding
from purax.xla.array import DeviceArray
from purax.xla.jaxlib_api import EngineSharding


class OpenSharding(EngineSharding):
    """The sharding of a type: no axis is cut, and no device is named.

    Args:
        ndim: how many axes arrays of the type have.
    """

    mesh = AbstractMesh((), ())
    memory_kind = None
    device_set: frozenset = frozenset()
    num_devices = 0
    is_fully_replicated = True

    def __init__(self, ndim: int):
        super().__init__()
        self.spec = PartitionSpec(*(None,) * ndim)

    def update(self, **changes: Any) -> OpenSharding:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpenSharding) and other.spec == self.spec

    def __hash__(self) -> int:
        return hash(self.spec)

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec})"


class Declared:
    """A method or property of `jax.Array` that each kind of array defines for itself.

    On the class it is a function of an array, which libraries wrap; a kind of array without it has no such attribute.

    Args:
        name: what it is called.
    """

    def __init__(self, name: str):
        self.__name__ = name
        self.__qualname__ = f"Array.{name}"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        raise AttributeError(f"{type(instance).__name__!r} object has no attribute {self.__name__!r}")

    def __call__(self, array: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(array, self.__name__)(*args, **kwargs)


_OF_ARRAYS = (
    "addressable_data addressable_shards committed copy_to_host_async device global_shards is_fully_addressable "
    "is_fully_replicated item sharding tobytes tolist __copy__ __deepcopy__"
)


def _addressable(sharding: Any) -> tuple[Any, ...]:
    """The devices of this process, in the order of the mesh."""
    devices = sharding.mesh.flat if isinstance(sharding, NamedSharding) else sharding.device_set
    return tuple(device for device in devices if device in sharding.addressable_devices)


def _has_addressable(sharding: Any) -> bool:
    return bool(sharding.addressable_devices)


def attach() -> None:
    """Gives types, traces and primitives the attributes that they have in jax, unless they have them."""
    itself = property(lambda trace: trace)
    lowering = {  # an array is made of itself, as values of user-defined types are of several
        "lo_ty": lambda aval: [aval],
        "lower_val": lambda aval, x: [x],
        "raise_val": lambda aval, x: x,
    }
    additions: tuple[tuple[type, str, Any], ...] = (
        *((Array, name, Declared(name)) for name in _OF_ARRAYS.split()),
        *((kind, name, rule) for kind in (ShapedArray, AbstractRef) for name, rule in lowering.items()),
        (ShapedArray, "sharding", property(lambda aval: OpenSharding(aval.ndim))),
        (JaxprEqn, "source_info", property(source_info)),
        (Trace, "main", itself),
        (Tracer, "_trace", property(lambda tracer: tracer.owner)),
        (CustomCall, "get_bind_params", _custom_parameters),
        (CustomCall, "bind", _bind_custom),
        (Primitive, "get_bind_params", lambda primitive, params: params),
        (DeviceArray, "platform", lambda x: next(iter(x.sharding.device_set)).platform),
        (DeviceArray, "clone", lambda x: x),
        (SingleDeviceSharding, "has_addressable_devices", property(_has_addressable)),
        (NamedSharding, "has_addressable_devices", property(_has_addressable)),
        (DeviceArray, "_committed", property(lambda x: x.committed)),
        (DeviceArray, "_sharding", property(lambda x: x.sharding)),
        (DeviceArray, "_value", property(np.asarray)),
        (DeviceArray, "_npy_value", property(lambda x: x._host)),
        (DeviceArray, "_arrays", property(lambda x: [shard.data for shard in x.addressable_shards])),
        (ExtendedArray, "_base_array", property(lambda keys: keys.physical)),
        (ExtendedArray, "_impl", property(lambda keys: IMPLEMENTATIONS.get(keys.dtype.implementation))),
        (SingleDeviceSharding, "_device_assignment", property(lambda place: tuple(place.device_set))),
        (NamedSharding, "_device_assignment", property(lambda place: tuple(place.mesh.flat))),
        (SingleDeviceSharding, "_addressable_device_assignment", property(_addressable)),
        (NamedSharding, "_addressable_device_assignment", property(_addressable)),
    )
    JitFunction.__name__ = JitFunction.__qualname__ = (
        "PjitFunction"  # by which libraries know compiled functions
    )
    for kind, name, value in additions:
        if name not in vars(kind) and (kind is CustomCall or not hasattr(kind, name)):
            setattr(kind, name, value)
    if not _namespaces:
        arrays: Any = Array  # whose methods `purax.numpy` fills in
        _namespaces.append(arrays.__array_namespace__)
        arrays.__array_namespace__ = _array_namespace


_namespaces: list[Any] = []  # the method of arrays that this mode replaces
_NUMPY = "jax.numpy"  # the facade of that name, which the finder serves


def _array_namespace(self: Array, *, api_version: str | None = None) -> ModuleType:
    """`jax.numpy`, by which name libraries know what they work on."""
    _namespaces[0](self, api_version=api_version)  # which refuses versions that are not supported
    return importlib.import_module(_NUMPY)


class Subfunctions(tuple):
    """The functions of a call with custom rules, made from its parameters."""


def _custom_parameters(primitive: Primitive, params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a call with custom rules, and as in jax the functions among them; `bind` takes them all."""
    call = params["call"]
    function = WrappedFun(lambda *operands: run_flat(call, operands))
    return {
        **params,
        "subfuns": Subfunctions((function, *map(WrappedFun, _rules(params)))),
        "symbolic_zeros": False,
    }


def _bind_custom(
    primitive: Primitive, *operands: Any, subfuns: Any = None, symbolic_zeros: bool = False, **params: Any
) -> Any:
    """`bind` that also takes what `get_bind_params` gives."""
    if subfuns is not None and type(subfuns) is not Subfunctions:
        raise TypeError(
            f"`{primitive}` is bound with the functions that `get_bind_params` gave, not with others: {subfuns}"
        )
    return Primitive.bind(primitive, *operands, **params)


def _rules(rest: dict[str, Any]) -> list[Any]:
    """The rules as functions: of derivatives, or those of the forward and the backward pass."""
    if "rules" in rest:
        return [rest["rules"].forward, rest["rules"].backward]
    return [rest["rule"]]
