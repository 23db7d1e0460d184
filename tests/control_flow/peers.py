"""The same function run by purax and by jax under many transformations, results compared."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy
import numpy as np

import purax
import purax.numpy

PURAX = SimpleNamespace(px=purax, jnp=purax.numpy, lax=purax.lax)
JAX = SimpleNamespace(px=jax, jnp=jax.numpy, lax=jax.lax)


def leaves(tree):
    return [np.asarray(x) for x in jax.tree.leaves(tree)]


def agree(program, *args, rtol=2e-5, atol=1e-5):
    """`program(namespace)` is a function of arrays: purax and jax must give the same results, shapes and dtypes."""
    given = leaves(program(PURAX)(*map(purax.numpy.asarray, args)))
    wanted = leaves(program(JAX)(*map(jax.numpy.asarray, args)))
    assert len(given) == len(wanted)
    for a, b in zip(given, wanted, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype, (a.dtype, a.shape, b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def scalar(n, f):
    """`f` with all its results summed to one number, for `grad`."""
    return lambda *args: sum(n.jnp.sum(y * 1.5) for y in n.px.tree.leaves(f(*args)))


# Each takes a namespace and a function of a vector, and gives a function of a vector.
TRANSFORMED = {
    "eager": lambda n, f: f,
    "jit": lambda n, f: n.px.jit(f),
    "grad": lambda n, f: n.px.grad(scalar(n, f)),
    "jit of grad": lambda n, f: n.px.jit(n.px.grad(scalar(n, f))),
    "grad of jit": lambda n, f: n.px.grad(scalar(n, n.px.jit(f))),
    "jvp": lambda n, f: lambda x: n.px.jvp(f, (x,), (n.jnp.cos(x),)),
    "vmap": lambda n, f: lambda x: n.px.vmap(f)(n.jnp.stack([x, 2 * x, x - 1])),
    "vmap of grad": lambda n, f: lambda x: n.px.vmap(n.px.grad(scalar(n, f)))(n.jnp.stack([x, 2 * x, x - 1])),
    "grad of vmap": lambda n, f: n.px.grad(scalar(n, lambda x: n.px.vmap(f)(n.jnp.stack([x, 2 * x])))),
    "jit of vmap of jit": lambda n, f: n.px.jit(
        lambda x: n.px.vmap(n.px.jit(f), 1)(n.jnp.stack([x, x + 1], 1))
    ),
    "second derivative": lambda n, f: n.px.jit(n.px.jacrev(n.px.grad(scalar(n, f)))),
}
FORWARD_ONLY = {name: TRANSFORMED[name] for name in ("eager", "jit", "jvp", "vmap", "jit of vmap of jit")}
SELECTED = ("eager", "jit of grad", "jvp", "vmap of grad", "jit of vmap of jit")


def pairs(programs, thorough):
    """(program, transformation) to test: every transformation for the programs named, a selection for the others."""
    return [(what, how) for what in programs for how in TRANSFORMED if what in thorough or how in SELECTED]
