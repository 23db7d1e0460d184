"""What is left of jax's public names and parameters in the import mode, with the reasons; the test keeps it exact."""

from __future__ import annotations

VERSION = "0.10.2"

# reason -> module: names.
NAMES: dict[str, dict[str, str]] = {
    "operations that are compositions here, and so have no primitive": {
        "jax.lax": (
            "after_all_p approx_top_k_p create_token_p ragged_all_to_all_p select_and_gather_add_p "
            "select_and_scatter_add_p select_and_scatter_p stage_p unstack_p"
        ),
        "jax.extend.core.primitives": (
            "after_all_p approx_top_k_p create_token_p custom_lin_p empty2_p get_p ragged_all_to_all_p random_gamma_p "
            "random_seed_p select_and_gather_add_p select_and_scatter_add_p select_and_scatter_p swap_p"
        ),
        "jax.random": "random_gamma_p",
        "jax.extend.random": "threefry2x32_p",
        "jax.custom_derivatives": "remat_opt_p",
        "jax.experimental.custom_partitioning": "custom_partitioning_p",
        "jax.experimental.rnn": "rnn_abstract_eval rnn_bwd_abstract_eval rnn_bwd_p rnn_fwd_p",
        "jax.experimental.multihost_utils": (
            "global_array_to_host_local_array_impl global_array_to_host_local_array_p gtl_abstract_eval "
            "host_local_array_to_global_array_impl host_local_array_to_global_array_p ltg_abstract_eval ltg_batcher"
        ),
        "jax.experimental.scheduling_groups": "dce_jaxpr_xla_metadata_rule xla_metadata_call_p",
        "jax.experimental.sparse": (
            "bcoo_dot_general_p bcoo_dot_general_sampled_p bcoo_extract_p bcoo_fromdense_p bcoo_sort_indices_p "
            "bcoo_spdot_general_p bcoo_sum_duplicates_p bcoo_todense_p bcoo_transpose_p bcsr_dot_general_p "
            "bcsr_extract_p bcsr_fromdense_p bcsr_todense_p coo_fromdense_p coo_matmat_p coo_matvec_p coo_todense_p "
            "csr_fromdense_p csr_matmat_p csr_matvec_p csr_todense_p todense_p SparseTracer"
        ),
        "jax.experimental.sparse.api": "todense_p",
        "jax.experimental.sparse.bcoo": (
            "bcoo_dot_general_p bcoo_dot_general_sampled_p bcoo_extract_p bcoo_fromdense_p bcoo_sort_indices_p "
            "bcoo_spdot_general_p bcoo_sum_duplicates_p bcoo_todense_p bcoo_transpose_p coo_spmm_p coo_spmv_p"
        ),
        "jax.experimental.sparse.bcsr": "bcsr_dot_general_p bcsr_extract_p bcsr_fromdense_p bcsr_todense_p",
        "jax.experimental.sparse.coo": "coo_fromdense_p coo_matmat_p coo_matvec_p coo_todense_p",
        "jax.experimental.sparse.csr": "csr_fromdense_p csr_matmat_p csr_matvec_p csr_todense_p",
        "jax.experimental.sparse.linalg": "spsolve_p",
    },
    "steps inside of an algorithm, or helpers of a file, which nobody calls from outside": {
        "jax": "ad",
        "jax.example_libraries.optimizers": "Step",
        "jax.experimental.fused": "debug_info typeof",
        "jax.experimental.jet": "call_param_updaters register_pytree_node tree_structure treedef_is_leaf",
        "jax.experimental.ode": (
            "abs2 fit_4th_order_polynomial initial_step_size interp_fit_dopri mean_error_ratio optimal_step_size "
            "promote_dtypes_inexact ravel_first_arg runge_kutta_step"
        ),
        "jax.experimental.multihost_utils": "P",
        "jax.experimental.rnn": "custom_vjp",
        "jax.experimental.roofline.roofline": (
            "AbstractMesh Mesh NamedSharding ValidRooflineDtype dce_jaxpr shard_map"
        ),
        "jax.experimental.roofline.rooflines": "prim",
        "jax.experimental.scheduling_groups": "FlatTree attr_get debug_info",
        "jax.experimental.colocated_python.api": "make_callable wrap_class",
        "jax.experimental.colocated_python.func": (
            "FunctionInfo Specialization is_prng_key_dtype jax_register_backend_cache make_callable physical_sharding"
        ),
        "jax.experimental.colocated_python.func_backend": "SINGLETON_RESULT_STORE",
        "jax.experimental.colocated_python.obj": "SINGLETON_INSTANCE_REGISTRY register_cache wrap_class",
        "jax.experimental.colocated_python.obj_backend": "SINGLETON_OBJECT_STORE",
        "jax.experimental.sparse.ad": "flatten_fun_for_sparse_ad is_sparse",
        "jax.experimental.sparse.api": "Array",
        "jax.experimental.sparse.bcoo": (
            "Buffer CUSPARSE_DATA_DTYPES CUSPARSE_INDEX_DTYPES DotDimensionNumbers GatherDimensionNumbers "
            "canonicalize_axis ranges_like remaining"
        ),
        "jax.experimental.sparse.bcsr": "DotDimensionNumbers",
        "jax.experimental.sparse.coo": "promote_dtypes",
        "jax.experimental.sparse.csr": "promote_dtypes",
        "jax.experimental.sparse.random": "Array vmap",
        "jax.experimental.sparse.test_util": (
            "BatchedDotGeneralProperties DotDimensionNumbers MATMUL_TOL SparseLayout SparseTestCase is_sparse "
            "iter_bcsr_layouts iter_sparse_layouts iter_subsets rand_bcoo rand_bcsr rand_sparse"
        ),
        "jax.experimental.sparse.transform": (
            "SparseTrace SparseTracer bcoo_impl bcoo_multiply_dense bcoo_multiply_sparse bcsr_impl impl lift_jvp "
            "method prim sparse_rules_bcoo sparse_rules_bcsr sparsify_fun"
        ),
        "jax.experimental.sparse.util": "Array DotDimensionNumbers flatten_axes",
    },
    "the lowering to MLIR is text here: a rule sees one operation, not the program around it": {
        "jax.interpreters.mlir": (
            "LoweringParameters SPMDAxisContext ShapePolyLoweringState ShardingContext core_call_lowering ir_attribute "
            "ir_tree_registry ir_type_handlers jaxpr_subcomp lower_jaxpr_to_fun lower_jaxpr_to_module "
            "lowerable_effects register_constant_handler"
        ),
        "jax.interpreters.pxla": "create_compile_options",
        "jax.interpreters.xla": "Backend",
        "jax.interpreters.ad": "linearize",
        "jax.extend.mlir": "lower_with_sharding_in_types",
        "jax.extend.core": "AbstractToken CallPrimitive Token",
        "jax.debug": "DebugEffect OrderedDebugEffect",
    },
    "sharding is Shardy's, not GSPMD's": {"jax.extend.sharding": "GSPMDSharding"},
    "XLA's CPU and GPU plugins have no such passes, factories or transfers that could be reached from here": {
        "jax.extend.xla": "PipelineStage clear_hlo_module_transformation register_hlo_module_transformation",
        "jax.extend.backend": "register_backend_factory",
        "jax.experimental.transfer": (
            "TYPE_CHECKING TransferConnection TransferServer make_error_array start_transfer_server use_cpp_class "
            "use_cpp_method"
        ),
    },
    "a tool that jax 0.12 has taken out again: maps from lines of a program to lines of its dumps": {
        "jax.experimental.source_mapper": (
            "MappingsGenerator Pass SourceMap SourceMapDump all_passes canonicalize_filename compile_with_env "
            "create_mlir_sourcemap filter_passes generate_sourcemaps register_pass"
        ),
        "jax.experimental.source_mapper.common": (
            "CompileFn GenerateDumpFn Pass SourceMapDump all_passes compile_with_env filter_passes flag_env "
            "register_pass"
        ),
        "jax.experimental.source_mapper.generate_map": "SourceMapGeneratorFn generate_sourcemaps",
        "jax.experimental.source_mapper.hlo": (
            "HloPass METADATA_REGEX optimized_generate_dump original_hlo_generate_dump parse_hlo_dump "
            "stable_hlo_generate_dump trace_and_lower"
        ),
        "jax.experimental.source_mapper.jaxpr": "canonicalize_filename compile_jaxpr make_jaxpr_dump",
        "jax.experimental.source_mapper.mlir": (
            "CALLSITE_REGEX LOC_REGEX Location Redirect SCOPED_REGEX SRC_REGEX create_mlir_sourcemap "
            "parse_mlir_locations"
        ),
    },
    "dtypes whose tangents have another dtype are not there": {"jax.experimental": "primal_tangent_dtype"},
    "TensorStore's own functions and jax's older manager; `pytree_serialization` and the manager are there": {
        "jax.experimental.array_serialization.serialization": (
            "AsyncManager BarrierTimeoutError Format GlobalAsyncCheckpointManagerBase TS_CONTEXT async_deserialize "
            "async_serialize is_remote_storage logger run_deserialization run_serialization"
        ),
        "jax.experimental.array_serialization.tensorstore_impl": (
            "Format Future PathLike Transaction async_deserialize async_serialize combine_kvstores "
            "estimate_read_memory_footprint get_tensorstore_spec is_tensorstore_spec_leaf logger "
            "make_single_device_sharding merge_nested_ts_specs verify_tensorstore_spec"
        ),
    },
}
# reason -> functions whose parameters differ so that a call that fits jax's may not fit here.
PARAMETERS: dict[str, str] = {
    "made by the system, not by programs": (
        "jax.Ref jax.ref.Ref jax.experimental.EArray jax.core.AbstractValue jax.core.Tracer "
        "jax.experimental.checkify.Error jax.experimental.hijax.TransformedRef jax.experimental.jet.JetTrace "
        "jax.experimental.jet.JetTracer jax.export.Exported jax.extend.core.JaxprEqn jax.extend.core.Var "
        "jax.extend.linear_util.WrappedFun jax.extend.lowering.LoweringRuleContext "
        "jax.extend.source_info_util.SourceInfo jax.interpreters.ad.JVPTrace "
        "jax.interpreters.mlir.LoweringRuleContext jax.interpreters.mlir.ModuleContext "
        "jax.interpreters.partial_eval.DynamicJaxprTracer jax.interpreters.partial_eval.JaxprTracer "
        "jax.stages.Compiled jax.stages.Lowered jax.stages.Traced"
    ),
    "an abstract class, of which each kind of array has its own parameters": (
        "jax.experimental.sparse.JAXSparse jax.experimental.sparse.ad.JAXSparse jax.experimental.sparse.api.JAXSparse "
        "jax.experimental.sparse.bcoo.JAXSparse jax.experimental.sparse.bcsr.JAXSparse "
        "jax.experimental.sparse.coo.JAXSparse jax.experimental.sparse.csr.JAXSparse"
    ),
    "decorators, which are called with the function alone and then with the rest": (
        "jax.extend.core.jaxpr_as_fun jax.extend.linear_util.transformation "
        "jax.extend.linear_util.transformation_with_aux"
    ),
    "how the arguments of `smap` are cut must be said": "jax.smap",
}
