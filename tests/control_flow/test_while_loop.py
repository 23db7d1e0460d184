"""`while_loop` and `fori_loop`: values, forward derivatives, batches whose elements stop on their own."""

from __future__ import annotations

import re

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.xla import compiler
from tests.against_jax import ALL, Program, check, numbers

HERE = re.escape(__file__)
x, positive = numbers((3,)), numbers((3,), 0.5, 2.0, seed=1)
integers = np.array([3, 5, 0], np.int32)


def collatz(n):
    return px.lax.while_loop(
        lambda s: s[0] > 1, lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (n, 0)
    )[1]


def steps(n):
    count = 0
    while n > 1:
        n, count = n // 2 if n % 2 == 0 else 3 * n + 1, count + 1
    return count


def test_values_short_long_compiled_and_batched():
    numbers_to_try = [1, 7, 27, 97]
    expected = [steps(n) for n in numbers_to_try]
    assert [int(collatz(n)) for n in numbers_to_try] == expected
    assert [int(px.jit(collatz)(n)) for n in numbers_to_try] == expected
    assert px.vmap(collatz)(jnp.array(numbers_to_try)).tolist() == expected
    assert px.jit(px.vmap(collatz))(jnp.array(numbers_to_try)).tolist() == expected


def test_fresh_lambdas_compile_once_or_not_at_all():
    px.clear_caches()
    before = compiler.stats.compiles + compiler.stats.disk_hits
    for _ in range(3):
        px.lax.while_loop(lambda c: c < 10, lambda c: c + 3, 0)
        px.lax.fori_loop(0, 5, lambda i, c: c * 2, 1.0)
    assert compiler.stats.compiles + compiler.stats.disk_hits == before
    for _ in range(3):
        assert int(px.lax.while_loop(lambda c: c < 5000, lambda c: c + 3, 0)) == 5001
    assert compiler.stats.compiles + compiler.stats.disk_hits - before <= 1


def test_elements_of_a_batch_keep_their_value_once_they_stop():
    f = lambda limit, start: px.lax.while_loop(lambda c: c < limit, lambda c: c * 2, start)  # noqa: E731
    limits, starts = jnp.array([1.0, 10.0, 100.0]), jnp.array([3.0, 3.0, 3.0])
    assert px.vmap(f)(limits, starts).tolist() == [3.0, 12.0, 192.0]
    assert px.vmap(f, in_axes=(0, None))(limits, 3.0).tolist() == [3.0, 12.0, 192.0]
    assert px.vmap(f, in_axes=(None, 0))(10.0, jnp.array([1.0, 20.0])).tolist() == [16.0, 20.0]
    # An element that stops must not be poisoned by what the body computes on it afterwards.
    safe = px.vmap(
        lambda n: px.lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, c[1] + 1 / c[0]), (n, 0.0))[1]
    )
    np.testing.assert_allclose(safe(jnp.array([0.0, 1.0, 3.0])), [0.0, 1.0, 1 + 1 / 2 + 1 / 3], rtol=1e-6)


def test_a_condition_that_is_the_same_for_all_stays_a_scalar():
    closed = px.make_jaxpr(
        px.vmap(lambda v: px.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, v))[1])
    )(jnp.ones(4))
    (eqn,) = [eqn for eqn in closed.eqns if eqn.primitive.name == "while"]
    assert [aval.shape for aval in eqn.params["cond_jaxpr"].out_avals] == [()]
    assert "reduce_or" not in str(closed)


def test_forward_derivatives():
    power = lambda v: px.lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * v), (0, 1.0))[1]  # noqa: E731
    for f in (power, px.jit(power)):
        value, tangent = px.jvp(f, (3.0,), (1.0,))
        assert float(value) == 81.0 and float(tangent) == 108.0
        assert float(px.jacfwd(px.jacfwd(f))(3.0)) == 108.0
    assert px.vmap(px.jacfwd(power))(jnp.array([1.0, 2.0])).tolist() == [4.0, 32.0]


def test_reverse_derivatives():
    f = lambda v: px.lax.while_loop(lambda c: c < 10.0, lambda c: c * v, v)  # noqa: E731
    counted = lambda v: px.lax.fori_loop(0, v.astype(int), lambda i, c: c * v, v)  # noqa: E731
    for g, slope in ((f, 27.0), (px.jit(f), 27.0), (px.jit(counted), 108.0)):
        assert float(px.grad(g)(jnp.float32(3.0))) == slope
    assert px.grad(lambda v: px.vmap(f)(v).sum())(jnp.array([3.0, 2.0, 11.0])).tolist() == [27.0, 32.0, 1.0]
    assert float(px.grad(lambda v: jnp.floor(f(v)) * v)(3.0)) == 27.0
    assert float(px.grad(lambda v: px.lax.fori_loop(0, 3, lambda i, c: c * v, v))(2.0)) == 32.0


def test_a_loop_that_ends_by_what_is_transposed_is_refused():
    def f(v):
        return px.lax.while_loop(lambda c: c[0] < 4.0, lambda c: (c[0] + v, c[1]), (v, v))[1]

    with pytest.raises(ValueError, match="not linear"):
        px.linear_transpose(f, 1.0)(1.0)


