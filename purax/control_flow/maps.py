"""Functions over the elements of arrays: one after the other (`map`), in batches, or combined pairwise in a number of
steps that is logarithmic (`associative_scan`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from purax.api.vmap import vmap
from purax.control_flow.bodies import arrays_in, as_type, leaf_paths
from purax.control_flow.scan import scan
from purax.core import source
from purax.core.dimensions import as_size
from purax.core.trace import Tracer
from purax.errors import shown
from purax.interpreters.arguments import name_of, require_function, to_array
from purax.primitives.reductions import cumulative
from purax.primitives.shape.reshaping import concatenate, reshape
from purax.primitives.shape.slicing import slice_axis
from purax.tree.registry import tree_flatten, tree_unflatten
from purax.tree_util import tree_map
from purax.xla import capacity


def map(f: Callable, xs: Any, *, batch_size: int | None = None) -> Any:
    """Applies a function to the parts of arrays along their first axis, one after the other.

    Args:
        f: of a part of an array, or of a tree of parts.
        xs: an array, or a tree of arrays with first axes of one size.
        batch_size: how many parts are done at once, by `vmap`; None for one, 0 for all.

    Returns:
        The results, stacked.

    >>> import purax as px, purax.numpy as jnp
    >>> px.lax.map(lambda x: x * x, jnp.arange(5), batch_size=2)
    Array([ 0,  1,  4,  9, 16], dtype=int32)
    """
    require_function(f, "map")
    if batch_size is None:
        return scan(lambda _, x: ((), f(x)), (), xs)[1]
    try:
        size = as_size(batch_size)
    except TypeError:
        raise source.located(
            TypeError, f"map: batch_size must be None or a concrete integer, got {shown(batch_size)}"
        ) from None
    if size < 0:
        raise source.located(ValueError, f"map: batch_size must not be negative, got {size}")
    leaves, tree = tree_flatten(xs)
    arrays = arrays_in(leaves, tree, "map: xs")
    if not arrays or any(x.aval.ndim == 0 for x in arrays) or len({x.aval.shape[0] for x in arrays}) > 1:
        shapes = ", ".join(str(x.aval.shape) for x in arrays)
        raise source.located(
            ValueError, f"map needs arrays with first axes of one size, got shapes {shapes or 'of none'}"
        )
    n = arrays[0].aval.shape[0]
    together = vmap(f)
    if size == 0 or n <= size:
        return together(xs)
    whole = n - n % size
    batches = [reshape(slice_axis(x, 0, whole, 0), (whole // size, size, *x.aval.shape[1:])) for x in arrays]
    _, ys = scan(lambda _, x: ((), together(x)), (), tree_unflatten(tree, batches))
    ys = tree_map(lambda y: reshape(y, (whole, *y.shape[2:])), ys)
    if whole == n:
        return ys
    rest = together(tree_unflatten(tree, [slice_axis(x, whole, n, 0) for x in arrays]))
    return tree_map(lambda a, b: concatenate((a, b), 0), ys, rest)


def associative_scan(fn: Callable, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Running results of an associative operation, in a number of steps that is logarithmic.

    Args:
        fn: (a, b) -> c, of slices of the arrays with some elements along `axis`; it combines a's elements with b's.
        elems: an array, or a tree of arrays with equal sizes along `axis`.
        reverse: whether to start at the end.
        axis: where to go along.

    Returns:
        Arrays like `elems`: a, fn(a, b), fn(fn(a, b), c), …

    >>> import purax as px, purax.numpy as jnp
    >>> px.lax.associative_scan(jnp.add, jnp.arange(4))
    Array([0, 1, 3, 6], dtype=int32)
    """
    require_function(fn, "associative_scan")
    leaves, tree = tree_flatten(elems)
    arrays = arrays_in(leaves, tree, "associative_scan: elems")
    if not arrays:
        return elems
    axis = operator.index(axis)
    for x, path in zip(arrays, leaf_paths(tree), strict=True):
        if not -x.aval.ndim <= axis < x.aval.ndim:
            raise source.located(
                ValueError, f"associative_scan: elems{path} of shape {x.aval.shape} has no axis {axis}"
            )
    axis = axis + arrays[0].aval.ndim if axis < 0 else axis
    sizes = [x.aval.shape[axis] if axis < x.aval.ndim else None for x in arrays]
    if len(set(sizes)) > 1:
        shapes = ", ".join(
            f"elems{p} has shape {x.aval.shape}" for x, p in zip(arrays, leaf_paths(tree), strict=True)
        )
        raise source.located(ValueError, f"associative_scan: sizes along axis {axis} differ: {shapes}")

    if not any(isinstance(x, Tracer) for x in arrays):  # steps run one by one, on smaller and smaller parts
        devices = max((tuple(x.devices()) for x in arrays), key=len)
        capacity.refuse_what_does_not_fit("associative_scan", [x.aval for x in arrays], (), devices)

    def combine(a, b):
        results = fn(tree_unflatten(tree, a), tree_unflatten(tree, b))
        out, out_tree = tree_flatten(results)
        out = [to_array(y) for y in out]
        problems = []
        if out_tree.num_leaves != tree.num_leaves:  # as in jax, a tuple does for a named tuple
            problems = [f"\n  it returned the structure {out_tree}, not {tree}"]
        if not problems:
            problems = [
                f"\n  result{path} is {y.aval.str_short()}, not {x.aval.str_short()}"
                for y, x, path in zip(out, a, leaf_paths(tree), strict=True)
                if (y.aval.shape, y.aval.dtype) != (x.aval.shape, x.aval.dtype)
            ]
        if problems:
            raise source.located(
                TypeError,
                f"associative_scan: `{name_of(fn)}` must return what it combines:{''.join(problems)}",
            )
        return tuple(out)

    results = cumulative.associative_scan(combine, arrays, axis, bool(reverse))
    if (sizes[0] or 0) > 1:  # combined results are not weak, as in jax
        results = tuple(as_type(y, y.aval.strip_weak_type()) for y in results)
    return tree_unflatten(tree, results)
