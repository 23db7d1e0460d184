"""The description of an exported function, read from a file of a stranger: all of it is checked before it is used.

What is said must have the right types and sizes, and agree with itself: the trees with the types, the derivative with
the function, the modules with the types of arguments and results. Everything else is ValueError.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from purax.config import config
from purax.core import dtypes
from purax.core.avals import ShapedArray, tangent_aval
from purax.core.dimension_facts import SymbolicScope
from purax.core.dimension_text import parse_shape
from purax.core.dimensions import DimSize, SymbolicDimension
from purax.export.kernels import check_kernel_call, refused_kernel
from purax.export.modules import PortableModule
from purax.export.trees import tree_from_json, tree_to_json
from purax.interpreters.extended_dtypes import physical_aval
from purax.random.typed_keys import KEY_IMPLEMENTATIONS, KeyDtype, key_dtype
from purax.tree.registry import PyTreeDef, tree_structure
from purax.xla.isolated import KernelCall
from purax.xla.stablehlo import tensor_type

_FIELDS = {"name", "in_tree", "in_avals", "out_tree", "out_avals", "platforms", "disabled", "vjp"}
_DTYPES = {dtypes.dtype_name(dtype): dtype for dtype in (*dtypes.ALL_DTYPES, dtypes.float0)}
_LONGEST_TEXT = 10_000
_LONGEST_DIMENSION = 500
_MOST_CONSTRAINTS = 100
_LARGEST_ARRAY = 1 << 48  # bytes


@dataclass(frozen=True)
class Description:
    """What is known of an exported function besides its modules; `platforms` says which of them is for which."""

    name: str
    in_tree: PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    platforms: dict[str, int]
    disabled: tuple[str, ...]
    vjp: Description | None

    def to_json(self) -> dict[str, Any]:
        """As dicts, lists, strings and numbers."""
        return {
            "name": self.name,
            "in_tree": tree_to_json(self.in_tree),
            "in_avals": list(map(_type_to_json, self.in_avals)),
            "out_tree": tree_to_json(self.out_tree),
            "out_avals": list(map(_type_to_json, self.out_avals)),
            "platforms": self.platforms,
            "disabled": list(self.disabled),
            "vjp": None if self.vjp is None else self.vjp.to_json(),
        }


def is_empty(aval: ShapedArray) -> bool:
    """Whether arrays of a type have no content, so that they are not passed."""
    return aval.dtype == dtypes.float0


def _wrong(where: str, expected: str, found: Any) -> NoReturn:
    text = repr(found)
    raise ValueError(f"{where} must be {expected}, found {text if len(text) < 100 else text[:100] + '…'}")


def _text(made: Any, where: str) -> str:
    if not isinstance(made, str) or len(made) > _LONGEST_TEXT:
        _wrong(where, f"a text of at most {_LONGEST_TEXT} characters", made)
    try:
        made.encode()
    except UnicodeEncodeError:
        _wrong(where, "a text of whole characters", made)
    return made


def _index(made: Any, where: str, limit: int) -> int:
    if type(made) is not int or not 0 <= made < limit:
        _wrong(where, f"an integer from 0 to {limit - 1}", made)
    return made


def _list(made: Any, where: str) -> list[Any]:
    if not isinstance(made, list):
        _wrong(where, "a list", made)
    return made


def _type_to_json(aval: ShapedArray) -> list[Any]:
    shape = [str(n) if isinstance(n, SymbolicDimension) else n for n in aval.shape]
    if isinstance(aval.dtype, KeyDtype):
        return [shape, f"key:{aval.dtype.implementation}", aval.weak_type]
    return [shape, dtypes.dtype_name(aval.dtype), aval.weak_type]


def read_scope(constraints: Any) -> SymbolicScope:
    """The scope of the dimensions in a description, from the texts of its constraints."""
    if len(_list(constraints, "constraints")) > _MOST_CONSTRAINTS:
        _wrong("constraints", f"a list of at most {_MOST_CONSTRAINTS} texts", constraints)
    for text in constraints:
        _check_dimension_text(text, "a constraint")
    try:
        return SymbolicScope(constraints)
    except ArithmeticError as error:
        raise ValueError(f"the constraints {constraints} cannot be read: {error}") from None


def _check_dimension_text(text: Any, where: str) -> str:
    if len(_text(text, where)) > _LONGEST_DIMENSION or "..." in text or "_" == text:
        _wrong(where, f"a text of at most {_LONGEST_DIMENSION} characters", text)
    if any(len(digits) > 18 for digits in re.findall(r"\d+", text)) or re.search(r"\^\s*\d\d", text):
        _wrong(where, "a dimension that an array can have", text)
    return text


def _dimension(made: Any, where: str, scope: SymbolicScope | None) -> DimSize:
    if not isinstance(made, str):
        return _index(made, f"a length in the shape of {where}", 1 << 63)
    text = _check_dimension_text(made, f"a length in the shape of {where}")
    if scope is None:
        _wrong(f"a length in the shape of {where}", "a number, since there are no constraints", text)
    try:
        found = parse_shape(text, lambda: scope, None)
    except ArithmeticError as error:
        raise ValueError(f"the dimension {text!r} cannot be read: {error}") from None
    if len(found) != 1:
        _wrong(f"a length in the shape of {where}", "one dimension", text)
    return found[0]


def _type_from_json(made: Any, where: str, scope: SymbolicScope | None) -> ShapedArray:
    if len(_list(made, where)) != 3:
        _wrong(where, "a list of shape, dtype and weak_type", made)
    shape, name, weak_type = made
    if len(_list(shape, f"the shape of {where}")) > 64:
        _wrong(f"the shape of {where}", "of at most 64 dimensions", shape)
    shape = [_dimension(length, where, scope) for length in shape]
    kind, _, implementation = _text(name, f"the dtype of {where}").partition(":")
    if kind == "key" and implementation in KEY_IMPLEMENTATIONS:
        dtype: Any = key_dtype(implementation)
    elif name in _DTYPES:
        dtype = _DTYPES[name]
    else:
        _wrong(f"the dtype of {where}", f"one of {', '.join(_DTYPES)}", name)
    if not isinstance(weak_type, bool):
        _wrong(f"weak_type of {where}", "true or false", weak_type)
    if math.prod(length for length in shape if isinstance(length, int) and length) > _LARGEST_ARRAY // 16:
        _wrong(f"the shape of {where}", "that of an array which fits into memory", shape)
    return ShapedArray(tuple(shape), dtype, weak_type)


def read_description(
    made: Any, modules: Sequence[PortableModule], scope: SymbolicScope | None = None
) -> Description:
    """The description that `Description.to_json` wrote, checked; `scope` is that of its symbolic dimensions."""
    levels: list[tuple[dict[str, Any], str]] = []
    while made is not None:  # not by recursion: a stranger says how deep it is
        where = (
            "the description" if not levels else f"the description of the derivative of order {len(levels)}"
        )
        if not isinstance(made, dict) or set(made) != _FIELDS:
            _wrong(where, f"an object with the fields {', '.join(sorted(_FIELDS))}", made)
        levels.append((made, where))
        made = made["vjp"]
    description = None
    for fields, where in reversed(levels):
        description = _read_level(fields, where, modules, description, scope)
    assert description is not None
    return description


def _read_level(
    made: dict[str, Any],
    where: str,
    modules: Sequence[PortableModule],
    vjp: Description | None,
    scope: SymbolicScope | None,
) -> Description:
    types = {
        side: tuple(
            _type_from_json(item, f"{side}[{i}] in {where}", scope)
            for i, item in enumerate(_list(made[side], f"{side} in {where}"))
        )
        for side in ("in_avals", "out_avals")
    }
    trees = {side: tree_from_json(made[side]) for side in ("in_tree", "out_tree")}
    for side in ("in", "out"):
        leaves, avals = trees[f"{side}_tree"].num_leaves, types[f"{side}_avals"]
        if leaves != len(avals):
            raise ValueError(f"{side}_tree in {where} has {leaves} leaves, and {side}_avals {len(avals)}")
    _check_arguments(trees["in_tree"], where)
    platforms = made["platforms"]
    if not isinstance(platforms, dict) or not platforms:
        _wrong(f"platforms in {where}", "an object that is not empty", platforms)
    for platform, index in platforms.items():
        _index(index, f"platforms[{_text(platform, 'a platform')!r}] in {where}", len(modules))
    disabled = [
        _text(item, f"disabled in {where}") for item in _list(made["disabled"], f"disabled in {where}")
    ]
    for check in disabled:
        if check != "platform" and not check.startswith("custom_call:"):
            _wrong(f"disabled in {where}", "names of checks: platform, custom_call:…", check)
    description = Description(
        _text(made["name"], f"name in {where}"),
        trees["in_tree"],
        types["in_avals"],
        trees["out_tree"],
        types["out_avals"],
        dict(platforms),
        tuple(disabled),
        vjp,
    )
    _check_derivative(description, where)
    for index in sorted(set(platforms.values())):
        is_for_cpu = "platform" in disabled or platforms.get("cpu") == index
        _check_module(description, modules[index], f"module {index}, of {where},", is_for_cpu)
    return description


def _check_arguments(tree: PyTreeDef, where: str) -> None:
    """A call flattens (args, kwargs)."""
    node = tree.node_data()
    parts = [child.node_data() for child in tree.children()] if node is not None and node[0] is tuple else []
    if len(parts) == 2 and parts[0] is not None and parts[0][0] is tuple and parts[1] is not None:
        kind, names = parts[1]
        if kind is dict and all(isinstance(name, str) for name in names):
            return
    raise ValueError(f"in_tree in {where} must be that of (args, kwargs), found {tree!s:.200}")


def _check_derivative(description: Description, where: str) -> None:
    """What is called with the arguments and cotangents of the results, and returns cotangents of the arguments."""
    vjp = description.vjp
    if vjp is None:
        return
    takes = (*description.in_avals, *map(tangent_aval, description.out_avals))
    gives = tuple(map(tangent_aval, description.in_avals))
    if vjp.in_avals != takes or vjp.out_avals != gives:
        raise ValueError(f"the derivative of {where} has other types than the function")
    flat = tree_structure(((0,) * len(takes), {})), tree_structure((0,) * len(gives))
    if (vjp.in_tree, vjp.out_tree) != flat:
        raise ValueError(
            f"the derivative of {where} has trees other than those of flat arguments and results"
        )


def _check_module(description: Description, module: PortableModule, where: str, is_for_cpu: bool) -> None:
    """Reads a module that came from elsewhere and compares it with the types."""
    if not module.is_foreign:
        return
    try:
        found = module.read()
    except ValueError as error:
        raise ValueError(f"{where} is not a program that can be run: {error}") from None
    for side, avals, types in (
        ("arguments", description.in_avals, found.in_types),
        ("results", description.out_avals, found.out_types),
    ):
        wanted = tuple(tensor_type(physical_aval(aval)) for aval in avals if not is_empty(aval))
        if wanted != types:
            raise ValueError(
                f"the {side} of {where} are of the types {', '.join(types)!s:.200}, and the description says "
                f"{', '.join(wanted)!s:.200}"
            )
    calls = [call for call in found.kernel_calls if call.target != "shape_assertion" or not module.is_dynamic]
    _check_kernels(description, calls, where, is_for_cpu)


def check_modules(exported: Any) -> None:
    """Checks the modules of a function that was refined for sizes, as if it had just been read."""
    description = Description(
        exported.fun_name,
        exported.in_tree,
        exported.in_avals,
        exported.out_tree,
        exported.out_avals,
        dict.fromkeys(exported.platforms, 0),
        tuple(map(repr, exported.disabled_safety_checks)),
        None,
    )
    for platform, module in exported._modules.by_platform.items():
        is_for_cpu = "platform" in description.disabled or platform == "cpu"
        _check_module(description, module, f"the program for {platform}", is_for_cpu)


def _check_kernels(
    description: Description, calls: Sequence[KernelCall], where: str, is_for_cpu: bool
) -> None:
    """Refuses calls of kernels by name, and those on the CPU, where more is known, by what they are given."""
    allowed = [check.partition(":")[2] for check in description.disabled if check != "platform"]
    refused = refused_kernel([call.target for call in calls if call.target != "fft"], allowed)
    if refused is not None:
        raise ValueError(
            f"{where} calls the kernel {refused[:100]!r}, which is not one of those that last from version to version"
        )
    for call in calls:
        problem = check_kernel_call(*call, vouched_for=() if config.isolate_exported_programs else allowed)
        if problem is not None and is_for_cpu:
            raise ValueError(f"{where} cannot be run: {problem}")
