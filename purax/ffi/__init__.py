"""Kernels of your own, written in C++ or CUDA, as operations: XLA's foreign function interface.

A kernel is compiled with the headers in `include_dir()`, loaded with `ctypes`, registered with `register_ffi_target`
and called with `ffi_call`. The page "Kernels of your own" of the documentation has a whole example.
"""

from purax.ffi.call import ffi_call
from purax.ffi.lowering import build_ffi_lowering_function, ffi_lowering
from purax.ffi.registration import (
    include_dir,
    register_ffi_target,
    register_ffi_target_as_batch_partitionable,
    register_ffi_type,
    register_ffi_type_id,
)
from purax.xla.targets import pycapsule

__all__ = [
    "build_ffi_lowering_function",
    "ffi_call",
    "ffi_lowering",
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_target_as_batch_partitionable",
    "register_ffi_type",
    "register_ffi_type_id",
]
