"""Types that say how arrays lie over meshes with axes of type `Explicit`: a table of programs, compared with jax."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import lax
from purax.errors import ShardingTypeError
from purax.sharding import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    NamedSharding,
    PartitionSpec,
    auto_axes,
    explicit_axes,
    get_abstract_mesh,
    reshard,
    use_abstract_mesh,
)

P = PartitionSpec
ARRAYS = {
    "a": ((8, 16), ("x", "y")),
    "b": ((8, 16), ("x",)),
    "c": ((8, 16), (None, "y")),
    "d": ((16, 8), ("y", "x")),
    "e": ((8, 16), ()),
    "f": ((8, 16), (("x", "y"),)),
    "k": ((4, 2, 16), ("x", None, "y")),
    "m": ((8, 4, 4), ("x",)),
    "n": ((8, 4, 4), ("x", None, "y")),
    "o": ((8, 1, 16), ("x", None, "y")),
    "q": ((16, 8), (None, "y")),
    "s": ((4, 2, 16), ("x", "y")),
    "t": ((4, 2, 16), (None, "y")),
    "v": ((16,), ("y",)),
    "w": ((8,), ("x",)),
    "z": ((8, 8), ("x",)),
}


def mesh_of(module):
    return module.make_mesh((4, 2), ("x", "y"), axis_types=(module.sharding.AxisType.Explicit,) * 2)


def arrays_of(module, mesh=None):
    """The arrays of the table over a mesh; without one, on one device."""
    arrays = {}
    for i, (name, (shape, spec)) in enumerate(ARRAYS.items()):
        value = np.random.RandomState(i).uniform(0.5, 2, shape).astype(np.float32)
        place = None
        if mesh is not None:
            place = module.sharding.NamedSharding(mesh, module.sharding.PartitionSpec(*spec))
        arrays[name] = module.device_put(value, place)
    return arrays


# Of a name the program, a function of the module, its NumPy and the arrays of the table.
PROGRAMS = {
    "arguments": lambda x, np, r: (r.a, r.b, r.e, r.f),
    "with whole axes": lambda x, np, r: r.a + r.b,
    "with others' axes": lambda x, np, r: r.b + r.c,
    "with a number": lambda x, np, r: r.a + 1,
    "with a row": lambda x, np, r: r.a + r.v,
    "with a column": lambda x, np, r: r.a * r.w[:, None],
    "other axes": lambda x, np, r: r.a + r.f,
    "more axes": lambda x, np, r: r.b + r.f,
    "with a transpose": lambda x, np, r: r.b + r.d.T,
    "with a constant": lambda x, np, r: r.a + np.ones((8, 16)),
    "compare": lambda x, np, r: r.a > 1,
    "where": lambda x, np, r: np.where(r.a > 1, r.b, 0.0),
    "maximum": lambda x, np, r: np.maximum(r.b, r.c),
    "clip": lambda x, np, r: np.clip(r.a, 0, 1),
    "astype": lambda x, np, r: r.a.astype("bfloat16"),
    "gelu": lambda x, np, r: x.nn.gelu(r.a),
    "relu": lambda x, np, r: x.nn.relu(r.a),
    "softmax": lambda x, np, r: (x.nn.softmax(r.b), x.nn.softmax(r.a)),
    "sums": lambda x, np, r: (r.a.sum(), r.a.sum(0), r.a.sum(1, keepdims=True), r.a.mean(), r.a.var(0)),
    "extrema": lambda x, np, r: (r.a.max(1), r.a.argmax(1), (r.a > 1).any(), r.a.prod(0)),
    "logsumexp": lambda x, np, r: x.nn.logsumexp(r.a, axis=0),
    "product": lambda x, np, r: r.b @ r.q,
    "product with a whole matrix": lambda x, np, r: (r.b @ r.e.T, r.c @ r.e.T),
    "product, both cut": lambda x, np, r: r.a @ r.d,
    "product of vectors": lambda x, np, r: r.v @ r.v,
    "product, one axis twice": lambda x, np, r: r.b @ r.b.T,
    "products of batches": lambda x, np, r: np.einsum("bij,bjk->bik", r.m, r.n),
    "outer": lambda x, np, r: np.outer(r.w, r.v),
    "einsum to": lambda x, np, r: np.einsum("ij,jk->ik", r.a, r.d, out_sharding=x.P("x")),
    "matmul to": lambda x, np, r: np.matmul(r.a, r.d, out_sharding=x.P("x", None)),
    "dot to": lambda x, np, r: np.dot(r.a, r.d, out_sharding=x.P(None, "y")),
    "tensordot to": lambda x, np, r: np.tensordot(r.a, r.d, 1, out_sharding=x.P()),
    "dot_general to": lambda x, np, r: x.lax.dot_general(
        r.a, r.d, (((1,), (0,)), ((), ())), out_sharding=x.P("y")
    ),
    "reshape: nothing": lambda x, np, r: r.a.reshape(8, 16),
    "reshape: all in one": lambda x, np, r: r.a.reshape(128),
    "reshape: first cut": lambda x, np, r: r.b.reshape(128),
    "reshape: last cut": lambda x, np, r: r.c.reshape(128),
    "reshape: two of one": lambda x, np, r: (r.b.reshape(4, 2, 16), r.b.reshape(8, 4, 4)),
    "reshape: too small": lambda x, np, r: r.b.reshape(2, 4, 16),
    "reshape: the last in two": lambda x, np, r: r.a.reshape(8, 2, 8),
    "reshape: ones": lambda x, np, r: (r.b.reshape(8, 1, 16), r.b.reshape(1, 8, 16), r.o.reshape(8, 16)),
    "reshape: whole ones": lambda x, np, r: r.c.reshape(2, 4, 16),
    "reshape: one of two": lambda x, np, r: (r.k.reshape(8, 16), r.s.reshape(8, 16)),
    "reshape: second cut": lambda x, np, r: r.t.reshape(8, 16),
    "reshape to": lambda x, np, r: np.reshape(r.a, (128,), out_sharding=x.P("x")),
    "reshape method to": lambda x, np, r: r.a.reshape(4, 32, out_sharding=x.P("x")),
    "ravel": lambda x, np, r: (r.b.ravel(), np.ravel(r.a, out_sharding=x.P("y"))),
    "transposes": lambda x, np, r: (r.d.T, r.k.transpose(2, 0, 1), np.swapaxes(r.a, 0, 1)),
    "squeeze, expand": lambda x, np, r: (r.o.squeeze(1), r.a[:, None], r.b[..., None]),
    "broadcast_to": lambda x, np, r: (np.broadcast_to(r.v, (8, 16)), np.broadcast_to(r.b, (3, 8, 16))),
    "broadcast_to to": lambda x, np, r: np.broadcast_to(r.v, (8, 16), out_sharding=x.P("x", "y")),
    "index a cut axis": lambda x, np, r: r.a[0],
    "index a whole axis": lambda x, np, r: (r.b[:, 0], r.b[:, 2:5], r.b[:, ::2], r.b[::-1]),
    "slice a cut axis": lambda x, np, r: r.b[2:5],
    "slice that stays cut": lambda x, np, r: (r.b[:4], r.a[:, :8]),
    "indices along a whole axis": lambda x, np, r: r.b[:, np.array([0, 2])],
    "indices along a cut axis": lambda x, np, r: r.b[np.array([0, 2])],
    "indices, all whole": lambda x, np, r: r.e[np.array([0, 2])],
    "indices to": lambda x, np, r: r.b.at[np.array([0, 2])].get(out_sharding=x.P(None, "x")),
    "set": lambda x, np, r: r.b.at[:, 0].set(r.w),
    "set to": lambda x, np, r: r.b.at[0].set(0.0, out_sharding=x.P("x")),
    "dynamic_slice": lambda x, np, r: x.lax.dynamic_slice(r.b, (0, 1), (8, 2)),
    "dynamic_slice of a cut axis": lambda x, np, r: x.lax.dynamic_slice(r.b, (1, 0), (2, 16)),
    "concatenate": lambda x, np, r: (np.concatenate([r.b, r.b], 0), np.concatenate([r.b, r.b], 1)),
    "stack": lambda x, np, r: np.stack([r.a, r.a]),
    "split": lambda x, np, r: (*np.split(r.b, 2, axis=1), *np.split(r.b, 2, axis=0)),
    "pad": lambda x, np, r: (np.pad(r.b, ((0, 0), (1, 1))), np.pad(r.b, ((2, 2), (0, 0)))),
    "pad a cut axis": lambda x, np, r: np.pad(r.b, ((1, 1), (0, 0))),
    "cumsum": lambda x, np, r: np.cumsum(r.b, 1),
    "cumsum along a cut axis": lambda x, np, r: np.cumsum(r.b, 0),
    "sort": lambda x, np, r: (np.sort(r.b, axis=1), np.argsort(r.b, axis=1), *x.lax.top_k(r.b, 2)),
    "sort along a cut axis": lambda x, np, r: np.sort(r.b, axis=0),
    "fft": lambda x, np, r: np.fft.fft(r.b),
    "roll": lambda x, np, r: np.roll(r.b, 1, axis=1),
    "roll along a cut axis": lambda x, np, r: np.roll(r.b, 1, axis=0),
    "tile, repeat, flip": lambda x, np, r: (np.tile(r.b, (1, 2)), np.repeat(r.b, 2, axis=1), np.flip(r.b, 0)),
    "like": lambda x, np, r: (np.zeros_like(r.a), np.full_like(r.b, 2.0), np.ones_like(r.c)),
    "new": lambda x, np, r: (np.zeros((8, 16)), np.arange(8)),
    "new to": lambda x, np, r: (
        np.zeros((8, 16), out_sharding=x.P("x")),
        np.arange(8, out_sharding=x.P("x")),
        np.full((8,), 2.0, out_sharding=x.P("y")),
        np.ones((4, 4), out_sharding=x.P(None, "y")),
    ),
    "random to": lambda x, np, r: x.random.uniform(x.random.PRNGKey(0), (8, 16), out_sharding=x.P("x")),
    "reshard": lambda x, np, r: (
        x.sharding.reshard(r.a, x.P("y")),
        x.sharding.reshard(r.e, x.P(None, ("x", "y"))),
    ),
    "gradient": lambda x, np, r: x.grad(lambda a: (a * a).sum())(r.a),
    "gradient of a product": lambda x, np, r: x.grad(lambda p, q: (p @ q).sum() ** 2, (0, 1))(r.b, r.q),
    "gradient of a product to": lambda x, np, r: x.grad(
        lambda p, q: (np.matmul(p, q, out_sharding=x.P("x")) ** 2).sum(), (0, 1)
    )(r.a, r.d),
    "gradient of indexing": lambda x, np, r: x.grad(lambda b: (b[:, np.array([0, 2, 2])] ** 2).sum())(r.b),
    "gradient of a reshape": lambda x, np, r: x.grad(lambda b: (b.reshape(128) ** 3).sum())(r.b),
    "gradient of a softmax": lambda x, np, r: x.grad(lambda a: (x.nn.softmax(a) ** 2).sum())(r.a),
    "vmap": lambda x, np, r: (
        x.vmap(lambda row: row * 2)(r.b),
        x.vmap(lambda column: column.sum(), in_axes=1)(r.b),
        x.vmap(lambda row: row[None] + 1)(r.a),
    ),
    "vmap of a product": lambda x, np, r: x.vmap(lambda p, q: p @ q, in_axes=(0, None))(r.b, r.q),
    "vmap of programs": lambda x, np, r: (
        x.vmap(x.jit(lambda row: row * 2))(r.b),
        x.vmap(lambda row: x.lax.scan(lambda c, y: (c + y, c), row[0], row)[0])(r.b),
        x.vmap(lambda row: x.lax.cond(row.sum() > 1, lambda y: y, lambda y: y + 1, row))(r.b),
    ),
    "jit inside": lambda x, np, r: x.jit(lambda a, b: a + b.sum(0))(r.a, r.c),
    "scan": lambda x, np, r: x.lax.scan(lambda c, y: (c + y, c.sum()), r.v, r.c),
    "cond": lambda x, np, r: x.lax.cond(r.e[0, 0] > 0, lambda a: a, lambda a: a * 2, r.a),
    "while_loop": lambda x, np, r: x.lax.while_loop(lambda a: a.sum() < 300, lambda a: a * 2, r.a),
    "checkpoint": lambda x, np, r: x.grad(x.checkpoint(lambda a: np.sin(a).sum()))(r.a),
    "convolution": lambda x, np, r: x.lax.conv(r.m[:, None], np.ones((2, 1, 3, 3)), (1, 1), "SAME"),
    "solve": lambda x, np, r: np.linalg.solve(r.m + 9 * np.eye(4), r.m),
    "one_hot": lambda x, np, r: x.nn.one_hot(r.w.astype(int), 4),
    "tril": lambda x, np, r: np.tril(r.z),
    "norm": lambda x, np, r: np.linalg.norm(r.b),
    "constraint that holds": lambda x, np, r: x.lax.with_sharding_constraint(r.a, x.P("x", "y")),
    "constraint that does not": lambda x, np, r: x.lax.with_sharding_constraint(r.a, x.P("y")),
    "auto_axes": lambda x, np, r: x.sharding.auto_axes(lambda p, q: p @ q, out_sharding=x.P("x"))(r.a, r.d),
    "auto_axes, one": lambda x, np, r: x.sharding.auto_axes(
        lambda p: p.reshape(128), axes="y", out_sharding=x.P(("x", "y"))
    )(r.c),
    "shard_map": lambda x, np, r: x.shard_map(
        lambda a: a * 2, in_specs=x.P("x", "y"), out_specs=x.P("x", "y")
    )(r.a),
}

# Where jax wants to be told, and purax has a layout that costs no more than another.
MORE = {
    "reshape: whole and cut": (lambda x, np, r: r.c.reshape(4, 2, 4, 4), ["float32[4,2,4@y,4]"]),
    "cut indices": (lambda x, np, r: r.e[r.w.astype(int)], ["float32[8@x,16]"]),
    "set at a cut axis": (lambda x, np, r: r.b.at[0].set(0.0), ["float32[8@x,16]"]),
    "update with a whole array": (
        lambda x, np, r: x.lax.dynamic_update_slice(r.b, np.ones((8, 2)), (0, 1)),
        ["float32[8@x,16]"],
    ),
    "concatenate different ones": (lambda x, np, r: np.concatenate([r.b, r.e], 1), ["float32[8@x,32]"]),
    "cholesky": (
        lambda x, np, r: np.linalg.cholesky(r.m @ r.m.transpose(0, 2, 1) + 9 * np.eye(4)),
        ["float32[8@x,4,4]"],
    ),
    "diagonal": (lambda x, np, r: np.diag(r.z), ["float32[8@x]"]),
}


COMPUTED = (
    *(
        "with",
        "sums",
        "product",
        "einsum",
        "matmul to",
        "dot",
        "reshape",
        "index",
        "indices",
        "set",
        "concat",
    ),
    *("new to", "reshard", "gradient", "vmap", "jit", "scan", "cond", "auto_axes", "shard_map", "conv"),
)


class Names:
    """A module, with its `PartitionSpec` as `P`; or the arrays of the table as attributes."""

    def __init__(self, module=None, **attributes):
        self.__dict__.update(attributes)
        self._module = module

    def __getattr__(self, name):
        return getattr(self._module, name)


def types_in(module, numpy, program, arrays):
    """The types of a program's results, or the name of the error."""
    names = Names(module, P=module.sharding.PartitionSpec)
    try:
        closed = module.make_jaxpr(lambda given: program(names, numpy, Names(**given)))(arrays)
    except Exception as error:
        return type(error).__name__
    return [aval.str_short(short_dtypes=False) for aval in closed.out_avals]


