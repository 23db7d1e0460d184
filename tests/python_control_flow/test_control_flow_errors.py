"""What goes wrong in Python control flow on traced values is said in the user's terms, with the user's line."""

from __future__ import annotations

import linecache
import re

import numpy as np
import pytest

import purax as px
import purax.numpy as jnp
from purax import errors
from purax.core import rewriting_hook

HERE = "test_control_flow_errors.py"


def line_of(text: str) -> int:
    """The number of the first line of this file that holds a comment."""
    return next(n for n, line in enumerate(linecache.getlines(__file__), 1) if f"# {text}" in line)


def defined_in_one_branch(x):
    if x.sum() > 0:  # one branch
        y = x
    return y


def unlike_shapes(x):
    if x.sum() > 0:  # unlike shapes
        y = x
    else:
        y = x.sum()
    return y + 1


def unlike_results(x):
    if x.sum() > 0:  # unlike results
        return x


def unlike_structures(x):
    y = (x, x) if x.sum() > 0 else [x]
    return y


def grows_in_a_loop(x):
    while x.sum() < 100:  # grows
        x = jnp.concatenate([x, x])
    return x


def list_grows_in_a_branch(x):
    values = []
    if x.sum() > 0:
        values.append(x)
    return values


def used_in_its_first_step(x):
    while x.sum() < 100:
        x = x + step  # noqa: F821
        step = x  # noqa: F841
    return x


def condition_of_a_comprehension(x):
    return [v for v in (1, 2, 3) if x.sum() > v]


def list_of_a_range(x):
    return list(range(x.sum().astype(int)))


def list_that_grows(x):
    found = []
    while len(found) < x.sum():
        found.append(1.0)  # longer
    return found


def list_that_grows_under_a_condition(x):
    found = []
    for v in (1.0, 2.0):
        if x.sum() > v:
            found.append(v)  # may grow
    return found


def many_elements(x):
    if x > 0:
        return x
    return -x


def recursion(x):
    return x if x.sum() > 100 else recursion(x * 2)


MISTAKES = {
    defined_in_one_branch: (
        UnboundLocalError,
        rf"`y` is float32\[3\] if the condition at {HERE}:LINE holds and undefined otherwise",
        "one branch",
    ),
    unlike_shapes: (
        UnboundLocalError,
        rf"`y` is float32\[3\] if the condition at {HERE}:LINE holds and float32\[\] otherwise",
        "unlike shapes",
    ),
    unlike_results: (
        UnboundLocalError,
        rf"the result of the function is float32\[3\] if the condition at {HERE}:LINE holds and None otherwise",
        "unlike results",
    ),
    unlike_structures: (
        UnboundLocalError,
        r"is \(float32\[3\], float32\[3\]\) if its condition holds and \[float32",
        "",
    ),
    grows_in_a_loop: (
        UnboundLocalError,
        rf"`x` is float32\[3\] before the loop at {HERE}:LINE and float32\[6\] after a step",
        "grows",
    ),
    list_grows_in_a_branch: (UnboundLocalError, r"`values` is \[float32\[3\]\] if .* and \[\] otherwise", ""),
    used_in_its_first_step: (UnboundLocalError, "`step` is read before it is assigned", ""),
    condition_of_a_comprehension: (
        errors.TracerBoolConversionError,
        r"the length of what this makes would depend(.|\n)*`x if condition else 0`",
        "",
    ),
    list_of_a_range: (errors.TracerIntegerConversionError, "here a sequence is made of it", ""),
    list_that_grows: (UnboundLocalError, rf"`out = out.at\[i\].set\(value\)`(.|\n)*{HERE}:LINE", "longer"),
    list_that_grows_under_a_condition: (
        UnboundLocalError,
        rf"`found` is \[1.0\] if(.|\n)*`out = jnp.zeros\(n\)`(.|\n)*{HERE}:LINE",
        "may grow",
    ),
    many_elements: (ValueError, r"shape \(3,\)\) is ambiguous", ""),
    recursion: (errors.CheckFailedError, "how often a function calls itself", ""),
}


