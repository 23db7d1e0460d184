"""Objects that can be called stay themselves in rewritten functions: only what calls them sees them rewritten."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import lax


class Layer:
    """A plain object that can be called, with a Python branch."""

    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        if x > 0:
            return x * self.k
        return x

    def other(self, x):
        return x + self.k


@px.tree_util.register_pytree_node_class
class Model(Layer):
    """The same as a tree, as modules of libraries are."""

    def tree_flatten(self):
        return (self.k,), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


def bound_in_partials(layer, x):
    def run(f, layer, x, *, named):
        return f(x) + layer.k + layer.other(x) + named.k

    g = functools.partial(run, functools.partial(type(layer).__call__, layer), layer, named=layer)
    return px.named_call(g, name="g")(x)


def asked_about(layer, x):
    kind = type(layer)
    assert (
        isinstance(layer, Layer) and isinstance(layer, kind) and callable(layer) and hasattr(layer, "other")
    )
    assert max([layer, kind(0.0)], key=lambda each: each.k).k is layer.k
    assert next(filter(None, [layer])) is layer and vars(layer)["k"] is getattr(layer, "k")  # noqa: B009
    return sum(map(layer, [x, x])) + functools.reduce(lambda a, b: type(a)(a.k + b.k), [layer, layer]).k


def called_by_purax(layer, x):
    return px.jit(layer)(x) + px.grad(layer)(x) + jnp.sum(px.vmap(layer)(x * jnp.ones(2)))


def called_by_loops(layer, x):
    def step(carry, _):
        return layer(carry), None

    return (
        lax.scan(step, x, None, length=2)[0]
        + lax.cond(True, layer, lambda y: y, x)
        + lax.map(layer, x[None])[0]
    )


@pytest.mark.parametrize("use", [bound_in_partials, asked_about, called_by_purax, called_by_loops])
@pytest.mark.parametrize("kind", [Layer, Model])
@pytest.mark.parametrize("x", [1.5, -2.0])
def test_an_object_is_the_same_object(use, kind, x):
    def f(x):
        if x > 100:  # so that the function is rewritten
            x = x + 1
        return use(kind(3.0), x)

    x = jnp.float32(x)
    np.testing.assert_allclose(px.jit(f)(x), f(x), rtol=1e-6)


def test_a_model_given_to_functions_of_trees_stays_a_tree():
    def f(model, x):
        if x > 0:
            x = x + 1
        doubled = px.tree.map(lambda leaf: leaf * 2, model)
        assert isinstance(doubled, Model) and len(px.tree.leaves(model)) == 1
        return doubled(x) + lax.stop_gradient(model).k + px.device_put(model).k

    assert px.jit(f)(Model(3.0), 1.0) == f(Model(3.0), 1.0) == 18.0
    gradient = px.jit(px.grad(f))(Model(3.0), 1.0)
    assert isinstance(gradient, Model) and gradient.k == 5.0
