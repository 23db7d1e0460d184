# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""Operations one level below `purax.numpy`, and structured control flow, as `jax.lax`."""

from typing import Any
from collections.abc import Sequence
from purax.core.array import Array
from purax.typing import ArrayLike
from purax.control_flow.branches import cond as cond
from purax.control_flow.branches import cond_p as cond_p
from purax.control_flow.branches import switch as switch
from purax.control_flow.composite import composite as composite
from purax.control_flow.linear_solve import custom_linear_solve as custom_linear_solve
from purax.control_flow.linear_solve import custom_root as custom_root
from purax.control_flow.linear_solve import linear_solve_p as linear_solve_p
from purax.control_flow.maps import associative_scan as associative_scan
from purax.control_flow.maps import map as map
from purax.control_flow.platforms import platform_dependent as platform_dependent
from purax.control_flow.reductions import reduce_p as reduce_p
from purax.control_flow.reductions import reduce_window_p as reduce_window_p
from purax.control_flow.scan import scan as scan
from purax.control_flow.scan import scan_p as scan_p
from purax.control_flow.while_loop import fori_loop as fori_loop
from purax.control_flow.while_loop import while_loop as while_loop
from purax.control_flow.while_loop import while_p as while_p
from purax.execution.device_put import device_put_p as device_put_p
from purax.lax import linalg as linalg
from purax.lax.accuracy import AccuracyMode as AccuracyMode
from purax.lax.accuracy import Tolerance as Tolerance
from purax.lax.arithmetic import RoundingMethod as RoundingMethod
from purax.lax.arithmetic import abs as abs
from purax.lax.arithmetic import conj as conj
from purax.lax.arithmetic import integer_pow as integer_pow
from purax.lax.arithmetic import mul as mul
from purax.lax.arithmetic import mulhi as mulhi
from purax.lax.arithmetic import reciprocal as reciprocal
from purax.lax.arithmetic import round as round
from purax.lax.collectives import all_gather as all_gather
from purax.lax.collectives import all_to_all as all_to_all
from purax.lax.collectives import axis_index as axis_index
from purax.lax.collectives import axis_size as axis_size
from purax.lax.collectives import pbroadcast as pbroadcast
from purax.lax.collectives import pcast as pcast
from purax.lax.collectives import pmax as pmax
from purax.lax.collectives import pmean as pmean
from purax.lax.collectives import pmin as pmin
from purax.lax.collectives import ppermute as ppermute
from purax.lax.collectives import pshuffle as pshuffle
from purax.lax.collectives import psum as psum
from purax.lax.collectives import psum_scatter as psum_scatter
from purax.lax.collectives import pswapaxes as pswapaxes
from purax.lax.collectives import pvary as pvary
from purax.lax.contraction import PrecisionLike as PrecisionLike
from purax.lax.contraction import batch_matmul as batch_matmul
from purax.lax.contraction import dot as dot
from purax.lax.contraction import dot_general as dot_general
from purax.lax.contraction import scaled_dot as scaled_dot
from purax.lax.conversion import bitcast_convert_type as bitcast_convert_type
from purax.lax.conversion import convert_element_type as convert_element_type
from purax.lax.conversion import reduce_precision as reduce_precision
from purax.lax.convolution import ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers
from purax.lax.convolution import conv as conv
from purax.lax.convolution import conv_dimension_numbers as conv_dimension_numbers
from purax.lax.convolution import conv_general_dilated as conv_general_dilated
from purax.lax.convolution import conv_transpose as conv_transpose
from purax.lax.convolution import conv_with_general_padding as conv_with_general_padding
from purax.lax.convolution import padtype_to_pads as padtype_to_pads
from purax.lax.creation import broadcasted_iota as broadcasted_iota
from purax.lax.creation import dtype as dtype
from purax.lax.creation import empty as empty
from purax.lax.creation import full as full
from purax.lax.creation import full_like as full_like
from purax.lax.creation import iota as iota
from purax.lax.creation import shape_as_value as shape_as_value
from purax.lax.exchanges import precv as precv
from purax.lax.exchanges import psend as psend
from purax.lax.exchanges import ragged_all_to_all as ragged_all_to_all
from purax.lax.fft import FftType as FftType
from purax.lax.fft import fft as fft
from purax.lax.gather_scatter import gather as gather
from purax.lax.gather_scatter import index_take as index_take
from purax.lax.gather_scatter import scatter as scatter
from purax.lax.gather_scatter import scatter_apply as scatter_apply
from purax.lax.general_reductions import reduce as reduce
from purax.lax.general_reductions import reduce_window as reduce_window
from purax.lax.general_reductions import reduce_window_shape_tuple as reduce_window_shape_tuple
from purax.lax.logic import clamp as clamp
from purax.lax.logic import select as select
from purax.lax.logic import select_n as select_n
from purax.lax.ordering import after_all as after_all
from purax.lax.ordering import create_token as create_token
from purax.lax.ordering import dce_sink as dce_sink
from purax.lax.ordering import optimization_barrier as optimization_barrier
from purax.lax.ordering import stage as stage
from purax.lax.ordering import stop_gradient as stop_gradient
from purax.lax.patches import conv_general_dilated_local as conv_general_dilated_local
from purax.lax.patches import conv_general_dilated_patches as conv_general_dilated_patches
from purax.lax.patches import conv_general_permutations as conv_general_permutations
from purax.lax.patches import conv_general_shape_tuple as conv_general_shape_tuple
from purax.lax.patches import conv_shape_tuple as conv_shape_tuple
from purax.lax.patches import conv_transpose_shape_tuple as conv_transpose_shape_tuple
from purax.lax.ragged import RaggedDotDimensionNumbers as RaggedDotDimensionNumbers
from purax.lax.ragged import ragged_dot as ragged_dot
from purax.lax.ragged import ragged_dot_general as ragged_dot_general
from purax.lax.random import rng_bit_generator as rng_bit_generator
from purax.lax.random import rng_uniform as rng_uniform
from purax.lax.reductions import argmax as argmax
from purax.lax.reductions import argmin as argmin
from purax.lax.reductions import reduce_sum as reduce_sum
from purax.lax.shaping import broadcast as broadcast
from purax.lax.shaping import broadcast_in_dim as broadcast_in_dim
from purax.lax.shaping import broadcast_like as broadcast_like
from purax.lax.shaping import broadcast_shapes as broadcast_shapes
from purax.lax.shaping import broadcast_to_rank as broadcast_to_rank
from purax.lax.shaping import collapse as collapse
from purax.lax.shaping import concatenate as concatenate
from purax.lax.shaping import expand_dims as expand_dims
from purax.lax.shaping import reshape as reshape
from purax.lax.shaping import rev as rev
from purax.lax.shaping import split as split
from purax.lax.shaping import squeeze as squeeze
from purax.lax.shaping import stack as stack
from purax.lax.shaping import tile as tile
from purax.lax.shaping import transpose as transpose
from purax.lax.shaping import unstack as unstack
from purax.lax.slicing import dynamic_index_in_dim as dynamic_index_in_dim
from purax.lax.slicing import dynamic_slice as dynamic_slice
from purax.lax.slicing import dynamic_slice_in_dim as dynamic_slice_in_dim
from purax.lax.slicing import dynamic_update_index_in_dim as dynamic_update_index_in_dim
from purax.lax.slicing import dynamic_update_slice as dynamic_update_slice
from purax.lax.slicing import dynamic_update_slice_in_dim as dynamic_update_slice_in_dim
from purax.lax.slicing import index_in_dim as index_in_dim
from purax.lax.slicing import pad as pad
from purax.lax.slicing import slice as slice
from purax.lax.slicing import slice_in_dim as slice_in_dim
from purax.lax.sorting import approx_max_k as approx_max_k
from purax.lax.sorting import approx_min_k as approx_min_k
from purax.lax.sorting import sort as sort
from purax.lax.sorting import sort_key_val as sort_key_val
from purax.lax.sorting import top_k as top_k
from purax.lax.special import betainc as betainc
from purax.lax.special import igamma_grad_a as igamma_grad_a
from purax.lax.transcendental import pow as pow
from purax.primitives.barrier import dce_sink_p as dce_sink_p
from purax.primitives.barrier import optimization_barrier_p as optimization_barrier_p
from purax.primitives.collective.collectives import all_gather_p as all_gather_p
from purax.primitives.collective.collectives import all_to_all_p as all_to_all_p
from purax.primitives.collective.collectives import axis_index_p as axis_index_p
from purax.primitives.collective.collectives import pmax_p as pmax_p
from purax.primitives.collective.collectives import pmin_p as pmin_p
from purax.primitives.collective.collectives import ppermute_p as ppermute_p
from purax.primitives.collective.collectives import psum_p as psum_p
from purax.primitives.elementwise.arithmetic import abs_p as abs_p
from purax.primitives.elementwise.arithmetic import cbrt_p as cbrt_p
from purax.primitives.elementwise.arithmetic import ceil_p as ceil_p
from purax.primitives.elementwise.arithmetic import copy_p as copy_p
from purax.primitives.elementwise.arithmetic import div_p as div_p
from purax.primitives.elementwise.arithmetic import floor_p as floor_p
from purax.primitives.elementwise.arithmetic import integer_pow_p as integer_pow_p
from purax.primitives.elementwise.arithmetic import max_p as max_p
from purax.primitives.elementwise.arithmetic import min_p as min_p
from purax.primitives.elementwise.arithmetic import mulhi_p as mulhi_p
from purax.primitives.elementwise.arithmetic import nextafter_p as nextafter_p
from purax.primitives.elementwise.arithmetic import rem_p as rem_p
from purax.primitives.elementwise.arithmetic import round_p as round_p
from purax.primitives.elementwise.arithmetic import rsqrt_p as rsqrt_p
from purax.primitives.elementwise.arithmetic import sign_p as sign_p
from purax.primitives.elementwise.arithmetic import sqrt_p as sqrt_p
from purax.primitives.elementwise.arithmetic import square_p as square_p
from purax.primitives.elementwise.arithmetic import sub_p as sub_p
from purax.primitives.elementwise.conversion import bitcast_convert_type_p as bitcast_convert_type_p
from purax.primitives.elementwise.conversion import complex_p as complex_p
from purax.primitives.elementwise.conversion import conj_p as conj_p
from purax.primitives.elementwise.conversion import convert_element_type_p as convert_element_type_p
from purax.primitives.elementwise.conversion import imag_p as imag_p
from purax.primitives.elementwise.conversion import real_p as real_p
from purax.primitives.elementwise.conversion import reduce_precision_p as reduce_precision_p
from purax.primitives.elementwise.elementwise import add_p as add_p
from purax.primitives.elementwise.elementwise import mul_p as mul_p
from purax.primitives.elementwise.elementwise import neg_p as neg_p
from purax.primitives.elementwise.logic import and_p as and_p
from purax.primitives.elementwise.logic import clamp_p as clamp_p
from purax.primitives.elementwise.logic import clz_p as clz_p
from purax.primitives.elementwise.logic import eq_p as eq_p
from purax.primitives.elementwise.logic import eq_to_p as eq_to_p
from purax.primitives.elementwise.logic import ge_p as ge_p
from purax.primitives.elementwise.logic import gt_p as gt_p
from purax.primitives.elementwise.logic import is_finite_p as is_finite_p
from purax.primitives.elementwise.logic import le_p as le_p
from purax.primitives.elementwise.logic import le_to_p as le_to_p
from purax.primitives.elementwise.logic import lt_p as lt_p
from purax.primitives.elementwise.logic import lt_to_p as lt_to_p
from purax.primitives.elementwise.logic import ne_p as ne_p
from purax.primitives.elementwise.logic import not_p as not_p
from purax.primitives.elementwise.logic import or_p as or_p
from purax.primitives.elementwise.logic import population_count_p as population_count_p
from purax.primitives.elementwise.logic import select_n_p as select_n_p
from purax.primitives.elementwise.logic import shift_left_p as shift_left_p
from purax.primitives.elementwise.logic import shift_right_arithmetic_p as shift_right_arithmetic_p
from purax.primitives.elementwise.logic import shift_right_logical_p as shift_right_logical_p
from purax.primitives.elementwise.logic import xor_p as xor_p
from purax.primitives.elementwise.transcendental import acos_p as acos_p
from purax.primitives.elementwise.transcendental import acosh_p as acosh_p
from purax.primitives.elementwise.transcendental import asin_p as asin_p
from purax.primitives.elementwise.transcendental import asinh_p as asinh_p
from purax.primitives.elementwise.transcendental import atan2_p as atan2_p
from purax.primitives.elementwise.transcendental import atan_p as atan_p
from purax.primitives.elementwise.transcendental import atanh_p as atanh_p
from purax.primitives.elementwise.transcendental import cos_p as cos_p
from purax.primitives.elementwise.transcendental import cosh_p as cosh_p
from purax.primitives.elementwise.transcendental import exp2_p as exp2_p
from purax.primitives.elementwise.transcendental import exp_p as exp_p
from purax.primitives.elementwise.transcendental import expm1_p as expm1_p
from purax.primitives.elementwise.transcendental import log1p_p as log1p_p
from purax.primitives.elementwise.transcendental import log_p as log_p
from purax.primitives.elementwise.transcendental import logistic_p as logistic_p
from purax.primitives.elementwise.transcendental import pow_p as pow_p
from purax.primitives.elementwise.transcendental import sin_p as sin_p
from purax.primitives.elementwise.transcendental import sinh_p as sinh_p
from purax.primitives.elementwise.transcendental import tan_p as tan_p
from purax.primitives.elementwise.transcendental import tanh_p as tanh_p
from purax.primitives.fft import fft_p as fft_p
from purax.primitives.products.contraction import DotAlgorithm as DotAlgorithm
from purax.primitives.products.contraction import DotAlgorithmPreset as DotAlgorithmPreset
from purax.primitives.products.contraction import DotDimensionNumbers as DotDimensionNumbers
from purax.primitives.products.contraction import Precision as Precision
from purax.primitives.products.contraction import dot_general_p as dot_general_p
from purax.primitives.products.convolution import ConvDimensionNumbers as ConvDimensionNumbers
from purax.primitives.products.convolution import conv_general_dilated_p as conv_general_dilated_p
from purax.primitives.random.rng_bit_generator import RandomAlgorithm as RandomAlgorithm
from purax.primitives.random.rng_bit_generator import rng_bit_generator_p as rng_bit_generator_p
from purax.primitives.random.rng_uniform import rng_uniform_p as rng_uniform_p
from purax.primitives.reductions.cumulative import cumlogsumexp_p as cumlogsumexp_p
from purax.primitives.reductions.cumulative import cummax_p as cummax_p
from purax.primitives.reductions.cumulative import cummin_p as cummin_p
from purax.primitives.reductions.cumulative import cumprod_p as cumprod_p
from purax.primitives.reductions.cumulative import cumsum_p as cumsum_p
from purax.primitives.reductions.reduction import argmax_p as argmax_p
from purax.primitives.reductions.reduction import argmin_p as argmin_p
from purax.primitives.reductions.reduction import reduce_and_p as reduce_and_p
from purax.primitives.reductions.reduction import reduce_max_p as reduce_max_p
from purax.primitives.reductions.reduction import reduce_min_p as reduce_min_p
from purax.primitives.reductions.reduction import reduce_or_p as reduce_or_p
from purax.primitives.reductions.reduction import reduce_prod_p as reduce_prod_p
from purax.primitives.reductions.reduction import reduce_xor_p as reduce_xor_p
from purax.primitives.reductions.window_reduction import reduce_window_max_p as reduce_window_max_p
from purax.primitives.reductions.window_reduction import reduce_window_min_p as reduce_window_min_p
from purax.primitives.reductions.window_reduction import reduce_window_sum_p as reduce_window_sum_p
from purax.primitives.shape.broadcasting import broadcast_in_dim_p as broadcast_in_dim_p
from purax.primitives.shape.broadcasting import reduce_sum_p as reduce_sum_p
from purax.primitives.shape.broadcasting import transpose_p as transpose_p
from purax.primitives.shape.dynamic_slicing import dynamic_slice_p as dynamic_slice_p
from purax.primitives.shape.dynamic_slicing import dynamic_update_slice_p as dynamic_update_slice_p
from purax.primitives.shape.gather_scatter import GatherDimensionNumbers as GatherDimensionNumbers
from purax.primitives.shape.gather_scatter import GatherScatterMode as GatherScatterMode
from purax.primitives.shape.gather_scatter import ScatterDimensionNumbers as ScatterDimensionNumbers
from purax.primitives.shape.gather_scatter import gather_p as gather_p
from purax.primitives.shape.gather_scatter import scatter_add_p as scatter_add_p
from purax.primitives.shape.gather_scatter import scatter_max_p as scatter_max_p
from purax.primitives.shape.gather_scatter import scatter_min_p as scatter_min_p
from purax.primitives.shape.gather_scatter import scatter_mul_p as scatter_mul_p
from purax.primitives.shape.gather_scatter import scatter_p as scatter_p
from purax.primitives.shape.gather_scatter import scatter_sub_p as scatter_sub_p
from purax.primitives.shape.reshaping import concatenate_p as concatenate_p
from purax.primitives.shape.reshaping import iota_p as iota_p
from purax.primitives.shape.reshaping import reshape_p as reshape_p
from purax.primitives.shape.reshaping import rev_p as rev_p
from purax.primitives.shape.reshaping import split_p as split_p
from purax.primitives.shape.reshaping import squeeze_p as squeeze_p
from purax.primitives.shape.reshaping import stack_p as stack_p
from purax.primitives.shape.reshaping import tile_p as tile_p
from purax.primitives.shape.slicing import pad_p as pad_p
from purax.primitives.shape.slicing import slice_p as slice_p
from purax.primitives.sharding_constraint import sharding_constraint_p as sharding_constraint_p
from purax.primitives.sorting import sort_p as sort_p
from purax.primitives.sorting import top_k_p as top_k_p
from purax.primitives.special.special import bessel_i0e_p as bessel_i0e_p
from purax.primitives.special.special import bessel_i1e_p as bessel_i1e_p
from purax.primitives.special.special import digamma_p as digamma_p
from purax.primitives.special.special import erf_inv_p as erf_inv_p
from purax.primitives.special.special import erf_p as erf_p
from purax.primitives.special.special import erfc_p as erfc_p
from purax.primitives.special.special import igamma_grad_a_p as igamma_grad_a_p
from purax.primitives.special.special import igamma_p as igamma_p
from purax.primitives.special.special import igammac_p as igammac_p
from purax.primitives.special.special import lgamma_p as lgamma_p
from purax.primitives.special.special import polygamma_p as polygamma_p
from purax.primitives.special.special import regularized_incomplete_beta_p as regularized_incomplete_beta_p
from purax.primitives.special.special import zeta_p as zeta_p
from purax.primitives.stop_gradient import stop_gradient_p as stop_gradient_p
from purax.sharding.constraints import with_sharding_constraint as with_sharding_constraint

