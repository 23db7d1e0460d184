"""Many programs compared with jax in one compilation each; see `tests.against_jax`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import jax

import purax
from tests.against_jax import ON_CPU, QUICKLY, Program, all_forms, compare

TOGETHER = 12


def check_together(programs: Sequence[Program]) -> None:
    """Compares all forms of all programs, computed eagerly by purax, with jax's; and their values, compiled by purax.

    How single operations lower, and their derivatives, is the business of the tests of their laws. On other platforms
    than the CPU all forms are compiled, those of a few programs together.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        functions = [all_forms(jax, program) for program in programs]
        expected = jax.jit(lambda: [function() for function in functions]).lower().compile(QUICKLY)()
    if not ON_CPU:
        failures = []
        for start in range(0, len(programs), TOGETHER):
            some = [all_forms(purax, program) for program in programs[start : start + TOGETHER]]
            found = purax.jit(lambda some=some: [function() for function in some])()
            for i, given in enumerate(found, start):
                failures += _differences(given, expected[i], f"{programs[i]}")
        assert not failures, "\n\n".join(failures)
        return
    values = {
        i: all_forms(purax, program._replace(forms=("value",)))
        for i, program in enumerate(programs)
        if program.compiled
    }
    compiled = purax.jit(lambda: {i: f() for i, f in values.items()}, compiler_options=QUICKLY)()
    failures = []
    for i, (program, wanted) in enumerate(zip(programs, expected, strict=True)):
        found = [(all_forms(purax, program)(), wanted, f"{program}")]
        if i in compiled:
            found.append((compiled[i], {"value": wanted["value"]}, f"jit of {program}"))
        for given, right, what in found:
            failures += _differences(given, right, what)
    assert not failures, "\n\n".join(failures)


def _differences(given, right, what) -> list[str]:
    try:
        compare(given, right, what)
    except AssertionError as error:
        return [str(error).strip()]
    return []
