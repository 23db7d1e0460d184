"""`Callback`: a Python function as a parameter of an operation, and the family of primitives that call one.

A callback is called with NumPy arrays, in the jax mode with arrays. Outside of compiled programs it is called at
once, where it stands; a compiled program calls it through XLA. Two callbacks are equal if they are the same function
with the same structure of arguments, so programs with equal callbacks are shared; no table keeps the function alive.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core import purity_hook
from purax.core.avals import ShapedArray, aval_of
from purax.core.primitive import Primitive
from purax.core.source import located
from purax.execution.host_trace import on_host
from purax.interpreters.arguments import name_of
from purax.interpreters.extended_dtypes import physical_aval
from purax.lowering.ordered_effects import ORDER
from purax.primitives.shape.broadcasting import batch_size, broadcast_in_dim, move_axis
from purax.primitives.shape.reshaping import reshape
from purax.tree.registry import tree_flatten, tree_unflatten
from purax.xla import callbacks
from purax.xla.array import DeviceArray, read_only
from purax.xla.callbacks import EngineCallback, as_runtime_error, wait_for_ordered

_numbers: dict[int, tuple[Any, int]] = {}
_count = itertools.count()


def number_of(function: Any) -> int:
    """A number that is the function's as long as it lives, and nobody else's ever."""
    key = id(function)
    entry = _numbers.get(key)
    if entry is not None and entry[0]() is function:
        return entry[1]
    number = next(_count)
    try:
        _numbers[key] = (weakref.ref(function, lambda dead: _forget(key, dead)), number)
    except TypeError:  # not weakly referable: each use counts as another function
        pass
    return number


def _forget(key: int, dead: Any) -> None:
    if key in _numbers and _numbers[key][0] is dead:
        del _numbers[key]


class Callback:
    """A user's function of a tree of arguments, some of them fixed, as one of flat arrays.

    Arguments:
        function: the user's.
        tree: the structure of (args, kwargs).
        fixed: for each leaf that is not an array its position and value; arrays take the other positions.
        what: how messages call it.
    """

    __slots__ = ("__weakref__", "fingerprint", "fixed", "function", "key", "tree", "what")

    def __init__(
        self, function: Callable, tree: Any, fixed: Sequence[tuple[int, Any]] = (), what: str = "callback"
    ):
        purity_hook.installed.watcher.deferred(function)
        self.function = function
        self.tree = tree
        self.fixed = tuple(fixed)
        self.what = what
        own = getattr(function, "key", None)
        parts = (
            own if own is not None else number_of(function),
            tree,
            tuple((i, _stands_for(x)) for i, x in self.fixed),
        )
        self.key = parts
        self.fingerprint = f"callback({parts})"

    def __call__(self, *arrays: np.ndarray) -> Any:
        leaves: list[Any] = [_as_array(x) for x in arrays] if callbacks.names_kinds else list(arrays)
        for position, value in self.fixed:
            leaves.insert(position, value)
        args, kwargs = tree_unflatten(self.tree, leaves)
        return self.function(*args, **kwargs)

    @property
    def name(self) -> str:
        return f"{self.what} `{name_of(self.function)}`"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Callback) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return name_of(self.function)


def _as_array(x: np.ndarray) -> DeviceArray:
    """A value that a callback is given, as an array of its own: the memory of a program's is used again."""
    return DeviceArray(ShapedArray(x.shape, x.dtype), np.array(x))


def _stands_for(value: Any) -> Any:
    return value if isinstance(value, (str, bytes, type(None))) else number_of(value)


