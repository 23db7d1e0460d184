"""`jax.lib`: the version of the engine."""

from purax.xla import door

__version__ = door.version
version_str = door.version
__all__ = ["__version__", "version_str"]
