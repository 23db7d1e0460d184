"""Jaxprs: programs as data. A jaxpr is a list of equations over variables, each applying one primitive.

    { lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = mul b 2.0:f32[] in (c,) }

Every variable is assigned once, before it is used; `jaxpr_check` is the executable form of that specification,
and `jaxpr_format` gives the classes their printed form.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from purax.core.avals import ShapedArray, Zero
from purax.core.primitive import Primitive
from purax.core.source import Location, names
from purax.core.trace import current

counter = itertools.count()


class Var:
    """A variable of a program. Two variables are the same only if they are the same object."""

    __slots__ = ("aval", "count")

    def __init__(self, aval: ShapedArray):
        self.aval = aval
        self.count = next(counter)

    def __repr__(self) -> str:
        return f"Var(id={self.count}):{self.aval.str_short()}"


class DropVar(Var):
    """A result that nothing uses, printed as `_`."""

    __slots__ = ()


@final
class Literal:
    """A scalar constant written into a program."""

    __slots__ = ("aval", "made", "val")

    def __init__(self, val: Any, aval: ShapedArray):
        self.val = val
        self.aval = aval
        self.made: Any = None

    @property
    def array(self) -> Any:
        """The constant as an array of the type that the program says; it is a literal of other programs, too."""
        return as_array(self)

    def __repr__(self) -> str:
        value = (
            self.val.item()
            if isinstance(self.val, (np.ndarray, np.generic)) and self.val.ndim == 0
            else self.val
        )
        return f"{value}:{self.aval.str_short()}"


Atom = Var | Literal


def _without_arrays(literal: Literal) -> Any:
    return literal.val


as_array: Callable[[Literal], Any] = _without_arrays


def set_arrays(function: Callable[[Literal], Any]) -> None:
    """Installs who makes the arrays of literals, which this layer does not know."""
    global as_array
    as_array = function


class JaxprEqn:
    """One equation: `outvars = primitive[params] invars`, written at `source` by the user."""

    __slots__ = ("invars", "outvars", "params", "primitive", "scope", "source")

    def __init__(
        self,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        primitive: Primitive,
        params: dict[str, Any],
        source: Location | None = None,
        scope: str = "",
    ):
        self.invars = invars
        self.outvars = outvars
        self.primitive = primitive
        self.params = params
        self.source = source
        self.scope = scope

    @property
    def effects(self) -> frozenset:
        return self.primitive.effects(**self.params)

    def replace(self, **changes) -> JaxprEqn:
        fields = {name: getattr(self, name) for name in self.__slots__}
        return JaxprEqn(**{**fields, **changes})


class DebugInfo(NamedTuple):
    """Where a program comes from.

    Attributes:
        traced_for: the transformation that recorded it.
        func_src_info: the function, with its place if that is known.
        arg_names: a name for each argument.
        result_paths: a path for each result.
    """

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None = None
    result_paths: tuple[str, ...] | None = None

    @property
    def func_name(self) -> str:
        """The name of the function, without its place."""
        return self.func_src_info.split(" ")[0]

    @property
    def func_filename(self) -> str | None:
        """The file of the function, if it is known."""
        _, found, place = self.func_src_info.partition(" at ")
        return place.rpartition(":")[0] if found else None

    @property
    def func_lineno(self) -> int | None:
        """The line of the function, if it is known."""
        _, found, place = self.func_src_info.partition(" at ")
        return int(place.rpartition(":")[2]) if found else None


class Jaxpr:
    """A program: constants and arguments in, results out.

    Attributes:
        constvars: variables bound to captured arrays.
        invars: the arguments.
        outvars: the results, variables or literals.
        eqns: the equations, in an order in which they can run.
        name: the name of the Python function it came from.
    """

    __slots__ = ("_effects", "constvars", "eqns", "invars", "name", "outvars")

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[JaxprEqn],
        effects: Any = None,
        debug_info: DebugInfo | None = None,
        is_high: bool = False,
        *,
        name: str = "",
    ):
        # Effects follow from the equations, and of the debug info the name of the function is kept.
        if debug_info is not None and not name:
            name = debug_info.func_name
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.eqns = list(eqns)
        self.name = name
        self._effects: frozenset | None = None

    @property
    def effects(self) -> frozenset:
        if self._effects is None:
            self._effects = frozenset().union(*(eqn.effects for eqn in self.eqns))
        return self._effects

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.outvars]

    @property
    def debug_info(self) -> DebugInfo:
        """The function that the program came from, and names of its arguments and results."""
        arguments = tuple(f"args[{i}]" for i in range(len(self.invars)))
        results = tuple(f"result[{i}]" for i in range(len(self.outvars)))
        return DebugInfo("jit", self.name or "<unknown>", arguments, results)

    @property
    def is_high(self) -> bool:
        """Whether the program works on values of user-defined types, which traces open instead."""
        return False

    def replace(self, **changes) -> Jaxpr:
        fields = {name: getattr(self, name) for name in ("constvars", "invars", "outvars", "eqns", "name")}
        fields.update(changes)
        info = fields.pop("debug_info", None)  # of which the name is kept; effects follow from the equations
        fields.pop("effects", None)
        fields.pop("is_high", None)
        if info is not None and "name" not in changes:
            fields["name"] = info.func_name
        return Jaxpr(**fields)


class ClosedJaxpr:
    """A jaxpr together with the values of its constants.

    `derived` remembers the programs made from this one (its derivative, its batched form, its executable), so that a
    transformed function is transformed once.
    """

    __slots__ = ("__weakref__", "consts", "derived", "jaxpr")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()):
        if len(jaxpr.constvars) != len(consts):
            raise ValueError(f"{len(consts)} constants for {len(jaxpr.constvars)} constant variables")
        self.jaxpr = jaxpr
        self.consts = list(consts)
        self.derived: dict[Any, Any] = {}

    in_avals = property(lambda self: self.jaxpr.in_avals)
    out_avals = property(lambda self: self.jaxpr.out_avals)
    literals = property(lambda self: self.consts)
    eqns = property(lambda self: self.jaxpr.eqns)
    effects = property(lambda self: self.jaxpr.effects)
    invars = property(lambda self: self.jaxpr.invars)
    outvars = property(lambda self: self.jaxpr.outvars)
    constvars = property(lambda self: self.jaxpr.constvars)
    debug_info = property(lambda self: self.jaxpr.debug_info)
    is_high = property(lambda self: self.jaxpr.is_high)

    def map_jaxpr(self, function: Any) -> ClosedJaxpr:
        """The program with its jaxpr replaced by what `function` makes of it."""
        return ClosedJaxpr(function(self.jaxpr), self.consts)

    def replace(self, *, jaxpr: Jaxpr | None = None, consts: Sequence[Any] | None = None) -> ClosedJaxpr:
        return ClosedJaxpr(self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts)

    def __reduce__(self) -> Any:
        return ClosedJaxpr, (self.jaxpr, self.consts)

    def __repr__(self) -> str:
        return repr(self.jaxpr)


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Runs a jaxpr equation by equation, through the current trace.

    Args:
        jaxpr: the program.
        consts: values of its constant variables.
        *args: values of its arguments.

    Returns:
        The list of results.
    """
    if len(args) != len(jaxpr.invars):
        raise TypeError(f"the jaxpr takes {len(jaxpr.invars)} arguments, got {len(args)}")
    values: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))
    outer_location, outer_scope = names.location, names.scope
    try:
        for eqn in jaxpr.eqns:
            names.location = eqn.source
            names.scope = eqn.scope or outer_scope
            operands = tuple([values[v] if type(v) is not Literal else v.array for v in eqn.invars])
            result = current.trace.process(eqn.primitive, operands, eqn.params)
            if eqn.primitive.multiple_results:
                values.update(zip(eqn.outvars, result, strict=True))
            else:
                values[eqn.outvars[0]] = result
    finally:
        names.location, names.scope = outer_location, outer_scope
    return [values[v] if type(v) is not Literal else v.array for v in jaxpr.outvars]


def jaxpr_as_fun(closed: ClosedJaxpr):
    """The Python function that runs `closed`."""
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args)


def dependent_results(jaxpr: Jaxpr, flags: Sequence[bool]) -> list[bool]:
    """Which results depend on the arguments with a flag."""
    touched = {v for v, flag in zip(jaxpr.invars, flags, strict=True) if flag}
    for eqn in jaxpr.eqns:
        operands = [type(v) is not Literal and v in touched for v in eqn.invars]
        if any(operands):
            results = eqn.primitive.depends(operands, **eqn.params)
            touched.update(v for i, v in enumerate(eqn.outvars) if results is None or results[i])
    return [type(v) is not Literal and v in touched for v in jaxpr.outvars]


def inner_jaxprs(params: dict[str, Any]) -> Iterable[ClosedJaxpr]:
    """The programs inside an equation's parameters (bodies of loops, branches, calls)."""
    for value in params.values():
        if isinstance(value, ClosedJaxpr):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, ClosedJaxpr))


__all__ = [
    "Atom",
    "ClosedJaxpr",
    "DropVar",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "Var",
    "Zero",
    "dependent_results",
    "eval_jaxpr",
    "inner_jaxprs",
    "jaxpr_as_fun",
]
