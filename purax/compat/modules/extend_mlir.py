"""`jax.extend.mlir`: StableHLO modules as portable bytes. The bindings themselves are jaxlib's."""

from __future__ import annotations

from typing import Any

from purax.xla import jaxlib_api

_TOOLS = ("deserialize_portable_artifact", "hlo_to_stablehlo", "refine_polymorphic_shapes")
__all__ = [*_TOOLS, "serialize_portable_artifact"]  # noqa: F822


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(jaxlib_api.mlir_tools(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
