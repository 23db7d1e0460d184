"""What an object consists of: the contents of containers, the attributes of objects, the cells of functions.

`reader_of(value)` says how a value is read; None stands for values without contents (numbers, purax arrays, what
belongs to libraries). `reader(value, names)` gives `(tag, keys, values)`: something to compare with `==`, and the parts
under their keys. Of objects of the user's classes only the attributes among `names` are read; None stands for all.
Reading never calls the user's code.
"""

from __future__ import annotations

import collections
import contextlib
import contextvars
import ctypes
import datetime
import decimal
import functools
import gc
import itertools
import logging
import math
import operator
import random
import re
import threading
import types
import uuid
import warnings
import weakref
from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Any

import numpy as np

from purax.core.array import Array
from purax.purity.ownership import is_fixed_function, is_user_class, is_user_code, is_user_module
from purax.references import cells

Contents = tuple[Any, list[Any], list[Any]]
Reader = Callable[[Any, Any], Contents]

EXACT = frozenset((int, bool, str, bytes, float, complex, type(None), type(...), type(NotImplemented)))
_VALUES = (
    np.generic,
    np.dtype,
    decimal.Decimal,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    datetime.tzinfo,
    uuid.UUID,
    PurePath,
    slice,
    range,
)
_BASES: tuple[Any, ...] = (np.generic, bytes, str, complex, float, int, *_VALUES)
_OPAQUE = (Array, types.CodeType, types.FrameType, re.Pattern)
_QUIET = frozenset(
    ("logging", "_thread", "warnings", "absl", "loguru", "structlog", "jaxlib", "pytest", "_pytest")
)
_MISSING = "<missing>"
_LOGGER_NAMES = frozenset(
    "level disabled isEnabledFor getEffectiveLevel propagate handlers filters hasHandlers".split()
)
_CLASS_NAMES = frozenset(("__name__", "__qualname__", "__subclasses__"))
FUNCTION_NAMES = ("__annotations__", "__doc__", "__module__", "__name__", "__qualname__")
_SKIPPED = frozenset(
    "__dict__ __weakref__ __doc__ __module__ __qualname__ __annotations__ __slots__ __abstractmethods__ __name__ "
    "__parameters__ __orig_bases__ __dataclass_params__ __static_attributes__ __firstlineno__ "
    "__annotate__ __annotations_cache__ __annotate_func__ _abc_impl __type_params__ __slotnames__".split()
)
_UNREAD = frozenset(  # what Python itself keeps there, and fills in when it is asked for
    "__dict__ __weakref__ _abc_impl __slotnames__ __annotations_cache__ __annotate_func__ __annotate__".split()
)
_PLAIN_BASES = frozenset(
    ("builtins", "abc", "typing", "collections", "typing_extensions", "types", "numbers")
)


_HOLDING = frozenset(  # written in Python: what they hold is in attributes that the user's code does not name
    (collections.UserDict, collections.UserList, collections.UserString, collections.ChainMap)
)


def is_value(value: Any) -> bool:
    """Whether a value cannot change and is compared by `same_value`."""
    kind = type(value)
    return kind in EXACT or (
        isinstance(value, _VALUES) and not is_user_class(kind) and not isinstance(value, np.void)
    )


