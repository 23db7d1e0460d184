"""NumPy's functions on arrays that can be differentiated, compiled, vectorized and spread over devices.

Names, arguments and results are those of `jax.numpy`. Importing this module gives arrays their operators and methods.

Where it differs from NumPy:

- Arrays are immutable. `x[i] = y` raises; `x.at[i].set(y)` gives a new array. `out=` is refused, and functions that
  write into their argument (`put`, `place`, `fill_diagonal`, …) want `inplace=False` and return the result.
- Values that name no dtype have 32 bits, unless `enable_x64` is set; an explicit `dtype="float64"` is honoured.
- Dtypes mix by JAX's lattice: a Python number takes the dtype of the array it meets, integers and floats give the
  float's dtype (`int32` with `float16` is `float16`), and NumPy's float64 values count as the default float.
- An integer that does not fit into its dtype raises an OverflowError and never wraps around unseen.
- Functions take arrays and numbers; lists are refused, as they hide slow conversions: write `jnp.array([...])`.
- Known positions out of bounds raise an IndexError. Computed ones, under `jit`, are clamped when reading and dropped
  when updating; `x.at[i].get(mode=...)` chooses.
- Results whose shape depends on values (`nonzero`, `unique`, `x[mask]`, …) need `size=` under `jit`.
- Results are always arrays; there are no scalar types, no strings, no objects, no views of memory.
- There is no random generator with a hidden state; see `purax.random`.
- Numerical conditions never warn or raise: what has no result is NaN or infinite, also a singular matrix's inverse.
"""

# ruff: noqa: F401, A004
from __future__ import annotations

import sys as _sys

