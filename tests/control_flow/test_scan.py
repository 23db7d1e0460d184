"""`scan` is a loop: in value, in all derivatives and batches; errors name the leaf of the carry or of xs."""

from __future__ import annotations

import re

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.control_flow.scan import steps_per_turn
from purax.xla import compiler
from tests.against_jax import ALL, Program, check, numbers

HERE = re.escape(__file__)
x, positive, matrix = numbers((3,)), numbers((3,), 0.5, 2.0, seed=1), numbers((3, 3), seed=2)


def python_scan(f, carry, xs, length=None, reverse=False):
    leaves, tree = px.tree.flatten(xs)
    steps = range(length if length is not None else len(leaves[0]))
    ys = []
    for i in reversed(steps) if reverse else steps:
        carry, y = f(carry, px.tree.unflatten(tree, [leaf[i] for leaf in leaves]))
        ys.append(y)
    if reverse:
        ys.reverse()
    return carry, px.tree.map(lambda *rows: jnp.stack([jnp.asarray(r) for r in rows]), *ys)


BODIES = {
    "number": (lambda c, v: (c * v + 1, c - v), 1.0, x),
    "vector": (lambda c, v: (jnp.tanh(c @ matrix + v), c.sum()), np.ones(3, np.float32), matrix),
    "tree": (
        lambda c, v: ({"s": c["s"] + v[0] * v[1], "t": jnp.sin(c["t"])}, (c["s"], v[1] * 2)),
        {"s": np.float32(0.5), "t": np.ones(2, np.float32)},
        (x, positive),
    ),
    "carry only": (lambda c, v: (c * v, None), 1.5, x),
    "results only": (lambda c, v: (c, v**2), np.float32(0.0), x),
    "integers beside": (lambda c, v: ((c[0] + 1, c[1] * v), c[0]), (0, np.float32(1.0)), x),
    "passed through": (lambda c, v: ((c[1], c[0] * v), (c[0], v)), (np.float32(1.0), np.float32(2.0)), x),
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_is_a_loop(name, reverse):
    f, init, xs = BODIES[name]
    expected = px.tree.leaves(python_scan(f, init, xs, reverse=reverse))
    for unroll in (1, 3):
        for run in (lambda g: g, px.jit):
            scanned = run(lambda a, b: px.lax.scan(f, a, b, reverse=reverse, unroll=unroll))(init, xs)  # noqa: B023
            for given, wanted in zip(px.tree.leaves(scanned), expected, strict=True):
                np.testing.assert_allclose(given, wanted, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in BODIES if name != "integers beside"])
@pytest.mark.parametrize("reverse", [False, True])
def test_derivatives_are_those_of_the_loop(name, reverse):
    f, init, xs = BODIES[name]

    def total(loop):
        def run(a, b):
            leaves = px.tree.leaves(loop(f, a, b, reverse=reverse))
            return sum((jnp.sin(leaf) * (i + 1)).sum() for i, leaf in enumerate(leaves))

        return run

    scanned, looped = total(px.lax.scan), total(python_scan)
    wanted = px.grad(looped, argnums=(0, 1))(init, xs)
    for derivative in (px.grad(scanned, argnums=(0, 1)), px.jit(px.grad(scanned, argnums=(0, 1)))):
        for given, expected in zip(px.tree.leaves(derivative(init, xs)), px.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(given, expected, rtol=2e-5, atol=1e-5)
    directions = px.tree.map(lambda v: jnp.ones_like(jnp.asarray(v)) * 0.5, (init, xs))
    forward = [px.jvp(loop, (init, xs), directions)[1] for loop in (scanned, looped)]
    np.testing.assert_allclose(*forward, rtol=2e-5)
    second = [px.jvp(px.grad(loop, argnums=(0, 1)), (init, xs), directions)[1] for loop in (scanned, looped)]
    for given, expected in zip(px.tree.leaves(second[0]), px.tree.leaves(second[1]), strict=True):
        np.testing.assert_allclose(given, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0), (None, 1)])
