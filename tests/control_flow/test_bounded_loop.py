"""Reverse differentiation of loops with a number of steps that is not known: as the same loop in Python, and in little
memory, with a bound on the steps and without one."""

from __future__ import annotations

import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax import lax


def loop(x, max_steps=50):
    """The sum of sin aᵢ over a₀ = x, aᵢ₊₁ = x aᵢ, as long as aᵢ < 100."""
    start = (x, jnp.float32(0))
    return lax.while_loop(
        lambda s: s[0] < 100.0, lambda s: (s[0] * x, s[1] + jnp.sin(s[0])), start, max_steps=max_steps
    )[1]


def in_python(x):
    a, total = x, jnp.float32(0)
    while a < 100.0:
        a, total = a * x, total + jnp.sin(a)
    return total


STARTS = jnp.array([1.5, 2.0, 3.0])


@pytest.mark.parametrize(
    "transformed",
    {
        "value": lambda f: f,
        "grad": purax.grad,
        "jit of grad": purax.grad,
        "grad of grad": lambda f: purax.grad(purax.grad(f)),
        "forward over reverse": lambda f: purax.jacfwd(purax.grad(f)),
        "reverse over forward": lambda f: purax.grad(lambda x: purax.jvp(f, (x,), (1.0,))[1]),
    }.items(),
    ids=lambda item: item[0],
)
@pytest.mark.parametrize("max_steps", [50, None])
def test_agrees_with_a_python_loop(transformed, max_steps):
    _, transform = transformed

    def bounded(x):
        return loop(x, max_steps)

    transform_loop = purax.jit(purax.grad(bounded)) if transformed[0] == "jit of grad" else transform(bounded)
    for x in (1.5, 3.0, 200.0):
        np.testing.assert_allclose(transform_loop(x), transform(in_python)(x), rtol=1e-5)


def test_batches():
    wanted = [purax.grad(in_python)(float(x)) for x in STARTS]
    np.testing.assert_allclose(purax.vmap(purax.grad(loop))(STARTS), wanted, rtol=1e-5)
    np.testing.assert_allclose(purax.grad(lambda xs: purax.vmap(loop)(xs).sum())(STARTS), wanted, rtol=1e-5)
    np.testing.assert_allclose(purax.jit(purax.vmap(purax.grad(loop)))(STARTS), wanted, rtol=1e-5)


@pytest.mark.parametrize("bound", [0, 1, 3, 7, 8, 100])
def test_ends_at_the_bound(bound):
    count = lambda x: lax.while_loop(lambda v: v < 2.0**7, lambda v: v * 2, x, max_steps=bound)  # noqa: E731
    assert float(count(1.0)) == 2.0 ** min(bound, 7)
    assert float(purax.grad(count)(1.0)) == 2.0 ** min(bound, 7)
    assert int(lax.while_loop(lambda n: n < 100, lambda n: n + 1, 0, max_steps=bound)) == min(bound, 100)


def test_fori_loop_with_traced_bounds():
    power = lambda n, x: lax.fori_loop(0, n, lambda i, v: v * x + i, x, max_steps=20)  # noqa: E731
    slope = purax.jit(purax.grad(power, 1))

    def polynomial(n, x):
        v = x
        for i in range(n):
            v = v * x + i
        return v

    for n in (0, 1, 6):
        np.testing.assert_allclose(slope(n, 1.5), purax.grad(lambda x, n=n: polynomial(n, x))(1.5), rtol=1e-5)


