"""Special functions against SciPy, computed in double precision from the same numbers; types against jax's."""

from __future__ import annotations

import warnings

import jax
import numpy as np
import pytest
import scipy.special
from jax.scipy import special as jax_special

import purax as px
import purax.numpy as jnp
from purax.scipy import special
from purax.scipy.special import legendre
from purax.testing.check_grads import check_grads
from tests.scipy.scipy_names import SPECIAL

pytestmark = pytest.mark.sampled(2)

NAN, INF = np.nan, np.inf
REAL = np.array(
    [-30.0, -7.3, -2.5, -1.0, -0.6, -1e-3, 0.0, 1e-6, 0.3, 0.5, 1.0, 1.7, 2.0, 4.5, 9.0, 25.0, 80.0]
)
POSITIVE = np.array([1e-6, 0.01, 0.3, 0.5, 0.99, 1.0, 1.7, 2.0, 5.5, 12.0, 30.0])
UNIT = np.array([0.0, 1e-7, 0.02, 0.3, 0.49999, 0.5, 0.7, 0.999, 1.0])
EDGES = np.array([INF, -INF, NAN, 0.0, -0.0])


def grid(*rows) -> list[np.ndarray]:
    return [np.ravel(x) for x in np.meshgrid(*rows, indexing="ij")]


PAIRS = grid(np.array([0.0, 0.3, 1.0, 2.5, 9.0]), np.array([0.0, 0.2, 0.9, 4.0, 30.0]))
ARGUMENTS: dict[str, list[np.ndarray]] = {
    "beta": grid(np.array([-1.5, 0.3, 2.0, 40.0]), np.array([0.2, 3.5, 30.0])),
    "betainc": grid(np.array([0.3, 2.0, 40.0]), np.array([0.2, 3.5]), UNIT),
    "betaln": grid(np.array([-1.5, 0.3, 2.0, 40.0]), np.array([0.2, 3.5, 30.0])),
    "boxcox": grid(
        np.array([0.0, 1e-4, 0.5, 1.0, 3.0, 50.0, -1.0]), np.array([-2.0, -1e-6, 0.0, 1e-5, 0.5, 3.0])
    ),
    "boxcox1p": grid(np.array([-1.0, -0.5, 1e-6, 1.0, 50.0]), np.array([-2.0, -1e-6, 0.0, 1e-5, 0.5, 3.0])),
    "comb": grid(np.array([0.0, 3, 10, 52, 5.5]), np.array([0.0, 1, 3, 5, 11, -1])),
    "dawsn": [np.append(REAL, EDGES)],
    "digamma": [np.append(POSITIVE, [-0.5, -3.7, INF, NAN])],
    "entr": [np.append(UNIT, [-1.0, 3.0, NAN])],
    "erf": [np.append(REAL, EDGES)],
    "erfc": [np.append(REAL, EDGES)],
    "erfcx": [np.append(REAL[3:], EDGES[:3])],
    "erfinv": [np.append(UNIT, -UNIT)],
    "exp1": [np.append(POSITIVE, [0.0, -1.0, INF, NAN])],
    "expi": [np.append(REAL, EDGES)],
    "expit": [np.append(REAL, EDGES)],
    "expn": grid(np.array([0.0, 1, 2, 7, 20]), np.append(POSITIVE, [0.0, INF])),
    "factorial": [np.append(np.arange(20.0), [-1.0, 0.5, NAN])],
    "gamma": [np.append(REAL, EDGES)],
    "gammainc": grid(POSITIVE, np.append(POSITIVE, 0.0)),
    "gammaincc": grid(POSITIVE, np.append(POSITIVE, 0.0)),
    "gammaln": [np.append(REAL, [INF, NAN])],  # at −∞ it is ∞ in C and in jax, −∞ in SciPy
    "gammasgn": [np.append(REAL, EDGES)],
    "hyp1f1": grid(
        np.array([0.3, 1.0, 4.0]), np.array([0.5, 2.0]), np.array([-20.0, -1.0, 0.0, 0.3, 8.0, 60.0])
    ),
    "hyp2f1": grid(
        np.array([0.3, 2.0]), np.array([0.5, 1.0]), np.array([0.7, 4.0]), np.array([-9, -0.5, 0.3, 0.9])
    ),
    "i0": [np.append(REAL, EDGES[2:])],
    "i0e": [np.append(REAL, EDGES)],
    "i1": [np.append(REAL, EDGES[2:])],
    "i1e": [np.append(REAL, EDGES)],
    "kl_div": PAIRS,
    "log_ndtr": [np.append(REAL, EDGES)],
    "loggamma": [np.append(REAL, EDGES[:3])],
    "logit": [np.append(UNIT, [-0.1, 1.1, NAN])],
    "ndtr": [np.append(REAL, EDGES)],
    "ndtri": [np.append(UNIT, [-0.1, 1.1, NAN])],
    "owens_t": grid(REAL[2:13], REAL[2:13]),
    "poch": grid(np.array([-2.5, 0.3, 2.0, 40.0]), np.array([-1.2, 0.0, 2.0, 5.5])),
    "polygamma": grid(np.array([0.0, 1, 2, 5]), POSITIVE[1:]),
    "rel_entr": PAIRS,
    "spence": [np.append(POSITIVE, [0.0, -1.0, NAN])],
    "xlog1py": grid(np.array([0.0, 1e-3, 2.0, -1.0]), np.array([-1.0, -0.5, 1e-7, 4.0])),
    "xlogy": grid(np.array([0.0, 1e-3, 2.0, -1.0]), np.array([0.0, 0.5, 1.0, 4.0])),
    "zeta": grid(np.array([1.1, 2.0, 6.0, 1.0, 0.5]), np.array([0.3, 1.0, 7.0])),
}
TWO_RESULTS = {"fresnel": [np.append(REAL, EDGES)], "sici": [np.append(REAL, [INF, NAN])]}
OTHERS = {  # tested by themselves below
    *("bernoulli", "bessel_jn", "log_softmax", "logsumexp", "multigammaln", "softmax", "sph_harm_y", "wofz"),
}
# SciPy's loss of digits, in units of the tolerance: the sum of large numbers that cancel, or an inexact constant.
SCIPY_ERRORS = {"owens_t": 10}


