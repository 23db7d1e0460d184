"""What the source of a function does on which line: the calls, and the stores to attributes, entries and variables.

It is read once per file, and only for functions that are watched. A function without source has no sites: then only
changes of what it can reach are found.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import types
from typing import Any

from purax.core.memo import Memo

UNRESOLVED = object()
Condition = tuple[ast.expr, bool]  # what must be true, or false, for an expression to be evaluated
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.GeneratorExp)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)
_NAMES = {
    ast.Lambda: "<lambda>",
    ast.GeneratorExp: "<genexpr>",
    ast.ListComp: "<listcomp>",
    ast.SetComp: "<setcomp>",
    ast.DictComp: "<dictcomp>",
}
_files: dict[str, tuple[int, dict[tuple[str, int], list[ast.AST]]]] = {}
_sites: Memo[int, tuple[types.CodeType, Sites]] = Memo()


class Sites:
    """What one function does itself, not in functions written inside of it.

    Attributes:
        node: of the function; None without source.
        calls: by line.
        names: by line, the names and attributes that are read.
        stores: by line, the targets of assignments: names, attributes and subscripts, with the value assigned.
    """

    def __init__(self, node: ast.AST | None):
        self.node = node
        self.calls: dict[int, list[tuple[ast.Call, tuple[Condition, ...]]]] = {}
        self.names: dict[int, list[ast.expr]] = {}
        self.stores: dict[int, list[tuple[ast.expr, ast.AST | None]]] = {}
        if node is not None:
            self._collect(node, True, ())

    def _collect(self, node: ast.AST, is_top: bool, conditions: tuple[Condition, ...]) -> None:
        for child in _children(node, is_top):
            under = conditions
            if isinstance(node, ast.IfExp) and child is not node.test:
                under = (*conditions, (node.test, child is node.body))
            elif isinstance(node, ast.BoolOp) and child is not node.values[0] and isinstance(child, ast.expr):
                before = node.values[: node.values.index(child)]
                under = (*conditions, *[(test, isinstance(node.op, ast.And)) for test in before])
            if isinstance(child, ast.Call):
                self.calls.setdefault(child.lineno, []).append((child, under))
                if child.func.end_lineno != child.lineno:
                    self.calls.setdefault(child.func.end_lineno or child.lineno, []).append((child, under))
            elif isinstance(child, (ast.Name, ast.Attribute)) and isinstance(child.ctx, ast.Load):
                self.names.setdefault(child.lineno, []).append(child)
            if isinstance(
                child, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete, ast.For, ast.NamedExpr)
            ):
                targets = child.targets if isinstance(child, (ast.Assign, ast.Delete)) else [child.target]
                value = child if isinstance(child, ast.AugAssign) else getattr(child, "value", None)
                for target in targets:
                    for part in ast.walk(target):
                        if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) and not isinstance(
                            part.ctx, ast.Load
                        ):
                            self.stores.setdefault(part.lineno, []).append((part, value))
            if not isinstance(child, (*_FUNCTIONS, ast.ClassDef)):
                self._collect(child, False, under)


def _children(node: ast.AST, is_top: bool) -> list[ast.AST]:
    """What is evaluated where a node is: of a function that is defined, only decorators and defaults."""
    if is_top and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return list(node.body)
    if is_top and isinstance(node, ast.Lambda):
        return [node.body]
    return list(ast.iter_child_nodes(node))


def sites_of(code: types.CodeType) -> Sites:
    """The sites of a function."""
    known = _sites.get(id(code))
    if known is None or known[0] is not code:
        known = _sites[id(code)] = (code, Sites(node_of(code)))
    return known[1]


def node_of(code: types.CodeType) -> ast.AST | None:
    """The function in the source that a code object was compiled from."""
    functions = _functions_of(code.co_filename)
    found = functions.get((code.co_name, code.co_firstlineno), [])
    if not found:
        return _around(code, functions)
    if len(found) == 1:
        return found[0]
    places = [(p[0], p[2]) for p in code.co_positions() if p[0] is not None and p[2] is not None]
    places = [place for place in places if place != (code.co_firstlineno, 0)]
    inside: list[Any] = [node for node in found if all([_has(node, place) for place in places])]
    return min(inside, key=lambda node: node.end_col_offset - node.col_offset) if inside else None


def _has(node: Any, place: tuple[int, int]) -> bool:
    return (node.lineno, node.col_offset) <= place <= (node.end_lineno, node.end_col_offset)


def _around(code: types.CodeType, functions: dict[tuple[str, int], list[ast.AST]]) -> ast.AST | None:
    """The smallest function around all lines of code that was made from a part of it."""
    lines = {line for _, _, line in code.co_lines() if line}
    first, last = min(lines, default=0), max(lines, default=0)
    around: list[Any] = [
        node
        for nodes in functions.values()
        for node in nodes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.lineno <= first
        and last <= (node.end_lineno or 0)
    ]
    return min(around, key=lambda node: node.end_lineno - node.lineno, default=None)


def _functions_of(file: str) -> dict[tuple[str, int], list[ast.AST]]:
    lines = linecache.getlines(file)
    key = hash(tuple(lines)) if len(lines) < 5000 else len(lines)
    known = _files.get(file)
    if known is None or known[0] != key:
        found: dict[tuple[str, int], list[ast.AST]] = {}
        try:
            tree: ast.AST | None = ast.parse("".join(lines))
        except (SyntaxError, ValueError, RecursionError):
            tree = None
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, (*_FUNCTIONS, *_COMPREHENSIONS)):
                name = _NAMES.get(type(node)) or node.name  # type: ignore[attr-defined,union-attr]
                starts = {node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))}
                if isinstance(node, ast.Lambda):
                    starts.add(node.body.lineno)
                elif isinstance(node, (*_COMPREHENSIONS, ast.GeneratorExp)):
                    starts |= {part.lineno for part in ast.walk(node) if isinstance(part, ast.expr)}
                for start in starts:
                    found.setdefault((name, start), []).append(node)
        if len(_files) > 500:
            _files.clear()
        known = _files[file] = (key, found)
    return known[1]


def resolve(node: ast.AST, frame: types.FrameType) -> Any:
    """The value of an expression before its line runs, without calling code of the user's; UNRESOLVED if not known."""
    if isinstance(node, ast.Name):
        for space in (frame.f_locals, frame.f_globals, vars(builtins)):
            if node.id in space:
                return space[node.id]
        return UNRESOLVED
    if isinstance(node, ast.Attribute):
        base = resolve(node.value, frame)
        return UNRESOLVED if base is UNRESOLVED else attribute_of(base, node.attr)
    if isinstance(node, ast.Subscript):
        base = resolve(node.value, frame)
        key = node.slice.value if isinstance(node.slice, ast.Constant) else resolve(node.slice, frame)
        if type(base) in (dict, list, tuple) and type(key) in (int, str):
            try:
                return base[key]
            except LookupError:
                return UNRESOLVED
    if isinstance(node, ast.Starred):
        return resolve(node.value, frame)
    return UNRESOLVED


