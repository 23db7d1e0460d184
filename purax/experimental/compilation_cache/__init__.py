"""The folder in which compiled programs are kept, as `jax.experimental.compilation_cache`."""

from purax.experimental.compilation_cache import compilation_cache

__all__ = ["compilation_cache"]