def same_value(a: Any, b: Any) -> bool:
    """Whether two values without contents cannot be told apart by a program."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is float:
        return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)
    if kind is complex:
        return same_value(a.real, b.real) and same_value(a.imag, b.imag)
    if kind in EXACT:
        return bool(a == b)
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, _VALUES):
        return bool(a == b) and repr(a) == repr(b)
    return False


def same_key(a: Any, b: Any) -> bool:
    """Whether two keys of a mapping, or elements of a set, are equal."""
    if a is b or same_value(a, b):
        return True
    if type(a) is not type(b) or is_value(a):
        return False
    if isinstance(a, (tuple, frozenset)):
        return len(a) == len(b) and (a == b if isinstance(a, frozenset) else all(map(same_key, a, b)))
    return False


def same_contents(a: Contents, b: Contents) -> bool:
    """Whether an object held the same things at two times."""
    return (
        len(a[1]) == len(b[1])
        and len(a[2]) == len(b[2])
        and all(map(operator.is_, a[2], b[2]))
        and (
            all(map(operator.is_, a[1], b[1]))
            or all([x is y or x == y for x, y in zip(a[1], b[1], strict=True)])
        )
        and (a[0] is b[0] or bool(a[0] == b[0]))
    )


def reader_of(value: Any) -> Reader | None:
    """How the contents of a value are read; None if it has none that could change."""
    kind = type(value)
    if kind in weakref.ProxyTypes:  # which pretend to be what they stand for
        return read_proxy
    if kind in EXACT or isinstance(value, _OPAQUE):
        return None
    special = _by_instance.get(kind)
    if special is not None:
        return special(value)
    if isinstance(value, type):
        return read_class if is_user_class(value) else None
    try:
        return _by_type[kind]
    except KeyError:
        reader = _by_type[kind] = _reader_of_type(kind, value)
        if len(_by_type) > 5000:
            _by_type.clear()
        return reader


def _reader_of_type(kind: type, value: Any) -> Reader | None:
    """How instances of a class are read: as containers, as objects with attributes, or both."""
    module = kind.__module__.partition(".")[0] if isinstance(kind.__module__, str) else ""
    is_user = is_user_class(kind)
    if issubclass(kind, threading.local):
        return read_attributes
    if cells.kind_of(value) is not None or (module in _QUIET and not is_user):
        return None
    if not is_user:
        if issubclass(kind, _VALUES) and not issubclass(kind, (np.ndarray, np.void)):
            return None
        if module == "purax" and not issubclass(kind, functools.partial):
            return read_callables
    container = next((reader for classes, reader in _CONTAINERS if issubclass(kind, classes)), None)
    if container is None:
        base = next((base for base in _BASES if issubclass(kind, base)), None)
        container = _reading_base(base) if is_user and base is not None else None
    has_attributes = kind.__dictoffset__ != 0 or any("__slots__" in vars(parent) for parent in kind.__mro__)
    if kind in _NO_ATTRIBUTES:
        has_attributes = False
    if container is None:
        if has_attributes:
            return read_attributes if _is_python(kind) else _joined(read_opaque, read_attributes)
        return None if is_user else read_opaque
    return _joined(container, read_attributes) if has_attributes else container


def _is_python(kind: type) -> bool:
    """Whether all state of instances is in their attributes: they have no more memory than these need."""
    for parent in kind.__mro__:
        if parent.__base__ is None or parent is BaseException:
            continue
        slots = vars(parent).get("__slots__", ())
        count = 1 if isinstance(slots, str) else len(tuple(slots))
        if parent.__basicsize__ - parent.__base__.__basicsize__ > 8 * (count + 2):
            return False
    return True


def _joined(first: Reader, second: Reader) -> Reader:
    def read(value: Any, names: Any) -> Contents:
        other, more_keys, more = second(
            value, names
        )  # reading `__dict__` makes one, which pickling then tells of
        tag, keys, values = first(value, names)
        return (tag, other), [*keys, *more_keys] if keys or more_keys else keys, [*values, *more]

    return read


# -- readers of containers


def read_sequence(value: Any, names: Any) -> Contents:
    if isinstance(value, collections.deque):
        return value.maxlen, [], list(value)
    return None, [], list(value)


def read_mapping(value: Any, names: Any) -> Contents:
    if isinstance(value, collections.OrderedDict):
        items: Any = collections.OrderedDict.items(value)
    else:
        items = dict.items(value) if isinstance(value, dict) else value.items()
    pairs = list(items)
    keys, found = [key for key, _ in pairs], [x for _, x in pairs]
    if isinstance(value, collections.defaultdict):
        return None, [*keys, "default_factory"], [*found, value.default_factory]
    return None, keys, found


def read_set(value: Any, names: Any) -> Contents:
    return None, list(value), []


def read_array(value: np.ndarray, names: Any) -> Contents:
    if value.dtype.hasobject:
        return value.shape, [], list(value.flat)
    return (value.shape, value.dtype, type(value), memory(value), _fields_of(value.dtype)), [], []


def read_array_and_memory(value: np.ndarray, names: Any) -> Contents:
    """An array of which a program asks how it lies in memory, and whether it can be written to."""
    tag, keys, values = read_array(value, names)
    return (tag, value.flags.num, value.strides), keys, values


def read_void(value: np.void, names: Any) -> Contents:
    """A row of a structured array, which is a view of it."""
    return (_fields_of(value.dtype), value.tobytes()), [], []


def _fields_of(dtype: np.dtype) -> str | None:
    """The fields of a dtype, which can be given other names in place."""
    return None if dtype.names is None else repr(dtype)


def memory(value: np.ndarray) -> bytes:
    return np.ndarray.tobytes(value)  # a class of its own may leave something out


def read_bytes(value: Any, names: Any) -> Contents:
    return bytes(value), [], []


def read_pointer(value: Any, names: Any) -> Contents:
    return (ctypes.addressof(value.contents), bytes(value.contents)) if value else None, [], []


def read_view(value: Any, names: Any) -> Contents:
    return read_mapping(value.mapping, names)


def read_partial(value: Any, names: Any) -> Contents:
    own = value.__dict__
    keys = ["func", *range(len(value.args)), *value.keywords, *own]
    return None, keys, [value.func, *value.args, *value.keywords.values(), *own.values()]


def _reading(*attributes: str) -> Reader:
    def read(value: Any, names: Any) -> Contents:
        return None, list(attributes), [getattr(value, name, None) for name in attributes]

    return read


def read_reference(value: Any, names: Any) -> Contents:
    target = value()
    return target is None, [], [target]


def read_proxy(value: Any, names: Any) -> Contents:
    target = weakly_held(value)
    return target is None, [], [target]


def weakly_held(value: Any) -> Any:
    """What a weak reference or a proxy stands for; None if it is gone."""
    if type(value) not in weakref.ProxyTypes:
        return value() if isinstance(value, weakref.ref) else None
    try:
        target = (
            value.__reduce_ex__.__self__
        )  # a proxy does not tell, but its methods are those of the object
    except Exception:
        return None
    return target if any(x is value for x in weakref.getweakrefs(target)) else None


def _reading_base(base: Any) -> Reader:
    """Reads the number or text that an object of a subclass of `base` is."""

    def read(value: Any, names: Any) -> Contents:
        if base is np.generic:
            return (value.dtype, np.generic.tobytes(value)), [], []
        return base.__repr__(value), [], []

    return read


def read_logger(value: Any, names: Any) -> Contents:
    """A logger, of which messages depend and, if a program asks for them, its decisions."""
    if names is not None and _LOGGER_NAMES.isdisjoint(names):
        return None, [], []
    state = (value.getEffectiveLevel(), value.level, value.disabled, value.manager.disable, value.propagate)
    return state, [], [*value.handlers, *value.filters]


def read_lock(value: Any, names: Any) -> Contents:
    """A lock, if a program asks whether it is held."""
    if names is None or "locked" not in names:
        return None, [], []
    return value.locked(), [], []


def read_variable(value: contextvars.ContextVar, names: Any) -> Contents:
    return None, ["get()"], [value.get(_MISSING)]


def read_generator(value: Any, names: Any) -> Contents:
    frame = (
        getattr(value, "gi_frame", None)
        or getattr(value, "cr_frame", None)
        or getattr(value, "ag_frame", None)
    )
    if frame is None:
        return None, [], []
    variables = dict(frame.f_locals)
    return frame.f_lasti, list(variables), list(variables.values())


def read_flat(value: Any, names: Any) -> Contents:
    return value.index, ["base"], [value.base]


def read_nditer(value: np.nditer, names: Any) -> Contents:
    try:
        return value.iterindex, [], list(value.operands)
    except Exception:  # it was closed, or is at its end
        return None, [], []


def read_cell(value: Any, names: Any) -> Contents:
    try:
        return True, ["cell_contents"], [value.cell_contents]
    except ValueError:
        return False, [], []


# -- readers of objects


def attributes_of(value: Any) -> dict[str, Any]:
    """What an object keeps under which name, without calling code of its class."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except Exception:
        own = None
    found = dict(own) if isinstance(own, dict) else {}
    for parent in type(value).__mro__:
        slots = parent.__dict__.get("__slots__")
        if slots is None:
            continue
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            if name in ("__dict__", "__weakref__"):
                continue
            if name.startswith("__") and not name.endswith("__"):
                name = f"_{parent.__name__.lstrip('_')}{name}"
            descriptor: Any = parent.__dict__.get(name)
            try:
                found[name] = descriptor.__get__(value)
            except Exception:  # nothing assigned
                continue
    return found