@pytest.fixture(scope="module")
def ours():
    mesh = mesh_of(px)
    return mesh, arrays_of(px, mesh)


@pytest.fixture(scope="module")
def theirs():
    mesh = mesh_of(jax)
    return mesh, arrays_of(jax, mesh)


@pytest.mark.parametrize("name", PROGRAMS)
def test_types_are_those_of_jax(name, ours, theirs):
    with px.set_mesh(ours[0]):
        found = types_in(px, jnp, PROGRAMS[name], ours[1])
    with jax.set_mesh(theirs[0]):
        wanted = types_in(jax, jax.numpy, PROGRAMS[name], theirs[1])
    assert found == wanted


@pytest.mark.parametrize("name", MORE)
def test_types_that_jax_does_not_give(name, ours, theirs):
    program, wanted = MORE[name]
    with px.set_mesh(ours[0]):
        assert types_in(px, jnp, program, ours[1]) == wanted
    with jax.set_mesh(theirs[0]):
        assert types_in(jax, jax.numpy, program, theirs[1]) == "ShardingTypeError"


def test_values_and_places(ours):
    """Programs of the table as one: the values are those of one device, and lie where their types say."""
    mesh, arrays = ours
    names = Names(px, P=P)
    rows = {n: p for n, p in PROGRAMS.items() if n.startswith(COMPUTED)} | {
        n: p for n, (p, _) in MORE.items()
    }
    with px.set_mesh(mesh):
        rows = {n: p for n, p in rows.items() if isinstance(types_in(px, jnp, p, arrays), list)}
        run = px.jit(lambda given: {n: p(names, jnp, Names(**given)) for n, p in rows.items()})
        found = run(arrays)
        plain = px.jit(lambda given: {n: p(names, jnp, Names(**given)) for n, p in rows.items()})(
            arrays_of(px)
        )
    assert len(rows) > 45
    for name, results in plain.items():
        for y, wanted in zip(px.tree.leaves(found[name]), px.tree.leaves(results), strict=True):
            np.testing.assert_allclose(
                np.asarray(y, np.float32 if y.dtype == "bfloat16" else None),
                np.asarray(wanted, np.float32 if y.dtype == "bfloat16" else None),
                rtol=2e-5, atol=1e-6, err_msg=name,
            )  # fmt: skip
    for y in px.tree.leaves(found):
        if y.aval.layout is not None:
            assert y.sharding.is_equivalent_to(NamedSharding(mesh, y.aval.layout.spec), y.ndim)
            assert px.typeof(y).sharding.spec == y.aval.layout.spec


