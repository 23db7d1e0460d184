# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""purax: a NumPy whose functions can be differentiated, compiled, vectorized and spread over devices."""

from typing import Any
from collections.abc import Callable
from contextlib import AbstractContextManager
from purax import ad_checkpoint as ad_checkpoint
from purax import checkpoints as checkpoints
from purax import custom_batching as custom_batching
from purax import custom_derivatives as custom_derivatives
from purax import debug as debug
from purax import distributed as distributed
from purax import dlpack as dlpack
from purax import dtypes as dtypes
from purax import errors as errors
from purax import example_libraries as example_libraries
from purax import experimental as experimental
from purax import explorer as explorer
from purax import export as export
from purax import ffi as ffi
from purax import flatten_util as flatten_util
from purax import image as image
from purax import lax as lax
from purax import memory as memory
from purax import nn as nn
from purax import numpy as numpy
from purax import ops as ops
from purax import pallas as pallas
from purax import planning as planning
from purax import profiler as profiler
from purax import ragged as ragged
from purax import random as random
from purax import ref as ref
from purax import scipy as scipy
from purax import sharding as sharding
from purax import stages as stages
from purax import test_util as test_util
from purax import testing as testing
from purax import tree as tree
from purax import tree_util as tree_util
from purax import typing as typing
from purax.api.autodiff import fwd_and_bwd as fwd_and_bwd
from purax.api.autodiff import grad as grad
from purax.api.autodiff import jvp as jvp
from purax.api.autodiff import linear_transpose as linear_transpose
from purax.api.autodiff import linearize as linearize
from purax.api.autodiff import value_and_grad as value_and_grad
from purax.api.autodiff import vjp as vjp
from purax.api.compile_time import ensure_compile_time_eval as ensure_compile_time_eval
from purax.api.inlining import Inline as Inline
from purax.api.jacobians import hessian as hessian
from purax.api.jacobians import jacfwd as jacfwd
from purax.api.jacobians import jacobian as jacobian
from purax.api.jacobians import jacrev as jacrev
from purax.api.jit import clear_caches as clear_caches
from purax.api.jit import eval_shape as eval_shape
from purax.api.jit import jit as jit
from purax.api.jit import make_jaxpr as make_jaxpr
from purax.api.jit import named_call as named_call
from purax.api.stages import ShapeDtypeStruct as ShapeDtypeStruct
from purax.api.transfer import block_until_ready as block_until_ready
from purax.api.transfer import copy_to_host_async as copy_to_host_async
from purax.api.transfer import device_get as device_get
from purax.api.transfer import device_put as device_put
from purax.api.transfer import live_arrays as live_arrays
from purax.api.transfer import typeof as typeof
from purax.api.vmap import vmap as vmap
from purax.callbacks.error_if import error_if as error_if
from purax.callbacks.pure import pure_callback as pure_callback
from purax.config import config as config
from purax.config import make_user_context as make_user_context
from purax.control_flow.checkpoint import checkpoint as checkpoint
from purax.control_flow.checkpoint import checkpoint_policies as checkpoint_policies
from purax.control_flow.checkpoint import remat as remat
from purax.control_flow.custom_jvp import custom_jvp as custom_jvp
from purax.control_flow.custom_vjp import closure_convert as closure_convert
from purax.control_flow.custom_vjp import custom_gradient as custom_gradient
from purax.control_flow.custom_vjp import custom_vjp as custom_vjp
from purax.core.array import Array as Array
from purax.core.source import named_scope as named_scope
from purax.core.specs import PartitionSpec as P
from purax.explorer import explain as explain
from purax.numpy._indexing.slices import ds as ds
from purax.planning.planner import plan as plan
from purax.purity.check_pure import assert_pure as assert_pure
from purax.purity.check_pure import check_pure as check_pure
from purax.ref import Ref as Ref
from purax.ref import empty_ref as empty_ref
from purax.ref import free_ref as free_ref
from purax.ref import freeze as freeze
from purax.ref import new_ref as new_ref
from purax.sharding import reshard as reshard
from purax.sharding.global_arrays import make_array_from_callback as make_array_from_callback
from purax.sharding.global_arrays import make_array_from_process_local_data as make_array_from_process_local_data
from purax.sharding.global_arrays import make_array_from_single_device_arrays as make_array_from_single_device_arrays
from purax.sharding.mesh import get_abstract_mesh as get_abstract_mesh
from purax.sharding.mesh import get_mesh as get_mesh
from purax.sharding.mesh import make_mesh as make_mesh
from purax.sharding.mesh import set_mesh as set_mesh
from purax.sharding.mesh import use_abstract_mesh as use_abstract_mesh
from purax.sharding.pmap import pmap as pmap
from purax.sharding.shard_map import shard_map as shard_map
from purax.sharding.shardings import NamedSharding as NamedSharding
from purax.sharding.shards import Shard as Shard
from purax.sharding.smap import smap as smap
from purax.xla.callbacks import effects_barrier as effects_barrier
from purax.xla.client import default_backend as default_backend
from purax.xla.client import device_count as device_count
from purax.xla.client import devices as devices
from purax.xla.client import local_device_count as local_device_count
from purax.xla.client import local_devices as local_devices
from purax.xla.client import process_count as process_count
from purax.xla.client import process_index as process_index
from purax.xla.client import process_indices as process_indices
from purax.xla.effort import CompilerEffortLevel as CompilerEffortLevel
from purax.xla.jaxlib_api import Device as Device

