"""Interrupts and the end of the interpreter, while XLA works: in processes of their own, which must survive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import lax
from purax.xla import compiler, execute, interruptible_calls, long_programs
from purax.xla.interruptible_calls import run_apart

_SETTINGS = {**os.environ, "PURAX_ENABLE_COMPILATION_CACHE": "0", "PURAX_CHECK_JAXPRS": "0"}


def run(program: str) -> str:
    """What a process that must end by itself, with status 0, has printed."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=_SETTINGS,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}\n{done.stderr[-3000:]}"
    return done.stdout


def test_interrupted_compiles_leave_a_working_process():
    """The signal comes at moments spread over the compile, which ends only after it; the last is left under way."""
    program = """
import os, signal, threading, time
import purax as px, purax.numpy as jnp
from purax.xla import jaxlib_api

began, sent = threading.Event(), threading.Event()
compile_and_load = jaxlib_api.compile_and_load
def announced(*arguments):
    began.set()
    done = compile_and_load(*arguments)
    sent.wait()
    return done
jaxlib_api.compile_and_load = announced

for attempt in range(3):
    def big(x):
        for i in range(60):
            x = jnp.sin(x) * (i + attempt + 1.5) + jnp.cos(x[::-1])
        return x
    began.clear()
    sent.clear()
    def interrupt():
        began.wait()
        time.sleep(0.1 * attempt)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5 * (attempt == 2))
        sent.set()
    threading.Thread(target=interrupt).start()
    try:
        px.jit(big)(jnp.ones(100))
        print("finished")
    except KeyboardInterrupt:
        print("interrupted")
    sent.wait()
    assert float(px.jit(lambda x: (x * (attempt + 2)).sum())(jnp.ones(5000))) == 5000 * (attempt + 2)
"""
    assert run(program).splitlines() == ["interrupted"] * 3


def test_the_end_finds_threads_at_work():
    """Daemon threads that never stop: eager operations, calls, compiles, reads, callbacks, trees."""
    program = """
import threading, time
import numpy as np
import purax as px, purax.numpy as jnp

def slowly(a):
    end = time.monotonic() + 0.02
    while time.monotonic() < end:
        sum(range(100))
    return np.asarray(a) + 1

class Node:
    def __init__(self, *children):
        self.children = children

px.tree_util.register_pytree_node(Node, lambda n: (slowly(n.children), None), lambda _, c: Node(*c))
x = jnp.ones((200, 200))
double = px.jit(lambda x: jnp.tanh(x) @ x)
ask = px.jit(lambda x: px.pure_callback(slowly, px.ShapeDtypeStruct((200, 200), "float32"), x) @ x)
tell = px.jit(lambda x: (px.debug.callback(slowly, x), x @ x)[1])
kinds = [
    lambda i: (x + i) * x,
    lambda i: jnp.ones(3) + i,
    lambda i: double(x),
    lambda i: double(x).block_until_ready(),
    lambda i: np.asarray(double(x)),
    lambda i: px.jit(lambda x: x @ x * i)(x),
    lambda i: ask(x),
    lambda i: tell(x).block_until_ready(),
    lambda i: px.tree_util.tree_leaves(Node(1, 2)),
    lambda i: px.grad(lambda y: (jnp.sin(y) * i).sum())(x),
]
started = []
def work(step):
    step(0)
    started.append(step)
    for i in range(10**9):
        step(i)
for step in kinds:
    threading.Thread(target=work, args=(step,), daemon=True).start()
limit = time.monotonic() + 30
while len(started) < len(kinds) and time.monotonic() < limit:
    time.sleep(0.01)
print("end")
"""
    assert run(program) == "end\n"


def test_the_end_waits_for_threads_that_are_no_daemons():
    program = """
import threading
import purax as px, purax.numpy as jnp
def work(n):
    for i in range(3):
        print(float(px.jit(lambda x: (x @ x * (n + i)).sum())(jnp.ones((50, 50)))) >= 0)
for n in range(3):
    threading.Thread(target=work, args=(n,)).start()
"""
    assert run(program).count("True") == 9


def test_a_call_apart_gives_what_the_function_gives():
    assert run_apart(lambda a, b: a + b, 1, 2) == 3
    with pytest.raises(ZeroDivisionError):
        run_apart(lambda: 1 / 0)
    assert run_apart(threading.get_ident) != threading.get_ident()


def test_an_interrupt_leaves_a_call_apart_at_once_and_the_call_goes_on():
    may_end, ended = threading.Event(), threading.Event()

    def long() -> None:
        signal.raise_signal(signal.SIGINT)
        may_end.wait()
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        run_apart(long)
    assert not ended.is_set()
    may_end.set()
    assert ended.wait(10)


