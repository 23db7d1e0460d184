"""`jax.interpreters.pxla`: what is left of it are names of old programs."""

__all__: list[str] = []
