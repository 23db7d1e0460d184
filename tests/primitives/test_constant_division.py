"""Integer operations on constants: programs that XLA can compute while it compiles give what the host gives.

XLA's passes divide constants with the processor's instruction, which ends the process at x/0; so the programs run in a
process of their own. Each has, for one dtype, the pairs of integers at which something overflows or traps, as
constants that are written, repeated, converted or computed, in the body of a loop, of a branch, and of a function.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import lax
from purax.core import dtypes

DTYPES = "int2 uint2 int4 uint4 int8 uint8 int16 uint16 int32 uint32 int64 uint64".split()
OPERATIONS = {
    "div": lax.div,
    "rem": lax.rem,
    "floor_divide": jnp.floor_divide,
    "remainder": jnp.remainder,
    "divmod": jnp.divmod,
    "fmod": jnp.fmod,
    "shift_left": lax.shift_left,
    "shift_right_logical": lax.shift_right_logical,
    "mulhi": lax.mulhi,
}
WAYS = {
    "written": lambda f, a, b: f(lax.full((3,), a), lax.full((3,), b)),
    "scalar": lambda f, a, b: f(a, lax.full((3,), b)),
    "computed": lambda f, a, b: f(lax.full((3,), a), lax.full((3,), b) * b.dtype.type(1)),
    "function": lambda f, a, b: px.jit(f)(lax.full((3,), a), lax.full((3,), b)),
    "branch": lambda f, a, b: lax.cond(
        True, lambda: f(lax.full((3,), a), lax.full((3,), b)), lambda: f(*[lax.full((3,), a)] * 2)
    ),
    "vmap": lambda f, a, b: px.vmap(lambda x: f(x, b))(lax.full((3,), a)),
    "loop": lambda f, a, b: lax.scan(
        lambda carry, _: (carry, f(lax.full((), a), lax.full((), b))), 0, None, length=3
    )[1],
}


def pairs(dtype: np.dtype) -> list[tuple[np.ndarray, np.ndarray]]:
    """What traps or overflows when it is divided: x/0, and the least number by −1."""
    bits = dtypes.itemsize_bits(dtype)
    low = 0 if dtypes.is_unsigned(dtype) else -(2 ** (bits - 1))
    return [(np.array(a, dtype), np.array(b, dtype)) for a, b in ((1, 0), (low, 0), (low, -1 if low else 1))]


def check(name: str, operations: list[str], ways: list[str]) -> None:
    """Compares compiled with eager results."""
    with px.enable_x64(True):
        numbers = pairs(jnp.dtype(name))
        cases = [(key, way, a, b) for key in operations for way in ways for a, b in numbers]
        compiled = px.jit(lambda: [WAYS[way](OPERATIONS[key], a, b) for key, way, a, b in cases])()
        for case, result in zip(cases, compiled, strict=True):
            key, _, a, b = case
            expected = OPERATIONS[key](jnp.full(3, a), jnp.full(3, b))
            for got, wanted in zip(px.tree.leaves(result), px.tree.leaves(expected), strict=True):
                np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted), err_msg=f"{name} {case}")


CHOICES = [
    (DTYPES, ["div", "rem"], ["written"]),
    (["int16"], ["div", "rem"], list(WAYS)),
    (["int32"], list(OPERATIONS), ["written"]),
]


@pytest.mark.parametrize("names, operations, ways", CHOICES, ids=["dtypes", "ways", "operations"])
def test_constants_compile_to_what_the_host_computes(names, operations, ways):
    program = (
        "from tests.primitives.test_constant_division import check\n"
        f"for name in {names!r}: check(name, {operations!r}, {ways!r})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("dtype", DTYPES[2:10])
@pytest.mark.parametrize("where", [None, False])
def test_a_mean_of_no_integers_is_a_division_by_zero(dtype, where):
    for x in (np.zeros((2, 0)), np.ones((2, 300))):
        function = lambda x: jnp.mean(x, 1, dtype=dtype, where=where)  # noqa: E731
        np.testing.assert_array_equal(np.asarray(function(x)), np.asarray(px.jit(function)(x)))
    assert np.all(
        np.asarray(jnp.nanmean(np.zeros(0, "f"), dtype=dtype)) == np.array(-1).astype(jnp.dtype(dtype))
    )
