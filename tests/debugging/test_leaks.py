"""`check_tracer_leaks` finds tracers that were stored, says who holds them, and finds nothing in honest functions."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import purax
import purax.numpy as jnp

HOLDERS = {
    "list": ("element 0 of a list", "global variable stored of the module"),
    "global": ("global variable last of the module",),
    "attribute": ("entry 'w' of a dict", "attribute state of a", "Model"),
    "closure": ("closure variable kept of make.<locals>.in_closure",),
}
FORMS = {
    "jit": lambda f: purax.jit(f)(1.0),
    "grad": lambda f: purax.grad(f)(1.0),
    "vmap": lambda f: purax.vmap(f)(jnp.ones(2)),
    "jvp": lambda f: purax.jvp(f, (1.0,), (1.0,)),
    "jit of grad": lambda f: purax.jit(purax.grad(f))(1.0),
    "scan": lambda f: purax.lax.scan(lambda c, _: (f(c), None), 1.0, None, 2),
}


@pytest.fixture(scope="module")
def made():
    """The module of the functions, made late: what was there before, the garbage collector passes over."""
    path = Path(__file__).parent / "holders_of_tracers.py"
    spec = importlib.util.spec_from_file_location("holders_of_tracers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def holders(made):
    yield made
    made.forget()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("holder", HOLDERS)
def test_says_who_holds_a_tracer(holder, form, holders):
    with purax.checking_leaks(), pytest.raises(purax.errors.LeakError) as info:
        FORMS[form](getattr(holders, f"in_{holder}"))
    for word in HOLDERS[holder]:
        assert word in str(info.value), str(info.value)


def test_honest_functions_pass():
    def honest(x):
        parts = [x, x * 2]
        table = {"a": parts, "f": lambda: parts[0]}
        return sum(table["a"]) + table["f"]()

    def loop(x):
        return purax.lax.scan(lambda c, v: (c * v, c), x, jnp.arange(3.0))[0]

    with purax.check_tracer_leaks(True):
        for run in FORMS.values():
            run(honest)
        purax.jit(purax.vmap(purax.grad(loop)))(jnp.arange(2.0))
        purax.hessian(lambda x: purax.nn.softmax(x).sum())(jnp.ones(2))
        purax.jit(purax.checkpoint(honest))(1.0)


def test_off_by_default(holders):
    purax.jit(holders.in_list)(1.0)
    with pytest.raises(purax.errors.UnexpectedTracerError):
        holders.stored[0] + 1


def test_functions_with_rules_of_their_own_leak_nothing():
    """What a backward rule is checked by holds no traced value longer than the transformation lasts."""

    @purax.custom_vjp
    def f(x):
        return jnp.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * jnp.cos(x),))
    x = jnp.ones(2)
    total = lambda x: f(x).sum()  # noqa: E731
    with purax.checking_leaks():
        purax.jit(purax.grad(total))(x)
        purax.vmap(purax.grad(f))(x)
        purax.grad(lambda x: purax.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0].sum())(x)
        purax.grad(purax.checkpoint(total))(x)
        purax.jit(lambda x: purax.lax.cond(x[0] > 0, f, jnp.cos, x))(x)
        purax.vjp(f, x)[1](x)
        purax.make_jaxpr(purax.grad(total))(x)
