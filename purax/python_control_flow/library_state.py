"""What objects of Python's library and of other packages hold, as far as they tell.

Objects with attributes are read by these. Of those written in C some tell what they hold (a lock, a checksum, an
element of a tree), others can be pickled; of the rest it is only seen that a method of theirs was called (`watched`).
Settings, such as the context of `decimal`, are objects here too.
"""

from __future__ import annotations

import abc
import contextvars
import decimal
import dis
import functools
import gc
import io
import locale
import logging
import operator
import os
import pickle
import queue
import re
import struct
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from purax import scopes
from purax.python_control_flow.objects import (
    ATTRIBUTES,
    Contents,
    Held,
    Kind,
    NotRestorable,
    set_finders,
    set_kind,
    slots,
)

# Packages whose objects are no state of a program, or know themselves what changes in them.
_LEFT_ALONE = frozenset(
    "purax jax jaxlib ml_dtypes pytest _pytest types typing abc importlib ast dis linecache gc traceback tokenize "
    "_frozen_importlib _frozen_importlib_external zipimport concurrent multiprocessing subprocess".split()
)
_NO_STATE: tuple[type, ...] = (
    *(re.Pattern, re.Match, struct.Struct, logging.Handler, logging.Manager, threading.Thread),
    *(
        staticmethod,
        classmethod,
        type(np.sum),
        operator.itemgetter,
        operator.attrgetter,
        operator.methodcaller,
    ),
)


class _Told(Kind):
    """An object that tells what it holds; `put` gives it that again, if it can."""

    is_mergeable = False

    def __init__(self, tell: Callable[[Any], Any], put: Callable[[Any, Any], object] | None = None):
        self.tell, self.put = tell, put

    def read(self, x):
        try:
            return Contents(self.tell(x), [])
        except Exception:  # it is closed, or has ended
            return Contents(None, [])

    def write(self, x, contents):
        if self.read(x).shape == contents.shape:
            return
        if self.put is None or contents.shape is None:
            raise NotRestorable
        try:
            self.put(x, contents.shape)
        except Exception:
            raise NotRestorable from None


class _Library(type(ATTRIBUTES)):  # type: ignore[misc]
    """An object of a library's class: its methods read the attributes, which therefore must be known."""

    is_strict = True
    takes_traced = False
    is_mergeable = False


class _Logger(_Library):
    """A logger: what it passes on, not what it remembers of that."""

    def read(self, x):
        names = ("level", "propagate", "disabled")
        lists = {"handlers": tuple(x.handlers), "filters": tuple(x.filters)}
        found = {**{name: getattr(x, name) for name in names}, **lists}
        return Contents(list(found), list(found.values()))

    def write(self, x, contents):
        found = dict(zip(contents.shape, contents.children, strict=True))
        for name in ("handlers", "filters"):
            getattr(x, name)[:] = found.pop(name)
        vars(x).update(found)
        x.manager._clear_cache()

    def same(self, x, before):
        now, then = self.read(x).children, before.children
        return now[:3] == then[:3] and all(
            len(a) == len(b) and all(map(operator.is_, a, b)) for a, b in zip(now[3:], then[3:], strict=True)
        )


class _Partial(Kind):
    """A `functools.partial`."""

    is_mergeable = False
    takes_traced = False

    def read(self, x):
        own = dict(vars(x))
        return Contents(list(own), [x.func, x.args, x.keywords, *own.values()])

    def write(self, x, contents):
        function, args, keywords, *rest = contents.children
        own = dict(zip(contents.shape, rest, strict=True))
        x.__setstate__((function, args, keywords, own))

    def label(self, parent, shape, i):
        return f"{parent}.{('func', 'args', 'keywords', *shape)[i]}"


class _Element(Kind):
    """An element of `xml.etree`."""

    is_mergeable = False
    takes_traced = False

    def read(self, x):
        return Contents(len(x), [x.tag, x.text, x.tail, x.attrib, *x])

    def write(self, x, contents):
        x.tag, x.text, x.tail, attributes, *children = contents.children
        if x.attrib is not attributes:
            x.attrib.clear()
            x.attrib.update(attributes)
        x[:] = children


class _ThreadLocal(Kind):
    """What a `threading.local` holds for this thread."""

    is_open = True
    is_mergeable = False

    def read(self, x):
        return Contents(list(x.__dict__), list(x.__dict__.values()))

    def write(self, x, contents):
        x.__dict__.clear()
        x.__dict__.update(zip(contents.shape, contents.children, strict=True))

    def label(self, parent, shape, i):
        return f"{parent}.{shape[i]}"


class _Opaque(Kind):
    """An object of an extension module, of which only a copy can tell whether it changed."""

    is_mergeable = False
    is_restorable = False

    def read(self, x):
        try:
            return Contents(pickle.dumps(x), [])
        except Exception:  # it tells nothing any more
            return Contents(None, [])


