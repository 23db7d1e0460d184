"""JAX programs on purax as they are: `import jax` and its submodules resolve to purax's modules.

`import purax.compat.jax` (or `purax run script.py`, or pytest's `-p purax.compat.pytest`) puts a finder in front of
Python's. `table` says which modules stand for which, `facade` is what the program gets, `finder` hands it out. The
real jax is never imported, and where it already was, the mode refuses.
"""

from purax.compat.errors import MissingImportError, MissingModuleError, MissingNameError
from purax.compat.finder import install, is_installed

__all__ = ["MissingImportError", "MissingModuleError", "MissingNameError", "install", "is_installed"]