def reference(name: str, arguments):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "gamma":
            return np.vectorize(lambda x: scipy.special.gamma(x), otypes=[float])(*arguments)
        return getattr(scipy.special, name)(*arguments)


def error(name: str, got, wanted, tolerance: float) -> str | None:
    """What is wrong with a result, if it deviates from SciPy's by more than the tolerance."""
    got, wanted = np.asarray(got).astype(np.float64), np.asarray(wanted)
    with np.errstate(all="ignore"):
        limit = float(np.finfo(np.float32).max) if tolerance > 1e-10 else INF
        wanted = np.where(np.abs(wanted) > limit, np.copysign(INF, wanted), wanted)
        tiny = 1e-37 if tolerance > 1e-10 else 1e-300
        allowed = tolerance * SCIPY_ERRORS.get(name, 1) * np.abs(wanted) + tiny
        is_close = np.isfinite(wanted) & (np.abs(got - wanted) <= allowed)
        bad = ~(is_close | (got == wanted) | (np.isnan(got) & np.isnan(wanted)))
    if not bad.any():
        return None
    place = np.flatnonzero(bad)[:3]
    return f"{name} at {place}: {got[place]}, SciPy has {wanted[place]}"


def deviations(dtype: str, tolerance: float, call) -> list[str]:
    found = []
    for name, arguments in {**ARGUMENTS, **TWO_RESULTS}.items():
        given = [x.astype(dtype) for x in arguments]
        wanted = reference(name, [x.astype(np.float64) for x in given])
        got = call(getattr(special, name), [jnp.asarray(x, dtype=dtype) for x in given])
        pairs = [(got, wanted)] if name in ARGUMENTS else zip(got, wanted, strict=True)
        for one, other in pairs:
            assert one.dtype == dtype, f"{name} gives {one.dtype} for {dtype}"
            found.append((error(name, one, other, tolerance), name, given))
    return [f"{message}; arguments {given}" for message, name, given in found if message]


def test_every_function_is_tried():
    assert set(SPECIAL) == {*ARGUMENTS, *TWO_RESULTS, *OTHERS}


def test_names():
    assert [name for name in SPECIAL if not hasattr(special, name)] == []


