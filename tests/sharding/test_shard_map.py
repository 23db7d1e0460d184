"""`shard_map` and the collectives inside of it: the same results and derivatives as jax's, on eight devices."""

from __future__ import annotations

import jax
import jax.numpy
import numpy as np
import pytest

import purax as px
import purax.numpy as jnp

pytestmark = pytest.mark.sampled(2)

A = np.arange(32, dtype=np.float32).reshape(8, 4) / 7
B = np.cos(np.arange(32, dtype=np.float32)).reshape(4, 8)
W = np.sin(np.arange(16, dtype=np.float32)).reshape(4, 4)
BOTH = ("x", "y")
RING = [(i, (i + 1) % 4) for i in range(4)]


class On:
    """A library, and what the programs below need of it."""

    def __init__(self, library, numpy):
        self.library, self.numpy, self.lax = library, numpy, library.lax
        self.P = library.sharding.PartitionSpec
        self.mesh = library.sharding.Mesh(np.array(library.devices()).reshape(4, 2), BOTH)

    def map(self, function, in_specs, out_specs, check=True, **options):
        return self.library.shard_map(
            function, mesh=self.mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check, **options
        )

    def rows(self, function, out=None):
        """Maps a function of rows over all devices."""
        return self.map(function, self.P(BOTH), self.P(BOTH) if out is None else out)

    def tiles(self, function, out=None):
        """Maps a function of tiles over all devices."""
        return self.map(function, self.P("x", "y"), self.P("x", "y") if out is None else out)

    def grouped(self, function):
        """Maps a function of rows over eight devices in two groups."""
        mesh = self.library.sharding.Mesh(np.array(self.library.devices()), ("i",))
        groups = {"axis_index_groups": [[0, 2, 4, 6], [7, 5, 3, 1]]}
        return self.library.shard_map(
            lambda a: function(a, groups), mesh=mesh, in_specs=self.P("i"), out_specs=self.P("i"), check_vma=False
        )

    def loss(self, check=True):
        def local(w, a):
            return self.lax.pmean((self.numpy.tanh(a @ w) ** 2).mean(), BOTH)

        return self.map(local, (self.P(), self.P(BOTH)), self.P(), check)


