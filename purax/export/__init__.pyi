# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Exported functions: compiled elsewhere, kept on disk, run by later versions, as `jax.export`."""

from purax.export.exported import DisabledSafetyCheck as DisabledSafetyCheck
from purax.export.exported import Exported as Exported
from purax.export.exported import default_export_platform as default_export_platform
from purax.export.exported import deserialize as deserialize
from purax.export.exported import export as export
from purax.export.exported import maximum_supported_calling_convention_version as maximum_supported_calling_convention_version
from purax.export.exported import minimum_supported_calling_convention_version as minimum_supported_calling_convention_version
from purax.export.shapes import SymbolicScope as SymbolicScope
from purax.export.shapes import is_symbolic_dim as is_symbolic_dim
from purax.export.shapes import symbolic_args_specs as symbolic_args_specs
from purax.export.shapes import symbolic_shape as symbolic_shape
from purax.export.trees import register_namedtuple_serialization as register_namedtuple_serialization
from purax.export.trees import register_pytree_node_serialization as register_pytree_node_serialization

__all__ = ['DisabledSafetyCheck', 'Exported', 'SymbolicScope', 'default_export_platform', 'deserialize', 'export', 'is_symbolic_dim', 'maximum_supported_calling_convention_version', 'minimum_supported_calling_convention_version', 'register_namedtuple_serialization', 'register_pytree_node_serialization', 'symbolic_args_specs', 'symbolic_shape']
