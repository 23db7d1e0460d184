"""Functions on pytrees, under JAX's names: nested containers of leaves, such as the parameters of a model.

`purax.tree` has the most used ones under shorter names. Flattening and the registry are in `tree_registry`, the
comparison of structures in `tree_prefix`, the registration of types in `tree_nodes`.
"""

import functools
from collections.abc import Callable
from typing import Any

from purax.errors import shown
from purax.tree.nodes import (
    Partial,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)
from purax.tree.prefix import broadcast_prefix, flatten_up_to
from purax.tree.registry import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    IsLeaf,
    IsLeafWithPath,
    KeyEntry,
    KeyPath,
    PyTreeDef,
    SequenceKey,
    all_leaves,
    default_registry,
    flatten_one_level,
    flatten_one_level_with_keys,
    is_tree_node,
    keystr,
    require_structure,
    too_deep,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_leaves_with_path,
    tree_structure,
    tree_unflatten,
    treedef_children,
    treedef_is_leaf,
    treedef_tuple,
)

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "default_registry",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]


def __dir__() -> list[str]:
    return __all__


class _Unspecified:
    """The default of an argument for which None is a value."""

    def __repr__(self) -> str:
        return "unspecified"


_unspecified = _Unspecified()


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Apply a function to the leaves of one or several trees.

    Args:
        f: takes one argument per tree.
        tree: the tree whose structure the result has.
        *rest: trees with the same structure, or with subtrees where `tree` has leaves; `f` gets those subtrees.
        is_leaf: what counts as a leaf of `tree`, as in `tree_flatten`.

    Returns:
        The tree of results.

    Raises:
        ValueError: if a tree in `rest` does not continue as `tree` does; the message has the key path.

    >>> from purax import tree_util
    >>> tree_util.tree_map(lambda x, y: x + y, {"a": 1, "b": (2, None)}, {"a": 10, "b": (20, None)})
    {'a': 11, 'b': (22, None)}
    """
    leaves, treedef = tree_flatten(tree, is_leaf)
    if not callable(f):
        raise _not_a_function("tree.map", f)
    if not rest:
        results = []  # not a comprehension: on Python 3.11 its closure over `f` costs 150 ns
        for leaf in leaves:
            results.append(f(leaf))
        return treedef.unflatten(results)
    columns = _flatten_rest("tree.map", treedef, rest)
    return treedef.unflatten([f(*row) for row in zip(leaves, *columns, strict=True)])


def _flatten_rest(function: str, treedef: Any, rest: tuple[Any, ...]) -> list[list[Any]]:
    """The subtrees of each tree of `rest` at the leaves of the first tree."""
    try:
        return [treedef.flatten_up_to(tree) for tree in rest]
    except ValueError:
        pass
    except (RecursionError, SystemError) as error:
        raise too_deep(error) from None
    return [
        flatten_up_to(treedef, tree, f"tree 1 of {function}", f"tree {number}")
        for number, tree in enumerate(rest, start=2)
    ]


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: IsLeafWithPath = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Apply a function to the key paths and leaves of one or several trees.

    Args:
        f: takes a key path and one argument per tree.
        tree: the tree whose structure the result has.
        *rest: trees that match `tree`, as in `tree_map`.
        is_leaf: what counts as a leaf of `tree`.
        is_leaf_takes_path: whether `is_leaf` is called as `is_leaf(path, subtree)`.

    Returns:
        The tree of results.

    >>> from purax import tree_util
    >>> tree_util.tree_map_with_path(lambda path, x: tree_util.keystr(path) + f"={x}", {"a": [1, 2]})
    {'a': ["['a'][0]=1", "['a'][1]=2"]}
    """
    leaves, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    if not callable(f):
        raise _not_a_function("tree.map_with_path", f)
    if not rest:
        return treedef.unflatten([f(path, leaf) for path, leaf in leaves])
    columns = _flatten_rest("tree.map_with_path", treedef, rest)
    return treedef.unflatten(
        [f(path, leaf, *row) for (path, leaf), *row in zip(leaves, *columns, strict=True)]
    )


def tree_reduce(
    function: Callable[[Any, Any], Any], tree: Any, initializer: Any = _unspecified, is_leaf: IsLeaf = None
) -> Any:
    """Combine the leaves of a tree from left to right.

    Args:
        function: takes the result so far and a leaf.
        tree: the tree.
        initializer: the first result; without it the first leaf.
        is_leaf: what counts as a leaf, as in `tree_flatten`.

    Returns:
        The last result.

    >>> from purax import tree_util
    >>> tree_util.tree_reduce(lambda total, x: total + x, [1, (2, 3)], 10)
    16
    """
    leaves = tree_leaves(tree, is_leaf)
    if not callable(function):
        raise _not_a_function("tree.reduce", function)
    if initializer is not _unspecified:
        return functools.reduce(function, leaves, initializer)
    if not leaves:
        raise TypeError("tree.reduce: the tree has no leaves; pass an initializer.")
    return functools.reduce(function, leaves)


