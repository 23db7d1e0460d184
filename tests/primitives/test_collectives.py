"""Collective operations over the named axis of a `vmap`: as jax computes them, in all derivatives and nestings."""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest

import purax as px
import purax.numpy as jnp

HERE = re.escape(__file__)


def programs(m):
    """The table for either library."""
    np_, lax = m.numpy, m.lax
    x, ones, arange = np_.arange(1.0, 5.0), np_.ones, np_.arange
    ring = [(0, 1), (1, 2), (2, 3), (3, 0)]

    def over(f, **options):
        return m.vmap(f, axis_name="i", **options)

    def both(f):
        return m.vmap(m.vmap(f, axis_name="j"), axis_name="i")

    return {
        "psum": lambda: over(lambda v: lax.psum(v, "i"))(x),
        "psum unb": lambda: over(lambda v: lax.psum(np_.float32(2.0), "i") * v)(x),
        "psum num": lambda: over(lambda v: lax.psum(1, "i") * v)(x),
        "psum tree": lambda: over(lambda v: lax.psum({"a": v, "b": v * 2}, "i"))(x),
        "psum bool": lambda: over(lambda v: lax.psum(v > 2, "i"))(x),
        "pmean int": lambda: over(lambda v: lax.pmean(v.astype(int), "i"))(x),
        "pmean": lambda: over(lambda v: lax.pmean(v, "i"))(x),
        "pmax": lambda: over(lambda v: (lax.pmax(v, "i"), lax.pmin(v, "i")))(x),
        "index": lambda: over(lambda v: lax.axis_index("i"))(x),
        "size": lambda: over(lambda v: lax.axis_size("i") + v)(x),
        "gather": lambda: over(lambda v: lax.all_gather(v, "i"))(x),
        "gather ax": lambda: over(lambda v: lax.all_gather(v * ones(2), "i", axis=1))(x),
        "gather neg": lambda: over(lambda v: lax.all_gather(v * ones(2), "i", axis=-1))(x),
        "gather tiled": lambda: over(lambda v: lax.all_gather(v * ones((2, 3)), "i", axis=1, tiled=True))(x),
        "scatter": lambda: over(lambda v: lax.psum_scatter(v * arange(4.0), "i"))(x),
        "scatter tiled": lambda: over(lambda v: lax.psum_scatter(v * arange(8.0), "i", tiled=True))(x),
        "scatter dim": lambda: over(lambda v: lax.psum_scatter(v * ones((3, 4)), "i", scatter_dimension=1))(
            x
        ),
        "permute": lambda: over(lambda v: lax.ppermute(v, "i", ring))(x),
        "shuffle": lambda: over(lambda v: lax.pshuffle(v, "i", [3, 2, 1, 0]))(x),
        "a2a": lambda: over(lambda v: lax.all_to_all(v * arange(4.0), "i", 0, 0))(x),
        "a2a 2": lambda: over(lambda v: lax.all_to_all(v * arange(12.0).reshape(4, 3), "i", 0, 1))(x),
        "a2a 3": lambda: over(lambda v: lax.all_to_all(v * arange(12.0).reshape(3, 4), "i", 1, 0))(x),
        "a2a tiled": lambda: over(
            lambda v: lax.all_to_all(v * arange(24.0).reshape(8, 3), "i", 0, 1, tiled=True)
        )(x),
        "a2a tiled2": lambda: over(
            lambda v: lax.all_to_all(v * arange(24.0).reshape(3, 8), "i", 1, 0, tiled=True)
        )(x),
        "a2a tiled3": lambda: over(
            lambda v: lax.all_to_all(v * arange(24.0).reshape(8, 3), "i", 0, 0, tiled=True)
        )(x),
        "nested": lambda: m.vmap(
            m.vmap(
                lambda v: (
                    lax.psum(v, ("i", "j")),
                    lax.psum(v, "j"),
                    lax.axis_index(("i", "j")),
                    lax.psum(v, "i"),
                ),
                axis_name="j",
            ),
            axis_name="i",
        )(arange(6.0).reshape(2, 3)),
        "nested gather": lambda: m.vmap(
            m.vmap(lambda v: lax.all_gather(v, "i"), axis_name="j"), axis_name="i"
        )(arange(6.0).reshape(2, 3)),
        "vmap gather in": lambda: over(lambda v: m.vmap(lambda u: lax.all_gather(u * v, "i"))(arange(2.0)))(
            x
        ),
        "vmap scatter in": lambda: over(
            lambda v: m.vmap(lambda u: lax.psum_scatter(u * v * arange(4.0), "i"))(arange(2.0))
        )(x),
        "vmap a2a in": lambda: over(
            lambda v: m.vmap(lambda u: lax.all_to_all(u * v * arange(4.0), "i", 0, 0))(arange(2.0))
        )(x),
        "jit": lambda: m.jit(over(lambda v: m.jit(lambda w: lax.psum(w, "i") / w)(v)))(x),
        "cond": lambda: over(lambda v: lax.cond(v > 2, lambda w: w * 2, lambda w: w, lax.psum(v, "i")))(x),
        "cond in": lambda: over(lambda v: lax.cond(True, lambda w: lax.psum(w, "i"), lambda w: w, v))(x),
        "scan": lambda: over(lambda v: lax.scan(lambda c, _: (lax.psum(c, "i") * 0.5, c), v, None, length=3))(
            x
        ),
        "while": lambda: over(lambda v: lax.while_loop(lambda c: lax.psum(c, "i") < 100, lambda c: c * 2, v))(
            x
        ),
        "ckpt": lambda: over(m.checkpoint(lambda v: lax.psum(v * v, "i")))(x),
        "grad in": lambda: over(m.grad(lambda v: lax.psum(v * v, "i")))(x),
        "grad in mean": lambda: over(m.grad(lambda v: lax.pmean(v**3, "i")))(x),
        "grad out": lambda: m.grad(lambda u: over(lambda v: lax.psum(v * v, "i") * v)(u).sum())(x),
        "grad gather": lambda: over(m.grad(lambda v: (lax.all_gather(v, "i") ** 2 * arange(4.0)).sum()))(x),
        "grad gather out": lambda: m.grad(
            lambda u: over(lambda v: (lax.all_gather(v, "i") ** 2 * arange(4.0)).sum() * v)(u).sum()
        )(x),
        "grad permute": lambda: over(m.grad(lambda v: lax.ppermute(v, "i", ring) * lax.axis_index("i")))(x),
        "grad a2a": lambda: over(
            m.grad(
                lambda v: (
                    lax.all_to_all(v * arange(4.0), "i", 0, 0) * (lax.axis_index("i") + arange(4.0))
                ).sum()
            )
        )(x),
        "grad scatter": lambda: over(
            m.grad(lambda v: lax.psum_scatter(v * arange(4.0), "i") * lax.axis_index("i"))
        )(x),
        "jvp": lambda: m.jvp(lambda u: over(lambda v: lax.pmean(v * v, "i"))(u), (x,), (x,)),
        "out none": lambda: over(lambda v: (lax.psum(v, "i"), v), out_axes=(None, 0))(x),
        "complex": lambda: over(lambda v: lax.psum(v * 1j, "i"))(x),
        "int": lambda: over(lambda v: lax.psum(v, "i"))(arange(4)),
    }


