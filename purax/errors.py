"""The exceptions that users see, under JAX's names.

The classes hold no text of their own: the place that raises knows the argument, the shapes and the way out.
"""

from __future__ import annotations

import reprlib
from typing import Any

__all__ = [
    "AxisError",
    "CheckFailedError",
    "CheckedAccess",
    "ConcretizationTypeError",
    "CuSparseEfficiencyWarning",
    "GridRace",
    "ImpureFunctionError",
    "ImpureFunctionWarning",
    "InconclusiveDimensionOperation",
    "IncompatibleShapesError",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "JaxprTypeError",
    "KeyReuseError",
    "LeakError",
    "MissingRuleError",
    "NonConcreteBooleanIndexError",
    "OutOfMemoryError",
    "ProcessFailureError",
    "ProcessLostError",
    "ProgramMismatchError",
    "ShapeError",
    "ShardingTypeError",
    "SparseEfficiencyError",
    "SparseEfficiencyWarning",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TypePromotionError",
    "UnexpectedTracerError",
    "UninitializedRead",
    "UnknownPaddingError",
]


class JAXTypeError(TypeError):
    """The base of the type errors of transformations."""


class JAXIndexError(IndexError):
    """The base of the index errors of transformations."""


class ShapeError(ValueError, TypeError):
    """Shapes, axes or indices that do not fit: a ValueError in NumPy and a TypeError in JAX, or the other way round."""


class UnknownPaddingError(ValueError, RuntimeError):
    """A name of padding that there is not: a ValueError, and in JAX a RuntimeError."""


class IncompatibleShapesError(ShapeError):
    """Shapes that do not broadcast, or sizes that a product would sum over together."""


class AxisError(ValueError, IndexError):
    """An axis that an array does not have: a ValueError and an IndexError, as NumPy's."""


class TypePromotionError(ValueError):
    """The dtypes of the operands do not mix without an explicit cast."""


class JaxprTypeError(TypeError):
    """A program breaks a law of the language."""


class ConcretizationTypeError(JAXTypeError):
    """A traced value was used where Python needs a concrete one."""


class TracerArrayConversionError(ConcretizationTypeError):
    """A traced value was handed to NumPy."""


class TracerBoolConversionError(ConcretizationTypeError):
    """The truth of a traced value was asked for, as in `if x > 0:`."""


class TracerIntegerConversionError(ConcretizationTypeError):
    """A traced value was used as a Python integer, as in `range(n)` or a list index."""


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index, so that the shape of the result is unknown."""


class UnexpectedTracerError(JAXTypeError):
    """A traced value was used after the transformation that made it had ended, or outside of it."""


class LeakError(UnexpectedTracerError):
    """A traced value is still alive after its transformation ended."""


class InconclusiveDimensionOperation(Exception):
    """An operation on symbolic dimensions whose answer depends on the sizes, such as `b >= 2`."""


class ShardingTypeError(TypeError):
    """Types do not say how the result of an operation is sharded over a mesh with axes of type `Explicit`."""


class MissingRuleError(NotImplementedError):
    """A primitive has no rule for a transformation."""


class KeyReuseError(RuntimeError):
    """A random key was used twice."""


class CheckFailedError(RuntimeError):
    """A condition that `purax.error_if` forbids held when the program ran."""


class ImpureFunctionWarning(UserWarning):
    """A transformed function touches state outside of it."""


class ImpureFunctionError(TypeError):
    """A transformed function touches state outside of it, and purity is strict."""


class JaxRuntimeError(RuntimeError):
    """XLA failed while it compiled or ran a program."""


class OutOfMemoryError(JaxRuntimeError, MemoryError):
    """A program needs more memory than its device has."""


class ProcessLostError(JaxRuntimeError):
    """A process of the group died, or ended too early; the message names it."""


class ProcessFailureError(RuntimeError):
    """A process of the group was lost while others needed it."""


class ProgramMismatchError(RuntimeError):
    """Processes of a group were about to run different programs together."""


class CheckedAccess(Exception):
    """The base of what the checking mode finds."""


class UninitializedRead(CheckedAccess, ValueError):
    """A kernel reads memory that nobody wrote.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> def add(o_ref):
    ...     o_ref[...] += jnp.ones(2)
    >>> with pl.checking():
    ...     try:
    ...         pl.pallas_call(add, px.ShapeDtypeStruct((2,), jnp.float32))()
    ...     except pl.UninitializedRead as error:
    ...         print(str(error).splitlines()[0])
    o_ref is read before it is written: 2 of 2 elements are uninitialized, the first at index (0,)
    """


class GridRace(CheckedAccess, RuntimeError):
    """Two steps of the grid that may run at the same time use the same memory, and one of them writes it.

    >>> from purax import pallas as pl
    >>> issubclass(pl.GridRace, RuntimeError)
    True
    """


class SparseEfficiencyError(ValueError):
    """An operation that would store more than it is worth."""


class SparseEfficiencyWarning(UserWarning):
    """An operation that stores more than it is worth."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """An operation that a GPU's own library does not have in this form; purax does not use it."""


def more_about(error: BaseException) -> str:
    """The line of a message that says where the page about this class of errors is; empty if there is none.

    >>> more_about(AxisError()), more_about(ValueError())
    ('\\n  more: purax help AxisError', '')
    """
    kind = type(error)
    return f"\n  more: purax help {kind.__name__}" if kind.__module__ == __name__ else ""


class _Shown(reprlib.Repr):
    """Writes values for messages: as `repr` does, but never deep, long, or with an exception of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxlong = 6, 100
        self.maxtuple = self.maxlist = self.maxdict = self.maxset = self.maxfrozenset = self.maxdeque = 20
        self.maxstring = self.maxother = 400


def shown(value: Any) -> str:
    """An argument of the user's in a message.

    >>> shown([1, "a"]), shown([[[[[[[[1]]]]]]]])
    ("[1, 'a']", '[[[[[[[...]]]]]]]')
    """
    return _shown.repr(value)


_shown = _Shown()
