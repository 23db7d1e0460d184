"""Reductions of windows: at every place of an array the sum, largest or smallest element of a window there.

The array is spread by `base_dilation`, framed by `padding` with the identity of the operation, and a window of
`window_dimensions` elements, `window_dilation` apart, moves over it by `window_strides`. Sums are linear, and the
transpose of one is one. The tangent of an extremum is that of the first element of the window that equals it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from purax.core import dtypes
from purax.core.avals import ShapedArray, Zero, aval_of
from purax.core.dimensions import is_symbolic_shape
from purax.core.primitive import Primitive
from purax.primitives.elementwise import extrema_on_host
from purax.primitives.elementwise.elementwise import add
from purax.primitives.elementwise.logic import and_, eq, ne, or_, select
from purax.primitives.reductions.reduction import highest, lowest
from purax.primitives.shape.broadcasting import full, zeros
from purax.primitives.shape.slicing import insert, pad, pad_p, slice
from purax.xla.stablehlo import Builder, Value, integer_pairs, integers

_INT32, _FLOAT32 = np.dtype(np.int32), np.dtype(np.float32)


class Window(NamedTuple):
    """How a window moves over an array: the parameters of the primitives, one entry per axis each."""

    window_dimensions: tuple[int, ...]
    window_strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    base_dilation: tuple[int, ...]
    window_dilation: tuple[int, ...]

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The number of places of the window along each axis of an array of a shape."""
        return tuple(
            max((dilated(n, spread) + low + high - dilated(size, gap)) // step + 1, 0)
            for n, size, step, (low, high), spread, gap in zip(shape, *self, strict=True)
        )

    def check(self, name: str, x: ShapedArray) -> None:
        """Raises unless there is a proper entry for each axis of `x`."""
        for what, entries in self._asdict().items():
            if len(entries) != x.ndim:
                raise TypeError(
                    f"{name}: {what} {entries} must have an entry for each axis of an array of shape {x.shape}"
                )
            if what != "padding" and any(n < 1 for n in entries):
                raise TypeError(f"{name}: {what} must be positive, got {entries} for shape {x.shape}")
        if math.prod(n for n in self.window_dimensions if isinstance(n, int)) > _MOST_ELEMENTS:
            raise OverflowError(
                f"{name}: a window of shape {self.window_dimensions} has more elements than can be addressed"
            )
        if any(dilated(n, d) + low + high < 0 for n, (low, high), d in
               zip(x.shape, self.padding, self.base_dilation, strict=True)):  # fmt: skip
            raise TypeError(f"{name}: padding {self.padding} cuts more than there is of shape {x.shape}")

    def attributes(self) -> str:
        """The attributes of StableHLO's reduce_window."""
        return (
            f"window_dimensions = {integers(self.window_dimensions)}, window_strides = "
            f"{integers(self.window_strides)}, base_dilations = {integers(self.base_dilation)}, window_dilations = "
            f"{integers(self.window_dilation)}, padding = {integer_pairs(self.padding)}"
        )

    def with_axis(self, axis: int) -> Window:
        """The same on arrays that got a new axis, along which nothing is combined."""
        plain = (1, 1, (0, 0), 1, 1)
        return Window(*(insert(entries, axis, one) for entries, one in zip(self, plain, strict=True)))

    def frame(self, x: Any, value: Any) -> Any:
        """`x` spread and framed by `value`, so that windows lie inside of it."""
        config = [
            (low, high, spread - 1)
            for (low, high), spread in zip(self.padding, self.base_dilation, strict=True)
        ]
        return pad(x, value, config)

    def elements(self, framed: Any) -> list[Any]:
        """For each element of a window, in order, the array of that element of all windows."""
        shape = aval_of(framed).shape
        count = Window(
            self.window_dimensions,
            self.window_strides,
            ((0, 0),) * len(shape),
            (1,) * len(shape),
            self.window_dilation,
        ).shape(shape)
        found = []
        for place in itertools.product(*map(range, self.window_dimensions)):
            starts = [
                i * gap if n else 0 for i, gap, n in zip(place, self.window_dilation, count, strict=True)
            ]
            limits = [
                start + (n - 1) * step + 1 if n else 0
                for start, n, step in zip(starts, count, self.window_strides, strict=True)
            ]
            found.append(slice(framed, starts, limits, self.window_strides))
        return found


_MOST_ELEMENTS = 1 << 48  # XLA ends the process where the product overflows


def dilated(size: int, dilation: int) -> int:
    """The extent of `size` elements that are `dilation` apart."""
    return (size - 1) * dilation + 1 if size else 0


class ReduceWindow(Primitive):
    """Combines the elements of windows with a binary operation.

    Attributes:
        accepts: the kinds of dtypes it takes.
        opcode: the StableHLO operation that combines two elements.
        ufunc: NumPy's.
    """

    accepts: tuple[str, ...] = ("integer", "float", "complex")
    opcode: str
    ufunc: np.ufunc

    def identity(self, dtype: np.dtype) -> Any:
        """The element that changes nothing."""
        raise NotImplementedError

    def infer(self, x, **params):
        window = Window(**params)
        window.check(self.name, x)
        if dtypes.kind(x.dtype) not in self.accepts:
            raise TypeError(f"{self.name} takes {' or '.join(self.accepts)} arrays, got {x.str_short()}")
        return x.with_shape(window.shape(x.shape))

    def host(self, x, **params):
        dtype = x.dtype
        if dtypes.is_floating(dtype) and dtype.itemsize <= 2:
            x = x.astype(_FLOAT32)
        return host_windows(self.ufunc, x, self.identity(x.dtype), Window(**params)).astype(dtype, copy=False)

    def host_work(self, x, **params):
        return x.size * math.prod(params["window_dimensions"])

    def padded(self, at, avals, operands, **params):
        (x,), (aval,), window = operands, avals, Window(**params)
        identity = self.identity(aval.dtype)
        x = at.filled(x, aval, range(aval.ndim), identity)
        out = self.infer(*avals, **params)
        config, starts, rooms = [], [], []
        for n, size, wide, step, (low, _), spread, gap in zip(aval_of(x).shape, out.shape, *window, strict=True):
            least, most = at.bounds(low)
            front, count = max(most, 0), at.room(size)
            rooms.append((count - 1) * step + dilated(wide, gap) if count else 0)
            config.append((front, max(rooms[-1] - least - dilated(n, spread), 0), spread - 1))
            starts.append(at.difference(front, low))
        framed = at.window(pad(x, np.asarray(identity, aval.dtype), config), starts, rooms)
        ones, none = (1,) * aval.ndim, ((0, 0),) * aval.ndim
        return self.bind(framed, **window._replace(padding=none, base_dilation=ones)._asdict())

    def lower(self, builder, x, **params):
        window, dtype = Window(**params), x.dtype
        if dtypes.is_floating(dtype) and dtype.itemsize <= 2:
            x = builder.convert(x, _FLOAT32)
        scalar = ShapedArray((), x.dtype)
        out = x.aval.with_shape(window.shape(x.shape))
        x, window = framed_if_symbolic(builder, x, window, self.identity(x.dtype))
        body = builder.region((scalar, scalar), lambda inner, a, b: [inner.op(self.opcode, (a, b), scalar)])
        start = builder.constant(self.identity(x.dtype), scalar)
        return builder.convert(
            builder.op("reduce_window", (x, start), out, window.attributes(), (body,)), dtype
        )

    def batch(self, operands, batch_axes, **params):
        (x,), (axis,) = operands, batch_axes
        return self.bind(x, **Window(**params).with_axis(axis)._asdict()), axis


def framed_if_symbolic(builder: Builder, x: Value, window: Window, value: Any) -> tuple[Value, Window]:
    """An operand and the window over it with padding that StableHLO can say: numbers."""
    widths = [n for pair in window.padding for n in pair]
    if not is_symbolic_shape(widths):
        return x, window
    config = tuple(
        [(low, high, n - 1) for (low, high), n in zip(window.padding, window.base_dilation, strict=True)]
    )
    ones, none = (1,) * len(config), ((0, 0),) * len(config)
    scalar = builder.constant(value, ShapedArray((), x.dtype))
    framed = pad_p.lower(builder, x, scalar, padding_config=config)
    return framed, window._replace(padding=none, base_dilation=ones)


class ReduceWindowSum(ReduceWindow):
    """The sums of windows."""

    name = "reduce_window_sum"
    opcode, ufunc = "add", np.add

    def identity(self, dtype):
        return 0

    def jvp(self, primals, tangents, **params):
        out = self.bind(*primals, **params)
        return out, Zero.like(out) if type(tangents[0]) is Zero else self.bind(*tangents, **params)

    def transpose(self, cotangent, x, **params):
        window = Window(**params)
        spread_shape = [dilated(n, d) for n, d in zip(x.shape, window.base_dilation, strict=True)]
        if 0 in x.shape or 0 in aval_of(cotangent).shape:
            return (zeros(x.aval),)
        # An element of the framed array is in the windows that begin at most an extent before it.
        padding = []
        for n, m, size, step, (low, _), gap in zip(
            spread_shape, aval_of(cotangent).shape, window.window_dimensions, window.window_strides,
            window.padding, window.window_dilation, strict=True,
        ):  # fmt: skip
            before = dilated(size, gap) - 1 - low
            padding.append((before, n + dilated(size, gap) - 1 - before - dilated(m, step)))
        ones = (1,) * x.ndim
        spread = self.bind(
            cotangent,
            window_dimensions=window.window_dimensions,
            window_strides=ones,
            padding=tuple(padding),
            base_dilation=window.window_strides,
            window_dilation=window.window_dilation,
        )
        return (slice(spread, (0,) * x.ndim, spread_shape, window.base_dilation),)


class WindowExtremum(ReduceWindow):
    """The largest or smallest elements of windows."""

    accepts = ("bool", "integer", "float")

    def jvp(self, primals, tangents, **params):
        (x,), (dx,) = primals, tangents
        out = self.bind(x, **params)
        if type(dx) is Zero:
            return out, Zero.like(out)
        window, aval = Window(**params), aval_of(x)
        framed = window.frame(x, np.array(self.identity(aval.dtype), aval.dtype))
        which = first_equal(window.elements(framed), out)
        zero = np.zeros((), aval.dtype)
        total = None
        for i, tangent in enumerate(window.elements(window.frame(dx, zero))):
            part = select(eq(which, i), tangent, zero)
            total = part if total is None else add(total, part)
        return out, total


class ReduceWindowMax(WindowExtremum):
    """The largest elements of windows."""

    name = "reduce_window_max"
    opcode, ufunc = "maximum", extrema_on_host.maximum

    def identity(self, dtype):
        return lowest(dtype)


class ReduceWindowMin(WindowExtremum):
    """The smallest elements of windows."""

    name = "reduce_window_min"
    opcode, ufunc = "minimum", extrema_on_host.minimum

    def identity(self, dtype):
        return highest(dtype)


def first_equal(elements: Sequence[Any], wanted: Any) -> Any:
    """The number of the first of `elements` that equals `wanted`, NaN being equal to NaN, at each place."""
    shape = aval_of(wanted).shape
    which = full(shape, len(elements), _INT32)
    for i in reversed(range(len(elements))):
        found = or_(eq(elements[i], wanted), and_(ne(elements[i], elements[i]), ne(wanted, wanted)))
        which = select(found, np.array(i, _INT32), which)
    return which


def host_windows(ufunc: np.ufunc, x: np.ndarray, identity: Any, window: Window) -> np.ndarray:
    """`ReduceWindow` by NumPy: a sliding view of the framed array, reduced."""
    shape = [dilated(n, d) + low + high for n, (low, high), d in
             zip(x.shape, window.padding, window.base_dilation, strict=True)]  # fmt: skip
    framed = np.full(shape, identity, x.dtype)
    source, target = [], []
    for n, m, (low, _), d in zip(x.shape, shape, window.padding, window.base_dilation, strict=True):
        first = max(0, -(low // d))  # the elements that fall into the frame: 0 <= low + i·d < m
        end = max(first, min(n, -((low - m) // d)))
        source.append(np.s_[first:end])
        target.append(np.s_[low + first * d : low + end * d : d] if end > first else np.s_[0:0])
    framed[tuple(target)] = x[tuple(source)]
    out_shape = window.shape(x.shape)
    if 0 in out_shape or not x.ndim:
        return np.full(out_shape, identity, x.dtype) if x.ndim else np.array(x)
    extents = [
        dilated(size, gap) for size, gap in zip(window.window_dimensions, window.window_dilation, strict=True)
    ]
    views = np.lib.stride_tricks.sliding_window_view(framed, extents)
    places = tuple(np.s_[::step] for step in window.window_strides)
    inside = tuple(np.s_[::gap] for gap in window.window_dilation)
    axes = tuple(range(x.ndim, 2 * x.ndim))
    return ufunc.reduce(views[places + inside], axis=axes, dtype=x.dtype)


reduce_window_sum_p = ReduceWindowSum()
reduce_window_max_p = ReduceWindowMax()
reduce_window_min_p = ReduceWindowMin()
