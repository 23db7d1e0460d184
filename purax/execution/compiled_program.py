"""Running whole programs: jaxpr -> executable -> results, compiled once per structure and device.

A `Runner` is a program ready to run on a device. Results that are just arguments or constants do not go through the
engine; arguments that nothing uses are not passed. Runners of structurally equal programs share one executable.
"""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.config import config
from purax.core import effects, phases, source
from purax.core.jaxpr import ClosedJaxpr, Literal, Var, eval_jaxpr
from purax.core.jaxpr_hash import fingerprint, portable_fingerprint
from purax.core.memories import MemorySpace
from purax.core.source import located
from purax.core.trace import current
from purax.execution import eager
from purax.execution.mesh_programs import MeshRunner, place_program
from purax.execution.placement import MeshPlace
from purax.interpreters import simplify
from purax.interpreters.arguments import exact_array
from purax.interpreters.extended_dtypes import (
    ExtendedArray,
    as_logical,
    as_physical,
    is_represented,
    physical,
)
from purax.interpreters.opening import opened
from purax.lowering import effort, jaxpr_to_stablehlo
from purax.lowering.ordered_effects import in_order
from purax.sharding import propagation
from purax.sharding.shardings import SingleDeviceSharding
from purax.xla import callbacks, capacity, client, compiler, program_records, targets
from purax.xla.aligned_memory import SMALL
from purax.xla.array import DeviceArray, on_device
from purax.xla.execute import Executable

# They live as long as somebody can run them; `compiler` keeps some that were used last beyond that, but none that call
# Python and so hold the user's functions.
_executables: weakref.WeakValueDictionary[tuple, Executable] = weakref.WeakValueDictionary()
_NO_HOST_VALUES = itertools.repeat(None)