def test_values_in_single_precision_are_those_of_scipy():
    assert deviations("float32", 6e-7, lambda function, given: function(*given)) == []


def test_values_in_double_precision_are_those_of_scipy():
    assert deviations("float64", 4e-13, lambda function, given: function(*given)) == []


COMPILED_ERRORS = {"loggamma": 1e-6}  # XLA computes log Γ of float32 in float32, for jax too
COMPOSED = (
    "boxcox boxcox1p entr factorial gammasgn i0 i1 kl_div loggamma logit rel_entr xlog1py xlogy".split()
)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("float64", 4e-13)])
def test_compiled_programs_agree(dtype, tolerance):
    """Of functions made of several operations; single operations are compiled by the laws."""
    given = {name: [jnp.asarray(x, dtype=dtype) for x in ARGUMENTS[name]] for name in COMPOSED}
    program = px.jit(lambda given: {name: getattr(special, name)(*x) for name, x in given.items()})
    found = []
    for name, got in program(given).items():
        wide = [np.asarray(x).astype(np.float64) for x in given[name]]
        wanted = reference(name, wide)
        if dtype == "float32" and name in COMPILED_ERRORS:
            got = np.where(np.abs(got - wanted) <= COMPILED_ERRORS[name], wanted, np.asarray(got))
        found.append(error(name, got, wanted, tolerance))
    assert [message for message in found if message] == []


def test_half_precision_is_rounded_once():
    for name, arguments in ARGUMENTS.items():
        given = [x.astype(np.float16) for x in arguments]
        got = getattr(special, name)(*(jnp.asarray(x) for x in given))
        with np.errstate(all="ignore"):
            wanted = np.asarray(reference(name, [x.astype(np.float64) for x in given])).astype(np.float16)
            far = ~(np.isclose(np.asarray(got), wanted, rtol=3e-3, atol=1e-6, equal_nan=True))
        assert got.dtype == np.float16, name
        assert not far.any(), f"{name}: {np.asarray(got)[far]} and not {wanted[far]}"


def test_types_are_those_of_jax():
    floats = np.ones(3, np.float32)
    for name, arguments in {**ARGUMENTS, **TWO_RESULTS}.items():
        given = [floats] * len(arguments)
        if name == "polygamma":
            given[0] = np.ones(3, np.int32)
        theirs = jax.eval_shape(getattr(jax_special, name), *given)
        ours = getattr(special, name)(*map(jnp.asarray, given))
        for one, other in zip(jax.tree.leaves([theirs]), px.tree.leaves([ours]), strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype), name
    integers = jnp.array([1, 2])
    for name in set(ARGUMENTS) - {"erfinv", "ndtri", "logit"}:
        got = getattr(special, name)(*[integers] * len(ARGUMENTS[name]))
        assert got.dtype == np.float32, name


# --- functions that are tested by themselves


def test_complex_arguments():
    z = np.array([0.3 + 1j, -2.5 + 0.1j, 4 - 3j, -0.5 - 2j, 30 + 5j], np.complex128)
    for name in ("gamma", "loggamma", "wofz", "erfcx"):
        wanted = getattr(scipy.special, name)(z)
        function = getattr(special, name)
        for got in (
            function(jnp.asarray(z, dtype="complex128")),
            px.jit(function)(jnp.asarray(z, dtype="complex128")),
        ):
            np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-12)
        got = function(jnp.asarray(z, dtype="complex64"))
        assert got.dtype == np.complex64
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=3e-5)
    assert special.wofz(jnp.array([1.0])).dtype == np.complex64
    for name in ("gamma", "wofz"):
        check_grads(getattr(special, name), (jnp.asarray(z[:3], dtype="complex128"),), 2)


@pytest.mark.parametrize("order", [0, 1, 7, 45])
def test_bessel_functions_of_all_orders(order):
    z = np.concatenate([np.linspace(-9, 9, 7), np.logspace(-2, 3.5, 40)])
    wanted = scipy.special.jv(np.arange(order + 1.0)[:, None], z)
    for function in (special.bessel_jn, px.jit(special.bessel_jn, static_argnames="v")):
        got = function(jnp.asarray(z, dtype="float64"), v=order)
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=0, atol=2e-14)
    single = np.asarray(special.bessel_jn(jnp.asarray(z, dtype="float32"), v=order))
    wanted = scipy.special.jv(np.arange(order + 1.0)[:, None], z.astype(np.float32).astype(float))
    np.testing.assert_allclose(single, wanted, rtol=1e-6, atol=1e-7)


