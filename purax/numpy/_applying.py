"""Functions of few axes, applied to arrays with more: `vectorize`, `apply_along_axis`, `apply_over_axes`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from purax.api.vmap import vmap
from purax.core.array import Array
from purax.core.limits import finite
from purax.core.source import located
from purax.errors import shown
from purax.numpy._promotion import as_array, broadcast_shapes
from purax.numpy._shape.axes import canonical_axis, items
from purax.numpy._shape.axes import function as check_function
from purax.numpy._shape.shaping import expand_dims
from purax.primitives.shape.reshaping import squeeze
from purax.typing import ArrayLike

CoreAxes = list[tuple[str, ...]]

_NAMES = r"\(\s*(?:\w+\s*(?:,\s*\w+\s*)*)?\)"
_SIGNATURE = re.compile(rf"^\s*(?:{_NAMES}\s*(?:,\s*{_NAMES}\s*)*)?->\s*{_NAMES}\s*(?:,\s*{_NAMES}\s*)*$")


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Collection[int | str] = frozenset(), signature: str | None = None
) -> Callable[..., Any]:
    """Lets a function of scalars, or of small arrays, work on arrays of them, with broadcasting.

    The function is traced once and runs on all elements together, by `vmap`.

    Args:
        pyfunc: the function.
        excluded: positions and names of arguments that are handed on as they are.
        signature: which axes the function works on, such as "(n,m),(m)->(n)" for the product of a matrix and a vector;
            scalars if not given.

    Returns:
        The function of arrays. Keyword arguments are vectorized as scalars unless they are excluded.

    >>> import purax.numpy as jnp
    >>> distance = jnp.vectorize(lambda x, y: jnp.sqrt(((x - y) ** 2).sum()), signature="(n),(n)->()")
    >>> distance(jnp.array([[0.0, 0.0], [3.0, 3.0]]), jnp.array([3.0, 4.0]))
    Array([5., 1.], dtype=float32)
    """
    excluded = finite(excluded)
    if any(not isinstance(one, (int, str)) for one in excluded):
        raise located(
            TypeError,
            f"vectorize: excluded must hold positions (integers) and names (strings), got {shown(excluded)}",
        )
    if any(isinstance(one, int) and one < 0 for one in excluded):
        raise located(
            ValueError, f"vectorize: excluded positions must not be negative, got {shown(excluded)}"
        )
    parsed = None if signature is None else _parse(signature)
    about = f"on vectorized function with excluded={set(excluded) or '{}'} and signature={signature!r}"

    @functools.wraps(pyfunc)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        left_out = {i for i in excluded if isinstance(i, int)}
        names = [name for name in kwargs if name not in excluded]
        positions = [i for i in range(len(args)) if i not in left_out]
        if parsed is not None and names:
            raise located(
                TypeError,
                f"vectorize: keyword arguments {names} {about}: with a signature, arguments are positional; "
                "exclude their names to hand them on",
            )

        def function(*arrays: Any) -> Any:
            full = list(args)
            for i, x in zip(positions, arrays, strict=False):
                full[i] = x
            keywords = {**kwargs, **dict(zip(names, arrays[len(positions) :], strict=True))}
            return pyfunc(*full, **keywords)

        arrays = [as_array(args[i], "vectorize", i) for i in positions]
        arrays += [as_array(kwargs[name], f"vectorize({name}=...)") for name in names]
        scalars: CoreAxes = [()] * len(arrays)
        inputs, outputs = parsed if parsed is not None else (scalars, None)
        return _apply(function, arrays, inputs, outputs, about)

    return wrapped


def _parse(signature: str) -> tuple[CoreAxes, CoreAxes]:
    """The names of the axes of arguments and of results."""
    if not _SIGNATURE.match(signature):
        raise located(
            ValueError,
            f"vectorize: not a valid signature: {shown(signature)}; write for example '(n,m),(m)->(n)'",
        )
    before, after = signature.split("->")

    def axes(text: str) -> CoreAxes:
        return [tuple(re.findall(r"\w+", group)) for group in re.findall(_NAMES, text)]

    return axes(before), axes(after)


def _apply(
    function: Callable, arrays: list[Array], inputs: CoreAxes, outputs: CoreAxes | None, about: str
) -> Any:
    if len(arrays) != len(inputs):
        raise located(
            TypeError,
            f"vectorize: wrong number of arguments: expected {len(inputs)}, got {len(arrays)} {about}",
        )
    sizes: dict[str, int] = {}
    leading = []
    for x, names in zip(arrays, inputs, strict=True):
        if x.ndim < len(names):
            raise located(
                ValueError,
                f"vectorize: input with shape {x.shape} does not have enough dimensions for all core dimensions "
                f"{names} {about}",
            )
        split = x.ndim - len(names)
        _check_sizes(x.shape[split:], names, sizes, about)
        leading.append(x.shape[:split])
    shape = broadcast_shapes(*leading) if leading else ()

    def checked(*operands: Any) -> Any:
        results = function(*operands)
        if outputs is None:
            return results
        several = results if isinstance(results, tuple) else (results,)
        if len(several) != len(outputs):
            raise located(
                TypeError,
                f"vectorize: wrong number of output arguments: expected {len(outputs)}, got {len(several)} {about}",
            )
        for result, names in zip(several, outputs, strict=True):
            own = as_array(result, "vectorize").shape
            if len(own) != len(names):
                raise located(
                    ValueError,
                    f"vectorize: output shape {own} does not match core dimensions {names} {about}",
                )
            _check_sizes(own, names, sizes, about)
        return results

    # An axis that all arguments but some have size 1 along is left to those; nothing is repeated.
    mapped = checked
    operands = []
    present: list[set[int]] = []
    for x, own in zip(arrays, leading, strict=True):
        offset = len(shape) - len(own)
        stretched = tuple(i for i, n in enumerate(own) if n == 1 and shape[offset + i] != 1)
        operands.append(squeeze(x, stretched))
        present.append({offset + i for i in range(len(own)) if i not in stretched})
    for axis in reversed(range(len(shape))):
        mapped = vmap(mapped, in_axes=tuple([0 if axis in one else None for one in present]))
    return mapped(*operands)


def _check_sizes(shape: tuple[int, ...], names: tuple[str, ...], sizes: dict[str, int], about: str) -> None:
    for name, size in zip(names, shape, strict=True):
        known = int(name) if name.isdigit() else sizes.setdefault(name, size)
        if known != size:
            raise located(
                ValueError,
                f"vectorize: inconsistent size for core dimension {shown(name)}: {size} vs {known} {about}",
            )


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> Any:
    """A function of vectors, applied to an array along an axis.

    Args:
        func1d: the function of a vector; its results may have any number of axes.
        axis: the axis of `arr` that holds the vectors.
        arr: the array.
        args, kwargs: further arguments of the function.

    Returns:
        An array with the axes of the results in the place of `axis`.

    >>> import purax.numpy as jnp
    >>> jnp.apply_along_axis(lambda v: v[::-1], 0, jnp.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    check_function("apply_along_axis", "func1d", func1d)
    x = as_array(arr, "apply_along_axis", 2)
    axis = canonical_axis("apply_along_axis", axis, x.ndim)

    def function(vector: Any) -> Any:
        return func1d(vector, *args, **kwargs)

    for i in range(1, x.ndim - axis):
        function = vmap(function, in_axes=i, out_axes=-1)
    for _ in range(axis):
        function = vmap(function)
    return function(x)


def apply_over_axes(func: Callable[[Any, int], Any], a: ArrayLike, axes: Sequence[int] | int) -> Array:
    """A function that reduces along an axis, applied to several axes one after the other.

    Args:
        func: a function of an array and an axis; its result has as many axes, or one less.
        a: the array.
        axes: the axes.

    Returns:
        An array with as many axes as `a`.

    >>> import purax.numpy as jnp
    >>> jnp.apply_over_axes(jnp.sum, jnp.array([[1, 2], [3, 4]]), (0, 1))
    Array([[10]], dtype=int32)
    """
    check_function("apply_over_axes", "func", func)
    x = as_array(a, "apply_over_axes", 1)
    for axis in (axes,) if isinstance(axes, int) else items("apply_over_axes", "axes", axes):
        result = as_array(func(x, canonical_axis("apply_over_axes", axis, x.ndim)), "apply_over_axes")
        if result.ndim == x.ndim - 1:
            result = expand_dims(result, axis)
        elif result.ndim != x.ndim:
            raise located(
                ValueError,
                f"apply_over_axes: func must return an array with as many axes or one less, got shape "
                f"{result.shape} for shape {x.shape}",
            )
        x = result
    return x
