"""Python functions that run on the hosts that devices belong to.

In one process that is this host: a decorated function is called here, on arrays of the CPU. Devices of other
processes are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.api import transfer
from purax.sharding.mesh import Mesh
from purax.xla import client, jaxlib_api

__all__ = ["DeviceList", "colocated_cpu_devices", "colocated_python", "colocated_python_class"]

DeviceList = jaxlib_api.DeviceList


def colocated_cpu_devices(devices_or_mesh: Sequence[Any] | Mesh) -> Any:
    """The CPU devices of the hosts that devices belong to.

    Args:
        devices_or_mesh: devices, or a mesh of them.

    Returns:
        As many CPU devices, or a mesh of the same shape.

    >>> import purax as px
    >>> from purax.experimental.colocated_python import colocated_cpu_devices
    >>> [device.platform for device in colocated_cpu_devices(px.devices()[:1])]
    ['cpu']
    """
    if isinstance(devices_or_mesh, Mesh):
        mesh = devices_or_mesh
        found = np.empty(mesh.devices.size, object)
        found[:] = colocated_cpu_devices(list(mesh.flat))
        return Mesh(found.reshape(mesh.devices.shape), mesh.axis_names, mesh.axis_types)
    own = client.devices("cpu")
    cpus: list[Any] = []
    for device in devices_or_mesh:
        if device.process_index != client.process_index():
            raise NotImplementedError(
                f"colocated_cpu_devices: {device} belongs to another process, whose CPU cannot be reached"
            )
        cpus.append(device if device.platform == "cpu" else own[device.local_hardware_id or 0])
    return cpus


class ColocatedFunction:
    """A function that runs on the host of its arguments, with the options of how it is called."""

    def __init__(self, fun: Callable, devices: Sequence[Any] | None = None):
        self._fun = fun
        self._devices = devices

    def specialize(
        self, in_specs: Any = None, out_specs_fn: Any = None, devices: Any = None
    ) -> ColocatedFunction:
        """The function for certain devices; the types of its arguments and results follow from the call.

        Args:
            in_specs: must be None: calls with arguments of any types are possible.
            out_specs_fn: must be None.
            devices: where it runs.
        """
        if in_specs is not None or out_specs_fn is not None:
            raise NotImplementedError(
                "specialize: in_specs and out_specs_fn are not supported, since types follow from each call; leave "
                "them out"
            )
        if devices is not None:
            colocated_cpu_devices(devices)
        return ColocatedFunction(self._fun, devices)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        results = self._fun(*args, **kwargs)
        return results if self._devices is None else transfer.device_put(results, self._devices[0])


def colocated_python(fun: Callable) -> ColocatedFunction:
    """Runs a Python function on the host of its arguments: in one process, here and now.

    Args:
        fun: a function of arrays.

    >>> import purax.numpy as jnp
    >>> from purax.experimental.colocated_python import colocated_python
    >>> colocated_python(lambda x: x + 1)(jnp.arange(2))
    Array([1, 2], dtype=int32)
    """
    return ColocatedFunction(fun)


def colocated_python_class(cls: type) -> type:
    """A class whose objects live on the host of the arguments of their methods: in one process, the class itself."""
    return cls
