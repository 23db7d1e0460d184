"""The registry of pytree node types, and flattening with it.

XLA's C++ pytrees do the work, in a registry of purax's own, so that jax in the same process is undisturbed.
XLA refuses dicts whose keys cannot be sorted (`{1: x, "a": y}`). Here such a dict keeps its insertion order:
after XLA's refusal the tree is flattened again, level by level, with the dict as an `InsertionOrderDict`.
Kept true: equal treedefs mean leaves in the same order, and `treedef.unflatten` gives back a plain dict.
"""

import itertools
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple, TypeVar

from purax.errors import shown
from purax.xla import jaxlib_api

try:
    from purax.tree._recursion import Guarded as guarded
except ImportError:  # it was not compiled when purax was installed

    def guarded(function: Any) -> Any:
        """The function itself, whose exceptions may cost some of the depth that recursion has left."""
        return function


PyTreeDef = jaxlib_api.pytree.PyTreeDef
SequenceKey = jaxlib_api.pytree.SequenceKey
DictKey = jaxlib_api.pytree.DictKey
GetAttrKey = jaxlib_api.pytree.GetAttrKey
FlattenedIndexKey = jaxlib_api.pytree.FlattenedIndexKey

KeyEntry = TypeVar("KeyEntry", bound=Hashable)
KeyPath = tuple[Any, ...]
IsLeaf = Callable[[Any], bool] | None
IsLeafWithPath = Callable[..., bool] | None

default_registry = jaxlib_api.pytree.PyTreeRegistry()
# A pickled treedef names its registry by module and name.
default_registry.__name__ = "default_registry"
default_registry.__module__ = "purax.tree_util"

registry_flatten = guarded(default_registry.flatten)
registry_flatten_with_path = guarded(default_registry.flatten_with_path)
leaf_treedef = registry_flatten(0)[1]


class InsertionOrderDict(dict[Any, Any]):
    """How a treedef records a plain dict whose keys cannot be sorted; it unflattens to a plain dict.

    The keys are node data, in insertion order. Two such dicts with the same keys inserted in another order have
    leaves in another order and hence different treedefs, but functions of several trees match them key by key.
    """


def sorted_if_possible(keys: Iterable[Any]) -> tuple[Any, ...]:
    """The keys sorted, or in the order given if they cannot be compared."""
    keys = tuple(keys)
    try:
        return tuple(sorted(keys))
    except Exception:  # whatever `__lt__` of a user's key raises
        return keys


def _dict_with_keys(keys: tuple[Any, ...], children: Iterable[Any]) -> dict[Any, Any]:
    return dict(zip(keys, children, strict=True))


def _register_mapping(
    node_type: type,
    node_data_of: Callable[[Any], Any],
    keys_of: Callable[[Any], tuple[Any, ...]],
    rebuild: Callable[[Any, Iterable[Any]], Any],
) -> None:
    """Register a mapping type whose node data holds its keys."""

    def flatten(mapping: Any) -> tuple[list[Any], Any]:
        node_data = node_data_of(mapping)
        return [mapping[key] for key in keys_of(node_data)], node_data

    def flatten_with_keys(mapping: Any) -> tuple[list[tuple[Any, Any]], Any]:
        node_data = node_data_of(mapping)
        return [(DictKey(key), mapping[key]) for key in keys_of(node_data)], node_data

    default_registry.register_node(node_type, flatten, rebuild, flatten_with_keys)


_register_mapping(InsertionOrderDict, tuple, lambda keys: keys, _dict_with_keys)
_register_mapping(
    OrderedDict,
    tuple,
    lambda keys: keys,
    lambda keys, children: OrderedDict(zip(keys, children, strict=True)),
)
_register_mapping(
    defaultdict,
    lambda mapping: (mapping.default_factory, sorted_if_possible(mapping)),
    lambda node_data: node_data[1],
    lambda node_data, children: defaultdict(node_data[0], zip(node_data[1], children, strict=True)),
)


class Level(NamedTuple):
    """A node and its children, one level deep."""

    node_type: type
    node_data: Any
    keys: list[Any]
    children: list[Any]


def _root_only() -> Callable[..., bool]:
    """A predicate that opens the root, which is asked about first, and takes every child as a leaf."""
    is_child = False

    def is_leaf(*_: Any) -> bool:
        nonlocal is_child
        answer, is_child = is_child, True
        return answer

    return is_leaf


def level_of(tree: Any) -> Level | None:
    """The top node of `tree` and its children, or None if `tree` is a leaf."""
    node_type = type(tree)
    if node_type is tuple or node_type is list:
        return Level(node_type, None, [SequenceKey(index) for index in range(len(tree))], list(tree))
    if node_type is dict:
        return _level_of_dict(tree)
    if not default_registry.is_node(node_type):
        return None
    keyed_children, treedef = registry_flatten_with_path(tree, _root_only())
    node_type, node_data = treedef.node_data()
    keys = [path[0] for path, _ in keyed_children]
    return Level(node_type, node_data, keys, [child for _, child in keyed_children])


