"""Collective operations for users, on trees of arrays and one or several named axes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from purax.core import dtypes
from purax.core.avals import aval_of
from purax.core.limits import finite, shallow
from purax.core.source import located
from purax.errors import shown
from purax.interpreters.arguments import to_array
from purax.interpreters.named_axes import checked_axes, named_axis_sizes
from purax.primitives.collective import collectives
from purax.primitives.elementwise.arithmetic import div
from purax.primitives.elementwise.conversion import convert_element_type, convert_element_type_p
from purax.primitives.elementwise.elementwise import add, mul
from purax.primitives.shape.reshaping import reshape
from purax.primitives.shape.slicing import slice_axis
from purax.tree_util import tree_map


def _names(axis_name: Any, operation: str) -> tuple:
    """Axis names as a tuple, each known to be in scope."""
    names = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
    sizes = named_axis_sizes()
    for name in names:
        try:
            hash(shallow(name))
        except TypeError:
            raise located(
                TypeError,
                f"{operation}: axis_name must be a name or a tuple of names, got {shown(axis_name)}",
            ) from None
        if name not in sizes:
            raise collectives.unbound_axis(operation, name, list(sizes))
    return names


def axis_size(axis_name: Any) -> int:
    """The size of a named axis (the product of sizes for several).

    >>> import purax as px, purax.numpy as jnp
    >>> px.vmap(lambda x: x * px.lax.axis_size("i"), axis_name="i")(jnp.ones(3))
    Array([3., 3., 3.], dtype=float32)
    """
    sizes = named_axis_sizes()
    return int(np.prod([sizes[name] for name in _names(axis_name, "axis_size")]))


def axis_index(axis_name: Any) -> Any:
    """The position of this element along a named axis.

    >>> import purax as px, purax.numpy as jnp
    >>> px.vmap(lambda x: x + px.lax.axis_index("i"), axis_name="i")(jnp.zeros(3))
    Array([0., 1., 2.], dtype=float32)
    """
    sizes = named_axis_sizes()
    index = None
    for name in _names(axis_name, "axis_index"):
        part = collectives.axis_index_p.bind(axis_name=(name,))
        if name in checked_axes():
            part = collectives.pvary_p.bind(part, axis_name=(name,))
        index = part if index is None else add(mul(index, sizes[name]), part)
    return index


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum over a named axis, or several.

    Args:
        x: an array, a number, or a tree of them.
        axis_name: a name, or a tuple of names.
        axis_index_groups: lists of positions among which to sum, instead of all.

    Returns:
        The sums, the same for all elements. The sum of a Python number is a Python number.

    >>> import purax as px, purax.numpy as jnp
    >>> px.vmap(lambda x: x / px.lax.psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)
    """
    names = _names(axis_name, "psum")
    groups = _groups(axis_index_groups)

    def one(leaf):
        if isinstance(leaf, (bool, int, float, complex)):
            return leaf * (len(groups[0]) if groups is not None else axis_size(names))
        leaf = to_array(leaf)
        if dtypes.is_boolean(leaf.aval.dtype):
            leaf = convert_element_type(leaf, np.int32)
        varying, constant = _divide(leaf, names)
        if constant and groups is None:  # the sum of equal values
            leaf = mul(leaf, axis_size(constant))
            if not varying:
                return leaf
        return collectives.psum_p.bind(
            leaf, axis_name=varying if groups is None else names, axis_index_groups=groups
        )

    return tree_map(one, x)


