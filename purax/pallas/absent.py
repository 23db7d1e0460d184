"""Names of kernels' languages whose operations only some hardware has: they import, and using one says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purax.core.source import located


def absent_function(module: str, name: str, instead: str) -> Callable[..., Any]:
    """A function that raises, and says what to write instead."""

    def function(*args: Any, **kwargs: Any) -> Any:
        raise located(NotImplementedError, f"{module}.{name} {instead}")

    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    function.__doc__ = f"Not available: {module}.{name} {instead}."
    return function


def absent_class(module: str, name: str, instead: str) -> type:
    """A class that cannot be instantiated, and says what to write instead."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        raise located(NotImplementedError, f"{module}.{name} {instead}")

    return type(
        name,
        (),
        {"__init__": __init__, "__module__": module, "__doc__": f"Not available: {module}.{name} {instead}."},
    )


def own_names(namespace: dict[str, Any]) -> list[str]:
    """The public names of what a module defines."""
    own = namespace["__name__"]
    return [name for name, x in namespace.items() if getattr(x, "__module__", None) == own and name[0] != "_"]
