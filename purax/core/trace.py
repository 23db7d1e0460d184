"""Traces: who handles an operation. There is one current trace per thread, and `Primitive.bind` hands it every
operation.

A trace deals with the operations on its own tracers and passes all others on to its parent, down to the eager trace,
which runs them. The eager trace lives in `purax.execution.eager` and installs itself here with `set_eager_trace`.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from purax import errors
from purax.core import dtypes, source, ways_out
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.source import located
from purax.scopes import Assigned, scoped


class Trace:
    """Handles operations; the base of all interpreters.

    Attributes:
        parent: the trace that gets what is not this one's, or None for the eager trace and for staging.
        alive: False once the transformation has ended; its tracers must not be used any more.
        passes_on: whether it hands operations without tracers of its own to its parent as they are.
        records_tangents: whether its tracers are variables of a linear program.
        ends_eager: whether an operation on concrete arrays ends in the eager trace, unchanged.
        host_rules: of the class: who knows rules for operations on small arrays (`execution.host_rules` installs it).
        on_host: `host_rules` where it serves this trace, or None.
    """

    __slots__ = ("alive", "ends_eager", "on_host", "parent")
    name = "trace"
    passes_on = False
    records_tangents = False
    host_rules: Any = None
    ends_eager: bool

    def __init__(self, parent: Trace | None = None):
        self.parent = parent
        self.alive = True
        self.ends_eager = self.passes_on and parent is not None and parent.ends_eager
        self.on_host: Any = None

    def process(self, primitive, operands: tuple, params: dict[str, Any]):
        """Handles one operation and returns its result (a list if the primitive has several)."""
        raise NotImplementedError


class Tracer(Array):
    """A value inside a transformation: stands for an array wherever the user's function uses it."""

    __slots__ = ("__weakref__", "aval", "owner")
    aval: ShapedArray
    owner: Trace

    def concrete_or_none(self) -> Any:
        """The value behind this tracer if the transformation has one (as `grad` has outside of `jit`), for decisions.

        It may decide, as in `if x > 0:`, or be checked; what is computed from it has no derivative.
        """
        return None

    def settled(self, settle: Callable[[Any], Any]) -> Any:
        """This tracer with `settle` of the values behind it; itself if that changes none."""
        return self

    def constant_or_none(self) -> Any:
        """The value behind this tracer if it is known and has no derivative, so that using it loses nothing."""
        return None if dtypes.is_inexact(self.aval.dtype) else self.concrete_or_none()

    def concrete(self, needed_for: str) -> Any:
        """An error: Python code needs the value of this tracer."""
        self.refuse(
            errors.ConcretizationTypeError, needed_for, "Compute it outside of the transformed function."
        )

    def refuse(
        self,
        kind: type[Exception],
        needed_for: str,
        way_out: str,
        location: source.Location | None = None,
        may_be_caught: bool = False,
    ) -> NoReturn:
        """Raises `kind`: Python needs the value of this tracer, which is not known yet or would lose its derivative."""
        if self.concrete_or_none() is None:
            problem = "needs the value of an array that is not known while its function is being transformed:"
        else:
            problem = "would lose the derivative of"
            way_out += " To use the value without its derivative, take `purax.lax.stop_gradient(x)`."
        error = source.located(kind, f"{needed_for} {problem} {self.describe()}.\n  {way_out}", at=location)
        if current.resolve is not None:
            current.resolve(self, error)
        if current.refusals is not None and not may_be_caught:
            current.refusals.append(error)
        raise error

    def describe(self) -> str:
        return f"a traced {self.aval.str_short()} ({self.owner.name})"

    def __bool__(self):
        value = self.concrete_or_none()
        if value is not None:
            return bool(value)
        if self.aval.size != 1:
            raise located(
                ValueError,
                f"the truth value of an array with {self.aval.size} elements (shape {self.aval.shape}) is "
                "ambiguous; use x.any() or x.all()",
            )
        decided = None if current.decide is None else current.decide(self)
        return self.refuse_truth() if decided is None else decided

    def refuse_truth(self) -> NoReturn:
        """Raises, since it is not known whether this value is true."""
        self.refuse(
            errors.TracerBoolConversionError,
            "`if`, `while`, `and`, `or`, `not` or `bool()`",
            "Use `purax.numpy.where` or `purax.lax.cond`/`while_loop`, or mark the argument static: "
            "`jit(f, static_argnames=...)`.",
        )

    # -- ways out: the value as Python's or NumPy's. They give what has no derivative and is known, and refuse the rest.

    def _leave(self, kind: type[Exception], needed_for: str, way_out: str) -> Any:
        value = self.constant_or_none()
        if value is None:
            asker = ways_out.asker()
            if asker.function is not None and asker.function not in needed_for:
                needed_for = f"`{asker.function}()`"
            if asker.counterpart is not None:
                way_out = f"Write `{asker.counterpart}` instead."
            self.refuse(kind, needed_for, way_out, asker.location)
        return value

    def _number(self, needed_for: str) -> Any:
        return self._leave(
            errors.ConcretizationTypeError,
            f"`{needed_for}`",
            "Keep it an array (`x.astype(...)`), write it into an array by `a = a.at[i].set(x)`, or make the argument "
            "static: `jit(f, static_argnames=...)`.",
        )

    def _values(self, needed_for: str) -> np.ndarray:
        return np.asarray(
            self._leave(
                errors.TracerArrayConversionError,
                needed_for,
                "Use functions and arrays of `purax.numpy` instead of NumPy's, or `purax.pure_callback` to call NumPy.",
            )
        )

    def __int__(self):
        return int(self._number("int()"))

    def __float__(self):
        return float(self._number("float()"))

    def __complex__(self):
        return complex(self._number("complex()"))

    def __index__(self):
        return self._leave(
            errors.TracerIntegerConversionError,
            "a Python index, `range()` or a shape",
            "Make the argument static (`jit(f, static_argnames=...)`), or index a purax array instead of a "
            "Python sequence: `jnp.asarray(values)[i]`.",
        ).__index__()

    def __array__(self, dtype=None, copy=None):
        return np.array(self._values("NumPy"), dtype, copy=copy)

    def __buffer__(self, flags):
        return memoryview(self._values("a buffer"))

    def __dlpack__(self, **options):
        return self._values("DLPack").__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._values("DLPack").__dlpack_device__()

    def item(self, *index):
        return np.asarray(self._number("item()")).item(*index)

    def tolist(self):
        return np.asarray(self._number("tolist()")).tolist()

    def tobytes(self, order="C"):
        return np.asarray(self._number("tobytes()")).tobytes(order)

    def __format__(self, specification: str) -> str:
        if not specification:
            return self.__repr__()
        value = self._leave(
            errors.ConcretizationTypeError,
            f"the format code {specification!r}",
            f'Show it when it is known: `purax.debug.print("{{x:{specification}}}", x=x)`.',
        )
        return format(value, specification)

    def __repr__(self) -> str:
        return f"Traced<{self.aval.str_short()}> with <{type(self).__name__}>"

    __str__ = __repr__

    def __hash__(self):
        if self.concrete_or_none() is not None:
            return super().__hash__()  # raises: no array can be hashed
        self.refuse(
            errors.ConcretizationTypeError,
            f"unhashable type: {self.aval.str_short()} array. A key of a dict, a member of a set or a static argument",
            "Use an array that is indexed, or a list with `if` or `jnp.where` for each of its items.",
            may_be_caught=True,  # arrays cannot be hashed either, and who asks whether they can is told
        )

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
        decide: who decides about the truth of a traced value, None if that is an error.
        resolve: who may know a way to a value that an error says is not known, None if nobody does.
        refusals: the errors that were raised because a value is not known; None if nobody asks.
    """

    trace: Trace = None  # type: ignore[assignment]
    interprets = False
    decide: Callable[[Tracer], bool | None] | None = None
    resolve: Callable[[Tracer, Exception], None] | None = None
    refusals: list[Exception] | None = None


current = _Current()


def set_eager_trace(trace: Trace) -> None:
    """Installs the trace that all operations end in."""
    _Current.trace = trace


def eager_trace() -> Trace:
    return _Current.trace


@scoped
def interpreting(trace: Trace) -> Iterator[Trace]:
    """`with interpreting(trace):` makes `trace` the current one, and programs run equation by equation."""
    previous = current.trace, current.interprets
    current.trace, current.interprets = trace, True
    try:
        yield trace
    finally:
        current.trace, current.interprets = previous


@scoped
def compiling() -> Iterator[None]:
    """`with compiling():` programs are compiled as a whole, also while others run equation by equation."""
    previous = current.interprets
    current.interprets = False
    try:
        yield
    finally:
        current.interprets = previous


# `with using(trace):` makes `trace` the current one.
using = functools.partial(Assigned, current, "trace")


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
    raise located(errors.UnexpectedTracerError, f"{tracer.describe()} {problem}")
