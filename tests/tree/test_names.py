"""The public names are those of jax.tree and jax.tree_util in jax 0.10.2."""

import importlib
import inspect

import jax
import pytest

NAMES = {
    "tree": """
        all broadcast flatten flatten_with_path leaves leaves_with_path map map_with_path reduce reduce_associative
        static structure transpose unflatten
    """,
    "tree_util": """
        DictKey FlattenedIndexKey GetAttrKey KeyEntry KeyPath Partial PyTreeDef SequenceKey all_leaves default_registry
        flatten_one_level flatten_one_level_with_keys is_tree_node keystr register_dataclass register_pytree_node
        register_pytree_node_class register_pytree_with_keys register_pytree_with_keys_class register_static tree_all
        tree_broadcast tree_flatten tree_flatten_with_path tree_leaves tree_leaves_with_path tree_map tree_map_with_path
        tree_reduce tree_reduce_associative tree_structure tree_transpose tree_unflatten treedef_children
        treedef_is_leaf treedef_tuple
    """,
}


@pytest.mark.parametrize("module", NAMES)
def test_public_names_are_jax_s(module):
    names = sorted(NAMES[module].split())
    purax_module = importlib.import_module(f"purax.{module}")
    assert sorted(purax_module.__all__) == names
    assert sorted(dir(purax_module)) == names
    assert all(hasattr(purax_module, name) for name in names)


@pytest.mark.skipif(jax.__version__ != "0.10.2", reason="the list of names is that of 0.10.2")
@pytest.mark.parametrize("module", NAMES)
def test_the_list_of_names_is_that_of_jax(module):
    names = [name for name in dir(getattr(jax, module)) if not name.startswith("_")]
    assert sorted(NAMES[module].split()) == sorted(names)


@pytest.mark.parametrize("module", NAMES)
def test_functions_take_jax_s_arguments(module):
    purax_module = importlib.import_module(f"purax.{module}")
    compared = 0
    for name in NAMES[module].split():
        theirs = getattr(getattr(jax, module), name)
        if not inspect.isfunction(theirs):
            continue
        expected = list(inspect.signature(theirs).parameters.values())
        got = list(inspect.signature(getattr(purax_module, name)).parameters.values())
        assert [(p.name, p.kind) for p in got] == [(p.name, p.kind) for p in expected], name
        compared += 1
    assert compared > 10
