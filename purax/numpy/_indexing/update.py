"""`x.at[index].set(y)` and its relatives: a new array with some elements changed. The index may be all that `x[index]`
takes; a mask may be traced, since an update, unlike a selection, has a known shape.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from purax.api.jit import jit
from purax.api.vmap import vmap
from purax.config import config
from purax.control_flow.while_loop import while_loop
from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import aval_of
from purax.core.dtypes import ExtendedDtype
from purax.core.source import located
from purax.core.trace import current
from purax.errors import shown
from purax.execution.eager import eager
from purax.numpy._creation.creation import asarray
from purax.numpy._indexing import indexing, on_host
from purax.numpy._indexing.parsing import Settings, expand, is_readable, resolve, value_of
from purax.numpy._indexing.plans import CLIP, FILL, Plan, plan_for, read
from purax.numpy._indexing.write import (
    OPERATIONS,
    How,
    MaskedUpdate,
    like,
    masked_update,
    stretched,
    write_entries,
)
from purax.numpy._promotion import as_operand, cast_number, convert, shape_of
from purax.primitives.elementwise.elementwise import add
from purax.primitives.elementwise.logic import gt, lt, select
from purax.primitives.reductions.reduction import reduce_max
from purax.primitives.shape.broadcasting import full
from purax.primitives.shape.gather_scatter import GatherScatterMode
from purax.primitives.shape.reshaping import reshape
from purax.sharding.constraints import freely
from purax.typing import ArrayLike
from purax.xla.array import DeviceArray


class IndexUpdateHelper:
    """`x.at`: takes an index and gives the operations on the elements there.

    >>> import purax.numpy as jnp
    >>> jnp.zeros(3).at[1].set(5.)
    Array([0., 5., 0.], dtype=float32)
    """

    __slots__ = ("array",)

    def __init__(self, array: Array):
        self.array = array

    def __getitem__(self, index: Any) -> IndexUpdateRef:
        return IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"IndexUpdateHelper({self.array!r})"


class IndexUpdateRef:
    """`x.at[index]`: the elements of `x` at an index, to be read or updated. All updates return a new array.

    Arguments of all methods:
        mode: what becomes of positions out of bounds: 'drop' (or 'fill') leaves updates out and reads `fill_value`,
            'clip' takes the nearest position, 'promise_in_bounds' promises that there are none. By default positions
            that are known raise an IndexError, computed ones are dropped when updating and clipped when reading.
        indices_are_sorted: promises that the positions increase.
        unique_indices: promises that no two positions are the same.
        wrap_negative_indices: whether negative positions count from the end.
        out_sharding: how the result is sharded over devices.
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Array, index: Any):
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"IndexUpdateRef({self.array!r}, {self.index!r})"

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        fill_value: ArrayLike | None = None,
        out_sharding: Any = None,
        wrap_negative_indices: bool = True,
    ) -> Array:
        """x[index], with a choice of what becomes of positions out of bounds.

        Args:
            fill_value: what is read out of bounds if mode is 'fill': by default NaN, the least signed or the largest
                unsigned integer, or True.

        >>> import purax.numpy as jnp
        >>> jnp.arange(3.).at[5].get(mode="fill", fill_value=-1)
        Array(-1., dtype=float32)
        """
        mode = None if mode is None else GatherScatterMode.from_any(mode)
        rest = (mode, fill_value, indices_are_sorted, unique_indices, wrap_negative_indices)
        return freely(lambda x: indexing.get(x, self.index, *rest), out_sharding, self.array)

    def set(self, values: ArrayLike, **options: Any) -> Array:
        """x with x[index] = values.

        >>> import purax.numpy as jnp
        >>> jnp.arange(4).at[::2].set(9)
        Array([9, 1, 9, 3], dtype=int32)
        """
        return update(self.array, self.index, values, "set", **options)

    def add(self, values: ArrayLike, **options: Any) -> Array:
        """x with x[index] += values; repeated positions add up.

        >>> import purax.numpy as jnp
        >>> i = jnp.array([0, 0, 2])
        >>> jnp.zeros(3).at[i].add(1.)
        Array([2., 0., 1.], dtype=float32)
        """
        return update(self.array, self.index, values, "add", **options)

    def subtract(self, values: ArrayLike, **options: Any) -> Array:
        """x with x[index] -= values.

        >>> import purax.numpy as jnp
        >>> jnp.arange(3).at[-1].subtract(5)
        Array([ 0,  1, -3], dtype=int32)
        """
        return update(self.array, self.index, values, "subtract", **options)

    def multiply(self, values: ArrayLike, **options: Any) -> Array:
        """x with x[index] *= values.

        >>> import purax.numpy as jnp
        >>> jnp.arange(3.).at[1:].multiply(10)
        Array([ 0., 10., 20.], dtype=float32)
        """
        return update(self.array, self.index, values, "multiply", **options)

    mul = multiply

    def divide(self, values: ArrayLike, **options: Any) -> Array:
        """x with x[index] /= values; an array of integers becomes one of floating point numbers.

        >>> import purax.numpy as jnp
        >>> jnp.arange(3.).at[2].divide(4)
        Array([0. , 1. , 0.5], dtype=float32)
        """
        x = self.array
        if not dtypes.is_inexact(x.aval.dtype):
            x = x.astype(dtypes.to_inexact_dtype(x.aval.dtype))
        return update(x, self.index, values, "divide", **options)

    def power(self, values: ArrayLike, **options: Any) -> Array:
        """x with x[index] **= values.

        >>> import purax.numpy as jnp
        >>> jnp.arange(3.).at[2].power(3)
        Array([0., 1., 8.], dtype=float32)
        """
        return update(self.array, self.index, values, "power", **options)

    def min(self, values: ArrayLike, **options: Any) -> Array:
        """x with x[index] = minimum(x[index], values).

        >>> import purax.numpy as jnp
        >>> jnp.arange(3).at[:].min(1)
        Array([0, 1, 1], dtype=int32)
        """
        return update(self.array, self.index, values, "min", **options)

    def max(self, values: ArrayLike, **options: Any) -> Array:
        """x with x[index] = maximum(x[index], values).

        >>> import purax.numpy as jnp
        >>> jnp.arange(3).at[:].max(1)
        Array([1, 1, 2], dtype=int32)
        """
        return update(self.array, self.index, values, "max", **options)

    def apply(self, func: Callable[[Any], Any], **options: Any) -> Array:
        """x with x[index] = func(x[index]), for a function of one element; repeated positions apply it repeatedly.

        >>> import purax.numpy as jnp
        >>> jnp.arange(3.).at[1:].apply(jnp.square)
        Array([0., 1., 4.], dtype=float32)
        """
        return apply(self.array, self.index, func, **options)


