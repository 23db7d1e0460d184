"""Random grids, blocks, index maps and kernels, against jax's interpret mode: order and state of steps must agree."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import purax
from tests.pallas.kernels import jax_namespace, purax_namespace

SEEDS = 24


def random_index(rng: random.Random, grid: tuple[int, ...], blocks: int) -> Callable[..., Any]:
    """A map from a position in the grid to the number of one of `blocks` blocks."""
    axis = rng.randrange(len(grid))
    other = rng.randrange(len(grid))
    shift = rng.randrange(blocks)
    kind = rng.choice(["axis", "axis", "axis", "reversed", "shifted", "half", "constant", "sum", "mixed"])
    return {
        "axis": lambda *ids: ids[axis] % blocks if grid[axis] > blocks else ids[axis],
        "reversed": lambda *ids: (grid[axis] - 1 - ids[axis]) % blocks,
        "shifted": lambda *ids: (ids[axis] + shift) % blocks,
        "half": lambda *ids: (ids[axis] // 2) % blocks,
        "constant": lambda *ids: shift,
        "sum": lambda *ids: (ids[axis] + ids[other]) % blocks,
        "mixed": lambda *ids: (ids[axis] * 2 + ids[other]) % blocks,
    }[kind]


def random_spec(
    rng: random.Random, grid: tuple[int, ...], counts: tuple[int, ...], size: int
) -> Callable[[Any], Any]:
    """A spec for an array of `counts` blocks of `size` elements in each dimension."""
    maps = [random_index(rng, grid, count) for count in counts]
    by_element = [rng.random() < 0.2 for _ in counts]

    def build(m: Any) -> Any:
        shape = tuple(m.pl.Element(size) if e else size for e in by_element)

        def index_map(*ids: Any) -> Any:
            return tuple(f(*ids) * (size if e else 1) for f, e in zip(maps, by_element, strict=True))

        return m.pl.BlockSpec(shape, index_map)

    return build


def random_program(seed: int) -> tuple[Callable[[Any], Callable[..., Any]], tuple[np.ndarray, ...]]:
    rng = random.Random(seed)
    size = 2
    grid = tuple(rng.randint(1, 3) for _ in range(rng.randint(1, 3)))
    in_counts = [tuple(rng.randint(1, 3) for _ in range(2)) for _ in range(rng.randint(1, 2))]
    out_counts = tuple(rng.randint(1, 3) for _ in range(2))
    in_specs = [random_spec(rng, grid, counts, size) for counts in in_counts]
    if rng.random() < 0.6:  # each axis of the output follows one of the grid
        axes = [rng.randrange(len(grid)) for _ in range(2)]
        out_counts = tuple(grid[a] for a in axes)
        out_spec: Any = lambda m: m.pl.BlockSpec((size, size), lambda *ids: (ids[axes[0]], ids[axes[1]]))  # noqa: E731
    else:
        out_spec = random_spec(rng, grid, out_counts, size)
    cut = rng.random() < 0.3
    has_scratch = rng.random() < 0.5
    scratch_first = rng.choice(["never", "start", "axis"])
    axis = rng.randrange(len(grid))
    adds, aliased = rng.random() < 0.5, rng.random() < 0.3
    operation = rng.choice(["sum", "max", "ids"])
    ragged = 1 if cut else 0
    shapes = [tuple(n * size - ragged for n in counts) for counts in in_counts]
    out_shape = tuple(n * size - ragged for n in out_counts)

    def build(m: Any) -> Callable[..., Any]:
        def kernel(*refs: Any) -> None:
            ins, rest = refs[: len(in_specs)], refs[len(in_specs) + aliased :]
            o_ref = rest[0]
            value = ins[0][...]
            for ref in ins[1:]:
                value = value + ref[...] if operation == "sum" else m.jnp.maximum(value, ref[...] * 2)
            value = m.jnp.nan_to_num(value, nan=0.25)
            if operation == "ids":
                for a in range(len(grid)):
                    value = value + m.pl.program_id(a) * (a + 1)
            if has_scratch:
                scratch = rest[1]
                if scratch_first != "never":
                    begins = m.pl.program_id(axis) == 0
                    if scratch_first == "start":
                        for a in range(len(grid)):
                            begins = begins & (m.pl.program_id(a) == 0)

                    @m.pl.when(begins)
                    def _():
                        scratch[...] = m.jnp.zeros_like(scratch)

                else:
                    scratch[...] = value * 0.5
                scratch[...] = scratch[...] * 0.5 + value
                value = scratch[...]
            if adds:
                o_ref[...] = m.jnp.where(m.jnp.isnan(o_ref[...]), 0, o_ref[...]) * 0.5 + value
            else:
                o_ref[...] = value

        shape = m.S(out_shape, np.float32)
        specs = [spec(m) for spec in in_specs] + ([out_spec(m)] if aliased else [])
        return m.call(
            kernel,
            shape,
            grid=grid,
            in_specs=specs,
            out_specs=out_spec(m),
            scratch_shapes=[m.tpu.VMEM((size, size), m.jnp.float32)] if has_scratch else [],
            input_output_aliases={len(in_specs): 0} if aliased else {},
        )

    values = np.random.default_rng(seed)
    args = tuple(
        values.normal(size=s).astype(np.float32) for s in [*shapes, *([out_shape] if aliased else [])]
    )
    return build, args


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_kernels(seed):
    build, args = random_program(seed)
    want = np.asarray(jax.jit(build(jax_namespace()))(*args))
    got = np.asarray(purax.jit(build(purax_namespace()))(*args))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
