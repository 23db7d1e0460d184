"""Rules of single functions: their domains, parameters that mean something of their own, and calls drawn as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.fuzz.function_arguments_table import (
    PARAMETERS,
    along_axis,
    any_array,
    axis,
    axis_pair,
    bins,
    boolean,
    decimals,
    float_dtype,
    hermitian,
    index_like,
    key,
    lengths,
    matrix,
    offset,
    option,
    positive,
    probability,
    product_with,
    right_side,
    scalar,
    segments,
    small,
    some_shape,
    square,
    tensordot_axes,
    vector,
    where,
)
from tests.fuzz.function_values import Draw, Rule

FUNCTIONS_OF_ARRAYS = "functions of functions are tried by the fuzzer of compositions"
NO_MESH = "collectives need named axes; the fuzzer of compositions has them"
SKIPPED = {
    "numpy": {
        "save": "writes a file",
        "savez": "writes a file",
        "load": "reads a file",
        "fromfile": "reads a file",
        "fromiter": "raises",
        "printoptions": "settings",
        "set_printoptions": "settings",
        "get_printoptions": "settings",
        "array_repr": "text",
        "array_str": "text",
        "frompyfunc": "returns a ufunc",
        "vectorize": "returns a function",
        "from_dlpack": "tested with other libraries",
        "empty": "undefined values in NumPy",
    },
    "lax": {
        **dict.fromkeys(
            (
                "all_gather",
                "all_gather_reduced",
                "all_to_all",
                "axis_index",
                "axis_size",
                "pbroadcast",
                "pcast",
                "pmax",
                "pmean",
                "pmin",
                "ppermute",
                "precv",
                "psend",
                "pshuffle",
                "psum",
                "psum_scatter",
                "pswapaxes",
                "ragged_all_to_all",
                "pvary",
                "unreduced_psum",
                "unreduced_psum_scatter",
            ),
            NO_MESH,
        ),
        **dict.fromkeys(
            (
                "cond",
                "switch",
                "scan",
                "while_loop",
                "fori_loop",
                "map",
                "associative_scan",
                "custom_root",
                "custom_linear_solve",
                "platform_dependent",
                "composite",
                "scatter_apply",
            ),
            FUNCTIONS_OF_ARRAYS,
        ),
        "after_all": "tokens",
        "create_token": "tokens",
        "stage": "references",
        "with_sharding_constraint": "shardings",
        "rng_uniform": "the generator of the platform",
        "rng_bit_generator": "keys of the platform's generator",
        "dce_sink": "returns nothing",
        "scaled_dot": "no platform here has it",
        "empty": "undefined values",
        "DotDimensionNumbers": "a type",
        "reduce_window_shape_tuple": "shapes",
        "conv_general_permutations": "shapes",
        "conv_transpose_shape_tuple": "shapes",
        "conv_shape_tuple": "shapes",
        "conv_general_shape_tuple": "shapes",
        "conv_dimension_numbers": "shapes",
        "padtype_to_pads": "shapes",
        "ragged_dot_general": "see ragged_dot",
        "conv_general_dilated_local": "tested with convolutions",
        "mulhi": "jax has it for accelerators only",
        "broadcast_like": "of a pytree",
    },
    "lax.linalg": {
        "cholesky_update": "see the tests of lax.linalg",
        "qdwh": "iterates",
        "schur": "not unique",
    },
    "nn": dict.fromkeys(
        ("dot_product_attention", "scaled_matmul", "scaled_dot_general", "get_scaled_dot_general_config"),
        "tested with nn",
    ),
    "nn.initializers": {},
    "random": {"key_impl": "a name", "clone": "tested with keys", "key_dtype": "a type"},
    "scipy.linalg": {
        "schur": "not unique",
        "rsf2csf": "takes a Schur form",
        "qr_multiply": "not unique",
        "eigh_tridiagonal": "tested with scipy",
        "funm": FUNCTIONS_OF_ARRAYS,
        "sqrtm": "iterates",
        "hessenberg": "not unique",
    },
    "scipy.sparse.linalg": {},
}


# What is not unique is compared by what it means: the call stands in the place of the braces.
SPECTRUM = (
    "(lambda r: r if not isinstance(r, tuple) else (lambda v, w: (w, jnp.einsum('...ij,...j,...kj->...ik', v, w, "
    "v.conj())))(*sorted(r, key=jnp.ndim, reverse=True)))({})"
)
MEANINGS = dict.fromkeys(("lax.linalg.eigh", "numpy.linalg.eigh", "scipy.linalg.eigh"), SPECTRUM) | {}


class Domain(NamedTuple):
    """Where a function is tried: kinds of dtypes, ranks, bounds of values; `strict`: one shape and dtype."""

    kinds: str = "fiucb"
    ranks: tuple[int, ...] = (0, 1, 2, 3)
    low: float = -9.0
    high: float = 9.0
    strict: bool = False


INTEGERS = Domain("iub")
REAL = Domain("fiub")
FLOAT = Domain("f", strict=True)
NUMBERS = Domain("fiuc", strict=True)
POSITIVE = Domain("f", low=0.1, high=6.0)
SQUARE = Domain("fc", (2, 3), -4.0, 4.0)

DOMAINS: dict[str, Domain] = {
    **dict.fromkeys(
        (
            "bitwise_count bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_invert invert bitwise_left_shift "
            "bitwise_right_shift left_shift right_shift gcd lcm packbits unpackbits"
        ).split(),
        INTEGERS,
    ),
    **dict.fromkeys(
        (
            "apply_along_axis apply_over_axes cross kron tile flip fliplr flipud rot90 tril triu matrix_transpose "
            "argwhere sort_complex hsplit vsplit sort argsort partition argpartition unstack cumulative_prod "
            "cumulative_sum "
            "array_split split gradient diff put_along_axis take_along_axis trapezoid lexsort"
        ).split(),
        Domain(ranks=(1, 2, 3)),
    ),
    **dict.fromkeys(
        "diagonal trace matrix_transpose fft2 ifft2 rfft2 irfft2 fliplr".split(), Domain(ranks=(2, 3))
    ),
    "linalg.outer": Domain(ranks=(1,)),
    "unpackbits": Domain("u", (0, 1, 2)),
    **dict.fromkeys("bartlett blackman hamming hanning kaiser".split(), Domain("iu", (0,), 0, 9)),
    **dict.fromkeys(
        "poly polyadd polysub polyder polyint polyval polymul polydiv roots polyfit".split(),
        Domain("fiuc", (1,), -5.0, 5.0),
    ),
    **{
        f"lax.{name}": Domain("iu", strict=True)
        for name in "shift_left shift_right_arithmetic shift_right_logical clz "
        "population_count bitwise_and bitwise_or bitwise_xor bitwise_not reduce_and reduce_or reduce_xor".split()
    },
    **{
        f"lax.{name}": FLOAT
        for name in "is_finite bessel_i0e bessel_i1e approx_min_k approx_max_k lgamma digamma erf erfc erf_inv "
        "floor ceil round nextafter atan2".split()
    },
    **{
        f"lax.{name}": Domain("f", low=0.1, high=6.0, strict=True)
        for name in "igamma igammac igamma_grad_a random_gamma_grad zeta polygamma betainc".split()
    },
    **{
        f"lax.{name}": Domain("fc", strict=True)
        for name in "acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log1p "
        "logistic sin sinh tan tanh sqrt rsqrt cbrt".split()
    },
    **{f"lax.{name}": Domain("c", strict=True) for name in "real imag conj".split()},
    "dsplit": Domain(ranks=(3,)),
    "bincount": Domain("iub", (1,), 0, 9),
    "digitize": REAL,
    "interp": Domain("fiuc", (0, 1, 2)),
    "convolve": Domain(ranks=(1,)),
    "correlate": Domain(ranks=(1,)),
    "unwrap": REAL,
    "ldexp": REAL,
    "reduce_precision": FLOAT,
    "vander": Domain(ranks=(1,), low=-3, high=3),
    "gammaln": POSITIVE,
}

# The rest of a module's functions.
MODULES: dict[str, Domain] = {
    "numpy": Domain(),
    "numpy.linalg": SQUARE,
    "numpy.fft": Domain("fciub", (1, 2, 3)),
    "lax": NUMBERS,
    "lax.linalg": SQUARE,
    "nn": REAL,
    "nn.initializers": Domain("f"),
    "scipy.special": Domain("fiu", low=-4.0, high=6.0),
    "scipy.linalg": SQUARE,
    "scipy.stats": REAL,
    "scipy.signal": Domain("fc", (1, 2), -3.0, 3.0),
    "scipy.ndimage": Domain("fiu", (1, 2)),
    "scipy.integrate": Domain("fiuc", (1, 2)),
    "scipy.fft": Domain("fi", (1, 2)),
    "scipy.cluster.vq": Domain("f", (2,)),
    "scipy.sparse.linalg": Domain("f", (1,)),
    "random": Domain("h", (0, 1, 2), 0.1, 5.0),
    "ops": Domain(ranks=(1, 2)),
    "image": Domain("fiu", (2,)),
}


def dtype_text(d: Draw) -> str:
    from_table: str = PARAMETERS["dtype"](d)
    return from_table


def choose_axes(d: Draw) -> Any:
    return d.some_axes()


def float_axes(d: Draw) -> Any:
    return d.one_of((d.axis(), None))


REDUCTIONS = (
    "all any amax amin max min sum prod mean std var nanmax nanmin nansum nanprod nanmean nanstd nanvar median "
    "nanmedian "
    "percentile nanpercentile quantile nanquantile ptp count_nonzero average flip roll squeeze expand_dims "
    "logsumexp logmeanexp softmax log_softmax vector_norm standardize size"
).split()

PARAMETER_RULES: dict[str, Rule] = {
    **{f"{name}.axis": choose_axes for name in REDUCTIONS},
    **{
        f"{name}.axis": float_axes
        for name in "argmax argmin nanargmax nanargmin cumsum cumprod nancumsum nancumprod append "
        "delete insert repeat take compress cumulative_sum cumulative_prod unique packbits unpackbits rankdata".split()
    },
    **{
        f"{name}.{p}": square
        for name in "cholesky det eig eigh eigvals eigvalsh inv slogdet solve matrix_power lu_factor "
        "cho_factor expm lu triangular_solve hessenberg tridiagonal".split()
        for p in ("a", "x", "A")
    },
    **{
        f"{name}.{p}": matrix
        for name in "cond matrix_norm matrix_rank pinv qr svd svdvals lstsq polar".split()
        for p in ("a", "x", "M")
    },
    **{f"{name}.b": right_side for name in "solve lstsq".split()},
    **{f"{name}.fill_value": scalar for name in ("full", "full_like")},
    **{f"{name}.shape": some_shape for name in "normal uniform bits gumbel".split()},
    **{
        f"lax.{name}.axes": lambda d: tuple(sorted(d.permutation(len(d.first))[: d.integer(0, len(d.first))]))
        for name in "reduce_sum reduce_prod reduce_max reduce_min reduce_and reduce_or reduce_xor".split()
    },
    "norm.axis": choose_axes,
    "norm.ord": lambda d: d.one_of(("None", "1", "2", "inf", "-inf", "0", "3", "'fro'")),
    "vector_norm.ord": lambda d: d.one_of(("1", "2", "inf", "-inf", "0", "3", "0.5")),
    **{
        f"{name}.where": lambda d: None
        for name in "add bitwise_and bitwise_or bitwise_xor logaddexp logaddexp2 logical_and "
        "logical_or logical_xor maximum minimum multiply negative subtract".split()
    },
    "clip.arr": any_array,
    **{
        # Euclid's algorithm never ends in jax for the lowest integer of a dtype.
        f"{name}.{x}": lambda d: d.array(kinds="iu", low=-7, high=99)
        for x in ("x1", "x2")
        for name in ("gcd", "lcm")
    },  # jax never ends with −2³¹
    "arange.start": lambda d: scalar(d),
    "arange.stop": scalar,
    "arange.step": lambda d: d.one_of(("1", "2", "-1", "0.5", "-0.25", "1j", "jnp.float16(0.5)")),
    "linspace.start": any_array,
    "linspace.stop": any_array,
    "linspace.axis": lambda d: d.one_of((0, -1)),
    "logspace.start": lambda d: d.array(low=-2, high=2),
    "logspace.stop": lambda d: d.array(low=-2, high=2),
    "logspace.axis": lambda d: d.one_of((0, -1)),
    "geomspace.axis": lambda d: d.one_of((0, -1)),
    "geomspace.start": lambda d: d.array(low=1, high=4),
    "geomspace.stop": lambda d: d.array(low=1, high=9),
    "argsort.dtype": lambda d: None,
    "argpartition.kth": lambda d: d.integer(-2, 2),
    "partition.kth": lambda d: d.integer(-2, 2),
    "rollaxis.axis": axis,
    "bartlett.M": small,
    "blackman.M": small,
    "hamming.M": small,
    "hanning.M": small,
    "kaiser.M": small,
    "kaiser.beta": lambda d: d.array(shape=(), kinds="fi"),
    "bincount.weights": lambda d: d.array(shape=d.first),
    "bincount.x": lambda d: d.array(shape=d.shape, kinds="iub", low=-1, high=9),
    "broadcast_to.shape": lambda d: d.one_of(((2, *d.first), d.first, d.some_shape(2))),
    "can_cast.from_": lambda d: dtype_text(d),
    "can_cast.to": lambda d: dtype_text(d),
    "promote_types.a": lambda d: dtype_text(d),
    "promote_types.b": lambda d: dtype_text(d),
    "issubdtype.arg1": lambda d: dtype_text(d),
    "issubdtype.arg2": lambda d: d.one_of(
        ("jnp.floating", "jnp.integer", "jnp.inexact", "np.generic", "jnp.float32")
    ),
    "isdtype.dtype": lambda d: dtype_text(d),
    "isdtype.kind": option("bool", "integral", "real floating", "numeric"),
    "choose.choices": lambda d: "[" + ", ".join(d.array() for _ in range(3)) + "]",
    "choose.a": lambda d: d.array(kinds="iu", low=-1, high=4, plain=True),
    "choose.mode": option("clip", "wrap"),
    "clip.min": lambda d: d.one_of((any_array, "None")),
    "clip.max": lambda d: d.one_of((any_array, "None")),
    "compress.condition": lambda d: d.array(shape=(d.integer(0, 5),), dtype="bool"),
    "compress.a": any_array,
    "extract.condition": lambda d: d.array(shape=d.shape, dtype="bool"),
    "extract.arr": lambda d: d.array(shape=d.shape),
    "convolve.mode": option("full", "same", "valid"),
    "correlate.mode": option("full", "same", "valid"),
    "convolve.v": vector,
    "correlate.v": vector,
    "cov.fweights": lambda d: f"jnp.ones({d.first[-1] if d.first else 1}, int)",
    "cov.aweights": lambda d: f"jnp.ones({d.first[-1] if d.first else 1})",
    "cov.ddof": option(None, 0, 1),
    "cov.y": lambda d: d.array(shape=d.first),
    "corrcoef.y": lambda d: d.array(shape=d.first),
    "cov.dtype": float_dtype,
    "corrcoef.dtype": float_dtype,
    "cross.a": lambda d: d.array(shape=(*d.shape[:-1], d.integer(2, 3)) if d.shape else (3,)),
    "cross.b": lambda d: d.array(shape=(*d.shape[:-1], d.integer(2, 3)) if d.shape else (3,)),
    "cross.axis": lambda d: d.one_of((-1, None)),
    "cross.axisa": lambda d: -1,
    "cross.axisb": lambda d: -1,
    "cross.x1": lambda d: d.array(shape=(2, 3)),
    "cross.x2": lambda d: d.array(shape=d.one_of(((2, 3), (3,)))),
    "delete.obj": lambda d: d.one_of(
        (0, -1, "slice(0, 2)", "[0, 1]", "jnp.asarray([0])", "np.array([], int)", "slice(None)")
    ),
    "insert.obj": lambda d: d.one_of(
        (0, -1, "slice(0, 2)", "[0, 1]", "jnp.asarray([0, 0])", "np.array([], int)")
    ),
    "insert.values": scalar,
    "diag.v": lambda d: d.array(shape=d.some_shape(d.one_of((1, 2)))),
    "diag_indices_from.arr": lambda d: d.array(shape=(3,) * d.one_of((1, 2, 3)), plain=True),
    "tril_indices_from.arr": lambda d: d.array(shape=d.some_shape(2), plain=True),
    "triu_indices_from.arr": lambda d: d.array(shape=d.some_shape(2), plain=True),
    "mask_indices.n": small,
    "mask_indices.mask_func": lambda d: d.one_of(("jnp.tril", "jnp.triu")),
    "digitize.bins": lambda d: f"jnp.asarray({sorted(d.integer(-9, 9) for _ in range(d.integer(0, 5)))})",
    "digitize.method": option("scan", "sort", "compare_all"),
    "searchsorted.a": lambda d: f"jnp.sort({d.array(shape=(d.one_of((0, 1, 3, 8, 17, 33)),), plain=True)})",
    "searchsorted.method": option("scan", "sort", "compare_all", "scan_unrolled"),
    "searchsorted.sorter": lambda d: None,
    "dot.b": product_with,
    "matmul.b": product_with,
    "matmul.x2": product_with,
    "inner.b": lambda d: d.array(shape=(*d.some_shape(1), *d.first[-1:])),
    "matvec.x1": lambda d: d.array(shape=(2, 3)),
    "matvec.x2": lambda d: d.array(shape=d.one_of(((3,), (4, 3)))),
    "vecmat.x1": lambda d: d.array(shape=d.one_of(((3,), (4, 3)))),
    "vecmat.x2": lambda d: d.array(shape=(3, 2)),
    "tensordot.a": lambda d: d.array(shape=d.shape),
    "tensordot.b": lambda d: d.array(shape=d.first[::-1]),
    "tensordot.x1": lambda d: d.array(shape=d.shape),
    "tensordot.x2": lambda d: d.array(shape=d.first),
    "tensordot.axes": tensordot_axes,
    "vdot.b": lambda d: d.array(shape=d.first),
    "outer.b": any_array,
    "einsum.subscripts": lambda d: None,
    "fill_diagonal.a": lambda d: d.array(shape=d.one_of(((3, 3), (2, 4), (4, 2), (2, 2, 2)))),
    "fill_diagonal.val": lambda d: d.array(shape=d.one_of(((), (2,), (3,)))),
    "frombuffer.buffer": lambda d: "np.arange(6, dtype='float32').tobytes()",
    "frombuffer.dtype": option("float32", "int16", "uint8"),
    "frombuffer.count": option(-1, 2),
    "frombuffer.offset": option(0, 4),
    "fromstring.string": option("1 2 3"),
    "fromstring.sep": option(" "),
    "fromstring.dtype": option("float32", "int32"),
    "fromstring.count": option(-1, 2),
    "fromfunction.function": lambda d: d.one_of(("lambda i, j: i + j", "lambda i, j: i == j")),
    "fromfunction.shape": lambda d: d.some_shape(2),
    "gradient.varargs": lambda d: d.one_of((None, "2.0", "1")),
    "gradient.axis": choose_axes,
    "heaviside.x2": any_array,
    "histogram2d.x": lambda d: d.array(shape=(5,)),
    "histogram2d.y": lambda d: d.array(shape=(5,)),
    "histogram2d.range": lambda d: d.one_of((None, [(-3, 3), (0, 5)])),
    "histogram2d.bins": lambda d: d.one_of((3, (2, 4))),
    "histogramdd.sample": lambda d: d.array(shape=(5, 2)),
    "histogramdd.range": lambda d: d.one_of((None, [(-3, 3), (0, 5)])),
    "histogramdd.bins": lambda d: d.one_of((3, (2, 4))),
    "histogramdd.weights": lambda d: d.array(shape=(5,), kinds="f", low=0.0, high=3.0),
    "indices.dimensions": some_shape,
    "interp.x": any_array,
    "interp.xp": lambda d: f"jnp.asarray({sorted(round(d.random.uniform(-9, 9), 1) for _ in range(4))})",
    "interp.fp": lambda d: d.array(shape=(4,)),
    "interp.left": lambda d: d.one_of((scalar, "'extrapolate'")),
    "interp.right": lambda d: d.one_of((scalar, "'extrapolate'")),
    "interp.period": option(None, 5.0, 6),
    "intersect1d.ar2": lambda d: d.array(shape=(4,)),
    "isin.method": option("auto", "compare_all", "binary_search", "sort"),
    "ix_.args": vector,
    "meshgrid.xi": vector,
    "meshgrid.copy": lambda d: True,
    "lexsort.keys": lambda d: (
        "(" + "".join(d.array(shape=d.shape) + ", " for _ in range(d.integer(1, 3))) + ")"
    ),
    "moveaxis.source": axis,
    "moveaxis.destination": axis,
    "ones.shape": some_shape,
    "zeros.shape": some_shape,
    "full.shape": some_shape,
    "permute_dims.axes": lambda d: d.permutation(len(d.first)),
    "transpose.axes": lambda d: d.permutation(len(d.first)),
    "lax.transpose.permutation": lambda d: d.permutation(len(d.first)),
    "piecewise.condlist": lambda d: (
        f"[{d.array(shape=d.first, dtype='bool')}, {d.array(shape=d.first, dtype='bool')}]"
    ),
    "piecewise.funclist": lambda d: d.one_of(("[1, 2]", "[1.5, lambda x: -x]", "[lambda x: x, 0, 3]")),
    "place.mask": lambda d: d.array(shape=d.first, dtype="bool"),
    "place.vals": lambda d: d.array(shape=(d.integer(1, 3),)),
    "place.inplace": lambda d: False,
    "put.inplace": lambda d: False,
    "put_along_axis.inplace": lambda d: False,
    "fill_diagonal.inplace": lambda d: False,
    "poly.seq_of_zeros": lambda d: d.array(shape=d.one_of(((3,), (0,), (2, 2))), low=-3, high=3),
    "polyder.m": option(0, 1, 2),
    "polyint.m": option(0, 1, 2),
    "polyint.k": lambda d: d.one_of((None, scalar)),
    "polyfit.x": lambda d: d.array(shape=(5,), kinds="fi"),
    "polyfit.y": lambda d: d.array(shape=d.one_of(((5,), (5, 2)))),
    "polyfit.deg": option(0, 1, 2),
    "polyfit.w": lambda d: d.array(shape=(5,), kinds="f", low=0.5, high=2.0),
    "polyfit.cov": option(False, True, "unscaled"),
    "polyval.p": vector,
    "unpackbits.a": lambda d: d.array(dtype="uint8"),
    "pinv.rcond": lambda d: None,
    "outer.x1": lambda d: d.array(shape=(3,)),
    "outer.x2": lambda d: d.array(shape=(2,)),
    "put.ind": index_like,
    "put.v": vector,
    "put.mode": option(None, "clip", "wrap"),
    "put_along_axis.indices": along_axis,
    "put_along_axis.values": scalar,
    "put_along_axis.axis": lambda d: -1,
    "put_along_axis.mode": option(None, "clip", "wrap", "promise_in_bounds", "fill"),
    "take.indices": index_like,
    "take.mode": option(None, "clip", "wrap", "fill"),
    "take_along_axis.indices": along_axis,
    "take_along_axis.axis": lambda d: d.one_of((-1, None)),
    "take_along_axis.mode": option(None, "clip", "fill"),
    "ravel_multi_index.multi_index": lambda d: (
        "(" + ", ".join(d.array(shape=(3,), kinds="iu", low=-2, high=4) for _ in "12") + ")"
    ),
    "ravel_multi_index.dims": lambda d: (3, 4),
    "ravel_multi_index.mode": option("clip", "wrap", "raise"),
    "ravel_multi_index.order": option("C", "F"),
    "ravel_multi_index.dtype": lambda d: d.one_of(("None", "jnp.int16")),
    "unravel_index.indices": lambda d: d.array(kinds="iu", low=-3, high=14),
    "unravel_index.shape": lambda d: d.one_of(((3, 4), (12,), 5, "(jnp.asarray(3), 4)")),
    "repeat.repeats": lambda d: d.one_of((2, 0, "np.array([1, 2])", "jnp.asarray(2)")),
    "reshape.shape": lambda d: d.one_of((-1, (1, *d.first), d.first[::-1], (*d.first, 1))),
    "reshape.order": option("C", "F"),
    "ravel.order": option("C", "F"),
    "copy.order": option(None, "C"),
    "array.order": option("K", "C"),
    "asarray.order": option(None, "C"),
    "resize.new_shape": some_shape,
    "roll.shift": lambda d: d.integer(-5, 5),
    "rot90.k": lambda d: d.integer(-5, 5),
    "rot90.axes": axis_pair,
    "select.condlist": lambda d: f"[{d.array(dtype='bool')}, {d.array(dtype='bool')}]",
    "select.choicelist": lambda d: f"[{any_array(d)}, {any_array(d)}]",
    "swapaxes.axis1": axis,
    "tile.reps": lambda d: d.one_of((2, 0, (2, 1), (1, 2, 2))),
    "tri.N": small,
    "tri.M": lambda d: d.one_of((None, 3)),
    "tri.k": lambda d: d.one_of((offset, lambda d: d.argument(str(offset(d))))),
    "eye.M": lambda d: d.one_of((None, 3)),
    "eye.k": lambda d: d.one_of((offset, lambda d: d.argument(str(offset(d))))),
    "tril.k": lambda d: d.one_of((offset, lambda d: d.argument(str(offset(d))))),
    "triu.k": lambda d: d.one_of((offset, lambda d: d.argument(str(offset(d))))),
    "tril_indices.n": small,
    "tril_indices.m": option(None, 2, 4),
    "triu_indices.n": small,
    "triu_indices.m": option(None, 2, 4),
    "trapezoid.x": lambda d: d.array(shape=d.first),
    "trim_zeros.filt": vector,
    "trim_zeros.axis": lambda d: None,
    "vander.N": lambda d: d.one_of((None, 0, 3)),
    "where.x": any_array,
    "where.y": any_array,
    "where.size": lambda d: None,
    "where.fill_value": lambda d: None,
    "where.condition": lambda d: d.array(kinds="fiub"),
    "unique.axis": lambda d: None,
    "matrix_power.n": lambda d: d.integer(-2, 5),
    "multi_dot.arrays": lambda d: (
        f"[{d.array(shape=(2, 3))}, {d.array(shape=(3, 4))}, {d.array(shape=(4, 2))}]"
    ),
    "cond.p": lambda d: d.one_of(("None", "1", "2", "-2", "inf", "'fro'")),
    "qr.mode": option("reduced", "complete", "r", "full", "economic"),
    "slogdet.method": option(None, "lu", "qr"),
    "tensorinv.a": lambda d: d.array(shape=(2, 3, 6), kinds="f"),
    "tensorinv.ind": lambda d: 2,
    "tensorsolve.a": lambda d: d.array(shape=(2, 3, 6), kinds="f"),
    "tensorsolve.b": lambda d: d.array(shape=(2, 3), kinds="f"),
    "tensorsolve.axes": lambda d: None,
    "lax.linalg.eigh.x": hermitian,
    **{f"scipy.linalg.{name}.a": hermitian for name in ("eigh", "cholesky", "cho_factor")},
    "fft.n": option(None, 1, 4, 7, 16),
    "ifft.n": option(None, 1, 4),
    "rfft.n": option(None, 1, 4, 5),
    "irfft.n": option(None, 2, 4, 5),
    "hfft.n": option(None, 2, 5),
    "ihfft.n": option(None, 2, 5),
    "fftfreq.n": option(1, 2, 5, 8),
    "rfftfreq.n": option(1, 2, 5, 8),
    "fftfreq.d": option(1.0, 0.5),
    "rfftfreq.d": option(1.0, 0.5),
    "dct.n": option(None, 3, 8),
    "idct.n": option(None, 3, 8),
    "dct.norm": option(None, "ortho"),
    "idct.norm": option(None, "ortho"),
    "dctn.norm": option(None, "ortho"),
    "idctn.norm": option(None, "ortho"),
    **{
        f"{n}.axes": lambda d: (-1,) if len(d.first) == 1 else axis_pair(d)
        for n in "fft2 ifft2 rfft2 irfft2 fftn ifftn rfftn irfftn dctn idctn".split()
    },
    **{f"{n}.s": lambda d: None for n in "fft2 ifft2 rfft2 irfft2".split()},
    "fftn.s": lengths,
    "result_type.args": lambda d: d.one_of((scalar, dtype_text)),
    "astype.dtype": dtype_text,
    "histogram_bin_edges.bins": bins,
    "broadcast_arrays.args": any_array,
    "round.decimals": decimals,
    "delete.arr": lambda d: d.array(shape=d.shape),
    "diff.n": option(0, 1, 2),
    "nan_to_num.copy": lambda d: True,
    "reshape.copy": lambda d: None,
    "asarray.copy": lambda d: None,
    "count_nonzero.keepdims": boolean,
    "isscalar.element": any_array,
    "iterable.y": any_array,
    "expand_dims.axis": axis,
    "array_equal.equal_nan": boolean,
    "ldexp.x2": lambda d: d.array(kinds="iu", low=-9, high=9),
    "concatenate.dtype": lambda d: dtype_text(d),
    "tile.A": any_array,
    "block.arrays": lambda d: f"[{d.array(shape=(2,))}, {d.array(shape=(3,))}]",
    # lax
    **{f"lax.complex.{p}": lambda d: d.array(shape=d.shape, dtype="float32", plain=True) for p in "xy"},
    "lax.broadcast_in_dim.shape": lambda d: (2, *d.first),
    "lax.broadcast_in_dim.broadcast_dimensions": lambda d: tuple(range(1, 1 + len(d.first))),
    "lax.reduce_precision.exponent_bits": option(2, 5, 8),
    "lax.reduce_precision.mantissa_bits": option(0, 3, 10),
    "broadcast.sizes": some_shape,
    "lax.broadcast_to_rank.rank": lambda d: len(d.first) + d.integer(0, 2),
    "broadcasted_iota.dtype": lambda d: dtype_text(d),
    "broadcasted_iota.shape": lambda d: d.some_shape(2),
    "broadcasted_iota.dimension": option(0, 1),
    "iota.dtype": lambda d: dtype_text(d),
    "iota.size": small,
    "collapse.start_dimension": option(0, 1),
    "collapse.stop_dimension": option(None, 2),
    "lax.argmax.axis": lambda d: d.integer(0, max(len(d.first) - 1, 0)),
    "lax.argmin.axis": lambda d: d.integer(0, max(len(d.first) - 1, 0)),
    "lax.expand_dims.dimensions": lambda d: (0,),
    "lax.squeeze.dimensions": lambda d: tuple(i for i, n in enumerate(d.first) if n == 1),
    "lax.split.sizes": lambda d: (1, max((d.first or (1,))[0] - 1, 0)),
    "lax.split.axis": lambda d: 0,
    "lax.reshape.new_sizes": lambda d: d.one_of((d.first[::-1], (*d.first, 1))),
    "lax.reshape.dimensions": lambda d: None,
    "lax.slice_in_dim.start_index": lambda d: d.integer(0, 1),
    "lax.slice_in_dim.limit_index": lambda d: d.one_of((None, 1, -1)),
    "lax.index_in_dim.index": lambda d: d.one_of((0, -1)),
    "lax.top_k.k": option(0, 1, 2),
    "numpy.top_k.mode": option("largest", "smallest"),
    "lax.dynamic_index_in_dim.index": lambda d: d.array(shape=(), kinds="iu", low=-4, high=4),
    "lax.dynamic_slice_in_dim.start_index": lambda d: d.array(shape=(), kinds="iu", low=-4, high=4),
    "lax.dynamic_slice_in_dim.slice_size": option(0, 1, 2),
    "lax.tile.reps": lambda d: tuple(d.integer(0, 2) for _ in d.first),
    "lax.rev.dimensions": lambda d: tuple(range(len(d.first))),
    "integer_pow.y": option(-2, 0, 1, 3),
    "lax.full.dtype": lambda d: dtype_text(d),
    "lax.concatenate.operands": lambda d: f"[{d.array(shape=d.shape)}, {d.array(shape=d.shape)}]",
    "lax.stack.operands": lambda d: f"[{d.array(shape=d.shape)}, {d.array(shape=d.shape)}]",
    "select.pred": lambda d: d.array(shape=d.one_of(((), d.shape)), dtype="bool"),
    "select_n.which": lambda d: d.array(
        shape=d.one_of(((), d.shape)), dtype=d.one_of(("bool", "int32")), low=0, high=1
    ),
    "select_n.cases": lambda d: d.array(shape=d.shape, dtype=d.dtype, plain=True),
    "lax.sort_key_val.values": lambda d: d.array(shape=d.first),
    "lax.convert_element_type.operand": lambda d: d.array(kinds="fiucb"),
    "lax.bitcast_convert_type.operand": lambda d: d.array(plain=True),
    "lax.index_take.idxs": lambda d: "(jnp.asarray([0, 0]),)",
    "lax.index_take.axes": lambda d: (0,),
    "lax.round.rounding_method": option(0, 1),
    "lax.polygamma.m": lambda d: d.array(low=0, high=3),
    "lax.broadcast_shapes.shapes": lambda d: d.broadcastable(),
    "lax.shape_as_value.shape": some_shape,
    "lax.batch_matmul.lhs": lambda d: d.array(shape=(2, 2, 3)),
    "lax.batch_matmul.rhs": lambda d: d.array(shape=(2, 3, 4)),
    "lax.dot.lhs": lambda d: d.array(shape=(2, 3)),
    "lax.dot.rhs": lambda d: d.array(shape=d.one_of(((3,), (3, 2)))),
    "lax.dot.dimension_numbers": lambda d: None,
    "approx_max_k.k": option(1, 2),
    "approx_min_k.k": option(1, 2),
    "approx_max_k.reduction_dimension": lambda d: -1,
    "approx_min_k.reduction_dimension": lambda d: -1,
    "lax.linalg.triangular_solve.a": lambda d: d.array(shape=(3, 3), kinds="fc", plain=True),
    "lax.linalg.triangular_solve.b": lambda d: d.array(shape=(3, 3), dtype=d.dtype, plain=True),
    "lax.linalg.symmetric_product.a_matrix": lambda d: d.array(shape=(3, 2), kinds="f"),
    "lax.linalg.symmetric_product.c_matrix": lambda d: d.array(shape=(3, 3), kinds="f", dtype=d.dtype),
    "lu_pivots_to_permutation.pivots": lambda d: "jnp.asarray([1, 2, 2], jnp.int32)",
    "lu_pivots_to_permutation.permutation_size": option(3, 5),
    # random
    **{f"random.{n}.key": key for n in ("fold_in", "split", "key_data")},
    "fold_in.data": lambda d: d.array(shape=(), kinds="iu", low=0),
    "random.key_data.keys": key,
    "wrap_key_data.key_bits_array": lambda d: "jnp.asarray([1, 2], jnp.uint32)",
    "wrap_key_data.dtype": lambda d: None,
    "random.key.dtype": lambda d: None,
    "random.key.seed": lambda d: d.array(shape=(), kinds="iu"),
    "random.PRNGKey.seed": lambda d: d.array(shape=(), kinds="iu"),
    "random.split.num": option(1, 3, (2, 2)),
    "random.bits.dtype": lambda d: d.one_of(("jnp.uint8", "jnp.uint16", "jnp.uint32", "None")),
    "random.ball.d": option(1, 3),
    "random.ball.p": option(1, 2, 3.0),
    "random.bernoulli.p": probability,
    "random.bernoulli.mode": option("low", "high"),
    "random.binomial.n": lambda d: d.array(low=1, high=30),
    "random.binomial.p": probability,
    "random.geometric.p": lambda d: d.array(low=0.1, high=1.0),
    "random.categorical.logits": lambda d: d.array(shape=(2, 3)),
    "random.categorical.axis": option(-1, 0),
    "random.categorical.shape": lambda d: None,
    "random.categorical.mode": option(None, "low", "high"),
    "random.choice.a": lambda d: d.one_of(
        (5, lambda d: d.array(shape=(5,)), lambda d: d.array(shape=(4, 2)))
    ),
    "random.choice.shape": option((), (3,), (2, 2)),
    "random.choice.p": lambda d: None,
    "random.choice.axis": lambda d: 0,
    "random.choice.mode": option(None, "low", "high"),
    "random.gumbel.mode": option(None, "low", "high"),
    "random.generalized_normal.p": positive,
    "random.dirichlet.alpha": lambda d: d.array(shape=(3,), low=0.2, high=3.0),
    "random.multivariate_normal.mean": lambda d: "jnp.zeros(3)",
    "random.multivariate_normal.cov": lambda d: "jnp.eye(3) * 2",
    "random.multivariate_normal.method": option("cholesky", "eigh", "svd"),
    "random.multinomial.n": lambda d: d.array(shape=(), low=1, high=9),
    "random.multinomial.p": lambda d: "jnp.asarray([0.2, 0.3, 0.5])",
    "random.orthogonal.n": option(1, 2, 3),
    "random.orthogonal.m": option(None, 2, 4),
    "random.orthogonal.shape": option((), (2,)),
    "random.poisson.lam": lambda d: d.array(low=0.1, high=20.0),
    "random.permutation.x": lambda d: d.one_of((5, lambda d: d.array(shape=(4, 2)))),
    "random.permutation.axis": option(0, -1),
    "random.randint.shape": some_shape,
    "random.randint.minval": lambda d: d.one_of((scalar, "-3", "0")),
    "random.randint.maxval": lambda d: d.one_of((scalar, "5", "200")),
    "random.triangular.left": lambda d: "0.0",
    "random.triangular.mode": lambda d: d.array(low=1, high=2),
    "random.triangular.right": lambda d: "3.0",
    "random.truncated_normal.lower": lambda d: "-1.0",
    "random.truncated_normal.upper": lambda d: d.array(low=1, high=3),
    **{
        f"random.{n}.dtype": float_dtype
        for n in "ball beta cauchy chisquare dirichlet double_sided_maxwell exponential f gamma generalized_normal "
        "gumbel laplace loggamma "
        "logistic lognormal maxwell multivariate_normal normal orthogonal pareto rayleigh t triangular "
        "truncated_normal uniform wald "
        "weibull_min multinomial".split()
    },
    **{
        f"random.{n}.shape": lambda d: None
        for n in "beta binomial chisquare dirichlet f gamma generalized_normal geometric loggamma lognormal "
        "multinomial pareto poisson "
        "rayleigh t triangular truncated_normal wald bernoulli".split()
    },
    # nn, scipy
    "one_hot.x": lambda d: d.array(kinds="iu", low=-2, high=5),
    "one_hot.num_classes": small,
    "one_hot.axis": option(-1, 0),
    "glu.x": lambda d: d.array(shape=(*d.shape, 4)),
    "glu.axis": lambda d: -1,
    "squareplus.b": scalar,
    "celu.alpha": scalar,
    "elu.alpha": scalar,
    "logsumexp.b": any_array,
    "nn.standardize.mean": lambda d: None,
    "nn.standardize.variance": lambda d: None,
    "standardize.algorithm": option("fast", "stable"),
    "logsumexp.where": where,
    "comb.N": lambda d: d.array(low=0, high=9),
    "comb.k": lambda d: d.array(low=0, high=9),
    "bernoulli.n": small,
    "bessel_jn.z": lambda d: d.array(shape=(2,), kinds="f", low=0.1, high=5.0),
    "bessel_jn.v": option(0, 1, 3),
    "multigammaln.d": option(1, 2, 3),
    "multigammaln.a": lambda d: d.array(low=3, high=9),
    "scipy.special.polygamma.n": option(0, 1, 2),
    "expn.n": lambda d: d.array(kinds="iu", low=0, high=4),
    "expn.x": positive,
    "sph_harm_y.n": lambda d: "jnp.asarray([2, 3])",
    "sph_harm_y.m": lambda d: "jnp.asarray([0, 1])",
    "sph_harm_y.theta": lambda d: "jnp.asarray([0.5, 0.6])",
    "sph_harm_y.phi": lambda d: "jnp.asarray([1.0, 2.0])",
    "zeta.q": positive,
    "scipy.special.zeta.x": lambda d: d.array(low=1.5, high=6.0),
    "factorial.n": lambda d: d.array(low=0, high=9),
    "scipy.special.logit.p": probability,
    "ndtri.p": probability,
    "entr.x": any_array,
    **{
        f"scipy.special.{n}.{p}": positive
        for n in "beta betainc betaln gammainc gammaincc hyp1f1 hyp2f1 gammaln poch".split()
        for p in "a b c".split()
    },
    "betainc.x": probability,
    "hyp2f1.x": lambda d: d.array(low=-0.9, high=0.9, kinds="f"),
    "gammainc.x": positive,
    "gammaincc.x": positive,
    "boxcox.x": positive,
    "boxcox1p.x": positive,
    "dft.n": small,
    "dft.scale": option(None, "sqrtn", "n"),
    "dft.dtype": lambda d: None,
    "hadamard.n": option(1, 2, 4, 8),
    "hadamard.dtype": lambda d: dtype_text(d),
    "helmert.n": option(2, 3, 5),
    "hilbert.n": small,
    "invhilbert.n": option(1, 3),
    "pascal.n": option(1, 3),
    "invpascal.n": option(1, 3),
    "pascal.kind": option("symmetric", "lower", "upper"),
    "invpascal.kind": option("symmetric", "lower", "upper"),
    "block_diag.arrs": lambda d: d.array(shape=d.some_shape(d.one_of((0, 1, 2)))),
    **{f"{n}.{p}": vector for n in "circulant toeplitz hankel".split() for p in "c r".split()},
    "companion.a": lambda d: d.array(shape=(3,)),
    "fiedler.a": vector,
    "fiedler_companion.a": lambda d: d.array(shape=(4,)),
    "convolution_matrix.a": lambda d: d.array(shape=(3,)),
    "convolution_matrix.n": option(1, 4),
    "convolution_matrix.mode": option("full", "same", "valid"),
    "leslie.f": lambda d: d.array(shape=(3,)),
    "leslie.s": lambda d: d.array(shape=(2,)),
    "scipy.linalg.eigh.b": lambda d: None,
    "scipy.linalg.eigh.type": lambda d: 1,
    "cho_solve.c_and_lower": lambda d: "(jnp.eye(3) * 2, True)",
    "cho_solve.b": lambda d: d.array(shape=(3,), kinds="f"),
    "lu_solve.lu_and_piv": lambda d: "(jnp.eye(3) * 2, jnp.arange(3))",
    "lu_solve.b": lambda d: d.array(shape=(3,), kinds="f"),
    "solve_triangular.a": square,
    "solve_triangular.b": right_side,
    "expm_frechet.A": lambda d: d.array(shape=(3, 3), kinds="f"),
    "expm_frechet.E": lambda d: d.array(shape=(3, 3), kinds="f"),
    "expm_frechet.method": lambda d: None,
    "polar.side": option("right", "left"),
    "polar.method": option("qdwh", "svd"),
    **{
        f"solve_sylvester.{p}": lambda d: d.array(shape=(2, 2), dtype="float32", low=1, high=3, plain=True)
        for p in "ABC"
    },
    "solve_sylvester.method": lambda d: None,
    "svd.a": matrix,
    "rankdata.method": option("average", "min", "max", "dense", "ordinal"),
    "sem.axis": float_axes,
    "mode.axis": float_axes,
    **{
        f"scipy.signal.{n}.{p}": lambda d: d.array(shape=d.some_shape(len(d.first)) if d.shapes else d.shape)
        for n in "convolve correlate fftconvolve".split()
        for p in ("in1", "in2")
    },
    **{
        f"{n}.{p}": lambda d: d.array(shape=(d.integer(1, 4), d.integer(1, 4)))
        for n in "convolve2d correlate2d".split()
        for p in ("in1", "in2")
    },
    **{f"{n}.mode": option("full", "same", "valid") for n in "convolve2d correlate2d fftconvolve".split()},
    "convolve.method": option("auto", "direct", "fft"),
    "scipy.signal.correlate.method": option("auto", "direct", "fft"),
    "convolve2d.boundary": lambda d: "'fill'",
    "correlate2d.boundary": lambda d: "'fill'",
    "fftconvolve.axes": lambda d: None,
    **{f"{n}.{p}": lambda d: d.array(shape=(16,)) for n in "csd stft welch".split() for p in "xy"},
    "istft.Zxx": lambda d: d.array(shape=(5, 4), kinds="c"),
    "istft.nperseg": lambda d: 8,
    "istft.nfft": lambda d: None,
    "istft.boundary": boolean,
    "detrend.type": option("linear", "constant"),
    "detrend.data": lambda d: d.array(shape=(6,)),
    "csd.axis": lambda d: -1,
    "stft.axis": lambda d: -1,
    "welch.axis": lambda d: -1,
    "map_coordinates.input": lambda d: d.array(shape=(3, 4)),
    "map_coordinates.coordinates": lambda d: f"[{d.array(shape=(2,))}, {d.array(shape=(2,))}]",
    "map_coordinates.order": option(0, 1),
    "map_coordinates.mode": option("constant", "nearest", "wrap", "mirror", "reflect"),
    "vq.obs": lambda d: d.array(shape=(4, 2)),
    "vq.code_book": lambda d: d.array(shape=(3, 2)),
    **{f"{n}.A": lambda d: "lambda x: x * 2.0" for n in "cg bicgstab gmres".split()},
    **{
        f"{n}.b": lambda d: d.array(shape=(3,), dtype="float32", plain=True)
        for n in "cg bicgstab gmres".split()
    },
    **{f"{n}.x0": lambda d: None for n in "cg bicgstab gmres".split()},
    **{f"{n}.atol": option(0.0, 0.1) for n in "cg bicgstab gmres".split()},
    **{
        f"{n}.data": lambda d: d.array(shape=d.shape, plain=True)
        for n in "segment_sum segment_max segment_min segment_prod".split()
    },
    "segment_sum.mode": lambda d: None,
    "segment_max.mode": lambda d: None,
    "segment_min.mode": lambda d: None,
    "segment_prod.mode": lambda d: None,
    "ops.segment_sum.segment_ids": segments,
    **{f"{n}.segment_ids": segments for n in "segment_sum segment_max segment_min segment_prod".split()},
    "resize.image": lambda d: d.array(shape=(3, 4)),
    "image.resize.shape": lambda d: (d.integer(1, 5), d.integer(1, 5)),
    "image.resize.method": option("nearest", "linear", "cubic", "lanczos3", "lanczos5"),
    "scale_and_translate.image": lambda d: d.array(shape=(3, 4), dtype="float32"),
    "scale_and_translate.shape": lambda d: (4, 5),
    "scale_and_translate.spatial_dims": lambda d: (0, 1),
    "scale_and_translate.scale": lambda d: "jnp.ones(2)",
    "scale_and_translate.translation": lambda d: "jnp.zeros(2)",
    "scale_and_translate.method": option("linear", "cubic"),
    "constant.value": scalar,
    "variance_scaling.mode": option("fan_in", "fan_out", "fan_avg"),
    "variance_scaling.distribution": option("normal", "uniform", "truncated_normal"),
    "variance_scaling.scale": option(1.0, 2.0),
    **{f"nn.initializers.{n}.dtype": float_dtype for n in "ones zeros".split()},
    "nn.initializers.truncated_normal.lower": lambda d: -1.0,
    "nn.initializers.truncated_normal.upper": lambda d: 2.0,
}


Call = tuple[list[str], dict[str, Any]]


def pad_call(d: Draw) -> Call:
    mode = d.one_of(
        (
            "constant",
            "edge",
            "reflect",
            "symmetric",
            "wrap",
            "empty",
            "linear_ramp",
            "maximum",
            "minimum",
            "mean",
            "median",
        )
    )
    array = d.array()
    width = d.one_of(
        (
            d.integer(0, 4),
            (d.integer(0, 3), d.integer(0, 3)),
            [(d.integer(0, 6), d.integer(0, 6)) for _ in d.first] or 0,
        )
    )
    options: dict[str, Any] = {"mode": repr(mode)}
    if mode == "constant" and d.chance(0.5):
        options["constant_values"] = d.one_of((scalar, "(1, 2)", "nan"))
    if mode in ("reflect", "symmetric") and d.chance(0.5):
        options["reflect_type"] = repr(d.one_of(("even", "odd")))
    if mode in ("maximum", "minimum", "mean", "median") and d.chance(0.5):
        options["stat_length"] = d.one_of((1, 2, (1, 3)))
    if mode == "linear_ramp" and d.chance(0.5):
        options["end_values"] = d.one_of((1, (2.5, 3)))
    return [array, repr(width)], options


def where_call(d: Draw) -> Call:
    if d.chance(0.6):
        return [d.array(kinds="fiub"), any_array(d), any_array(d)], {}
    options: dict[str, Any] = {"size": d.one_of((0, 1, 3, 9))}
    if d.chance(0.7):
        options["fill_value"] = PARAMETERS["fill_value"](d)
    return [any_array(d)], options


def einsum_call(d: Draw) -> Call:
    text, shapes = d.one_of(
        (
            ("ij,jk->ik", ((2, 3), (3, 4))),
            ("ij,ij->", ((2, 3), (2, 3))),
            ("ii->i", ((3, 3),)),
            ("ij->ji", ((2, 3),)),
            ("...i,i->...", ((2, 3), (3,))),
            ("i,j,k->kj", ((2,), (3,), (2,))),
            ("ij->", ((0, 3),)),
            ("ij,jk", ((2, 0), (0, 3))),
        )
    )
    options = {"preferred_element_type": PARAMETERS["preferred_element_type"](d)} if d.chance(0.2) else {}
    if d.drawn["function"].endswith("path"):
        options = {}
    return [repr(text), *(d.array(shape=shape) for shape in shapes)], options


def dot_general_call(d: Draw) -> Call:
    d.strict = d.chance(0.7)
    lhs, rhs, numbers = d.one_of(
        (
            ((2, 3), (3, 4), (((1,), (0,)), ((), ()))),
            ((2, 3, 4), (2, 4, 3), (((2,), (1,)), ((0,), (0,)))),
            ((3,), (3,), (((0,), (0,)), ((), ()))),
            ((2, 3), (2, 3), (((), ()), ((0, 1), (0, 1)))),
            ((2, 0), (0, 2), (((1,), (0,)), ((), ()))),
        )
    )
    options = {"preferred_element_type": PARAMETERS["preferred_element_type"](d)} if d.chance(0.3) else {}
    return [d.array(shape=lhs), d.array(shape=rhs), repr(numbers)], options


def convolution(local: bool = False) -> Callable[[Draw], Call]:
    def call(d: Draw) -> Call:
        d.kinds, d.strict = "fic", True
        d.dtype = d.some_dtype("fic")
        size = d.integer(3, 6)
        name = d.drawn["function"]
        stride, padding = (d.integer(1, 2),), d.one_of(("'VALID'", "'SAME'", "[(1, 2)]"))
        lhs, rhs = d.array(shape=(2, 3, size), plain=True), d.array(shape=(4, 3, 2), plain=True)
        if name == "conv":
            return [lhs, rhs, repr(stride), d.one_of(("'VALID'", "'SAME'"))], {}
        if name == "conv_with_general_padding":
            return [lhs, rhs, repr(stride), "[(1, 1)]", "(2,)", "(1,)"], {}
        if name == "conv_general_dilated_patches":
            return [lhs, "(2,)", repr(stride), padding], {"rhs_dilation": d.one_of((None, (2,)))}
        if name == "conv_transpose":
            return [
                d.array(shape=(2, size, 3), plain=True),
                d.array(shape=(2, 3, 4), plain=True),
                repr(stride),
                d.one_of(("'VALID'", "'SAME'")),
            ], {"rhs_dilation": d.one_of((None, (2,))), "transpose_kernel": False}
        options: dict[str, Any] = {
            "lhs_dilation": d.one_of((None, (2,))),
            "rhs_dilation": d.one_of((None, (2,))),
        }
        return [lhs, rhs, repr(stride), padding], options if padding != "'SAME'" else {}

    return call


def gather_call(d: Draw) -> Call:
    numbers = (
        "m.lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))"
    )
    indices = d.array(shape=(3, 1), dtype="int32", low=-2, high=6, plain=True)
    options: dict[str, Any] = {"mode": d.one_of(("'clip'", "'fill'", "None"))}
    if d.chance(0.4):
        options["fill_value"] = d.one_of(("0", "7", "nan"))
    return [d.array(shape=(5, 2), kinds="fiucb", plain=True), indices, numbers, "(1, 2)"], options


def scatter_call(d: Draw) -> Call:
    numbers = "m.lax.ScatterDimensionNumbers((1,), (0,), (0,))"
    indices = f"jnp.asarray(np.array([[0], [3], [{d.one_of((1, 7, -1))}]]))"
    return [
        d.array(shape=(5, 2), plain=True),
        indices,
        d.array(shape=(3, 2), dtype=d.dtype, plain=True),
        numbers,
    ], {"mode": d.one_of(("'clip'", "'drop'", "None"))}


def reduce_window_call(d: Draw) -> Call:
    initial, computation = d.one_of(
        (("0.", "m.lax.add"), ("-inf", "m.lax.max"), ("1.", "m.lax.mul"), ("inf", "m.lax.min"))
    )
    options: dict[str, Any] = {
        "padding": d.one_of(("'VALID'", "'SAME'", "[(1, 2)]")),
        "window_strides": (d.integer(1, 3),),
    }
    if d.chance(0.3) and options["padding"] != "'SAME'":
        options |= {"base_dilation": (2,), "window_dilation": (d.integer(1, 2),)}
    return [
        d.array(shape=(d.integer(3, 9),), dtype="float32", plain=True),
        initial,
        computation,
        "(2,)",
    ], options


def pad_lax_call(d: Draw) -> Call:
    array = d.array(plain=True, dtype=d.dtype)
    return [
        array,
        f"jnp.{'bool_' if d.dtype == 'bool' else d.dtype}(1)",
        repr([(d.integer(-1, 2), d.integer(0, 2), d.integer(0, 1)) for _ in d.first]),
    ], {}


def slice_call(d: Draw) -> Call:
    array = d.array()
    ends = [sorted((d.integer(0, n), d.integer(0, n))) for n in d.first]
    return [array, repr(tuple(e[0] for e in ends)), repr(tuple(e[1] for e in ends))], {
        "strides": d.one_of((None, tuple(d.integer(1, 2) for _ in ends)))
    }


def dynamic_slice_call(d: Draw) -> Call:
    array = d.array(kinds="fiucb")
    starts = "(" + "".join(d.array(shape=(), kinds="iu", low=-4, high=5) + ", " for _ in d.first) + ")"
    options = {"allow_negative_indices": d.chance(0.5)} if d.chance(0.4) else {}
    sizes = tuple(d.integer(0, n) for n in d.first)
    if "update" in d.drawn["function"]:
        return [array, d.array(shape=sizes, dtype=d.dtype, plain=True), starts], options
    return [array, starts, repr(sizes)], options


def dynamic_update_in_dim_call(d: Draw) -> Call:
    array = d.array(shape=(4, 3), dtype=d.dtype, plain=True)
    update = (
        d.array(shape=(d.integer(0, 3), 3), dtype=d.dtype, plain=True)
        if "slice" in d.drawn["function"]
        else d.array(shape=(3,), dtype=d.dtype, plain=True)
    )
    return [array, update, d.array(shape=(), kinds="iu", low=-5, high=5), "0"], {}


def reduce_call(d: Draw) -> Call:
    initial, computation = d.one_of(
        (("0", "m.lax.add"), ("1", "m.lax.mul"), ("3", "m.lax.max"), ("2", "m.lax.min"))
    )
    dtype = d.some_dtype("fi")
    return [
        d.array(shape=(3, 4), dtype=dtype, plain=True),
        f"jnp.{dtype}({initial})",
        computation,
        d.one_of(("(0,)", "(1,)", "(0, 1)", "()")),
    ], {}


def fft_call(d: Draw) -> Call:
    kind = d.one_of(("FFT", "IFFT", "RFFT", "IRFFT"))
    n = d.one_of((1, 4, 5, 8))
    width = n // 2 + 1 if kind == "IRFFT" else n
    return [
        d.array(shape=(2, width), dtype="float32" if kind == "RFFT" else "complex64", plain=True),
        repr(kind),
        f"({n},)",
    ], {}


def tridiagonal_call(d: Draw) -> Call:
    return [
        d.array(shape=(4,), dtype="float32", low=low, high=high, plain=True)
        for low, high in ((0, 1), (3, 5), (0, 1))
    ] + [d.array(shape=(4, 2), dtype="float32", plain=True)], {}


def householder_call(d: Draw) -> Call:
    arrays = [
        d.array(shape=(4, 2), dtype="float32", low=-1, high=1, plain=True),
        d.array(shape=(2,), dtype="float32", low=0, high=1, plain=True),
    ]
    if "ormqr" in d.drawn["function"]:
        return [*arrays, d.array(shape=(4, 3), dtype="float32", plain=True)], {
            "left": True,
            "transpose": d.chance(0.5),
        }
    return arrays, {}


def ragged_dot_call(d: Draw) -> Call:
    return [
        d.array(shape=(4, 3), dtype="float32", plain=True),
        d.array(shape=(2, 3, 2), dtype="float32", plain=True),
        "jnp.asarray([1, 3], jnp.int32)",
    ], {}


def apply_along_axis_call(d: Draw) -> Call:
    array = d.array()
    return [d.one_of(("jnp.sum", "jnp.sort", "lambda x: x[::2]")), repr(d.axis()), array], {}


def apply_over_axes_call(d: Draw) -> Call:
    array = d.array()
    return [d.one_of(("jnp.sum", "jnp.max")), array, repr(d.axes() or 0)], {}


CALLS: dict[str, Callable[[Draw], Call]] = {
    "numpy.pad": pad_call,
    "numpy.where": where_call,
    "numpy.einsum": einsum_call,
    "numpy.einsum_path": einsum_call,
    "lax.dot_general": dot_general_call,
    "lax.gather": gather_call,
    **dict.fromkeys(
        (f"lax.scatter{end}" for end in ("", "_add", "_sub", "_mul", "_min", "_max")), scatter_call
    ),
    **dict.fromkeys(
        (
            f"lax.conv{end}"
            for end in (
                "",
                "_with_general_padding",
                "_general_dilated",
                "_general_dilated_patches",
                "_transpose",
            )
        ),
        convolution(),
    ),
    "lax.reduce_window": reduce_window_call,
    "lax.pad": pad_lax_call,
    "lax.slice": slice_call,
    "lax.dynamic_slice": dynamic_slice_call,
    "lax.dynamic_update_slice": dynamic_slice_call,
    "lax.dynamic_update_slice_in_dim": dynamic_update_in_dim_call,
    "lax.dynamic_update_index_in_dim": dynamic_update_in_dim_call,
    "lax.reduce": reduce_call,
    "lax.fft": fft_call,
    "lax.linalg.tridiagonal_solve": tridiagonal_call,
    "lax.linalg.householder_product": householder_call,
    "lax.linalg.ormqr": householder_call,
    "lax.ragged_dot": ragged_dot_call,
    "numpy.apply_along_axis": apply_along_axis_call,
    "numpy.apply_over_axes": apply_over_axes_call,
}
