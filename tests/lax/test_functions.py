"""The functions of `purax.lax` against jax's: values, dtypes, weak types, both derivatives and batches, eagerly and
compiled, over dtypes and special values.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.against_jax import NOT_DIFFERENTIATED, ON_CPU, ONCE, Program, numbers
from tests.lax.together import check_together

PROGRAMS: dict[str, list[Program]] = {}
VALUE = ("value",)
NOT_COMPILED = ("special functions",)  # long programs, which the tests of the laws compile

x = numbers((3,))
unit = numbers((3,), -0.8, 0.8, seed=1)
positive = numbers((3,), 0.3, 2.0, seed=2)
above_one = numbers((3,), 1.2, 3.0, seed=3)
matrix = numbers((2, 3), seed=4)
square = numbers((3, 3), seed=5)
cube = numbers((2, 3, 4), seed=6)
complexes = numbers((3,), dtype=np.complex64, seed=7)
half = x.astype(np.float16)
brain = x.astype(ml_dtypes.bfloat16)
integers = np.array([5, -3, 7], np.int32)
others = np.array([2, 4, -3], np.int32)
small = np.array([1, -2, 3], np.int8)
bytes_ = np.array([1, 200, 3], np.uint8)
truths = np.array([True, False, True])
special = np.array([0.0, -0.0, 1.0, -1.5, 2.5, np.inf, -np.inf, np.nan], np.float32)
pairs = np.stack(np.meshgrid(special, special)).reshape(2, -1)


def add(group, name, function, *args, forms=ONCE):
    PROGRAMS.setdefault(group, []).append(Program(name, function, args, forms, group not in NOT_COMPILED))


def named(name):
    return lambda m, *args: getattr(m.lax, name)(*args)


# --- one operand

for names, argument in (
    ("sin cos tan sinh cosh tanh asinh atan exp expm1 exp2 logistic square neg cbrt", x),
    ("sign floor ceil round abs", unit),
    ("asin acos atanh", unit),
    ("log log1p sqrt rsqrt reciprocal", positive),
    ("acosh", above_one),
):
    for name in names.split():
        add("one operand", name, named(name), argument)
for name in "lgamma digamma bessel_i0e bessel_i1e erf erfc erf_inv".split():
    add("special functions", name, named(name), np.abs(unit))
for name in "sin cos tan tanh exp log sqrt rsqrt logistic square neg abs real imag conj log1p expm1".split():
    add("complex", name, named(name), complexes)
add(
    "complex", "sign", named("sign"), complexes, forms=NOT_DIFFERENTIATED
)  # jax says that it is constant, but x/|x| turns
for name in "sin exp tanh log1p square sqrt neg abs logistic".split():
    add("narrow", name, named(name), np.abs(half), forms=NOT_DIFFERENTIATED)
    if name != "logistic":  # jax rounds more than once
        add("narrow", name, named(name), np.abs(brain), forms=NOT_DIFFERENTIATED)
for name in "neg sign square population_count clz bitwise_not".split():
    add(
        "integers",
        name,
        named(name),
        np.abs(integers) if name == "clz" else integers,
        forms=NOT_DIFFERENTIATED,
    )
    add("integers", name, named(name), bytes_, forms=NOT_DIFFERENTIATED)
for (
    name
) in "sin cos exp log1p floor ceil round sign abs is_finite tanh expm1 square cbrt erf atan asinh".split():
    add("special values", name, named(name), special, forms=VALUE)
add("integers", "abs", named("abs"), small, forms=NOT_DIFFERENTIATED)
add("integers", "not", named("bitwise_not"), truths, forms=NOT_DIFFERENTIATED)
add("one operand", "round to even", lambda m, a: m.lax.round(a * 2, m.lax.RoundingMethod.TO_NEAREST_EVEN), x)
add("one operand", "accuracy", lambda m, a: m.lax.exp(a, accuracy=m.lax.AccuracyMode.HIGHEST), x)
for power in (-2, 0, 1, 3):
    add("one operand", f"integer_pow {power}", lambda m, a, p=power: m.lax.integer_pow(a, p), positive)
add("integers", "integer_pow", lambda m, a: m.lax.integer_pow(a, 3), integers, forms=NOT_DIFFERENTIATED)
for bits in ((8, 3), (5, 10), (3, 0)):
    add("one operand", f"reduce_precision {bits}", lambda m, a, b=bits: m.lax.reduce_precision(a, *b), x)

# --- several operands

add("two operands", "nextafter", named("nextafter"), positive, above_one, forms=NOT_DIFFERENTIATED)
add("special pairs", "nextafter", lambda m, a: m.lax.nextafter(a[0], a[1]), pairs, forms=VALUE)
for name in "add sub mul div max min atan2 pow rem".split():
    add("two operands", name, named(name), positive, above_one)
    add("two operands", f"{name} of a number", named(name), positive, 1.5, forms=VALUE)
    add(
        "two operands",
        f"a number {name}",
        lambda m, a, n=name: getattr(m.lax, n)(1.5, a),
        positive,
        forms=VALUE,
    )
    add(
        "two operands",
        f"{name} of axes of size 1",
        named(name),
        np.abs(matrix),
        above_one[None],
        forms=("value", "vjp"),
    )
    if name not in ("pow",):
        add("special pairs", name, lambda m, a, n=name: getattr(m.lax, n)(a[0], a[1]), pairs, forms=VALUE)
for name in "eq ne lt le gt ge".split():
    add("comparisons", name, named(name), x, unit, forms=NOT_DIFFERENTIATED)
    add("comparisons", f"{name} of integers", named(name), integers, 2, forms=NOT_DIFFERENTIATED)
    add(
        "comparisons",
        f"{name} of pairs",
        lambda m, a, n=name: getattr(m.lax, n)(a[0], a[1]),
        pairs,
        forms=VALUE,
    )
for name in "add sub mul div rem max min bitwise_and bitwise_or bitwise_xor mulhi".split():
    add("integers", name, named(name), integers, others, forms=NOT_DIFFERENTIATED)
for name in "shift_left shift_right_arithmetic shift_right_logical".split():
    add("integers", name, named(name), integers, np.abs(others), forms=NOT_DIFFERENTIATED)
for name in "add sub mul div pow".split():
    add("complex", name, named(name), complexes, complexes[::-1].copy())
add("two operands", "pow of an integer", named("pow"), positive, 3)
add("two operands", "pow of integers", named("pow"), positive, integers)
add("two operands", "complex", named("complex"), x, unit)
add("two operands", "products of integers in int32",
    lambda m, a: m.lax.mul(a, a, out_dtype=np.int32), np.array([100, -3], np.int8), forms=VALUE)  # fmt: skip
for name in "igamma igammac".split():
    add(
        "special functions",
        name,
        lambda m, a, b, n=name: getattr(m.lax, n)(a, b),
        positive,
        above_one,
        forms=NOT_DIFFERENTIATED,
    )
    add("special functions", f"{name} in x", lambda m, b, n=name: getattr(m.lax, n)(1.5, b), positive)
add(
    "special functions",
    "random_gamma_grad",
    named("random_gamma_grad"),
    positive,
    above_one,
    forms=NOT_DIFFERENTIATED,
)
add(
    "special functions",
    "igamma_grad_a",
    named("igamma_grad_a"),
    positive,
    above_one,
    forms=NOT_DIFFERENTIATED,
)
add("special functions", "polygamma", lambda m, a: m.lax.polygamma(1.0, a), positive)
add("special functions", "zeta", named("zeta"), above_one, positive, forms=NOT_DIFFERENTIATED)
add("special functions", "betainc", lambda m, a: m.lax.betainc(2.0, 3.0, m.lax.abs(a)), unit)
add("choosing", "clamp", lambda m, a: m.lax.clamp(-0.5, a, 0.5), x)
add("choosing", "clamp between arrays", named("clamp"), x - 0.5, unit, x + 0.5)
add("choosing", "select", named("select"), truths, x, unit)
add("choosing", "select by one", lambda m, a, b: m.lax.select(a[0] > 0, a, b), x, unit)
add(
    "choosing",
    "select_n",
    lambda m, a, b: m.lax.select_n(np.array([0, 2, 1], np.int32), a, b, a * b),
    x,
    unit,
)

# --- shapes

for name, function in {
    "broadcast": lambda m, a: m.lax.broadcast(a, (2, 1)),
    "broadcast_in_dim": lambda m, a: m.lax.broadcast_in_dim(a, (4, 2, 3), (1, 2)),
    "broadcast_like": lambda m, a: m.lax.broadcast_like(a, np.ones((4, 2, 3), np.float32)),
    "broadcast_to_rank": lambda m, a: m.lax.broadcast_to_rank(a, 4),
    "collapse": lambda m, a: m.lax.collapse(a, 0, 2),
    "expand_dims": lambda m, a: m.lax.expand_dims(a, (0, -1)),
    "squeeze": lambda m, a: m.lax.squeeze(m.lax.expand_dims(a, (0, 3)), (0, -1)),
    "reshape": lambda m, a: m.lax.reshape(a, (3, 2)),
    "reshape in another order": lambda m, a: m.lax.reshape(a, (6,), (1, 0)),
    "transpose": lambda m, a: m.lax.transpose(a, (1, 0)),
    "rev": lambda m, a: m.lax.rev(a, (1,)),
    "concatenate": lambda m, a: m.lax.concatenate([a, a * 2], 1),
    "concatenate an array": lambda m, a: m.lax.concatenate(a, 0),
    "stack": lambda m, a: m.lax.stack([a, a * 2], -1),
    "unstack": lambda m, a: m.lax.unstack(a, 1),
    "split": lambda m, a: m.lax.split(a, (1, 2), 1),
    "tile": lambda m, a: m.lax.tile(a, (2, 3)),
    "slice": lambda m, a: m.lax.slice(a, (0, 1), (2, 3), (1, 2)),
    "slice_in_dim": lambda m, a: m.lax.slice_in_dim(a, -2, None, axis=1),
    "index_in_dim": lambda m, a: m.lax.index_in_dim(a, -1, 1, False),
    "pad": lambda m, a: m.lax.pad(a, 1.5, [(1, -1, 0), (0, 2, 1)]),
    "convert": lambda m, a: m.lax.convert_element_type(a, np.float16),
    "dynamic_slice": lambda m, a: m.lax.dynamic_slice(a, (1, -2), (1, 2)),
    "dynamic_slice of an array": lambda m, a: m.lax.dynamic_slice(a, np.array([0, 9]), (1, 2)),
    "dynamic_slice_in_dim": lambda m, a: m.lax.dynamic_slice_in_dim(a, np.int32(1), 2, 1),
    "dynamic_index_in_dim": lambda m, a: m.lax.dynamic_index_in_dim(a, -1, 1, False),
    "dynamic_update_slice": lambda m, a: m.lax.dynamic_update_slice(a, a[:1, :2] * 3, (5, 1)),
    "dynamic_update_slice_in_dim": lambda m, a: m.lax.dynamic_update_slice_in_dim(a, a[:, :1], -1, 1),
    "dynamic_update_index_in_dim": lambda m, a: m.lax.dynamic_update_index_in_dim(a, a[0] * 2, 1, 0),
    "index_take": lambda m, a: m.lax.index_take(a, (np.array([1, 0, 1]), np.array([2, -1, 4])), (0, 1)),
    "index_take of one axis": lambda m, a: m.lax.index_take(a, (np.array([1, 0, 1]),), (1,)),
}.items():
    add("shapes", name, function, matrix)
for name, function in {
    "traced places": lambda m, a, i: m.lax.dynamic_slice(a, (i[0], i[1]), (1, 2)),
    "a traced place": lambda m, a, i: m.lax.dynamic_index_in_dim(a, i[0], 0),
    "an update at a traced place": lambda m, a, i: m.lax.dynamic_update_slice(a, a[:1, :1], (i[0], i[1])),
}.items():
    add("shapes", name, function, matrix, np.array([-1, 1], np.int32))
for name, function in {
    "full": lambda m, a: (m.lax.full((2,), 3), m.lax.full((2,), 3, np.float16), m.lax.full((), a[0])),
    "full_like": lambda m, a: (m.lax.full_like(a, 2), m.lax.full_like(a, 2.5, np.int8, (1,))),
    "iota": lambda m, a: (m.lax.iota(float, 3), m.lax.broadcasted_iota(np.int8, (2, 3), 1)),
    "bitcast": lambda m, a: (
        m.lax.bitcast_convert_type(a, np.int32),
        m.lax.bitcast_convert_type(a, np.int16),
    ),
    "shape_as_value": lambda m, a: m.numpy.asarray(m.lax.shape_as_value((2, 3))),
    "stage": lambda m, a: (m.lax.stage(1), m.lax.stage(np.ones(2))),
}.items():
    add("shapes", name, function, x, forms=VALUE)

# --- reductions, running results, order

for name in "reduce_sum reduce_prod reduce_max reduce_min".split():
    for axes in ((0,), (1,), (0, 1), ()):
        add("reductions", f"{name} {axes}", lambda m, a, n=name, ax=axes: getattr(m.lax, n)(a, ax), matrix)
for name in "reduce_and reduce_or reduce_xor".split():
    for argument in (truths, integers):
        add(
            "reductions",
            name,
            lambda m, a, n=name: getattr(m.lax, n)(a, (0,)),
            argument,
            forms=NOT_DIFFERENTIATED,
        )
for name in "argmax argmin".split():
    add(
        "reductions",
        name,
        lambda m, a, n=name: getattr(m.lax, n)(a, 1, np.int8),
        matrix,
        forms=NOT_DIFFERENTIATED,
    )
for name in "cumsum cumprod cummax cummin cumlogsumexp".split():
    for reverse in (False, True):
        add(
            "reductions",
            f"{name} {reverse}",
            lambda m, a, n=name, r=reverse: getattr(m.lax, n)(a, 1, r),
            matrix,
        )
add("order", "sort", lambda m, a: m.lax.sort(a, 0), matrix)
add("order", "sort several", lambda m, a: m.lax.sort((m.lax.round(a), a, a * 2), num_keys=2), square)
add("order", "sort_key_val", lambda m, a: m.lax.sort_key_val(a, a * 3), matrix)
add("order", "top_k", lambda m, a: m.lax.top_k(a, 2, axis=0), square)
add("order", "approx_max_k", lambda m, a: m.lax.approx_max_k(a, 2), square)
add("order", "approx_min_k", lambda m, a: m.lax.approx_min_k(a, 2, reduction_dimension=0), square)
add("order", "sort special values", lambda m, a: m.lax.sort(a), special, forms=VALUE)

# --- products

for name, function in {
    "dot": lambda m, a, b: m.lax.dot(a, b),
    "dot with a vector": lambda m, a, b: m.lax.dot(a, b[0]),
    "dot with dimension numbers": lambda m, a, b: m.lax.dot(a, b, dimension_numbers=(((1,), (1,)), ((), ()))),
    "dot_general": lambda m, a, b: m.lax.dot_general(a, b, (((0,), (1,)), ((1,), (0,))), "highest"),
    "batch_matmul": lambda m, a, b: m.lax.batch_matmul(a[None], b[None]),
    "an integer and a real one": lambda m, a, b: m.lax.dot(m.numpy.arange(3), b),
}.items():
    add("products", name, function, square, square[::-1].copy())
add("products", "narrow, summed in float32",
    lambda m, a: m.lax.dot_general(a, a, (((0,), (0,)), ((), ())), preferred_element_type=np.float32),
    brain, forms=NOT_DIFFERENTIATED)  # fmt: skip
for dtype, wide in (("bool", np.int32), ("bool", np.float32), ("int8", np.float32), ("int8", np.int32)):
    add("products", f"{dtype}, summed in {np.dtype(wide).name}",
        lambda m, a, wide=wide: m.lax.dot(a, a.T, preferred_element_type=wide),
        np.full((2, 3), 100).astype(dtype), forms=NOT_DIFFERENTIATED)  # fmt: skip
# Numbers that bfloat16 holds: jax rounds the scaled factors to it, whatever the preferred dtype.
add("products", "scaled_dot",
    lambda m, a, b: m.lax.scaled_dot(a, b, lhs_scale=m.numpy.ones((2, 1, 2)) * 2, rhs_scale=m.numpy.ones((2, 2, 5)) / 2,
                                     preferred_element_type=np.float32),
    np.round(cube[:, :1] * 8), np.round(numbers((2, 4, 5)) * 8), forms=VALUE)  # fmt: skip

# --- convolutions

image, kernel = numbers((2, 2, 5, 4)), numbers((3, 2, 2, 3), seed=1)
for name, function in {
    "conv": lambda m, a, k: m.lax.conv(a, k, (1, 1), "SAME"),
    "patches": lambda m, a, k: m.lax.conv_general_dilated_patches(a, (2, 3), (2, 1), "SAME"),
    "patches with letters": lambda m, a, k: m.lax.conv_general_dilated_patches(
        a, (2, 3), (1, 2), [(1, 0), (2, 1)], (1, 2), (2, 1), ("NCHW", "OIWH", "CNHW")),
    "local": lambda m, a, k: m.lax.conv_general_dilated_local(
        a, m.numpy.ones((3, 8, 4, 3)) * k[0, 0, 0, 0], (1, 1), "VALID", (2, 2)),
    "local with letters": lambda m, a, k: m.lax.conv_general_dilated_local(
        a, m.numpy.ones((4, 3, 8, 5)) * k[0, 0, 0, 0], (1, 1), "VALID", (2, 2),
        dimension_numbers=("NCHW", "HWIO", "NHWC")),
}.items():  # fmt: skip
    add("convolutions", name, function, image, kernel)

# --- windows at computed places

indices = np.array([[0], [2], [2]], np.int32)
for mode in (None, "clip", "fill", "promise_in_bounds"):
    add("gather and scatter", f"gather {mode}", lambda m, a, mode=mode: m.lax.gather(
        a, indices, m.lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 2), mode=mode), square)  # fmt: skip
for mode in (None, "clip", "drop"):
    # jax differentiates scatter_mul for unique indices only, and gives infinities for some extrema.
    for name in "scatter_add scatter_sub scatter_mul scatter_min scatter_max".split():
        add("gather and scatter", f"{name} {mode}", lambda m, a, u, n=name, mode=mode: getattr(m.lax, n)(
            a, np.array([[0], [2], [5]]), u, m.lax.ScatterDimensionNumbers((1,), (0,), (0,)), mode=mode),
            square, square[::-1].copy(),
            forms=ONCE if name in ("scatter_add", "scatter_sub") else NOT_DIFFERENTIATED)  # fmt: skip
add("gather and scatter", "scatter_mul of unique indices", lambda m, a, u: m.lax.scatter_mul(
    a, np.array([[0], [2]]), u[:2], m.lax.ScatterDimensionNumbers((1,), (0,), (0,)), unique_indices=True),
    square, square[::-1].copy())  # fmt: skip
add("gather and scatter", "gather out of bounds", lambda m, a: [m.lax.gather(
    a, np.array([[0], [9], [-1]]), m.lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 2), mode=mode)
    for mode in (None, "clip", "fill")], square, forms=NOT_DIFFERENTIATED)  # fmt: skip
add("gather and scatter", "scatter", lambda m, a, u: m.lax.scatter(
    a, np.array([[0], [2]]), u[:2], m.lax.ScatterDimensionNumbers((1,), (0,), (0,)), unique_indices=True),
    square, square[::-1].copy())  # fmt: skip
add("gather and scatter", "scatter_apply", lambda m, a: m.lax.scatter_apply(
    a, indices, lambda v: v * 3, m.lax.ScatterDimensionNumbers((1,), (0,), (0,)), update_shape=(3, 2)),
    square, forms=VALUE)  # fmt: skip

# --- values as they are

add("as they are", "optimization_barrier", lambda m, a: m.lax.optimization_barrier((a, {"b": a * 2})), x)
add("as they are", "stop_gradient", lambda m, a: (m.lax.stop_gradient((a, 2.0, {"n": 3})), a * 1.5), x)
add(
    "as they are",
    "composite",
    lambda m, a: m.lax.composite(lambda v, *, k: v * k, "my.scale")(a, k=2.0),
    x,
    forms=VALUE,
)
if ON_CPU:  # where jax computes, too
    add("as they are", "platform_dependent",
        lambda m, a: m.lax.platform_dependent(a, cpu=m.numpy.sin, tpu=m.numpy.cos, default=lambda v: v), x)  # fmt: skip


@pytest.mark.parametrize("group", list(PROGRAMS))
def test_functions_agree_with_jax(group):
    check_together(PROGRAMS[group])
