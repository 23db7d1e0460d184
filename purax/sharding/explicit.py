"""`auto_axes` and `explicit_axes`: functions in which the compiler, or types, decide how arrays lie over a mesh.

Both are made of `free` and `reshard`, operations that change types and places, never values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from purax.core.source import located
from purax.core.specs import AxisType
from purax.interpreters.arguments import name_of, wraps
from purax.primitives.sharding_constraint import free
from purax.sharding.constraints import reshard
from purax.sharding.mesh import get_abstract_mesh, use_abstract_mesh
from purax.tree_util import tree_map


def auto_axes(f: Callable | None = None, /, *, axes: Any = None, out_sharding: Any = None) -> Callable:
    """A function in which the compiler decides how arrays are sharded along axes of the mesh.

    It is the way out where types do not say how a result is sharded over a mesh with axes of type `Explicit`.

    Args:
        f: a function of arrays, or trees of them.
        axes: a name or names of axes of the mesh; all unless given.
        out_sharding: how the results lie: a sharding, a `PartitionSpec` for the mesh in use, or a tree of them that is
            a prefix of the results. The function that is returned takes it too, as a keyword.

    Returns:
        A function like `f`.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.sharding import AxisType, PartitionSpec as P, auto_axes, reshard
    >>> with px.set_mesh(px.make_mesh((1,), ("x",), axis_types=AxisType.Explicit)):
    ...     rows = reshard(jnp.ones((2, 3)), P(None, "x"))
    ...     px.typeof(auto_axes(jnp.matmul, out_sharding=P("x"))(rows, rows.T))
    ShapedArray(float32[2@x,2])
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    names = _names(axes)

    @wraps(f)
    def freed(*args: Any, out_sharding: Any = out_sharding, **kwargs: Any) -> Any:
        if out_sharding is None:
            raise located(
                TypeError,
                f"auto_axes of `{name_of(f)}` needs out_sharding, how its results are sharded along the axes that the "
                "compiler decides about inside",
            )
        mesh = get_abstract_mesh()
        types = {n: AxisType.Auto for n in (mesh.axis_names if names is None else names)}
        with use_abstract_mesh(mesh.update_axis_types(types)):
            args, kwargs = tree_map(lambda x: free(x, names), (args, kwargs))
            results = f(*args, **kwargs)
        return reshard(results, out_sharding)

    return freed


def explicit_axes(f: Callable | None = None, /, *, axes: Any = None, in_sharding: Any = None) -> Callable:
    """A function in which types say how arrays are sharded along axes of the mesh.

    Args:
        f: a function of arrays, or trees of them.
        axes: a name or names of axes of the mesh; all unless given.
        in_sharding: how its arguments lie: a sharding, a `PartitionSpec` for the mesh in use, or a tree of them that is
            a prefix of the arguments. The function that is returned takes it too, as a keyword.

    Returns:
        A function like `f`, of whose results the types say nothing along these axes.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.sharding import PartitionSpec as P, explicit_axes
    >>> with px.set_mesh(px.make_mesh((1,), ("x",))):
    ...     y = explicit_axes(lambda x: print(px.typeof(x * 2)), in_sharding=P("x"))(jnp.ones((2, 3)))
    ShapedArray(float32[2@x,3])
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    names = _names(axes)

    @wraps(f)
    def typed(*args: Any, in_sharding: Any = in_sharding, **kwargs: Any) -> Any:
        if in_sharding is None:
            raise located(
                TypeError,
                f"explicit_axes of `{name_of(f)}` needs in_sharding, how its arguments are sharded along the axes that "
                "types say it of inside",
            )
        mesh = get_abstract_mesh()
        types = {n: AxisType.Explicit for n in (mesh.axis_names if names is None else names)}
        with use_abstract_mesh(mesh.update_axis_types(types)):
            results = f(*reshard(args, in_sharding), **kwargs)
        return tree_map(lambda x: free(x, names), results)

    return typed


def _names(axes: Any) -> tuple[Any, ...] | None:
    return axes if axes is None or isinstance(axes, tuple) else (axes,)
