"""`cond` and `switch`: one branch runs, derivatives and batches are those of the branch, errors name the leaf."""

from __future__ import annotations

import re

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.xla import compiler
from tests.against_jax import Program, check, numbers

HERE = re.escape(__file__)
x, positive = numbers((3,)), numbers((3,), 0.5, 2.0, seed=1)


def test_only_the_chosen_branch_runs():
    nan = lambda v: jnp.log(-v)  # noqa: E731
    for run in (lambda f: f, px.jit):
        assert float(run(lambda v: px.lax.cond(v > 0, lambda a: a * 2, nan, v))(3.0)) == 6.0
        assert float(run(px.grad(lambda v: px.lax.cond(v > 0, lambda a: a * 2, nan, v)))(3.0)) == 2.0


def test_the_predicate_may_be_a_number():
    for value, expected in (
        (1, 1.0),
        (0, 2.0),
        (-3.5, 1.0),
        (0.0, 2.0),
        (jnp.int8(1), 1.0),
        (np.bool_(False), 2.0),
    ):
        assert float(px.lax.cond(value, lambda: 1.0, lambda: 2.0)) == expected


def test_older_calls():
    assert float(px.lax.cond(True, 3.0, lambda v: v + 1, 4.0, lambda v: v - 1)) == 4.0
    assert float(px.lax.cond(False, 3.0, lambda v: v + 1, 4.0, lambda v: v - 1)) == 3.0
    assert float(px.lax.cond(True, lambda v: v + 1, lambda v: v, operand=2.0)) == 3.0
    assert px.lax.cond(True, lambda v: v is None, lambda v: False, operand=None)


def test_switch_takes_the_nearest_branch():
    branches = [lambda: 0.0, lambda: 10.0, lambda: 20.0]
    assert [float(px.lax.switch(i, branches)) for i in (-5, 0, 1, 2, 9)] == [0.0, 0.0, 10.0, 20.0, 20.0]
    assert [float(px.jit(lambda i: px.lax.switch(i, branches))(i)) for i in (-5, 0, 1, 2, 9)] == [
        0.0,
        0.0,
        10.0,
        20.0,
        20.0,
    ]
    assert px.vmap(lambda i: px.lax.switch(i, branches))(jnp.array([-5, 1, 9])).tolist() == [0.0, 10.0, 20.0]
    assert float(px.lax.switch(0, [lambda v: v * 2], 3.0)) == 6.0


def test_results_of_mixed_weakness_take_the_strong_type():
    result = px.lax.cond(True, lambda: 1.0, lambda: jnp.float16(2.0))
    assert result.dtype == jnp.float16 and not result.weak_type
    assert px.lax.cond(True, lambda: 1.0, lambda: 2.0).weak_type


def test_eager_branches_compile_nothing():
    before = compiler.stats.compiles + compiler.stats.disk_hits
    for i in range(3):
        px.lax.cond(i > 1, lambda v: v + 1, lambda v: v * 2, jnp.ones(3))
        px.grad(lambda v: px.lax.switch(i, [jnp.sin, jnp.cos], v).sum())(jnp.ones(3))  # noqa: B023
    assert compiler.stats.compiles + compiler.stats.disk_hits == before


def test_fresh_lambdas_in_compiled_code_compile_once():
    px.clear_caches()
    before = compiler.stats.compiles
    for _ in range(3):
        px.jit(lambda p, v: px.lax.cond(p, lambda a: a * 7.25, lambda a: a - 1, v))(True, jnp.ones(3))
    assert compiler.stats.compiles - before <= 1