def test_bessel_functions_have_derivatives_and_batches():
    z = jnp.asarray([-3.2, 0.0, 0.7, 11.0, 47.0], dtype="float64")
    check_grads(lambda z: special.bessel_jn(z, v=3), (z,), 2)
    rows = px.vmap(lambda z: special.bessel_jn(z, v=2))(z)
    np.testing.assert_allclose(np.asarray(rows).T, np.asarray(special.bessel_jn(z, v=2)), rtol=1e-13)


def test_spherical_harmonics():
    n, m = np.array([0, 1, 1, 2, 5, 30, 80]), np.array([0, 1, -1, -2, 3, -30, 50])
    theta, phi = np.linspace(0.01, 3, 7), np.linspace(0, 6, 7)
    wanted = scipy.special.sph_harm_y(n, m, theta, phi)
    arguments = [jnp.asarray(x, dtype="float64") for x in (theta, phi)]
    np.testing.assert_allclose(
        np.asarray(special.sph_harm_y(n, m, *arguments)), wanted, rtol=1e-11, atol=1e-13
    )
    compiled = px.jit(lambda *args: special.sph_harm_y(*args, n_max=80))(n, m, *arguments)
    np.testing.assert_allclose(np.asarray(compiled), wanted, rtol=1e-11, atol=1e-13)
    single = special.sph_harm_y(n, m, jnp.asarray(theta), jnp.asarray(phi))
    theirs = jax.eval_shape(lambda *args: jax_special.sph_harm_y(*args, n_max=80), n, m, theta, phi)
    assert (single.dtype, single.shape) == (theirs.dtype, theirs.shape)
    check_grads(lambda t, p: special.sph_harm_y(n[:5], m[:5], t, p), [x[:5] for x in arguments], 1)
    with pytest.raises(TypeError, match="n_max"):
        px.jit(special.sph_harm_y)(n, m, theta, phi)
    with pytest.raises(TypeError, match="n must be integers"):
        special.sph_harm_y(1.5, 0, 0.1, 0.2)


def test_sums_of_exponentials():
    x = np.random.default_rng(0).normal(size=(3, 4)) * 20
    for dtype, tolerance in (("float32", 2e-6), ("float64", 1e-13)):
        y = jnp.asarray(x, dtype=dtype)
        wide = np.asarray(y).astype(np.float64)
        for name in ("softmax", "log_softmax", "logsumexp"):
            for axis in (None, 0, (0, 1)):
                wanted = getattr(scipy.special, name)(wide, axis=axis)
                got = getattr(special, name)(y, axis=axis)
                np.testing.assert_allclose(np.asarray(got), wanted, rtol=tolerance, atol=tolerance)
    signs = np.array([1.0, -1, 2, -3])
    wanted = scipy.special.logsumexp(x, axis=1, b=signs, return_sign=True)
    got = special.logsumexp(jnp.asarray(x, dtype="float64"), axis=1, b=signs, return_sign=True)
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-12)


def test_functions_of_integers():
    np.testing.assert_allclose(np.asarray(special.bernoulli(20)), scipy.special.bernoulli(20), rtol=1e-6)
    assert special.bernoulli(0).shape == (1,)
    a = np.array([2.5, 7.0, 30.0])
    for d in (1, 2, 4):
        wanted = scipy.special.multigammaln(a, d)
        np.testing.assert_allclose(np.asarray(special.multigammaln(jnp.asarray(a), d)), wanted, rtol=1e-6)
    assert [float(x) for x in special.comb(jnp.array([5, 30]), 2, repetition=True)] == [15.0, 465.0]
    s = np.array([-7.0, -2.0, -1.5, 0.0, 0.3, 0.9, 1.0, 2.0, 20.0])
    for function in (special.zeta, px.jit(special.zeta)):
        np.testing.assert_allclose(
            np.asarray(function(jnp.asarray(s))), scipy.special.zeta(s), rtol=3e-6, atol=1e-7
        )


# --- where SciPy or jax loses digits

