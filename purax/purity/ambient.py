"""State of Python and of libraries that functions read without being given it: the environment, the locale, contexts
of numbers, settings of NumPy, limits of the interpreter, the table of modules, what is registered with abstract
classes.
"""

from __future__ import annotations

import _thread
import abc
import decimal
import gc
import locale
import os
import pathlib
import random
import socket
import sys
import threading
import types
from typing import Any

import numpy as np

from purax.purity.class_versions import ClassState
from purax.purity.contents import Contents, Reader, frozen

_ENVIRONMENT = (os.getenv, os.putenv, os.unsetenv, os.path.expandvars, os.getenvb)
# Functions without arguments that tell a setting; functions that depend on a setting, with the one that tells it.
_SETTINGS: dict[Any, Any] = {
    x: x
    for x in (
        sys.getrecursionlimit,
        sys.getswitchinterval,
        sys.get_int_max_str_digits,
        gc.isenabled,
        gc.get_threshold,
        np.geterr,
        np.geterrcall,
        np.getbufsize,
        np.get_printoptions,
        socket.getdefaulttimeout,
        threading.active_count,
        threading.current_thread,
        threading.get_ident,
        _thread.get_ident,
    )
}


def _directory() -> str | None:
    """The current directory; None if it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return None


_SETTINGS |= {
    x: _directory for x in (os.getcwd, os.getcwdb, os.path.abspath, os.path.realpath, os.path.relpath)
}
_SETTINGS |= {
    x: np.get_printoptions
    for x in (
        np.array2string,
        np.array_repr,
        np.array_str,
        np.format_float_positional,
        np.format_float_scientific,
    )
}
_ASKING = frozenset(("isinstance", "issubclass"))
_ADDRESSES = frozenset(("from_address", "string_at", "wstring_at"))
_IDENTITY = frozenset(("id", "shares_memory", "may_share_memory", "byte_bounds"))
_IMPORTING = frozenset(("import_module", "__import__", "resolve_name"))


def _read_locale(value: Any, names: Any) -> Contents:
    return locale.setlocale(locale.LC_ALL), [], []


def _read_decimal(value: Any, names: Any) -> Contents:
    context = decimal.getcontext()
    traps = [signal for signal, is_on in context.traps.items() if is_on]
    state = (context.prec, context.rounding, context.Emin, context.Emax, context.capitals, context.clamp)
    return (state, traps), [], []


MODULES: dict[types.ModuleType, Reader] = {locale: _read_locale, decimal: _read_decimal}


# Others are not asked: they may answer with errors of their own.
_BOUND: tuple[Any, ...] = (types.MethodType, types.BuiltinFunctionType, type(np.random.rand))


def holder_of(value: Any) -> Any:
    """The object that a function of a library reads although it is not among its arguments; None if there is none."""
    if value is os.environ or value is getattr(os, "environb", None):
        return os.environ
    if any(value is function for function in _ENVIRONMENT):  # `==` of others may raise
        return os.environ
    own = value.__self__ if isinstance(value, _BOUND) else None
    if own is not None and (own is getattr(random, "_inst", None) or type(own) is np.random.RandomState):
        return own
    return None


class Setting:
    """What a function of a library tells, called without arguments."""

    def __init__(self, function: Any):
        self.function = function


def setting_of(value: Any) -> Setting | None:
    """The setting that a function of a library depends on; None if there is none."""
    if type(value) in (types.FunctionType, types.BuiltinFunctionType, type(np.array2string)):
        return _known.get(value)
    if value is pathlib.Path or type(value) in _PATHS:
        return _known[os.getcwd]
    return None


_PATHS = (pathlib.PosixPath, pathlib.WindowsPath)


def read_setting(value: Setting, names: Any) -> Contents:
    return frozen(value.function()), [], []


_told = {function: Setting(function) for function in _SETTINGS.values()}
_known = {function: _told[teller] for function, teller in _SETTINGS.items()}


PRINTING = _known[np.array2string]


def writes_text(names: set[str]) -> bool:
    """Whether code with these names may make text of arrays."""
    return "str" in names or "repr" in names


def read_registrations(value: Any, names: Any) -> Contents:
    """Changes with every class that is registered with an abstract one."""
    return abc.get_cache_token(), [], []


def read_methods(value: ClassState, names: Any) -> Contents:
    """Whether a class of a library has the methods that it had."""
    return value.holds(), [], []


def read_memory(value: Any, names: Any) -> Contents:
    """What cannot be compared, as memory of which only an address is known: never the same as before."""
    return object(), [], []


def reads_addresses(names: set[str]) -> bool:
    """Whether code with these names may read memory at an address that is a number."""
    return not _ADDRESSES.isdisjoint(names) or {"cast", "ctypes"} <= names


def asks_for_identity(names: set[str]) -> bool:
    """Whether code with these names can tell an object from an equal one in its place, other than by `is`."""
    return not _IDENTITY.isdisjoint(names)


def asks_for_classes(names: set[str]) -> bool:
    """Whether code with these names may ask an abstract class for what is registered with it."""
    return not _ASKING.isdisjoint(names)


def imports_by_name(names: set[str]) -> bool:
    """Whether code with these names may import modules whose names are not written in an `import`."""
    return not _IMPORTING.isdisjoint(names) or {"sys", "modules"} <= names
