"""Which modules of purax stand for which modules of jax, and what names that jax has given up stand for now.

`MODULES` maps a module of jax to the modules that are asked for its names, in this order; those that purax does not
have (yet) are passed over, and a module of jax without any is missing. Invariant: a parent is in the table with every
module.
"""

from __future__ import annotations

_OWN = "purax.compat.modules."

# Modules of jax that are the module of the same name in purax, and nothing else.
_SAME = """
ad_checkpoint custom_batching debug distributed dlpack dtypes errors example_libraries
example_libraries.optimizers example_libraries.stax export ffi flatten_util
image lax lax.linalg memory nn nn.initializers numpy numpy.fft numpy.linalg profiler
random scipy scipy.cluster scipy.cluster.vq scipy.fft scipy.integrate scipy.interpolate scipy.linalg
scipy.ndimage scipy.optimize scipy.signal scipy.sparse scipy.sparse.linalg scipy.spatial scipy.spatial.transform
scipy.special scipy.stats stages test_util tree tree_util typing
""".split()

_SCIPY_STATS = """
bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l gumbel_r laplace logistic
multinomial multivariate_normal nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy
""".split()

_EXPERIMENTAL = """
array_serialization buffer_callback checkify colocated_python compilation_cache compilation_cache.compilation_cache
compute_on control_deps custom_partitioning fused jet key_reuse layout mesh_utils multihost_utils ode overlap
pjit profiler random rnn roofline roofline.roofline roofline.rooflines scheduling_groups serialize_executable
shard_alike shard_map source_mapper source_mapper.common source_mapper.generate_map source_mapper.hlo
source_mapper.jaxpr source_mapper.mlir sparse sparse.ad sparse.linalg sparse.util topologies xla_metadata
""".split()

# The modules of sparse arrays in jax, and the files that hold what stands in each.
_SPARSE = {
    "api": ("creation",),
    "bcoo": ("bcoo", "products", "shaping", "util"),
    "bcsr": ("compressed", "util"),
    "coo": ("compressed", "util"),
    "csr": ("compressed", "util"),
    "random": ("creation",),
    "transform": ("transform", "values"),
}
# The bindings of MLIR, which are jaxlib's own.
_MLIR = """
dialects.arith dialects.builtin dialects.chlo dialects.func dialects.math dialects.memref dialects.mpmd dialects.scf
dialects.sdy dialects.sparse_tensor dialects.stablehlo dialects.vector ir passmanager
""".split()

_PALLAS = """
fuser mosaic_gpu ops ops.gpu ops.gpu.attention ops.gpu.decode_attention ops.gpu.layer_norm ops.gpu.rms_norm
ops.gpu.softmax ops.tpu ops.tpu.flash_attention ops.tpu.matmul ops.tpu.megablox ops.tpu.megablox.gmm
ops.tpu.megablox.ops ops.tpu.paged_attention ops.tpu.splash_attention ops.tpu.splash_attention.splash_attention_kernel
ops.tpu.splash_attention.splash_attention_mask tpu triton
""".split()

