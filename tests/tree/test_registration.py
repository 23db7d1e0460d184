"""Registered types are nodes; a registration that cannot work is refused with the reason."""

import dataclasses
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field

import jax
import pytest

from purax import tree, tree_util
from purax.tree_util import GetAttrKey, register_dataclass, register_pytree_node, register_static


def new_dataclass(**options):
    @dataclass(**options)
    class Layer:
        weight: object
        bias: object = 0.0
        name: str = field(default="layer", metadata={"static": True})

    return Layer


def round_trip(value):
    leaves, treedef = tree.flatten(value)
    return tree.unflatten(treedef, leaves)


@pytest.mark.parametrize("options", [{}, {"frozen": True}, {"slots": True}, {"kw_only": True}])
def test_dataclass_fields_are_inferred(options):
    layer_type = register_dataclass(new_dataclass(**options))
    layer = layer_type(weight=[1, 2], bias=None, name="first")
    pairs, treedef = tree.flatten_with_path({"x": layer})
    assert [(tree_util.keystr(path), leaf) for path, leaf in pairs] == [
        ("['x'].weight[0]", 1),
        ("['x'].weight[1]", 2),
    ]
    assert treedef.children()[0].node_data() == (layer_type, ("first",))
    assert round_trip(layer) == layer
    assert tree.structure(layer) != tree.structure(dataclasses.replace(layer, name="second"))


def test_dataclass_fields_given():
    layer_type = register_dataclass(new_dataclass(), data_fields=["bias", "weight"], meta_fields=("name",))
    assert tree.leaves(layer_type(1, 2)) == [2, 1]


def test_dataclass_dropped_fields_have_their_defaults_again():
    layer_type = register_dataclass(new_dataclass(), ["weight"], ["name"], drop_fields=["bias"])
    assert round_trip(layer_type(1, 5, "n")) == layer_type(1, 0.0, "n")
    inferred_type = register_dataclass(new_dataclass(), drop_fields=["bias"])
    assert round_trip(inferred_type(1, 5, "n")) == inferred_type(1, 0.0, "n")

    @register_dataclass
    @dataclass
    class Derived:
        x: int

        def __post_init__(self):
            self.twice = 2 * self.x

    assert tree.map(lambda x: x + 1, Derived(1)).twice == 4

    def with_derived_field(**arguments):
        @dataclass
        class Derived:
            x: int
            twice: int = field(init=False)

            def __post_init__(self):
                self.twice = 2 * self.x

        return register_dataclass(Derived, **arguments)

    assert tree.map(lambda x: x + 1, with_derived_field(drop_fields=["twice"])(1)).twice == 4
    with pytest.raises(ValueError, match="'twice' has init=False"):
        with_derived_field()


def test_class_that_is_no_dataclass():
    class Plain:
        def __init__(self, x, y):
            self.x, self.y = x, y

    with pytest.raises(
        TypeError, match="Plain'> is not a dataclass, so data_fields and meta_fields must be given"
    ):
        register_dataclass(Plain)
    register_dataclass(Plain, ["x"], ["y"])
    assert tree.leaves_with_path(Plain(1, 2)) == [((GetAttrKey("x"),), 1)]
    assert tree.map(lambda x: x + 1, Plain(1, 2)).x == 2
    incomplete = Plain(1, 2)
    del incomplete.x
    with pytest.raises(AttributeError, match="'x'"):
        tree.flatten(incomplete)


WRONG_FIELDS = [
    ({"data_fields": ["weight"], "meta_fields": ["bias"]}, ValueError, r"missing fields: \['name'\]"),
    (
        {"data_fields": ["weight", "w"], "meta_fields": ["bias", "name"]},
        ValueError,
        "Layer has no field 'w'",
    ),
    ({"data_fields": ["weight"]}, TypeError, "must both be specified"),
    ({"meta_fields": ["weight"]}, TypeError, "must both be specified"),
    (
        {"data_fields": ["weight", "bias"], "meta_fields": ["bias", "name"]},
        ValueError,
        r"must not overlap; both have \['bias'\]",
    ),
    (
        {"data_fields": ["weight", "bias"], "meta_fields": ["name"], "drop_fields": ["bias"]},
        ValueError,
        "'bias' is also in drop_fields",
    ),
    (
        {"data_fields": ["weight", "weight", "bias"], "meta_fields": ["name"]},
        ValueError,
        r"data_fields repeats \['weight'\]",
    ),
    ({"data_fields": "weight", "meta_fields": ["bias", "name"]}, TypeError, "got the string 'weight'"),
    ({"drop_fields": "bias"}, TypeError, "got the string 'bias'"),
    ({"drop_fields": ["weight"]}, ValueError, "the dropped field 'weight' has no default"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), WRONG_FIELDS)
