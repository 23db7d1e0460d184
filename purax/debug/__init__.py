"""Looking at values inside of transformed functions: `print`, `callback`, `breakpoint`, `log`, and pictures of where
arrays lie, as in jax.debug.
"""

# ruff: noqa: A004
from purax.core.effects import Effect
from purax.core.effects import debug as debug_effect
from purax.core.effects import ordered_debug as ordered_debug_effect
from purax.debug.breakpoints import breakpoint
from purax.debug.printing import callback, log, print
from purax.debug.shardings import sharding_svg, visualize_array_sharding, visualize_sharding
from purax.sharding.inspection import inspect_array_sharding

__all__ = [
    "Effect",
    "breakpoint",
    "callback",
    "debug_effect",
    "inspect_array_sharding",
    "log",
    "ordered_debug_effect",
    "print",
    "sharding_svg",
    "visualize_array_sharding",
    "visualize_sharding",
]