MODULES: dict[str, tuple[str, ...]] = {
    "jax": (_OWN + "top", "purax", _OWN + "top_after"),
    "jax.config": (_OWN + "config",),
    "jax.version": ("purax.compat.version",),
    "jax.ops": ("purax.numpy._reductions.segments",),
    "jax.lib": (_OWN + "lib",),
    "jax.lib.xla_bridge": (_OWN + "backend",),
    "jax.lib.xla_extension": (_OWN + "pxla",),
    "jax.util": (_OWN + "util",),
    "jax.api_util": (_OWN + "api_util",),
    "jax.core": (_OWN + "core",),
    "jax.extend": (),
    "jax.extend.backend": (_OWN + "backend",),
    "jax.cloud_tpu_init": (),
    "jax.extend.core": (_OWN + "core",),
    "jax.extend.lowering": (_OWN + "extend_lowering",),
    "jax.extend.mlir": (_OWN + "extend_mlir",),
    "jax.extend.mlir.dialects": (),
    **{f"jax.extend.mlir.{name}": (f"jaxlib.mlir.{name}",) for name in _MLIR},
    "jax.extend.random": (_OWN + "extend_random",),
    "jax.extend.sharding": (_OWN + "extend_sharding",),
    "jax.extend.core.primitives": (_OWN + "primitives",),
    "jax.extend.ifrt_programs": (),
    "jax.extend.ifrt_programs.ifrt_programs": (),
    "jax.extend.linear_util": (_OWN + "linear_util",),
    "jax.extend.source_info_util": (_OWN + "source_info_util",),
    "jax.linear_util": (_OWN + "linear_util",),
    "jax.interpreters": (),
    "jax.interpreters.ad": (_OWN + "ad",),
    "jax.interpreters.batching": (_OWN + "batching",),
    "jax.interpreters.mlir": (_OWN + "mlir",),
    "jax.interpreters.partial_eval": (_OWN + "partial_eval",),
    "jax.interpreters.pxla": (_OWN + "pxla",),
    "jax.interpreters.xla": (_OWN + "xla",),
    "jax.experimental": ("purax.experimental", _OWN + "experimental"),
    **{f"jax.{name}": (f"purax.{name}",) for name in _SAME},
    **{f"jax.experimental.{name}": (f"purax.experimental.{name}",) for name in _EXPERIMENTAL},
    "jax.numpy": (_OWN + "numpy", "purax.numpy"),
    "jax.experimental.pallas": ("purax.pallas",),
    **{f"jax.experimental.pallas.{name}": (f"purax.pallas.{name}",) for name in _PALLAS},
    **{f"jax.scipy.stats.{name}": (f"purax.scipy.stats.{name}",) for name in _SCIPY_STATS},
    **{
        f"jax.experimental.sparse.{name}": tuple(f"purax.experimental.sparse.{file}" for file in files)
        for name, files in _SPARSE.items()
    },
    "jax.experimental.pjit": ("purax.experimental.pjit", _OWN + "pjit"),
    "jax.experimental.array_serialization.serialization": ("purax.experimental.array_serialization",),
    **{
        f"jax.experimental.colocated_python.{name}": ("purax.experimental.colocated_python",)
        for name in ("api", "func_backend", "obj", "obj_backend")
    },
    "jax.experimental.colocated_python.func": ("purax.experimental.colocated_python",),
    "jax.experimental.colocated_python.serialization": ("purax.experimental.colocated_python",),
    "jax.experimental.maps": (_OWN + "pjit",),
    "jax.sharding": ("purax.sharding",),
    "jax.custom_derivatives": ("purax.custom_derivatives", _OWN + "custom_derivatives"),
    "jax.ref": (_OWN + "references",),
    "jax.experimental.hijax": ("purax.compat.private.hijax",),
    "jax._src.checkify": ("purax.experimental.checkify",),
    "jax._src.state": (),
    "jax._src.state.types": ("purax.compat.private.state",),
    "jax.monitoring": ("purax.monitoring", _OWN + "monitoring"),
    "jax._src": (),
    "jax._src.core": (_OWN + "core",),
    "jax._src.public_test_util": ("purax.testing.check_grads", "purax.testing.closeness"),
    "jax._src.flatten_util": ("purax.flatten_util",),
    "jax._src.xla_bridge": (_OWN + "backend",),
    "jax._src.interpreters": (),
    "jax._src.interpreters.ad": (_OWN + "ad",),
    "jax._src.interpreters.batching": (_OWN + "batching",),
    "jax._src.interpreters.mlir": (_OWN + "mlir",),
    "jax._src.interpreters.partial_eval": (_OWN + "partial_eval",),
    "jax._src.interpreters.pxla": (_OWN + "pxla",),
    "jax._src.util": (_OWN + "util",),
    "jax._src.api_util": (_OWN + "api_util",),
    "jax._src.linear_util": (_OWN + "linear_util",),
    "jax._src.tree_util": ("purax.compat.private.tree_util", "purax.tree_util"),
    **{
        f"jax._src.{name}": (f"purax.compat.private.{name}",)
        for name in (
            "ad_util",
            "compiler",
            "dispatch",
            "distributed",
            "dtypes",
            "earray",
            "literals",
            "traceback_util",
        )
    },
}

# Older names: what they are now, and what to write instead.
OLDER_NAMES: dict[str, tuple[str, str]] = {}


def _older(old_module: str, new_module: str, pairs: str) -> None:
    """Adds pairs `old=new`: the names `old` of one module of jax are the names `new` of another, or of itself."""
    for pair in pairs.split():
        old, new = pair.split("=")
        where = new_module.replace("jax", "purax", 1)
        OLDER_NAMES[f"{old_module}.{old}"] = (f"{where}.{new}", f"write `{new_module}.{new}`")


_older(
    "jax.numpy",
    "jax.numpy",
    "alltrue=all sometrue=any product=prod cumproduct=cumprod round_=round row_stack=vstack msort=sort "
    "trapz=trapezoid in1d=isin DeviceArray=ndarray",
)
_older(
    "jax",
    "jax.tree",
    "tree_map=map tree_multimap=map tree_flatten=flatten tree_unflatten=unflatten tree_leaves=leaves "
    "tree_structure=structure tree_transpose=transpose tree_reduce=reduce tree_all=all",
)
_older("jax", "jax.tree_util", "treedef_is_leaf=treedef_is_leaf")
_older("jax.tree_util", "jax.tree", "tree_multimap=map")
_older("jax.random", "jax.random", "shuffle=permutation")
_older("jax", "jax", "host_count=process_count host_id=process_index soft_pmap=vmap DeviceArray=Array")
_older("jax.interpreters.xla", "jax", "DeviceArray=Array")
_older("jax.interpreters.pxla", "jax", "ShardedDeviceArray=Array")
_older("jax.lib.xla_extension", "jax", "DeviceArray=Array")
_older("jax.random", "jax", "KeyArray=Array")
_older(
    "jax.ops",
    "x.at[index]",
    "index_update=set index_add=add index_mul=multiply index_min=min index_max=max index=set",
)
for _name in ("index", "index_update", "index_add", "index_mul", "index_min", "index_max"):
    _advice = OLDER_NAMES[f"jax.ops.{_name}"][1].removesuffix("`") + "(values)`"
    OLDER_NAMES[f"jax.ops.{_name}"] = (f"purax.compat.index_update.{_name}", _advice)

for _name in ("lpmn", "lpmn_values"):
    OLDER_NAMES[f"jax.scipy.special.{_name}"] = (f"purax.scipy.special.legendre.{_name}", "no replacement is planned")

# The names of the submodules of each module.
PACKAGES: dict[str, set[str]] = {}
for _module in MODULES:
    PACKAGES.setdefault(_module.rpartition(".")[0], set()).add(_module.rpartition(".")[2])
