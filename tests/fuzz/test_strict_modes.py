"""Under strict flags the library's own code does not trip over what they forbid to users.

Each public function is called with arguments of one dtype and one number of axes, which ask for no promotion. What it
does of itself, such as to scale an array by a vector of weights, is not the user's.
"""

from __future__ import annotations

import os
from contextlib import ExitStack

import numpy as np

import purax
from tests.fuzz.function_options import Case, draw_case, evaluate, functions

TRIES = 6  # of arguments for a function


def is_plain(case: Case) -> bool:
    """Whether a call has arrays of float32 with one number of axes, scalars aside, and no others."""
    names = {"m": purax, "jnp": purax.numpy, "np": np, "inf": np.inf, "nan": np.nan}
    with np.errstate(all="ignore"):
        values = [eval(text, names) for text in case.arguments]
    arrays = [value for value in values if hasattr(value, "dtype")]
    is_of_others = any(part in case.body for part in ("asarray(", "np.array(", ".tolist()", "fill_value="))
    return (
        not is_of_others
        and {x.dtype for x in arrays} <= {np.dtype("float32")}
        and len({x.ndim for x in arrays} - {0}) < 2
    )


def strictly(case: Case):
    with ExitStack() as flags:
        flags.enter_context(purax.numpy_rank_promotion("raise"))
        flags.enter_context(purax.numpy_dtype_promotion("strict"))
        flags.enter_context(purax.checking_leaks())
        flags.enter_context(purax.enable_checks(True))
        return evaluate(case, purax, "eval_shape")


def test_public_functions_run_under_strict_flags():
    everything = os.environ.get("ALL_CASES", "0") not in ("", "0")
    tripped, tried = [], 0
    for function in list(functions())[:: 1 if everything else 4]:
        for seed in range(TRIES):
            case = draw_case(function, np.random.default_rng([seed, len(function.path), 7]))
            if not is_plain(case):
                continue
            found = strictly(case)
            if found.error is None:
                tried += 1
                break
            if evaluate(case, purax, "eval_shape").error is None:
                tripped.append(f"{type(found.error).__name__}: {found.error}\n{case.program()}")
                break
    assert not tripped, "\n\n".join(tripped)
    assert tried > 100
