"""The bytes of an exported function, a format of purax's own:

    b"purax.export" | version: u16 | length of the description: u64 | description: JSON | modules | SHA-256 of it all

The description has names, types, structures, and the derivatives, each like the function itself; the modules, in
StableHLO's portable bytecode, stand after it in order, and equal ones once. Nothing is pickled. Bytes that are cut off,
changed, or of a later version are refused by name.
"""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Callable
from typing import Any

from purax.core import dtypes
from purax.core.avals import ShapedArray
from purax.core.source import with_location
from purax.export.modules import PortableModule
from purax.export.trees import tree_from_json, tree_to_json
from purax.random.typed_keys import KeyDtype, key_dtype

MAGIC = b"purax.export"
VERSION = 1
_HEAD = len(MAGIC) + 2 + 8
_DIGEST = 32


def to_bytes(exported: Any, vjp_order: int) -> bytearray:
    """An `Exported` as bytes, with so many derivatives."""
    try:
        order = operator.index(vjp_order)
    except TypeError:
        raise with_location(TypeError(f"vjp_order must be an integer, got {vjp_order!r}")) from None
    if order < 0:
        raise with_location(ValueError(f"vjp_order must not be negative, got {order}"))
    modules: dict[str, tuple[int, PortableModule]] = {}
    description = _describe(exported, order, modules)
    description["modules"] = [len(module.data) for _, module in modules.values()]
    text = json.dumps(description, separators=(",", ":")).encode()
    data = bytearray(MAGIC + VERSION.to_bytes(2, "little") + len(text).to_bytes(8, "little") + text)
    for _, module in modules.values():
        data += module.data
    return data + hashlib.sha256(data).digest()


def _describe(exported: Any, order: int, modules: dict[str, tuple[int, PortableModule]]) -> dict[str, Any]:
    if order and not exported.has_vjp():
        raise with_location(
            ValueError(
                f"serialization of an Exported that does not have vjps of high-enough order: `{exported.fun_name}` "
                f"lacks {order} of those asked for. Serialize the function where it was exported."
            )
        )
    by_platform = exported._modules.by_platform
    for module in by_platform.values():
        modules.setdefault(module.fingerprint, (len(modules), module))
    return {
        "name": exported.fun_name,
        "in_tree": tree_to_json(exported.in_tree),
        "in_avals": [_type_to_json(aval) for aval in exported.in_avals],
        "out_tree": tree_to_json(exported.out_tree),
        "out_avals": [_type_to_json(aval) for aval in exported.out_avals],
        "platforms": {platform: modules[module.fingerprint][0] for platform, module in by_platform.items()},
        "disabled": [repr(check) for check in exported.disabled_safety_checks],
        "vjp": _describe(exported.vjp(), order - 1, modules) if order else None,
    }


def _type_to_json(aval: ShapedArray) -> list[Any]:
    if isinstance(aval.dtype, KeyDtype):
        return [aval.shape, f"key:{aval.dtype.implementation}", aval.weak_type]
    return [aval.shape, dtypes.dtype_name(aval.dtype), aval.weak_type]


def _type_from_json(made: list[Any]) -> ShapedArray:
    shape, name, weak_type = made
    kind, _, implementation = name.partition(":")
    if kind == "key":
        dtype: Any = key_dtype(implementation)
    else:
        dtype = dtypes.float0 if name == "float0" else dtypes.as_exact_dtype(name)
    return ShapedArray(tuple(shape), dtype, weak_type)


def from_bytes(data: Any, make: Callable[..., Any]) -> Any:
    """The `Exported` that `make` makes of what `to_bytes` wrote."""
    try:
        data = bytes(memoryview(data))
    except TypeError:
        raise with_location(
            TypeError(f"deserialize needs bytes, as `serialize` returns them, got {type(data).__name__}")
        ) from None
    if data[: len(MAGIC)] != MAGIC:
        raise with_location(
            ValueError(
                f"these {len(data)} bytes are not an exported function of purax; those begin with {MAGIC!r}, and are "
                "written by `Exported.serialize`"
            )
        )
    version = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 2], "little")
    if len(data) >= _HEAD and version != VERSION:
        raise with_location(
            ValueError(
                f"these bytes are in version {version} of the format of exported functions; this purax reads version "
                f"{VERSION}"
            )
        )
    if len(data) < _HEAD + _DIGEST or hashlib.sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise with_location(
            ValueError("the bytes of the exported function are damaged or cut off: their check sum is wrong")
        )
    start = _HEAD + int.from_bytes(data[len(MAGIC) + 2 : _HEAD], "little")
    description = json.loads(data[_HEAD:start])
    modules = []
    for size in description["modules"]:
        modules.append(PortableModule(data[start : start + size]))
        start += size
    return _restore(description, modules, make)


def _restore(description: dict[str, Any], modules: list[PortableModule], make: Callable[..., Any]) -> Any:
    derivative = description["vjp"]
    return make(
        description["name"],
        tree_from_json(description["in_tree"]),
        [_type_from_json(made) for made in description["in_avals"]],
        tree_from_json(description["out_tree"]),
        [_type_from_json(made) for made in description["out_avals"]],
        {platform: modules[index] for platform, index in description["platforms"].items()},
        description["disabled"],
        None if derivative is None else lambda: _restore(derivative, modules, make),
    )
