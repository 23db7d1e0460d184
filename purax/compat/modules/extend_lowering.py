"""`jax.extend.lowering`: what lowerings of third parties get."""

from __future__ import annotations

from typing import Any

from purax.compat.modules.mlir import make_ir_context
from purax.xla import jaxlib_api
from purax.xla.foreign_mlir import LoweringRuleContext

__all__ = ["JaxIrContext", "LoweringRuleContext", "upstream_dialects"]  # noqa: F822


def JaxIrContext(*args: Any, **kwargs: Any) -> Any:  # noqa: N802
    """A new MLIR context that knows StableHLO."""
    return make_ir_context()


def __getattr__(name: str) -> Any:
    if name == "upstream_dialects":  # MLIR's bindings are loaded only where somebody wants them
        return jaxlib_api.mlir_registry()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
