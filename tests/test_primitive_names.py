"""Nothing knows an operation by its name: facts of a primitive are traits and rules of its class, and where one certain
operation is meant, code compares the primitive itself.

A name is for printing. The syntax trees of the package are searched for names of primitives that are compared, looked
up, or tested with a method of strings; the second half plants such places.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "purax"
_STRING_METHODS = ("startswith", "endswith")

# Where names are keys for a reason: what is printed, or what is found by a name that users wrote.
ALLOWED = {
    "core/jaxpr_format.py": "prints programs, whose calls it nests",
    "testing/choices.py": "names cases of the laws",
}


def is_name_of_primitive(node: ast.AST, aliases: frozenset[str]) -> bool:
    """Whether an expression is the name of a primitive: `primitive.name`, `eqn.primitive.name`, `add_p.name`."""
    if isinstance(node, ast.Name):
        return node.id in aliases
    if not isinstance(node, ast.Attribute) or node.attr != "name":
        return False
    owner = node.value
    text = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return text in ("primitive", "prim") or text.endswith("_p")


def _scopes(tree: ast.AST) -> Iterator[ast.AST]:
    yield tree
    yield from (
        n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    )


def _aliases(scope: ast.AST) -> frozenset[str]:
    """Variables of a function that hold the name of a primitive."""
    if isinstance(scope, ast.Module):
        return frozenset()
    found = set()
    for node in ast.walk(scope):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=False))
            for variable, value in pairs:
                if isinstance(variable, ast.Name) and is_name_of_primitive(value, frozenset()):
                    found.add(variable.id)
    return frozenset(found)


def uses(tree: ast.AST) -> set[int]:
    """The lines on which a name of a primitive decides something."""
    lines = set()
    for scope in _scopes(tree):
        aliases = _aliases(scope)
        for node in ast.walk(scope):
            asked: list[ast.AST] = []
            if isinstance(node, ast.Compare):
                asked = [node.left, *node.comparators]
            elif isinstance(node, ast.Subscript):
                asked = [node.slice]
            elif isinstance(node, ast.Match):
                asked = [node.subject]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr in ("get", "setdefault", "pop"):
                    asked = list(node.args[:1])
                elif node.func.attr in _STRING_METHODS:
                    asked = [node.func.value]
            if any(is_name_of_primitive(each, aliases) for each in asked):
                lines.add(node.lineno)
    return lines


@pytest.mark.parametrize("folder", sorted({p.relative_to(PACKAGE).parts[0] for p in PACKAGE.rglob("*.py")}))
def test_nothing_knows_an_operation_by_its_name(folder):
    place = PACKAGE / folder
    found = []
    for file in [place] if place.is_file() else sorted(place.rglob("*.py")):
        if str(file.relative_to(PACKAGE)) not in ALLOWED:
            lines = uses(ast.parse(file.read_text(), str(file)))
            found += [f"{file.relative_to(PACKAGE)}:{line}" for line in sorted(lines)]
    assert not found, (
        f"names of primitives decide something at {', '.join(found)}; declare a trait in `core.primitive.Primitive`, "
        "give the class a rule, or compare the primitive itself"
    )


def test_what_is_allowed_is_needed():
    for name in ALLOWED:
        assert uses(ast.parse((PACKAGE / name).read_text())), f"{name} needs no exception"


@pytest.mark.parametrize(
    "planted",
    [
        "eqn.primitive.name == 'add'",
        "'add' != primitive.name",
        "primitive.name in TABLE",
        "RULES[eqn.primitive.name]",
        "RULES.get(primitive.name)",
        "add_p.name.startswith('add')",
        "def f(eqn):\n    name, out = eqn.primitive.name, 1\n    return name in TABLE",
        "def f(eqn):\n    name = eqn.primitive.name\n    if name == 'add':\n        return 1",
        "match primitive.name:\n    case 'add':\n        pass",
    ],
)
def test_a_planted_use_is_found(planted):
    assert uses(ast.parse(planted))


@pytest.mark.parametrize(
    "fine",
    ["f'{primitive.name} of'", "place(x, primitive.name)", "eqn.primitive is add_p", "axis.name == 'x'"],
)
def test_printing_is_fine(fine):
    assert not uses(ast.parse(fine))