class _Silent(_Opaque):
    """An object of an extension module that tells nothing: what is called of it may change it."""

    def read(self, x):
        return Contents(None, [])


OPAQUE, SILENT, LIBRARY = _Opaque(), _Silent(), _Library()


def _lock_state(lock: Any) -> Any:
    return lock.locked()


def _put_lock(lock: Any, is_locked: bool) -> None:
    if not (lock.acquire(blocking=False) if is_locked else lock.release() is None):
        raise NotRestorable


def _own_count(lock: Any) -> int:
    """How often this thread holds a lock that it may take again."""
    if not lock._is_owned():
        return 0
    count = re.search(r"count=(\d+)", repr(lock))
    return int(count[1]) if count else 1


def _put_count(lock: Any, count: int) -> None:
    while _own_count(lock) > count:
        lock.release()
    while _own_count(lock) < count:
        if not lock.acquire(blocking=False):
            raise NotRestorable


def _decimal_state(context: decimal.Context) -> Any:
    traps, flags = ([s for s, on in each.items() if on] for each in (context.traps, context.flags))
    numbers = (context.prec, context.rounding, context.Emin, context.Emax, context.capitals, context.clamp)
    return numbers, traps, flags


def _put_decimal(context: decimal.Context, state: Any) -> None:
    numbers, traps, flags = state
    context.prec, context.rounding, context.Emin, context.Emax, context.capitals, context.clamp = numbers
    for table, wanted in ((context.traps, traps), (context.flags, flags)):
        for signal in table:
            table[signal] = signal in wanted


def _position(file: Any) -> Any:
    if any(file is x for x in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)):
        return None  # what is printed is reported elsewhere
    return "closed" if file.closed else file.tell()


def _put_iteration(x: np.nditer, index: int) -> None:
    x.iterindex = index  # type: ignore[misc]


def _put_state(x: Any, state: bytes) -> None:
    x.state = pickle.loads(state)


_TOLD: dict[type, Kind] = {
    threading.local: _ThreadLocal(),
    type(threading.Lock()): _Told(_lock_state, _put_lock),
    type(threading.RLock()): _Told(_own_count, _put_count),
    decimal.Context: _Told(_decimal_state, _put_decimal),
    contextvars.Context: _Told(lambda x: Held(x.items())),
    queue.SimpleQueue: SILENT,
    functools.partial: _Partial(),
    logging.Logger: _Logger(),
    np.nditer: _Told(lambda x: x.iterindex, _put_iteration),
    np.random.BitGenerator: _Told(lambda x: pickle.dumps(x.state), _put_state),
    np.random.SeedSequence: _Told(lambda x: (x.n_children_spawned, x.state["spawn_key"])),
    weakref.finalize: _Told(lambda x: x.alive),
    io.IOBase.__mro__[1]: _Told(_position),
}


@functools.lru_cache(1)
def _told_late(count: int) -> dict[type, Kind]:
    """Kinds of classes in modules that are seldom imported, among those that are."""
    found: dict[type, Kind] = {}
    for module, name, kind in _LATE:
        if module in sys.modules:
            found[getattr(sys.modules[module], name)] = kind
    return found


_LATE: tuple[tuple[str, str, Kind], ...] = (
    ("xml.etree.ElementTree", "Element", _Element()),
    ("mmap", "mmap", _Told(lambda x: (x[:], x.tell()))),
    ("sqlite3", "Connection", _Told(lambda x: (x.total_changes, x.in_transaction, list(x.iterdump())))),
    ("_hashlib", "HASH", _Told(lambda x: x.digest())),
    ("_md5", "MD5Type", _Told(lambda x: x.digest())),
)


def find_told(x: Any, kind: type) -> Kind | None:
    """The kind of an object that tells what it holds."""
    for known in (_TOLD, _told_late(len(sys.modules))):
        for base in kind.__mro__:
            if base in known:
                return known[base]
    return None


def find(x: Any, kind: type) -> Kind | None:
    """The kind of an object that is neither of a class of the user's nor a plain container."""
    told = find_told(x, kind)
    if told is not None:
        return told
    package = (kind.__module__ or "").partition(".")[0]
    if package in _LEFT_ALONE or isinstance(x, _NO_STATE):
        return None
    if "asyncio" in package and not hasattr(x, "_queue"):
        return None  # loops, tasks and futures
    if hasattr(x, "__dict__") or any("__slots__" in vars(c) for c in kind.__mro__) and slots(kind):
        return LIBRARY
    if not any(not name.startswith("_") and callable(x) for c in kind.__mro__ for name, x in vars(c).items()):
        return None
    if isinstance(x, _KNOWN_STILL):
        return None
    try:
        pickle.dumps(x)
    except Exception:
        return SILENT
    return OPAQUE


