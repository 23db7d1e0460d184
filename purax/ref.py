"""References: cells that hold an array and can be written, inside of transformed functions and outside.

A function that is given a reference, or reaches for one outside of it, is transformed as a function of its value that
returns the new value, so programs stay pure (see `purax.references.cells`). Needs nothing of an array but indexing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from purax.core.avals import ShapedArray
from purax.core.source import located
from purax.core.trace import Trace, Tracer, current
from purax.errors import shown
from purax.interpreters.arguments import to_array
from purax.primitives.shape.broadcasting import zeros
from purax.references import cells

__all__ = [
    "AbstractRef",
    "Ref",
    "addupdate",
    "empty_ref",
    "free_ref",
    "freeze",
    "get",
    "new_ref",
    "set",
    "swap",
]


class AbstractRef:
    """The type of a reference.

    Args:
        inner_aval: the type of what it holds.
    """

    __slots__ = ("inner_aval",)

    def __init__(self, inner_aval: ShapedArray, memory_space: Any = None, kind: Any = None):
        _refuse("AbstractRef", memory_space=memory_space, kind=kind)
        self.inner_aval = inner_aval

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)
    ndim = property(lambda self: self.inner_aval.ndim)
    size = property(lambda self: self.inner_aval.size)
    layout = property(lambda self: self.inner_aval.layout)
    vma = property(lambda self: self.inner_aval.vma)

    def str_short(self, short_dtypes: bool = False) -> str:
        return f"Ref{{{self.inner_aval.str_short(short_dtypes)}}}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractRef) and other.inner_aval == self.inner_aval

    def __hash__(self) -> int:
        return hash((AbstractRef, self.inner_aval))

    def __repr__(self) -> str:
        return self.str_short()


class Ref:
    """A mutable array: `ref[...]` reads, `ref[...] = value` writes; any index of an array may stand for `...`.

    It can be passed to, or captured by, functions under `jit`, `vmap`, `grad`, `checkpoint`, and in the bodies of loops
    and branches.
    """

    __slots__ = ("__weakref__", "_home", "_value")

    def __init__(self, value: Any):
        self._value = value
        self._home = current.trace

    def _read(self) -> Any:
        cells.reach(self, _kind)
        if self._value is None:
            raise located(ValueError, "this reference was freed; it has no value any more")
        return self._value

    def _write(self, value: Any) -> None:
        (self._value,) = cells.for_home(self, _kind, [value])

    def __getitem__(self, index: Any) -> Any:
        return self._read()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._write(_replaced(self._read(), index, value))

    def addupdate(self, value: Any, index: Any = ...) -> None:
        """Adds to the elements at `index`."""
        self._write(self._read().at[index].add(value))

    @property
    def at(self) -> Any:
        """`ref.at[index]` is a part of the reference, to be read and written as one."""
        return _At(self)

    aval = property(lambda self: AbstractRef(self._value.aval))
    shape = property(lambda self: self._value.shape)
    dtype = property(lambda self: self._value.dtype)
    ndim = property(lambda self: self._value.ndim)
    size = property(lambda self: self._value.size)
    sharding = property(lambda self: self._value.sharding)
    committed = property(lambda self: self._value.committed)

    def __len__(self) -> int:
        return len(self._value)

    def __iter__(self) -> Any:
        raise TypeError("a reference cannot be iterated over; iterate over its value, `ref[...]`")

    def __repr__(self) -> str:
        if isinstance(self._value, Tracer):
            return f"Ref({self._value.aval.str_short()}, traced)"
        return "Ref" + repr(self._value).removeprefix("Array")


class _At:
    __slots__ = ("_ref",)

    def __init__(self, ref: Any):
        self._ref = ref

    def __getitem__(self, index: Any) -> Part:
        return Part(self._ref, index)


class Part:
    """A part of a reference, `ref.at[index]`."""

    __slots__ = ("_index", "_ref")

    def __init__(self, ref: Any, index: Any):
        self._ref, self._index = ref, index

    def __getitem__(self, index: Any) -> Any:
        return self._ref[self._index][index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._ref[self._index] = _replaced(self._ref[self._index], index, value)

    @property
    def at(self) -> Any:
        return _At(self)

    shape = property(lambda self: self._ref[self._index].shape)
    dtype = property(lambda self: self._ref.dtype)


def _replaced(array: Any, index: Any, value: Any) -> Any:
    """An array with other elements at an index."""
    value = to_array(value)
    if index is Ellipsis and value.aval is array.aval:
        return value
    return array.at[index].set(value)


class _References(cells.Kind):
    """References as cells: what one holds is one array."""

    def structure(self, cell: Ref) -> Any:
        return ()

    def contents(self, cell: Ref) -> list[Any]:
        return [cell._value]

    def make(self, structure: Any, arrays: Sequence[Any]) -> Ref:
        return Ref(arrays[0])

    def update(self, cell: Ref, structure: Any, arrays: Sequence[Any]) -> None:
        cell._value = arrays[0]

    def type_of(self, cell: Ref) -> AbstractRef:
        return cell.aval

    def abstract(self, structure: Any, shapes: Sequence[Any]) -> Any:
        return shapes[0]

    def home(self, cell: Ref) -> Trace:
        return cell._home

    def settle(self, cell: Ref, home: Trace) -> None:
        cell._home = home


_kind = _References()
cells.register(Ref, _kind)


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A reference that holds an array.

    Args:
        init_val: the array.
        memory_space: must be None: where a reference is, the array decides.
        kind: must be None: there is one kind.

    >>> import purax as px, purax.numpy as jnp
    >>> total = px.new_ref(jnp.zeros(3))
    >>> @px.jit
    ... def add(i, x):
    ...     total[i] += x
    >>> add(1, 2.0)
    >>> total[...]
    Array([0., 2., 0.], dtype=float32)
    """
    _refuse("new_ref", memory_space=memory_space, kind=kind)
    if isinstance(init_val, Ref):
        raise located(TypeError, "new_ref needs an array, got a reference; pass its value, `ref[...]`")
    return Ref(to_array(init_val))


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A reference for arrays of a type; it holds zeros.

    Args:
        ty: something with a shape and a dtype.
        memory_space: must be None.

    >>> import purax as px, purax.numpy as jnp
    >>> px.empty_ref(px.ShapeDtypeStruct((2,), jnp.int32))
    Ref([0, 0], dtype=int32)
    """
    _refuse("empty_ref", memory_space=memory_space)
    if not hasattr(type(ty), "shape") and not hasattr(ty, "dtype"):
        raise located(TypeError, f"empty_ref: a type with a shape and a dtype is needed, got {shown(ty)}")
    return Ref(zeros(ShapedArray(tuple(ty.shape), ty.dtype)))


def _refuse(name: str, **given: Any) -> None:
    for argument, value in given.items():
        if value is not None:
            raise located(
                NotImplementedError, f"{name}: {argument}={shown(value)} is not supported; leave it out"
            )


def freeze(ref: Ref) -> Any:
    """The value of a reference that is not written any more.

    >>> import purax as px
    >>> px.freeze(px.new_ref(1.0))
    Array(1., dtype=float32, weak_type=True)
    """
    return _reference("freeze", ref)._read()


def _reference(function: str, ref: Any, method: str = "_read") -> Any:
    if not hasattr(type(ref), method):
        raise located(TypeError, f"{function}: `ref` must be a reference (`new_ref`), got {shown(ref)}")
    return ref


def free_ref(ref: Ref) -> None:
    """Ends a reference: its memory is given back, and using it raises an error.

    >>> import purax as px
    >>> px.ref.free_ref(px.new_ref(1.0))
    """
    _reference("free_ref", ref)._read()
    ref._value = None


def get(ref: Any, idx: Any = ...) -> Any:
    """`ref[idx]`.

    >>> import purax as px
    >>> px.ref.get(px.new_ref(1.0))
    Array(1., dtype=float32, weak_type=True)
    """
    return _reference("get", ref, "addupdate")[idx]


def set(ref: Any, idx: Any, value: Any) -> None:
    """`ref[idx] = value`.

    >>> import purax as px
    >>> ref = px.new_ref(1.0)
    >>> px.ref.set(ref, ..., 2.0)
    >>> ref
    Ref(2., dtype=float32, weak_type=True)
    """
    _reference("set", ref, "addupdate")[idx] = value


def swap(ref: Any, idx: Any, value: Any) -> Any:
    """Writes elements of a reference and returns what they were.

    >>> import purax as px
    >>> px.ref.swap(px.new_ref(1.0), ..., 2.0)
    Array(1., dtype=float32, weak_type=True)
    """
    before = _reference("swap", ref, "addupdate")[idx]
    ref[idx] = value
    return before


def addupdate(ref: Any, idx: Any, x: Any) -> None:
    """`ref[idx] += x`, also where `idx` names an element several times.

    >>> import purax as px, purax.numpy as jnp
    >>> ref = px.new_ref(jnp.zeros(2))
    >>> px.ref.addupdate(ref, jnp.array([0, 0, 1]), 1.0)
    >>> ref
    Ref([2., 1.], dtype=float32)
    """
    _reference("addupdate", ref, "addupdate").addupdate(x, idx)
