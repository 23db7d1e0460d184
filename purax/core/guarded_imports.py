"""How purax is imported. Modules whose functions users call: their exceptions are filtered (`purax.core.tracebacks`).

Their files are found by a finder of our own, in our own folders, whose loader guards the functions of a module once it
has run. Nobody else's imports pass through it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
)
from types import ModuleType
from typing import Any

from purax.core.tracebacks import guard_module


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        _watch(getattr(module, "__path__", ()))
        super().exec_module(module)
        guard_module(module)


class _Finder(FileFinder):
    """Finds the modules of a folder, of all names or of some."""

    names: frozenset[str] | None = None

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> Any:
        spec = super().find_spec(fullname, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            if self.names is None or fullname.rpartition(".")[2] in self.names:
                spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def _watch(folders: Iterable[str], names: frozenset[str] | None = None) -> None:
    for folder in folders:
        if isinstance(sys.path_importer_cache.get(folder), (FileFinder, type(None))):
            finder = _Finder(
                folder, (ExtensionFileLoader, EXTENSION_SUFFIXES), (SourceFileLoader, SOURCE_SUFFIXES)
            )
            finder.names = names
            sys.path_importer_cache[folder] = finder


def guard_imports(folders: Iterable[str], names: Iterable[str]) -> None:
    """Guards what modules and packages in our own folders hold, once they are imported.

    Args:
        folders: the `__path__` of a package.
        names: its modules whose functions users call.
    """
    _watch(folders, frozenset(names))


class CollectionPaused:
    """While it lives, Python's garbage collector waits: an import makes nothing but what stays, and looking through it
    again and again takes a tenth of the import."""

    def __init__(self) -> None:
        self._goes_on = gc.isenabled()
        gc.disable()

    def __del__(self) -> None:
        if self._goes_on:
            gc.enable()