def _divide(x: Any, names: tuple) -> tuple[tuple, tuple]:
    """Of named axes, those that a value varies along (or may), and those along which its type says that it does not."""
    constant = checked_axes() - aval_of(x).vma
    return tuple(n for n in names if n not in constant), tuple(n for n in names if n in constant)


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean over a named axis, or several; arguments as those of `psum`."""
    groups = _groups(axis_index_groups)
    count = len(groups[0]) if groups is not None else axis_size(axis_name)

    def one(leaf):
        if isinstance(leaf, (int, float, complex)):
            return to_array(psum(leaf, axis_name, axis_index_groups=groups) / count)
        leaf = to_array(leaf)
        if not dtypes.is_inexact(leaf.aval.dtype):
            weak = leaf.aval.weak_type and leaf.aval.dtype != np.bool_
            leaf = convert_element_type_p.bind(
                leaf, new_dtype=dtypes.to_inexact_dtype(leaf.aval.dtype), weak_type=weak
            )
        return div(psum(leaf, axis_name, axis_index_groups=groups), count)

    return tree_map(one, x)


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The maximum over a named axis, or several; arguments as those of `psum`."""
    return _extreme(collectives.pmax_p, x, _names(axis_name, "pmax"), _groups(axis_index_groups))


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The minimum over a named axis, or several; arguments as those of `psum`."""
    return _extreme(collectives.pmin_p, x, _names(axis_name, "pmin"), _groups(axis_index_groups))


def _extreme(primitive: Any, x: Any, names: tuple, groups: Any) -> Any:
    def one(leaf):
        leaf = to_array(leaf)
        varying = _divide(leaf, names)[0] if groups is None else names
        return primitive.bind(leaf, axis_name=varying, axis_index_groups=groups) if varying else leaf

    return tree_map(one, x)


def pvary(x: Any, axis_name: Any) -> Any:
    """Values that are the same on all devices, with types that allow them to differ along axes of a mesh.

    Inside a `shard_map` this is done by itself where such values meet others; it is for carries of loops whose first
    value does not vary.
    """
    names = _names(axis_name, "pvary")

    def one(leaf):
        leaf = to_array(leaf)
        new = tuple(n for n in names if n in checked_axes() and n not in leaf.aval.vma)
        return collectives.pvary_p.bind(leaf, axis_name=new) if new else leaf

    return tree_map(one, x)


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """`pvary(x, axis_name)`, the one change of type (`to="varying"`) that needs no communication."""
    if to != "varying":
        raise located(ValueError, f"pcast: to must be 'varying', got {shown(to)}; use psum or all_gather")
    return pvary(x, axis_name)


def all_gather(
    x: Any,
    axis_name: Any,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """The values of all elements along a named axis.

    Args:
        x: an array, or a tree of arrays.
        axis_name: the name.
        axis_index_groups: lists of positions that exchange values among each other, instead of all; of equal length.
        axis: where the new axis goes.
        tiled: whether the values are laid end to end along the existing axis `axis` instead.
        to: how the type says that the result depends on the axis: only "varying".

    Returns:
        For each array, one with the values of all elements.
    """
    if to != "varying":
        raise located(
            NotImplementedError,
            f"all_gather: to={shown(to)} is not supported; types know varying values only",
        )
    names = _names(axis_name, "all_gather")
    size, groups = _size_and_groups("all_gather", names, axis_index_groups)

    def one(leaf):
        leaf = pvary(leaf, names)
        where = operator.index(axis) % (leaf.aval.ndim + (not tiled))
        return collectives.all_gather_p.bind(
            leaf, axis_name=names, axis_size=size, all_gather_dimension=where, tiled=tiled, **groups
        )

    return tree_map(one, x)


def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None, tiled: bool = False
) -> Any:
    """The sum over a named axis, of which each element gets its part along `scatter_dimension`.

    The dimension has the size of the axis and disappears; if `tiled` it is divided by the size of the axis.
    """
    names = _names(axis_name, "psum_scatter")
    size, groups = _size_and_groups("psum_scatter", names, axis_index_groups)
    return tree_map(
        lambda leaf: collectives.psum_scatter_p.bind(
            pvary(leaf, names),
            axis_name=names,
            axis_size=size,
            scatter_dimension=scatter_dimension,
            tiled=tiled,
            **groups,
        ),
        x,
    )


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Sends values along a named axis.

    Args:
        x: an array, or a tree of arrays.
        axis_name: the name.
        perm: pairs (source, destination), each position at most once on either side.

    Returns:
        At each destination the value of its source; zeros where nothing is sent.
    """
    names = _names(axis_name, "ppermute")
    pairs = as_pairs(perm, "ppermute")
    size = axis_size(names)
    for side, positions in (("source", [s for s, _ in pairs]), ("destination", [d for _, d in pairs])):
        if len(set(positions)) != len(positions) or any(not 0 <= i < size for i in positions):
            raise located(
                ValueError,
                f"ppermute: each {side} must appear once and lie in 0 … {size - 1}, got {positions}",
            )
    return tree_map(
        lambda leaf: collectives.ppermute_p.bind(pvary(leaf, names), axis_name=names, perm=pairs), x
    )


