"""`x[index]` for all that NumPy allows between the brackets: integers, slices, ellipsis, new axes, booleans, masks,
arrays of positions, and mixtures of them. `install` gives arrays the brackets and `.at`.

Known positions out of bounds raise an IndexError. Computed ones cannot; inside of compiled programs they are clamped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.api.jit import jit
from purax.config import config
from purax.core.array import Array
from purax.core.avals import aval_of
from purax.core.dtypes import ExtendedDtype
from purax.core.memo import Memo
from purax.core.trace import current
from purax.execution.eager import eager
from purax.numpy._indexing import on_host
from purax.numpy._indexing.parsing import Settings, parse
from purax.numpy._indexing.plans import PROMISE, Plan, plan_for, read
from purax.primitives.shape.gather_scatter import GatherScatterMode
from purax.xla.array import DeviceArray


def getitem(x: Array, index: Any) -> Array:
    """What an index selects from an array, as `x[index]` does.

    Args:
        x: the array.
        index: an integer, a slice, `...`, `None`, a bool, an array of integers or booleans, or a tuple of these.

    Returns:
        An array, of shape () where NumPy gives a scalar.

    Raises:
        IndexError: a position that is known is out of bounds, there are too many indices, or a mask does not fit.
        TypeError: the index is a list, a string or a floating point number.

    >>> import purax.numpy as jnp
    >>> x = jnp.arange(12.).reshape(3, 4)
    >>> getitem(x, (slice(None), -1))
    Array([ 3.,  7., 11.], dtype=float32)
    """
    if x.__class__ is DeviceArray and current.trace is eager and x._placement is None:
        host = x._host
        if host is None:
            host = x.peek()
        if host is not None:
            result = on_host.read(x, host, index)
            if result is not None:
                return result
    if isinstance(x.aval.dtype, ExtendedDtype):
        dtype: Any = x.aval.dtype
        parse(x.aval.shape, index)  # mistakes speak of the shape of the keys, not of their words
        return dtype.wrap(getitem(dtype.unwrap(x), index_of_words(index)))
    shape = x.aval.shape
    key = static_key(index)
    plan = None if key is None else _static_plans.get((shape, key))
    if plan is None:
        entries, operands = parse(shape, index)
        plan = plan_for(shape, entries)
        if key is None or not plan.is_static:
            return run_read(x, entries, operands)
        _static_plans[shape, key] = plan
    if current.trace is eager and runs_as_program(x, (), plan):
        return _read_program(x, entries=plan.entries)
    if plan.reads_nothing:
        return read(x, (), plan)
    for primitive, params in plan.steps:
        x = primitive.bind(x, **params)
    return x


_static_plans: Memo[tuple, Plan] = Memo()


def static_key(index: Any) -> Any:
    """An index of integers, slices, new axes and an ellipsis as something hashable; None for all others."""
    cls = index.__class__
    if cls is int:
        return index
    if cls is slice:
        if on_host.has_plain_bounds(index):
            return _SLICE, index.start, index.stop, index.step
        return None
    if index is None or index is ...:
        return (index,)
    if cls is not tuple:
        return None
    parts: list[Any] = []
    for part in index:
        cls = part.__class__
        if cls is slice:
            if not on_host.has_plain_bounds(part):
                return None
            part = (_SLICE, part.start, part.stop, part.step)
        elif cls is not int and part is not None and part is not ...:
            return None
        parts.append(part)
    return tuple(parts)


_SLICE = "slice"


def get(
    x: Array,
    index: Any,
    mode: GatherScatterMode | None,
    fill_value: Any,
    indices_are_sorted: bool,
    unique_indices: bool,
    wrap_negative_indices: bool,
) -> Array:
    """`x.at[index].get(...)`; see `purax.numpy._indexing.update`."""
    if isinstance(x.aval.dtype, ExtendedDtype):
        extended: Any = x.aval.dtype
        words = get(
            extended.unwrap(x), index_of_words(index), mode, fill_value, indices_are_sorted, unique_indices,
            wrap_negative_indices,
        )  # fmt: skip
        return extended.wrap(words)
    settings = Settings(mode is None, wrap_negative_indices)
    entries, operands = parse(x.aval.shape, index, settings)
    flags = {"indices_are_sorted": bool(indices_are_sorted), "unique_indices": bool(unique_indices)}
    return run_read(x, entries, operands, mode=mode or PROMISE, fill_value=scalar(fill_value), **flags)


def scalar(fill_value: Any) -> Any:
    """A fill value as a Python number, which can be part of a program."""
    return fill_value if fill_value is None else np.asarray(fill_value)[()].item()


def run_read(x: Array, entries: tuple, operands: list[Any], **params: Any) -> Array:
    plan = plan_for(x.aval.shape, entries)
    if current.trace is eager and runs_as_program(x, operands, plan):
        return _read_program(x, *operands, entries=entries, **params)
    return read(x, operands, plan, **params)


def read_entries(x: Array, *operands: Any, entries: tuple, **params: Any) -> Array:
    return read(x, operands, plan_for(aval_of(x).shape, entries), **params)


_read_program = jit(
    read_entries, static_argnames=("entries", "mode", "fill_value", "indices_are_sorted", "unique_indices")
)


def runs_as_program(x: Any, operands: Sequence[Any], plan: Plan) -> bool:
    """Whether the operations of a plan, on concrete arrays, should run as one program: if they would not be done by
    NumPy at no cost.
    """
    if plan.is_static:
        return len(plan.steps) > 1 and on_host.host_of(x) is None
    limit = config.host_size_limit
    for array in (x, *operands):
        if array.__class__ is DeviceArray and (array.aval.size > limit or on_host.host_of(array) is None):
            return True
    return any(array.size > limit for array in operands)


def index_of_words(index: Any) -> tuple:
    """An index of keys as one of their words, which have another axis at the end."""
    if not isinstance(index, tuple):
        index = (index,)
    if not any(part is Ellipsis for part in index):
        index = (*index, Ellipsis)
    return (*index, slice(None))


def install(at: Any) -> None:
    """Gives arrays the brackets, and `.at`, a function of an array."""
    Array.__getitem__ = getitem  # type: ignore[method-assign]
    Array.at = property(at)  # type: ignore[method-assign, assignment]
