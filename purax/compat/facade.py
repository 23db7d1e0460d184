"""`Facade`: the module object that a JAX program gets for `jax`, `jax.numpy`, ….

It looks names up, when they are first asked for, among its submodules and in the modules of purax that stand for it
(see `table`), and keeps what it finds. A name that is nowhere raises `MissingNameError`.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import warnings
from types import ModuleType
from typing import Any

from purax.compat.errors import MissingNameError, describe
from purax.compat.table import MODULES, OLDER_NAMES, PACKAGES

# What Python writes into every module, or asks modules for: those of purax's modules are not those of the facade.
_OF_EVERY_MODULE = frozenset(
    "__annotations__ __builtins__ __cached__ __class_getitem__ __conditional_annotations__ __file__ __getattr__ "
    "__loader__ __path__ __wrapped__".split()
)


class Facade(ModuleType):
    """A module of jax, made of modules of purax."""

    def __getattr__(self, name: str) -> Any:
        own = self.__name__
        if name == "__all__":
            return self.__dir__()
        if name.startswith("__") and name in _OF_EVERY_MODULE:
            raise AttributeError(f"module {own!r} has no attribute {name!r}")
        if self._is_submodule(name):
            return importlib.import_module(f"{own}.{name}")
        for source in sources(own):
            value = getattr(source, name, self)
            if value is not self and not _is_foreign_module(source, name, value):
                if vars(source).get(name, self) is value:  # what is computed when asked for may change
                    self.__dict__[name] = value
                return value
        older = OLDER_NAMES.get(f"{own}.{name}")
        if older is not None:
            return older_name(f"{own}.{name}", *older)
        if name.startswith("__"):
            raise AttributeError(f"module {own!r} has no attribute {name!r}")
        close = difflib.get_close_matches(name, self.__dir__(), 1, 0.8)
        hint = f"Did you mean `{own}.{close[0]}`?" if close else ""
        raise MissingNameError(describe(f"{own}.{name}", hint), name=name)

    def _is_submodule(self, name: str) -> bool:
        """Whether a name is that of a submodule, and not of a function called like it, as `roofline.roofline` is."""
        full = f"{self.__name__}.{name}"
        if full not in MODULES or full == "jax.config" or not has_sources(full):
            return False
        return not any(callable(vars(source).get(name)) for source in sources(self.__name__))

    def __dir__(self) -> list[str]:
        own = self.__name__
        names = {name for name in PACKAGES.get(own, ()) if has_sources(f"{own}.{name}")}
        for source in sources(own):
            public = getattr(source, "__all__", None) or [
                name
                for name in dir(source)
                if name != "annotations" and not isinstance(vars(source).get(name), ModuleType)
                if name in vars(source) or not _exists(f"{source.__name__}.{name}")  # what comes when it is asked for
            ]
            names.update(name for name in public if not name.startswith("_"))
        return sorted(names)

    def __setattr__(self, name: str, value: Any) -> None:
        # `import jax.config` of old programs must not put the module of that name in the place of the settings.
        # Nor must `import jax.experimental.roofline.roofline` hide the function of that name.
        if (
            isinstance(value, ModuleType)
            and f"{self.__name__}.{name}" in MODULES
            and not self._is_submodule(name)
        ):
            return
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"<module {self.__name__!r}, provided by purax>"

    def __reduce__(self):
        return importlib.import_module, (self.__name__,)


def sources(name: str) -> list[ModuleType]:
    """The modules of purax that stand for a module of jax and exist, in the order in which they are asked."""
    found = []
    for source in MODULES[name]:
        try:
            found.append(importlib.import_module(source))
        except ModuleNotFoundError as error:
            if error.name is None or not (source + ".").startswith(error.name + "."):
                raise
    return found


def has_sources(name: str) -> bool:
    """Whether purax has one of the modules that stand for a module of jax."""
    return not MODULES[name] or any(_exists(source) for source in MODULES[name])


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _is_foreign_module(source: ModuleType, name: str, value: Any) -> bool:
    """Whether a value is a module that happens to be visible in `source` and is no name of its own."""
    return (
        isinstance(value, ModuleType)
        and not isinstance(value, Facade)
        and name not in getattr(source, "__all__", ())
    )


def older_name(name: str, target: str, advice: str) -> Any:
    """What a name that jax has given up stands for now, with a `DeprecationWarning`."""
    warnings.warn(f"`{name}` is an older name of jax; {advice}", DeprecationWarning, stacklevel=3)
    module, _, attribute = target.rpartition(".")
    return getattr(importlib.import_module(module), attribute)
