"""Where purax differs from jax on purpose: a reason, and what is recognized as the difference."""

from __future__ import annotations

import re

# purax has a result where jax raises one of these: what jax has not implemented, for dtypes or for traced values.
REFUSALS = (
    r"jax raises (NotImplementedError|ConcretizationTypeError|TracerArrayConversionError|TracerBoolConversionError)",
    r"jax raises (TracerIntegerConversionError|NonConcreteBooleanIndexError|TypePromotionError)",
    r"jax raises \w+: .*(not supported|[Uu]nsupported|not implemented|narrow-width integers)",
    r"jax raises TypeError: Input type is incompatible with `preferred_element_type`",
    r"jax raises ValueError: \w+ input must be float32 or float64",
    r"jax raises ValueError: Invalid integer data type 'V'",  # of integers of four bits
    r"jax raises TypeError: \w+ requires ndarray or scalar arguments, got <class 'list'>",  # as SciPy, some take them
    r"jax raises ValueError: One input must be smaller than the other in every dimension",  # for the mode "valid" only
    r"purax raises TypeError: [\w.]+ requires ndarray or scalar arguments, got <class 'list'>",  # jax does not look
    r"purax raises TypeError: linalg.\w+ computes in float32",  # jax raises when it compiles, here only types are asked
    r"purax raises TypeError: \w+ takes float32, float64",
    r"purax raises TypePromotionError: dtypes .*(int4|float8)",  # jax promotes them in some functions
    r"purax raises OverflowError: the Python int -?\d+ is too large",  # as in NumPy 2; jax wraps it around
    r"purax raises ValueError: fill_value=.* is not a number of dtype",
    r"purax raises TypeError: \w+: preferred_element_type \w+ is of another kind",
    r"jax raises TypeError: logical reduction requires operand dtype bool or int, got u?int4",
    r"jax raises TypeError: [\w-]+ does not accept dtype (bool|u?int|float8_)",  # NumPy and purax take them
    r"jax raises (JaxRuntimeError|XlaRuntimeError)",  # XLA's compiler refuses the dtype
    r"jax raises TypeError: can only concatenate list",
    r"jax raises AttributeError: '(float|int|complex|bool|list|NoneType)' object has no attribute",
    r"jax raises TypeError: Slice size at index 0 in gather op is out of range",  # of arrays without elements
    r"jax raises ValueError: (Shape should be positive|jax.numpy.median reduction axis must be non-empty)",
    r"jax raises ValueError: The arguments to solve must have shapes",  # purax broadcasts them, as NumPy does
    r"jax raises TypeError: primal and tangent arguments to jax.jvp do not match",  # of functions that call `jvp`
    r"jax raises ValueError: data type dtype\(.*\) not compatible with finfo",
)

# Parts of programs.
NARROW = r"float16|float8|int[48]\b|bool"
INTEGERS = r"int\d+|bool"
EXTREME = r"e\+?30|inf|\d{5}"

