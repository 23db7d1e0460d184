"""`jax.config`: the settings of purax under jax's names, in jax's manner.

Flags that purax has are purax's own. Flags that only jax's inner workings have are accepted and remembered, so that
programs that set them run; the first time that one gets another value, a line in the log says that it changes nothing.
"""

from __future__ import annotations

import contextlib
import difflib
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from purax.config import config
from purax.scopes import scoped

# Flags of jax 0.10 that have no meaning in purax, with the values that jax gives them.
WITHOUT_MEANING: dict[str, Any] = {
    "check_vma": False,
    "eager_constant_folding": False,
    "jax2tf_associative_scan_reductions": False,
    "jax2tf_default_native_serialization": True,
    "jax_array": True,
    "jax_array_garbage_collection_guard": None,
    "jax_backend_target": "",
    "jax_bcoo_cusparse_lowering": False,
    "jax_captured_constants_report_frames": 0,
    "jax_captured_constants_warn_bytes": 2_000_000_000,
    "jax_check_proxy_envs": True,
    "jax_compilation_cache_check_contents": False,
    "jax_compilation_cache_expect_pgle": False,
    "jax_compilation_cache_include_metadata_in_key": False,
    "jax_compiler_detailed_logging_min_ops": 10,
    "jax_compiler_enable_remat_pass": True,
    "jax_cpu_collectives_implementation": "gloo",
    "jax_cpu_enable_gloo_collectives": False,
    "jax_cuda_visible_devices": "all",
    "jax_custom_vjp_disable_shape_check": False,
    "jax_data_dependent_tracing_fallback": False,
    "jax_debug_log_modules": "",
    "jax_disable_bwd_checks": False,
    "jax_disable_vmap_shmap_error": False,
    "jax_distributed_debug": False,
    "jax_dynamic_shapes": False,
    "jax_embedded_constants_max_bytes": 32,
    "jax_enable_memories": True,
    "jax_enable_pgle": False,
    "jax_enable_preemption_service": True,
    "jax_enable_recoverability": False,
    "jax_experimental_unsafe_xla_runtime_errors": False,
    "jax_export_calling_convention_version": 10,
    "jax_export_ignore_forward_compatibility": False,
    "jax_debug_leaked_clients_on_clear_backends": False,
    "jax_scan3": False,
    "jax_remat3": False,
    "jax_custom_vjp3": False,
    "jax_use_simplified_jaxpr_constants": False,
    "jax_disallow_mesh_context_manager": False,
    "jax_error_checking_behavior_divide": "ignore",
    "jax_error_checking_behavior_nan": "ignore",
    "jax_error_checking_behavior_oob": "ignore",
    "jax_use_emit_pipeline_primitive": False,
    "jax_high_dynamic_range_gumbel": False,
    "jax_ragged_dot_use_ragged_dot_instruction": True,
    "jax_ragged_dot_use_gpu_pallas_triton_lowering": False,
    "jax_pallas_verbose_errors": False,
    "jax_pallas_enable_debug_checks": False,
    "jax_pallas_use_mosaic_gpu": True,
    "jax_mosaic_allow_hlo": False,
    "jax_pallas_poison_buffers": False,
    "jax_oneapi_visible_devices": "all",
    "mock_num_gpu_processes": 0,
    "jax_mock_gpu_topology": "",
    "jax_force_dcn_cross_host_transfers": False,
    "jax_sort_devices_by_process_index": True,
    "jax_cross_host_transfer_socket_address": "",
    "jax_cross_host_transport_addresses": "",
    "jax_cross_host_transfer_timeout_seconds": None,
    "jax_cross_host_transfer_transfer_size": None,
    "jax_cpu_get_local_topology_timeout_minutes": 2,
    "jax_cpu_get_global_topology_timeout_minutes": 5,
    "jax_include_debug_info_in_dumps": True,
    "jax_include_full_tracebacks_in_locations": True,
    "jax_log_checkpoint_residuals": False,
    "jax_mutable_array_checks": True,
    "jax_persistent_cache_enable_xla_caches": "xla_gpu_per_fusion_autotune_cache_dir",
    "jax_persistent_cache_min_entry_size_bytes": 0,
    "jax_pgle_aggregation_percentile": 90,
    "jax_pgle_profiling_runs": 3,
    "jax_pjrt_client_create_options": None,
    "jax_pmap_no_rank_reduction": True,
    "jax_pmap_shmap_merge": True,
    "jax_pprint_use_color": True,
    "jax_raise_persistent_cache_errors": False,
    "jax_refs_to_pins": False,
    "jax_remove_custom_partitioning_ptr_from_cache_key": False,
    "jax_remove_size_one_mesh_axis_from_type": False,
    "jax_rocm_visible_devices": "all",
    "jax_send_traceback_to_runtime": "off",
    "jax_serialization_version": 0,
    "jax_share_binary_between_hosts": False,
    "jax_share_binary_between_hosts_timeout_ms": 1_200_000,
    "jax_source_url_schema": None,
    "jax_spmd_mode": "allow_all",
    "jax_thread_guard": False,
    "jax_threefry_gpu_kernel_lowering": False,
    "jax_traceback_in_locations_limit": 100,
    "jax_tracer_error_num_traceback_frames": 5,
    "jax_use_direct_linearize": True,
    "jax_use_magma": "auto",
    "jax_use_shardy_partitioner": True,
    "jax_xla_backend": "",
    "jax_xla_profile_version": 0,
}

