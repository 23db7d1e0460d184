"""The public names of `jax.lax` in version 0.10.2, kept as data; those that purax lacks are listed with the reason. The
list can only shrink: a name that is there must leave it.
"""

from __future__ import annotations

import inspect

import jax
import pytest

import purax.lax
from purax.core.primitive import Primitive

JAX_VERSION = "0.10.2"
NAMES = """
AccuracyMode ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers DotAlgorithm DotAlgorithmPreset
DotDimensionNumbers FftType GatherDimensionNumbers GatherScatterMode Precision PrecisionLike
RaggedDotDimensionNumbers RandomAlgorithm RoundingMethod ScatterDimensionNumbers Tolerance abs abs_p acos
acos_p acosh acosh_p add add_p after_all after_all_p all_gather all_gather_p all_to_all all_to_all_p and_p
approx_max_k approx_min_k approx_top_k_p argmax argmax_p argmin argmin_p asin asin_p asinh asinh_p
associative_scan atan atan2 atan2_p atan_p atanh atanh_p axis_index axis_index_p axis_size batch_matmul
bessel_i0e bessel_i0e_p bessel_i1e bessel_i1e_p betainc bitcast_convert_type bitcast_convert_type_p
bitwise_and bitwise_not bitwise_or bitwise_xor broadcast broadcast_in_dim broadcast_in_dim_p broadcast_like
broadcast_shapes broadcast_to_rank broadcasted_iota cbrt cbrt_p ceil ceil_p clamp clamp_p clz clz_p collapse
complex complex_p composite concatenate concatenate_p cond cond_p conj conj_p conv conv_dimension_numbers
conv_general_dilated conv_general_dilated_local conv_general_dilated_p conv_general_dilated_patches
conv_general_permutations conv_general_shape_tuple conv_shape_tuple conv_transpose
conv_transpose_shape_tuple conv_with_general_padding convert_element_type convert_element_type_p copy_p cos
cos_p cosh cosh_p create_token create_token_p cumlogsumexp cumlogsumexp_p cummax cummax_p cummin cummin_p
cumprod cumprod_p cumsum cumsum_p custom_linear_solve custom_root dce_sink dce_sink_p device_put_p digamma
digamma_p div div_p dot dot_general dot_general_p dtype dynamic_index_in_dim dynamic_slice
dynamic_slice_in_dim dynamic_slice_p dynamic_update_index_in_dim dynamic_update_slice
dynamic_update_slice_in_dim dynamic_update_slice_p empty eq eq_p eq_to_p erf erf_inv erf_inv_p erf_p erfc
erfc_p exp exp2 exp2_p exp_p expand_dims expm1 expm1_p fft fft_p floor floor_p fori_loop full full_like
gather gather_p ge ge_p gt gt_p igamma igamma_grad_a igamma_grad_a_p igamma_p igammac igammac_p imag imag_p
index_in_dim index_take integer_pow integer_pow_p iota iota_p is_finite is_finite_p le le_p le_to_p lgamma
lgamma_p linalg linear_solve_p log log1p log1p_p log_p logistic logistic_p lt lt_p lt_to_p map max max_p min
min_p mul mul_p mulhi mulhi_p ne ne_p neg neg_p nextafter nextafter_p not_p optimization_barrier
optimization_barrier_p or_p pad pad_p padtype_to_pads pbroadcast pcast platform_dependent pmax pmax_p pmean
pmin pmin_p polygamma polygamma_p population_count population_count_p pow pow_p ppermute ppermute_p precv
psend pshuffle psum psum_p psum_scatter pswapaxes ragged_all_to_all ragged_all_to_all_p ragged_dot
ragged_dot_general random_gamma_grad real real_p reciprocal reduce reduce_and reduce_and_p reduce_max
reduce_max_p reduce_min reduce_min_p reduce_or reduce_or_p reduce_p reduce_precision reduce_precision_p
reduce_prod reduce_prod_p reduce_sum reduce_sum_p reduce_window reduce_window_max_p reduce_window_min_p
reduce_window_p reduce_window_shape_tuple reduce_window_sum_p reduce_xor reduce_xor_p
regularized_incomplete_beta_p rem rem_p reshape reshape_p rev rev_p rng_bit_generator rng_bit_generator_p
rng_uniform rng_uniform_p round round_p rsqrt rsqrt_p scaled_dot scan scan_p scatter scatter_add
scatter_add_p scatter_apply scatter_max scatter_max_p scatter_min scatter_min_p scatter_mul scatter_mul_p
scatter_p scatter_sub scatter_sub_p select select_and_gather_add_p select_and_scatter_add_p
select_and_scatter_p select_n select_n_p shape_as_value sharding_constraint_p shift_left shift_left_p
shift_right_arithmetic shift_right_arithmetic_p shift_right_logical shift_right_logical_p sign sign_p sin
sin_p sinh sinh_p slice slice_in_dim slice_p sort sort_key_val sort_p split split_p sqrt sqrt_p square
square_p squeeze squeeze_p stack stack_p stage stage_p stop_gradient stop_gradient_p sub sub_p switch tan
tan_p tanh tanh_p tile tile_p top_k top_k_p transpose transpose_p unstack unstack_p while_loop while_p
with_sharding_constraint xor_p zeta zeta_p
""".split()

MISSING = {
    "ragged_all_to_all is made of other operations": "ragged_all_to_all_p",
    "a token is an empty array, ordered by optimization_barrier": "after_all_p create_token_p",
    "results are exact, by top_k": "approx_top_k_p",
    "windows are differentiated by slices and pads": (
        "select_and_gather_add_p select_and_scatter_add_p select_and_scatter_p"
    ),
    "copy_p lifts a value into a program": "stage_p",
    "unstack is split and squeeze": "unstack_p",
}
LACKING = {name: reason for reason, names in MISSING.items() for name in names.split()}

# Keywords of jax's functions that purax's lack.
OTHER_ARGUMENTS = {
    "all_gather": {"to"},  # of arrays on several devices
}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in LACKING])
def test_the_name_is_there(name):
    value = getattr(purax.lax, name)
    assert isinstance(value, Primitive) == name.endswith("_p")
    if inspect.isfunction(value):
        assert value.__doc__, f"{name} has no docstring"


def test_missing_names_are_missing():
    assert set(LACKING) <= set(NAMES)
    assert not [name for name in LACKING if hasattr(purax.lax, name)], "take these off the list"


@pytest.mark.skipif(jax.__version__ != JAX_VERSION, reason="the list is of another version")
def test_the_list_is_complete():
    assert sorted(NAMES) == sorted(name for name in dir(jax.lax) if not name.startswith("_"))


@pytest.mark.skipif(jax.__version__ != JAX_VERSION, reason="the list is of another version")
@pytest.mark.parametrize("name", [n for n in NAMES if inspect.isfunction(getattr(purax.lax, n, None))])
def test_functions_take_the_arguments_of_jax(name):
    """By the same names and in the same order; purax may take more keywords."""

    def positional(function):
        parameters = inspect.signature(function).parameters.values()
        return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]

    def keywords(function):
        parameters = inspect.signature(function).parameters.values()
        return {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}

    ours, theirs = getattr(purax.lax, name), getattr(jax.lax, name)
    wanted = positional(theirs)
    assert positional(ours)[: len(wanted)] == wanted
    missing = keywords(theirs) - keywords(ours) - set(positional(ours)) - OTHER_ARGUMENTS.get(name, set())
    assert not missing
