"""Functions that call themselves, once or several times, until a traced value or one that a branch chose ends it."""

from __future__ import annotations

import pytest

import purax as px
import purax.numpy as jnp


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def split(x):
    return x if x < 1 else split(x / 2) + split(x / 3)


def moves(x):
    made = []

    def move(n, source, target, other):
        if n == 0:
            return
        move(n - 1, source, other, target)
        made.append((source, target))
        move(n - 1, other, target, source)

    move(3 if x > 1 else 2, "a", "b", "c")
    return len(made) * x


def power_of_tree(x):
    def tree(depth):
        return 1.0 if depth == 0 else tree(depth - 1) + tree(depth - 1) * x

    return tree(2 if x > 0 else 3)


def choose(n, k):
    return 1 if k == 0 or k == n else choose(n - 1, k - 1) + choose(n - 1, k)


def test_a_function_that_calls_itself_twice():
    compiled = px.jit(fibonacci)
    assert [int(compiled(n)) for n in (0, 1, 5, 8)] == [0, 1, 5, 21]
    with pytest.raises(px.errors.CheckFailedError, match="more than 8 times") as told:
        compiled(12).block_until_ready()
    assert "test_recursion.py" in str(told.value)


def test_its_derivative():
    assert px.grad(split)(5.0) == pytest.approx(0.6527777)


def test_under_vmap():
    assert px.vmap(fibonacci)(jnp.arange(5)).tolist() == [0, 1, 1, 2, 3]


@pytest.mark.parametrize("function", [moves, power_of_tree])
def test_a_branch_chooses_how_deep(function):
    compiled = px.jit(function)
    for x in (0.5, 2.0, -1.0):
        assert float(compiled(x)) == function(x)


@pytest.mark.parametrize("transform", [px.jit, lambda f: lambda *args: px.vmap(f)(*map(jnp.atleast_1d, args))])
def test_what_goes_too_many_ways_names_the_line(transform):
    with pytest.raises((RecursionError, px.errors.TracerBoolConversionError)) as told:
        transform(choose)(4, 2)
    assert "the function calls itself" in str(told.value)
    assert "test_recursion.py" in str(told.value) and "choose" in str(told.value)
