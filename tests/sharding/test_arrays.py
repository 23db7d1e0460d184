"""Arrays over meshes: layouts, operations that follow their data, `jit` with shardings, and bad input."""

from __future__ import annotations

import pickle

import jax
import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec
from purax.sharding.shardings import from_hlo

pytestmark = pytest.mark.sampled(2)

P = PartitionSpec
A = np.arange(32, dtype=np.float32).reshape(8, 4)
SPECS = [
    (),
    ("x",),
    ("y",),
    (None, "x"),
    ("x", "y"),
    ("y", "x"),
    (("x", "y"),),
    (("y", "x"), None),
    (None, ("y",)),
]


@pytest.fixture(scope="module")
def mesh():
    return px.make_mesh((4, 2), ("x", "y"))


@pytest.fixture(scope="module")
def jax_mesh():
    return jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))


@pytest.mark.parametrize("spec", SPECS)
def test_layouts_are_those_of_jax(spec, mesh, jax_mesh):
    own = NamedSharding(mesh, P(*spec))
    theirs = jax.sharding.NamedSharding(jax_mesh, jax.sharding.PartitionSpec(*spec))
    assert own.shard_shape((8, 8)) == theirs.shard_shape((8, 8))
    assert own.is_fully_replicated == theirs.is_fully_replicated
    indices = lambda s: {d.id: i for d, i in s.devices_indices_map((8, 8)).items()}  # noqa: E731
    filled = lambda i: tuple(s.indices(8) for s in i)  # noqa: E731
    assert {d: filled(i) for d, i in indices(own).items()} == {
        d: filled(i) for d, i in indices(theirs).items()
    }
    assert from_hlo(mesh, own._to_xla_hlo_sharding(2), 2).is_equivalent_to(own, 2)
    assert pickle.loads(pickle.dumps(own)) == own


@pytest.mark.parametrize("spec", SPECS)
def test_values_and_shards(spec, mesh):
    x = px.device_put(A, NamedSharding(mesh, P(*spec)))
    np.testing.assert_array_equal(x, A)
    assert len(x.addressable_shards) == 8 and x.is_fully_addressable
    for shard in x.addressable_shards:
        np.testing.assert_array_equal(shard.data, A[shard.index])
        assert shard.data.devices() == {shard.device}
    parts = {str(shard.index) for shard in x.addressable_shards}
    assert sum(shard.replica_id == 0 for shard in x.addressable_shards) == len(parts)


@pytest.mark.parametrize("start", SPECS)
@pytest.mark.parametrize("end", [(), ("y",), (None, "x"), (("y", "x"),)])
def test_resharding_keeps_values(start, end, mesh):
    x = px.device_put(A, NamedSharding(mesh, P(*start)))
    wanted = NamedSharding(mesh, P(*end))
    for moved in (px.device_put(x, wanted), px.jit(lambda x: px.lax.with_sharding_constraint(x, wanted))(x)):
        assert moved.sharding.is_equivalent_to(wanted, 2)
        np.testing.assert_array_equal(moved, A)
    home = px.device_put(x, px.devices()[0])
    np.testing.assert_array_equal(home, A)


OPERATIONS = {
    "arithmetic": lambda x: x * 2 + x,
    "functions": lambda x: jnp.sin(x) + jnp.where(x > 3, x, 0.0),
    "products": lambda x: x @ x.T,
    "sums": lambda x: x.sum(0) + jnp.mean(x),
    "indexing": lambda x: x[0] + x[1:3].sum(0) + x[jnp.array([2, 5])].sum(0),
    "updates": lambda x: x.at[2].set(7.0),
    "sorting": lambda x: jnp.sort(-x, axis=0),
    "joining": lambda x: jnp.concatenate([x, x[::-1]]),
    "loops": lambda x: px.lax.scan(lambda c, r: (c + r.sum(), r * 2), 0.0, x)[1],
    "branches": lambda x: px.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x),
    "vmap": lambda x: px.vmap(lambda r: r / r.sum())(x + 1),
    "grad": px.grad(lambda x: (jnp.tanh(x @ x.T) ** 2).mean()),
    "einsum": lambda x: jnp.einsum("ij,kj->ik", x, x),
    "cholesky": lambda x: jnp.linalg.cholesky(x.T @ x + 100 * jnp.eye(4)),
    "random": lambda x: x + px.random.normal(px.random.key(0), x.shape),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("spec", [("x", "y"), (("x", "y"),)])