def _level_of_dict(tree: dict[Any, Any]) -> Level:
    node_type: type = dict
    try:
        keys: Any = sorted(tree)
    except Exception:  # whatever `__lt__` of a user's key raises
        node_type, keys = InsertionOrderDict, tuple(tree)
    return Level(
        node_type, keys, [DictKey(key) for key in keys], [tree[key] for key in listed(keys, "keystr")]
    )


def treedef_of_level(level: Level, child_treedefs: Iterable[Any]) -> Any:
    """The treedef of a node with the given structures of its children."""
    return PyTreeDef.from_node_data_and_children(
        default_registry, (level.node_type, level.node_data), list(child_treedefs)
    )


def is_unsortable_keys_error(error: ValueError) -> bool:
    """Whether XLA refused a dict because its keys cannot be sorted."""
    return str(error).startswith("Comparator raised exception while sorting pytree dictionary keys")


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], Any]:
    """Take a tree apart into the list of its leaves and its structure.

    Args:
        tree: any nesting of registered containers; everything else is a leaf. `None` is a tree without leaves.
        is_leaf: asked for every subtree; where it answers true the subtree is a leaf. It should be a pure function:
            it may be asked more than once about a subtree.

    Returns:
        The leaves, and the treedef from which `tree_unflatten` rebuilds the tree.

    Dict keys are visited in sorted order, or in insertion order where they cannot be sorted. In that case the insertion
    order is part of the structure; functions of several trees, such as `tree_map`, still match such dicts by key.

    >>> from purax import tree_util
    >>> tree_util.tree_flatten({"b": [1, None], "a": (2, 3)})
    ([2, 3, 1], PyTreeDef({'a': (*, *), 'b': [*, None]}))
    >>> tree_util.tree_leaves({"b": 1, 0: 2})
    [1, 2]
    """
    try:
        return registry_flatten(tree, is_leaf)
    except TypeError:
        _check_is_leaf(is_leaf)
        raise
    except (RecursionError, SystemError) as error:
        raise too_deep(error) from None
    except ValueError as error:
        if not is_unsortable_keys_error(error):
            raise
    return _flatten_by_levels(tree, is_leaf)


def too_deep(error: Exception) -> Exception:
    """What is said of a tree that jaxlib could not walk down, where `error` says that."""
    if isinstance(error, RecursionError) or isinstance(error.__cause__, RecursionError):
        return ValueError(
            "a pytree is nested too deeply, or contains itself: containers can be nested up to about "
            f"{sys.getrecursionlimit()} levels (`sys.getrecursionlimit()`)"
        )
    return error


def _check_is_leaf(is_leaf: Any) -> None:
    if is_leaf is not None and not callable(is_leaf):
        raise TypeError(f"is_leaf must be a function of a subtree, or None; got {shown(is_leaf)}") from None


def _flatten_by_levels(tree: Any, is_leaf: IsLeaf) -> tuple[list[Any], Any]:
    """Flatten a tree that XLA refused: it is a node, and it or something below it has unsortable keys."""
    level = level_of(tree)
    assert level is not None
    leaves, child_treedefs = [], []
    for child in level.children:
        child_leaves, child_treedef = tree_flatten(child, is_leaf)
        leaves += child_leaves
        child_treedefs.append(child_treedef)
    return leaves, treedef_of_level(level, child_treedefs)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree, in the order of `tree_flatten`.

    >>> from purax import tree_util
    >>> tree_util.tree_leaves([1, (2, {"x": 3}), None])
    [1, 2, 3]
    """
    try:
        return registry_flatten(tree, is_leaf)[0]
    except TypeError:
        _check_is_leaf(is_leaf)
        raise
    except (RecursionError, SystemError) as error:
        raise too_deep(error) from None
    except ValueError as error:
        if not is_unsortable_keys_error(error):
            raise
    return _flatten_by_levels(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> Any:
    """The structure of a tree: what is left when the leaves are taken out.

    >>> from purax import tree_util
    >>> tree_util.tree_structure([1, (2, {"x": 3}), None])
    PyTreeDef([*, (*, {'x': *}), None])
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_unflatten(treedef: Any, leaves: Iterable[Any]) -> Any:
    """Put a tree together from its structure and its leaves; the inverse of `tree_flatten`.

    Args:
        treedef: a structure, as `tree_flatten` and `tree_structure` return it.
        leaves: as many leaves as the structure has places for.

    Returns:
        The tree.

    >>> from purax import tree_util
    >>> leaves, treedef = tree_util.tree_flatten({"a": 1, "b": (2, 3)})
    >>> tree_util.tree_unflatten(treedef, [leaf * 10 for leaf in leaves])
    {'a': 10, 'b': (20, 30)}
    """
    try:
        return treedef.unflatten(leaves)
    except AttributeError:
        if isinstance(treedef, PyTreeDef):
            raise
    except TypeError:
        if isinstance(leaves, Iterable):
            raise
        raise TypeError(
            f"tree_unflatten: leaves must be a list or another iterable, got {shown(leaves)}"
        ) from None
    raise TypeError(
        f"tree_unflatten: treedef must be a PyTreeDef, got {type(treedef).__name__}. "
        "The order is tree_unflatten(treedef, leaves)."
    )


