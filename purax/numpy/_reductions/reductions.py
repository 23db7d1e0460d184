"""Reductions along axes: sums, products, largest and smallest elements and where they are, truth of any and all.

Truth values and narrow integers are summed in the default integers, so that sums do not wrap around early. A result's
dtype is never weak.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.numpy._programs import as_one_program, concrete_value, strong_array
from purax.numpy._promotion import BOOL, FLOAT32, as_array, cast_number, convert, refuse_out, stretch
from purax.numpy._shape.axes import ALL_AXES, canonical_axes, canonical_axis, with_kept_axes
from purax.primitives.elementwise.arithmetic import max_, min_, sub
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.elementwise.logic import and_, eq, ne, or_, select
from purax.primitives.reductions.reduction import (
    argmax_p,
    argmin_p,
    highest,
    lowest,
    reduce_and,
    reduce_and_p,
    reduce_max,
    reduce_max_p,
    reduce_min,
    reduce_min_p,
    reduce_or,
    reduce_or_p,
    reduce_prod,
    reduce_shift,
)
from purax.primitives.shape.broadcasting import broadcast_in_dim, kept_axes, reduce_sum, reduce_sum_p
from purax.primitives.shape.reshaping import reshape
from purax.typing import ArrayLike, DTypeLike
from purax.xla.array import DeviceArray

Axis = int | Sequence[int] | None

_FLOATS = frozenset((FLOAT32, np.dtype(np.float64), np.dtype(np.float16), dtypes.as_exact_dtype("bfloat16")))


# --- what reductions share


def check_where(name: str, where: Any, shape: tuple[int, ...]) -> Array:
    """A mask over an array of `shape`."""
    mask = as_array(where, f"{name}(where=...)")
    if mask.dtype != BOOL:
        raise located(
            ValueError,
            f"{name}: where must be None or a boolean array; got dtype {dtypes.dtype_name(mask.dtype)}. "
            "Write where=mask != 0.",
        )
    if mask.shape == shape or not mask.shape:
        return mask
    extra = len(shape) - mask.ndim
    if extra < 0 or builtins.any(n not in (1, m) for n, m in zip(mask.shape, shape[extra:], strict=True)):
        raise located(
            ValueError,
            f"{name}: where of shape {mask.shape} does not broadcast to the shape {shape} of the array",
        )
    return stretch(mask, shape)


def initial_value(name: str, initial: Any, dtype: np.dtype) -> Any:
    """The number that a reduction starts from, in the dtype of its result."""
    value = as_array(initial, f"{name}(initial=...)")
    if value.shape:
        raise located(ValueError, f"{name}: initial value must be a scalar. Got array of shape {value.shape}")
    if dtypes.is_inexact(value.dtype) and not dtypes.is_inexact(dtype):
        known = concrete_value(initial)
        if known is not None and known != np.trunc(known.real):
            raise located(
                ValueError,
                f"{name}: initial={known} is not a {dtypes.dtype_name(dtype)}, the dtype of the result. Convert "
                "the array first: x.astype(float).",
            )
    return convert_element_type(value, dtype)


def reduced(
    name: str,
    x: Array,
    axis: Axis,
    keepdims: bool,
    initial: Any,
    where: Any,
    reduce: Callable[..., Any],
    combine: Callable[..., Any],
    identity: Any,
) -> Array:
    """`x` reduced along `axis`; `identity` takes the place of what `where` leaves out."""
    axes = canonical_axes(name, axis, x.ndim)
    if where is not None:
        x = select(check_where(name, where, x.shape), x, np.array(identity, x.dtype))
    result = reduce(x, axes)
    if initial is not None:
        result = combine(result, initial_value(name, initial, x.dtype))
    return with_kept_axes(result, x.shape, axes) if keepdims else result


def summed_dtype(dtype: np.dtype, promote_integers: bool = True) -> np.dtype:
    """The dtype in which elements of `dtype` are summed or multiplied if the user names none."""
    if dtype is FLOAT32 or dtypes.is_inexact(dtype):
        return dtype
    if dtypes.is_boolean(dtype):
        return dtypes.default_int()
    if not promote_integers:
        return dtype
    default = dtypes.default_uint() if dtypes.is_unsigned(dtype) else dtypes.default_int()
    return dtype if dtypes.itemsize_bits(dtype) >= dtypes.itemsize_bits(default) else default


def requested_dtype(name: str, dtype: Any) -> np.dtype:
    """A dtype that the user asks for by name; its width is honoured."""
    return dtypes.as_dtype(dtype, f"{name}: dtype")


# --- sums and products


def sum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The sum of elements along axes.

    Args:
        a: the array.
        axis: one axis, several, or None for all.
        dtype: of the result; the elements are converted first.
        out: not supported.
        keepdims: whether the summed axes stay, with size 1.
        initial: a number that is added to every sum.
        where: a mask of the elements that count.
        promote_integers: whether narrow integers are summed in the default integers.

    Returns:
        The sums; 0 over no elements.

    >>> import purax.numpy as jnp
    >>> jnp.sum(jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([4, 6], dtype=int32)
    """
    if a.__class__ is DeviceArray and dtype is None and initial is None and where is None and not keepdims:
        aval = a.aval
        if (
            not aval.weak_type
            and out is None
            and (aval.dtype in _FLOATS or aval.dtype is dtypes.default_int())
        ):
            axes = ALL_AXES[aval.ndim] if axis is None else canonical_axes("sum", axis, aval.ndim)
            return reduce_sum_p.bind(a, axes=axes) if axes else a
    return _sum_or_product(
        "sum", a, axis, dtype, out, keepdims, initial, where, promote_integers, reduce_sum, add, 0
    )  # fmt: skip


