# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Checkpoints: trees of arrays on disk, written by all processes at once, read onto any mesh, always whole."""

from purax.checkpoints.loading import load as load
from purax.checkpoints.saving import Saving as Saving
from purax.checkpoints.saving import save as save

__all__ = ['Saving', 'load', 'save']