def tree_flatten_with_path(
    tree: Any, is_leaf: IsLeafWithPath = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], Any]:
    """Flatten a tree into pairs of a leaf's key path and the leaf, and the structure.

    Args:
        tree: the tree.
        is_leaf: as in `tree_flatten`.
        is_leaf_takes_path: whether `is_leaf` is called as `is_leaf(path, subtree)` instead of `is_leaf(subtree)`.

    Returns:
        The list of `(path, leaf)`, and the treedef. `keystr` prints a path.

    >>> from purax import tree_util
    >>> tree_util.tree_flatten_with_path({"w": [1, 2]})[0]
    [((DictKey(key='w'), SequenceKey(idx=0)), 1), ((DictKey(key='w'), SequenceKey(idx=1)), 2)]
    """
    _check_is_leaf(is_leaf)
    predicate = is_leaf
    if is_leaf is not None and not is_leaf_takes_path:
        is_leaf_at_any_path = is_leaf

        def predicate(_: KeyPath, subtree: Any) -> bool:
            return is_leaf_at_any_path(subtree)

    try:
        return registry_flatten_with_path(tree, predicate)
    except (RecursionError, SystemError) as error:
        raise too_deep(error) from None
    except ValueError as error:
        if not is_unsortable_keys_error(error):
            raise
    return _flatten_with_path_by_levels((), tree, predicate)


def _flatten_with_path_by_levels(
    path: KeyPath, tree: Any, is_leaf: IsLeafWithPath
) -> tuple[list[tuple[KeyPath, Any]], Any]:
    level = level_of(tree)
    assert level is not None
    leaves, child_treedefs = [], []
    for key, child in zip(level.keys, level.children, strict=True):
        child_path = (*path, key)
        below = is_leaf and _below(child_path, is_leaf)
        try:
            child_leaves, child_treedef = registry_flatten_with_path(child, below)
        except ValueError as error:
            if not is_unsortable_keys_error(error):
                raise
            child_leaves = None
        if child_leaves is None:
            child_leaves, child_treedef = _flatten_with_path_by_levels(child_path, child, is_leaf)
            leaves += child_leaves
        else:
            leaves += [(child_path + leaf_path, leaf) for leaf_path, leaf in child_leaves]
        child_treedefs.append(child_treedef)
    return leaves, treedef_of_level(level, child_treedefs)


def _below(path: KeyPath, is_leaf: Callable[..., bool]) -> Callable[..., bool]:
    """The predicate for a subtree at `path`, which sees paths from the root."""
    return lambda path_below, subtree: is_leaf(path + path_below, subtree)


