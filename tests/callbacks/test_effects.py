"""Callbacks with effects: they happen as often as the program says, in order where that was asked for, whatever the
function is transformed by.
"""

from __future__ import annotations

import time

import jax
import jax.experimental
import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax.experimental import io_callback
from purax.xla import callbacks

FORMS = {"eager": lambda f: f, "jit": purax.jit, "jit of jit": lambda f: purax.jit(purax.jit(f))}
io = {purax: io_callback, jax: jax.experimental.io_callback}


def straight(m, note, x):
    for i in range(4):
        note(i, x)
    return x


def in_scan(m, note, x):
    def step(c, v):
        note("step", c)
        m.lax.cond(c % 2 == 0, lambda: note("even", c), lambda: None)
        note("end", v)
        return c + 1, c

    return m.lax.scan(step, x, m.numpy.arange(3))[0]


def in_while(m, note, x):
    def condition(i):
        note("test", i)
        return i < 3

    return m.lax.while_loop(condition, lambda i: (note("turn", i), i + 1)[1], x)


def in_loops(m, note, x):
    def outer(i, c):
        note("outer", i)
        return m.lax.while_loop(lambda v: v < i, lambda v: (note("inner", v), v + 1)[1], c * 0)

    return m.lax.fori_loop(0, 3, outer, x)


def in_calls(m, note, x):
    inner = m.jit(lambda v: (note("call", v), v + 1)[1])
    custom = m.custom_jvp(lambda v: (note("custom", v), v * 2)[1])
    custom.defjvp(lambda p, t: (custom(*p), t[0]))
    x = inner(inner(x))
    return inner(m.checkpoint(lambda v: (note("saved", v), v)[1])(custom(x)))


def in_switch(m, note, x):
    for i in range(3):
        m.lax.switch(i, [lambda: note("zero", x), lambda: None, lambda: note("two", x)])
    return x


def unordered_in_branch(m, note, x):
    return m.lax.cond(x == 0, lambda v: v, lambda v: (note("never", v), v)[1], x)


PROGRAMS = (straight, in_scan, in_while, in_loops, in_calls, in_switch, unordered_in_branch)


def log_of(m, program, form, through):
    log = []

    def note(label, value):
        through(lambda v: log.append((label, int(v))), value)

    form(lambda x: program(m, note, x))(np.int32(0))
    m.effects_barrier()
    return log


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_ordered_effects_keep_the_order_of_the_program(program, form):
    expected = log_of(jax, program, jax.jit, lambda f, v: io[jax](f, None, v, ordered=True))
    assert log_of(purax, program, form, lambda f, v: io_callback(f, None, v, ordered=True)) == expected
    debug = log_of(purax, program, form, lambda f, v: purax.debug.callback(f, v, ordered=True))
    assert debug == expected
    unordered = log_of(purax, program, form, lambda f, v: io_callback(f, None, v))
    assert sorted(map(str, unordered)) == sorted(map(str, expected))


def test_ordered_effects_of_several_programs_follow_one_another():
    log = []
    slow = purax.jit(
        lambda x: io_callback(lambda v: (time.sleep(0.05), log.append("slow")), None, x @ x, ordered=True)
    )
    fast = purax.jit(lambda x: io_callback(lambda v: log.append("fast"), None, x, ordered=True))
    x = jnp.ones((300, 300))
    for _ in range(3):
        slow(x)
        fast(x)
        io_callback(lambda: log.append("eager"), None, ordered=True)
    purax.effects_barrier()
    assert log == ["slow", "fast", "eager"] * 3


def test_results_of_io_callbacks_are_used():
    state = {"n": 0}

    def count():
        state["n"] += 1
        return np.int32(state["n"])

    def f(x):
        steps = lambda c, _: (c + io_callback(count, purax.ShapeDtypeStruct((), np.int32), ordered=True), c)  # noqa: E731
        return purax.lax.scan(steps, x, None, length=3)[0]

    assert int(purax.jit(f)(0)) == 6
    assert int(f(0)) == 4 + 5 + 6


