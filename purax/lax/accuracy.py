"""How exactly a function of one variable is asked to be computed.

All functions of purax are exact to a few units in the last place on every platform, which is what the most demanding
setting asks for, so a setting is checked and nothing else.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from purax.core.source import located
from purax.errors import shown


class AccuracyMode(enum.Enum):
    """HIGHEST for the most exact formula that there is, DEFAULT for the usual one."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance(NamedTuple):
    """Errors that are acceptable: absolute, relative, and in units in the last place.

    >>> from purax import lax
    >>> lax.Tolerance(rtol=1e-3)
    Tolerance(atol=0.0, rtol=0.001, ulps=0)
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0


def check_accuracy(accuracy: Any) -> None:
    """Raises unless `accuracy` is None, an `AccuracyMode` or a `Tolerance` of numbers that are not negative."""
    if accuracy is None or isinstance(accuracy, AccuracyMode):
        return
    if not isinstance(accuracy, Tolerance):
        raise located(
            TypeError,
            f"accuracy must be None, a lax.AccuracyMode or a lax.Tolerance, got {shown(accuracy)} of type "
            f"{type(accuracy).__name__}",
        )
    if min(accuracy) < 0:
        raise located(ValueError, f"tolerances must not be negative, got {accuracy}")