NAMES = list(programs(px))


@pytest.mark.parametrize("name", NAMES)
def test_as_jax(name):
    jax = pytest.importorskip("jax")
    ours, theirs = programs(px)[name](), programs(jax)[name]()
    leaves, tree = px.tree.flatten(ours)
    expected, jax_tree = jax.tree.flatten(theirs)
    assert str(tree) == str(jax_tree)
    for a, b in zip(leaves, expected, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6)


def over(f, **options):
    return px.vmap(f, axis_name="i", **options)


x = np.arange(1.0, 5.0, dtype=np.float32)


def test_groups():
    groups = [[0, 2], [1, 3]]
    assert over(lambda v: px.lax.psum(v, "i", axis_index_groups=groups))(x).tolist() == [4.0, 6.0, 4.0, 6.0]
    assert over(lambda v: px.lax.pmax(v, "i", axis_index_groups=groups))(x).tolist() == [3.0, 4.0, 3.0, 4.0]
    assert over(lambda v: px.lax.pmean(v, "i", axis_index_groups=groups))(x).tolist() == [2.0, 3.0, 2.0, 3.0]
    gathered = over(lambda v: px.lax.all_gather(v, "i", axis_index_groups=groups))(x)
    assert gathered.tolist() == [[1.0, 3.0], [2.0, 4.0], [1.0, 3.0], [2.0, 4.0]]