def test_unused_effects_survive_every_form_and_happen_once():
    def loss(x):
        purax.debug.callback(lambda v: seen.append(float(v)), x * 2)
        return jnp.sin(x)

    forms = {
        "jit": lambda: purax.jit(loss)(1.0),
        "grad": lambda: purax.grad(loss)(1.0),
        "jit of grad": lambda: purax.jit(purax.grad(loss))(1.0),
        "grad of jit": lambda: purax.grad(purax.jit(loss))(1.0),
        "jvp": lambda: purax.jvp(loss, (1.0,), (1.0,)),
        "jit of jvp": lambda: purax.jit(lambda x: purax.jvp(loss, (x,), (x,)))(1.0),
        "grad of grad": lambda: purax.grad(purax.grad(loss))(1.0),
        "checkpoint": lambda: purax.grad(purax.checkpoint(loss))(1.0),
        "jit of checkpoint": lambda: purax.jit(purax.grad(purax.checkpoint(loss)))(1.0),
        "scan": lambda: purax.jit(
            purax.grad(lambda x: purax.lax.scan(lambda c, _: (loss(c), None), x, None, 1)[0])
        )(1.0),
        "while": lambda: purax.jvp(
            lambda x: purax.lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, loss(c[1])), (0, x))[1],
            (1.0,),
            (1.0,),
        ),
        "linearize": lambda: purax.linearize(
            lambda x: purax.lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, loss(c[1])), (0, x))[1],
            1.0,
        )[1](1.0),
        "value_and_grad": lambda: purax.jit(purax.value_and_grad(loss))(1.0),
        "unrelated": lambda: purax.jit(lambda x: purax.debug.callback(lambda: seen.append(2.0)))(1.0),
    }
    for name, run in forms.items():
        seen: list[float] = []
        run()
        purax.effects_barrier()
        assert seen == [2.0], (name, seen)


def test_vmap_calls_for_one_example_after_the_other():
    for form in FORMS.values():
        for ordered in (False, True):
            seen = []

            def f(x, y, seen=seen, ordered=ordered):
                purax.debug.callback(lambda a, b: seen.append((float(a), b.shape)), x, y, ordered=ordered)

            form(purax.vmap(f, in_axes=(0, None)))(jnp.arange(3.0), jnp.ones(2))
            purax.effects_barrier()
            assert seen == [(0.0, (2,)), (1.0, (2,)), (2.0, (2,))]
    double = purax.jit(
        purax.vmap(lambda x: io_callback(lambda v: v * 2, purax.ShapeDtypeStruct((), np.float32), x))
    )
    np.testing.assert_array_equal(double(jnp.arange(3.0)), [0, 2, 4])