def read_attributes(value: Any, names: Any) -> Contents:
    if isinstance(value, threading.local):
        found = dict(value.__dict__)
    else:
        found = attributes_of(value)
    if names is not None:
        found = {name: x for name, x in found.items() if name in names}
    return None, list(found), list(found.values())


def read_class(value: type, names: Any) -> Contents:
    own = type.__dict__["__dict__"].__get__(value)
    keys = []
    for name in list(own):
        if name in _SKIPPED and (name in _UNREAD if names is None else name not in names):
            continue
        if names is None or name in names or (name.startswith("__") and hasattr(type(own[name]), "__get__")):
            keys.append(name)
        elif name == "__match_args__":  # which `match` reads
            keys.append(name)
    tag: Any = value.__bases__
    if names is None or not _CLASS_NAMES.isdisjoint(names):
        kinds: list[type] = []
        if names is None or "__subclasses__" in names:
            kinds = type.__subclasses__(value)
        tag = (tag, value.__name__, value.__qualname__, *map(id, kinds))
    return tag, keys, [own[name] for name in keys]


def read_module(value: types.ModuleType, names: Any) -> Contents:
    own = vars(value)
    if names is None:
        keys = [name for name in own if not (name.startswith("__") and name.endswith("__"))]
        keys += [name for name in ("__getattr__", "__all__") if name in own]
    elif type(names) is dict:  # of a library's module, a few
        keys = [name for name in names if name in own]
        if "__getattr__" in own and "__getattr__" not in names:
            keys.append("__getattr__")
    else:
        keys = [name for name in own if name in names or name == "__getattr__"]
    return None, keys, [own[name] for name in keys]


