"""Paths to values outside of a function: a variable, and the attributes and items that lead on from it.

A path is a tuple (kind, base, name, key). Roots are ("global", namespace, name), ("cell", cell, name) and ("object",
value, name); steps are ("attr", path, name), ("item", path, index), ("method", path, name) to the function behind a
method, and ("call", path, "()") to what a function without arguments gives. Equal paths have equal keys.
"""

from __future__ import annotations

from typing import Any

Path = tuple


def root(kind: str, holder: Any, name: str) -> Path:
    """The path to a global variable, a variable in a cell, or an object."""
    return (kind, holder, name, (id(holder), name if kind == "global" else kind))


def step(kind: str, base: Path | None, name: Any) -> Path | None:
    """The path one attribute, item, method or call on; None if there is no path to begin with."""
    return None if base is None else (kind, base, name, (kind, base[3], name, type(name)))


def follow(path: Path) -> Any:
    """What stands at a path now."""
    kind = path[0]
    if kind == "attr":
        return getattr(follow(path[1]), path[2])
    if kind == "item":
        return follow(path[1])[path[2]]
    if kind == "global":
        return path[1][path[2]]
    if kind == "method":
        return getattr(follow(path[1]), path[2]).__func__
    if kind == "call":
        return follow(path[1])()
    if kind == "cell":
        return path[1].cell_contents
    return path[1]


def path_text(path: Path) -> str:
    """How messages call what stands at a path: `cfg.layers[0].scale`."""
    if path[0] in ("attr", "method"):
        return f"{path_text(path[1])}.{path[2]}"
    if path[0] == "call":
        return f"{path_text(path[1])}()"
    if path[0] == "item":
        return f"{path_text(path[1])}[{path[2]!r}]"
    return path[2]


def is_written(path: Path, places: set[tuple[str, int]], written: dict[Any, tuple[str, int]]) -> bool:
    """Whether what stands at a path, or what it is in, was assigned at one of `places`."""
    while True:
        if written.get(path[3]) in places:
            return True
        if path[0] not in ("attr", "item", "method", "call"):
            return False
        path = path[1]
