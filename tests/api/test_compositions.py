"""Transformations compose: every pair and triple of them, over functions with rules of their own and constants.

    (T₃ ∘ T₂ ∘ T₁) f = T₃ (T₂ (T₁ f)) with each Tᵢ written out: a Python loop for vmap, scan and map, the function
    itself for jit, checkpoint, cond, eval of its jaxpr, …, and the same function without a rule for the derivatives

The rules are those of the plain function, so that derivatives must be those of the plain function, too. What a
program holds as a literal enters every rule as an array of the literal's type.
"""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.core.jaxpr import eval_jaxpr

pytestmark = pytest.mark.sampled(3)

CONSTANTS: dict[str, Any] = {
    "float": 2.0,
    "int": 2,
    "minus zero": -0.0,
    "NumPy scalar": np.float64(2.0),
    "NumPy array": np.array([1.0, 2.0, 3.0]),
    "array": jnp.arange(3.0),
    "None": None,
}


def plain(x, c):
    return jnp.sin(x) * (0.5 if c is None else c)


def with_jvp(**options):
    f = px.custom_jvp(plain)

    def rule(primals, tangents):
        (x, c), (dx, dc) = primals, tangents
        is_zero = lambda d: d is None or type(d) is px.custom_derivatives.SymbolicZero  # noqa: E731
        tangent = jnp.zeros_like(plain(x, c)) if is_zero(dx) else jnp.cos(x) * (0.5 if c is None else c) * dx
        if not is_zero(dc) and jnp.issubdtype(jnp.result_type(c), jnp.inexact):
            tangent = tangent + jnp.sin(x) * dc
        return plain(x, c), tangent

    f.defjvp(rule, **options)
    return f


def with_vjp():
    f = px.custom_vjp(plain)
    scale = lambda c: 0.5 if c is None else c  # noqa: E731

    def backward(residuals, g):
        x, c = residuals
        return jnp.broadcast_to(jnp.cos(x) * scale(c) * g, x.shape), None

    f.defvjp(lambda x, c: (plain(x, c), (x, c)), backward)
    return f


def with_static():
    @functools.partial(px.custom_jvp, nondiff_argnums=(0,))
    def apply(f, x):
        return f(x)

    apply.defjvp(lambda f, primals, tangents: px.jvp(f, primals, tangents))
    return lambda x, c: apply(lambda x: plain(x, c), x)


def with_vmap():
    @px.custom_batching.custom_vmap
    def f(x):
        return jnp.sin(x)

    f.def_vmap(lambda size, batched, x: (jnp.sin(x), batched[0]))
    return lambda x, c: f(x) * (0.5 if c is None else c)


def with_gradient():
    @px.custom_gradient
    def f(x):
        return jnp.sin(x), lambda g: (jnp.cos(x) * g,)

    return lambda x, c: f(x) * (0.5 if c is None else c)


FUNCTIONS = {
    "custom_jvp": with_jvp(),
    "symbolic zeros": with_jvp(symbolic_zeros=True),
    "custom_vjp": with_vjp(),
    "nondiff_argnums": with_static(),
    "custom_vmap": with_vmap(),
    "custom_gradient": with_gradient(),
}
REVERSE_ONLY = ("custom_vjp", "custom_gradient")

Wrap = Callable[[Callable], Callable]


def stack(results):
    return jnp.stack([jnp.asarray(y) for y in results])


def by_jaxpr(f):
    def run(x):
        closed = px.make_jaxpr(f)(x)
        return eval_jaxpr(closed.jaxpr, closed.consts, x)[0]

    return run


def transposed(f):
    def run(x):
        y, linear = px.linearize(f, x)
        return px.linear_transpose(linear, x)(jnp.ones_like(y))[0]

    return run


def pulled(f):
    def run(x):
        y, pull = px.vjp(f, x)
        return pull(jnp.ones_like(y))[0]

    return run


def pushed(f):
    return lambda x: px.jvp(f, (x,), (x * 0.5,))[1]


def same(f):
    return f


def while_loop(f):
    return lambda x: px.lax.while_loop(
        lambda s: s[0] < 1, lambda s: (s[0] + 1, f(x)), (0, jnp.zeros_like(f(x)))
    )[1]


def on_one_device(f):
    mesh = px.make_mesh((1,), ("d",), devices=px.devices()[:1])
    return px.shard_map(f, mesh=mesh, in_specs=px.P(), out_specs=px.P())


