"""A mode in which kernels run step by step in Python, and every access to memory is checked.

It finds indices out of bounds, reads of memory that nobody wrote, and races between steps of the grid that may run at
the same time; errors name the line of the kernel. It needs concrete arrays, so it computes nothing that is traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax import numpy as jnp
from purax.config import config
from purax.core.source import located
from purax.core.trace import Tracer
from purax.errors import GridRace, UninitializedRead
from purax.pallas import indexing, settings
from purax.pallas.blocks import Operand
from purax.pallas.context import Frame, step_of
from purax.pallas.grid_program import steps_of
from purax.pallas.refs import KernelRef, uninitialized
from purax.scopes import Scope


class _Mode:
    def __init__(self, parallel: Any):
        self.parallel = parallel


class checking(Scope):
    """Inside the `with` block kernels are run step by step, and what they read and write is checked.

    Args:
        parallel: the axes of the grid along which steps may run at the same time: True for all, as on a GPU, a tuple of
            axes, or None for what `compiler_params.dimension_semantics` says, and none without it.

    Raises:
        IndexError: where an index is out of bounds.
        UninitializedRead: where memory is read that nobody wrote.
        GridRace: where two steps that may run at the same time use the same memory, and one of them writes it.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax import pallas as pl
    >>> def sum_up(x_ref, o_ref):
    ...     @pl.when(pl.program_id(0) == 0)
    ...     def _():
    ...         o_ref[0] = 0.0
    ...     o_ref[0] += x_ref[0]
    >>> one, same = pl.BlockSpec((1,), lambda i: i), pl.BlockSpec((1,), lambda i: 0)
    >>> total = pl.pallas_call(
    ...     sum_up, px.ShapeDtypeStruct((1,), jnp.float32), grid=(3,), in_specs=[one], out_specs=same
    ... )
    >>> with pl.checking():
    ...     total(jnp.ones(3))
    Array([3.], dtype=float32)
    >>> with pl.checking(parallel=True):
    ...     try:
    ...         total(jnp.ones(3))
    ...     except pl.GridRace as error:
    ...         print(str(error)[:60])
    steps (0,) and (1,) of the grid may run at the same time, an
    """

    def __init__(self, parallel: bool | Sequence[int] | None = None):
        self._mode = _Mode(parallel if parallel is None or isinstance(parallel, bool) else tuple(parallel))

    def enter(self, entered: list[Any]) -> None:
        self._before = settings.checks.value
        entered.append(self)
        settings.checks.set(self._mode)

    def leave(self, entered: list[Any]) -> None:
        del entered[:]
        settings.checks.set(self._before)


def is_on(interpret: Any) -> bool:
    """Whether kernels are checked now."""
    return settings.checks.value is not None or bool(getattr(interpret, "detect_races", False))


class _Memory:
    """An array, with what is known of each element.

    Attributes:
        array: the elements.
        written: whether each was written.
        writer, reader: the number of the step that wrote or read each last, -1 for none.
    """

    def __init__(self, array: np.ndarray, is_initialized: bool, label: str):
        self.array = array.copy()
        self.written = np.full(array.shape, is_initialized)
        self.label = label
        self.writer = np.full(array.shape, -1)
        self.reader = np.full(array.shape, -1)


class _Races:
    """Which steps of the grid may run at the same time."""

    def __init__(self, steps: list[tuple[int, ...]], parallel: Sequence[int]):
        self.steps, self.parallel, self.now = steps, list(parallel), 0

    def check(self, memory: _Memory, where: np.ndarray, accessed: np.ndarray, did: str) -> None:
        """Raises if a step that may run at the same time accessed any of the elements `where`."""
        if not self.parallel:
            return
        for number in np.unique(accessed[where]):
            if number < 0 or number == self.now:
                continue
            then, now = self.steps[number], self.steps[self.now]
            if any(then[a] != now[a] for a in self.parallel):
                at = tuple(int(i) for i in np.argwhere(where & (accessed == number))[0])
                raise located(
                    GridRace,
                    f"steps {then} and {now} of the grid may run at the same time, and both use element {at} of "
                    f"{memory.label}; the former {did} it",
                )


class CheckedRef(KernelRef):
    """Memory of a kernel of which every access is checked: a window of a `_Memory`."""

    __slots__ = ("_check_mode", "_memory", "_window")

    def __init__(self, memory: _Memory, window: Any, name: str, space: Any, races: _Races | None, shape: Any):
        self._memory, self._window, self._check_mode = memory, window, races
        value = jnp.asarray(self._part(memory.array).reshape(shape))
        KernelRef.__init__(self, value, name, space)

    def _part(self, array: np.ndarray) -> np.ndarray:
        """The elements of the window; those beyond the array are not there: they are a copy of the nearest ones."""
        return array[np.ix_(*self._window)] if array.ndim else array

    def _get(self, where: indexing.Index) -> Any:
        self._accessed(where, None, "read")
        return indexing.read(self._load(), where)

    def _set(self, where: indexing.Index, value: Any) -> None:
        self._accessed(where, None, "write")
        self._replace(value if where.is_whole else indexing.write(self._load(), where, value))

    def _get_where(self, where: indexing.Index, mask: Any, other: Any) -> Any:
        self._accessed(where, np.asarray(mask), "read")
        return KernelRef._get_where(self, where, mask, other)

    def _set_where(self, where: indexing.Index, value: Any, mask: Any) -> None:
        self._accessed(where, np.asarray(mask), "write")
        self._replace(indexing.write_where(self._load(), where, value, mask))

    def _load(self) -> Any:
        return jnp.asarray(self._part(self._memory.array).reshape(self.shape))

    def _read(self) -> Any:
        return self._load()

    def _store(self, array: Any) -> None:
        self._accessed(self._index(...), None, "write")
        self._replace(array)

    def _replace(self, array: Any) -> None:
        if self._memory.array.ndim:
            inside = [i < n for i, n in zip(self._window_sizes(), self._memory.array.shape, strict=True)]
            assert all(inside)
            block = np.asarray(array).reshape([len(w) for w in self._window])
            self._memory.array[np.ix_(*self._window)] = block
        else:
            self._memory.array[...] = np.asarray(array)

    def _window_sizes(self) -> list[int]:
        return [int(max(w, default=-1)) for w in self._window]

    def _accessed(self, where: indexing.Index, mask: np.ndarray | None, what: str) -> None:
        """Checks an access, and notes it."""
        touched = self._touched(where, mask)
        memory = self._memory
        if memory.array.ndim:
            whole = np.zeros(memory.array.shape, bool)
            whole[np.ix_(*self._window)] = touched.reshape([len(w) for w in self._window])
        else:
            whole = touched.reshape(())
        if what == "read":
            missing = whole & ~memory.written
            if missing.any():
                first = tuple(int(i) for i in np.argwhere(missing)[0])
                raise located(
                    UninitializedRead,
                    f"{self._name} is read before it is written: {int(missing.sum())} of {int(whole.sum())} "
                    f"elements are uninitialized, the first at index {first}",
                )
        races = self._check_mode
        if races is not None:
            races.check(memory, whole, memory.writer, "wrote")
            if what == "write":
                races.check(memory, whole, memory.reader, "read")
                memory.writer[whole] = races.now
            else:
                memory.reader[whole] = races.now
        if what == "write":
            memory.written |= whole

    def _touched(self, where: indexing.Index, mask: np.ndarray | None) -> np.ndarray:
        """Which elements of the window an index names; an error if some are out of bounds."""
        if mask is None:
            where.require_inside()
        positions = [np.asarray(p) for p in where.positions()]
        shape = where.shape
        chosen = np.ones(shape, bool) if mask is None else np.broadcast_to(mask, shape)
        at = [np.broadcast_to(p, shape)[chosen] for p in positions]
        for axis, (p, size) in enumerate(zip(at, where.of, strict=True)):
            outside = (p < 0) | (p >= size)
            if outside.any():
                raise located(
                    IndexError,
                    f"{self._name}: index {int(p[outside][0])} is out of bounds for dimension {axis} of size {size}",
                )
        touched = np.zeros(where.of, bool)
        if where.of:
            touched[tuple(at)] = True
        else:
            touched[()] = True
        return touched

    def addupdate(self, value: Any, index: Any = ...) -> None:
        self._accessed(self._index(index), None, "read")
        self._accessed(self._index(index), None, "write")
        where = self._index(index)
        update = jnp.broadcast_to(jnp.asarray(value, self.dtype), where.shape)
        self._replace(indexing.add(self._load(), where, update))


def run(request: Any, parts: Any, tree: Any, values: Sequence[Any]) -> list[Any]:
    """Runs a kernel step by step; returns the leaves of its results."""
    grid, prefetched, inputs, outputs, scratch_types, _ = parts
    if any(isinstance(x, Tracer) for x in values):
        raise request.fail(
            TypeError,
            "the checking mode runs kernels on concrete arrays, and this one is called on traced values; call it "
            "outside of `jit`, `vmap` and `grad`, or under `purax.disable_jit()`",
        )
    sizes = [
        int(np.asarray(n)) if known is None else known
        for n, known in zip(request.spec.grid, grid, strict=True)
    ]
    steps = list(steps_of(sizes))
    races = _Races(steps, _parallel(request, len(sizes)))
    first = [np.asarray(x) for x in values]
    count = len(prefetched)
    aliased = {o: i for i, o in request.aliases.items()}
    memories = [_padded(operand, x, True) for operand, x in zip(inputs, first[count:], strict=True)]
    for o, operand in enumerate(outputs):
        begin = first[aliased[o]] if o in aliased else np.asarray(uninitialized(operand.aval))
        memories.append(_padded(operand, begin, o in aliased))
    scalars = [_Memory(x, True, f"prefetched input {i}") for i, x in enumerate(first[:count])]
    spaces = [np.asarray(uninitialized(x)) for x in scratch_types]
    scratch = [
        _Memory(
            np.zeros_like(x) if getattr(t, "is_zero", False) else x,
            getattr(t, "is_zero", False),
            f"scratch memory {i}",
        )
        for i, (x, t) in enumerate(zip(spaces, scratch_types, strict=True))
    ]

    def make(value: Any, name: str, space: Any, is_initialized: bool) -> CheckedRef:
        if isinstance(value, tuple):
            memory, window, shape = value
            shared = races if memory not in scratch else None
            return CheckedRef(memory, window, name, space, shared, shape)
        array = np.asarray(value)
        return CheckedRef(
            _Memory(array, is_initialized, name), _everything(array), name, space, None, array.shape
        )

    settings.makers.make, before = make, settings.makers.make
    try:
        for number, ids in enumerate(steps):
            races.now = number
            positions = [np.int32(i) for i in ids]
            given: list[Any] = [(m, _everything(m.array), m.array.shape) for m in scalars]
            for operand, memory in zip([*inputs, *outputs], memories, strict=True):
                index = [
                    int(np.asarray(i))
                    for i in operand.indices(positions, [jnp.asarray(m.array) for m in scalars])
                ]
                given.append((memory, _window(request, operand, index, ids), operand.block_aval.shape))
            given.extend((m, _everything(m.array), m.array.shape) for m in scratch)
            positional, named, _ = request.references(make, tree, given, parts)
            frame = Frame([jnp.asarray(i) for i in positions], sizes, request.description)
            with step_of(frame), config.override(disable_jit=True):
                request.run(positional, named)
    finally:
        settings.makers.make = before
    return [
        jnp.asarray(memory.array[tuple(slice(d.before, d.before + d.size) for d in operand.dims)])
        for operand, memory in zip(outputs, memories[len(inputs) :], strict=True)
    ]


def _parallel(request: Any, count: int) -> Sequence[int]:
    """The axes along which steps may run at the same time."""
    mode = settings.checks.value
    if mode is not None and mode.parallel is not None:
        return range(count) if mode.parallel is True else mode.parallel or ()
    semantics = getattr(request.params, "dimension_semantics", None) or ()
    return [i for i, x in enumerate(semantics) if "parallel" in str(getattr(x, "value", x))]


def _padded(operand: Operand, array: np.ndarray, is_initialized: bool) -> _Memory:
    """The memory of an operand; what is put around it is not initialized."""
    whole = np.asarray(operand.pad(jnp.asarray(array)))
    memory = _Memory(whole, False, operand.label)
    memory.written[tuple(slice(d.before, d.before + d.size) for d in operand.dims)] = is_initialized
    # Blocks at the edge are read as a whole; what is beyond the array is not defined, and not an error to read.
    beyond = np.ones(whole.shape, bool)
    beyond[tuple(slice(d.before, d.before + d.size) for d in operand.dims)] = False
    memory.written |= beyond
    return memory


def _window(request: Any, operand: Operand, index: Sequence[int], ids: tuple[int, ...]) -> list[np.ndarray]:
    """The positions of a block in each dimension."""
    window = []
    for axis, (dim, i) in enumerate(zip(operand.dims, index, strict=True)):
        size = dim.padded if operand.is_whole else dim.block
        start = int(dim.start(i))
        if start < 0 or start + size > dim.padded:
            raise request.fail(
                IndexError,
                f"at step {ids} the index map for {operand.label} returns {i} for dimension {axis}, whose blocks of "
                f"{size} end at {dim.padded}",
            )
        window.append(np.arange(start, start + size))
    return window


def _everything(array: Any) -> list[np.ndarray]:
    return [np.arange(n) for n in array.shape]
