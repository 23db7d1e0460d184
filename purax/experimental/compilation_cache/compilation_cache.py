"""Choosing the folder of compiled programs; the flags `compilation_cache_*` say more."""

from __future__ import annotations

import os

from purax.config import config
from purax.xla.compiler import clear_memory

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Keeps compiled programs in a folder from now on. Whoever can write to it can run code in this process.

    Args:
        path: the folder.

    >>> import purax as px, tempfile
    >>> from purax.experimental.compilation_cache import compilation_cache
    >>> before = px.config.compilation_cache_dir
    >>> compilation_cache.set_cache_dir(tempfile.mkdtemp())
    >>> px.config.update("compilation_cache_dir", before)
    """
    config.update("compilation_cache_dir", os.fspath(path))


def reset_cache() -> None:
    """Forgets the programs of this process that could be found again; the folder stays as it is."""
    clear_memory()
