"""NumPy's values enter a program as arrays of the width that arrays have, whatever the transformation and wherever the
function gives them back. Python's numbers are weak.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import purax

VALUES = {
    "float64": lambda: np.ones(2),
    "float64 scalar": lambda: np.float64(1.5),
    "float64 of no axes": lambda: np.array(1.5),
    "int64": lambda: np.arange(2),
    "int64 scalar": lambda: np.int64(3),
    "uint64": lambda: np.ones(2, np.uint64),
    "complex128": lambda: np.ones(2, complex),
    "bool": lambda: np.ones(2, bool),
    "float16": lambda: np.ones(2, np.float16),
}


def with_jvp(m, made):
    f = m.custom_jvp(lambda x: (x, made()))
    f.defjvp(
        lambda p, t: ((p[0], made()), (t[0], m.custom_derivatives.zero_from_primal(m.numpy.asarray(made()))))
    )
    return f


def with_vjp(m, made):
    f = m.custom_vjp(lambda x: (x, made()))
    f.defvjp(lambda x: ((x, made()), made()), lambda residual, g: (g[0],))
    return f


def with_vmap(m, made):
    f = m.custom_batching.custom_vmap(lambda x: made())
    f.def_vmap(lambda size, batched, x: (made(), False))
    return f


# Each takes the library, a function that makes the value, and an array; what it returns holds only what was made.
WAYS = {
    "jit": lambda m, made, x: m.jit(lambda x: made())(x),
    "jit with another result": lambda m, made, x: m.jit(lambda x: (x, made()))(x)[1],
    "vmap": lambda m, made, x: m.vmap(lambda x: made())(x),
    "scan ys": lambda m, made, x: m.lax.scan(lambda c, _: (c, made()), 0.0, None, length=2)[1],
    "scan carry": lambda m, made, x: m.lax.scan(lambda c, _: (made(), None), made(), None, length=2)[0],
    "while_loop": lambda m, made, x: m.lax.while_loop(
        lambda s: s[0] < 2, lambda s: (s[0] + 1, made()), (0, made())
    )[1],
    "fori_loop": lambda m, made, x: m.lax.fori_loop(0, 2, lambda i, s: made(), made()),
    "fori_loop of unknown length": lambda m, made, x: m.jit(
        lambda n: m.lax.fori_loop(0, n, lambda i, s: made(), made())
    )(2),
    "cond": lambda m, made, x: m.lax.cond(True, made, made),
    "cond in jit": lambda m, made, x: m.jit(lambda p: m.lax.cond(p > 0, made, made))(1.0),
    "switch": lambda m, made, x: m.lax.switch(1, [made, made]),
    "map": lambda m, made, x: m.lax.map(lambda _: made(), x),
    "checkpoint": lambda m, made, x: m.checkpoint(lambda x: made())(x),
    "eval_shape": lambda m, made, x: m.eval_shape(lambda x: made(), x),
    "make_jaxpr": lambda m, made, x: m.make_jaxpr(lambda x: made())(x).out_avals,
    "jvp": lambda m, made, x: m.jvp(lambda x: made(), (x,), (x,)),
    "linearize": lambda m, made, x: m.linearize(lambda x: made(), x)[1](x),
    "custom_jvp in jit": lambda m, made, x: m.jit(with_jvp(m, made))(x)[1],
    "custom_jvp in vmap": lambda m, made, x: m.vmap(with_jvp(m, made))(x)[1],
    "custom_vjp in jit": lambda m, made, x: m.jit(with_vjp(m, made))(x)[1],
    "custom_vjp in vmap": lambda m, made, x: m.vmap(with_vjp(m, made))(x)[1],
    "custom_vjp under vjp": lambda m, made, x: m.jit(lambda x: m.vjp(with_vjp(m, made), x)[0][1])(x),
    "custom_vmap in jit": lambda m, made, x: m.jit(with_vmap(m, made))(x),
    "custom_vmap in vmap": lambda m, made, x: m.vmap(with_vmap(m, made))(x),
    "closure_convert": lambda m, made, x: m.closure_convert(lambda x: made(), x)[0](x),
    "pmap": lambda m, made, x: m.pmap(lambda x: made())(x[:1]),
    "shard_map": lambda m, made, x: m.shard_map(
        lambda x: made(),
        mesh=m.make_mesh((1,), ("i",)),
        in_specs=m.P(),
        out_specs=m.P(),
    )(x),
    "pure_callback": lambda m, made, x: m.pure_callback(lambda x: made(), m.eval_shape(made), x),
    "nested": lambda m, made, x: m.jit(m.vmap(m.jit(lambda x: m.lax.cond(x > 0, made, made))))(x),
}


def check(m, way: str, value: str) -> None:
    made = VALUES[value]
    given = np.asarray(made()).dtype
    narrow = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
    wanted = narrow.get(str(given), str(given))
    results = m.tree_util.tree_leaves(WAYS[way](m, made, m.numpy.ones(2)))
    assert results
    for y in results:
        if "float0" not in str(y.dtype):
            assert (str(y.dtype), getattr(y, "weak_type", False)) == (wanted, False)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("way", WAYS)
def test_numpy_values_have_the_width_of_arrays(way, value):
    check(purax, way, value)


def test_numpy_values_have_the_width_of_arrays_where_jax_is_purax():
    root = Path(__file__).parents[2]
    program = (
        "import purax.compat.jax, jax\n"
        "from tests.api.test_entering import VALUES, WAYS, check\n"
        "for way in WAYS:\n"
        "    for value in VALUES: check(jax, way, value)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("number", [1.5, 3, True, 1j])
@pytest.mark.parametrize("way", ["jit", "vmap", "cond in jit", "checkpoint", "custom_jvp in jit", "nested"])
def test_numbers_are_weak(way, number):
    (y,) = purax.tree_util.tree_leaves(WAYS[way](purax, lambda: number, purax.numpy.ones(2)))
    assert y.weak_type is not isinstance(number, bool)


def test_results_are_copies():
    for way in ("jit", "vmap", "checkpoint", "cond"):
        buffer = np.zeros(2, np.float32)
        result = WAYS[way](purax, lambda buffer=buffer: buffer, purax.numpy.ones(2))
        buffer += 1.0
        assert not result.any()