def as_pairs(perm: Any, operation: str) -> tuple[tuple[int, int], ...]:
    """The argument `perm` of collectives that send: pairs of integers."""
    try:
        return tuple((operator.index(start), operator.index(end)) for start, end in perm)
    except (TypeError, ValueError):
        raise located(
            TypeError, f"{operation}: perm must be pairs of integers (source, destination), got {shown(perm)}"
        ) from None


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Reorders values along a named axis: position i gets the value of position `perm[i]`."""
    size = axis_size(axis_name)
    try:
        sources = [operator.index(i) for i in finite(perm)]
    except TypeError:
        sources = []
    if sorted(sources) != list(range(size)):
        raise located(
            ValueError,
            f"pshuffle: perm must have each of the positions 0 … {size - 1} once, got {shown(perm)}",
        )
    return ppermute(x, axis_name, [(s, d) for d, s in enumerate(sources)])


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """The value at position `source` of a named axis, for all elements."""
    return tree_map(lambda leaf: index_in_dim(all_gather(leaf, axis_name), source), x)


def index_in_dim(x: Any, index: int) -> Any:
    """x[index] along the first axis."""
    return reshape(slice_axis(x, index, index + 1, 0), aval_of(x).shape[1:])


def all_to_all(
    x: Any,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Exchanges pieces: element i gets piece i, along `split_axis`, of every element's value.

    Args:
        x: an array, or a tree of arrays.
        axis_name: the name.
        axis_index_groups: lists of positions that exchange pieces among each other, instead of all; of equal length.
        split_axis: the axis that is cut; it has the size of the named axis (a multiple of it if `tiled`).
        concat_axis: where the pieces of all elements go.
        tiled: whether axes are cut and joined in place, instead of disappearing and appearing.
    """
    names = _names(axis_name, "all_to_all")
    size, groups = _size_and_groups("all_to_all", names, axis_index_groups)

    def one(leaf):
        leaf = pvary(leaf, names)
        split, concat = split_axis % leaf.aval.ndim, concat_axis % leaf.aval.ndim
        if not tiled:
            return collectives.all_to_all_p.bind(
                leaf, axis_name=names, axis_size=size, split_axis=split, concat_axis=concat, **groups
            )
        shape = leaf.aval.shape
        if shape[split] % size:
            raise located(
                ValueError,
                f"all_to_all: axis {split} of shape {shape} is not divisible by the axis size {size}",
            )
        cut = reshape(leaf, (*shape[:split], size, shape[split] // size, *shape[split + 1 :]))
        # The piece axis is at `split`; let the sender axis appear just before the axis it is joined with.
        exchanged = collectives.all_to_all_p.bind(
            cut, axis_name=names, axis_size=size, split_axis=split, concat_axis=concat, **groups
        )
        joined = list(aval_of(exchanged).shape)
        joined[concat : concat + 2] = [joined[concat] * joined[concat + 1]]
        return reshape(exchanged, joined)

    return tree_map(one, x)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Exchanges a named axis with the axis `axis`, which has its size.

    >>> import purax as px, purax.numpy as jnp
    >>> px.vmap(lambda row: px.lax.pswapaxes(row, "i", 0), axis_name="i")(jnp.arange(4).reshape(2, 2))
    Array([[0, 2],
           [1, 3]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def _groups(groups: Any) -> Any:
    return None if groups is None else tuple(tuple(int(i) for i in finite(group)) for group in finite(groups))


def _size_and_groups(operation: str, names: tuple, groups: Any) -> tuple[int, dict[str, Any]]:
    """How many elements take part together, and the parameter that says which, if not all do."""
    size = axis_size(names)
    if groups is None:
        return size, {}
    found = _groups(groups)
    if sorted(i for group in found for i in group) != list(range(size)) or len(set(map(len, found))) != 1:
        raise located(
            ValueError,
            f"{operation}: axis_index_groups must have each of the positions 0 … {size - 1} in one group, and groups "
            f"of one size; got {shown(groups)}",
        )
    return len(found[0]), {"axis_index_groups": found}
