"""Minimum cuts of random programs, against trying every choice."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from purax.core.avals import ShapedArray
from purax.core.jaxpr import JaxprEqn, Var
from purax.interpreters.minimum_cut import minimum_cut
from purax.primitives.stop_gradient import stop_gradient_p


def random_program(choose: random.Random):
    """Values, the equations that make some of them, costs, and what is wanted."""
    aval = ShapedArray((), "float32")
    values = [Var(aval) for _ in range(choose.randint(1, 3))]
    defined: dict[Var, JaxprEqn] = {}
    for _ in range(choose.randint(1, 7)):
        made = [Var(aval) for _ in range(choose.randint(1, 2))]
        operands = [choose.choice(values) for _ in range(choose.randint(0, 2))]
        defined.update(dict.fromkeys(made, JaxprEqn(operands, made, stop_gradient_p, {})))
        values += made
    store = {v: choose.choice([0, 1, 2, 5, 9]) for v in values}
    repeat = {id(eqn): choose.choice([0, 0, 1, 3, math.inf]) for eqn in defined.values()}
    return defined, store, repeat, choose.sample(values, choose.randint(1, min(3, len(values))))


def least_cost(defined, store, repeat, wanted) -> float:
    eqns = list({id(eqn): eqn for eqn in defined.values()}.values())
    best = math.inf
    for choice in itertools.product([False, True], repeat=len(eqns)):
        again = [eqn for eqn, is_done in zip(eqns, choice, strict=True) if is_done]
        needed = {*wanted, *(v for eqn in again for v in eqn.invars)}
        made = {v for eqn in again for v in eqn.outvars}
        cost = sum(repeat[id(eqn)] for eqn in again) + sum(store[v] for v in needed - made)
        best = min(best, cost)
    return best


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_no_choice_costs_less(first):
    for seed in range(first, first + 50):
        defined, store, repeat, wanted = random_program(random.Random(seed))
        stored, again = minimum_cut(wanted, defined, store.__getitem__, lambda eqn, r=repeat: r[id(eqn)])
        eqns = {id(defined[v]): defined[v] for v in again}
        had = {*stored, *(v for eqn in eqns.values() for v in eqn.outvars)}
        assert had.issuperset(wanted), seed
        assert all(had.issuperset(eqn.invars) for eqn in eqns.values()), seed
        cost = sum(store[v] for v in stored) + sum(repeat[number] for number in eqns)
        assert cost == least_cost(defined, store, repeat, wanted), seed


def test_of_equal_choices_the_one_that_computes_less():
    aval = ShapedArray((), "float32")
    x, y = Var(aval), Var(aval)
    eqn = JaxprEqn([x], [y], stop_gradient_p, {})
    assert minimum_cut([y], {y: eqn}, lambda v: 1, lambda eqn: 0) == ([y], set())
