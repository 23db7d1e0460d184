"""`jax._src.state`: types of references."""

from __future__ import annotations

from purax.core.avals import ShapedArray


class AbstractRef:
    """The type of a reference.

    Args:
        inner_aval: the type of what it holds.
    """

    def __init__(self, inner_aval: ShapedArray):
        self.inner_aval = inner_aval

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)
