"""Comparing the structures of trees: one tree as the prefix of another, and errors that say where the two part.

A prefix of a tree has leaves where the tree has whole subtrees: `(0, 1)` is a prefix of `((x, y), z)`. XLA
compares; the walk here runs only when XLA refuses. It reports every place of disagreement with its key path,
and it matches by key the dicts with unsortable keys, which XLA compares by order.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from purax.tree.registry import (
    InsertionOrderDict,
    IsLeaf,
    KeyPath,
    Level,
    keystr,
    level_of,
    registry_flatten,
    too_deep,
    tree_flatten,
    tree_leaves,
    tree_structure,
)

PLAIN_DICTS = (dict, InsertionOrderDict)


class StructureMismatch(NamedTuple):
    """A place where a tree does not continue as its prefix demands.

    Attributes:
        path: the key path of the place.
        problem: what differs there, in terms of "the prefix" and "the tree" (or the names given to `error`).
        prefix_structure: the structure of the prefix at that place.
        full_structure: the structure of the full tree at that place.
        hint: what to write instead, or an empty text.
    """

    path: KeyPath
    problem: tuple[str, str]
    prefix_structure: Any
    full_structure: Any
    hint: str = ""

    def error(self, prefix_name: str, full_name: str, path_prefix: str = "") -> ValueError:
        """The exception to raise, with the two trees called by the names the caller knows them by.

        Args:
            prefix_name: what to call the prefix, for example "in_axes".
            full_name: what to call the tree, for example "the argument tuple".
            path_prefix: put before the key path, for example the name of an argument.
        """
        where = path_prefix + keystr(self.path) or "(root)"
        prefix_has, full_has = self.problem
        lines = [
            f"pytree structures differ at key path {where}: {prefix_name} has {prefix_has}, "
            f"but {full_name} has {full_has}.",
            f"  {prefix_name}: {_shortened(self.prefix_structure)}",
            f"  {full_name}: {_shortened(self.full_structure)}",
        ]
        return ValueError("\n".join(lines + ([self.hint] if self.hint else [])))


def prefix_errors(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> list[StructureMismatch]:
    """All places where a tree does not continue as its prefix demands.

    Args:
        prefix_tree: a tree that should be a prefix of `full_tree`.
        full_tree: the tree.
        is_leaf: what counts as a leaf of `prefix_tree`, as in `tree_flatten`.

    Returns:
        The mismatches in the order of the leaves; an empty list if `prefix_tree` is a prefix of `full_tree`.

    >>> from purax.tree.prefix import prefix_errors
    >>> mismatch, = prefix_errors({"params": [0, (0, 0)]}, {"params": [0, (1, 2, 3)]})
    >>> print(mismatch.error("the prefix", "the tree"))
    pytree structures differ at key path ['params'][1]: the prefix has a tuple of length 2, but the tree has a tuple \