# --- updates in general


def update(
    x: Array,
    index: Any,
    values: Any,
    name: str,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
    out_sharding: Any = None,
    wrap_negative_indices: bool = True,
) -> Array:
    """`x` with the elements at an index combined with values by the operation `name`."""
    if out_sharding is not None:
        options: dict[str, Any] = {
            "indices_are_sorted": indices_are_sorted,
            "unique_indices": unique_indices,
            "mode": mode,
        }
        options["wrap_negative_indices"] = wrap_negative_indices
        return freely(lambda x, v: update(x, index, v, name, **options), out_sharding, x, values)
    if mode is None and wrap_negative_indices and x.__class__ is DeviceArray and current.trace is eager:
        ufunc = OPERATIONS[name].ufunc
        if ufunc is not None or name == "set":
            result = update_on_host(x, index, values, ufunc, name != "divide")
            if result is not None:
                return result
    if isinstance(x.aval.dtype, ExtendedDtype):
        return update_keys(
            x, index, values, name, {"mode": mode, "wrap_negative_indices": wrap_negative_indices}
        )
    values, dtype = settled(x, values, name)
    how = How(
        name,
        dtype,
        FILL if mode is None else GatherScatterMode.from_any(mode),
        bool(indices_are_sorted),
        bool(unique_indices),
    )
    settings = Settings(mode is None, wrap_negative_indices)
    shape = x.aval.shape
    parts = expand(shape, index)
    masked = MaskedUpdate.find(shape, parts, settings, shape_of(values))
    if masked is not None:
        return run(
            _masked_program, masked_update, x, values, [masked.mask, *masked.operands], how, masked.key
        )
    entries, operands = resolve(shape, parts, settings)
    plan = plan_for(shape, entries)
    values = stretched(values, plan.result_shape, x.aval)
    return run(_write_program, write_entries, x, values, operands, how, entries)


def update_on_host(
    x: DeviceArray, index: Any, values: Any, ufunc: Callable | None, repeats: bool
) -> DeviceArray | None:
    """The update of a small array by NumPy; None if it takes more than that."""
    dtype = x.aval.dtype
    host = on_host.host_of(x)
    if host is None or host.ndim != x.aval.ndim or (ufunc is not None and dtype.kind not in "iuf"):
        return None
    cls = values.__class__
    if cls is float:
        if dtype.kind not in "fc":
            return None
        value: Any = np.array(values, dtype) if -6e4 < values < 6e4 else cast_number(values, dtype)
    elif cls is int:
        if dtype.kind not in "iufc":
            return None
        value = cast_number(values, dtype)
    elif cls is DeviceArray:
        value = on_host.host_of(values)
        if value is None or values.aval.dtype is not dtype:
            return None
    else:
        return None
    return on_host.write(x, host, index, value, ufunc, repeats)


def settled(x: Array, values: Any, name: str) -> tuple[Any, Any]:
    """The values of an update as an operand, and the dtype in which the update is computed.

    That is the array's, unless the values do not fit into it; then the result is converted back, with a warning.
    """
    if isinstance(values, (list, tuple)):
        values = asarray(values)
    values = as_operand(values, f"x.at[...].{name}")
    own = x.aval.dtype
    given, weak = dtypes.dtype_and_weak(values)
    dtype, _ = dtypes.promote_pair(own, False, given, weak)
    if dtype != own:
        warnings.warn(
            f"x.at[...].{name}: values of dtype {dtypes.dtype_name(given)} cannot be safely cast to the array's dtype "
            f"{dtypes.dtype_name(own)} (scatter inputs have incompatible types); the result is converted back. Convert "
            "the values or the array with `.astype`.",
            FutureWarning,
            stacklevel=4,
        )
        if name == "set":
            dtype = own
    return convert(values, dtype), dtype


