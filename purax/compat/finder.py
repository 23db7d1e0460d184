"""The finder that resolves `jax` and its submodules to facades, and switching it on.

It stands first in `sys.meta_path`, so that an installed jax is never reached. It also answers for the metadata of the
distribution `jax`, which libraries ask for its version.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.metadata
import os
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from purax.compat import attributes, children
from purax.compat.errors import MissingImportError, MissingModuleError, describe
from purax.compat.facade import Facade, has_sources
from purax.compat.settings import settings
from purax.compat.table import MODULES, PACKAGES
from purax.compat.version import JAX_VERSION
from purax.config import config
from purax.core.array import Array
from purax.core.trace import Tracer
from purax.interpreters import plain_numbers
from purax.numpy._promotion import wraps
from purax.primitives.random.rng_bit_generator import batches
from purax.xla import callbacks
from purax.xla.array import DeviceArray


class _Distribution(importlib.metadata.Distribution):
    """The metadata of jax, for `importlib.metadata.version("jax")`."""

    def read_text(self, filename: str) -> str | None:
        if filename in ("METADATA", "PKG-INFO"):
            return f"Metadata-Version: 2.1\nName: jax\nVersion: {JAX_VERSION}\nSummary: provided by purax\n"
        return None

    def locate_file(self, path: Any) -> Any:
        return path


class JaxFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and loads the modules of jax that purax stands for."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "jax" and not name.startswith("jax."):
            return None
        if name in MODULES and has_sources(name):
            return importlib.machinery.ModuleSpec(name, self, origin="purax", is_package=True)
        parent, _, last = name.rpartition(".")
        if parent in PACKAGES and (parent == "jax" or name in MODULES):
            raise MissingModuleError(describe(name))
        # `from jax.lax import foo` arrives here, too, since every facade is a package: say which name it was.
        raise MissingImportError(describe(name), name=last)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return Facade(spec.name, f"`{spec.name}`, provided by purax.")

    def exec_module(self, module: ModuleType) -> None:
        module.__path__ = []

    def find_distributions(self, context: Any = None) -> Iterator[importlib.metadata.Distribution]:
        if getattr(context, "name", None) == "jax":
            yield _Distribution()


_finder = JaxFinder()


def is_installed() -> bool:
    """Whether `import jax` gives purax in this process.

    >>> from purax.compat import is_installed
    >>> is_installed()
    False
    """
    return _finder in sys.meta_path


def install() -> None:
    """Lets `import jax` give purax, in this process and in the Python processes that it starts.

    `JAX_*` environment variables set the flags of the same names. Side effects, which programs and libraries written
    for JAX have on purpose, are not reported, unless the environment variable PURAX_PURITY says so. Dtypes of 64 bits
    become 32, with a warning, unless `jax_enable_x64` is set.

    Raises:
        ImportError: the real jax was imported before.
    """
    if is_installed():
        return
    real = [name for name, module in sys.modules.items() if _is_jax(name) and not isinstance(module, Facade)]
    if real:
        where = getattr(sys.modules[real[0]], "__file__", None)
        raise ImportError(
            f"purax cannot stand in for jax in this process, since jax was imported before (from {where}). Import "
            "purax.compat.jax before everything that imports jax, or start the program with `purax run`."
        )
    sys.meta_path.insert(0, _finder)
    attributes.attach()
    children.prepare()
    config.update("explicit_x64_dtypes", "warn")
    config.update("check_indices", False)
    config.update("threefry_partitionable", True)
    config.update("host_products", False)  # jax's eager operations are programs, and round as those do
    settings.read_environment()
    if "PURAX_PURITY" not in os.environ:
        config.update("purity", "off")
    callbacks.names_kinds = True
    plain_numbers.stay = True
    wraps.integers = True
    batches.from_first_key = True
    # Libraries ask `isinstance(x, Hashable)`, which only None denies.
    for kind in (Array, DeviceArray, Tracer):
        kind.__hash__ = None  # type: ignore[assignment]


def _is_jax(name: str) -> bool:
    return name == "jax" or name.startswith("jax.")
