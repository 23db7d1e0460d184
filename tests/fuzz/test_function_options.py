"""A short run of the generator of calls, and laws about its tables."""

from __future__ import annotations

import itertools

import pytest

from tests.fuzz import function_options
from tests.fuzz.function_arguments_table import NOT_DRAWN, PARAMETERS
from tests.fuzz.function_options import draw_case, evaluate, functions, undrawn
from tests.fuzz.function_rules_table import CALLS, DOMAINS, PARAMETER_RULES, SKIPPED

FUNCTIONS = list(functions())


def test_every_option_is_drawn_or_left_out_for_a_reason():
    missing = {function.path: undrawn(function) for function in FUNCTIONS if undrawn(function)}
    assert not missing, f"give them a rule, or a reason in NOT_DRAWN: {missing}"


def test_every_function_has_draws_that_jax_accepts():
    """Without them nothing is compared; types are asked for, which needs no compilation."""
    import jax
    import numpy as np

    never = []
    for function in FUNCTIONS:
        for seed in range(60):
            case = draw_case(function, np.random.default_rng([seed, len(function.path)]))
            if evaluate(case, jax, "eval_shape").error is None or evaluate(case, jax, "run").error is None:
                break
        else:
            never.append(function.path)
    assert not never, f"no draw of these succeeded: {never}"


def test_a_difference_is_found(monkeypatch):
    import purax.numpy as jnp

    right = jnp.cumsum
    monkeypatch.setattr(
        jnp, "cumsum", lambda a, axis=None, dtype=None, out=None: right(a, axis, dtype, out) + 1
    )
    tried = itertools.islice(function_options.run(seed=1, only="numpy.cumsum"), 10)
    assert any(found and "jnp.cumsum(" in found for found in tried)


def test_tables_name_what_exists():
    names = {function.name for function in FUNCTIONS}
    paths = {function.path for function in FUNCTIONS}
    unknown = [key for key in CALLS if key not in paths]
    unknown += [
        key for key in DOMAINS if key not in paths and key not in names and key.split(".")[-1] not in names
    ]
    unknown += [key for key in PARAMETER_RULES if key.split(".")[-2] not in names]
    assert not unknown
    assert not set(NOT_DRAWN) & {""} and all(reason for reason in NOT_DRAWN.values())
    assert all(reason for module in SKIPPED.values() for reason in module.values())
    assert all(callable(rule) for rule in PARAMETERS.values())


@pytest.mark.parametrize("seed", [0, 1])
def test_draws_follow_from_the_seed(seed):
    import numpy as np

    for function in FUNCTIONS[:40]:
        first, second = (draw_case(function, np.random.default_rng(seed)) for _ in range(2))
        assert first == second
