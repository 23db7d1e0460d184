"""Interrupts at random moments of tracing, compiling, running and calling back, in processes of their own.

A process takes programs in random order. It interrupts each somewhere between its start and its end, a few times, looks
whether anything was left in effect (a trace, a lock, a setting, a depth), and runs the very same functions on the same
arrays again: their results must be right. At last the process must end with status 0, though a compile may still go on.
"""

from __future__ import annotations

import inspect
import os
import random
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

PROGRAMS = 20  # of one process
INTERRUPTS = 4  # of one program


def run(seed: int) -> Iterator[str | None]:
    """Runs process after process; a failure is the command that runs it again, and what it said."""
    for number in range(seed * 1000, 10**9):
        yield failure(number, PROGRAMS)


def failure(seed: int, count: int) -> str | None:
    """What goes wrong in a process with so many programs, or None."""
    command = f"import tests.fuzz.interrupts as i; i.interrupt_programs({seed}, {count})"
    settings = {**os.environ, "PURAX_ENABLE_COMPILATION_CACHE": "0"}
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", command],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=settings,
    )
    if done.returncode == 0 and done.stdout.endswith("done\n"):
        return None
    said = (done.stdout + done.stderr)[-3000:].replace("\n", "\n# ")
    return f"{command}\n# status {done.returncode}\n# {said}"


def interrupt_programs(seed: int, count: int) -> None:
    """What a process does."""
    rng = random.Random(seed)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    make = programs()
    before = in_effect()
    for number in range(count):
        kind = rng.choice(sorted(make))
        program, expected = make[kind](number)
        alike, expected_alike = make[kind](-1 - number)
        start = time.perf_counter()
        _check(kind, alike(), expected_alike)
        seconds = time.perf_counter() - start  # what `program` will take, too
        for attempt in range(INTERRUPTS):
            moment = rng.uniform(0.0, 1.0) * seconds
            where = f"program {number}, {kind}, attempt {attempt}, interrupted after {moment:.6f} s"
            _interrupt(program, moment)
            after = in_effect()
            assert after == before, f"{where}: {after} is in effect and not {before}"
        _check(where, program(), expected)
    print("done")


def _interrupt(program: Callable[[], Any], moment: float) -> None:
    try:
        signal.setitimer(signal.ITIMER_REAL, max(moment, 1e-6))
        try:
            program()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    except KeyboardInterrupt:
        pass


def _check(where: str, result: Any, expected: Any) -> None:
    import numpy as np

    assert np.allclose(result, expected, rtol=1e-4), f"{where}: {result} instead of {expected}"


def in_effect() -> dict[str, Any]:
    """What this thread and the modules of purax have in effect; locks that are held, by name."""
    from purax.config import config
    from purax.core.source import names
    from purax.core.trace import current
    from purax.xla import callbacks

    found: dict[str, Any] = {
        **{name: getattr(current, name) for name in ("trace", "interprets", "decide", "refusals")},
        **{name: getattr(names, name) for name in ("location", "scope")},
        "callbacks": callbacks.inside.depth,
        "tracing": (sys.gettrace(), len(sys.meta_path)),
        "settings": {
            name: getattr(config, name) for name in ("enable_x64", "disable_jit", "default_device", "mesh")
        },
    }
    locks = (type(threading.Lock()), type(threading.RLock()))
    for name, module in sorted(sys.modules.items()):
        if not name.startswith("purax") or not isinstance(module, types.ModuleType):
            continue
        for key, value in list(vars(module).items()):
            held = value if isinstance(value, locks) else inspect.getattr_static(value, "lock", None)
            # A thread that finishes an abandoned call holds a lock only for a moment.
            if isinstance(held, locks) and not held.acquire(timeout=10):
                found[f"{name}.{key}"] = "held"
            elif isinstance(held, locks):
                held.release()
    return found


