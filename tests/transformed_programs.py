"""Transformations, and programs as texts in which `np` is NumPy or purax.numpy, for the tests of ways out of arrays."""

from __future__ import annotations

import array
import contextlib
import copy
import decimal
import fractions
import io
import json
import math
import operator
import pickle
import statistics
import struct
import warnings
from typing import Any

import numpy as np
import scipy.fft
import scipy.linalg
import scipy.special

import purax as px
import purax.numpy as jnp
import purax.scipy
from purax.experimental import jet

VECTOR = np.array([0.3, 0.6, 0.7], np.float32)
MATRIX = np.array([[2.0, 0.5, 0.1], [0.2, 1.5, 0.3], [0.4, 0.1, 1.7]], np.float32)
MODULES = [array, copy, decimal, fractions, io, json, math, operator, pickle, statistics, struct, scipy]
PLAIN = {module.__name__: module for module in MODULES} | {
    "np": np,
    "px": px,
    "A": VECTOR,
    "M": MATRIX,
    "I": np.array([0, 1, 0]),
    "R": jnp.real,
    "D": np.float64(2),
}
OWN = PLAIN | {"np": jnp, "scipy": purax.scipy}


def program(text: str, names: dict[str, Any]) -> Any:
    return eval(f"lambda x, s: {text}", names)


# --- the transformations


def _loop(f, x):
    return px.lax.fori_loop(0, 2, lambda i, c: c * 0.5 + f(c), x)


def _custom_jvp(f):
    @px.custom_jvp
    def g(x):
        return f(x)

    g.defjvp(lambda primals, tangents: px.jvp(f, primals, tangents))
    return g


def _custom_vjp(f):
    g = px.custom_vjp(f)
    g.defvjp(lambda x: px.vjp(f, x), lambda back, t: back(t))
    return g


def _sum(f):
    return lambda x: jnp.sum(f(x))


def _tangent(x):
    return jnp.cos(jnp.arange(3.0)).astype(x.dtype) + 0 * x


def _linearized(f, x):
    value, linear = px.linearize(f, x)
    return value, linear(_tangent(x))


EAGER = {
    "call": lambda f, x: f(x),
    "grad": lambda f, x: px.grad(_sum(f))(x),
    "value_and_grad": lambda f, x: px.value_and_grad(_sum(f))(x),
    "grad of grad": lambda f, x: px.grad(lambda y: px.grad(_sum(f))(y).sum())(x),
    "jvp": lambda f, x: px.jvp(f, (x,), (_tangent(x),)),
    "linearize": _linearized,
    "vjp": lambda f, x: px.vjp(f, x)[1](_tangent(x)),
    "vmap": lambda f, x: px.vmap(f)(jnp.stack([x, 2 * x])),
    "jacfwd": lambda f, x: px.jacfwd(f)(x),
    "jacrev": lambda f, x: px.jacrev(f)(x),
    "hessian": lambda f, x: px.hessian(_sum(f))(x),
    "vmap of grad": lambda f, x: px.vmap(px.grad(_sum(f)))(jnp.stack([x, 2 * x])),
    "grad of vmap": lambda f, x: px.grad(lambda y: px.vmap(f)(jnp.stack([y, 2 * y])).sum())(x),
    "jvp of vmap": lambda f, x: px.jvp(px.vmap(f), (jnp.stack([x, x]),), (jnp.stack([x, 2 * x]),)),
    "grad of custom_jvp": lambda f, x: px.grad(_sum(_custom_jvp(f)))(x),
    "grad of custom_vjp": lambda f, x: px.grad(_sum(_custom_vjp(f)))(x),
    "jet": lambda f, x: jet.jet(f, (x,), ([_tangent(x), jnp.zeros_like(x)],)),
}
STAGED = {
    "jit": lambda f, x: px.jit(f)(x),
    "jit of grad": lambda f, x: px.jit(px.grad(_sum(f)))(x),
    "grad of jit": lambda f, x: px.grad(_sum(px.jit(f)))(x),
    "vmap of jit": lambda f, x: px.vmap(px.jit(f))(jnp.stack([x, 2 * x])),
    "scan": lambda f, x: px.lax.scan(lambda c, y: (c + f(y), f(c)), x, jnp.stack([x, 2 * x])),
    "grad of scan": lambda f, x: px.grad(
        lambda y: px.lax.scan(lambda c, _: (f(c), None), y, None, 2)[0].sum()
    )(x),
    "cond": lambda f, x: px.lax.cond(x.sum() > 0, f, lambda y: y, x),
    "grad of cond": lambda f, x: px.grad(lambda y: px.lax.cond(y.sum() > 0, f, lambda z: z, y).sum())(x),
    "while_loop": lambda f, x: px.lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1 + f(c) ** 2, x),
    "fori_loop": _loop,
    "grad of fori_loop": lambda f, x: px.grad(lambda y: _loop(f, y).sum())(x),
    "map": lambda f, x: px.lax.map(f, jnp.stack([x, 2 * x])),
    "grad of checkpoint": lambda f, x: px.grad(_sum(px.checkpoint(f)))(x),
    "grad of jit of custom_jvp": lambda f, x: px.grad(_sum(px.jit(_custom_jvp(f))))(x),
    "vmap of custom_vjp": lambda f, x: px.vmap(_custom_vjp(f))(jnp.stack([x, 2 * x])),
}
ALL = EAGER | STAGED


def outcome(run: Any, f: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(None):
            return px.tree_util.tree_map(np.asarray, run(f, jnp.asarray(VECTOR)))


def same(found: Any, expected: Any) -> None:
    px.tree_util.tree_map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6), found, expected
    )
