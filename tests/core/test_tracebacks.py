"""Exceptions that leave purax show the user's frames only, wherever they are printed; nothing else changes.

The law: whatever the user calls, the traceback of what it raises holds frames of the user's alone, in every interpreter
of tracebacks; its cause, its context, its class, its message, and what pickles of it, are those without the filter.
"""

from __future__ import annotations

import asyncio
import copy
import importlib
import inspect
import io
import logging
import os
import pickle
import subprocess
import sys
import threading
import traceback
import types

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import random
from purax.compat.table import MODULES
from purax.config import config
from purax.core import source, tracebacks

ONES = jnp.ones(3)


def entered(context):
    with context:
        pass


def add(x):
    return x + jnp.ones(4)


@px.custom_jvp
def with_rule(x):
    return x.reshape(7)


with_rule.defjvp(lambda primals, tangents: (with_rule(*primals), tangents[0]))

# What a user calls, by kind: operators, methods, functions, transformations, control flow, classes, libraries, C code.
CALLS = {
    "operator": lambda: add(ONES),
    "reflected operator": lambda: [1.0] @ ONES,
    "index": lambda: ONES[5],
    "index update": lambda: ONES.at[7].set(0.0),
    "method": lambda: ONES.reshape(7),
    "property": lambda: jnp.ones(3, bool).at[0].add("a"),
    "function": lambda: jnp.concatenate([ONES, jnp.ones((2, 2))]),
    "lax": lambda: px.lax.dot_general(ONES, jnp.ones(4), (((0,), (0,)), ((), ()))),
    "linalg": lambda: jnp.linalg.cholesky(ONES),
    "random": lambda: random.normal(3),
    "nn": lambda: px.nn.one_hot("a", 3),
    "scipy": lambda: importlib.import_module("purax.scipy.special").gammaln("a"),
    "image": lambda: px.image.resize(ONES, (2, 2), "linear"),
    "tree": lambda: px.tree.map(lambda x, y: x, (1, 2), (1,)),
    "jit": lambda: px.jit(add)(ONES),
    "grad": lambda: px.grad(add)(ONES),
    "grad of a vector": lambda: px.grad(lambda x: x)(ONES),
    "vmap": lambda: px.vmap(px.jit(add))(jnp.ones((2, 3))),
    "vmap of nothing": lambda: px.vmap(add)(1.0),
    "jvp": lambda: px.jvp(add, (ONES,), (ONES,)),
    "linear function": lambda: px.linearize(jnp.sin, ONES)[1](jnp.ones(4)),
    "vjp": lambda: px.vjp(jnp.sin, ONES)[1](jnp.ones(4)),
    "scan": lambda: px.lax.scan(lambda c, x: (c, add(x)), 0.0, jnp.ones((2, 3))),
    "cond": lambda: px.jit(lambda x: px.lax.cond(x > 0, add, add, ONES))(1.0),
    "while_loop": lambda: px.lax.while_loop(lambda x: x[0] > 0, add, ONES),
    "checkpoint": lambda: px.grad(px.checkpoint(add))(ONES),
    "custom rule": lambda: px.jvp(with_rule, (ONES,), (ONES,)),
    "lowering": lambda: px.jit(add).lower(ONES),
    "compiled": lambda: px.jit(jnp.sin).lower(ONES).compile()(jnp.ones(4)),
    "context manager": lambda: entered(px.named_scope(3)),
    "class": lambda: px.ShapeDtypeStruct((3,), "no dtype"),
    "called from C": lambda: list(map(jnp.sin, ["a"])),
    "tracer": lambda: px.jit(lambda x: [2.0][x.astype(int)])(1.0),
    "hash": lambda: {ONES: 1},
    "shard_map": lambda: px.shard_map(add, mesh=3, in_specs=(), out_specs=())(ONES),
    "lazy name": lambda: px.no_such_name,
    "dlpack": lambda: px.dlpack.from_dlpack(3),
    "experimental": lambda: importlib.import_module("purax.experimental.sparse").BCOO.fromdense("a"),
    "rewritten": lambda: px.jit(lambda x: add(ONES) if x > 0 else ONES)(1.0),
}


def raised(call):
    try:
        call()
    except Exception as error:
        return error
    pytest.fail("nothing was raised")


def internal_frames(error):
    """The frames of purax's in the traceback of an exception and in those that are printed with it."""
    return [
        frame
        for link in tracebacks._linked(error)
        for frame, _ in traceback.walk_tb(link.__traceback__)
        if source.code_is_internal(frame.f_code)
    ]


@pytest.mark.parametrize("name", CALLS)
def test_the_users_frames_are_left(name):
    error = raised(CALLS[name])
    assert not internal_frames(error)
    frames = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    assert frames[0] == __file__ and set(frames) <= {__file__, importlib.__file__}
    with config.override(traceback_filtering="off"):
        whole = raised(CALLS[name])
    assert type(whole).__mro__[1:] == type(error).__mro__[1:] and str(whole) == str(error)
    assert internal_frames(whole)


