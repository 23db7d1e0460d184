"""Trees of all kinds give the same leaves, paths, structures and results as in jax."""

import dataclasses
import functools
import operator
from collections import Counter, OrderedDict, defaultdict, namedtuple

import jax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from purax import tree, tree_util

Pair = namedtuple("Pair", ["first", "second"])


class Bag:
    """Children without keys, node data by value."""

    def __init__(self, children, label):
        self.children, self.label = tuple(children), label

    def __eq__(self, other):
        return isinstance(other, Bag) and (self.children, self.label) == (other.children, other.label)

    def __repr__(self):
        return f"Bag({self.children}, {self.label!r})"


class Attributes:
    """Children with keys of several kinds."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __eq__(self, other):
        return isinstance(other, Attributes) and (self.x, self.y) == (other.x, other.y)

    def tree_flatten_with_keys(self):
        return [(jax.tree_util.GetAttrKey("x"), self.x), ("why", self.y)], None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


@dataclasses.dataclass
class Record:
    data: object
    more: object
    name: str = dataclasses.field(default="", metadata={"static": True})


class Symbol(str):
    pass


for library in (jax.tree_util, tree_util):
    library.register_pytree_node(
        Bag, lambda bag: (bag.children, bag.label), lambda label, children: Bag(children, label)
    )
    library.register_pytree_with_keys_class(Attributes)
    library.register_dataclass(Record)
    library.register_static(Symbol)


scalars = st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=2) | st.booleans()
names = st.text("abcdef", min_size=1, max_size=2)


def containers(children):
    mappings = st.dictionaries(names, children, max_size=3)
    return st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        mappings,
        st.dictionaries(st.integers(0, 9), children, max_size=3),
        st.lists(st.tuples(names, children), max_size=3).map(OrderedDict),
        mappings.map(lambda mapping: defaultdict(int, mapping)),
        st.builds(Pair, children, children),
        st.builds(lambda items, label: Bag(items, label), st.lists(children, max_size=3), names),
        st.builds(Attributes, children, children),
        st.builds(Record, children, children, names),
        st.builds(
            lambda f, items: tree_util.Partial(f, *items),
            st.just(operator.add),
            st.lists(children, max_size=2),
        ),
    )


trees = st.recursive(scalars | st.none() | names.map(Symbol) | names.map(Counter), containers, max_leaves=12)


def jax_partials(value):
    """The same tree with jax's Partial in place of purax's."""

    def is_partial(x):
        return isinstance(x, tree_util.Partial)

    def convert(x):
        return jax.tree_util.Partial(x.func, *map(jax_partials, x.args)) if is_partial(x) else x

    return tree.map(convert, value, is_leaf=is_partial)


def same(ours, theirs):
    return tree.leaves(ours) == jax.tree.leaves(theirs) and str(tree.structure(ours)) == str(
        jax.tree.structure(theirs)
    )


@given(trees)
@settings(max_examples=150, deadline=None)
def test_flatten_and_unflatten(value):
    leaves, treedef = tree.flatten(value)
    jax_leaves, jax_treedef = jax.tree.flatten(jax_partials(value))
    assert leaves == jax_leaves
    assert str(treedef) == str(jax_treedef)
    assert tree.leaves(value) == leaves
    assert tree.structure(value) == treedef
    assert (treedef.num_leaves, treedef.num_nodes) == (jax_treedef.num_leaves, jax_treedef.num_nodes)
    rebuilt = tree.unflatten(treedef, leaves)
    assert type(rebuilt) is type(value)
    assert tree.flatten(rebuilt) == (leaves, treedef)
    assert same(rebuilt, jax.tree.unflatten(jax_treedef, jax_leaves))


@given(trees)
@settings(max_examples=100, deadline=None)
def test_paths(value):
    pairs, treedef = tree.flatten_with_path(value)
    jax_pairs, jax_treedef = jax.tree.flatten_with_path(jax_partials(value))
    assert pairs == jax_pairs
    assert str(treedef) == str(jax_treedef)
    assert tree.leaves_with_path(value) == pairs
    assert [leaf for _, leaf in pairs] == tree.leaves(value)
    for path, _ in pairs:
        for options in ({}, {"simple": True}, {"separator": "/"}, {"simple": True, "separator": "."}):
            assert tree_util.keystr(path, **options) == jax.tree_util.keystr(path, **options)
    with_paths = tree.map_with_path(lambda path, x: (tree_util.keystr(path), x), value)
    jax_with_paths = jax.tree.map_with_path(
        lambda path, x: (jax.tree_util.keystr(path), x), jax_partials(value)
    )
    assert same(with_paths, jax_with_paths)


@given(trees)
@settings(max_examples=100, deadline=None)
def test_map_over_several_trees(value):
    ours = tree.map(lambda x, y, z: (x, y, z), value, value, tree.map(str, value))
    jax_value = jax_partials(value)
    theirs = jax.tree.map(lambda x, y, z: (x, y, z), jax_value, jax_value, jax.tree.map(str, jax_value))
    assert same(ours, theirs)
    for identity in (tree.map(lambda x: x, value), tree.map_with_path(lambda _, x: x, value)):
        assert tree.flatten(identity) == tree.flatten(value)


PREDICATES = {
    "none": lambda x: x is None,
    "lists": lambda x: isinstance(x, list),
    "small": lambda x: hasattr(x, "__len__") and len(x) < 2,
    "all": lambda x: True,
}


@pytest.mark.parametrize("predicate", PREDICATES)
@given(value=trees)
@settings(max_examples=40, deadline=None)
def test_is_leaf(predicate, value):
    value = jax_partials(value)  # a leaf for purax, a node for jax, unless a predicate stops above it
    without_partials = tree.map(lambda x: 0 if isinstance(x, jax.tree_util.Partial) else x, value)
    is_leaf = PREDICATES[predicate]
    leaves, treedef = tree.flatten(without_partials, is_leaf=is_leaf)
    jax_leaves, jax_treedef = jax.tree.flatten(without_partials, is_leaf=is_leaf)
    assert leaves == jax_leaves
    assert str(treedef) == str(jax_treedef)
    pairs, _ = tree.flatten_with_path(without_partials, is_leaf=is_leaf)
    assert pairs == jax.tree.leaves_with_path(without_partials, is_leaf=is_leaf)
    by_depth = {"is_leaf": lambda path, x: len(path) > 1 or is_leaf(x), "is_leaf_takes_path": True}
    assert tree.leaves_with_path(without_partials, **by_depth) == jax.tree.leaves_with_path(
        without_partials, **by_depth
    )


@given(trees)
@settings(max_examples=60, deadline=None)
def test_one_level(value):
    jax_value = jax_partials(value)
    assert tree_util.is_tree_node(type(value)) == jax.tree_util.is_tree_node(type(jax_value))
    assert tree_util.all_leaves([value]) == jax.tree_util.all_leaves([jax_value])
    if not tree_util.is_tree_node(type(value)):
        with pytest.raises(ValueError, match="can't tree-flatten"):
            tree_util.flatten_one_level(value)
        with pytest.raises(ValueError, match="can't tree-flatten"):
            tree_util.flatten_one_level_with_keys(value)
        return
    children, node_data = tree_util.flatten_one_level(value)
    jax_children, jax_node_data = jax.tree_util.flatten_one_level(jax_value)
    assert tree.leaves(list(children)) == jax.tree.leaves(list(jax_children))
    assert node_data == jax_node_data
    pairs, node_data = tree_util.flatten_one_level_with_keys(value)
    jax_pairs, jax_node_data = jax.tree_util.flatten_one_level_with_keys(jax_value)
    assert node_data == jax_node_data
    assert len(list(pairs)) == len(list(jax_pairs)) == len(list(children))
    if not isinstance(value, Pair):  # jax names every field of a namedtuple by the first
        assert [key for key, _ in pairs] == [key for key, _ in jax_pairs]
    treedef = tree.structure(value)
    assert tree_util.treedef_children(treedef) == [tree.structure(child) for child in children]
    assert tree_util.treedef_is_leaf(treedef) == jax.tree_util.treedef_is_leaf(jax.tree.structure(jax_value))
    pair = tree_util.treedef_tuple((treedef, tree.structure(0)))
    assert pair == tree.structure((value, 0))


def test_namedtuple_keys_are_its_fields():
    pairs, node_data = tree_util.flatten_one_level_with_keys(Pair(1, [2]))
    assert list(pairs) == [(tree_util.GetAttrKey("first"), 1), (tree_util.GetAttrKey("second"), [2])]
    assert node_data is Pair


@given(st.lists(st.integers(), max_size=9), st.integers())
@settings(max_examples=60, deadline=None)
def test_reductions(leaves, initial):
    value = {"a": leaves[: len(leaves) // 2], "b": (leaves[len(leaves) // 2 :], None)}

    def pair(x, y):
        return (x, y)

    assert tree.reduce(pair, value, initial) == jax.tree.reduce(pair, value, initial)
    assert tree.reduce(pair, value, None) == jax.tree.reduce(pair, value, None)
    assert tree.all(value) == jax.tree.all(value)
    arguments = {"identity": initial}
    assert tree.reduce_associative(pair, value, **arguments) == jax.tree.reduce_associative(
        pair, value, **arguments
    )
    if leaves:
        assert tree.reduce(pair, value) == jax.tree.reduce(pair, value)
        assert tree.reduce_associative(pair, value) == jax.tree.reduce_associative(pair, value)
    else:
        for reduce in (tree.reduce, tree.reduce_associative):
            with pytest.raises(TypeError, match="no leaves; pass"):
                reduce(pair, value)


def test_reductions_with_is_leaf():
    value = [[1], [0]]
    for library in (tree, jax.tree):
        assert library.all(value, is_leaf=lambda x: isinstance(x, list) and len(x) == 1) is True
        assert library.reduce(operator.add, value, [], is_leaf=lambda x: x != value) == [1, 0]
        assert library.reduce_associative(operator.add, value, is_leaf=lambda x: x != value) == [1, 0]


@given(trees, trees)
@settings(max_examples=80, deadline=None)
def test_broadcast(prefix, subtree):
    """Any leaf of a tree may stand for a subtree; other pairs of trees agree with jax on whether one is a prefix."""
    leaves, treedef = tree.flatten(prefix)
    full = treedef.unflatten([[subtree, i] for i, _ in enumerate(leaves)])
    result = tree.broadcast(prefix, full)
    assert same(result, jax.tree.broadcast(jax_partials(prefix), jax_partials(full)))
    try:
        expected = jax.tree.broadcast(jax_partials(prefix), jax_partials(subtree))
    except ValueError:
        with pytest.raises(ValueError, match="at key path"):
            tree.broadcast(prefix, subtree)
    else:
        assert same(tree.broadcast(prefix, subtree), expected)


def test_broadcast_is_leaf_concerns_the_prefix_only():
    is_none = {"is_leaf": lambda x: x is None}
    for arguments in (([1, None], [1, [2]]), ([1, 2], [1, [None, None]])):
        assert tree.broadcast(*arguments, **is_none) == jax.tree.broadcast(*arguments, **is_none)


TRANSPOSES = [
    ([0, 0], {"a": 0, "b": 0}, [{"a": 1, "b": 2}, {"a": 3, "b": 4}]),
    ([0, 0], None, [{"a": 1, "b": 2}, {"a": 3, "b": 4}]),
    ([0, 0], {"a": 0, "b": 0}, ({"a": 1, "b": 2}, {"a": 3, "b": 4})),
    ([0, 0], (), [(), ()]),
    ([0, None], (0, 0), [(1, 2), None]),
    ([0], [0], [[[1]]]),
    ([0], None, [[[1]]]),
    ({"x": 0, "y": [0]}, Pair(0, (0, 0)), {"x": Pair(1, (2, 3)), "y": [Pair(4, (5, 6))]}),
    ([0, 0], [0, 0], [(1, 2), [3, 4]]),
]


@pytest.mark.parametrize(("outer", "inner", "value"), TRANSPOSES)
def test_transpose(outer, inner, value):
    results = [
        library.transpose(
            library.structure(outer), None if inner is None else library.structure(inner), value
        )
        for library in (tree, jax.tree)
    ]
    assert results[0] == results[1]


def test_transpose_rejects_other_structures():
    structure = tree.structure
    for value in ([{"a": 1, "b": 2}, {"a": 3}], [{"a": 1, "b": 2, "c": 3}, {"a": 4}]):
        with pytest.raises(TypeError, match=r"PyTreeDef\(\[\{'a': \*, 'b': \*\}, \{'a': \*, 'b': \*\}\]\)"):
            tree.transpose(structure([0, 0]), structure({"a": 0, "b": 0}), value)
    with pytest.raises(ValueError, match="pass inner_treedef"):
        tree.transpose(structure([]), None, [])
    with pytest.raises(ValueError, match="at key path"):
        tree.transpose(structure([0, 0]), None, [1])


def test_transpose_of_no_trees():
    assert tree.transpose(tree.structure([]), tree.structure({"a": 0, "b": 0}), []) == {"a": [], "b": []}


@given(trees, trees)
@settings(max_examples=40, deadline=None)
def test_transpose_twice_is_the_identity(outer, inner):
    outer_treedef, inner_treedef = tree.structure(outer), tree.structure(inner)
    composed = outer_treedef.compose(inner_treedef)
    value = composed.unflatten(range(composed.num_leaves))
    if composed.num_leaves == 0:
        return
    transposed = tree.transpose(outer_treedef, inner_treedef, value)
    assert tree.structure(transposed) == inner_treedef.compose(outer_treedef)
    back = tree.transpose(inner_treedef, outer_treedef, transposed)
    assert tree.flatten(back) == tree.flatten(value)


def test_all_leaves():
    cases = [[1, 2], [1, [2]], [1, None], [], [{1: 1, "a": 2}]]
    assert [tree_util.all_leaves(case) for case in cases] == [
        jax.tree_util.all_leaves(case) for case in cases
    ]

    def is_tuple(x):
        return isinstance(x, tuple)

    for elements, expected in (([1, (2,)], True), ([[1], (2,)], False), ([None], False), ([], True)):
        for library in (tree_util, jax.tree_util):
            assert library.all_leaves(elements, is_leaf=is_tuple) is expected
    # jax asks about the list of elements too, and then answers False
    assert tree_util.all_leaves([1, [2]], is_leaf=lambda x: isinstance(x, list)) is True


def test_keystr_of_other_keys():
    class Key:
        def __str__(self):
            return "<key>"

        def __repr__(self):
            return "Key()"

    paths = [
        (),
        (1, "a"),
        (Key(), tree_util.DictKey(Key())),
        (tree_util.DictKey((1, 2)), tree_util.FlattenedIndexKey(3)),
    ]
    for path in paths:
        for simple in (False, True):
            arguments = {"simple": simple, "separator": "/"}
            assert tree_util.keystr(path, **arguments) == jax.tree_util.keystr(path, **arguments)


def test_partial():
    def function(*args, **kwargs):
        return args, kwargs

    def results(partial_type):
        simple = partial_type(function, 1, [2], z=3)
        nested = partial_type(simple, 7, z=4)
        of_functools = partial_type(functools.partial(function, 1), 7)
        return simple, nested, of_functools

    for ours, theirs in zip(results(tree_util.Partial), results(jax.tree_util.Partial), strict=True):
        assert ours(8, y=9) == theirs(8, y=9)
        assert tree.leaves_with_path(ours) == jax.tree.leaves_with_path(theirs)
        doubled, jax_doubled = tree.map(lambda x: 2 * x, ours), jax.tree.map(lambda x: 2 * x, theirs)
        assert isinstance(doubled, tree_util.Partial)
        assert doubled(8, y=9) == jax_doubled(8, y=9)
        assert tree.structure(doubled) == tree.structure(ours)
    inner = functools.partial(function, 1)
    structures = [
        tree.structure(tree_util.Partial(f, 7)) for f in (inner, inner, functools.partial(function, 1))
    ]
    assert structures[0] == structures[1] and hash(structures[0]) == hash(structures[1])
    assert structures[0] != structures[2]


def test_static_field():
    assert dict(tree.static(default=3).metadata) == dict(jax.tree.static(default=3).metadata)
    metadata = {"a": 1, "static": False}
    assert dict(tree.static(metadata=metadata).metadata) == dict(jax.tree.static(metadata=metadata).metadata)
    assert tree.static(default=3).default == 3


def test_an_exception_of_the_function_is_not_taken_for_the_end_of_the_leaves():
    def stop(*_):
        raise StopIteration("from the function")

    for arguments in (([1, 2],), ([1, 2], [3, 4])):
        with pytest.raises(StopIteration, match="from the function"):
            tree.map(stop, *arguments)
        with pytest.raises(StopIteration, match="from the function"):
            tree.map_with_path(stop, *arguments)
