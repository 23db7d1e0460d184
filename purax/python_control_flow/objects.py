"""What objects hold, one level deep: read, compared, and written back.

Every class of mutable objects has a `Kind`. Contents are a pair: `shape`, which says how the object is built (the
length of a list, the keys of a dict, the position of an iterator), and `children`, the values in it. Two objects whose
contents have the same shape can be merged child by child. Objects without a kind are values that cannot change.
"""

from __future__ import annotations

import abc
import array
import collections
import contextlib
import contextvars
import copy
import ctypes
import enum
import functools
import inspect
import io
import itertools
import math
import operator
import pickle
import random
import sys
import types
import typing
import warnings
import weakref
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from purax.core.array import Array
from purax.purity.ownership import is_user_class, is_user_code
from purax.references import cells

_LARGE = 1 << 24  # bytes of an array that is too large to be copied


class Missing:
    """In the place of a value that is not there: an empty variable, an attribute that nobody set."""

    def __repr__(self) -> str:
        return "nothing"


MISSING = Missing()


class Contents(NamedTuple):
    """What an object holds."""

    shape: Any
    children: list[Any]


class Kind:
    """How objects of some classes are read and written.

    Attributes:
        is_mutable: whether the contents can change.
        is_restorable: whether they can be written back.
        is_mergeable: whether new objects may be made of the children of two others.
        takes_all: whether all children can be written to an object, which then need not be made anew.
        is_open: whether children have names, of which some may be missing: the shape is the list of names.
        is_strict: whether each child must have a value, since code that is not rewritten reads it.
        takes_traced: whether the result of a branch can be a child.
    """

    is_mutable = True
    is_restorable = True
    is_mergeable = True
    takes_all = True
    is_open = False
    is_strict = False
    takes_traced = True

    def read(self, x: Any) -> Contents:
        raise NotImplementedError

    def write(self, x: Any, contents: Contents) -> None:
        raise NotImplementedError

    def new(self, x: Any, contents: Contents) -> Any:
        """An object of the class of `x`."""
        made = copy.copy(x)
        self.write(made, contents)
        return made

    def default(self, x: Any, name: str) -> Any:
        """What stands for a named child that an object does not have itself."""
        return MISSING

    def label(self, parent: str, shape: Any, i: int) -> str:
        """How messages call child `i` of an object that they call `parent`."""
        return f"{parent}[{i}]"

    def is_value(self, x: Any) -> bool:
        """Whether an object is no more than what is in it, so that an equal one may stand in its place."""
        return not self.is_mutable

    def same(self, x: Any, before: Contents) -> bool:
        """Whether an object holds the very same as before."""
        now = self.read(x)
        return same_shape(now.shape, before.shape) and same_children(now.children, before.children)


def same_shape(one: Any, other: Any) -> bool:
    try:
        return one is other or bool(one == other)
    except Exception:  # a comparison of the user's that does not work is no sameness
        return False


