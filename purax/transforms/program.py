"""Running whole programs: jaxpr -> executable -> results, compiled once per structure and device.

A `Runner` is a program ready to run on a device. Results that are just arguments or constants do not go through the
engine; arguments that nothing uses are not passed. Runners of structurally equal programs share one executable.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core.jaxpr import ClosedJaxpr, Literal, Var
from purax.core.jaxpr_hash import fingerprint
from purax.transforms import eager, lowering, simplify
from purax.xla import compiler
from purax.xla.array import DeviceArray, on_device
from purax.xla.execute import Executable
from purax.xla.sharding import SingleDeviceSharding

_executables: dict[tuple, Executable] = {}
_MAX_EXECUTABLES = 4096
_NO_HOST_VALUES = itertools.repeat(None)


class Prepared:
    """A program cut down to what the engine must compute.

    Attributes:
        closed: the program of the engine; its arguments are `kept`.
        kept: positions of the arguments that it takes.
        outputs: for each result, a position among the engine's results (≥ 0), an argument (−1 − position), or a
            constant array.
        donated: positions, among the engine's arguments, whose memory it may reuse.
    """

    __slots__ = ("argument_count", "closed", "donated", "kept", "outputs")

    def __init__(self, closed: ClosedJaxpr, donated: Sequence[bool], keep_unused: bool):
        jaxpr = simplify.remove_dead_code(closed.jaxpr)
        position = {v: i for i, v in enumerate(jaxpr.invars)}
        self.outputs: list[Any] = []
        computed: dict[Var, int] = {}
        for v in jaxpr.outvars:
            if type(v) is Literal:
                self.outputs.append(DeviceArray(v.aval, np.asarray(v.val, v.aval.dtype)))
            elif v in position and not donated[position[v]]:
                self.outputs.append(-1 - position[v])
            else:
                self.outputs.append(computed.setdefault(v, len(computed)))
        jaxpr = jaxpr.replace(outvars=list(computed))
        used = [True] * len(jaxpr.invars) if keep_unused else simplify.used_inputs(jaxpr)
        self.kept = [i for i, is_used in enumerate(used) if is_used]
        self.argument_count = len(used)
        self.closed = ClosedJaxpr(jaxpr.replace(invars=[jaxpr.invars[i] for i in self.kept]))
        self.donated = tuple(n for n, i in enumerate(self.kept) if donated[i])

    def lower(self, platform: str, name: str) -> Any:
        flags = [n in self.donated for n in range(len(self.kept))]
        return lowering.lower_jaxpr(self.closed, platform=platform, name=name, donated=flags)

    def compile(self, device: Any, name: str, options: tuple = ()) -> Executable:
        key = (fingerprint(self.closed), device, self.donated, options)
        executable = _executables.get(key)
        if executable is None:
            module = self.lower(device.platform, name)
            executable = compiler.compile_program(
                module.text(module.unique_name(name)),
                self.closed.out_avals,
                (device,),
                donated=self.donated,
                options=options,
                callbacks=module.callbacks,
            )
            if not module.callbacks:
                if len(_executables) >= _MAX_EXECUTABLES:
                    _executables.clear()
                _executables[key] = executable
        return executable


class Runner:
    """A compiled program with the bookkeeping of its arguments and results."""

    __slots__ = (
        "_all_kept",
        "_execute",
        "_handlers",
        "_kept",
        "_outputs",
        "avals",
        "device",
        "donated",
        "executable",
        "sharding",
    )

    def __init__(self, prepared: Prepared, executable: Executable, device: Any):
        self.executable = executable
        self._execute, self._handlers = executable.execute, executable.handlers
        self.device = device
        self.sharding = SingleDeviceSharding(device)
        self.avals = executable.out_avals
        self._kept = prepared.kept
        self._all_kept = prepared.kept == list(range(prepared.argument_count))
        self._outputs = None if prepared.outputs == list(range(len(self.avals))) else prepared.outputs
        self.donated = [prepared.kept[n] for n in prepared.donated]

    def run_at_home(self, operands: Sequence[DeviceArray]) -> list[DeviceArray] | None:
        """Runs the program on arrays of the right types; None if one of them is not at home on the default device."""
        buffers = []
        for x in operands if self._all_kept else [operands[i] for i in self._kept]:
            if type(x) is not DeviceArray:
                return None
            buffer = x._buffer
            buffers.append(x.buffer_on(self.device) if buffer is None else buffer)
        if self.donated:
            self._take_over(operands, buffers)
        try:  # what `Executable.__call__` does, without the cost of another call
            results = self._execute(buffers).consume_with_handlers(self._handlers)
        except Exception as error:
            raise self.executable.explain(error, buffers) from None
        arrays = list(map(DeviceArray, self.avals, _NO_HOST_VALUES, results))
        for i in self.donated:
            operands[i].delete()
        return arrays if self._outputs is None else self._arrange(arrays, operands)

    def __call__(self, operands: Sequence[Any], placement: Any = None, committed: bool = False) -> list[DeviceArray]:
        """Runs the program on arrays of the right types, wherever they are; the results lie at `placement`."""
        buffers = [operands[i].buffer_on(self.device) for i in self._kept]
        self._take_over(operands, buffers)
        results = self.executable(buffers)
        for i in self.donated:
            operands[i].delete()
        arrays = [on_device(aval, b, placement, committed) for aval, b in zip(self.avals, results, strict=True)]
        return arrays if self._outputs is None else self._arrange(arrays, operands)

    def _take_over(self, operands: Sequence[DeviceArray], buffers: list[Any]) -> None:
        """Gives the engine copies to consume of donated arrays whose memory may be shared with others."""
        for i in self.donated:
            if operands[i]._host is not None:
                buffers[self._kept.index(i)] = operands[i].private_buffer_on(self.device)

    def _arrange(self, arrays: list[DeviceArray], operands: Sequence[Any]) -> list[Any]:
        """The results in order: computed ones, arguments passed through, constants."""
        return [
            out if type(out) is not int else arrays[out] if out >= 0 else operands[-1 - out]
            for out in self._outputs  # type: ignore[union-attr]
        ]


def prepare(closed: ClosedJaxpr, donated: Sequence[bool] | None = None, keep_unused: bool = False) -> Prepared:
    """`closed`, a program without constants, made ready for lowering; remembered with it."""
    flags = tuple(donated) if donated is not None else (False,) * len(closed.jaxpr.invars)
    key = ("prepared", flags, keep_unused)
    if key not in closed.derived:
        closed.derived[key] = Prepared(closed, flags, keep_unused)
    return closed.derived[key]


def runner(
    closed: ClosedJaxpr,
    device: Any,
    donated: Sequence[bool] | None = None,
    keep_unused: bool = False,
    options: tuple = (),
) -> Runner:
    """The compiled form of `closed` on `device`."""
    flags = tuple(donated) if donated is not None else None
    key = ("runner", device, flags, keep_unused, options)
    if key not in closed.derived:
        prepared = prepare(closed, flags, keep_unused)
        executable = prepared.compile(device, closed.jaxpr.name or "program", options)
        closed.derived[key] = Runner(prepared, executable, device)
    return closed.derived[key]


def run(closed: ClosedJaxpr, operands: Sequence[Any], **options: Any) -> list[DeviceArray]:
    """Runs a program on concrete operands."""
    arrays = [eager.as_array(x, v.aval) for x, v in zip(operands, closed.jaxpr.invars, strict=True)]
    device, placement, committed = eager.place(arrays, closed.jaxpr.name or "a program")
    return runner(closed, device, **options)(arrays, placement, committed)


def clear() -> None:
    """Forgets all compiled programs."""
    _executables.clear()
    compiler.clear_memory()
