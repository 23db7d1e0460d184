"""The laws that the rules of every primitive obey, each a function that takes a case and raises an AssertionError.

    infer      `host` gives the types that `infer` says, for operands of any memory layout
    lower      the compiled program gives what `host` gives
    jvp        the tangent is the directional derivative of `host`, and so on for the derivative of the `jvp` rule
    reverse    ⟨J v, y⟩ = ⟨v, Jᵀ y⟩: the `jvp` rule is linear in tangents and can be transposed
    transpose  ⟨f x, y⟩ = ⟨x, fᵀ y⟩ for the operands that the primitive is linear in
    batch      the result over a batch is the stack of the results, whichever operands and axes are batched

`host` is the oracle. Derivatives are compared in float64 and complex128. The inner product is the real part of
Σ xᵢ yᵢ, under which real, imag and conj have transposes too.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import pkgutil
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax import primitives, tree
from purax.api.jit import jit
from purax.config import config
from purax.core import dtypes
from purax.core.avals import Zero, aval_of
from purax.core.primitive import LinearOperand, Primitive
from purax.execution import eager  # noqa: F401  (installs the trace that runs the rules)
from purax.interpreters.jvp import jvp_flat
from purax.interpreters.linearize import linearize_flat
from purax.interpreters.transpose import transpose_tape
from purax.lowering import effort
from purax.primitives.elementwise.elementwise import Elementwise
from purax.primitives.products.contraction import DotAlgorithmPreset, Precision
from purax.primitives.shape.broadcasting import materialize
from purax.testing.case import Case
from purax.testing.choices import failures_alike, is_factorization, is_free, without_choices
from purax.xla import client, compiler, execute
from purax.xla.stablehlo import Module

STEP = 1e-4  # of the difference quotients, whose error is of order STEP**4
TOLERANCES = {8: 1e-13, 4: 2e-6, 2: 1e-2, 1: 0.3}  # between host and device, by bytes of a real number


# --- the laws


def check_infer(case: Case) -> None:
    """`host` gives arrays of the types that `infer` says, whatever the layout of its operands, and changes none."""
    with _naming(case, "infer"):
        avals = _as_list(case, case.primitive.infer(*map(aval_of, case.operands), **case.params))
    for aval in avals:
        weak = aval.weak_type and case.operands and not case.params.get("weak_type")
        _require(not weak, case, "infer", f"says that the result {aval} of strong operands is weak")
    results = _host(case, case.operands)
    _require(
        len(results) == len(avals), case, "host", f"gives {len(results)} results, `infer` says {len(avals)}"
    )
    for position, (result, aval) in enumerate(zip(results, avals, strict=True)):
        found = f"{result.dtype}{list(result.shape)}"
        same = result.shape == aval.shape and result.dtype == aval.dtype
        _require(same, case, "infer", f"says {aval} for result {position}, `host` gives {found}")
    for layout in (_with_columns_first, _with_negative_strides):
        other = _host(case, [layout(x) for x in case.operands])
        _compare(other, results, case, "host", f"on another memory layout ({layout.__name__})")


def check_lower(case: Case) -> None:
    """The compiled program gives what `host` gives."""
    (results,) = lowered_results([case])
    compare_lowered(case, results)


def check_jvp(case: Case) -> None:
    """The tangent is the directional derivative of `host`; the derivative of the `jvp` rule that of the rule."""
    _check_tangent_types(case)
    wide = widened(case)
    generator = _generator(case)
    v, w = (_directions(wide, generator) for _ in range(2))
    out, tangent = _jvp(wide, wide.operands, v)
    _compare(out, _host(wide, wide.operands), case, "jvp", "in its primal result")
    expected = _difference(lambda operands: _host(wide, operands), wide.operands, v)
    _require_smooth(expected, case)
    _compare(tangent, expected, case, "jvp", "in its tangent, against finite differences of `host`", 1e-6)

    total: list[Any] = []  # the operands one at a time, the tangents of all others being symbolic zeros
    for position, direction in enumerate(v):
        if type(direction) is not Zero:
            alone = [dx if i == position or type(dx) is Zero else Zero.like(dx) for i, dx in enumerate(v)]
            _, part = _jvp(wide, wide.operands, alone)
            total = part if not total else [_sum(a, b) for a, b in zip(total, part, strict=True)]
    _compare(total, expected, case, "jvp", "in its tangent, operand by operand with symbolic zeros", 1e-6)

    with _naming(case, "jvp (second order)"):
        _, second = jvp_flat(lambda *xs: _rule_tangent(wide, xs, v), wide.operands, w)
    second = [_numpy(materialize(t)) for t in second]
    expected = _difference(lambda operands: _jvp(wide, operands, v)[1], wide.operands, w)
    _compare(
        second, expected, case, "jvp", "in its own derivative, against finite differences of the rule", 1e-6
    )


def check_reverse(case: Case) -> None:
    """⟨J v, y⟩ = ⟨v, Jᵀ y⟩, with J as the `jvp` rule puts it on a tape."""
    wide = widened(case)
    generator = _generator(case)
    v = _directions(wide, generator)
    moving = [type(dx) is not Zero for dx in v]
    with _naming(case, "jvp (transposed)"):
        function = functools.partial(_bind, wide)
        _, tape = linearize_flat(function, wide.operands, moving)
        tangents = tape([None if type(dx) is Zero else dx for dx in v])
        cotangents = [t if type(t) is Zero else _random_like(t, generator) for t in tangents]
        if all(type(t) is Zero for t in tangents):
            return
        pulled = transpose_tape(tape, cotangents)
    for x, c, moves in zip(wide.operands, pulled, moving, strict=True):
        if moves:
            _require_type(c, x, case, "jvp (transposed)")
    pairs = [(t, c) for t, c in zip(tangents, cotangents, strict=True) if type(t) is not Zero]
    left = sum(_inner(t, c) for t, c in pairs)
    right = sum(_inner(dx, c) for dx, c in zip(v, pulled, strict=True) if type(dx) is not Zero)
    _compare(
        [np.asarray(right)], [np.asarray(left)], case, "jvp (transposed)", "⟨v, Jᵀy⟩ is not ⟨Jv, y⟩", 1e-9
    )


def check_transpose(case: Case) -> None:
    """⟨f x, y⟩ = ⟨x, fᵀ y⟩ for the operands at `case.linear`, and their cotangents have their types."""
    _check_cotangents(case, case, compare=False)
    _check_cotangents(case, widened(case), compare=True)


def check_batch(case: Case) -> None:
    """The result over a batch is the stack of the results of its elements."""
    examples = [[variant(x, index) for x in case.operands] for index in range(BATCH)]
    ranks = [x.ndim for x in case.operands]
    for batched in _subsets(len(case.operands)):
        mixed = [[row[i] if i in batched else x for i, x in enumerate(case.operands)] for row in examples]
        expected = [_host(case, row) for row in mixed]
        for axes in _axis_choices(ranks, batched):
            stacked = [
                x if axis is None else np.stack([row[i] for row in mixed], axis)
                for i, (x, axis) in enumerate(zip(case.operands, axes, strict=True))
            ]
            rule = f"batch with batch_axes={axes}"
            with _naming(case, rule):
                out, out_axes = case.primitive.batch(stacked, axes, **case.params)
            outs, out_axes = (out, out_axes) if case.primitive.multiple_results else ([out], [out_axes])
            for position, (result, axis) in enumerate(zip(outs, out_axes, strict=True)):
                rows = [row[position] for row in expected]
                result = _numpy(result)
                if axis is None:
                    result, axis = np.stack([result] * BATCH), 0
                valid = 0 <= axis < result.ndim and result.shape[axis] == BATCH
                _require(valid, case, rule, f"gives batch axis {axis} for a result of shape {result.shape}")
                what = f"in result {position} at batch axis {axis}"
                _compare([np.moveaxis(result, axis, 0)], [np.stack(rows)], case, rule, what)


LAWS: dict[str, Callable[[Case], None]] = {
    "infer": check_infer,
    "lower": check_lower,
    "jvp": check_jvp,
    "reverse": check_reverse,
    "transpose": check_transpose,
    "batch": check_batch,
}


def applies(law: str, case: Case) -> bool:
    """Whether a law says something about a case."""
    if law in ("jvp", "reverse"):
        return case.differentiable and any(dtypes.is_inexact(x.dtype) for x in case.operands)
    if law == "transpose":
        return bool(case.linear)
    return law != "batch" or bool(case.operands)


# --- lower


def lowered_results(cases: Sequence[Case], platform: str | None = None) -> list[Any]:
    """What the compiled program of each case gives: a list of arrays, or the exception that its rule raised.

    Several cases share one program, since a program costs 25 ms to compile, however small; and cases that compute
    elements in the same way share the operation, since some of these are large. The programs run on the default device;
    a `platform` tries how the rules lower for that one, and the CPU runs it.
    """
    if len(cases) > 1:
        try:
            return _run_joined(cases, platform)
        except Exception:  # one of them is to blame: which?
            return [lowered_results([case], platform)[0] for case in cases]
    try:
        return _run_together(cases, platform)
    except Exception as error:
        return [error]


def exact(case: Case) -> Case:
    """The case with products of matrices in the precision of their dtype, if it does not say another one.

    Accelerators multiply float32 in fewer bits unless they are told not to; the CPU never does.
    """
    if "precision" in case.params and case.params["precision"] is None:
        return case._replace(params={**case.params, "precision": (Precision.HIGHEST, Precision.HIGHEST)})
    return case


def _allowed(case: Case) -> float | None:
    """The tolerance of a case on an accelerator: what a precision that it asks for rounds factors to."""
    precision = case.params.get("precision")
    if isinstance(precision, DotAlgorithmPreset):
        name = precision.name
        bits = 8 if "F8" in name else 16 if "_X" in name else 7 if name.startswith("BF16") else 10
        return (
            max(case.tolerance or 0.0, 2.0**-bits) if not name.startswith(("F32", "F64")) else case.tolerance
        )
    if isinstance(precision, tuple) and precision != (Precision.HIGHEST, Precision.HIGHEST):
        return max(case.tolerance or 0.0, 2.0**-7 if Precision.DEFAULT in precision else 2.0**-10)
    return case.tolerance


def _run_joined(cases: Sequence[Case], platform: str | None) -> list[list[np.ndarray]]:
    """`_run_together`, with the elements of elementwise cases of the same types laid end to end."""
    groups: dict[Any, list[int]] = {}
    for position, case in enumerate(cases):
        groups.setdefault(_element_types(case) or position, []).append(position)
    joined = [_joined([cases[i] for i in group]) for group in groups.values()]
    found: dict[int, list[np.ndarray]] = {}
    for group, results in zip(groups.values(), _run_together(joined, platform), strict=True):
        if len(group) == 1:
            found[group[0]] = results
            continue
        shapes = [cases[i].operands[0].shape for i in group]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        parts = [np.split(x, ends[:-1]) for x in results]
        for i, shape, *own in zip(group, shapes, *parts, strict=True):
            found[i] = [x.reshape(shape) for x in own]
    return [found[i] for i in range(len(cases))]


def _element_types(case: Case) -> Any:
    """What elementwise cases have in common that can be computed by one operation; None if it is none of them."""
    shape = case.operands[0].shape if case.operands else ()
    is_plain = isinstance(case.primitive, Elementwise) and all(x.shape == shape for x in case.operands)
    if (
        not is_plain or math.prod(shape) == 0 or shape == ()
    ):  # numbers and empty arrays are tried by themselves
        return None
    return type(case.primitive), tuple(x.dtype for x in case.operands), repr(sorted(case.params.items()))


def _joined(cases: Sequence[Case]) -> Case:
    if len(cases) == 1:
        return cases[0]
    operands = zip(*[[x.reshape(-1) for x in case.operands] for case in cases], strict=True)
    return cases[0]._replace(operands=tuple([np.concatenate(parts) for parts in operands]))


def _run_together(cases: Sequence[Case], platform: str | None) -> list[list[np.ndarray]]:
    device = client.default_device() if platform is None else client.devices("cpu")[0]
    module = joint_program(list(map(exact, cases)), platform or client.platform_of(device))
    out_avals = [aval for case in cases for aval in _infer(case)]
    operands = [x for case in cases for x in case.operands]
    sizes = [effort.size_of(aval) for aval in (*map(aval_of, operands), *out_avals)]
    executable = compiler.compile_program(
        module.text("cases"),
        out_avals,
        (device,),
        options=effort.of_sizes(sizes, client.platform_of(device)),  # as programs of their size
        callbacks=module.callbacks,
    )
    buffers = executable([execute.device_put(x, device, copy=True, aval=aval_of(x)) for x in operands])
    results = iter([execute.to_numpy(buffer) for buffer in buffers])
    return [[next(results) for _ in _infer(case)] for case in cases]


def joint_program(cases: Sequence[Case], platform: str) -> Module:
    """A module that takes the operands of all cases and gives all their results."""
    module = Module(platform)

    def body(builder, *operands):
        remaining = iter(operands)
        results = []
        for case in cases:
            own = [next(remaining) for _ in case.operands]
            results += _as_list(case, case.primitive.lower(builder, *own, **case.params))
        return results

    module.function("main", [aval_of(x) for case in cases for x in case.operands], body, True)
    return module


def compare_lowered(case: Case, results: Any, is_cpu: bool = True) -> None:
    """The second half of `check_lower`: results of `lowered_results` against `host`.

    Other platforms than the CPU may choose for themselves what is a matter of choice (`choices`).
    """
    if isinstance(results, Exception):
        raise AssertionError(_message(case, "lower", f"{type(results).__name__}: {results}")) from results
    expected = _host(case, case.operands)
    if not is_cpu:
        results, expected = without_choices(case, results), without_choices(case, expected)
    tolerance = case.tolerance if is_cpu else _allowed(exact(case))
    _compare(results, expected, case, "lower", "in the compiled program", tolerance)


# --- rules on another platform


def rule_results(cases: Sequence[Case], device: Any) -> list[list[np.ndarray]]:
    """Tangents, cotangents and batches of cases, computed by one compiled program on a device.

    They are functions of operands in the program, as in a user's one. On the CPU the laws say what is right, so that
    results of two devices are to agree (`compare_rules`); derivatives are those of the widened case.
    """

    cases = list(map(exact, cases))

    def program(operands):
        return [_rules(case, own) for case, own in zip(cases, operands, strict=True)]

    arguments = [(widened(case).operands, _stacked_variants(case)) for case in cases]
    with config.override(enable_x64=True, default_device=device):
        return tree.map(np.asarray, jit(program)(arguments))


def _stacked_variants(case: Case) -> list[np.ndarray]:
    return [np.stack([variant(x, index) for index in range(BATCH)]) for x in case.operands]


def _rules(case: Case, arguments: Any) -> list[Any]:
    operands, stacked = arguments
    results = []
    wide = widened(case)
    if applies("jvp", case) and not is_free(case):
        generator = _generator(case)
        v = _directions(wide, generator)
        with _naming(case, "jvp"):
            out, tangents = jvp_flat(functools.partial(_bind, wide), list(operands), v)
            results += [materialize(t) for t in tangents if _has_tangent(t)]
            moving = [type(dx) is not Zero for dx in v]
            _, tape = linearize_flat(functools.partial(_bind, wide), list(operands), moving)
            cotangents = [
                _random_like(y, generator) if dtypes.is_inexact(aval_of(y).dtype) else Zero.like(y)
                for y in out
            ]
            pulled = transpose_tape(tape, cotangents)
            results += [materialize(c) for c, moves in zip(pulled, moving, strict=True) if moves]
    if applies("batch", case) and not is_free(case):
        with _naming(case, "batch"):
            out, axes = case.primitive.batch(list(stacked), [0] * len(stacked), **case.params)
        results += list(out) if case.primitive.multiple_results else [out]
    return results


def compare_rules(case: Case, results: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    """Requires that a device computes what the CPU does, as `rule_results` gives it."""
    is_matrix = len(results) and is_factorization(case)
    if is_matrix:
        results, expected = ([failures_alike(x) for x in values] for values in (results, expected))
    # Of derivatives the last digits go, whatever the condition of a case.
    tolerance = {8: 1e-9, 4: max(_allowed(exact(case)) or 0.0, 1e-5), 2: None, 1: None}
    for position, (a, e) in enumerate(zip(results, expected, strict=True)):
        part = e.dtype.itemsize // (2 if dtypes.is_complex(e.dtype) else 1)
        what = f"on the device, against the CPU, in result {position}"
        _compare([a], [e], case, "rules", what, tolerance.get(part) if dtypes.is_inexact(e.dtype) else None)


# --- derivatives


def widened(case: Case) -> Case:
    """The case in float64 and complex128, so that difference quotients have digits."""
    operands = tuple(x.astype(_wide_dtype(x.dtype)) for x in case.operands)
    return case._replace(
        operands=operands, params={name: _wide_parameter(p) for name, p in case.params.items()}
    )


def _wide_dtype(dtype: np.dtype) -> np.dtype:
    if dtypes.is_complex(dtype):
        return np.dtype(np.complex128)
    return np.dtype(np.float64) if dtypes.is_inexact(dtype) else dtype


def _wide_parameter(value: Any) -> Any:
    return _wide_dtype(value) if isinstance(value, np.dtype) else value


def _generator(case: Case) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(str(case).encode()))


def _directions(case: Case, generator: np.random.Generator) -> list[Any]:
    return [_random_like(x, generator) if dtypes.is_inexact(x.dtype) else Zero.like(x) for x in case.operands]


def _random_like(x: Any, generator: np.random.Generator) -> np.ndarray:
    aval = aval_of(x)
    values = generator.uniform(-1, 1, aval.shape)
    if dtypes.is_complex(aval.dtype):
        values = values + 1j * generator.uniform(-1, 1, aval.shape)
    return np.asarray(values).astype(aval.dtype)


def _sum(a: Any, b: Any) -> Any:
    return b if type(a) is Zero else a if type(b) is Zero else a + b


def _rule_tangent(case: Case, primals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """The tangents that the `jvp` rule gives, as arrays; results without tangents are left out."""
    _, tangent = case.primitive.jvp(list(primals), list(tangents), **case.params)
    return [materialize(t) for t in _as_list(case, tangent) if _has_tangent(t)]


def _jvp(
    case: Case, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    with _naming(case, "jvp"):
        out, tangent = case.primitive.jvp(list(primals), list(tangents), **case.params)
        arrays = [materialize(t) for t in _as_list(case, tangent) if _has_tangent(t)]
    return [_numpy(y) for y in _as_list(case, out)], [_numpy(t) for t in arrays]


def _has_tangent(tangent: Any) -> bool:
    return dtypes.is_inexact(aval_of(tangent).dtype)


def _check_tangent_types(case: Case) -> None:
    """In the dtypes of the case: a tangent has the type of its result, `float0` for integers."""
    tangents = _directions(case, _generator(case))
    with _naming(case, "jvp"):
        out, tangent = case.primitive.jvp(list(case.operands), tangents, **case.params)
    for y, t in zip(_as_list(case, out), _as_list(case, tangent), strict=True):
        wanted, found = Zero.like(y).aval, aval_of(t)
        same = (wanted.shape, wanted.dtype) == (found.shape, found.dtype)
        _require(same, case, "jvp", f"gives a tangent of type {found} for a result of type {aval_of(y)}")


def _difference(
    function: Callable, operands: Sequence[np.ndarray], directions: Sequence[Any]
) -> list[np.ndarray]:
    """(f(x + h v) − f(x − h v)) / 2h with the error term of order h² removed; of inexact results only."""

    def at(step: float) -> list[np.ndarray]:
        moved = [
            x if type(v) is Zero else np.asarray(x + step * v)
            for x, v in zip(operands, directions, strict=True)
        ]
        return [y for y in function(moved) if dtypes.is_inexact(y.dtype)]

    with np.errstate(all="ignore"):
        rows = zip(at(STEP), at(-STEP), at(2 * STEP), at(-2 * STEP), strict=True)
        return [np.asarray((8 * _minus(a, b) - _minus(c, d)) / (12 * STEP)) for a, b, c, d in rows]


def _minus(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(a == b, 0, a - b)  # an infinity that does not move has derivative 0


def _require_smooth(derivatives: Sequence[np.ndarray], case: Case) -> None:
    smooth = all(np.isfinite(y).all() for y in derivatives)
    _require(
        smooth,
        case,
        "host",
        "has no finite derivative at these operands; say differentiable=False in the case",
    )


def _inner(x: Any, y: Any) -> float:
    if type(y) is Zero or y is None:
        return 0.0
    return float(np.sum(_numpy(x) * _numpy(y)).real)


def _check_cotangents(case: Case, used: Case, compare: bool) -> None:
    generator = _generator(case)
    outs = _host(used, used.operands)
    given = [_random_like(y, generator) if dtypes.is_inexact(y.dtype) else Zero.like(y) for y in outs]
    choices = [given]
    if (
        case.primitive.multiple_results and len(given) > 1
    ):  # each result alone, the others' cotangents being zero
        choices += [[c if i == k else Zero.like(c) for i, c in enumerate(given)] for k in range(len(given))]
    for cotangents in choices:
        operands = [LinearOperand(aval_of(x)) if i in case.linear else x for i, x in enumerate(used.operands)]
        with _naming(case, "transpose"):
            first = cotangents if case.primitive.multiple_results else cotangents[0]
            pulled = case.primitive.transpose(first, *operands, **used.params)
        count = f"gives {len(pulled)} cotangents for {len(operands)} operands"
        _require(len(pulled) == len(operands), case, "transpose", count)
        for i, (x, c) in enumerate(zip(used.operands, pulled, strict=True)):
            if i in case.linear:
                _require_type(c, x, case, "transpose")
            else:
                _require(
                    c is None, case, "transpose", f"gives a cotangent for operand {i}, which is not linear"
                )
        if compare:
            left = sum(_inner(y, c) for y, c in zip(outs, cotangents, strict=True))
            right = sum(_inner(used.operands[i], pulled[i]) for i in case.linear)
            _compare(
                [np.asarray(right)], [np.asarray(left)], case, "transpose", "⟨x, fᵀy⟩ is not ⟨f x, y⟩", 1e-9
            )


def _require_type(cotangent: Any, operand: np.ndarray, case: Case, rule: str) -> None:
    if cotangent is None or type(cotangent) is Zero:
        return
    found, wanted = aval_of(cotangent), aval_of(operand)
    same = (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    _require(same, case, rule, f"gives a cotangent of type {found} for an operand of type {wanted}")


# --- batch

BATCH = 3


def variant(x: np.ndarray, index: int) -> np.ndarray:
    """Another valid operand: numbers a little smaller, elements in reverse order of all axes; integers reversed only.

    Positive definite matrices stay so, indices stay in range.
    """
    if index == 1:
        x = np.flip(x)
    if index and dtypes.is_inexact(x.dtype):
        with np.errstate(all="ignore"):  # some operands are infinite or NaN
            x = (x * np.asarray(1 - 0.1 * index, x.dtype)).astype(x.dtype)
    return np.asarray(x)


def _subsets(count: int) -> list[tuple[int, ...]]:
    """The ways to batch some of the operands; of many operands only one, two, all but one, and all."""
    positions = range(count)
    sizes = positions if count <= 3 else (0, 1, count - 2, count - 1)
    return [chosen for size in dict.fromkeys(sizes) for chosen in itertools.combinations(positions, size + 1)]


def _axis_choices(ranks: Sequence[int], batched: Sequence[int]) -> list[list[int | None]]:
    """Batch axes first, last, in the middle, and at different places."""
    choices = []
    for place in ("first", "last", "middle", "mixed"):
        axes: list[int | None] = [None] * len(ranks)
        for order, i in enumerate(batched):
            rank = ranks[i]
            mixed = (0, rank, rank // 2)[order % 3]
            axes[i] = {"first": 0, "last": rank, "middle": (rank + 1) // 2, "mixed": mixed}[place]
        if axes not in choices:
            choices.append(axes)
    return choices


# --- the oracle and comparisons


def _infer(case: Case) -> list[Any]:
    return _as_list(case, case.primitive.infer(*map(aval_of, case.operands), **case.params))


def _as_list(case: Case, result: Any) -> list[Any]:
    return list(result) if case.primitive.multiple_results else [result]


def _bind(case: Case, *operands: Any) -> list[Any]:
    return _as_list(case, case.primitive.bind(*operands, **case.params))


def _numpy(x: Any) -> np.ndarray:
    return x if isinstance(x, np.ndarray) else np.asarray(x.host_value() if hasattr(x, "host_value") else x)


def _with_columns_first(x: np.ndarray) -> np.ndarray:
    return np.array(x, order="F")


def _with_negative_strides(x: np.ndarray) -> np.ndarray:
    return np.flip(np.ascontiguousarray(np.flip(x))) if x.ndim else x


def _host(case: Case, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of `host`, which gets read-only operands."""
    views = [x.view() for x in operands]
    for view in views:
        view.flags.writeable = False
    with _naming(case, "host"), np.errstate(all="ignore"):
        results = case.primitive.host(*views, **case.params)
    return [np.asarray(y) for y in _as_list(case, results)]