_KNOWN_STILL: tuple[type, ...] = (
    *(weakref.ReferenceType, type(object.__init__), type(str.join), type(dict.__dict__["fromkeys"])),
    *(
        type({}.keys()),
        type({}.values()),
        type({}.items()),
        types.GenericAlias,
        types.UnionType,
        decimal.Decimal,
    ),
    *(types.CoroutineType, types.AsyncGeneratorType, type(...), type(NotImplemented), np.broadcast, super),
)

set_finders(find, find_told)


# -- calls of objects that tell nothing


@scopes.scoped
def watched(touched: dict[int, bool]) -> Iterator[None]:
    """`with watched(touched):` notes of which objects, by their ids, a method is called."""
    if not touched:
        yield
        return
    outer = sys.getprofile()

    def notice(frame: types.FrameType, event: Any, argument: Any) -> None:
        if event == "c_call":
            own = id(getattr(argument, "__self__", None))
            if own in touched:
                touched[own] = True
        if outer is not None:
            outer(frame, event, argument)

    sys.setprofile(notice)
    try:
        yield
    finally:
        sys.setprofile(outer)


# -- settings


class Setting:
    """Something that functions read without being given it."""

    def __init__(self, label: str, kind: Kind):
        self.label, self.kind = label, kind


class _Setting(Kind):
    is_mergeable = False

    def read(self, x):
        return x.kind.read(x)

    def write(self, x, contents):
        x.kind.write(x, contents)


def _put_context(_: Any, state: Any) -> None:
    context, values = state
    decimal.setcontext(context)
    _put_decimal(context, values)


def _put_filters(_: Any, state: Any) -> None:
    filters, items = state
    filters[:] = items
    warnings.filters = filters
    getattr(warnings, "_filters_mutated", lambda: None)()


def _put_environment(_: Any, state: dict[str, str]) -> None:
    for name in set(os.environ) - set(state):
        del os.environ[name]
    os.environ.update(state)


_SETTINGS: dict[str, tuple[Kind, str]] = {
    "the context of `decimal`": (
        _Told(lambda _: (decimal.getcontext(), _decimal_state(decimal.getcontext())), _put_context),
        "getcontext localcontext setcontext",
    ),
    "how NumPy treats errors": (_Told(lambda _: np.geterr(), lambda _, s: np.seterr(**s)), "seterr errstate"),
    "how NumPy prints": (
        _Told(lambda _: np.get_printoptions(), lambda _, s: np.set_printoptions(**s)),
        "set_printoptions printoptions",
    ),
    "the recursion limit": (
        _Told(lambda _: sys.getrecursionlimit(), lambda _, s: sys.setrecursionlimit(s)),
        "setrecursionlimit",
    ),
    "the environment": (_Told(lambda _: dict(os.environ), _put_environment), "environ putenv environb"),
    "the current directory": (_Told(lambda _: os.getcwd(), lambda _, s: os.chdir(s)), "chdir"),
    "the locale": (
        _Told(lambda _: locale.setlocale(locale.LC_ALL), lambda _, s: locale.setlocale(locale.LC_ALL, s)),
        "setlocale",
    ),
    "the filters of warnings": (
        _Told(lambda _: (warnings.filters, list(warnings.filters)), _put_filters),
        "filters simplefilter filterwarnings catch_warnings resetwarnings",
    ),
    "the classes that are registered": (_Told(lambda _: abc.get_cache_token()), "register"),
    "the garbage collector": (
        _Told(lambda _: gc.isenabled(), lambda _, s: gc.enable() if s else gc.disable()),
        "isenabled",
    ),
}
SETTINGS: dict[str, Setting] = {
    name: setting
    for label, (kind, names) in _SETTINGS.items()
    for setting in [Setting(label, kind)]
    for name in names.split()
}


# -- modules of libraries


@functools.lru_cache(8192)
def module_stores(code: types.CodeType) -> tuple[tuple[str, str], ...]:
    """The attributes of global variables that code may set: pairs of names."""
    found: list[tuple[str, str]] = []
    try:
        if not _STORES.isdisjoint(code.co_code[::2]):
            known = ""
            for instruction in dis.get_instructions(code):
                name, operand = instruction.opname, instruction.argval
                if name in ("STORE_ATTR", "DELETE_ATTR") and known:
                    found.append((known, operand))
                known = operand if name == "LOAD_GLOBAL" else ""
        if not _SETTERS.isdisjoint(code.co_names):
            texts = [x for x in code.co_consts if isinstance(x, str) and x.isidentifier()]
            found += [(name, text) for name in code.co_names for text in texts]
    except Exception:  # an interpreter whose instructions are not known
        return ()
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found += module_stores(constant)
    return tuple(dict.fromkeys(found))


_SETTERS = frozenset(("setattr", "delattr"))
_STORES = frozenset(dis.opmap[name] for name in ("STORE_ATTR", "DELETE_ATTR") if name in dis.opmap)

set_kind(Setting, _Setting())
