"""The one door to jaxlib: every name of the engine that purax uses, under one spelling for all supported versions.

Nothing of purax is imported here, so that `purax.tree`, at the bottom of the layers, can stand on the engine's
C++ pytrees too. Version differences end in this file.
"""

from jaxlib import _jax

pytree = _jax.pytree