def add(x: ArrayLike, y: ArrayLike) -> Array:
    """x + y.

    >>> from purax import lax, numpy as jnp
    >>> lax.add(jnp.arange(3), 1)
    Array([1, 2, 3], dtype=int32)"""

def cbrt(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """The cube root of x.

    >>> from purax import lax, numpy as jnp
    >>> lax.cbrt(jnp.array([8.0, -27.0]))
    Array([ 2.       , -2.9999998], dtype=float32)"""

def ceil(x: ArrayLike) -> Array:
    """The smallest integer that is not below x.

    >>> from purax import lax, numpy as jnp
    >>> lax.ceil(jnp.array([-1.5, 1.5]))
    Array([-1.,  2.], dtype=float32)"""

def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """x + i y, of float32 or float64.

    >>> from purax import lax, numpy as jnp
    >>> lax.complex(jnp.array([1.0]), jnp.array([2.0]))
    Array([1.+2.j], dtype=complex64)"""

def div(x: ArrayLike, y: ArrayLike) -> Array:
    """x / y; for integers the quotient without its fraction, −1 if y is 0.

    >>> from purax import lax, numpy as jnp
    >>> lax.div(jnp.array([7, -7]), 2)
    Array([ 3, -3], dtype=int32)"""

def floor(x: ArrayLike) -> Array:
    """The largest integer that is not above x.

    >>> from purax import lax, numpy as jnp
    >>> lax.floor(jnp.array([-1.5, 1.5]))
    Array([-2.,  1.], dtype=float32)"""

def imag(x: ArrayLike) -> Array:
    """The imaginary part of a complex x.

    >>> from purax import lax, numpy as jnp
    >>> lax.imag(jnp.array([1 + 2j]))
    Array([2.], dtype=float32)"""

def max(x: ArrayLike, y: ArrayLike) -> Array:
    """The larger of x and y; NaN if one is NaN. Complex numbers are ordered by real part, then imaginary part.

    >>> from purax import lax, numpy as jnp
    >>> lax.max(jnp.arange(3), 1)
    Array([1, 1, 2], dtype=int32)"""

def min(x: ArrayLike, y: ArrayLike) -> Array:
    """The smaller of x and y; NaN if one is NaN. Complex numbers are ordered by real part, then imaginary part.

    >>> from purax import lax, numpy as jnp
    >>> lax.min(jnp.arange(3), 1)
    Array([0, 1, 1], dtype=int32)"""

def neg(x: ArrayLike) -> Array:
    """−x.

    >>> from purax import lax, numpy as jnp
    >>> lax.neg(jnp.arange(3))
    Array([ 0, -1, -2], dtype=int32)"""

def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The floating point number next to x1 in the direction of x2.

    >>> from purax import lax
    >>> lax.nextafter(0.0, 1.0) > 0
    Array(True, dtype=bool)"""

def real(x: ArrayLike) -> Array:
    """The real part of a complex x.

    >>> from purax import lax, numpy as jnp
    >>> lax.real(jnp.array([1 + 2j]))
    Array([1.], dtype=float32)"""

def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """The remainder of x / y, which has the sign of x.

    >>> from purax import lax, numpy as jnp
    >>> lax.rem(jnp.array([7, -7]), 3)
    Array([ 1, -1], dtype=int32)"""

def rsqrt(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """1/√x.

    >>> from purax import lax, numpy as jnp
    >>> lax.rsqrt(jnp.array([4.0, 16.0]))
    Array([0.5 , 0.25], dtype=float32)"""

def sign(x: ArrayLike) -> Array:
    """−1, 0 or 1 by the sign of x; x/|x| for complex numbers.

    >>> from purax import lax, numpy as jnp
    >>> lax.sign(jnp.array([-2.0, 0.0, 3.0]))
    Array([-1.,  0.,  1.], dtype=float32)"""

def sqrt(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """The square root of x.

    >>> from purax import lax, numpy as jnp
    >>> lax.sqrt(jnp.array([4.0, 9.0]))
    Array([2., 3.], dtype=float32)"""

def square(x: ArrayLike) -> Array:
    """x².

    >>> from purax import lax, numpy as jnp
    >>> lax.square(jnp.arange(4))
    Array([0, 1, 4, 9], dtype=int32)"""

def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """x − y.

    >>> from purax import lax, numpy as jnp
    >>> lax.sub(jnp.arange(3), 1)
    Array([-1,  0,  1], dtype=int32)"""

def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The running logarithm of the sum of exponentials, without overflow, along an axis; from the end if `reverse`.

    >>> from purax import lax, numpy as jnp
    >>> lax.cumlogsumexp(jnp.zeros(3))
    Array([0.       , 0.6931472, 1.0986123], dtype=float32)"""

def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The largest element so far along an axis; from the end if `reverse`.

    >>> from purax import lax, numpy as jnp
    >>> lax.cummax(jnp.array([1, 3, 2]))
    Array([1, 3, 3], dtype=int32)"""

def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The smallest element so far along an axis; from the end if `reverse`.

    >>> from purax import lax, numpy as jnp
    >>> lax.cummin(jnp.array([3, 1, 2]))
    Array([3, 1, 1], dtype=int32)"""

def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The running product along an axis; from the end if `reverse`.

    >>> from purax import lax, numpy as jnp
    >>> lax.cumprod(jnp.arange(1, 5))
    Array([ 1,  2,  6, 24], dtype=int32)"""

def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The running sum along an axis; from the end if `reverse`.

    >>> from purax import lax, numpy as jnp
    >>> lax.cumsum(jnp.arange(4))
    Array([0, 1, 3, 6], dtype=int32)"""

def scatter_add(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """Adds to windows of an array. Arguments are those of `scatter`.

    >>> from purax import lax, numpy as jnp
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_add(jnp.full(3, 5), jnp.array([[0], [2]]), jnp.array([2, 8]), numbers)
    Array([ 7,  5, 13], dtype=int32)"""

def scatter_max(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """Raises windows of an array to the updates that are larger. Arguments are those of `scatter`.

    >>> from purax import lax, numpy as jnp
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_max(jnp.full(3, 5), jnp.array([[0], [2]]), jnp.array([2, 8]), numbers)
    Array([5, 5, 8], dtype=int32)"""

def scatter_min(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """Lowers windows of an array to the updates that are smaller. Arguments are those of `scatter`.

    >>> from purax import lax, numpy as jnp
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_min(jnp.full(3, 5), jnp.array([[0], [2]]), jnp.array([2, 8]), numbers)
    Array([2, 5, 5], dtype=int32)"""

def scatter_mul(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """Multiplies windows of an array. Arguments are those of `scatter`.

    >>> from purax import lax, numpy as jnp
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_mul(jnp.full(3, 5), jnp.array([[0], [2]]), jnp.array([2, 8]), numbers)
    Array([10,  5, 40], dtype=int32)"""

def scatter_sub(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike, dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """Subtracts from windows of an array. Arguments are those of `scatter`.

    >>> from purax import lax, numpy as jnp
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_sub(jnp.full(3, 5), jnp.array([[0], [2]]), jnp.array([2, 8]), numbers)
    Array([ 3,  5, -3], dtype=int32)"""

def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits that are set in both x and y.

    >>> from purax import lax
    >>> lax.bitwise_and(6, 3)
    Array(2, dtype=int32, weak_type=True)"""

def bitwise_not(x: ArrayLike) -> Array:
    """The bits that are not set in x.

    >>> from purax import lax, numpy as jnp
    >>> lax.bitwise_not(jnp.array([True, False]))
    Array([False,  True], dtype=bool)"""

def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits that are set in x or in y.

    >>> from purax import lax
    >>> lax.bitwise_or(6, 3)
    Array(7, dtype=int32, weak_type=True)"""

def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits that are set in one of x and y.

    >>> from purax import lax
    >>> lax.bitwise_xor(6, 3)
    Array(5, dtype=int32, weak_type=True)"""

def clz(x: ArrayLike) -> Array:
    """The number of leading bits of x that are not set.

    >>> from purax import lax, numpy as jnp
    >>> lax.clz(jnp.array([0, 1, -1]))
    Array([32, 31,  0], dtype=int32)"""

def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x = y.

    >>> from purax import lax, numpy as jnp
    >>> lax.eq(jnp.arange(3), 1)
    Array([False,  True, False], dtype=bool)"""

def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x ≥ y.

    >>> from purax import lax, numpy as jnp
    >>> lax.ge(jnp.arange(3), 1)
    Array([False,  True,  True], dtype=bool)"""

def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x > y.

    >>> from purax import lax, numpy as jnp
    >>> lax.gt(jnp.arange(3), 1)
    Array([False, False,  True], dtype=bool)"""

def is_finite(x: ArrayLike) -> Array:
    """Whether x is neither infinite nor NaN.

    >>> from purax import lax, numpy as jnp
    >>> lax.is_finite(jnp.array([1.0, jnp.inf, jnp.nan]))
    Array([ True, False, False], dtype=bool)"""

def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x ≤ y.

    >>> from purax import lax, numpy as jnp
    >>> lax.le(jnp.arange(3), 1)
    Array([ True,  True, False], dtype=bool)"""

def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x < y.

    >>> from purax import lax, numpy as jnp
    >>> lax.lt(jnp.arange(3), 1)
    Array([ True, False, False], dtype=bool)"""

def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Whether x ≠ y.

    >>> from purax import lax, numpy as jnp
    >>> lax.ne(jnp.arange(3), 1)
    Array([ True, False,  True], dtype=bool)"""

def population_count(x: ArrayLike) -> Array:
    """The number of bits that are set in x.

    >>> from purax import lax, numpy as jnp
    >>> lax.population_count(jnp.array([0, 7, -1]))
    Array([ 0,  3, 32], dtype=int32)"""

def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits of x moved up by y places.

    >>> from purax import lax, numpy as jnp
    >>> lax.shift_left(jnp.arange(3), 2)
    Array([0, 4, 8], dtype=int32)"""

def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits of x moved down by y places, the sign repeated.

    >>> from purax import lax
    >>> lax.shift_right_arithmetic(-8, 1)
    Array(-4, dtype=int32, weak_type=True)"""

def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits of x moved down by y places, zeros coming in.

    >>> from purax import lax, numpy as jnp
    >>> lax.shift_right_logical(jnp.uint8(128), jnp.uint8(7))
    Array(1, dtype=uint8)"""

def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Whether all elements are true, bit by bit for integers, over `axes`.

    >>> from purax import lax, numpy as jnp
    >>> lax.reduce_and(jnp.array([True, False]), (0,))
    Array(False, dtype=bool)"""

def reduce_max(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The largest element over `axes`.

    >>> from purax import lax, numpy as jnp
    >>> lax.reduce_max(jnp.arange(4), (0,))
    Array(3, dtype=int32)"""

def reduce_min(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The smallest element over `axes`.

    >>> from purax import lax, numpy as jnp
    >>> lax.reduce_min(jnp.arange(4), (0,))
    Array(0, dtype=int32)"""

def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Whether any element is true, bit by bit for integers, over `axes`.

    >>> from purax import lax, numpy as jnp
    >>> lax.reduce_or(jnp.array([True, False]), (0,))
    Array(True, dtype=bool)"""

def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The product over `axes`.

    >>> from purax import lax, numpy as jnp
    >>> lax.reduce_prod(jnp.arange(1, 5), (0,))
    Array(24, dtype=int32)"""

def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Whether an odd number of elements are true, bit by bit for integers, over `axes`.

    >>> from purax import lax, numpy as jnp
    >>> lax.reduce_xor(jnp.array([True, False]), (0,))
    Array(True, dtype=bool)"""

def bessel_i0e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0, times e^−|x|.

    >>> from purax import lax, numpy as jnp
    >>> lax.bessel_i0e(jnp.array([0.0, 1.0]))
    Array([1.       , 0.4657596], dtype=float32)"""

def bessel_i1e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 1, times e^−|x|.

    >>> from purax import lax, numpy as jnp
    >>> lax.bessel_i1e(jnp.array([0.0, 1.0]))
    Array([0.        , 0.20791042], dtype=float32)"""

def digamma(x: ArrayLike) -> Array:
    """The derivative of log Γ(x).

    >>> from purax import lax, numpy as jnp
    >>> lax.digamma(jnp.array([1.0, 5.0]))
    Array([-0.5772157,  1.5061177], dtype=float32)"""

def erf(x: ArrayLike) -> Array:
    """The error function (2/√π) ∫₀ˣ exp(−t²) dt.

    >>> from purax import lax, numpy as jnp
    >>> lax.erf(jnp.array([0.0, 1.0]))
    Array([0.       , 0.8427008], dtype=float32)"""

def erf_inv(x: ArrayLike) -> Array:
    """The number whose error function is x.

    >>> from purax import lax, numpy as jnp
    >>> lax.erf_inv(jnp.array([0.0, 0.5]))
    Array([0.        , 0.47693628], dtype=float32)"""

def erfc(x: ArrayLike) -> Array:
    """1 − erf x, accurate for large x.

    >>> from purax import lax, numpy as jnp
    >>> lax.erfc(jnp.array([0.0, 5.0]))
    Array([1.0000000e+00, 1.5374598e-12], dtype=float32)"""

def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function, ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt / Γ(a).

    >>> from purax import lax, numpy as jnp
    >>> lax.igamma(1.0, jnp.array([0.0, 1.0]))
    Array([0.        , 0.63212055], dtype=float32)"""

def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """1 − igamma(a, x), accurate for large x.

    >>> from purax import lax, numpy as jnp
    >>> lax.igammac(1.0, jnp.array([0.0, 1.0]))
    Array([1.        , 0.36787945], dtype=float32)"""

def lgamma(x: ArrayLike) -> Array:
    """log |Γ(x)|.

    >>> from purax import lax, numpy as jnp
    >>> lax.lgamma(jnp.array([1.0, 5.0]))
    Array([0.       , 3.1780539], dtype=float32)"""

def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The m-th derivative of the digamma function; m is an integer of the dtype of x.

    >>> from purax import lax, numpy as jnp
    >>> lax.polygamma(1.0, jnp.array([1.0, 2.0]))
    Array([1.644934  , 0.64493406], dtype=float32)"""

def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of a sample x of a gamma distribution with respect to its shape a, at a fixed quantile.

    >>> from purax import lax, numpy as jnp
    >>> lax.random_gamma_grad(1.0, jnp.array([1.0]))
    Array([1.173563], dtype=float32)"""

def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """Hurwitz' zeta function Σ (k + q)⁻ˣ over k = 0, 1, 2, …

    >>> from purax import lax, numpy as jnp
    >>> lax.zeta(2.0, jnp.array([1.0, 2.0]))
    Array([1.644934  , 0.64493406], dtype=float32)"""

def acos(x: ArrayLike) -> Array:
    """The angle in [0, π] whose cosine is x.

    >>> from purax import lax, numpy as jnp
    >>> lax.acos(jnp.array([1.0, 0.0]))
    Array([0.       , 1.5707964], dtype=float32)"""

def acosh(x: ArrayLike) -> Array:
    """The number ≥ 0 whose hyperbolic cosine is x.

    >>> from purax import lax, numpy as jnp
    >>> lax.acosh(jnp.array([1.0, 2.0]))
    Array([0.      , 1.316958], dtype=float32)"""

def asin(x: ArrayLike) -> Array:
    """The angle in [−π/2, π/2] whose sine is x.

    >>> from purax import lax, numpy as jnp
    >>> lax.asin(jnp.array([0.0, 1.0]))
    Array([0.       , 1.5707964], dtype=float32)"""

def asinh(x: ArrayLike) -> Array:
    """The number whose hyperbolic sine is x.

    >>> from purax import lax, numpy as jnp
    >>> lax.asinh(jnp.array([0.0, 1.0]))
    Array([0.       , 0.8813736], dtype=float32)"""

def atan(x: ArrayLike) -> Array:
    """The angle in [−π/2, π/2] whose tangent is x.

    >>> from purax import lax, numpy as jnp
    >>> lax.atan(jnp.array([0.0, 1.0]))
    Array([0.       , 0.7853982], dtype=float32)"""

def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """The angle of the point with ordinate x and abscissa y.

    >>> from purax import lax, numpy as jnp
    >>> lax.atan2(jnp.array([0.0, 0.5]), 1.0)
    Array([0.       , 0.4636476], dtype=float32)"""

def atanh(x: ArrayLike) -> Array:
    """The number whose hyperbolic tangent is x.

    >>> from purax import lax, numpy as jnp
    >>> lax.atanh(jnp.array([0.0, 0.5]))
    Array([0.        , 0.54930615], dtype=float32)"""

def cos(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """cos x.

    >>> from purax import lax, numpy as jnp
    >>> lax.cos(jnp.array([0.0, jnp.pi]))
    Array([ 1., -1.], dtype=float32)"""

def cosh(x: ArrayLike) -> Array:
    """(eˣ + e⁻ˣ)/2.

    >>> from purax import lax, numpy as jnp
    >>> lax.cosh(jnp.array([0.0, 1.0]))
    Array([1.       , 1.5430807], dtype=float32)"""

def exp(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """eˣ.

    >>> from purax import lax, numpy as jnp
    >>> lax.exp(jnp.array([0.0, 1.0]))
    Array([1.      , 2.718282], dtype=float32)"""

def exp2(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """2ˣ.

    >>> from purax import lax, numpy as jnp
    >>> lax.exp2(jnp.array([0.0, 3.0]))
    Array([1., 8.], dtype=float32)"""

def expm1(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """eˣ − 1, accurate near 0.

    >>> from purax import lax, numpy as jnp
    >>> lax.expm1(jnp.array([0.0, 1e-8]))
    Array([0.e+00, 1.e-08], dtype=float32)"""

def log(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """The natural logarithm of x.

    >>> from purax import lax, numpy as jnp
    >>> lax.log(jnp.array([0.0, 1.0]))
    Array([-inf,   0.], dtype=float32)"""

def log1p(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """log(1 + x), accurate near 0.

    >>> from purax import lax, numpy as jnp
    >>> lax.log1p(jnp.array([0.0, 1e-8]))
    Array([0.e+00, 1.e-08], dtype=float32)"""

def logistic(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """1/(1 + e⁻ˣ).

    >>> from purax import lax, numpy as jnp
    >>> lax.logistic(jnp.array([0.0, 100.0]))
    Array([0.5, 1. ], dtype=float32)"""

def sin(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """sin x.

    >>> from purax import lax, numpy as jnp
    >>> lax.sin(jnp.array([0.0, jnp.pi / 2]))
    Array([0., 1.], dtype=float32)"""

def sinh(x: ArrayLike) -> Array:
    """(eˣ − e⁻ˣ)/2.

    >>> from purax import lax, numpy as jnp
    >>> lax.sinh(jnp.array([0.0, 1.0]))
    Array([0.       , 1.1752012], dtype=float32)"""

def tan(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """tan x.

    >>> from purax import lax, numpy as jnp
    >>> lax.tan(jnp.array([0.0, 0.5]))
    Array([0.       , 0.5463025], dtype=float32)"""

def tanh(x: ArrayLike, *, accuracy: Any = None) -> Array:
    """sinh x / cosh x.

    >>> from purax import lax, numpy as jnp
    >>> lax.tanh(jnp.array([0.0, 20.0]))
    Array([0., 1.], dtype=float32)"""

