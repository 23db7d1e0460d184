"""Rules of operations as rows of NumPy functions: how small eager work is differentiated and batched.

What a `jvp` or `batch` rule does follows from types and parameters. An operation on small arrays that is met again and
again has its rule recorded once, as a program, and from then on the row of NumPy functions that this program is
(`host_program`) is called in place of the rule. The results are the same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from purax.config import config
from purax.core.avals import ShapedArray
from purax.core.jaxpr import ClosedJaxpr
from purax.core.primitive import Primitive
from purax.core.trace import using
from purax.transforms.eager import eager
from purax.transforms.staging import stage

# By kind of rule, primitive, settings, types and parameters: the rule; None where there is none; how often it was
# asked for, as long as it is not worth recording (which costs about what a rule that runs fifty times costs).
rules: dict[tuple, Any] = {}
PATIENCE = 16
_MAX_RULES = 20_000


def learn(key: tuple, make: Callable[..., Any], *arguments: Any) -> Any:
    """The rule that `rules` has not got yet, made as `make(*arguments)` if it is time to do so; else None."""
    count = rules.get(key, 0)
    if count < PATIENCE:
        if len(rules) >= _MAX_RULES:
            rules.clear()
        rules[key] = count + 1
        return None
    try:
        with using(eager):
            rule = make(*arguments)
    except Exception:  # what cannot be recorded, or lacks a rule that was not needed, still runs as before
        rule = None
    rules[key] = rule
    return rule


def one_operation(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> ClosedJaxpr:
    """The program that applies one operation."""
    return stage(lambda *operands: [primitive.bind(*operands, **params)], avals, primitive.name)


def split_types(types: Sequence[ShapedArray | None]) -> tuple[list[ShapedArray], list[bool]]:
    """Types of operands, and which of them had a None before it in `types`."""
    avals = [aval for aval in types if aval is not None]
    marked = [before is None for before, aval in zip((0, *types), types, strict=False) if aval is not None]
    return avals, marked


for flag in ("host_size_limit", "native_kernels"):  # what the plans of the eager trace are made by
    config.on_change(flag, lambda _: rules.clear())
