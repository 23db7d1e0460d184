"""`jax.lib`: the version of XLA."""

from purax.xla import jaxlib_api

__version__ = jaxlib_api.version
version_str = jaxlib_api.version
__all__ = ["__version__", "version_str"]
