# Written by tools/write_stubs.py; `make stubs` writes it anew.
"""NumPy's functions on arrays that can be differentiated, compiled, vectorized and spread over devices."""

from purax.core.array import Array
from purax.typing import ArrayLike
from purax.core.array import Array as ndarray
from purax.core.dtypes import can_cast as can_cast
from purax.core.dtypes import finfo as finfo
from purax.core.dtypes import iinfo as iinfo
from purax.core.dtypes import isdtype as isdtype
from purax.core.dtypes import issubdtype as issubdtype
from purax.core.dtypes import promote_types as promote_types
from purax.core.dtypes import result_type as result_type
from purax.numpy import fft as fft
from purax.numpy import linalg as linalg
from purax.numpy._applying import apply_along_axis as apply_along_axis
from purax.numpy._applying import apply_over_axes as apply_over_axes
from purax.numpy._applying import vectorize as vectorize
from purax.numpy._convolution import convolve as convolve
from purax.numpy._convolution import correlate as correlate
from purax.numpy._creation.constants import e as e
from purax.numpy._creation.constants import euler_gamma as euler_gamma
from purax.numpy._creation.constants import inf as inf
from purax.numpy._creation.constants import nan as nan
from purax.numpy._creation.constants import newaxis as newaxis
from purax.numpy._creation.constants import pi as pi
from purax.numpy._creation.creation import array as array
from purax.numpy._creation.creation import asarray as asarray
from purax.numpy._creation.creation import astype as astype
from purax.numpy._creation.creation import copy as copy
from purax.numpy._creation.files import array_repr as array_repr
from purax.numpy._creation.files import array_str as array_str
from purax.numpy._creation.files import get_printoptions as get_printoptions
from purax.numpy._creation.files import iterable as iterable
from purax.numpy._creation.files import load as load
from purax.numpy._creation.files import printoptions as printoptions
from purax.numpy._creation.files import save as save
from purax.numpy._creation.files import savez as savez
from purax.numpy._creation.files import set_printoptions as set_printoptions
from purax.numpy._creation.filled_arrays import empty as empty
from purax.numpy._creation.filled_arrays import empty_like as empty_like
from purax.numpy._creation.filled_arrays import full as full
from purax.numpy._creation.filled_arrays import full_like as full_like
from purax.numpy._creation.filled_arrays import ones as ones
from purax.numpy._creation.filled_arrays import ones_like as ones_like
from purax.numpy._creation.filled_arrays import zeros as zeros
from purax.numpy._creation.filled_arrays import zeros_like as zeros_like
from purax.numpy._creation.grids import c_ as c_
from purax.numpy._creation.grids import fromfunction as fromfunction
from purax.numpy._creation.grids import index_exp as index_exp
from purax.numpy._creation.grids import indices as indices
from purax.numpy._creation.grids import ix_ as ix_
from purax.numpy._creation.grids import meshgrid as meshgrid
from purax.numpy._creation.grids import mgrid as mgrid
from purax.numpy._creation.grids import ogrid as ogrid
from purax.numpy._creation.grids import r_ as r_
from purax.numpy._creation.grids import s_ as s_
from purax.numpy._creation.grids import vander as vander
from purax.numpy._creation.ranges import arange as arange
from purax.numpy._creation.ranges import geomspace as geomspace
from purax.numpy._creation.ranges import linspace as linspace
from purax.numpy._creation.ranges import logspace as logspace
from purax.numpy._creation.window_functions import bartlett as bartlett
from purax.numpy._creation.window_functions import blackman as blackman
from purax.numpy._creation.window_functions import hamming as hamming
from purax.numpy._creation.window_functions import hanning as hanning
from purax.numpy._creation.window_functions import i0 as i0
from purax.numpy._creation.window_functions import kaiser as kaiser
from purax.numpy._differences import diff as diff
from purax.numpy._differences import ediff1d as ediff1d
from purax.numpy._differences import gradient as gradient
from purax.numpy._differences import trapezoid as trapezoid
from purax.numpy._differences import unwrap as unwrap
from purax.numpy._divisors import gcd as gcd
from purax.numpy._divisors import lcm as lcm
from purax.numpy._dtype_names import ComplexWarning as ComplexWarning
from purax.numpy._dtype_names import bfloat16 as bfloat16
from purax.numpy._dtype_names import bool_ as bool
from purax.numpy._dtype_names import bool_ as bool_
from purax.numpy._dtype_names import cdouble as cdouble
from purax.numpy._dtype_names import character as character
from purax.numpy._dtype_names import complex128 as complex128
from purax.numpy._dtype_names import complex64 as complex64
from purax.numpy._dtype_names import complex_ as complex_
from purax.numpy._dtype_names import complexfloating as complexfloating
from purax.numpy._dtype_names import csingle as csingle
from purax.numpy._dtype_names import double as double
from purax.numpy._dtype_names import dtype as dtype
from purax.numpy._dtype_names import flexible as flexible
from purax.numpy._dtype_names import float16 as float16
from purax.numpy._dtype_names import float32 as float32
from purax.numpy._dtype_names import float4_e2m1fn as float4_e2m1fn
from purax.numpy._dtype_names import float64 as float64
from purax.numpy._dtype_names import float6_e2m3fn as float6_e2m3fn
from purax.numpy._dtype_names import float6_e3m2fn as float6_e3m2fn
from purax.numpy._dtype_names import float8_e3m4 as float8_e3m4
from purax.numpy._dtype_names import float8_e4m3 as float8_e4m3
from purax.numpy._dtype_names import float8_e4m3b11fnuz as float8_e4m3b11fnuz
from purax.numpy._dtype_names import float8_e4m3fn as float8_e4m3fn
from purax.numpy._dtype_names import float8_e4m3fnuz as float8_e4m3fnuz
from purax.numpy._dtype_names import float8_e5m2 as float8_e5m2
from purax.numpy._dtype_names import float8_e5m2fnuz as float8_e5m2fnuz
from purax.numpy._dtype_names import float8_e8m0fnu as float8_e8m0fnu
from purax.numpy._dtype_names import float_ as float_
from purax.numpy._dtype_names import floating as floating
from purax.numpy._dtype_names import generic as generic
from purax.numpy._dtype_names import inexact as inexact
from purax.numpy._dtype_names import int16 as int16
from purax.numpy._dtype_names import int2 as int2
from purax.numpy._dtype_names import int32 as int32
from purax.numpy._dtype_names import int4 as int4
from purax.numpy._dtype_names import int64 as int64
from purax.numpy._dtype_names import int8 as int8
from purax.numpy._dtype_names import int_ as int_
from purax.numpy._dtype_names import integer as integer
from purax.numpy._dtype_names import number as number
from purax.numpy._dtype_names import object_ as object_
from purax.numpy._dtype_names import signedinteger as signedinteger
from purax.numpy._dtype_names import single as single
from purax.numpy._dtype_names import uint as uint
from purax.numpy._dtype_names import uint16 as uint16
from purax.numpy._dtype_names import uint2 as uint2
from purax.numpy._dtype_names import uint32 as uint32
from purax.numpy._dtype_names import uint4 as uint4
from purax.numpy._dtype_names import uint64 as uint64
from purax.numpy._dtype_names import uint8 as uint8
from purax.numpy._dtype_names import unsignedinteger as unsignedinteger
from purax.numpy._elementwise.arithmetic import absolute as absolute
from purax.numpy._elementwise.arithmetic import add as add
from purax.numpy._elementwise.arithmetic import divide as divide
from purax.numpy._elementwise.arithmetic import divmod as divmod
from purax.numpy._elementwise.arithmetic import fabs as fabs
from purax.numpy._elementwise.arithmetic import float_power as float_power
from purax.numpy._elementwise.arithmetic import floor_divide as floor_divide
from purax.numpy._elementwise.arithmetic import fmod as fmod
from purax.numpy._elementwise.arithmetic import hypot as hypot
from purax.numpy._elementwise.arithmetic import multiply as multiply
from purax.numpy._elementwise.arithmetic import negative as negative
from purax.numpy._elementwise.arithmetic import positive as positive
from purax.numpy._elementwise.arithmetic import power as power
from purax.numpy._elementwise.arithmetic import reciprocal as reciprocal
from purax.numpy._elementwise.arithmetic import remainder as remainder
from purax.numpy._elementwise.arithmetic import sign as sign
from purax.numpy._elementwise.arithmetic import square as square
from purax.numpy._elementwise.bits import packbits as packbits
from purax.numpy._elementwise.bits import unpackbits as unpackbits
from purax.numpy._elementwise.comparison import allclose as allclose
from purax.numpy._elementwise.comparison import array_equal as array_equal
from purax.numpy._elementwise.comparison import array_equiv as array_equiv
from purax.numpy._elementwise.comparison import bitwise_count as bitwise_count
from purax.numpy._elementwise.comparison import bitwise_invert as bitwise_invert
from purax.numpy._elementwise.comparison import bitwise_not as bitwise_not
from purax.numpy._elementwise.comparison import equal as equal
from purax.numpy._elementwise.comparison import invert as invert
from purax.numpy._elementwise.comparison import isclose as isclose
from purax.numpy._elementwise.comparison import iscomplex as iscomplex
from purax.numpy._elementwise.comparison import iscomplexobj as iscomplexobj
from purax.numpy._elementwise.comparison import isfinite as isfinite
from purax.numpy._elementwise.comparison import isinf as isinf
from purax.numpy._elementwise.comparison import isnan as isnan
from purax.numpy._elementwise.comparison import isneginf as isneginf
from purax.numpy._elementwise.comparison import isposinf as isposinf
from purax.numpy._elementwise.comparison import isreal as isreal
from purax.numpy._elementwise.comparison import isrealobj as isrealobj
from purax.numpy._elementwise.comparison import isscalar as isscalar
from purax.numpy._elementwise.comparison import left_shift as left_shift
from purax.numpy._elementwise.comparison import logical_not as logical_not
from purax.numpy._elementwise.comparison import not_equal as not_equal
from purax.numpy._elementwise.comparison import right_shift as right_shift
from purax.numpy._elementwise.comparison import signbit as signbit
from purax.numpy._elementwise.complex_numbers import angle as angle
from purax.numpy._elementwise.complex_numbers import conjugate as conjugate
from purax.numpy._elementwise.complex_numbers import imag as imag
from purax.numpy._elementwise.complex_numbers import real as real
from purax.numpy._elementwise.extrema import fmax as fmax
from purax.numpy._elementwise.extrema import fmin as fmin
from purax.numpy._elementwise.extrema import heaviside as heaviside
from purax.numpy._elementwise.rounding import around as around
from purax.numpy._elementwise.rounding import ceil as ceil
from purax.numpy._elementwise.rounding import clip as clip
from purax.numpy._elementwise.rounding import copysign as copysign
from purax.numpy._elementwise.rounding import floor as floor
from purax.numpy._elementwise.rounding import frexp as frexp
from purax.numpy._elementwise.rounding import ldexp as ldexp
from purax.numpy._elementwise.rounding import modf as modf
from purax.numpy._elementwise.rounding import nan_to_num as nan_to_num
from purax.numpy._elementwise.rounding import nextafter as nextafter
from purax.numpy._elementwise.rounding import rint as rint
from purax.numpy._elementwise.rounding import round as round
from purax.numpy._elementwise.rounding import spacing as spacing
from purax.numpy._elementwise.rounding import trunc as trunc
from purax.numpy._elementwise.transcendental import arccosh as arccosh
from purax.numpy._elementwise.transcendental import arctan2 as arctan2
from purax.numpy._elementwise.transcendental import deg2rad as deg2rad
from purax.numpy._elementwise.transcendental import log10 as log10
from purax.numpy._elementwise.transcendental import log2 as log2
from purax.numpy._elementwise.transcendental import logaddexp as logaddexp
from purax.numpy._elementwise.transcendental import logaddexp2 as logaddexp2
from purax.numpy._elementwise.transcendental import rad2deg as rad2deg
from purax.numpy._elementwise.transcendental import sinc as sinc
from purax.numpy._elementwise.ufunc_object import frompyfunc as frompyfunc
from purax.numpy._elementwise.ufunc_object import ufunc as ufunc
from purax.numpy._indexing.buffers import from_dlpack as from_dlpack
from purax.numpy._indexing.buffers import frombuffer as frombuffer
from purax.numpy._indexing.buffers import fromfile as fromfile
from purax.numpy._indexing.buffers import fromiter as fromiter
from purax.numpy._indexing.buffers import fromstring as fromstring
from purax.numpy._indexing.choosing import choose as choose
from purax.numpy._indexing.choosing import piecewise as piecewise
from purax.numpy._indexing.choosing import select as select
from purax.numpy._indexing.fill_diagonal import fill_diagonal as fill_diagonal
from purax.numpy._indexing.multi_index import ravel_multi_index as ravel_multi_index
from purax.numpy._indexing.multi_index import unravel_index as unravel_index
from purax.numpy._indexing.nonzero import argwhere as argwhere
from purax.numpy._indexing.nonzero import compress as compress
from purax.numpy._indexing.nonzero import extract as extract
from purax.numpy._indexing.nonzero import flatnonzero as flatnonzero
from purax.numpy._indexing.nonzero import nonzero as nonzero
from purax.numpy._indexing.selection import where as where
from purax.numpy._indexing.taking import place as place
from purax.numpy._indexing.taking import put as put
from purax.numpy._indexing.taking import put_along_axis as put_along_axis
from purax.numpy._indexing.taking import take as take
from purax.numpy._indexing.taking import take_along_axis as take_along_axis
from purax.numpy._interpolation import interp as interp
from purax.numpy._linalg.einsum import einsum as einsum
from purax.numpy._linalg.einsum import einsum_path as einsum_path
from purax.numpy._linalg.matrices import diag as diag
from purax.numpy._linalg.matrices import diag_indices as diag_indices
from purax.numpy._linalg.matrices import diag_indices_from as diag_indices_from
from purax.numpy._linalg.matrices import diagflat as diagflat
from purax.numpy._linalg.matrices import diagonal as diagonal
from purax.numpy._linalg.matrices import eye as eye
from purax.numpy._linalg.matrices import identity as identity
from purax.numpy._linalg.matrices import mask_indices as mask_indices
from purax.numpy._linalg.matrices import tri as tri
from purax.numpy._linalg.matrices import tril as tril
from purax.numpy._linalg.matrices import tril_indices as tril_indices
from purax.numpy._linalg.matrices import tril_indices_from as tril_indices_from
from purax.numpy._linalg.matrices import triu as triu
from purax.numpy._linalg.matrices import triu_indices as triu_indices
from purax.numpy._linalg.matrices import triu_indices_from as triu_indices_from
from purax.numpy._linalg.products import cross as cross
from purax.numpy._linalg.products import dot as dot
from purax.numpy._linalg.products import inner as inner
from purax.numpy._linalg.products import kron as kron
from purax.numpy._linalg.products import matmul as matmul
from purax.numpy._linalg.products import matvec as matvec
from purax.numpy._linalg.products import outer as outer
from purax.numpy._linalg.products import tensordot as tensordot
from purax.numpy._linalg.products import trace as trace
from purax.numpy._linalg.products import vdot as vdot
from purax.numpy._linalg.products import vecdot as vecdot
from purax.numpy._linalg.products import vecmat as vecmat
from purax.numpy._polynomial import polyadd as polyadd
from purax.numpy._polynomial import polyder as polyder
from purax.numpy._polynomial import polydiv as polydiv
from purax.numpy._polynomial import polyint as polyint
from purax.numpy._polynomial import polymul as polymul
from purax.numpy._polynomial import polysub as polysub
from purax.numpy._polynomial import polyval as polyval
from purax.numpy._polynomial_roots import poly as poly
from purax.numpy._polynomial_roots import polyfit as polyfit
from purax.numpy._polynomial_roots import roots as roots
from purax.numpy._reductions.covariance import corrcoef as corrcoef
from purax.numpy._reductions.covariance import cov as cov
from purax.numpy._reductions.cumulative import cumprod as cumprod
from purax.numpy._reductions.cumulative import cumsum as cumsum
from purax.numpy._reductions.cumulative import cumulative_prod as cumulative_prod
from purax.numpy._reductions.cumulative import cumulative_sum as cumulative_sum
from purax.numpy._reductions.cumulative import nancumprod as nancumprod
from purax.numpy._reductions.cumulative import nancumsum as nancumsum
from purax.numpy._reductions.histogram import histogram as histogram
from purax.numpy._reductions.histogram import histogram2d as histogram2d
from purax.numpy._reductions.histogram import histogram_bin_edges as histogram_bin_edges
from purax.numpy._reductions.histogram import histogramdd as histogramdd
from purax.numpy._reductions.nan_reductions import nanargmax as nanargmax
from purax.numpy._reductions.nan_reductions import nanargmin as nanargmin
from purax.numpy._reductions.nan_reductions import nanmax as nanmax
from purax.numpy._reductions.nan_reductions import nanmean as nanmean
from purax.numpy._reductions.nan_reductions import nanmin as nanmin
from purax.numpy._reductions.nan_reductions import nanprod as nanprod
from purax.numpy._reductions.nan_reductions import nanstd as nanstd
from purax.numpy._reductions.nan_reductions import nansum as nansum
from purax.numpy._reductions.nan_reductions import nanvar as nanvar
from purax.numpy._reductions.reductions import all as all
from purax.numpy._reductions.reductions import amax as amax
from purax.numpy._reductions.reductions import amin as amin
from purax.numpy._reductions.reductions import any as any
from purax.numpy._reductions.reductions import argmax as argmax
from purax.numpy._reductions.reductions import argmin as argmin
from purax.numpy._reductions.reductions import count_nonzero as count_nonzero
from purax.numpy._reductions.reductions import max as max
from purax.numpy._reductions.reductions import min as min
from purax.numpy._reductions.reductions import prod as prod
from purax.numpy._reductions.reductions import ptp as ptp
from purax.numpy._reductions.reductions import sum as sum
from purax.numpy._reductions.statistics import average as average
from purax.numpy._reductions.statistics import mean as mean
from purax.numpy._reductions.statistics import std as std
from purax.numpy._reductions.statistics import var as var
from purax.numpy._shape.joining import append as append
from purax.numpy._shape.joining import array_split as array_split
from purax.numpy._shape.joining import block as block
from purax.numpy._shape.joining import column_stack as column_stack
from purax.numpy._shape.joining import concat as concat
from purax.numpy._shape.joining import concatenate as concatenate
from purax.numpy._shape.joining import dsplit as dsplit
from purax.numpy._shape.joining import dstack as dstack
from purax.numpy._shape.joining import hsplit as hsplit
from purax.numpy._shape.joining import hstack as hstack
from purax.numpy._shape.joining import split as split
from purax.numpy._shape.joining import stack as stack
from purax.numpy._shape.joining import unstack as unstack
from purax.numpy._shape.joining import vsplit as vsplit
from purax.numpy._shape.joining import vstack as vstack
from purax.numpy._shape.padding import pad as pad
from purax.numpy._shape.rearranging import delete as delete
from purax.numpy._shape.rearranging import flip as flip
from purax.numpy._shape.rearranging import fliplr as fliplr
from purax.numpy._shape.rearranging import flipud as flipud
from purax.numpy._shape.rearranging import insert as insert
from purax.numpy._shape.rearranging import repeat as repeat
from purax.numpy._shape.rearranging import resize as resize
from purax.numpy._shape.rearranging import roll as roll
from purax.numpy._shape.rearranging import rot90 as rot90
from purax.numpy._shape.rearranging import tile as tile
from purax.numpy._shape.rearranging import trim_zeros as trim_zeros
from purax.numpy._shape.shaping import atleast_1d as atleast_1d
from purax.numpy._shape.shaping import atleast_2d as atleast_2d
from purax.numpy._shape.shaping import atleast_3d as atleast_3d
from purax.numpy._shape.shaping import broadcast_arrays as broadcast_arrays
from purax.numpy._shape.shaping import broadcast_shapes as broadcast_shapes
from purax.numpy._shape.shaping import broadcast_to as broadcast_to
from purax.numpy._shape.shaping import expand_dims as expand_dims
from purax.numpy._shape.shaping import matrix_transpose as matrix_transpose
from purax.numpy._shape.shaping import moveaxis as moveaxis
from purax.numpy._shape.shaping import ndim as ndim
from purax.numpy._shape.shaping import permute_dims as permute_dims
from purax.numpy._shape.shaping import ravel as ravel
from purax.numpy._shape.shaping import reshape as reshape
from purax.numpy._shape.shaping import rollaxis as rollaxis
from purax.numpy._shape.shaping import shape as shape
from purax.numpy._shape.shaping import size as size
from purax.numpy._shape.shaping import squeeze as squeeze
from purax.numpy._shape.shaping import swapaxes as swapaxes
from purax.numpy._shape.shaping import transpose as transpose
from purax.numpy._sorting.largest_elements import top_k as top_k
from purax.numpy._sorting.quantiles import median as median
from purax.numpy._sorting.quantiles import nanmedian as nanmedian
from purax.numpy._sorting.quantiles import nanpercentile as nanpercentile
from purax.numpy._sorting.quantiles import nanquantile as nanquantile
from purax.numpy._sorting.quantiles import percentile as percentile
from purax.numpy._sorting.quantiles import quantile as quantile
from purax.numpy._sorting.searching import bincount as bincount
from purax.numpy._sorting.searching import digitize as digitize
from purax.numpy._sorting.searching import searchsorted as searchsorted
from purax.numpy._sorting.sets import intersect1d as intersect1d
from purax.numpy._sorting.sets import isin as isin
from purax.numpy._sorting.sets import setdiff1d as setdiff1d
from purax.numpy._sorting.sets import setxor1d as setxor1d
from purax.numpy._sorting.sets import union1d as union1d
from purax.numpy._sorting.sorting import argpartition as argpartition
from purax.numpy._sorting.sorting import argsort as argsort
from purax.numpy._sorting.sorting import lexsort as lexsort
from purax.numpy._sorting.sorting import partition as partition
from purax.numpy._sorting.sorting import sort as sort
from purax.numpy._sorting.sorting import sort_complex as sort_complex
from purax.numpy._sorting.unique import unique as unique
from purax.numpy._sorting.unique import unique_all as unique_all
from purax.numpy._sorting.unique import unique_counts as unique_counts
from purax.numpy._sorting.unique import unique_inverse as unique_inverse
from purax.numpy._sorting.unique import unique_values as unique_values