class MappedCallback:
    """A callback over a batch: called for one example after the other.

    Arguments:
        callback: of one example.
        batched: which operands have a batch axis, in front.
        size: of the batch.
        avals: the types of the results for one example.
    """

    __slots__ = ("avals", "batched", "callback", "fingerprint", "key", "size")

    def __init__(self, callback: Any, batched: Sequence[bool], size: int, avals: Sequence[ShapedArray]):
        self.callback = callback
        self.batched = tuple(batched)
        self.size = size
        self.avals = tuple(avals)
        self.key = (callback.key, self.batched, size)
        self.fingerprint = f"mapped({self.batched} {size} {callback.fingerprint})"

    name = property(lambda self: self.callback.name)

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        rows = []
        for i in range(self.size):
            of_one = [x[i, ...] if b else x for x, b in zip(arrays, self.batched, strict=True)]
            rows.append(call_checked(self.callback, self.avals, of_one))
        columns = zip(*rows, strict=True) if rows else [()] * len(self.avals)
        return [
            np.stack(column) if column else np.zeros((0, *aval.shape), aval.dtype)
            for column, aval in zip(columns, self.avals, strict=True)
        ]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MappedCallback) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"{self.callback!r} for each of {self.size}"


class GuardedCallback:
    """A callback that is called only if its first argument is true; its results are zeros if not."""

    __slots__ = ("avals", "callback", "fingerprint", "key")

    def __init__(self, callback: Any, avals: Sequence[ShapedArray]):
        self.callback = callback
        self.avals = tuple(avals)
        self.key = ("guarded", callback.key)
        self.fingerprint = f"guarded({callback.fingerprint})"

    name = property(lambda self: self.callback.name)

    def __call__(self, condition: np.ndarray, *arrays: np.ndarray) -> list[np.ndarray]:
        if condition:
            return call_checked(self.callback, self.avals, arrays)
        return [np.zeros(aval.shape, aval.dtype) for aval in self.avals]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GuardedCallback) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"{self.callback!r} if chosen"