def is_skipped(conditions: tuple[Condition, ...], frame: types.FrameType) -> bool:
    """Whether an expression is known not to be evaluated."""
    for test, wanted in conditions:
        value = resolve(test, frame)
        if (value is None or type(value) in (bool, int, float, str)) and bool(value) is not wanted:
            return True
    return False


def attribute_of(base: Any, name: str) -> Any:
    """An attribute, if reading it calls no code of the user's."""
    for parent in type(base).__mro__:
        if name in vars(parent):
            found = vars(parent)[name]
            if isinstance(found, property) or isinstance(
                getattr(type(found), "__get__", None), types.FunctionType
            ):
                return UNRESOLVED
            break
    else:
        if isinstance(getattr(type(base), "__getattr__", None), types.FunctionType):
            return UNRESOLVED
    try:
        return getattr(base, name)
    except Exception:
        return UNRESOLVED


def text_of(node: ast.AST) -> str:
    """An expression as it is written."""
    try:
        return ast.unparse(node)
    except Exception:
        return "?"


def is_memo(code: types.CodeType, line: int) -> bool:
    """Whether the store on a line fills a cache: the function looks up what it fills, and does not count with it."""
    sites = sites_of(code)
    targets = sites.stores.get(line, [])
    if sites.node is None:
        return False
    if not targets:
        return any(
            isinstance(call.func, ast.Attribute)
            and call.func.attr == "setdefault"
            and not _is_used(sites.node, call)
            for call, _ in sites.calls.get(line, [])
        )
    for target, value in targets:
        if isinstance(value, ast.AugAssign):
            return False
        looked_up = target if isinstance(target, (ast.Attribute, ast.Name)) else target.value  # type: ignore[attr-defined]
        text = ast.dump(_bare(looked_up))
        if value is not None and any(_is_same(part, text) for part in ast.walk(value)):
            return False
        if not any(_looks_up(part, text) for part in ast.walk(sites.node)):
            return False
    return True


def _is_used(node: ast.AST, call: ast.Call) -> bool:
    """Whether what a call gives is changed: `groups.setdefault(key, []).append(1)`."""
    return any(
        (isinstance(part, ast.Attribute) and part.value is call)
        or (isinstance(part, ast.Subscript) and part.value is call and not isinstance(part.ctx, ast.Load))
        for part in ast.walk(node)
    )


def _looks_up(node: ast.AST, text: str) -> bool:
    """Whether an expression asks for what a store fills: `key in cache`, `cache.get(key)`, `cache is None`."""
    if isinstance(node, ast.Compare):
        return any(_is_same(part, text) for part in (node.left, *node.comparators))
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return _is_same(node.value, text)
    if isinstance(node, ast.Call):
        return (
            isinstance(node.func, ast.Attribute)
            and node.func.attr in ("get", "__contains__")
            and _is_same(node.func.value, text)
        ) or (isinstance(node.func, ast.Name) and node.func.id == "hasattr")
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        tests = [node.test, *ast.walk(node.test)]
        return any(_is_same(part, text) for part in tests)
    return False


def _is_same(node: ast.AST, text: str) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and ast.dump(_bare(node)) == text


def _bare(node: Any) -> Any:
    """An expression that is read, for one that is stored."""
    if isinstance(node, ast.Name):
        return ast.Name(node.id, ast.Load())
    if isinstance(node, ast.Attribute):
        return ast.Attribute(_bare(node.value), node.attr, ast.Load())
    if isinstance(node, ast.Subscript):
        return ast.Subscript(_bare(node.value), node.slice, ast.Load())
    return node
