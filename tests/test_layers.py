"""The order of the rooms: every module imports only from its own layer or from layers to its left.

Imports are read from the syntax tree, not by running anything, so that an import inside a function or under
`TYPE_CHECKING` counts like any other. The second half plants violations in small trees to show that each is caught.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "purax"

# From left to right. A pattern is matched against the module's name without the leading "purax.", and against the
# first part of that name; the first layer that matches is the module's. "" is purax/__init__.py.
LAYERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "xla.jaxlib_api",
        ("xla", "xla.jaxlib_api"),
    ),  # purax/xla/__init__.py runs before it, so it imports nothing either
    (
        "tree, config, errors, typing",
        ("tree/*", "tree_util", "config", "errors", "scopes", "_scopes", "typing"),
    ),
    ("core", ("core/*", "memory", "references", "references.cells")),
    (
        "xla, and sharding as a description",
        (
            "xla/*",
            "sharding",
            "sharding.mesh",
            "sharding.shardings",
            "sharding.shards",
            "sharding.propagation",
        ),
    ),
    ("primitives", ("primitives/*",)),
    ("interpreters", ("interpreters/*",)),
    ("lowering", ("lowering/*",)),
    ("execution", ("execution/*",)),
    ("sharding constraints", ("sharding.constraints",)),
    ("api", ("api/*", "references.traced")),
    ("sharding as transformations", ("sharding/*",)),
    ("control_flow", ("control_flow/*", "references.loop_carries")),
    ("ref", ("ref",)),
    ("callbacks", ("callbacks/*",)),
    ("purity", ("purity/*",)),
    ("python_control_flow", ("python_control_flow/*",)),
    ("lax", ("lax/*",)),
    ("numpy", ("numpy/*",)),
    (
        "libraries (random, nn, scipy, image, ...)",
        ("random/*", "nn/*", "scipy/*", "image/*", "dtypes/*", "flatten_util/*", "custom_batching/*", "ops"),
    ),
    (
        "tools (debug, profiler, export, experimental, testing, ...)",
        (
            *("debug/*", "profiler/*", "export/*", "experimental/*", "explorer/*", "stages/*"),
            *("testing/*", "test_util/*"),
            *("ad_checkpoint/*", "custom_derivatives/*", "distributed/*", "dlpack/*", "ffi/*"),
            *("pallas/*", "ragged/*", "example_libraries/*", "planning/*", "checkpoints/*"),
        ),
    ),
    ("purax/__init__.py", ("",)),
    ("compat", ("compat/*",)),
    ("commands", ("commands/*", "__main__")),
)

# Imports inside functions that are wanted: (importing module, imported module) -> the reason.
LAZY_IMPORTS: dict[tuple[str, str], str] = {
    (
        "purax.python_control_flow.rewriter",
        "purax.python_control_flow.rewriting",
    ): "only functions with control flow on traced values are rewritten",
    (
        "purax.python_control_flow.rewriter",
        "purax.python_control_flow.heap",
    ): "only functions that change something have state to be put back",
    (
        "purax.python_control_flow.rewriter",
        "purax.python_control_flow.function_source",
    ): "the source is read only where an error about a traced value was caught",
    (
        "purax",
        "purax.config",
    ): "public names are looked up when they are first used, to keep `import purax` fast",
    (
        "purax.compat.child_site.sitecustomize",
        "purax.compat.jax",
    ): "runs at the start of every child process, most of which never import jax",
    (
        "purax.ops",
        "purax.numpy._reductions.segments",
    ): "jax.ops is the public name of the segment reductions, which are written with NumPy's functions",
}


@dataclass(frozen=True)
class Import:
    """One imported module: where it stands, its absolute name, and whether a function or `if` body holds it."""

    file: Path
    line: int
    importer: str
    imported: str
    in_function: bool
    for_types: bool


def layer_of(module: str) -> int | None:
    """The position of a module's layer, None if no layer names it; `module` is absolute."""
    name = module.removeprefix("purax").removeprefix(".")
    for position, (_, patterns) in enumerate(LAYERS):
        for pattern in patterns:
            if fnmatch(name, pattern) or (pattern.endswith("/*") and name.split(".")[0] == pattern[:-2]):
                return position
    return None