# Flags of jax that are another flag of purax: its name, and the value that switches it on.
_MEANS = {
    "jax_error_checking_behavior_nan": ("debug_nans", "raise"),
    "jax_error_checking_behavior_oob": ("check_indices", "raise"),
}
logger = logging.getLogger("purax")


class JaxSettings:
    """What `jax.config` is in the compatible mode.

    >>> from purax.compat.settings import settings
    >>> settings.jax_enable_x64, settings.jax_optimization_level
    (False, 'UNKNOWN')
    """

    def __init__(self) -> None:
        self.__dict__["_remembered"] = dict(WITHOUT_MEANING)
        self.__dict__["_said"] = set()

    def __getattr__(self, name: str) -> Any:
        remembered = self.__dict__["_remembered"]
        if name in remembered:
            return remembered[name]
        try:
            return getattr(config, name)
        except AttributeError:
            raise AttributeError(_unknown(name)) from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"jax.config.{name} cannot be assigned; write jax.config.update({name!r}, {value!r})"
        )

    def __contains__(self, name: str) -> bool:
        return name in self.values

    @property
    def values(self) -> dict[str, Any]:
        """All values in force, under jax's names."""
        found = {
            f"jax_{name}": getattr(config, flag.name)
            for flag in config.flags.values()
            for name in (flag.name, *flag.aliases)
        }
        return found | self.__dict__["_remembered"]

    def read(self, name: str) -> Any:
        """The value in force of a flag."""
        return getattr(self, name)

    def update(self, name: str, value: Any) -> None:
        """Sets a flag for the whole process.

        Args:
            name: as jax calls it, `"jax_enable_x64"`.
            value: the new value.

        Raises:
            AttributeError: neither purax nor jax has such a flag.
        """
        remembered = self.__dict__["_remembered"]
        if name in remembered:
            self._say(name, value)
            remembered[name] = value
            if name in _MEANS:
                meant, on = _MEANS[name]
                config.update(meant, value == on)
            return
        try:
            config.update(name, value)
        except AttributeError as error:
            if "unrecognized" not in str(error):
                raise
            raise AttributeError(_unknown(name)) from None

    def _say(self, name: str, value: Any) -> None:
        """Says once of a flag without effect that it has none."""
        if name not in _MEANS and name not in self.__dict__["_said"] and value != WITHOUT_MEANING[name]:
            self.__dict__["_said"].add(name)
            logger.info(
                "jax.config.%s = %r is remembered, but purax has nothing that it would change", name, value
            )

    @scoped
    def override(self, name: str, value: Any) -> Iterator[None]:
        """A context in which a flag without effect has another value."""
        before = self.__dict__["_remembered"][name]
        self.update(name, value)
        try:
            yield
        finally:
            self.__dict__["_remembered"][name] = before

    def read_environment(self, environment: Mapping[str, str] | None = None) -> None:
        """Sets the flags that `JAX_*` variables name: `JAX_ENABLE_X64=1`."""
        config.read_environment("JAX_", environment)
        variables = os.environ if environment is None else environment
        for name, value in self.__dict__["_remembered"].items():
            text = variables.get(name.upper())
            if text is not None:
                with contextlib.suppress(ValueError):
                    self.__dict__["_remembered"][name] = _like(value, text)

    # -- absl, which jax can take its flags from

    def config_with_absl(self) -> None:
        """Defines the flags with absl and takes over those that the command line sets, once absl has read it."""
        from absl import app, flags

        for name, value in self.values.items():
            if name in flags.FLAGS:
                continue
            define: Any = flags.DEFINE_bool if isinstance(value, bool) else flags.DEFINE_string
            default = value if isinstance(value, bool) or value is None else str(value)
            define(name, default, "a flag of jax, provided by purax")
        app.call_after_init(lambda: self._take_over(flags.FLAGS))

    def parse_flags_with_absl(self) -> None:
        """Reads the flags of jax from the command line now, and leaves all others to absl."""
        self.config_with_absl()
        from absl import flags

        own = [word for word in sys.argv[1:] if word.lstrip("-").removeprefix("no").startswith("jax")]
        if not flags.FLAGS.is_parsed():  # afterwards they are, so that tests may ask for flags of absl's
            flags.FLAGS([sys.argv[0], *own], known_only=True)
            self._take_over(flags.FLAGS)

    def _take_over(self, flags: Any) -> None:
        for name, value in self.values.items():
            if name in flags and flags[name].present:
                given = flags[name].value
                self.update(name, _like(value, given) if isinstance(given, str) else given)

    def __repr__(self) -> str:
        return f"<jax.config, provided by purax: {config.values!r}>"

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)


def _like(value: Any, text: str) -> Any:
    """A flag's value read from a text, of the type of the present value."""
    if isinstance(value, bool):
        return text.strip().lower() in ("1", "true", "yes", "on", "t", "y")
    return type(value)(text) if isinstance(value, int | float) else text


def _unknown(name: str) -> str:
    close = difflib.get_close_matches(name, settings.values, 2)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    return f"unrecognized config option: {name!r}; neither jax nor purax has it.{hint}"


settings = JaxSettings()


def context_of(name: str) -> Callable[..., Any]:
    """The context manager of a flag without effect, as jax has one for many flags."""

    def manager(new_val: Any = _ABSENT) -> Any:
        if new_val is _ABSENT:
            raise TypeError(f"the context manager of {name} needs a value")
        return settings.override(name, new_val)

    manager.__name__ = manager.__qualname__ = name.removeprefix("jax_")
    manager.__doc__ = f"Context manager: the flag `{name}`, which is remembered and changes nothing."
    return manager


_ABSENT = object()
