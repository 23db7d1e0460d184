"""The value of an array never leaves a transformed function without its derivative, its batch axis or its program.

The law, for every way out of an array and every transformation: the result is that of the program which is written with
purax's own functions, or a documented error is raised; never a third thing.
"""

from __future__ import annotations

import io
import math
import operator
import re
import struct
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import purax as px
import purax.numpy as jnp
from purax.core.trace import Tracer
from tests.transformed_programs import ALL, OWN, PLAIN, VECTOR, outcome, program, same

# --- the ways out: texts of programs of a vector `x` and a number `s` in which `np` is NumPy or purax.numpy


ESCAPES = {  # way out: the same by purax, or None if there is no such thing
    "float(s)": "s",
    "float(s) ** 2 + s": "s ** 2 + s",
    "int(s)": "np.trunc(s)",
    "complex(s).real": "s",
    "operator.index(s)": None,
    "[1.0, 2.0][s]": None,
    "range(s)": None,
    "list(range(3))[:s]": None,
    "hash(s)": None,
    "hash(x)": None,
    "{s: 1}": None,
    "format(s, '.3f')": None,
    "'%f' % s": None,
    "'{:.2e}'.format(s)": None,
    "math.sin(s)": "np.sin(s)",
    "math.exp(s) * s": "np.exp(s) * s",
    "math.floor(s)": "np.floor(s)",
    "math.ceil(s)": "np.ceil(s)",
    "math.trunc(s)": "np.trunc(s)",
    "math.fsum([s, s])": "s + s",
    "math.hypot(s, 1.0)": "np.hypot(s, 1.0)",
    "math.isnan(s)": "np.isnan(s)",
    "math.prod(x)": "np.prod(x)",
    "math.dist(x, x + 1)": None,
    "round(s)": "np.round(s)",
    "round(s, 1)": "np.round(s, 1)",
    "abs(s)": "np.abs(s)",
    "divmod(s, 0.4)[1]": "np.divmod(s, 0.4)[1]",
    "pow(s, 2)": "s ** 2",
    "s.item()": "s",
    "x.item(0)": "x[0]",
    "x.tolist()[0]": "x[0]",
    "x.tobytes()": None,
    "np.asarray(x)": "x",
    "np.array(x)": "x",
    "np.array(x, dtype=object)": None,
    "np.asanyarray(x)": "x",
    "np.ascontiguousarray(x)": "x",
    "np.array([s, s, s])": "np.array([s, s, s])",
    "np.array([x, x])[0]": "x",
    "np.float32(s)": "s",
    "np.float64(s)": "s",
    "np.int32(s)": "np.trunc(s)",
    "np.complex64(s).real": "s",
    "np.fromiter(x, float)": None,
    "np.full(3, s)": "np.full(3, s)",
    "np.arange(s)": None,
    "np.arange(0.0, s, 0.1)": None,
    "np.random.default_rng(0).normal(s)": None,
    "np.random.default_rng(0).normal(0.0, x)": None,
    "np.vectorize(math.sin)(x)": "np.sin(x)",
    "np.frompyfunc(math.sin, 1, 1)(x)": None,
    "np.nditer(x)": None,
    "np.ndenumerate(x)": None,
    "np.poly1d(x)(2.0)": "np.polyval(x, 2.0)",
    "np.array2string(x)": None,
    "np.savez(io.BytesIO(), x)": None,
    "np.save(io.BytesIO(), x)": None,
    "np.savetxt(io.StringIO(), x)": None,
    "np.testing.assert_allclose(x, x)": None,
    "np.ma.array(A) * x": None,
    "np.shares_memory(x, A)": None,
    "np.from_dlpack(x)": None,
    "np.frombuffer(x)": None,
    "np.copyto(np.zeros(3), x)": None,
    "np.putmask(np.zeros(3), A > 0, x)": None,
    "np.place(np.zeros(3), A > 0, x)": None,
    "np.put(np.zeros(3), [0], s)": None,
    "np.fill_diagonal(np.zeros((3, 3)), s)": None,
    "np.put_along_axis(np.zeros(3), np.array([0]), s, 0)": None,
    "np.add.at(np.zeros(3), [0], s)": None,
    "np.add(x, A, out=np.zeros(3))": None,
    "np.add(x, A, np.zeros(3))": None,
    "np.sum(x, out=np.zeros(()))": None,
    "np.dot(x, A, out=np.zeros(()))": None,
    "np.concatenate([x, A], out=np.zeros(6))": None,
    "np.clip(x, 0, 1, out=np.zeros(3))": None,
    "np.linalg.multi_dot([x, M, A], out=np.zeros(()))": None,
    "np.add.reduce(x, out=np.zeros(()))": None,
    "np.fft.fft(x, out=np.zeros(3, complex))": None,
    "np.exp(x, where=A > 0.5)": None,
    "np.exp(x, dtype=np.float64)": None,
    "operator.setitem(np.zeros(3), 0, s)": None,
    "operator.setitem(np.zeros(3), slice(None), x)": None,
    "operator.setitem(np.zeros((2, 3)), 0, x)": None,
    "operator.setitem(np.zeros(3), A > 0, s)": None,
    "operator.setitem(np.zeros(3).flat, 0, s)": None,
    "operator.setitem(array.array('d', [0.0]), 0, s)": None,
    "operator.setitem(memoryview(bytearray(8)).cast('d'), 0, s)": None,
    "np.zeros(3).fill(s)": None,
    "np.zeros(3).put([0], s)": None,
    "np.zeros(3).itemset": None,
    "operator.iadd(np.zeros(3), x)": None,
    "operator.imul(np.ones(3), s)": None,
    "operator.imatmul(np.eye(3), M * s)": None,
    "operator.iadd(1.0, s)": "1.0 + s",
    "operator.iadd(np.float32(1.0), s)": "1.0 + s",
    "operator.iadd(x, A)": "x + A",
    "np.ones(3).dot(x)": "np.sum(x)",
    "np.ones(3).clip(x, 2.0)": "np.clip(np.ones(3), x, 2.0)",
    "np.ones(3).searchsorted(s)": None,
    "np.ones(3).__array_wrap__(x)": None,
    "x.__array__()": "x",
    "x.__array_interface__": None,
    "x.__dlpack__()": None,
    "x.__dlpack_device__()": None,
    "memoryview(x)": None,
    "bytes(x)": None,
    "bytearray(x)": None,
    "array.array('d', [s])": None,
    "array.array('d', x)": None,
    "struct.pack('f', s)": None,
    "statistics.mean([s, s])": "s",
    "statistics.fmean([s, s])": "s",
    "statistics.median([s, s + 1, s + 2])": "s + 1",
    "fractions.Fraction(s)": None,
    "decimal.Decimal(s)": None,
    "json.dumps(s)": None,
    "pickle.dumps(x)": None,
    "pickle.loads(pickle.dumps({'x': x}))": None,
    "copy.copy(x)": "x",
    "copy.deepcopy({'x': x})['x']": "x",
    "list(x)[1]": "x[1]",
    "list(reversed(x))[0]": "x[2]",
    "struct.pack_into('f', bytearray(4), 0, s)": None,
    "struct.pack('3f', *x)": None,
    "statistics.NormalDist(s, 1.0).cdf(0.0)": None,
    "np.random.default_rng(0).permutation(x)": None,
    "np.random.default_rng(0).choice(x)": None,
    "np.lib.stride_tricks.as_strided(x)": None,
    "np.apply_along_axis(np.sum, 0, x)": "np.sum(x)",
    "np.linalg.eigvalsh(np.outer(x, x) + np.eye(3))": "np.linalg.eigvalsh(np.outer(x, x) + np.eye(3))",
    "np.fft.rfft(x)[0].real": "np.fft.rfft(x)[0].real",
    "scipy.optimize.brentq(lambda t: t - s, -2, 2)": None,
    "scipy.integrate.quad(lambda t: t * s, 0, 1)[0]": None,
    "sum(x)": "np.sum(x)",
    "next(iter(x)) * 2": "x[0] * 2",
    "[y * y for y in x][2]": "x[2] ** 2",
    "[*map(float, x)][0]": "x[0]",
    "max(0.1, s)": "np.maximum(0.1, s)",
    "sorted(x)[0]": "np.min(x)",
    "s if s > 0 else -s": "np.abs(s)",
    "s * (0.5 in x)": "s * 0",
    "s if s else -s": "np.abs(s)",
    "px.device_get(x) * 2": "x * 2",
    "px.device_get({'s': s})['s'] * 2": "s * 2",
    "px.block_until_ready(x) * 2": "x * 2",
    "scipy.special.expit(x)": "scipy.special.expit(x)",
    "scipy.special.gammaln(x)": "scipy.special.gammaln(x)",
    "scipy.special.xlogy(x, A)": "scipy.special.xlogy(x, A)",
    "scipy.special.logsumexp(x)": "scipy.special.logsumexp(x)",
    "scipy.special.jv(1, x)": None,
    "scipy.linalg.solve(M, x)": "scipy.linalg.solve(M, x)",
    "scipy.linalg.cholesky(M + M.T + np.diag(x))": "scipy.linalg.cholesky(M + M.T + np.diag(x))",
    "scipy.fft.dct(x)": "scipy.fft.dct(x)",
}


