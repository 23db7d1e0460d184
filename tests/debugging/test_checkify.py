"""`checkify`: the first error of a function as a value, in every form; the messages are jax's, with the user's line."""

from __future__ import annotations

import jax
import jax.experimental.checkify
import numpy as np
import pytest

import purax
import purax.numpy as jnp
from purax.experimental import checkify as ours

theirs = jax.experimental.checkify
CHECKIFY = {purax: ours, jax: theirs}


def positive(m, x):
    CHECKIFY[m].check(x > 0, "x must be positive: {x}", x=x)
    return m.numpy.log(x)


A = np.float32
ROW = np.arange(5, dtype=np.float32)

# A program (m, *args), its arguments; each is tried with every set of errors.
PROGRAMS = {
    "check that holds": (positive, (A(1),)),
    "check that fails": (positive, (A(-1),)),
    "two checks": (lambda m, x: positive(m, positive(m, x) - 1), (A(2),)),
    "log of a negative": (lambda m, x: m.numpy.log(x), (A(-1),)),
    "division": (lambda m, x, y: x / y, (A(1), A(0))),
    "integer division": (lambda m, x, y: x // y, (np.int32(1), np.int32(0))),
    "remainder": (lambda m, x, y: m.lax.rem(x, y), (np.int32(1), np.int32(2))),
    "index": (lambda m, x, i: x[i], (ROW, np.int32(7))),
    "index within": (lambda m, x, i: x[i], (ROW, np.int32(-5))),
    "indices": (lambda m, x, i: x[i], (ROW, np.array([1, 9], np.int32))),
    "two axes": (lambda m, x, i: x[i, 1], (np.ones((2, 3), np.float32), np.int32(2))),
    "update": (lambda m, x, i: x.at[i].set(1.0), (ROW, np.int32(5))),
    "addition": (lambda m, x, i: x.at[i].add(1.0), (ROW, np.array([0, 6], np.int32))),
    "vmap": (lambda m, x: m.vmap(lambda v: positive(m, v))(x), (np.array([1, -1, 2], np.float32),)),
    "jit": (lambda m, x: m.jit(lambda v: positive(m, v))(x), (A(-1),)),
    "scan": (
        lambda m, x: m.lax.scan(lambda c, v: (c + positive(m, v), v), A(0), x),
        (np.array([1, -1, -2], np.float32),),
    ),
    "cond": (lambda m, x: m.lax.cond(x > 0, lambda v: v, lambda v: positive(m, v), x), (A(-1),)),
    "cond not taken": (
        lambda m, x: m.lax.cond(x < 0, lambda v: v, lambda v: positive(m, v + 2), x),
        (A(-1),),
    ),
    "while": (
        lambda m, x: m.lax.while_loop(
            lambda c: c > -3, lambda c: (CHECKIFY[m].check(c > 0, "at {}", c), c - 1)[1], x
        ),
        (A(1),),
    ),
    "condition of while": (
        lambda m, x: m.lax.while_loop(
            lambda c: (CHECKIFY[m].check(c > 0, "at {}", c), c > -3)[1], lambda c: c - 1, x
        ),
        (A(1),),
    ),
    "grad": (lambda m, x: m.grad(lambda v: positive(m, v))(x), (A(-1),)),
    "grad of jit": (lambda m, x: m.grad(m.jit(lambda v: positive(m, v)))(x), (A(-1),)),
    "backward": (lambda m, x: m.grad(lambda v: m.numpy.sqrt(v) * 0)(x), (A(0),)),
    "custom rule": (lambda m, x: m.nn.softmax(x), (ROW,)),
    "nothing": (lambda m, x: m.numpy.sum(m.nn.relu(x) + 1), (ROW,)),
}
SETS = ("automatic_checks", "all_checks")
QUICKLY = {"xla_backend_optimization_level": 0}
# In these jax says something, and there is nothing to say.
DIFFERENT = {("grad", "automatic_checks"): "the logarithm itself is not needed, and not computed"}


def message(m, name, kind, compiled):
    program, args = PROGRAMS[name]
    f = CHECKIFY[m].checkify(lambda *xs: program(m, *xs), errors=getattr(CHECKIFY[m], kind))
    error, result = (m.jit(f, compiler_options=QUICKLY) if compiled else f)(*map(m.numpy.asarray, args))
    return error.get(), result


@pytest.mark.parametrize("name", PROGRAMS)
def test_errors_are_those_of_jax(name):
    for kind in SETS:
        theirs_text, expected = message(jax, name, kind, True)
        for compiled in (False, True) if kind == "all_checks" else (False,):
            text, result = message(purax, name, kind, compiled)
            if (name, kind) in DIFFERENT:
                assert theirs_text is not None and text is None
            elif theirs_text is None:
                assert text is None, (kind, text)
                jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), result, expected)
            else:
                first, at, place = (text or "").partition("\n  at ")
                assert first.rstrip(". ") == theirs_text.rstrip(". "), kind
                assert at and "test_checkify.py" in place


