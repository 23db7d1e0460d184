"""Programs in plain Python control flow: compiled, vectorized and differentiated, they equal their eager selves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp


def newton(a):
    """The square root of `a`."""
    x = a
    for _ in range(50):
        new = 0.5 * (x + a / x)
        if abs(new - x) < 1e-6 * x:
            return new
        x = new
    return x


def collatz(n):
    """How many steps it takes to 1, and the largest number on the way."""
    steps, top = 0, n
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        top = max(top, n)
        steps += 1
    return steps, top


def mandelbrot(re, im):
    """After how many steps z² + c is known to diverge, smoothly."""
    x, y = 0.0, 0.0
    for i in range(40):
        if x * x + y * y > 16.0:
            return i + 1.0 - jnp.log2(jnp.log(x * x + y * y) / 2)
        x, y = x * x - y * y + re, 2 * x * y + im
    return 40.0


def bisection(target):
    """Where x³ + x = target."""
    low, high = -10.0, 10.0
    while high - low > 1e-5:
        middle = (low + high) / 2
        value = middle**3 + middle
        if value == target:
            return middle
        elif value < target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


TABLE = np.array([1.0, 3.0, 4.5, 7.0, 7.5, 11.0, 20.0], np.float32)


def binary_search(x):
    """The index of `x` in a sorted table, or −1."""
    table = jnp.asarray(TABLE)
    low, high = 0, len(TABLE) - 1
    while low <= high:
        middle = (low + high) // 2
        if table[middle] == x:
            return middle
        if table[middle] < x:
            low = middle + 1
        else:
            high = middle - 1
    return -1


def life_cell(alive, neighbours):
    if alive:
        return 2 <= neighbours <= 3
    else:
        return neighbours == 3


def game_of_life_step(board):
    """The next generation; stops early on an empty board."""
    if not board.any():
        return board
    counts = jnp.zeros(board.shape, jnp.int32)
    for dx in (-1, 0, 1):
        for dy in (-1, 0, 1):
            if dx or dy:
                counts = counts + jnp.roll(board, (dx, dy), (0, 1))
    return px.vmap(px.vmap(life_cell))(board, counts)


class Step(NamedTuple):
    t: Any
    y: Any
    h: Any


def adaptive_ode(y0, rate):
    """y' = −rate · y on [0, 1] with Heun's method and steps that adapt to the error."""
    state = Step(0.0, y0, 0.5)
    accepted = 0
    while state.t < 1.0:
        t, y, h = state
        if t + h > 1.0:
            h = 1.0 - t
        k1 = -rate * y
        k2 = -rate * (y + h * k1)
        error = abs(h * (k2 - k1) / 2)
        if error <= 1e-4:
            state = Step(t + h, y + h * (k1 + k2) / 2, h * 1.5)
            accepted += 1
        else:
            state = Step(t, y, h / 2)
    return state.y, accepted


def beam_search(bias):
    """Extends the two best sequences until the best one has ended (token 0) or eight tokens are there."""
    scores = jnp.array([0.0, -1.0])
    last = jnp.array([1, 2])
    table = jnp.sin(jnp.arange(9.0).reshape(3, 3) + bias)
    for length in range(8):  # noqa: B007
        if last[jnp.argmax(scores)] == 0:
            break
        total = (scores[:, None] + table[last]).reshape(-1)
        scores, flat = px.lax.top_k(total, 2)
        last = flat % 3
    return scores.max(), length


def kalman(measurements, gate):
    """A filter of a constant that ignores measurements further than `gate` standard deviations away."""
    mean, variance, rejected = 0.0, 10.0, 0
    for z in measurements:
        innovation = z - mean
        spread = variance + 1.0
        if innovation * innovation > gate * gate * spread:
            rejected += 1
            variance = variance + 0.1
            continue
        gain = variance / spread
        mean = mean + gain * innovation
        variance = (1 - gain) * variance + 0.1
    return mean, variance, rejected


def k_means(points):
    """Two centres, moved until they stay where they are."""
    centres = points[:2]
    steps = 0
    while True:
        distance = abs(points[:, None] - centres[None, :])
        nearest = jnp.argmin(distance, 1)
        new = []
        for k in range(2):
            mine = nearest == k
            count = mine.sum()
            new.append(jnp.where(mine, points, 0).sum() / count if count > 0 else centres[k])
        moved = jnp.stack(new)
        steps += 1
        if jnp.all(abs(moved - centres) < 1e-6) or steps >= 20:
            break
        centres = moved
    return centres, steps


GLIDER = np.array([[0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [1, 1, 1, 0, 0], [0] * 5, [0] * 5], bool)
SERIES = np.array(
    [[1.0, 1.2, 9.0, 0.8, 1.1], [5.0, -5.0, 2.0, 2.1, 1.9], [0.1, 0.2, 0.3, 0.1, 0.0]], np.float32
)
POINTS = np.array(
    [[0.0, 5.0, 0.3, 5.2, -0.1, 4.9], [1.0, 1.1, 9.0, 8.0, 1.2, 9.5], [2.0, 2.0, 2.0, 2.0, 2.0, 3.0]]
)

# The function, three sets of arguments, and the argument to differentiate with respect to.
PROGRAMS: dict[str, tuple[Any, list[tuple], int | None]] = {
    "Newton's method": (newton, [(2.0,), (9.0,), (0.3,)], 0),
    "Collatz": (collatz, [(1,), (6,), (27,)], None),
    "Mandelbrot": (mandelbrot, [(0.0, 0.1), (1.0, 1.0), (-0.5, 0.7)], 0),
    "bisection": (bisection, [(0.0,), (2.0,), (-30.0,)], 0),
    "binary search": (binary_search, [(1.0,), (7.5,), (8.0,)], None),
    "game of life": (game_of_life_step, [(GLIDER,), (GLIDER * False,), (~GLIDER,)], None),
    "adaptive ODE step": (adaptive_ode, [(1.0, 1.0), (2.0, 5.0), (0.0, 1.0)], 1),
    "beam search": (beam_search, [(0.0,), (1.0,), (2.5,)], 0),
    "Kalman filter": (kalman, [(SERIES[0], 2.0), (SERIES[1], 1.0), (SERIES[2], 3.0)], 0),
    "k-means": (k_means, [(row.astype(np.float32),) for row in POINTS], 0),
}


def close(got, wanted):
    px.tree_util.tree_map(
        lambda x, y: np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=2e-5, atol=1e-5),
        got,
        wanted,
    )


def floats(function):
    """The results of a function that have derivatives."""
    is_float = lambda x: jnp.issubdtype(jnp.result_type(x), jnp.floating)  # noqa: E731
    return lambda *args: [x for x in px.tree_util.tree_leaves(function(*args)) if is_float(x)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_equal_their_eager_selves(name):
    function, inputs, number = PROGRAMS[name]
    inputs = [tuple(map(jnp.asarray, arguments)) for arguments in inputs]
    results = [function(*arguments) for arguments in inputs]
    compiled = px.jit(function)
    for arguments, wanted in zip(inputs, results, strict=True):
        close(compiled(*arguments), wanted)
    batch = [jnp.stack(column) for column in zip(*inputs, strict=True)]
    together = px.vmap(compiled)(*batch)
    for i, wanted in enumerate(results):
        close(px.tree_util.tree_map(lambda x, i=i: x[i], together), wanted)
    if number is not None:
        slopes = px.jit(px.jacfwd(floats(function), number))
        for arguments in inputs:
            wanted = px.jacfwd(floats(function), number)(*arguments)
            close(slopes(*arguments), wanted)
            close(px.jacfwd(floats(compiled), number)(*arguments), wanted)


BOUNDED = {"Newton's method": newton, "Mandelbrot": mandelbrot, "beam search": lambda b: beam_search(b)[0]}


@pytest.mark.parametrize("name", BOUNDED)
def test_loops_with_a_bound_are_differentiated_in_reverse(name):
    function = BOUNDED[name]
    for arguments in PROGRAMS[name][1]:
        close(px.grad(px.jit(function))(*arguments), px.grad(function)(*arguments))


def test_branches_are_differentiated_in_reverse():
    def huber(x):
        if abs(x) < 1:
            return x * x / 2
        return abs(x) - 0.5

    def safe_root(x):
        return jnp.sqrt(x) if x > 0 else 0.0 * x

    for x in (-3.0, 0.2, 4.0):
        close(px.grad(px.jit(huber))(x), px.grad(huber)(x))
    assert float(px.grad(px.jit(safe_root))(0.0)) == 0.0
    together = px.jit(px.grad(lambda xs: px.vmap(huber)(xs).sum()))(jnp.array([-3.0, 0.2, 4.0]))
    close(together, np.array([-1.0, 0.2, 1.0]))
    close(px.jit(px.hessian(huber))(0.2), 1.0)
