# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Kernels of your own, written in C++ or CUDA, as operations: XLA's foreign function interface."""

from purax.ffi.call import ffi_call as ffi_call
from purax.ffi.lowering import build_ffi_lowering_function as build_ffi_lowering_function
from purax.ffi.lowering import ffi_lowering as ffi_lowering
from purax.ffi.registration import include_dir as include_dir
from purax.ffi.registration import register_ffi_target as register_ffi_target
from purax.ffi.registration import register_ffi_target_as_batch_partitionable as register_ffi_target_as_batch_partitionable
from purax.ffi.registration import register_ffi_type as register_ffi_type
from purax.ffi.registration import register_ffi_type_id as register_ffi_type_id
from purax.xla.targets import pycapsule as pycapsule

__all__ = ['build_ffi_lowering_function', 'ffi_call', 'ffi_lowering', 'include_dir', 'pycapsule', 'register_ffi_target', 'register_ffi_target_as_batch_partitionable', 'register_ffi_type', 'register_ffi_type_id']