def modules_of(package: Path) -> dict[str, Path]:
    """Absolute module names of all Python files below `package`."""
    found = {}
    for file in sorted(package.rglob("*.py")):
        parts = ("purax", *file.relative_to(package).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


_read: dict[Path, list[Import]] = {}


def imports_of(module: str, file: Path, modules: dict[str, Path]) -> list[Import]:
    """Every import of a file, with relative names resolved; `from package import submodule` names the submodule."""
    if file not in _read:
        _read[file] = list(_imports_of(module, file, modules))
    return _read[file]


def _imports_of(module: str, file: Path, modules: dict[str, Path]) -> Iterator[Import]:
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]

    def targets(node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                root = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1])
                base = f"{root}.{base}" if base else root
            for alias in node.names:
                yield f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules else base
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = (
                node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            )
            name = node.args[0].value
            if function in ("import_module", "__import__") and isinstance(name, str):
                yield f"{package}{name}" if name.startswith(".") else name

    def visit(node: ast.AST, in_function: bool, for_types: bool) -> Iterator[Import]:
        for name in dict.fromkeys(targets(node)):
            yield Import(file, node.lineno, module, name, in_function, for_types)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for child in node.body:
                yield from visit(child, in_function, True)
            for child in node.orelse:
                yield from visit(child, in_function, for_types)
            return
        inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside, for_types)

    yield from visit(ast.parse(file.read_text(), str(file)), False, False)


