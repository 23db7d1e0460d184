"""What happens when a function that is being recorded asks for the value of a traced array, as in `if x > 0:`.

The rewriter (`purax.python_control_flow.rewriter`, which `purax` installs here) makes a function of the same meaning
whose control flow is recorded, and that is traced instead. A function that can be traced as it is written never meets
it. What the first attempt changed is put back before the second, so that the effects of a function happen once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from purax import errors
from purax.config import config
from purax.core.trace import current

T = TypeVar("T")


class Rewriter:
    """Rewrites functions; this one does not."""

    def prepare(self, function: Callable) -> Any:
        """A function is about to be recorded: what `undo` needs; None if nothing, `AT_ONCE` to rewrite it at once."""
        return None

    def is_swallowed(self, error: Exception) -> bool:
        """Whether an error about a value that is not known was caught by code which did not mean to."""
        return False

    def retrace(
        self, record: Callable[[Callable], Any], function: Callable, error: Exception | None, before: Any
    ) -> Any:
        """Records a function rewritten, since recording it as it is raised `error`; puts back `before` first."""
        raise NotImplementedError

    def succeeded(self, function: Callable) -> None:
        """A function was recorded as it is."""


AT_ONCE = object()


class _Installed:
    rewriter: Rewriter | None = None


installed = _Installed()


def install_rewriter(rewriter: Rewriter) -> None:
    """Sets who rewrites functions."""
    installed.rewriter = rewriter


def record_or_rewrite(record: Callable[[Callable], T], function: Callable) -> T:
    """`record(function)`; if that needs a value which is not known, with the function rewritten."""
    rewriter = installed.rewriter
    if rewriter is None or not config.python_control_flow:
        return record(function)
    outer = current.refusals, current.decide, current.resolve
    current.refusals, current.decide, current.resolve = [], None, None
    try:
        return _record(rewriter, record, function)
    finally:
        current.refusals, current.decide, current.resolve = outer


def _record(rewriter: Rewriter, record: Callable[[Callable], T], function: Callable) -> T:
    before = rewriter.prepare(function)
    needed = None
    if before is not AT_ONCE:
        counts = _recordings()
        try:
            result = record(function)
            needed = _swallowed(rewriter)
            if needed is None:
                rewriter.succeeded(function)
                return result
        except Exception as error:
            needed = _cause(error)
            if needed is None or getattr(needed, "_final", False):
                raise
        for (
            recording,
            count,
        ) in counts:  # what the failed attempt did with outer values is not to be done twice
            recording.forget(count)
    current.refusals = []
    result = rewriter.retrace(record, function, needed, before)
    needed = _swallowed(rewriter)
    if needed is not None:
        raise needed
    return result


def _cause(error: BaseException | None) -> Exception | None:
    """The error about a value that is not known which another error comes from."""
    while error is not None:
        if isinstance(error, errors.ConcretizationTypeError):
            return error
        if isinstance(error, (TypeError, ValueError)) and str(error).startswith(_REWRITTEN_TOO):
            return error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None


# A method of the user's told by an array, which Python refuses before we can; what NumPy would have made was stored in.
_REWRITTEN_TOO = (
    "__bool__ should return bool",
    "arrays are immutable and do not support item assignment",
    "Error setting single item of array",
    "setting an array element with a sequence",
)


def _swallowed(rewriter: Rewriter) -> Exception | None:
    for error in current.refusals or ():
        if rewriter.is_swallowed(error):
            return error
    return None


def _recordings() -> list[tuple[Any, int]]:
    """The programs that are being recorded, and how far they are."""
    found: list[tuple[Any, int]] = []
    trace: Any = current.trace
    while trace is not None:
        recording: Any
        for recording in (trace, getattr(trace, "tape", None)):
            if hasattr(recording, "forget"):
                found.append((recording, len(recording.equations)))
        trace = trace.parent
    return found


def call_or_rewrite(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """`function(*args, **kwargs)`; if that needs a value which is not known, with the function rewritten."""
    return record_or_rewrite(lambda function: function(*args, **kwargs), function)
