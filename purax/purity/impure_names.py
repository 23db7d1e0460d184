"""The functions and objects of Python and NumPy that reach outside of a program, with what to write instead.

Logging and warnings are not among them: a message about tracing, once per trace, is what they are for.
"""

from __future__ import annotations

import builtins
import contextvars
import io
import os
import pathlib
import random
import struct
import types
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from purax.purity.ownership import is_user_class


class Impurity(NamedTuple):
    """A class of effects: `consequence` says what would happen, `advice` what to write instead."""

    kind: str
    consequence: str
    advice: str


PRINT = Impurity(
    "print",
    "it prints once, while the function is traced, and shows traced values instead of numbers",
    'purax.debug.print("{}", x) prints when the program runs',
)
INPUT = Impurity(
    "input",
    "it asks once, while the function is traced, and the answer becomes a constant of the program",
    "read the input outside and pass it as an argument, or use purax.experimental.io_callback",
)
FILE = Impurity(
    "file",
    "it happens once, while the function is traced, and not when the compiled program runs",
    "do it outside of the function, or in a purax.experimental.io_callback",
)
CLOCK = Impurity(
    "clock",
    "the time of tracing becomes a constant of the program",
    "read the clock outside and pass the time as an argument, or use purax.experimental.io_callback",
)
RANDOM = Impurity(
    "random",
    "one draw, made while the function is traced, becomes a constant of the program",
    "pass a key and draw with it: purax.random.normal(key, shape), purax.random.uniform(key), …",
)
ENVIRONMENT = Impurity(
    "environment",
    "the value at the time of tracing becomes a constant of the program",
    "read the environment outside and pass the value as an argument",
)
PROCESS = Impurity(
    "process",
    "it happens once, while the function is traced, and not when the compiled program runs",
    "do it outside of the function, or in a purax.experimental.io_callback",
)
EXECUTE = Impurity(
    "exec",
    "it runs once, while the function is traced, and what it does cannot be checked",
    "write the code as a function",
)
ITERATOR = Impurity(
    "iterator",
    "it is advanced once, while the function is traced; every later call sees the same item",
    "call next() outside of the function and pass the item as an argument",
)

_BUILTINS: dict[Any, Impurity] = {
    builtins.print: PRINT,
    builtins.input: INPUT,
    builtins.open: FILE,
    builtins.exec: EXECUTE,
}
_MODULES: dict[str, tuple[Impurity, str]] = {
    "time": (
        CLOCK,
        "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time process_time_ns thread_time "
        "thread_time_ns localtime gmtime ctime asctime strftime sleep clock_gettime clock_gettime_ns",
    ),
    "os": (
        PROCESS,
        "system popen remove unlink rename replace mkdir makedirs rmdir removedirs open read write close fork execv "
        "kill listdir scandir walk stat chdir getcwd getpid symlink link truncate chmod utime getlogin times",
    ),
    "posix": (
        PROCESS,
        "system remove unlink rename replace mkdir rmdir open read write close fork execv kill listdir scandir stat "
        "chdir getcwd getpid symlink link truncate chmod utime getlogin getloadavg times",
    ),
    "genericpath": (FILE, "exists isfile isdir getsize getmtime getatime getctime samefile"),
    "posixpath": (FILE, "lexists ismount realpath expanduser abspath relpath"),
    "ntpath": (FILE, "lexists ismount realpath expanduser abspath relpath"),
    "glob": (FILE, "glob iglob"),
    "shutil": (FILE, "copy copy2 copyfile copytree rmtree move disk_usage which"),
    "gzip": (FILE, "open"),
    "bz2": (FILE, "open"),
    "lzma": (FILE, "open"),
    "tarfile": (FILE, "open"),
    "zipfile": (FILE, "ZipFile"),
    "codecs": (FILE, "open"),
    "shelve": (FILE, "open"),
    "mmap": (FILE, "mmap"),
    "sqlite3": (FILE, "connect"),
    "_sqlite3": (FILE, "connect"),
    "fileinput": (FILE, "input"),
    "PIL.Image": (FILE, "open"),
    "socket": (PROCESS, "socket create_connection gethostname getaddrinfo"),
    "_socket": (PROCESS, "gethostname getaddrinfo"),
    "requests.api": (PROCESS, "request get options head post put patch delete"),
    "threading": (PROCESS, "Thread Timer"),
    "atexit": (PROCESS, "register unregister"),
    "signal": (PROCESS, "signal alarm"),
    "sys": (PROCESS, "setrecursionlimit settrace setprofile setswitchinterval"),
    "getpass": (INPUT, "getpass getuser"),
    "gc": (PROCESS, "enable disable freeze"),
    "tempfile": (FILE, "NamedTemporaryFile TemporaryFile mkdtemp mkstemp TemporaryDirectory"),
    "subprocess": (PROCESS, "run Popen call check_call check_output getoutput getstatusoutput"),
    "uuid": (RANDOM, "uuid1 uuid4"),
    "secrets": (RANDOM, "token_bytes token_hex token_urlsafe randbelow choice randbits"),
    "pickle": (FILE, "dump load"),
    "_pickle": (FILE, "dump load"),
    "json": (FILE, "dump load"),
    "csv": (FILE, "reader writer"),
    "_csv": (FILE, "reader writer"),
    "numpy": (FILE, "save savez savez_compressed savetxt load loadtxt genfromtxt fromfile memmap"),
    "numpy.lib": (FILE, "save savez savez_compressed savetxt load loadtxt genfromtxt"),
    "urllib.request": (PROCESS, "urlopen urlretrieve"),
    "io": (FILE, "open"),
    "pprint": (PRINT, "pprint pp"),
}
_FUNCTIONS = {
    (module, name): impurity for module, (impurity, names) in _MODULES.items() for name in names.split()
}
_FUNCTIONS |= {("numpy", name): PROCESS for name in ("seterr", "seterrcall", "set_printoptions")}
_DATES = {"now", "utcnow", "today"}
_FILE_METHODS = set("read readline readlines write writelines readinto flush seek truncate close".split())
_PATH_METHODS = set(
    "open read_text read_bytes write_text write_bytes mkdir rmdir unlink touch rename replace exists is_file is_dir "
    "iterdir glob rglob stat symlink_to chmod resolve absolute expanduser is_symlink is_mount samefile lstat readlink "
    "owner group".split()
)
_ENVIRONMENT_FUNCTIONS = {os.getenv, os.putenv, os.unsetenv, os.urandom}
RANDOM_SOURCES = (random.Random, np.random.Generator, np.random.RandomState, np.random.BitGenerator)
_RANDOM_READS = {"__class__", "bit_generator", "seed_seq"}
_REACHING = (*RANDOM_SOURCES, io.IOBase, pathlib.PurePath)
_ITERATORS = (types.GeneratorType, io.IOBase)


