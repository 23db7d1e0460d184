"""The program explorer: what a function computes, at which line, and what that costs, on one page.

`explain` makes a model (`model`, `compiled`, `measuring`, `numerics`), plain data that `page` puts into an HTML
file with the script and the style in `assets`. The script is bundled by `tools/explorer/build.mjs`.
"""

from purax.explorer.explanation import explain
from purax.explorer.page import Explanation

__all__ = ["Explanation", "explain"]