def run(
    program: Callable, function: Callable, x: Array, values: Any, operands: list, how: How, key: Any
) -> Array:
    """Runs an update on concrete arrays as one program, unless they are small; records its operations otherwise."""
    if current.trace is eager:
        limit = config.host_size_limit
        for array in (x, values, *operands):
            if array.__class__ is DeviceArray and (array.aval.size > limit or on_host.host_of(array) is None):
                return program(x, values, *operands, how=how, key=key)
    return function(x, values, *operands, how=how, key=key)


_write_program = jit(write_entries, static_argnames=("how", "key"))
_masked_program = jit(masked_update, static_argnames=("how", "key"))


def update_keys(x: Array, index: Any, values: Any, name: str, options: dict[str, Any]) -> Array:
    """The update of an array of random keys, which can only be replaced."""
    dtype = x.aval.dtype
    if name != "set" or getattr(values, "dtype", None) != dtype:
        raise located(
            TypeError,
            f"an array of {dtype} can only be updated by `set`, with keys of that kind; got "
            f"x.at[...].{name}({shown(values):.60})",
        )
    words = update(dtype.unwrap(x), indexing.index_of_words(index), dtype.unwrap(values), name, **options)
    return dtype.wrap(words)


# --- functions of elements


def apply(
    x: Array,
    index: Any,
    function: Callable[[Any], Any],
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
    out_sharding: Any = None,
    wrap_negative_indices: bool = True,
) -> Array:
    """`x` with a function of one element applied to those at an index, as often as each is named."""
    if out_sharding is not None:
        more: dict[str, Any] = {
            "indices_are_sorted": indices_are_sorted,
            "unique_indices": unique_indices,
            "mode": mode,
        }
        more["wrap_negative_indices"] = wrap_negative_indices
        return freely(lambda x: apply(x, index, function, **more), out_sharding, x)
    settings = Settings(mode is None, wrap_negative_indices)
    shape = x.aval.shape
    parts = expand(shape, index)
    masked = MaskedUpdate.find(shape, parts, settings, ())
    options: dict[str, Any] = {"mode": mode, "wrap_negative_indices": wrap_negative_indices}
    if masked is not None:
        everything = on_elements(function, read(x, masked.operands, plan_for(shape, masked.key[0]), CLIP))
        values, dtype = settled(x, everything, "apply")
        how = How("set", dtype, FILL if mode is None else GatherScatterMode.from_any(mode), False, False)
        key = (*masked.key[:2], None, ())
        return masked_update(x, values, masked.mask, *masked.operands, how=how, key=key)
    entries, operands = resolve(shape, parts, settings)
    plan = plan_for(shape, entries)
    if plan.reads_nothing:
        return x
    if plan.is_window or unique_indices or has_no_repeats(plan, operands):
        values = on_elements(function, indexing.run_read(x, entries, operands, mode=CLIP))
        options |= {"indices_are_sorted": indices_are_sorted, "unique_indices": True}
        return update(x, index, values, "set", **options)
    counts = update(full(shape, 0, np.int32), index, 1, "add", **options)
    return applied_repeatedly(x, function, counts)


def on_elements(function: Callable[[Any], Any], x: Any) -> Any:
    """The results of a function of scalars for all elements of x."""
    aval = aval_of(x)
    y = function(x) if not aval.shape else vmap(function)(reshape(x, (aval.size,)))
    if aval_of(y).size != aval.size:
        raise located(
            TypeError,
            "x.at[...].apply needs a function from a scalar to a scalar; its result has the shape "
            f"{aval_of(y).shape[1 if aval.shape else 0 :]}",
        )
    return reshape(y, aval.shape)


def applied_repeatedly(x: Array, function: Callable[[Any], Any], counts: Any) -> Array:
    """A function applied to each element as often as `counts` says."""

    def step(round: Any, y: Any) -> Any:
        values, _ = settled(x, on_elements(function, y), "apply")
        return like(select(gt(counts, round), convert(values, x.aval.dtype), y), x)

    if is_readable(counts):
        for round in range(int(value_of(counts).max())):
            x = step(round, x)
        return x
    most = reduce_max(reshape(counts, (counts.size,)), (0,))
    start = np.zeros((), np.int32)
    return while_loop(lambda c: lt(c[0], most), lambda c: (add(c[0], 1), step(c[0], c[1])), (start, x))[1]


def has_no_repeats(plan: Plan, operands: list[Any]) -> bool:
    """Whether it is known that the positions of an index are all different."""
    if not all([is_readable(x) for x in operands]):
        return False
    numbers = np.zeros(plan.block_shape, np.int64)
    for axis, number in plan.components:
        if number is not None:
            size = plan.shape[axis]
            places = value_of(operands[number]).astype(np.int64)
            numbers = numbers * size + np.clip(np.where(places < 0, places + size, places), 0, size - 1)
    return len(np.unique(numbers)) == numbers.size
