"""Rematerialization, as `jax.ad_checkpoint`."""

from purax.control_flow.checkpoint import (
    Offloadable,
    checkpoint,
    checkpoint_name,
    checkpoint_policies,
    name_p,
    print_saved_residuals,
    remat,
    saved_residuals,
)
from purax.control_flow.checkpoint import Recompute as _Recompute
from purax.control_flow.checkpoint import Saveable as _Saveable

Recompute, Saveable = _Recompute(), _Saveable()

__all__ = [
    "Offloadable",
    "Recompute",
    "Saveable",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "name_p",
    "print_saved_residuals",
    "remat",
    "saved_residuals",
]
