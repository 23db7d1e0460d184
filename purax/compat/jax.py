"""Importing this module makes `import jax` give purax, from here on and in child processes.

>>> import purax.compat.jax  # doctest: +SKIP
>>> import jax  # doctest: +SKIP

In a notebook it is the first cell, or `%load_ext purax.compat.jax`.
"""

from __future__ import annotations

from typing import Any

from purax.compat.finder import install

install()


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext purax.compat.jax` calls; importing the module has done the work."""
    install()
