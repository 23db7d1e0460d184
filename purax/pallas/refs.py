"""`KernelRef`: memory that a kernel reads and writes with `ref[...]`, and `View`s of parts of it.

They are cells (`purax.references.cells`), so branches and loops inside of a kernel thread what they hold, and a
kernel is recorded as a pure program from what its references hold before to what they hold after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from purax import lax
from purax import numpy as jnp
from purax.core import dtypes
from purax.core.array import Array
from purax.core.avals import ShapedArray, aval_of
from purax.core.source import located
from purax.core.trace import Trace
from purax.errors import shown
from purax.interpreters.arguments import to_array
from purax.pallas import indexing
from purax.ref import AbstractRef, Ref
from purax.references import cells


class _Memory:
    """What references and views of them share; subclasses have `_load`, `_store`, `shape`, `dtype` and `_name`."""

    __slots__ = ()

    _name: str
    shape: tuple[int, ...]
    dtype: Any

    def _load(self) -> Any:
        raise NotImplementedError

    def _store(self, array: Any) -> None:
        raise NotImplementedError

    def _index(self, index: Any) -> indexing.Index:
        return indexing.Index(index, self.shape, self._name)

    def __getitem__(self, index: Any) -> Any:
        return self._get(self._index(index))

    def __setitem__(self, index: Any, value: Any) -> None:
        where = self._index(index)
        self._set(where, self._value_for(where, value))

    def _get(self, where: indexing.Index) -> Any:
        return indexing.read(self._load(), where)

    def _set(self, where: indexing.Index, value: Any) -> None:
        self._store(value if where.is_whole else indexing.write(self._load(), where, value))

    def _get_where(self, where: indexing.Index, mask: Any, other: Any) -> Any:
        inside = where.is_inside or where.arrays
        value = indexing.read(self._load(), where) if inside else indexing.gather(self._load(), where)
        return value if other is None else jnp.where(mask, value, of_dtype(other, value.dtype))

    def _set_where(self, where: indexing.Index, value: Any, mask: Any) -> None:
        self._store(indexing.write_where(self._load(), where, value, mask))

    def _value_for(self, where: indexing.Index, value: Any) -> Any:
        """A value that is written at an index: an array of the type that it has there."""
        if isinstance(value, _Memory):
            raise located(TypeError, f"a reference is written to {self._name}; read it first, `ref[...]`")
        array = to_array(value)
        if array.shape != where.shape:
            raise located(
                ValueError,
                f"{self._name}: the value written has shape {array.shape}, but the part that it is written to has "
                f"shape {where.shape}; write `jnp.broadcast_to(value, {where.shape})` or "
                f"`jnp.full({where.shape}, value, {np.dtype(self.dtype).name!r})`",
            )
        aval = aval_of(array)
        if aval.dtype != self.dtype:
            if not (aval.weak_type and _family(aval.dtype) == _family(self.dtype)):
                raise self._wrong_dtype(aval.dtype)
            array = lax.convert_element_type(array, self.dtype)
        elif aval.weak_type:
            array = lax.convert_element_type(array, self.dtype)
        return array

    def _wrong_dtype(self, dtype: Any) -> ValueError:
        return located(
            ValueError,
            f"{self._name} holds {np.dtype(self.dtype).name}, the value written is {np.dtype(dtype).name}; write "
            f"`value.astype({self._name}.dtype)`",
        )

    def addupdate(self, value: Any, index: Any = ...) -> None:
        """Adds to the elements at `index`."""
        where = self._index(index)
        self._store(
            indexing.add(self._load(), where, jnp.broadcast_to(of_dtype(value, self.dtype), where.shape))
        )

    def get(self) -> Any:
        """All that it holds."""
        return self[...]

    def set(self, value: Any) -> None:
        """Writes all."""
        self[...] = value

    def swap(self, value: Any) -> Any:
        """Writes all, and returns what was there."""
        before = self[...]
        self[...] = value
        return before

    @property
    def at(self) -> Any:
        """`ref.at[index]` is a part of the memory, to be read and written as one."""
        return _At(self)

    def reshape(self, *shape: Any) -> View:
        """The memory seen in another shape."""
        new = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        if -1 in new:
            rest = int(np.prod([n for n in new if n != -1]))
            new = tuple(int(np.prod(self.shape)) // max(rest, 1) if n == -1 else n for n in new)
        if int(np.prod(new)) != int(np.prod(self.shape)):
            raise located(
                ValueError,
                f"{self._name}: shape {self.shape} cannot be seen as {new}, which has another size",
            )
        old = self.shape
        return View(self, new, self.dtype, lambda x: lax.reshape(x, new), lambda x, y: lax.reshape(y, old))

    def transpose(self, *permutation: Any) -> View:
        """The memory with its dimensions in another order."""
        given = (
            permutation[0]
            if len(permutation) == 1 and isinstance(permutation[0], (tuple, list))
            else permutation
        )
        order = tuple(given) if given else tuple(reversed(range(len(self.shape))))
        back = tuple(int(i) for i in np.argsort(order))
        shape = tuple(self.shape[i] for i in order)
        return View(
            self, shape, self.dtype, lambda x: lax.transpose(x, order), lambda x, y: lax.transpose(y, back)
        )

    T = property(lambda self: self.transpose())

    def bitcast(self, dtype: Any) -> View:
        """The memory read as another dtype; of other sizes, the last but one dimension shrinks or grows."""
        new, old = np.dtype(dtype), np.dtype(self.dtype)
        if new.itemsize == old.itemsize:
            return View(
                self,
                self.shape,
                new,
                lambda x: lax.bitcast_convert_type(x, new),
                lambda x, y: lax.bitcast_convert_type(y, old),
            )
        axis = max(len(self.shape) - 2, 0)
        shape = list(self.shape)
        shape[axis] = shape[axis] * old.itemsize // new.itemsize
        return View(
            self,
            tuple(shape),
            new,
            lambda x: _resized(x, new, axis),
            lambda x, y: _resized(y, old, axis),
        )

    view = bitcast

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape)))

    def __len__(self) -> int:
        if not self.shape:
            raise located(TypeError, f"{self._name} has no dimensions, and no length")
        return self.shape[0]

    def __iter__(self) -> Any:
        raise located(
            TypeError,
            f"{self._name} is a reference and cannot be iterated over; read it first, `{self._name}[...]`",
        )

    def _unread(self, *_: Any) -> Any:
        raise located(
            TypeError, f"{self._name} is a reference, not an array; read it first, `{self._name}[...]`"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _unread
    __matmul__ = __rmatmul__ = __pow__ = __rpow__ = __neg__ = __lt__ = __gt__ = __le__ = __ge__ = _unread
    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __and__ = __or__ = __bool__ = __float__ = _unread
    __array__ = __jax_array__ = __index__ = __int__ = _unread


def of_dtype(x: Any, dtype: Any) -> Any:
    """A number or an array as an array of a dtype; a number is written into the program."""
    return lax.convert_element_type(x, dtype) if isinstance(x, Array) else np.asarray(x, dtype)[()]


def _family(dtype: Any) -> int:
    """Whether a dtype is one of bools, integers, floats or complex numbers."""
    return sum(jnp.issubdtype(dtype, kind) for kind in (np.number, np.inexact, np.complexfloating))


def _resized(x: Any, dtype: np.dtype, axis: int) -> Any:
    """Elements of one size as elements of another, next to each other along an axis."""
    moved = jnp.moveaxis(x, axis, -1)
    if dtype.itemsize < x.dtype.itemsize:
        parts = lax.bitcast_convert_type(moved, dtype)
        joined = jnp.reshape(parts, (*parts.shape[:-2], -1))
    else:
        ratio = dtype.itemsize // x.dtype.itemsize
        joined = lax.bitcast_convert_type(jnp.reshape(moved, (*moved.shape[:-1], -1, ratio)), dtype)
    return jnp.moveaxis(joined, -1, axis)


class KernelRef(_Memory, Ref):
    """Memory of a kernel."""

    __slots__ = ("_name", "_shape_of", "memory_space")

    def __init__(self, value: Any, name: str = "a reference", memory_space: Any = None):
        Ref.__init__(self, value)
        self._name = name
        self.memory_space = memory_space
        aval = aval_of(value)
        self._shape_of = (aval.shape, aval.dtype)

    def _load(self) -> Any:
        return self._read()

    def _store(self, array: Any) -> None:
        self._read()  # programs between here and where the memory was made take it over
        self._write(array)

    shape = property(lambda self: self._shape_of[0])  # type: ignore[assignment]
    dtype = property(lambda self: self._shape_of[1])
    aval = property(lambda self: AbstractRef(ShapedArray(*self._shape_of)))
    at = _Memory.at
    addupdate = _Memory.addupdate
    ndim = _Memory.ndim
    size = _Memory.size

    def __repr__(self) -> str:
        return f"Ref<{self.memory_space or 'default'}>{{{ShapedArray(*self._shape_of).str_short()}}}"


class _At:
    __slots__ = ("_memory",)

    def __init__(self, memory: _Memory):
        self._memory = memory

    def __getitem__(self, index: Any) -> View:
        where = self._memory._index(index)
        return View(
            self._memory,
            where.shape,
            self._memory.dtype,
            lambda x: indexing.read(x, where),
            lambda x, y: indexing.write(x, where, y),
            where,
        )


class View(_Memory):
    """A part of a memory, or the memory seen in another way: `take` makes it of the whole, `put` puts it back."""

    __slots__ = ("_name", "_of", "_put", "_take", "_where", "dtype", "shape")

    def __init__(self, of: _Memory, shape: Sequence[int], dtype: Any, take: Any, put: Any, where: Any = None):
        self._of, self.shape, self.dtype = of, tuple(shape), np.dtype(dtype)
        self._take, self._put, self._where = take, put, where
        self._name = of._name

    def _load(self) -> Any:
        return self._of._get(self._where) if self._where is not None else self._take(self._of._load())

    def _store(self, array: Any) -> None:
        if self._where is not None:
            self._of._set(self._where, array)
        else:
            whole = self._of._load()
            self._of._store(self._put(whole, array))

    memory_space = property(lambda self: getattr(self._of, "memory_space", None))

    def load_where(self, mask: Any, other: Any) -> Any:
        """Reads where a mask is true."""
        if self._where is None:
            return self._get_where(self._index(...), mask, other)
        return self._of._get_where(self._where, mask, other)

    def store_where(self, value: Any, mask: Any) -> None:
        """Writes where a mask is true."""
        if self._where is None:
            self._set_where(self._index(...), value, mask)
        else:
            self._of._set_where(self._where, value, mask)

    def __repr__(self) -> str:
        return f"Ref{{{ShapedArray(self.shape, self.dtype).str_short()}}}, a part of {self._of!r}"


class _KernelRefs(cells.Kind):
    """References of kernels as cells: what one holds is one array."""

    def structure(self, cell: KernelRef) -> Any:
        return (cell._name, cell.memory_space)

    def contents(self, cell: KernelRef) -> list[Any]:
        return [cell._value]

    def make(self, structure: Any, arrays: Sequence[Any]) -> KernelRef:
        return KernelRef(arrays[0], *structure)

    def update(self, cell: KernelRef, structure: Any, arrays: Sequence[Any]) -> None:
        cell._value = arrays[0]

    def type_of(self, cell: KernelRef) -> AbstractRef:
        return cell.aval

    def abstract(self, structure: Any, shapes: Sequence[Any]) -> Any:
        return shapes[0]

    def home(self, cell: KernelRef) -> Trace:
        return cell._home

    def settle(self, cell: KernelRef, home: Trace) -> None:
        cell._home = home


cells.register(KernelRef, _KernelRefs())


def is_reference(x: Any) -> bool:
    """Whether something is a reference of a kernel or a part of one."""
    return isinstance(x, _Memory)


def as_memory(x: Any, function: str) -> _Memory:
    """A reference of a kernel or a part of one; an error for everything else."""
    if not isinstance(x, _Memory):
        raise located(
            TypeError,
            f"{function} needs a reference of a kernel, or a part of one, `ref.at[...]`; got {shown(x)}",
        )
    return x


def uninitialized(aval: Any) -> Any:
    """What memory holds that nobody wrote: NaN, or the smallest integer, so that use of it shows."""
    dtype = np.dtype(aval.dtype)
    if jnp.issubdtype(dtype, np.inexact):
        return jnp.full(aval.shape, np.nan, dtype)
    if dtypes.is_boolean(dtype):
        return jnp.zeros(aval.shape, bool)
    if jnp.issubdtype(dtype, np.integer):
        return jnp.full(aval.shape, jnp.iinfo(dtype).min, dtype)
    return lax.empty(aval.shape, dtype)
