"""Names of jax's that concern several devices and the text of programs."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from purax.api.jit import jit
from purax.core.source import located


class DeviceIdType(enum.Enum):
    """How kernels name other devices.

    >>> from purax import pallas as pl
    >>> pl.DeviceIdType.MESH.value
    'mesh'
    """

    MESH = "mesh"
    LOGICAL = "logical"


def lower_as_mlir(
    f: Callable[..., Any],
    *args: Any,
    dynamic_shapes: bool = False,
    device: Any = None,
    static_argnames: Sequence[str] = (),
    platforms: Sequence[str] | None = None,
    **kwargs: Any,
) -> str:
    """The StableHLO of a function, as text.

    Args:
        f: the function.
        *args: its arguments, or their types.
        dynamic_shapes: must be False.
        device: whose platform it is for.
        static_argnames: keyword arguments that are not traced.
        platforms: what it is for, one platform.
        **kwargs: keyword arguments.

    >>> import purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> "stablehlo.sine" in pl.lower_as_mlir(jnp.sin, jnp.ones(3), platforms=["cuda"])
    True
    """
    if dynamic_shapes:
        raise located(
            NotImplementedError,
            "lower_as_mlir: dynamic_shapes is not supported; give arguments of known shapes",
        )
    where = tuple(platforms) if platforms else None
    if where is None and device is not None:
        where = (device.platform,)
    traced = jit(f, static_argnames=tuple(static_argnames)).trace(*args, **kwargs)
    return traced.lower(lowering_platforms=where).as_text()


@contextmanager
def pallas_export_experimental(dynamic_shapes: bool) -> Iterator[None]:
    """A context for exporting kernels with unknown shapes, which must be False.

    >>> from purax import pallas as pl
    >>> with pl.pallas_export_experimental(False):
    ...     pass
    """
    if dynamic_shapes:
        raise located(
            NotImplementedError, "pallas_export_experimental: kernels with unknown shapes are not supported"
        )
    yield


def get_global(what: Any) -> Any:
    """Memory that lives on between kernels, which is not there.

    >>> from purax import pallas as pl
    >>> pl.get_global.__name__
    'get_global'
    """
    raise located(
        NotImplementedError,
        f"get_global of {what}: memory does not live on between kernels; pass a `purax.new_ref` to the kernel",
    )
