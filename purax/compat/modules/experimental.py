"""Names of `jax.experimental` that have become purax's own."""

from purax.compat.private.earray import EArray
from purax.compat.private.hijax import cur_qdd
from purax.config import enable_x64

__all__ = ["EArray", "cur_qdd", "disable_x64", "enable_x64"]


def disable_x64():
    """A context in which Python and NumPy values become 32-bit arrays."""
    return enable_x64(False)
