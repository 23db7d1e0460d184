"""NumPy's functions called with traced values give what ours give, under every transformation."""

from __future__ import annotations

import inspect
import random
import re

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from tests.transformed_programs import ALL, MATRIX, OWN, PLAIN, STAGED, VECTOR, outcome, program, same

pytestmark = pytest.mark.sampled(2)

ARGUMENTS = (
    *(
        "x",
        "X",
        "x, A",
        "A, x",
        "x, X",
        "X, x",
        "X, M",
        "[x, A]",
        "(A, x)",
        "x, 2",
        "X, 1",
        "x, axis=0",
        "X, axis=1",
    ),
    *("X, axis=0, keepdims=True", "x, A, A", "A, x, A", "A, A, x", "x, I", "x, I, s"),
    *(
        "x, (3, 1)",
        "X, (2, 0)",
        "A > 0.5, x, A",
        "A > 0.5, x",
        "A, where=x > 0.5",
        "x, [1.0, 2.0, 3.0]",
        "x, 1, 0",
    ),
    *("R, 0, X", "x, [A > 0.5], [A, 0.0]", "[A > 0.5], [x]", "I, [x, A]", "'i,i->', x, A"),
    *("'ij,j->i', X, A, optimize=True", "0.0, s, 5", "s, 3", "(2,), s", "3, s", "x, 1, 1", "x, 1, axis=-1"),
    *(
        "x, q=0.4",
        "x, 0.2, 0.6",
        "x, min=0.4",
        "x, a_min=0.4, a_max=0.6",
        "x, 2, (0.0, 1.0), None, A",
        "X[0]",
    ),
    *("x, bins=4", "x, 0, 1"),
)


def _functions():
    for module, path in ((np, ""), (np.linalg, "linalg."), (np.fft, "fft.")):
        own = {"": jnp, "linalg.": jnp.linalg, "fft.": jnp.fft}[path]
        for name in sorted(vars(module)):
            function = getattr(module, name)
            counterpart = getattr(own, name, None)
            if not callable(function) or isinstance(function, type) or counterpart in (None, function):
                continue
            if (
                name.startswith("_")
                or not isinstance(function, np.ufunc)
                and not hasattr(function, "_implementation")
            ):
                continue
            yield path + name, function, counterpart


def _calls(name, function, counterpart):
    """Texts of calls that purax's own function can do."""
    if "inplace" in inspect.signature(counterpart).parameters:
        return
    methods = (
        ("", ".reduce", ".accumulate", ".outer")
        if isinstance(function, np.ufunc) and function.nin == 2
        else ("",)
    )
    for method in methods:
        found = 0
        for arguments in ARGUMENTS:
            text = f"np.{name}{method}({arguments})"
            try:
                _text(_number_of(text, OWN))
            except Exception:
                continue
            yield text
            found += 1
            if found == 3:
                break


def _number_of(text, names):
    """The program as a function of a vector, with one number for all of its results."""
    run = eval(f"lambda x, s, X: {text}", names)

    def f(x):
        leaves = px.tree_util.tree_leaves(run(x, x[0], MATRIX * x + 0.1))
        return sum([jnp.sum(jnp.real(jnp.asarray(leaf)) * 1.5) for leaf in leaves], 0.0 * x[0])

    return f


def _text(f):
    return re.sub("0x[0-9a-f]+", "", str(px.make_jaxpr(f)(jnp.asarray(VECTOR))))


FUNCTIONS = list(_functions())
FEW = {
    "grad": lambda f, x: px.grad(f)(x),
    "jvp": lambda f, x: px.jvp(f, (x,), (x,)),
    "vmap": lambda f, x: px.vmap(f)(jnp.stack([x, x * x])),
}


@pytest.mark.parametrize("letter", sorted({name[0] for name, *_ in FUNCTIONS}))
def test_functions_of_numpy_are_done_by_ours(letter):
    wrong, refused, count = [], [], 0
    for name, function, counterpart in FUNCTIONS:
        for text in _calls(name, function, counterpart) if name[0] == letter else ():
            theirs, ours = _number_of(text, PLAIN), _number_of(text, OWN)
            count += 1
            try:
                if _text(theirs) != _text(ours):  # as where NumPy's constants are part of one program only
                    same(outcome(STAGED["jit"], theirs), outcome(STAGED["jit"], ours))
                for run in FEW.values():
                    try:
                        expected = outcome(run, ours)
                    except Exception:
                        continue
                    same(outcome(run, theirs), expected)
            except AssertionError as error:
                wrong.append(f"{text}: {str(error)[:300]}")
            except Exception as error:
                refused.append(f"{text}: {type(error).__name__} {str(error)[:300]}")
    assert not wrong, "\n".join(wrong)
    assert len(refused) <= 0.1 * count, f"{len(refused)} of {count}:\n" + "\n".join(refused)


# --- compositions


VECTORS = (  # vectors made of one or two vectors, of numbers that stay moderate
    *(
        "np.exp(-{a})",
        "np.sin({a})",
        "np.tanh({a}) + {b}",
        "np.maximum({a}, {b})",
        "np.where({a} > 0.5, {a}, {b})",
    ),
    *(
        "np.stack([{a}, {b}])[1]",
        "np.concatenate([{a}, {b}])[1:4]",
        "np.matmul(M, {a})",
        "M @ {a}",
        "A * {a}",
    ),
    *(
        "np.float32(0.5) * {a}",
        "np.cumsum({a}) / 3",
        "np.sort({a})",
        "np.add.accumulate({a})",
        "np.flip({a})",
    ),
    *(
        "np.linalg.solve(M, {a})",
        "np.outer({a}, {b})[0]",
        "np.einsum('ij,j->i', M, {a})",
        "np.clip({a}, -1, {b})",
    ),
    *("np.add.outer({a}, {b}).mean(0)", "np.fft.fft({a}).real", "np.interp({a}, A, 2 * A)"),
    *(
        "{a} - np.mean({b})",
        "{a} / (2 + np.linalg.norm({b}))",
        "np.array([1.0, 2.0, 3.0]) - {a}",
        "np.roll({a}, 1)",
    ),
    *("D - {a}", "np.hypot({a}, {b})", "np.prod({a}) * {b}", "np.percentile({a}, 30) + {b}"),
)


def composed(generator: random.Random, depth: int) -> str:
    if not depth:
        return generator.choice(("x", "x", "A"))
    below = [composed(generator, depth - 1 - generator.randrange(depth)) for _ in range(2)]
    return "(" + generator.choice(VECTORS).format(a=below[0], b=below[1]) + ")"


def _vector_of(text, names):
    run = program(text, names)
    return lambda x: jnp.asarray(run(x, x[0])) + 0 * x


@pytest.mark.parametrize("seed", range(12))
def test_compositions_of_functions_of_numpy(seed):
    generator = random.Random(seed)
    names = sorted(ALL)
    for _ in range(4):
        text = composed(generator, generator.randrange(2, 5))
        for name in generator.sample(names, 3):
            expected = outcome(ALL[name], _vector_of(text, OWN))
            try:
                same(outcome(ALL[name], _vector_of(text, PLAIN)), expected)
            except Exception as error:
                raise AssertionError(f"{text} under {name}: {error}") from error
