"""The bytes of an exported function, a format of purax's own:

    b"purax.export" | version: u16 | length of the description: u64 | description: JSON | modules | SHA-256 of it all

The description has names, types, structures, and the derivatives, each like the function itself; the modules, in
StableHLO's portable bytecode, stand after it in order, and equal ones once. Of symbolic shapes (version 2) it has the
dimensions and the constraints of their scope as text. Nothing is pickled. Bytes that are cut off,
changed, of a later version, or made up are refused by name: with ValueError, before anything of them is used.
"""

from __future__ import annotations

import hashlib
import json
import operator
from collections.abc import Callable, Sequence
from typing import Any

from purax.core.dimension_solution import scope_of
from purax.core.source import located
from purax.errors import shown
from purax.export.description import Description, read_description, read_scope
from purax.export.modules import PortableModule

MAGIC = b"purax.export"
VERSION = 2
_WITHOUT_SYMBOLS = 1  # without symbolic shapes, so that earlier versions read it
_HEAD = len(MAGIC) + 2 + 8
_DIGEST = 32


def to_bytes(exported: Any, vjp_order: int) -> bytearray:
    """An `Exported` as bytes, with so many derivatives."""
    try:
        order = operator.index(vjp_order)
    except TypeError:
        raise located(TypeError, f"vjp_order must be an integer, got {shown(vjp_order)}") from None
    if order < 0:
        raise located(ValueError, f"vjp_order must not be negative, got {order}")
    modules: dict[str, tuple[int, PortableModule]] = {}
    description = _describe(exported, order, modules).to_json()
    scope = scope_of([aval.shape for aval in exported.in_avals])
    if scope is not None:
        description["constraints"] = [constraint.text for constraint in scope.constraints]
    description["modules"] = [len(module.data) for _, module in modules.values()]
    text = json.dumps(description, separators=(",", ":")).encode()
    version = VERSION if scope is not None else _WITHOUT_SYMBOLS
    data = bytearray(MAGIC + version.to_bytes(2, "little") + len(text).to_bytes(8, "little") + text)
    for _, module in modules.values():
        data += module.data
    return data + hashlib.sha256(data).digest()


def _describe(exported: Any, order: int, modules: dict[str, tuple[int, PortableModule]]) -> Description:
    if order and not exported.has_vjp():
        raise located(
            ValueError,
            f"serialization of an Exported that does not have vjps of high-enough order: `{exported.fun_name}` "
            f"lacks {order} of those asked for. Serialize the function where it was exported.",
        )
    by_platform = exported._modules.by_platform
    for module in by_platform.values():
        modules.setdefault(module.fingerprint, (len(modules), module))
    return Description(
        exported.fun_name,
        exported.in_tree,
        exported.in_avals,
        exported.out_tree,
        exported.out_avals,
        {platform: modules[module.fingerprint][0] for platform, module in by_platform.items()},
        tuple(repr(check) for check in exported.disabled_safety_checks),
        _describe(exported.vjp(), order - 1, modules) if order else None,
    )


def from_bytes(data: Any, make: Callable[[Description, Sequence[PortableModule]], Any]) -> Any:
    """The `Exported` that `make` makes of what `to_bytes` wrote."""
    try:
        data = bytes(memoryview(data))
    except TypeError:
        raise located(
            TypeError, f"deserialize needs bytes, as `serialize` returns them, got {type(data).__name__}"
        ) from None
    if data[: len(MAGIC)] != MAGIC:
        raise located(
            ValueError,
            f"these {len(data)} bytes are not an exported function of purax; those begin with {MAGIC!r}, and are "
            "written by `Exported.serialize`",
        )
    version = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 2], "little")
    if len(data) >= _HEAD and version not in (_WITHOUT_SYMBOLS, VERSION):
        raise located(
            ValueError,
            f"these bytes are in version {version} of the format of exported functions; this purax reads version "
            f"{_WITHOUT_SYMBOLS} and {VERSION}",
        )
    if len(data) < _HEAD + _DIGEST or hashlib.sha256(data[:-_DIGEST]).digest() != data[-_DIGEST:]:
        raise located(
            ValueError, "the bytes of the exported function are damaged or cut off: their check sum is wrong"
        )
    try:
        description, modules = _parse(data)
    except ValueError as error:
        raise located(ValueError, f"the bytes are not a function that `serialize` wrote: {error}") from None
    except RecursionError:
        raise located(
            ValueError,
            "the bytes are not a function that `serialize` wrote: their description is nested too deep",
        ) from None
    return make(description, modules)


def _parse(data: bytes) -> tuple[Description, list[PortableModule]]:
    start = _HEAD + int.from_bytes(data[len(MAGIC) + 2 : _HEAD], "little")
    end = len(data) - _DIGEST
    if start > end:
        raise ValueError(f"their description would end after {start} bytes, of {end}")
    made = json.loads(data[_HEAD:start].decode())
    sizes = made.pop("modules", None) if isinstance(made, dict) else None
    scope = read_scope(made.pop("constraints")) if isinstance(made, dict) and "constraints" in made else None
    if not isinstance(sizes, list) or not all(type(size) is int and size > 0 for size in sizes):
        raise ValueError("their description does not say how long the modules are")
    if start + sum(sizes) != end:
        raise ValueError(f"the modules should have {sum(sizes)} bytes together, and have {end - start}")
    modules = []
    for size in sizes:
        modules.append(PortableModule(data[start : start + size]))
        start += size
    return read_description(made, modules, scope), modules
