"""Many programs compared with jax in one compilation each; see `tests.against_jax`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import jax

import purax
from tests.against_jax import QUICKLY, Program, all_forms, compare


def check_together(programs: Sequence[Program]) -> None:
    """Compares all forms of all programs, computed eagerly by purax, with jax's; and their values, compiled by purax.

    How single operations lower, and their derivatives, is the business of the tests of their laws.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        functions = [all_forms(jax, program) for program in programs]
        expected = jax.jit(lambda: [function() for function in functions]).lower().compile(QUICKLY)()
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
            try:
                compare(given, right, what)
            except AssertionError as error:
                failures.append(str(error).strip())
    assert not failures, "\n\n".join(failures)
