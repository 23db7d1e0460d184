"""`jax._src.tree_util`: the registry of node types as a mapping."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from purax.tree import prefix
from purax.tree.registry import flatten_one_level, is_tree_node, level_of, tree_structure, treedef_of_level


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable | None = None
) -> list[Callable[[str], ValueError]]:
    """For each place where a tree does not continue as its prefix demands, a function of the prefix's name that makes
    the error."""
    found = prefix.prefix_errors(prefix_tree, full_tree, is_leaf)
    return [functools.partial(_error, mismatch) for mismatch in found]


def _error(mismatch: prefix.StructureMismatch, name: str) -> ValueError:
    return mismatch.error(name, f"{name}'s tree", name)


class RegistryEntry(NamedTuple):
    """How nodes of a type are taken apart and put together."""

    to_iter: Any
    from_iter: Any


class _Registry(Mapping):
    """Answers whether a type is a node, and how; it does not list the types."""

    def __getitem__(self, kind: type) -> RegistryEntry:
        if not (isinstance(kind, type) and is_tree_node(kind)):
            raise KeyError(kind)
        return RegistryEntry(_take_apart, _put_together)

    def __contains__(self, kind: object) -> bool:
        return isinstance(kind, type) and is_tree_node(kind)

    def __iter__(self) -> Iterator[type]:
        raise TypeError("the registry of node types cannot be listed")

    def __len__(self) -> int:
        raise TypeError("the registry of node types cannot be counted")


def _take_apart(tree: Any) -> tuple[Any, Any]:
    return flatten_one_level(tree)[0], level_of(tree)


def _put_together(level: Any, children: Any) -> Any:
    children = list(children)
    leaf = tree_structure(0)
    return treedef_of_level(level, [leaf] * len(children)).unflatten(children)


_registry = _Registry()