class Prepared:
    """A program cut down to what XLA must compute.

    Attributes:
        closed: the program of XLA; its arguments are `kept`.
        kept: positions of the arguments that it takes.
        outputs: for each result, a position among XLA's results (≥ 0), an argument (−1 − position), or a
            literal.
        donated: positions, among XLA's arguments, whose memory the results take over.
        in_avals: the types of all arguments.
        out_avals: those of the results.
        extended: the types of the results, if other arrays represent some of them, which XLA computes.
    """

    __slots__ = ("closed", "donated", "extended", "in_avals", "kept", "out_avals", "outputs")

    @phases.measured("passes")
    def __init__(self, closed: ClosedJaxpr, donated: Sequence[bool], keep_unused: bool):
        self.extended = closed.out_avals if is_represented(closed.out_avals) else None
        closed = in_order(physical(closed))
        self.in_avals, self.out_avals = closed.in_avals, closed.out_avals
        jaxpr = simplify.remove_dead_code(closed.jaxpr)
        position = {v: i for i, v in enumerate(jaxpr.invars)}
        self.outputs: list[Any] = []
        computed: dict[Var, int] = {}
        for v in jaxpr.outvars:
            if type(v) is Literal:
                self.outputs.append(v)
            elif v in position and not donated[position[v]]:
                self.outputs.append(-1 - position[v])
            else:
                self.outputs.append(computed.setdefault(v, len(computed)))
        jaxpr = jaxpr.replace(outvars=list(computed))
        used = [True] * len(jaxpr.invars) if keep_unused else simplify.used_inputs(jaxpr)
        self.kept = [i for i, is_used in enumerate(used) if is_used]
        self.closed = ClosedJaxpr(jaxpr.replace(invars=[jaxpr.invars[i] for i in self.kept]))
        flags = [donated[i] for i in self.kept]
        self.donated = tuple(
            jaxpr_to_stablehlo.pair_donated(self.closed.in_avals, self.closed.out_avals, flags)
        )
        unusable = [v.aval for i, v in enumerate(closed.jaxpr.invars) if donated[i]]
        for n in self.donated:
            unusable.remove(self.closed.in_avals[n])
        if unusable:
            warn(
                f"Some donated buffers were not usable: in `{jaxpr.name}` no result can take the memory of "
                f"{', '.join(a.str_short() for a in unusable)}, since none of them has that type and is still free; "
                "these arrays stay as they are"
            )

    @phases.measured("lowering")
    def lower(
        self,
        platform: str,
        mesh: Any = None,
        in_specs: Sequence = (),
        out_specs: Sequence = (),
        debug_info: bool = True,
    ) -> Any:
        flags = [n in self.donated for n in range(len(self.kept))]
        return jaxpr_to_stablehlo.lower_jaxpr(
            self.closed,
            platform=platform,
            donated=flags,
            mesh=mesh,
            in_specs=in_specs,
            out_specs=out_specs,
            debug_info=debug_info,
        )

    def compile(self, device: Any, name: str, options: tuple = (), ahead: bool = False) -> Executable:
        key = (fingerprint(self.closed), device, self.donated, options, config.native_kernels)
        executable = _executables.get(key)
        if executable is None:
            effects = _kind_of_effects(self.closed)
            record_as = None if effects else self._record_key(device, name, options)
            executable = self._recorded(record_as, device, name, ahead)
            if executable is None:
                executable = self._lower_and_compile(device, name, options, ahead, effects, record_as)
            _executables[key] = executable
        return executable

    def _record_key(self, device: Any, name: str, options: tuple) -> bytes | None:
        """Under which key a process that lowers the program tells others what became of it."""
        with phases.phase("hashing"):
            portable = portable_fingerprint(self.closed)
            return program_records.make_key(portable, name, (device,), self.donated, options)

    def _recorded(self, key: bytes | None, device: Any, name: str, ahead: bool) -> Executable | None:
        """The executable that a record leads to: neither lowering nor a text is needed."""
        record = program_records.find(key)
        if record is None:
            return None
        if not ahead:
            capacity.refuse_what_does_not_fit(name, self.closed.out_avals, record.stored_avals, (device,))
        return compiler.load_recorded(record, name, self.closed.out_avals, device, self.donated)

    def _lower_and_compile(
        self, device: Any, name: str, options: tuple, ahead: bool, effects: str, record_as: bytes | None
    ) -> Executable:
        module = self.lower(client.platform_of(device))
        if not ahead:
            capacity.refuse_what_does_not_fit(name, self.closed.out_avals, module.stored, (device,))
        targets.require(module)
        propagation.report(module, (device,))
        with phases.phase("lowering"):
            text = module.text(module.unique_name(name))
        return effort.compiled(
            lambda options: compiler.compile_program(
                text,
                self.closed.out_avals,
                (device,),
                donated=self.donated,
                options=options,
                callbacks=module.callbacks,
                # A program that calls Python leaves a token, so that it is done before the interpreter ends.
                effects=effects or ("unordered" if module.callbacks else ""),
                # A kernel of the user's, or one who asks where values lie, needs the module each time.
                record_as=None if module.targets or module.inspections else record_as,
                stored=module.stored,
            ),
            options,
            lambda: effort.of_program(self.closed.jaxpr, module.platform, text.count("\n")),
        )


def _kind_of_effects(closed: ClosedJaxpr) -> str:
    found = closed.effects - {effects.inspection}
    return "" if not found else "ordered" if effects.any_ordered(found) else "unordered"