def test_where_nothing_is_sent_there_are_zeros():
    moved = over(lambda v: px.lax.ppermute(v, "i", [(0, 1), (2, 3)]))(
        np.array([np.nan, 1.0, np.inf, 2.0], np.float32)
    )
    assert np.isnan(moved[1]) and np.isinf(moved[3]) and moved[0] == 0.0 and moved[2] == 0.0


def test_broadcast_from_one():
    assert over(lambda v: px.lax.pbroadcast(v, "i", 2))(x).tolist() == [3.0] * 4


def test_collectives_in_functions_with_custom_rules():
    total = px.custom_jvp(lambda v: px.lax.psum(v, "i"))
    total.defjvp(lambda primals, tangents: (total(*primals), 10 * px.lax.psum(tangents[0], "i")))
    assert over(total)(x).tolist() == [10.0] * 4
    assert over(px.jit(total))(x).tolist() == [10.0] * 4
    assert over(lambda v: px.jvp(total, (v,), (1.0,))[1])(x).tolist() == [40.0] * 4

    mean = px.custom_vjp(lambda v: px.lax.pmean(v, "i"))
    mean.defvjp(lambda v: (mean(v), px.lax.axis_index("i")), lambda index, g: (g * index,))
    assert over(px.grad(mean))(x).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert px.grad(lambda u: over(mean)(u).sum())(x).tolist() == [0.0, 1.0, 2.0, 3.0]

    unbatched = px.custom_jvp(lambda v: v * 2)
    unbatched.defjvp(lambda primals, tangents: (unbatched(*primals), 2 * tangents[0]))
    result = over(lambda v: (unbatched(jnp.float32(3.0)), v), out_axes=(None, 0))(x)
    assert float(result[0]) == 6.0, "what does not depend on the batch stays unbatched"


def test_normalization_over_a_named_axis_is_that_over_the_batch():
    def norm(v):
        centred = v - px.lax.pmean(v, "batch")
        return centred / jnp.sqrt(px.lax.pmean(centred**2, "batch") + 1e-5)

    data = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
    together = px.vmap(norm, axis_name="batch")(data)
    expected = (data - data.mean(0)) / np.sqrt(data.var(0) + 1e-5)
    np.testing.assert_allclose(together, expected, rtol=1e-5, atol=1e-5)
    weights = np.random.default_rng(1).standard_normal((8, 3)).astype(np.float32)
    by_name = px.grad(lambda d: (px.vmap(norm, axis_name="batch")(d) * weights).sum())(data)
    by_hand = px.grad(lambda d: (((d - d.mean(0)) / jnp.sqrt(d.var(0) + 1e-5)) * weights).sum())(data)
    np.testing.assert_allclose(by_name, by_hand, rtol=1e-4, atol=1e-5)


