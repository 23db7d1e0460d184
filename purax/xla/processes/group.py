"""The group of processes that this one belongs to: `current`, a `purax.xla.processes.member.Member`, or None while
it is alone.

What compiling and running programs asks of a group stands here; membership, with its sockets and threads, in `member`,
and joining in `joining`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

current: Any = None

_SAYS_CONNECTION = re.compile(
    r"gloo|nccl|connection|broken pipe|by peer|collective|timed? ?out", re.IGNORECASE
)


def explain(error: Exception) -> BaseException | None:
    """What an error of XLA means, if it is the loss of a process."""
    if current is None or current.count == 1 or not _SAYS_CONNECTION.search(str(error)):
        return None
    # XLA often notices first; the coordinator knows the name.
    return current.loss() if current.wait_for_loss(10.0) else None


def wait_for(function: Callable[[], Any]) -> Any:
    """The result of a function that may wait inside XLA for the other processes."""
    return function() if current is None else current.wait_for(function)


def spans_processes(devices: Sequence[Any]) -> list[int]:
    """The processes that have these devices, if they are several."""
    if current is None:
        return []
    processes = sorted({device.process_index for device in devices})
    return processes if len(processes) > 1 else []


def names(ids: Sequence[int]) -> str:
    """How a list of processes reads.

    >>> names([3]), names([1, 2, 4])
    ('process 3', 'processes 1, 2 and 4')
    """
    if len(ids) == 1:
        return f"process {ids[0]}"
    return f"processes {', '.join(map(str, ids[:-1]))} and {ids[-1]}"