# The transformation, what it means written out, and whether it is forward or reverse differentiation. All take an
# array and give an array; a batch is that of the array and twice it.
TRANSFORMATIONS: dict[str, tuple[Wrap, Wrap, str]] = {
    "jit": (px.jit, same, ""),
    "vmap": (
        lambda f: lambda x: px.vmap(f)(jnp.stack([x, 2 * x])).sum(0),
        lambda f: lambda x: stack([f(x), f(2 * x)]).sum(0),
        "",
    ),
    "named vmap": (
        lambda f: (
            lambda x: px.vmap(lambda v: px.lax.psum(f(v), "i"), axis_name="i")(jnp.stack([x, 2 * x]))[0]
        ),
        lambda f: lambda x: f(x) + f(2 * x),
        "",
    ),
    "pullback": (pulled, pulled, "reverse"),
    "jvp": (pushed, pushed, "forward"),
    "linearize and transpose": (transposed, transposed, "reverse"),
    "grad": (lambda f: px.grad(lambda x: f(x).sum()), lambda f: px.grad(lambda x: f(x).sum()), "reverse"),
    "jacfwd": (lambda f: lambda x: px.jacfwd(f)(x).sum(0), lambda f: pulled(f), "forward"),
    "jacrev": (lambda f: lambda x: px.jacrev(f)(x).sum(0), lambda f: pulled(f), "reverse"),
    "checkpoint": (px.checkpoint, same, ""),
    "scan": (
        lambda f: (
            lambda x: px.lax.scan(lambda c, v: (c + f(v), None), jnp.zeros(3), jnp.stack([x, 2 * x]))[0]
        ),
        lambda f: lambda x: f(x) + f(2 * x),
        "",
    ),
    "unrolled scan": (
        lambda f: (
            lambda x: px.lax.scan(
                lambda c, v: (c + f(v), f(v)), jnp.zeros(3), jnp.stack([x, 2 * x, 3 * x]), unroll=2
            )[1].sum(0)
        ),
        lambda f: lambda x: f(x) + f(2 * x) + f(3 * x),
        "",
    ),
    "map": (
        lambda f: lambda x: px.lax.map(f, jnp.stack([x, 2 * x])).sum(0),
        lambda f: lambda x: f(x) + f(2 * x),
        "",
    ),
    "fori_loop": (
        lambda f: lambda x: px.lax.fori_loop(0, 2, lambda i, c: c + f(x), jnp.zeros(3)),
        lambda f: lambda x: 2 * f(x),
        "",
    ),
    "while_loop": (while_loop, same, "loop"),
    "cond": (
        lambda f: lambda x: px.lax.cond(x.sum() > 0, f, lambda x: f(2 * x), x),
        lambda f: lambda x: jnp.where(x.sum() > 0, f(x), f(2 * x)),
        "",
    ),
    "evaluated jaxpr": (by_jaxpr, same, ""),
    "shard_map": (on_one_device, same, ""),
}


def nestings(count: int, of: int, length: int) -> list[tuple[str, ...]]:
    """All compositions of a length, or `count` of them that are the same in every run."""
    found = list(itertools.product(TRANSFORMATIONS, repeat=length))
    order = np.random.default_rng(of).permutation(len(found))[:count]
    return [found[i] for i in sorted(order)]


def is_defined(names: tuple[str, ...], function: str) -> bool:
    kinds = [TRANSFORMATIONS[name][2] for name in names]
    if names.count("shard_map") > 1:  # an axis of a mesh is used up by the first
        return False
    if function in REVERSE_ONLY and "forward" in kinds:
        return False
    return not ("loop" in kinds and "reverse" in kinds[kinds.index("loop") :])


def check(function: str, constant: str, names: tuple[str, ...]) -> None:
    c = CONSTANTS[constant]
    given = lambda x: FUNCTIONS[function](x, c)  # noqa: E731
    wanted = lambda x: plain(x, c)  # noqa: E731
    for name in names:
        given, wanted = TRANSFORMATIONS[name][0](given), TRANSFORMATIONS[name][1](wanted)
    x = jnp.asarray([0.5, -0.25, 1.0], jnp.float32)
    np.testing.assert_allclose(given(x), wanted(x), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("names", [(a, b) for a in TRANSFORMATIONS for b in TRANSFORMATIONS], ids=" of ".join)
def test_pairs(names):
    # Which functions and constants: all of them, over the pairs.
    place = zlib.crc32(" ".join(names).encode())
    functions, constants = list(FUNCTIONS), list(CONSTANTS)
    for i in range(2):
        function = functions[(place + i) % len(functions)]
        if is_defined(names, function):
            check(function, constants[(place // 7 + 3 * i) % len(constants)], names)


@pytest.mark.parametrize("names", nestings(120, of=3, length=3), ids=" of ".join)
def test_triples(names):
    place = zlib.crc32(" ".join(names).encode())
    function = list(FUNCTIONS)[place % len(FUNCTIONS)]
    if is_defined(names, function):
        check(function, list(CONSTANTS)[place // 7 % len(CONSTANTS)], names)


@pytest.mark.parametrize("constant", CONSTANTS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_function_with_each_constant(function, constant):
    for names in (("jit", "vmap"), ("scan", "grad"), ("vmap", "jit", "grad"), ("cond", "vmap")):
        check(function, constant, names)
