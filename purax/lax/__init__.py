"""Operations one level below `purax.numpy`, and structured control flow, as `jax.lax`.

Operands are arrays of one dtype and, up to axes of size 1 and scalars, one shape: nothing is promoted.
"""

# ruff: noqa: F401, A004
from purax.control_flow.branches import cond, switch
from purax.control_flow.composite import composite
from purax.control_flow.linear_solve import custom_linear_solve, custom_root
from purax.control_flow.maps import associative_scan, map
from purax.control_flow.platforms import platform_dependent
from purax.control_flow.scan import scan
from purax.control_flow.while_loop import fori_loop, while_loop
from purax.lax import linalg
from purax.lax.accuracy import (
    AccuracyMode,
    Tolerance,
)
from purax.lax.arithmetic import (
    RoundingMethod,
    abs,
    add,
    cbrt,
    ceil,
    complex,
    conj,
    div,
    floor,
    imag,
    integer_pow,
    max,
    min,
    mul,
    mulhi,
    neg,
    nextafter,
    real,
    reciprocal,
    rem,
    round,
    rsqrt,
    sign,
    sqrt,
    square,
    sub,
)
from purax.lax.collectives import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pbroadcast,
    pcast,
    pmax,
    pmean,
    pmin,
    ppermute,
    pshuffle,
    psum,
    psum_scatter,
    pswapaxes,
    pvary,
)
from purax.lax.contraction import (
    PrecisionLike,
    batch_matmul,
    dot,
    dot_general,
    scaled_dot,
)
from purax.lax.conversion import (
    bitcast_convert_type,
    convert_element_type,
    reduce_precision,
)
from purax.lax.convolution import (
    ConvGeneralDilatedDimensionNumbers,
    conv,
    conv_dimension_numbers,
    conv_general_dilated,
    conv_transpose,
    conv_with_general_padding,
    padtype_to_pads,
)
from purax.lax.creation import (
    broadcasted_iota,
    dtype,
    empty,
    full,
    full_like,
    iota,
    shape_as_value,
)
from purax.lax.cumulative import (
    cumlogsumexp,
    cummax,
    cummin,
    cumprod,
    cumsum,
)
from purax.lax.exchanges import precv, psend, ragged_all_to_all
from purax.lax.fft import FftType, fft
from purax.lax.gather_scatter import (
    gather,
    index_take,
    scatter,
    scatter_add,
    scatter_apply,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from purax.lax.general_reductions import (
    reduce,
    reduce_window,
    reduce_window_shape_tuple,
)
from purax.lax.logic import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    clamp,
    clz,
    eq,
    ge,
    gt,
    is_finite,
    le,
    lt,
    ne,
    population_count,
    select,
    select_n,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
)
from purax.lax.ordering import (
    after_all,
    create_token,
    dce_sink,
    optimization_barrier,
    stage,
    stop_gradient,
)
from purax.lax.patches import (
    conv_general_dilated_local,
    conv_general_dilated_patches,
    conv_general_permutations,
    conv_general_shape_tuple,
    conv_shape_tuple,
    conv_transpose_shape_tuple,
)
from purax.lax.primitives import *  # noqa: F403
from purax.lax.ragged import (
    RaggedDotDimensionNumbers,
    ragged_dot,
    ragged_dot_general,
)
from purax.lax.random import (
    rng_bit_generator,
    rng_uniform,
)
from purax.lax.reductions import (
    argmax,
    argmin,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_sum,
    reduce_xor,
)
from purax.lax.shaping import (
    broadcast,
    broadcast_in_dim,
    broadcast_like,
    broadcast_shapes,
    broadcast_to_rank,
    collapse,
    concatenate,
    expand_dims,
    reshape,
    rev,
    split,
    squeeze,
    stack,
    tile,
    transpose,
    unstack,
)
from purax.lax.slicing import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    index_in_dim,
    pad,
    slice,
    slice_in_dim,
)
from purax.lax.sorting import (
    approx_max_k,
    approx_min_k,
    sort,
    sort_key_val,
    top_k,
)
from purax.lax.special import (
    bessel_i0e,
    bessel_i1e,
    betainc,
    digamma,
    erf,
    erf_inv,
    erfc,
    igamma,
    igamma_grad_a,
    igammac,
    lgamma,
    polygamma,
    random_gamma_grad,
    zeta,
)
from purax.lax.transcendental import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    exp,
    exp2,
    expm1,
    log,
    log1p,
    logistic,
    pow,
    sin,
    sinh,
    tan,
    tanh,
)
from purax.primitives.products.contraction import (
    DotAlgorithm,
    DotAlgorithmPreset,
    DotDimensionNumbers,
    Precision,
)
from purax.primitives.products.convolution import ConvDimensionNumbers
from purax.primitives.random.rng_bit_generator import RandomAlgorithm
from purax.primitives.shape.gather_scatter import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from purax.primitives.sharding_constraint import sharding_constraint_p
from purax.sharding.constraints import with_sharding_constraint
