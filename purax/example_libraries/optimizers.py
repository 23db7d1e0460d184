"""Optimizers as triples of functions: one makes the state of parameters, one updates it, one reads them from it.

Each is written for one array; `optimizer` makes it one for trees. Their states are `OptimizerState`s, which
`unpack_optimizer_state` turns into plain trees for saving. The formulas are those of the papers the docstrings name.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

from purax import numpy as jnp
from purax import tree_util
from purax.core.source import located
from purax.errors import shown
from purax.example_libraries.schedules import (
    Schedule,
    constant,
    exponential_decay,
    inverse_time_decay,
    make_schedule,
    piecewise_constant,
    polynomial_decay,
)

__all__ = [
    "JoinPoint",
    "Optimizer",
    "OptimizerState",
    "Schedule",
    "adagrad",
    "adam",
    "adamax",
    "clip_grads",
    "constant",
    "exponential_decay",
    "inverse_time_decay",
    "l2_norm",
    "make_schedule",
    "momentum",
    "nesterov",
    "optimizer",
    "pack_optimizer_state",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "rmsprop_momentum",
    "sgd",
    "sm3",
    "unpack_optimizer_state",
]


class Optimizer(NamedTuple):
    """What an optimizer is made of.

    Attributes:
        init_fn: parameters -> state.
        update_fn: number of the step, gradients, state -> state.
        params_fn: state -> parameters.
    """

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


# The states of all parameters as flat lists, the structure of the parameters, and that of each one's state.
OptimizerState = namedtuple("OptimizerState", ["packed_state", "tree_def", "subtree_defs"])
tree_util.register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda structure, children: OptimizerState(children[0], *structure),
)


def optimizer(opt_maker: Callable[..., tuple[Callable, Callable, Callable]]) -> Callable[..., Optimizer]:
    """Makes an optimizer that is written for one array one for trees of them.

    Args:
        opt_maker: returns the three functions for one array; its state may be any tree.

    Returns:
        A function of the same arguments that returns an `Optimizer`.

    >>> from purax.example_libraries.optimizers import optimizer
    >>> @optimizer
    ... def descend(rate):
    ...     return lambda x: x, lambda i, g, x: x - rate * g, lambda x: x
    >>> init, update, parameters = descend(0.5)
    >>> parameters(update(0, {"w": 1.0}, init({"w": 2.0})))
    {'w': 1.5}
    """

    @functools.wraps(opt_maker)
    def make(*args: Any, **kwargs: Any) -> Optimizer:
        init_one, update_one, params_one = opt_maker(*args, **kwargs)

        def init(params: Any) -> Any:
            leaves, tree = tree_util.tree_flatten(params)
            return pack([init_one(x) for x in leaves], tree)

        def update(i: Any, grads: Any, state: Any) -> Any:
            states, tree = unpack(state)
            leaves, found = tree_util.tree_flatten(grads)
            if found != tree:
                raise located(TypeError, f"the gradients have the structure {found}, the parameters {tree}")
            updated = [update_one(i, g, one) for g, one in zip(leaves, states, strict=True)]
            packed = pack(updated, tree)
            for before, after in zip(state.subtree_defs, packed.subtree_defs, strict=True):
                if before != after:
                    raise located(
                        TypeError, f"the update made a state of the structure {after} from one of {before}"
                    )
            return packed

        def params(state: Any) -> Any:
            states, tree = unpack(state)
            return tree_util.tree_unflatten(tree, [params_one(one) for one in states])

        return Optimizer(init, update, params)

    return make


def pack(states: list[Any], tree: Any) -> Any:
    """The states of the leaves of a tree as an `OptimizerState`."""
    flat = [tree_util.tree_flatten(one) for one in states]
    return OptimizerState(tuple(leaves for leaves, _ in flat), tree, tuple(one for _, one in flat))


def unpack(state: Any) -> tuple[list[Any], Any]:
    """The inverse of `pack`."""
    if not isinstance(state, OptimizerState):
        raise located(TypeError, f"the state of an optimizer is expected, got {shown(state)}")
    parts = zip(state.subtree_defs, state.packed_state, strict=True)
    return [tree_util.tree_unflatten(one, leaves) for one, leaves in parts], state.tree_def


@optimizer
def sgd(step_size: Any):
    """Gradient descent.

    Args:
        step_size: a number, or a function of the number of the step.

    >>> from purax.example_libraries.optimizers import sgd
    >>> init, update, parameters = sgd(0.5)
    >>> parameters(update(0, [1.0], init([2.0])))
    [1.5]
    """
    rate = make_schedule(step_size)
    return lambda x: x, lambda i, g, x: x - rate(i) * g, lambda x: x


@optimizer
def momentum(step_size: Any, mass: float):
    """Gradient descent with momentum: v ← mass · v + g, x ← x − step · v."""
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity

    return _with_zeros(1), update, _first


@optimizer
def nesterov(step_size: Any, mass: float):
    """Gradient descent with Nesterov's momentum: v ← mass · v + g, x ← x − step · (mass · v + g)."""
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * (mass * velocity + g), velocity

    return _with_zeros(1), update, _first


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9):
    """Adagrad (Duchi, Hazan and Singer 2011), with momentum.

    Gradients are divided by the root of the sum of all their squares so far.
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, squares, mean = state
        squares = squares + jnp.square(g)
        scaled = g * jnp.where(squares > 0, 1 / jnp.sqrt(squares), 0.0)
        mean = (1 - momentum) * scaled + momentum * mean
        return x - rate(i) * mean, squares, mean

    return _with_zeros(2), update, _first


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8):
    """RMSProp: gradients are divided by the root of the moving average of their squares."""
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, squares = state
        squares = gamma * squares + (1 - gamma) * jnp.square(g)
        return x - rate(i) * g / jnp.sqrt(squares + eps), squares

    return _with_zeros(1), update, _first


@optimizer
def rmsprop_momentum(step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9):
    """RMSProp with momentum."""
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, squares, velocity = state
        squares = gamma * squares + (1 - gamma) * jnp.square(g)
        velocity = momentum * velocity + rate(i) * g / jnp.sqrt(squares + eps)
        return x - velocity, squares, velocity

    return _with_zeros(2), update, _first


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8):
    """Adam (Kingma and Ba 2014).

    Args:
        step_size: a number, or a function of the number of the step.
        b1: how much of the mean of the gradients is kept.
        b2: how much of the mean of their squares is kept.
        eps: added to the root of the mean of squares.

    >>> from purax.example_libraries.optimizers import adam
    >>> init, update, parameters = adam(0.5)
    >>> round(float(parameters(update(0, 3.0, init(2.0)))), 3)
    1.5
    """
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, mean, squares = state
        mean = (1 - b1) * g + b1 * mean
        squares = (1 - b2) * jnp.square(g) + b2 * squares
        unbiased = mean / (1 - jnp.asarray(b1, mean.dtype) ** (i + 1))
        unbiased_squares = squares / (1 - jnp.asarray(b2, mean.dtype) ** (i + 1))
        return x - rate(i) * unbiased / (jnp.sqrt(unbiased_squares) + eps), mean, squares

    return _with_zeros(2), update, _first


@optimizer
def adamax(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8):
    """AdaMax (Kingma and Ba 2014): Adam with the largest gradient in the place of the mean of squares."""
    rate = make_schedule(step_size)

    def update(i, g, state):
        x, mean, largest = state
        mean = (1 - b1) * g + b1 * mean
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        corrected = rate(i) / (1 - jnp.asarray(b1, mean.dtype) ** (i + 1))
        return x - corrected * mean / (largest + eps), mean, largest

    return _with_zeros(2), update, _first


@optimizer
def sm3(step_size: Any, momentum: float = 0.9):
    """SM3 (Anil, Gupta, Koren and Singer 2019): Adagrad with one accumulator per axis and index."""
    rate = make_schedule(step_size)

    def init(x):
        x = jnp.asarray(x)
        return x, jnp.zeros_like(x), [jnp.zeros(size, x.dtype) for size in x.shape or (1,)]

    def update(i, g, state):
        x, mean, along = state
        others = [tuple(a for a in range(len(along)) if a != axis) for axis in range(len(along))]
        smallest = functools.reduce(jnp.minimum, map(jnp.expand_dims, along, others))
        squares = smallest + jnp.square(jnp.atleast_1d(g))
        along = [jnp.max(squares, axes) for axes in others]
        squares = jnp.reshape(squares, x.shape)
        scaled = g * jnp.where(squares > 0, 1 / jnp.sqrt(squares), 0.0)
        mean = (1 - momentum) * scaled + momentum * mean
        return x - rate(i) * mean, mean, along

    return init, update, _first


def _with_zeros(count: int) -> Callable:
    """The start of a state: an array, and zeros of its shape."""

    def init(x):
        x = jnp.asarray(x)
        return (x, *(jnp.zeros_like(x) for _ in range(count)))

    return init


def _first(state):
    return state[0]


def l2_norm(tree: Any) -> Any:
    """The Euclidean norm of all numbers in a tree.

    >>> from purax.example_libraries.optimizers import l2_norm
    >>> float(l2_norm({"a": 3.0, "b": 4.0}))
    5.0
    """
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_util.tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Gradients scaled down to a norm of at most `max_norm`.

    >>> from purax.example_libraries.optimizers import clip_grads
    >>> [float(x) for x in clip_grads([3.0, 4.0], 2.5)]
    [1.5, 2.0]
    """
    norm = l2_norm(grad_tree)
    return tree_util.tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """Stands where a leaf of the parameters was, and holds its state."""

    def __init__(self, subtree: Any):
        self.subtree = subtree


def unpack_optimizer_state(opt_state: Any) -> Any:
    """A state as a tree of the parameters' structure, with a `JoinPoint` for each parameter.

    >>> from purax.example_libraries.optimizers import momentum, unpack_optimizer_state
    >>> unpack_optimizer_state(momentum(0.1, 0.9).init_fn({"w": 2}))["w"].subtree
    (Array(2, dtype=int32, weak_type=True), Array(0, dtype=int32, weak_type=True))
    """
    states, tree = unpack(opt_state)
    return tree_util.tree_unflatten(tree, [JoinPoint(one) for one in states])


def pack_optimizer_state(marked_pytree: Any) -> Any:
    """The inverse of `unpack_optimizer_state`."""
    points, tree = tree_util.tree_flatten(marked_pytree, is_leaf=lambda x: isinstance(x, JoinPoint))
    if not all(isinstance(point, JoinPoint) for point in points):
        raise TypeError(
            "pack_optimizer_state: every leaf must be a JoinPoint, as unpack_optimizer_state makes them"
        )
    return pack([point.subtree for point in points], tree)
