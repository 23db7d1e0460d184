"""Operations on elements against jax as a black box: values for all dtypes and special values, derivatives at kinks.

All operations of a dtype run in one program of jax's, which takes as long to compile as one of them. Where purax is
more accurate than XLA's own expansion, `MORE_ACCURATE` says so, and the reference is scipy in float64.
"""

from __future__ import annotations

import functools

import jax
import ml_dtypes
import numpy as np
import pytest
import scipy.special
from jax import lax

from purax.core.avals import ShapedArray, Zero
from purax.errors import MissingRuleError
from purax.execution import eager  # noqa: F401  (installs the trace that runs the rules)
from purax.primitives.elementwise import arithmetic, conversion, elementwise, logic, transcendental
from purax.primitives.shape.broadcasting import materialize
from purax.primitives.special import special

BOOLEAN, SIGNED, UNSIGNED, FLOATS, COMPLEX = (
    (np.bool_,),
    (np.int8, np.int16, np.int32, np.int64),
    (np.uint8, np.uint16, np.uint32, np.uint64),
    (np.float16, ml_dtypes.bfloat16, np.float32, np.float64),
    (np.complex64, np.complex128),
)
INTEGERS = (*SIGNED, *UNSIGNED)
ALL = (*BOOLEAN, *INTEGERS, *FLOATS, *COMPLEX)
ORDERED = (*BOOLEAN, *INTEGERS, *FLOATS)
NUMBERS = (*INTEGERS, *FLOATS, *COMPLEX)

# name of the operation -> its module, how many operands it has, its dtypes
OPERATIONS = {
    **{name: (elementwise, 2, NUMBERS) for name in ("add", "mul")},
    "neg": (elementwise, 1, NUMBERS),
    **{name: (logic, 2, ALL) for name in ("eq", "ne")},
    **{name: (logic, 2, ORDERED) for name in ("lt", "le", "gt", "ge", "eq_to", "lt_to", "le_to")},
    **{name: (logic, 2, (*BOOLEAN, *INTEGERS)) for name in ("and", "or", "xor")},
    "not": (logic, 1, (*BOOLEAN, *INTEGERS)),
    **{
        name: (logic, 2, INTEGERS) for name in ("shift_left", "shift_right_arithmetic", "shift_right_logical")
    },
    **{name: (logic, 1, INTEGERS) for name in ("population_count", "clz")},
    "is_finite": (logic, 1, FLOATS),
    "clamp": (logic, 3, ORDERED),
    **{name: (arithmetic, 2, NUMBERS) for name in ("sub", "div")},
    **{name: (arithmetic, 2, ALL) for name in ("max", "min")},
    "rem": (arithmetic, 2, (*INTEGERS, *FLOATS)),
    "mulhi": (arithmetic, 2, INTEGERS),
    "nextafter": (arithmetic, 2, FLOATS),
    **{name: (arithmetic, 1, NUMBERS) for name in ("square", "sign")},
    "abs": (arithmetic, 1, (*SIGNED, *FLOATS, *COMPLEX)),
    **{name: (arithmetic, 1, FLOATS) for name in ("floor", "ceil", "cbrt")},
    **{name: (arithmetic, 1, (*FLOATS, *COMPLEX)) for name in ("sqrt", "rsqrt")},
    **{
        name: (transcendental, 1, (*FLOATS, *COMPLEX))
        for name in (
            *(
                "exp",
                "exp2",
                "expm1",
                "log",
                "log1p",
                "logistic",
                "sin",
                "cos",
                "tan",
                "asin",
                "acos",
                "atan",
            ),
            *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
        )
    },
    **{name: (transcendental, 2, FLOATS) for name in ("pow", "atan2")},
    **{name: (special, 1, FLOATS) for name in ("erf", "erfc", "erf_inv", "lgamma", "digamma")},
    **{name: (special, 1, FLOATS[2:]) for name in ("bessel_i0e", "bessel_i1e")},
}

# XLA computes these as exponentials of sums, whose rounding errors grow with the exponent, or, for complex numbers,
# as differences that cancel; the last lose digits near their zeros or at the ends of their range.
MORE_ACCURATE = {
    **dict.fromkeys(("exp2", "sinh", "cosh"), (*FLOATS, *COMPLEX)),
    "asinh": COMPLEX,  # the sign of a zero real part on the branch cut
    **dict.fromkeys(("lgamma", "digamma"), FLOATS),
    **dict.fromkeys(("erfc", "erf_inv"), FLOATS[2:]),
}
EXACT = {
    "exp2": np.exp2, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "erfc": scipy.special.erfc,
    "lgamma": scipy.special.gammaln, "digamma": scipy.special.digamma, "erf_inv": scipy.special.erfinv,
}  # fmt: skip


