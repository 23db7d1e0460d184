"""Treedefs are values: they compare, hash, copy and pickle, and purax's registry is apart from jax's."""

import copy
import operator
import pickle
import subprocess
import sys
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass
from pathlib import Path

import jax
import pytest

from purax import tree, tree_util

Pair = namedtuple("Pair", ["first", "second"])


@tree_util.register_dataclass
@dataclass
class Record:
    x: object
    y: object


class OnlyPurax:
    pass


class OnlyJax:
    pass


class Both:
    def __init__(self, *children):
        self.children = children


tree_util.register_static(OnlyPurax)
jax.tree_util.register_static(OnlyJax)
tree_util.register_pytree_node(
    Both, lambda both: (both.children, "purax"), lambda _, children: Both(*children)
)
jax.tree_util.register_pytree_node(Both, lambda both: ((), "jax"), lambda *_: Both())

TREES = {
    "leaf": 1,
    "None": None,
    "builtin": {"a": [1, None], "b": (2, {"c": ()})},
    "OrderedDict": OrderedDict(b=1, a=2),
    "defaultdict": defaultdict(int, {"b": 1, "a": [2]}),
    "unsortable": {1: 2, "a": [3]},
    "namedtuple": [Pair(1, Pair(2, None))],
    "dataclass": Record({"a": 1}, 2),
    "partial": tree_util.Partial(operator.add, 1),
}


def copies(value):
    yield copy.copy(value)
    yield copy.deepcopy(value)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        yield pickle.loads(pickle.dumps(value, protocol))


@pytest.mark.parametrize("name", TREES)
def test_copies_are_equal(name, monkeypatch):
    monkeypatch.setitem(sys.modules, Pair.__module__, sys.modules[__name__])  # as pickle looks the types up
    treedef = tree.structure(TREES[name])
    leaves = tree.leaves(TREES[name])
    for other in copies(treedef):
        assert other == treedef
        assert hash(other) == hash(treedef)
        assert str(other) == str(treedef)
        rebuilt = tree.unflatten(other, leaves)
        assert type(rebuilt) is type(TREES[name])
        assert tree.flatten(rebuilt) == (leaves, treedef)


def test_registry_and_keys_are_copied_by_name_and_value():
    assert all(other is tree_util.default_registry for other in copies(tree_util.default_registry))
    keys = (
        tree_util.SequenceKey(0),
        tree_util.DictKey("a"),
        tree_util.GetAttrKey("x"),
        tree_util.FlattenedIndexKey(3),
    )
    assert (keys[0].idx, keys[1].key, keys[2].name, keys[3].key) == (0, "a", "x", 3)
    for other in copies(keys):
        assert other == keys
        assert hash(other) == hash(keys)


def test_a_treedef_is_read_by_another_process():
    treedef = tree.structure({"a": [1, None], "b": OrderedDict(x=1), "c": {1: 2, "d": 3}})
    program = (
        "import pickle, sys\n"
        "treedef = pickle.loads(sys.stdin.buffer.read())\n"
        "assert 'jax' not in sys.modules\n"
        "print(treedef.unflatten(range(4)))\n"
    )
    root = Path(__file__).parents[2]
    result = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps(treedef),
        capture_output=True,
        cwd=root,
        check=False,
    )
    assert result.returncode == 0, result.stderr.decode()
    expected = {"a": [0, None], "b": OrderedDict(x=1), "c": {1: 2, "d": 3}}
    assert result.stdout.decode().strip() == str(expected)


def test_different_structures_differ():
    structures = [tree.structure(value) for value in TREES.values()]
    assert len(set(structures)) == len(TREES)
    assert tree.structure([1, 2]) != tree.structure((1, 2))
    assert tree.structure({"a": 1}) != tree.structure({"b": 1})
    assert not tree.structure({"a": 1}) == 3


def test_types_registered_with_one_library_are_leaves_of_the_other():
    assert tree_util.is_tree_node(OnlyPurax) and not jax.tree_util.is_tree_node(OnlyPurax)
    assert jax.tree_util.is_tree_node(OnlyJax) and not tree_util.is_tree_node(OnlyJax)
    value = [OnlyPurax(), OnlyJax()]
    assert tree.leaves(value) == [value[1]]
    assert jax.tree.leaves(value) == [value[0]]
    assert tree.leaves(jax.tree_util.Partial(max, 1)) != [1]


def test_a_type_may_be_registered_differently():
    value = Both(1, 2)
    assert tree.leaves(value) == [1, 2]
    assert jax.tree.leaves(value) == []


def test_the_registry_is_not_jax_s():
    assert tree_util.default_registry is not jax.tree_util.default_registry
    assert tree_util.default_registry.flatten([1, 2]) == tree.flatten([1, 2])


def test_is_leaf_answers_with_a_boolean():
    for library in (tree, jax.tree):
        assert library.leaves([[1], []], is_leaf=lambda x: x == []) == [1, []]
        with pytest.raises(ValueError, match="returned a non-boolean value 'yes'"):
            library.leaves([[1], []], is_leaf=lambda x: "yes")