of length 3.
      the prefix: PyTreeDef((*, *))
      the tree: PyTreeDef((*, *, *))
    """
    mismatches: list[StructureMismatch] = []
    _match(tree_structure(prefix_tree, is_leaf), full_tree, (), [], mismatches)
    return mismatches


def flatten_up_to(
    treedef: Any, tree: Any, prefix_name: str = "the given structure", full_name: str = "the tree"
) -> list[Any]:
    """The subtrees of a tree that stand where a structure has its leaves.

    Use it instead of the method `treedef.flatten_up_to`, which does not know dicts with unsortable keys and does not
    say where trees differ.

    Args:
        treedef: the structure, which must be a prefix of the tree's.
        tree: the tree.
        prefix_name: what to call the structure in an error.
        full_name: what to call the tree in an error.

    Returns:
        One subtree per leaf of the structure.

    >>> from purax import tree_util
    >>> from purax.tree.prefix import flatten_up_to
    >>> flatten_up_to(tree_util.tree_structure([0, {"a": 0}]), [(1, 2), {"a": "x"}])
    [(1, 2), 'x']
    """
    try:
        return treedef.flatten_up_to(tree)
    except ValueError:
        pass
    except (RecursionError, SystemError) as error:
        raise too_deep(error) from None
    subtrees: list[Any] = []
    mismatches: list[StructureMismatch] = []
    _match(treedef, tree, (), subtrees, mismatches)
    if mismatches:
        raise mismatches[0].error(prefix_name, full_name)
    return subtrees


def broadcast_prefix(
    prefix_tree: Any,
    full_tree: Any,
    is_leaf: IsLeaf = None,
    prefix_name: str = "prefix_tree",
    full_name: str = "full_tree",
) -> list[Any]:
    """The leaves of a prefix, each repeated for every leaf of the tree below it.

    Args:
        prefix_tree: a prefix of `full_tree`.
        full_tree: the tree.
        is_leaf: what counts as a leaf of `prefix_tree`, as in `tree_flatten`.
        prefix_name: what to call the prefix in an error.
        full_name: what to call the tree in an error.

    Returns:
        One element per leaf of `full_tree`.

    >>> from purax.tree.prefix import broadcast_prefix
    >>> broadcast_prefix((0, 1), ([10, 20], {"a": 30}))
    [0, 0, 1]
    """
    prefix_leaves, prefix_treedef = tree_flatten(prefix_tree, is_leaf)
    try:
        subtrees = prefix_treedef.flatten_up_to(full_tree)
    except ValueError:
        pass
    else:
        pairs = zip(prefix_leaves, subtrees, strict=True)
        return [leaf for leaf, subtree in pairs for _ in tree_leaves(subtree)]
    # In the order of the tree, which may differ from the prefix's where keys are unsortable.
    result: list[Any] = []
    mismatch = _match_prefix(tree_structure(full_tree), prefix_tree, is_leaf, (), result)
    if mismatch is not None:
        raise mismatch.error(prefix_name, full_name)
    return result


def _is_none(tree: Any) -> bool:
    return tree is None


def flatten_axes(
    name: str,
    treedef: Any,
    axis_tree: Any,
    is_leaf: IsLeaf = _is_none,
    full_name: str = "the corresponding value",
) -> list[Any]:
    """One axis per leaf of a structure, from a tree of axes that is a prefix of it.

    No tree of the structure is built, so user-defined nodes never see placeholder leaves.

    Args:
        name: the argument that holds the axes, for example "in_axes"; errors begin with it.
        treedef: the structure of what the axes are for.
        axis_tree: a prefix of the structure, with an axis at each leaf.
        is_leaf: what counts as an axis besides objects of unregistered types; `None` by default.
        full_name: what to call the structure in an error.

    Returns:
        A list of `treedef.num_leaves` axes.

    >>> from purax import tree_util
    >>> from purax.tree.prefix import flatten_axes
    >>> arguments = ({"w": 1.0, "b": 2.0}, 3.0)
    >>> flatten_axes("in_axes", tree_util.tree_structure(arguments), (None, 0))
    [None, None, 0]
    >>> flatten_axes("in_axes", tree_util.tree_structure(arguments), ({"w": 0}, 0), full_name="the argument tuple")
    Traceback (most recent call last):
    ...
    ValueError: pytree structures differ at key path in_axes[0]: in_axes has a dict with keys ['w'], but the argument \