def test_captured_values_are_differentiated():
    def f(a, b):
        return lax.while_loop(
            lambda v: (v < b * 10).all(), lambda v: v * a + b, jnp.ones(2), max_steps=30
        ).sum()

    def g(a, b):
        v = jnp.ones(2)
        while (v < b * 10).all():
            v = v * a + b
        return v.sum()

    for ours, theirs in zip(purax.grad(f, (0, 1))(1.5, 2.0), purax.grad(g, (0, 1))(1.5, 2.0), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_memory_grows_with_the_root_of_the_bound():
    def temporary(steps):
        f = lambda x: lax.fori_loop(0, steps, lambda i, v: jnp.sin(v) * 1.01, x, max_steps=steps).sum()  # noqa: E731
        compiled = purax.jit(purax.grad(f)).lower(jnp.ones(10_000)).compile()
        return compiled.memory_analysis().temp_size_in_bytes / 40_000  # in arrays

    few, many = temporary(100), temporary(2500)
    assert many < 25 / 4 * few, (few, many)
    assert many < 4 * 50 + 20


def summed(x, n):
    return lax.fori_loop(0, n, lambda i, s: s * x + 1.0 / (i + 1), x)


@pytest.mark.parametrize("count", [0, 1, 127, 128, 129, 1000, 20_000])
def test_any_number_of_steps(count):
    """Segments, segments of segments, and both where a last one is shorter: as a loop with a known number of steps."""
    unknown = UNKNOWN(0.99, count)
    np.testing.assert_allclose(unknown, purax.grad(lambda x: summed(x, count))(0.99), rtol=1e-5)


UNKNOWN = purax.jit(purax.grad(summed))


def test_without_a_bound_memory_does_not_grow_with_the_steps():
    f = lambda x, n: lax.fori_loop(0, n, lambda i, v: jnp.sin(v) * 1.01, x).sum()  # noqa: E731
    compiled = purax.jit(purax.grad(f)).lower(jnp.ones(10_000), 0).compile()
    assert compiled.memory_analysis().temp_size_in_bytes / 40_000 < 300  # arrays


def test_constants_and_what_begins_without_a_derivative():
    """What a step adds to a carry that begins as a constant, and to the derivative of what it takes from outside."""

    def f(w, x):
        def step(state):
            i, total, y = state
            return i + 1, total + (y * w).sum(), jnp.cos(y) * x

        return lax.while_loop(lambda s: s[0] < jnp.int32(x.sum() * 0) + 5, step, (0, 0.0, jnp.ones(3)))[1]

    def unrolled(w, x):
        total, y = 0.0, jnp.ones(3)
        for _ in range(5):
            total, y = total + (y * w).sum(), jnp.cos(y) * x
        return total

    w, x = jnp.arange(3.0), jnp.linspace(0.5, 1.0, 3)
    for found, wanted in zip(purax.grad(f, (0, 1))(w, x), purax.grad(unrolled, (0, 1))(w, x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("bound", [1.5, -1, "ten"])
def test_bad_bounds(bound):
    with pytest.raises((TypeError, ValueError), match="max_steps"):
        lax.while_loop(lambda v: v < 10.0, lambda v: v * 2, 1.0, max_steps=bound)


@pytest.mark.parametrize("max_steps", [40, None])
def test_random_keys_are_carried(max_steps):
    """A sum of draws times x, until it passes 10: the derivative is the sum of the draws."""

    def f(key, x):
        def step(state):
            return purax.random.split(state[0])[0], state[1] + purax.random.uniform(state[0]) * x

        return lax.while_loop(lambda s: s[1] < 10.0, step, (key, jnp.float32(0)), max_steps=max_steps)[1]

    key = purax.random.key(0)
    np.testing.assert_allclose(purax.grad(f, 1)(key, 2.0), f(key, 2.0) / 2.0, rtol=1e-5)
    keys, xs = purax.random.split(key, 3), jnp.arange(1.0, 4.0)
    np.testing.assert_allclose(
        purax.vmap(purax.grad(f, 1))(keys, xs), purax.vmap(f)(keys, xs) / xs, rtol=1e-5
    )


def test_effects_happen_in_order(capfd):
    def f(x):
        def step(v):
            purax.debug.print("at {}", v, ordered=True)
            return v * 2

        return lax.while_loop(lambda v: v < 10.0, step, x, max_steps=8)

    assert float(purax.jit(f)(1.0)) == 16.0
    purax.effects_barrier()
    assert capfd.readouterr().out.split() == "at 1.0 at 2.0 at 4.0 at 8.0".split()
