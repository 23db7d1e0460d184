"""Traces: who handles an operation. There is one current trace per thread, and `Primitive.bind` hands it every
operation.

A trace deals with the operations on its own tracers and passes all others on to its parent, down to the eager trace,
which runs them. The eager trace lives in `purax.transforms.eager` and installs itself here with `set_eager_trace`.
"""

from __future__ import annotations

import threading
from typing import Any, NoReturn

import numpy as np

from purax import errors
from purax.core import source
from purax.core.array import Array
from purax.core.avals import ShapedArray


class Trace:
    """Handles operations; the base of all interpreters.

    Attributes:
        parent: the trace that gets what is not this one's, or None for the eager trace and for staging.
        alive: False once the transformation has ended; its tracers must not be used any more.
        passes_on: whether it hands operations without tracers of its own to its parent as they are.
        ends_eager: whether an operation on concrete arrays ends in the eager trace, unchanged.
        on_host: who knows rules for operations on small arrays (`transforms.host_rules`), or None.
    """

    __slots__ = ("alive", "ends_eager", "on_host", "parent")
    name = "trace"
    passes_on = False
    ends_eager: bool

    def __init__(self, parent: Trace | None):
        self.parent = parent
        self.alive = True
        self.ends_eager = self.passes_on and parent is not None and parent.ends_eager
        self.on_host: Any = None

    def process(self, primitive, operands: tuple, params: dict[str, Any]):
        """Handles one operation and returns its result (a list if the primitive has several)."""
        raise NotImplementedError


class Tracer(Array):
    """A value inside a transformation: stands for an array wherever the user's function uses it."""

    __slots__ = ("aval", "owner")
    aval: ShapedArray
    owner: Trace

    def concrete(self, needed_for: str) -> Any:
        """The concrete value behind this tracer, for Python code that needs one; an error if there is none."""
        self.refuse(
            errors.ConcretizationTypeError, needed_for, "compute it outside of the transformed function"
        )

    def refuse(self, kind: type[Exception], needed_for: str, way_out: str) -> NoReturn:
        """Raises `kind`: Python needs the value of this tracer, which is not known yet."""
        raise source.with_location(
            kind(
                f"{needed_for} needs the value of an array that is not known while its function is being "
                f"transformed: {self.describe()}.\n  {way_out}"
            )
        )

    def describe(self) -> str:
        return f"a traced {self.aval.str_short()} ({self.owner.name})"

    def __bool__(self):
        value = self.concrete_or_none()
        if value is None:
            if self.aval.size != 1:
                raise source.with_location(
                    ValueError(
                        f"the truth value of an array with {self.aval.size} elements (shape {self.aval.shape}) is "
                        "ambiguous; use x.any() or x.all()"
                    )
                )
            self.refuse(
                errors.TracerBoolConversionError,
                "`if`, `while`, `and`, `or`, `not` or `bool()`",
                "Use `purax.numpy.where` or `purax.lax.cond`/`while_loop`, or mark the argument static: "
                "`jit(f, static_argnames=...)`.",
            )
        return bool(value)

    def __int__(self):
        return int(self._number("int()"))

    def __float__(self):
        return float(self._number("float()"))

    def __complex__(self):
        return complex(self._number("complex()"))

    def __index__(self):
        value = self.concrete_or_none()
        if value is None:
            self.refuse(
                errors.TracerIntegerConversionError,
                "a Python index, `range()` or a shape",
                "Make the argument static (`jit(f, static_argnames=...)`), or index a purax array instead of a "
                "Python sequence: `jnp.asarray(values)[i]`.",
            )
        return value.__index__()

    def __array__(self, dtype=None, copy=None):
        value = self.concrete_or_none()
        if value is None:
            self.refuse(
                errors.TracerArrayConversionError,
                "NumPy",
                "Use the function of `purax.numpy` instead of NumPy's, or `purax.pure_callback` to call NumPy.",
            )
        return np.array(value, dtype) if copy else np.asarray(value, dtype)

    def _number(self, needed_for: str):
        value = self.concrete_or_none()
        if value is None:
            self.refuse(
                errors.ConcretizationTypeError,
                f"`{needed_for}`",
                "Keep it an array (`x.astype(...)`), or make the argument static: `jit(f, static_argnames=...)`.",
            )
        return value

    def concrete_or_none(self) -> Any:
        """The concrete value behind this tracer if the transformation has one (as `grad` has outside of `jit`)."""
        return None

    def item(self, *index):
        return np.asarray(self._number("item()")).item(*index)

    def tolist(self):
        return np.asarray(self._number("tolist()")).tolist()

    def tobytes(self, order="C"):
        return np.asarray(self._number("tobytes()")).tobytes(order)

    def __repr__(self) -> str:
        return f"Traced<{self.aval.str_short()}> with <{type(self).__name__}>"

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        value = self.concrete_or_none()
        return format(self.__repr__() if value is None else value, specification)

    def __reduce__(self):
        self.refuse(errors.ConcretizationTypeError, "pickling", "Return the value and pickle the result.")

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


class _Current(threading.local):
    """The current trace of this thread. The class attribute is the eager trace, where every thread starts.

    Attributes:
        trace: who gets the next operation.
        interprets: whether programs run equation by equation now, instead of being compiled as a whole.
    """

    trace: Trace = None  # type: ignore[assignment]
    interprets = False


current = _Current()


def set_eager_trace(trace: Trace) -> None:
    """Installs the trace that all operations end in."""
    _Current.trace = trace


def eager_trace() -> Trace:
    return _Current.trace


class interpreting:
    """`with interpreting(trace):` makes `trace` the current one, and programs run equation by equation."""

    __slots__ = ("_previous", "_trace")

    def __init__(self, trace: Trace):
        self._trace = trace

    def __enter__(self) -> Trace:
        self._previous = current.trace, current.interprets
        current.trace, current.interprets = self._trace, True
        return self._trace

    def __exit__(self, *error) -> None:
        current.trace, current.interprets = self._previous


class using:
    """`with using(trace):` makes `trace` the current one."""

    __slots__ = ("_previous", "_trace")

    def __init__(self, trace: Trace):
        self._trace = trace

    def __enter__(self) -> Trace:
        self._previous = current.trace
        current.trace = self._trace
        return self._trace

    def __exit__(self, *error) -> None:
        current.trace = self._previous


def check_usable(tracer: Tracer, user: Trace) -> None:
    """Raises if `tracer` belongs to a transformation that has ended, or that `user` does not run inside of."""
    trace: Trace | None = user
    while trace is not None and trace is not tracer.owner:
        trace = trace.parent
    if trace is not None and tracer.owner.alive:
        return
    if tracer.owner.alive:
        problem = (
            "was used where the transformation that made it does not reach: in a custom rule, or a function with "
            "custom rules, that captured it from outside.\n  Pass the value to that function as an argument."
        )
    else:
        problem = (
            "was used after the transformation that made it had ended. It was kept outside of the transformed "
            "function, in a global variable, an attribute, a list or a closure.\n"
            "  Return the value from the function instead of storing it."
        )
    raise source.with_location(errors.UnexpectedTracerError(f"{tracer.describe()} {problem}"))
