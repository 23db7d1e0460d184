"""`jax.interpreters.xla`: running one primitive."""

from __future__ import annotations

from typing import Any

import numpy as np

from purax.core.avals import ShapedArray
from purax.core.primitive import Primitive
from purax.core.trace import eager_trace, using
from purax.interpreters.arguments import aval_of_argument, to_array

__all__ = ["ShapedArray", "apply_primitive", "canonicalize_dtype_handlers", "pytype_aval_mappings"]

# By the class of a value, what gives it the dtype of arrays; libraries add their own classes.
canonicalize_dtype_handlers: dict[type, Any] = {np.ndarray: to_array}
pytype_aval_mappings: dict[type, Any] = {np.ndarray: aval_of_argument}


def apply_primitive(prim: Primitive, *args: Any, **params: Any) -> Any:
    """Runs a primitive on concrete arrays now."""
    with using(eager_trace()):
        return prim.bind(*args, **params)
