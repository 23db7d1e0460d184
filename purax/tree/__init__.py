"""Pytrees: nested containers of leaves, such as the parameters of a model.

These are the functions of `purax.tree_util` under shorter names. Lists, tuples, namedtuples, dicts, OrderedDicts,
defaultdicts and None are containers, as are types registered with `purax.tree_util`; everything else is a leaf.

>>> from purax import tree
>>> tree.map(lambda x: 2 * x, {"a": 1, "b": (2, None)})
{'a': 2, 'b': (4, None)}
"""

from purax import tree_util
from purax.tree import nodes

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]


def __dir__() -> list[str]:
    return __all__


all = tree_util.tree_all
broadcast = tree_util.tree_broadcast
flatten = tree_util.tree_flatten
flatten_with_path = tree_util.tree_flatten_with_path
leaves = tree_util.tree_leaves
leaves_with_path = tree_util.tree_leaves_with_path
map = tree_util.tree_map
map_with_path = tree_util.tree_map_with_path
reduce = tree_util.tree_reduce
reduce_associative = tree_util.tree_reduce_associative
structure = tree_util.tree_structure
transpose = tree_util.tree_transpose
unflatten = tree_util.tree_unflatten
static = nodes.static
