"""Which primitives accept symbolic dimensions: exported with them, they give at random sizes what `host` gives.

From the table of cases: every axis of one size becomes the dimension `b`, in the operands and in the
parameters that are shapes. A primitive for which no such way exists stands in `FOR_NUMBERS_ONLY` with the reason.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import purax as px
from purax.core.avals import ShapedArray
from purax.core.dimensions import is_symbolic_shape, substitute
from purax.errors import InconclusiveDimensionOperation
from purax.export import export, symbolic_shape
from purax.testing import laws
from purax.testing.case import Case
from tests.primitives.test_laws import CASES

# Primitives that no case of which can be exported with a symbolic dimension.
FOR_NUMBERS_ONLY = {
    "cholesky_update": "the update goes through one matrix, row by row",
    "dce_sink": "it has an effect, and programs with effects are not exported",
    "dim_as_value": "its own test is below: it has no operand",
    "rng_bit_generator": "what XLA's generator gives depends on the whole shape",
    "rng_uniform": "XLA's generator, as for rng_bit_generator",
}
DTYPES = {"float32", "int32", "bool", "complex64", "uint32"}  # of programs that are exported without 64 bits
SHAPES = ("shape", "new_sizes", "slice_sizes", "limit_indices", "sizes")  # parameters that hold dimensions


class Try(NamedTuple):
    """A case with an axis of another size, and the types with a symbolic dimension in its place."""

    case: Case
    avals: list[ShapedArray]
    params: dict[str, Any]


def replaced(value: Any, size: int, by: Any) -> Any:
    """The parameter with another dimension in place of a size."""
    if isinstance(value, tuple):
        return tuple(replaced(x, size, by) for x in value)
    return by if type(value) is int and value == size else value


def ways(case: Case) -> Iterator[Try]:
    """The ways to make one size of a case symbolic in which the types are right."""
    if any(x.dtype.name not in DTYPES for x in case.operands) or case.params.get("bit_width") == 64:
        return
    shaped = [name for name in SHAPES if isinstance(case.params.get(name), tuple)]
    sizes = {n for x in case.operands for n in x.shape if n > 1}
    if not case.operands:
        sizes = {n for name in shaped for n in case.params[name] if n > 1}
    for size in sorted(sizes):
        (b,) = symbolic_shape("b")
        avals = [ShapedArray(replaced(x.shape, size, b), x.dtype) for x in case.operands]
        for names in ([], shaped)[: 1 + bool(shaped)]:
            params = {k: replaced(v, size, b) if k in names else v for k, v in case.params.items()}
            try:
                out = case.primitive.infer(*avals, **params)
            except (TypeError, ValueError, InconclusiveDimensionOperation, NotImplementedError):
                continue
            outs = out if case.primitive.multiple_results else [out]
            if not any(is_symbolic_shape(aval.shape) for aval in (*avals, *outs)):
                continue
            new = size + 1 + zlib.crc32(str(case).encode()) % 4
            operands = tuple(
                [
                    np.resize(x, tuple(substitute(n, {"b": new}) for n in aval.shape))
                    for x, aval in zip(case.operands, avals, strict=True)
                ]
            )
            own = {k: replaced(v, size, new) if k in names else v for k, v in case.params.items()}
            try:
                if case.params.get("unique_indices"):
                    raise ValueError("indices that are repeated are not unique")
                laws._host(case._replace(params=own), operands)
            except Exception:  # the numbers of the case make sense for its own size, as indices do
                operands, own = case.operands, case.params
            yield Try(case._replace(operands=operands, params=own), avals, params)


def size_of(attempt: Try) -> int:
    """The size in place of `b`."""
    outs = attempt.case.primitive.infer(*attempt.avals, **attempt.params)
    types = [*attempt.avals, *(outs if attempt.case.primitive.multiple_results else [outs])]
    given = [ShapedArray(x.shape, x.dtype) for x in attempt.case.operands]
    outs = attempt.case.primitive.infer(*given, **attempt.case.params)
    plain = [*given, *(outs if attempt.case.primitive.multiple_results else [outs])]
    return next(
        m
        for aval, own in zip(types, plain, strict=True)
        for n, m in zip(aval.shape, own.shape, strict=True)
        if str(n) == "b"
    )


def run_exported(attempt: Try) -> list[np.ndarray]:
    """The results of the exported operation on the operands; `b` has one more argument where no operand has it."""
    own, params = attempt.case.operands, attempt.params
    specs = [px.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in attempt.avals]
    more: list[np.ndarray] = []
    if not any(is_symbolic_shape(aval.shape) for aval in attempt.avals):
        out = attempt.case.primitive.infer(*attempt.avals, **params)
        (b,) = {n for n in out.shape if str(n) == "b"}
        specs.append(px.ShapeDtypeStruct((b,), np.float32))
        more.append(np.zeros(size_of(attempt), np.float32))
    function = export(px.jit(lambda *xs: attempt.case.primitive.bind(*xs[: len(own)], **params)))(*specs)
    got = function.call(*own, *more)
    return [np.asarray(x) for x in (got if attempt.case.primitive.multiple_results else [got])]


def by_primitive() -> dict[str, list[Case]]:
    table: dict[str, list[Case]] = {}
    for case in CASES:
        table.setdefault(case.primitive.name, []).append(case)
    return table


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", sorted(by_primitive()))
def test_symbolic_dimensions(name):
    problems = []
    for attempt in (attempt for case in by_primitive()[name] for attempt in ways(case)):
        try:
            results = run_exported(attempt)
        except NotImplementedError as error:
            problems.append(str(error))
            continue
        expected = laws._host(attempt.case, attempt.case.operands)
        tolerance = max(attempt.case.tolerance or 0, 1e-4)  # formulas of other platforms than the CPU
        laws._compare(results, expected, attempt.case, "export", "at a size", tolerance)
        assert name not in FOR_NUMBERS_ONLY
        return
    assert name in FOR_NUMBERS_ONLY, problems[:1] or "no way to make a dimension symbolic"


def test_a_dimension_is_a_number_of_the_program():
    (b,) = symbolic_shape("b")
    function = export(px.jit(lambda x: x * x.shape[0] + (3 - x.shape[0]) // 2 + (3 - x.shape[0]) % 4))(
        px.ShapeDtypeStruct((b,), np.float32)
    )
    for size in (1, 2, 7):
        expected = np.full(size, size + (3 - size) // 2 + (3 - size) % 4, np.float32)
        np.testing.assert_array_equal(function.call(np.ones(size, np.float32)), expected)
