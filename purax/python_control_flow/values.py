"""Values that branches and loops leave behind: what is known of them, and how messages call them.

A variable that is not of one type on both sides becomes `Undefined`, and only reading it is an error, or the reason to
go both ways (`paths`).
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from purax.control_flow.bodies import as_type
from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.source import located
from purax.core.trace import Tracer
from purax.interpreters.arguments import to_array
from purax.python_control_flow import objects
from purax.python_control_flow.paths import Origin
from purax.tree.nodes import register_pytree_node

_ARRAYS = (Array, np.ndarray, np.generic, bool, int, float, complex)
_NUMBERS = (bool, int, float, complex, str, bytes, type(None))


class Undefined:
    """Stands for a variable that has no value, or not one of one type; whatever is done with it raises."""

    __slots__ = ("_message", "_origin")

    def __init__(self, message: str, origin: Origin | None = None):
        self._message = message
        self._origin = origin  # the decision that tells which of two values it is

    def fail(self, *args, **kwargs):
        error = located(UnboundLocalError, self._message)
        if self._origin is not None:
            self._origin.fail(error)
        raise error

    def fail_if_forked(self) -> None:
        """Raises the fork that would tell the value, if there can be one."""
        if self._origin is not None:
            self._origin.fork(located(UnboundLocalError, self._message))

    __getattr__ = __call__ = __bool__ = __len__ = __iter__ = __getitem__ = __setitem__ = __contains__ = fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = fail
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = fail
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __neg__ = __pos__ = __abs__ = __invert__ = (
        fail
    )
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __lt__ = __le__ = __gt__ = __ge__ = fail
    __float__ = __int__ = __complex__ = __index__ = __str__ = __format__ = fail
    __eq__ = __ne__ = __hash__ = __divmod__ = __rdivmod__ = __round__ = __reversed__ = __next__ = fail  # type: ignore
    __enter__ = __exit__ = __delitem__ = __bytes__ = __array__ = __jax_array__ = __copy__ = __deepcopy__ = (
        fail
    )
    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = __imatmul__ = fail
    __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = fail

    def __repr__(self) -> str:
        return f"<undefined: {object.__getattribute__(self, '_message')}>"


class Partly(Undefined):
    """A variable that one of two branches assigned, and the `Maybe` that it is.

    Reading it is an error right after the branches. Under another condition, as in `if c: y = 1` and `if c: return y`,
    it may well have a value; then that is checked when the program runs.
    """

    __slots__ = ("depth", "maybe")

    def __init__(self, message: str, maybe: Any, origin: Origin | None = None):
        super().__init__(message, origin)
        self.maybe = maybe
        self.depth = blocks.depth

    def is_read_further_in(self) -> bool:
        return blocks.depth > self.depth


objects.leave_alone(Undefined, Partly)


class _Blocks(threading.local):
    """How many blocks are being recorded, one in the other."""

    depth = 0


blocks = _Blocks()


def is_array(x: Any) -> bool:
    """Whether a leaf can be a result of a program."""
    return isinstance(x, _ARRAYS)


def is_traced(x: Any) -> bool:
    """Whether a value is not known while the function is being transformed."""
    return isinstance(x, Tracer) and x.concrete_or_none() is None


def type_text(value: Any) -> str:
    """How messages call the type of a value: `float32[3]`, `(float32[], None)`, `undefined`."""
    if isinstance(value, Undefined):
        return "undefined"
    if isinstance(value, (Array, Inner)):
        shape = ",".join(map(str, value.aval.shape))
        return f"{dtypes.dtype_name(value.aval.dtype)}[{shape}]"
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}[{','.join(map(str, value.shape))}]"
    if type(value) in (tuple, list):
        inner = ", ".join(map(type_text, value))
        return f"({inner})" if type(value) is tuple else f"[{inner}]"
    if type(value) is dict:
        return "{" + ", ".join(f"{key!r}: {type_text(x)}" for key, x in value.items()) + "}"
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"


def way_out(one: Any, other: Any) -> str:
    """What to write instead of a list or a dict that grows under a traced condition, if that is the matter."""
    if type(one) is list and type(other) is list and len(one) != len(other):
        return (
            ". The length of a list cannot depend on a traced value: make an array of the largest length first, "
            "`out = jnp.zeros(n)`, write to it, `out = out.at[i].set(value)`, and count"
        )
    if type(one) is dict and type(other) is dict and one.keys() != other.keys():
        return ". The keys of a dict cannot depend on a traced value: give it all of them first"
    return ""


def same(a: Any, b: Any) -> bool:
    """Whether two leaves are one value that need not be recorded."""
    if a is b:
        return True
    if isinstance(a, _ARRAYS) or isinstance(b, _ARRAYS):
        return type(a) is type(b) and isinstance(a, _NUMBERS) and (a == b and str(a) == str(b))
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:  # a comparison of the user's that does not work is no sameness
        return False


def common_type(a: ShapedArray, b: ShapedArray) -> ShapedArray | None:
    """The type that holds the values of both; None if there is none."""
    if a.shape != b.shape:
        return None
    if a.dtype != b.dtype and (dtypes.is_extended(a.dtype) or dtypes.is_extended(b.dtype)):
        return None
    dtype, weak = dtypes.promote_pair(a.dtype, a.weak_type, b.dtype, b.weak_type)
    return ShapedArray(a.shape, dtype, weak)


class Maybe:
    """A variable that has a value if a traced flag says so, as one that a loop assigns; reading it is a check.

    It is a tree of the value and the flag.
    """

    __slots__ = ("flag", "message", "value")

    def __init__(self, value: Any, flag: Any, message: str):
        self.value, self.flag, self.message = value, flag, message


objects.leave_alone(Maybe)
register_pytree_node(
    Maybe, lambda x: ((x.value, x.flag), x.message), lambda message, parts: Maybe(parts[0], parts[1], message)
)


class Inner:
    """A value that exists only in a block that was recorded: its type, and which result of the block it is."""

    __slots__ = ("aval", "position")

    def __init__(self, aval: ShapedArray, position: int):
        self.aval, self.position = aval, position


def typed(x: Any, aval: ShapedArray) -> Any:
    """A value as an array of a type."""
    return as_type(x if isinstance(x, Array) else to_array(x), aval)


def array_type(x: Any) -> ShapedArray:
    if isinstance(x, (Array, Inner)):
        return x.aval
    return to_array(x).aval
