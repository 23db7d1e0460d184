"""`while_loop` and `fori_loop` with traced bounds: equal to jax's; reverse mode is refused with advice."""

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.xla import compiler
from tests.control_flow.peers import FORWARD_ONLY, agree

X = np.array([0.5, 1.5, 2.5], np.float32)

PROGRAMS = {
    "double": lambda n: lambda x: n.lax.while_loop(lambda v: n.jnp.sum(v) < 50, lambda v: v * 2, x),
    "captured": lambda n: lambda x: n.lax.while_loop(lambda v: v[0] < x[1] * 8, lambda v: v + x[0], x),
    "tree": lambda n: lambda x: n.lax.while_loop(
        lambda s: s["i"] < 4, lambda s: {"i": s["i"] + 1, "v": n.jnp.sin(s["v"]) * x}, {"i": 0, "v": x}
    )["v"],
    "never": lambda n: lambda x: n.lax.while_loop(lambda v: False, lambda v: v + 1, x),
    "by element": lambda n: lambda x: n.px.vmap(lambda e: n.lax.while_loop(lambda v: v < 9, lambda v: v * 3, e))(x),
    "traced bound": lambda n: lambda x: n.lax.fori_loop(
        0, n.jnp.argmax(x) + 1, lambda i, v: v * (i + 2.0), x
    ),
}


@pytest.mark.parametrize("how", FORWARD_ONLY)
@pytest.mark.parametrize("what", PROGRAMS)
def test_agrees_with_jax(what, how):
    agree(lambda n: FORWARD_ONLY[how](n, PROGRAMS[what](n)), X)


def test_a_long_eager_loop_is_compiled_on_the_way():
    before = compiler.stats.compiles + compiler.stats.disk_hits + compiler.stats.memory_hits
    assert int(px.lax.while_loop(lambda i: i < 100_000, lambda i: i + 1, 0)) == 100_000
    assert compiler.stats.compiles + compiler.stats.disk_hits + compiler.stats.memory_hits <= before + 1


def test_a_short_eager_loop_compiles_nothing():
    before = compiler.stats.compiles
    assert float(px.lax.while_loop(lambda v: v < 10, lambda v: v + 1.5, 0.0)) == 10.5
    assert compiler.stats.compiles == before


def test_reverse_mode_is_refused_with_advice():
    f = lambda x: px.lax.while_loop(lambda v: v < 10, lambda v: v * 2, x)  # noqa: E731
    with pytest.raises(ValueError, match="scan") as found:
        px.grad(f)(1.0)
    assert "jvp" in str(found.value)
    assert float(px.jvp(f, (1.0,), (1.0,))[1]) == 16.0


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: px.lax.while_loop(lambda v: v, lambda v: v + 1, 1.0), TypeError, ["boolean scalar", "f32[]"]),
        (lambda: px.lax.while_loop(lambda v: v < 3, lambda v: (v, v), 1.0), TypeError, ["structure"]),
        (
            lambda: px.lax.while_loop(lambda v: v[0] < 3, lambda v: jnp.ones(3), jnp.ones(2)),
            TypeError,
            ["f32[2]", "f32[3]"],
        ),
        (lambda: px.lax.while_loop(1, lambda v: v, 1.0), TypeError, ["cond_fun"]),
        (lambda: px.lax.fori_loop(0.5, 3, lambda i, v: v, 1.0), TypeError, ["lower", "integer"]),
        (lambda: px.lax.fori_loop(0, jnp.ones(2, int), lambda i, v: v, 1.0), TypeError, ["upper", "i32[2]"]),
    ],
)
def test_bad_input(call, kind, words):
    with pytest.raises(kind) as found:
        call()
    for word in words:
        assert word in str(found.value)
