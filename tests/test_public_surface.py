"""The public names are JAX's: those of its top level in version 0.10.2 are kept here as data, and those that purax
lacks are listed with the reason. The list can only shrink: a name that is there must leave it.
"""

from __future__ import annotations

import importlib
import inspect

import numpy as np
import pytest

import purax

JAX_VERSION = "0.10.2"
NAMES = """
Array Device NamedSharding P Ref ShapeDtypeStruct Shard ad allow_f16_reductions api_util
array_garbage_collection_guard auto_pcast block_until_ready check_tracer_leaks checking_leaks checkpoint
checkpoint_policies clear_caches closure_convert config copy_to_host_async core custom_batching
custom_derivatives custom_gradient custom_jvp custom_vjp debug debug_infs debug_key_reuse debug_nans
default_backend default_device default_matmul_precision default_prng_impl device_count device_get
device_put devices disable_jit distributed dlpack ds dtypes effects_barrier empty_ref enable_checks
enable_custom_prng enable_x64 ensure_compile_time_eval errors eval_shape experimental
explain_cache_misses export ffi float0 free_ref freeze fwd_and_bwd grad hessian host_count host_id
host_ids image interpreters jacfwd jacobian jacrev jax2tf_associative_scan_reductions jit jvp lax
legacy_prng_key lib linear_transpose linearize live_arrays local_device_count local_devices log_compiles
make_array_from_callback make_array_from_process_local_data make_array_from_single_device_arrays
make_jaxpr make_mesh make_user_context memory monitoring named_call named_scope new_ref nn no_execution
no_tracing numpy numpy_dtype_promotion numpy_rank_promotion ops pmap print_environment_info
process_count process_index process_indices profiler pure_callback random ref remat
remove_size_one_mesh_axis_from_type reshard scipy set_mesh shard_map sharding smap softmax_custom_jvp
stages thread_guard threefry_partitionable transfer_guard transfer_guard_device_to_device
transfer_guard_device_to_host transfer_guard_host_to_device tree tree_util typeof typing value_and_grad
version vjp vmap
""".split()

# What is missing, by what it belongs to.
MISSING = {
    "several devices": "remove_size_one_mesh_axis_from_type",
    "old names of the count and number of the process": "host_count host_id host_ids",
    "information about the installation": "print_environment_info version monitoring",
    "switches of jax that have no meaning here": (
        "array_garbage_collection_guard jax2tf_associative_scan_reductions thread_guard"
    ),
    "internals of jax": "ad api_util lib",
}
LACKING = {name: reason for reason, names in MISSING.items() for name in names.split()}

# The names of modules of which purax has all, but for those after the colon.
MODULES = {
    "tree": "",
    "tree_util": "",
    "errors": "",
    "custom_batching": "",
    "custom_derivatives": "custom_jvp_call_p custom_vjp_call_p remat_opt_p",
    "checkpoint_policies": "",
    "dtypes": "",
    "typing": "",
    "stages": "",
    "export": "",
    "nn": "",
}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in LACKING])
def test_a_name_of_jax_is_a_name_of_purax(name):
    assert hasattr(purax, name)


def test_the_list_of_what_is_missing_is_true():
    assert set(LACKING) <= set(NAMES)
    there = sorted(name for name in LACKING if hasattr(purax, name))
    assert not there, f"these exist now; take them off the list: {there}"


def test_a_missing_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'purax' has no attribute 'no_such_name'"):
        purax.no_such_name  # noqa: B018
    for name in LACKING:
        assert not hasattr(purax, name)


def test_the_names_are_those_of_jax():
    jax = pytest.importorskip("jax")
    if jax.__version__ != JAX_VERSION:
        pytest.skip(f"the names are those of jax {JAX_VERSION}, this is {jax.__version__}")
    # Submodules that some other test imported are attributes too.
    imported = {name for name, value in vars(jax).items() if inspect.ismodule(value)} - set(NAMES)
    assert sorted({name for name in dir(jax) if not name.startswith("_")} - imported) == sorted(NAMES)


@pytest.mark.parametrize("module", MODULES)
def test_the_names_of_a_module_are_those_of_jax(module):
    jax = pytest.importorskip("jax")
    if jax.__version__ != JAX_VERSION:
        pytest.skip(f"compared with jax {JAX_VERSION}, this is {jax.__version__}")
    theirs, ours = getattr(jax, module), getattr(purax, module)
    missing = {name for name in dir(theirs) if not name.startswith("_") and not hasattr(ours, name)}
    assert missing == set(MODULES[module].split())


def test_control_flow_and_collectives_are_in_lax():
    for name in (
        "cond switch scan while_loop fori_loop psum pmean pmax pmin all_gather all_to_all ppermute pshuffle "
        "psum_scatter axis_index axis_size pbroadcast"
    ).split():
        assert hasattr(purax.lax, name), name


def test_everything_public_is_documented():
    for name in NAMES:
        value = getattr(purax, name, None)
        if callable(value) and getattr(value, "__module__", "").startswith("purax"):
            assert (value.__doc__ or "").strip(), name


def test_importing_purax_does_not_import_jax():
    import subprocess
    import sys

    program = "import purax, sys; assert not any(m == 'jax' or m.startswith('jax.') for m in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_modules_are_importable_by_name():
    for name in (
        "ad_checkpoint",
        "custom_batching",
        "custom_derivatives",
        "dtypes",
        "errors",
        "lax",
        "nn",
        "numpy",
        "random",
    ):
        assert importlib.import_module(f"purax.{name}") is getattr(purax, name)


def test_dlpack_and_the_memory_of_arrays():
    """`purax.dlpack` exchanges what jax's does, and an array tells its address and size."""
    jax_dlpack = pytest.importorskip("jax.dlpack")
    for name in "bool int8 uint64 float16 bfloat16 float32 float64 complex64 int4 float8_e4m3fn".split():
        dtype = purax.numpy.dtype(name)
        assert purax.dlpack.is_supported_dtype(dtype) == jax_dlpack.is_supported_dtype(dtype), name
    host = np.arange(1000, dtype=np.float32)
    x = purax.jit(lambda x: x + 1)(host)
    assert x.on_device_size_in_bytes() == host.nbytes
    assert x.unsafe_buffer_pointer() == np.from_dlpack(x).ctypes.data
    assert purax.dlpack.from_dlpack(x).tolist() == (host + 1).tolist()
