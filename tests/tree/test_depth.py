"""Trees that are too deep, contain themselves, or raise on the way down: one ValueError, and nothing is lost by it."""

from __future__ import annotations

import pytest

import purax as px
from purax.tree import registry


def nested(depth, container):
    value = 1.0
    for _ in range(depth):
        value = {"a": value} if container is dict else container((value,))
    return value


def depth_left(depth=0):
    try:
        return depth_left(depth + 1)
    except RecursionError:
        return depth


def own_item():
    value = []
    value.append(value)
    return value


WALKS = {
    "leaves": px.tree.leaves,
    "flatten": px.tree.flatten,
    "structure": px.tree.structure,
    "map": lambda tree: px.tree.map(lambda x: x, tree),
    "leaves with is_leaf": lambda tree: px.tree.leaves(tree, is_leaf=lambda x: False),
    "with path": px.tree.leaves_with_path,
    "with path and is_leaf": lambda tree: px.tree_util.tree_leaves_with_path(tree, is_leaf=lambda x: False),
    "jit": px.jit(lambda tree: 1.0),
    "grad": lambda tree: px.grad(lambda tree: 1.0)(tree),
    "vmap": px.vmap(lambda tree: 1.0),
    "in_axes": lambda tree: px.vmap(lambda x: x, in_axes=(tree,))(1.0),
    "result of jit": lambda tree: px.jit(lambda: tree)(),
    "scan": lambda tree: px.lax.scan(lambda c, x: (c, x), tree, None, length=2),
    "device_put": px.device_put,
}


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("container", [list, tuple, dict, None])
def test_a_tree_too_deep_is_a_value_error(walk, container):
    tree = own_item() if container is None else nested(30_000, container)  # beyond the limits of all versions
    before = depth_left()
    with pytest.raises(ValueError, match="nested too deeply, or contains itself"):
        WALKS[walk](tree)
    assert depth_left() == before


def test_exceptions_on_the_way_down_cost_no_depth():
    """XLA's pytrees do not count back the levels that an exception passes through."""
    if type(registry.registry_flatten).__name__ != "Guarded":
        pytest.skip("the extension is not compiled")

    def fails(x):
        if x == 1.0:
            raise ZeroDivisionError
        return False

    class Unsortable:
        def __lt__(self, other):
            raise ZeroDivisionError

    before = depth_left()
    for container in (list, tuple, dict):
        for _ in range(30):
            with pytest.raises(ZeroDivisionError):
                px.tree.leaves(nested(100, container), is_leaf=fails)
    for _ in range(1500):
        assert px.tree.leaves([[{1: 2, "a": 3}]]) == [2, 3]
        px.tree.leaves([[[{Unsortable(): 1, Unsortable(): 2}]]])
    assert depth_left() == before
