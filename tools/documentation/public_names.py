"""The public modules of purax and the names in them, as the stubs list them.

A package's stub names everything that is public in it. A module that some stub names is public as well; its names are
those of `__all__`, or else those that it defines.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# What stubs name for programs that look inside, and users need not know.
INNER = {"purax.compat", "purax.testing", "purax.core", "purax.config"}
# Public modules that only their own import names.
ALONE = """
example_libraries.optimizers example_libraries.stax pallas.triton pallas.tpu pallas.mosaic_gpu pallas.ops.gpu.attention
pallas.ops.gpu.layer_norm pallas.ops.gpu.rms_norm pallas.ops.gpu.softmax pallas.ops.tpu.flash_attention
pallas.ops.tpu.matmul
""".split()


def public_modules() -> dict[str, list[str]]:
    """The names of every public module, in order of the modules' names."""
    found: dict[str, list[str]] = {}
    waiting = ["purax", *(f"purax.{path}" for path in ALONE if _is_importable(f"purax.{path}"))]
    while waiting:
        path = waiting.pop()
        names, children = _names_of(path)
        found[path] = names
        waiting += [child for child in children if child not in found and child not in INNER]
    return {path: sorted(found[path], key=str.lower) for path in sorted(found) if found[path]}


def _names_of(path: str) -> tuple[list[str], list[str]]:
    """The public names of a module that are no modules, and the paths of those that are."""
    module = importlib.import_module(path)
    names = [name for name in _listed(path, module) if not name.startswith("_")]
    values = {name: value_of(path, name) for name in dict.fromkeys(names)}
    children = [f"{path}.{name}" for name, value in values.items() if inspect.ismodule(value)]
    children = [child for child in children if _is_importable(child)]
    return [name for name, value in values.items() if not inspect.ismodule(value)], children


def value_of(path: str, name: str) -> Any:
    """What a module has under a name, or its submodule that nobody has imported yet."""
    module = importlib.import_module(path)
    return getattr(module, name) if hasattr(module, name) else importlib.import_module(f"{path}.{name}")


def _listed(path: str, module: Any) -> Iterator[str]:
    stub = ROOT.joinpath(*path.split("."), "__init__.pyi")
    if stub.exists():
        yield from _in_stub(stub)
    elif hasattr(module, "__all__"):
        yield from module.__all__
    else:
        for name, value in vars(module).items():
            if getattr(value, "__module__", None) == path and not inspect.ismodule(value):
                yield name


def _in_stub(stub: Path) -> Iterator[str]:
    """The names that are bound in a stub, but not those that only its own annotations need."""
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            yield from (alias.asname for alias in node.names if alias.asname)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name


def _is_importable(path: str) -> bool:
    try:
        return importlib.import_module(path).__name__.startswith("purax")
    except ModuleNotFoundError:
        return False