def values(dtype) -> np.ndarray:
    """Numbers of a dtype: special ones, extremes, and some in between."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return np.array([False, True])
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.array(
            [0, 1, 2, 3, 7, 8, 31, 100, limits.max, limits.max - 1, limits.min, limits.min + 1], dtype
        )
    if dtype.kind == "c":
        parts = np.array([0.0, -0.0, 1, -0.5, 3, 1e-3, -10])
        return (parts[:, None] + 1j * parts).ravel().astype(dtype)
    special_values = [0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 1.5, 2.5, -2.5, 1e-3, 10, -10, 30, -88, 100]
    return np.array([*special_values, 0.3, -0.7, 4.4, np.inf, -np.inf, np.nan]).astype(dtype)


def operands(arity: int, dtype) -> list[np.ndarray]:
    """All pairs or triples of `values`."""
    some = values(dtype)[:: 1 if arity < 3 else 3]
    return [np.ascontiguousarray(x.ravel()) for x in np.meshgrid(*[some] * arity, indexing="ij")]


def reference(name: str):
    """The function of jax.lax for an operation."""
    if name in ("eq_to", "lt_to", "le_to"):
        return getattr(lax, f"{name}_p").bind
    return getattr(
        lax,
        {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "not": "bitwise_not"}.get(
            name, name
        ),
    )


@functools.cache
def expected(dtype) -> dict[str, np.ndarray]:
    """What jax gives for all operations on a dtype."""
    names = [name for name, (_, _, accepted) in OPERATIONS.items() if dtype in accepted]
    with jax.enable_x64(True):
        arguments = {arity: operands(arity, dtype) for arity in (1, 2, 3)}
        run = jax.jit(lambda arguments: {n: reference(n)(*arguments[OPERATIONS[n][1]]) for n in names})
        return {name: np.asarray(result) for name, result in run(arguments).items()}


def units_in_last_place(actual: np.ndarray, wanted: np.ndarray, floor: float = 0) -> np.ndarray:
    """The distance in units of the last place of `wanted`, of `floor` if that is larger; subnormals count as zero."""
    limits = ml_dtypes.finfo(wanted.dtype)
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    a, w = actual.astype(wide), wanted.astype(wide)
    same = (a == w) | (np.isnan(a) & np.isnan(w)) | ((np.abs(a) < limits.tiny) & (np.abs(w) < limits.tiny))
    with np.errstate(all="ignore"):
        distance = np.abs(a - w) / (np.maximum(np.abs(w), max(floor, float(limits.tiny))) * float(limits.eps))
    return np.where(same, 0, np.where(np.isnan(distance), np.inf, distance))


@pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: np.dtype(dtype).name)
def test_host_gives_what_jax_gives(dtype):
    for name, wanted in expected(dtype).items():
        module, arity, _ = OPERATIONS[name]
        with np.errstate(all="ignore"):
            actual = np.asarray(getattr(module, f"{name}_p").host(*operands(arity, dtype)))
        assert actual.dtype == wanted.dtype, name
        if wanted.dtype.kind in "biu":
            np.testing.assert_array_equal(actual, wanted, err_msg=name)
            continue
        if dtype in MORE_ACCURATE.get(name, ()):
            x = operands(1, dtype)[0]
            with np.errstate(all="ignore"):
                exact = EXACT[name](x.astype(np.complex128 if x.dtype.kind == "c" else np.float64))
                is_pole = ~np.isfinite(exact)  # there, conventions differ; jax's are ours
                if name == "digamma":  # at 0, they depend on the version of jax
                    is_pole &= ~np.isfinite(x)
                wanted = np.where(is_pole, wanted, exact.astype(dtype))
        if wanted.dtype.kind == "c":  # infinite complex numbers have no sign that NumPy and XLA agree on
            wanted = np.where(np.isfinite(wanted), wanted, actual)
        distance = units_in_last_place(
            actual, wanted, 1 if name in ("lgamma", "digamma") else 0
        )  # have zeros
        worst = np.unravel_index(np.argmax(distance), distance.shape)
        assert distance[worst] <= 4, (
            name,
            [x[worst] for x in operands(arity, dtype)],
            actual[worst],
            wanted[worst],
        )


PAIRS = [name for name, (_, arity, _) in OPERATIONS.items() if arity == 2]


@pytest.mark.parametrize("name", PAIRS)
def test_a_number_is_what_an_array_full_of_it_is(name):
    """NumPy has functions of its own for a single number, which have other values at -0 and −∞."""
    module, _, accepted = OPERATIONS[name]
    primitive = getattr(module, f"{name}_p")
    for dtype in accepted:
        some = values(dtype)
        rows, columns = (np.ascontiguousarray(x) for x in np.meshgrid(some, some, indexing="ij"))
        with np.errstate(all="ignore"):
            wanted = primitive.host(rows, columns)
            by_second = np.stack([primitive.host(some, y.reshape(())) for y in some], 1)
            by_first = np.stack([primitive.host(x.reshape(()), some) for x in some])
        for actual in (by_first, by_second):
            if wanted.dtype.kind in "biu":
                np.testing.assert_array_equal(actual, wanted, err_msg=f"{name} {dtype}")
                continue
            assert units_in_last_place(actual, wanted).max() <= 2, dtype
            is_zero = wanted == 0
            np.testing.assert_array_equal(np.signbit(actual.real)[is_zero], np.signbit(wanted.real)[is_zero])


@pytest.mark.parametrize("new", ALL, ids=lambda dtype: np.dtype(dtype).name)
def test_conversions(new):
    old_values = {np.dtype(old).name: values(old) for old in ALL}
    for name in ("float32", "float64"):  # the ends of every integer range
        old_values[name] = np.concatenate(
            [old_values[name], np.array([3e4, 7e4, -7e4, 3e9, -3e9, 5e9, 1e19, -1e19, 2e19], name)]
        )
    with jax.enable_x64(True), pytest.warns() if np.dtype(new).kind != "c" else np.errstate():
        wanted = jax.jit(lambda xs: {n: lax.convert_element_type(x, new) for n, x in xs.items()})(old_values)
    for name, x in old_values.items():
        with np.errstate(all="ignore"):
            actual = conversion.convert_element_type_p.host(x, new_dtype=np.dtype(new), weak_type=False)
        assert actual.dtype == new
        expected = x != 0 if new == np.bool_ else np.asarray(wanted[name])  # jax looks at the real part only
        same = (actual == expected) | ((actual != actual) & np.isnan(expected))
        assert same.all(), (name, x[~same], actual[~same])


@pytest.mark.parametrize("exponent_bits, mantissa_bits", [(5, 2), (8, 7), (4, 3), (2, 1)])
def test_reduce_precision(exponent_bits, mantissa_bits):
    x = np.concatenate([values(np.float32), np.float32([65519, 65520, 6.1e-5, 6e-5, 240, 248])])
    params = {"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits}
    wanted = np.asarray(lax.reduce_precision(x, **params))
    actual = conversion.reduce_precision_p.host(x, **params)
    np.testing.assert_array_equal(actual, wanted)


KINKS = [
    ("abs", arithmetic, (0.0,)),
    ("abs", arithmetic, (-0.0,)),
    ("max", arithmetic, (1.0, 1.0)),
    ("max", arithmetic, (2.0, 1.0)),
    ("min", arithmetic, (1.0, 1.0)),
    ("min", arithmetic, (2.0, 1.0)),
    ("sqrt", arithmetic, (0.0,)),
    ("sign", arithmetic, (0.0,)),
    ("rem", arithmetic, (5.5, 2.0)),
    ("rem", arithmetic, (-5.5, 2.0)),
    ("clamp", logic, (0.0, 0.0, 1.0)),
    ("clamp", logic, (0.0, -1.0, 1.0)),
    ("clamp", logic, (0.0, 2.0, 1.0)),
    ("clamp", logic, (0.0, 0.5, 1.0)),
    ("pow", transcendental, (0.0, 2.0)),
    ("pow", transcendental, (0.0, 1.0)),
    ("pow", transcendental, (2.0, 0.0)),
    ("atan2", transcendental, (0.0, -1.0)),
    ("log1p", transcendental, (-1.0,)),
    ("tanh", transcendental, (20.0,)),
    ("logistic", transcendental, (-100.0,)),
    ("bessel_i1e", special, (0.0,)),
]


@pytest.mark.parametrize("name, module, point", KINKS)
def test_derivative_at_a_kink(name, module, point):
    point = [np.float32(x) for x in point]
    primitive = getattr(module, f"{name}_p")
    for position in range(len(point)):
        tangents = [np.float32(i == position) for i in range(len(point))]
        _, tangent = primitive.jvp(point, [t if t else Zero.like(t) for t in tangents])
        _, wanted = jax.jvp(reference(name), point, tangents)
        np.testing.assert_allclose(materialize(tangent), wanted, rtol=1e-6, err_msg=f"operand {position}")


def test_powers_of_zero_have_finite_derivatives():
    zero = np.float32(0)
    _, by_base = transcendental.pow_p.jvp([zero, zero], [np.float32(1), Zero.like(zero)])
    assert float(materialize(by_base)) == 0  # x⁰ = 1 has no slope; jax gives NaN
    _, by_integer = transcendental.pow_p.jvp([zero, np.int32(0)], [np.float32(1), Zero.like(np.int32(0))])
    assert float(materialize(by_integer)) == 0


@pytest.mark.parametrize("name", ["abs", "sqrt", "exp", "log", "sin", "tanh", "atanh"])
def test_derivatives_of_complex_functions(name):
    module = arithmetic if name in ("abs", "sqrt") else transcendental
    x, dx = np.complex64(0.3 - 0.6j), np.complex64(1 + 0.5j)
    _, tangent = getattr(module, f"{name}_p").jvp([x], [dx])
    _, wanted = jax.jvp(reference(name), (x,), (dx,))
    np.testing.assert_allclose(tangent, wanted, rtol=2e-6)


def test_sign_of_complex_numbers_turns():
    """x/|x| has a derivative across x; jax gives zero."""
    _, tangent = arithmetic.sign_p.jvp([np.complex64(2)], [np.complex64(1 + 1j)])
    np.testing.assert_allclose(tangent, 0.5j, rtol=1e-6)


# --- incomplete functions

A = np.array([1e-3, 0.1, 0.5, 1, 3, 10, 50, 199, 201, 1e3, 1e5])
X = np.array([1e-4, 0.1, 0.9, 1, 2.5, 12, 49, 205, 980, 1.001e5])


def test_incomplete_gamma_against_scipy():
    a, x = (v.ravel() for v in np.meshgrid(A, X))
    with np.errstate(all="ignore"):
        lower, upper = special.igamma_p.host(a, x), special.igammac_p.host(a, x)
    np.testing.assert_allclose(lower, scipy.special.gammainc(a, x), rtol=1e-11, atol=1e-290)
    # 1 − P loses digits where a is tiny and Q with it.
    np.testing.assert_allclose(upper, scipy.special.gammaincc(a, x), rtol=2e-11, atol=1e-15)


def test_incomplete_beta_against_scipy():
    a, b, x = (v.ravel() for v in np.meshgrid(A[:-1], A[:-1], [1e-6, 0.1, 0.5, 0.77, 0.999]))
    with np.errstate(all="ignore"):
        actual = special.regularized_incomplete_beta_p.host(a, b, x)
    np.testing.assert_allclose(actual, scipy.special.betainc(a, b, x), rtol=1e-10, atol=1e-290)


@pytest.mark.parametrize("order", [1, 2])
def test_zeta_and_polygamma_left_of_zero(order):
    x = np.array([-0.3, -4.25, -16.7, -100.4])
    wanted = scipy.special.polygamma(order, x)
    np.testing.assert_allclose(special.polygamma_p.host(np.full(4, float(order)), x), wanted, rtol=1e-10)


def test_random_gamma_derivative_against_jax():
    a, x = (v.ravel().astype(np.float32) for v in np.meshgrid([0.1, 1, 5, 100], [0.05, 0.5, 4, 90]))
    with jax.enable_x64(True):  # in float32, jax loses digits where a and x are far apart
        wanted = np.asarray(lax.random_gamma_grad(a.astype(np.float64), x.astype(np.float64)))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(special.random_gamma_grad_p.host(a, x), wanted, rtol=1e-6)


def test_edges_of_incomplete_functions():
    a = np.float32([0, 1, -1, 1, 0, 1, np.nan])
    x = np.float32([0, 0, 1, -1, 1, np.inf, 1])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(special.igamma_p.host(a, x), np.asarray(lax.igamma(a, x)))
        np.testing.assert_array_equal(special.igammac_p.host(a, x), np.asarray(lax.igammac(a, x)))
        a, b, x = np.float32(
            [[0, 1, 1, 1, -1, 1, np.inf], [1, 0, 1, 1, 1, 1, 1], [0.5, 0.5, -0.1, 1.1, 0.5, 1, 0.5]]
        )
        np.testing.assert_array_equal(
            special.regularized_incomplete_beta_p.host(a, b, x), np.asarray(lax.betainc(a, b, x))
        )


# --- errors


def aval(dtype, *shape) -> ShapedArray:
    return ShapedArray(shape, np.dtype(dtype))


ERRORS = [
    (
        elementwise.add_p,
        (aval("float32", 3), aval("float32", 4)),
        {},
        TypeError,
        r"add got incompatible shapes.*\(3,\), \(4,\)",
    ),
    (elementwise.add_p, (aval("float32"), aval("int32")), {}, TypeError, "one dtype, got f32.*astype"),
    (
        elementwise.mul_p,
        (aval("bool"), aval("bool")),
        {},
        TypeError,
        "mul takes integer or float or complex.*bool",
    ),
    (arithmetic.integer_pow_p, (aval("int32"),), {"y": -1}, TypeError, "negative power -1.*float"),
    (arithmetic.abs_p, (aval("uint8"),), {}, TypeError, "abs takes signed"),
    (arithmetic.round_p, (aval("float32"),), {"rounding_method": 2}, ValueError, "rounding_method must be 0"),
    (logic.lt_p, (aval("complex64"), aval("complex64")), {}, TypeError, "lt takes .*complex64"),
    (logic.select_n_p, (aval("float32"), aval("float32")), {}, TypeError, "`which` must be boolean or integer type"),
    (logic.select_n_p, (aval("bool"), *[aval("float32")] * 3), {}, TypeError, "2 cases, got 3"),
    (
        logic.select_n_p,
        (aval("bool", 2), aval("float32", 3), aval("float32", 3)),
        {},
        TypeError,
        "one shape, or be scalar",
    ),
    (logic.select_n_p, (aval("bool"), aval("float32"), aval("int32")), {}, TypeError, "one dtype, got f32"),
    (
        logic.clamp_p,
        (aval("float32", 3), aval("float32"), aval("float32")),
        {},
        TypeError,
        "bounds must be scalars",
    ),
    (conversion.complex_p, (aval("float16"), aval("float16")), {}, TypeError, "float32 or float64.*f16"),
    (
        conversion.bitcast_convert_type_p,
        (aval("int8", 3),),
        {"new_dtype": np.dtype("int32")},
        ValueError,
        "joins 4 elements",
    ),
    (
        conversion.bitcast_convert_type_p,
        (aval("bool", 3),),
        {"new_dtype": np.dtype("int8")},
        TypeError,
        "cannot convert",
    ),
    (
        conversion.reduce_precision_p,
        (aval("float32"),),
        {"exponent_bits": 0, "mantissa_bits": 2},
        ValueError,
        "exponent_bits ≥ 1",
    ),
]


@pytest.mark.parametrize("primitive, avals, params, kind, message", ERRORS)
def test_errors_name_the_argument(primitive, avals, params, kind, message):
    with pytest.raises(kind, match=message):
        primitive.infer(*avals, **params)


def test_derivatives_that_do_not_exist_say_so():
    one = np.float32(1)
    with pytest.raises(MissingRuleError, match="first operand"):
        special.polygamma_p.jvp([one + one, one], [one, Zero.like(one)])


def test_results_of_weak_operands_are_weak():
    weak = ShapedArray((), np.dtype(np.float32), True)
    strong = ShapedArray((), np.dtype(np.float32))
    assert elementwise.add_p.infer(weak, weak).weak_type
    assert not elementwise.add_p.infer(weak, strong).weak_type
    assert not logic.lt_p.infer(weak, weak).weak_type
    assert logic.select_n_p.infer(ShapedArray((), np.dtype(np.bool_)), weak, weak).weak_type
    assert logic.clamp_p.infer(strong, weak, strong).weak_type


def test_integers_of_less_than_a_byte_run_as_programs():
    x = np.arange(-8, 8).astype(ml_dtypes.int4)
    np.testing.assert_array_equal(np.asarray(arithmetic.square(x)), np.asarray(lax.square(x)))
    np.testing.assert_array_equal(np.asarray(arithmetic.neg(x)), np.asarray(lax.neg(x)))


def test_results_are_no_views_of_operands():
    """The user may change a NumPy operand later; only primitives that say so (`host_is_cheap`) give views."""
    x = np.array([0.5, 0.25], np.float32)
    i = np.array([1, 2], np.int32)
    results = [
        conversion.convert_element_type_p.host(x, new_dtype=np.dtype(np.float32), weak_type=False),
        conversion.reduce_precision_p.host(x, exponent_bits=8, mantissa_bits=23),
        arithmetic.integer_pow_p.host(x, y=1),
        arithmetic.copy_p.host(x),
        arithmetic.max_p.host(x, x),
        logic.select_n_p.host(i, x),
        logic.clamp_p.host(x[0], x, x[1]),
        special.erf_p.host(x),
    ]
    for result in results:
        assert not np.shares_memory(result, x)
