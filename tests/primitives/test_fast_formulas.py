"""The formulas of `purax.primitives.elementwise.fast_formulas` in compiled programs, against NumPy in float64, over
the whole range."""

from __future__ import annotations

import numpy as np
import pytest

from purax.core.avals import ShapedArray, aval_of
from purax.lowering.jaxpr_to_stablehlo import lower_primitive
from purax.primitives.elementwise import arithmetic, fast_formulas, transcendental
from purax.xla import client, compiler, execute

TINY = float(np.finfo(np.float32).tiny)
generator = np.random.default_rng(0)
EDGES = [0.0, -0.0, 0.5, -0.5, 1, -1, 2, np.pi, 0.99999994, 1.0000001, 3.4e38, -1e38, np.inf, -np.inf, np.nan]
WIDE = np.concatenate(
    [generator.uniform(-10, 10, 9000), 10 ** generator.uniform(-37, 38, 9000), EDGES]
).astype(np.float32)
UNIT = np.concatenate(
    [generator.uniform(-1, 1, 9000), 1 - 10 ** generator.uniform(-7, -1, 999), EDGES]
).astype(np.float32)
EXPONENTS = np.concatenate([generator.uniform(-160, 140, 9000), np.arange(-125, 128), EDGES]).astype(
    np.float32
)
NEAR_LIMITS = np.concatenate(
    [
        generator.uniform(87.2, 89, 3000),
        -generator.uniform(86.5, 88, 3000),
        [88.72283, 88.72284, -87.33654, 104],
    ]
).astype(np.float32)
NEAR_ONE = np.concatenate(
    [1 + 10 ** generator.uniform(-7, -1, 3000), generator.uniform(0.5, 2, 6000)]
).astype(np.float32)


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def compiled(primitive, *operands: np.ndarray) -> np.ndarray:
    device = client.devices("cpu")[0]
    avals = [aval_of(x) for x in operands]
    module = lower_primitive(primitive, avals, {}, "cpu")
    run = compiler.compile_program(module.text(primitive.name), [primitive.infer(*avals)], (device,))
    (buffer,) = run(
        [execute.device_put(x, device, copy=True, aval=a) for x, a in zip(operands, avals, strict=True)]
    )
    return execute.to_numpy(buffer)


@pytest.fixture(params=["formulas", "XLA's"])
def form(request, monkeypatch):
    """The formulas, which many elements get, for few; and what few get."""
    if request.param == "formulas":
        for name in ("SOME", "MANY", "VERY_MANY"):
            monkeypatch.setattr(fast_formulas, name, 0)
    return request.param


def check(primitive, exact, limit: float, *operands: np.ndarray) -> None:
    """The result is within `limit` units in the last place; where it is subnormal, zero will do."""
    actual = compiled(primitive, *operands)
    with np.errstate(all="ignore"):
        wanted = exact(*(x.astype(np.float64) for x in operands))
        rounded = wanted.astype(np.float32)
        distance = np.abs(actual - wanted) / np.spacing(np.abs(rounded))
        same = (actual == rounded) | (np.isnan(actual) & np.isnan(rounded))
        same |= (np.abs(wanted) < TINY) & (np.abs(actual) <= TINY)
        distance = np.where(same, 0, np.where(np.isnan(distance), np.inf, distance))
    worst = np.argmax(distance)
    assert distance[worst] <= limit, ([x[worst] for x in operands], actual[worst], wanted[worst])
    zeros = (rounded == 0) & (actual == 0)
    np.testing.assert_array_equal(np.signbit(actual[zeros]), np.signbit(rounded[zeros]))


@pytest.mark.parametrize(
    "primitive, exact, limit, x",
    [
        (transcendental.sin_p, np.sin, 2, WIDE),
        (transcendental.cos_p, np.cos, 2, WIDE),
        (transcendental.tan_p, np.tan, 0.6, WIDE),
        (transcendental.atan_p, np.arctan, 2, WIDE),
        (transcendental.asin_p, np.arcsin, 2.5, UNIT),
        (transcendental.acos_p, np.arccos, 2, UNIT),
        (transcendental.exp2_p, np.exp2, 1.5, EXPONENTS),
        (transcendental.exp_p, np.exp, 1.2, EXPONENTS),
        (transcendental.exp_p, np.exp, 1.2, NEAR_LIMITS),
        (transcendental.exp_p, np.exp, 1.2, WIDE),
        (transcendental.log_p, np.log, 1, WIDE),
        (transcendental.log_p, np.log, 1, NEAR_ONE),
        (transcendental.log1p_p, np.log1p, 1.5, WIDE),
        (transcendental.log1p_p, np.log1p, 1.5, NEAR_ONE - 1),
        (transcendental.log1p_p, np.log1p, 1.5, UNIT),
        (transcendental.tanh_p, np.tanh, 2.3, WIDE),
        (transcendental.tanh_p, np.tanh, 2.3, UNIT),
        (transcendental.logistic_p, logistic, 2.5, EXPONENTS),
        (arithmetic.cbrt_p, np.cbrt, 1.5, WIDE),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_functions_of_one_number(primitive, exact, limit, x, form):
    check(primitive, exact, limit if form == "formulas" else XLA_LIMITS.get(primitive.name, limit), x)


def test_few_elements_get_the_operations_of_xla():
    """They compile in a fraction of the time."""
    texts = [
        lower_primitive(transcendental.sin_p, [ShapedArray((size,), np.dtype(np.float32))], {}, "cpu").text(
            "sin"
        )
        for size in (fast_formulas.MANY - 1, fast_formulas.MANY)
    ]
    assert "stablehlo.sine" in texts[0] and "stablehlo.sine" not in texts[1]


def test_powers_of_two_are_exact(form):
    x = np.arange(-126, 128).astype(np.float32)
    np.testing.assert_array_equal(compiled(transcendental.exp2_p, x), np.exp2(x.astype(np.float64)))


def test_cube_roots_of_subnormal_numbers(form):
    x = np.array([1e-39, -1e-42, 1e-45], np.float32)
    np.testing.assert_allclose(compiled(arithmetic.cbrt_p, x), np.cbrt(x.astype(np.float64)), rtol=2e-7)


# Units in the last place by which XLA's own operations err.
XLA_LIMITS = {"exp": 5.5, "log": 1.5, "atan": 2.6}  # of jaxlib 0.12 (atan), and before


def pairs(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    return [np.ascontiguousarray(x.ravel()) for x in np.meshgrid(a, b)]


def test_angle_of_a_point(form):
    normal = WIDE[(np.abs(WIDE) > 1e-18) & (np.abs(WIDE) < 1e18)]
    check(
        transcendental.atan2_p,
        np.arctan2,
        2,
        *pairs(np.append(normal[::90], EDGES), np.append(normal[::90], EDGES)),
    )


def test_powers(form):
    bases = np.append(10 ** generator.uniform(-10, 10, 150), EDGES).astype(np.float32)
    exponents = np.concatenate(
        [generator.uniform(-5, 5, 150), np.arange(-9, 10), [1e10, 3e9, 16777215], EDGES]
    )
    check(transcendental.pow_p, np.power, 2, *pairs(bases, exponents.astype(np.float32)))


def test_narrow_floats_are_rounded_once(form):
    x = generator.uniform(-9, 9, 1000).astype(np.float16)
    wanted = np.sin(x.astype(np.float64)).astype(np.float16)
    distance = np.abs(compiled(transcendental.sin_p, x).astype(float) - wanted.astype(float))
    assert (distance <= np.spacing(np.abs(wanted))).all()
    assert (distance == 0).mean() > 0.99