def has_none_of(value: Any, reader: Reader, names: set[str]) -> bool:
    """Whether an object, class or module has nothing of these names that its reader would look at."""
    if reader is read_attributes:
        kind = type(value)
        if any(["__slots__" in parent.__dict__ for parent in kind.__mro__]) or isinstance(
            value, threading.local
        ):
            return False
        own = object.__getattribute__(value, "__dict__")
        return isinstance(own, dict) and names.isdisjoint(own)
    if reader is read_class:
        return names.isdisjoint(_CLASS_NAMES) and names.isdisjoint(type.__dict__["__dict__"].__get__(value))
    return reader is read_module and names.isdisjoint(vars(value))


def read_namespace(value: dict[str, Any], names: Any) -> Contents:
    """The global variables of a module, as far as a function reads them."""
    keys = [name for name in (value if names is None else names) if name in value]
    return None, keys, [value[name] for name in keys]


def read_function(value: types.FunctionType, names: Any) -> Contents:
    code = value.__code__
    keys: list[Any] = ["__code__"]
    values: list[Any] = [code]
    for name, cell in zip(code.co_freevars, value.__closure__ or (), strict=False):
        keys.append(f"cell {name}")
        values.append(cell)
    defaults = value.__defaults__
    if defaults:
        parameters = code.co_varnames[: code.co_argcount][-len(defaults) :]
        keys += [f"default {name}" for name in parameters]
        values += defaults
    for name, x in (value.__kwdefaults__ or {}).items():
        keys.append(f"default {name}")
        values.append(x)
    for name, x in value.__dict__.items():
        if names is None or name in names or name.startswith("__"):
            keys.append(name)
            values.append(x)
    if names:
        for name in FUNCTION_NAMES:
            if name in names:
                keys.append(name)
                values.append(getattr(value, name))
    return len(defaults or ()), keys, values


def read_callables(value: Any, names: Any) -> Contents:
    """What purax's own objects hold of the user's: the functions that they transform, and what these were given."""
    found = {}
    for name, x in attributes_of(value).items():
        if callable(x) or isinstance(x, tuple) or name == "__wrapped__":
            if not isinstance(x, (Array, type)):
                found[name] = x
    return None, list(found), list(found.values())


def read_opaque(value: Any, names: Any) -> Contents:
    """Objects that are written in C: the state that pickling would keep, or else what they tell and hold."""
    kind: Any = type(value)
    if kind in _MEMOIZED:
        return None, ["__wrapped__"], [value.__wrapped__]
    if isinstance(value, random.Random):
        return value.getstate(), [], []
    if kind.__module__ == "itertools":
        return _iteration_state(value), [], [x for x in gc.get_referents(value) if x is not kind]
    try:
        if (
            kind.__reduce__ is not object.__reduce__
            or kind.__reduce_ex__ is not object.__reduce_ex__
            or ("__getstate__" in kind.__dict__)
        ):
            return frozen(value.__reduce_ex__(2)), [], []
    except Exception:
        pass
    try:
        with memoryview(value) as view:
            return bytes(view), [], []
    except Exception:
        held = [x for x in gc.get_referents(value) if x is not kind]
        return (length_hint(value), told(value)), [], held


