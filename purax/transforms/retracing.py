"""What happens when a function that is being recorded asks for the value of a traced array, as in `if x > 0:`.

The rewriter (`purax.purity.rewriting`, which `purax` installs here) makes a function of the same meaning whose control
flow is recorded, and that is traced instead. A function that can be traced as it is written never meets it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from purax import errors
from purax.config import config
from purax.core.trace import current

T = TypeVar("T")
_rewriters: list[Callable[..., Any]] = []


def install_rewriter(retrace: Callable[..., Any]) -> None:
    """Sets what is called, as `retrace(record, function, error)`, when `record(function)` raised `error`."""
    _rewriters[:] = [retrace]


def record_or_rewrite(record: Callable[[Callable], T], function: Callable) -> T:
    """`record(function)`; if that needs a value which is not known, with the function rewritten."""
    before: list[tuple[Any, int]] = []
    recording: Any
    trace: Any = current.trace
    while trace is not None:
        for recording in (trace, getattr(trace, "tape", None)):
            if hasattr(recording, "forget"):
                before.append((recording, len(recording.equations)))
        trace = trace.parent
    try:
        return record(function)
    except errors.ConcretizationTypeError as error:
        if not _rewriters or not config.python_control_flow or getattr(error, "_final", False):
            raise
        needed = error
    for recording, count in before:  # what the failed attempt did with outer values is not to be done twice
        recording.forget(count)
    return _rewriters[0](record, function, needed)


def call_or_rewrite(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """`function(*args, **kwargs)`; if that needs a value which is not known, with the function rewritten."""
    return record_or_rewrite(lambda function: function(*args, **kwargs), function)
