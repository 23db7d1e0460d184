"""Many programs compared with jax in one compilation each; see `tests.against_jax`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import jax

import purax
from tests.against_jax import QUICKLY, Program, all_forms, compare


def check_together(programs: Sequence[Program]) -> None:
    """Compares all programs: purax's eager results with jax's, and its compiled ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        functions = [all_forms(jax, program) for program in programs]
        expected = jax.jit(lambda: [function() for function in functions]).lower().compile(QUICKLY)()
    own = [all_forms(purax, program) for program in programs]
    failures = []
    compiled = purax.jit(lambda: [function() for function in own], compiler_options=QUICKLY)()
    for program, function, result, wanted in zip(programs, own, compiled, expected, strict=True):
        for given, what in ((function, f"{program}"), (lambda r=result: r, f"jit of {program}")):
            try:
                compare(given(), wanted, what)
            except AssertionError as error:
                failures.append(str(error).strip())
    assert not failures, "\n\n".join(failures)
