"""Rules of operations as straight-line NumPy programs: how small eager work is differentiated and batched.

What a `jvp`, `linearize` or `batch` rule does follows from types and parameters. An operation on small arrays that is
met again and again has its rule recorded once, as a program, and from then on the straight-line NumPy program that this
program is (`host_program`) is called in place of the rule. The results are the same, bit for bit.

A trace that does so has a `HostRules` as its attribute `on_host`. The class exists twice, as `Dispatch` does: in C
(`core/_host_rules.h`, where `Primitive.bind` calls it, too) and here, where its meaning is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from purax.config import config
from purax.core.avals import ShapedArray, aval_of
from purax.core.exact import exact_items
from purax.core.jaxpr import ClosedJaxpr
from purax.core.memo import Memo
from purax.core.primitive import Primitive, native
from purax.core.trace import Trace, using
from purax.execution.eager import eager
from purax.execution.host_program import quiet
from purax.interpreters.staging import stage
from purax.xla.array import DeviceArray

# By kind of rule, settings, primitive, what the operands are, and parameters: the rule (see `Make`); None where there
# is none; how often it was asked for, as long as it is not worth recording (which costs about what a rule that runs
# fifty times costs).
rules: Memo[tuple, Any] = Memo(20_000)
PATIENCE = 16

MOVING = True  # the mark of an operand with a tangent; that of a batched one is its batch axis, that of others None
NUMBER = "number"  # the mark of a NumPy scalar

# (primitive, marks, types, parameters) -> a rule, or None where an operation has none. A rule is a function of the
# values of the operands (and tangents) that gives a list, the type of its first result, and two things for `finish`; if
# the first of these is None, the first result is all there is.
Make = Callable[[Primitive, Sequence[Any], Sequence[ShapedArray], dict[str, Any]], tuple | None]


class PythonHostRules:
    """How a trace handles operations with rules that were recorded.

    Args:
        kind: "jvp", "linearize" or "batch".
        tracer: the class of its tracers.
        value: the attribute of a tracer that is an array on the host.
        extra: its other attribute: the tangent or the batch axis.
        make: records a rule.
        finish: (trace, first result, all results, tracers, *the last two of the rule) -> the result.
    """

    def __init__(self, kind: str, tracer: Any, value: str, extra: str, make: Make, finish: Callable):
        self.kind, self.tracer, self.value, self.extra = kind, tracer, value, extra
        self.make, self.finish = make, finish

    def __call__(
        self, trace: Trace, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        """The result of an operation; None if no rule is known for it, or a value is not on the host."""
        tracers: list[Any] = [x for x in operands if type(x) is self.tracer and x.owner is trace]
        if not tracers:
            return None
        key: list[Any] = [self.kind, config.trace_key, primitive]
        values = []
        for x in operands:
            mark = None
            if type(x) is self.tracer and x.owner is trace:
                mark = x.axis if self.kind == "batch" else MOVING
                x = getattr(x, self.value)
            if type(x) is DeviceArray:
                value, aval = x.peek(), x.aval
                if value is None:
                    return None
            elif mark is None and type(x) is np.ndarray and not x.shape:
                value, aval, mark = x, aval_of(x), NUMBER
            else:
                return None
            key += (mark, aval)
            values.append(value)
        if self.kind == "jvp":
            for x in tracers:
                dx = x.tangent
                if type(dx) is not DeviceArray or dx.aval is not x.aval or (value := dx.peek()) is None:
                    return None
                values.append(value)
        whole = (*key, *exact_items(params))
        try:
            rule = rules.get(whole, 0)
        except TypeError:  # a parameter that cannot be hashed
            return None
        if type(rule) is int:
            rule = learn(whole, self.make, primitive, key[3::2], key[4::2], params)
        if rule is None:
            return None
        run, aval, first, second = rule
        results = quiet.run(run, *values)
        array = DeviceArray(aval, results[0])
        return array if first is None else self.finish(trace, array, results, tracers, first, second)


def learn(key: tuple, make: Make, *operation: Any) -> tuple | None:
    """The rule that `rules` has not got yet, made as `make(*operation)` if it is time to do so; else None."""
    if operation[0].runs_itself or operation[0].multiple_results:  # a key would keep the programs inside of it
        return None
    count = rules.get(key, 0)
    if count < PATIENCE:
        rules[key] = count + 1
        return None
    try:
        with using(eager):
            rule = make(*operation)
    except Exception:  # what cannot be recorded, or lacks a rule that was not needed, still runs as before
        rule = None
    rules[key] = rule
    return rule


def one_operation(primitive: Primitive, avals: Sequence[ShapedArray], params: dict[str, Any]) -> ClosedJaxpr:
    """The program that applies one operation."""
    return stage(lambda *operands: [primitive.bind(*operands, **params)], avals, primitive.name)


HostRules: Any = PythonHostRules
if native is not None:
    native.set_host_rules(config, quiet, aval_of, rules, learn)
    HostRules = native.HostRules

for flag in (
    "host_products",
    "host_size_limit",
    "native_kernels",
):  # what the plans of the eager trace are made by
    config.on_change(flag, lambda _: rules.clear())
