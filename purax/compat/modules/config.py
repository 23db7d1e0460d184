"""`jax.config` as a module, as in `from jax.config import config` of old programs."""

from purax.compat.settings import settings as config

__all__ = ["config"]
