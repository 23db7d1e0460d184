"""`ufunc`: functions of elements with `reduce`, `accumulate`, `outer`, `at` and `reduceat`.

The functions of `purax.numpy` that NumPy calls ufuncs stay plain functions, so that calling them costs nothing more;
`as_ufunc` gives them the methods as attributes, and `isinstance(jnp.add, jnp.ufunc)` holds. `frompyfunc` makes ufuncs
of functions of scalars.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from purax.api.vmap import vmap
from purax.control_flow.scan import scan
from purax.core import dtypes
from purax.core.array import Array
from purax.core.source import located
from purax.errors import shown
from purax.numpy._creation.creation import asarray
from purax.numpy._creation.ranges import arange
from purax.numpy._indexing.selection import where as choose_where
from purax.numpy._promotion import as_array, broadcast_operands, convert, refuse_out
from purax.numpy._shape.axes import canonical_axis
from purax.numpy._shape.joining import concatenate
from purax.numpy._shape.shaping import broadcast_to, expand_dims, moveaxis, ravel, reshape
from purax.primitives.elementwise.conversion import convert_element_type
from purax.primitives.shape.dynamic_slicing import dynamic_slice, dynamic_update_slice
from purax.primitives.shape.slicing import slice_axis
from purax.typing import ArrayLike, DTypeLike

_METHODS = ("reduce", "accumulate", "outer", "at", "reduceat")


class Ways(NamedTuple):
    """The function of scalars, and faster ways to call and reduce it, None where there are none."""

    function: Callable[..., Any]
    call: Callable[..., Any] | None
    reduce: Callable[..., Any] | None
    accumulate: Callable[..., Any] | None
    at: Callable[..., Any] | None
    reduceat: Callable[..., Any] | None


class _UfuncKind(type):
    """Counts functions that `as_ufunc` has seen among the instances."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or super().__instancecheck__(
            getattr(instance, "ufunc", None)
        )