def test_eager_operations_have_the_same_types(ours):
    mesh, arrays = ours
    a, b, d = (arrays[name] for name in "abd")
    with px.set_mesh(mesh):
        assert str(px.typeof(a + b)) == "ShapedArray(float32[8@x,16@y])"
        assert px.typeof((a * 2).sum(0)).sharding.spec == P("y")
        product = jnp.matmul(a, d, out_sharding=P("x"))
        gradient = px.grad(lambda a: jnp.matmul(a, d, out_sharding=P("x")).sum())(a)
    assert product.sharding == NamedSharding(mesh, P("x"))
    np.testing.assert_allclose(product, np.asarray(a) @ np.asarray(d), rtol=1e-5)
    assert gradient.sharding == a.sharding and gradient.aval is a.aval
    np.testing.assert_allclose(gradient, np.broadcast_to(np.asarray(d).sum(1), a.shape), rtol=1e-6)


def test_the_compiler_decides_along_auto_axes():
    mesh = px.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    x = px.device_put(np.ones((8, 16), np.float32), NamedSharding(mesh, P("x", "y")))
    assert str(px.typeof(x)) == "ShapedArray(float32[8@x,16])"
    w = px.device_put(np.ones((16, 6), np.float32), NamedSharding(mesh, P("y")))
    y = px.jit(lambda x, w: px.nn.relu(x @ w))(x, w)
    assert str(px.typeof(y)) == "ShapedArray(float32[8@x,6])"
    assert y.sharding.spec[0] == "x"
    np.testing.assert_array_equal(y, np.full((8, 6), 16, np.float32))
    eager = x @ w
    assert eager.sharding.spec[0] == "x" and eager.aval.spec == ("x", None)


