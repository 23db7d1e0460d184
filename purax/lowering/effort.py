"""How hard the compiler is to try: programs that work on few numbers are compiled in half of the time.

On the CPU, XLA's newer emitters and the last levels of LLVM's optimization take half of the time of a compilation, some
50 ms, and pay for it on large arrays and in long loops. A program is compiled without them if a call is thereby slower
by a time that only thousands of calls would add up to as much.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from purax.config import config
from purax.core import dtypes
from purax.core.jaxpr import Jaxpr, JaxprEqn, Literal, inner_jaxprs
from purax.core.phases import measured
from purax.errors import JaxRuntimeError
from purax.xla import jaxlib_api

Result = TypeVar("Result")

LIMIT = 16384  # elements of the largest value of a program for which the compiler takes its fast path
GAIN_LIMIT = 20e3  # nanoseconds that a call may take longer
FEW = 64  # elements for which code is as fast either way
UNKNOWN_REPEATS = 1000  # of a loop that ends by a condition
# Operations in a row. XLA's older emitters call themselves for each, and their thread's stack ends after some 7,000.
DEPTH_LIMIT = 1500
_SHORT_WAY = (
    ("xla_backend_optimization_level", 1),
    ("xla_cpu_use_fusion_emitters", False),
    ("xla_cpu_parallel_codegen_split_count", 4),  # each part repeats what all of them need
)
_UNKNOWN = "No such compile option"
_refused: set[str] = set()  # options that the compiler turned out not to have


@measured("passes")
def of_program(jaxpr: Jaxpr, platform: str, lines: int = 0) -> tuple[tuple[str, Any], ...]:
    """The options of the compiler for a program that has become so many lines of text."""
    found = _Walk(jaxpr)
    # What an equation becomes may be a chain itself: lines beyond one for an equation are taken to be in its depth.
    if found.depth * max(1.0, lines / max(found.equations, 1)) > DEPTH_LIMIT or found.gain > GAIN_LIMIT:
        return ()
    return of_sizes((found.largest,), platform)


def of_sizes(sizes: Iterable[float], platform: str) -> tuple[tuple[str, Any], ...]:
    """The options of the compiler for a program whose values have so many elements."""
    if platform != "cpu" or config.disable_most_optimizations or config.optimization_level != "UNKNOWN":
        return ()
    if any(size > LIMIT for size in sizes):
        return ()
    chosen = os.environ.get("XLA_FLAGS", "")
    return tuple(pair for pair in _SHORT_WAY if pair[0] not in chosen and pair[0] not in _refused)


def size_of(aval: Any) -> float:
    """The number of elements; infinite for those of a few bits, some of which XLA's older emitters do not survive."""
    dtype = getattr(aval, "dtype", None)
    if dtypes.is_integer(dtype) and dtypes.itemsize_bits(dtype) < 8:
        return math.inf
    return getattr(aval, "size", 0)


class _Walk:
    """The largest value of a program, the number of equations, how many of them wait for each other in a row, and
    the nanoseconds that a call of it gains if the compiler tries hard."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.largest: float = 0
        self._known: dict[int, tuple[int, int, float]] = {}
        self.equations, self.depth, self.gain = self._visit(jaxpr)

    def _visit(self, jaxpr: Jaxpr) -> tuple[int, int, float]:
        """The equations of a program, the depth of its results and its gain, with those of the programs inside."""
        known = self._known.get(id(jaxpr))
        if known is not None:
            return known
        count, deepest, gain = 0, 0, 0.0
        depths: dict[Any, int] = {}
        self._measure((*jaxpr.constvars, *jaxpr.invars))
        for eqn in jaxpr.eqns:
            inside = [self._visit(closed.jaxpr) for closed in inner_jaxprs(eqn.params)]
            count += 1 + sum(equations for equations, _, _ in inside)
            depth = 1 + max((depths.get(v, 0) for v in eqn.invars if type(v) is not Literal), default=0)
            depth += max((own for _, own, _ in inside), default=0)
            depths.update(dict.fromkeys(eqn.outvars, depth))
            deepest = max(deepest, depth)
            self._measure(eqn.outvars)
            gain += self._gain(eqn, [own for _, _, own in inside])
        self._known[id(jaxpr)] = count, deepest, gain
        return count, deepest, gain

    def _gain(self, eqn: JaxprEqn, inside: list[float]) -> float:
        if inside:
            repeats = eqn.primitive.repeats(**eqn.params)
            return sum(inside) * (UNKNOWN_REPEATS if repeats is None else repeats)
        size = max((getattr(v.aval, "size", 0) for v in (*eqn.invars, *eqn.outvars)), default=0)
        return max(size - FEW, 0) * eqn.primitive.gain_of_effort

    def _measure(self, variables: Iterable[Any]) -> None:
        for v in variables:
            self.largest = max(self.largest, size_of(v.aval))


def compiled(
    compile_with: Callable[[tuple[tuple[str, Any], ...]], Result],
    own: Sequence[tuple[str, Any]],
    choose: Callable[[], tuple[tuple[str, Any], ...]],
) -> Result:
    """What `compile_with(options)` gives for the options of a user and, where these say nothing, those chosen here.

    An option that the compiler does not have is left out from then on.
    """
    names = {name for name, _ in own}
    while True:
        chosen = tuple(pair for pair in choose() if pair[0] not in names)
        try:
            return compile_with((*own, *chosen))
        except (JaxRuntimeError, jaxlib_api.EngineError, ValueError) as error:  # the last of an isolated compiler
            text = str(error)
            unknown = {name for name, _ in chosen if _UNKNOWN in text and name in text}
            if not unknown:
                raise
            _refused.update(unknown)
