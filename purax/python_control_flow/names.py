"""Which names statements bind and read: the variables that a branch or a loop may leave behind.

Names are those of one function's scope: the insides of nested functions, classes and comprehensions do not count,
except for `:=` in a comprehension.
"""

from __future__ import annotations

import ast
import collections
import itertools
from collections.abc import Iterable, Iterator

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a scope: all but the insides of nested functions and classes."""
    for node in nodes:
        yield node
        if isinstance(node, _SCOPES):
            continue
        if isinstance(node, _COMPREHENSIONS):
            # The targets are the comprehension's own, but its expressions may assign with `:=`.
            yield from (n for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
            continue
        yield from own_nodes(ast.iter_child_nodes(node))


def bound_names(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that statements bind, or unbind."""
    names: set[str] = set()
    for node in own_nodes(nodes):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.NamedExpr):
            names.add(node.target.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
    return names


def declared_names(body: Iterable[ast.AST], kind: type[ast.Global] | type[ast.Nonlocal]) -> set[str]:
    """The names that a function declares `global`, or `nonlocal`."""
    return {name for node in own_nodes(body) if isinstance(node, kind) for name in node.names}


def names_read(nodes: Iterable[ast.AST]) -> collections.Counter[str]:
    """How often names are read, in nested functions too."""
    everything = itertools.chain.from_iterable(map(ast.walk, nodes))
    return collections.Counter(
        n.id for n in everything if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    )
