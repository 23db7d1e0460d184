"""Random but typical programs: layers, loops, reductions, indexing, linear algebra and random numbers, transformed.

A program is source text that a kind and a seed determine; `python -m bench.random_programs KIND SEED` prints it. `h` is
always a matrix of floats, and each step is written for its current shape. Values are kept near one, and decisions that
rounding could turn (sorts, comparisons) stay away from what is compared, as far as a generator can see to it.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

# What is done with a program: `step(p, h, key)` gives a matrix of floats.
KINDS = {
    "values": "def program(p, x, seed):\n    return step(p, x, random.PRNGKey(seed))",
    "gradients": """def loss(p, x, seed):
    return jnp.mean(step(p, x, random.PRNGKey(seed)) ** 2)

program = px.value_and_grad(loss)""",
    "batched": """def program(p, x, seed):
    keys = random.split(random.PRNGKey(seed), 4)
    return px.vmap(step, in_axes=(None, 0, 0))(p, jnp.stack([x, x * 0.5, -x, x + 0.1]), keys)""",
    "per-example gradients": """def loss(p, x, key):
    return jnp.mean(step(p, x, key) ** 2)

def program(p, x, seed):
    keys = random.split(random.PRNGKey(seed), 3)
    return px.vmap(px.grad(loss), in_axes=(None, 0, 0))(p, jnp.stack([x, x * 0.5, x + 0.1]), keys)""",
    "training": """def loss(p, x, key):
    return jnp.mean(step(p, x, key) ** 2)

def program(p, x, seed):
    def update(carry, key):
        p, m = carry
        value, g = px.value_and_grad(loss)(p, x, key)
        m = px.tree_util.tree_map(lambda m, g: 0.9 * m + g, m, g)
        p = px.tree_util.tree_map(lambda p, m: p - 0.003 * jnp.tanh(m), p, m)
        return (p, m), value
    start = (p, px.tree_util.tree_map(jnp.zeros_like, p))
    return lax.scan(update, start, random.split(random.PRNGKey(seed), 3))""",
    "simulation": """def program(p, x, seed):
    def advance(state, key):
        moved = step(p, state, key)
        new = 0.9 * state + 0.05 * jnp.tanh(jnp.mean(moved)) * jnp.cos(state)
        return new, (jnp.mean(new), jnp.max(jnp.abs(moved)))
    return lax.scan(advance, x, random.split(random.PRNGKey(seed), 6))""",
}
HEAD = """jnp, lax, nn, random = px.numpy, px.lax, px.nn, px.random

def normalized(h):
    return (h - jnp.mean(h, -1, keepdims=True)) / jnp.sqrt(jnp.var(h, -1, keepdims=True) + 1e-2)
