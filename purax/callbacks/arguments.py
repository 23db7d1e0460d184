"""What the functions that take a callback share: their arguments, and the types of the results that they promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from purax.callbacks.callback import Callback
from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray
from purax.core.source import located
from purax.errors import shown
from purax.interpreters.arguments import to_array
from purax.sharding.shardings import SingleDeviceSharding
from purax.tree.registry import tree_flatten, tree_flatten_with_path, tree_unflatten
from purax.xla import client

_NUMBERS = (bool, int, float, complex, np.generic, np.ndarray)


def check_sharding(sharding: Any, what: str) -> None:
    """Raises unless a callback is to run where it does: in this process, for one of its devices."""
    if sharding is None:
        return
    if not isinstance(sharding, SingleDeviceSharding):
        raise located(
            NotImplementedError,
            f"{what} takes a SingleDeviceSharding as sharding, got {shown(sharding)}. To call the function for "
            "the part on each device, call it in a `purax.shard_map`.",
        )
    if sharding._device.process_index != client.process_index():
        raise located(
            NotImplementedError, f"{what} runs in this process, and {sharding._device} belongs to another"
        )


def check_callable(function: Any, what: str) -> None:
    if not callable(function):
        raise located(
            TypeError,
            f"{what} needs a function to call, got {shown(function)} of type {type(function).__name__}",
        )


def split_arguments(
    function: Callable, args: tuple, kwargs: dict[str, Any], what: str
) -> tuple[Callback, list[Any]]:
    """The callback for a call, and the arrays among its arguments; all other leaves are passed on as they are."""
    leaves, tree = tree_flatten((args, kwargs))
    arrays, fixed = [], []
    for position, leaf in enumerate(leaves):
        if isinstance(leaf, (Array, *_NUMBERS)) and not _is_text(leaf):
            arrays.append(to_array(leaf))
        else:
            fixed.append((position, leaf))
    return Callback(function, tree, fixed, what), arrays


def _is_text(leaf: Any) -> bool:
    return isinstance(leaf, (np.generic, np.ndarray)) and leaf.dtype.kind in "USOMm"


def promised(result_shape_dtypes: Any, what: str) -> tuple[tuple[ShapedArray, ...], Any]:
    """The types of the results, and their structure, from a tree of things with a shape and a dtype."""
    leaves, tree = tree_flatten(result_shape_dtypes)
    avals = []
    for path, leaf in tree_flatten_with_path(result_shape_dtypes)[0]:
        if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
            raise located(
                TypeError,
                f"{what}: result_shape_dtypes{''.join(map(str, path))} must have a shape and a dtype, as "
                f"`purax.ShapeDtypeStruct((3,), jnp.float32)` or an array has; got {shown(leaf)}",
            )
        dtype = dtypes.as_exact_dtype(leaf.dtype)
        if dtypes.as_available_dtype(dtype) is not dtype:
            raise located(
                ValueError,
                f"{what}: result_shape_dtypes{''.join(map(str, path))} cannot have the 64-bit dtype {dtype} when "
                "`jax_enable_x64` is disabled",
            )
        avals.append(ShapedArray(tuple(leaf.shape), dtype))
    return tuple(avals), tree


def rebuild(tree: Any, results: list[Any]) -> Any:
    return tree_unflatten(tree, results)