__version__: str
float0: Any
def allow_f16_reductions(value: Any = ...) -> AbstractContextManager[Any]: ...
def auto_pcast(value: Any = ...) -> AbstractContextManager[Any]: ...
def check_tracer_leaks(value: Any = ...) -> AbstractContextManager[Any]: ...
def checking_leaks(value: Any = ...) -> AbstractContextManager[Any]: ...
def debug_infs(value: Any = ...) -> AbstractContextManager[Any]: ...
def debug_key_reuse(value: Any = ...) -> AbstractContextManager[Any]: ...
def debug_nans(value: Any = ...) -> AbstractContextManager[Any]: ...
def default_device(value: Any = ...) -> AbstractContextManager[Any]: ...
def default_matmul_precision(value: Any = ...) -> AbstractContextManager[Any]: ...
def default_prng_impl(value: Any = ...) -> AbstractContextManager[Any]: ...
def disable_jit(value: Any = ...) -> AbstractContextManager[Any]: ...
def enable_checks(value: Any = ...) -> AbstractContextManager[Any]: ...
def enable_custom_prng(value: Any = ...) -> AbstractContextManager[Any]: ...
def enable_x64(value: Any = ...) -> AbstractContextManager[Any]: ...
def explain_cache_misses(value: Any = ...) -> AbstractContextManager[Any]: ...
def legacy_prng_key(value: Any = ...) -> AbstractContextManager[Any]: ...
def no_execution(value: Any = ...) -> AbstractContextManager[Any]: ...
def no_tracing(value: Any = ...) -> AbstractContextManager[Any]: ...
def log_compiles(value: Any = ...) -> AbstractContextManager[Any]: ...
def numpy_dtype_promotion(value: Any = ...) -> AbstractContextManager[Any]: ...
def numpy_rank_promotion(value: Any = ...) -> AbstractContextManager[Any]: ...
def safe_gradients(value: Any = ...) -> AbstractContextManager[Any]: ...
def softmax_custom_jvp(value: Any = ...) -> AbstractContextManager[Any]: ...
def threefry_partitionable(value: Any = ...) -> AbstractContextManager[Any]: ...
def transfer_guard(value: Any = ...) -> AbstractContextManager[Any]: ...
def transfer_guard_device_to_device(value: Any = ...) -> AbstractContextManager[Any]: ...
def transfer_guard_device_to_host(value: Any = ...) -> AbstractContextManager[Any]: ...
def transfer_guard_host_to_device(value: Any = ...) -> AbstractContextManager[Any]: ...
purity: Callable[..., Any]
