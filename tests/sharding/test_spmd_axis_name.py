"""`vmap` of sharded functions: `spmd_axis_name` says over which axes of the mesh the batch is sharded."""

from __future__ import annotations

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.sharding import Mesh, NamedSharding
from purax.sharding import PartitionSpec as P

X = np.arange(64, dtype=np.float32).reshape(8, 8)
W = np.arange(4, dtype=np.float32)


@pytest.fixture(scope="module")
def mesh():
    return Mesh(np.array(px.devices()).reshape(4, 2), ("i", "j"))


def with_rule(f):
    g = px.custom_jvp(f)
    g.defjvp(lambda primals, tangents: (f(*primals), f(*tangents)))
    return g


def with_reverse_rule(f):
    g = px.custom_vjp(f)
    g.defvjp(lambda x: (f(x), None), lambda _, c: (f(c),))
    return g


WRAPPERS = [lambda f: f, px.jit, px.checkpoint, with_rule, with_reverse_rule]


@pytest.mark.parametrize("wrap", WRAPPERS)
@pytest.mark.parametrize("axis", [0, 1])
def test_constraints_shard_the_batch(mesh, wrap, axis):
    f = wrap(lambda x: px.lax.with_sharding_constraint(x * 2, NamedSharding(mesh, P("j"))))
    y = px.jit(px.vmap(f, in_axes=axis, out_axes=axis, spmd_axis_name="i"))(X)
    assert y.sharding.spec == (P("i", "j") if axis == 0 else P("j", "i"))
    np.testing.assert_array_equal(y, X * 2)


def test_nested(mesh):
    f = lambda x: px.lax.with_sharding_constraint(x, NamedSharding(mesh, P()))  # noqa: E731
    y = px.vmap(px.vmap(f, spmd_axis_name="i"), spmd_axis_name="j")(X)
    assert y.sharding.spec == P("j", "i")
    y = px.vmap(f, spmd_axis_name=("i", "j"))(X)
    assert y.sharding.spec == P(("i", "j"), None)


@pytest.mark.parametrize("spread", ["i", ("i",), None])
@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("wrap", [lambda f: f, px.jit])
def test_derivatives_of_what_the_whole_batch_shares(mesh, spread, check, wrap):
    product = px.shard_map(
        lambda x, w: jnp.sin(x) * w * w, mesh=mesh, in_specs=(P("j"), P()), out_specs=P("j"), check_vma=check
    )
    f = lambda w: px.vmap(product, in_axes=(0, None), spmd_axis_name=spread)(X, w).sum()  # noqa: E731
    expected = (2 * np.concatenate([W, W]) * np.sin(X).sum(0)).reshape(2, 4).sum(0)
    np.testing.assert_allclose(wrap(px.grad(f))(W), expected, atol=1e-4)


def test_parts_of_the_batch(mesh):
    f = px.shard_map(
        lambda x: (x * 2, px.lax.psum(x, "j")), mesh=mesh, in_specs=P("j"), out_specs=(P("j"), P())
    )
    program = px.make_jaxpr(px.vmap(f, spmd_axis_name="i"))(X)
    assert program.eqns[0].params["jaxpr"].in_avals[0].shape == (2, 4)
    y, total = px.jit(px.vmap(f, spmd_axis_name="i"))(X)
    np.testing.assert_array_equal(y, X * 2)
    np.testing.assert_array_equal(total, X[:, :4] + X[:, 4:])


def test_errors(mesh):
    f = px.shard_map(lambda x: x, mesh=mesh, in_specs=P("j"), out_specs=P("j"))
    with pytest.raises(TypeError, match="spmd_axis_name must be the name of an axis of a mesh"):
        px.vmap(f, spmd_axis_name=3)
    with pytest.raises(ValueError, match="is an axis that the specs of the shard_map use already"):
        px.vmap(f, spmd_axis_name="j")(X)
    with pytest.raises(ValueError, match="not among the axes"):
        px.vmap(f, spmd_axis_name="k")(X)
    with pytest.raises(ValueError, match="a batch of 3 cannot be sharded over 'i'"):
        px.vmap(f, spmd_axis_name="i")(X[:3])
    constrained = lambda x: px.lax.with_sharding_constraint(x, NamedSharding(mesh, P("j")))  # noqa: E731
    with pytest.raises(ValueError, match="twice"):
        px.vmap(constrained, spmd_axis_name="j")(X)
