"""Expressions evaluated with purax and with jax: equal values, dtypes and weak types, or an error from both."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jax_numpy
import numpy as np

import purax
import purax.numpy as jnp
from tests.against_jax import QUICKLY


class HasArray:
    def __array__(self, dtype=None, copy=None):
        return np.ones(2)


def names(library: Any, numpy: Any) -> dict[str, Any]:
    """What the expressions can name."""

    class HasJaxArray:
        def __jax_array__(self):
            return numpy.ones(2)

    return {
        "jax": library,
        "jnp": numpy,
        "np": np,
        "HasArray": HasArray,
        "HasJaxArray": HasJaxArray,
        "x": numpy.asarray(np.array([1.5, -2.0, 3.0], np.float32)),
        "i": numpy.asarray(np.arange(4, dtype=np.int32)),
        "m": numpy.asarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
        "f": numpy.asarray(np.arange(6, dtype=np.float32).reshape(2, 3) * 1.5),
        "t": numpy.asarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4)),
    }


OURS, THEIRS = names(purax, jnp), names(jax, jax_numpy)


def outcome(expression: str, known: dict[str, Any]) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(expression, dict(known))
    except Exception as error:
        return error


def leaves(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def outcomes_of_jax(expressions: list[str]) -> dict[str, Any]:
    """What jax gives for each: in one program what can be traced, the others one by one.

    Operation by operation, jax compiles a program for each, which takes most of the time of a test.
    """
    traced = []

    def is_traced(expression):
        value = outcome(expression, THEIRS)
        arrays = [] if isinstance(value, Exception) else leaves(value)
        # jax traces some expressions to shapes that do not exist
        if arrays and all(isinstance(x, jax.Array) and min(x.shape, default=0) >= 0 for x in arrays):
            traced.append(expression)

    for expression in expressions:
        jax.eval_shape(lambda e=expression: is_traced(e))
    program = jax.jit(lambda: [outcome(e, THEIRS) for e in traced]).lower().compile(QUICKLY)
    found = dict(zip(traced, program(), strict=True))
    return {e: found[e] if e in found else outcome(e, THEIRS) for e in expressions}


def difference(expression: str, theirs: Any, tolerance: float = 1e-6) -> str | None:
    """What purax and jax disagree on, None if they agree."""
    ours = outcome(expression, OURS)
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        if isinstance(ours, Exception) and isinstance(theirs, Exception):
            return None if str(ours) else f"{expression}: an error without a message"
        return f"{expression}: {ours!r}, jax has {theirs!r}"
    ours, theirs = leaves(ours), leaves(theirs)
    if len(ours) != len(theirs):
        return f"{expression}: {len(ours)} results, jax has {len(theirs)}"
    for a, b in zip(ours, theirs, strict=True):
        if hasattr(b, "weak_type"):
            if (a.dtype, a.shape, a.weak_type) != (b.dtype, b.shape, b.weak_type and b.dtype != bool):
                return f"{expression}: {a!r}, jax has {b!r}"
            wide = complex if np.dtype(b.dtype).kind == "c" else float
            if not np.allclose(
                np.asarray(a).astype(wide),
                np.asarray(b).astype(wide),
                rtol=tolerance,
                atol=tolerance,
                equal_nan=True,
            ):
                return f"{expression}: {a!r}, jax has {b!r}"
        elif not (a == b or a is b):
            return f"{expression}: {a!r}, jax has {b!r}"
    return None


def differences(expressions: Iterable[str], tolerance: float = 1e-6) -> list[str]:
    theirs = outcomes_of_jax(list(expressions))
    return [found for e in theirs if (found := difference(e, theirs[e], tolerance)) is not None]
