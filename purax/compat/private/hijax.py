"""`jax.experimental.hijax`, in what Flax asks of it when it is imported: classes to derive from.

Values of user-defined types in programs are not supported; binding such a primitive says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from purax.compat.extension import Primitive
from purax.compat.private.state import AbstractRef
from purax.core.avals import ShapedArray, Zero
from purax.core.primitive import is_linear as is_undefined_primal
from purax.ops.broadcasting import materialize as instantiate_zeros

__all__ = [
    "AbstractRef",
    "AvalMutableQDD",
    "AvalQDD",
    "HiPrimitive",
    "HiType",
    "MutableHiType",
    "ShapedArray",
    "Zero",
    "aval_method",
    "aval_property",
    "control_flow_allowed_effects",
    "instantiate_zeros",
    "is_undefined_primal",
    "register_hitype",
]


class _EffectTypes(set):
    """Types of effects that are allowed somewhere."""

    def add_type(self, kind: type) -> None:
        self.add(kind)


control_flow_allowed_effects = _EffectTypes()


class HiPrimitive(Primitive):
    """A primitive on values of user-defined types."""

    def bind(self, *operands: Any, **params: Any) -> NoReturn:
        raise NotImplementedError(
            f"the primitive `{self.name}`: purax has no values of user-defined types in programs"
        )


class HiType:
    """A type of values that the user defines."""


class MutableHiType(HiType):
    """A type of values that the user defines, and that can be written."""


class AvalQDD:
    """A type and what is known of the value besides."""

    def __init__(self, aval: Any, qdd: Any):
        self.aval, self.qdd = aval, qdd


AvalMutableQDD = AvalQDD


def register_hitype(kind: type, typeof: Callable) -> None:
    """Says what the type of values of a Python class is; without effect until such a value meets a program."""


class aval_property(property):
    """A property of values that is one of their type."""


class aval_method:
    """A method of values that is one of their type."""

    def __init__(self, fun: Callable):
        self.fun = fun