class Runner:
    """A compiled program with the bookkeeping of its arguments and results."""

    __slots__ = (
        "_all_kept",
        "_execute",
        "_extended",
        "_handlers",
        "_kept",
        "_outputs",
        "_prepared",
        "_taken",
        "avals",
        "device",
        "donated",
        "executable",
        "has_placed_results",
        "sharding",
    )

    def __init__(self, prepared: Prepared, executable: Executable, device: Any):
        self.executable = executable
        self._execute, self._handlers = executable.execute, executable.handlers
        self.device = device
        self.sharding = SingleDeviceSharding(device)
        self.avals = executable.out_avals
        self.has_placed_results = any(a.memory_space is not MemorySpace.Device for a in self.avals)
        self._prepared = prepared
        self._kept = prepared.kept
        self._all_kept = prepared.kept == list(range(len(prepared.in_avals)))
        self._extended = prepared.extended
        in_order = prepared.outputs == list(range(len(self.avals))) and self._extended is None
        self._outputs = None if in_order else prepared.outputs
        self._taken = prepared.donated
        self.donated = [prepared.kept[n] for n in prepared.donated]

    @property
    def in_shardings(self) -> list[Any]:
        return list(compiler.places_on(self.device, self._prepared.in_avals))

    @property
    def out_shardings(self) -> list[Any]:
        return list(compiler.places_on(self.device, self._prepared.out_avals))

    def parts(self) -> tuple[Any, ...]:
        """What `dispatch.Entry` says of a program after its runner."""
        return (
            *(self._execute, self._handlers, self.avals, None if self._all_kept else tuple(self._kept)),
            *(self._taken, tuple(self.donated), self.device, self._outputs is not None, self._witness()),
        )

    def _witness(self) -> int | None:
        """The number of a small result if nothing holds an argument of the program once that is computed; or None."""
        if type(self.executable) is not Executable or self._outputs is not None or self.donated:
            return None  # Python that it calls may keep an argument, and so may who gets it as a result
        if self.device.platform != "cpu" or not self.avals:
            return None
        sizes = [aval.size * aval.dtype.itemsize for aval in self.avals]
        return sizes.index(min(sizes)) if min(sizes) <= SMALL else None

    def run_at_home(self, operands: Sequence[DeviceArray]) -> list[DeviceArray] | None:
        """Runs the program on arrays of the right types; None if one of them is not at home on the default device."""
        if self.has_placed_results:
            return None
        buffers = []
        for x in operands if self._all_kept else [operands[i] for i in self._kept]:
            if type(x) is not DeviceArray:
                x = x.physical if type(x) is ExtendedArray else x
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

    def __call__(
        self, operands: Sequence[Any], placement: Any = None, committed: bool = False
    ) -> list[DeviceArray]:
        """Runs the program on arrays of the right types, wherever they are; the results lie at `placement`."""
        if callbacks.inside.depth:
            raise RuntimeError(
                "a compiled program was called in a callback of another one, whose threads it might wait for "
                "without end; call the `jit` function itself, which computes on the host there"
            )
        buffers = [operands[i].buffer_on(self.device) for i in self._kept]
        self._take_over(operands, buffers)
        results = self.executable(buffers)
        for i in self.donated:
            operands[i].delete()
        arrays = [
            on_device(aval, b, placement, committed) for aval, b in zip(self.avals, results, strict=True)
        ]
        return arrays if self._outputs is None else self._arrange(arrays, operands, placement, committed)

    def _take_over(self, operands: Sequence[DeviceArray], buffers: list[Any]) -> None:
        """Gives XLA copies to consume of donated arrays whose memory may be shared with others."""
        kept = [id(operands[i]) for i in self._kept]
        given = Counter(kept) if len(set(kept)) < len(kept) else None
        for n, i in zip(self._taken, self.donated, strict=True):
            x = operands[i]
            if given is not None and given[id(x)] > 1:
                raise located(
                    ValueError,
                    f"the same {x.aval.str_short()} array is donated and passed as another argument too; its "
                    "memory cannot be given away while it is read. Pass `x.copy()`, or do not donate it.",
                )
            if x._host is not None:
                buffers[n] = x.private_buffer_on(self.device)

    def _arrange(
        self,
        arrays: list[DeviceArray],
        operands: Sequence[Any],
        placement: Any = None,
        committed: bool = False,
    ) -> list[Any]:
        """The results in order: computed ones, arguments passed through, literals.

        What is returned twice is copied, since both may be donated.
        """
        results: list[Any] = []
        seen = set()
        for out in self._outputs:  # type: ignore[union-attr]
            if type(out) is Literal:
                results.append(DeviceArray(out.aval, np.asarray(out.val, out.aval.dtype)))
            elif out >= 0:
                x = arrays[out].copy() if out in seen else arrays[out]
                results.append(x if self._extended is None else as_logical(x, self._extended[len(results)]))
            else:
                x = operands[-1 - out]
                if x._host is None:
                    x._live_buffer()
                if out in seen:
                    x = as_logical(as_physical(x).copy(), x.aval)
                if placement is not None and x._placement is not placement:
                    moved = on_device(as_physical(x).aval, x.buffer_on(self.device), placement, committed)
                    x = as_logical(moved, x.aval)
                results.append(x)
            if type(out) is not Literal:
                seen.add(out)
        return results


