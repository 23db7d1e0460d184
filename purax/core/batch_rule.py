"""Of the `batch` rule that runs in this thread: how the batch axis is sharded."""

from __future__ import annotations

import threading
from typing import Any


class _BatchRule(threading.local):
    """Of the trace whose rule runs.

    Attributes:
        entry: the axes of a mesh that the batch axis is sharded over as types say, an entry of a `PartitionSpec`.
        spread: those that it is to be sharded over where the function says how values are (`spmd_axis_name`).
    """

    entry: Any = None
    spread: Any = None


batch_rule = _BatchRule()
