"""Context managers are left as they were entered: by errors, and by signals at any moment."""

from __future__ import annotations

import ast
import gc
import random
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import purax as px
from purax import scopes
from purax.config import config
from purax.core.source import names
from purax.core.trace import current, using
from purax.sharding import Mesh

in_c = pytest.mark.skipif(scopes.native is None, reason="only those in C withstand signals")


@pytest.fixture
def interrupts():
    """The timer's signal is an interrupt."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


def in_effect() -> tuple:
    return (
        *(
            current.trace,
            current.interprets,
            names.scope,
            config.disable_jit,
            config.default_device,
            config.mesh,
        ),
        *(config.enable_x64, config.trace_key, config.jax_enable_x64),
    )


MESH = Mesh(np.array(px.devices()), ("x",))
CONTEXTS = {
    "using": lambda: using(None),
    "named_scope": lambda: px.named_scope("part"),
    "disable_jit": px.disable_jit,
    "override": lambda: config.override(enable_x64=True, default_device=px.devices()[-1]),
    "mesh": lambda: MESH,
    "ensure_compile_time_eval": px.ensure_compile_time_eval,
}


@in_c
@pytest.mark.parametrize("name", CONTEXTS)
def test_a_signal_at_any_moment_leaves_nothing_in_effect(name, interrupts):
    """The errors are kept, as an interactive session keeps the last one, so that nothing is mended by their end."""
    rng, before, kept = random.Random(name), in_effect(), []
    start = time.perf_counter()
    with CONTEXTS[name]():
        pass
    seconds = time.perf_counter() - start
    gc.collect()
    gc.disable()  # exceptions are lost in callbacks of the collector
    try:
        end = (
            time.perf_counter() + 0.7
        )  # after the collection, which takes seconds in a process with many programs
        while len(kept) < 20 or time.perf_counter() < end:
            try:
                signal.setitimer(signal.ITIMER_REAL, max(1e-6, rng.uniform(0.0, 2 * min(seconds, 1e-4))))
                for _ in range(10):
                    with CONTEXTS[name]():
                        pass
                while True:
                    sum(range(10))
            except KeyboardInterrupt as error:
                kept.append(error)
            assert in_effect() == before
    finally:
        gc.enable()


# Python's own context managers, where an interrupt at the wrong moment does no harm.
PYTHON = {
    "purax/commands/check.py": "a process of the command alone",
    "purax/commands/explain.py": "a process of the command alone",
    "purax/commands/profile.py": "a process of the command alone",
    "purax/core/phases.py": "who listens is told, and nothing else depends on it",
    "purax/profiler.py": "a trace that goes on can be stopped",
    "purax/scopes.py": "where nothing was compiled",
    "purax/testing/laws.py": "changes nothing",
    "purax/experimental/multihost_utils.py": "changes nothing",
    "purax/python_control_flow/paths.py": "belongs to a walk, which an interrupt ends",
    "purax/xla/jaxlib_api.py": "variables that only the making of clients reads",
}
FOLDER = Path(__file__).parents[1]


def _is_state(target: ast.expr) -> bool:
    return any(isinstance(part, ast.Attribute) for part in ast.walk(target))


def _calls(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Call) for part in ast.walk(node))


def test_state_is_put_back_before_anything_is_called():
    """A handler of a signal may raise after each call: in a `finally`, nothing may be called before what restores."""
    wrong, python = [], set()
    for path in sorted((FOLDER / "purax").rglob("*.py")):
        name = str(path.relative_to(FOLDER))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr == "contextmanager":
                python.add(name)
            elif isinstance(node, ast.FunctionDef) and node.name == "__exit__":
                python.add(name)
            called = False
            for statement in node.finalbody if isinstance(node, ast.Try) else ():
                called = called or _calls(statement)
                targets = [*getattr(statement, "targets", ()), getattr(statement, "target", None)]
                if (
                    called
                    and isinstance(statement, ast.Assign | ast.AugAssign)
                    and any(map(_is_state, filter(None, targets)))
                ):
                    wrong.append(f"{name}:{statement.lineno}: {ast.unparse(statement)}")
    assert not wrong
    assert python == set(PYTHON), "use purax.scopes"


def test_scoped_is_a_context_manager_as_those_of_contextlib():
    seen = []

    @scopes.scoped
    def noting(value):
        seen.append(value)
        try:
            yield value + 1
        except LookupError:
            seen.append("dealt with")
        finally:
            seen.append("left")

    with noting(1) as given:
        assert given == 2
    with noting(3):
        raise KeyError("a")
    for kind in (ValueError, StopIteration, RuntimeError):
        with pytest.raises(kind, match="mine") as caught, noting(4):
            raise kind("mine")
        assert caught.value.__cause__ is None
    assert seen == [1, "left", 3, "dealt with", "left", *[4, "left"] * 3]

    @noting(5)
    def decorated(x):
        return x

    assert decorated(1) == decorated(1) == 1
    assert seen[-4:] == [5, "left"] * 2

    @scopes.scoped
    def silent():
        if seen is None:
            yield

    with pytest.raises(RuntimeError, match="yield"), silent():
        pass


def test_what_leave_needs_is_there_whenever_enter_fails():
    class Counter(scopes.Scope):
        def __init__(self, fails=False):
            self.open, self.fails = 0, fails

        def enter(self, entered):
            entered.append(1)
            self.open += entered[0]
            if self.fails:
                raise KeyboardInterrupt
            return self

        def leave(self, entered):
            self.open = 0

    with Counter() as counter:
        assert counter.open == 1
    assert counter.open == 0
    counter.fails = True
    with pytest.raises(KeyboardInterrupt), counter:
        pass
    assert counter.open == 0


def test_an_assigned_value_is_taken_back():
    holder = SimpleNamespace(a=1)
    with pytest.raises(ValueError), scopes.Assigned(holder, "a", 2) as given:
        assert given == holder.a == 2
        raise ValueError
    assert holder.a == 1
