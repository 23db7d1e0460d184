"""Functions that XLA's scheduler is to keep together, in an order of groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purax.experimental.xla_metadata import xla_metadata_call

__all__ = ["scheduling_group", "xla_metadata_call"]


def scheduling_group(name: Any) -> Callable[[Callable], Callable]:
    """A decorator that gives a call, and what autodiff makes of it, a scheduling group.

    Args:
        name: of the group.

    >>> import purax as px
    >>> from purax.experimental.scheduling_groups import scheduling_group
    >>> f = scheduling_group("first")(lambda x: x * 2)
    >>> 'scheduling_group = "first"' in px.jit(f).lower(1.0).as_text()
    True
    """
    return xla_metadata_call(scheduling_group=name)
