"""`vmap`: a function written for one example runs on a batch. What users write about axes is read and checked here."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from purax.api import vmappable
from purax.core import purity_hook, source
from purax.core.avals import aval_of
from purax.core.rewriting_hook import record_or_rewrite
from purax.core.source import located
from purax.errors import shown
from purax.interpreters import plain_numbers
from purax.interpreters.arguments import (
    argument_name,
    leaf_error,
    name_of,
    parameter_names,
    require_function,
    to_array,
    wraps,
)
from purax.interpreters.staging import checked_results
from purax.interpreters.vmap import batch_flat, to_axis
from purax.primitives.shape.broadcasting import reduce_sum
from purax.references import cells
from purax.tree.prefix import flatten_axes
from purax.tree.registry import tree_flatten, tree_flatten_with_path, tree_unflatten

P = ParamSpec("P")
R = TypeVar("R")


def vmap(
    fun: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
    sum_match: bool = False,
) -> Callable[P, Any]:
    """Runs a function written for one example on a whole batch.

    Args:
        fun: the function.
        in_axes: the axis of each argument that runs over the batch: an integer for all, or a tuple with an entry for
            each positional argument: an integer, None (the argument is the same for the whole batch), or a tree of
            those that is a prefix of the argument. Keyword arguments are batched over axis 0.
        out_axes: where the batch axis stands in the results, likewise; None for results that are the same for all.
        axis_name: a name for the batch axis, for collective operations such as `purax.lax.psum`.
        axis_size: the size of the batch, needed only if no argument has a batch axis.
        spmd_axis_name: the axis of a mesh, or a tuple of them, that the batch axis is sharded over where the function
            says how values are sharded: in `with_sharding_constraint` and `shard_map`.
        sum_match: whether a result that differs between examples, but whose `out_axes` is None, is their sum, instead
            of an error.

    Returns:
        The function of batches.

    >>> import purax as px, purax.numpy as jnp
    >>> px.vmap(jnp.dot, in_axes=(0, None))(jnp.ones((2, 3)), jnp.arange(3.0))
    Array([3., 3.], dtype=float32)
    """
    require_function(fun, "vmap")
    name = name_of(fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    is_spec = type(in_axes) in {entry.spec_type for entry in vmappable.containers.values()}
    if not (in_axes is None or is_spec or isinstance(in_axes, (int, tuple)) or hasattr(in_axes, "__index__")):
        raise TypeError(
            f"vmap in_axes must be an int, None, or a tuple with an entry per argument, got {shown(in_axes)}"
        )

    if isinstance(spmd_axis_name, list):
        spmd_axis_name = tuple(spmd_axis_name)
    if not (spmd_axis_name is None or isinstance(spmd_axis_name, (str, tuple))):
        raise TypeError(
            "vmap spmd_axis_name must be the name of an axis of a mesh, or a tuple of them, got "
            f"{shown(spmd_axis_name)}"
        )

    @wraps(fun)
    def vectorized(*args, **kwargs):
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise located(
                ValueError,
                f"vmap in_axes={shown(in_axes)} has {len(in_axes)} entries, but `{name}` was called with "
                f"{len(args)} positional arguments",
            )
        if vmappable.containers and not getattr(fun, "of_slices", False):
            options = {"axis_name": axis_name, "axis_size": axis_size, "spmd_axis_name": spmd_axis_name}
            return vmappable.vectorize(vmap, fun, in_axes, out_axes, args, kwargs, options)
        leaves, tree = tree_flatten((args, kwargs))
        axes = leaf_axes(in_axes, args, kwargs, tree, leaves, name)
        batched = BatchedCells(leaves, axes, name) if cells.has_cells(leaves) else None
        if batched is not None:
            leaves, axes = batched.arrays, batched.axes
        # What has no batch axis is passed as it is: it may be a Python number, or not an array at all. NumPy arrays
        # become ours, which can be indexed by traced values; programs for JAX expect that they stay.
        stays = plain_numbers.stay
        try:
            values = [
                x if axis is None and (stays or not isinstance(x, (np.ndarray, np.generic))) else to_array(x)
                for x, axis in zip(leaves, axes, strict=True)
            ]
        except (TypeError, OverflowError) as error:
            raise leaf_error(fun, (args, kwargs), error, to_array) from None
        axes, size = check_axes(fun, values, axes, axis_size, (args, kwargs))
        out_tree = None

        def flat(function, *xs):
            nonlocal out_tree
            if batched is not None:
                xs = batched.close(xs)
            new_args, new_kwargs = tree_unflatten(tree, xs)
            results = purity_hook.call(function, new_args, new_kwargs)
            out_leaves, out_tree = tree_flatten(results)
            checked = checked_results(out_leaves, results, name)
            return checked if batched is None else [*checked, *batched.new_contents()]

        out, result_axes = record_or_rewrite(
            lambda function: batch_flat(
                functools.partial(flat, function), values, axes, size, axis_name, spmd_axis_name
            ),
            fun,
        )
        if batched is not None:
            count = out_tree.num_leaves
            batched.put(out[count:], result_axes[count:], size)
            out, result_axes = out[:count], result_axes[:count]
        wanted = _result_axes(out_axes, out_tree, len(out))
        placed = []
        for i, (y, axis, where) in enumerate(zip(out, result_axes, wanted, strict=True)):
            if where is None:
                if axis is not None and sum_match:
                    y = reduce_sum(y, (axis,))
                elif axis is not None:
                    raise located(
                        ValueError,
                        f"at vmap out_axes, result {_path(out_tree, i)} of `{name}`: got axis spec None but output "
                        f"was batched on axis {axis}, that is, it is different for each example; give the position "
                        "of its batch axis instead",
                    )
                placed.append(to_array(y))
            else:
                placed.append(to_axis(y, axis, _position(where, y, axis, out_tree, i, name), size))
        return tree_unflatten(out_tree, placed)

    return vectorized


class BatchedCells:
    """The cells among the arguments of a vectorized function that have a batch axis; others it sees as they are.

    Attributes:
        arrays: the leaves of the arguments, with the contents of these cells in their place.
        axes: the batch axis of each.
    """

    def __init__(self, leaves: Sequence[Any], axes: Sequence[int | None], name: str):
        same = [axis is None and cells.kind_of(x) is not None for x, axis in zip(leaves, axes, strict=True)]
        self._same = [x if s else None for x, s in zip(leaves, same, strict=True)]
        opened = cells.Opened([None if s else x for x, s in zip(leaves, same, strict=True)], name)
        self.arrays, self._layout, self._cells = opened.arrays, opened.layout, opened.cells
        self.axes = opened.spread(axes)
        self._cell_axes: list[Any] = [
            axis for axis, entry in zip(axes, opened.layout, strict=True) if entry is not None
        ]

    def close(self, xs: Sequence[Any]) -> list[Any]:
        """The leaves that the function gets."""
        leaves, self._own = cells.close(self._layout, xs)
        return [x if same is None else same for x, same in zip(leaves, self._same, strict=True)]

    def new_contents(self) -> list[Any]:
        """What the function left in its cells."""
        self._structures = [cells.the_kind_of(cell).structure(cell) for cell in self._own]
        contents = [cells.read(cell) for cell in self._own]
        self._counts = [len(arrays) for arrays in contents]
        return [x for arrays in contents for x in arrays]

    def put(self, results: Sequence[Any], axes: Sequence[int | None], size: int) -> None:
        """Puts new contents into the caller's cells, with the batch axes where they were."""
        rest = iter(zip(results, axes, strict=True))
        for cell, where, structure, count in zip(
            self._cells, self._cell_axes, self._structures, self._counts, strict=True
        ):
            arrays = []
            for _ in range(count):
                y, axis = next(rest)
                ndim = aval_of(y).ndim + (axis is None)
                arrays.append(to_axis(y, axis, operator.index(where) % ndim, size))
            cells.put(cell, structure, arrays)


