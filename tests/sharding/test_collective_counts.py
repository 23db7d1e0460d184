"""The compiled programs of purax communicate no more than those that jax makes of the same source, on eight devices."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import purax as px
import purax.numpy as pnp
from purax.xla.collective_report import Collective, collectives_of

SHAPE = (4, 2)


def layout(module, *spec):
    mesh = module.make_mesh(SHAPE, ("data", "model"), **AUTO[module])
    return module.sharding.NamedSharding(mesh, module.sharding.PartitionSpec(*spec))


AUTO = {px: {}, jax: {"axis_types": (jax.sharding.AxisType.Auto,) * 2}}


def put(module, shape, *spec):
    return module.device_put(np.ones(shape, np.float32), layout(module, *spec))


def perceptron(module, numpy):
    """Data-parallel in rows of `x`, tensor-parallel in the hidden layer."""
    parameters = {"up": put(module, (8, 16), None, "model"), "down": put(module, (16, 4), "model")}
    x, y = put(module, (32, 8), "data"), put(module, (32, 4), "data")

    def loss(parameters, x, y):
        return numpy.mean((numpy.tanh(x @ parameters["up"]) @ parameters["down"] - y) ** 2)

    def step(parameters, x, y):
        value, gradient = module.value_and_grad(loss)(parameters, x, y)
        return module.tree.map(lambda p, g: p - 0.1 * g, parameters, gradient), value

    return step, (parameters, x, y)


def attention(module, numpy):
    """Heads over `model`, examples over `data`."""
    x, w = put(module, (4, 8, 16), "data"), put(module, (16, 3, 4, 4), None, None, "model")
    out = put(module, (4, 4, 16), "model")

    def apply(x, w, out):
        q, k, v = numpy.moveaxis(numpy.einsum("btd,dchn->btchn", x, w), 2, 0)
        weights = module.nn.softmax(numpy.einsum("bqhn,bkhn->bhqk", q, k))
        return numpy.einsum("bhqk,bkhn,hnd->bqd", weights, v, out)

    return module.grad(lambda *args: numpy.sum(apply(*args) ** 2), (0, 1, 2)), (x, w, out)


def mapped(function, in_spec, out_spec):
    """A row with a `shard_map` over both axes of the mesh."""

    def build(module, numpy):
        spec = module.sharding.PartitionSpec
        mesh = layout(module).mesh
        both = module.shard_map(
            lambda x: function(module.lax, x), mesh=mesh, in_specs=spec(*in_spec), out_specs=spec(*out_spec)
        )
        return both, (put(module, (8, 8), *in_spec),)

    return build


def gradient_of_mapped(module, numpy):
    mesh, spec = layout(module).mesh, module.sharding.PartitionSpec

    def loss(w, x):
        return module.lax.pmean(numpy.mean(numpy.tanh(x @ w) ** 2), ("data", "model"))

    total = module.shard_map(loss, mesh=mesh, in_specs=(spec(), spec(("data", "model"))), out_specs=spec())
    return module.grad(total), (put(module, (8, 8)), put(module, (16, 8), ("data", "model")))


def constrained(module, numpy):
    def f(x):
        y = module.lax.with_sharding_constraint(x * 2, layout(module, None, "data"))
        return numpy.sin(y).sum(0)

    return f, (put(module, (8, 8), "data"),)


def looped(module, numpy):
    x, w = put(module, (8, 16), "data"), put(module, (16, 16), None, "model")

    def f(x, w):
        return module.lax.scan(lambda c, _: (numpy.tanh(c @ w), None), x, None, length=3)[0]

    return f, (x, w)


def simple(function, *arguments):
    """A row of a function of arrays that are given as shape and spec."""
    return lambda module, numpy: (
        lambda *xs: function(numpy, *xs),
        tuple(put(module, shape, *spec) for shape, *spec in arguments),
    )


ROWS = {
    "elementwise": simple(lambda numpy, x: numpy.sin(x) + 1, ((8, 8), "data", "model")),
    "sum": simple(lambda numpy, x: x.sum(), ((8, 8), "data", "model")),
    "sum of the axis that is whole": simple(lambda numpy, x: x.sum(1), ((8, 8), "data")),
    "softmax over the axis that is cut": simple(
        lambda numpy, x: numpy.exp(x - x.max(0)) / numpy.exp(x - x.max(0)).sum(0), ((8, 8), "data")
    ),
    "matmul, rows by columns": simple(lambda numpy, x, y: x @ y, ((8, 8), "data"), ((8, 8), None, "model")),
    "matmul, contracted": simple(lambda numpy, x, y: x @ y, ((8, 8), None, "data"), ((8, 8), "data")),
    "transpose and add": simple(lambda numpy, x: x + x.T, ((8, 8), "data", "model")),
    "mean and variance": simple(
        lambda numpy, x: (x - x.mean(1, keepdims=True)) / numpy.sqrt(x.var(1, keepdims=True) + 1),
        ((8, 8), "data", "model"),
    ),
    "cumulative sum": simple(lambda numpy, x: numpy.cumsum(x, 1), ((8, 8), "data")),
    "concatenate": simple(
        lambda numpy, x, y: numpy.concatenate([x, y], 1), ((8, 8), "data"), ((8, 8), "data")
    ),
    "perceptron step": perceptron,
    "gradient of attention": attention,
    "scan of a layer": looped,
    "constraint": constrained,
    "psum": mapped(lambda lax, x: lax.psum(x, "data"), ("data", "model"), (None, "model")),
    "all_gather": mapped(
        lambda lax, x: lax.all_gather(x, "data", tiled=True), ("data", "model"), ("data", "model")
    ),
    "psum_scatter": mapped(
        lambda lax, x: lax.psum_scatter(x, "data", tiled=True), (None, "model"), ("data", "model")
    ),
    "all_to_all": mapped(
        lambda lax, x: lax.all_to_all(x, "data", 1, 0, tiled=True), ("data", None), (None, "data")
    ),
    "ppermute": mapped(
        lambda lax, x: lax.ppermute(x, "data", [(i, (i + 1) % 4) for i in range(4)]), ("data",), ("data",)
    ),
    "gradient of shard_map": gradient_of_mapped,
}


def found(module, numpy, build):
    function, arguments = build(module, numpy)
    text = module.jit(function).lower(*arguments).compile().as_text()
    return collectives_of(text)


@pytest.mark.parametrize("name", ROWS)
def test_no_more_than_jax(name):
    ours, theirs = found(px, pnp, ROWS[name]), found(jax, jnp, ROWS[name])
    assert sum(c.times for c in ours) <= sum(c.times for c in theirs), (ours, theirs)
    assert sum(c.sent for c in ours) <= sum(c.sent for c in theirs), (ours, theirs)


def test_the_table_communicates():
    """Most programs of the table do: an empty list would compare nothing."""
    kinds = Counter(c.kind for name in ("psum", "all_gather", "psum_scatter", "all_to_all", "ppermute")
                    for c in found(px, pnp, ROWS[name]))  # fmt: skip
    assert set(kinds) >= {"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"}


def test_counts_bytes_and_turns():
    (one,) = found(px, pnp, ROWS["psum"])
    assert one == Collective("all-reduce", 2 * 4 * 4, 4, 1) and one.sent == 48
    assert {c.times for c in found(px, pnp, ROWS["scan of a layer"])} == {3}


def test_other_ways_to_write_groups():
    text = """HloModule m, num_partitions=8