def same_children(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(map(operator.is_, one, other))


class _List(Kind):
    def read(self, x):
        return Contents(len(x), list.copy(x))

    def write(self, x, contents):
        list.__setitem__(x, slice(None), contents.children)


class _Deque(Kind):
    def read(self, x):
        return Contents((len(x), x.maxlen), list(x))

    def write(self, x, contents):
        collections.deque.clear(x)
        collections.deque.extend(x, contents.children)


class _Dict(Kind):
    def __init__(self, own: type[dict]):
        self.own = own

    def read(self, x):
        return Contents(list(self.own.keys(x)), list(self.own.values(x)))

    def write(self, x, contents):
        own = self.own
        if list(own.keys(x)) != contents.shape:
            own.clear(x)
        for key, value in zip(contents.shape, contents.children, strict=True):
            own.__setitem__(x, key, value)

    def label(self, parent, shape, i):
        return f"{parent}[{shape[i]!r}]"


class _Tuple(Kind):
    is_mutable = False

    def read(self, x):
        return Contents(len(x), list(x))

    def new(self, x, contents):
        if hasattr(x, "_make") and hasattr(x, "_fields"):
            return type(x)._make(contents.children)
        return tuple.__new__(type(x), contents.children)


class _Set(Kind):
    def read(self, x):
        return Contents(set(x), [])

    def write(self, x, contents):
        set.clear(x)
        set.update(x, contents.shape)


class _Bytes(Kind):
    """A bytearray, or an `array.array`."""

    is_mergeable = False

    def read(self, x):
        return Contents(bytes(x), [])

    def write(self, x, contents):
        if isinstance(x, bytearray):
            bytearray.__setitem__(x, slice(None), contents.shape)
        else:
            del x[:]
            x.frombytes(contents.shape)


class _Text(Kind):
    """A `StringIO` or `BytesIO`."""

    is_mergeable = False

    def read(self, x):
        return Contents("closed" if x.closed else (x.getvalue(), x.tell()), [])

    def write(self, x, contents):
        value, position = contents.shape
        x.seek(0)
        x.truncate()
        x.write(value)
        x.seek(position)


class _NumpyArray(Kind):
    """Its child is a copy of the array; a large one is only known by a checksum."""

    def read(self, x):
        built = (x.shape, x.dtype, x.flags.writeable)
        if x.dtype.hasobject:
            return Contents(built, list(x.flat))
        if is_large(x):
            return Contents((*built, zlib.crc32(np.ascontiguousarray(x).view(np.uint8))), [])
        return Contents(built, [x.copy()])

    def write(self, x, contents):
        shape, dtype, is_writeable, *_ = contents.shape
        self._reshape(x, shape, dtype)
        if is_writeable and not x.flags.writeable:
            x.flags.writeable = True
        if x.dtype.hasobject:
            x.flat = contents.children
        elif (
            contents.children and x.flags.writeable
        ):  # one that is not is a view of what is written otherwise
            x[...] = contents.children[0]
        if not is_writeable and x.flags.writeable:
            x.flags.writeable = False

    def _reshape(self, x: np.ndarray, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Gives an array back how it was built."""
        if x.shape == shape and x.dtype == dtype:
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            if x.dtype != dtype:
                x.dtype = dtype  # type: ignore[misc]
            if x.size != math.prod(shape):
                x.resize(shape, refcheck=False)
            elif x.shape != shape:
                x.shape = shape

    def new(self, x, contents):
        return contents.children[0]

    def same(self, x, before):
        if x.dtype.hasobject or not before.children or before.shape[1].hasobject:
            return Kind.same(self, x, before)
        if (x.shape, x.dtype, x.flags.writeable) != before.shape[:3]:
            return False
        return x.tobytes() == before.children[0].tobytes()


def is_large(x: Any) -> bool:
    """Whether an array is too large for a copy of it to be kept."""
    return isinstance(x, np.ndarray) and not x.dtype.hasobject and x.nbytes > _LARGE


class _ArrayWithAttributes(_NumpyArray):
    """An array of another class of NumPy's or the user's, and its attributes, which are compared by identity."""

    def read(self, x):
        shape, children = super().read(x)
        return Contents((*shape[:3], Held(vars(x)), *shape[3:]), children)

    def write(self, x, contents):
        shape = (*contents.shape[:3], *contents.shape[4:])
        children = [np.asarray(child) for child in contents.children]
        super().write(x.view(np.ndarray), Contents(shape, children))
        if vars(x) != contents.shape[3]:
            vars(x).clear()
            vars(x).update(contents.shape[3])

    def same(self, x, before):
        return before.shape[3] == vars(x) and super().same(x, before)


class Held(dict[Any, Any]):
    """Values by their keys, which are equal if they are the same objects."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, dict) and self.keys() == other.keys() and all(self[k] is other[k] for k in self)
        )

    def __ne__(self, other: object) -> bool:
        return not self == other


class _Attributes(Kind):
    """An object with attributes, in its `__dict__` or in slots."""

    is_open = True

    def read(self, x):
        found = attributes(x)
        return Contents(list(found), list(found.values()))

    def write(self, x, contents):
        now = attributes(x)
        for name in now.keys() - set(contents.shape):
            _delete(x, name)
        for name, value in zip(contents.shape, contents.children, strict=True):
            if value is MISSING:
                if name in now:
                    _delete(x, name)
            elif name not in now or now[name] is not value:
                _assign(x, name, value)

    def new(self, x, contents):
        made = type(x).__new__(type(x)) if type(x).__new__ is object.__new__ else copy.copy(x)
        self.write(made, contents)
        return made

    def default(self, x, name):
        """An attribute of the class."""
        found = inspect.getattr_static(type(x), name, MISSING)
        return MISSING if hasattr(type(found), "__get__") else found

    def label(self, parent, shape, i):
        return f"{parent}.{shape[i]}"


class _Inherited(_Attributes):
    """An object of a class of the user's that is derived from one of a library, whose methods read the attributes."""

    is_strict = True


class _Value(_Attributes):
    """A number, a text, a tuple or the like of a class of the user's: what it is cannot change, its attributes can."""

    is_mergeable = False


class _Both(Kind):
    """A container of a class of the user's, which has attributes too."""

    def __init__(self, base: Kind):
        self.base = base

    def read(self, x):
        own, rest = self.base.read(x), ATTRIBUTES.read(x)
        return Contents((own.shape, len(own.children), rest.shape), own.children + rest.children)

    def write(self, x, contents):
        shape, count, names = contents.shape
        self.base.write(x, Contents(shape, contents.children[:count]))
        ATTRIBUTES.write(x, Contents(names, contents.children[count:]))

    def label(self, parent, shape, i):
        own, count, names = shape
        return self.base.label(parent, own, i) if i < count else f"{parent}.{names[i - count]}"


class _TupleWithAttributes(_Both):
    """A tuple of a class of the user's that has attributes, of which there are mostly none."""

    takes_all = False

    def write(self, x, contents):
        _, count, names = contents.shape
        ATTRIBUTES.write(x, Contents(names, contents.children[count:]))

    def new(self, x, contents):
        made = self.base.new(x, Contents(None, contents.children[: contents.shape[1]]))
        self.write(made, contents)
        return made

    def is_value(self, x):
        return not vars(x)


class _Exception(Kind):
    """An exception: its arguments and attributes."""

    is_mergeable = False
    takes_traced = False

    def read(self, x):
        own = ATTRIBUTES.read(x)
        return Contents(own.shape, [x.args, *own.children])

    def write(self, x, contents):
        args, *rest = contents.children
        x.args = args
        ATTRIBUTES.write(x, Contents(contents.shape, rest))

    def label(self, parent, shape, i):
        return f"{parent}.{shape[i - 1] if i else 'args'}"


def attributes(x: Any) -> dict[str, Any]:
    """The attributes that an object itself has."""
    try:
        own = object.__getattribute__(x, "__dict__")
    except AttributeError:
        own = None
    found = dict(own) if isinstance(own, dict) else {}
    for name in slots(type(x)):
        try:
            found[name] = object.__getattribute__(x, name)
        except AttributeError:
            continue
    return found


def slots(kind: type) -> tuple[str, ...]:
    """The names of the slots that objects of a class have."""
    if kind not in _slots:
        _slots[kind] = tuple(
            name
            for parent in kind.__mro__
            for name, member in vars(parent).items()
            if isinstance(member, types.MemberDescriptorType) and member.__objclass__ is parent
        )
    return _slots[kind]


_slots: weakref.WeakKeyDictionary[type, tuple[str, ...]] = weakref.WeakKeyDictionary()


def _assign(x: Any, name: str, value: Any) -> None:
    own = getattr(x, "__dict__", None)
    if name in slots(type(x)) or not isinstance(own, dict):
        object.__setattr__(x, name, value)
    else:
        own[name] = value


def _delete(x: Any, name: str) -> None:
    own = getattr(x, "__dict__", None)
    if isinstance(own, dict) and name in own:
        del own[name]
    else:
        object.__delattr__(x, name)


class _Variable(Kind):
    """A variable that functions share: a cell of a closure."""

    def read(self, x):
        try:
            return Contents(None, [x.cell_contents])
        except ValueError:
            return Contents(None, [MISSING])

    def write(self, x, contents):
        [value] = contents.children
        if value is MISSING:
            with_content = self.read(x).children[0] is not MISSING
            if with_content:
                del x.cell_contents
        else:
            x.cell_contents = value

    def label(self, parent, shape, i):
        return parent


class Namespace:
    """Some variables of a module."""

    def __init__(self, variables: dict[str, Any], names: Sequence[str]):
        self.variables, self.names = variables, names


class _Namespace(Kind):
    is_open = True

    def read(self, x):
        return Contents(x.names, [x.variables.get(name, MISSING) for name in x.names])

    def write(self, x, contents):
        for name, value in zip(contents.shape, contents.children, strict=True):
            if value is not MISSING:
                x.variables[name] = value
            else:
                x.variables.pop(name, None)

    def label(self, parent, shape, i):
        return shape[i]


class _Class(Kind):
    """A class of the user's: its attributes."""

    is_mergeable = False
    is_open = True

    def read(self, x):
        found = {
            name: value
            for name, value in vars(x).items()
            if not name.startswith(_OF_PYTHON) and name not in _BY_PYTHON
        }
        found["__bases__"] = x.__bases__
        return Contents(list(found), list(found.values()))

    def write(self, x, contents):
        now = dict(vars(x))
        wanted = dict(zip(contents.shape, contents.children, strict=True))
        for name in set(self.read(x).shape) - {n for n, value in wanted.items() if value is not MISSING}:
            type.__delattr__(x, name)
        for name, value in wanted.items():
            if value is not MISSING and now.get(name, MISSING) is not value:
                if name != "__bases__" or x.__bases__ is not value:
                    type.__setattr__(x, name, value)

    def label(self, parent, shape, i):
        return f"{parent}.{shape[i]}"


# Attributes of classes that Python and `typing` fill in when they are asked for.
_OF_PYTHON = ("_abc_", "__protocol", "__non_callable", "__annot", "__classdict")
_BY_PYTHON = frozenset(
    "__dict__ __weakref__ __doc__ __module__ __qualname__ __abstractmethods__ __firstlineno__ __static_attributes__ "
    "__orig_bases__ __parameters__ __type_params__".split()
)


class _Function(Kind):
    """A function of the user's: what it shares with others, and its own attributes."""

    is_mergeable = False

    def read(self, x):
        own = x.__dict__
        named = dict(x.__kwdefaults__) if x.__kwdefaults__ else None
        return Contents((x.__code__, x.__defaults__, list(own), named), list(own.values()))

    def write(self, x, contents):
        x.__code__, x.__defaults__, names, named = contents.shape
        if x.__kwdefaults__ != named:
            x.__kwdefaults__ = named
        x.__dict__.clear()
        x.__dict__.update(zip(names, contents.children, strict=True))

    def label(self, parent, shape, i):
        return f"{parent}.{shape[2][i]}"


class _Iterator(Kind):
    """An iterator that knows its place, and can be put back to it."""

    is_mergeable = False

    def read(self, x):
        _, items, *place = x.__reduce__()
        return Contents((*place, operator.length_hint(x)), list(items))

    def write(self, x, contents):
        if len(contents.shape) > 1:
            x.__setstate__(contents.shape[0])
        if self.read(x).shape != contents.shape:
            raise NotRestorable  # it has ended, or forgot what it gave


def _can_go_back(x: Any) -> bool:
    """Whether an iterator can be put back to its place, by trying it; those of ranges only go forward since 3.12."""
    before = x.__reduce__()
    if len(before) != 3 or before[2] is None or not hasattr(x, "__setstate__"):
        return False
    next(x)
    x.__setstate__(before[2])
    return bool(x.__reduce__() == before)


class _OpenIterator(Kind):
    """An iterator or generator that cannot be put back; what it works on are its children."""

    is_mergeable = False
    is_restorable = False

    def read(self, x):
        if isinstance(x, types.GeneratorType):
            frame = x.gi_frame
            if frame is None:
                return Contents("ended", [])
            found = dict(frame.f_locals)
            return Contents((frame.f_lasti, list(found)), list(found.values()))
        return Contents(_progress(x), [])


def _progress(x: Any) -> Any:
    """How far an iterator is; what it works on is looked at by itself."""
    if isinstance(x, itertools.count):
        return repr(x)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            parts = x.__reduce__()[1:]
        if isinstance(x, _CALLING) and _is_native(getattr(parts[0][0], "__self__", None)):
            return _Untold()  # the search of a regular expression, and the like
        return operator.length_hint(x, -1), *_numbers(parts)
    except Exception:
        return _Untold()


def _is_native(x: Any) -> bool:
    """Whether an object is of a class written in C that keeps what it holds to itself."""
    kind = type(x)
    is_known = kind in _PLAIN or kind in _ITERATORS or isinstance(x, _VALUES)
    return not is_known and not hasattr(x, "__dict__") and "__slots__" not in vars(kind)


def _numbers(parts: Any) -> list[Any]:
    """The numbers in what an iterator says of itself, and the blocks in which those of `tee` keep items."""
    if isinstance(parts, tuple):
        return [number for part in parts for number in _numbers(part)]
    if isinstance(parts, int):
        return [parts]
    return [id(parts)] if isinstance(parts, _BLOCK) else []


class _Untold:
    """How far an iterator is that does not tell: it may have been used each time it is looked at."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return False


_CALLING = type(iter(int, 1))
_BLOCK = getattr(itertools, "_tee_dataobject", ())


class _Random(Kind):
    """A generator of random numbers of Python's or NumPy's."""

    is_mergeable = False

    def read(self, x):
        if isinstance(x, random.Random):
            return Contents(x.getstate(), [])
        if isinstance(x, np.random.Generator):
            return Contents(pickle.dumps(x.bit_generator.state), [])
        return Contents(pickle.dumps(x.get_state(legacy=False)), [])

    def write(self, x, contents):
        if isinstance(x, random.Random):
            x.setstate(contents.shape)
        elif isinstance(x, np.random.Generator):
            x.bit_generator.state = pickle.loads(contents.shape)
        else:
            x.set_state(pickle.loads(contents.shape))


class _ContextVariable(Kind):
    """A variable of a context."""

    is_mergeable = False
    is_strict = True

    def read(self, x):
        return Contents(None, [x.get(MISSING)])

    def write(self, x, contents):
        if contents.children[0] is MISSING:
            raise NotRestorable
        x.set(contents.children[0])

    def label(self, parent, shape, i):
        return parent


class _Foreign(Kind):
    """An object of `ctypes`: its memory."""

    is_mergeable = False

    def read(self, x):
        return Contents(bytes(x), [])

    def write(self, x, contents):
        ctypes.memmove(ctypes.addressof(x), contents.shape, len(contents.shape))


class _Cache(Kind):
    """A function with a cache, as `functools.lru_cache` makes it: how much is in it."""

    is_mergeable = False

    def read(self, x):
        return Contents(x.cache_info(), [])

    def write(self, x, contents):
        if contents.shape.misses or contents.shape.hits:
            raise NotRestorable
        x.cache_clear()


class NotRestorable(Exception):
    """An object cannot be given back what it held."""


ATTRIBUTES, _INHERITED, _VALUE, _EXCEPTION = _Attributes(), _Inherited(), _Value(), _Exception()
_CONTEXT_VARIABLE = _ContextVariable()
_FOREIGN, _CACHE = _Foreign(), _Cache()
VARIABLE, NAMESPACE, TUPLE = _Variable(), _Namespace(), _Tuple()
_CLASS, _FUNCTION, _ITERATOR, _OPEN_ITERATOR, _RANDOM = (
    _Class(),
    _Function(),
    _Iterator(),
    _OpenIterator(),
    _Random(),
)
_PLAIN: dict[type, Kind] = {
    list: _List(),
    dict: _Dict(dict),
    collections.OrderedDict: _Dict(collections.OrderedDict),
    collections.defaultdict: _Dict(dict),
    collections.Counter: _Dict(dict),
    tuple: TUPLE,
    set: _Set(),
    collections.deque: _Deque(),
    bytearray: _Bytes(),
    array.array: _Bytes(),
    io.StringIO: _Text(),
    io.BytesIO: _Text(),
    types.CellType: VARIABLE,
    Namespace: NAMESPACE,
}
_FRESH: Any = (
    iter([1]),
    iter((1,)),
    iter(range(1)),
    iter("a"),
    iter("€"),
    iter(b"a"),
    reversed([1]),
    iter(bytearray(1)),
)
_ITERATORS = frozenset(type(x) for x in _FRESH if _can_go_back(x))
_VALUES: tuple[type, ...] = (
    Array,
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    np.generic,
    np.dtype,
    enum.Enum,
)
_VALUES += (
    slice,
    range,
    types.CodeType,
    types.BuiltinFunctionType,
    types.ModuleType,
    types.MappingProxyType,
    property,
)
_WITH_ATTRIBUTES = (int, float, complex, str, bytes, frozenset, enum.Enum)  # in classes of the user's
_VALUES += (np.ufunc, types.FrameType, types.TracebackType, frozenset, memoryview)
_OWN_STATE: tuple[type, ...] = (types.SimpleNamespace, contextlib.ExitStack, contextlib.AsyncExitStack)
_OWN_STATE += (weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)
_PURE = (object, abc.ABC, typing.Generic, typing.Protocol)  # classes that read no attributes
_MEMORY = (ctypes.Array, ctypes.Structure, ctypes.Union, ctypes.c_int.__mro__[-2])
_CACHED = type(functools.lru_cache(lambda: None))
_kinds: weakref.WeakKeyDictionary[type, Kind | None] = weakref.WeakKeyDictionary()


def kind_of(x: Any) -> Kind | None:
    """The kind of an object; None if it cannot change, or is left to those who know it."""
    kind = type(x)
    try:
        return _kinds[kind]
    except KeyError:
        pass
    if kind is types.FunctionType:
        return _FUNCTION if is_user_code(x.__code__) else None
    if isinstance(x, type):
        return _CLASS if is_user_class(x) else None
    if isinstance(x, np.ndarray):
        return _ARRAY if kind is np.ndarray or not hasattr(x, "__dict__") else _ARRAY_WITH_ATTRIBUTES
    if kind is types.ModuleType:
        return None if sys.modules.get(x.__name__) is x else ATTRIBUTES
    if kind is _CACHED:  # one that lives longer is taken to be of a function without effects
        return _CACHE if "<locals>" in x.__qualname__ else None
    found = _find(x, kind)
    _kinds[kind] = found
    return found


def _find(x: Any, kind: type) -> Kind | None:
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(x, BaseException):
        return _EXCEPTION
    if isinstance(x, _WITH_ATTRIBUTES) and is_user_class(kind) and hasattr(x, "__dict__"):
        return _VALUE
    if isinstance(x, _VALUES) or cells.kind_of(x) is not None:
        return None
    if kind in _ITERATORS:
        return _ITERATOR
    if isinstance(x, (random.Random, np.random.Generator, np.random.RandomState)):
        return _RANDOM
    if isinstance(x, _MEMORY):
        return _FOREIGN
    for base in (list, collections.OrderedDict, dict, set, collections.deque, tuple, bytearray):
        if isinstance(x, base):
            own = _PLAIN[base]
            if base is tuple:
                return _TupleWithAttributes(own) if hasattr(x, "__dict__") else own
            return _Both(own) if hasattr(x, "__dict__") or slots(kind) else own
    if isinstance(x, types.GeneratorType) or (
        any("__next__" in vars(c) for c in kind.__mro__) and not isinstance(x, io.IOBase) and _is_native(x)
    ):
        return _OPEN_ITERATOR
    if isinstance(x, contextvars.ContextVar):
        return _CONTEXT_VARIABLE
    if isinstance(x, _OWN_STATE):
        return ATTRIBUTES
    if is_user_class(kind) and (hasattr(x, "__dict__") or slots(kind)):
        told = _finders[1](x, kind)
        if told is not None:
            return told if told.is_open else _Both(told)
        return ATTRIBUTES if all(is_user_class(c) or c in _PURE for c in kind.__mro__) else _INHERITED
    return _finders[0](x, kind)


_finders: list[Callable[[Any, type], Kind | None]] = []


def set_finders(*finders: Callable[[Any, type], Kind | None]) -> None:
    """Sets what tells the kinds of objects of libraries, and of those that tell themselves what they hold."""
    _finders[:] = finders


_ARRAY, _ARRAY_WITH_ATTRIBUTES = _NumpyArray(), _ArrayWithAttributes()


def set_kind(kind: type, how: Kind) -> None:
    """Says how objects of a class are read and written."""
    _kinds[kind] = how


def leave_alone(*kinds: type) -> None:
    """Counts objects of these classes as values that cannot change."""
    _kinds.update(dict.fromkeys(kinds))
    values.update(kinds)


values: set[type] = {
    int,
    float,
    complex,
    bool,
    str,
    bytes,
    type(None),
}  # classes that lead to nothing that can change