def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """The product of elements along axes.

    Args:
        a: the array.
        axis: one axis, several, or None for all.
        dtype: of the result; the elements are converted first.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.
        initial: a number that every product is multiplied by.
        where: a mask of the elements that count.
        promote_integers: whether narrow integers are multiplied in the default integers.

    Returns:
        The products; 1 over no elements.

    >>> import purax.numpy as jnp
    >>> jnp.prod(jnp.array([[1, 2], [3, 4]]), axis=1)
    Array([ 2, 12], dtype=int32)
    """
    return _sum_or_product(
        "prod", a, axis, dtype, out, keepdims, initial, where, promote_integers, reduce_prod, mul, 1
    )  # fmt: skip


def _sum_or_product(
    name, a, axis, dtype, out, keepdims, initial, where, promote_integers, reduce, combine, identity
):  # fmt: skip
    refuse_out(name, out)
    x = strong_array(a, name)
    own = x.dtype
    wanted = summed_dtype(own, promote_integers) if dtype is None else requested_dtype(name, dtype)
    x = convert(x, wanted)
    if wanted == BOOL:
        reduce, combine = (reduce_or, or_) if identity == 0 else (reduce_and, and_)
    return reduced(name, x, axis, keepdims, initial, where, reduce, combine, identity)


# --- extrema


