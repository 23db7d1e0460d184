"""`jax._src.traceback_util`: which frames are left out of tracebacks."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

from purax.core import source


def api_boundary(fun: Callable, **options: Any) -> Callable:
    """The function itself: purax's frames are told by their files."""
    return fun


def register_exclusion(path: str) -> None:
    """Counts a file among those whose frames are no user code."""
    source.exclude(path)


def include_frame(frame: FrameType) -> bool:
    """Whether a frame is the user's, and is shown in tracebacks."""
    return not source.code_is_internal(frame.f_code)


filtering_mode = None