MORE_DIGITS = [  # a call, the number that it is to give (computed with 40 digits)
    ("betaln(0.15171761574120557, 133568.11383190422)", 0.02519497913841654),
    ("betaln(1e12, 2.0)", -55.26204223185809),
    ("poch(9066.163407220136, 6.374444701571205)", 1.687321763056415e25),
    ("gammaincc(1e-8, 1.0)", 2.1938393664027067e-09),
    ("kl_div(1.0, 1.0 + 2.0**-30)", 4.336808680318478e-19),
    ("boxcox(3.0, 1e-12)", 1.098612288668713),
    ("log_ndtr(-1e4)", -50000010.12927892),
    ("fresnel(940.2517429670132)[0]", 0.50017239898499),
]


@pytest.mark.parametrize(("expression", "wanted"), MORE_DIGITS)
def test_digits_that_others_lose(expression, wanted):
    names = {name: getattr(special, name) for name in SPECIAL}
    with px.enable_x64(True):
        got = float(eval(expression, names))
        compiled = float(px.jit(lambda: eval(expression, names))())
    assert got == pytest.approx(wanted, rel=1e-12)
    assert compiled == pytest.approx(wanted, rel=1e-12)


def test_single_precision_is_at_least_as_good_as_that_of_jax():
    names = "betaln comb dawsn digamma erfcx expi exp1 gamma log_ndtr ndtr poch i1 owens_t spence".split()
    given = {name: [x.astype(np.float32) for x in ARGUMENTS[name]] for name in names}
    theirs = jax.jit(lambda given: {name: getattr(jax_special, name)(*x) for name, x in given.items()})(given)
    for name, arguments in given.items():
        wanted = reference(name, [x.astype(np.float64) for x in arguments])
        got = np.asarray(getattr(special, name)(*map(jnp.asarray, arguments)))
        with np.errstate(all="ignore"):
            size = np.where(np.isfinite(wanted) & (wanted != 0), np.abs(wanted), np.nan)
            ours, other = (
                np.nanmax(np.abs(x.astype(float) - wanted) / size) for x in (got, np.asarray(theirs[name]))
            )
        assert ours <= max(other, 6e-7), name


# --- derivatives and batches

SMOOTH = {
    "xlogy": (np.array([0.5, 2.0]), np.array([0.3, 4.0])),
    "xlog1py": (np.array([0.5, 2.0]), np.array([0.3, 4.0])),
    "entr": (np.array([0.2, 3.0]),),
    "rel_entr": (np.array([0.2, 3.0]), np.array([0.3, 4.0])),
    "kl_div": (np.array([0.2, 3.0]), np.array([0.3, 4.0])),
    "logit": (np.array([0.1, 0.5, 0.93]),),
    "expit": (np.array([-3.0, 0.2]),),
    "boxcox": (np.array([0.2, 3.0, 1.0]), np.array([0.0, 0.5, -2.0])),
    "boxcox1p": (np.array([0.2, 3.0, 0.0]), np.array([0.0, 0.5, -2.0])),
    "i0": (np.array([0.2, 3.0, 0.0]),),
    "i1": (np.array([0.2, 3.0, 0.0]),),
    "factorial": (np.array([0.2, 3.0]),),
    "comb": (np.array([5.5, 8.0]), np.array([2.0, 3.3])),
    "ndtri": (np.array([0.2, 0.5]),),
    "logsumexp": (np.array([0.2, 3.0, -1.0]),),
}


@pytest.mark.parametrize("name", list(SMOOTH))
def test_derivatives(name):
    check_grads(getattr(special, name), [jnp.asarray(x, dtype="float64") for x in SMOOTH[name]], 2)


def test_derivatives_at_the_edge():
    gradient = px.grad(special.xlogy, (0, 1))(0.0, 2.0)
    np.testing.assert_allclose([float(x) for x in gradient], [np.log(2), 0], rtol=1e-6)
    assert float(px.grad(special.xlogy)(0.0, 0.0)) == -INF
    assert float(px.grad(special.entr)(0.0)) == INF
    assert float(px.grad(lambda x: special.logsumexp(jnp.array([-INF, 0.0]) * 1 + x))(0.0)) == 1.0
    # φ/Φ in the far tail, where the two factors underflow
    assert float(px.grad(special.log_ndtr)(-1e3)) == pytest.approx(1000.000999998, rel=1e-6)
    # d/dx erfcx(x) = 2x erfcx(x) − 2/√π, whose terms cancel
    assert float(px.grad(special.erfcx)(1e3)) == pytest.approx(-5.641887371e-07, rel=1e-6)
    assert float(px.grad(special.i0)(1e-8)) == pytest.approx(5e-9, rel=1e-6)
    assert float(px.grad(px.grad(special.spence))(1.0)) == pytest.approx(0.5, rel=1e-6)
    for name, position in (("polygamma", 0), ("expn", 0)):
        with pytest.raises(Exception, match="hold it constant"):
            px.grad(getattr(special, name), position)(1.0, 2.0)


