"""`jax._src.state`: types of references."""

from __future__ import annotations

from purax.ref import AbstractRef, Part

TransformedRef = Part

__all__ = ["AbstractRef", "TransformedRef"]