def test_every_public_function_is_guarded():
    unguarded = []
    for path in sorted({path for paths in MODULES.values() for path in paths}):
        if path.startswith(("purax.compat", "jaxlib")):
            continue
        try:
            module = importlib.import_module(path)
        except ModuleNotFoundError:  # what jax has and purax has not
            continue
        hands_on = "__all__" in vars(module) or hasattr(module, "__path__")
        names = getattr(module, "__all__", None) or [n for n in vars(module) if n[0] != "_"]
        for name in names:
            value = getattr(module, name, None)
            if isinstance(value, types.FunctionType) and (hands_on or value.__module__ == path):
                value = inspect.unwrap(value)
                is_left_alone = value.__code__.co_flags & tracebacks._UNGUARDED or not source.is_own(
                    value.__code__
                )
                if not is_left_alone and tracebacks.leave not in value.__code__.co_consts:
                    unguarded.append(f"{path}.{name}")
    assert not unguarded


def test_threads_logging_asyncio_and_traceback_modules(monkeypatch):
    seen = []
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(args.exc_value))
    thread = threading.Thread(target=CALLS["jit"])
    thread.start()
    thread.join()

    async def fails():
        return px.jit(add)(ONES)

    async def together():
        return await asyncio.gather(fails(), asyncio.to_thread(CALLS["jit"]), return_exceptions=True)

    seen += asyncio.run(together())
    text = io.StringIO()
    logger = logging.Logger("of this test")
    logger.addHandler(logging.StreamHandler(text))
    try:
        CALLS["jit"]()
    except TypeError:
        logger.exception("failed")
    assert "incompatible shapes" in text.getvalue() and f"{os.sep}purax{os.sep}api" not in text.getvalue()
    assert len(seen) == 3 and not any(internal_frames(error) for error in seen)


def test_generators_groups_and_causes_stay_what_they_are():
    def numbers():
        try:
            yield add(ONES)
        finally:
            yield "closed"

    generator = numbers()
    assert next(generator) == "closed"
    assert not internal_frames(raised(lambda: next(generator)))

    def both():
        errors = []
        for call in (CALLS["jit"], CALLS["grad"]):
            try:
                call()
            except Exception as error:
                errors.append(error)
        raise ExceptionGroup("both", errors)

    @px.jit
    def grouped(x):
        both()

    group = raised(lambda: grouped(1.0))
    assert isinstance(group, ExceptionGroup) and len(group.exceptions) == 2 and not internal_frames(group)

    def caused(x):
        try:
            add(ONES)
        except TypeError as error:
            raise KeyError("mine") from error

    error = raised(lambda: px.jit(caused)(1.0))
    assert (
        isinstance(error.__cause__, TypeError) and error.__suppress_context__ and not internal_frames(error)
    )

    def in_a_handler(x):
        try:
            raise KeyError("mine")
        except KeyError:
            return add(ONES)

    error = raised(lambda: px.jit(in_a_handler)(1.0))
    assert isinstance(error.__context__, KeyError) and error.__context__.__traceback__ is not None

    def suppressed(x):
        try:
            add(ONES)
        except TypeError:
            raise KeyError("mine") from None

    error = raised(lambda: px.jit(suppressed)(1.0))
    assert error.__cause__ is None and error.__suppress_context__


def test_exceptions_are_copied_and_pickled_as_before():
    for name in ("jit", "method", "tracer", "callback"):
        error = raised(
            CALLS.get(name, lambda: px.pure_callback(np.linalg.inv, ONES, ONES).block_until_ready())
        )
        again = pickle.loads(pickle.dumps(error))
        assert type(again).__mro__[1:] == type(error).__mro__[1:] and again.args == error.args
        assert copy.copy(error).args == error.args


def test_an_interrupt_and_a_recursion_without_end_pass():
    def interrupts(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        px.jit(interrupts)(1.0)
    assert not internal_frames(caught.value)

    def deep(x):
        return px.vmap(lambda y: deep(x))(x)

    error = raised(lambda: deep(ONES))
    assert isinstance(error, RecursionError)


def test_an_error_of_numpy_names_the_line():
    class Odd(np.ndarray):
        def __array_function__(self, *rest):
            raise ValueError("from NumPy")

    with config.override(traceback_filtering="auto"):
        error = raised(lambda: jnp.asarray(np.array(["a", 2.0], dtype=object)))
    assert f"{os.path.basename(__file__)}:" in str(error)


def run_script(program, **more):
    environment = {"PURAX_PLATFORMS": "cpu", "PYTHONPATH": ":".join(sys.path)}
    # Extensions that were built with a sanitizer need its library.
    environment |= {
        name: value for name, value in os.environ.items() if name in ("LD_PRELOAD", "ASAN_OPTIONS")
    }
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env={**environment, **more}, capture_output=True, text=True).stderr