def test_operations_follow_their_data(name, spec, mesh):
    x = px.device_put(A / 7, NamedSharding(mesh, P(*spec)))
    for function in (OPERATIONS[name], px.jit(OPERATIONS[name])):
        found = function(x)
        assert found.devices() == set(px.devices())
        np.testing.assert_allclose(found, OPERATIONS[name](jnp.asarray(A / 7)), rtol=2e-5, atol=1e-5)


def test_keys_lie_over_meshes_too(mesh):
    keys = px.random.split(px.random.key(0), 8)
    spread = px.device_put(keys, NamedSharding(mesh, P("x")))
    draw = px.jit(px.vmap(lambda key: px.random.normal(key, (3,))))
    np.testing.assert_allclose(draw(spread), draw(keys), rtol=2e-7)  # another program, rounded in another way
    assert draw(spread).devices() == set(px.devices())


def test_jit_with_shardings(mesh):
    rows, columns, tiles = (NamedSharding(mesh, P(*spec)) for spec in (("x",), (None, "y"), ("x", "y")))
    product = px.jit(jnp.matmul, in_shardings=(rows, columns), out_shardings=tiles)
    found = product(A, A.T)
    assert found.sharding == tiles
    np.testing.assert_allclose(found, A @ A.T, rtol=1e-6)
    assert product(px.device_put(A, rows), A.T).sharding == tiles
    with pytest.raises(ValueError, match="in_shardings want"):
        product(px.device_put(A, tiles), A.T)
    assert px.jit(lambda a: product(a, a.T) + 1)(A).shape == (8, 8)
    with mesh:
        assert px.jit(lambda a: a * 2, in_shardings=P("x"), out_shardings=P(None, "y"))(A).sharding.spec == P(
            None, "y"
        )
    with pytest.raises(ValueError, match="needs a mesh"):
        px.jit(lambda a: a * 2, in_shardings=P("x"))(A)


def test_donation_over_a_mesh(mesh):
    x = px.device_put(A, NamedSharding(mesh, P("x")))
    y = px.jit(lambda x: x + 1, donate_argnums=0)(x)
    np.testing.assert_array_equal(y, A + 1)
    assert x.is_deleted()


def test_a_program_is_compiled_once_per_layout(mesh):
    f = px.jit(lambda x: x * 3 + 1)
    rows = NamedSharding(mesh, P("x"))
    from purax.xla import compiler

    f(px.device_put(A, rows))
    before = compiler.stats.compiles
    for _ in range(3):
        f(px.device_put(A, NamedSharding(px.make_mesh((4, 2), ("x", "y")), P("x", None))))
    assert compiler.stats.compiles == before


def test_many_programs_that_communicate_in_a_row(mesh):
    x = px.device_put(A, NamedSharding(mesh, P("x", "y")))
    f, g = px.jit(lambda x: x @ x.T), px.jit(lambda x: x.sum())
    for _ in range(100):
        product, total, _ = f(x), g(x), f(x)
    assert float(total) == A.sum() and float(product[0, 0]) == 14


def test_arrays_from_parts(mesh):
    sharding = NamedSharding(mesh, P("x", "y"))
    made = px.make_array_from_callback((8, 4), sharding, lambda index: A[index])
    np.testing.assert_array_equal(made, A)
    parts = [shard.data for shard in made.addressable_shards]
    again = px.make_array_from_single_device_arrays((8, 4), sharding, parts[::-1])
    np.testing.assert_array_equal(again, A)
    np.testing.assert_array_equal(px.make_array_from_process_local_data(sharding, A), A)
    with pytest.raises(ValueError, match="returned a part of shape"):
        px.make_array_from_callback((8, 4), sharding, lambda index: A)
    with pytest.raises(ValueError, match="there is none on"):
        px.make_array_from_single_device_arrays((8, 4), sharding, parts[:7])


def test_meshes():
    mesh = px.make_mesh((2, 4), ("a", "b"))
    assert mesh == Mesh(np.array(px.devices()).reshape(2, 4), ("a", "b"))
    assert mesh != px.make_mesh((4, 2), ("a", "b")) and hash(mesh) == hash(pickle.loads(pickle.dumps(mesh)))
    assert dict(mesh.shape) == {"a": 2, "b": 4} and mesh.size == 8 and not mesh.empty
    assert mesh.abstract_mesh == AbstractMesh((2, 4), ("a", "b"))
    assert mesh.axis_types == (AxisType.Auto, AxisType.Auto)
    with px.sharding.use_mesh(mesh):
        assert px.sharding.get_mesh() == mesh
    assert px.sharding.get_mesh().empty


