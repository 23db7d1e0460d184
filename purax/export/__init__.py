"""Exported functions: compiled elsewhere, kept on disk, run by later versions, as `jax.export`."""

from purax.export.exported import (
    DisabledSafetyCheck,
    Exported,
    default_export_platform,
    deserialize,
    export,
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
)
from purax.export.shapes import SymbolicScope, is_symbolic_dim, symbolic_args_specs, symbolic_shape
from purax.export.trees import register_namedtuple_serialization, register_pytree_node_serialization

__all__ = [
    "DisabledSafetyCheck",
    "Exported",
    "SymbolicScope",
    "default_export_platform",
    "deserialize",
    "export",
    "is_symbolic_dim",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
    "symbolic_args_specs",
    "symbolic_shape",
]
