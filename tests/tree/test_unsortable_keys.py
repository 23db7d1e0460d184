"""Dicts whose keys cannot be sorted keep their insertion order, wherever they stand."""

import pickle
from collections import OrderedDict, defaultdict, namedtuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purax import tree, tree_util
from purax.tree.prefix import broadcast_prefix, flatten_axes, flatten_up_to, prefix_errors

Pair = namedtuple("Pair", ["first", "second"])


class Unordered:
    """A key whose comparison raises something unusual."""

    def __init__(self, name):
        self.name = name

    def __lt__(self, other):
        raise RuntimeError("these have no order")

    def __eq__(self, other):
        return isinstance(other, Unordered) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f"<{self.name}>"


def test_leaves_and_round_trip():
    value = {"b": 1, 0: [2, None], (1, 2): {"y": 3, "x": 4}}
    leaves, treedef = tree.flatten(value)
    assert leaves == [1, 2, 4, 3]
    assert tree.leaves(value) == leaves
    assert tree.structure(value) == treedef
    rebuilt = tree.unflatten(treedef, leaves)
    assert rebuilt == value
    assert type(rebuilt) is dict
    assert list(rebuilt) == list(value)


def test_any_exception_of_a_comparison_counts():
    keys = Unordered("b"), Unordered("a")
    assert tree.leaves({keys[0]: 1, keys[1]: 2}) == [1, 2]
    assert tree.leaves({keys[0]: 1}) == [1]


def test_nested_in_every_container():
    value = {0: 1, "a": {"x": 2, 3: (3,)}}
    for wrapped in (
        [value, 9],
        (value,),
        {"k": value, "j": 0},
        OrderedDict(k=value),
        defaultdict(int, {1: value, "b": 2}),
        Pair(value, [value]),
        tree_util.Partial(max, value, key=value),
    ):
        mapped = tree.map(lambda x: x, wrapped)
        assert tree.flatten(mapped) == tree.flatten(wrapped)
        paths, treedef = tree.flatten_with_path(wrapped)
        assert [leaf for _, leaf in paths] == tree.leaves(wrapped)
        assert treedef == tree.structure(wrapped)
        assert len({path for path, _ in paths}) == len(paths)


def test_paths():
    value = [{"b": 1, 0: {"x": [2], ("t",): 3}}, Pair(4, {None: 5, 1: 6})]
    assert {tree_util.keystr(path): leaf for path, leaf in tree.leaves_with_path(value)} == {
        "[0]['b']": 1,
        "[0][0]['x'][0]": 2,
        "[0][0][('t',)]": 3,
        "[1].first": 4,
        "[1].second[None]": 5,
        "[1].second[1]": 6,
    }
    pairs, node_data = tree_util.flatten_one_level_with_keys({"b": 1, 0: 2})
    assert list(pairs) == [(tree_util.DictKey("b"), 1), (tree_util.DictKey(0), 2)]
    assert node_data == ("b", 0)
    assert tree_util.flatten_one_level({"b": 1, 0: 2}) == ((1, 2), ("b", 0))


def test_is_leaf():
    inner = {"b": 1, 0: 2}
    value = {"z": [inner, 3], 1: None}
    assert tree.leaves(value, is_leaf=lambda x: x is inner) == [inner, 3]
    assert tree.leaves(value, is_leaf=lambda x: x is None) == [1, 2, 3, None]
    assert tree.leaves(value, is_leaf=lambda x: isinstance(x, dict)) == [value]
    seen = []
    pairs = tree.leaves_with_path(
        value, is_leaf=lambda path, x: seen.append((path, x)) or x is inner, is_leaf_takes_path=True
    )
    assert [(tree_util.keystr(path), leaf) for path, leaf in pairs] == [("['z'][0]", inner), ("['z'][1]", 3)]
    asked = {tree_util.keystr(path) for path, _ in seen}
    assert asked == {"", "['z']", "['z'][0]", "['z'][1]", "[1]"}


def test_map_of_several_trees_goes_by_key():
    first, second = {"b": 1, 0: (2, 3)}, {0: (20, 30), "b": 10}
    assert tree.map(lambda x, y: x + y, first, second) == {"b": 11, 0: (22, 33)}
    assert tree.map(lambda x, y: y, {"b": 1, 0: 2}, second) == second
    result = tree.map_with_path(lambda path, x, y: (len(path), x, y), [first], [second])
    assert result == [{"b": (1 + 1, 1, 10), 0: ((3, 2, 20), (3, 3, 30))}]
    first_default, second_default = defaultdict(int, first), defaultdict(int, second)
    assert tree.map(lambda x, y: x + y, first_default, second_default) == {"b": 11, 0: (22, 33)}


def test_another_insertion_order_is_another_treedef_with_other_leaves():
    """Equal treedefs must mean equal leaf order, or the leaves of one tree would be taken for those of another."""
    first, second = {"b": 1, 0: 2}, {0: 2, "b": 1}
    assert tree.leaves(first) == [1, 2]
    assert tree.leaves(second) == [2, 1]
    assert tree.structure(first) != tree.structure(second)
    assert tree.structure(first) == tree.structure({"b": 5, 0: 6})
    assert hash(tree.structure(first)) == hash(tree.structure({"b": 5, 0: 6}))