BAD = {
    "too many devices": (
        lambda: px.make_mesh((16,), ("x",)),
        ValueError,
        "needs 16 devices, there are 8.*num_cpu_devices",
    ),
    "names": (lambda: Mesh(px.devices(), ("x", "y")), ValueError, "needs as many names"),
    "a device twice": (lambda: Mesh([px.devices()[0]] * 2, ("x",)), ValueError, "twice"),
    "no devices": (lambda: Mesh([1, 2], ("x",)), TypeError, "made of devices"),
    "an axis that does not divide": (
        lambda: px.device_put(np.ones(6), NamedSharding(px.make_mesh((4,), ("x",)), P("x"))),
        ValueError,
        "axis 0 of an array of shape .6,. has size 6, which does not divide into 4 equal parts along mesh axis 'x'",
    ),
    "too few axes": (
        lambda: px.device_put(np.ones(8), NamedSharding(px.make_mesh((4,), ("x",)), P(None, "x"))),
        ValueError,
        "has only 1 axes",
    ),
    "different devices": (
        lambda: (
            px.device_put(np.ones(8), NamedSharding(px.make_mesh((8,), ("x",)), P("x")))
            + px.device_put(np.ones(8), px.devices()[1])
        ),
        ValueError,
        "committed to",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_says_what_is_wrong(name):
    program, kind, message = BAD[name]
    with pytest.raises(kind, match=message):
        program()


def test_a_mesh_of_one_device():
    sharding = NamedSharding(Mesh(px.devices()[:1], ("x",)), P("x"))
    x = px.device_put(A, sharding)
    assert (x + 1).sharding == sharding or (x + 1).sharding.is_equivalent_to(sharding, 2)
    np.testing.assert_array_equal(
        px.jit(lambda x: px.lax.with_sharding_constraint(x * 2, sharding))(x), A * 2
    )
    np.testing.assert_array_equal(px.pmap(lambda x: px.lax.psum(x, "i"), axis_name="i")(A[:1]), A[:1])


MADE_LIKE = {
    "zeros_like": lambda n, x: n.zeros_like(x),
    "ones_like": lambda n, x: n.ones_like(x),
    "empty_like": lambda n, x: n.empty_like(x),
    "full_like": lambda n, x: n.full_like(x, 2),
    "of another dtype": lambda n, x: n.zeros_like(x, dtype=int),
    "empty slice": lambda n, x: x[0:0],
    "empty list": lambda n, x: x[n.array([], int)],
    "of the empty slice": lambda n, x: n.sum(x[:, 0:0]) + 1,
}


@pytest.mark.parametrize("name", MADE_LIKE)
def test_what_is_made_like_a_committed_array_lies_where_it_does_as_in_jax(name):
    make = MADE_LIKE[name]
    ours = make(jnp, px.device_put(A, px.devices()[3]))
    theirs = make(jax.numpy, jax.device_put(A, jax.devices()[3]))
    assert {d.id for d in ours.devices()} == {d.id for d in theirs.devices()} == {3}
    assert ours.committed and theirs.committed


def test_what_is_made_like_a_sharded_array_is_sharded_as_it_is(mesh):
    x = px.device_put(A, NamedSharding(mesh, P("x", "y")))
    for made in (
        jnp.zeros_like(x),
        jnp.full_like(x, 3),
        px.lax.full_like(x, 1),
        jnp.ones_like(x, dtype=bool),
    ):
        assert made.sharding == x.sharding
    assert len(jnp.zeros_like(x, shape=(3,)).devices()) == 1
    assert jnp.zeros_like(jnp.ones(2)).committed is False


SPECS = [(), (None,), ("x",), ("x", None), (("x",),), (("x", "y"),), ("x", "y"), (("y", "x"),), (None, "x")]


def test_specs_compare_as_those_of_jax():
    own, theirs = px.sharding.PartitionSpec, jax.sharding.PartitionSpec
    for a in SPECS:
        for b in SPECS:
            same = theirs(*a) == theirs(*b)
            assert (own(*a) == own(*b)) == same and (own(*a) != own(*b)) == (not same), (a, b)
        assert (own(*a) == a) == (theirs(*a) == a) and (a == own(*a)) == (a == theirs(*a))