PROGRAMS = {
    "psum": lambda p: p.tiles(lambda a: p.lax.psum(a, "x"), p.P(None, "y"))(A),
    "psum over two axes": lambda p: p.tiles(lambda a: p.lax.psum(a, BOTH), p.P())(A),
    "pmax and pmin": lambda p: p.tiles(lambda a: p.lax.pmax(a, "y") - p.lax.pmin(a, "y"), p.P("x"))(A),
    "pmean": lambda p: p.tiles(lambda a: p.lax.pmean(a, "x"), p.P(None, "y"))(A),
    "all_gather, tiled": lambda p: p.tiles(lambda a: p.lax.all_gather(a, "y", axis=1, tiled=True))(A),
    "all_gather": lambda p: p.tiles(lambda a: p.lax.all_gather(a, "y"), p.P("y", "x"))(A),
    "all_gather over two axes": lambda p: p.rows(lambda a: p.lax.all_gather(a, BOTH, tiled=True))(A),
    "psum_scatter": lambda p: p.map(
        lambda a: p.lax.psum_scatter(a, "y", scatter_dimension=0, tiled=True), p.P("x"), p.P(BOTH)
    )(A),
    "all_to_all, tiled": lambda p: p.map(
        lambda a: p.lax.all_to_all(a, "y", 1, 0, tiled=True), p.P("x", None), p.P("x", "y")
    )(A),
    "all_to_all": lambda p: p.map(
        lambda a: p.lax.all_to_all(a.reshape(2, 2, 2), "y", 1, 0), p.P("x", None), p.P("y", "x")
    )(A),
    "ppermute": lambda p: p.tiles(lambda a: p.lax.ppermute(a, "x", RING))(A),
    "axis_index": lambda p: p.tiles(lambda a: a + p.lax.axis_index("x") * 10 + p.lax.axis_index("y"))(A),
    "axis_index of two axes": lambda p: p.tiles(lambda a: a + p.lax.axis_index(("y", "x")))(A),
    "groups of psum": lambda p: p.grouped(lambda a, g: p.lax.psum(a, "i", **g))(A),
    "groups of pmax and pmean": lambda p: p.grouped(
        lambda a, g: p.lax.pmax(a, "i", **g) - p.lax.pmean(a, "i", **g)
    )(A),
    "groups of all_gather": lambda p: p.grouped(lambda a, g: p.lax.all_gather(a, "i", **g)[:, 0])(A),
    "groups of all_gather, tiled": lambda p: p.grouped(
        lambda a, g: p.lax.all_gather(a, "i", axis=1, tiled=True, **g)
    )(A),
    "groups of psum_scatter": lambda p: p.grouped(
        lambda a, g: p.lax.psum_scatter(a, "i", scatter_dimension=1, tiled=True, **g)
    )(A),
    "groups of all_to_all": lambda p: p.grouped(lambda a, g: p.lax.all_to_all(a, "i", 1, 0, **g)[:, 0])(A),
    "groups of all_to_all, tiled": lambda p: p.grouped(
        lambda a, g: p.lax.all_to_all(a, "i", 1, 0, tiled=True, **g)
    )(A),
    "grad of groups": lambda p: p.library.grad(
        lambda a: p.numpy.sum(
            p.numpy.sin(
                p.grouped(
                    lambda a, g: p.lax.psum_scatter(
                        p.numpy.sin(p.lax.all_gather(a, "i", axis=1, tiled=True, **g)),
                        "i",
                        scatter_dimension=1,
                        tiled=True,
                        **g,
                    )
                    + p.lax.all_to_all(a, "i", 1, 0, tiled=True, **g).reshape(1, 4)
                )(a)
            )
        )
    )(A),
    "inside of another, which has the mesh": lambda p: p.library.jit(
        p.library.shard_map(
            lambda a: p.library.shard_map(
                lambda b: p.lax.psum(b, "y"), in_specs=p.P(None, "y"), out_specs=p.P(), axis_names={"y"}
            )(a)
            + p.lax.psum(a[:, :2], "x"),
            mesh=p.mesh,
            in_specs=p.P("x"),
            out_specs=p.P("x"),
            axis_names={"x"},
        )
    )(A),
    "inside of another, with the axes that are left": lambda p: p.library.jit(
        p.library.shard_map(
            lambda a: p.library.shard_map(
                lambda b: p.lax.psum(b, "y"), in_specs=p.P(None, "y"), out_specs=p.P()
            )(a),
            mesh=p.mesh,
            in_specs=p.P("x"),
            out_specs=p.P("x"),
            axis_names={"x"},
        )
    )(A),
    "a product, cut along its sum": lambda p: p.map(
        lambda a, b: p.lax.psum(a @ b, "y"), (p.P("x", "y"), p.P("y")), p.P("x")
    )(A, B),
    "the sum of equal values": lambda p: p.map(
        lambda a, b: p.lax.psum(b, "x") * p.lax.psum(a, BOTH), (p.P("x", "y"), p.P()), p.P()
    )(A, np.float32(2)),
    "trees": lambda p: p.map(
        lambda d: {"s": p.lax.psum(d["a"], "x")[:1], "t": d["b"] * 2},
        ({"a": p.P("x"), "b": p.P()},),
        {"s": p.P(), "t": p.P()},
    )({"a": A, "b": W})["t"],
    "a captured array": lambda p: (lambda c: p.rows(lambda a: a @ c)(A))(p.numpy.asarray(W)),
    "jit inside": lambda p: p.map(
        p.library.jit(lambda a: p.lax.psum(p.numpy.sin(a), "x")), p.P("x", "y"), p.P(None, "y")
    )(A),
    "cond": lambda p: p.tiles(
        lambda a: p.lax.cond(p.lax.axis_index("x") > 1, lambda a: a * 2, lambda a: a + 1, a)
    )(A),
    "fori_loop": lambda p: p.tiles(lambda a: p.lax.fori_loop(0, 3, lambda i, a: a + p.lax.psum(a, "y"), a))(
        A
    ),
    "a ring": lambda p: p.tiles(
        lambda a: p.lax.scan(lambda c, _: (p.lax.ppermute(c, "x", RING) + a, c.sum()), a * 0, None, length=4)[
            0
        ]
    )(A),
    "some axes": lambda p: p.library.jit(
        p.map(lambda a: p.lax.psum(a, "x"), p.P("x"), p.P(), axis_names={"x"})
    )(A),
    "vmap": lambda p: p.library.vmap(p.map(lambda a: p.lax.psum(p.numpy.sin(a), "x"), p.P("x"), p.P()))(
        np.stack([A, A * 2])
    ),
    "vmap over another axis": lambda p: p.library.vmap(
        p.map(lambda a, b: p.lax.psum(p.numpy.sin(a) * b, "x"), (p.P("x"), p.P()), p.P()), in_axes=(1, None)
    )(np.stack([A, A * 2], 1), np.float32(3)),
    "grad": lambda p: p.library.grad(p.loss())(W, A),
    "grad, not checked": lambda p: p.library.grad(p.loss(False))(W, A),
    "grad of the cut argument": lambda p: p.library.grad(p.loss(), 1)(W, A),
    "jit of grad": lambda p: p.library.jit(p.library.grad(p.loss()))(W, A),
    "jvp": lambda p: p.library.jvp(lambda w: p.loss()(w, A), (W,), (W * 2,))[1],
    "second derivative": lambda p: p.library.jacfwd(p.library.grad(p.loss()))(W, A),
    "grad inside": lambda p: p.map(
        lambda w, a: p.library.grad(lambda w: (p.numpy.tanh(a @ w) ** 2).mean())(w), (p.P(), p.P(BOTH)), p.P()
    )(W, A),
    "grad of a mean inside": lambda p: p.map(
        lambda w, a: p.library.grad(lambda w: p.lax.pmean((p.numpy.tanh(a @ w) ** 2).mean(), BOTH))(w),
        (p.P(), p.P(BOTH)),
        p.P(),
    )(W, A),
    "grad inside, not checked": lambda p: p.map(
        lambda w, a: p.lax.pmean(p.library.grad(lambda w: (p.numpy.tanh(a @ w) ** 2).mean())(w), BOTH),
        (p.P(), p.P(BOTH)),
        p.P(),
        False,
    )(W, A),
    "grad of a sum inside, not checked": lambda p: p.map(
        # Divided, so that tanh is far from 1, where its derivative would show its last bit.
        lambda w, a: p.library.grad(lambda w: p.lax.psum((p.numpy.tanh(a @ w / 9) ** 2).mean(), BOTH))(w),
        (p.P(), p.P(BOTH)),
        p.P(BOTH),
        False,
    )(W, A),
    "grad of all_to_all": lambda p: p.library.grad(
        lambda a: (
            p.map(lambda a: p.lax.all_to_all(a, "y", 1, 0, tiled=True), p.P("x", None), p.P("x", "y"))(a)
            * np.arange(64, dtype=np.float32).reshape(16, 4)
        ).sum()
    )(A),
    "grad of all_gather": lambda p: p.library.grad(
        lambda a: p.numpy.sin(
            p.map(
                lambda a: p.lax.all_gather(a, "y", axis=1, tiled=True) * (1.0 + p.lax.axis_index("y")),
                p.P("x", "y"),
                p.P(BOTH),
            )(a)
        ).sum()
    )(A),
    "grad of ppermute": lambda p: p.library.grad(
        lambda a: p.tiles(lambda a: a * p.lax.ppermute(a, "x", RING))(a).sum()
    )(A),
    "grad of a captured array": lambda p: p.library.grad(
        lambda w: p.rows(lambda a: p.numpy.sin(a @ w))(A).sum()
    )(W),
    "grad of a ring": lambda p: p.library.grad(
        p.map(
            lambda w, a: p.lax.psum(
                p.lax.scan(
                    lambda c, _: (p.numpy.tanh(p.lax.ppermute(c, "x", RING) @ w) + a, None),
                    a * 0,
                    None,
                    length=4,
                )[0].sum(),
                BOTH,
            ),
            (p.P(), p.P(BOTH)),
            p.P(),
        )
    )(W, A),
    "grad of checkpoint": lambda p: p.library.grad(
        p.map(
            p.library.checkpoint(lambda w, a: p.lax.pmean((p.numpy.tanh(a @ w) ** 2).mean(), BOTH)),
            (p.P(), p.P(BOTH)),
            p.P(),
        )
    )(W, A),
    "grad over some axes": lambda p: p.library.jit(
        p.library.grad(
            lambda a: p.map(lambda a: p.numpy.sin(p.lax.psum(a, "x")), p.P("x"), p.P(), axis_names={"x"})(
                a
            ).sum()
        )
    )(A),
    "arguments that are sharded over the mesh": lambda p: p.library.jit(p.library.value_and_grad(p.loss()))(
        W, p.library.device_put(A, p.library.sharding.NamedSharding(p.mesh, p.P(BOTH)))
    )[1],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_agrees_with_jax(name):
    own, theirs = (np.asarray(PROGRAMS[name](On(*pair))) for pair in ((px, jnp), (jax, jax.numpy)))
    assert own.shape == theirs.shape and own.dtype == theirs.dtype
    np.testing.assert_allclose(own, theirs, rtol=1e-5, atol=1e-6)


def test_a_carry_may_begin_to_differ():
    p = On(px, jnp)
    found = p.tiles(lambda a: px.lax.scan(lambda c, _: (c + a, None), jnp.zeros((2, 2)), None, length=3)[0])(
        A
    )
    np.testing.assert_allclose(found, 3 * A, rtol=1e-6)


REFUSED = {
    "a result that differs": (
        lambda p: p.map(lambda a: a, p.P("x", "y"), p.P("x"))(A),
        "differs from device to device along 'y'",
    ),
    "an axis that does not divide": (
        lambda p: p.tiles(lambda a: a)(A[:6]),
        r"axis 0 of argument a of shard_map of `<lambda>`, of shape \(6, 4\) has size 6, which does not divide into 4",
    ),
    "an axis that the mesh lacks": (lambda p: p.map(lambda a: a, p.P("z"), p.P())(A), "names the axis 'z'"),
    "an axis twice": (lambda p: p.map(lambda a: a, p.P("x", "x"), p.P())(A), "twice"),
    "no mesh": (lambda p: px.shard_map(lambda a: a, in_specs=p.P(), out_specs=p.P())(A), "needs a mesh"),
    "names that are no axes": (
        lambda p: p.map(lambda a: a, p.P(), p.P(), axis_names={"z"})(A),
        "are not axes of the mesh",
    ),
    "two meshes": (
        lambda p: px.jit(
            lambda a: px.lax.with_sharding_constraint(
                p.tiles(lambda a: a)(a), px.NamedSharding(px.make_mesh((8,), ("z",)), p.P("z"))
            )
        )(A),
        "cannot use two meshes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_says_what_is_wrong(name):
    program, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        program(On(px, jnp))


def test_smap_cuts_axes_and_agrees_with_jax():
    """One axis of the mesh is mapped, by axes of arrays; the other is left to the compiler."""
    values = {"a": np.arange(24, dtype=np.float32).reshape(4, 6), "b": np.arange(6, dtype=np.float32)}

    def results(module, mesh, axis=1):
        def f(tree, scale):
            total = module.lax.psum(tree["a"].sum() * scale, "x")
            return tree["a"] * tree["b"] - total, total

        mapped = module.smap(f, in_axes=({"a": axis, "b": 0}, None), out_axes=(1, None), axis_name="x")
        with module.set_mesh(mesh):
            return module.jit(mapped)(values, 2.0)

    ours = results(px, px.make_mesh((2, 4), ("x", "y")))
    theirs = results(jax, jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2))
    last = results(px, px.make_mesh((2, 4), ("x", "y")), -1)  # jax cuts the first axis there
    for mine, other, same in zip(ours, theirs, last, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6)
        np.testing.assert_array_equal(mine, same)
    with px.make_mesh((2, 4), ("x", "y")):
        with pytest.raises(ValueError, match="in_axes has 2 for an argument with 2 axes"):
            px.smap(lambda x: x, in_axes=2, out_axes=0, axis_name="x")(np.ones((2, 2)))
    with pytest.raises(ValueError, match="counted from the front"):
        px.smap(lambda x: x, in_axes=0, out_axes=-1, axis_name="x")


def test_shard_map_by_its_older_name():
    from purax.experimental.shard_map import shard_map

    mesh = px.make_mesh((2, 4), ("x", "y"))
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(
        shard_map(lambda a: px.lax.psum(a, "x"), mesh, px.P("x"), px.P(), check_rep=False)(x), x[:4] + x[4:]
    )
    with pytest.raises(NameError, match="'y'"):
        shard_map(lambda a: px.lax.psum(a, "y"), mesh, px.P("x"), px.P("x"), auto=frozenset({"y"}))(x)


def test_constants_around_a_map_are_not_used_inside():
    mesh = px.make_mesh((8,), ("x",))
    mapped = px.shard_map(lambda x: x * 3.5 + 1, mesh=mesh, in_specs=px.P("x"), out_specs=px.P("x"))
    x = np.arange(8, dtype=np.float32)
    np.testing.assert_allclose(px.jit(lambda x: mapped(x * 3.5) * 3.5)(x), ((x * 3.5) * 3.5 + 1) * 3.5)


def test_derivatives_of_a_map_inside_of_another():
    """jax 0.11 cannot lower this; the whole is a function of one device."""
    p = On(px, jnp)

    def outer(a):
        inner = lambda b: p.lax.psum(jnp.sin(b), "y")  # noqa: E731
        return px.shard_map(inner, in_specs=p.P(None, "y"), out_specs=p.P(), axis_names={"y"})(a) ** 2

    mapped = px.shard_map(outer, mesh=p.mesh, in_specs=p.P("x"), out_specs=p.P("x"), axis_names={"x"})
    found = px.jit(px.grad(lambda a: mapped(a).sum()))(A)
    wanted = px.grad(lambda a: jnp.sum((jnp.sin(a[:, :2]) + jnp.sin(a[:, 2:])) ** 2))(A)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_groups_under_vmap():
    """jax has none; each element of the batch is done as by itself."""
    exchange = On(px, jnp).grouped(lambda a, g: px.lax.all_to_all(a, "i", 1, 0, tiled=True, **g))
    found = px.vmap(exchange)(np.stack([A, A * 2]))
    assert np.array_equal(found, np.stack([exchange(A), exchange(A * 2)]))
    for operation in (px.lax.all_gather, px.lax.psum_scatter):
        groups = [[0, 2], [3, 1]]
        found = px.vmap(lambda v: operation(v, "i", axis_index_groups=groups), axis_name="i")(A[:4, :2])  # noqa: B023
        apart = [px.vmap(lambda v: operation(v, "i"), axis_name="i")(A[g, :2]) for g in groups]  # noqa: B023
        assert np.array_equal(found, np.stack([apart[0][0], apart[1][1], apart[0][1], apart[1][0]]))


def test_groups_that_do_not_fit():
    x = jnp.ones((4, 4))
    for groups in ([[0, 1], [2]], [[0, 1], [1, 2]], [[0, 1, 2, 3, 4]]):
        for operation in (px.lax.all_gather, px.lax.psum_scatter):
            with pytest.raises(ValueError, match="each of the positions 0 … 3 in one group, and groups of one size"):
                px.vmap(lambda v: operation(v, "i", axis_index_groups=groups), axis_name="i")(x)  # noqa: B023
    with pytest.raises(ValueError, match="all axes of .* belong to the shard_map around it already"):
        On(px, jnp).tiles(lambda a: px.shard_map(lambda b: b, in_specs=None, out_specs=None)(a))(A)