def test_in_and_out_shardings_are_types():
    mesh = mesh_of(px)
    rows, columns = (NamedSharding(mesh, P(*spec)) for spec in (("x",), (None, "x")))
    seen = []

    def function(x):
        seen.append(px.typeof(x).str_short())
        return x + 1

    y = px.jit(function, in_shardings=rows, out_shardings=columns)(np.ones((8, 8), np.float32))
    assert seen == ["f32[8@x,8]"]
    assert y.sharding == columns and y.aval.spec == (None, "x")


def test_lowering_needs_shapes_alone():
    mesh = mesh_of(px)
    x = px.ShapeDtypeStruct((8, 4), np.float32, sharding=NamedSharding(mesh, P("x")))
    w = px.ShapeDtypeStruct((4, 6), np.float32, sharding=NamedSharding(mesh, P(None, "y")))
    step = px.jit(lambda x, w: x @ w)
    assert step.trace(x, w).jaxpr.out_avals[0].str_short() == "f32[8@x,6@y]"
    assert step.lower(x, w).compile().collectives() == []


def test_no_communication_that_types_do_not_ask_for(ours, theirs):
    """The step of a network: as many collectives as jax has for the same types."""

    def step(numpy):
        def loss(w, x):
            return numpy.mean(numpy.tanh(x @ w) ** 2)

        return loss

    counts = []
    for module, numpy, (mesh, arrays) in ((px, jnp, ours), (jax, jax.numpy, theirs)):
        with module.set_mesh(mesh):
            compiled = (
                module.jit(module.value_and_grad(step(numpy))).lower(arrays["q"], arrays["b"]).compile()
            )
        counts.append(compiled.as_text().count(" all-reduce("))
    assert counts[0] <= counts[1]


