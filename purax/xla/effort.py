"""How much XLA's compiler tries."""

from __future__ import annotations

import enum


class CompilerEffortLevel(enum.IntEnum):
    """What the flags `optimization_level` and `memory_fitting_level` take: higher levels compile longer.

    >>> import purax as px
    >>> px.CompilerEffortLevel.O2.name
    'O2'
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39