def call_checked(
    callback: Any, avals: Sequence[ShapedArray], arrays: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Calls a callback; its results as arrays of the promised types, or an error that says what is wrong with them."""
    arrays = [np.asarray(x) for x in arrays]  # an element of an array is a scalar
    leaves = tree_flatten(callback(*arrays))[0]
    if not avals:
        return []
    if len(leaves) != len(avals):
        raise TypeError(
            f"the {callback.name} returned {len(leaves)} arrays, but {len(avals)} were promised: "
            f"({', '.join(aval.str_short() for aval in avals)})"
        )
    results = []
    for position, (leaf, aval) in enumerate(zip(leaves, avals, strict=True)):
        value = np.asarray(leaf)
        dtype = aval.dtype
        if value.shape != aval.shape or not _fits(value.dtype, dtype):
            which = f"result {position} of " if len(avals) > 1 else ""
            raise TypeError(
                f"{which}the {callback.name} has shape {value.shape} and dtype {value.dtype}, but "
                f"{aval.str_short()} was "
                "promised; the function and its result_shape_dtypes must agree"
            )
        results.append(value if value.dtype == dtype else value.astype(dtype))
    return results


def _fits(given: np.dtype, wanted: np.dtype) -> bool:
    """Whether a result may be converted: to another width of the same kind."""
    return given == wanted or np.can_cast(given, wanted, "same_kind")


class CallbackPrimitive(Primitive):
    """Calls Python.

    Params:
        callback: a `Callback`.
        result_avals: the types of its results.
        threaded: whether the first operand and result is the order of effects (`lowering.ordered_effects`).
    """

    multiple_results = True
    runs_itself = True
    calls_python = True

    def infer(self, *avals, result_avals, threaded=False, **params):
        return [ORDER, *result_avals] if threaded else list(result_avals)

    def run(self, *operands, callback, result_avals, threaded=False, **params):
        if params.get("ordered"):
            wait_for_ordered()
        values = [_on_host(x) for x in operands[1 if threaded else 0 :]]
        try:
            found = call_checked(callback, result_avals, values)
        except Exception as error:
            raise as_runtime_error(error) from None  # as a compiled program would
        results = [DeviceArray(aval, value) for aval, value in zip(result_avals, found, strict=True)]
        return [operands[0], *results] if threaded else results

    def lower(self, builder, *operands, callback, result_avals, threaded=False, **params):
        avals = [ORDER, *result_avals] if threaded else list(result_avals)
        function = EngineFunction(callback, tuple(result_avals), threaded)
        goes_on = builder.module.mesh is not None
        index = builder.module.add_callback(EngineCallback(function, avals, on_host, goes_on))
        platform = {"cpu": "cpu", "gpu": "gpu", "cuda": "gpu", "rocm": "gpu"}.get(builder.platform)
        if platform is None:
            raise located(
                NotImplementedError,
                f"{self.name}: programs for {builder.platform} cannot call Python (the {callback.name}). Return "
                "what it needs from the compiled function and call it there",
            )
        layouts = (
            f"operand_layouts = [{', '.join(row_major(x.aval) for x in operands)}], "
            f"result_layouts = [{', '.join(map(row_major, avals))}]"
        )
        return builder.custom_call(
            f"xla_ffi_python_{platform}_callback",
            operands,
            avals,
            backend_config=f"index = {index} : ui64",
            has_side_effect=bool(self.effects(callback=callback, result_avals=result_avals, **params)),
            attributes=layouts,
            on_one_device=True,
        )

    def in_order(self, order, operands, **params):
        order, *results = self.bind(order, *operands, **{**params, "threaded": True})
        return order, results

    def guarded(self, condition, operands, *, callback, result_avals, **params):
        function = GuardedCallback(callback, result_avals)
        return self.bind(condition, *operands, callback=function, result_avals=result_avals, **params)

    def physical(self, *operands, result_avals, **params):
        return self.bind(*operands, result_avals=tuple(map(physical_aval, result_avals)), **params)

    def mapped(self, operands, batch_axes, *, callback, result_avals, **params):
        """`batch` that calls the function for one example after the other."""
        size = batch_size(operands, batch_axes)
        batched = [axis is not None for axis in batch_axes]
        moved = batch_in_front(operands, batch_axes)
        results = self.bind(
            *moved,
            callback=MappedCallback(callback, batched, size, result_avals),
            result_avals=with_batch(result_avals, size),
            **params,
        )
        return results, [0] * len(results)

    def transpose(self, cotangents, *operands, callback, **params):
        raise located(
            ValueError,
            f"the {callback.name} cannot be transposed: what it computes is not known. Give the function "
            "that calls it "
            "a derivative with `purax.custom_vjp` or `purax.custom_jvp`.",
        )


class EngineFunction:
    """A callback as XLA calls it: flat arrays in, a list of arrays of the promised types out."""

    __slots__ = ("avals", "callback", "threaded")

    def __init__(self, callback: Any, avals: tuple[ShapedArray, ...], threaded: bool):
        self.callback, self.avals, self.threaded = callback, avals, threaded

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        results = call_checked(self.callback, self.avals, arrays[1:] if self.threaded else arrays)
        return [arrays[0], *results] if self.threaded else results


def row_major(aval: ShapedArray) -> str:
    """The layout that NumPy arrays have, as an attribute."""
    if not aval.ndim:
        return "dense<> : tensor<0xindex>"
    return f"dense<[{', '.join(map(str, reversed(range(aval.ndim))))}]> : tensor<{aval.ndim}xindex>"


def _on_host(x: Any) -> np.ndarray:
    return read_only(x.host_value()) if isinstance(x, DeviceArray) else np.asarray(x, aval_of(x).dtype)


def batch_in_front(operands: Sequence[Any], batch_axes: Sequence[int | None]) -> list[Any]:
    return [x if a is None else move_axis(x, a, 0) for x, a in zip(operands, batch_axes, strict=True)]


def with_axis(x: Any, size: int) -> Any:
    """`x` repeated along a new first axis of the given size."""
    shape = aval_of(x).shape
    if size == 1:
        return reshape(x, (1, *shape))
    return broadcast_in_dim(x, (size, *shape), tuple(range(1, len(shape) + 1)))


def with_batch(avals: Sequence[ShapedArray], size: int) -> tuple[ShapedArray, ...]:
    return tuple(aval.with_shape((size, *aval.shape)) for aval in avals)
