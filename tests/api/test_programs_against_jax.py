"""A table of programs whose values, derivatives, second derivatives and batched forms equal jax's, in value, dtype and
weak type, computed eagerly and compiled.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.against_jax import ALL, NOT_DIFFERENTIATED, ONCE, Program, check, numbers

pytestmark = pytest.mark.sampled(2)

x = numbers((3,))
positive = numbers((3,), 0.3, 2.0, seed=1)
unit = numbers((3,), -0.8, 0.8, seed=2)
above_one = numbers((3,), 1.2, 3.0, seed=3)
matrix = numbers((2, 3), seed=4)
square = numbers((3, 3), seed=5)
cube = numbers((2, 3, 2), seed=6)
integers = np.array([2, 0, 1], np.int32)
truths = np.array([True, False, True])
half = x.astype(np.float16)
complexes = numbers((3,), dtype=np.complex64, seed=8)

PROGRAMS: list[Program] = []


def add(name, function, *args, forms=ALL):
    # How each operation lowers is the law tests' business: of programs of one operation, every eighth is compiled.
    compiled = add.always_compiled or len(PROGRAMS) % 8 == 0
    PROGRAMS.append(Program(name, function, args, forms, compiled))


add.always_compiled = False


# --- elementwise functions of one argument

for names, argument in (
    (
        (
            "sin",
            "cos",
            "sinh",
            "cosh",
            "tanh",
            "arctan",
            "arcsinh",
            "exp",
            "expm1",
            "exp2",
            "square",
            "negative",
        ),
        x,
    ),
    (("abs", "positive", "deg2rad", "cbrt", "nan_to_num", "tan"), unit),
    (("arcsin", "arccos", "arctanh"), unit),
    (("log", "log2", "log10", "log1p", "sqrt", "reciprocal", "sinc"), positive),
    (("arccosh",), above_one),
    (("exp", "sin", "tanh", "sqrt", "log", "square"), complexes),
):
    for name in names:
        kind = "" if argument.dtype.kind == "f" else f" of {argument.dtype}"
        add(f"{name}{kind}", lambda m, a, name=name: getattr(m.numpy, name)(a), argument)

for name in ("sign", "floor", "ceil", "round", "trunc", "rint"):
    add(name, lambda m, a, name=name: getattr(m.numpy, name)(a), x, forms=ONCE)
for name in ("isnan", "isfinite", "signbit", "logical_not"):
    add(name, lambda m, a, name=name: getattr(m.numpy, name)(a), x, forms=NOT_DIFFERENTIATED)
for name in ("real", "imag", "conj", "abs", "angle"):
    add(f"{name} of complex", lambda m, a, name=name: getattr(m.numpy, name)(a), complexes)
for name in (
    "relu",
    "softplus",
    "sigmoid",
    "silu",
    "gelu",
    "elu",
    "softmax",
    "log_softmax",
    "leaky_relu",
    "logsumexp",
):
    add(f"nn.{name}", lambda m, a, name=name: getattr(m.nn, name)(a), x)
for name in ("sin", "tanh", "exp", "sqrt"):
    add(f"{name} of float16", lambda m, a, name=name: getattr(m.numpy, name)(abs(a)), half, forms=ONCE)
    add(f"{name} of a number", lambda m, a, name=name: getattr(m.numpy, name)(a), 0.75)

# --- of two arguments, with broadcasting and Python numbers

BINARY = ("add", "subtract", "multiply", "divide", "arctan2", "maximum", "minimum", "hypot", "logaddexp")
for name in BINARY:
    add(name, lambda m, a, b, name=name: getattr(m.numpy, name)(a, b), x, positive)
    add(f"{name} of vector and matrix", lambda m, a, b, name=name: getattr(m.numpy, name)(a, b), x, matrix)
    add(f"{name} of array and number", lambda m, a, b, name=name: getattr(m.numpy, name)(a, b), x, 1.5)
for name in ("power", "float_power", "mod", "fmod", "copysign", "heaviside", "floor_divide"):
    add(
        name,
        lambda m, a, b, name=name: getattr(m.numpy, name)(a, b),
        positive,
        numbers((3,), 0.5, 2, seed=9),
        forms=ONCE,
    )
add("power, twice", lambda m, a, b: a**b, positive, x)
for exponent in (0, 1, 2, 3, -1, -2, 0.5, -1.5):
    add(f"x ** {exponent}", lambda m, a, n=exponent: a**n, positive)
add("2.0 ** x", lambda m, a: 2.0**a, x)
add(
    "number ** number", lambda m, a, b: a**b, 2.5, 1.5, forms=("value", "vjp", "vmap")
)  # its jvp is strong in jax
add("complex power", lambda m, a: a**3 / (1 + a), complexes)
add("integers times floats", lambda m, a, n: a * n + n / 2, x, integers)
add("integer arithmetic", lambda m, n: (n * 3 - 1) // 2 % 5 + (n << 2), integers, forms=NOT_DIFFERENTIATED)
add("float16 meets float32", lambda m, a, b: a * b + a, half, x, forms=ONCE)
add("float16 and numbers", lambda m, a: a * 2.5 + 1, half, forms=ONCE)
add("comparison", lambda m, a, b: (a < b, a >= 0.0, a == b), x, positive, forms=NOT_DIFFERENTIATED)
add("where", lambda m, a, b: m.numpy.where(a > 0, a * b, b**2), x, positive)
add("where with a number", lambda m, a: m.numpy.where(a > 0, a, 0.0), x)
add("clip", lambda m, a: m.numpy.clip(a, -0.5, 0.75), x)
add("clip below", lambda m, a: m.numpy.clip(a, -0.5), x)
add("select", lambda m, t, a, b: m.numpy.where(t, a, b), truths, x, positive)
add("astype", lambda m, a: a.astype("float16").astype("float32") * 2, x, forms=ONCE)
add("astype of integers", lambda m, a, n: a * n.astype("float32"), x, integers)

# --- reductions and running totals

REDUCTIONS = ("sum", "mean", "max", "min", "prod", "var", "std")
for name in REDUCTIONS:
    add(name, lambda m, a, name=name: getattr(m.numpy, name)(a), matrix)
    add(f"{name} over axis 0", lambda m, a, name=name: getattr(m.numpy, name)(a, axis=0), matrix)
    add(f"{name}, keepdims", lambda m, a, name=name: getattr(m.numpy, name)(a, axis=-1, keepdims=True), cube)
for name in ("sum", "mean", "prod"):
    add(f"{name} of complex", lambda m, a, name=name: getattr(m.numpy, name)(a), complexes)
    add(
        f"{name} of integers",
        lambda m, a, name=name: getattr(m.numpy, name)(a),
        integers,
        forms=NOT_DIFFERENTIATED,
    )
for name in ("argmax", "argmin", "any", "all", "count_nonzero"):
    add(name, lambda m, a, name=name: getattr(m.numpy, name)(a, axis=0), matrix, forms=NOT_DIFFERENTIATED)
for name in ("cumsum", "cumprod"):
    add(name, lambda m, a, name=name: getattr(m.numpy, name)(a, axis=0), square)
    add(f"{name}, flat", lambda m, a, name=name: getattr(m.numpy, name)(a), matrix)
add("ptp", lambda m, a: m.numpy.ptp(a, axis=1), matrix)
add("average with weights", lambda m, a, w: m.numpy.average(a, weights=w), x, positive)
add("median", lambda m, a: m.numpy.median(a), x)
add("quantile", lambda m, a: m.numpy.quantile(a, 0.3), x)
add("sum where", lambda m, a, t: m.numpy.sum(a, where=t), x, truths)
add("nansum", lambda m, a: m.numpy.nansum(m.numpy.where(a > 0, a, m.numpy.nan)), x)
add("norm by hand", lambda m, a: m.numpy.sqrt(m.numpy.sum(a * a)), x)
add("sum of nothing", lambda m, a: m.numpy.sum(a * 2), np.zeros((0, 3), np.float32))

# --- products

add("dot", lambda m, a, b: m.numpy.dot(a, b), x, positive)
add("matrix by vector", lambda m, a, b: a @ b, matrix, x)
add("matrix by matrix", lambda m, a, b: a @ b, matrix, square)
add("transposed product", lambda m, a: a.T @ a, matrix)
add("batched product", lambda m, a, b: m.numpy.matmul(a, b), cube, matrix)
add("outer", lambda m, a, b: m.numpy.outer(a, b), x, positive)
add("tensordot", lambda m, a, b: m.numpy.tensordot(a, b, axes=[[1], [0]]), cube, square)
add("inner", lambda m, a: m.numpy.inner(a, a), matrix)
add("vdot of complex", lambda m, a, b: m.numpy.vdot(a, b), complexes, complexes[::-1])
add("trace", lambda m, a: m.numpy.trace(a @ a), square)
add("kron", lambda m, a, b: m.numpy.kron(a, b), x, positive)
for subscripts, args in (
    ("i,i->", (x, positive)),
    ("ij,j->i", (matrix, x)),
    ("ij->ji", (matrix,)),
    ("ii->i", (square,)),
    ("ii", (square,)),
    ("ij,jk,kl->il", (matrix, square, square)),
    ("bij,bj->bi", (cube, numbers((2, 2), seed=12))),
    ("...j,j->...", (cube.swapaxes(1, 2), x)),
):
    add(f"einsum {subscripts}", lambda m, *a, s=subscripts: m.numpy.einsum(s, *a), *args)

# --- shapes and indices

for name, function in {
    "reshape": lambda m, a: a.reshape(3, 4),
    "ravel": lambda m, a: a.ravel() * m.numpy.arange(12.0),
    "transpose": lambda m, a: a.transpose(2, 0, 1),
    "swapaxes": lambda m, a: m.numpy.swapaxes(a, 0, 1) ** 2,
    "moveaxis": lambda m, a: m.numpy.moveaxis(a, 0, -1),
    "squeeze": lambda m, a: a[:1].squeeze(0),
    "expand_dims": lambda m, a: m.numpy.expand_dims(a, (0, 2)),
    "broadcast_to": lambda m, a: m.numpy.broadcast_to(a, (2, 2, 3, 2)) * a,
    "concatenate": lambda m, a: m.numpy.concatenate([a, a * 2], axis=1),
    "stack": lambda m, a: m.numpy.stack([a, m.numpy.sin(a)], axis=1),
    "x[0]": lambda m, a: a[0],
    "x[-1, 1]": lambda m, a: a[-1, 1],
    "x[:, 1:]": lambda m, a: a[:, 1:],
    "x[..., ::-1]": lambda m, a: a[..., ::-1],
    "x[:, None]": lambda m, a: a[:, None] * a,
    "x[:, [2, 0]]": lambda m, a: a[:, np.array([2, 0])],
    "x[:, [1, 1]]": lambda m, a: a[:, np.array([1, 1])] ** 2,
    "x.at[0].set": lambda m, a: a.at[0].set(1.5),
    "x.at[0].add": lambda m, a: a.at[0].add(a[1]),
    "x.at[:, [0, 0]].add": lambda m, a: a.at[:, np.array([0, 0])].add(2.0),
    "x.at[1].mul": lambda m, a: a.at[1].mul(a[0]),
    "x.at[1].max": lambda m, a: a.at[1].max(a[0]),
    "diagonal": lambda m, a: m.numpy.diagonal(a, axis1=0, axis2=1),
    "tril": lambda m, a: m.numpy.tril(a),
}.items():
    add(name, function, cube)

for name, function in {
    "split": lambda m, a: m.numpy.split(a, 3),
    "tile": lambda m, a: m.numpy.tile(a, (2, 1)),
    "repeat": lambda m, a: m.numpy.repeat(a, 2),
    "roll": lambda m, a: m.numpy.roll(a, 1) * a,
    "flip": lambda m, a: m.numpy.flip(a) * a,
    "pad": lambda m, a: m.numpy.pad(a, (1, 2)),
    "sort": lambda m, a: m.numpy.sort(a) * m.numpy.arange(3.0),
    "diag": lambda m, a: m.numpy.diag(a) @ m.numpy.ones(3),
    "take": lambda m, a: m.numpy.take(a, np.array([1, 1, 0])),
}.items():
    add(name, function, x)
add("argsort", lambda m, a: m.numpy.argsort(a), x, forms=NOT_DIFFERENTIATED)
add("sort along an axis", lambda m, a: m.numpy.sort(a, axis=0) * a, square)
add("traced index", lambda m, a, i: a[i[0]] * i[1], x, integers)
add("traced indices", lambda m, a, i: a[i] * a, x, integers)
add("traced scatter", lambda m, a, i: a.at[i].add(a**2), x, integers)
add("mask", lambda m, a, t: m.numpy.where(t, a, -a).sum(), x, truths)
add("take_along_axis", lambda m, a, i: m.numpy.take_along_axis(a, i[:, None], axis=1), square, integers)

# --- control flow

add.always_compiled = True

add("cond", lambda m, a: m.lax.cond(a[0] > 0, m.numpy.sin, m.numpy.cos, a), x)
add("cond that is false", lambda m, a: m.lax.cond(a[0] > 9, lambda v: v * 2, lambda v: v**2, a), x)
add(
    "cond with two operands",
    lambda m, a, b: m.lax.cond(a.sum() > 0, lambda u, v: u * v, lambda u, v: u - v, a, b),
    x,
    positive,
)
add("cond that captures", lambda m, a, b: m.lax.cond(a[0] > 0, lambda: a * b, lambda: b + 1), x, positive)
add(
    "cond with a constant branch",
    lambda m, a: m.lax.cond(a[0] > 0, lambda v: v * 3, lambda v: m.numpy.ones(3), a),
    x,
)
add("cond of numbers", lambda m, a: m.lax.cond(a[0] > 0, lambda: 1.0, lambda: 2.0) * a, x)
add(
    "nested cond",
    lambda m, a: m.lax.cond(
        a[0] > 0, lambda v: m.lax.cond(v[1] > 0, m.numpy.sin, m.numpy.exp, v), m.numpy.tanh, a
    ),
    x,
)
add("switch", lambda m, a, i: m.lax.switch(i[0], [lambda v: v, m.numpy.sin, lambda v: v**3], a), x, integers)
add("switch out of range", lambda m, a: m.lax.switch(7, [lambda v: v, m.numpy.sin], a), x)
add("scan", lambda m, a: m.lax.scan(lambda c, v: (c * v + 1, c + v), 1.0, a), x)
add("scan backwards", lambda m, a: m.lax.scan(lambda c, v: (c * v + 1, c + v), 1.0, a, reverse=True), x)
add("scan, unrolled", lambda m, a: m.lax.scan(lambda c, v: (m.numpy.sin(c) * v, c), a[0], a, unroll=3), x)
add(
    "scan of a tree",
    lambda m, a, b: m.lax.scan(
        lambda c, v: ({"s": c["s"] + v[0] * v[1], "n": c["n"] + 1}, v[0] - c["s"]), {"s": 0.0, "n": 0}, (a, b)
    ),
    x,
    positive,
)
add(
    "scan that captures",
    lambda m, a, b: m.lax.scan(lambda c, v: (c @ b + v, c.sum()), a, m.numpy.arange(4.0)),
    x,
    square,
)
add(
    "scan without inputs",
    lambda m, a: m.lax.scan(lambda c, _: (c * a, c), m.numpy.ones(3), None, length=4),
    x,
)
add("scan of length 0", lambda m, a: m.lax.scan(lambda c, v: (c + v, c * v), a.sum(), a[:0]), x)
add(
    "scan in scan",
    lambda m, a: m.lax.scan(lambda c, v: m.lax.scan(lambda d, u: (d + u * v, d * u), c, a), 0.5, a),
    x,
)
add(
    "scan with cond",
    lambda m, a: m.lax.scan(lambda c, v: (m.lax.cond(v > 0, lambda s: s * v, lambda s: s - v, c), c), 1.0, a),
    x,
)
add("fori_loop", lambda m, a: m.lax.fori_loop(0, 4, lambda i, c: c * a + i, a), x)
add(
    "fori_loop from a traced bound",
    lambda m, a, n: m.lax.fori_loop(0, n[0], lambda i, c: c * a + i, a),
    x,
    integers,
    forms=("value", "jvp", "vmap"),
)
add(
    "while_loop",
    lambda m, a: m.lax.while_loop(lambda c: c[0] < 5.0, lambda c: (c[0] * 1.5 + 1, c[1] * a), (a[0], a)),
    x,
    forms=("value", "jvp", "vmap"),
)
add("while_loop of numbers", lambda m, a: m.lax.while_loop(lambda c: c < 100, lambda c: c * 2, 1) + a, x)
add("python loop", lambda m, a: sum(m.numpy.sin(a) ** k / (k + 1) for k in range(4)), x)

# --- functions that call functions

add("nested jit", lambda m, a: m.jit(lambda v: m.jit(m.numpy.sin)(v) * v)(a) + a, x)
add("jit that captures", lambda m, a, b: m.jit(lambda v: v * b)(a), x, positive)
add("jit with static", lambda m, a: m.jit(lambda v, n: v**n, static_argnums=1)(a, 3), x)
add(
    "jit of a tree",
    lambda m, a, b: m.jit(lambda p: {"sum": p["a"] + p["b"], "parts": [p["a"], None]})({"a": a, "b": b}),
    x,
    positive,
)
add("jit in scan", lambda m, a: m.lax.scan(m.jit(lambda c, v: (c + v, c * v)), 0.0, a), x)
add("vmap in vmap", lambda m, a: m.vmap(lambda r: m.vmap(lambda s: s**2 + r.sum())(r))(a), square)
add("vmap with out_axes", lambda m, a: m.vmap(lambda r: r * r.sum(), in_axes=1, out_axes=1)(a), matrix)
add("vmap of a matrix product", lambda m, a, b: m.vmap(m.numpy.dot, in_axes=(0, None))(a, b), square, x)
add("psum", lambda m, a: m.vmap(lambda v: v / m.lax.psum(v, "i"), axis_name="i")(a), positive)
add("grad in f", lambda m, a: m.grad(lambda v: m.numpy.sum(m.numpy.sin(v) * v))(a), x)
add(
    "hessian in f",
    lambda m, a: m.hessian(lambda v: m.numpy.prod(v))(a),
    x,
    forms=("value", "jvp", "vjp", "vmap"),
)
add(
    "jacfwd in f",
    lambda m, a: m.jacfwd(lambda v: v[:, None] * v)(a),
    x,
    forms=("value", "jvp", "vjp", "vmap"),
)
add(
    "jacrev in f",
    lambda m, a: m.jacrev(lambda v: m.numpy.outer(v, v)[0])(a),
    x,
    forms=("value", "jvp", "vjp", "vmap"),
)
add("linearize in f", lambda m, a: m.linearize(m.numpy.tanh, a)[1](a), x)
add("checkpoint", lambda m, a: m.checkpoint(lambda v: m.numpy.sin(m.numpy.sin(v)))(a), x)
add(
    "checkpoint in scan",
    lambda m, a: m.lax.scan(m.checkpoint(lambda c, v: (m.numpy.tanh(c * v), c)), 0.5, a),
    x,
)
add(
    "per-example gradient",
    lambda m, a, b: m.vmap(m.grad(lambda w, r: m.numpy.tanh(w @ r)), in_axes=(None, 0))(a, b),
    x,
    square,
)


def with_custom_jvp(m):
    @m.custom_jvp
    def f(a, b):
        return m.numpy.sin(a) * b

    @f.defjvp
    def rule(primals, tangents):
        (a, b), (da, db) = primals, tangents
        return f(a, b), 2 * m.numpy.cos(a) * b * da + m.numpy.sin(a) * db  # twice, to see that it is used

    return f


def with_custom_vjp(m):
    @m.custom_vjp
    def f(a, b):
        return m.numpy.sin(a) * b

    f.defvjp(
        lambda a, b: (f(a, b), (m.numpy.cos(a), m.numpy.sin(a), b)),
        lambda saved, g: (3 * g * saved[0] * saved[2], g * saved[1]),
    )
    return f


REVERSE = ("value", "vjp", "vmap", "vmap_vjp", "reverse_twice")
for rules, forms in ((with_custom_jvp, ALL), (with_custom_vjp, REVERSE)):
    kind = rules.__name__[5:]
    add(kind, lambda m, a, b, r=rules: r(m)(a, b), x, positive, forms=forms)
    add(f"{kind} in jit", lambda m, a, b, r=rules: m.jit(r(m))(a, b), x, positive, forms=forms)
    add(
        f"{kind} in scan",
        lambda m, a, b, r=rules: m.lax.scan(lambda c, v: (r(m)(c, v), c), b[0], a),
        x,
        positive,
        forms=[form for form in forms if form != "second"],
    )  # jax differentiates the rule itself there, not f again
    add(
        f"{kind} in cond",
        lambda m, a, b, r=rules: m.lax.cond(a[0] > 0, r(m), lambda u, v: u, a, b),
        x,
        positive,
        forms=forms,
    )
    add(
        f"{kind} in vmap",
        lambda m, a, b, r=rules: m.vmap(r(m), in_axes=(0, None))(a, b[0]),
        x,
        positive,
        forms=forms,
    )
    add(f"{kind} in checkpoint", lambda m, a, b, r=rules: m.checkpoint(r(m))(a, b), x, positive, forms=forms)
    add(
        f"{kind} in grad",
        lambda m, a, b, r=rules: m.grad(lambda v: r(m)(v, b).sum())(a),
        x,
        positive,
        forms=("value", "vjp", "vmap"),
    )

# --- trees, models

add("tree in, tree out", lambda m, t: {"y": t["a"] * t["b"], "z": (t["a"],)}, {"a": x, "b": positive})
add("layer", lambda m, w, b, v: m.numpy.tanh(v @ w + b), matrix.T, numbers((2,)), square)
add(
    "loss",
    lambda m, p, v: m.numpy.mean((m.nn.relu(v @ p["w1"]) @ p["w2"]) ** 2),
    {"w1": square, "w2": numbers((3,), seed=3)},
    matrix,
)
add("attention", lambda m, q, k: m.nn.softmax(q @ k.T / 2.0) @ k, matrix, square)
add(
    "layer norm",
    lambda m, v: (v - v.mean(-1, keepdims=True)) / m.numpy.sqrt(v.var(-1, keepdims=True) + 1e-5),
    matrix,
)
add(
    "recurrent net",
    lambda m, w, v: m.lax.scan(lambda h, u: (m.numpy.tanh(h @ w + u), h), m.numpy.zeros(3), v),
    square,
    square,
)
add("cross entropy", lambda m, v, t: -m.nn.log_softmax(v)[np.arange(3), t].mean(), square, integers)
add(
    "several results of several types",
    lambda m, a: (a, a.astype("float16"), a > 0, 3, 2.5, m.numpy.arange(2)),
    x,
    forms=ONCE,
)
add("number in, number out", lambda m, a: a * 2, 1.5)
add("unused argument", lambda m, a, b: a * 2, x, positive)
add("constant result", lambda m, a: (m.numpy.ones(2), 1.0), x)


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_program(program):
    check(program)


def test_there_are_a_few_hundred_programs():
    assert len(PROGRAMS) > 230
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)