def _not_a_function(caller: str, given: Any) -> TypeError:
    return TypeError(f"{caller} needs a function first, got {shown(given)} of type {type(given).__name__}")


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = _unspecified, is_leaf: IsLeaf = None
) -> Any:
    """Combine the leaves of a tree with an associative operation, in a balanced tree of operations.

    Sums of many leaves round less than with `tree_reduce`, and the operations of one depth can run in parallel.

    Args:
        operation: an associative function of two arguments.
        tree: the tree.
        identity: the result for a tree without leaves.
        is_leaf: what counts as a leaf, as in `tree_flatten`.

    Returns:
        The combination of all leaves, in their order.

    >>> from purax import tree_util
    >>> tree_util.tree_reduce_associative(lambda x, y: f"({x}{y})", ["a", "b", ("c", "d")])
    '((ab)(cd))'
    """
    leaves = tree_leaves(tree, is_leaf)
    if not callable(operation):
        raise _not_a_function("tree.reduce_associative", operation)
    if leaves:
        return _combine_halves(operation, leaves)
    if identity is _unspecified:
        raise TypeError("tree.reduce_associative: the tree has no leaves; pass identity.")
    return identity


def _combine_halves(operation: Callable[[Any, Any], Any], values: list[Any]) -> Any:
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    return operation(_combine_halves(operation, values[:middle]), _combine_halves(operation, values[middle:]))


def tree_all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true; so also for a tree without leaves.

    >>> from purax import tree_util
    >>> tree_util.tree_all({"a": True, "b": [True, False]})
    False
    """
    return all(tree_leaves(tree, is_leaf))


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Extend a prefix of a tree to the tree's structure, by repeating its leaves.

    Args:
        prefix_tree: a tree with leaves where `full_tree` may have subtrees.
        full_tree: the tree whose structure the result has.
        is_leaf: what counts as a leaf of `prefix_tree`, as in `tree_flatten`.

    Returns:
        A tree with the structure of `full_tree` and the leaves of `prefix_tree`.

    Raises:
        ValueError: if `prefix_tree` is not a prefix of `full_tree`; the message has the key path.

    >>> from purax import tree_util
    >>> tree_util.tree_broadcast({"a": 0, "b": 1}, {"a": [5, 6], "b": 7})
    {'a': [0, 0], 'b': 1}
    """
    return tree_structure(full_tree).unflatten(broadcast_prefix(prefix_tree, full_tree, is_leaf))


def tree_transpose(outer_treedef: Any, inner_treedef: Any, pytree_to_transpose: Any) -> Any:
    """Turn a tree of trees inside out.

    Args:
        outer_treedef: the structure of the outer tree.
        inner_treedef: the structure of each inner tree, or None to take that of the first one.
        pytree_to_transpose: a tree with the outer structure, of trees with the inner structure.

    Returns:
        A tree with the inner structure, of trees with the outer structure.

    Raises:
        TypeError: if the tree does not have that structure.

    >>> from purax import tree_util
    >>> tree = [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    >>> tree_util.tree_transpose(tree_util.tree_structure([0, 0]), None, tree)
    {'a': [1, 3], 'b': [2, 4]}
    """
    require_structure(outer_treedef, "tree.transpose: outer_treedef")
    if inner_treedef is not None:
        require_structure(inner_treedef, "tree.transpose: inner_treedef")
    if inner_treedef is None:
        inner_trees = flatten_up_to(outer_treedef, pytree_to_transpose, "outer_treedef", "the tree")
        if not inner_trees:
            raise ValueError(
                "tree.transpose: outer_treedef has no leaves to take inner_treedef from; pass inner_treedef."
            )
        inner_treedef = tree_structure(inner_trees[0])
    leaves, treedef = tree_flatten(pytree_to_transpose)
    expected = outer_treedef.compose(inner_treedef)
    rows: list[list[Any]] | None
    if len(leaves) != expected.num_leaves:
        rows = None
    elif treedef == expected:
        rows = _rows(leaves, inner_treedef.num_leaves, outer_treedef.num_leaves)
    else:
        rows = _rows_of_similar_tree(outer_treedef, inner_treedef, pytree_to_transpose, leaves)
    if rows is None:
        raise TypeError(
            f"tree.transpose: the structure of the tree is\n  {treedef}\nbut outer_treedef of inner_treedef is\n"
            f"  {expected}"
        )
    columns = [outer_treedef.unflatten([row[i] for row in rows]) for i in range(inner_treedef.num_leaves)]
    return inner_treedef.unflatten(columns)


def _rows(leaves: list[Any], length: int, number: int) -> list[list[Any]]:
    return [leaves[i * length : (i + 1) * length] for i in range(number)]


def _rows_of_similar_tree(
    outer_treedef: Any, inner_treedef: Any, tree: Any, leaves: list[Any]
) -> list[list[Any]] | None:
    """The leaves of each inner tree, where containers of another type but the same size are accepted as in JAX.

    Dicts with unsortable keys are matched by key. None if an inner tree is of another size.
    """
    try:
        inner_trees = flatten_up_to(outer_treedef, tree)
    except ValueError:
        return _rows(leaves, inner_treedef.num_leaves, outer_treedef.num_leaves)
    rows = []
    for inner_tree in inner_trees:
        try:
            row = tree_leaves(flatten_up_to(inner_treedef, inner_tree))
        except ValueError:
            row = tree_leaves(inner_tree)
        if len(row) != inner_treedef.num_leaves:
            return None
        rows.append(row)
    return rows