def test_a_batched_predicate_selects_and_costly_branches_are_skipped_as_a_whole():
    calls = px.make_jaxpr(px.vmap(lambda p, v: px.lax.cond(p, lambda a: a @ a, lambda a: a.sum(), v)))(
        jnp.array([True, False]), jnp.ones((2, 3))
    )
    names = [eqn.primitive.name for eqn in calls.eqns]
    assert "cond" in names and "select_n" in names
    cheap = px.make_jaxpr(px.vmap(lambda p, v: px.lax.cond(p, jnp.sin, jnp.cos, v)))(
        jnp.array([True]), jnp.ones((1, 3))
    )
    assert "cond" not in [eqn.primitive.name for eqn in cheap.eqns]

    def long(a):
        for _ in range(70):
            a = jnp.sin(a) * 1.1
        return a

    costly = px.make_jaxpr(px.vmap(lambda p, v: px.lax.cond(p, long, jnp.cos, v)))(
        jnp.array([True]), jnp.ones((1, 3))
    )
    assert [eqn.primitive.name for eqn in costly.eqns].count("cond") == 1


def test_an_unbatched_predicate_stays_a_branch():
    closed = px.make_jaxpr(px.vmap(lambda p, v: px.lax.cond(p, jnp.sin, jnp.cos, v), in_axes=(None, 0)))(
        True, jnp.ones(3)
    )
    assert [eqn.primitive.name for eqn in closed.eqns].count("cond") == 1
    assert "select_n" not in [eqn.primitive.name for eqn in closed.eqns]


def test_branches_that_save_different_things():
    """The residuals of the branches differ in number and type; they share slots."""

    def f(p, v):
        return px.lax.cond(
            p, lambda a: jnp.sin(jnp.exp(a) * a).sum(), lambda a: (a[0] * a[1] * 2).astype(jnp.float32), v
        )

    for p in (True, False):
        direct = (lambda a: jnp.sin(jnp.exp(a) * a).sum()) if p else (lambda a: a[0] * a[1] * 2)
        expected = px.grad(direct)(jnp.asarray(positive))
        for derivative in (px.grad(f, 1), px.jit(px.grad(f, 1)), px.grad(px.jit(f), 1)):
            # An accelerator's cosine and exponential are two units off, of terms that are larger than their sum.
            allowed = 1e-6 if px.devices()[0].platform == "cpu" else 4e-6
            np.testing.assert_allclose(derivative(p, jnp.asarray(positive)), expected, rtol=allowed)


@pytest.mark.parametrize("p", [True, False])
def test_higher_derivatives_through_compiled_branches(p):
    f = lambda p, v: px.lax.cond(p, lambda a: a**4, lambda a: jnp.sin(a), v)  # noqa: E731
    third = px.grad(px.grad(px.grad(px.jit(f), 1), 1), 1)
    expected = 24 * 0.5 if p else -np.cos(0.5)
    assert float(third(p, 0.5)) == pytest.approx(expected, rel=1e-6)
    assert float(px.jit(third)(p, 0.5)) == pytest.approx(expected, rel=1e-6)


