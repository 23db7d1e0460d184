"""What the analysis does where it fails itself: it goes on without, and says so once.

Nothing that goes wrong in it reaches the user's program. A part that is not understood is a line in the log at debug
level; a function whose captured values are not compared at all, as in JAX, is a warning of the logger.
"""

from __future__ import annotations

import logging
from typing import Any

logger = logging.getLogger("purax")
_told: set[Any] = set()


def tell_internal_error(doing: str, error: Exception) -> None:
    """Notes once, at debug level, that a part of the analysis failed."""
    key = (doing, type(error))
    if key not in _told:
        _told.add(key)
        logger.debug("captured values: %s failed: %r", doing, error, exc_info=error)


def tell_unguarded(function: Any, error: Exception | None) -> None:
    """Warns, once for each kind of error, that changes of what a function captured will not be seen."""
    key = ("unguarded", type(error))
    if key not in _told:
        _told.add(key)
        name = (
            function
            if isinstance(function, str)
            else getattr(function, "__name__", None) or type(function).__name__
        )
        logger.warning(
            "what `%s` captures cannot be followed (%r): as in JAX, it is used as it is when the function is first "
            "called, and later changes of it are not seen. Pass such values as arguments, or as static ones.",
            name,
            error,
            exc_info=error if logger.isEnabledFor(logging.DEBUG) else None,
        )
