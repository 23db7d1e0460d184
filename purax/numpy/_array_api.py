"""What the array API standard asks about a library: devices, dtypes, capabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.config import config
from purax.core import dtypes
from purax.core.source import located
from purax.errors import shown
from purax.xla import client

__array_api_version__ = "2024.12"

_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


class ArrayNamespaceInfo:
    """The answers of `purax.numpy.__array_namespace_info__()`.

    >>> import purax.numpy as jnp
    >>> jnp.__array_namespace_info__().default_dtypes()["real floating"]
    dtype('float32')
    """

    def capabilities(self) -> dict[str, Any]:
        """Optional behaviour: boolean masks as indices, and shapes that depend on data, outside of jit."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """The device of arrays that are not placed elsewhere."""
        return client.default_device() if config.default_device is not None else None

    def devices(self) -> list[Any]:
        """All devices."""
        return [None, *client.devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes of values that name none."""
        return {
            "real floating": dtypes.default_float(),
            "complex floating": dtypes.default_complex(),
            "integral": dtypes.default_int(),
            "indexing": dtypes.default_int(),
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, np.dtype]:
        """The dtypes of the standard by name, all of them or those of one kind or several."""
        if kind is None:
            kinds: tuple[str, ...] = ("bool", "numeric")
        else:
            kinds = (kind,) if isinstance(kind, str) else tuple(kind)
        for one in kinds:
            if one not in _KINDS:
                raise located(
                    ValueError,
                    f"dtypes: kind must be one of {', '.join(map(repr, _KINDS))}, got {shown(one)}",
                )
        return {name: dtypes.as_exact_dtype(name) for one in kinds for name in _KINDS[one]}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """What the array API standard asks about this library.

    >>> import purax.numpy as jnp
    >>> jnp.__array_namespace_info__().capabilities()["boolean indexing"]
    True
    """
    return ArrayNamespaceInfo()