def told(value: Any) -> tuple[Any, ...]:
    """The numbers and texts among the attributes of an object that is written in C, and its digest if it has one."""
    kind = type(value)
    if kind not in _telling:
        _telling[kind] = tuple(
            name
            for parent in kind.__mro__
            for name, member in vars(parent).items()
            if isinstance(member, _MEMBERS) and not name.startswith("_")
        )
    found: list[Any] = []
    for name in _telling[kind]:
        try:
            x = getattr(value, name)
        except Exception:  # it is closed, or not set
            continue
        if type(x) in EXACT:
            found.append((name, x))
    if "digest" in vars(kind):
        with contextlib.suppress(Exception):  # some want to know how long it is to be
            found.append(value.digest())
    return tuple(found)


_MEMBERS = (types.GetSetDescriptorType, types.MemberDescriptorType)
_telling: weakref.WeakKeyDictionary[type, tuple[str, ...]] = weakref.WeakKeyDictionary()


def read_exception(value: BaseException, names: Any) -> Contents:
    """An exception: what it was made of, and what those of Python's classes keep besides."""
    return told(value), ["args", "__cause__", "__context__"], [value.args, value.__cause__, value.__context__]


def read_context(value: decimal.Context, names: Any) -> Contents:
    """A context of `decimal`, whose flags are no more than notes."""
    traps = [signal for signal, is_on in value.traps.items() if is_on]
    return frozen((value.__reduce__()[1][:-2], traps)), [], []


def _iteration_state(value: Any) -> Any:
    """How far an iterator of `itertools` is; pickling them is deprecated, and gone with Python 3.14."""
    if type(value) in (itertools.count, itertools.repeat):
        return repr(value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return frozen(value.__reduce__())
        except Exception:
            return None


def length_hint(value: Any) -> Any:
    hint = getattr(type(value), "__length_hint__", None)
    try:
        return hint(value) if hint is not None else None
    except Exception:
        return None


class Itself:
    """Stands for one object: equal as long as that lives, and never to another one at the same address.

    >>> Itself(len) == Itself(len), Itself(len) == Itself(abs)
    (True, False)
    """

    __slots__ = ("held", "key")

    def __init__(self, x: Any):
        self.key = id(x)
        try:
            self.held: Any = weakref.ref(x)
        except TypeError:  # it has no weak references, so it is kept
            self.held = lambda: x

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Itself):
            return False
        x = self.held()
        return x is not None and x is other.held()

    def __hash__(self) -> int:
        return self.key


def frozen(x: Any, depth: int = 0) -> Any:
    """A value that equals another one exactly if what was reduced is the same."""
    if type(x) in EXACT or depth > 20:
        return (type(x), repr(x)) if type(x) in (float, complex) else (type(x), x)
    if isinstance(x, np.ndarray) and not x.dtype.hasobject:
        return x.shape, str(x.dtype), x.tobytes()
    if isinstance(x, (list, tuple, collections.deque)):
        return type(x), *[frozen(part, depth + 1) for part in x]
    if isinstance(x, (dict, types.MappingProxyType)):
        return type(x), *[(frozen(k, depth + 1), frozen(v, depth + 1)) for k, v in x.items()]
    if isinstance(x, (set, frozenset)):
        return type(x), frozenset(frozen(part, depth + 1) for part in x)
    if isinstance(x, (bytearray, memoryview)):
        return type(x), bytes(x)
    if isinstance(x, (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, Array)):
        return Itself(x)
    if is_value(x):
        return type(x), x
    reader = reader_of(x)
    if reader is None:
        return Itself(x)
    tag, keys, values = reader(x, None)
    return type(x), tag, tuple(map(frozen, keys)), *[frozen(v, depth + 1) for v in values]


_MEMOIZED = (functools._lru_cache_wrapper,)


def memoized(value: Any) -> list[Any]:
    """What a function with `functools.lru_cache` remembers."""
    return [x for x in gc.get_referents(value) if x is not value.__wrapped__ and not isinstance(x, type)]


