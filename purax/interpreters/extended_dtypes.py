"""Programs on arrays of extended dtypes, such as typed random keys, as programs on the arrays that represent them.

Tangents of integers, of dtype `float0`, have no content; inside of programs booleans represent them.

An element of an extended dtype is a small vector, so an array (…) of them is physically an array (…, n). What an
operation does to the elements of an array it does to the vectors if these are a batch axis: the `batch` rule of a
primitive gives its physical form. A primitive may have a method `physical(operands, **params)` of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray, aval_of
from purax.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, inner_jaxprs
from purax.core.primitive import Primitive
from purax.core.source import located, names
from purax.interpreters.staging import stage
from purax.primitives.elementwise.logic import eq_p, ne_p
from purax.primitives.reductions.reduction import reduce_and, reduce_or
from purax.primitives.shape.broadcasting import move_axis
from purax.xla.array import DeviceArray, from_numpy

_BOOL = np.dtype(np.bool_)
# Elements are equal if all of their parts are, and differ if any part does.
_COMPARISONS: dict[Primitive, Any] = {eq_p: reduce_and, ne_p: reduce_or}


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """The type of the array that represents one of type `aval`."""
    dtype = aval.dtype
    if dtype == dtypes.float0:
        return aval.with_dtype(_BOOL)
    if not dtypes.is_extended(dtype):
        return aval
    return ShapedArray((*aval.shape, *dtype.element_shape), dtype.physical_dtype)


def has_extended(avals: Sequence[ShapedArray]) -> bool:
    return any(dtypes.is_extended(aval.dtype) for aval in avals)


def is_represented(avals: Sequence[ShapedArray]) -> bool:
    """Whether one of some values is another array inside of programs."""
    return any(dtypes.is_extended(aval.dtype) or aval.dtype == dtypes.float0 for aval in avals)


def physical(closed: ClosedJaxpr) -> ClosedJaxpr:
    """`closed` on the arrays that represent its values; itself if they are these arrays."""
    if "physical" not in closed.derived:
        closed.derived["physical"] = _physical(closed) if mentions_extended(closed) else closed
    return closed.derived["physical"]


def mentions_extended(closed: ClosedJaxpr) -> bool:
    """Whether some value in a program, or in a program inside of it, is represented by another array."""
    if "mentions_extended" not in closed.derived:
        jaxpr = closed.jaxpr
        closed.derived["mentions_extended"] = is_represented(
            [v.aval for v in (*jaxpr.constvars, *jaxpr.invars, *jaxpr.outvars)]
        ) or any(_is_extended_equation(eqn) for eqn in jaxpr.eqns)
    return closed.derived["mentions_extended"]


def _is_extended_equation(eqn: JaxprEqn) -> bool:
    return is_represented([v.aval for v in (*eqn.invars, *eqn.outvars)]) or any(
        map(mentions_extended, inner_jaxprs(eqn.params))
    )


def _physical(closed: ClosedJaxpr) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    avals = [physical_aval(v.aval) for v in (*jaxpr.constvars, *jaxpr.invars)]
    whole = stage(lambda *values: _run(jaxpr, values), avals, jaxpr.name)
    made = with_literals(whole)
    count = len(jaxpr.constvars)
    made = made.replace(constvars=made.invars[:count], invars=made.invars[count:])
    return ClosedJaxpr(made, [as_physical(x) for x in closed.consts])


def with_literals(closed: ClosedJaxpr) -> Jaxpr:
    """A jaxpr without constants: their values are written into the program."""
    jaxpr = closed.jaxpr
    if not closed.consts:
        return jaxpr
    values = zip(jaxpr.constvars, closed.consts, strict=True)
    literals = {v: Literal(np.asarray(x), v.aval) for v, x in values}
    known = lambda atoms: [literals.get(v, v) if type(v) is not Literal else v for v in atoms]  # noqa: E731
    eqns = [
        JaxprEqn(known(eqn.invars), eqn.outvars, eqn.primitive, eqn.params, eqn.source, eqn.scope)
        for eqn in jaxpr.eqns
    ]
    return jaxpr.replace(constvars=[], outvars=known(jaxpr.outvars), eqns=eqns)


def _run(jaxpr: Jaxpr, values: Sequence[Any]) -> list[Any]:
    """Runs a jaxpr, through the current trace, on the physical forms of its constants and arguments."""
    known: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), values, strict=True))
    read = lambda v: as_physical(v.array) if type(v) is Literal else known[v]  # noqa: E731
    outer_location, outer_scope = names.location, names.scope
    try:
        for eqn in jaxpr.eqns:
            names.location, names.scope = eqn.source, eqn.scope or outer_scope
            operands = [read(v) for v in eqn.invars]
            if _is_extended_equation(eqn):
                results = bind_physical(eqn.primitive, operands, [v.aval for v in eqn.invars], eqn.params)
            else:
                results = eqn.primitive.bind(*operands, **eqn.params)
                results = results if eqn.primitive.multiple_results else [results]
            known.update(zip(eqn.outvars, results, strict=True))
    finally:
        names.location, names.scope = outer_location, outer_scope
    return [read(v) for v in jaxpr.outvars]


def bind_physical(
    primitive: Primitive, operands: Sequence[Any], avals: Sequence[ShapedArray], params: dict[str, Any]
) -> list[Any]:
    """Applies a primitive to operands of types `avals`, given physically; returns the physical results."""
    own = getattr(primitive, "physical", None)
    if own is not None:
        results = own(*operands, **params)
        return list(results) if primitive.multiple_results else [results]
    if any(True for _ in inner_jaxprs(params)):
        results = primitive.bind(*operands, **{name: _physical_parameter(x) for name, x in params.items()})
        return list(results) if primitive.multiple_results else [results]
    if not has_extended(avals):  # tangents of integers, or of none of the operands
        results = primitive.bind(*operands, **params)
        return list(results) if primitive.multiple_results else [results]
    combine = _COMPARISONS.get(primitive)
    if combine is None and not primitive.moves_elements:
        types = ", ".join(aval.str_short() for aval in avals)
        raise located(TypeError, f"{primitive.name} does not take arrays of extended dtypes; got {types}")
    axes = [aval.ndim if dtypes.is_extended(aval.dtype) else None for aval in avals]
    results, out_axes = primitive.batch(operands, axes, **params)
    if not primitive.multiple_results:
        results, out_axes = [results], [out_axes]
    last = [
        x if axis is None else move_axis(x, axis, aval_of(x).ndim - 1)
        for x, axis in zip(results, out_axes, strict=True)
    ]
    return last if combine is None else [combine(x, (aval_of(x).ndim - 1,)) for x in last]


def _physical_parameter(value: Any) -> Any:
    if isinstance(value, ClosedJaxpr):
        return physical(value)
    return tuple(map(_physical_parameter, value)) if type(value) is tuple else value


# --- arrays


class ExtendedArray(DeviceArray):
    """A concrete array of an extended dtype.

    Arguments:
        aval: its type.
        physical: the array that represents it.

    It is not a plain `DeviceArray`, so none of the fast paths for arrays of numbers is taken with it.
    """

    __slots__ = ("physical",)

    def __init__(self, aval: ShapedArray, physical: DeviceArray):
        self.aval = aval
        self.physical = physical

    _host = property(lambda self: self.physical._host)
    _buffer = property(lambda self: self.physical._buffer)
    _placement = property(lambda self: self.physical._placement)
    committed = property(lambda self: self.physical.committed)
    sharding = property(lambda self: self.physical.sharding)

    def peek(self) -> np.ndarray | None:
        return self.physical.peek()

    def host_value(self) -> np.ndarray:
        return self.physical.host_value()

    def buffer_on(self, device: Any) -> Any:
        return self.physical.buffer_on(device)

    def private_buffer_on(self, device: Any) -> Any:
        return self.physical.private_buffer_on(device)

    def block_until_ready(self) -> ExtendedArray:
        self.physical.block_until_ready()
        return self

    def delete(self) -> None:
        self.physical.delete()

    def copy(self) -> ExtendedArray:
        return ExtendedArray(self.aval, self.physical.copy())

    def __reduce__(self):
        return ExtendedArray, (self.aval, self.physical)

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"<deleted {self.aval.str_short()} array>"
        return f"Array({self.aval.shape}, dtype={self.aval.dtype.name}) overlaying:\n{self.host_value()}"

    __str__ = __repr__

    def __format__(self, specification: str) -> str:
        return format(repr(self), specification)

    def _refuse(self, needed_for: str) -> NoReturn:
        raise TypeError(
            f"{needed_for} needs numbers, and {self.aval.str_short()} holds keys; their words are "
            "purax.random.key_data(x)"
        )

    def __array__(self, dtype=None, copy=None):
        self._refuse("NumPy")

    def __buffer__(self, flags):
        self._refuse("a buffer")

    def __dlpack__(self, **options):
        self._refuse("DLPack")

    def __bool__(self):
        self._refuse("bool()")

    def __int__(self):
        self._refuse("int()")

    def __float__(self):
        self._refuse("float()")

    def __complex__(self):
        self._refuse("complex()")

    def __index__(self):
        self._refuse("an index")

    def item(self, *index):
        self._refuse("item()")

    def tolist(self):
        self._refuse("tolist()")

    def tobytes(self, order="C"):
        self._refuse("tobytes()")


def as_physical(x: Any) -> Any:
    """The array that represents a concrete one of an extended dtype, or a tangent of integers; others as they are."""
    if type(x) is ExtendedArray:
        return x.physical
    if getattr(x, "dtype", None) == dtypes.float0:  # numbers of Python have none
        return from_numpy(np.zeros(x.shape, _BOOL))
    return x


def as_logical(x: DeviceArray, aval: ShapedArray) -> DeviceArray:
    """The array of type `aval` that `x` represents."""
    if aval.dtype == dtypes.float0:
        return from_numpy(np.zeros(aval.shape, dtypes.float0))
    return ExtendedArray(aval, x) if dtypes.is_extended(aval.dtype) else x


def run_physically(
    primitive: Primitive, operands: Sequence[Any], params: dict[str, Any], out_avals: Sequence[ShapedArray]
) -> Any:
    """Runs a primitive now, on concrete arrays some of which, or of its results, have an extended dtype."""
    avals = [aval_of(x) for x in operands]
    results = bind_physical(primitive, [as_physical(x) for x in operands], avals, params)
    arrays = [as_logical(x, aval) for x, aval in zip(results, out_avals, strict=True)]
    return arrays if primitive.multiple_results else arrays[0]
