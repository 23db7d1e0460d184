"""`pmap`: runs a function on several devices, one example of a batch on each.

It is a `shard_map` over a mesh with one axis: the mapped axis of each argument is cut into single examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from purax.api.jit import JitFunction, jit
from purax.api.vmap import check_axes, leaf_axes
from purax.core.avals import aval_of
from purax.core.source import located
from purax.interpreters.arguments import from_front, leaf_error, name_of, require_function, to_array, wraps
from purax.interpreters.staging import checked_results
from purax.primitives.shape.reshaping import reshape
from purax.sharding.mesh import Mesh, PartitionSpec, more_devices
from purax.sharding.shard_map import map_parts
from purax.tree.prefix import flatten_axes
from purax.tree.registry import tree_flatten, tree_unflatten
from purax.xla import client

_DEFAULT_AXIS = "<pmap axis>"


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
    """Runs a function on several devices at once, each with its own example.

    Args:
        fun: the function, of one example.
        axis_name: a name for the mapped axis, for `psum` and the other collective operations inside.
        in_axes: the axis of each argument that runs over the devices, as for `vmap`; None for an argument that all get.
        out_axes: where the axis of the devices goes in the results; None for a result that all devices agree on.
        static_broadcasted_argnums: positions of arguments that are Python values.
        devices: the devices to run on; the first ones there are unless given.
        backend: the platform of the devices.
        axis_size: the size of the mapped axis; needed only where no argument is mapped.
        donate_argnums: positions of arguments whose memory the results may take over.

    Returns:
        A function of batches, compiled for the devices; its results are sharded over them.

    >>> import purax as px, purax.numpy as jnp
    >>> px.pmap(lambda x: x ** 2)(jnp.arange(1.0))
    Array([0.], dtype=float32)
    """
    require_function(fun, "pmap")
    static = frozenset(_numbers(static_broadcasted_argnums))
    axes_of_arguments = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    mapped = (axis_name, axes_of_arguments, out_axes, axis_size)
    over = _Parallel(fun, *mapped, static, _numbers(donate_argnums), devices, backend)

    @wraps(fun)
    def parallel(*args, **kwargs):
        return over.program(args, kwargs)(*args, **kwargs)

    parallel.lower = lambda *args, **kwargs: over.program(args, kwargs).lower(*args, **kwargs)  # type: ignore[attr-defined]
    return parallel


def _numbers(given: int | Iterable[int]) -> tuple[int, ...]:
    return (given,) if isinstance(given, int) else tuple(given)


class _Parallel:
    """The compiled forms of a function under `pmap`, by the structure and the mapped axes of its arguments."""

    def __init__(self, fun, axis_name, in_axes, out_axes, axis_size, static, donated, devices, backend):
        self.fun = fun
        self.name = name_of(fun)
        self.axis_name = _DEFAULT_AXIS if axis_name is None else axis_name
        self.in_axes = in_axes
        self.out_axes = out_axes
        self.axis_size = axis_size
        self.static = static
        self.donated = donated
        self.devices = None if devices is None else list(devices)
        self.backend = backend
        self.programs: dict[Any, JitFunction] = {}
        self.by_types: dict[Any, JitFunction] = {}

    def program(self, args: tuple, kwargs: dict[str, Any]) -> JitFunction:
        """The compiled function for arguments like these."""
        if self.static:
            return self.program_for(args, kwargs)
        try:  # arrays, the most common arguments, are told apart by their types
            types = tuple([x.aval for x in args]) if not kwargs else ()
        except AttributeError:
            types = ()
        if not types:
            leaves, tree = tree_flatten((args, kwargs))
            try:
                types = (tree, *[x.aval for x in leaves])
            except AttributeError:
                return self.program_for(args, kwargs)
        found = self.by_types.get(types)
        if found is None:
            found = self.by_types[types] = self.program_for(args, kwargs)
        return found

    def program_for(self, args: tuple, kwargs: dict[str, Any]) -> JitFunction:
        """The compiled function for arguments like these, found by their structure and the mapped axes."""
        in_axes = self.in_axes
        fixed = from_front(self.static, len(args))
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise located(
                ValueError,
                f"pmap in_axes={in_axes} has {len(in_axes)} entries, but `{self.name}` was called with {len(args)} "
                "positional arguments",
            )
        dynamic = tuple(None if i in fixed else x for i, x in enumerate(args))
        leaves, tree = tree_flatten((dynamic, kwargs))
        if isinstance(in_axes, tuple) and fixed:
            in_axes = tuple(None if i in fixed else axis for i, axis in enumerate(in_axes))
        try:
            values = [to_array(x) for x in leaves]
        except TypeError as error:
            raise leaf_error(self.fun, (dynamic, kwargs), error, to_array, _BY_STATIC) from None
        axes = leaf_axes(in_axes, dynamic, kwargs, tree, leaves, self.name, "pmap")
        axes, size = check_axes(self.fun, values, axes, self.axis_size, (dynamic, kwargs), "pmap")
        key = (tree, tuple(axes), size)
        if key not in self.programs:
            mesh = self.mesh(size)
            options: dict[str, Any] = {
                "static_argnums": tuple(sorted(self.static)),
                "donate_argnums": self.donated or None,
            }
            self.programs[key] = jit(self.mapped(mesh, tuple(axes), tree), **options)
        return self.programs[key]

    def mesh(self, size: int) -> Mesh:
        """The devices that the function runs on."""
        found = self.devices if self.devices is not None else client.devices(self.backend)
        if size > len(found) or (self.devices is not None and size != len(found)):
            raise located(
                ValueError,
                f"pmap of `{self.name}` maps over an axis of size {size}, but there are {len(found)} devices"
                f"{' in `devices`' if self.devices is not None else ''}. Use vmap for more examples than "
                f"devices, or give each device several. {more_devices(size)}",
            )
        return Mesh(np.array(found[:size], object), (self.axis_name,))

    def mapped(self, mesh: Mesh, axes: tuple[int | None, ...], tree: Any) -> Any:
        """The function on batches, before compilation."""
        fun, name, out_axes = self.fun, self.axis_name, self.out_axes
        cut = lambda axis: PartitionSpec() if axis is None else PartitionSpec(*(None,) * axis, name)  # noqa: E731

        @wraps(fun)
        def batched(*args, **kwargs):
            fixed = from_front(self.static, len(args))
            dynamic = tuple(None if i in fixed else x for i, x in enumerate(args))
            leaves = tree_flatten((dynamic, kwargs))[0]
            out_tree: Any = None
            where: list[int | None] = []

            def one(*parts):
                nonlocal out_tree
                examples = [
                    x if axis is None else reshape(x, (*x.shape[:axis], *x.shape[axis + 1 :]))
                    for x, axis in zip(parts, axes, strict=True)
                ]
                new_args, new_kwargs = tree_unflatten(tree, examples)
                new_args = tuple(args[i] if i in fixed else x for i, x in enumerate(new_args))
                results = fun(*new_args, **new_kwargs)
                out, out_tree = tree_flatten(results)
                out = checked_results(out, results, self.name)
                wanted = flatten_axes(
                    "out_axes", out_tree, out_axes, full_name=f"the result of `{self.name}`"
                )
                where.extend(self.result_axis(x, axis) for x, axis in zip(out, wanted, strict=True))
                return [
                    x if axis is None else reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]))
                    for x, axis in zip(map(to_array, out), where, strict=True)
                ]

            out = map_parts(one, mesh, [cut(a) for a in axes], lambda: [cut(a) for a in where], leaves)
            return tree_unflatten(out_tree, out)

        return batched

    def result_axis(self, x: Any, axis: int | None) -> int | None:
        """Where a result gets the axis of the devices, counted from the front."""
        ndim = aval_of(x).ndim + 1
        if axis is not None and not -ndim <= axis < ndim:
            raise located(
                ValueError,
                f"pmap of `{self.name}`: out_axes has {axis} for a result of shape {aval_of(x).shape}, which has "
                f"{ndim} axes with that of the devices",
            )
        return None if axis is None else axis % ndim


_BY_STATIC = "Make it static (`static_broadcasted_argnums`) if the function should see it as it is"