PROGRAMS = [
    Program("counted", lambda m, a: m.lax.fori_loop(1, 4, lambda i, c: c * i + a, a), (x,), ALL),
    Program(
        "counted, with an index",
        lambda m, a: m.lax.fori_loop(0, 3, lambda i, c: c + a[i] ** 2, 0.0),
        (x,),
        ALL,
    ),
    Program("counted, no steps", lambda m, a: m.lax.fori_loop(5, 2, lambda i, c: c * 0, a), (x,), ALL),
    Program(
        "counted, unrolled",
        lambda m, a: m.lax.fori_loop(0, 4, lambda i, c: m.numpy.sin(c), a, unroll=2),
        (x,),
        ALL,
    ),
    Program(
        "counted, tree",
        lambda m, a: m.lax.fori_loop(0, 3, lambda i, c: (c[1], c[0] * a), (a, a + 1)),
        (x,),
        ALL,
    ),
    Program(
        "traced bounds",
        lambda m, a, n: m.lax.fori_loop(n[2], n[0], lambda i, c: c * a + i, a),
        (x, integers),
        ("value", "jvp", "vmap"),
    ),
    Program(
        "newton",
        lambda m, a: (
            m.lax.while_loop(lambda s: m.numpy.abs(s**2 - 2.0) > 1e-3, lambda s: 0.5 * (s + 2.0 / s), 1.0) * a
        ),
        (x,),
        ("value", "jvp", "vjp", "vmap"),
    ),
    Program(
        "condition that captures",
        lambda m, a, b: m.lax.while_loop(
            lambda c: c.sum() < b.sum() * 5, lambda c: c + m.numpy.abs(a) + 0.1, a
        ),
        (x, positive),
        ("value", "jvp", "vmap"),
    ),
    Program(
        "while in scan",
        lambda m, a: m.lax.scan(
            lambda c, v: (m.lax.while_loop(lambda s: s < 3.0, lambda s: s + v * v + 0.5, c), c), 0.0, a
        ),
        (x,),
        ("value", "jvp", "vmap"),
    ),
    Program(
        "scan in while",
        lambda m, a: m.lax.while_loop(
            lambda s: s[0] < 2,
            lambda s: (s[0] + 1, m.lax.scan(lambda c, v: (c * v, c), s[1], a)[0]),
            (0, a[0]),
        ),
        (x,),
        ("value", "jvp", "vmap"),
    ),
    Program(
        "cond in while",
        lambda m, a: m.lax.while_loop(
            lambda s: s[0] < 5,
            lambda s: (s[0] + 1, m.lax.cond(s[0] % 2 == 0, m.numpy.sin, lambda v: v * a, s[1])),
            (0, a),
        ),
        (x,),
        ("value", "jvp", "vmap"),
    ),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_as_jax(program):
    check(program)


BAD = {
    "value of another shape": (
        lambda: px.lax.while_loop(lambda c: True, lambda c: {"a": jnp.ones(4)}, {"a": jnp.ones(3)}),
        TypeError,
        r"carry\['a'\] is f32\[3\] at the beginning of a step and f32\[4\] at its end",
    ),
    "value of another structure": (
        lambda: px.lax.while_loop(lambda c: True, lambda c: (c, c), 1.0),
        TypeError,
        "must have the same pytree structure",
    ),
    "condition is a vector": (
        lambda: px.lax.while_loop(lambda c: c < 3, lambda c: c, jnp.ones(3)),
        TypeError,
        r"boolean scalar, .* bool\[3\]",
    ),
    "condition is a number": (
        lambda: px.lax.while_loop(lambda c: c, lambda c: c, 1.0),
        TypeError,
        r"boolean scalar, .* f32\[\]",
    ),
    "float bounds": (
        lambda: px.lax.fori_loop(0.0, 3, lambda i, c: c, 1.0),
        TypeError,
        "lower must be an integer scalar",
    ),
    "bounds of different types": (
        lambda: px.lax.fori_loop(jnp.int8(0), jnp.int16(3), lambda i, c: c, 1.0),
        TypeError,
        r"lower is i8\[\] and upper i16\[\]",
    ),
    "unroll with traced bounds": (
        lambda: px.jit(lambda n: px.lax.fori_loop(0, n, lambda i, c: c, 1.0, unroll=2))(3),
        ValueError,
        "unroll needs concrete",
    ),
    "body of another type": (
        lambda: px.lax.fori_loop(0, 3, lambda i, c: c.astype(jnp.float16), jnp.float32(1.0)),
        TypeError,
        r"f32\[\].*f16\[\]",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_named(name):
    run, kind, message = BAD[name]
    with pytest.raises(kind, match=message) as error:
        run()
    assert re.search(rf"at {HERE}:\d+", str(error.value)), str(error.value)


def test_functions_are_checked():
    with pytest.raises(TypeError, match="should be callable: cond_fun"):
        px.lax.while_loop(3, lambda c: c, 1.0)
    with pytest.raises(TypeError, match="body_fun argument should be callable"):
        px.lax.fori_loop(0, 3, None, 1.0)


def test_without_compilation_a_traced_loop_is_staged():
    """With `disable_jit` a loop runs in Python where its condition is known, else as a program."""
    halved = lambda x: px.lax.while_loop(lambda c: c > 1, lambda c: c / 2, x)  # noqa: E731
    x = jnp.array([5.0, 0.5])
    with px.disable_jit():
        assert float(halved(5.0)) == 0.625
        assert px.vmap(halved)(x).tolist() == [0.625, 0.5]
        assert float(px.jvp(halved, (5.0,), (1.0,))[1]) == 0.125
