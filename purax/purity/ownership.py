"""Who owns a piece of code: the user, or a library (purax, Python's own modules, installed packages)."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
import types
from typing import Any

from purax.core import source
from purax.core.memo import Memo

_PATHS = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
_PATHS |= {os.path.dirname(os.__file__), site.getusersitepackages()}
_LIBRARY = tuple(os.path.join(path, "") for path in sorted(_PATHS) if path)
_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_GENERATED = ("<frozen", "<@beartype", "<attrs generated")
_of_library: Memo[str, bool] = Memo()
_user_modules: dict[str, bool] = {}
_is_user: Memo[str, bool] = Memo()  # by file
source.on_exclude.append(_is_user.clear)


def file_is_library(file: str) -> bool:
    """Whether a source file belongs to Python, to an installed package or to purax."""
    try:
        return _of_library[file]
    except KeyError:
        found = (
            file.startswith(_LIBRARY)
            or f"{os.sep}site-packages{os.sep}" in file
            or file.startswith(_GENERATED)
        )
        _of_library[file] = found
        return found


def is_user_code(code: types.CodeType) -> bool:
    """Whether `code` was written by the user."""
    file = code.co_filename
    try:
        return _is_user[file]
    except KeyError:
        own = _is_user[file] = not source.code_is_internal(code) and not file_is_library(file)
        return own


def is_user_function(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and is_user_code(value.__code__)


def is_own_function(function: types.FunctionType) -> bool:
    """Whether a function belongs to purax."""
    return function.__code__.co_filename.startswith(_PACKAGE)


def is_fixed_function(function: types.FunctionType) -> bool:
    """Whether a function is purax's and holds nothing of the user's: it has no closure, or is a row of a table
    (`core.definitions`), which stands in its module by its name.
    """
    if not is_own_function(function):
        return False
    return function.__closure__ is None or function.__globals__.get(function.__name__) is function


def is_user_class(kind: type) -> bool:
    """Whether a class was written by the user."""
    name = kind.__module__
    if not isinstance(name, str):  # of some extensions
        return False
    known = _user_modules.get(name)
    if known is None:
        if name.startswith("_cython_"):  # of functions of extensions; a module without a file
            known = _user_modules[name] = False
            return known
        module = sys.modules.get(name)
        if module is None:
            return name not in sys.builtin_module_names and not name.startswith("purax.")
        known = _user_modules[name] = is_user_module(module)
    return known


def is_user_module(module: types.ModuleType) -> bool:
    if type(module).__module__.startswith("purax.") or module.__name__.partition(".")[0] in ("jax", "purax"):
        return False
    own = vars(module)  # without asking a `__getattr__` of the module's
    file = own.get("__file__")
    if not isinstance(file, str):
        if getattr(own.get("__spec__"), "origin", None) in ("built-in", "frozen"):
            return False
        package = sys.modules.get(module.__name__.partition(".")[0])
        if package is not None and package is not module:  # a part of an extension, as `jaxlib._jax.pytree`
            return is_user_module(package)
        return module.__name__ == "__main__" or (
            module.__name__ not in sys.builtin_module_names and "__path__" not in own
        )
    return not file.startswith(_PACKAGE) and not file_is_library(file)
