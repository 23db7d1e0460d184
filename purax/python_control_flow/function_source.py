"""The syntax tree of a function, found in the file that it was defined in.

The whole file is parsed, so that lines and columns are the user's own and lambdas in the middle of a statement are
found; where several stand on one line, the columns of the instructions tell which one a code object is.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from types import CodeType, FunctionType
from typing import Any

FunctionNode = ast.FunctionDef | ast.Lambda


class NotRewritable(Exception):
    """A function, or a statement, whose control flow cannot be rewritten; the message says why."""


refusals: dict[CodeType, str] = {}  # why functions are not rewritten
_files: dict[str, tuple[tuple[str, ...], ast.Module]] = {}


def function_node(function: FunctionType) -> FunctionNode:
    """The definition of a function, as a syntax tree of its own that may be changed."""
    code = function.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise NotRewritable(f"`{function.__name__}` is a generator or a coroutine")
    tree = parsed_file(code, function.__globals__)
    wanted: Any = ast.Lambda if code.co_name == "<lambda>" else ast.FunctionDef
    found = [node for node in ast.walk(tree) if isinstance(node, wanted) and is_definition(node, code)]
    if not found:
        raise NotRewritable(
            f"the source of `{function.__name__}` is not the one in {code.co_filename} any more"
        )
    # The innermost definition that holds all instructions; copied, for it is about to be changed.
    node = min(found, key=lambda node: (node.end_lineno - node.lineno, node.end_col_offset - node.col_offset))
    return copied(node)


def copied(node: Any) -> Any:
    """A copy of a syntax tree that can be changed without changing the other."""
    if not isinstance(node, ast.AST):
        return [copied(part) for part in node] if isinstance(node, list) else node
    new = type(node)(**{name: copied(value) for name, value in ast.iter_fields(node)})
    for name in node._attributes:
        if hasattr(node, name):
            setattr(new, name, getattr(node, name))
    return new


def parsed_file(code: CodeType, namespace: dict) -> ast.Module:
    """The syntax tree of the file of a code object, kept as long as the file does not change."""
    try:
        return parsed_lines(code.co_filename, namespace)
    except FileNotFoundError:
        raise NotRewritable(f"no source is available for `{code.co_name}` ({code.co_filename})") from None
    except SyntaxError:
        raise NotRewritable(f"{code.co_filename} cannot be parsed any more") from None


_tries: dict[str, tuple[ast.Module, list[tuple[int, int]]]] = {}


def is_tried(file: str, line: int) -> bool:
    """Whether an error at a line may be caught in its function: it stands in a `try` with handlers, or in a `with`."""
    try:
        tree = parsed_lines(file)
    except (FileNotFoundError, SyntaxError):
        return True  # nobody knows
    known = _tries.get(file)
    if known is None or known[0] is not tree:
        spans = [
            (node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno)
            for node in ast.walk(tree)
            if isinstance(node, ast.With) or isinstance(node, (ast.Try, ast.TryStar)) and node.handlers
        ]
        known = _tries[file] = (tree, spans)
    return any(first <= line <= last for first, last in known[1])


def parsed_lines(file: str, namespace: dict | None = None) -> ast.Module:
    """The syntax tree of a file."""
    lines = tuple(linecache.getlines(file, namespace))
    if not lines:
        raise FileNotFoundError(file)
    known = _files.get(file)
    if known is None or known[0] != lines:
        known = _files[file] = (lines, ast.parse("".join(lines), file))
    return known[1]


def is_definition(node: FunctionNode, code: CodeType) -> bool:
    """Whether a definition is the one that a code object was made from."""
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    if list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]) != names:
        return False
    if isinstance(node, ast.FunctionDef):
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        return node.name == code.co_name and first == code.co_firstlineno
    body = node.body
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    places = [place for place in code.co_positions() if None not in place and place[2] != place[3]]
    inside = [
        start <= (line, column) and (last, end_column) <= end for line, last, column, end_column in places
    ]
    return bool(inside) and all(inside)


def class_name(function: FunctionType) -> str:
    """The class in whose body a function was defined, "" if none: names that begin with `__` are private to it."""
    scopes = function.__qualname__.split(".")
    return scopes[-2] if len(scopes) > 1 and scopes[-2] != "<locals>" else ""