class _naming:
    """Turns an exception of a rule into an AssertionError that names the primitive, the rule and the case."""

    def __init__(self, case: Case, rule: str):
        self.case, self.rule = case, rule

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind, error, traceback) -> None:
        if isinstance(error, Exception) and not isinstance(error, AssertionError):
            raise AssertionError(
                _message(self.case, self.rule, f"raises {kind.__name__}: {error}")
            ) from error


def _message(case: Case, rule: str, what: str) -> str:
    return f"{case.primitive.name}: `{rule}` {what}\n  case: {case}"


def _require(condition: bool, case: Case, rule: str, what: str) -> None:
    if not condition:
        raise AssertionError(_message(case, rule, what))


def _compare(
    actual: Sequence[Any],
    expected: Sequence[Any],
    case: Case,
    rule: str,
    what: str,
    tolerance: float | None = None,
) -> None:
    """Requires equal shapes, dtypes and values; floating point numbers up to a tolerance, NaN being equal to NaN."""
    _require(
        len(actual) == len(expected), case, rule, f"{what}: {len(actual)} results, expected {len(expected)}"
    )
    for position, (a, e) in enumerate(zip(actual, expected, strict=True)):
        same = a.shape == e.shape and a.dtype == e.dtype
        types = f"{a.dtype}{list(a.shape)}, expected {e.dtype}{list(e.shape)}"
        _require(same, case, rule, f"deviates {what}: result {position} has type {types}")
        deviation = largest_deviation(a, e, tolerance)
        if deviation is not None:
            raise AssertionError(_message(case, rule, f"deviates {what}: result {position} {deviation}"))


