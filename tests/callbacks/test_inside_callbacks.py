"""purax inside of a callback: it computes on the host, or says why it cannot, and never hangs.

Each program runs in a process of its own with a limit on its time, since a mistake here is a deadlock.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

SECONDS = 120
PREPARATION = """
    import threading, time
    import numpy as np
    import purax, purax.numpy as jnp
    from purax.xla import callbacks
    callbacks.WAIT_SECONDS = 1.0
    number = purax.ShapeDtypeStruct((), np.float32)
    big = jnp.ones((600, 600))
    compiled = purax.jit(lambda a: jnp.sin(a @ a).sum())

    def everything(v):
        a = jnp.asarray(v)
        total = compiled(a) + purax.grad(lambda t: (t**2).sum())(a).sum() + purax.vmap(jnp.sum)(a).sum()
        total += purax.lax.scan(lambda c, x: (c + x.sum(), None), 0.0, a)[0]
        total += purax.lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0.0)
        total += purax.lax.cond(True, lambda: 1.0, lambda: 2.0)
        total += purax.pure_callback(lambda: np.float32(1), number) + jnp.linalg.norm(a) * 0
        total += purax.random.normal(purax.random.PRNGKey(0), (300, 300)).sum() * 0
        return np.asarray(total)

    def expected(a):
        return jnp.sin(a @ a).sum() + 3 * a.sum() + a.sum() + 3.0 + 1.0 + 1.0
"""

PROGRAMS = {
    "everything computes inside": """
        a = jnp.ones((40, 40))
        result = purax.jit(lambda x: purax.pure_callback(everything, number, x))(a)
        np.testing.assert_allclose(result, expected(a), rtol=1e-4)
        print("done")
    """,
    "many at once, over arrays that are being computed": """
        captured = big @ big @ big
        def waiting(v):
            return np.asarray(everything(v) + captured[0, 0] * 0)
        def many(x):
            return sum(purax.pure_callback(lambda v, i=i: waiting(v), number, x + i * 0) for i in range(8))
        a = jnp.ones((30, 30))
        threads = [threading.Thread(target=lambda: purax.jit(many)(a).block_until_ready()) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        np.testing.assert_allclose(purax.jit(many)(a), 8 * expected(a), rtol=1e-4)
        print("done")
    """,
    "waiting without end is given up": """
        waiting = jnp.ones(3)
        class Never:
            def is_ready(self): return False
        def selfish(v):
            callbacks.wait_inside(Never().is_ready, "an array")
        try:
            purax.jit(lambda x: purax.debug.callback(selfish, x))(1.0)
            purax.effects_barrier()
        except RuntimeError as error:
            print("done" if "still being computed" in str(error) else error)
    """,
    "the barrier is refused inside": """
        f = purax.jit(lambda x: purax.debug.callback(lambda v: purax.effects_barrier(), x))
        try:
            f(1.0); purax.effects_barrier()
        except RuntimeError as error:
            print("done" if "call it outside" in str(error) else error)
    """,
    "a compiled program is refused inside": """
        ready = purax.jit(lambda x: x + 1).lower(1.0).compile()
        f = purax.jit(lambda x: purax.pure_callback(lambda v: np.asarray(ready(jnp.asarray(v))), number, x))
        try:
            f(1.0).block_until_ready()
        except RuntimeError as error:
            print("done" if "in a callback of another one" in str(error) else error)
    """,
    "ordered effects inside of ordered effects": """
        log = []
        inner = purax.jit(lambda x: purax.debug.callback(lambda v: log.append("inner"), x, ordered=True))
        def outer(v):
            log.append("outer"); inner(1.0)
        f = purax.jit(lambda x: purax.debug.callback(outer, x, ordered=True))
        f(1.0); f(2.0); purax.effects_barrier()
        print("done" if log == ["outer", "inner"] * 2 else log)
    """,
    "effects are had before the process ends": """
        purax.jit(lambda x: purax.debug.callback(lambda v: print("done"), (x @ x).sum()))(big)
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_never_hangs(name):
    code = textwrap.dedent(PREPARATION) + textwrap.dedent(PROGRAMS[name])
    environment = {**os.environ, "PURAX_PLATFORMS": "cpu", "PURAX_CHECK_JAXPRS": "0"}
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        timeout=SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.strip() == "done", ran.stdout + ran.stderr[-2000:]
