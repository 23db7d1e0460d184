"""`debug.print`, `debug.log`, `debug.callback` and `debug.breakpoint`: what the user sees, eager and compiled."""

from __future__ import annotations

import bdb
import io
import logging

import jax
import numpy as np
import pytest

import purax
import purax.numpy as jnp

PRINTS = [
    ("nothing", (), {}),
    ("{}", (1,), {}),
    ("{} and {}", (1.5, np.float32(2)), {}),
    ("{1} {0}", (np.arange(3), np.ones((2, 2), np.float32)), {}),
    ("{x:.3f} {y:>6}", (), {"x": np.float32(0.1), "y": np.int32(3)}),
    ("{x[0]} {x.shape}", (), {"x": np.arange(4.0, dtype=np.float32)}),
    ("{} {}", (True, np.float32("nan")), {}),
]
# Braces that stand for themselves: jax prints the format string.
WRONG_IN_JAX = [("{{}} {}", (True,), {}, "{} True\n")]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("number", range(len(PRINTS)))
def test_prints_what_jax_prints(number, compiled, capfd):
    fmt, args, kwargs = PRINTS[number]
    shown = []
    for m in (purax, jax):
        run = lambda a, k, m=m: m.debug.print(fmt, *a, **k)  # noqa: E731
        (m.jit(run) if compiled else run)(args, kwargs)
        m.effects_barrier()
        shown.append(capfd.readouterr().out)
    assert shown[0] == shown[1]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_prints_as_python_formats(compiled, capfd):
    for fmt, args, kwargs, expected in [
        *WRONG_IN_JAX,
        ("{:{w}}|", (3,), {"w": "5"}, "    3|\n"),
        ("{t}", (), {"t": {"a": [np.int32(2)]}}, "{'a': [array(2, dtype=int32)]}\n"),
    ]:
        run = lambda *a, fmt=fmt, kwargs=kwargs: purax.debug.print(fmt, *a, **kwargs)  # noqa: E731
        (purax.jit(run) if compiled else run)(*args)
        purax.effects_barrier()
        assert capfd.readouterr().out == expected


def test_text_and_other_objects_are_shown_as_they_are(capfd):
    purax.jit(lambda x: purax.debug.print("{label}: {} {}", x, None, label="loss"))(2.0)
    purax.effects_barrier()
    assert capfd.readouterr().out == "loss: 2.0 None\n"


def test_print_options_are_those_of_the_caller(capfd):
    with np.printoptions(precision=2):
        purax.jit(lambda x: purax.debug.print("{}", x))(jnp.array([1 / 3]))
    purax.effects_barrier()
    assert capfd.readouterr().out == "[0.33]\n"


