"""`jax.core` and `jax.extend.core`: the language of programs, and making primitives."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from purax.api.compile_time import ensure_compile_time_eval
from purax.compat.equation_source import place_of
from purax.compat.extension import Primitive
from purax.compat.modules.xla import pytype_aval_mappings
from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray, Zero, tangent_aval
from purax.core.avals import aval_of as get_aval
from purax.core.dimensions import is_symbolic_shape
from purax.core.jaxpr import (
    Atom,
    ClosedJaxpr,
    DebugInfo,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    inner_jaxprs,
    jaxpr_as_fun,
)
from purax.core.jaxpr import eval_jaxpr as _eval_jaxpr
from purax.core.jaxpr_check import check_jaxpr as _check_closed
from purax.core.trace import Trace, Tracer, current, eager_trace, using
from purax.errors import (
    ConcretizationTypeError,
    InconclusiveDimensionOperation,
    JaxprTypeError,
    TracerArrayConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)
from purax.interpreters.named_axes import named_axis_sizes
from purax.interpreters.staging import StagingTrace
from purax.interpreters.vmap import BatchTrace
from purax.xla.array import DeviceArray

AbstractValue = ShapedArray
ConcreteArray = ShapedArray
UnshapedArray = ShapedArray
Value = Any
ParamDict = dict[str, Any]
Effect = object
Effects = frozenset
no_effects: frozenset = frozenset()
array_types = (np.ndarray, np.generic, Array)
Shape = tuple
TraceTag = object
AxisName = Any
set_current_trace = using
OutputType = tuple  # the types of the results of a program
no_axis_name = object()

__all__ = [
    "AbstractValue",
    "Atom",
    "AxisName",
    "ClosedJaxpr",
    "ConcreteArray",
    "ConcretizationTypeError",
    "DebugInfo",
    "DropVar",
    "Effect",
    "Effects",
    "InconclusiveDimensionOperation",
    "Jaxpr",
    "JaxprEqn",
    "JaxprTypeError",
    "Literal",
    "OutputType",
    "ParamDict",
    "Primitive",
    "Shape",
    "ShapedArray",
    "Trace",
    "TraceTag",
    "Tracer",
    "TracerArrayConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
    "UnshapedArray",
    "Value",
    "Var",
    "Zero",
    "array_types",
    "axis_frame",
    "call_impl",
    "check_jaxpr",
    "concrete_or_error",
    "ensure_compile_time_eval",
    "eval_context",
    "eval_jaxpr",
    "find_top_trace",
    "gensym",
    "get_aval",
    "get_opaque_trace_state",
    "is_concrete",
    "is_constant_dim",
    "is_constant_shape",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "mapped_aval",
    "max_dim",
    "min_dim",
    "new_jaxpr_eqn",
    "no_axis_name",
    "no_effects",
    "nonempty_axis_env_DO_NOT_USE",
    "primal_dtype_to_tangent_dtype",
    "pytype_aval_mappings",
    "raise_to_shaped",
    "set_current_trace",
    "subjaxprs",
    "take_current_trace",
    "to_concrete_value",
    "trace_ctx",
    "trace_state_clean",
    "unmapped_aval",
    "unsafe_am_i_under_a_jit_DO_NOT_USE",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE",
    "unsafe_get_axis_names_DO_NOT_USE",
    "valid_jaxtype",
]

eval_context = ensure_compile_time_eval


def max_dim(d1: int, d2: int) -> int:
    """The larger of two sizes of axes."""
    return max(d1, d2)


def min_dim(d1: int, d2: int) -> int:
    """The smaller of two sizes of axes."""
    return min(d1, d2)


class TraceContext:
    """Which trace is current, as jax's `trace_ctx`."""

    @property
    def trace(self) -> Trace:
        return current.trace

    def is_top_level(self) -> bool:
        return trace_state_clean()


trace_ctx = TraceContext()


def trace_state_clean() -> bool:
    """Whether no transformation is under way in this thread."""
    return current.trace is eager_trace()


def take_current_trace() -> Any:
    """A context that gives the current trace."""
    return using(current.trace)


def find_top_trace(_: Any) -> Trace:
    """The trace that handles operations now."""
    return current.trace


class OpaqueTraceState:
    """The transformations under way, to be compared."""

    def __init__(self, trace: Trace):
        self._trace = trace

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and other._trace is self._trace

    def __hash__(self) -> int:
        return hash(id(self._trace))


def get_opaque_trace_state(convention: str = "flax") -> OpaqueTraceState:
    """What tells two moments apart that have different transformations under way."""
    return OpaqueTraceState(current.trace)