def test_meshes_in_use():
    mesh = mesh_of(px)
    shape = AbstractMesh((4, 2), ("x", "y"), AxisType.Explicit)
    assert mesh.abstract_mesh == shape and get_abstract_mesh().empty
    with px.set_mesh(mesh):
        assert get_abstract_mesh() == shape
        seen = []
        auto_axes(lambda x: (seen.append(get_abstract_mesh().axis_types), x)[1], out_sharding=P())(1.0)
        assert seen == [(AxisType.Auto, AxisType.Auto)]
        assert px.typeof(jnp.ones(3)).sharding.mesh == shape
    device = AbstractDevice("TPU v6 lite", 1, "tpu")
    other = AbstractMesh((2,), ("x",), (AxisType.Explicit,), abstract_device=device)
    with use_abstract_mesh(other):
        assert get_abstract_mesh() is other
        typed = px.ShapeDtypeStruct((4, 3), np.float32, sharding=NamedSharding(other, P("x")))
        assert px.jit(jnp.sin).trace(typed).jaxpr.out_avals[0].str_short() == "f32[4@x,3]"
        lowered = px.jit(lambda x: jnp.sin(x) * 2).lower(typed)
    assert other.abstract_device.platform == "tpu"
    text = lowered.as_text()
    assert 'sdy.mesh @mesh = <["x"=2]>' in text and '<@mesh, [{"x"}, {}]>' in text
    with pytest.raises(ValueError, match="without devices"):
        lowered.compile()


