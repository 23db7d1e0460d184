"""`jax.pmap` on one device: the mapped axis has one entry, and the function runs on it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from purax.core.avals import aval_of
from purax.transforms.arguments import as_positions
from purax.transforms.jit import jit
from purax.transforms.vmap import vmap
from purax.tree_registry import tree_leaves

__all__ = ["pmap"]


def pmap(
    fun: Callable,
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Callable:
    """Runs a function on each entry of an axis, one per device; purax has arrays on one device, so one entry.

    Args:
        fun: the function of one entry.
        axis_name: by which collective operations name the axis.
        in_axes: which axis of each argument is mapped.
        out_axes: where it is in the results.
        static_broadcasted_argnums: arguments that are no arrays.
        devices: which devices; at most one.
        backend: which platform.
        axis_size: the length of the axis.
        donate_argnums: accepted, without effect.

    Returns:
        The mapped function, compiled.
    """
    static = as_positions(static_broadcasted_argnums, "static_broadcasted_argnums")
    name = axis_name if axis_name is not None else "<pmap axis>"

    @functools.wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        fixed = {n % len(args): args[n] for n in static}
        moving = [x for n, x in enumerate(args) if n not in fixed]
        axes = in_axes
        if isinstance(in_axes, tuple | list):
            axes = tuple(a for n, a in enumerate(in_axes) if n not in fixed)
        elif in_axes is None:
            axes = None
        if isinstance(axes, int):
            for leaf in tree_leaves((moving, kwargs)):
                _check_size(aval_of(leaf).shape[axes])
        elif axis_size is not None:
            _check_size(axis_size)

        def call(*values: Any, **keywords: Any) -> Any:
            rest = iter(values)
            full = [fixed[n] if n in fixed else next(rest) for n in range(len(args))]
            return fun(*full, **keywords)

        vectorized = vmap(call, in_axes=axes, out_axes=out_axes, axis_name=name, axis_size=axis_size)
        return jit(vectorized)(*moving, **kwargs)

    return mapped


def _check_size(size: int) -> None:
    if size > 1:
        raise NotImplementedError(
            f"pmap over an axis of length {size}: purax runs programs on one device. Use `vmap` for a batch."
        )
