"""Errors name the key path and both structures; prefixes are extended over the tree."""

from collections import OrderedDict, defaultdict, namedtuple

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purax import tree, tree_util
from purax.tree.prefix import broadcast_prefix, flatten_axes, flatten_up_to, prefix_errors

Pair = namedtuple("Pair", ["first", "second"])


@jax.tree_util.register_pytree_node_class
@tree_util.register_pytree_node_class
class Tagged:
    def __init__(self, tag, *children):
        self.tag, self.children = tag, children

    def tree_flatten(self):
        return self.children, self.tag

    @classmethod
    def tree_unflatten(cls, tag, children):
        return cls(tag, *children)


MISMATCHES = {
    "length": (
        {"params": [(1, 2), 3]},
        {"params": [(1,), 3]},
        "['params'][0]",
        "tuple of length 2",
        "tuple of length 1",
    ),
    "list and tuple": ([1, [2]], [1, (2,)], "[1]", "list of length 1", "tuple of length 1"),
    "dict keys": ([{"a": 1}], [{"b": 1}], "[0]", "dict with keys ['a']", "dict with keys ['b']"),
    "fewer keys": ({"a": 1, "b": 2}, {"a": 1}, "(root)", "dict with keys ['a', 'b']", "dict with keys ['a']"),
    "dict and list": ({"x": {"a": 1}}, {"x": [1]}, "['x']", "dict with keys ['a']", "list of length 1"),
    "leaf": ([1, [2]], [1, 2], "[1]", "list of length 1", "a leaf of type int"),
    "None": (Pair(1, None), Pair(1, 2), ".second", "has None", "a leaf of type int"),
    "not None": ([1, [2]], [1, None], "[1]", "list of length 1", "has None"),
    "namedtuple": ([Pair(1, 2)], [(1, 2)], "[0]", "Pair with 2 children", "tuple of length 2"),
    "to namedtuple": ([(1, 2)], [Pair(1, 2)], "[0]", "tuple of length 2", "Pair with 2 children"),
    "OrderedDict": (
        OrderedDict(a=1, b=2),
        OrderedDict(b=2, a=1),
        "(root)",
        "OrderedDict with keys in the order ['a', 'b']",
        "['b', 'a']",
    ),
    "default factory": (
        defaultdict(int, a=1),
        defaultdict(list, a=1),
        "(root)",
        "defaultdict(<class 'int'>)",
        "defaultdict(<class 'list'>)",
    ),
    "node data": (
        [Tagged("x", 1)],
        [Tagged("y", 1)],
        "[0]",
        "1 child and node data x",
        "1 child and node data y",
    ),
    "children": ([Tagged("x", 1)], [Tagged("x", 1, 2)], "[0]", "with 1 child", "with 2 children"),
    "below a node": (
        Tagged("x", [1]),
        Tagged("x", 2),
        "[<flat index 0>]",
        "list of length 1",
        "a leaf of type int",
    ),
}


@pytest.mark.parametrize("case", MISMATCHES)
@pytest.mark.parametrize(
    "function", ["map", "map_with_path", "broadcast", "flatten_up_to", "broadcast_prefix"]
)
def test_mismatch_names_path_and_structures(case, function):
    prefix, full, path, prefix_has, full_has = MISMATCHES[case]
    calls = {
        "map": lambda: tree.map(lambda x, y: x, prefix, full),
        "map_with_path": lambda: tree.map_with_path(lambda path, x, y: x, prefix, full),
        "broadcast": lambda: tree.broadcast(prefix, full),
        "flatten_up_to": lambda: flatten_up_to(tree.structure(prefix), full),
        "broadcast_prefix": lambda: broadcast_prefix(prefix, full),
    }
    with pytest.raises(ValueError) as caught:
        calls[function]()
    message = str(caught.value)
    assert f"at key path {path}: " in message
    assert prefix_has in message
    assert full_has.removesuffix(" of type int") in message
    assert message.count("PyTreeDef(") == 2
    assert message.index(prefix_has) < message.rindex(full_has.removesuffix(" of type int"))


@pytest.mark.parametrize("case", MISMATCHES)
def test_jax_rejects_them_too(case):
    prefix, full, *_ = MISMATCHES[case]
    with pytest.raises(ValueError):
        jax.tree.map(lambda x, y: x, prefix, full)


def test_map_says_which_tree():
    with pytest.raises(
        ValueError, match=r"tree 1 of tree.map has a list of length 1, but tree 3 has a tuple of length 1"
    ):
        tree.map(lambda *x: x, [1], [2], (3,))


def test_none_explains_itself():
    with pytest.raises(ValueError, match="is_leaf=lambda x: x is None"):
        tree.map(lambda x, y: x, [None], [1])
    with pytest.raises(ValueError, match="is_leaf=lambda x: x is None"):
        tree.broadcast([None], [1])
    assert tree.map(lambda x, y: y, [None], [1], is_leaf=lambda x: x is None) == [1]