"""
ACTIVATIONS = ("jnp.tanh", "nn.relu", "nn.gelu", "nn.silu", "nn.softplus", "nn.sigmoid", "nn.elu", "jnp.sin")


class Writer:
    """The text of a program as it grows: parameters by shape, lines, and the shape of `h`."""

    def __init__(self, seed: str, is_smooth: bool):
        self.random = random.Random(seed)
        self.is_smooth = is_smooth  # whether it is to be differentiated in reverse
        self.lines: list[str] = []
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.rows, self.columns = self.random.choice((4, 8, 12, 20)), self.random.choice((3, 6, 8, 16, 33))
        self.start = (self.rows, self.columns)
        self.keys = 0

    def parameter(self, *shape: int) -> str:
        name = f"w{len(self.shapes)}"
        self.shapes[name] = shape
        return f'p["{name}"]'

    def key(self) -> str:
        """A new key, in the text."""
        self.keys += 1
        return f"random.fold_in(key, {self.keys})"

    def number(self, low: float = 0.1, high: float = 2.0) -> str:
        return f"{self.random.uniform(low, high):.3g}"

    def activation(self) -> str:
        return self.random.choice(ACTIVATIONS)

    def add(self, *lines: str) -> None:
        self.lines.extend(lines)


# --- layers


def dense(w: Writer) -> None:
    columns = w.random.choice((4, 8, 16, 24, 32))
    weight, shift = w.parameter(w.columns, columns), w.parameter(columns)
    w.add(f"h = {w.activation()}(h @ {weight} + {shift})")
    w.columns = columns


def residual(w: Writer) -> None:
    up, down = w.parameter(w.columns, 16), w.parameter(16, w.columns)
    w.add(f"h = h + {w.activation()}(normalized(h) @ {up}) @ {down}")


def gated(w: Writer) -> None:
    a, b = w.parameter(w.columns, w.columns), w.parameter(w.columns, w.columns)
    w.add(f"h = h * nn.sigmoid(h @ {a}) + jnp.tanh(h @ {b})")


def attention(w: Writer) -> None:
    q, k, v = (w.parameter(w.columns, w.columns) for _ in range(3))
    w.add(f"q, k, v = h @ {q}, h @ {k}, h @ {v}", f"scores = q @ k.T / {w.columns}**0.5")
    if w.random.random() < 0.5:
        w.add("scores = jnp.where(jnp.tril(jnp.ones(scores.shape, bool)), scores, -1e9)")
    w.add("h = h + nn.softmax(scores, axis=-1) @ v")


def convolution(w: Writer) -> None:
    kernel = w.parameter(3, w.columns, 8)
    options = '(1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")'
    w.add(f"h = {w.activation()}(lax.conv_general_dilated(h[None], {kernel}, {options})[0])")
    w.columns = 8


def dropout(w: Writer) -> None:
    w.add(f"h = jnp.where(random.bernoulli({w.key()}, 0.8, h.shape), h / 0.8, 0.0)")


def heads(w: Writer) -> None:
    weight = w.parameter(3, w.columns, 4)
    w.add(f'h = jnp.einsum("nd,kde->nke", h, {weight}).reshape({w.rows}, 12)')
    w.columns = 12


# --- loops


def written_out(w: Writer) -> None:
    count, weight = w.random.randint(2, 12), w.parameter(w.columns, w.columns)
    w.add(
        f"for i in range({count}):",
        f"    h = {w.activation()}(h @ {weight} * {w.number(0.3, 0.9)} + 0.1 * i)",
    )


def recurrent(w: Writer) -> None:
    u, v = w.parameter(w.columns, 10), w.parameter(10, 10)
    w.add(
        "def cell(state, row):", f"    state = jnp.tanh(row @ {u} + state @ {v})", "    return state, state"
    )
    w.add("_, h = lax.scan(cell, jnp.zeros(10), h)")
    w.columns = 10


def counted(w: Writer) -> None:
    count = w.random.randint(2, 20)
    w.add(f"h = lax.fori_loop(0, {count}, lambda i, s: s - {w.number(0.01, 0.2)} * jnp.sin(s + i), h)")


def explicit_integration(w: Writer) -> None:
    w.add(
        f"def field(s):\n        return -{w.number()} * s + {w.number()} * jnp.tanh(jnp.roll(s, 1, axis=-1))",
        f"for _ in range({w.random.randint(1, 4)}):",
        "    k1 = field(h)\n        k2 = field(h + 0.05 * k1)\n        k3 = field(h + 0.05 * k2)",
        "    h = h + 0.1 * (k1 + 2 * k2 + 2 * k3 + field(h + 0.1 * k3)) / 6",
    )


def conditional(w: Writer) -> None:
    w.add(f"h = lax.cond(jnp.sum(h) > {w.number(100, 200)}, lambda s: s * 0.5, lambda s: s + jnp.cos(s), h)")


def until(w: Writer) -> None:
    if w.is_smooth:
        return counted(w)
    w.add(
        f"h, _ = lax.while_loop(lambda s: s[1] < {w.random.randint(2, 9)}, "
        f"lambda s: (s[0] * {w.number(0.5, 1.0)} + {w.activation()}(s[0]), s[1] + 1), (h, 0))"
    )
    return None


def mapped(w: Writer) -> None:
    w.add("h = px.vmap(lambda row: jnp.where(jnp.mean(row) > 5.0, row * 0.5, jnp.cumsum(row) / row.size))(h)")


def prefix(w: Writer) -> None:
    w.add("h = lax.associative_scan(lambda a, b: a * 0.5 + b, h, axis=0)" if w.random.random() < 0.5 else
          "h = jnp.cumsum(h, axis=0) / jnp.arange(1.0, h.shape[0] + 1)[:, None]")  # fmt: skip


# --- reductions and statistics


def centred(w: Writer) -> None:
    axis = w.random.choice((0, 1))
    w.add(f"h = (h - jnp.mean(h, {axis}, keepdims=True)) / (jnp.std(h, {axis}, keepdims=True) + 0.1)")


def pooled(w: Writer) -> None:
    parts = w.random.sample(("h.mean(1)", "h.max(1)", "nn.logsumexp(h, axis=1)", "jnp.linalg.norm(h + 0.1, axis=1)",
                             "jnp.median(h, axis=1)", "jnp.var(h, axis=1)", "jnp.min(h, axis=1)"), 3)  # fmt: skip
    w.add(f"h = jnp.concatenate([h, jnp.stack([{', '.join(parts)}], 1)], axis=1)")
    w.columns += 3


def distances(w: Writer) -> None:
    w.add("h = jnp.exp(-0.1 * jnp.sum((h[:, None] - h[None]) ** 2, -1))")
    w.columns = w.rows


def ordered(w: Writer) -> None:
    w.add(
        w.random.choice(
            (
                "h = jnp.sort(h, axis=0)",
                "h = lax.top_k(h, 3)[0]",
                "h = jnp.quantile(h, jnp.array([0.1, 0.5, 0.9]), axis=1).T",
            )
        )
    )
    if "sort" not in w.lines[-1]:
        w.columns = 3


def special(w: Writer) -> None:
    choices = (
        "jnp.log1p(h**2)",
        "lax.erf(h)",
        "lax.lgamma(jnp.abs(h) + 1.5) * 0.1",
        "jnp.arctan2(h, 1.5)",
        "jnp.expm1(jnp.clip(h, -1, 1))",
        "lax.digamma(h**2 + 1.0)",
        "jnp.sinc(h)",
        "jnp.logaddexp(h, 0.3)",
    )
    w.add(f"h = {w.random.choice(choices)}")


def polynomial(w: Writer) -> None:
    w.add(f"h = jnp.polyval(jnp.array([{w.number()}, -{w.number()}, 0.3]), jnp.tanh(h))")


def long_expression(w: Writer) -> None:
    for _ in range(w.random.randint(3, 15)):
        w.add(
            w.random.choice(
                (
                    f"h = jnp.sin(h) * {w.number()} + jnp.cos(h * {w.number()})",
                    f"h = h / (1.0 + jnp.abs(h)) + {w.number()}",
                    f"h = jnp.sqrt(h**2 + {w.number()})",
                    "h = jnp.where(h > 0.0, h, 0.1 * h)",
                    f"h = jnp.maximum(h, -{w.number()}) - 0.2 * jnp.minimum(h, {w.number()})",
                    f"h = jnp.exp(-{w.number()} * h**2) + 0.1 * h",
                )
            )
        )


# --- indexing


def gathered(w: Writer) -> None:
    index = [w.random.randrange(w.rows) for _ in range(w.rows)]
    w.add(
        f"i = jnp.array({index})",
        w.random.choice(
            ("h = h[i] * 0.5 + h", "h = h.at[i].add(0.1 * h)", "h = h.at[i[0]].set(h[i[1]] * 2)")
        ),
    )


def summed_by_group(w: Writer) -> None:
    groups = [w.random.randrange(4) for _ in range(w.rows)]
    w.add(f"g = jnp.array({groups})", "h = h - 0.5 * px.ops.segment_sum(h, g, num_segments=4)[g]")


def picked(w: Writer) -> None:
    w.add("h = h + 0.1 * jnp.take_along_axis(h, jnp.arange(h.shape[0])[:, None] % h.shape[1], axis=1)")


def shifted(w: Writer) -> None:
    w.add(
        w.random.choice(
            (
                "h = h + 0.2 * (jnp.roll(h, 1, 0) - 2 * h + jnp.roll(h, -1, 0))",
                "h = h[::-1] * 0.3 + h",
                "h = jnp.pad(h, ((1, 1), (0, 0)))[1:-1] + lax.dynamic_slice(jnp.pad(h, 1), (0, 1), h.shape)",
                "h = h.at[1:, :].add(-0.5 * h[:-1])",
                "h = jnp.concatenate([h[2:], h[:2]]) + h",
            )
        )
    )


def reshaped(w: Writer) -> None:
    w.add("h = h.T")
    w.rows, w.columns = w.columns, w.rows


def embedded(w: Writer) -> None:
    table = w.parameter(10, w.columns)
    w.add(
        f"h = h + {table}[jnp.arange(h.shape[0]) * 7 % 10]",
        f"h = h + 0.1 * nn.one_hot(jnp.arange(h.shape[0]) % 5, {w.columns})",
    )


# --- linear algebra, signals, random numbers


def factorized(w: Writer) -> None:
    w.add("a = h.T @ h / h.shape[0] + 2.0 * jnp.eye(h.shape[1])")
    choices = ("h = jnp.linalg.solve(a, h.T).T", "h = h @ jnp.linalg.inv(a)", "h = h + jnp.linalg.cholesky(a)[0]",
               "h = h * jnp.linalg.slogdet(a)[1] * 0.1", "h = h + jnp.linalg.eigvalsh(a) * 0.1")  # fmt: skip
    w.add(w.random.choice(choices))


def spectrum(w: Writer) -> None:
    w.add("h = jnp.fft.irfft(jnp.fft.rfft(h, axis=0) * 0.5, h.shape[0], axis=0)")


def noise(w: Writer) -> None:
    choices = (
        "normal({0}, h.shape)",
        "uniform({0}, h.shape)",
        "gumbel({0}, h.shape)",
        "exponential({0}, h.shape)",
        "permutation({0}, h)",
        "rademacher({0}, h.shape).astype(h.dtype)",
        "truncated_normal({0}, -1.0, 1.0, h.shape)",
        "gamma({0}, 2.0, h.shape)",
        "laplace({0}, h.shape)",
        "beta({0}, 2.0, 3.0, h.shape)",
    )
    w.add(f"h = h + 0.1 * random.{w.random.choice(choices).format(w.key())}")


STEPS: tuple[Callable[[Writer], None], ...] = (
    *(dense, dense, residual, gated, attention, convolution, dropout, heads),
    *(written_out, recurrent, counted, explicit_integration, conditional, until, mapped, prefix),
    *(centred, pooled, distances, ordered, special, polynomial, long_expression),
    *(gathered, summed_by_group, picked, shifted, reshaped, embedded, factorized, spectrum, noise),
)


def write(name: str) -> tuple[str, dict[str, tuple[int, ...]], tuple[int, int]]:
    """The text of a program, the shapes of its parameters, and that of its input."""
    kind, _, seed = name.partition("/")
    writer = Writer(name, is_smooth=kind in ("gradients", "per-example gradients", "training"))
    for _ in range(writer.random.randint(3, 9)):
        writer.random.choice(STEPS)(writer)
    body = "\n".join(f"    {line}" for line in (*writer.lines, "return h"))
    return f"{HEAD}\ndef step(p, h, key):\n{body}\n\n{KINDS[kind]}\n", writer.shapes, writer.start


def build(name: str, space: Any) -> tuple[Any, tuple[Any, ...]]:
    """The function of a program such as `gradients/7`, and its arguments."""
    text, shapes, start = write(name)
    names: dict[str, Any] = {"px": space.px, "__name__": "random_program"}
    exec(compile(text, f"<{name}>", "exec"), names)
    generator = np.random.default_rng(int(name.partition("/")[2]))
    draw = lambda shape: np.asarray(generator.standard_normal(shape), np.float32)  # noqa: E731
    parameters = {key: draw(shape) / np.float32(np.sqrt(shape[0])) for key, shape in shapes.items()}
    return names["program"], (parameters, draw(start), np.int32(5))


if __name__ == "__main__":
    print(write(f"{sys.argv[1]}/{sys.argv[2]}")[0])