def abs(x: ArrayLike, /) -> Array:
    """|x| on each element; another name of `absolute`.

    >>> import purax.numpy as jnp
    >>> jnp.abs(jnp.array([-2.5, 3.0]))
    Array([2.5, 3. ], dtype=float32)"""

def cbrt(x: ArrayLike, /) -> Array:
    """∛x on each element.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.cbrt(jnp.array([8.0, -1.0]))
    Array([ 2., -1.], dtype=float32)"""

def mod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of x1 / x2 with the sign of x2; another name of `remainder`.

    >>> import purax.numpy as jnp
    >>> jnp.mod(-1.5, jnp.array([1.0, -1.0]))
    Array([ 0.5, -0.5], dtype=float32)"""

def pow(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 to the power x2; another name of `power`.

    >>> import purax.numpy as jnp
    >>> jnp.pow(jnp.array([1.0, 2.0]), -1)
    Array([1. , 0.5], dtype=float32)"""

def sqrt(x: ArrayLike, /) -> Array:
    """√x on each element.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.sqrt(jnp.array([4, 9]))
    Array([2., 3.], dtype=float32)"""

def subtract(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """x − y on each element.

    Args:
        x: an array or a number.
        y: another, broadcast against it.
        out: not supported: arrays are immutable.
        where: not supported; use `jnp.where`.

    >>> import purax.numpy as jnp
    >>> jnp.subtract(3, jnp.arange(3))
    Array([3, 2, 1], dtype=int32)"""

def true_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 / x2 on each element; another name of `divide`.

    >>> import purax.numpy as jnp
    >>> jnp.true_divide(3, 2)
    Array(1.5, dtype=float32, weak_type=True)"""

def bitwise_and(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The bits set in both x and y, on each element.

    Args:
        x: an array of integers or booleans.
        y: another, broadcast against it.
        out: not supported: arrays are immutable.
        where: not supported; use `jnp.where`.

    >>> import purax.numpy as jnp
    >>> jnp.bitwise_and(jnp.array([12, 10]), 6)
    Array([4, 2], dtype=int32)"""

def bitwise_left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The bits of x moved up by y places; another name of `left_shift`.

    >>> import purax.numpy as jnp
    >>> jnp.bitwise_left_shift(1, jnp.arange(3))
    Array([1, 2, 4], dtype=int32)"""

def bitwise_or(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The bits set in x or y, on each element.

    Args:
        x: an array of integers or booleans.
        y: another, broadcast against it.
        out: not supported: arrays are immutable.
        where: not supported; use `jnp.where`.

    >>> import purax.numpy as jnp
    >>> jnp.bitwise_or(jnp.array([12, 10]), 6)
    Array([14, 14], dtype=int32)"""

def bitwise_right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The bits of x1 moved down by x2 places; another name of `right_shift`.

    >>> import purax.numpy as jnp
    >>> jnp.bitwise_right_shift(jnp.array([12, 5]), 1)
    Array([6, 2], dtype=int32)"""

def bitwise_xor(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The bits set in exactly one of x and y, on each element.

    Args:
        x: an array of integers or booleans.
        y: another, broadcast against it.
        out: not supported: arrays are immutable.
        where: not supported; use `jnp.where`.

    >>> import purax.numpy as jnp
    >>> jnp.bitwise_xor(jnp.array([12, 10]), 6)
    Array([10, 12], dtype=int32)"""

def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x > y on each element.

    Args:
        x: an array or a number.
        y: another, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.greater(jnp.array([1, 2, 3]), 2)
    Array([False, False,  True], dtype=bool)"""

def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x ≥ y on each element.

    Args:
        x: an array or a number.
        y: another, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.greater_equal(jnp.array([1, 2, 3]), 2)
    Array([False,  True,  True], dtype=bool)"""

def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x < y on each element.

    Args:
        x: an array or a number.
        y: another, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.less(jnp.array([1, 2, 3]), 2)
    Array([ True, False, False], dtype=bool)"""

def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x ≤ y on each element.

    Args:
        x: an array or a number.
        y: another, broadcast against it.

    >>> import purax.numpy as jnp
    >>> jnp.less_equal(jnp.array([1, 2, 3]), 2)
    Array([ True,  True, False], dtype=bool)"""

def logical_and(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """Whether both x and y are not zero, on each element.

    Args:
        x: an array or a number.
        y: another, broadcast against it.
        out: not supported: arrays are immutable.
        where: not supported; use `jnp.where`.

    >>> import purax.numpy as jnp
    >>> jnp.logical_and(jnp.array([0, 1, 2]), True)
    Array([False,  True,  True], dtype=bool)"""

def logical_or(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """Whether x or y is not zero, on each element.

    Args:
        x: an array or a number.
        y: another, broadcast against it.
        out: not supported: arrays are immutable.
        where: not supported; use `jnp.where`.

    >>> import purax.numpy as jnp
    >>> jnp.logical_or(jnp.array([0, 1, 2]), False)
    Array([False,  True,  True], dtype=bool)"""

def logical_xor(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """Whether exactly one of x and y is not zero, on each element.

    Args:
        x: an array or a number.
        y: another, broadcast against it.
        out: not supported: arrays are immutable.
        where: not supported; use `jnp.where`.

    >>> import purax.numpy as jnp
    >>> jnp.logical_xor(jnp.array([0, 1, 2]), True)
    Array([ True, False, False], dtype=bool)"""

def conj(x: ArrayLike, /) -> Array:
    """The conjugate of each element; another name of `conjugate`.

    >>> import purax.numpy as jnp
    >>> jnp.conj(2j)
    Array(0.-2.j, dtype=complex64, weak_type=True)"""

def maximum(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The larger of x and y on each element; NaN if one of them is.

    Args:
        x: an array or a number.
        y: another, broadcast against it.
        out: not supported: arrays are immutable.
        where: not supported; use `jnp.where`.

    >>> import purax.numpy as jnp
    >>> jnp.maximum(jnp.array([1, 5]), 3)
    Array([3, 5], dtype=int32)"""

def minimum(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """The smaller of x and y on each element; NaN if one of them is.

    Args:
        x: an array or a number.
        y: another, broadcast against it.
        out: not supported: arrays are immutable.
        where: not supported; use `jnp.where`.

    >>> import purax.numpy as jnp
    >>> jnp.minimum(jnp.array([1, 5]), 3)
    Array([1, 3], dtype=int32)"""

def acos(x: ArrayLike, /) -> Array:
    """The angle in [0, π] whose cosine is x; another name of `arccos`.

    >>> import purax.numpy as jnp
    >>> jnp.acos(jnp.array([1.0, 0.0]))
    Array([0.       , 1.5707964], dtype=float32)"""

def acosh(x: ArrayLike, /) -> Array:
    """The number ≥ 0 whose hyperbolic cosine is x; another name of `arccosh`.

    >>> import purax.numpy as jnp
    >>> jnp.acosh(1.0)
    Array(0., dtype=float32, weak_type=True)"""

def arccos(x: ArrayLike, /) -> Array:
    """The angle in [0, π] whose cosine is x.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.arccos(jnp.array([1.0, -1.0]))
    Array([0.       , 3.1415927], dtype=float32)"""

def arcsin(x: ArrayLike, /) -> Array:
    """The angle in [−π/2, π/2] whose sine is x.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.arcsin(jnp.array([0.0, 1.0]))
    Array([0.       , 1.5707964], dtype=float32)"""

def arcsinh(x: ArrayLike, /) -> Array:
    """The number whose hyperbolic sine is x.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.round(jnp.arcsinh(jnp.array([0.0, 1.0])), 3)
    Array([0.   , 0.881], dtype=float32)"""

def arctan(x: ArrayLike, /) -> Array:
    """The angle in [−π/2, π/2] whose tangent is x.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.round(jnp.arctan(jnp.array([0.0, 1.0])), 3)
    Array([0.   , 0.785], dtype=float32)"""

def arctanh(x: ArrayLike, /) -> Array:
    """The number whose hyperbolic tangent is x.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.round(jnp.arctanh(jnp.array([0.0, 0.5])), 3)
    Array([0.   , 0.549], dtype=float32)"""

def asin(x: ArrayLike, /) -> Array:
    """The angle in [−π/2, π/2] whose sine is x; another name of `arcsin`.

    >>> import purax.numpy as jnp
    >>> jnp.round(jnp.asin(jnp.array([0.0, 0.5])), 3)
    Array([0.   , 0.524], dtype=float32)"""

def asinh(x: ArrayLike, /) -> Array:
    """The number whose hyperbolic sine is x; another name of `arcsinh`.

    >>> import purax.numpy as jnp
    >>> jnp.asinh(0.0)
    Array(0., dtype=float32, weak_type=True)"""

def atan(x: ArrayLike, /) -> Array:
    """The angle in [−π/2, π/2] whose tangent is x; another name of `arctan`.

    >>> import purax.numpy as jnp
    >>> jnp.atan(jnp.array([0.0, jnp.inf]))
    Array([0.       , 1.5707964], dtype=float32)"""

def atan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle in [−π, π] of the point with ordinate x1 and abscissa x2; another name of `arctan2`.

    >>> import purax.numpy as jnp
    >>> jnp.atan2(1.0, jnp.array([0.0]))
    Array([1.5707964], dtype=float32)"""

def atanh(x: ArrayLike, /) -> Array:
    """The number whose hyperbolic tangent is x; another name of `arctanh`.

    >>> import purax.numpy as jnp
    >>> jnp.atanh(0.0)
    Array(0., dtype=float32, weak_type=True)"""

def cos(x: ArrayLike, /) -> Array:
    """cos x, for x in radians.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.cos(jnp.array([0.0, jnp.pi]))
    Array([ 1., -1.], dtype=float32)"""

def cosh(x: ArrayLike, /) -> Array:
    """(eˣ + e⁻ˣ)/2

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.round(jnp.cosh(jnp.array([0.0, 1.0])), 3)
    Array([1.   , 1.543], dtype=float32)"""

def degrees(x: ArrayLike, /) -> Array:
    """Radians as degrees; another name of `rad2deg`.

    >>> import purax.numpy as jnp
    >>> jnp.degrees(jnp.array([0.0, jnp.pi / 2]))
    Array([ 0., 90.], dtype=float32)"""

def exp(x: ArrayLike, /) -> Array:
    """eˣ

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.round(jnp.exp(jnp.array([0.0, 1.0])), 3)
    Array([1.   , 2.718], dtype=float32)"""

def exp2(x: ArrayLike, /) -> Array:
    """2ˣ

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.exp2(jnp.array([0, 3]))
    Array([1., 8.], dtype=float32)"""

def expm1(x: ArrayLike, /) -> Array:
    """eˣ − 1, accurate near 0.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.expm1(jnp.array([0.0, 1e-8]))
    Array([0.e+00, 1.e-08], dtype=float32)"""

def log(x: ArrayLike, /) -> Array:
    """The natural logarithm of x.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.log(jnp.array([1.0, 2.0]))
    Array([0.       , 0.6931472], dtype=float32)"""

def log1p(x: ArrayLike, /) -> Array:
    """log(1 + x), accurate near 0.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.log1p(jnp.array([0.0, 1e-8]))
    Array([0.e+00, 1.e-08], dtype=float32)"""

def radians(x: ArrayLike, /) -> Array:
    """Degrees as radians; another name of `deg2rad`.

    >>> import purax.numpy as jnp
    >>> jnp.radians(jnp.array([0.0, 90.0]))
    Array([0.       , 1.5707964], dtype=float32)"""

def sin(x: ArrayLike, /) -> Array:
    """sin x, for x in radians.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.sin(jnp.array([0.0, jnp.pi / 2]))
    Array([0., 1.], dtype=float32)"""

def sinh(x: ArrayLike, /) -> Array:
    """(eˣ − e⁻ˣ)/2

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.round(jnp.sinh(jnp.array([0.0, 1.0])), 3)
    Array([0.   , 1.175], dtype=float32)"""

def tan(x: ArrayLike, /) -> Array:
    """tan x, for x in radians.

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.round(jnp.tan(jnp.array([0.0, 0.5])), 3)
    Array([0.   , 0.546], dtype=float32)"""

def tanh(x: ArrayLike, /) -> Array:
    """sinh x / cosh x

    Args:
        x: an array or a number.

    >>> import purax.numpy as jnp
    >>> jnp.tanh(jnp.array([0.0, 100.0]))
    Array([0., 1.], dtype=float32)"""

