"""`pmap`, against jax's and against `vmap`, on eight devices."""

from __future__ import annotations

import jax
import jax.numpy
import numpy as np
import pytest

import purax as px
import purax.numpy as jnp

X = np.sin(np.arange(24, dtype=np.float32)).reshape(8, 3)


def step(p, n):
    """One step of data-parallel training, in library p with numpy n."""

    def one(w, x, y):
        loss, gradient = p.value_and_grad(lambda w: ((x @ w - y) ** 2).mean())(w)
        return w - 0.1 * p.lax.pmean(gradient, "d"), p.lax.pmean(loss, "d")

    return p.pmap(one, axis_name="d")


PROGRAMS = {
    "elementwise": lambda p, n: p.pmap(lambda x: x**2)(X),
    "psum": lambda p, n: p.pmap(lambda x: x / p.lax.psum(x, "i"), axis_name="i")(X),
    "an argument for all": lambda p, n: p.pmap(n.dot, in_axes=(0, None))(X, np.arange(3, dtype=np.float32)),
    "another axis": lambda p, n: p.pmap(lambda x: x * 2, in_axes=1, out_axes=1)(X.T),
    "static arguments": lambda p, n: p.pmap(lambda x, k: x * k, static_broadcasted_argnums=1)(X, 3),
    "trees": lambda p, n: p.pmap(lambda d: {"s": d["a"] + d["b"]})({"a": X, "b": X})["s"],
    "keywords": lambda p, n: p.pmap(lambda x, y: x + y)(X, y=X),
    "fewer devices": lambda p, n: p.pmap(lambda x: x * 2)(X[:3]),
    "chosen devices": lambda p, n: p.pmap(lambda x: x * 2, devices=p.devices()[4:])(X[:4]),
    "a result that all agree on": lambda p, n: p.pmap(
        lambda x: p.lax.psum(x, "i"), axis_name="i", out_axes=None
    )(X),
    "grad": lambda p, n: p.grad(lambda x: p.pmap(n.sin)(x).sum())(X),
    "grad inside of a sum": lambda p, n: p.pmap(
        p.grad(lambda x: p.lax.psum((x**2).sum(), "i")), axis_name="i"
    )(X),
    "vmap of pmap": lambda p, n: p.vmap(p.pmap(lambda x: x * 2))(np.stack([X, X])),
    "pmap of vmap": lambda p, n: p.pmap(p.vmap(lambda x: x * 2))(np.stack([X, X], 1)),
    "jit of pmap": lambda p, n: p.jit(p.pmap(lambda x: x * 2))(X),
    "all_gather": lambda p, n: p.pmap(lambda x: p.lax.all_gather(x, "i"), axis_name="i")(X),
    "random": lambda p, n: p.pmap(lambda key: p.random.uniform(key, (3,)))(
        p.random.split(p.random.PRNGKey(0), 8)
    ),
    "training": lambda p, n: step(p, n)(np.zeros((8, 3), np.float32), X[:, None, :], X.sum(1, keepdims=True))[
        0
    ],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_agrees_with_jax(name):
    with jax.threefry_partitionable(False):
        own, theirs = (np.asarray(PROGRAMS[name](*pair)) for pair in ((px, jnp), (jax, jax.numpy)))
    assert own.shape == theirs.shape and own.dtype == theirs.dtype
    np.testing.assert_allclose(own, theirs, rtol=1e-5, atol=1e-6)


def test_results_lie_over_the_devices():
    result = px.pmap(lambda x: x * 2)(X)
    assert result.devices() == set(px.devices())
    assert [shard.data.shape for shard in result.addressable_shards] == [(1, 3)] * 8


def test_axis_size_without_mapped_arguments():
    number = lambda x: x * (1 + px.lax.axis_index("i"))  # noqa: E731
    options = {"axis_name": "i", "in_axes": None, "axis_size": 8}
    np.testing.assert_array_equal(px.pmap(number, **options)(X[0]), px.vmap(number, **options)(X[0]))


def test_is_traced_once():
    traces = []

    def function(x):
        traces.append(1)
        return x * 2

    mapped = px.pmap(function)
    y = mapped(X)
    for _ in range(3):
        y = mapped(y)
    assert len(traces) == 1
    np.testing.assert_allclose(y, X * 16)


BAD = {
    "too many": (
        lambda: px.pmap(lambda x: x)(np.ones(9)),
        "size 9, but there are 8 devices.*num_cpu_devices",
    ),
    "sizes": (
        lambda: px.pmap(lambda x, y: x)(np.ones(8), np.ones(4)),
        "pmap got inconsistent sizes",
    ),
    "scalars": (
        lambda: px.pmap(lambda x: x)(3.0),
        "pmap was requested to map its argument along axis 0, .* argument x of `<lambda>`",
    ),
    "in_axes": (lambda: px.pmap(lambda x: x, in_axes=(0, 0))(X), "has 2 entries"),
    "devices": (
        lambda: px.pmap(lambda x: x, devices=px.devices()[:4])(X),
        "but there are 4 devices in `devices`",
    ),
    "axes": (lambda: px.pmap(lambda x: x, in_axes="x")(X), "pmap in_axes must consist of ints and None"),
    "no axis": (lambda: px.pmap(lambda x: x, in_axes=None)(X), "pmap must have at least one non-None value in in_axes"),
    "result": (lambda: px.pmap(lambda x: x, out_axes=3)(X), "out_axes has 3 for a result of shape"),
    "no array": (lambda: px.pmap(lambda x, y: x)(X, "s"), "argument y of `<lambda>`.*static_broadcasted"),
    "vmap in a name": (
        lambda: px.pmap(vmapped)(np.ones(8), np.ones(4)),
        "pmap got inconsistent sizes .* `vmapped`",
    ),
}


def vmapped(x, y):
    return x + y


@pytest.mark.parametrize("name", BAD)
def test_says_what_is_wrong(name):
    program, message = BAD[name]
    with pytest.raises((TypeError, ValueError), match=message):
        program()
