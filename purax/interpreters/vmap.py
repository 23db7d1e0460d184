"""Vectorization: runs a function written for one example on a whole batch.

    vmap(f)(xs) = stack([f(x) for x in xs])

A batched value carries the position of its batch axis; each primitive's `batch` rule works on the whole batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from purax.config import config
from purax.core.avals import ShapedArray, aval_of
from purax.core.batch_rule import batch_rule
from purax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from purax.core.leaks import check_leaks
from purax.core.trace import Trace, Tracer, current
from purax.interpreters.staging import stage
from purax.primitives.shape.broadcasting import batch_to_front, move_axis
from purax.xla.array import DeviceArray, as_operand

P = ParamSpec("P")
R = TypeVar("R")


class BatchTracer(Tracer):
    """A batch of values: an array with a batch axis."""

    __slots__ = ("axis", "value")

    def __init__(self, trace: BatchTrace, value: Any, axis: int, aval: ShapedArray | None = None):
        self.owner = trace
        self.value = value
        self.axis = axis
        self.aval = aval_of(value).without_axis(axis) if aval is None else aval

    def describe(self) -> str:
        return f"{self.aval.str_short()}, one of a batch of {self.owner.size} (vmap)"  # type: ignore[attr-defined]


class BatchTrace(Trace):
    """Applies `batch` rules.

    Attributes:
        size: of the batch.
        axis_name: by which collective operations refer to the batch axis, or None.
        entry: the axes of a mesh that the batch axis is sharded over as types say, an entry of a `PartitionSpec`.
        spread: those that it is to be sharded over where the function says how values are (`spmd_axis_name`).
    """

    __slots__ = ("axis_name", "entry", "size", "spread")
    name = "vmap"
    passes_on = True

    def __init__(
        self, parent: Trace, size: int, axis_name: Any = None, entry: Any = None, spread: Any = None
    ):
        super().__init__(parent)
        self.ends_eager = self.ends_eager and axis_name is None  # which collective operations may refer to
        self.size = size
        self.axis_name = axis_name
        self.entry = entry
        self.spread = spread
        self.on_host = self.host_rules if self.ends_eager and entry is None else None

    def process(self, primitive, operands, params):
        if self.on_host is not None:
            result = self.on_host(self, primitive, operands, params)
            if result is not None:
                return result
        values, axes = [], []
        batched = False
        for x in operands:
            if type(x) is BatchTracer and x.owner is self:
                values.append(x.value)
                axes.append(x.axis)
                batched = True
            else:
                values.append(x if type(x) is DeviceArray else as_operand(x))
                axes.append(None)
        current.trace = self.parent
        outer = batch_rule.entry, batch_rule.spread
        batch_rule.entry, batch_rule.spread = self.entry, self.spread
        try:
            if self.axis_name is not None and primitive.names_axis(self.axis_name, **params):
                out, out_axis = primitive.batch_collective(self.size, self.axis_name, values, axes, **params)
            elif not batched:
                return self.parent.process(primitive, operands, params)
            else:
                out, out_axis = primitive.batch(values, axes, **params)
        finally:
            current.trace = self
            batch_rule.entry, batch_rule.spread = outer
        if primitive.multiple_results:
            return [y if a is None else BatchTracer(self, y, a) for y, a in zip(out, out_axis, strict=True)]
        return out if out_axis is None else BatchTracer(self, out, out_axis)


_AS_RULE = object()


def _entry(values: Sequence[Any], axes: Sequence[int | None]) -> Any:
    """The axes of a mesh that types say a batch axis is sharded along, for the first value that has such a type."""
    for x, axis in zip(values, axes, strict=True):
        if axis is not None and (layout := aval_of(x).layout) is not None and layout.spec[axis] is not None:
            return layout.spec[axis]
    return None


def batch_flat(
    function: Callable[..., Sequence[Any]],
    values: Sequence[Any],
    axes: Sequence[int | None],
    size: int,
    axis_name: Any = None,
    spread: Any = _AS_RULE,
) -> tuple[list[Any], list[int | None]]:
    """Runs `function`, on flat lists, over a batch; returns the results and the positions of their batch axes.

    `spread` is that of the `batch` rule that calls this, if it is not given.
    """
    outer = current.trace
    spread = batch_rule.spread if spread is _AS_RULE else spread
    trace = BatchTrace(outer, size, axis_name, _entry(values, axes), spread)
    arguments = [
        x if axis is None else BatchTracer(trace, x, axis) for x, axis in zip(values, axes, strict=True)
    ]
    current.trace = trace
    try:
        results = function(*arguments)
    finally:
        current.trace = outer
        trace.alive = False
    out: list[Any] = []
    out_axes: list[int | None] = []
    for y in results:
        own = type(y) is BatchTracer and y.owner is trace
        out.append(y.value if own else y)
        out_axes.append(y.axis if own else None)
    if config.check_tracer_leaks:
        arguments.clear()
        y = results = None
        check_leaks([trace], "a function under vmap")
    return out, out_axes


def to_axis(x: Any, axis: int | None, wanted: int, size: int) -> Any:
    """A result with its batch axis at `wanted`; repeated along it if it is the same for the whole batch."""
    if axis is None:
        return move_axis(batch_to_front(x, None, size), 0, wanted)
    return move_axis(x, axis, wanted)


def batch_jaxpr(
    closed: ClosedJaxpr,
    batched: Sequence[bool],
    size: int,
    axis_name: Any = None,
    force: Sequence[bool] | None = None,
    varying: frozenset[Any] = frozenset(),
) -> tuple[ClosedJaxpr, list[bool]]:
    """The program that runs `closed` over a batch, with all batch axes in front.

    Args:
        closed: a program without constants.
        batched: which arguments have a batch axis.
        size: of the batch.
        axis_name: of the batch axis, for collective operations.
        force: which results must have a batch axis, needed or not.
        varying: the axes of a mesh along which devices have different parts of the batch.

    Returns:
        The program, and which results have a batch axis.
    """
    entry, spread = batch_rule.entry, batch_rule.spread
    forced_results = None if force is None else tuple(force)
    key = ("batch", tuple(batched), size, axis_name, forced_results, entry, spread, varying)
    if key not in closed.derived:
        out_batched: list[bool] = []

        def vectorized(*args):
            axes = [0 if b else None for b in batched]
            run = lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs)  # noqa: E731
            out, out_axes = batch_flat(run, args, axes, size, axis_name, spread)
            forced = [False] * len(out) if force is None else force
            out_batched.extend(a is not None or f for a, f in zip(out_axes, forced, strict=True))
            return [
                to_axis(y, a, 0, size) if b else y for y, a, b in zip(out, out_axes, out_batched, strict=True)
            ]

        avals = [
            aval.with_vma(aval.vma | varying).with_axis(0, size, entry) if b else aval
            for aval, b in zip(closed.in_avals, batched, strict=True)
        ]
        program = stage(vectorized, avals, f"vmap_{closed.jaxpr.name}")
        closed.derived[key] = program, out_batched
    return closed.derived[key]
