"""A program that type checkers find nothing wrong with (`tests/test_types.py`)."""

from functools import partial
from typing import assert_type

import numpy as np

import purax as px
import purax.numpy as jnp
from purax import grad, jit, lax, random, vmap
from purax.nn import relu, softmax
from purax.sharding import NamedSharding
from purax.sharding import PartitionSpec as P
from purax.tree_util import tree_map

Params = list[tuple[px.Array, px.Array]]


def init(key: px.Array, sizes: list[int]) -> Params:
    keys = random.split(key, len(sizes))
    pairs = zip(keys, sizes[:-1], sizes[1:], strict=False)
    return [(random.normal(k, (m, n)) * 0.1, jnp.zeros(n)) for k, m, n in pairs]


def predict(params: Params, x: px.Array) -> px.Array:
    for w, b in params[:-1]:
        x = relu(x @ w + b)
    w, b = params[-1]
    return softmax(x @ w + b)


def loss(params: Params, x: px.Array, y: px.Array) -> px.Array:
    return -jnp.mean(jnp.sum(jnp.log(predict(params, x)) * y, axis=-1))


@jit
def step(params: Params, x: px.Array, y: px.Array) -> Params:
    """Keeps its signature, and has the stages of compilation as methods."""
    moved: Params = tree_map(lambda p, d: p - 0.1 * d, params, grad(loss)(params, x, y))
    return moved


@partial(jit, static_argnums=1)
def power(x: px.Array, n: int) -> px.Array:
    return x**n


def body(carry: px.Array, _: None) -> tuple[px.Array, px.Array]:
    return carry + 1, carry.sum()


params = init(random.key(0), [4, 8, 3])
x = jnp.ones((5, 4))
y = jnp.eye(3)[jnp.array([0, 1, 2, 0, 1])]
assert_type(step(params, x, y), Params)
text: str = step.lower(params, x, y).as_text()
value: float = float(loss(params, x, y))
assert_type(x.at[0].set(1.0).reshape(-1)[::2], px.Array)
assert_type(x.T @ x - 2 * x.mean(axis=0, keepdims=True), px.Array)
assert_type((x > 0) & (x != 1), px.Array)
assert_type(x.shape, tuple[int, ...])
assert_type([row for row in x], list[px.Array])
assert_type(jnp.linalg.norm(x, axis=1).max(), px.Array)
assert_type(jnp.where(x > 0, x, -x), px.Array)
on_host = np.asarray(x)
last, sums = lax.scan(body, jnp.zeros(3), None, length=4)
squares = vmap(lambda a: jnp.dot(a, a))(x)
with px.debug_nans(True), px.named_scope("layer"):
    placed = px.device_put(x, NamedSharding(px.make_mesh((1,), ("rows",)), P("rows")))
