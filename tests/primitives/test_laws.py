"""Every law on every case of every primitive; see `purax.testing.laws`.

A test is one law on one primitive and reports all cases that break it. A primitive without a case fails here, and so
does a file of `purax.primitives` without a file of cases.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil

import numpy as np
import pytest

import purax as px
from purax.primitives.elementwise.elementwise import Elementwise
from purax.primitives.elementwise.logic import clamp_p
from purax.primitives.products.contraction import DotAlgorithmPreset
from purax.testing import laws
from purax.testing.case import Case
from tests import cases

UNEVEN = [((2, 1), (1, 3), (2, 3), (1, 1)), ((1, 1), (2, 1), (), (1, 3)), ((0, 1), (1, 2), (1, 1), (0, 2))]


def repeating(table: list[Case]) -> list[Case]:
    """For each elementwise operation with several operands, cases in which these are repeated along axes of size 1."""
    chosen: dict[str, Case] = {}
    for case in table:
        several = isinstance(case.primitive, Elementwise) and len(case.operands) > 1
        if several and case.primitive is not clamp_p and max(x.size for x in case.operands) > 2:
            best = chosen.setdefault(case.primitive.name, case)
            if case.differentiable and not best.differentiable:
                chosen[case.primitive.name] = case
    return [
        case._replace(
            operands=tuple([np.resize(x, shape) for x, shape in zip(case.operands, shapes, strict=False)])
        )
        for case in chosen.values()
        for shapes in UNEVEN
    ]


CASES = [
    case
    for module in sorted(pkgutil.iter_modules(cases.__path__), key=lambda m: m.name)
    for case in importlib.import_module(f"tests.cases.{module.name}").CASES
]
CASES += repeating(CASES)
TOGETHER = 40  # cases compiled as one program


def rows(law: str) -> list:
    """The cases of each primitive that `law` applies to, a group of at most `TOGETHER` for each test."""
    by_primitive: dict[str, list[Case]] = {}
    for case in CASES:
        if laws.applies(law, case):
            by_primitive.setdefault(case.primitive.name, []).append(case)
    return [
        pytest.param(
            own[start : start + TOGETHER], id=f"{name}-{start // TOGETHER}" if len(own) > TOGETHER else name
        )
        for name, own in by_primitive.items()
        for start in range(0, len(own), TOGETHER)
    ]


def check_each(check, group, *arguments) -> None:
    """Tries all cases of a group before it fails with what it found."""
    found = []
    for position, case in enumerate(group):
        try:
            check(case, *(values[position] for values in arguments))
        except AssertionError as error:
            found.append(error)
    if len(found) == 1:
        raise found[0]
    if found:
        raise ExceptionGroup(f"{len(found)} of {len(group)} cases break the law: {found[0]}", found)


@pytest.mark.parametrize("group", rows("infer"))
def test_infer_agrees_with_host(group):
    check_each(laws.check_infer, group)


@pytest.mark.parametrize("group", rows("lower"))
def test_lower_agrees_with_host(group):
    check = functools.partial(laws.compare_lowered, is_cpu=px.devices()[0].platform == "cpu")
    check_each(check, group, laws.lowered_results(group))


@pytest.mark.cpu_only("it runs on the CPU what is for others")
@pytest.mark.parametrize("module", ["contraction", "cumulative", "reduction", "sorting"])
def test_lower_for_accelerators_agrees_with_host(module):
    """What these files lower differently there is plain StableHLO, so that the CPU can run it too."""
    own = [
        case
        for case in importlib.import_module(f"tests.cases.{module}").CASES
        if not isinstance(case.params.get("precision"), DotAlgorithmPreset)
        and laws.joint_program([case], "cuda").text() != laws.joint_program([case], "cpu").text()
    ]
    assert own
    for start in range(0, len(own), TOGETHER):
        group = own[start : start + TOGETHER]
        check_each(laws.compare_lowered, group, laws.lowered_results(group, "cuda"))


@pytest.mark.cpu_only(
    "operation by operation: tests/primitives/test_laws_on_device.py tries them in programs"
)
@pytest.mark.parametrize("group", rows("jvp"))
def test_jvp_agrees_with_finite_differences(group):
    check_each(laws.check_jvp, group)


@pytest.mark.cpu_only(
    "operation by operation: tests/primitives/test_laws_on_device.py tries them in programs"
)
@pytest.mark.parametrize("group", rows("reverse"))
def test_the_derivative_has_a_transpose(group):
    check_each(laws.check_reverse, group)


@pytest.mark.cpu_only(
    "operation by operation: tests/primitives/test_laws_on_device.py tries them in programs"
)
@pytest.mark.parametrize("group", rows("transpose"))
def test_transpose_keeps_inner_products(group):
    check_each(laws.check_transpose, group)


@pytest.mark.cpu_only(
    "operation by operation: tests/primitives/test_laws_on_device.py tries them in programs"
)
@pytest.mark.parametrize("group", rows("batch"))
def test_batch_is_a_stacked_loop(group):
    check_each(laws.check_batch, group)


@pytest.mark.parametrize("module", list(laws.all_primitives()))
def test_every_primitive_has_a_case(module):
    named = {module.name for module in pkgutil.iter_modules(cases.__path__)}
    assert module in named, f"there is no file tests/cases/{module}.py for {module}.py of purax/primitives"
    tried = {case.primitive.name for case in importlib.import_module(f"tests.cases.{module}").CASES}
    missing = set(laws.all_primitives()[module]) - tried
    assert not missing, f"primitives of {module}.py without a case in tests.cases.{module}: {missing}"


def test_every_file_of_cases_belongs_to_a_file_of_operations():
    named = {module.name for module in pkgutil.iter_modules(cases.__path__)}
    assert named <= set(laws.all_primitives()), "files of cases without a file of primitives"


@pytest.mark.parametrize("law", list(laws.LAWS))
def test_every_law_is_tried(law):
    assert any(laws.applies(law, case) for case in CASES)