def impurity_of_call(function: Any, count: int = 0) -> tuple[Impurity, str] | None:
    """What calling `function` with `count` arguments does to the world, and its name; None if nothing known."""
    try:
        if function in _BUILTINS:
            return _BUILTINS[function], function.__name__
    except TypeError:
        return None
    own = getattr(function, "__self__", None)
    if own is not None and not isinstance(own, types.ModuleType):
        return _impurity_of_method(own, getattr(function, "__name__", ""))
    if function in _ENVIRONMENT_FUNCTIONS:
        return (RANDOM if function is os.urandom else ENVIRONMENT), f"os.{function.__name__}"
    module, name = getattr(function, "__module__", None), getattr(function, "__name__", "")
    if not isinstance(module, str):
        return None
    if not count and (function in _SEEDED or _is_bit_generator(function)):
        return RANDOM, f"{module}.{name}()"
    if function is random.SystemRandom:
        return RANDOM, "random.SystemRandom"
    if module in ("numpy.random", "numpy.random.mtrand") and not isinstance(function, type):
        return None if name == "default_rng" else (RANDOM, f"numpy.random.{name}")
    found = _FUNCTIONS.get((module, name))
    if found is None and module.startswith("numpy.lib."):
        found = _FUNCTIONS.get(("numpy.lib", name))
    if found is None and module.startswith("json"):
        found = _FUNCTIONS.get(("json", name))
    if found is None and module.startswith("pandas.io") and name.startswith("read_"):
        found = FILE
    return None if found is None else (found, f"{module.lstrip('_')}.{name}")


_SEEDED = {random.Random, np.random.default_rng, np.random.RandomState, np.random.SeedSequence}


def _is_bit_generator(function: Any) -> bool:
    return isinstance(function, type) and issubclass(function, np.random.BitGenerator)


def _impurity_of_method(own: Any, name: str) -> tuple[Impurity, str] | None:
    if isinstance(own, RANDOM_SOURCES):
        if isinstance(own, random.Random) and own is getattr(random, "_inst", None):
            return RANDOM, f"random.{name}"
        if own is getattr(np.random.mtrand, "_rand", None):
            return RANDOM, f"numpy.random.{name}"
        return RANDOM, f"{type(own).__name__}.{name}"
    if own is os.environ:
        return ENVIRONMENT, "os.environ"
    if isinstance(own, io.IOBase) or (name == "write" and hasattr(own, "flush") and hasattr(own, "isatty")):
        return (FILE, f"{type(own).__name__}.{name}") if name in _FILE_METHODS else None
    if isinstance(own, pathlib.PurePath):
        return (FILE, f"Path.{name}") if name in _PATH_METHODS else None
    if isinstance(own, type):
        if name in _DATES and own.__module__ == "datetime":
            return CLOCK, f"{own.__name__}.{name}"
        if issubclass(own, pathlib.PurePath) and name in ("cwd", "home"):
            return ENVIRONMENT, f"Path.{name}"
    if name == "__next__" or (name == "send" and isinstance(own, types.GeneratorType)):
        return ITERATOR, "next"
    return None