def test_errors_of_a_batch_are_listed():
    for form in (lambda f: f, purax.jit):
        error, _ = form(purax.vmap(ours.checkify(lambda x: positive(purax, x))))(jnp.array([1.0, -1.0, -2.0]))
        lines = error.get().splitlines()
        assert lines[0] == "at mapped index 1: x must be positive: -1.0 (`check` failed)"
        assert lines[2] == "at mapped index 2: x must be positive: -2.0 (`check` failed)"


def test_messages_show_arrays_and_keys_as_jax_does():
    def text(library, checkify, batch):
        def f(x, key):
            checkify.check(x > 0, "{x:.1f} {tree} {key!r}", x=x, tree={"x": x}, key=key)
            return x

        xs = library.numpy.float32([1.0, -1.0] if batch else -1.0)
        keys = library.random.split(library.random.key(0)) if batch else library.random.key(0)
        error, _ = checkify.checkify(library.vmap(f) if batch else f)(xs, keys)
        return error.get().split(" (`check`")[0]

    with purax.threefry_partitionable(True):
        for batch in (False, True):
            assert text(purax, ours, batch) == text(jax, jax.experimental.checkify, batch)
            assert "Array(-1., dtype=float32)" in text(purax, ours, batch)


def test_checks_in_branches_that_an_example_does_not_take():
    """jax reports them: it runs both branches for all examples."""
    f = purax.vmap(lambda x: purax.lax.cond(x > 0, lambda v: positive(purax, v), lambda v: v, x))
    assert ours.checkify(f)(jnp.array([1.0, -1.0]))[0].get() is None


def test_throw_and_exceptions():
    error, _ = ours.checkify(lambda x: positive(purax, x))(-1.0)
    with pytest.raises(ours.JaxRuntimeError, match="must be positive"):
        error.throw()
    assert isinstance(error.get_exception(), ours.FailedCheckError) and issubclass(
        ours.JaxRuntimeError, ValueError
    )
    fine, _ = ours.checkify(lambda x: positive(purax, x))(1.0)
    fine.throw()
    assert fine.get_exception() is None and ours.init_error().get() is None
    bad, _ = purax.jit(ours.checkify(lambda x, i: x[i], errors=ours.index_checks))(jnp.arange(3), 9)
    assert isinstance(bad.get_exception(), ours.OOBError)


def test_without_checkify():
    positive(purax, jnp.float32(1))
    with pytest.raises(ours.JaxRuntimeError, match="must be positive: -1.0"):
        positive(purax, jnp.float32(-1))
    with pytest.raises(ValueError, match="without checkify.*\n.*test_checkify.py"):
        purax.jit(lambda x: positive(purax, x))(1.0)

    def lenient(x):
        ours.debug_check(x > 0, "not positive: {}", x)
        return x

    assert float(purax.jit(lenient)(-1.0)) == -1 and float(lenient(jnp.float32(-1))) == -1
    assert "not positive" in ours.checkify(lenient)(-1.0)[0].get()


def test_errors_are_passed_on():
    def outer(x):
        error, y = ours.checkify(lambda v: positive(purax, v))(x)
        ours.check_error(error)
        return y

    for form in (lambda f: f, purax.jit):
        assert "must be positive: -2.0" in form(ours.checkify(outer))(-2.0)[0].get()
        assert form(ours.checkify(outer))(2.0)[0].get() is None
    with pytest.raises(ours.JaxRuntimeError):
        ours.check_error(ours.checkify(lambda v: positive(purax, v))(-1.0)[0])


def test_it_can_be_differentiated():
    f = ours.checkify(lambda x: positive(purax, x), errors=ours.all_checks)
    np.testing.assert_allclose(purax.grad(lambda x: f(x)[1])(2.0), 0.5)
    value, gradient = purax.jit(purax.value_and_grad(lambda x: f(x)[::-1], has_aux=True))(-2.0)
    assert "must be positive" in value[1].get() and float(gradient) == -0.5


MISTAKES = [
    (lambda: ours.check(jnp.ones(2) > 0, "x"), TypeError, "boolean scalar"),
    (lambda: ours.check(1.0, "x"), TypeError, "boolean scalar"),
    (lambda: ours.check(True, 3), TypeError, "needs a message"),
    (lambda: ours.check(True, "{}"), IndexError, "place for argument 0"),
    (lambda: ours.check(True, "x", 1), ValueError, "no place"),
    (lambda: ours.check(True, "{}", "text"), TypeError, "arrays and numbers"),
    (lambda: ours.checkify(3), TypeError, "needs a function"),
    (lambda: ours.checkify(jnp.sin, errors={"nan"}), TypeError, "a set such as"),
    (lambda: ours.check_error(3), TypeError, "an error of checkify"),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes_are_named(number):
    function, kind, words = MISTAKES[number]
    with pytest.raises(kind, match=words):
        function()


NAMES = """Error ErrorCategory JaxRuntimeError all_checks automatic_checks check check_error checkify debug_check
div_checks float_checks index_checks init_error nan_checks user_checks"""


def test_names():
    if jax.__version__ == "0.10.2":  # the names are this one's
        assert {name for name in vars(theirs) if not name.startswith("_")} == set(NAMES.split())
    assert [name for name in NAMES.split() if not hasattr(ours, name)] == []
