"""How side effects are told: warnings once per place, errors that leave nothing half done, reports, a pytest option."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax.errors import ImpureFunctionError, ImpureFunctionWarning
from purax.purity import findings

log: list = []
counts: dict = {}
total = 0
array = np.zeros(3)


@pytest.fixture(autouse=True)
def forgotten():
    global total
    findings.forget()
    log.clear()
    counts.clear()
    array[:] = 0
    total = 0


def impure(x):
    log.append(1)
    return x


def test_a_place_is_told_once():
    with pytest.warns(ImpureFunctionWarning, match="list `log` of module") as told:
        px.jit(impure)(1.0)
        px.jit(impure)(jnp.ones(3))
        px.jit(lambda x: impure(x))(1)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert told[0].lineno == impure.__code__.co_firstlineno + 1
    text = str(told[0].message)
    assert "log.append(1)" in text and "Instead:" in text and "(impure)" in text


def everything(x):
    global total
    counts["a"] = 1
    array[0] = 5
    total = total + 1
    log.append(x)
    return x


def test_strict_raises_and_leaves_nothing_half_done():
    compiled = px.jit(everything)
    with px.purity("strict"), pytest.raises(ImpureFunctionError, match="counts"):
        compiled(1.0)
    assert (log, counts, total, array.sum()) == ([], {}, 0, 0)
    assert compiled._cache_size() == 0


def test_strict_holds_when_the_function_catches_the_error():
    def f(x):
        try:
            log.append(1)
        except Exception:
            pass
        return x

    with px.purity("strict"), pytest.raises(ImpureFunctionError):
        px.jit(f)(1.0)
    assert log == []


def test_a_cache_that_keeps_a_tracer_is_no_cache():
    def f(x):
        if "x" not in counts:
            counts["x"] = x * 2
        return counts["x"]

    with (
        px.purity("strict"),
        pytest.raises(ImpureFunctionError, match="traced value is kept in the dict `counts`"),
    ):
        px.jit(f)(1.0)
    assert counts == {}


def test_modes_by_option_and_off():
    with pytest.raises(ImpureFunctionError):
        px.jit(impure, purity="strict")(1.0)
    px.jit(impure, purity="off")(1.0)
    with px.purity("off"):
        px.jit(impure)(2.0)
    assert log == [1, 1]
    with pytest.raises(ValueError, match="purity"):
        px.jit(impure, purity="sometimes")


def test_what_a_function_assigns_itself_is_no_guard_where_nothing_is_told():
    """Programs for several types stay in use, though tracing each of them changed what the others had seen."""
    traces, seen, rate = 0, {"last": None}, 2.0

    def f(x):
        nonlocal traces
        traces += 1
        seen["last"] = x.shape
        counts["traces"] = counts.get("traces", 0) + 1
        return x * rate

    with px.purity("off"):
        g = px.jit(f)
        for _ in range(4):
            np.testing.assert_array_equal(g(jnp.ones(2)), [2.0, 2.0])
            np.testing.assert_array_equal(g(jnp.ones(3)), [2.0, 2.0, 2.0])
        assert (traces, counts["traces"], seen["last"]) == (2, 2, (3,))
        rate = 3.0  # assigned by somebody else: a guard as ever
        np.testing.assert_array_equal(g(jnp.ones(2)), [3.0, 3.0])
        assert traces == 3


def test_what_a_function_might_have_assigned_stays_a_guard():
    mode, factor = "keep", 2.0

    def f(x):
        nonlocal factor
        if mode == "change":
            factor = 5.0
        return x * factor

    with px.purity("off"):
        g = px.jit(f)
        assert g(1.0) == 2.0
        factor = 3.0
        assert g(1.0) == 3.0


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: lambda x: px.vmap(f)(jnp.ones(2)),
        lambda f: lambda x: px.lax.scan(lambda c, _: (f(c), None), x, None, length=2),
        lambda f: lambda x: px.lax.cond(True, f, f, x),
        lambda f: lambda x: px.lax.while_loop(lambda y: y < 0, f, x),
        lambda f: lambda x: px.checkpoint(f)(x),
    ],
)
def test_effects_are_found_without_jit(transform):
    with pytest.warns(ImpureFunctionWarning, match="`log`"):
        transform(lambda x: (log.append(1), x)[1])(1.0)
    findings.forget()
    with px.purity("strict"), pytest.raises(ImpureFunctionError):
        transform(lambda x: (log.append(1), x)[1])(1.0)


def test_reports():
    report = px.check_pure(everything)(1.0)
    assert not report.is_pure
    assert [(found.kind, found.name) for found in report.findings] == [
        ("mutation", "counts"),
        ("mutation", "array"),
        ("global", "total"),
        ("leak", "log"),
    ]
    assert (log, counts, total, array.sum()) == ([], {}, 0, 0)
    text = str(report)
    assert text.startswith("`everything` has 4 side effects:") and "test_modes.py" in text
    assert all(found.advice and found.place.startswith(__file__) for found in report.findings)
    clean = px.check_pure(lambda x: x + 1)(1.0)
    assert clean.is_pure and clean.findings == [] and "is pure" in str(clean)
    assert px.check_pure(px.jit(impure))(1.0).findings[0].name == "log"
    px.assert_pure(jnp.sin, 1.0)
    with pytest.raises(ImpureFunctionError, match="1 side effect"):
        px.assert_pure(impure, 1.0)


def test_a_leak_names_its_holder():
    class Holder:
        pass

    holder = Holder()

    def f(x):
        holder.kept = x
        return x

    with pytest.warns(ImpureFunctionWarning, match="traced value is kept in the Holder object `holder`"):
        px.jit(f)(1.0)


def test_other_trace_functions_go_on():
    lines = []

    def logging(x):
        log.append(1)
        return x

    def tracer(frame, event, argument):
        if frame.f_code is logging.__code__:
            lines.append(event)
            return tracer
        return None

    previous = sys.gettrace()
    sys.settrace(tracer)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            px.jit(logging)(1.0)
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(previous)
    assert {"call", "line", "return"} <= set(lines)


def test_pytest_option(tmp_path):
    file = tmp_path / "test_it.py"
    file.write_text(
        "import purax as px\nlog = []\ndef test_it():\n    px.jit(lambda x: (log.append(1), x)[1])(1.0)\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "purax.testing.pytest_plugin",
        "-p",
        "no:cacheprovider",
        str(file),
    ]
    strict = subprocess.run([*command, "--purax-strict"], capture_output=True, text=True, cwd=tmp_path)
    assert strict.returncode == 1 and "ImpureFunctionError" in strict.stdout, strict.stdout + strict.stderr
    plain = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert plain.returncode == 0, plain.stdout + plain.stderr


def test_guards_hold_where_purax_stands_in_for_jax():
    program = (
        "import purax.compat.jax, warnings, jax\n"
        "rate, log = 2.0, []\n"
        "@jax.jit\n"
        "def f(x):\n"
        "    log.append(1)\n"
        "    return x * rate\n"
        "with warnings.catch_warnings():\n"
        "    warnings.simplefilter('error')\n"
        "    first = float(f(1.0))\n"
        "    rate = 3.0\n"
        "    print(first, float(f(1.0)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == ["2.0", "3.0"], done.stderr
    environment = dict(os.environ, PURAX_PURITY="warn")
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment,
    )
    assert "ImpureFunctionWarning" in done.stderr