def programs() -> dict[str, Callable[[int], tuple[Callable[[], Any], Any]]]:
    """By kind: what makes of a number a program (the same one each time it is called), and its result."""
    import numpy as np

    import purax as px
    import purax.numpy as jnp
    from purax import lax

    ones = jnp.ones(2000)
    shape = px.ShapeDtypeStruct((2000,), "float32")

    def trace(number: int) -> Any:
        def deep(x: Any) -> Any:
            for _ in range(30):
                x = lax.cond(x[0] > -number - 1000.0, lambda x: x * 1.0, lambda x: x - 1.0, x)
            return x.sum() * number

        whole = px.vmap(px.grad(px.jit(deep)))
        return lambda: len(px.make_jaxpr(whole)(ones.reshape(4, 500)).out_avals), 1

    def compile(number: int) -> Any:
        def wide(x: Any) -> Any:
            for i in range(12):
                x = jnp.sin(x) * 0.0 + jnp.cos(x[::-1]) * 0.0 + i + number
            return x.sum()

        compiled = px.jit(wide)
        return lambda: float(compiled(ones)), 2000.0 * (11 + number)

    def differentiate(number: int) -> Any:
        def loss(w: Any) -> Any:
            state, _ = lax.scan(lambda c, _: (jnp.tanh(c) * 0.0 + w * number, None), w, None, length=5)
            return state.sum()

        gradient = px.jit(px.value_and_grad(loss))
        return lambda: np.asarray(gradient(ones)[1])[0], number

    def loop(number: int) -> Any:
        repeat = px.jit(lambda x: lax.fori_loop(0, 300, lambda i, c: jnp.sin(c) * 0.0 + i + number, x).sum())
        return lambda: float(repeat(ones)), 2000.0 * (299 + number)

    def eager(number: int) -> Any:
        def steps() -> Any:
            small, large = jnp.ones(3), ones
            for i in range(40):
                small, large = small * 0 + i + number, (large + large[::-1]) * 0 + i + number
            return [float(small.sum()), float(large.sum())]

        return steps, [3 * (39 + number), 2000.0 * (39 + number)]

    def call_back(number: int) -> Any:
        def slowly(a: Any) -> Any:
            end = time.perf_counter() + 0.003
            while time.perf_counter() < end:
                sum(range(100))
            return np.asarray(a) + np.float32(number)

        asking = px.jit(
            lambda x: px.pure_callback(slowly, shape, x + px.pure_callback(slowly, shape, x)).sum()
        )
        return lambda: float(asking(ones)), 2000.0 * (2 + 2 * number)

    def tell(number: int) -> Any:
        seen: list[float] = []

        def effect(x: Any) -> Any:
            px.debug.callback(lambda a: seen.append(float(a[0])), x + number, ordered=True)
            return x.sum()

        telling = px.jit(effect)

        def program() -> Any:
            telling(ones)
            px.effects_barrier()
            return seen[-1]

        return program, number + 1

    def rewrite(number: int) -> Any:
        def branching(x: Any) -> Any:
            total = x * 0
            while total[0] < 5:
                total = total + 1 if total[1] > 2 else total + 2
            return total.sum() + number

        compiled = px.jit(branching)
        return lambda: float(compiled(ones)), 2000.0 * 5 + number

    def custom(number: int) -> Any:
        @px.custom_vjp
        def scaled(x: Any) -> Any:
            return x * number

        scaled.defvjp(lambda x: (scaled(x), x), lambda x, g: (g * number * 2 * x,))
        return lambda: np.asarray(px.grad(lambda x: scaled(x).sum())(ones))[3], number * 2

    def donate(number: int) -> Any:
        add = px.jit(lambda x: x + number, donate_argnums=0)

        def program() -> Any:
            given = ones + 1.0
            try:
                return float(add(given)[0])
            except BaseException:
                # Lost only if the call took it, which the array then says.
                assert given.is_deleted() or float(given[0]) == 2.0
                raise

        return program, number + 2

    def settings(number: int) -> Any:
        def program() -> Any:
            for _ in range(20):
                with px.disable_jit(), px.named_scope("part"), px.default_device(px.devices()[0]):
                    result = px.jit(lambda x: x[:3] + number)(ones)
            return float(result[0])

        return program, number + 1

    def read(number: int) -> Any:
        product = px.jit(lambda x: (x @ x) * 0 + number)
        square = jnp.ones((300, 300))
        return lambda: np.asarray(product(square))[0, 0], number

    kinds = (
        trace,
        compile,
        differentiate,
        loop,
        eager,
        call_back,
        tell,
        rewrite,
        custom,
        donate,
        settings,
        read,
    )
    return {kind.__name__: kind for kind in kinds}
