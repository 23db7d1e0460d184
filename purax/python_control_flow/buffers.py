"""NumPy arrays that came to hold traced values.

A NumPy array that a traced branch or loop changes, or that a traced value is stored in, becomes a `Buffer`: a purax
array that can be written to. Its views become `View`s of the buffer, and all names of these arrays mean the buffer and
its views from then on. Which operations give a view, and of which elements, NumPy tells: every buffer keeps an array of
the same layout, its shadow, whose contents do not matter. Arrays that others know of stay what they are, and the
function goes both ways or raises.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from purax.core.array import Array
from purax.core.source import located
from purax.core.trace import Tracer
from purax.interpreters.arguments import to_array
from purax.primitives.elementwise.conversion import convert_element_type
from purax.python_control_flow import objects, paths
from purax.python_control_flow.heap import Heap
from purax.python_control_flow.objects import ATTRIBUTES, Contents, Kind
from purax.python_control_flow.values import is_traced
from purax.tree.registry import tree_flatten, tree_unflatten


class Buffer:
    """A purax array that can be written to, as NumPy's can."""

    __slots__ = ("held", "shadow")
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, held: Any, shadow: np.ndarray):
        self.held, self.shadow = held, shadow

    @property
    def value(self) -> Any:
        return self.held

    def write(self, value: Any) -> None:
        """Sets all elements, to an array of this shape."""
        self.held = value

    def __jax_array__(self) -> Any:
        return self.value

    def __setitem__(self, index: Any, value: Any) -> None:
        index = plain_index(index)
        check_bounds(self.value.shape, index)
        self.write(self.value.at[index].set(value_of(value)))

    def __getitem__(self, index: Any) -> Any:
        index = plain_index(index)
        check_bounds(self.value.shape, index)
        if not is_basic(index):
            return made(self.value[index])
        if holds_traced(index):
            found = TracedView(self, index)
            return found if found.value.ndim else found.value
        return self.seen(self.shadow[index], lambda: self.value[index])

    def __iter__(self) -> Iterator[Any]:
        return Rows(self)

    def seen(self, shadow: Any, value: Any) -> Any:
        """What an operation gives which gave `shadow` of the array of this layout: a view, or the `value()`."""
        if isinstance(shadow, np.ndarray) and shadow.ndim and np.may_share_memory(shadow, self.shadow):
            return View(self.root, shadow)
        return made(value())

    @property
    def root(self) -> Buffer:
        return self

    def __getattr__(self, name: str) -> Any:
        if name in _CHANGING:
            raise located(
                TypeError,
                f"`{name}` changes an array that holds traced values: make it an array of `purax.numpy` and use "
                "the function of that name, which returns a new one",
            )
        if name in ("T", "mT", "real", "imag", "flat"):
            if name != "flat":
                return self.seen(getattr(self.shadow, name), lambda: getattr(self.value, name))
            return self.reshape(-1) if self.shadow.flags.c_contiguous else _no_view(name)
        if name in _VIEWING:
            return lambda *args, **options: self.seen(
                getattr(self.shadow, name)(*args, **options),
                lambda: getattr(self.value, name)(*args, **options),
            )
        if name == "copy":
            return lambda *args, **options: Buffer(self.value, np.empty(self.value.shape, self.shadow.dtype))
        found = getattr(self.value, name)
        return (lambda *args, **options: made(found(*args, **options))) if callable(found) else made(found)

    def sort(self, *args: Any, **options: Any) -> None:
        """Sorts the elements in place."""
        self.write(self.value.sort(*args, **options))

    def fill(self, value: Any) -> None:
        """Sets all elements."""
        self[...] = value

    def put(self, index: Any, value: Any, mode: str = "raise") -> None:
        """Sets elements, counted along the flat array."""
        write_by("put", self, index, value, mode=mode)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value.__array__(*args, **kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        result = getattr(ufunc, method)(*map(value_of, inputs), **kwargs)
        if out is None or method != "__call__":
            return made(result)
        out[0][...] = result
        return out[0]

    def __array_function__(self, function: Any, kinds: Any, args: Any, kwargs: Any) -> Any:
        name = function.__name__
        if name in WRITING:
            write_by(name, args[0], *args[1:], **kwargs)
            return None
        plain = lambda: function(*map(value_of, args), **{k: value_of(x) for k, x in kwargs.items()})  # noqa: E731
        if name in _VIEWING and args and args[0] is self:
            return self.seen(function(self.shadow, *args[1:], **kwargs), plain)
        return made(plain())

    def __repr__(self) -> str:
        return f"Buffer({self.value!r})"


class View(Buffer):
    """Some of the elements of a buffer, those that its shadow has in its memory."""

    __slots__ = ("_root",)

    def __init__(self, root: Buffer, shadow: np.ndarray):
        self._root, self.shadow = root, shadow

    @property
    def root(self) -> Buffer:
        return self._root

    def positions(self) -> Any:
        """Which elements of the root, counted along its memory; None if all, in their order."""
        shadow, whole = self.shadow, self._root.shadow
        size = whole.itemsize
        if shadow.size == whole.size and shadow.flags.c_contiguous:
            return None
        found = np.full(shadow.shape, (_address(shadow) - _address(whole)) // size, np.int32)
        for axis, stride in enumerate(shadow.strides):
            steps = np.arange(shadow.shape[axis], dtype=np.int32) * (stride // size)
            found = found + steps.reshape([-1 if i == axis else 1 for i in range(shadow.ndim)]).astype(
                np.int32
            )
        return found

    @property
    def value(self) -> Any:
        where = self.positions()
        flat = self._root.value.reshape(-1)
        return flat.reshape(self.shadow.shape) if where is None else flat[where]

    def write(self, value: Any) -> None:
        where, whole = self.positions(), self._root.value
        flat = value.reshape(-1) if where is None else whole.reshape(-1).at[where].set(value)
        self._root.write(flat.reshape(whole.shape))


class TracedView(Buffer):
    """A part of a buffer that a traced index picks, as a row `a[i]`."""

    __slots__ = ("index", "parent")

    def __init__(self, parent: Buffer, index: Any):
        self.parent, self.index = parent, index

    @property
    def value(self) -> Any:
        return self.parent.value[self.index]

    def write(self, value: Any) -> None:
        self.parent.write(self.parent.value.at[self.index].set(value))

    def __getitem__(self, index: Any) -> Any:
        index = plain_index(index)
        check_bounds(self.value.shape, index)
        if not is_basic(index):
            return made(self.value[index])
        found = TracedView(self, index)
        return found if found.value.ndim else found.value

    def seen(self, shadow: Any, value: Any) -> Any:
        return _no_view("a view of what a traced index picks")

    def __getattr__(self, name: str) -> Any:
        if name in _VIEWING or name in ("T", "mT", "flat", "shadow"):
            return _no_view(f"`{name}` of what a traced index picks")
        if name == "copy":
            return lambda *args, **options: Buffer(self.value, np.empty(self.value.shape, self.value.dtype))
        return Buffer.__getattr__(self, name)


def _address(x: np.ndarray) -> int:
    return x.__array_interface__["data"][0]


def _no_view(name: str) -> Any:
    raise located(
        TypeError,
        f"{name}: an array that holds traced values cannot be seen so. Make it an array of `purax.numpy`, and "
        "write `a = a.at[i].set(value)`",
    )


_CHANGING = frozenset(("resize", "partition", "itemset", "setfield", "byteswap", "setflags", "data"))
WRITING = frozenset("copyto put place putmask fill_diagonal put_along_axis".split())
_VIEWING = frozenset(
    "reshape ravel transpose swapaxes squeeze moveaxis rollaxis expand_dims atleast_1d atleast_2d atleast_3d diagonal "
    "view broadcast_to split array_split hsplit vsplit dsplit flip fliplr flipud rot90".split()
)
_UNARY = "neg pos abs invert bool int float complex index len round".split()
_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift divmod".split()
_COMPARING = "lt le gt ge eq ne contains".split()


def value_of(x: Any) -> Any:
    """What a buffer holds; other values as they are, and lists and tuples of buffers with what those hold."""
    if isinstance(x, Buffer):
        return x.value
    if type(x) in (list, tuple) and any(isinstance(part, Buffer) for part in x):
        return type(x)(map(value_of, x))
    return x


def made(x: Any) -> Any:
    """What an operation on a buffer gives: an array can be written to as well, as with NumPy's."""
    if type(x) in (list, tuple):
        return type(x)(map(made, x))
    return Buffer(x, np.empty(x.shape, x.dtype)) if isinstance(x, Array) and x.ndim else x


def write_by(name: str, target: Any, *args: Any, **options: Any) -> None:
    """What a function of NumPy's does that writes to its first argument."""
    given = [_as_array(x) if type(x) is list else value_of(x) for x in args]
    sized = [np.ndim(x) for x in given]
    if name == "fill" and sized == [0] or name == "copyto" and len(args) == 1 and not options:
        target[...] = given[0]
    elif name == "copyto" and sized == [0] and options.keys() == {"where"}:
        target[options["where"]] = given[0]
    elif name in ("place", "putmask") and len(given) == 2 and (not sized[1] or given[1].shape == (1,)):
        target[given[0]] = given[1] if not sized[1] else given[1][0]
    elif name == "fill_diagonal" and sized == [0] and not options:
        target[(np.arange(min(target.shape)),) * target.ndim] = given[0]
    elif (
        name == "put"
        and options.get("mode", "raise") == "raise"
        and len(given) == 2
        and sized[1] <= sized[0] <= 1
    ):
        check_bounds((target.size,), given[0])
        target.write(target.value.reshape(-1).at[given[0]].set(given[1]).reshape(target.shape))
    else:
        raise located(
            TypeError, f"`numpy.{name}` writes to an array that holds traced values: write `a[index] = value`"
        )


def _as_array(items: list[Any]) -> Any:
    return np.stack(list(map(value_of, items))) if holds_tracer(items) else np.array(items)


def _define(name: str) -> None:
    method = f"__{name}__"

    def forward(self, *others):
        if method in ("__len__", "__bool__", "__int__", "__float__", "__complex__", "__index__"):
            return getattr(self.value, method)()
        return made(getattr(operator, method, _plain.get(name))(self.value, *map(value_of, others)))

    def backward(self, other):
        return made(getattr(operator, method, _plain.get(name))(value_of(other), self.value))

    def in_place(self, other):
        old = self.value
        result = getattr(operator, method, _plain.get(name))(old, value_of(other))
        self.write(old.at[...].set(convert_element_type(result, old.dtype)))
        return self

    setattr(Buffer, method, forward)
    if name in _BINARY:
        setattr(Buffer, f"__r{name}__", backward)
        if name != "divmod":
            setattr(Buffer, f"__i{name}__", in_place)


_plain = {"divmod": divmod, "round": round}
for _name in (*_UNARY, *_BINARY, *_COMPARING):
    _define(_name)


class _BufferKind(Kind):
    def read(self, x):
        return Contents(None, [x.held])

    def write(self, x, contents):
        [x.held] = contents.children

    def new(self, x, contents):
        return Buffer(contents.children[0], x.shadow)

    def label(self, parent, shape, i):
        return parent


class _ViewKind(Kind):
    is_mutable = False

    def read(self, x):
        shadow = x.shadow
        offset = _address(shadow) - _address(x.root.shadow)
        return Contents((offset, shadow.shape, shadow.strides), [x.root])

    def new(self, x, contents):
        return View(contents.children[0], x.shadow)

    def label(self, parent, shape, i):
        return parent


class _TracedViewKind(_ViewKind):
    def read(self, x):
        return Contents(None, [x.parent, x.index])

    def new(self, x, contents):
        return TracedView(*contents.children)


BUFFER, VIEW, TRACED_VIEW = _BufferKind(), _ViewKind(), _TracedViewKind()
objects.set_kind(Buffer, BUFFER)
objects.set_kind(View, VIEW)
objects.set_kind(TracedView, TRACED_VIEW)


def without_buffers(result: Any) -> Any:
    """What a function returns or is given, with arrays in the place of buffers."""
    leaves, tree = tree_flatten(result)
    if not any(isinstance(x, Buffer) for x in leaves):
        return result
    return tree_unflatten(tree, [value_of(x) for x in leaves])


paths.set_leaver(without_buffers)


class Rows:
    """An iterator over an array of NumPy's, or over what that became meanwhile."""

    __slots__ = ("__weakref__", "array", "position")

    def __init__(self, array: Any):
        self.array, self.position = array, 0
        paths.walks.rows.append(weakref.ref(self))

    def __iter__(self) -> Rows:
        return self

    def __next__(self) -> Any:
        if self.position >= len(self.array):
            raise StopIteration
        self.position += 1
        return self.array[self.position - 1]

    def __length_hint__(self) -> int:
        return len(self.array) - self.position


objects.set_kind(Rows, ATTRIBUTES)


def iterated(items: Any) -> Any:
    """What is iterated over in the place of `items`: an array may become a buffer on the way."""
    is_array = type(items) is np.ndarray and items.ndim > 0 or isinstance(items, Buffer)
    return Rows(items) if is_array else items


# -- indices


def holds_traced(x: Any) -> bool:
    """Whether a value to be stored, or an index, is traced or holds a traced value."""
    if type(x) in (list, tuple):
        return any(map(holds_traced, x))
    if type(x) is slice:
        return any(map(holds_traced, (x.start, x.stop, x.step)))
    return isinstance(x, Buffer) or is_traced(x)


def holds_tracer(x: Any) -> bool:
    """Whether a value to be stored is, or holds, what NumPy's arrays cannot: a traced value, known or not."""
    if type(x) in (list, tuple):
        return any(map(holds_tracer, x))
    return isinstance(x, (Buffer, Tracer))


def plain_index(index: Any) -> Any:
    """An index with arrays in the place of buffers and lists."""
    if type(index) is tuple:
        return tuple(map(plain_index, index))
    if type(index) is list and not holds_traced(index):
        return np.array(index, dtype=None if index else np.int32)
    return value_of(index)


def is_basic(index: Any) -> bool:
    """Whether an index gives a view: numbers, slices, `...` and `None`."""
    if type(index) is tuple:
        return all(map(is_basic, index))
    if isinstance(index, bool):
        return False
    if index is None or index is Ellipsis or isinstance(index, (int, np.integer, slice)):
        return True
    return is_traced(index) and not index.aval.shape and index.aval.dtype.kind in "iu"


def check_bounds(shape: tuple[int, ...], index: Any) -> None:
    """A traced index that is out of range is an error when the program runs, as it is with NumPy."""
    parts = index if type(index) is tuple else (index,)
    taken = sum(1 for x in parts if x is not None and x is not Ellipsis)
    axis = 0
    for part in parts:
        if part is Ellipsis:
            axis += len(shape) - taken
        elif part is not None:
            if is_traced(part) and part.aval.dtype.kind in "iu" and axis < len(shape):
                size = shape[axis]
                message = f"index is out of bounds for axis {axis} with size {size}"
                check_index((part >= size) | (part < -size), IndexError, message)
            axis += 1


_checkers: list[Any] = []


def set_checker(check: Any) -> None:
    """Sets what makes an error of a traced condition, as `check(test, kind, message)`."""
    _checkers[:] = [check]


def check_index(test: Any, kind: type[LookupError], message: str) -> None:
    _checkers[0](test, kind, message)


# -- from NumPy's array to a buffer


def can_become_buffer(x: np.ndarray, heap: Heap) -> bool:
    """Whether all names of an array and its views can be given another meaning: only what is traced knows them."""
    return _family(x, heap) is not None


def _owner(x: np.ndarray) -> np.ndarray:
    """The array whose memory an array lies in, with its elements in their order."""
    while isinstance(x.base, np.ndarray):
        x = x.base
    return x if x.flags.c_contiguous or not x.flags.f_contiguous else x.T


def _family(x: np.ndarray, heap: Heap) -> list[np.ndarray] | None:
    """The arrays of the heap in the memory of one; None if they cannot become a buffer and its views."""
    if not paths.walks.open or type(x) is not np.ndarray or x.dtype.kind not in "biufc":
        return None
    owner = _owner(x)
    is_fit = type(owner) is np.ndarray and owner.dtype == x.dtype and owner.flags.c_contiguous
    if not is_fit or owner.base is not None and not isinstance(owner.base, np.ndarray):
        return None
    found = [x]
    for entry in heap.entries.values():
        other = entry.object
        if isinstance(other, np.ndarray) and other is not x and np.may_share_memory(other, owner):
            found.append(other)
    ids = set(map(id, found))
    outer = paths.walks.open[0].heap
    for each in found:
        if type(each) is not np.ndarray or each.dtype != owner.dtype or not each.flags.writeable:
            return None
        if _owner(each) is not owner and _address(_owner(each)) != _address(owner):
            return None
        if heap.is_direct(each) or outer.has(each):
            return None
    for entry in heap.entries.values():
        can_change = (
            entry.kind.is_mutable
            and entry.kind.is_restorable
            and entry.kind.takes_traced
            and not hasattr(entry.object, "__setstate__")
        )
        if not can_change and not isinstance(entry.object, np.ndarray):
            if any(id(child) in ids for child in entry.kind.read(entry.object).children):
                return None
    return found


def become_buffer(x: np.ndarray, heap: Heap) -> Buffer | None:
    """The buffer, or its view, that all names of an array mean from now on; None if they cannot."""
    meanings = become_buffers(x, heap)
    return None if meanings is None else meanings[id(x)]


def become_buffers(x: np.ndarray, heap: Heap) -> dict[int, Buffer] | None:
    """Lets all names of an array, and of its views, mean a buffer and its views, by the ids of the arrays."""
    family = _family(x, heap)
    if family is None:
        return None
    paths.check_free(x)
    owner = _owner(x)
    root = Buffer(to_array(owner), owner)
    meanings: dict[int, Buffer] = {}
    for each in family:
        is_whole = (
            each.shape == owner.shape and each.strides == owner.strides and _address(each) == _address(owner)
        )
        meanings[id(each)] = root if is_whole else View(root, each)
    for entry in heap.entries.values():
        if isinstance(entry.object, np.ndarray) or not entry.kind.is_mutable:
            continue
        contents = entry.kind.read(entry.object)
        if any(id(child) in meanings for child in contents.children):
            children = [meanings.get(id(child), child) for child in contents.children]
            entry.kind.write(entry.object, Contents(contents.shape, children))
    return meanings


def with_traced(x: np.ndarray) -> Buffer | None:
    """The buffer that an array is from now on, where a traced value is stored in it; None if it cannot be one."""
    return become_buffer(x, Heap(paths.roots()))