def test_batches_are_stacked_loops(axes):
    f = lambda c, v: (jnp.tanh(c * v + 1), c - v)  # noqa: E731
    carry = numbers((2,)) if axes[0] is not None else np.float32(0.5)
    xs = {None: x, 0: numbers((2, 3)), 1: numbers((3, 2))}[axes[1]]
    run = lambda c, v: px.lax.scan(f, c, v)  # noqa: E731
    together = px.vmap(run, in_axes=axes)(carry, xs)
    for i in range(2):
        one = run(
            carry[i] if axes[0] is not None else carry, xs if axes[1] is None else np.take(xs, i, axes[1])
        )
        for all_of_them, single in zip(together, one, strict=True):
            np.testing.assert_allclose(all_of_them[i], single, rtol=1e-6)
    gradient = px.vmap(px.grad(lambda c, v: run(c, v)[0]), in_axes=axes)(carry, xs)
    assert gradient.shape == (2,)


def test_long_loops_are_compiled_once_and_short_ones_not_at_all():
    px.clear_caches()
    px.lax.scan(lambda c, v: (c + v * 3.125, c), 0.0, jnp.ones(20))
    before = compiler.stats.compiles + compiler.stats.disk_hits
    for _ in range(3):
        px.lax.scan(lambda c, v: (c + v * 3.125, c), 0.0, jnp.ones(20))
        px.grad(lambda a: px.lax.scan(lambda c, v: (c * v, c), a, jnp.ones(10))[0])(2.0)
    assert compiler.stats.compiles + compiler.stats.disk_hits == before
    before = compiler.stats.compiles
    for _ in range(3):
        total, _ = px.lax.scan(lambda c, v: (c + v * 3.125, c), 0.0, jnp.ones(2000))
    assert float(total) == 6250.0
    assert compiler.stats.compiles - before <= 1


def test_short_and_long_loops_agree():
    f = lambda c, v: (jnp.sin(c) + v, c)  # noqa: E731
    xs = jnp.linspace(0.0, 1.0, 600)
    _, long = px.lax.scan(f, 0.5, xs)
    _, short = px.lax.scan(f, 0.5, xs[:50])
    np.testing.assert_allclose(long[:50], short, rtol=1e-6)
    assert long.dtype == short.dtype and long.weak_type == short.weak_type


def test_the_body_is_emitted_once_whatever_the_length():
    f = px.jit(lambda v: px.lax.scan(lambda c, u: (jnp.exp(c) * u, c), 0.0, v))
    assert f.lower(jnp.ones(5)).as_text().count("stablehlo.exponential") == f.lower(
        jnp.ones(500)
    ).as_text().count("stablehlo.exponential")


def test_what_does_not_change_from_step_to_step_is_not_stacked():
    """The backward pass of h ↦ tanh(W h) needs W once, not once per step."""
    steps, n = 50, 20

    def loss(w, h):
        return px.lax.scan(lambda c, _: (jnp.tanh(w @ c), None), h, None, length=steps)[0].sum()

    compiled = px.jit(px.grad(loss)).lower(jnp.ones((n, n)), jnp.ones(n)).compile()
    stacked_weights = steps * n * n * 4
    assert compiled.memory_analysis().temp_size_in_bytes < stacked_weights / 2


def test_a_carry_that_starts_as_a_number_takes_the_type_of_the_step():
    carry, ys = px.lax.scan(lambda c, v: (c + v, c), 0, jnp.ones(3, jnp.float16))
    assert carry.dtype == ys.dtype == jnp.float16
    carry, _ = px.lax.scan(lambda c, v: (c + v, c), 0.0, jnp.ones(3))
    assert carry.dtype == jnp.float32 and not carry.weak_type
    carry, _ = px.lax.scan(lambda c, v: (c + 1, c), 0, jnp.ones(3))
    assert carry.weak_type and carry.dtype == jnp.int32
    assert px.lax.scan(lambda c, v: (1.0, None), jnp.float16(0.0), jnp.ones(3))[0].dtype == jnp.float16