def test_shard_map_takes_layouts_from_types(ours):
    mesh, arrays = ours
    with px.set_mesh(mesh):
        y = px.shard_map(lambda a: a * px.lax.axis_index("x"), out_specs=P("x", "y"))(arrays["a"])
        np.testing.assert_array_equal(
            y, np.asarray(arrays["a"]) * np.repeat(np.arange(4, dtype=np.float32), 2)[:, None]
        )
        with pytest.raises(TypeError, match="needs in_specs"):
            px.shard_map(lambda a: a, out_specs=P())(jnp.ones(8))


def test_explicit_axes():
    mesh = px.make_mesh((4, 2), ("x", "y"))
    seen = []

    def inner(x, y):
        seen.append((px.typeof(x * 2).str_short(), px.typeof(x + y).str_short()))
        return x + y

    with px.set_mesh(mesh):
        z = px.jit(explicit_axes(inner, in_sharding=(P("x"), P(None, "y"))))(
            jnp.ones((8, 2)), jnp.ones((8, 2))
        )
    assert seen == [("f32[8@x,2]", "f32[8@x,2@y]")]
    assert z.aval.layout is None
    np.testing.assert_array_equal(z, np.full((8, 2), 2, np.float32))


MESSAGES = {
    "elementwise": (lambda r: r.a + r.f, ["f32[8@x,16@y]", "f32[8@(x,y),16]", "lie differently"]),
    "product": (
        lambda r: r.a @ r.d,
        ["f32[8@x,16@y]", "f32[16@y,8@x]", "sums along axis 1", "out_sharding="],
    ),
    "twice": (lambda r: r.b @ r.b.T, ["f32[8@x,8@x]", "twice"]),
    "reshape": (lambda r: r.c.reshape(128), ["f32[8,16@y]", "(128,)", "reshard"]),
    "index": (lambda r: r.a[0], ["slice", "f32[8@x,16@y]", "4 equal parts along 'x'"]),
    "no rule": (
        lambda r: lax.reduce_window(r.b, 0.0, lax.add, (1, 2), (1, 1), "VALID"),
        ["reduce_window", "f32[8@x,16]", "auto_axes"],
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.parametrize("compiled", [False, True])
def test_errors_name_operands_line_and_way_out(name, compiled, ours):
    program, parts = MESSAGES[name]
    function = lambda given: program(Names(**given))  # noqa: E731
    with pytest.raises(ShardingTypeError) as caught:
        (px.jit(function) if compiled else function)(ours[1])
    for part in (*parts, "test_explicit.py", "reshard"):
        assert part in str(caught.value)


def test_constraints_of_other_layouts_are_refused(ours):
    with px.set_mesh(ours[0]), pytest.raises(AssertionError, match=r"f32\[8@x,16@y\][^$]*reshard"):
        lax.with_sharding_constraint(ours[1]["a"], P("y"))


def test_axes_functions_need_a_sharding(ours):
    with px.set_mesh(ours[0]):
        with pytest.raises(TypeError, match="out_sharding"):
            auto_axes(jnp.sin)(ours[1]["a"])
        with pytest.raises(TypeError, match="in_sharding"):
            explicit_axes(jnp.sin)(ours[1]["a"])
        with pytest.raises(ValueError, match="does not have"):
            reshard(ours[1]["a"], P("no"))
