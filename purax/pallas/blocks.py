"""`Operand`: an array of a kernel and how it is cut into blocks, checked; which block a step of the grid works on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax import lax
from purax import numpy as jnp
from purax.api.vmap import vmap
from purax.core import dtypes, source
from purax.core.avals import ShapedArray, aval_of
from purax.core.jaxpr import ClosedJaxpr, Literal, dependent_results, eval_jaxpr
from purax.core.source import Location, located
from purax.core.trace import eager_trace, using
from purax.errors import shown
from purax.interpreters.staging import stage
from purax.pallas.refs import KernelRef, uninitialized
from purax.pallas.slices import Slice
from purax.pallas.specs import BlockSpec, BoundedSlice, Element, Indirect, Squeezed, no_block_spec

INT32 = np.dtype(np.int32)


def location_of(function: Callable) -> Location | None:
    """Where a function is defined, looking through `functools.partial`."""
    while hasattr(function, "func") and not hasattr(function, "__code__"):
        function = function.func
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if code is None:
        code = getattr(vars(type(function)).get("__call__"), "__code__", None)
    return None if code is None else Location(code.co_filename, code.co_firstlineno, code.co_name)


class Dim:
    """One dimension of an operand.

    Attributes:
        block: how many elements of it a block has.
        by_element: whether the index map returns the first element, not the number of the block.
        is_seen: whether the kernel has it.
        before, after: how many elements are put around it.
    """

    def __init__(self, given: Any, size: int):
        self.size = size
        self.is_seen = not (given is None or isinstance(given, Squeezed))
        self.by_element = isinstance(given, (Element, BoundedSlice))
        self.is_bounded = isinstance(given, BoundedSlice)
        self.block = 1 if not self.is_seen else given if isinstance(given, int) else given.block_size
        self.before, behind = given.padding if isinstance(given, Element) else (0, 0)
        self.padded = -(-(self.before + size + behind) // self.block) * self.block
        self.after = self.padded - self.before - size

    def start(self, index: Any) -> Any:
        """The first element of a block."""
        return index if self.by_element or self.block == 1 else index * np.int32(self.block)


class Operand:
    """An input or an output, and how it is cut into blocks.

    Attributes:
        aval: the type of the array.
        dims: its dimensions.
        index_map: the program (positions in the grid, prefetched scalars) -> one integer for each dimension.
        block_aval: the type of what the kernel sees.
        memory_space: where the block is.
        label: how messages call it.
    """

    def __init__(
        self,
        aval: ShapedArray,
        spec: Any,
        grid: Sequence[Any],
        prefetched: Sequence[ShapedArray],
        label: str,
        kernel: str,
    ):
        self.aval = ShapedArray(aval.shape, aval.dtype)
        self.label = label
        if spec is no_block_spec or spec is None:
            spec = BlockSpec()
        if not isinstance(spec, BlockSpec):
            raise located(
                TypeError,
                f"pallas_call of {kernel}: the spec for {label} must be a BlockSpec, got {shown(spec)} of type "
                f"{type(spec).__name__}",
            )
        self.memory_space = spec.memory_space
        self.spec = spec
        given = aval.shape if spec.block_shape is None else spec.block_shape
        if len(given) != aval.ndim:
            raise located(
                ValueError,
                f"pallas_call of {kernel}: the block shape {given} for {label} has {len(given)} dimensions, the "
                f"array, of shape {aval.shape}, has {aval.ndim}; give one size for each dimension, None for "
                "those that the kernel does not see",
            )
        for each in given:
            if isinstance(each, Indirect):
                raise located(
                    NotImplementedError,
                    f"pallas_call of {kernel}: Indirect in the block shape of {label} is not supported; read the "
                    "whole array, `BlockSpec(memory_space=pl.ANY)`, at an array of positions in the kernel",
                )
        self.is_whole = spec.block_shape is None
        self.dims = [
            Dim(size if isinstance(size, int) else size, n) for size, n in zip(given, aval.shape, strict=True)
        ]
        if self.is_whole:
            for dim in self.dims:
                dim.block = max(dim.block, 1)
        shape = [dim.block if dim.size or not self.is_whole else 0 for dim in self.dims if dim.is_seen]
        self.block_aval = ShapedArray(tuple(shape), aval.dtype)
        self.index_map = self._record(spec, grid, prefetched, kernel)
        self._components: dict[Any, Any] = {}

    @property
    def padding(self) -> list[tuple[int, int]]:
        return [(dim.before, dim.after) for dim in self.dims]

    @property
    def padded_shape(self) -> tuple[int, ...]:
        return tuple(dim.padded for dim in self.dims)

    def _record(
        self, spec: BlockSpec, grid: Sequence[Any], prefetched: Sequence[ShapedArray], kernel: str
    ) -> ClosedJaxpr:
        avals = [*(ShapedArray((), INT32) for _ in grid), *prefetched]
        count = len(self.dims)
        if spec.index_map is None or self.is_whole:
            return stage(lambda *_: [np.int32(0)] * count, avals, "index map")
        function = spec.index_map
        where = location_of(function)

        def fail(kind: type, text: str) -> BaseException:
            return source.located(
                kind, f"pallas_call of {kernel}: the index map for {self.label} {text}", at=where
            )

        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            signature = None
        if signature is not None:
            try:
                signature.bind(*avals)
            except TypeError as error:
                takes = f"{len(grid)} of them, one for each axis of the grid"
                if prefetched:
                    takes += f", and {len(prefetched)} prefetched inputs"
                raise fail(
                    TypeError,
                    f"is called with {len(avals)} arguments, {takes}, but it takes {signature}: {error}",
                ) from None

        def flat(*values):
            ids, rest = values[: len(grid)], values[len(grid) :]
            refs = [KernelRef(x, f"prefetched input {i}") for i, x in enumerate(rest)]
            result = function(*ids, *refs)
            entries = list(result) if isinstance(result, (tuple, list)) else [result]
            if len(entries) != count:
                raise fail(
                    ValueError,
                    f"must return {count} integers, one for each dimension of the block shape {spec.block_shape}, "
                    f"and returns {len(entries)}",
                )
            return [self._entry(x, i, fail) for i, x in enumerate(entries)]

        return stage(flat, avals, getattr(function, "__name__", "index map"))

    def _entry(self, x: Any, position: int, fail: Callable) -> Any:
        dim = self.dims[position]
        if isinstance(x, Slice) and dim.by_element:
            x = x.start
        elif isinstance(x, Slice) or dim.is_bounded:
            want = "pl.ds(start, size)" if dim.is_bounded else "an integer"
            raise fail(TypeError, f"must return {want} for dimension {position}, got {shown(x)}")
        if isinstance(x, (bool, np.bool_)):
            x = int(x)
        if isinstance(x, (int, np.integer)):
            return np.int32(x)
        try:
            aval = aval_of(x) if hasattr(x, "aval") else aval_of(jnp.asarray(x))
        except TypeError:
            raise fail(
                TypeError, f"must return an integer for dimension {position}, got {shown(x)}"
            ) from None
        if aval.shape != () or not dtypes.issubdtype(aval.dtype, np.integer):
            raise fail(
                TypeError,
                f"must return an integer for dimension {position}, got {aval.str_short()}; divide with `//`",
            )
        return x if aval.dtype == INT32 and not aval.weak_type else lax.convert_element_type(x, INT32)

    def indices(self, ids: Sequence[Any], prefetched: Sequence[Any]) -> list[Any]:
        """The entries of the index map at a position."""
        return eval_jaxpr(self.index_map.jaxpr, self.index_map.consts, *ids, *prefetched)

    def component(self, position: int, grid: Sequence[Any]) -> tuple[int, np.ndarray] | int | None:
        """What the index of a dimension is: an axis of the grid and its value for each position along it, a constant,
        or None for everything else.
        """
        if position not in self._components:
            self._components[position] = self._component(position, grid)
        return self._components[position]

    def _component(self, position: int, grid: Sequence[Any]) -> tuple[int, np.ndarray] | int | None:
        jaxpr = self.index_map.jaxpr
        out = jaxpr.outvars[position]
        if type(out) is Literal:
            return int(out.val)
        if self.index_map.consts:
            return None
        axes = []
        for i in range(len(jaxpr.invars)):
            if dependent_results(jaxpr, [i == j for j in range(len(jaxpr.invars))])[position]:
                axes.append(i)
        if len(axes) != 1 or axes[0] >= len(grid) or not isinstance(grid[axes[0]], int):
            return None
        (axis,) = axes
        steps = np.arange(grid[axis], dtype=np.int32)
        if out is jaxpr.invars[axis]:
            return axis, steps
        single = jaxpr.replace(outvars=[out])
        filler = [np.zeros(v.aval.shape, v.aval.dtype) for v in jaxpr.invars]

        def at(i):
            return eval_jaxpr(single, (), *[i if k == axis else x for k, x in enumerate(filler)])[0]

        try:
            with using(eager_trace()):
                values = np.asarray(vmap(at)(steps)) if len(steps) else steps
        except Exception:  # an index map that cannot be evaluated on its own is taken as it is
            return None
        return axis, values

    def depends(self, axis: int) -> bool:
        """Whether the block depends on the position along an axis of the grid."""
        jaxpr = self.index_map.jaxpr
        return any(dependent_results(jaxpr, [j == axis for j in range(len(jaxpr.invars))]))

    def pad(self, x: Any) -> Any:
        """The array with what its blocks overlap, which is not initialized."""
        if not any(map(any, self.padding)):
            return x
        if any(n == 0 for n in x.shape):
            return uninitialized(ShapedArray(self.padded_shape, x.dtype))
        fill = lax.squeeze(uninitialized(ShapedArray((1,), x.dtype)), (0,))
        return lax.pad(x, fill, [(a, b, 0) for a, b in self.padding])

    def unpad(self, x: Any) -> Any:
        """The array without what `pad` put around it."""
        if not any(map(any, self.padding)):
            return x
        return lax.slice(x, [d.before for d in self.dims], [d.before + d.size for d in self.dims])