def test_wrong_fields_are_refused_at_registration(arguments, error, message):
    layer_type = new_dataclass()
    with pytest.raises(error, match=message):
        register_dataclass(layer_type, **arguments)
    assert not tree_util.is_tree_node(layer_type)


def test_duplicate_registrations_are_refused_as_in_jax():
    class Node:
        pass

    namedtuple_type = namedtuple("Named", "x")
    functions = (lambda node: ((), None), lambda *_: Node())
    register_pytree_node(Node, *functions)
    for nodetype in (Node, list, tuple, dict, type(None), OrderedDict, tree_util.Partial):
        message = "Duplicate custom PyTreeDef type registration for"
        with pytest.raises(ValueError, match=message):
            register_pytree_node(nodetype, *functions)
        with pytest.raises(ValueError, match=message):
            register_static(nodetype)
    layer_type = register_dataclass(new_dataclass())
    with pytest.raises(ValueError, match="Duplicate custom dataclass PyTreeDef type registration for"):
        register_dataclass(layer_type)
    register_static(namedtuple_type)  # a namedtuple is a node by its form only, so it can be registered
    assert tree.leaves(namedtuple_type(1)) == []


def test_arguments_of_the_wrong_kind():
    for call in (
        lambda: register_pytree_node(3, lambda x: ((), None), lambda *_: 3),
        lambda: register_static(3),
        lambda: register_dataclass(3, ["x"], []),
        lambda: tree_util.register_pytree_node_class(3),
    ):
        with pytest.raises(TypeError, match="must be a class, got 3"):
            call()

    class Empty:
        pass

    with pytest.raises(TypeError, match="flatten_func must be a function, got 1"):
        register_pytree_node(Empty, 1, 2)
    with pytest.raises(AttributeError, match="class Empty has no tree_flatten and no tree_unflatten"):
        tree_util.register_pytree_node_class(Empty)
    with pytest.raises(AttributeError, match="has no tree_flatten_with_keys and no tree_unflatten"):
        tree_util.register_pytree_with_keys_class(Empty)
    assert tree.structure(Empty()) == tree.structure(0)


def test_keys_of_a_registered_class():
    @tree_util.register_pytree_with_keys_class
    class Keyed:
        def __init__(self, x, y):
            self.x, self.y = x, y

        def tree_flatten_with_keys(self):
            return ((GetAttrKey("x"), self.x), (GetAttrKey("y"), self.y)), None

        def tree_flatten(self):
            calls.append("tree_flatten")
            return (self.x, self.y), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    calls = []
    value = Keyed(1, Keyed(2, 3))
    assert tree.leaves(value) == [1, 2, 3]
    assert calls == ["tree_flatten", "tree_flatten"]
    assert [tree_util.keystr(path) for path, _ in tree.leaves_with_path(value)] == [".x", ".y.x", ".y.y"]


def test_subclasses_of_nodes_are_leaves_unless_registered():
    class Items(list):
        pass

    class Mapping(dict):
        pass

    for value in (Items([1]), Mapping(a=1)):
        assert tree.leaves(value) == [value]
        assert jax.tree.leaves(value) == [value]


def test_static_types_are_part_of_the_structure():
    @register_static
    @dataclass(frozen=True)
    class Mode:
        name: str

    value = (1, Mode("train"))
    assert tree.leaves(value) == [1]
    assert tree.leaves_with_path(value) == [((tree_util.SequenceKey(0),), 1)]
    assert tree.structure(value) == tree.structure((2, Mode("train")))
    assert tree.structure(value) != tree.structure((2, Mode("test")))
    assert hash(tree.structure(value)) == hash(tree.structure((2, Mode("train"))))
    assert tree.map(lambda x: x + 1, value) == (2, Mode("train"))
    with pytest.raises(ValueError, match=r"at key path \[1\]: .*node data .*train.*node data .*test"):
        tree.map(lambda x, y: x, value, (1, Mode("test")))


def test_flatten_functions_that_return_something_else():
    class Wrong:
        pass

    register_pytree_node(Wrong, lambda _: 3, lambda *_: Wrong())
    with pytest.raises(ValueError, match=r"should return a \(children, aux_data\) tuple, got 3"):
        tree.flatten(Wrong())