_ENDLESS = {
    "a scalar": ("lambda x: lax.while_loop(lambda c: c >= 0, lambda c: c * 0, x)", "jnp.int32(3)"),
    "a vector": ("lambda x: lax.while_loop(lambda c: c[0] >= 0, lambda c: jnp.sin(c) * 0, x)", "jnp.ones(10**5)"),
    "many steps": ("lambda x: lax.fori_loop(0, 10**9, lambda i, c: jnp.sin(c) + 1, x)", "jnp.ones(2000)"),
    "products": ("lambda x: lax.scan(lambda c, _: (jnp.tanh(c @ c), None), x, None, 10**7)[0]", "jnp.ones((300, 300))"),
    "a callback": (
        "lambda x: lax.while_loop(lambda c: c >= 0, lambda c: px.pure_callback(lambda a: a * 0, c, c), x)",
        "jnp.float32(3)",
    ),
    "for effects": (
        "lambda x: lax.while_loop(lambda c: c[0] >= 0, lambda c: (px.debug.callback(lambda a: None, c), c)[1], x)",
        "jnp.ones(10**4)",
    ),
}  # fmt: skip
_WAYS = ("np.asarray(y)", "px.block_until_ready(y)", "print(y)", "px.effects_barrier(); float(jnp.sum(y))")


@pytest.mark.parametrize("number, kind", list(enumerate(_ENDLESS)))
def test_a_wait_for_a_program_that_never_ends_is_interrupted(number, kind):
    """The process computes on, in the same thread, and ends, while the program goes on."""
    function, argument = _ENDLESS[kind]
    program = f"""
import os, signal, threading, time
import numpy as np
import purax as px, purax.numpy as jnp
from purax import lax

endless = px.jit({function})
for way in range(2):
    threading.Timer(1.0 + way, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        y = endless({argument})
        {_WAYS[number % len(_WAYS)]}
        print("finished")
    except KeyboardInterrupt:
        print("interrupted")
    assert float(px.jit(lambda x: (x * (way + 2)).sum())(jnp.ones(5000))) == 5000 * (way + 2)
if {kind == "for effects"}:
    os._exit(0)  # what was to have effects is waited for at the end
"""
    assert run(program).splitlines() == ["interrupted"] * 2


def test_programs_are_told_by_how_long_they_may_run():
    def pace(function, *shapes):
        before = set(compiler._entries)
        px.jit(function).lower(*(px.ShapeDtypeStruct(shape, "float32") for shape in shapes)).compile()
        (made,) = set(compiler._entries) - before
        return compiler._entries[made].pace

    def grows(c):
        return c < 12.25

    with px.config.override(enable_compilation_cache=False):
        assert pace(lambda x: x * 3.25 + 1, (4000,)) == long_programs.SHORT
        assert pace(lambda x: lax.while_loop(grows, lambda c: c + 1.25, x), ()) == long_programs.ENDLESS
        assert (
            pace(lambda x: lax.while_loop(lambda c: grows(c[0]), lambda c: c + 1.25, x), (4000,))
            == long_programs.LONG
        )
        assert pace(lambda x: lax.fori_loop(0, 90, lambda i, c: c * 1.25, x), ()) == long_programs.SHORT
        assert pace(lambda x: lax.fori_loop(0, 10**7, lambda i, c: c * 1.25, x), ()) == long_programs.ENDLESS
        assert pace(lambda x: lax.fori_loop(0, 90, lambda i, c: c * 1.25, x), (4000,)) == long_programs.SHORT
        assert (
            pace(lambda x: lax.fori_loop(0, 10**5, lambda i, c: c * 1.25, x), (4000,)) == long_programs.LONG
        )
        assert pace(lambda x: x @ x, (900, 900)) == long_programs.LONG
        assert pace(lambda x: x @ x, (90, 90)) == long_programs.SHORT


def test_a_program_that_was_seen_to_end_is_called_directly():
    function = px.jit(lambda x: lax.while_loop(lambda c: c < 30.5, lambda c: c + 1.75, x))
    function(jnp.float32(1.0))
    called = []
    original = interruptible_calls.run_apart
    try:
        interruptible_calls.run_apart = lambda *arguments, **more: (
            called.append(1),
            original(*arguments, **more),
        )[1]
        for _ in range(3 * long_programs._TRIALS):
            assert float(function(jnp.float32(1.0))) == 30.75
    finally:
        interruptible_calls.run_apart = original
    assert 0 < len(called) < 3 * long_programs._TRIALS


def test_a_deleted_buffer_is_not_asked_whether_it_is_ready():
    """XLA dies of the question."""
    x = jnp.ones(3000) + 1
    buffer = x.buffer_on(px.devices("cpu")[0])
    px.block_until_ready(x)
    assert not interruptible_calls.is_pending(buffer)
    buffer.delete()
    assert not interruptible_calls.is_pending(buffer)
    for read in (execute.to_numpy, execute.block_until_ready):
        with pytest.raises(RuntimeError, match="deleted"):
            read(buffer)


def test_threads_that_make_calls_are_used_again():
    threads = {run_apart(threading.get_ident) for _ in range(50)}
    assert len(threads) == 1
    done = threading.Event()
    assert run_apart(threading.get_ident, then=done.set) in threads
    assert done.wait(10)


def test_a_failed_program_says_so_to_whoever_waits():
    def fail(a):
        raise LookupError("not here")

    def loop(x):
        return lax.fori_loop(0, 3, lambda i, c: px.pure_callback(fail, c, c), x)

    for wait in (np.asarray, px.block_until_ready):
        with pytest.raises(LookupError, match="not here"):
            wait(px.jit(loop)(jnp.ones(5000)))