tuple has a dict with keys ['b', 'w'].
      in_axes: PyTreeDef({'w': *})
      the argument tuple: PyTreeDef({'b': *, 'w': *})
    """
    axes: list[Any] = []
    mismatch = _match_prefix(treedef, axis_tree, is_leaf, (), axes)
    if mismatch is not None:
        raise mismatch.error(name, full_name, path_prefix=name)
    return axes


def _match_prefix(
    treedef: Any, prefix_tree: Any, is_leaf: IsLeaf, path: KeyPath, leaves: list[Any]
) -> StructureMismatch | None:
    """Append a leaf of the prefix for each leaf of `treedef`, or return the first place where the two differ."""
    level = None if is_leaf is not None and is_leaf(prefix_tree) else level_of(prefix_tree)
    if level is None:
        leaves += [prefix_tree] * treedef.num_leaves
        return None
    child_treedefs = treedef.children()
    aligned = _align(treedef, len(child_treedefs), level)
    if aligned is None:
        problem = _describe_level(level), _describe_treedef(treedef, len(child_treedefs))
        prefix_treedef = tree_structure(prefix_tree, is_leaf)
        return StructureMismatch(path, problem, prefix_treedef, treedef, _hint(prefix_treedef))
    for child_treedef, (key, child) in zip(child_treedefs, aligned, strict=True):
        mismatch = _match_prefix(child_treedef, child, is_leaf, (*path, key), leaves)
        if mismatch is not None:
            return mismatch
    return None


def _match(
    treedef: Any, tree: Any, path: KeyPath, subtrees: list[Any], mismatches: list[StructureMismatch]
) -> None:
    """Append the subtrees at the leaves of `treedef`, and the places where the tree differs from it."""
    if treedef.node_data() is None:
        subtrees.append(tree)
        return
    child_treedefs = treedef.children()
    level = level_of(tree)
    aligned = None if level is None else _align(treedef, len(child_treedefs), level)
    if aligned is None:
        got = f"a leaf of type {type(tree).__name__}" if level is None else _describe_level(level)
        problem = _describe_treedef(treedef, len(child_treedefs)), got
        hint = _hint(treedef) or _key_hint(treedef, level)
        mismatches.append(StructureMismatch(path, problem, treedef, tree_structure(tree), hint))
        return
    for child_treedef, (key, child) in zip(child_treedefs, aligned, strict=True):
        _match(child_treedef, child, (*path, key), subtrees, mismatches)


def _align(treedef: Any, number_of_children: int, level: Level) -> Iterable[tuple[Any, Any]] | None:
    """The keys and children of `level` in the order of `treedef`'s children, or None if the two nodes differ."""
    node = treedef.node_data()
    if node is None:
        return None
    node_type, node_data = node
    pairs = zip(level.keys, level.children, strict=True)
    if node_type in PLAIN_DICTS and level.node_type in PLAIN_DICTS:
        return _align_by_key(node_data, level.node_data, pairs)
    if node_type is not level.node_type:
        return None
    if node_type is defaultdict:
        (factory, keys), (level_factory, level_keys) = node_data, level.node_data
        return _align_by_key(keys, level_keys, pairs) if factory == level_factory else None
    if number_of_children != len(level.children) or node_data != level.node_data:
        return None
    return pairs


def _align_by_key(
    keys: Iterable[Any], level_keys: Iterable[Any], pairs: Iterable[tuple[Any, Any]]
) -> Iterable[tuple[Any, Any]] | None:
    by_key = dict(zip(level_keys, pairs, strict=True))
    keys = list(keys)
    return [by_key[key] for key in keys] if by_key.keys() == set(keys) else None


def _describe_treedef(treedef: Any, number_of_children: int) -> str:
    node = treedef.node_data()
    return "a leaf" if node is None else _describe(node[0], node[1], number_of_children)


def _describe_level(level: Level) -> str:
    return _describe(level.node_type, level.node_data, len(level.children))


def _describe(node_type: type, node_data: Any, number_of_children: int) -> str:
    if node_type is type(None):
        return "None"
    if node_type in (list, tuple):
        return f"a {node_type.__name__} of length {number_of_children}"
    if node_type in PLAIN_DICTS:
        return f"a dict with keys {list(node_data)}"
    if node_type is OrderedDict:
        return f"an OrderedDict with keys in the order {list(node_data)}"
    if node_type is defaultdict:
        return f"a defaultdict({node_data[0]}) with keys {list(node_data[1])}"
    children = f"{number_of_children} {'child' if number_of_children == 1 else 'children'}"
    data = "" if node_data is None else f" and node data {_shortened(node_data)}"
    return f"a {node_type.__module__}.{node_type.__qualname__} with {children}{data}"


def _hint(treedef: Any) -> str:
    if treedef != NONE_TREEDEF:
        return ""
    return "None is an empty tree, not a leaf; to treat it as a leaf pass is_leaf=lambda x: x is None."


def _key_hint(treedef: Any, level: Level | None) -> str:
    node_type, node_data = treedef.node_data()
    if level is None or node_type not in PLAIN_DICTS or level.node_type not in PLAIN_DICTS:
        return ""
    keys, others = set(node_data), set(level.node_data)
    missing, extra = sorted(keys - others, key=str), sorted(others - keys, key=str)
    return f"Dict key mismatch; missing keys: {missing}, extra keys: {extra}"


NONE_TREEDEF = registry_flatten(None)[1]


def _shortened(value: Any, limit: int = 400) -> str:
    text = str(value)
    return text if len(text) <= limit else f"{text[: limit // 2]} ... {text[-limit // 2 :]}"