def largest_deviation(actual: np.ndarray, expected: np.ndarray, tolerance: float | None = None) -> str | None:
    """Where two arrays of one type differ most and by how much; None if they agree."""
    if not dtypes.is_inexact(expected.dtype):
        wrong = np.asarray(actual != expected)
        if not wrong.any():
            return None
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        return (
            f"at {where} is {actual[where]}, expected {expected[where]}; {wrong.sum()} of {wrong.size} differ"
        )
    complex_ = dtypes.is_complex(expected.dtype)
    if tolerance is None:
        tolerance = TOLERANCES[expected.dtype.itemsize // (2 if complex_ else 1)]
    a, e = (x.astype(np.complex128 if complex_ else np.float64) for x in (actual, expected))
    parts = [(a.real, e.real), (a.imag, e.imag)] if complex_ else [(a, e)]
    with np.errstate(all="ignore"):
        size = np.abs(e) if not complex_ else np.hypot(*(np.abs(part) for _, part in parts))
        size = np.where(np.isfinite(size), size, 1.0)
        for x, y in parts:
            equal = (x == y) | (np.isnan(x) & np.isnan(y))
            error = np.where(equal, 0.0, np.abs(x - y))
            error = np.where(np.isnan(error), np.inf, error)
            excess = error - tolerance * (1 + size)
            if excess.size and excess.max() > 0:
                where = tuple(int(i) for i in np.unravel_index(int(np.argmax(excess)), excess.shape))
                return (
                    f"at {where} is {actual[where]}, expected {expected[where]}: deviation {error[where]:.3g}, "
                    f"allowed {tolerance * (1 + float(size[where])):.3g}"
                )
    return None


# --- what is there to check


@functools.cache
def all_primitives() -> dict[str, tuple[str, ...]]:
    """The names of the primitives of each module of `purax.primitives`.

    Collective operations are left out: they mean nothing without a named axis, and have tests of their own.
    """
    found = {}
    for module in pkgutil.walk_packages(primitives.__path__, "purax.primitives."):
        contents = vars(importlib.import_module(module.name))
        own = (
            value.name
            for value in contents.values()
            if isinstance(value, Primitive)
            and type(value).__module__ == module.name
            and type(value).names_axis is Primitive.names_axis
        )
        names = tuple(dict.fromkeys(own))
        if names:
            found[module.name.rpartition(".")[2]] = names
    return found


__all__ = [
    "LAWS", "all_primitives", "applies", "check_batch", "check_infer", "check_jvp", "check_lower", "check_reverse",
    "check_transpose", "compare_lowered", "compare_rules", "joint_program", "lowered_results", "rule_results",
    "variant", "widened",
]  # fmt: skip