def warn(message: str) -> None:
    """Warns at the user's line."""
    location = source.user_location()
    warnings.warn_explicit(
        message, UserWarning, location.file if location else "purax", location.line if location else 0
    )


def prepare(
    closed: ClosedJaxpr, donated: Sequence[bool] | None = None, keep_unused: bool = False
) -> Prepared:
    """`closed`, a program without constants, made ready for lowering; remembered with it."""
    flags = tuple(donated) if donated is not None else (False,) * len(closed.jaxpr.invars)
    key = ("prepared", flags, keep_unused)
    if key not in closed.derived:
        closed.derived[key] = Prepared(closed, flags, keep_unused)
    return closed.derived[key]


def runner_with_lines(prepared: Prepared, where: Any, name: str, options: tuple = ()) -> Runner | MeshRunner:
    """A program compiled ahead whose metadata has exactly the lines of its equations.

    Other runners may be those of an equal program that stands elsewhere. `name` is to be one that no other such
    program has.
    """
    kind = _kind_of_effects(prepared.closed)
    if type(where) is MeshPlace:
        return MeshRunner(prepared, where, name, options, kind, True)
    executable = prepared._lower_and_compile(where, name, options, True, kind, None)
    return Runner(prepared, executable, where)


def runner(
    closed: ClosedJaxpr,
    device: Any,
    donated: Sequence[bool] | None = None,
    keep_unused: bool = False,
    options: tuple = (),
    ahead: bool = False,
) -> Runner | MeshRunner:
    """The compiled form of `closed` on `device`, which may be a `MeshPlace`; `ahead` of any call, or for one."""
    flags = tuple(donated) if donated is not None else None
    key = ("runner", device, flags, keep_unused, options)
    if key not in closed.derived:
        prepared = prepare(closed, flags, keep_unused)
        name = closed.jaxpr.name or "program"
        if type(device) is MeshPlace:
            effects_kind = _kind_of_effects(prepared.closed)
            closed.derived[key] = MeshRunner(prepared, device, name, options, effects_kind, ahead)
        else:
            executable = prepared.compile(device, name, options, ahead)
            closed.derived[key] = Runner(prepared, executable, device)
        phases.finish(name)
    return closed.derived[key]


def run(closed: ClosedJaxpr, operands: Sequence[Any], **options: Any) -> list[DeviceArray]:
    """Runs a program on concrete operands."""
    if config.no_execution:
        name = closed.jaxpr.name or "a program"
        raise located(RuntimeError, f"`{name}` would be executed, but the no_execution config option is set")
    if current.interprets:
        closed = opened(closed)
        results = eval_jaxpr(closed.jaxpr, closed.consts, *operands)
        return [exact_array(y, aval) for y, aval in zip(results, closed.out_avals, strict=True)]
    arrays = [eager.as_array(x, v.aval) for x, v in zip(operands, closed.jaxpr.invars, strict=True)]
    device, placement, committed = place_program(closed, arrays, closed.jaxpr.name or "a program")
    return runner(closed, device, **options)(arrays, placement, committed)


def clear() -> None:
    """Forgets all compiled programs."""
    _executables.clear()
    compiler.clear_memory()
