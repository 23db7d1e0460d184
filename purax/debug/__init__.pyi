# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Looking at values inside of transformed functions: `print`, `callback`, `breakpoint`, `log`, and pictures of where"""

from purax.core.effects import Effect as Effect
from purax.core.effects import debug as debug_effect
from purax.core.effects import ordered_debug as ordered_debug_effect
from purax.debug.breakpoints import breakpoint as breakpoint
from purax.debug.printing import callback as callback
from purax.debug.printing import log as log
from purax.debug.printing import print as print
from purax.debug.shardings import sharding_svg as sharding_svg
from purax.debug.shardings import visualize_array_sharding as visualize_array_sharding
from purax.debug.shardings import visualize_sharding as visualize_sharding
from purax.sharding.inspection import inspect_array_sharding as inspect_array_sharding

__all__ = ['Effect', 'breakpoint', 'callback', 'debug_effect', 'inspect_array_sharding', 'log', 'ordered_debug_effect', 'print', 'sharding_svg', 'visualize_array_sharding', 'visualize_sharding']
