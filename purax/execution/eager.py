"""Runs one primitive now: with NumPy for small arrays on the CPU, as a compiled program for all others.

What to do for given operand types is a `Plan`, found in one dictionary look-up. The host is used when the operands
are there already (or finished, in the CPU's own memory) and the work is small; both ways give the same types.
"""

from __future__ import annotations

import contextvars
import operator
import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from purax.config import config
from purax.core import phases
from purax.core.array import Array
from purax.core.avals import ShapedArray, aval_of
from purax.core.exact import exact_items
from purax.core.jaxpr_hash import portable_operation
from purax.core.memo import Memo, on_forget
from purax.core.primitive import Primitive, native
from purax.core.source import located
from purax.core.trace import Trace, Tracer, check_usable, set_eager_trace
from purax.execution.placement import MeshPlace, buffer_over, compile_over, place, spec_of_type
from purax.execution.transposed_views import of_transposes, orders_of, untransposed
from purax.interpreters.extended_dtypes import has_extended, run_physically
from purax.lowering import effort, jaxpr_to_stablehlo
from purax.sharding.shardings import in_memory, named_sharding
from purax.xla import capacity, client, compiler, program_records
from purax.xla.aligned_memory import SMALL, aligned_empty, is_aligned
from purax.xla.array import DeviceArray, PlacedArray, on_device
from purax.xla.execute import Executable

_MAX_PLANS = 20_000


class Plan:
    """How to run a primitive on operands of certain types.

    Attributes:
        host: the function of NumPy arrays that does it, or None if it is worth a compiled program.
        out_avals: the types of the results.
        on_views: the same for operands that a program would take copies of, where it beats the program but not both.
        waits: whether `host` waits for large operands that are still being computed.
        is_physical: whether some type is extended, so that the operation is one on what represents its values.
        executables: the compiled program for each device it was needed on.
    """

    __slots__ = (
        "executables",
        "host",
        "is_physical",
        "on_views",
        "out_aval",
        "out_avals",
        "takes_short_cut",
        "waits",
    )

    def __init__(self, primitive: Primitive, avals: tuple[ShapedArray, ...], params: dict[str, Any]):
        inferred = primitive.infer_checked(avals, params)
        self.out_avals = tuple(inferred) if primitive.multiple_results else (inferred,)
        self.out_aval = None if primitive.multiple_results else inferred
        self.is_physical = has_extended(avals) or has_extended(self.out_avals)
        self.host = self.on_views = None
        self.waits = False
        if not self.is_physical:
            work = primitive.host_work(*avals, **params)
            work = max(work, max((aval.size for aval in self.out_avals), default=0))
            if (
                self.out_avals
                and not any(aval.size for aval in self.out_avals)
                and config.host_size_limit >= 0
            ):
                self.host = _nothing(self.out_avals, primitive.multiple_results)
            elif primitive.host_is_cheap or work <= config.host_size_limit:
                self.host = primitive.host_function(avals, params)
            elif (cost := work * primitive.streaming_cost(*avals, **params)) > 0 and streaming_limit() > 0:
                streaming = into_aligned_memory(primitive.host_function(avals, params), self.out_avals[0])
                if cost <= streaming_limit():
                    self.host, self.waits = streaming, True
                elif client.home_device().platform == "cpu":
                    self.on_views = streaming
        self.takes_short_cut = self.host is not None and self.out_aval is not None
        self.executables: dict[Any, Any] = {}


def _nothing(avals: tuple[ShapedArray, ...], multiple_results: bool) -> Callable[..., Any]:
    """The function of results without elements: rules would go through axes, and these can be of any length."""
    if multiple_results:
        return lambda *_: [np.empty(aval.shape, aval.dtype) for aval in avals]
    (aval,) = avals
    return lambda *_: np.empty(aval.shape, aval.dtype)


def is_large_view(x: Any) -> bool:
    """Whether a program would take a copy of the operand, which NumPy reads in place: a large view in order of memory.

    A transposed one is not: XLA's copy goes through it in tiles, and is as fast as what NumPy would do with it.
    """
    if type(x) is not DeviceArray or x._buffer is not None or x._host is None:
        return False
    host = x._host
    if host.nbytes <= SMALL:
        return False
    if host.flags.c_contiguous:  # a part of an array, which begins where XLA does not read
        return isinstance(host.base, np.ndarray) and host.base.nbytes != host.nbytes and not is_aligned(host)
    steps = [abs(step) for step, size in zip(host.strides, host.shape, strict=True) if step and size > 1]
    return all(map(operator.ge, steps, steps[1:]))


