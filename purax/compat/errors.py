"""What a program meets when it asks for a name of jax that purax lacks.

Each error is of the kind that Python raises there, so that `hasattr`, `getattr` with a default and the `try: import`
of libraries keep working, and each says which name it was.
"""

from __future__ import annotations

from purax.compat.version import JAX_VERSION, PURAX_VERSION


class MissingNameError(AttributeError):
    """A name of a jax module that purax does not have, as in `jax.lax.foo`."""


class MissingImportError(ImportError):
    """A name of a jax module that purax does not have, as in `from jax.lax import foo`."""


class MissingModuleError(ModuleNotFoundError):
    """A module of jax that purax does not have."""


def describe(name: str, hint: str = "") -> str:
    """The message for a missing name, written in full: `jax.lax.foo`."""
    return (
        f"`{name}` is missing in purax {PURAX_VERSION}, which stands in for jax {JAX_VERSION} here."
        f"{f' {hint}' if hint else ''} If it is a name of jax that you need, please report it to purax."
    )