BAD = {
    "unbound": (
        lambda: px.lax.psum(1.0, "i"),
        NameError,
        "unbound axis name: 'i'; no named axis is in scope",
    ),
    "another name": (
        lambda: over(lambda v: px.lax.psum(v, "j"))(x),
        NameError,
        "unbound axis name: 'j'; the named axes here are 'i'",
    ),
    "axis_index": (
        lambda: px.jit(lambda v: v + px.lax.axis_index("i"))(1.0),
        NameError,
        "axis_index: unbound axis name",
    ),
    "twice the same destination": (
        lambda: over(lambda v: px.lax.ppermute(v, "i", [(0, 1), (2, 1)]))(x),
        ValueError,
        "each destination must appear once",
    ),
    "out of range": (lambda: over(lambda v: px.lax.ppermute(v, "i", [(0, 7)]))(x), ValueError, "0 … 3"),
    "scatter": (
        lambda: over(lambda v: px.lax.psum_scatter(v * jnp.ones(3), "i"))(x),
        ValueError,
        r"shape \(3,\) must equal",
    ),
    "scatter tiled": (
        lambda: over(lambda v: px.lax.psum_scatter(v * jnp.ones(6), "i", tiled=True))(x),
        ValueError,
        "divisible by",
    ),
    "all_to_all": (
        lambda: over(lambda v: px.lax.all_to_all(v * jnp.ones(3), "i", 0, 0))(x),
        ValueError,
        "must have the size 4",
    ),
    "pmax, differentiated": (
        lambda: over(px.grad(lambda v: px.lax.pmax(v, "i")))(x),
        NotImplementedError,
        "`pmax`",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_named(name):
    run, kind, message = BAD[name]
    with pytest.raises(kind, match=message) as error:
        run()
    assert re.search(rf"at {HERE}:\d+", str(error.value)), str(error.value)


SIZES = {"i": 2, "j": 3, "k": 2}
SEVERAL = {
    "all_gather": lambda v, names: px.lax.all_gather(v, names, axis=1),
    "all_gather tiled": lambda v, names: px.lax.all_gather(v, names, axis=1, tiled=True),
    "psum_scatter": lambda v, names: px.lax.psum_scatter(v, names, scatter_dimension=1),
    "psum_scatter tiled": lambda v, names: px.lax.psum_scatter(v, names, scatter_dimension=1, tiled=True),
    "all_to_all": lambda v, names: px.lax.all_to_all(v, names, 1, 0),
    "all_to_all back": lambda v, names: px.lax.all_to_all(v, names, 1, 2),
    "all_to_all tiled": lambda v, names: px.lax.all_to_all(v, names, 1, 0, tiled=True),
    "psum": lambda v, names: px.lax.psum(v, names),
    "axis_index": lambda v, names: px.lax.axis_index(names) + v,
}


@pytest.mark.parametrize("names", ["ij", "ji", "ik", "ki", "jk", "kj", "ijk", "kji", "jki"])
@pytest.mark.parametrize("operation", SEVERAL)
def test_several_names_are_one_axis(operation, names):
    """Over several names of nested `vmap`s as over one name of the axis that they make together, in their order."""
    run = SEVERAL[operation]
    total = int(np.prod([SIZES[name] for name in names]))
    x = (
        np.random.default_rng(0)
        .normal(size=(*(SIZES[name] for name in "ijk"), 4, total, 5))
        .astype(np.float32)
    )
    nested = lambda v: run(v, tuple(names))  # noqa: E731
    for name in reversed("ijk"):
        nested = px.vmap(nested, axis_name=name)
    # The named axes in front in the order of the tuple and made one, the others behind them.
    order = [
        *("ijk".index(name) for name in names),
        *("ijk".index(name) for name in "ijk" if name not in names),
    ]
    rest = [SIZES[name] for name in "ijk" if name not in names]
    flat = np.transpose(x, [*order, 3, 4, 5]).reshape(total, *rest, 4, total, 5)
    one = lambda v: run(v, "all")  # noqa: E731
    for _ in rest:
        one = px.vmap(one)
    wanted = np.asarray(px.vmap(one, axis_name="all")(flat))
    wanted = wanted.reshape([SIZES[name] for name in names] + list(wanted.shape[1:]))
    wanted = np.transpose(wanted, [*np.argsort(order), *range(3, wanted.ndim)])
    np.testing.assert_allclose(nested(x), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("operation", ["psum", "pmean", "pmax", "pmin"])
@pytest.mark.parametrize("value", ["weak float", "weak integer", "weak row", "strong", "weak examples"])
def test_weak_types_are_those_of_jax(operation, value):
    def result(library):
        weak = library.vmap(lambda _: library.numpy.asarray(1.5))(np.ones(2, np.float32))
        values = {
            "weak float": lambda x: library.numpy.asarray(1.5),
            "weak integer": lambda x: library.numpy.asarray(2),
            "weak row": lambda x: library.numpy.full((3,), 2.0),
            "strong": lambda x: x,
            "weak examples": lambda x: x,
        }
        x = weak if value == "weak examples" else library.numpy.ones(2, "float32")
        reduce = getattr(library.lax, operation)
        out = library.vmap(lambda x: reduce(values[value](x), "i"), axis_name="i")(x)
        return str(out.dtype), out.weak_type

    assert result(px) == result(jax)