PROGRAMS = [
    Program(
        "integers chosen",
        lambda m, n: m.lax.cond(n[0] > 1, lambda k: k * 2, lambda k: k + 1, n),
        (np.array([2, 0]),),
        ("value", "vmap"),
    ),
    Program(
        "one branch passes its operand through",
        lambda m, a, b: m.lax.cond(a[0] > 0, lambda u, v: (u, v), lambda u, v: (v, u * v), a, b),
        (x, positive),
        ("value", "jvp", "vjp", "second", "reverse_twice", "vmap", "vmap_vjp"),
    ),
    Program(
        "a branch that ignores what is differentiated",
        lambda m, a: m.lax.cond(a.sum() > 9, lambda u: u * 2, lambda u: m.numpy.ones(3), a),
        (x,),
        ("value", "jvp", "vjp", "vmap", "vmap_vjp"),
    ),
    Program(
        "trees",
        lambda m, t: m.lax.cond(
            t["a"][0] > 0, lambda p: {"r": p["a"] * p["b"], "n": 1}, lambda p: {"r": p["b"], "n": 2}, t
        ),
        ({"a": x, "b": positive},),
        ("value", "jvp", "vjp", "vmap"),
    ),
    Program(
        "switch in scan",
        lambda m, a: m.lax.scan(
            lambda c, v: (
                (m.lax.switch(c[1] % 3, [lambda s: s * v, lambda s: s + v, m.numpy.sin], c[0]), c[1] + 1),
                c[0],
            ),
            (1.5, 0),
            a,
        ),
        (x,),
        ("value", "jvp", "vjp", "vmap"),
    ),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_as_jax(program):
    check(program)


BAD = {
    "different shapes": (
        lambda: px.lax.cond(True, lambda: {"a": jnp.ones(3)}, lambda: {"a": jnp.ones(4)}),
        TypeError,
        r"result\['a'\] is f32\[4\] in false_fun `<lambda>` and f32\[3\] in true_fun",
    ),
    "different dtypes": (
        lambda: px.lax.cond(True, lambda: jnp.int32(1), lambda: jnp.float32(1)),
        TypeError,
        r"f32\[\] in false_fun.*i32\[\] in true_fun",
    ),
    "different structures": (
        lambda: px.lax.cond(True, lambda: (1.0, 2.0), lambda: 1.0),
        TypeError,
        "must have the same pytree structure",
    ),
    "switch, different shapes": (
        lambda: px.lax.switch(0, [lambda: jnp.ones(3), lambda: jnp.ones(3), lambda: jnp.ones(2)]),
        TypeError,
        r"f32\[3\] in branch 0.*f32\[2\] in branch 2",
    ),
    "an array predicate": (
        lambda: px.lax.cond(jnp.ones(3) > 0, lambda: 1, lambda: 2),
        TypeError,
        r"shape \(3,\).*jnp.where",
    ),
    "no function": (lambda: px.lax.cond(True, 3.0, 4.0), TypeError, "needs two functions"),
    "no branches": (lambda: px.lax.switch(0, []), ValueError, "at least one branch"),
    "a float index": (
        lambda: px.lax.switch(1.5, [lambda: 1, lambda: 2]),
        TypeError,
        r"integer scalar as index: .*, f32\[\]",
    ),
    "an operand that is not an array": (
        lambda: px.lax.cond(True, lambda v: 1, lambda v: 2, "text"),
        TypeError,
        "'text'",
    ),
    "a branch that returns text": (
        lambda: px.lax.cond(True, lambda: "a", lambda: "b"),
        TypeError,
        "must return arrays",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_fit_is_named(name):
    run, kind, message = BAD[name]
    with pytest.raises(kind, match=message) as error:
        run()
    assert re.search(rf"at {HERE}:\d+", str(error.value)), str(error.value)


def test_an_error_inside_of_a_branch_is_the_users():
    with pytest.raises(TypeError, match=rf"incompatible shapes[\s\S]*{HERE}:\d+ \(broken\)"):

        def broken(v):
            return v + jnp.ones(4)

        px.lax.cond(True, broken, lambda v: v, jnp.ones(3))


EDGES = {
    "sqrt": (lambda v, w: jnp.sqrt(v * w), lambda v, w: v * w),
    "log": (lambda v, w: jnp.log(v) * w, lambda v, w: v + w),
    "quotient": (lambda v, w: w / v, lambda v, w: jnp.exp(w) * v),
    "overflow": (lambda v, w: jnp.exp(-v * 1e30) * w, lambda v, w: jnp.sqrt(w) * v),
    "power": (lambda v, w: v**0.5 * w, lambda v, w: v * w),
}


@pytest.mark.parametrize("limit", [0.0, 9.0, -9.0])
@pytest.mark.parametrize("edge", EDGES)
def test_a_branch_that_is_not_taken_has_no_derivative(edge, limit):
    """Derivatives of a batch are those of its elements, though other branches have none there; also of a shared w."""
    xs = np.float32([-1.0, 0.0, 2.0, 4.0, 0.5, -0.0])

    def one(v, w):
        return px.lax.cond(v > limit, *EDGES[edge], v, w)

    def total(xs, w):
        return px.vmap(one, (0, None))(xs, w).sum()

    def nested(xs, w):
        return px.vmap(px.vmap(one, (0, None)), (0, None))(xs.reshape(2, 3), w).sum()

    each = [px.grad(one, (0, 1))(v, 2.0) for v in xs if limit >= 0 or v > 0]
    if limit < 0:
        xs = xs[xs > 0].repeat(2)
        each = [g for g in each for _ in range(2)]
    wanted = (np.stack([g[0] for g in each]), sum(float(g[1]) for g in each))
    for f in (total, nested):
        for run in (lambda f: f, px.jit):
            found = run(px.grad(f, (0, 1)))(xs, 2.0)
            np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5)
            np.testing.assert_allclose(found[1], wanted[1], rtol=1e-5)


def test_weak_types_are_those_of_jax():
    jax = pytest.importorskip("jax")
    f32 = np.float32
    table = {
        "cond": lambda m: m.lax.cond(True, lambda: f32(1), lambda: 2.0),
        "cond turned": lambda m: m.lax.cond(True, lambda: 2.0, lambda: f32(1)),
        "both weak": lambda m: m.lax.cond(True, lambda: 2.0, lambda: 1.0),
        "tree": lambda m: m.lax.cond(True, lambda: (1.0, np.int32(2)), lambda: (f32(1), 3)),
        "operand": lambda m: m.lax.cond(True, lambda x, y: x, lambda x, y: y, 1.0, f32(2)),
        "switch": lambda m: m.lax.switch(1, [lambda: 1.0, lambda: f32(2), lambda: 3.0]),
        "in jit": lambda m: m.jit(lambda p: m.lax.cond(p, lambda: f32(1), lambda: 2.0))(True),
        "scan": lambda m: m.lax.scan(lambda c, v: (c + v, c), 0.0, x),
        "scan of integers": lambda m: m.lax.scan(lambda c, v: (c + v, c), 0, x),
        "scan that swaps": lambda m: m.lax.scan(lambda c, v: ((c[1], c[0]), c), (0.0, f32(1)), x),
        "scan that widens": lambda m: m.lax.scan(lambda c, v: ((c[1], c[0] + v), c), (0, 0.0), x),
        "scan of narrow floats": lambda m: m.lax.scan(lambda c, v: (c + v, c), 0.0, x.astype(np.float16)),
        "while_loop": lambda m: m.lax.while_loop(lambda c: c < 3, lambda c: c + f32(1), 0.0),
        "while_loop, weak": lambda m: m.lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0),
        "while_loop that widens": lambda m: m.lax.while_loop(lambda c: c < 3, lambda c: c + f32(1), 0),
        "while_loop that swaps": lambda m: m.lax.while_loop(
            lambda c: c[2] < 3, lambda c: (c[1], c[0], c[2] + 1), (0.0, f32(1), 0)
        ),
        "fori_loop": lambda m: m.lax.fori_loop(0, 3, lambda i, c: (i, c[1] + 1), (0, 0.0)),
    }
    for name, run in table.items():
        types = [[(str(y.dtype), y.weak_type) for y in jax.tree.leaves(run(m))] for m in (px, jax)]
        assert types[0] == types[1], name


@pytest.mark.parametrize("branches", [(np.float32(1), 2.0), (2.0, np.float32(1)), (2.0, 3.0)], ids=str)
def test_batched_branches_are_as_weak_as_all_of_them(branches):
    import jax

    first, second = branches
    for run in (
        lambda m: m.vmap,
        lambda m: lambda f: m.jit(m.vmap(f)),
        lambda m: lambda f: lambda x: f(x[0]),
    ):
        weak = [
            run(m)(lambda x, m=m: m.lax.cond(x > 0, lambda: first, lambda: second))(m.numpy.ones(2)).weak_type
            for m in (px, jax)
        ]
        assert weak[0] == weak[1]
