"""The optimizers and schedules make the steps that those of jax make, for trees and any step size."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax.example_libraries import optimizers as theirs

import purax as px
import purax.numpy as jnp
from purax.example_libraries import optimizers as ours

OPTIMIZERS = {
    "sgd": {},
    "momentum": {"mass": 0.8},
    "nesterov": {"mass": 0.8},
    "adagrad": {},
    "rmsprop": {},
    "rmsprop_momentum": {"gamma": 0.8},
    "adam": {"b1": 0.8},
    "adamax": {},
    "sm3": {},
}
SCHEDULES = [
    ("constant", (0.1,)),
    ("exponential_decay", (0.1, 3, 0.5)),
    ("inverse_time_decay", (0.1, 3, 0.5)),
    ("inverse_time_decay", (0.1, 3, 0.5, True)),
    ("polynomial_decay", (0.1, 4, 0.01, 2.0)),
    ("piecewise_constant", ([1, 3], [0.1, 0.2, 0.05])),
]


def run(module, system, name, options, compiled):
    """Five steps from fixed parameters, with gradients that depend on them; some are zero."""
    make = getattr(module, name)
    step_size = module.exponential_decay(0.1, 3, 0.7)
    init, update, parameters = make(step_size, **options)
    start = {
        "a": np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3),
        "b": [np.float32([0.5, 0.0])],
        "c": np.float32(2),
    }

    def step(i, state):
        gradient = system.tree_util.tree_map(lambda x: x**2 - x, parameters(state))
        return update(i, gradient, state)

    step = system.jit(step) if compiled else step
    state = init(start)
    for i in range(5):
        state = step(i, state)
    return parameters(state), system.tree_util.tree_leaves(state)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("compiled", [False, True])
def test_five_steps_are_those_of_jax(name, compiled):
    params, leaves = run(ours, px, name, OPTIMIZERS[name], compiled)
    # jax's sm3 keeps shapes among the numbers of its state, so that it cannot be compiled.
    wanted, wanted_leaves = run(theirs, jax, name, OPTIMIZERS[name], name != "sm3")
    pairs = zip(leaves, wanted_leaves, strict=True) if name != "sm3" else []
    for got, expected in [
        (params["a"], wanted["a"]),
        (params["b"][0], wanted["b"][0]),
        (params["c"], wanted["c"]),
        *pairs,
    ]:
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize(("name", "arguments"), SCHEDULES)
def test_schedules_are_those_of_jax(name, arguments):
    mine, wanted = getattr(ours, name)(*arguments), getattr(theirs, name)(*arguments)
    for i in range(6):
        np.testing.assert_allclose(mine(i), wanted(i), rtol=1e-6)
    np.testing.assert_allclose(px.jit(mine)(2), wanted(2), rtol=1e-6)


def test_states_are_trees_that_can_be_unpacked_and_packed():
    init, update, parameters = ours.adam(0.1)
    state = init({"w": jnp.ones(2), "b": 0.0})
    assert len(px.tree.leaves(state)) == 6
    marked = ours.unpack_optimizer_state(state)
    assert isinstance(marked["w"], ours.JoinPoint) and len(marked["w"].subtree) == 3
    again = ours.pack_optimizer_state(marked)
    assert px.tree.structure(again) == px.tree.structure(state)
    np.testing.assert_array_equal(parameters(again)["w"], [1, 1])
    with pytest.raises(TypeError, match="JoinPoint"):
        ours.pack_optimizer_state({"w": 1.0})


def test_norms_and_clipping():
    tree = {"a": jnp.array([3.0]), "b": jnp.array(4.0)}
    assert float(ours.l2_norm(tree)) == 5
    clipped = ours.clip_grads(tree, 2.5)
    wanted = theirs.clip_grads({"a": np.float32([3]), "b": np.float32(4)}, 2.5)
    np.testing.assert_allclose(clipped["a"], wanted["a"])
    np.testing.assert_array_equal(ours.clip_grads(tree, 6.0)["a"], [3])


def test_wrong_use_is_explained():
    init, update, _ = ours.sgd(0.1)
    with pytest.raises(TypeError, match="structure"):
        update(0, [1.0], init({"a": 1.0}))
    with pytest.raises(ValueError, match="2 boundaries need 3 values, got 2"):
        ours.piecewise_constant([1, 2], [0.1, 0.2])
    with pytest.raises(TypeError, match="number or a function"):
        ours.make_schedule([1.0, 2.0])

    @ours.optimizer
    def growing():
        return lambda x: (x,), lambda i, g, state: (*state, g), lambda state: state[0]

    init, update, _ = growing()
    with pytest.raises(TypeError, match="the update made a state"):
        update(0, 1.0, init(1.0))