def is_part_of(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def violations(package: Path) -> list[str]:
    """One message per import that goes against the order, with file, line and the allowed direction."""
    modules = modules_of(package)
    order = " < ".join(title for title, _ in LAYERS)
    messages = []
    eager: dict[str, dict[str, Import]] = {}
    for module, file in modules.items():
        here = layer_of(module)
        if here is None:
            messages.append(f"{file}:1: {module} has no layer; give it one in LAYERS of tests/test_layers.py")
            continue
        for found in imports_of(module, file, modules):
            where = f"{file}:{found.line}: {module} imports {found.imported}"
            if is_part_of(found.imported, "jax"):
                messages.append(f"{where}; purax does not depend on the jax package")
            elif is_part_of(found.imported, "jaxlib") and not is_part_of(module, "purax.xla"):
                messages.append(f"{where}; only purax/xla may, through purax/xla/jaxlib_api.py")
            if not is_part_of(found.imported, "purax"):
                continue
            if found.in_function and (module, found.imported) not in LAZY_IMPORTS:
                messages.append(
                    f"{where} inside a function; import it at the top, or move the code a layer up"
                )
            there = layer_of(found.imported)
            if there is None:
                messages.append(f"{where}, which has no layer; give it one in LAYERS of tests/test_layers.py")
            elif here == 0:
                messages.append(f"{where}; {LAYERS[0][0]} is the leftmost layer and imports nothing of purax")
            elif there > here and (module, found.imported) not in LAZY_IMPORTS:
                messages.append(
                    f"{where}: {LAYERS[here][0]} may not import {LAYERS[there][0]}. Allowed: {order}"
                )
            elif not found.in_function and not found.for_types:
                eager.setdefault(module, {}).setdefault(found.imported, found)
    return messages + cycles(eager)


def cycles(eager: dict[str, dict[str, Import]]) -> list[str]:
    """A message per import that closes a ring of modules which import one another while they load."""
    messages = []
    state: dict[str, str] = {}

    def walk(module: str, path: list[str]) -> None:
        state[module] = "open"
        for target, found in eager.get(module, {}).items():
            if state.get(target) == "open" and target != module:
                ring = [*path[path.index(target) :], target]
                messages.append(f"{found.file}:{found.line}: import cycle {' -> '.join(ring)}")
            elif target not in state:
                walk(target, [*path, target])
        state[module] = "done"

    for module in sorted(eager):
        if module not in state:
            walk(module, [module])
    return messages


def test_every_module_imports_only_from_its_left():
    found = violations(PACKAGE)
    assert not found, "\n" + "\n".join(found)


def test_every_lazy_import_that_is_allowed_is_still_there():
    modules = modules_of(PACKAGE)
    present = {
        (found.importer, found.imported)
        for module, file in modules.items()
        for found in imports_of(module, file, modules)
        if found.in_function
    }
    assert set(LAZY_IMPORTS) <= present, "remove these from LAZY_IMPORTS"


def plant(folder: Path, files: dict[str, str]) -> list[str]:
    """The violations of a package made of the given files."""
    package = folder / "purax"
    for name, text in {"__init__.py": "", **files}.items():
        file = package / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return violations(package)


ALLOWED = {
    "to the left": {"interpreters/jvp.py": "from purax.core import trace", "core/trace.py": ""},
    "in the same layer": {"core/jaxpr.py": "from . import trace", "core/trace.py": ""},
    "the jaxlib API, from the bottom": {
        "tree.py": "from purax.xla import jaxlib_api",
        "xla/jaxlib_api.py": "from jaxlib import _jax",
    },
    "jaxlib in xla": {"xla/client.py": "import jaxlib.xla_client"},
    "an optional package, lazily": {"core/trace.py": "def f():\n    import matplotlib"},
    "a name that only looks like one": {"core/trace.py": "import jaxtyping, puraxial"},
    "a doctest": {"core/trace.py": '"""\n>>> import jax\n>>> import purax.numpy\n"""'},
    "the whole package, from compat": {"compat/cli.py": "import purax"},
}

CAUGHT = {
    "to the right": (
        {"core/trace.py": "\nfrom purax.interpreters import jvp", "interpreters/jvp.py": ""},
        [
            "core/trace.py:2: purax.core.trace imports purax.interpreters.jvp: core may not import interpreters",
            "core < xla, and sharding",
        ],
    ),
    "to the right, relative": (
        {"lax/slicing.py": "from ..numpy.shapes import reshape", "numpy/shapes.py": ""},
        ["lax/slicing.py:1", "lax may not import numpy"],
    ),
    "to the right, for types only": (
        {
            "core/trace.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import purax.lax.slicing"
        },
        ["core/trace.py:3", "core may not import lax"],
    ),
    "to the right, by a string": (
        {"primitives/sorting.py": "import importlib\nlax = importlib.import_module('purax.lax')"},
        ["primitives/sorting.py:2", "primitives may not import lax"],
    ),
    "the public package from inside": (
        {"numpy/shapes.py": "import purax as px"},
        ["numpy/shapes.py:1", "numpy may not import purax/__init__.py"],
    ),
    "xla before core": ({"core/avals.py": "import purax.xla.client"}, ["core may not import xla"]),
    "core from tree": ({"tree_util.py": "from purax.core.trace import Tracer"}, ["may not import core"]),
    "anything from the jaxlib API": (
        {"xla/jaxlib_api.py": "from purax import errors", "errors.py": ""},
        ["xla/jaxlib_api.py:1", "leftmost layer"],
    ),
    "inside a function": (
        {"interpreters/jvp.py": "def f():\n    from purax.core import trace", "core/trace.py": ""},
        ["interpreters/jvp.py:2", "inside a function"],
    ),
    "inside a method": (
        {"primitives/sorting.py": "class A:\n    def f(self):\n        import purax.core.trace"},
        ["primitives/sorting.py:3", "inside a function"],
    ),
    "jaxlib outside xla": ({"core/dtypes.py": "import jaxlib._jax"}, ["core/dtypes.py:1", "only purax/xla"]),
    "jaxlib outside xla, lazily": (
        {"tree.py": "def f():\n    from jaxlib import _jax"},
        ["tree.py:2", "only purax/xla"],
    ),
    "jax": (
        {"compat/cli.py": "from jax.numpy import sin"},
        ["compat/cli.py:1", "does not depend on the jax package"],
    ),
    "a cycle": (
        {"core/trace.py": "from . import primitive", "core/primitive.py": "from . import trace"},
        ["import cycle", "purax.core.primitive -> purax.core.trace -> purax.core.primitive"],
    ),
    "a module without a layer": ({"sundries.py": ""}, ["sundries.py:1", "has no layer"]),
}


@pytest.mark.parametrize("files", ALLOWED.values(), ids=ALLOWED)
def test_imports_in_order_are_accepted(tmp_path, files):
    assert plant(tmp_path, files) == []


@pytest.mark.parametrize(("files", "parts"), CAUGHT.values(), ids=CAUGHT)
def test_planted_violations_are_caught(tmp_path, files, parts):
    found = plant(tmp_path, files)
    assert len(found) == 1, found
    for part in parts:
        assert part in found[0]
