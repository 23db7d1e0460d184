"""Functions that the compiler is to make one kernel of, as far as the platform can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from purax.control_flow.annotated_call import annotated_call, fused_p
from purax.core.source import located
from purax.errors import shown
from purax.tree.registry import tree_flatten

__all__ = ["fused", "fused_p"]


def fused(*, out_spaces: Any) -> Callable[[Callable], Callable]:
    """A decorator for functions that are to be one kernel.

    Args:
        out_spaces: a `purax.memory.Space` for each result: only `Space.Device`.

    >>> import purax as px, purax.numpy as jnp
    >>> from purax.experimental.fused import fused
    >>> f = fused(out_spaces=(px.memory.Space.Device,))(lambda x: jnp.sin(x) * 2)
    >>> round(float(f(1.0)), 3)
    1.683
    """
    if any(getattr(space, "name", None) not in ("Device", "Any") for space in tree_flatten(out_spaces)[0]):
        raise located(
            NotImplementedError,
            f"fused: results stay in the device's memory, out_spaces={shown(out_spaces)}; move them with "
            "purax.device_put",
        )
    return lambda f: annotated_call(fused_p, f, (("MUST_FUSE", "fused"),))
