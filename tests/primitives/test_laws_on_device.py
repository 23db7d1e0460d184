"""The rules of every primitive on the device that the tests run on, against the CPU: tangents, cotangents, batches.

Whether the rules are right, the laws say, on the CPU. Here many cases share a compiled program, because a compiler for
a GPU takes a second for each; `make test` on the CPU tries a few, so that these tests keep working.
"""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import purax as px
from purax.testing import laws
from tests import cases
from tests.against_jax import ON_CPU

TOGETHER, FEW = 12, 1 if ON_CPU else 3  # of long formulas, fewer
# Results that are random, or differ by platform: there is nothing to compare.
LEFT_OUT = {"rng_uniform", "rng_bit_generator"}


def groups() -> list:
    found = []
    for module in sorted(pkgutil.iter_modules(cases.__path__), key=lambda m: m.name):
        own = [
            case
            for case in importlib.import_module(f"tests.cases.{module.name}").CASES
            if case.primitive.name not in LEFT_OUT
        ]
        together = FEW if module.name.startswith("special") else TOGETHER
        for start in range(0, len(own), together):
            found.append(pytest.param(own[start : start + together], id=f"{module.name}-{start // together}"))
    return found


@pytest.mark.sampled(60)
@pytest.mark.parametrize("group", groups())
def test_rules_agree_with_those_on_the_cpu(group):
    device = px.devices()[0]
    found = laws.rule_results(group, device)
    expected = laws.rule_results(group, px.devices("cpu")[0])
    failures = []
    for case, *both in zip(group, found, expected, strict=True):
        try:
            laws.compare_rules(case, *both)
        except AssertionError as error:
            failures.append(str(error))
    assert not failures, "\n".join(failures)
