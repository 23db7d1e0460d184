"""Checkpoints: trees of arrays on disk, written by all processes at once, read onto any mesh, always whole."""

from purax.checkpoints.loading import load
from purax.checkpoints.saving import Saving, save

__all__ = ["Saving", "load", "save"]
