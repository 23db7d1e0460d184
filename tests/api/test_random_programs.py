"""Random programs obey the laws of the transformations.

A seed makes a program of a dozen operations on scalars, vectors, matrices and empty arrays, with loops, branches,
nested transformations and functions with rules of their own. In float64 each is held against

    jit f = f           jvp f = finite differences        ⟨J v, y⟩ = ⟨v, Jᵀ y⟩        linearize f = jvp f
    vmap f = loop       vmap ∘ grad = loop of grads       grad ∘ jit = grad           jvp ∘ grad = finite differences

`PURAX_RANDOM_PROGRAMS=1000` tries more seeds than the ones that are always tried.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.core.jaxpr import eval_jaxpr

pytestmark = pytest.mark.sampled(4)

SEEDS = range(int(os.environ.get("PURAX_RANDOM_PROGRAMS", "50")))
SHAPES = ((), (3,), (2, 3), (3, 2), (1,), (0,), (0, 3), (2, 1, 3), (3, 3))
QUICKLY = {"xla_backend_optimization_level": 0}

Function = Callable[..., list]


class Generator:
    """Makes functions of arrays of given shapes; the same seed makes the same function."""

    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)
        self.used: list[str] = []

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def array(self, shape: tuple[int, ...]) -> Any:
        return jnp.asarray(self.random.uniform(-1, 1, shape), jnp.float64)

    def function(self, shapes: Sequence[tuple[int, ...]], length: int, depth: int = 0) -> Function:
        """A function of arrays of `shapes` that returns a list of one to three arrays."""
        steps: list[Callable[[list], Any]] = []
        known = [
            self.array(shape) for shape in shapes
        ]  # values at some point, of which only the shapes count
        while len(steps) < length:
            step = self.step(known, depth)
            if step is not None:
                steps.append(step)
                known.append(step(known))
        count = int(self.random.integers(1, 4))
        outputs = sorted(
            set(self.random.integers(len(shapes), len(known), count).tolist()) | {len(known) - 1}
        )

        def run(*args):
            values = list(args)
            for each in steps:
                values.append(each(values))
            return [values[i] for i in outputs]

        return run

    def step(self, known: list, depth: int) -> Callable[[list], Any] | None:
        """One more operation on the values known so far; None if the one that was chosen does not fit them."""
        kinds = [*PLAIN] * 3 + ([*NESTED] if depth < 2 else [])
        name = self.pick(kinds)
        i = int(self.random.integers(len(known)))
        step = (PLAIN | NESTED)[name](self, known, i, depth)
        if step is not None:
            self.used.append(name)
        return step


# --- operations: each takes the generator, the known values, a position and the depth; gives a function of all values


def tame(x):
    """Keeps numbers near one, so that differences are meaningful."""
    return jnp.tanh(x * 0.5)


def unary(f):
    return lambda g, known, i, depth: lambda values: f(values[i])


def binary(f):
    def make(g, known, i, depth):
        fits = [
            j for j, v in enumerate(known) if v.shape == known[i].shape or not v.shape or not known[i].shape
        ]
        j = g.pick(fits)
        return lambda values: f(values[i], values[j])

    return make


def reduction(f):
    def make(g, known, i, depth):
        shape = known[i].shape
        if not shape or 0 in shape:
            return None
        axis = int(g.random.integers(len(shape)))
        keepdims = bool(g.random.integers(2))
        return lambda values: tame(f(values[i], axis=axis, keepdims=keepdims))

    return make


def matmul(g, known, i, depth):
    x = known[i]
    fits = [j for j, y in enumerate(known) if x.ndim == y.ndim == 2 and x.shape[1] == y.shape[0]]
    if not fits:
        return None
    j = g.pick(fits)
    return lambda values: tame(values[i] @ values[j])


def einsum(g, known, i, depth):
    if known[i].ndim != 2:
        return None
    return lambda values: tame(jnp.einsum("ij,kj->ik", values[i], values[i]))


def reshape(g, known, i, depth):
    size = known[i].size
    shapes = [s for s in SHAPES if int(np.prod(s)) == size] + [(size,), (1, size)]
    shape = g.pick(shapes)
    return lambda values: values[i].reshape(shape)


def transpose(g, known, i, depth):
    order = tuple(g.random.permutation(known[i].ndim).tolist())
    return lambda values: values[i].transpose(order)


def concatenate(g, known, i, depth):
    if known[i].ndim == 0:
        return None
    axis = int(g.random.integers(known[i].ndim))
    return lambda values: jnp.concatenate([values[i], values[i] * 2.0], axis=axis)[..., :3]


def stack(g, known, i, depth):
    axis = int(g.random.integers(known[i].ndim + 1))
    return lambda values: jnp.stack([values[i], jnp.sin(values[i])], axis=axis).sum(axis=axis)


def index(g, known, i, depth):
    if known[i].ndim == 0 or known[i].shape[0] == 0:
        return None
    k = int(g.random.integers(known[i].shape[0]))
    return g.pick(
        [
            lambda values: values[i][k],
            lambda values: values[i][::-1],
            lambda values: values[i][np.array([k, 0, k])],
        ]
    )


def update(g, known, i, depth):
    if known[i].ndim == 0 or known[i].shape[0] == 0:
        return None
    k = int(g.random.integers(known[i].shape[0]))
    kind = g.pick(["set", "add", "multiply"])
    return lambda values: getattr(values[i].at[k], kind)(jnp.sin(values[i][0]))


def broadcast(g, known, i, depth):
    return lambda values: jnp.broadcast_to(values[i], (2, *known[i].shape)).mean(0) * values[i]


def where(g, known, i, depth):
    limit = float(g.random.uniform(-0.5, 0.5))
    return lambda values: jnp.where(values[i] > limit, values[i] * 2.0, jnp.sin(values[i]))


def cumulate(g, known, i, depth):
    if known[i].ndim == 0:
        return None
    return lambda values: tame(jnp.cumsum(values[i], axis=0))


def sort(g, known, i, depth):
    return None if known[i].ndim == 0 else lambda values: jnp.sort(values[i], axis=-1)


PLAIN = {
    "sin": unary(jnp.sin),
    "tanh": unary(lambda x: jnp.tanh(x * 1.5)),
    "exp": unary(lambda x: jnp.exp(tame(x))),
    "log1p": unary(lambda x: jnp.log1p(x * x)),
    "sqrt": unary(lambda x: jnp.sqrt(1.5 + x * x)),
    "square": unary(lambda x: tame(x**2)),
    "cube": unary(lambda x: tame(x**3)),
    "reciprocal": unary(lambda x: 1.0 / (2.0 + jnp.cos(x))),
    "abs": unary(lambda x: jnp.abs(x + 0.123)),
    "integers": unary(lambda x: x * jnp.arange(x.size, dtype=jnp.int32).reshape(x.shape) % 3),
    "stop": unary(lambda x: x * jnp.floor(x * 7.0)),
    "add": binary(lambda x, y: x + y),
    "sub": binary(lambda x, y: x - 2.0 * y),
    "mul": binary(lambda x, y: tame(x * y)),
    "div": binary(lambda x, y: tame(x / (1.0 + y * y))),
    "maximum": binary(lambda x, y: jnp.maximum(x, y + 0.0625)),
    "arctan2": binary(lambda x, y: jnp.arctan2(x, 2.0 + y * y)),
    "sum": reduction(jnp.sum),
    "mean": reduction(jnp.mean),
    "max": reduction(jnp.max),
    "prod": reduction(jnp.prod),
    "matmul": matmul,
    "einsum": einsum,
    "reshape": reshape,
    "transpose": transpose,
    "concatenate": concatenate,
    "stack": stack,
    "index": index,
    "update": update,
    "broadcast": broadcast,
    "where": where,
    "cumsum": cumulate,
    "sort": sort,
}


# --- operations that hold a smaller program


def inner(g: Generator, shapes, depth: int) -> Callable[..., Any]:
    """A random function of arrays that returns one array of the shape of the first."""
    f = g.function(shapes, int(g.random.integers(2, 4)), depth + 1)

    def run(x, *rest):
        return x + tame(sum(jnp.sum(y) for y in f(x, *rest)) * jnp.cos(x))

    return run


def call(wrap):
    def make(g, known, i, depth):
        j = int(g.random.integers(len(known)))
        f = wrap(inner(g, [known[i].shape, known[j].shape], depth))
        return lambda values: f(values[i], values[j])

    return make


def capturing(g, known, i, depth):
    j = int(g.random.integers(len(known)))
    f = inner(g, [known[i].shape, known[j].shape], depth)
    return lambda values: px.jit(lambda x: f(x, values[j]))(values[i])


def cond(g, known, i, depth):
    shapes = [known[i].shape]
    first, second = inner(g, shapes, depth), inner(g, shapes, depth)
    limit = float(g.random.uniform(-1, 1))
    return lambda values: px.lax.cond(jnp.sum(values[i]) > limit, first, second, values[i])


def switch(g, known, i, depth):
    branches = [inner(g, [known[i].shape], depth) for _ in range(3)]
    which = int(g.random.integers(3))
    return lambda values: px.lax.switch(
        jnp.int32(which) + jnp.floor(0 * jnp.sum(values[i])).astype(int), branches, values[i]
    )


def scan(g, known, i, depth):
    shape = known[i].shape
    if not shape or shape[0] == 0:
        return None
    body = inner(g, [shape[1:], shape[1:]], depth)
    reverse, unroll = bool(g.random.integers(2)), int(g.random.integers(1, 3))

    def step(c, x):
        c = tame(body(c, x))
        return c, c * x

    return lambda values: px.lax.scan(step, values[i][0], values[i], reverse=reverse, unroll=unroll)[1]


def loop(g, known, i, depth):
    body = inner(g, [known[i].shape], depth)
    return lambda values: px.lax.fori_loop(0, 3, lambda k, c: tame(body(c)) + k * 0.125, values[i])


def vmap(g, known, i, depth):
    shape = known[i].shape
    if not shape or shape[0] == 0:
        return None
    j = int(g.random.integers(len(known)))
    f = inner(g, [shape[1:], known[j].shape], depth)
    return lambda values: px.vmap(f, in_axes=(0, None))(values[i], values[j])


def grad(g, known, i, depth):
    f = inner(g, [known[i].shape], depth)
    return lambda values: tame(px.grad(lambda x: jnp.sum(f(x)))(values[i]))


def jvp(g, known, i, depth):
    f = inner(g, [known[i].shape], depth)
    return lambda values: tame(px.jvp(f, (values[i],), (jnp.cos(values[i]),))[1])


def with_custom_jvp(f):
    wrapped = px.custom_jvp(f)
    wrapped.defjvp(lambda primals, tangents: px.jvp(f, primals, tangents))
    return wrapped


def with_custom_jvps(f):
    """A rule for each argument."""

    def rule(k):
        return lambda t, out, *xs: px.jvp(lambda x: f(*xs[:k], x, *xs[k + 1 :]), (xs[k],), (t,))[1]

    wrapped = px.custom_jvp(f)
    wrapped.defjvps(rule(0), rule(1))
    return wrapped


def with_custom_vmap(f):
    """A vectorization rule that is a loop."""
    wrapped = px.custom_batching.sequential_vmap(f)
    return wrapped


NESTED = {
    "jit": call(px.jit),
    "checkpoint": call(px.checkpoint),
    "dots saved": call(lambda f: px.checkpoint(f, policy=px.checkpoint_policies.dots_saveable)),
    "custom_jvp": call(with_custom_jvp),
    "custom_jvps": call(with_custom_jvps),
    "custom_vmap": call(with_custom_vmap),
    "capturing jit": capturing,
    "cond": cond,
    "switch": switch,
    "scan": scan,
    "loop": loop,
    "vmap": vmap,
    "grad": grad,
    "jvp": jvp,
}


# --- the laws


def assert_close(given, wanted, what, tolerance=1e-9):
    given, wanted = px.tree.leaves(given), px.tree.leaves(wanted)
    assert len(given) == len(wanted), what
    for a, b in zip(given, wanted, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype, (what, a.shape, b.shape, a.dtype, b.dtype)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=what)


def inner_product(xs, ys):
    return sum(float(np.sum(np.asarray(x) * np.asarray(y))) for x, y in zip(xs, ys, strict=True))


def quotient(f, args, directions, step):
    moved = lambda sign: f(*(x + sign * step * d for x, d in zip(args, directions, strict=True)))  # noqa: E731
    return [(np.asarray(a) - np.asarray(b)) / (2 * step) for a, b in zip(moved(1), moved(-1), strict=True)]


def program(seed: int):
    g = Generator(seed)
    shapes = [g.pick(SHAPES) for _ in range(int(g.random.integers(1, 4)))]
    f = g.function(shapes, int(g.random.integers(5, 11)))
    return g, f, [g.array(shape) for shape in shapes], [g.array(shape) for shape in shapes]


@pytest.mark.parametrize("seed", SEEDS)
def test_laws(seed):
    g, f, args, directions = program(seed)
    label = f"seed {seed}: {g.used}"
    out = f(*args)
    weights = [g.array(y.shape) for y in out]
    loss = lambda *xs: sum(jnp.sum(y * w) for y, w in zip(f(*xs), weights, strict=True))  # noqa: E731
    every = tuple(range(len(args)))
    gradient = px.grad(loss, argnums=every)

    closed = px.make_jaxpr(f)(*args)
    assert_close(eval_jaxpr(closed.jaxpr, closed.consts, *args), out, f"{label}: the program is the function")

    value, tangents = px.jvp(f, tuple(args), tuple(directions))
    assert_close(value, out, f"{label}: the value of jvp")
    assert_close(tangents, quotient(f, args, directions, 1e-6), f"{label}: jvp and finite differences", 1e-6)
    _, pushforward = px.linearize(f, *args)
    assert_close(pushforward(*directions), tangents, f"{label}: linearize is jvp")

    pulled = px.vjp(f, *args)[1](weights)
    left, right = inner_product(tangents, weights), inner_product(directions, pulled)
    assert left == pytest.approx(right, rel=1e-9, abs=1e-9), f"{label}: forward is reverse"
    assert_close(list(gradient(*args)), list(pulled), f"{label}: grad is vjp")

    second = px.jvp(gradient, tuple(args), tuple(directions))[1]
    assert_close(second, quotient(gradient, args, directions, 1e-5), f"{label}: second derivative", 1e-4)

    others = [x * 0.5 + 0.1 for x in args]
    batches = [jnp.stack([x, y]) for x, y in zip(args, others, strict=True)]
    stacked = [jnp.stack([a, b]) for a, b in zip(out, f(*others), strict=True)]
    assert_close(px.vmap(f)(*batches), stacked, f"{label}: vmap is a loop")
    gradients = [jnp.stack([a, b]) for a, b in zip(gradient(*args), gradient(*others), strict=True)]
    assert_close(px.vmap(gradient)(*batches), gradients, f"{label}: vmap of grad")
    together = px.grad(lambda *xs: jnp.sum(px.vmap(loss)(*xs)), argnums=every)(*batches)
    assert_close(together, gradients, f"{label}: grad of vmap")

    of_jit = px.grad(px.jit(loss), argnums=every)
    everything = lambda xs, ys: (f(*xs), gradient(*xs), of_jit(*xs), px.vmap(f)(*ys))  # noqa: E731
    compiled = px.jit(everything, compiler_options=QUICKLY)(args, batches)
    assert_close(compiled, (out, gradient(*args), gradient(*args), stacked), f"{label}: jit changes nothing")


def test_the_programs_are_varied():
    used, shapes = set(), set()
    for seed in range(60):
        g, _, args, _ = program(seed)
        used |= set(g.used)
        shapes |= {x.shape for x in args}
    assert used >= set(PLAIN) | set(NESTED), set(PLAIN) | set(NESTED) - used
    assert shapes >= set(SHAPES)


def test_a_seed_makes_the_same_program_again():
    first, second = program(7), program(7)
    assert first[0].used == second[0].used
    assert_close(first[1](*first[2]), second[1](*second[2]), "repeatable")
