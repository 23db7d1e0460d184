"""Runs one primitive now: with NumPy for small arrays on the CPU, as a compiled program for all others.

What to do for given operand types is a `Plan`, found in one dictionary look-up. The host is used when the operands
are there already (or finished, in the CPU's own memory) and the work is small; both ways give the same types.
"""

from __future__ import annotations

import contextvars
import threading
from typing import Any

import numpy as np

from purax.config import config
from purax.core import source
from purax.core.avals import ShapedArray, aval_of
from purax.core.primitive import Primitive
from purax.core.trace import Trace, Tracer, check_usable, set_eager_trace
from purax.transforms import lowering
from purax.xla import client, compiler
from purax.xla.array import DeviceArray
from purax.xla.sharding import SingleDeviceSharding

_MAX_PLANS = 20_000


class Plan:
    """How to run a primitive on operands of certain types."""

    __slots__ = ("executables", "on_host", "out_avals")

    def __init__(self, primitive: Primitive, avals: tuple[ShapedArray, ...], params: dict[str, Any]):
        inferred = primitive.infer_checked(avals, params)
        self.out_avals = tuple(inferred) if primitive.multiple_results else (inferred,)
        work = primitive.host_work(*avals, **params)
        work = max(work, max((aval.size for aval in self.out_avals), default=0))
        self.on_host = primitive.host_is_cheap or work <= config.host_size_limit
        self.executables: dict[Any, Any] = {}


class _Quiet(threading.local):
    """A context of this thread in which NumPy's floating point warnings are off; the user's settings stay as they are."""

    def __init__(self):
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


_quiet = _Quiet()
_plans: dict[tuple, Plan] = {}


class EagerTrace(Trace):
    """Where operations on concrete arrays end."""

    __slots__ = ()
    name = "eager"

    def process(self, primitive, operands, params):
        if primitive.runs_itself:
            return primitive.run(*operands, **params)
        try:
            avals = tuple([x.aval for x in operands])
        except AttributeError:
            avals = tuple(map(aval_of, operands))
        key = (primitive, avals, *params.items()) if params else (primitive, avals)
        try:
            plan = _plans[key]
        except KeyError:
            plan = self._plan(key, primitive, avals, params, operands)
        if plan.on_host:
            values = []
            for x in operands:
                if type(x) is DeviceArray:
                    if x._placement is not None:
                        break
                    x = x._host if x._host is not None else x.peek()
                    if x is None:
                        break
                elif type(x) is not np.ndarray:
                    x = np.asarray(x, avals[len(values)].dtype)
                elif primitive.host_is_cheap:  # the result would be a view of an array that the user may change
                    x = x.copy()
                values.append(x)
            else:
                result = _quiet.run(primitive.host, *values, **params)
                if primitive.multiple_results:
                    return [DeviceArray(a, np.asarray(r)) for a, r in zip(plan.out_avals, result, strict=True)]
                if type(result) is not np.ndarray:
                    result = np.asarray(result)
                return DeviceArray(plan.out_avals[0], result)
        return run_on_device(plan, primitive, operands, avals, params)

    def _plan(self, key, primitive, avals, params, operands) -> Plan:
        for x in operands:
            if isinstance(x, Tracer):
                check_usable(x, self)
        plan = Plan(primitive, avals, params)
        if len(_plans) >= _MAX_PLANS:
            _plans.clear()
        _plans[key] = plan
        return plan


def run_on_device(plan: Plan, primitive: Primitive, operands, avals, params):
    """Runs the operation as a compiled program on the device of its operands."""
    device, placement, committed = place(operands, primitive.name)
    executable = plan.executables.get(device)
    if executable is None:
        module = lowering.lower_primitive(primitive, avals, params, device.platform)
        executable = compiler.compile_program(module.text(primitive.name), plan.out_avals, (device,))
        plan.executables[device] = executable
    buffers = executable([as_array(x, aval).buffer_on(device) for x, aval in zip(operands, avals, strict=True)])
    results = [DeviceArray(a, None, b, placement, committed) for a, b in zip(plan.out_avals, buffers, strict=True)]
    return results if primitive.multiple_results else results[0]


def place(operands, what: str) -> tuple[Any, Any, bool]:
    """Where operands meet: the device, the placement of the results, and whether they are committed to it."""
    committed = stray = None
    for position, x in enumerate(operands):
        if type(x) is DeviceArray and x._placement is not None:
            if not x.committed:
                stray = x._placement
            elif committed is None or committed is x._placement:
                committed = x._placement
            else:
                raise source.with_location(
                    ValueError(
                        f"{what} got arrays committed to different devices: {committed} and, at position {position}, "
                        f"{x._placement}. Move them to one device with `purax.device_put(x, device)`."
                    )
                )
    if committed is not None:
        return committed._device, committed, True
    home = client.default_device()
    if config.default_device is not None:
        return home, SingleDeviceSharding(home), False
    if stray is not None:
        return stray._device, stray, False
    return home, None, False


def as_array(x: Any, aval: ShapedArray) -> DeviceArray:
    """An operand as an array. NumPy arrays of the user are copied, since they may change later."""
    if type(x) is DeviceArray:
        return x
    if isinstance(x, Tracer):
        check_usable(x, eager)
    return DeviceArray(aval, np.array(x, aval.dtype))


def clear_plans() -> None:
    _plans.clear()


eager = EagerTrace(None)
set_eager_trace(eager)
