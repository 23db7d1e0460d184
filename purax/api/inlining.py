"""Whether a call of a compiled function inside of another stays a call."""

from __future__ import annotations

import enum
from typing import Any


class Inline(enum.Enum):
    """What `jit(inline=...)` takes.

    `JAX_EARLY` merges calls into the traced program, and so does True; the others leave them calls, with which XLA does
    what it holds for best.

    >>> import purax as px
    >>> inner = px.jit(lambda x: x + 1, inline=px.Inline.JAX_EARLY)
    >>> px.make_jaxpr(inner)(1.0).eqns[0].primitive.name
    'add'
    """

    JAX_EARLY = "jax_early"
    JAX_LATE = "jax_late"
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"


def merges(inline: Any) -> bool:
    """Whether calls are merged into the program around them when that is traced."""
    return inline is Inline.JAX_EARLY if isinstance(inline, Inline) else bool(inline)