def _traces() -> Iterator[Trace]:
    trace: Trace | None = current.trace
    while trace is not None:
        yield trace
        trace = trace.parent


def unsafe_am_i_under_a_jit_DO_NOT_USE() -> bool:
    """Whether a function is being recorded as a program."""
    return any(isinstance(trace, StagingTrace) for trace in _traces())


def unsafe_am_i_under_a_vmap_DO_NOT_USE() -> bool:
    """Whether a function is being vectorized."""
    return any(isinstance(trace, BatchTrace) for trace in _traces())


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The names of the axes in scope."""
    return list(named_axis_sizes())


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether a named axis is in scope."""
    return bool(named_axis_sizes())


def axis_frame(name: Any) -> int:
    """The size of a named axis in scope."""
    sizes = named_axis_sizes()
    if name not in sizes:
        raise NameError(f"unbound axis name: {name}. The axes in scope are {list(sizes)}")
    return sizes[name]


def is_concrete(x: Any) -> bool:
    """Whether the value of an array is known now."""
    return to_concrete_value(x) is not None


def to_concrete_value(x: Any) -> Any:
    """The concrete value of an array, None if it is not known now."""
    return x.concrete_or_none() if isinstance(x, Tracer) else x


def concrete_or_error(force: Callable | None, val: Any, context: str = "") -> Any:
    """The concrete value, converted by `force`; an error that says what it was for if it is not known now."""
    convert = force or (lambda x: x)
    if isinstance(val, Tracer):
        return convert(val.concrete(context or "this"))
    return convert(val)


def valid_jaxtype(x: Any) -> bool:
    """Whether a value is an array or a number."""
    try:
        get_aval(x)
    except TypeError:
        return False
    return True


def raise_to_shaped(aval: ShapedArray, weak_type: bool | None = None) -> ShapedArray:
    """The type itself: purax has one kind."""
    return aval if weak_type is None else aval.update(weak_type=weak_type)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of tangents of values of a dtype."""
    return tangent_aval(ShapedArray((), primal_dtype)).dtype


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one element along an axis."""
    return aval if axis is None else aval.update(shape=aval.shape[:axis] + aval.shape[axis + 1 :])


def unmapped_aval(
    size: int, axis: int | None, aval: ShapedArray, explicit_mesh_axis: Any = None
) -> ShapedArray:
    """The type with an axis more."""
    return aval if axis is None else aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def gensym() -> Callable[[ShapedArray], Var]:
    """A function that makes new variables."""
    return Var


def new_jaxpr_eqn(
    invars: Any,
    outvars: Any,
    primitive: Any,
    params: dict[str, Any],
    effects: Any = (),
    source_info: Any = None,
    ctx: Any = None,
) -> JaxprEqn:
    """An equation."""
    return JaxprEqn(list(invars), list(outvars), primitive, params, *place_of(source_info))


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The programs among the parameters of an equation."""
    for closed in inner_jaxprs(params):
        yield closed.jaxpr


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The programs inside of a program."""
    return itertools.chain.from_iterable(jaxprs_in_params(eqn.params) for eqn in jaxpr.eqns)


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Raises `JaxprTypeError` where a program breaks a law of the language."""
    if isinstance(jaxpr, ClosedJaxpr):
        _check_closed(jaxpr)
    else:
        _check_closed(ClosedJaxpr(jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])))


def eval_jaxpr(jaxpr: Jaxpr, consts: Any, *args: Any, propagate_source_info: bool = True) -> list[Any]:
    """Runs a program equation by equation.

    Args:
        jaxpr: the program.
        consts: the values of its constants.
        args: its arguments.
        propagate_source_info: accepted, without effect: what is recorded has the lines of the equations.
    """
    return _eval_jaxpr(jaxpr, consts, *args)


def call_impl(f: Any, *args: Any, **params: Any) -> Any:
    """Calls a wrapped function."""
    return f.call_wrapped(*args)


def is_extended_dtype(dtype: Any) -> bool:
    """Whether elements of a dtype are not numbers, as random keys are not."""
    return dtypes.issubdtype(dtype, dtypes.extended)


ArrayImpl = DeviceArray


def is_constant_shape(shape: Any) -> bool:
    """Whether all sizes of a shape are numbers, and none is symbolic."""
    return not is_symbolic_shape(shape)


def is_constant_dim(dim: Any) -> bool:
    """Whether a size is a number, and not symbolic."""
    return is_constant_shape((dim,))
