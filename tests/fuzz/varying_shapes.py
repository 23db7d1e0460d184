"""Random programs of arrays whose axes have symbolic sizes: on padded arrays and exported, against plain ones.

A program is a list of steps, each of which takes arrays that are there and adds one. Axes have the sizes `n`, `m`, 3.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import purax as px
import purax.numpy as jnp
from purax import lax, nn
from purax.core import dtypes
from purax.core.avals import ShapedArray
from purax.errors import InconclusiveDimensionOperation
from purax.export import export, symbolic_shape
from purax.interpreters.padding import Padding
from purax.interpreters.staging import stage
from tests.fuzz import _progress

START = (("n",), ("n", 3), ("n", "m"), (3, "n"), ("m",))
Step = tuple[str, Callable[..., Any], list[int]]


def steps_for(shapes: list[tuple], draw: random.Random) -> Iterator[Step]:
    """Steps that fit arrays of these kinds of shapes (tuples of "n", "m", numbers)."""
    at = draw.randrange(len(shapes))
    shape = shapes[at]
    if not shape:
        yield "scale", lambda x: jnp.tanh(x) * 0.5, [at]
        return
    axis = draw.randrange(len(shape))
    factor, flag, shift = draw.choice([0.5, -1.5]), draw.random() < 0.5, draw.randrange(-2, 3)
    same = [i for i, s in enumerate(shapes) if s == shape]
    other = draw.choice(same)
    yield "unary", draw.choice([jnp.sin, jnp.abs, jnp.exp, jnp.sqrt, lambda x: 1 / x, nn.relu]), [at]
    yield "binary", draw.choice([jnp.add, jnp.multiply, jnp.maximum, lambda x, y: jnp.where(x > y, x, -y)]), [at, other]
    reduce = draw.choice([jnp.sum, jnp.max, jnp.min, jnp.mean, jnp.prod, jnp.std, jnp.argmax, jnp.any, jnp.median])
    yield "reduce", lambda x: reduce(x, axis=axis).astype(np.float32), [at]
    yield "keep", lambda x: x - jnp.max(x, axis=axis, keepdims=True), [at]
    yield "softmax", lambda x: nn.softmax(x, axis=axis), [at]
    yield "logsumexp", lambda x: nn.logsumexp(x, axis=axis), [at]
    yield "cumulative", lambda x: lax.cumsum(x, axis=axis, reverse=flag), [at]
    yield "cummax", lambda x: lax.cummax(x, axis=axis, reverse=flag), [at]
    yield "sort", lambda x: jnp.sort(x, axis=axis), [at]
    yield "argsort", lambda x: jnp.argsort(x, axis=axis).astype(np.float32), [at]
    yield "flip", lambda x: jnp.flip(x, axis=axis), [at]
    yield "roll", lambda x: jnp.roll(x, shift, axis=axis) * factor, [at]
    yield "transpose", lambda x: x.T, [at]
    yield "count", lambda x: x + jnp.arange(x.shape[axis], dtype=np.float32).reshape(
        [-1 if i == axis else 1 for i in range(len(shape))]
    ), [at]
    yield "size", lambda x: x / x.shape[axis], [at]
    yield "tail", lambda x: x - lax.slice_in_dim(x, x.shape[axis] - 1, x.shape[axis], axis=axis), [at]
    yield "head", lambda x: x + lax.dynamic_slice_in_dim(x, 0, 1, axis), [at]
    yield "shift", lambda x: jnp.concatenate(
        [lax.slice_in_dim(x, 1, x.shape[axis], axis=axis), lax.slice_in_dim(x, 0, 1, axis=axis)], axis
    ), [at]
    yield "pad", lambda x: lax.slice_in_dim(
        jnp.pad(x, [(1, 2) if i == axis else (0, 0) for i in range(len(shape))], constant_values=0.5),
        1, 1 + x.shape[axis], axis=axis), [at]  # fmt: skip
    yield "gather", lambda x: jnp.take(x, jnp.arange(x.shape[axis]) // 2, axis=axis), [at]
    yield "fill", lambda x: jnp.take(
        x, jnp.arange(x.shape[axis]) * 2, axis=axis, mode="fill", fill_value=7.0), [at]  # fmt: skip
    yield "scatter", lambda x: x.at[(slice(None),) * axis + (-1,)].set(0.25), [at]
    yield "segments", lambda x: jnp.zeros_like(x).at[
        (slice(None),) * axis + (jnp.arange(x.shape[axis]) // 2,)].add(x), [at]  # fmt: skip
    yield "top", lambda x: lax.top_k(jnp.moveaxis(x, axis, -1), 2)[0].sum(-1), [at]
    yield "scan", lambda x: jnp.moveaxis(
        lax.scan(lambda c, row: (jnp.tanh(c + row), c), jnp.zeros(jnp.moveaxis(x, axis, 0).shape[1:]),
                 jnp.moveaxis(x, axis, 0), reverse=axis == 1)[1], 0, axis), [at]  # fmt: skip
    yield "loop", lambda x: lax.fori_loop(0, x.shape[axis], lambda i, c: jnp.sin(c) + i / x.shape[axis], x), [at]
    yield "branch", lambda x: lax.cond(x.sum() > 0, jnp.sin, lambda y: y - y.mean(), x), [at]
    yield "window", lambda x: lax.reduce_window(
        x, 0.0, lax.add, [3 if i == axis else 1 for i in range(len(shape))], [1] * x.ndim, "SAME"), [at]  # fmt: skip
    yield "random", lambda x: x + px.random.uniform(px.random.key(3), x.shape), [at]
    yield "flat", lambda x: x.reshape(-1).sum(), [at]
    yield "reshape", lambda x: (x.reshape(-1)[::-1] * 2).reshape(x.shape), [at]
    yield "tile", lambda x: jnp.tile(x, [2 if i == axis else 1 for i in range(len(shape))]).sum(axis), [at]
    yield "gradient", lambda x: px.grad(lambda y: jnp.sum(jnp.max(y, axis=axis) * jnp.tanh(y).sum(axis)))(x), [at]
    yield "vmap", lambda x: px.vmap(lambda row: row / (1 + jnp.abs(row).sum()), in_axes=axis, out_axes=axis)(x), [at]
    if len(shape) == 2:
        for i, s in enumerate(shapes):
            if len(s) == 2 and s[0] == shape[1]:
                yield "product", lambda x, y: x @ y, [at, i]
            if s == shape[:1]:
                yield "rows", lambda x, y: x * y[:, None], [at, i]
                yield "columns", lambda x, y: y @ x, [at, i]


def kind_of(shape: tuple) -> tuple:
    """A shape of symbolic dimensions as a kind."""
    return tuple([str(n) if str(n) in "nm" else n for n in shape])


def make_program(draw: random.Random, count: int) -> tuple[list[tuple], Callable[..., Any], str]:
    """The kinds of the arguments, a function, and what it does."""
    arguments = draw.sample(START, 2)
    n, m = symbolic_shape("n, m", constraints=["n >= 2", "m >= 2"])
    types = [px.ShapeDtypeStruct(tuple([{"n": n, "m": m}.get(x, x) for x in s]), np.float32) for s in arguments]
    kinds = list(arguments)
    program: list[Step] = []
    for _ in range(count):
        options = list(steps_for(kinds, draw))
        name, function, operands = draw.choice(options)
        try:
            out = px.eval_shape(function, *[types[i] for i in operands])
        except (InconclusiveDimensionOperation, TypeError):
            continue
        if any(type(x) is not str and type(x) is not int for x in kind_of(out.shape)) or out.dtype != np.float32:
            continue
        program.append((name, function, operands))
        kinds.append(kind_of(out.shape))
        types.append(px.ShapeDtypeStruct(out.shape, np.float32))

    def run(*values: Any) -> list[Any]:
        known = list(values)
        for _, function, operands in program:
            known.append(function(*[known[i] for i in operands]))
        return known[len(values) :]

    return arguments, run, ", ".join(f"{name}{operands}" for name, _, operands in program)


def with_garbage(x: np.ndarray, shape: tuple[int, ...], worst: float) -> np.ndarray:
    """An array with more room, full of what must not be seen."""
    out = np.full(shape, worst if dtypes.is_inexact(x.dtype) else 97, x.dtype)
    out[tuple(map(slice, x.shape))] = x
    return out


def difference(seed: int, exports: bool = False) -> str | None:
    """What is wrong with the program of a seed; None if nothing is."""
    draw = random.Random(seed)
    arguments, run, told = make_program(draw, draw.randrange(2, 7))
    sizes = {"n": draw.randrange(2, 9), "m": draw.randrange(2, 6)}
    rooms = {name: size + draw.randrange(5) for name, size in sizes.items()}
    n, m = symbolic_shape("n, m", constraints=["n >= 2", "m >= 2"])
    types = [ShapedArray(tuple([{"n": n, "m": m}.get(x, x) for x in s]), np.float32) for s in arguments]
    generator = np.random.default_rng(seed)
    values = [generator.standard_normal([sizes.get(x, x) for x in s]).astype(np.float32) for s in arguments]
    with np.errstate(all="ignore"):
        expected = [np.asarray(y) for y in run(*map(jnp.asarray, values))]
        try:
            closed = stage(run, types, "program")
            at = Padding(rooms, {name: jnp.int32(size) for name, size in sizes.items()})
            worst = draw.choice([np.nan, np.inf, -1e30])
            padded = [with_garbage(x, at.shape(aval), worst) for x, aval in zip(values, types, strict=True)]
            found = at.evaluate(closed, list(map(jnp.asarray, padded)))
        except (NotImplementedError, InconclusiveDimensionOperation) as error:
            return f"seed {seed}: {told}: {error}" if "padded arrays" not in str(error) else None
        got = [np.asarray(y)[tuple(map(slice, e.shape))] for y, e in zip(found, expected, strict=True)]
        problem = _unequal(got, expected)
        if problem is None and exports:
            specs = [px.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in types]
            got = [np.asarray(y) for y in export(px.jit(run))(*specs).call(*values)]
            # Compiled, too: where NumPy rounds otherwise, equal elements are sorted otherwise.
            problem = _unequal(got, [np.asarray(y) for y in px.jit(run)(*values)])
            problem = None if problem is None else f"exported: {problem}"
    return None if problem is None else f"seed {seed}, sizes {sizes}, rooms {rooms}: {told}: {problem}"


def _unequal(got: list[np.ndarray], expected: list[np.ndarray]) -> str | None:
    for i, (a, e) in enumerate(zip(got, expected, strict=True)):
        if not np.isfinite(e).all() or np.abs(e).max(initial=0) > 1e6:
            return None  # what follows is noise
        if a.shape != e.shape or not np.allclose(a, e, rtol=2e-3, atol=2e-3):
            return f"result {i}: {a.ravel()[:8]} instead of {e.ravel()[:8]}"
    return None


def run(seed: int) -> Iterator[str | None]:
    """Tries programs forever; every 20th is exported, too."""
    for number in itertools.count():
        _progress.trying(f"varying_shapes.difference({seed * 10**6 + number})")
        yield difference(seed * 10**6 + number, exports=number % 20 == 0)