def test_uncaught_errors_show_the_users_frames_only():
    program = "import purax as px, purax.numpy as jnp\ndef f(x):\n    return x + jnp.ones(4)\npx.jit(f)(jnp.ones(3))\n"
    shown = run_script(program)
    assert "incompatible shapes" in shown and "purax/api" not in shown
    assert len([line for line in shown.splitlines() if line.strip(" ~^")]) <= 8
    assert "purax/api" in run_script(program, PURAX_TRACEBACK_FILTERING="off")


@pytest.mark.parametrize("mode", ["off", "auto", "tracebackhide", "remove_frames", "quiet_remove_frames"])
def test_the_ways_of_jaxs_flag(mode):
    with config.override(traceback_filtering=mode):
        error = raised(CALLS["vmap"])
    frames = list(traceback.walk_tb(error.__traceback__))
    internal = [frame for frame, _ in frames if source.code_is_internal(frame.f_code)]
    assert bool(internal) == (mode in ("off", "tracebackhide"))
    assert all(frame.f_locals.get("__tracebackhide__") for frame in internal) == (mode != "off")
    assert isinstance(error.__cause__, tracebacks.UnfilteredStackTrace) == (mode == "remove_frames")
    if mode == "remove_frames":
        assert any(
            source.code_is_internal(f.f_code) for f, _ in traceback.walk_tb(error.__cause__.__traceback__)
        )
    assert bool(getattr(error, "__notes__", ())) == (mode == "quiet_remove_frames")


# -- the tables of handlers


def plain(x):
    return x[0]


def with_handlers(x):
    try:
        with np.errstate(all="ignore"):
            return [y for y in x[0]]
    except KeyError:
        try:
            return x["a"]
        finally:
            x.append(1)
    finally:
        del x


def nested(x):
    def inner(y):
        return x[y]

    return lambda: inner(0)


def numbered(count):
    """A function with so many constants, and as many instructions, that the numbers of both need several digits."""
    lines = "\n".join(f"    a = {i + 1000}.5 + x" for i in range(count))
    names = {}
    exec(f"def many(x):\n{lines}\n    return x[0]", names)
    return names["many"]


@pytest.mark.parametrize("function", [plain, with_handlers, numbered(20), numbered(300), numbered(6000)])
def test_a_guarded_function_is_the_same_function(function):
    code = tracebacks._guarded(function.__code__, {})
    guarded = types.FunctionType(code, function.__globals__)
    whole = code.co_code[: len(function.__code__.co_code)]
    assert whole == function.__code__.co_code
    covered = np.zeros(len(whole) // 2, int)
    for start, length, _, _ in tracebacks._rows(code.co_exceptiontable):
        covered[start : start + length] += 1
    assert (covered == 1).all()
    old = tracebacks._rows(function.__code__.co_exceptiontable)
    assert set(old) <= set(tracebacks._rows(code.co_exceptiontable))
    lines = list(code.co_lines())
    assert [x for x in lines if x[2] is not None] == [
        x for x in function.__code__.co_lines() if x[2] is not None
    ]
    assert inspect.getsource(guarded) if function in (plain, with_handlers) else True
    values = [np.float64(2.0)]
    argument = [[1.0]] if function is with_handlers else np.array(values)
    assert np.array_equal(guarded(argument), function(argument))
    if function in (plain, with_handlers):
        with pytest.raises(IndexError) as caught:
            guarded([])
        assert [f.f_code for f, _ in traceback.walk_tb(caught.value.__traceback__)][
            -1
        ] is code  # not purax's own


def test_rows_are_read_as_they_were_written():
    rows = [(0, 3, 63, 0), (3, 61, 64, 5), (64, 4000, 4096, 1), (5000, 300_000, 262_144, 3)]
    assert tracebacks._rows(b"".join(tracebacks._row(*row) for row in rows)) == rows


def test_a_debugger_steps_through_guarded_functions():
    lines = []

    def trace(frame, event, argument):
        lines.append(event)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        error = raised(CALLS["jit"])
    finally:
        sys.settrace(before)
    assert "exception" in lines and not internal_frames(error)


def test_a_notebook_shows_the_users_cells():
    cells = [
        "import purax as px, purax.numpy as jnp",
        "def f(x):\n    return x + jnp.ones(4)",
        "px.jit(f)(jnp.ones(3))",
    ]
    shown = run_script(
        "import io, contextlib, sys\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance(colors='nocolor')\n"
        "with contextlib.redirect_stdout(io.StringIO()) as out:\n"
        f"    for cell in {cells!r}:\n"
        "        shell.run_cell(cell, store_history=True)\n"
        "sys.stderr.write(out.getvalue())\n"
    )
    assert "at In[2]:2 (f): return x + jnp.ones(4)" in shown and "Cell In[3], line 1" in shown
    assert shown.count("\n") <= 15 and "purax/" not in shown
