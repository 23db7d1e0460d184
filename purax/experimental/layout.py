"""`Format` and `Layout`: descriptions of how arrays lie in memory and over devices."""

from purax.xla.layout import Format, Layout

__all__ = ["Format", "Layout"]
