"""Looking at values inside of transformed functions: `print`, `callback`, `breakpoint`, `log`, as in jax.debug."""

# ruff: noqa: A004
from purax.core.effects import Effect
from purax.core.effects import debug as debug_effect
from purax.core.effects import ordered_debug as ordered_debug_effect
from purax.debug.breakpoints import breakpoint
from purax.debug.printing import callback, inspect_array_sharding, log, print

__all__ = [
    "Effect",
    "breakpoint",
    "callback",
    "debug_effect",
    "inspect_array_sharding",
    "log",
    "ordered_debug_effect",
    "print",
]