def test_all_mismatches_are_found_in_order():
    prefix = {"a": [1, (2, 3)], "b": 4, "c": {"d": 5}}
    full = {"a": [1, (2,)], "b": [4, 4], "c": {"e": 5}}
    mismatches = prefix_errors(prefix, full)
    assert [tree_util.keystr(mismatch.path) for mismatch in mismatches] == ["['a'][1]", "['c']"]
    assert mismatches[1].prefix_structure == tree.structure({"d": 5})
    assert mismatches[1].full_structure == tree.structure({"e": 5})
    error = mismatches[0].error("in_axes", "the argument", path_prefix="in_axes")
    assert "at key path in_axes['a'][1]: in_axes has a tuple of length 2, but the argument has" in str(error)
    assert prefix_errors(prefix, prefix) == []
    assert prefix_errors(None, 1, is_leaf=lambda x: x is None) == []


def test_long_structures_are_shortened():
    with pytest.raises(ValueError) as caught:
        tree.map(lambda x, y: x, [[0] * 5000], [[0] * 5001])
    assert "list of length 5000" in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_a_failing_comparison_of_node_data_is_reported():
    values = [Tagged(np.arange(3), 1), Tagged(np.arange(3), 1)]
    with pytest.raises(ValueError, match="truth value"):
        tree.map(lambda x, y: x, *values)


def test_flatten_axes():
    structure = tree.structure(({"w": 1, "b": [2, 3]}, 4, None))
    assert flatten_axes("in_axes", structure, 0) == [0, 0, 0, 0]
    assert flatten_axes("in_axes", structure, None) == [None] * 4
    assert flatten_axes("in_axes", structure, (0, None, 7)) == [0, 0, 0, None]
    assert flatten_axes("in_axes", structure, ({"w": 1, "b": [None, -1]}, None, None)) == [None, -1, 1, None]
    with pytest.raises(ValueError, match=r"at key path in_axes\[0\]\['b'\]: in_axes has a list of length 1"):
        flatten_axes("in_axes", structure, ({"w": 1, "b": [0]}, None, None))
    with pytest.raises(ValueError, match=r"at key path in_axes: in_axes has a tuple of length 2"):
        flatten_axes("in_axes", structure, (0, 0))
    with pytest.raises(
        ValueError, match=r"at key path out_axes\[1\]: out_axes has .*, but the result has a leaf"
    ):
        flatten_axes("out_axes", structure, (0, (0, 1), None), full_name="the result")
    pairs_are_axes = {"is_leaf": lambda x: x is None or isinstance(x, tuple) and x[:1] == ("axis",)}
    assert flatten_axes("specs", tree.structure([1, 2]), [("axis", 3), None], **pairs_are_axes) == [
        ("axis", 3),
        None,
    ]


def test_flatten_axes_builds_no_tree():
    class Picky:
        def __init__(self, value):
            assert isinstance(value, int), "only integers"
            self.value = value

    tree_util.register_pytree_node(Picky, lambda p: ((p.value,), None), lambda _, children: Picky(*children))
    assert flatten_axes("in_axes", tree.structure([Picky(1), 2]), [5, None]) == [5, None]
    assert flatten_axes("in_axes", tree.structure([Picky(1), 2]), [Picky(3), None]) == [3, None]


def test_unflatten_explains_swapped_arguments():
    with pytest.raises(TypeError, match=r"tree_unflatten\(treedef, leaves\)"):
        tree.unflatten([1], tree.structure([1]))
    with pytest.raises(ValueError, match="Too many leaves"):
        tree.unflatten(tree.structure([1]), [1, 2])
    with pytest.raises(ValueError, match="Too few leaves"):
        tree.unflatten(tree.structure([1, 2]), [1])


trees = st.recursive(
    st.integers(0, 9) | st.none(),
    lambda children: st.one_of(
        st.lists(children, max_size=2),
        st.lists(children, max_size=2).map(tuple),
        st.dictionaries(st.sampled_from("ab"), children, max_size=2),
        st.dictionaries(st.sampled_from("ab"), children, max_size=2).map(OrderedDict),
        st.dictionaries(st.sampled_from("ab"), children, max_size=2).map(
            lambda mapping: defaultdict(int, mapping)
        ),
        st.builds(Pair, children, children),
    ),
    max_leaves=6,
)


@given(trees, trees)
@settings(max_examples=200, deadline=None)
def test_the_walk_agrees_with_the_engine(prefix, full):
    """On trees with sortable keys the walk that explains a refusal refuses exactly what XLA refuses."""
    treedef = tree.structure(prefix)
    try:
        expected = treedef.flatten_up_to(full)
    except ValueError:
        expected = None
    assert (prefix_errors(prefix, full) == []) == (expected is not None)
    if expected is None:
        with pytest.raises(ValueError, match="at key path"):
            flatten_axes("axes", tree.structure(full), prefix, is_leaf=None)
        with pytest.raises(ValueError, match="at key path"):
            flatten_up_to(treedef, full)
    else:
        assert flatten_up_to(treedef, full) == expected
        axes = flatten_axes("axes", tree.structure(full), prefix, is_leaf=None)
        assert axes == broadcast_prefix(prefix, full) == tree.leaves(tree.broadcast(prefix, full))