def leaf_axes(in_axes, args, kwargs, tree, leaves, name, caller: str = "vmap") -> list[int | None]:
    """The batch axis of every leaf of (args, kwargs); errors speak of the `caller`."""
    if type(in_axes) is int:
        if not kwargs:
            return [in_axes] * len(leaves)
        return [*([in_axes] * len(tree_flatten(args)[0])), *([0] * len(tree_flatten(kwargs)[0]))]
    if type(in_axes) is tuple and not kwargs and len(leaves) == len(args) == len(in_axes):
        for x, leaf, axis in zip(args, leaves, in_axes, strict=True):
            if x is not leaf or not (axis is None or type(axis) is int):
                break
        else:  # arguments that are arrays, not trees, have an axis each
            return list(in_axes)
    prefix = (in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args), {key: 0 for key in kwargs})
    axes = _by_leaf("in_axes", tree, prefix, f"the arguments of `{name}`")
    for axis in axes:
        if axis is not None and not hasattr(axis, "__index__"):
            raise located(TypeError, f"{caller} in_axes must consist of ints and None, got {shown(axis)}")
    return axes


def _by_leaf(name: str, tree: Any, axes: Any, full_name: str) -> list[int | None]:
    """Axes given as a prefix of a tree, one for each leaf."""
    try:
        return flatten_axes(name, tree, axes, full_name=full_name)
    except ValueError as error:
        raise source.with_location(error) from None


