# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Kernels: functions of references to blocks of arrays, run for each step of a grid."""

from typing import Any
from collections.abc import Callable
from purax.errors import CheckedAccess as CheckedAccess
from purax.errors import GridRace as GridRace
from purax.errors import UninitializedRead as UninitializedRead
from purax.pallas import ops as ops
from purax.pallas.call import pallas_call as pallas_call
from purax.pallas.call import pallas_call_p as pallas_call_p
from purax.pallas.checking import checking as checking
from purax.pallas.context import num_programs as num_programs
from purax.pallas.context import program_id as program_id
from purax.pallas.cost import estimate_cost as estimate_cost
from purax.pallas.language import align_to as align_to
from purax.pallas.language import broadcast_to as broadcast_to
from purax.pallas.language import cdiv as cdiv
from purax.pallas.language import debug_check as debug_check
from purax.pallas.language import debug_print as debug_print
from purax.pallas.language import delay as delay
from purax.pallas.language import dot as dot
from purax.pallas.language import empty as empty
from purax.pallas.language import empty_like as empty_like
from purax.pallas.language import empty_ref_like as empty_ref_like
from purax.pallas.language import load as load
from purax.pallas.language import loop as loop
from purax.pallas.language import multiple_of as multiple_of
from purax.pallas.language import next_power_of_2 as next_power_of_2
from purax.pallas.language import reciprocal as reciprocal
from purax.pallas.language import run_scoped as run_scoped
from purax.pallas.language import run_state as run_state
from purax.pallas.language import select_ref as select_ref
from purax.pallas.language import semaphore_read as semaphore_read
from purax.pallas.language import semaphore_signal as semaphore_signal
from purax.pallas.language import semaphore_wait as semaphore_wait
from purax.pallas.language import store as store
from purax.pallas.language import strides_from_shape as strides_from_shape
from purax.pallas.language import when as when
from purax.pallas.language import with_scoped as with_scoped
from purax.pallas.mesh_kernel import core_map as core_map
from purax.pallas.mesh_kernel import kernel as kernel
from purax.pallas.platforms import DeviceIdType as DeviceIdType
from purax.pallas.platforms import get_global as get_global
from purax.pallas.platforms import lower_as_mlir as lower_as_mlir
from purax.pallas.platforms import pallas_export_experimental as pallas_export_experimental
from purax.pallas.settings import enable_debug_checks as enable_debug_checks
from purax.pallas.settings import enable_poison_buffers as enable_poison_buffers
from purax.pallas.slices import Slice as Slice
from purax.pallas.slices import ds as ds
from purax.pallas.slices import dslice as dslice
from purax.pallas.specs import BlockDim as BlockDim
from purax.pallas.specs import BlockSpec as BlockSpec
from purax.pallas.specs import Blocked as Blocked
from purax.pallas.specs import BoundedSlice as BoundedSlice
from purax.pallas.specs import Buffered as Buffered
from purax.pallas.specs import CompilerParams as CompilerParams
from purax.pallas.specs import CostEstimate as CostEstimate
from purax.pallas.specs import Element as Element
from purax.pallas.specs import GridSpec as GridSpec
from purax.pallas.specs import Indirect as Indirect
from purax.pallas.specs import MemoryRef as MemoryRef
from purax.pallas.specs import MemorySpace as MemorySpace
from purax.pallas.specs import RevisitMode as RevisitMode
from purax.pallas.specs import Squeezed as Squeezed
from purax.pallas.specs import no_block_spec as no_block_spec
from purax.pallas.specs import squeezed as squeezed
from purax.pallas.tuning import autotune as autotune

ANY: Callable[..., Any]
HOST: Callable[..., Any]

__all__ = ['ANY', 'BlockDim', 'BlockSpec', 'Blocked', 'BoundedSlice', 'Buffered', 'CheckedAccess', 'CompilerParams', 'CostEstimate', 'DeviceIdType', 'Element', 'GridRace', 'GridSpec', 'HOST', 'Indirect', 'MemoryRef', 'MemorySpace', 'RevisitMode', 'Slice', 'Squeezed', 'UninitializedRead', 'align_to', 'autotune', 'broadcast_to', 'cdiv', 'checking', 'core_map', 'debug_check', 'debug_print', 'delay', 'dot', 'ds', 'dslice', 'empty', 'empty_like', 'empty_ref_like', 'enable_debug_checks', 'enable_poison_buffers', 'estimate_cost', 'get_global', 'kernel', 'load', 'loop', 'lower_as_mlir', 'multiple_of', 'next_power_of_2', 'no_block_spec', 'num_programs', 'pallas_call', 'pallas_call_p', 'pallas_export_experimental', 'program_id', 'reciprocal', 'run_scoped', 'run_state', 'select_ref', 'semaphore_read', 'semaphore_signal', 'semaphore_wait', 'squeezed', 'store', 'strides_from_shape', 'when', 'with_scoped']