def max(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The largest element along axes; NaN if there is one.

    Args:
        a: the array.
        axis: one axis, several, or None for all.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.
        initial: a lower bound of the result; needed over no elements.
        where: a mask of the elements that count; needs `initial`.

    Returns:
        The largest elements. Complex numbers are ordered by real part, then by imaginary part.

    >>> import purax.numpy as jnp
    >>> jnp.max(jnp.array([[1, 5], [3, 4]]), axis=1)
    Array([5, 4], dtype=int32)
    """
    if a.__class__ is DeviceArray and initial is None and where is None and not keepdims and out is None:
        aval = a.aval
        if aval.size and not aval.weak_type:
            axes = ALL_AXES[aval.ndim] if axis is None else canonical_axes("max", axis, aval.ndim)
            return reduce_max_p.bind(a, axes=axes) if axes else a
    return _extremum("max", a, axis, out, keepdims, initial, where, reduce_max, max_, lowest)


def min(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The smallest element along axes; NaN if there is one.

    Args:
        a: the array.
        axis: one axis, several, or None for all.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.
        initial: an upper bound of the result; needed over no elements.
        where: a mask of the elements that count; needs `initial`.

    Returns:
        The smallest elements. Complex numbers are ordered by real part, then by imaginary part.

    >>> import purax.numpy as jnp
    >>> jnp.min(jnp.array([[1, 5], [3, 4]]), axis=1)
    Array([1, 3], dtype=int32)
    """
    if a.__class__ is DeviceArray and initial is None and where is None and not keepdims and out is None:
        aval = a.aval
        if aval.size and not aval.weak_type:
            axes = ALL_AXES[aval.ndim] if axis is None else canonical_axes("min", axis, aval.ndim)
            return reduce_min_p.bind(a, axes=axes) if axes else a
    return _extremum("min", a, axis, out, keepdims, initial, where, reduce_min, min_, highest)


def shift_of_exponents(a: Array, axis: Axis, initial: ArrayLike | None = None) -> Array:
    """The largest element along axes, which stay with size 1; NaN may be missing, as `ReduceShift` says."""
    return _extremum("max", a, axis, None, True, initial, None, reduce_shift, max_, lowest)


def _extremum(name, a, axis, out, keepdims, initial, where, reduce, combine, identity):
    refuse_out(name, out)
    x = strong_array(a, name)
    if initial is None:
        check_not_empty(name, x, canonical_axes(name, axis, x.ndim))
        if where is not None:
            raise located(
                ValueError,
                f"reduction operation {name} does not have an identity, so to use a where mask one has to specify "
                f"'initial': {name}(x, where=mask, initial={'-jnp.inf' if name == 'max' else 'jnp.inf'})",
            )
    return reduced(name, x, axis, keepdims, initial, where, reduce, combine, identity(x.dtype))


def check_not_empty(name: str, x: Array, axes: tuple[int, ...]) -> None:
    """Raises if a reduction without an identity runs over an axis of size 0."""
    empty = [axis for axis in axes if x.shape[axis] == 0]
    if empty:
        raise located(
            ValueError,
            f"zero-size array to reduction operation {name} which has no identity: axis {empty[0]} of an array of "
            f"shape {x.shape} has size 0. Give `initial`.",
        )


def amax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The largest element along axes; another name of `max`.

    >>> import purax.numpy as jnp
    >>> jnp.amax(jnp.array([1.0, 3.0, 2.0]))
    Array(3., dtype=float32)
    """
    return max(a, axis, out, keepdims, initial, where)


def amin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The smallest element along axes; another name of `min`.

    >>> import purax.numpy as jnp
    >>> jnp.amin(jnp.array([1.0, 3.0, 2.0]))
    Array(1., dtype=float32)
    """
    return min(a, axis, out, keepdims, initial, where)


def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """The range of values along axes: the largest minus the smallest element.

    Args:
        a: an array.
        axis: the axis, or several; None for all.
        out: not supported: arrays are immutable.
        keepdims: whether to keep the axes, with size 1.

    >>> import purax.numpy as jnp
    >>> jnp.ptp(jnp.array([[1, 5], [3, 4]]), axis=1)
    Array([4, 1], dtype=int32)
    """
    refuse_out("ptp", out)
    x = strong_array(a, "ptp")
    if x.dtype == BOOL:
        raise located(TypeError, "ptp needs numbers, got truth values. Write jnp.ptp(x.astype(int)).")
    return sub(max(x, axis, None, keepdims), min(x, axis, None, keepdims))


# --- truth


def any(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether any element along axes is true, that is, not 0.

    Args:
        a: the array.
        axis: one axis, several, or None for all.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.
        where: a mask of the elements that count.

    Returns:
        Truth values; False over no elements.

    >>> import purax.numpy as jnp
    >>> jnp.any(jnp.array([[True, False], [False, False]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    refuse_out("any", out)
    x = as_array(a, "any")
    if where is None and not keepdims:
        axes = canonical_axes("any", axis, x.ndim)
        if axes and x.aval.dtype is BOOL:
            return reduce_or_p.bind(x, axes=axes)
        return _any(x, axes=axes)
    return reduced("any", as_truth(x, "any"), axis, keepdims, None, where, reduce_or, or_, False)


@as_one_program(lambda x, *, axes: np.logical_or.reduce(x, axes))
def _any(x, *, axes):
    return reduce_or(as_truth(x, "any"), axes)


def all(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Whether all elements along axes are true, that is, not 0.

    Args:
        a: the array.
        axis: one axis, several, or None for all.
        out: not supported.
        keepdims: whether the reduced axes stay, with size 1.
        where: a mask of the elements that count.

    Returns:
        Truth values; True over no elements.

    >>> import purax.numpy as jnp
    >>> jnp.all(jnp.array([[True, False], [True, True]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    refuse_out("all", out)
    x = as_array(a, "all")
    if where is None and not keepdims:
        axes = canonical_axes("all", axis, x.ndim)
        if axes and x.aval.dtype is BOOL:
            return reduce_and_p.bind(x, axes=axes)
        return _all(x, axes=axes)
    return reduced("all", as_truth(x, "all"), axis, keepdims, None, where, reduce_and, and_, True)


@as_one_program(lambda x, *, axes: np.logical_and.reduce(x, axes))
def _all(x, *, axes):
    return reduce_and(as_truth(x, "all"), axes)


def as_truth(a: Any, name: str) -> Array:
    """Which elements are not 0."""
    x = as_array(a, name)
    return x if x.dtype == BOOL else ne(x, cast_number(0, x.dtype))


def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """The number of elements along axes that are not 0.

    Args:
        a: an array.
        axis: the axis, or several; None for all.
        keepdims: whether to keep the axes, with size 1.

    >>> import purax.numpy as jnp
    >>> jnp.count_nonzero(jnp.array([[1, 0], [3, 4]]), axis=0)
    Array([2, 1], dtype=int32)
    """
    x = as_array(a, "count_nonzero")
    axes = canonical_axes("count_nonzero", axis, x.ndim)
    count = _count_nonzero(x, axes=axes, dtype=dtypes.default_int())
    return with_kept_axes(count, x.shape, axes) if keepdims else count


def _count_nonzero_on_host(x, *, axes, dtype):
    return np.add.reduce(x if x.dtype == BOOL else x != 0, axes, dtype)


@as_one_program(_count_nonzero_on_host)
def _count_nonzero(x, *, axes, dtype):
    return reduce_sum(convert_element_type(as_truth(x, "count_nonzero"), dtype), axes)


# --- where the extrema are


def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the first largest element along an axis; of the first NaN, if there is one.

    Args:
        a: the array.
        axis: the axis; None for the index into the flattened array.
        out: not supported.
        keepdims: whether the axis stays, with size 1.

    Returns:
        Indices, of the default integer dtype.

    >>> import purax.numpy as jnp
    >>> jnp.argmax(jnp.array([[1, 5], [3, 4]]), axis=1)
    Array([1, 1], dtype=int32)
    """
    if a.__class__ is DeviceArray and not keepdims and out is None and a.aval.ndim == 1:
        if (axis is None or axis == 0) and not dtypes.is_complex(a.aval.dtype) and a.aval.size:
            return argmax_p.bind(a, axes=(0,), index_dtype=dtypes.default_int())
    return _arg_extremum("argmax", a, axis, out, keepdims, argmax_p, reduce_max)


def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Array:
    """The index of the first smallest element along an axis; of the first NaN, if there is one.

    Args:
        a: the array.
        axis: the axis; None for the index into the flattened array.
        out: not supported.
        keepdims: whether the axis stays, with size 1.

    Returns:
        Indices, of the default integer dtype.

    >>> import purax.numpy as jnp
    >>> jnp.argmin(jnp.array([[1, 5], [3, 4]]), axis=1)
    Array([0, 0], dtype=int32)
    """
    return _arg_extremum("argmin", a, axis, out, keepdims, argmin_p, reduce_min)


def _arg_extremum(name, a, axis, out, keepdims, primitive, reduce):
    refuse_out(name, out)
    x = as_array(a, name)
    shape, axes = x.shape, canonical_axes(name, None, x.ndim)
    if axis is None:
        x, position = reshape(x, (x.size,)), 0
    else:
        position = canonical_axis(name, operator.index(axis) if axis.__class__ is bool else axis, x.ndim)
        axes = (position,)
    if x.shape[position] == 0:
        raise located(
            ValueError,
            f"attempt to get {name} of an empty sequence: "
            + (
                f"axis {axis} of an array of shape {shape} has size 0"
                if axis is not None
                else f"shape {shape}"
            ),
        )
    if dtypes.is_complex(x.dtype):  # where it is equal to the extremum, or NaN
        best = broadcast_in_dim(reduce(x, (position,)), x.shape, kept_axes(x.ndim, (position,)))
        x, primitive = or_(eq(x, best), ne(x, x)), argmax_p
    result = primitive.bind(x, axes=(position,), index_dtype=dtypes.default_int())
    return with_kept_axes(result, shape, axes) if keepdims else result
