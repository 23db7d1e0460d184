"""purax: a NumPy whose functions can be differentiated, compiled, vectorized and spread over devices.

>>> import purax as px, purax.numpy as jnp
>>> px.grad(lambda x: jnp.sum(jnp.sin(x)))(jnp.zeros(3))
Array([1., 1., 1.], dtype=float32)
"""

# ruff: noqa: F401, E402, I001
from __future__ import annotations

import importlib as _importlib
import sys as _sys
from functools import partial as _partial
from typing import Any as _Any

from purax.core.guarded_imports import CollectionPaused as _CollectionPaused
from purax.core.guarded_imports import guard_imports as _guard_imports

_paused = _CollectionPaused()  # and if an import fails, it goes with this module

# Packages that not every program needs are imported when they are first used.
_LAZY = (
    "ad_checkpoint",
    "checkpoints",
    "custom_batching",
    "custom_derivatives",
    "debug",
    "distributed",
    "dlpack",
    "dtypes",
    "experimental",
    "explorer",
    "export",
    "ffi",
    "flatten_util",
    "image",
    "lax",
    "memory",
    "nn",
    "ops",
    "pallas",
    "planning",
    "profiler",
    "ragged",
    "random",
    "ref",
    "scipy",
    "sharding",
    "stages",
    "test_util",
    "testing",
    "typing",
)
_guard_imports(__path__, (*_LAZY, "example_libraries", "numpy", "tree", "tree_util"))

from purax import config as _flags
from purax import errors, numpy, tree, tree_util
from purax.config import config
from purax.control_flow.checkpoint import checkpoint, checkpoint_policies, remat
from purax.control_flow.custom_jvp import custom_jvp
from purax.control_flow.custom_vjp import closure_convert, custom_gradient, custom_vjp
from purax.core import dtypes as _dtypes
from purax.core.array import Array
from purax.core.source import named_scope
from purax.core.trace import Tracer as _Tracer
from purax.core.tracebacks import guard as _guard
from purax.core.tracebacks import guard_module as _guard_module
from purax.core.tracebacks import install_excepthook as _install_excepthook
from purax.errors import shown as _shown
from purax.numpy._numpy_calls import install_module as _install_module
from purax.purity.watcher import install as _install_watcher
from purax.python_control_flow.rewriter import PythonRewriter as _PythonRewriter
from purax.api.autodiff import fwd_and_bwd, grad, jvp, linear_transpose, linearize, value_and_grad, vjp
from purax.api.compile_time import ensure_compile_time_eval
from purax.api.jacobians import hessian, jacfwd, jacobian, jacrev
from purax.api.jit import (
    clear_caches,
    eval_shape,
    jit,
    make_jaxpr,
    named_call,
)
from purax.core.rewriting_hook import install_rewriter as _install_rewriter
from purax.api.stages import ShapeDtypeStruct
from purax.api.transfer import (
    block_until_ready,
    copy_to_host_async,
    device_get,
    device_put,
    live_arrays,
    typeof,
)
from purax.api.vmap import vmap
from purax.xla.array import DeviceArray as _DeviceArray
from purax.xla.client import (
    default_backend,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
    process_indices,
)
from purax.xla.jaxlib_api import Device

__version__ = "0.1.0"
float0 = _dtypes.float0

_FUNCTIONS = {
    "NamedSharding": "purax.sharding.shardings",
    "P": "purax.core.specs:PartitionSpec",
    "Ref": "purax.ref",
    "Shard": "purax.sharding.shards",
    "empty_ref": "purax.ref",
    "free_ref": "purax.ref",
    "freeze": "purax.ref",
    "new_ref": "purax.ref",
    "make_array_from_callback": "purax.sharding.global_arrays",
    "make_array_from_process_local_data": "purax.sharding.global_arrays",
    "make_array_from_single_device_arrays": "purax.sharding.global_arrays",
    "CompilerEffortLevel": "purax.xla.effort",
    "ds": "purax.numpy._indexing.slices",
    "get_abstract_mesh": "purax.sharding.mesh",
    "get_mesh": "purax.sharding.mesh",
    "Inline": "purax.api.inlining",
    "make_user_context": "purax.config",
    "make_mesh": "purax.sharding.mesh",
    "use_abstract_mesh": "purax.sharding.mesh",
    "plan": "purax.planning.planner",
    "pmap": "purax.sharding.pmap",
    "reshard": "purax.sharding",
    "set_mesh": "purax.sharding.mesh",
    "shard_map": "purax.sharding.shard_map",
    "smap": "purax.sharding.smap",
    "effects_barrier": "purax.xla.callbacks",
    "error_if": "purax.callbacks.error_if",
    "pure_callback": "purax.callbacks.pure",
    "assert_pure": "purax.purity.check_pure",
    "check_pure": "purax.purity.check_pure",
    "explain": "purax.explorer",
}

_CONTEXTS = (
    "allow_f16_reductions",
    "auto_pcast",
    "check_tracer_leaks",
    "checking_leaks",
    "debug_infs",
    "debug_key_reuse",
    "debug_nans",
    "default_device",
    "default_matmul_precision",
    "default_prng_impl",
    "disable_jit",
    "enable_checks",
    "enable_custom_prng",
    "enable_x64",
    "explain_cache_misses",
    "legacy_prng_key",
    "no_execution",
    "no_tracing",
    "log_compiles",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "safe_gradients",
    "softmax_custom_jvp",
    "threefry_partitionable",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
)


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        try:
            module = _importlib.import_module(f"purax.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"purax.{name}":
                raise
            raise AttributeError(f"module 'purax' has no attribute {_shown(name)}") from None
        globals()[name] = module
        return module
    if name in _FUNCTIONS:
        path, _, own_name = _FUNCTIONS[name].partition(":")
        globals()[name] = function = getattr(_importlib.import_module(path), own_name or name)
        _guard(function)
        return function
    if name in _CONTEXTS:
        return getattr(_importlib.import_module("purax.config"), name)
    raise AttributeError(f"module 'purax' has no attribute {_shown(name)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_FUNCTIONS, *_CONTEXTS})


for _name in (
    "special",
    "linalg",
    "fft",
    "stats",
    "signal",
    "ndimage",
    "integrate",
    "interpolate",
    "optimize",
):
    _install_module(f"scipy.{_name}", _partial(_importlib.import_module, f"purax.scipy.{_name}"))
_install_rewriter(_PythonRewriter())
_install_excepthook()
_install_watcher()
purity = _flags.purity  # the context manager; the package of this name is found by import statements
_guard_module(_sys.modules[__name__])
_guard(_Tracer, _DeviceArray, Array)
del _paused
