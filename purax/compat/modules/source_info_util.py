"""`jax.extend.source_info_util`: the user's line that is running."""

from purax.core.source import Location as SourceInfo
from purax.core.source import exclude as register_exclusion
from purax.core.source import user_location as current

__all__ = ["SourceInfo", "current", "register_exclusion", "summarize"]


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """A line of the user's code, as text."""
    return str(source_info)
