"""Who owns a piece of code: the user, or a library (purax, Python's own modules, installed packages)."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
import types
from typing import Any

from purax.core import source

_PATHS = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
_PATHS |= {os.path.dirname(os.__file__), site.getusersitepackages()}
_LIBRARY = tuple(os.path.join(path, "") for path in sorted(_PATHS) if path)
_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_is_user: dict[int, tuple[types.CodeType, bool]] = {}  # by id: the hash of code goes through all instructions


def file_is_library(file: str) -> bool:
    """Whether a source file belongs to Python, to an installed package or to purax."""
    return file.startswith(_LIBRARY) or f"{os.sep}site-packages{os.sep}" in file or file.startswith("<frozen")


def is_user_code(code: types.CodeType) -> bool:
    """Whether `code` was written by the user."""
    try:
        return _is_user[id(code)][1]
    except KeyError:
        own = not source.code_is_internal(code) and not file_is_library(code.co_filename)
        _is_user[id(code)] = (code, own)
        return own


def is_user_function(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and is_user_code(value.__code__)


def is_own_function(function: types.FunctionType) -> bool:
    """Whether a function belongs to purax."""
    return function.__code__.co_filename.startswith(_PACKAGE)


def is_user_class(kind: type) -> bool:
    """Whether a class was written by the user."""
    module = sys.modules.get(kind.__module__)
    if module is None:
        return kind.__module__ not in sys.builtin_module_names and not kind.__module__.startswith("purax.")
    return is_user_module(module)


def is_user_module(module: types.ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if file is None:
        return module.__name__ == "__main__" or (
            module.__name__ not in sys.builtin_module_names and not hasattr(module, "__path__")
        )
    return not file.startswith(_PACKAGE) and not file_is_library(file)
