"""StableHLO modules that travel: written once in the portable form, and put into other modules where they are called.

A `PortableModule` is known by its bytes alone, so that equal ones are compiled once. `Modules` are the forms of one
function for several platforms. Both are immutable, and hashable as parameters of operations must be.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Sequence
from typing import Any

from purax.xla import isolated, jaxlib_api
from purax.xla.stablehlo import Module

# A name of a function, which must not be looked for inside of strings.
_SYMBOL = re.compile(r'"(?:[^"\\]|\\.)*"|@(?:"(?:[^"\\]|\\.)*"|[\w$.-]+)')
_made_here: set[str] = set()  # digests


class PortableModule:
    """A StableHLO module whose function `main` is to be called.

    Attributes:
        data: the module in StableHLO's portable bytecode.
        fingerprint: a digest of it.
    """

    def __init__(self, data: bytes):
        self.data = bytes(data)
        self.fingerprint = hashlib.sha256(self.data).hexdigest()
        self._refined: dict[tuple[str, ...], PortableModule] = {}

    @classmethod
    def from_text(cls, text: str) -> PortableModule:
        """The module that was made here, of which XLA need not be protected."""
        made = cls(jaxlib_api.to_portable(text))
        _made_here.add(made.fingerprint)
        return made

    @property
    def is_foreign(self) -> bool:
        """Whether it came from a file that another process made."""
        return self.fingerprint not in _made_here

    def read(self) -> isolated.ReadModule:
        """What it says; ValueError if a foreign module is not a program that can be run."""
        return isolated.read_module(self.data)

    def refined(self, in_types: Sequence[str]) -> PortableModule:
        """Of a module with dynamic dimensions, the one for arguments of fixed types; ValueError if these do not fit."""
        key = tuple(in_types)
        known = self._refined.get(key)
        if known is None:
            if self.is_foreign:
                known = PortableModule(isolated.refined_module(self.data, key))
            else:
                known = PortableModule(jaxlib_api.refined(self.data, key))
                _made_here.add(known.fingerprint)
            self._refined[key] = known
        return known

    @functools.cached_property
    def main_types(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The types of arguments and results of `main`, as StableHLO writes them."""
        if self.is_foreign:
            found = self.read()
            return found.in_types, found.out_types
        return jaxlib_api.types_of_main(self.data)

    @functools.cached_property
    def _functions(self) -> Sequence[tuple[str, str]]:
        if self.is_foreign:
            return self.read().functions
        return jaxlib_api.functions_of(jaxlib_api.from_portable(self.data))

    @property
    def text(self) -> str:
        """The module as text."""
        return (
            isolated.module_text(self.data) if self.is_foreign else str(jaxlib_api.from_portable(self.data))
        )

    def put_into(self, module: Module, name: str) -> str:
        """Adds the functions to `module` unless they are there already; what `main` is called in it.

        A module with dynamic dimensions is added anew each time: a function is refined for the sizes of one call.
        """
        copy = len(module.names) if self.is_dynamic else 0
        key = self.fingerprint, copy
        if (*key, "main") not in module.names:
            functions = self._functions
            for own, _ in functions:
                base = name if own == "main" else f"{name}_{own}"
                module.names[*key, own] = module.unique_name(base)
            new_names = {f"@{own}": f"@{module.names[*key, own]}" for own, _ in functions}
            for own, text in functions:
                renamed = _renamed(text, new_names)
                if own == "main":
                    renamed = renamed.replace("func.func public", "func.func private", 1)
                module.functions.append(f"{isolated.MARK}\n{renamed}" if self.is_foreign else renamed)
        return module.names[*key, "main"]

    @property
    def is_dynamic(self) -> bool:
        """Whether it has dynamic dimensions, so that it must be refined before it can be compiled."""
        return "?" in "".join((*self.main_types[0], *self.main_types[1]))


def _renamed(text: str, new_names: dict[str, str]) -> str:
    """The text of a function with other names of functions in it."""

    def change(found: re.Match[str]) -> str:
        return found[0] if found[0][0] == '"' else new_names.get(found[0].replace('"', ""), found[0])

    # Most lines name no function, and those of large constants are very long.
    return "\n".join(_SYMBOL.sub(change, line) if "@" in line else line for line in text.split("\n"))


class Modules:
    """The modules of one function, by platform.

    Attributes:
        by_platform: the module for each platform.
        fingerprint: a digest of them.
        any_platform: whether the first module serves platforms that are not named, too.
    """

    def __init__(self, by_platform: dict[str, PortableModule], any_platform: bool = False):
        self.by_platform = by_platform
        self.any_platform = any_platform
        parts = [f"{platform}:{module.fingerprint}" for platform, module in by_platform.items()]
        self.fingerprint = hashlib.sha256(f"{any_platform} {' '.join(parts)}".encode()).hexdigest()

    def for_platform(self, platform: str, name: str) -> PortableModule:
        """The module for a platform of XLA's; ValueError if the function was not exported for it."""
        own = "cuda" if platform == "gpu" else platform
        if own in self.by_platform:
            return self.by_platform[own]
        if self.any_platform:
            return next(iter(self.by_platform.values()))
        known = tuple(self.by_platform)
        raise ValueError(
            f"Function '{name}' was exported for platforms '{known}' but it is used on '{(platform,)}'. Export it with "
            f"platforms={[*known, platform]!r}, or with disabled_checks=[DisabledSafetyCheck.platform()] to try "
            "all the same."
        )

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Modules) and other.fingerprint == self.fingerprint

    def __repr__(self) -> str:
        return f"Modules({', '.join(self.by_platform)})"
