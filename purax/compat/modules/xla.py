"""`jax.interpreters.xla`: running one primitive."""

from __future__ import annotations

from typing import Any

from purax.core.avals import ShapedArray
from purax.core.primitive import Primitive
from purax.core.trace import eager_trace, using

__all__ = ["ShapedArray", "apply_primitive", "canonicalize_dtype_handlers", "pytype_aval_mappings"]

canonicalize_dtype_handlers: dict[type, Any] = {}
pytype_aval_mappings: dict[type, Any] = {}


def apply_primitive(primitive: Primitive, *operands: Any, **params: Any) -> Any:
    """Runs a primitive on concrete arrays now."""
    with using(eager_trace()):
        return primitive.bind(*operands, **params)