def check_axes(fun, values, axes, axis_size, arguments, caller: str = "vmap") -> tuple[list[int | None], int]:
    """Batch axes counted from the front, and the size that they all have; errors speak of the `caller`."""
    checked: list[int | None] = []
    if axis_size is not None and (not hasattr(axis_size, "__index__") or axis_size < 0):
        raise located(
            TypeError, f"{caller} axis_size must be a natural number or None, got {shown(axis_size)}"
        )
    sizes = set() if axis_size is None else {axis_size}
    for i, (x, axis) in enumerate(zip(values, axes, strict=True)):
        if axis is None:
            checked.append(None)
            continue
        axis = operator.index(axis)
        ndim = x.aval.ndim
        if not -ndim <= axis < ndim:
            raise located(
                ValueError,
                f"{caller} was requested to map its argument along axis {axis}, which implies that its rank should be "
                f"at least {axis + 1 if axis >= 0 else -axis}, but is only {ndim} (its shape is {x.aval.shape}): "
                f"argument {_argument(fun, arguments, i)} of `{name_of(fun)}`. Use None in in_axes for arguments "
                "without a batch axis",
            )
        checked.append(axis % ndim)
        sizes.add(x.aval.shape[axis])
    if not sizes:
        raise located(
            ValueError,
            f"{caller} must have at least one non-None value in in_axes or axis_size must be specified: "
            f"`{name_of(fun)}` has no argument with a batch axis",
        )
    if len(sizes) > 1:
        lines = "".join(
            f"\n  * one axis had size {x.aval.shape[axis]}: axis {axis} of argument {_argument(fun, arguments, i)} "
            f"of type {x.aval.str_short(short_dtypes=False)};"
            for i, (x, axis) in enumerate(zip(values, checked, strict=True))
            if axis is not None
        )
        given = f"\n  * the `axis_size` argument was {axis_size};" if axis_size is not None else ""
        fault = f"{caller} got inconsistent sizes for array axes to be mapped"
        raise located(ValueError, f"{fault} in `{name_of(fun)}`:{given}{lines}")
    return checked, sizes.pop()


def _argument(fun, arguments, index: int) -> str:
    path, _ = tree_flatten_with_path(arguments)[0][index]
    return argument_name(path, parameter_names(fun))


def _path(tree, index: int) -> str:
    path, _ = tree_flatten_with_path(tree_unflatten(tree, range(tree.num_leaves)))[0][index]
    return "".join(map(str, path)) or "0"


def _result_axes(out_axes, out_tree, count: int) -> list[int | None]:
    if type(out_axes) is int:
        return [out_axes] * count
    return _by_leaf("out_axes", out_tree, out_axes, "the result")


def _position(where, y, axis, out_tree, index: int, name: str) -> int:
    """`where` counted from the front in the batched result."""
    ndim = aval_of(y).ndim + (axis is None)
    if not hasattr(where, "__index__"):
        raise located(
            TypeError,
            f"vmap out_axes must be an int, None, or a tree of them as the result, got {shown(where)}",
        )
    where = operator.index(where)
    if not -ndim <= where < ndim:
        raise located(
            ValueError,
            f"vmap out_axes={where} does not fit result {_path(out_tree, index)} of `{name}`, which has "
            f"{ndim} axes with its batch axis",
        )
    return where % ndim