%body (p: f32[2]) -> f32[2] {
  %g = (f32[2]{0}, f32[8]{0}) all-gather-start(%p), replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={0}
  %h = f32[8]{0} all-gather-done(%g)
}
ENTRY %main (x: bf16[4]) -> f32[2] {
  %w = f32[2]{0} while(%x), condition=%c, body=%body, backend_config={"known_trip_count":{"n":"7"}}
  %r = (bf16[4]{0}, pred[3]{0}) all-reduce(%x, %y), replica_groups=[2,4]<=[8], to_apply=%add
  %s = s4[4]{0} reduce-scatter(%x), replica_groups=mesh['a'=4,'b'=2] {'a':(1)2,'b'}, to_apply=%add
  ROOT %t = f32[2]{0} collective-permute(%w), source_target_pairs={{0,1}}
}"""
    assert collectives_of(text) == [
        Collective("all-gather", 32, 4, 7),
        Collective("all-reduce", 11, 4, 1),
        Collective("reduce-scatter", 8, 4, 1),
        Collective("collective-permute", 8, 8, 1),
    ]


def test_a_costly_function_of_uneven_rows_sends_nothing():
    """On one device such an array is computed as one row; here each device has a block of it."""
    x = put(px, (16_004, 6), "data", "model")
    compiled = px.jit(px.lax.erf_inv).lower(0.5 * x).compile()
    assert compiled.collectives() == []
    np.testing.assert_allclose(compiled(0.5 * x), np.full((16_004, 6), 0.47693628, np.float32), rtol=1e-6)
