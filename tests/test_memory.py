"""What nobody uses any more is let go: compiled programs, types of arrays, and what is remembered by them."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import lax
from purax.core import avals, memo
from purax.core.avals import ShapedArray
from purax.core.extension import native
from purax.execution import compiled_program, host_rules
from purax.xla import compiler


def executables_of(count: int) -> list[weakref.ref]:
    """References to the executables of so many functions that are gone."""
    found = []
    for i in range(count):
        function = px.jit(lambda x, i=i: jnp.sin(x) * (i + 0.375))
        function(jnp.ones(2000)).block_until_ready()
        found += [weakref.ref(x) for x in list(compiled_program._executables.values())[-1:]]
    gc.collect()
    return found


def test_programs_of_functions_that_died_are_bounded(monkeypatch):
    px.clear_caches()
    executables_of(1)
    monkeypatch.setattr(compiler, "MEMORY_LIMIT_BYTES", 5 * compiler._entries_size)
    executables_of(30)
    assert len(compiler._entries) <= 5 and len(compiled_program._executables) <= 5
    assert compiler._entries_size <= compiler.MEMORY_LIMIT_BYTES


def test_programs_of_functions_that_live_stay(monkeypatch):
    px.clear_caches()
    monkeypatch.setattr(compiler, "MEMORY_LIMIT_BYTES", 1)
    functions = [px.jit(lambda x, i=i: jnp.cos(x) * (i + 0.375)) for i in range(4)]
    for function in functions:
        function(jnp.ones(2000))
    before = compiler.stats.compiles + compiler.stats.disk_hits
    again = [px.jit(lambda x, i=i: jnp.cos(x) * (i + 0.375)) for i in range(4)]
    for function in (*functions, *again):  # those of equal functions are found, too
        function(jnp.ones(2000))
    assert compiler.stats.compiles + compiler.stats.disk_hits == before


@pytest.fixture
def few_types(monkeypatch):
    monkeypatch.setattr(avals, "_FEW_TYPES", 200)
    monkeypatch.setattr(avals, "_limit", [0])
    yield
    avals.let_go()


@pytest.mark.skipif(native is None, reason="the part in C is not built")
def test_types_that_nobody_holds_are_forgotten(few_types):
    avals.let_go()
    few = len(avals.interned)
    kept = jnp.ones((3, 12345)).aval
    for n in range(3000):
        x = jnp.ones(n + 5000)
        (x[:3] + 1).reshape(1, -1)
    assert len(avals.interned) < 2 * few + 1000
    assert ShapedArray((3, 12345), np.float32) is kept
    del x, kept
    gc.collect()
    avals.let_go()
    assert ((3, 12345), np.dtype("float32"), False) not in avals.interned
    assert len(avals.interned) <= few + 50


@pytest.mark.skipif(native is None, reason="the part in C is not built")
def test_equal_types_are_one_object_while_others_are_forgotten(few_types):
    stop, wrong = threading.Event(), []

    def work(seed):
        random = np.random.default_rng(seed)
        held = {}
        while not stop.is_set():
            shape = (int(random.integers(50)), seed % 2)
            aval = ShapedArray(shape, np.float32)
            if held.setdefault(shape, aval) is not aval:
                wrong.append(shape)
            if len(held) > 40:
                held.clear()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        avals.let_go()
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_everything_is_right_after_all_is_forgotten():
    def f(x):
        return jnp.sum(jnp.einsum("ij,kj->ik", x, x)[:2] * 2.0) + px.grad(lambda y: (y @ y.T).sum())(x).sum()

    x = jnp.arange(6.0).reshape(3, 2)
    expected, compiled = f(x), px.jit(f)(x)
    for _ in range(2):
        memo.forget_all()
        np.testing.assert_array_equal(f(x), expected)
        np.testing.assert_array_equal(px.jit(f)(x), compiled)


class Owner:
    """What a function belongs to, and what it reads."""

    def __init__(self):
        self.weight = jnp.ones(3)


def a_derivative(owner):
    return px.jit(px.grad(lambda x: (x * owner.weight).sum()))


def a_batched_function(owner):
    return px.jit(px.vmap(lambda x: (x * owner.weight).sum()))


def a_function_of_an_object(owner):
    owner.function = px.jit(lambda x: x * owner.weight)
    return owner.function


def a_function_that_calls_itself(owner):
    def power(x, n=3):
        return x * owner.weight if n == 0 else power(x, n - 1)

    return px.jit(power)


def functions_that_call_each_other(owner):
    def first(x, n=3):
        return second(x, n - 1) if n else x * owner.weight

    def second(x, n):
        return first(x, n)

    return px.jit(first)


def a_checkpoint(owner):
    return px.jit(px.checkpoint(lambda x: x * owner.weight))


def a_method(owner):
    owner.step = lambda x: x * owner.weight
    return px.jit(owner.step)


@pytest.mark.parametrize(
    "make",
    [
        a_derivative,
        a_batched_function,
        a_function_of_an_object,
        a_function_that_calls_itself,
        functions_that_call_each_other,
        a_checkpoint,
        a_method,
    ],
)
def test_functions_that_died_hold_nothing_whatever_they_reach(make):
    def use():
        owner = Owner()
        make(owner)(np.ones(3, np.float32))
        return weakref.ref(owner)

    found = [use() for _ in range(3)]
    for _ in range(3):  # a cache is kept until two collections saw nobody ask
        gc.collect()
    assert [reference() for reference in found[:-1]] == [None, None]


def count_traces(make, rounds):
    traces = []

    def function(x):
        traces.append(1)
        return x + 1

    for _ in range(rounds):
        make(function)(np.ones(3, np.float32))
    return len(traces), function


def test_functions_that_are_compiled_anew_each_time_are_traced_once():
    quiet = lambda f: px.jit(f, purity="off")  # noqa: E731
    assert count_traces(quiet, 3)[0] == 1
    assert count_traces(lambda f: (gc.collect(), quiet(f))[1], 5)[0] == 1
    traces, function = count_traces(quiet, 1)
    px.clear_caches()
    before = compiler.stats.compiles + compiler.stats.disk_hits
    quiet(function)(np.ones(3, np.float32))  # also of those whose `jit` is gone, nothing is left
    assert compiler.stats.compiles + compiler.stats.disk_hits == before + 1


def test_derivatives_of_branches_of_functions_that_died_are_not_kept():
    for i in range(3):
        px.grad(lambda x, i=i: lax.cond(x > 0, lambda x: x * (i + 0.5), lambda x: x, x))(1.0)
    assert not [key for key in host_rules.rules if any(getattr(part, "runs_itself", False) for part in key)]
