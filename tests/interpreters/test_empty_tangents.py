"""Tangents of integers, which have no content, go in and out of every kind of program, as in jax."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import purax

FLOAT0 = jax.dtypes.float0


def tangents(m):
    return lambda x: m.jvp(lambda x: (x.astype("int8"), x * 2), (x,), (x * 0.5,))


PROGRAMS = {
    "jit of vmap": lambda m, x: m.jit(m.vmap(tangents(m)))(x),
    "jit of jit of vmap": lambda m, x: m.jit(m.jit(m.vmap(tangents(m))))(x),
    "jit of map": lambda m, x: m.jit(lambda x: m.lax.map(tangents(m), x))(x),
    "jit of cond": lambda m, x: m.jit(lambda x: m.lax.cond(x[0] > 0, tangents(m), tangents(m), x))(x),
    "jit of a batched cond": lambda m, x: m.jit(
        m.vmap(lambda x: m.lax.cond(x > 0.6, tangents(m), tangents(m), x))
    )(x),
    "jit of a loop": lambda m, x: m.jit(
        lambda x: m.lax.fori_loop(0, 2, lambda i, s: tangents(m)(x), tangents(m)(x))
    )(x),
    "jit of jacfwd": lambda m, x: m.jit(
        m.jacfwd(lambda x: m.linearize(lambda x: m.numpy.argmax(x), x)[1](x * 0.5))
    )(x),
    "jit of vmap of grad": lambda m, x: m.jit(m.vmap(m.grad(lambda i: (i * x).sum(), allow_int=True)))(
        m.numpy.arange(6).reshape(2, 3)
    ),
    "argument": lambda m, x: m.jit(lambda a, t: (t, m.jvp(lambda i: i * a, (m.numpy.arange(3),), (t,))[1]))(
        x, np.zeros(3, FLOAT0)
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_jax(name):
    x = np.array([0.7, 0.5, 2.0], np.float32)
    ours, theirs = (m.tree.leaves(PROGRAMS[name](m, m.numpy.asarray(x))) for m in (purax, jax))
    assert [(y.shape, y.dtype) for y in ours] == [(y.shape, y.dtype) for y in theirs]
    for y, z in zip(ours, theirs, strict=True):
        if y.dtype != FLOAT0:
            np.testing.assert_allclose(y, z, rtol=1e-6)


def test_derivatives_of_empty_tangents_inside_of_a_loop():
    """An empty tangent among the constants of a recorded program is no factor."""

    def run(m):
        def tangents(x, y):
            return m.linearize(lambda x: (m.numpy.sort(y), m.numpy.sign(x)), x)[1](x * 0.5)

        def total(x, y):
            jacobians = m.tree.leaves(m.jacfwd(tangents)(x, y))
            return sum(m.numpy.sum(j) for j in jacobians if j.dtype != FLOAT0)

        x, y = m.numpy.asarray(np.float32(0.5)), m.numpy.asarray(np.arange(3, dtype=np.int32))
        return m.lax.fori_loop(0, 2, lambda i, s: m.value_and_grad(total)(x, y), (x, x))

    assert [float(v) for v in run(purax)] == [float(v) for v in run(jax)]
