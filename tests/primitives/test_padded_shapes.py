"""Every primitive's padded form gives what its plain form gives, whatever lies in the padding.

From the table of cases, as in `test_symbolic_shapes`: an axis of some size becomes a dimension, and arrays get more
room along it, full of NaN and of numbers that stand out. What the padded form refuses, it refuses by name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import purax as px
from purax.core import dtypes
from purax.core.avals import ShapedArray
from purax.interpreters.padding import Padding
from purax.interpreters.staging import stage
from purax.testing import laws
from tests.primitives.test_symbolic_shapes import Try, by_primitive, size_of, ways

# Primitives that no case of which can be computed with a padded axis, and why.
REFUSED = {
    "dce_sink": "an effect",
    "dim_as_value": "it has no operand; tests/api/test_dynamic.py",
    **dict.fromkeys(
        ("geqp3", "geqrf", "householder_product", "qr", "symmetric_product", "tridiagonal_solve"),
        "matrices, of which the table has no batches",
    ),
    "rng_bit_generator": "its bits depend on the whole shape",
    "rng_uniform": "its bits depend on the whole shape",
}


def with_garbage(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """An array with more room, full of what must not be seen."""
    worst: Any = np.nan if dtypes.is_inexact(x.dtype) else True if x.dtype == np.bool_ else 97
    out = np.full(shape, worst, x.dtype)
    out[tuple(map(slice, x.shape))] = x
    return out


def padded_results(attempt: Try, room: int) -> list[np.ndarray]:
    case, size = attempt.case, size_of(attempt)
    closed = stage(
        lambda *xs: results_of(case.primitive, case.primitive.bind(*xs, **attempt.params)), attempt.avals, "padded"
    )
    at = Padding({"b": room}, {"b": px.numpy.int32(size)})
    operands = [
        px.numpy.asarray(with_garbage(x, at.shape(aval))) if aval.shape else x
        for x, aval in zip(case.operands, attempt.avals, strict=True)
    ]
    found = at.evaluate(closed, operands)
    exact = Padding({"b": size}, {"b": size})
    return [
        np.asarray(y)[tuple(map(slice, exact.shape(aval)))]
        for y, aval in zip(found, closed.out_avals, strict=True)
    ]


def results_of(primitive: Any, out: Any) -> list[Any]:
    return list(out) if primitive.multiple_results else [out]


@pytest.mark.parametrize("name", sorted(by_primitive()))
def test_the_padded_form_is_the_plain_form(name):
    done, problems = 0, []
    for attempt in (attempt for case in by_primitive()[name] for attempt in ways(case)):
        size = size_of(attempt)
        for room in (size, size + 3):
            try:
                results = padded_results(attempt, room)
            except NotImplementedError as error:
                assert "padded arrays" in str(error)
                problems.append(str(error))
                break
            expected = laws._host(attempt.case, attempt.case.operands)
            tolerance = max(attempt.case.tolerance or 0, 1e-5)
            laws._compare(results, expected, attempt.case, "padded", f"in a room of {room}", tolerance)
        else:
            done += 1
        if done == 4:
            return
    assert (not done) == (name in REFUSED), problems[:1] or "no way to pad an axis"


def test_rooms_hold_what_can_be_there():
    b, s = px.export.symbolic_shape("b, s")
    at = Padding({"b": 8, "s": 4}, {"b": px.numpy.int32(5), "s": px.numpy.int32(3)})
    for n, room, true in (
        (b, 8, 5),
        (2 * b + s, 20, 13),
        (b - s, 7, 2),
        (s - b, 3, -2),
        (b // 2, 4, 2),
        (b % 3, 2, 2),
        (px.core.dimensions.max_dim(b, s), 8, 5),
        (b * s - 1, 31, 14),
    ):
        assert at.room(n) == room
        assert int(at.true(n)) == true
    assert Padding({"b": 5}, {"b": 5}).type_of(ShapedArray((b, 2), np.float32)).shape == (5, 2)
