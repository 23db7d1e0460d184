"""Counts of rooflines are jax's, for single operations and for collectives over a mesh of shapes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.compat.extension import Primitive
from purax.core.avals import ShapedArray
from purax.experimental.roofline import (
    RooflineResult,
    register_roofline,
    register_standard_roofline,
    roofline,
    roofline_and_grad,
)

jax = pytest.importorskip("jax")
X, Y = np.ones((4, 8), np.float32), np.ones((8, 16), np.float32)

PROGRAMS = {
    "product": (lambda n, lax, x, y: x @ y, X, Y),
    "sum of functions": (lambda n, lax, x: n.sin(x) + n.cos(x), X),
    "constant": (lambda n, lax, x: x + 1, X),
    "sum": (lambda n, lax, x: x.sum(), X),
    "sum of a function": (lambda n, lax, x: n.exp(x).sum(0), X),
    "moves": (lambda n, lax, x: x.T.reshape(-1)[1:3], X),
    "cumulative": (lambda n, lax, x: n.cumsum(x, 0), X),
    "conversion": (lambda n, lax, x: x.astype("bfloat16") * 2, X),
    "power": (lambda n, lax, x: x**3, X),
    "maximum": (lambda n, lax, x: n.maximum(x, 0), X),
    "sort": (lambda n, lax, x: n.sort(x), X),
    "selection": (lambda n, lax, x: lax.select_n(x > 0, x, x), X),
    "scan": (lambda n, lax, x: lax.scan(lambda c, a: (c + a, a * 2), x[0], x), X),
    "branches": (lambda n, lax, x: lax.cond(x[0, 0] > 0, n.sin, n.cos, x), X),
    "convolution": (
        lambda n, lax, x, k: lax.conv(x, k, (1, 1), "SAME"),
        np.ones((1, 3, 8, 8), np.float32),
        np.ones((4, 3, 3, 3), np.float32),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_counts_of_operations_are_those_of_jax(name):
    from jax.experimental import roofline as theirs

    function, *arguments = PROGRAMS[name]
    out, mine = roofline(lambda *xs: function(jnp, px.lax, *xs))(*map(jnp.asarray, arguments))
    other_out, other = theirs.roofline(lambda *xs: function(jax.numpy, jax.lax, *xs))(*arguments)
    assert dataclasses.asdict(mine) == dataclasses.asdict(other)
    shapes = [x.shape for x in px.tree.leaves(out)]
    assert shapes == [x.shape for x in jax.tree.leaves(other_out)]


COLLECTIVES = {
    "psum": (lambda lax, x: lax.psum(x, "x"), "x", ()),
    "psum_scatter": (lambda lax, x: lax.psum_scatter(x, "x", tiled=True), None, "x"),
    "ppermute": (lambda lax, x: lax.ppermute(x, "x", [(0, 1)]), "x", "x"),
    "all_gather": (lambda lax, x: lax.all_gather(x, "x"), "x", "x"),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_counts_of_collectives_are_those_of_jax(name):
    from jax.experimental import roofline as theirs

    function, given, wanted = COLLECTIVES[name]

    def count(module, library, spec):
        mesh = library.sharding.AbstractMesh((4,), ("x",), (library.sharding.AxisType.Auto,))
        out_specs = spec(*wanted) if wanted == () else spec(wanted)
        run = module.roofline(lambda x: function(library.lax, x), mesh, spec(given), out_specs)
        return run(library.ShapeDtypeStruct((4, 8), np.float32))[1]

    import purax.experimental.roofline as own

    mine, other = count(own, px, px.P), count(theirs, jax, jax.sharding.PartitionSpec)
    assert mine.ici_bytes == other.ici_bytes and mine.ici_latency == other.ici_latency


def test_the_backward_pass_is_counted_by_itself():
    mesh = px.sharding.AbstractMesh((4,), ("x",))
    run = roofline_and_grad(lambda x, y: x @ y, mesh, (px.P("x"), px.P()), px.P("x"))
    out, forward, backward = run(
        px.ShapeDtypeStruct((4, 8), jnp.float32), px.ShapeDtypeStruct((8, 16), jnp.float32)
    )
    assert out.shape == (4, 16)
    assert (forward.flops, backward.flops) == (256, 512)  # two products, and no forward one
    # The gradient of y, 512 bytes, is summed: three quarters are sent to scatter it, and as many to gather it.
    assert backward.ici_bytes == {"x": 2 * 512 * 3 // 4} and backward.ici_latency == {"x": 8}


def test_primitives_of_others_need_a_rule():
    primitive = Primitive("mystery")
    primitive.def_abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))
    x = px.ShapeDtypeStruct((3,), jnp.float32)
    with pytest.raises(NotImplementedError, match="no rule for `mystery`"):
        roofline(primitive.bind)(x)
    register_roofline(primitive)(lambda context, x: RooflineResult(flops=7 * x.size, hbm_bytes=x.bytes))
    assert roofline(primitive.bind)(x)[1].flops == 21
    register_standard_roofline(primitive)
    assert roofline(primitive.bind)(x)[1].flops == 0


def test_pinned_operands_are_not_read():
    run = roofline(lambda x, y: x @ y, pin_lhs_in_vmem=True)
    assert run(jnp.asarray(X), jnp.asarray(Y))[1].hbm_bytes == Y.nbytes + 4 * 16 * 4