def streaming_limit() -> int:
    """Up to how many elements NumPy, on one thread, beats a compiled program in operations as cheap as addition.

    Starting a program and its threads takes as long as NumPy takes for some 10⁵ elements, n₀. For the work itself p
    threads need 2/p of NumPy's time (two of them share what one can read and write), so they are even at
    n₀ / (1 − 2/p). The host has the result when the call returns, so there is an end even for two threads.
    """
    if config.host_size_limit <= 0 or client.home_device().platform != "cpu":
        return config.host_size_limit
    threads = config.cpu_threads or _cores
    return config.host_size_limit * (8 * threads // (threads - 2) if threads > 2 else 64)


_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def into_aligned_memory(function: Callable[..., Any], aval: ShapedArray) -> Callable[..., Any]:
    """A function of large arrays whose result, if it is as large, compiled programs can use in place."""
    takes_out = isinstance(function, np.ufunc) or getattr(function, "takes_out", False)
    if takes_out and aval.size * aval.dtype.itemsize > SMALL:
        return lambda *operands: function(*operands, out=aligned_empty(aval.shape, aval.dtype))
    return function


class _Quiet(threading.local):
    """A context of this thread in which NumPy's floating point warnings are off; the user's settings stay."""

    def __init__(self):
        self.context = contextvars.copy_context()
        self.run = self.context.run
        self.run(np.seterr, all="ignore")


_quiet = _Quiet()
_plans: Memo[tuple, Plan] = Memo(_MAX_PLANS)


class EagerTrace(Trace):
    """Where operations on concrete arrays end."""

    __slots__ = ()
    name = "eager"

    def process(self, primitive, operands, params):
        if primitive.runs_itself:
            for x in operands:
                if isinstance(x, Tracer):
                    check_usable(x, self)
            return primitive.run(*operands, **params)
        # A fast path for what most eager code does: one or two small arrays whose values are on the host.
        if len(operands) == 2:
            x, y = operands
            if type(x) is DeviceArray and type(y) is DeviceArray:
                plan = _plans.get(
                    (primitive, x.aval, y.aval, *exact_items(params))
                    if params
                    else (primitive, x.aval, y.aval)
                )
                if plan is not None and plan.takes_short_cut and x._host is not None and y._host is not None:
                    result = _quiet.run(plan.host, x._host, y._host)
                    return DeviceArray(
                        plan.out_aval, result if type(result) is np.ndarray else np.asarray(result)
                    )
        elif len(operands) == 1:
            x = operands[0]
            if type(x) is DeviceArray:
                plan = _plans.get(
                    (primitive, x.aval, *exact_items(params)) if params else (primitive, x.aval)
                )
                if plan is not None and plan.takes_short_cut and x._host is not None:
                    result = _quiet.run(plan.host, x._host)
                    return DeviceArray(
                        plan.out_aval, result if type(result) is np.ndarray else np.asarray(result)
                    )
        avals, values = [], []
        for x in operands:
            if type(x) is DeviceArray:
                avals.append(x.aval)
                values.append(x._host)
            elif type(x) is np.ndarray:
                avals.append(ShapedArray(x.shape, x.dtype))
                # Where the result is a view it must not be one of an array that the user may change.
                values.append(x.copy() if primitive.host_is_cheap else x)
            else:
                aval = aval_of(x)
                avals.append(aval)
                values.append(None if isinstance(x, Array) else np.asarray(x, aval.dtype))
        key = (primitive, *avals, *exact_items(params)) if params else (primitive, *avals)
        plan = _plans.get(key)
        if plan is None:
            plan = self._plan(key, primitive, tuple(avals), params, operands)
        if plan.host is not None:
            for value in values:
                if value is None:
                    values = peek_all(operands, values, plan.waits)
                    break
            if values is not None:
                result = _quiet.run(plan.host, *values)
                aval = plan.out_aval
                if aval is None:
                    return [
                        DeviceArray(a, np.asarray(r)) for a, r in zip(plan.out_avals, result, strict=True)
                    ]
                return DeviceArray(aval, result if type(result) is np.ndarray else np.asarray(result))
        if plan.on_views is not None and any(map(is_large_view, operands)):
            values = peek_all(operands, values, True)
            if values is not None:
                result = _quiet.run(plan.on_views, *values)
                return DeviceArray(plan.out_avals[0], np.asarray(result))
        if primitive.reads_transposes and (orders := orders_of(operands)) is not None:
            bases = list(map(untransposed, operands, orders))
            return self.process(of_transposes(primitive), bases, {**params, "orders": orders})
        if plan.is_physical:
            return run_physically(primitive, operands, params, plan.out_avals)
        return run_on_device(plan, primitive, operands, tuple(avals), params)

    def _plan(self, key, primitive, avals, params, operands) -> Plan:
        for x in operands:
            if isinstance(x, Tracer):
                check_usable(x, self)
        if config.no_execution:
            raise located(RuntimeError, f"`{primitive}` would run, but the no_execution config option is set")
        plan = Plan(primitive, avals, params)
        _plans[key] = plan
        return plan


def peek_all(operands, values, waits: bool) -> list[np.ndarray] | None:
    """`values` with the missing ones read from buffers in host memory, or None if one is elsewhere or, unless
    `waits`, large and not finished.
    """
    found = []
    for x, value in zip(operands, values, strict=True):
        if value is None:
            if isinstance(x, DeviceArray):
                value = x.peek_waiting() if waits else x.peek()
            if value is None:
                return None
        found.append(value)
    return found


def run_on_device(plan: Plan, primitive: Primitive, operands, avals, params):
    """Runs the operation as a compiled program on the device of its operands."""
    device, placement, committed = place(operands, primitive.name)
    if type(device) is MeshPlace:
        return run_over_mesh(plan, primitive, operands, avals, params, device)
    executable = plan.executables.get(device)
    if executable is None:
        executable = _recorded_or_compiled(plan, primitive, avals, params, device)
        plan.executables[device] = executable
        phases.finish(primitive.name)
    buffers = executable(
        [as_array(x, aval).buffer_on(device) for x, aval in zip(operands, avals, strict=True)]
    )
    results = [on_device(a, b, placement, committed) for a, b in zip(plan.out_avals, buffers, strict=True)]
    return results if primitive.multiple_results else results[0]


def _recorded_or_compiled(plan: Plan, primitive: Primitive, avals, params, device: Any) -> Executable:
    with phases.phase("hashing"):
        portable = portable_operation(primitive, avals, params)
        record_as = program_records.make_key(portable, primitive.name, (device,), (), ())
    record = program_records.find(record_as)
    if record is not None:
        capacity.refuse_what_does_not_fit(primitive.name, plan.out_avals, record.stored_avals, (device,))
        executable = compiler.load_recorded(record, primitive.name, plan.out_avals, device)
        if executable is not None:
            return executable
    with phases.phase("lowering"):
        module = jaxpr_to_stablehlo.lower_primitive(primitive, avals, params, client.platform_of(device))
        capacity.refuse_what_does_not_fit(primitive.name, plan.out_avals, module.stored, (device,))
        text = module.text(primitive.name)
    return effort.compiled(
        lambda options: compiler.compile_program(
            text,
            plan.out_avals,
            (device,),
            options=options,
            callbacks=module.callbacks,
            effects="unordered" if module.callbacks else "",
            record_as=None if module.targets or module.inspections else record_as,
            stored=module.stored,
        ),
        (),
        lambda: effort.of_sizes(map(effort.size_of, (*avals, *plan.out_avals)), module.platform),
    )


def run_over_mesh(plan: Plan, primitive: Primitive, operands, avals, params, where: MeshPlace):
    """Runs the operation as a compiled program on the devices of a mesh that its operands are sharded over."""
    mesh = where.mesh
    executable = plan.executables.get(where)
    if executable is None:

        def lower(out_specs):
            arguments = (primitive, avals, params, where.platform, mesh, where.specs, out_specs)
            return jaxpr_to_stablehlo.lower_primitive(*arguments), primitive.name

        specs = [spec_of_type(aval, mesh) for aval in plan.out_avals]
        executable = plan.executables[where] = compile_over(mesh, plan.out_avals, specs, lower)
    buffers = executable(
        [
            buffer_over(as_array(x, aval), in_memory(named_sharding(mesh, spec), aval.memory_space))
            for x, aval, spec in zip(operands, avals, where.specs, strict=True)
        ]
    )
    results = [
        PlacedArray(a, b, s, True)
        for a, b, s in zip(plan.out_avals, buffers, executable.out_shardings, strict=True)
    ]
    return results if primitive.multiple_results else results[0]


def as_array(x: Any, aval: ShapedArray) -> DeviceArray:
    """An operand as an array. NumPy arrays of the user are copied, since they may change later."""
    if isinstance(x, DeviceArray):
        return x
    if isinstance(x, Tracer):
        check_usable(x, eager)
    return DeviceArray(aval, np.array(x, aval.dtype))


def plan_for(primitive: Primitive, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Plan:
    """How an operation on operands of certain types is run."""
    key = (primitive, *avals, *exact_items(params))
    return _plans.get(key) or eager._plan(key, primitive, avals, params, ())


def short_cut(primitive: Primitive, avals: tuple[ShapedArray, ...], params: dict[str, Any]) -> Any:
    """How `Primitive.bind` may itself run an operation that was planned: its function and the type of its result.

    None: not at all, if the types are these. NotImplemented: nothing is planned for the operation.
    """
    plan = _plans.get((primitive, *avals, *exact_items(params)))
    if plan is None:
        return NotImplemented
    return (plan.host, plan.out_aval) if plan.takes_short_cut else None


def clear_plans() -> None:
    _plans.clear()
    _short_cuts.clear()


for flag in ("host_products", "host_size_limit", "native_kernels"):  # what plans are made by
    config.on_change(flag, lambda _: clear_plans())
on_forget.append(clear_plans)


eager = EagerTrace(None)
eager.ends_eager = True
set_eager_trace(eager)
_short_cuts: dict[Any, Any] = {}
if native is not None:
    _short_cuts = native.set_eager(Trace, _quiet, short_cut, np.asarray, DeviceArray, np.ndarray)