def test_batches():
    for name, arguments in {**ARGUMENTS, **TWO_RESULTS}.items():
        rows = [jnp.asarray(x[:4].astype(np.float32)) for x in arguments]
        got = px.vmap(getattr(special, name))(*rows)
        wanted = getattr(special, name)(*rows)
        for one, other in zip(px.tree.leaves(got), px.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-6, err_msg=name)


def test_bad_arguments():
    for name in ("gammaln", "erf", "ndtr", "digamma", "i0e"):
        with pytest.raises(TypeError, match="takes float"):
            getattr(special, name)(1j)
    with pytest.raises(NotImplementedError, match="exact"):
        special.factorial(3, exact=True)
    with pytest.raises(TypeError, match="concrete integer"):
        px.jit(special.multigammaln)(2.0, 2)
    with pytest.raises(ValueError, match="series_order"):
        special.log_ndtr(1.0, series_order=40)
    with pytest.raises(TypeError, match="order v"):
        special.bessel_jn(1.0, v=1.5)


def test_the_zeta_function_has_a_derivative_with_respect_to_its_exponent():
    exponents, starts = (
        np.array([1.5, 2.0, 3.5, 10.0], np.float32),
        np.array([0.4, 1.0, 2.7, 0.9], np.float32),
    )
    wide = exponents.astype(np.float64)
    step = 1e-5
    wanted = (scipy.special.zeta(wide + step, starts) - scipy.special.zeta(wide - step, starts)) / (2 * step)
    slope = px.vmap(px.grad(special.zeta))
    np.testing.assert_allclose(slope(exponents, starts), wanted, rtol=2e-5)
    np.testing.assert_allclose(px.jit(slope)(exponents, starts), wanted, rtol=2e-5)
    assert np.isnan(px.grad(special.zeta)(2.0, -0.5))  # it has no meaning between whole exponents


def test_i0_is_smooth_at_zero():
    for i0 in (special.i0, jnp.i0):
        assert px.grad(i0)(0.0) == 0 and px.grad(px.grad(i0))(0.0) == 0.5
        np.testing.assert_allclose(px.jit(px.grad(i0))(1.5), scipy.special.i1(1.5), rtol=1e-6)


def test_tables_of_legendre_functions():
    """Against SciPy's, which has no table of JAX's form any more; both versions up to a degree that would overflow."""
    z = np.array([0.0, 0.3, -0.9, 0.999])
    highest = 12
    with px.enable_x64(True):
        values, slopes = (np.asarray(x) for x in legendre.lpmn(highest, highest, jnp.asarray(z)))
        plain = np.asarray(legendre.lpmn_values(highest, highest, jnp.asarray(z), False))
    wanted = np.moveaxis(np.asarray(scipy.special.assoc_legendre_p_all(highest, highest, z, diff_n=1)), 1, 2)
    wanted = wanted[:, : highest + 1]
    np.testing.assert_allclose(values, wanted[0], rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(slopes, wanted[1], rtol=1e-10, atol=1e-10 * np.abs(wanted[1]).max())
    np.testing.assert_allclose(plain, values, rtol=1e-12)
    high = np.asarray(legendre.lpmn_values(60, 60, jnp.asarray(z, np.float32), True))
    m, n = np.triu_indices(61)
    harmonics = scipy.special.sph_harm_y(n, m, np.arccos(z)[:, None], 0.0).real
    np.testing.assert_allclose(high[m, n].T, harmonics, atol=2e-4)
    with pytest.raises(NotImplementedError, match="must be equal"):
        legendre.lpmn(2, 3, jnp.asarray(z))