def test_no_steps():
    for run in (lambda f: f, px.jit):
        carry, ys = run(lambda c, v: px.lax.scan(lambda a, b: (a + b, (a * b, a > 0)), c, v))(
            2.0, jnp.ones(0)
        )
        assert float(carry) == 2.0 and ys[0].shape == (0,) and ys[1].dtype == bool
    assert float(px.grad(lambda c: px.lax.scan(lambda a, b: (a + b, a), c, jnp.ones(0))[0])(2.0)) == 1.0


PROGRAMS = [
    Program(
        "carry starts without a tangent",
        lambda m, a: m.lax.scan(lambda c, v: (c * 2 + v, c), m.numpy.zeros(()), a),
        (x,),
        ALL,
    ),
    Program(
        "constants differentiated",
        lambda m, a, b: m.lax.scan(lambda c, v: (c * b.sum() + v, a * c), a[0], b),
        (x, positive),
        ALL,
    ),
    Program(
        "some of the carry moves",
        lambda m, a: m.lax.scan(lambda c, v: ((c[0] + v, c[1] * 2, c[2] + 1), c[0] * c[1]), (0.0, 1.0, 0), a),
        (x,),
        ALL,
    ),
    Program(
        "a result that does not move",
        lambda m, a: m.lax.scan(lambda c, v: (c + v, m.numpy.floor(c)), 0.5, a),
        (x,),
        ALL,
    ),
    Program(
        "index in the body",
        lambda m, a: m.lax.scan(lambda c, i: (c + a[i] ** 2, a[i]), 0.0, m.numpy.arange(3)),
        (x,),
        ALL,
    ),
    Program(
        "update in the body",
        lambda m, a: m.lax.scan(
            lambda c, i: (c.at[i].set(c[i] * a[i]), c.sum()), m.numpy.ones(3), m.numpy.arange(3)
        ),
        (x,),
        ALL,
    ),
    Program(
        "reverse twice",
        lambda m, a: m.lax.scan(lambda c, v: (m.numpy.sin(c * v), c), 0.7, a),
        (x,),
        ("reverse_twice",),
    ),
    Program(
        "a scan's derivative in a scan",
        lambda m, a: m.lax.scan(
            lambda c, v: (m.grad(lambda u: m.lax.scan(lambda d, w: (d * u + w, d), c, a)[0])(v) * 0.1, c),
            0.5,
            a,
        ),
        (x,),
        ("value", "jvp", "vjp", "vmap"),
    ),
    Program(
        "complex carry",
        lambda m, a: m.lax.scan(lambda c, v: (c * v * 1j, m.numpy.real(c)), 1 + 0j, a),
        (x,),
        ("value", "jvp", "vjp", "vmap"),
    ),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_as_jax(program):
    check(program)


BAD = {
    "carry of another shape": (
        lambda: px.lax.scan(lambda c, v: ({"h": jnp.ones(4)}, v), {"h": jnp.ones(3)}, x),
        TypeError,
        r"carry\['h'\] is f32\[3\] at the beginning of a step and f32\[4\] at its end",
    ),
    "carry of another dtype": (
        lambda: px.lax.scan(lambda c, v: (c.astype(jnp.float16), v), jnp.float32(0.0), x),
        TypeError,
        r"f32\[\].*f16\[\].*\n  Convert",
    ),
    "carry of another structure": (
        lambda: px.lax.scan(lambda c, v: ((c, c), v), 0.0, x),
        TypeError,
        r"not that of the initial carry.\n  initial: .*\n  returned",
    ),
    "no pair": (lambda: px.lax.scan(lambda c, v: c, 0.0, x), TypeError, "must be a pair"),
    "xs of different lengths": (
        lambda: px.lax.scan(lambda c, v: (c, v), 0.0, {"a": x, "b": jnp.ones((2, 2))}),
        ValueError,
        r"xs\['a'\] has shape \(3,\)\n  xs\['b'\] has shape \(2, 2\)",
    ),
    "length": (lambda: px.lax.scan(lambda c, v: (c, v), 0.0, x, length=4), ValueError, "length is 4"),
    "length is no integer": (
        lambda: px.lax.scan(lambda c, v: (c, v), 0.0, None, length=2.5),
        TypeError,
        "length must be a concrete",
    ),
    "a scalar": (lambda: px.lax.scan(lambda c, v: (c, v), 0.0, (x, 1.0)), ValueError, r"xs\[1\] is a scalar"),
    "nothing to step through": (lambda: px.lax.scan(lambda c, v: (c, v), 0.0), ValueError, "or length"),
    "traced length": (
        lambda: px.jit(lambda n: px.lax.scan(lambda c, v: (c, v), 0.0, None, length=n))(3),
        TypeError,
        "length|integer|index",
    ),
    "xs that are not arrays": (lambda: px.lax.scan(lambda c, v: (c, v), 0.0, ["a"]), TypeError, "'a'"),
    "returns text": (
        lambda: px.lax.scan(lambda c, v: (c, "text"), 0.0, x),
        TypeError,
        r"its result\[1\] is 'text'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_named(name):
    run, kind, message = BAD[name]
    with pytest.raises(kind, match=message) as error:
        run()
    assert re.search(rf"at {HERE}:\d+", str(error.value)), str(error.value)


def test_unroll_is_checked():
    with pytest.raises(ValueError, match="`unroll` must be"):
        px.lax.scan(lambda c, v: (c, v), 0.0, x, unroll=-1)
    assert px.lax.scan(lambda c, v: (c, v), 0.0, x, unroll=True)[1].shape == (3,)
    with pytest.raises(TypeError, match="scan needs a function"):
        px.lax.scan(3, 0.0, x)


def test_a_carry_that_starts_as_a_python_number_takes_the_dtype_of_a_step():
    step = jnp.float32(1.5)
    assert px.lax.scan(lambda c, _: (c + 1.5, None), 0, None, length=3)[0] == 4.5
    assert px.lax.scan(lambda c, _: (c + step, None), 0, None, length=3)[0] == 4.5
    assert px.lax.while_loop(lambda c: c < 4, lambda c: c + 1.5, 0) == 4.5
    with pytest.raises(TypeError, match="carry input and carry output must have equal types"):
        px.lax.scan(lambda c, _: (c + 1.5, None), jnp.int32(0), None, length=3)


def test_a_scan_without_anything_to_carry_or_return():
    """Derivatives of steps that depend on nothing: the programs inside have no arguments or no results."""
    f = lambda x: px.lax.map(lambda _: jnp.round(x), jnp.arange(2))  # noqa: E731
    pushed = lambda x: px.linearize(f, x)[1](x)  # noqa: E731
    for run in (lambda f: f, px.jit):
        primal, tangent = px.jvp(run(pushed), (1.0,), (1.0,))
        np.testing.assert_array_equal(primal, np.zeros(2))
        np.testing.assert_array_equal(tangent, np.zeros(2))


def test_an_unrolled_loop_stays_a_program_that_can_be_compiled():
    body = px.make_jaxpr(lambda c, x: (c + x, c))(1.0, 1.0)
    assert steps_per_turn(body, 10, 4) == 4
    assert steps_per_turn(body, 100, 1000) == 100
    assert 100 < steps_per_turn(body, 10**9, 10**9) < 1000
    nested = px.make_jaxpr(lambda c: px.lax.scan(lambda c, x: (c + 1, None), c, None, 10**6, unroll=True)[0])(
        1.0
    )
    assert steps_per_turn(nested, 10**6, 10**6) < 100  # each of which is hundreds of the inner loop
