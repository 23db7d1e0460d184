"""Every law on every case of every primitive; see `purax.testing.laws`.

A primitive without a case fails here, and so does a file of `purax.ops` without a file of cases. Cases of one
primitive are compiled as one program.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil

import pytest

from purax.testing import cases, laws

CASES = [
    case
    for module in sorted(pkgutil.iter_modules(cases.__path__), key=lambda m: m.name)
    for case in importlib.import_module(f"purax.testing.cases.{module.name}").CASES
]
TOGETHER = 40  # cases in one program


def rows(law: str):
    """The cases that `law` applies to, each with its number among the cases of its primitive."""
    counts: dict[str, int] = {}
    found = []
    for case in CASES:
        name = case.primitive.name
        counts[name] = counts.get(name, -1) + 1
        if laws.applies(law, case):
            found.append(pytest.param(case, id=f"{name}-{counts[name]}"))
    return found


@functools.cache
def lowered(name: str) -> dict[int, object]:
    """By identity, what the compiled programs of all cases of a primitive give."""
    own = [case for case in CASES if case.primitive.name == name]
    results: dict[int, object] = {}
    for start in range(0, len(own), TOGETHER):
        group = own[start : start + TOGETHER]
        results.update(zip(map(id, group), laws.lowered_results(group), strict=True))
    return results


@pytest.mark.parametrize("case", rows("infer"))
def test_infer_agrees_with_host(case):
    laws.check_infer(case)


@pytest.mark.parametrize("case", rows("lower"))
def test_lower_agrees_with_host(case):
    laws.compare_lowered(case, lowered(case.primitive.name)[id(case)])


@pytest.mark.parametrize("case", rows("jvp"))
def test_jvp_agrees_with_finite_differences(case):
    laws.check_jvp(case)


@pytest.mark.parametrize("case", rows("reverse"))
def test_the_derivative_has_a_transpose(case):
    laws.check_reverse(case)


@pytest.mark.parametrize("case", rows("transpose"))
def test_transpose_keeps_inner_products(case):
    laws.check_transpose(case)


@pytest.mark.parametrize("case", rows("batch"))
def test_batch_is_a_stacked_loop(case):
    laws.check_batch(case)


@pytest.mark.parametrize("module", list(laws.all_primitives()))
def test_every_primitive_has_a_case(module):
    named = {module.name for module in pkgutil.iter_modules(cases.__path__)}
    assert module in named, f"there is no file purax/testing/cases/{module}.py for purax/ops/{module}.py"
    tried = {case.primitive.name for case in importlib.import_module(f"purax.testing.cases.{module}").CASES}
    missing = set(laws.all_primitives()[module]) - tried
    assert not missing, (
        f"primitives of purax.ops.{module} without a case in purax.testing.cases.{module}: {missing}"
    )


def test_every_file_of_cases_belongs_to_a_file_of_operations():
    named = {module.name for module in pkgutil.iter_modules(cases.__path__)}
    assert named <= set(laws.all_primitives()), "files of cases without a file of primitives"


@pytest.mark.parametrize("law", list(laws.LAWS))
def test_every_law_is_tried(law):
    assert any(laws.applies(law, case) for case in CASES)