_NO_ATTRIBUTES = frozenset((functools.partial, functools._lru_cache_wrapper, weakref.ref))
_CONTAINERS: tuple[tuple[Any, Reader], ...] = (
    (np.ndarray, read_array),
    (np.void, read_void),
    ((list, tuple, collections.deque), read_sequence),
    ((dict, types.MappingProxyType), read_mapping),
    ((set, frozenset), read_set),
    ((bytearray, memoryview, ctypes.Array, ctypes.Structure, ctypes.Union), read_bytes),
    (ctypes._SimpleCData, read_bytes),
    (ctypes._Pointer, read_pointer),
    ((type({}.keys()), type({}.values()), type({}.items())), read_view),
    (type(collections.OrderedDict().keys()), read_view),
    (type(collections.OrderedDict().values()), read_view),
    (type(collections.OrderedDict().items()), read_view),
    (BaseException, read_exception),
    (decimal.Context, read_context),
    (functools.partial, read_partial),
    (property, _reading("fget")),
    (functools.cached_property, _reading("func", "attrname")),
    ((staticmethod, classmethod), _reading("__func__")),
    (functools.partialmethod, _reading("func", "args", "keywords")),
    (types.MethodType, _reading("__self__", "__func__")),
    (weakref.WeakMethod, read_reference),
    (weakref.ref, read_reference),
    (contextvars.ContextVar, read_variable),
    ((types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType), read_generator),
    (np.flatiter, read_flat),
    (np.nditer, read_nditer),
    (types.CellType, read_cell),
)


def _function_reader(value: types.FunctionType) -> Reader | None:
    if is_user_code(value.__code__):
        return read_function
    if value.__closure__ is None and not (value.__defaults__ or value.__kwdefaults__ or value.__dict__):
        return None
    if is_fixed_function(value):
        return None
    return read_library_function


def read_library_function(value: types.FunctionType, names: Any) -> Contents:
    _, keys, values = read_function(value, frozenset())
    return None, keys[1:], values[1:]


def _builtin_reader(value: Any) -> Reader | None:
    own = value.__self__
    return None if own is None or isinstance(own, (types.ModuleType, type)) else _read_self


def read_ufunc(value: np.ufunc, names: Any) -> Contents:
    """A function of NumPy's that was made of one in Python."""
    return None, [], [x for x in gc.get_referents(value) if type(x) is not dict]


def read_dtype(value: np.dtype, names: Any) -> Contents:
    """A dtype of which the fields can be given other names."""
    return value.names, [], []


_read_self = _reading("__self__")
_by_type: dict[type, Reader | None] = {}
_by_instance: dict[type, Callable[[Any], Reader | None]] = {
    logging.Logger: lambda value: read_logger,
    logging.RootLogger: lambda value: read_logger,
    type(threading.Lock()): lambda value: read_lock,
    types.FunctionType: _function_reader,
    types.ModuleType: lambda value: read_module if is_user_module(value) else None,
    types.BuiltinFunctionType: _builtin_reader,
    np.ufunc: lambda value: None if hasattr(np, value.__name__) else read_ufunc,
    type(np.dtype("V1")): lambda value: None if value.names is None else read_dtype,
    type([].__add__): _builtin_reader,  # of built-in operators
}


def reads_all(kind: type) -> bool:
    """Whether code that is not the user's may read any attribute of instances of a class of the user's."""
    for parent in kind.__mro__:
        if parent is object:
            continue
        if is_user_class(parent):
            own = vars(parent)
            if "__getattr__" in own or "__getattribute__" in own:
                return True
            if any([name in own and is_generated(own[name]) for name in ("__lt__", "__hash__")]):
                return True
        elif parent.__module__.partition(".")[0] not in _PLAIN_BASES or parent in _HOLDING:
            return True
    return False


def is_generated(value: Any) -> bool:
    """Whether a method was written by `dataclasses` or `attrs`: it reads the fields."""
    code = value.__code__ if isinstance(value, types.FunctionType) else None
    return code is not None and (
        code.co_qualname.startswith("__create_fn__") or code.co_filename.startswith("<attrs generated")
    )


def is_mutable_container(value: Any) -> bool:
    """Whether a value can be changed in place in a way that this module sees."""
    return reader_of(value) is not None and not isinstance(
        value, (types.MethodType, types.BuiltinFunctionType)
    )


def parts_of(values: Iterable[Any]) -> list[Any]:
    """The parts of many values."""
    found: list[Any] = []
    for value in values:
        reader = reader_of(value)
        if reader is not None:
            found += reader(value, None)[2]
    return found