def may_be_impure(value: Any) -> bool:
    """Whether calling a value, or a method of it, may reach outside of a program, or reading it uses it up."""
    if isinstance(value, (types.FunctionType, types.ModuleType)) and not isinstance(value, type):
        return isinstance(value, types.FunctionType) and impurity_of_call(value) is not None
    if is_user_class(value if isinstance(value, type) else type(value)):  # asking it would run its code
        if isinstance(value, type):
            return pathlib.PurePath in value.__mro__
        kinds = type(value).__mro__
        return any([kind in kinds for kind in _REACHING]) or is_iterator(value)
    if isinstance(value, type):
        if issubclass(value, pathlib.PurePath) or (
            value.__module__ == "datetime" and hasattr(value, "today")
        ):
            return True
    elif isinstance(value, _REACHING) or is_iterator(value):
        return True
    return callable(value) and impurity_of_call(value) is not None


def method_is_impure(kind: type, name: str) -> bool:
    """Whether a method of an object of class `kind`, made inside of the function, reaches outside of it."""
    return issubclass(kind, pathlib.PurePath) and name in _PATH_METHODS


def is_iterator(value: Any) -> bool:
    """Whether reading `value` uses it up."""
    return hasattr(type(value), "__next__") and hasattr(type(value), "__iter__")


_CONTAINER_METHODS = {
    list: "append extend insert remove pop clear sort reverse __setitem__ __delitem__ __iadd__",
    dict: "update setdefault pop popitem clear __setitem__ __delitem__ move_to_end subtract",
    set: "add update discard remove pop clear intersection_update difference_update symmetric_difference_update",
    bytearray: "append extend insert remove pop clear reverse",
    np.ndarray: "fill sort partition put resize itemset setflags setfield __setitem__",
}
_MUTATING = {kind: frozenset(names.split()) for kind, names in _CONTAINER_METHODS.items()}
_DEQUE = frozenset(
    "append appendleft extend extendleft insert remove pop popleft clear rotate reverse".split()
)
MUTATING_NAMES = frozenset().union(*_MUTATING.values(), _DEQUE)


def changes_its_object(kind: type, name: str) -> bool:
    """Whether the method `name` of a container class changes the container."""
    for base, names in _MUTATING.items():
        if issubclass(kind, base):
            return name in names
    if kind is contextvars.ContextVar:
        return name in ("set", "reset")
    if kind.__module__ in ("collections", "array", "queue", "_queue", "multiprocessing.queues", "weakref"):
        return name in MUTATING_NAMES or name in ("put", "put_nowait", "get", "get_nowait", "append")
    return False


def only_changes_its_object(kind: type, name: str) -> bool:
    """Whether a method changes the container and tells nothing about what was in it."""
    return name not in (
        "pop",
        "popitem",
        "popleft",
        "setdefault",
        "get",
        "get_nowait",
    ) and changes_its_object(kind, name)


# Functions that change their first argument.
_FIRST = {
    (np, "copyto"), (np, "put"), (np, "place"), (np, "putmask"), (np, "fill_diagonal"), (np, "put_along_axis"),
}  # fmt: skip
_FIRST_NAMES = {
    "_heapq": "heappush heappop heapify heapreplace heappushpop",
    "heapq": "heappush heappop heapify heapreplace heappushpop",
    "_bisect": "insort insort_left insort_right",
    "bisect": "insort insort_left insort_right",
    "_operator": "setitem delitem iadd isub imul iand ior ixor iconcat itruediv ifloordiv imod ipow",
    "operator": "setitem delitem iadd isub imul iand ior ixor iconcat itruediv ifloordiv imod ipow",
    "builtins": "setattr delattr",
}
_FIRST_FUNCTIONS = {(module, name) for module, names in _FIRST_NAMES.items() for name in names.split()}
_FIRST_OBJECTS = {id(getattr(module, name)) for module, name in _FIRST}


_NOTHING: tuple[int, ...] = ()


def changed_arguments(function: Any, count: int) -> Sequence[int]:
    """Which of the `count` arguments a call of `function` changes, by position."""
    if isinstance(function, np.ufunc):
        return range(function.nin, count)  # the results go there
    if not count:
        return _NOTHING
    own = getattr(function, "__self__", None)
    name = getattr(function, "__name__", "")
    if isinstance(own, np.ufunc):
        return (0,) if name == "at" else _NOTHING
    if isinstance(own, RANDOM_SOURCES):
        return (0,) if name == "shuffle" else _NOTHING
    if name == "pack_into":
        return (0,) if isinstance(own, struct.Struct) else (1,)
    if id(function) in _FIRST_OBJECTS or (getattr(function, "__module__", None), name) in _FIRST_FUNCTIONS:
        return (0,)
    kind = getattr(function, "__objclass__", None)  # list.append(x, y), object.__setattr__(x, …)
    if kind is None:
        return _NOTHING
    return (0,) if name in ("__setattr__", "__delattr__") or changes_its_object(kind, name) else _NOTHING


# Methods of NumPy arrays, and functions of NumPy, whose result may be a part of the array.
VIEWING_NAMES = frozenset(
    "reshape ravel view transpose swapaxes squeeze diagonal asarray asanyarray ascontiguousarray atleast_1d atleast_2d "
    "atleast_3d expand_dims moveaxis rollaxis broadcast_to flip flipud fliplr rot90 split array_split hsplit vsplit "
    "real imag require nditer".split()
)