from purax.core.array import Array as ndarray
from purax.core.dtypes import can_cast, finfo, iinfo, isdtype, issubdtype, promote_types, result_type
from purax.numpy import _dtype_names as _dtype_names
from purax.numpy import fft, linalg
from purax.numpy._applying import apply_along_axis, apply_over_axes, vectorize
from purax.numpy._array_api import __array_api_version__, __array_namespace_info__
from purax.numpy._convolution import convolve, correlate
from purax.numpy._creation.constants import e, euler_gamma, inf, nan, newaxis, pi
from purax.numpy._creation.creation import (
    array,
    asarray,
    astype,
    copy,
)
from purax.numpy._creation.files import (
    array_repr,
    array_str,
    get_printoptions,
    iterable,
    load,
    printoptions,
    save,
    savez,
    set_printoptions,
)
from purax.numpy._creation.filled_arrays import (
    empty,
    empty_like,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from purax.numpy._creation.grids import (
    c_,
    fromfunction,
    index_exp,
    indices,
    ix_,
    meshgrid,
    mgrid,
    ogrid,
    r_,
    s_,
    vander,
)
from purax.numpy._creation.ranges import arange, geomspace, linspace, logspace
from purax.numpy._creation.window_functions import bartlett, blackman, hamming, hanning, i0, kaiser
from purax.numpy._differences import diff, ediff1d, gradient, trapezoid, unwrap
from purax.numpy._divisors import gcd, lcm
from purax.numpy._dtype_names import (
    ComplexWarning,
    bfloat16,
    bool_,
    cdouble,
    character,
    complex64,
    complex128,
    complex_,
    complexfloating,
    csingle,
    double,
    dtype,
    flexible,
    float4_e2m1fn,
    float6_e2m3fn,
    float6_e3m2fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    float_,
    floating,
    generic,
    inexact,
    int2,
    int4,
    int8,
    int16,
    int32,
    int64,
    int_,
    integer,
    number,
    object_,
    signedinteger,
    single,
    uint,
    uint2,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
    unsignedinteger,
)
from purax.numpy._dtype_names import bool_ as bool
from purax.numpy._elementwise.arithmetic import (
    abs,
    absolute,
    add,
    cbrt,
    divide,
    divmod,
    fabs,
    float_power,
    floor_divide,
    fmod,
    hypot,
    mod,
    multiply,
    negative,
    positive,
    pow,
    power,
    reciprocal,
    remainder,
    sign,
    sqrt,
    square,
    subtract,
    true_divide,
)
from purax.numpy._elementwise.bits import packbits, unpackbits
from purax.numpy._elementwise.comparison import (
    allclose,
    array_equal,
    array_equiv,
    bitwise_and,
    bitwise_count,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    equal,
    greater,
    greater_equal,
    invert,
    isclose,
    iscomplex,
    iscomplexobj,
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    isreal,
    isrealobj,
    isscalar,
    left_shift,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
    right_shift,
    signbit,
)
from purax.numpy._elementwise.complex_numbers import angle, conj, conjugate, imag, real
from purax.numpy._elementwise.extrema import (
    fmax,
    fmin,
    heaviside,
    maximum,
    minimum,
)
from purax.numpy._elementwise.rounding import (
    around,
    ceil,
    clip,
    copysign,
    floor,
    frexp,
    ldexp,
    modf,
    nan_to_num,
    nextafter,
    rint,
    round,
    spacing,
    trunc,
)
from purax.numpy._elementwise.transcendental import (
    acos,
    acosh,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    deg2rad,
    degrees,
    exp,
    exp2,
    expm1,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    rad2deg,
    radians,
    sin,
    sinc,
    sinh,
    tan,
    tanh,
)
from purax.numpy._elementwise.ufunc_object import frompyfunc, ufunc
from purax.numpy._indexing.buffers import (
    from_dlpack,
    frombuffer,
    fromfile,
    fromiter,
    fromstring,
)
from purax.numpy._indexing.choosing import choose, piecewise, select
from purax.numpy._indexing.fill_diagonal import fill_diagonal
from purax.numpy._indexing.multi_index import ravel_multi_index, unravel_index
from purax.numpy._indexing.nonzero import argwhere, compress, extract, flatnonzero, nonzero
from purax.numpy._indexing.selection import where
from purax.numpy._indexing.taking import place, put, put_along_axis, take, take_along_axis
from purax.numpy._interpolation import interp
from purax.numpy._linalg.einsum import einsum, einsum_path
from purax.numpy._linalg.matrices import (
    diag,
    diag_indices,
    diag_indices_from,
    diagflat,
    diagonal,
    eye,
    identity,
    mask_indices,
    tri,
    tril,
    tril_indices,
    tril_indices_from,
    triu,
    triu_indices,
    triu_indices_from,
)
from purax.numpy._linalg.products import (
    cross,
    dot,
    inner,
    kron,
    matmul,
    matvec,
    outer,
    tensordot,
    trace,
    vdot,
    vecdot,
    vecmat,
)
from purax.numpy._polynomial import polyadd, polyder, polydiv, polyint, polymul, polysub, polyval
from purax.numpy._polynomial_roots import poly, polyfit, roots
from purax.numpy._reductions.covariance import corrcoef, cov
from purax.numpy._reductions.cumulative import (
    cumprod,
    cumsum,
    cumulative_prod,
    cumulative_sum,
    nancumprod,
    nancumsum,
)
from purax.numpy._reductions.histogram import histogram, histogram2d, histogram_bin_edges, histogramdd
from purax.numpy._reductions.nan_reductions import (
    nanargmax,
    nanargmin,
    nanmax,
    nanmean,
    nanmin,
    nanprod,
    nanstd,
    nansum,
    nanvar,
)
from purax.numpy._reductions.reductions import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    count_nonzero,
    max,
    min,
    prod,
    ptp,
    sum,
)
from purax.numpy._reductions.statistics import average, mean, std, var
from purax.numpy._shape.joining import (
    append,
    array_split,
    block,
    column_stack,
    concat,
    concatenate,
    dsplit,
    dstack,
    hsplit,
    hstack,
    split,
    stack,
    unstack,
    vsplit,
    vstack,
)
from purax.numpy._shape.padding import pad
from purax.numpy._shape.rearranging import (
    delete,
    flip,
    fliplr,
    flipud,
    insert,
    repeat,
    resize,
    roll,
    rot90,
    tile,
    trim_zeros,
)
from purax.numpy._shape.shaping import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    expand_dims,
    matrix_transpose,
    moveaxis,
    ndim,
    permute_dims,
    ravel,
    reshape,
    rollaxis,
    shape,
    size,
    squeeze,
    swapaxes,
    transpose,
)
from purax.numpy._sorting.largest_elements import top_k
from purax.numpy._sorting.quantiles import median, nanmedian, nanpercentile, nanquantile, percentile, quantile
from purax.numpy._sorting.searching import bincount, digitize, searchsorted
from purax.numpy._sorting.sets import intersect1d, isin, setdiff1d, setxor1d, union1d
from purax.numpy._sorting.sorting import argpartition, argsort, lexsort, partition, sort, sort_complex
from purax.numpy._sorting.unique import unique, unique_all, unique_counts, unique_inverse, unique_values

if hasattr(_dtype_names, "int1"):  # which older releases of ml_dtypes do not have
    int1, uint1 = _dtype_names.int1, _dtype_names.uint1

# Arrays take their methods from the names above, so imports go there and not below.
from purax.numpy import _array_methods as _array_methods  # isort: skip
from purax.numpy._indexing import update as _index_update  # isort: skip
from purax.numpy._indexing import indexing as _indexing  # isort: skip
from purax.numpy import _numpy_calls as _numpy_calls  # isort: skip
from purax.numpy import _operators as _operators  # isort: skip
from purax.numpy._elementwise import ufuncs as _ufuncs  # isort: skip

_operators.install()
_indexing.install(_index_update.IndexUpdateHelper)
_array_methods.install(_sys.modules[__name__])
_numpy_calls.install(_sys.modules[__name__])