class ufunc(metaclass=_UfuncKind):  # noqa: N801
    """A function of elements.

    Args:
        func: the function, of scalars.
        nin: how many arguments it takes.
        nout: how many results it gives.
        name: for messages, by default that of `func`.
        identity: the value e with func(e, x) = x, which empty reductions give.
        call, reduce, accumulate, at, reduceat: faster ways, where there are.

    >>> import purax.numpy as jnp
    >>> f = jnp.ufunc(lambda x, y: 10 * x + y, 2, 1)
    >>> f.reduce(jnp.array([1, 2, 3]))
    Array(123, dtype=int32)
    """

    def __init__(
        self,
        func: Callable[..., Any],
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: Any = None,
        call: Callable[..., Any] | None = None,
        reduce: Callable[..., Any] | None = None,
        accumulate: Callable[..., Any] | None = None,
        at: Callable[..., Any] | None = None,
        reduceat: Callable[..., Any] | None = None,
    ):
        if not callable(func):
            raise located(
                TypeError, f"ufunc needs a function, got {shown(func)} of type {type(func).__name__}"
            )
        own_name: Any = getattr(func, "__name__", "ufunc")
        self.__name__: str = name or own_name
        self.__doc__ = getattr(func, "__doc__", None) or type(self).__doc__
        self.nin, self.nout, self.nargs = (
            operator.index(nin),
            operator.index(nout),
            nargs or operator.index(nin),
        )
        if self.nin < 1 or self.nout < 1:
            raise located(ValueError, f"ufunc: nin and nout must be positive, got {nin} and {nout}")
        self.identity = identity
        # One attribute: wrappers such as `jit` copy the attributes of what they wrap, which must not hide theirs.
        self._ufunc = Ways(func, call, reduce, accumulate, at, reduceat)

    def __call__(self, *args: ArrayLike, out: None = None, where: None = None) -> Any:
        refuse_out(self.__name__, out, where)
        if len(args) != self.nin:
            raise located(TypeError, f"{self.__name__} takes {self.nin} arguments, got {len(args)}")
        return self._apply(*args)

    def _apply(self, *args: Any) -> Any:
        if self._ufunc.call is not None:
            return self._ufunc.call(*args)
        arrays = [as_array(x, self.__name__, i) for i, x in enumerate(args)]
        arrays = broadcast_operands(self.__name__, arrays, scalars=True)
        function = self._ufunc.function
        for _ in range(arrays[0].aval.ndim):
            function = vmap(function)
        return function(*arrays)

    # --- reductions

    def _check_binary(self, method: str) -> None:
        if self.nin != 2 or self.nout != 1:
            kind = "binary ufuncs" if self.nin != 2 else "ufuncs with one result"
            raise located(ValueError, f"{self.__name__}.{method}: {method} only supported for {kind}")

    def reduce(
        self,
        a: ArrayLike,
        axis: int | tuple[int, ...] | None = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """Folds an axis: f(f(f(a[0], a[1]), a[2]), …)

        Args:
            a: an array.
            axis: the axis; None for all elements in order.
            dtype: of the computation and the result.
            out: not supported.
            keepdims: whether the axis stays, with size 1.
            initial: the value to start from.
            where: which elements take part; then `initial` must be given unless there is an identity.

        Returns:
            An array without the axis.
        """
        self._check_binary("reduce")
        refuse_out(f"{self.__name__}.reduce", out)
        if self._ufunc.reduce is not None:
            return self._ufunc.reduce(
                a, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial, where=where
            )
        x = as_array(a, f"{self.__name__}.reduce")
        if isinstance(axis, tuple) and len(axis) != 1:
            raise located(
                NotImplementedError, f"{self.__name__}.reduce over several axes; take one at a time"
            )
        axis = axis[0] if isinstance(axis, tuple) else axis
        shape = x.aval.shape
        mask = (
            None
            if where is None
            else broadcast_to(as_array(where, f"{self.__name__}.reduce(where=...)"), shape)
        )
        if mask is not None and initial is None and self.identity is None:
            raise located(
                ValueError, f"{self.__name__} has no identity, so reduce with `where` needs `initial`"
            )
        if axis is None:
            kept = (1,) * len(shape)
            x, mask, axis = ravel(x), None if mask is None else ravel(mask), 0
        else:
            axis = canonical_axis(f"{self.__name__}.reduce", axis, x.aval.ndim)
            kept = (*shape[:axis], 1, *shape[axis + 1 :])
        result = self._fold(
            moveaxis(x, axis, 0), None if mask is None else moveaxis(mask, axis, 0), dtype, initial
        )
        return reshape(result, kept) if keepdims else result

    def _fold(self, x: Array, mask: Array | None, dtype: Any, initial: Any) -> Array:
        if dtype is not None:
            x = convert_element_type(x, dtypes.as_dtype(dtype))
        count, rest = x.aval.shape[0], x.aval.shape[1:]
        if initial is None and (mask is not None or not count):
            initial = self.identity
            if initial is None:
                raise located(
                    ValueError, f"{self.__name__}.reduce of an empty axis needs `initial`: it has no identity"
                )
        if initial is None:
            start, others = reshape(slice_axis(x, 0, 1, 0), rest), slice_axis(x, 1, count, 0)
        else:
            start, others = broadcast_to(convert(as_array(initial, self.__name__), x.aval.dtype), rest), x
        start = self._settled(start, others)
        if not others.aval.shape[0]:
            return start

        def step(carry, element):
            value, chosen = element
            following = convert_element_type(self._apply(carry, value), carry.aval.dtype)
            return (following if chosen is None else choose_where(chosen, following, carry)), None

        return scan(step, start, (others, mask))[0]

    def _settled(self, start: Array, others: Array) -> Array:
        """The start in the dtype that the results have."""
        if not others.aval.size and others.aval.shape[0]:
            return start
        sample = self._apply(
            asarray(np.zeros((), start.aval.dtype)), asarray(np.zeros((), others.aval.dtype))
        )
        return convert_element_type(start, sample.aval.dtype)

    def accumulate(
        self, a: ArrayLike, axis: int | None = 0, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """All the steps of `reduce`: a[0], f(a[0], a[1]), f(f(a[0], a[1]), a[2]), …

        Args:
            a: an array.
            axis: the axis; None for all elements in order.
            dtype: of the computation and the result.
            out: not supported.

        Returns:
            An array of the same shape.
        """
        self._check_binary("accumulate")
        refuse_out(f"{self.__name__}.accumulate", out)
        x = as_array(a, f"{self.__name__}.accumulate")
        if axis is None:
            x, axis = ravel(x), 0
        if self._ufunc.accumulate is not None:
            return self._ufunc.accumulate(x, axis=axis, dtype=dtype)
        axis = canonical_axis(f"{self.__name__}.accumulate", axis, x.aval.ndim)
        if dtype is not None:
            x = convert_element_type(x, dtypes.as_dtype(dtype))
        x = moveaxis(x, axis, 0)
        if not x.aval.shape[0]:
            return moveaxis(x, 0, axis)
        start = self._settled(reshape(slice_axis(x, 0, 1, 0), x.aval.shape[1:]), x)

        def step(carry, value):
            following = convert_element_type(self._apply(carry, value), carry.aval.dtype)
            return following, following

        _, rest = scan(step, start, slice_axis(x, 1, x.aval.shape[0], 0))
        first = expand_dims(start, 0)
        whole = concatenate([first, rest]) if x.aval.shape[0] > 1 else first
        return moveaxis(whole, 0, axis)

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:
        """f(a, b) for all pairs of elements; the axes of A come first."""
        if self.nin != 2:
            raise located(ValueError, f"{self.__name__}.outer: outer only supported for binary ufuncs")
        first, second = as_array(A, f"{self.__name__}.outer", 0), as_array(B, f"{self.__name__}.outer", 1)
        return self._apply(reshape(first, first.aval.shape + (1,) * second.aval.ndim), second)

    # --- at indices

    def at(self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, *, inplace: bool = True) -> Array:
        """`a` with the elements at `indices` replaced by f(element) or f(element, b), once for each index.

        Args:
            a: an array.
            indices: an index as in `a[indices]`; repeated ones apply repeatedly.
            b: the second arguments of binary ufuncs.
            inplace: must be False, as arrays are immutable.

        Returns:
            A new array.
        """
        if inplace:
            raise located(
                NotImplementedError,
                f"arrays are immutable, so {self.__name__}.at cannot work in place. Write "
                f"x = jnp.{self.__name__}.at(x, idx, ..., inplace=False) or x = x.at[idx].add(...)",
            )
        x = as_array(a, f"{self.__name__}.at")
        if self.nin not in (1, 2) or (b is None) != (self.nin == 1):
            raise located(
                TypeError, f"{self.__name__}.at: b must be given for binary ufuncs, and only for them"
            )
        if self._ufunc.at is not None:
            return self._ufunc.at(x, indices, b)
        places = reshape(arange(x.aval.size), x.aval.shape)[indices]
        others: tuple = ()
        if b is not None:
            values = as_array(b, f"{self.__name__}.at", 2)
            others = (ravel(broadcast_to(values, places.aval.shape)),)

        def step(line, element):
            place, *rest = element
            old = reshape(dynamic_slice(line, [place], (1,)), ())
            new = convert_element_type(self._apply(old, *rest), line.aval.dtype)
            return dynamic_update_slice(line, reshape(new, (1,)), [place]), None

        line, _ = scan(step, ravel(x), (ravel(places), *others))
        return reshape(line, x.aval.shape)

    def reduceat(
        self, a: ArrayLike, indices: Any, axis: int = 0, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """`reduce` over parts of an axis: from each index up to the next one, which must be larger to be an end.

        Args:
            a: an array.
            indices: where the parts start.
            axis: the axis.
            dtype: of the computation and the result.
            out: not supported.

        Returns:
            An array with one entry per index along the axis.
        """
        self._check_binary("reduceat")
        refuse_out(f"{self.__name__}.reduceat", out)
        name = f"{self.__name__}.reduceat"
        if self._ufunc.reduceat is not None:
            return self._ufunc.reduceat(a, indices, axis=axis, dtype=dtype)
        x, starts = as_array(a, name, 0), as_array(indices, name, 1)
        if starts.aval.ndim != 1 or not dtypes.is_integer(starts.aval.dtype):
            raise located(
                ValueError, f"{name}: indices must be integers along one axis, got {starts.aval.str_short()}"
            )
        if dtype is not None:
            x = convert_element_type(x, dtypes.as_dtype(dtype))
        axis = canonical_axis(name, axis, x.aval.ndim)
        x = moveaxis(x, axis, 0)
        size = x.aval.shape[0]
        starts = convert_element_type(starts, np.int32)
        ends = concatenate(
            [slice_axis(starts, 1, starts.aval.shape[0], 0), asarray(np.full(1, size, np.int32))]
        )
        last = choose_where(ends > starts, ends, starts + 1)

        def part(start, end):
            zeros = [np.zeros((), np.int32)] * (x.aval.ndim - 1)
            first = reshape(dynamic_slice(x, [start, *zeros], (1, *x.shape[1:])), x.shape[1:])
            first = self._settled(first, x)

            def step(carry, element):
                position, value = element
                following = convert_element_type(self._apply(carry, value), carry.aval.dtype)
                return choose_where((position > start) & (position < end), following, carry), None

            return scan(step, first, (arange(size, dtype=np.int32), x))[0]

        return moveaxis(vmap(part)(starts, last), 0, axis)

    def __repr__(self) -> str:
        return f"<jnp.ufunc '{self.__name__}'>"


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A ufunc of a function of scalars.

    Args:
        func: a function of `nin` scalars with `nout` results, which is vectorized.
        nin: how many arguments it takes.
        nout: how many results it gives.
        identity: the value that empty reductions give.

    Returns:
        A `ufunc`.

    >>> import purax.numpy as jnp
    >>> jnp.frompyfunc(lambda x, y: x * y + 1, 2, 1)(jnp.arange(3), 2)
    Array([1, 3, 5], dtype=int32)
    """
    return ufunc(func, nin, nout, identity=identity)


def as_ufunc(function: Callable, nin: int = 2, **options: Any) -> None:
    """Gives a function of arrays the attributes and methods of a `ufunc`."""
    methods = ufunc(function, nin, 1, call=function, **options)
    function.ufunc = methods  # type: ignore[attr-defined]
    for name in ("nin", "nout", "nargs", "identity", *_METHODS):
        setattr(function, name, getattr(methods, name))