MISTAKES = [
    (("{} {}", 1), {}, IndexError, "place for argument 1"),
    (("{a}",), {"b": 1}, KeyError, "'a'"),
    (("text", 1), {}, ValueError, "no place for the argument 1"),
    (("text",), {"x": 1}, ValueError, "no place for x"),
    (("{",), {}, ValueError, "not valid"),
    ((3,), {}, TypeError, "format string"),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_formats_that_do_not_fit_are_refused_where_they_are_written(number):
    args, kwargs, kind, words = MISTAKES[number]
    with pytest.raises(kind, match=words):
        purax.jit(lambda: purax.debug.print(*args, **kwargs))()


def test_options_can_be_given_first(capfd):
    purax.debug.print(ordered=True)("{}", 3)
    purax.debug.callback(ordered=True)(print, "x", 4)
    assert capfd.readouterr().out == "3\nx 4\n"


def test_order_of_prints_in_a_loop(capfd):
    purax.jit(
        lambda n: purax.lax.fori_loop(0, n, lambda i, c: (purax.debug.print("{}", i, ordered=True), c)[1], 0)
    )(4)
    purax.effects_barrier()
    assert capfd.readouterr().out == "0\n1\n2\n3\n"


def test_log_goes_to_the_logger(caplog):
    with caplog.at_level(logging.INFO, "purax.debug"):
        purax.jit(lambda x: purax.debug.log("value {}", x))(1.0)
        purax.effects_barrier()
    assert [record.message for record in caplog.records] == ["value 1.0"]


def test_random_keys_show_their_words(capfd):
    purax.jit(lambda k: purax.debug.print("{}", k))(purax.random.key(7))
    purax.effects_barrier()
    assert capfd.readouterr().out == "[0 7]\n"


def stops(commands, out, **options):
    """A function with a breakpoint in an inner one."""

    def outer(x, params):
        middle = x * 2

        def inner(y):
            total = y + params["w"][0]
            purax.debug.breakpoint(stdin=io.StringIO(commands), stdout=out, num_frames=3, **options)
            return total

        return inner(middle)

    return outer


@pytest.mark.parametrize("form", [lambda f: f, purax.jit, purax.grad], ids=["eager", "jit", "grad"])
def test_breakpoint_shows_the_values_of_the_users_frames(form):
    out = io.StringIO()
    commands = (
        "p total\np y + 1\nu\np middle\npp params\nparams['w'][0] * 2\nd\nd\nbt\nl\na\ntotal = 5\np total\n"
    )
    commands += "p missing\nno python at all\nhelp\nc\n"
    form(stops(commands, out))(3.0, {"w": [jnp.float32(4)]})
    purax.effects_barrier()
    text = out.getvalue()
    said = text.split("(pxdb) ")
    assert "test_debug.py" in said[0] and "purax.debug.breakpoint(" in said[0]
    assert said[1].strip() == "10.0" and said[2].strip() == "7.0"
    assert "outer" in said[3] and said[4].strip() == "6.0"
    assert "array(4., dtype=float32)" in said[5] and "8.0" in said[6]
    assert "inner" in said[7] and "innermost" in said[8]
    assert said[9].index("outer") < said[9].index("inner()")
    assert "-> " in said[10] and "total = y + params" in said[10]
    assert "total = array(10." in said[11] and said[13].strip() == "5"
    assert "NameError" in said[14] and "SyntaxError" in said[15] and "continue" in said[16]


def test_breakpoint_goes_on_at_the_end_of_input_and_quits():
    out = io.StringIO()
    assert float(purax.jit(stops("", out))(1.0, {"w": [jnp.float32(1)]})) == 3
    with pytest.raises(bdb.BdbQuit):
        purax.jit(stops("q\n", out))(1.0, {"w": [jnp.float32(2)]}).block_until_ready()
        purax.effects_barrier()


def test_breakpoint_in_a_branch_stops_only_there(monkeypatch):
    out = io.StringIO()

    def f(x):
        def bad(v):
            purax.debug.breakpoint(stdin=io.StringIO("p v\nc\n"), stdout=out, num_frames=1, ordered=True)
            return v

        return purax.lax.cond(x < 0, bad, lambda v: v, x)

    purax.jit(f)(1.0)
    purax.effects_barrier()
    assert out.getvalue() == ""
    purax.jit(f)(-1.0)
    purax.effects_barrier()
    assert "(pxdb) -1.0" in out.getvalue()


def test_breakpoint_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="backend"):
        purax.debug.breakpoint(backend="web")
    with pytest.raises(TypeError, match="color"):
        purax.debug.breakpoint(color="red")


def test_sharding_of_concrete_arrays():
    seen = []
    purax.debug.inspect_array_sharding(jnp.ones(3), callback=seen.append)
    assert seen[0].device_set == set(purax.devices()[:1])
    purax.jit(lambda x: purax.debug.inspect_array_sharding(x, callback=seen.append))(1.0)
    assert seen[1] == seen[0]


# jax's names of 0.10, and where this one has none of them.
NAMES = "breakpoint callback inspect_array_sharding log print DebugEffect OrderedDebugEffect"
NAMES += " visualize_array_sharding visualize_sharding"
OMITTED = {
    "DebugEffect": "effects are objects, not classes: debug_effect",
    "OrderedDebugEffect": "effects are objects, not classes: ordered_debug_effect",
}


def test_names():
    if jax.__version__ == "0.10.2":  # the names are this one's
        assert {name for name in vars(jax.debug) if not name.startswith("_")} == set(NAMES.split())
    missing = {name for name in NAMES.split() if not hasattr(purax.debug, name)}
    assert missing == set(OMITTED)
