"""`jax._src.traceback_util`: which frames are left out of tracebacks, and leaving them out.

The outermost function that is an `api_boundary` filters what passes it, as `config.traceback_filtering` says: hidden
frames are marked for debuggers, or removed. In the other modes purax filters uncaught exceptions only.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import traceback
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

import purax
from purax.config import config
from purax.core import source

_OWN = os.path.dirname(purax.__file__) + os.sep
_exclude_paths: list[str] = [_OWN]
_MESSAGE = "The stack trace below excludes internal frames; the one above shows them all."


class UnfilteredStackTrace(Exception):
    """The cause of an exception whose traceback was filtered; its own traceback is complete."""


class _Boundaries(threading.local):
    depth = 0


_boundaries = _Boundaries()


def api_boundary(fun: Callable, **options: Any) -> Callable:
    """A function through which exceptions pass with a filtered traceback.

    Args:
        fun: a library's function that users call.
    """

    @functools.wraps(fun)
    def boundary(*args: Any, **kwargs: Any) -> Any:
        _boundaries.depth += 1
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            if _boundaries.depth == 1:
                _filter(error)
            raise
        finally:
            _boundaries.depth -= 1

    return boundary


def _filter(error: Exception) -> None:
    mode, whole = config.traceback_filtering, error.__traceback__
    if mode == "tracebackhide":
        for frame, _ in traceback.walk_tb(whole):
            if not include_frame(frame):
                frame.f_locals["__tracebackhide__"] = True
    elif mode == "remove_frames":
        kept: TracebackType | None = None
        for frame, line in reversed(list(traceback.walk_tb(whole))):
            if include_frame(frame):
                kept = TracebackType(kept, frame, frame.f_lasti, line)
        cause = UnfilteredStackTrace(_MESSAGE).with_traceback(whole)
        cause.__cause__, cause.__context__ = error.__cause__, error.__context__
        error.__cause__, error.__traceback__ = cause, kept


def register_exclusion(path: str) -> None:
    """Counts a file among those whose frames are no user code."""
    _exclude_paths.append(path)
    source.exclude(path)


def include_frame(frame: FrameType) -> bool:
    """Whether a frame is the user's, and is shown in tracebacks."""
    # Libraries replace the list of paths in the module that they know.
    known = sys.modules.get("jax._src.traceback_util")
    paths = getattr(known, "_exclude_paths", _exclude_paths)
    return not frame.f_code.co_filename.startswith(tuple(paths))


filtering_mode = None