# What NumPy raises when an assignment to an element fails, whatever the reason; mostly ours is its cause. SciPy's
# search for a root, written in C, goes on with −1 where a conversion failed, and may then raise in place of our error.
LIBRARIES_SAY = (
    "setting an array element with a sequence.",
    "Error setting single item of array.",
    "f(a) and f(b) must have different signs",
)


def documented(error: BaseException) -> bool:
    """Whether an error is one that the user was promised: ours, or one that Python or NumPy raised because of ours."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, (px.errors.ConcretizationTypeError, px.errors.JAXTypeError)):
            return True
        seen = seen.__cause__ or seen.__context__
    # what Python itself says of an object that is no number, no buffer and has no such attribute
    return isinstance(error, (TypeError, AttributeError, struct.error, NotImplementedError)) or (
        isinstance(error, ValueError) and str(error) in LIBRARIES_SAY
    )


def checked(text: str, has_own: bool) -> Any:
    """The way out as a function of a vector, which may not go through where there is nothing to compare with."""
    way = program(text, PLAIN)

    def f(x):
        result = way(x, x[0])
        if isinstance(x, Tracer) and not has_own:
            raise AssertionError(f"{text} gave {result!r} for a traced value")
        return x + (jnp.asarray(result) if has_own else 0)

    return f


def compare(text: str, own_text: str | None, transformation: str) -> None:
    run = ALL[transformation]
    try:
        found = outcome(run, checked(text, own_text is not None))
    except AssertionError:
        raise
    except Exception as error:
        assert documented(error), f"{type(error).__name__}: {error}"
        return
    if own_text is not None:
        own = program(own_text, OWN)
        same(found, outcome(run, lambda x: x + own(x, x[0])))


@pytest.mark.parametrize("transformation", ALL)
def test_a_value_leaves_with_all_that_belongs_to_it_or_not_at_all(transformation):
    wrong = []
    for text, own in ESCAPES.items():
        if transformation != "call":
            try:
                compare(text, own, transformation)
            except Exception as error:
                wrong.append(f"{text}: {error}")
    assert not wrong, "\n".join(wrong)


def test_concrete_arrays_are_read_as_ever():
    x = jnp.asarray(VECTOR)
    assert type(np.exp(x)) is np.ndarray and type(np.linalg.norm(x)) is np.float32
    assert type(np.stack([x, x])) is np.ndarray and float(x[0]) == x[0].item() == np.asarray(x)[0]
    assert math.sin(x[0]) == math.sin(VECTOR[0]) and f"{x[0]:.1f}" == "0.3"


# --- what is not lost may leave


def test_values_without_a_derivative_may_leave():
    def f(x, i):
        assert int(i) == operator.index(i) == i.item() == 2 and np.asarray(i) == 2 and f"{i:03d}" == "002"
        constant = px.lax.stop_gradient(x)
        scale = float(constant[0]) + math.floor(constant[1]) + np.asarray(constant).sum()
        return (x * scale)[int(np.argmax(x))] * [1.0, 2.0, 3.0][i]

    scale = VECTOR[0] + VECTOR.sum()
    found = px.grad(f)(jnp.asarray(VECTOR), jnp.int32(2))
    same(found, np.array([0.0, 0.0, 3.0 * scale], np.float32))
    same(
        px.jvp(lambda x: f(x, jnp.int32(2)), (jnp.asarray(VECTOR),), (jnp.ones(3),))[1],
        np.float32(3.0 * scale),
    )


def test_decisions_on_a_perturbed_value_stay():
    def f(x):
        y = x if x > 1 and not x == 3 else -x
        while y < 10:
            y = y * 2
        return y if bool(y) and y in [y] else max(y, 0.0)

    assert float(px.grad(f)(2.0)) == 8.0 and float(px.jvp(f, (2.0,), (1.0,))[1]) == 8.0


# --- what the errors say


NAMED = {
    "math.sin(s)": (px.errors.ConcretizationTypeError, "purax.numpy.sin"),
    "math.erf(s)": (px.errors.ConcretizationTypeError, "purax.scipy.special.erf"),
    "np.asarray(x)": (px.errors.TracerArrayConversionError, "purax.numpy.asarray"),
    "scipy.linalg.solve(M, x)": (px.errors.TracerArrayConversionError, "purax.scipy.linalg.solve"),
    "scipy.special.jv(1, x)": (px.errors.TracerArrayConversionError, "purax.numpy"),
    "float(s)": (px.errors.ConcretizationTypeError, "astype"),
    "'%f' % s": (px.errors.ConcretizationTypeError, "astype"),
    "f'{s:.2f}'": (px.errors.ConcretizationTypeError, "debug.print"),
    "s.item()": (px.errors.ConcretizationTypeError, "item"),
    "[1, 2][s.astype(int) + (s > 9)]": (px.errors.TracerIntegerConversionError, "jnp.asarray"),
    "operator.iadd(np.zeros(3), x)": (px.errors.TracerArrayConversionError, "a = a [+] x"),
    "np.add.at(np.zeros(3), [0], s)": (px.errors.TracerArrayConversionError, "inplace=False"),
    "np.put(np.zeros(3), [0], s)": (px.errors.TracerArrayConversionError, "inplace=False"),
    "np.exp(x, dtype=float)": (px.errors.TracerArrayConversionError, "without `dtype=`"),
    "pickle.dumps(x)": (px.errors.ConcretizationTypeError, "pickle the result"),
}


@pytest.mark.parametrize("transformation", ["grad", "jvp", "vmap", "jit"])
@pytest.mark.parametrize("text", NAMED)
def test_errors_name_the_line_and_the_way_out(text, transformation, tmp_path):
    kind, way_out = NAMED[text]
    file = tmp_path / "program.py"
    file.write_text(f"def f(x):\n    s = x[0]\n    return {text}\n")
    names = dict(PLAIN)
    exec(compile(file.read_text(), str(file), "exec"), names)
    if transformation in ("grad", "jvp") and "astype(int)" in text:
        assert outcome(lambda f, x: px.jvp(f, (x,), (x,))[0], names["f"]) == 1
        return
    with px.config.override(python_control_flow=False), pytest.raises(kind, match=way_out) as caught:
        ALL[transformation](names["f"], jnp.asarray(VECTOR))
    assert f"at {file}:3 (f)" in str(caught.value)
    if transformation in ("grad", "jvp") and "traced value into" not in str(caught.value):
        assert "derivative" in str(caught.value) or "traced" in str(caught.value)


# Python of the standard library and of SciPy, which decides by what it is given.
BEHIND_LIBRARIES = (
    "colorsys.rgb_to_hsv(*x)[1]",
    "scipy.optimize.brentq(lambda t: t - s, -2, 2)",
    "collections.Counter([s])",
)


@pytest.mark.parametrize("text", BEHIND_LIBRARIES)
def test_errors_behind_a_library_name_the_users_line_first(text, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(
        f"import collections, colorsys, scipy.optimize\ndef f(x):\n    s = x[0]\n    return {text}\n"
    )
    names = dict(PLAIN)
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.raises(px.errors.ConcretizationTypeError) as caught:
        px.jit(names["f"])(jnp.asarray(VECTOR))
    lines = str(caught.value).splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("  at "))
    assert lines[place].startswith(f"  at {file}:4 (f)") and lines[place + 1].startswith("  in ")


@pytest.mark.parametrize("transformation", ALL)
def test_an_element_of_a_numpy_array_is_set_to_a_traced_value_or_raises(transformation):
    def f(x):
        buffer = np.zeros(3, np.float32)
        buffer[0] = x[0]
        return buffer * 2 + x

    try:
        found = outcome(ALL[transformation], f)
    except ValueError as error:
        assert isinstance(error.__cause__, px.errors.ConcretizationTypeError)
        assert "a.at[i].set(x)" in str(error.__cause__)
    else:
        same(found, outcome(ALL[transformation], lambda x: jnp.zeros(3).at[0].set(x[0]) * 2 + x))


def test_the_purity_report_has_nothing_to_say(recwarn):
    with px.purity("strict"):
        assert px.grad(lambda w: np.exp(w).sum() * np.linalg.norm(w))(jnp.ones(2)).shape == (2,)
        assert px.jit(px.grad(lambda w: np.sum(np.sin(w) * np.dot(A_CONSTANT, w))))(jnp.ones(3)).shape == (3,)
    assert not recwarn.list


A_CONSTANT = tuple(VECTOR.tolist())


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda x: np.save(io.BytesIO(), x), "`numpy.save()`.*`purax.numpy.save`"),
        (lambda x: np.array2string(x), "`numpy.array2string()`"),
        (lambda x: scipy.linalg.schur(x), "`scipy.linalg.schur()`.*`purax.scipy.linalg.schur`"),
        (lambda x: scipy.linalg.solve(x, x), "`scipy.linalg.solve()`.*`purax.scipy.linalg.solve`"),
    ],
)
def test_errors_name_what_the_user_called(function, name):
    pattern = name.replace("(", r"\(").replace(")", r"\)")
    for transformed in (px.jit(function), px.vmap(function), px.jacfwd(function)):
        with pytest.raises(px.errors.ConcretizationTypeError, match=re.compile(pattern, re.DOTALL)):
            transformed(jnp.ones((2, 2, 2)))
