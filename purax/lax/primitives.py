"""The primitives under the names that `jax.lax` gives them, for programs that take jaxprs apart."""

# ruff: noqa: F401
from purax.control_flow.branches import cond_p
from purax.control_flow.linear_solve import linear_solve_p
from purax.control_flow.reductions import reduce_p, reduce_window_p
from purax.control_flow.scan import scan_p
from purax.control_flow.while_loop import while_p
from purax.execution.device_put import device_put_p
from purax.primitives.barrier import dce_sink_p, optimization_barrier_p
from purax.primitives.collective.collectives import (
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    pmax_p,
    pmin_p,
    ppermute_p,
    psum_p,
)
from purax.primitives.elementwise.arithmetic import (
    abs_p,
    cbrt_p,
    ceil_p,
    copy_p,
    div_p,
    floor_p,
    integer_pow_p,
    max_p,
    min_p,
    mulhi_p,
    nextafter_p,
    rem_p,
    round_p,
    rsqrt_p,
    sign_p,
    sqrt_p,
    square_p,
    sub_p,
)
from purax.primitives.elementwise.conversion import (
    bitcast_convert_type_p,
    complex_p,
    conj_p,
    convert_element_type_p,
    imag_p,
    real_p,
    reduce_precision_p,
)
from purax.primitives.elementwise.elementwise import add_p, mul_p, neg_p
from purax.primitives.elementwise.logic import (
    and_p,
    clamp_p,
    clz_p,
    eq_p,
    eq_to_p,
    ge_p,
    gt_p,
    is_finite_p,
    le_p,
    le_to_p,
    lt_p,
    lt_to_p,
    ne_p,
    not_p,
    or_p,
    population_count_p,
    select_n_p,
    shift_left_p,
    shift_right_arithmetic_p,
    shift_right_logical_p,
    xor_p,
)
from purax.primitives.elementwise.transcendental import (
    acos_p,
    acosh_p,
    asin_p,
    asinh_p,
    atan2_p,
    atan_p,
    atanh_p,
    cos_p,
    cosh_p,
    exp2_p,
    exp_p,
    expm1_p,
    log1p_p,
    log_p,
    logistic_p,
    pow_p,
    sin_p,
    sinh_p,
    tan_p,
    tanh_p,
)
from purax.primitives.fft import fft_p
from purax.primitives.products.contraction import dot_general_p
from purax.primitives.products.convolution import conv_general_dilated_p
from purax.primitives.random.rng_bit_generator import rng_bit_generator_p
from purax.primitives.random.rng_uniform import rng_uniform_p
from purax.primitives.reductions.cumulative import cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p
from purax.primitives.reductions.reduction import (
    argmax_p,
    argmin_p,
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_xor_p,
)
from purax.primitives.reductions.window_reduction import (
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_sum_p,
)
from purax.primitives.shape.broadcasting import broadcast_in_dim_p, reduce_sum_p, transpose_p
from purax.primitives.shape.dynamic_slicing import dynamic_slice_p, dynamic_update_slice_p
from purax.primitives.shape.gather_scatter import (
    gather_p,
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    scatter_sub_p,
)
from purax.primitives.shape.reshaping import (
    concatenate_p,
    iota_p,
    reshape_p,
    rev_p,
    split_p,
    squeeze_p,
    stack_p,
    tile_p,
)
from purax.primitives.shape.slicing import pad_p, slice_p
from purax.primitives.sorting import sort_p, top_k_p
from purax.primitives.special.special import (
    bessel_i0e_p,
    bessel_i1e_p,
    digamma_p,
    erf_inv_p,
    erf_p,
    erfc_p,
    igamma_grad_a_p,
    igamma_p,
    igammac_p,
    lgamma_p,
    polygamma_p,
    regularized_incomplete_beta_p,
    zeta_p,
)
from purax.primitives.stop_gradient import stop_gradient_p
