"""Effects: what an operation does besides computing its results.

Equations with effects are never removed. Ordered effects happen in the order in which the program is written, through
loops, branches and calls (`purax.lowering.ordered_effects`); unordered ones happen when their operands are there.
"""

from __future__ import annotations

from collections.abc import Iterable


class Effect:
    """A kind of effect. There is one object per kind.

    Attributes:
        name: as printed.
        ordered: whether the effects of this kind keep the order of the program.
        repeatable: whether the program may be vectorized or recomputed so that the effect happens more or less
            often, as is fine for printing.
    """

    __slots__ = ("name", "ordered", "repeatable")

    def __init__(self, name: str, ordered: bool, repeatable: bool):
        self.name = name
        self.ordered = ordered
        self.repeatable = repeatable

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self):
        return _BY_NAME.__getitem__, (self.name,)


io = Effect("IO", ordered=False, repeatable=False)
ordered_io = Effect("OrderedIO", ordered=True, repeatable=False)
debug = Effect("Debug", ordered=False, repeatable=True)
ordered_debug = Effect("OrderedDebug", ordered=True, repeatable=True)
inspection = Effect(
    "Inspection", ordered=False, repeatable=True
)  # while a program is compiled, not when it runs
_BY_NAME = {effect.name: effect for effect in (io, ordered_io, debug, ordered_debug, inspection)}


def any_ordered(effects: Iterable[Effect]) -> bool:
    """Whether some effect must keep the order of the program."""
    return any(effect.ordered for effect in effects)


def any_unrepeatable(effects: Iterable[Effect]) -> bool:
    """Whether some effect must happen exactly as often as the program says."""
    return any(not effect.repeatable for effect in effects)