# (functions, what the difference looks like, and perhaps what stands in the program): the reason.
DIFFERENCES: dict[tuple[str, ...], str] = {
    (r"numpy\.(nan)?(median|quantile|percentile)", r"type: .*"): (
        "of a scalar with keepdims, jax's result has an axis; NumPy's and purax's have none"
    ),
    (r"numpy\.(nan)?(prod|sum|max|min|amax|amin)", r"purax raises ValueError: \w+: initial="): (
        "an initial value that the dtype of the result cannot hold raises; jax wraps it around"
    ),
    (r"numpy\.[hvd]?(array_)?split", r"jax raises ValueError: Sizes passed to split must be nonnegative"): (
        "places beyond the end and in any order give empty parts, as in NumPy"
    ),
    (
        r"numpy\.expand_dims",
        r"jax raises TypeError: expand_dims\(\) missing 1 required positional argument",
    ): ("the axis is 0 if none is given, as in the array API standard"),
    (r"numpy\.pow(er)?", r"(weak )?type: "): (
        "jax takes a known integer exponent of any dtype for a Python integer, so that the type depends on `jit`"
    ),
    (r"scipy\.stats\..*", r"weak type: "): (
        "results with axes are not weak; jax's functions differ where integers meet Python floats"
    ),
    (
        r"scipy\.stats\..*",
        r"value: .*nan",
    ): "parameters outside of their domain give NaN, as in SciPy; jax computes on",
    (
        r"scipy\.special\.(digamma|expi|bessel_jn|polygamma|zeta)",
        r"value: .*nan",
    ): "at poles jax gives NaN, SciPy ±∞",
    (r"scipy\.special\.log_softmax", r"value: .*inf"): "jax subtracts in unsigned integers",
    (
        r"scipy\.linalg\.(convolution_matrix|hankel|toeplitz|circulant)",
        r"value: .*(nan|inf)",
    ): "jax moves elements by products with 0 and 1, which NaN and infinity make NaN",
    (
        r"image\..*",
        r"value: .*(nan|inf)",
    ): "where weights are 0, infinity makes NaN or not by the order of products",
    (
        r"lax\.cumlogsumexp",
        r"value: .*nan",
    ): "jax's sums of float8 are NaN, as their start is below its range",
    (r"scipy\.special\.(loggamma|gammaln)", r"value: .*inf"): "infinite at the poles, as in SciPy",
    (r"scipy\.stats\.gumbel_r\.logsf", r"value: .*inf"): "log(1 - exp(-exp(-x))) is about -x for large x",
    (
        r"nn\.squareplus",
        r"value: ",
        INTEGERS,
    ): "jax squares integers before they become floats, which overflows",
    (r"numpy\.linalg\.matrix_rank", r"value: 1 for 0|value: \["): (
        "`rtol` is relative to the largest singular value, as in NumPy; jax takes it as it is"
    ),
    (
        r"numpy\.(broadcast_arrays|meshgrid)",
        r"structure: tuple(\d+) for list\1",
    ): "tuples, as in NumPy 2 and jax 0.11",
    (
        r"numpy\.meshgrid",
        r"jax raises ValueError: Arguments to jax.numpy.meshgrid must be 1D",
    ): "scalars, as in NumPy",
    (r"random\.(weibull_min)", r"purax raises ValueError: \w+: .* cannot be broadcast to shape="): (
        "where parameters have more elements than `shape`, jax draws once for several of them"
    ),
    (
        r"scipy\.special\.owens_t|scipy\.signal\..*",
        r"type: .*float16.* for .*float32",
    ): "16 bits stay 16 bits",
    (r"scipy\.stats\.cauchy\.(isf|ppf)", r"value: .*inf"): "the quantile of 0 or 1 is infinite",
    (r"numpy\.(compress|extract)", r"jax raises ValueError: size must be positive and not greater than"): (
        "more elements may be asked for than there are; they are filled in, as by nonzero"
    ),
    (
        r"scipy\.special\.poch",
        r"value: .*nan",
    ): "at the poles of Γ the quotient is 0 or infinite, as in SciPy",
    (
        r"numpy\.unravel_index",
        r"type: int32.* for u?int4",
    ): "the places along an axis need not fit into four bits",
    (
        r"scipy\.stats\.(poisson|betabinom|nbinom|binom|geom|bernoulli)\..*",
        r"value: (.*inf|\[0)",
    ): "between the integers there is no probability, as in SciPy",
    (
        r"scipy\.stats\.t\..*",
        r"value: ",
        EXTREME,
    ): "jax subtracts large logarithms where there are many degrees of freedom",
    (r"numpy\.geomspace", r"value: .*nan"): "the ends are exact, also where one of them is 0",
    (r"numpy\.trapezoid", r"value: .*(inf|nan)", NARROW): "jax's sums of 8 bits overflow",
    (r"lax\.reduce", r"value: ", r"\(\)"): "along no axes the initial value counts, too; jax leaves it out",
    (r"scipy\.signal\..*", r"value: .*e\+[123]\d"): "the rounding of large numbers",
    (
        r"nn\.log_sigmoid",
        r"value: .*-(65|255|4294)",
    ): "jax negates unsigned integers before they become floats",
    (r"lax\.conv_general_dilated_patches|numpy\.cross", r"value: .*(nan|inf)"): (
        "jax moves and pads elements by products with 0 and 1, which NaN makes NaN"
    ),
    (r"numpy\.linspace", r"type: ", r"num=0|, 0[,)]"): "the step of no samples has the shape of the ends",
    (
        r"numpy\.poly(int|der)",
        r"type: |jax raises TypeError: len",
    ): "a scalar is a polynomial with one coefficient",
    (
        r"numpy\.fft\.(rfft|ihfft).*",
        r"jax raises (ZeroDivision|Value)Error: (division by zero|Cannot lower)",
    ): "as above",
    (r"numpy\.fft\.rfftfreq", r"type: "): "a dtype of integers that is asked for is honoured, as by fftfreq",
    (
        r"random\.binomial",
        r"value: ",
        NARROW,
    ): "of narrow parameters purax draws in float32, jax in their dtype",
    (r"numpy\.(corrcoef|cov|interp|(nan)?percentile|(nan)?quantile)", r"value: ", NARROW): (
        "narrow dtypes overflow or round in jax, which computes in them; points of equal place are taken as in NumPy"
    ),
    (
        r"numpy\.ediff1d",
        r"purax raises TypeError: ediff1d: ",
    ): "jax cuts the fractions of what is put at the ends",
    (r"numpy\.fft\..*", r"purax raises ValueError: fft.\w+: the number of points must be positive"): (
        "jax raises when it compiles, here only types are asked for"
    ),
    (r"numpy\.gradient", r"purax raises TypeError: gradient: invalid number of spacing"): "as in NumPy",
    (
        r"numpy\.partition",
        r"jax raises TypeError: neg does not accept dtype bool",
    ): "truth values have an order",
    (
        r"numpy\.poly(add|sub|mul|val|div)",
        r"jax raises (IndexError|TypeError)",
    ): "a scalar is a polynomial, as in NumPy",
    (r"numpy\.put", r"jax raises ValueError: Cannot broadcast"): "of a scalar, as in NumPy",
    (r"numpy\.unique.*", r"weak type: "): "the elements are as weak as the array",
    (
        r"numpy\.unravel_index",
        r"purax raises ValueError: unravel_index: indices has the position",
    ): "as in NumPy",
    (
        r"numpy\.setdiff1d",
        r"purax raises TypeError: \w+: the complex fill_value",
    ): "jax cuts the imaginary part",
    (r"numpy\.(cov|corrcoef)", r"type: float16.* for float32", r"dtype=jnp\.(b?float16)"): (
        "a dtype that is asked for holds also where there are weights"
    ),
    (r"numpy\.(cov|corrcoef)", r"jax raises TypeError: Cannot concatenate arrays", r"False"): (
        "rowvar=False holds for both arguments, also for a single observation"
    ),
    (r"nn\.log1mexp", r"value: .*nan", r"uint"): "jax negates unsigned integers before they become floats",
    (r"nn\.(hard_tanh|soft_sign|relu6|hard_\w+)", r"value: ", INTEGERS): (
        "jax computes with bounds and absolute values that wrap around"
    ),
    (r"scipy\.special\.boxcox(1p)?", r"value: .*nan", r"inf"): "the limit, as in SciPy; jax gives NaN",
    (r"random\.rademacher", r"purax raises ValueError: rademacher: dtype must be numeric, got bool"): (
        "both signs are True"
    ),
    (r"numpy\.bincount", r"purax raises ValueError: bincount: x must not be negative"): (
        "as in NumPy; jax counts them with 0"
    ),
    (r"scipy\.linalg\.lu", r"jax raises ValueError: too many values to unpack"): "of matrices without elements",
    (r"scipy\.signal\.\w+|numpy\.(convolve|correlate)", r"value: .*(nan|inf)", r"inf"): (
        "beyond the ends there are zeros, whose products with infinity are NaN or left out"
    ),
    (r"(nn|scipy\.special)\.(log_)?softmax", r"value: ", r"uint"): "jax subtracts in unsigned integers",
    (r"lax\.igammac?|scipy\.special\.gammaincc?", r"value: .*nan", r"inf"): "the limit at infinity",
    (r"numpy\.arg(min|max)", r"jax raises TypeError: lt does not accept dtype complex"): "they are ordered as in NumPy",
    (r"numpy\.nancum(sum|prod)", r"jax raises ValueError: axis -?\d is out of bounds for array of dimension 0"): (
        "of a scalar, as in NumPy"
    ),
    (r"numpy\.roots", r"value: .*j"): "the order of eigenvalues is not defined",
    (r"lax\.zeta|scipy\.special\.zeta", r"value: .*nan", EXTREME): "the limit; jax gives NaN",
    (r"scipy\.linalg\.expm", r"value: "): "jax's errors are 300 times as large, seen against SciPy in float64",
    (
        r"numpy\.polyfit",
        r"jax raises ValueError: data type .* not inexact",
    ): "integers are taken, as in NumPy",
    (r"numpy\.corrcoef", r"type: complex64"): "correlations of complex numbers are complex, also of none",
    (
        r"lax\.linalg\.tridiagonal",
        r"jax raises ValueError: The input to tridiagonal must be a square",
    ): "(0, 0) is square",
    (
        r"random\.(multinomial|double_sided_maxwell|generalized_normal|weibull_min)",
        r"(value|type): ",
        r"dtype=|jnp\.b?float16\)",
    ): "the dtype that is asked for is honoured",
    (
        r"random\.(key|PRNGKey)",
        r"jax raises TypeError: PRNG key seed must be an integer",
    ): "int4 is an integer",
    (r"scipy\.special\.(kl_div|rel_entr)", r"weak type: "): "are not weak",
    (r"numpy\.intersect1d", r"weak type: "): "jax's is weak without `size` only",
    (
        r"numpy\.pow(er)?|numpy\.float_power|lax\.pow",
        r"value: ",
        INTEGERS,
    ): "jax's negative powers of integers are arbitrary, purax's 0",
    (
        r"numpy\.take",
        r"type: ",
        r"\(0,|, 0[,)]|\[\]",
    ): "jax drops axes of indices without elements; NumPy and purax keep them",
    (
        r"numpy\.take_along_axis",
        r"purax raises IndexError: take_along_axis: cannot take",
    ): "as NumPy; jax gives 0",
    (
        r"numpy\.kaiser|scipy\.fft\..*",
        r"value: ",
        NARROW,
    ): "jax computes in the 16 bits of the argument, purax in float32",
    (
        r"numpy\.(nan)?(var|std)",
        r"purax raises TypeError: \w+: dtype must be a floating",
    ): "variances are not integers",
    (
        r"numpy\.apply_over_axes",
        r"jax raises TypeError: 'int' object is not iterable",
    ): "an axis is taken, as in NumPy",
    (
        r"numpy\.histogram.*",
        r"(value|type): ",
    ): "an element on an edge counts as in NumPy; jax rounds the edges otherwise",
    (r"lax\.clamp", r"purax raises TypeError: clamp takes"): "complex numbers have no order",
    (
        r"lax\.conv.*|lax\.dot.*",
        r"value: .*j",
    ): "what infinite complex numbers become in products is not defined",
    (r"lax\.linalg\.lu", r"structure: tuple3 for list3"): "a tuple, as of all other functions",
    (
        r"lax\.linalg\.symmetric_product",
        r"purax raises TypeError: symmetric_product takes",
    ): "16 bits need a conversion",
    (
        r"lax\.sign|numpy\.sign",
        r"value: .*j",
    ): "jax's sign of large complex numbers is NaN, as their size overflows",
    (
        r"numpy\.spacing",
        r"value: ",
        r"float16",
    ): "jax's spacing of negative float16 is positive, NumPy's and purax's negative",
    (r"numpy\.(argp|p)artition", r"value: "): "the order within the parts is not defined",
    (
        r"numpy\.bitwise_right_shift|numpy\.right_shift",
        r"value: ",
        r"uint4",
    ): "jax shifts uint4 as if it were signed",
}


def is_known(path: str, difference: str, program: str) -> bool:
    """Whether a difference of a function is one of those above."""
    if any(re.match(pattern, difference) for pattern in REFUSALS):
        return True
    return any(
        re.fullmatch(names, path)
        and re.match(what, difference)
        and all(re.search(part, program) for part in parts)
        for names, what, *parts in DIFFERENCES
    )
