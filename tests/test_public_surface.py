"""The public names of purax are those of jax 0.10.2; what is not there yet, or on purpose, is listed with its reason."""

import importlib

import pytest

import purax as px

# The names of `jax` 0.10.2 that do not begin with an underscore.
JAX = """
Array Device NamedSharding P Ref ShapeDtypeStruct Shard ad allow_f16_reductions api_util array_garbage_collection_guard
auto_pcast block_until_ready check_tracer_leaks checking_leaks checkpoint checkpoint_policies clear_caches closure_convert
config copy_to_host_async core custom_batching custom_derivatives custom_gradient custom_jvp custom_vjp debug debug_infs
debug_key_reuse debug_nans default_backend default_device default_matmul_precision default_prng_impl device_count device_get
device_put devices disable_jit distributed dlpack ds dtypes effects_barrier empty_ref enable_checks enable_custom_prng
enable_x64 ensure_compile_time_eval errors eval_shape experimental explain_cache_misses export ffi float0 free_ref freeze
fwd_and_bwd grad hessian host_count host_id host_ids image interpreters jacfwd jacobian jacrev
jax2tf_associative_scan_reductions jit jvp lax legacy_prng_key lib linear_transpose linearize live_arrays local_device_count
local_devices log_compiles make_array_from_callback make_array_from_process_local_data make_array_from_single_device_arrays
make_jaxpr make_mesh make_user_context memory monitoring named_call named_scope new_ref nn no_execution no_tracing numpy
numpy_dtype_promotion numpy_rank_promotion ops pmap print_environment_info process_count process_index process_indices
profiler pure_callback random ref remat remove_size_one_mesh_axis_from_type reshard scipy set_mesh shard_map sharding smap
softmax_custom_jvp stages thread_guard threefry_partitionable transfer_guard transfer_guard_device_to_device
transfer_guard_device_to_host transfer_guard_host_to_device tree tree_util typeof typing value_and_grad version vjp vmap
""".split()

MANY_DEVICES = """
NamedSharding P Shard auto_pcast distributed ds host_count host_id host_ids make_array_from_callback
make_array_from_process_local_data make_array_from_single_device_arrays make_mesh pmap process_indices
remove_size_one_mesh_axis_from_type reshard set_mesh shard_map sharding smap
""".split()
LIBRARIES = "debug effects_barrier experimental export image monitoring ops profiler pure_callback scipy".split()
COMPATIBILITY = "ad api_util core dlpack ffi interpreters lib print_environment_info version".split()
STATE = "Ref empty_ref free_ref freeze new_ref ref memory".split()
INTERNAL = """
allow_f16_reductions array_garbage_collection_guard jax2tf_associative_scan_reductions make_user_context no_execution
no_tracing thread_guard
""".split()

# Packages of purax itself that bear the name of one of jax's.
OTHERS = ("core", "ops")

MISSING = {
    **dict.fromkeys(MANY_DEVICES, "arrays over several devices are not there yet"),
    **dict.fromkeys(LIBRARIES, "these libraries are not there yet"),
    **dict.fromkeys(COMPATIBILITY, "comes with the mode in which `import jax` means purax"),
    **dict.fromkeys(STATE, "mutable references are not there yet"),
    **dict.fromkeys(INTERNAL, "a switch of jax's own machinery"),
}


@pytest.mark.parametrize("name", JAX)
def test_name(name):
    try:
        present = getattr(px, name) is not None
    except (AttributeError, ModuleNotFoundError):
        present = False
    if name in MISSING:
        assert not present or name in OTHERS, f"purax.{name} is there now: take it off the list of missing names"
    else:
        assert present, f"purax.{name} is missing and not listed"


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("custom_derivatives", ["SymbolicZero", "closure_convert", "custom_jvp", "custom_vjp", "custom_gradient"]),
        ("custom_batching", ["custom_vmap", "sequential_vmap"]),
        ("ad_checkpoint", ["checkpoint", "checkpoint_name", "checkpoint_policies", "print_saved_residuals"]),
        ("test_util", ["check_grads", "check_jvp", "check_vjp"]),
        ("nn", ["relu", "gelu", "softmax", "log_softmax", "one_hot", "dot_product_attention", "initializers"]),
        ("lax", ["cond", "switch", "scan", "while_loop", "fori_loop", "psum", "all_gather", "conv_general_dilated"]),
    ],
)
def test_modules(module, names):
    found = importlib.import_module(f"purax.{module}")
    assert not [name for name in names if not hasattr(found, name)]
