"""`debug_nans` and `debug_infs` name the operation that made a bad value, and the user's line, in every form."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax.core.trace import current
from purax.execution.eager import eager
from purax.experimental import io_callback


def logarithm(x):
    y = x - 1
    return jnp.log(y).sum()  # the line: log


def product(x):
    root = jnp.sqrt(x)  # the line: sqrt
    return (root * 0.0).sum()


def loop(x):
    return purax.lax.scan(lambda c, v: (c + jnp.log(v - 1), c), 0.0, x)[0]  # the line: loop


def unbounded(x):
    return purax.lax.while_loop(  # the line: while
        lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.log(c[1] - 1)), (0, x[0])
    )[1]


def branch(x):
    return purax.lax.cond(x[0] > 5, lambda v: v[0], lambda v: jnp.log(v[0] - 1), x)  # the line: cond


def called(x):
    return purax.jit(purax.jit(logarithm))(x)


BAD = np.array([0.0, 2.0], np.float32)
FORWARD = {
    "eager": (logarithm, "log"),
    "jit": (purax.jit(logarithm), "log"),
    "jit of jit": (called, "log"),
    "vmap": (lambda x: purax.vmap(logarithm)(x[None]), "log"),
    "jit of vmap": (lambda x: purax.jit(purax.vmap(logarithm))(x[None]), "log"),
    "value of grad": (purax.value_and_grad(logarithm), "log"),
    "jit of value and grad": (purax.jit(purax.value_and_grad(logarithm)), "log"),
    "scan": (loop, "loop"),
    "jit of scan": (purax.jit(loop), "loop"),
    "jit of while": (purax.jit(unbounded), "while"),
    "jit of cond": (purax.jit(branch), "cond"),
    "checkpoint": (purax.jit(purax.checkpoint(logarithm)), "log"),
}
BACKWARD = {
    "grad": purax.grad(product),
    "jit of grad": purax.jit(purax.grad(product)),
    "grad of jit": purax.grad(purax.jit(product)),
    "vmap of grad": lambda x: purax.vmap(purax.grad(product))(x[None]),
}


def line_of(mark):
    with open(__file__) as file:
        return next(i for i, text in enumerate(file, 1) if text.rstrip().endswith(f"# the line: {mark}"))


@pytest.mark.parametrize("name", FORWARD)
def test_names_the_operation_and_the_line(name):
    function, mark = FORWARD[name]
    with purax.debug_nans(), pytest.raises(FloatingPointError) as info:
        function(jnp.asarray(BAD))
    text = str(info.value)
    assert "invalid value (nan) encountered in log" in text
    assert "log(-1.0) = nan" in text
    lines = (line_of(mark), line_of(mark) + 1)  # the operation may stand on the second line of the expression
    assert any(f"test_bad_values.py:{line} " in text for line in lines), text
    assert "backward" not in text


@pytest.mark.parametrize("name", BACKWARD)
def test_names_the_forward_line_of_an_operation_of_the_backward_pass(name):
    with purax.debug_nans(), pytest.raises(FloatingPointError) as info:
        BACKWARD[name](jnp.asarray(BAD))
    text = str(info.value)
    assert "encountered in mul" in text and "backward pass" in text
    assert f"test_bad_values.py:{line_of('sqrt')} (product)" in text


def test_infinities():
    with purax.debug_infs():
        for form in (lambda f: f, purax.jit):
            with pytest.raises(
                FloatingPointError, match=r"\(inf\) encountered in div.*\n.*div\(1.0, 0.0\) = inf"
            ):
                form(lambda x: 1 / x)(jnp.zeros(2))
            assert np.isinf(form(lambda x: jnp.where(x > 0, x, -jnp.inf) + 1)(jnp.zeros(2))).all()
        np.testing.assert_allclose(purax.nn.softmax(jnp.ones(2), where=jnp.array([True, False])), [1, 0])
        assert np.isnan(jnp.log(-jnp.ones(2))).all()


def test_values_that_are_written_so_are_not_blamed():
    data = np.array([1.0, np.nan], np.float32)
    with purax.debug_nans():
        for form in (lambda f: f, purax.jit):
            assert np.isnan(form(lambda: jnp.full(2, jnp.nan))()).all()
            assert float(form(jnp.nanmean)(jnp.asarray(data))) == 1
            assert float(form(lambda x: jnp.where(jnp.isnan(x), 0, x).sum())(jnp.asarray(data))) == 1
        with pytest.raises(FloatingPointError, match="was NaN already"):
            jnp.asarray(data) * 2


def test_effects_are_not_repeated():
    seen = []

    def f(x):
        purax.debug.callback(lambda v: seen.append("debug"), x)
        return jnp.log(x)

    def g(x):
        io_callback(lambda v: seen.append("io"), None, x)
        return jnp.log(x)

    with purax.debug_nans():
        for function in (f, g):
            with pytest.raises(FloatingPointError):
                purax.jit(function)(-1.0)
    purax.effects_barrier()
    assert seen == ["debug", "io"]


def test_donated_arguments_can_be_computed_again():
    with purax.debug_nans(), pytest.raises(FloatingPointError, match="log"):
        purax.jit(lambda x: jnp.log(x), donate_argnums=0)(-jnp.ones(3))


def test_off_again_and_other_threads():
    results = []
    with purax.debug_nans():
        thread = threading.Thread(target=lambda: results.append(jnp.log(-jnp.ones(1))))
        thread.start()
        thread.join()
    assert np.isnan(results[0]).all()
    assert current.trace is eager
    assert np.isnan(purax.jit(logarithm)(jnp.asarray(BAD)))
    purax.config.update("debug_nans", True)
    try:
        with pytest.raises(FloatingPointError):
            jnp.log(-1.0)
        errors = []

        def run():
            try:
                jnp.log(-1.0)
            except FloatingPointError as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert len(errors) == 1
    finally:
        purax.config.update("debug_nans", False)
    assert current.trace is eager


def over_parts(f):
    mesh = purax.make_mesh((2,), ("i",))
    return purax.shard_map(f, mesh=mesh, in_specs=purax.P("i"), out_specs=purax.P("i"))


def log_of(x):
    return jnp.log(x)  # the line: log of parts


ON_DEVICES = {
    "pmap": lambda: purax.pmap(log_of),
    "pmap with a sum": lambda: purax.pmap(lambda x: purax.lax.psum(log_of(x), "i"), axis_name="i"),
    "pmap that donates": lambda: purax.pmap(log_of, donate_argnums=0),
    "shard_map": lambda: over_parts(log_of),
    "shard_map with a sum": lambda: over_parts(lambda x: x + purax.lax.psum(log_of(x), "i")),
    "shard_map in jit": lambda: purax.jit(over_parts(log_of)),
    "jit that donates": lambda: purax.jit(log_of, donate_argnums=0),
    "vmap of shard_map": lambda: lambda x: purax.vmap(over_parts(log_of))(jnp.stack([x, x])),
    "grad of shard_map": lambda: purax.grad(lambda x: over_parts(log_of)(x).sum()),
}


@pytest.mark.parametrize("name", ON_DEVICES)
def test_programs_on_several_devices_are_looked_into(name):
    with purax.debug_nans(True):
        good = ON_DEVICES[name]()(jnp.full((2, 3), 2.0))
        assert not np.isnan(good).any()
        with pytest.raises(
            FloatingPointError, match=r"(?s)in log.*log\(-1\.0\) = nan.*the line: log of parts"
        ):
            ON_DEVICES[name]()(jnp.full((2, 3), 2.0).at[1, 1].set(-1.0))


@pytest.mark.parametrize("wrap", [lambda f: f, purax.jit, purax.vmap, lambda f: purax.jit(purax.vmap(f))])
def test_what_python_functions_return_is_looked_at(wrap):
    def f(x):
        return purax.pure_callback(np.log, x, x, vmap_method="sequential") * 2  # the line: of a callback

    with purax.debug_nans(True), np.errstate(all="ignore"):
        assert np.isfinite(wrap(f)(jnp.ones(2))).all()
        with pytest.raises(FloatingPointError, match=r"(?s)in pure_callback.*the line: of a callback"):
            wrap(f)(-jnp.ones(2))


def test_programs_compiled_ahead_of_time_are_looked_at():
    x = jnp.ones(2)
    compiled = purax.jit(log_of).lower(x).compile()
    giving = purax.jit(log_of, donate_argnums=0).lower(x).compile()
    assert np.isnan(compiled(-x)).all()
    with purax.debug_nans(True):
        assert not np.isnan(compiled(x)).any()
        with pytest.raises(FloatingPointError, match=r"(?s)in log.*the line: log of parts"):
            compiled(-x)
        with pytest.raises(FloatingPointError, match="in (log|the compiled `log_of`)"):
            giving(-x)
    with purax.debug_infs(True), pytest.raises(FloatingPointError, match=r"\(inf\) encountered in log"):
        compiled(jnp.zeros(2))