@pytest.mark.parametrize("function", MISTAKES, ids=lambda function: function.__name__)
def test_mistakes_are_told_in_the_users_terms(function):
    kind, pattern, comment = MISTAKES[function]
    with pytest.raises(kind) as caught:
        px.jit(function)(jnp.ones(3) if function is not recursion else jnp.zeros(3))
    message = str(caught.value)
    assert re.search(pattern.replace("LINE", str(line_of(comment)) if comment else ""), message), message
    assert re.search(
        rf"at {re.escape(__file__)}:\d+ \(({function.__name__}|<lambda>|<listcomp>|numbers)\)", message
    ), message


def test_generators_say_so():
    def numbers(x):
        if x > 0:
            yield 1

    with pytest.raises(errors.TracerBoolConversionError, match="`numbers` is a generator"):
        px.jit(lambda x: list(numbers(x)))(1.0)


def test_the_setting_turns_it_off():
    with px.config.override(python_control_flow=False), pytest.raises(errors.TracerBoolConversionError):
        px.jit(lambda x: 1 if x > 0 else 3)(1.0)


CHECKS = {
    "assert": (
        lambda x: check_assert(x),
        r"AssertionError: `assert x > 0` does not hold: x must be positive",
    ),
    "assert in a branch": (lambda x: check_in_branch(x), "AssertionError: `assert x < -5`"),
    "raise": (lambda x: check_raise(x), "ValueError: negative"),
    "loop variable": (lambda x: check_loop(x), "`y` is read, but the loop at .* did no step"),
}


def check_assert(x):
    assert x > 0, "x must be positive"
    return x


def check_in_branch(x):
    if x < 0:
        assert x < -5
        x = -x
    return x


def check_raise(x):
    if x < 0:
        raise ValueError("negative")
    return x


def check_loop(x):
    while x > 1:
        y = x / 2
        x = y
    return y


@pytest.mark.parametrize("name", CHECKS)
def test_checks_fail_when_the_program_runs(name):
    function, pattern = CHECKS[name]
    compiled = px.jit(function)
    assert np.isfinite(compiled(3.0))
    with pytest.raises(errors.CheckFailedError, match=pattern) as caught:
        compiled(-1.0).block_until_ready()
        px.effects_barrier()
    assert __file__ in str(caught.value)


def test_code_that_can_be_traced_is_not_rewritten(monkeypatch):
    monkeypatch.setattr(rewriting_hook.installed.rewriter, "retrace", None)

    def f(x, flag=True):
        total = 0.0
        for i in range(3):
            if flag and i != 1:
                total = total + x * i
        return total

    assert float(px.jit(f)(2.0)) == 4.0


def test_errors_of_the_rewritten_function_point_at_its_lines():
    def f(x):
        if x.sum() > 0:
            x = x @ jnp.ones(7)  # a wrong shape
        return x

    with pytest.raises(TypeError, match=rf"test_control_flow_errors.py:{line_of('a wrong shape')} \(f\)"):
        px.jit(f)(jnp.ones(3))


def read_mask(prices, limit):
    return prices[prices > limit]


def read_part(prices, first, last):
    return prices[first:last]


def read_start(prices, last):
    return prices.at[:last].set(0)


def test_index_errors_use_the_users_names():
    x = jnp.arange(5.0)
    with pytest.raises(
        errors.NonConcreteBooleanIndexError, match=r"jnp\.where\(prices > limit, prices, other\)"
    ):
        px.jit(read_mask)(x, 2.0)
    with pytest.raises(
        IndexError, match=r"prices\[first:first \+ length\].*jnp\.arange\(prices\.shape\[0\]\) < last"
    ):
        px.jit(read_part)(x, 1, 3)
    with pytest.raises(
        IndexError, match=r"jnp\.where\(jnp\.arange\(prices\.shape\[0\]\) < last, prices, 0\)"
    ):
        px.jit(read_start)(x, 3)
