# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""The program explorer: what a function computes, at which line, and what that costs, on one page."""

from purax.explorer.explanation import explain as explain
from purax.explorer.page import Explanation as Explanation

__all__ = ['Explanation', 'explain']
