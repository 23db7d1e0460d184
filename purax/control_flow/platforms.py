"""`platform_dependent`: programs that differ by what they are compiled for.

Which of them runs is known when the program is lowered. All are traced, differentiated and vectorized; only the one for
the platform is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.control_flow.bodies import arrays_in, stage_tree
from purax.control_flow.branches import bind_branches, same_results
from purax.core import source
from purax.core.avals import ShapedArray
from purax.core.primitive import Primitive
from purax.core.trace import current
from purax.errors import shown
from purax.execution.eager import eager
from purax.execution.placement import MeshPlace, place
from purax.tree.registry import tree_flatten, tree_unflatten
from purax.xla import client
from purax.xla.stablehlo import Value

_INT32 = np.dtype(np.int32)
_ALIASES = {"gpu": ("cuda", "rocm"), "cuda": ("gpu",)}  # programs for a device of CUDA are for "gpu"


class KnownIndex(Value):
    """A scalar that is a constant of the program."""

    __slots__ = ("known",)


class PlatformIndex(Primitive):
    """The number of the entry of `platforms` that names the platform of the program; one None stands for all others."""

    name = "platform_index"

    def infer(self, *, platforms):
        return ShapedArray((), _INT32)

    def host(self, *, platforms):
        return np.array(index_of(platforms, client.platform_of(client.default_device())), _INT32)

    def lower(self, builder, *, platforms):
        index = index_of(platforms, builder.module.platform)
        constant = builder.constant(index, ShapedArray((), _INT32))
        result = KnownIndex(constant.name, constant.aval)
        result.known = index
        return result


platform_index_p = PlatformIndex()


def index_of(platforms: Sequence[str | None], platform: str) -> int:
    """Which entry is for a platform; an error if none is."""
    for i, name in enumerate(platforms):
        if name is not None and (name == platform or platform in _ALIASES.get(name, ())):
            return i
    if None in platforms:
        return platforms.index(None)
    raise source.located(
        NotImplementedError,
        f"platform_dependent has no function for the platform {shown(platform)}, only for "
        f"{', '.join(filter(None, platforms))}; give one, or `default=`",
    )


def platform_dependent(*args: Any, default: Callable | None = None, **per_platform: Callable) -> Any:
    """Calls one of several functions, by what the program is compiled for.

    Args:
        *args: the arguments, arrays or trees of arrays.
        default: the function for platforms that are not named.
        **per_platform: functions for `cpu`, `cuda`, `rocm`, `gpu` (either of those) or `tpu`, with results of one type.

    Returns:
        The result of the function for the platform.

    >>> import purax as px
    >>> px.lax.platform_dependent(3.0, cpu=lambda x: x + 1, default=lambda x: x)
    Array(4., dtype=float32, weak_type=True)
    """
    functions = [*per_platform.values(), *(() if default is None else (default,))]
    platforms = (*per_platform, *(() if default is None else (None,)))
    if not functions:
        raise source.located(
            ValueError, "platform_dependent needs a function for some platform, or `default=`"
        )
    leaves, tree = tree_flatten(args)
    values = arrays_in(leaves, tree, "platform_dependent: args")
    names = [f"the function for {name or 'other platforms'}" for name in platforms]
    if current.trace is eager:
        where = place(values, "platform_dependent")[0]
        platform = where.platform if isinstance(where, MeshPlace) else client.platform_of(where)
        chosen = index_of(platforms, platform)
        functions, names, platforms = [functions[chosen]], [names[chosen]], (platforms[chosen],)
    staged = [
        stage_tree(f, tree, [x.aval for x in values], f"platform_dependent: {name}")
        for f, name in zip(functions, names, strict=True)
    ]
    programs, out_tree = same_results(staged, functions, names, "platform_dependent")
    index = np.zeros((), np.int32) if current.trace is eager else platform_index_p.bind(platforms=platforms)
    return tree_unflatten(out_tree, bind_branches(index, programs, values))
