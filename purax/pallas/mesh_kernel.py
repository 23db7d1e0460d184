"""`kernel` and `core_map`: kernels over the cores of a device instead of a grid, on whole arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from purax.core.source import located
from purax.errors import shown
from purax.pallas.call import pallas_call
from purax.pallas.specs import BlockSpec, MemorySpace
from purax.ref import Ref
from purax.tree.registry import tree_flatten, tree_unflatten

_UNSET: Any = object()


def kernel(
    body: Any = _UNSET,
    out_type: Any = (),
    *,
    mesh: Any,
    scratch_types: Any = (),
    compiler_params: Any = None,
    interpret: Any = False,
    cost_estimate: Any = None,
    debug: bool = False,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
) -> Any:
    """A kernel on whole arrays that runs once for each core of a mesh.

    Args:
        body: a function of references to the inputs, the outputs and the scratch memory. Without it, a decorator.
        out_type: the types of the results.
        mesh: the cores; its `shape` is the grid.
        scratch_types: types of scratch memory; a dict of them is passed by keyword.
        compiler_params, interpret, cost_estimate, debug, name, metadata: as in `pallas_call`.

    Returns:
        A function of arrays. References among its arguments are read and written.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> from purax.pallas import tpu
    >>> cores = tpu.create_tensorcore_mesh("core", num_cores=1)
    >>> @pl.kernel(out_type=px.ShapeDtypeStruct((2,), jnp.float32), mesh=cores)
    ... def double(x_ref, o_ref):
    ...     o_ref[...] = x_ref[...] * 2
    >>> double(jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """
    if body is _UNSET:
        return lambda function: kernel(
            function,
            out_type,
            mesh=mesh,
            scratch_types=scratch_types,
            compiler_params=compiler_params,
            interpret=interpret,
            cost_estimate=cost_estimate,
            debug=debug,
            name=name,
            metadata=metadata,
        )
    if isinstance(body, Sequence) or isinstance(mesh, Sequence):
        raise located(
            NotImplementedError,
            "kernel: several bodies for several meshes run on different kinds of cores, which purax does not have; "
            "call a kernel for each",
        )
    if not callable(body):
        raise located(TypeError, f"kernel: the body must be a function, got {shown(body)}")
    grid = tuple(int(n) for n in grid_of(mesh))
    return _over(body, out_type, grid, scratch_types, compiler_params, interpret, debug, name)


def grid_of(mesh: Any) -> Sequence[int]:
    """The sizes of a mesh of cores."""
    if mesh is None:
        return ()
    shape = getattr(mesh, "shape", None)
    if shape is None:
        raise located(
            TypeError,
            f"the mesh must be a mesh of cores, such as `tpu.create_tensorcore_mesh`, got {shown(mesh)}",
        )
    return list(shape.values()) if isinstance(shape, Mapping) else list(shape)


def _over(body, out_type, grid, scratch_types, compiler_params, interpret, debug, name) -> Callable[..., Any]:
    whole = BlockSpec(memory_space=MemorySpace.ANY)

    @functools.wraps(body)
    def call(*args: Any) -> Any:
        leaves, tree = tree_flatten(args)
        held = [i for i, x in enumerate(leaves) if isinstance(x, Ref)]
        values = [x[...] if isinstance(x, Ref) else x for x in leaves]
        _, out_tree = tree_flatten(out_type)
        count = out_tree.num_leaves
        types = tree_flatten(out_type)[0]
        written = [values[i] for i in held]

        def run(*refs: Any, **named: Any) -> None:
            inputs = list(refs[: len(values)])
            outs = refs[len(values) : len(values) + count]
            for i, ref in zip(held, refs[len(values) + count :], strict=False):
                inputs[i] = ref
            rest = refs[len(values) + count + len(held) :]
            results = tree_unflatten(out_tree, outs)
            results = tuple(results) if isinstance(results, (tuple, list)) else (results,)
            return body(*tree_unflatten(tree, inputs), *results, *rest, **named)

        functools.update_wrapper(run, body)
        results = pallas_call(
            run,
            [*types, *(_like(x) for x in written)],
            grid=grid,
            in_specs=[whole] * len(values),
            out_specs=[whole] * (count + len(held)),
            scratch_shapes=scratch_types,
            input_output_aliases={i: count + k for k, i in enumerate(held)},
            compiler_params=compiler_params,
            interpret=interpret,
            debug=debug,
            name=name,
        )(*values)
        for i, value in zip(held, results[count:], strict=True):
            leaves[i][...] = value
        return tree_unflatten(out_tree, results[:count])

    return call


class _like:
    def __init__(self, x: Any):
        self.shape, self.dtype = x.shape, x.dtype


def core_map(
    mesh: Any,
    *,
    compiler_params: Any = None,
    interpret: bool = False,
    debug: bool = False,
    cost_estimate: Any = None,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
    scratch_shapes: Any = (),
) -> Callable[[Callable[..., None]], None]:
    """A decorator that runs the function below it at once, for each core of a mesh; it works on references around it.

    Args:
        mesh: the cores.
        compiler_params, interpret, debug, cost_estimate, name, metadata, scratch_shapes: as in `pallas_call`.

    >>> from purax import pallas as pl
    >>> pl.core_map.__name__
    'core_map'
    """

    def decorated(function: Callable[..., None]) -> None:
        found = _references_in(function)

        def body(*refs: Any, **named: Any) -> None:
            _with_cells(function, found, refs[: len(found)], refs[len(found) :], named)

        functools.update_wrapper(body, function)
        _over(body, (), tuple(grid_of(mesh)), scratch_shapes, compiler_params, interpret, debug, name)(*found)

    return decorated


def _references_in(function: Callable) -> list[Ref]:
    """The references that a function holds in its closure."""
    found: list[Ref] = []
    for cell in getattr(function, "__closure__", None) or ():
        leaves = tree_flatten(cell.cell_contents)[0]
        found.extend(x for x in leaves if isinstance(x, Ref) and not any(x is y for y in found))
    return found


def _with_cells(function, found, refs, scratch, named) -> None:
    """Calls a function with other references in its closure."""
    cells = getattr(function, "__closure__", None) or ()
    before = [cell.cell_contents for cell in cells]

    def swap(x):
        return next((ref for old, ref in zip(found, refs, strict=True) if old is x), x)

    try:
        for cell, held in zip(cells, before, strict=True):
            leaves, tree = tree_flatten(held)
            if any(isinstance(x, Ref) for x in leaves):
                cell.cell_contents = tree_unflatten(tree, [swap(x) for x in leaves])
        function(*scratch, **named)
    finally:
        for cell, held in zip(cells, before, strict=True):
            cell.cell_contents = held