def tree_leaves_with_path(
    tree: Any, is_leaf: IsLeafWithPath = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """The pairs of key path and leaf of a tree; the arguments are those of `tree_flatten_with_path`.

    >>> from purax import tree_util
    >>> for path, leaf in tree_util.tree_leaves_with_path({"w": [1, 2]}):
    ...     print(tree_util.keystr(path), leaf)
    ['w'][0] 1
    ['w'][1] 2
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Any]:
    """The children of the top node of a tree, and the node's data.

    Args:
        tree: a tree that is not a leaf.

    Returns:
        The children, and what the node is besides its children: the keys of a dict, the class of a namedtuple,
        what the flatten function of a registered type returned, None for lists, tuples and None.

    >>> from purax import tree_util
    >>> tree_util.flatten_one_level({"a": [1, 2], "b": {"c": 3}})
    (([1, 2], {'c': 3}), ('a', 'b'))
    """
    try:
        flattened = default_registry.flatten_one_level(tree)
    except ValueError as error:
        if not is_unsortable_keys_error(error) or type(tree) is not dict:
            raise
        flattened = tuple(tree.values()), tuple(tree)
    if flattened is None:
        raise _no_level(tree)
    return flattened


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Any]:
    """The pairs of key and child of the top node of a tree, and the node's data.

    >>> from purax import tree_util
    >>> pairs, _ = tree_util.flatten_one_level_with_keys({"a": [1, 2], "b": 3})
    >>> list(pairs)
    [(DictKey(key='a'), [1, 2]), (DictKey(key='b'), 3)]
    """
    level = level_of(tree)
    if level is None:
        raise _no_level(tree)
    node_data = tuple(level.node_data) if type(tree) is dict else flatten_one_level(tree)[1]
    return tuple(zip(level.keys, level.children, strict=True)), node_data


def _no_level(tree: Any) -> ValueError:
    return ValueError(
        f"can't tree-flatten type: {type(tree)} is a leaf, not a registered pytree node type. "
        "Register it with register_pytree_node, register_dataclass or register_static."
    )


def is_tree_node(typ: type) -> bool:
    """Whether instances of the type are inner nodes of trees: a built-in container, a namedtuple, or registered.

    >>> from purax import tree_util
    >>> tree_util.is_tree_node(dict), tree_util.is_tree_node(float)
    (True, False)
    """
    return default_registry.is_node(typ)


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether every element is a leaf.

    Args:
        iterable: the elements.
        is_leaf: what counts as a leaf besides objects of unregistered types.

    Returns:
        True if no element is a tree node, so also for no elements. `None` is a node.

    >>> from purax import tree_util
    >>> tree_util.all_leaves([1, 2.0]), tree_util.all_leaves([1, [2]]), tree_util.all_leaves([None])
    (True, False, False)
    """
    elements = listed(iterable, "all_leaves")
    if is_leaf is None:
        return jaxlib_api.pytree.all_leaves(default_registry, elements)
    is_node = default_registry.is_node
    return all(is_leaf(element) or not is_node(type(element)) for element in elements)


_MAX_ITEMS = 1 << 22
_MAX_KEYS = 1 << 16  # of a path


def listed(values: Iterable[Any], name: str, limit: int = _MAX_ITEMS) -> list[Any]:
    """The items of an argument, which may never end."""
    items = list(itertools.islice(values, limit + 1))
    if len(items) > limit:
        raise ValueError(f"{name}: more than {limit} items are refused: they may never end")
    return items


def treedef_tuple(treedefs: Iterable[Any]) -> Any:
    """The structure of a tuple of trees, from their structures.

    >>> from purax import tree_util
    >>> tree_util.treedef_tuple([tree_util.tree_structure(0), tree_util.tree_structure([0, 0])])
    PyTreeDef((*, [*, *]))
    """
    given = listed(treedefs, "treedef_tuple")
    for one in given:
        require_structure(one, "treedef_tuple: each of treedefs")
    return jaxlib_api.pytree.treedef_tuple(default_registry, given)


def require_structure(treedef: Any, what: str) -> None:
    """Raises unless `treedef` is the structure of a tree."""
    if not isinstance(treedef, PyTreeDef):
        raise TypeError(
            f"{what} must be a PyTreeDef, got {shown(treedef)} of type {type(treedef).__name__}; tree.structure(x) is "
            "the "
            "structure of the tree x"
        )


def treedef_children(treedef: Any) -> list[Any]:
    """The structures of the children of the top node; none for a leaf.

    >>> from purax import tree_util
    >>> tree_util.treedef_children(tree_util.tree_structure({"a": 0, "b": [0]}))
    [PyTreeDef(*), PyTreeDef([*])]
    """
    require_structure(treedef, "treedef_children: treedef")
    return treedef.children()


def treedef_is_leaf(treedef: Any) -> bool:
    """Whether the structure is a single node: a leaf, or an empty container.

    >>> from purax import tree_util
    >>> [tree_util.treedef_is_leaf(tree_util.tree_structure(tree)) for tree in (0, [], [0])]
    [True, True, False]
    """
    require_structure(treedef, "treedef_is_leaf: treedef")
    return treedef.num_nodes == 1


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """Print a key path the way the leaf would be reached in Python.

    Args:
        keys: the path, as `tree_flatten_with_path` returns it.
        simple: print the bare names and indices; shorter, but `"0"` and `0` look the same.
        separator: what stands between two keys.

    Returns:
        The text.

    >>> from purax import tree_util
    >>> (path, _), = tree_util.tree_leaves_with_path({"layers": [{"bias": 0.0}]})
    >>> tree_util.keystr(path)
    "['layers'][0]['bias']"
    >>> tree_util.keystr(path, simple=True, separator="/")
    'layers/0/bias'
    """
    if not isinstance(separator, str):
        raise TypeError(f"keystr: separator must be a string, got {shown(separator)}")
    if not isinstance(keys, (tuple, list)):
        keys = tuple(listed(keys, "keystr", _MAX_KEYS))
    try:
        return separator.join([_simple_key(key) if simple else str(key) for key in keys])
    except RecursionError as error:
        raise too_deep(error) from None


def _simple_key(key: Any) -> str:
    match key:
        case SequenceKey():
            return str(key.idx)
        case DictKey() | FlattenedIndexKey():
            return str(key.key)
        case GetAttrKey():
            return str(key.name)
    return str(key)