def test_mismatches_are_found():
    with pytest.raises(
        ValueError, match=r"at key path \[0\]: .* a dict with keys \['b', 0\], but .* \['b', 1\]"
    ):
        tree.map(lambda x, y: x, [{"b": 1, 0: 2}], [{"b": 1, 1: 2}])
    with pytest.raises(ValueError, match=r"at key path \(root\): .* \['b', 'c'\], but .* \['b', 1\]"):
        tree.map(lambda x, y: x, {"b": 1, "c": 2}, {"b": 1, 1: 2})
    with pytest.raises(ValueError, match="a leaf of type int"):
        tree.map(lambda x, y: x, {"b": 1, 0: 2}, 3)


def test_prefixes_go_by_key():
    full = {"b": [1, 2], 0: 3}
    assert flatten_up_to(tree.structure({0: 0, "b": 0}), full) == [3, [1, 2]]
    assert prefix_errors({0: "x", "b": "y"}, full) == []
    assert broadcast_prefix([{"b": "y", 0: "x"}], [full]) == ["y", "y", "x"]
    assert flatten_axes("in_axes", tree.structure(full), {0: 5, "b": None}) == [None, None, 5]
    assert tree.broadcast({"b": "y", 0: "x"}, full) == {"b": ["y", "y"], 0: "x"}
    assert tree.broadcast(7, full) == {"b": [7, 7], 0: 7}


def test_broadcast_of_a_prefix_in_another_order():
    assert tree.broadcast({0: "x", "b": "y"}, {"b": [1, 2], 0: 3}) == {"b": ["y", "y"], 0: "x"}


def test_transpose_goes_by_key():
    value = [{"b": 1, 0: 2}, {0: 20, "b": 10}]
    assert tree.transpose(tree.structure([0, 0]), None, value) == {"b": [1, 10], 0: [2, 20]}


def test_pickle():
    treedef = tree.structure([{"b": 1, 0: 2}])
    assert pickle.loads(pickle.dumps(treedef)) == treedef
    assert pickle.loads(pickle.dumps(treedef)).unflatten([3, 4]) == [{"b": 3, 0: 4}]


def test_errors_of_users_are_not_swallowed():
    class Broken:
        pass

    def flatten(_):
        raise ValueError("from the flatten function")

    tree_util.register_pytree_node(Broken, flatten, lambda *_: Broken())
    for value in (Broken(), {"b": 1, 0: Broken()}, [{"b": 1, 0: 2}, Broken()]):
        with pytest.raises(ValueError, match="from the flatten function"):
            tree.flatten(value)
        with pytest.raises(ValueError, match="from the flatten function"):
            tree.flatten_with_path(value)

    def is_leaf(*_):
        raise ValueError("from is_leaf")

    with pytest.raises(ValueError, match="from is_leaf"):
        tree.leaves({"b": 1, 0: 2}, is_leaf=is_leaf)


keys = st.one_of(
    st.integers(0, 3), st.text("abc", min_size=1, max_size=1), st.tuples(st.integers(0, 1)), st.none()
)
trees = st.recursive(
    st.integers() | st.none(),
    lambda children: st.one_of(
        st.dictionaries(keys, children, max_size=4),
        st.lists(children, max_size=3),
        st.builds(Pair, children, children),
        st.dictionaries(keys, children, max_size=3).map(OrderedDict),
        st.dictionaries(keys, children, max_size=3).map(lambda mapping: defaultdict(list, mapping)),
    ),
    max_leaves=12,
)


def by_definition(value, path=""):
    """Paths and leaves of a tree as the documentation defines them, in plain Python."""
    match value:
        case None:
            return []
        case Pair():
            items = [(f".{name}", child) for name, child in zip(value._fields, value, strict=True)]
        case list():
            items = [(f"[{index}]", child) for index, child in enumerate(value)]
        case OrderedDict():
            items = [(f"[{key!r}]", child) for key, child in value.items()]
        case dict():
            try:
                items = [(f"[{key!r}]", value[key]) for key in sorted(value)]
            except TypeError:
                items = [(f"[{key!r}]", child) for key, child in value.items()]
        case _:
            return [(path, value)]
    return [pair for key, child in items for pair in by_definition(child, path + key)]


def reversed_dicts(value):
    """The same tree with every dict's insertion order reversed."""
    match value:
        case Pair():
            return Pair(*map(reversed_dicts, value))
        case list():
            return [reversed_dicts(child) for child in value]
        case OrderedDict():
            return OrderedDict((key, reversed_dicts(child)) for key, child in value.items())
        case defaultdict():
            return defaultdict(
                value.default_factory, {key: reversed_dicts(value[key]) for key in reversed(value)}
            )
        case dict():
            return {key: reversed_dicts(value[key]) for key in reversed(value)}
    return value


@given(trees)
@settings(max_examples=200, deadline=None)
def test_agrees_with_the_definition(value):
    expected = by_definition(value)
    assert [(tree_util.keystr(path), leaf) for path, leaf in tree.leaves_with_path(value)] == expected
    leaves, treedef = tree.flatten(value)
    assert leaves == [leaf for _, leaf in expected]
    assert tree.flatten_with_path(value)[1] == treedef
    assert tree.unflatten(treedef, leaves) == value
    assert treedef.num_leaves == len(leaves)


@given(trees)
@settings(max_examples=100, deadline=None)
def test_insertion_order_does_not_matter_to_functions_of_several_trees(value):
    other = reversed_dicts(value)
    assert tree.map(lambda x, y: (x, y), value, other) == tree.map(lambda x: (x, x), value)
    assert prefix_errors(value, other) == []
    assert broadcast_prefix(other, value) == tree.leaves(value)
    assert flatten_axes("axes", tree.structure(value), other) == tree.leaves(value)
