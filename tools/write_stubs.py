"""Writes what type checkers and editors read in place of what purax makes while it runs.

    python tools/write_stubs.py            # writes the stubs
    python tools/write_stubs.py --check    # exit status 1 if one of them is not what it would write

Packages name what they export by imports and by tables of names that are imported at their first use; their stubs
(`__init__.pyi`) name all of it explicitly, from the source, so that a misspelt name is an error. `core/array.pyi` has
the operators and methods that `purax.numpy` fills in, from their signatures.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "purax"
# Packages below the public ones, which nobody imports from.
INNER = {
    "api", "callbacks", "commands", "compat", "control_flow", "core", "execution", "interpreters", "lowering",
    "native", "primitives", "purity", "python_control_flow", "references", "testing", "xla",
}  # fmt: skip
HEADER = "# Written by tools/write_stubs.py; `make stubs` writes it anew.\n"


def public_packages() -> list[Path]:
    """The folders of the packages that users import from."""
    folders = [path.parent for path in sorted(PACKAGE.rglob("__init__.py"))]
    return [f for f in folders if f == PACKAGE or f.relative_to(PACKAGE).parts[0] not in INNER]


def module_name(folder: Path) -> str:
    return ".".join(folder.relative_to(ROOT).parts)


# --- packages


def package_stub(folder: Path) -> str:
    """The stub of a package: an explicit import, or a declaration, for every public name."""
    name = module_name(folder)
    tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
    lines = [ast.get_docstring(tree) and _quoted(ast.get_docstring(tree) or ""), ""]
    imports: dict[str, str] = {}
    declared: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            for path, given, shown in _imported(node):
                if shown.startswith("_"):
                    continue
                made = _row(path, given)
                if made is None:
                    imports[shown] = f"from {path} import {given} as {shown}"
                else:
                    declared[shown] = _function(shown, made)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    declared.update(_tables(name, target.id, node.value, imports))
    module = importlib.import_module(name)
    for child in _submodules(folder):
        imports.setdefault(child, f"from {name} import {child} as {child}")
    for shown, kind in list(declared.items()):
        if shown in imports:
            del declared[shown]
        elif not kind:
            declared[shown] = _declaration(shown, getattr(module, shown))
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            declared[node.name] = _definition(node.name, getattr(module, node.name))
    public = getattr(module, "__all__", None)
    text = "\n".join([*sorted(imports.values()), "", *declared.values(), ""])
    needed = "".join(
        f"{line}\n"
        for word, line in (
            ("Any", "from typing import Any"),
            ("Callable", "from collections.abc import Callable"),
            ("AbstractContextManager", "from contextlib import AbstractContextManager"),
            ("Sequence", "from collections.abc import Sequence"),
            ("Array", "from purax.core.array import Array"),
            ("ArrayLike", "from purax.typing import ArrayLike"),
        )
        if re.search(rf"\b{word}\b", "\n".join(declared.values()))
    )
    all_names = f"\n__all__ = {sorted(public)!r}\n" if public is not None and folder != PACKAGE else ""
    return f"{HEADER}{lines[0] or ''}\n\n{needed}{text}{all_names}".replace("\n\n\n", "\n\n")


def _imported(node: ast.ImportFrom) -> Iterator[tuple[str, str, str]]:
    """What an import takes: from which module, under which name, and the name here."""
    path = str(node.module)
    for alias in node.names:
        if alias.name != "*":
            yield path, alias.name, alias.asname or alias.name
            continue
        module = importlib.import_module(path)
        names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
        source = Path(str(module.__file__)).read_text(encoding="utf-8")
        inner = [x for n in ast.parse(source).body if isinstance(n, ast.ImportFrom) for x in _imported(n)]
        made_in = {shown: (origin, given) for origin, given, shown in inner}
        for name in names:
            yield (*made_in.get(name, (path, name)), name)


def _quoted(docstring: str) -> str:
    return '"""' + docstring.splitlines()[0] + '"""'


def _submodules(folder: Path) -> Iterator[str]:
    """The public packages inside of one, and modules that only an import names."""
    for path in sorted(folder.iterdir()):
        is_package = (path / "__init__.py").exists()
        if is_package and not path.name.startswith("_") and not (folder == PACKAGE and path.name in INNER):
            yield path.name


def _tables(name: str, target: str, value: Any, imports: dict[str, str]) -> dict[str, str]:
    """What an assignment at the top of a package means for its stub; imports are put into `imports`."""
    if target in ("_LAZY", "_SUBMODULES"):
        for child in ast.literal_eval(value):
            imports[child] = f"from {name} import {child} as {child}"
    elif target == "_FUNCTIONS":
        for shown, place in ast.literal_eval(value).items():
            path, _, own = place.partition(":")
            imports[shown] = f"from {path} import {own or shown} as {shown}"
    elif target == "_CONTEXTS":
        contexts = {}
        for shown in ast.literal_eval(value):
            contexts[shown] = f"def {shown}(value: Any = ...) -> AbstractContextManager[Any]: ..."
        return contexts
    elif not target.startswith("_"):
        return {target: ""}
    elif target == "__version__":
        return {target: "__version__: str"}
    return {}


def _declaration(name: str, value: Any) -> str:
    """A name with the type of its value."""
    if isinstance(value, type):
        return f"{name}: type[Any]"
    kind = type(value)
    if kind in (int, float, str, bool, complex, tuple, list, dict):
        return f"{name}: {kind.__name__}"
    if kind.__module__.startswith("purax.") and not kind.__name__.startswith("_") and not callable(value):
        return f"{name}: Any"
    return f"{name}: Callable[..., Any]" if callable(value) else f"{name}: Any"


def _row(module: str, name: str) -> Any:
    """The function of that name if it is a row of a table, which the source shows as a value."""
    owner = importlib.import_module(module)
    value = getattr(owner, name, None)
    if not inspect.isfunction(value) or value.__module__ != module:
        return None
    is_row = value.__code__.co_filename != owner.__file__ and not hasattr(value, "__wrapped__")
    return value if is_row else None


def _function(name: str, value: Any) -> str:
    """A function with its signature and docstring."""
    words = (inspect.getdoc(value) or "").replace("\n", "\n    ").replace("\n    \n", "\n\n")
    signature = str(inspect.signature(value)).replace("'", "")
    return f'def {name}{signature}:\n    """{words}"""\n'


def _definition(name: str, value: Any) -> str:
    return f"{name}: Callable[..., Any]" if not isinstance(value, type) else f"{name}: Any"


# --- arrays

_OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift divmod".split()
_COMPARISONS = "eq ne lt le gt ge".split()
# What has no signature that says its type, or none at all.
_GIVEN = {
    "T": "@property\ndef T(self) -> Array: ...",
    "mT": "@property\ndef mT(self) -> Array: ...",
    "real": "@property\ndef real(self) -> Array: ...",
    "imag": "@property\ndef imag(self) -> Array: ...",
    "at": "@property\ndef at(self) -> _At: ...",
    "flat": "@property\ndef flat(self) -> Any: ...",
    "clip": "def clip(self, min: ArrayLike | None = ..., max: ArrayLike | None = ...) -> Array: ...",
    "round": "def round(self, decimals: int = ..., out: None = ...) -> Array: ...",
    "copy": "def copy(self) -> Array: ...",
    "item": "def item(self, *args: int) -> Any: ...",
    "tolist": "def tolist(self) -> Any: ...",
    "tobytes": "def tobytes(self, order: str = ...) -> bytes: ...",
    "compress": (
        "def compress(self, condition: ArrayLike, axis: int | None = ..., *, out: None = ..., "
        "size: int | None = ..., fill_value: ArrayLike = ...) -> Array: ..."
    ),
    "sharding": "@property\ndef sharding(self) -> Any: ...",
    "device": "@property\ndef device(self) -> Any: ...",
    "devices": "def devices(self) -> set[Any]: ...",
    "committed": "@property\ndef committed(self) -> bool: ...",
    "addressable_shards": "@property\ndef addressable_shards(self) -> list[Any]: ...",
    "global_shards": "@property\ndef global_shards(self) -> list[Any]: ...",
    "is_fully_addressable": "@property\ndef is_fully_addressable(self) -> bool: ...",
    "is_fully_replicated": "@property\ndef is_fully_replicated(self) -> bool: ...",
    "addressable_data": "def addressable_data(self, index: int) -> Array: ...",
    "block_until_ready": "def block_until_ready(self) -> Array: ...",
    "is_ready": "def is_ready(self) -> bool: ...",
    "is_deleted": "def is_deleted(self) -> bool: ...",
    "delete": "def delete(self) -> None: ...",
    "copy_to_host_async": "def copy_to_host_async(self) -> None: ...",
    "unsafe_buffer_pointer": "def unsafe_buffer_pointer(self) -> int: ...",
    "on_device_size_in_bytes": "def on_device_size_in_bytes(self) -> int: ...",
}
_SPECIAL = """
def __init__(self, *args: Any, **kwargs: Any) -> None: ...
def __getitem__(self, index: Any) -> Array: ...
def __iter__(self) -> Iterator[Array]: ...
def __reversed__(self) -> Iterator[Array]: ...
def __len__(self) -> int: ...
def __contains__(self, element: object) -> bool: ...
def __bool__(self) -> bool: ...
def __int__(self) -> int: ...
def __float__(self) -> float: ...
def __complex__(self) -> complex: ...
def __index__(self) -> int: ...
def __neg__(self) -> Array: ...
def __pos__(self) -> Array: ...
def __abs__(self) -> Array: ...
def __invert__(self) -> Array: ...
def __round__(self, ndigits: int | None = ...) -> Array: ...
def __array__(self, dtype: Any = ..., copy: bool | None = ...) -> np.ndarray[Any, Any]: ...
def __dlpack__(self, *, stream: Any = ..., **options: Any) -> Any: ...
def __dlpack_device__(self) -> tuple[Any, int]: ...
def __array_namespace__(self, *, api_version: str | None = ...) -> Any: ...
def __copy__(self) -> Array: ...
def __deepcopy__(self, memo: Any) -> Array: ...
def __hash__(self) -> int: ...
"""


def array_stub() -> str:
    """The stub of `purax.core.array`."""
    importlib.import_module("purax.numpy")
    array = importlib.import_module("purax.core.array").Array
    body = [
        '"""An immutable n-dimensional array, as in NumPy."""',
        "__array_priority__: int",
        "aval: ShapedArray",
    ]
    body.append("@property\ndef shape(self) -> tuple[int, ...]: ...")
    body.append("@property\ndef dtype(self) -> np.dtype[Any]: ...")
    body += [f"@property\ndef {n}(self) -> int: ..." for n in ("ndim", "size", "itemsize", "nbytes")]
    body.append("@property\ndef weak_type(self) -> bool: ...")
    body.append(_SPECIAL.strip())
    body += [f"def __{n}__(self, other: Any) -> Array: ..." for n in _OPERATORS if n != "divmod"]
    body += [f"def __r{n}__(self, other: Any) -> Array: ..." for n in _OPERATORS if n != "divmod"]
    body += [f"def __{r}divmod__(self, other: Any) -> tuple[Array, Array]: ..." for r in ("", "r")]
    body += [
        f"def __{n}__(self, other: Any) -> Array: ...{ignored}"
        for n in _COMPARISONS
        for ignored in ("  # type: ignore[override]" if n in ("eq", "ne") else "",)
    ]
    shown = {n for n in vars(array) if not n.startswith("_")} - {"aval"}
    shown -= {"shape", "dtype", "ndim", "size", "itemsize", "nbytes", "weak_type"}
    for name in sorted(shown | set(_GIVEN)):
        body.append(_GIVEN.get(name) or _method(name, getattr(array, name)))
    text = "\n".join(body).replace("\n", "\n    ")
    return (
        f'{HEADER}"""The class of arrays, with what `purax.numpy` fills in."""\n\n'
        "from collections.abc import Callable, Iterator, Sequence\nfrom typing import Any\n\nimport numpy as np\n\n"
        "from purax.core.avals import ShapedArray\n"
        "from purax.typing import ArrayLike, DTypeLike\n\n"
        "Axis = int | Sequence[int] | None\n\n\n"
        f"class Array:\n    {text}\n\n\n"
        f"{_at_stub()}"
    )


def _at_stub() -> str:
    """`x.at` and `x.at[index]`, whose own module imports half of purax.numpy."""
    reference = importlib.import_module("purax.numpy._indexing.update").IndexUpdateRef
    methods = [
        _method(n, f) for n, f in vars(reference).items() if inspect.isfunction(f) and not n.startswith("_")
    ]
    text = "\n    ".join(methods)
    return (
        'class _AtIndex:\n    """The elements of an array at an index, to be read or updated."""\n'
        f"    {text}\n\n\nclass _At:\n    def __getitem__(self, index: Any) -> _AtIndex: ...\n"
    )


def _method(name: str, function: Any) -> str:
    """A method by the signature of the function that it is, whose first parameter is the array."""
    parts, is_first, keyword_only = [], True, False
    for parameter in inspect.signature(function).parameters.values():
        if is_first:
            parts.append("self")
            is_first = False
            continue
        annotation = "Any" if parameter.annotation is parameter.empty else _known(parameter.annotation)
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            if not any(p.startswith("*") for p in parts):
                parts.append("*")
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = " = ..." if parameter.default is not parameter.empty else ""
        parts.append(f"{star}{parameter.name}: {annotation}{default}")
    returned = inspect.signature(function).return_annotation
    result = "Any" if returned is inspect.Signature.empty else _known(returned)
    return f"def {name}({', '.join(parts)}) -> {result}: ..."


def _known(annotation: Any) -> str:
    """An annotation with `Any` for types that the stub does not import."""
    names = {"Any", "Array", "ArrayLike", "Axis", "Callable", "DTypeLike", "Iterator", "None", "Sequence"}
    return re.sub(r"\b[A-Z]\w*\b", lambda m: m[0] if m[0] in names else "Any", str(annotation).strip("'"))


def stubs() -> dict[Path, str]:
    """Every stub by its path."""
    found = {folder / "__init__.pyi": package_stub(folder) for folder in public_packages()}
    found[PACKAGE / "core" / "array.pyi"] = array_stub()
    return found


def main() -> int:
    made = stubs()
    stale = [p for p, text in made.items() if not p.exists() or p.read_text(encoding="utf-8") != text]
    left = [p for p in PACKAGE.rglob("*.pyi") if p not in made]
    if "--check" in sys.argv[1:]:
        for path in stale + left:
            print(f"{path.relative_to(ROOT)} is not current: make stubs")
        return 1 if stale or left else 0
    for path in stale:
        path.write_text(made[path], encoding="utf-8")
    for path in left:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
