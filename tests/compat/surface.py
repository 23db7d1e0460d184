"""Prints, as JSON, the public names of modules of jax with their signatures: of jax itself, or of what stands for it.

`python surface.py` asks jax for all its modules; `python surface.py purax names.json` asks the import mode for the
modules and names in a file that the first made.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import sys
import types
import warnings

# Kernels, and code for the inside of jax or for tools beside it.
APART = (
    "pallas",
    "mosaic",
    "jax.tools",
    "jax2tf",
    "collect_profile",
    "cloud_tpu_init",
    "mlir.dialects",
    "mlir.ir",
)
# What a module imported to do its work is not one of its names.
HOMES = (
    "typing",
    "collections",
    "functools",
    "numpy",
    "dataclasses",
    "enum",
    "contextlib",
    "concurrent",
    "pathlib",
)
HELPERS = frozenset(
    "annotations foreach map partial safe_map safe_zip split_list subs_list unsafe_map unsafe_zip unzip2 "
    "weakref_lru_cache wraps zip api_boundary tree_flatten tree_unflatten tree_map tree_leaves lru_cache".split()
)


def signature(value: object) -> list | None:
    try:
        parameters = inspect.signature(value).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return [[p.name, int(p.kind), p.default is p.empty] for p in parameters]


def is_own(name: str, value: object) -> bool:
    if name.startswith("_") or name in HELPERS or isinstance(value, types.ModuleType):
        return False
    home = getattr(value, "__module__", None) or ""
    return not str(home).startswith(HOMES)


def names_of(module: types.ModuleType, wanted: list[str] | None) -> dict[str, list | None]:
    found = {}
    for name in dir(module) if wanted is None else wanted:
        try:
            value = getattr(module, name)
        except (AttributeError, ImportError):
            continue
        if wanted is not None or is_own(name, value):
            found[name] = signature(value) if callable(value) else None
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    wanted: dict[str, list[str] | None]
    if sys.argv[1:2] == ["purax"]:
        import purax.compat.jax  # noqa: F401

        with open(sys.argv[2]) as file:
            wanted = {name: list(names) for name, names in json.load(file)["names"].items()}
        version = ""
    else:
        import jax

        modules = [
            "jax",
            *(info.name for info in pkgutil.walk_packages(jax.__path__, "jax.", lambda _: None)),
        ]
        private = [name for name in modules if any(part.startswith("_") for part in name.split("."))]
        wanted = {m: None for m in modules if m not in private and not any(part in m for part in APART)}
        version = jax.__version__
    names: dict[str, dict[str, list | None]] = {}
    for module, own in wanted.items():
        try:
            names[module] = names_of(importlib.import_module(module), own)
        except ImportError:  # of what is not installed here, or is missing
            names[module] = {}
    json.dump({"version": version, "names": names}, sys.stdout)


if __name__ == "__main__":
    main()
