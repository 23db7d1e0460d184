"""Vectorization: runs a function written for one example on a whole batch.

    vmap(f)(xs) = stack([f(x) for x in xs])

A batched value carries the position of its batch axis; each primitive's `batch` rule works on the whole batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from purax.core.avals import ShapedArray, aval_of
from purax.core.jaxpr import ClosedJaxpr, eval_jaxpr
from purax.core.trace import Trace, Tracer, current
from purax.ops.broadcasting import batch_to_front, move_axis
from purax.transforms.staging import stage


class BatchTracer(Tracer):
    """A batch of values: an array with a batch axis."""

    __slots__ = ("axis", "value")

    def __init__(self, trace: BatchTrace, value: Any, axis: int):
        self.trace = trace
        self.value = value
        self.axis = axis
        whole = aval_of(value)
        self.aval = whole.with_shape(whole.shape[:axis] + whole.shape[axis + 1 :])

    def describe(self) -> str:
        return f"{self.aval.str_short()}, one of a batch of {self.trace.size} (vmap)"  # type: ignore[attr-defined]


class BatchTrace(Trace):
    """Applies `batch` rules.

    Attributes:
        size: of the batch.
        axis_name: by which collective operations refer to the batch axis, or None.
    """

    __slots__ = ("axis_name", "size")
    name = "vmap"

    def __init__(self, parent: Trace, size: int, axis_name: Any = None):
        super().__init__(parent)
        self.size = size
        self.axis_name = axis_name

    def process(self, primitive, operands, params):
        values, axes = [], []
        batched = False
        for x in operands:
            if type(x) is BatchTracer and x.trace is self:
                values.append(x.value)
                axes.append(x.axis)
                batched = True
            else:
                values.append(x)
                axes.append(None)
        current.trace = self.parent
        try:
            if self.axis_name is not None and primitive.names_axis(self.axis_name, **params):
                out, out_axis = primitive.batch_collective(self.size, self.axis_name, values, axes, **params)
            elif not batched:
                return self.parent.process(primitive, operands, params)
            else:
                out, out_axis = primitive.batch(values, axes, **params)
        finally:
            current.trace = self
        if primitive.multiple_results:
            return [y if a is None else BatchTracer(self, y, a) for y, a in zip(out, out_axis, strict=True)]
        return out if out_axis is None else BatchTracer(self, out, out_axis)


def batch_flat(
    function: Callable[..., Sequence[Any]],
    values: Sequence[Any],
    axes: Sequence[int | None],
    size: int,
    axis_name: Any = None,
) -> tuple[list[Any], list[int | None]]:
    """Runs `function`, on flat lists, over a batch; returns the results and the positions of their batch axes."""
    outer = current.trace
    trace = BatchTrace(outer, size, axis_name)
    arguments = [x if axis is None else BatchTracer(trace, x, axis) for x, axis in zip(values, axes, strict=True)]
    current.trace = trace
    try:
        results = function(*arguments)
    finally:
        current.trace = outer
        trace.alive = False
    out: list[Any] = []
    out_axes: list[int | None] = []
    for y in results:
        own = type(y) is BatchTracer and y.trace is trace
        out.append(y.value if own else y)
        out_axes.append(y.axis if own else None)
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
) -> tuple[ClosedJaxpr, list[bool]]:
    """The program that runs `closed` over a batch, with all batch axes in front.

    Args:
        closed: a program without constants.
        batched: which arguments have a batch axis.
        size: of the batch.
        axis_name: of the batch axis, for collective operations.
        force: which results must have a batch axis, needed or not.

    Returns:
        The program, and which results have a batch axis.
    """
    key = ("batch", tuple(batched), size, axis_name, None if force is None else tuple(force))
    if key not in closed.derived:
        out_batched: list[bool] = []

        def vectorized(*args):
            axes = [0 if b else None for b in batched]
            run = lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *xs)  # noqa: E731
            out, out_axes = batch_flat(run, args, axes, size, axis_name)
            forced = [False] * len(out) if force is None else force
            out_batched.extend(a is not None or f for a, f in zip(out_axes, forced, strict=True))
            return [
                to_axis(y, a, 0, size) if b else y for y, a, b in zip(out, out_axes, out_batched, strict=True)
            ]

        avals = [
            ShapedArray((size, *aval.shape), aval.dtype, aval.weak_type) if b else aval
            for aval, b in zip(closed.in_avals, batched, strict=True)
        ]
        program = stage(vectorized, avals, f"vmap_{closed.jaxpr.name}")
        closed.derived[key] = program, out_batched
    return closed.derived[key]


def named_axis_sizes(trace: Trace | None = None) -> dict[Any, int]:
    """The named axes that are in scope, innermost first, and their sizes."""
    trace = current.trace if trace is None else trace
    sizes: dict[Any, int] = {}
    while trace is not None:
        name = getattr(trace, "axis_name", None)
        if name is not None:
            sizes.setdefault(name, trace.size)  # type: ignore[attr-defined]
        trace = trace.parent
    return sizes