REFUSED = [
    (
        lambda x: purax.vmap(lambda v: io_callback(print, None, v, ordered=True))(x),
        ValueError,
        "ordered=True",
    ),
    (
        lambda x: purax.grad(lambda v: (io_callback(print, None, v), v)[1])(x[0]),
        ValueError,
        "has no derivative",
    ),
    (lambda x: io_callback("text", None), TypeError, "needs a function"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_has_no_meaning_is_refused(number):
    function, kind, words = REFUSED[number]
    with pytest.raises(kind, match=words) as info:
        function(jnp.arange(3.0))
    assert "test_effects.py" in str(info.value)


def test_checkpoint_does_not_repeat_an_io_callback():
    calls = []

    def f(x):
        scale = io_callback(
            lambda: (calls.append(1), np.float32(2 + len(calls)))[1], purax.ShapeDtypeStruct((), np.float32)
        )
        return jnp.sin(x * scale)

    np.testing.assert_allclose(purax.jit(purax.grad(purax.checkpoint(f)))(1.0), 3 * np.cos(3.0), rtol=1e-5)
    assert calls == [1]


def fail(v):
    raise ArithmeticError("from a callback")


def test_failures_reach_the_user_once():
    quiet = purax.jit(lambda x: purax.debug.callback(fail, x))
    with pytest.raises(ArithmeticError, match="from a callback"):
        quiet(1.0)
        purax.effects_barrier()
    purax.effects_barrier()
    slow = jnp.ones((400, 400))
    later = purax.jit(lambda x: io_callback(fail, purax.ShapeDtypeStruct((), np.float32), x))
    with pytest.raises(ArithmeticError):
        np.asarray(later((slow @ slow @ slow).sum()))
    purax.effects_barrier()
    ordered = purax.jit(lambda x: io_callback(fail, None, x, ordered=True))
    with pytest.raises(ArithmeticError):
        ordered((slow @ slow).sum())
        purax.jit(lambda x: io_callback(lambda v: None, None, x, ordered=True))(1.0)
        purax.effects_barrier()
    purax.effects_barrier()
    assert float(purax.jit(lambda x: x + 1)(1.0)) == 2


def test_error_if_raises_where_the_condition_holds():
    f = lambda x: purax.error_if(x, x > 2, "too large") * 2  # noqa: E731
    forms = {
        "eager": f,
        "jit": purax.jit(f),
        "vmap": purax.vmap(f),
        "jit of vmap": purax.jit(purax.vmap(f)),
        "grad": lambda x: purax.grad(lambda v: f(v).sum())(x),
        "jit of grad": purax.jit(lambda x: purax.grad(lambda v: f(v).sum())(x)),
        "scan": purax.jit(lambda x: purax.lax.scan(lambda c, v: (c, f(v)), 0, x)[1]),
    }
    for name, form in forms.items():
        expected = [2, 2, 2] if "grad" in name else [0, 2, 4]
        np.testing.assert_array_equal(form(jnp.arange(3.0)), expected, name)
        with pytest.raises(purax.errors.CheckFailedError, match="too large\n.*test_effects.py"):
            form(jnp.arange(4.0)).block_until_ready()
            purax.effects_barrier()
    assert purax.error_if({"a": 1}, False, "fine") == {"a": 1}
    with pytest.raises(TypeError, match="must be a string"):
        purax.error_if(1, True, 3)


def test_vmap_has_the_effects_of_the_examples_that_take_a_branch_or_go_on():
    """jax runs debug callbacks for all examples there, and refuses io callbacks."""
    number = purax.ShapeDtypeStruct((), np.float32)

    def branches(x):
        note = lambda v: (seen.append(float(v)), np.float32(v * 10))[1]  # noqa: E731
        inner = purax.jit(lambda v: io_callback(note, number, v))
        return purax.lax.cond(x > 1, lambda v: inner(v) + 1, lambda v: -v, x)

    def loop(x):
        def turn(c):
            purax.debug.callback(lambda i, n: seen.append((int(n), int(i))), c, x)
            return c + 1

        return purax.lax.while_loop(lambda c: c < x, turn, 0)

    for form in FORMS.values():
        seen: list = []
        np.testing.assert_array_equal(form(purax.vmap(branches))(jnp.arange(4.0)), [0, -1, 21, 31])
        purax.effects_barrier()
        assert seen == [2.0, 3.0]
        seen = []
        np.testing.assert_array_equal(form(purax.vmap(loop))(jnp.arange(3)), [0, 1, 2])
        purax.effects_barrier()
        assert sorted(seen) == [(1, 0), (2, 0), (2, 1)]

    def tested(x):
        return purax.lax.while_loop(
            lambda c: (io_callback(lambda v: None, None, c), c < x)[1], lambda c: c + 1, 0
        )

    with pytest.raises(NotImplementedError, match="io_callback"):
        purax.vmap(tested)(jnp.arange(3))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, TimeoutError])
def test_an_interrupted_wait_for_effects_can_be_taken_up_again(kind):
    """Also by an exception that is no interrupt, as handlers that limit the time raise."""

    class Token:
        waits = 0

        def block_until_ready(self):
            self.waits += 1
            if self.waits == 1:
                raise kind

    token = Token()
    callbacks.add_token(token, ordered=True)
    with pytest.raises(kind):
        callbacks.wait_for_ordered()
    callbacks.wait_for_ordered()
    assert token.waits == 2
    purax.effects_barrier()
    assert token.waits == 3
